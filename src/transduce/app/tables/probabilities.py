"""Predictions as probabilities: one column for each class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from transduce.app.tables import numbers
from transduce.core.types import Array
from transduce.core.words import option, quoted


@dataclass(frozen=True, eq=False)
class Probabilities:
    """How probable each class is at each row.

    Attributes
    ----------
    classes : list of str
        What the columns are called, without what all of their names begin or end with.
    shares : array of shape (n, n_classes)
        From 0 to 1; NaN in all classes where one of them is missing.
    """

    classes: list[str]
    shares: Array

    @property
    def likeliest(self) -> pd.Series:
        """The likeliest class of each row; None where a probability is missing."""
        best = np.argmax(np.nan_to_num(self.shares, nan=-1.0), axis=1)
        names = np.array(self.classes, dtype=object)[best]
        names[np.isnan(self.shares).any(axis=1)] = None
        return pd.Series(names, dtype=object)

    @property
    def uncertainty(self) -> Array:
        """How probable it is that another class is right, shape (n,); 1 where it is not known."""
        largest = np.nan_to_num(self.shares, nan=0.0).max(axis=1)
        return 1.0 - np.clip(largest, 0.0, 1.0)


def read_probabilities(columns: list[pd.Series]) -> Probabilities:
    """Return columns of probabilities; a ValueError says which of them holds something else."""
    names = [str(column.name) for column in columns]
    shares = np.column_stack([as_numbers(column) for column in columns])
    for place, name in enumerate(names):
        with np.errstate(invalid="ignore"):
            outside = np.flatnonzero((shares[:, place] < 0.0) | (shares[:, place] > 1.0))
        if len(outside):
            raise ValueError(
                f"The columns {names[0]!r} and others name one class each, so they must hold "
                f"probabilities from 0 to 1: {name!r} holds {shares[outside[0], place]:g}."
            )
    shares[np.isnan(shares).any(axis=1)] = np.nan
    return Probabilities(class_names(names), shares)


def class_names(names: list[str]) -> list[str]:
    """Return names of columns without what they share, such as "p_" of "p_spam" and "p_sport"."""
    n_first = _n_shared(names)
    rest = [name[n_first:] for name in names]
    n_last = _n_shared([name[::-1] for name in rest])
    return [name[: len(name) - n_last] for name in rest]


def _n_shared(names: list[str]) -> int:
    """Return how many letters names begin with alike, up to a sign between words."""
    shortest = min(len(name) for name in names)
    n_shared = 0
    for place in range(shortest - 1):
        letters = {name[place] for name in names}
        if len(letters) > 1:
            break
        if not letters.pop().isalnum():
            n_shared = place + 1
    return n_shared


def as_numbers(column: pd.Series) -> Array:
    """Return a column as numbers, NaN where there is none; a ValueError names what is none."""
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=float, na_value=np.nan)
    texts = column.astype(object).map(str, na_action="ignore")
    parsed = numbers.read_numbers(texts.where(texts.notna(), None).to_numpy(dtype=object))
    if parsed.unread:
        cell = texts.iloc[parsed.unread[0]]
        inside = numbers.read_numbers(np.array([cell], dtype=object), anywhere=True)
        if not inside.unread:
            raise ValueError(
                f"Column {column.name!r} should hold numbers, but holds {quoted(cell)}: write "
                f"{inside.values[0]:.12g} alone, in the unit of the others, or take the cell as "
                f"empty with {option('missing', [cell])}."
            )
        raise ValueError(
            f"Column {column.name!r} should hold numbers, but holds {quoted(cell)}: correct it, or "
            f"take it as empty with {option('missing', [cell])}."
        )
    return parsed.values
