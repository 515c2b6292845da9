"""Boosted trees compiled for many rows: the same answers as scikit-learn's, ten times as fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from transduce.core import arrays
from transduce.core.types import AnyArray, Array

MOST_LEAVES = 12  # of a tree: those that are still possible are the bits of a number, looked up in a table
ROWS = 1024  # whose ranks stay in the processor's cache


@dataclass(frozen=True, eq=False)
class CompiledTrees:
    """Trees that say for all rows at once which leaves are still possible, condition by condition.

    Notes
    -----
    Lucchese, Nardini, Orlando, Perego, Tonellotto and Venturini (2015), "QuickScorer": a condition that fails rules out
    the leaves on its left; the leaf of a row is the leftmost that is left. Values are added in the order of the trees,
    so that scores are those of scikit-learn to the last bit.
    """

    edges: dict[int, Array]  # for every feature that occurs the thresholds it is compared with, ascending
    feature: AnyArray  # (c,) for every condition, which of these features it is about
    rank: AnyArray  # (c,)
    keep: AnyArray  # (c,)
    starts: AnyArray  # (t + 1,) the conditions of every tree
    values: Array  # (t, n_leaves) leaves are counted from the left
    column: AnyArray  # (t,) the class whose score a tree adds to
    baseline: Array  # (k,) where scores begin
    classes: AnyArray | None  # none for numbers

    def scores(self, X: Array) -> Array:
        """Return the sums of all trees at rows (m, d), shape (m, k)."""
        out = np.repeat(self.baseline[:, None], len(X), axis=1)
        trees = self.feature, self.rank, self.keep, self.starts, self.values, self.column
        for part in arrays.blocks(len(X), ROWS):
            ranks = np.empty((max(len(self.edges), 1), len(X[part])), dtype=np.uint16)
            for place, (j, edges) in enumerate(self.edges.items()):
                own = X[part, j]
                ranks[place] = own > edges[0] if len(edges) == 1 else np.searchsorted(edges, own, side="left")
            _add(ranks, *trees, _LEFTMOST, out[:, part])
        return out.T

    def predict(self, X: Array) -> AnyArray:
        """Return numbers, or classes, at rows (m, d)."""
        if self.classes is None:
            return self.scores(X)[:, 0]
        return self.classes[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: Array) -> Array:
        """Return the probabilities of the classes at rows (m, d), shape (m, n_classes)."""
        scores = self.scores(X)
        if scores.shape[1] == 1:
            scores = np.column_stack([np.zeros(len(X)), scores])
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return scores / scores.sum(axis=1, keepdims=True)


_BITS = range(1, 2**MOST_LEAVES)
_LEFTMOST = np.array([0, *((bits & -bits).bit_length() - 1 for bits in _BITS)], dtype=np.uint8)


@njit(cache=True, nogil=True)
def _add(ranks, feature, rank, keep, starts, values, column, leftmost, out):  # type: ignore[no-untyped-def] # noqa: PLR0913
    """Add the values of all trees to the scores of rows."""
    n = ranks.shape[1]
    possible = np.empty(n, np.uint16)
    for tree in range(len(starts) - 1):
        possible[:] = 2**MOST_LEAVES - 1
        for condition in range(starts[tree], starts[tree + 1]):
            own, edge, left = ranks[feature[condition]], rank[condition], keep[condition]
            for row in range(n):
                possible[row] &= np.uint16(65535) if own[row] <= edge else left
        scores = out[column[tree]]
        for row in range(n):
            scores[row] += values[tree, leftmost[possible[row]]]


def compile_trees(estimator: Any) -> CompiledTrees | None:
    """Return boosted trees, fitted to numbers without gaps, in a form that answers many rows fast."""
    numbers = type(estimator) is HistGradientBoostingRegressor and estimator.loss == "squared_error"
    if not numbers and type(estimator) is not HistGradientBoostingClassifier:
        return None
    if not hasattr(estimator, "_predictors"):  # what they are made of is no public matter, and may move
        return None
    trees = [(k, tree.nodes) for group in estimator._predictors for k, tree in enumerate(group)]
    if any(nodes["is_leaf"].sum() > MOST_LEAVES or nodes["is_categorical"].any() for _, nodes in trees):
        return None
    inner = np.concatenate([nodes[nodes["is_leaf"] == 0] for _, nodes in trees])
    thresholds, used = inner["num_threshold"], inner["feature_idx"]
    edges = {int(j): np.unique(thresholds[used == j]) for j in np.unique(used)}
    places = {j: place for place, j in enumerate(edges)}
    values, starts = np.zeros((len(trees), MOST_LEAVES)), [0]
    lines: list[tuple[int, float, int]] = []
    for number, (_, nodes) in enumerate(trees):
        leaves: list[float] = []
        _conditions(nodes, 0, lines, leaves)
        values[number, : len(leaves)] = leaves
        starts.append(len(lines))
    return CompiledTrees(
        edges,
        np.array([places[j] for j, _, _ in lines], dtype=np.int32),
        np.array([np.searchsorted(edges[j], edge) for j, edge, _ in lines], dtype=np.uint16),
        np.array([left for _, _, left in lines], dtype=np.uint16),
        np.array(starts),
        values,
        np.array([k for k, _ in trees]),
        np.asarray(estimator._baseline_prediction, dtype=float).ravel(),
        None if numbers else estimator.classes_,
    )


def _conditions(nodes: AnyArray, place: int, lines: list[tuple[int, float, int]], leaves: list[float]) -> int:
    """Gather leaves from the left, and conditions; return the leaves below a node, as bits."""
    node = nodes[place]
    if node["is_leaf"]:
        leaves.append(float(node["value"]))
        return 1 << (len(leaves) - 1)
    left = _conditions(nodes, int(node["left"]), lines, leaves)
    lines.append((int(node["feature_idx"]), float(node["num_threshold"]), ~left & 0xFFFF))
    return left | _conditions(nodes, int(node["right"]), lines, leaves)
