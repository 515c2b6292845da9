"""JSON: one object a row, in an array or one a line; the text of each object stays as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from transduce.app.tables.encodings import decode
from transduce.app.tables.formats import Format, Original, Table, plain_cell
from transduce.app.tables.layout import AUTOMATIC, LayoutRequest
from transduce.app.tables.whole_numbers import with_all_digits
from transduce.core.types import JsonObject

_BLANKS = re.compile(r"[ \t\r\n]*")  # between the entries of a JSON array
_LISTS = re.compile(r"\s*\[\s*\[")
_DEEPEST = 3  # objects in objects in which a table is looked for
_BEFORE_TEXT = b"\xef\xbb\xbf \t\r\n"


@dataclass(frozen=True, eq=False)
class JsonObjects(Original):
    """The objects of a file, each as it was written."""

    texts: list[str]
    kind: str
    before: str = ""  # what stands in the file before its array, if the array is in an object
    after: str = ""
    reading_notes: tuple[str, ...] = ()

    def notes(self, table: Table) -> list[str]:
        """Return where the table is in the file, if it is not all of it."""
        return list(self.reading_notes)

    def exact_columns(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the columns for another format: whole numbers with all their digits."""
        rows = [json.loads(text) for text in self.texts]
        columns = {name: _exact_column([row.get(name) for row in rows]) for name in frame.columns}
        return pd.DataFrame(columns)


class _JsonFormat(Format):
    """What both forms of JSON share."""

    memory_factor = 15

    def refined(self, content: bytes) -> Format:
        """Return the form of JSON that bytes have, whatever their name says."""
        if JSON.recognizes(content):
            return JSON
        return JSON_LINES

    def write(self, file: BinaryIO, table: Table, new: pd.DataFrame) -> None:
        """Write one object a row, with the given text of its old part where there is one."""
        new = new.apply(_without_infinities)
        if isinstance(table.original, JsonObjects):
            additions = _row_texts(new)
            texts = list(map(extended_object, table.original.texts, additions))
        else:
            texts = _row_texts(table.joined_with(new))
        text = self.text_of_file(texts)
        if isinstance(table.original, JsonObjects) and table.original.before:
            text = f"{table.original.before}{text.rstrip()}{table.original.after}"
        file.write(text.encode())

    def text_of_file(self, texts: list[str]) -> str:
        """Return the text of a file with these objects."""
        raise NotImplementedError


def _frame_of(rows: list[JsonObject]) -> pd.DataFrame:
    """Return objects as a table."""
    frame = pd.DataFrame(rows)
    names = frame.columns
    return with_all_digits(frame, lambda place: [row.get(names[place]) for row in rows])


class JsonArrayFormat(_JsonFormat):
    """One array of objects."""

    name = "json"
    endings = (".json",)

    def recognizes(self, content: bytes) -> bool:
        """Return whether bytes begin as an array does."""
        return _first_sign(content) == b"["

    def read(
        self, content: bytes, sheet: str | None, layout: LayoutRequest = AUTOMATIC
    ) -> tuple[pd.DataFrame, Original]:
        """Return the objects of an array as a table."""
        text, _encoding, _mark = decode(content)
        if _LISTS.match(text):
            return _table_of_lists(text)
        rows, texts = _array_entries(text)
        return _frame_of(rows), JsonObjects(texts, self.name)

    def text_of_file(self, texts: list[str]) -> str:
        """Return an array with these objects."""
        return "[\n" + ",\n".join(texts) + "\n]\n"


class JsonLinesFormat(_JsonFormat):
    """One object a line."""

    name = "json lines"
    endings = (".jsonl", ".ndjson")

    def recognizes(self, content: bytes) -> bool:
        """Return whether bytes begin as an object does."""
        return _first_sign(content) == b"{"

    def read(
        self, content: bytes, sheet: str | None, layout: LayoutRequest = AUTOMATIC
    ) -> tuple[pd.DataFrame, Original]:
        """Return the objects of the lines that are not blank as a table."""
        text, _encoding, _mark = decode(content)
        whole = _whole_object(text)
        if whole is not None:
            table = _table_in_object(text, whole)
            if table is not None:
                return table
            return _frame_of([whole]), JsonObjects([text.strip()], JSON_LINES.name)
        if not _begins_with_an_object(text):
            rows, texts = _objects_in_sequence(text)
            return _frame_of(rows), JsonObjects(texts, self.name)
        rows = []
        texts = []
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                rows.append(json_object(line, number))
                texts.append(line)
        return _frame_of(rows), JsonObjects(texts, self.name)

    def text_of_file(self, texts: list[str]) -> str:
        """Return a line for each of these objects."""
        return "".join(f"{text}\n" for text in texts)


