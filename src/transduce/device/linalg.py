"""Linear algebra on any device: guarded Cholesky factors, solutions, and inverses by blocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import lapack
from scipy.sparse.linalg import LinearOperator, cg

from transduce.core import arrays
from transduce.core.types import Array

BLOCK = 320  # rows of the thinnest strip of a matrix that is multiplied by itself
LEAF = 160  # rows of the diagonal blocks of a factor that are inverted as they are
EPSILON = float(np.finfo(float).eps)
IMPROPER = (
    "The kernel matrix plus ridge={:g} is not positive definite: the kernel is not valid for "
    "these rows. Use another kernel, or a larger ridge."
)


def exp(A: Any, *, clip: bool = False) -> Any:
    """Return ``exp(A)``, or ``exp(min(A, 0))``; the array may be the same, changed."""
    if arrays.library_of(A) == "torch":
        return (A.clamp_(max=0.0) if clip else A).exp_()
    xp = arrays.namespace(A)
    return xp.exp(xp.where(A < 0.0, A, xp.zeros_like(A)) if clip else A)


def times(A: Any, B: Any) -> Any:
    """Return the product entry by entry; the first array may be the same, changed."""
    return A.mul_(B) if arrays.library_of(A) == "torch" else A * B


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
    operate: Callable[[Any], Any], precondition: Callable[[Any], Any], right: Any, x: Any, tolerance: float
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
        n = factor.shape[0]
        return arrays.column_squares(_block_inverses(factor, 1)[0, ...][:n, :n])
    inverse, info = lapack.dtrtri(factor, lower=1)
    if info:
        raise np.linalg.LinAlgError("a triangular factor with a zero on its diagonal has no inverse")
    return arrays.column_squares(inverse)


def _block_inverses(factor: Any, n_blocks: int) -> Any:
    """Return the inverses (n_blocks, s, s) of a power of 2 of diagonal blocks; the last is filled up."""
    # All blocks of a size are worked on in one batch: small ones are inverted, then each two are joined to one.
    xp, n = arrays.namespace(factor), factor.shape[0]
    n_leaves = n_blocks
    while n > n_leaves * LEAF:
        n_leaves *= 2
    size = -(-n // n_leaves)
    size = -(-size // 16) * 16 if n > 1024 else size
    blocks = _small_inverses(xp, xp.stack([_block(factor, i, i, size) for i in range(n_leaves)]))
    while blocks.shape[0] > n_blocks:
        below = xp.stack([_block(factor, i + 1, i, size) for i in range(0, blocks.shape[0], 2)])
        upper, lower = blocks[0::2, ...], blocks[1::2, ...]
        left = -(lower @ (below @ upper))
        joined = [xp.concat([upper, xp.zeros_like(upper)], axis=2), xp.concat([left, lower], axis=2)]
        blocks, size = xp.concat(joined, axis=1), 2 * size
    return blocks


def _small_inverses(xp: Any, blocks: Any) -> Any:
    """Return the inverses of a batch of small lower triangular matrices."""
    one = xp.eye(blocks.shape[1], dtype=blocks.dtype, **arrays.on_device(blocks))
    if arrays.library_of(blocks) == "torch":
        import torch

        return torch.linalg.solve_triangular(blocks, one.expand_as(blocks), upper=False)
    return xp.stack([triangular_solve(blocks[i, ...], one) for i in range(blocks.shape[0])])


def _block(factor: Any, row: int, column: int, size: int) -> Any:
    """Return a block of a lower triangular matrix; what lies beyond its end is as in the identity."""
    n, xp = factor.shape[0], arrays.namespace(factor)
    top, left = min(row * size, n), min(column * size, n)
    bottom, right = min(top + size, n), min(left + size, n)
    if bottom - top == right - left == size:
        return factor[top:bottom, left:right]
    filled = arrays.zeros((size, size), factor)
    if row == column:
        filled = xp.eye(size, dtype=factor.dtype, **arrays.on_device(factor))
    filled[: bottom - top, : right - left] = factor[top:bottom, left:right]
    return filled


def _strips(n: int, most: int) -> list[tuple[int, int]]:
    """Return a few strips of `n` rows, none thinner than a block."""
    step = max(BLOCK, -(-n // most))
    return [(start, min(start + step, n)) for start in range(0, n, step)]


def _times_lower(A: Any, lower: Any) -> Any:
    """Return ``A @ lower`` for a lower triangular matrix, in strips that leave most of its zeros out."""
    product = arrays.empty(A.shape, A)
    for first, last in _strips(lower.shape[0], most=4):
        product[:, first:last] = A[:, first:] @ lower[first:, first:last]
    return product


def _symmetric_product(half: Any, V: Any = None, left: Any = None) -> Any:
    """Return ``half' half - V' left`` for a lower triangular half; strips below the diagonal are mirrored above it."""
    out = arrays.empty(half.shape, half)
    for start, stop in _strips(half.shape[0], most=10):
        block = half[start:, start:stop].T @ half[start:, :stop]  # rows above are 0
        if V is not None:
            block -= V[:, start:stop].T @ left[:, :stop]
        out[start:stop, :stop] = block
        out[:start, start:stop] = block[:, :start].T
    return out


def cholesky_inverse_blocks(factor: Any) -> tuple[Any, Any, Any]:
    """Return upper left, lower left and lower right of ``(L L')^-1`` from the lower factor L."""
    # With ``L = [[L1, 0], [L21, L2]]``, ``Z2 = (L2 L2')^-1`` and ``V = L21 L1^-1`` the lower left is ``-Z2 V``, and the
    # upper left ``(L1 L1')^-1 + V' Z2 V``.
    halves = _block_inverses(factor, 2)
    middle, n = halves.shape[1], factor.shape[0]
    corner = _symmetric_product(halves[1, ...][: n - middle, : n - middle])
    V = _times_lower(factor[middle:, :middle], halves[0, ...])
    left = -(corner @ V)
    return _symmetric_product(halves[0, ...], V, left), left, corner


def inverse_blocks_of(K: Any, noise: float) -> tuple[float, tuple[Any, Any, Any]]:
    """Return half the log determinant of ``K + noise I`` and the blocks of its inverse; K has ones on its diagonal."""
    if arrays.library_of(K) == "torch" and K.is_cuda and K.shape[0] >= 8 * BLOCK:
        try:
            K.diagonal().add_(noise)  # for the moment: a copy would cost as much as a pass over all of it
            return _inverse_by_halves(K)
        finally:
            K.fill_diagonal_(1.0)
    factor, xp = cholesky(arrays.shifted(K, noise)), arrays.namespace(K)
    return float(xp.sum(xp.log(arrays.diagonal(factor)))), cholesky_inverse_blocks(factor)


def _inverse_by_halves(A: Any) -> tuple[float, tuple[Any, Any, Any]]:
    """Do so on CUDA: while the second half is factorised, which keeps it half idle, it multiplies for the first."""
    import torch

    n = A.shape[0]
    middle = BLOCK * (-(-n // (2 * BLOCK)))
    first, info = torch.linalg.cholesky_ex(A[:middle, :middle])
    half = _block_inverses(first, 1)[0][:middle, :middle]
    below, rest = arrays.empty((n - middle, middle), A), arrays.empty((n - middle, n - middle), A)
    for start, stop in _strips(middle, most=4):
        below[:, start:stop] = A[middle:, :stop] @ half[start:stop, :stop].T
    for start, stop in _strips(n - middle, most=10):
        rest[start:stop, :stop] = A[middle + start : middle + stop, middle : middle + stop]
        rest[start:stop, :stop] -= below[start:stop] @ below[:stop].T
    here, beside_it = torch.cuda.current_stream(), torch.cuda.Stream(priority=-1)
    beside_it.wait_stream(here)
    V = _times_lower(below, half)
    upper = _symmetric_product(half)
    with torch.cuda.stream(beside_it):
        second, more = torch.linalg.cholesky_ex(rest)
        other = _block_inverses(second, 1)[0][: n - middle, : n - middle]
    here.wait_stream(beside_it)
    for part in (second, more, other):
        part.record_stream(here)
    if bool(info != 0) or bool(more != 0):
        raise np.linalg.LinAlgError("Matrix is not positive definite")
    corner = _symmetric_product(other)
    left = -(corner @ V)
    for start, stop in _strips(middle, most=10):
        block = upper[start:stop, :stop] - V[:, start:stop].T @ left[:, :stop]
        upper[start:stop, :stop] = block
        upper[:start, start:stop] = block[:, :start].T
    logarithm = torch.log(first.diagonal()).sum() + torch.log(second.diagonal()).sum()
    return float(logarithm), (upper, left, corner)


def cholesky_inverse(factor: Any) -> Any:
    """Return ``(L L')^-1`` from the lower factor L, both triangles."""
    if factor.shape[0] < 2:
        return 1.0 / factor**2
    upper, left, corner = cholesky_inverse_blocks(factor)
    middle, inverse = upper.shape[0], arrays.empty(factor.shape, factor)
    inverse[:middle, :middle], inverse[middle:, middle:] = upper, corner
    inverse[middle:, :middle], inverse[:middle, middle:] = left, left.T
    return inverse
