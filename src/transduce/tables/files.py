"""Tables in files: reading the usual kinds; `transduce.tables.writing` writes new columns beside the old ones."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import sys
import zipfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from transduce.core.words import counted, option
from transduce.tables.columns import check_once
from transduce.tables.delimited import ColumnCells, Delimited, decimal_sign, decode, fields_of, read_delimited
from transduce.tables.vectors import to_pandas
from transduce.tables.workbooks import Workbook, read_workbook

_ENDINGS = {"csv": ".csv .txt", "tsv": ".tsv .tab", "parquet": ".parquet .pq", "excel": ".xlsx"}
_ENDINGS |= {"json lines": ".jsonl .ndjson", "json": ".json", "feather": ".feather"}
KINDS = {ending: kind for kind, endings in _ENDINGS.items() for ending in endings.split()}
PACKED = (".gz", ".zip")
_SWELLING = {"csv": 12, "tsv": 12, "json lines": 15, "json": 15, "parquet": 20, "feather": 8, "excel": 40}
_PACKING, _LISTS = 5, 5  # times as much memory as packed files, and lists in Parquet, take
_BETWEEN = re.compile(r"[ \t\r\n,]*")  # the entries of a JSON array


@dataclass(frozen=True, eq=False)
class Table:
    """A table read from a file."""

    frame: pd.DataFrame  # the table, typed, for computing
    kind: str
    source: Any  # what was read, as it was given; new columns are written beside it
    name: str  # where it came from
    sheet: str | None = None  # of a workbook, as the user named it

    @property
    def index(self) -> tuple[str, ...]:
        """Columns that are the index of a stored pandas frame."""
        return stored_index(self.source.schema) if self.kind in ("parquet", "feather") else ()

    def cells(self, column: Any) -> ColumnCells:
        """Return how the cells of a column were read, where the file was text."""
        if not isinstance(self.source, Delimited) or column not in self.frame.columns:
            return ColumnCells()
        place = list(self.frame.columns).index(column)
        found = self.source.cells.get(column, ColumnCells(prefer=self.prefer))
        return replace(found, texts=lambda: fields_of(self.source, [place])[place])

    def check_column(self, name: Any) -> None:
        """Raise a ValueError if a column is in another sheet, has no name, or holds formulas without a stored value."""
        if isinstance(self.source, Delimited) and self.source.unnamed and name not in self.frame.columns:
            raise ValueError(f"{self._unnamed} There is no column {name!r}.")
        if not isinstance(self.source, Workbook):
            return
        sheets = [sheet for sheet, names in self.source.others.items() if str(name) in names]
        if name not in self.frame.columns and sheets:
            said = f"The first sheet of {self.name} has no column {name!r}, but its sheet {sheets[0]!r} has"
            raise ValueError(f"{said}: write {option('sheet', sheets[0])}.")
        if name in self.source.uncomputed:
            said = _uncomputed(name, self.source.uncomputed[name])
            raise ValueError(f"{said} Open {self.name} in a spreadsheet program and save it.")

    @property
    def notes(self) -> list[str]:
        """What the user should know about how the file was read."""
        if isinstance(self.source, Delimited) and self.source.unnamed:
            return [self._unnamed]
        if not isinstance(self.source, Workbook):
            return []
        return [_uncomputed(name, count) for name, count in self.source.uncomputed.items()]

    @property
    def _unnamed(self) -> str:
        """That the columns got names, and how to prevent it."""
        called = f"its columns are called 'column 1' to 'column {self.frame.shape[1]}'"
        undo = "If the first line does hold names, let each begin with a letter."
        return f"The first line of {self.name} holds data and no names: {called}. {undo}"

    @property
    def folder(self) -> str:
        """The folder of the file, below which pictures are looked for."""
        return str(Path(self.name).parent)

    @property
    def prefer(self) -> str:
        """The decimal sign of numbers in text, in case of doubt."""
        return decimal_sign(self.source.delimiter) if isinstance(self.source, Delimited) else "point"


def _uncomputed(name: Any, count: int) -> str:
    """Return that a column has formulas without a value."""
    said = counted(count, "formula has no value stored and is", "formulas have no value stored and are")
    return f"{name!r}: {said} missing."


def kind_of(path: str | Path) -> tuple[str | None, str]:
    """Return the kind that a file's name says (None if it says nothing) and how it is packed."""
    name = Path(path)
    packed = name.suffix.lower() if name.suffix.lower() in PACKED else ""
    inner = Path(name.stem) if packed else name
    return KINDS.get(inner.suffix.lower()), packed


def named_after(path: str | Path, word: str, ending: str | None = None) -> Path:
    """Return a file beside a table, NAME-word, with the table's ending or another one."""
    path = Path(path)
    kind, packed = kind_of(path)
    own = "".join(path.suffixes[-2:]) if packed else path.suffix
    return path.with_name(f"{path.name.removesuffix(own)}-{word}{ending or (own if kind else '.csv')}")


def memory_needed(path: str | Path) -> int:
    """Return a rough estimate of the bytes it takes to read and fill a file."""
    kind, packed = kind_of(path)
    size = os.path.getsize(path) * (_PACKING if packed else 1)
    lists = _list_bytes(path) if kind == "parquet" and not packed else 0
    return max(size - lists, 0) * _SWELLING[kind or "csv"] + lists * _LISTS


