"""Which rows of a table the fit saw, where they stand in it, and what answers the others.

A result is the same whether the fit saw all rows, a sample of a table in memory, or a sample of
files or of a Dask frame. What differs is here, behind one interface.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
import pandas as pd

from transduce.app.estimating import PredictedColumn
from transduce.app.filling.later_rows import FittedFill
from transduce.app.filling.next_labels import NextLabels
from transduce.app.filling.options import Options
from transduce.app.filling.part_sources import PartColumns, PartSource, sampled_columns
from transduce.app.filling.predicted import predict_frame, predict_others
from transduce.app.filling.predicted_parts import predict_parts
from transduce.app.filling.sources import FrameSource
from transduce.app.filling.table_fit import TableFit
from transduce.app.report.filled_column import RowCounts, count_statuses
from transduce.app.report.suspects import Suspects
from transduce.app.tables.row_draws import RowDraw
from transduce.conformal.miscoverage import Law
from transduce.core.answer import Answer
from transduce.core.guarantee import Guarantee
from transduce.core.types import AnyArray, Array, Mask
from transduce.population.draws import draw_rows

if TYPE_CHECKING:
    from transduce.app.filling.result import FillResult


class SeenRows(Protocol):
    """Which rows of a table the fit saw, and what is known of the others."""

    @property
    def source(self) -> FrameSource | PartSource:
        """Where the table is."""

    @property
    def frame(self) -> pd.DataFrame:
        """The rows that a result shows: all of them, or those that the fit saw."""

    @property
    def is_sample(self) -> bool:
        """Whether the fit saw a sample of the rows."""

    @property
    def lines(self) -> Sequence[int] | None:
        """The line of the file on which each row that is shown begins; None if it has none."""

    def with_options(self, options: Options) -> SeenRows:
        """Return the same rows, asked with other options."""

    def labels_elsewhere(self) -> AnyArray:
        """Return labels of rows that the fit did not see, shape (k,).

        The extreme labels are among them.
        """

    def later_rows(self, options: Options) -> FittedFill:
        """Return what answers rows that come later."""

    def guarantee(self, fit: TableFit, options: Options, level: float) -> Guarantee:
        """Return what is guaranteed at a level of the answers at all rows of the table."""

    def place_remedy(self, guarantee: Guarantee, missing: Mask) -> Guarantee:
        """Return a guarantee that names rows to label by their places in the table."""

    def miscoverage(self, fit: TableFit, level: float) -> Law | None:
        """Return the distribution of the number of rows outside.

        None if there is none, or several.
        """

    def places_of(self, rows: AnyArray) -> AnyArray:
        """Return where rows of the fit are among those that are shown."""

    def place_labels(self, out_of_fold: pd.DataFrame) -> pd.DataFrame:
        """Return what is known of labelled rows of the fit, by their places in the table."""

    def place_suspects(self, suspects: Suspects) -> Suspects:
        """Return suspect labels of the fit, by their places in the table."""

    def place_map(self, places: pd.DataFrame) -> pd.DataFrame:
        """Return the map of the rows of the fit as one of the rows that are shown."""

    def place_advice(self, advise: Callable[[], NextLabels]) -> NextLabels | None:
        """Return what to label next, by places in the table; None if rows have none."""

    def name_rows(self) -> Sequence[Any]:
        """Return what to call each row that is shown."""

    def count_rows(self, answer: Answer) -> RowCounts:
        """Return how many rows the table has, and how they were answered."""

    def notes(self, fit: TableFit) -> list[str]:
        """Return what became of the rows, and of the labels."""

    def notes_on_shown(self) -> list[str]:
        """Return which rows are shown, if not all."""

    def shown_among_others(self) -> str:
        """Return which rows are counted where those that are shown are; "" if all are."""

    def add_columns(self, new: pd.DataFrame, table: Any = None) -> Any:
        """Return the table, which may have new columns already, with new columns after its own."""

    def predict_column(self, result: FillResult) -> PredictedColumn:
        """Return the column with predictions that did not see the labels of their rows."""


class _RowsInMemory:
    """Rows of a table in memory, which the fit saw in an order of its own."""

    source: FrameSource
    order: AnyArray  # where in the table each row of the fit is

    @property
    def frame(self) -> pd.DataFrame:
        """All rows of the table."""
        return self.source.frame

    @property
    def lines(self) -> Sequence[int] | None:
        """The line of the file on which each row begins; None if the table is in no file."""
        return self.source.lines

    def place_remedy(self, guarantee: Guarantee, missing: Mask) -> Guarantee:
        """Return a guarantee that names the rows which `transduce draw` draws from the table."""
        drawn = draw_rows(missing, len(guarantee.remedy), 0)
        return replace(guarantee, remedy=tuple(drawn.tolist()))

    def places_of(self, rows: AnyArray) -> AnyArray:
        """Return where rows of the fit are in the table."""
        return self.order[rows]

    def place_labels(self, out_of_fold: pd.DataFrame) -> pd.DataFrame:
        """Return what is known of labelled rows of the fit, by their places in the table."""
        places = pd.Index(self.order[out_of_fold.index], name="row")
        return out_of_fold.set_axis(places).sort_index()

    def place_suspects(self, suspects: Suspects) -> Suspects:
        """Return suspect labels of the fit, by their places in the table."""
        return replace(suspects, rows=self.order[suspects.rows])

    def place_map(self, places: pd.DataFrame) -> pd.DataFrame:
        """Return the map with a line for each row of the table; NaN where the fit saw no row."""
        in_table = pd.DataFrame(np.nan, index=range(len(self.frame)), columns=["x", "y"])
        in_table.iloc[self.order] = places.to_numpy()
        return in_table

    def place_advice(self, advise: Callable[[], NextLabels]) -> NextLabels | None:
        """Return what to label next, by places in the table."""
        return advise().at_places(self.order, self.lines)

    def name_rows(self) -> Sequence[Any]:
        """Return the names in the table's index, else lines of the file, or places from 1 on."""
        return _name_by_index(self.frame) or self.lines or range(1, len(self.frame) + 1)

    def count_rows(self, answer: Answer) -> RowCounts:
        """Return how many rows the table has, and how they were answered."""
        return RowCounts.count_rows(len(self.frame), answer)

    def notes_on_shown(self) -> list[str]:
        """Return nothing: all rows are shown."""
        return []

    def shown_among_others(self) -> str:
        """Return nothing: all rows are shown."""
        return ""

    def add_columns(self, new: pd.DataFrame, table: Any = None) -> Any:
        """Return the table, which may have new columns already, with new columns after its own."""
        return self.source.add_columns(new, table)