JSON = JsonArrayFormat()
JSON_LINES = JsonLinesFormat()


def _whole_object(text: str) -> JsonObject | None:
    """Return the one object that a text holds; None if it holds objects line by line."""
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        json.loads(lines[0])
        if len(lines) > 1:
            return None
    except json.JSONDecodeError:
        pass
    try:
        whole = json.loads(text)
    except json.JSONDecodeError:
        return None
    return whole if isinstance(whole, dict) else None


def _begins_with_an_object(text: str) -> bool:
    """Return whether the first line that is not blank holds all of an object."""
    line = next(line for line in text.splitlines() if line.strip())
    try:
        json.loads(line)
    except json.JSONDecodeError:
        return False
    return True


def _objects_in_sequence(text: str) -> tuple[list[JsonObject], list[str]]:
    """Return objects that go over several lines each, one after the other, and their texts.

    The texts are of one line each: no text in JSON has a line break of its own.
    """
    rows: list[JsonObject] = []
    texts: list[str] = []
    place = _after_blanks(text, 0)
    while place < len(text):
        row, end = _decode_at(text, place, len(rows) + 1)
        rows.append(row)
        texts.append(re.sub(r"\s*[\r\n]\s*", " ", text[place:end]))
        place = _after_blanks(text, end)
    return rows, texts


def _decode_at(text: str, place: int, number: int) -> tuple[JsonObject, int]:
    """Return the object at a place of a text, and where it ends; it has this number."""
    try:
        row, end = _DECODER.raw_decode(text, place)
    except _RepeatedNameError as error:
        raise ValueError(f"has {error.name!r} twice in the object in place {number}") from error
    except json.JSONDecodeError as error:
        raise _not_json(text, error.pos, error.msg) from error
    if not isinstance(row, dict):
        raise ValueError(f"has no object {{...}} in place {number}, as others of its rows are")
    return row, end


def _table_in_object(text: str, whole: JsonObject) -> tuple[pd.DataFrame, JsonObjects] | None:
    """Return the table in an object, as programs and servers write one; None if it is a row."""
    columns = whole.get("columns")
    data = whole.get("data")
    if isinstance(columns, list) and isinstance(data, list) and _are(data, list):
        names = list(map(str, columns))
        repeated = [name for name in names if names.count(name) > 1]
        if repeated:
            raise ValueError(f"has two columns called {repeated[0]!r}: give each its own name")
        return _made_table([dict(zip(map(str, columns), row, strict=False)) for row in data])
    arrays = list(_arrays_in(text, _after_blanks(text, 0), ""))
    if arrays:
        name, start, end = max(arrays, key=lambda place: place[2] - place[1])
        rows, texts = _array_entries(text[start:end])
        note = f"The table is in {name!r} of the file; all else there stays as it is."
        original = JsonObjects(texts, JSON.name, text[:start], text[end:], (note,))
        return _frame_of(rows), original
    values = list(whole.values())
    if values and _are(values, list):
        lengths = set(map(len, values))
        if len(lengths) == 1 and len(values) > 1 and lengths != {0}:
            cells = zip(*values, strict=True)
            return _made_table([dict(zip(whole, row, strict=True)) for row in cells])
    if len(values) > 1 and _are(values, dict):
        return _table_of_objects(whole)
    return None


def _are(values: list[Any], kind: type) -> bool:
    return bool(values) and all(isinstance(value, kind) for value in values)


