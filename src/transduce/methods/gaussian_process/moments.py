"""The normal distribution nearest to a given one whose mean and second moment, over rows, are as wanted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transduce.core import arrays
from transduce.core.types import Array
from transduce.device import linalg

MAX_STEPS = 200


@dataclass(frozen=True)
class Spread:
    """A normal distribution ``p = N(mu, Sigma)`` of m labels, in the coordinates that make ``Sigma`` diagonal."""

    variances: Array  # (m,) eigenvalues ``s`` of ``Sigma``, all positive
    vectors: Array  # (m, m) eigenvectors ``V``
    mean: Array  # (m,) ``V'mu`` and ``V'1``
    ones: Array  # (m,) ``V'mu`` and ``V'1``

    @classmethod
    def of(cls, mean: Array, covariance: Array) -> Spread:
        """Diagonalise the covariance; on a device only the vectors stay there, the rest are m numbers each."""
        values, vectors = linalg.eigh(covariance)
        sums = arrays.namespace(vectors).sum(vectors, axis=0)
        variances, projected, ones = (arrays.to_numpy(part) for part in (values, mean @ vectors, sums))
        floor = len(variances) * np.finfo(float).eps * float(variances[-1])
        return cls(np.maximum(variances, floor), vectors, projected, ones)


@dataclass(frozen=True)
class Match:
    """The tilted distribution ``q = p exp(<theta, phi> - g(theta))`` that matches the moments."""

    theta: Array  # (2,) multipliers of the mean label and of minus half the mean squared label
    mean: Array  # (m,) mean of q
    root: Array  # (m, m) ``R`` with ``R R'`` the covariance of q
    log_determinant: float  # of the covariance of q
    divergence: float  # kullback-Leibler divergence of p from q, plus ``|E_q phi - target|^2 / (2 slack)``
    penalty: float  # the second of these terms; 0 for an exact match
    misfit: Array  # (2,) ``E_q phi - target``, which is ``-slack theta``
    n_steps: int  # newton steps taken

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
        n_steps=n_steps,
    )


def _penalised(p: Spread, theta: Array, target: Array, slack: float) -> tuple[float, Array, Array]:
    value, gradient, hessian = tilt(p, theta)
    value += float(0.5 * slack * theta @ theta - target @ theta)
    return value, gradient - target + slack * theta, hessian + slack * np.eye(2)
