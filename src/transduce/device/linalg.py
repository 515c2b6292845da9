"""Linear algebra on any device: guarded Cholesky factors, solutions, and inverses by blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import scipy.linalg
from scipy.linalg import lapack
from scipy.sparse.linalg import LinearOperator, cg

from transduce.core import arrays
from transduce.core.types import Array, DeviceArray

BLOCK = 320  # rows of the thinnest strip of a matrix that is multiplied by itself
LEAF = 2000  # rows of a triangle that is inverted as it is
SMALLEST_SINGULAR = 1e-9  # of the largest: smaller singular values say nothing
EPSILON = float(np.finfo(float).eps)
MOST_JITTER = 1e-6  # of the largest diagonal entry: more is no rounding
MOST_STEPS = 200  # of conjugate gradients
IMPROPER = (
    "The kernel matrix plus ridge={:g} is not positive definite: the kernel is not valid for "
    "these rows. Use another kernel, or a larger ridge."
)

Product = Callable[[DeviceArray], DeviceArray]


def exp(A: DeviceArray) -> DeviceArray:
    """Return ``exp(min(A, 0))``; the array may be the same, changed."""
    if arrays.library_of(A) == "torch":
        return A.clamp_(max=0.0).exp_()
    xp = arrays.namespace(A)
    return xp.exp(xp.where(A < 0.0, A, xp.zeros_like(A)))


def cholesky(A: DeviceArray) -> DeviceArray:
    """Return the lower Cholesky factor of a matrix, or of a batch; LinAlgError if there is none."""
    if arrays.library_of(A) != "torch":
        return arrays.namespace(A).linalg.cholesky(A)
    import torch

    factor, info = torch.linalg.cholesky_ex(A)
    if bool((info != 0).any()):
        raise np.linalg.LinAlgError("Matrix is not positive definite")
    return factor


def eigh(A: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """Return ascending eigenvalues and eigenvectors of a symmetric matrix."""
    if arrays.is_foreign(A):
        return arrays.namespace(A).linalg.eigh(A)
    return scipy.linalg.eigh(A, driver="evd", check_finite=False)


def triangle(A: DeviceArray) -> DeviceArray:
    """Return ``R`` of the thin factorisation ``A = Q R`` of a matrix (n, p): (min(n, p), p)."""
    library = arrays.library_of(A)
    if library == "numpy":
        return np.linalg.qr(A, mode="r")
    if library == "torch":
        import torch

        return torch.linalg.qr(A, mode="r")[1]
    return arrays.namespace(A).linalg.qr(A)[1]


def triangle_of_blocks(blocks: Iterable[DeviceArray]) -> DeviceArray:
    """Return the triangle of a matrix that comes in blocks of rows, never all at once."""
    upper = None
    for block in blocks:
        rows = block
        if upper is not None:
            rows = arrays.namespace(block).concat([upper, block], axis=0)
        upper = triangle(rows)
    return upper


def left_singular(A: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """Return left singular vectors (n, k) and singular values (k,) of a matrix (n, p).

    Of a matrix with more rows than columns, those are left out whose value is rounding noise beside
    the largest.
    """
    xp = arrays.namespace(A)
    if A.shape[0] <= A.shape[1]:
        vectors, values, _ = xp.linalg.svd(A, full_matrices=False)
        return vectors, values
    # From the right ones of the triangle, in half of the time of those of Q. An entry is off by
    # some epsilon times its row's length over the singular value, which is little even for the
    # smallest that is kept.
    values, right = right_singular(triangle(A))
    n_kept = int(arrays.to_numpy(values > SMALLEST_SINGULAR * values[0]).sum())
    values = values[:n_kept]
    return A @ (right[:, :n_kept] / values), values


def right_singular(A: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """Return singular values (k,) and right singular vectors (p, k) of a matrix (n, p)."""
    _, values, right = arrays.namespace(A).linalg.svd(A, full_matrices=False)
    return values, right.T


def guarded_cholesky(A: DeviceArray) -> tuple[DeviceArray, float]:
    """Return the lower Cholesky factor of a matrix (n, n), and what its diagonal needed besides."""
    jitter = 0.0
    shifted = A
    while True:
        try:
            return cholesky(shifted), jitter
        except np.linalg.LinAlgError:
            diagonal = arrays.to_numpy(arrays.diagonal(A))
            largest = float(np.max(diagonal, initial=0.0))
            step = max(A.shape[0] * EPSILON * largest, np.finfo(float).tiny)
            jitter = max(step, jitter * 100)
            if not jitter <= MOST_JITTER * largest:
                raise np.linalg.LinAlgError(
                    "the matrix is not positive definite, by more than rounding can explain"
                ) from None
            shifted = arrays.shifted(A, jitter)


def triangular_solve(
    factor: DeviceArray, b: DeviceArray, *, transposed: bool = False
) -> DeviceArray:
    """Return ``L^-1 b``, or ``L'^-1 b``, for a lower factor (n, n) and sides (n,) or (n, k)."""
    library = arrays.library_of(factor)
    if library == "numpy":
        turn = "T" if transposed else "N"
        return scipy.linalg.solve_triangular(factor, b, lower=True, trans=turn, check_finite=False)
    if b.ndim == 1:
        return triangular_solve(factor, b[:, None], transposed=transposed)[:, 0]
    matrix = factor.T if transposed else factor
    if library == "torch":
        import torch

        return torch.linalg.solve_triangular(matrix, b, upper=transposed)
    return arrays.namespace(b).linalg.solve(matrix, b)


