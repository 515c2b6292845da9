"""Tables in files: reading the usual kinds, and writing new columns beside the old ones, which stay as they are."""

from __future__ import annotations

import codecs
import contextlib
import csv
import datetime as dt
import gzip
import importlib
import io
import json
import os
import re
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import feather, parquet

from transduce.app.tables.columns import ColumnCells, check_once
from transduce.app.tables.formulas import columns_in_formulas, pointing_at
from transduce.app.tables.numbers import (
    MISSING,
    hole_words,
    is_missing,
    number_text,
    number_texts,
    plain_numbers,
    read_numbers,
    typed,
)
from transduce.app.tables.vectors import to_pandas
from transduce.core.files import whole_file
from transduce.core.types import AnyArray
from transduce.core.words import OptionError, counted, option

_ENDINGS = {"csv": ".csv .txt", "tsv": ".tsv .tab", "parquet": ".parquet .pq", "excel": ".xlsx"}
_ENDINGS |= {"json lines": ".jsonl .ndjson", "json": ".json", "feather": ".feather"}
KINDS = {ending: kind for kind, endings in _ENDINGS.items() for ending in endings.split()}
PACKED, JSON = (".gz", ".zip"), ("json", "json lines")
# A file that says that it unpacks to more than so many bytes, and so many times its own, is not read: no table does.
MOST_UNPACKED = 10**8
MOST_PACKED_TIMES = 200
MOST_DEFLATED = 1100  # no file that is whole unpacks to more times its size
_SWELLING = {
    "csv": 12,
    "tsv": 12,
    "json lines": 15,
    "json": 15,
    "parquet": 20,
    "feather": 8,
    "excel": 40,
}
_PACKING, _LISTS = 5, 5  # times as much memory as packed files, and lists in Parquet, take
_BLANKS = re.compile(r"[ \t\r\n]*")  # between the entries of a JSON array
_WHOLE, _LONGEST = re.compile(r"[-+]?\d+"), 18  # digits that an integer of 64 bits surely holds
DELIMITERS = (",", ";", "\t", "|")
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_CONTROL = set(range(9))  # bytes that no text holds
_LONGEST_FIELD = 2**27
_AROUND_NUMBER = re.compile(r"\D{0,12}\d[\d.,' \u00a0\u202f]*\D{0,12}")  # with a unit or a mark
_FIGURE = re.compile(r"[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?")


@dataclass(frozen=True, eq=False)
class Delimited:
    """A delimited text as it was given."""

    header: str  # the first record, without its line end
    records: list[str]  # the others
    delimiter: str
    encoding: str
    line_end: str
    mark: bytes = b""  # the byte order mark that the file began with, if any
    ends: bool = True  # whether the last record has a line end
    decimal: str = "point"  # how numbers are written
    cells: dict[str, ColumnCells] = field(
        default_factory=dict
    )  # how the cells of each column were read
    unnamed: bool = False  # whether the first line holds data, so that the names are ours


