"""CSV and TSV: sniffed, read record by record, and written back with the given text of every field untouched."""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np
import pandas as pd

from transduce.core.types import AnyArray
from transduce.tables.numbers import MISSING, number_text, typed

DELIMITERS = (",", ";", "\t", "|")
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LONGEST_FIELD = 2**27


@dataclass(frozen=True)
class ColumnCells:
    """How the cells of a column of text were read."""

    reading: str = ""  # how a number written with a comma, or with groups of digits, was read
    markers: dict[str, int] = field(default_factory=dict)
    prefer: str = "point"  # the decimal sign in case of doubt


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
    cells: dict[str, ColumnCells] = field(default_factory=dict)  # how the cells of each column were read


def decode(content: bytes) -> tuple[str, str, bytes]:
    """Return text, encoding and byte order mark of bytes; a ValueError if they are not text."""
    for mark, encoding in _BOMS:
        if content.startswith(mark):
            try:
                return content[len(mark) :].decode(encoding), encoding, mark
            except UnicodeDecodeError:
                raise ValueError("is a binary file, not a table that can be read") from None
    control = sum(content[:8192].count(byte) for byte in (0, 1, 2, 3, 4, 5, 6, 7, 8))
    if control:
        raise ValueError("is a binary file, not a table that can be read")
    for encoding in ("utf-8", "cp1252"):
        try:
            return content.decode(encoding), encoding, b""
        except UnicodeDecodeError:
            continue
    return content.decode("latin-1"), "latin-1", b""


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
    if most == 1:  # no delimiter fits all: take the one most frequent in the header
        header = start.partition("\n")[0]
        best = max(DELIMITERS, key=header.count)
    return best


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


def _check_end(raw: str) -> None:
    """Raise a ValueError if the last record ends inside a quoted field."""
    if raw.count('"') % 2 and next(csv.reader([raw])) and raw.rstrip("\r\n")[-1:] != '"':
        raise ValueError("ends inside a quoted field: close the last quotation mark")


def read_delimited(content: bytes, delimiter: str | None = None) -> tuple[pd.DataFrame, Delimited]:
    """Return a typed table and the text that it came from."""
    text, encoding, mark = decode(content)
    if not text.strip():
        raise ValueError("is empty: there is no table in it")
    delimiter = delimiter or sniff_delimiter(text)
    pairs = list(_records(text, delimiter))
    _check_end(pairs[-1][0])
    names = pairs[0][1]
    for number, (_, fields) in enumerate(pairs[1:], start=2):
        if len(fields) != len(names):
            more = f"quote fields that hold the delimiter {delimiter!r}"
            raise ValueError(
                f"has {len(fields)} field{'s' * (len(fields) != 1)} in record {number} but {len(names)} in its header: "
                + (more if len(fields) > len(names) else "complete the record, or drop it")
            )
    raw = [record.rstrip("\r\n") for record, _ in pairs]
    columns: list[AnyArray] = [
        np.array(column, dtype=object) for column in zip(*(f for _, f in pairs[1:]), strict=True)
    ]
    prefer = (
        "comma" if delimiter == ";" else "point"
    )  # where semicolons separate fields, the comma is the decimal sign
    series = [typed(column, prefer) for column in columns] or [
        (pd.Series([], dtype=object), "point") for _ in names
    ]
    frame = pd.concat([column for column, _ in series], axis=1)
    frame.columns = pd.Index(names)
    cells = {
        name: ColumnCells(_reading(texts, column), _markers(texts), prefer)
        for name, texts, (column, _) in zip(names, columns, series, strict=False)
    }
    first, last = pairs[0][0], pairs[-1][0]
    source = Delimited(
        header=raw[0],
        records=raw[1:],
        delimiter=delimiter,
        encoding=encoding,
        line_end=first[len(raw[0]) :] or "\n",
        mark=mark,
        ends=last.endswith(("\n", "\r")),
        decimal="comma" if any(decimal == "comma" for _, decimal in series) else "point",
        cells=cells,
    )
    return frame, source


def fields_of(source: Delimited, places: list[int]) -> dict[int, list[str]]:
    """Return the fields of some columns, as they were given."""
    found: dict[int, list[str]] = {place: [] for place in places}
    if places:
        for record in source.records:
            fields = next(csv.reader(io.StringIO(record, newline=""), delimiter=source.delimiter))
            for place in places:
                found[place].append(fields[place])
    return found


def _reading(texts: AnyArray, column: pd.Series) -> str:
    """Return how a number written with a comma, or with groups of digits, was read; "" if there is none."""
    if column.dtype.kind not in "if":
        return ""
    pairs = zip(texts, column, strict=True)
    return next(
        (
            f"{text.strip()!r} was read as {value:g}"
            for text, value in pairs
            if "," in text or text.count(".") > 1
        ),
        "",
    )


def _markers(texts: AnyArray) -> dict[str, int]:
    """Return the words that may stand for an empty cell, and how often each occurs."""
    words = [text.strip() for text in texts if text.strip()]
    return dict(Counter(word for word in words if word.lower() in MISSING))


def field_text(value: object, decimal: str = "point") -> str:
    """Return a value as the text of a field: "" if it is missing."""
    if isinstance(value, float | np.floating):
        return number_text(float(value), decimal)
    return "" if value is None or value is pd.NA or value is pd.NaT else str(value)


def _joined(fields: list[str], delimiter: str) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter, lineterminator="").writerow(fields)
    return buffer.getvalue()


def append_columns(source: Delimited, new: pd.DataFrame, file: BinaryIO) -> None:
    """Write the text as it was given, with new columns after every record."""
    columns = [[field_text(value, source.decimal) for value in new[name]] for name in new.columns]
    file.write(source.mark)
    lines = [source.header, *source.records]
    additions = [list(map(str, new.columns)), *map(list, zip(*columns, strict=True))]
    for number, (record, fields) in enumerate(zip(lines, additions, strict=True), start=1):
        end = source.line_end if number < len(lines) or source.ends else ""
        line = f"{record}{source.delimiter}{_joined(fields, source.delimiter)}{end}"
        file.write(line.encode(source.encoding))


def rewrite_columns(source: Delimited, new: pd.DataFrame, file: BinaryIO, delimiter: str) -> None:
    """Write the fields as they were given, in another delimiter and as UTF-8, with new columns after them."""
    columns = [[field_text(value) for value in new[name]] for name in new.columns]
    additions = [list(map(str, new.columns)), *map(list, zip(*columns, strict=True))]
    for record, fields in zip([source.header, *source.records], additions, strict=True):
        given = next(csv.reader(io.StringIO(record, newline=""), delimiter=source.delimiter))
        file.write(f"{_joined([*given, *fields], delimiter)}\n".encode())


def write_delimited(frame: pd.DataFrame, file: BinaryIO, delimiter: str = ",") -> None:
    """Write a frame as UTF-8 text."""
    columns = [[field_text(value) for value in frame[name]] for name in frame.columns]
    file.write(f"{_joined(list(map(str, frame.columns)), delimiter)}\n".encode())
    for fields in zip(*columns, strict=True):
        file.write(f"{_joined(list(fields), delimiter)}\n".encode())
