"""Shift and scale of features, labels and scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from transduce.core import arrays
from transduce.core.types import AnyArray, Array, Mask

FEWEST_FOR_POWER = (
    20  # with fewer labels benchmarks/blend_calibration.py finds the shares better as they are
)
POWER_PRIOR = 4.0
# Labels on purpose make shares too sure: with 20 and 40 draws the log-loss is smallest so, of 0, 0.25, 1 and 4.
DRAWN_PRIOR = 0.25


def label_moments(y_l: Array) -> tuple[Any, Any]:
    """Return mean and spread of labels (l,) or of every column of labels (l, c); of equal ones, that label and 1."""
    size = np.ptp(y_l, axis=0)
    equal = size == 0.0
    mean = np.where(equal, y_l[0], y_l.mean(axis=0))
    size = np.where(equal, 1.0, size)
    spread = size * np.sqrt(np.mean(((y_l - mean) / size) ** 2, axis=0))
    return mean[()], np.where(equal, 1.0, spread)[()]


@dataclass(frozen=True)
class Scaling:
    """Shift and scale of the features, from all rows; constant columns are dropped."""

    keep: Mask
    mean: Array
    scale: Array

    @classmethod
    def fit_apply(cls, X: Array) -> tuple[Scaling, Array]:
        """Take mean and standard deviation (ddof 0) of every column that varies; return the scaled rows too."""
        xp, (mean, scale) = arrays.namespace(X), _moments(X)
        # Only a column of tiny spread can be constant; rounding of the mean cannot be told from spread.
        keep = np.ones(X.shape[1], dtype=bool)
        for column in map(int, np.flatnonzero(arrays.to_numpy(scale <= 1e-6 * xp.abs(mean)))):
            keep[column] = bool(xp.any(X[:, column] != X[0, column]))
        scaling = cls(keep, arrays.pick(mean, keep), arrays.pick(scale, keep))
        return scaling, scaling.apply(X)

    def apply(self, X: Array) -> Array:
        """Return the scaled rows; one column of zeros if every column was constant."""
        if not self.keep.any():
            return arrays.zeros((X.shape[0], 1), X)
        mean, scale = (arrays.beside(moment, X) for moment in (self.mean, self.scale))
        scaled = (X if self.keep.all() else arrays.pick_columns(X, self.keep)) - mean
        scaled /= scale
        return scaled


def _moments(X: Any) -> tuple[Any, Any]:
    """Return mean and standard deviation of the columns, whose squares may over- or underflow."""
    xp = arrays.namespace(X)
    with np.errstate(over="ignore", invalid="ignore"):
        mean, scale = _plain_moments(X)
    if bool(xp.all(xp.isfinite(scale) & (scale > 1e-150))):
        return mean, scale
    size = xp.max(xp.abs(X), axis=0)
    size = xp.where(size > 0.0, size, xp.ones_like(size))
    mean, scale = _plain_moments(X / size)
    return mean * size, scale * size


def _plain_moments(rows: Any) -> tuple[Any, Any]:
    """Return mean and standard deviation of the columns, block by block to spare memory."""
    n, d = rows.shape
    mean, total = (arrays.zeros(n, rows) + 1.0 / n) @ rows, arrays.zeros(d, rows)
    for part in arrays.blocks(n, max(256, 2**18 // d)):
        total += arrays.column_squares(rows[part, :] - mean)
    return mean, arrays.namespace(rows).sqrt(total / n)


def fit_temperature(scores: Array, codes: AnyArray) -> float:
    """Return the factor that makes the softmax of scores (l, n_classes) fit known classes (l,) best."""
    n, n_classes = scores.shape
    target = np.full((n, n_classes), 1.0 / (n + n_classes))
    target[np.arange(n), codes] += n / (n + n_classes)
    return _best_factor(scores, target, (-5.0, 7.0), 0.0)


def fit_power(shares: Array, codes: AnyArray, prior: float = POWER_PRIOR) -> float:
    """Return the power of shares (l, n_classes) that fits known classes best; 1 with fewer than 20 labels."""
    n, n_classes = shares.shape
    if n < FEWEST_FOR_POWER:
        return 1.0
    # A mean of probabilities is more cautious than its members where they agree for different reasons, so that the
    # power is often above 1. A share below half a label counts as half a label.
    return _best_factor(
        np.log(np.maximum(shares, 0.5 / n)), np.eye(n_classes)[codes], (-2.0, 2.0), prior
    )


def _best_factor(scores: Array, target: Array, bounds: tuple[float, float], prior: float) -> float:
    """Return the factor by which the softmax of scores has the smallest log-loss; 1 costs nothing, by the prior."""

    def loss(log_factor: float) -> float:
        fit = -float(np.sum(target * log_softmax(np.exp(log_factor) * scores, axis=1)))
        return fit + prior * log_factor**2

    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))


def to_power(shares: Array, power: float) -> Array:
    """Return shares to a power, scaled to sum 1 in each row."""
    if power == 1.0:
        return shares
    raised = (shares / shares.max(axis=1, keepdims=True)) ** power
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))
