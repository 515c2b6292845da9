"""Kernels of the moment-matched process: definitions, gradients, precomputed and own ones; and epsilon."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.optimize._numdiff import approx_derivative
from sklearn.gaussian_process.kernels import DotProduct, Matern

from tests import brute
from tests.methods.gaussian_process.test_regressor import PRIOR, numbers, seeds, small
from transduce import TransductiveGPRegressor
from transduce.methods.gaussian_process.covariances import Covariance
from transduce.methods.gaussian_process.process import (
    InducedPosterior,
    Objective,
    Posterior,
    Spread,
    match_moments,
)

KERNELS = ("exponential", "matern32", "matern52", "linear")
# scikit-learn's Matern functions of a length scale 1, and the product of rows.
DEFINITIONS = {
    "exponential": Matern(nu=0.5),
    "matern32": Matern(nu=1.5),
    "matern52": Matern(nu=2.5),
    "linear": DotProduct(sigma_0=0.0),
}


def graph_kernel(X, width=1.0, time=1.0):
    """The diffusion kernel of the neighbour graph of rows."""
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    A = np.exp(-squares / (2 * width**2)) - np.eye(len(X))
    return expm(time * (A - np.diag(A.sum(axis=1))))


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_their_definitions(name):
    X, _, log_parameters = small(3, n=12)
    relevance = np.exp(log_parameters[:-1])
    expected = DEFINITIONS[name](X * relevance)
    covariance = Covariance(name)
    np.testing.assert_allclose(covariance.cross(X, X[:5], relevance), expected[:, :5], atol=1e-12)
    np.testing.assert_allclose(np.tril(covariance.own(X, relevance)), np.tril(expected), atol=1e-12)
    weights = np.arange(12.0)
    times = covariance.times(X, X, relevance, weights)
    np.testing.assert_allclose(times, expected @ weights, atol=1e-11)
    variances = np.broadcast_to(covariance.variances(X, relevance), 12)
    np.testing.assert_allclose(variances, expected.diagonal())


@given(seeds, st.sampled_from(KERNELS), st.sampled_from([0.0, 1.0]), st.booleans())
def test_gradients_are_finite_differences(seed, name, matching, common):
    X, y_l, log_parameters = small(seed)
    if common:
        log_parameters = log_parameters[-2:]
    objective = Objective(X, y_l, PRIOR, matching, 0.1, covariance=Covariance(name))
    slope = approx_derivative(lambda x: objective(x)[0], log_parameters, method="3-point")
    np.testing.assert_allclose(objective(log_parameters)[1], slope, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("name", KERNELS)
def test_predictions_are_the_textbook(name):
    X, y_l, log_parameters = small(7, n=14)
    log_parameters[-1] = -1.0
    relevance = np.exp(log_parameters[:-1])
    noise = np.exp(log_parameters[-1])
    C = DEFINITIONS[name](X * relevance) + noise * np.eye(14)
    known = len(y_l)
    weights = np.linalg.solve(C[:known, :known], C[:known, known:])
    expected = C[known:, known:] - C[known:, :known] @ weights
    posterior = Posterior.fit(X[:known], y_l, log_parameters, Covariance(name))
    mean, spread = posterior.predict(X[known:])
    np.testing.assert_allclose(mean, weights.T @ y_l, atol=1e-9)
    np.testing.assert_allclose(spread, np.sqrt(expected.diagonal()), atol=1e-9)
    np.testing.assert_allclose(posterior.covariance(X[known:]), expected, atol=1e-9)
    points = X[:known]
    induced = InducedPosterior.fit(points, y_l, log_parameters, points, Covariance(name))
    np.testing.assert_allclose(induced.predict(X[known:])[0], mean, atol=1e-4)


def test_a_graph_kernel_and_the_same_kernel_as_a_function():
    X, y, _ = numbers(n=50, unlabelled=20, d=2)
    K = graph_kernel(X)
    settings = {"matching": 1.0, "slack": 0.01, "n_restarts": 0}
    model = TransductiveGPRegressor(kernel="precomputed", **settings).fit(K, y)
    rows = np.arange(50.0)[:, None]
    function = TransductiveGPRegressor(kernel=lambda u, v: K[int(u[0]), int(v[0])], **settings).fit(
        rows, y
    )
    np.testing.assert_allclose(model.transduction_, function.transduction_, rtol=1e-6)
    # What it answers is the textbook's process with this kernel, its size and the noise found.
    unlabelled = np.isnan(y)
    labels = y[~unlabelled]
    unit = labels.std()
    C = model.kernel_scale_ * K + model.noise_ / unit**2 * np.eye(50)
    weights = np.linalg.solve(
        C[np.ix_(~unlabelled, ~unlabelled)], C[np.ix_(~unlabelled, unlabelled)]
    )
    expected = weights.T @ (labels - labels.mean()) + labels.mean()
    np.testing.assert_allclose(model.answer_.values, expected, rtol=1e-6)
    assert model.matching_ == 1.0
    assert {"matched", "predicted"} <= set(model.moments_.index)
    np.testing.assert_allclose(model.predict(K[:7]), function.predict(rows[:7]), rtol=1e-6)
    np.testing.assert_allclose(model.predict(K)[unlabelled], model.answer_.values, rtol=1e-6)


def test_the_order_of_rows_of_a_kernel_does_not_matter():
    X, y, _ = numbers(n=40, unlabelled=15, d=2)
    K = graph_kernel(X)
    mix = np.random.default_rng(0).permutation(40)
    settings = {"kernel": "precomputed", "n_restarts": 1, "random_state": 0}
    first = TransductiveGPRegressor(**settings).fit(K, y)
    second = TransductiveGPRegressor(**settings).fit(K[np.ix_(mix, mix)], y[mix])
    np.testing.assert_allclose(second.transduction_, first.transduction_[mix], rtol=1e-5)


@given(seeds, st.floats(0.0, 1.5))
def test_epsilon_equals_a_constrained_optimiser(seed, epsilon):
    """The nearest normal distribution whose moments lie within epsilon of the target (5)."""
    rng = np.random.default_rng(seed)
    m = 3
    A = rng.normal(size=(m, m))
    covariance = A @ A.T + 0.3 * np.eye(m)
    mean = rng.normal(size=m)
    target = np.array([0.0, -0.5])
    match = match_moments(Spread.of(mean, covariance), target, slack=0.0, epsilon=epsilon)
    moments = np.array(
        [match.mean.mean(), -0.5 * np.mean(match.mean**2 + np.diag(match.covariance))]
    )
    gap = np.linalg.norm(moments - target)
    assert gap <= epsilon + 1e-7
    expected = brute.divergence(match.mean, match.covariance, mean, covariance)
    assert match.divergence == pytest.approx(expected, abs=1e-7)
    assert match.penalty == 0.0
    lowest = brute.match_within(mean, covariance, target, epsilon)
    assert match.divergence <= lowest + 1e-5
    assert match.divergence >= lowest - 1e-4 * (1 + lowest)


def test_epsilon_of_a_fit():
    """A wide one matches nothing, 0 makes moments equal, and between the moments lie on its sphere."""
    X, y, _ = numbers(n=40, unlabelled=15)
    settings = {"matching": 1.0, "n_restarts": 0}
    wide = TransductiveGPRegressor(epsilon=100.0, **settings).fit(X, y)
    plain = TransductiveGPRegressor(matching=0.0, n_restarts=0).fit(X, y)
    np.testing.assert_allclose(wide.answer_.values, plain.answer_.values, rtol=1e-4)
    exact = TransductiveGPRegressor(epsilon=0.0, **settings).fit(X, y)
    equal = TransductiveGPRegressor(slack=0.0, **settings).fit(X, y)
    np.testing.assert_allclose(exact.answer_.values, equal.answer_.values, rtol=1e-9)
    between = TransductiveGPRegressor(epsilon=0.02, **settings).fit(X, y)
    q = between._fitted.q
    assert np.linalg.norm(q.misfit) == pytest.approx(0.02, rel=1e-6)
    assert "epsilon=0.02" in between.answer_.diagnostics["choice"]


@given(seeds)
def test_gradients_with_epsilon(seed):
    X, y_l, log_parameters = small(seed)
    objective = Objective(X, y_l, PRIOR, 1.0, epsilon=0.05)
    slope = approx_derivative(lambda x: objective(x)[0], log_parameters, method="3-point")
    np.testing.assert_allclose(objective(log_parameters)[1], slope, rtol=1e-4, atol=1e-5)
    held = replace(objective, q=objective.match(log_parameters))
    assert held(log_parameters)[0] == pytest.approx(objective(log_parameters)[0], abs=1e-7)


def test_refusals():
    X, y, _ = numbers(n=20, unlabelled=5)
    K = graph_kernel(X)
    fit = TransductiveGPRegressor(n_restarts=0, matching=0.0).set_params
    for wrong in ("cosine", 3, None):
        with pytest.raises(ValueError, match="Unknown kernel"):
            fit(kernel=wrong).fit(X, y)
    precomputed = fit(kernel="precomputed")
    with pytest.raises(ValueError, match="needs a square"):
        precomputed.fit(K[:, :5], y)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        precomputed.fit(2.0 - np.eye(20), y)
    with pytest.raises(ValueError, match="new rows are"):
        precomputed.fit(K, y).predict(K, return_std=True)
    with pytest.raises(ValueError, match="epsilon takes the place of slack"):
        fit(kernel="rbf", epsilon=0.1, slack=0.2).fit(X, y)
    with pytest.raises(ValueError, match="epsilon"):
        fit(epsilon=-1.0, slack="cv").fit(X, y)
