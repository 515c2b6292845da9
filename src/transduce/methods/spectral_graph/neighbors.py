"""Exact and approximate search for the rows most similar to each row."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
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
from transduce.core.types import AnyArray, Array, Rows
from transduce.device.neighbors import PRODUCTS, Neighbors, distances_to

EXACT_ROWS = 30_000  # up to here method="auto" compares every row with every other
QUERIES = 256  # rows whose neighbours are searched together
CANDIDATES = 4096  # rows they are compared with in one product: both fit in the cache
HOMOGENEOUS = ("euclidean", "l2", "manhattan", "l1", "cityblock", "chebyshev", "minkowski")
STRIP = 32  # scores looked at together; most strips hold nothing that is good enough
TARGET_RECALL = 0.97


@dataclass(frozen=True)
class Work:
    """With how many threads, and how roughly, something is computed, and whom it tells."""

    n_jobs: int | None = None  # threads; None for as many as matrix products use
    report: Callable[[float], None] = lambda share: None  # is told the share done
    tolerance: float | None = None  # of a spectrum
    most_compared: int | None = None  # rows that a search compares each with, on average

    def part(self, begin: float, end: float) -> Work:
        """Return the work on a part of the whole, from one share to another."""
        return replace(self, report=lambda share: self.report(begin + share * (end - begin)))

    def over(self, starts: range, job: Callable[[int], None]) -> None:
        """Call a function for every start, in threads; report after each."""
        threads = n_threads(self.n_jobs)
        pool = Parallel(n_jobs=threads, prefer="threads", return_as="generator_unordered")
        with few_threads(0):
            finished = pool(delayed(job)(start) for start in starts)
            for n_finished, _ in enumerate(finished, 1):
                self.report(n_finished / len(starts))


QUIET = Work()


# ---------------------------------------------------------------------- heaps of the best scores


@njit(cache=True, nogil=True)
def n_above(row: AnyArray, level: float) -> int:
    """Return how many entries of a row are above a level."""
    # Counting is done by vector instructions, `max` is not.
    count = 0
    for j in range(len(row)):
        count += row[j] > level
    return count


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "arcp", "contract", "reassoc"})
def dot(row: AnyArray, other: AnyArray) -> float:
    """Return the inner product of two rows."""
    total = row[0] * other[0]
    for j in range(1, len(row)):
        total += row[j] * other[j]
    return total


@njit(cache=True, nogil=True)
def replace_worst(scores: AnyArray, ids: AnyArray, score: float, row: int) -> None:
    """Put a score in the place of the smallest of a binary heap."""
    hole = 0
    while 2 * hole + 1 < len(scores):
        child = 2 * hole + 1
        if child + 1 < len(scores) and scores[child + 1] < scores[child]:
            child += 1
        if scores[child] >= score:
            break
        scores[hole] = scores[child]
        ids[hole] = ids[child]
        hole = child
    scores[hole] = score
    ids[hole] = row


@njit(cache=True, nogil=True)
def keep_best(
    block: AnyArray,
    first: int,
    itself: AnyArray,
    heaps: AnyArray,
    scores: AnyArray,
    ids: AnyArray,
) -> None:
    """Take the best of a block of scores (q, c) into each row's heap, the row itself left out.

    The heaps have shape (n, k).
    """
    for query in range(len(block)):
        row = block[query]
        heap_scores = scores[heaps[query]]
        heap_ids = ids[heaps[query]]
        for start in range(0, len(row), STRIP):
            stop = min(start + STRIP, len(row))
            if n_above(row[start:stop], heap_scores[0]) == 0:
                continue
            for j in range(start, stop):
                if row[j] > heap_scores[0] and first + j != itself[query]:
                    replace_worst(heap_scores, heap_ids, row[j], first + j)


@njit(cache=True, nogil=True)
def keep_best_sparse(
    indptr: AnyArray,
    indices: AnyArray,
    data: AnyArray,
    itself: AnyArray,
    scores: AnyArray,
    ids: AnyArray,
) -> None:
    """Take the best positive entries of each sparse row into its heap, the row itself left out."""
    for query in range(len(indptr) - 1):
        heap_scores = scores[query]
        heap_ids = ids[query]
        for entry in range(indptr[query], indptr[query + 1]):
            if data[entry] > max(heap_scores[0], 0.0) and indices[entry] != itself[query]:
                replace_worst(heap_scores, heap_ids, data[entry], indices[entry])


def sort_heaps(scores: AnyArray, ids: AnyArray, k: int | None = None) -> Neighbors:
    """Return the best `k` of each heap, or all, best first; equal scores in the rows' order."""
    order = np.lexsort([ids, -scores])[:, :k]
    sorted_ids = np.take_along_axis(ids, order, axis=1)
    sorted_scores = np.take_along_axis(scores, order, axis=1)
    return Neighbors(sorted_ids, sorted_scores)


