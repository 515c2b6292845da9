"""Formulas of a workbook: which columns of a sheet they point at."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

_TEXT = re.compile(r'"(?:[^"]|"")*"')  # in which nothing is a reference
_SHEET = r"(?:'((?:[^']|'')+)'|([^\s'!=+\-*/^&<>(),;:{}\[\]]+))!"  # its name, quoted or not
_CELL = r"\$?([A-Za-z]{1,3})\$?\d+"
_COLUMN = r"\$?([A-Za-z]{1,3})"
# A cell, a range of cells, or whole columns; not a function such as LOG10(, and not a part of a
# name.
_REFERENCE = re.compile(
    rf"(?:{_SHEET})?(?<![\w.$])(?:{_CELL}(?::{_CELL})?|{_COLUMN}:{_COLUMN})(?![\w(.])"
)
_ROWS = re.compile(r"(?<![\w.$:])\$?\d+:\$?\d+(?![\w.:])")  # whole rows, such as 2:2
_IN_TABLE = re.compile(r"\[@?\[?([^\[\]@#]+)\]?")  # Prices[Amount], [@Amount], [@[Net amount]]
# What these functions point at is computed: it may be any cell.
_ANYWHERE = re.compile(r"(?i)(?<![\w.])(?:INDIRECT|OFFSET)\s*\(")


class _Pointed(NamedTuple):
    """What formulas point at: columns of the sheet that is filled, and other sheets."""

    columns: set[str]
    sheets: set[str]


def columns_in_formulas(sheet: Any, names: list[str], n_rows: int) -> dict[str, set[str]]:
    """Return the columns that the formulas of each column of a sheet point at.

    They are those below a first row of names. Of a cell on another sheet it counts what the
    formulas of that sheet point at, and so on.
    """
    pointed: dict[str, _Pointed] = {}
    reader = _Reader(sheet, names)
    for cells in sheet.iter_rows(min_row=2, max_row=n_rows, max_col=len(names)):
        for cell, name in zip(cells, names, strict=False):
            if cell.data_type == "f":
                found = reader.read(cell)
                known = pointed.setdefault(name, _Pointed(set(), set()))
                known.columns.update(found.columns)
                known.sheets.update(found.sheets)
    return {name: found.columns | reader.by_way_of(found.sheets) for name, found in pointed.items()}


class _Reader:
    """Reads the formulas of a workbook one of whose sheets is filled."""

    def __init__(self, sheet: Any, names: list[str]) -> None:
        self.sheet = sheet
        self.names = names
        self.named = _named_ranges(sheet)
        # Many rows have the same formula, but for its numbers.
        self.known: dict[tuple[str, str], _Pointed] = {}
        self.of_sheets: dict[str, _Pointed] = {}

    def read(self, cell: Any) -> _Pointed:
        """Return what the formula in a cell points at."""
        formula = str(getattr(cell.value, "text", None) or cell.value)  # of arrays the text
        title = cell.parent.title
        plain = "[" not in formula and not self.named  # no names in it whose numbers matter
        alike = (title, re.sub(r"\d+", "1", formula) if plain else formula)
        if alike not in self.known:
            whole = _with_ranges(formula, self.named)
            self.known[alike] = _pointed_at(whole, title, self.sheet.title, self.names)
        return self.known[alike]

    def by_way_of(self, titles: set[str]) -> set[str]:
        """Return the columns that formulas of other sheets point at, also by way of more sheets."""
        columns: set[str] = set()
        waiting = list(titles)
        seen = set(titles)
        while waiting:
            found = self._of_sheet(waiting.pop())
            columns |= found.columns
            waiting += found.sheets - seen
            seen |= found.sheets
        return columns

    def _of_sheet(self, title: str) -> _Pointed:
        """Return what all formulas of another sheet point at; nothing if there is no such sheet."""
        if title not in self.of_sheets:
            columns: set[str] = set()
            sheets: set[str] = set()
            others = [other for other in self.sheet.parent.worksheets if other.title == title]
            for cells in (row for other in others for row in other.iter_rows()):
                for cell in cells:
                    if cell.data_type == "f":
                        found = self.read(cell)
                        columns |= found.columns
                        sheets |= found.sheets
            self.of_sheets[title] = _Pointed(columns, sheets)
        return self.of_sheets[title]


def pointing_at(column: Any, formulas: dict[str, set[str]]) -> list[str]:
    """Return the columns whose formulas point at a column, or at one that does, and so on."""
    columns: list[str] = []
    reached = {column}
    while True:
        more = [
            name for name, pointed in formulas.items() if name not in reached and pointed & reached
        ]
        if not more:
            return columns
        columns += more
        reached |= {*more}


def _named_ranges(sheet: Any) -> dict[str, str]:
    """Return the names that a workbook and a sheet give to ranges of cells, and these ranges."""
    named: dict[str, str] = {}
    for owner in (sheet.parent, sheet):
        ranges = getattr(owner, "defined_names", None) or {}
        named |= {
            name: str(getattr(named_range, "attr_text", "") or "")
            for name, named_range in ranges.items()
        }
    return named


def _with_ranges(formula: str, named: dict[str, str]) -> str:
    """Return a formula with the ranges behind it whose names occur in it."""
    words = {word.casefold() for word in re.findall(r"[^\W\d][\w.]*", _TEXT.sub('""', formula))}
    used = [cells for name, cells in named.items() if name.casefold() in words]
    return " ".join([formula, *used])


def _pointed_at(
    formula: str,
    home: str,
    title: str,
    names: list[str],
) -> _Pointed:
    """Return what a formula on the sheet `home` points at: columns of `title`, and other sheets."""
    formula = _TEXT.sub('""', formula)
    is_of_rows = _ROWS.search(formula) is not None and (home == title or title in formula)
    if is_of_rows or _ANYWHERE.search(formula):
        return _Pointed(set(names), set())
    columns: set[str] = set()
    sheets: set[str] = set()
    for reference in _REFERENCE.finditer(formula):
        quoted, plain, *letters = reference.groups()
        where = quoted.replace("''", "'") if quoted is not None else plain
        if where is None:
            where = home
        if where != title:
            sheets.add(where)
            continue
        first, last = letters[:2] if letters[0] else letters[2:4]
        start = _place(first)
        end = start if last is None else _place(last)
        columns |= {*names[min(start, end) - 1 : max(start, end)]}
    in_tables = {name.strip() for name in _IN_TABLE.findall(formula)}
    return _Pointed(columns | (in_tables & set(names)), sheets - {home})


def _place(letters: str) -> int:
    """Return the number of a column, from 1 on, by its letters."""
    place = 0
    for letter in letters.upper():
        place = 26 * place + ord(letter) - ord("A") + 1
    return place
