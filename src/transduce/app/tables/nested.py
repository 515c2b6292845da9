"""Objects in the cells of a table: their fields become columns, such as ``output.label``.

JSON, Parquet and databases hold objects, and CSV may hold them as text. Wherever a table comes in,
they are divided into their fields here, once, so that commands, pages and functions take these like
any other column. What is written back has the objects as they were.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from transduce.app.tables.pictures import holds_pictures
from transduce.app.tables.whole_numbers import with_all_digits
from transduce.core.types import ColumnName

LOOKED_AT = 100  # cells by which a column is taken to hold objects
OBJECTS_IN_TEXT = 0.5  # of these cells are objects, if they are written as text
MOST_FIELDS = 200  # objects with more of them have keys that are values, and stay as they are

PLAIN = (str, int, bool)

FieldPath = tuple[str, ...]  # of keys, from the outermost object on
FlatCell = dict[FieldPath, Any]  # the values of an object, by their paths


@dataclass(frozen=True)
class ObjectFields:
    """Columns of a table that hold objects, and the fields that become columns in their place.

    Attributes
    ----------
    paths : dict
        The paths of the fields of each such column. The empty path is of cells that hold something
        else than an object.
    """

    paths: Mapping[ColumnName, tuple[FieldPath, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, frame: pd.DataFrame) -> ObjectFields:
        """Return the fields of the objects in a table."""
        return divide_objects(frame)[1]

    @classmethod
    def of_parts(cls, parts: Iterable[ObjectFields], columns: Sequence[ColumnName]) -> ObjectFields:
        """Return the fields in a table with these columns, from those in its parts."""
        joined: dict[ColumnName, dict[FieldPath, None]] = {}
        for part in parts:
            for name, paths in part.paths.items():
                joined.setdefault(name, {}).update(dict.fromkeys(paths))
        return cls({name: tuple(paths) for name, paths in joined.items()})._without_clashes(columns)

    def _without_clashes(self, columns: Sequence[ColumnName]) -> ObjectFields:
        """Return those of objects with few fields, none of them called as another column is."""
        taken = set(columns)
        kept = {}
        for name, paths in self.paths.items():
            new_names = {_dotted(name, path) for path in paths}
            others = taken - {name}
            is_clear = len(new_names) == len(paths) and others.isdisjoint(new_names)
            if is_clear and 0 < len(paths) <= MOST_FIELDS:
                kept[name] = paths
                taken |= new_names
        return ObjectFields(kept)

    def as_json(self) -> dict[str, list[list[str]]]:
        """Return the paths as JSON can hold them."""
        return {str(name): [list(path) for path in paths] for name, paths in self.paths.items()}

    @classmethod
    def of_json(cls, paths: Mapping[str, list[list[str]]]) -> ObjectFields:
        """Return the fields that `as_json` wrote."""
        return cls({name: tuple(map(tuple, paths[name])) for name in paths})

    def all_names(self, columns: Iterable[ColumnName]) -> list[ColumnName]:
        """Return the columns of a table, fields in the place of objects."""
        listed: list[ColumnName] = []
        for column in columns:
            listed += self.names(column) if column in self.paths else [column]
        return listed

    def names(self, column: ColumnName) -> list[ColumnName]:
        """Return what the columns in the place of a column are called."""
        return [_dotted(column, path) for path in self.paths[column]]

    def divide(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a table with these fields in place of objects; one that has them stays as it is.

        A field that no object of this table has is missing everywhere.
        """
        lacking: list[ColumnName] = []
        flat = {}
        for column in self.paths:
            names = self.names(column)
            absent = [name for name in names if name not in frame.columns]
            is_divided = any(name != column and name not in absent for name in names)
            if is_divided:
                lacking += absent
            elif column in frame.columns:
                flat[column] = _flat_cells(frame[column])
        divided = self._divide(frame, flat)
        if not lacking:
            return divided
        return divided.assign(**dict.fromkeys(map(str, lacking)))

    def _divide(
        self, frame: pd.DataFrame, flat: Mapping[ColumnName, list[FlatCell]]
    ) -> pd.DataFrame:
        """Return a table with fields in place of objects, whose flat cells are known."""
        if not flat:
            return frame
        columns: dict[ColumnName, pd.Series] = {}
        for name in frame.columns:
            if name not in flat:
                columns[name] = frame[name]
                continue
            for path in self.paths[name]:
                cells = [cell.get(path) for cell in flat[name]]
                columns[_dotted(name, path)] = _as_column(cells, frame.index)
        return pd.DataFrame(columns, index=frame.index)

    def rejoin(self, frame: pd.DataFrame, given: pd.DataFrame) -> pd.DataFrame:
        """Return a divided table with its objects as they were given, where their fields are."""
        column_of = {field_name: name for name in self.paths for field_name in self.names(name)}
        columns = {}
        for name in frame.columns:
            source = column_of.get(name)
            if source is None:
                columns[name] = frame[name]
            else:
                columns[source] = given[source]
        return pd.DataFrame(columns, index=frame.index)


