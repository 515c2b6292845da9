"""Nonconformity scores: how badly a label fits a row, given what an estimator says about that row.

A score of numbers says what distances from the answer are divided by; a score of classes is a table of every class at
every row. To add one, write a function and enter it in `NUMBER_SCORES` or `CLASS_SCORES`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from transduce.core.types import Array, Mask
from transduce.model_selection.hidden_labels import Reply


def _usable(spreads: Array) -> Mask:
    return np.isfinite(spreads) & (spreads > 0.0)


def _ones(found: Reply, n_classes: int) -> Array:
    return np.ones(len(found.values))


def _spreads(found: Reply, n_classes: int) -> Array:
    """Return the spreads, with those that are not positive numbers replaced by a small one."""
    assert found.spreads is not None
    usable = _usable(found.spreads)
    return np.where(usable, found.spreads, 1e-6 * float(np.median(found.spreads[usable])))


def _improbable(found: Reply, n_classes: int) -> Array:
    assert found.probabilities is not None
    return 1.0 - found.probabilities


def _behind(found: Reply, n_classes: int) -> Array:
    scores = found.scores if found.scores is not None else found.probabilities
    assert scores is not None
    return margins(scores)


def _not_the_answer(found: Reply, n_classes: int) -> Array:
    return (found.values[:, None] != np.arange(n_classes)).astype(float)


class Score(NamedTuple):
    """A nonconformity score: its measure of rows, and whether an estimator provides what it needs.

    `clear` says whether ``"auto"`` may take it: whether it has them at all rows.
    """

    measure: Callable[[Reply, int], Array]
    possible: Callable[[Reply], bool]
    clear: Callable[[Reply], bool]
    lacks: str = ""


def _always(found: Reply) -> bool:
    return True


def _some_spreads(found: Reply) -> bool:
    return found.spreads is not None and bool(np.any(_usable(found.spreads)))


def _all_spreads(found: Reply) -> bool:
    return (
        _some_spreads(found)
        and found.spreads is not None
        and bool(np.all(_usable(found.spreads)[found.given]))
    )


def _has_probabilities(found: Reply) -> bool:
    return found.probabilities is not None


def _has_either(found: Reply) -> bool:
    return found.scores is not None or found.probabilities is not None


# In the order in which "auto" tries them.
NUMBER_SCORES = {
    "scaled": Score(_spreads, _some_spreads, _all_spreads, "standard errors"),
    "absolute": Score(_ones, _always, _always),
}
CLASS_SCORES = {
    "probability": Score(_improbable, _has_probabilities, _has_probabilities, "probabilities"),
    "margin": Score(_behind, _has_either, _has_either, "probabilities or scores"),
    "zero_one": Score(_not_the_answer, _always, _always),
}
SCORES = ("auto", *NUMBER_SCORES, *CLASS_SCORES)


def choose_score(wanted: str, found: Reply, n_classes: int) -> str:
    """Return the score to use, or raise a ValueError that says which ones the estimator supports."""
    known = CLASS_SCORES if n_classes else NUMBER_SCORES
    if wanted == "auto":
        return next(name for name, score in known.items() if score.clear(found))
    names = ", ".join(map(repr, sorted(known)))
    if wanted not in known:
        one, other = ("classes", "numbers") if n_classes else ("numbers", "classes")
        raise ValueError(f"nonconformity={wanted!r} is for {other}: use one of {names} for {one}.")
    if not known[wanted].possible(found):
        there = ", ".join(repr(name) for name, score in known.items() if score.possible(found))
        raise ValueError(
            f"nonconformity={wanted!r} needs {known[wanted].lacks}, which the estimator does not have here: "
            f"use {there}."
        )
    return wanted


def margins(scores: Array) -> Array:
    """Give by how much each class falls short of the best of the others, shape (n, n_classes); negative if it wins."""
    if scores.shape[1] < 2:
        return -scores
    ranked = np.sort(scores, axis=1)
    best_other = np.where(scores == ranked[:, -1:], ranked[:, -2:-1], ranked[:, -1:])
    return best_other - scores


def resolution(*numbers: Array) -> float:
    """Return a unit below which differences between numbers of this size are rounding: 64 units in the last place."""
    size = max((float(np.max(np.abs(part[np.isfinite(part)]), initial=0.0)) for part in numbers), default=0.0)
    return float(2.0 ** (np.ceil(np.log2(size)) - 46)) if size > 1e-280 else 0.0


def rounded(numbers: Array, unit: float) -> Array:
    """Return numbers as multiples of a unit, so that those which differ by rounding are equal; infinities stay."""
    if unit == 0.0:
        return numbers
    with np.errstate(over="ignore", invalid="ignore"):
        multiples = np.round(numbers / unit) * unit
    return np.where(np.isfinite(multiples), multiples, numbers)
