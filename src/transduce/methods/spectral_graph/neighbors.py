"""Nearest neighbours of every row among all: exact search in blocks, for dense and sparse rows and any metric.

Dense rows are compared by matrix products: the score of row j for row i is ``x_i' x_j - offset_j``, which is the
cosine for rows of norm 1 and no offset, and falls with the Euclidean distance if the offset is half the squared norm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import cpu_count
from numba import njit
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from transduce.core.computing import few_threads, n_threads
from transduce.core.types import AnyArray, Array
from transduce.device.neighbors import Neighbors

QUERIES = 256  # rows whose neighbours are searched together
CANDIDATES = 4096  # rows they are compared with in one product: both fit in the cache
HOMOGENEOUS = ("euclidean", "l2", "manhattan", "l1", "cityblock", "chebyshev", "minkowski")
STRIP = 32  # scores looked at together; most strips hold nothing that is good enough


@njit(cache=True, nogil=True)
def n_above(row: Any, level: Any) -> int:
    """Return how many entries of a row are above a level; counting is done by vector instructions, `max` is not."""
    count = 0
    for j in range(len(row)):
        count += row[j] > level
    return count


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "arcp", "contract", "reassoc"})
def dot(one: Any, two: Any) -> Any:
    """Return the inner product of two rows."""
    total = one[0] * two[0]
    for j in range(1, len(one)):
        total += one[j] * two[j]
    return total


@njit(cache=True, nogil=True)
def replace_worst(scores: Any, ids: Any, score: Any, row: Any) -> None:
    """Put a score in the place of the smallest of a binary heap."""
    hole = 0
    while 2 * hole + 1 < len(scores):
        child = 2 * hole + 1
        if child + 1 < len(scores) and scores[child + 1] < scores[child]:
            child += 1
        if scores[child] >= score:
            break
        scores[hole], ids[hole] = scores[child], ids[child]
        hole = child
    scores[hole], ids[hole] = score, row


@njit(cache=True, nogil=True)
def keep_row(row: Any, first: int, own: int, best: Any, who: Any) -> None:
    """Take the best of one row of scores into its heap, the candidate `own` left out."""
    for start in range(0, len(row), STRIP):
        stop = min(start + STRIP, len(row))
        if n_above(row[start:stop], best[0]) > 0:
            for j in range(start, stop):
                if row[j] > best[0] and first + j != own:
                    replace_worst(best, who, row[j], first + j)


@njit(cache=True, nogil=True)
def keep_best(block: Any, first: int, own: Any, scores: Any, ids: Any) -> None:
    """Take the best of a block of scores into each row's heap, the row itself left out.

    Shapes: block (q, c), own (q,), scores, ids (q, k).
    """
    for query in range(len(block)):
        keep_row(block[query], first, own[query], scores[query], ids[query])


@njit(cache=True, nogil=True)
def keep_best_sparse(indptr: Any, indices: Any, data: Any, own: Any, scores: Any, ids: Any) -> None:
    """Take the best positive entries of each row of a sparse block into its heap, the row itself left out."""
    for query in range(len(indptr) - 1):
        best, who = scores[query], ids[query]
        for entry in range(indptr[query], indptr[query + 1]):
            if data[entry] > max(best[0], 0.0) and indices[entry] != own[query]:
                replace_worst(best, who, data[entry], indices[entry])


def sort_heaps(scores: AnyArray, ids: AnyArray) -> Neighbors:
    """Return heaps as lists, best first; equal scores in the order of the rows."""
    order = np.lexsort([ids, -scores])
    return Neighbors(np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1))


def empty_heaps(n: int, k: int, dtype: Any) -> tuple[Array, AnyArray]:
    """Return heaps of `n` rows that hold nothing yet: scores and ids."""
    return np.full((n, k), -np.inf, dtype=dtype), np.full((n, k), -1, dtype=np.int32)


def search_dense(
    Q: AnyArray,
    own: AnyArray,
    X: AnyArray,
    offsets: AnyArray,
    k: int,
    *,
    n_jobs: int | None = None,
    report: Callable[[float], None] = lambda share: None,
) -> Neighbors:
    """Return the `k` rows of X with the largest score for each row of Q.

    Shapes: Q (q, d), own (q,), X (n, d), offsets (n,).
    """
    scores, ids = empty_heaps(len(Q), k, X.dtype)

    def one(start: int) -> None:
        rows = slice(start, start + QUERIES)
        for first in range(0, len(X), CANDIDATES):
            block = Q[rows] @ X[first : first + CANDIDATES].T
            block -= offsets[first : first + CANDIDATES]
            keep_best(block, first, own[rows], scores[rows], ids[rows])

    run_blocks(one, range(0, len(Q), QUERIES), n_jobs, report)
    return sort_heaps(scores, ids)


def run_blocks(
    one: Callable[[int], None], starts: range, n_jobs: int | None, report: Callable[[float], None]
) -> None:
    """Call `one` for every start, in threads; report after each."""
    threads = n_threads(n_jobs)
    with few_threads(0):
        done = Parallel(n_jobs=threads, prefer="threads", return_as="generator_unordered")(
            delayed(one)(start) for start in starts
        )
        for count, _ in enumerate(done, 1):
            report(count / len(starts))


def search_sparse(
    Q: Any,
    own: AnyArray,
    X: Any,
    k: int,
    *,
    n_jobs: int | None = None,
    report: Callable[[float], None] = lambda share: None,
) -> Neighbors:
    """Return the `k` rows of a sparse X with the largest positive product with each row of a sparse Q.

    Shapes: Q, X (q, d), own (q,).
    """
    scores, ids = empty_heaps(Q.shape[0], k, np.float64)
    turned = X.T.tocsr()
    height = int(np.clip(2**24 // max(X.shape[0], 1), 1, QUERIES))  # at most 2^24 products at a time

    def one(start: int) -> None:
        rows = slice(start, start + height)
        block = (Q[rows] @ turned).tocsr()
        block.sort_indices()
        keep_best_sparse(block.indptr, block.indices, block.data, own[rows], scores[rows], ids[rows])

    run_blocks(one, range(0, Q.shape[0], height), n_jobs, report)
    return sort_heaps(scores, ids)


def search_metric(Q: Any, own: AnyArray, X: Any, k: int, metric: Any, n_jobs: int | None = None) -> Neighbors:
    """Return the `k` rows of X nearest to each row of Q by any metric of scikit-learn; scores are minus distances.

    Shapes: Q, X (q, d), own (q,).
    """
    more = min(k + int((own >= 0).any()), X.shape[0])
    size = 1.0
    if metric in HOMOGENEOUS:  # squares of very large or small numbers leave the range of floating point
        size = max((float(abs(part).max()) for part in (Q, X) if part.shape[0]), default=1.0)
        size = 1.0 if 1e-100 < size < 1e100 or size == 0.0 else size
    finder = NearestNeighbors(n_neighbors=more, metric=metric, n_jobs=n_jobs).fit(X / size)
    # Of few rows scikit-learn divides the known ones among OpenMP's threads, and which of equally near ones comes first
    # depends on their number; of many it divides the new ones, which leaves no trace.
    threads = None if Q.shape[0] > 1024 * cpu_count() else 1
    with threadpool_limits(threads, user_api="openmp"):
        distances, ids = finder.kneighbors(Q / size)
    if not np.isfinite(distances).all():
        count = int((~np.isfinite(distances).all(axis=1)).sum())
        raise ValueError(
            f"The metric {metric!r} gives {count} of {len(ids)} rows no finite distance to their neighbours: drop "
            "rows it is not defined for, or use another metric."
        )
    distances = distances * size
    scores = np.where(ids == own[:, None], -np.inf, -distances)
    ids = np.where(ids == own[:, None], -1, ids)
    found = sort_heaps(scores, ids)
    return Neighbors(found.ids[:, :k], found.scores[:, :k])
