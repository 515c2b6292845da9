"""Writing tables: new columns beside the old ones, which stay as they are, also where the format changes."""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa

from transduce.core.safe_files import whole_file
from transduce.tables.delimited import Delimited, append_columns, fields_of, rewrite_columns, write_delimited
from transduce.tables.files import KINDS, Table, extended_object, kind_of, with_columns
from transduce.tables.workbooks import check_sheet, plain_cell, write_workbook

_WHOLE = re.compile(r"[-+]?\d+")
_LONGEST = 18  # digits that an integer of 64 bits surely holds


def write(path: str | Path, table: Table, new: pd.DataFrame, *, force: bool = False) -> None:
    """Write a table with new columns after its own, in one piece."""
    kind, packed = out_kind(path, table.kind)
    with whole_file(path, force=force) as file:
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


def check_fits(path: str | Path, table: Table, more: int = 10) -> None:
    """Raise a ValueError if a file of this kind cannot hold the table and so many more columns."""
    if out_kind(path, table.kind)[0] == "excel":
        check_sheet(table.frame, more, path)


def _write(file: Any, kind: str, table: Table, new: pd.DataFrame) -> None:
    source, same = table.source, kind == table.kind
    if kind in ("csv", "tsv"):
        # A file called .csv or .txt with tabulators between its fields keeps them.
        delimiter = "\t" if kind == "tsv" else ","
        if isinstance(source, Delimited) and (same or kind_of(table.name)[0] == kind):
            append_columns(source, new, file)
        elif isinstance(source, Delimited):
            rewrite_columns(source, new, file, delimiter)
        else:
            write_delimited(_joined(table, new), file, delimiter)
    elif kind in ("parquet", "feather"):
        _write_arrow(file, kind, table, new)
    elif kind == "excel":
        book = source if same else None
        write_workbook(file, book, new if same else _joined(table, new), table.frame.shape[1] if same else 0)
    else:
        _write_json(file, kind, table, new)


def _write_json(file: Any, kind: str, table: Table, new: pd.DataFrame) -> None:
    """Write one object a row, with the given text of its old part where there is one."""
    if table.kind in ("json", "json lines"):
        rows = list(map(extended_object, table.source, _json_rows(new)))
    else:
        rows = _json_rows(_joined(table, new))
    text = "[\n" + ",\n".join(rows) + "\n]\n" if kind == "json" else "".join(f"{row}\n" for row in rows)
    file.write(text.encode())


def _joined(table: Table, new: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([exact(table).reset_index(drop=True), new.reset_index(drop=True)], axis=1)


def exact(table: Table) -> pd.DataFrame:
    """Give a table's columns for another format: whole numbers with all their digits, as text if they are too long."""
    source = table.source
    if isinstance(source, Delimited):
        return _exact_delimited(table.frame, source)
    if table.kind in ("json", "json lines"):
        rows = [json.loads(text) for text in source]
        return pd.DataFrame({name: _objects([row.get(name) for row in rows]) for name in table.frame.columns})
    if table.kind in ("parquet", "feather"):
        return pd.DataFrame(source.to_pandas(ignore_metadata=True, integer_object_nulls=True))
    return _whole(table.frame) if source is None else table.frame


def _whole(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose whole numbers with gaps, which are floats, are whole numbers again."""
    gaps = [name for name in frame.columns if _all_whole(frame[name]) and frame[name].isna().any()]
    return frame.astype({name: "Int64" for name in gaps if frame[name].abs().max() < 2**53})


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
    texts = fields_of(source, [j for j, name in enumerate(columns) if _all_whole(columns[name])])
    for j, fields in texts.items():
        known = frame.iloc[:, j].notna()
        words = [text.strip() if good else None for text, good in zip(fields, known, strict=True)]
        present = [word for word in words if word is not None]
        if all(map(_WHOLE.fullmatch, present)):
            short = max(map(len, present)) <= _LONGEST
            values = [None if word is None else int(word) if short else word for word in words]
            columns[frame.columns[j]] = pd.Series(values, dtype="Int64" if short else object)
    return pd.DataFrame(columns)


def _all_whole(column: pd.Series) -> bool:
    """Return whether a column of floats holds whole numbers alone."""
    if column.dtype.kind != "f":
        return False
    known = column.to_numpy()[np.isfinite(column.to_numpy())]
    return bool(len(known) and np.all(known == np.round(known)))


def _write_arrow(file: BinaryIO, kind: str, table: Table, new: pd.DataFrame) -> None:
    from pyarrow import feather, parquet

    source = table.source
    if not isinstance(source, pa.Table):
        source = pa.Table.from_pandas(_one_type(exact(table)), preserve_index=False)
    if kind == "parquet":
        parquet.write_table(with_columns(source, new), file)
    else:
        feather.write_feather(with_columns(source, new), file, compression="uncompressed")


def _one_type(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which columns of several types are text."""
    columns = {name: frame[name] for name in frame.columns}
    for name, column in columns.items():
        if column.dtype != object:
            continue
        present = [value for value in column if plain_cell(value) is not None]
        types = {type(value) for value in present}
        if len(types) > 1 or (types == {int} and any(abs(value) >= 2**63 for value in present)):
            columns[name] = column.map(lambda value: None if plain_cell(value) is None else str(value))
    return pd.DataFrame(columns)


def _json_rows(frame: pd.DataFrame) -> list[str]:
    columns = [[plain_cell(value) for value in frame[name].tolist()] for name in frame.columns]
    rows = [dict(zip(map(str, frame.columns), row, strict=True)) for row in zip(*columns, strict=True)]
    return [json.dumps(row, ensure_ascii=False, default=str) for row in rows]
