"""Numbers written as text: which are there, with which decimal sign and unit, and how to write numbers back."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from transduce.core.types import AnyArray, Array

MISSING = frozenset(
    ("", "na", "n/a", "#n/a", "#na", "n.a.", "nan", "-nan", "null", "none", "<na>", "nat", "?", "#n/a n/a")
)
IN_TEXT = frozenset(
    ("", "na", "n/a", "#n/a", "nan", "<na>", "null")
)  # among words; "none" and "?" may be answers
_PLAIN = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_GROUP = {"point": r"[ ,'\u00a0\u202f]", "comma": r"[ .'\u00a0\u202f]"}
_SIGN = {"point": r"\.", "comma": ","}
_BREAK = {decimal: re.compile(group) for decimal, group in _GROUP.items()}
_NUMBER = {
    decimal: re.compile(rf"[-+]?([0-9]+|[0-9]{{1,3}}({group}[0-9]{{3}})+)?({_SIGN[decimal]}[0-9]*)?")
    for decimal, group in _GROUP.items()
}
_AMOUNT = re.compile(
    r"(?P<before>[^\d+\-.,]*)(?P<number>[-+]?[\d.,][\d.,' \u00a0\u202f]*)(?P<after>.*)", re.S
)
_BEFORE = re.compile(r"[^\w\s(]?|[A-Z]{3}|[A-Z]{0,2}\$")
_AFTER = re.compile(r"[^\d\s]{0,8}")


@dataclass(frozen=True, eq=False)
class TextNumbers:
    """Numbers found in texts."""

    values: Array  # (n,) the numbers; NaN where the text is not a number, or missing
    decimal: str = "point"  # the sign before the fraction
    unit: str = ""  # what is written before or after all of them, such as "EUR" or "%"


def is_missing(texts: AnyArray) -> AnyArray:
    """Return where texts are missing: None, NaN, or what tables write for it ("", NA, n/a, NaN, null, None, ?)."""
    return np.array(
        [not isinstance(text, str) or text.strip().lower() in MISSING for text in texts], dtype=bool
    )


def find_numbers(texts: object, prefer: str = "point") -> TextNumbers:
    """Return the numbers in texts, under the reading (decimal sign, unit) by which most of them are numbers.

    Notes
    -----
    One reading holds for all: a comma is the decimal sign if more texts are numbers that way.
    """
    given = np.asarray(pd.Series(texts, dtype=object), dtype=object)
    present = ~is_missing(given)
    plain = [bool(_PLAIN.fullmatch(text.strip())) for text in given[present]]
    values = np.full(len(given), np.nan)
    if all(plain):
        values[present] = [float(text) for text in given[present]]
        return TextNumbers(values)
    amounts = [_AMOUNT.fullmatch(text.strip()) for text in given[present]]
    units = [_unit(match) for match in amounts]
    known = pd.Series([unit for unit in units if unit is not None], dtype=object)
    unit = str(known.mode().iloc[0]) if len(known) else ""
    numbers = [
        match["number"].strip() if match and own == unit else ""
        for match, own in zip(amounts, units, strict=True)
    ]
    order = ("point", "comma") if prefer == "point" else ("comma", "point")
    readings = {decimal: [_read(number, decimal) for number in numbers] for decimal in order}
    best = max(readings, key=lambda decimal: int(np.sum(~np.isnan(readings[decimal]))))
    values[present] = readings[best]
    if not unit and best == "point":  # such as 1e-5, which no amount of money is
        values[present] = [
            float(text) if good else value
            for text, good, value in zip(given[present], plain, values[present], strict=True)
        ]
    return TextNumbers(values, best, unit)


def _unit(amount: re.Match[str] | None) -> str | None:
    """Return what is written before or after a number; None if that is not a unit."""
    if amount is None:
        return None
    before, after = amount["before"].strip(), amount["after"].strip()
    good = _BEFORE.fullmatch(before) and _AFTER.fullmatch(after) and not (before and after)
    return before + after if good else None


def number_of(text: str, decimal: str, unit: str = "") -> float:
    """Return the number that a text is under one reading and with one unit, NaN if it is not one."""
    words = text.strip()
    if not unit and _PLAIN.fullmatch(words) and (decimal == "point" or "." not in words):
        return float(words)
    amount = _AMOUNT.fullmatch(words)
    return _read(amount["number"].strip(), decimal) if amount and _unit(amount) == unit else np.nan


def _read(number: str, decimal: str) -> float:
    """Return a number under one reading, NaN if it is not one."""
    if not _NUMBER[decimal].fullmatch(number) or not any(map(str.isdigit, number)):
        return np.nan
    return float(_BREAK[decimal].sub("", number).replace(",", "."))


def number_text(value: float, decimal: str = "point") -> str:
    """Return a number as text: as short as it can be read back from, "" if it is missing."""
    if np.isnan(value):
        return ""
    text = str(int(value)) if abs(value) < 1e16 and value == int(value) else repr(float(value))
    return text.replace(".", ",") if decimal == "comma" else text


def typed(texts: AnyArray, prefer: str = "point") -> tuple[pd.Series, str]:
    """Return a column of texts as whole numbers, numbers or text, missing where they say so, and its decimal sign.

    Shapes: texts (n,).
    """
    missing = is_missing(texts)
    present = [text.strip() for text in texts[~missing]]
    empty = missing
    if present:
        empty = np.array([value.strip().lower() in IN_TEXT for value in texts], dtype=bool)
    text = pd.Series(texts, dtype=object).mask(empty, None)
    if not present or any(re.match(r"[-+]?0\d", value) for value in present):
        return text, "point"
    if not _may_be_numbers(present):
        return text, "point"
    found = find_numbers(texts, prefer)
    if found.unit or np.isnan(found.values[~missing]).any():
        return text, "point"
    whole = not missing.any() and all(re.fullmatch(r"[-+]?\d{1,18}", value) for value in present)
    if whole:
        return pd.Series([int(value) for value in present], dtype="int64"), "point"
    return pd.Series(found.values), found.decimal


def _may_be_numbers(present: list[str]) -> bool:
    """Return False if a few of the texts already show that the column does not hold numbers."""
    return all(re.fullmatch(r"[-+]?[\d.,][\d.,' \u00a0\u202feE+\-]*", value) for value in present[:50])
