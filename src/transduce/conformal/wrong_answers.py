"""How many answers are wrong: an exact bound from the calibration rows, which are a random part of all."""

from __future__ import annotations

from typing import Any

import numpy as np

from transduce.conformal.calibrated import Calibrated
from transduce.conformal.urn import urn_bound
from transduce.core.guarantee import CountBound
from transduce.core.types import AnyArray, Mask
from transduce.model_selection.hidden_labels import Reply


def wrong_answers(
    found: Calibrated, second: Reply | None, certainty: float, tolerance: float | None = None
) -> CountBound | None:
    """Return a bound on the number of wrong answers at the unlabelled rows."""
    is_class = found.n_classes > 0
    if not is_class and tolerance is None:
        return None
    wrong, changed = _wrong_and_changed(found, second, tolerance)
    known, given = found.calibration.given, found.unlabelled.given
    m = int((given & ~changed).sum())
    if not known.any() or not len(given):
        return None
    n = int(given.sum())
    most = urn_bound(int(wrong[known].sum()), int(known.sum()), n, certainty)
    return CountBound(certainty, min(most, m) + int(changed[given].sum()), n)


def wrong_by_class(
    found: Calibrated, second: Reply | None, certainty: float, classes: AnyArray
) -> tuple[tuple[Any, CountBound], ...]:
    """Return a bound on the wrong answers among the rows that are answered with each class, each by itself.

    Shapes: classes (n_classes,).
    """
    wrong, _ = _wrong_and_changed(found, second, None)
    known, given = found.calibration.given, found.unlabelled.given
    final = found.unlabelled.values if second is None else second.values
    bounds = []
    for code, label in enumerate(classes.tolist()):
        ours = known & (found.calibration.values == code)
        first = given & (found.unlabelled.values == code)
        last = given & (final == code)
        if not last.any() or not ours.any():
            continue
        most = urn_bound(int(wrong[ours].sum()), int(ours.sum()), int(first.sum()), certainty)
        kept, joined = int((first & last).sum()), int((last & ~first).sum())
        bound = CountBound(certainty, min(most, kept) + joined, int(last.sum()))
        if bound.at_most < bound.of:
            bounds.append((label, bound))
    return tuple(bounds)


def _wrong_and_changed(found: Calibrated, second: Reply | None, tolerance: float | None) -> tuple[Mask, Mask]:
    """Return which calibration rows the first fit answers wrongly, and where a second fit answers otherwise."""
    unchanged = np.zeros(len(found.unlabelled.values), dtype=bool)
    if tolerance is None:
        wrong = found.calibration.values != found.labels
        changed = unchanged if second is None else second.values != found.unlabelled.values
        return wrong, changed
    slack = 0.0 if second is None else tolerance / 4.0
    with np.errstate(invalid="ignore"):
        wrong = ~(np.abs(found.calibration.values - found.labels) <= tolerance - slack)
        if second is None:
            return wrong, unchanged
        return wrong, ~(np.abs(second.values - found.unlabelled.values) <= slack)
