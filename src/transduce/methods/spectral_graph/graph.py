"""Neighbour graphs: each row tied to the rows most similar to it, as in Joachims (2003)."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import PAIRWISE_DISTANCE_FUNCTIONS
from sklearn.neighbors import VALID_METRICS

from transduce.core import arrays, checks, validation
from transduce.core.checks import check_random_state
from transduce.core.computing import once, stage
from transduce.core.row_order import number_rows
from transduce.core.types import AnyArray, Array, Rows
from transduce.device import graph as device_graph
from transduce.device import memory
from transduce.device import neighbors as device_neighbors
from transduce.device.graph import DeviceGraph, SparseRows
from transduce.device.neighbors import PRODUCTS, Neighbors
from transduce.methods.spectral_graph.neighbors import Work, nearest_rows, search
from transduce.methods.spectral_graph.spectrum import (
    LAPLACIANS,
    Laplacian,
    Spectrum,
    check_graph,
    graph_spectrum,
)

SPARSE_METRICS = ("cosine", "euclidean", "l2", "manhattan", "l1", "cityblock")
METRICS = sorted(
    {*PAIRWISE_DISTANCE_FUNCTIONS, *VALID_METRICS["brute"]}
    - {"precomputed", "nan_euclidean", "haversine", "seuclidean", "mahalanobis"}
)

SearchMethod = Literal["auto", "exact", "approximate"]
Metric = str | Callable[[Array, Array], float]


class NeighborGraph(sp.csr_array):
    """A sparse adjacency matrix that remembers how it was made; sums of graphs do not.

    Parameters
    ----------
    *args, **kwargs
        As for `scipy.sparse.csr_array`.

    Attributes
    ----------
    diagnostics : dict
        ``n_neighbors``, ``metric``, ``method``; ``recall``, the share of true neighbours found,
        measured on a sample (1 for exact search); ``n_random``, the number of rows with no
        similarity to any other, tied to random rows; ``scale``, by which distances were divided,
        None for cosines. Of a sum over views: the smallest recall, the sum of ``n_random``, and the
        ``scale`` of each view.

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
    views: tuple[tuple[int, ...], ...] | None = None  # columns of each view, if there are several

    @property
    def precomputed(self) -> bool:
        """Whether there is nothing to search, because the user gives the graph."""
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def check(self, rows: Rows) -> None:
        """Raise a ValueError that says which setting is wrong, or does not suit these rows.

        The rows are None if there is nothing to search.
        """
        checks.check_whole("n_neighbors", self.n_neighbors, least=1)
        checks.check_choice("method", self.method, get_args(SearchMethod))
        checks.check_jobs(self.n_jobs)
        if self.most_compared is not None:
            checks.check_whole("most_compared", self.most_compared, least=1)
        if rows is not None:
            self._check_metric(rows)

    def _check_metric(self, rows: Rows) -> None:
        """Raise a ValueError unless the metric is there for these rows."""
        metric = self.metric
        if not callable(metric) and (not isinstance(metric, str) or metric not in METRICS):
            raise ValueError(
                "metric must be 'cosine', another metric of scikit-learn such as 'euclidean', or "
                f"a function of two rows; got {metric!r}. A graph of your own goes to "
                "SpectralGraphTransducer(metric='precomputed')."
            )
        if arrays.is_foreign(rows) and metric not in PRODUCTS:
            raise ValueError(
                f"metric={metric!r} is not there for arrays of {arrays.library_of(rows)}: use "
                "metric='cosine' or 'euclidean', or pass a numpy array."
            )
        if sp.issparse(rows) and not callable(metric) and metric not in SPARSE_METRICS:
            names = ", ".join(map(repr, SPARSE_METRICS))
            raise ValueError(
                f"metric={metric!r} does not take a sparse matrix: use one of {names}, or "
                "X.toarray()."
            )
        if self.method == "approximate" and (sp.issparse(rows) or metric not in PRODUCTS):
            raise ValueError(
                "method='approximate' needs metric='cosine' or 'euclidean' and dense rows: use "
                "method='exact'."
            )


