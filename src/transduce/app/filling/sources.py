"""A table in memory, and which rows of a table are drawn for a fit, wherever they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from transduce.app.filling.options import Options
from transduce.app.tables import columns
from transduce.app.tables.column_names import check_columns
from transduce.app.tables.columns import ColumnReading, Target, missing_labels, read_target
from transduce.app.tables.decimal_signs import sign_of_frame
from transduce.app.tables.formats import Table
from transduce.app.tables.nested import ObjectFields, divide_objects, refuse_objects
from transduce.app.tables.new_columns import check_names
from transduce.app.tables.notes import About, Note, notes_about
from transduce.app.tables.row_draws import PartScan, RowDraw, draw_roles
from transduce.app.tables.row_hashes import content_order, labelled_hashes, row_hashes
from transduce.app.tables.row_names import RowNames, naming_rows
from transduce.app.tables.vectors import to_pandas
from transduce.app.tables.whole_numbers import with_all_digits
from transduce.conformal.designs import most_calibration
from transduce.core.checks import WrongTypeError
from transduce.core.ranks import fewest_calibration
from transduce.core.types import AnyArray, ColumnName, JsonObject, Mask
from transduce.core.words import quoted
from transduce.population.draws import read_marks

MOST_LABELS = 50_000  # more are not fitted to


@dataclass(frozen=True, eq=False, kw_only=True)
class TableOrigin:
    """What is known of a table, wherever its rows are."""

    name: str = ""  # where it came from, if that is known
    flags: JsonObject = field(default_factory=dict)  # of the command line, to read it again
    prefer: str = "point"  # the decimal sign of numbers in text, in case of doubt
    words: bool = False  # whether texts such as NA stand for a missing label
    pictures: str = "."  # the folder below which pictures are
    table_files: tuple[Path, ...] = ()  # that the rows came from, where the name tells too little

    @property
    def origin(self) -> tuple[Path, ...]:
        """The files that the rows came from, if they came from any.

        What is made of them is as private as they are.
        """
        if self.table_files:
            return self.table_files
        if self.name and Path(self.name).is_file():
            return (Path(self.name),)
        return ()

    def name_row(self, part: int, row: int) -> str:
        """Return what to call a row of a part, both counted from 0."""
        return f"row {row + 1}"

    def check_questions(self, before: Options, asked: Options) -> None:
        """Refuse what a result of this table cannot answer, and say what to do instead."""


@dataclass(frozen=True, eq=False)
class FrameSource(TableOrigin):
    """A table in memory: one part, whose labels are all known."""

    given: Any  # as it came: a pandas or polars frame
    frame: pd.DataFrame
    labels: Target
    computed: tuple[Any, ...] = ()  # columns that formulas of a workbook compute from the target
    further_notes: tuple[Note, ...] = ()  # on the file, and on what was found beside the labels
    lines: Sequence[int] | None = None  # of the file, on which each row begins
    fields: ObjectFields = field(default_factory=ObjectFields)  # of objects, which are columns here

    @classmethod
    def read(cls, table: Any, target: ColumnName, options: Options) -> FrameSource:
        """Return a frame, or a table read from a file, with its labels."""
        given = table
        if isinstance(table, Table):
            named = options.columns(target)
            index = [name for name in table.index if name not in named]
            given = table.stored_frame.drop(columns=index)
            frame = table.frame.drop(columns=index)
            fields = table.fields
            table.check_column(target)
        else:
            frame = table if isinstance(table, pd.DataFrame) else as_pandas(table)
            frame, fields = divide_objects(frame)
        names = options.below(frame.columns, target).columns(target)
        cleaned = options.clean(frame)
        check_columns(frame, names)
        refuse_objects(frame.columns, [target, *options.predicted])
        if isinstance(table, Table):
            cells = table.column_reading(target)
        else:
            cells = ColumnReading(prefer=sign_of_frame(frame))
        lines = table.lines if isinstance(table, Table) else None
        with naming_rows(RowNames.of_lines(lines)):
            labels = read_target(cleaned, target, cells=cells, **options.reading_of(target))
        check_names(frame, labels, **options.new_columns)
        if not isinstance(table, Table):
            return cls(given, frame, labels, prefer=cells.prefer, fields=fields)
        account: JsonObject = {
            "further_notes": tuple(notes_about(About.FILE, table.notes)),
            "name": table.name,
            "table_files": table.files,
            "prefer": table.prefer,
            "pictures": table.folder,
            "computed": tuple(table.computed_from(target)),
            "lines": lines,
        }
        return cls(
            given,
            frame,
            labels,
            flags=table.flags,
            fields=fields,
            **account,
        )

    @property
    def notes(self) -> list[Note]:
        """What the user should know of how the table was read."""
        of_labels = notes_about(About.LABELS, self.labels.notes, self.labels.name)
        return [*of_labels, *self.further_notes]

    def scan(self, target: ColumnName, options: Options) -> list[PartScan]:
        """Return what a draw needs to know of the table."""
        return [scan_rows(options.clean(self.frame), self.labels.missing, target, options)]

    def at(self, rows: AnyArray) -> FrameSource:
        """Return some of the rows."""
        labels = self.labels.at(rows)
        return replace(self, frame=self.frame.iloc[rows], labels=labels, lines=None)

    def order_by_content(self, options: Options) -> AnyArray:
        """Return the order in which a fit sees the rows: by content, not by place."""
        # Without the seed, so that a fit in which no seed has part is the same to the last digit
        # for every seed. Columns from which nothing is learned tell rows apart that are copies
        # otherwise, such as visits of two patients; beyond that they do not count, so that answers
        # do not change with them.
        frame = options.clean(self.frame)
        design = [name for name in options.design.not_features if name not in options.ignore]
        features = frame[self.feature_names(options)]
        labels = frame[self.labels.name]
        return content_order(features, labels, self.labels.missing, ties=frame[design])

    def feature_names(self, options: Options) -> list[ColumnName]:
        """Return the columns from which something is learned, as far as the options say."""
        no_feature = {self.labels.name, options.id, *options.ignore, *options.design.not_features}
        return [name for name in self.frame.columns if name not in no_feature]

    def take(
        self, roles: RowDraw, target: ColumnName, options: Options
    ) -> tuple[FrameSource, FrameSource]:
        """Return the rows that the fit sees and those kept from it, in the order of the draw."""
        return self.at(roles.seen[:, 1]), self.at(roles.calibration[:, 1])

    @property
    def row_names(self) -> RowNames:
        """What messages call the rows: lines of the file, or rows counted from 1."""
        return RowNames.of_lines(self.lines)

    def names_of_sample(self, roles: RowDraw) -> RowNames:
        """Return what messages call the rows that the fit sees."""
        return self.row_names.at(roles.seen[:, 1])

    def name_row(self, part: int, row: int) -> str:
        """Return what to call a row, counted from 0."""
        return self.row_names.name([row])

    def add_columns(self, new: pd.DataFrame, table: Any = None) -> Any:
        """Return the table, which may have new columns already, with new columns after its own."""
        if table is None:
            table = self.given
        if not isinstance(table, pd.DataFrame):
            return with_new_columns(table, new, self.labels.name)
        if isinstance(table.columns, pd.MultiIndex):
            new = new.set_axis(_names_in_levels(new.columns, self.labels.name), axis=1)
        return pd.concat([table, new], axis=1)


def _names_in_levels(names: pd.Index, target: Any) -> pd.MultiIndex:
    """Return names of new columns in the levels of the target's name, its last one extended."""
    *levels, last = target  # a tuple
    endings = [str(name).removeprefix(str(target)) for name in names]
    return pd.MultiIndex.from_tuples([(*levels, f"{last}{ending}") for ending in endings])


