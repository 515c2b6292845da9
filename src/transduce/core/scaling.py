"""Shift and scale of features, labels and scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from transduce.core import arrays
from transduce.core.types import AnyArray, Array, Mask, Rows

FEWEST_FOR_POWER = (
    20  # with fewer labels benchmarks/blend_calibration.py finds the shares better as they are
)
POWER_PRIOR = 4.0
# Labels on purpose make shares too sure: with 20 and 40 draws the log-loss is smallest so, of 0,
# 0.25, 1 and 4.
DRAWN_PRIOR = 0.25
# A row is far in a feature if it lies so many robust deviations from the median, and so many times
# as far as all the others. A few far rows, which may be slips of the pen or marks such as 1e30,
# would set the scale of the feature for all others, so they have no part in it. Long tails have no
# such gaps: in 26 tables of regression the largest was 3.7, before the populations of China and
# India, and without asking for a gap four of them were answered a little worse.
FAR = 20.0
GAP = 5.0
# In tables of so many rows only a feature with a row beyond so many standard deviations is searched
# for far rows: a hundredth of the rows, at 20 standard deviations of the others, is at 8 of all.
MANY_ROWS = 300
SUSPECT = 5.0
ROBUST = 1.4826  # times the median deviation is the standard deviation of normal numbers
LARGEST_SQUARED = 1e120  # numbers up to here are squared and summed without a thought
FARTHEST = 1e100  # scaled features end here, so that their squares are finite


def label_moments(y_l: Array) -> tuple[Any, Any]:
    """Return mean and spread of labels (l,), or of every column of labels (l, c).

    Of equal labels these are that label and 1.
    """
    size = np.ptp(y_l, axis=0)
    equal = size == 0.0
    mean = np.where(equal, y_l[0], y_l.mean(axis=0))
    size = np.where(equal, 1.0, size)
    scaled = (y_l - mean) / size
    spread = size * np.sqrt(np.mean(scaled**2, axis=0))
    return mean[()], np.where(equal, 1.0, spread)[()]


def square_unit(*amounts: Array) -> float:
    """Return by what to divide numbers so that their squares are finite and not all 0.

    It is 1, unless the numbers are extreme.

    >>> square_unit(np.array([2.0, -3.0])), square_unit(np.array([2e200, -3e200]))
    (1.0, 3e+200)
    """
    largest = max(arrays.farthest(np.asarray(numbers, dtype=float)) for numbers in amounts)
    ordinary = 1.0 / LARGEST_SQUARED <= largest <= LARGEST_SQUARED
    if largest > 0.0 and np.isfinite(largest) and not ordinary:
        return largest
    return 1.0


@dataclass(frozen=True)
class Scaling:
    """Shift and scale of the features, from all rows; constant columns are dropped."""

    keep: Mask
    mean: Array
    scale: Array

    @classmethod
    def fit_apply(cls, X: Array) -> tuple[Scaling, Array]:
        """Take mean and standard deviation of every column that varies; scale the rows too.

        The standard deviation has ddof 0. Where a few rows lie far from all others in a column, the
        moments are those of the others.
        """
        xp = arrays.namespace(X)
        mean, scale = moments_without_far_rows(X, *_moments(X))
        # Only a column of tiny spread can be constant; rounding of the mean cannot be told from
        # spread.
        keep = np.ones(X.shape[1], dtype=bool)
        doubtful = np.flatnonzero(arrays.to_numpy(scale <= 1e-6 * xp.abs(mean)))
        for column in doubtful.tolist():
            keep[column] = bool(xp.any(X[:, column] != X[0, column]))
        scaling = cls(keep, arrays.pick(mean, keep), arrays.pick(scale, keep))
        return scaling, scaling.apply(X)

    def apply(self, X: Array) -> Array:
        """Return the scaled rows; one column of zeros if every column was constant."""
        if not self.keep.any():
            return arrays.zeros((X.shape[0], 1), X)
        mean = arrays.asarray_like(self.mean, X)
        scale = arrays.asarray_like(self.scale, X)
        if self.keep.all():
            columns = X
        else:
            columns = arrays.pick_columns(X, self.keep)
        with np.errstate(over="ignore"):
            scaled = columns - mean
            scaled /= scale
        if arrays.farthest(scaled) > FARTHEST:
            return arrays.namespace(X).clip(scaled, -FARTHEST, FARTHEST)
        return scaled


def far_rows(column: Array) -> Mask:
    """Return which numbers (n,) are far from all others.

    They are more than 20 robust deviations from the median, and 5 times as far as any of the
    others. The robust deviation is the median distance from the median, of the numbers that differ
    from it (in a column of many zeros most do not), times 1.4826. At most a hundredth of the
    numbers can be far, or one, two or three if these are more.

    >>> far_rows(np.array([1.0, 2.0, 3.0, 4.0, 1e6]))
    array([False, False, False, False,  True])
    """
    n = len(column)
    with np.errstate(over="ignore", invalid="ignore"):
        middle = np.median(column)
        distance = np.abs(column - middle)
    apart = np.sort(distance[distance > 1e-12 * abs(middle)])
    if len(apart) < 2:
        return np.zeros(n, dtype=bool)
    deviation = ROBUST * apart[(len(apart) - 1) // 2]
    most = max(1, min(3, n // 20), n // 100)
    farthest = apart[-most - 1 :]  # and the next nearer one
    is_far = farthest[1:] > FAR * deviation
    beyond = is_far & (farthest[1:] / GAP > farthest[:-1])
    if not beyond.any():
        return np.zeros(n, dtype=bool)
    return distance >= farthest[1:][beyond.argmax()]


def moments_without_far_rows(X: Rows, mean: Any, scale: Any) -> tuple[Any, Any]:
    """Return mean and scale of the columns, those of the other rows where a few are far."""
    xp = arrays.namespace(X)
    suspects = np.ones(X.shape[1], dtype=bool)
    if X.shape[0] >= MANY_ROWS:
        with np.errstate(over="ignore"):
            above = xp.max(X, axis=0) - mean
            below = mean - xp.min(X, axis=0)
            reach = xp.maximum(above, below)
        suspects = arrays.to_numpy(~xp.isfinite(scale) | (reach > SUSPECT * scale))
    means: dict[int, float] = {}
    scales: dict[int, float] = {}
    for number in map(int, np.flatnonzero(suspects)):
        column = arrays.to_numpy(X[:, number])
        far = far_rows(column)
        if far.any():
            own_mean, own_scale = _moments(column[~far][:, None])
            means[number] = float(own_mean[0])
            scales[number] = float(own_scale[0])
    if not means:
        return mean, scale
    places = list(means)
    new_mean = np.array(arrays.to_numpy(mean))
    new_mean[places] = list(means.values())
    new_scale = np.array(arrays.to_numpy(scale))
    new_scale[places] = list(scales.values())
    return arrays.asarray_like(new_mean, X), arrays.asarray_like(new_scale, X)


def _moments(X: Rows) -> tuple[Any, Any]:
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


def _plain_moments(rows: Rows) -> tuple[Any, Any]:
    """Return mean and standard deviation of the columns, block by block to spare memory."""
    n, d = rows.shape
    mean = (arrays.zeros(n, rows) + 1.0 / n) @ rows
    total = arrays.zeros(d, rows)
    for part in arrays.blocks(n, max(256, 2**18 // d)):
        total += arrays.column_squares(rows[part, :] - mean)
    return mean, arrays.namespace(rows).sqrt(total / n)


def fit_temperature(scores: Array, codes: AnyArray) -> float:
    """Return the factor by which the softmax of scores fits known classes (l,) best."""
    n, n_classes = scores.shape
    target = np.full((n, n_classes), 1.0 / (n + n_classes))
    target[np.arange(n), codes] += n / (n + n_classes)
    return _best_factor(scores, target, (-5.0, 7.0), 0.0)


def fit_power(shares: Array, codes: AnyArray, prior: float = POWER_PRIOR) -> float:
    """Return the power of shares (l, n_classes) that fits known classes best.

    It is 1 with fewer than 20 labels.
    """
    n, n_classes = shares.shape
    if n < FEWEST_FOR_POWER:
        return 1.0
    # A mean of probabilities is more cautious than its members where they agree for different
    # reasons, so that the power is often above 1. A share below half a label counts as half a
    # label.
    scores = np.log(np.maximum(shares, 0.5 / n))
    target = np.eye(n_classes)[codes]
    return _best_factor(scores, target, (-2.0, 2.0), prior)


def _best_factor(
    scores: Array,
    target: Array,
    bounds: tuple[float, float],
    prior: float,
) -> float:
    """Return the factor by which the softmax of scores has the smallest log-loss.

    By the prior a factor of 1 costs nothing.
    """

    def loss(log_factor: float) -> float:
        log_probability = log_softmax(np.exp(log_factor) * scores, axis=1)
        fit = -float(np.sum(target * log_probability))
        return fit + prior * log_factor**2

    best = minimize_scalar(loss, bounds=bounds, method="bounded")
    return float(np.exp(best.x))


def to_power(shares: Array, power: float) -> Array:
    """Return shares to a power, scaled to sum 1 in each row."""
    if power == 1.0:
        return shares
    raised = (shares / shares.max(axis=1, keepdims=True)) ** power
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))
