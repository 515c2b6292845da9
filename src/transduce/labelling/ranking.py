"""Which rows are most likely of a class: two ridge regressions, one of which sees the graph.

The kernel of two rows is ``1 + <words and features>`` in one, with ``weight^2 <graph coordinates>`` added in the other;
their scores are added. Where a class follows the graph, the second one leads; where it does not, the first one keeps
the order. Labels are 1 and -1, and both sides weigh the same in all. Conjugate gradients start from the last answer, so
that a new label costs milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from transduce.core.types import AnyArray, Array
from transduce.labelling.graph_features import GraphFeatures

GRAPH_WEIGHT = 1.2
RIDGE = 1.0
TOLERANCE = 1e-4
MOST_STEPS = 200


class Ranking:
    """Scores of all rows for one class against the rest. Shapes: unit (n, p)."""

    def __init__(self, unit: AnyArray | sp.csr_array, graph: GraphFeatures) -> None:
        self._unit, self._graph = unit, graph
        self._last: dict[int, tuple[float, float]] = {}

    def scores(self, hits: list[int], others: list[int]) -> Array:
        """Return a score for every row: the higher, the more like the hits and unlike the others.

        Returns shape (n,).
        """
        rows = np.array([*hits, *others], dtype=np.int64)
        if len(rows) == 0:
            return np.zeros(len(self._graph))
        signs = np.concatenate([np.ones(len(hits)), -np.ones(len(others))])
        weights = np.concatenate(
            [np.full(len(part), len(rows) / (2 * max(len(part), 1))) for part in (hits, others)]
        )
        own = self._unit[rows]
        prior = np.sqrt(self._graph.prior) * GRAPH_WEIGHT
        near = self._graph.at(rows) * prior
        places = self._graph.component[rows]
        parts = [np.flatnonzero(places == component) for component in np.unique(places)]

        def plain(b: Array) -> Array:
            return np.asarray(own @ (own.T @ b)).ravel() + b.sum() + RIDGE / weights * b

        def tied(b: Array) -> Array:
            found = plain(b)
            for part in parts:
                found[part] += near[part] @ (near[part].T @ b[part])
            return found

        start = np.array([self._last.get(int(row), (0.0, 0.0)) for row in rows]).T
        first = _conjugate_gradients(plain, signs, start[0])
        second = _conjugate_gradients(tied, signs, start[1])
        self._last = dict(zip(rows.tolist(), zip(first.tolist(), second.tolist(), strict=True), strict=True))
        both = (first + second).astype(np.float32)
        linear = np.asarray(self._unit @ (own.T @ both)).ravel().astype(float)
        spread = {int(places[part[0]]): (near[part].T @ second[part]) * prior for part in parts}
        return linear + self._graph.expand(spread)


def _conjugate_gradients(product: Callable[[Array], Array], right: Array, x: Array) -> Array:
    """Return the solution of a positive definite system, from a first guess."""
    residual = right - product(x)
    direction, square = residual.copy(), float(residual @ residual)
    enough = (TOLERANCE**2) * float(right @ right)
    for _ in range(MOST_STEPS):
        if square <= enough:
            break
        image = product(direction)
        step = square / float(direction @ image)
        x = x + step * direction
        residual = residual - step * image
        square, before = float(residual @ residual), square
        direction = residual + square / before * direction
    return x
