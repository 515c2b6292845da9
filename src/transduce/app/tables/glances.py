"""The first rows of a file, at once; and a sample of one that is too large for memory."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from transduce.app.tables.arrow_tables import PARQUET
from transduce.app.tables.delimited import CSV, TSV, DelimitedText
from transduce.app.tables.files import format_named_by, memory_free, memory_needed
from transduce.app.tables.formats import Format, Table, split_ending
from transduce.app.tables.json_tables import JSON_LINES
from transduce.app.tables.layout import AUTOMATIC, LayoutRequest
from transduce.app.tables.nested import divide_objects
from transduce.app.tables.parts import LINE, STREAMED, text_batches
from transduce.core.types import AnyArray

HEAD = 2**18  # bytes of a text, in which its first rows are looked for
BATCH = 100_000  # rows of Parquet that are looked at together
RARE = 0.05  # a column with a value in fewer rows has rare ones
MOST_RARE = 2000  # rows with a rare value that are kept, for each column


def first_rows(path: Path, n_rows: int, layout: LayoutRequest = AUTOMATIC) -> pd.DataFrame | None:
    """Return the first rows of a large file without reading all of it; None if that is not easy."""
    table_format = format_named_by(path)
    if split_ending(path)[1]:
        return None
    if table_format is PARQUET:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(n_rows):
                return divide_objects(pa.Table.from_batches([batch]).to_pandas())[0]
        return None
    if table_format not in (CSV, TSV):
        return None
    with path.open("rb") as file:
        content = file.read(HEAD)
    if len(content) == HEAD:
        content = content[: content.rfind(b"\n") + 1]
    if not content.strip():
        return None
    frame, _ = table_format.read(content, None, replace(layout, last=None))
    return divide_objects(frame.head(n_rows))[0]


def is_too_large(path: Path) -> bool:
    """Return whether a file needs more memory than there is, and can be filled part by part."""
    table_format = format_named_by(path)
    free = memory_free()
    if table_format is None or table_format.name not in STREAMED or free is None:
        return False
    return path.is_file() and memory_needed(path) > free


@dataclass(frozen=True, eq=False)
class Glance:
    """Some rows of a table that is too large for memory, and counts of all of them.

    Attributes
    ----------
    table : Table
        A sample of the rows, as if they were the file; values of columns that are rarely filled
        are more frequent in it.
    n_rows : int
        Rows of the file.
    n_known : dict of int
        How many rows have a value, of each column.
    """

    table: Table
    n_rows: int
    n_known: dict[str, int]


@dataclass(eq=False)
class _Kept:
    """The rows that are kept of those that were looked at."""

    n_wanted: int
    random: np.random.Generator
    rows: pa.Table | None = None
    keys: AnyArray = field(default_factory=lambda: np.zeros(0))  # the smallest are kept
    rare: dict[str, int] = field(default_factory=dict)  # rows kept for each column with rare values

    def look_at(self, batch: pa.Table) -> None:
        """Keep a row if its random key is among the smallest, or if it has a rare value."""
        keys = self.random.uniform(size=batch.num_rows)
        for name in batch.column_names:
            places = np.flatnonzero(pc.is_valid(batch[name]).to_numpy(zero_copy_only=False))
            room = MOST_RARE - self.rare.get(name, 0)
            if 0 < len(places) < RARE * batch.num_rows and room > 0:
                keys[places[:room]] = -1.0
                self.rare[name] = self.rare.get(name, 0) + min(len(places), room)
        all_keys = np.concatenate([self.keys, keys])
        is_kept = all_keys < 0.0
        n_more = max(self.n_wanted - int(is_kept.sum()), 0)
        order = np.argsort(all_keys, kind="stable")
        is_kept[order[: int(is_kept.sum()) + n_more]] = True
        if self.rows is None:
            rows = batch
        else:
            rows = pa.concat_tables([self.rows, batch])
        self.rows = rows.filter(pa.array(is_kept))
        self.keys = all_keys[is_kept]


def glance(path: Path, n_rows: int, seed: int = 0) -> Glance:
    """Return a sample of a large file, in the order of its rows; all of it is looked at once."""
    kept = _Kept(n_rows, np.random.default_rng(seed))
    total = 0
    n_known: dict[str, int] = {}
    table_format = format_named_by(path)
    delimiter = ""
    if table_format is PARQUET:
        batches = _parquet_batches(path)
    else:
        delimiter, batches = text_batches(path, str(table_format and table_format.name))
    for batch in batches:
        total += batch.num_rows
        for name in batch.column_names:
            n_known[name] = n_known.get(name, 0) + batch.num_rows - batch[name].null_count
        if batch.num_rows:
            kept.look_at(batch)
    if kept.rows is None:
        raise ValueError(f"{path} holds no rows.")
    n_known.pop(LINE, None)
    return Glance(_as_read(path, kept.rows, delimiter), total, n_known)


def _parquet_batches(path: Path) -> Iterator[pa.Table]:
    """Yield all rows of a file, some at a time."""
    with parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(BATCH):
            yield pa.Table.from_batches([batch])


def _as_read(path: Path, rows: pa.Table, delimiter: str) -> Table:
    """Return some rows as their file is read."""
    buffer = io.BytesIO()
    table_format: Format = CSV
    if delimiter:
        csv.write_csv(rows, buffer, csv.WriteOptions(delimiter=delimiter))
    elif LINE in rows.column_names:
        table_format = JSON_LINES
        buffer.write("\n".join(rows[LINE].to_pylist()).encode())
    else:
        table_format = PARQUET
        parquet.write_table(rows, buffer)
    frame, original = table_format.read(buffer.getvalue(), None)
    if isinstance(original, DelimitedText):  # its lines are those of the sample
        original = replace(original, lines=None)
    return Table(frame, original, str(path)).divided()
