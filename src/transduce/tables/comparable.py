"""Any table as numbers with names: text becomes indicators, missing values are marked, sparse columns are filled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from transduce.core.types import Array

MOST_LEVELS = 10
MOST_WORDS = 200


def table_features(X: Any, rows: Any) -> tuple[Array, list[str]]:
    """Return some rows of a table as numbers, and the names of the columns."""
    if sparse.issparse(X):
        return _sparse_columns(X.tocsr()[rows])
    if hasattr(X, "columns") and hasattr(X, "shape"):
        columns = [(repr(name), _column(X, j, name, rows)) for j, name in enumerate(X.columns)]
    else:
        array = np.asarray(X)
        if array.ndim == 1:
            return _words([str(array[i]) for i in rows])
        array = array[rows].reshape(len(rows), -1)
        columns = [(f"column {j}", pd.Series(array[:, j]).infer_objects()) for j in range(array.shape[1])]
    parts = [part for name, column in columns for part in _numbers(name, column)]
    return _varying([values for _, values in parts], [name for name, _ in parts], len(rows))


def _column(X: Any, j: int, name: Any, rows: Any) -> pd.Series:
    """Return some rows of one column of a frame."""
    if isinstance(X, pd.DataFrame):
        return X.iloc[rows, j].reset_index(drop=True)
    return pd.Series(X[name].gather(rows).to_list())


def _numbers(name: str, column: pd.Series) -> list[tuple[str, Array]]:
    """Return one column as one or several columns of numbers."""
    missing = column.isna().to_numpy()
    if pd.api.types.is_datetime64_any_dtype(column):
        column = (column - column.min()).dt.total_seconds()
    elif pd.api.types.is_timedelta64_dtype(column):
        column = column.dt.total_seconds()
    elif isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    if np.isnan(values[~missing]).any():
        levels = column[~missing].astype(str)
        common = levels.value_counts().index[:MOST_LEVELS]
        text = column.astype(str).to_numpy()
        parts = [(f"{name} is {level!r}", (text == level).astype(float)) for level in common]
    else:
        middle = float(np.median(values[~missing])) if not missing.all() else 0.0
        parts = [(name, np.where(missing, middle, values))]
    if missing.any():
        parts.insert(1, (f"{name} is missing", missing.astype(float)))
    return parts


def _sparse_columns(X: Any) -> tuple[Array, list[str]]:
    """Return the columns that most rows have an entry in."""
    filled = np.asarray((X != 0).sum(axis=0)).ravel()
    keep = np.sort(np.argsort(-filled, kind="stable")[:MOST_WORDS])
    dense = X[:, keep].toarray().astype(float)
    return _varying(list(dense.T), [f"column {j}" for j in keep], X.shape[0])


def _words(texts: list[str]) -> tuple[Array, list[str]]:
    """Return which of the most frequent words each text has."""
    try:
        words = CountVectorizer(max_features=MOST_WORDS, binary=True).fit(texts)
    except ValueError:  # no words at all
        return np.zeros((len(texts), 0)), []
    names = [f"the word {word!r}" for word in words.get_feature_names_out()]
    return _varying(list(words.transform(texts).toarray().T.astype(float)), names, len(texts))


def _varying(columns: list[Array], names: list[str], n: int) -> tuple[Array, list[str]]:
    # Infinities keep their place in the order; most columns are used only through their order.
    largest = np.finfo(float).max / 4
    columns = [np.clip(np.nan_to_num(values, nan=0.0), -largest, largest) for values in columns]
    keep = [j for j, values in enumerate(columns) if n and np.any(values != values[0])]
    features = np.column_stack([columns[j] for j in keep]) if keep else np.zeros((n, 0))
    return features, [names[j] for j in keep]
