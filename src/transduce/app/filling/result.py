"""What was fitted, and a filled table: everything a report, a file or a user may want to know of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pandas as pd

from transduce.app.estimating import PredictedColumn, estimate_of
from transduce.app.filling.answer_columns import AnswerColumns, answer_as_asked, columns_for_file
from transduce.app.filling.diagnostics import Diagnosis, NextLabels, RightChance, Told
from transduce.app.filling.forecast import (
    as_interval,
    chosen_by_class,
    join_guarantees,
    settle,
)
from transduce.app.filling.machine_fit import MachineFit
from transduce.app.filling.options import FIT, OPTIONS, QUESTIONS, Options, Questions, described
from transduce.app.filling.plan import Plan
from transduce.app.filling.predicted import predict_column
from transduce.app.filling.sources import FrameSource, Source
from transduce.app.report import render_html, render_json, summarize
from transduce.app.tables.columns import Target, check_names, notes_on_numbers
from transduce.app.tables.features import Encoder, Features
from transduce.app.tables.files import format_named_by
from transduce.app.tables.numbers import without
from transduce.app.tables.row_hashes import content_order, row_hashes
from transduce.conformal import (
    ClassShares,
    Exchangeability,
    exchangeability_test,
)
from transduce.conformal.calibrated import (
    CalibratedFit,
    OutsideCalibration,
    bound_together,
    calibrate_outside,
)
from transduce.conformal.miscoverage import Law
from transduce.conformal.protocol import Calibrated
from transduce.core.answer import Answer
from transduce.core.checks import check_type
from transduce.core.computing import stage
from transduce.core.files import write_text
from transduce.core.guarantee import CountBound, Guarantee, Verdict
from transduce.core.types import AnyArray, Array
from transduce.core.validation import class_codes
from transduce.core.words import percent
from transduce.model_selection.fit_and_predict import FittedEstimator
from transduce.model_selection.own_models import TableRows
from transduce.population.draws import draw_rows

MOST_COMPARED = 1000  # calibration rows, and later ones, whose features are compared


@dataclass(frozen=True, eq=False)
class TableFit:
    """What was fitted to the rows of a table, and its answers at those without a label."""

    frame: pd.DataFrame
    target: Target
    features: Features
    X: Any  # what estimators are given: the features, with the columns themselves where one asks for them
    plan: Plan
    model: Any  # what intervals or sets come from: a `ConformalTransducer`, or a confidence machine
    values_model: Any  # what values come from, fitted to all labels
    order: AnyArray  # positions of the rows that it was fitted to
    answer: Answer  # before anything is asked of it
    compared: Exchangeability | None  # how labelled and unlabelled rows compare
    seconds: float
    notes: list[str]
    shares: ClassShares | None = None  # of the classes, where labels were chosen by their class

    @property
    def groups(self) -> AnyArray | None:
        """The group of each row, which no fold may split; None if there are none."""
        return self.calibrated.groups

    @cached_property
    def calibrated(self) -> Calibrated:
        """What the model answers about its intervals or sets."""
        if not self.plan.by_row:
            calibrated: Calibrated = self.model.calibrated
            return calibrated
        guarantee = as_interval(self.model.guarantee_)
        if self.shares is not None:
            guarantee = chosen_by_class(guarantee)
        return MachineFit(guarantee)

    def measure(self, rows: AnyArray) -> Array:
        """Return how much each labelled row stands for the unlabelled ones where quality is measured, shape (k,)."""
        if self.shares is not None:
            return self.shares.weights(self.target.labels[rows])
        return self.calibrated.measure(rows)

    def guarantee(self, certainty: float, tolerance: float | None) -> Guarantee:
        """Return what is guaranteed of the answers."""
        level = float(self.model.confidence)
        guarantee = self.calibrated.guarantee_at(level, certainty, tolerance)
        if self.compared is not None:
            guarantee = guarantee.doubted(self.compared.verdict)
        return settle(guarantee, self.target)


def estimator_rows(
    encoder: Encoder, frame: pd.DataFrame, options: Options, known: Any = None
) -> Any:
    """Return what estimators are given of rows, whose features may be known."""
    frame = without(frame, options.missing)
    matrix = encoder.transform(frame) if known is None else known
    if options.features == "encoded":
        return matrix
    return TableRows(matrix, frame[encoder.columns].reset_index(drop=True))


@dataclass(frozen=True, eq=False)
class FittedFill:
    """A fitted model of one column, and labelled rows that it has not seen, which calibrate it for all other rows.

    Examples
    --------
    >>> from transduce.app.filling import fit_fill
    >>> table = pd.DataFrame({"size": range(200), "price": [2.0 * n if n % 3 else None for n in range(200)]})
    >>> fit_fill(table, "price", method="ridge").guarantee_of_later(1000).outside.at_most < 250
    True
    """

    labels: AnyArray  # those that were fitted to
    reading: Target  # how the cells of the target are read
    encoder: Encoder  # turns the columns of any row into features
    outside: OutsideCalibration  # answers any row that was not fitted to
    chance: RightChance  # how probable classes are
    options: Options  # what was asked for
    held: Array  # (c, d) features of some calibration rows, with which later rows are compared
    verdict: Verdict | None = None  # how labelled and unlabelled rows compare

    @classmethod
    def of(
        cls, fit: TableFit, chance: RightChance, held: FrameSource, options: Options
    ) -> FittedFill:
        """Return what a fit to a sample makes possible, calibrated by rows that were kept from it."""
        known, kept, classes = fit.target.known, held.labels.known, None
        shown = known
        if fit.target.task == "classification":
            classes = np.array(sorted({*shown.tolist(), *kept.tolist()}))
            shown, kept = class_codes(shown, classes), class_codes(kept, classes)
        encoder, n_rows = fit.features.encoder, len(fit.target.labels)
        kept_rows = estimator_rows(encoder, held.frame, options)
        outside = calibrate_outside(
            FittedEstimator(fit.values_model, classes, np.arange(n_rows), n_rows),
            estimator_rows(encoder, fit.frame.iloc[:1000], options),
            shown,
            kept_rows[~held.labels.missing],
            kept,
            shares=None if fit.shares is None or classes is None else fit.shares.at(classes),
            empty=kept_rows[held.labels.missing],
        )
        weights = replace(outside.table.weights, assumption=options.design.assumption)
        outside = replace(
            outside, table=replace(outside.table, by_class=options.by_class, weights=weights)
        )
        verdict = None if fit.compared is None else fit.compared.verdict
        some = kept_rows[np.random.default_rng(0).permutation(len(kept_rows))[:MOST_COMPARED]]
        asked = options.for_other_rows()
        return cls(known, fit.target, encoder, outside, chance, asked, some, verdict)

    def below(self, folder: str | Path) -> FittedFill:
        """Return the same model for rows of a table in another folder, below which its pictures are."""
        return replace(self, encoder=self.encoder.below(folder))

    def unasked(self, frame: pd.DataFrame, rows: AnyArray | None = None) -> Answer:
        """Return the answers at rows, which are at these places of their table, before anything is asked of them."""
        X = estimator_rows(self.encoder, frame, self.options)
        return self.outside.answer(X, float(self.options.confidence), rows)

    def answer_at(self, frame: pd.DataFrame, rows: AnyArray | None = None) -> Answer:
        """Return the answers at rows, whether or not they have a label; `rows` says where they are in their table."""
        answer = self.unasked(frame, rows)
        return answer_as_asked(answer, self.options, self.reading.limits, self.chance)

    def new_columns(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the new columns of rows that were not fitted to, of the same types, whatever the rows.

        Parameters
        ----------
        frame : pandas.DataFrame
            With the target, which is empty where an answer is wanted, or without it.
        """
        check_type("frame", frame, pd.DataFrame, "a pandas frame")
        frame = without(frame, self.options.missing)
        labels = self.reading.read(frame)
        rows = np.flatnonzero(labels.missing)
        columns = AnswerColumns(self.options, self.chance, self.labels, same_types=True)
        return columns.make(labels, self.answer_at(frame.iloc[rows], rows), frame.index)

    def columns_for_file(self, new: pd.DataFrame) -> pd.DataFrame:
        """Return new columns as a file of text has them: with the digits of all labels."""
        known = np.concatenate([self.labels, self.outside.table.labels])
        return columns_for_file(new, self.reading, known)

    def notes_on_later(self, frame: pd.DataFrame) -> list[str]:
        """Return notes on cells of later rows: not read, limits, categories that the fit did not see."""
        frame = without(frame, self.options.missing)
        rows = np.flatnonzero(self.reading.read(frame).missing)
        return self.encoder.notes(frame.iloc[rows], rows)

    def compare_later(self, frame: pd.DataFrame) -> Exchangeability:
        """Return how later rows, 1000 of them at most, compare with the calibration rows by their features."""
        known = without(frame, self.options.missing)
        columns = [name for name in self.encoder.columns if name in known.columns]
        drawn = content_order(row_hashes(known[columns]))[:MOST_COMPARED]
        later = known.iloc[drawn]
        features = self.encoder.transform(later)
        held = np.arange(len(self.held) + len(later)) < len(self.held)
        compared = exchangeability_test(np.concatenate([self.held, features]), held)
        return replace(
            compared.named([scale.column for scale in self.encoder.scales]), other="later"
        )

    def guarantee_of_later(
        self,
        n_answered: int,
        n_unreached: int = 0,
        *,
        certainty: float | None = None,
        compared: Exchangeability | None = None,
    ) -> Guarantee:
        """Return what is guaranteed of rows that come later, if they are like the labelled ones.

        Parameters
        ----------
        n_answered, n_unreached : int
            How many have an answer, and how many have none.
        certainty : float, optional
            Of the bounds for all of them together; that of the options by default.
        compared : Exchangeability, optional
            What `compare_later` found. If it saw too few rows to tell, what was found in the table counts.
        """
        verdict, by_class = self.verdict, self.outside.shares is not None
        if compared is not None and not by_class:  # labels by class differ from later rows anyhow
            blind = compared.verdict.p_value is None and verdict is not None and verdict.shifted
            verdict = verdict if blind else compared.verdict
        later = replace(self, verdict=verdict)
        return later.guarantee_of_others(n_answered, n_unreached, certainty=certainty).of_later

    def guarantee_of_others(
        self, n_answered: int, n_unreached: int = 0, *, certainty: float | None = None
    ) -> Guarantee:
        """Return what is guaranteed of the rows of the table that the fit did not see, so many with an answer."""
        options, table = self.options, self.outside.table
        weights = replace(table.weights, verdict=self.verdict)
        outside = replace(self.outside, table=replace(table, weights=weights))
        sure = float(options.certainty) if certainty is None else certainty
        found = outside.guarantee(float(options.confidence), n_answered, sure, options.tolerance)
        found = replace(found, n_unreached=n_unreached)
        return found.limited(options.limits_with(self.reading.limits)).decided_by(
            self.reading.decisive
        )


