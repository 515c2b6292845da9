"""Rows by what is in them: the one place from which all draws, folds and orders of rows come."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from transduce.app.tables.pictures import names_of
from transduce.app.tables.vectors import read_vectors
from transduce.core.row_order import GOLDEN, scatter
from transduce.core.types import AnyArray, Array, Mask

# Why rows are drawn by their contents, and why that keeps guarantees.
#
# Folds, bootstraps, samples, calibration labels and ties are drawn from a seeded generator by a
# row's place. If the place were that in the file, sorting the file would change answers, by up to
# 16 % of their spread. So `fill` first puts rows into an order that their contents decide, and
# everything after that goes by place.
#
# A guarantee needs that, given all rows and all labels, the held-out labels are a simple random
# sample of the labels. The generator picks places uniformly, whatever stands there; a permutation
# that is uniform stays uniform after any other one, even one that looked at features and labels. So
# any order that was fixed before the generator is asked will do, and the chance of the guarantee is
# that of the seed, as before. The label may be a part of the hash for the same reason. It must be,
# for rows whose other cells are equal: if the position in the file broke such ties, a file sorted
# by the label would hold out other labels than a shuffled one.
#
# In large tables the keys themselves are the draw: rows with the smallest keys are taken. There the
# hash, mixed with the seed, stands for a random function of a row's cells: different rows get
# independent, uniform keys, whatever their labels are, so that again each subset of the labels is
# as likely as any other. Copies of a row in all cells, the label among them, get a key each, by
# their number among the copies. It does not matter which copy comes first, since nothing tells them
# apart.
#
# What a column is called, and where it stands, says nothing about the rows, so it has no part in
# their order either. (In the keys of large tables it has: they must tell rows apart, part by part.)

_AT_A_TIME = 2**20  # cells whose hashes are computed together


def row_hashes(frame: pd.DataFrame, seed: int = 0) -> AnyArray:
    """Return a 64-bit number for each row that depends on its cells alone. Returns shape (n,)."""
    start = scatter(np.array([seed], dtype=np.uint64))[0]
    total = np.full(len(frame), start)
    for hashes in _hashes_of_columns(frame):
        total = scatter(total * np.uint64(31) + hashes)
    return total


def _hashes_of_columns(frame: pd.DataFrame) -> Iterator[AnyArray]:
    """Yield the hashes (n,) of the cells of each column, by the names of the columns."""
    names = sorted(frame.columns, key=str)
    at_a_time = max(1, _AT_A_TIME // max(len(frame), 1))
    for start in range(0, len(names), at_a_time):
        batch = names[start : start + at_a_time]
        numbers = _hashes_of_numbers(frame[batch])
        for name in batch:
            if name in numbers:
                yield numbers[name]
            else:
                yield cell_hashes(frame[name])


def _hashes_of_numbers(frame: pd.DataFrame) -> dict[Any, AnyArray]:
    """Return the hashes of columns of plain numbers, all at once.

    One by one they would take seconds in wide tables.
    """
    names = [
        name
        for name, kind in frame.dtypes.items()
        if isinstance(kind, np.dtype) and kind.kind in "iuf"
    ]
    cells = np.ascontiguousarray(frame[names].to_numpy(dtype=float).T)
    hashes = _hashes_of_floats(cells.ravel()).reshape(cells.shape)
    return dict(zip(names, hashes, strict=True))


def _hashes_of_floats(numbers: Array) -> AnyArray:
    """Return a 64-bit number for each number; -0.0 is 0.0, and all that are missing are alike."""
    numbers = numbers + 0.0
    return np.asarray(
        pd.util.hash_array(np.where(np.isnan(numbers), np.nan, numbers)), dtype=np.uint64
    )


def cell_hashes(column: pd.Series) -> AnyArray:
    """Return a 64-bit number for each cell of a column.

    Equal numbers have equal ones, whatever their type; so have equal dates, and texts such as
    2024-01-31, as which files without types hold them.
    """
    types = pd.api.types
    if column.dtype.kind == "M":
        return _hashes_of_dates(column)
    if column.dtype.kind == "m":
        column = column.dt.total_seconds()
    plain = types.is_numeric_dtype(column) and not types.is_bool_dtype(column)
    if plain and not types.is_complex_dtype(column):
        return _hashes_of_floats(column.to_numpy(dtype=float, na_value=np.nan))
    vectors = read_vectors(column)
    if vectors is not None:
        return vectors.hashes()
    cells = names_of(column)
    try:
        codes, levels = pd.factorize(cells)
    except TypeError:  # lists and the like
        codes, levels = pd.factorize(cells.map(str, na_action="ignore"))
    words = np.array([*map(_plain_text, np.asarray(levels, dtype=object)), ""], dtype=object)
    hashes = np.asarray(pd.util.hash_array(words, categorize=False), dtype=np.uint64)
    hashes[-1] = 0  # of missing cells, whose code is -1
    return hashes[codes]


_LONG_DATE = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?")
_DATE_LENGTH = len("2024-01-31")


def _plain_text(cell: object) -> str:
    """Return a cell as text; dates as `_hashes_of_dates` writes them."""
    text = str(cell)
    if text[_DATE_LENGTH : _DATE_LENGTH + 1] not in (" ", "T") or not _LONG_DATE.fullmatch(text):
        return text
    time, _, fraction = text[_DATE_LENGTH + 1 :].partition(".")
    if time.count(":") == 1:
        time += ":00"
    if fraction.strip("0"):
        return f"{text[:_DATE_LENGTH]}T{time}.{fraction:0<6.6}"
    if time == "00:00:00":
        return text[:_DATE_LENGTH]
    return f"{text[:_DATE_LENGTH]}T{time}"


def _hashes_of_dates(column: pd.Series) -> AnyArray:
    """Return a 64-bit number for each date, that of its text, whatever unit it is counted in."""
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_localize(None)
    codes, levels = pd.factorize(column)
    moments = pd.Series(levels).to_numpy()
    texts = np.datetime_as_string(moments, unit="D").astype(object)
    is_timed = moments != moments.astype("datetime64[D]")
    texts[is_timed] = np.datetime_as_string(moments[is_timed], unit="s")
    is_fraction = moments != moments.astype("datetime64[s]")
    texts[is_fraction] = np.datetime_as_string(moments[is_fraction], unit="us")
    hashes = np.asarray(pd.util.hash_array(np.append(texts, ""), categorize=False), dtype=np.uint64)
    hashes[-1] = 0  # of missing cells, whose code is -1
    return hashes[codes]


def labelled_hashes(hashes: AnyArray, labels: pd.Series, missing: Mask) -> AnyArray:
    """Return hashes of rows (n,) with those of their labels, if any, mixed in.

    Shapes: missing (n,).
    """
    hashes = hashes.copy()
    known = ~missing
    if known.any():
        hashes[known] = scatter(hashes[known] + cell_hashes(labels[known]))
    return hashes


def draw_keys(hashes: AnyArray) -> AnyArray:
    """Return a random-looking number (n,) for the hash (n,) of each row.

    Copies of a row get different ones.
    """
    ordered = np.sort(hashes)
    copies = np.zeros(len(hashes), dtype=np.uint64)
    again = np.isin(hashes, ordered[1:][ordered[1:] == ordered[:-1]])
    copies[again] = pd.Series(hashes[again]).groupby(hashes[again], sort=False).cumcount()
    return scatter(scatter(hashes) + copies * GOLDEN)


def content_order(
    frame: pd.DataFrame,
    labels: pd.Series | None = None,
    missing: Mask | None = None,
    *,
    ties: pd.DataFrame | None = None,
) -> AnyArray:
    """Return the order (n,) of rows by their cells and labels, then by their cells in `ties`.

    Copies stay as they came. Names and places of columns do not count, unless two columns hold the
    same cells beside the same others. Shapes: missing (n,).
    """
    # Sums do not know in which order columns come. Rows that hold the same cells in other columns
    # have the same sum; the cells of a column tell it from the others then.
    sums = np.zeros(len(frame), dtype=np.uint64)
    for hashes in _hashes_of_columns(frame):
        sums += scatter(hashes)
    if labels is not None and missing is not None:
        sums = labelled_hashes(sums, labels, missing)
    by_name = row_hashes(frame)
    keys = [by_name, _sums_by_column(frame, sums, by_name), sums]
    if ties is not None:
        keys.insert(0, row_hashes(ties))
    return np.lexsort(keys)


def _sums_by_column(frame: pd.DataFrame, sums: AnyArray, by_name: AnyArray) -> AnyArray:
    """Return hashes (n,) that tell rows with the same cells in other columns apart, 0 elsewhere.

    Shapes: sums (n,) of the hashes of cells, by_name (n,) hashes of rows.
    """
    keys = np.zeros(len(frame), dtype=np.uint64)
    tied = pd.Series(sums).duplicated(keep=False).to_numpy()
    n_sums = len(np.unique(sums[tied]))
    are_copies = len(np.unique(by_name[tied])) == n_sums
    if are_copies:
        return keys
    for hashes in _hashes_of_columns(frame.loc[tied]):
        of_column = np.sum(scatter(hashes + sums[tied]), keepdims=True)
        keys[tied] += scatter(hashes + scatter(of_column))
    return keys
