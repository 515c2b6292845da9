"""Answers at all rows, from the labels there are: classes by the graph, numbers by regression."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from transduce.app.labelling.prepared import N_COMPONENTS, MaybeSparse, Prepared
from transduce.app.labelling.proposals import RIDGE
from transduce.app.labelling.session import FEWEST_NUMBERS
from transduce.app.labelling.state import Answers
from transduce.conformal.shares import estimate_shares
from transduce.core.types import AnyArray, Array, Mask
from transduce.methods.confidence_machine import RidgeConfidenceMachine
from transduce.methods.spectral_graph.cut import KnownLabels, cut_graph, default_label_weight

Codes = Mapping[int, float]  # labels by row: numbers, or places in the list of classes
MOST_REGIONS = 2_000  # rows that get an interval
MOST_PARTS = 500  # parts of the graph whose labels are spread over it
MOST_TAUGHT = 1_000  # labels, the last ones, that answer rows which the graph does not reach
BLOCK = 16_384
MOST_VALUES = 20_000  # up to so many rows all values are renewed at once
MOST_FOLDS = 5
GRAPH = "the spectral graph transducer"
GRAPH_AND_RIDGE = (
    "the spectral graph transducer, and by ridge regression where no neighbour leads to a label"
)


class ClassAnswers:
    """Classes at all rows by the spectral graph transducer, on a spectrum computed once."""

    def __init__(self, prepared: Prepared) -> None:
        self._spectrum = prepared.spectrum
        self._unit = prepared.unit

    def answer(
        self, codes: Codes, shares: Array | None = None, *, everywhere: bool = True
    ) -> Answers:
        """Return the answers that follow from labels, always at all rows.

        Shapes: shares (n_classes,).
        """
        n = len(self._spectrum.components)
        values = np.full(n, -1, dtype=np.int16)
        certain = np.full(n, np.nan)
        rows = np.array([*codes], dtype=np.int64)
        labels = np.array([*codes.values()], dtype=np.int64)
        source = "nobody: labels of two classes are needed"
        if len(set(labels.tolist())) > 1:
            values, certain = self._cut(rows, labels, shares)
            source = GRAPH
            far = np.flatnonzero(values < 0)
            if len(far) and self._unit.shape[1]:
                values[far], certain[far] = _answer_far_rows(self._unit, rows, labels, far)
                source = GRAPH_AND_RIDGE
        values[rows] = labels
        return Answers(values, certain, source)

    def _cut(
        self, rows: AnyArray, labels: AnyArray, shares: Array | None
    ) -> tuple[AnyArray, Array]:
        """Return classes and margins at all rows, -1 and NaN where no label reaches."""
        kept = self._in_large_parts(rows)
        if len(set(labels[kept].tolist())) > 1:
            rows = rows[kept]
            labels = labels[kept]
        classes, counts = np.unique(labels, return_counts=True)
        if shares is None:
            prior = counts / counts.sum()
        else:
            prior = shares[classes] / shares[classes].sum()
        cut_classes = slice(None)
        if len(classes) == 2:  # one cut parts two classes
            cut_classes = slice(1, 2)
        members = labels[:, None] == classes[cut_classes]
        sides = np.where(members, counts[cut_classes], len(rows) - counts[cut_classes])
        costs = len(rows) / (2.0 * sides)
        weight = default_label_weight(len(self._spectrum.components))
        known = KnownLabels(rows, members, costs, prior[cut_classes], weight)
        cut = cut_graph(self._spectrum, known, N_COMPONENTS)
        best, lead = find_winners(cut.scores, cut.thresholds)
        return np.where(np.isnan(lead), -1, classes[best]).astype(np.int16), lead

    def _in_large_parts(self, rows: AnyArray) -> Mask:
        """Return which labels the graph takes: those in its `MOST_PARTS` largest parts."""
        # Each part adds a dimension.
        part = self._spectrum.components[rows]
        labelled_parts = np.unique(part)
        sizes = np.bincount(self._spectrum.components)[labelled_parts]
        largest = np.argsort(-sizes, kind="stable")[:MOST_PARTS]
        return np.isin(part, labelled_parts[largest])


def find_winners(scores: Array, thresholds: Array) -> tuple[AnyArray, Array]:
    """Return the best class at each row and its lead over the second, NaN where scores are."""
    best = np.zeros(len(scores), dtype=np.int16)
    lead = np.empty(len(scores))
    for start in range(0, len(scores), BLOCK):  # parts that fit a cache
        part = slice(start, start + BLOCK)
        margins = np.ascontiguousarray((scores[part] - thresholds).T)
        if len(margins) == 1:  # the second of two classes
            margins = np.concatenate([-margins, margins])
        top = margins[0].copy()
        second = np.full(margins.shape[1], -np.inf)
        for place, margin in enumerate(margins[1:], start=1):
            np.maximum(second, np.minimum(top, margin), out=second)
            best[part][margin > top] = place
            np.maximum(top, margin, out=top)
        lead[part] = top - second
    return best, lead


def _answer_far_rows(
    unit: MaybeSparse, rows: AnyArray, codes: AnyArray, far: AnyArray
) -> tuple[AnyArray, Array]:
    """Return classes and margins at rows that no edge ties to a label, by ridge regression."""
    rows = rows[-MOST_TAUGHT:]
    codes = codes[-MOST_TAUGHT:]
    classes, places = np.unique(codes, return_inverse=True)
    if len(classes) == 1:
        return np.full(len(far), classes[0]), np.zeros(len(far))
    labelled = unit[rows]
    kernel = 1.0 + sp.csr_array(labelled @ labelled.T).toarray().astype(float)
    kernel[np.diag_indices_from(kernel)] += RIDGE
    weights = np.linalg.solve(kernel, np.eye(len(classes))[places])
    scores = np.asarray(unit[far] @ (labelled.T @ weights)) + weights.sum(axis=0)
    best, lead = find_winners(scores, np.zeros(1))
    return classes[best], lead


class NumberAnswers:
    """Numbers at all rows by ridge regression, with intervals by the confidence machine."""

    def __init__(self, prepared: Prepared, confidence: float, seed: int) -> None:
        self._matrix = prepared.matrix
        self._confidence = confidence
        n = len(self._matrix)
        random = np.random.default_rng([seed, 1])
        sample = self._matrix[random.choice(n, min(n, 1000), replace=False)]
        self._width = _median_distance(sample)
        self._with_intervals = np.sort(random.choice(n, min(n, MOST_REGIONS), replace=False))
        self._values = np.full(n, np.nan)

    def answer(
        self, codes: Codes, shares: Array | None = None, *, everywhere: bool = False
    ) -> Answers:
        """Return the answers that follow from labels; those of very many rows only `everywhere`."""
        n = len(self._matrix)
        rows = np.array([*codes], dtype=np.int64)
        labels = np.array([*codes.values()], dtype=float)
        values = np.full(n, np.nan)
        lower = np.full(n, np.nan)
        upper = np.full(n, np.nan)
        source = f"nobody: {FEWEST_NUMBERS} labels are needed"
        if len(rows) >= FEWEST_NUMBERS:
            others = np.setdiff1d(self._with_intervals, rows)
            model = self._fit(rows, labels, others)
            asked = others
            if everywhere or n <= MOST_VALUES:
                asked = np.arange(n)
            self._renew_values(model, asked)
            if len(others) and model.answer_.regions is not None:
                lower[others], upper[others] = model.answer_.regions.hull().T
            values = self._values.copy()
            source = "ridge regression and the confidence machine"
        values[rows] = labels
        with np.errstate(invalid="ignore"):  # the narrower an interval, the more certain
            return Answers(values, lower - upper, source, lower, upper)

    def _fit(self, rows: AnyArray, labels: Array, others: AnyArray) -> RidgeConfidenceMachine:
        """Return the machine fitted to labelled rows, and to others without a label."""
        # The level that so few labels can support.
        level = min(self._confidence, (len(rows) - 1) / (len(rows) + 1))
        model = RidgeConfidenceMachine(width=self._width, confidence=level, standardize=False)
        y = np.append(labels, np.full(len(others), np.nan))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(self._matrix[np.concatenate([rows, others])], y)
        return model

    def _renew_values(self, model: RidgeConfidenceMachine, rows: AnyArray) -> None:
        """Answer rows anew, some at a time."""
        for start in range(0, len(rows), MOST_VALUES):
            part = rows[start : start + MOST_VALUES]
            self._values[part] = model.predict(self._matrix[part])


def _median_distance(rows: Array) -> float:
    """Return the median distance of rows that differ; 1 if none do."""
    distances = pairwise_distances(rows)[np.triu_indices(len(rows), 1)]
    if not np.any(distances > 0.0):
        return 1.0
    return float(np.median(distances[distances > 0.0]))


def estimate_shares_left(matrix: Array, codes: Codes, n_classes: int) -> Array | None:
    """Estimate the shares of the classes in rows without a label, from labels chosen by class.

    Returns shape (n_classes,), or None where the labels are too few: two of each of two classes.
    """
    rows = np.array([*codes], dtype=np.int64)
    labels = np.array([*codes.values()], dtype=np.int64)
    classes, places, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if len(classes) < 2 or counts.min() < 2 or len(rows) == len(matrix):
        return None
    folds = StratifiedKFold(min(MOST_FOLDS, int(counts.min())), shuffle=True, random_state=0)
    classifier = LogisticRegression(max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hidden = cross_val_predict(
            classifier,
            matrix[rows],
            places,
            cv=folds,
            method="predict_proba",
        )
        classifier.fit(matrix[rows], places)
    others = np.setdiff1d(np.arange(len(matrix)), rows)
    probabilities = classifier.predict_proba(matrix[others])
    estimated = estimate_shares(probabilities, counts, hidden=(hidden, places))
    shares = np.zeros(n_classes)
    shares[classes] = estimated.shares
    return shares
