"""Covariances of a Gaussian process on a device, whole, not triangles, with the functions that numpy's have."""

from __future__ import annotations

from typing import Any

from transduce.core import arrays
from transduce.core.types import Array
from transduce.device import linalg
from transduce.device.linalg import cholesky_solve as solve  # noqa: F401
from transduce.device.linalg import guarded_cholesky
from transduce.device.linalg import triangular_solve as half_solve  # noqa: F401


def with_ones(X: Any) -> Any:
    """Return rows (n, d) with one more column, of ones."""
    xp = arrays.namespace(X)
    return xp.concat([X, xp.ones_like(X[:, :1])], axis=1)


def cross_kernel(X: Any, Z: Any, relevance: Array) -> Any:
    """Return the kernel values of rows (n, d) and rows (k, d)."""
    xp = arrays.namespace(X)
    scale = arrays.beside(relevance, X)
    X, Z = (X * scale,) * 2 if X is Z else (X * scale, Z * scale)
    # One product makes the exponent: 2 <x, z> - |x|^2 - |z|^2.
    own, other = (xp.sum(rows * rows, axis=1)[:, None] for rows in (X, Z))
    left = xp.concat([2.0 * X, -own, xp.full_like(own, -1.0)], axis=1)
    # Rounding makes a hair more than 0 of two equal rows.
    return linalg.exp(left @ xp.concat([Z, xp.ones_like(other), other], axis=1).T)


def kernel_times(X: Any, points: Any, relevance: Array, coefficients: Any) -> Any:
    """Return the kernel values of rows (m, d) and points (p, d), times coefficients (p,), shape (m,)."""
    return cross_kernel(X, points, relevance) @ coefficients


def own_kernel(X: Any, relevance: Array) -> Any:
    """Return the kernel matrix of rows (n, d)."""
    return arrays.with_diagonal(cross_kernel(X, X, relevance), 1.0)


def factor_of(K: Any, noise: float) -> tuple[Any, float]:
    """Return the lower Cholesky factor of ``K + noise I``, and any jitter added."""
    return guarded_cholesky(arrays.shifted(K, noise))


def leading(L: Any, n: int) -> Any:
    """Return the factor of the first `n` rows."""
    return L[:n, :n]


def conditional(X: Any, relevance: Array, half: Any) -> Any:
    """Return ``K - half' half`` for rows (m, d) and ``half`` (l, m), shape (m, m)."""
    return own_kernel(X, relevance) - half.T @ half


def predictive(L: Any, y_l: Any) -> tuple[Any, Any]:
    """Return mean (m,) and covariance (m, m) of the missing labels, read off the joint factor."""
    n = y_l.shape[0]
    corner = L[n:, n:]
    return L[n:, :n] @ linalg.triangular_solve(L[:n, :n], y_l), corner @ corner.T


def log_diagonal(L: Any) -> float:
    """Return the sum of the logarithms of a factor's diagonal."""
    xp = arrays.namespace(L)
    return float(xp.sum(xp.log(arrays.diagonal(L))))


def term(L: Any, z: Any, root: Any) -> tuple[float, Any]:
    """Return ``log|C|/2 + tr(C^-1 S)/2``, and twice its derivative, ``C^-1 - C^-1 S C^-1``, as `triangles` does."""
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


def over_pairs(M: Any, A: Any) -> float:
    """Return the sum of ``M * A`` over pairs of rows, for a matrix A (n, n) with zeros along its diagonal."""
    return 0.5 * float(arrays.namespace(M).sum(M * A))


def slopes(M: Any, K: Any, columns: Any) -> Array:
    """Return ``w'x_j^2 - x_j'W x_j`` (d,) for every feature, ``W = M * K`` by entry, ``w = W 1``; M is used up."""
    M *= K
    products, X = M @ columns, columns[:, :-1]
    return arrays.to_numpy(
        products[:, -1] @ X**2 - arrays.namespace(X).sum(X * products[:, :-1], axis=0)
    )
