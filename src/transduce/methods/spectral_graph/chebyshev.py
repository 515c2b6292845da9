"""Leading eigenpairs of a large sparse symmetric matrix by Chebyshev-filtered block iteration in single precision.

A polynomial that is small on the unwanted part of the spectrum and grows fast above it is applied to a block of
vectors; what comes out is turned into the best eigenpairs that lie in its span (Rayleigh-Ritz), and the polynomial is
made anew from these. Columns are filtered some at a time, so that what one thread works on stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.linalg
from numba import njit
from sklearn.utils.parallel import Parallel, delayed

from transduce.core.computing import few_threads, n_threads
from transduce.core.types import AnyArray, Array
from transduce.device.graph import FINEST, MOST_CYCLES, NotConvergedError, filter_degree
from transduce.methods.spectral_graph.neighbors import QUIET, Work

PANEL = 64  # columns filtered together: wide enough for vector instructions, narrow enough for the cache
CHUNK = 8192  # rows of a block multiplied at a time
FIRST_DEGREE, FIRST_CUT = 16, 0.6  # the first filter, with its cut as a share of the spectrum's length
NARROWEST = 1e-3  # of the part of the spectrum that a filter is small on


class TooFineError(ArithmeticError):
    """Single precision does not tell the eigenvalues from 0: a larger block would not help."""


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "arcp", "contract", "reassoc"}, error_model="numpy")
def chebyshev_step(matrix: Any, now: Any, past: Any, out: Any, scale: Any, shift: Any) -> None:
    """Write ``scale * (S @ now - shift * now) - past`` (n, width) to `out`; `past` and `out` may be one array."""
    indptr, indices, data = matrix
    width = now.shape[1]
    total = np.empty(width, dtype=now.dtype)
    for i in range(len(indptr) - 1):
        own = now[i]
        for j in range(width):
            total[j] = -shift * own[j]
        entry, end = indptr[i], indptr[i + 1]
        while entry + 4 <= end:  # four entries at once: the running total is read and written once for them
            v0, v1, v2, v3 = data[entry], data[entry + 1], data[entry + 2], data[entry + 3]
            x0, x1 = now[indices[entry]], now[indices[entry + 1]]
            x2, x3 = now[indices[entry + 2]], now[indices[entry + 3]]
            for j in range(width):
                total[j] += v0 * x0[j] + v1 * x1[j] + v2 * x2[j] + v3 * x3[j]
            entry += 4
        while entry < end:
            v0, x0 = data[entry], now[indices[entry]]
            for j in range(width):
                total[j] += v0 * x0[j]
            entry += 1
        before, after = past[i], out[i]
        for j in range(width):
            after[j] = scale * total[j] - before[j]


class Filter:
    """Products and polynomials of one sparse symmetric matrix whose spectrum lies in [-1, 1]. Shapes: S (n, n)."""

    def __init__(self, S: Any, n_jobs: int | None = None) -> None:
        self.n = S.shape[0]
        kind = np.uint32 if S.nnz < 2**32 else np.uint64
        self._matrix = (S.indptr.astype(kind), S.indices.astype(kind), S.data.astype(np.float32))
        self._threads = n_threads(n_jobs)
        self.chunks = [slice(start, start + CHUNK) for start in range(0, self.n, CHUNK)]

    def product(self, block: AnyArray) -> AnyArray:
        """Return ``S @ block``."""
        out = np.zeros_like(block)
        self._over_panels(block, out, lambda panel: self._step(panel, np.zeros_like(panel), 1.0, 0.0))
        return out

    def apply(self, block: AnyArray, degree: int, lower: float, cut: float) -> None:
        """Replace the block by the Chebyshev polynomial of this degree on [lower, cut] of S, times the block."""
        centre, half = 0.5 * (cut + lower), 0.5 * (cut - lower)

        def recur(now: AnyArray) -> AnyArray:
            past, now = now, self._step(now, np.zeros_like(now), 1.0 / half, centre)
            for _ in range(degree - 1):
                past, now = now, self._step(now, past, 2.0 / half, centre)
            return now

        self._over_panels(block, block, recur)

    def _step(self, now: AnyArray, past: AnyArray, scale: float, shift: float) -> AnyArray:
        """Return the next term of the recurrence, in the place of `past`."""
        chebyshev_step(self._matrix, now, past, past, np.float32(scale), np.float32(shift))
        return past

    def _over_panels(self, block: AnyArray, out: AnyArray, function: Callable[[AnyArray], AnyArray]) -> None:
        """Write `function` of every panel of columns to `out`."""
        width = block.shape[1]
        n_panels = max(-(-width // PANEL), min(width, 2))
        bounds = np.linspace(0, width, n_panels + 1).astype(int)

        def one(start: int, stop: int) -> None:
            out[:, start:stop] = function(np.ascontiguousarray(block[:, start:stop]))

        list(self.run([partial(one, start, stop) for start, stop in pairwise(bounds)]))

    def run(self, jobs: Sequence[Callable[[], Any]]) -> Iterator[Any]:
        """Call functions in threads, and yield what they return in their order."""
        if min(self._threads, len(jobs)) == 1:
            return (job() for job in jobs)
        parallel = Parallel(n_jobs=self._threads, prefer="threads", return_as="generator")
        return iter(parallel(delayed(job)() for job in jobs))

    def sum_over_chunks(self, function: Callable[[slice], Array]) -> Array:
        """Return the sum of a function over chunks of all rows, added in their order on any number of threads."""
        return reduce(np.add, self.run([partial(function, rows) for rows in self.chunks]))


def smallest_bound(matrix: Filter, random: np.random.RandomState, n_steps: int = 20) -> float:
    """Return a number that no eigenvalue is below, as far as a few Lanczos steps and their residual can tell."""
    vector = random.standard_normal((matrix.n, 1)).astype(np.float32)
    vector /= np.linalg.norm(vector)
    before, beta = np.zeros_like(vector), 0.0
    diagonal, off = [], []
    for _ in range(min(n_steps, matrix.n)):
        next_ = matrix.product(vector) - np.float32(beta) * before
        diagonal.append(float(vector[:, 0] @ next_[:, 0]))
        next_ -= np.float32(diagonal[-1]) * vector
        beta = float(np.linalg.norm(next_))
        off.append(beta)
        if beta < 1e-5:
            break
        before, vector = vector, next_ / np.float32(beta)
    ritz, turn = scipy.linalg.eigh_tridiagonal(diagonal, off[:-1])
    return max(float(ritz[0]) - 2.0 * off[-1] * abs(float(turn[-1, 0])), -1.0)


def grams(matrix: Filter, block: AnyArray) -> tuple[AnyArray, Array, Array]:
    """Return the image of a tall block, and ``block' image`` and ``block' block``, summed in double precision."""
    image = matrix.product(block)

    def one(rows: slice) -> Array:
        left = block[rows].T
        return np.stack([left @ image[rows], left @ block[rows]]).astype(float)

    mixed, own = matrix.sum_over_chunks(one)
    return image, 0.5 * (mixed + mixed.T), 0.5 * (own + own.T)


def rotate(matrix: Filter, block: AnyArray, image: AnyArray, turn: Array, values: Array) -> Array:
    """Multiply the block by `turn` in place; return the norms of ``image @ turn - block * values`` thereafter."""
    turn, values = turn.astype(block.dtype), values.astype(block.dtype)

    def one(rows: slice) -> Array:
        block[rows] = block[rows] @ turn
        rest = image[rows] @ turn
        rest -= block[rows] * values
        return np.einsum("ij,ij->j", rest, rest).astype(float)

    return np.sqrt(matrix.sum_over_chunks(one))


def rayleigh_ritz(matrix: Filter, block: AnyArray) -> tuple[Array, AnyArray, Array]:
    """Return the eigenpairs of S in the span of a block (n, width): values descending, vectors, residual norms."""
    block /= np.linalg.norm(block, axis=0)
    image, mixed, own = grams(matrix, block)
    if np.linalg.eigvalsh(own)[0] < 1e-8:  # columns nearly dependent: make them orthogonal first
        block = scipy.linalg.qr(block, mode="economic", overwrite_a=True, check_finite=False)[0]
        image, mixed, own = grams(matrix, block)
    values, turn = scipy.linalg.eigh(mixed, own)
    values, turn = values[::-1], turn[:, ::-1]
    return values, block, rotate(matrix, block, image, turn, values)


def residual_norms(matrix: Filter, vectors: AnyArray, values: Array) -> Array:
    """Return the norm of ``S v - value v`` for every column v."""
    image = matrix.product(vectors)
    values = values.astype(vectors.dtype)

    def one(rows: slice) -> Array:
        return np.square(image[rows] - vectors[rows] * values).sum(axis=0).astype(float)

    return np.sqrt(matrix.sum_over_chunks(one))


def project_out(matrix: Filter, block: AnyArray, vector: AnyArray) -> None:
    """Make the columns of a block orthogonal to a unit vector, in place."""
    sums = matrix.sum_over_chunks(lambda rows: vector[rows].astype(float) @ block[rows]).astype(block.dtype)
    for rows in matrix.chunks:
        block[rows] -= np.outer(vector[rows], sums)


def leading_pairs(
    S: Any, block: AnyArray, k: int, tol: float, known: AnyArray, work: Work = QUIET
) -> tuple[Array, AnyArray, Array]:
    """Return the `k` largest eigenvalues of S below its first, 1, vectors (n, k) and residual norms."""
    # The block (n, width) is the first guess, which is used up; `known` (n,) is the vector of eigenvalue 1.
    matrix = Filter(S, work.n_jobs)
    with few_threads(0):
        lower = smallest_bound(matrix, np.random.RandomState(0))
        degree, cut, first = FIRST_DEGREE, lower + FIRST_CUT * (1.0 - lower), 0.0
        for _cycle in range(MOST_CYCLES):
            matrix.apply(block, degree, lower, cut)
            project_out(matrix, block, known)
            values, block, residuals = rayleigh_ritz(matrix, block)
            project_out(matrix, block, known)
            worst, limit = float(residuals[:k].max()), min(tol, 0.01 * (1.0 - float(values[k - 1])))
            if worst <= limit:
                found = np.ascontiguousarray(block[:, :k])
                return values[:k], found, residual_norms(matrix, found, values[:k])
            if limit < FINEST:
                raise TooFineError(f"the eigenvalues are too close to 0 for single precision ({limit:.0e})")
            first = max(first, np.log(worst / limit))
            work.report(1.0 - np.log(worst / limit) / first)
            cut = max(float(values[-1]), lower + NARROWEST)
            degree = filter_degree(values[k - 1], lower, cut, worst / limit)
        raise NotConvergedError(
            f"the largest residual is {worst:.1e} instead of {limit:.1e} after {MOST_CYCLES} cycles"
        )
