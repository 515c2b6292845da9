"""Linear algebra on any device: guarded Cholesky factors, solutions, and inverses by blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import lapack
from scipy.sparse.linalg import LinearOperator, cg

from transduce.core import arrays
from transduce.core.types import Array

BLOCK = 320  # rows of the thinnest strip of a matrix that is multiplied by itself
LEAF = 2000  # rows of a triangle that is inverted as it is
SMALLEST_SINGULAR = 1e-9  # of the largest: smaller singular values say nothing
EPSILON = float(np.finfo(float).eps)
IMPROPER = (
    "The kernel matrix plus ridge={:g} is not positive definite: the kernel is not valid for "
    "these rows. Use another kernel, or a larger ridge."
)


def exp(A: Any) -> Any:
    """Return ``exp(min(A, 0))``; the array may be the same, changed."""
    if arrays.library_of(A) == "torch":
        return A.clamp_(max=0.0).exp_()
    xp = arrays.namespace(A)
    return xp.exp(xp.where(A < 0.0, A, xp.zeros_like(A)))


def cholesky(A: Any) -> Any:
    """Return the lower Cholesky factor of a matrix, or of a batch of them; numpy's LinAlgError if there is none."""
    library = arrays.library_of(A)
    if library == "torch":
        import torch

        factor, info = torch.linalg.cholesky_ex(A)
        if bool((info != 0).any()):
            raise np.linalg.LinAlgError("Matrix is not positive definite")
        return factor
    xp = arrays.namespace(A)
    factor = xp.linalg.cholesky(A)
    if library == "cupy" and not bool(xp.all(xp.isfinite(factor))):
        raise np.linalg.LinAlgError("Matrix is not positive definite")
    return factor


def eigh(A: Any) -> tuple[Any, Any]:
    """Return ascending eigenvalues and eigenvectors of a symmetric matrix."""
    if arrays.is_foreign(A):
        return arrays.namespace(A).linalg.eigh(A)
    return scipy.linalg.eigh(A, driver="evd", check_finite=False)


def triangle(A: Any) -> Any:
    """Return ``R`` of the thin factorisation ``A = Q R`` of a matrix (n, p), shape (min(n, p), p)."""
    library = arrays.library_of(A)
    if library == "numpy":
        return np.linalg.qr(A, mode="r")
    if library == "torch":
        import torch

        return torch.linalg.qr(A, mode="r")[1]
    return arrays.namespace(A).linalg.qr(A)[1]


def triangle_of_blocks(blocks: Iterable[Any]) -> Any:
    """Return the triangle of a matrix that comes in blocks of rows, at least one; its rows are never all there."""
    upper = None
    for block in blocks:
        above = block if upper is None else arrays.namespace(block).concat([upper, block], axis=0)
        upper = triangle(above)
    return upper


def left_singular(A: Any) -> tuple[Any, Any]:
    """Return left singular vectors (n, k) and singular values (k,) of a matrix (n, p), k at most min(n, p).

    Of a matrix with more rows than columns, those are left out whose value is rounding noise beside the largest.
    """
    xp = arrays.namespace(A)
    if A.shape[0] <= A.shape[1]:
        vectors, values, _ = xp.linalg.svd(A, full_matrices=False)
        return vectors, values
    # From the right ones of the triangle, in half of the time of those of Q. An entry is off by some epsilon times its
    # row's length over the singular value, which is little even for the smallest that is kept.
    values, right = right_singular(triangle(A))
    kept = int(arrays.to_numpy(values > SMALLEST_SINGULAR * values[0]).sum())
    values = values[:kept]
    return A @ (right[:, :kept] / values), values


def right_singular(A: Any) -> tuple[Any, Any]:
    """Return singular values (k,) and right singular vectors (p, k) of a matrix (n, p), k = min(n, p)."""
    _, values, right = arrays.namespace(A).linalg.svd(A, full_matrices=False)
    return values, right.T


def guarded_cholesky(A: Any) -> tuple[Any, float]:
    """Return the lower Cholesky factor of a symmetric matrix (n, n), and what had to be added to its diagonal."""
    jitter = 0.0
    while True:
        try:
            return cholesky(A if jitter == 0.0 else arrays.shifted(A, jitter)), jitter
        except np.linalg.LinAlgError:
            largest = float(np.max(arrays.to_numpy(arrays.diagonal(A)), initial=0.0))
            step = max(A.shape[0] * EPSILON * largest, np.finfo(float).tiny)
            jitter = step if jitter == 0.0 else jitter * 100
            if not jitter <= 1e-6 * largest:
                raise np.linalg.LinAlgError(
                    "the matrix is not positive definite, by more than rounding can explain"
                ) from None


