"""Tables in many files, or in one that is larger than memory: found, checked, and read part by part."""

from __future__ import annotations

import glob
import hashlib
import itertools
import json
import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import unquote

import pandas as pd

from transduce.core.safe_files import whole_file
from transduce.tables.delimited import decode, field_text, sniff_delimiter
from transduce.tables.files import kind_of, stored_index

if TYPE_CHECKING:
    import pyarrow as pa

STREAMED = ("csv", "tsv", "parquet", "json lines")
_HEAD = 2**20  # bytes of a text that are looked at to find its encoding and delimiter
_BLOCK = 2**24
_GROUP_ROWS = 100_000  # of a text that is read once and kept as Parquet
LINE = "\u0000line"  # the column that keeps a line of JSON as it was written


@dataclass(frozen=True)
class TextStyle:
    """How a delimited text is written."""

    delimiter: str = ","
    encoding: str = "utf-8"


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
    style: TextStyle  # of delimited texts
    row_bytes: float  # about how many bytes a row takes in memory
    index: tuple[str, ...] = ()  # columns that are the index of stored pandas frames
    by_folder: tuple[str, ...] = ()  # columns that the names of folders give, as in ``region=EU/0.parquet``
    metadata: dict[bytes, bytes] | None = None  # what the first file says of its index, if it has one

    @property
    def n_rows(self) -> int:
        """Rows of all parts."""
        return sum(part.n_rows for part in self.parts)

    @property
    def prefer(self) -> str:
        """The decimal sign of numbers in text, in case of doubt."""
        return "comma" if self.kind == "csv" and self.style.delimiter == ";" else "point"

    @property
    def has_words(self) -> bool:
        """Whether words such as NA stand for empty cells, as in delimited text."""
        return self.kind in ("csv", "tsv")

    @property
    def columns(self) -> list[str]:
        """Names of the columns, without an index and what only serves to write a line back."""
        return [name for name in self.schema.names if name != LINE and name not in self.index]

    def naming(self, columns: Collection[Any]) -> PartFiles:
        """Return the same table for a user who names some columns: a column of the index is one like others then."""
        return replace(self, index=tuple(name for name in self.index if name not in columns))

    def batches(self, part: Part, n_rows: int) -> Iterator[pa.Table]:
        """Yield the rows of a part, at most so many at a time, in the types of the whole table."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(part.file) as file:
                for batch in file.iter_batches(n_rows, row_groups=list(part.groups)):
                    rows = pa.Table.from_batches([batch])
                    for name, value in zip(self.by_folder, part.folder_values, strict=True):
                        kind = self.schema.field(name).type
                        rows = rows.append_column(name, pa.repeat(pa.scalar(value, kind), len(rows)))
                    yield rows.select(self.schema.names).cast(self.schema)
        except pa.ArrowException as error:
            raise ValueError(f"{part.file} cannot be read: it is damaged.") from error

    def frames(self, part: Part, n_rows: int) -> Iterator[pd.DataFrame]:
        """Yield the same rows as frames of their columns."""
        for batch in self.batches(part, n_rows):
            yield self.frame_of(batch)

    def frame_of(self, batch: pa.Table) -> pd.DataFrame:
        """Return a batch of rows as a frame of its columns."""
        return batch.select(self.columns).to_pandas(ignore_metadata=True)


def is_many(pattern: str) -> bool:
    """Return whether a name stands for a table in parts: a folder, or a pattern with a wildcard."""
    return Path(pattern).is_dir() or (glob.has_magic(pattern) and not Path(pattern).exists())


def find_files(pattern: str, leave_out: Path | None = None) -> tuple[str, tuple[Path, ...]]:
    """Return kind and files of a table in parts, sorted by name; a ValueError says what is wrong with them."""
    given = Path(pattern)
    if given.is_dir():
        found = [path for path in given.rglob("*") if path.is_file() and not _is_hidden(path, given)]
        found = [path for path in found if kind_of(path)[0] in STREAMED]
        missing = f"The folder {pattern} holds no table (CSV, TSV, Parquet or JSON lines)."
    else:
        names = [pattern] if given.exists() else glob.glob(pattern, recursive=True)
        found = [Path(name) for name in names if Path(name).is_file()]
        missing = f"There is no file {pattern}."
    if leave_out is not None:
        found = [path for path in found if leave_out.resolve() not in path.resolve().parents]
    if not found:
        raise FileNotFoundError(missing)
    kinds: dict[str, Path] = {}
    for path in sorted(found):
        kind = kind_of(path)[0]
        if kind not in STREAMED:
            raise ValueError(
                f"{path} is not a table that can be read in parts: CSV, TSV, Parquet or JSON lines."
            )
        kinds.setdefault(str(kind), path)
    if len(kinds) > 1:
        one, other = list(kinds.values())[:2]
        raise ValueError(f"{one} and {other} are of different kinds: a table in parts has files of one kind.")
    return next(iter(kinds)), tuple(sorted(found))


def _is_hidden(path: Path, below: Path) -> bool:
    return any(word.startswith((".", "_")) for word in path.relative_to(below).parts)


def open_parts(pattern: str, work: Path, *, batch_rows: int = 200_000) -> PartFiles:
    """Find the files of a table, check that they fit together, and cut them into parts."""
    kind, files = find_files(pattern, work.parent)
    named = values_in_folders(pattern, files, typed=kind == "parquet")
    style = TextStyle()
    if kind == "parquet":
        readable = files
    else:
        readable, style = _kept(files, kind, work)
    found = _cut(kind, files, readable, style, batch_rows)
    return _with_folders(found, files, readable, named)


def values_in_folders(pattern: str, files: tuple[Path, ...], *, typed: bool) -> dict[str, list[Any]]:
    """Return what folders such as ``region=EU`` say about each file, by column; whole numbers as such if `typed`."""
    words, given = Path(pattern).parts, Path(pattern).exists()
    n_fixed = len([*itertools.takewhile(lambda word: given or not glob.has_magic(word), words)])
    found: list[dict[str, str | None]] = []
    for path in files:
        pairs = [word.partition("=") for word in path.parts[n_fixed:-1] if "=" in word]
        found.append({unquote(key): _folder_value(value) for key, _, value in pairs})
    odd = next((path for path, own in zip(files, found, strict=True) if list(own) != list(found[0])), None)
    if odd is not None:
        raise ValueError(
            f"The folders of {files[0]} and {odd} name different columns: let all have folders such as region=EU."
        )
    columns: dict[str, list[Any]] = {name: [own[name] for own in found] for name in found[0]}
    for name, values in columns.items():
        if typed and all(value is None or re.fullmatch(r"-?(0|[1-9]\d{0,17})", value) for value in values):
            columns[name] = [None if value is None else int(value) for value in values]
    return columns


def _folder_value(text: str) -> str | None:
    return None if text == "__HIVE_DEFAULT_PARTITION__" else unquote(text)


def _with_folders(
    found: PartFiles, files: tuple[Path, ...], readable: tuple[Path, ...], named: dict[str, list[Any]]
) -> PartFiles:
    """Return a table with the columns that folders name, except those that are in the files as well."""
    import pyarrow as pa

    names = tuple(name for name in named if name not in found.schema.names)
    place = {path: number for number, path in enumerate(readable)}
    schema = found.schema
    for name in names:
        whole = any(isinstance(value, int) for value in named[name])
        schema = schema.append(pa.field(name, pa.int64() if whole else pa.string()))
    parts = tuple(
        replace(part, folder_values=tuple(named[name][place[part.file]] for name in names))
        for part in found.parts
    )
    return replace(found, schema=schema, parts=parts, by_folder=names)


def _cut(
    kind: str, files: tuple[Path, ...], readable: tuple[Path, ...], style: TextStyle, batch_rows: int
) -> PartFiles:
    """Return files cut into parts of whole row groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schemas: list[Any] = []
    parts: list[Part] = []
    n_bytes = n_rows = 0
    for given, path in zip(files, readable, strict=True):
        try:
            with pq.ParquetFile(path) as file:
                schemas.append(file.schema_arrow)
                sizes = [file.metadata.row_group(j) for j in range(file.num_row_groups)]
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{given} cannot be read: it is damaged, or not a Parquet file.") from error
        n_bytes += sum(group.total_byte_size for group in sizes)
        n_rows += sum(group.num_rows for group in sizes)
        for groups in _runs([group.num_rows for group in sizes], batch_rows):
            rows = sum(sizes[j].num_rows for j in groups)
            if not rows:
                continue
            stem = given.name.split(".")[0]
            parts.append(Part(len(parts), path, tuple(groups), rows, f"part-{len(parts):05d}-{stem}"))
    schema = _common(files, [own.remove_metadata() for own in schemas])
    if n_rows == 0:
        raise ValueError(f"{files[0]} holds no rows." if len(files) == 1 else "The files hold no rows.")
    index = tuple(name for name in stored_index(schemas[0]) if all(name in stored_index(s) for s in schemas))
    metadata = {b"pandas": schemas[0].metadata[b"pandas"]} if index else None
    row_bytes = 4.0 * n_bytes / n_rows
    return PartFiles(kind, files, schema, tuple(parts), style, row_bytes, index=index, metadata=metadata)


