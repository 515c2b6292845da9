"""Excel workbooks: one sheet is the table; sheets, formulas and styles stay as they are."""

from __future__ import annotations

import datetime as dt
import importlib
import io
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from transduce.app.tables.formats import (
    PACKING_FACTOR,
    Format,
    Original,
    Table,
    plain_cell,
    unpacked_size,
)
from transduce.app.tables.formulas import columns_in_formulas, pointing_at
from transduce.core.types import ColumnName
from transduce.core.words import counted, option

MOST_ROWS = 1_048_576
MOST_COLUMNS = 16_384
LONGEST_TEXT = 32_767
_LONGEST_INTEGER = 2**53  # up to which a sheet, whose numbers are floats, has all digits
_FIRST_YEAR = 1900  # a sheet has no earlier dates
_CONTROL_SIGNS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # which a sheet cannot hold
_FORMULA_STARTS = ("=", "+", "-", "@")


@dataclass(frozen=True, eq=False)
class Workbook(Original):
    """A workbook as it was given."""

    book: Any  # an openpyxl.Workbook
    sheet: str  # the sheet that was read
    others: dict[str, list[str]] = field(default_factory=dict)  # other sheets: their first rows
    uncomputed: dict[str, int] = field(default_factory=dict)  # formulas without a stored value
    formulas: dict[str, set[str]] = field(default_factory=dict)  # columns that a column points at
    kind: str = "excel"

    @property
    def sheets(self) -> list[str]:
        """The sheets to choose from, the one that was read first; none if there is no choice."""
        if not self.others:
            return []
        return [self.sheet, *self.others]

    def computed_from(self, column: ColumnName) -> list[str]:
        """Return the columns whose formulas point at a column, by way of others too."""
        return pointing_at(column, self.formulas)

    def notes(self, table: Table) -> list[str]:
        """Return which columns have formulas without a value."""
        return [_uncomputed(name, count) for name, count in self.uncomputed.items()]

    def check_column(self, table: Table, name: ColumnName) -> None:
        """Raise a ValueError if a column is in another sheet, or has formulas without a value."""
        sheets = [sheet for sheet, names in self.others.items() if str(name) in names]
        if name not in table.frame.columns and sheets:
            raise ValueError(
                f"The first sheet of {table.name} has no column {name!r}, "
                f"but its sheet {sheets[0]!r} has: use {option('sheet', sheets[0])}."
            )
        if name in self.uncomputed:
            raise ValueError(
                f"{_uncomputed(name, self.uncomputed[name])} "
                f"Open {table.name} in a spreadsheet program and save it."
            )


