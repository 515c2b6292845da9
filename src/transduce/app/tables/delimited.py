"""Delimited text, such as CSV: records stay as they were written, new fields join at their end."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import BinaryIO, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from transduce.app.tables.columns import ColumnReading
from transduce.app.tables.decimal_signs import number_in_doubt, sign_of_table
from transduce.app.tables.encodings import (
    OTHER_SCRIPTS,
    STRAY,
    decode,
    decode_keeping,
    readable,
)
from transduce.app.tables.formats import Format, Original, Table
from transduce.app.tables.layout import AUTOMATIC, Layout, LayoutRequest, find_layout
from transduce.app.tables.numbers import (
    MISSING,
    hole_words,
    is_missing,
    number_of,
    number_text,
    number_texts,
    plain_numbers,
    read_numbers,
    typed,
)
from transduce.core.types import AnyArray, ColumnName
from transduce.core.words import counted, option

DELIMITERS = (",", ";", "\t", "|")
BLANK = " "  # blanks between fields, which may be aligned
BLANKS = "  "  # at least two of them, so that single ones stand in fields
_RULE = re.compile(r"[\s|+:=-]*-{3}[\s|+:=-]*")  # a line below names, as databases print it
_LONGEST_FIELD = 2**27
_SNIFFED = 65536  # signs of a text in which its delimiter is looked for
_COMPARED_RECORDS = 1000  # with which the first line is compared to see whether it holds names
_INTEGER = re.compile(r"[-+]?\d+")
_LONGEST_INTEGER = 18  # digits that an integer of 64 bits surely holds
_AROUND_NUMBER = re.compile(r"\D{0,12}\d[\d.,' \u00a0\u202f]*\D{0,12}")  # with a unit or a mark
_AS_IT_STANDS = re.compile(r'^="(.*)"$', re.DOTALL)  # what a spreadsheet is to show as it is
_QUOTED = re.compile(r"[\"\r\n]")  # signs for which the csv module quotes a field
_FIGURE = re.compile(r"[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?")


@dataclass(frozen=True, eq=False)
class Surroundings:
    """All lines of a file of which a part is the table."""

    lines: list[str]  # without their ends
    header_at: int  # the line with the names; -1 if there is none
    rows_at: list[int]  # the lines of the rows


@dataclass(frozen=True, eq=False)
class DelimitedText(Original):
    """A delimited text as it was given."""

    header: str  # the first record, without its line end
    records: list[str]  # the others
    delimiter: str
    encoding: str
    line_end: str
    mark: bytes = b""  # the byte order mark that the file began with, if any
    ends: bool = True  # whether the last record has a line end
    decimal: str = "point"  # how numbers are written
    sign: str = "point"  # the decimal sign of numbers in text, in case of doubt
    doubt: tuple[ColumnName, str] | None = None  # a column, and a number that may have either
    readings: dict[str, ColumnReading] = field(default_factory=dict)  # of each column
    unnamed: bool = False  # whether the first line holds data, so that the names are ours
    kind: str = "csv"  # or "tsv": what the delimiter says, whatever the file was called
    columns: list[int] | None = None  # places of the columns among the fields, if not all
    surroundings: Surroundings | None = None  # lines above, between and below, if there are any
    layout_notes: tuple[str, ...] = ()  # what was left out of the file
    lines: Sequence[int] | None = None  # of the file, counted from 1, on which each row begins

    def column_reading(self, column: ColumnName, labelled: frozenset[int]) -> ColumnReading:
        """Return how the cells of a column were read; `labelled` rows have a label given since."""
        if column not in self.readings:
            return ColumnReading()
        place = list(self.readings).index(column)

        def written_texts() -> list[str]:
            texts = self.fields([place])[place]
            for row in labelled:
                texts[row] = ""
            return texts

        return replace(self.readings[column], texts=written_texts)

    def fields(self, places: list[int]) -> dict[int, list[str]]:
        """Return the fields of some columns, as they were given."""
        if not places:
            return {}
        records = [split_record(record, self.delimiter) for record in self.records]
        columns = self.columns or range(max(places) + 1)
        return {
            place: [_field_at(fields, columns[place]) for fields in records] for place in places
        }

    def exact_columns(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return floats that were written as whole numbers as such, with all their digits."""
        columns = {name: frame[name] for name in frame.columns}
        floats = [place for place, dtype in enumerate(frame.dtypes) if dtype.kind == "f"]
        for place, texts in self.fields(floats).items():
            integers = _exact_integers(texts, frame.iloc[:, place].notna())
            if integers is not None:
                columns[frame.columns[place]] = integers
        return pd.DataFrame(columns)

    def notes(self, table: Table) -> list[str]:
        """Return that the columns got names, if they did."""
        if not self.unnamed:
            return list(self.layout_notes)
        return [_note_on_names(table), *self.layout_notes]

    def check_column(self, table: Table, name: ColumnName) -> None:
        """Raise a ValueError if there is no such column where the columns got their names here."""
        if self.unnamed and name not in table.frame.columns:
            raise ValueError(f"{_note_on_names(table)} There is no column {name!r}.")