def _runs(sizes: list[int], most: int) -> Iterator[list[int]]:
    """Yield runs of row groups that have about so many rows together."""
    run: list[int] = []
    total = 0
    for number, size in enumerate(sizes):
        if run and total + size > most:
            yield run
            run, total = [], 0
        run.append(number)
        total += size
    if run:
        yield run


def _common(files: tuple[Path, ...], schemas: list[Any]) -> Any:
    """Return columns and types that hold for all files, or raise a ValueError that names two that differ."""
    import pyarrow as pa

    first = schemas[0]
    twice = [name for name in first.names if first.names.count(name) > 1]
    if twice:
        raise ValueError(f"{files[0]} has two columns called {twice[0]!r}: give each a name of its own.")
    fields = {field.name: field for field in first}
    for path, schema in zip(files[1:], schemas[1:], strict=True):
        extra = [name for name in schema.names if name not in fields]
        lacking = [name for name in fields if name not in schema.names]
        if lacking or extra:
            name, verb = (lacking[0], "lacks") if lacking else (extra[0], "has")
            other = "has" if lacking else "lacks"
            raise ValueError(f"{path} {verb} the column {name!r}, which {files[0]} {other}.")
        for field in schema:
            try:
                both = pa.unify_schemas(
                    [pa.schema([fields[field.name]]), pa.schema([field])], promote_options="permissive"
                )
            except pa.ArrowException:
                raise ValueError(
                    f"Column {field.name!r} holds {fields[field.name].type} in {files[0]} and {field.type} in {path}: "
                    "store it in one type."
                ) from None
            fields[field.name] = both.field(0)
    return pa.schema([fields[name].with_nullable(True) for name in first.names])


