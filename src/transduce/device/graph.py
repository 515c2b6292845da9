"""Neighbour graphs of rows on a device: search, weights and assembly where the rows live."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.random import sample_without_replacement

from transduce.core import arrays
from transduce.core.progress import stage
from transduce.device import memory
from transduce.device.neighbors import Neighbors, can_fuse, search_device_cells, search_fused, seed_of

PRODUCTS = ("cosine", "euclidean", "l2")
N_SAMPLE = 512  # rows on which the recall is measured
GOOD_RECALL = 0.999  # below this candidates are chosen to more digits
BUDGET = 2.0**28  # bytes of scores at a time, where nothing says how much is free


@dataclass(frozen=True, eq=False)
class DeviceGraph:
    """A symmetric neighbour graph on a device, as `NeighborGraph` is one of numpy arrays."""

    matrix: SparseRows  # (n, n)
    rows: Any  # (t,) row of every entry
    diagnostics: dict[str, Any] = field(default_factory=dict)  # as in `NeighborGraph`

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, twice."""
        return self.matrix.shape


def unit_rows(X: Any) -> Any:
    """Return rows of norm 1; rows of zeros stay so."""
    xp = arrays.namespace(X)
    largest = xp.max(xp.abs(X), axis=1, keepdims=True)
    X = X / xp.where(largest > 0.0, largest, xp.ones_like(largest))
    norms = xp.sqrt(xp.sum(X * X, axis=1, keepdims=True))
    return X / xp.where(norms > 0.0, norms, xp.ones_like(norms))


def row_order(X: Any) -> Any:
    """Return an order of the rows that does not depend on the order in which they came, except for equal rows."""
    xp = arrays.namespace(X)
    order = xp.argsort(X[:, 0], stable=True)
    first = xp.take(X[:, 0], order)
    return arrays.lexsort(X) if bool(xp.any(first[1:] == first[:-1])) else order