class DelimitedFormat(Format):
    """Delimited text of which the delimiter is known, or found out."""

    memory_factor = 12
    has_layout = True

    def __init__(
        self,
        name: str,
        endings: tuple[str, ...],
        delimiter: str | None,
    ) -> None:
        self.name = name
        self.endings = endings
        self.delimiter = delimiter

    def read(
        self, content: bytes, sheet: str | None, layout: LayoutRequest = AUTOMATIC
    ) -> tuple[pd.DataFrame, Original]:
        """Return a typed table and the text that it came from."""
        return read_delimited(content, self.delimiter, layout)

    def write(self, file: BinaryIO, table: Table, new: pd.DataFrame) -> None:
        """Write new fields after every record, which stays as it is if the format is the same."""
        original = table.original
        if not isinstance(original, DelimitedText):
            _write_records(file, _records_of(table.joined_with(new)), self.delimiter or ",")
        elif table.kind == self.name or self.is_named_by(table.name):
            # A file called .csv or .txt with tabulators between its fields keeps them.
            append_columns(original, new, file)
        else:
            given = [original.header, *original.records]
            records = (
                [*split_record(record, original.delimiter), *fields]
                for record, fields in zip(given, _records_of(new), strict=True)
            )
            _write_records(file, records, self.delimiter or ",")


CSV = DelimitedFormat("csv", (".csv", ".txt"), None)
TSV = DelimitedFormat("tsv", (".tsv", ".tab"), "\t")


def usual_sign(delimiter: str) -> str:
    """Return the decimal sign if no column shows it: either where semicolons separate fields."""
    if delimiter == ";":
        return "either"
    return "point"


# ----------------------------------------------------------------------------------------- reading


class _Record(NamedTuple):
    """A record as it stands, with its line end, and as fields."""

    text: str
    fields: list[str]

    @property
    def line(self) -> str:
        """The record without its line end."""
        return self.text.rstrip("\r\n")

    @property
    def line_end(self) -> str:
        return self.text[len(self.line) :]


