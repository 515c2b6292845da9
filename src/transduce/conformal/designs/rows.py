"""What describes rows: a category of each, and which were drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from transduce.core.types import AnyArray, Mask


@dataclass(frozen=True, eq=False)
class Categories:
    """The category of each row, by number, and the names of the categories."""

    codes: AnyArray  # (n,)
    names: tuple[str, ...]

    def at(self, rows: AnyArray) -> Categories:
        """Return those of some rows."""
        return replace(self, codes=self.codes[rows])


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Which rows were drawn at random to be labelled: those that have a label, and those that have none."""

    labelled: Mask  # (n,)
    empty: Mask  # (n,)

    def at(self, rows: AnyArray) -> DrawnRows:
        """Return those of some rows."""
        return DrawnRows(self.labelled[rows], self.empty[rows])


def is_name(value: Any) -> bool:
    """Return whether a field names a column, and is no array."""
    return (
        value is not None and np.ndim(value) == 0 and not isinstance(value, Categories | DrawnRows)
    )
