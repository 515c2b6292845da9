"""What a random part of all rows says of the rest: counts in a finite urn, means, and shares of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import hypergeom

from transduce.core.types import AnyArray, Array


def urn_bound(n_wrong: int, n_calibration: int, n_unlabelled: int, certainty: float) -> int:
    """Return how many of the unlabelled rows are marked (wrong, say) at most, given how many calibration rows are.

    Notes
    -----
    If T of all ``c + m`` answers are wrong, the number among c rows drawn at random is hypergeometric. The bound is the
    largest T for which so few wrong answers, or fewer, have a probability above ``1 - certainty``, less those that were
    seen. It fails with a probability of at most ``1 - certainty``, whatever T: nothing is approximated.
    """
    total = n_calibration + n_unlabelled
    low, high = (
        n_wrong,
        n_wrong + n_unlabelled,
    )  # the more are wrong, the less likely so few of them are drawn
    while low < high:
        middle = (low + high + 1) // 2
        possible = hypergeom.cdf(n_wrong, total, middle, n_calibration) > 1.0 - certainty
        low, high = (middle, high) if possible else (low, middle - 1)
    return low - n_wrong


def urn_interval(n_marked: int, n_calibration: int, n_unlabelled: int, confidence: float) -> tuple[int, int]:
    """Return between which numbers of the unlabelled rows are marked, given how many of the calibration rows are."""
    sure = (1.0 + confidence) / 2.0
    others = urn_bound(n_calibration - n_marked, n_calibration, n_unlabelled, sure)
    return n_unlabelled - others, urn_bound(n_marked, n_calibration, n_unlabelled, sure)


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
