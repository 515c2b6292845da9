"""What a format of files must be able to do, and a table as it was read from a file.

A format is one module: it reads bytes, keeps what was read as its `Original`, and writes new
columns beside it, so that the user's own bytes stay as they are.
It joins by one entry in `FORMATS` of `transduce.app.tables.files`.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import pandas as pd

from transduce.app.tables.columns import ColumnReading
from transduce.app.tables.decimal_signs import doubt_in_frame, sign_of_frame
from transduce.app.tables.layout import AUTOMATIC, LayoutRequest
from transduce.app.tables.nested import ObjectFields, divide_objects
from transduce.app.tables.numbers import number_of, number_text, read_numbers
from transduce.core.types import ColumnName
from transduce.core.words import option

PACKINGS = (".gz", ".zip")
PACKING_FACTOR = 5  # a packed file takes so many times its size in memory
MOST_DEFLATED = 1100  # no file that is whole unpacks to more times its size


class Original:
    """A table as its file had it; this one is of a table that came from no file.

    A format derives its own from this, and says only what differs.
    """

    kind: str = "csv"  # the name of the format that writes the table back
    lines: Sequence[int] | None = None  # of the file, counted from 1, on which each row begins
    sign: str = ""  # the decimal sign of numbers in text, in case of doubt; "" if texts show it
    doubt: tuple[ColumnName, str] | None = None  # a column, and a number that may have either sign

    @property
    def index(self) -> tuple[str, ...]:
        """Columns that are the index of a stored pandas frame."""
        return ()

    @property
    def sheets(self) -> list[str]:
        """The sheets to choose from, the one that was read first; none if there is no choice."""
        return []

    @property
    def sheets_are(self) -> str:
        """What each of the sheets is called."""
        return "sheet"

    def column_reading(self, column: ColumnName, labelled: frozenset[int]) -> ColumnReading:
        """Return how the cells of a column were read; `labelled` rows have a label given since."""
        return ColumnReading()

    def computed_from(self, column: ColumnName) -> list[str]:
        """Return the columns that are computed from a column."""
        return []

    def exact_columns(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the columns for another format: whole numbers with all their digits."""
        return frame

    def notes(self, table: Table) -> list[str]:
        """Return what the user should know about how the file was read."""
        return []

    def check_column(self, table: Table, name: ColumnName) -> None:
        """Raise a ValueError if the file tells why a column is not there, or of no use."""


