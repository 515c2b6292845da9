"""Neighbour graphs of the user's rows, and the settings of the spectral graph transducer."""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import PAIRWISE_DISTANCE_FUNCTIONS
from sklearn.neighbors import VALID_METRICS
from sklearn.utils import check_random_state

from transduce.core import checks, validation
from transduce.core.progress import stage
from transduce.core.transducer import ClassTransducer
from transduce.core.types import AnyArray, Array
from transduce.methods.spectral_graph.cut import default_label_weight
from transduce.methods.spectral_graph.graph import (
    EXACT_ROWS,
    PRODUCTS,
    NeighborGraph,
    assemble,
    median_scale,
    nearest_rows,
    nearly_nearest_rows,
    row_order,
    similarities,
    unit_rows,
)
from transduce.methods.spectral_graph.neighbors import Neighbors

SPARSE_METRICS = ("euclidean", "l2", "manhattan", "l1", "cityblock")
METHODS = ("auto", "exact", "approximate", "faiss")
METRICS = sorted(
    {*PAIRWISE_DISTANCE_FUNCTIONS, *VALID_METRICS["brute"]}
    - {"precomputed", "nan_euclidean", "haversine", "seuclidean", "mahalanobis"}
)


class _Reader(BaseEstimator):
    """Gives a plain function the names of the features in its messages."""


def neighbor_graph(
    X: Any,
    *,
    n_neighbors: int = 10,
    metric: Any = "cosine",
    method: str = "auto",
    n_jobs: int | None = None,
    random_state: Any = None,
) -> NeighborGraph:
    """Tie each row to the rows most similar to it.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        Features.
    n_neighbors : int, default=10
        Neighbours of each row; all others if there are fewer.
    metric : str or callable, default="cosine"
        ``"cosine"`` as in the paper, or any metric of scikit-learn.
    method : {"auto", "exact", "approximate", "faiss"}, default="auto"
        ``"exact"`` compares every row with every other, in blocks. ``"approximate"``, for dense rows and the cosine or
        Euclidean metric, finds about 97 % of the neighbours much sooner; ``"faiss"`` does so with the library faiss
        (``pip install transduce[ann]``). ``"auto"`` is exact up to 30,000 rows, and where nothing else is possible.
    n_jobs : int or None, default=None
        Threads; None for as many as matrix products use.
    random_state : int, RandomState or None, default=None
        Seed of the approximate search and of the rows that one without any similarity is tied to.

    Returns
    -------
    NeighborGraph
        Sparse, symmetric, no row tied to itself: ``A' + A''`` with ``A'_ij = sim_ij / sum_j sim_ij`` over the
        neighbours j of i. Its ``diagnostics`` say how it was made, with the recall measured on a sample.

    See Also
    --------
    graph_spectrum : Its eigenvectors.
    SpectralGraphTransducer : Labels at all of its rows.

    Notes
    -----
    Negative cosines count as 0; a row with no positive one is tied to `n_neighbors` random rows with equal weights, and
    counted. For other metrics the similarity is ``exp(-d^2 / s^2)``, with s the median distance to the last neighbour.
    The order of the rows leaves no trace but between equal rows.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.methods.spectral_graph import neighbor_graph
    >>> X = np.array([[1.0, 0.0], [1.0, 0.2], [0.0, 1.0]])
    >>> neighbor_graph(X, n_neighbors=1).toarray().round(2)
    array([[0., 2., 0.],
           [2., 0., 1.],
           [0., 1., 0.]])
    """
    rows = validation.read_rows(_Reader(), X, reset=True, sparse=True)
    check_graph_settings(n_neighbors, metric, method, n_jobs)
    random = check_random_state(random_state)
    return build_graph(rows, int(n_neighbors), metric, method, n_jobs, random)


def check_graph_settings(n_neighbors: Any, metric: Any, method: Any, n_jobs: Any) -> None:
    """Raise a ValueError that says which setting is wrong."""
    checks.check_whole("n_neighbors", n_neighbors, least=1)
    checks.check_choice("method", method, METHODS)
    checks.check_jobs(n_jobs)
    if not callable(metric) and (not isinstance(metric, str) or metric not in METRICS):
        raise ValueError(
            f"metric must be 'cosine', another metric of scikit-learn such as 'euclidean', or a function of two rows; "
            f"got {metric!r}. A graph of your own goes to SpectralGraphTransducer(metric='precomputed')."
        )
    if method == "faiss" and importlib.util.find_spec("faiss") is None:
        raise ValueError("method='faiss' needs the library faiss: pip install transduce[ann].")
    if method in ("approximate", "faiss") and metric not in PRODUCTS:
        raise ValueError(
            f"method={method!r} needs metric='cosine' or 'euclidean'; use method='exact' with {metric!r}."
        )


def canonical_rows(rows: Any, metric: Any) -> tuple[AnyArray, Any]:
    """Return an order of the rows that is their own, and the rows in it, of norm 1 if the metric is the cosine."""
    order = row_order(rows)
    return order, unit_rows(rows[order]) if metric == "cosine" else rows[order]


