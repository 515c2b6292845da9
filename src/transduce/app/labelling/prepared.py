"""What is computed once of all rows, before the first label: features, neighbour graph, map."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer

from transduce.app.filling.left_out import columns_left_out_of_labelling, notes_on
from transduce.app.labelling.graph_features import GraphFeatures
from transduce.app.labelling.row_map import RowMap, draw_map
from transduce.app.labelling.table import LabelTable
from transduce.app.tables.features import reduce_words, vectorize
from transduce.app.tables.row_names import RowNames, naming_rows
from transduce.core.computing import stage
from transduce.core.types import AnyArray, Array, ColumnName
from transduce.methods.spectral_graph import (
    NeighborGraph,
    Spectrum,
    graph_spectrum,
    neighbor_graph,
)

MaybeSparse: TypeAlias = "AnyArray | sp.csr_array"
N_COMPONENTS = 80
N_NEIGHBORS = 10
TEXT_NEIGHBORS = 30
MOST_WORDS = 50_000
EXACT_TEXTS = 30_000  # up to here neighbours are searched by all words and features
# Beyond that many rows: directions that are kept, rows that each is compared with, and residuals of
# the spectrum over its last eigenvalue.
N_DIRECTIONS = 100
MOST_COMPARED = 8_000
ROUGH = 0.05


@dataclass(frozen=True, eq=False)
class Prepared:
    """All that no label changes."""

    matrix: Array  # (n, d) features, as `transduce.app.tables.features.vectorize` scales them
    unit: MaybeSparse  # (n, p) words and other features, each row of norm 1
    spectrum: Spectrum  # of the neighbour graph
    graph: GraphFeatures  # the same, as features
    map: RowMap  # places of rows
    columns: tuple[str, ...] = ()  # those that the features come from
    notes: tuple[str, ...] = ()  # what the user should know of the columns


def prepare(
    table: LabelTable,
    *,
    ignore: Sequence[ColumnName] = (),
    text: Sequence[ColumnName] = (),
    number: Sequence[ColumnName] = (),
    seed: int = 0,
) -> Prepared:
    """Return what is computed once from a table, whose columns are read as `fill` does.

    No label is looked at, except which cells have one: a column that is known only there is left
    out, as in `fill`.
    """
    left_out = columns_left_out_of_labelling(table.frame, table.target, ignore)
    ignore = [*ignore, *(str(column.name) for column in left_out)]
    with naming_rows(RowNames.of_lines(table.lines)):
        features = vectorize(
            table.frame,
            table.target,
            ignore=ignore,
            text=text,
            number=number,
            prefer=table.prefer,
            random_state=seed,
            folder=table.folder,
        )
    is_text = features.columns["kind"] == "text"
    texts = features.columns.loc[is_text, "name"].tolist()
    words = None
    if texts:
        words = _weigh_words(table.frame, texts)
    if words is None and features.matrix.shape[1] == 0:
        message = f"No column besides {table.target!r} varies: there is nothing to learn from."
        raise ValueError(" ".join([message, *map(str, features.notes)]))
    is_plain = np.array([origin not in texts for origin in features.origins], dtype=bool)
    plain = features.matrix
    if not is_plain.all():
        plain = features.matrix[:, is_plain]
    prepared = prepare_matrix(features.matrix, words, plain, seed=seed)
    columns = tuple(map(str, dict.fromkeys(features.origins)))
    notes = tuple(note.text for note in (*notes_on(left_out), *features.notes))
    return replace(prepared, columns=columns, notes=notes)


def prepare_matrix(
    matrix: Array,
    words: sp.csr_array | None = None,
    plain: Array | None = None,
    *,
    seed: int = 0,
) -> Prepared:
    """Return what is computed once from features.

    Shapes: matrix (n, d), words (n, p), plain (n, q).
    """
    if plain is None:
        plain = matrix
    tolerance = None
    if len(matrix) > EXACT_TEXTS:
        tolerance = ROUGH
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = _connect_rows(words, plain, seed)
        spectrum = graph_spectrum(
            graph, n_components=N_COMPONENTS, tolerance=tolerance, random_state=seed
        )
    return Prepared(
        matrix,
        _scale_to_unit(words, plain),
        spectrum,
        GraphFeatures(spectrum),
        draw_map(spectrum, seed),
    )


def _connect_rows(words: sp.csr_array | None, plain: Array, seed: int) -> NeighborGraph:
    """Return the graph of rows whose words or other features are alike, the sum of both."""
    graphs = []
    options: dict[str, Any] = {"most_compared": MOST_COMPARED, "random_state": seed}
    if words is not None:  # by the cosines of their words
        reduced = _reduce_columns(words, seed)
        graphs.append(neighbor_graph(reduced, n_neighbors=TEXT_NEIGHBORS, **options))
    if plain.shape[1]:
        reduced = _reduce_columns(plain, seed)
        graphs.append(
            neighbor_graph(reduced, n_neighbors=N_NEIGHBORS, metric="euclidean", **options)
        )
    if len(graphs) == 1:
        return graphs[0]
    return NeighborGraph(graphs[0] + graphs[1])


def _reduce_columns(part: MaybeSparse, seed: int) -> MaybeSparse:
    """Return words or features; in large tables along the directions in which rows vary most."""
    if part.shape[0] <= EXACT_TEXTS or part.shape[1] <= N_DIRECTIONS:
        return part
    with stage("words"):
        return reduce_words(part, N_DIRECTIONS, seed)[1]


def _weigh_words(frame: pd.DataFrame, columns: list[str]) -> sp.csr_array | None:
    """Return the weights of the words of all texts of each row; None if there are no words."""
    parts = [frame[name].fillna("").astype(str) for name in columns]
    texts = parts[0].str.cat(parts[1:], sep="\n")
    fewest_rows = 1
    if len(frame) > 50:
        fewest_rows = 2
    vectorizer = TfidfVectorizer(
        sublinear_tf=True,
        dtype=np.float32,
        min_df=fewest_rows,
        max_df=0.5,
        max_features=MOST_WORDS,
    )
    try:
        return sp.csr_array(vectorizer.fit_transform(texts))
    except ValueError:  # no words that two rows share
        return None


def _scale_to_unit(words: sp.csr_array | None, plain: Array) -> MaybeSparse:
    """Return rows of norm 1: words beside the other features, each part as long as the other."""
    norms = np.linalg.norm(plain, axis=1, keepdims=True)
    others = (plain / np.where(norms > 0.0, norms, 1.0)).astype(np.float32)
    if words is None:
        return others
    if not plain.shape[1]:
        return words
    halved_words = words * np.float32(np.sqrt(0.5))
    halved_others = sp.csr_array(others * np.sqrt(0.5))
    return sp.csr_array(sp.hstack([halved_words, halved_others]))
