"""Rows that no fit saw, which calibration rows that it has not seen either answer for.

Given the fit, calibration rows and those to be answered are exchangeable if rows were labelled at
random: the number outside has the distribution `Miscoverage`, for any number of rows. Each row is
answered by itself, however a table is cut into parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from transduce.conformal.calibrated import CalibratedTable
from transduce.conformal.calibrated_answer import holding_values, name_values, with_values
from transduce.conformal.designs import CLASSES, Weights
from transduce.conformal.scores import Scoring
from transduce.conformal.shares import ClassShares
from transduce.core.answer import Answer
from transduce.core.computing import few_threads, threads_here
from transduce.core.guarantee import Guarantee
from transduce.core.types import AnyArray, Rows
from transduce.model_selection.fit_and_predict import PARTS, FittedEstimator, RawPrediction

# Rows are answered in blocks of one size, a multiple of what matrix products compute at a time, on
# one thread: rounding then does not depend on how a table was cut.
BLOCK = 4608


@dataclass(frozen=True, eq=False)
class OutsideCalibration:
    """A fitted estimator, and calibration rows that it has not seen."""

    fitted: FittedEstimator  # sees neither the calibration rows nor the rows to be answered
    table: CalibratedTable  # the calibration rows, beside no row to be answered
    shares: ClassShares | None = None  # of the classes, where labels were chosen by their class

    def answer(
        self,
        X: Rows,
        confidence: float,
        rows: AnyArray | None = None,
        further: Sequence[float] = (),
    ) -> Answer:
        """Return the answers at rows, each by itself. Shapes: X (m, d), rows (m,).

        `further` levels have intervals or sets besides.
        """
        reply = self.table.unlabelled
        if len(X):
            reply = _predict_in_blocks(self.fitted, X)
        shown = reply
        if self.shares is not None:
            shown = self.shares.applied(reply)
        scored = reply
        if self.shares is not None and self.shares.given:
            scored = shown
        n_rows = len(reply.values)
        if rows is None:
            rows = np.arange(n_rows)
        table = replace(
            self.table,
            unlabelled=scored,
            ties=(self.table.ties[0], np.zeros(n_rows)),
            weights=replace(self.table.weights, unlabelled=np.ones(n_rows)),
        )
        answer = table.answer(confidence, rows, further=further)
        if self.shares is None:
            return holding_values(answer)
        values = name_values(shown, table.classes)
        return with_values(answer, values, shown.status, None, shown.probabilities)

    def guarantee(
        self,
        confidence: float,
        n_answered: int,
        certainty: float = 0.95,
        tolerance: float | None = None,
    ) -> Guarantee:
        """Return what is guaranteed at rows that no fit saw, of which there may be billions."""
        table = replace(self.beside(n_answered), tolerance=tolerance)
        return replace(table.guarantee(confidence, certainty), tolerance=tolerance)

    def beside(self, n_answered: int) -> CalibratedTable:
        """Return the calibration rows beside so many rows with a prediction."""
        return beside_rows(self.table, n_answered)


def beside_rows(table: CalibratedTable, n_answered: int) -> CalibratedTable:
    """Return calibration rows beside so many others, which take no memory each."""
    values = np.broadcast_to(np.zeros(1, dtype=table.labels.dtype), n_answered)
    status = np.broadcast_to(np.array(["answered"]), n_answered)
    return replace(table, unlabelled=RawPrediction(values, status))


def calibrate_outside(
    fitted: FittedEstimator,
    inside: Rows,
    shown: AnyArray,
    X: Rows,
    labels: AnyArray,
    *,
    shares: ClassShares | None = None,
    empty: Rows = None,
) -> OutsideCalibration:
    """Calibrate a fit by labelled rows (c, d) that it has not seen, and rows (e, d) left empty."""
    classes = fitted.classes
    first = fitted.predict(inside, once=True)
    reply = _predict_in_blocks(fitted, X)
    if shares is not None and shares.given:  # estimated ones have no part in scores, as in a fit
        first = shares.applied(first)
        reply = shares.applied(reply)
    n_empty = 0
    if empty is not None and len(empty):
        n_empty = int(_predict_in_blocks(fitted, empty).given.sum())
    weights = Weights.equal(len(labels), 0, n_empty=n_empty)
    if shares is not None:
        given = shares.shares if shares.given else None
        weights = replace(weights, kind=CLASSES, shares=given).resting_on(testable=False)
    n_classes = 0 if classes is None else len(classes)
    scoring = Scoring.of(first, shown, n_classes)
    table = table_outside(reply, scoring, shown, labels, classes, weights)
    return OutsideCalibration(fitted, table, shares)


def table_outside(
    reply: RawPrediction,
    scoring: Scoring,
    shown: AnyArray,
    labels: AnyArray,
    classes: AnyArray | None,
    weights: Weights,
) -> CalibratedTable:
    """Return calibration rows that no fit has seen, beside no row to be answered.

    `shown` are the visible labels.
    """
    sizes: tuple[int, ...] = (len(shown) + len(labels),)
    if classes is not None:
        codes = np.append(shown, labels).astype(int)
        sizes = tuple(np.bincount(codes, minlength=len(classes)).tolist())
    return CalibratedTable(
        calibration=reply,
        unlabelled=reply.at(np.arange(0)),
        labels=labels,
        classes=classes,
        sizes=sizes,
        by_class=False,
        tolerance=None,
        scoring=scoring,
        ties=(np.zeros(len(labels)), np.zeros(0)),
        weights=weights,
    )


def _is_safe_in_threads(estimator: Any) -> bool:
    """Return whether an estimator, and each that it holds, is of this package."""
    members = getattr(estimator, "estimators_", {})
    if isinstance(members, dict):
        members = members.values()
    else:
        members = members
    is_own = type(estimator).__module__.startswith("transduce.")
    return is_own and all(map(_is_safe_in_threads, members))


def _predict_in_blocks(fitted: FittedEstimator, X: Rows) -> RawPrediction:
    """Return predictions made in blocks of one size."""

    def predict(start: int) -> RawPrediction:
        block = X[start : start + BLOCK]
        if isinstance(X, np.ndarray):  # columns of any type are for an estimator of the user's
            padding = np.zeros((BLOCK - len(block), X.shape[1]))
            block = np.vstack([block, padding])
        return fitted.predict(block, once=True)

    first, *others = range(0, max(len(X), 1), BLOCK)
    n_threads = 1
    if others and _is_safe_in_threads(fitted.estimator):
        n_threads = min(threads_here()["blas"], len(others))
    with few_threads(0):
        replies = [predict(first)]  # which prepares what all of them need
        if n_threads > 1:
            with ThreadPoolExecutor(n_threads) as threads:
                replies += threads.map(predict, others)
        else:
            replies += map(predict, others)
    parts: dict[str, Any] = {}
    for name in PARTS:
        blocks = [getattr(reply, name) for reply in replies]
        if blocks[0] is not None:
            parts[name] = np.concatenate(blocks)[: len(X)]
    return RawPrediction(**parts)
