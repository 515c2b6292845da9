"""Rows to be checked, drawn by strata: which, how many from each, and a list to take away."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from transduce.app.auditing.reading import (
    EMPTY,
    ROW_NUMBER,
    class_texts,
    holds_fractions,
    predicted_class,
    read_column,
)
from transduce.core.files import whole_file
from transduce.core.types import AnyArray, Array, ColumnName, Mask
from transduce.core.words import counted
from transduce.population.draws import (
    Allocation,
    allocate,
    draw_from_strata,
    expected_spreads,
    join_small_strata,
    uncertainty_bands,
)

MOST_STRATA = 200
MOST_CHOICES = 50  # classes that a sheet offers to choose from
MOST_STRATA_NAMED = 12
LONGEST_CHOICES = 250  # characters of a list of choices that a cell of a sheet can hold


@dataclass(frozen=True, kw_only=True)
class StrataRequest:
    """How rows are to be drawn: from each class of a column, or from bands of an uncertainty.

    Attributes
    ----------
    number : int
        Rows in all, divided as the allocation says.
    by : tuple of columns
        The column of predicted classes, or one of probabilities for each class.
    each : int, optional
        Rows from each class or band instead, or all of one that has fewer.
    """

    number: int
    seed: int
    by: tuple[ColumnName, ...] = ()
    uncertainty: ColumnName | None = None
    allocation: Allocation = "neyman"
    each: int | None = None

    def __post_init__(self) -> None:
        if bool(self.by) == (self.uncertainty is not None):
            raise ValueError("Draw by a column of classes or by an uncertainty: name one of them.")

    @property
    def columns(self) -> list[ColumnName]:
        """The columns that say where to draw from."""
        if self.uncertainty is not None:
            return [self.uncertainty]
        return list(self.by)


@dataclass(frozen=True, eq=False)
class RowsToCheck:
    """Rows that were drawn, as new columns of their table.

    Attributes
    ----------
    rows : int array
        Positions, ascending.
    columns : DataFrame
        What is written beside the table: marks, seed, stratum and probability.
    statement : str
        How many were drawn from each stratum.
    """

    rows: AnyArray
    columns: pd.DataFrame
    statement: str


def draw_by_strata(
    frame: pd.DataFrame, target: ColumnName, missing: Mask, request: StrataRequest
) -> RowsToCheck:
    """Draw rows to be labelled from each class that was predicted, or from bands of uncertainty."""
    if request.uncertainty is not None:
        codes, strata = _bands(frame, request.uncertainty)
        # The share of wrong predictions is expected to rise with the uncertainty of a band.
        spreads = np.sqrt(np.arange(1.0, len(strata) + 1.0))
    else:
        names = class_texts(predicted_class(frame, request.by))
        codes, strata = pd.factorize(names, sort=True)
        if len(strata) > MOST_STRATA:
            raise ValueError(
                f"Column {request.by[0]!r} has {len(strata):,} different values: rows are drawn "
                f"from each by itself, so it must have few, at most {MOST_STRATA}."
            )
        if request.each is None:
            codes, strata = _join_rare_classes(codes, strata, missing, request)
        spreads = _spreads(frame, target, missing, names, codes)
    sizes = np.bincount(codes[missing], minlength=len(strata))
    if request.each is None:
        numbers = allocate(sizes, request.number, request.allocation, spreads)
    else:
        numbers = np.minimum(sizes, request.each)
    draw = draw_from_strata(missing, codes, numbers, request.seed)
    name = f"{target}_random"
    columns = pd.DataFrame(
        {
            name: np.isin(np.arange(len(frame)), draw.rows),
            f"{name}_seed": request.seed,
            f"{name}_stratum": np.asarray(strata, dtype=object)[codes],
            f"{name}_probability": draw.probabilities,
        },
        index=frame.index,
    )
    return RowsToCheck(draw.rows, columns, _how_many_from_each(strata, numbers, sizes))


def _join_rare_classes(
    codes: AnyArray, strata: AnyArray, missing: Mask, request: StrataRequest
) -> tuple[AnyArray, AnyArray]:
    """Return the stratum of each row (n,), and what strata are called, with the rarest joined."""
    sizes = np.bincount(codes[missing], minlength=len(strata))
    is_joined = join_small_strata(sizes, request.number, request.allocation)
    if not is_joined.any():
        return codes, strata
    joined_name = f"{int(is_joined.sum())} rare classes"
    while joined_name in set(strata):
        joined_name = f"({joined_name})"
    names = np.where(is_joined, joined_name, np.asarray(strata, dtype=object))
    return pd.factorize(names[codes], sort=True)


def _how_many_from_each(strata: AnyArray, numbers: AnyArray, sizes: AnyArray) -> str:
    """Return how many rows were drawn from which stratum, in a sentence."""
    parts = [
        f"{count:,} of {size:,} from {stratum}"
        for stratum, count, size in zip(strata, numbers.tolist(), sizes.tolist(), strict=True)
        if size
    ]
    shown = ", ".join(parts[:MOST_STRATA_NAMED])
    if len(parts) > MOST_STRATA_NAMED:
        shown += ", ..."
    return f"{counted(int(numbers.sum()), 'row')} drawn: {shown}."


def _spreads(
    frame: pd.DataFrame, target: ColumnName, missing: Mask, names: AnyArray, codes: AnyArray
) -> Array | None:
    """Return the spread expected in each stratum, from the labels that there are, if any."""
    n_strata = int(codes.max()) + 1
    truth = class_texts(read_column(frame, target))
    wrong = ~missing & (truth != names)
    return expected_spreads(
        np.bincount(codes[~missing], minlength=n_strata),
        np.bincount(codes[wrong], minlength=n_strata),
    )


def _bands(frame: pd.DataFrame, uncertainty: ColumnName | None) -> tuple[AnyArray, AnyArray]:
    """Return the band of uncertainty of each row, and what the bands are called."""
    values = pd.to_numeric(read_column(frame, uncertainty), errors="coerce").to_numpy(dtype=float)
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(
            f"Column {uncertainty!r} must say how uncertain every prediction is, in numbers; row "
            f"{row + 1:,} does not."
        )
    bands = uncertainty_bands(values)
    names = []
    for band in range(int(bands.max()) + 1):
        inside = values[bands == band]
        names.append(f"{inside.min():.3g} to {inside.max():.3g}")
    return bands, np.array(names, dtype=object)


def list_to_check(
    frame: pd.DataFrame, target: ColumnName, drawn: RowsToCheck, hidden: list[ColumnName]
) -> pd.DataFrame:
    """Return the drawn rows as a sheet to fill in: a row each, the target empty and last.

    Predictions are hidden, so that they do not sway who checks.
    """
    left_out = {*hidden, *drawn.columns.columns, target}
    shown = [name for name in frame.columns if name not in left_out]
    rows = frame[shown].iloc[drawn.rows].reset_index(drop=True)
    rows.insert(0, ROW_NUMBER, drawn.rows + 1)
    rows[str(target)] = None
    return rows


def classes_to_choose(
    frame: pd.DataFrame, target: ColumnName, by: tuple[ColumnName, ...]
) -> list[str]:
    """Return the classes that were found or predicted, to choose from; none if there are many."""
    predicted = [read_column(frame, name) for name in by]
    if any(map(holds_fractions, predicted)) and len(predicted) == 1:
        return []
    classes = set(class_texts(read_column(frame, target)))
    if any(map(holds_fractions, predicted)):  # one column of probabilities for each class
        classes |= set(class_texts(predicted_class(frame, by)))
    else:
        for column in predicted:
            classes |= set(class_texts(column))
    classes.discard(EMPTY)
    if len(classes) > MOST_CHOICES:
        return []
    return sorted(classes)


def write_list(path: Path, rows: pd.DataFrame, classes: list[str], **how: Any) -> None:
    """Write a list of rows to check; in a workbook the target's cells offer the classes."""
    with whole_file(path, **how) as file:
        if path.suffix.lower() == ".xlsx":
            file.write(_workbook(rows, classes))
        else:
            file.write(rows.to_csv(index=False).encode())


