"""Exact nearest neighbours of rows among themselves, by the cosine: every pair is compared once, for both of its rows.

Products in single precision decide only who is a candidate. The candidates are compared again in double precision, and
where rounding could have hidden a better one, a bound tells, and the row is searched again in double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba import njit
from sklearn.utils.parallel import Parallel, delayed

from transduce.core.computing import few_threads, n_threads
from transduce.core.types import AnyArray, Array
from transduce.device.neighbors import Neighbors
from transduce.methods.spectral_graph.neighbors import (
    dot,
    empty_heaps,
    replace_worst,
    search_dense,
    sort_heaps,
)

BLOCK = 512  # rows on either side of one product, which fits in the cache
STRIP = 64  # scores looked at together; most strips hold nothing that is good enough
SPARE = 4  # candidates more than wanted neighbours


@njit(cache=True, nogil=True)
def n_good(row: Any, own: Any, worst: Any) -> int:
    """Return how many scores are better than the worst kept by their row, `own`, or by their column, `worst`."""
    count = 0
    for j in range(len(row)):
        count += (row[j] > own) | (row[j] > worst[j])
    return count


@njit(cache=True, nogil=True)
def keep_pairs(block: Any, first: int, second: int, worst: Any, scores: Any, ids: Any) -> None:
    """Take the best of a block of scores into the heaps of its rows and of its columns.

    Shapes: block (p, q), worst (n,), scores, ids (n, k).
    """
    height, width = block.shape
    for a in range(height):
        i, row = first + a, block[a]
        for start in range(max(0, i + 1 - second), width, STRIP):
            stop = min(start + STRIP, width)
            if n_good(row[start:stop], worst[i], worst[second + start : second + stop]) == 0:
                continue
            for b in range(start, stop):
                score, j = row[b], second + b
                if score > worst[i]:
                    replace_worst(scores[i], ids[i], score, j)
                    worst[i] = scores[i, 0]
                if score > worst[j]:
                    replace_worst(scores[j], ids[j], score, i)
                    worst[j] = scores[j, 0]


@njit(cache=True, nogil=True)
def score_again(X: Any, ids: Any, out: Any) -> None:
    """Write the product of every row with its candidates to `out`; -inf where there is none."""
    for i in range(len(ids)):
        for a in range(ids.shape[1]):
            out[i, a] = dot(X[i], X[ids[i, a]]) if ids[i, a] >= 0 else -np.inf


def rounds(n_blocks: int) -> Iterator[list[tuple[int, int]]]:
    """Yield every pair of blocks once, near ones first, in rounds in which no block comes twice."""
    yield [(i, i) for i in range(n_blocks)]
    for distance in range(1, n_blocks):
        for parity in (0, 1):
            pairs = [(i, i + distance) for i in range(n_blocks - distance) if (i // distance) % 2 == parity]
            if pairs:
                yield pairs


def candidates(
    X: AnyArray, k: int, n_jobs: int | None, report: Callable[[float], None]
) -> tuple[Array, AnyArray]:
    """Return heaps of the `k` largest products of each row of X, in single precision, with another row."""
    n, threads = len(X), n_threads(n_jobs)
    scores, ids = empty_heaps(n, k, X.dtype)
    worst = np.full(n, -np.inf, dtype=X.dtype)

    def compare(pairs: list[tuple[int, int]]) -> None:
        for first, second in pairs:
            one, two = (slice(i * BLOCK, (i + 1) * BLOCK) for i in (first, second))
            keep_pairs(X[one] @ X[two].T, one.start, two.start, worst, scores, ids)

    n_blocks = -(-n // BLOCK)
    done, total = 0, n_blocks * (n_blocks + 1) // 2
    with few_threads(0), Parallel(n_jobs=threads, prefer="threads") as pool:
        for pairs in rounds(n_blocks):
            pool(delayed(compare)(pairs[start::threads]) for start in range(threads))
            done += len(pairs)
            report(done / total)
    return scores, ids


def search_pairs(
    X: Array, k: int, *, n_jobs: int | None = None, report: Callable[[float], None] = lambda share: None
) -> Neighbors:
    """Return the `k` other rows of X with the largest product with each row.

    Shapes: X (n, d).

    Notes
    -----
    A product of rows of norm 1 in single precision is wrong by ``(d + 2) 2^-24`` at most. A row that was refused has a
    score in single precision no better than the worst of the candidates; if the k-th best candidate is better than that
    by more than the error, none of the refused is among the k best.
    """
    n = len(X)
    single, ids = candidates(X.astype(np.float32), min(k + SPARE, n - 1), n_jobs, report)
    scores = np.empty(ids.shape)
    score_again(X, ids, scores)
    found = sort_heaps(scores, ids)
    ids, scores = np.ascontiguousarray(found.ids[:, :k]), np.ascontiguousarray(found.scores[:, :k])
    if single.shape[1] < n - 1:
        error = (X.shape[1] + 2) * 2.0**-24
        doubtful = np.flatnonzero(scores[:, -1] <= single[:, 0].astype(float) + error)
        again = search_dense(X[doubtful], doubtful, X, np.zeros(n), k, n_jobs=n_jobs)
        ids[doubtful], scores[doubtful] = again.ids, again.scores
    return Neighbors(ids, scores)
