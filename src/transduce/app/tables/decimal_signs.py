"""The decimal sign of a table: what its columns show of it together."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from transduce.app.tables import amounts
from transduce.app.tables.numbers import NEARLY, is_missing, read_digits
from transduce.core.types import AnyArray, ColumnName

LOOKED_AT = 1000  # different texts of a column that show its sign
GLANCED_AT = 50  # of these show whether it holds numbers at all


def sign_of_table(columns: Iterable[AnyArray]) -> str:
    """Return the decimal sign, "point" or "comma", that texts of columns (n,) can have alone.

    It is "" if no column shows one, or if one has points and another commas. "2.162" may have
    either, and is 2162 in a table with "0,5" in another column.

    >>> [sign_of_table([["2.162", *others]]) for others in (["0,5"], ["0.5"], ["7.318"])]
    ['comma', 'point', '']
    """
    signs = {sign_of_column(texts) for texts in columns} - {""}
    if len(signs) == 1:
        return signs.pop()
    return ""


def sign_of_frame(frame: pd.DataFrame, usual: str = "point") -> str:
    """Return the decimal sign of the columns of text in a table; the usual one if none shows it."""
    return sign_of_table(_texts_in(frame).values()) or usual


def doubt_in_frame(frame: pd.DataFrame) -> tuple[ColumnName, str] | None:
    """Return the first column with a number that may have either sign, and that number."""
    texts = _texts_in(frame)
    found = number_in_doubt(texts.values())
    if found is None:
        return None
    place, text = found
    return frame.columns[list(texts)[place]], text


def _texts_in(frame: pd.DataFrame) -> dict[int, AnyArray]:
    """Return the columns of text, by their places."""
    columns = {place: frame.iloc[:, place] for place in range(frame.shape[1])}
    return {
        place: column.to_numpy(object) for place, column in columns.items() if _holds_text(column)
    }


def number_in_doubt(columns: Iterable[AnyArray]) -> tuple[int, str] | None:
    """Return the first column, by its place, with a number that may have either sign, and that.

    None if another column shows the sign, or all are read alike.

    >>> number_in_doubt([["a", "b"], ["4,729", "5,130"]])
    (1, '4,729')
    >>> number_in_doubt([["a", "b"], ["4,729", "5,13"]])
    """
    texts_of = list(columns)
    if sign_of_table(texts_of):
        return None
    for place, texts in enumerate(texts_of):
        present = _different_texts(texts)
        found = [amounts.amount_in(text.strip()) for text in present if "," in text]
        numbers = [amount["number"].strip() for amount in found if amount is not None]
        in_doubt = [number for number in numbers if _may_have_either_sign(number)]
        if in_doubt and _sign_of_texts(present) == "":
            return place, in_doubt[0]
    return None


def _different_texts(cells: AnyArray) -> list[str]:
    """Return the first different texts among cells (n,), some of which may be lists or the like."""
    texts = pd.Series([cell for cell in cells if isinstance(cell, str)], dtype=object)
    levels = pd.unique(texts)[:LOOKED_AT]
    return list(levels[~is_missing(levels)])


def _may_have_either_sign(number: str) -> bool:
    """Return whether a number is one with a decimal point, and another with a decimal comma."""
    values = [read_digits(number, sign) for sign in ("point", "comma")]
    return bool(np.isfinite(values).all()) and values[0] != values[1]


def _holds_text(column: pd.Series) -> bool:
    is_text = pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)
    return bool(is_text) and any(isinstance(cell, str) for cell in column.head(GLANCED_AT))


def sign_of_column(texts: AnyArray) -> str:
    """Return the decimal sign without which some numbers in texts (n,) could not be read, or ""."""
    present = _different_texts(texts)
    if not any("," in text or "." in text for text in present):
        return ""
    for cells in (present[:GLANCED_AT], present):
        sign = _sign_of_texts(cells)
        if sign is None:
            return ""
    return sign or ""


def _sign_of_texts(texts: list[str]) -> str | None:
    """Return the sign of texts, "" if they may have either, or None if they are no numbers."""
    amounts_of_texts = [amounts.amount_in(text.strip()) for text in texts]
    digits = [amount["number"].strip() if amount else "" for amount in amounts_of_texts]
    can_be = {
        sign: np.isfinite([read_digits(number, sign) for number in digits])
        for sign in ("point", "comma")
    }
    for sign, other in (("point", "comma"), ("comma", "point")):
        is_number = can_be[sign].mean() >= NEARLY
        if (
            is_number
            and np.any(can_be[sign] & ~can_be[other])
            and not np.any(can_be[other] & ~can_be[sign])
        ):
            return sign
    is_number = np.mean(can_be["point"] | can_be["comma"]) >= NEARLY
    return "" if is_number else None
