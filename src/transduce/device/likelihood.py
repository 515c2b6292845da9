"""Covariances of a Gaussian process on a device: whole matrices instead of triangles."""

from __future__ import annotations

from transduce.core import arrays
from transduce.core.types import Array, DeviceArray
from transduce.device import linalg

solve = linalg.cholesky_solve
half_solve = linalg.triangular_solve


def with_ones(X: DeviceArray) -> DeviceArray:
    """Return rows (n, d) with one more column, of ones."""
    xp = arrays.namespace(X)
    return xp.concat([X, xp.ones_like(X[:, :1])], axis=1)


def cross_kernel(X: DeviceArray, Z: DeviceArray, relevance: Array) -> DeviceArray:
    """Return the kernel values of rows (n, d) and rows (k, d)."""
    xp = arrays.namespace(X)
    scale = arrays.asarray_like(relevance, X)
    left = X * scale
    right = left if X is Z else Z * scale
    # One product makes the exponent: 2 <x, z> - |x|^2 - |z|^2.
    left_squares = xp.sum(left * left, axis=1)[:, None]
    right_squares = xp.sum(right * right, axis=1)[:, None]
    minus_ones = xp.full_like(left_squares, -1.0)
    left = xp.concat([2.0 * left, -left_squares, minus_ones], axis=1)
    right = xp.concat([right, xp.ones_like(right_squares), right_squares], axis=1)
    # Rounding makes a hair more than 0 of two equal rows, which `exp` cuts off.
    return linalg.exp(left @ right.T)


def kernel_times(
    X: DeviceArray, points: DeviceArray, relevance: Array, coefficients: DeviceArray
) -> DeviceArray:
    """Return the kernel of rows (m, d) and points (p, d), times coefficients (p,); (m,)."""
    return cross_kernel(X, points, relevance) @ coefficients


def own_kernel(X: DeviceArray, relevance: Array) -> DeviceArray:
    """Return the kernel matrix of rows (n, d)."""
    return arrays.with_diagonal(cross_kernel(X, X, relevance), 1.0)


def factor_of(K: DeviceArray, noise: float) -> tuple[DeviceArray, float]:
    """Return the lower Cholesky factor of ``K + noise I``, and any jitter added."""
    return linalg.guarded_cholesky(arrays.shifted(K, noise))


def leading(L: DeviceArray, n: int) -> DeviceArray:
    """Return the factor of the first `n` rows."""
    return L[:n, :n]


def by_columns(K: DeviceArray) -> DeviceArray:
    """Return kernel values as they are: nothing is overwritten on a device."""
    return K


def conditional(X: DeviceArray, relevance: Array, half: DeviceArray) -> DeviceArray:
    """Return ``K - half' half`` for rows (m, d) and ``half`` (l, m), shape (m, m)."""
    return own_kernel(X, relevance) - half.T @ half


def predictive(L: DeviceArray, y_l: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """Return mean (m,) and covariance (m, m) of the missing labels, read off the joint factor."""
    n = y_l.shape[0]
    corner = L[n:, n:]
    return L[n:, :n] @ linalg.triangular_solve(L[:n, :n], y_l), corner @ corner.T


def log_diagonal(L: DeviceArray) -> float:
    """Return the sum of the logarithms of a factor's diagonal."""
    xp = arrays.namespace(L)
    return float(xp.sum(xp.log(arrays.diagonal(L))))


def term(L: DeviceArray, z: DeviceArray, root: DeviceArray) -> tuple[float, DeviceArray]:
    """Return ``log|C|/2 + tr(C^-1 S)/2``, and twice its derivative.

    The derivative is ``C^-1 - C^-1 S C^-1``, as in `triangles`.
    """
    xp = arrays.namespace(L)
    value = log_diagonal(L)
    inverse = linalg.cholesky_inverse(L)
    weights = inverse @ z
    value += 0.5 * float(xp.sum(z * weights))
    if root is not None:
        m = root.shape[0]
        U = inverse[:, -m:] @ root
        value += 0.5 * float(xp.sum(root * U[-m:, :]))
        inverse = inverse - U @ U.T
    return value, inverse - weights[:, None] * weights[None, :]


def over_pairs(M: DeviceArray, A: DeviceArray) -> float:
    """Return the sum of ``M * A`` over pairs of rows.

    The matrix A (n, n) has zeros along its diagonal.
    """
    return 0.5 * float(arrays.namespace(M).sum(M * A))


def slopes(M: DeviceArray, K: DeviceArray, columns: DeviceArray) -> Array:
    """Return ``w'x_j^2 - x_j'W x_j`` (d,) for every feature.

    ``W = M * K`` by entry and ``w = W 1``. M is used up.
    """
    M *= K
    products = M @ columns
    X = columns[:, :-1]
    crossed = arrays.namespace(X).sum(X * products[:, :-1], axis=0)
    return arrays.to_numpy(products[:, -1] @ X**2 - crossed)
