"""Where a table begins and ends in a sheet, or in lines of text.

Files as people keep them have titles above the names, two rows of names, an empty first column,
rows of units, blank rows, totals and footnotes below. Rows are looked at as they stand: a title
fills its first cell alone, names are texts above data, a total sums or averages what is above it.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from transduce.app.tables import amounts
from transduce.app.tables.decimal_signs import sign_of_column, sign_of_table
from transduce.app.tables.numbers import HOLES, LIMIT, NEARLY, number_of
from transduce.core.types import AnyArray, Array
from transduce.core.words import OptionError, counted, listed_numbers, option, quoted

Cell = object  # a text, a number, a date, None if it is empty
Rows = Sequence[Sequence[Cell]]
Place = tuple[int, int]  # a row and a column, counted from 0
NOTHING_MERGED: Mapping[Place, int] = MappingProxyType({})

SIGNS = ("point", "comma")
MOST_ABOVE = 40  # rows among which the names are looked for
MOST_BELOW = 40  # rows at the end among which totals and footnotes are looked for
LOOKED_AT = 200  # rows that tell how wide a table is
FIRST_CELLS = 10  # of a column, which show whether it holds numbers
SPARSE = 0.5  # a row with fewer cells than this share of a usual one may be a title
NEARLY_EQUAL = 1e-6  # relative difference up to which a number is the sum of others
_NO_CODE = r"\b(?![-_./]?\s?\d|/)"  # MW-3 and N 12 name a well and a sample, N/A nothing
# What the label of a row says that its numbers are; a person called Max, or a row of Sweden, SE,
# among others is none.
TOTALS = {
    name: re.compile(words, re.IGNORECASE)
    for name, words in {
        "sum": (
            r"((grand |sub-?)?(total|sum)|gesamt\w*|\w*summe|insgesamt|somme|totale?|suma|"
            r"totaal|summa|razem|итого|всего|(end|opening |closing |ending )?(saldo|balance)|"
            r"(sous-|sub)totale?s?)\b.*|(∑|合計|总计|總計|合计).*"
        ),
        "mean": (
            r"(mean|average|avg|mittelwert|durchschnitt|moyenne|media|promedio|mittel|gemiddelde|"
            rf"medelvärde|średnia|среднее)\b.*|mw{_NO_CODE}.*|(ø|∅|x̄|平均).*"
        ),
        "median": r"median\b.*",
        "count": rf"count\b.*|n{_NO_CODE}.*",
        "least": rf"minimum\b.*|min{_NO_CODE}.*",
        "greatest": rf"maximum\b.*|max{_NO_CODE}.*",
        "deviation": (
            r"(stdev|stddev|standardabweichung|ecart.type|écart.type|stabw|std\.?-?abw)\b.*|"
            rf"(sd|std){_NO_CODE}.*|s\.d\..*|±\s?sd\b.*"
        ),
        "sum or deviation": r"σ.*",
        "error": rf"(se|sem){_NO_CODE}.*|±\s?(se|sem)\b.*",
        "variance": rf"variance\b.*|var{_NO_CODE}.*",
    }.items()
}
# What else a row so called may hold: one of sums has the mean of prices and shares.
ALSO = {
    "sum": ("mean", "count"),
    "mean": ("median",),
    "deviation": ("error",),
    "sum or deviation": ("sum", "deviation"),
}
FOOTNOTE = re.compile(
    r"[*†‡§#¹²³]|(notes?|source|quelle|anmerkung|hinweis|legend|legende|remark|footnote)s?\b",
    re.IGNORECASE,
)
SMALL_SHEET = 20_000  # rows up to which totals are also looked for between the rows
FEWEST_SUMMED = 3  # rows whose sum or mean a row may be
FEWEST_DESCRIBED = 3  # columns of numbers above which a row of texts describes them
FEWEST_MOMENTS = 2  # years or dates in a row that may be names; a single one may be data
_YEAR = re.compile(r"(19|20)\d\d")
_DAY = re.compile(r"\d{1,4}([./-])\d{1,2}\1\d{1,4}\b.*")
_KEY = re.compile(r"\{.*\bimportid\b.*\}", re.IGNORECASE)
_KEY_AND_VALUE = re.compile(r"[^:]{2,40}:\s+\S.*", re.DOTALL)  # as in "Date: 2024-02-12"
_MAYBE_GROUPED = re.compile(r"[^.]*(\.\d{3})*")  # 1.234 may be a thousand
_NUMBER = re.compile(r"[-+(]?\s*[\d.,'\s]*\d[\d.,'\s]*\s*[%)]?")


@dataclass(frozen=True)
class LayoutRequest:
    """What the user says about how a file is to be read; rows count from 1, as files do.

    Attributes
    ----------
    header : int, optional
        The row that holds the names of the columns; 0 if there is none.
    first, last : int, optional
        The first and the last row of the data.
    decimal : str
        The decimal sign of numbers that could have either, "point" or "comma"; "" if it is
        to be seen from the other numbers.
    """

    header: int | None = None
    first: int | None = None
    last: int | None = None
    decimal: str = ""

    @classmethod
    def read(
        cls,
        header: int | None,
        skip: int | None,
        rows: str | None,
        decimal: str | None = None,
    ) -> LayoutRequest:
        """Return what options say; an OptionError in words if they contradict each other."""
        if decimal is not None and decimal not in SIGNS:
            raise OptionError(f"{option('decimal')} is point or comma; got {decimal!r}.")
        if header is not None and skip is not None:
            raise OptionError(
                f"{option('header')} and {option('skip')} say the same: leave one of them out."
            )
        if skip is not None:
            header = skip + 1
        if rows is None:
            return cls(header, decimal=decimal or "")
        ends = re.fullmatch(r"\s*(\d*)\s*:\s*(\d*)\s*", rows)
        if ends is None:
            raise OptionError(
                f"{quoted(rows)} names no rows: write the first and the last, such as 5:120, or 5:."
            )
        first = int(ends[1]) if ends[1] else None
        last = int(ends[2]) if ends[2] else None
        if first == 0 or last == 0:
            raise OptionError(f"Rows count from 1, as in the file; got {quoted(rows)}.")
        if first is not None and last is not None and first > last:
            raise OptionError(f"The first of the rows {rows} comes after the last.")
        return cls(header, first, last, decimal or "")

    @property
    def flags(self) -> dict[str, object]:
        """The options of the command line that say it."""
        flags: dict[str, object] = {}
        if self.header is not None:
            flags["header"] = self.header
        if self.first is not None or self.last is not None:
            flags["rows"] = f"{self.first or ''}:{self.last or ''}"
        if self.decimal:
            flags["decimal"] = self.decimal
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


def find_layout(
    rows: Rows, request: LayoutRequest = AUTOMATIC, merged: Mapping[Place, int] = NOTHING_MERGED
) -> Layout:
    """Return where the table is; a ValueError goes on from the name of the file.

    Of cells that are merged to the right, the place of the first, row and column, and the last
    column are known.
    """
    if not any(map(has_value, rows)):
        raise ValueError("is empty: there is no table in it")
    notes: list[str] = []
    header = _find_header(rows, request, notes)
    if header.rows:
        first = header.rows[-1] + 1
    else:
        first = 0
    if header.rows and request.header is None and _are_keys(rows, first):
        notes.append(f"Row {first + 1} holds keys of a program and was left out.")
        first += 1
    last = len(rows) - 1
    if request.first is not None:
        first = request.first - 1
    if request.last is not None:
        last = min(request.last - 1, last)
    if first > last + 1 or first < 0:
        raise ValueError(f"has {counted(len(rows), 'row')}, none of which is among those named")
    if request.last is None:
        n_names = 0 if header.names is None else len(filled_places(rows[header.names]))
        last = _find_end(rows, first, last, n_names, notes)
    data = [row for row in range(first, last + 1) if has_value(rows[row])]
    n_data = len(data)
    data = _without_names(rows, header, data, notes)
    if request.first is None and request.last is None:
        data = _without_totals(rows, data, notes)
        _note_on_sums(rows, data, notes)
    # A line of text without a sign is no row; one of a sheet, or of delimiters alone, is blank.
    n_blank = sum(len(rows[row]) > 0 for row in range(first, last + 1)) - n_data
    if n_blank:
        were = "was" if n_blank == 1 else "were"
        notes.append(f"{counted(n_blank, 'blank row')} between others {were} left out.")
    columns = _find_columns(rows, header.rows, data)
    columns = _without_cells_beside(rows, header.rows, data, columns, notes)
    names = _make_names(rows, header, columns, merged, notes)
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


def _holds_number(cell: Cell) -> bool:
    """Return whether a cell holds a number, perhaps with a unit or a mark, or a limit."""
    if not isinstance(cell, str):
        return is_number(cell)
    text = cell.strip()
    if _DAY.fullmatch(text):
        return False
    if is_number(text):
        return True
    limit = LIMIT.fullmatch(text)
    if limit is not None:
        text = limit["rest"].strip()
    amount = amounts.amount_in(text) if any(map(str.isdigit, text)) else None
    return amount is not None and amounts.unit_of(amount) is not None


def _is_like_those_below(rows: Rows, place: int, column: int) -> bool:
    """Return whether a cell is a number with the unit that numbers below it have, as "5 EUR" is.

    Above plain numbers "24 h" may be a name.
    """
    unit = _unit_in(rows[place][column])
    if unit is None:
        return False
    below = rows[place + 1 : place + 1 + FIRST_CELLS]
    units = {_unit_in(row[column]) for row in below if _has_cell(row, column)}
    return unit in units


def _unit_in(cell: Cell) -> str | None:
    """Return the unit of a number in a cell, "" if it has none, None if it is no number."""
    if not isinstance(cell, str):
        return "" if is_number(cell) else None
    text = cell.strip()
    if not any(map(str.isdigit, text)):
        return None
    limit = LIMIT.fullmatch(text)
    return amounts.unit_of(amounts.amount_in(limit["rest"].strip() if limit else text))


def _is_filler(cell: Cell) -> bool:
    """Return whether a cell says in words or signs that it is empty."""
    return isinstance(cell, str) and cell.strip().lower() in HOLES


def _is_name(cell: Cell) -> bool:
    """Return whether a cell may be the name of a column by itself: a text that is no number."""
    if isinstance(cell, str):
        return not is_number(cell)
    return False


def _is_moment(cell: Cell) -> bool:
    """Return whether a cell holds a year or a date, which may name a column."""
    if isinstance(cell, str):
        return _YEAR.fullmatch(cell.strip()) is not None
    if isinstance(cell, dt.date):  # also one with a time
        return True
    return is_number(cell) and _YEAR.fullmatch(f"{cell:g}") is not None


def _names_in(rows: Rows, place: int) -> set[int]:
    """Return the columns of a row whose cells may be names.

    Several years or dates may name columns too, each above cells that are none.
    """
    row = rows[place]
    filled = filled_places(row)
    with_text = [column for column in filled if _is_name(row[column])]
    names = {column for column in with_text if not _is_like_those_below(rows, place, column)}
    moments = set()
    for column in set(filled) - names:
        below = rows[place + 1 : place + 1 + FIRST_CELLS]
        cells = [other[column] for other in below if _has_cell(other, column)]
        n_moments = sum(map(_is_moment, cells))
        if _is_moment(row[column]) and 2 * n_moments < len(cells):
            moments.add(column)
    texts = {_cell_text(row, column) for column in moments}
    if len(moments) >= FEWEST_MOMENTS and len(texts) > 1:
        names |= moments
    return names


def _names_below(rows: Rows, place: int) -> set[int]:
    """Return the columns of a row whose cells may be names below those of groups.

    Years in it are data, such as 1950 and 2010 calories, if each is below a name of its own.
    """
    names = _names_in(rows, place)
    moments = sorted(column for column in names if not _is_name(rows[place][column]))
    above = [text.strip() for text in _row_texts(rows[place - 1], moments)]
    if all(above) and len(set(above)) == len(above):
        return names - set(moments)
    return names


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
    start = _count_comments(rows, width)
    first = _first_wide_row(rows, width, start)
    if first is None:
        first = start
    elif _is_group_row(rows, first):
        first += 1
    if first > start and not _looks_like_names(rows, first, width):
        first = start
    first = _row_of_names(rows, first)
    if first == 0:
        return _with_second_row(rows, Header(0), notes)
    header = Header(first)
    if first > start and _is_group_row(rows, first - 1):
        header = Header(first, groups=first - 1)
        notes.append(f"Names of columns begin with those of their groups, in row {first}.")
    above = [place for place in range(header.rows[0]) if has_value(rows[place])]
    if above:
        were = "was" if len(above) == 1 else "were"
        notes.append(
            f"{counted(len(above), 'row')} above the names of the columns, which are in row "
            f"{first + 1}, {were} left out; {option('header', 1)} takes the first row instead."
        )
    return _with_second_row(rows, header, notes)


def _row_of_names(rows: Rows, first: int) -> int:
    """Return the row with the names: `first`, unless a wider one below names what it leaves open.

    Above a narrow table a title such as ``Period  01.01.2023  31.12.2024`` is nearly as wide.
    """
    filled = filled_places(rows[first])
    width = _usual_width(rows)
    n_blank = 0
    for place in range(first + 1, min(len(rows) - FEWEST_SUMMED, MOST_ABOVE)):
        if place > first + 1 and _is_data(rows, place - 1, width):
            return first
        wider = filled_places(rows[place])
        n_blank += not wider
        texts = [str(rows[place][column]).strip().casefold() for column in wider]
        is_wider = len(wider) > len(filled) or (len(wider) == len(filled) and wider > filled)
        is_full = is_wider and _covers_rows(rows, place, wider)
        if not is_full or len(set(texts)) < len(texts):
            continue
        numeric = _numeric_columns(rows, place + 2)  # the row below may have units
        numeric = [column for column in numeric if column >= wider[0]]
        all_named = set(wider) <= _names_in(rows, place)
        if not all_named or not numeric or not set(numeric) <= set(wider):
            continue
        unnamed = set(numeric) - _names_in(rows, first)
        if not unnamed and not n_blank:
            return first
        if _is_group_row(rows, first) and place == first + 1:
            return first + 1
        return place
    return first


def _is_data(rows: Rows, place: int, width: int) -> bool:
    """Return whether a row is as wide as most, and has a number where rows below it have some."""
    row = rows[place]
    filled = filled_places(row)
    if len(filled) < max(width, 2) or str(row[filled[0]]).strip().endswith(":"):
        return False
    numeric = _numeric_columns(rows, place)
    return any(column in numeric and is_number(row[column]) for column in filled)


def _covers_rows(rows: Rows, place: int, columns: list[int]) -> bool:
    """Return whether no row below has a cell beside some columns, but for one before them."""
    below = rows[place + 1 : place + 1 + LOOKED_AT]
    beside = {column for row in below for column in filled_places(row)} - set(columns)
    return not beside or (len(beside) == 1 and max(beside) < columns[0])


def _count_comments(rows: Rows, width: int) -> int:
    """Return how many rows at the beginning are comments, as ``# made by``, and no names."""
    n_rows = 0
    for place, row in enumerate(rows[:MOST_ABOVE]):
        filled = filled_places(row)
        if filled and not str(row[filled[0]]).strip().startswith(("#", "//")):
            break
        is_as_wide = len(filled) == width
        if filled and is_as_wide and not _heads_numbers(rows, place + 1):
            break
        if filled:
            n_rows = place + 1
    return n_rows if n_rows < len(rows) else 0