def read_delimited(
    content: bytes, delimiter: str | None = None, request: LayoutRequest = AUTOMATIC
) -> tuple[pd.DataFrame, DelimitedText]:
    """Return a typed table and the text that it came from."""
    as_stored, encoding, mark = decode_keeping(content)
    records, delimiter = _split_records(as_stored, delimiter)
    full = [record for record in records if record.fields]
    layout = find_layout([record.fields for record in records], request)
    unnamed = _has_no_names(full, layout, request)
    if unnamed:
        layout = layout_without_names(layout)
    rows = [records[place] for place in layout.rows]
    if unnamed or not layout.header:
        header = _made_header(rows[0], delimiter)
    else:
        header = records[layout.names_at]
    _check_lengths(header, rows, layout, delimiter)
    cells = _without_formula_signs(_cells(rows, layout)).T
    sign = request.decimal or sign_of_table(cells) or usual_sign(delimiter)
    # Where commas separate fields, none of them is a decimal sign.
    doubt = None if delimiter == "," else number_in_doubt(cells)
    columns = [_read_column(texts, sign) for texts in cells]
    frame = pd.concat([column.values for column in columns], axis=1)
    frame = frame.set_axis(layout.names, axis=1)
    original = DelimitedText(
        header.line,
        [_without_more_fields(row, len(header.fields), delimiter) for row in rows],
        delimiter,
        encoding,
        line_end=full[0].line_end or "\n",
        mark=mark,
        ends=records[-1].text.endswith(("\n", "\r")),
        decimal=_decimal_sign(columns),
        sign=sign,
        doubt=None if doubt is None else (layout.names[doubt[0]], doubt[1]),
        readings={name: column.reading for name, column in zip(layout.names, columns, strict=True)},
        unnamed=unnamed,
        kind=TSV.name if delimiter == "\t" else CSV.name,
        columns=_columns_taken(layout, len(header.fields)),
        surroundings=_surroundings(records, layout),
        layout_notes=(*_notes_on_text(as_stored, delimiter, encoding), *layout.notes),
        lines=_first_lines(records, layout.rows),
    )
    return frame, original


_STATED_DELIMITER = re.compile(r"sep=([,;\t|])\s*[\r\n]", re.IGNORECASE)


def first_records(content: bytes, n_records: int) -> list[tuple[int, list[str]]]:
    """Return the first records of a text as they stand, without blank ones, and their numbers."""
    text, _, _ = decode(content)
    stated = _STATED_DELIMITER.match(text)
    if stated is not None:
        delimiter = stated[1]
    else:
        delimiter = sniff_delimiter(text)
    records = []
    for number, record in enumerate(_records(text, delimiter), start=1):
        if record.fields:
            records.append((number, record.fields))
        if len(records) == n_records:
            break
    return records


def _with_stray_bytes(records: list[_Record], as_stored: str) -> list[_Record]:
    """Return records whose texts have the bytes that are no UTF-8 as they are stored."""
    stored = []
    end = 0
    for record in records:
        start = end
        end += len(record.text)
        stored.append(_Record(as_stored[start:end], record.fields))
    return stored


def _notes_on_text(as_stored: str, delimiter: str, encoding: str) -> list[str]:
    """Return what is unusual in how a text is written."""
    notes = []
    if encoding in OTHER_SCRIPTS:
        notes.append(
            f"The file was read as {OTHER_SCRIPTS[encoding]}; if its letters look wrong, save it "
            "as UTF-8."
        )
    stray = STRAY.search(as_stored)
    if stray is not None:
        n_bytes = len(STRAY.findall(as_stored))
        around = readable(as_stored[max(stray.start() - 12, 0) : stray.end() + 12])
        before = re.split(r"[\s,;|\"]", around[:12])[-1]
        after = re.split(r"[\s,;|\"]", around[12:])[0]
        word = before + after
        notes.append(
            f"The file is UTF-8 except for {counted(n_bytes, 'byte')}, read as Windows-1252, "
            f"such as in {word!r}; the file's own bytes stay as they are."
        )
    if delimiter in (BLANK, BLANKS):
        notes.append("Fields are separated by blanks.")
    return notes


def _with_name_of_names(records: list[_Record]) -> list[_Record]:
    """Return records of which the first has an empty name for the names of rows, as R has it.

    All other records have one field more, their first fields differ, and numbers stand below names,
    not names below a title.
    """
    full = [place for place, record in enumerate(records) if record.fields]
    header = records[full[0]]
    n_names = len(header.fields)
    if len(full) < 2 or any(len(records[place].fields) != n_names + 1 for place in full[1:]):
        return records
    rows = [records[place].fields for place in full[1:]]
    ends_empty = not any(row[-1] for row in rows)
    if len(rows) < 3 or len({row[0] for row in rows}) < len(rows) or ends_empty:
        return records
    if not any(_FIGURE.fullmatch(field) for field in rows[0][1:]):
        return records
    named = _Record(header.text, ["", *header.fields])
    return [named if record is header else record for record in records]


