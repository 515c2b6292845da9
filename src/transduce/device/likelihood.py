"""Likelihoods of a Gaussian process and their gradients, for arrays on a device; formulas as in `process`.

Matrices are whole, not triangles: products of whole matrices are what a device is fast at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from transduce.core import arrays
from transduce.core.types import Array
from transduce.device import linalg, memory
from transduce.device.linalg import guarded_cholesky

N_MATRICES = 6  # of n x n numbers that live at once


def check_memory(n: int, X: Any) -> None:
    """Raise a MemoryError if the matrices of `n` rows cannot fit."""
    what = f"A Gaussian process with {n:,} rows"
    memory.check_fits(N_MATRICES * 8.0 * n**2, X, what, "TransductiveRidge(centres=500) needs far less.")


def cross_kernel(X: Any, Z: Any, relevance: Array) -> Any:
    """Return the kernel values of rows (n, d) and rows (k, d)."""
    xp = arrays.namespace(X)
    scale = arrays.beside(relevance, X)
    X, Z = (X * scale,) * 2 if X is Z else (X * scale, Z * scale)
    # One product makes the exponent: 2 <x, z> - |x|^2 - |z|^2.
    own, other = (xp.sum(rows * rows, axis=1)[:, None] for rows in (X, Z))
    left = xp.concat([2.0 * X, -own, xp.full_like(own, -1.0)], axis=1)
    right = xp.concat([Z, xp.ones_like(other), other], axis=1)
    exponents = left @ right.T
    # Rounding makes a hair more than 0 of two equal rows; only of far-off rows is that worth a look at every number.
    parts = (own,) if X is Z else (own, other)
    far = max(float(xp.max(part)) if part.shape[0] else 0.0 for part in parts) > 1e4
    return linalg.exp_not_positive(exponents) if far else linalg.exp(exponents)


def own_kernel(X: Any, relevance: Array) -> Any:
    """Return the kernel matrix of rows (n, d)."""
    return linalg.with_diagonal(cross_kernel(X, X, relevance), 1.0)


def factor(K: Any, noise: float) -> tuple[Any, float]:
    """Return the lower Cholesky factor of ``K + noise I``, and any jitter added."""
    return guarded_cholesky(linalg.shifted(K, noise))


def log_diagonal(L: Any) -> float:
    """Return the sum of the logarithms of a factor's diagonal."""
    xp = arrays.namespace(L)
    return float(xp.sum(xp.log(linalg.diagonal(L))))


def term(L: Any, z: Any, root: Any) -> tuple[float, Any]:
    """Return ``log|C|/2 + tr(C^-1 S)/2``, and twice its derivative, ``C^-1 - C^-1 S C^-1``.

    ``S = z z' + blockdiag(0, R R')``, the root ``R`` belonging to the last rows.
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


def slopes(M: Any, K: Any, X: Any) -> Array:
    """Return ``w'x_j^2 - x_j'W x_j`` for every feature, with ``W = M * K`` entry by entry and ``w = W 1``."""
    xp = arrays.namespace(X)
    columns = xp.concat([X, xp.ones_like(X[:, :1])], axis=1)
    products = linalg.times(M, K) @ columns
    return arrays.to_numpy(products[:, -1] @ X**2 - xp.sum(X * products[:, :-1], axis=0))


def trace(M: Any) -> float:
    """Return the sum of the diagonal."""
    return float(arrays.namespace(M).sum(linalg.diagonal(M)))


def evaluate(objective: Any, log_parameters: Array) -> tuple[float, Array]:
    """Return an objective of `transduce.methods.gaussian_process.process` and its gradient."""
    parameters = np.exp(log_parameters)
    relevance, noise = parameters[:-1], float(parameters[-1])
    X = objective.X if objective.looks_at_unlabelled else objective.X[: objective.y_l.shape[0], :]
    check_memory(X.shape[0], X)
    K = own_kernel(X, relevance)
    if objective.looks_at_unlabelled:
        value, M = _matched(objective, factor(K, noise)[0])
        own, slope = 0.5 * trace(M), slopes(M, K, X)
    else:
        value, own, slope = _plain(K, noise, objective.y_l, X)
    slope = -2.0 * relevance**2 * slope
    if len(relevance) == 1:
        slope = slope.sum(keepdims=True)
    shape, rate = objective.prior
    value += float(np.sum(rate * parameters - shape * log_parameters))
    return value, np.append(slope, noise * own) + rate * parameters - shape


def _plain(K: Any, noise: float, y: Any, X: Any) -> tuple[float, float, Array]:
    """Return value, half the trace of the derivative, and slopes without matching; no whole inverse is put together.

    With blocks of ``C^-1`` and ``w = C^-1 y`` the matrix of `slopes` is ``W = C^-1 * K - (w w') * K``.
    """
    try:
        logarithm, (upper, left, corner) = linalg.inverse_blocks_of(K, noise)
    except np.linalg.LinAlgError:  # singular to rounding: with a jitter
        value, M = term(factor(K, noise)[0], y, None)
        return value, 0.5 * trace(M), slopes(M, K, X)
    xp, middle = arrays.namespace(X), upper.shape[0]

    def product(columns: Any) -> Any:
        first, last = columns[:middle, ...], columns[middle:, ...]
        return xp.concat([upper @ first + left.T @ last, left @ first + corner @ last], axis=0)

    weights = product(y)
    value = logarithm + 0.5 * float(xp.sum(y * weights))
    own = 0.5 * (trace(upper) + trace(corner) - float(xp.sum(weights * weights)))
    upper = linalg.times(upper, K[:middle, :middle])
    left, corner = linalg.times(left, K[middle:, :middle]), linalg.times(corner, K[middle:, middle:])
    columns = xp.concat([X, xp.ones_like(X[:, :1])], axis=1)
    products = product(columns) - weights[:, None] * (K @ (weights[:, None] * columns))
    slope = products[:, -1] @ X**2 - xp.sum(X * products[:, :-1], axis=0)
    return value, own, arrays.to_numpy(slope)


def predictive(objective: Any, L: Any) -> tuple[Any, Any]:
    """Return mean and covariance of the missing labels, read off the joint factor."""
    n = objective.y_l.shape[0]
    half = linalg.triangular_solve(L[:n, :n], objective.y_l)
    corner = L[n:, n:]
    return L[n:, :n] @ half, corner @ corner.T


def _matched(objective: Any, L: Any) -> tuple[float, Any]:
    """Return the value without prior, and twice the derivative with respect to the covariance."""
    xp, n, share = arrays.namespace(L), objective.y_l.shape[0], objective.matching
    q = objective.match_factor(L) if objective.q is None else objective.q
    value, M = term(L, xp.concat([objective.y_l, q.mean]), q.root)
    value = share * (value - 0.5 * (q.mean.shape[0] + q.log_determinant) + q.penalty)
    M = M * share
    if share != 1.0:
        part, M_ll = term(L[:n, :n], objective.y_l, None)
        value += (1.0 - share) * part
        M[:n, :n] = M[:n, :n] + (1.0 - share) * M_ll
    return value, M
