"""What is computed once of all rows, and what then proposes rows and answers them: two opinions at all rows."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import pairwise_distances

from transduce.app.labelling.session import FEWEST_NUMBERS
from transduce.app.labelling.state import Answers, Proposal, State
from transduce.app.labelling.table import LabelTable
from transduce.app.tables.features import reduce_words, vectorize
from transduce.core.computing import few_threads, stage
from transduce.core.types import AnyArray, Array, Mask
from transduce.methods.confidence_machine import RidgeConfidenceMachine
from transduce.methods.spectral_graph import NeighborGraph, Spectrum, graph_spectrum, neighbor_graph
from transduce.methods.spectral_graph.cut import KnownLabels, cut_graph, default_label_weight

Codes = Mapping[int, float]  # labels by row: numbers, or places in the list of classes
MaybeSparse: TypeAlias = "AnyArray | sp.csr_array"
N_COMPONENTS = 80
N_NEIGHBORS, TEXT_NEIGHBORS = 10, 30
MOST_WORDS = 50_000
EXACT_TEXTS = 30_000  # up to here neighbours are searched by all words and features
REDUCED = 100  # directions
# Beyond `EXACT_TEXTS` rows: rows that each is compared with, and residuals of the spectrum over its last eigenvalue.
MOST_COMPARED, ROUGH = 8_000, 0.05
MOST_ON_MAP = 5_000  # rows on the map; of a larger table a random sample
N_FEATURES, MAP_NEIGHBORS, EPOCHS, REPULSIONS = 16, 12, 200, 4  # of the map
RECENT = 20  # rows looked back at for near-copies
COPY = 0.995  # cosine above which a row is a near-copy
CANDIDATES = 200
NOISE = 0.25  # variance of a label beside a prior variance of about 2
GRAPH_WEIGHT = 1.2
RIDGE = 1.0  # of regressions on words and features
TOLERANCE, MOST_STEPS = 1e-4, 200  # of conjugate gradients
MOST_REGIONS = 2_000  # rows that get an interval
MOST_PARTS = 500  # parts of the graph whose labels are spread over it
MOST_TAUGHT = 1_000  # labels, the last ones, that answer rows which the graph does not reach
BLOCK = 16_384
MOST_VALUES = 20_000  # up to so many rows all values are renewed at once
MOST_ROWS = 50_000  # up to so many rows a blend is a second opinion on classes
FEWEST_LABELS = 10  # of which a second opinion is made


# --------------------------------------------------------------------- what is computed once, before the first label


class GraphFeatures:
    """Rows of a graph in the coordinates of its spectrum. Shapes: prior (d + 1,), component (n,)."""

    # Every connected component of the graph is a table of its own: a row of a component of m rows has the features
    # sqrt(m) [null, v_1, v_2, ...], its entries in the eigenvectors of that component, with prior variances 1, 1, 1/4,
    # 1/9, ...: the spectral graph transducer's penalties turned round. Features of different components are unrelated.

    def __init__(self, spectrum: Spectrum) -> None:
        self._vectors, self.component = spectrum.vectors, spectrum.components
        self.sizes = np.bincount(self.component, minlength=spectrum.count)
        weights = np.bincount(self.component, weights=spectrum.degrees, minlength=spectrum.count)
        share = spectrum.degrees / np.where(weights > 0.0, weights, 1.0)[self.component]
        self._scale = np.sqrt(self.sizes[self.component])
        self._null = np.sqrt(np.where((weights > 0.0)[self.component], share, 1.0)) * self._scale
        self.prior = np.concatenate([[1.0], 1.0 / np.arange(1.0, self._vectors.shape[1] + 1) ** 2])
        self._order = np.argsort(self.component, kind="stable") if spectrum.count > 1 else None
        self._starts = np.concatenate([[0], np.cumsum(self.sizes)])

    def __len__(self) -> int:
        return len(self.component)

    def rows_of(self, component: int) -> AnyArray | slice:
        """Return the rows of a component; all of them as a slice if there is one."""
        if self._order is None:
            return slice(None)
        return self._order[self._starts[component] : self._starts[component + 1]]

    def at(self, rows: AnyArray | slice) -> Array:
        """Return the features of some rows, each in the coordinates of its own component."""
        vectors = self._vectors[rows] * self._scale[rows][:, None]
        return np.concatenate([self._null[rows][:, None], vectors], axis=1)

    def products(self, rows: AnyArray | slice, weights: Array) -> Array:
        """Return the products of rows of one component with weights of shape (d + 1, k), without forming features."""
        vectors = self._vectors if isinstance(rows, slice) else self._vectors[rows]
        inner = vectors @ weights[1:].astype(vectors.dtype)
        return self._null[rows][:, None] * weights[0] + self._scale[rows][:, None] * inner

    def expand(self, weights: Mapping[int, Array]) -> Array:
        """Return the products of every row with the weights of its component, 0 where there are none."""
        products = np.zeros(len(self))
        for component, vector in weights.items():
            rows = self.rows_of(component)
            products[rows] = self.products(rows, vector[:, None])[:, 0]
        return products

    def weigh_squares(self, weights: Array) -> Array:
        """Return the products of every row's squared features with weights of shape (d + 1,)."""
        squares = np.einsum("ij,ij,j->i", self._vectors, self._vectors, weights[1:])
        return np.asarray(self._null**2 * weights[0] + self._scale**2 * squares)


