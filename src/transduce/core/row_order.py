"""Rows by what is in them: the order in which estimators draw folds, samples and ties.

Chance picks places in an order that contents decide, so that shuffling the rows of a table permutes
its predictions and changes nothing else. A guarantee stays what it is: the generator picks places
uniformly, and a uniform draw stays uniform in any order that was fixed before it was asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from transduce.core import arrays
from transduce.core.types import AnyArray, Array, Rows

AT_A_TIME = 64  # columns of sparse rows that are compared together
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_IN_ORDER: ContextVar[bool] = ContextVar("rows are in order", default=False)


@contextmanager
def rows_in_order() -> Iterator[None]:
    """Let estimators draw rows in the order in which they come.

    `fill` orders a table by all of its cells, and says before a fit, which alone makes features of
    them, how many labels of each class will be held out.
    """
    before = _IN_ORDER.set(True)
    try:
        yield
    finally:
        _IN_ORDER.reset(before)


def are_rows_in_order() -> bool:
    """Return whether rows come in the order in which they are to be drawn."""
    return _IN_ORDER.get()


def scatter(numbers: AnyArray) -> AnyArray:
    """Return 64-bit numbers spread over their whole range (the finaliser of splitmix64)."""
    z = numbers + GOLDEN
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        z ^= z >> np.uint64(shift)
        z *= np.uint64(factor)
    return z


def number_rows(X: Rows) -> AnyArray:
    """Return a number for each row (n,): copies share it, and no other rows.

    Rows are numbered as in a dictionary, by their first column, then by the second. So another unit
    of a column, in which larger numbers stay larger, changes no number.

    >>> number_rows(np.array([[2.0, 1.0], [-1.0, 5.0], [2.0, 1.0], [2.0, 0.0]])).tolist()
    [2, 0, 2, 1]
    """
    if sparse.issparse(X):
        return _number_sparse_rows(X)
    cells = _as_numbers(X)
    if not cells.shape[1]:
        return np.zeros(len(cells), dtype=int)
    order = arrays.lexsort(cells)
    ordered = cells[order]
    is_new = np.any(ordered[1:] != ordered[:-1], axis=1)
    numbers = np.empty(len(cells), dtype=int)
    numbers[order] = np.append(0, np.cumsum(is_new))[: len(cells)]
    return numbers


def number_rows_of_kernel(kernel: Any) -> AnyArray:
    """Return a number for each row (n,) of kernel values (n, n).

    Their columns move with the rows.
    """
    values = np.asarray(arrays.to_numpy(kernel), dtype=float)
    if values.shape != (len(values), len(values)):
        return number_rows(values)  # which the estimator refuses
    return number_rows(np.column_stack([np.diagonal(values), np.sort(values, axis=1)]))


def content_order(numbers: AnyArray, labels: Any = None) -> AnyArray:
    """Return the order (n,) of numbered rows (n,), a random-looking one; labels (n,) order copies.

    Copies with the same label stay as they came, since nothing tells them apart.

    >>> order = content_order(np.array([1, 0, 1]), np.array([2.0, 9.0, 1.0])).tolist()
    >>> order.index(2) < order.index(0)
    True
    """
    keys = scatter(np.asarray(numbers, dtype=np.uint64))
    if labels is None:
        return np.argsort(keys, kind="stable")
    return np.lexsort((labels, keys))


def places_in(order: AnyArray) -> AnyArray:
    """Return where each row is in an order (n,)."""
    places = np.empty(len(order), dtype=int)
    places[order] = np.arange(len(order))
    return places


def _as_numbers(X: Rows) -> Array:
    """Return a table of any kind as numbers (n, c) that are equal where its cells are."""
    if isinstance(X, pd.Series):
        X = X.to_frame()
    if not hasattr(X, "iloc"):
        cells = np.asarray(arrays.to_numpy(X))
        if cells.ndim != 2:
            cells = cells.reshape(len(cells), cells[:1].size)
        if cells.dtype.kind in "biuf":
            return _without_gaps(cells)
        try:
            X = pd.DataFrame(cells)
        except OverflowError:  # of pandas 2, for a whole number beyond double precision
            X = pd.DataFrame(cells, dtype=object)
    columns = [_numbers_of(X.iloc[:, j]) for j in range(X.shape[1])]
    return np.column_stack([np.empty((len(X), 0)), *columns])


def _numbers_of(column: pd.Series) -> Array:
    """Return a number for each cell of a column: itself, or its place among all texts."""
    kind = pd.api.types
    if kind.is_numeric_dtype(column) and not kind.is_complex_dtype(column):
        return _without_gaps(column.to_numpy(dtype=float, na_value=np.nan))
    words = column.map(str, na_action="ignore").astype(object)
    return pd.factorize(words, sort=True)[0].astype(float)


def _without_gaps(numbers: AnyArray) -> Array:
    """Return numbers with one that compares in the place of those that are missing."""
    numbers = np.asarray(numbers, dtype=float)
    is_missing = np.isnan(numbers)
    if is_missing.any():
        return np.where(is_missing, np.inf, numbers)
    return numbers


def _number_sparse_rows(X: Rows) -> AnyArray:
    """Return the numbers of dense rows, by blocks of columns until all rows differ."""
    columns = sparse.csc_array(X)
    n_rows, n_columns = columns.shape
    numbers = np.zeros(n_rows, dtype=np.int64)
    for start in range(0, n_columns, AT_A_TIME):
        counts = np.bincount(numbers)
        tied = np.flatnonzero(counts[numbers] > 1)
        if not len(tied):
            break
        block = columns[:, start : start + AT_A_TIME].toarray()[tied]
        among_tied = np.zeros(n_rows, dtype=np.int64)
        among_tied[tied] = number_rows(block)
        numbers = np.unique(numbers * n_rows + among_tied, return_inverse=True)[1]
    return numbers
