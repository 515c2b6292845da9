"""What describes rows: a category of each, and which were drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transduce.core.types import AnyArray, ColumnName, Mask

# A field of a design that describes rows: the name of a column, a value for each row, or nothing.
RowValues = ColumnName | Sequence[Any] | AnyArray | None

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
class DrawnRows:
    """Which rows were drawn at random to be labelled: those with a label, and those without."""

    labelled: Mask  # (n,)
    unlabelled: Mask  # (n,)

    def __getitem__(self, rows: AnyArray) -> DrawnRows:
        return DrawnRows(self.labelled[rows], self.unlabelled[rows])

    def __len__(self) -> int:
        return len(self.labelled)


def is_name(value: Any) -> bool:
    """Return whether a field names a column, and is no array."""
    return value is not None and np.ndim(value) == 0
