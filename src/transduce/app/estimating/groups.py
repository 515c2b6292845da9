"""Columns to group by, and columns of a regression, as the table has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from transduce.app.estimating.predicted import Columns
from transduce.app.tables.moments import Moments
from transduce.app.tables.numbers import all_numbers, spelling_key, usual_spellings
from transduce.core.types import AnyArray, Array, ColumnName, Mask
from transduce.core.words import OptionError, counted, quoted

MISSING_GROUP = "(missing)"
MOST_VALUES = 12  # of numbers that are groups as they are; others are cut at their quartiles
MOST_GROUPS = 200
FEWEST_OF_GROUP = 0.02  # of the rows: a column with a smaller group is not proposed


def check_column(frame: Columns, name: ColumnName) -> None:
    """Raise an error that names the columns there are unless this is one of them."""
    if isinstance(name, list | set | dict):
        raise OptionError(f"Name one column; got {quoted(name)}. Ask once for each.")
    if name not in frame.columns:
        listed = ", ".join(map(str, list(frame.columns)[:20]))
        raise OptionError(f"There is no column {quoted(name)}; there are {listed}.")


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of every row, and the groups in the order in which they are shown."""

    of_rows: AnyArray  # (n,)
    names: list[Any]

    def named_at(self, rows: Mask) -> list[Any]:
        """Return the groups that some rows (n,) are of, in their order."""
        present = set(self.of_rows[rows].tolist())
        return [name for name in self.names if name in present]


def read_groups(frame: Columns, name: ColumnName, *, case_sensitive: bool = False) -> Groups:
    """Return the group of every row.

    Numbers, dates and durations with many values are cut at their quartiles. Texts that differ in
    capitals or blanks only are one group, as they are one category of a fit, unless they are
    `case_sensitive`.
    """
    check_column(frame, name)
    column = frame[name].reset_index(drop=True)
    missing = column.isna().to_numpy(dtype=bool)
    numbers = _numbers_of(column)
    if numbers is not None:
        if len(np.unique(numbers[~missing])) > MOST_VALUES:
            return _quarters(numbers, missing)
    elif _has_many_values(column):
        moments = Moments.of(column)
        if moments is not None:
            numbers = moments.numbers(column)
            return _quarters(numbers, np.isnan(numbers), moments.shown)
    groups = column.astype(object).to_numpy(copy=True)
    if not case_sensitive:
        groups = _in_usual_spelling(groups)
    groups[missing] = MISSING_GROUP
    names = pd.unique(groups).tolist()
    if len(names) > MOST_GROUPS:
        raise OptionError(
            f"Column {quoted(name)} has {len(names):,} different values: group by one with at most "
            f"{MOST_GROUPS}."
        )
    return Groups(groups, sort_groups(names))


def _in_usual_spelling(cells: AnyArray) -> AnyArray:
    """Return cells (n,) whose texts have the spelling that is most frequent; others stay."""
    # Blank texts are no spellings of a name.
    counts = Counter(cell for cell in cells.tolist() if isinstance(cell, str) and cell.strip())
    usual = usual_spellings(dict(sorted(counts.items())))
    spelled = {text: usual[spelling_key(text)] for text in counts}
    if all(text == name for text, name in spelled.items()):
        return cells
    merged = cells.copy()
    for row, cell in enumerate(cells.tolist()):
        if isinstance(cell, str):
            merged[row] = spelled.get(cell, cell)
    return merged


def _numbers_of(column: pd.Series) -> Array | None:
    """Return a column as numbers, NaN where one is missing; None if it does not hold numbers."""
    if pd.api.types.is_bool_dtype(column):
        return None
    numbers = all_numbers(column)
    if numbers is None:
        return None
    return np.asarray(pd.to_numeric(numbers, errors="coerce"), dtype=float)


def _has_many_values(column: pd.Series) -> bool:
    """Return whether a column has more values than are shown as groups."""
    try:
        return int(column.nunique()) > MOST_VALUES
    except TypeError:  # cells that cannot be hashed
        return False


QUARTERS = (0.25, 0.5, 0.75)


def _quarters(numbers: Array, missing: Mask, write: Callable[[float], str] | None = None) -> Groups:
    """Return the quarter of each number, named by its ends.

    Those of dates, which `write` writes, are dates of the table.
    """
    known = numbers[~missing]
    if write is None:
        ends = np.unique(np.quantile(known, QUARTERS))
        shown = [short_number(end) for end in ends]
    else:
        ends = np.unique(np.quantile(known, QUARTERS, method="inverted_cdf"))
        shown = [write(end) for end in ends]
    names = [f"up to {shown[0]}"]
    names += [f"{low} to {high}" for low, high in pairwise(shown)]
    names.append(f"above {shown[-1]}")
    quarters = np.searchsorted(ends, numbers, side="left").clip(0, len(ends))
    groups = np.array(names, dtype=object)[quarters]
    groups[missing] = MISSING_GROUP
    present = set(groups.tolist())
    return Groups(groups, [name for name in (*names, MISSING_GROUP) if name in present])


