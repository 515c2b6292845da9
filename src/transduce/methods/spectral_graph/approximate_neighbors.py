"""Nearly all nearest neighbours of very many dense rows, in two steps, or by the library faiss.

Rows are put into k-means cells and compared, by matrix products, with the rows of those cells whose centres are nearest
to them. If that is a long way, fewer cells are visited, and then the neighbours of neighbours, in both directions, are
tried in turn: each pass finds most of what the first step missed. How far to go, and when to stop, is read off a sample
of rows whose true neighbours are known.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from transduce.core.types import AnyArray, Array
from transduce.device.neighbors import Neighbors
from transduce.methods.spectral_graph.neighbors import (
    dot,
    empty_heaps,
    keep_row,
    replace_worst,
    run_blocks,
    search_dense,
    sort_heaps,
)

N_SAMPLE = 500  # rows whose true neighbours are looked up
MOST_PASSES = 8
MOST_GAPS = 2**20  # distances of rows from centres computed together
FIRST_RECALL = 0.4  # what visiting cells has to find if neighbours of neighbours are tried afterwards,
N_CELLS = 4  # in so many cells of an average row at least
DEAREST_JOIN = 25  # a pass costs about this times pool^2 comparisons, several passes included


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows sorted into cells."""

    order: AnyArray  # (n,) positions of the rows, cell after cell
    X: AnyArray  # (n, d) the rows in this order
    offsets: AnyArray  # (n,) their offsets in the score
    bounds: AnyArray  # (c + 1,) the rows of cell j are ``X[bounds[j] : bounds[j + 1]]``
    centres: AnyArray  # (c, d)
    half_squares: AnyArray  # (c,) half the squared norms of the centres

    @classmethod
    def of(cls, X: AnyArray, offsets: AnyArray, random: np.random.RandomState) -> Cells:
        """Put rows into about sqrt(n) cells by k-means on a part of them."""
        n = len(X)
        c = min(max(int(np.sqrt(n)), 2), n)
        part = random.choice(n, min(n, 40 * c), replace=False)
        means = KMeans(c, init="random", n_init=1, max_iter=8, random_state=random.randint(2**31 - 1))
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", ConvergenceWarning
            )  # fewer different rows than cells: some stay empty
            means.fit(X[part])
        cell = means.predict(X)
        order = np.argsort(cell, kind="stable")
        centres = means.cluster_centers_
        bounds = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=c))])
        half_squares = 0.5 * np.einsum("ij,ij->i", centres, centres)
        return cls(order, X[order], offsets[order], bounds, centres, half_squares)

    @property
    def sizes(self) -> AnyArray:
        """How many rows each cell has."""
        return np.diff(self.bounds)

    def gaps(self, rows: Any) -> AnyArray:
        """Return how much farther than the nearest centre each centre is, in half squared distances, (q, c)."""
        scores = self.X[rows] @ self.centres.T
        scores -= self.half_squares
        return np.subtract(scores.max(axis=1, keepdims=True), scores, out=scores)

    def visit(
        self, k: int, reach: float, n_jobs: int | None, report: Callable[[float], None]
    ) -> tuple[Array, AnyArray]:
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
                    keep_listed(block, first, own, scores, ids)

        run_blocks(one, range(0, n, step), n_jobs, report)
        return scores, ids


@njit(cache=True, nogil=True)
def keep_listed(block: Any, first: int, own: Any, scores: Any, ids: Any) -> None:
    """Take the best of a block of scores into the heaps of the rows `own`, each row itself left out."""
    for a in range(len(own)):
        keep_row(block[a], first, own[a], scores[own[a]], ids[own[a]])


