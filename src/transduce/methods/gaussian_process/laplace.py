"""Classes by a Gaussian process: Laplace's approximation, and the match of class shares.

A label is the sign of a process plus noise. In units of the noise this is ``h ~ N(mean, A)`` with
``A = K / noise`` and ``p(y = +1 | h) = Phi(h)``. The mean is that at which a row far from all
others has the share ``pi`` of the labels: ``mean = Phi^-1(pi) sqrt(1 + 1 / noise)``.

Let `h` be the mode of ``log p(y | h) - (h - mean)'A^-1 (h - mean) / 2``, `a` the gradient of the
log likelihood there, ``W`` minus its second derivatives and ``R = (A + W^-1)^-1``. Then ::

    log Z = log p(y | h) - a'(h - mean) / 2 - log|I + A W| / 2

approximates ``log p(y)``, and at an unlabelled row with kernel values `k` and ``A_ii`` ::

    u = mean + k'a,    v = A_ii - k'R k,    p(y = +1) = Phi(u / sqrt(1 + v))

Moments are matched as for numbers, with one moment: the share of the class. With ``t = theta / m``
the distribution nearest to p tilts the odds of every row by the same factor, ``e^t``; see
docs/methods/gaussian_process.md.

Derivatives. A change ``dA``, ``dmean`` moves the mode by ``dh = (I - A R)(dA a + dmean)`` and the
gradient by ``da = -R (dA a + dmean)``, so all derivatives are linear in ``dA`` and ``dmean``. They
are gathered in one matrix over all rows, the derivative with respect to ``A``, from which those
with respect to relevances follow as for numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq
from scipy.special import expit, log_ndtr, ndtr, ndtri

from transduce.core import arrays
from transduce.core.types import Array
from transduce.methods.gaussian_process.covariances import Covariance
from transduce.methods.gaussian_process.objective import ProcessObjective
from transduce.methods.gaussian_process.process import (
    RBF,
    slack_of_radius,
    split_parameters,
)

# Below, the kernel in units of the noise is so large that any labels are certain of themselves.
NOISE_BOUNDS = (1e-4, 1e2)
MAX_STEPS = 100  # of Newton's method
SETTLED = 1e-10  # the largest step at which the mode is found
LOG_ROOT = 0.5 * np.log(2.0 * np.pi)


class Likelihood(NamedTuple):
    """``log Phi(s h)`` of signs `s` at latent values `h`, with derivatives by `h`; all (l,)."""

    value: Array
    slope: Array
    curvature: Array  # ``W``, minus the second derivative; never negative
    change: Array  # the derivative of the curvature

    @classmethod
    def at(cls, h: Array, signs: Array) -> Likelihood:
        """Evaluate; with ``r = phi(z) / Phi(z)`` at ``z = s h`` the curvature is ``r (r + z)``."""
        z = signs * h
        value = log_ndtr(z)
        r = np.exp(-0.5 * z**2 - LOG_ROOT - value)
        curvature = r * (r + z)
        change = r - curvature * (2.0 * r + z)
        return cls(value, signs * r, np.maximum(curvature, 0.0), signs * change)


class Mode(NamedTuple):
    """Laplace's approximation of one problem of two classes."""

    h: Array  # (l,) the mode
    a: Array  # (l,) ``A^-1 (h - mean)``, the gradient of the log likelihood
    likelihood: Likelihood
    R: Array  # (l, l) ``(A + W^-1)^-1``
    log_evidence: float  # ``log Z``