def _workbook(rows: pd.DataFrame, classes: list[str]) -> bytes:
    """Return a workbook whose last column offers classes to choose from."""
    try:
        import openpyxl
        from openpyxl.utils import get_column_letter
        from openpyxl.worksheet.datavalidation import DataValidation
    except ImportError as error:
        raise ValueError(
            "A list as a workbook needs openpyxl (pip install openpyxl): let its name "
            "end in .csv otherwise."
        ) from error
    from transduce.app.tables.workbook import put_columns

    book = openpyxl.Workbook()
    sheet: Any = book.active
    sheet.title = "to check"
    put_columns(sheet, rows, 0)
    sheet.freeze_panes = "B2"
    letter = get_column_letter(rows.shape[1])
    sheet.column_dimensions[letter].width = 24
    choices = _choices(book, classes)
    if choices:
        validation = DataValidation(type="list", formula1=choices, allow_blank=True)
        sheet.add_data_validation(validation)
        validation.add(f"{letter}2:{letter}{len(rows) + 1}")
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def _choices(book: Any, classes: list[str]) -> str:
    """Return the classes as a formula of a list to choose from; on a sheet of their own if long."""
    if not classes:
        return ""
    joined = ",".join(classes)
    plain = all("," not in name and '"' not in name for name in classes)
    if plain and len(joined) <= LONGEST_CHOICES:
        return f'"{joined}"'
    sheet = book.create_sheet("classes")
    for row, name in enumerate(classes, start=1):
        sheet.cell(row=row, column=1, value=name)
    return f"classes!$A$1:$A${len(classes)}"
