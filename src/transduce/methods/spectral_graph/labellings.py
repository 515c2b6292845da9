"""What a graph says about a labelling, and the labelling that cuts it least (Joachims 2003)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, maximum_flow
from sklearn.base import BaseEstimator

from transduce.core import arrays, validation
from transduce.core.checks import check_random_state
from transduce.core.sample import PartlyLabelled
from transduce.core.types import AnyArray, Array, Labels, Mask, Rows
from transduce.methods.spectral_graph.graph import (
    GraphSettings,
    Metric,
    find_neighbors,
    one_way_graph,
)
from transduce.methods.spectral_graph.spectrum import check_graph

# Of the largest flow: capacities are whole numbers of 31 bits in scipy, and what is left of an edge
# in one direction may be twice its capacity, which is `HEAVY` times the largest flow at most.
BITS = 29
HEAVY = 1.5
FIRM = 2**31 - 1  # the capacity of an edge in one direction that is never full


def cut_value(graph: Any, labels: Labels) -> float:
    """Return the sum of the weights between rows of different labels.

    Parameters
    ----------
    graph : sparse or dense array of shape (n, n)
        Symmetric weights, none negative, such as `neighbor_graph` returns.
    labels : array-like of shape (n,)
        A label for each row.

    Returns
    -------
    float
        Each connection counts once.

    Examples
    --------
    >>> from transduce.methods.spectral_graph import cut_value
    >>> cut_value([[0, 3, 1], [3, 0, 0], [1, 0, 0]], ["a", "a", "b"])
    1.0
    """
    A = check_graph(graph)
    return _cut_value(A, _read_whole_labelling(labels, A.shape[0]))


def average_cut(graph: Any, labels: Labels) -> float:
    """Return the cut value over the number of pairs of rows with different labels.

    The paper's remedy for cuts that take off a corner: the fewer rows on one side, the fewer
    connections there are to cut.

    Parameters
    ----------
    graph : sparse or dense array of shape (n, n)
        Symmetric weights, none negative, such as `neighbor_graph` returns.
    labels : array-like of shape (n,)
        A label for each row, two different ones at least.

    Returns
    -------
    float

    Examples
    --------
    >>> from transduce.methods.spectral_graph import average_cut
    >>> average_cut([[0, 3, 1], [3, 0, 0], [1, 0, 0]], ["a", "a", "b"])
    0.5
    """
    A = check_graph(graph)
    codes = _read_whole_labelling(labels, A.shape[0])
    sizes = np.bincount(codes).astype(float)
    n_pairs = 0.5 * (sizes.sum() ** 2 - np.sum(sizes**2))
    if n_pairs == 0.0:
        raise ValueError("All rows have the same label: nothing is cut, and there is no average.")
    return _cut_value(A, codes) / float(n_pairs)


def _read_whole_labelling(labels: Labels, n: int) -> AnyArray:
    """Return the class (n,) of each row, by number."""
    sample = PartlyLabelled.from_arrays(np.empty((n, 0)), labels)
    if not sample.labelled.all():
        raise ValueError(
            f"{int((~sample.labelled).sum())} labels are missing: give a label for every row, such "
            "as transduction_."
        )
    return np.unique(sample.y.astype(str), return_inverse=True)[1]


def _cut_value(A: sp.csr_array, codes: AnyArray) -> float:
    heads = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    is_cut = codes[heads] != codes[A.indices]
    return 0.5 * float(A.data[is_cut].sum())


# ------------------------------------------------------------------------------------- minimum cut


@dataclass(frozen=True, eq=False)
class MinimumCut:
    """The labelling that cuts least.

    Parameters
    ----------
    labels : array of shape (n,)
        A label for each row. Rows that could be on either side have the first of the two classes.
    value : float
        The sum of the weights that are cut.
    undecided : boolean array of shape (n,)
        Rows that are on one side in some of the best labellings, and on the other in others.

    Examples
    --------
    >>> from transduce.methods.spectral_graph import minimum_cut
    >>> path = [[0, 2, 0, 0], [2, 0, 1, 0], [0, 1, 0, 2], [0, 0, 2, 0]]
    >>> minimum_cut(path, ["left", None, None, "right"]).undecided
    array([False, False, False, False])
    """

    labels: AnyArray
    value: float
    undecided: Mask


def minimum_cut(graph: Any, y: Labels, *, missing_label: object = None) -> MinimumCut:
    """Return the labelling that keeps all labels and cuts the smallest sum of weights.

    Blum and Chawla (2001), Learning from labeled and unlabeled data using graph mincuts: a baseline
    for `SpectralGraphTransducer`. With few labels it usually cuts off the labelled rows alone,
    which the paper's figure 1 shows and `average_cut` mends.

    Parameters
    ----------
    graph : sparse or dense array of shape (n, n)
        Symmetric weights, none negative, such as `neighbor_graph` returns.
    y : array-like of shape (n,)
        Labels of two classes, missing where the answer is wanted.
    missing_label : object, default=None
        A label that stands for "none", besides NaN, None, NA and NaT.

    Returns
    -------
    MinimumCut

    Notes
    -----
    By the largest flow from the rows of one class to those of the other. Weights are rounded to a
    billionth of the most that can flow, so that of several labellings whose cuts are equal, some
    may be cut a billionth more: `undecided` may then miss rows.

    Examples
    --------
    >>> from transduce.methods.spectral_graph import minimum_cut
    >>> path = [[0, 2, 0, 0], [2, 0, 1, 0], [0, 1, 0, 2], [0, 0, 2, 0]]
    >>> cut = minimum_cut(path, ["left", None, None, "right"])
    >>> cut.labels, cut.value
    (array(['left', 'left', 'right', 'right'], dtype=object), 1.0)
    """
    A = check_graph(graph)
    n = A.shape[0]
    sample = validation.read_labels(np.empty((n, 0)), None, y, missing_label=missing_label)
    classes, codes = validation.class_labels(sample)
    if len(classes) != 2:
        raise ValueError(f"A minimum cut has two sides, and y has {len(classes)} classes.")
    labelled = np.flatnonzero(sample.labelled)
    sources = labelled[codes == 1]
    sinks = labelled[codes == 0]
    residual = _residual_capacities(A, sources, sinks)
    is_second = _reachable(residual, n, n + 2)[:n]
    is_first = _reachable(sp.csr_array(residual.T), n + 1, n + 2)[:n]
    undecided = ~is_second & ~is_first
    sides = is_second.astype(int)
    labels = sample.complete(classes[sides[sample.unlabelled]].astype(object))
    return MinimumCut(labels, _cut_value(A, sides), undecided)


def _residual_capacities(A: sp.csr_array, sources: AnyArray, sinks: AnyArray) -> sp.csr_array:
    """Return what is left of the capacities after the largest flow, from node n to node n + 1.

    Node n is tied to the sources and node n + 1 to the sinks so firmly that no cut is there.
    """
    n = A.shape[0]
    degrees = np.asarray(A.sum(axis=1)).ravel()
    # No more than this can flow. What is heavier is in no smallest cut, and as long as its capacity
    # is larger than the largest flow, no tie with one seems to be there either.
    most_flow = min(float(degrees[sources].sum()), float(degrees[sinks].sum()))
    capacities = A.copy()
    if most_flow == 0.0:
        # The rows of one class are tied to none: only what is connected to the others matters.
        capacities.data = np.sign(A.data)
    else:
        # By a power of two, so that equal sums of weights stay equal.
        exponent = np.frexp(most_flow)[1]
        scaled = np.ldexp(np.minimum(A.data, HEAVY * most_flow), BITS - exponent)
        capacities.data = np.rint(scaled)
    edges = capacities.tocoo()
    heads = np.concatenate([edges.row, np.full(len(sources), n), sinks])
    tails = np.concatenate([edges.col, sources, np.full(len(sinks), n + 1)])
    firm = np.full(len(sources) + len(sinks), FIRM)
    flows = np.concatenate([edges.data, firm]).astype(np.int32)
    # SciPy before 1.15 takes places of this type alone.
    places = (heads.astype(np.int32), tails.astype(np.int32))
    network = sp.csr_array((flows, places), shape=(n + 2, n + 2))
    flow = maximum_flow(sp.csr_matrix(network), n, n + 1).flow
    left = sp.csr_array(network - flow)
    left.eliminate_zeros()
    return left


def _reachable(capacities: sp.csr_array, start: int, n_nodes: int) -> Mask:
    """Return which nodes can be reached from one along positive capacities."""
    positive = sp.csr_matrix(capacities > 0)
    order = breadth_first_order(positive, start, return_predecessors=False)
    reached = np.zeros(n_nodes, dtype=bool)
    reached[order] = True
    return reached


# ------------------------------------------------------------------------------------------ margins


@dataclass(frozen=True, eq=False)
class NeighborMargins:
    """How well each row's label agrees with its neighbours'.

    Parameters
    ----------
    margins : array of shape (n,)
        From -1, where all neighbours have another label, to 1, where all have the row's own.

    Examples
    --------
    >>> from transduce.methods.spectral_graph import neighbor_margins
    >>> X = [[1.0, 0.0], [1.0, 0.1], [0.1, 1.0], [0.0, 1.0]]
    >>> neighbor_margins(X, ["a", "a", "b", "b"], n_neighbors=1).error_bound
    0.0
    """

    margins: Array

    @property
    def error_bound(self) -> float:
        """The mean of 1 less the margin: no less than the leave-one-out error."""
        return float(np.mean(1.0 - self.margins))

    @property
    def leave_one_out_error(self) -> float:
        """The share of rows without a positive margin.

        With two classes that of rows which their neighbours get wrong or leave open, each row's
        label hidden in turn; with more classes no less than it.
        """
        return float(np.mean(self.margins <= 0.0))


def neighbor_margins(
    X: Rows,
    labels: Any,
    *,
    n_neighbors: int = 10,
    metric: Metric = "cosine",
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> NeighborMargins:
    """Return how well a labelling of all rows agrees with the nearest-neighbour rule.

    The sum over all rows is what a graph cut makes large: the labelling of least `cut_value` has
    the largest sum of margins (Joachims 2003, equations 1 to 3).

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        Features.
    labels : array-like of shape (n,)
        A label for each row, such as ``transduction_``.
    n_neighbors : int, default=10
        Neighbours of each row; all others if there are fewer.
    metric : str or callable, default="cosine"
        As in `neighbor_graph`.
    n_jobs : int or None, default=None
        Threads; None for as many as matrix products use.
    random_state : int, RandomState or None, default=None
        Seed of the rows that one without any similarity is tied to.

    Returns
    -------
    NeighborMargins
        ``margins``, ``error_bound`` and ``leave_one_out_error``.

    Examples
    --------
    >>> from transduce.methods.spectral_graph import neighbor_margins
    >>> X = [[1.0, 0.0], [1.0, 0.1], [0.1, 1.0], [0.0, 1.0]]
    >>> found = neighbor_margins(X, ["a", "b", "b", "b"], n_neighbors=1)
    >>> found.margins, found.leave_one_out_error
    (array([-1., -1.,  1.,  1.]), 0.5)
    """
    rows = validation.read_rows(BaseEstimator(), X, reset=True, sparse=True)
    if arrays.is_foreign(rows):
        raise ValueError("neighbor_margins computes on the processor: pass X as a numpy array.")
    settings = GraphSettings(n_neighbors, metric, "exact", n_jobs)
    settings.check(rows)
    n = rows.shape[0]
    codes = _read_whole_labelling(labels, n)
    if n < 2:
        raise ValueError("Found array with 1 sample(s): at least two rows are needed.")
    random = check_random_state(random_state)
    neighbors = find_neighbors(rows, settings, random)
    one_way, _ = one_way_graph(neighbors.ids, neighbors.similarities, random)
    ordered_codes = codes[neighbors.order]
    heads = np.repeat(np.arange(n), np.diff(one_way.indptr))
    agrees = ordered_codes[heads] == ordered_codes[one_way.indices]
    signed = np.where(agrees, one_way.data, -one_way.data)
    margins = np.empty(n)
    margins[neighbors.order] = np.bincount(heads, weights=signed, minlength=n)
    return NeighborMargins(margins)
