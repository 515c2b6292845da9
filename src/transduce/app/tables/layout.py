"""Where a table begins and ends in a sheet, or in lines of text.

Files as people keep them have titles above the names, two rows of names, an empty first column,
rows of units, blank rows, totals and footnotes below. Rows are looked at as they stand: a title
fills its first cell alone, names are texts above data, a total sums or averages what is above it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from transduce.core.words import OptionError, counted, option, quoted

Cell = object  # a text, a number, a date, None if it is empty
Rows = Sequence[Sequence[Cell]]

MOST_ABOVE = 40  # rows among which the names are looked for
MOST_BELOW = 40  # rows at the end among which totals and footnotes are looked for
LOOKED_AT = 200  # rows that tell how wide a table is
SPARSE = 0.5  # a row with fewer cells than this share of a usual one may be a title
NEARLY_EQUAL = 1e-6  # relative difference up to which a number is the sum of others
TOTALS = re.compile(
    r"(grand |sub)?(total|sum|mean|average|avg|median|count|n)\b.*|"
    r"(gesamt|summe|mittelwert|durchschnitt|insgesamt|moyenne|somme|totale?|media|suma|promedio)"
    r"\b.*",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[-+(]?\s*[\d.,'\s]*\d[\d.,'\s]*\s*[%)]?")


@dataclass(frozen=True)
class LayoutRequest:
    """What the user says about where a table is; numbers of rows count from 1, as files do.

    Attributes
    ----------
    header : int, optional
        The row that holds the names of the columns; 0 if there is none.
    first, last : int, optional
        The first and the last row of the data.
    """

    header: int | None = None
    first: int | None = None
    last: int | None = None

    @classmethod
    def read(cls, header: int | None, skip: int | None, rows: str | None) -> LayoutRequest:
        """Return what options say; an OptionError in words if they contradict each other."""
        if header is not None and skip is not None:
            raise OptionError(
                f"{option('header')} and {option('skip')} say the same: leave one of them out."
            )
        if skip is not None:
            header = skip + 1
        if rows is None:
            return cls(header)
        ends = re.fullmatch(r"\s*(\d*)\s*:\s*(\d*)\s*", rows)
        if ends is None:
            raise OptionError(
                f"{quoted(rows)} names no rows: write the first and the last, such as 5:120, or 5:."
            )
        first = int(ends[1]) if ends[1] else None
        last = int(ends[2]) if ends[2] else None
        if first is not None and last is not None and first > last:
            raise OptionError(f"The first of the rows {rows} comes after the last.")
        return cls(header, first, last)

    @property
    def flags(self) -> dict[str, object]:
        """The options of the command line that say it."""
        flags: dict[str, object] = {}
        if self.header is not None:
            flags["header"] = self.header
        if self.first is not None or self.last is not None:
            flags["rows"] = f"{self.first or ''}:{self.last or ''}"
        return flags


AUTOMATIC = LayoutRequest()


@dataclass(frozen=True, eq=False)
class Layout:
    """Where a table is among rows.

    Attributes
    ----------
    header : tuple of int
        Positions of the rows that hold names of groups, names and units; empty if there are none.
    names_at : int
        Position of the row with the names of the columns; -1 if there is none.
    rows : list of int
        Positions of the rows of the data, ascending.
    columns : list of int
        Positions of the columns.
    names : list of str
        Of the columns.
    notes : list of str
        What was left out, and how to say otherwise.
    """

    header: tuple[int, ...]
    names_at: int
    rows: list[int]
    columns: list[int]
    names: list[str]
    notes: list[str] = field(default_factory=list)


class Header(NamedTuple):
    """Positions of the rows above the data; None where there is no such row."""

    names: int | None
    groups: int | None = None
    units: int | None = None

    @property
    def rows(self) -> tuple[int, ...]:
        """All of them, from above."""
        return tuple(row for row in (self.groups, self.names, self.units) if row is not None)


def find_layout(rows: Rows, request: LayoutRequest = AUTOMATIC) -> Layout:
    """Return where the table is; a ValueError goes on from the name of the file."""
    if not any(map(has_value, rows)):
        raise ValueError("is empty: there is no table in it")
    notes: list[str] = []
    header = _find_header(rows, request, notes)
    first = header.rows[-1] + 1 if header.rows else 0
    last = len(rows) - 1
    if request.first is not None:
        first = request.first - 1
    if request.last is not None:
        last = min(request.last - 1, last)
    if first > last + 1 or first < 0:
        raise ValueError(f"has {counted(len(rows), 'row')}, none of which is among those named")
    if request.last is None:
        last = _find_end(rows, first, last, notes)
    data = [row for row in range(first, last + 1) if has_value(rows[row])]
    # A line of text without a sign is no row; one of a sheet, or of delimiters alone, is blank.
    n_blank = sum(len(rows[row]) > 0 for row in range(first, last + 1)) - len(data)
    if n_blank:
        notes.append(f"{counted(n_blank, 'blank row')} between others were left out.")
    columns = _find_columns(rows, header.rows, data)
    names = _make_names(rows, header, columns, notes)
    names_at = -1 if header.names is None else header.names
    return Layout(header.rows, names_at, data, columns, names, notes)


def filled_places(row: Sequence[Cell]) -> list[int]:
    """Return which cells of a row are not empty."""
    return [place for place, cell in enumerate(row) if not is_empty(cell)]


def has_value(row: Sequence[Cell]) -> bool:
    """Return whether a cell of a row is not empty."""
    for cell in row:  # noqa: SIM110 (half the time of a generator, and each row is asked)
        if not is_empty(cell):
            return True
    return False


def is_empty(cell: Cell) -> bool:
    """Return whether a cell holds nothing, or blanks alone."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def is_number(cell: Cell) -> bool:
    """Return whether a cell holds a number, or a text that is one."""
    if isinstance(cell, str):
        return _NUMBER.fullmatch(cell.strip()) is not None
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _is_name(cell: Cell) -> bool:
    """Return whether a cell may be the name of a column: a text, or a whole number as years are."""
    if isinstance(cell, str):
        return not is_number(cell)
    return False


