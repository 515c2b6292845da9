"""Tables in many files, or larger than memory: found, checked, and read part by part."""

from __future__ import annotations

import codecs
import glob
import hashlib
import io
import itertools
import json
import math
import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from transduce.app.tables.arrow_tables import stored_index, with_columns
from transduce.app.tables.column_names import check_once
from transduce.app.tables.delimited import field_texts, sniff_delimiter, split_record
from transduce.app.tables.encodings import OTHER_SCRIPTS, USUAL_ENCODINGS, decode
from transduce.app.tables.files import kind_of
from transduce.app.tables.json_tables import extended_object, json_object
from transduce.app.tables.vectors import to_pandas
from transduce.core.files import whole_file
from transduce.core.words import counted

STREAMED = ("csv", "tsv", "parquet", "json lines")
_HEAD = 2**20  # bytes of a text that are looked at to find its encoding and delimiter
_BLOCK = 2**24
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # what the folder of rows without one is called
_PART_ROWS = 200_000
_GROUP_ROWS = 100_000  # of a text that is read once and kept as Parquet
_KEPT_NAME = re.compile(r"\d{5,}-[0-9a-f]{16}\.parquet")
LINE = "\u0000line"  # the column that keeps a line of JSON as it was written


@dataclass(frozen=True)
class Part:
    """Some rows of a table: the row groups of a Parquet file that are read together."""

    number: int  # its place among all parts
    file: Path  # that is read, by its full name, since workers may have another working directory
    groups: tuple[int, ...]
    n_rows: int
    name: str  # what the part is called where it is written, without an ending
    given: str  # the file as the user knows it
    folder_values: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False)
class PartFiles:
    """A table in one or more files."""

    kind: str  # of the files as they were given
    files: tuple[Path, ...]  # as they were given
    schema: pa.Schema  # columns and types that hold for all of them
    parts: tuple[Part, ...]
    delimiter: str  # of texts
    row_bytes: float  # about how many bytes a row takes in memory
    index: tuple[str, ...] = ()  # columns that are the index of stored pandas frames
    by_folder: tuple[str, ...] = ()  # columns that names of folders give, as region=EU/0.parquet
    metadata: dict[bytes, bytes] | None = None  # what the first file says of its index, if any

    @property
    def n_rows(self) -> int:
        """Rows of all parts."""
        return sum(part.n_rows for part in self.parts)

    @property
    def columns(self) -> list[str]:
        """Names of the columns, without an index and what only serves to write a line back."""
        return [name for name in self.schema.names if name != LINE and name not in self.index]

    def batches(self, part: Part, n_rows: int) -> Iterator[pa.Table]:
        """Yield the rows of a part, at most so many at a time, in the types of the whole table."""
        try:
            with parquet.ParquetFile(part.file) as file:
                for batch in file.iter_batches(n_rows, row_groups=list(part.groups)):
                    rows = pa.Table.from_batches([batch])
                    for name, value in zip(self.by_folder, part.folder_values, strict=True):
                        kind = self.schema.field(name).type
                        rows = rows.append_column(
                            name, pa.repeat(pa.scalar(value, kind), len(rows))
                        )
                    yield rows.select(self.schema.names).cast(self.schema)
        except FileNotFoundError as error:
            raise ValueError(f"{part.given} is no longer where it was.") from error
        except (pa.ArrowException, OSError) as error:  # of a damaged page it is an OSError
            raise ValueError(f"{part.given} cannot be read: it is damaged.") from error

    def frame_of(self, batch: pa.Table) -> pd.DataFrame:
        """Return a batch of rows as a frame of its columns."""
        return to_pandas(batch.select(self.columns))


def is_many(pattern: str) -> bool:
    """Return whether a name stands for a table in parts: a folder, or a pattern with a wildcard."""
    return Path(pattern).is_dir() or (glob.has_magic(pattern) and not Path(pattern).exists())