def _split_records(as_stored: str, delimiter: str | None) -> tuple[list[_Record], str]:
    """Return the lines of a table, cut into fields, and what stands between the fields."""
    text = readable(as_stored)
    if not text.strip():
        raise ValueError("is empty: there is no table in it")
    stated = _STATED_DELIMITER.match(text)
    if stated is not None:
        delimiter = stated[1]
    delimiter = delimiter or sniff_delimiter(text)
    records = list(_records(text, delimiter))
    if text is not as_stored:
        records = _with_stray_bytes(records, as_stored)
    if delimiter == "|":
        records = _without_rules(records)
    if stated is not None:
        records[0] = _Record(records[0].text, [])  # sep=; is no row of the table
    full = [record for record in records if record.fields]
    if not full:
        raise ValueError("is empty: there is no table in it")
    if _is_open(full[-1].text, delimiter):
        raise ValueError("ends inside a quoted field: close the last quotation mark")
    return _with_name_of_names(records), delimiter


def _without_rules(records: list[_Record]) -> list[_Record]:
    """Return records of a table between bars, of which lines of dashes hold no fields."""
    without = []
    for record in records:
        if _RULE.fullmatch(record.text):
            record = _Record(record.text, [])
        without.append(record)
    return without


def _decimal_sign(columns: Sequence[_ReadColumn]) -> str:
    """Return how the file writes decimals: with a comma if one of its columns does."""
    if any(column.decimal == "comma" for column in columns):
        return "comma"
    return "point"


def _columns_taken(layout: Layout, n_fields: int) -> list[int] | None:
    """Return the places of the columns that are read; None if all are."""
    if layout.columns == list(range(n_fields)):
        return None
    return layout.columns


def _has_no_names(full: list[_Record], layout: Layout, request: LayoutRequest) -> bool:
    """Return whether the first line holds data, so that the columns need names."""
    if request.header is not None or len(layout.header) != 1 or layout.notes:
        return False
    others = [record.fields for record in full[1:_COMPARED_RECORDS]]
    return _is_data(full[0].fields, others)


def layout_without_names(layout: Layout) -> Layout:
    """Return the layout of a table whose rows begin where names were looked for."""
    names = [f"column {place + 1}" for place in range(len(layout.columns))]
    rows = [*layout.header, *layout.rows]
    return replace(layout, header=(), names_at=-1, rows=rows, names=names)


def _cells(rows: list[_Record], layout: Layout) -> AnyArray:
    """Return the cells of the table as texts, shape (n, d)."""
    n_columns = len(layout.columns)
    if layout.columns == list(range(n_columns)):
        fields = [_exactly(row.fields, n_columns) for row in rows]
    else:
        fields = [[_field_at(row.fields, place) for place in layout.columns] for row in rows]
    return np.array(fields, dtype=object).reshape(len(rows), n_columns)


def _without_formula_signs(cells: AnyArray) -> AnyArray:
    """Return cells of which those such as ="007" are what stands between the quotation marks.

    Programs write them so, in order that spreadsheets keep them as they are.
    """
    is_any = False
    for column in cells.T:
        is_any = is_any or any(text.startswith('="') for text in column[:_COMPARED_RECORDS])
    if not is_any:
        return cells
    bare = [_AS_IT_STANDS.sub(r"\1", text) for text in cells.ravel()]
    return np.array(bare, dtype=object).reshape(cells.shape)


def _exactly(fields: list[str], number: int) -> list[str]:
    """Return so many fields: empty ones join, and are cut, at the end."""
    if len(fields) == number:
        return fields
    return [*fields, *[""] * (number - len(fields))][:number]


def _field_at(fields: list[str], place: int) -> str:
    return fields[place] if place < len(fields) else ""