@dataclass(frozen=True, eq=False)
class AllRows(_RowsInMemory):
    """The fit saw all rows of a table in memory."""

    source: FrameSource
    order: AnyArray
    fit_later: Callable[[Options], FittedFill]  # fits a model that answers rows which come later
    is_sample: bool = False

    def with_options(self, options: Options) -> AllRows:
        """Return the same rows: options change nothing of them."""
        return self

    def labels_elsewhere(self) -> AnyArray:
        """Return no label: the fit saw them all."""
        return np.empty(0)

    def later_rows(self, options: Options) -> FittedFill:
        """Fit a model that some labels are kept from.

        These calibrate it for rows that come later.
        """
        return self.fit_later(options)

    def guarantee(self, fit: TableFit, options: Options, level: float) -> Guarantee:
        """Return what is guaranteed at a level of the answers at all rows."""
        return fit.guarantee(level, float(options.certainty), options.tolerance)

    def miscoverage(self, fit: TableFit, level: float) -> Law | None:
        """Return the distribution of the number of rows outside; None if there is none."""
        return fit.model.calibrated.law_at(level)

    def notes(self, fit: TableFit) -> list[str]:
        """Return nothing: each label was seen by the fit."""
        return []

    def predict_column(self, result: FillResult) -> PredictedColumn:
        """Return the column with predictions of fits that did not see the labels of their rows."""
        return predict_frame(result, self.order)


