"""Calibration and unlabelled rows side by side after the one fit, from which the answers at any level are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from transduce.conformal.categories import CategoryMiscoverage
from transduce.conformal.means import class_shares, powered_mean
from transduce.conformal.miscoverage import ClassMiscoverage, Miscoverage
from transduce.conformal.ranking import Ranking, class_p_values, intervals, label_sets
from transduce.conformal.scores import CLASS_SCORES, NUMBER_SCORES, choose_score, resolution, rounded
from transduce.conformal.weighing import Weighing
from transduce.core.regions import Regions
from transduce.core.types import AnyArray, Array, Mask
from transduce.model_selection.hidden_labels import Reply

Law = Miscoverage | ClassMiscoverage | CategoryMiscoverage


@dataclass(frozen=True, eq=False)
class Calibrated:
    """Answers and labels of calibration rows, answers at unlabelled rows, and their scores."""

    calibration: Reply
    unlabelled: Reply
    labels: AnyArray  # (c,) calibration labels: numbers, or numbers of classes
    class_sizes: tuple[int, ...]  # number of labels of every class, held out or not; empty for numbers
    by_class: bool  # whether every class is compared with its own calibration rows
    nonconformity: str  # the score
    measures: tuple[Array, Array]  # numbers
    ties: tuple[Array, Array]  # what decides between equal scores
    unit: float  # scores (of numbers: distances) that differ by less are equal
    weights: Weighing | None = None  # how much each row weighs, and with which it is compared

    @classmethod
    def build(
        cls,
        found: Reply,
        labels: AnyArray,
        shown: AnyArray,
        *,
        class_sizes: tuple[int, ...],
        by_class: bool,
        wanted: str,
        ties: Array,
    ) -> Calibrated:
        """Score all rows in the same way, and split them into calibration and unlabelled rows.

        Shapes: labels, shown (c,), ties (c + m,).
        """
        n_classes, c = len(class_sizes), len(labels)
        name = choose_score(wanted, found, n_classes) if len(found.values) else wanted
        if not len(found.values):
            measure = np.ones((0, n_classes)) if n_classes else np.ones(0)
            unit = 0.0
        elif n_classes:
            measure = CLASS_SCORES[name].measure(found, n_classes)
            unit = resolution(measure)
            measure = rounded(measure, unit)
            measure[:, np.bincount(shown, minlength=n_classes) == 0] = np.inf
        else:
            measure = NUMBER_SCORES[name].measure(found, 0)
            unit = resolution(found.values, np.asarray(shown, dtype=float))
        first, rest = np.arange(c), np.arange(c, len(found.values))
        return cls(
            found.at(first),
            found.at(rest),
            labels,
            class_sizes,
            by_class,
            name,
            (measure[first], measure[rest]),
            (ties[first], ties[rest]),
            unit,
        )

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 for numbers."""
        return len(self.class_sizes)

    @property
    def scores(self) -> Array:
        """Score of every calibration row at its label; NaN where the estimator has no answer."""
        if self.n_classes:
            scores = self.measures[0][np.arange(len(self.labels)), self.labels]
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                scores = rounded(np.abs(self.labels - self.calibration.values), self.unit) / self.measures[0]
        return np.where(self.calibration.given, scores, np.nan)

    @property
    def weighing(self) -> Weighing:
        """How much each row weighs."""
        return self.weights or Weighing.equal(len(self.labels), len(self.unlabelled.values))

    def rankings(self) -> list[tuple[Mask, Mask, Ranking]]:
        """Return which calibration rows are compared with which unlabelled ones, and their ranking.

        Only rows at which the estimator has an answer are among them.
        """
        found, scores = self.weighing, self.scores
        return [
            (
                own,
                at,
                Ranking(
                    scores[own],
                    self.ties[0][own],
                    self.ties[1][at],
                    found.calibration[own],
                    found.unlabelled[at],
                    found.factor,
                ),
            )
            for own, at in found.parts(self.calibration.given, self.unlabelled.given)
        ]

    @property
    def n_unseen(self) -> int:
        """Calibration labels of classes that no visible row has."""
        return int(np.isinf(self.scores[self.calibration.given]).sum()) if self.n_classes else 0

    def law(self, confidence: float) -> Law | None:
        """Return the distribution of the number outside at a level; None if rows weigh differently."""
        if self.weights is not None and not self.weights.exchangeable:
            return None
        if self.weights is not None and self.weights.cells is not None:
            parts = [(int(own.sum()), int(at.sum())) for own, at, _ in self.rankings()]
            return CategoryMiscoverage.at(confidence, [m for _, m in parts], [c for c, _ in parts])
        m = int(self.unlabelled.given.sum())
        codes = self.labels[self.calibration.given]
        if self.by_class:
            sizes = [int(np.sum(codes == y)) for y in range(self.n_classes)]
            m = len(self.unlabelled.values)  # those without an answer are never outside
            return ClassMiscoverage.at(
                confidence, n_unlabelled=m, n_labelled=self.class_sizes, n_calibration=sizes
            )
        return Miscoverage.at(confidence, n_unlabelled=m, n_calibration=len(codes))

    # --------------------------------------------------------------------------------------------- answers

    def regions(self, confidence: float) -> Regions:
        """Return the intervals at a level; the whole line where the estimator has no answer."""
        ends = np.tile([-np.inf, np.inf], (len(self.unlabelled.values), 1))
        if not self.weighing.supports(confidence):
            return Regions.from_intervals(ends)
        for _, at, ranking in self.rankings():
            values, scales = self.unlabelled.values[at], self.measures[1][at]
            ends[at] = intervals(ranking, values, scales, confidence, self.unit).hull()
        return Regions.from_intervals(ends)

    def p_values(self) -> Array:
        """Return p-values of all classes, 1 where the estimator has no answer."""
        p = np.ones((len(self.unlabelled.values), self.n_classes))
        for own, at, ranking in self.rankings():
            p[at] = class_p_values(ranking, self.measures[1][at], self.labels[own] if self.by_class else None)
        return p

    def sets(self, p: Array, confidence: float) -> Mask:
        """Return the sets of classes at a level."""
        if not self.weighing.supports(confidence):
            return np.ones(p.shape, dtype=bool)
        return label_sets(p, confidence) | ~self.unlabelled.given[:, None]

    def n_unbounded(self, confidence: float) -> int:
        """Return at how many rows with an answer nothing is ruled out, whatever the calibration labels are."""
        return sum(int(ranking.unbounded(confidence).sum()) for _, _, ranking in self.rankings())

    # --------------------------------------------------------------------------------------- mean and selection

    def mean(self, confidence: float, classes: AnyArray | None, shown: AnyArray) -> pd.DataFrame:
        """Return the mean of the missing labels, or the share of every class with an interval.

        Rows without an answer take the mean of the visible labels, `shown`.
        """
        parts = (self.unlabelled, self.calibration)
        if classes is None:
            filled, known = (
                np.where(part.given, part.values, np.mean(shown)).astype(float) for part in parts
            )
            labels = np.asarray(self.labels, dtype=float)
            return powered_mean(filled, known, labels, ["mean"], self.weighing.for_means)
        shares, fallback = [], np.bincount(shown, minlength=len(classes)) / len(shown)
        for part in parts:
            said = part.probabilities
            if said is None:
                said = (part.values[:, None] == np.arange(len(classes))).astype(float)
            shares.append(np.where(part.given[:, None], said, fallback))
        truth = (self.labels[:, None] == np.arange(len(classes))).astype(float)
        found = powered_mean(shares[0], shares[1], truth, classes, self.weighing.for_means)
        exact = self.weighing.for_means is None
        return class_shares(found, self.labels if exact else None, len(self.unlabelled.values), confidence)

    def looks(self, wanted: dict[str, Any]) -> tuple[Array, Array, Mask]:
        """Return how much unlabelled and calibration rows look wanted, and which calibration labels are wanted.

        Returns shape unlabelled, calibration (m,), good (c,).
        """
        looks, good = [], np.ones(len(self.labels), dtype=bool)
        for part, measure in zip((self.unlabelled, self.calibration), self.measures[::-1], strict=True):
            if "label" in wanted:
                looks.append(-measure[:, wanted["label"]])
            elif "correct" in wanted:
                looks.append(-measure[np.arange(len(measure)), np.maximum(part.values, 0)])
            else:
                room = [part.values - wanted["above"]] if "above" in wanted else []
                room += [wanted["below"] - part.values] if "below" in wanted else []
                looks.append(np.min(room, axis=0) / measure)
        if "label" in wanted:
            good = self.labels == wanted["label"]
        elif "correct" in wanted:
            good = self.labels == self.calibration.values
        good &= self.labels > wanted.get("above", -np.inf)
        good &= self.labels < wanted.get("below", np.inf)
        return looks[0], looks[1], good