def _list_bytes(path: str | Path) -> int:
    """Return how many bytes the lists in a Parquet file are, which stay as compact in memory."""
    from pyarrow import parquet

    try:
        footer = parquet.read_metadata(path)
    except (pa.ArrowException, OSError):
        return 0
    lists = [j for j in range(footer.num_columns) if footer.schema.column(j).max_repetition_level > 0]
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    return sum(group.column(j).total_uncompressed_size for group in groups for j in lists)


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
        said = f"{path} needs about {needed / 1e9:.1f} GB of memory and {free / 1e9:.1f} GB are free"
        raise MemoryError(f"{said}: drop columns or rows, or try it anyway with --force.")


def read(path: str | Path, *, sheet: str | None = None, force: bool = False) -> Table:
    r"""Read a table."""
    name = "standard input" if str(path) == "-" else str(path)
    content = sys.stdin.buffer.read() if str(path) == "-" else _content(Path(path), force)
    try:
        kind, content = _unpack(content, kind_of(path)[0])
        table = Table(*_parse(content, kind, sheet), name=name, sheet=sheet)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error, csv.Error) as error:
        raise ValueError(f"{name} {_sentence(error)}") from error
    except (KeyError, RuntimeError) as error:  # what damaged files lead to
        said = "it is damaged, encrypted or not what its name says"
        raise ValueError(f"{name} cannot be read: {said}.") from error
    check_once(table.frame.columns, name)
    return table


def _content(path: Path, force: bool) -> bytes:
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name the table in it.")
    if not force:
        check_memory(path)
    return path.read_bytes()


def _sentence(error: Exception) -> str:
    """Return an error as the end of a sentence that begins with the name of the file."""
    if isinstance(error, csv.Error | UnicodeError):
        return "is not a table of delimited text."
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
    if content.startswith(b"ARROW1"):
        return "feather", content
    if not content.strip():
        raise ValueError("is empty: there is no table in it")
    first = content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if kind in ("json lines", "json", None):
        kind = {b"{": "json lines", b"[": "json"}.get(first, "json lines" if kind else "csv")
    return kind, content


def _parse(content: bytes, kind: str, sheet: str | None) -> tuple[pd.DataFrame, str, Any]:
    """Return frame, kind and source of a table's bytes."""
    if sheet is not None and kind != "excel":
        raise ValueError(f"is not an Excel file: leave out {option('sheet')}")
    source: Any
    if kind in ("parquet", "feather"):
        frame, source = _read_arrow(content, kind)
    elif kind == "excel":
        frame, source = read_workbook(content, sheet)
    elif kind in ("json lines", "json"):
        rows, source = (_array_entries if kind == "json" else _line_entries)(decode(content)[0])
        frame = pd.DataFrame(rows)
    else:
        frame, source = read_delimited(content, "\t" if kind == "tsv" else None)
        kind = "tsv" if source.delimiter == "\t" else "csv"
    return frame, kind, source


def _read_arrow(content: bytes, kind: str) -> tuple[pd.DataFrame, Any]:
    from pyarrow import feather, parquet

    reader = parquet.read_table if kind == "parquet" else feather.read_table
    try:
        table = reader(pa.BufferReader(content))
    except pa.ArrowException as error:
        raise ValueError(f"is not a {kind.capitalize()} file, or is damaged") from error
    return to_pandas(table), table


def with_columns(table: pa.Table, new: pd.DataFrame) -> pa.Table:
    """Return an Arrow table with the columns of a frame after its own."""
    additions = pa.Table.from_pandas(new.reset_index(drop=True), preserve_index=False)
    for name, column in zip(additions.column_names, additions.columns, strict=True):
        table = table.append_column(name, column)
    return table


def stored_index(schema: Any) -> tuple[str, ...]:
    """Return the columns of an Arrow schema that are the index of a pandas frame: names of rows, not features."""
    names = (schema.pandas_metadata or {}).get("index_columns", ())
    return tuple(name for name in names if isinstance(name, str) and name in schema.names)


def _line_entries(text: str) -> tuple[list[Any], list[str]]:
    """Return the objects of JSON lines, and the text of each."""
    texts = [line for line in text.split("\n") if line.strip()]
    return [json_object(line, number) for number, line in enumerate(texts, start=1)], texts


def json_object(line: str, number: int) -> dict[str, Any]:
    """Return the object in a line of JSON, or raise a ValueError that goes on from the name of the file."""
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON in line {number}: {error.msg}") from error
    if not isinstance(row, dict):
        raise ValueError(f"has no object {{...}} in line {number}, as JSON lines must have")
    return row


def extended_object(text: str, addition: str) -> str:
    """Return the text of a JSON object with the fields of another one after its own."""
    start = text.rstrip()[:-1].rstrip()
    return f"{start}{'' if start.endswith('{') else ', '}{addition[1:]}"


def _array_entries(text: str) -> tuple[list[Any], list[str]]:
    """Return the objects of a JSON array, and the text of each."""
    decoder, place = json.JSONDecoder(), text.index("[") + 1
    rows, texts = list[Any](), list[str]()
    while not text.startswith("]", place := _BETWEEN.match(text, place).end()):  # type: ignore[union-attr]
        try:
            row, end = decoder.raw_decode(text, place)
        except json.JSONDecodeError as error:
            raise ValueError(f"is not JSON in line {error.lineno}: {error.msg}") from error
        if not isinstance(row, dict):
            raise ValueError(f"has no object {{...}} in place {len(rows) + 1} of its array")
        rows.append(row)
        texts.append(text[place:end])
        place = end
    if not rows:
        raise ValueError("is empty: there is no table in it")
    return rows, texts
