"""Formats that are read, and written as another.

These are older spreadsheets, and files of statistics programs.
"""

from __future__ import annotations

import datetime as dt
import importlib
import io
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from transduce.app.tables.formats import Format, Original, Table
from transduce.app.tables.layout import AUTOMATIC, LayoutRequest, find_layout
from transduce.app.tables.workbook import choose_sheet, frame_of_rows

OLE_SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # of .xls, and of workbooks with a password
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
LEAST_SAS_NUMBER = 16.0**-65  # above 0, in the floating point of transport files


@dataclass(frozen=True, eq=False)
class ReadTable(Original):
    """A table of a format that is only read."""

    kind: str
    reading_notes: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()  # of the sheets, the one that was read first
    lines: Sequence[int] | None = None  # the row of the sheet, counted from 1, of each row

    @property
    def sheets(self) -> list[str]:
        """The sheets to choose from, the one that was read first; none if there is no choice."""
        if len(self.titles) > 1:
            return list(self.titles)
        return []

    def notes(self, table: Table) -> list[str]:
        """Return what the user should know about how the file was read."""
        return list(self.reading_notes)


class _ReadOnlyFormat(Format):
    """What these formats share: they are not written."""

    memory_factor = 20

    def write(self, file: BinaryIO, table: Table, new: pd.DataFrame) -> None:
        """Refuse, and say what to write instead."""
        raise ValueError(
            f"{', '.join(self.endings)} files are read, not written: let the name of the new file "
            f"end in {self.written_as}."
        )


class SpreadsheetFormat(_ReadOnlyFormat):
    """Spreadsheets that openpyxl does not read: .xls, .xlsb and .ods."""

    has_sheets = True
    has_layout = True
    written_as = ".xlsx"

    def __init__(self, name: str, ending: str, archive_entry: str) -> None:
        self.name = name
        self.endings = (ending,)
        self.archive_entry = archive_entry

    def read(
        self, content: bytes, sheet: str | None, layout: LayoutRequest = AUTOMATIC
    ) -> tuple[pd.DataFrame, Original]:
        """Return one sheet as a table: the first that holds one, unless one is named."""
        refuse_password(content)
        calamine = _import_library("python_calamine", f"is an {self.endings[0]} file")
        try:
            book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
            sheets = {
                title: _cells(book.get_sheet_by_name(title).to_python(skip_empty_area=False))
                for title in book.sheet_names
            }
        except calamine.PasswordError as error:
            raise ValueError(PROTECTED) from error
        except (calamine.CalamineError, OSError) as error:
            raise ValueError(f"is no {self.endings[0]} file, or is damaged") from error
        title, note = choose_sheet(sheets, sheet)
        sheet_layout = find_layout(sheets[title], layout)
        frame = frame_of_rows(sheets[title], sheet_layout)
        others = [other for other in sheets if other != title]
        notes = tuple(filter(None, [note, *sheet_layout.notes]))
        lines = [place + 1 for place in sheet_layout.rows]
        return frame, ReadTable(self.name, notes, (title, *others), lines)


PROTECTED = "is protected by a password: open it in a spreadsheet program and save it without one"


def refuse_password(content: bytes) -> None:
    """Raise a ValueError if a workbook is encrypted."""
    if content.startswith(OLE_SIGNATURE) and _ENCRYPTED in content:
        raise ValueError(PROTECTED)


def _cells(rows: list[list[Any]]) -> list[list[Any]]:
    """Return the cells of a sheet: None where one is empty, whole numbers as such."""
    return [[_cell(value) for value in row] for row in rows]


def _cell(value: Any) -> Any:
    if value == "":
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day)
    return value


class StatisticsFormat(_ReadOnlyFormat):
    """Files of Stata, SPSS and SAS, with their value labels."""

    written_as = ".csv"

    def __init__(
        self,
        name: str,
        endings: tuple[str, ...],
        program: str,
        signature: bytes,
    ) -> None:
        self.name = name
        self.endings = endings
        self.program = program
        self.signature = signature

    def read(
        self, content: bytes, sheet: str | None, layout: LayoutRequest = AUTOMATIC
    ) -> tuple[pd.DataFrame, Original]:
        """Return the table; codes that have a label are read as the label."""
        if self.program == "SPSS":
            _import_library("pyreadstat", "is an SPSS file")
        try:
            frame = self._read_frame(content)
        except ValueError as error:
            if "pip install" in str(error):
                raise
            raise ValueError(f"is no {self.program} file, or is damaged") from error
        except Exception as error:  # each reader has errors of its own for damaged files
            raise ValueError(f"is no {self.program} file, or is damaged") from error
        labelled = [
            str(name)
            for name in frame.columns
            if isinstance(frame[name].dtype, pd.CategoricalDtype)
        ]
        notes: tuple[str, ...] = ()
        if labelled:
            listed = ", ".join(map(repr, labelled[:5]))
            notes = (f"Codes with value labels were read as their labels: {listed}.",)
        return _as_plain(frame), ReadTable(self.name, notes)

    def _read_frame(self, content: bytes) -> pd.DataFrame:
        if self.program == "Stata":
            return pd.read_stata(io.BytesIO(content))
        if self.program == "SAS":
            if self.endings[0] == ".sas7bdat":  # says itself how its texts are encoded
                return pd.read_sas(io.BytesIO(content), format="sas7bdat", encoding="infer")
            if not content.startswith(b"HEADER RECORD*******LIBV8"):
                frame = pd.read_sas(io.BytesIO(content), format="xport", encoding="utf-8")
                # Some programs write 0 as the least number that the format has.
                return frame.replace(LEAST_SAS_NUMBER, 0.0)
            readstat = _import_library("pyreadstat", "is a SAS transport file of version 8")
            return _read_by_name(content, lambda path: readstat.read_xport(path)[0])
        return _read_by_name(content, pd.read_spss)


def _read_by_name(content: bytes, read: Callable[[Path], pd.DataFrame]) -> pd.DataFrame:
    """Return what a reader makes of a file that it opens itself."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table"
        path.write_bytes(content)
        return read(path)


def _as_plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame without categories, whose codes may be numbers with a few labels."""
    columns = {}
    for name in frame.columns:
        column = frame[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            column = column.astype(object).where(column.notna(), None)
        columns[name] = column
    return pd.DataFrame(columns)


def _import_library(name: str, what: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        library = name.replace("_", "-")
        raise ValueError(
            f"{what}, which needs {library}: pip install {library}, or save it as CSV"
        ) from error


XLS = SpreadsheetFormat("xls", ".xls", "")
XLSB = SpreadsheetFormat("xlsb", ".xlsb", "xl/workbook.bin")
ODS = SpreadsheetFormat("ods", ".ods", "content.xml")
STATA = StatisticsFormat("stata", (".dta",), "Stata", b"<stata_dta>")
SPSS = StatisticsFormat("spss", (".sav", ".zsav"), "SPSS", b"$FL")
SAS = StatisticsFormat("sas", (".sas7bdat",), "SAS", bytes(12) + b"\xc2\xea\x81\x60")
SAS_TRANSPORT = StatisticsFormat("sas transport", (".xpt",), "SAS", b"HEADER RECORD*******LIB")