# --------------------------------------------------------------------------------------- the names


def _find_header(rows: Rows, request: LayoutRequest, notes: list[str]) -> Header:
    """Return the rows that hold the names."""
    if request.header == 0:
        return Header(None)
    if request.header is not None:
        if request.header > len(rows):
            raise ValueError(
                f"has {counted(len(rows), 'row')}: there is no row {request.header} with names"
            )
        return Header(request.header - 1)
    width = _usual_width(rows)
    first = _first_wide_row(rows, width)
    if first is not None and _is_group_row(rows, first):
        first += 1
    if not first:
        return _with_units(rows, Header(0), notes)
    if not _looks_like_names(rows, first, width):
        return Header(0)
    header = Header(first)
    if _is_group_row(rows, first - 1):
        header = Header(first, groups=first - 1)
        notes.append(f"Names of columns begin with those of their groups, in row {first}.")
    above = [place for place in range(header.rows[0]) if has_value(rows[place])]
    if above:
        notes.append(
            f"{counted(len(above), 'row')} above the names of the columns, which are in row "
            f"{first + 1}, were left out; {option('header', 1)} takes the first row instead."
        )
    return _with_units(rows, header, notes)


def _usual_width(rows: Rows) -> int:
    """Return how many cells most rows fill."""
    counts = [len(filled_places(row)) for row in rows[:LOOKED_AT]]
    counts = [count for count in counts if count]
    return int(np.median(counts))


def _first_wide_row(rows: Rows, width: int) -> int | None:
    """Return the first row that is no title; None if every row could be one."""
    if width < 2:
        return None
    for place, row in enumerate(rows[:MOST_ABOVE]):
        filled = filled_places(row)
        if len(filled) > SPARSE * width:
            return place
        # A title fills its first cells, or one; names of which some are missing need not.
        is_title = len(filled) <= 1 or filled == list(range(len(filled)))
        if not is_title and not _is_group_row(rows, place):
            return place
    return None


