"""Formulas of a workbook: which columns of a sheet they point at."""

from __future__ import annotations

import re
from typing import Any

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


def columns_in_formulas(sheet: Any, names: list[str], n_rows: int) -> dict[str, set[str]]:
    """Return the columns that the formulas of each column of a sheet point at.

    They are those below a first row of names.
    """
    places = {name: place for place, name in enumerate(names, start=1)}
    pointed: dict[str, set[str]] = {}
    named = _named_ranges(sheet)
    by_formula: dict[str, set[str]] = {}  # many rows have the same one, but for its numbers
    for cells in sheet.iter_rows(min_row=2, max_row=n_rows, max_col=len(names)):
        for cell, name in zip(cells, names, strict=False):
            if cell.data_type != "f":
                continue
            formula = str(getattr(cell.value, "text", None) or cell.value)  # of arrays the text
            plain = "[" not in formula and not named  # no names in it whose numbers matter
            alike = re.sub(r"\d+", "1", formula) if plain else formula
            if alike not in by_formula:
                whole = _with_ranges(formula, named)
                by_formula[alike] = _columns_in(whole, sheet, names, places)
            pointed.setdefault(name, set()).update(by_formula[alike])
    return pointed


def pointing_at(column: Any, formulas: dict[str, set[str]]) -> list[str]:
    """Return the columns whose formulas point at a column, or at one that does, and so on."""
    found: list[str] = []
    reached = {column}
    while True:
        more = [
            name for name, pointed in formulas.items() if name not in reached and pointed & reached
        ]
        if not more:
            return found
        found += more
        reached |= {*more}


def _named_ranges(sheet: Any) -> dict[str, str]:
    """Return the names that a workbook and a sheet give to ranges of cells, and these ranges."""
    named: dict[str, str] = {}
    for owner in (sheet.parent, sheet):
        ranges = getattr(owner, "defined_names", None) or {}
        named |= {name: str(getattr(one, "attr_text", "") or "") for name, one in ranges.items()}
    return named


def _with_ranges(formula: str, named: dict[str, str]) -> str:
    """Return a formula with the ranges behind it whose names occur in it."""
    words = {word.casefold() for word in re.findall(r"[^\W\d][\w.]*", _TEXT.sub('""', formula))}
    used = [cells for name, cells in named.items() if name.casefold() in words]
    return " ".join([formula, *used])


def _columns_in(formula: str, sheet: Any, names: list[str], places: dict[str, int]) -> set[str]:
    """Return the columns of a sheet that one formula points at."""
    formula = _TEXT.sub('""', formula)
    if _ROWS.search(formula):
        return set(names)
    pointed: set[str] = set()
    for reference in _REFERENCE.finditer(formula):
        quoted, plain, *letters = reference.groups()
        where = quoted.replace("''", "'") if quoted is not None else plain
        if where is not None and where != sheet.title:
            continue
        first, last = (letters[0], letters[1]) if letters[0] else (letters[2], letters[3])
        start = _place(first)
        end = start if last is None else _place(last)
        pointed |= {*names[min(start, end) - 1 : max(start, end)]}
    in_tables = {name.strip() for name in _IN_TABLE.findall(formula)}
    return pointed | {name for name in in_tables if name in places}


def _place(letters: str) -> int:
    """Return the number of a column, from 1 on, by its letters."""
    place = 0
    for letter in letters.upper():
        place = 26 * place + ord(letter) - ord("A") + 1
    return place
