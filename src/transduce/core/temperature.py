"""Probabilities from scores: the factor before the softmax that fits known classes best."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from transduce.core.types import AnyArray, Array


def fit_temperature(scores: Array, codes: AnyArray) -> float:
    """Return the factor that makes the softmax of scores the best probabilities for known classes.

    Parameters
    ----------
    scores : array of shape (l, n_classes)
        Scores that were not fitted to their own labels.
    codes : array of shape (l,)
        Class number of each row.

    Returns
    -------
    float
        Positive. Minimises the log-loss, with one row's worth of every class added to the targets (Platt 1999), so that
        few labels do not make for certainty.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[1.0, -1.0], [0.5, -0.5], [-0.5, 0.5], [-1.0, 1.0]])
    >>> fit_temperature(scores, np.array([0, 0, 1, 1])) > fit_temperature(scores, np.array([0, 1, 0, 1]))
    True
    """
    n, n_classes = scores.shape
    target = np.full((n, n_classes), 1.0 / (n + n_classes))
    target[np.arange(n), codes] += n / (n + n_classes)

    def loss(log_factor: float) -> float:
        return -float(np.sum(target * log_softmax(np.exp(log_factor) * scores, axis=1)))

    return float(np.exp(minimize_scalar(loss, bounds=(-5.0, 7.0), method="bounded").x))
