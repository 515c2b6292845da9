"""Local spread and scale of labels by their definitions: refit, smooth, choose, rank."""

from __future__ import annotations

import numpy as np

from tests import brute

SCALES = {"identity": lambda y: y, "sqrt": np.sqrt, "log": np.log}
SLOPES = {"identity": np.ones_like, "sqrt": lambda y: 0.5 / np.sqrt(y), "log": lambda y: 1.0 / y}
HANDICAP = {"identity": 1.0, "sqrt": 1.0, "log": 4.0}
ALIKE = 1.5  # labels within this factor stay as they are


def squared_spreads(residuals, weights, prior):
    """Weighted mean of the other rows' squared residuals and, with a weight of `prior`, of all."""
    squares = residuals**2
    spreads = []
    for i in range(len(squares)):
        others = [j for j in range(len(squares)) if j != i]
        total = sum(weights[i, j] * squares[j] for j in others) + prior * squares.mean()
        spreads.append(total / (sum(weights[i, j] for j in others) + prior))
    return np.array(spreads)


def local_p_value(K, z, ridge, fit_intercept, residual, weights, prior, side="two"):
    """p-value of the last row of a completed sample, each residual over its local spread."""
    residuals = brute.nonconformity(K, z, ridge, fit_intercept, residual)
    scores = residuals / np.sqrt(squared_spreads(residuals, weights, prior))
    return brute.p_value(scores, side)


def scaled_p_value(settings, z, fit_intercept, residual, weights, prior, scales):
    """p-value of the last row by the scale and setting that the completed sample chooses.

    The only label that is not positive is infinitely nonconforming.
    """
    if scales != ["identity"] and z[-1] <= 0.0:
        return 1.0 / len(z)
    if scales != ["identity"] and z.max() <= ALIKE * z.min():
        scales = ["identity"]
    criteria = {}
    for scale in scales:
        errors = brute.completed_errors(settings, SCALES[scale](z), fit_intercept)
        mean_log_slope = np.mean(np.log(SLOPES[scale](z)))
        criteria[scale] = HANDICAP[scale] * errors.min() / np.exp(2.0 * mean_log_slope)
    scale = min(criteria, key=criteria.get)
    labels = SCALES[scale](z)
    errors = brute.completed_errors(settings, labels, fit_intercept)
    K, ridge = settings[int(np.argmin(errors))]
    if weights is None:
        return brute.p_value(brute.nonconformity(K, labels, ridge, fit_intercept, residual))
    return local_p_value(K, labels, ridge, fit_intercept, residual, weights, prior)


def far_row(z):
    """Row whose label is farthest from the others, as a share of their range, if above a half; or None."""
    shares = []
    for i in range(len(z)):
        others = np.delete(z, i)
        gap = max(z[i] - others.max(), others.min() - z[i], 0.0)
        spread = np.ptp(others)
        shares.append(0.0 if gap == 0.0 else np.inf if spread == 0.0 else gap / spread)
    largest = max(shares)
    if largest <= 0.5 or shares.count(largest) > 1:
        return None
    return shares.index(largest)


def own_p_value(function, X, z, unit=None):
    """p-value of the last row of a completed sample by a function of its rows and rounded labels."""
    if unit is None:
        unit = 2.0 ** np.floor(np.log2(np.ptp(z) / 64))
    z = unit * np.round(z / unit)
    scores = function(X, z)
    far = far_row(z)
    if far is not None:
        scores[far] = np.inf
    return np.mean(scores >= scores[-1])


def own_class_p_value(function, X, z, within=False):
    """p-value of the last row by a function of its rows and classes; only rows are infinitely strange."""
    scores = function(X, z)
    scores = np.array([np.inf if np.sum(z == z[i]) == 1 else scores[i] for i in range(len(z))])
    if within:
        scores = scores[z == z[-1]]
    return np.mean(scores >= scores[-1])
