"""Intervals and sets of classes, from calibration and unlabelled rows side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from transduce.conformal.designs.weights import CLASSES
from transduce.conformal.scores import (
    class_p_values,
    interval_ends,
    intervals,
    label_sets,
)
from transduce.core.answer import Answer, LevelAnswer, Regions
from transduce.core.guarantee import Guarantee
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.validation import class_codes
from transduce.model_selection.fit_and_predict import RawPrediction

if TYPE_CHECKING:
    from transduce.conformal.calibrated import CalibratedTable, Comparison


def make_answer(
    table: CalibratedTable,
    confidence: float,
    rows: AnyArray,
    index: pd.Index | None,
    further: Sequence[float] = (),
) -> Answer:
    """Return the predictions with intervals or sets at a level, and at further ones.

    There is no guarantee yet.
    """
    reply = table.unlabelled
    answer = Answer(
        rows=rows,
        values=name_values(reply, table.classes),
        status=reply.status,
        guarantee=Guarantee("none"),
        standard_errors=reply.spreads,
        probabilities=reply.probabilities,
        classes=table.classes,
        index=index,
    )
    if table.classes is None:
        others = [LevelAnswer(level, regions=make_regions(table, level)) for level in further]
        regions = make_regions(table, confidence)
        answer = replace(answer, regions=regions, further=tuple(others))
    else:
        answer = _with_sets(answer, table, confidence, further)
    return _nested(answer, table, confidence)


def _with_sets(
    answer: Answer, table: CalibratedTable, confidence: float, further: Sequence[float]
) -> Answer:
    """Return the answer with sets of classes at a level, and at further ones."""
    # Where labels were chosen by their class, all classes are known.
    may_be_unseen = table.weights.kind != CLASSES
    p_values = find_p_values(table)
    p_unseen = find_p_unseen(table)
    sets, unseen = _make_sets(table, confidence, p_values, p_unseen)
    others = []
    for level in further:
        at_level = LevelAnswer(level, None, *_make_sets(table, level, p_values, p_unseen))
        if not may_be_unseen:
            at_level = replace(at_level, unseen=None)
        others.append(at_level)
    ranked = np.sort(p_values, axis=1)
    answer = replace(
        answer,
        label_sets=sets,
        p_values=p_values,
        confidence=1.0 - np.maximum(ranked[:, -2], p_unseen),
        credibility=ranked[:, -1],
        further=tuple(others),
    )
    if may_be_unseen:
        answer = replace(answer, unseen=unseen, p_unseen=p_unseen)
    return answer


def _nested(answer: Answer, table: CalibratedTable, confidence: float) -> Answer:
    """Return an answer whose intervals or sets hold those of lower levels.

    Within several columns thresholds of different levels may cross; all others are nested anyhow.
    """
    if table.weights.overlapping is None or not answer.further:
        return answer
    of_level = LevelAnswer(confidence, answer.regions, answer.label_sets, answer.unseen)
    nested: list[LevelAnswer] = []
    for at_level in sorted([of_level, *answer.further], key=lambda other: other.level):
        if nested:
            at_level = _extended(at_level, nested[-1])
        nested.append(at_level)
    of_level = next(other for other in nested if other.level == confidence)
    further = tuple(other for other in nested if other is not of_level)
    return replace(
        answer,
        regions=of_level.regions,
        label_sets=of_level.label_sets,
        unseen=of_level.unseen,
        further=further,
    )


def _extended(higher: LevelAnswer, lower: LevelAnswer) -> LevelAnswer:
    """Return the intervals or sets of a level, each extended to hold that of a lower level."""
    if higher.regions is not None and lower.regions is not None:
        ends = higher.regions.hull()
        inner = lower.regions.hull()
        lowest = np.minimum(ends[:, 0], inner[:, 0])
        highest = np.maximum(ends[:, 1], inner[:, 1])
        wide = np.column_stack([lowest, highest])
        return replace(higher, regions=Regions.from_intervals(wide))
    assert higher.label_sets is not None
    assert lower.label_sets is not None
    assert higher.unseen is not None
    assert lower.unseen is not None
    return replace(
        higher,
        label_sets=higher.label_sets | lower.label_sets,
        unseen=higher.unseen | lower.unseen,
    )


def _make_sets(
    table: CalibratedTable, confidence: float, p_values: Array, p_unseen: Array
) -> tuple[Mask, Mask]:
    """Return which classes are possible, and where a class that no label shows is.

    Shapes: (m, n_classes) and (m,).
    """
    if table.weights.overlapping is not None:
        # P-values are the largest within the row's categories, valid at all levels at once;
        # thresholds of one level rule out more.
        thresholds = table.thresholds_within_columns(confidence)
        scores = table.scoring.measure(table.unlabelled)
        return scores <= thresholds[:, None], np.isinf(thresholds)
    all_possible = not table.supports(confidence)
    sets = label_sets(p_values, confidence) | all_possible
    unseen = label_sets(p_unseen, confidence) | all_possible
    return sets, unseen


def make_regions(table: CalibratedTable, confidence: float) -> Regions:
    """Return the intervals at a level; the whole line where there is no prediction."""
    values = table.unlabelled.values
    unit = table.scoring.unit
    ends = np.tile([-np.inf, np.inf], (len(values), 1))
    if not table.supports(confidence):
        return Regions.from_intervals(ends)
    scales = table.scoring.measure(table.unlabelled)
    if table.weights.overlapping is not None:
        limits = table.thresholds_within_columns(confidence)
        bounded = np.isfinite(limits)
        closed = np.ones(int(bounded.sum()), dtype=bool)
        ends[bounded] = interval_ends(
            limits[bounded],
            closed,
            values[bounded],
            scales[bounded],
            unit,
        )
        return Regions.from_intervals(ends)
    for _, rows, ranks in table.comparisons:
        ends[rows] = intervals(ranks, values[rows], scales[rows], confidence, unit)
    return Regions.from_intervals(ends)


# -------------------------------------------------------------------------------------- p-values


def find_p_values(table: CalibratedTable) -> Array:
    """Return p-values of all classes (m, n_classes), 1 where there is no prediction."""
    scores = table.scoring.measure(table.unlabelled)
    return _largest_p_values(table, scores)


def find_p_unseen(table: CalibratedTable) -> Array:
    """Return the p-value of a class that no label shows, whose score is infinite, shape (m,)."""
    n_rows = len(table.unlabelled.values)
    if table.weights.kind == CLASSES:
        return np.zeros(n_rows)
    if table.weights.overlapping is not None:
        return _largest_p_values(table, np.full((n_rows, 1), np.inf))[:, 0]
    p_values = np.ones(n_rows)
    for _, rows, ranks in table.comparisons:
        p_values[rows] = ranks.p_values(np.full(int(rows.sum()), np.inf))
    return p_values


def _largest_p_values(table: CalibratedTable, scores: Array) -> Array:
    """Return p-values of scores (m, k): the largest, where several columns have categories."""
    if table.weights.overlapping is None:
        return _p_values_by_part(table, scores, table.comparisons)
    within = []
    for comparisons in table.comparisons_within_columns:
        within.append(_p_values_by_part(table, scores, comparisons))
    return np.max(within, axis=0)


def _p_values_by_part(
    table: CalibratedTable, scores: Array, comparisons: list[Comparison]
) -> Array:
    """Return p-values of scores (m, k), each row compared with the calibration rows of its part."""
    shares = None
    if table.by_shares:
        shares = table.weights.shares
    p_values = np.ones(scores.shape)
    for calibration, rows, ranks in comparisons:
        codes = None
        if table.by_class or table.by_shares:
            codes = table.labels[calibration]
        p_values[rows] = class_p_values(ranks, scores[rows], codes, shares)
    return p_values


# ------------------------------------------------------------------------- values of another fit


def name_values(reply: RawPrediction, classes: AnyArray | None) -> AnyArray:
    """Return predictions as numbers, NaN where there is none, or as classes, None there."""
    if classes is None:
        return np.where(reply.given, reply.values, np.nan)
    names = classes[np.where(reply.given, reply.values, 0).astype(int)]
    if not reply.given.all():
        names = names.astype(object)
        names[~reply.given] = None
    return names


def with_values(
    answer: Answer, values: AnyArray, status: AnyArray, errors: Array | None, chances: Array | None
) -> Answer:
    """Return an answer with better values; its intervals or sets are extended to contain them."""
    # A larger interval contains the truth no less often.
    answer = replace(
        answer,
        values=values,
        status=status,
        standard_errors=errors,
        probabilities=chances,
    )
    p_values = answer.p_values
    if p_values is not None and answer.classes is not None:
        codes = class_codes(values, answer.classes)
        predicted = p_values[np.arange(len(codes)), np.maximum(codes, 0)]
        credibility = np.where(codes >= 0, predicted, p_values.max(axis=1))
        confidence = confidence_in(codes, p_values, answer.p_unseen)
        answer = replace(answer, confidence=confidence, credibility=credibility)
    return holding_values(answer)


def confidence_in(codes: AnyArray, p_values: Array, p_unseen: Array | None = None) -> Array:
    """Return the highest level at which all classes except the predicted one are ruled out.

    Shapes: codes (m,), the predicted classes, and p_values (m, n_classes).
    """
    others = p_values.copy()
    predicted = np.where(codes >= 0, codes, p_values.argmax(axis=1))
    others[np.arange(len(others)), predicted] = 0.0 if p_unseen is None else p_unseen
    return np.asarray(1.0 - others.max(axis=1), dtype=float)


def holding_values(answer: Answer) -> Answer:
    """Return the answer with every value in its interval or set.

    The status is "unusual" where no class was possible.
    """
    if answer.regions is not None:
        known = np.where(answer.status == "unreached", np.nan, answer.values).astype(float)
        return answer.holding(known)
    if answer.label_sets is None or answer.classes is None:
        return answer
    codes = class_codes(answer.values, answer.classes)
    sets = _sets_with(answer.label_sets, codes)
    further = []
    for other in answer.further:
        assert other.label_sets is not None
        further.append(replace(other, label_sets=_sets_with(other.label_sets, codes)))
    unusual = ~answer.label_sets.any(axis=1) & (answer.status == "answered")
    status = np.where(unusual, "unusual", answer.status)
    return replace(answer, label_sets=sets, status=status, further=tuple(further))


def _sets_with(label_sets: Mask, codes: AnyArray) -> Mask:
    """Return sets (m, n_classes) that hold the class of each row, if it has one: codes (m,)."""
    known = np.flatnonzero(codes >= 0)
    sets = label_sets.copy()
    sets[known, codes[known]] = True
    return sets