def find_files(pattern: str, leave_out: Path) -> tuple[str, tuple[Path, ...]]:
    """Return kind and files of a table in parts, sorted by name.

    A ValueError says what is wrong with them.
    """
    given = Path(pattern)
    if given.is_dir():
        matching = [
            path for path in given.rglob("*") if path.is_file() and kind_of(path)[0] in STREAMED
        ]
        words = {path: path.relative_to(given).parts for path in matching}
        matching = [
            path
            for path in matching
            if not any(word.startswith((".", "_")) for word in words[path])
        ]
        missing = f"The folder {pattern} holds no table (CSV, TSV, Parquet or JSON lines)."
        others = sorted(path for path in given.rglob("*") if kind_of(path)[0] is not None)
        if others and not matching:
            tables = counted(len(others), "table")
            missing = (
                f"The folder {pattern} holds {tables} of another format, such as "
                f"{others[0].name}, and only CSV, TSV, Parquet and JSON lines can be filled "
                "together: save them as such, or fill each by itself."
            )
    else:
        names = [pattern] if given.exists() else glob.glob(pattern, recursive=True)
        matching = [Path(name) for name in names if Path(name).is_file()]
        missing = f"There is no file {pattern}."
    matching = [path for path in matching if leave_out.resolve() not in path.resolve().parents]
    if not matching:
        raise FileNotFoundError(missing)
    files = tuple(sorted(matching))
    kind = str(kind_of(files[0])[0])
    for path in files:
        kind_of_path = kind_of(path)[0]
        if kind_of_path not in STREAMED:
            raise ValueError(
                f"{path} cannot be read in parts: only CSV, TSV, Parquet or JSON lines can."
            )
        if kind_of_path != kind:
            raise ValueError(
                f"{files[0]} and {path} are of different kinds: "
                "a table in parts has files of one kind."
            )
    return kind, files


def reopen_parts(files: PartFiles, work: Path) -> PartFiles:
    """Return the same parts once the folder for work is gone.

    Texts are kept as Parquet in another.
    """
    if files.kind == "parquet":
        return files
    readable, _ = _kept(files.files, files.kind, work)
    kept = dict(zip(map(str, files.files), readable, strict=True))
    parts = [replace(part, file=Path(os.path.abspath(kept[part.given]))) for part in files.parts]
    return replace(files, parts=tuple(parts))


def open_parts(pattern: str, work: Path) -> PartFiles:
    """Find the files of a table, check that they fit together, and cut them into parts."""
    kind, files = find_files(pattern, work.parent)
    if kind != "parquet":
        files = _without_blank(files)
    named = values_in_folders(pattern, files, typed=kind == "parquet")
    readable, delimiter = (files, ",") if kind == "parquet" else _kept(files, kind, work)
    footers = [_footer(path, given) for path, given in zip(readable, files, strict=True)]
    stored = [footer.schema.to_arrow_schema() for footer in footers]
    schema = _common(files, [schema_of_file.remove_metadata() for schema_of_file in stored])
    n_rows = sum(footer.num_rows for footer in footers)
    if n_rows == 0:
        raise ValueError(
            f"{files[0]} holds no rows." if len(files) == 1 else "The files hold no rows."
        )
    by_folder = tuple(name for name in named if name not in schema.names)
    for name in by_folder:
        whole = any(isinstance(value, int) for value in named[name])
        schema = schema.append(pa.field(name, pa.int64() if whole else pa.string()))
    parts: list[Part] = []
    for number, (path, given, footer) in enumerate(zip(readable, files, footers, strict=True)):
        values = tuple(named[name][number] for name in by_folder)
        for groups, rows in _runs(footer):
            name = f"part-{len(parts):05d}-{given.name.split('.')[0]}"
            file = Path(os.path.abspath(path))
            parts.append(Part(len(parts), file, groups, rows, name, str(given), values))
    index = tuple(
        name for name in stored_index(stored[0]) if all(name in stored_index(s) for s in stored)
    )
    metadata = {b"pandas": stored[0].metadata[b"pandas"]} if index else None
    n_bytes = sum(f.row_group(j).total_byte_size for f in footers for j in range(f.num_row_groups))
    return PartFiles(
        kind,
        files,
        schema,
        tuple(parts),
        delimiter,
        row_bytes=4.0 * n_bytes / n_rows,
        index=index,
        by_folder=by_folder,
        metadata=metadata,
    )