@dataclass(frozen=True, eq=False)
class RowMap:
    """Places of some rows."""

    rows: AnyArray  # (p,) the rows on the map
    places: Array  # (p, 2) where they lie, each coordinate from 0 to 1
    _features: GraphFeatures

    def place(self, row: int) -> tuple[float, float]:
        """Return where any row lies: between the rows on the map that are nearest to it."""
        near = np.flatnonzero(self.rows == row)
        if not len(near):
            own = _coordinates(self._features, np.array([row]))[0]
            distances = np.square(_coordinates(self._features, self.rows) - own).sum(axis=1)
            distances[self._features.component[self.rows] != self._features.component[row]] += 1e3
            near = np.argsort(distances, kind="stable")[:3]
        x, y = self.places[near].mean(axis=0)
        return float(x), float(y)


def _coordinates(features: GraphFeatures, rows: AnyArray) -> Array:
    """Return the leading features of rows, the important ones longer."""
    return (features.at(rows) * np.sqrt(features.prior))[:, 1 : N_FEATURES + 1]


def draw_map(features: GraphFeatures, seed: int = 0) -> RowMap:
    """Return a map of at most `MOST_ON_MAP` rows."""
    n, rng = len(features), np.random.default_rng(seed)
    rows = np.arange(n) if n <= MOST_ON_MAP else np.sort(rng.choice(n, MOST_ON_MAP, replace=False))
    points = _coordinates(features, rows)
    if len(rows) < 4 or points.shape[1] < 2:
        places = np.column_stack(
            [(np.arange(len(rows)) + 0.5) / max(len(rows), 1), np.full(len(rows), 0.5)]
        )
        return RowMap(rows, places, features)
    parts = (
        features.component[rows].astype(float)[:, None] * 3.0
    )  # components apart from each other
    apart = np.hstack([points, parts])
    graph = neighbor_graph(
        apart, n_neighbors=MAP_NEIGHBORS, metric="euclidean", random_state=seed
    ).tocoo()
    return RowMap(rows, _arranged(points, graph.row, graph.col, rng), features)


def _arranged(points: Array, tails: AnyArray, heads: AnyArray, rng: np.random.Generator) -> Array:
    """Return places in the unit square: neighbours pull each other together, random pairs push each other apart."""
    n, start = len(points), points[:, :2] / np.maximum(points[:, :2].std(axis=0), 1e-12)
    places = (np.clip(start, -3.0, 3.0) * 2.5 + 0.1 * rng.standard_normal((n, 2))).astype(
        np.float32
    )
    for epoch in range(EPOCHS):
        step = np.float32(1.0 - epoch / EPOCHS)
        chosen = rng.random(len(tails), dtype=np.float32) < 0.25
        a, b = tails[chosen], heads[chosen]
        gap = places[a] - places[b]
        squares = np.square(gap).sum(axis=1, keepdims=True)
        places += step * _summed(a, gap * (-1.0 / (1.0 + squares)), n)
        for _ in range(REPULSIONS):
            gap = places - places[rng.integers(n, size=n)]
            squares = np.square(gap).sum(axis=1, keepdims=True)
            places += step * np.clip(gap / ((0.05 + squares) * (1.0 + squares)), -1.0, 1.0)
    low, high = (np.quantile(places, share, axis=0) for share in (0.005, 0.995))
    return np.clip(0.03 + 0.94 * ((places - low) / np.maximum(high - low, 1e-9)), 0.0, 1.0).astype(
        float
    )


