"""Answers at rows that no fit saw, calibrated by labelled rows that no fit saw either."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from transduce.conformal.calibrated import CalibratedTable, holding_values, named, with_values
from transduce.conformal.designs import CLASSES, Weights
from transduce.conformal.scores import Scoring
from transduce.conformal.shares import ClassShares
from transduce.core.answer import Answer
from transduce.core.computing import few_threads
from transduce.core.guarantee import BY_CLASS, CHANCE, DRAWN, SHARES, Guarantee, Verdict
from transduce.core.types import AnyArray
from transduce.model_selection.ask import PARTS, FittedEstimator, Reply

# Rows are answered in blocks of one size, a multiple of what matrix products compute at a time, on one thread: rounding
# then does not depend on how a table was cut.
BLOCK = 4608


@dataclass(frozen=True, eq=False)
class OutsideCalibration:
    """A fitted estimator, and calibration rows that it has not seen, from which any other such row is answered.

    Notes
    -----
    Given the fit, the calibration rows and the rows to be answered are exchangeable if chance chose which rows have a
    label: the number of rows outside has the distribution `Miscoverage`, for any number of rows. Every row is answered
    by itself, so that cutting a table into parts changes nothing.
    """

    fitted: FittedEstimator  # sees neither the calibration rows nor the rows to be answered
    scoring: Scoring
    calibration: Reply  # its predictions at the calibration rows
    labels: AnyArray  # (c,) their labels: numbers, or numbers of classes
    n_labels: tuple[int, ...]  # of every class, calibration ones included; one number for numbers
    by_class: bool = False  # whether every class is compared with its own calibration rows
    tolerance: float | None = None  # numbers: by how much an answer may be off
    shares: ClassShares | None = None  # of the classes, where labels were chosen by their class
    drawn: bool = False  # whether the calibration rows were drawn at random by the user
    n_empty: int = 0  # rows that were drawn with them, have an answer, and have no label

    @property
    def classes(self) -> AnyArray | None:
        """The classes; None for numbers."""
        return self.fitted.classes

    def _beside(self, reply: Reply) -> CalibratedTable:
        """Return calibration rows and rows to be answered side by side."""
        c, m = len(self.labels), len(reply.values)
        return CalibratedTable(
            calibration=self.calibration,
            unlabelled=reply,
            labels=self.labels,
            classes=self.classes,
            class_sizes=() if self.classes is None else self.n_labels,
            by_class=self.by_class,
            tolerance=self.tolerance,
            scoring=self.scoring,
            ties=(np.zeros(c), np.zeros(m)),
            weights=self._weights(c, m),
        )

    def _weights(self, c: int, m: int) -> Weights:
        """Return that all rows weigh the same, and what that rests on."""
        shares, plain = self.shares, DRAWN if self.drawn else CHANCE
        if shares is None:
            return Weights.equal(c, m, assumption=plain, n_empty=self.n_empty)
        given, why = (shares.shares, SHARES) if shares.given else (None, BY_CLASS)
        return Weights.equal(c, m, kind=CLASSES, shares=given, assumption=why, testable=False)

    def answer(self, X: Any, confidence: float, rows: AnyArray | None = None) -> Answer:
        """Return the answers at rows, each by itself. Shapes: X (m, d), rows (m,)."""
        reply = _in_blocks(self.fitted, X) if len(X) else self.calibration.at(np.arange(0))
        places = np.arange(len(reply.values)) if rows is None else rows
        if self.shares is None:
            return holding_values(self._beside(reply).answer(confidence, places))
        last = self.shares.applied(reply)
        answer = self._beside(last if self.shares.given else reply).answer(confidence, places)
        return with_values(answer, named(last, self.classes), last.status, None, last.probabilities)

    def guarantee(
        self,
        confidence: float,
        *,
        n_answered: int,
        n_unreached: int = 0,
        certainty: float = 0.95,
        verdict: Verdict | None = None,
    ) -> Guarantee:
        """Return what is guaranteed of the answers at rows that no fit saw, of which there may be billions."""
        kind: Any = int if self.classes is not None else float
        one = np.zeros(1, dtype=kind), np.array(["answered"], dtype="<U9")
        values, status = (np.broadcast_to(part, (n_answered,)) for part in one)
        table = replace(self._beside(self.calibration), unlabelled=Reply(values, status))
        guarantee = table.guarantee(confidence, sum(self.n_labels), verdict, certainty=certainty)
        return replace(guarantee, n_unreached=n_unreached, tolerance=self.tolerance)


def calibrate_outside(
    fitted: FittedEstimator,
    inside: Any,
    shown: AnyArray,
    X: Any,
    labels: AnyArray,
    *,
    shares: ClassShares | None = None,
    empty: Any = None,
) -> OutsideCalibration:
    """Calibrate a fitted estimator by labelled rows that it has not seen, and such rows that were left without a label.

    Shapes: inside (s, d), shown (v,), X (c, d), labels (c,), empty (e, d).
    """
    classes = fitted.classes
    n_classes = 0 if classes is None else len(classes)
    first, reply = fitted.predict(inside, once=True), _in_blocks(fitted, X)
    if shares is not None and shares.given:  # estimated ones are no part of the scores, as in the fit itself
        first, reply = shares.applied(first), shares.applied(reply)
    scoring = Scoring.of(first, shown, n_classes)
    sizes: tuple[int, ...] = (len(shown) + len(labels),)
    if classes is not None:
        sizes = tuple(np.bincount(np.append(shown, labels).astype(int), minlength=n_classes).tolist())
    n_empty = 0 if empty is None or not len(empty) else int(_in_blocks(fitted, empty).given.sum())
    return OutsideCalibration(fitted, scoring, reply, labels, sizes, shares=shares, n_empty=n_empty)


def _in_blocks(fitted: FittedEstimator, X: Any) -> Reply:
    """Return predictions made in blocks of one size."""
    replies = []
    with few_threads(0):
        for start in range(0, max(len(X), 1), BLOCK):
            n = min(BLOCK, len(X) - start)
            block = X[start : start + n]
            if isinstance(X, np.ndarray):  # columns of any type are for an estimator of the user's
                block = np.vstack([block, np.zeros((BLOCK - n, X.shape[1]))])
            replies.append(fitted.predict(block, once=True).at(np.arange(n)))

    def whole(name: str) -> Any:
        parts = [getattr(reply, name) for reply in replies]
        return None if parts[0] is None else np.concatenate(parts)

    return Reply(**{name: whole(name) for name in PARTS})
