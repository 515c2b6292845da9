"""Fields inside the objects of a JSON table, named with dots: ``output.label``."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from transduce.app.tables.columns import check_columns
from transduce.core.types import ColumnName
from transduce.core.words import quoted

MOST_LOOKED_AT = 100  # objects whose fields are named in a message
MOST_FIELDS = 8


def read_field(frame: pd.DataFrame, name: ColumnName) -> pd.Series:
    """Return a column, or a field of the objects in one, such as ``output.label``.

    A field that an object lacks is missing. A ValueError says which column or field there is none
    of, and which fields there are.
    """
    if name in frame.columns:
        return _plain_cells(frame[name])
    column, path = _split_path(frame, str(name))
    if column is None:
        check_columns(frame, [name])
    fields = _read_path(frame[column], path)
    if fields.isna().all():
        message = f"No object of column {column!r} has the field {'.'.join(path)!r}."
        names = _field_names(frame[column])
        if names:
            message += f" Fields are {', '.join(map(quoted, names))}."
        raise ValueError(message)
    return _plain_cells(fields.rename(name).infer_objects())


def field_or_none(frame: pd.DataFrame, name: ColumnName) -> pd.Series:
    """Return a column or field that may be missing at every row."""
    if name in frame.columns:
        return frame[name]
    column, path = _split_path(frame, str(name))
    assert column is not None
    return _read_path(frame[column], path)


def _read_path(column: pd.Series, path: list[str]) -> pd.Series:
    """Return the fields at a path of objects, None where there is none."""
    return column.map(lambda cell: _dig(cell, path)).astype(object)


def has_field(frame: pd.DataFrame, name: ColumnName) -> bool:
    """Return whether a table has a column, or one whose objects may have a field, of this name."""
    return name in frame.columns or _split_path(frame, str(name))[0] is not None


def _plain_cells(column: pd.Series) -> pd.Series:
    """Return a column; raise a ValueError that names their fields if its cells are objects."""
    if column.dtype != object:
        return column
    nested = next((cell for cell in column if isinstance(cell, dict | list | np.ndarray)), None)
    if nested is None:
        return column
    names = _field_names(column)
    way_out = f"such as {column.name}.{names[0]}" if names else f"such as {column.name}.0"
    raise ValueError(
        f"Column {column.name!r} holds objects or lists: name one of their fields, {way_out}."
    )


def spread_fields(frame: pd.DataFrame, hidden: Collection[ColumnName] = ()) -> pd.DataFrame:
    """Return the columns of a few rows, objects as a column for each field, but hidden ones."""
    columns: dict[ColumnName, pd.Series] = {}
    for name in frame.columns:
        paths: dict[str, None] = {}
        for cell in frame[name] if frame[name].dtype == object else []:
            paths |= dict.fromkeys(_paths(cell))
        for path in paths:
            columns[f"{name}.{path}"] = frame[name].map(partial(_dig, path=path.split(".")))
        if not paths:
            columns[name] = frame[name]
    shown = [name for name in columns if not _is_hidden(name, hidden)]
    return pd.DataFrame({name: columns[name] for name in shown}, index=frame.index)


def _is_hidden(name: ColumnName, hidden: Collection[ColumnName]) -> bool:
    """Return whether a column, or the object that a field is in, is hidden."""
    return any(name == other or str(name).startswith(f"{other}.") for other in hidden)


def _field_names(column: pd.Series) -> list[str]:
    """Return the fields of the objects in a column, those inside fields with dots."""
    names: dict[str, None] = {}
    for cell in column.dropna().iloc[:MOST_LOOKED_AT]:
        for name in _paths(cell):
            names[name] = None
    return list(names)[:MOST_FIELDS]


def _paths(cell: object) -> list[str]:
    """Return the paths of all plain values inside an object."""
    if not isinstance(cell, dict):
        return []
    paths = []
    for key, value in cell.items():
        inside = _paths(value)
        paths += [f"{key}.{path}" for path in inside] or [str(key)]
    return paths


def _split_path(frame: pd.DataFrame, name: str) -> tuple[ColumnName | None, list[str]]:
    """Return the column in which a dotted name begins, None if there is none, and the rest."""
    parts = name.split(".")
    for n_parts in range(len(parts) - 1, 0, -1):
        column = ".".join(parts[:n_parts])
        if column in frame.columns:
            return column, parts[n_parts:]
    return None, []


def _dig(cell: Any, path: list[str]) -> Any:
    """Return the field at a path of an object; None if there is none."""
    for key in path:
        if isinstance(cell, dict):
            cell = cell.get(key)
        elif isinstance(cell, list | np.ndarray) and key.isdigit() and int(key) < len(cell):
            cell = cell[int(key)]
        else:
            return None
    return cell