def _summed(rows: AnyArray, moves: Array, n: int) -> AnyArray:
    """Return a quarter of the sum of moves at each row, at most 2 in either direction."""
    total = np.stack([np.bincount(rows, weights=moves[:, j], minlength=n) for j in (0, 1)], axis=1)
    return np.clip(0.25 * total, -2.0, 2.0).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Prepared:
    """All that no label changes."""

    matrix: Array  # (n, d) features, on the scale that `transduce.app.tables.features.vectorize` gives them
    unit: MaybeSparse  # (n, p) words and other features, each row of norm 1
    spectrum: Spectrum  # of the neighbour graph
    graph: GraphFeatures  # the same, as features
    map: RowMap  # places of rows
    columns: tuple[str, ...] = ()  # those that the features come from
    notes: tuple[str, ...] = ()  # what the user should know of the columns


def prepare(
    table: LabelTable,
    *,
    ignore: Sequence[str] = (),
    text: Sequence[str] = (),
    number: Sequence[str] = (),
    seed: int = 0,
) -> Prepared:
    """Return what is computed once from a table, whose columns are read as `fill` does; no label is looked at."""
    features = vectorize(
        table.frame,
        table.target,
        ignore=ignore,
        text=text,
        number=number,
        prefer="point" if table.source is None else table.source.prefer,
        random_state=seed,
        folder=table.folder,
    )
    texts = features.columns.loc[features.columns["kind"] == "text", "name"].tolist()
    plain = np.array([origin not in texts for origin in features.origins], dtype=bool)
    words = _words(table.frame, texts) if texts else None
    if words is None and features.matrix.shape[1] == 0:
        said = f"No column besides {table.target!r} varies: there is nothing to learn from."
        raise ValueError(" ".join([said, *features.notes]))
    others = features.matrix if plain.all() else features.matrix[:, plain]
    found = prepare_matrix(features.matrix, words, others, seed=seed)
    columns = tuple(map(str, dict.fromkeys(features.origins)))
    return replace(found, columns=columns, notes=tuple(features.notes))


def prepare_matrix(
    matrix: Array, words: sp.csr_array | None = None, plain: Array | None = None, *, seed: int = 0
) -> Prepared:
    """Return what is computed once from features. Shapes: matrix (n, d), words (n, p), plain (n, q)."""
    plain = matrix if plain is None else plain
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graphs, near = [], partial(neighbor_graph, most_compared=MOST_COMPARED, random_state=seed)
        if words is not None:  # by the cosines of their words
            graphs.append(near(_reduced(words, seed), n_neighbors=TEXT_NEIGHBORS))
        if plain.shape[1]:
            graphs.append(near(_reduced(plain, seed), n_neighbors=N_NEIGHBORS, metric="euclidean"))
        graph = graphs[0] if len(graphs) == 1 else NeighborGraph(graphs[0] + graphs[1])
        rough = ROUGH if len(matrix) > EXACT_TEXTS else None
        spectrum = graph_spectrum(
            graph, n_components=N_COMPONENTS, tolerance=rough, random_state=seed
        )
        features = GraphFeatures(spectrum)
        with stage("map"):
            places = draw_map(features, seed)
    return Prepared(matrix, _unit(words, plain), spectrum, features, places)


def _reduced(part: MaybeSparse, seed: int) -> MaybeSparse:
    """Return words or features, too many of them in many rows along the directions in which rows vary most."""
    if part.shape[0] <= EXACT_TEXTS or part.shape[1] <= REDUCED:
        return part
    with stage("words"):
        return reduce_words(part, REDUCED, seed)[1]


def _words(frame: pd.DataFrame, columns: list[str]) -> sp.csr_array | None:
    """Return the weights of the words of all texts of each row; None if there are no words."""
    parts = [frame[name].fillna("").astype(str) for name in columns]
    texts = parts[0].str.cat(parts[1:], sep="\n")
    frequency = {"min_df": 2 if len(frame) > 50 else 1, "max_df": 0.5, "max_features": MOST_WORDS}
    try:
        weigh = TfidfVectorizer(sublinear_tf=True, dtype=np.float32, **frequency)
        return sp.csr_array(weigh.fit_transform(texts))
    except ValueError:  # no words that two rows share
        return None


