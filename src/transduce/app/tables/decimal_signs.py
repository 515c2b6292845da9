"""The decimal sign of a table: what its columns show of it together."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from transduce.app.tables import amounts
from transduce.app.tables.numbers import NEARLY, is_missing, read_digits
from transduce.core.types import AnyArray

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
    cells = (frame.iloc[:, place] for place in range(frame.shape[1]))
    texts = (column.to_numpy(object) for column in cells if _holds_text(column))
    return sign_of_table(texts) or usual


def _holds_text(column: pd.Series) -> bool:
    is_text = pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)
    return bool(is_text) and any(isinstance(cell, str) for cell in column.head(GLANCED_AT))


def sign_of_column(texts: AnyArray) -> str:
    """Return the decimal sign without which some numbers in texts (n,) could not be read, or ""."""
    levels = pd.unique(pd.Series(texts, dtype=object))[:LOOKED_AT]
    present = [text for text in levels[~is_missing(levels)] if isinstance(text, str)]
    if not any("," in text or "." in text for text in present):
        return ""
    for some in (present[:GLANCED_AT], present):
        sign = _sign_of_texts(some)
        if sign is None:
            return ""
    return sign or ""


def _sign_of_texts(texts: list[str]) -> str | None:
    """Return the sign of texts, "" if they may have either, or None if they are no numbers."""
    found = [amounts.amount_in(text.strip()) for text in texts]
    digits = [amount["number"].strip() if amount else "" for amount in found]
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
