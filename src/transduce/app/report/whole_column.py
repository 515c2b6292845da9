"""The part of a report about the column as a whole.

Its mean, or the shares of its classes, by groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from transduce.app.estimating import PredictedColumn, answer_questions, propose_groups
from transduce.app.estimating.answers import Answered
from transduce.app.estimating.groups import read_groups
from transduce.app.estimating.questions import Question, read_question
from transduce.app.estimating.words import (
    Line,
    first_sentence,
    lines_to_read,
    plan_sentence,
    sentences_about,
)
from transduce.app.report.filled_column import FilledColumn
from transduce.app.report.jsonable import escape_text, json_name, to_json
from transduce.core.types import ColumnName, JsonObject
from transduce.core.words import in_a_sentence

LEVEL = 0.95
MOST_CLASSES = 12  # whose shares are told
MOST_COLUMNS = 20  # to choose from on a page
MOST_GROUPS = 12  # of such a column
NUMBERS = (
    *("estimate", "lower", "upper", "kind", "n_labels", "labels_alone"),
    *("labels_alone_lower", "labels_alone_upper", "worth", "labels_for_half", "note"),
)


def summarize_whole(filled: FilledColumn) -> JsonObject | None:
    """Return estimates of the whole column, by groups too.

    None if nothing was filled, or nothing can be asked. Groups are those of the columns that
    `filled.by` names; if it names none, of the one with 2 to 12 values whose predictions differ
    most.
    """
    column = filled.predicted
    if column is None:
        if not filled.why_unasked:
            return None
        return {"why": escape_text(filled.why_unasked), "tables": [], "next": ""}
    try:
        tables = _ask_tables(column, filled.by)
    except ValueError as error:
        return {"why": escape_text(in_a_sentence(error)), "tables": [], "next": ""}
    answered = [answer for table in tables for answer in table.answered]
    return {
        "why": "",
        "level": LEVEL,
        "tables": [_plain_table(column, table) for table in tables],
        "first": escape_text(first_sentence(column, answered)),
        "sentences": to_json(
            sentences_about(column, answered, level=LEVEL, joint=False, can_ask=False)
        ),
        "next": escape_text(plan_sentence(column, answered)),
    }


def tables_by_column(filled: FilledColumn) -> list[JsonObject]:
    """Return the mean, or the share of a class, by every column with few groups, of some columns.

    Those of a page on which a person chooses a column. There are none where nothing can be asked.
    """
    column = filled.predicted
    if column is None or column.shares is not None:
        return []
    try:
        _ask_tables(column)
    except ValueError:  # `summarize_whole` says why, such as labels below a limit
        return []
    tables: list[JsonObject] = []
    for name in list(column.frame.columns):
        if name == column.name or len(tables) == MOST_COLUMNS:
            continue
        try:
            groups = read_groups(column.frame, name, case_sensitive=column.case_sensitive)
        except (ValueError, TypeError):  # too many groups, or cells that cannot be hashed
            continue
        if 2 <= len(groups.names) <= MOST_GROUPS:
            with suppress(ValueError):  # a group in which nothing can be told
                asked = _ask_tables(column, [name])
                tables.append(_plain_table(column, asked[1]))
    return tables


@dataclass(frozen=True)
class AnsweredTable:
    """What was asked of the whole column, or of the groups of another one."""

    by: ColumnName | None  # the column of the groups
    answered: list[Answered]

    @property
    def is_share(self) -> bool:
        """Whether shares of classes were asked for."""
        return self.answered[0].question.what == "share"

    def title(self, name: ColumnName) -> str:
        """Return what was asked of a column, in words."""
        if self.is_share and self.by is None:
            return f"Share of each class of {name}"
        question = self.answered[0].question.in_words(name)
        question = f"{question[0].upper()}{question[1:]}"
        if self.by is None:
            return question
        return f"{question}, by {self.by}"

    def group_of(self, answer: Answered, line: Line) -> Any:
        """Return what a line is about: a class where these are compared, else a group."""
        if self.is_share and self.by is None:
            return str(answer.question.of)
        return line.group


def _ask_tables(column: PredictedColumn, by: Sequence[ColumnName] = ()) -> list[AnsweredTable]:
    """Return what is asked of the whole column, and of the groups of each column that is named."""
    estimate = "mean" if column.is_numeric else "share"
    overall = answer_questions(column, [read_question(estimate)], level=LEVEL)[:MOST_CLASSES]
    tables = [AnsweredTable(None, overall)]
    if column.shares is not None:
        return tables
    if not by:
        sampled = None
        if column.sample is not None:
            sampled = column.sample.rows
        proposed = propose_groups(column.frame, column.name, column.predictions, sampled)
        by = [] if proposed is None else [proposed]
    for name in by:
        question = Question("mean", by=name)
        if not column.is_numeric:
            question = Question("share", of=_telling_class(overall), by=name)
        by_group = answer_questions(column, [question], level=LEVEL)
        tables.append(AnsweredTable(name, by_group))
    return tables


def _telling_class(overall: list[Answered]) -> Any:
    """Return the class whose share is told by groups.

    Of two the rarer one, else the most frequent.
    """
    if len(overall) == 2:
        return overall[1].question.of
    return overall[0].question.of


def _plain_table(column: PredictedColumn, table: AnsweredTable) -> JsonObject:
    """Return one table as JSON can hold it: numbers, and as they are read."""
    lines = []
    for answer in table.answered:
        lines_in_words = lines_to_read(column, [answer])
        for (name, numbers), line in zip(answer.frame.iterrows(), lines_in_words, strict=True):
            group = table.group_of(answer, line)
            lines.append(
                {
                    "group": json_name(group) if group else "",
                    "name": json_name(name),
                    **{key: to_json(numbers[key]) for key in NUMBERS},
                    "text": line.estimate,
                    "interval": line.interval,
                    "worth_text": line.worth,
                }
            )
    return {
        "title": escape_text(table.title(column.name)),
        "by": None if table.by is None else json_name(table.by),
        "is_share": table.is_share,
        "lines": lines,
    }


def frame_to_paint(table: JsonObject) -> pd.DataFrame:
    """Return the lines of a table as a forest plot takes them."""
    frame = pd.DataFrame(table["lines"])
    numeric = pd.api.types.is_numeric_dtype(frame["estimate"])
    for end in ("lower", "labels_alone_lower"):
        if numeric:
            frame[end] = frame[end].astype(float).fillna(-np.inf)
    for end in ("upper", "labels_alone_upper"):
        if numeric:
            frame[end] = frame[end].astype(float).fillna(np.inf)
    names = [line["group"] or "all rows" for line in table["lines"]]
    return frame.set_axis(pd.Index(names))
