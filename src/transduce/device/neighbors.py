"""Nearest neighbours on a device: by all scores, some rows at a time, or in one fused kernel on a GPU.

There products are compared with the best so far where they arise, and never stored.
"""

from __future__ import annotations

import importlib.util
from typing import Any, NamedTuple

import numpy as np

from transduce.core import arrays
from transduce.core.types import AnyArray
from transduce.device import memory

PRODUCTS = ("cosine", "euclidean", "l2")
N_SAMPLE = 512  # rows on which the recall is measured
GOOD_RECALL = 0.999  # below this candidates are chosen to more digits
BUDGET = 2.0**28  # bytes of scores at a time, where nothing says how much is free
MOST_NEIGHBORS, MOST_FEATURES = 60, 250  # of the fused search


class Neighbors(NamedTuple):
    """The nearest other rows of each row, best first."""

    ids: AnyArray  # (n, k) which rows they are; -1 where a row has fewer
    scores: (
        AnyArray  # (n, k) how near they are; the larger the nearer, and -inf where a row has fewer
    )


def unit_rows(X: Any) -> Any:
    """Return rows of norm 1; rows of zeros stay so."""
    xp = arrays.namespace(X)
    largest = xp.max(xp.abs(X), axis=1, keepdims=True)
    X = X / xp.where(largest > 0.0, largest, xp.ones_like(largest))
    norms = xp.sqrt(arrays.row_products(X, X))
    return X / xp.where(norms > 0.0, norms, xp.ones_like(norms))[:, None]


