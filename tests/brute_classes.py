"""Slow, obvious definitions for classes by a Gaussian process with matched shares."""

from __future__ import annotations

import numpy as np
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from scipy.stats import multivariate_normal, norm

from tests import brute


def log_posterior(h, A, signs, mean):
    """Log likelihood of the signs plus the exponent of the prior N(mean, A), at latent values."""
    gap = h - mean
    return norm.logcdf(signs * h).sum() - 0.5 * gap @ np.linalg.solve(A, gap)


def second_difference(function, x, step=1e-4):
    """The second derivative of a function of one number."""
    return (function(x + step) - 2.0 * function(x) + function(x - step)) / step**2


def laplace(A, signs, mean):
    """The mode by a general optimiser, minus second derivatives of the likelihood there, and log Z."""
    known = len(signs)
    h = np.full(known, mean)
    for _ in range(3):
        h = minimize(lambda x: -log_posterior(x, A, signs, mean), h, tol=1e-10).x
    W = np.array(
        [
            -second_difference(lambda x, s=s: norm.logcdf(s * x), x)
            for x, s in zip(h, signs, strict=True)
        ]
    )
    determinant = np.linalg.slogdet(np.eye(known) + A @ np.diag(W))[1]
    return h, W, log_posterior(h, A, signs, mean) - 0.5 * determinant


def class_probability(A, signs, mean):
    """Probability of the class at the last row: Laplace's normal distribution of its latent value, integrated."""
    known = len(signs)
    h, W, _ = laplace(A[:known, :known], signs, mean)
    k = A[:known, known]
    u = mean + k @ np.linalg.solve(A[:known, :known], h - mean)
    v = A[known, known] - k @ np.linalg.solve(A[:known, :known] + np.diag(1.0 / W), k)
    spread = np.sqrt(v)
    return quad(lambda x: norm.cdf(x) * norm.pdf(x, u, spread), u - 9 * spread, u + 9 * spread)[0]


def share_divergence(p, target, slack):
    """The least divergence plus penalty of independent labels from those with probabilities p, by an optimiser."""

    def lowest(x):
        q, log_q, log_rest = expit(x), log_expit(x), log_expit(-x)
        divergence = np.sum(q * (log_q - np.log(p)) + (1.0 - q) * (log_rest - np.log(1.0 - p)))
        return divergence + (q.mean() - target) ** 2 / (2.0 * slack)

    def slope(x):
        q = expit(x)
        of_divergence = x - np.log(p / (1.0 - p))
        return q * (1.0 - q) * (of_divergence + (q.mean() - target) / (len(p) * slack))

    x = np.log(p / (1.0 - p))
    for _ in range(3):
        x = minimize(lowest, x, jac=slope, tol=1e-12).x
    return lowest(x)


def class_objective(X, signs, relevance, noise, priors, matching, slack):
    """What matching minimises, problem by problem."""
    known = len(signs)
    A = brute.process_covariance(X, relevance, 0.0) / noise
    (shape, rate), (noise_shape, noise_rate) = priors
    value = np.sum(rate * relevance - shape * np.log(relevance))
    value += noise_rate * noise - noise_shape * np.log(noise)
    for column in signs.T:
        n_positive = np.sum(column > 0)
        mean = norm.ppf((n_positive + 0.5) / (known + 1)) * np.sqrt(1.0 + 1.0 / noise)
        value -= laplace(A[:known, :known], column, mean)[2]
        if matching > 0.0:
            p = []
            for i in range(known, len(X)):
                rows = [*range(known), i]
                p.append(class_probability(A[np.ix_(rows, rows)], column, mean))
            target = np.clip(n_positive / known, 0.25 / known, 1.0 - 0.25 / known)
            value += matching * share_divergence(np.array(p), target, slack)
    return value


def exact_evidence(A, signs, mean):
    """Log probability of the signs: an orthant of the latent values plus unit noise."""
    flipped = np.outer(signs, signs) * (A + np.eye(len(signs)))
    return np.log(multivariate_normal.cdf(signs * mean, cov=flipped))
