"""Labels in rows that come later, or in parts of a table: read as those of the first rows were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from transduce.core.types import AnyArray, Mask
from transduce.tables.cells import read_cells, read_numbers
from transduce.tables.numbers_in_text import IN_TEXT
from transduce.tables.target import Target, as_label


def missing_labels(column: pd.Series, *, words: bool = False) -> Mask:
    """Return where a label is missing: empty cells and, with `words`, texts such as NA, as in a delimited file."""
    missing = column.isna().to_numpy(dtype=bool)
    if not words or pd.api.types.is_numeric_dtype(column):
        return missing
    codes, levels = pd.factorize(column.astype(object))
    gone = [isinstance(level, str) and level.strip().lower() in IN_TEXT for level in levels]
    return missing | np.array([*gone, True], dtype=bool)[codes]


@dataclass(frozen=True)
class LabelReading:
    """How the cells of the target are read."""

    name: Any  # the column
    task: str
    decimal: str = "point"  # of numbers in text
    unit: str = ""  # of numbers in text
    whole: bool = False  # whether classes are whole numbers
    words: bool = False  # whether texts such as NA stand for a missing label

    @classmethod
    def of(cls, target: Target, column: pd.Series, prefer: str = "point") -> LabelReading:
        """Return how the labels of a target were read from a column."""
        if target.task == "classification":
            known = target.labels[~target.missing].tolist()
            return cls(target.name, target.task, whole=all(type(label) is int for label in known))
        if pd.api.types.is_numeric_dtype(column):
            return cls(target.name, target.task)
        texts = [cell if isinstance(cell, str) else None for cell in column.tolist()]
        found = read_numbers(texts, prefer)
        return cls(target.name, target.task, found.decimal, found.unit)

    def read(self, frame: pd.DataFrame) -> Target:
        """Return the labels of some rows; all are missing where the table lacks the column."""
        if self.name not in frame.columns:
            empty: AnyArray = np.full(len(frame), np.nan if self.task == "regression" else None)
            return Target(self.name, empty, np.ones(len(frame), dtype=bool), self.task)
        column = frame[self.name]
        missing = missing_labels(column, words=self.words)
        if self.task == "regression":
            if pd.api.types.is_numeric_dtype(column):
                values = column.to_numpy(dtype=float, na_value=np.nan)
            else:
                values = read_cells(column.astype(object).mask(missing, None), self.decimal, self.unit)[0]
            return Target(self.name, np.where(missing, np.nan, values), missing, self.task)
        labels = np.full(len(frame), None, dtype=object)
        for row in np.flatnonzero(~missing):
            labels[row] = self._class(column.iloc[row])
        return Target(self.name, labels, missing, self.task)

    def _class(self, cell: Any) -> Any:
        if self.whole:
            try:
                return int(float(cell))
            except (TypeError, ValueError):
                return str(cell)
        return as_label(cell.item() if isinstance(cell, np.generic) else cell)
