"""The mean of the missing labels, or the share of every class, from predictions and calibration labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from transduce.conformal.urn import urn_interval
from transduce.core.types import AnyArray, Array


def powered_mean(
    unlabelled: Array, calibration: Array, labels: Array, columns: Any = None, weights: Array | None = None
) -> pd.DataFrame:
    """Return the mean of the missing labels by prediction-powered inference, with its standard error.

    Parameters
    ----------
    unlabelled : array of shape (m,) or (m, q)
        Predictions at the unlabelled rows.
    calibration, labels : array of shape (c,) or (c, q)
        Predictions at the calibration rows, and their labels.
    columns : sequence, optional
        Names of the q columns.
    weights : array of shape (c,), optional
        How far each calibration row stands for the unlabelled ones; the same for all if not given.

    Returns
    -------
    pandas.DataFrame
        Columns estimate, standard_error, and plain, the mean of the predictions alone.

    Notes
    -----
    ``mean(unlabelled) + mean(labels - calibration)``: what the predictions say, plus what they were off by on average
    where labels are known. Its error is the difference of two means of residuals, over the calibration and over the
    unlabelled rows, so its standard error is about ``s sqrt(1/c + 1/m)`` with s the standard deviation of the
    calibration residuals. With weights w the mean of the residuals is weighted, and ``1/c`` becomes
    ``sum(w^2) / sum(w)^2``. There is no interval: whatever the number of labels, heavy tails can hide in the rows that
    were not drawn, so that an interval of finite width has no guarantee: with log-normal labels, one at 90 %
    held the mean in 74 % of trials with 9 calibration labels, and in 81 % with 79.

    References
    ----------
    Angelopoulos, Bates, Fannjiang, Jordan, Zrnic (2023). Prediction-powered inference. Science 382.

    Examples
    --------
    >>> powered_mean(np.array([1.0, 3.0]), np.array([2.0, 2.0]), np.array([2.0, 3.0])).round(2)
       estimate  standard_error  plain
    0       2.5            0.71    2.0
    """
    parts = (part[:, None] if part.ndim == 1 else part for part in (unlabelled, calibration, labels))
    unlabelled, calibration, labels = parts
    c, m = len(calibration), len(unlabelled)
    residuals = labels - calibration
    with np.errstate(over="ignore", invalid="ignore"):
        plain = unlabelled.mean(axis=0) if m else np.full(unlabelled.shape[1], np.nan)
        if weights is None:
            known, share = residuals.mean(axis=0) if c else np.nan, 1.0 / max(c, 1)
        else:
            total = float(weights.sum())
            known = (weights[:, None] * residuals).sum(axis=0) / total if total else np.nan
            share = float(np.sum(weights**2)) / total**2 if total else np.nan
        estimate = plain + known
        error = np.full(len(plain), np.nan)
        if c > 1 and m:
            error = residuals.std(axis=0, ddof=1) * np.sqrt(share + 1.0 / m)
    return pd.DataFrame({"estimate": estimate, "standard_error": error, "plain": plain}, index=columns)


def class_shares(
    estimated: pd.DataFrame, codes: AnyArray | None, n_unlabelled: int, confidence: float
) -> pd.DataFrame:
    """Return shares of classes with an exact interval: calibration rows are a random part of all rows.

    Parameters
    ----------
    estimated : pandas.DataFrame
        As `powered_mean` returns it, a line for every class.
    codes : integer array of shape (c,) or None
        Classes of the calibration rows; None if they are no random part of all rows: then there is no interval.
    n_unlabelled : int
    confidence : float

    Returns
    -------
    pandas.DataFrame
        With lower and upper besides; the estimate is moved into the interval.
    """
    found = estimated.copy()
    if codes is None:
        found["lower"], found["upper"] = np.nan, np.nan
        return found[["estimate", "lower", "upper", "standard_error", "plain"]]
    ends = [
        urn_interval(int(np.sum(codes == code)), len(codes), n_unlabelled, confidence)
        for code in range(len(found))
    ]
    bounds = np.array(ends, dtype=float).reshape(-1, 2) / max(n_unlabelled, 1)
    found["lower"], found["upper"] = bounds[:, 0], bounds[:, 1]
    found["estimate"] = np.clip(found["estimate"], found["lower"], found["upper"])
    return found[["estimate", "lower", "upper", "standard_error", "plain"]]
