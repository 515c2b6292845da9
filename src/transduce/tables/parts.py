"""Tables in many files, or in one that is larger than memory: found, checked, and read part by part."""

from __future__ import annotations

import glob
import hashlib
import io
import itertools
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from transduce.core.safe_files import whole_file
from transduce.tables import files as tables
from transduce.tables.columns import check_once
from transduce.tables.vectors import to_pandas

STREAMED = ("csv", "tsv", "parquet", "json lines")
_HEAD = 2**20  # bytes of a text that are looked at to find its encoding and delimiter
_BLOCK = 2**24
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # what the folder of rows without one is called
_PART_ROWS = 200_000
_GROUP_ROWS = 100_000  # of a text that is read once and kept as Parquet
LINE = "\u0000line"  # the column that keeps a line of JSON as it was written


@dataclass(frozen=True)
class Part:
    """Some rows of a table: the row groups of a Parquet file that are read together."""

    number: int  # its place among all parts
    file: Path
    groups: tuple[int, ...]
    n_rows: int
    name: str  # what the part is called where it is written, without an ending
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
    by_folder: tuple[
        str, ...
    ] = ()  # columns that the names of folders give, as in ``region=EU/0.parquet``
    metadata: dict[bytes, bytes] | None = (
        None  # what the first file says of its index, if it has one
    )

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
        except pa.ArrowException as error:
            raise ValueError(f"{part.file} cannot be read: it is damaged.") from error

    def frame_of(self, batch: pa.Table) -> pd.DataFrame:
        """Return a batch of rows as a frame of its columns."""
        return to_pandas(batch.select(self.columns))


def is_many(pattern: str) -> bool:
    """Return whether a name stands for a table in parts: a folder, or a pattern with a wildcard."""
    return Path(pattern).is_dir() or (glob.has_magic(pattern) and not Path(pattern).exists())


def find_files(pattern: str, leave_out: Path) -> tuple[str, tuple[Path, ...]]:
    """Return kind and files of a table in parts, sorted by name; a ValueError says what is wrong with them."""
    given = Path(pattern)
    if given.is_dir():
        found = [
            path
            for path in given.rglob("*")
            if path.is_file() and tables.kind_of(path)[0] in STREAMED
        ]
        words = {path: path.relative_to(given).parts for path in found}
        found = [
            path for path in found if not any(word.startswith((".", "_")) for word in words[path])
        ]
        missing = f"The folder {pattern} holds no table (CSV, TSV, Parquet or JSON lines)."
    else:
        names = [pattern] if given.exists() else glob.glob(pattern, recursive=True)
        found = [Path(name) for name in names if Path(name).is_file()]
        missing = f"There is no file {pattern}."
    found = [path for path in found if leave_out.resolve() not in path.resolve().parents]
    if not found:
        raise FileNotFoundError(missing)
    files = tuple(sorted(found))
    kind = str(tables.kind_of(files[0])[0])
    for path in files:
        own = tables.kind_of(path)[0]
        if own not in STREAMED:
            raise ValueError(
                f"{path} cannot be read in parts: only CSV, TSV, Parquet or JSON lines can."
            )
        if own != kind:
            differ = f"{files[0]} and {path} are of different kinds"
            raise ValueError(f"{differ}: a table in parts has files of one kind.")
    return kind, files


def open_parts(pattern: str, work: Path) -> PartFiles:
    """Find the files of a table, check that they fit together, and cut them into parts."""
    kind, files = find_files(pattern, work.parent)
    named = values_in_folders(pattern, files, typed=kind == "parquet")
    readable, delimiter = (files, ",") if kind == "parquet" else _kept(files, kind, work)
    footers = [_footer(path, given) for path, given in zip(readable, files, strict=True)]
    stored = [footer.schema.to_arrow_schema() for footer in footers]
    schema = _common(files, [own.remove_metadata() for own in stored])
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
            parts.append(Part(len(parts), path, groups, rows, name, values))
    index = tuple(
        name
        for name in tables.stored_index(stored[0])
        if all(name in tables.stored_index(s) for s in stored)
    )
    metadata = {b"pandas": stored[0].metadata[b"pandas"]} if index else None
    n_bytes = sum(f.row_group(j).total_byte_size for f in footers for j in range(f.num_row_groups))
    about = (delimiter, 4.0 * n_bytes / n_rows, index, by_folder, metadata)
    return PartFiles(kind, files, schema, tuple(parts), *about)


