"""`transduce fill --select`: rows that may be used as they are, marked in a column of their own."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from transduce.app.estimating.answers import find_class
from transduce.app.estimating.questions import read_limits
from transduce.app.filling import FillResult
from transduce.app.tables.amounts import with_plain_signs
from transduce.conformal import Selection
from transduce.core.types import OptionValues
from transduce.core.words import OptionError, counted, quoted

HOW_TO_SELECT = (
    "'above 100', 'below 5' or 'between 2 and 5' for numbers, 'within 10' for numbers that are off "
    "by no more than that, 'of yes' for a class, or 'correct' for classes that are right"
)
_WITHIN = re.compile(r"within\s+(\S+)")


def read_selection(text: str) -> OptionValues:
    """Return what rows are to be like, as `FillResult.select` takes it."""
    word = text.strip()
    if word == "correct":
        return {"correct": True}
    within = _WITHIN.fullmatch(word)
    if within is not None:
        return {"tolerance": _number(within[1], text)}
    limits = read_limits(word)
    if limits is not None:
        above, below = limits
        named = {"above": above, "below": below}
        return {name: _number(limit, text) for name, limit in named.items() if limit is not None}
    if word.startswith("of ") and word[3:].strip():
        return {"label": word[3:].strip()}
    raise OptionError(f"--select takes {HOW_TO_SELECT}; got {quoted(text)}.")


def _number(word: str, text: str) -> float:
    try:
        return float(with_plain_signs(word))
    except ValueError:
        raise OptionError(f"--select takes {HOW_TO_SELECT}; got {quoted(text)}.") from None


def select_rows(result: FillResult, wanted: OptionValues) -> Selection:
    """Return the rows that are picked, at most one in ten of them by mistake, on average."""
    if "label" in wanted:
        wanted = {"label": find_class(result.predicted_column, wanted["label"])}
    return result.select(**wanted)


def mark_rows(result: FillResult, selection: Selection) -> pd.DataFrame:
    """Return a column that marks the rows picked."""
    marks = np.zeros(len(result.shown), dtype=bool)
    marks[selection.rows] = True
    return pd.DataFrame({f"{result.target}_selected": marks}, index=result.shown.index)


def about_selection(result: FillResult, selection: Selection) -> str:
    """Return how many rows were picked, and what holds of them."""
    picked = counted(len(selection), "row is", "rows are")
    column = f"{result.target}_selected"
    return f"{picked} selected (column {column}). Guarantee: {selection.guarantee}"
