"""Parquet and Feather: tables of Arrow, whose columns stay as they are beside new ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pandas as pd
import pyarrow as pa
from pyarrow import feather, parquet

from transduce.app.tables.formats import Format, Original, Table, unpacked_bytes
from transduce.app.tables.layout import AUTOMATIC, LayoutRequest
from transduce.app.tables.vectors import to_pandas

_LIST_FACTOR = 5  # lists in Parquet take so many times their size in memory


@dataclass(frozen=True, eq=False)
class ArrowTable(Original):
    """A table of Arrow as it was stored."""

    rows: pa.Table
    kind: str

    @property
    def index(self) -> tuple[str, ...]:
        """Columns that are the index of a stored pandas frame."""
        return stored_index(self.rows.schema)

    def exact_columns(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the columns for another format: whole numbers with all their digits."""
        columns = self.rows.to_pandas(ignore_metadata=True, integer_object_nulls=True)
        return pd.DataFrame(columns)


class _ArrowFormat(Format):
    """What Parquet and Feather share."""

    def read(
        self, content: bytes, sheet: str | None, layout: LayoutRequest = AUTOMATIC
    ) -> tuple[pd.DataFrame, Original]:
        """Return the rows as pandas has them, and as Arrow has them."""
        try:
            rows = self.read_rows(pa.BufferReader(content))
        except pa.ArrowException as error:
            raise ValueError(f"is not a {self.name.capitalize()} file, or is damaged") from error
        return to_pandas(rows), ArrowTable(rows, self.name)

    def write(self, file: BinaryIO, table: Table, new: pd.DataFrame) -> None:
        """Write the stored columns as they are, and new ones after them."""
        if isinstance(table.original, ArrowTable):
            rows = table.original.rows
        else:
            rows = arrow_table(table.exact_columns())
        self.write_rows(with_columns(rows, new), file)

    def read_rows(self, content: pa.BufferReader) -> pa.Table:
        """Return the rows of a file."""
        raise NotImplementedError

    def write_rows(self, rows: pa.Table, file: BinaryIO) -> None:
        """Write rows to a file."""
        raise NotImplementedError


class ParquetFormat(_ArrowFormat):
    """Parquet."""

    name = "parquet"
    endings = (".parquet", ".pq")
    memory_factor = 20
    signature = b"PAR1"

    def read_rows(self, content: pa.BufferReader) -> pa.Table:
        """Return the rows of a file."""
        return parquet.read_table(content)

    def write_rows(self, rows: pa.Table, file: BinaryIO) -> None:
        """Write rows to a file."""
        parquet.write_table(rows, file)

    def memory_needed(self, path: str | Path, *, packed: bool) -> int:
        """Return a rough estimate of the bytes; lists stay as compact as they are in the file."""
        size = unpacked_bytes(path, packed=packed)
        in_lists = _list_bytes(path)
        others = max(size - in_lists, 0)
        return others * self.memory_factor + in_lists * _LIST_FACTOR


class FeatherFormat(_ArrowFormat):
    """Feather, the file form of Arrow."""

    name = "feather"
    endings = (".feather",)
    memory_factor = 8
    signature = b"ARROW1"
    writes_in_order = False

    def read_rows(self, content: pa.BufferReader) -> pa.Table:
        """Return the rows of a file."""
        return feather.read_table(content)

    def write_rows(self, rows: pa.Table, file: BinaryIO) -> None:
        """Write rows to a file."""
        feather.write_feather(rows, file, compression="uncompressed")


PARQUET = ParquetFormat()
FEATHER = FeatherFormat()


def with_columns(rows: pa.Table, new: pd.DataFrame) -> pa.Table:
    """Return an Arrow table with the columns of a frame after its own."""
    additions = pa.Table.from_pandas(new.reset_index(drop=True), preserve_index=False)
    for name, column in zip(additions.column_names, additions.columns, strict=True):
        rows = rows.append_column(name, column)
    return rows


def stored_index(schema: pa.Schema) -> tuple[str, ...]:
    """Return the columns that are the index of a pandas frame: names of rows, not features."""
    metadata = schema.pandas_metadata or {}
    names = metadata.get("index_columns", ())
    return tuple(name for name in names if isinstance(name, str) and name in schema.names)


def arrow_table(frame: pd.DataFrame) -> pa.Table:
    """Return a frame as an Arrow table; columns of several types, except numbers, become text."""
    columns = dict(frame.reset_index(drop=True).items())
    for name, column in columns.items():
        if not _is_arrow_column(column):
            columns[name] = column.astype(object).map(str, "ignore")
    return pa.Table.from_pandas(pd.DataFrame(columns), preserve_index=False)


def _is_arrow_column(column: pd.Series) -> bool:
    """Return whether Arrow holds a column without loss."""
    if column.dtype == object:
        types = {type(cell) for cell in column.dropna()}
        if len(types) > 1 and not types <= {int, float}:
            return False  # of dates and times Arrow would take the time of day from some
    try:
        pa.array(column, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True


def _list_bytes(path: str | Path) -> int:
    """Return how many bytes the lists in a Parquet file are."""
    try:
        footer = parquet.read_metadata(path)
    except (pa.ArrowException, OSError):
        return 0
    schema = footer.schema
    lists = [j for j in range(footer.num_columns) if schema.column(j).max_repetition_level > 0]
    total = 0
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        total += sum(group.column(j).total_uncompressed_size for j in lists)
    return total
