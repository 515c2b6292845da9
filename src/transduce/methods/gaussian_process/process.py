"""Gaussian processes with a relevance for every feature: covariances, likelihoods and their gradients.

The kernel is ``k(x, x') = exp(-sum_j (relevance_j (x_j - x'_j))^2)`` and a label is the process plus noise. Everything
here takes ``log_parameters``: the logarithm of each relevance, then of the noise variance; shape (d + 1,), or (2,)
where one relevance is common to all features.

Matrices are symmetric and kept as Fortran-ordered lower triangles, what lies above the diagonal being rubbish: LAPACK
needs no more, and at some thousand rows memory is what limits. All products go to scipy's BLAS, because the threads
of numpy's and scipy's wait for each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from transduce.core import arrays
from transduce.core.types import Array
from transduce.device import likelihood, linalg, memory
from transduce.device.linalg import guarded_cholesky
from transduce.methods.gaussian_process.moments import Match, Spread, match_moments

# Their kernel values with some hundred points stay in the processor's cache; a multiple of what matrix products compute
# at a time, so that the place of a row among others changes no bit of its answer.
FEW_ROWS = 576
PANEL = 128  # columns of a triangle that are worked on at once
LARGEST_HALVED = 700  # beyond, halving gains little and its copies take memory
SINGULAR = (
    "The covariance matrix is not positive definite even with a millionth added to its diagonal: features or labels "
    "are too extreme for double precision."
)


def cross_kernel(X: Array, Z: Array, relevance: Array) -> Array:
    """Return the kernel values of rows (n, d) and rows (k, d).

    Shapes: X, Z (n, d), relevance (d,) or (1,); returns (n, k).
    """
    X, Z = X * relevance, Z * relevance
    K = blas.dgemm(2.0, X.T, Z.T, trans_a=1)
    K -= np.einsum("ij,ij->i", X, X)[:, None]
    K -= np.einsum("ij,ij->i", Z, Z)
    np.minimum(K, 0.0, out=K)
    return np.exp(K, out=K)


def kernel_times(X: Array, points: Array, relevance: Array, coefficients: Array) -> Array:
    """Return the kernel values of rows (m, d) and points (p, d), times coefficients (p,), a few rows at a time.

    The squares of both are columns of one matrix product, so that little is left to do besides it.

    Shapes: X, points (m, d), relevance (d,) or (1,), coefficients (p,); returns (m,).
    """
    Z = points * relevance
    right = np.column_stack([2.0 * Z, np.ones(len(Z)), -np.einsum("ij,ij->i", Z, Z)]).T
    found = np.empty(len(X))
    for start in range(0, len(X), FEW_ROWS):
        rows = X[start : start + FEW_ROWS] * relevance
        left = np.column_stack([rows, -np.einsum("ij,ij->i", rows, rows), np.ones(len(rows))])
        K = np.minimum(left @ right, 0.0)
        found[start : start + FEW_ROWS] = np.exp(K, out=K) @ coefficients
    return found


def lower_kernel(X: Array, relevance: Array) -> Array:
    """Return the lower triangle of the kernel matrix of rows (n, d), shape (n, n); rubbish above the diagonal.

    Shapes: X (n, d), relevance (d,) or (1,); returns (n, n).
    """
    X = X * relevance
    K = blas.dsyrk(2.0, X.T, trans=1, lower=1)
    squares = np.einsum("ij,ij->i", X, X)
    for j in range(0, len(K), PANEL):  # of some columns at once, little more than the triangle
        panel = K[j:, j : j + PANEL]
        panel -= squares[j:, None]
        panel -= squares[j : j + PANEL]
        np.minimum(panel, 0.0, out=panel)
        np.exp(panel, out=panel)
    K.flat[:: len(K) + 1] = 1.0
    return K


def lower_factor(K: Array, noise: float) -> tuple[Array, float]:
    """Return the lower Cholesky factor of ``K + noise I``, rubbish above its diagonal, and any jitter added.

    Shapes: K (n, n); returns factor (n, n).
    """
    C = K.copy(order="F")
    C.flat[:: len(C) + 1] += noise
    factor, info = lapack.dpotrf(C, lower=1, clean=0, overwrite_a=1)
    if info == 0:
        return factor, 0.0
    whole = np.tril(K) + np.tril(K, -1).T
    whole.flat[:: len(C) + 1] += noise
    try:
        factor, jitter = guarded_cholesky(whole)
    except np.linalg.LinAlgError:
        raise ValueError(SINGULAR) from None
    return np.asfortranarray(factor), jitter


def lower_inverse(factor: Array) -> Array:
    """Return the lower triangle of ``(L L')^-1``, rubbish above the diagonal; the factor ``L`` is overwritten.

    Shapes: factor (n, n); returns (n, n).
    """
    if len(factor) > LARGEST_HALVED:
        return lapack.dpotri(factor, lower=1, overwrite_c=1)[0]
    _invert_triangle(factor)
    return lapack.dlauum(factor, lower=1, overwrite_c=1)[0]


def _invert_triangle(L: Array) -> None:
    """Invert a lower triangle in place by halves: in LAPACK's own way it takes twice as long for some hundred rows."""
    if len(L) <= PANEL // 2:
        L[...] = lapack.dtrtri(L, lower=1)[0]
        return
    k = len(L) // 2
    _invert_triangle(L[:k, :k])
    _invert_triangle(L[k:, k:])
    below = blas.dtrmm(-1.0, L[k:, k:], L[k:, :k], lower=1)
    L[k:, :k] = blas.dtrmm(1.0, L[:k, :k], below, side=1, lower=1, overwrite_b=1)


def _term(factor: Array, z: Array, root: Array | None) -> tuple[float, Array]:
    """Return ``L = log|C|/2 + tr(C^-1 S)/2`` and its derivative ``(C^-1 - C^-1 S C^-1)/2``, lower triangle.

    ``S = z z' + blockdiag(0, R R')``, the root ``R`` belonging to the last rows. The factor of ``C`` is overwritten.
    """
    value = float(np.log(factor.diagonal()).sum())
    weights = lapack.dpotrs(factor, z, lower=1)[0]
    value += 0.5 * float(z @ weights)
    inverse = lower_inverse(factor)
    if root is None:
        inverse *= 0.5
    else:
        m = len(root)
        U = np.empty((len(z), m), order="F")
        U[:-m] = blas.dgemm(1.0, inverse[-m:, :-m], root, trans_a=1)
        U[-m:] = blas.dsymm(1.0, inverse[-m:, -m:], root, lower=1)
        value += 0.5 * float(np.einsum("ij,ij->", root, U[-m:]))
        inverse = blas.dsyrk(-0.5, U, beta=0.5, c=inverse, lower=1, overwrite_c=1)
    return value, blas.dsyr(-0.5, weights, a=inverse, lower=1, overwrite_a=1)


@dataclass(frozen=True)
class Objective:
    """What moment matching minimises over the parameters, with its gradient.

    ``-log p(y, parameters) + matching * (KL(q, p) + |E_q phi - target|^2 / (2 slack))``: the negative log posterior of
    Gaussian process regression (without ``l/2 log 2 pi``), and how far the predictive distribution ``p`` of the
    missing labels is from one, ``q``, whose mean and second moment are those of the labels.

    Notes
    -----
    By ``log p(unlabelled | labelled) = log p(all) - log p(labelled)`` the terms that move with the parameters are
    ``(1 - matching) L(C_ll, y y') + matching L(C, S) - log prior`` with ``L(C, S) = log|C|/2 + tr(C^-1 S)/2``, ``C``
    the covariance of all labels and ``S`` their second moment under q. The gradient is the same whether q is held or
    found anew: where q is best, the objective does not move with it to first order.

    One evaluation takes one Cholesky factor of all rows, whose leading block is the factor of the labelled rows and
    whose last block is that of the predictive covariance; two inverses; an eigendecomposition of the predictive
    covariance if q is found anew; and for all relevances together one ``n x n x d`` product: the derivative with
    respect to ``log relevance_j`` is ``-4 relevance_j^2 (w'x_j^2 - x_j'W x_j)`` with ``W`` the derivative with respect
    to ``C`` times ``K``, entry by entry, and ``w = W 1``.
    """

    X: Array  # (l + m, d) labelled rows first, unlabelled rows last
    y_l: Array  # (l,) labels
    prior: tuple[float, float]
    matching: float = 0.0  # weight of the match; with 0 the unlabelled rows play no part
    slack: float = 0.0  # how loose the match may be
    q: Match | None = None  # none
    _columns: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if arrays.is_foreign(self.X):
            return
        used = self.X if self.looks_at_unlabelled else self.X[: len(self.y_l)]
        columns = np.ones((len(used), self.X.shape[1] + 1), order="F")
        columns[:, :-1] = used
        object.__setattr__(self, "_columns", columns)

    @property
    def looks_at_unlabelled(self) -> bool:
        """Whether there is something to match."""
        return self.matching > 0.0 and self.X.shape[0] > self.y_l.shape[0]

    def __call__(self, log_parameters: Array) -> tuple[float, Array]:
        """Return the objective and its gradient, which has the shape of `log_parameters`."""
        if arrays.is_foreign(self.X):
            return likelihood.evaluate(self, log_parameters)
        parameters = np.exp(log_parameters)
        relevance, noise = parameters[:-1], float(parameters[-1])
        K = lower_kernel(self._columns[:, :-1], relevance)
        factor, _ = lower_factor(K, noise)
        value, M = self._matched(factor) if self.looks_at_unlabelled else _term(factor, self.y_l, None)
        trace = float(M.diagonal().sum())
        slopes = -4.0 * relevance**2 * self._slopes(M, K)
        if len(relevance) == 1:
            slopes = slopes.sum(keepdims=True)
        shape, rate = self.prior
        value += float(np.sum(rate * parameters - shape * log_parameters))
        return value, np.append(slopes, noise * trace) + rate * parameters - shape

    def match(self, log_parameters: Array) -> Match:
        """Return the best q for some parameters: the q-step."""
        parameters = np.exp(log_parameters)
        if arrays.is_foreign(self.X):
            K = likelihood.own_kernel(self.X, parameters[:-1])
            return self.match_factor(likelihood.factor(K, float(parameters[-1]))[0])
        return self._match(lower_factor(lower_kernel(self.X, parameters[:-1]), float(parameters[-1]))[0])

    def _match(self, factor: Array) -> Match:
        """Read the predictive distribution off the joint factor, and tilt it."""
        n_labelled = len(self.y_l)
        half = blas.dtrsv(np.asfortranarray(factor[:n_labelled, :n_labelled]), self.y_l, lower=1)
        corner = np.tril(factor[n_labelled:, n_labelled:])
        p = Spread.of(factor[n_labelled:, :n_labelled] @ half, blas.dgemm(1.0, corner, corner, trans_b=1))
        target = np.array([self.y_l.mean(), -0.5 * np.mean(self.y_l**2)])
        return match_moments(p, target, slack=self.slack)

    def match_factor(self, factor: Any) -> Match:
        """Find the best q from the joint factor, on a device."""
        xp, y_l = arrays.namespace(factor), self.y_l
        p = Spread.of(*likelihood.predictive(self, factor))
        target = np.array([float(xp.mean(y_l)), -0.5 * float(xp.mean(y_l**2))])
        return match_moments(p, target, slack=self.slack)

    def _matched(self, factor: Array) -> tuple[float, Array]:
        """Return the value without prior and the derivative with respect to the covariance, lower triangle."""
        n_labelled = len(self.y_l)
        q = self._match(factor) if self.q is None else self.q
        labelled_factor = factor[:n_labelled, :n_labelled].copy(order="F")
        value, M = _term(factor, np.concatenate([self.y_l, q.mean]), q.root)
        value = self.matching * (value - 0.5 * (len(q.mean) + q.log_determinant) + q.penalty)
        M *= self.matching
        if self.matching != 1.0:
            part, M_ll = _term(labelled_factor, self.y_l, None)
            value += (1.0 - self.matching) * part
            M_ll *= 1.0 - self.matching
            M[:n_labelled, :n_labelled] += M_ll
        return value, M

    def _slopes(self, M: Array, K: Array) -> Array:
        """Return ``w'x_j^2 - x_j'W x_j`` for every feature."""
        W = np.multiply(M, K, out=K)
        products = blas.dsymm(1.0, W, self._columns, lower=1)
        X = self._columns[:, :-1]
        return products[:, -1] @ X**2 - np.einsum("ij,ij->j", X, products[:, :-1])


class Posterior(NamedTuple):
    """Gaussian process regression with fixed parameters, ready to predict."""

    X_l: Array  # (l, d)
    relevance: Array  # (d,) or (1,)
    noise: float  # variance of the noise, and the part of it that rounding made necessary: 0.0 as a rule
    jitter: float  # variance of the noise, and the part of it that rounding made necessary: 0.0 as a rule
    factor: Array  # (l, l) lower Cholesky factor of the labels' covariance
    weights: Array  # (l,) ``C_ll^-1 y``
    log_likelihood: float  # log density of the labels

    @classmethod
    def fit(cls, X_l: Array, y_l: Array, log_parameters: Array) -> Posterior:
        """Factorise the covariance of the labels."""
        parameters = np.exp(log_parameters)
        relevance, noise = parameters[:-1], float(parameters[-1])
        if arrays.is_foreign(X_l):
            factor, jitter = likelihood.factor(likelihood.own_kernel(X_l, relevance), noise)
            weights = linalg.cholesky_solve(factor, y_l)
            density = -0.5 * float(y_l @ weights) - likelihood.log_diagonal(factor)
        else:
            factor, jitter = lower_factor(lower_kernel(X_l, relevance), noise)
            weights = lapack.dpotrs(factor, y_l, lower=1)[0]
            density = -0.5 * float(y_l @ weights) - float(np.log(factor.diagonal()).sum())
        density -= 0.5 * y_l.shape[0] * np.log(2.0 * np.pi)
        return cls(X_l, relevance, noise + jitter, jitter, factor, weights, density)

    def mean(self, X: Array) -> Array:
        """Return the mean of the labels at rows (m, d), shape (m,)."""
        if arrays.is_foreign(X):
            return likelihood.cross_kernel(X, self.X_l, self.relevance) @ self.weights
        return kernel_times(X, self.X_l, self.relevance, self.weights)

    def variance(self, X: Array) -> Array:
        """Return the variance of each label, noise included, shape (m,)."""
        half = self._half(X)
        if arrays.is_foreign(X):
            xp = arrays.namespace(X)
            rest = 1.0 - xp.sum(half * half, axis=0)
            return xp.where(rest > 0.0, rest, xp.zeros_like(rest)) + self.noise
        return np.maximum(1.0 - np.einsum("ij,ij->j", half, half), 0.0) + self.noise

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of each label, shape (m,), some rows at a time to spare memory."""
        size, n = max(1, 2**25 // self.X_l.shape[0]), X.shape[0]
        if arrays.is_foreign(X):
            size = max(size, int(memory.work_bytes(X, 2.0**28) // (32 * self.X_l.shape[0])))
        mean, variance = arrays.zeros((n,), X), arrays.zeros((n,), X)
        for start in range(0, n, size):
            part = slice(start, min(start + size, n))
            mean[part], variance[part] = self.mean(X[part, :]), self.variance(X[part, :])
        return mean, arrays.namespace(X).sqrt(variance)

    def covariance(self, X: Array) -> Array:
        """Return the covariance of the labels, noise included, shape (m, m)."""
        if X.shape[0] == 0:
            return arrays.zeros((0, 0), X)
        half = self._half(X)
        if arrays.is_foreign(X):
            xp, C = arrays.namespace(X), likelihood.own_kernel(X, self.relevance) - half.T @ half
            own = xp.eye(X.shape[0], dtype=xp.bool, **arrays.on_device(X))
            C = xp.where(own & (C < 0.0), xp.zeros_like(C), C)
            return linalg.shifted(C, self.noise)
        C = lower_kernel(X, self.relevance)
        C = blas.dsyrk(-1.0, half, beta=1.0, c=C, trans=1, lower=1, overwrite_c=1)
        C = np.tril(C) + np.tril(C, -1).T
        diagonal = C.diagonal()
        C.flat[:: len(C) + 1] = np.maximum(diagonal, 0.0) + self.noise
        return C

    def _half(self, X: Array) -> Array:
        """Return ``L^-1 K_la``, shape (l, m)."""
        if arrays.is_foreign(X):
            K_la = likelihood.cross_kernel(self.X_l, X, self.relevance)
            return linalg.triangular_solve(self.factor, K_la)
        return blas.dtrsm(1.0, self.factor, cross_kernel(self.X_l, X, self.relevance), lower=1, overwrite_b=1)