def _numeric_columns(rows: Rows, start: int) -> list[int]:
    """Return the columns whose first cells in the rows from `start` on are numbers, or nearly."""
    below = rows[start : start + LOOKED_AT]
    width = max(map(len, below), default=0)
    numeric = []
    for column in range(width):
        cells = (row[column] for row in below if _has_cell(row, column))
        first = list(islice((cell for cell in cells if not _is_filler(cell)), FIRST_CELLS))
        n_numbers = sum(map(_holds_number, first))
        if n_numbers >= FEWEST_SUMMED and n_numbers >= NEARLY * len(first):
            numeric.append(column)
    return numeric


def _heads_numbers(rows: Rows, place: int) -> bool:
    """Return whether a row has a name above every column of numbers, of which there are some."""
    if place >= len(rows):
        return False
    numeric = _numeric_columns(rows, place + 1)
    return bool(numeric) and set(numeric) <= _names_in(rows, place)


def _usual_width(rows: Rows) -> int:
    """Return how many cells most rows fill."""
    counts = [len(filled_places(row)) for row in rows[:LOOKED_AT]]
    counts = [count for count in counts if count]
    return int(np.median(counts))


def _first_wide_row(rows: Rows, width: int, start: int = 0) -> int | None:
    """Return the first row that is no title; None if every row could be one."""
    if width < 2:
        return None
    for place, row in enumerate(rows[start:MOST_ABOVE], start=start):
        filled = filled_places(row)
        if len(filled) > SPARSE * width:
            return place
        # A title fills its first cells, or one; names of which some are missing need not.
        # All of "Date: 2024-02-12" and the like are titles wherever the table begins.
        is_title = len(filled) <= 1 or filled == list(range(len(filled)))
        if width == 2 and filled == [1]:  # as programs name one column beside those of the rows
            is_title = False
        is_title = is_title or _is_key_and_value(rows, place)
        if not is_title and not _is_group_row(rows, place):
            return place
    return None


