"""Excel workbooks: one sheet is the table; sheets, formulas and styles stay as they are."""

from __future__ import annotations

import datetime as dt
import importlib
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from transduce.app.tables.filled_cells import mark_filled
from transduce.app.tables.formats import (
    PACKING_FACTOR,
    Format,
    Original,
    Table,
    plain_cell,
    unpacked_size,
)
from transduce.app.tables.formulas import columns_in_formulas, pointing_at
from transduce.app.tables.layout import (
    AUTOMATIC,
    Layout,
    LayoutRequest,
    filled_places,
    find_layout,
    has_value,
)
from transduce.core.types import ColumnName
from transduce.core.words import counted, option

MOST_ROWS = 1_048_576
MOST_COLUMNS = 16_384
LONGEST_TEXT = 32_767
_LONGEST_INTEGER = 2**53  # up to which a sheet, whose numbers are floats, has all digits
NOT_AVAILABLE = "#N/A"  # the error of spreadsheets that stands for a missing value
LONGEST_COVER = 15  # rows of names beside values that no table has
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
    layout: Layout | None = None  # where the table is in the sheet
    chosen: str = ""  # a note, if the table is not in the first sheet
    lines: Sequence[int] | None = None  # the row of the sheet, counted from 1, of each row
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
        """Return what was left out of the sheet, and which formulas have no value."""
        notes = [_uncomputed(name, count) for name, count in self.uncomputed.items()]
        if self.layout is not None:
            notes = [*self.layout.notes, *notes]
        if self.chosen:
            notes = [self.chosen, *notes]
        return notes

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


def _merged_to_the_right(sheet: Any) -> dict[tuple[int, int], int]:
    """Return the last column of merged cells, by the row and column of their first."""
    return {
        (one.min_row - 1, one.min_col - 1): one.max_col - 1
        for one in sheet.merged_cells.ranges
        if one.max_col > one.min_col
    }


class WorkbookFormat(Format):
    """Excel workbooks."""

    name = "excel"
    endings = (".xlsx",)
    memory_factor = 40
    archive_entry = "[Content_Types].xml"
    has_sheets = True
    has_layout = True
    writes_in_order = False

    def read(
        self, content: bytes, sheet: str | None, layout: LayoutRequest = AUTOMATIC
    ) -> tuple[pd.DataFrame, Original]:
        """Return one sheet as a table: the first that holds one, unless one is named."""
        openpyxl = _import_openpyxl("is an Excel file, which needs openpyxl: {}, or save it as CSV")
        keep_vba = b"xl/vbaProject.bin" in content
        book = openpyxl.load_workbook(io.BytesIO(content), keep_vba=keep_vba)
        stored = openpyxl.load_workbook(io.BytesIO(content), data_only=True)
        sheets = {
            worksheet.title: [list(row) for row in worksheet.values]
            for worksheet in stored.worksheets
        }
        hidden = [
            worksheet.title for worksheet in stored.worksheets if worksheet.sheet_state != "visible"
        ]
        title, chosen = choose_sheet(sheets, sheet, hidden)
        rows = sheets[title]
        sheet_layout = find_layout(rows, layout, _merged_to_the_right(stored[title]))
        sheet_layout.notes.extend(_notes_on_sheet(stored[title], rows, sheet_layout))
        frame = frame_of_rows(rows, sheet_layout)
        others = {
            other: _as_names(cells[0] if cells else [])
            for other, cells in sheets.items()
            if other != title
        }
        by_place = dict(zip(sheet_layout.columns, sheet_layout.names, strict=True))
        names = [by_place.get(place, "") for place in range(sheet_layout.columns[-1] + 1)]
        original = Workbook(
            book,
            title,
            others,
            _count_uncomputed(book[title], sheet_layout, rows),
            columns_in_formulas(
                book[title],
                names,
                sheet_layout.rows[-1] + 1 if sheet_layout.rows else 1,
            ),
            sheet_layout,
            chosen,
            lines=[place + 1 for place in sheet_layout.rows],
        )
        return frame, original

    def write(self, file: BinaryIO, table: Table, new: pd.DataFrame) -> None:
        """Write new columns beside those of the sheet that was read, or into a new workbook."""
        openpyxl = _import_openpyxl("Writing Excel needs openpyxl: {}, or write CSV.")
        original = table.original
        if isinstance(original, Workbook):
            book = original.book
            layout = original.layout
            assert layout is not None
            sheet = book[original.sheet]
            n_before = layout.columns[-1] + 1
            put_columns(sheet, new, n_before, layout.names_at, layout.rows)
            formats = _number_formats(sheet, layout)
            mark_filled(sheet, new, n_before, layout.names_at, layout.rows, formats)
        else:
            book = openpyxl.Workbook()
            sheet = book.worksheets[0]
            joined = table.joined_with(new)
            put_columns(sheet, joined, 0)
            n_before = joined.shape[1] - new.shape[1]
            mark_filled(sheet, new, n_before, 0, range(1, len(new) + 1), {})
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
        raise ValueError(needed.format("pip install openpyxl")) from error