def _without_more_fields(record: _Record, n_fields: int, delimiter: str) -> str:
    """Return a line without the empty fields that it has beyond those of the names."""
    n_more = len(record.fields) - n_fields
    if n_more <= 0:
        return record.line
    if record.line.endswith(delimiter * n_more):
        return record.line[: -n_more * len(delimiter)]
    return _joined_fields(record.fields[:n_fields], delimiter)


def _first_lines(records: list[_Record], rows: list[int]) -> Sequence[int]:
    """Return the line on which each row begins: a quoted field may go over several."""
    if records[0].text.endswith("\n"):
        line_end = "\n"
    else:
        line_end = "\r"
    n_lines = np.fromiter((record.text.count(line_end) for record in records), dtype=np.int64)
    begins = np.cumsum(n_lines) - n_lines + 1
    lines: list[int] = begins[rows].tolist()
    return lines


def _surroundings(records: list[_Record], layout: Layout) -> Surroundings | None:
    """Return all lines of a file; None if they are the names and the rows, or blank."""
    in_table = {layout.names_at, *layout.rows}
    others = [place for place, record in enumerate(records) if place not in in_table]
    if not any(records[place].text.strip() for place in others):
        return None
    lines = [record.line for record in records]
    return Surroundings(lines, layout.names_at, layout.rows)


def sniff_delimiter(text: str) -> str:
    """Return the delimiter that cuts the first records into most fields, and into equally many."""
    start = text[:_SNIFFED]
    is_cut = len(text) > len(start)
    if is_cut:
        start = start[: start.rfind("\n") + 1] or start
    best = ","
    most = 1
    for delimiter in DELIMITERS:
        records = _records(start, delimiter)
        counts = [len(record.fields) for record in records if record.fields][:100]
        if len(counts) > 2 and is_cut:
            counts = counts[:-1]  # the last one may be cut
        if counts and len(set(counts)) == 1 and counts[0] > most:
            best = delimiter
            most = counts[0]
    if most > 1:
        return best
    # With titles above and notes below, it is the one that cuts most records into as many fields.
    shares = {delimiter: _usual_count(start, delimiter) for delimiter in DELIMITERS}
    usual = {
        delimiter: count
        for delimiter, (count, share) in shares.items()
        if count > 1 and share >= 0.6
    }
    if usual:
        return max(usual, key=lambda delimiter: usual[delimiter])
    for delimiter in (BLANKS, BLANK):
        if _is_cut_by_blanks(start, delimiter):
            return delimiter
    # Where no delimiter fits all, it is the one most frequent in the header.
    header = start.partition("\n")[0]
    return max(DELIMITERS, key=header.count)


def _is_cut_by_blanks(text: str, delimiter: str) -> bool:
    """Return whether blanks cut lines into as many fields, of which some are all numbers."""
    if any(sign in text.partition("\n")[0] for sign in DELIMITERS):
        return False
    records = [record.fields for record in _records(text, delimiter) if record.fields][:100]
    if len(records) < 3:
        return False
    widths = [len(fields) for fields in records]
    width = max(set(widths[1:]), key=widths[1:].count)
    n_titles = next(place for place, found in enumerate(widths) if found in (width, width - 1))
    if n_titles and any(map(_FIGURE.fullmatch, records[n_titles])):  # the names are cut otherwise
        return False
    records = records[n_titles:]
    widths = widths[n_titles:]
    rows = [fields for fields in records[1:] if len(fields) == width]
    fits = widths[0] in (width, width - 1) and len(rows) >= 0.9 * (len(records) - 1)
    if width < 3 or not fits:
        return False
    return any(_are_figures([fields[place] for fields in rows]) for place in range(width))


def _usual_count(text: str, delimiter: str) -> tuple[int, float]:
    """Return the most frequent number of fields of the first records, and their share."""
    counts = [len(record.fields) for record in _records(text, delimiter) if record.fields][:100]
    if not counts:
        return 0, 0.0
    number = max(set(counts), key=counts.count)
    return number, counts.count(number) / len(counts)


