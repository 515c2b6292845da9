"""What intervals and sets come from: labels that were held out, or the confidence machine."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone

from transduce.app.filling.forecast import as_interval, chosen_by_class, join_guarantees
from transduce.app.filling.machine_fit import MachineFit
from transduce.app.filling.plan import FOLDS
from transduce.conformal import ClassShares, ConformalTransducer
from transduce.conformal.calibrated import CalibratedTable
from transduce.conformal.calibrated_fit import CalibratedFit
from transduce.conformal.calibrated_guarantee import bound_together
from transduce.conformal.designs.propensity import EstimatedOdds
from transduce.conformal.protocol import Calibrated
from transduce.core.guarantee import CountBound, Guarantee
from transduce.core.types import AnyArray, Array, Mask, Rows
from transduce.core.validation import class_codes


@dataclass(frozen=True, eq=False)
class HeldOutPredictions:
    """Probabilities of classes by one fit, at labels that it did not see and at unlabelled rows."""

    held: Array  # (c, n_classes)
    unlabelled: Array  # (m, n_classes)
    labels: AnyArray  # (l,) numbers of the classes of all labels
    held_labels: AnyArray  # (c,) of those that were held out
    classes: AnyArray  # (n_classes,)


@dataclass(frozen=True, eq=False)
class ClassCoverage:
    """How many hidden labels of each class were judged, and how many of them their sets hold."""

    classes: AnyArray  # (k,)
    judged: AnyArray  # (k,)
    covered: AnyArray  # (k,)


class IntervalModel(Protocol):
    """What intervals or sets come from, once it is fitted."""

    @property
    def estimator(self) -> Any:
        """The fitted estimator, which saw the rows in an order of its own."""

    @property
    def calibrated(self) -> Calibrated:
        """What it answers about its intervals or sets."""

    @property
    def holds_out(self) -> bool:
        """Whether labels were held out, which calibrate."""

    @property
    def held_out_fit(self) -> CalibratedFit | None:
        """The fit that labels were held out from; None if none was."""

    @property
    def estimated_odds(self) -> EstimatedOdds | None:
        """The odds that rows have no label, where labels are weighed by them."""

    def guarantee_with_others(
        self,
        others: Guarantee,
        calibration_of_others: CalibratedTable,
        level: float,
        certainty: float,
        tolerance: float | None,
    ) -> Guarantee:
        """Return what is guaranteed at a level of the rows of the fit and of others together."""

    def cover_classes(
        self,
        X: Rows,
        labels: AnyArray,
        missing: Mask,
        seed: int,
    ) -> ClassCoverage:
        """Return how often sets hold each class at labels that were hidden."""

    def predict_held_out(
        self, refit: Callable[[], HeldOutPredictions | None]
    ) -> HeldOutPredictions | None:
        """Return predictions at labels that the fit did not see.

        `refit` hides some if the fit saw all of them.
        """


@dataclass(frozen=True, eq=False)
class HeldOutModel:
    """Intervals or sets that labels held out from the fit calibrate."""

    estimator: ConformalTransducer
    confidence: float
    holds_out: bool = True

    @property
    def calibrated(self) -> CalibratedFit:
        """What it answers about its intervals or sets."""
        return self.estimator.calibrated

    @property
    def held_out_fit(self) -> CalibratedFit | None:
        """The fit that labels were held out from; None if they were too few."""
        if self.calibrated.held_out.any():
            return self.calibrated
        return None

    @property
    def estimated_odds(self) -> EstimatedOdds | None:
        """The odds that rows have no label, where labels are weighed by them."""
        return self.estimator.estimated_odds_

    def guarantee_with_others(
        self,
        others: Guarantee,
        calibration_of_others: CalibratedTable,
        level: float,
        certainty: float,
        tolerance: float | None,
    ) -> Guarantee:
        """Return what is guaranteed at a level of the rows of the fit and of others together."""
        inside = self.calibrated.guarantee_at(level, certainty, tolerance)
        outside = self._bound_outside(calibration_of_others, level, certainty)
        wrong = self._bound_wrong(calibration_of_others, certainty, tolerance)
        return join_guarantees(inside, others, outside, wrong)

    def _bound_outside(
        self, others: CalibratedTable, level: float, certainty: float
    ) -> CountBound | None:
        """Return a bound on the rows outside among the rows of the fit and the others together."""
        law = self.calibrated.law_at(level)
        law_of_others = others.law(level)
        if law is None or law_of_others is None:
            return None
        return bound_together(law, law_of_others, certainty)

    def _bound_wrong(
        self, others: CalibratedTable, certainty: float, tolerance: float | None
    ) -> CountBound | None:
        """Return a bound on the wrong answers among the rows of the fit and the others together."""
        calibrated = self.calibrated
        if calibrated.table.classes is None and tolerance is None:
            return None
        table = replace(calibrated.table, tolerance=tolerance)
        wrong = table.wrong_answers(calibrated.second)
        return wrong.bound_with(others.wrong_answers(None), certainty)

    def cover_classes(
        self,
        X: Rows,
        labels: AnyArray,
        missing: Mask,
        seed: int,
    ) -> ClassCoverage:
        """Return how often sets hold each class at the calibration labels."""
        table = self.estimator.calibrated.table
        judged, covered = table.covered_by_class(self.confidence)
        return ClassCoverage(np.asarray(table.classes), judged, covered)

    def predict_held_out(
        self, refit: Callable[[], HeldOutPredictions | None]
    ) -> HeldOutPredictions | None:
        """Return predictions at the calibration labels, which the fit did not see."""
        calibrated = self.estimator.calibrated
        held = calibrated.table.calibration
        unlabelled = calibrated.table.unlabelled
        classes = calibrated.problem.classes
        if held.probabilities is None or unlabelled.probabilities is None or classes is None:
            return None
        codes = calibrated.problem.codes
        return HeldOutPredictions(
            held.probabilities[held.given],
            unlabelled.probabilities[unlabelled.given],
            codes,
            codes[calibrated.held_out][held.given],
            classes,
        )


def _promise_of_machine(machine: Any, level: float, *, by_class: bool) -> Guarantee:
    """Return what a fitted machine guarantees at a level; labels may be chosen by their class."""
    guarantee = as_interval(machine.guarantee_at(level))
    if by_class:
        return chosen_by_class(guarantee)
    return guarantee


@dataclass(frozen=True, eq=False)
class MachineModel:
    """Intervals or sets of the confidence machine, for which no label was held out."""

    estimator: Any
    calibrated: Calibrated
    holds_out: bool = False
    held_out_fit: CalibratedFit | None = None
    estimated_odds: EstimatedOdds | None = None

    @classmethod
    def of(cls, machine: Any, shares: ClassShares | None) -> MachineModel:
        """Return a fitted machine; shares of classes if labels were chosen by their class."""
        promise = partial(_promise_of_machine, machine, by_class=shares is not None)
        return cls(machine, MachineFit(promise))

    def guarantee_with_others(
        self,
        others: Guarantee,
        calibration_of_others: CalibratedTable,
        level: float,
        certainty: float,
        tolerance: float | None,
    ) -> Guarantee:
        """Return what is guaranteed of all rows, each by itself: their number is not bounded."""
        return replace(others, outside=None, wrong=None)

    def cover_classes(
        self,
        X: Rows,
        labels: AnyArray,
        missing: Mask,
        seed: int,
    ) -> ClassCoverage:
        """Return how often sets hold each class at labels that were hidden in turn."""
        labelled = np.flatnonzero(~missing)
        classes = np.asarray(self.estimator.classes_)
        codes = class_codes(labels[labelled], classes)
        covered = self._cover_labels(X[labelled], labels[labelled], seed)
        return ClassCoverage(
            classes,
            np.bincount(codes, minlength=len(classes)),
            np.bincount(codes[covered], minlength=len(classes)),
        )

    def _cover_labels(self, X: Rows, labels: AnyArray, seed: int) -> Mask:
        """Return whether the set of each label holds it while it is hidden, shape (l,)."""
        fold = np.random.default_rng(seed).permutation(len(labels)) % FOLDS
        covered = np.zeros(len(labels), dtype=bool)
        for number in range(FOLDS):
            hidden = np.flatnonzero(fold == number)
            if len(set(labels[fold != number].tolist())) < 2 or not len(hidden):
                continue
            shown = labels.copy()
            shown[hidden] = None
            with warnings.catch_warnings(action="ignore"):
                answer = clone(self.estimator).fit(X, shown).answer_
            codes = class_codes(labels[hidden], answer.classes)
            in_set = answer.label_sets[np.arange(len(hidden)), np.maximum(codes, 0)]
            unseen = answer.unseen
            if unseen is None:
                unseen = np.zeros(len(hidden), dtype=bool)
            covered[hidden] = np.where(codes >= 0, in_set, unseen)
        return covered

    def predict_held_out(
        self, refit: Callable[[], HeldOutPredictions | None]
    ) -> HeldOutPredictions | None:
        """Return predictions of another fit at labels hidden from it.

        The machine itself saw all of them.
        """
        return refit()