def _looks_like_names(rows: Rows, place: int, width: int) -> bool:
    """Return whether a row holds names: mostly different texts, above rows that are as wide."""
    cells = [rows[place][column] for column in filled_places(rows[place])]
    n_names = sum(_is_name(cell) for cell in cells)
    texts = [str(cell).strip().casefold() for cell in cells]
    below = rows[place + 1 : place + 4]
    as_wide = [len(filled_places(row)) > SPARSE * width for row in below]
    different = len(set(texts)) >= 0.8 * len(texts)
    return n_names >= 0.7 * len(cells) and different and any(as_wide)


def _is_group_row(rows: Rows, place: int) -> bool:
    """Return whether a row holds names of groups of columns, above the row with their names."""
    if place + 1 >= len(rows):
        return False
    filled = filled_places(rows[place])
    below = filled_places(rows[place + 1])
    if len(filled) < 2 or len(filled) >= len(below) or len(below) < 3:
        return False
    texts = [rows[place][column] for column in filled]
    names = [rows[place + 1][column] for column in below]
    return all(map(_is_name, texts)) and all(map(_is_name, names)) and max(filled) <= max(below)


def _with_units(rows: Rows, header: Header, notes: list[str]) -> Header:
    """Return the header with the row below the names, if it holds their units."""
    assert header.names is not None
    place = header.names + 1
    if place + 3 >= len(rows) or not has_value(rows[place]):
        return header
    below = rows[place + 1 : place + 11]
    n_numeric = 0
    n_units = 0
    for column in filled_places(rows[header.names]):
        cells = [row[column] for row in below if _has_cell(row, column)]
        if len(cells) < 3 or not all(map(is_number, cells)):
            continue
        n_numeric += 1
        unit = rows[place][column] if column < len(rows[place]) else None
        n_units += isinstance(unit, str) and _is_unit(unit)
    if not n_numeric or n_units < 0.7 * n_numeric:
        return header
    notes.append(f"Row {place + 1} holds units, not data, and was left out.")
    return header._replace(units=place)


_UNIT = re.compile(r"[\[(].{1,15}[\])]|[^\W\d]{1,8}(/[\w³²]{1,8})+|%|°[CF]", re.UNICODE)
_PLAIN_UNITS = {
    *("m", "cm", "mm", "km", "nm", "µm", "m²", "m³", "g", "kg", "mg", "µg", "ng", "pg", "t"),
    *("l", "ml", "dl", "fl", "s", "ms", "min", "h", "d", "yr", "years", "days", "K", "Pa", "kPa"),
    *("bar", "V", "mV", "A", "mA", "W", "kW", "kWh", "Hz", "kHz", "J", "kJ", "kcal", "mol"),
    *("mmol", "µmol", "M", "mM", "µM", "U", "IU", "mmHg", "bpm", "EUR", "USD", "GBP", "CHF"),
}


def _is_unit(text: str) -> bool:
    word = text.strip()
    return word in _PLAIN_UNITS or _UNIT.fullmatch(word) is not None


def _make_names(rows: Rows, header: Header, columns: list[int], notes: list[str]) -> list[str]:
    """Return a name for each column, after the name of its group if it has one."""
    if header.names is None:
        return [f"column {place + 1}" for place in range(len(columns))]
    names = [_cell_text(rows[header.names], column) for column in columns]
    if header.groups is not None:
        groups = _carried_right([_cell_text(rows[header.groups], column) for column in columns])
        pairs = zip(groups, names, strict=True)
        names = [f"{group.strip()} {name.strip()}".strip() for group, name in pairs]
    unnamed = [place for place, name in enumerate(names) if not name.strip()]
    for place in unnamed:
        names[place] = f"column {columns[place] + 1}"
    if unnamed:
        listed = ", ".join(repr(names[place]) for place in unnamed[:5])
        notes.append(f"{counted(len(unnamed), 'column')} without a name: called {listed}.")
    return names


