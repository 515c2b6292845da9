"""What proposes rows and answers them, once all rows are compared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from transduce.app.labelling.answering import ClassAnswers, Codes, NumberAnswers
from transduce.app.labelling.prepared import Prepared
from transduce.app.labelling.proposals import ClassRanking, Teaching, best_row, best_unlike
from transduce.app.labelling.state import Answers, Proposal
from transduce.core.computing import few_threads
from transduce.core.types import Array, Mask

TINY = 1e-12  # keeps quotients finite


class Model:
    """What proposes rows and answers them; it remembers what labels have taught."""

    def __init__(
        self,
        prepared: Prepared,
        task: str,
        confidence: float,
        seed: int,
        shares_left: Array | None = None,
    ) -> None:
        self.prepared = prepared
        self.shares_left = shares_left  # (n_classes,) if the table's labels were chosen by class
        self._answers: NumberAnswers | ClassAnswers
        if task == "numbers":
            self._answers = NumberAnswers(prepared, confidence, seed)
        else:
            self._answers = ClassAnswers(prepared)
        self._task = task
        self._ranking = ClassRanking(prepared.unit, prepared.graph)
        self._teaching = Teaching(prepared.graph)

    def set_confidence(self, confidence: float, seed: int) -> None:
        """Give the intervals of numbers another level."""
        if self._task == "numbers":
            self._answers = NumberAnswers(self.prepared, confidence, seed)

    def answer(
        self,
        codes: Codes,
        shares: Array | None,
        *,
        everywhere: bool = False,
    ) -> Answers:
        """Return the answers; `everywhere`, also of numbers at all rows of the largest table."""
        with few_threads(0):
            return self._answers.answer(codes, shares, everywhere=everywhere)

    def find(
        self,
        free: Mask,
        hits: list[int],
        others: list[int],
    ) -> Proposal:
        """Return the row most likely to be a hit; the most diverse one while no hit is known."""
        if not hits:
            return replace(self.learn(free, set(others), None, []), mode="find")
        scores = self._ranking.scores(hits, others)
        return Proposal(best_row(scores, free), "find", "likeliest")

    def learn(
        self,
        free: Mask,
        labelled: set[int],
        answers: Answers | None,
        recent: list[int],
    ) -> Proposal:
        """Return the row, of those free (n,), whose label would teach most."""
        self._teaching.update(labelled)
        gains = self._teaching.gains()
        variance = np.maximum(self._teaching.variance, 0.0)
        scores = gains
        reason = "diverse"
        if answers is not None:
            margins = np.where(np.isnan(answers.certain), 0.0, answers.certain)
            if margins.any():  # most where answers are open
                spread = np.sqrt(variance)
                scores = gains * spread / (margins + spread + TINY)
                reason = "teaches"
        row = best_unlike(scores, free, recent, self.prepared.unit)
        share = float(gains[row]) / max(float(variance.mean()), TINY)
        return Proposal(row, "learn", reason, share)

    def widest(
        self, free: Mask, answers: Answers, labelled: set[int], recent: list[int]
    ) -> Proposal:
        """Return the row with the widest interval; the most diverse one while there is none."""
        widths = -answers.certain
        known = np.isfinite(widths) & free
        if not known.any() or _are_alike(widths[known]):
            return self.learn(free, labelled, None, recent)
        scores = np.where(known, widths, -np.inf)
        row = best_unlike(scores, known, recent, self.prepared.unit)
        return Proposal(row, "learn", "widest", float(widths[row]))


def _are_alike(widths: Array) -> bool:
    return bool(np.ptp(widths) <= 1e-9 * np.abs(widths).max())