def _looks_like_names(rows: Rows, place: int, width: int) -> bool:
    """Return whether a row holds names: mostly different texts, above rows that are as wide."""
    cells = [rows[place][column] for column in filled_places(rows[place])]
    n_names = len(_names_in(rows, place))
    texts = [str(cell).strip().casefold() for cell in cells]
    if place > 0 and _is_group_row(rows, place - 1):
        groups = _carried_right(_row_texts(rows[place - 1], filled_places(rows[place])))
        texts = [f"{group} {text}" for group, text in zip(groups, texts, strict=True)]
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
    if _is_key_and_value(rows, place) or max(filled) > max(below):
        return False
    if set(range(filled[0], max(below) + 1)) <= set(filled):
        # Each column has a name, but for one that names the rows. Words are data then, too.
        numeric = _numeric_columns(rows, place + 2)
        if not set(numeric) & set(filled):
            return False
    all_named = set(filled) <= _names_in(rows, place)
    return all_named and set(below) <= _names_below(rows, place + 1)


def _is_key_and_value(rows: Rows, place: int) -> bool:
    """Return whether a row holds a line such as ``Study: LIPID-7``, or stands below one."""
    filled = filled_places(rows[place])
    start = filled[0] if filled else 0
    if not filled or filled != list(range(start, start + len(filled))):
        return False
    if str(rows[place][start]).strip().endswith(":"):
        return True
    if all(_KEY_AND_VALUE.fullmatch(str(rows[place][column]).strip()) for column in filled):
        return True
    above = filled_places(rows[place - 1]) if place > 0 else []
    return len(above) > 1 and above == list(range(start, start + len(above)))