def find_mode(A: Array, signs: Array, mean: float) -> Mode:
    """Find the mode by Newton's steps, cut back until they climb."""
    a = np.zeros(len(signs))
    h = np.full(len(signs), mean)
    likelihood = Likelihood.at(h, signs)
    height = float(likelihood.value.sum())
    largest_step = np.inf
    n_steps = 0
    while largest_step > SETTLED and n_steps < MAX_STEPS:
        n_steps += 1
        root = np.sqrt(likelihood.curvature)
        factor = cho_factor(_plus_one(root[:, None] * A * root), lower=True)
        b = likelihood.curvature * (h - mean) + likelihood.slope
        goal = b - root * cho_solve(factor, root * (A @ b))
        step = goal - a
        length = 1.0
        while True:
            trial = a + length * step
            h_trial = mean + A @ trial
            likelihood_trial = Likelihood.at(h_trial, signs)
            height_trial = float(likelihood_trial.value.sum() - 0.5 * trial @ (h_trial - mean))
            # At the top the height's digits no longer tell.
            if height_trial >= height - 1e-10 * (1.0 + abs(height)) or length < 1e-6:
                break
            length *= 0.5
        largest_step = float(np.abs(h_trial - h).max())
        a = trial
        h = h_trial
        likelihood = likelihood_trial
        height = height_trial
    root = np.sqrt(likelihood.curvature)
    factor = cho_factor(_plus_one(root[:, None] * A * root), lower=True)
    R = root[:, None] * cho_solve(factor, np.diag(root))
    log_evidence = height - float(np.log(factor[0].diagonal()).sum())
    return Mode(h, a, likelihood, R, log_evidence)


def _plus_one(matrix: Array) -> Array:
    """Return ``I + matrix``, which is overwritten."""
    matrix.flat[:: len(matrix) + 1] += 1.0
    return matrix


class ShareMatch(NamedTuple):
    """Independent labels nearest to those with probabilities ``Phi(z)`` whose share matches."""

    theta: float  # multiplier of the share
    probabilities: Array  # (m,) of the tilted labels
    divergence: float  # with the penalty ``|share - target|^2 / (2 slack)``
    slope: Array  # (m,) derivative of the divergence by `z`


def match_share(
    z: Array, target: float, *, slack: float, epsilon: float | None = None
) -> ShareMatch:
    """Tilt labels with probabilities ``Phi(z)`` (m,) so that their share is near the target.

    The divergence is the maximum over ``theta`` of
    ``theta target - sum_i log(1 - p_i + p_i e^t) - slack theta^2 / 2`` with ``t = theta / m``, or
    with `epsilon` that of ``theta target - sum_i ... - epsilon |theta|``.
    """
    log_odds = log_ndtr(z) - log_ndtr(-z)
    if epsilon is not None:
        share_of = _ShareOfSlack(log_odds, target)
        slack = slack_of_radius(share_of.misfit, epsilon)
    tilt = _best_tilt(log_odds, target, slack)
    theta = len(z) * tilt
    probabilities = expit(log_odds + tilt)
    # log(1 - p + p e^t), whatever the size of t.
    log_sums = np.logaddexp(log_ndtr(-z), log_ndtr(z) + tilt)
    divergence = theta * target - float(log_sums.sum())
    if np.isfinite(slack):
        penalty = 0.5 * slack * theta**2
        divergence -= penalty if epsilon is None else 2.0 * penalty
    density = np.exp(-0.5 * z**2 - LOG_ROOT - log_sums)
    return ShareMatch(theta, probabilities, divergence, -np.expm1(tilt) * density)


@dataclass(frozen=True)
class _ShareOfSlack:
    """How far the share is from its target with each slack."""

    log_odds: Array
    target: float

    def misfit(self, slack: float) -> float:
        """Return the distance of the share from its target."""
        tilt = _best_tilt(self.log_odds, self.target, slack)
        return abs(float(expit(self.log_odds + tilt).mean()) - self.target)


def _best_tilt(log_odds: Array, target: float, slack: float) -> float:
    """Return ``t = theta / m`` where the share is ``target - slack theta``; a rising function."""
    if not np.isfinite(slack):
        return 0.0

    def excess(tilt: float) -> float:
        share = float(expit(log_odds + tilt).mean())
        return share - target + slack * len(log_odds) * tilt

    bound = float(np.abs(log_odds).max()) + 40.0
    return float(brentq(excess, -bound, bound, xtol=1e-13))


class Marginals(NamedTuple):
    """The latent values at unlabelled rows, given the labels."""

    k: Array  # (l, m) covariance with the labelled rows
    Rk: Array  # (l, m)
    u: Array  # (m,) mean
    root: Array  # (m,) ``sqrt(1 + v)``

    @property
    def z(self) -> Array:
        """Where ``Phi`` is the probability of the class, shape (m,)."""
        return self.u / self.root