# ------------------------------------------------------------------------------------------------------- texts


def _kept(files: tuple[Path, ...], kind: str, work: Path) -> tuple[tuple[Path, ...], TextStyle]:
    """Return texts kept as Parquet, cell by cell as they were written, and their style."""
    style, kept = None, []
    work.mkdir(parents=True, exist_ok=True)
    for number, path in enumerate(files):
        own = TextStyle() if kind == "json lines" else _style(path, "\t" if kind == "tsv" else None)
        style = style or own
        if own.delimiter != style.delimiter:
            raise ValueError(
                f"{path} is delimited by {own.delimiter!r} and {files[0]} by {style.delimiter!r}: use one delimiter."
            )
        stat = path.stat()
        what = f"{path.resolve()}|{kind}|{own}|{stat.st_size}|{stat.st_mtime_ns}"
        target = work / f"{number:05d}-{hashlib.sha256(what.encode()).hexdigest()[:16]}.parquet"
        if not target.exists():
            _keep(path, kind, own, target)
        kept.append(target)
    assert style is not None
    return tuple(kept), style


def _style(path: Path, delimiter: str | None) -> TextStyle:
    import pyarrow as pa

    with pa.input_stream(str(path), compression="detect") as stream:
        head = stream.read(_HEAD)
    cut = head[: head.rfind(b"\n") + 1] if len(head) == _HEAD else head
    try:
        text, encoding, _ = decode(cut or head)
    except ValueError as error:
        raise ValueError(f"{path} {error}.") from None
    if not text.strip():
        raise ValueError(f"{path} is empty: there is no table in it.")
    return TextStyle(delimiter or sniff_delimiter(text), encoding)


