"""A nonconformity measure of the user's own, in the full form: no label is set aside.

Complete the sample with a candidate label at one unlabelled row and let the user's function score
all its rows: the p-value is the share of rows that score at least as high as that row. Rows come in
an order that their contents decide, so any function that answers the same twice treats them alike.
Of copies of a row the least score counts for all.

*Numbers.* Labels are rounded before they are scored, to a unit that the completed sample sets, so
there are as many candidates as there are units. Rounded rows are as exchangeable as rows are, and
the p-value of a label is that of the rounded one: regions of whole units are exact. The one row
whose label is farthest from the others, if by more than half of their range, is infinitely
nonconforming: so there is an end to the candidates.

*Classes.* As in `residual_lines`, the only row of its class is infinitely nonconforming.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from transduce.core.answer import Regions
from transduce.core.computing import stage
from transduce.core.ranks import p_values
from transduce.core.row_order import number_rows
from transduce.core.types import AnyArray, Array
from transduce.methods.confidence_machine.machine import ClassPValues
from transduce.methods.confidence_machine.parabolas import LINE
from transduce.methods.confidence_machine.tuned_machine import RowAnswers

Nonconformity = Callable[[Array, AnyArray], Array]

MOST_CANDIDATES = 10_000
UNITS = 64  # at least so many in the range of the labels
FAR = 0.5  # of the range of the other labels


class Candidate(NamedTuple):
    """A rounded label, and the labels between which it stands for them."""

    label: float
    low: float
    high: float
    unit: float


class Counts(NamedTuple):
    """How the last row of a completed sample stands among the others."""

    above: int
    tied: int


def count_scores(scores: Array) -> Counts:
    """Return how many rows score higher than the last, and how many of the others as high."""
    own_score = scores[-1]
    above = int(np.sum(scores > own_score))
    tied = int(np.sum(scores == own_score)) - 1
    return Counts(above, tied)


def unit_of(labels: Array) -> float:
    """Return the power of two that the range of labels (n,) holds 64 to 128 times; 0 of equal ones.

    >>> unit_of(np.array([0.0, 100.0]))
    1.0
    """
    spread = float(labels.max() - labels.min())
    if spread <= 0.0:
        return 0.0
    return float(2.0 ** np.floor(np.log2(spread / UNITS)))


def farthest_label(labels: Array) -> int | None:
    """Return the place of the label that is far from all others (n,), or None.

    >>> farthest_label(np.array([1.0, 2.0, 9.0])), farthest_label(np.arange(5.0))
    (2, None)
    """
    order = np.argsort(labels, kind="stable")
    lowest, second, second_last, highest = labels[order[[0, 1, -2, -1]]]
    gap_below = second - lowest
    gap_above = highest - second_last
    range_without_lowest = highest - second
    range_without_highest = second_last - lowest
    # The larger gap, as a share of the range of the others; multiplied out, since that may be 0.
    excess = gap_above * range_without_lowest - gap_below * range_without_highest
    if excess > 0.0 and gap_above > FAR * range_without_highest:
        return int(order[-1])
    if excess < 0.0 and gap_below > FAR * range_without_lowest:
        return int(order[0])
    return None


def round_labels(labels: Array, unit: float) -> Array:
    """Return numbers rounded to a unit; as they are if it is 0."""
    if unit == 0.0:
        return labels
    return unit * np.round(labels / unit)


@dataclass(frozen=True)
class ScoredMachine:
    """Labelled rows, and a function that scores the samples completed with one more."""

    function: Nonconformity
    X_l: Array
    labels: AnyArray  # (l,) numbers, or classes
    resolution: float | None  # the unit of numbers; None for that of `unit_of`
    form = "own"
    jitter = 0.0

    @classmethod
    def build(
        cls,
        function: Nonconformity,
        X_l: Array,
        labels: AnyArray,
        resolution: float | None = None,
    ) -> ScoredMachine:
        """Return the machine, or raise a ValueError if the function does not answer the same."""
        machine = cls(function, X_l, labels, resolution)
        if not np.array_equal(machine.score(X_l, labels), machine.score(X_l, labels)):
            raise ValueError(
                "The function given as residual scores the same rows differently when it is called "
                "again: fix the random_state of what it fits."
            )
        return machine

    @property
    def n_labelled(self) -> int:
        """Number of labelled rows."""
        return len(self.labels)

    def score(self, X: Array, labels: AnyArray) -> Array:
        """Return the user's scores of rows (n, d), which are the same in any order of the rows."""
        label_numbers = np.unique(labels, return_inverse=True)[1].ravel()
        numbers = number_rows(np.column_stack([X, label_numbers]))
        order = np.argsort(numbers, kind="stable")
        scores = np.empty(len(labels))
        scores[order] = self._call(X[order], labels[order])
        # Which of two copies is which nobody knows, so they share a score.
        least = np.full(len(labels), np.inf)
        np.minimum.at(least, numbers, scores)
        return least[numbers]

    def _call(self, X: Array, labels: AnyArray) -> Array:
        """Return what the function says, or raise a ValueError if it is not a number a row."""
        scores = np.asarray(self.function(X, labels))
        is_number = scores.dtype.kind in "biuf"
        if scores.shape != labels.shape or not is_number or np.isnan(scores).any():
            raise ValueError(
                "The function given as residual must return one number for each row, larger where "
                f"the row is stranger: for {len(labels)} rows it returned {scores!r}."
            )
        return scores.astype(float)

    def _score_with(self, row: Array, label: Any, labels: AnyArray) -> Array:
        """Return the scores of the sample completed with a row, which is the last."""
        return self.score(np.vstack([self.X_l, row]), np.append(labels, label))

    # -------------------------------------------------------------------------------- numbers

    def _count(self, row: Array, label: float, unit: float) -> Counts:
        """Return how a row with a rounded label stands among the labelled rows, also rounded."""
        labels = round_labels(self.labels, unit)
        far = farthest_label(np.append(labels, label))
        if far == self.n_labelled:
            return Counts(0, 0)
        scores = self._score_with(row, label, labels)
        if far is not None:
            scores[far] = np.inf
        return count_scores(scores)

    def _unit_at(self, label: float) -> float:
        """Return the unit of the sample completed with a label."""
        if self.resolution is not None:
            return self.resolution
        return unit_of(np.append(self.labels, label))

    def predict(self, rows: Array) -> Array:
        """Return the values at rows, shape (m,)."""
        return self.answer_rows(rows, rank=0).values

    def label_p_values(self, rows: Array, labels: Array, tau: Array) -> Array:
        """Return the p-value of a label for each row, (m,); ties count with weight `tau` (m,)."""
        p = np.empty(len(rows))
        for j, label in enumerate(labels):
            unit = self._unit_at(label)
            counts = self._count(rows[j], float(round_labels(label, unit)), unit)
            p[j] = p_values(counts.above, counts.tied, self.n_labelled, tau[j])
        return p

    def _candidates(self) -> list[Candidate]:
        """Return all candidates that are not far, in ascending order."""
        unit = self._unit_at(self.labels[0])
        if unit == 0.0:
            only = float(self.labels[0])
            return [Candidate(only, only, only, unit)]
        if self.resolution is not None:
            return self._candidates_within(unit, -np.inf, np.inf)
        # Farther out the range of the completed sample takes the next unit.
        top = 2 * UNITS * unit
        start = float(self.labels.max()) - top
        stop = float(self.labels.min()) + top
        return [
            *self._candidates_within(2 * unit, -np.inf, start),
            *self._candidates_within(unit, start, stop),
            *self._candidates_within(2 * unit, stop, np.inf),
        ]

    def _candidates_within(self, unit: float, start: float, stop: float) -> list[Candidate]:
        """Return the candidates of one unit between two labels."""
        labels = round_labels(self.labels, unit)
        # Who is farther from the others than their range is far from all.
        spread = labels.max() - labels.min()
        lowest = max(labels.min() - spread, start)
        highest = min(labels.max() + spread, stop)
        n = (highest - lowest) / unit
        if n > MOST_CANDIDATES:
            raise ValueError(
                f"resolution={unit:g} makes {n:,.0f} candidates for each row, and at most "
                f"{MOST_CANDIDATES:,} are scored: take a larger one."
            )
        candidates = []
        for number in np.arange(np.round(lowest / unit), np.round(highest / unit) + 1):
            low = max((number - 0.5) * unit, start)
            high = min((number + 0.5) * unit, stop)
            label = float(number * unit)
            far = farthest_label(np.append(labels, label))
            if low < high and far != self.n_labelled:
                candidates.append(Candidate(label, low, high, unit))
        return candidates

    def answer_rows(self, rows: Array, *, rank: int) -> RowAnswers:
        """Return values and regions of rows: the candidates that are not too nonconforming."""
        if len(rows) == 0:
            return RowAnswers(np.empty(0), Regions.from_intervals(np.empty((0, 2))))
        candidates = self._candidates()
        ends = np.array([[candidate.low, candidate.high] for candidate in candidates])
        values = np.empty(len(rows))
        pieces = []
        with stage("scores of completed samples") as report:
            for j, row in enumerate(rows):
                counts = [
                    self._count(row, candidate.label, candidate.unit) for candidate in candidates
                ]
                n_at_least = np.array([count.above + count.tied for count in counts])
                best = np.flatnonzero(n_at_least == n_at_least.max())
                middle = best[len(best) // 2]
                values[j] = candidates[middle].label
                kept = n_at_least >= rank
                kept[middle] = True
                pieces.append(ends[kept])
                report((j + 1) / len(rows))
        if rank == 0 or self.n_labelled == 1:
            return RowAnswers(values, Regions.from_intervals(np.tile(LINE, (len(rows), 1))))
        n_pieces = np.array([len(of_row) for of_row in pieces])
        return RowAnswers(values, Regions.from_touching(np.concatenate(pieces), n_pieces))

    # ------------------------------------------------------------------------------- classes

    def class_p_values(self, rows: Array, codes: AnyArray, tau: Array) -> ClassPValues:
        """Return the p-values of every class at rows; codes (l,), ties count with weight `tau`."""
        classes, first = np.unique(codes, return_index=True)
        shape = (len(rows), len(classes))
        overall = np.empty(shape)
        within = np.empty(shape)
        own_scores = np.empty(shape)
        with stage("scores of completed samples") as report:
            for j, row in enumerate(rows):
                for code in classes:
                    scores = self._score_with(row, self.labels[first[code]], self.labels)
                    completed = np.append(codes, code)
                    is_only = np.bincount(completed)[completed] == 1
                    own_scores[j, code] = scores[-1]
                    scores[is_only] = np.inf
                    counts = count_scores(scores)
                    overall[j, code] = p_values(counts.above, counts.tied, len(codes), tau[j])
                    of_class = scores[completed == code]
                    counts = count_scores(of_class)
                    n_of_class = len(of_class) - 1
                    within[j, code] = p_values(counts.above, counts.tied, n_of_class, tau[j])
                report((j + 1) / len(rows))
        return ClassPValues(overall, within, -own_scores)
