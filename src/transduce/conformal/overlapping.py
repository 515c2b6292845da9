r"""Thresholds that hold within every category of several columns at once.

A row belongs to one category of each column, so that categories of several columns overlap.
Let ``f_i`` be the vector of indicators of the categories of row i, and ``S_i`` its score.
With the label of a test row at its true value, its score ``S`` joins the c calibration scores, and
quantile regression on the indicators fits the completed sample (Gibbs, Cherian, Candès 2023)::

    minimise over b   sum_i loss(S_i - f_i'b) + loss(S - f'b),   loss(u) = max(p u, (p - 1) u),

p the confidence. The test row is *inside* if ``S <= f'b`` for every minimiser b.

**It holds.** Multipliers ``e_i`` of the dual lie between ``p - 1`` and p, and ``sum_i e_i f_i =
0``: within each category they sum to 0. By strict complementarity a row is outside exactly if its
multiplier is p in every dual solution. Of the n rows of a category in the completed sample, k of
which are outside, ``0 = sum e_i >= p k - (1 - p)(n - k)``: at most ``(1 - p) n`` rows are outside.
Which rows are outside does not depend on the order of the rows, and the test row is equally likely
to be any of those of its category, if rows were labelled at random: it is outside with probability
at most ``1 - p``, within each category of each column.

**One linear program.** Let ``V(e)`` be the largest ``sum_i e_i S_i`` of the calibration rows with
``sum_i e_i f_i = -e f``: concave, and linear in pieces. The multiplier of the test row maximises
``V(e) + e S``. It is p in every solution exactly if S exceeds minus the left slope of V at p, so
that

    threshold(f) = -V'(p-),

which depends on the test row by its categories alone: rows of the same categories share it. The
slope is ``f'b`` of the dual solution b at e just below p. There is no solution if a category of the
row has too few calibration labels: then nothing is ruled out. Where categories do not overlap this
is the usual threshold within each; rows whose score is infinite have the multiplier p.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from transduce.conformal.designs.rows import OverlappingCategories
from transduce.core.types import Array

# How far below p the slope of V is taken. Slopes change where sums of p and 1 are equal: for a
# confidence of up to four digits not within 1e-4 of each other. The guarantee loses (1 - p) times
# this at most.
BELOW = 1e-7
PRECISION = 1e-10  # of the linear program; scores are scaled to at most 1
CLOSE = 1e-9  # thresholds closer than this to a score, beside the largest, are that score


def find_thresholds(
    scores: Array,
    calibration: OverlappingCategories,
    unlabelled: OverlappingCategories,
    confidence: float,
    never_labelled: OverlappingCategories | None = None,
) -> Array:
    """Return the largest score that is inside at each unlabelled row, shape (m,).

    Parameters
    ----------
    scores : array of shape (c,)
        Scores of the calibration rows, which may be infinite.
    calibration, unlabelled : OverlappingCategories
        The categories of the c calibration rows and of the m unlabelled ones.
    confidence : float
        The probability with which a row is inside, within each category of each column.
    never_labelled : OverlappingCategories, optional
        Those of rows that were drawn to calibrate and have no label: each counts as the worst.

    Returns
    -------
    array of shape (m,)
        The threshold of each row; infinite where its categories have too few calibration labels.
    """
    features = calibration.indicators()
    infinite = np.isinf(scores)
    worst = features[infinite].sum(axis=0)
    if never_labelled is not None:
        worst = worst + never_labelled.indicators().sum(axis=0)
    profiles, profile_of_row = np.unique(unlabelled.codes, axis=0, return_inverse=True)
    wanted = OverlappingCategories(profiles, unlabelled.names).indicators()
    program = QuantileProgram(scores[~infinite], features[~infinite], worst, confidence)
    thresholds = np.array([program.find_threshold(row) for row in wanted], dtype=float)
    return thresholds[profile_of_row.reshape(-1)]


@dataclass(frozen=True, eq=False)
class QuantileProgram:
    """The linear program whose dual solution is a quantile regression on indicators."""

    scores: Array  # (c,) all finite
    features: Array  # (c, d)
    worst: Array  # (d,) sum of the features of rows whose score is infinite
    confidence: float

    def find_threshold(self, features: Array) -> float:
        """Return the largest score that is inside at a row with these features (d,)."""
        p = self.confidence
        size = float(np.abs(self.scores).max(initial=0.0)) or 1.0
        if len(self.scores) == 0:
            return np.inf
        solution = linprog(
            -self.scores / size,
            A_eq=self.features.T,
            b_eq=-(p - BELOW) * features - p * self.worst,
            bounds=(p - 1.0, p),
            method="highs-ds",
            options={
                "primal_feasibility_tolerance": PRECISION,
                "dual_feasibility_tolerance": PRECISION,
            },
        )
        if solution.x is None:  # no multipliers are possible: a category has too few labels
            return np.inf
        threshold = -float(features @ solution.eqlin.marginals)
        return self._settle(threshold, size)

    def _settle(self, threshold: float, size: float) -> float:
        """Return a scaled threshold in units of the scores: a score, or a hair more."""
        nearest = self.scores[np.abs(self.scores / size - threshold).argmin()]
        if abs(nearest / size - threshold) <= CLOSE:
            return float(nearest)
        return (threshold + CLOSE) * size