@dataclass(frozen=True, eq=False, repr=False)
class FillResult:
    """A table whose target column was filled, what is guaranteed of it, and its report.

    Whatever does not touch the fit is asked of the result: `table`, `guarantee_at`, and `ask` for both at once. What
    takes time besides (``members``, ``out_of_fold``, ``relevance``, ``map``, ``advice``) is computed when it is first
    asked for, as by the report; if it cannot be computed, a note says so. ``options`` are what was asked for.

    Examples
    --------
    >>> from transduce import fill
    >>> from transduce.datasets import load_houses
    >>> result = fill(load_houses()[0], "price", method="ridge", guarantee="column")
    >>> result
    FillResult: 250 of 400 cells of 'price' filled (regression, ridge)
    exact if rows were labelled at random: The interval of a row picked at random holds its true value with ...
    >>> bool(result.table(maximum=500_000)["price_upper"].max() <= 500_000)
    True
    """

    fit: TableFit
    source: Source
    options: Options  # what was asked for, as it was given
    labels: Target  # of the rows that are shown
    unasked: Answer  # at these rows, before anything is asked of it
    diagnosis: Diagnosis
    fitted: FittedFill | None = None  # what answers rows that the fit did not see
    rows: AnyArray | None = None  # where in the table the rows of the fit are
    outside: tuple[int, int] = (
        0,
        0,
    )  # rows that the fit did not see with an answer, and without one
    totals: dict[str, int] | None = (
        None  # counts of the whole table, where this shows a sample of it
    )

    @described(QUESTIONS)
    def ask(self, **questions: Unpack[Questions]) -> FillResult:
        """Return the result as it is if other things are asked of it; nothing is fitted again.

        Parameters
        ----------
        OPTIONS
        """
        for name in questions:
            if name in FIT:
                raise TypeError(
                    f"{name!r} is no question to a result, but an option of fill: fill again with it."
                )
        options = Options.read({**vars(self.options), **questions}, questions=True)
        self._check_questions(options)
        if self.fitted is None:
            return replace(self, options=options)
        fitted = replace(self.fitted, options=options.for_other_rows())
        return replace(self, options=options, fitted=fitted)

    def _check_questions(self, options: Options) -> None:
        """Raise an error that says what to do if questions do not suit the labels, or where the rows are."""
        options.check_labels(self.labels)
        if self.fitted is not None and self.task == "regression":
            kept = self.fitted.outside.table.labels
            none_missing = np.zeros(len(kept), dtype=bool)
            options.check_labels(replace(self.labels, labels=kept, missing=none_missing))
        self.source.check_questions(self.options, options)
        check_names(self.shown, self.labels, options.probabilities, options.label_next)

    def keep_labels(self, frame: pd.DataFrame, note: str) -> FillResult:
        """Return the result with labels that rows have got since the fit: these keep them, and have no answer.

        Nothing is fitted again, and what is guaranteed is about all rows that had no label then, as `note` is to say.

        Parameters
        ----------
        frame : pandas.DataFrame
            The same rows, with the labels that were there, and those that came since.
        note : str
            What the user should know of them.
        """
        labels = replace(self.labels.read(frame), notes=self.labels.notes)
        places = np.flatnonzero(labels.missing[self.unasked.rows])
        fit = replace(self.fit, notes=[note, *self.fit.notes])
        return replace(self, fit=fit, labels=labels, unasked=self.unasked.take(places))

    @described(QUESTIONS)
    def table(self, **questions: Unpack[Questions]) -> Any:
        """Return the table with its new columns, as these questions want them.

        Parameters
        ----------
        OPTIONS
        """
        return self.ask(**questions).frame

    def guarantee_at(
        self, *, certainty: float | None = None, tolerance: float | None = None
    ) -> Guarantee:
        """Return what is guaranteed of the answers.

        Parameters
        ----------
        certainty : float, optional
            Of the guarantee for the whole column; 0.95 unless something else was asked for before.
        tolerance : float, optional
            Numbers: bound how many answers are off by more than this.
        """
        certainty = self.options.certainty if certainty is None else certainty
        tolerance = self.options.tolerance if tolerance is None else tolerance
        return self.ask(certainty=certainty, tolerance=tolerance).guarantee

    @cached_property
    def guarantee(self) -> Guarantee:
        """What is guaranteed of all answers."""
        guarantee = self._guarantee
        if guarantee.remedy and self.rows is not None:
            # The fit saw the rows in another order; `transduce draw` draws in that of the table.
            drawn = draw_rows(self.labels.missing, len(guarantee.remedy), 0)
            guarantee = replace(guarantee, remedy=tuple(drawn.tolist()))
        if guarantee.limits:
            return guarantee
        return guarantee.limited(self.options.limits_with(self.labels.limits))

    @property
    def _guarantee(self) -> Guarantee:
        """What is guaranteed without limits, of the rows of a sample and of the others together."""
        certainty, tolerance = float(self.options.certainty), self.options.tolerance
        if self.told is not None:
            return self.told.guarantee
        n_inside, (n_others, n_lost) = len(self.fit.answer), self.outside
        if self.fitted is not None:
            n_others -= self.fitted.outside.table.n_empty  # drawn, and not covered
        if self.fitted is None or n_others + n_lost <= 0:
            return self.fit.guarantee(certainty, tolerance)
        if n_inside == 0 or self.fit.plan.by_row:
            others = self.fitted.guarantee_of_others(n_others, n_lost)
            return replace(others, outside=None, wrong=None) if n_inside else others
        others = self.fitted.guarantee_of_others(n_others, n_lost)
        inside = self.fit.model.guarantee_at(certainty=certainty, tolerance=tolerance)
        outside, wrong = self._bounds_together(n_others)
        return join_guarantees(inside, others, outside, wrong)

    def _bounds_together(self, n_others: int) -> tuple[CountBound | None, CountBound | None]:
        """Return bounds on the rows outside and on wrong answers, of the sample and of the other rows together."""
        assert self.fitted is not None
        certainty, tolerance = float(self.options.certainty), self.options.tolerance
        sample: CalibratedFit = self.fit.model.calibrated
        others = replace(self.fitted.outside.beside(n_others), tolerance=tolerance)
        law, law_of_others = sample.table.law(self.confidence), others.law(self.confidence)
        outside = None
        if law is not None and law_of_others is not None:
            outside = bound_together(law, law_of_others, certainty)
        if sample.table.classes is None and tolerance is None:
            return outside, None
        table = replace(sample.table, tolerance=tolerance)
        wrong = table.wrong_answers(sample.second)
        return outside, wrong.bound_with(others.wrong_answers(None), certainty)

    @cached_property
    def answer(self) -> Answer:
        """The answers at the rows whose label was missing; of a Dask frame and of files, at those that the fit saw."""
        answer = replace(self.unasked, guarantee=self.guarantee)
        chance = RightChance()
        if answer.probabilities is not None:  # only these are calibrated, which takes time
            chance = self.diagnosis.chance
        return answer_as_asked(answer, self.options, self.labels.limits, chance)

    @cached_property
    def new(self) -> pd.DataFrame:
        """The new columns ``<target>_filled``, ``_lower`` and ``_upper`` (or ``_set`` and ``_probability``) and others.

        ``_narrower`` is how much narrower an interval is than one made without features, from 0 to 1;
        ``_confidence`` is the level up to which no other class is possible; ``_status`` is that of the answer.
        """
        label_next = None
        if self.options.label_next:
            label_next = () if self.advice is None else self.advice.rows
        columns = AnswerColumns(
            self.options,
            self.diagnosis.chance,
            self.fit.target.known,
            same_types=self.fitted is not None,
        )
        return columns.make(self.labels, self.answer, self.shown.index, label_next)

    @property
    def columns_for_file(self) -> pd.DataFrame:
        """The new columns as a file of text has them: with the digits of the labels."""
        return columns_for_file(self.new, self.labels, self.labels.known)

    @cached_property
    def frame(self) -> Any:
        """The table with its new columns; lazy of a Dask frame, and of files the `FilledFolder`."""
        return self.source.with_columns(self)

    @property
    def shown(self) -> pd.DataFrame:
        """The rows of the answer: all of them, or those that the fit saw."""
        return self.source.frame if isinstance(self.source, FrameSource) else self.fit.frame

    @property
    def places_in_fit(self) -> AnyArray:
        """Where each answer is among those of the fit, which saw the rows in an order of its own."""
        rows = self.fit.answer.rows if self.rows is None else self.rows[self.fit.answer.rows]
        return np.argsort(rows)

    @property
    def told(self) -> Told | None:
        """Where the answers come from, if they were made elsewhere."""
        return self.diagnosis.told

    @property
    def target(self) -> str:
        """The column that was filled."""
        return self.labels.name

    @property
    def task(self) -> str:
        """Whether labels are numbers ("regression") or classes ("classification")."""
        return self.labels.task

    @property
    def confidence(self) -> float:
        """Level of the guarantee for each row."""
        return float(self.options.confidence)

    @property
    def certainty(self) -> float:
        """Certainty of the guarantee for the column."""
        return float(self.options.certainty)

    @property
    def model(self) -> Any:
        """What the intervals, or sets, come from: a `ConformalTransducer`, or the confidence machine.

        It saw the rows in another order: ``rows`` says where in the table each of them is.
        """
        return self.fit.model

    @property
    def values_model(self) -> Any:
        """What the values come from, fitted to all labels: the blend, or the one method asked for."""
        return self.fit.values_model

    @property
    def columns(self) -> pd.DataFrame:
        """What was done to each column: ``name``, ``kind``, ``treatment``, ``n_missing``, ``n_features``."""
        return self.fit.features.columns

    @property
    def exchangeability(self) -> Exchangeability | None:
        """How labelled and unlabelled rows compare."""
        return self.fit.compared

    @property
    def miscoverage(self) -> Law | None:
        """The distribution of the number of rows outside; None if there is none, or several."""
        if self.fitted is not None:
            return None
        return self.fit.calibrated.law_at(float(self.fit.model.confidence))

    @cached_property
    def sensitivity(self) -> pd.DataFrame | None:
        """How wide intervals get if the odds of a label depend on the value by factors; None if no label calibrates."""
        other = (
            self.told is not None or self.class_shares is not None
        )  # within a class the label is the same
        if other or self.fit.guarantee(self.certainty, self.options.tolerance).kind == "none":
            return None
        return self.fit.calibrated.sensitivity_at(float(self.fit.model.confidence))

    @property
    def class_shares(self) -> ClassShares | None:
        """The shares of the classes among the unlabelled rows, where labels were chosen by their class."""
        return self.fit.shares

    @property
    def members(self) -> pd.DataFrame:
        """One line for each method: ``name``, ``weight``, ``score`` out of fold, ``scorer``, ``seconds``, ``note``."""
        return self.diagnosis.members

    @property
    def out_of_fold(self) -> pd.DataFrame:
        """``true`` and ``answered`` at labelled rows, each answered while it was hidden; the rows are its index.

        For classes also the ``probability`` of the answered one, if there is one.
        """
        folds = self.diagnosis.out_of_fold
        if self.totals is not None:  # rows of a sample have no places in the table
            return folds.reset_index(drop=True)
        if self.rows is None:
            return folds
        return folds.set_axis(pd.Index(self.rows[folds.index], name="row")).sort_index()

    @property
    def relevance(self) -> pd.Series | None:
        """How much each column matters, from 0 to 1, largest first, where a method says so."""
        return self.diagnosis.relevance

    @cached_property
    def map(self) -> pd.DataFrame | None:
        """The place of every row that the fit saw, along the two leading vectors of its neighbour graph."""
        places = self.diagnosis.map
        if places is None or self.rows is None:
            return places
        every = pd.DataFrame(np.nan, index=range(len(self.shown)), columns=["x", "y"])
        every.iloc[self.rows] = places.to_numpy()
        return every

    @cached_property
    def advice(self) -> NextLabels | None:
        """What to label next; None where this shows a sample, whose rows have no places in the table."""
        if self.totals is not None:
            return None
        advice = self.diagnosis.next_labels(
            self.options.possible(self.fit.answer, self.labels.limits)
        )
        return advice if self.rows is None else advice.of(self.rows)

    @property
    def notes(self) -> list[str]:
        """What the user should know: how the task was guessed, columns left out, time budget, too few labels."""
        notes = list(self.fit.notes)
        if self.class_shares is not None:
            weighed = "How good the answers are is counted by these shares."
            notes.insert(0, f"{self.class_shares} {weighed}")
        if self.fitted is not None:
            notes.append(self._about_sample(self.fitted))
        if self.options.reject is not None:
            notes.append(self._about_rejected(float(self.options.reject)))
        if self.options.probabilities and self.unasked.probabilities is None:
            notes.append(
                "There is no column for the probability of each class: this method states no probabilities."
            )
        if self.totals is not None:
            notes.append("The rows that are shown are those of the sample.")
        notes += [self.diagnosis.unmeasured] if self.diagnosis.unmeasured else []
        notes += [*self._notes_on_values, *self.diagnosis.by_class, *self.diagnosis.rare_classes]
        return [*notes, *self.diagnosis.notes]

    def _about_sample(self, fitted: FittedFill) -> str:
        """Return which rows the fit saw, and what became of each label."""
        n_rows = len(self.shown) if self.totals is None else self.totals["rows"]
        n_seen, n_kept = self.fit.target.n_labels, len(fitted.outside.table.labels)
        n_calibration = self.fit.model.guarantee_.n_calibration
        within = ""
        if n_calibration:
            within = f", {n_calibration:,} of which calibrate the predictions at its rows"
        return (
            f"The fit saw {len(self.fit.frame):,} of the {n_rows:,} rows, drawn at random, with "
            f"{n_seen:,} of the {n_seen + n_kept:,} labels{within}; all other rows are answered one by "
            f"one, and the other {n_kept:,} labels calibrate their answers. The comparison of labelled "
            "and unlabelled rows, the weights of methods and columns, and the map are those of the "
            "sample."
        )

    @property
    def _notes_on_values(self) -> list[str]:
        """Notes on values, or ends of intervals, that are impossible or look like a mistake."""
        if self.task != "regression" or self.told is not None or self.answer.regions is None:
            return []
        return notes_on_numbers(self.answer, self.labels, self.options.limits)

    @property
    def class_coverage(self) -> pd.DataFrame | None:
        """How often sets hold each class where it is the true one, estimated; None of numbers.

        One line a class: number of ``labels``, at how many rows it is ``in_sets``, and how many of its labels that were
        hidden (``judged``) are in their sets (``covered``).
        """
        return self.diagnosis.class_coverage

    def _about_rejected(self, share: float) -> str:
        """Return how many answers are marked as rejected, and why they are fewer than a share of them, if so."""
        n_answers = len(self.answer)
        count = int(np.sum(self.answer.status == "rejected"))
        if count == 0:
            return "No answer is marked as rejected: this method is equally certain of all of them."
        message = (
            f"{count} of {n_answers} answers, the least certain, are marked as rejected; their values stay, and the "
            "guarantee is about all answers together."
        )
        wanted = int(np.floor(share * n_answers + 1e-9))
        if count < wanted:
            message += (
                f" These are fewer than {percent(share)}, since answers that are equally certain are marked together "
                "or not at all."
            )
        return message

    def compute_all(self) -> None:
        """Compute whatever else there is to know now, where progress is shown."""
        _ = self.members, self.relevance, self.advice, self.new

    @property
    def asked(self) -> dict[str, Any]:
        """The options as plain values, with the column and where the table came from."""
        about = {"source": self.source.name, "target": self.target}
        return {**about, **self.options.as_json(), "task": self.task, **self.source.flags}

    @property
    def again(self) -> str:
        """The command that does it again where the table came from a file, and the call of `fill` elsewhere."""
        if self.told is not None:
            return self.told.again
        name, task = self.source.name.replace("\\", "/"), self.task
        if self.labels.decisive is not None:  # a task that is named would make it exact
            task = self.options.task
        short = "-" if name == "standard input" else name.rpartition("/")[2]
        in_file = short == "-" or format_named_by(short) is not None
        if in_file and (isinstance(self.options.method, str) or not self.options.own):
            return self.options.as_command(short, self.target, task, **self.source.flags)
        return self.options.as_call(
            self.target, task, short if in_file else "", **self.source.flags
        )

    def __repr__(self) -> str:
        totals = self.totals or {"unlabelled": len(self.unasked), "rows": len(self.shown)}
        how = f"{self.task}, {self.options.method_name}"
        count = f"{totals['unlabelled']} of {totals['rows']} cells of {self.target!r}"
        return f"FillResult: {count} filled ({how})\n{self.guarantee.in_short}"

    def _repr_html_(self) -> str:
        """Return the result as a notebook shows it: what was filled, what is guaranteed, and the first filled rows."""
        rows = self.answer.rows[:10]
        first = pd.concat([self.shown.iloc[rows], self.new.iloc[rows]], axis=1)
        head, _, said = repr(self).partition("\n")
        return f"<p><strong>{escape(head)}</strong></p><p>{escape(said)}</p>{first.to_html(max_cols=12)}"

    @cached_property
    def predicted_column(self) -> PredictedColumn:
        """The column with predictions that did not see the labels of their rows: what `estimate` rests on."""
        return predict_column(self)

    def estimate(self, what: str | list[str] = "mean", **question: Any) -> pd.DataFrame:
        """Estimate a number of the whole column: a mean, a share, a slope, with an interval that holds.

        Filled values vary less than true ones, and nothing that is computed from them as if they were
        measured holds its level. Here predictions narrow an interval that the labels make valid, however
        wrong the predictions are.

        Parameters
        ----------
        what : str or list of str, default="mean"
            ``"mean"``, ``"total"``, ``"share of yes"``, ``"share above 100"`` (or below, or between 2 and 5),
            ``"median"``, ``"quantile 0.9"``, ``"difference"``, ``"slope of income"``.
        of : object, optional
            The same apart: the class of a share, the quantile, the two groups of a difference, the columns
            of a regression.
        above, below : float, optional
            Limits of a share.
        by : str, optional
            A column: one estimate for each of its groups. Numbers with many values are cut at their quartiles.
        outcome : str, optional
            A column that is regressed on the filled column (and those that `of` names).
        level : float, default=0.95
            Of each interval by itself.
        joint : bool, default=False
            Whether all intervals are to hold together at the level.

        Returns
        -------
        pandas.DataFrame
            One line for each group or coefficient: ``estimate``, ``lower``, ``upper``, ``kind`` (exact,
            approximate or none), ``n_labels`` behind it, ``labels_alone`` with its interval, ``worth`` (as how
            many labels labels and predictions count together), and ``note``.

        Examples
        --------
        >>> from transduce import fill
        >>> from transduce.datasets import load_houses
        >>> result = fill(load_houses()[0], "price", method="ridge")
        >>> line = result.estimate("mean").iloc[0]
        >>> line["kind"], bool(line["worth"] > 1.5 * line["n_labels"])
        ('approximate', True)
        """
        return estimate_of(self.predicted_column, what, **question)

    def summary(self) -> dict[str, Any]:
        """Return every number and sentence of the report, as one plain dictionary."""
        return summarize(self)

    def report(self, path: str | Path | None = None, *, force: bool = False) -> str:
        """Return the report as one self-contained HTML page, and write it to a file if one is named.

        Parameters
        ----------
        path : str or Path, optional
            Where to write it, in one piece.
        force : bool, default=False
            Whether an existing file may be replaced.
        """
        with stage("report"):
            return _written(render_html(self.summary()), path, force, self.source.origin)

    def json(self, path: str | Path | None = None, *, force: bool = False) -> str:
        """Return the numbers of the report as JSON, and write them to a file as `report` does."""
        return _written(render_json(self.summary()), path, force, self.source.origin)


