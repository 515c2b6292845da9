"""Plain arrays are read without scikit-learn's checks, and with the same result."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from transduce import RidgeConfidenceMachine
from transduce.core.validation import read_rows


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
