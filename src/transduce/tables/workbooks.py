"""Excel workbooks: one sheet read as a table, and new columns written into it, text as text."""

from __future__ import annotations

import datetime as dt
import importlib
import io
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from transduce.core.words import option

MOST_ROWS, MOST_COLUMNS, LONGEST_TEXT = 1_048_576, 16_384, 32_767
_UNFIT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


@dataclass(frozen=True, eq=False)
class Workbook:
    """A workbook as it was given."""

    book: Any
    sheet: str  # the sheet that was read
    others: dict[str, list[str]] = field(default_factory=dict)  # the first row of every other sheet
    uncomputed: dict[str, int] = field(default_factory=dict)


def read_workbook(content: bytes, wanted: str | None = None) -> tuple[pd.DataFrame, Workbook]:
    """Return one sheet as a table, the first unless another is named by name or number, and the workbook."""
    openpyxl = _openpyxl("is an Excel file, which needs openpyxl: {}, or save it as CSV")
    book = openpyxl.load_workbook(io.BytesIO(content), keep_vba=b"xl/vbaProject.bin" in content)
    stored = openpyxl.load_workbook(io.BytesIO(content), data_only=True)
    sheets = [sheet.title for sheet in stored.worksheets]
    name = _sheet(sheets, wanted)
    rows = _rows(stored[name])
    others = {title: _names(next(iter(stored[title].values), ())) for title in sheets if title != name}
    if not rows:
        full = [title for title in others if _rows(stored[title])]
        hint = f"; name another, such as {option('sheet', full[0])}" if full else ""
        raise ValueError(f"has no table in its sheet {name!r}{hint}")
    names = _names(rows[0])
    frame = pd.DataFrame(rows[1:], columns=names, dtype=object).infer_objects()
    return frame, Workbook(book, name, others, _uncomputed(book[name], rows, names))


def _openpyxl(needed: str) -> Any:
    try:
        return importlib.import_module("openpyxl")
    except ImportError as error:
        raise ValueError(needed.format("pip install 'transduce[excel]'")) from error


def _sheet(sheets: list[str], wanted: str | None) -> str:
    if wanted is None:
        return sheets[0]
    if wanted in sheets:
        return wanted
    if wanted.isdigit() and 1 <= int(wanted) <= len(sheets):
        return sheets[int(wanted) - 1]
    raise ValueError(f"has no sheet {wanted!r}, but {', '.join(map(repr, sheets[:8]))}")


def _names(cells: Any) -> list[str]:
    return ["" if cell is None else str(cell) for cell in cells]


def _rows(sheet: Any) -> list[list[Any]]:
    """Return the cells of a sheet without empty rows below and empty columns beside them."""
    rows = [list(row) for row in sheet.values]
    while rows and all(cell is None for cell in rows[-1]):
        rows.pop()
    while rows and rows[0] and all(row[-1] is None for row in rows):
        rows = [row[:-1] for row in rows]
    return rows


def _uncomputed(sheet: Any, rows: list[list[Any]], names: list[str]) -> dict[str, int]:
    """Return how many cells of each column are formulas without a stored value."""
    formulas = sheet.iter_rows(min_row=2, max_row=len(rows), max_col=len(names))
    return dict(
        Counter(
            name
            for cells, values in zip(formulas, rows[1:], strict=False)
            for cell, value, name in zip(cells, values, names, strict=False)
            if cell.data_type == "f" and value is None
        )
    )


def check_sheet(frame: pd.DataFrame, more: int, path: Any) -> None:
    """Raise a ValueError if a table with so many more columns does not fit into a sheet."""
    columns = [frame[name] for name in frame.columns if frame[name].dtype.kind == "O"]
    long = [c.name for c in columns if any(isinstance(cell, str) and len(cell) > LONGEST_TEXT for cell in c)]
    most = f"column {long[0]!r}: a cell of a sheet has at most {LONGEST_TEXT:,} characters" if long else ""
    if len(frame) + 1 > MOST_ROWS or frame.shape[1] + more > MOST_COLUMNS:
        most = f"the table: a sheet has at most {MOST_ROWS:,} rows and {MOST_COLUMNS:,} columns"
    if most:
        raise ValueError(f"{path} cannot hold {most}. Write .csv or .parquet.")


def write_workbook(file: BinaryIO, source: Workbook | None, frame: pd.DataFrame, width: int) -> None:
    """Write a frame beside the first `width` columns of a sheet, or into a new workbook."""
    openpyxl = _openpyxl("Writing Excel needs openpyxl: {}, or write CSV.")
    book = openpyxl.Workbook() if source is None else source.book
    sheet = book.worksheets[0] if source is None else book[source.sheet]
    for j, name in enumerate(frame.columns, start=width + 1):
        _put(sheet.cell(row=1, column=j), str(name))
        for i, value in enumerate(frame[name].tolist(), start=2):
            _put(sheet.cell(row=i, column=j), value)
    book.save(file)


def _put(cell: Any, value: Any) -> None:
    """Put a value into a cell; text that looks like a formula stays text."""
    cell.value = value = _fitting(value)
    if isinstance(value, str):
        cell.data_type = "s"
        if value[:1] in ("=", "+", "-", "@"):
            cell.quotePrefix = True


def _fitting(value: Any) -> Any:
    """Return a value as a sheet can hold it; as text what it cannot: long whole numbers, time zones, infinities."""
    value = plain_cell(value)
    if isinstance(value, str):
        return _UNFIT.sub("�", value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53:
        return str(value)
    if isinstance(value, dt.datetime | dt.time) and value.tzinfo is not None:
        return value.isoformat()
    if isinstance(value, dt.datetime) and value.year < 1900:
        return value.isoformat()
    fits = isinstance(value, bool | int | float | dt.date | dt.time | dt.timedelta | None)
    return value if fits else _UNFIT.sub("�", str(value))


def plain_cell(value: Any) -> Any:
    """Return a value as a cell of a sheet or a JSON object takes it: None if missing, infinities as text."""
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and np.isnan(value)):
        return None
    if isinstance(value, float) and np.isinf(value):
        return "inf" if value > 0 else "-inf"
    if isinstance(value, pd.Timestamp):
        return value.to_pydatetime(warn=False)
    if isinstance(value, pd.Timedelta):
        return value.to_pytimedelta()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, np.generic) else value
