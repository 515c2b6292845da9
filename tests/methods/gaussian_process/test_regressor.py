"""The moment-matched Gaussian process: densities and general optimisers, laws, limits, refusals."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.optimize._numdiff import approx_derivative
from scipy.stats import multivariate_normal
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from tests import brute
from tests.libraries import polars as pl
from transduce import TransductiveGPRegressor
from transduce.core.computing import few_threads
from transduce.device.kernels import FEW_ROWS, kernel_times
from transduce.methods.gaussian_process.descents import Search, dependence
from transduce.methods.gaussian_process.matching import compare_matchings, fold_errors
from transduce.methods.gaussian_process.process import (
    InducedPosterior,
    Objective,
    Posterior,
    Spread,
    match_moments,
    tilt,
)
from transduce.methods.gaussian_process.regressor import announce_cost
from transduce.methods.gaussian_process.triangles import (
    cross_kernel,
    factor_of,
    inverse_of,
    own_kernel,
)

PRIOR = (1.0, 0.5)
seeds = st.integers(0, 2**32 - 1)


def small(seed, *, n=None, scaled=True):
    """Rows, labels of the first few, and parameters."""
    rng = np.random.default_rng(seed)
    n = rng.integers(4, 14) if n is None else n
    known, d = rng.integers(2, n), rng.integers(1, 4)
    X = rng.normal(size=(n, d))
    y_l = np.sin(2 * X[:known, 0]) + 0.3 * rng.normal(size=known)
    if scaled:
        y_l = (y_l - y_l.mean()) / y_l.std()
    return X, y_l, rng.normal(size=d + 1) * 0.7 - 0.5


def numbers(n=60, unlabelled=20, seed=0, d=3, noise=0.2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    truth = 5 + 2 * (np.sin(2 * X[:, 0]) + X[:, 1] + noise * rng.normal(size=n))
    y = truth.copy()
    y[rng.choice(n, unlabelled, replace=False)] = np.nan
    return X, y, truth


# --------------------------------------------------------------------------------------------------- exact


@given(seeds)
def test_kernel_and_factor_are_the_definition(seed):
    X, _, log_parameters = small(seed)
    relevance, noise = np.exp(log_parameters[:-1]), np.exp(log_parameters[-1])
    C = brute.process_covariance(X, relevance, noise)
    K = C - noise * np.eye(len(X))
    np.testing.assert_allclose(np.tril(own_kernel(X, relevance)), np.tril(K), atol=1e-12)
    np.testing.assert_allclose(cross_kernel(X, X[:2], relevance), K[:, :2], atol=1e-12)
    factor, jitter = factor_of(own_kernel(X, relevance), noise)
    assert jitter == 0.0
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(C), atol=1e-10)


@pytest.mark.parametrize("n", [1, 2, 64, 65, 131, 300, 701])
def test_inverses_and_kernels_of_every_size(n):
    """By halves, by panels, or at once: only the lower triangle counts, and nothing of what is above it."""
    X = np.random.default_rng(n).normal(size=(n, 2))
    K = own_kernel(X, np.array([1.0, 0.3]))
    whole = np.exp(-(((X[:, None] - X[None]) * [1.0, 0.3]) ** 2).sum(axis=2))
    np.testing.assert_allclose(np.tril(K), np.tril(whole), rtol=1e-12)
    factor = np.asfortranarray(
        np.linalg.cholesky(whole + np.eye(n)) + np.triu(np.full((n, n), np.nan), 1)
    )
    inverse = np.linalg.inv(whole + np.eye(n))
    np.testing.assert_allclose(np.tril(inverse_of(factor)), np.tril(inverse), atol=1e-11)


@given(
    seeds, st.sampled_from([0.0, 0.3, 1.0, 2.5]), st.sampled_from([0.0, 0.01, 0.5]), st.booleans()
)
def test_the_objective_is_the_definition(seed, matching, slack, common):
    """From densities and the divergence, whether q is held or found."""
    X, y_l, log_parameters = small(seed)
    log_parameters = log_parameters[-2:] if common else log_parameters
    relevance, noise = np.exp(log_parameters[:-1]), np.exp(log_parameters[-1])
    objective = Objective(X, y_l, PRIOR, matching, slack)
    q = objective.match(log_parameters)
    held = Objective(X, y_l, PRIOR, matching, slack, q)
    # A common relevance has one prior, not one for each feature.
    expected = brute.matched_objective(
        X, y_l, relevance, noise, PRIOR, matching, q.mean, q.covariance, slack
    )
    assert objective(log_parameters)[0] == pytest.approx(expected, abs=1e-7)
    assert held(log_parameters)[0] == pytest.approx(expected, abs=1e-7)


@given(
    seeds, st.sampled_from([0.0, 0.3, 1.0, 2.5]), st.sampled_from([0.0, 0.01, 0.5]), st.booleans()
)
def test_gradients_are_finite_differences(seed, matching, slack, common):
    X, y_l, log_parameters = small(seed)
    log_parameters = log_parameters[-2:] if common else log_parameters
    objective = Objective(X, y_l, PRIOR, matching, slack)
    q = Objective(X, y_l, PRIOR, matching, slack).match(log_parameters + 0.3)
    for function in (objective, Objective(X, y_l, PRIOR, matching, slack, q)):
        slope = approx_derivative(lambda x, f=function: f(x)[0], log_parameters, method="3-point")
        np.testing.assert_allclose(function(log_parameters)[1], slope, rtol=1e-5, atol=1e-6)


@given(seeds)
def test_predictions_are_the_textbook(seed):
    X, y_l, log_parameters = small(seed)
    known = len(y_l)
    mean, covariance = brute.predictive(
        X, y_l, np.exp(log_parameters[:-1]), np.exp(log_parameters[-1])
    )
    fit = Posterior.fit(X[:known], y_l, log_parameters)
    np.testing.assert_allclose(fit.mean(X[known:]), mean, atol=1e-9)
    np.testing.assert_allclose(fit.covariance(X[known:]), covariance, atol=1e-9)
    np.testing.assert_allclose(fit.predict(X[known:])[1] ** 2, np.diag(covariance), atol=1e-9)
    objective = Objective(X[:known], y_l, (0.0, 0.0))(log_parameters)[0]
    assert fit.log_likelihood == pytest.approx(-objective - 0.5 * known * np.log(2 * np.pi))


@pytest.mark.parametrize("m", [1, 2, 4])
@pytest.mark.parametrize("slack", [0.003, 0.1])
def test_the_q_step_is_the_nearest_normal(m, slack):
    """Among all normal distributions, by a general optimiser over mean and covariance."""
    rng = np.random.default_rng(m)
    A = rng.normal(size=(m, m))
    mean, covariance, target = rng.normal(size=m), A @ A.T + 0.3 * np.eye(m), np.array([0.2, -0.6])
    q = match_moments(Spread.of(mean, covariance), target, slack=slack)
    q_mean, q_covariance, value = brute.match_primal(mean, covariance, target, slack)
    np.testing.assert_allclose(q.mean, q_mean, atol=1e-4)
    np.testing.assert_allclose(q.covariance, q_covariance, atol=1e-4)
    assert q.divergence == pytest.approx(value, abs=1e-7)
    direct = brute.divergence(q.mean, q.covariance, mean, covariance) + np.sum(q.misfit**2) / (
        2 * slack
    )
    assert q.divergence == pytest.approx(direct, abs=1e-9)
    assert q.penalty == pytest.approx(np.sum(q.misfit**2) / (2 * slack), abs=1e-9)
    assert q.log_determinant == pytest.approx(np.linalg.slogdet(q.covariance)[1])


@given(seeds, st.floats(0.05, 20.0), st.sampled_from([0.0, 1e-6, 0.1]))
def test_the_q_step_matches_however_far_p_is(seed, scale, slack):
    """With no slack exactly; otherwise by the slack times the multipliers."""
    rng = np.random.default_rng(seed)
    m = rng.integers(1, 8)
    A = scale * rng.normal(size=(m, m))
    p = Spread.of(scale * rng.normal(size=m), A @ A.T + 1e-3 * np.eye(m))
    target = np.array([0.0, -0.5])
    q = match_moments(p, target, slack=slack)
    np.testing.assert_allclose(q.misfit, -slack * q.theta, atol=1e-7)
    moments = [q.mean.mean(), -0.5 * (q.mean @ q.mean + np.trace(q.covariance)) / m]
    np.testing.assert_allclose(moments - target, q.misfit, atol=1e-7)


@given(seeds)
def test_derivatives_of_the_tilt(seed):
    rng = np.random.default_rng(seed)
    m = rng.integers(1, 5)
    p = Spread.of(rng.normal(size=m), np.diag(rng.uniform(0.1, 2, size=m)))
    theta = np.array([rng.normal(), rng.uniform(-0.2, 2.0)])
    _, gradient, hessian = tilt(p, theta)
    np.testing.assert_allclose(
        gradient, approx_derivative(lambda t: tilt(p, t)[0], theta), atol=1e-6
    )
    np.testing.assert_allclose(
        hessian, approx_derivative(lambda t: tilt(p, t)[1], theta), atol=1e-6
    )


def test_without_matching_it_is_the_posterior_maximum():
    """No general optimiser, on the density itself, finds more likely parameters; predictions are scikit-learn's."""
    X, y, _ = numbers(n=40, unlabelled=15, d=2)
    model = TransductiveGPRegressor(matching=0, random_state=0).fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    known = ~np.isnan(y)
    z = (y[known] - y[known].mean()) / y[known].std()

    def posterior(x):
        return brute.matched_objective(
            Z[known], z, np.exp(x[:2]), np.exp(x[2]), PRIOR, 0.0, None, None, 0.0
        )

    rng = np.random.default_rng(0)
    starts = rng.normal(size=(4, 3)) - 1
    lowest = min(minimize(posterior, start, method="BFGS").fun for start in starts)
    assert model.objective_path_[-1] <= lowest + 1e-5
    relevance = model.relevance_ * X.std(axis=0)
    kernel = RBF(1 / (np.sqrt(2) * relevance)) + WhiteKernel(model.noise_ / y[known].var())
    peer = GaussianProcessRegressor(kernel, optimizer=None, alpha=1e-12).fit(Z[known], z)
    mean, std = peer.predict(Z[~known], return_std=True)
    np.testing.assert_allclose(
        model.answer_.values, mean * y[known].std() + y[known].mean(), atol=1e-7
    )
    np.testing.assert_allclose(model.answer_.standard_errors, std * y[known].std(), atol=1e-7)
    assert model.log_marginal_likelihood_ == pytest.approx(
        peer.log_marginal_likelihood_value_, abs=1e-6
    )
    assert (model.matching_, model.answer_.diagnostics["choice"]) == (
        0.0,
        "matching=0, slack=0, as set",
    )
    np.testing.assert_array_equal(model.answer_.values, model.answer_.inductive)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 6))]
)
def test_no_worse_than_twenty_random_restarts(seed):
    """Of a general optimiser that is given the objective alone."""
    X, y, _ = numbers(n=24, unlabelled=8, seed=seed, d=2, noise=0.5)
    settings_ = {"matching": 0.5, "slack": 0.01}
    model = TransductiveGPRegressor(**settings_, random_state=0).fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    known = ~np.isnan(y)
    z = (y[known] - y[known].mean()) / y[known].std()
    objective = Objective(np.concatenate([Z[known], Z[~known]]), z, PRIOR, **settings_)
    rng = np.random.default_rng(seed)
    starts = np.log([0.5, 0.5, 0.1]) + 1.5 * rng.normal(size=(20, 3))
    lowest = min(minimize(lambda x: objective(x)[0], start, method="BFGS").fun for start in starts)
    assert model.objective_path_[-1] <= lowest + 1e-4


