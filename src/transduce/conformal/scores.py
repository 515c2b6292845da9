"""Calibration by calibration labels: how many to hide, how nonconforming each label is, and what that says of unlabelled rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from transduce.core.ranks import calibration_rank, fewest_calibration
from transduce.core.regions import Regions
from transduce.core.types import AnyArray, Array, Mask

SCORES = ("auto", "absolute", "scaled", "probability", "margin", "zero_one")


def calibration_number(n_labelled: int, confidence: float, *, by_class: bool = False) -> int:
    """Return how many labels to hide: half of a few, a smaller share of many, none if they cannot support the level.

    Parameters
    ----------
    n_labelled : int
    confidence : float
    by_class : bool, default=False
        Whether every class is calibrated by itself: then half.

    Returns
    -------
    int
        About ``min(l / 2, 5 sqrt(l))``, but no fewer than the level takes, if at least a third of the labels stays
        visible; and such that ``(c + 1)(1 - confidence)`` is whole, where that is possible. The number must not
        depend on the labels themselves, or the guarantee would not be exact.

    Examples
    --------
    >>> calibration_number(64, 0.9), calibration_number(1000, 0.9), calibration_number(14, 0.9),
    calibration_number(10, 0.9) (29, 149, 9, 0)
    """
    least = fewest_calibration(confidence)
    if n_labelled - least < max(2, n_labelled // 3):
        return 0
    wanted = n_labelled // 2 if by_class else int(min(n_labelled / 2, 5 * np.sqrt(n_labelled)))
    exceeding = int(np.floor((1.0 - confidence + 1e-12) * (wanted + 1)))  # c + 1 - k, rounded down
    whole = int(np.ceil(exceeding / (1.0 - confidence) - 1e-9)) - 1
    return max(whole, least)


def labels_needed(confidence: float) -> int:
    """Return the fewest labels of which `calibration_number` hides some.

    Examples
    --------
    >>> labels_needed(0.9), labels_needed(0.5)
    (13, 3)
    """
    n_labelled = fewest_calibration(confidence) + 2
    while calibration_number(n_labelled, confidence) == 0:
        n_labelled += 1
    return n_labelled


def margins(scores: Array) -> Array:
    """Return by how much each class falls short of the best of the others, shape (n, n_classes); negative if it wins.

    Examples
    --------
    >>> margins(np.array([[1.0, 3.0, 2.0]]))
    array([[ 2., -1.,  1.]])
    """
    if scores.shape[1] < 2:
        return -scores
    ranked = np.sort(scores, axis=1)
    best_other = np.where(scores == ranked[:, -1:], ranked[:, -2:-1], ranked[:, -1:])
    return best_other - scores


@dataclass(frozen=True, eq=False)
class Scored:
    """Calibration rows and unlabelled rows, held against each other; the part that is the same for every level.

    Parameters
    ----------
    hidden : array of shape (c,)
        Score of each calibration row at its label: how nonconforming it is.
    calibration_ties, unlabelled_ties : array of shape (c,) and (m,)
        Which of two equal scores counts as the larger one; all zero to count both as at least as large.
    """

    hidden: Array
    calibration_ties: Array
    unlabelled_ties: Array

    def limits(self, rank: int) -> tuple[float, Mask]:
        """Return the `rank`-th smallest calibration score, and whether an equal score of an unlabelled row is inside."""
        if rank > len(self.hidden):
            return np.inf, np.ones(len(self.unlabelled_ties), dtype=bool)
        place = np.lexsort([self.calibration_ties, self.hidden])[rank - 1]
        return float(self.hidden[place]), self.unlabelled_ties <= self.calibration_ties[place]

    def counts(self, scores: Array, among: Mask | None = None) -> AnyArray:
        """Return how many calibration scores are at least as large as each unlabelled row's, shape (m,)."""
        among = np.ones(len(self.hidden), dtype=bool) if among is None else among
        hidden, ties = self.hidden[among], self.calibration_ties[among]
        order = np.lexsort([ties, hidden])
        hidden, ties = hidden[order], ties[order]
        first, last = (np.searchsorted(hidden, scores, side=side) for side in ("left", "right"))
        if not self.unlabelled_ties.any():  # equal scores count as at least as large
            return len(hidden) - first
        # Among equal scores, those whose tie-breaker is at least the unlabelled row's.
        at_least = [
            int(np.searchsorted(ties[a:b], tie, side="left"))
            for a, b, tie in zip(first, last, self.unlabelled_ties, strict=True)
        ]
        return len(hidden) - first - np.array(at_least, dtype=int)