def search_blocks(Q: Any, own: Any, X: Any, offsets: Any, k: int) -> Neighbors:
    """Return the `k` rows of X with the largest score ``q' x_j - offset_j`` for each row of Q, some queries at a time.

    Shapes: Q (q, d), own (q,), X (n, d), offsets (n,).
    """
    xp, n = arrays.namespace(X), X.shape[0]
    size = max(1, int(memory.work_bytes(X, BUDGET) // (4 * 8 * n)))
    columns = xp.arange(n, dtype=xp.int64, **arrays.on_device(X))
    ids, scores = [], []
    for start in range(0, Q.shape[0], size):
        part = slice(start, min(start + size, Q.shape[0]))
        block = Q[part, :] @ X.T
        block = block if offsets is None else block - offsets[None, :]
        block = xp.where(columns[None, :] == own[part][:, None], xp.full_like(block, -xp.inf), block)
        best, where = top_k(block, k)
        found = in_order(where, best)
        ids.append(found.ids)
        scores.append(found.scores)
    if not ids:
        return Neighbors(arrays.zeros((0, k), X, "int64"), arrays.zeros((0, k), X))
    return Neighbors(xp.concat(ids, axis=0), xp.concat(scores, axis=0))


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
    found = search_blocks(both[n:, :], own, both[:n, :], offsets[:n], k)
    return in_order(found.ids, -_distances(Q, X, found.ids))


def _distances(Q: Any, X: Any, ids: Any) -> Any:
    """Return the Euclidean distance of every query to its neighbours, infinite where there is none."""
    xp = arrays.namespace(X)
    parts, size = [], max(1, 2**26 // max(ids.shape[1] * X.shape[1], 1))
    for start in range(0, Q.shape[0], size):
        part = slice(start, min(start + size, Q.shape[0]))
        near = xp.where(ids[part, :] >= 0, ids[part, :], xp.zeros_like(ids[part, :]))
        rows = xp.reshape(xp.take(X, xp.reshape(near, (-1,)), axis=0), (*near.shape, X.shape[1]))
        parts.append(xp.sqrt(xp.sum((Q[part, :][:, None, :] - rows) ** 2, axis=2)))
    distances = xp.concat(parts, axis=0)
    return xp.where(ids >= 0, distances, xp.full_like(distances, xp.inf))


def search(
    X: Any, k: int, settings: Any, random: np.random.RandomState, report: Any
) -> tuple[Neighbors, str, float]:
    """Return the neighbours of every row among the others, how they were found, and the recall on a sample."""
    xp, n = arrays.namespace(X), X.shape[0]
    rows, offsets = comparable(X, settings.metric)
    share, method = 1.0, "exact"
    if can_fuse(rows, k):
        sample, seed = np.sort(random.choice(n, min(N_SAMPLE, n), replace=False)), seed_of(random)
    if settings.method == "approximate" and can_fuse(rows, k) and n >= 4 * k:
        found, share = search_device_cells(rows, offsets, k, seed, sample)
        method = "approximate"
    elif can_fuse(rows, k):
        found = search_fused(rows, offsets, k, seed)
        share = _recall(found, rows, offsets, sample, k)
        if share < GOOD_RECALL:
            found = search_fused(rows, offsets, k, seed, fine=True)
            share = _recall(found, rows, offsets, sample, k)
    else:
        own = xp.arange(n, dtype=xp.int64, **arrays.on_device(X))
        found = search_blocks(rows, own, rows, offsets, k)
    report(0.9)
    if settings.metric != "cosine":
        found = in_order(found.ids, -_distances(X, X, found.ids))
    return found, method, share


def _recall(found: Neighbors, X: Any, offsets: Any, sample: Any, k: int) -> float:
    """Return the share of true neighbours found at some rows; of rows that tie with the last, any counts as true."""
    own = arrays.beside(sample.astype(np.int64), X)
    true = search_blocks(arrays.pick(X, sample), own, X, offsets, k)
    ids = arrays.to_numpy(arrays.pick(found.ids, sample))
    hits = (arrays.to_numpy(true.ids)[:, :, None] == ids[:, None, :]).any(axis=2)
    last = arrays.to_numpy(true.scores)[:, -1:]
    as_good = arrays.to_numpy(arrays.pick(found.scores, sample)) >= last - 1e-12
    return max(float(hits.mean()), float(as_good.mean()))


def similarities(found: Neighbors, scale: float | None) -> Any:
    """Return similarities from scores, as `transduce.methods.spectral_graph.graph.similarities` has them."""
    xp, scores = arrays.namespace(found.scores), found.scores
    if scale is None:
        return scores
    scaled = (scores / scale) ** 2
    nearest = xp.min(scaled, axis=1, keepdims=True)
    nearest = xp.where(xp.isfinite(nearest), nearest, xp.zeros_like(nearest))
    return xp.where(found.ids >= 0, xp.exp(nearest - scaled), xp.zeros_like(scaled))


def median_scale(found: Neighbors) -> float:
    """Return the median distance to the last neighbour; scores are minus distances."""
    xp = arrays.namespace(found.scores)
    last = xp.max(xp.where(found.ids >= 0, -found.scores, xp.zeros_like(found.scores)), axis=1)
    ordered, n = xp.sort(last), last.shape[0]
    middle = float(ordered[(n - 1) // 2] + ordered[n // 2]) / 2.0
    return middle or float(xp.mean(last)) or 1.0


def assemble(ids: Any, weights: Any, order: Any, random: np.random.RandomState) -> tuple[DeviceGraph, int]:
    """Return the symmetric graph ``A' + A''`` of the neighbours' weights, and how many rows had none.

    Shapes: ids, weights (n, k), order (n,).
    """
    xp, (n, k) = arrays.namespace(weights), ids.shape
    weights = xp.where((ids >= 0) & (weights > 0.0), weights, xp.zeros_like(weights))
    total = xp.sum(weights, axis=1)
    alone = np.flatnonzero(arrays.to_numpy(total == 0.0))
    for row in map(int, alone) if n > 1 else []:
        others = sample_without_replacement(n - 1, k, random_state=random)
        ids[row, :] = arrays.beside((others + (others >= row)).astype(np.int64), ids)
        weights[row, :] = xp.ones_like(weights[row, :])
    total = xp.sum(weights, axis=1, keepdims=True)
    weights = weights / xp.where(total > 0.0, total, xp.ones_like(total))
    kept = weights > 0.0
    here = xp.broadcast_to(order[:, None], (n, k))[kept]
    there, values = xp.take(order, xp.where(kept, ids, xp.zeros_like(ids))[kept]), weights[kept]
    keys = xp.concat([here * n + there, there * n + here])
    return DeviceGraph(*merged(keys, xp.concat([values, values]), n)), len(alone)


def merged(keys: Any, values: Any, n: int) -> tuple[SparseRows, Any]:
    """Return entries ``row * n + column`` as a sparse matrix, equal ones added up; and the row of every entry."""
    xp = arrays.namespace(values)
    turn = xp.argsort(keys, stable=True)
    keys, values = xp.take(keys, turn), xp.take(values, turn)
    first = xp.concat([xp.ones_like(keys[:1], dtype=xp.bool), keys[1:] != keys[:-1]])
    group = xp.cumulative_sum(xp.astype(first, xp.int64)) - 1
    keys = keys[first]
    values = sum_by_group(values, group, keys.shape[0])
    rows = keys // n
    starts = xp.searchsorted(rows, xp.arange(n + 1, dtype=xp.int64, **arrays.on_device(keys)))
    return SparseRows(xp.astype(starts, xp.int64), keys - rows * n, values, (n, n)), rows


def build_device_graph(rows: Any, settings: Any, random: np.random.RandomState) -> DeviceGraph:
    """Return the graph of rows that have been checked."""
    metric, n = settings.metric, rows.shape[0]
    k = min(int(settings.n_neighbors), n - 1)
    if metric not in PRODUCTS or settings.method == "faiss":
        raise ValueError(
            f"metric={metric!r} with method={settings.method!r} is not there for arrays of "
            f"{arrays.library_of(rows)}: use metric='cosine' or 'euclidean' and another method, or pass a numpy array."
        )
    memory.check_fits(
        n * (8.0 * rows.shape[1] + 250.0 * k),
        rows,
        f"The neighbour graph of {n:,} rows",
        "Give fewer rows or fewer neighbours.",
    )
    order = row_order(rows)
    ordered = arrays.namespace(rows).take(rows, order, axis=0)
    ordered = unit_rows(ordered) if metric == "cosine" else ordered
    with stage("neighbours") as report:
        found, method, share = search(ordered, k, settings, random, report)
    scale = None if metric == "cosine" else median_scale(found)
    with stage("graph"):
        graph, n_random = assemble(found.ids, similarities(found, scale), order, random)
    graph.diagnostics.update(
        n_neighbors=k, metric=metric, method=method, recall=share, n_random=n_random, scale=scale
    )
    return graph


def top_k(values: Any, k: int) -> tuple[Any, Any]:
    """Return the `k` largest of each line and where they stand, largest first; of equal ones any.

    Shapes: values (m, n); returns values, positions (m, k).
    """
    if arrays.library_of(values) == "torch":
        found = values.topk(k, dim=1)
        return found.values, found.indices
    xp = arrays.namespace(values)
    if arrays.library_of(values) == "cupy":
        some = xp.argpartition(-values, k - 1, axis=1)[:, :k]
        some = xp.take_along_axis(some, xp.argsort(-xp.take_along_axis(values, some, axis=1), axis=1), axis=1)
    else:
        some = (
            xp.argsort(values, axis=1, descending=True)[:, :k]
            if xp is not np
            else np.argsort(-values, axis=1, kind="stable")[:, :k]
        )
    return xp.take_along_axis(values, some, axis=1), some


def sum_by_group(values: Any, groups: Any, n: int) -> Any:
    """Return the sum of the values of each of `n` groups."""
    library = arrays.library_of(values)
    if library == "torch":
        return arrays.zeros((n,), values).index_add_(0, groups, values)
    if library == "cupy":
        return arrays.namespace(values).bincount(groups, weights=values, minlength=n)
    return arrays.beside(
        np.bincount(arrays.to_numpy(groups), weights=arrays.to_numpy(values), minlength=n), values
    )


class SparseRows:
    """A sparse matrix in compressed rows, on the device of its arrays, to be multiplied with dense blocks.

    Shapes: indptr (n + 1,), indices (n + 1,), data (t,).
    """

    def __init__(self, indptr: Any, indices: Any, data: Any, shape: tuple[int, int]) -> None:
        self.indptr, self.indices, self.data, self.shape = indptr, indices, data, shape
        self._matrix = self._build()

    def _build(self) -> Any:
        library = arrays.library_of(self.data)
        if library == "torch":
            import torch

            kind = torch.int32 if self.data.is_cuda and len(self.data) < 2**31 else torch.int64
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
                return torch.sparse_csr_tensor(
                    self.indptr.to(kind),
                    self.indices.to(kind),
                    self.data,
                    size=self.shape,
                    check_invariants=False,
                )
        if library == "cupy":
            from cupyx.scipy.sparse import csr_matrix

            return csr_matrix((self.data, self.indices, self.indptr), shape=self.shape)
        from scipy.sparse import csr_array

        return csr_array(
            (arrays.to_numpy(self.data), arrays.to_numpy(self.indices), arrays.to_numpy(self.indptr)),
            shape=self.shape,
        )

    def __matmul__(self, block: Any) -> Any:
        """Return the product with a dense block (m, k)."""
        if arrays.library_of(block) in ("torch", "cupy"):
            return self._matrix @ block
        return arrays.beside(self._matrix @ arrays.to_numpy(block), block)

    def combine(self, block: Any, other: Any, scale: float, share: float, minus: Any) -> Any:
        """Return ``scale * (matrix @ block) + share * other - minus``; nothing is subtracted if `minus` is None."""
        if arrays.library_of(block) == "torch" and minus is not None:
            import torch

            return torch.sparse.addmm(minus, self._matrix, block, beta=-1.0, alpha=scale).add_(
                other, alpha=share
            )
        found = scale * (self @ block) + share * other
        return found if minus is None else found - minus