@pytest.mark.parametrize(
    ("matching", "from_scratch"),
    [
        (0.0, 100),
        (0.5, 10),
        *(pytest.param(*both, marks=pytest.mark.slow) for both in ((0.5, 100), (0.0, 10))),
    ],
)
def test_answers_in_folds_are_near_those_of_whole_fits(matching, from_scratch, monkeypatch):
    """The short descent ends where the search of a whole fit does, if there is one valley only."""
    monkeypatch.setattr("transduce.methods.gaussian_process.regressor.FROM_SCRATCH", from_scratch)
    X, y, _ = numbers(n=80, unlabelled=20)
    rows = np.flatnonzero(~np.isnan(y))
    fold = np.arange(len(rows)) % 3
    folds = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]
    settings = {"matching": matching, "slack": 0.1, "n_restarts": 0, "random_state": 0}
    found = TransductiveGPRegressor(**settings).fit(X, y).answers_in_folds(folds)
    for (visible, hidden), answers in zip(folds, found, strict=True):
        some = np.concatenate([rows[visible], np.flatnonzero(np.isnan(y))])
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        again = TransductiveGPRegressor(standardize=False, **settings).fit(Z[some], y[some])
        np.testing.assert_allclose(
            answers, again.predict(Z[rows[hidden]]), atol=0.02 * np.nanstd(y)
        )