def triangular_solve(factor: Any, b: Any, *, transposed: bool = False) -> Any:
    """Return ``L^-1 b``, or ``L'^-1 b``, for a lower triangular factor (n, n) and right sides (n,) or (n, k)."""
    library, turn = arrays.library_of(factor), "T" if transposed else "N"
    if library == "numpy":
        return scipy.linalg.solve_triangular(factor, b, lower=True, trans=turn, check_finite=False)
    columns = b[:, None] if b.ndim == 1 else b
    if library == "torch":
        import torch

        matrix = factor.T if transposed else factor
        solved = torch.linalg.solve_triangular(matrix, columns, upper=transposed)
    elif library == "cupy":
        from cupyx.scipy.linalg import solve_triangular

        solved = solve_triangular(factor, columns, lower=True, trans=turn)
    else:
        solved = arrays.namespace(b).linalg.solve(factor.T if transposed else factor, columns)
    return solved[:, 0] if b.ndim == 1 else solved


def cholesky_solve(factor: Any, b: Any) -> Any:
    """Return ``(L L')^-1 b`` for the lower factor L."""
    if not arrays.is_foreign(factor):
        return scipy.linalg.cho_solve((factor, True), b)
    return triangular_solve(factor, triangular_solve(factor, b), transposed=True)


def positive_inverse(A: Any) -> Any:
    """Return the inverse of a positive definite matrix (n, n), which may be overwritten."""
    if arrays.is_foreign(A):
        return cholesky_inverse(cholesky(A))
    factor = scipy.linalg.cho_factor(A, lower=True, overwrite_a=True)
    return scipy.linalg.cho_solve(factor, np.eye(len(A)), overwrite_b=True)


def solver(A: Any) -> Callable[[Any], Any]:
    """Return the function that solves with a square matrix, factorised once where the library keeps factors."""
    if arrays.is_foreign(A):
        return partial(arrays.namespace(A).linalg.solve, A)
    return partial(scipy.linalg.lu_solve, scipy.linalg.lu_factor(A))


def length(x: Any) -> float:
    """Return the root of the sum of squares of an array."""
    return float(arrays.namespace(x).linalg.vector_norm(x))


def conjugate_gradients(
    operate: Callable[[Any], Any],
    precondition: Callable[[Any], Any],
    right: Any,
    x: Any,
    tolerance: float,
) -> Any:
    """Return the solution of a positive definite system from a first guess, by at most 200 steps."""
    if not arrays.is_foreign(right):
        shape, products = (len(right), len(right)), (operate, precondition)
        A, M = (LinearOperator(shape, matvec=product, dtype=float) for product in products)
        return cg(A, right, x0=x, rtol=tolerance, maxiter=200, M=M)[0]
    xp, goal = arrays.namespace(right), tolerance * length(right)
    residual = right - operate(x)
    direction, before = None, 1.0
    for _ in range(200):
        if length(residual) <= goal:
            break
        z = precondition(residual)
        now = float(xp.sum(residual * z))
        direction = z if direction is None else z + (now / before) * direction
        image = operate(direction)
        step = now / float(xp.sum(direction * image))
        x, residual, before = x + step * direction, residual - step * image, now
    return x


def inverse_diagonal(factor: Array) -> Array:
    """Return ``diag((L L')^-1)`` from the lower Cholesky factor ``L``. Shapes: factor (n, n); returns (n,)."""
    if arrays.is_foreign(factor):
        return arrays.column_squares(_triangle_inverse(factor))
    inverse, info = lapack.dtrtri(factor, lower=1)
    if info:
        raise np.linalg.LinAlgError(
            "a triangular factor with a zero on its diagonal has no inverse"
        )
    return arrays.column_squares(inverse)


def _triangle_inverse(factor: Any) -> Any:
    """Return the inverse of a lower triangle (n, n), a large one by halves."""
    # On an H200 halves of 2,000 rows take from 0.3 (2,000 rows) to 0.7 (30,000) of the time that one solution takes.
    n, xp = factor.shape[0], arrays.namespace(factor)
    if n <= LEAF:
        return triangular_solve(factor, xp.eye(n, dtype=factor.dtype, **arrays.on_device(factor)))
    k, inverse = n // 2, arrays.zeros(factor.shape, factor)
    inverse[:k, :k], inverse[k:, k:] = (
        _triangle_inverse(part) for part in (factor[:k, :k], factor[k:, k:])
    )
    inverse[k:, :k] = -(inverse[k:, k:] @ (factor[k:, :k] @ inverse[:k, :k]))
    return inverse


def cholesky_inverse(factor: Any) -> Any:
    """Return ``(L L')^-1`` from the lower factor L, both triangles: strips below the diagonal are mirrored above it."""
    half, out = _triangle_inverse(factor), arrays.zeros(factor.shape, factor)
    n = factor.shape[0]
    for strip in arrays.blocks(n, max(BLOCK, -(-n // 10))):
        block = half[strip.start :, strip].T @ half[strip.start :, : strip.stop]  # rows above are 0
        out[strip, : strip.stop], out[: strip.start, strip] = block, block[:, : strip.start].T
    return out
