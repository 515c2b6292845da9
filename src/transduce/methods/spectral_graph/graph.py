"""Neighbour graphs: each row tied to the rows most similar to it, with the weights of Joachims (2003)."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import PAIRWISE_DISTANCE_FUNCTIONS
from sklearn.neighbors import VALID_METRICS

from transduce.core import arrays, checks, validation
from transduce.core.checks import check_random_state
from transduce.core.computing import once, stage
from transduce.core.types import AnyArray, Array
from transduce.device import graph as device_graph
from transduce.device import memory
from transduce.device import neighbors as device_neighbors
from transduce.device.graph import DeviceGraph, SparseRows
from transduce.device.neighbors import PRODUCTS, Neighbors
from transduce.methods.spectral_graph.neighbors import Work, nearest_rows, search
from transduce.methods.spectral_graph.spectrum import Spectrum, check_graph, graph_spectrum

SPARSE_METRICS = ("cosine", "euclidean", "l2", "manhattan", "l1", "cityblock")
METRICS = sorted(
    {*PAIRWISE_DISTANCE_FUNCTIONS, *VALID_METRICS["brute"]}
    - {"precomputed", "nan_euclidean", "haversine", "seuclidean", "mahalanobis"}
)

Metric = str | Callable[[Array, Array], float]


class NeighborGraph(sp.csr_array):
    """A sparse adjacency matrix that remembers how it was made; sums of graphs are graphs without this memory.

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
    >>> from transduce.methods.spectral_graph import neighbor_graph
    >>> graph = neighbor_graph([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]], n_neighbors=1)
    >>> graph.sum(axis=0), graph.diagnostics["recall"]
    (array([2., 2., 2., 2.]), 1.0)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.diagnostics: dict[str, Any] = {}


@dataclass(frozen=True)
class GraphSettings:
    """How neighbours are searched, see `neighbor_graph`."""

    n_neighbors: int
    metric: Metric
    method: str
    n_jobs: int | None
    most_compared: int | None = None

    @property
    def precomputed(self) -> bool:
        """Whether there is nothing to search, because the user gives the graph."""
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def check(self, rows: Any) -> None:
        """Raise a ValueError that says which setting is wrong, or does not suit these rows; None if not searched."""
        metric, method = self.metric, self.method
        checks.check_whole("n_neighbors", self.n_neighbors, least=1)
        checks.check_choice("method", method, ("auto", "exact", "approximate"))
        checks.check_jobs(self.n_jobs)
        if self.most_compared is not None:
            checks.check_whole("most_compared", self.most_compared, least=1)
        if rows is None:
            return
        if not callable(metric) and (not isinstance(metric, str) or metric not in METRICS):
            raise ValueError(
                "metric must be 'cosine', another metric of scikit-learn such as 'euclidean', or a function of two "
                f"rows; got {metric!r}. A graph of your own goes to SpectralGraphTransducer(metric='precomputed')."
            )
        if arrays.is_foreign(rows) and metric not in PRODUCTS:
            raise ValueError(
                f"metric={metric!r} is not there for arrays of {arrays.library_of(rows)}: use metric='cosine' or "
                "'euclidean', or pass a numpy array."
            )
        if sp.issparse(rows) and not callable(metric) and metric not in SPARSE_METRICS:
            raise ValueError(
                f"metric={metric!r} does not take a sparse matrix: use one of "
                f"{', '.join(map(repr, SPARSE_METRICS))}, or X.toarray()."
            )
        if method == "approximate" and (sp.issparse(rows) or metric not in PRODUCTS):
            raise ValueError(
                "method='approximate' needs metric='cosine' or 'euclidean' and dense rows: use method='exact'."
            )


