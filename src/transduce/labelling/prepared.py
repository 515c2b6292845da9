"""What is computed once, before the first label: features, the neighbour graph, its spectrum and the map."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer

from transduce.core.computing import stage
from transduce.core.types import AnyArray, Array
from transduce.labelling.table import LabelTable
from transduce.methods.spectral_graph import NeighborGraph, Spectrum, graph_spectrum, neighbor_graph
from transduce.tables.features import reduce_words, vectorize

MaybeSparse: TypeAlias = "AnyArray | sp.csr_array"
N_COMPONENTS = 80
N_NEIGHBORS, TEXT_NEIGHBORS = 10, 30
MOST_WORDS = 50_000
EXACT_TEXTS = 30_000  # up to here neighbours are searched by all words and features
REDUCED, FITTED_ROWS = 100, 10_000  # directions, and rows that they are fitted to
# Beyond `EXACT_TEXTS` rows: rows that each is compared with, and residuals of the spectrum over its last eigenvalue.
MOST_COMPARED, ROUGH = 8_000, 0.05
MOST_ON_MAP = 5_000  # rows on the map; of a larger table a random sample
N_FEATURES, MAP_NEIGHBORS, EPOCHS, REPULSIONS = 16, 12, 200, 4  # of the map


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
        sums = np.empty(len(self))
        for start in range(0, len(self), 50_000):
            rows = slice(start, start + 50_000)
            sums[rows] = np.square(self.at(rows)) @ weights
        return sums


@dataclass(frozen=True, eq=False)
class RowMap:
    """Places of some rows."""

    rows: AnyArray  # (p,) the rows on the map
    places: Array  # (p, 2) where they lie, each coordinate from 0 to 1
    _coordinates: Array
    _features: GraphFeatures

    def place(self, row: int) -> tuple[float, float]:
        """Return where any row lies: between the rows on the map that are nearest to it."""
        near = np.flatnonzero(self.rows == row)
        if not len(near):
            own = _coordinates(self._features, np.array([row]))[0]
            distances = np.square(self._coordinates - own).sum(axis=1)
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
        places = np.column_stack([(np.arange(len(rows)) + 0.5) / max(len(rows), 1), np.full(len(rows), 0.5)])
        return RowMap(rows, places, points, features)
    parts = features.component[rows].astype(float)[:, None] * 3.0  # components apart from each other
    apart = np.hstack([points, parts])
    graph = neighbor_graph(apart, n_neighbors=MAP_NEIGHBORS, metric="euclidean", random_state=seed).tocoo()
    return RowMap(rows, _arranged(points, graph.row, graph.col, rng), points, features)


def _arranged(points: Array, tails: AnyArray, heads: AnyArray, rng: np.random.Generator) -> Array:
    """Return places in the unit square: neighbours pull each other together, random pairs push each other apart."""
    n, start = len(points), points[:, :2] / np.maximum(points[:, :2].std(axis=0), 1e-12)
    places = (np.clip(start, -3.0, 3.0) * 2.5 + 0.1 * rng.standard_normal((n, 2))).astype(np.float32)
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
    return np.clip(0.03 + 0.94 * ((places - low) / np.maximum(high - low, 1e-9)), 0.0, 1.0).astype(float)


def _summed(rows: AnyArray, moves: Array, n: int) -> AnyArray:
    """Return a quarter of the sum of moves at each row, at most 2 in either direction."""
    total = np.stack([np.bincount(rows, weights=moves[:, j], minlength=n) for j in (0, 1)], axis=1)
    return np.clip(0.25 * total, -2.0, 2.0).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Prepared:
    """All that no label changes."""

    matrix: Array  # (n, d) features, on the scale that `transduce.tables.features.vectorize` gives them
    unit: MaybeSparse  # (n, p) words and other features, each row of norm 1
    spectrum: Spectrum  # of the neighbour graph
    graph: GraphFeatures  # the same, as features
    map: RowMap  # places of rows
    columns: tuple[str, ...] = ()  # those that the features come from
    notes: tuple[str, ...] = ()  # what the user should know of the columns


def prepare(table: LabelTable, *, seed: int = 0) -> Prepared:
    """Return what is computed once from a table; its target is not looked at."""
    features = vectorize(table.frame, table.target, random_state=seed, folder=table.folder)
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
        if words is not None:  # by the cosines of their words, reduced first if there are too many texts
            texts: MaybeSparse = words
            if words.shape[0] > EXACT_TEXTS:
                with stage("words"):
                    texts = reduce_words(words, min(REDUCED, words.shape[1] - 1), seed)[1]
            graphs.append(near(texts, n_neighbors=TEXT_NEIGHBORS))
        if plain.shape[1]:
            graphs.append(near(_reduced(plain, seed), n_neighbors=N_NEIGHBORS, metric="euclidean"))
        graph = graphs[0] if len(graphs) == 1 else NeighborGraph(graphs[0] + graphs[1])
        rough = ROUGH if len(matrix) > EXACT_TEXTS else None
        spectrum = graph_spectrum(graph, n_components=N_COMPONENTS, tolerance=rough, random_state=seed)
        features = GraphFeatures(spectrum)
        with stage("map"):
            places = draw_map(features, seed)
    return Prepared(matrix, _unit(words, plain), spectrum, features, places)


def _reduced(plain: Array, seed: int) -> AnyArray:
    """Return many features of many rows along the directions in which some of the rows vary most."""
    n, d = plain.shape
    if n <= EXACT_TEXTS or d <= REDUCED:
        return plain
    some = np.sort(np.random.default_rng(seed).choice(n, FITTED_ROWS, replace=False))
    directions, reduced = PCA(REDUCED, random_state=seed).fit(plain[some]), np.empty((n, REDUCED), np.float32)
    for start in range(0, n, FITTED_ROWS):
        reduced[start : start + FITTED_ROWS] = directions.transform(plain[start : start + FITTED_ROWS])
    return reduced


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
    return sp.csr_array(sp.hstack([words * np.float32(np.sqrt(0.5)), sp.csr_array(others * np.sqrt(0.5))]))
