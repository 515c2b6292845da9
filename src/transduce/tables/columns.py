"""The columns that filling adds to a table, and frames of pandas and polars that they are put beside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from transduce.core.answer import Answer
from transduce.core.types import AnyArray, Array
from transduce.core.validation import class_codes
from transduce.tables.labels import Target

SEPARATOR = " | "


def new_names(target: Any, task: str, classes: Sequence[Any] = ()) -> list[str]:
    """Return the names of the new columns; with `classes`, one for the probability of each."""
    ends = ("lower", "upper") if task == "regression" else ("set", "probability")
    names = [f"{target}_{end}" for end in ("filled", *ends, "confidence", "status")]
    return [*names, *(f"{target}_probability_{label}" for label in classes)]


def check_names(frame: pd.DataFrame, target: Target, probabilities: bool, label_next: bool = False) -> None:
    """Raise a ValueError if the table has a column that would be added."""
    classes = dict.fromkeys(target.labels[~target.missing].tolist()) if probabilities else {}
    more = [f"{target.name}_label_next"] if label_next else []
    for name in [*new_names(target.name, target.task, list(classes)), *more]:
        if name in frame.columns:
            raise ValueError(
                f"The table has a column {name!r} already, perhaps from filling it before: rename or drop it first."
            )


def new_columns(
    target: Target,
    answer: Answer,
    level: float,
    index: pd.Index,
    *,
    right: Array | None = None,
    probabilities: bool = False,
    known: AnyArray | None = None,
) -> pd.DataFrame:
    """Return the new columns; rows whose label was given have a value and the status "given". Shapes: right (m,)."""
    known = target.labels[~target.missing] if known is None else known
    n, unlabelled = len(index), answer.rows
    status = np.full(n, "given", dtype=object)
    status[unlabelled] = answer.status
    confidence = np.full(n, np.nan)
    shares: list[AnyArray] = []
    if target.task == "regression":
        assert answer.regions is not None
        filled, bounds = target.labels.astype(float), np.full((n, 2), np.nan)
        filled[unlabelled], bounds[unlabelled] = answer.values, answer.regions.hull()
        confidence[unlabelled] = narrowness(answer.regions.measure(), known, level)
        middle: list[AnyArray] = [bounds[:, 0], bounds[:, 1]]
    else:
        filled = target.labels.copy()
        filled[unlabelled] = np.array([*answer.values.tolist(), None], dtype=object)[:-1]
        assert answer.confidence is not None
        confidence[unlabelled] = answer.confidence
        chance = np.full(n, np.nan)
        chance[unlabelled] = np.nan if right is None else right
        middle = [_sets(answer, n), chance]
        if probabilities and answer.probabilities is not None:
            wide = np.full((n, answer.probabilities.shape[1]), np.nan)
            wide[unlabelled] = answer.probabilities
            shares = list(wide.T)
    classes = answer.classes.tolist() if shares and answer.classes is not None else ()
    names = new_names(target.name, target.task, classes)
    columns = dict(zip(names, [filled, *middle, confidence, status, *shares], strict=True))
    return pd.DataFrame({name: _typed(values) for name, values in columns.items()}).set_index(index)


def rounded(new: pd.DataFrame, target: Any, task: str, known: AnyArray | None = None) -> pd.DataFrame:
    """Return new columns for a file: numbers with the digits of the labels, intervals no narrower for it."""
    new = new.copy()
    shares = [
        name
        for name in new.columns
        if str(name).startswith((f"{target}_probability", f"{target}_confidence"))
    ]
    new[shares] = new[shares].astype(float).round(4)
    if task == "regression":
        names = [f"{target}_{end}" for end in ("filled", "lower", "upper")]
        given = (new[f"{target}_status"] == "given").to_numpy()
        own = new[names[0]].to_numpy(dtype=float)[given] if known is None else np.asarray(known, dtype=float)
        digits = _decimals(own)
        ways: tuple[Any, ...] = (np.round, np.floor, np.ceil)
        for name, way in zip(names, ways, strict=True):
            values = new[name].to_numpy(dtype=float)
            near = np.round(way(np.round(values * 10.0**digits, 6)) / 10.0**digits, digits)
            new[name] = np.where(given | ~np.isfinite(near), values, near)
    return new


def _decimals(labels: Array) -> int:
    """Return how many decimals answers have: those of the labels, or more where that would be coarse."""
    texts = [repr(float(label)) for label in np.unique(labels)[:10_000]]
    own = max(
        (len(text.partition(".")[2]) for text in texts if "e" not in text and not text.endswith(".0")),
        default=0,
    )
    largest = float(np.abs(labels).max(initial=0.0)) or 1.0
    spread = float(np.std(labels / largest)) * min(largest, 1e300) if len(labels) else 0.0
    fine = int(np.ceil(-np.log10(spread / 50.0))) if spread > 0.0 else 0
    return int(np.clip(max(own, fine), 0, 12))


def _sets(answer: Answer, n: int) -> AnyArray:
    """Return the sets as text, classes parted by " | ", for all n rows of the table."""
    assert answer.label_sets is not None
    assert answer.classes is not None
    sets, names = np.full(n, None, dtype=object), [str(label) for label in answer.classes]
    kinds, which = np.unique(np.packbits(answer.label_sets, axis=1), axis=0, return_inverse=True)
    rows = np.unpackbits(kinds, axis=1, count=len(names)).astype(bool)
    texts = [SEPARATOR.join(name for name, inside in zip(names, row, strict=True) if inside) for row in rows]
    sets[answer.rows] = np.array([*texts, None], dtype=object)[which.ravel()]
    return sets


def narrowness(widths: Array, labels: AnyArray, level: float) -> Array:
    """Return how much narrower intervals are than one made without features, from 0 (no narrower) to 1 (a point).

    Shapes: widths (m,), labels (l,); returns (m,).
    """
    low, high = np.quantile(labels.astype(float), [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    if not high > low:
        return (widths == 0.0).astype(float)
    return np.clip(1.0 - widths / (high - low), 0.0, 1.0)


def answered_probability(answer: Answer) -> Array | None:
    """Return the probability that the method states for each answered class, if it states one."""
    if answer.probabilities is None or answer.classes is None:
        return None
    codes = class_codes(answer.values, answer.classes)
    own = np.take_along_axis(answer.probabilities, np.maximum(codes, 0)[:, None], axis=1)[:, 0]
    return np.where(codes >= 0, own, np.nan)


def _typed(values: AnyArray) -> pd.Series:
    """Return a column: whole numbers that may be missing as such, anything else as pandas has it."""
    if values.dtype == object and pd.api.types.infer_dtype(values, skipna=True) == "integer":
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


def as_pandas(table: Any) -> pd.DataFrame:
    """Return a frame as pandas; a TypeError unless it is one of pandas or polars."""
    if isinstance(table, pd.DataFrame):
        return table
    if hasattr(table, "collect") and not hasattr(table, "shape"):
        raise TypeError("The table is a lazy frame: call its collect() first.")
    if type(table).__module__.partition(".")[0] == "polars" and hasattr(table, "columns"):
        return pd.DataFrame(table.to_pandas())
    raise TypeError(
        f"fill takes a pandas or polars frame; got {type(table).__name__}. Files are filled by the command `transduce "
        "fill`."
    )