def split_record(record: str, delimiter: str) -> list[str]:
    """Return the fields of one record."""
    record = readable(record)
    if delimiter in (BLANK, BLANKS):
        return _cut_by_blanks(record, delimiter)
    return next(csv.reader(io.StringIO(record, newline=""), delimiter=delimiter))


def _records(text: str, delimiter: str) -> Iterator[_Record]:
    """Yield each record; blank lines have no fields."""
    if delimiter in (BLANK, BLANKS):
        for line in io.StringIO(text, newline=""):
            yield _Record(line, _cut_by_blanks(line, delimiter))
        return
    if '"' not in text and text.count("\r") == text.count("\r\n"):
        yield from _plain_records(text, delimiter)
        return
    csv.field_size_limit(_LONGEST_FIELD)
    kept: list[str] = []

    def lines() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            kept.append(line)
            yield line

    for fields in csv.reader(lines(), delimiter=delimiter):
        record = _Record("".join(kept), fields)
        kept.clear()
        yield record


def _cut_by_blanks(line: str, delimiter: str) -> list[str]:
    """Return the fields of a line between blanks; none if there is nothing else in it."""
    line = line.strip()
    if not line:
        return []
    if delimiter == BLANKS:
        return re.split(r"\s{2,}", line)
    return next(csv.reader([line], delimiter=BLANK, skipinitialspace=True))


def _plain_records(text: str, delimiter: str) -> Iterator[_Record]:
    """Yield each record of a text without quotation marks: a line each, in half the time."""
    *lines, last = text.split("\n")
    for line in lines:
        fields = line.rstrip("\r")
        yield _Record(f"{line}\n", fields.split(delimiter) if fields else [])
    if last:
        yield _Record(last, last.split(delimiter))


def _is_open(record: str, delimiter: str) -> bool:
    """Return whether a record ends inside a quoted field: one after it would be a part of it."""
    if delimiter in (BLANK, BLANKS):
        return False
    with_another = io.StringIO(f"{record.rstrip()}\nanother", newline="")
    return len(list(csv.reader(with_another, delimiter=delimiter))) == 1


def _made_header(first: _Record, delimiter: str) -> _Record:
    """Return a header for records that have none."""
    names = [f"column {place + 1}" for place in range(len(first.fields))]
    return _Record(f"{delimiter.join(names)}{first.line_end}", names)


def _note_on_names(table: Table) -> str:
    """Return that the columns got names, and how to prevent it."""
    return (
        f"The first line of {table.name} holds data and no names: its columns are called "
        f"'column 1' to 'column {table.frame.shape[1]}'. "
        "If the first line does hold names, let each begin with a letter."
    )


def _check_lengths(
    header: _Record,
    rows: list[_Record],
    layout: Layout,
    delimiter: str,
) -> None:
    """Raise a ValueError if a record has more or fewer fields than the header.

    Fields without a value at the end of a record are no fields.
    """
    n_names = len(header.fields)
    for place, row in zip(layout.rows, rows, strict=True):
        n_fields = len(row.fields)
        if n_fields == n_names or (n_fields > n_names and not any(row.fields[n_names:])):
            continue
        remedy = "complete the record, or drop it"
        if n_names == 1:
            remedy = f"separate its names by {delimiter!r} too, or name their row with "
            remedy += option("header")
        elif n_fields > n_names:
            remedy = f"quote fields that hold the delimiter {delimiter!r}"
        raise ValueError(
            f"has {counted(n_fields, 'field')} in record {place + 1} but {n_names} in its header: "
            f"{remedy}"
        )


