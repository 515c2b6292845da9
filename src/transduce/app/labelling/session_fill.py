"""A table filled with the answers of a labelling session, and its report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from transduce.app.filling import FillResult
from transduce.app.filling.answer_columns import AnswerColumns, answer_as_asked
from transduce.app.filling.class_calibration import ClassCalibration
from transduce.app.filling.diagnostics import row_map
from transduce.app.filling.hidden_labels import NO_FOLDS, SCORERS, score
from transduce.app.filling.next_labels import NextLabels, next_rows
from transduce.app.filling.options import Options
from transduce.app.filling.sources import FrameSource
from transduce.app.report import FilledColumn, Summary, render_html, summarize
from transduce.app.report.filled_column import RowCounts
from transduce.app.tables.columns import Target
from transduce.app.tables.features import Features, vectorize
from transduce.app.tables.notes import About, notes_about
from transduce.app.tables.row_names import naming_rows
from transduce.conformal.calibrated_answer import with_values
from transduce.core.answer import Answer, Regions
from transduce.core.computing import stage
from transduce.core.guarantee import Guarantee
from transduce.core.types import AnyArray


@dataclass(frozen=True, eq=False)
class PageAnswers:
    """Answers of the labelling page, and what is known of them."""

    values: AnyArray  # (n,) at all rows: numbers, or classes; NaN or None where there is none
    source: str  # who answered
    judged: pd.DataFrame | None  # ``true`` and ``answered`` at random draws; None if too few
    guarantee: Guarantee
    origins: str  # how the labels came about, as a sentence
    to_do: str  # what to do next, as a sentence
    again: str  # the command that goes on; "" if there is none
    notes: list[str]  # what the user should know


@dataclass(frozen=True, eq=False)
class SessionFill:
    """A table filled with the answers of a labelling session."""

    source: FrameSource  # the table with all labels of the session
    name: str  # of the table
    options: Options
    answers: PageAnswers
    calibrated: FillResult | None  # the fill whose intervals or sets the answers have

    @property
    def labels(self) -> Target:
        """The labels of the session, and those of the table."""
        return self.source.labels

    @property
    def guarantee(self) -> Guarantee:
        """What is guaranteed of the answers."""
        guarantee = self.answers.guarantee
        if guarantee.limits:
            return guarantee
        return guarantee.limited(self.options.limits_with(self.labels.limits))

    @cached_property
    def answer(self) -> Answer:
        """The answers at the rows without a label."""
        answer = answer_with_intervals(self.labels, self.answers, self.calibrated)
        answer = replace(answer, guarantee=self.guarantee)
        return answer_as_asked(answer, self.options, self.labels.limits, ClassCalibration())

    @property
    def judged(self) -> pd.DataFrame:
        """``true`` and ``answered`` at random draws; empty if these are too few."""
        if self.answers.judged is None:
            return NO_FOLDS
        return self.answers.judged

    @cached_property
    def new(self) -> pd.DataFrame:
        """The new columns of the filled table."""
        calibration = ClassCalibration()
        if self.labels.task == "classification":
            calibration = ClassCalibration.of_hidden_labels(self.judged, self.labels.n_labels)
        columns = AnswerColumns(
            self.options,
            calibration,
            self.labels.known,
            same_types=self.calibrated is not None and self.calibrated.seen.is_sample,
        )
        return columns.make(self.labels, self.answer, self.source.frame.index)

    @cached_property
    def _features(self) -> Features:
        """The features of the rows, in the order of the table, where no fill has read them."""
        options = self.options
        with naming_rows(self.source.row_names):
            return vectorize(
                options.clean(self.source.frame),
                self.labels.name,
                text=options.text,
                number=options.number,
                id=options.id,
                random_state=options.random_state,
                ignore=options.no_features(self.labels.name),
                folder=options.pictures or self.source.pictures,
                **options.reading,
            )

    def _columns(self) -> pd.DataFrame:
        """Return what was done to each column; one that marks the draws is not in the table."""
        if self.calibrated is None:
            return self._features.columns
        columns = self.calibrated.columns
        return columns[columns["name"].isin(self.source.frame.columns)]

    def _map(self) -> pd.DataFrame | None:
        """Return the place of every row along two vectors of its neighbour graph."""
        if self.calibrated is None:
            return row_map(self._features.matrix, self.options.random_state)
        return self.calibrated.map

    def _advice(self) -> str:
        """Return which rows would help most; "" where the fit saw a sample of the rows."""
        if self.calibrated is None:
            matrix = self._features.matrix
        elif self.calibrated.seen.is_sample:
            return ""
        else:
            fit = self.calibrated.fit
            matrix = np.empty_like(fit.features.matrix)
            matrix[self.calibrated.seen.places_of(np.arange(len(matrix)))] = fit.features.matrix
        missing = self.labels.missing
        rows = next_rows(matrix, missing, self.answer, self.options.random_state)
        return str(NextLabels(tuple(rows), None, "errors"))

    def _members(self) -> pd.DataFrame:
        """Return one line for who answered."""
        task = self.labels.task
        member = {
            "name": self.answers.source,
            "weight": 1.0,
            "score": score(task, self.judged),
            "scorer": SCORERS[task],
            "seconds": np.nan,
            "note": "",
        }
        return pd.DataFrame([member])

    @property
    def reported(self) -> FilledColumn:
        """All that a report reads, computed now."""
        miscoverage = None
        notes = notes_about(About.ANSWERS, self.answers.notes)
        notes += notes_about(About.LABELS, self.labels.notes, self.labels.name)
        if self.calibrated is not None:
            miscoverage = self.calibrated.miscoverage
            on_rows = self.calibrated.seen.notes(self.calibrated.fit)
            notes += notes_about(About.ROWS, on_rows)
        advice = self._advice()
        frame = self.source.frame
        return FilledColumn(
            frame=frame,
            labels=self.labels,
            answer=self.answer,
            counts=RowCounts.count_rows(len(frame), self.answer),
            row_names=range(1, len(frame) + 1),
            confidence=self.options.level,
            certainty=float(self.options.certainty),
            options=self._options_as_json(),
            again=self.answers.again,
            columns=self._columns(),
            members=self._members(),
            out_of_fold=self.judged,
            notes=notes,
            probability=self._probability(),
            miscoverage=miscoverage,
            map=self._map(),
            advice=advice,
            has_rows_to_label=bool(advice),
            has_draws=True,
            origins=self.answers.origins,
            to_do=self.answers.to_do,
            is_session=True,
        )

    def _probability(self) -> AnyArray | None:
        """Return the probability that each answered class is right; None of numbers."""
        name = f"{self.labels.name}_probability"
        if name not in self.new.columns:
            return None
        return self.new[name].to_numpy(dtype=float)[self.answer.rows]

    def _options_as_json(self) -> dict[str, Any]:
        """Return the options as plain values, with the column and the table."""
        return {
            "source": self.name,
            "target": self.labels.name,
            **self.options.as_json(),
            "task": self.labels.task,
        }

    def summary(self) -> Summary:
        """Return every number and sentence of the report, as one plain dictionary."""
        return summarize(self.reported)

    def report(self) -> str:
        """Return the report as one self-contained HTML page."""
        with stage("report"):
            return render_html(self.summary())


def answer_with_intervals(
    labels: Target, answers: PageAnswers, calibrated: FillResult | None
) -> Answer:
    """Return answers with the intervals, or sets, of a calibrated fill, extended to the values.

    Rows that it did not answer may have any value.
    """
    rows = np.flatnonzero(labels.missing)
    values = answers.values[rows]
    is_missing = pd.isna(values)
    status = np.where(is_missing, "unreached", "answered")
    answer = Answer(rows, values, status, answers.guarantee)
    if labels.task == "regression":
        answer = replace(answer, regions=_intervals(rows, calibrated))
    else:
        answer = _with_sets(answer, labels, values[~is_missing], calibrated)
    return with_values(answer, values, status, None, None)


def _intervals(rows: AnyArray, calibrated: FillResult | None) -> Regions:
    """Return the intervals of a calibrated fill at rows, and the whole line elsewhere."""
    ends = np.tile([-np.inf, np.inf], (len(rows), 1))
    if calibrated is not None and calibrated.raw_answer.regions is not None:
        at, places = _common_rows(rows, calibrated.raw_answer)
        ends[at] = calibrated.raw_answer.regions.hull()[places]
    return Regions.from_intervals(ends)


def _with_sets(
    answer: Answer, labels: Target, values: AnyArray, calibrated: FillResult | None
) -> Answer:
    """Return an answer with the sets of a calibrated fill, and all classes elsewhere."""
    known: list[Any] = []
    if calibrated is not None and calibrated.raw_answer.classes is not None:
        known = calibrated.raw_answer.classes.tolist()
    classes = np.array(sorted({*labels.known.tolist(), *values.tolist(), *known}))
    p_values = np.ones((len(answer), len(classes)))
    label_sets = np.ones((len(answer), len(classes)), dtype=bool)
    if calibrated is not None:
        fitted = calibrated.raw_answer
        at, places = _common_rows(answer.rows, fitted)
        if fitted.p_values is not None and fitted.label_sets is not None:
            # A class that has got its first label since is in no set.
            p_values[at] = 0.0
            label_sets[at] = False
            where = np.ix_(at, np.searchsorted(classes, known))
            p_values[where] = fitted.p_values[places]
            label_sets[where] = fitted.label_sets[places]
    return replace(answer, p_values=p_values, label_sets=label_sets, classes=classes)


def _common_rows(rows: AnyArray, answer: Answer) -> tuple[AnyArray, AnyArray]:
    """Return which rows an answer has too, and their places in it."""
    at = np.flatnonzero(np.isin(rows, answer.rows))
    return at, np.searchsorted(answer.rows, rows[at])
