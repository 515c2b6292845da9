"""Scores that tie up to rounding: with ties="random" intervals miss no more often than they say."""

from __future__ import annotations

import numpy as np
from scipy.stats import binom
from sklearn.neighbors import KNeighborsRegressor

from transduce import ConformalTransducer


def test_labels_on_a_grid():
    """Labels on a grid of 0.1 and one neighbour: scores tie all the time, and differ by rounding."""
    n, outside, levels = 1000, 0, 0
    for seed in range(n):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(61, 2))
        truth = np.round(X[:, 0] + 0.5 * rng.normal(size=61), 1)
        y = np.append(truth[:60], np.nan)
        model = ConformalTransducer(
            KNeighborsRegressor(1),
            calibration=29,
            ties="random",
            random_state=seed,
            test_exchangeability=False,
        ).fit(X, y)
        outside += not model.answer_.regions.contains(truth[60:])[0]
        levels += not model.answer_at(29 / 30).regions.contains(truth[60:])[0]
    assert binom.ppf(1e-4, n, 0.1) <= outside <= binom.ppf(1 - 1e-4, n, 0.1)
    assert levels <= binom.ppf(1 - 1e-4, n, 1 / 30)
