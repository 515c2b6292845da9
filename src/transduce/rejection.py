"""Error against the share of answers that are rejected for want of confidence."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from transduce._typing import AnyArray, Array
from transduce.sample import missing_mask


def _read(y_true: Any, y_pred: Any, confidence: Any) -> tuple[AnyArray, Array]:
    """Return which answers are wrong and the confidences, checked."""
    check_consistent_length(y_true, y_pred, confidence)
    truth, answers = column_or_1d(y_true), column_or_1d(y_pred)
    if len(truth) == 0:
        raise ValueError("There is no answer to reject: give at least one row.")
    if missing_mask(truth).any():
        raise ValueError("y_true is missing at some rows: leave these out.")
    if isinstance(truth[0], str) != isinstance(answers[0], str):
        raise ValueError("y_true and y_pred hold labels of different kinds, text and not: make them alike.")
    try:
        sureness = np.asarray(column_or_1d(confidence), dtype=float)
    except ValueError:
        raise ValueError("confidence must be numbers, one for every row.") from None
    if np.isnan(sureness).any():
        raise ValueError("confidence holds NaN: give a number for every row.")
    return np.asarray(truth != answers), sureness


def rejection_curve(y_true: Any, y_pred: Any, confidence: Any) -> tuple[Array, Array]:
    """Return the error among the answers kept, as more and more of the least confident are rejected.

    Parameters
    ----------
    y_true : array-like of shape (m,)
        True labels.
    y_pred : array-like of shape (m,)
        Answers.
    confidence : array-like of shape (m,)
        How sure each answer is; any increasing function of it gives the same curve.

    Returns
    -------
    errors : array of shape (k,)
        Share of wrong answers among those kept.
    rejected : array of shape (k,)
        Share of rows rejected, ascending from 0. Rows of equal confidence are rejected together, so k is the number of
        different confidences.

    Examples
    --------
    >>> from transduce import rejection_curve
    >>> errors, rejected = rejection_curve([0, 1, 1, 0], [0, 1, 0, 1], [0.9, 0.8, 0.3, 0.3])
    >>> errors, rejected
    (array([0.5, 0. , 0. ]), array([0.  , 0.5 , 0.75]))
    """
    wrong, sureness = _read(y_true, y_pred, confidence)
    levels, group = np.unique(sureness, return_inverse=True)
    sizes = np.bincount(group, minlength=len(levels))
    mistakes = np.bincount(group, weights=wrong, minlength=len(levels))
    kept, left = (np.cumsum(counts[::-1])[::-1] for counts in (sizes, mistakes))
    return left / kept, 1.0 - kept / len(wrong)


def area_under_rejection_curve(y_true: Any, y_pred: Any, confidence: Any) -> float:
    """Return the mean error among the answers kept, over all numbers of rejected rows; smaller is better.

    Parameters
    ----------
    y_true : array-like of shape (m,)
        True labels.
    y_pred : array-like of shape (m,)
        Answers.
    confidence : array-like of shape (m,)
        How sure each answer is.

    Returns
    -------
    float
        About the error rate if confidence says nothing; far below it if mistakes are the least sure answers.

    Notes
    -----
    The mean over 0, 1, ..., m - 1 rejected rows. Rows of equal confidence are rejected in random order; the expected
    value is returned.

    Examples
    --------
    >>> from transduce import area_under_rejection_curve
    >>> area_under_rejection_curve([0, 1, 1, 0], [0, 1, 1, 1], [0.9, 0.8, 0.7, 0.1])  # (1/4 + 0 + 0 + 0) / 4
    0.0625
    """
    wrong, sureness = _read(y_true, y_pred, confidence)
    _, group = np.unique(sureness, return_inverse=True)
    sizes = np.bincount(group)
    rate = np.bincount(group, weights=wrong) / sizes
    expected = rate[np.sort(group)]  # of each row in the order of rejection, ties being averaged
    left = np.cumsum(expected[::-1])  # among the 1, 2, ..., m surest
    return float(np.mean(left / np.arange(1, len(wrong) + 1)))
