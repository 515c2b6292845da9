"""How columns were turned into features, so that rows which come later are turned into the same ones."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from transduce.core.types import AnyArray, Array
from transduce.tables.numbers import is_missing, read_cells

FARTHEST = 100.0  # of a feature, in standard deviations


def as_texts(series: pd.Series) -> pd.Series:
    """Return cells as text, or missing; small and capital letters are the same in true and false."""
    codes, levels = text_levels(series)
    return pd.Series(levels[codes], index=series.index, name=series.name, dtype=object)


def text_levels(series: pd.Series) -> tuple[AnyArray, AnyArray]:
    """Return cells as the numbers of texts, and the texts, of which the last is missing: each is looked at once."""
    if pd.api.types.infer_dtype(series, skipna=True) == "string":
        codes, found = pd.factorize(series)
    else:  # of other types, equal cells such as 1 and True may differ as texts
        codes, found = np.where(series.isna(), -1, np.arange(len(series))), series.astype(object)
    texts = [None if gone else _text(cell) for cell, gone in zip(found, pd.isna(found), strict=True)]
    levels = np.array([*texts, None], dtype=object)
    levels[is_missing(levels)] = None
    return np.asarray(codes), levels


def _text(value: Any) -> str:
    text = value.strip() if isinstance(value, str) else str(value)
    return text.capitalize() if text.lower() in ("true", "false") else text


def is_number(series: pd.Series) -> bool:
    """Return whether a column holds numbers, or lengths of time, as such."""
    types = pd.api.types
    return (types.is_numeric_dtype(series) and not types.is_complex_dtype(series)) or (
        types.is_timedelta64_dtype(series)
    )


def as_floats(series: pd.Series) -> Array:
    """Return numbers as floats, lengths of time in seconds."""
    if pd.api.types.is_timedelta64_dtype(series):
        series = series.dt.total_seconds()
    return np.asarray(series.to_numpy(dtype=float, na_value=np.nan))


@dataclass(frozen=True)
class NumberReading:
    """How a column of numbers is read."""

    middle: float  # takes the place of what is missing
    marks: tuple[float, ...] = ()  # values that stand for a missing cell
    decimal: str = "point"  # decimal sign of numbers in text
    unit: str = ""  # what is written beside them

    def parts(self, name: Any, series: pd.Series) -> dict[str, Array]:
        """Return the numbers, and what is missing, below or above its value."""
        if is_number(series):
            return self.named(name, as_floats(series), np.zeros(len(series)))
        return self.named(name, *read_cells(as_texts(series), self.decimal, self.unit))

    def named(self, name: Any, values: Array, side: AnyArray) -> dict[str, Array]:
        """Return the same features of numbers that are read already. Shapes: values (n,), side (n,)."""
        missing = ~np.isfinite(values) | np.isin(values, self.marks)
        return {
            str(name): np.where(missing, self.middle, values),
            f"{name} is missing": missing.astype(float),
            f"{name} is below its value": (side < 0).astype(float),
            f"{name} is above its value": (side > 0).astype(float),
        }


def feature_name(column: Any, output: str) -> str:
    """Return what a feature of a category or a part of a date is called."""
    return f"{column}: {'missing' if output == 'nan' else output.removeprefix('=')}"


@dataclass(frozen=True)
class LevelsReading:
    """How a column of a few categories is read: a feature for each, and of two for the second only."""

    levels: tuple[str, ...]
    missing: bool  # whether being missing is a category too

    def parts(self, name: Any, series: pd.Series) -> dict[str, Array]:
        """Return a feature for each category; a category that is not among them has none."""
        own, texts = text_levels(series)
        codes = pd.Index(self.levels, dtype=object).get_indexer_for(texts)[own]
        parts = {feature_name(name, level): (codes == j).astype(float) for j, level in enumerate(self.levels)}
        if self.missing:
            parts[feature_name(name, "nan")] = pd.isna(texts)[own].astype(float)
        return dict(list(parts.items())[1:]) if len(parts) == 2 else parts


@dataclass(frozen=True, eq=False)
class WordsReading:
    """How a column of texts is read word by word: TF-IDF weights, and their reduction, if there is one."""

    weights: Any
    reduction: Any = None

    def parts(self, name: Any, series: pd.Series) -> dict[str, Array]:
        """Return the weights of words, or the directions that they were reduced to."""
        weights = self.weights.transform(as_texts(series).fillna(""))
        dense = weights.toarray() if self.reduction is None else self.reduction.transform(weights)
        return self.named(name, dense)

    def named(self, name: Any, matrix: Array) -> dict[str, Array]:
        """Return columns of weights, or of directions, as features. Shapes: matrix (n, k)."""
        word = "word" if self.reduction is None else "direction"
        return {f"{name}: {word} {j + 1}": values for j, values in enumerate(np.asarray(matrix).T)}


@dataclass(frozen=True, eq=False)
class TableReading:
    """How dates and categories are read, all columns together, by skrub's vectorizer."""

    vectorizer: Any  # fitted
    keys: dict[Any, str]  # what the vectorizer calls each column
    dates: dict[Any, Any]  # for columns of dates, what reads them from text
    features: dict[Any, list[tuple[str, str, float]]]

    def parts(self, frame: pd.DataFrame) -> dict[Any, dict[str, Array]]:
        """Return the features of each column; what is in a column is looked at once, however often it occurs."""
        codes, levels = {}, {}
        for name in self.keys:
            series = self.dated(name, frame[name]) if name in self.dates else marked(as_texts(frame[name]))
            codes[name], levels[name] = pd.factorize(series, use_na_sentinel=False)
        most = max(len(found) for found in levels.values())
        table = pd.DataFrame(
            {key: _repeated(levels[name], most, date=name in self.dates) for name, key in self.keys.items()}
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self.vectorizer.transform(table)
        parts: dict[Any, dict[str, Array]] = {name: {} for name in self.keys}
        for name in self.keys:
            for feature, output, middle in self.features[name]:
                values = found[output].to_numpy(dtype=float, na_value=np.nan)
                parts[name][feature] = np.where(np.isfinite(values), values, middle)[codes[name]]
            if name in self.dates:
                parts[name][f"{name} is missing"] = pd.isna(levels[name]).astype(float)[codes[name]]
        return parts

    def dated(self, name: Any, series: pd.Series) -> pd.Series:
        """Return a column as dates, missing where a cell is not one."""
        if pd.api.types.is_datetime64_any_dtype(series):
            return series
        reader = self.dates[name]
        texts = as_texts(series).rename("date").astype("string").reset_index(drop=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if reader is None:
                return pd.to_datetime(texts, errors="coerce")
            return pd.Series(reader.transform(texts))


def marked(texts: pd.Series) -> pd.Series:
    """Return categories with a sign before them, so that one such as "01234" is not taken for a number."""
    return ("=" + texts).astype("string")


def _repeated(levels: Any, length: int, *, date: bool) -> pd.Series:
    series = pd.Series(levels).reset_index(drop=True)
    series = series.iloc[np.minimum(np.arange(length), len(series) - 1)].reset_index(drop=True)
    return series if date else series.astype("string")


class Scale(NamedTuple):
    """A feature, its column, and how it is scaled: divided by the largest, less the mean, over the spread."""

    column: Any
    feature: str
    largest: float
    mean: float
    spread: float

    def apply(self, values: Array) -> Array:
        """Return a feature as methods see it; what is absurdly far is cut off."""
        with np.errstate(over="ignore"):
            return np.clip((values / self.largest - self.mean) / self.spread, -FARTHEST, FARTHEST)


@dataclass(frozen=True, eq=False)
class Encoder:
    """Turns the columns of any row into the features that a table's rows were turned into."""

    readings: dict[Any, NumberReading | LevelsReading | WordsReading] = field(default_factory=dict)
    table: TableReading | None = None  # how dates and categories are read
    scales: list[Scale] = field(default_factory=list)  # the features, in order

    @property
    def columns(self) -> list[Any]:
        """The columns that are looked at."""
        return list(dict.fromkeys(scale.column for scale in self.scales))

    def transform(self, frame: pd.DataFrame) -> Array:
        """Return the features of rows. Returns shape (n, d)."""
        lacking = [name for name in self.columns if name not in frame.columns]
        if lacking:
            raise ValueError(f"The table has no column {lacking[0]!r}, which the model was fitted with.")
        columns = np.empty((len(self.scales), len(frame)))
        if not len(frame):
            return columns.T
        found = {} if self.table is None else self.table.parts(frame)
        for j, scale in enumerate(self.scales):
            if scale.column not in found:
                found[scale.column] = self.readings[scale.column].parts(scale.column, frame[scale.column])
            columns[j] = scale.apply(found[scale.column][scale.feature])
        return columns.T


LEAST_SPREAD = 0.5  # beside how far cells lie that differ from most: that of 0 and 1, equally frequent
FAR = 100.0  # times as far from the median as nearly all others that differ from it
MOST_FAR = 0.1  # of these cells may be far
FEWEST_TO_TELL = 20  # rows


def scale_features(column: Any, parts: dict[str, Array], kind: str) -> list[Scale]:
    """Return how each feature of a column gets mean 0 and its share of the column's spread; constant ones are left out.

    Shapes: parts (n,).
    """
    scales = [_own_scale(column, name, values, kind) for name, values in parts.items()]
    scales = [scale for scale in scales if scale.spread > 1e-10]
    if kind in ("levels", "letters"):
        total = sum((scale.spread * scale.largest) ** 2 for scale in scales) ** 0.5
        total = max(total, LEAST_SPREAD) if kind == "levels" else total
        return [scale._replace(spread=total / scale.largest) for scale in scales]
    share = len(scales) ** 0.5 if kind == "date" else 1.0
    return [scale._replace(spread=scale.spread * share) for scale in scales]


def _own_scale(column: Any, name: str, values: Array, kind: str) -> Scale:
    """Return mean and standard deviation of a feature; of numbers and dates, a spread that rare cells do not set."""
    alone = kind in ("number", "date")
    values = _without_far(values) if alone else values
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    values = values / largest  # so that no square is too large
    spread = float(values.std())
    if alone:
        apart = values - np.median(values)
        apart = apart[apart != 0.0]
        spread = max(spread, LEAST_SPREAD * float(np.sqrt(np.mean(apart**2))) if len(apart) else 0.0)
    return Scale(column, name, largest, float(values.mean()), spread)


def _without_far(values: Array) -> Array:
    """Return the numbers without those that are absurdly far from all others, if there are enough to tell."""
    scaled = values / (float(np.abs(values).max(initial=0.0)) or 1.0)
    distance = np.abs(scaled - np.median(scaled))
    apart = distance[distance > 0.0]
    if len(values) < FEWEST_TO_TELL or not len(apart):
        return values
    usual = float(np.quantile(apart, 1.0 - MOST_FAR, method="lower"))
    return values[distance <= FAR * usual]
