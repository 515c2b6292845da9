"""All certificates of a session at one moment, from its state."""

from __future__ import annotations

from dataclasses import dataclass, replace

from transduce.labelling.certificates import (
    BoundCurve,
    RecallCertificate,
    WrongCertificate,
    certify_answers,
    certify_recall,
    share_of_level,
)
from transduce.labelling.state import State


@dataclass(frozen=True)
class Intervals:
    """How far the draws are that calibrate intervals."""

    planned: int = 0  # draws fixed beforehand, and how many of them were made and judged
    drawn: int = 0  # draws fixed beforehand, and how many of them were made and judged
    answered: int = 0  # draws fixed beforehand, and how many of them were made and judged
    spoilt: bool = False  # whether another row was labelled on purpose since: intervals then need a new draw

    @property
    def ready(self) -> bool:
        """Whether the intervals can be made."""
        return self.planned > 0 and self.answered == self.planned and not self.spoilt


@dataclass(frozen=True, eq=False)
class Certificates:
    """All that is certain at one moment."""

    recall: RecallCertificate | None  # about the wanted class; None if none is wanted
    answers: WrongCertificate | None  # about the answers frozen last; None if none were
    intervals: Intervals  # about the calibration of intervals
    recall_curve: list[tuple[int, float]]  # draws, and the recall that was certain then
    answers_curve: list[tuple[int, int]]  # draws, and the recall that was certain then


class Certifier:
    """Makes certificates; it remembers their curves, so that a new draw adds a point."""

    def __init__(self, certainty: float) -> None:
        self._level = 1.0 - certainty
        self._recall_curve = BoundCurve(self._level)
        self._wrong_curves: dict[int, BoundCurve] = {}

    def certify(self, state: State, wrong_share: float) -> Certificates:
        """Return all certificates of a state."""
        recall, curve = self._recall(state)
        wrong, wrong_curve = self._wrong(state, wrong_share)
        return Certificates(recall, wrong, intervals(state), curve, wrong_curve)

    def _recall(self, state: State) -> tuple[RecallCertificate | None, list[tuple[int, float]]]:
        if state.wanted is None:
            return None, []
        audit = state.audit(state.is_wanted)
        certificate = certify_recall(audit, recall=state.header.recall, certainty=state.header.certainty)
        points, totals = self._recall_curve.update(audit)
        found = state.found_after(state.is_wanted)
        pairs = zip(points.tolist()[:-1], totals.tolist(), strict=False)
        line = [(s, float(found[s]) / total if total else 1.0) for s, total in pairs]
        return certificate, [*line, (len(audit.draws), certificate.recall_at_least)]

    def _wrong(self, state: State, share: float) -> tuple[WrongCertificate | None, list[tuple[int, int]]]:
        """Return the certificate about the answers frozen last; each freeze has its own part of the level."""
        if not state.freezes:
            return None, []
        freeze = state.freezes[-1]
        level = self._level * share_of_level(freeze.number)
        audit = state.audit(state.is_wrong(freeze), freeze.first_draw)
        certificate = certify_answers(audit, share=share, certainty=1.0 - level)
        points, totals = self._wrong_curves.setdefault(freeze.number, BoundCurve(level)).update(audit)
        found = state.found_after(state.is_wrong(freeze), freeze.first_draw)
        pairs = zip(points.tolist()[:-1], totals.tolist(), strict=False)
        line = [
            *((s, max(total - int(found[s]), 0)) for s, total in pairs),
            (len(audit.draws), certificate.wrong_at_most),
        ]
        return replace(certificate, certainty=1.0 - self._level), line


def intervals(state: State) -> Intervals:
    """Return how far the draws are that calibrate intervals."""
    if state.plan is None:
        return Intervals()
    rows = state.calibrating()
    answered = sum(row in state.labels for row in rows)
    return Intervals(state.plan.count, len(rows), answered, state.plan.spoilt)
