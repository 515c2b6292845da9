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

    Shapes: unlabelled (m,) or (m, q), calibration, labels (c,) or (c, q), weights (c,).

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

    Shapes: codes (c,).
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
