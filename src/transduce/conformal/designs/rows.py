"""What describes rows: a category of each, and which were drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from transduce.core.types import AnyArray, Array, ColumnName, Mask

# A field of a design that describes rows: the name of a column, a value for each row, or nothing.
RowValues = Any  # a ColumnName, a list of them, a sequence or an array of values, or None

# What the field of a dataclass is told: it describes rows, by anything or by numbers.
DESCRIBES_ROWS = {"describes_rows": True, "numbers": False}
NUMBERS_OF_ROWS = {"describes_rows": True, "numbers": True}


@dataclass(frozen=True, eq=False)
class Categories:
    """The category of each row, by number, and the names of the categories."""

    codes: AnyArray  # (n,)
    names: tuple[str, ...]

    def __getitem__(self, rows: AnyArray) -> Categories:
        return Categories(self.codes[rows], self.names)

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True, eq=False)
class OverlappingCategories:
    """The category of each row in each of several columns, by number."""

    codes: AnyArray  # (n, k)
    names: tuple[tuple[str, ...], ...]  # of the categories of each column

    def __getitem__(self, rows: AnyArray) -> OverlappingCategories:
        return OverlappingCategories(self.codes[rows], self.names)

    def __len__(self) -> int:
        return len(self.codes)

    def indicators(self) -> Array:
        """Return which categories each row is of, those of one column after another, as 0 and 1."""
        columns = []
        for column, names in enumerate(self.names):
            columns.append(self.codes[:, column][:, None] == np.arange(len(names)))
        return np.concatenate(columns, axis=1).astype(float)


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Which rows were drawn at random to be labelled: those with a label, and those without."""

    labelled: Mask  # (n,)
    unlabelled: Mask  # (n,)

    def __getitem__(self, rows: AnyArray) -> DrawnRows:
        return DrawnRows(self.labelled[rows], self.unlabelled[rows])

    def __len__(self) -> int:
        return len(self.labelled)


def count_columns(value: RowValues) -> int:
    """Return how many columns a field names, or its table of values has."""
    names = named_columns(value)
    if names:
        return len(names)
    shape = np.asarray(value, dtype=object).shape
    if len(shape) != 2:
        return 1
    return int(shape[1])


def named_columns(value: RowValues) -> list[ColumnName]:
    """Return the columns that a field names; none if it holds values.

    Several columns are a list or tuple of different texts: as values, these would put each row into
    a category of its own.
    """
    if value is None:
        return []
    if np.ndim(value) == 0:
        return [value]
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        return []
    if len(set(value)) < len(value):
        return []
    return list(value)
