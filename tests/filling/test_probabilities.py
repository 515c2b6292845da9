"""Probabilities of right answers fit what is seen at hidden labels; rows where no class is usual are called so."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brute
from scipy.special import expit, logit
from scipy.stats import binom
from sklearn.datasets import load_digits

from transduce import fill
from transduce.filling.diagnostics import RightChance


def folds_of(probability, right):
    return pd.DataFrame({"true": "a", "answered": np.where(right, "a", "b"), "probability": probability})


def test_the_line_minimises_the_penalised_loss():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.4, 0.99, 60)
    right = rng.random(60) < p**3

    def loss(line):
        z = line[0] * logit(p) + line[1]
        return np.sum(np.logaddexp(0, z) - right * z) + 0.5 * ((line[0] - 1) ** 2 + line[1] ** 2)

    a, b = brute(loss, ((-3, 3), (-4, 4)), Ns=40)
    np.testing.assert_allclose(
        RightChance.of(folds_of(p, right)).at(p, 60), expit(a * logit(p) + b), atol=1e-3
    )


def test_limits():
    assert np.isnan(RightChance.of(pd.DataFrame({"true": [], "answered": []})).at(None, 2)).all()
    stated = np.array([0.3, 0.8])
    np.testing.assert_array_equal(
        RightChance.of(pd.DataFrame({"true": [], "answered": []})).at(stated, 2), stated
    )
    without = folds_of(0.5, np.arange(8) < 7).drop(columns="probability")
    np.testing.assert_allclose(RightChance.of(without).at(None, 3), 0.8)
    sure = RightChance.of(folds_of(np.ones(50), np.arange(50) < 40)).at(np.ones(1), 1)
    assert sure[0] < 0.9


@pytest.mark.parametrize("method", ["auto", "spectral-graph"])
def test_stated_probabilities_are_those_observed(method):
    """The number of right answers is one that the probabilities allow, also at the rows called unusual."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(y))[:600]
    frame = pd.DataFrame(X[rows]).add_prefix("p")
    truth = y[rows]
    frame["digit"] = pd.Series(truth, dtype=object).where(np.arange(600) < 150, None)
    found = fill(frame, "digit", method=method, confidence=0.8, task="classification").new.iloc[150:]
    right = (found["digit_filled"] == truth[150:]).to_numpy()
    share = found["digit_probability"].mean()
    assert binom.cdf(right.sum(), len(right), share) > 1e-4
    assert binom.sf(right.sum() - 1, len(right), share) > 1e-4
    unusual = (found["digit_status"] == "unusual").to_numpy()
    assert unusual.any()
    assert right[unusual].mean() < right[~unusual].mean()
    if method == "auto":  # the other states no probabilities
        assert found["digit_probability"][unusual].mean() < found["digit_probability"][~unusual].mean()
    assert (found["digit_set"][unusual] == found["digit_filled"][unusual].astype(str)).all()


def test_a_machine_alone_states_the_share_of_right_answers():
    frame = pd.DataFrame({"a": np.random.default_rng(0).normal(size=60)})
    frame["y"] = pd.Series(np.where(frame["a"] > 0, "u", "v"), dtype=object).where(
        np.arange(60) % 2 == 0, None
    )
    found = fill(frame, "y", method="confidence-machine").new.iloc[1::2]
    assert found["y_probability"].between(0.5, 1).all()
    assert found["y_probability"].nunique() == 1