def _unit(words: sp.csr_array | None, plain: Array) -> MaybeSparse:
    """Return rows of norm 1: words beside the other features, each part as long as the other."""
    norms = np.linalg.norm(plain, axis=1, keepdims=True)
    others = (plain / np.where(norms > 0.0, norms, 1.0)).astype(np.float32)
    if words is None:
        return others
    if not plain.shape[1]:
        return words
    return sp.csr_array(
        sp.hstack([words * np.float32(np.sqrt(0.5)), sp.csr_array(others * np.sqrt(0.5))])
    )


# ------------------------------------------------------------------------------------ choosing and answering rows


class Model:
    """What proposes rows and answers them, once all are compared; it remembers what labels have taught."""

    def __init__(self, prepared: Prepared, task: str, confidence: float, seed: int) -> None:
        self.prepared, self.second = prepared, SecondOpinion(prepared.matrix)
        numbers = task == "numbers"
        self._opinion = (
            NumberOpinion(prepared, confidence, seed) if numbers else ClassOpinion(prepared)
        )
        self._ranking, self._teaching = (
            ClassRanking(prepared.unit, prepared.graph),
            Teaching(prepared.graph),
        )

    # ------------------------------------------------------------------------------------------ answering rows

    def answer(self, codes: Codes, shares: Array | None, *, everywhere: bool = False) -> Answers:
        """Return the first opinion; `everywhere`, also of numbers at all rows of the largest table."""
        with few_threads(0):
            return self._opinion.answer(codes, shares, everywhere=everywhere)

    def think(self, state: State, *, by_class: bool) -> bool:
        """Ask for a second opinion on classes where it is worth it; return whether one is being worked on."""
        codes = state.codes()
        worth = (
            not state.numbers
            and len(codes) >= FEWEST_LABELS
            and len(self.prepared.matrix) <= MOST_ROWS
        )
        if self.second.busy or not worth or self.second.answer(state.version) is not None:
            return self.second.busy
        rows, labels = np.array([*codes], dtype=np.int64), np.array([*codes.values()])
        counts = np.unique(labels, return_counts=True)[1]
        if len(counts) < 2 or counts.min() < 2:
            return False
        shares = None if by_class else state.shares_left()
        return self.second.ask(Question(state.version, rows, labels, shares))

    # ------------------------------------------------------------------------------------------- choosing rows

    def find(self, free: Mask, hits: list[int], others: list[int]) -> Proposal:
        """Return the row most likely to be a hit; the most diverse one while no hit is known."""
        if not hits:
            return replace(self.learn(free, set(others), None, []), mode="find")
        return Proposal(_best(self._ranking.scores(hits, others), free), "find", "likeliest")

    def learn(
        self, free: Mask, labelled: set[int], answers: Answers | None, recent: list[int]
    ) -> Proposal:
        """Return the row, of those free (n,), whose label would teach most: most where answers are open."""
        self._teaching.update(labelled)
        gains, variance = self._teaching.gains(), np.maximum(self._teaching.variance, 0.0)
        scores, reason = gains, "diverse"
        certain = np.zeros(1) if answers is None else answers.certain
        margins = np.where(np.isnan(certain), 0.0, certain)
        if margins.any():
            spread = np.sqrt(variance)
            scores, reason = gains * spread / (margins + spread + 1e-12), "teaches"
        row = self._unlike(scores, free, recent)
        return Proposal(
            row, "learn", reason, float(gains[row]) / max(float(variance.mean()), 1e-12)
        )

    def widest(
        self, free: Mask, answers: Answers, labelled: set[int], recent: list[int]
    ) -> Proposal:
        """Return the row with the widest interval, of numbers; the most diverse one while there is none."""
        widths = -answers.certain
        known = np.isfinite(widths) & free
        if not known.any() or np.ptp(widths[known]) <= 1e-9 * np.abs(widths[known]).max():
            return self.learn(free, labelled, None, recent)
        row = self._unlike(np.where(known, widths, -np.inf), known, recent)
        return Proposal(row, "learn", "widest", float(widths[row]))

    def _unlike(self, scores: Array, free: Mask, recent: list[int]) -> int:
        """Return the best row that is no near-copy of one shown lately; the best of all if all are."""
        if not recent:
            return _best(scores, free)
        order = np.flatnonzero(free)
        if len(order) > CANDIDATES:
            order = order[np.argpartition(-scores[order], CANDIDATES)[:CANDIDATES]]
        order = order[np.argsort(-scores[order], kind="stable")]
        cosines = self.prepared.unit[order] @ self.prepared.unit[np.array(recent[-RECENT:])].T
        likeness = cosines.toarray() if sp.issparse(cosines) else np.asarray(cosines)
        return int(
            order[np.argmax(likeness.max(axis=1) < COPY)]
        )  # the first, too, if all are alike


