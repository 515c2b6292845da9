"""Tables in files: reading the usual kinds, and writing new columns beside the old ones, which stay as they are."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sys
import zipfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from transduce.core.atomic_file import whole_file
from transduce.tables.delimited import (
    ColumnCells,
    Delimited,
    append_columns,
    decode,
    read_delimited,
    rewrite_columns,
    write_delimited,
)

KINDS = {".csv": "csv", ".txt": "csv", ".tsv": "tsv", ".tab": "tsv", ".parquet": "parquet", ".pq": "parquet"}
KINDS |= {".xlsx": "excel", ".jsonl": "json lines", ".ndjson": "json lines"}
PACKED = (".gz", ".zip")
_SWELLING = {"csv": 12, "tsv": 12, "json lines": 15, "parquet": 20, "excel": 40}
_PACKING = 5


@dataclass(frozen=True, eq=False)
class Table:
    """A table read from a file.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table, typed, for computing.
    kind : {"csv", "tsv", "parquet", "excel", "json lines"}
    source : object
        What was read, as it was given; new columns are written beside it.
    name : str
        Where it came from.
    """

    frame: pd.DataFrame
    kind: str
    source: Any
    name: str

    def cells(self, column: Any) -> ColumnCells:
        """Return how the cells of a column were read, where the file was text."""
        if isinstance(self.source, Delimited):
            return self.source.cells.get(column, ColumnCells(prefer=self.prefer))
        return ColumnCells()

    @property
    def prefer(self) -> str:
        """The decimal sign of numbers in text, in case of doubt."""
        return "comma" if isinstance(self.source, Delimited) and self.source.delimiter == ";" else "point"


def kind_of(path: str | Path) -> tuple[str | None, str]:
    """Return the kind that a file's name says (None if it says nothing) and how it is packed.

    Examples
    --------
    >>> kind_of("a.csv.gz"), kind_of("b.tsv"), kind_of("c")
    (('csv', '.gz'), ('tsv', ''), (None, ''))
    """
    name = Path(path)
    packed = name.suffix.lower() if name.suffix.lower() in PACKED else ""
    inner = Path(name.stem) if packed else name
    return KINDS.get(inner.suffix.lower()), packed


def memory_needed(path: str | Path) -> int:
    """Return a rough estimate of the bytes it takes to read and fill a file."""
    kind, packed = kind_of(path)
    return os.path.getsize(path) * _SWELLING[kind or "csv"] * (_PACKING if packed else 1)


def memory_free() -> int | None:
    """Return the bytes of memory that are free, None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return None


def check_memory(path: str | Path, *, free: int | None = None) -> None:
    """Raise a MemoryError if a file is likely to need more memory than there is."""
    needed, free = memory_needed(path), memory_free() if free is None else free
    if free is not None and needed > free:
        raise MemoryError(
            f"{path} needs about {needed / 1e9:.1f} GB of memory and {free / 1e9:.1f} GB are free: drop columns or "
            "rows, or try it anyway with --force."
        )


def read(path: str | Path, *, force: bool = False) -> Table:
    r"""Read a table.

    Parameters
    ----------
    path : str or Path
        CSV, TSV, Parquet, Excel or JSON lines, also compressed with gzip or zip; "-" for standard input.
    force : bool, default=False
        Whether to go on if it needs more memory than is free.

    Returns
    -------
    Table

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "houses.csv"
    ...     _ = file.write_text("rooms;price\n3;1,5\n4;\n")
    ...     read(file).frame
       rooms  price
    0      3    1.5
    1      4    NaN
    """
    name = "standard input" if str(path) == "-" else str(path)
    if str(path) == "-":
        content = sys.stdin.buffer.read()
    else:
        if not Path(path).exists():
            raise FileNotFoundError(f"There is no file {path}.")
        if Path(path).is_dir():
            raise IsADirectoryError(f"{path} is a folder: name the table in it.")
        if not force:
            check_memory(path)
        content = Path(path).read_bytes()
    try:
        kind, content = _unpack(content, kind_of(path)[0] if str(path) != "-" else None)
        return Table(*_parse(content, kind), name=name)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error, csv.Error) as error:
        raise ValueError(f"{name} {_sentence(error)}") from error

    except (
        KeyError,
        RecursionError,
        RuntimeError,
        NotImplementedError,
    ) as error:  # what damaged files lead to
        raise ValueError(
            f"{name} cannot be read: it is damaged, encrypted or not what its name says."
        ) from error


