"""Random draws of rows by what is in them: which a fit sees, and which calibrate it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from transduce.app.tables.row_hashes import draw_keys
from transduce.core.types import AnyArray, Mask


@dataclass(frozen=True, eq=False)
class PartScan:
    """What is known of the rows of one part of a table after a first look."""

    missing: Mask  # (n,) where the label is missing
    hashes: AnyArray  # (n,) one for each row
    drawn: Mask | None = None  # (n,) which rows were drawn at random to be labelled
    limits: Mapping[str, int] = field(default_factory=dict)  # labels that are limits: how often
    cells: Sequence[Any] = ()  # labels, not read yet, the least and the greatest among them


@dataclass(frozen=True, eq=False)
class RowDraw:
    """Which rows take part in a fit; each is an array of (part, row), in the order of the draw."""

    visible: AnyArray  # (v, 2) labelled rows that the fit sees
    calibration: AnyArray  # (c, 2) labelled rows that stay outside, and drawn ones without a label
    sampled: AnyArray  # (b, 2) unlabelled rows that the fit sees
    n_labelled: int  # in the whole table
    n_unlabelled: int  # in the whole table

    @property
    def seen(self) -> AnyArray:
        """The rows that the fit sees, as (part, row)."""
        return np.concatenate([self.visible, self.sampled])


def draw_roles(
    parts: Sequence[PartScan], *, n_calibration: int, n_visible: int, n_sampled: int
) -> RowDraw:
    """Draw which rows a fit sees, and which labelled rows stay outside to calibrate it."""
    # Where rows were drawn to be labelled, some of them stay outside, whether or not they have a
    # label, and the fit sees all others: what became of a row plays no part in its role.
    missing = np.concatenate([part.missing for part in parts])
    hashes = np.concatenate([part.hashes for part in parts])
    labelled = np.flatnonzero(~missing)
    unlabelled = np.flatnonzero(missing)
    keys = np.zeros(len(missing), dtype=np.uint64)
    keys[labelled] = draw_keys(hashes[labelled])
    keys[unlabelled] = draw_keys(hashes[unlabelled])
    drawn = _drawn_rows(parts)
    calibration = _smallest(np.flatnonzero(drawn), keys, n_calibration)
    visible = _smallest(np.setdiff1d(labelled, calibration), keys, n_visible)
    drawn_unlabelled = np.setdiff1d(np.flatnonzero(drawn & missing), calibration)
    sampled = _smallest(np.flatnonzero(missing & ~drawn), keys, n_sampled)
    starts = np.cumsum([0, *(len(part.missing) for part in parts)])
    return RowDraw(
        _places(visible, starts),
        _places(calibration, starts),
        _places(np.append(sampled, drawn_unlabelled), starts),
        len(labelled),
        len(unlabelled),
    )


def _drawn_rows(parts: Sequence[PartScan]) -> Mask:
    """Return which rows of all parts were drawn to be labelled.

    They are the labelled ones if nobody says otherwise.
    """
    if all(part.drawn is None for part in parts):
        return ~np.concatenate([part.missing for part in parts])
    masks: list[Mask] = []
    for part in parts:
        if part.drawn is None:
            masks.append(np.zeros(len(part.missing), dtype=bool))
        else:
            masks.append(part.drawn)
    return np.concatenate(masks)


def _places(rows: AnyArray, starts: AnyArray) -> AnyArray:
    """Return (part, row) of rows of all parts together. Shapes: rows (r,), starts (p + 1,)."""
    part = np.searchsorted(starts, rows, side="right") - 1
    return np.column_stack([part, rows - starts[part]])


def _smallest(rows: AnyArray, keys: AnyArray, number: int) -> AnyArray:
    """Return the rows with the smallest keys, in their order. Shapes: rows (r,), keys (n,)."""
    if number < len(rows):
        rows = rows[np.argpartition(keys[rows], number)[:number]]
    return rows[np.argsort(keys[rows], kind="stable")]