@given(seeds)
def test_points_at_all_labelled_rows_are_the_exact_process(seed):
    X, y_l, log_parameters = small(seed)
    X_l, rest = X[: len(y_l)], X[len(y_l) :]
    exact = Posterior.fit(X_l, y_l, log_parameters)
    induced = InducedPosterior.fit(X_l, y_l, log_parameters, X_l)
    np.testing.assert_allclose(induced.mean(rest), exact.mean(rest), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        induced.predict(rest)[1] ** 2, exact.predict(rest)[1] ** 2, rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(
        induced.covariance(rest), exact.covariance(rest), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(induced.log_likelihood, exact.log_likelihood, rtol=1e-4, atol=1e-4)


def test_inducing_points_by_definition(monkeypatch):
    """Against dense formulas of the model in which labels tell of each other through the points only."""
    monkeypatch.setattr("transduce.methods.gaussian_process.process.BLOCK", 4)
    rng = np.random.default_rng(0)
    X, y_l, points = rng.normal(size=(14, 2)), rng.normal(size=9), rng.normal(size=(4, 2))
    relevance, noise = np.array([0.7, 0.4]), 0.3
    fit = InducedPosterior.fit(X[:9], y_l, np.log([*relevance, noise]), points)
    K_pp, K_pn = (cross_kernel(points, rows, relevance) for rows in (points, X))
    Q = K_pn.T @ np.linalg.solve(K_pp, K_pn)
    C = Q[:9, :9] + noise * np.eye(9)
    np.testing.assert_allclose(fit.mean(X[9:]), Q[9:, :9] @ np.linalg.solve(C, y_l))
    own = np.ones(5) - np.diag(Q)[9:]
    spread = np.diag(Q[9:, 9:] - Q[9:, :9] @ np.linalg.solve(C, Q[:9, 9:])) + own + noise
    np.testing.assert_allclose(fit.predict(X[9:])[1] ** 2, spread)
    np.testing.assert_allclose(
        fit.log_likelihood, multivariate_normal(np.zeros(9), C).logpdf(y_l), rtol=1e-8
    )


def test_parameters_of_some_labels_and_a_process_of_all():
    X, y, truth = numbers(n=120, unlabelled=20)
    some = TransductiveGPRegressor(matching=0, n_restarts=0, max_searched=40, random_state=0).fit(
        X, y
    )
    whole = TransductiveGPRegressor(matching=0, n_restarts=0, random_state=0).fit(X, y)
    assert some._fitted.posterior.X_l.shape == whole._fitted.posterior.X_l.shape == (100, 3)
    unlabelled = np.isnan(y)
    error = [np.sqrt(np.mean((model.mean_ - truth[unlabelled]) ** 2)) for model in (some, whole)]
    assert error[0] < 1.3 * error[1]
    assert not np.allclose(some.relevance_, whole.relevance_)
    moved = np.random.default_rng(0).permutation(len(y))
    again = TransductiveGPRegressor(matching=0, n_restarts=0, max_searched=40, random_state=0)
    again.fit(X[moved], y[moved])
    np.testing.assert_allclose(again.transduction_, some.transduction_[moved], rtol=1e-9)


def test_very_many_labels_go_through_inducing_points(monkeypatch):
    monkeypatch.setattr("transduce.methods.gaussian_process.process.N_INDUCING", 45)
    monkeypatch.setattr("transduce.methods.gaussian_process.regressor.MOST_DESCENDED", 50)
    X, y, truth = numbers(n=120, unlabelled=20)
    model = TransductiveGPRegressor(
        matching=0, n_restarts=0, max_searched=40, max_exact=50, random_state=0
    ).fit(X, y)
    assert isinstance(model._fitted.posterior, InducedPosterior)
    many = np.resize(X, (2 * FEW_ROWS + 3, X.shape[1]))
    np.testing.assert_allclose(
        model.predict(many), model.predict(many, return_std=True)[0], rtol=1e-8
    )
    unlabelled = np.isnan(y)
    assert np.std(model.mean_ - truth[unlabelled]) < 0.5 * np.std(truth[unlabelled])
    assert np.isfinite(model.log_marginal_likelihood_)
    even, odd = np.arange(0, 100, 2), np.arange(1, 100, 2)
    left_out = model.answers_in_folds([(even, odd)])[0]
    assert np.std(left_out - y[~unlabelled][odd]) < 0.6 * np.std(y[~unlabelled])
    np.testing.assert_allclose(model.predict(X[unlabelled]), model.mean_)


# ----------------------------------------------------------------------------------------------------- laws


@settings(max_examples=15)
@given(seeds, st.sampled_from([0.1, 1.0, 3.0]), st.sampled_from([0.0, 0.01, 1.0]))
def test_no_step_raises_the_objective(seed, matching, slack):
    """Whichever way it descends; the nested search ends where the slope is flat."""
    X, y_l, log_parameters = small(seed, n=14)
    objective = Objective(X, y_l, PRIOR, matching, slack)
    ends = {}
    for solver in ("nested", "alternating"):
        found = Search(log_parameters, log_parameters, solver=solver).descend(
            objective, log_parameters
        )
        assert np.all(np.diff(found.path) <= 1e-9 * (1 + np.abs(found.path[:-1])))
        assert found.objective == pytest.approx(objective(found.log_parameters)[0], abs=1e-6)
        assert found.converged
        ends[solver] = np.abs(objective(found.log_parameters)[1]).max()
    assert ends["nested"] < 0.05


def test_both_solvers_agree():
    X, y, _ = numbers(n=40, unlabelled=15)
    same = {"matching": 1.0, "slack": 0.01, "n_restarts": 1, "random_state": 0, "tol": 1e-11}
    one, other = (
        TransductiveGPRegressor(solver=solver, **same).fit(X, y)
        for solver in ("nested", "alternating")
    )
    assert one.objective_path_[-1] == pytest.approx(other.objective_path_[-1], abs=1e-4)
    np.testing.assert_allclose(one.answer_.values, other.answer_.values, atol=0.02)


def test_matching_pulls_the_moments():
    """The harder, the nearer are the predictions' moments to the labels'; q's are equal when there is no slack."""
    X, y, _ = numbers(n=80, unlabelled=50, noise=0.5)
    known = y[~np.isnan(y)]
    away, same = [], {"n_restarts": 1, "random_state": 0}
    inductive = TransductiveGPRegressor(matching=0, **same).fit(X, y)
    for matching in (0.0, 1.0, 30.0):
        model = TransductiveGPRegressor(matching=matching, slack=0.0, **same).fit(X, y)
        table = model.moments_
        np.testing.assert_allclose(table.loc["labels"], [known.mean(), known.std()])
        np.testing.assert_allclose(table.loc["matched"], [known.mean(), known.std()], rtol=1e-6)
        second = np.mean(model.matched_mean_**2) + np.trace(model.matched_covariance_) / 50
        np.testing.assert_allclose(
            [model.matched_mean_.mean(), second], [known.mean(), np.mean(known**2)]
        )
        np.testing.assert_allclose(
            table.loc["predicted", "standard deviation"] ** 2 + table.loc["predicted", "mean"] ** 2,
            np.mean(model.mean_**2) + np.trace(model.covariance_) / 50,
        )
        away.append(float(np.abs(table.loc["predicted"] - table.loc["labels"]).sum()))
        np.testing.assert_allclose(model.answer_.inductive, inductive.answer_.values, atol=1e-9)
        np.testing.assert_allclose(
            table.loc["without matching"], inductive.moments_.loc["predicted"]
        )
    assert away[0] > away[1] > away[2]


@pytest.mark.parametrize(
    "setting",
    [
        {"matching": 0.5, "slack": 0.01, "n_restarts": 1},
        *(pytest.param(s, marks=pytest.mark.slow) for s in ({}, {"relevance": False})),
    ],
)
def test_row_order_leaves_no_trace(setting):
    X, y, _ = numbers(n=40, unlabelled=15)
    X[3], X[8] = X[0], X[1]  # duplicates
    order = np.random.default_rng(1).permutation(40)
    one = TransductiveGPRegressor(random_state=0, **setting).fit(X, y)
    other = TransductiveGPRegressor(random_state=0, **setting).fit(X[order], y[order])
    np.testing.assert_allclose(other.transduction_, one.transduction_[order], rtol=1e-12)
    back = np.argsort(order[np.sort(other.matched_rows_)])
    np.testing.assert_allclose(other.matched_mean_[back], one.matched_mean_, rtol=1e-9)


@pytest.mark.parametrize(
    ("scale", "shift"), [(1e-6, 3.0), pytest.param(1e5, -1e6, marks=pytest.mark.slow)]
)
def test_units_of_labels_and_features_do_not_matter(scale, shift):
    X, y, _ = numbers(n=40, unlabelled=15)
    same = {"random_state": 0, "matching": 0.3, "slack": 0.01, "n_restarts": 1}
    one = TransductiveGPRegressor(**same).fit(X, y)
    other = TransductiveGPRegressor(**same).fit(X * 7 - 2, y * scale + shift)
    np.testing.assert_allclose(other.transduction_, one.transduction_ * scale + shift, rtol=1e-5)
    np.testing.assert_allclose(
        other.answer_.standard_errors, one.answer_.standard_errors * scale, rtol=1e-3
    )
    np.testing.assert_allclose(other.relevance_, one.relevance_ / 7, rtol=1e-3)
    assert other.noise_ == pytest.approx(one.noise_ * scale**2, rel=1e-3)


def test_same_seed_same_answer_on_any_number_of_threads():
    X, y, _ = numbers(n=40, unlabelled=15)
    one, two, parallel = (
        TransductiveGPRegressor(random_state=3, n_restarts=1, n_jobs=n_jobs).fit(X, y)
        for n_jobs in (None, None, 2)
    )
    np.testing.assert_array_equal(one.transduction_, two.transduction_)
    np.testing.assert_allclose(parallel.transduction_, one.transduction_, rtol=1e-9)


def test_irrelevant_features_are_found_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    X[:, 3] *= 1000
    y = np.sin(2 * X[:, 1]) + 0.1 * rng.normal(size=120)
    y[::3] = np.nan
    model = TransductiveGPRegressor(matching=0, random_state=0).fit(X, y)
    contributions = model.relevance_ * X.std(axis=0)
    assert contributions[1] > 10 * contributions[[0, 2, 3]].max()
    common = TransductiveGPRegressor(matching=0, random_state=0, relevance=False).fit(X, y)
    np.testing.assert_allclose(
        common.relevance_ * X.std(axis=0), common.relevance_[0] * X[:, 0].std()
    )


@pytest.mark.slow
def test_standard_errors_are_right_for_a_gaussian_process():
    """Labels drawn from the model itself: two thirds within one, 95 % within two, to sampling error."""
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(12):
        X = rng.uniform(-3, 3, size=(120, 2))
        C = brute.process_covariance(X, np.array([0.7, 0.3]), 0.1)
        truth = np.linalg.cholesky(C) @ rng.normal(size=120)
        y = np.where(np.arange(120) < 70, truth, np.nan)
        answer = TransductiveGPRegressor(matching=0, n_restarts=1, random_state=0).fit(X, y).answer_
        inside.append(np.abs(answer.values - truth[70:]) / answer.standard_errors)
    z = np.concatenate(inside)
    assert np.mean(z < 1) == pytest.approx(0.683, abs=0.06)
    assert np.mean(z < 2) == pytest.approx(0.954, abs=0.03)


def test_standard_errors_are_the_diagonal_of_the_covariance():
    X, y, _ = numbers()
    model = TransductiveGPRegressor(matching=0, random_state=0).fit(X, y)
    _, covariance = model.predict(X[:4], return_cov=True)
    _, std = model.predict(X[:4], return_std=True)
    np.testing.assert_allclose(std, np.sqrt(np.diag(covariance)))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_in_frames_out(frame):
    X, y, _ = numbers(n=30, unlabelled=8)
    table = frame(
        X, **({"columns": list("abc")} if frame is pd.DataFrame else {"schema": list("abc")})
    )
    model = TransductiveGPRegressor(matching=0, n_restarts=0).fit(table, y)
    assert list(model.feature_names_in_) == list("abc")
    np.testing.assert_allclose(model.predict(table)[np.isnan(y)], model.answer_.values)
    named = pd.Series(y, index=[f"r{i}" for i in range(30)], name="price")
    answered = TransductiveGPRegressor(matching=0, n_restarts=0).fit(
        pd.DataFrame(X, index=named.index), named
    )
    assert answered.transduction_.index.equals(named.index)
    assert list(answered.answer_.to_frame().columns) == [
        "value",
        "standard_error",
        "inductive",
        "status",
    ]


# --------------------------------------------------------------------------------------------------- limits


def test_no_asked_row():
    X, _, truth = numbers()
    model = TransductiveGPRegressor(random_state=0).fit(X, truth)
    assert (len(model.answer_), model.matching_, model.covariance_.shape) == (0, 0.0, (0, 0))
    assert list(model.moments_.index) == ["labels"]
    assert (model.matched_mean_.shape, model.matched_covariance_.shape) == ((0,), (0, 0))
    plain = TransductiveGPRegressor(matching=0, random_state=0).fit(X, truth)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))


