"""What to know of an estimate, in a sentence.

Why nothing can be said, and what would change that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from transduce.app.estimating.groups import Groups, read_regressors
from transduce.app.estimating.predicted import PredictedColumn
from transduce.app.estimating.questions import Question
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.words import counted
from transduce.population.linear import adjust_predictions, far_predictions, share_unseen
from transduce.population.regressions import hinges_of_regression
from transduce.population.sample import PartlyKnown
from transduce.population.skewness import skewness_of, skewness_of_all

MOST_NAMED = 5  # rows
HARDLY = 1.05  # times the labels: predictions that are worth no more do not help

LEVEL = 0.95  # at which errors are compared with those that an interval allows for
MOVED_BY_ONE_VALUE = ("mean", "total", "difference")
# Squared skewness for each label of a mean. On ten real tables, predicted by `fill`, intervals at
# 95 % held 94 to 98 % of means of groups below the first, and 90 % above it. The second is that of
# the labels as they are, and l if one of l is far out: then they do not tell how long the tail is.
MOST_SKEWED = 8.0
ONE_FAR_OUT = 0.6
FEW_DECIDE = (
    "A few labels are so far out that the interval may miss more often than it says: ask for the "
    "median, or label every row that is likely to be as far out"
)
TOO_FEW = "The labels are too few, or too alike, for this question: label more rows."
TOO_FEW_FOR_SLOPE = (
    "The labels are too few, or too alike, for this question, or the columns tell two classes "
    "apart without an error, so that no slope is finite: label more rows, or ask for shares by "
    "group."
)
MOST_LARGEST = 3  # rows that are named as likely to be far out


@dataclass(frozen=True)
class Tail:
    """How far out the errors of the predictions may be, seen from the labels of the sample.

    Attributes
    ----------
    skewness : float
        Of all rows, as the labels suggest; its sign says on which side the tail is.
    of_labels : float
        Of the labels themselves.
    """

    skewness: float
    of_labels: float

    def decides(self, n_labels: int) -> bool:
        """Return whether a few rows decide a mean of which there are so many labels."""
        of_all = self.skewness**2 > MOST_SKEWED * n_labels
        return of_all or self.of_labels**2 > ONE_FAR_OUT * n_labels


def find_tail(column: PredictedColumn) -> Tail:
    """Return how skewed errors are at the labels of the sample, for the predictions as they count.

    Each is multiplied by the factor that an estimate gives it.
    """
    if column.sample is None:
        return Tail(0.0, 0.0)
    errors = column.numbers
    if column.predictions is not None:
        partly = PartlyKnown(errors, column.predictions, column.sample)
        errors = errors - adjust_predictions(partly, np.ones(len(errors))).predictions
    of_sample = errors[column.sample.rows]
    if are_negligible(of_sample, column.numbers[column.sample.rows]):
        return Tail(0.0, 0.0)
    return Tail(skewness_of_all(of_sample), skewness_of(of_sample))


def are_negligible(errors: Array, labels: Array) -> bool:
    """Return whether errors are smaller than those that an interval allows for unseen rows.

    How far out some of them lie then hardly matters: see `LinearEstimate.no_surer_than_a_sample`.
    """
    allowed = share_unseen(len(labels), LEVEL)
    return bool(np.var(errors) < allowed * np.var(labels))


def name_far_rows(column: PredictedColumn, rows: Mask, tail: Tail) -> str:
    """Return the sentence on labels that decide, with the rows likely to be as far out.

    Those are the unlabelled rows whose predictions are the farthest on the side of the tail.
    """
    assert column.predictions is not None
    unlabelled = np.flatnonzero(column.target.missing & rows & column.asked)
    predicted = column.predictions[unlabelled]
    if not len(unlabelled) or not np.ptp(predicted) > 0.0:
        return f"{FEW_DECIDE}."
    farthest = np.argsort(-np.sign(tail.skewness) * predicted, kind="stable")[:MOST_LARGEST]
    named = ", ".join(str(column.names[row]) for row in unlabelled[farthest])
    return f"{FEW_DECIDE}, such as {named}."


def add_notes(
    frame: pd.DataFrame,
    column: PredictedColumn,
    question: Question,
    groups: Groups | None,
    level: float,
) -> pd.DataFrame:
    """Return estimates with a column ``note``: a sentence, or nothing."""
    hinges: dict[Any, AnyArray] = {}
    if question.what == "regression" and question.outcome is None:
        regressors = read_regressors(
            column.frame, question.regressors, case_sensitive=column.case_sensitive
        )
        values, predictions = column.values_and_predictions()
        hinges = hinges_of_regression(
            values,
            regressors,
            predictions,
            logistic=not column.is_numeric,
            sample=column.sample,
        )
    tail = Tail(0.0, 0.0)
    if column.is_numeric and question.what in MOVED_BY_ONE_VALUE:
        tail = find_tail(column)
    notes = []
    for name, line in frame.iterrows():
        rows = rows_of_line(name, question, groups, len(column.target.missing))
        note = _note(line, column, rows, hinges.get(name), level)
        if line["kind"] == "none" and note == TOO_FEW and question.what == "regression":
            note = TOO_FEW_FOR_SLOPE
        if line["kind"] == "approximate" and tail.decides(line["n_labels"]):
            is_helped = line["worth"] > HARDLY * line["n_labels"]
            named = name_far_rows(column, rows, tail) if is_helped else f"{FEW_DECIDE}."
            note = f"{named} {note}".strip()
        notes.append(note)
    return frame.assign(note=notes)


def rows_of_line(
    name: Any,
    question: Question,
    groups: Groups | None,
    n_rows: int,
) -> Mask:
    """Return the rows (n,) that a line is about."""
    if groups is None or question.what == "difference":
        return np.ones(n_rows, dtype=bool)
    return np.asarray(groups.of_rows == name)


def _note(
    line: pd.Series, column: PredictedColumn, rows: Mask, hinges: AnyArray | None, level: float
) -> str:
    if line["kind"] == "none":
        return _why_nothing(line, column, rows, hinges, level)
    sample = column.sample
    if not np.any(column.target.missing & rows):
        return "Every label is known."
    if np.isinf(line["lower"]) or np.isinf(line["upper"]):
        if np.isinf(line["upper"]):
            end = "upper"
        else:
            end = "lower"
        return f"There is no {end} end: with so few labels the value may lie beyond all of them."
    if column.predictions is None:
        return "Labels alone: there are too few to tell how good predictions are."
    if sample is not None and sample.sensitivity > 1.0:
        return ""
    if line["kind"] == "approximate" and line["worth"] <= HARDLY * line["n_labels"]:
        return "Predictions do not help here: the labels alone say as much."
    return ""


def name_rows(column: PredictedColumn, rows: AnyArray) -> str:
    """Return the names of the first of some rows, and whether there are others."""
    named = ", ".join(str(column.names[row]) for row in rows[:MOST_NAMED])
    if len(rows) > MOST_NAMED:
        named += " and others"
    return named


def find_far(column: PredictedColumn, rows: Mask) -> AnyArray:
    """Return the unlabelled ones of some rows whose predicted numbers lie far out."""
    if not column.is_numeric or column.predictions is None or column.sample is None:
        return np.zeros(0, dtype=int)
    partly = PartlyKnown(column.numbers, column.predictions, column.sample)
    return far_predictions(partly, rows & column.asked)


def _why_nothing(
    line: pd.Series, column: PredictedColumn, rows: Mask, hinges: AnyArray | None, level: float
) -> str:
    """Return why nothing is promised, and what would change that."""
    if column.doubt:
        return column.doubt
    if hinges is not None and len(hinges):
        return (
            f"{counted(len(hinges), 'unlabelled row decides', 'unlabelled rows decide')} this "
            "answer, and a sample without them cannot know it: label "
            f"{name_rows(column, hinges)}, then ask again."
        )
    sample = column.sample
    assert sample is not None
    n_lost = sample.n_lost(rows)
    if n_lost:
        return (
            f"{counted(n_lost, 'row was', 'rows were')} drawn to be labelled and "
            "have no label, perhaps because of the value: label them, then ask again."
        )
    if column.is_in_doubt(level):
        return (
            f"The labels are worth {column.effective_labels:.0f} of equal weight, since rows with "
            "and without a label differ: too few to promise anything. Draw rows with `transduce "
            "draw` and label them."
        )
    if line["n_labels"] < 2:
        return f"{counted(int(line['n_labels']), 'label')} here: label at least two of these rows."
    far = find_far(column, rows)
    if len(far):
        them = "it" if len(far) == 1 else "them"
        return (
            f"{counted(len(far), 'prediction is', 'predictions are')} far beyond those of all "
            "labelled rows, and would decide this answer: check "
            f"{name_rows(column, far)}, or label {them}, then ask again."
        )
    return TOO_FEW
