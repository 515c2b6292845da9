"""Columns and arrays that describe rows, read and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
import pandas as pd

from transduce.conformal.designs.rows import (
    Categories,
    DrawnRows,
    OverlappingCategories,
    named_columns,
)
from transduce.core.types import AnyArray, Array, ColumnName, Mask
from transduce.core.words import quoted
from transduce.population.draws import read_drawn_from, read_marks

if TYPE_CHECKING:
    from transduce.conformal.designs.base import Design


@dataclass(frozen=True, eq=False)
class Cells:
    """One cell for each row, of a column or an array, and how messages speak of it."""

    kind: str  # "column", whose rows are counted from 1, or "array", from 0
    name: ColumnName
    cells: pd.Series

    @classmethod
    def of(
        cls,
        name: str,
        value: Any,
        frame: pd.DataFrame | None,
        n: int,
    ) -> Cells:
        """Return the column of a table, or the array, that a field of a design names or holds."""
        if named_columns(value):
            if frame is None:
                raise ValueError(
                    f"{name}={quoted(value)} names a column, and there is no table here: give an "
                    f"array with a value for each of the {n} rows."
                )
            column = named_columns(value)[0]
            return cls("column", column, frame[column].reset_index(drop=True))
        if np.ndim(value) != 1 or len(value) != n:
            raise ValueError(f"Array {name!r} must have a value for each of the {n} rows.")
        if not isinstance(value, np.ndarray | pd.Series):
            value = list(value)
        try:
            cells = pd.Series(value)
            pd.to_numeric(cells, errors="coerce")
        except OverflowError:
            raise ValueError(
                f"Array {name!r} holds a whole number that is too large for double precision."
            ) from None
        return cls("array", name, cells.reset_index(drop=True))

    def name_row(self, number: int) -> str:
        """Return a row as messages name it."""
        if self.kind == "column":
            return f"row {number + 1}"
        return f"row {number} (counted from 0)"

    def quote_cell(self, number: int) -> str:
        """Return a cell in words."""
        cell = self.cells.iloc[number]
        if pd.isna(cell):
            return "nothing"
        return quoted(_python_value(cell))

    def to_floats(self) -> Array:
        """Return the cells as numbers, NaN where a cell is none; shape (n,)."""
        numbers = pd.to_numeric(self.cells, errors="coerce")
        return numbers.to_numpy(dtype=float, na_value=np.nan)

    def to_marks(self) -> Mask:
        """Return which rows are marked, shape (n,)."""
        if self.cells.dtype == bool:
            return self.cells.to_numpy()
        return read_marks(self.cells.astype(object).to_frame(self.name), self.name)

    def __str__(self) -> str:
        return f"{self.kind.capitalize()} {self.name!r}"


class CommonRows(TypedDict):
    """What the bound form of every design holds."""

    spec: Any  # the `Design`, of whichever class
    within: Categories | None
    overlapping: OverlappingCategories | None
    order: Array | None


@dataclass(frozen=True, eq=False)
class RowReader:
    """Reads what the fields of a design say of the rows of a table, or of arrays."""

    spec: Design
    missing: Mask  # (n,) which rows have no label
    frame: pd.DataFrame | None = None

    def cells(self, name: str) -> Cells:
        """Return one cell for each row, as a field of the design names or holds them."""
        return Cells.of(name, getattr(self.spec, name), self.frame, len(self.missing))

    def common(self) -> CommonRows:
        """Return what the bound form of every design holds."""
        within = None
        overlapping = None
        order = None
        if self.spec.overlapping:
            overlapping = self._read_overlapping()
        elif self.spec.within is not None:
            within = read_codes(self._one_column(), "categories")
        if self.spec.order is not None:
            order = read_order(self.cells("order"))
        return {"spec": self.spec, "within": within, "overlapping": overlapping, "order": order}

    def _one_column(self) -> Cells:
        """Return the cells of the only column of categories."""
        table = np.asarray(self.spec.within, dtype=object)
        if table.ndim != 2 or table.shape[1] != 1:
            return self.cells("within")
        return Cells.of("within", table[:, 0], None, len(self.missing))

    def _columns_of_categories(self) -> list[Cells]:
        """Return the cells of several columns of categories."""
        n_rows = len(self.missing)
        columns = named_columns(self.spec.within)
        if columns:
            return [Cells.of("within", column, self.frame, n_rows) for column in columns]
        table = pd.DataFrame(self.spec.within)
        return [Cells.of(str(name), table[name], None, n_rows) for name in table.columns]

    def _read_overlapping(self) -> OverlappingCategories:
        """Return the categories of several columns."""
        codes = []
        names = []
        for cells in self._columns_of_categories():
            categories = read_codes(cells, "categories")
            codes.append(categories.codes)
            names.append(tuple(f"{cells.name}={name}" for name in categories.names))
        return OverlappingCategories(np.column_stack(codes), tuple(names))

    # ---- what a field of some designs says

    def drawn_rows(self, name: str) -> DrawnRows:
        """Return which rows were drawn at random, with a label and without."""
        cells = self.cells(name)
        marked = cells.to_marks()
        drawn = marked & ~self.missing
        if not drawn.any():
            raise ValueError(
                f"No row that {cells.name!r} marks as drawn at random has a label: label some "
                "first."
            )
        drawn_unlabelled = marked & self.missing
        if drawn[~self.missing].all():
            advice = "leave it out, since all labels then count as drawn at random"
            if drawn_unlabelled.any():  # which may be harder than the others
                advice = "label some other rows to learn from"
            raise ValueError(f"{cells} marks all labelled rows as drawn at random: {advice}.")
        return DrawnRows(drawn, drawn_unlabelled)

    def labelled_since(self, name: str) -> Mask:
        """Return which rows (n,) could be drawn, were not, and have a label all the same.

        The column of probabilities that a draw writes beside its marks tells which could be drawn.
        """
        cells = self.cells(name)
        column = f"{cells.name}_probability"
        if self.frame is None or cells.kind != "column" or column not in self.frame.columns:
            return np.zeros(len(self.missing), dtype=bool)
        drawn = cells.to_marks()
        could_be_drawn = read_drawn_from(self.frame, column, drawn)
        return np.asarray(could_be_drawn & ~drawn & ~self.missing)

    def seen_rows(self, name: str) -> Mask:
        """Return which labelled rows (n,) were seen; some labels must not have been."""
        cells = self.cells(name)
        marked = cells.to_marks()
        if not (~marked & ~self.missing).any():
            raise ValueError(
                f"{cells} marks all labelled rows as seen: label some others, at random."
            )
        return np.asarray(marked & ~self.missing)

    def probability(self, name: str) -> Array:
        """Return the probability with which each row was chosen to be labelled."""
        cells = self.cells(name)
        probability = cells.to_floats()
        bad = np.flatnonzero(~((probability > 0.0) & (probability <= 1.0)))
        if len(bad):
            raise ValueError(
                f"{cells} says with which probability each row was chosen to be labelled: it must "
                f"lie above 0 and be at most 1, and {cells.name_row(bad[0])} has "
                f"{cells.quote_cell(bad[0])}."
            )
        certain = np.flatnonzero(self.missing & (probability == 1.0))
        if len(certain):
            raise ValueError(
                f"{cells}: {cells.name_row(certain[0])} was sure to be labelled, and it has no "
                "label: say how likely it was."
            )
        return probability

    def groups(self, name: str) -> AnyArray:
        """Return the number of each row's group."""
        codes = read_codes(self.cells(name), "groups").codes
        labelled = codes[~self.missing]
        unlabelled = codes[self.missing]
        if len(np.unique(labelled)) < 2:
            raise ValueError(
                "All labels are of one group: at least one other is needed to calibrate."
            )
        if len(unlabelled) and np.isin(unlabelled, labelled).all():
            raise ValueError(
                "Every group has a label, and groups are for rows of groups that have none. Leave "
                "them out: if rows were labelled at random, the guarantee holds without them."
            )
        return codes


