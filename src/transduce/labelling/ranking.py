"""Which rows are most likely of a class: ridge regression on words, features and the graph's coordinates at once.

The kernel of two rows is ``1 + <words and features> + weight^2 <graph coordinates>``. Labels are 1 and -1, and both
sides weigh the same in all. Conjugate gradients start from the last answer, so that a new label costs milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from transduce.core.types import AnyArray, Array
from transduce.labelling.graph_features import GraphFeatures

GRAPH_WEIGHT = {"words": 0.4, "features": 0.6}
RIDGE = 1.0
TOLERANCE = 1e-4
MOST_STEPS = 200


class Ranking:
    """Scores of all rows for one class against the rest.

    Parameters
    ----------
    unit : array or sparse array of shape (n, p)
        Rows of norm 1.
    graph : GraphFeatures
        The rows in the coordinates of the graph.
    """

    def __init__(self, unit: AnyArray | sp.csr_array, graph: GraphFeatures) -> None:
        self._unit, self._graph = unit, graph
        self._weight = GRAPH_WEIGHT["words" if sp.issparse(unit) else "features"]
        self._last: dict[int, float] = {}

    def scores(self, hits: list[int], others: list[int]) -> Array:
        """Return a score for every row: the higher, the more like the hits and unlike the others.

        Parameters
        ----------
        hits, others : list of int
            Labelled rows; either may be empty.

        Returns
        -------
        array of shape (n,)
        """
        rows = np.array([*hits, *others], dtype=np.int64)
        if len(rows) == 0:
            return np.zeros(len(self._graph))
        signs = np.concatenate([np.ones(len(hits)), -np.ones(len(others))])
        weights = np.concatenate(
            [np.full(len(part), len(rows) / (2 * max(len(part), 1))) for part in (hits, others)]
        )
        own = self._unit[rows]
        prior = np.sqrt(self._graph.prior) * self._weight
        near = self._graph.at(rows) * prior
        places = self._graph.component[rows]
        parts = [np.flatnonzero(places == component) for component in np.unique(places)]

        def kernel(b: Array) -> Array:
            found = np.asarray(own @ (own.T @ b)).ravel() + b.sum()
            for part in parts:
                found[part] += near[part] @ (near[part].T @ b[part])
            return found

        start = np.array([self._last.get(int(row), 0.0) for row in rows])
        b = _conjugate_gradients(lambda v: kernel(v) + RIDGE / weights * v, signs, start)
        self._last = dict(zip(rows.tolist(), b.tolist(), strict=True))
        linear = np.asarray(self._unit @ (own.T @ b.astype(np.float32))).ravel().astype(float)
        spread = {int(places[part[0]]): (near[part].T @ b[part]) * prior for part in parts}
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