def _arrays_in(
    text: str,
    start: int,
    above: str,
    depth: int = 1,
) -> Iterator[tuple[str, int, int]]:
    """Yield name, start and end of each array of objects in the object at a place of a text."""
    decoder = json.JSONDecoder()
    place = _after_blanks(text, start + 1)
    while not text.startswith("}", place):
        key, place = decoder.raw_decode(text, place)
        begin = _after_blanks(text, _after_blanks(text, place) + 1)
        value, end = decoder.raw_decode(text, begin)
        name = f"{above}{key}"
        if isinstance(value, list) and _are(value, dict):
            yield name, begin, end
        elif isinstance(value, dict) and depth < _DEEPEST:
            yield from _arrays_in(text, begin, f"{name}.", depth + 1)
        place = _after_blanks(text, end)
        if text.startswith(",", place):
            place = _after_blanks(text, place + 1)


def _table_of_objects(whole: JsonObject) -> tuple[pd.DataFrame, JsonObjects] | None:
    """Return a table whose columns, or whose rows, are objects by name."""
    inner = list(next(iter(whole.values())))
    if not inner or any(set(value) != set(inner) for value in whole.values()):
        return None
    if all(name.isdigit() for name in inner):
        return _made_table([{key: whole[key][name] for key in whole} for name in inner])
    if all(name.isdigit() for name in whole):
        return _made_table(list(whole.values()))
    if len(whole) < 3 or any(isinstance(cell, dict) for cell in whole[next(iter(whole))].values()):
        return None
    key = next(name for name in ("key", "name of row", "key of row") if name not in inner)
    return _made_table([{key: name, **row} for name, row in whole.items()])


def _table_of_lists(text: str) -> tuple[pd.DataFrame, JsonObjects]:
    """Return an array of arrays as a table: the first holds the names if it holds texts alone."""
    try:
        rows = json.loads(text)
    except json.JSONDecodeError as error:
        raise _not_json(text, error.pos, error.msg) from error
    if not _are(rows, list) or len({len(row) for row in rows}) != 1 or not rows[0]:
        raise ValueError("holds arrays that are no rows of a table: each must be as long")
    names = [f"column {place + 1}" for place in range(len(rows[0]))]
    has_names = _are(rows[0], str) and len(set(rows[0])) == len(rows[0])
    if has_names and any(not _are(row, str) for row in rows[1:]):
        names = rows.pop(0)
    return _made_table([dict(zip(names, row, strict=True)) for row in rows])


def _made_table(rows: list[JsonObject]) -> tuple[pd.DataFrame, JsonObjects]:
    """Return rows as a table whose new file holds an object a row."""
    if not rows:
        raise ValueError("is empty: there is no table in it")
    texts = [json.dumps(row, ensure_ascii=False) for row in rows]
    note = "The file keeps its table by columns or lists; the new file has an object for each row."
    return _frame_of(rows), JsonObjects(texts, JSON.name, reading_notes=(note,))