def build_graph(
    rows: Any, n_neighbors: int, metric: Any, method: str, n_jobs: int | None, random: Any
) -> NeighborGraph:
    """Return the graph of rows that have been checked."""
    n, k = rows.shape[0], min(n_neighbors, rows.shape[0] - 1)
    possible = not sp.issparse(rows) and metric in PRODUCTS
    if sp.issparse(rows) and not callable(metric) and metric != "cosine" and metric not in SPARSE_METRICS:
        raise ValueError(
            f"metric={metric!r} does not take a sparse matrix: use one of 'cosine', "
            f"{', '.join(map(repr, SPARSE_METRICS))}, or X.toarray()."
        )
    if method in ("approximate", "faiss") and not possible:
        raise ValueError(f"method={method!r} needs dense rows: use method='exact' with a sparse matrix.")
    if method == "auto":
        method = "approximate" if possible and n > EXACT_ROWS else "exact"
    order, ordered = canonical_rows(rows, metric)
    share = 1.0
    with stage("neighbours") as report:
        if k == 0:
            found = Neighbors(np.empty((n, 0), dtype=int), np.empty((n, 0)))
        elif method == "exact" or n < 4 * k:
            method = "exact"
            found = nearest_rows(ordered, np.arange(n), ordered, k, metric, n_jobs, report)
        else:
            found, share = nearly_nearest_rows(ordered, k, metric, method, random, n_jobs, report)
    scale = None if metric == "cosine" or k == 0 else median_scale(found)
    graph, n_random = assemble(found.ids, similarities(found, scale), random)
    back = np.empty_like(order)
    back[order] = np.arange(n)
    graph = NeighborGraph(graph[back][:, back])
    graph.sort_indices()
    name = metric if isinstance(metric, str) else getattr(metric, "__name__", "callable")
    graph.diagnostics = {
        "n_neighbors": k,
        "metric": name,
        "method": method,
        "recall": share,
        "n_random": n_random,
        "scale": scale,
    }
    return graph


def read_weights(estimator: Any, X: Any) -> Any:
    """Return the user's own graph, sparse or dense, as finite weights in the shape that came."""
    return sp.csr_array(validation.read_rows(estimator, X, reset=True, sparse=True))


class GraphShell(ClassTransducer):
    """Everything but graph and labelling: settings, class prior and costs."""

    def __init__(
        self,
        *,
        n_neighbors: int = 10,
        metric: Any = "cosine",
        n_components: int = 80,
        label_weight: Any = "auto",
        method: str = "auto",
        class_prior: Any = None,
        class_costs: Any = "balanced",
        n_jobs: int | None = None,
        random_state: Any = None,
        missing_label: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.n_components = n_components
        self.label_weight = label_weight
        self.method = method
        self.class_prior = class_prior
        self.class_costs = class_costs
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.missing_label = missing_label

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_precomputed(self.metric)
        return tags

    @staticmethod
    def _is_precomputed(metric: Any) -> bool:
        return isinstance(metric, str) and metric == "precomputed"

    def _check_settings(self) -> None:
        metric = "cosine" if self._is_precomputed(self.metric) else self.metric
        check_graph_settings(self.n_neighbors, metric, self.method, self.n_jobs)
        checks.check_whole("n_components", self.n_components, least=1)

    def _label_weight(self, n: int) -> float:
        """Return the weight of the labels in a graph of `n` rows."""
        if isinstance(self.label_weight, str) and self.label_weight == "auto":
            return default_label_weight(n)
        return checks.check_positive("label_weight (a number, or 'auto')", self.label_weight, most=1e12)

    def _prior(self, classes: AnyArray, codes: AnyArray) -> Array:
        """Return the share of each class in all rows: as the user says, else as among the labelled."""
        counts = np.bincount(codes, minlength=len(classes))
        if self.class_prior is None:
            return counts / counts.sum()
        prior = self._by_class("class_prior", self.class_prior, classes)
        if not np.isclose(prior.sum(), 1.0, rtol=0.0, atol=1e-6) or np.any(prior <= 0.0):
            raise ValueError(f"class_prior must be shares above 0 that sum to 1; got {self.class_prior!r}.")
        return prior

    def _by_class(self, name: str, setting: Any, classes: AnyArray) -> Array:
        """Return a setting that the user gives by class, in the order of the classes."""
        if not isinstance(setting, dict) or set(setting) != set(classes.tolist()):
            raise ValueError(
                f"{name} must be a dict with one number for each class ({', '.join(map(repr, classes.tolist()))}); got "
                f"{setting!r}."
            )
        values = [setting[label] for label in classes.tolist()]
        for value in values:
            checks.check_positive(name, value)
        return np.array(values, dtype=float)

    def _costs(
        self, classes: AnyArray, codes: AnyArray, members: AnyArray, costs: Any, labelled: AnyArray
    ) -> Array:
        """Return what each labelled row costs if it is wrong, for each class held against the rest, shape (l, c)."""
        n_labelled = len(codes)
        if isinstance(self.class_costs, str) and self.class_costs == "balanced":
            inside = members.sum(axis=0)
            each = np.where(members, n_labelled / (2.0 * inside), n_labelled / (2.0 * (n_labelled - inside)))
        elif self.class_costs is None:
            each = np.ones(members.shape)
        elif isinstance(self.class_costs, dict):
            weight = self._by_class("class_costs", self.class_costs, classes)
            each = np.broadcast_to(weight[codes][:, None], members.shape)
        else:
            raise ValueError(
                "class_costs must be 'balanced', None or a dict with a number for each class; got "
                f"{self.class_costs!r}."
            )
        if costs is None:
            return each
        costs = np.asarray(costs, dtype=float)
        if (
            costs.shape != (self._n,)
            or not np.all(np.isfinite(costs[labelled]))
            or np.any(costs[labelled] < 0.0)
        ):
            raise ValueError(f"costs must be one number from 0 for each of the {self._n} rows.")
        return each * costs[labelled][:, None]

    def _warn_unreached(self, n_unreached: int) -> None:
        if n_unreached:
            how = (
                "join the graph's parts"
                if self._is_precomputed(self.metric)
                else (f"give more neighbours (n_neighbors is {self.n_neighbors})")
            )
            warnings.warn(
                f"{n_unreached} rows have no path to a label and get the status 'unreached': {how}, or label a row "
                "among them.",
                stacklevel=4,
            )