def find_marginals(
    mode: Mode,
    k: Array,
    variances: Array | float,
    mean: float,
) -> Marginals:
    """Return the marginals at rows with covariances `k` (l, m), and `variances`."""
    Rk = mode.R @ k
    variance = variances - np.einsum("ij,ij->j", k, Rk)
    root = np.sqrt(1.0 + np.maximum(variance, 0.0))
    return Marginals(k, Rk, mean + k.T @ mode.a, root)


def latent_mean(share: float, noise: float) -> float:
    """Return the mean of the process at which a row far from all others has this share."""
    return float(ndtri(share) * np.sqrt(1.0 + 1.0 / noise))


def smoothed_shares(signs: Array) -> Array:
    """Return the share of the positive labels in each problem (l, c), half a label added to each.

    So a class that has all labels or none has a finite odds.
    """
    n_positive = (signs > 0.0).sum(axis=0)
    return (n_positive + 0.5) / (len(signs) + 1.0)


@dataclass(frozen=True)
class ClassObjective(ProcessObjective):
    """What moment matching for classes minimises over the parameters, with its gradient.

    The sum over problems, one class against the others, of
    ``-log Z + matching * (divergence of the nearest labels whose share matches)``; less the
    logarithm of the prior. Parameters are common to all problems.
    """

    X: Array
    y_l: Array  # (l, c) signs: +1 for the class of the problem
    prior: tuple[float, float]  # of the relevances
    noise_prior: tuple[float, float]
    matching: float = 0.0
    slack: float = 0.0
    covariance: Covariance = RBF
    epsilon: float | None = None
    noise_bounds = NOISE_BOUNDS

    @property
    def label_spread(self) -> float:
        """Standard deviation of the labels 0 and 1 of all problems."""
        return float(np.std(self.y_l > 0.0)) or 1.0

    @cached_property
    def targets(self) -> Array:
        """Shares of the classes among the labels (c,); of a class without or with all, nearly."""
        shares = (self.y_l > 0.0).mean(axis=0)
        least = 0.25 / len(self.y_l)
        return np.clip(shares, least, 1.0 - least)

    def _priors(self, n_relevances: int) -> tuple[Array, Array]:
        """Return both numbers of the prior of each relevance and of the noise, shape (k,)."""
        pairs = np.array([self.prior] * n_relevances + [self.noise_prior])
        return pairs[:, 0], pairs[:, 1]

    def __call__(self, log_parameters: Array) -> tuple[float, Array]:
        """Return the objective and its gradient, which has the shape of `log_parameters`."""
        relevance, noise = split_parameters(log_parameters)
        pairs = self.pairs(relevance)
        K = pairs.matrix(relevance)
        A = (np.tril(K) + np.tril(K, -1).T) / noise
        parameters = np.exp(log_parameters)
        shapes, rates = self._priors(len(relevance))
        value = float(np.sum(rates * parameters - shapes * log_parameters))
        by_A = np.zeros_like(A)
        by_noise = 0.0
        for signs, share, target in zip(
            self.y_l.T,
            smoothed_shares(self.y_l),
            self.targets,
            strict=True,
        ):
            mean = latent_mean(share, noise)
            term, by_mean = self._add_problem(A, signs, mean, target, by_A)
            value += term
            # The mean falls as the noise grows: d sqrt(1 + 1/noise) / d log noise.
            by_noise -= by_mean * mean / (2.0 * (noise + 1.0))
        by_noise -= float(np.vdot(by_A, A))
        M = np.asfortranarray(2.0 / noise * by_A)
        slopes = pairs.slopes(M, K, relevance)
        gradient = np.append(slopes, by_noise) + rates * parameters - shapes
        return value, gradient

    def _add_problem(
        self, A: Array, signs: Array, mean: float, target: float, by_A: Array
    ) -> tuple[float, float]:
        """Add the derivative of a problem by `A` to `by_A`; return its value and that by the mean.

        ``d log Z = a'dA a / 2 - tr(R dA) / 2 + w'(dA a + dmean) + a'dmean``, where `w` is what the
        determinant gains as the mode moves.
        """
        n = len(signs)
        A_ll = A[:n, :n]
        mode = find_mode(A_ll, signs, mean)
        a = mode.a
        RA = mode.R @ A_ll
        variances = A_ll.diagonal() - np.einsum("ij,ji->i", A_ll, RA)
        moved = _through_mode(-0.5 * variances * mode.likelihood.change, RA)
        value = -mode.log_evidence
        by_mean = -float(a.sum() + moved.sum())
        by_A[:n, :n] -= 0.5 * (np.outer(a, a) - mode.R)
        by_A[:n, :n] -= _symmetric_product(moved, a)
        if not self.looks_at_unlabelled:
            return value, by_mean
        marginals = find_marginals(mode, A[:n, n:], A.diagonal()[n:], mean)
        match = match_share(marginals.z, target, slack=self.slack, epsilon=self.epsilon)
        slope = self.matching * match.slope
        by_u = slope / marginals.root
        by_v = -0.5 * slope * marginals.z / marginals.root**2
        Rk = marginals.Rk
        posterior = marginals.k - A_ll @ Rk  # (l, m) covariance of latent values, given labels
        of_curvature = -mode.likelihood.change * (posterior**2 @ by_v)
        through = _through_mode(of_curvature, RA) - Rk @ by_u
        by_A[:n, :n] += _symmetric_product(through, a)
        by_A[:n, :n] += (Rk * by_v) @ Rk.T
        across = 0.5 * np.outer(a, by_u) - Rk * by_v
        by_A[:n, n:] += across
        by_A[n:, :n] += across.T
        places = np.arange(n, len(A))
        by_A[places, places] += by_v
        by_mean += float(by_u.sum() + through.sum())
        return value + self.matching * match.divergence, by_mean

    def posterior(self, log_parameters: Array) -> ClassPosterior:
        """Return the process with fixed parameters."""
        return ClassPosterior.fit(
            self.X[: len(self.y_l)],
            self.y_l,
            log_parameters,
            self.covariance,
        )

    def left_out_errors(self, log_parameters: Array) -> Array:
        """Return labels 0 and 1 less their probabilities at the mode, of all problems (l c,)."""
        modes = self.posterior(log_parameters).modes
        probabilities = np.column_stack([ndtr(mode.h) for mode in modes])
        return ((self.y_l > 0.0) - probabilities).ravel()

    def hold_q(self, log_parameters: Array) -> ClassObjective:
        """Not asked for: the share is matched anew in every evaluation."""
        raise NotImplementedError("Class shares are matched anew in every evaluation.")