@dataclass(frozen=True, eq=False)
class Table:
    """A table read from a file."""

    frame: pd.DataFrame  # the table, typed, for computing
    kind: str
    source: Any  # what was read, as it was given; new columns are written beside it
    name: str  # where it came from
    sheet: str | None = None  # of a workbook, as the user named it
    labelled: Mapping[Any, frozenset[int]] = field(
        default_factory=dict
    )  # rows of a column whose cell is a label that was given since, not what the file has there

    @property
    def index(self) -> tuple[str, ...]:
        """Columns that are the index of a stored pandas frame."""
        return stored_index(self.source.schema) if self.kind in ("parquet", "feather") else ()

    def cells(self, column: Any) -> ColumnCells:
        """Return how the cells of a column were read, where the file was text; a column may have joined since."""
        if not isinstance(self.source, Delimited) or column not in self.source.cells:
            return ColumnCells()
        place = list(self.source.cells).index(column)
        labelled = self.labelled.get(column, frozenset())

        def texts() -> list[str]:
            written = fields_of(self.source, [place])[place]
            return ["" if row in labelled else text for row, text in enumerate(written)]

        return replace(self.source.cells[column], texts=texts)

    def with_labels(self, column: Any, labels: Mapping[int, Any]) -> Table:
        """Return the table with labels in cells of a column; text where the others are text, or a label is."""
        cells = self.frame[column].astype(object)
        numeric = pd.api.types.is_numeric_dtype(self.frame[column])
        if numeric and any(isinstance(label, str) for label in labels.values()):
            numeric = False
            cells = cells.map(number_text, na_action="ignore")
        texts = cells.where(cells.map(type).eq(str))
        decimal = read_numbers(texts, self.cells(column).prefer).decimal
        for row, label in labels.items():
            is_amount = isinstance(label, float | int) and not isinstance(label, bool)
            in_text = not numeric and is_amount and texts.notna().any()
            cells.iat[row] = number_text(float(label), decimal) if in_text else label
        filled_in = self.frame.copy(deep=False)
        filled_in[column] = pd.to_numeric(cells) if numeric else cells
        rows = self.labelled.get(column, frozenset()) | frozenset(labels)
        return replace(self, frame=filled_in, labelled={**self.labelled, column: rows})

    def check_column(self, name: Any) -> None:
        """Raise a ValueError if a column is in another sheet, has no name, or holds formulas without a stored value."""
        if (
            isinstance(self.source, Delimited)
            and self.source.unnamed
            and name not in self.frame.columns
        ):
            raise ValueError(f"{self._unnamed} There is no column {name!r}.")
        if not isinstance(self.source, Workbook):
            return
        sheets = [sheet for sheet, names in self.source.others.items() if str(name) in names]
        if name not in self.frame.columns and sheets:
            said = f"The first sheet of {self.name} has no column {name!r}, but its sheet {sheets[0]!r} has"
            raise ValueError(f"{said}: use {option('sheet', sheets[0])}.")
        if name in self.source.uncomputed:
            said = _uncomputed(name, self.source.uncomputed[name])
            raise ValueError(f"{said} Open {self.name} in a spreadsheet program and save it.")

    def computed_from(self, column: Any) -> list[Any]:
        """Return the columns of a workbook whose formulas point at a column, by way of others too."""
        if not isinstance(self.source, Workbook):
            return []
        return pointing_at(column, self.source.formulas)

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
    def files(self) -> tuple[Path, ...]:
        """The file that the table came from, if it came from one: what is made of it is as private."""
        return (Path(self.name),) if Path(self.name).is_file() else ()

    @property
    def folder(self) -> str:
        """The folder of the file, below which pictures are looked for."""
        return str(Path(self.name).parent)

    @property
    def prefer(self) -> str:
        """The decimal sign of numbers in text, in case of doubt."""
        return decimal_sign(getattr(self.source, "delimiter", ","))


def _uncomputed(name: Any, count: int) -> str:
    """Return that a column has formulas without a value."""
    said = counted(
        count, "formula has no value stored and is", "formulas have no value stored and are"
    )
    return f"{name!r}: {said} missing."


def kind_of(path: str | Path) -> tuple[str | None, str]:
    """Return the kind that a file's name says (None if it says nothing) and how it is packed."""
    name = Path(path)
    packed = name.suffix.lower() if name.suffix.lower() in PACKED else ""
    return KINDS.get((Path(name.stem) if packed else name).suffix.lower()), packed


def named_after(path: str | Path, word: str, ending: str | None = None) -> Path:
    """Return a file beside a table, NAME-word, with the table's ending or another one."""
    path = Path(path)
    kind, packed = kind_of(path)
    own = "".join(path.suffixes[-2:]) if packed else path.suffix
    return path.with_name(
        f"{path.name.removesuffix(own)}-{word}{ending or (own if kind else '.csv')}"
    )


