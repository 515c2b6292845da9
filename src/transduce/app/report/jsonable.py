"""Values as JSON can hold them, and numbers and names as they are read."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from transduce.app.tables.moments import Moments
from transduce.core.types import AnyArray, JsonObject
from transduce.core.words import LONGEST_MESSAGE, percent, shortened

# What no page can show: control characters, halves of characters, and marks that turn the direction
# of writing.
_UNFIT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_TURNING = re.compile(r"[\u202a-\u202e\u2066-\u2069]")
Pieces = Sequence[Sequence[float | None]]  # intervals; None is an end that is infinite


def escape_text(text: Any, most: int | None = None) -> str:
    r"""Return a text without characters that no page can show, cut to a length if one is given."""
    words = str(text)
    if most is not None:
        words = shortened(words, 2 * most)  # what follows takes its time with a text of megabytes
    words = _TURNING.sub("", _UNFIT.sub("�", words))
    if most is None:
        return words
    return shortened(words, most)


def json_name(name: object, most: int | None = 80) -> str:
    """Return the name of a column or class for reading; whole numbers lose their ``.0``."""
    value = to_json(name)
    if value is None:
        return "(no name)"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return escape_text(value, most).strip() or "(no name)"


def to_json(value: object) -> Any:
    """Return a value as JSON can hold it: no NaN or infinity, nothing of numpy or pandas.

    A text of more than 4,000 characters is cut: a report is not the place for a label of a
    megabyte.
    """
    if isinstance(value, str):
        return escape_text(value, LONGEST_MESSAGE)
    if isinstance(value, Mapping):
        return {escape_text(key, LONGEST_MESSAGE): to_json(entry) for key, entry in value.items()}
    if isinstance(value, set | frozenset):
        return [to_json(entry) for entry in sorted(value, key=str)]
    if isinstance(value, np.ndarray | pd.Series | pd.Index | list | tuple | range):
        return [to_json(entry) for entry in value]
    if value is None or value is pd.NaT or value is pd.NA:
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value) if math.isfinite(value) else None
    return escape_text(value, LONGEST_MESSAGE)


def records_of(frame: pd.DataFrame) -> list[JsonObject]:
    """Return the lines of a frame as JSON can hold them."""
    return [to_json(line) for line in frame.to_dict("records")]


def finite_or_none(value: object) -> float | None:
    """Return a number, or None if it is missing or infinite."""
    number = to_json(value)
    if isinstance(number, int | float):
        return float(number)
    return None


def decimals_for(value: float | None) -> int:
    """Return how many decimals show about three digits of a number."""
    if not value:
        return 2
    return int(np.clip(2 - np.floor(np.log10(abs(value))), 0, 9))


def format_number(value: float | None, decimals: int | Moments = 2, unit: str = "") -> str:
    """Return a number for reading, with its unit, or the date that it stands for."""
    if unit:
        return f"{format_number(value, decimals)} {unit}"
    if value is None:
        return "–"
    if isinstance(decimals, Moments):
        return decimals.shown(value)
    if abs(value) >= 1e12 or (value and abs(value) < 1e-9):
        return f"{value:.4g}"
    shown = f"{value:,.{decimals}f}"
    if float(shown.replace(",", "")) == 0.0:
        return shown.lstrip("-")
    return shown.replace("-", "−")


def rough_percent(share: float) -> str:
    """Return a share as a percentage of three digits; more where these would say 100 %."""
    if share < 0.9995 or share == 1:
        return f"{100 * share:.3g} %"
    return percent(share)


def interval_text(pieces: Pieces | None, decimals: int | Moments) -> str:
    """Return a union of intervals for reading."""
    if pieces is None:
        return "–"
    return ", or ".join(_piece_text(low, high, decimals) for low, high in pieces) or "none"


def _piece_text(low: float | None, high: float | None, decimals: int | Moments) -> str:
    """Return one interval for reading."""
    if low is None and high is None:
        return "any number"
    if high is None:
        return f"{format_number(low, decimals)} or more"
    if low is None:
        return f"{format_number(high, decimals)} or less"
    return f"{format_number(low, decimals)} to {format_number(high, decimals)}"


def spread_evenly(length: int, most: int) -> AnyArray:
    """Return at most so many of the positions 0, 1, ..., spread evenly."""
    return np.round(np.linspace(0, length - 1, min(length, most))).astype(int)


def join_filled(parts: Iterable[str], separator: str = " ") -> str:
    """Return the parts that are not empty, joined."""
    return separator.join(filter(None, parts))
