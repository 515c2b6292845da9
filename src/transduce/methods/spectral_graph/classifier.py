"""The spectral graph transducer (Joachims 2003): a few labels, spread over the neighbour graph of all rows.

The graph and its spectrum are computed once; a labelling then is a small problem in the labelled rows alone. The
numbers come from `transduce.methods.spectral_graph.graph`, `transduce.methods.spectral_graph.spectrum` and
`transduce.methods.spectral_graph.cut`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from transduce.core import validation
from transduce.core.answer import Answer
from transduce.core.guarantee import Guarantee
from transduce.core.progress import stage
from transduce.core.sample import PartlyLabelled
from transduce.core.types import AnyArray, Array, Mask
from transduce.methods.spectral_graph.cut import Cut, cut_graph
from transduce.methods.spectral_graph.graph import NeighborGraph, nearest_rows, similarities, unit_rows
from transduce.methods.spectral_graph.shell import GraphShell, build_graph, read_weights
from transduce.methods.spectral_graph.spectrum import Spectrum, check_graph, graph_spectrum

OF_THE_ROWS = ("graph_", "spectrum_", "n_features_in_", "feature_names_in_")  # what no labelling changes


@dataclass(frozen=True, eq=False)
class Task:
    """A labelling to be found: labels, and what wrong ones cost; each class in a column of its own."""

    sample: PartlyLabelled
    classes: AnyArray
    labelled: AnyArray
    members: Mask
    costs: Array
    prior: Array


class SpectralGraphTransducer(GraphShell):
    """Classifier that cuts the neighbour graph of all rows where its labels allow.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbours of each row in the graph; the setting that matters, see `choose_n_neighbors`.
    metric : str or callable, default="cosine"
        ``"cosine"``, any metric of scikit-learn, or ``"precomputed"``: X is the graph itself, a symmetric matrix of
        weights, such as a sum of several views' graphs; or the `Spectrum` of one.
    n_components : int, default=80
        Eigenvectors used.
    label_weight : float or "auto", default="auto"
        How much the labels weigh against the cut. ``"auto"`` is the paper's 3200, or the number of rows if there are
        more, since the cut grows with them.
    method : {"auto", "exact", "approximate", "faiss"}, default="auto"
        How neighbours are searched, see `neighbor_graph`.
    class_prior : dict or None, default=None
        Share of each class in all rows, by class; by default that among the labelled rows.
    class_costs : "balanced", dict or None, default="balanced"
        What a wrong labelled row costs: for each class against the rest as much on both sides in all, a number for
        each class, or 1 for every row.
    n_jobs : int or None, default=None
        Threads; None for as many as matrix products use.
    random_state : int, RandomState or None, default=None
        Seed of approximate search, of the rows that one without any similarity is tied to, and of the first guess of
        the eigenvectors. The order of the rows leaves no trace beyond the eigenvectors' residuals.
    missing_label : object, default=None
        A label that stands for "none", besides NaN, None, NA and NaT.

    Attributes
    ----------
    transduction_ : array or series of shape (n,)
        The labels, completed; still missing where no label reaches.
    answer_ : Answer
        Values, scores (those of ``scores_`` less the threshold), status: ``"unreached"`` where the graph has no path
        to a label, ``"tied"`` where another labelling is as good. Its diagnostics count the former.
    scores_ : array of shape (n,) or (n, n_classes)
        z of the paper, at all rows: with two classes for the second of them, else for each against the rest. Their
        squares sum to the number of reached rows; NaN at the others.
    thresholds_ : float or array of shape (n_classes,)
        The score above which a row is in the class.
    objective_ : float or array of shape (n_classes,)
        The minimum reached, by which `choose_n_neighbors` compares graphs.
    label_weight_ : float
        The weight of the labels, as used.
    graph_ : NeighborGraph or None
        The graph, with its ``diagnostics``; None if a spectrum was given.
    spectrum_ : Spectrum
        Its eigenvectors.
    classes_ : array of shape (n_classes,)
        Classes, sorted.
    n_features_in_ : int
        Number of features seen in `fit`.

    See Also
    --------
    neighbor_graph, graph_spectrum : The two steps that are done once.
    choose_n_neighbors : The number of neighbours by the paper's normalised objective.
    sklearn.semi_supervised.LabelSpreading : Spreads labels along the same kind of graph, step by step.

    Notes
    -----
    With the eigenvectors V of the normalised Laplacian, eigenvalues replaced by ``D = diag(1, 4, 9, ...)``, targets g
    and costs C at the labelled rows, ``z = V w`` minimises ``w'Dw + label_weight (z - g)'C(z - g)`` on the sphere
    ``w'w = n``. The solution takes one ``d x d`` eigenproblem and one root of a scalar equation for each class, and the
    labelled rows of V; then one product ``V w``. Rows in parts of the graph without a label do not enter.

    Equal eigenvalues, such as the zeros of several connected components, share the first of their ranks in D, so that
    the answer does not depend on which of their eigenvectors were found.

    References
    ----------
    Joachims (2003). Transductive learning via spectral graph partitioning. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from transduce import SpectralGraphTransducer
    >>> X, truth = load_digits(return_X_y=True)
    >>> y = np.full(len(truth), np.nan)
    >>> labelled = [int(np.flatnonzero(truth == digit)[0]) for digit in range(10)]  # one label for each digit
    >>> y[labelled] = truth[labelled]
    >>> model = SpectralGraphTransducer(random_state=0).fit(X, y)
    >>> bool(np.mean(model.transduction_ == truth) > 0.8)
    True
    """

    def fit(self, X: Any, y: Any, *, costs: Any = None) -> Self:
        """Build the graph and its spectrum, and answer at the rows whose label is missing.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Features of all rows; the graph, or its `Spectrum`, if ``metric="precomputed"``.
        y : array-like of shape (n,)
            Labels, missing where the answer is wanted.
        costs : array-like of shape (n,), optional
            How bad it is to get each labelled row wrong, times the weight of its class; entries at unlabelled rows mean
            nothing.

        Returns
        -------
        SpectralGraphTransducer
            The fitted estimator.
        """
        validation.check_given(self, y)
        self._check_settings()
        precomputed = self._is_precomputed(self.metric)
        if isinstance(X, Spectrum):
            rows = self._read_spectrum(X, precomputed)
        else:
            rows = (
                read_weights(self, X)
                if precomputed
                else validation.read_rows(self, X, reset=True, sparse=True)
            )
        if rows.shape[0] == 1:
            raise ValueError("Found array with 1 sample(s): at least two rows are needed.")
        self._n, self._index = rows.shape[0], getattr(X, "index", None)
        task = self._read_task(
            y, costs
        )  # whatever is wrong with labels or settings is found before the long work
        self._metric, self._k = self.metric, min(int(self.n_neighbors), self._n - 1)
        self._d, self._scale = int(self.n_components), None
        random = check_random_state(self.random_state)
        if isinstance(X, Spectrum):
            self.graph_, self.spectrum_ = None, X
        else:
            self.graph_ = self._make_graph(X, rows, random)
            self.spectrum_ = graph_spectrum(
                self.graph_, n_components=self._d, random_state=random, n_jobs=self.n_jobs
            )
        self._rows = None if precomputed else unit_rows(rows) if self._metric == "cosine" else rows
        return self._label(task)

    def _make_graph(self, X: Any, rows: Any, random: Any) -> NeighborGraph:
        if self._is_precomputed(self.metric):
            graph = NeighborGraph(check_graph(rows))
            graph.diagnostics = dict(getattr(X, "diagnostics", {}))
            return graph
        graph = build_graph(rows, self._k, self.metric, self.method, self.n_jobs, random)
        self._scale = graph.diagnostics["scale"]
        return graph

    def _read_spectrum(self, spectrum: Spectrum, precomputed: bool) -> AnyArray:
        """Return a stand-in for the rows of a spectrum that was computed before."""
        if not precomputed:
            raise ValueError("X is a spectrum: set metric='precomputed'.")
        self.n_features_in_ = len(spectrum.components)
        return np.empty((self.n_features_in_, 0))

    def relabel(self, y: Any, *, costs: Any = None) -> Self:
        """Answer for another labelling of the same rows, on the same spectrum.

        Parameters
        ----------
        y : array-like of shape (n,)
            Labels, missing where the answer is wanted; other rows, other classes as you like. Of the settings those of
            the labelling may have changed since `fit`: label weight, class prior and class costs.
        costs : array-like of shape (n,), optional
            As in `fit`.

        Returns
        -------
        SpectralGraphTransducer
            The fitted estimator.
        """
        if not hasattr(self, "spectrum_"):
            check_is_fitted(self)
        kept = {name: value for name, value in vars(self).items() if name in OF_THE_ROWS}
        self._forget()
        self.__dict__.update(kept)
        if y is None:
            raise ValueError("y is None: give one label for each row, missing where the answer is wanted.")
        return self._label(self._read_task(y, costs))

    # ------------------------------------------------------------------------------------------- a labelling

    def _read_task(self, y: Any, costs: Any) -> Task:
        """Return labels and settings of a labelling, checked."""
        self._label_weight(self._n)
        sample = validation.read_labels(
            np.empty((self._n, 0)), self._index, y, missing_label=self.missing_label
        )
        classes, codes = validation.class_labels(sample)
        labelled = np.flatnonzero(sample.labelled)
        held = np.arange(len(classes)) if len(classes) > 2 else np.array([1])
        members = codes[:, None] == held
        each = self._costs(classes, codes, members, costs, labelled)
        return Task(sample, classes, labelled, members, each, self._prior(classes, codes)[held])

    def _label(self, task: Task) -> Self:
        self.label_weight_ = self._label_weight(self._n)
        cut = cut_graph(
            self.spectrum_,
            task.labelled,
            task.members,
            task.costs,
            task.prior,
            label_weight=self.label_weight_,
            d=self._d,
        )
        self.classes_ = task.classes
        self._cut = cut
        results: tuple[Any, ...] = (cut.scores, cut.thresholds, cut.objectives)
        if len(cut.thresholds) == 1:
            results = (cut.scores[:, 0], float(cut.thresholds[0]), float(cut.objectives[0]))
        self.scores_, self.thresholds_, self.objective_ = results
        self._answer(task.sample, cut)
        return self

    def _answer(self, sample: PartlyLabelled, cut: Cut) -> None:
        unlabelled = sample.unlabelled
        margins = cut.scores[unlabelled] - cut.thresholds
        best, tied = _winners(margins)
        status = np.full(len(unlabelled), "answered", dtype="<U9")
        status[tied | cut.open[unlabelled].any(axis=1) if cut.open.any() else tied] = "tied"
        values, known = self.classes_[best], cut.reached[unlabelled]
        n_unreached = int((~known).sum())
        if n_unreached:
            values = values.astype(object)
            status[~known], values[~known] = "unreached", None
        self._warn(n_unreached, cut)
        self.answer_ = Answer(
            rows=unlabelled,
            values=values,
            status=status,
            guarantee=Guarantee(
                "none",
                "Scores rank the rows; nothing is guaranteed about them.",
                "For label sets that cover, use RidgeConfidenceClassifier.",
            ),
            scores=margins[:, 0] if margins.shape[1] == 1 else margins,
            classes=self.classes_,
            index=None if sample.index is None else sample.index[unlabelled],
            diagnostics={
                "n_unreached": n_unreached,
                "n_parts": self.spectrum_.count,
                **getattr(self.graph_, "diagnostics", {}),
            },
        )
        # The names as they are, if the labels are an array of the same type; else as objects, shared and not copied.
        names = self.classes_ if self.classes_.dtype == sample.y.dtype else self.classes_.astype(object)
        self.transduction_ = sample.complete(names[best], known if n_unreached else slice(None))

    def _warn(self, n_unreached: int, cut: Cut) -> None:
        self._warn_unreached(n_unreached)
        if cut.open.any():
            warnings.warn(
                f"There is more than one best labelling: {int(cut.open.any(axis=1).sum())} rows could as well be on "
                "the other side, and unlabelled ones among them have the status 'tied'. One more label may decide.",
                stacklevel=4,
            )

    # ------------------------------------------------------------------------------------------- new rows

    def decision_function(self, X: Any) -> Array:
        """Return scores at new rows less the threshold: the mean of ``scores_`` at their neighbours, by similarity.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            Rows; with ``metric="precomputed"`` their weights with the n rows of `fit`.

        Returns
        -------
        array of shape (m,) or (m, n_classes)
            Positive for the second of two classes; the largest wins of several.

        Notes
        -----
        The neighbours are searched among the reached rows, all compared. A row with no similarity to any of them gets
        their mean score. At an unlabelled row of `fit` this need not agree with ``transduction_``: there the labels
        reach a row along the whole graph, here by one step.
        """
        check_is_fitted(self)
        weights = self._weights(X)
        reached = np.flatnonzero(self._cut.reached)
        sums = np.asarray(weights.sum(axis=1)).ravel()
        means = weights @ self._cut.scores[reached]
        means /= np.where(sums > 0.0, sums, 1.0)[:, None]
        means[sums == 0.0] = self._cut.scores[reached].mean(axis=0)
        margins = means - self._cut.thresholds
        return margins[:, 0] if margins.shape[1] == 1 else margins

    def _weights(self, X: Any) -> Any:
        """Return the similarities of new rows with the reached ones, those of the nearest only."""
        reached = np.flatnonzero(self._cut.reached)
        rows = validation.read_rows(self, X, reset=False, sparse=True)
        if self._rows is None:
            weights = sp.csr_array(rows)[:, reached]
            if weights.nnz and weights.data.min() < 0.0:
                raise ValueError("The weights of new rows must not be negative.")
            return weights
        known = self._rows[reached]
        if self._metric == "cosine":
            rows = unit_rows(rows)
            if sp.issparse(rows) != sp.issparse(known):
                rows, known = (sp.csr_array(part) for part in (rows, known))
        k = min(self._k, known.shape[0])
        with stage("neighbours of new rows") as report:
            own = np.full(rows.shape[0], -1)
            found = nearest_rows(rows, own, known, k, self._metric, self.n_jobs, report)
        similar, ids = similarities(found, self._scale), found.ids
        similar = np.where((ids >= 0) & (similar > 0.0), similar, 0.0)
        entries = (similar.ravel(), np.maximum(ids, 0).ravel(), np.arange(0, ids.size + 1, k))
        return sp.csr_array(entries, shape=(len(ids), known.shape[0]))

    def predict(self, X: Any) -> AnyArray:
        """Return the class at new rows, by the scores of their neighbours.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            Rows, as in `decision_function`.

        Returns
        -------
        array of shape (m,)
        """
        margins = self.decision_function(X)
        return self.classes_[_winners(margins.reshape(len(margins), -1))[0]]


def _winners(margins: Array) -> tuple[AnyArray, AnyArray]:
    """Return which class wins at each row, and where it is no better than another; margins have shape (m, c)."""
    if margins.shape[1] == 1:
        return (margins[:, 0] > 0.0).astype(int), margins[:, 0] == 0.0
    if len(margins) == 0:
        return np.empty(0, dtype=int), np.empty(0, dtype=bool)
    best = np.nan_to_num(margins, nan=-np.inf).argmax(axis=1)
    top = np.take_along_axis(margins, best[:, None], axis=1)
    return best, (margins == top).sum(axis=1) > 1
