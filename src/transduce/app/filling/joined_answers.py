"""Answers at parts of a table, put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from transduce.core.answer import Answer, LevelAnswer, Regions
from transduce.core.types import AnyArray

# Fields of an answer with an entry for each row.
BY_ROW = (
    "values",
    "status",
    "confidence",
    "credibility",
    "standard_errors",
    "unseen",
    "p_unseen",
    "p_values",
    "probabilities",
    "label_sets",
)


def join_answers(parts: list[Answer], *, by_class: bool = False) -> Answer:
    """Return several answers of one table as one, in the order of its rows."""
    classes = parts[-1].classes
    if classes is not None:
        parts = [_with_classes(part, classes, by_class) for part in parts]
    rows = np.concatenate([part.rows for part in parts])
    order = np.argsort(rows, kind="stable")
    joined: dict[str, Any] = {}
    for name in BY_ROW:
        entries = [getattr(part, name) for part in parts]
        if all(entry is not None for entry in entries):
            joined[name] = np.concatenate(entries)[order]
    regions = _join_regions([part.regions for part in parts])
    if regions is not None:
        joined["regions"] = regions[order]
    joined["further"] = tuple(
        _join_levels(list(levels)).at(order)
        for levels in zip(*(part.further for part in parts), strict=True)
    )
    return Answer(
        rows=rows[order],
        guarantee=parts[0].guarantee,
        classes=classes,
        diagnostics=parts[0].diagnostics,
        **joined,
    )


def _join_regions(parts: Sequence[Regions | None]) -> Regions | None:
    """Return regions of several answers one after another; None of classes."""
    regions = [part for part in parts if part is not None]
    if len(regions) < len(parts):
        return None
    return Regions.concatenate(regions)


def _join_levels(parts: Sequence[LevelAnswer]) -> LevelAnswer:
    """Return what several answers say at one further level, one after another."""
    sets = [part.label_sets for part in parts if part.label_sets is not None]
    unseen = [part.unseen for part in parts if part.unseen is not None]
    return LevelAnswer(
        parts[0].level,
        _join_regions([part.regions for part in parts]),
        np.concatenate(sets) if len(sets) == len(parts) else None,
        np.concatenate(unseen) if len(unseen) == len(parts) else None,
    )


def _with_classes(part: Answer, classes: AnyArray, by_class: bool) -> Answer:
    """Return an answer with columns for all classes; one that its fit did not know has no label."""
    if part.classes is None or len(part.classes) == len(classes):
        return part
    places = np.searchsorted(classes, part.classes)

    def widen(numbers: Any, absent: Any) -> Any:
        if numbers is None:
            return None
        wide = np.empty((len(numbers), len(classes)), dtype=numbers.dtype)
        wide[:] = np.reshape(absent, (-1, 1))
        wide[:, places] = numbers
        return wide

    p_absent: Any = part.p_unseen
    in_set: Any = part.unseen
    if by_class:
        p_absent = 1.0
        in_set = True
    return replace(
        part,
        classes=classes,
        p_values=widen(part.p_values, p_absent),
        probabilities=widen(part.probabilities, 0.0),
        label_sets=widen(part.label_sets, in_set),
        further=tuple(
            replace(other, label_sets=widen(other.label_sets, True if by_class else other.unseen))
            for other in part.further
        ),
    )
