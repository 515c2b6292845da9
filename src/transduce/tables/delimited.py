"""CSV and TSV: sniffed, read record by record, and written back with the given text of every field untouched."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa

from transduce.core.types import AnyArray
from transduce.core.words import counted
from transduce.tables.numbers import (
    MISSING,
    hole_words,
    is_missing,
    number_text,
    number_texts,
    plain_numbers,
    typed,
)

DELIMITERS = (",", ";", "\t", "|")
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_CONTROL = set(range(9))  # bytes that no text holds
_LONGEST_FIELD = 2**27
_NUMBER = re.compile(r"[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?")


@dataclass(frozen=True)
class ColumnCells:
    """How the cells of a column of text were read."""

    reading: str = ""  # how a number written with a comma, or with groups of digits, was read
    markers: dict[str, int] = field(default_factory=dict)
    prefer: str = "point"  # the decimal sign in case of doubt
    texts: Callable[[], list[str]] | None = None  # gives the cells as they are written


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
    unnamed: bool = False  # whether the first line holds data, so that the names are ours


def decode(content: bytes) -> tuple[str, str, bytes]:
    """Return text, encoding and byte order mark of bytes; a ValueError if they are not text."""
    mark = next((mark for mark in _MARKS if content.startswith(mark)), b"")
    if not mark and set(content[:8192]) & _CONTROL:
        raise ValueError("is a binary file, not a table that can be read")
    for encoding in [_MARKS[mark]] if mark else ("utf-8", "cp1252", "latin-1"):
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
    last = pairs[-1][0]
    if last.count('"') % 2 and next(csv.reader([last])) and last.rstrip("\r\n")[-1:] != '"':
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
            raise ValueError(f"has {count} in record {number} but {len(names)} in its header: {how}")
    columns = np.array(records, dtype=object).reshape(len(records), len(names)).T
    prefer = decimal_sign(delimiter)
    series, decimals, cells = zip(*(_column(texts, prefer) for texts in columns), strict=True)
    frame = pd.concat(series, axis=1).set_axis(names, axis=1)
    header, *raw = [record.rstrip("\r\n") for record, _ in pairs]
    line_end, ends = pairs[0][0][len(header) :] or "\n", pairs[-1][0].endswith(("\n", "\r"))
    decimal = "comma" if "comma" in decimals else "point"
    own = dict(zip(names, cells, strict=True))
    return frame, Delimited(header, raw, delimiter, encoding, line_end, mark, ends, decimal, own, unnamed)


def _column(texts: AnyArray, prefer: str) -> tuple[pd.Series, str, ColumnCells]:
    """Return a column of texts (n,), its decimal sign, and how its cells were read: of equal ones the first."""
    plain = plain_numbers(texts)
    if plain is not None:
        return plain, "point", ColumnCells("", hole_words(texts[plain.isna()], MISSING), prefer)
    codes, levels = pd.factorize(texts)
    found, decimal = typed(levels, prefer)
    markers = hole_words(texts[is_missing(levels)[codes]], MISSING)
    cells = ColumnCells(_reading(levels, found), markers, prefer)
    return found.take(codes).reset_index(drop=True), decimal, cells


def _is_data(first: list[str], others: list[list[str]]) -> bool:
    """Return whether the first line holds data and no names: numbers above numbers, which do not rise or fall."""
    cells = [["" if one.strip().casefold() in MISSING else one.strip() for one in line] for line in others]
    columns = [[line[j] for line in cells if len(line) == len(first)] for j in range(len(first))]
    known = [[cell for cell in column if cell] for column in columns]
    numbers = [j for j, column in enumerate(known) if column and all(map(_NUMBER.fullmatch, column))]
    heads = [head for head in (first[j].strip() for j in numbers) if head.casefold() not in MISSING]
    if len(others) < 3 or not heads or not all(map(_NUMBER.fullmatch, heads)):
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
    records = [split_record(record, source.delimiter) for record in source.records] if places else []
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


def _joined(fields: list[str], delimiter: str) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter, lineterminator="").writerow(fields)
    return buffer.getvalue()


def append_columns(source: Delimited, new: pd.DataFrame, file: BinaryIO) -> None:
    """Write the text as it was given, with new columns after every record."""
    file.write(source.mark)
    given = [source.header, *source.records]
    ends = [source.line_end] * len(source.records) + [source.line_end if source.ends else ""]
    for record, fields, end in zip(given, _records_of(new, source.decimal), ends, strict=True):
        line = f"{record}{source.delimiter}{_joined(fields, source.delimiter)}{end}"
        file.write(line.encode(source.encoding))


def write_delimited(frame: pd.DataFrame, file: BinaryIO, delimiter: str, source: Delimited | None) -> None:
    """Write a frame as UTF-8 text, after the fields of a text that was given in another form, if there is one."""
    given = [] if source is None else [source.header, *source.records]
    for place, fields in enumerate(_records_of(frame)):
        own = split_record(given[place], source.delimiter) if source is not None else []
        file.write(f"{_joined([*own, *fields], delimiter)}\n".encode())


def _records_of(frame: pd.DataFrame, decimal: str = "point") -> Iterator[list[str]]:
    """Yield the header and every row of a frame as fields."""
    yield list(map(str, frame.columns))
    columns = [field_texts(frame[name], decimal).to_pylist() for name in frame.columns]
    yield from map(list, zip(*columns, strict=True))