def neighbor_graph(
    X: Any,
    *,
    n_neighbors: int = 10,
    metric: Metric = "cosine",
    method: str = "auto",
    most_compared: int | None = None,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> Any:
    """Tie each row to the rows most similar to it.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        Features.
    n_neighbors : int, default=10
        Neighbours of each row; all others if there are fewer.
    metric : str or callable, default="cosine"
        ``"cosine"`` as in the paper, or any metric of scikit-learn.
    method : {"auto", "exact", "approximate"}, default="auto"
        ``"exact"`` compares every row with every other, in blocks. ``"approximate"``, for dense rows and the cosine or
        Euclidean metric, finds about 97 % of the neighbours much sooner. ``"auto"`` is exact up to 30,000 rows, and
        where nothing else is possible.
    most_compared : int, optional
        Rows that approximate search compares each row with, on average, where 97 % would take more; then it finds
        fewer. The graph's diagnostics say how many.
    n_jobs : int or None, default=None
        Threads; None for as many as matrix products use.
    random_state : int, RandomState or None, default=None
        Seed of the approximate search and of the rows that one without any similarity is tied to.

    Returns
    -------
    NeighborGraph, or DeviceGraph for an array of another library than numpy
        Sparse, symmetric, no row tied to itself: ``A' + A''`` with ``A'_ij = sim_ij / sum_j sim_ij`` over the
        neighbours j of i. The order of the rows leaves no trace but between equal rows.

    Examples
    --------
    >>> from transduce.methods.spectral_graph import neighbor_graph
    >>> neighbor_graph([[1.0, 0.0], [1.0, 0.2], [0.0, 1.0]], n_neighbors=1).toarray().round(2)
    array([[0., 2., 0.],
           [2., 0., 1.],
           [0., 1., 0.]])
    """
    rows = validation.read_rows(BaseEstimator(), X, reset=True, sparse=True, device=True)
    settings = GraphSettings(n_neighbors, metric, method, n_jobs, most_compared)
    settings.check(rows)
    return build_graph(rows, settings, check_random_state(random_state))


def build_graph(rows: Any, settings: GraphSettings, random: np.random.RandomState) -> Any:
    """Return the graph of rows that have been checked."""
    metric, n = settings.metric, rows.shape[0]
    k = min(int(settings.n_neighbors), n - 1)
    foreign = arrays.is_foreign(rows)
    what, need = f"The neighbour graph of {n:,} rows", n * (8.0 * rows.shape[1] + 250.0 * k)
    memory.check_fits(need, rows, what, "Give fewer rows or fewer neighbours.")
    order = row_order(rows)  # their own, whatever order they came in
    ordered = arrays.namespace(rows).take(rows, order, axis=0) if foreign else rows[order]
    ordered = unit_rows(ordered) if metric == "cosine" else ordered
    with stage("neighbours") as report:
        if k == 0:
            found, method, share = (
                Neighbors(np.empty((n, 0), dtype=int), np.empty((n, 0))),
                "exact",
                1.0,
            )
        else:
            find = device_neighbors.search if foreign else search
            found, method, share = find(ordered, k, settings, random, report)
    scale = None if metric == "cosine" or k == 0 else device_graph.median_scale(found)
    join = device_graph.assemble if foreign else assemble
    graph, n_random = join(found.ids, device_graph.similarities(found, scale), random, order)
    name = metric if isinstance(metric, str) else getattr(metric, "__name__", "callable")
    graph.diagnostics.update(n_neighbors=k, metric=name, method=method, recall=share)
    graph.diagnostics.update(n_random=n_random, scale=scale)
    return graph


def reordered(graph: NeighborGraph, rows: AnyArray) -> NeighborGraph:
    """Return the same graph with its rows in another order."""
    taken = NeighborGraph(graph[rows][:, rows])
    taken.sort_indices()
    taken.diagnostics.update(graph.diagnostics)
    return taken


def unit_rows(X: Any) -> Any:
    """Return rows of norm 1, dense or sparse; rows of zeros stay so."""
    if sp.issparse(X):
        X = sp.csr_array(X, dtype=np.float64, copy=True)
        largest = np.maximum(abs(X).max(axis=1).toarray().ravel(), np.finfo(float).tiny)
        X.data /= np.repeat(largest, np.diff(X.indptr))
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        X.data /= np.repeat(np.where(norms > 0.0, norms, 1.0), np.diff(X.indptr))
        return X
    return device_neighbors.unit_rows(X)


def row_order(X: Any) -> AnyArray:
    """Return an order of the rows that does not depend on the order in which they came, except for equal rows."""
    if sp.issparse(X):
        # The entries of a row are added in the same order wherever it stands.
        X = sp.csr_array(X).sorted_indices()
        return np.argsort(X @ np.random.RandomState(0).standard_normal(X.shape[1]), kind="stable")
    return arrays.lexsort(X)


def assemble(
    ids: AnyArray, weights: AnyArray, random: np.random.RandomState, order: AnyArray
) -> tuple[NeighborGraph, int]:
    """Return the symmetric graph ``A' + A''`` of the neighbours' ids and weights (n, k), and how many rows had none."""
    ids, weights, n_alone = device_graph.one_way(ids, weights, random)
    kept, n = weights > 0.0, len(ids)
    indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    one_way = sp.csr_array((weights[kept], ids[kept], indptr), shape=(n, n))
    graph = NeighborGraph(one_way + one_way.T)
    if np.any(order[1:] < order[:-1]):
        graph = reordered(graph, np.argsort(order))
    graph.sort_indices()
    return graph, n_alone


def similar_rows(rows: Any, known: Any, settings: GraphSettings, scale: float | None) -> SparseRows:
    """Return the similarities of new rows with known ones, those of the nearest only."""
    if settings.metric == "cosine":
        rows = unit_rows(rows)
        if sp.issparse(rows) != sp.issparse(known):
            rows, known = (sp.csr_array(part) for part in (rows, known))
    k = min(settings.n_neighbors, known.shape[0])
    with stage("neighbours of new rows") as report:
        if arrays.is_foreign(rows):
            found = device_neighbors.nearest_on_device(rows, known, k, settings.metric)
        else:
            own, work = np.full(rows.shape[0], -1), Work(settings.n_jobs, report)
            found = nearest_rows(rows, own, known, k, settings.metric, work)
    ids, similar = found.ids, device_graph.similarities(found, scale)
    xp, (m, k) = arrays.namespace(ids), ids.shape
    similar = xp.where((ids >= 0) & (similar > 0.0), similar, xp.zeros_like(similar))
    near = xp.where(ids >= 0, ids, xp.zeros_like(ids))
    own = xp.broadcast_to(xp.arange(m, dtype=xp.int64, **arrays.on_device(ids))[:, None], (m, k))
    own, near, similar = (xp.reshape(part, (-1,)) for part in (own, near, similar))
    return SparseRows(own, near, similar, (m, known.shape[0]))


MOST_KEPT = 100_000  # rows of a graph that is kept for the next fit


@dataclass(frozen=True, eq=False)
class FittedGraph:
    """The graph of all rows, its spectrum, and what new rows are held against (norm 1 for cosines; None if given)."""

    settings: GraphSettings
    n_components: int
    index: Any
    spectrum: Spectrum
    graph: NeighborGraph | DeviceGraph | None = None
    rows: Any = None


def fit_graph(
    X: Any, rows: Any, settings: GraphSettings, n_components: int, random: np.random.RandomState
) -> FittedGraph:
    """Return graph and spectrum of rows that have been read, or what was given instead of them."""
    settings = replace(settings, n_neighbors=min(int(settings.n_neighbors), rows.shape[0] - 1))
    how: dict[str, Any] = {
        "n_components": n_components,
        "random_state": random,
        "n_jobs": settings.n_jobs,
    }
    foreign, index = arrays.is_foreign(rows), getattr(X, "index", None)
    if settings.precomputed and foreign:
        raise ValueError("metric='precomputed' needs a graph of numpy arrays, or its spectrum.")
    if isinstance(X, Spectrum):
        return FittedGraph(settings, n_components, index, X)
    if settings.precomputed:
        given = NeighborGraph(check_graph(rows))
        given.diagnostics.update(getattr(X, "diagnostics", {}))
        return FittedGraph(settings, n_components, index, graph_spectrum(given, **how), given)
    if foreign:
        index, graph = None, build_graph(rows, settings, random)
        spectrum = graph_spectrum(graph, **how)
    else:
        graph, spectrum = graph_with_spectrum(rows, settings, how)
    known = unit_rows(rows) if settings.metric == "cosine" else rows
    return FittedGraph(settings, n_components, index, spectrum, graph, known)


def graph_with_spectrum(
    rows: Any, settings: GraphSettings, how: Any
) -> tuple[NeighborGraph, Spectrum]:
    """Return graph and spectrum of features."""
    # They are computed in an order that is the rows' own, and put back: so fits that share their work
    # (`transduce.core.computing`) need not have the rows in the same order, and those that do not have the same
    # answers.
    order, random = row_order(rows), how["random_state"]
    ordered, seed = rows[order], pickle.dumps(random.get_state())

    def compute() -> tuple[NeighborGraph, Spectrum]:
        graph = build_graph(ordered, settings, random)
        return graph, graph_spectrum(graph, **how)

    if callable(settings.metric) or rows.shape[0] > MOST_KEPT:
        graph, spectrum = compute()
    else:
        graph, spectrum = once("graph", ordered, (settings, how["n_components"], seed), compute)
    back = np.argsort(order)
    return reordered(graph, back), spectrum.take(back)
