"""Gaussian process regression with very many labels: through the process at some of the labelled rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from transduce.core import arrays
from transduce.core.types import Array
from transduce.device.linalg import guarded_cholesky
from transduce.methods.gaussian_process.process import Posterior, cross_kernel, kernel_times
from transduce.methods.gaussian_process.search import even_steps

N_INDUCING = 500
BLOCK = 4096


def fit_posterior(
    X_l: Array, y_l: Array, log_parameters: Array, max_exact: int
) -> Posterior | InducedPosterior:
    """Return the process with fixed parameters: exact, or through inducing points with more labels than `max_exact`.

    On a device it is exact with any number of labels.
    """
    if arrays.is_foreign(X_l) or len(y_l) <= max_exact:
        return Posterior.fit(X_l, y_l, log_parameters)
    return InducedPosterior.fit(X_l, y_l, log_parameters, X_l[even_steps(len(y_l), N_INDUCING)])


class InducedPosterior(NamedTuple):
    """Gaussian process regression in which labels tell of each other only through p inducing points.

    Notes
    -----
    The deterministic training conditional of Seeger, Williams and Lawrence (2003). With the points at all labelled rows
    it is the exact process.
    """

    points: Array  # (p, d)
    relevance: Array  # (d,) or (1,)
    noise: float  # variance of the noise; what was added to the diagonal of the points' covariance
    jitter: float  # variance of the noise; what was added to the diagonal of the points' covariance
    factor: Array  # (p, p) lower Cholesky factor of the points' covariance
    inner: Array  # (p, p) lower Cholesky factor of ``I + V V' / noise`` with ``V = factor^-1 K_pl``
    weights: Array  # (p,) ``inner^-1 V y / noise``
    coefficients: Array  # (p,) ``factor'^-1 inner'^-1 weights``
    log_likelihood: float  # log density of the labels in this model

    @classmethod
    def fit(cls, X_l: Array, y_l: Array, log_parameters: Array, points: Array) -> InducedPosterior:
        """Project the labels on the process at the points, some rows at a time."""
        parameters = np.exp(log_parameters)
        relevance, noise = parameters[:-1], float(parameters[-1])
        factor, jitter = guarded_cholesky(cross_kernel(points, points, relevance))
        B, right = np.eye(len(points)), np.zeros(len(points))
        for part in _blocks(len(X_l)):
            V = solve_triangular(factor, cross_kernel(points, X_l[part], relevance), lower=True)
            B += V @ V.T / noise
            right += V @ y_l[part] / noise
        inner = np.asarray(np.linalg.cholesky(B), dtype=float)
        weights = solve_triangular(inner, right, lower=True)
        fit = float(y_l @ y_l) / noise - float(weights @ weights)
        density = -0.5 * (fit + len(y_l) * np.log(2.0 * np.pi * noise)) - float(
            np.log(inner.diagonal()).sum()
        )
        outer = solve_triangular(inner, weights, lower=True, trans=1)
        coefficients = solve_triangular(factor, outer, lower=True, trans=1)
        return cls(points, relevance, noise, jitter, factor, inner, weights, coefficients, density)

    def mean(self, X: Array) -> Array:
        """Return the mean of the labels at rows (m, d), shape (m,)."""
        return kernel_times(X, self.points, self.relevance, self.coefficients)

    def variance(self, X: Array) -> Array:
        """Return the variance of each label, noise included, shape (m,)."""
        return self.predict(X)[1] ** 2

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of each label, shape (m,), some rows at a time to spare memory."""
        mean, variance = np.empty(len(X)), np.empty(len(X))
        for part in _blocks(len(X)):
            outer, own = self._halves(X[part])
            mean[part] = own.T @ self.weights
            variance[part] = 1.0 - np.einsum("ij,ij->j", outer, outer) + np.einsum("ij,ij->j", own, own)
        return mean, np.sqrt(np.maximum(variance, 0.0) + self.noise)

    def covariance(self, X: Array) -> Array:
        """Return the covariance of the labels, noise included, shape (m, m)."""
        outer, own = self._halves(X)
        C = cross_kernel(X, X, self.relevance) - outer.T @ outer + own.T @ own
        C.flat[:: len(C) + 1] = np.maximum(C.diagonal(), 0.0) + self.noise
        return C

    def _halves(self, X: Array) -> tuple[Array, Array]:
        """Return ``factor^-1 K_pa`` and ``inner^-1`` times that, shape (p, m)."""
        outer = solve_triangular(self.factor, cross_kernel(self.points, X, self.relevance), lower=True)
        return outer, solve_triangular(self.inner, outer, lower=True)


def _blocks(n: int) -> Iterator[slice]:
    for start in range(0, n, BLOCK):
        yield slice(start, min(start + BLOCK, n))
