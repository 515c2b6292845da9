"""Exact and approximate search for the rows most similar to each row."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from joblib import cpu_count
from numba import njit
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from transduce.core import arrays
from transduce.core.computing import few_threads, n_threads
from transduce.core.types import AnyArray, Array
from transduce.device.neighbors import PRODUCTS, Neighbors, distances_to

EXACT_ROWS = 30_000  # up to here method="auto" compares every row with every other
QUERIES = 256  # rows whose neighbours are searched together
CANDIDATES = 4096  # rows they are compared with in one product: both fit in the cache
HOMOGENEOUS = ("euclidean", "l2", "manhattan", "l1", "cityblock", "chebyshev", "minkowski")
STRIP = 32  # scores looked at together; most strips hold nothing that is good enough
TARGET_RECALL = 0.97


@dataclass(frozen=True)
class Work:
    """Threads (None: as matrix products use), whom it tells the share done, and how rough the answer may be."""

    n_jobs: int | None = None
    report: Callable[[float], None] = lambda share: None
    tolerance: float | None = None  # of a spectrum
    most_compared: int | None = None  # rows that a search compares each with, on average

    def part(self, begin: float, end: float) -> Work:
        """Return the work on a part of the whole, from one share to another."""
        return replace(self, report=lambda share: self.report(begin + share * (end - begin)))

    def over(self, starts: range, one: Callable[[int], None]) -> None:
        """Call a function for every start, in threads; report after each."""
        pool = Parallel(
            n_jobs=n_threads(self.n_jobs), prefer="threads", return_as="generator_unordered"
        )
        with few_threads(0):
            done = pool(delayed(one)(start) for start in starts)
            for count, _ in enumerate(done, 1):
                self.report(count / len(starts))


QUIET = Work()


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
def keep_best(block: Any, first: int, own: Any, heaps: Any, scores: Any, ids: Any) -> None:
    """Take the best of a block of scores (q, c) into each row's heap, the row itself left out; heaps (n, k)."""
    for query in range(len(block)):
        row, best, who = block[query], scores[heaps[query]], ids[heaps[query]]
        for start in range(0, len(row), STRIP):
            stop = min(start + STRIP, len(row))
            if n_above(row[start:stop], best[0]) == 0:
                continue
            for j in range(start, stop):
                if row[j] > best[0] and first + j != own[query]:
                    replace_worst(best, who, row[j], first + j)


@njit(cache=True, nogil=True)
def keep_best_sparse(indptr: Any, indices: Any, data: Any, own: Any, scores: Any, ids: Any) -> None:
    """Take the best positive entries of each row of a sparse block into its heap, the row itself left out."""
    for query in range(len(indptr) - 1):
        best, who = scores[query], ids[query]
        for entry in range(indptr[query], indptr[query + 1]):
            if data[entry] > max(best[0], 0.0) and indices[entry] != own[query]:
                replace_worst(best, who, data[entry], indices[entry])


def sort_heaps(scores: AnyArray, ids: AnyArray, k: int | None = None) -> Neighbors:
    """Return the best `k` of each heap, or all, best first; equal scores in the order of the rows."""
    order = np.lexsort([ids, -scores])[:, :k]
    return Neighbors(
        np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1)
    )


def empty_heaps(n: int, k: int, dtype: Any) -> tuple[Array, AnyArray]:
    """Return heaps of `n` rows that hold nothing yet: scores and ids."""
    return np.full((n, k), -np.inf, dtype=dtype), np.full((n, k), -1, dtype=np.int32)


def search_dense(
    Q: AnyArray, own: AnyArray, X: AnyArray, offsets: AnyArray, k: int, work: Work = QUIET
) -> Neighbors:
    """Return the `k` rows of X (n, d) with the largest score for each row of Q (q, d)."""
    scores, ids = empty_heaps(len(Q), k, X.dtype)

    def one(start: int) -> None:
        rows = slice(start, start + QUERIES)
        for first in range(0, len(X), CANDIDATES):
            block = Q[rows] @ X[first : first + CANDIDATES].T
            block -= offsets[first : first + CANDIDATES]
            keep_best(block, first, own[rows], np.arange(len(block)), scores[rows], ids[rows])

    work.over(range(0, len(Q), QUERIES), one)
    return sort_heaps(scores, ids)


