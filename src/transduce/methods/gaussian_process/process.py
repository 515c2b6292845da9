"""Gaussian processes with a relevance for every feature: likelihoods, gradients, predictions.

The kernel is ``k(x, x') = exp(-sum_j (relevance_j (x_j - x'_j))^2)``, or another of `covariances`,
and a label is the process plus noise.
Everything here takes ``log_parameters``: the logarithm of each relevance, then of the
noise variance; shape (d + 1,), or (2,) where one relevance is common to all features. Matrices are
those of `triangles`, or of `transduce.device.likelihood` where the rows live on a device; both have
the same functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import brentq

from transduce.core import arrays
from transduce.core.types import Array
from transduce.device import linalg, memory
from transduce.device.linalg import inverse_diagonal
from transduce.methods.gaussian_process import triangles
from transduce.methods.gaussian_process.covariances import Covariance
from transduce.methods.gaussian_process.objective import ProcessObjective, even_steps
from transduce.methods.gaussian_process.solver import choose_solver

RBF = Covariance("rbf")
N_INDUCING = 500
BLOCK = 4096
N_MATRICES = 6  # of n x n numbers that live at once on a device
MAX_STEPS = 200  # of matching
# Noise is a share of the labels' variance; below 1e-8 a kernel matrix of some thousand rows is
# singular to rounding.
NOISE_BOUNDS = (1e-8, 1e2)


@dataclass(frozen=True)
class Spread:
    """A normal distribution ``p = N(mu, Sigma)`` of m labels, where ``Sigma`` is diagonal."""

    variances: Array  # (m,) eigenvalues ``s`` of ``Sigma``, all positive
    vectors: Array  # (m, m) eigenvectors ``V``
    mean: Array  # (m,) ``V'mu``
    ones: Array  # (m,) ``V'1``

    @classmethod
    def of(cls, mean: Array, covariance: Array) -> Spread:
        """Diagonalise the covariance; only the vectors stay on a device, the rest come to numpy."""
        values, vectors = linalg.eigh(covariance)
        variances = arrays.to_numpy(values)
        floor = len(variances) * np.finfo(float).eps * float(variances[-1])
        return cls(
            variances=np.maximum(variances, floor),
            vectors=vectors,
            mean=arrays.to_numpy(mean @ vectors),
            ones=arrays.to_numpy(arrays.namespace(vectors).sum(vectors, axis=0)),
        )

    def tilted(self, theta: Array) -> tuple[Array, Array]:
        """Return mean and variances (m,) of ``q = p exp(<theta, phi> - g(theta))``, see `tilt`.

        ``N((nu + t_1 s u) / w, s / w)`` with ``w = 1 + t_2 s``, ``t = theta / m``, the mean ``nu``
        of p and ``u = V'1``.
        """
        t1, t2 = theta / len(self.variances)
        w = 1.0 + t2 * self.variances
        mean = (self.mean + t1 * self.variances * self.ones) / w
        return mean, self.variances / w


@dataclass(frozen=True)
class Match:
    """The tilted distribution ``q = p exp(<theta, phi> - g(theta))`` that matches the moments."""

    theta: Array  # (2,) multipliers of the mean label and of minus half the mean squared label
    mean: Array  # (m,) mean of q
    root: Array  # (m, m) ``R`` with ``R R'`` the covariance of q
    log_determinant: float  # of the covariance of q
    # Kullback-Leibler divergence of p from q, plus ``|E_q phi - target|^2 / (2 slack)``.
    divergence: float
    penalty: float  # the second of these terms; 0 for an exact match
    misfit: Array  # (2,) ``E_q phi - target``, which is ``-slack theta``

    @property
    def covariance(self) -> Array:
        """Covariance of q, shape (m, m)."""
        return self.root @ self.root.T


def tilt(p: Spread, theta: Array) -> tuple[float, Array, Array]:
    """Return ``g(theta) = log E_p exp <theta, phi>`` with its gradient (2,) and Hessian (2, 2).

    The moments are ``phi = (mean label, -1/2 mean squared label)``. Where the tilted mass is
    infinite, so is ``g``.
    """
    m = len(p.variances)
    t1, t2 = theta / m
    w = 1.0 + t2 * p.variances
    if not w.min() > 0.0:
        return np.inf, np.zeros(2), np.eye(2)
    mean, variance = p.tilted(theta)
    # (nu + t1 s u)^2 / (s w) - nu^2 / s with the parts that cancel taken out: s may be tiny.
    squares = t1 * p.ones * (2.0 * p.mean + t1 * p.variances * p.ones) / w
    squares = squares - t2 * p.mean**2 / w
    log_determinant = np.sum(np.log1p(t2 * p.variances))
    value = 0.5 * float(np.sum(squares) - log_determinant)
    second_moment = float(np.sum(variance + mean**2))
    gradient = np.array([p.ones @ mean, -0.5 * second_moment]) / m
    of_mean = float(np.sum(p.ones**2 * variance))
    of_both = -float(np.sum(p.ones * variance * mean))
    of_square = float(np.sum(0.5 * variance**2 + mean**2 * variance))
    hessian = np.array([[of_mean, of_both], [of_both, of_square]]) / m**2
    return value, gradient, hessian


def match_moments(
    p: Spread,
    target: Array,
    *,
    slack: float,
    epsilon: float | None = None,
) -> Match:
    """Find the distribution nearest to `p` whose moments are near `target` (2,): the q-step.

    With `epsilon` in place of the slack, the nearest whose moments are so near: equation 5.
    """
    if epsilon is not None:
        slack = slack_of_radius(lambda slack: _misfit_length(p, target, slack), epsilon)
    theta = np.zeros(2)
    if np.isfinite(slack):
        theta = _best_multipliers(p, target, slack)
    value, gradient, _ = tilt(p, theta)
    mean, variances = p.tilted(theta)
    penalty = 0.0
    if np.isfinite(slack):
        penalty = 0.5 * slack * float(theta @ theta)
    divergence = float(target @ theta - value) - penalty
    if epsilon is not None:
        divergence -= penalty  # what is left is the divergence of p from q alone
        penalty = 0.0
    return Match(
        theta=theta,
        mean=p.vectors @ arrays.asarray_like(mean, p.vectors),
        root=p.vectors * arrays.asarray_like(np.sqrt(variances), p.vectors),
        log_determinant=float(np.log(variances).sum()),
        divergence=divergence,
        penalty=penalty,
        misfit=gradient - target,
    )


def slack_of_radius(misfit: Callable[[float], float], epsilon: float) -> float:
    """Return the slack whose moments are just `epsilon` away from the labels'.

    So equations 5 and 9 become a problem with a slack (theorem 1). `misfit` is the distance for a
    slack, which grows with it; infinite if no match is needed.
    """
    if epsilon == 0.0:
        return 0.0
    if misfit(np.inf) <= epsilon:
        return np.inf
    lower = -20.0
    upper = 0.0
    while misfit(np.exp(upper)) < epsilon:
        upper += 5.0
    while misfit(np.exp(lower)) > epsilon:
        lower -= 10.0
        if lower < -100.0:
            return 0.0  # equal moments to rounding are all that is left
    root = brentq(lambda log_slack: misfit(np.exp(log_slack)) - epsilon, lower, upper, xtol=1e-12)
    return float(np.exp(root))


def _misfit_length(p: Spread, target: Array, slack: float) -> float:
    """Return how far the matched moments are from `target` with a slack, or without a match."""
    theta = np.zeros(2)
    if np.isfinite(slack):
        theta = _best_multipliers(p, target, slack)
    _, moments, _ = tilt(p, theta)
    return float(np.linalg.norm(moments - target))


def _best_multipliers(p: Spread, target: Array, slack: float) -> Array:
    """Minimise the convex ``g(theta) - <target, theta> + slack/2 |theta|^2`` over theta (2,).

    By Newton steps that are cut back until they descend; each costs ``O(m)``.
    """
    theta = np.zeros(2)
    value, gradient, hessian = _penalised(p, theta, target, slack)
    n_steps = 0
    decrement = np.inf
    while decrement > 1e-18 and n_steps < MAX_STEPS:
        n_steps += 1
        step = -np.linalg.solve(hessian, gradient)
        decrement = -float(gradient @ step)
        length = 1.0
        trial = _penalised(p, theta + step, target, slack)
        # Near the minimum the value's digits no longer show the descent; full steps converge
        # quadratically there.
        while decrement > 1e-9 and not trial[0] <= value - 0.25 * length * decrement:
            length *= 0.5
            trial = _penalised(p, theta + length * step, target, slack)
        theta = theta + length * step
        value, gradient, hessian = trial
    return theta


def _penalised(
    p: Spread,
    theta: Array,
    target: Array,
    slack: float,
) -> tuple[float, Array, Array]:
    """Return ``g(theta) - <target, theta> + slack/2 |theta|^2``, its gradient and its Hessian."""
    value, gradient, hessian = tilt(p, theta)
    value += float(0.5 * slack * theta @ theta - target @ theta)
    return value, gradient - target + slack * theta, hessian + slack * np.eye(2)


def split_parameters(log_parameters: Array) -> tuple[Array, float]:
    """Return relevances (d,) or (1,), and the variance of the noise."""
    parameters = np.exp(log_parameters)
    return parameters[:-1], float(parameters[-1])


@dataclass(frozen=True)
class Objective(ProcessObjective):
    """What moment matching minimises over the parameters, with its gradient.

    ``-log p(y, parameters) + matching * (KL(q, p) + |E_q phi - target|^2 / (2 slack))``: see
    docs/methods/gaussian_process.md. The gradient is the same whether q is held or found anew:
    where q is best, the objective does not move with it to first order.
    """

    # One evaluation takes one Cholesky factor of all rows, two inverses, an eigendecomposition if q
    # is found anew, and for all relevances one ``n x n x d`` product. The distances are computed
    # once.

    X: Array
    y_l: Array
    prior: tuple[float, float]
    matching: float = 0.0
    slack: float = 0.0  # how loose the match may be
    q: Match | None = None  # what is matched with; found anew in every evaluation if None
    covariance: Covariance = RBF
    epsilon: float | None = None  # in place of the slack, how far moments may be from the labels'
    noise_bounds = NOISE_BOUNDS

    @property
    def label_spread(self) -> float:
        """Standard deviation of the labels."""
        return float(np.std(arrays.to_numpy(self.y_l)))

    def __call__(self, log_parameters: Array) -> tuple[float, Array]:
        """Return the objective and its gradient, which has the shape of `log_parameters`."""
        self._check_memory()
        solver = choose_solver(self.X)
        relevance, noise = split_parameters(log_parameters)
        pairs = self.pairs(relevance)
        K = pairs.matrix(relevance)
        factor, _ = solver.factor_of(K, noise)
        if self.looks_at_unlabelled:
            value, M = self._matched_term(factor)
        else:
            value, M = solver.term(factor, self.y_l, None)
        trace = float(arrays.namespace(M).sum(arrays.diagonal(M)))
        slopes = pairs.slopes(M, K, relevance)
        shape, rate = self.prior
        parameters = np.exp(log_parameters)
        value += float(np.sum(rate * parameters - shape * log_parameters))
        gradient = np.append(slopes, 0.5 * noise * trace) + rate * parameters - shape
        return value, gradient

    def _check_memory(self) -> None:
        """Raise a MemoryError if a device has no room for the matrices."""
        n = self.rows.shape[0]
        memory.check_fits(
            N_MATRICES * 8.0 * n**2,
            self.rows,
            f"A Gaussian process with {n:,} rows",
            "TransductiveRidge(centres=500) needs far less.",
        )

    def left_out_errors(self, log_parameters: Array) -> Array:
        """Return the leave-one-out errors ``(C^-1 y)_i / (C^-1)_ii`` (l,)."""
        X_l = self.X[: self.y_l.shape[0], :]
        posterior = Posterior.fit(X_l, self.y_l, log_parameters, self.covariance)
        return arrays.to_numpy(posterior.weights / inverse_diagonal(posterior.factor))

    def hold_q(self, log_parameters: Array) -> Objective:
        """Return the same with q held at the best for these parameters."""
        return replace(self, q=self.match(log_parameters))

    def match(self, log_parameters: Array) -> Match:
        """Return the best q for some parameters: the q-step."""
        solver = choose_solver(self.X)
        relevance, noise = split_parameters(log_parameters)
        factor, _ = solver.factor_of(self.covariance.own(self.X, relevance), noise)
        return self._match(factor)

    def _match(self, factor: Array) -> Match:
        """Read the predictive distribution off the joint factor, and tilt it."""
        mean, covariance = choose_solver(self.X).predictive(factor, self.y_l)
        p = Spread.of(mean, covariance)
        xp = arrays.namespace(self.y_l)
        mean_label = float(xp.mean(self.y_l))
        mean_square = float(xp.mean(self.y_l**2))
        target = np.array([mean_label, -0.5 * mean_square])
        return match_moments(p, target, slack=self.slack, epsilon=self.epsilon)

    def _matched_term(self, factor: Array) -> tuple[float, Array]:
        """Return the value without prior, and twice its derivative by the covariance ``C``.

        ``(1 - matching) (-log p(y)) + matching (-log p(y) + KL(q, p) + penalty)``, both divergence
        and likelihood being terms of the joint covariance.
        """
        solver = choose_solver(self.X)
        n = self.y_l.shape[0]
        share = self.matching
        q = self.q
        if q is None:
            q = self._match(factor)
        factor_l = solver.leading(factor, n)
        z = arrays.namespace(self.y_l).concat([self.y_l, q.mean])
        joint, M = solver.term(factor, z, q.root)
        entropy = 0.5 * (q.mean.shape[0] + q.log_determinant)
        value = share * (joint - entropy + q.penalty)
        M *= share
        if share != 1.0:
            plain, M_ll = solver.term(factor_l, self.y_l, None)
            value += (1.0 - share) * plain
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
    covariance_function: Covariance = RBF

    @classmethod
    def fit(
        cls, X_l: Array, y_l: Array, log_parameters: Array, covariance: Covariance = RBF
    ) -> Posterior:
        """Factorise the covariance of the labels.

        ``log p(y) = -y' C^-1 y / 2 - log|C| / 2 - l log(2 pi) / 2``.
        """
        solver = choose_solver(X_l)
        relevance, noise = split_parameters(log_parameters)
        factor, jitter = solver.factor_of(covariance.own(X_l, relevance), noise)
        weights = solver.solve(factor, y_l)
        constant = 0.5 * y_l.shape[0] * np.log(2.0 * np.pi)
        log_likelihood = -0.5 * float(y_l @ weights) - solver.log_diagonal(factor) - constant
        return cls(
            X_l=X_l,
            relevance=relevance,
            noise=noise + jitter,
            jitter=jitter,
            factor=factor,
            weights=weights,
            log_likelihood=log_likelihood,
            covariance_function=covariance,
        )

    def mean(self, X: Array) -> Array:
        """Return the mean of the labels at rows (m, d), shape (m,)."""
        return self.covariance_function.times(X, self.X_l, self.relevance, self.weights)

    def _variance(self, X: Array, K: Array) -> Array:
        """Return ``k(x, x) - |L^-1 k|^2 + noise`` for rows (m, d) and their kernel values (l, m).

        The kernel values are used up.
        """
        explained = arrays.column_squares(choose_solver(K).half_solve(self.factor, K))
        rest = self.covariance_function.variances(X, self.relevance) - explained
        xp = arrays.namespace(K)
        return xp.maximum(rest, xp.zeros_like(rest)) + self.noise

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of each label (m,), a block of rows at a time."""
        n_labelled = self.X_l.shape[0]
        n = X.shape[0]
        budget = memory.work_bytes(X, 2.0**28)
        size = max(1, 2**25 // n_labelled, int(budget // (32 * n_labelled)))
        mean = arrays.zeros((n,), X)
        variance = arrays.zeros((n,), X)
        for part in arrays.blocks(n, size):
            rows = X[part, :]
            K = self._cross(rows)
            if X.shape[1] > n_labelled:  # of wide rows it takes long, and is used for both
                mean[part] = K.T @ self.weights
            else:
                mean[part] = self.mean(rows)
            variance[part] = self._variance(rows, K)
        return mean, arrays.namespace(X).sqrt(variance)

    def covariance(self, X: Array) -> Array:
        """Return the covariance of the labels, noise included, shape (m, m)."""
        if X.shape[0] == 0:
            return arrays.zeros((0, 0), X)
        half = choose_solver(X).half_solve(self.factor, self._cross(X))
        C = self.covariance_function.conditional(X, self.relevance, half)
        variances = arrays.diagonal(C)
        xp = arrays.namespace(C)
        variances = xp.maximum(variances, xp.zeros_like(variances)) + self.noise
        return arrays.with_diagonal(C, variances)

    def _cross(self, X: Array) -> Array:
        """Return the kernel values of the labelled rows and of rows (m, d), shape (l, m)."""
        return choose_solver(X).by_columns(
            self.covariance_function.cross(self.X_l, X, self.relevance)
        )


def fit_posterior(
    X_l: Array, y_l: Array, log_parameters: Array, max_exact: int, covariance: Covariance = RBF
) -> Posterior | InducedPosterior:
    """Return the process with fixed parameters.

    Exact up to so many labels, and always on a device; beyond by inducing points.
    """
    if arrays.is_foreign(X_l) or len(y_l) <= max_exact:
        return Posterior.fit(X_l, y_l, log_parameters, covariance)
    points = X_l[even_steps(len(y_l), N_INDUCING)]
    return InducedPosterior.fit(X_l, y_l, log_parameters, points, covariance)


class InducedPosterior(NamedTuple):
    """Gaussian process regression through p inducing points: labels tell of each other only there.

    The deterministic training conditional of Seeger, Williams and Lawrence (2003). With the points
    at all labelled rows it is the exact process.
    """

    points: Array  # (p, d)
    relevance: Array  # (d,) or (1,)
    noise: float  # variance of the noise
    jitter: float  # what was added to the diagonal of the points' covariance
    factor: Array  # (p, p) lower Cholesky factor of the points' covariance
    inner: Array  # (p, p) lower Cholesky factor of ``I + V V' / noise`` with ``V = factor^-1 K_pl``
    weights: Array  # (p,) ``inner^-1 V y / noise``
    coefficients: Array  # (p,) ``factor'^-1 inner'^-1 weights``
    log_likelihood: float  # log density of the labels in this model
    covariance_function: Covariance = RBF

    @classmethod
    def fit(
        cls,
        X_l: Array,
        y_l: Array,
        log_parameters: Array,
        points: Array,
        covariance: Covariance = RBF,
    ) -> InducedPosterior:
        """Project the labels on the process at the points, some rows at a time."""
        relevance, noise = split_parameters(log_parameters)
        factor, jitter = linalg.guarded_cholesky(covariance.cross(points, points, relevance))
        B = np.eye(len(points))
        right = np.zeros(len(points))
        for part in arrays.blocks(len(X_l), BLOCK):
            K = covariance.cross(points, X_l[part], relevance)
            V = solve_triangular(factor, K, lower=True)
            B += V @ V.T / noise
            right += V @ y_l[part] / noise
        inner = np.asarray(np.linalg.cholesky(B), dtype=float)
        weights = solve_triangular(inner, right, lower=True)
        misfit = float(y_l @ y_l) / noise - float(weights @ weights)
        constant = len(y_l) * np.log(2.0 * np.pi * noise)
        log_likelihood = -0.5 * (misfit + constant) - triangles.log_diagonal(inner)
        outer = solve_triangular(inner, weights, lower=True, trans=1)
        coefficients = solve_triangular(factor, outer, lower=True, trans=1)
        return cls(
            points=points,
            relevance=relevance,
            noise=noise,
            jitter=jitter,
            factor=factor,
            inner=inner,
            weights=weights,
            coefficients=coefficients,
            log_likelihood=log_likelihood,
            covariance_function=covariance,
        )

    def mean(self, X: Array) -> Array:
        """Return the mean of the labels at rows (m, d), shape (m,)."""
        return self.covariance_function.times(X, self.points, self.relevance, self.coefficients)

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of each label (m,), a block of rows at a time."""
        mean = np.empty(len(X))
        variance = np.empty(len(X))
        for part in arrays.blocks(len(X), BLOCK):
            outer, inner = self._halves(X[part])
            mean[part] = inner.T @ self.weights
            prior_part = np.einsum("ij,ij->j", outer, outer)
            posterior_part = np.einsum("ij,ij->j", inner, inner)
            own_variances = self.covariance_function.variances(X[part], self.relevance)
            variance[part] = own_variances - prior_part + posterior_part
        return mean, np.sqrt(np.maximum(variance, 0.0) + self.noise)

    def covariance(self, X: Array) -> Array:
        """Return the covariance of the labels, noise included, shape (m, m)."""
        outer, inner = self._halves(X)
        K = self.covariance_function.cross(X, X, self.relevance)
        C = K - outer.T @ outer + inner.T @ inner
        variances = np.maximum(C.diagonal(), 0.0)
        C.flat[:: len(C) + 1] = variances + self.noise
        return C

    def _halves(self, X: Array) -> tuple[Array, Array]:
        """Return ``factor^-1 K_pa`` and ``inner^-1`` times that, shape (p, m)."""
        K_pa = self.covariance_function.cross(self.points, X, self.relevance)
        outer = solve_triangular(self.factor, K_pa, lower=True)
        return outer, solve_triangular(self.inner, outer, lower=True)