@dataclass(frozen=True)
class OtherRows:
    """The unlabelled rows that the fit did not see, and what answers them."""

    later: FittedFill
    n_answered: int
    n_unreached: int

    def guarantee_with(self, fit: TableFit, options: Options, level: float) -> Guarantee:
        """Return what is guaranteed at a level of these rows and those of the fit together."""
        certainty = float(options.certainty)
        # Rows that were drawn and have no label are not covered.
        n_answered = self.n_answered - self.later.outside.table.n_empty
        if n_answered + self.n_unreached <= 0:
            return fit.guarantee(level, certainty, options.tolerance)
        others = self.later.guarantee_of_others(n_answered, self.n_unreached, level=level)
        if len(fit.answer) == 0:
            return others
        calibration = self.later.outside.beside(n_answered)
        calibration = replace(calibration, tolerance=options.tolerance)
        return fit.model.guarantee_with_others(
            others, calibration, level, certainty, options.tolerance
        )

    def note(self, fit: TableFit, n_rows: int, n_labels: int) -> str:
        """Return which rows the fit saw, and what became of each of all labels."""
        n_seen = fit.target.n_labels
        n_kept = len(self.later.outside.table.labels)
        n_calibration = fit.model.estimator.guarantee_.n_calibration
        within = ""
        if n_calibration:
            within = f", {n_calibration:,} of them calibration labels for its rows"
        n_unused = n_labels - n_seen - n_kept
        kept = f"with the other {n_kept:,} labels for calibration"
        if n_unused > 0:
            kept = f"with {n_kept:,} labels for calibration; {n_unused:,} labels are not used"
        return (
            f"The fit saw {len(fit.frame):,} of the {n_rows:,} rows, drawn at random, with "
            f"{n_seen:,} of the {n_labels:,} labels{within}; all other rows are predicted one by "
            f"one, {kept}. The comparison of labelled and unlabelled rows, the weights of methods "
            "and columns, and the map are based on the sample."
        )


class _SampleOfRows:
    """A sample of the rows, which the fit saw, and others."""

    others: OtherRows
    is_sample: bool = True

    def with_options(self, options: Options) -> Self:
        """Return the same rows, asked with other options."""
        later = self.others.later.with_options(options)
        sample: Any = self  # of a class that is a dataclass
        return replace(sample, others=replace(self.others, later=later))

    def later_rows(self, options: Options) -> FittedFill:
        """Return what answers the rows that the fit did not see."""
        return self.others.later

    def guarantee(self, fit: TableFit, options: Options, level: float) -> Guarantee:
        """Return what is guaranteed at a level of the answers at all rows of the table."""
        return self.others.guarantee_with(fit, options, level)

    def miscoverage(self, fit: TableFit, level: float) -> Law | None:
        """Return None: the rows of the sample and the others have a distribution each."""
        return None


@dataclass(frozen=True, eq=False)
class SampledRows(_SampleOfRows, _RowsInMemory):
    """The fit saw a sample of a table in memory; the other rows were answered one by one."""

    source: FrameSource
    order: AnyArray
    roles: RowDraw  # which rows were drawn for what
    others: OtherRows

    def labels_elsewhere(self) -> AnyArray:
        """Return the labels that were kept from the fit."""
        return self.others.later.kept_labels

    def notes(self, fit: TableFit) -> list[str]:
        """Return which rows the fit saw, and what became of each label."""
        return [self.others.note(fit, len(self.frame), self.roles.n_labelled)]

    def predict_column(self, result: FillResult) -> PredictedColumn:
        """Return the column with predictions, those at rows that the fit did not see among them."""
        others = partial(predict_others, result, self.others.later, self.roles)
        return predict_frame(result, self.order, others)