class _RepeatedNameError(Exception):
    """An object gives two values to one name, of which one would be lost."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _without_repeats(pairs: list[tuple[str, Any]]) -> JsonObject:
    """Return an object, or raise an error if a name occurs in it twice."""
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedNameError(next(name for name in row if names.count(name) > 1))
    return row


_DECODER = json.JSONDecoder(object_pairs_hook=_without_repeats)


def json_object(line: str, number: int) -> JsonObject:
    """Return the object in a line of JSON; a ValueError goes on from the name of the file."""
    try:
        row = _DECODER.decode(line)
    except _RepeatedNameError as error:
        raise ValueError(f"has {error.name!r} twice in the object in line {number}") from error
    except json.JSONDecodeError as error:
        raise ValueError(
            f"is not JSON in line {number}, column {error.colno}: {_in_words(error.msg)}"
        ) from error
    if not isinstance(row, dict):
        raise ValueError(f"has no object {{...}} in line {number}, as JSON lines must have")
    return row


def extended_object(text: str, addition: str) -> str:
    """Return the text of a JSON object with the fields of another one after its own."""
    start = text.rstrip()[:-1].rstrip()
    fields = addition[1:]
    if start.endswith("{"):
        return f"{start}{fields}"
    return f"{start}, {fields}"


def _first_sign(content: bytes) -> bytes:
    """Return the first byte of a text that is not blank."""
    return content.lstrip(_BEFORE_TEXT)[:1]


def _array_entries(text: str) -> tuple[list[Any], list[str]]:
    """Return the objects of a JSON array, and the text of each.

    What is not exactly one array is refused.
    """
    rows: list[Any] = []
    texts: list[str] = []
    place = _after_blanks(text, text.index("[") + 1)
    while not text.startswith("]", place) or rows:
        try:
            row, end = _DECODER.raw_decode(text, place)
        except _RepeatedNameError as error:
            raise ValueError(
                f"has {error.name!r} twice in the object in place {len(rows) + 1} of its array"
            ) from error
        except json.JSONDecodeError as error:
            raise _not_json(text, error.pos, error.msg) from error
        if not isinstance(row, dict):
            raise ValueError(f"has no object {{...}} in place {len(rows) + 1} of its array")
        rows.append(row)
        texts.append(text[place:end])
        place = _after_blanks(text, end)
        if text.startswith("]", place):
            break
        if place == len(text):
            raise _not_json(text, place, "the array ends without ]")
        if not text.startswith(",", place):
            raise _not_json(text, place, "a comma or ] is missing")
        place = _after_blanks(text, place + 1)
    end = _after_blanks(text, place + 1)
    if end < len(text):
        raise _not_json(text, end, "something follows after the end of the array")
    if not rows:
        raise ValueError("is empty: there is no table in it")
    return rows, texts


def _after_blanks(text: str, place: int) -> int:
    """Return the next place of a text that is not blank."""
    blanks = _BLANKS.match(text, place)
    if blanks is None:
        return place
    return blanks.end()


def _not_json(text: str, place: int, message: str) -> ValueError:
    """Return an error that names line and column of what is wrong with a JSON text."""
    line = text.count("\n", 0, place) + 1
    column = place - text.rfind("\n", 0, place)
    return ValueError(f"is not JSON in line {line}, column {column}: {_in_words(message)}")


# What Python says of damaged JSON, and what it means.
_OF_JSON = {
    "Expecting value": "a value is missing here",
    "Expecting ',' delimiter": "a comma is missing, or the file was cut off",
    "Expecting ':' delimiter": "a colon is missing, or the file was cut off",
    "Expecting property name enclosed in double quotes": (
        'a name in quotation marks is missing, as in {"name": 1}'
    ),
    "Unterminated string starting at": "a text that begins here has no end; the file was cut off",
    "Illegal trailing comma before end of object": "a comma stands before the end of the object",
    "Illegal trailing comma before end of array": "a comma stands before the end of the array",
    "Extra data": "something follows after the end of the object",
    "Invalid control character at": "a text has a line break or another control character",
    "Invalid \\escape": "a backslash is not followed by what may follow it",
    "Invalid \\uXXXX escape": "four digits are missing after \\u",
}


def _in_words(message: str) -> str:
    """Return what the decoder of JSON says, as the end of a sentence."""
    return _OF_JSON.get(message.strip().removesuffix(":").strip(), message)


def _exact_column(values: list[Any]) -> pd.Series:
    """Return a column; whole numbers with gaps as such."""
    present = [value for value in values if value is not None]
    if not present or not all(type(value) is int for value in present):
        return pd.Series(values, dtype=object).infer_objects()
    if all(-(2**63) <= value < 2**63 for value in present):
        return pd.Series(values, dtype="Int64")
    return pd.Series(values, dtype=object)


def _without_infinities(column: pd.Series) -> pd.Series:
    """Return a column with missing values for infinite ones, which JSON does not have."""
    if column.dtype.kind != "f":
        return column
    return column.mask(column.abs() == np.inf)


def _row_texts(frame: pd.DataFrame) -> list[str]:
    """Return each row as the text of a JSON object."""
    names = list(map(str, frame.columns))
    columns = [[plain_cell(value) for value in frame[name].tolist()] for name in frame.columns]
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return [json.dumps(row, ensure_ascii=False, default=str) for row in rows]
