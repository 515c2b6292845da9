"""Whether the columns of a list of rows are as they are in the table that it was taken from."""

from __future__ import annotations

import datetime
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import pandas as pd

from transduce.app.tables import numbers
from transduce.app.tables.month_names import ENGLISH, in_english
from transduce.core.types import AnyArray, ColumnName
from transduce.core.words import counted, listed_numbers, quoted

MOST_CONTRADICTING = 3  # rows of a column that may have been corrected by hand
FEWEST_LETTERS = 4  # of a text that is compared by its plain letters alone
LONGEST_CELL = 32_000  # letters, of which a cell of a workbook holds little more
FIRST_SHORTENED = 1e11  # whole numbers that spreadsheets write as 1.23457E+11
KEPT_DIGITS = 15  # of a whole number in a spreadsheet
LONGEST_DATE = 40  # letters
DAY_ZERO = datetime.datetime(1899, 12, 30)  # from which spreadsheets count days
MINUTE = datetime.timedelta(minutes=1)
FAILED = re.compile(r"#+|\?+|#[a-z/0]+[?!]?", re.IGNORECASE)  # what a spreadsheet could not show
DATE = re.compile(
    r"(?P<first>\d{1,4})[-/.](?P<second>\d{1,2})[-/.](?P<third>\d{1,4})"
    r"(?:[ t](?P<hour>\d{1,2}):(?P<minute>\d{2})\S*)?",
    re.IGNORECASE,
)
CLOCK = re.compile(r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::\d{2}(?:\.\d+)?)?(?P<half> ?[ap]m)?")
PARTS_OF_DATE = re.compile(r"\d+|[A-Za-z]+")


class ColumnChange(NamedTuple):
    """A column of a list with cells that contradict the table."""

    name: ColumnName
    rows: list[int]  # of the table, from 0, that contradict it, the first row first
    n_compared: int
    listed: object  # what the list has in the first of them
    stored: object  # what the table has there

    @property
    def is_moved(self) -> bool:
        """Whether so many cells contradict the table that nobody corrected them by hand."""
        n_rows = len(self.rows)
        return n_rows > MOST_CONTRADICTING or (n_rows > 1 and 2 * n_rows > self.n_compared)

    def refusal(self) -> str:
        """Return what is wrong with a column that was moved, and what to do."""
        rows = counted(self.n_compared, "row")
        return (
            f"Column {self.name!r} of the list contradicts the table in {len(self.rows):,} of "
            f"{rows}, first in row {self.rows[0] + 1:,}: the list has {quoted(self.listed)}, the "
            f"table {quoted(self.stored)}. A column that was sorted by itself does so: sort all "
            "columns of the list together. If its cells were changed on purpose, leave this "
            "column out of the list."
        )

    def note(self) -> str:
        """Return that a few cells differ, by row."""
        numbers_of_rows = [row + 1 for row in self.rows]
        where = "row" if len(numbers_of_rows) == 1 else "rows"
        return (
            f"Column {self.name!r} of the list differs from the table in {where} "
            f"{listed_numbers(numbers_of_rows)}: look whether the checks there are of these rows."
        )


def find_changes(
    frame: pd.DataFrame,
    listed: pd.DataFrame,
    rows: AnyArray,
    places: AnyArray,
    *,
    labels: Collection[ColumnName],
    missing: Collection[object] = (),
) -> list[ColumnChange]:
    """Return the columns of a list that contradict the table at its rows (m,), but for labels.

    Empty cells contradict nothing, unless the column has the cells of the table in another order.
    """
    by_name = {str(name): name for name in listed.columns}
    changes = []
    for name in frame.columns:
        if name in labels or str(name) not in by_name:
            continue
        column = pd.DataFrame({"cells": frame[name].iloc[rows].astype(object)})
        stored = numbers.without(column, list(missing))["cells"].tolist()
        cells = listed[by_name[str(name)]].iloc[places].astype(object).tolist()
        change = _compare(name, rows, stored, cells)
        if change is not None:
            changes.append(change)
    return changes


def _compare(
    name: ColumnName, rows: AnyArray, stored: list[object], listed: list[object]
) -> ColumnChange | None:
    """Return how two columns of cells, one for each row (m,), differ; None if they do not."""
    order = np.argsort(rows, kind="stable").tolist()
    differing = []
    n_compared = 0
    has_all_cells = _count_texts(stored) == _count_texts(listed)
    for place in order:
        has_cells = not _is_blank(stored[place]) and not _is_blank(listed[place])
        if not has_cells and not has_all_cells:
            continue
        n_compared += 1
        if not are_alike(stored[place], listed[place]):
            differing.append(place)
    if not differing:
        return None
    first = differing[0]
    contradicting = [int(rows[place]) for place in differing]
    return ColumnChange(name, contradicting, n_compared, listed[first], stored[first])


def _count_texts(cells: list[object]) -> Counter[str]:
    """Return how often a column has each text; blanks are one."""
    return Counter("" if _is_blank(cell) else _text(cell) for cell in cells)