def test_a_loose_match_is_none():
    X, y, _ = numbers()
    plain = TransductiveGPRegressor(matching=0, random_state=0).fit(X, y)
    loose = TransductiveGPRegressor(matching=1.0, slack=1e6, random_state=0).fit(X, y)
    np.testing.assert_allclose(loose.transduction_, plain.transduction_, atol=1e-3)


@pytest.mark.parametrize("slack", ["cv", pytest.param(0.0, marks=pytest.mark.slow)])
def test_cross_validation_chooses_from_its_table(slack):
    X, y, _ = numbers(n=70, unlabelled=40, noise=0.6)
    model = TransductiveGPRegressor(slack=slack, random_state=0).fit(X, y)
    path = model.matching_path_
    assert path["matching"][0] == 0.0
    best = path["error"].idxmin()
    if path["gain"][best] > path["gain_se"][best]:
        assert (model.matching_, model.slack_) == (path["matching"][best], path["slack"][best])
        assert "by cross-validation" in str(model.answer_.guarantee)
    else:
        assert model.matching_ == 0.0
        assert "no weight was better than none" in str(model.answer_.guarantee)
    fixed = TransductiveGPRegressor(matching=0.5, random_state=0).fit(X, y)
    assert fixed.matching_ == 0.5
    assert fixed.slack_ == fixed.matching_path_["slack"][fixed.matching_path_["error"].idxmin()]