@njit(cache=True, nogil=True)
def link_both_ways(ids: Any, fresh: Any) -> Any:
    """Return each row's neighbours and, as many at most, the rows it is a neighbour of.

    Shapes: ids (n, k), fresh (n, k); returns links (n, 2 k), is_new (n, 2 k), counts (n,).
    """
    n, k = ids.shape
    links, is_new = np.full((n, 2 * k), -1, dtype=ids.dtype), np.zeros((n, 2 * k), dtype=np.bool_)
    counts = np.zeros(n, dtype=np.int64)
    for i in range(n):
        for a in range(k):
            if ids[i, a] >= 0:
                links[i, counts[i]], is_new[i, counts[i]] = ids[i, a], fresh[i, a]
                counts[i] += 1
    forward = counts.copy()
    for i in range(n):
        for a in range(k):
            j = ids[i, a]
            if j < 0 or counts[j] == 2 * k:
                continue
            known = False
            for b in range(forward[j]):
                known |= links[j, b] == i
            if not known:
                links[j, counts[j]], is_new[j, counts[j]] = i, fresh[i, a]
                counts[j] += 1
    return links, is_new, counts


@njit(cache=True, nogil=True)
def join_block(X: Any, offsets: Any, start: int, stop: int, linked: Any, scores: Any, ids: Any) -> None:
    """Try the neighbours of neighbours of rows ``start`` to ``stop``, where one of the two links is new."""
    links, is_new, counts = linked
    seen = np.full(len(X), -1, dtype=np.int32)
    for i in range(start, stop):
        seen[i] = i
        for a in range(ids.shape[1]):
            if ids[i, a] >= 0:
                seen[ids[i, a]] = i
        for a in range(counts[i]):
            j = links[i, a]
            for b in range(-1, counts[j]):
                h = j if b < 0 else links[j, b]
                if seen[h] != i and (is_new[i, a] or (b >= 0 and is_new[j, b])):
                    seen[h] = i
                    score = dot(X[i], X[h]) - offsets[h]
                    if score > scores[i, 0]:
                        replace_worst(scores[i], ids[i], score, h)