def _with_second_row(rows: Rows, header: Header, notes: list[str]) -> Header:
    """Return the header with the row below the names, if that belongs to it.

    It may hold units, the names below those of groups, or descriptions.
    """
    assert header.names is not None
    with_units = _with_units(rows, header, notes)
    if with_units.units is not None or header.groups is not None:
        return with_units
    names = header.names
    place = names + 1
    if _are_types(rows, place):
        notes.append(f"Row {place + 1} names the types of the columns and was left out.")
        return header._replace(units=place)
    if _are_kinds_of_answers(rows, place):
        notes.append(f"Row {place + 1} names the kinds of answers and was left out.")
        return header._replace(units=place)
    if place + FEWEST_SUMMED >= len(rows):
        return header
    numeric = _numeric_columns(rows, place + 1)
    upper = filled_places(rows[names])
    lower = filled_places(rows[place])
    if len(numeric) < 2 or not set(lower) <= _names_below(rows, place):
        return header
    # Further columns joined below.
    numeric = [column for column in numeric if column <= max(lower, default=0)]
    if len(numeric) < 2 or not set(numeric) <= set(lower):
        return header
    columns = sorted({*upper, *lower})
    groups = _row_texts(rows[names], columns)
    both = _grouped_names(groups, _row_texts(rows[place], columns), columns, [None] * len(columns))
    if len(set(both)) < len(both):
        return header
    of_groups = _row_texts(rows[names], upper)
    is_split = len(set(of_groups)) < len(of_groups) or not set(lower) <= set(upper)
    if is_split:
        notes.append(f"Names of columns begin with those of their groups, in row {names + 1}.")
        return Header(place, groups=names)
    texts = {str(rows[place][column]).strip().casefold() for column in numeric}
    below_names = [rows[place][column] for column in numeric]
    if any(map(_is_filler, below_names)) and not any(map(_is_unit, below_names)):
        return header  # a row with empty cells
    if len(numeric) < FEWEST_DESCRIBED or len(texts) < len(numeric):
        return header
    notes.append(
        f"Row {place + 1} holds texts above columns of numbers and was left out as a description."
    )
    return header._replace(units=place)


def _with_units(rows: Rows, header: Header, notes: list[str]) -> Header:
    """Return the header with the row below the names, if it holds their units."""
    assert header.names is not None
    place = header.names + 1
    if place + 3 >= len(rows) or not has_value(rows[place]):
        return header
    numeric = _numeric_columns(rows, place + 1)
    cells = {column: rows[place][column] for column in filled_places(rows[place])}
    measured = {column: cell for column, cell in cells.items() if not _is_without_unit(cell)}
    units = [column for column, cell in measured.items() if column in numeric and _is_unit(cell)]
    short = [column for column, cell in measured.items() if column in numeric and _is_short(cell)]
    if not units:  # y and a are years beside other units, and answers alone
        return header
    n_numeric = sum(column in measured or column not in cells for column in numeric)
    n_units = len({*units, *short})
    others = [column for column, cell in measured.items() if column not in units + short]
    are_words = any(not _is_unit(cells[column]) for column in others)
    if are_words and n_units < 0.7 * n_numeric:
        return header
    notes.append(f"Row {place + 1} holds units, not data, and was left out.")
    return header._replace(units=place)


_UNIT = re.compile(
    r"[\[(].{1,15}[\])]|[^\W\d]{1,8}(/[\w³²]{1,8})+|%|°[CF]"
    r"|([x×]?\s?10(\^\d{1,2}|[⁰¹²³⁴-⁹]{1,2})|1)/[^\W\d]{1,8}"  # of counts, and rates: 1/min
)
_PLAIN_UNITS = {
    *("m", "cm", "mm", "km", "nm", "µm", "m²", "m³", "g", "kg", "mg", "µg", "ng", "pg", "t"),
    *("l", "ml", "dl", "fl", "s", "ms", "min", "h", "d", "yr", "years", "days", "K", "Pa", "kPa"),
    *("L", "mL", "dL", "fL", "mo", "wk", "weeks", "months", "Jahre", "ans", "°"),
    *("bar", "V", "mV", "A", "mA", "W", "kW", "kWh", "Hz", "kHz", "J", "kJ", "kcal", "mol"),
    *("mmol", "µmol", "M", "mM", "µM", "U", "IU", "mmHg", "bpm", "EUR", "USD", "GBP", "CHF"),
}
_SHORT_UNITS = {"y", "a"}
_NO_UNIT = {"-", "--", "–", "—", "/", "1", "[-]", "[–]", "[]", "(-)", "(–)", "[1]", "()"}
# What programs call the types of columns.
_TYPES = {
    *("string", "str", "text", "char", "character", "varchar", "object", "factor", "category"),
    *("categorical", "nominal", "ordinal", "scale", "integer", "int", "int32", "int64", "bigint"),
    *("smallint", "long", "number", "num", "numeric", "decimal", "float", "float32", "float64"),
    *("double", "real", "date", "datetime", "time", "timestamp", "boolean", "bool", "logical"),
    *("continuous", "discrete", "dbl", "chr", "lgl", "fct"),
}


