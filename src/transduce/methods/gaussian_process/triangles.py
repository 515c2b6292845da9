"""Covariances of a Gaussian process as LAPACK likes them: lower triangles in Fortran order.

What lies above the diagonal is rubbish: at some thousand rows memory is what limits. All products
go to scipy's BLAS, because the threads of numpy's and scipy's wait for each other.
It is one `CovarianceSolver`; `transduce.device.likelihood` is the other, for arrays on a device.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, lapack

from transduce.core.types import Array
from transduce.device.kernels import kernel_times as kernel_times
from transduce.device.linalg import guarded_cholesky

PANEL = 128  # columns of a triangle that are worked on at once
LARGEST_HALVED = 700  # beyond, halving gains little and its copies take memory
SINGULAR = (
    "The covariance matrix is not positive definite even with a millionth added to its diagonal: "
    "features or labels are too extreme for double precision."
)


def with_ones(X: Array) -> Array:
    """Return rows (n, d) with one more column, of ones, as `slopes` multiplies by them."""
    columns = np.ones((len(X), X.shape[1] + 1), order="F")
    columns[:, :-1] = X
    return columns


def cross_kernel(X: Array, Z: Array, relevance: Array) -> Array:
    """Return the kernel values of rows X (n, d) and Z (k, d), shape (n, k).

    ``-|x - z|^2 = 2 <x, z> - |x|^2 - |z|^2`` of rows times their relevances.
    """
    X = X * relevance
    Z = Z * relevance
    K = blas.dgemm(2.0, X.T, Z.T, trans_a=1)
    K -= np.einsum("ij,ij->i", X, X)[:, None]
    K -= np.einsum("ij,ij->i", Z, Z)
    np.minimum(K, 0.0, out=K)
    return np.exp(K, out=K)


def own_kernel(X: Array, relevance: Array) -> Array:
    """Return the lower triangle of the kernel matrix (n, n) of rows (n, d)."""
    X = X * relevance
    K = blas.dsyrk(2.0, X.T, trans=1, lower=1)
    squares = np.einsum("ij,ij->i", X, X)
    for j in range(0, len(K), PANEL):  # of some columns at once, little more than the triangle
        panel = K[j:, j : j + PANEL]
        panel -= squares[j:, None]
        panel -= squares[j : j + PANEL]
        np.minimum(panel, 0.0, out=panel)
        np.exp(panel, out=panel)
    K.flat[:: len(K) + 1] = 1.0
    return K


def factor_of(K: Array, noise: float) -> tuple[Array, float]:
    """Return the Cholesky factor ``L`` (n, n) of ``K + noise I = L L'``, and any jitter added."""
    C = K.copy(order="F")
    C.flat[:: len(C) + 1] += noise
    factor, info = lapack.dpotrf(C, lower=1, clean=0, overwrite_a=1)
    if info == 0:
        return factor, 0.0
    whole = np.tril(K) + np.tril(K, -1).T
    whole.flat[:: len(C) + 1] += noise
    try:
        factor, jitter = guarded_cholesky(whole)
    except np.linalg.LinAlgError:
        raise ValueError(SINGULAR) from None
    return np.asfortranarray(factor), jitter


def inverse_of(factor: Array) -> Array:
    """Return the lower triangle of ``(L L')^-1`` (n, n); the factor ``L`` is overwritten."""
    if len(factor) > LARGEST_HALVED:
        return lapack.dpotri(factor, lower=1, overwrite_c=1)[0]
    _invert_triangle(factor)
    return lapack.dlauum(factor, lower=1, overwrite_c=1)[0]


def _invert_triangle(L: Array) -> None:
    """Invert a lower triangle in place by halves.

    ``[[A, 0], [B, D]]^-1 = [[A^-1, 0], [-D^-1 B A^-1, D^-1]]``. LAPACK's own way takes twice as
    long for some hundred rows.
    """
    if len(L) <= PANEL // 2:
        L[...] = lapack.dtrtri(L, lower=1)[0]
        return
    k = len(L) // 2
    upper_left = L[:k, :k]
    lower_right = L[k:, k:]
    _invert_triangle(upper_left)
    _invert_triangle(lower_right)
    below = blas.dtrmm(-1.0, lower_right, L[k:, :k], lower=1)
    L[k:, :k] = blas.dtrmm(1.0, upper_left, below, side=1, lower=1, overwrite_b=1)


