"""Shift and scale of features and labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from transduce.core.types import Array, Mask


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
    """Shift and scale of the features, from all rows; constant columns are dropped.

    Examples
    --------
    >>> import numpy as np
    >>> scaling, rows = Scaling.fit_apply(np.array([[0.0, 7.0], [2.0, 7.0]]))
    >>> rows
    array([[-1.],
           [ 1.]])
    >>> scaling.apply(np.array([[3.0, 8.0]]))
    array([[2.]])
    """

    keep: Mask
    mean: Array
    scale: Array

    @classmethod
    def fit_apply(cls, X: Array) -> tuple[Scaling, Array]:
        """Take mean and standard deviation (ddof 0) of every column that varies; return the scaled rows too."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean, scale = _moments(X)
        if not np.all(np.isfinite(scale) & (scale > 1e-150)):
            # Squares over- or underflow: divide each column by its largest entry first.
            size = np.maximum(np.abs(X).max(axis=0), np.finfo(float).tiny)
            mean, scale = (moment * size for moment in _moments(X / size))
        # Only a column of tiny spread can be constant; rounding of the mean cannot be told from spread.
        keep = np.ones(X.shape[1], dtype=bool)
        for column in np.flatnonzero(scale <= 1e-6 * np.abs(mean)):
            keep[column] = np.any(X[:, column] != X[0, column])
        scaling = cls(keep, mean[keep], scale[keep])
        return scaling, scaling.apply(X)

    def apply(self, X: Array) -> Array:
        """Return the scaled rows; one column of zeros if every column was constant."""
        if not self.keep.any():
            return np.zeros((len(X), 1))
        scaled = (X if self.keep.all() else X[:, self.keep]) - self.mean
        scaled /= self.scale
        return scaled


def _moments(rows: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation of the columns, block by block to spare memory."""
    n, d = rows.shape
    mean = np.full(n, 1.0 / n) @ rows
    total = np.zeros(d)
    size = max(256, 2**18 // d)
    for start in range(0, n, size):
        centred = rows[start : start + size] - mean
        total += np.einsum("ij,ij->j", centred, centred)
    return mean, np.sqrt(total / n)