def join_neighbors(
    cells: Cells, scores: AnyArray, ids: AnyArray, fresh: AnyArray, n_jobs: int | None
) -> tuple[Array, AnyArray, AnyArray]:
    """Return the heaps after one pass over neighbours of neighbours, and which entries are new."""
    linked = link_both_ways(ids, fresh)
    after, who = scores.copy(), ids.copy()
    step = max(len(ids) // 64, 1)

    def one(start: int) -> None:
        stop = min(start + step, len(ids))
        join_block(cells.X, cells.offsets, start, stop, linked, after, who)

    run_blocks(one, range(0, len(ids), step), n_jobs, lambda share: None)
    fresh = np.empty_like(fresh)
    for start in range(0, len(ids), 10_000):
        rows = slice(start, start + 10_000)
        fresh[rows] = ~(who[rows, :, None] == ids[rows, None, :]).any(axis=2)
    return after, who, fresh


def join_until(
    cells: Cells,
    heaps: tuple[Array, AnyArray],
    rows: AnyArray,
    true: AnyArray,
    target: float,
    n_jobs: int | None,
    report: Callable[[float], None],
) -> tuple[Array, AnyArray]:
    """Return the heaps after as many passes as bring the recall at `rows` to the target, if they can."""
    scores, ids = heaps
    fresh = np.ones(ids.shape, dtype=bool)
    k, reached = true.shape[1], 0.0
    for n_pass in range(MOST_PASSES):
        before, reached = reached, recall(best_of_heaps(scores[rows], ids[rows], k).ids, true)
        if reached >= target or reached - before < 1e-3:
            break
        scores, ids, fresh = join_neighbors(cells, scores, ids, fresh, n_jobs)
        report((n_pass + 1) / MOST_PASSES)
    return scores, ids


def best_of_heaps(scores: AnyArray, ids: AnyArray, k: int) -> Neighbors:
    """Return the best `k` of each heap."""
    found = sort_heaps(scores, ids)
    return Neighbors(np.ascontiguousarray(found.ids[:, :k]), np.ascontiguousarray(found.scores[:, :k]))


def recall(found: AnyArray, true: AnyArray) -> float:
    """Return which share of the true neighbours was found, both of shape (n, k)."""
    return float((true[:, :, None] == found[:, None, :]).any(axis=2).mean())


def reach_of(gaps: AnyArray, share: float) -> float:
    """Return what this share of the gaps is not above, and a little more, since gaps are in single precision."""
    return float(np.quantile(gaps, share, method="higher")) * (1.0 + 1e-5) + 1e-7


def search_cells(
    X: AnyArray,
    offsets: AnyArray,
    k: int,
    *,
    target: float,
    random: np.random.RandomState,
    n_jobs: int | None = None,
    report: Callable[[float], None] = lambda share: None,
) -> tuple[Neighbors, float]:
    """Return nearly all of the `k` nearest neighbours of each row, and the recall on a sample.

    Shapes: X (n, d), offsets (n,).
    """
    cells = Cells.of(X, offsets, random)
    rows = np.sort(random.choice(len(X), min(N_SAMPLE, len(X)), replace=False))
    true = search_dense(cells.X[rows], rows, cells.X, cells.offsets, k, n_jobs=n_jobs).ids
    gaps, pool = cells.gaps(rows), 2 * k
    needed = np.take_along_axis(gaps, np.searchsorted(cells.bounds, true, side="right") - 1, axis=1)
    direct = reach_of(needed, target)
    join = ((gaps <= direct) @ cells.sizes).mean() > DEAREST_JOIN * pool**2
    report(0.1)
    if join:  # of several cells at least: else no neighbour's neighbour is in another
        several = np.sort(gaps, axis=1)[:, min(N_CELLS, gaps.shape[1]) - 1]
        first = max(reach_of(needed, FIRST_RECALL), reach_of(several, 0.5))
        heaps = cells.visit(pool, first, n_jobs, lambda share: report(0.1 + 0.3 * share))
        scores, ids = join_until(
            cells, heaps, rows, true, target, n_jobs, lambda share: report(0.4 + 0.6 * share)
        )
    else:
        scores, ids = cells.visit(k, direct, n_jobs, lambda share: report(0.1 + 0.9 * share))
    reached = recall(best_of_heaps(scores[rows], ids[rows], k).ids, true)
    if reached < target and join:
        scores, ids = cells.visit(k, direct, n_jobs, report)
        reached = recall(best_of_heaps(scores[rows], ids[rows], k).ids, true)
    found = best_of_heaps(scores, ids, k)
    back = np.empty_like(cells.order)
    back[cells.order] = np.arange(len(back))
    ids = np.where(found.ids >= 0, cells.order[found.ids], -1)
    return Neighbors(ids[back], found.scores[back]), reached


def search_faiss(
    X: AnyArray, offsets: AnyArray, k: int, *, target: float, random: np.random.RandomState
) -> tuple[Neighbors, float]:
    """Return nearly all of the `k` nearest neighbours by the inverted file of faiss, and the recall on a sample."""
    import faiss  # an extra

    n, d = X.shape
    n_lists = max(min(int(4 * np.sqrt(n)), n // 39), 1)  # faiss wants 39 rows for each
    by_product = not offsets.any()
    quantizer = faiss.IndexFlatIP(d) if by_product else faiss.IndexFlatL2(d)
    kind = faiss.METRIC_INNER_PRODUCT if by_product else faiss.METRIC_L2
    index = faiss.IndexIVFFlat(quantizer, d, n_lists, kind)
    index.cp.seed = int(random.randint(2**31 - 1))
    index.train(X)
    index.add(X)
    rows = np.sort(random.choice(n, min(N_SAMPLE, n), replace=False))
    true = search_dense(X[rows], rows, X, offsets, k).ids
    index.nprobe = 8
    while (
        recall(_others(index.search(X[rows], k + 1), rows, k).ids, true) < target and index.nprobe < n_lists
    ):
        index.nprobe = min(2 * index.nprobe, n_lists)
    found = _others(index.search(X, k + 1), np.arange(n), k)
    return found, recall(found.ids[rows], true)


def _others(result: Any, own: AnyArray, k: int) -> Neighbors:
    """Return what faiss found, each row itself left out."""
    scores, ids = result
    keep = ids != own[:, None]
    order = np.argsort(~keep, axis=1, kind="stable")[:, :k]
    return Neighbors(np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1))