def leading(factor: Array, n: int) -> Array:
    """Return the factor of the first `n` rows, a copy, since `term` overwrites factors."""
    return factor[:n, :n].copy(order="F")


def log_diagonal(factor: Array) -> float:
    """Return the sum of the logarithms of a factor's diagonal."""
    return float(np.log(factor.diagonal()).sum())


def solve(factor: Array, y: Array) -> Array:
    """Return ``(L L')^-1 y``."""
    return lapack.dpotrs(factor, y, lower=1)[0]


def by_columns(K: Array) -> Array:
    """Return kernel values (n, m) in Fortran order, as `half_solve` overwrites them."""
    return np.asfortranarray(K)


def half_solve(factor: Array, K: Array) -> Array:
    """Return ``L^-1 K`` for kernel values (n, m), which are overwritten."""
    return blas.dtrsm(1.0, factor, K, lower=1, overwrite_b=1)


def conditional(X: Array, relevance: Array, half: Array) -> Array:
    """Return ``K - half' half``, the whole matrix (m, m), for rows (m, d) and ``half`` (l, m)."""
    K = own_kernel(X, relevance)
    C = blas.dsyrk(-1.0, half, beta=1.0, c=K, trans=1, lower=1, overwrite_c=1)
    return np.tril(C) + np.tril(C, -1).T


def predictive(factor: Array, y_l: Array) -> tuple[Array, Array]:
    """Return mean (m,) and covariance (m, m) of the missing labels, read off the joint factor.

    With ``L = [[L_ll, 0], [L_al, L_aa]]`` they are ``L_al L_ll^-1 y_l`` and ``L_aa L_aa'``.
    """
    n = len(y_l)
    half = blas.dtrsv(leading(factor, n), y_l, lower=1)
    mean = factor[n:, :n] @ half
    corner = np.tril(factor[n:, n:])
    return mean, blas.dgemm(1.0, corner, corner, trans_b=1)


def term(factor: Array, z: Array, root: Array | None) -> tuple[float, Array]:
    """Return ``log|C|/2 + tr(C^-1 S)/2`` and twice its derivative, ``C^-1 - C^-1 S C^-1``.

    ``S = z z' + blockdiag(0, R R')``, the root ``R`` belonging to the last rows. Of the derivative
    the lower triangle counts, and the factor of ``C`` is overwritten.
    """
    value = log_diagonal(factor)
    weights = solve(factor, z)
    value += 0.5 * float(z @ weights)
    inverse = inverse_of(factor)
    if root is not None:
        m = len(root)
        U = np.empty((len(z), m), order="F")  # C^-1 [0; R]
        U[:-m] = blas.dgemm(1.0, inverse[-m:, :-m], root, trans_a=1)
        U[-m:] = blas.dsymm(1.0, inverse[-m:, -m:], root, lower=1)
        value += 0.5 * float(np.einsum("ij,ij->", root, U[-m:]))
        inverse = blas.dsyrk(-1.0, U, beta=1.0, c=inverse, lower=1, overwrite_c=1)
    derivative = blas.dsyr(-1.0, weights, a=inverse, lower=1, overwrite_a=1)
    return value, derivative


def over_pairs(M: Array, A: Array) -> float:
    """Return the sum of ``M * A`` over pairs of rows, for a whole matrix A (n, n)."""
    return float(np.vdot(np.tril(M, -1), A))


def slopes(M: Array, K: Array, columns: Array) -> Array:
    """Return ``w'x_j^2 - x_j'W x_j`` (d,) for every feature; K is overwritten.

    ``W = M * K`` by entry and ``w = W 1``; the last of the columns (n, d + 1) are ones.
    """
    W = np.multiply(M, K, out=K)
    products = blas.dsymm(1.0, W, columns, lower=1)
    X = columns[:, :-1]
    W_X = products[:, :-1]
    w = products[:, -1]
    return w @ X**2 - np.einsum("ij,ij->j", X, W_X)
