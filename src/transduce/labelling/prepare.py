"""What is computed once, before the first label: features, the neighbour graph, its spectrum and the map."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from transduce.core.progress import stage
from transduce.core.types import AnyArray, Array
from transduce.labelling.graph_features import GraphFeatures
from transduce.labelling.row_map import RowMap, draw_map
from transduce.labelling.table import LabelTable
from transduce.methods.spectral_graph import NeighborGraph, Spectrum, graph_spectrum, neighbor_graph
from transduce.tables.features import vectorize

N_COMPONENTS = 80
N_NEIGHBORS = {"numbers": 10, "words": 30}
MOST_WORDS = 50_000
EXACT_TEXTS = 30_000  # up to here neighbours of texts are searched among all
REDUCED = 100


@dataclass(frozen=True, eq=False)
class Prepared:
    """All that no label changes."""

    matrix: Array  # (n, d) features, on the scale that `transduce.tables.features.vectorize` gives them
    unit: AnyArray | sp.csr_array  # (n, p)
    spectrum: Spectrum  # of the neighbour graph
    graph: GraphFeatures  # the same, as features
    map: RowMap  # places of rows


def prepare(table: LabelTable, *, seed: int = 0) -> Prepared:
    """Return what is computed once from a table; its target is not looked at."""
    features = vectorize(table.frame, table.target, random_state=seed)
    texts = features.columns.loc[features.columns["kind"] == "text", "name"].tolist()
    plain = np.array([origin not in texts for origin in features.origins], dtype=bool)
    words = _words(table.frame, texts) if texts else None
    if words is None and features.matrix.shape[1] == 0:
        raise ValueError(
            f"No column besides {table.target!r} varies from row to row: there is nothing to learn from."
        )
    return prepare_matrix(features.matrix, words, features.matrix[:, plain], seed=seed)


def prepare_matrix(
    matrix: Array, words: sp.csr_array | None = None, plain: Array | None = None, *, seed: int = 0
) -> Prepared:
    """Return what is computed once from features. Shapes: matrix (n, d), words (n, p), plain (n, q)."""
    plain = matrix if plain is None else plain
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graphs = []
        if words is not None:
            graphs.append(_text_graph(words, seed))
        if plain.shape[1]:
            k = N_NEIGHBORS["numbers"]
            graphs.append(neighbor_graph(plain, n_neighbors=k, metric="euclidean", random_state=seed))
        graph = graphs[0] if len(graphs) == 1 else NeighborGraph(graphs[0] + graphs[1])
        spectrum = graph_spectrum(graph, n_components=N_COMPONENTS, random_state=seed)
        features = GraphFeatures(spectrum)
        with stage("map"):
            places = draw_map(features, seed)
    return Prepared(matrix, _unit(words, plain), spectrum, features, places)


def _words(frame: pd.DataFrame, columns: list[str]) -> sp.csr_array | None:
    """Return the weights of the words of all texts of each row; None if there are no words."""
    texts = frame[columns[0]].fillna("").astype(str)
    for name in columns[1:]:
        texts = texts + "\n" + frame[name].fillna("").astype(str)
    least = 2 if len(frame) > 50 else 1
    try:
        weights = TfidfVectorizer(
            sublinear_tf=True, max_features=MOST_WORDS, min_df=least, max_df=0.5, dtype=np.float32
        ).fit_transform(texts)
    except ValueError:  # no words that two rows share
        return None
    return sp.csr_array(weights)


def _text_graph(words: sp.csr_array, seed: int) -> NeighborGraph:
    """Return the graph of texts by the cosines of their words, reduced first if there are too many of them."""
    rows: AnyArray | sp.csr_array = words
    if words.shape[0] > EXACT_TEXTS:
        rows = TruncatedSVD(min(REDUCED, words.shape[1] - 1), random_state=seed).fit_transform(words)
    return neighbor_graph(rows, n_neighbors=N_NEIGHBORS["words"], random_state=seed)


def _unit(words: sp.csr_array | None, plain: Array) -> AnyArray | sp.csr_array:
    """Return rows of norm 1: words beside the other features, each part as long as the other."""
    norms = np.linalg.norm(plain, axis=1, keepdims=True)
    others = (plain / np.where(norms > 0.0, norms, 1.0)).astype(np.float32)
    if words is None:
        return others
    if not plain.shape[1]:
        return words
    return sp.csr_array(sp.hstack([words * np.float32(np.sqrt(0.5)), sp.csr_array(others * np.sqrt(0.5))]))
