"""Plain values and words for a report: what JSON can hold, and numbers and names as they are read."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from transduce.app.tables.moments import Moments
from transduce.core.types import AnyArray
from transduce.core.words import LONGEST_MESSAGE, percent, shortened

# What no page can show: control characters, halves of characters, and marks that turn the direction of writing.
_UNFIT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_TURNING = re.compile(r"[\u202a-\u202e\u2066-\u2069]")


def clean(text: Any, most: int | None = None) -> str:
    r"""Return a text without characters that no page can show, cut to a length if one is given."""
    words = str(text)
    if most is not None:
        words = shortened(words, 2 * most)  # what follows takes its time with a text of megabytes
    words = _TURNING.sub("", _UNFIT.sub("�", words))
    return words if most is None else shortened(words, most)


def name_of(name: Any, most: int | None = 80) -> str:
    """Return the name of a column or class for reading; whole numbers lose their ``.0``, no name gets words."""
    value = plain(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return clean("" if value is None else value, most).strip() or "(no name)"


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it: no NaN or infinity (None instead), nothing of numpy or pandas.

    A text of more than 4,000 characters is cut: a report is not the place for a label of a megabyte.
    """
    if isinstance(value, str):
        return clean(value, LONGEST_MESSAGE)
    if isinstance(value, Mapping):
        return {clean(key, LONGEST_MESSAGE): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | pd.Series | pd.Index | list | tuple | set | frozenset):
        entries: Iterable[Any] = (
            sorted(value, key=str) if isinstance(value, set | frozenset) else value
        )
        return [plain(entry) for entry in entries]
    if value is None or value is pd.NaT or value is pd.NA:
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value) if math.isfinite(value) else None
    return clean(value, LONGEST_MESSAGE)


def finite(value: Any) -> float | None:
    """Return a number, or None if it is missing or infinite."""
    number_or_none = plain(value)
    return float(number_or_none) if isinstance(number_or_none, int | float) else None


def decimals_for(value: float | None) -> int:
    """Return how many decimals show about three digits of a number."""
    return int(np.clip(2 - np.floor(np.log10(abs(value))), 0, 9)) if value else 2


def number(value: float | None, decimals: int | Moments = 2, unit: str = "") -> str:
    """Return a number for reading, with its unit, or the date that it stands for."""
    if unit:
        return f"{number(value, decimals)} {unit}"
    if value is None:
        return "–"
    if not isinstance(decimals, int):
        return decimals.shown(value)
    if abs(value) >= 1e12 or (value and abs(value) < 1e-9):
        return f"{value:.4g}"
    shown = f"{value:,.{decimals}f}"
    return shown.lstrip("-") if not float(shown.replace(",", "")) else shown.replace("-", "−")


def rough_percent(share: float) -> str:
    """Return a share as a percentage of three digits; more where these would say 100 %."""
    return f"{100 * share:.3g} %" if share < 0.9995 or share == 1 else percent(share)


def interval_text(pieces: list[list[float | None]] | None, decimals: int | Moments) -> str:
    """Return a union of intervals for reading; None is an end that is infinite."""
    if pieces is None:
        return "–"
    said = []
    for low, high in pieces:
        least, most = number(low, decimals), number(high, decimals)
        upwards = "any number" if low is None else f"{least} or more"
        said.append(
            upwards if high is None else f"{most} or less" if low is None else f"{least} to {most}"
        )
    return ", or ".join(said) or "none"


def evenly(length: int, most: int) -> AnyArray:
    """Return at most so many of the positions 0, 1, ..., spread evenly."""
    return np.round(np.linspace(0, length - 1, min(length, most))).astype(int)
