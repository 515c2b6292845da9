"""How many predictions are wrong: what calibration rows tell of those at unlabelled rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from transduce.core import assumptions
from transduce.core.guarantee import CountBound
from transduce.core.types import Mask
from transduce.model_selection.fit_and_predict import RawPrediction
from transduce.population.urns import Urn, two_urns_bound

if TYPE_CHECKING:
    from transduce.conformal.calibrated import CalibratedTable


@dataclass(frozen=True)
class WrongAnswers:
    """What calibration rows tell of the number of wrong predictions at unlabelled rows."""

    urn: Urn  # of the rows that the first fit answers so: the calibration rows judge it
    n_kept: int  # rows that the last fit answers as the first
    n_rows: int  # rows that the last fit answers so: all others count as wrong
    of_one_answer: Urn | None = None  # the same if all rows got one prediction

    def bound(self, certainty: float) -> CountBound:
        """Return a bound on the wrong predictions."""
        most = self.urn.bound(certainty)
        simplest = None
        if self.of_one_answer is not None:
            simplest = self.of_one_answer.bound(certainty)
        return self._count(most, certainty, simplest)

    def bound_with(self, other: WrongAnswers, certainty: float) -> CountBound:
        """Return a bound on the wrong predictions of these rows and of others together."""
        most = two_urns_bound(self.urn, other.urn, certainty)
        both = replace(self, n_kept=self.n_kept + other.n_kept, n_rows=self.n_rows + other.n_rows)
        simplest = None
        if self.of_one_answer is not None:
            all_rows = replace(self.of_one_answer, n_unlabelled=both.n_rows)
            simplest = all_rows.bound(certainty)
        return both._count(most, certainty, simplest)

    def _count(self, most: int, certainty: float, simplest: int | None) -> CountBound:
        """Return a bound, given one on the wrong predictions of the first fit."""
        changed = self.n_rows - self.n_kept
        at_most = min(most, self.n_kept) + changed
        return CountBound(
            certainty,
            at_most,
            self.n_rows,
            simplest=simplest,
            judged=most,
            changed=changed,
        )


def count_wrong(table: CalibratedTable, second: RawPrediction | None) -> WrongAnswers:
    """Return what the calibration rows tell of wrong predictions at the unlabelled rows."""
    # Where a second fit answers otherwise than the first, which the calibration rows judge, the
    # prediction counts as wrong: nothing that is known of the first says more of the second. So
    # does that at a row which was drawn to be labelled and has no label.
    wrong = wrong_at_calibration(table, second)[table.calibration.given]
    changed = changed_by(table, second)
    n_empty = table.n_empty
    n_rows = int(table.covered.sum())
    urn = Urn(int(wrong.sum()) + n_empty, len(wrong) + n_empty, n_rows)
    n_kept = int((table.covered & ~changed).sum())
    return WrongAnswers(urn, n_kept, n_rows, _one_answer_for_all(table, n_rows))


def _one_answer_for_all(table: CalibratedTable, n_rows: int) -> Urn:
    """Return the same if all rows got one prediction: the most frequent class, or the median."""
    if table.tolerance is not None:
        off = np.abs(table.labels - np.median(table.labels)) > table.tolerance
        n_wrong = int(off.sum())
        n_labels = len(off)
    else:
        counts = np.bincount(table.labels, minlength=len(table.sizes))
        if table.weights.grounds.assumption == assumptions.CHANCE:  # then all labels tell
            counts = np.asarray(table.sizes)
        n_labels = int(counts.sum())
        n_wrong = int(counts.sum() - counts.max())
    return Urn(n_wrong + table.n_empty, n_labels + table.n_empty, n_rows)


def bound_by_class(
    table: CalibratedTable, second: RawPrediction | None, certainty: float
) -> tuple[tuple[object, CountBound], ...]:
    """Return a bound on the wrong ones among the rows predicted as each class, each by itself."""
    assert table.classes is not None
    wrong = wrong_at_calibration(table, second)
    first = table.unlabelled.values
    final = first if second is None else second.values
    covered = table.covered
    not_covered = table.unlabelled.given & ~covered
    bounds = []
    for code, label in enumerate(table.classes.tolist()):
        judged = table.calibration.given & (table.calibration.values == code)
        before = covered & (first == code)
        last = covered & (final == code)
        if not last.any() or not judged.any():
            continue
        n_empty = int((not_covered & (first == code)).sum())
        n_wrong = int(wrong[judged].sum()) + n_empty
        n_judged = int(judged.sum()) + n_empty
        urn = Urn(n_wrong, n_judged, int(before.sum()))
        answers = WrongAnswers(urn, int((before & last).sum()), int(last.sum()))
        bound = answers.bound(certainty)
        if bound.at_most < bound.of:
            bounds.append((label, bound))
    return tuple(bounds)


def _slack(table: CalibratedTable, second: RawPrediction | None) -> float:
    """Return by how much a second fit may differ from the first without being another answer."""
    if second is None or table.tolerance is None:
        return 0.0
    return table.tolerance / 4.0


def wrong_at_calibration(table: CalibratedTable, second: RawPrediction | None) -> Mask:
    """Return which calibration rows the first fit answers wrongly."""
    predicted = table.calibration.values
    if table.tolerance is None:
        return np.asarray(predicted != table.labels)
    limit = table.tolerance - _slack(table, second)
    with np.errstate(invalid="ignore"):
        return ~(np.abs(predicted - table.labels) <= limit)


def changed_by(table: CalibratedTable, second: RawPrediction | None) -> Mask:
    """Return at which unlabelled rows a second fit answers otherwise than the first."""
    first = table.unlabelled.values
    last = first if second is None else second.values
    if table.tolerance is None:
        return np.asarray(last != first)
    with np.errstate(invalid="ignore"):
        return ~(np.abs(last - first) <= _slack(table, second))