@dataclass(frozen=True, eq=False)
class Table:
    """A table read from a file."""

    frame: pd.DataFrame  # the table, typed, for computing
    original: Original  # what was read, as it was given; new columns are written beside it
    name: str  # where it came from
    sheet: str | None = None  # of a workbook, as the user named it
    layout: LayoutRequest = AUTOMATIC  # where the table is in it, as the user said
    # Rows of a column whose cell is a label that was given since, not what the file has there.
    labelled: Mapping[ColumnName, frozenset[int]] = field(default_factory=dict)
    notes_since: tuple[str, ...] = ()  # on what joined the table after it was read
    files_since: tuple[Path, ...] = ()  # that it came from
    fields: ObjectFields = field(default_factory=ObjectFields)  # of objects, which are columns here
    undivided: pd.DataFrame | None = None  # the table with its objects, if it has any

    def divided(self) -> Table:
        """Return the table with the fields of its objects as columns."""
        frame, fields = divide_objects(self.frame)
        if not fields.paths:
            return self
        return replace(self, frame=frame, fields=fields, undivided=self.frame)

    @property
    def stored_frame(self) -> pd.DataFrame:
        """The table with objects as the file has them."""
        if self.undivided is None:
            return self.frame
        return self.fields.rejoin(self.frame, self.undivided)

    @property
    def kind(self) -> str:
        """The name of the format that the table came in."""
        return self.original.kind

    @property
    def index(self) -> tuple[str, ...]:
        """Columns that are the index of a stored pandas frame."""
        return self.original.index

    @cached_property
    def prefer(self) -> str:
        """The decimal sign of numbers in text, in case of doubt."""
        return self.layout.decimal or self.original.sign or sign_of_frame(self.frame)

    @cached_property
    def in_two_ways(self) -> tuple[ColumnName, str] | None:
        """A column, and a number in it of which nothing says whether it has a decimal comma."""
        if self.layout.decimal:
            return None
        if self.original.sign:
            return self.original.doubt
        return doubt_in_frame(self.frame)

    @property
    def notes(self) -> list[str]:
        """What the user should know about how the file was read."""
        notes = [*self.original.notes(self), *self.notes_since]
        if self.in_two_ways is None:
            return notes
        column, text = self.in_two_ways
        signs = ("comma", "point") if self.prefer == "point" else ("point", "comma")
        values = [f"{number_of(text, sign):.12g}" for sign in signs]
        note = (
            f"{text!r} in column {str(column)!r} may be {values[0]} or {values[1]}, and nothing in "
            f"the table says which: it was read as {values[1]}; "
            f"{option('decimal', signs[0])} reads it as {values[0]}."
        )
        return [note, *notes]

    @property
    def flags(self) -> dict[str, object]:
        """The options of the command line that say where the table is in its file."""
        flags = self.layout.flags
        if self.sheet is not None:
            flags["sheet"] = self.sheet
        return flags

    @property
    def lines(self) -> Sequence[int] | None:
        """The line of the file, counted from 1, on which each row begins; None if it has none."""
        return self.original.lines

    @property
    def notes_elsewhere(self) -> list[str]:
        """The notes as they are where another table is the subject."""
        if not self.name:
            return self.notes
        return [f"{Path(self.name).name}: {note}" for note in self.notes]

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that the table came from, if any: what is made of them is as private."""
        for name in (self.name, self.name.partition("::")[0]):  # a table of a database has both
            if Path(name).is_file():
                return (Path(name), *self.files_since)
        return self.files_since

    @property
    def folder(self) -> str:
        """The folder of the file, below which pictures are looked for."""
        return str(Path(self.name).parent)

    def column_reading(self, column: ColumnName) -> ColumnReading:
        """Return how the cells of a column were read, which may have joined the table since."""
        labelled = self.labelled.get(column, frozenset())
        reading = self.original.column_reading(column, labelled)
        return replace(reading, prefer=self.prefer)

    def computed_from(self, column: ColumnName) -> list[str]:
        """Return the columns whose formulas point at a column, by way of others too."""
        return self.original.computed_from(column)

    def column_called(self, name: str) -> str:
        """Return the column that a name means, which may have other blanks or line breaks.

        Cells of names often have line breaks, which nobody types. A name that is not there comes
        back as it is.
        """
        if name in self.frame.columns:
            return name
        words = name.split()
        alike = [column for column in map(str, self.frame.columns) if column.split() == words]
        if len(alike) != 1:
            return name
        return alike[0]

    def check_column(self, name: ColumnName) -> None:
        """Raise a ValueError if the file tells why a column is not there, or of no use."""
        self.original.check_column(self, name)

    def exact_columns(self) -> pd.DataFrame:
        """Return the columns for another format: whole numbers with all their digits."""
        return self.original.exact_columns(self.stored_frame)

    def joined_with(self, new: pd.DataFrame) -> pd.DataFrame:
        """Return the columns for another format, and new ones after them."""
        columns = self.exact_columns().reset_index(drop=True)
        return pd.concat([columns, new.reset_index(drop=True)], axis=1)

    def with_account(self, notes: Iterable[str], file: Path) -> Table:
        """Return the table with notes on what joined it, and the file that this came from."""
        return replace(
            self,
            notes_since=(*self.notes_since, *notes),
            files_since=(*self.files_since, file),
        )

    def with_column(self, column: ColumnName) -> Table:
        """Return the table with a column, which is empty if the table did not have it."""
        if column in self.frame.columns:
            return self
        frame = self.frame.copy(deep=False)
        frame[column] = pd.Series([None] * len(frame), index=frame.index, dtype=object)
        return replace(self, frame=frame)

    def with_labels(self, column: ColumnName, labels: Mapping[int, Any]) -> Table:
        """Return the table with labels in cells of a column.

        They are text where the others are text, and all are text where a label is.
        """
        cells = self.frame[column].astype(object)
        numeric = pd.api.types.is_numeric_dtype(self.frame[column])
        if numeric and any(isinstance(label, str) for label in labels.values()):
            numeric = False
            cells = cells.map(number_text, na_action="ignore")
        texts = cells.where(cells.map(type).eq(str))
        decimal = read_numbers(texts, self.column_reading(column).prefer).decimal
        numbers_are_texts = not numeric and texts.notna().any()
        for row, label in labels.items():
            is_number = isinstance(label, float | int) and not isinstance(label, bool)
            if is_number and numbers_are_texts:
                cells.iat[row] = number_text(float(label), decimal)
            else:
                cells.iat[row] = label
        if numeric:
            cells = pd.to_numeric(cells)
        frame = self.frame.copy(deep=False)
        frame[column] = cells
        rows = self.labelled.get(column, frozenset()) | frozenset(labels)
        return replace(self, frame=frame, labelled={**self.labelled, column: rows})


class Format(Protocol):
    """A format of files. Those that derive from it say only what differs from the usual."""

    name: str  # what messages and `Table.kind` call it
    endings: tuple[str, ...]  # of names of files, such as ".csv"
    memory_factor: int  # about how many bytes a byte of the file takes to read and fill
    signature: bytes = b""  # with which each such file begins, whatever it is called
    archive_entry: str = ""  # a file in each, where the format is an archive of files itself
    has_sheets: bool = False  # whether a file holds several tables, of which one is named
    has_layout: bool = False  # whether other rows may stand above and below the table
    writes_in_order: bool = True  # or only to what can be read back, and written over
    written_as: str = ""  # the ending of the format to write instead, if this one is only read

    def read(
        self, content: bytes, sheet: str | None, layout: LayoutRequest = AUTOMATIC
    ) -> tuple[pd.DataFrame, Original]:
        """Return a table, typed, and the table as it was given.

        A ValueError goes on from the name of the file: "is empty: there is no table in it".
        """

    def write(self, file: BinaryIO, table: Table, new: pd.DataFrame) -> None:
        """Write a table with new columns after its own, which stay to the byte where they can."""

    def recognizes(self, content: bytes) -> bool:
        """Return whether bytes without a name look like this format."""
        return False

    def refined(self, content: bytes) -> Format:
        """Return the format of bytes that are named like this one: this, or a near relation."""
        return self

    def memory_needed(self, path: str | Path, *, packed: bool) -> int:
        """Return a rough estimate of the bytes it takes to read and fill a file."""
        return unpacked_bytes(path, packed=packed) * self.memory_factor

    def check_fits(self, path: str | Path, table: Table, n_more: int) -> None:
        """Raise a ValueError if a file cannot hold the table and so many more columns."""
        return  # most formats hold any table

    def is_named_by(self, path: str | Path) -> bool:
        """Return whether the name of a file says that it is of this format."""
        return split_ending(path)[0] in self.endings


def split_ending(path: str | Path) -> tuple[str, str]:
    """Return the ending of a file without its packing, and how it is packed ("" if it is not)."""
    name = Path(path)
    ending = name.suffix.lower()
    if ending in PACKINGS:
        return Path(name.stem).suffix.lower(), ending
    return ending, ""


def unpacked_bytes(path: str | Path, *, packed: bool) -> int:
    """Return about how many bytes a file has when it is unpacked."""
    size = Path(path).stat().st_size
    if not packed:
        return size
    return max(size * PACKING_FACTOR, unpacked_size(path))


def unpacked_size(path: str | Path) -> int:
    """Return how many bytes a packed file says that it holds; 0 if it does not say."""
    with open(path, "rb") as file:
        start = file.read(4)
        if start[:2] == b"\x1f\x8b":
            file.seek(-4, 2)
            size = int.from_bytes(file.read(4), "little")
            if size <= MOST_DEFLATED * Path(path).stat().st_size:
                return size
            return 0
    try:
        with zipfile.ZipFile(path) as archive:
            return sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return 0


def plain_cell(value: Any) -> Any:
    """Return a value as a sheet or a JSON object takes it: None if missing, infinities as text."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, float) and np.isnan(value):
        return None
    if isinstance(value, float) and np.isinf(value):
        return "inf" if value > 0 else "-inf"
    if isinstance(value, pd.Timestamp):
        return value.to_pydatetime(warn=False)
    if isinstance(value, pd.Timedelta):
        return value.to_pytimedelta()
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return value