def _uncomputed(name: ColumnName, count: int) -> str:
    """Return that a column has formulas without a value."""
    formulas = counted(
        count, "formula has no value stored and is", "formulas have no value stored and are"
    )
    return f"{name!r}: {formulas} missing."


def _notes_on_sheet(sheet: Any, rows: list[list[Any]], layout: Layout) -> list[str]:
    """Give merged cells of the table their value in each row; return notes on these and on others.

    Only the first of merged cells has a value in the file.
    """
    notes = []
    of_table = set(layout.rows)
    columns = set(layout.columns)
    n_merged = 0
    for merged in sheet.merged_cells.ranges:
        first = merged.min_row - 1
        column = merged.min_col - 1
        if merged.max_row == merged.min_row or first not in of_table or column not in columns:
            continue
        n_merged += 1
        for place in range(first + 1, min(merged.max_row, len(rows))):
            rows[place][column] = rows[first][column]
    if n_merged:
        notes.append(
            f"{counted(n_merged, 'cell')} merged over several rows: the value counts in each row."
        )
    hidden = [
        place for place, row in sheet.row_dimensions.items() if row.hidden and place - 1 in of_table
    ]
    if hidden:
        notes.append(
            f"{counted(len(hidden), 'row')} hidden in the sheet, as by a filter, "
            f"{'is' if len(hidden) == 1 else 'are'} read like all others (row {min(hidden)})."
        )
    return notes


def choose_sheet(
    sheets: dict[str, list[list[Any]]], wanted: str | None, hidden: Sequence[str] = ()
) -> tuple[str, str]:
    """Return the sheet that is wanted, by its title or else its number, and a note.

    By default it is the first one that holds a table: a cover sheet has no rows of several cells,
    or names beside values. Hidden sheets are not looked at where another holds a table.
    """
    titles = list(sheets)
    if wanted is None:
        with_table = [title for title in titles if _holds_table(sheets[title])]
        with_table = [title for title in with_table if title not in hidden] or with_table
        full = [title for title in with_table if not _is_cover(sheets[title])]
        with_table = full or with_table
        if not with_table:
            filled = [title for title in titles if any(map(has_value, sheets[title]))]
            if not filled:
                raise ValueError(f"has no table in its sheet {titles[0]!r}")
            return filled[0], ""
        chosen, *others = with_table
        note = ""
        if chosen != titles[0]:
            why = "is hidden" if titles[0] in hidden else "holds none"
            note = f"The table is in sheet {chosen!r}; {titles[0]!r} {why}."
        elif others:
            count = counted(len(others), "other sheet holds a table", "other sheets hold tables")
            note = (
                f"The table is in sheet {chosen!r}, the first; {count} too: "
                f"{option('sheet', others[0])} takes {others[0]!r}."
            )
        return chosen, note
    by_number = {str(number): title for number, title in enumerate(titles, start=1)}
    title = wanted if wanted in titles else by_number.get(wanted)
    if title is None:
        raise ValueError(f"has no sheet {wanted!r}, but {', '.join(map(repr, titles[:8]))}")
    if not any(map(has_value, sheets[title])):
        full = [other for other in titles if any(map(has_value, sheets[other]))]
        raise _has_no_table(title, full)
    return title, ""


