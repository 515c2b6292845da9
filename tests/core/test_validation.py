"""Plain arrays are read without scikit-learn's checks, and with the same result."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from transduce import (
    BayesianTransducer,
    ConformalTransducer,
    RidgeConfidenceClassifier,
    RidgeConfidenceMachine,
    TransductiveGPClassifier,
    TransductiveGPRegressor,
    TransductiveRidge,
    TransductiveRidgeClassifier,
)
from transduce.core.validation import read_rows

FEATURES = np.random.default_rng(0).normal(size=(30, 3)).round(2)
NUMBERS = np.where(np.arange(30) < 20, FEATURES[:, 0].round(1), np.nan)
CLASSES = np.where(np.arange(30) < 20, np.where(FEATURES[:, 0] > 0, "up", "down"), None)


def fitted(X):
    estimator = RidgeConfidenceMachine()
    read_rows(estimator, X, reset=True)
    return estimator


def test_a_plain_array_comes_back_as_it_is():
    X = np.ones((3, 2))
    estimator = RidgeConfidenceMachine()
    assert read_rows(estimator, X, reset=True) is X
    assert estimator.n_features_in_ == 2
    assert read_rows(estimator, X[:1], reset=False).shape == (1, 2)


@pytest.mark.parametrize(
    "rows",
    [
        np.ones((1, 3)),
        np.ones((0, 2)),
        np.ones(2),
        np.full((1, 2), np.nan),
        np.full((1, 2), np.inf),
    ],
)
def test_an_array_that_does_not_fit_is_refused(rows):
    with pytest.raises(ValueError, match=r"features|minimum of 1|2D|NaN|infinity"):
        read_rows(fitted(np.ones((3, 2))), rows, reset=False)


def test_numbers_whose_sum_overflows_are_finite():
    rows = np.full((4, 2), 1e308)
    np.testing.assert_array_equal(read_rows(fitted(rows), rows, reset=False), rows)


def test_names_of_features_are_remembered():
    estimator = fitted(pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}))
    with pytest.warns(UserWarning, match="valid feature names"):
        read_rows(estimator, np.ones((1, 2)), reset=False)


@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (TransductiveRidge(), NUMBERS),
        (TransductiveRidgeClassifier(), CLASSES),
        (RidgeConfidenceMachine(), NUMBERS),
        (RidgeConfidenceClassifier(), CLASSES),
        (TransductiveGPRegressor(n_restarts=0, random_state=0), NUMBERS),
        (TransductiveGPClassifier(n_restarts=0), CLASSES),
        (BayesianTransducer(n_balls=2, random_state=0), CLASSES),
        (ConformalTransducer(TransductiveRidge(), confidence=0.8, random_state=0), NUMBERS),
    ],
)
def test_sparse_features_are_answered_like_dense_ones(estimator, y):
    dense = clone(estimator).fit(FEATURES, y)
    sparse = clone(estimator).fit(csr_array(FEATURES), y)
    np.testing.assert_array_equal(sparse.transduction_, dense.transduction_)
    new_rows = FEATURES[:3] + 0.5
    np.testing.assert_array_equal(sparse.predict(csr_array(new_rows)), dense.predict(new_rows))


def test_a_sparse_matrix_that_is_too_large_to_be_dense_is_refused():
    X = csr_array((100_000, 100_000))
    y = np.full(100_000, np.nan)
    y[:5] = np.arange(5.0)
    with pytest.raises(ValueError, match=r"dense: .* takes 75 GiB.*TruncatedSVD"):
        TransductiveRidge().fit(X, y)