def short_number(value: float) -> str:
    """Return a number for reading, with about four digits."""
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{value:,.0f}"
    if not np.isfinite(value):
        return f"{value:g}"
    decimals = int(np.clip(3 - np.floor(np.log10(abs(value))), 0, 9))
    return f"{value:,.{decimals}f}"


def sort_groups(names: list[Any]) -> list[Any]:
    """Return groups sorted: by the numbers that people name bins by, and missing last."""

    def place(name: object) -> tuple[int, float, str]:
        text = str(name)
        if name == MISSING_GROUP:
            return 2, 0.0, ""
        if text.startswith("up to "):
            return 0, -np.inf, ""
        first_word, *_ = text.removeprefix("above ").split() or [""]
        try:
            return 0, float(first_word.replace(",", "")), text
        except ValueError:
            return 1, 0.0, text

    return sorted(names, key=place)


def propose_groups(
    frame: Columns, target: ColumnName, predictions: Array | None, sampled: Mask | None = None
) -> ColumnName | None:
    """Return the column of 2 to 12 values whose groups' predictions differ most, or None.

    The share of the variance of the predictions that lies between groups counts, and no label does;
    but each group needs one of the rows that were `sampled`. Shapes: predictions (n,) or
    (n, n_classes), sampled (n,).
    """
    if predictions is None:
        return None
    wide = np.asarray(predictions, dtype=float).reshape(len(frame), -1)
    best: tuple[float, ColumnName] | None = None
    for name in frame.columns:
        if name == target or not _may_group(frame[name]):
            continue
        if sampled is not None and not frame[name].isin(frame[name][sampled]).all():
            continue
        share = _share_between(frame[name], wide)
        if best is None or share > best[0] + 1e-12:
            best = share, name
    if best is None:
        return None
    return best[1]


def _may_group(column: pd.Series) -> bool:
    """Return whether a column has few values, none of them rare."""
    try:
        counts = column.value_counts(dropna=False)
    except TypeError:  # cells that cannot be hashed
        return False
    enough = len(counts) >= 2 and len(counts) <= MOST_VALUES
    return enough and int(counts.min()) >= max(5, FEWEST_OF_GROUP * len(column))


def _share_between(column: pd.Series, wide: Array) -> float:
    """Return the share of the variance of predictions (n, k) that lies between groups."""
    codes = pd.factorize(column, use_na_sentinel=False)[0]
    counts = np.bincount(codes)
    total = np.sum((wide - wide.mean(axis=0)) ** 2)
    if not total > 0.0:
        return 0.0
    sums = [np.bincount(codes, values) for values in wide.T]
    means = np.stack(sums, axis=1) / counts[:, None]
    between = np.sum(counts[:, None] * (means - wide.mean(axis=0)) ** 2)
    return float(between / total)


def read_regressors(
    frame: Columns, names: list[ColumnName], *, case_sensitive: bool = False
) -> pd.DataFrame:
    """Return columns of a regression as numbers.

    Dates as days or seconds, categories as ones and zeros, without their first.
    """
    columns: dict[Any, Array] = {}
    for name in names:
        check_column(frame, name)
        column = frame[name].reset_index(drop=True)
        _check_full(name, column)
        numbers = _numbers_of(column)
        if numbers is not None:
            columns[name] = numbers
            continue
        moments = Moments.of(column)
        if moments is not None:
            numbers = moments.numbers(column)
            _check_full(name, pd.Series(numbers))
            columns[f"{name} ({moments.unit})"] = numbers
            continue
        if column.nunique() > MOST_GROUPS:
            raise OptionError(
                f"Column {quoted(name)} has {column.nunique():,} different values that are no "
                f"numbers: a regression takes numbers, dates, or at most {MOST_GROUPS} categories."
            )
        groups = read_groups(frame, name, case_sensitive=case_sensitive)
        if len(groups.names) == 1:
            raise OptionError(
                f"Column {quoted(name)} has one value only: a regression takes columns that vary."
            )
        for group in groups.names[1:]:
            columns[f"{name} = {group}"] = (groups.of_rows == group).astype(float)
    return pd.DataFrame(columns)


def _check_full(name: ColumnName, column: pd.Series) -> None:
    """Raise an error unless a column of a regression is known at every row."""
    n_missing = int(column.isna().sum())
    if n_missing:
        raise ValueError(
            f"Column {quoted(name)} is empty at {counted(n_missing, 'row')}: a regression needs it "
            "at every row."
        )


def read_outcome(frame: Columns, name: ColumnName, *, case_sensitive: bool = False) -> Array:
    """Return an outcome as numbers; a column of two values as zeros and ones."""
    outcome = read_regressors(frame, [name], case_sensitive=case_sensitive)
    if outcome.shape[1] != 1:
        raise ValueError(
            f"Column {quoted(name)} has more than two classes: an outcome is a number, or one of "
            "two classes."
        )
    return outcome.iloc[:, 0].to_numpy(dtype=float)
