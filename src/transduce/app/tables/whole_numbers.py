"""Whole numbers beyond those that double precision tells apart, such as identifiers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd

LARGEST_EXACT = 2**53
_DIGITS = re.compile(r"\s*[-+]?\d{16,}\s*")
_IN_LINES = re.compile(r"^\s*[-+]?\d{16,}\s*$", re.MULTILINE)


def large_integers(column: pd.Series) -> list[int]:
    """Return the different whole numbers beyond 2**53 in a column, in ascending order.

    They may be written in text.
    """
    known = column.dropna()
    if pd.api.types.is_integer_dtype(known.dtype):
        beyond = (known > LARGEST_EXACT) | (known < -LARGEST_EXACT)
        return sorted(int(number) for number in known[beyond].unique())
    if pd.api.types.is_numeric_dtype(known.dtype):
        return []
    whole = {_whole_number(cell) for cell in known}
    return sorted(number for number in whole if abs(number) > LARGEST_EXACT)


def _whole_number(cell: object) -> int:
    """Return a long whole number in a cell, 0 for any other cell."""
    if isinstance(cell, str) and _DIGITS.fullmatch(cell):
        return int(cell)
    if isinstance(cell, int | np.integer):
        return int(cell)
    return 0


def holds_equal_numbers(lines: str) -> bool:
    """Return whether lines hold different whole numbers that are equal in double precision."""
    return taken_as_equal(sorted({int(text) for text in _IN_LINES.findall(lines)})) is not None


def taken_as_equal(numbers: Iterable[int]) -> tuple[int, int] | None:
    """Return the first of ascending whole numbers that are the same in double precision, or None.

    >>> taken_as_equal([2**53, 2**53 + 1])
    (9007199254740992, 9007199254740993)
    """
    for first, second in itertools.pairwise(numbers):
        if float(first) == float(second):
            return first, second
    return None


def with_all_digits(frame: pd.DataFrame, cells_of: Callable[[int], Any]) -> pd.DataFrame:
    """Return a frame whose large whole numbers, floats because some are missing, have all digits.

    `cells_of` gives the cells of the column at a place as they came, None if they are no integers.
    """
    columns = {}
    for place, name in enumerate(frame.columns):
        column = frame.iloc[:, place]
        if column.dtype.kind == "f" and bool((column.abs() > LARGEST_EXACT).any()):
            exact = _exact(cells_of(place))
            if exact is not None:
                columns[name] = exact.set_axis(frame.index)
    return frame.assign(**columns) if columns else frame


def _exact(cells: Any) -> pd.Series | None:
    """Return whole numbers with all digits; None if other numbers are among them."""
    if cells is None:
        return None
    try:
        return pd.Series(pd.array(cells, dtype="Int64"))
    except (TypeError, ValueError, OverflowError):
        return None


def are_exact(numbers: Iterable[int]) -> bool:
    """Return whether double precision has all of these whole numbers to their last digit."""
    return all(int(np.float64(number)) == number for number in numbers)