def _holds_table(rows: list[list[Any]]) -> bool:
    """Return whether a sheet has at least two rows of several cells, or one column of many."""
    widths = [len(filled_places(row)) for row in rows]
    return sum(width > 1 for width in widths) >= 2 or sum(width > 0 for width in widths) > 3


def _is_cover(rows: list[list[Any]]) -> bool:
    """Return whether a sheet holds a few names beside values, as the author and a date."""
    filled = [row for row in rows if has_value(row)]
    is_narrow = all(filled_places(row)[-1] - filled_places(row)[0] < 2 for row in filled)
    return is_narrow and len(filled) <= LONGEST_COVER


def _value_at(row: list[Any], column: int) -> Any:
    """Return the cell of a row, None where it is empty or says that no value is available."""
    if column >= len(row) or row[column] == NOT_AVAILABLE:
        return None
    return row[column]


def frame_of_rows(rows: list[list[Any]], layout: Layout) -> pd.DataFrame:
    """Return the cells of a table as a frame."""
    cells = [
        [_value_at(row, column) for column in layout.columns]
        for row in (rows[place] for place in layout.rows)
    ]
    return pd.DataFrame(cells, columns=layout.names, dtype=object).infer_objects()


def _has_no_table(title: str, full: list[str]) -> ValueError:
    """Return that a sheet is empty, and which others are not."""
    hint = ""
    if full:
        hint = f"; name another, such as {full[0]!r}: {option('sheet', full[0])}"
    return ValueError(f"has no table in its sheet {title!r}{hint}")


def _as_names(cells: Iterable[Any]) -> list[str]:
    """Return the cells of a row as names; those of empty cells are empty."""
    return ["" if cell is None else str(cell) for cell in cells]


def _count_uncomputed(sheet: Any, layout: Layout, rows: list[list[Any]]) -> dict[str, int]:
    """Return how many formulas without a stored value each column has, if any."""
    counts: Counter[str] = Counter()
    for row in layout.rows:
        for column, name in zip(layout.columns, layout.names, strict=True):
            if column < len(rows[row]) and rows[row][column] is None:
                cell = sheet.cell(row=row + 1, column=column + 1)
                if cell.data_type == "f":
                    counts[name] += 1
    return dict(counts)


def _number_formats(sheet: Any, layout: Layout) -> dict[str, Any]:
    """Return how numbers are written in the columns of a sheet, as their first full cell says."""
    formats = {}
    for column, name in zip(layout.columns, layout.names, strict=True):
        cells = (sheet.cell(row=row + 1, column=column + 1) for row in layout.rows)
        filled = next((cell for cell in cells if isinstance(cell.value, int | float)), None)
        if filled is not None and filled.number_format != "General":
            formats[name] = filled.number_format
    return formats


def _is_too_long(cell: Any) -> bool:
    return isinstance(cell, str) and len(cell) > LONGEST_TEXT


def put_columns(
    sheet: Any,
    frame: pd.DataFrame,
    n_before: int,
    header: int = 0,
    rows: list[int] | None = None,
) -> None:
    """Put the columns of a frame into a sheet, with their names, after the first `n_before`.

    Names go into the row `header`, counted from 0 (-1: nowhere), and cells into `rows`, by default
    those below.
    """
    places = rows
    if places is None:
        places = list(range(1, len(frame) + 1))
    for column, name in enumerate(frame.columns, start=n_before + 1):
        if header >= 0:
            _put_value(sheet.cell(row=header + 1, column=column), str(name))
        for place, value in zip(places, frame[name].tolist(), strict=True):
            _put_value(sheet.cell(row=place + 1, column=column), value)


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
