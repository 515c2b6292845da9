"""Which row to judge next: the one that teaches most, or the one likeliest to be a hit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, cg

from transduce.app.labelling.graph_features import GraphFeatures
from transduce.app.labelling.prepared import MaybeSparse
from transduce.core.types import AnyArray, Array, Mask

RECENT = 20  # rows looked back at for near-copies
COPY = 0.995  # cosine above which a row is a near-copy
CANDIDATES = 200
NOISE = 0.25  # variance of a label beside a prior variance of about 2
GRAPH_WEIGHT = 1.2
RIDGE = 1.0  # of regressions on words and features
TOLERANCE = 1e-4  # of conjugate gradients
MOST_STEPS = 200


def best_row(scores: Array, free: Mask) -> int:
    """Return the free row with the highest score."""
    return int(np.argmax(np.where(free, scores, -np.inf)))


def best_unlike(
    scores: Array,
    free: Mask,
    recent: list[int],
    unit: MaybeSparse,
) -> int:
    """Return the best row that is no near-copy of one shown lately; the best of all if all are."""
    if not recent:
        return best_row(scores, free)
    order = np.flatnonzero(free)
    if len(order) > CANDIDATES:
        order = order[np.argpartition(-scores[order], CANDIDATES)[:CANDIDATES]]
    order = order[np.argsort(-scores[order], kind="stable")]
    likeness = unit[order] @ unit[np.array(recent[-RECENT:])].T
    if sp.issparse(likeness):
        likeness = likeness.toarray()
    is_fresh = np.asarray(likeness).max(axis=1) < COPY
    return int(order[np.argmax(is_fresh)])  # the first, too, if all are alike


class Teaching:
    """How much the label of each row would teach, kept up to date. Shapes: variance (n,)."""

    # Rows are a Gaussian process in the features. Labelling row i lowers the summed variance of all
    # rows of its component by m |S f_i|^2 / (noise + f_i' S f_i), with S the posterior covariance
    # of the features. Both parts are known at every row and change by two products a label.

    def __init__(self, features: GraphFeatures) -> None:
        self._features = features
        self._covariances: dict[int, Array] = {}
        self._labelled: set[int] = set()
        self.variance = features.weigh_squares(features.prior)
        self._reach = features.weigh_squares(np.square(features.prior))

    def update(self, labelled: set[int]) -> None:
        """Take away the labels that are gone, and add the new ones."""
        for row in sorted(self._labelled - labelled):
            self._change(row, -1.0)
        for row in sorted(labelled - self._labelled):
            self._change(row, 1.0)
        self._labelled = set(labelled)

    def _change(self, row: int, sign: float) -> None:
        """Add (1) or take away (-1) one label."""
        features = self._features
        component = int(features.component[row])
        covariance = self._covariances.setdefault(component, np.diag(features.prior))
        of_row = features.at_rows(np.array([row]))[0]
        first = covariance @ of_row
        second = covariance @ first
        factor = sign / (NOISE + sign * float(of_row @ first))
        rows = features.rows_of(component)
        near, far = features.products(rows, np.stack([first, second], axis=1)).T
        self.variance[rows] -= factor * near**2
        length = float(first @ first)
        self._reach[rows] += factor * near * (factor * length * near - 2.0 * far)
        covariance -= factor * np.outer(first, first)

    def gains(self) -> Array:
        """Return by how much each row's label would lower the summed variance, per row."""
        sizes = self._features.sizes[self._features.component] / len(self._features)
        reach = np.maximum(self._reach, 0.0)
        return sizes * reach / (NOISE + np.maximum(self.variance, 0.0))


class ClassRanking:
    """Scores of all rows for one class against the rest, by two ridge regressions."""

    # The kernel of two rows is 1 + <words and features> in one, with weight^2 <graph coordinates>
    # added in the other; their scores are added. Where a class follows the graph, the second one
    # leads; where it does not, the first one keeps the order. Labels are 1 and -1, and both sides
    # weigh the same in all. Conjugate gradients start from the last answer, so that a new label
    # costs milliseconds.

    def __init__(self, unit: MaybeSparse, graph: GraphFeatures) -> None:
        self._unit = unit
        self._graph = graph
        self._last: dict[int, tuple[float, float]] = {}  # both solutions at each labelled row

    def scores(self, hits: list[int], others: list[int]) -> Array:
        """Return a score for every row (n,): the higher, the more like the hits."""
        rows = np.array([*hits, *others], dtype=np.int64)
        sides = [len(hits), len(others)]
        signs = np.repeat([1.0, -1.0], sides)
        weights = len(rows) / (2 * np.repeat(sides, sides))
        labelled = self._unit[rows]
        prior = np.sqrt(self._graph.prior) * GRAPH_WEIGHT
        coordinates = self._graph.at_rows(rows) * prior
        components = self._graph.component[rows]
        parts = [np.flatnonzero(components == component) for component in np.unique(components)]

        def multiply_plain(vector: Array) -> Array:
            product = np.asarray(labelled @ (labelled.T @ vector)).ravel()
            return product + vector.sum() + RIDGE / weights * vector

        def multiply_tied(vector: Array) -> Array:
            product = multiply_plain(vector)
            for part in parts:
                product[part] += coordinates[part] @ (coordinates[part].T @ vector[part])
            return product

        start = self._last_solutions(rows)
        plain = _solve(multiply_plain, signs, start[:, 0])
        tied = _solve(multiply_tied, signs, start[:, 1])
        pairs = zip(plain.tolist(), tied.tolist(), strict=True)
        self._last = dict(zip(rows.tolist(), pairs, strict=True))
        both = (plain + tied).astype(np.float32)
        linear = np.asarray(self._unit @ (labelled.T @ both)).ravel().astype(float)
        by_component = {
            int(components[part[0]]): (coordinates[part].T @ tied[part]) * prior for part in parts
        }
        return linear + self._graph.expand(by_component)

    def _last_solutions(self, rows: AnyArray) -> Array:
        """Return what both regressions gave these rows last, 0 for new ones. Shape (l, 2)."""
        return np.array([self._last.get(int(row), (0.0, 0.0)) for row in rows])


def _solve(product: Callable[[Array], Array], right: Array, start: Array) -> Array:
    """Return the solution of a positive definite system by conjugate gradients."""
    system = LinearOperator((len(right), len(right)), matvec=product, dtype=float)
    solution, _ = cg(system, right, start, rtol=TOLERANCE, atol=0.0, maxiter=MOST_STEPS)
    return np.asarray(solution)