def search_sparse(Q: Any, own: AnyArray, X: Any, k: int, work: Work = QUIET) -> Neighbors:
    """Return the `k` rows of a sparse X with the largest positive product with each row of a sparse Q."""
    scores, ids = empty_heaps(Q.shape[0], k, np.float64)
    turned = X.T.tocsr()
    height = int(
        np.clip(2**24 // max(X.shape[0], 1), 1, QUERIES)
    )  # at most 2^24 products at a time

    def one(start: int) -> None:
        rows = slice(start, start + height)
        block = (Q[rows] @ turned).tocsr()
        block.sort_indices()
        keep_best_sparse(
            block.indptr, block.indices, block.data, own[rows], scores[rows], ids[rows]
        )

    work.over(range(0, Q.shape[0], height), one)
    return sort_heaps(scores, ids)


def search_metric(
    Q: Any, own: AnyArray, X: Any, k: int, metric: Any, n_jobs: int | None = None
) -> Neighbors:
    """Return the `k` rows of X nearest to each row of Q by any metric of scikit-learn; scores are minus distances."""
    more = min(k + int((own >= 0).any()), X.shape[0])
    size = 1.0
    if (
        metric in HOMOGENEOUS
    ):  # squares of very large or small numbers leave the range of floating point
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
    scores = np.where(ids == own[:, None], -np.inf, -distances * size)
    return sort_heaps(scores, np.where(ids == own[:, None], -1, ids), k)


BLOCK = 512  # rows on either side of one product, which fits in the cache
PAIR_STRIP = 64  # scores looked at together; most strips hold nothing that is good enough
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
    """Take the best of a block of scores (p, q) into the heaps (n, k) of its rows and of its columns."""
    height, width = block.shape
    for a in range(height):
        i, row = first + a, block[a]
        for start in range(max(0, i + 1 - second), width, PAIR_STRIP):
            stop = min(start + PAIR_STRIP, width)
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
            pairs = [
                (i, i + distance)
                for i in range(n_blocks - distance)
                if (i // distance) % 2 == parity
            ]
            if pairs:
                yield pairs


def candidates(X: AnyArray, k: int, work: Work) -> tuple[Array, AnyArray]:
    """Return heaps of the `k` largest products of each row of X, in single precision, with another row."""
    n, threads = len(X), n_threads(work.n_jobs)
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
            work.report(done / total)
    return scores, ids


def search_pairs(X: Array, k: int, work: Work = QUIET) -> Neighbors:
    """Return the `k` other rows of X (n, d) with the largest product with each row."""
    # A product of rows of norm 1 in single precision is wrong by ``(d + 2) 2^-24`` at most. A row that was refused has
    # a score in single precision no better than the worst of the candidates; if the k-th best candidate is better than
    # that by more than the error, none of the refused is among the k best.
    n = len(X)
    single, ids = candidates(X.astype(np.float32), min(k + SPARE, n - 1), work)
    scores = np.empty(ids.shape)
    score_again(X, ids, scores)
    found = sort_heaps(scores, ids, k)
    if single.shape[1] < n - 1:
        error = (X.shape[1] + 2) * 2.0**-24
        doubtful = np.flatnonzero(found.scores[:, -1] <= single[:, 0].astype(float) + error)
        again = search_dense(X[doubtful], doubtful, X, np.zeros(n), k, Work(work.n_jobs))
        found.ids[doubtful], found.scores[doubtful] = again.ids, again.scores
    return found


N_SAMPLE = 500  # rows whose true neighbours are looked up
MOST_GAPS = 2**20  # distances of rows from centres computed together


class Cells(NamedTuple):
    """Rows sorted into cells."""

    order: AnyArray  # (n,) positions of the rows, cell after cell
    X: AnyArray  # (n, d) the rows in this order
    offsets: AnyArray  # (n,) their offsets in the score
    bounds: AnyArray  # (c + 1,) the rows of cell j are ``X[bounds[j] : bounds[j + 1]]``
    centres: AnyArray  # (c, d)

    @classmethod
    def of(cls, X: AnyArray, offsets: AnyArray, random: np.random.RandomState) -> Cells:
        """Put rows into about sqrt(n) cells by k-means on a part of them."""
        n = len(X)
        c = min(max(int(np.sqrt(n)), 2), n)
        part = random.choice(n, min(n, 40 * c), replace=False)
        means = KMeans(
            c, init="random", n_init=1, max_iter=8, random_state=random.randint(2**31 - 1)
        )
        # With fewer different rows than cells some cells stay empty.
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            means.fit(X[part])
        cell = means.predict(X)
        order = np.argsort(cell, kind="stable")
        centres = means.cluster_centers_
        bounds = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=c))])
        return cls(order, X[order], offsets[order], bounds, centres)

    def gaps(self, rows: Any) -> AnyArray:
        """Return how much farther than the nearest centre each centre is, in half squared distances, (q, c)."""
        scores = self.X[rows] @ self.centres.T
        scores -= 0.5 * arrays.row_products(self.centres, self.centres)
        return np.subtract(scores.max(axis=1, keepdims=True), scores, out=scores)

    def visit(self, k: int, reach: float, work: Work) -> tuple[Array, AnyArray]:
        """Return heaps of the best `k` rows in the cells whose gap is at most `reach`, for each row."""
        n = len(self.X)
        scores, ids = empty_heaps(n, k, self.X.dtype)
        step = max(MOST_GAPS // len(self.centres), 1)

        def one(start: int) -> None:
            cells, queries = np.nonzero((self.gaps(slice(start, start + step)) <= reach).T)
            bounds = np.searchsorted(cells, np.arange(len(self.centres) + 1))
            for cell in np.argsort(-np.diff(bounds), kind="stable"):  # the queries' own cells first
                first, stop = self.bounds[cell], self.bounds[cell + 1]
                own = start + queries[bounds[cell] : bounds[cell + 1]]
                if len(own) and first < stop:
                    block = self.X[own] @ self.X[first:stop].T
                    block -= self.offsets[first:stop]
                    keep_best(block, first, own, own, scores, ids)

        work.over(range(0, n, step), one)
        return scores, ids


def search_cells(
    X: AnyArray, offsets: AnyArray, k: int, random: np.random.RandomState, work: Work = QUIET
) -> tuple[Neighbors, float]:
    """Return nearly all of the `k` nearest neighbours of each row (n, d), and the recall on a sample."""
    cells = Cells.of(X, offsets, random)
    rows = np.sort(random.choice(len(X), min(N_SAMPLE, len(X)), replace=False))
    true = search_dense(cells.X[rows], rows, cells.X, cells.offsets, k, Work(work.n_jobs)).ids
    gaps, sizes = cells.gaps(rows), np.diff(cells.bounds)
    needed = np.take_along_axis(gaps, np.searchsorted(cells.bounds, true, side="right") - 1, axis=1)
    # As far as that share of the true neighbours, and a little more, since gaps are in single precision.
    reach = float(np.quantile(needed, TARGET_RECALL, method="higher")) * (1.0 + 1e-5) + 1e-7
    if work.most_compared is not None:
        nearest = np.argsort(gaps, axis=None)
        compared = np.cumsum(sizes[nearest % len(sizes)]) / len(rows)
        last = max(int(np.searchsorted(compared, work.most_compared, side="right")) - 1, 0)
        reach = min(reach, float(gaps.flat[nearest[last]]))
    work.report(0.1)
    found = sort_heaps(*cells.visit(k, reach, work.part(0.1, 1.0)))
    few = np.flatnonzero(found.ids[:, -1] < 0)  # in cells of their own, far from all others
    again = search_dense(cells.X[few], few, cells.X, cells.offsets, k, Work(work.n_jobs))
    found.ids[few], found.scores[few] = again.ids, again.scores
    ids, back = np.where(found.ids >= 0, cells.order[found.ids], -1), np.argsort(cells.order)
    hits = (true[:, :, None] == found.ids[rows][:, None, :]).any(axis=2)
    return Neighbors(ids[back], found.scores[back]), float(hits.mean())


def nearest_rows(
    Q: Any, own: AnyArray, X: Any, k: int, metric: Any, work: Work = QUIET
) -> Neighbors:
    """Return the `k` rows of X most similar to each row of Q, found by comparing all. Shapes: Q, X (q, d), own (q,)."""
    if metric != "cosine":
        return search_metric(Q, own, X, k, metric, work.n_jobs)
    if sp.issparse(X):
        return search_sparse(Q, own, X, k, work)
    if Q is X:
        return search_pairs(X, k, work)
    return search_dense(Q, own, X, np.zeros(len(X)), k, work)


def search(
    X: Any, k: int, settings: Any, random: np.random.RandomState, report: Callable[[float], None]
) -> tuple[Neighbors, str, float]:
    """Return the neighbours of every row among the others, how they were found, and the recall on a sample."""
    metric, method, n = settings.metric, settings.method, X.shape[0]
    if method == "auto":
        possible = not sp.issparse(X) and metric in PRODUCTS
        method = "approximate" if possible and n > EXACT_ROWS else "exact"
    work = Work(settings.n_jobs, report, most_compared=settings.most_compared)
    if method == "exact" or n < 4 * k:
        return nearest_rows(X, np.arange(n), X, k, metric, work), "exact", 1.0
    if metric == "cosine":
        found, share = search_cells(
            X.astype(np.float32), np.zeros(n, dtype=np.float32), k, random, work
        )
        return found, method, share
    # In single precision, shifted to mean 0 and scaled to size 1, which leaves the order of distances.
    rows = X - X.mean(axis=0)
    rows = (rows / max(np.abs(rows).max(), np.finfo(float).tiny)).astype(np.float32)
    found, share = search_cells(rows, 0.5 * np.einsum("ij,ij->i", rows, rows), k, random, work)
    return Neighbors(found.ids, -distances_to(X, X, found.ids)), method, share
