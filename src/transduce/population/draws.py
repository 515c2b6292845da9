"""Rows that are drawn at random to be labelled, and columns that mark them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from transduce.core.types import AnyArray, Mask
from transduce.core.words import quoted

YES, NO = (
    ("true", "yes", "y", "1", "1.0", "x"),
    ("false", "no", "n", "0", "0.0", "", "nan", "none", "<na>"),
)


def read_marks(frame: pd.DataFrame, name: Any) -> Mask:
    """Return which rows (n,) a column marks, or raise a ValueError that names a word for neither yes nor no."""
    words = (
        frame[name]
        .astype(object)
        .map(lambda cell: "" if pd.isna(cell) else str(cell).strip().lower())
    )
    odd = ~words.isin([*YES, *NO])
    if odd.any():
        cell = frame[name][odd].iloc[0]
        how = "write true or yes where a row is marked, and false or nothing elsewhere"
        raise ValueError(f"Column {name!r} marks rows, but holds {quoted(cell)}: {how}.")
    return words.isin(YES).to_numpy(dtype=bool)


def draw_rows(missing: Mask, number: int, seed: int) -> AnyArray:
    """Return the positions (number,) of some rows where a label is missing (n,), drawn at random, ascending."""
    rows = np.flatnonzero(missing)
    if not 1 <= number <= len(rows):
        raise ValueError(
            f"There are {len(rows):,} rows without a label: {number:,} of them cannot be drawn."
        )
    return np.sort(np.random.default_rng(seed).choice(rows, number, replace=False))