def _sentence(error: Exception) -> str:
    """Return an error as the end of a sentence that begins with the name of the file."""
    text = next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".")
    return f"{text}." if text[:1].islower() else f"cannot be read: {text}."


def _unpack(content: bytes, kind: str | None) -> tuple[str, bytes]:
    """Return the kind of a table and its bytes, unpacked."""
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    elif content.startswith(b"PK\x03\x04") and kind != "excel":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/")]
            if "[Content_Types].xml" in names:
                return "excel", content
            if len(names) != 1:
                raise ValueError(f"holds {len(names)} files: pack one table alone")
            content, kind = archive.read(names[0]), kind_of(names[0])[0] or kind
    if content.startswith(b"PAR1"):
        return "parquet", content
    if not content.strip():
        raise ValueError("is empty: there is no table in it")
    if kind is None:
        kind = "json lines" if content.lstrip()[:1] == b"{" else "csv"
    return kind, content


def _parse(content: bytes, kind: str) -> tuple[pd.DataFrame, str, Any]:
    """Return frame, kind and source of a table's bytes."""
    if kind == "parquet":
        frame, source = _read_parquet(content)
    elif kind == "excel":
        frame, source = _read_excel(content)
    elif kind == "json lines":
        frame, source = _read_json_lines(content)
    else:
        frame, source = read_delimited(content, "\t" if kind == "tsv" else None)
        kind = "tsv" if source.delimiter == "\t" else "csv"
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise ValueError(f"has two columns called {twice[0]!r}: give each a name of its own")
    return frame, kind, source


def _read_parquet(content: bytes) -> tuple[pd.DataFrame, Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(content))
    except pa.ArrowException as error:
        raise ValueError("is not a Parquet file, or is damaged") from error
    return table.to_pandas(ignore_metadata=True), table


def _read_excel(content: bytes) -> tuple[pd.DataFrame, Any]:
    try:
        import openpyxl
    except ImportError as error:
        raise ValueError(
            "is an Excel file, which needs openpyxl: pip install 'transduce[excel]', or save it as CSV"
        ) from error
    macros = b"xl/vbaProject.bin" in content
    book = openpyxl.load_workbook(io.BytesIO(content), keep_vba=macros)
    values = openpyxl.load_workbook(io.BytesIO(content), data_only=True).worksheets[0].values
    rows = [list(row) for row in values]
    while rows and all(cell is None for cell in rows[-1]):
        rows.pop()
    if not rows:
        raise ValueError("is empty: there is no table in its first sheet")
    while rows[0] and rows[0][-1] is None and all(row[len(rows[0]) - 1] is None for row in rows):
        rows = [row[:-1] for row in rows]
    names = ["" if cell is None else str(cell) for cell in rows[0]]
    columns = [
        pd.Series([row[j] for row in rows[1:]], dtype=object).infer_objects() for j in range(len(names))
    ]
    frame = pd.concat(columns, axis=1) if columns else pd.DataFrame()
    frame.columns = pd.Index(names)
    return frame, book


def _read_json_lines(content: bytes) -> tuple[pd.DataFrame, list[str]]:
    lines = [line for line in decode(content)[0].split("\n") if line.strip()]
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"is not JSON in line {number}: {error.msg}") from error
        if not isinstance(row, dict):
            raise ValueError(f"has no object {{...}} in line {number}, as JSON lines must have")
        rows.append(row)
    return pd.DataFrame(rows), lines


# ---------------------------------------------------------------------------------------------------- writing


def write(path: str | Path, table: Table, new: pd.DataFrame, *, force: bool = False) -> None:
    """Write a table with new columns after its own, in one piece.

    Parameters
    ----------
    path : str or Path
        The kind and the packing are those of its name; "-" writes to standard output, in the kind that was read.
    table : Table
        As it was read: in the same kind its columns are written back as they were given.
    new : pandas.DataFrame
        One line for each row.
    force : bool, default=False
        Whether an existing file may be replaced.
    """
    kind, packed = out_kind(path, table.kind)
    with whole_file(path, force=force) as file:
        buffer = io.BytesIO() if packed or kind in ("parquet", "excel") else file
        _write(buffer, kind, table, new)
        if packed == ".gz":
            file.write(gzip.compress(buffer.getvalue(), mtime=0))  # type: ignore[attr-defined]
        elif packed == ".zip":
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(Path(path).stem, buffer.getvalue())  # type: ignore[attr-defined]
        elif buffer is not file:
            file.write(buffer.getvalue())  # type: ignore[attr-defined]