def _best(scores: Array, free: Mask) -> int:
    return int(np.argmax(np.where(free, scores, -np.inf)))


class Teaching:
    """How much the label of each row would teach, kept up to date label by label. Shapes: variance (n,)."""

    # Rows are a Gaussian process in the features. Labelling row i lowers the summed variance of all rows of its
    # component by m |S f_i|^2 / (noise + f_i' S f_i), with S the posterior covariance of the features. Both parts are
    # known at every row and change by two products a label.

    def __init__(self, features: GraphFeatures) -> None:
        self._features = features
        self._covariances: dict[int, Array] = {}
        self._known: set[int] = set()
        self.variance = features.weigh_squares(features.prior)
        self._reach = features.weigh_squares(np.square(features.prior))

    def update(self, labelled: set[int]) -> None:
        """Take away the labels that are gone, and add the new ones."""
        for row in sorted(self._known - labelled):
            self._change(row, -1.0)
        for row in sorted(labelled - self._known):
            self._change(row, 1.0)
        self._known = set(labelled)

    def _change(self, row: int, sign: float) -> None:
        """Add (1) or take away (-1) one label."""
        features, component = self._features, int(self._features.component[row])
        covariance = self._covariances.setdefault(component, np.diag(features.prior))
        own = features.at(np.array([row]))[0]
        first = covariance @ own
        second = covariance @ first
        factor = sign / (NOISE + sign * float(own @ first))
        rows = features.rows_of(component)
        near, far = features.products(rows, np.stack([first, second], axis=1)).T
        self.variance[rows] -= factor * near**2
        self._reach[rows] += factor * near * (factor * float(first @ first) * near - 2.0 * far)
        covariance -= factor * np.outer(first, first)

    def gains(self) -> Array:
        """Return by how much the label of each row would lower the summed variance, as a share of the rows."""
        sizes = self._features.sizes[self._features.component] / len(self._features)
        return sizes * np.maximum(self._reach, 0.0) / (NOISE + np.maximum(self.variance, 0.0))


class ClassRanking:
    """Scores of all rows for one class against the rest: two ridge regressions, one of which sees the graph."""

    # The kernel of two rows is 1 + <words and features> in one, with weight^2 <graph coordinates> added in the other;
    # their scores are added. Where a class follows the graph, the second one leads; where it does not, the first one
    # keeps the order. Labels are 1 and -1, and both sides weigh the same in all. Conjugate gradients start from the
    # last answer, so that a new label costs milliseconds.

    def __init__(self, unit: MaybeSparse, graph: GraphFeatures) -> None:
        self._unit, self._graph = unit, graph
        self._last: dict[int, tuple[float, float]] = {}

    def scores(self, hits: list[int], others: list[int]) -> Array:
        """Return a score for every row (n,): the higher, the more like the hits and unlike the others."""
        rows = np.array([*hits, *others], dtype=np.int64)
        signs = np.repeat([1.0, -1.0], [len(hits), len(others)])
        weights = len(rows) / (2 * np.repeat([len(hits), len(others)], [len(hits), len(others)]))
        own = self._unit[rows]
        prior = np.sqrt(self._graph.prior) * GRAPH_WEIGHT
        near = self._graph.at(rows) * prior
        places = self._graph.component[rows]
        parts = [np.flatnonzero(places == component) for component in np.unique(places)]

        def plain(b: Array) -> Array:
            return np.asarray(own @ (own.T @ b)).ravel() + b.sum() + RIDGE / weights * b

        def tied(b: Array) -> Array:
            product = plain(b)
            for part in parts:
                product[part] += near[part] @ (near[part].T @ b[part])
            return product

        start = np.array([self._last.get(int(row), (0.0, 0.0)) for row in rows]).T
        first = _solved(plain, signs, start[0])
        second = _solved(tied, signs, start[1])
        self._last = dict(
            zip(rows.tolist(), zip(first.tolist(), second.tolist(), strict=True), strict=True)
        )
        both = (first + second).astype(np.float32)
        linear = np.asarray(self._unit @ (own.T @ both)).ravel().astype(float)
        spread = {int(places[part[0]]): (near[part].T @ second[part]) * prior for part in parts}
        return linear + self._graph.expand(spread)


