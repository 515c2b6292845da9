"""Which row to judge next: the likeliest of a class, the one that would teach most, or a random one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from transduce.core.types import AnyArray, Array, Mask
from transduce.labelling.answering import Answers
from transduce.labelling.graph_features import Teaching
from transduce.labelling.prepare import Prepared
from transduce.labelling.ranking import Ranking

RECENT = 20  # rows looked back at for near-copies
COPY = 0.995  # cosine above which a row is a near-copy
CANDIDATES = 200


@dataclass(frozen=True)
class Proposal:
    """A row to judge.

    Parameters
    ----------
    row : int
        The row.
    mode : {"find", "learn", "audit", "chosen"}
        How it was chosen.
    reason : str
        Why, in a word: "likeliest", "first of its class", "teaches", "diverse", "widest", "random", "undone", "chosen",
        "skipped".
    value : float
        A number that belongs to the reason: the share of the uncertainty, the width, the number of the draw.
    random : bool
        Whether chance chose it.

    Examples
    --------
    >>> from transduce.labelling import Proposal
    >>> Proposal(3, "audit", "random", random=True).random
    True
    """

    row: int
    mode: str
    reason: str
    value: float = 0.0
    random: bool = False


class Chooser:
    """Chooses rows that would help most; it remembers what labels have taught."""

    def __init__(self, prepared: Prepared) -> None:
        self._unit = prepared.unit
        self._graph = prepared.graph
        self._teaching: Teaching | None = None
        self._ranking = Ranking(prepared.unit, prepared.graph)

    def find(self, free: Mask, hits: list[int], others: list[int]) -> Proposal:
        """Return the row most likely to be a hit; the most diverse one while no hit is known."""
        if not hits:
            chosen = self.learn(free, set(others), None, [])
            return Proposal(chosen.row, "find", "diverse", chosen.value)
        scores = self._ranking.scores(hits, others)
        return Proposal(_best(scores, free), "find", "likeliest")

    def learn(self, free: Mask, labelled: set[int], answers: Answers | None, recent: list[int]) -> Proposal:
        """Return the row whose label would teach most: the uncertainty that it takes away, most where answers are open.

        Shapes: free (n,).
        """
        if self._teaching is None:
            self._teaching = Teaching(self._graph)
        self._teaching.update(labelled)
        gains, variance = self._teaching.gains(), np.maximum(self._teaching.variance, 0.0)
        scores, open_ = gains, False
        if answers is not None:
            margins = np.where(np.isnan(answers.certain), 0.0, answers.certain)
            open_ = bool(margins.any())
        if open_:
            spread = np.sqrt(variance)
            scores = gains * spread / (margins + spread + 1e-12)
        row = self._unlike(scores, free, recent)
        share = float(gains[row]) / max(float(variance.mean()), 1e-12)
        return Proposal(row, "learn", "teaches" if open_ else "diverse", share)

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
        new = np.flatnonzero(likeness < COPY)
        return int(order[new[0]]) if len(new) else int(order[0])


def _best(scores: Array, free: Mask) -> int:
    return int(np.argmax(np.where(free, scores, -np.inf)))


def _cosines(unit: AnyArray | sp.csr_array, rows: AnyArray, others: AnyArray) -> Array:
    """Return the largest cosine of each row with one of the others."""
    products = unit[rows] @ unit[others].T
    dense = sp.csr_array(products).toarray() if sp.issparse(products) else np.asarray(products)
    return np.asarray(dense.max(axis=1), dtype=float)
