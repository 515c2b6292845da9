"""Answers at rows that no fit saw, calibrated by labelled rows that no fit saw either."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from transduce.conformal.calibrated import Calibrated, calibrated_guarantee, holding_values, wrong_answers
from transduce.conformal.designs import Chance, Drawn
from transduce.conformal.scores import CLASS_SCORES, NUMBER_SCORES, choose_score, resolution, rounded
from transduce.core.answer import Answer
from transduce.core.guarantee import Guarantee, Verdict
from transduce.core.threads import few_threads
from transduce.core.types import AnyArray, Array
from transduce.model_selection.ask import FittedEstimator, Reply

# Rows are answered in blocks of one size, a multiple of what matrix products compute at a time, on one thread: rounding
# then does not depend on how a table was cut.
BLOCK = 4608


@dataclass(frozen=True, eq=False)
class Scoring:
    """How rows are scored one by one; fixed by the rows of the fit, so that all rows outside are treated alike."""

    nonconformity: str  # the score
    spread: float  # stands in for a standard error that is not a positive number
    unit: float  # scores (of numbers: distances) that differ by less are equal
    seen: tuple[bool, ...]  # which classes have a label in the fit; empty for numbers

    @classmethod
    def of(cls, inside: Reply, shown: AnyArray, n_classes: int, wanted: str = "auto") -> Scoring:
        """Return the scoring that suits the predictions at some rows of the fit, and its labels (or their numbers)."""
        name = choose_score(wanted, inside, n_classes)
        if n_classes:
            unit = resolution(CLASS_SCORES[name].measure(inside, n_classes))
            return cls(name, 1.0, unit, tuple(np.bincount(shown, minlength=n_classes) > 0))
        spread = 1.0
        if inside.spreads is not None:
            usable = inside.spreads[np.isfinite(inside.spreads) & (inside.spreads > 0.0)]
            spread = 1e-6 * float(np.median(usable)) if len(usable) else 1.0
        return cls(name, spread, resolution(inside.values, np.asarray(shown, dtype=float)), ())

    def measure(self, reply: Reply) -> Array:
        """Return what distances are divided by, shape (m,), or the score of every class, shape (m, n_classes)."""
        if not self.seen:
            if self.nonconformity == "scaled":
                assert reply.spreads is not None
                bad = ~(np.isfinite(reply.spreads) & (reply.spreads > 0.0))
                return np.where(bad, self.spread, reply.spreads)
            return NUMBER_SCORES[self.nonconformity].measure(reply, 0)
        found = rounded(CLASS_SCORES[self.nonconformity].measure(reply, len(self.seen)), self.unit)
        found[:, ~np.array(self.seen)] = np.inf
        return found


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
    n_shown: tuple[int, ...]  # labels of every class in the fit; one number for all where labels are numbers
    by_class: bool = False  # whether every class is compared with its own calibration rows
    tolerance: float | None = None  # numbers: by how much an answer may be off
    drawn: bool = False  # whether the calibration rows were drawn at random by the user

    @property
    def classes(self) -> AnyArray | None:
        """The classes; None for numbers."""
        return self.fitted.classes

    def _beside(self, reply: Reply) -> Calibrated:
        """Return calibration rows and rows to be answered side by side."""
        sizes: tuple[int, ...] = ()
        if self.classes is not None:
            own = np.bincount(self.labels.astype(int), minlength=len(self.classes))
            sizes = tuple((np.array(self.n_shown) + own).tolist())
        return Calibrated(
            calibration=self.calibration,
            unlabelled=reply,
            labels=self.labels,
            class_sizes=sizes,
            by_class=self.by_class,
            nonconformity=self.scoring.nonconformity,
            measures=(self.scoring.measure(self.calibration), self.scoring.measure(reply)),
            ties=(np.zeros(len(self.labels)), np.zeros(len(reply.values))),
            unit=self.scoring.unit,
        )

    def answer(self, X: Array, confidence: float, rows: AnyArray | None = None) -> Answer:
        """Return the answers at rows, each by itself. Shapes: X (m, d), rows (m,)."""
        reply = _in_blocks(self.fitted, X)
        table = self._beside(reply)
        found = Answer(
            rows=np.arange(len(reply.values)) if rows is None else rows,
            values=self._names(reply),
            status=reply.status,
            guarantee=Guarantee("none"),
            probabilities=reply.probabilities,
            standard_errors=reply.spreads,
            classes=self.classes,
        )
        if self.classes is None:
            return holding_values(replace(found, regions=table.regions(confidence)))
        p = table.p_values()
        ranked = np.sort(p, axis=1)
        return holding_values(
            replace(
                found,
                label_sets=table.sets(p, confidence),
                p_values=p,
                confidence=1.0 - ranked[:, -2],
                credibility=ranked[:, -1],
            )
        )

    def _names(self, reply: Reply) -> AnyArray:
        """Return numbers, NaN where there is no answer; or classes, None there."""
        if self.classes is None:
            return np.where(reply.given, reply.values, np.nan)
        names = self.classes[np.maximum(reply.values.astype(int), 0)]
        if reply.given.all():
            return names
        names = names.astype(object)
        names[~reply.given] = None
        return names

    def guarantee(
        self,
        confidence: float,
        *,
        n_answered: int,
        n_unreached: int = 0,
        certainty: float = 0.95,
        verdict: Verdict | None = None,
    ) -> Guarantee:
        """Return what is guaranteed of the answers at rows that no fit saw."""
        kind: Any = int if self.classes is not None else float
        nothing = Reply(
            np.broadcast_to(np.zeros(1, dtype=kind), (n_answered,)),
            np.broadcast_to(np.array(["answered"], dtype="<U9"), (n_answered,)),
        )
        width = () if self.classes is None else (len(self.classes),)
        measure = np.broadcast_to(np.ones(1), (n_answered, *width))
        table = self._beside(self.calibration)
        table = replace(table, unlabelled=nothing, measures=(table.measures[0], measure))
        found = calibrated_guarantee(
            table,
            confidence,
            sum(self.n_shown) + len(self.labels),
            verdict,
            design=Drawn(np.ones(len(self.labels), dtype=bool)) if self.drawn else Chance(),
            certainty=certainty,
            wrong=wrong_answers(table, None, certainty, self.tolerance),
        )
        return replace(found, n_unreached=n_unreached, tolerance=self.tolerance)


def calibrate_outside(
    fitted: FittedEstimator,
    inside: Array,
    shown: AnyArray,
    X: Array,
    labels: AnyArray,
    *,
    by_class: bool = False,
    tolerance: float | None = None,
) -> OutsideCalibration:
    """Calibrate a fitted estimator by labelled rows that it has not seen.

    Shapes: inside (s, d), shown (v,), X (c, d), labels (c,).
    """
    classes = fitted.classes
    n_classes = 0 if classes is None else len(classes)
    scoring = Scoring.of(fitted.predict(inside, once=True), shown, n_classes)
    reply = _in_blocks(fitted, X)
    sizes = (len(shown),) if classes is None else tuple(np.bincount(shown, minlength=n_classes).tolist())
    return OutsideCalibration(fitted, scoring, reply, labels, sizes, by_class, tolerance)


def _in_blocks(fitted: FittedEstimator, X: Array) -> Reply:
    """Return predictions made in blocks of one size."""
    replies = []
    with few_threads(0):
        for start in range(0, max(len(X), 1), BLOCK):
            n = min(BLOCK, len(X) - start)
            block = np.zeros((BLOCK, X.shape[1]))
            block[:n] = X[start : start + n]
            replies.append(fitted.predict(block, once=True).at(np.arange(n)))

    def whole(name: str) -> Any:
        parts = [getattr(reply, name) for reply in replies]
        return None if parts[0] is None else np.concatenate(parts)

    return Reply(**{name: whole(name) for name in ("values", "status", "spreads", "probabilities", "scores")})