def test_the_choice_needs_a_clear_gain(monkeypatch):
    """A gain within its standard error is none; a larger one is taken, and the answer says which."""
    X, y, _ = numbers(n=30, unlabelled=10)
    for gain, chosen in ((0.05, 0.0), (0.2, 0.3)):
        table = pd.DataFrame(
            {
                "matching": [0.0, 0.3],
                "slack": [0.001, 0.01],
                "error": [0.5, 0.5 - gain],
                "gain": [0.0, gain],
                "gain_se": [0.0, 0.1],
            }
        )
        monkeypatch.setattr(
            "transduce.methods.gaussian_process.matching.compare_matchings",
            lambda *_, table=table, **settings: table,
        )
        model = TransductiveGPRegressor(random_state=0).fit(X, y)
        assert model.matching_ == chosen


def test_the_table_of_cross_validation_is_fold_by_fold():
    """Error and gain by hand from each fold's answers."""
    X, _, truth = numbers(n=30, unlabelled=0)
    z = (truth - truth.mean()) / truth.std()
    objective, fold = Objective(X, z, PRIOR), (np.arange(30) >= 5).astype(int)
    search, grid = Search.at(X, z), np.array([[0.0, 0.01], [0.5, 0.01]])
    table = compare_matchings(
        objective, fold, search, search.start, grid, None, errors_of_fold=fold_errors
    )
    errors = np.array(
        [fold_errors(objective, fold == k, search, search.start, grid) for k in range(2)]
    )
    share = np.array([5, 25]) / 30
    np.testing.assert_allclose(table["error"], share @ errors)
    np.testing.assert_allclose(table["gain"], share @ (errors[:, :1] - errors))
    mean, scale = z[5:].mean(), z[5:].std()
    shown = (z[5:] - mean) / scale
    found = search.descend(Objective(X[5:], shown, PRIOR), search.start)
    predicted = Posterior.fit(X[5:], shown, found.log_parameters).mean(X[:5]) * scale + mean
    assert errors[0, 0] == pytest.approx(np.mean((predicted - z[:5]) ** 2))
    equal = Objective(X, np.append(2.0, np.ones(29)), PRIOR)
    constant = fold_errors(equal, np.arange(30) == 0, search, search.start, grid)
    np.testing.assert_allclose(constant, 1.0)


