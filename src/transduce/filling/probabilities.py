"""The probability that an answered class is right, calibrated by answers at hidden labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import expit, logit

from transduce.core.types import Array

_EDGE = 1e-6  # probabilities are kept this far from 0 and 1


def right_probability(folds: pd.DataFrame, stated: Array | None, n: int) -> Array:
    """Return the probability that each answer is right.

    Parameters
    ----------
    folds : pandas.DataFrame
        ``true``, ``answered`` and, where there is one, ``probability`` of the answered class, at labels that were
        hidden in turn.
    stated : array of shape (n,) or None
        Probabilities that the method states for its answers.
    n : int
        Number of answers.

    Returns
    -------
    array of shape (n,)
        The stated log-odds, stretched and shifted such that they fit the hidden labels (Platt 1999), with one unit of
        prior weight on leaving them as they are. Where nothing is stated, the share of right answers.

    Examples
    --------
    >>> folds = pd.DataFrame({"true": list("aabb" * 25), "answered": list("aaba" * 25), "probability": [0.95] * 100})
    >>> right_probability(folds, np.array([0.95]), 1).round(2)
    array([0.75])
    """
    if not len(folds):
        return np.full(n, np.nan) if stated is None else stated
    right = (folds["true"].astype(str) == folds["answered"].astype(str)).to_numpy(dtype=float)
    if stated is None or "probability" not in folds:
        return np.full(n, (right.sum() + 1.0) / (len(right) + 2.0))
    odds = _log_odds(folds["probability"].to_numpy(dtype=float))

    def loss(line: Array) -> float:
        z = line[0] * odds + line[1]
        prior = 0.5 * ((line[0] - 1.0) ** 2 + line[1] ** 2)
        return float(np.sum(np.logaddexp(0.0, z) - right * z) + prior)

    stretch, shift = minimize(loss, np.array([1.0, 0.0]), method="BFGS").x
    return np.asarray(expit(max(float(stretch), 0.0) * _log_odds(stated) + shift), dtype=float)


def _log_odds(probabilities: Array) -> Array:
    return np.asarray(logit(np.clip(probabilities, _EDGE, 1.0 - _EDGE)), dtype=float)