def _without_blank(files: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the texts that hold something; those of empty parts need not even name the columns."""
    full = tuple(path for path in files if not _is_blank(path))
    if not full:
        raise ValueError(f"{files[0]} is empty: there is no table in it.")
    return full


def values_in_folders(
    pattern: str, files: tuple[Path, ...], *, typed: bool
) -> dict[str, list[Any]]:
    """Return what folders such as ``region=EU`` say about each file, by column.

    Whole numbers are read as such if `typed`.
    """
    words = Path(pattern).parts
    given = Path(pattern).exists()
    n_fixed = len([*itertools.takewhile(lambda word: given or not glob.has_magic(word), words)])
    values_of_files: list[dict[str, str | None]] = []
    for path in files:
        pairs = [word.partition("=") for word in path.parts[n_fixed:-1] if "=" in word]
        texts = {unquote(key): unquote(value) for key, _, value in pairs}
        values_of_files.append(
            {key: None if text == _NO_VALUE else text for key, text in texts.items()}
        )
    odd = next(
        (
            path
            for path, values_of_file in zip(files, values_of_files, strict=True)
            if list(values_of_file) != list(values_of_files[0])
        ),
        None,
    )
    if odd is not None:
        raise ValueError(
            f"The folders of {files[0]} and {odd} name different columns: "
            "let all have folders such as region=EU."
        )
    columns: dict[str, list[Any]] = {
        name: [values_of_file[name] for values_of_file in values_of_files]
        for name in values_of_files[0]
    }
    for name, values in columns.items():
        if typed and all(
            value is None or re.fullmatch(r"-?(0|[1-9]\d{0,17})", value) for value in values
        ):
            columns[name] = [None if value is None else int(value) for value in values]
    return columns


def _footer(path: Path, given: Path) -> Any:
    """Return what a Parquet file says of itself."""
    try:
        return parquet.read_metadata(path)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(
            f"{given} cannot be read: it is damaged, or not a Parquet file."
        ) from error


def _runs(footer: Any) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield runs of row groups that are a part together, and how many rows they have."""
    run: tuple[int, ...] = ()
    total = 0
    for number in range(footer.num_row_groups):
        size = footer.row_group(number).num_rows
        if total and total + size > _PART_ROWS:
            yield run, total
            run = ()
            total = 0
        run, total = (*run, number), total + size
    if total:
        yield run, total


def _common(files: tuple[Path, ...], schemas: list[Any]) -> Any:
    """Return columns and types that hold for all files.

    A ValueError names two files that differ.
    """
    first = schemas[0]
    check_once(first.names, files[0])
    fields = {field.name: field for field in first}
    for path, schema in zip(files[1:], schemas[1:], strict=True):
        extra = [name for name in schema.names if name not in fields]
        lacking = [name for name in fields if name not in schema.names]
        if lacking:
            raise ValueError(f"{path} lacks the column {lacking[0]!r}, which {files[0]} has.")
        if extra:
            raise ValueError(f"{path} has the column {extra[0]!r}, which {files[0]} lacks.")
        for field in schema:
            both = [fields[field.name], field]
            if both[0].type != both[1].type:  # categories in one file may be texts in another
                both = [column.with_type(_plain_type(column.type)) for column in both]
            pair = [pa.schema([column]) for column in both]
            try:
                fields[field.name] = pa.unify_schemas(pair, promote_options="permissive").field(0)
            except pa.ArrowException:
                raise ValueError(
                    f"Column {field.name!r} holds {fields[field.name].type} in {files[0]} and "
                    f"{field.type} in {path}: store it in one type."
                ) from None
    return pa.schema([fields[name].with_nullable(True) for name in first.names])


def is_kept_name(name: str) -> bool:
    """Return whether a file in a folder for work is called as a text that was kept there is."""
    return _KEPT_NAME.fullmatch(name) is not None


@dataclass(frozen=True)
class _Style:
    """How a text is written."""

    delimiter: str
    encoding: str
    has_rows: bool  # or only a line of names


def _plain_type(kind: Any) -> Any:
    """Return the type of values, of categories that of each."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    return kind


def _kept(files: tuple[Path, ...], kind: str, work: Path) -> tuple[tuple[Path, ...], str]:
    """Return texts kept as Parquet, cell by cell as they were written, and their delimiter."""
    styles = [_style(path, kind) for path in files]
    # A line of names alone may tell of no delimiter, or of a wrong one: that of the others is
    # taken.
    first = next((place for place, style in enumerate(styles) if style.has_rows), 0)
    delimiter = styles[first].delimiter
    work.mkdir(parents=True, exist_ok=True)
    kept = []
    for number, (path, style) in enumerate(zip(files, styles, strict=True)):
        if style.has_rows and style.delimiter != delimiter:
            raise ValueError(
                f"{path} is delimited by {style.delimiter!r} and {files[first]} by {delimiter!r}: "
                "use one of them."
            )
        stat = path.stat()
        identity = "|".join(
            map(
                str,
                (path.resolve(), kind, delimiter, style.encoding, stat.st_size, stat.st_mtime_ns),
            )
        )
        file = work / f"{number:05d}-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.parquet"
        if not _is_whole(file):
            if kind == "json lines":
                batches = _json_batches(path)
            else:
                batches = _csv_batches(path, delimiter, style.encoding)
            _keep(path, batches, file)
        kept.append(file)
    return tuple(kept), delimiter


def _is_whole(file: Path) -> bool:
    """Return whether a text was kept by an earlier run that was stopped later."""
    try:
        parquet.read_metadata(file)
    except (pa.ArrowException, OSError):
        return False
    return True


def _style(path: Path, kind: str) -> _Style:
    """Return delimiter and encoding of a text, and whether it has rows; all of it is looked at."""
    head = _head(path)
    if len(head) == _HEAD:
        cut = head[: head.rfind(b"\n") + 1]
    else:
        cut = head
    if kind == "json lines":
        return _Style(",", "utf-8", True)
    try:
        text, encoding, mark = decode(cut or head)
    except ValueError as error:
        raise ValueError(f"{path} {error}.") from None
    if not mark:  # signs that are not UTF-8 may come late
        encodings: tuple[str, ...] = USUAL_ENCODINGS
        if encoding in OTHER_SCRIPTS:
            encodings = (encoding, *USUAL_ENCODINGS)
        encoding = next(name for name in encodings if _is_encoded(path, name))
    lines = text.strip().splitlines()
    delimiter = "\t" if kind == "tsv" else sniff_delimiter(text)
    return _Style(delimiter, encoding, len(lines) > 1)


def _is_encoded(path: Path, encoding: str) -> bool:
    """Return whether a text has an encoding to its end."""
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for block in _blocks(path):
            decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _is_blank(path: Path) -> bool:
    """Return whether a text holds nothing at all, as empty parts of some programs do."""
    return not any(block.strip(b"\xef\xbb\xbf \t\r\n\0\xff\xfe") for block in _blocks(path))


def _head(path: Path) -> bytes:
    return next(_blocks(path, _HEAD), b"")


def _blocks(path: Path, size: int = _BLOCK) -> Iterator[bytes]:
    """Yield the bytes of a text, unpacked, or raise a ValueError that names the file."""
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            while block := stream.read(size):
                yield block
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error


# What Arrow says of a row that has more or fewer fields than the names.
_OTHER_LENGTH = re.compile(
    r"CSV parse error: Row #(?P<row>\d+): Expected (?P<expected>\d+) columns, got (?P<found>\d+)"
)


def _unreadable(path: Path, error: Exception) -> ValueError:
    """Return that a text cannot be read, and why."""
    why = next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
    lengths = _OTHER_LENGTH.match(why)
    if lengths is not None:
        fields = counted(int(lengths["found"]), "field")
        return ValueError(
            f"{path} cannot be read in parts: row {lengths['row']} has {fields}, and the names "
            f"{lengths['expected']}. Such files hold names and rows alone: take titles, totals and "
            "notes out, or fill the file by itself."
        )
    if kind_of(path)[1]:  # it is packed, and its end is missing or its bytes are wrong
        why = f"it is damaged ({why})"
    return ValueError(f"{path} cannot be read: {why}.")


def _keep(path: Path, batches: Iterator[pa.Table], target: Path) -> None:
    """Write the cells of a text to a Parquet file, a block at a time."""
    writer = None
    try:
        with whole_file(target, force=True, like=[path]) as file:
            try:
                for batch in batches:
                    writer = writer or parquet.ParquetWriter(file, batch.schema, compression="zstd")
                    if len(batch):
                        writer.write_table(batch, row_group_size=_GROUP_ROWS)
                if writer is None:
                    raise ValueError(f"{path} holds no rows.")
            finally:
                if writer is not None:  # later it would write to a file that is closed
                    writer.close()
    except pa.ArrowException as error:
        raise _unreadable(path, error) from error


class _WithEnd(io.RawIOBase):
    """The bytes of a text, unpacked, and one last record after them.

    The record shows whether a quotation mark is still open.
    """

    def __init__(self, path: Path, end: bytes) -> None:
        self._blocks = _blocks(path)
        self._end = end
        self._left = b""

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes."""
        while not self._left:
            block = next(self._blocks, None)
            if block is None:
                if not self._end:
                    return 0
                block, self._end = self._end, b""
            self._left = block
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size


def text_batches(path: Path, kind: str) -> tuple[str, Iterator[pa.Table]]:
    """Return the delimiter of a text, and its rows as they are written, some at a time."""
    if kind == "json lines":
        return "", _json_batches(path)
    style = _style(path, kind)
    return style.delimiter, _csv_batches(path, style.delimiter, style.encoding)


def _csv_batches(path: Path, delimiter: str, encoding: str) -> Iterator[pa.Table]:
    """Yield the cells of a delimited text as they were written.

    At first none, so that the names are known.
    """
    names = split_record(_head(path).decode(encoding, errors="replace").lstrip("\ufeff"), delimiter)
    check_once(names, path)
    schema = pa.schema([(name, pa.string()) for name in names])
    yield schema.empty_table()
    end = secrets.token_hex(16)
    last_record = f"\n{end}{delimiter * (len(names) - 1)}\n".encode(encoding)
    stream = io.BufferedReader(_WithEnd(path, last_record), _BLOCK)
    read = csv.ReadOptions(block_size=_BLOCK, encoding=encoding)
    parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    convert = csv.ConvertOptions(column_types=schema, null_values=[""], strings_can_be_null=True)
    # One batch is held back, since the last row of all is not one of the text.
    held = schema.empty_table()
    try:
        for batch in csv.open_csv(stream, read, parse, convert):
            if batch.num_rows:
                yield held
                held = pa.Table.from_batches([batch]).cast(schema)
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise _unreadable(path, error) from error
    if held[0][-1].as_py() != end:
        raise ValueError(f"{path} ends inside a quoted field: close the last quotation mark.")
    yield held[:-1]


def _json_batches(path: Path) -> Iterator[pa.Table]:
    """Yield the values of JSON lines as text, with each line as it was written.

    All files have the same keys.
    """
    rows = _json_rows(path)
    while group := list(itertools.islice(rows, _GROUP_ROWS)):
        yield pa.Table.from_pylist(
            group, schema=pa.schema([(name, pa.string()) for name in group[-1]])
        )


def _json_rows(path: Path) -> Iterator[dict[str, str | None]]:
    names: list[str] = []
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        try:
            row = json_object(line, number)
        except ValueError as error:
            raise ValueError(f"{path} {error}.") from None
        names = names or list(row)
        new = [name for name in row if name not in names]
        if new:
            raise ValueError(
                f"{path} has a new key, {new[0]!r}, in line {number}: "
                "give it in the first line too."
            )
        texts = {name: _cell_text(row.get(name)) for name in names}
        yield {**texts, LINE: line.rstrip("\r\n")}


def _cell_text(value: object) -> str | None:
    """Return a value of a JSON object as text, objects and lists inside it as JSON."""
    if value is None:
        return None
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text in UTF-8, or raise a ValueError that names the file."""
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            yield from io.TextIOWrapper(stream, encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} cannot be read: it is not UTF-8.") from error
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error


class PartWriter:
    """Writes batches with their new columns, in the kind that the table came in."""

    def __init__(self, file: BinaryIO, files: PartFiles, decimal: str = "point") -> None:
        self._file = file
        self._files = files
        self._decimal = decimal
        self._writer: Any = None

    def write(self, batch: pa.Table, new: pd.DataFrame) -> None:
        """Write some rows."""
        if self._files.kind == "parquet":
            rows = with_columns(batch, new)
            if self._writer is None:
                schema = rows.schema.with_metadata(self._files.metadata)
                # Numbers of values that hardly repeat would take five times as long.
                repeated = [field.name for field in schema if not pa.types.is_floating(field.type)]
                self._writer = parquet.ParquetWriter(self._file, schema, use_dictionary=repeated)
            self._writer.write_table(rows.cast(self._writer.schema))
        else:
            if self._files.kind == "json lines":
                write = self._write_lines
            else:
                write = self._write_delimited
            write(batch, new)

    def _write_lines(self, batch: pa.Table, new: pd.DataFrame) -> None:
        additions = with_columns(batch.select(self._files.by_folder), new).to_pylist()
        for line, row in zip(batch[LINE].to_pylist(), additions, strict=True):
            endless = [
                name
                for name, cell in row.items()
                if isinstance(cell, float) and not math.isfinite(cell)
            ]
            text = extended_object(
                line, json.dumps(row | dict.fromkeys(endless), ensure_ascii=False)
            )
            self._file.write(f"{text}\n".encode())

    def _write_delimited(self, batch: pa.Table, new: pd.DataFrame) -> None:
        delimiter = self._files.delimiter
        columns = [
            *batch.columns,
            *(field_texts(new[name], self._decimal) for name in new.columns),
        ]
        if not self._file.tell():
            names = pa.array([*batch.column_names, *map(str, new.columns)], pa.string())
            self._file.write(f"{delimiter.join(_quoted(names, delimiter).to_pylist())}\n".encode())
        fields = [_quoted(column, delimiter) for column in columns]
        rows = pc.binary_join_element_wise(
            *fields, delimiter, null_handling="replace", null_replacement=""
        )
        self._file.write("\n".join([*rows.to_pylist(), ""]).encode())

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()


def _quoted(texts: Any, delimiter: str) -> Any:
    """Return texts as fields.

    They are quoted where they hold a delimiter, a quote or a line end, and nowhere else.
    """
    needed = pc.match_substring_regex(texts, f'[\\x{ord(delimiter):02x}"\r\n]')
    if not pc.any(needed).as_py():
        return texts
    doubled = pc.replace_substring(texts, '"', '""')
    return pc.if_else(needed, pc.binary_join_element_wise('"', doubled, '"', ""), texts)