@dataclass(frozen=True, eq=False)
class SampleOfParts(_SampleOfRows):
    """The fit saw a sample of files or of a Dask frame, whose rows alone are shown."""

    source: PartSource
    frame: pd.DataFrame  # the rows of the sample
    roles: RowDraw  # which rows these are
    others: OtherRows
    totals: dict[str, int]  # of the whole table: rows, labelled, unlabelled, statuses once written
    extremes: Array  # (2,) the least and the greatest label of the whole table; (0,) of classes
    lines: None = None  # rows of a sample have no places in the table

    def labels_elsewhere(self) -> AnyArray:
        """Return the labels that were kept from the fit, and the extreme ones of all parts."""
        kept_labels = self.others.later.kept_labels
        if not len(self.extremes):
            return kept_labels
        # Of very many labels most are in neither: the fit sees some, and others calibrate it.
        return np.concatenate([kept_labels, self.extremes])

    def place_remedy(self, guarantee: Guarantee, missing: Mask) -> Guarantee:
        """Return the guarantee as it is: rows of a sample have no places in the table."""
        return guarantee

    def places_of(self, rows: AnyArray) -> AnyArray:
        """Return the rows as they are: those of the fit are shown, in its order."""
        return rows

    def place_labels(self, out_of_fold: pd.DataFrame) -> pd.DataFrame:
        """Return what is known of labelled rows without their places, which mean nothing."""
        return out_of_fold.reset_index(drop=True)

    def place_suspects(self, suspects: Suspects) -> Suspects:
        """Return suspect labels without their places, which mean nothing."""
        return replace(suspects, have_places=False)

    def place_map(self, places: pd.DataFrame) -> pd.DataFrame:
        """Return the map of the rows of the fit, which are those that are shown."""
        return places

    def place_advice(self, advise: Callable[[], NextLabels]) -> NextLabels | None:
        """Return None: rows of a sample have no places in the table."""
        return None

    def name_rows(self) -> Sequence[Any]:
        """Return the names in the table's index, or the part and the place in it."""
        # The places in a sample mean nothing to anybody: those in the table do.
        return _name_by_index(self.frame) or [
            self.source.name_row(part, row) for part, row in self.roles.seen.tolist()
        ]

    def count_rows(self, answer: Answer) -> RowCounts:
        """Return how many rows the whole table has, and how they were answered, if known."""
        return RowCounts(
            rows=self.totals["rows"],
            labelled=self.totals["labelled"],
            unlabelled=self.totals["unlabelled"],
            statuses=count_statuses(answer) | _known_statuses(self.totals),
            sampled=len(answer),
            is_lazy="answered" not in self.totals,
        )

    def notes(self, fit: TableFit) -> list[str]:
        """Return which rows the fit saw, and what became of each label."""
        return [self.others.note(fit, self.totals["rows"], self.totals["labelled"])]

    def notes_on_shown(self) -> list[str]:
        """Return that the rows of the sample are shown."""
        return ["The rows that are shown belong to the sample."]

    def shown_among_others(self) -> str:
        """Return that rows are counted among those of the sample."""
        return f" among the {len(self.roles.sampled):,} unlabelled rows of the sample"

    def add_columns(self, new: pd.DataFrame, table: Any = None) -> Any:
        """Return the table, which may have new columns already, with new columns after its own."""
        columns = PartColumns(self.others.later.for_parts(), sampled_columns(new, self.roles))
        return self.source.add_columns(columns, table)

    def predict_column(self, result: FillResult) -> PredictedColumn:
        """Return the column with a prediction at every row of every part."""
        return predict_parts(result, self.source, self.others.later, self.roles)


def _name_by_index(frame: pd.DataFrame) -> list[Any]:
    """Return the names of rows in an index; none if it only counts them."""
    if frame.index.equals(pd.RangeIndex(len(frame))):
        return []
    return list(frame.index)


def _known_statuses(totals: dict[str, int]) -> dict[str, int]:
    """Return the counts of statuses among the counts of a table."""
    return {word: n for word, n in totals.items() if word not in ("rows", "labelled", "unlabelled")}
