"""Calibration and unlabelled rows side by side after the fit: how they compare at any level.

What follows from that is in modules of its own: `calibrated_answer` (intervals and sets),
`calibrated_guarantee` (what holds), `too_few` (why nothing does), `wrong_answers` and
`missing_mean`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from transduce.conformal import (
    calibrated_answer,
    calibrated_guarantee,
    class_coverage,
    missing_mean,
    too_few,
    wrong_answers,
)
from transduce.conformal.designs import CLASSES, ESTIMATED, GROUPS, Strata, Weights
from transduce.conformal.designs.held_out import effective_needed
from transduce.conformal.miscoverage import CategoryMiscoverage, ClassMiscoverage, Law, Miscoverage
from transduce.conformal.overlapping import find_thresholds
from transduce.conformal.scores import SLACK, Scoring, WeightedRanks
from transduce.core import assumptions
from transduce.core.answer import Answer
from transduce.core.guarantee import CountBound, Guarantee
from transduce.core.types import AnyArray, Array, Mask
from transduce.model_selection.fit_and_predict import RawPrediction


class Comparison(NamedTuple):
    """Calibration rows, the unlabelled rows that are compared with them, and their ranks."""

    calibration: Mask  # (c,)
    unlabelled: Mask  # (m,)
    ranks: WeightedRanks


@dataclass(frozen=True, eq=False)
class CalibratedTable:
    """Predictions and labels of calibration rows, predictions at unlabelled rows, and weights."""

    calibration: RawPrediction
    unlabelled: RawPrediction
    labels: AnyArray  # (c,) calibration labels: numbers, or numbers of classes
    classes: AnyArray | None  # (n_classes,) the classes; None for numbers
    sizes: tuple[int, ...]  # labels of every class, held out or not; one number for numbers
    by_class: bool  # whether every class is compared with its own calibration rows
    tolerance: float | None  # numbers: by how much a prediction may be off
    scoring: Scoring
    ties: tuple[Array, Array]  # what decides between equal scores
    weights: Weights  # how much each row weighs, and with which it is compared

    # ---- how rows compare

    @cached_property
    def scores(self) -> Array:
        """Scores of the calibration rows at their labels (c,); NaN where there is no prediction."""
        return self.scoring.at_labels(self.calibration, self.labels)

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """Which calibration rows are compared with which unlabelled ones: all, or by category."""
        return self._compare_within(self.weights.strata)

    @cached_property
    def comparisons_within_columns(self) -> list[list[Comparison]]:
        """The same within each of several columns whose categories overlap."""
        assert self.weights.overlapping is not None
        calibration, unlabelled = self.weights.overlapping
        comparisons = []
        for column in range(len(calibration.names)):
            strata = Strata(calibration.codes[:, column], unlabelled.codes[:, column])
            comparisons.append(self._compare_within(strata))
        return comparisons

    def _compare_within(self, strata: Strata | None) -> list[Comparison]:
        """Return the comparisons of rows with a prediction, within categories if there are any."""
        known = self.calibration.given
        asked = self.unlabelled.given
        if strata is None:
            return [self._compare(known, asked)]
        comparisons = []
        for code in np.unique(strata.unlabelled):
            of_calibration = known & (strata.calibration == code)
            of_unlabelled = asked & (strata.unlabelled == code)
            comparisons.append(self._compare(of_calibration, of_unlabelled))
        return comparisons

    def _compare(self, calibration: Mask, unlabelled: Mask) -> Comparison:
        ranks = WeightedRanks(
            scores=self.scores[calibration],
            calibration_ties=self.ties[0][calibration],
            unlabelled_ties=self.ties[1][unlabelled],
            weights=self.weights.calibration[calibration],
            unlabelled_weights=self.weights.unlabelled[unlabelled],
            factor=self.weights.factor,
            n_empty=self.count_empty(unlabelled),
        )
        return Comparison(calibration, unlabelled, ranks)

    def thresholds_within_columns(self, confidence: float) -> Array:
        """Return the largest score of each unlabelled row that is inside; (m,).

        Rows are compared within several columns.
        """
        # Several questions ask for the same level, and each takes a linear program for every
        # combination of categories.
        if confidence not in self._known_thresholds:
            self._known_thresholds[confidence] = self._find_thresholds(confidence)
        return self._known_thresholds[confidence]

    @cached_property
    def _known_thresholds(self) -> dict[float, Array]:
        """Thresholds within several columns, by the level."""
        return {}

    def _find_thresholds(self, confidence: float) -> Array:
        assert self.weights.overlapping is not None
        calibration, unlabelled = self.weights.overlapping
        known = self.calibration.given
        asked = self.unlabelled.given
        thresholds = np.full(len(asked), np.inf)
        thresholds[asked] = find_thresholds(
            self.scores[known],
            calibration[known],
            unlabelled[asked],
            confidence,
            never_labelled=unlabelled[asked & ~self.covered],
        )
        return thresholds

    # ---- what kind of rows these are

    @property
    def covered(self) -> Mask:
        """The unlabelled rows with a prediction that were not drawn, shape (m,).

        A guarantee is about these.
        """
        if self.weights.empty is None:
            return self.unlabelled.given
        return self.unlabelled.given & ~self.weights.empty

    def count_empty(self, rows: Mask) -> int:
        """Return how many rows were drawn and have no label.

        They are counted among the given unlabelled rows and among rows elsewhere, together.
        """
        drawn = rows & ~self.covered & self.unlabelled.given
        return self.weights.n_empty + int(drawn.sum())

    @property
    def n_empty(self) -> int:
        """How many rows with a prediction were drawn to be labelled and have no label."""
        return self.count_empty(self.unlabelled.given)

    @property
    def n_unseen(self) -> int:
        """How many calibration labels are of classes that no visible row has."""
        if self.classes is None:
            return 0
        return int(np.isinf(self.scores[self.calibration.given]).sum())

    @property
    def exchangeable(self) -> bool:
        """Whether all rows weigh the same and nothing may differ.

        Then the number of rows outside has a known distribution.
        """
        weights = self.weights
        if weights.factor != 1.0 or weights.kind == GROUPS or self.by_shares or self.by_value:
            return False
        return bool(np.all(weights.calibration == 1.0) and np.all(weights.unlabelled == 1.0))

    @property
    def by_value(self) -> bool:
        """Whether labels were chosen by their value: then they tell nothing certain of others."""
        return self.weights.grounds.assumption == assumptions.BY_VALUE

    @property
    def by_shares(self) -> bool:
        """Whether rows are compared with labels of all classes, by given shares of these."""
        return self.weights.shares is not None and not self.by_class

    @property
    def pooled(self) -> bool:
        """Whether the calibration rows are a random part of all rows that have no visible label."""
        return self.exchangeable and self.weights.strata is None and self.weights.kind != CLASSES

    @property
    def estimated(self) -> bool:
        """Whether propensities were estimated, even where all came out the same."""
        rests_on_estimate = self.weights.grounds.assumption == assumptions.ESTIMATE
        return self.weights.kind == ESTIMATED or rests_on_estimate

    # ---- what a level takes

    def supports(self, confidence: float) -> bool:
        """Return whether the labels are worth enough for a level, where weights are estimated."""
        if self.weights.kind != ESTIMATED:
            return True
        return self.effective >= effective_needed(confidence) - 1e-9

    @property
    def effective(self) -> float:
        """How many labels of equal weight the calibration labels are worth.

        This is ``(sum w)^2 / sum w^2``.
        """
        squares = float(np.sum(self.weights.calibration**2))
        if squares <= 0.0:
            return 0.0
        return float(np.sum(self.weights.calibration)) ** 2 / squares

    def n_unbounded(self, confidence: float) -> int:
        """Return at how many rows with a prediction nothing is ruled out.

        This holds whatever the labels are.
        """
        asked = self.unlabelled.given
        if self.weights.overlapping is not None:
            unbounded = np.isinf(self.thresholds_within_columns(confidence))
            return int((unbounded & asked).sum())
        if not self.by_shares:
            return sum(int(part.ranks.unbounded(confidence).sum()) for part in self.comparisons)
        assert self.weights.shares is not None
        counts = np.bincount(self.labels[self.calibration.given], minlength=len(self.sizes))
        smallest_p = float(np.sum(self.weights.shares / (counts + 1.0)))
        if smallest_p > 1.0 - confidence + SLACK:
            return int(asked.sum())
        return 0

    # ---- how many rows are outside

    def law(self, confidence: float) -> Law | None:
        """Return the distribution of the number outside at a level; None if there is none."""
        if self.estimated:
            return None
        if self.by_class and self.n_empty:  # of which class they are is not known
            return None
        return self.law_of_thresholds(confidence)

    def law_of_thresholds(self, confidence: float) -> Law | None:
        """Return how many calibration rows each threshold has, as a distribution.

        It is None if there is no such distribution.
        """
        if not self.exchangeable or self.weights.overlapping is not None:
            return None
        if self.weights.strata is not None:
            parts = []
            for calibration, unlabelled, _ in self.comparisons:
                parts.append(self._law_among(confidence, int(calibration.sum()), unlabelled))
            return CategoryMiscoverage(tuple(parts))
        codes = self.labels[self.calibration.given]
        asked = self.unlabelled.given
        if not self.by_class:
            return self._law_among(confidence, len(codes), asked)
        laws = []
        for code in range(len(self.sizes)):
            laws.append(self._law_among(confidence, int(np.sum(codes == code)), asked))
        n_labelled = self.sizes
        if self.weights.kind == CLASSES:
            n_labelled = ()
        return ClassMiscoverage(
            n_unlabelled=len(self.unlabelled.values),  # without a prediction: never outside
            n_labelled=n_labelled,
            n_calibration=tuple(law.n_calibration for law in laws),
            ranks=tuple(law.rank for law in laws),
        )

    def _law_among(self, confidence: float, n_calibration: int, rows: Mask) -> Miscoverage:
        """Return the distribution of the number outside among rows, compared with some labels."""
        n_all = n_calibration + self.count_empty(rows)
        n_rows = int((rows & self.covered).sum())
        law = Miscoverage.at(confidence, n_unlabelled=n_rows, n_calibration=n_all)
        if law.rank <= n_calibration:
            return law
        # A rank beyond these, of a row that was drawn and has no label, is no threshold: then
        # nothing is outside.
        return replace(law, rank=n_all + 1)

    # ---- what follows from it

    def answer(
        self,
        confidence: float,
        rows: AnyArray,
        index: pd.Index | None = None,
        further: Sequence[float] = (),
    ) -> Answer:
        """Return the predictions with intervals or sets at a level, without a guarantee yet.

        `further` levels have intervals or sets besides.
        """
        return calibrated_answer.make_answer(self, confidence, rows, index, further)

    def guarantee(
        self, confidence: float, certainty: float, second: RawPrediction | None = None
    ) -> Guarantee:
        """Return what is guaranteed at a level; predictions may come from a second fit."""
        return calibrated_guarantee.make_guarantee(self, confidence, certainty, second)

    def shortfall(self, confidence: float) -> str | None:
        """Return a warning where the calibration labels are too few for a level, if they are."""
        return too_few.warn_of_shortfall(self, confidence)

    def mean(self, confidence: float, shown: AnyArray) -> pd.DataFrame:
        """Return the mean of the missing labels, or the shares of the classes.

        `shown` are the visible labels.
        """
        return missing_mean.estimate_mean(self, confidence, shown)

    def wrong_answers(self, second: RawPrediction | None) -> wrong_answers.WrongAnswers:
        """Return what the calibration rows tell of wrong predictions at the unlabelled rows."""
        return wrong_answers.count_wrong(self, second)

    def wrong_by_class(
        self, second: RawPrediction | None, certainty: float
    ) -> tuple[tuple[object, CountBound], ...]:
        """Return a bound on the wrong ones among the rows predicted as each class."""
        return wrong_answers.bound_by_class(self, second, certainty)

    def held_out_p_values(self) -> Array:
        """Return the p-value of each calibration label among the other ones; (c,)."""
        return class_coverage.held_out_p_values(self)

    def covered_by_class(self, confidence: float) -> tuple[AnyArray, AnyArray]:
        """Return how many calibration labels each class has, and how many its sets would hold."""
        return class_coverage.covered_by_class(self, confidence)
