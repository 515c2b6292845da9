"""Probabilities from scores: the factor before the softmax that fits known classes best."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from transduce.core.types import AnyArray, Array


def fit_temperature(scores: Array, codes: AnyArray) -> float:
    """Return the factor that makes the softmax of scores the best probabilities for known classes.

    Shapes: scores (l, n_classes), codes (l,).
    """
    n, n_classes = scores.shape
    target = np.full((n, n_classes), 1.0 / (n + n_classes))
    target[np.arange(n), codes] += n / (n + n_classes)

    def loss(log_factor: float) -> float:
        return -float(np.sum(target * log_softmax(np.exp(log_factor) * scores, axis=1)))

    return float(np.exp(minimize_scalar(loss, bounds=(-5.0, 7.0), method="bounded").x))
