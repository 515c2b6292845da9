"""Guarantees around fits on a device: the same as around fits on the processor."""

from __future__ import annotations

import numpy as np
import pytest

from tests.libraries import ON_PROCESSOR, dispatch, give
from transduce import (
    ConformalTransducer,
    SpectralGraphTransducer,
    TransductiveGPRegressor,
    TransductiveRidge,
)


def problem(n=120):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = X[:, 0] + 0.2 * rng.normal(size=n)
    y[rng.permutation(n)[: n // 2]] = np.nan
    return X, y


@pytest.mark.parametrize("name", ON_PROCESSOR)
@pytest.mark.parametrize(
    "inner",
    [
        TransductiveRidge(width=2.0, ridge=0.1),
        TransductiveGPRegressor(matching=0.0, n_restarts=0, relevance=False),
    ],
)
def test_numbers(name, inner):
    """One number a row comes back to the host, where it is ranked; predictions stay on the device."""
    X, y = problem()
    here = ConformalTransducer(inner, random_state=0).fit(X, y)
    with dispatch():
        there = ConformalTransducer(inner, random_state=0).fit(give(X, name), y)
        assert there.predict(give(X, name)).shape == (120,)
    np.testing.assert_array_equal(there.calibration_rows_, here.calibration_rows_)
    np.testing.assert_allclose(there.transduction_, here.transduction_, atol=1e-5)
    np.testing.assert_allclose(there.answer_.regions.pieces, here.answer_.regions.pieces, atol=1e-5)
    assert str(there.guarantee_) == str(here.guarantee_)
    assert there.exchangeability_.p_value == here.exchangeability_.p_value


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_classes(name):
    X, y = problem(200)
    labels = np.where(np.isnan(y), None, np.where(y > 0.0, "high", "low"))
    inner = SpectralGraphTransducer(n_components=10, random_state=0)
    here = ConformalTransducer(inner, random_state=0).fit(X, labels)
    with dispatch():
        there = ConformalTransducer(inner, random_state=0).fit(give(X, name), labels)
    assert there.transduction_.tolist() == here.transduction_.tolist()
    np.testing.assert_allclose(there.answer_.p_values, here.answer_.p_values, atol=1e-10)


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_without_dispatch_one_sentence(name):
    X, y = problem()
    with pytest.raises(ValueError, match="switch on scikit-learn's array dispatch"):
        ConformalTransducer(TransductiveRidge()).fit(give(X, name), y)
