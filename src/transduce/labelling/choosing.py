"""Which row to judge next: the likeliest of a class, the one that would teach most, or a random one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from transduce.core.types import AnyArray, Array, Mask
from transduce.labelling.journal import Label
from transduce.labelling.opinions import (
    FEWEST_LABELS,
    MOST_ROWS,
    ClassOpinion,
    NumberOpinion,
    Question,
    SecondOpinion,
)
from transduce.labelling.prepared import GraphFeatures, MaybeSparse, Prepared
from transduce.labelling.state import Answers, Proposal, State

RECENT = 20  # rows looked back at for near-copies
COPY = 0.995  # cosine above which a row is a near-copy
CANDIDATES = 200
NOISE = 0.25  # variance of a label beside a prior variance of about 2
GRAPH_WEIGHT = 1.2
RIDGE = 1.0
TOLERANCE, MOST_STEPS = 1e-4, 200  # of conjugate gradients


class Model:
    """What proposes rows and answers them, once all are compared."""

    def __init__(self, prepared: Prepared, task: str, confidence: float, seed: int) -> None:
        self.prepared, self._seeded = prepared, (prepared, confidence, seed)
        self.chooser, self.second = Chooser(prepared), SecondOpinion(prepared.matrix)
        self.classes = ClassOpinion(prepared).answer
        self._numbers = NumberOpinion(*self._seeded) if task == "numbers" else None

    def numbers(self, labels: Mapping[int, Label], *, everywhere: bool, afresh: bool = False) -> Answers:
        """Return the first opinion on numbers; `afresh`, without values that were answered before."""
        opinion = NumberOpinion(*self._seeded) if afresh or self._numbers is None else self._numbers
        known = {row: float(label) for row, label in labels.items()}  # type: ignore[arg-type]
        return opinion.answer(known, everywhere=everywhere)

    def think(self, state: State, *, by_class: bool) -> bool:
        """Ask for a second opinion where it is worth it; return whether one is being worked on."""
        small = self._numbers is not None or len(self.prepared.matrix) <= MOST_ROWS
        enough = len(state.labelled) >= FEWEST_LABELS and small
        if self.second.busy or not enough or self.second.answer(state.version) is not None:
            return self.second.busy
        about = (state.version, state.header.task, np.array(list(state.labelled), dtype=np.int64))
        if self._numbers is not None:
            labels = np.array(list(state.labelled.values()), dtype=float)
            return self.second.ask(Question(*about, labels, self._numbers.machine(len(labels))))
        codes = np.array(list(state.codes().values()), dtype=np.int64)
        counts = np.unique(codes, return_counts=True)[1]
        if len(counts) < 2 or counts.min() < 2:
            return False
        return self.second.ask(Question(*about, codes, shares=None if by_class else state.shares_left()))


class Chooser:
    """Chooses rows that would help most; it remembers what labels have taught."""

    def __init__(self, prepared: Prepared) -> None:
        self._unit, self._graph = prepared.unit, prepared.graph
        self._ranking = ClassRanking(prepared.unit, prepared.graph)

    @cached_property
    def _teaching(self) -> Teaching:
        return Teaching(self._graph)

    def find(self, free: Mask, hits: list[int], others: list[int]) -> Proposal:
        """Return the row most likely to be a hit; the most diverse one while no hit is known."""
        if not hits:
            chosen = self.learn(free, set(others), None, [])
            return Proposal(chosen.row, "find", "diverse", chosen.value)
        return Proposal(_best(self._ranking.scores(hits, others), free), "find", "likeliest")

    def learn(self, free: Mask, labelled: set[int], answers: Answers | None, recent: list[int]) -> Proposal:
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
        return Proposal(row, "learn", reason, float(gains[row]) / max(float(variance.mean()), 1e-12))

    def widest(self, free: Mask, answers: Answers, labelled: set[int], recent: list[int]) -> Proposal:
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
        likeness = _cosines(self._unit, order, np.array(recent[-RECENT:], dtype=np.int64))
        return int(order[np.argmax(likeness < COPY)])  # the first, too, if all are alike


def _best(scores: Array, free: Mask) -> int:
    return int(np.argmax(np.where(free, scores, -np.inf)))


def _cosines(unit: MaybeSparse, rows: AnyArray, others: AnyArray) -> Array:
    """Return the largest cosine of each row with one of the others."""
    products = unit[rows] @ unit[others].T
    dense = sp.csr_array(products).toarray() if sp.issparse(products) else np.asarray(products)
    return np.asarray(dense.max(axis=1), dtype=float)


class Teaching:
    """How much the label of each row would teach, kept up to date label by label. Shapes: variance (n,)."""

    # Rows are a Gaussian process in the features. Labelling row i lowers the summed variance of all rows of its
    # component by m |S f_i|^2 / (noise + f_i' S f_i), with S the posterior covariance of the features. Both parts are
    # known at every row and change by two products a label.

    def __init__(self, features: GraphFeatures, noise: float = NOISE) -> None:
        self._features, self._noise = features, noise
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
        factor = sign / (self._noise + sign * float(own @ first))
        rows = features.rows_of(component)
        near, far = features.products(rows, np.stack([first, second], axis=1)).T
        self.variance[rows] -= factor * near**2
        self._reach[rows] += factor * near * (factor * float(first @ first) * near - 2.0 * far)
        covariance -= factor * np.outer(first, first)

    def gains(self) -> Array:
        """Return by how much the label of each row would lower the summed variance, as a share of the rows."""
        sizes = self._features.sizes[self._features.component] / len(self._features)
        return sizes * np.maximum(self._reach, 0.0) / (self._noise + np.maximum(self.variance, 0.0))


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
        if len(rows) == 0:
            return np.zeros(len(self._graph))
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