def search_blocks(Q: Any, own: Any, X: Any, offsets: Any, k: int) -> Neighbors:
    """Return the `k` rows of X (n, d) with the largest score ``q' x_j - offset_j`` for each row of Q (q, d)."""
    xp, n = arrays.namespace(X), X.shape[0]
    size = max(1, int(memory.work_bytes(X, BUDGET) // (4 * 8 * n)))
    columns = xp.arange(n, dtype=xp.int64, **arrays.on_device(X))
    found = []
    for part in arrays.blocks(Q.shape[0], size):
        block = Q[part, :] @ X.T
        block = block if offsets is None else block - offsets[None, :]
        block = xp.where(
            columns[None, :] == own[part][:, None], xp.full_like(block, -xp.inf), block
        )
        best, where = top_k(block, k)
        found.append(in_order(where, best))
    return Neighbors(*(xp.concat(parts, axis=0) for parts in zip(*found, strict=True)))


def in_order(ids: Any, scores: Any) -> Neighbors:
    """Return neighbours best first, equal ones in the order of the rows; -1 where the score is -inf."""
    xp = arrays.namespace(ids)
    turn = xp.argsort(ids, axis=1, stable=True)
    ids, scores = xp.take_along_axis(ids, turn, axis=1), xp.take_along_axis(scores, turn, axis=1)
    turn = xp.argsort(-scores, axis=1, stable=True)
    ids, scores = xp.take_along_axis(ids, turn, axis=1), xp.take_along_axis(scores, turn, axis=1)
    return Neighbors(xp.where(xp.isinf(scores), xp.full_like(ids, -1), ids), scores)


def comparable(X: Any, metric: Any) -> tuple[Any, Any]:
    """Return rows no longer than 1, and offsets, whose products rank neighbours; X has unit rows for the cosine."""
    if metric == "cosine":
        return X, None
    xp = arrays.namespace(X)
    rows = X - xp.mean(X, axis=0)
    longest = float(xp.max(xp.sqrt(xp.sum(rows * rows, axis=1))))
    rows = rows / (longest or 1.0)
    return rows, 0.5 * xp.sum(rows * rows, axis=1)


def nearest_on_device(Q: Any, X: Any, k: int, metric: Any) -> Neighbors:
    """Return the `k` rows of X nearest to other rows, all compared; scores are cosines, or minus distances."""
    xp, n_queries = arrays.namespace(X), Q.shape[0]
    own = arrays.zeros((n_queries,), X, "int64") - 1
    if metric == "cosine":
        return search_blocks(Q, own, X, None, k)
    both, offsets = comparable(xp.concat([X, Q], axis=0), metric)
    n = X.shape[0]
    neighbors = search_blocks(both[n:, :], own, both[:n, :], offsets[:n], k)
    return in_order(neighbors.ids, -distances_to(Q, X, neighbors.ids))


def distances_to(Q: Any, X: Any, ids: Any) -> Any:
    """Return the Euclidean distance of every query to its neighbours, infinite where there is none."""
    xp = arrays.namespace(X)
    parts, size = (
        [],
        max(1, int(memory.work_bytes(X, 2.0**28) // (32 * max(ids.shape[1] * X.shape[1], 1)))),
    )
    for part in arrays.blocks(Q.shape[0], size):
        near = xp.where(ids[part, :] >= 0, ids[part, :], xp.zeros_like(ids[part, :]))
        rows = xp.reshape(xp.take(X, xp.reshape(near, (-1,)), axis=0), (*near.shape, X.shape[1]))
        parts.append(xp.sqrt(xp.sum((Q[part, :][:, None, :] - rows) ** 2, axis=2)))
    distances = xp.concat(parts, axis=0)
    return xp.where(ids >= 0, distances, xp.full_like(distances, xp.inf))


def top_k(values: Any, k: int) -> tuple[Any, Any]:
    """Return the `k` largest of each line (m, n) and where they stand, largest first; of equal ones any."""
    if arrays.library_of(values) == "torch":
        largest = values.topk(k, dim=1)
        return largest.values, largest.indices
    xp = arrays.namespace(values)
    some = xp.argsort(-values, axis=1)[:, :k]
    return xp.take_along_axis(values, some, axis=1), some


def search(X: Any, k: int, settings: Any, random: Any, report: Any) -> tuple[Neighbors, str, float]:
    """Return the neighbours of every row among the others, how they were found, and the recall on a sample."""
    xp, n = arrays.namespace(X), X.shape[0]
    rows, offsets = comparable(X, settings.metric)
    share, method = 1.0, "exact"
    if not can_fuse(rows, k):
        own = xp.arange(n, dtype=xp.int64, **arrays.on_device(X))
        found = search_blocks(rows, own, rows, offsets, k)
    else:
        from transduce.device import fused_kernel as fused

        sample = arrays.beside(np.sort(random.choice(n, min(N_SAMPLE, n), replace=False)), X)
        seed, true = (
            int(random.randint(2**31 - 1)),
            search_blocks(rows[sample], sample, rows, offsets, k),
        )
        if settings.method == "approximate" and n >= 4 * k:
            found, method = (
                fused.search_cells(rows, offsets, k, seed, (sample, true.ids)),
                "approximate",
            )
        else:
            found = fused.search_fused(rows, offsets, k, seed)
            if recall(found, true, sample) < GOOD_RECALL:
                found = fused.search_fused(rows, offsets, k, seed, fine=True)
        share = recall(found, true, sample)
    report(0.9)
    if settings.metric != "cosine":
        found = in_order(found.ids, -distances_to(X, X, found.ids))
    return found, method, share


def recall(found: Neighbors, true: Neighbors, sample: Any) -> float:
    """Return the share of true neighbours found at some rows; of rows that tie with the last, any counts as true."""
    hits = (true.ids[:, :, None] == found.ids[sample][:, None, :]).any(dim=2)
    as_good = found.scores[sample] >= true.scores[:, -1:] - 1e-12
    return max(float(part.double().mean()) for part in (hits, as_good))


def can_fuse(X: Any, k: int) -> bool:
    """Return whether the search can run on the device of these rows: torch on CUDA, with Triton."""
    there = arrays.library_of(X) == "torch" and X.device.type == "cuda"
    small = k <= MOST_NEIGHBORS and X.shape[1] <= MOST_FEATURES
    return there and small and importlib.util.find_spec("triton") is not None