def intervals(scored: Scored, values: Array, spreads: Array, confidence: float) -> Regions:
    """Return ``value ± threshold * spread`` at the unlabelled rows; the whole line if the calibration labels are too few.

    Parameters
    ----------
    scored : Scored
    values, spreads : array of shape (m,)
    confidence : float

    Returns
    -------
    Regions of m rows
        Ends are moved outward by rounding errors where an equal score is inside, inward where it is not.
    """
    limit, closed = scored.limits(calibration_rank(confidence, len(scored.hidden)))
    half = np.full(len(values), np.inf)
    if np.isfinite(limit):
        with np.errstate(over="ignore"):
            rounding = 4.0 * np.finfo(float).eps * np.maximum(np.abs(values), limit * spreads)
            half = np.maximum(limit * spreads + np.where(closed, rounding, -rounding), 0.0)
            ends = np.column_stack([values - half, values + half])
        return Regions.from_intervals(ends)
    return Regions.from_intervals(np.column_stack([-half, half]))


def class_p_values(
    scored: Scored, table: Array, calibration_codes: AnyArray | None = None
) -> tuple[Array, AnyArray]:
    """Return the p-value of every class at the unlabelled rows, and how many calibration labels each class is held against.

    Parameters
    ----------
    scored : Scored
    table : array of shape (m, n_classes)
        Score of every class at every unlabelled row.
    calibration_codes : integer array of shape (c,), optional
        Classes of the calibration rows, if every class is to be held against its own.

    Returns
    -------
    p_values : array of shape (m, n_classes)
        ``(1 + number of calibration scores at least as large) / (c + 1)``.
    sizes : integer array of shape (n_classes,)
    """
    m, n_classes = table.shape
    p, sizes = np.ones((m, n_classes)), np.full(n_classes, len(scored.hidden))
    for y in range(n_classes):
        among = None if calibration_codes is None else calibration_codes == y
        sizes[y] = len(scored.hidden) if among is None else int(among.sum())
        p[:, y] = (1.0 + scored.counts(table[:, y], among)) / (sizes[y] + 1.0)
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


def powered_mean(
    unlabelled: Array, hidden: Array, labels: Array, confidence: float, columns: Any = None
) -> pd.DataFrame:
    """Return the mean of the unlabelled labels with an interval, by prediction-powered inference.

    Parameters
    ----------
    unlabelled : array of shape (m,) or (m, q)
        Predictions at the unlabelled rows.
    hidden, labels : array of shape (c,) or (c, q)
        Predictions at the calibration rows, and their labels.
    confidence : float
        Of the interval.
    columns : sequence, optional
        Names of the q columns.

    Returns
    -------
    pandas.DataFrame
        Columns estimate, lower, upper, and plain, the mean of the predictions alone.

    Notes
    -----
    ``mean(unlabelled) + mean(labels - hidden)``: what the predictions say, plus what they were off by on average where
    labels are known. Its error is the difference of two means of residuals, over the hidden and over the unlabelled
    rows, so its standard error is ``s sqrt(1/c + 1/m)`` with s the standard deviation of the calibration residuals;
    the interval takes Student's t with c - 1 degrees of freedom. That is asymptotic: right for many calibration
    labels, whatever the predictions.

    References
    ----------
    Angelopoulos, Bates, Fannjiang, Jordan, Zrnic (2023). Prediction-powered inference. Science 382.

    Examples
    --------
    >>> powered_mean(np.array([1.0, 3.0]), np.array([2.0, 2.0]), np.array([2.0, 3.0]), 0.9).round(2)
       estimate  lower  upper  plain
    0       2.5  -1.96   6.96    2.0
    """
    unlabelled, hidden, labels = (
        part[:, None] if part.ndim == 1 else part for part in (unlabelled, hidden, labels)
    )
    c, m = len(hidden), len(unlabelled)
    residuals = labels - hidden
    with np.errstate(over="ignore", invalid="ignore"):
        plain = unlabelled.mean(axis=0) if m else np.full(unlabelled.shape[1], np.nan)
        estimate = plain + (residuals.mean(axis=0) if c else np.nan)
        half = np.full(len(plain), np.inf)
        if c > 1 and m:
            spread = residuals.std(axis=0, ddof=1) * np.sqrt(1.0 / c + 1.0 / m)
            half = float(student.ppf(0.5 + confidence / 2.0, c - 1)) * spread
    table = {"estimate": estimate, "lower": estimate - half, "upper": estimate + half, "plain": plain}
    return pd.DataFrame(table, index=columns)