def _symmetric_product(x: Array, y: Array) -> Array:
    """Return ``(x y' + y x') / 2``, shape (l, l)."""
    product = np.outer(x, y)
    return 0.5 * (product + product.T)


def _through_mode(weights: Array, RA: Array) -> Array:
    """Return ``(I - A R)'weights``: what moves with the mode, by what moves the mode."""
    return weights - RA @ weights


class ClassPosterior(NamedTuple):
    """Gaussian process classification with fixed parameters, ready to predict."""

    X_l: Array  # (l, d)
    relevance: Array  # (d,) or (1,)
    noise: float
    means: Array  # (c,) of the processes
    modes: tuple[Mode, ...]  # of the problems
    covariance: Covariance

    @classmethod
    def fit(
        cls, X_l: Array, signs: Array, log_parameters: Array, covariance: Covariance
    ) -> ClassPosterior:
        """Find the modes of all problems."""
        relevance, noise = split_parameters(log_parameters)
        A = covariance.cross(X_l, X_l, relevance) / noise
        means = np.array([latent_mean(share, noise) for share in smoothed_shares(signs)])
        modes = tuple(
            find_mode(A, column, mean) for column, mean in zip(signs.T, means, strict=True)
        )
        return cls(X_l, relevance, noise, means, modes, covariance)

    @property
    def log_evidence(self) -> float:
        """Laplace's approximation of the log probability of the labels, over all problems."""
        return sum(mode.log_evidence for mode in self.modes)

    def scores(self, X: Array) -> Array:
        """Return ``z`` (m, c) of every problem at rows: ``Phi(z)`` is the class' probability."""
        scores = np.empty((X.shape[0], len(self.modes)))
        size = max(1, 2**24 // max(len(self.X_l), 1))
        for part in arrays.blocks(X.shape[0], size):
            rows = X[part]
            k = self.covariance.cross(self.X_l, rows, self.relevance) / self.noise
            own_variances = self.covariance.variances(rows, self.relevance) / self.noise
            for c, mode in enumerate(self.modes):
                scores[part, c] = find_marginals(mode, k, own_variances, float(self.means[c])).z
        return scores