def _keep(path: Path, kind: str, style: TextStyle, target: Path) -> None:
    """Write the cells of a text to a Parquet file, a block at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    batches = _json_batches(path) if kind == "json lines" else _csv_batches(path, style)
    try:
        with whole_file(target) as file:
            writer = None
            for batch in batches:
                writer = writer or pq.ParquetWriter(file, batch.schema, compression="zstd")
                writer.write_table(batch, row_group_size=_GROUP_ROWS)
            if writer is None:
                raise ValueError(f"{path} holds no rows.")
            writer.close()
    except (pa.ArrowException, UnicodeDecodeError) as error:
        line = str(error).splitlines()[0].rstrip(".")
        raise ValueError(f"{path} cannot be read: {line}.") from error


def _csv_batches(path: Path, style: TextStyle) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import csv

    encoding = style.encoding
    with pa.input_stream(str(path), compression="detect") as stream:
        head = stream.read(_HEAD)
    names = _header(head.decode(encoding, errors="replace").lstrip("\ufeff"), style.delimiter)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"{path} has two columns called {twice[0]!r}: give each a name of its own.")
    reader = csv.open_csv(
        pa.input_stream(str(path), compression="detect"),
        read_options=csv.ReadOptions(block_size=_BLOCK, encoding=encoding),
        parse_options=csv.ParseOptions(delimiter=style.delimiter, newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types={name: pa.string() for name in names},
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
    for batch in reader:
        yield pa.Table.from_batches([batch])


def _header(text: str, delimiter: str) -> list[str]:
    import csv
    import io

    return next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))


def _json_batches(path: Path) -> Iterator[Any]:
    """Yield the values of JSON lines as text, with each line as it was written; all files have the same keys."""
    import io
    import json

    import pyarrow as pa

    names: list[str] = []
    with pa.input_stream(str(path), compression="detect") as stream:
        lines, texts = [], io.TextIOWrapper(stream, encoding="utf-8-sig")
        for number, line in enumerate(texts, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{path} is not JSON in line {number}: {error.msg}.") from None
            if not isinstance(row, dict):
                raise ValueError(f"{path} has no object {{...}} in line {number}, as JSON lines must have.")
            if not names:
                names = list(row)
            new = [name for name in row if name not in names]
            if new:
                raise ValueError(
                    f"{path} has a new key, {new[0]!r}, in line {number}: give it in the first line too."
                )
            lines.append({**{name: _json_text(row.get(name)) for name in names}, LINE: line.rstrip("\r\n")})
            if len(lines) == _GROUP_ROWS:
                yield _texts(lines, names)
                lines = []
        if lines:
            yield _texts(lines, names)


def _json_text(value: Any) -> str | None:
    return None if value is None else value if isinstance(value, str) else str(value)


def _texts(lines: list[dict[str, str | None]], names: list[str]) -> Any:
    import pyarrow as pa

    schema = pa.schema([(name, pa.string()) for name in [*names, LINE]])
    return pa.Table.from_pylist(lines, schema=schema)


class PartWriter:
    """Writes batches with their new columns, in the kind that the table came in."""

    def __init__(self, file: BinaryIO, files: PartFiles, decimal: str = "point") -> None:
        self._file, self._files, self._decimal = file, files, decimal
        self._writer: Any = None
        self._begun = False

    def write(self, batch: pa.Table, new: pd.DataFrame) -> None:
        """Write some rows."""
        import pyarrow as pa

        if self._files.kind in ("csv", "tsv"):
            self._write_delimited(batch, new)
            return
        additions = pa.Table.from_pandas(new.reset_index(drop=True), preserve_index=False)
        if self._files.kind == "json lines":
            for place, name in enumerate(self._files.by_folder):
                additions = additions.add_column(place, name, batch[name])
            self._write_lines(batch[LINE].to_pylist(), additions)
            return
        for name, column in zip(additions.column_names, additions.columns, strict=True):
            batch = batch.append_column(name, column)
        self._write_parquet(batch)

    def _write_parquet(self, rows: pa.Table) -> None:
        from pyarrow import parquet as pq

        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file, rows.schema.with_metadata(self._files.metadata))
        self._writer.write_table(rows.cast(self._writer.schema))

    def _write_delimited(self, batch: pa.Table, new: pd.DataFrame) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        delimiter = self._files.style.delimiter
        texts = [[field_text(value, self._decimal) for value in new[name].tolist()] for name in new.columns]
        columns = [*batch.columns, *(pa.array(column, pa.string()) for column in texts)]
        if not self._begun:
            names = pa.array([*batch.column_names, *map(str, new.columns)], pa.string())
            header = delimiter.join(_quoted(names, delimiter).to_pylist())
            self._file.write(f"{header}\n".encode())
            self._begun = True
        fields = [_quoted(column, delimiter) for column in columns]
        lines = pc.binary_join_element_wise(
            *fields, delimiter, null_handling="replace", null_replacement=""
        ).to_pylist()
        self._file.write("".join(f"{line}\n" for line in lines).encode())

    def _write_lines(self, lines: list[str], additions: pa.Table) -> None:
        for line, row in zip(lines, additions.to_pylist(), strict=True):
            start = line.rstrip()[:-1].rstrip()
            values = {name: None if _is_nan(value) else value for name, value in row.items()}
            text = json.dumps(values, ensure_ascii=False)
            self._file.write(f"{start}{'' if start.endswith('{') else ', '}{text[1:]}\n".encode())

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()


def _quoted(texts: Any, delimiter: str) -> Any:
    """Return texts as fields: in quotes where they hold a delimiter, a quote or a line end, and nowhere else."""
    import pyarrow.compute as pc

    needed = pc.match_substring_regex(texts, f'[\\x{ord(delimiter):02x}"\r\n]')
    if not pc.any(needed).as_py():
        return texts
    doubled = pc.replace_substring(texts, '"', '""')
    return pc.if_else(needed, pc.binary_join_element_wise('"', doubled, '"', ""), texts)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