def values_in_folders(
    pattern: str, files: tuple[Path, ...], *, typed: bool
) -> dict[str, list[Any]]:
    """Return what folders such as ``region=EU`` say about each file, by column; whole numbers as such if `typed`."""
    words, given = Path(pattern).parts, Path(pattern).exists()
    n_fixed = len([*itertools.takewhile(lambda word: given or not glob.has_magic(word), words)])
    found: list[dict[str, str | None]] = []
    for path in files:
        pairs = [word.partition("=") for word in path.parts[n_fixed:-1] if "=" in word]
        texts = {unquote(key): unquote(value) for key, _, value in pairs}
        found.append({key: None if text == _NO_VALUE else text for key, text in texts.items()})
    odd = next(
        (path for path, own in zip(files, found, strict=True) if list(own) != list(found[0])), None
    )
    if odd is not None:
        said = f"The folders of {files[0]} and {odd} name different columns"
        raise ValueError(f"{said}: let all have folders such as region=EU.")
    columns: dict[str, list[Any]] = {name: [own[name] for own in found] for name in found[0]}
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
    run, total = tuple[int, ...](), 0
    for number in range(footer.num_row_groups):
        size = footer.row_group(number).num_rows
        if total and total + size > _PART_ROWS:
            yield run, total
            run, total = (), 0
        run, total = (*run, number), total + size
    if total:
        yield run, total


def _common(files: tuple[Path, ...], schemas: list[Any]) -> Any:
    """Return columns and types that hold for all files, or raise a ValueError that names two that differ."""
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
            pair = [pa.schema([fields[field.name]]), pa.schema([field])]
            try:
                fields[field.name] = pa.unify_schemas(pair, promote_options="permissive").field(0)
            except pa.ArrowException:
                here, there = f"{fields[field.name].type} in {files[0]}", f"{field.type} in {path}"
                said = f"Column {field.name!r} holds {here} and {there}: store it in one type."
                raise ValueError(said) from None
    return pa.schema([fields[name].with_nullable(True) for name in first.names])


def _kept(files: tuple[Path, ...], kind: str, work: Path) -> tuple[tuple[Path, ...], str]:
    """Return texts kept as Parquet, cell by cell as they were written, and their delimiter."""
    delimiters, kept = [], []
    work.mkdir(parents=True, exist_ok=True)
    for number, path in enumerate(files):
        delimiter, encoding = (",", "utf-8") if kind == "json lines" else _style(path, kind)
        delimiters.append(delimiter)
        if delimiter != delimiters[0]:
            first = f"{files[0]} by {delimiters[0]!r}"
            raise ValueError(f"{path} is delimited by {delimiter!r} and {first}: use one of them.")
        stat = path.stat()
        what = f"{path.resolve()}|{kind}|{delimiter}|{encoding}|{stat.st_size}|{stat.st_mtime_ns}"
        kept.append(work / f"{number:05d}-{hashlib.sha256(what.encode()).hexdigest()[:16]}.parquet")
        if not kept[-1].exists():
            texts = (
                _json_batches(path)
                if kind == "json lines"
                else _csv_batches(path, delimiter, encoding)
            )
            _keep(path, texts, kept[-1])
    return tuple(kept), delimiters[0]


def _style(path: Path, kind: str) -> tuple[str, str]:
    """Return delimiter and encoding of a text."""
    head = _head(path)
    cut = head[: head.rfind(b"\n") + 1] if len(head) == _HEAD else head
    try:
        text, encoding, _ = tables.decode(cut or head)
    except ValueError as error:
        raise ValueError(f"{path} {error}.") from None
    if not text.strip():
        raise ValueError(f"{path} is empty: there is no table in it.")
    return "\t" if kind == "tsv" else tables.sniff_delimiter(text), encoding


def _head(path: Path) -> bytes:
    with pa.input_stream(str(path), compression="detect") as stream:
        return stream.read(_HEAD)


def _keep(path: Path, batches: Iterator[pa.Table], target: Path) -> None:
    """Write the cells of a text to a Parquet file, a block at a time."""
    try:
        with whole_file(target) as file:
            writer = None
            for batch in batches:
                writer = writer or parquet.ParquetWriter(file, batch.schema, compression="zstd")
                writer.write_table(batch, row_group_size=_GROUP_ROWS)
            if writer is None:
                raise ValueError(f"{path} holds no rows.")
            writer.close()
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} cannot be read: {str(error).splitlines()[0].rstrip('.')}."
        ) from error


