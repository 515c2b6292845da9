"""What intervals and sets come from: labels that were held out, or the confidence machine."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd
from sklearn.base import clone

from transduce.app.filling.forecast import as_interval, chosen_by_class, join_guarantees
from transduce.app.filling.plan import FOLDS
from transduce.conformal import ClassShares, ConformalTransducer
from transduce.conformal.calibrated import CalibratedTable, bound_together
from transduce.conformal.designs import Design
from transduce.conformal.miscoverage import Law
from transduce.core.guarantee import CountBound, Guarantee
from transduce.core.types import AnyArray, Array, Mask
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
    def holds_out(self) -> bool:
        """Whether labels were held out, which calibrate."""

    @property
    def design(self) -> Design | None:
        """How the labels came about, as far as the estimator makes use of it."""

    @property
    def groups(self) -> AnyArray | None:
        """The group of each row, which no fold may split; None if there are none."""

    @property
    def miscoverage(self) -> Law | None:
        """The distribution of the number of rows outside; None if there is none."""

    def weigh_labels(self, rows: AnyArray) -> Array:
        """Return how much each labelled row stands for the unlabelled ones, shape (k,)."""

    def guarantee_at(self, certainty: float, tolerance: float | None) -> Guarantee:
        """Return what is guaranteed of the rows of the fit."""

    def guarantee_with_others(
        self,
        others: Guarantee,
        calibration_of_others: CalibratedTable,
        certainty: float,
        tolerance: float | None,
    ) -> Guarantee:
        """Return what is guaranteed of the rows of the fit and of other rows together."""

    def widths_at_factors(self) -> pd.DataFrame | None:
        """Return how wide intervals get if labels depend on the value; None if that is unknown."""

    def cover_classes(self, X: Any, labels: AnyArray, missing: Mask, seed: int) -> ClassCoverage:
        """Return how often sets hold each class at labels that were hidden."""

    def predict_held_out(
        self, refit: Callable[[], HeldOutPredictions | None]
    ) -> HeldOutPredictions | None:
        """Return predictions at labels that the fit did not see; `refit` hides some if it saw all."""


@dataclass(frozen=True, eq=False)
class HeldOutModel:
    """Intervals or sets that labels held out from the fit calibrate."""

    estimator: ConformalTransducer
    confidence: float
    holds_out: bool = True

    @property
    def design(self) -> Design | None:
        """How the labels came about."""
        return self.estimator.labels

    @property
    def groups(self) -> AnyArray | None:
        """The group of each row, which no fold may split; None if there are none."""
        return self.estimator.labels.together

    @property
    def miscoverage(self) -> Law | None:
        """The distribution of the number of rows outside; None if there is none."""
        return self.estimator.miscoverage_

    def weigh_labels(self, rows: AnyArray) -> Array:
        """Return how much each labelled row stands for the unlabelled ones, shape (k,)."""
        estimated = self.estimator.estimated_odds_
        if estimated is None:
            return self.estimator.labels.measure(rows)
        return estimated.odds[rows]

    def guarantee_at(self, certainty: float, tolerance: float | None) -> Guarantee:
        """Return what is guaranteed of the rows of the fit."""
        return self.estimator.guarantee_at(certainty=certainty, tolerance=tolerance)

    def guarantee_with_others(
        self,
        others: Guarantee,
        calibration_of_others: CalibratedTable,
        certainty: float,
        tolerance: float | None,
    ) -> Guarantee:
        """Return what is guaranteed of the rows of the fit and of other rows together."""
        inside = self.guarantee_at(certainty, tolerance)
        outside = self._bound_outside(calibration_of_others, certainty)
        wrong = self._bound_wrong(calibration_of_others, certainty, tolerance)
        return join_guarantees(inside, others, outside, wrong)

    def _bound_outside(self, others: CalibratedTable, certainty: float) -> CountBound | None:
        """Return a bound on the rows outside among the rows of the fit and the others together."""
        law = self.estimator.calibrated.table.law(self.confidence)
        law_of_others = others.law(self.confidence)
        if law is None or law_of_others is None:
            return None
        return bound_together(law, law_of_others, certainty)

    def _bound_wrong(
        self, others: CalibratedTable, certainty: float, tolerance: float | None
    ) -> CountBound | None:
        """Return a bound on the wrong answers among the rows of the fit and the others together."""
        calibrated = self.estimator.calibrated
        if calibrated.table.classes is None and tolerance is None:
            return None
        table = replace(calibrated.table, tolerance=tolerance)
        wrong = table.wrong_answers(calibrated.second)
        return wrong.bound_with(others.wrong_answers(None), certainty)

    def widths_at_factors(self) -> pd.DataFrame | None:
        """Return how wide intervals get if labels depend on the value by factors."""
        own = float(self.estimator.labels.sensitivity)
        return self.estimator.widths_at(sorted({1.0, 1.5, 2.0, own}))

    def cover_classes(self, X: Any, labels: AnyArray, missing: Mask, seed: int) -> ClassCoverage:
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


@dataclass(frozen=True, eq=False)
class MachineModel:
    """Intervals or sets of the confidence machine, for which no label was held out."""

    estimator: Any
    shares: ClassShares | None  # of the classes, where labels were chosen by their class
    holds_out: bool = False
    design: Design | None = None
    groups: AnyArray | None = None
    miscoverage: Law | None = None

    def weigh_labels(self, rows: AnyArray) -> Array:
        """Return that every labelled row counts the same, shape (k,)."""
        return np.ones(len(rows))

    def guarantee_at(self, certainty: float, tolerance: float | None) -> Guarantee:
        """Return what is guaranteed of the rows of the fit, each by itself."""
        guarantee = as_interval(self.estimator.guarantee_)
        if self.shares is None:
            return guarantee
        return chosen_by_class(guarantee)

    def guarantee_with_others(
        self,
        others: Guarantee,
        calibration_of_others: CalibratedTable,
        certainty: float,
        tolerance: float | None,
    ) -> Guarantee:
        """Return what is guaranteed of all rows, each by itself: their number is not bounded."""
        return replace(others, outside=None, wrong=None)

    def widths_at_factors(self) -> pd.DataFrame | None:
        """Return None: no label calibrates."""
        return None

    def cover_classes(self, X: Any, labels: AnyArray, missing: Mask, seed: int) -> ClassCoverage:
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

    def _cover_labels(self, X: Any, labels: AnyArray, seed: int) -> Mask:
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
        """Return predictions of another fit at labels hidden from it: the machine saw all of them."""
        return refit()