def test_few_labels_are_too_few_to_choose_by():
    X, y, _ = numbers(n=30, unlabelled=22)
    model = TransductiveGPRegressor(random_state=0).fit(X, y)
    assert model.matching_ == 0.0
    assert "too few to choose by" in model.answer_.diagnostics["choice"]
    assert TransductiveGPRegressor(random_state=0, matching=0.4).fit(X, y).matching_ == 0.4


def test_many_asked_rows_are_thinned_for_matching_only():
    X, y, _ = numbers(n=90, unlabelled=60)
    model = TransductiveGPRegressor(matching=0.5, slack=0.01, max_matched=25, random_state=0).fit(
        X, y
    )
    assert len(model.matched_rows_) == len(model.matched_mean_) == 25
    assert np.isnan(y[model.matched_rows_]).all()
    assert len(model.answer_) == 60
    assert model.covariance_.shape == (60, 60)


def test_many_labels_are_thinned_for_the_starts_only():
    X, y, _ = numbers(n=420, unlabelled=20)
    model = TransductiveGPRegressor(matching=0, n_restarts=1, random_state=0).fit(X, y)
    assert model.converged_
    assert len(model.answer_.diagnostics["starts"]) == 2


@pytest.mark.parametrize("label", [7.0, 0.1, 7e-9])
def test_equal_labels(label):
    """The answer is that label; errors are 0, the labels' spread, and a warning says what that is worth."""
    X, y, _ = numbers(n=20, unlabelled=5)
    y[~np.isnan(y)] = label
    with pytest.warns(UserWarning, match="All labels are equal: standard errors are 0"):
        model = TransductiveGPRegressor(random_state=0).fit(X, y)
    np.testing.assert_allclose(model.transduction_, label)
    assert "all labels are equal" in model.answer_.diagnostics["choice"]
    assert (model.answer_.standard_errors == 0.0).all()
    assert (model.predict(X, return_std=True)[1] == 0.0).all()
    assert (model.predict(X, return_cov=True)[1] == 0.0).all()
    assert model.answer_.guarantee.reasons[0].startswith("All labels are equal")
    assert model.noise_ == 0.0
    np.testing.assert_allclose(model.matched_mean_, label)
    assert model.matched_covariance_.shape == (5, 5)


def test_one_label_and_one_row():
    with pytest.warns(UserWarning, match="All labels are equal"):
        model = TransductiveGPRegressor(random_state=0).fit([[0.0], [1.0]], [3.0, np.nan])
    assert model.transduction_[1] == pytest.approx(3.0)
    assert model.answer_.standard_errors[0] == 0.0