def with_new_columns(table: Any, new: pd.DataFrame, target: ColumnName = None) -> Any:
    """Return a polars frame with new columns after its own.

    Dates and enumerations have the type of the target.
    """
    import polars

    columns = polars.from_pandas(new.reset_index(drop=True))
    kind = table.schema.get(target)
    if kind is not None and kind.is_temporal():
        columns = columns.with_columns(polars.selectors.temporal().cast(kind))
    if isinstance(kind, polars.Enum):
        columns = columns.with_columns(polars.col(f"{target}_filled").cast(kind))
    return table.hstack(columns)


def as_pandas(table: Any) -> pd.DataFrame:
    """Return a polars frame as pandas, or raise a TypeError if it is not one."""
    if hasattr(table, "collect") and not hasattr(table, "shape"):
        raise WrongTypeError("The table is a lazy frame: call its collect() first.")
    if type(table).__module__.partition(".")[0] == "polars" and hasattr(table, "columns"):
        lists = [name for name, kind in table.schema.items() if kind.is_nested()]
        plain = table.drop(lists)
        frame = with_all_digits(pd.DataFrame(plain.to_pandas()), partial(_integers_of, plain))
        for name, column in to_pandas(table.select(lists).to_arrow()).items():
            frame.insert(table.columns.index(name), name, column)
        return frame
    kind = type(table).__name__
    raise WrongTypeError(
        f"A table is a pandas or polars frame; got {kind}. `fill` also takes a Dask frame, or the "
        "path of a file."
    )