def cholesky_solve(factor: DeviceArray, b: DeviceArray) -> DeviceArray:
    """Return ``(L L')^-1 b`` for the lower factor L."""
    if not arrays.is_foreign(factor):
        return scipy.linalg.cho_solve((factor, True), b)
    return triangular_solve(factor, triangular_solve(factor, b), transposed=True)


def positive_inverse(A: DeviceArray) -> DeviceArray:
    """Return the inverse of a positive definite matrix (n, n), which may be overwritten."""
    if arrays.is_foreign(A):
        return cholesky_inverse(cholesky(A))
    factor = scipy.linalg.cho_factor(A, lower=True, overwrite_a=True)
    return scipy.linalg.cho_solve(factor, np.eye(len(A)), overwrite_b=True)


def solver(A: DeviceArray) -> Product:
    """Return the function that solves with a square matrix, factorised once where that is kept."""
    if arrays.is_foreign(A):
        return partial(arrays.namespace(A).linalg.solve, A)
    return partial(scipy.linalg.lu_solve, scipy.linalg.lu_factor(A))


def length(x: DeviceArray) -> float:
    """Return the root of the sum of squares of an array."""
    return float(arrays.namespace(x).linalg.vector_norm(x))


def conjugate_gradients(
    operate: Product,
    precondition: Product,
    right: DeviceArray,
    x: DeviceArray,
    tolerance: float,
) -> DeviceArray:
    """Return the solution of a positive definite system from a first guess."""
    if not arrays.is_foreign(right):
        shape = (len(right), len(right))
        A = LinearOperator(shape, matvec=operate, dtype=float)
        M = LinearOperator(shape, matvec=precondition, dtype=float)
        return cg(A, right, x0=x, rtol=tolerance, maxiter=MOST_STEPS, M=M)[0]
    xp = arrays.namespace(right)
    goal = tolerance * length(right)
    residual = right - operate(x)
    direction = xp.zeros_like(residual)
    before = 1.0
    for _ in range(MOST_STEPS):
        if length(residual) <= goal:
            break
        z = precondition(residual)
        now = float(xp.sum(residual * z))
        direction = z + (now / before) * direction
        image = operate(direction)
        step = now / float(xp.sum(direction * image))
        x = x + step * direction
        residual = residual - step * image
        before = now
    return x


def inverse_diagonal(factor: Array) -> Array:
    """Return ``diag((L L')^-1)`` (n,) from the lower Cholesky factor ``L`` (n, n)."""
    if arrays.is_foreign(factor):
        return arrays.column_squares(_triangle_inverse(factor))
    inverse, info = lapack.dtrtri(factor, lower=1)
    if info:
        raise np.linalg.LinAlgError(
            "a triangular factor with a zero on its diagonal has no inverse"
        )
    return arrays.column_squares(inverse)


def _triangle_inverse(factor: DeviceArray) -> DeviceArray:
    """Return the inverse of a lower triangle (n, n), a large one by halves."""
    # On an H200 halves of 2,000 rows take from 0.3 (2,000 rows) to 0.7 (30,000) of the time that
    # one solution takes.
    n = factor.shape[0]
    if n <= LEAF:
        xp = arrays.namespace(factor)
        identity = xp.eye(n, dtype=factor.dtype, **arrays.on_device(factor))
        return triangular_solve(factor, identity)
    half = n // 2
    above = _triangle_inverse(factor[:half, :half])
    below = _triangle_inverse(factor[half:, half:])
    inverse = arrays.zeros(factor.shape, factor)
    inverse[:half, :half] = above
    inverse[half:, half:] = below
    inverse[half:, :half] = -(below @ (factor[half:, :half] @ above))
    return inverse


def cholesky_inverse(factor: DeviceArray) -> DeviceArray:
    """Return ``(L L')^-1``, both triangles, from the lower factor L."""
    # Strips below the diagonal are mirrored above it.
    half = _triangle_inverse(factor)
    inverse = arrays.zeros(factor.shape, factor)
    n = factor.shape[0]
    for strip in arrays.blocks(n, max(BLOCK, -(-n // 10))):
        lower = half[strip.start :, :]  # rows above are 0
        block = lower[:, strip].T @ lower[:, : strip.stop]
        inverse[strip, : strip.stop] = block
        inverse[: strip.start, strip] = block[:, : strip.start].T
    return inverse