def test_constant_features_have_no_relevance():
    X, y, _ = numbers(n=30, unlabelled=8)
    X[:, 1] = 4.0
    model = TransductiveGPRegressor(matching=0, random_state=0).fit(X, y)
    assert model.relevance_[1] == 0.0
    flat = TransductiveGPRegressor(matching=0, random_state=0).fit(np.ones((30, 2)), y)
    np.testing.assert_array_equal(flat.relevance_, 0.0)
    np.testing.assert_allclose(flat.answer_.values, flat.answer_.values[0])


@pytest.mark.parametrize("factor", [1e-120, 1e120])
def test_extreme_units(factor):
    X, y, _ = numbers(n=30, unlabelled=8)
    one = TransductiveGPRegressor(matching=0, random_state=0).fit(X, y)
    other = TransductiveGPRegressor(matching=0, random_state=0).fit(X * factor, y * factor)
    np.testing.assert_allclose(other.transduction_ / factor, one.transduction_, rtol=1e-6)
    beyond = TransductiveGPRegressor(matching=0, random_state=0).fit(X, y * factor**1.4)
    assert np.isfinite(beyond.predict(X, return_std=True)).all()
    if factor < 1:
        assert np.all(np.diag(beyond.covariance_) == 0.0)
        return
    for name in ("covariance_", "matched_covariance_"):
        with pytest.raises(ValueError, match="too large for double precision: divide the labels"):
            getattr(beyond, name)
    with pytest.raises(ValueError, match="too large for double precision: divide the labels"):
        beyond.predict(X, return_cov=True)


def test_without_standardising_the_start_follows_the_rows():
    X, y, _ = numbers(n=40, unlabelled=10)
    plain, scaled = (
        TransductiveGPRegressor(matching=0, prior=(0, 0), standardize=False, random_state=0).fit(
            X * f, y
        )
        for f in (1.0, 1e6)
    )
    np.testing.assert_allclose(scaled.transduction_, plain.transduction_, rtol=1e-3)
    shifted = TransductiveGPRegressor(
        matching=0, prior=(0, 0), standardize=False, random_state=0
    ).fit(X + 1e9, y)
    np.testing.assert_allclose(shifted.transduction_, plain.transduction_, rtol=1e-3)
    np.testing.assert_allclose(shifted.predict(X + 1e9), plain.predict(X), rtol=1e-3)
    constant = np.column_stack([X, np.full(40, 3.0)])
    assert (
        TransductiveGPRegressor(matching=0, standardize=False).fit(constant, y).relevance_[3] == 0.0
    )