def _cell_text(row: Sequence[Cell], column: int) -> str:
    if column >= len(row) or is_empty(row[column]):
        return ""
    cell = row[column]
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return str(cell)


def _carried_right(texts: list[str]) -> list[str]:
    """Return names of groups, each repeated up to the next: merged cells fill only their first."""
    carried = ""
    filled = []
    for text in texts:
        carried = text or carried
        filled.append(carried)
    return filled


# ----------------------------------------------------------------------------- the end, the columns


def _find_end(rows: Rows, first: int, last: int, notes: list[str]) -> int:
    """Return the last row of the data: totals and footnotes below it are left out."""
    while last > first and not filled_places(rows[last]):
        last -= 1
    width = _usual_width(rows[first : last + 1] or rows)
    end = last
    if width >= 3:
        for place in range(last, max(first + 2, last - MOST_BELOW), -1):
            filled = filled_places(rows[place])
            is_note = len(filled) == 1 and isinstance(rows[place][filled[0]], str)
            if not filled or (is_note and not is_number(rows[place][filled[0]])):
                end = place - 1
                continue
            if not _is_total(rows, first, place):
                break
            end = place - 1
    while end > first and not filled_places(rows[end]):
        end -= 1
    left_out = [place for place in range(end + 1, last + 1) if filled_places(rows[place])]
    if left_out:
        place = left_out[0]
        cell = rows[place][filled_places(rows[place])[0]]
        notes.append(
            f"{counted(len(left_out), 'row')} below the data, from row {place + 1} "
            f"({quoted(cell, 30)}) on, were left out as totals or notes; "
            f"{option('rows', f'{first + 1}:{last + 1}')} keeps them."
        )
    return end


def _is_total(rows: Rows, first: int, place: int) -> bool:
    """Return whether a row sums or averages those above it, or says so beside a blank row."""
    row = rows[place]
    filled = filled_places(row)
    label = row[filled[0]]
    says_so = isinstance(label, str) and TOTALS.fullmatch(label.strip()) is not None
    numbers = [column for column in filled if _as_number(row[column]) is not None]
    if not numbers or not says_so:
        return False
    n_matching = 0
    for column in numbers:
        above = [_as_number(other[column]) for other in rows[first:place] if column < len(other)]
        values = np.array([value for value in above if value is not None])
        value = _as_number(row[column])
        if len(values) and value is not None and _sums_up(value, values):
            n_matching += 1
    after_blank = not filled_places(rows[place - 1])
    return after_blank or n_matching >= max(1, len(numbers) // 2)


def _sums_up(value: float, values: np.ndarray) -> bool:
    """Return whether a number is the sum, the mean, the median or the count of others."""
    candidates = (values.sum(), values.mean(), float(np.median(values)), float(len(values)))
    scale = NEARLY_EQUAL * max(float(np.abs(values).sum()), 1e-300)
    rounded = any(np.isclose(value, candidate, rtol=5e-3) for candidate in candidates)
    return rounded or any(abs(value - candidate) <= scale for candidate in candidates)


def _as_number(cell: Cell) -> float | None:
    if isinstance(cell, bool) or is_empty(cell):
        return None
    if isinstance(cell, int | float):
        return float(cell)
    if isinstance(cell, str) and is_number(cell):
        try:
            return float(cell.strip().replace(",", ".").replace(" ", ""))
        except ValueError:
            return None
    return None


def _find_columns(rows: Rows, header: tuple[int, ...], data: list[int]) -> list[int]:
    """Return the columns that have a name or a value: empty ones at the sides are no columns."""
    used: set[int] = set()
    for row in header:
        used.update(filled_places(rows[row]))
    width = max((len(rows[row]) for row in (*header, *data)), default=0)
    for column in range(width):
        if column not in used and any(_has_cell(rows[row], column) for row in data):
            used.add(column)
    if not used:
        return []
    return list(range(min(used), max(used) + 1))


def _has_cell(row: Sequence[Cell], column: int) -> bool:
    return column < len(row) and not is_empty(row[column])
