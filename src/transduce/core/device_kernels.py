"""Kernel matrices and distances of arrays on a device, by the formulas of `transduce.core.kernels`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from transduce.core import arrays

NAMES = ("cosine", "exponential", "laplacian", "linear", "poly", "polynomial", "rbf", "sigmoid")


def matrix(kernel: Any, X: Any, Z: Any) -> Any:
    """Return the kernel values of rows (n, d) and rows (k, d), shape (n, k)."""
    xp, name = arrays.namespace(X), kernel.name
    if name not in NAMES:
        raise ValueError(
            f"kernel={name!r} is not there for arrays of {arrays.library_of(X)}: use one of "
            f"{', '.join(map(repr, NAMES))}, or pass numpy arrays."
        )
    arrays.check_fits(
        2 * 8.0 * X.shape[0] * Z.shape[0],
        X,
        f"The kernel matrix of {X.shape[0]:,} and {Z.shape[0]:,} rows",
        "Give fewer rows, or kernel='linear', which needs none of it.",
    )
    if name == "rbf":
        return xp.exp(squared_distances(X, Z, kernel.width) / (-2.0 * kernel.width**2))
    if name == "exponential":
        return xp.exp(xp.sqrt(by_blocks(X, Z, square_sum)) / (-2.0 * kernel.width**2))
    if name == "laplacian":
        return xp.exp(-by_blocks(X, Z, absolute_sum) / kernel.width)
    if name == "cosine":
        X, Z = (
            rows / xp.where(norms(rows) == 0.0, 1.0 + 0.0 * norms(rows), norms(rows))[:, None]
            for rows in (X, Z)
        )
    products = X @ Z.T
    if name in ("poly", "polynomial"):
        return (products + kernel.coef0) ** kernel.degree
    return xp.tanh(products + kernel.coef0) if name == "sigmoid" else products


def diagonal(kernel: Any, X: Any) -> Any:
    """Return the kernel value of each row with itself, shape (n,)."""
    xp = arrays.namespace(X)
    squares = xp.sum(X * X, axis=1)
    if kernel.name == "linear":
        return squares
    if kernel.name in ("poly", "polynomial"):
        return (squares + kernel.coef0) ** kernel.degree
    if kernel.name == "sigmoid":
        return xp.tanh(squares + kernel.coef0)
    if kernel.name == "cosine":
        return xp.where(squares > 0.0, xp.ones_like(squares), squares)
    return xp.ones_like(squares)


def norms(X: Any) -> Any:
    """Return the norm of every row."""
    xp = arrays.namespace(X)
    return xp.sqrt(xp.sum(X * X, axis=1))


def squared_distances(X: Any, Z: Any, width: float) -> Any:
    """Return the squared distances of rows (n, d) and rows (k, d), good to a billionth of ``width ** 2``."""
    xp = arrays.namespace(X)
    centre = xp.mean(Z, axis=0)
    same = X is Z
    X0 = X - centre
    Z0 = X0 if same else Z - centre
    squares_X = xp.sum(X0 * X0, axis=1)
    squares_Z = squares_X if same else xp.sum(Z0 * Z0, axis=1)
    largest = max(
        (float(xp.max(squares)) for squares in (squares_X, squares_Z) if squares.shape[0]), default=0.0
    )
    if not largest < 1e6 * width**2:
        return by_blocks(X, Z, square_sum)
    distances = X0 @ Z0.T
    distances *= -2.0
    distances += squares_X[:, None]
    distances += squares_Z[None, :]
    distances = xp.where(distances > 0.0, distances, xp.zeros_like(distances))
    return arrays.with_diagonal(distances, 0.0) if same else distances


def square_sum(differences: Any) -> Any:
    """Return the sum of squares over the last axis."""
    return arrays.namespace(differences).sum(differences * differences, axis=-1)


def absolute_sum(differences: Any) -> Any:
    """Return the sum of absolute values over the last axis."""
    xp = arrays.namespace(differences)
    return xp.sum(xp.abs(differences), axis=-1)


def by_blocks(X: Any, Z: Any, reduce: Callable[[Any], Any]) -> Any:
    """Return a function of the differences of rows (n, d) and rows (k, d), shape (n, k), without an n x k x d array."""
    found = arrays.zeros((X.shape[0], Z.shape[0]), X)
    size = max(1, 2**26 // max(Z.shape[0] * X.shape[1], 1))
    for start in range(0, X.shape[0], size):
        part = slice(start, min(start + size, X.shape[0]))
        found[part, :] = reduce(X[part, :][:, None, :] - Z[None, :, :])
    return found


def median_width(X: Any, max_rows: int) -> float:
    """Return the median distance between two rows, as `transduce.core.kernels.median_width` has it."""
    xp, n = arrays.namespace(X), X.shape[0]
    if n > max_rows:
        steps = np.linspace(0, n - 1, max_rows).round().astype(np.int64)
        X = xp.take(X, xp.take(arrays.lexsort(X), arrays.beside(steps, X)), axis=0)
    distances = xp.sqrt(by_blocks(X, X, square_sum))
    # Some hundred thousand numbers at most: their median is taken on the host.
    pairs = arrays.to_numpy(distances)[np.triu_indices(X.shape[0], 1)]
    median = float(np.median(pairs)) if len(pairs) else 0.0
    if median > 0.0:
        return median
    positive = pairs[pairs > 0.0]
    return float(positive.mean()) if len(positive) else 1.0
