"""Columns and arrays that describe rows, read and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from transduce.conformal.designs.rows import Categories, DrawnRows, is_name
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.words import quoted
from transduce.population.draws import read_marks


@dataclass(frozen=True, eq=False)
class Cells:
    """One cell for each row, of a column or an array, and how messages speak of it."""

    kind: str  # "column", whose rows are counted from 1, or "array", from 0
    name: Any
    cells: pd.Series

    @classmethod
    def of(cls, name: str, value: Any, frame: pd.DataFrame | None, n: int) -> Cells:
        """Return the column of a table, or the array, that a field of a design names or holds."""
        if is_name(value):
            if frame is None:
                what = f"give an array with a value for each of the {n} rows"
                raise ValueError(
                    f"{name}={quoted(value)} names a column, and there is no table here: {what}."
                )
            return cls("column", value, frame[value].reset_index(drop=True))
        if np.ndim(value) != 1 or len(value) != n:
            raise ValueError(f"Array {name!r} must have a value for each of the {n} rows.")
        try:
            cells = pd.Series(value if isinstance(value, np.ndarray | pd.Series) else list(value))
            pd.to_numeric(cells, errors="coerce")
        except OverflowError:
            raise ValueError(
                f"Array {name!r} holds a whole number that is too large for double precision."
            ) from None
        return cls("array", name, cells.reset_index(drop=True))

    def row(self, number: int) -> str:
        """Return a row as messages name it."""
        return f"row {number + 1}" if self.kind == "column" else f"row {number} (counted from 0)"

    def at(self, number: int) -> str:
        """Return a cell in words."""
        cell = self.cells.iloc[number]
        return "nothing" if pd.isna(cell) else quoted(_plain(cell))

    def __str__(self) -> str:
        return f"{self.kind.capitalize()} {self.name!r}"


def as_array(values: Any) -> AnyArray:
    """Return a value for each row as an array."""
    return np.asarray(pd.Series(values).to_numpy())


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def read_rows(marks: Cells, missing: Mask) -> DrawnRows:
    """Return which rows were drawn at random, with a label and without."""
    column = marks.cells.astype(object).to_frame(marks.name)
    marked = marks.cells.to_numpy() if marks.cells.dtype == bool else read_marks(column, marks.name)
    drawn = marked & ~missing
    if not drawn.any():
        what = f"No row that {marks.name!r} marks as drawn at random has a label"
        raise ValueError(f"{what}: label some first.")
    if drawn[~missing].all():
        what = "leave it out, since chance chose all labels"
        if (marked & missing).any():  # which may be harder than the others
            what = "label some other rows to learn from"
        raise ValueError(f"{marks} marks all labelled rows as drawn at random: {what}.")
    return DrawnRows(drawn, marked & missing)


def read_probability(cells: Cells, missing: Mask) -> Array:
    """Return the probability with which each row was chosen to be labelled."""
    plain = pd.to_numeric(cells.cells, errors="coerce")
    numbers = plain.to_numpy(dtype=float, na_value=np.nan)
    bad = np.flatnonzero(~((numbers > 0.0) & (numbers <= 1.0)))
    if len(bad):
        what = f"{cells} says with which probability each row was chosen to be labelled"
        found = f"{cells.row(bad[0])} has {cells.at(bad[0])}"
        raise ValueError(f"{what}: it must lie above 0 and be at most 1, and {found}.")
    sure = np.flatnonzero(missing & (numbers == 1.0))
    if len(sure):
        why = f"{cells.row(sure[0])} was sure to be labelled, and it has no label"
        raise ValueError(f"{cells}: {why}: say how likely it was.")
    return numbers


def read_codes(cells: Cells, what: str) -> Categories:
    """Return the number of each row's group or category, and their names, sorted as text."""
    holes = np.flatnonzero(cells.cells.isna())
    if len(holes):
        raise ValueError(
            f"{cells} names {what}, and {cells.row(holes[0])} has none: fill that hole first."
        )
    codes, values = pd.factorize(cells.cells.astype(object), sort=False)
    order = np.argsort([str(value) for value in values], kind="stable")
    return Categories(np.argsort(order)[codes], tuple(repr(_plain(values[k])) for k in order))


def read_groups(cells: Cells, missing: Mask) -> AnyArray:
    """Return the number of each row's group."""
    codes = read_codes(cells, "groups").codes
    if len(np.unique(codes[~missing])) < 2:
        raise ValueError("All labels are of one group: at least one other is needed to calibrate.")
    if missing.any() and np.isin(codes[missing], codes[~missing]).all():
        why = "Every group has a label, and groups are for rows of groups that have none"
        without = "if chance chose which rows have a label, the guarantee holds without them"
        raise ValueError(f"{why}. Leave them out: {without}.")
    return codes


def read_order(cells: Cells) -> Array:
    """Return the place of each row along an order: numbers, or times as their ranks."""
    numbers = pd.to_numeric(cells.cells, errors="coerce").where(cells.cells.notna())
    if numbers.isna().any() or pd.api.types.is_datetime64_any_dtype(cells.cells):
        times = pd.to_datetime(cells.cells, errors="coerce", format="mixed", utc=True)
        numbers = times.rank().where(times.notna())
    bad = np.flatnonzero(~np.isfinite(numbers.to_numpy(dtype=float, na_value=np.nan)))
    if len(bad):
        what = f"{cells.row(bad[0])} has {cells.at(bad[0])}"
        raise ValueError(
            f"{cells} orders the rows, and {what}: it must be a number or a date in each."
        )
    return numbers.to_numpy(dtype=float)