def find_target(table: Any, options: Options) -> ColumnName:
    """Return the column to fill of a table: the only one with empty cells and with full ones."""
    if isinstance(table, Table):
        frame = table.frame
    elif isinstance(table, pd.DataFrame):
        frame = table
    else:
        frame = as_pandas(table)
    check_columns(frame, [])
    cleaned = options.clean(frame)
    partly_empty = []
    for name in cleaned.columns:
        missing = missing_labels(cleaned[name], words=isinstance(table, Table))
        if name not in options.ignore and missing.any() and not missing.all():
            partly_empty.append(name)
    if not partly_empty:
        raise ValueError(
            "No column has empty cells beside full ones, so that there is none to fill."
        )
    if len(partly_empty) > 1:
        raise ValueError(
            f"Several columns have empty cells, {quoted(partly_empty)}: name the one to fill as "
            "target."
        )
    return partly_empty[0]


def _integers_of(table: Any, place: int) -> list[Any] | None:
    """Return the cells of a column of a polars frame, None if they are no whole numbers."""
    column = table.to_series(place)
    if column.dtype.is_integer():
        return column.to_list()
    return None


def scan_rows(
    frame: pd.DataFrame,
    missing: Mask,
    target: ColumnName,
    options: Options,
) -> PartScan:
    """Return what a draw needs to know of some rows; the label counts where there is one."""
    marks = options.design.marks
    drawn = None
    if marks is not None:
        drawn = read_marks(frame, marks)
    seen = [name for name in frame.columns if name != target and name not in options.ignore]
    hashes = row_hashes(frame[seen], options.random_state)
    hashes = labelled_hashes(hashes, frame[target], missing)
    return PartScan(
        missing,
        hashes,
        drawn,
        limits=columns.limit_texts(frame[target]),
        cells=columns.extreme_cells(frame[target], missing),
    )


class Source(Protocol):
    """A table, wherever its rows are, of which a sample can be drawn."""

    @property
    def words(self) -> bool:
        """Whether texts such as NA stand for a missing label."""

    def scan(self, target: ColumnName, options: Options) -> list[PartScan]:
        """Return what a draw needs to know of each part."""

    def take(
        self, roles: RowDraw, target: ColumnName, options: Options
    ) -> tuple[FrameSource, FrameSource]:
        """Return the rows that the fit sees, and those that are kept from it."""

    def names_of_sample(self, roles: RowDraw) -> RowNames:
        """Return what messages call the rows that the fit sees."""


def draw(scans: list[PartScan], target: ColumnName, options: Options) -> RowDraw:
    """Draw the rows that the fit sees, and the labelled rows that calibrate all others.

    The latter are kept from the fit.
    """
    n_labels = sum(int((~scan.missing).sum()) for scan in scans)
    number = most_calibration(n_labels, options.levels, by_class=options.by_class)
    if options.design.draws_calibration:
        drawn = sum(int(scan.drawn.sum()) for scan in scans if scan.drawn is not None)
        least = 2 * fewest_calibration(options.level)
        if drawn < least:
            raise ValueError(
                f"{drawn} rows drawn at random are too few for a table of which the fit sees a "
                "sample: half of them calibrate the sample and half all other rows, "
                f"so it takes {least}."
            )
        number = drawn // 2
    roles = draw_roles(scans, n_calibration=number, n_visible=MOST_LABELS, n_sampled=options.sample)
    if roles.n_unlabelled == 0:
        raise ValueError(f"No cell of column {target!r} is empty, so there is nothing to fill.")
    if roles.n_labelled == 0:
        raise ValueError(
            f"All cells of column {target!r} are empty: some must have a label to learn from."
        )
    return roles