class WorkbookFormat(Format):
    """Excel workbooks."""

    name = "excel"
    endings = (".xlsx",)
    memory_factor = 40
    archive_entry = "[Content_Types].xml"
    has_sheets = True
    writes_in_order = False

    def read(self, content: bytes, sheet: str | None) -> tuple[pd.DataFrame, Original]:
        """Return one sheet as a table: the first unless one is named, by name or number."""
        openpyxl = _import_openpyxl("is an Excel file, which needs openpyxl: {}, or save it as CSV")
        keep_vba = b"xl/vbaProject.bin" in content
        book = openpyxl.load_workbook(io.BytesIO(content), keep_vba=keep_vba)
        stored = openpyxl.load_workbook(io.BytesIO(content), data_only=True)
        titles = [worksheet.title for worksheet in stored.worksheets]
        title = _sheet_title(titles, sheet)
        others = {other: _first_row(stored[other]) for other in titles if other != title}
        rows = _filled_rows(stored[title])
        if not rows:
            raise _has_no_table(title, [other for other in others if _filled_rows(stored[other])])
        names = _as_names(rows[0])
        frame = pd.DataFrame(rows[1:], columns=names, dtype=object).infer_objects()
        uncomputed = _count_uncomputed(book[title], names, rows)
        formulas = columns_in_formulas(book[title], names, len(rows))
        return frame, Workbook(book, title, others, uncomputed, formulas)

    def write(self, file: BinaryIO, table: Table, new: pd.DataFrame) -> None:
        """Write new columns beside those of the sheet that was read, or into a new workbook."""
        openpyxl = _import_openpyxl("Writing Excel needs openpyxl: {}, or write CSV.")
        original = table.original
        if isinstance(original, Workbook):
            book = original.book
            put_columns(book[original.sheet], new, table.frame.shape[1])
        else:
            book = openpyxl.Workbook()
            put_columns(book.worksheets[0], table.joined_with(new), 0)
        book.save(file)

    def memory_needed(self, path: str | Path, *, packed: bool) -> int:
        """Return a rough estimate of the bytes: a workbook is packed itself."""
        size = Path(path).stat().st_size
        if packed:
            size *= PACKING_FACTOR
        return max(size, unpacked_size(path) // PACKING_FACTOR) * self.memory_factor

    def check_fits(self, path: str | Path, table: Table, n_more: int) -> None:
        """Raise a ValueError if a sheet cannot hold the table and so many more columns."""
        frame = table.frame
        if len(frame) + 1 > MOST_ROWS or frame.shape[1] + n_more > MOST_COLUMNS:
            raise ValueError(
                f"{path} cannot hold the table: a sheet has at most {MOST_ROWS:,} rows and "
                f"{MOST_COLUMNS:,} columns. Write .csv or .parquet."
            )
        for name in frame.columns:
            column = frame[name]
            if column.dtype.kind == "O" and any(map(_is_too_long, column)):
                raise ValueError(
                    f"{path} cannot hold column {name!r}: a cell of a sheet has at most "
                    f"{LONGEST_TEXT:,} characters. Write .csv or .parquet."
                )


EXCEL = WorkbookFormat()


def _import_openpyxl(needed: str) -> Any:
    try:
        return importlib.import_module("openpyxl")
    except ImportError as error:
        raise ValueError(needed.format("pip install 'transduce[excel]'")) from error


def _uncomputed(name: ColumnName, count: int) -> str:
    """Return that a column has formulas without a value."""
    formulas = counted(
        count, "formula has no value stored and is", "formulas have no value stored and are"
    )
    return f"{name!r}: {formulas} missing."


def _sheet_title(titles: list[str], wanted: str | None) -> str:
    """Return the sheet that is wanted, by its title or else its number: the first by default."""
    if wanted is None:
        return titles[0]
    if wanted in titles:
        return wanted
    by_number = {str(number): title for number, title in enumerate(titles, start=1)}
    if wanted not in by_number:
        raise ValueError(f"has no sheet {wanted!r}, but {', '.join(map(repr, titles[:8]))}")
    return by_number[wanted]


def _has_no_table(title: str, full: list[str]) -> ValueError:
    """Return that a sheet is empty, and which others are not."""
    hint = ""
    if full:
        hint = f"; name another, such as {option('sheet', full[0])}"
    return ValueError(f"has no table in its sheet {title!r}{hint}")


def _as_names(cells: Iterable[Any]) -> list[str]:
    """Return the cells of a row as names; those of empty cells are empty."""
    return ["" if cell is None else str(cell) for cell in cells]


def _first_row(sheet: Any) -> list[str]:
    return _as_names(next(iter(sheet.values), ()))


def _filled_rows(sheet: Any) -> list[list[Any]]:
    """Return the cells of a sheet without empty rows below and empty columns beside them."""
    rows = [list(row) for row in sheet.values]
    while rows and all(cell is None for cell in rows[-1]):
        rows.pop()
    while rows and rows[0] and all(row[-1] is None for row in rows):
        rows = [row[:-1] for row in rows]
    return rows


def _count_uncomputed(sheet: Any, names: list[str], rows: list[list[Any]]) -> dict[str, int]:
    """Return how many formulas without a stored value each column has, if any."""
    counts: Counter[str] = Counter()
    cells = sheet.iter_rows(min_row=2, max_row=len(rows), max_col=len(names))
    for formulas, values in zip(cells, rows[1:], strict=False):
        for cell, value, name in zip(formulas, values, names, strict=False):
            if cell.data_type == "f" and value is None:
                counts[name] += 1
    return dict(counts)


def _is_too_long(cell: Any) -> bool:
    return isinstance(cell, str) and len(cell) > LONGEST_TEXT


def put_columns(sheet: Any, frame: pd.DataFrame, n_before: int) -> None:
    """Put the columns of a frame into a sheet, with their names, after the first `n_before`."""
    for place, name in enumerate(frame.columns, start=n_before + 1):
        _put_value(sheet.cell(row=1, column=place), str(name))
        for row, value in enumerate(frame[name].tolist(), start=2):
            _put_value(sheet.cell(row=row, column=place), value)


def _put_value(cell: Any, value: Any) -> None:
    """Put a value into a cell; what looks like a formula stays text."""
    value = _sheet_value(value)
    cell.value = value
    if isinstance(value, str):
        cell.data_type = "s"
        if value[:1] in _FORMULA_STARTS:
            cell.quotePrefix = True


def _sheet_value(value: Any) -> Any:
    """Return a value as a sheet holds it.

    It is text where a sheet cannot hold it: long whole numbers, time zones, infinities.
    """
    value = plain_cell(value)
    if isinstance(value, dt.datetime | dt.time):
        year = getattr(value, "year", _FIRST_YEAR)
        if value.tzinfo or year < _FIRST_YEAR:
            value = value.isoformat()
    is_long = isinstance(value, int) and abs(value) > _LONGEST_INTEGER
    fits = isinstance(value, bool | int | float | dt.date | dt.time | dt.timedelta | None)
    if fits and not is_long:
        return value
    return _CONTROL_SIGNS.sub("\N{REPLACEMENT CHARACTER}", str(value))
