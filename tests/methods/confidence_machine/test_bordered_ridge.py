"""Guarded factors, and bordered ridge regression against plain refits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from tests import brute
from tests.strategies import problems
from transduce.device.kernels import Kernel
from transduce.device.linalg import guarded_cholesky, inverse_diagonal
from transduce.methods.confidence_machine.bordered_ridge import DualRidge, PrimalRidge


def test_guard_is_idle_on_proper_matrices():
    A = np.cov(np.random.default_rng(0).normal(size=(5, 50)))
    factor, jitter = guarded_cholesky(A)
    assert jitter == 0.0
    np.testing.assert_allclose(factor @ factor.T, A, rtol=1e-12)
    np.testing.assert_allclose(inverse_diagonal(factor), np.diag(np.linalg.inv(A)), rtol=1e-10)


def test_guard_reports_what_it_added():
    A = np.ones((40, 40)) - 1e-15 * np.eye(40)
    factor, jitter = guarded_cholesky(A)
    assert 0.0 < jitter < 1e-9
    np.testing.assert_allclose(factor @ factor.T, A, atol=2 * jitter)


def test_guard_gives_up_on_improper_matrices():
    with pytest.raises(np.linalg.LinAlgError, match="by more than rounding"):
        guarded_cholesky(np.diag([1.0, -0.5]))
    with pytest.raises(np.linalg.LinAlgError, match="zero on its diagonal"):
        inverse_diagonal(np.zeros((2, 2)))


@given(problems)
def test_border_is_the_inverse_of_the_bordered_matrix(problem):
    """Prediction, pivot and weights are read off the refitted sample of l + 1 rows."""
    K, n = problem.K, len(problem.y)
    fit = DualRidge.fit(
        K[:n, :n], problem.y, ridge=problem.ridge, fit_intercept=problem.fit_intercept
    )
    prediction, pivot, weights = fit.border(K[n:, :n], K[n:, n])
    c, b = brute.ridge_fit(K[:n, :n], problem.y, problem.ridge, problem.fit_intercept)
    np.testing.assert_allclose(prediction, float(K[n, :n] @ c + b), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(fit.predict(K[n:, :n]), prediction)
    H = np.linalg.inv(K + problem.ridge * np.eye(n + 1))
    if problem.fit_intercept:
        h = H.sum(axis=1)
        H = H - np.outer(h, h) / h.sum()
    np.testing.assert_allclose(1 / pivot, H[n, n], rtol=1e-6)
    np.testing.assert_allclose(-weights[0] / pivot, H[n, :n], rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(weights @ problem.y, prediction, rtol=1e-6, atol=1e-7)
    inner = fit.diagonal() + weights[0] ** 2 / pivot
    np.testing.assert_allclose(inner, np.diag(H)[:n], rtol=1e-5, atol=1e-8)


@given(problems)
def test_primal_equals_dual(problem):
    X, y = problem.X[:-1], problem.y
    K = Kernel("linear").matrix(problem.X, problem.X)
    n = len(y)
    settings = {"ridge": problem.ridge, "fit_intercept": problem.fit_intercept}
    dual, primal = DualRidge.fit(K[:n, :n], y, **settings), PrimalRidge.fit(X, y, **settings)
    border = dual.border(K[n:, :n], K[n:, n])
    prediction, pivot, z = primal.directions(problem.X[-1:])
    np.testing.assert_allclose(primal.residuals, dual.residuals, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(primal.diagonal(), dual.diagonal(), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(prediction, border.prediction, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(pivot, border.pivot, rtol=1e-6)
    np.testing.assert_allclose(primal.weights(z), border.weights, rtol=1e-5, atol=1e-8)


def test_several_label_columns_share_a_fit():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(12, 2)), rng.normal(size=(12, 3))
    for fit_intercept in (False, True):
        settings = {"ridge": 0.5, "fit_intercept": fit_intercept}
        K = Kernel("rbf").matrix(X, X)
        together = DualRidge.fit(K[:10, :10], Y[:10], **settings)
        primal = PrimalRidge.fit(X[:10], Y[:10], **settings)
        for column in range(3):
            alone = DualRidge.fit(K[:10, :10], Y[:10, column], **settings)
            np.testing.assert_allclose(together.residuals[:, column], alone.residuals, atol=1e-12)
            np.testing.assert_allclose(
                together.predict(K[10:, :10])[:, column], alone.predict(K[10:, :10])
            )
            alone_primal = PrimalRidge.fit(X[:10], Y[:10, column], **settings)
            np.testing.assert_allclose(
                primal.directions(X[10:])[0][:, column], alone_primal.predict(X[10:])
            )


def test_huge_offsets_do_not_spoil_an_intercept():
    """Labels around 1e9: the residuals are those of the labels less 1e9."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), np.round(rng.normal(size=20), 3)
    K = Kernel("rbf").matrix(X, X)
    for build, rows in ((DualRidge.fit, K), (PrimalRidge.fit, X)):
        near = build(rows, y, ridge=1.0, fit_intercept=True)
        far = build(rows, y + 1e9, ridge=1.0, fit_intercept=True)
        np.testing.assert_allclose(far.residuals, near.residuals, atol=1e-6)


def test_a_ridge_below_rounding_is_raised_and_said():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(10, 2)), 3, axis=0)
    K = Kernel("rbf", 5.0).matrix(X, X)
    with pytest.warns(UserWarning, match="too small for these rows in double precision"):
        fit = DualRidge.fit(K, X[:, 0], ridge=1e-18, fit_intercept=False)
    assert fit.jitter > 0.0
    assert fit.ridge == pytest.approx(fit.jitter)


def test_improper_kernels_are_refused():
    with pytest.raises(ValueError, match="not positive definite"):
        DualRidge.fit(np.diag([1.0, -3.0]), np.ones(2), ridge=1.0, fit_intercept=False)
    fit = DualRidge.fit(np.eye(2), np.ones(2), ridge=0.5, fit_intercept=False)
    with pytest.raises(ValueError, match="not positive definite"):
        fit.border(np.array([[3.0, 3.0]]), np.array([1.0]))
