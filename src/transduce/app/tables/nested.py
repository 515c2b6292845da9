"""Fields inside the objects of a JSON table, named with dots: ``output.label``."""

from __future__ import annotations

from typing import Any

import pandas as pd

from transduce.app.tables.columns import check_columns
from transduce.core.types import ColumnName


def read_field(frame: pd.DataFrame, name: ColumnName) -> pd.Series:
    """Return a column, or a field of the objects in one, such as ``output.label``.

    A field that an object lacks is missing. A ValueError says which column there is none of.
    """
    if name in frame.columns:
        return frame[name]
    column, path = _split_path(frame, str(name))
    if column is None:
        check_columns(frame, [name])
    fields = frame[column].map(lambda cell: _dig(cell, path)).astype(object)
    if fields.isna().all():
        raise ValueError(f"No object of column {column!r} has the field {'.'.join(path)!r}.")
    return fields.rename(name).infer_objects()


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
        elif isinstance(cell, list) and key.isdigit() and int(key) < len(cell):
            cell = cell[int(key)]
        else:
            return None
    return cell