@dataclass(frozen=True, eq=False, repr=False)
class FillResults(Mapping[Any, FillResult]):
    """A table of which several columns were filled: the result of each, by its name, and one table.

    A mapping from each target to its `FillResult`; ``frame`` is the table with the new columns of all of them.

    Examples
    --------
    >>> from transduce import fill
    >>> from transduce.datasets import load_houses
    >>> table = load_houses()[0].assign(age=lambda houses: houses["house_age"].where(houses["price"] > 0))
    >>> results = fill(table, ["price", "age"], method="ridge", guarantee="column")
    >>> [name for name in results.frame if name.endswith("_filled")]
    ['price_filled', 'age_filled']
    """

    results: dict[Any, FillResult]  # of each target
    options: Options  # what was asked for

    def __getitem__(self, target: Any) -> FillResult:
        return self.results[target]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    @cached_property
    def frame(self) -> Any:
        """The table with the new columns of all targets."""
        first, *others = self.results.values()
        frame = first.frame
        for other in others:
            frame = other.source.with_columns(other, frame)
        return frame

    @described(QUESTIONS)
    def ask(self, **questions: Unpack[Questions]) -> FillResults:
        """Return the results as they are if other things are asked of those that a question suits.

        Parameters
        ----------
        OPTIONS
        """
        suits = {name: OPTIONS[name].kind.task if name in OPTIONS else "" for name in questions}
        results, tasks = {}, {result.task for result in self.values()}
        for target, result in self.items():
            own: Any = {
                k: one for k, one in questions.items() if suits[k] not in tasks - {result.task}
            }
            results[target] = result.ask(**own)
        return replace(self, results=results)

    def table(self, **questions: Unpack[Questions]) -> Any:
        """Return the table with the new columns of all targets, as the questions of ``ask`` want them."""
        return self.ask(**questions).frame

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.values()))


def _written(text: str, path: str | Path | None, force: bool, origin: tuple[Path, ...]) -> str:
    """Return a text that is also in a file, if one is named, as private as the files of the table."""
    if path is not None:
        write_text(path, text, force=force, like=origin)
    return text
