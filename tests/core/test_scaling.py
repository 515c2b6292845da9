"""The scale of features, and the factor that makes probabilities of scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.brute import far_numbers
from transduce.core.scaling import Scaling, far_rows, fit_temperature
from transduce.model_selection.linear import FeatureScaler

seeds = st.integers(0, 2**32 - 1)


def test_temperature_minimises_the_log_loss():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(500, 3))
    codes = np.array([rng.choice(3, p=np.exp(2 * s) / np.exp(2 * s).sum()) for s in scores])
    assert fit_temperature(scores, codes) == pytest.approx(2.0, abs=0.4)
    assert fit_temperature(scores, rng.integers(0, 3, 500)) < 0.3


@given(seeds)
def test_far_rows_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    column = rng.normal(size=rng.integers(1, 400)) * 10.0 ** rng.integers(-3, 4)
    column[rng.random(len(column)) < rng.choice([0.0, 0.5, 0.97])] = rng.choice([0.0, 7.0])
    for row in rng.integers(0, len(column), size=rng.integers(0, 5)):
        column[row] = rng.choice([1e3, -1e6, 1e30, 1e300])
    np.testing.assert_array_equal(far_rows(column), far_numbers(column))
    order = rng.permutation(len(column))
    np.testing.assert_array_equal(far_rows(column[order]), far_rows(column)[order])


@pytest.mark.parametrize("n", [20, 120, 1000])
@pytest.mark.parametrize("far", [1e3, -1e6, 1e30, 1.7e308])
def test_one_far_row_does_not_set_the_scale(n, far):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 3)) + 5.0
    own = Scaling.fit_apply(X[1:])[0]
    X[0, 1] = far
    scaling, rows = Scaling.fit_apply(X)
    assert np.isfinite(rows).all()
    assert scaling.mean[1] == pytest.approx(own.mean[1])
    assert scaling.scale[1] == pytest.approx(own.scale[1])
    step = FeatureScaler().fit(X)
    np.testing.assert_allclose(step.transform(X), rows, rtol=1e-9)


@pytest.mark.parametrize(
    "column",
    [
        np.r_[1.0, np.zeros(99)],  # a class of one row
        np.r_[np.ones(5), np.zeros(395)],
        np.r_[np.arange(1.0, 6.0), np.zeros(395)],  # amounts, most of them none
        np.random.default_rng(0).exponential(size=400),
        np.random.default_rng(0).lognormal(sigma=2.0, size=400),  # a long tail has no gap
        np.r_[np.random.default_rng(0).normal(size=120), 30.0, 100.0, 300.0, 1000.0],
        np.random.default_rng(0).standard_t(3, size=400),
        np.r_[np.zeros(300), np.full(100, 1e6)],  # two groups
        np.array([3.0, 3.0]),
    ],
)
def test_ordinary_features_have_the_plain_scale(column):
    assert not far_rows(column).any()
    X = np.column_stack([column, np.arange(len(column))])
    scaling = Scaling.fit_apply(X)[0]
    np.testing.assert_allclose(scaling.mean, X.mean(axis=0)[scaling.keep], rtol=1e-12)
    np.testing.assert_allclose(scaling.scale, X.std(axis=0)[scaling.keep], rtol=1e-12)
