"""Calibration and unlabelled rows compared by their scores: intervals, p-values, sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transduce.core.ranks import calibration_rank
from transduce.core.regions import Regions
from transduce.core.types import AnyArray, Array, Mask


@dataclass(frozen=True, eq=False)
class Ranking:
    """Scores of the calibration rows, and what decides between equal ones.

    Parameters
    ----------
    scores : array of shape (c,)
        Score of each calibration row at its label.
    calibration_ties, unlabelled_ties : array of shape (c,) and (m,)
        Which of two equal scores counts as the larger one; all zero to count both as at least as large.
    """

    scores: Array
    calibration_ties: Array
    unlabelled_ties: Array

    def limits(self, rank: int) -> tuple[float, Mask]:
        """Return the `rank`-th smallest score, and whether an equal score of each unlabelled row is inside."""
        if rank > len(self.scores):
            return np.inf, np.ones(len(self.unlabelled_ties), dtype=bool)
        place = np.lexsort([self.calibration_ties, self.scores])[rank - 1]
        return float(self.scores[place]), self.unlabelled_ties <= self.calibration_ties[place]

    def counts(self, scores: Array, among: Mask | None = None) -> AnyArray:
        """Return how many calibration scores are at least as large as each unlabelled row's, shape (m,)."""
        among = np.ones(len(self.scores), dtype=bool) if among is None else among
        known, ties = self.scores[among], self.calibration_ties[among]
        order = np.lexsort([ties, known])
        known, ties = known[order], ties[order]
        first, last = (np.searchsorted(known, scores, side=side) for side in ("left", "right"))
        if not self.unlabelled_ties.any():  # equal scores count as at least as large
            return len(known) - first
        # Among equal scores, those whose tie-breaker is at least the unlabelled row's.
        at_least = [
            int(np.searchsorted(ties[a:b], tie, side="left"))
            for a, b, tie in zip(first, last, self.unlabelled_ties, strict=True)
        ]
        return len(known) - first - np.array(at_least, dtype=int)


def intervals(ranking: Ranking, values: Array, scales: Array, confidence: float, unit: float) -> Regions:
    """Return ``value ± threshold * scale`` at the unlabelled rows; the whole line if calibration labels are too few.

    Parameters
    ----------
    ranking : Ranking
        Its scores are distances, rounded to multiples of `unit`, over scales.
    values, scales : array of shape (m,)
    confidence : float
    unit : float
        Distances that differ by less are equal: an end lies half a unit outside of the last distance that is inside, so
        that a label is inside if and only if its rounded distance ranks so.

    Returns
    -------
    Regions of m rows
    """
    limit, closed = ranking.limits(calibration_rank(confidence, len(ranking.scores)))
    half = np.full(len(values), np.inf)
    if not np.isfinite(limit):
        return Regions.from_intervals(np.column_stack([-half, half]))
    with np.errstate(over="ignore", invalid="ignore"):
        half = limit * scales
        if unit > 0.0:
            steps = (
                half / unit
            )  # whole at the row that sets the limit; 1/8 of a unit forgives the product's rounding
            inside = np.where(closed, np.floor(steps + 0.125) + 0.5, np.ceil(steps - 0.125) - 0.5)
            half = np.where(np.isfinite(steps) & (steps < 2.0**50), np.maximum(inside, 0.0) * unit, half)
        ends = np.column_stack([values - half, values + half])
    return Regions.from_intervals(ends)


def class_p_values(
    ranking: Ranking, table: Array, calibration_codes: AnyArray | None = None
) -> tuple[Array, AnyArray]:
    """Return the p-value of every class at the unlabelled rows, and how many calibration labels each rests on.

    Parameters
    ----------
    ranking : Ranking
    table : array of shape (m, n_classes)
        Score of every class at every unlabelled row.
    calibration_codes : integer array of shape (c,), optional
        Classes of the calibration rows, if every class is to be compared with its own.

    Returns
    -------
    p_values : array of shape (m, n_classes)
        ``(1 + number of calibration scores at least as large) / (c + 1)``.
    sizes : integer array of shape (n_classes,)
    """
    m, n_classes = table.shape
    p, sizes = np.ones((m, n_classes)), np.full(n_classes, len(ranking.scores))
    for y in range(n_classes):
        among = None if calibration_codes is None else calibration_codes == y
        sizes[y] = len(ranking.scores) if among is None else int(among.sum())
        p[:, y] = (1.0 + ranking.counts(table[:, y], among)) / (sizes[y] + 1.0)
    return p, sizes


def label_sets(p_values: Array, sizes: AnyArray, confidence: float) -> Mask:
    """Return which classes have a p-value above ``1 - confidence``, in whole numbers.

    Examples
    --------
    >>> label_sets(np.array([[0.1, 0.2]]), np.array([9, 9]), 0.9)
    array([[False,  True]])
    """
    ranks = np.array([size + 1 - calibration_rank(confidence, int(size)) for size in sizes])
    return p_values * (sizes + 1) > ranks + 0.5