@given(seeds)
def test_dependence_is_of_values_not_of_their_order(seed):
    """Ties share a bin, so the order of rows says nothing; a coin explains little, a copy of the label nearly all."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=120)
    X = np.column_stack([y, rng.integers(0, 2, size=120), np.ones(120)])
    order = np.argsort(y)
    np.testing.assert_allclose(dependence(X[order], y[order]), dependence(X, y))
    strong, coin, constant = dependence(X, y)
    assert strong > 0.85  # 0.888 to 0.957 over 3,000 seeds
    assert coin < 0.4
    assert constant == 0.0


def test_far_off_rows_are_reported():
    X, y, _ = numbers(n=40, unlabelled=10)
    X[np.flatnonzero(np.isnan(y))[:5], 1] = 1e6
    with pytest.warns(UserWarning, match="Feature 1 varies a hundred times less"):
        TransductiveGPRegressor(matching=0, n_restarts=0).fit(X, y)


def test_features_too_large_to_square():
    X, y, _ = numbers(n=40, unlabelled=10)
    plain = TransductiveGPRegressor(matching=0, n_restarts=0, standardize=False)
    with pytest.raises(ValueError, match="too large for standardize=False: set standardize=True"):
        plain.fit(X * 1e160, y)
    model = TransductiveGPRegressor(matching=0, n_restarts=0).fit(X, y)
    far = np.full((1, X.shape[1]), 1.7e308)
    value, error = model.predict(far, return_std=True)
    assert np.isfinite(value).all()
    assert np.isfinite(error).all()


# ------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"matching": -1}, "matching must be 'cv' or a number from 0"),
        ({"matching": "auto"}, "matching .a number from 0, or 'cv'. must be a number"),
        ({"slack": np.inf}, "slack .* must be a number"),
        ({"prior": 1.0}, "prior must be two numbers"),
        ({"prior": (1.0, -1)}, "two numbers of prior must be a number from 0"),
        ({"n_restarts": 2.5}, "n_restarts must be a whole number from 0"),
        ({"max_iter": 0}, "max_iter must be a whole number from 1"),
        ({"max_matched": True}, "max_matched must be a whole number"),
        ({"tol": 0.0}, "tol must be a positive number"),
        ({"solver": "newton"}, "solver must be one of 'nested', 'alternating'"),
        ({"relevance": "yes"}, "relevance must be True or False"),
        ({"standardize": 1}, "standardize must be True or False"),
        ({"n_jobs": 0}, "n_jobs must be None, a number of jobs"),
        ({"n_jobs": "2"}, "n_jobs must be None, a number of jobs"),
    ],
)
def test_bad_settings_are_refused(setting, words):
    X, y, _ = numbers(n=20, unlabelled=5)
    model = TransductiveGPRegressor(**setting)
    with pytest.raises(ValueError, match=words):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_bad_requests_are_refused():
    X, y, _ = numbers(n=20, unlabelled=5)
    model = TransductiveGPRegressor(matching=0, n_restarts=0)
    for name in ("covariance_", "matched_mean_", "matched_covariance_"):
        assert not hasattr(model, name)
    model.fit(X, y)
    with pytest.raises(RuntimeError, match="not for both"):
        model.predict(X, return_std=True, return_cov=True)
    with pytest.raises(ValueError, match="No row has a label"):
        model.fit(X, np.full(20, np.nan))
    assert not hasattr(model, "answer_")


def test_trouble_is_reported_in_words(monkeypatch):
    X, y, _ = numbers(n=30, unlabelled=8)
    with pytest.warns(ConvergenceWarning, match="stopped after max_iter=2 steps"):
        model = TransductiveGPRegressor(matching=0, max_iter=2, n_restarts=0, random_state=0).fit(
            X, y
        )
    assert not model.converged_
    with pytest.warns(ConvergenceWarning, match="stopped after max_iter=1 turns"):
        TransductiveGPRegressor(
            matching=2.0, slack=0.0, max_iter=1, solver="alternating", n_restarts=0, random_state=0
        ).fit(X, y)
    x = np.linspace(0, 6, 20)
    with pytest.warns(ConvergenceWarning, match="noise ran into its lower bound"):
        TransductiveGPRegressor(matching=0, prior=(0, 0), n_restarts=0, random_state=0).fit(
            x[:, None], np.sin(x)
        )
    with pytest.warns(ConvergenceWarning, match="A relevance ran into its upper bound"):
        TransductiveGPRegressor(
            matching=1e6, slack=0.0, prior=(0, 0), n_restarts=1, random_state=0
        ).fit(x[:, None], np.where(np.arange(20) % 2, np.nan, np.sin(x)))
    with pytest.warns(UserWarning, match="20,000 labels needs about 13 GB"):
        announce_cost(20_000)


def test_a_failed_start_does_not_spoil_the_others():
    X, y_l, log_parameters = small(3, n=12)

    class Broken(Objective):
        def __call__(self, x):
            if x[-1] > 1.0:
                raise ValueError("too noisy")
            return super().__call__(x)

    search = Search(log_parameters, log_parameters)
    good, bad = log_parameters, np.append(log_parameters[:-1], 3.0)
    found, ends = search.best(Broken(X, y_l, PRIOR), [bad, good], None)
    assert ends[0] == "too noisy"
    assert found.converged
    with pytest.raises(ValueError, match="Every start failed: too noisy"):
        search.best(Broken(X, y_l, PRIOR), [bad], None)
    assert len(search.restarts(Broken(X, y_l, PRIOR), 2, np.random.RandomState(0))) <= 2


def test_restarts_that_lead_where_the_first_does_are_given_up():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 8))
    y = np.sin(2 * X[:, 0]) + X[:, 1] / 2 + 0.3 * rng.normal(size=80)
    objective, search = Objective(X, (y - y.mean()) / y.std(), (0.0, 0.0)), Search.at(X, y)
    trap = np.append(np.full(8, 4.0), 1.0)  # where every label is noise
    starts = [search.start, search.start + 0.1, trap]
    found, ends = search.best(objective, starts, None)
    assert ["given up" in end.message for end in ends] == [False, True, False]
    lowest = min(search.descend(objective, start).objective for start in starts)
    assert found.objective == pytest.approx(lowest, abs=0.01)
    assert found.converged
    few = replace(search, max_iter=5)
    assert max(end.n_iter for end in few.best(objective, starts, None)[1]) <= 5


def test_a_descent_that_is_lost_is_not_called_converged():
    X, y_l, log_parameters = small(3, n=12)

    class Backwards(Objective):
        def __call__(self, x):
            value, gradient = super().__call__(x)
            return value, -gradient

    found = Search(log_parameters, log_parameters).descend(
        Backwards(X, y_l, PRIOR), log_parameters + 2.0
    )
    assert not found.converged
    assert found.message == "stopped where no lower point could be found"


def test_an_improper_covariance_is_refused():
    with pytest.raises(ValueError, match="not positive definite"):
        factor_of(np.asfortranarray([[1.0, 0.0], [3.0, 1.0]]), 1e-8)
    factor, jitter = factor_of(np.asfortranarray(np.ones((3, 3))), 0.0)
    assert jitter > 0.0
    np.testing.assert_allclose(np.tril(factor) @ np.tril(factor).T, np.ones((3, 3)), atol=1e-6)


def test_real_data_without_warnings():
    X, truth = (values[::2] for values in load_diabetes(return_X_y=True))
    y = np.where(np.random.default_rng(0).random(221) < 0.3, truth, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TransductiveGPRegressor(random_state=0).fit(X, y)
    missing = np.isnan(y)
    assert np.mean((model.answer_.values - truth[missing]) ** 2) < np.var(truth[missing])


@pytest.mark.parametrize("shift", [1, 5, 100, 511])
def test_the_place_of_a_row_changes_no_bit(shift):
    """In blocks of the size in which rows outside of a fit are answered, on one thread."""
    rng = np.random.default_rng(0)
    X, points, coefficients = (
        rng.normal(size=(4608, 58)),
        rng.normal(size=(500, 58)),
        rng.normal(size=500),
    )
    relevance = rng.uniform(0.0, 0.1, size=58)
    with few_threads(0):
        whole = kernel_times(X, points, relevance, coefficients)
        moved = kernel_times(np.roll(X, shift, axis=0), points, relevance, coefficients)
    assert np.roll(moved, -shift).tobytes() == whole.tobytes()
