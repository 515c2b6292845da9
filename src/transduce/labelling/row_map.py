"""A map of the rows: rows that are near each other in the graph lie near each other on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transduce.core.types import AnyArray, Array
from transduce.labelling.graph_features import GraphFeatures
from transduce.methods.spectral_graph import neighbor_graph

MOST_ROWS = 5_000  # rows on the map; of a larger table a random sample
N_FEATURES = 16
N_NEIGHBORS = 12
EPOCHS = 200
REPULSIONS = 4


@dataclass(frozen=True, eq=False)
class RowMap:
    """Places of some rows."""

    rows: AnyArray  # (p,) the rows on the map
    places: Array  # (p, 2) where they lie, each coordinate from 0 to 1
    _coordinates: Array
    _features: GraphFeatures

    def place(self, row: int) -> tuple[float, float]:
        """Return where any row lies: between the rows on the map that are nearest to it."""
        here = np.flatnonzero(self.rows == row)
        if len(here):
            return float(self.places[here[0], 0]), float(self.places[here[0], 1])
        own = _coordinates(self._features, np.array([row]))[0]
        distances = np.square(self._coordinates - own).sum(axis=1)
        distances[self._features.component[self.rows] != self._features.component[row]] += 1e3
        near = np.argsort(distances, kind="stable")[:3]
        middle = self.places[near].mean(axis=0)
        return float(middle[0]), float(middle[1])


def _coordinates(features: GraphFeatures, rows: AnyArray) -> Array:
    """Return the leading features of rows, the important ones longer."""
    return (features.at(rows) * np.sqrt(features.prior))[:, 1 : N_FEATURES + 1]


def draw_map(features: GraphFeatures, seed: int = 0) -> RowMap:
    """Return a map of at most `MOST_ROWS` rows."""
    n, rng = len(features), np.random.default_rng(seed)
    rows = np.arange(n) if n <= MOST_ROWS else np.sort(rng.choice(n, MOST_ROWS, replace=False))
    points = _coordinates(features, rows)
    if len(rows) < 4 or points.shape[1] < 2:
        places = np.column_stack([np.arange(len(rows)) + 0.5, np.full(len(rows), 0.5)])
        places[:, 0] /= max(len(rows), 1)
        return RowMap(rows, places, points, features)
    parts = features.component[rows].astype(float)[:, None] * 3.0  # components apart from each other
    graph = neighbor_graph(
        np.hstack([points, parts]), n_neighbors=N_NEIGHBORS, metric="euclidean", random_state=seed
    ).tocoo()
    return RowMap(rows, _arranged(points, graph.row, graph.col, rng), points, features)


def _arranged(points: Array, tails: AnyArray, heads: AnyArray, rng: np.random.Generator) -> Array:
    """Return places in the unit square: neighbours pull each other together, random pairs push each other apart."""
    n = len(points)
    start = points[:, :2] / np.maximum(points[:, :2].std(axis=0), 1e-12)
    spread = np.clip(start, -3.0, 3.0) * 2.5 + 0.1 * rng.standard_normal((n, 2))
    places = spread.astype(np.float32)
    for epoch in range(EPOCHS):
        step = np.float32(1.0 - epoch / EPOCHS)
        chosen = rng.random(len(tails), dtype=np.float32) < 0.25
        a, b = tails[chosen], heads[chosen]
        gap = places[a] - places[b]
        squares = np.square(gap).sum(axis=1, keepdims=True)
        pull = gap * (-1.0 / (1.0 + squares))
        places += step * _summed(a, pull, n)
        for _ in range(REPULSIONS):
            other = rng.integers(n, size=n)
            gap = places - places[other]
            squares = np.square(gap).sum(axis=1, keepdims=True)
            places += step * np.clip(gap / ((0.05 + squares) * (1.0 + squares)), -1.0, 1.0)
    low, high = np.quantile(places, 0.005, axis=0), np.quantile(places, 0.995, axis=0)
    unit = (places - low) / np.maximum(high - low, 1e-9)
    return np.clip(0.03 + 0.94 * unit, 0.0, 1.0).astype(float)


def _summed(rows: AnyArray, moves: Array, n: int) -> AnyArray:
    """Return the mean-like sum of moves at each row, no move longer than 2."""
    total = np.stack([np.bincount(rows, weights=moves[:, j], minlength=n) for j in (0, 1)], axis=1)
    return np.clip(0.25 * total, -2.0, 2.0).astype(np.float32)
