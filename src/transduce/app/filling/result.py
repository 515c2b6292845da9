"""A filled table: everything a report, a file or a user may want to know of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Unpack

import numpy as np
import pandas as pd

from transduce.app.estimating import PredictedColumn, draw_columns, estimate_of
from transduce.app.filling import reported
from transduce.app.filling.answer_columns import (
    AnswerColumns,
    answer_as_asked,
    columns_for_file,
    rank_rows,
)
from transduce.app.filling.class_calibration import ClassCalibration
from transduce.app.filling.diagnostics import Diagnosis
from transduce.app.filling.later_rows import FittedFill
from transduce.app.filling.levels import intervals_of_fit, read_levels
from transduce.app.filling.next_labels import NextLabels
from transduce.app.filling.options import FIT, QUESTIONS, Options, Questions, described
from transduce.app.filling.part_sources import PartSource
from transduce.app.filling.seen_rows import SeenRows
from transduce.app.filling.similar import N_SIMILAR, explain_row, similar_texts
from transduce.app.filling.sources import FrameSource, as_pandas, with_new_columns
from transduce.app.filling.table_fit import TableFit
from transduce.app.report import FilledColumn, Summary, render_html, render_json, summarize
from transduce.app.report.filled_column import RowCounts
from transduce.app.report.suspects import Suspects, reasons
from transduce.app.tables.columns import Target
from transduce.app.tables.new_columns import check_names
from transduce.app.tables.notes import About, Note
from transduce.conformal import ClassShares, Exchangeability, Selection
from transduce.conformal.miscoverage import Law
from transduce.core.answer import N_PREVIEWED, Answer, Regions, level_name
from transduce.core.checks import check_whole
from transduce.core.computing import stage
from transduce.core.guarantee import Guarantee
from transduce.core.types import AnyArray, Array, ColumnName, OptionValues
from transduce.core.words import option

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Frame = TypeVar("Frame", default=Any)  # a table of any library, and of a result the same
else:
    from typing import TypeVar

    Frame = TypeVar("Frame")

LaterFrame = TypeVar("LaterFrame")  # rows that come later, and the same rows filled

# What `dir(result)`, and an editor that completes names, shows.
MAIN_NAMES = (
    "advice",
    "answer",
    "estimate",
    "explain",
    "exchangeability",
    "fill_later",
    "frame",
    "guarantee",
    "guarantee_at",
    "intervals_at",
    "json",
    "members",
    "model",
    "new",
    "notes",
    "options",
    "out_of_fold",
    "relevance",
    "report",
    "summary",
    "suspects",
    "table",
    "target",
    "task",
    "with_options",
)


@dataclass(frozen=True, eq=False, repr=False)
class FillResult(Generic[Frame]):
    """A table whose target column was filled, what is guaranteed of it, and its report.

    Whatever does not touch the fit is asked of the result: `table`, `guarantee_at`, and
    `with_options` for both at once. What takes time besides (``members``, ``out_of_fold``,
    ``relevance``, ``map``, ``advice``) is computed when it is first asked for, as by the report; if
    it cannot be computed, a note says so. ``options`` are what was asked for.

    Examples
    --------
    >>> from transduce import fill
    >>> from transduce.datasets import load_houses
    >>> result = fill(load_houses()[0], "price", method="ridge", guarantee="column")
    >>> result
    FillResult: 250 of 400 cells of 'price' filled (regression, ridge)
    exact if rows were labelled at random: The interval of a row picked at random ...
    >>> bool(result.table(maximum=500_000)["price_upper"].max() <= 500_000)
    True
    """

    fit: TableFit
    seen: SeenRows  # which rows the fit saw, and what answers the others
    options: Options  # what was asked for, as it was given
    labels: Target  # of the rows that are shown
    raw_answer: Answer  # at these rows, as the fit gives it
    diagnosis: Diagnosis

    def __dir__(self) -> list[str]:
        return list(MAIN_NAMES)

    # ------------------------------------------------------------------------ other options

    @described(QUESTIONS)
    def with_options(self, **questions: Unpack[Questions]) -> FillResult[Frame]:
        """Return the result with other options; nothing is fitted again.

        Parameters
        ----------
        OPTIONS

        Returns
        -------
        FillResult
        """
        for name in questions:
            if name in FIT:
                raise TypeError(
                    f"{name!r} is no question to a result, but an option of fill: fill again with "
                    "it."
                )
        options = Options.read({**self.options.as_dict(), **questions}, questions=True)
        self._check_options(options)
        return replace(self, options=options, seen=self.seen.with_options(options))

    def _check_options(self, options: Options) -> None:
        """Raise an error that says what to do if options do not suit the labels, or the source."""
        options.check_labels(self.labels)
        elsewhere = self.seen.labels_elsewhere()
        if self.labels.task == "regression" and len(elsewhere):
            none_missing = np.zeros(len(elsewhere), dtype=bool)
            options.check_labels(replace(self.labels, labels=elsewhere, missing=none_missing))
        self.seen.source.check_questions(self.options, options)
        check_names(self.seen.frame, self.labels, **options.new_columns)

    @described(QUESTIONS)
    def table(self, **questions: Unpack[Questions]) -> Frame:
        """Return the table with its new columns, made with these options.

        Parameters
        ----------
        OPTIONS

        Returns
        -------
        pandas, polars or Dask DataFrame
            Of the same kind as the table that was filled.
        """
        return self.with_options(**questions).frame

    def guarantee_at(
        self, *, certainty: float | None = None, tolerance: float | None = None
    ) -> Guarantee:
        """Return what is guaranteed, with another certainty or tolerance.

        Parameters
        ----------
        certainty : float, optional
            Probability with which statements about the whole column hold; 0.95 unless something
            else was asked for before.
        tolerance : float, optional
            Numbers: bound how many predictions are off by more than this.

        Returns
        -------
        Guarantee
        """
        if certainty is None:
            certainty = self.options.certainty
        if tolerance is None:
            tolerance = self.options.tolerance
        return self.with_options(certainty=certainty, tolerance=tolerance).guarantee

    def intervals_at(self, levels: Sequence[float]) -> pd.DataFrame:
        """Return the intervals of numbers at several levels, from the same fit.

        Each interval lies within those of higher levels, and each level is guaranteed by itself.

        Parameters
        ----------
        levels : list of float
            Probabilities with which intervals hold the truth, such as ``[0.9, 0.95, 0.99]``.

        Returns
        -------
        pandas.DataFrame
            A line for each unlabelled row: the filled value, and the ends at each level, in columns
            such as ``<target>_lower_95`` and ``<target>_upper_95``.

        Examples
        --------
        >>> from transduce import fill
        >>> from transduce.datasets import load_houses
        >>> result = fill(load_houses()[0], "price", method="ridge")
        >>> list(result.intervals_at([0.9, 0.95]).columns[1:])
        ['price_lower_90', 'price_upper_90', 'price_lower_95', 'price_upper_95']
        """
        ordered = read_levels(levels)
        if self.labels.task != "regression":
            raise ValueError(
                f"{self.target!r} has classes: the column with the confidence of each says from "
                "which level on its set has a second class."
            )
        if len(self.raw_answer) != len(self.fit.answer):
            raise ValueError(
                "Not all rows were in the fit: fill again with these levels as confidence."
            )
        ends = intervals_of_fit(self.fit, ordered)[self.places_in_fit]
        columns: dict[str, AnyArray] = {f"{self.target}_filled": self.answer.values}
        for place, level in enumerate(ordered):
            regions = Regions.from_intervals(ends[:, place])
            answer = replace(self.raw_answer, regions=regions)
            clipped = self.options.clip(answer, self.labels.limits).regions
            assert clipped is not None
            hull = clipped.hull()
            name = level_name(level)
            columns[f"{self.target}_lower_{name}"] = hull[:, 0]
            columns[f"{self.target}_upper_{name}"] = hull[:, 1]
        return pd.DataFrame(columns, index=self.shown.index[self.answer.rows])

    def keep_labels(self, frame: pd.DataFrame, note: str) -> FillResult[Frame]:
        """Return the result with labels that rows have got since the fit: they have no answer.

        Nothing is fitted again, and what is guaranteed is about all rows that had no label then, as
        `note` is to say.

        Parameters
        ----------
        frame : pandas.DataFrame
            The same rows, with the labels that were there, and those that came since.
        note : str
            What the user should know of them.

        Returns
        -------
        FillResult
        """
        labels = replace(self.labels.read(frame), notes=self.labels.notes)
        still_missing = np.flatnonzero(labels.missing[self.raw_answer.rows])
        fit = replace(self.fit, notes=[Note(About.ROWS, note), *self.fit.notes])
        return replace(self, fit=fit, labels=labels, raw_answer=self.raw_answer.at(still_missing))

    # -------------------------------------------------------------------------- the answers

    @cached_property
    def guarantee(self) -> Guarantee:
        """What is guaranteed of all answers."""
        return self._guarantee_at_level(self.options.level)

    @property
    def guarantees(self) -> dict[float, Guarantee]:
        """What is guaranteed at each level, the main one first; each level by itself."""
        return {
            level: self._guarantee_at_level(level)
            for level in (self.options.level, *self.options.further_levels)
        }

    def _guarantee_at_level(self, level: float) -> Guarantee:
        """Return what is guaranteed of all answers at a level."""
        guarantee = self.seen.guarantee(self.fit, self.options, level)
        if guarantee.remedy:
            guarantee = self.seen.place_remedy(guarantee, self.labels.missing)
        if guarantee.limits:
            return guarantee
        return guarantee.limited(self.options.limits_with(self.labels.limits))

    @cached_property
    def answer(self) -> Answer:
        """The answers at the unlabelled rows.

        Of a Dask frame and of files, those of the sample.
        """
        answer = replace(self.raw_answer, guarantee=self.guarantee)
        calibration = ClassCalibration()
        if answer.probabilities is not None:  # only these are calibrated, which takes time
            calibration = self.diagnosis.calibration
        return answer_as_asked(answer, self.options, self.labels.limits, calibration)

    @cached_property
    def new(self) -> pd.DataFrame:
        """The new columns: the filled value, its interval or set, and how far to trust it.

        Of numbers ``<target>_filled``, ``_lower``, ``_upper`` and ``_width_reduction``, by which
        share an interval is narrower than one made without features. Of classes ``_filled``,
        ``_set``, ``_probability`` and ``_confidence``, the level up to which no other class is
        possible. ``_status`` is that of the answer. At each further level there are ``_lower_95``
        and ``_upper_95``, or ``_set_95``.

        Filled values vary less than true ones: for means, counts and slopes of the column ask
        `estimate`.
        """
        columns = AnswerColumns(
            self.options,
            self.diagnosis.calibration,
            self.fit.target.known,
            same_types=self.seen.is_sample,
            dtype=self.seen.frame[self.labels.name].dtype,
        )
        return columns.make(self.labels, self.answer, self.seen.frame.index, self._own_columns())

    def _own_columns(self) -> OptionValues:
        """Return the columns that options add under their own names, with a cell for each row."""
        n_rows = len(self.seen.frame)
        own_columns: OptionValues = {}
        if self.options.label_next:
            to_label = () if self.advice is None else self.advice.rows
            own_columns["label_next"] = rank_rows(n_rows, to_label)
        if self.options.suspect:
            own_columns["suspect"] = rank_rows(n_rows, self.suspects.index)
        if self.options.similar:
            own_columns["similar"] = similar_texts(self)
        return own_columns

    @property
    def columns_for_file(self) -> pd.DataFrame:
        """The new columns as a file of text has them: with the digits of the labels."""
        return columns_for_file(self.new, self.labels, self.labels.known)

    @cached_property
    def frame(self) -> Frame:
        """The table with its new columns; lazy of a Dask frame, and of files the `FilledFolder`."""
        table: Frame = self.seen.add_columns(self.new)
        return table

    # ------------------------------------------------------------------------- later rows

    @cached_property
    def later_rows(self) -> FittedFill:
        """The model that answers rows which come later; fitted now unless the fit saw a sample."""
        return self.seen.later_rows(self.options)

    def fill_later(self, frame: LaterFrame) -> LaterFrame:
        """Return rows that came later, which no fit has seen, with their new columns.

        Some labels are kept from the fit that answers them and calibrate it, so values differ a
        little from those of the filled table. ``later_rows.guarantee_of_later(n)`` says what holds
        for them.

        Parameters
        ----------
        frame : pandas or polars DataFrame
            Rows with the columns of the table, with or without the target.

        Returns
        -------
        pandas or polars DataFrame
            Of the same kind as `frame`.

        Examples
        --------
        >>> import pandas as pd
        >>> from transduce import fill
        >>> price = [2.0 * n if n % 3 else None for n in range(200)]
        >>> table = pd.DataFrame({"size": range(200), "price": price})
        >>> result = fill(table, "price", method="ridge", guarantee="column")
        >>> result.fill_later(pd.DataFrame({"size": [12.5]}))["price_filled"].round().tolist()
        [25.0]
        """
        if isinstance(frame, pd.DataFrame):
            return pd.concat([frame, self.later_rows.new_columns(frame)], axis=1)
        new = self.later_rows.new_columns(as_pandas(frame))
        with_new: LaterFrame = with_new_columns(frame, new, self.target)
        return with_new

    # ------------------------------------------------------------------ what else there is to know

    @property
    def target(self) -> ColumnName:
        """The column that was filled."""
        return self.labels.name

    @property
    def task(self) -> str:
        """Whether labels are numbers ("regression") or classes ("classification")."""
        return self.labels.task

    @property
    def confidence(self) -> float:
        """Level of the guarantee for each row."""
        return self.options.level

    @property
    def certainty(self) -> float:
        """Certainty of the guarantee for the column."""
        return float(self.options.certainty)

    @property
    def source(self) -> FrameSource | PartSource:
        """Where the table is."""
        return self.seen.source

    @property
    def shown(self) -> pd.DataFrame:
        """The rows of the answer: all of them, or those that the fit saw."""
        return self.seen.frame

    @property
    def counts(self) -> RowCounts:
        """How many rows the table has, and how they were answered."""
        return self.seen.count_rows(self.answer)

    @property
    def places_in_fit(self) -> AnyArray:
        """Where each answer is among those of the fit.

        The fit saw the rows in an order of its own.
        """
        return np.argsort(self.seen.places_of(self.fit.answer.rows))

    @property
    def model(self) -> Any:
        """What the intervals, or sets, come from.

        A `ConformalTransducer`, or the confidence machine.

        It saw the rows in another order, that of their contents.
        """
        return self.fit.model.estimator

    @property
    def values_model(self) -> Any:
        """What the values come from: the blend, or the one method asked for.

        It is fitted to all labels.
        """
        return self.fit.values_model

    @property
    def columns(self) -> pd.DataFrame:
        """What was done to each column.

        ``name``, ``kind``, ``treatment``, ``n_missing`` and ``n_features``.
        """
        return self.fit.features.columns

    @property
    def exchangeability(self) -> Exchangeability | None:
        """How labelled and unlabelled rows compare."""
        return self.fit.compared

    @property
    def miscoverage(self) -> Law | None:
        """The distribution of the number of rows outside; None if there is none, or several."""
        return self.seen.miscoverage(self.fit, self.options.level)

    @cached_property
    def sensitivity(self) -> pd.DataFrame | None:
        """How wide intervals get if labels depend on the value; None if no label calibrates."""
        options = self.options
        return self.fit.sensitivity(options.level, float(options.certainty), options.tolerance)

    @property
    def class_shares(self) -> ClassShares | None:
        """The shares of the classes among unlabelled rows, where labels were chosen by class."""
        return self.fit.shares

    @property
    def class_coverage(self) -> pd.DataFrame | None:
        """How often sets hold each class where it is the true one, estimated; None of numbers.

        One line a class: number of ``labels``, at how many rows it is ``in_sets``, and how many of
        its labels that were hidden (``judged``) are in their sets (``covered``).
        """
        return self.diagnosis.class_coverage

    @property
    def members(self) -> pd.DataFrame:
        """One line for each method.

        ``name``, ``weight``, ``score`` out of fold, ``scorer``, ``seconds`` and ``note``.
        """
        return self.diagnosis.members

    @property
    def out_of_fold(self) -> pd.DataFrame:
        """``true`` and ``answered`` at labelled rows, each answered while it was hidden.

        The rows are its index. For classes also the ``probability`` of the answered one, if stated.
        """
        return self.seen.place_labels(self.diagnosis.out_of_fold)

    @property
    def known_suspects(self) -> Suspects:
        """The known values that are perhaps wrong, as a report names them."""
        return self.seen.place_suspects(self.diagnosis.suspects)

    @property
    def suspects(self) -> pd.DataFrame:
        """The known values that are perhaps wrong, the most improbable first.

        Each was predicted while it was hidden. A number is suspect if it is further off than the
        tail of all errors makes plausible (about one in five of those named is right), a class if
        it is so improbable that a wrong label is a good guess. The rows are the index, ``line`` is
        that of the file if there is one, and ``reason`` says why.

        Examples
        --------
        >>> from transduce import fill
        >>> from transduce.datasets import load_houses
        >>> houses = load_houses()[0]
        >>> row = houses["price"].first_valid_index()
        >>> houses.loc[row, "price"] *= 100.0
        >>> result = fill(houses, "price", method="ridge")
        >>> bool(result.suspects.index[0] == row)
        True
        """
        suspects = self.known_suspects
        columns: dict[ColumnName, Any] = {}
        lines = self.seen.lines
        if lines is not None:
            columns["line"] = [lines[row] for row in suspects.rows.tolist()]
        columns[self.target] = suspects.labels
        columns["predicted"] = suspects.predicted
        columns["reason"] = reasons(suspects, self.labels)
        return pd.DataFrame(columns, index=pd.Index(suspects.rows, name="row"))

    def explain(self, row: int, n_similar: int = N_SIMILAR) -> pd.DataFrame:
        """Return the other labelled rows that are most like a row, with weights that sum to 1.

        Rows are alike if they are near each other in the columns that matter; the weights fall with
        the distance. Beside them are the labels, and the other columns, those first that matter
        most. The prediction is usually near their weighted mean, or their most frequent class, but
        methods that see the whole table may know better.

        Parameters
        ----------
        row : int
            Place of the row in the table, counted from 0, as in ``answer.rows``; of a table in
            parts, its place in the sample, and a column ``row`` names the part and the place in it.
        n_similar : int, default=6
            How many labelled rows to return.

        Returns
        -------
        pandas.DataFrame
            One line for each labelled row: its weight, its label, and the other columns.

        Examples
        --------
        >>> from transduce import fill
        >>> from transduce.datasets import load_houses
        >>> result = fill(load_houses()[0], "price", method="ridge")
        >>> near = result.explain(result.answer.rows[0])
        >>> len(near), round(float(near["weight"].sum()), 6)
        (6, 1.0)
        """
        check_whole("row", row, least=0)
        check_whole("n_similar", n_similar, least=1)
        if row >= len(self.seen.frame):
            raise ValueError(f"There is no row {row}: rows are counted from 0.")
        return explain_row(self, row, n_similar)

    @property
    def relevance(self) -> pd.Series | None:
        """How much each column matters, from 0 to 1, largest first, where a method says so."""
        return self.diagnosis.relevance

    @cached_property
    def map(self) -> pd.DataFrame | None:
        """The place of every row that the fit saw, along two vectors of its neighbour graph."""
        places = self.diagnosis.map
        if places is None:
            return None
        return self.seen.place_map(places)

    @cached_property
    def advice(self) -> NextLabels | None:
        """What to label next; None where this shows a sample, whose rows have no places."""
        answer = self.options.clip(self.fit.answer, self.labels.limits)
        return self.seen.place_advice(partial(self.diagnosis.next_labels, answer))

    def compute_all(self) -> None:
        """Compute whatever else there is to know now, where progress is shown."""
        _ = self.members, self.relevance, self.advice, self.new

    # ------------------------------------------------------------------------------- in words

    @property
    def notes(self) -> list[str]:
        """What the user should know: the task, columns left out, time budget, too few labels."""
        return [note.text for note in reported.collect_notes(self)]

    @property
    def options_as_json(self) -> OptionValues:
        """The options as plain values, with the column and where the table came from."""
        return reported.options_as_json(self)

    @property
    def again(self) -> str:
        """The command that does it again of a file, and the call of `fill` elsewhere."""
        return reported.call_again(self)

    def __repr__(self) -> str:
        counts = self.seen.count_rows(self.raw_answer)
        return (
            f"FillResult: {counts.unlabelled} of {counts.rows} cells of {self.labels.name!r} "
            f"filled ({self.labels.task}, {self.options.method_name})\n{self.guarantee.in_short}"
        )

    def _repr_html_(self) -> str:
        """Return the result for a notebook: counts, guarantee and first filled rows."""
        rows = self.answer.rows[:N_PREVIEWED]
        first = pd.concat([self.seen.frame.iloc[rows], self.new.iloc[rows]], axis=1)
        filled, _, guarantee = repr(self).partition("\n")
        return (
            f"<p><strong>{escape(filled)}</strong></p><p>{escape(guarantee)}</p>"
            f"{first.to_html(max_cols=12)}"
        )

    # -------------------------------------------------------------------- the column as a whole

    @cached_property
    def predicted_column(self) -> PredictedColumn:
        """The column with predictions that did not see the labels of their rows.

        What `estimate` rests on.
        """
        with stage("estimates"):
            try:
                return self.seen.predict_column(self)
            except ValueError as error:
                # Nothing can be asked: the stage ends, and is not broken off.
                refusal = error
        raise refusal

    def estimate(  # noqa: PLR0913 - what a question may say
        self,
        what: str | list[str] = "mean",
        *,
        of: Any = None,
        above: Any = None,
        below: Any = None,
        by: ColumnName | None = None,
        outcome: ColumnName | None = None,
        level: float = 0.95,
        joint: bool = False,
    ) -> pd.DataFrame:
        """Estimate a number of the whole column, such as a mean, with a valid interval.

        Filled values vary less than true ones: an interval computed from them as if they were
        measured does not have its stated coverage. Here the labels make the interval valid, however
        wrong the predictions are, and the predictions make it narrow.

        Parameters
        ----------
        what : str or list of str, default="mean"
            ``"mean"``, ``"total"``, ``"share of yes"``, ``"share above 100"`` (or below, or between
            2 and 5), ``"median"``, ``"quantile 0.9"``, ``"difference"``, ``"slope of income"``.
        of : object, optional
            What `what` is about, if it does not say so itself: the class of a share, the quantile,
            the two groups of a difference, the columns of a regression.
        above, below : float, optional
            Limits of a share.
        by : str, optional
            A column: one estimate for each of its groups. Numbers and dates with many values are
            cut at their quartiles.
        outcome : str, optional
            A column that is regressed on the filled column (and those that `of` names).
        level : float, default=0.95
            Confidence level of each interval by itself.
        joint : bool, default=False
            Whether all intervals are to hold together at the level.

        Returns
        -------
        pandas.DataFrame
            One line for each group or coefficient: ``estimate``, ``lower``, ``upper``, ``kind``
            (exact, approximate or none), ``n_labels`` behind it, ``labels_alone`` with its
            interval, ``worth`` (how many labels alone would give as narrow an interval), and
            ``note``.

        Examples
        --------
        >>> from transduce import fill
        >>> from transduce.datasets import load_houses
        >>> result = fill(load_houses()[0], "price", method="ridge")
        >>> line = result.estimate("mean").iloc[0]
        >>> line["kind"], bool(line["worth"] > 1.5 * line["n_labels"])
        ('approximate', True)
        """
        return estimate_of(
            self.predicted_column,
            what,
            of=of,
            above=above,
            below=below,
            by=by,
            outcome=outcome,
            level=level,
            joint=joint,
        )

    def draws(self, n: int = 20) -> pd.DataFrame:
        """Draw completed columns, for analyses that `estimate` does not know.

        Labels stay, and every gap gets a plausible value, drawn at random. Analyse each column, and
        pool the results by Rubin's rules. The result rests on the predictions, which nothing
        corrects: it assumes that errors at unlabelled rows are like those at labelled ones,
        whatever the other columns are. On ten real tables intervals at 95 % for these rows held
        means in nine of ten draws, means of groups in seven, and slopes in two to six. If
        `estimate` can answer a question, use it instead.

        Parameters
        ----------
        n : int, default=20
            How many columns.

        Returns
        -------
        pandas.DataFrame
            One column a draw, one line a row of the table.

        Examples
        --------
        >>> from transduce import fill
        >>> from transduce.datasets import load_houses
        >>> fill(load_houses()[0], "price", method="ridge").draws(3).shape
        (400, 3)
        """
        return draw_columns(self.predicted_column, n, self.options.random_state)

    def select(self, *, false_discovery: float = 0.1, **wanted: Any) -> Selection:
        """Select filled rows that may be used as they are, at a bounded false discovery rate.

        Parameters
        ----------
        false_discovery : float, default=0.1
            Bound on the false discovery rate: the expected share of wrong ones among the rows
            selected.
        above, below : float, optional
            Numbers: select rows whose value is larger or smaller than this; both give a range.
        tolerance : float, optional
            Numbers: select rows whose prediction is off by no more than this.
        label : object, optional
            Classes: select rows of this class.
        correct : bool, optional
            Classes: select rows whose prediction is right, whichever class it is.

        Returns
        -------
        Selection
            Positions of the rows in the table, and what is guaranteed of them.

        Examples
        --------
        >>> from transduce import fill
        >>> from transduce.datasets import load_houses
        >>> result = fill(load_houses()[0], "price", method="ridge", guarantee="column")
        >>> result.select(tolerance=200_000.0).guarantee.kind
        'exact'
        """
        if self.seen.is_sample:
            raise ValueError(
                "Rows can be selected only if the fit saw all of them, and it saw a sample."
            )
        if self.fit.model.held_out_fit is None:
            raise ValueError(
                "Rows are selected by labels that were held out, and none was: fill with "
                f"{option('guarantee', 'column')}."
            )
        if self.fit.offset is not None and not {"above", "below"}.isdisjoint(wanted):
            raise ValueError(
                "The fit corrects predictions made elsewhere, and judges by how far off they are: "
                f"select with tolerance, or fill without {option('predictions')}, which makes "
                "that column a feature."
            )
        picked: Selection = self.model.select(
            false_discovery=false_discovery, ranges=self.ranges_in_fit, **wanted
        )
        rows = self.seen.places_of(picked.rows)
        order = np.argsort(rows)
        index = None if picked.index is None else picked.index[order]
        values = self.fit.add_offset(picked.values, picked.rows)
        return replace(picked, rows=rows[order], values=values[order], index=index)

    @property
    def ranges_in_fit(self) -> Array | None:
        """The least and the greatest number that each label of the fit may be, shape (n, 2).

        None if no label is a limit, such as "<0.5".
        """
        labels = self.fit.target
        if not labels.censored.any():
            return None
        ranges = np.column_stack(labels.bounds)
        if self.fit.offset is not None:
            ranges = ranges - self.fit.offset[:, None]
        return ranges

    # ------------------------------------------------------------------------------ the report

    @property
    def reported(self) -> FilledColumn:
        """All that a report reads, computed now."""
        return reported.report_column(self)

    def summary(
        self, *, by: ColumnName | list[ColumnName] | None = None, again: str = ""
    ) -> Summary:
        """Return every number and sentence of the report, as one plain dictionary.

        Parameters
        ----------
        by : str or list of str, optional
            Columns by whose groups the column as a whole is shown; by default the one with 2 to 12
            values whose predictions differ most.
        again : str, optional
            What does it again, if not the command or call that is known.

        Returns
        -------
        dict
        """
        named = reported.columns_to_group_by(self, by)
        column = replace(reported.report_column(self), by=named)
        if again:
            column = replace(column, again=again)
        return summarize(column)

    def report(
        self,
        path: str | Path | None = None,
        *,
        by: ColumnName | list[ColumnName] | None = None,
        force: bool = False,
    ) -> str:
        """Return the report as one self-contained HTML page, and write it if a file is named.

        Parameters
        ----------
        path : str or Path, optional
            Where to write it, in one piece.
        by : str or list of str, optional
            Columns by whose groups the column as a whole is shown, as `summary` takes them.
        force : bool, default=False
            Whether an existing file may be replaced.

        Returns
        -------
        str
            The page.
        """
        summary = self.summary(by=by)
        with stage("report"):
            return reported.write_report(self, render_html(summary), path, force)

    def json(
        self,
        path: str | Path | None = None,
        *,
        by: ColumnName | list[ColumnName] | None = None,
        force: bool = False,
    ) -> str:
        """Return the numbers of the report as JSON, and write them if a file is named.

        Parameters
        ----------
        path : str or Path, optional
            Where to write them, in one piece.
        by : str or list of str, optional
            As that of `report`.
        force : bool, default=False
            Whether an existing file may be replaced.

        Returns
        -------
        str
        """
        return reported.write_report(self, render_json(self.summary(by=by)), path, force)