def _csv_batches(path: Path, delimiter: str, encoding: str) -> Iterator[pa.Table]:
    names = tables.split_record(
        _head(path).decode(encoding, errors="replace").lstrip("\ufeff"), delimiter
    )
    check_once(names, path)
    stream, texts = (
        pa.input_stream(str(path), compression="detect"),
        dict.fromkeys(names, pa.string()),
    )
    read = csv.ReadOptions(block_size=_BLOCK, encoding=encoding)
    parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    convert = csv.ConvertOptions(column_types=texts, null_values=[""], strings_can_be_null=True)
    yield from (
        pa.Table.from_batches([batch]) for batch in csv.open_csv(stream, read, parse, convert)
    )


def _json_batches(path: Path) -> Iterator[pa.Table]:
    """Yield the values of JSON lines as text, with each line as it was written; all files have the same keys."""
    rows = _json_rows(path)
    while some := list(itertools.islice(rows, _GROUP_ROWS)):
        yield pa.Table.from_pylist(
            some, schema=pa.schema([(name, pa.string()) for name in some[-1]])
        )


def _json_rows(path: Path) -> Iterator[dict[str, str | None]]:
    names: list[str] = []
    with pa.input_stream(str(path), compression="detect") as stream:
        for number, line in enumerate(io.TextIOWrapper(stream, encoding="utf-8-sig"), start=1):
            if not line.strip():
                continue
            try:
                row = tables.json_object(line, number)
            except ValueError as error:
                raise ValueError(f"{path} {error}.") from None
            names = names or list(row)
            new = [name for name in row if name not in names]
            if new:
                what = f"a new key, {new[0]!r}, in line {number}"
                raise ValueError(f"{path} has {what}: give it in the first line too.")
            texts = {name: None if row.get(name) is None else str(row[name]) for name in names}
            yield {**texts, LINE: line.rstrip("\r\n")}


class PartWriter:
    """Writes batches with their new columns, in the kind that the table came in."""

    def __init__(self, file: BinaryIO, files: PartFiles, decimal: str = "point") -> None:
        self._file, self._files, self._decimal = file, files, decimal
        self._writer: Any = None

    def write(self, batch: pa.Table, new: pd.DataFrame) -> None:
        """Write some rows."""
        if self._files.kind == "parquet":
            rows = tables.with_columns(batch, new)
            if self._writer is None:
                schema = rows.schema.with_metadata(self._files.metadata)
                # Numbers of values that hardly repeat would take five times as long.
                repeated = [one.name for one in schema if not pa.types.is_floating(one.type)]
                self._writer = parquet.ParquetWriter(self._file, schema, use_dictionary=repeated)
            self._writer.write_table(rows.cast(self._writer.schema))
        else:
            write = self._write_lines if self._files.kind == "json lines" else self._write_delimited
            write(batch, new)

    def _write_lines(self, batch: pa.Table, new: pd.DataFrame) -> None:
        additions = tables.with_columns(batch.select(self._files.by_folder), new).to_pylist()
        for line, row in zip(batch[LINE].to_pylist(), additions, strict=True):
            endless = [
                name
                for name, one in row.items()
                if isinstance(one, float) and not math.isfinite(one)
            ]
            text = tables.extended_object(
                line, json.dumps(row | dict.fromkeys(endless), ensure_ascii=False)
            )
            self._file.write(f"{text}\n".encode())

    def _write_delimited(self, batch: pa.Table, new: pd.DataFrame) -> None:
        delimiter = self._files.delimiter
        columns = [
            *batch.columns,
            *(tables.field_texts(new[name], self._decimal) for name in new.columns),
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
    """Return texts as fields: in quotes where they hold a delimiter, a quote or a line end, and nowhere else."""
    needed = pc.match_substring_regex(texts, f'[\\x{ord(delimiter):02x}"\r\n]')
    if not pc.any(needed).as_py():
        return texts
    doubled = pc.replace_substring(texts, '"', '""')
    return pc.if_else(needed, pc.binary_join_element_wise('"', doubled, '"', ""), texts)
