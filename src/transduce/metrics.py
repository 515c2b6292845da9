"""Error against the share of predictions that are rejected for lack of confidence."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_consistent_length, column_or_1d

from transduce.core.checks import as_floats
from transduce.core.sample import missing_mask
from transduce.core.types import AnyArray, Array, Labels

__all__ = ["area_under_rejection_curve", "precision_recall_break_even", "rejection_curve"]


def _read(y_true: Labels, y_pred: Labels, confidence: npt.ArrayLike) -> tuple[AnyArray, Array]:
    """Return which predictions are wrong and the confidences, checked."""
    check_consistent_length(y_true, y_pred, confidence)
    truth = column_or_1d(y_true)
    answers = column_or_1d(y_pred)
    if len(truth) == 0:
        raise ValueError("There is no prediction to reject: give at least one row.")
    if missing_mask(truth).any():
        raise ValueError("y_true is missing at some rows: leave these out.")
    if isinstance(truth[0], str) != isinstance(answers[0], str):
        raise ValueError(
            "y_true and y_pred hold labels of different kinds, text and not: make them alike."
        )
    try:
        sureness = as_floats("confidence", column_or_1d(confidence))
    except ValueError:
        raise ValueError("confidence must be numbers, one for every row.") from None
    if np.isnan(sureness).any():
        raise ValueError("confidence holds NaN: give a number for every row.")
    return np.asarray(truth != answers), sureness


def rejection_curve(
    y_true: Labels, y_pred: Labels, confidence: npt.ArrayLike
) -> tuple[Array, Array]:
    """Return the error among the predictions kept, as rows are rejected.

    More and more of the least confident predictions are rejected.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (m,)
        True labels, and predictions.
    confidence : array-like of shape (m,)
        How certain each prediction is; any increasing function of it gives the same curve.

    Returns
    -------
    errors, rejected : array of shape (k,)
        Share of wrong predictions among those kept, and of rows rejected, from 0 on; rows of equal
        confidence go together.

    Examples
    --------
    >>> from transduce.metrics import rejection_curve
    >>> rejection_curve([0, 1, 1, 0], [0, 1, 0, 1], [0.9, 0.8, 0.3, 0.3])
    (array([0.5, 0. , 0. ]), array([0.  , 0.5 , 0.75]))
    """
    wrong, sureness = _read(y_true, y_pred, confidence)
    levels, group = np.unique(sureness, return_inverse=True)
    sizes = np.bincount(group, minlength=len(levels))
    mistakes = np.bincount(group, weights=wrong, minlength=len(levels))
    kept = np.cumsum(sizes[::-1])[::-1]
    left = np.cumsum(mistakes[::-1])[::-1]
    return left / kept, 1.0 - kept / len(wrong)


def area_under_rejection_curve(y_true: Labels, y_pred: Labels, confidence: npt.ArrayLike) -> float:
    """Return the mean error among the predictions kept; smaller is better.

    The mean is over 0, 1, ..., m - 1 rejected rows.

    Parameters
    ----------
    y_true, y_pred, confidence : array-like of shape (m,)
        As in `rejection_curve`; rows of equal confidence are rejected in random order.

    Returns
    -------
    float
        About the error rate if confidence says nothing; far below it if mistakes are the least
        certain predictions.

    Examples
    --------
    >>> from transduce.metrics import area_under_rejection_curve
    >>> # (1/4 + 0 + 0 + 0) / 4
    >>> area_under_rejection_curve([0, 1, 1, 0], [0, 1, 1, 1], [0.9, 0.8, 0.7, 0.1])
    0.0625
    """
    wrong, sureness = _read(y_true, y_pred, confidence)
    _, group = np.unique(sureness, return_inverse=True)
    rate = np.bincount(group, weights=wrong) / np.bincount(group)
    expected = rate[np.sort(group)]  # of each row in the order of rejection, ties being averaged
    left = np.cumsum(expected[::-1])  # among the 1, 2, ..., m surest
    return float(np.mean(left / np.arange(1, len(wrong) + 1)))


def precision_recall_break_even(y_true: npt.ArrayLike, score: npt.ArrayLike) -> float:
    """Return precision at the cut-off where it equals recall.

    As many rows are picked there as there are positives.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True or 1 for positives; False, 0 or -1 for the others.
    score : array-like of shape (n,)
        The larger, the more likely a positive.

    Returns
    -------
    float
        From 0 to 1; where scores are equal at the cut-off, the mean over all orders of them.

    Examples
    --------
    >>> from transduce.metrics import precision_recall_break_even
    >>> # Of the first two, one is positive.
    >>> precision_recall_break_even([1, 1, 0, 0], [0.9, 0.2, 0.8, 0.1])
    0.5
    """
    truth = np.asarray(y_true)
    score = as_floats("score", score)
    if truth.ndim != 1 or score.shape != truth.shape:
        raise ValueError(
            f"Give one score for each label; got shapes {truth.shape} and {score.shape}."
        )
    if truth.dtype.kind not in "biuf" or not np.isin(truth, (-1, 0, 1)).all():
        raise ValueError(
            "y_true must be true or false, 1 or 0, or 1 or -1: give for example y == 'spam'."
        )
    if np.isnan(score).any():
        raise ValueError(
            "score contains NaN: leave out rows that were not reached, or give them the lowest."
        )
    positive = truth > 0
    count = int(positive.sum())
    if count == 0:
        raise ValueError("No row is positive: the break-even point is not defined.")
    cutoff = np.partition(score, len(score) - count)[len(score) - count]
    above = score > cutoff
    level = score == cutoff
    share = (count - int(above.sum())) / int(level.sum())
    return float((positive[above].sum() + share * positive[level].sum()) / count)
