"""Inverses of triangular and positive definite matrices by blocks, on any device: nearly all of it matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from transduce.core import arrays

BLOCK = 320  # rows of the thinnest strip of a matrix that is multiplied by itself
LEAF = 160  # rows of the diagonal blocks of a factor that are inverted as they are


def triangular_inverse(factor: Any) -> Any:
    """Return the inverse of a lower triangular matrix, by blocks: nearly all of it matrix products."""
    n = factor.shape[0]
    return _block_inverses(factor, 1)[0, ...][:n, :n]


def _block_inverses(factor: Any, n_blocks: int) -> Any:
    """Return the inverses of this many diagonal blocks, a power of 2, shape (n_blocks, s, s); the last is filled up.

    All blocks of a size are worked on in one batch: small ones are inverted, then each two are joined to one.
    """
    xp, n = arrays.namespace(factor), factor.shape[0]
    n_leaves = n_blocks
    while n > n_leaves * LEAF:
        n_leaves *= 2
    size = -(-n // n_leaves)
    size = -(-size // 16) * 16 if n > 1024 else size
    blocks = _small_inverses(xp, xp.stack([_block(factor, i, i, size) for i in range(n_leaves)]))
    while blocks.shape[0] > n_blocks:
        pairs = range(0, blocks.shape[0], 2)
        below = xp.stack([_block(factor, i + 1, i, size) for i in pairs])
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
    return xp.stack([arrays.triangular_solve(blocks[i, ...], one) for i in range(blocks.shape[0])])


def _block(factor: Any, row: int, column: int, size: int) -> Any:
    """Return a block of a lower triangular matrix; what lies beyond its end is as in the identity."""
    n, xp = factor.shape[0], arrays.namespace(factor)
    top, left = min(row * size, n), min(column * size, n)
    bottom, right = min(top + size, n), min(left + size, n)
    if bottom - top == right - left == size:
        return factor[top:bottom, left:right]
    filled = (
        xp.eye(size, dtype=factor.dtype, **arrays.on_device(factor))
        if row == column
        else arrays.zeros((size, size), factor)
    )
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
    """Return upper left, lower left and lower right of ``(L L')^-1`` from the lower factor L.

    Notes
    -----
    With ``L = [[L1, 0], [L21, L2]]``, ``Z2 = (L2 L2')^-1`` and ``V = L21 L1^-1`` the lower left is ``-Z2 V``, and the
    upper left ``(L1 L1')^-1 + V' Z2 V``.
    """
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
    factor, xp = arrays.cholesky(arrays.shifted(K, noise)), arrays.namespace(K)
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
