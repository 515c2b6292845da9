"""Nearest neighbours on a device: by all scores, some rows at a time, or in one fused kernel.

In the fused kernel of a GPU products are compared with the best so far where they arise, and never
stored.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from transduce.core import arrays
from transduce.core.types import AnyArray, DeviceArray, Random
from transduce.device import memory

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PRODUCTS = ("cosine", "euclidean", "l2")
N_SAMPLE = 512  # rows on which the recall is measured
GOOD_RECALL = 0.999  # below this candidates are chosen to more digits
BUDGET = 2.0**28  # bytes of scores at a time, where nothing says how much is free
BYTES_OF_SCORE = 4 * 8  # with the copies that a comparison makes
MOST_NEIGHBORS = 60  # of the fused search
MOST_FEATURES = 250  # of the fused search


class Neighbors(NamedTuple):
    """The nearest other rows of each row, best first."""

    ids: AnyArray  # (n, k) which rows they are; -1 where a row has fewer
    scores: AnyArray  # (n, k) the larger the nearer; -inf where a row has fewer


class FoundNeighbors(NamedTuple):
    """Neighbours, how they were found, and how many of the true ones they are."""

    neighbors: Neighbors
    method: str  # "exact" or "approximate"
    recall: float  # share of the true neighbours of a sample of rows


def unit_rows(X: DeviceArray) -> DeviceArray:
    """Return rows of norm 1; rows of zeros stay so."""
    xp = arrays.namespace(X)
    largest = xp.max(xp.abs(X), axis=1, keepdims=True)
    X = X / xp.where(largest > 0.0, largest, xp.ones_like(largest))
    norms = xp.sqrt(arrays.row_products(X, X))
    return X / xp.where(norms > 0.0, norms, xp.ones_like(norms))[:, None]


def search_blocks(
    queries: DeviceArray, itself: DeviceArray, X: DeviceArray, offsets: DeviceArray, k: int
) -> Neighbors:
    """Return the `k` rows x_j of X (n, d) with the largest ``q' x_j - offset_j`` for each query q.

    `itself` (q,) is the row that each query is itself, which is no neighbour, or -1.
    """
    xp = arrays.namespace(X)
    n = X.shape[0]
    size = max(1, int(memory.work_bytes(X, BUDGET) // (BYTES_OF_SCORE * n)))
    columns = xp.arange(n, dtype=xp.int64, **arrays.on_device(X))
    ids = []
    scores = []
    for part in arrays.blocks(queries.shape[0], size):
        block = queries[part, :] @ X.T
        if offsets is not None:
            block = block - offsets[None, :]
        is_itself = columns[None, :] == itself[part][:, None]
        block = xp.where(is_itself, xp.full_like(block, -xp.inf), block)
        best, places = top_k(block, k)
        neighbors = in_order(places, best)
        ids.append(neighbors.ids)
        scores.append(neighbors.scores)
    return Neighbors(xp.concat(ids, axis=0), xp.concat(scores, axis=0))


def in_order(ids: DeviceArray, scores: DeviceArray) -> Neighbors:
    """Return neighbours best first, equal ones by their rows; -1 where the score is -inf."""
    xp = arrays.namespace(ids)
    by_row = xp.argsort(ids, axis=1, stable=True)
    ids = xp.take_along_axis(ids, by_row, axis=1)
    scores = xp.take_along_axis(scores, by_row, axis=1)
    by_score = xp.argsort(-scores, axis=1, stable=True)
    ids = xp.take_along_axis(ids, by_score, axis=1)
    scores = xp.take_along_axis(scores, by_score, axis=1)
    nobody = xp.full_like(ids, -1)
    ids = xp.where(xp.isinf(scores), nobody, ids)
    return Neighbors(ids, scores)


def comparable(X: DeviceArray, metric: Any) -> tuple[DeviceArray, DeviceArray]:
    """Return rows no longer than 1, and offsets, whose products rank neighbours.

    X has unit rows for the cosine.
    """
    if metric == "cosine":
        return X, None
    xp = arrays.namespace(X)
    rows = X - xp.mean(X, axis=0)
    lengths = xp.sqrt(xp.sum(rows * rows, axis=1))
    longest = float(xp.max(lengths))
    rows = rows / (longest or 1.0)
    return rows, 0.5 * xp.sum(rows * rows, axis=1)


def nearest_on_device(queries: DeviceArray, X: DeviceArray, k: int, metric: Any) -> Neighbors:
    """Return the `k` rows of X nearest to other rows, all compared.

    Scores are cosines, or minus distances.
    """
    own_rows = arrays.zeros((queries.shape[0],), X, "int64") - 1
    if metric == "cosine":
        return search_blocks(queries, own_rows, X, None, k)
    n = X.shape[0]
    together = arrays.namespace(X).concat([X, queries], axis=0)
    rows, offsets = comparable(together, metric)
    query_rows = rows[n:, :]
    known_rows = rows[:n, :]
    neighbors = search_blocks(query_rows, own_rows, known_rows, offsets[:n], k)
    return in_order(neighbors.ids, -distances_to(queries, X, neighbors.ids))


def distances_to(queries: DeviceArray, X: DeviceArray, ids: DeviceArray) -> DeviceArray:
    """Return the distance of every query to its neighbours, infinite where there is none."""
    xp = arrays.namespace(X)
    n_features = X.shape[1]
    bytes_of_query = 32 * max(ids.shape[1] * n_features, 1)
    size = max(1, int(memory.work_bytes(X, BUDGET) // bytes_of_query))
    parts = []
    for part in arrays.blocks(queries.shape[0], size):
        near = ids[part, :]
        near = xp.where(near >= 0, near, xp.zeros_like(near))
        rows = xp.take(X, xp.reshape(near, (-1,)), axis=0)
        rows = xp.reshape(rows, (*near.shape, n_features))
        steps = queries[part, :][:, None, :] - rows
        parts.append(xp.sqrt(xp.sum(steps**2, axis=2)))
    distances = xp.concat(parts, axis=0)
    return xp.where(ids >= 0, distances, xp.full_like(distances, xp.inf))


def top_k(values: DeviceArray, k: int) -> tuple[DeviceArray, DeviceArray]:
    """Return the `k` largest of each line (m, n), largest first, and where they stand."""
    if arrays.library_of(values) == "torch":
        largest = values.topk(k, dim=1)
        return largest.values, largest.indices
    xp = arrays.namespace(values)
    places = xp.argsort(-values, axis=1)[:, :k]
    return xp.take_along_axis(values, places, axis=1), places


def search(
    X: DeviceArray,
    k: int,
    settings: Any,
    random: Random,
    report: Callable[[float], None],
) -> FoundNeighbors:
    """Return the neighbours of every row among the others."""
    rows, offsets = comparable(X, settings.metric)
    if can_fuse(rows, k):
        approximate = settings.method == "approximate"
        neighbors = _search_fused(rows, offsets, k, random, approximate=approximate)
    else:
        own_rows = arrays.namespace(X).arange(
            X.shape[0],
            dtype=arrays.namespace(X).int64,
            **arrays.on_device(X),
        )
        neighbors = FoundNeighbors(search_blocks(rows, own_rows, rows, offsets, k), "exact", 1.0)
    report(0.9)
    if settings.metric == "cosine":
        return neighbors
    ids = neighbors.neighbors.ids
    return neighbors._replace(neighbors=in_order(ids, -distances_to(X, X, ids)))


def _search_fused(
    rows: DeviceArray, offsets: DeviceArray, k: int, random: Random, *, approximate: bool
) -> FoundNeighbors:
    """Return neighbours by the fused kernel, to more digits where it misses some of a sample's."""
    from transduce.device import fused_kernel

    n = rows.shape[0]
    chosen = np.sort(random.choice(n, min(N_SAMPLE, n), replace=False))
    sample = arrays.asarray_like(chosen, rows)
    seed = int(random.randint(2**31 - 1))
    true = search_blocks(rows[sample], sample, rows, offsets, k)
    if approximate and n >= 4 * k:
        neighbors = fused_kernel.search_cells(rows, offsets, k, seed, (sample, true.ids))
        return FoundNeighbors(neighbors, "approximate", recall(neighbors, true, sample))
    neighbors = fused_kernel.search_fused(rows, offsets, k, seed)
    if recall(neighbors, true, sample) < GOOD_RECALL:
        neighbors = fused_kernel.search_fused(rows, offsets, k, seed, fine=True)
    return FoundNeighbors(neighbors, "exact", recall(neighbors, true, sample))


def recall(neighbors: Neighbors, true: Neighbors, sample: DeviceArray) -> float:
    """Return the share of true neighbours that were found at some rows.

    Of rows that tie with the last neighbour, any counts as true.
    """
    same = true.ids[:, :, None] == neighbors.ids[sample][:, None, :]
    hits = same.any(dim=2)
    last = true.scores[:, -1:]
    as_good: DeviceArray = neighbors.scores[sample] >= last - 1e-12
    return max(float(hits.double().mean()), float(as_good.double().mean()))


def can_fuse(X: DeviceArray, k: int) -> bool:
    """Return whether the search can run on the device of these rows: torch on CUDA, with Triton."""
    on_gpu = arrays.library_of(X) == "torch" and X.device.type == "cuda"
    small = k <= MOST_NEIGHBORS and X.shape[1] <= MOST_FEATURES
    return on_gpu and small and importlib.util.find_spec("triton") is not None