def take_values(values: Any, rows: AnyArray) -> Any:
    """Return the values of some rows, as an array, or as a frame of several columns."""
    if isinstance(values, pd.DataFrame):
        return values.iloc[rows]
    if np.ndim(values) > 1:
        return np.asarray(values)[rows]
    return np.asarray(pd.Series(values).to_numpy())[rows]


def _python_value(value: Any) -> Any:
    """Return a number of numpy as one of Python."""
    if hasattr(value, "item"):
        return value.item()
    return value


def read_codes(cells: Cells, what: str) -> Categories:
    """Return the number of each row's group or category, and their names, sorted as text."""
    holes = np.flatnonzero(cells.cells.isna())
    if len(holes):
        raise ValueError(
            f"{cells} names {what}, and {cells.name_row(holes[0])} has none: fill that hole first."
        )
    codes, values = pd.factorize(cells.cells.astype(object), sort=False)
    order = np.argsort([str(value) for value in values], kind="stable")
    names = tuple(repr(_python_value(values[k])) for k in order)
    return Categories(np.argsort(order)[codes], names)


def read_order(cells: Cells) -> Array:
    """Return the place of each row along an order: numbers, or times as their ranks."""
    numbers = pd.to_numeric(cells.cells, errors="coerce").where(cells.cells.notna())
    if numbers.isna().any() or pd.api.types.is_datetime64_any_dtype(cells.cells):
        times = pd.to_datetime(cells.cells, errors="coerce", format="mixed", utc=True)
        numbers = times.rank().where(times.notna())
    places = numbers.to_numpy(dtype=float, na_value=np.nan)
    bad = np.flatnonzero(~np.isfinite(places))
    if len(bad):
        raise ValueError(
            f"{cells} orders the rows, and {cells.name_row(bad[0])} has "
            f"{cells.quote_cell(bad[0])}: it must be a number or a date in each."
        )
    return places
