"""Neighbour graphs: each row tied to the rows most similar to it, with the weights of Joachims (2003)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.random import sample_without_replacement

from transduce.core.types import AnyArray, Array
from transduce.methods.spectral_graph.approximate_neighbors import N_SAMPLE, recall, search_cells
from transduce.methods.spectral_graph.neighbors import Neighbors, search_dense, search_metric, search_sparse

EXACT_ROWS = 30_000  # up to here method="auto" compares every row with every other
TARGET_RECALL = 0.97
PRODUCTS = ("cosine", "euclidean", "l2")  # metrics that matrix products can rank dense rows by


class NeighborGraph(sp.csr_array):
    """A sparse adjacency matrix that remembers how it was made.

    Sums of graphs, for co-training on several views of the same rows, are graphs again, without this memory.

    Parameters
    ----------
    *args, **kwargs
        As for `scipy.sparse.csr_array`.

    Attributes
    ----------
    diagnostics : dict
        ``n_neighbors``, ``metric``, ``method``; ``recall``, the share of true neighbours found, measured on a sample
        (1 for exact search); ``n_random``, the number of rows with no similarity to any other, tied to random rows;
        ``scale``, by which distances were divided, None for cosines.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.methods.spectral_graph import neighbor_graph
    >>> graph = neighbor_graph(np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]]), n_neighbors=1)
    >>> graph.toarray()
    array([[0., 2., 0., 0.],
           [2., 0., 0., 0.],
           [0., 0., 0., 2.],
           [0., 0., 2., 0.]])
    >>> graph.diagnostics["recall"]
    1.0
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.diagnostics: dict[str, Any] = {}

    def save(self, path: str | Path) -> None:
        """Write the graph to a file of plain arrays (npz)."""
        with open(path, "wb") as file:
            np.savez(
                file,
                data=self.data,
                indices=self.indices,
                indptr=self.indptr,
                shape=self.shape,
                diagnostics=json.dumps(self.diagnostics),
            )

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a graph that `save` wrote; nothing in the file is executed."""
        with np.load(path, allow_pickle=False) as file:
            graph = cls((file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"]))
            graph.diagnostics = json.loads(str(file["diagnostics"]))
        return graph


def unit_rows(X: Any) -> Any:
    """Return rows of norm 1, dense or sparse; rows of zeros stay so."""
    if sp.issparse(X):
        X = sp.csr_array(X, dtype=np.float64, copy=True)
        largest = np.maximum(abs(X).max(axis=1).toarray().ravel(), np.finfo(float).tiny)
        X.data /= np.repeat(largest, np.diff(X.indptr))
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        X.data /= np.repeat(np.where(norms > 0.0, norms, 1.0), np.diff(X.indptr))
        return X
    largest = np.maximum(np.abs(X).max(axis=1, keepdims=True), np.finfo(float).tiny)
    X = X / largest
    norms = np.sqrt(np.einsum("ij,ij->i", X, X))
    X /= np.where(norms > 0.0, norms, 1.0)[:, None]
    return X


def row_order(X: Any) -> AnyArray:
    """Return an order of the rows that does not depend on the order in which they came, but for equal rows."""
    if sp.issparse(X):
        X = sp.csr_array(
            X
        ).sorted_indices()  # the entries of a row are added in the same order wherever it stands
        return np.argsort(X @ np.random.RandomState(0).standard_normal(X.shape[1]), kind="stable")
    order = np.argsort(X[:, 0], kind="stable")
    first = X[order, 0]
    if np.any(first[1:] == first[:-1]):
        order = np.lexsort(X.T[::-1])
    return order


def median_scale(neighbors: Neighbors) -> float:
    """Return the median distance to the last neighbour; scores are minus distances."""
    last = np.where(neighbors.ids >= 0, -neighbors.scores, 0.0).max(axis=1)
    return float(np.median(last)) or float(last.mean()) or 1.0


def similarities(neighbors: Neighbors, scale: float | None) -> Array:
    """Return similarities from scores: cosines as they are; distances d as ``exp(-(d^2 - d_1^2) / scale^2)``.

    d_1 is the row's smallest: only ratios within a row matter, so that a row far from all others has neighbours too.

    Parameters
    ----------
    neighbors : Neighbors
        Scores are cosines, or minus distances.
    scale : float or None
        None for cosines.
    """
    ids, distances = neighbors.ids, -neighbors.scores
    if scale is None:
        return neighbors.scores
    scaled = np.square(distances / scale)
    nearest = scaled.min(axis=1, keepdims=True)
    return np.where(ids >= 0, np.exp(np.where(np.isfinite(nearest), nearest, 0.0) - scaled), 0.0)


def assemble(ids: AnyArray, weights: AnyArray, random: np.random.RandomState) -> tuple[NeighborGraph, int]:
    """Return the symmetric graph ``A' + A''`` of the neighbours' weights, and how many rows had none.

    Parameters
    ----------
    ids : array of shape (n, k)
        Neighbours, -1 where there is none.
    weights : array of shape (n, k)
        Similarities; those not above 0 count as none. Each row is divided by its sum, which is equation (16) of the
        paper; a row without any is tied to k random rows with equal weights.
    random : RandomState

    Returns
    -------
    NeighborGraph, int
    """
    n, k = ids.shape
    weights = np.where((ids >= 0) & (weights > 0.0), weights, 0.0).astype(np.float64)
    alone = np.flatnonzero(weights.sum(axis=1) == 0.0)
    for row in alone if n > 1 else []:
        others = sample_without_replacement(n - 1, k, random_state=random)
        ids[row], weights[row] = others + (others >= row), 1.0
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    kept = weights > 0.0
    indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    one_way = NeighborGraph((weights[kept], ids[kept], indptr), shape=(n, n))
    return NeighborGraph(one_way + one_way.T), len(alone)


def nearest_rows(
    Q: Any,
    own: AnyArray,
    X: Any,
    k: int,
    metric: Any,
    n_jobs: int | None = None,
    report: Callable[[float], None] = lambda share: None,
) -> Neighbors:
    """Return the `k` rows of X most similar to each row of Q, found by comparing all.

    Parameters
    ----------
    Q, X : arrays or sparse arrays of shape (q, d) and (n, d)
        If the metric is the cosine, of norm 1.
    own : array of shape (q,)
        Which row of X each query is, -1 if none.
    k : int
    metric : str or callable
    n_jobs : int or None
    report : callable

    Returns
    -------
    Neighbors
        Scores are cosines, or minus distances.
    """
    if metric != "cosine":
        return search_metric(Q, own, X, k, metric, n_jobs)
    if sp.issparse(X):
        return search_sparse(Q, own, X, k, n_jobs=n_jobs, report=report)
    return search_dense(Q, own, X, np.zeros(len(X)), k, n_jobs=n_jobs, report=report)


def nearly_nearest_rows(
    X: AnyArray,
    k: int,
    metric: Any,
    method: str,
    random: np.random.RandomState,
    n_jobs: int | None = None,
    report: Callable[[float], None] = lambda share: None,
) -> tuple[Neighbors, float]:
    """Return nearly all of the `k` rows most similar to each, and the recall on a sample.

    Parameters
    ----------
    X : array of shape (n, d)
        If the metric is the cosine, of norm 1.
    k : int
    metric : {"cosine", "euclidean", "l2"}
    method : {"approximate", "faiss"}
    random : RandomState
    n_jobs : int or None
    report : callable

    Returns
    -------
    Neighbors, float
        Scores are cosines, or minus distances.
    """
    rows = X.astype(np.float32) if metric == "cosine" else _centred(X)
    offsets = np.zeros(len(rows), dtype=np.float32)
    if metric != "cosine":
        offsets = 0.5 * np.einsum("ij,ij->i", rows, rows)
    if method == "faiss":
        found, reached = search_faiss(rows, offsets, k, target=TARGET_RECALL, random=random)
    else:
        found, reached = search_cells(
            rows, offsets, k, target=TARGET_RECALL, random=random, n_jobs=n_jobs, report=report
        )
    if metric == "cosine":
        return found, reached
    return Neighbors(found.ids, -_distances(X, found.ids)), reached


def _centred(X: AnyArray) -> Array:
    """Return rows in single precision, shifted to mean 0 and scaled to size 1, which leaves the order of distances."""
    rows = X - X.mean(axis=0)
    return (rows / max(np.abs(rows).max(), np.finfo(float).tiny)).astype(np.float32)


def _distances(X: AnyArray, ids: AnyArray) -> Array:
    """Return the Euclidean distance of every row to its neighbours, infinite where there is none."""
    distances = np.empty(ids.shape)
    for start in range(0, len(X), 10_000):
        rows = slice(start, start + 10_000)
        distances[rows] = np.linalg.norm(X[rows, None, :] - X[ids[rows]], axis=2)
    return np.where(ids >= 0, distances, np.inf)


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