def empty_heaps(n: int, k: int, dtype: npt.DTypeLike) -> tuple[Array, AnyArray]:
    """Return heaps of `n` rows that hold nothing yet: scores and ids."""
    scores = np.full((n, k), -np.inf, dtype=dtype)
    ids = np.full((n, k), -1, dtype=np.int32)
    return scores, ids


# ------------------------------------------------------------------------------------ exact search


def search_dense(
    Q: AnyArray,
    itself: AnyArray,
    X: AnyArray,
    offsets: AnyArray,
    k: int,
    work: Work = QUIET,
) -> Neighbors:
    """Return the `k` rows of X (n, d) with the largest score for each row of Q (q, d)."""
    scores, ids = empty_heaps(len(Q), k, X.dtype)

    def search_block(start: int) -> None:
        rows = slice(start, start + QUERIES)
        for first in range(0, len(X), CANDIDATES):
            candidates = slice(first, first + CANDIDATES)
            block = Q[rows] @ X[candidates].T
            block -= offsets[candidates]
            keep_best(block, first, itself[rows], np.arange(len(block)), scores[rows], ids[rows])

    work.over(range(0, len(Q), QUERIES), search_block)
    return sort_heaps(scores, ids)


def search_sparse(
    Q: Any,
    itself: AnyArray,
    X: Rows,
    k: int,
    work: Work = QUIET,
) -> Neighbors:
    """Return the `k` rows of a sparse X with the largest positive product with each row of Q."""
    scores, ids = empty_heaps(Q.shape[0], k, np.float64)
    turned = X.T.tocsr()
    # At most 2^24 products at a time.
    height = int(np.clip(2**24 // max(X.shape[0], 1), 1, QUERIES))

    def search_block(start: int) -> None:
        rows = slice(start, start + height)
        block = (Q[rows] @ turned).tocsr()
        block.sort_indices()
        keep_best_sparse(
            block.indptr,
            block.indices,
            block.data,
            itself[rows],
            scores[rows],
            ids[rows],
        )

    work.over(range(0, Q.shape[0], height), search_block)
    return sort_heaps(scores, ids)


def search_metric(
    Q: Any,
    itself: AnyArray,
    X: Rows,
    k: int,
    metric: Any,
    n_jobs: int | None = None,
) -> Neighbors:
    """Return the `k` rows of X nearest to each row of Q by any metric of scikit-learn.

    Scores are minus distances.
    """
    n_neighbors = min(k + int((itself >= 0).any()), X.shape[0])
    unit = _unit(Q, X, metric)
    finder = NearestNeighbors(n_neighbors=n_neighbors, metric=metric, n_jobs=n_jobs).fit(X / unit)
    # Of few rows scikit-learn divides the known ones among OpenMP's threads, and which of equally
    # near ones comes first depends on their number; of many it divides the new ones, which leaves
    # no trace.
    threads = None if Q.shape[0] > 1024 * cpu_count() else 1
    with threadpool_limits(threads, user_api="openmp"):
        distances, ids = finder.kneighbors(Q / unit)
    is_finite = np.isfinite(distances).all(axis=1)
    if not is_finite.all():
        n_without = int((~is_finite).sum())
        raise ValueError(
            f"The metric {metric!r} gives {n_without} of {len(ids)} rows no finite distance to "
            "their neighbours: drop rows it is not defined for, or use another metric."
        )
    is_itself = ids == itself[:, None]
    scores = np.where(is_itself, -np.inf, -distances * unit)
    return sort_heaps(scores, np.where(is_itself, -1, ids), k)


def _unit(Q: Any, X: Rows, metric: Any) -> float:
    """Return what rows are divided by, where their squares would leave floating point's range."""
    if metric not in HOMOGENEOUS:
        return 1.0
    sizes = (float(abs(part).max()) for part in (Q, X) if part.shape[0])
    size = max(sizes, default=1.0)
    if 1e-100 < size < 1e100 or size == 0.0:
        return 1.0
    return size


# ---------------------------------------------------------------- exact search by pairs of blocks

BLOCK = 512  # rows on either side of one product, which fits in the cache
PAIR_STRIP = 64  # scores looked at together; most strips hold nothing that is good enough
SPARE = 4  # candidates more than wanted neighbours


@njit(cache=True, nogil=True)
def n_good(row: AnyArray, row_worst: float, column_worst: AnyArray) -> int:
    """Return how many scores are better than the worst kept by their row or by their column."""
    count = 0
    for j in range(len(row)):
        count += (row[j] > row_worst) | (row[j] > column_worst[j])
    return count


@njit(cache=True, nogil=True)
def keep_pairs(
    block: AnyArray,
    first: int,
    second: int,
    worst: AnyArray,
    scores: AnyArray,
    ids: AnyArray,
) -> None:
    """Take the best of a block of scores (p, q) into the heaps (n, k) of its rows and columns."""
    height, width = block.shape
    for a in range(height):
        i = first + a
        row = block[a]
        for start in range(max(0, i + 1 - second), width, PAIR_STRIP):
            stop = min(start + PAIR_STRIP, width)
            if n_good(row[start:stop], worst[i], worst[second + start : second + stop]) == 0:
                continue
            for b in range(start, stop):
                score = row[b]
                j = second + b
                if score > worst[i]:
                    replace_worst(scores[i], ids[i], score, j)
                    worst[i] = scores[i, 0]
                if score > worst[j]:
                    replace_worst(scores[j], ids[j], score, i)
                    worst[j] = scores[j, 0]


@njit(cache=True, nogil=True)
def score_again(X: AnyArray, ids: AnyArray, out: AnyArray) -> None:
    """Write the product of every row with its candidates to `out`; -inf where there is none."""
    for i in range(len(ids)):
        for a in range(ids.shape[1]):
            out[i, a] = -np.inf
            if ids[i, a] >= 0:
                out[i, a] = dot(X[i], X[ids[i, a]])


def rounds(n_blocks: int) -> Iterator[list[tuple[int, int]]]:
    """Yield every pair of blocks once, near ones first, in rounds where no block comes twice."""
    yield [(i, i) for i in range(n_blocks)]
    for distance in range(1, n_blocks):
        firsts = range(n_blocks - distance)
        for parity in (0, 1):
            pairs = [(i, i + distance) for i in firsts if (i // distance) % 2 == parity]
            if pairs:
                yield pairs


def candidates(X: AnyArray, k: int, work: Work) -> tuple[Array, AnyArray]:
    """Return heaps of the `k` largest products of each row of X, in single precision."""
    n = len(X)
    scores, ids = empty_heaps(n, k, X.dtype)
    worst = np.full(n, -np.inf, dtype=X.dtype)

    def compare(pairs: list[tuple[int, int]]) -> None:
        for i, j in pairs:
            first = i * BLOCK
            second = j * BLOCK
            block = X[first : first + BLOCK] @ X[second : second + BLOCK].T
            keep_pairs(block, first, second, worst, scores, ids)

    n_blocks = -(-n // BLOCK)
    n_pairs = n_blocks * (n_blocks + 1) // 2
    n_compared = 0
    threads = n_threads(work.n_jobs)
    with few_threads(0), Parallel(n_jobs=threads, prefer="threads") as pool:
        for pairs in rounds(n_blocks):
            pool(delayed(compare)(pairs[start::threads]) for start in range(threads))
            n_compared += len(pairs)
            work.report(n_compared / n_pairs)
    return scores, ids


def search_pairs(X: Array, k: int, work: Work = QUIET) -> Neighbors:
    """Return the `k` other rows of X (n, d) with the largest product with each row."""
    # A product of rows of norm 1 in single precision is wrong by ``(d + 2) 2^-24`` at most. A row
    # that was refused has a score in single precision no better than the worst of the candidates;
    # if the k-th best candidate is better than that by more than the error, none of the refused is
    # among the k best.
    n = len(X)
    single_scores, ids = candidates(X.astype(np.float32), min(k + SPARE, n - 1), work)
    scores = np.empty(ids.shape)
    score_again(X, ids, scores)
    neighbors = sort_heaps(scores, ids, k)
    if single_scores.shape[1] < n - 1:
        error = (X.shape[1] + 2) * 2.0**-24
        worst = single_scores[:, 0].astype(float)
        doubtful = np.flatnonzero(neighbors.scores[:, -1] <= worst + error)
        exact = search_dense(X[doubtful], doubtful, X, np.zeros(n), k, Work(work.n_jobs))
        neighbors.ids[doubtful] = exact.ids
        neighbors.scores[doubtful] = exact.scores
    return neighbors


# ------------------------------------------------------------------------------ approximate search

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
    def of(
        cls,
        X: AnyArray,
        offsets: AnyArray,
        random: np.random.RandomState,
    ) -> Cells:
        """Put rows into about sqrt(n) cells by k-means on a part of them."""
        n = len(X)
        c = min(max(int(np.sqrt(n)), 2), n)
        part = random.choice(n, min(n, 40 * c), replace=False)
        seed = random.randint(2**31 - 1)
        means = KMeans(c, init="random", n_init=1, max_iter=8, random_state=seed)
        # With fewer different rows than cells some cells stay empty.
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            means.fit(X[part])
        cell = means.predict(X)
        order = np.argsort(cell, kind="stable")
        centres = means.cluster_centers_
        bounds = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=c))])
        return cls(order, X[order], offsets[order], bounds, centres)

    def gaps(self, rows: Rows) -> AnyArray:
        """Return by how much each centre is farther than the nearest, in half squares, (q, c)."""
        scores = self.X[rows] @ self.centres.T
        scores -= 0.5 * arrays.row_products(self.centres, self.centres)
        return np.subtract(scores.max(axis=1, keepdims=True), scores, out=scores)

    def visit(
        self,
        k: int,
        reach: float,
        work: Work,
    ) -> tuple[Array, AnyArray]:
        """Return heaps of the best `k` rows in the cells whose gap is at most `reach`."""
        n = len(self.X)
        scores, ids = empty_heaps(n, k, self.X.dtype)
        step = max(MOST_GAPS // len(self.centres), 1)

        def visit_block(start: int) -> None:
            near = self.gaps(slice(start, start + step)) <= reach
            cells, queries = np.nonzero(near.T)
            bounds = np.searchsorted(cells, np.arange(len(self.centres) + 1))
            # The queries' own cells first.
            for cell in np.argsort(-np.diff(bounds), kind="stable"):
                first = self.bounds[cell]
                stop = self.bounds[cell + 1]
                rows = start + queries[bounds[cell] : bounds[cell + 1]]
                if len(rows) and first < stop:
                    block = self.X[rows] @ self.X[first:stop].T
                    block -= self.offsets[first:stop]
                    keep_best(block, first, rows, rows, scores, ids)

        work.over(range(0, n, step), visit_block)
        return scores, ids


def search_cells(
    X: AnyArray,
    offsets: AnyArray,
    k: int,
    random: np.random.RandomState,
    work: Work = QUIET,
) -> tuple[Neighbors, float]:
    """Return nearly all of the `k` nearest rows of each row (n, d), and the recall on a sample."""
    cells = Cells.of(X, offsets, random)
    exact_work = Work(work.n_jobs)
    sample = np.sort(random.choice(len(X), min(N_SAMPLE, len(X)), replace=False))
    true_ids = search_dense(cells.X[sample], sample, cells.X, cells.offsets, k, exact_work).ids
    reach = _reach(cells, sample, true_ids, work.most_compared)
    work.report(0.1)
    neighbors = sort_heaps(*cells.visit(k, reach, work.part(0.1, 1.0)))
    few = np.flatnonzero(neighbors.ids[:, -1] < 0)  # in cells of their own, far from all others
    exact = search_dense(cells.X[few], few, cells.X, cells.offsets, k, exact_work)
    neighbors.ids[few] = exact.ids
    neighbors.scores[few] = exact.scores
    found_ids = neighbors.ids[sample]
    hits = (true_ids[:, :, None] == found_ids[:, None, :]).any(axis=2)
    ids = np.where(neighbors.ids >= 0, cells.order[neighbors.ids], -1)
    back = np.argsort(cells.order)
    return Neighbors(ids[back], neighbors.scores[back]), float(hits.mean())


def _reach(
    cells: Cells,
    sample: AnyArray,
    true_ids: AnyArray,
    most_compared: int | None,
) -> float:
    """Return up to which gap cells are visited, judged by the true neighbours of a sample."""
    gaps = cells.gaps(sample)
    cell_of_neighbor = np.searchsorted(cells.bounds, true_ids, side="right") - 1
    needed = np.take_along_axis(gaps, cell_of_neighbor, axis=1)
    # As far as that share of the true neighbours, and a little more, since gaps are in single
    # precision.
    enough = float(np.quantile(needed, TARGET_RECALL, method="higher"))
    reach = enough * (1.0 + 1e-5) + 1e-7
    if most_compared is None:
        return reach
    sizes = np.diff(cells.bounds)
    nearest = np.argsort(gaps, axis=None)
    n_compared = np.cumsum(sizes[nearest % len(sizes)]) / len(sample)
    last = max(int(np.searchsorted(n_compared, most_compared, side="right")) - 1, 0)
    return min(reach, float(gaps.flat[nearest[last]]))


# ---------------------------------------------------------------------------- which search is used


def nearest_rows(
    Q: Any,
    itself: AnyArray,
    X: Rows,
    k: int,
    metric: Any,
    work: Work = QUIET,
) -> Neighbors:
    """Return the `k` rows of X most similar to each row of Q, by comparing all.

    Shapes: Q, X (q, d), itself (q,).
    """
    if metric != "cosine":
        return search_metric(Q, itself, X, k, metric, work.n_jobs)
    if sp.issparse(X):
        return search_sparse(Q, itself, X, k, work)
    if Q is X:
        return search_pairs(X, k, work)
    return search_dense(Q, itself, X, np.zeros(len(X)), k, work)


def search(
    X: Rows,
    k: int,
    settings: Any,
    random: np.random.RandomState,
    report: Callable[[float], None],
) -> tuple[Neighbors, str, float]:
    """Return the neighbours of every row, how they were found, and the recall on a sample."""
    metric = settings.metric
    n = X.shape[0]
    method = settings.method
    if method == "auto":
        method = _choose_method(X, metric)
    work = Work(settings.n_jobs, report, most_compared=settings.most_compared)
    if method == "exact" or n < 4 * k:
        return nearest_rows(X, np.arange(n), X, k, metric, work), "exact", 1.0
    if metric == "cosine":
        no_offsets = np.zeros(n, dtype=np.float32)
        neighbors, recall = search_cells(X.astype(np.float32), no_offsets, k, random, work)
        return neighbors, method, recall
    # In single precision, shifted to mean 0 and scaled to size 1, which leaves the order of
    # distances.
    centred = X - X.mean(axis=0)
    size = max(np.abs(centred).max(), np.finfo(float).tiny)
    rows = (centred / size).astype(np.float32)
    offsets = 0.5 * np.einsum("ij,ij->i", rows, rows)
    neighbors, recall = search_cells(rows, offsets, k, random, work)
    return Neighbors(neighbors.ids, -distances_to(X, X, neighbors.ids)), method, recall


def _choose_method(X: Rows, metric: Any) -> str:
    """Return "approximate" for many rows where that is possible, else "exact"."""
    if X.shape[0] <= EXACT_ROWS or sp.issparse(X) or metric not in PRODUCTS:
        return "exact"
    return "approximate"