def neighbor_graph(
    X: Rows,
    *,
    n_neighbors: int = 10,
    metric: Metric = "cosine",
    method: SearchMethod = "auto",
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
        ``"exact"`` compares every row with every other, in blocks. ``"approximate"``, for dense
        rows and the cosine or Euclidean metric, finds about 97 % of the neighbours much sooner.
        ``"auto"`` is exact up to 30,000 rows, and where nothing else is possible.
    most_compared : int, optional
        Rows that approximate search compares each row with, on average, where 97 % would take more;
        then it finds fewer. The graph's diagnostics say how many.
    n_jobs : int or None, default=None
        Threads; None for as many as matrix products use.
    random_state : int, RandomState or None, default=None
        Seed of the approximate search and of the rows that one without any similarity is tied to.

    Returns
    -------
    NeighborGraph, or DeviceGraph for an array of another library than numpy
        Sparse, symmetric, no row tied to itself: ``A' + A''`` with ``A'_ij = sim_ij / sum_j
        sim_ij`` over the neighbours j of i. The order of the rows leaves no trace but between equal
        rows.

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


def build_graph(rows: Rows, settings: GraphSettings, random: np.random.RandomState) -> Any:
    """Return the graph of rows that have been checked; of several views, the sum of theirs."""
    if settings.views is None:
        return _build_graph(rows, settings, random)
    graphs = [_build_graph(rows[:, list(view)], settings, random) for view in settings.views]
    total = NeighborGraph(sum(graphs[1:], start=graphs[0]))
    total.sort_indices()
    total.diagnostics.update(
        graphs[0].diagnostics,
        recall=min(graph.diagnostics["recall"] for graph in graphs),
        n_random=sum(graph.diagnostics["n_random"] for graph in graphs),
        scale=tuple(graph.diagnostics["scale"] for graph in graphs),
    )
    return total


class OneWay(NamedTuple):
    """Each row's neighbours, in an order of the rows that is their own."""

    ids: Any  # (n, k)
    similarities: Any  # (n, k)
    order: AnyArray  # (n,) the rows in that order
    diagnostics: dict[str, Any]


def _build_graph(rows: Rows, settings: GraphSettings, random: np.random.RandomState) -> Any:
    """Return the graph of one view."""
    neighbors = find_neighbors(rows, settings, random)
    assemble_graph = _choose_tools(rows).assemble
    graph, n_random = assemble_graph(neighbors.ids, neighbors.similarities, random, neighbors.order)
    graph.diagnostics.update(neighbors.diagnostics, n_random=n_random)
    return graph


def find_neighbors(rows: Rows, settings: GraphSettings, random: np.random.RandomState) -> OneWay:
    """Return the neighbours of rows that have been checked."""
    metric = settings.metric
    n = rows.shape[0]
    k = min(int(settings.n_neighbors), n - 1)
    memory.check_fits(
        n * (8.0 * rows.shape[1] + 250.0 * k),
        rows,
        f"The neighbour graph of {n:,} rows",
        "Give fewer rows or fewer neighbours.",
    )
    tools = _choose_tools(rows)
    order = row_order(rows)  # their own, whatever order they came in
    ordered = tools.take(rows, order)
    if metric == "cosine":
        ordered = unit_rows(ordered)
    neighbors = Neighbors(np.empty((n, 0), dtype=int), np.empty((n, 0)))
    method = "exact"
    recall = 1.0
    with stage("neighbours") as report:
        if k > 0:
            neighbors, method, recall = tools.search(ordered, k, settings, random, report)
    scale = None
    if metric != "cosine" and k > 0:
        scale = device_graph.median_scale(neighbors)
    similarities = device_graph.similarities(neighbors, scale)
    diagnostics = {
        "n_neighbors": k,
        "metric": _metric_name(metric),
        "method": method,
        "recall": recall,
        "scale": scale,
    }
    return OneWay(neighbors.ids, similarities, order, diagnostics)


class GraphTools(NamedTuple):
    """How rows are taken, neighbours searched and graphs assembled in one library of arrays."""

    take: Callable[..., Any]
    search: Callable[..., tuple[Neighbors, str, float]]
    nearest: Callable[..., Neighbors]  # among other rows
    assemble: Callable[..., tuple[Any, int]]


def _choose_tools(rows: Rows) -> GraphTools:
    """Return what the library of the rows needs."""
    if arrays.is_foreign(rows):
        return GraphTools(
            _take_on_device, device_neighbors.search, _nearest_on_device, device_graph.assemble
        )
    return GraphTools(_take_on_host, search, _nearest_on_host, assemble)


def _take_on_device(rows: Rows, order: AnyArray) -> Any:
    return arrays.namespace(rows).take(rows, order, axis=0)


def _take_on_host(rows: Rows, order: AnyArray) -> Any:
    return rows[order]


def _nearest_on_device(
    rows: Rows,
    known: Any,
    k: int,
    metric: Metric,
    work: Work,
) -> Neighbors:
    return device_neighbors.nearest_on_device(rows, known, k, metric)


def _nearest_on_host(
    rows: Rows,
    known: Any,
    k: int,
    metric: Metric,
    work: Work,
) -> Neighbors:
    not_among_known = np.full(rows.shape[0], -1)
    return nearest_rows(rows, not_among_known, known, k, metric, work)


def _metric_name(metric: Metric) -> str:
    """Return a metric in words."""
    if isinstance(metric, str):
        return metric
    return getattr(metric, "__name__", "callable")


def reordered(graph: NeighborGraph, rows: AnyArray) -> NeighborGraph:
    """Return the same graph with its rows in another order."""
    taken = NeighborGraph(graph[rows][:, rows])
    taken.sort_indices()
    taken.diagnostics.update(graph.diagnostics)
    return taken


def unit_rows(X: Rows) -> Any:
    """Return rows of norm 1, dense or sparse; rows of zeros stay so."""
    if not sp.issparse(X):
        return device_neighbors.unit_rows(X)
    X = sp.csr_array(X, dtype=np.float64, copy=True)
    row_lengths = np.diff(X.indptr)
    largest_of_row = abs(X).max(axis=1).toarray().ravel()
    largest = np.maximum(largest_of_row, np.finfo(float).tiny)
    X.data /= np.repeat(largest, row_lengths)
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(np.where(norms > 0.0, norms, 1.0), row_lengths)
    return X


def row_order(X: Rows) -> AnyArray:
    """Return an order of the rows that, but for equal rows, does not depend on how they came."""
    if sp.issparse(X):
        # The entries of a row are added in the same order wherever it stands.
        X = sp.csr_array(X).sorted_indices()
        direction = np.random.RandomState(0).standard_normal(X.shape[1])
        return np.argsort(X @ direction, kind="stable")
    return arrays.lexsort(X)


def assemble(
    ids: AnyArray,
    weights: AnyArray,
    random: np.random.RandomState,
    order: AnyArray,
) -> tuple[NeighborGraph, int]:
    """Return the symmetric graph ``A' + A''`` of ids and weights (n, k), and how many had none."""
    one_way, n_alone = one_way_graph(ids, weights, random)
    graph = NeighborGraph(one_way + one_way.T)
    if np.any(order[1:] < order[:-1]):
        graph = reordered(graph, np.argsort(order))
    graph.sort_indices()
    return graph, n_alone


def one_way_graph(
    ids: AnyArray, weights: AnyArray, random: np.random.RandomState
) -> tuple[sp.csr_array, int]:
    """Return ``A'`` (n, n), whose rows sum to 1, and how many rows had no neighbour."""
    ids, weights, n_alone = device_graph.one_way(ids, weights, random)
    n = len(ids)
    kept = weights > 0.0
    indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return sp.csr_array((weights[kept], ids[kept], indptr), shape=(n, n)), n_alone


def similar_rows(
    rows: Rows, known: Any, settings: GraphSettings, scale: float | None
) -> SparseRows:
    """Return the similarities of new rows with known ones, those of the nearest only."""
    if settings.metric == "cosine":
        rows = unit_rows(rows)
        if sp.issparse(rows) != sp.issparse(known):
            rows = sp.csr_array(rows)
            known = sp.csr_array(known)
    k = min(settings.n_neighbors, known.shape[0])
    with stage("neighbours of new rows") as report:
        work = Work(settings.n_jobs, report)
        neighbors = _choose_tools(rows).nearest(rows, known, k, settings.metric, work)
    ids = neighbors.ids
    similarities = device_graph.similarities(neighbors, scale)
    xp = arrays.namespace(ids)
    is_neighbor = ids >= 0
    similarities = xp.where(
        is_neighbor & (similarities > 0.0),
        similarities,
        xp.zeros_like(similarities),
    )
    columns = xp.where(is_neighbor, ids, xp.zeros_like(ids))
    m = ids.shape[0]
    positions = xp.arange(m, dtype=xp.int64, **arrays.on_device(ids))
    lines = xp.broadcast_to(positions[:, None], ids.shape)
    return SparseRows(
        xp.reshape(lines, (-1,)),
        xp.reshape(columns, (-1,)),
        xp.reshape(similarities, (-1,)),
        (m, known.shape[0]),
    )


MOST_KEPT = 100_000  # rows of a graph that is kept for the next fit


@dataclass(frozen=True)
class SpectrumSettings:
    """Which eigenvectors are wanted, see `graph_spectrum`."""

    n_components: int
    laplacian: Laplacian = "normalized"

    def check(self, X: Rows) -> None:
        """Raise a ValueError that says which setting is wrong, or does not suit a spectrum."""
        checks.check_whole("n_components", self.n_components, least=1)
        checks.check_choice("laplacian", self.laplacian, LAPLACIANS)
        if isinstance(X, Spectrum) and X.laplacian != self.laplacian:
            raise ValueError(
                f"X is a spectrum of another Laplacian: set laplacian={X.laplacian!r}."
            )

    def find(
        self,
        graph: Any,
        random: np.random.RandomState,
        n_jobs: int | None,
    ) -> Spectrum:
        """Return the spectrum of a graph."""
        return graph_spectrum(
            graph,
            n_components=self.n_components,
            laplacian=self.laplacian,
            random_state=random,
            n_jobs=n_jobs,
        )


class FittedView(NamedTuple):
    """What new rows are held against in one view."""

    columns: list[int] | None  # None for all
    rows: Rows  # of norm 1 for cosines
    scale: float | None  # by which distances are divided


@dataclass(frozen=True, eq=False)
class FittedGraph:
    """The graph of all rows and its spectrum."""

    settings: GraphSettings
    n_components: int
    index: Any
    spectrum: Spectrum
    graph: NeighborGraph | DeviceGraph | None = None
    views: tuple[FittedView, ...] = ()  # none if the graph was given
    row_numbers: AnyArray | None = None  # (n,) which copies share; None if there are no copies
    labels: AnyArray | None = None  # (n,) by which copies were ordered


def fit_graph(
    X: Rows,
    rows: Rows,
    settings: GraphSettings,
    wanted: SpectrumSettings,
    random: np.random.RandomState,
    labels: AnyArray,
) -> FittedGraph:
    """Return graph and spectrum of rows that have been read, or what was given instead of them.

    Copies of a row, of which only some can be its neighbours, are taken in the order of `labels`.
    """
    settings = replace(settings, n_neighbors=min(int(settings.n_neighbors), rows.shape[0] - 1))
    is_foreign = arrays.is_foreign(rows)
    index = getattr(X, "index", None)
    n_components = wanted.n_components
    if settings.precomputed and is_foreign:
        raise ValueError("metric='precomputed' needs a graph of numpy arrays, or its spectrum.")
    if isinstance(X, Spectrum):
        return FittedGraph(settings, n_components, index, X)
    if settings.precomputed:
        given = NeighborGraph(check_graph(rows))
        given.diagnostics.update(getattr(X, "diagnostics", {}))
        spectrum = wanted.find(given, random, settings.n_jobs)
        return FittedGraph(settings, n_components, index, spectrum, given)
    if is_foreign:
        index = None
        graph = build_graph(rows, settings, random)
        spectrum = wanted.find(graph, random, settings.n_jobs)
    else:
        graph, spectrum = graph_with_spectrum(rows, settings, wanted, random, labels)
    views = fit_views(rows, settings, graph.diagnostics["scale"])
    numbers = number_rows(rows)
    row_numbers = None if len(np.unique(numbers)) == len(numbers) else numbers
    return FittedGraph(settings, n_components, index, spectrum, graph, views, row_numbers, labels)


def fit_views(rows: Rows, settings: GraphSettings, scale: Any) -> tuple[FittedView, ...]:
    """Return what new rows are held against; with several views there is a scale for each."""
    views = []
    if settings.views is None:
        views.append(FittedView(None, rows, scale))
    else:
        for columns, scale_of_view in zip(settings.views, scale, strict=True):
            views.append(FittedView(list(columns), rows[:, list(columns)], scale_of_view))
    if settings.metric == "cosine":
        views = [view._replace(rows=unit_rows(view.rows)) for view in views]
    return tuple(views)


def read_views(
    views: Any, n_features: int, names: AnyArray | None
) -> tuple[tuple[int, ...], ...] | None:
    """Return the columns of each view, by their positions.

    `names` (n_features,) are the columns' own, if they have any.
    """
    if views is None:
        return None
    if not isinstance(views, Sequence) or isinstance(views, str | bytes) or not len(views):
        raise ValueError(
            "views must be a list of views, each a list of columns, such as "
            f"[['text'], ['links']] or [[0, 1], [2, 3]]; got {views!r}."
        )
    return tuple(_read_view(view, n_features, names) for view in views)


def _read_view(view: Any, n_features: int, names: AnyArray | None) -> tuple[int, ...]:
    """Return the positions of the columns of one view."""
    if isinstance(view, str) or not isinstance(view, Sequence | range | np.ndarray):
        raise ValueError(f"A view is a list of columns, such as ['text']; got {view!r}.")
    if len(view) == 0:
        raise ValueError("A view has no columns: leave it out of views.")
    places = {}
    if names is not None:
        places = {name: place for place, name in enumerate(names.tolist())}
    columns = []
    for column in view:
        is_place = isinstance(column, int | np.integer) and not isinstance(column, bool)
        if isinstance(column, str) and column in places:
            columns.append(places[column])
        elif is_place and 0 <= column < n_features:
            columns.append(int(column))
        else:
            raise ValueError(
                f"views names a column that X does not have: {column!r}. Give names of columns, or "
                f"positions from 0 to {n_features - 1}."
            )
    return tuple(columns)


def graph_with_spectrum(
    rows: Rows,
    settings: GraphSettings,
    wanted: SpectrumSettings,
    random: np.random.RandomState,
    labels: AnyArray,
) -> tuple[NeighborGraph, Spectrum]:
    """Return graph and spectrum of features."""
    # They are computed in an order that is the rows' own, and put back: so fits that share their
    # work (`transduce.core.computing`) need not have the rows in the same order, and those that do
    # not have the same answers.
    by_label = np.argsort(labels, kind="stable")
    order = by_label[row_order(rows[by_label])]
    ordered = rows[order]
    seed = pickle.dumps(random.get_state())

    def compute() -> tuple[NeighborGraph, Spectrum]:
        graph = build_graph(ordered, settings, random)
        return graph, wanted.find(graph, random, settings.n_jobs)

    if callable(settings.metric) or rows.shape[0] > MOST_KEPT:
        graph, spectrum = compute()
    else:
        graph, spectrum = once("graph", ordered, (settings, wanted, seed), compute)
    back = np.argsort(order)
    return reordered(graph, back), spectrum.take(back)
