"""The break-even point of precision and recall, by which rankings with few positives are judged."""

from __future__ import annotations

from typing import Any

import numpy as np


def precision_recall_break_even(y_true: Any, score: Any) -> float:
    """Return precision at the cut-off where it equals recall: as many rows picked as there are positives.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True or 1 for positives; False, 0 or -1 for the others.
    score : array-like of shape (n,)
        The larger, the more likely a positive.

    Returns
    -------
    float
        From 0 to 1. Rows whose score is equal at the cut-off count in part: it is the mean over all orders of them.

    See Also
    --------
    SpectralGraphTransducer : Ranks all rows by a few labels.

    Examples
    --------
    >>> precision_recall_break_even([1, 1, 0, 0], [0.9, 0.2, 0.8, 0.1])  # of the first two, one is positive
    0.5
    >>> precision_recall_break_even([True, False], [1.0, 1.0])
    0.5
    """
    truth, score = np.asarray(y_true), np.asarray(score, dtype=float)
    if truth.ndim != 1 or score.shape != truth.shape:
        raise ValueError(f"Give one score for each label; got shapes {truth.shape} and {score.shape}.")
    if truth.dtype.kind not in "biuf" or not np.isin(truth, (-1, 0, 1)).all():
        raise ValueError("y_true must be true or false, 1 or 0, or 1 or -1: give for example y == 'spam'.")
    if np.isnan(score).any():
        raise ValueError(
            "score contains NaN: leave out the rows that were not reached, or give them the lowest score."
        )
    positive = truth > 0
    count = int(positive.sum())
    if count == 0:
        raise ValueError("No row is positive: the break-even point is not defined.")
    cutoff = np.partition(score, len(score) - count)[len(score) - count]
    above, level = score > cutoff, score == cutoff
    share = (count - int(above.sum())) / int(level.sum())
    return float((positive[above].sum() + share * positive[level].sum()) / count)