def memory_needed(path: str | Path) -> int:
    """Return a rough estimate of the bytes it takes to read and fill a file."""
    kind, packed = kind_of(path)
    size = os.path.getsize(path) * (_PACKING if packed else 1)
    if packed or kind == "excel":
        own = unpacked_size(path)
        size = max(size, own // _PACKING if kind == "excel" else own)
    lists = _list_bytes(path) if kind == "parquet" and not packed else 0
    return max(size - lists, 0) * _SWELLING[kind or "csv"] + lists * _LISTS


def _list_bytes(path: str | Path) -> int:
    """Return how many bytes the lists in a Parquet file are, which stay as compact in memory."""
    try:
        footer = parquet.read_metadata(path)
    except (pa.ArrowException, OSError):
        return 0
    lists = [
        j for j in range(footer.num_columns) if footer.schema.column(j).max_repetition_level > 0
    ]
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    return sum(group.column(j).total_uncompressed_size for group in groups for j in lists)


def memory_free() -> int | None:
    """Return the bytes of memory that are free, None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(
            int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")
        )
    except (OSError, StopIteration, ValueError):
        return None


def unpacked_size(path: str | Path) -> int:
    """Return how many bytes a packed file says that it holds; 0 if it does not say."""
    with open(path, "rb") as file:
        start = file.read(4)
        if start[:2] == b"\x1f\x8b":
            file.seek(-4, os.SEEK_END)
            size = int.from_bytes(file.read(4), "little")
            return size if size <= MOST_DEFLATED * os.path.getsize(path) else 0
    try:
        with zipfile.ZipFile(path) as archive:
            return sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return 0


def check_memory(path: str | Path) -> None:
    """Raise a MemoryError if a file is likely to need more memory than there is, or than a table would need."""
    packed, unpacked = os.path.getsize(path), unpacked_size(path)
    if unpacked > MOST_UNPACKED and unpacked > MOST_PACKED_TIMES * packed:
        raise MemoryError(
            f"{path} of {packed / 1e6:,.1f} MB says that it unpacks to {unpacked / 1e6:,.0f} MB, far more than a table "
            f"does: look at what it holds, or try it anyway with {option('force', True)}."
        )
    needed, free = memory_needed(path), memory_free()
    if free is not None and needed > free:
        said = (
            f"{path} needs about {needed / 1e9:.1f} GB of memory and {free / 1e9:.1f} GB are free"
        )
        raise MemoryError(
            f"{said}: drop columns or rows, or try it anyway with {option('force', True)}."
        )


def read(path: str | Path, *, sheet: str | None = None, force: bool = False) -> Table:
    """Read a table."""
    name, path = "standard input" if str(path) == "-" else str(path), Path(path)
    if str(path) != "-":
        if not path.exists():
            raise FileNotFoundError(f"There is no file {path}.")
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder: name the table in it.")
        if not force:
            check_memory(path)
    content = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    try:
        kind, content = _unpack(content, kind_of(path)[0])
        table = Table(*_parse(content, kind, sheet), name=name, sheet=sheet)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error, csv.Error) as error:
        refusal = OptionError if isinstance(error, OptionError) else ValueError
        raise refusal(f"{name} {_sentence(error)}") from error
    except (KeyError, RuntimeError) as error:  # what damaged files lead to
        said = "it is damaged, encrypted or not what its name says"
        raise ValueError(f"{name} cannot be read: {said}.") from error
    check_once(table.frame.columns, name)
    return table


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
    if kind is None or kind in JSON:
        kind = {b"{": "json lines", b"[": "json"}.get(first, "json lines" if kind else "csv")
    return kind, content


def _parse(content: bytes, kind: str, sheet: str | None) -> tuple[pd.DataFrame, str, Any]:
    """Return frame, kind and source of a table's bytes."""
    if sheet is not None and kind != "excel":
        raise OptionError(f"is not an Excel file: leave out {option('sheet')}")
    source: Any
    if kind in ("parquet", "feather"):
        try:
            source = (parquet if kind == "parquet" else feather).read_table(
                pa.BufferReader(content)
            )
        except pa.ArrowException as error:
            raise ValueError(f"is not a {kind.capitalize()} file, or is damaged") from error
        frame = to_pandas(source)
    elif kind == "excel":
        frame, source = read_workbook(content, sheet)
    elif kind == "json lines":
        lines = enumerate(decode(content)[0].split("\n"), start=1)
        numbered = [(number, line) for number, line in lines if line.strip()]
        source = [line for _, line in numbered]
        frame = pd.DataFrame([json_object(line, number) for number, line in numbered])
    elif kind == "json":
        rows, source = _array_entries(decode(content)[0])
        frame = pd.DataFrame(rows)
    else:
        frame, source = read_delimited(content, "\t" if kind == "tsv" else None)
        kind = "tsv" if source.delimiter == "\t" else "csv"
    return frame, kind, source


# ------------------------------------------------------------------------------------------------------- delimited text


def decode(content: bytes) -> tuple[str, str, bytes]:
    """Return text, encoding and byte order mark of bytes; a ValueError if they are not text."""
    mark = next((mark for mark in _MARKS if content.startswith(mark)), b"")
    usual = () if set(content[:8192]) & _CONTROL else ("utf-8", "cp1252", "latin-1")
    for encoding in [_MARKS[mark]] if mark else usual:
        with contextlib.suppress(UnicodeDecodeError):
            return content[len(mark) :].decode(encoding), encoding, mark
    raise ValueError("is a binary file, not a table that can be read")


def sniff_delimiter(text: str) -> str:
    r"""Return the delimiter that cuts the first records into most fields, and into equally many."""
    start = text[:65536]
    if len(text) > len(start):
        start = start[: start.rfind("\n") + 1] or start
    best, most = ",", 1
    for delimiter in DELIMITERS:
        counts = [len(fields) for _, fields in _records(start, delimiter)][:100]
        if len(counts) > 2 and len(text) > len(start):
            counts = counts[:-1]  # the last one may be cut
        if counts and len(set(counts)) == 1 and counts[0] > most:
            best, most = delimiter, counts[0]
    # Where no delimiter fits all, it is the one most frequent in the header.
    return best if most > 1 else max(DELIMITERS, key=start.partition("\n")[0].count)


def _records(text: str, delimiter: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each record as it stands and as fields; blank lines are left out."""
    csv.field_size_limit(_LONGEST_FIELD)
    kept: list[str] = []

    def lines() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            kept.append(line)
            yield line

    for fields in csv.reader(lines(), delimiter=delimiter):
        raw = "".join(kept)
        kept.clear()
        if fields:
            yield raw, fields


def read_delimited(content: bytes, delimiter: str | None = None) -> tuple[pd.DataFrame, Delimited]:
    """Return a typed table and the text that it came from."""
    text, encoding, mark = decode(content)
    if not text.strip():
        raise ValueError("is empty: there is no table in it")
    delimiter = delimiter or sniff_delimiter(text)
    pairs = list(_records(text, delimiter))
    if _is_open(pairs[-1][0], delimiter):
        raise ValueError("ends inside a quoted field: close the last quotation mark")
    unnamed = _is_data(pairs[0][1], [fields for _, fields in pairs[1:1000]])
    if unnamed:
        names = [f"column {place + 1}" for place in range(len(pairs[0][1]))]
        end = pairs[0][0][len(pairs[0][0].rstrip("\r\n")) :]
        pairs.insert(0, (f"{delimiter.join(names)}{end}", names))
    names, records = pairs[0][1], [fields for _, fields in pairs[1:]]
    for number, fields in enumerate(records, start=2):
        if len(fields) != len(names):
            how = f"quote fields that hold the delimiter {delimiter!r}"
            how = how if len(fields) > len(names) else "complete the record, or drop it"
            count = counted(len(fields), "field")
            raise ValueError(
                f"has {count} in record {number} but {len(names)} in its header: {how}"
            )
    columns = np.array(records, dtype=object).reshape(len(records), len(names)).T
    prefer = decimal_sign(delimiter)
    series, decimals, cells = zip(*(_column(texts, prefer) for texts in columns), strict=True)
    frame = pd.concat(series, axis=1).set_axis(names, axis=1)
    header, *raw = [record.rstrip("\r\n") for record, _ in pairs]
    line_end, ends = pairs[0][0][len(header) :] or "\n", pairs[-1][0].endswith(("\n", "\r"))
    decimal = "comma" if "comma" in decimals else "point"
    own = dict(zip(names, cells, strict=True))
    return frame, Delimited(
        header, raw, delimiter, encoding, line_end, mark, ends, decimal, own, unnamed
    )


def _is_open(record: str, delimiter: str) -> bool:
    """Return whether a record ends inside a quoted field: another one after it would be a part of it."""
    with_another = io.StringIO(f"{record.rstrip()}\nanother", newline="")
    return len(list(csv.reader(with_another, delimiter=delimiter))) == 1


def _column(texts: AnyArray, prefer: str) -> tuple[pd.Series, str, ColumnCells]:
    """Return a column of texts (n,), its decimal sign, and how its cells were read: of equal ones the first."""
    plain = plain_numbers(texts)
    if plain is not None:
        return plain, "point", ColumnCells("", hole_words(texts[plain.isna()], MISSING), prefer)
    codes, levels = pd.factorize(texts)
    found, decimal = typed(levels, prefer)
    decimal = _sign_in_text(levels, prefer) if found.dtype == object else decimal
    markers = hole_words(texts[is_missing(levels)[codes]], MISSING)
    cells = ColumnCells(_reading(levels, found), markers, prefer)
    return found.take(codes).reset_index(drop=True), decimal, cells


def _sign_in_text(texts: AnyArray, prefer: str) -> str:
    """Return the decimal sign of texts that are numbers except for a few; the point if they are not."""
    most = any("," in text for text in texts) and sum(
        map(bool, map(_AROUND_NUMBER.fullmatch, texts))
    )
    if not most or 2 * most < len(texts):  # of names and long texts not each is read
        return "point"
    found = read_numbers(texts, prefer)
    shown = any(
        "," in text and np.isfinite(value) for text, value in zip(texts, found.values, strict=True)
    )
    return found.decimal if found.nearly_all and shown else "point"


def _is_data(first: list[str], others: list[list[str]]) -> bool:
    """Return whether the first line holds data and no names: numbers above numbers, which do not rise or fall."""
    cells = [
        ["" if one.strip().casefold() in MISSING else one.strip() for one in line]
        for line in others
    ]
    columns = [[line[j] for line in cells if len(line) == len(first)] for j in range(len(first))]
    known = [[cell for cell in column if cell] for column in columns]
    numbers = [
        j for j, column in enumerate(known) if column and all(map(_FIGURE.fullmatch, column))
    ]
    heads = [head for head in (first[j].strip() for j in numbers) if head.casefold() not in MISSING]
    if len(others) < 3 or not heads or not all(map(_FIGURE.fullmatch, heads)):
        return False
    texts = [j for j in range(len(first)) if j not in numbers and first[j].strip()]
    if any(first[j].strip() in columns[j] for j in texts):
        return True
    # Years and wavelengths in names do rise, or fall, from left to right.
    steps = np.diff([float(head.replace(",", ".")) for head in heads])
    return len(heads) > 2 and not (np.all(steps > 0.0) or np.all(steps < 0.0))


def decimal_sign(delimiter: str) -> str:
    """Return the decimal sign in case of doubt: where semicolons separate fields, it is the comma."""
    return "comma" if delimiter == ";" else "point"


def fields_of(source: Delimited, places: list[int]) -> dict[int, list[str]]:
    """Return the fields of some columns, as they were given."""
    records = (
        [split_record(record, source.delimiter) for record in source.records] if places else []
    )
    return {place: [fields[place] for fields in records] for place in places}


def split_record(record: str, delimiter: str) -> list[str]:
    """Return the fields of one record."""
    return next(csv.reader(io.StringIO(record, newline=""), delimiter=delimiter))


def _reading(texts: AnyArray, column: pd.Series) -> str:
    """Return how a number written with a comma, or with groups of digits, was read; "" if there is none."""
    pairs = zip(texts, column, strict=True) if column.dtype.kind in "if" else ()
    such = ((text, value) for text, value in pairs if "," in text or text.count(".") > 1)
    return next((f"{text.strip()!r} was read as {value:g}" for text, value in such), "")


def field_text(value: object, decimal: str = "point") -> str:
    """Return a value as the text of a field: "" if it is missing."""
    if isinstance(value, float | np.floating):
        return number_text(float(value), decimal)
    if value is None or value is pd.NA or value is pd.NaT:
        return ""
    return str(value.tolist() if isinstance(value, np.ndarray) else value)


def field_texts(column: pd.Series, decimal: str = "point") -> Any:
    """Return the cells of a column as an Arrow array of such texts."""
    if column.dtype.kind == "f":
        return number_texts(column.to_numpy(dtype=float, na_value=np.nan), decimal)
    return pa.array([field_text(value, decimal) for value in column.tolist()], pa.string())


def _record(fields: list[str], delimiter: str) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter, lineterminator="").writerow(fields)
    return buffer.getvalue()


def append_columns(source: Delimited, new: pd.DataFrame, file: BinaryIO) -> None:
    """Write the text as it was given, with new columns after every record."""
    file.write(source.mark)
    given = [source.header, *source.records]
    ends = [source.line_end] * len(source.records) + [source.line_end if source.ends else ""]
    for record, fields, end in zip(given, _records_of(new, source.decimal), ends, strict=True):
        line = f"{record}{source.delimiter}{_record(fields, source.delimiter)}{end}"
        file.write(line.encode(source.encoding))


def write_delimited(
    frame: pd.DataFrame, file: BinaryIO, delimiter: str, source: Delimited | None
) -> None:
    """Write a frame as UTF-8 text, after the fields of a text that was given in another form, if there is one."""
    given = [] if source is None else [source.header, *source.records]
    for place, fields in enumerate(_records_of(frame)):
        own = split_record(given[place], source.delimiter) if source is not None else []
        file.write(f"{_record([*own, *fields], delimiter)}\n".encode())


def _records_of(frame: pd.DataFrame, decimal: str = "point") -> Iterator[list[str]]:
    """Yield the header and every row of a frame as fields."""
    yield list(map(str, frame.columns))
    columns = [field_texts(frame[name], decimal).to_pylist() for name in frame.columns]
    yield from map(list, zip(*columns, strict=True))


# ------------------------------------------------------------------------------------------------------- Arrow and JSON


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


def json_object(line: str, number: int) -> dict[str, Any]:
    """Return the object in a line of JSON, or raise a ValueError that goes on from the name of the file."""
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        column = error.colno
        raise ValueError(f"is not JSON in line {number}, column {column}: {error.msg}") from error
    if not isinstance(row, dict):
        raise ValueError(f"has no object {{...}} in line {number}, as JSON lines must have")
    return row


def extended_object(text: str, addition: str) -> str:
    """Return the text of a JSON object with the fields of another one after its own."""
    start = text.rstrip()[:-1].rstrip()
    return f"{start}{'' if start.endswith('{') else ', '}{addition[1:]}"


def _array_entries(text: str) -> tuple[list[Any], list[str]]:
    """Return the objects of a JSON array, and the text of each; what is not exactly one array is refused."""
    decoder = json.JSONDecoder()
    rows, texts = list[Any](), list[str]()
    place = _after_blanks(text, text.index("[") + 1)
    while not text.startswith("]", place) or rows:
        try:
            row, end = decoder.raw_decode(text, place)
        except json.JSONDecodeError as error:
            raise _not_json(text, error.pos, error.msg) from error
        if not isinstance(row, dict):
            raise ValueError(f"has no object {{...}} in place {len(rows) + 1} of its array")
        rows.append(row)
        texts.append(text[place:end])
        place = _after_blanks(text, end)
        if text.startswith("]", place):
            break
        if not text.startswith(",", place):
            ends = place == len(text)
            message = "the array ends without ]" if ends else "a comma or ] is missing"
            raise _not_json(text, place, message)
        place = _after_blanks(text, place + 1)
    end = _after_blanks(text, place + 1)
    if end < len(text):
        raise _not_json(text, end, "something follows after the end of the array")
    if not rows:
        raise ValueError("is empty: there is no table in it")
    return rows, texts


def _after_blanks(text: str, place: int) -> int:
    """Return the next place of a text that is not blank."""
    found = _BLANKS.match(text, place)
    return place if found is None else found.end()


def _not_json(text: str, place: int, message: str) -> ValueError:
    """Return an error that names line and column of what is wrong with a JSON text."""
    line = text.count("\n", 0, place) + 1
    column = place - text.rfind("\n", 0, place)
    return ValueError(f"is not JSON in line {line}, column {column}: {message}")


# ---------------------------------------------------------------------------------------------------------------- Excel

MOST_ROWS, MOST_COLUMNS, LONGEST_TEXT = 1_048_576, 16_384, 32_767
_UNFIT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


@dataclass(frozen=True, eq=False)
class Workbook:
    """A workbook as it was given."""

    book: Any
    sheet: str  # the sheet that was read
    others: dict[str, list[str]] = field(default_factory=dict)  # the first row of every other sheet
    uncomputed: dict[str, int] = field(default_factory=dict)
    formulas: dict[str, set[str]] = field(
        default_factory=dict
    )  # the columns that formulas of a column point at


def read_workbook(content: bytes, wanted: str | None = None) -> tuple[pd.DataFrame, Workbook]:
    """Return one sheet as a table, the first unless another is named by name or number, and the workbook."""
    openpyxl = _openpyxl("is an Excel file, which needs openpyxl: {}, or save it as CSV")
    book = openpyxl.load_workbook(io.BytesIO(content), keep_vba=b"xl/vbaProject.bin" in content)
    stored = openpyxl.load_workbook(io.BytesIO(content), data_only=True)
    sheets = [sheet.title for sheet in stored.worksheets]
    by_name = {str(number): sheet for number, sheet in enumerate(sheets, start=1)}
    by_name |= {sheet: sheet for sheet in sheets}
    name = sheets[0] if wanted is None else by_name.get(wanted)
    if name is None:
        raise ValueError(f"has no sheet {wanted!r}, but {', '.join(map(repr, sheets[:8]))}")
    rows = _rows(stored[name])
    others = {
        title: _names(next(iter(stored[title].values), ())) for title in sheets if title != name
    }
    if not rows:
        full = [title for title in others if _rows(stored[title])]
        hint = f"; name another, such as {option('sheet', full[0])}" if full else ""
        raise ValueError(f"has no table in its sheet {name!r}{hint}")
    names = _names(rows[0])
    frame = pd.DataFrame(rows[1:], columns=names, dtype=object).infer_objects()
    cells = book[name].iter_rows(min_row=2, max_row=len(rows), max_col=len(names))
    uncomputed = Counter(  # formulas without a stored value
        name
        for formulas, values in zip(cells, rows[1:], strict=False)
        for cell, value, name in zip(formulas, values, names, strict=False)
        if cell.data_type == "f" and value is None
    )
    formulas = columns_in_formulas(book[name], names, len(rows))
    return frame, Workbook(book, name, others, dict(uncomputed), formulas)


def _openpyxl(needed: str) -> Any:
    try:
        return importlib.import_module("openpyxl")
    except ImportError as error:
        raise ValueError(needed.format("pip install 'transduce[excel]'")) from error


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


def check_fits(path: str | Path, table: Table, more: int = 10) -> None:
    """Raise a ValueError if a file of this kind cannot hold the table and so many more columns."""
    if out_kind(path, table.kind)[0] != "excel":
        return
    frame = table.frame
    columns = [frame[name] for name in frame.columns if frame[name].dtype.kind == "O"]
    long = [
        c.name
        for c in columns
        if any(isinstance(cell, str) and len(cell) > LONGEST_TEXT for cell in c)
    ]
    most = (
        f"column {long[0]!r}: a cell of a sheet has at most {LONGEST_TEXT:,} characters"
        if long
        else ""
    )
    if len(frame) + 1 > MOST_ROWS or frame.shape[1] + more > MOST_COLUMNS:
        most = f"the table: a sheet has at most {MOST_ROWS:,} rows and {MOST_COLUMNS:,} columns"
    if most:
        raise ValueError(f"{path} cannot hold {most}. Write .csv or .parquet.")


def write_workbook(
    file: BinaryIO, source: Workbook | None, frame: pd.DataFrame, width: int
) -> None:
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
    """Put a value into a cell; as text what a sheet cannot hold: long whole numbers, time zones, infinities."""
    value = plain_cell(value)
    if isinstance(value, dt.datetime | dt.time) and (
        value.tzinfo or getattr(value, "year", 1900) < 1900
    ):
        value = value.isoformat()
    fits = isinstance(value, bool | int | float | dt.date | dt.time | dt.timedelta | None)
    if not fits or (isinstance(value, int) and abs(value) > 2**53):
        value = _UNFIT.sub("�", str(value))
    cell.value = value
    if isinstance(value, str):  # what looks like a formula stays text
        cell.data_type = "s"
        if value[:1] in ("=", "+", "-", "@"):
            cell.quotePrefix = True


def plain_cell(value: Any) -> Any:
    """Return a value as a cell of a sheet or a JSON object takes it: None if missing, infinities as text."""
    if (
        value is None
        or value is pd.NA
        or value is pd.NaT
        or (isinstance(value, float) and np.isnan(value))
    ):
        return None
    if isinstance(value, float) and np.isinf(value):
        return "inf" if value > 0 else "-inf"
    if isinstance(value, pd.Timestamp):
        return value.to_pydatetime(warn=False)
    if isinstance(value, pd.Timedelta):
        return value.to_pytimedelta()
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


# -------------------------------------------------------------------------------------------------------------- writing


def write(
    path: str | Path,
    table: Table,
    new: pd.DataFrame,
    *,
    force: bool = False,
    like: Iterable[Path] = (),
) -> None:
    """Write a table with new columns after its own, in one piece, as private as its file and those in `like`."""
    kind, packed = out_kind(path, table.kind)
    with whole_file(path, force=force, like=[*table.files, *like]) as file:
        if not packed and kind not in ("feather", "excel"):
            _write(file, kind, table, new)
            return
        buffer = io.BytesIO()
        _write(buffer, kind, table, new)
        if packed == ".zip":
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(Path(path).stem, buffer.getvalue())
        else:
            file.write(gzip.compress(buffer.getvalue(), mtime=0) if packed else buffer.getvalue())


def out_kind(path: str | Path, default: str) -> tuple[str, str]:
    """Return kind and packing of a file to be written; a ValueError if its name says nothing."""
    if str(path) == "-":
        return default, ""
    kind, packed = kind_of(path)
    if kind is None:
        endings = f"{', '.join(KINDS)} (.gz or .zip)"
        raise ValueError(f"{path} has an unknown format: let its name end in {endings}.")
    return kind, packed


def _write(file: BinaryIO, kind: str, table: Table, new: pd.DataFrame) -> None:
    source, same = table.source, kind == table.kind
    if kind in ("csv", "tsv"):
        # A file called .csv or .txt with tabulators between its fields keeps them.
        delimiter = "\t" if kind == "tsv" else ","
        if isinstance(source, Delimited) and (same or kind_of(table.name)[0] == kind):
            append_columns(source, new, file)
        else:
            given = source if isinstance(source, Delimited) else None
            write_delimited(new if given else _joined(table, new), file, delimiter, given)
    elif kind in ("parquet", "feather"):
        rows = with_columns(
            source if isinstance(source, pa.Table) else arrow_table(exact(table)), new
        )
        if kind == "parquet":
            parquet.write_table(rows, file)
        else:
            feather.write_feather(rows, file, compression="uncompressed")
    elif kind == "excel":
        given, width = (source, table.frame.shape[1]) if same else (None, 0)
        write_workbook(file, given, new if same else _joined(table, new), width)
    else:  # one object a row, with the given text of its old part where there is one
        new = new.apply(lambda one: one.mask(one.abs() == np.inf) if one.dtype.kind == "f" else one)
        rows = _json_rows(new if table.kind in JSON else _joined(table, new))
        rows = list(map(extended_object, source, rows)) if table.kind in JSON else rows
        text = (
            "[\n" + ",\n".join(rows) + "\n]\n"
            if kind == "json"
            else "".join(f"{row}\n" for row in rows)
        )
        file.write(text.encode())


def _joined(table: Table, new: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([exact(table).reset_index(drop=True), new.reset_index(drop=True)], axis=1)


def exact(table: Table) -> pd.DataFrame:
    """Give a table's columns for another format: whole numbers with all their digits, as text if they are too long."""
    source = table.source
    if isinstance(source, Delimited):
        return _exact_delimited(table.frame, source)
    if table.kind in JSON:
        rows = [json.loads(text) for text in source]
        return pd.DataFrame(
            {name: _objects([row.get(name) for row in rows]) for name in table.frame.columns}
        )
    if table.kind in ("parquet", "feather"):
        return pd.DataFrame(source.to_pandas(ignore_metadata=True, integer_object_nulls=True))
    return table.frame


def _objects(values: list[Any]) -> pd.Series:
    """Return a column; whole numbers with gaps as such."""
    present = [value for value in values if value is not None]
    if present and all(type(value) is int for value in present):
        fits = all(-(2**63) <= value < 2**63 for value in present)
        return pd.Series(values, dtype="Int64" if fits else object)
    return pd.Series(values, dtype=object).infer_objects()


def _exact_delimited(frame: pd.DataFrame, source: Delimited) -> pd.DataFrame:
    """Return columns of floats that were written as whole numbers as such."""
    columns = {name: frame[name] for name in frame.columns}
    texts = fields_of(source, [j for j, kind in enumerate(frame.dtypes) if kind.kind == "f"])
    for j, fields in texts.items():
        known = frame.iloc[:, j].notna()
        words = [text.strip() if good else None for text, good in zip(fields, known, strict=True)]
        present = [word for word in words if word is not None]
        if present and all(map(_WHOLE.fullmatch, present)):
            short = max(map(len, present)) <= _LONGEST
            values = [None if word is None else int(word) if short else word for word in words]
            columns[frame.columns[j]] = pd.Series(values, dtype="Int64" if short else object)
    return pd.DataFrame(columns)


def arrow_table(frame: pd.DataFrame) -> pa.Table:
    """Return a frame as an Arrow table; columns of several types, other than numbers, become text."""
    columns = dict(frame.reset_index(drop=True).items())
    for name, column in columns.items():
        types = {type(cell) for cell in column.dropna()} if column.dtype == object else set()
        try:
            if len(types) > 1 and not types <= {
                int,
                float,
            }:  # Arrow would take the time of day from some
                raise TypeError
            pa.array(column, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            columns[name] = column.astype(object).map(str, "ignore")
    return pa.Table.from_pandas(pd.DataFrame(columns), preserve_index=False)


def _json_rows(frame: pd.DataFrame) -> list[str]:
    columns = [[plain_cell(value) for value in frame[name].tolist()] for name in frame.columns]
    rows = [
        dict(zip(map(str, frame.columns), row, strict=True)) for row in zip(*columns, strict=True)
    ]
    return [json.dumps(row, ensure_ascii=False, default=str) for row in rows]
