"""The spectral graph transducer (Joachims 2003): labels spread over a neighbour graph."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from transduce.core import arrays, validation
from transduce.core.answer import Answer
from transduce.core.checks import check_random_state
from transduce.core.guarantee import Guarantee
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import fit_temperature
from transduce.core.types import AnyArray, Array, Labels, Rows
from transduce.core.validation import ClassTransducer
from transduce.methods.spectral_graph.cut import (
    Cut,
    KnownLabels,
    Penalties,
    check_penalties,
    cut_graph,
    known_labels,
)
from transduce.methods.spectral_graph.graph import (
    FittedGraph,
    GraphSettings,
    Metric,
    SearchMethod,
    SpectrumSettings,
    fit_graph,
    read_views,
    similar_rows,
)
from transduce.methods.spectral_graph.spectrum import Laplacian, Spectrum

NO_GUARANTEE = Guarantee(
    "none",
    reasons=(
        "Scores rank the rows.",
        "For sets of classes with a guarantee, use ConformalTransducer.",
    ),
)
N_GROUPS = 10  # of labels that are hidden for probabilities
# What no labelling changes.
OF_THE_ROWS = ("graph_", "spectrum_", "n_features_in_", "feature_names_in_")


class LabelsRead(NamedTuple):
    """Labels as they were read, for the cut and for the answer."""

    sample: PartlyLabelled  # as read
    classes: AnyArray
    known: KnownLabels  # for the cut
    codes: AnyArray  # (n,) class of each row; one more than there are where it is not known


@dataclass(kw_only=True, eq=False, repr=False)
class SpectralGraphTransducer(ClassTransducer):
    """Classifier that cuts the neighbour graph of all rows where its labels allow.

    Joachims (2003). Transductive learning via spectral graph partitioning. ICML.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbours of each row in the graph; the setting that matters.
    metric : str or callable, default="cosine"
        ``"cosine"``, any metric of scikit-learn, or ``"precomputed"``: X is the graph itself, a
        symmetric matrix of weights, such as a sum of several views' graphs; or the `Spectrum` of
        one.
    views : list of lists of columns, or None, default=None
        Several descriptions of the same rows, each by the names or positions of its columns: every
        row is tied to its neighbours in each (co-training). Columns in no view are not used.
    n_components : int, default=80
        Eigenvectors used.
    laplacian : {"normalized", "plain"}, default="normalized"
        Of the normalised cut, which the paper's experiments have, or of the ratio cut; see
        `graph_spectrum`.
    spectrum : {"squares", "eigenvalues"}, callable or array, default="squares"
        What a labelling costs along each eigenvector: the square of its rank, as in the paper, its
        eigenvalue, a function of the ranks 1, 2, ... (an array) that does not fall, or its values.
        `label_weight` is measured against these costs: eigenvalues are below 2.
    label_weight : float or "auto", default="auto"
        How much the labels weigh against the cut. ``"auto"`` is the paper's 3200, or the number of
        rows if there are more, since the cut grows with them.
    method : {"auto", "exact", "approximate"}, default="auto"
        How neighbours are searched, see `neighbor_graph`.
    class_prior : dict or None, default=None
        Share of each class in all rows, by class; by default that among the labelled rows.
    class_costs : "balanced", dict or None, default="balanced"
        What a wrong labelled row costs: for each class against the rest as much on both sides in
        all, a number for each class, or 1 for every row.
    n_jobs : int or None, default=None
        Threads; None for as many as matrix products use.
    random_state : int, RandomState or None, default=None
        Seed of approximate search, of the rows that one without any similarity is tied to, and of
        the first guess of the eigenvectors. The order of the rows leaves no trace beyond the
        eigenvectors' residuals.
    missing_label : object, default=None
        A label that stands for "none", besides NaN, None, NA and NaT.

    Attributes
    ----------
    transduction_, classes_
        Labels completed (n,), still missing where no label reaches; the classes, sorted.
    answer_ : Answer
        Values, scores (those of ``scores_`` less the threshold), status: ``"unreached"`` where the
        graph has no path to a label, ``"tied"`` where another labelling is as good. Its diagnostics
        count the former.
    scores_ : array of shape (n,) or (n, n_classes)
        z of the paper, at all rows: with two classes for the second of them, else for each against
        the rest. Their squares sum to the number of reached rows; NaN at the others.
    thresholds_, objective_ : float or array of shape (n_classes,)
        The score above which a row is in the class, and the minimum reached.
    label_weight_ : float
        The weight of the labels, as used.
    graph_, spectrum_ : NeighborGraph or None, Spectrum
        The graph, with its ``diagnostics`` (None if a spectrum was given), and its eigenvectors.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import SpectralGraphTransducer
    >>> angles = np.linspace(0, np.pi / 2, 8)
    >>> y = ["flat", None, None, None, None, None, None, "steep"]
    >>> X = np.c_[np.cos(angles), np.sin(angles)]
    >>> SpectralGraphTransducer(n_neighbors=2).fit(X, y).transduction_
    array(['flat', 'flat', 'flat', 'flat', 'steep', 'steep', 'steep', 'steep'], dtype=object)
    """

    n_neighbors: int = 10
    metric: Metric = "cosine"
    views: Sequence[Sequence[Any]] | None = None
    n_components: int = 80
    laplacian: Laplacian = "normalized"
    spectrum: Penalties = "squares"
    label_weight: float | Literal["auto"] = "auto"
    method: SearchMethod = "auto"
    class_prior: Mapping[Any, float] | None = None
    class_costs: Mapping[Any, float] | Literal["balanced"] | None = "balanced"
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None
    missing_label: object = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.metric, str) and self.metric == "precomputed"
        return tags

    def fit(
        self,
        X: Rows,
        y: Labels,
        *,
        costs: Any = None,
    ) -> Self:
        """Build graph and spectrum of X (n, d), and predict where the label in y (n,) is missing.

        X is the graph, or its `Spectrum`, if ``metric="precomputed"``. `costs` (n,) say how bad it
        is to get each labelled row wrong, times the weight of its class.
        """
        validation.check_given(self, y)
        settings = GraphSettings(self.n_neighbors, self.metric, self.method, self.n_jobs)
        wanted = SpectrumSettings(self.n_components, self.laplacian)
        wanted.check(X)
        check_penalties(self.spectrum)
        if not isinstance(X, Spectrum):
            rows = validation.read_rows(self, X, reset=True, sparse=True, device=True)
        elif settings.precomputed:
            rows = np.empty((X.components.shape[0], 0))
            self.n_features_in_ = len(rows)
        else:
            raise ValueError("X is a spectrum: set metric='precomputed'.")
        settings.check(None if settings.precomputed else rows)
        settings = replace(settings, views=self._read_views(rows, settings))
        if rows.shape[0] == 1:
            raise ValueError("Found array with 1 sample(s): at least two rows are needed.")
        # Whatever is wrong with labels or settings is found before the long work.
        labels = self._read_labels(rows.shape[0], getattr(X, "index", None), y, costs)
        random = check_random_state(self.random_state)
        base = fit_graph(X, rows, settings, wanted, random, labels.codes)
        return self._label(base, labels)

    def _read_views(self, rows: Rows, settings: GraphSettings) -> Any:
        """Return the columns of each view, by their positions."""
        if self.views is None:
            return None
        if settings.precomputed:
            raise ValueError(
                "views are columns of features, and metric='precomputed' takes a graph: add the "
                "views' graphs, or leave views out."
            )
        if arrays.is_foreign(rows):
            raise ValueError("views need numpy arrays: pass X as one.")
        names = getattr(self, "feature_names_in_", None)
        return read_views(self.views, rows.shape[1], names)

    def relabel(self, y: Labels, *, costs: Any = None) -> Self:
        """Predict from another labelling y (n,) on the same spectrum, with `costs` as in `fit`.

        Other rows, other classes as you like; label weight, class prior and class costs may have
        changed since `fit`.
        """
        check_is_fitted(self, "spectrum_")  # a labelling that failed leaves the spectrum
        kept = {name: value for name, value in vars(self).items() if name in OF_THE_ROWS}
        self._forget()
        self.__dict__.update(kept)
        if y is None:
            raise ValueError(
                "y is None: give one label for each row, missing where the answer is wanted."
            )
        base = self._fitted.base
        n = base.spectrum.components.shape[0]
        return self._label(base, self._read_labels(n, base.index, y, costs))

    def _read_labels(
        self,
        n: int,
        index: Any,
        y: Labels,
        costs: Any,
    ) -> LabelsRead:
        """Return labels and settings of a labelling, checked."""
        no_features = np.empty((n, 0))
        sample = validation.read_labels(no_features, index, y, missing_label=self.missing_label)
        classes, codes = validation.class_labels(sample)
        known = known_labels(
            classes,
            codes,
            sample.labelled,
            label_weight=self.label_weight,
            class_prior=self.class_prior,
            class_costs=self.class_costs,
            costs=costs,
        )
        codes_of_rows = np.full(n, len(classes))
        codes_of_rows[sample.labelled] = codes
        return LabelsRead(sample, classes, known, codes_of_rows)

    def _label(self, base: FittedGraph, labels: LabelsRead) -> Self:
        cut = cut_graph(base.spectrum, labels.known, base.n_components, self.spectrum)
        if base.row_numbers is not None:
            cut = share_between_copies(base, cut, labels.sample.unlabelled)
        answer, transduction = answer_of(base, cut, labels.sample, labels.classes)
        warn_of_doubts(base, cut, answer.diagnostics["n_unreached"])
        self._fitted = LabelledGraph(base, cut, labels.known, self.spectrum)
        self.graph_ = base.graph
        self.spectrum_ = base.spectrum
        self.classes_ = labels.classes
        self.label_weight_ = labels.known.weight
        self.scores_ = cut.scores
        self.thresholds_: float | Array = cut.thresholds
        self.objective_: float | Array = cut.objectives
        if len(cut.thresholds) == 1:
            self.scores_ = cut.scores[:, 0]
            self.thresholds_ = float(cut.thresholds[0])
            self.objective_ = float(cut.objectives[0])
        self.answer_ = answer
        self.transduction_ = transduction
        return self

    # ------------------------------------------------------------------------------------ new rows

    def decision_function(self, X: Rows) -> Array:
        """Return the mean of ``scores_`` less the threshold at the neighbours of new rows (m, d).

        The mean is weighted by similarity. Shape (m,), positive for the second of two classes, or
        (m, n_classes). With ``metric="precomputed"`` rows are weights with the n rows of `fit`. All
        reached rows are compared; a row like none of them gets their mean score. At an unlabelled
        row of `fit` this need not be ``transduction_``: there labels reach a row along the whole
        graph.
        """
        check_is_fitted(self)
        rows = validation.read_rows(self, X, reset=False, sparse=True, device=True)
        scores = self._fitted.extend(rows)
        margins = scores - arrays.asarray_like(self._fitted.cut.thresholds, scores)
        return _without_single_column(margins)

    def predict_proba(self, X: Rows) -> Array:
        """Return the probability of every class (m, n_classes) at new rows (m, d).

        The softmax of the margins that `decision_function` returns, times a factor by which the
        labelled rows have the largest likelihood, each with its label hidden: the graph is cut
        again up to ten times, at the first call after a labelling. The largest probability is that
        of the class that `predict` returns.
        """
        margins = self.decision_function(X)
        columns = both_sides(arrays.to_numpy(margins).reshape(margins.shape[0], -1))
        shares = softmax(self._fitted.temperature * columns, axis=1)
        return arrays.asarray_like(shares, margins)

    def predict(self, X: Rows) -> AnyArray:
        """Return the class (m,) at new rows by the scores of their neighbours."""
        margins = arrays.to_numpy(self.decision_function(X))
        best, _ = _winners(margins.reshape(len(margins), -1))
        return self.classes_[best]


def _without_single_column(margins: Array) -> Array:
    """Return margins (m, c) as (m,) if there is one column."""
    if margins.shape[1] == 1:
        return margins[:, 0]
    return margins


def both_sides(margins: Array) -> Array:
    """Return margins (m, c) with a column for each class: of two there is one column."""
    if margins.shape[1] == 1:
        return np.column_stack([-margins, margins])
    return margins


@dataclass(frozen=True, eq=False)
class LabelledGraph:
    """A graph, and the labelling of its rows."""

    base: FittedGraph
    cut: Cut
    known: KnownLabels
    penalise: Penalties

    @cached_property
    def temperature(self) -> float:
        """The factor by which margins become probabilities of the classes."""
        margins, codes = hidden_margins(self)
        if len(codes) == 0:
            return 1.0
        return fit_temperature(margins, codes)

    def extend(self, rows: Rows) -> Any:
        """Return the mean scores of new rows' neighbours, by similarity, shape (m, c).

        Of several views the mean, where a row is like any other in them.
        """
        reached = np.flatnonzero(self.cut.reached)
        scores = arrays.pick(self.cut.scores, reached)
        xp = arrays.namespace(scores)
        totals = arrays.zeros((rows.shape[0], scores.shape[1]), scores)
        n_views = arrays.zeros((rows.shape[0], 1), scores)
        for weights in self._weights_of_views(rows, reached, scores):
            sums = weights @ (arrays.zeros((len(reached), 1), scores) + 1.0)
            has_neighbor = arrays.as_double(sums > 0.0)
            means = weights @ scores / xp.where(sums > 0.0, sums, xp.ones_like(sums))
            totals = totals + has_neighbor * means
            n_views = n_views + has_neighbor
        means = totals / xp.where(n_views > 0.0, n_views, xp.ones_like(n_views))
        return xp.where(n_views > 0.0, means, xp.mean(scores, axis=0)[None, :])

    def _weights_of_views(self, rows: Rows, reached: AnyArray, scores: Array) -> Iterator[Any]:
        """Yield the similarities of new rows with the reached ones, (m, r), as sparse matrices."""
        base = self.base
        library = arrays.library_of(scores)
        given_on_device = not base.views and arrays.is_foreign(scores)
        if arrays.library_of(rows) != library or given_on_device:
            raise ValueError(
                f"The model was fitted to arrays of {library}: give features of new rows as such."
            )
        for view in base.views:
            reached_rows = arrays.pick(view.rows, reached)
            new_rows = rows
            if view.columns is not None:
                new_rows = rows[:, view.columns]
            yield similar_rows(new_rows, reached_rows, base.settings, view.scale)
        if not base.views:
            weights = sp.csr_array(rows)[:, reached]
            if weights.nnz and weights.data.min() < 0.0:
                raise ValueError("The weights of new rows must not be negative.")
            yield weights


def hidden_margins(labelled: LabelledGraph) -> tuple[Array, AnyArray]:
    """Return margins (h, n_classes) of labelled rows whose label was hidden, and their classes.

    Rows are hidden in up to ten groups, each of all classes. The only label of a class is not
    hidden, and rows that the others do not reach have no margin.
    """
    known = labelled.known
    codes = known.members.argmax(axis=1)
    if known.members.shape[1] == 1:
        codes = known.members[:, 0].astype(int)
    scores = arrays.to_numpy(arrays.pick(labelled.cut.scores, known.rows))
    order = np.lexsort([*scores.T, codes])  # that of the rows leaves no trace
    group = np.empty(len(codes), dtype=int)
    group[order] = np.arange(len(codes)) % N_GROUPS
    has_others = np.bincount(codes)[codes] > 1
    margins = [np.empty((0, max(2, scores.shape[1])))]
    hidden_codes = [np.empty(0, dtype=int)]
    for number in range(min(N_GROUPS, len(codes))):
        hidden = has_others & (group == number)
        shown = ~hidden
        rest = known._replace(
            rows=known.rows[shown],
            members=known.members[shown],
            costs=known.costs[shown],
        )
        is_whole = rest.members.any(axis=0) & ~rest.members.all(axis=0)
        if not hidden.any() or not is_whole.all():
            continue
        base = labelled.base
        cut = cut_graph(base.spectrum, rest, base.n_components, labelled.penalise)
        margin = arrays.to_numpy(arrays.pick(cut.scores, known.rows[hidden])) - cut.thresholds
        is_reached = ~np.isnan(margin).any(axis=1)
        margins.append(both_sides(margin)[is_reached])
        hidden_codes.append(codes[hidden][is_reached])
    return np.concatenate(margins), np.concatenate(hidden_codes)


def share_between_copies(base: FittedGraph, cut: Cut, unlabelled: AnyArray) -> Cut:
    """Return a cut in which unlabelled copies of a row are answered as the first of them.

    Of many equal distances a graph takes the first few, so that copies may differ by chance.
    """
    assert base.row_numbers is not None
    assert base.labels is not None
    in_graph_order = unlabelled[np.argsort(base.labels[unlabelled], kind="stable")]
    numbers = base.row_numbers[in_graph_order]
    first, copies = np.unique(numbers, return_index=True, return_inverse=True)[1:]
    same_as = np.arange(len(base.row_numbers))
    same_as[in_graph_order] = in_graph_order[first[copies]]
    return cut._replace(
        scores=arrays.pick(cut.scores, same_as),
        reached=cut.reached[same_as],
        open=cut.open[same_as],
    )


def answer_of(
    base: FittedGraph,
    cut: Cut,
    sample: PartlyLabelled,
    classes: AnyArray,
) -> tuple[Answer, Any]:
    """Return the answer at the unlabelled rows, and the completed labels."""
    unlabelled = sample.unlabelled
    thresholds = arrays.asarray_like(cut.thresholds, cut.scores)
    margins = arrays.pick(cut.scores, unlabelled) - thresholds
    best, tied = _winners(margins)
    if cut.open.any():
        tied = tied | cut.open[unlabelled].any(axis=1)
    status = np.full(len(unlabelled), "answered", dtype="<U9")
    status[tied] = "tied"
    values = classes[best]
    reached = cut.reached[unlabelled]
    n_unreached = int((~reached).sum())
    if n_unreached:
        values = values.astype(object)
        values[~reached] = None
        status[~reached] = "unreached"
    diagnostics = {"n_unreached": n_unreached, "n_parts": base.spectrum.count}
    diagnostics |= getattr(base.graph, "diagnostics", {})
    answer = Answer(
        rows=unlabelled,
        values=values,
        status=status,
        guarantee=NO_GUARANTEE,
        scores=_without_single_column(margins),
        classes=classes,
        index=sample.index_at(unlabelled),
        diagnostics=diagnostics,
    )
    names = classes
    if classes.dtype != sample.y.dtype:
        names = classes.astype(object)  # shared and not copied
    completed = reached if n_unreached else slice(None)
    return answer, sample.complete(names[best], completed)


def warn_of_doubts(base: FittedGraph, cut: Cut, n_unreached: int) -> None:
    """Warn of rows without a path to a label, and of rows that could be on the other side."""
    if n_unreached:
        advice = f"give more neighbours (n_neighbors is {base.settings.n_neighbors})"
        if base.settings.precomputed:
            advice = "join the graph's parts"
        warnings.warn(
            f"{n_unreached} rows have no path to a label and get the status 'unreached': {advice}, "
            "or label a row among them.",
            stacklevel=4,
        )
    if cut.open.any():
        n_open = int(cut.open.any(axis=1).sum())
        warnings.warn(
            f"There is more than one best labelling: {n_open} rows could as well be on the other "
            "side, and unlabelled ones among them have the status 'tied'. One more label may "
            "decide.",
            stacklevel=4,
        )


def _winners(margins: Array) -> tuple[AnyArray, AnyArray]:
    """Return which class wins at each row, and where it is no better than another.

    Margins have shape (m, c).
    """
    # Names of classes, and so their numbers, are wanted on the host.
    xp = arrays.namespace(margins)
    if margins.shape[1] == 1:
        margin = margins[:, 0]
        second_wins = arrays.to_numpy(margin > 0.0).astype(int)
        return second_wins, arrays.to_numpy(margin == 0.0)
    finite = xp.where(xp.isnan(margins), xp.full_like(margins, -xp.inf), margins)
    is_largest = arrays.as_double(margins == xp.max(finite, axis=1, keepdims=True))
    best = arrays.to_numpy(xp.argmax(finite, axis=1))
    return best, arrays.to_numpy(xp.sum(is_largest, axis=1) > 1.0)
