"""The Gaussian process says the same wherever its arrays live."""

from __future__ import annotations

import numpy as np
import pytest

from tests.libraries import ON_PROCESSOR, dispatch, give, same
from transduce import TransductiveGPRegressor
from transduce.core import arrays
from transduce.device import memory
from transduce.methods.gaussian_process.descents import dependence
from transduce.methods.gaussian_process.process import Objective, Posterior


def problem(n=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=n)
    y[rng.permutation(n)[: n // 3]] = np.nan
    return X, y


@pytest.mark.few(6)
@pytest.mark.parametrize("name", ON_PROCESSOR)
@pytest.mark.parametrize("n_parameters", [2, 4])
@pytest.mark.parametrize(("matching", "slack"), [(0.0, 0.0), (0.3, 0.01), (1.0, 0.0)])
def test_objective_and_gradient(name, n_parameters, matching, slack):
    X, y = problem()
    y_l = np.nan_to_num(y[:25])
    at = np.log(np.linspace(0.3, 0.8, n_parameters))
    here = Objective(X, y_l, (1.0, 0.5), matching, slack)
    there = Objective(give(X, name), give(y_l, name), (1.0, 0.5), matching, slack)
    value, gradient = here(at)
    found, slopes = there(at)
    assert found == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(slopes, gradient, rtol=0.0, atol=1e-10 * np.abs(gradient).max())
    same(there.match(at).mean, here.match(at).mean, name)
    held = Objective(give(X, name), give(y_l, name), (1.0, 0.5), matching, slack, there.match(at))
    assert held(at)[0] == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_posterior(name):
    X, _ = problem()
    at, y = np.log([0.5, 0.4, 0.3, 0.1]), np.cos(X[:25, 0])
    here, there = Posterior.fit(X[:25], y, at), Posterior.fit(give(X[:25], name), give(y, name), at)
    assert there.log_likelihood == pytest.approx(here.log_likelihood, rel=1e-12)
    same(there.covariance(give(X[25:], name)), here.covariance(X[25:]), name)
    assert there.covariance(give(X[:0], name)).shape == (0, 0)
    for found, wanted in zip(there.predict(give(X, name)), here.predict(X), strict=True):
        same(found, wanted, name)


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_dependence(name):
    X, _ = problem(60)
    X[:, 1] = X[:, 1].round()  # ties
    np.testing.assert_allclose(
        dependence(give(X, name), give(X[:, 0] ** 2, name)), dependence(X, X[:, 0] ** 2), atol=1e-12
    )
    assert dependence(give(X, name), give(np.ones(60), name)).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("name", ON_PROCESSOR)
@pytest.mark.parametrize(
    "settings",
    [
        {"matching": 0.0},
        {"matching": 0.5, "slack": 0.01, "n_restarts": 0},
        pytest.param({"matching": "cv", "slack": 0.01, "max_iter": 15}, marks=pytest.mark.slow),
    ],
)
def test_regressor(name, settings):
    """The descent amplifies rounding, so that answers agree to the tolerance of the search."""
    X, y = problem()
    settings = {"n_restarts": 1, "random_state": 0, "relevance": False, **settings}
    context = (
        pytest.warns(UserWarning, match="raise max_iter") if settings.get("max_iter") else None
    )
    here = TransductiveGPRegressor(**settings)
    there = TransductiveGPRegressor(**settings)
    if context:
        with context:
            here.fit(X, y)
        with dispatch(), pytest.warns(UserWarning, match="raise max_iter"):
            there.fit(give(X, name), y)
    else:
        here.fit(X, y)
        with dispatch():
            there.fit(give(X, name), y)
    assert there.matching_ == here.matching_
    same(there.transduction_, here.transduction_, name, tolerance=1e-5)
    same(there.answer_.standard_errors, here.answer_.standard_errors, name, tolerance=1e-5)
    np.testing.assert_allclose(there.relevance_, here.relevance_, rtol=1e-4)
    np.testing.assert_allclose(there.moments_, here.moments_, atol=1e-5)
    same(there.covariance_, here.covariance_, name, tolerance=1e-5)
    same(there.matched_mean_, here.matched_mean_, name, tolerance=1e-4)
    same(there.matched_covariance_, here.matched_covariance_, name, tolerance=1e-4)
    with dispatch():
        new = give(X[:5] + 0.1, name)
        mean, spread = there.predict(new, return_std=True)
        same(mean, here.predict(X[:5] + 0.1), name, tolerance=1e-5)
        assert arrays.library_of(spread) == arrays.library_of(new)


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_memory_is_asked_for(name, monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda like: np.inf if like is None else 1e3)
    X, y = problem()
    with (
        dispatch(),
        pytest.raises(MemoryError, match=r"A Gaussian process with \d+ rows needs about"),
    ):
        TransductiveGPRegressor().fit(give(X, name), y)
