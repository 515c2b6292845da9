"""Random draws of rows by what is in them: the same rows, however a table is cut into parts and ordered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from transduce.core.types import AnyArray, Mask
from transduce.tables.labels import limit_texts
from transduce.tables.pictures import names_of
from transduce.tables.vectors import read_vectors

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mixed(numbers: AnyArray) -> AnyArray:
    """Return 64-bit numbers scattered over their whole range (the finaliser of splitmix64)."""
    with np.errstate(over="ignore"):
        z = numbers + _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def row_hashes(frame: pd.DataFrame, seed: int = 0) -> AnyArray:
    """Return a 64-bit number for each row that depends on its cells alone. Returns shape (n,)."""
    total = np.full(len(frame), _mixed(np.array([seed], dtype=np.uint64))[0])
    for name in sorted(frame.columns, key=str):
        with np.errstate(over="ignore"):
            total = _mixed(total * np.uint64(31) + _cell_hashes(frame[name]))
    return total


def _cell_hashes(column: pd.Series) -> AnyArray:
    types = pd.api.types
    if column.dtype.kind in "mM":
        zoned = isinstance(column.dtype, pd.DatetimeTZDtype)
        column = pd.Series(pd.to_numeric(column.dt.tz_localize(None) if zoned else column))
    plain = types.is_numeric_dtype(column) and not types.is_bool_dtype(column)
    if plain and not types.is_complex_dtype(column):
        numbers = column.to_numpy(dtype=float, na_value=np.nan) + 0.0  # so that -0.0 is 0.0
        return np.asarray(pd.util.hash_array(np.where(np.isnan(numbers), np.nan, numbers)), dtype=np.uint64)
    vectors = read_vectors(column)
    if vectors is not None:
        return vectors.hashes()
    cells = names_of(column).astype(object)
    try:
        codes, levels = pd.factorize(cells)
    except TypeError:  # lists and the like
        codes, levels = pd.factorize(cells.map(str, na_action="ignore"))
    words = np.array([*map(str, levels), ""], dtype=object)
    found = np.asarray(pd.util.hash_array(words), dtype=np.uint64)
    found[-1] = 0  # of missing cells, whose code is -1
    return found[codes]


def draw_keys(hashes: AnyArray) -> AnyArray:
    """Return a random-looking number (n,) for the hash (n,) of each row, different for copies of a row."""
    copies = pd.Series(hashes).groupby(hashes, sort=False).cumcount().to_numpy(np.uint64)
    with np.errstate(over="ignore"):
        return _mixed(_mixed(hashes) + copies * _GOLDEN)


@dataclass(frozen=True, eq=False)
class PartScan:
    """What is known of the rows of one part of a table after a first look."""

    missing: Mask  # (n,) where the label is missing
    hashes: AnyArray  # (n,) one for each row
    drawn: Mask | None = None  # (n,) which rows were drawn at random to be labelled
    limits: Mapping[str, int] = field(default_factory=dict)  # labels that are limits, how often each occurs


def scan_part(
    frame: pd.DataFrame, target: Any, missing: Mask, seed: int, drawn: Mask | None = None
) -> PartScan:
    """Return what a draw needs to know of a part; the label counts where there is one."""
    hashes = row_hashes(frame[[name for name in frame.columns if name != target]], seed)
    known = ~missing
    if known.any():
        with np.errstate(over="ignore"):
            hashes[known] = _mixed(hashes[known] + _cell_hashes(frame[target][known]))
    return PartScan(missing, hashes, drawn, limit_texts(frame[target]))


@dataclass(frozen=True, eq=False)
class RowDraw:
    """Which rows take part in a fit; each is an array of (part, row), in the order of the draw."""

    visible: AnyArray  # (v, 2) labelled rows that the fit sees
    calibration: AnyArray  # (c, 2) labelled rows that stay outside, and drawn ones without a label
    sampled: AnyArray  # (b, 2) unlabelled rows that the fit sees
    n_labelled: int  # in the whole table
    n_unlabelled: int  # in the whole table


def draw_roles(parts: Sequence[PartScan], *, n_calibration: int, n_visible: int, n_sampled: int) -> RowDraw:
    """Draw which rows a fit sees, and which labelled rows stay outside to calibrate it."""
    # Where rows were drawn to be labelled, some of them stay outside, whether or not they have a label, and the fit
    # sees all others: what became of a row plays no part in its role.
    missing = np.concatenate([part.missing for part in parts])
    hashes = np.concatenate([part.hashes for part in parts])
    starts = np.concatenate([[0], np.cumsum([len(part.missing) for part in parts])])
    labelled, unlabelled = np.flatnonzero(~missing), np.flatnonzero(missing)
    keys = np.zeros(len(missing), dtype=np.uint64)
    for rows in (labelled, unlabelled):
        keys[rows] = draw_keys(hashes[rows])
    unmarked = all(part.drawn is None for part in parts)
    marks = [part.missing & False if part.drawn is None else part.drawn for part in parts]
    drawn = ~missing if unmarked else np.concatenate(marks)
    held = _smallest(np.flatnonzero(drawn), keys, n_calibration)
    shown = _smallest(np.setdiff1d(labelled, held), keys, n_visible)
    empty = np.setdiff1d(np.flatnonzero(drawn & missing), held)
    some = np.append(_smallest(np.flatnonzero(missing & ~drawn), keys, n_sampled), empty)

    def places(rows: AnyArray) -> AnyArray:
        part = np.searchsorted(starts, rows, side="right") - 1
        return np.column_stack([part, rows - starts[part]])

    return RowDraw(places(shown), places(held), places(some), len(labelled), len(unlabelled))


def _smallest(rows: AnyArray, keys: AnyArray, number: int) -> AnyArray:
    """Return the rows with the smallest keys, in the order of these. Shapes: rows (r,), keys (n,)."""
    if number < len(rows):
        rows = rows[np.argpartition(keys[rows], number)[:number]]
    return rows[np.argsort(keys[rows], kind="stable")]