def _is_data(first: list[str], others: list[list[str]]) -> bool:
    """Return whether the first line holds data and no names.

    It does if numbers stand above numbers and do not rise or fall from left to right.
    """
    if len(others) < 3:
        return False
    full = [line for line in others if len(line) == len(first)]
    columns = [[_present_text(line[place]) for line in full] for place in range(len(first))]
    numeric = [place for place, cells in enumerate(columns) if _are_figures(filter(None, cells))]
    heads = [head for head in (_present_text(first[place]) for place in numeric) if head]
    if not _are_figures(heads):
        return False
    for place, head in enumerate(map(str.strip, first)):
        if place not in numeric and head and head in columns[place]:
            return True
    # Years and wavelengths in names do rise, or fall, from left to right.
    steps = np.diff([float(head.replace(",", ".")) for head in heads])
    return len(heads) > 2 and not (np.all(steps > 0.0) or np.all(steps < 0.0))


def _present_text(cell: str) -> str:
    """Return a cell without blanks around it, "" if it stands for a missing value."""
    text = cell.strip()
    if text.casefold() in MISSING:
        return ""
    return text


def _are_figures(texts: Iterator[str] | list[str]) -> bool:
    """Return whether there are texts, and all are plain numbers."""
    matches = [_FIGURE.fullmatch(text) for text in texts]
    return bool(matches) and all(matches)


class _ReadColumn(NamedTuple):
    """A column of texts as it was read."""

    values: pd.Series
    decimal: str
    reading: ColumnReading


def _read_column(texts: AnyArray, prefer: str) -> _ReadColumn:
    """Return a column of texts (n,), its decimal sign, and how its cells were read."""
    numbers = plain_numbers(texts, prefer)
    if numbers is not None:
        markers = hole_words(texts[numbers.isna()], MISSING)
        return _ReadColumn(numbers, "point", ColumnReading("", markers, prefer))
    codes, levels = pd.factorize(texts)
    values, decimal = typed(levels, prefer)
    if values.dtype == object:
        decimal = _sign_in_text(levels, prefer)
    markers = hole_words(texts[is_missing(levels)[codes]], MISSING)
    reading = ColumnReading(_note_on_signs(levels, values), markers, prefer)
    return _ReadColumn(values.take(codes).reset_index(drop=True), decimal, reading)


def _sign_in_text(texts: AnyArray, prefer: str) -> str:
    """Return the decimal sign of texts that are numbers except for a few; else the point."""
    if not any("," in text for text in texts):
        return "point"
    n_like_numbers = sum(_AROUND_NUMBER.fullmatch(text) is not None for text in texts)
    if n_like_numbers == 0 or 2 * n_like_numbers < len(texts):
        return "point"  # of names and long texts not each is read
    numbers = read_numbers(texts, prefer)
    if not numbers.nearly_all:
        return "point"
    for text, value in zip(texts, numbers.values, strict=True):
        if "," in text and np.isfinite(value):
            return numbers.decimal
    return "point"


def _note_on_signs(texts: AnyArray, column: pd.Series) -> str:
    """Return how a number written with a comma, or with groups of digits, was read, if one is."""
    if column.dtype.kind not in "if":
        return ""
    for text, value in zip(texts, column, strict=True):
        if "," in text or ("." in text and not _is_plain(text, value)):
            return f"{text.strip()!r} was read as {value:.12g}"
    return ""


def _is_plain(text: str, value: float) -> bool:
    """Return whether the points in a text of a number are as programs write them."""
    return text.count(".") == 1 and number_of(text, "point") == value


def _exact_integers(texts: Sequence[str], present: pd.Series) -> pd.Series | None:
    """Return a column whose cells are all whole numbers, as text if they are too long."""
    words = [
        text.strip() if is_present else None
        for text, is_present in zip(texts, present, strict=True)
    ]
    present_words = [word for word in words if word is not None]
    if not present_words or not all(map(_INTEGER.fullmatch, present_words)):
        return None
    if max(map(len, present_words)) > _LONGEST_INTEGER:
        return pd.Series(words, dtype=object)
    return pd.Series([None if word is None else int(word) for word in words], dtype="Int64")


# ----------------------------------------------------------------------------------------- writing