def _solved(product: Callable[[Array], Array], right: Array, start: Array) -> Array:
    """Return the solution of a positive definite system by conjugate gradients, from a first guess."""
    system = LinearOperator((len(right), len(right)), matvec=product, dtype=float)
    return np.asarray(cg(system, right, start, rtol=TOLERANCE, atol=0.0, maxiter=MOST_STEPS)[0])


# ------------------------------------------------------------ a first opinion after every label, and a second


class ClassOpinion:
    """Classes at all rows by the spectral graph transducer, on a spectrum that is computed once."""

    def __init__(self, prepared: Prepared) -> None:
        self._spectrum, self._unit = prepared.spectrum, prepared.unit

    def answer(
        self, codes: Codes, shares: Array | None = None, *, everywhere: bool = True
    ) -> Answers:
        """Return the answers that follow from labels, always at all rows. Shapes: shares (n_classes,)."""
        n = len(self._spectrum.components)
        values, certain = np.full(n, -1, dtype=np.int16), np.full(n, np.nan)
        rows, labels = (np.array([*part], dtype=np.int64) for part in (codes, codes.values()))
        source = "nobody: labels of two classes are needed"
        if len(set(labels.tolist())) > 1:
            values, certain = self._by_graph(rows, labels, shares)
            source = "the spectral graph transducer"
            far = np.flatnonzero(values < 0)
            if len(far) and self._unit.shape[1]:
                values[far], certain[far] = _far_answers(self._unit, rows, labels, far)
                source = f"{source}, and by ridge regression where no neighbour leads to a label"
        values[rows] = labels
        return Answers(values, certain, source)

    def _by_graph(
        self, rows: AnyArray, labels: AnyArray, shares: Array | None
    ) -> tuple[AnyArray, Array]:
        """Return classes and margins at all rows, -1 and NaN where no label reaches, as `relabel` computes them."""
        kept = self._in_large_parts(rows)
        if len(set(labels[kept].tolist())) > 1:
            rows, labels = rows[kept], labels[kept]
        classes, counts = np.unique(labels, return_counts=True)
        prior = counts / counts.sum() if shares is None else shares[classes] / shares[classes].sum()
        held = slice(None) if len(classes) > 2 else slice(1, 2)
        members = labels[:, None] == classes[held]
        sides = np.where(members, counts[held], len(rows) - counts[held])
        costs, weight = (
            len(rows) / (2.0 * sides),
            default_label_weight(len(self._spectrum.components)),
        )
        known = KnownLabels(rows, members, costs, prior[held], weight)
        cut = cut_graph(self._spectrum, known, N_COMPONENTS)
        best, certain = winners(cut.scores, cut.thresholds)
        return np.where(np.isnan(certain), -1, classes[best]).astype(np.int16), certain

    def _in_large_parts(self, rows: AnyArray) -> Mask:
        """Return which labels the graph takes: all, or those in its largest parts; each part adds a dimension."""
        part = self._spectrum.components[rows]
        known = np.unique(part)
        sizes = np.bincount(self._spectrum.components)[known]
        return np.isin(part, known[np.argsort(-sizes, kind="stable")[:MOST_PARTS]])


def winners(scores: Array, thresholds: Array) -> tuple[AnyArray, Array]:
    """Give the best class at each row and its lead over the second, NaN where scores are; in parts that fit a cache."""
    best, lead = np.zeros(len(scores), dtype=np.int16), np.empty(len(scores))
    for start in range(0, len(scores), BLOCK):
        part = slice(start, start + BLOCK)
        margins = np.ascontiguousarray((scores[part] - thresholds).T)
        if len(margins) == 1:  # the second of two classes
            margins = np.concatenate([-margins, margins])
        top, second = margins[0].copy(), np.full(margins.shape[1], -np.inf)
        for place, own in enumerate(margins[1:], start=1):
            np.maximum(second, np.minimum(top, own), out=second)
            best[part][own > top] = place
            np.maximum(top, own, out=top)
        lead[part] = top - second
    return best, lead