def are_alike(stored: object, listed: object) -> bool:
    """Return whether a cell of a list is that of the table, as a spreadsheet may rewrite it.

    >>> are_alike("007", 7.0), are_alike("2024-01-30", "30.01.2024 00:00")
    (True, True)
    >>> are_alike("N12", "N5"), are_alike(12, 21)
    (False, False)
    """
    if _is_blank(stored) or _is_blank(listed):
        return _is_blank(stored) and _is_blank(listed)
    text = _text(stored)
    other = _text(listed)
    if text == other or (len(other) >= LONGEST_CELL and text.startswith(other)):
        return True
    number = _number(text)
    other_number = _number(other)
    if number is not None and other_number is not None:
        return _are_equal_numbers(number, other_number)
    if _are_same_day(text, other):
        return True
    if number is None and other_number is None:
        letters = _plain_letters(text)
        return len(letters) >= FEWEST_LETTERS and letters == _plain_letters(other)
    return False


def _is_blank(cell: object) -> bool:
    """Return whether a cell says nothing: it is empty, such as "n.d.", or shows an error."""
    if pd.api.types.is_scalar(cell) and pd.isna(cell):
        return True
    text = _text(cell)
    return text in numbers.HOLES or FAILED.fullmatch(text) is not None


def _text(cell: object) -> str:
    """Return a cell as text, with single blanks and without capitals."""
    if isinstance(cell, float) and math.isfinite(cell) and cell == round(cell):
        return str(int(cell))
    return " ".join(unicodedata.normalize("NFC", str(cell)).split()).casefold()


def _plain_letters(text: str) -> str:
    """Return the letters of a text that every encoding has; "" if it has none but digits."""
    letters = re.sub(r"[^0-9a-z]", "", text)
    return "" if letters.isdecimal() else letters


def _number(text: str) -> float | None:
    """Return the number that a text is, whatever its decimal sign; None if it is none."""
    plain = text.removesuffix("%").strip().replace("\u2212", "-")
    for written in (plain, plain.replace(",", ".")):
        try:
            value = float(written)
        except ValueError:
            continue
        if not math.isfinite(value):
            return None
        return value / 100.0 if text.endswith("%") else value
    return None


def _are_equal_numbers(stored: float, listed: float) -> bool:
    """Return whether a number is another one, or this one with fewer digits."""
    if stored == listed:
        return True
    if min(abs(stored), abs(listed)) >= FIRST_SHORTENED:
        if listed == float(f"{stored:.5e}"):
            return True
        unit = 10 ** (len(str(abs(int(stored)))) - KEPT_DIGITS)
        # Further digits are zeros, whether rounded or cut off.
        return unit > 1 and abs(stored - listed) < 1.1 * unit
    if f"{stored:.9g}" == f"{listed:.9g}" and stored != round(stored):
        return True
    if stored == round(stored):
        return False
    decimals = len(f"{listed:.12f}".rstrip("0").partition(".")[2])
    return abs(round(stored, decimals) - listed) < 0.1 ** (decimals + 3)


def _are_same_day(text: str, other: str) -> bool:
    """Return whether two texts can be one moment, its seconds aside."""
    moments = _moments(text)
    others = _moments(other)
    if moments and not others:
        others = _serial_moments(other)
    if others and not moments:
        moments = _serial_moments(text)
    return bool(moments & others)


def _moments(text: str) -> set[datetime.datetime]:
    """Return the moments that a text can be: 03.04.2024 is a day of April, or of March."""
    clock = CLOCK.fullmatch(text)
    if clock is not None:
        return _times(clock)
    match = DATE.fullmatch(_month_as_number(text))
    if match is None:
        return set()
    first = match["first"]
    second = match["second"]
    third = match["third"]
    hour = int(match["hour"] or 0)
    minute = int(match["minute"] or 0)
    orders = [(third, second, first), (third, first, second), (first, second, third)]
    moments = set()
    for year, month, day in orders:
        years = [int(year)]
        if len(year) <= 2:
            years = [1900 + int(year), 2000 + int(year)]
        for full_year in years:
            try:
                moment = datetime.datetime(full_year, int(month), int(day), hour, minute)
            except ValueError:
                continue
            moments.add(moment)
    return moments


def _times(clock: re.Match[str]) -> set[datetime.datetime]:
    """Return a time of day, as one of day zero."""
    hour = int(clock["hour"])
    if clock["half"]:
        hour = hour % 12 + 12 * clock["half"].endswith("pm")
    if hour > 23 or int(clock["minute"]) > 59:
        return set()
    return {DAY_ZERO.replace(hour=hour, minute=int(clock["minute"]))}


def _month_as_number(text: str) -> str:
    """Return a date such as "30 jan 2024" with its month as a number; other texts as they are."""
    if len(text) > LONGEST_DATE or not any(letter.isdecimal() for letter in text):
        return text
    parts = PARTS_OF_DATE.findall(in_english(pd.Series([text])).iloc[0])
    words = [part for part in parts if part in ENGLISH]
    digits = [part for part in parts if part.isdecimal()]
    if len(parts) != 3 or len(words) != 1 or len(digits) != 2:
        return text
    month = ENGLISH.index(words[0]) + 1
    day, year = digits
    if len(day) == 4:
        day, year = digits[::-1]
    return f"{day}.{month}.{year}"


def _serial_moments(text: str) -> set[datetime.datetime]:
    """Return the moment that a number is in a spreadsheet, its seconds left out or rounded."""
    number = _number(text)
    if number is None or not 0.0 <= number <= 100_000.0:
        return set()
    minutes = number * 24 * 60
    return {DAY_ZERO + MINUTE * math.floor(minutes + 1e-6), DAY_ZERO + MINUTE * round(minutes)}