def _is_unit(cell: Cell) -> bool:
    if not isinstance(cell, str) or _is_filler(cell):
        return False
    word = cell.strip()
    amount = amounts.amount_in(word)
    is_amount = amount is not None and amounts.unit_of(amount) is not None
    if amount is not None and is_amount and not amount["after"].strip().startswith("/"):
        return False  # a number, as "(EUR 5.57)"; "(1/min)" is a unit
    return word in _PLAIN_UNITS or _UNIT.fullmatch(word) is not None


def _are_types(rows: Rows, place: int) -> bool:
    """Return whether a row holds nothing but what programs call the types of columns."""
    if place + FEWEST_SUMMED >= len(rows):
        return False
    cells = [rows[place][column] for column in filled_places(rows[place])]
    words = {cell.strip().strip("<>[]()").casefold() for cell in cells if isinstance(cell, str)}
    is_above_numbers = bool(_numeric_columns(rows, place + 1))
    return len(cells) > 1 and len(words) > 1 and words <= _TYPES and is_above_numbers


# What survey programs write below a question that has a single answer.
_KINDS_OF_ANSWERS = {"response", "open-ended response", "other (please specify)"}


def _are_kinds_of_answers(rows: Rows, place: int) -> bool:
    """Return whether a row holds nothing but what survey programs write below their questions."""
    if place >= len(rows):
        return False
    cells = [rows[place][column] for column in filled_places(rows[place])]
    words = {cell.strip().casefold() for cell in cells if isinstance(cell, str)}
    return len(cells) > 1 and words <= _KINDS_OF_ANSWERS and len(words) > 0


def _are_keys(rows: Rows, place: int) -> bool:
    """Return whether a row holds nothing but what a program calls its columns, as in JSON."""
    if place >= len(rows):
        return False
    cells = [rows[place][column] for column in filled_places(rows[place])]
    return len(cells) > 1 and all(_KEY.fullmatch(str(cell).strip()) for cell in cells)


def _is_short(cell: Cell) -> bool:
    return isinstance(cell, str) and cell.strip() in _SHORT_UNITS


def _is_without_unit(cell: Cell) -> bool:
    return isinstance(cell, str) and cell.strip() in _NO_UNIT


def _make_names(
    rows: Rows,
    header: Header,
    columns: list[int],
    merged: Mapping[Place, int],
    notes: list[str],
) -> list[str]:
    """Return a name for each column, after the name of its group if it has one."""
    if header.names is None:
        return [f"column {place + 1}" for place in range(len(columns))]
    names = _row_texts(rows[header.names], columns)
    if header.groups is not None:
        groups = _row_texts(rows[header.groups], columns)
        lasts = [merged.get((header.groups, column)) for column in columns]
        names = _grouped_names(groups, names, columns, lasts)
    stripped = [name.strip() for name in names]
    if len(set(stripped)) == len(set(names)):
        names = stripped
    unnamed = [place for place, name in enumerate(names) if not name.strip()]
    for place in unnamed:
        names[place] = f"column {columns[place] + 1}"
    if unnamed:
        listed = ", ".join(repr(names[place]) for place in unnamed[:5])
        notes.append(f"{counted(len(unnamed), 'column')} without a name: called {listed}.")
    return _with_numbers(names, notes)


def _with_numbers(names: list[str], notes: list[str]) -> list[str]:
    """Return names of which those that occur several times have numbers, from left to right."""
    counts = Counter(names)
    repeated = [name for name, count in counts.items() if count > 1]
    if not repeated:
        return names
    numbered = []
    n_seen: Counter[str] = Counter()
    for name in names:
        n_seen[name] += 1
        if counts[name] > 1:
            numbered.append(f"{name} ({n_seen[name]})")
        else:
            numbered.append(name)
    if len(set(numbered)) < len(names):  # which is refused
        return names
    for name in repeated:
        names_read = [f"{name} ({number})" for number in range(1, counts[name] + 1)]
        joint = " and " if counts[name] == 2 else " to "
        notes.append(
            f"{counts[name]} columns are called {name!r}: they were read as {names_read[0]!r}"
            f"{joint}{names_read[-1]!r}, from left to right."
        )
    return numbered


def _grouped_names(
    groups: list[str],
    names: list[str],
    columns: list[int],
    lasts: Sequence[int | None],
) -> list[str]:
    """Return names of columns after those of their groups; a name may fill both rows, merged.

    A group ends at the next, or with the last of its merged columns where that is known.
    """
    carried = ""
    end: int | None = None
    grouped = []
    for group, name, column, last in zip(groups, names, columns, lasts, strict=True):
        if end is not None and column > end:
            carried = ""
        if group:
            end = last
        if group and not name:
            carried = ""
            grouped.append(group.strip())
        else:
            carried = group or carried
            grouped.append(f"{carried.strip()} {name.strip()}".strip())
    return grouped


def _row_texts(row: Sequence[Cell], columns: Sequence[int]) -> list[str]:
    return [_cell_text(row, column) for column in columns]


def _cell_text(row: Sequence[Cell], column: int) -> str:
    if column >= len(row) or is_empty(row[column]):
        return ""
    cell = row[column]
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    if isinstance(cell, dt.datetime) and cell.time() == dt.time():
        cell = cell.date()
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


def _find_end(
    rows: Rows,
    first: int,
    last: int,
    n_names: int,
    notes: list[str],
) -> int:
    """Return the last row of the data: totals and footnotes below it are left out."""
    while last > first and not filled_places(rows[last]):
        last -= 1
    width = _usual_width(rows[first : last + 1] or rows)
    end = last
    if max(width, n_names) >= 3:  # most rows may lack the value that is to be filled
        end = _before_other_table(rows, first, last, width)
        for place in range(end, max(first + 2, last - MOST_BELOW), -1):
            filled = filled_places(rows[place])
            if not filled or _is_note(rows, first, place, width):
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
        were = "was" if len(left_out) == 1 else "were"
        notes.append(
            f"{counted(len(left_out), 'row')} below the data, from row {place + 1} "
            f"({quoted(cell, 30)}) on, {were} left out as totals or notes; "
            f"{option('rows', f'{first + 1}:{last + 1}')} keeps them."
        )
    return end


