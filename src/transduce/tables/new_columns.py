"""The columns that filling adds to a table: values, intervals or sets, confidence, and status."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from transduce.core.answer import Answer
from transduce.core.types import AnyArray
from transduce.tables.target import Target

SEPARATOR = " | "


def new_names(target: Any, task: str) -> list[str]:
    """Return the names of the new columns."""
    ends = ("lower", "upper") if task == "regression" else ("set",)
    return [f"{target}_{end}" for end in ("filled", *ends, "confidence", "status")]


def new_columns(target: Target, answer: Answer, level: float, index: pd.Index) -> pd.DataFrame:
    """Return the new columns; rows whose label was given have a value and the status "given".

    Parameters
    ----------
    target : Target
    answer : Answer
        With intervals, or with sets of classes.
    level : float
        Confidence of the intervals.
    index : pandas.Index
        Names of the rows.

    Returns
    -------
    pandas.DataFrame
    """
    n, unlabelled = len(index), answer.rows
    status = np.full(n, "given", dtype=object)
    status[unlabelled] = answer.status
    confidence = np.full(n, np.nan)
    if target.task == "regression":
        assert answer.regions is not None
        filled, bounds = target.labels.astype(float), np.full((n, 2), np.nan)
        filled[unlabelled], bounds[unlabelled] = answer.values, answer.regions.hull()
        confidence[unlabelled] = level
        middle: list[AnyArray] = [bounds[:, 0], bounds[:, 1]]
    else:
        assert answer.label_sets is not None
        assert answer.classes is not None
        assert answer.confidence is not None
        sets = np.full(n, None, dtype=object)
        names = [str(label) for label in answer.classes]
        sets[unlabelled] = [
            SEPARATOR.join(name for name, inside in zip(names, row, strict=True) if inside)
            for row in answer.label_sets.tolist()
        ]
        filled = target.labels.copy()
        filled[unlabelled] = np.array([*answer.values.tolist(), None], dtype=object)[:-1]
        confidence[unlabelled] = answer.confidence
        middle = [sets]
    columns = dict(
        zip(new_names(target.name, target.task), [filled, *middle, confidence, status], strict=True)
    )
    return pd.DataFrame({name: _typed(values) for name, values in columns.items()}).set_index(index)


def _typed(values: AnyArray) -> pd.Series:
    """Return a column: whole numbers that may be missing as such, anything else as pandas has it."""
    present = [value for value in values.tolist() if value is not None]
    if values.dtype == object and present and all(type(value) is int for value in present):
        return pd.Series(values, dtype="Int64")
    return pd.Series(values)


def beside(table: Any, new: pd.DataFrame) -> Any:
    """Return a polars frame with new columns after its own."""
    import polars

    plain = new.reset_index(drop=True)
    columns = [
        polars.Series(
            name, [None if value is pd.NA or value is None else value for value in plain[name].tolist()]
        )
        for name in plain.columns
    ]
    floats = [series.fill_nan(None) if series.dtype.is_float() else series for series in columns]
    return table.with_columns(floats)