def divide_objects(frame: pd.DataFrame) -> tuple[pd.DataFrame, ObjectFields]:
    """Return a table with the fields of its objects as columns, and which fields these are."""
    if isinstance(frame.columns, pd.MultiIndex) or not frame.columns.is_unique:
        return frame, ObjectFields()
    flat = {name: _flat_cells(frame[name]) for name in frame.columns if _holds_objects(frame[name])}
    paths = {name: _paths_of(cells) for name, cells in flat.items()}
    fields = ObjectFields(paths)._without_clashes(list(frame.columns))
    return fields._divide(frame, {name: flat[name] for name in fields.paths}), fields


def fields_below(columns: Iterable[ColumnName], names: Iterable[ColumnName]) -> list[ColumnName]:
    """Return names of columns; that of an object stands for all of its fields."""
    columns = list(columns)
    listed: list[ColumnName] = []
    for name in names:
        inside = [column for column in columns if str(column).startswith(f"{name}.")]
        if name in columns or not inside:
            listed.append(name)
        if isinstance(name, str):
            listed += inside
    return list(dict.fromkeys(listed))


def refuse_objects(columns: Iterable[ColumnName], names: Iterable[ColumnName]) -> None:
    """Raise a ValueError if a column that is to hold values holds objects."""
    columns = list(columns)
    for name in names:
        inside = [column for column in columns if str(column).startswith(f"{name}.")]
        if inside:
            raise ValueError(
                f"Column {name!r} holds objects: name one of their fields, such as {inside[0]!r}."
            )


def _dotted(column: ColumnName, path: FieldPath) -> ColumnName:
    """Return what the column of a field is called."""
    if not path:
        return column
    return ".".join([str(column), *path])


def _holds_objects(column: pd.Series) -> bool:
    """Return whether a column holds objects, or lists of them, and no pictures."""
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column):
        return False
    first = [column.iat[row] for row in np.flatnonzero(column.notna())[:LOOKED_AT]]
    if any(map(_is_nested, first)):
        return not holds_pictures(column)
    n_in_text = sum(isinstance(cell, str) and _read_text(cell) is not None for cell in first)
    return 0 < n_in_text >= OBJECTS_IN_TEXT * len(first)


def _is_nested(cell: object) -> bool:
    """Return whether a cell is an object, or a list with objects in it."""
    return isinstance(cell, dict) or _is_list_of_objects(cell)


def _is_list_of_objects(cell: object) -> bool:
    """Return whether a cell is a list, or an array of Parquet, with objects in it."""
    if isinstance(cell, np.ndarray):
        return cell.dtype == object and any(isinstance(item, dict) for item in cell.ravel())
    return isinstance(cell, list | tuple) and any(isinstance(item, dict) for item in cell)


def _read_text(text: str) -> object:
    """Return the object, or list of objects, that a text holds; None if it holds none."""
    if not text.startswith(("{", "[{")):
        return None
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return None
    return value if _is_nested(value) else None


def _flat_cells(column: pd.Series) -> list[FlatCell]:
    """Return the values in each cell by their paths."""
    flat: list[FlatCell] = []
    for cell in column:
        values: FlatCell = {}
        in_text = _read_text(cell) if isinstance(cell, str) else None
        is_blank = isinstance(cell, str) and not cell.strip()  # which is no value beside objects
        if not is_blank:
            _flatten(cell if in_text is None else in_text, (), values)
        flat.append(values)
    return flat


def _flatten(value: Any, path: FieldPath, values: FlatCell) -> None:
    """Write what is in an object, or in a list of objects, to values by its paths."""
    if isinstance(value, dict):
        for key, inside in value.items():
            inner_path = (*path, str(key))
            if type(inside) in PLAIN:  # most are, and this takes half the time
                values[inner_path] = inside
            else:
                _flatten(inside, inner_path, values)
    elif _is_list_of_objects(value):
        for place, inside in enumerate(value):
            _flatten(inside, (*path, str(place)), values)
    else:
        values[path] = None if _is_missing(value) else value


def _is_missing(value: object) -> bool:
    return (
        value is None
        or value is pd.NA
        or value is pd.NaT
        or (isinstance(value, float) and value != value)
    )


def _paths_of(cells: list[FlatCell]) -> tuple[FieldPath, ...]:
    """Return the paths in any of the cells, in the order in which they come first."""
    has_value: dict[FieldPath, bool] = {}
    for cell in cells:
        for path, value in cell.items():
            has_value[path] = has_value.get(path, False) or value is not None
    # Where an object is missing in some cells, the others show its fields.
    outer = {path[:length] for path in has_value for length in range(len(path))}
    return tuple(path for path, known in has_value.items() if known or path not in outer)


def _as_column(cells: list[Any], index: pd.Index) -> pd.Series:
    """Return values as a column of a table that was read from a file would have them."""
    table = pd.DataFrame({"cells": pd.Series(cells, index=index)})
    return with_all_digits(table, lambda _place: cells)["cells"]