def _before_other_table(rows: Rows, first: int, last: int, width: int) -> int:
    """Return the last row before a blank one below which a narrower table of its own stands."""
    numeric = set(_numeric_columns(rows, first))
    for place in range(last - 1, max(first + 2, last - MOST_BELOW), -1):
        if filled_places(rows[place]):
            continue
        below = [row for row in rows[place + 1 : last + 1] if filled_places(row)]
        narrow = all(len(filled_places(row)) <= SPARSE * width for row in below)
        if not narrow:
            return last
        head = below[0]
        texts = [column for column in filled_places(head) if _is_name(head[column])]
        if len(filled_places(head)) > 1 and numeric & set(texts):
            return place - 1
    return last


def _is_note(rows: Rows, first: int, place: int, width: int) -> bool:
    """Return whether a row below the data is a footnote: a text alone, or one with a mark."""
    row = rows[place]
    filled = filled_places(row)
    cell = row[filled[0]]
    if not isinstance(cell, str) or is_number(cell):
        return False
    text = cell.strip()
    if all(_is_filler(row[column]) for column in filled):  # a row of which nothing is known
        return False
    is_short = len(filled) < width
    near = rows[max(place - 20, first) : place]
    whole = [
        row
        for row in near
        if _has_cell(row, filled[0])
        and len(filled_places(row)) > SPARSE * width
        and not _says_total(row)
    ]
    is_category = text.casefold() in {str(other[filled[0]]).strip().casefold() for other in whole}
    may_be_note = is_short and not is_category and not _is_filler(cell)
    if may_be_note and FOOTNOTE.match(text) is not None:
        return True
    # A row that begins with its number, as P31 below P30, is a row, perhaps with empty cells.
    is_numbered = _pattern(text) in {_pattern(str(other[filled[0]])) for other in whole}
    if len(filled) > 1 and not is_numbered and _is_text_below_numbers(rows, first, place):
        return True
    if len(filled) > 1:
        is_cut = len(row) < len(rows[place - 1])
        if text.endswith(":"):  # Date: ... Signature: ...
            n_alike = sum(str(other[filled[0]]).strip().endswith(":") for other in whole)
            return n_alike < SPARSE * len(whole)
        return is_short and is_cut and len(text.split()) > 2
    return not is_numbered


def _is_text_below_numbers(rows: Rows, first: int, place: int) -> bool:
    """Return whether a row has no number, but words where all others above have numbers.

    So it is if somebody wrote on the last row who printed the table, and which page it is.
    """
    cells = {column: rows[place][column] for column in filled_places(rows[place])}
    above = rows[first:place][-LOOKED_AT:]
    widths = [len(filled_places(row)) for row in above]
    if len(above) < FEWEST_SUMMED or len(cells) > SPARSE * float(np.median(widths)):
        return False
    below_numbers = []
    for column, cell in cells.items():
        if not isinstance(cell, str) or is_number(cell):
            return False
        of_column = [row[column] for row in above if _has_cell(row, column)]
        all_numbers = bool(of_column) and all(map(is_number, of_column))
        below_numbers.append(all_numbers and cell.strip().casefold() not in HOLES)
    return any(below_numbers)


def _pattern(text: str) -> str:
    """Return the kinds of signs of a text, as ``a0`` for P31."""
    return re.sub(r"\d+", "0", re.sub(r"[^\W\d_]+", "a", text.strip()))


def _is_total(rows: Rows, first: int, place: int) -> bool:
    """Return whether a row sums or averages those above it, or says so beside a blank row."""
    row = rows[place]
    if not _says_total(row):
        return _is_without_label(rows, first, place) and _sums_exactly(rows, first, place)
    all_above = [row for row in range(first, place) if has_value(rows[row])]
    above = [row for row in all_above if not _says_total(rows[row])]
    numbers = _numbers_in(rows, place, above)
    if not numbers or not _is_mostly_numbers(row):
        return False
    after_blank = not filled_places(rows[place - 1])
    if after_blank:
        return True
    if _label_of(row) in {_label_of(rows[other]) for other in all_above}:
        return False  # a category, or one of several totals, which are looked for together
    n_matching = 0
    for column, value in numbers.items():
        values = _values_in(rows, above, column)
        rounding = _rounding(row[column])
        n_matching += len(values) > 0 and _sums_up(value, values, rounding, _said_total(row))
    return n_matching >= (len(numbers) + 1) // 2


def _says_total(row: Sequence[Cell]) -> bool:
    return _said_total(row) != ""


def _said_total(row: Sequence[Cell]) -> str:
    """Return what the label of a row says that its numbers are, "" if it does not."""
    label = _label_of(row)
    if _is_filler(label):
        return ""
    return next((name for name, pattern in TOTALS.items() if pattern.fullmatch(label)), "")


def _is_mostly_numbers(row: Sequence[Cell]) -> bool:
    """Return whether a row has at least as many numbers as words and dates beside its label."""
    others = [row[column] for column in filled_places(row)[1:]]
    n_numbers = sum(map(is_number, others))
    n_fillers = sum(map(_is_filler, others))
    return 2 * n_numbers >= len(others) - n_fillers


def _label_of(row: Sequence[Cell]) -> str:
    """Return the text in the first cell of a row that is not empty; "" if it is none."""
    label = row[filled_places(row)[0]]
    return label.strip() if isinstance(label, str) else ""


def _numbers_in(rows: Rows, place: int, others: Sequence[int]) -> dict[int, float]:
    """Return the numbers in a row, by their columns, written as in the other rows."""
    row = rows[place]
    numbers = {}
    for column in filled_places(row):
        value = _as_number(row[column], _decimal_sign(rows, [*others[:LOOKED_AT], place], column))
        if value is not None:
            numbers[column] = value
    return numbers