def append_columns(original: DelimitedText, new: pd.DataFrame, file: BinaryIO) -> None:
    """Write the text as it was given, with new columns after every record of the table."""
    file.write(original.mark)
    additions = [
        _joined_fields(fields, original.delimiter) for fields in _records_of(new, original.decimal)
    ]
    lines = _lines_with_additions(original, additions)
    line_ends = [original.line_end] * len(lines)
    if not original.ends:
        line_ends[-1] = ""
    for line, line_end in zip(lines, line_ends, strict=True):
        file.write(f"{line}{line_end}".encode(original.encoding, "surrogateescape"))


def _lines_with_additions(original: DelimitedText, additions: list[str]) -> list[str]:
    """Return all lines of a file, with an addition after the names and after each row.

    Other lines with as many fields get empty ones, so that no line of the table is shorter.
    """
    delimiter = original.delimiter
    names, *of_rows = additions
    n_fields = len(split_record(original.header, delimiter))
    rows = [
        f"{record}{delimiter}{addition}"
        for record, addition in zip(original.records, of_rows, strict=True)
    ]
    header = f"{original.header}{delimiter}{names}"
    around = original.surroundings
    if around is None:
        return [header, *rows]
    n_new = len(split_record(names, delimiter))
    lines = [_lengthened(line, n_fields, n_new, delimiter) for line in around.lines]
    for place, row in zip(around.rows_at, rows, strict=True):
        lines[place] = row
    if around.header_at >= 0:
        lines[around.header_at] = header
    else:
        lines.insert(around.rows_at[0], header)
    return lines


def _lengthened(line: str, n_fields: int, n_new: int, delimiter: str) -> str:
    """Return a line beside the table with empty fields for new columns, if it is as wide."""
    if delimiter in (BLANK, BLANKS) or not line.strip():
        return line
    fields = split_record(line, delimiter)
    if len(fields) < n_fields or any(fields[n_fields:]):
        return line
    return _without_more_fields(_Record(line, fields), n_fields, delimiter) + delimiter * n_new


def field_text(value: object, decimal: str = "point") -> str:
    """Return a value as the text of a field: "" if it is missing."""
    if isinstance(value, float | np.floating):
        return number_text(float(value), decimal)
    if value is None or value is pd.NA or value is pd.NaT:
        return ""
    if isinstance(value, np.ndarray):
        return str(value.tolist())
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def field_texts(column: pd.Series, decimal: str = "point") -> pa.Array:
    """Return the cells of a column as an Arrow array of such texts."""
    if column.dtype.kind == "f":
        return number_texts(column.to_numpy(dtype=float, na_value=np.nan), decimal)
    return pa.array([field_text(value, decimal) for value in column.tolist()], pa.string())


def _write_records(file: BinaryIO, records: Iterator[list[str]], delimiter: str) -> None:
    """Write records as UTF-8 text."""
    for fields in records:
        file.write(f"{_joined_fields(fields, delimiter)}\n".encode())


def _joined_fields(fields: list[str], delimiter: str) -> str:
    """Return fields as one record, quoted where they must be."""
    if delimiter in (BLANK, BLANKS):  # an empty field would be none
        fields = [" ".join(field.split()) or "NA" for field in fields]
    if delimiter == BLANKS:
        return BLANKS.join(fields)
    plain = delimiter.join(fields)
    is_plain = plain.count(delimiter) == len(fields) - 1 and _QUOTED.search(plain) is None
    if plain and is_plain and delimiter != BLANK:  # most fields are numbers: a third of the time
        return plain
    buffer = io.StringIO()
    # Line ends within fields are quoted only if they are among those of the lines.
    csv.writer(buffer, delimiter=delimiter, lineterminator="\r\n").writerow(fields)
    return buffer.getvalue().removesuffix("\r\n")


def _records_of(frame: pd.DataFrame, decimal: str = "point") -> Iterator[list[str]]:
    """Yield the header and every row of a frame as fields."""
    yield list(map(str, frame.columns))
    columns = [field_texts(frame[name], decimal).to_pylist() for name in frame.columns]
    yield from map(list, zip(*columns, strict=True))