def _far_answers(
    unit: MaybeSparse, rows: AnyArray, codes: AnyArray, far: AnyArray
) -> tuple[AnyArray, Array]:
    """Return classes and margins at rows that the graph does not tie to a label: ridge regression on their features."""
    rows, codes = rows[-MOST_TAUGHT:], codes[-MOST_TAUGHT:]
    classes, places = np.unique(codes, return_inverse=True)
    own = unit[rows]
    kernel = 1.0 + sp.csr_array(own @ own.T).toarray().astype(float)
    kernel[np.diag_indices_from(kernel)] += RIDGE
    weights = np.linalg.solve(kernel, np.eye(len(classes))[places])
    scores = np.asarray(unit[far] @ (own.T @ weights)) + weights.sum(axis=0)
    if len(classes) == 1:
        return np.full(len(far), classes[0]), np.zeros(len(far))
    best, lead = winners(scores, np.zeros(1))
    return classes[best], lead


class NumberOpinion:
    """Numbers at all rows by ridge regression, with intervals by the confidence machine at some of them."""

    def __init__(self, prepared: Prepared, confidence: float, seed: int) -> None:
        self._matrix, self._confidence = prepared.matrix, confidence
        n, rng = len(self._matrix), np.random.default_rng([seed, 1])
        some = self._matrix[rng.choice(n, min(n, 1000), replace=False)]
        distances = pairwise_distances(some)[np.triu_indices(len(some), 1)]
        self._width = (
            float(np.median(distances[distances > 0.0])) if np.any(distances > 0.0) else 1.0
        )
        self._sample = np.sort(rng.choice(n, min(n, MOST_REGIONS), replace=False))
        self._values = np.full(n, np.nan)

    def answer(
        self, codes: Codes, shares: Array | None = None, *, everywhere: bool = False
    ) -> Answers:
        """Return the answers that follow from labels; those of very many rows only `everywhere`."""
        n, rows = len(self._matrix), np.array([*codes], dtype=np.int64)
        y = np.array([*codes.values()], dtype=float)
        values, lower, upper = np.full((3, n), np.nan)
        source = f"nobody: {FEWEST_NUMBERS} labels are needed"
        if len(rows) >= FEWEST_NUMBERS:
            others = np.setdiff1d(self._sample, rows)
            used, labelled = (
                np.concatenate([rows, others]),
                np.append(y, np.full(len(others), np.nan)),
            )
            level = min(
                self._confidence, (len(rows) - 1) / (len(rows) + 1)
            )  # that so few labels can support
            model = RidgeConfidenceMachine(width=self._width, confidence=level, standardize=False)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(self._matrix[used], labelled)
            asked = np.arange(n) if everywhere or n <= MOST_VALUES else others
            for start in range(0, len(asked), MOST_VALUES):
                part = asked[start : start + MOST_VALUES]
                self._values[part] = model.predict(self._matrix[part])
            if len(others) and model.answer_.regions is not None:
                lower[others], upper[others] = model.answer_.regions.hull().T
            values = self._values.copy()
            source = "ridge regression and the confidence machine"
        values[rows] = y
        with np.errstate(invalid="ignore"):  # the narrower an interval, the more certain
            return Answers(values, lower - upper, source, lower, upper)


@dataclass(frozen=True, eq=False)
class Question:
    """Labels that a second opinion is to be made of."""

    version: int  # of the labels
    rows: AnyArray  # (l,) labelled rows
    labels: AnyArray  # (l,) their places in the list of classes
    shares: Array | None = (
        None  # (n_classes,) of the classes in rows without a label; None: estimate them
    )


class SecondOpinion:
    """Answers questions one at a time, in a process that starts with the first. Shapes: matrix (n, d)."""

    def __init__(self, matrix: Array) -> None:
        self._matrix = matrix
        self._process: subprocess.Popen[bytes] | None = None
        self._asking = threading.Thread()
        self._answers: tuple[int, Answers] | None = None

    @property
    def busy(self) -> bool:
        """Whether a question is being worked on."""
        return self._asking.is_alive()

    def ask(self, question: Question) -> bool:
        """Begin to work on a question; return whether that could be begun."""
        messages: tuple[Any, ...] = (question,)
        if self._process is None or self._process.poll() is not None:
            try:
                self._process, messages = _start_opinions(), (self._matrix, question)
            except OSError:  # the system has no room for a process: the first opinion stays
                return False
        self._asking = threading.Thread(
            target=self._converse, args=(self._process, *messages), daemon=True
        )
        self._asking.start()
        return True

    def answer(self, version: int) -> Answers | None:
        """Return the answers for these labels if they are ready."""
        return (
            self._answers[1] if self._answers is not None and self._answers[0] == version else None
        )

    @property
    def shares(self) -> Array | None:
        """The shares of the classes that the last answers estimated."""
        return None if self._answers is None else self._answers[1].shares

    def _converse(self, process: subprocess.Popen[bytes], *messages: Any) -> None:
        """Hand a question over, and wait for the answers; whatever goes wrong there, the first opinion stays."""
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError, EOFError, pickle.UnpicklingError):
            for message in messages:
                pickle.dump(message, process.stdin)
            process.stdin.flush()
            answers = pickle.load(process.stdout)
            if answers is not None:
                self._answers = (messages[-1].version, answers)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            if self.busy:
                self._asking.join()
            self._process.communicate()
            self._process = None