def _values_in(rows: Rows, places: Sequence[int], column: int) -> Array:
    """Return the numbers in a column of some rows."""
    cells = [rows[place][column] for place in places if column < len(rows[place])]
    decimal = _decimal_sign(rows, places[:LOOKED_AT], column)
    values = (_as_number(cell, decimal) for cell in cells)
    return np.array([value for value in values if value is not None])


def _decimal_sign(rows: Rows, places: Sequence[int], column: int) -> str:
    """Return the decimal sign of a column, "point" or "comma"; others show it if it does not."""
    texts = _number_texts(rows, places, column)
    if not any("," in text for text in texts) and not all(map(_MAYBE_GROUPED.fullmatch, texts)):
        return "point"
    sign = sign_of_column(texts)
    if not sign:
        width = max(len(rows[place]) for place in places)
        sign = sign_of_table(_number_texts(rows, places, other) for other in range(width))
    return sign or "point"


def _number_texts(rows: Rows, places: Sequence[int], column: int) -> AnyArray:
    """Return the texts in a column of some rows that are numbers."""
    cells = [rows[place][column] for place in places if column < len(rows[place])]
    texts = [cell for cell in cells if isinstance(cell, str) and is_number(cell)]
    return np.array(texts, dtype=object)


def _is_without_label(rows: Rows, first: int, place: int) -> bool:
    """Return whether a row holds numbers alone where those above it begin with texts."""
    row = rows[place]
    if not all(is_number(row[column]) for column in filled_places(row)):
        return False
    column = filled_places(row)[0]
    above = [other for other in rows[first : min(place, first + LOOKED_AT)] if has_value(other)]
    return bool(above) and all(has_value(other[:column]) for other in above)


def _sums_exactly(rows: Rows, first: int, place: int) -> bool:
    """Return whether each number in a row is the sum, or each the mean, of those above it."""
    if place - first < FEWEST_SUMMED:
        return False
    above = range(first, place)
    numbers = _numbers_in(rows, place, above)
    n_sums = 0
    n_means = 0
    for column, value in numbers.items():
        values = _values_in(rows, above, column)
        if len(values) < FEWEST_SUMMED or value == 0.0:
            return False
        rounding = _rounding(rows[place][column])
        total = float(values.sum())
        n_sums += abs(value - total) <= max(1e-9 * abs(total), rounding * (rounding < 0.5))
        n_means += rounding < 0.5 and abs(value - float(values.mean())) <= rounding
    return n_sums == len(numbers) or (n_means == len(numbers) and n_means > 1)


def _rounding(cell: Cell) -> float:
    """Return by how much a number may be off that was rounded to the digits in its cell."""
    if isinstance(cell, float):
        text = repr(cell)
    else:
        text = str(cell).strip().replace(",", ".")
    n_decimals = 0
    if "e" not in text:
        n_decimals = len(text.partition(".")[2])
    return 0.5 * 10.0**-n_decimals * (1.0 + 1e-9)


def _without_names(
    rows: Rows,
    header: Header,
    data: list[int],
    notes: list[str],
) -> list[int]:
    """Return the rows of the data without those that say the names again, as pages do."""
    if header.names is None or len(filled_places(rows[header.names])) < 2:
        return data
    names = rows[header.names]
    again = {place for place in data if _says_again(rows[place], names)}
    if not again:
        return data
    repeated = counted(len(again), "row repeats", "rows repeat")
    above = {place - 1 for place in again} & set(data) - again
    above = {place for place in above if _is_line_between(rows, place, data)}
    if above:  # the number of a page, or the title again
        lines = counted(len(above), "line above them", "lines above them")
        notes.append(f"{repeated} the names of the columns: left out, with {lines}.")
    else:
        notes.append(f"{repeated} the names of the columns: left out.")
    return [place for place in data if place not in again | above]


def _is_line_between(rows: Rows, place: int, data: list[int]) -> bool:
    """Return whether a row has one cell alone, which is unlike those of whole rows.

    A row that has nothing but its number, as P31 below P30, is a row with empty cells.
    """
    filled = filled_places(rows[place])
    if len(filled) > 1:
        return False
    column = filled[0]
    whole = [rows[other] for other in data if len(filled_places(rows[other])) > 1]
    patterns = {_pattern(str(row[column])) for row in whole if _has_cell(row, column)}
    return _pattern(str(rows[place][column])) not in patterns


def _says_again(row: Sequence[Cell], names: Sequence[Cell]) -> bool:
    """Return whether a row says the names again, or as many as there were before others joined."""
    n_again = 0
    for place, cell in enumerate(row):
        if is_empty(cell):
            continue
        if place >= len(names) or cell != names[place]:
            return False  # nearly every row ends here, at its first cell
        n_again += 1
    return n_again >= 2 and n_again >= SPARSE * len(filled_places(names))


def _without_totals(rows: Rows, data: list[int], notes: list[str]) -> list[int]:
    """Return the rows without totals above and between them, which say so and sum up others."""
    if len(data) > SMALL_SHEET:
        return data
    candidates = [place for place in data if _says_total(rows[place])]
    if not candidates or len(candidates) > len(data) // 3:
        return data
    others = [place for place in data if place not in set(candidates)]
    sums_up: dict[str, list[bool]] = {}
    totals = []
    began = 0
    for place in candidates:
        numbers = _numbers_in(rows, place, others)
        n_before = int(np.searchsorted(others, place))
        blocks = [others[began:n_before], others, others[:n_before]]
        began = n_before
        if not numbers:
            continue
        is_total = any(_all_sum_up(rows, place, block, numbers) for block in blocks)
        is_total = is_total and _is_mostly_numbers(rows[place])
        sums_up.setdefault(_label_of(rows[place]), []).append(is_total)
        if is_total:
            totals.append(place)
    totals = _without_names_like_totals(rows, totals)
    # A label of which most rows sum up nothing is a category, such as "average" beside "good".
    left_out = [place for place in totals if np.mean(sums_up[_label_of(rows[place])]) > 0.5]
    if not left_out:
        return data
    keep = f"{option('rows', f'{data[0] + 1}:{data[-1] + 1}')} keeps such rows."
    if len(left_out) == 1:
        notes.append(f"Row {left_out[0] + 1} sums up others and was left out; {keep}")
    else:
        listed = listed_numbers([place + 1 for place in left_out])
        notes.append(f"Rows {listed} sum up others and were left out; {keep}")
    return [place for place in data if place not in set(left_out)]