def out_kind(path: str | Path, default: str) -> tuple[str, str]:
    """Return kind and packing of a file to be written; a ValueError if its name says nothing."""
    if str(path) == "-":
        return default, ""
    kind, packed = kind_of(path)
    if kind is None:
        raise ValueError(
            f"{path} has an unknown format: let its name end in .csv, .tsv, .parquet, .xlsx or .jsonl (.gz or .zip)."
        )
    return kind, packed


def _write(file: Any, kind: str, table: Table, new: pd.DataFrame) -> None:
    source, same = table.source, kind == table.kind
    if kind in ("csv", "tsv"):
        if isinstance(source, Delimited) and (kind == "csv") == (source.delimiter != "\t"):
            append_columns(source, new, file)
        elif isinstance(source, Delimited):
            rewrite_columns(source, new, file, "," if kind == "csv" else "\t")
        else:
            write_delimited(_joined(table, new), file, "," if kind == "csv" else "\t")
    elif kind == "parquet":
        _write_parquet(file, table, new)
    elif kind == "excel":
        _write_excel(file, table if same else replace(table, source=None), new)
    elif same:
        for line, row in zip(source, _json_rows(new), strict=True):
            start = line.rstrip()[:-1].rstrip()
            comma = "" if start.endswith("{") else ", "
            file.write(f"{start}{comma}{row[1:]}\n".encode())
    else:
        for row in _json_rows(_joined(table, new)):
            file.write(f"{row}\n".encode())


def _joined(table: Table, new: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([_whole(table.frame).reset_index(drop=True), new.reset_index(drop=True)], axis=1)


def _whole(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose whole numbers with gaps, read from text as floats, are whole numbers again."""
    columns = {}
    for name in frame.columns:
        column = frame[name]
        known = column[column.notna()] if column.dtype.kind == "f" else column[:0]
        whole = len(known) and np.all(np.abs(known) < 2**53) and np.all(known == np.round(known))
        columns[name] = column.astype("Int64") if whole and len(known) < len(column) else column
    return pd.DataFrame(columns, index=frame.index)


def _write_parquet(file: BinaryIO, table: Table, new: pd.DataFrame) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = table.source
    if not isinstance(source, pa.Table):
        source = pa.Table.from_pandas(_whole(table.frame), preserve_index=False)
    additions = pa.Table.from_pandas(new.reset_index(drop=True), preserve_index=False)
    for name, column in zip(additions.column_names, additions.columns, strict=True):
        source = source.append_column(name, column)
    pq.write_table(source, file)


def _write_excel(file: BinaryIO, table: Table, new: pd.DataFrame) -> None:
    try:
        import openpyxl
    except ImportError as error:
        raise ValueError(
            "Writing Excel needs openpyxl: pip install 'transduce[excel]', or write CSV."
        ) from error
    book, width = table.source, table.frame.shape[1]
    if book is None:
        book, new, width = openpyxl.Workbook(), _joined(table, new), 0
    sheet = book.worksheets[0]
    for j, name in enumerate(new.columns, start=width + 1):
        sheet.cell(row=1, column=j, value=str(name))
        for i, value in enumerate(new[name].tolist(), start=2):
            sheet.cell(row=i, column=j, value=_cell(value))
    book.save(file)


def _cell(value: Any) -> Any:
    """Return a value as a cell of a sheet or a JSON object takes it: None if missing, infinities as text."""
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and np.isnan(value)):
        return None
    if isinstance(value, float) and np.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value.item() if isinstance(value, np.generic) else value


def _json_rows(frame: pd.DataFrame) -> list[str]:
    columns = [[_cell(value) for value in frame[name].tolist()] for name in frame.columns]
    names = list(map(str, frame.columns))
    return [
        json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=str)
        for row in zip(*columns, strict=True)
    ]