def _start_opinions() -> subprocess.Popen[bytes]:
    """Start a process that ends when its input is closed, so also when the session is killed."""
    code = "from transduce.app.labelling.model import give_opinions; give_opinions()"
    command, environment = [sys.executable, "-c", code], {**os.environ, "OMP_NUM_THREADS": "1"}
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=nowhere, env=environment, start_new_session=True
    )


def give_opinions() -> None:
    """Answer the questions that come in until the input is closed; the first message is the matrix."""
    replies, sys.stdout = sys.stdout.buffer, sys.stderr  # what a library prints is no reply
    warnings.simplefilter("ignore")
    with suppress(EOFError):
        matrix = pickle.load(sys.stdin.buffer)
        while True:
            question = pickle.load(sys.stdin.buffer)
            try:
                answers = _second_opinion(matrix, question)
            except Exception:  # whatever goes wrong there: the first opinion stays
                answers = None
            pickle.dump(answers, replies)
            replies.flush()


def _second_opinion(matrix: Array, known: Question) -> Answers:
    """Return classes at all rows by the blend, its probabilities corrected for how labels came about."""
    from transduce.conformal.shares import estimate_shares
    from transduce.ensemble import TransductiveBlend

    values, certain = np.full(len(matrix), -1, dtype=np.int16), np.full(len(matrix), np.nan)
    values[known.rows] = known.labels
    codes = np.full(len(matrix), None, dtype=object)
    codes[known.rows] = known.labels.astype(int)
    blend = TransductiveBlend(task="classification", standardize=False, random_state=0).fit(
        matrix, codes
    )
    assert blend.answer_.probabilities is not None
    classes = np.asarray(blend.classes_, dtype=np.int64)
    folds, shares = getattr(blend, "out_of_fold_", None), None
    if known.shares is None:  # labels were chosen by their class
        counts = np.bincount(known.labels.astype(np.int64))
        told = None if folds is None else folds["blend"].dropna()
        own = (
            None
            if told is None
            else (told.to_numpy(), np.searchsorted(classes, values[told.index]))
        )
        shares = np.zeros(len(counts))
        shares[classes] = estimate_shares(
            blend.answer_.probabilities, counts[classes], hidden=own
        ).shares
        known = replace(known, shares=shares)
    chances = corrected(blend.answer_.probabilities, classes, known)
    best, certain[blend.answer_.rows] = winners(chances, np.zeros(1))
    values[blend.answer_.rows] = classes[best]
    names = ", ".join(str(name).replace("_", " ") for name in blend.weights_.index)
    hidden = None
    if folds is not None:
        told, hidden = folds["blend"], np.full(len(matrix), -1, dtype=np.int16)
        hidden[told.index] = classes[
            winners(corrected(told.to_numpy(), classes, known), np.zeros(1))[0]
        ]
    return Answers(values, certain, f"a blend of {names}", hidden=hidden, shares=shares)


def corrected(probabilities: Array, classes: AnyArray, known: Question) -> Array:
    """Return probabilities for rows whose classes have other shares than the labels."""
    # A search labels mostly hits: by their labels nearly all rows would be hits. Bayes' rule puts it right.
    assert known.shares is not None
    labelled = np.bincount(known.labels.astype(np.int64), minlength=len(known.shares))[classes]
    chances = probabilities * (known.shares[classes] / labelled)
    total = chances.sum(axis=1, keepdims=True)
    return np.asarray(
        np.where(total > 0.0, chances / np.where(total > 0.0, total, 1.0), probabilities)
    )