def _without_names_like_totals(rows: Rows, totals: list[int]) -> list[int]:
    """Return the rows of sums and means, and those of minima and the like beside another of them.

    Max, by himself, may be a person, and the highest grade is that of many.
    """
    kept = []
    for place in totals:
        is_sure = _said_total(rows[place]) in ("sum", "mean", "median", "sum or deviation")
        if is_sure or place - 1 in totals or place + 1 in totals:
            kept.append(place)
    return kept


def _all_sum_up(
    rows: Rows,
    place: int,
    block: list[int],
    numbers: dict[int, float],
) -> bool:
    """Return whether every number is the sum, the mean or the like of a column of some rows."""
    if len(block) < FEWEST_SUMMED:
        return False
    for column, value in numbers.items():
        values = _values_in(rows, block, column)
        rounding = _rounding(rows[place][column])
        if not len(values) or not _sums_up(value, values, rounding, _said_total(rows[place])):
            return False
    return True


def _note_on_sums(rows: Rows, data: list[int], notes: list[str]) -> None:
    """Note that the last row sums up the others, where nothing else tells it from them."""
    if len(data) <= FEWEST_SUMMED + 1:
        return
    last = data[-1]
    numbers = _numbers_in(rows, last, data[:-1])
    sums = []
    for column, value in numbers.items():
        values_above = _values_in(rows, data[:-1][:LOOKED_AT], column)
        if len(values_above) < FEWEST_SUMMED or abs(value) <= 2.0 * float(
            np.abs(values_above).max()
        ):
            continue  # most last rows, without a look at all the others
        values = _values_in(rows, data[:-1], column)
        rounded = max(_rounding(rows[last][column]), NEARLY_EQUAL * float(np.abs(values).sum()))
        if abs(value - float(values.sum())) <= rounded:
            sums.append(column)
    if sums:
        notes.append(
            f"Row {last + 1}, the last, sums up the others: if it is a total, leave it out with "
            f"{option('rows', f'{data[0] + 1}:{data[-2] + 1}')}."
        )


def _sums_up(value: float, values: np.ndarray, rounding: float, said: str) -> bool:
    """Return whether a number is the sum, the mean or what else is said of others.

    A number with digits behind its sign may be rounded to these.
    """
    statistics = _statistics(values)
    candidates = [statistics[name] for name in (said, *ALSO.get(said, ())) if name in statistics]
    scale = NEARLY_EQUAL * max(float(np.abs(values).sum()), 1e-300)
    rounded = any(np.isclose(value, candidate, rtol=5e-3) for candidate in candidates)
    if rounding < 0.5:
        rounded = rounded or any(abs(value - candidate) <= rounding for candidate in candidates)
    return rounded or any(abs(value - candidate) <= scale for candidate in candidates)


def _statistics(values: np.ndarray) -> dict[str, float]:
    """Return what may stand below numbers (n,), by its name."""
    statistics = {
        "sum": float(values.sum()),
        "mean": float(values.mean()),
        "median": float(np.median(values)),
        "count": float(len(values)),
        "least": float(values.min()),
        "greatest": float(values.max()),
    }
    if len(values) > 1:
        spread = float(values.std(ddof=1))
        statistics |= {
            "deviation": spread,
            "variance": spread**2,
            "error": spread / len(values) ** 0.5,
        }
    return statistics


def _as_number(cell: Cell, decimal: str) -> float | None:
    """Return the number in a cell, None if there is none; text has one of the decimal signs."""
    if isinstance(cell, bool) or is_empty(cell):
        return None
    if isinstance(cell, int | float):
        return float(cell)
    if not isinstance(cell, str) or not is_number(cell):
        return None
    value = number_of(cell, decimal)
    return None if math.isnan(value) else value


def _find_columns(rows: Rows, header: tuple[int, ...], data: list[int]) -> list[int]:
    """Return the columns that have a name or a value: empty ones at the sides are no columns."""
    used: set[int] = set()
    for row in header:
        used.update(filled_places(rows[row]))
    width = max((len(rows[row]) for row in (*header, *data)), default=0)
    for column in range(width):
        if column not in used and any(_has_cell(rows[row], column) for row in data):
            used.add(column)
    return sorted(used)


def _without_cells_beside(
    rows: Rows, header: tuple[int, ...], data: list[int], columns: list[int], notes: list[str]
) -> list[int]:
    """Return the columns without those of a legend or a remark beside the table.

    They have no name, an empty column separates them from those that have, and most of their cells
    are empty.
    """
    named = set[int]()
    for row in header:
        named.update(filled_places(rows[row]))
    blocks: list[list[int]] = []
    for column in columns:
        if blocks and blocks[-1][-1] == column - 1:
            blocks[-1].append(column)
        else:
            blocks.append([column])
    kept: list[int] = []
    for block in blocks:
        if not named or named.intersection(block):
            kept += block
            continue
        n_cells = max(sum(_has_cell(rows[row], column) for row in data) for column in block)
        if 2 * n_cells >= len(data):
            kept += block
            continue
        filled = (row for row in data if any(_has_cell(rows[row], column) for column in block))
        first = next(filled)
        notes.append(
            f"{counted(len(block), 'column')} without a name beside the table, with cells from "
            f"row {first + 1} on, left out: give each a name if it belongs to the table."
        )
    return kept


def _has_cell(row: Sequence[Cell], column: int) -> bool:
    return column < len(row) and not is_empty(row[column])
