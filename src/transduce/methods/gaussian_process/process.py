"""Gaussian processes with a relevance for every feature: likelihoods with their gradients, and predictions.

The kernel is ``k(x, x') = exp(-sum_j (relevance_j (x_j - x'_j))^2)`` and a label is the process plus noise. Everything
here takes ``log_parameters``: the logarithm of each relevance, then of the noise variance; shape (d + 1,), or (2,)
where one relevance is common to all features. Matrices are those of `triangles`, or of `transduce.device.likelihood`
where the rows live on a device; both have the same functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from transduce.core import arrays
from transduce.core.types import AnyArray, Array
from transduce.device import likelihood, linalg, memory
from transduce.device.kernels import near_distances
from transduce.methods.gaussian_process import triangles
from transduce.methods.gaussian_process.triangles import cross_kernel, kernel_times

N_INDUCING = 500
BLOCK = 4096
N_MATRICES = 6  # of n x n numbers that live at once on a device
MAX_STEPS = 200  # of matching


@dataclass(frozen=True)
class Spread:
    """A normal distribution ``p = N(mu, Sigma)`` of m labels, in the coordinates that make ``Sigma`` diagonal."""

    variances: Array  # (m,) eigenvalues ``s`` of ``Sigma``, all positive
    vectors: Array  # (m, m) eigenvectors ``V``
    mean: Array  # (m,) ``V'mu``
    ones: Array  # (m,) ``V'1``

    @classmethod
    def of(cls, mean: Array, covariance: Array) -> Spread:
        """Diagonalise the covariance; on a device only the vectors stay there, the rest are m numbers each."""
        values, vectors = linalg.eigh(covariance)
        sums = arrays.namespace(vectors).sum(vectors, axis=0)
        variances, projected, ones = (
            arrays.to_numpy(part) for part in (values, mean @ vectors, sums)
        )
        floor = len(variances) * np.finfo(float).eps * float(variances[-1])
        return cls(np.maximum(variances, floor), vectors, projected, ones)


@dataclass(frozen=True)
class Match:
    """The tilted distribution ``q = p exp(<theta, phi> - g(theta))`` that matches the moments."""

    theta: Array  # (2,) multipliers of the mean label and of minus half the mean squared label
    mean: Array  # (m,) mean of q
    root: Array  # (m, m) ``R`` with ``R R'`` the covariance of q
    log_determinant: float  # of the covariance of q
    divergence: (
        float  # kullback-Leibler divergence of p from q, plus ``|E_q phi - target|^2 / (2 slack)``
    )
    penalty: float  # the second of these terms; 0 for an exact match
    misfit: Array  # (2,) ``E_q phi - target``, which is ``-slack theta``

    @property
    def covariance(self) -> Array:
        """Covariance of q, shape (m, m)."""
        return self.root @ self.root.T


def tilt(p: Spread, theta: Array) -> tuple[float, Array, Array]:
    """Return ``g(theta)``, the log of the tilted mass, with its gradient (2,) and Hessian (2, 2)."""
    # In the coordinates of `Spread` q is ``N((nu + t_1 s u) / w, s / w)`` with ``w = 1 + t_2 s`` and ``t = theta / m``.
    m = len(p.variances)
    t1, t2 = theta / m
    w = 1.0 + t2 * p.variances
    if not w.min() > 0.0:
        return np.inf, np.zeros(2), np.eye(2)
    variance = p.variances / w
    mean = (p.mean + t1 * p.variances * p.ones) / w
    # (nu + t1 s u)^2 / (s w) - nu^2 / s with the parts that cancel taken out: s may be tiny.
    squares = t1 * p.ones * (2.0 * p.mean + t1 * p.variances * p.ones) / w - t2 * p.mean**2 / w
    value = 0.5 * float(np.sum(squares) - np.sum(np.log1p(t2 * p.variances)))
    gradient = np.array([p.ones @ mean, -0.5 * float(np.sum(variance + mean**2))]) / m
    cross = -float(np.sum(p.ones * variance * mean))
    corner = float(np.sum(0.5 * variance**2 + mean**2 * variance))
    hessian = np.array([[float(np.sum(p.ones**2 * variance)), cross], [cross, corner]]) / m**2
    return value, gradient, hessian


def match_moments(p: Spread, target: Array, *, slack: float) -> Match:
    """Find the distribution nearest to `p` whose moments are near `target` (2,): the q-step."""
    # ``theta`` minimises the convex ``g(theta) - <target, theta> + slack/2 |theta|^2``, by Newton steps cut back until
    # they descend; each costs ``O(m)``.
    theta = np.zeros(2)
    value, gradient, hessian = _penalised(p, theta, target, slack)
    n_steps, decrement = 0, np.inf
    while decrement > 1e-18 and n_steps < MAX_STEPS:
        n_steps += 1
        step = -np.linalg.solve(hessian, gradient)
        decrement = -float(gradient @ step)
        length = 1.0
        trial = _penalised(p, theta + step, target, slack)
        # Near the minimum the value's digits no longer show the descent; full steps converge quadratically there.
        while decrement > 1e-9 and not trial[0] <= value - 0.25 * length * decrement:
            length *= 0.5
            trial = _penalised(p, theta + length * step, target, slack)
        theta = theta + length * step
        value, gradient, hessian = trial
    value, gradient, _ = tilt(p, theta)
    t1, t2 = theta / len(p.variances)
    w = 1.0 + t2 * p.variances
    variances = p.variances / w
    return Match(
        theta=theta,
        mean=p.vectors @ arrays.beside((p.mean + t1 * p.variances * p.ones) / w, p.vectors),
        root=p.vectors * arrays.beside(np.sqrt(variances), p.vectors),
        log_determinant=float(np.log(variances).sum()),
        divergence=float(target @ theta - value - 0.5 * slack * theta @ theta),
        penalty=0.5 * slack * float(theta @ theta),
        misfit=gradient - target,
    )


def _penalised(p: Spread, theta: Array, target: Array, slack: float) -> tuple[float, Array, Array]:
    value, gradient, hessian = tilt(p, theta)
    value += float(0.5 * slack * theta @ theta - target @ theta)
    return value, gradient - target + slack * theta, hessian + slack * np.eye(2)


def engine(X: Array) -> ModuleType:
    """Return the module whose matrices suit these rows."""
    return likelihood if arrays.is_foreign(X) else triangles


@dataclass(frozen=True)
class Objective:
    """What moment matching minimises over the parameters, with its gradient."""

    # ``-log p(y, parameters) + matching * (KL(q, p) + |E_q phi - target|^2 / (2 slack))``: see
    # docs/methods/gaussian_process.md. The gradient is the same whether q is held or found anew: where q is best, the
    # objective does not move with it to first order. One evaluation takes one Cholesky factor of all rows, two
    # inverses, an eigendecomposition if q is found anew, and for all relevances one ``n x n x d`` product: the
    # derivative with respect to ``log relevance_j`` is ``-4 relevance_j^2 (w'x_j^2 - x_j'W x_j)`` with ``W`` the
    # derivative with respect to ``C`` times ``K``, entry by entry, and ``w = W 1``. If one relevance is common to all,
    # it is ``-2 relevance^2 sum(W D)`` with the squared distances ``D``, which are computed once.

    X: Array  # (l + m, d) labelled rows first, unlabelled rows last
    y_l: Array  # (l,) labels
    prior: tuple[float, float]
    matching: float = 0.0  # weight of the match; with 0 the unlabelled rows play no part
    slack: float = 0.0  # how loose the match may be
    q: Match | None = None  # what is matched with; found anew in every evaluation if None

    @cached_property
    def _rows(self) -> Array:
        """The rows that are looked at."""
        return self.X if self.looks_at_unlabelled else self.X[: self.y_l.shape[0], :]

    @cached_property
    def _columns(self) -> Array:
        """These rows, and ones."""
        return engine(self.X).with_ones(self._rows)

    @cached_property
    def _distances(self) -> Array:
        return near_distances(self._rows, self._rows)[0]

    @property
    def looks_at_unlabelled(self) -> bool:
        """Whether there is something to match."""
        return self.matching > 0.0 and self.X.shape[0] > self.y_l.shape[0]

    def __call__(self, log_parameters: Array) -> tuple[float, Array]:
        """Return the objective and its gradient, which has the shape of `log_parameters`."""
        work, parameters = engine(self.X), np.exp(log_parameters)
        relevance, noise = parameters[:-1], float(parameters[-1])
        rows, common = self._rows, len(relevance) == 1 != self.X.shape[1]
        n = rows.shape[0]
        what = f"A Gaussian process with {n:,} rows"
        memory.check_fits(
            N_MATRICES * 8.0 * n**2, rows, what, "TransductiveRidge(centres=500) needs far less."
        )
        if common:
            K = arrays.namespace(self.X).exp(self._distances * float(-(relevance[0] ** 2)))
        else:
            K = work.own_kernel(self._columns[:, :-1], relevance)
        factor = work.factor_of(K, noise)[0]
        value, M = (
            self._matched(factor) if self.looks_at_unlabelled else work.term(factor, self.y_l, None)
        )
        trace = float(arrays.namespace(M).sum(arrays.diagonal(M)))
        if common:
            K *= self._distances
        slopes = (
            -2.0
            * relevance**2
            * (work.over_pairs(M, K) if common else work.slopes(M, K, self._columns))
        )
        shape, rate = self.prior
        value += float(np.sum(rate * parameters - shape * log_parameters))
        return value, np.append(slopes, 0.5 * noise * trace) + rate * parameters - shape

    def match(self, log_parameters: Array) -> Match:
        """Return the best q for some parameters: the q-step."""
        work, parameters = engine(self.X), np.exp(log_parameters)
        K = work.own_kernel(self.X, parameters[:-1])
        return self._match(work.factor_of(K, float(parameters[-1]))[0])

    def _match(self, factor: Array) -> Match:
        """Read the predictive distribution off the joint factor, and tilt it."""
        xp, y_l = arrays.namespace(self.y_l), self.y_l
        p = Spread.of(*engine(self.X).predictive(factor, y_l))
        target = np.array([float(xp.mean(y_l)), -0.5 * float(xp.mean(y_l**2))])
        return match_moments(p, target, slack=self.slack)

    def _matched(self, factor: Array) -> tuple[float, Array]:
        """Return the value without prior, and twice the derivative with respect to the covariance."""
        work, n, share = engine(self.X), self.y_l.shape[0], self.matching
        q = self._match(factor) if self.q is None else self.q
        labelled = work.leading(factor, n)
        value, M = work.term(factor, arrays.namespace(self.y_l).concat([self.y_l, q.mean]), q.root)
        value = share * (value - 0.5 * (q.mean.shape[0] + q.log_determinant) + q.penalty)
        M *= share
        if share != 1.0:
            part, M_ll = work.term(labelled, self.y_l, None)
            value += (1.0 - share) * part
            M_ll *= 1.0 - share
            M[:n, :n] += M_ll
        return value, M


class Posterior(NamedTuple):
    """Gaussian process regression with fixed parameters, ready to predict."""

    X_l: Array  # (l, d)
    relevance: Array  # (d,) or (1,)
    noise: float  # variance of the noise
    jitter: float  # the part of it that rounding made necessary: 0.0 as a rule
    factor: Array  # (l, l) lower Cholesky factor of the labels' covariance
    weights: Array  # (l,) ``C_ll^-1 y``
    log_likelihood: float  # log density of the labels

    @classmethod
    def fit(cls, X_l: Array, y_l: Array, log_parameters: Array) -> Posterior:
        """Factorise the covariance of the labels."""
        work, parameters = engine(X_l), np.exp(log_parameters)
        relevance, noise = parameters[:-1], float(parameters[-1])
        factor, jitter = work.factor_of(work.own_kernel(X_l, relevance), noise)
        weights = work.solve(factor, y_l)
        constant = 0.5 * y_l.shape[0] * np.log(2.0 * np.pi)
        density = -0.5 * float(y_l @ weights) - work.log_diagonal(factor) - constant
        return cls(X_l, relevance, noise + jitter, jitter, factor, weights, density)

    def mean(self, X: Array) -> Array:
        """Return the mean of the labels at rows (m, d), shape (m,)."""
        return engine(X).kernel_times(X, self.X_l, self.relevance, self.weights)

    def _variance(self, K: Array) -> Array:
        """Return the variance of labels, noise included, from kernel values (l, m), which are used up."""
        rest = 1.0 - arrays.column_squares(engine(K).half_solve(self.factor, K))
        xp = arrays.namespace(K)
        return xp.maximum(rest, xp.zeros_like(rest)) + self.noise

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of each label, shape (m,), some rows at a time to spare memory."""
        n_labelled, n = self.X_l.shape[0], X.shape[0]
        size = max(1, 2**25 // n_labelled, int(memory.work_bytes(X, 2.0**28) // (32 * n_labelled)))
        mean, variance = arrays.zeros((n,), X), arrays.zeros((n,), X)
        for part in arrays.blocks(n, size):
            K = self._cross(X[part, :])  # of wide rows it takes long, and is used for both
            mean[part] = K.T @ self.weights if X.shape[1] > n_labelled else self.mean(X[part, :])
            variance[part] = self._variance(K)
        return mean, arrays.namespace(X).sqrt(variance)

    def covariance(self, X: Array) -> Array:
        """Return the covariance of the labels, noise included, shape (m, m)."""
        if X.shape[0] == 0:
            return arrays.zeros((0, 0), X)
        C = engine(X).conditional(
            X, self.relevance, engine(X).half_solve(self.factor, self._cross(X))
        )
        xp, own = arrays.namespace(C), arrays.diagonal(C)
        return arrays.with_diagonal(C, xp.maximum(own, xp.zeros_like(own)) + self.noise)

    def _cross(self, X: Array) -> Array:
        """Return the kernel values of the labelled rows and of rows (m, d), shape (l, m)."""
        return engine(X).cross_kernel(self.X_l, X, self.relevance)


def even_steps(count: int, most: int) -> AnyArray:
    """Return at most so many of the numbers from 0 to `count`, at even steps."""
    return np.linspace(0, count - 1, min(count, most)).round().astype(int)


def fit_posterior(
    X_l: Array, y_l: Array, log_parameters: Array, most: int
) -> Posterior | InducedPosterior:
    """Return the process with fixed parameters: exact, or by inducing points beyond so many labels off a device."""
    if engine(X_l) is likelihood or len(y_l) <= most:
        return Posterior.fit(X_l, y_l, log_parameters)
    return InducedPosterior.fit(X_l, y_l, log_parameters, X_l[even_steps(len(y_l), N_INDUCING)])


class InducedPosterior(NamedTuple):
    """Gaussian process regression in which labels tell of each other only through p inducing points."""

    # The deterministic training conditional of Seeger, Williams and Lawrence (2003). With the points at all labelled
    # rows it is the exact process.

    points: Array  # (p, d)
    relevance: Array  # (d,) or (1,)
    noise: float  # variance of the noise
    jitter: float  # what was added to the diagonal of the points' covariance
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
        factor, jitter = linalg.guarded_cholesky(cross_kernel(points, points, relevance))
        B, right = np.eye(len(points)), np.zeros(len(points))
        for part in arrays.blocks(len(X_l), BLOCK):
            V = solve_triangular(factor, cross_kernel(points, X_l[part], relevance), lower=True)
            B += V @ V.T / noise
            right += V @ y_l[part] / noise
        inner = np.asarray(np.linalg.cholesky(B), dtype=float)
        weights = solve_triangular(inner, right, lower=True)
        fit = float(y_l @ y_l) / noise - float(weights @ weights)
        density = -0.5 * (fit + len(y_l) * np.log(2.0 * np.pi * noise)) - triangles.log_diagonal(
            inner
        )
        outer = solve_triangular(inner, weights, lower=True, trans=1)
        coefficients = solve_triangular(factor, outer, lower=True, trans=1)
        return cls(points, relevance, noise, jitter, factor, inner, weights, coefficients, density)

    def mean(self, X: Array) -> Array:
        """Return the mean of the labels at rows (m, d), shape (m,)."""
        return kernel_times(X, self.points, self.relevance, self.coefficients)

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of each label, shape (m,), some rows at a time to spare memory."""
        mean, variance = np.empty(len(X)), np.empty(len(X))
        for part in arrays.blocks(len(X), BLOCK):
            outer, own = self._halves(X[part])
            mean[part] = own.T @ self.weights
            variance[part] = (
                1.0 - np.einsum("ij,ij->j", outer, outer) + np.einsum("ij,ij->j", own, own)
            )
        return mean, np.sqrt(np.maximum(variance, 0.0) + self.noise)

    def covariance(self, X: Array) -> Array:
        """Return the covariance of the labels, noise included, shape (m, m)."""
        outer, own = self._halves(X)
        C = cross_kernel(X, X, self.relevance) - outer.T @ outer + own.T @ own
        C.flat[:: len(C) + 1] = np.maximum(C.diagonal(), 0.0) + self.noise
        return C

    def _halves(self, X: Array) -> tuple[Array, Array]:
        """Return ``factor^-1 K_pa`` and ``inner^-1`` times that, shape (p, m)."""
        outer = solve_triangular(
            self.factor, cross_kernel(self.points, X, self.relevance), lower=True
        )
        return outer, solve_triangular(self.inner, outer, lower=True)
