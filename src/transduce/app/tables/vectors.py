"""Columns of vectors, lists of numbers however they are stored, as one block of features."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from transduce.app.tables.pictures import read_pictures
from transduce.app.tables.whole_numbers import with_all_digits
from transduce.core.types import AnyArray, Array, ColumnName, Mask
from transduce.core.words import counted

MOST_DIRECTIONS = 256  # longer vectors are projected onto so many
PROJECTED_ROWS = 10_000  # that the projection is fitted to, at most
PREVAILS = 0.5  # more than this share of the lists has the length of the vectors
UNIT_SHARE = 0.95  # so many vectors are near to length 1, if all are to have it
UNIT_ERROR = 0.01  # and this near
LOOKED_AT = 20  # cells that show whether a column may hold vectors
# Of readings that look at every cell; others look once at what several have in common.
EACH = slice(None)
SHOWN = 3  # numbers of a vector in short form
_PACKED = pa.large_list(pa.float32())
_AT_A_TIME = 2**22  # numbers that are hashed together
_NOT_NUMBERS = r"[^\d\s.,;+\-eainful]"  # what no list in text holds, in small letters
_FIGURE = r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf)"
# Eight numbers or more are neither a date nor a telephone's.
_BARE = rf"^((?:{_FIGURE}[\s,;]+){{7,}}{_FIGURE})$"
_BEGINNING = re.compile(rf"\s*(\[|\(|\{{|array\(\[|tensor\(\[|{_BARE[1:]})", re.I)
# As Python, its libraries and Postgres write lists and missing numbers; (1,234) without a blank is
# minus 1234.
_SPELLINGS = (
    (r"np\.\w+\(([^(),]*)\)", r"\1"),
    (r"(?s)^(?:array|tensor)\((.*\]).*\)$", r"\1"),
    (r"(?s)^(?:\((.*,\s.*)\)|\{(.*)\})$", r"[\1\2]"),
    (_BARE, r"[\1]"),
    ("none|null", "nan"),
    ("infinity", "inf"),
)


@dataclass(frozen=True, eq=False)
class Vectors:
    """The lists of numbers in the cells of a column."""

    numbers: AnyArray  # (t,) in single precision, one list after the other
    lengths: AnyArray  # (n,) of each list; 0 where there is none
    known: Mask  # (n,) which cells hold a list
    n_odd: int = 0  # cells that hold something else

    @property
    def length(self) -> int:
        """The length that prevails, 0 if none does."""
        lengths, counts = np.unique(self.lengths[self.known], return_counts=True)
        if not len(lengths) or counts.max() <= PREVAILS * (counts.sum() + self.n_odd):
            return 0
        return int(lengths[counts.argmax()])

    def matrix(self, length: int) -> AnyArray:
        """Return the vectors of one length, shape (n, length), NaN where a cell holds none."""
        good = self.known & (self.lengths == length)
        if good.all():
            return self.numbers.reshape(len(good), length)
        rows = np.full((len(good), length), np.nan, dtype=np.float32)
        rows[good] = self.numbers[np.repeat(good, self.lengths)].reshape(-1, length)
        return rows

    def hashes(self) -> AnyArray:
        """Return a 64-bit number for each cell by its numbers alone, 0 where there are none."""
        hashes = np.zeros(len(self.known), dtype=np.uint64)
        row = 0
        begins = np.append(0, np.cumsum(self.lengths))
        longest = self.lengths.max(initial=0)
        factors = np.random.default_rng(0).integers(2**63, size=longest, dtype=np.uint64) * 2 + 1
        while row < len(hashes):
            end = max(row + 1, int(np.searchsorted(begins, begins[row] + _AT_A_TIME, "right")) - 1)
            starts = begins[row : end + 1] - begins[row]
            lengths = self.lengths[row:end]
            numbers = self.numbers[begins[row] : begins[end]] + np.float32(0.0)  # -0.0 is 0.0
            bits = np.where(np.isnan(numbers), np.float32(np.nan), numbers).view(np.uint32)
            places = np.arange(len(bits)) - np.repeat(starts[:-1], lengths)
            sums = np.append(np.uint64(0), np.cumsum(bits * factors[places], dtype=np.uint64))
            of_rows = sums[starts[1:]] - sums[starts[:-1]]
            hashes[row:end] = of_rows + lengths.astype(np.uint64)
            row = end
        return hashes


def read_vectors(series: pd.Series) -> Vectors | None:
    """Return the lists of numbers in a column; None if it holds anything else, or no number."""
    vectors = _lists_in(series)
    if vectors is None:
        return None
    all_odd = vectors.n_odd and not vectors.known.any()
    if not len(vectors.numbers) and not all_odd:
        return None
    return vectors


def _lists_in(series: pd.Series) -> Vectors | None:
    """Return the lists in a column, however they are stored; None if it holds none."""
    if isinstance(series.dtype, pd.ArrowDtype):
        stored = series.dtype.pyarrow_dtype
        if _holds_numbers(stored):
            return _of_arrow(series.array.__arrow_array__())
        if pa.types.is_nested(stored):
            series = series.astype(object)
    if series.dtype != object and not pd.api.types.is_string_dtype(series):
        return None
    first = [series.iat[row] for row in np.flatnonzero(series.notna())[:LOOKED_AT]]
    if any(map(_is_list, first)):
        return _of_cells(series)
    if any(isinstance(cell, str) and _BEGINNING.match(cell) for cell in first):
        return _of_texts(series)
    return None


def _is_list(cell: object) -> bool:
    """Return whether a cell is a list, an array, a series, a tensor or a sparse row."""
    if isinstance(cell, str | bytes | bytearray | memoryview | np.generic):
        return False
    return isinstance(cell, Sequence) or hasattr(cell, "__array__") or hasattr(cell, "toarray")


def _holds_numbers(kind: Any) -> bool:
    """Return whether an Arrow type is one of lists of numbers."""
    types = pa.types
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return False
    numbers = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    return any(is_one(kind.value_type) for is_one in numbers)


def _of_arrow(lists: Any) -> Vectors:
    """Return the vectors in Arrow's lists, without a Python object for any of them."""
    packed = lists.cast(_PACKED, safe=False)
    if isinstance(packed, pa.ChunkedArray):
        packed = packed.combine_chunks()
    else:
        packed = packed
    known = packed.is_valid().to_numpy(zero_copy_only=False)
    lengths = pc.fill_null(pc.list_value_length(packed), 0).to_numpy(zero_copy_only=False)
    return Vectors(packed.flatten().to_numpy(zero_copy_only=False), lengths, known)


def _of_cells(series: pd.Series) -> Vectors | None:
    """Return the vectors in lists, tuples and arrays of Python; matrices row after row."""
    missing = series.isna().to_numpy(dtype=bool)
    with np.errstate(over="ignore"):
        vectors = [_of_cell(cell) for cell in series]
    known = np.array([numbers is not None for numbers in vectors], dtype=bool)
    n_odd = int((~known & ~missing).sum())
    if not known.any() or n_odd >= known.sum():
        return None
    lists = [np.empty(0, np.float32) if numbers is None else numbers for numbers in vectors]
    return Vectors(np.concatenate(lists), np.array([*map(len, lists)]), known, n_odd)


def _of_cell(cell: Any) -> AnyArray | None:
    if not _is_list(cell):
        return None
    try:
        if hasattr(cell, "toarray"):
            cell = cell.toarray()
        elif hasattr(cell, "tolist") and (type(cell) is not np.ndarray or cell.dtype == object):
            cell = cell.tolist()  # None where an array is masked
        if np.iscomplexobj(cell):
            return None
        return np.asarray(cell, dtype=np.float32).ravel()
    except (TypeError, ValueError, OverflowError):
        return None


def _of_texts(series: pd.Series) -> Vectors | None:
    """Return the vectors in texts such as "[0.1, 0.2]".

    Commas, semicolons or blanks stand between the numbers.
    """
    cells = pa.array(
        [cell if isinstance(cell, str) else None for cell in series], pa.large_string()
    )
    texts = pc.utf8_lower(pc.utf8_trim_whitespace(cells))
    for words, number in _SPELLINGS:
        texts = pc.replace_substring_regex(texts, words, number)
    inner = pc.utf8_trim(pc.utf8_slice_codeunits(texts, 1, -1), " \t\r\n,;")
    good = pc.and_(pc.starts_with(texts, "["), pc.ends_with(texts, "]"))
    good = pc.and_(good, pc.invert(pc.match_substring_regex(inner, _NOT_NUMBERS)))
    pieces = pc.split_pattern_regex(pc.if_else(good, inner, None), r"[\s,;]+")
    odd = pc.invert(pc.match_substring_regex(pieces.flatten(), f"^({_FIGURE})?$"))
    rows = pc.list_parent_indices(pieces).filter(odd)
    all_rows = pa.array(np.arange(len(good)))
    has_odd = pc.is_in(all_rows, rows.unique())
    good = pc.and_(good, pc.invert(has_odd))
    pieces = pc.if_else(good, pieces, None)
    numbers = pieces.flatten()
    numbers = pc.if_else(pc.equal(numbers, ""), pa.scalar("nan", pa.large_string()), numbers)
    known = pc.fill_null(good, False).to_numpy(zero_copy_only=False)
    present = cells.is_valid().to_numpy(zero_copy_only=False)
    lengths = pc.fill_null(pc.list_value_length(pieces), 0).to_numpy(zero_copy_only=False)
    n_odd = int((present & ~known).sum())
    n_cut = pc.sum(pc.match_substring(texts, "...")).as_py() or 0
    alone = lengths.max(initial=0) < 2  # notes such as [1]
    if n_cut <= PREVAILS * n_odd and (n_odd >= known.sum() or alone):
        return None
    values = (
        numbers.cast(pa.float64()).cast(pa.float32(), safe=False).to_numpy(zero_copy_only=False)
    )
    return Vectors(values, lengths, known, n_odd)


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """Return an Arrow table as a frame.

    Lists of numbers stay in Arrow's memory, in single precision.
    """
    for place, field in enumerate(table.schema):
        column = table.column(place)
        if isinstance(field.type, pa.BaseExtensionType):  # such as tensors of one shape
            column = pa.chunked_array(
                [chunk.storage for chunk in column.chunks], field.type.storage_type
            )
        if _holds_numbers(column.type):
            table = table.set_column(place, field.name, column.cast(_PACKED, safe=False))
    packed = {_PACKED: pd.ArrowDtype(_PACKED)}
    frame = table.to_pandas(ignore_metadata=True, types_mapper=packed.get)
    return with_all_digits(frame, partial(_integers_at, table))


def _integers_at(table: pa.Table, place: int) -> list[Any] | None:
    """Return the cells of a column of whole numbers, None of other columns."""
    column = table.column(place)
    if pa.types.is_integer(column.type):
        return column.to_pylist()
    return None


def in_short(cell: object) -> str | None:
    """Return a vector as a person reads it, or None if a cell holds none.

    It shows the first numbers, and how many there are.
    """
    vectors = read_vectors(pd.Series([cell], dtype=object))
    if vectors is None or len(vectors.numbers) <= SHOWN + 1:
        return None
    first = ", ".join(f"{number:.4g}" for number in vectors.numbers[:SHOWN])
    return f"[{first}, …], {len(vectors.numbers):,} numbers"


@dataclass(frozen=True, eq=False)
class Projection:
    """The directions in which vectors vary most; fitted without a look at any label."""

    centre: AnyArray  # (d,) in single precision
    spread: AnyArray  # (d,) of each number
    components: Any  # a fitted `sklearn.decomposition.PCA`

    def apply(self, matrix: Array) -> Array:
        """Return the coordinates along the directions. Shapes: matrix (n, d); returns (n, k)."""
        return self.components.transform((matrix - self.centre) / self.spread)


@dataclass(frozen=True, eq=False)
class VectorReading:
    """How a column of vectors is read."""

    length: int
    middle: Array  # (length,) takes the place of what is missing
    unit: bool  # whether they have unit length, so that they are compared by their cosine
    projection: Projection | None = None
    folder: str | None = None  # of pictures, of which vectors are made
    groups: tuple[tuple[int, float], ...] = ()  # with a common scale: how many, and their weight

    def parts(self, name: ColumnName, series: pd.Series) -> tuple[slice, dict[str, Array]]:
        """Return that each cell is looked at, its vector, and which vectors are missing.

        A vector may be told by its directions.
        """
        if self.folder is not None:
            return EACH, self.named(name, read_pictures(series, self.folder)[0])
        vectors = read_vectors(series)
        nowhere = np.zeros(len(series), dtype=int)
        vectors = vectors or Vectors(np.empty(0, np.float32), nowhere, nowhere > 0)
        return EACH, self.named(name, vectors.matrix(self.length))

    def named(self, name: ColumnName, matrix: Array) -> dict[str, Array]:
        """Return the same features of vectors that are read already. Shapes: matrix (n, length)."""
        odd = not_finite(matrix)
        missing = np.zeros(len(matrix))
        missing[odd] = np.isnan(matrix[odd]).all(axis=1)
        matrix = filled(matrix, self.middle)
        word = "number" if self.projection is None else "direction"
        if self.projection is not None:
            matrix = self.projection.apply(matrix)
        parts = {f"{name}: {word} {j + 1}": values for j, values in enumerate(matrix.T)}
        return {**parts, f"{name} is missing": missing}


def not_finite(matrix: Array) -> AnyArray:
    """Return the rows in which a number is missing or infinite.

    No array of the size of the matrix is made.
    """
    with np.errstate(invalid="ignore"):
        return np.flatnonzero(~np.isfinite(matrix.sum(axis=1, dtype=float)))


def filled(matrix: Array, middle: Array) -> Array:
    """Return vectors whose missing and infinite numbers are those of the middle.

    Shapes: matrix (n, d), middle (d,).
    """
    rows = not_finite(matrix)
    if len(rows):
        matrix = matrix.copy()
        matrix[rows] = np.where(np.isfinite(matrix[rows]), matrix[rows], middle)
    return matrix


def middle_of(matrix: AnyArray) -> AnyArray:
    """Return the median of each number of the vectors that have it, shape (d,).

    It is 0 where none has it.
    """
    known = [column[np.isfinite(column)] for column in matrix.T]
    return np.array(
        [np.median(column) if len(column) else 0.0 for column in known], dtype=np.float32
    )


def of_unit_length(matrix: Array) -> bool:
    """Return whether vectors have unit length: nearly all of those without gaps, except zeros."""
    norms = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=float))
    norms = norms[np.isfinite(norms) & (norms > 0.0)]
    return bool(len(norms) and np.mean(np.abs(norms - 1.0) <= UNIT_ERROR) >= UNIT_SHARE)


def gap_notes(name: ColumnName, vectors: Vectors, matrix: Array) -> list[str]:
    """Return what the user should know of cells that hold no vector, or one with gaps.

    Shapes: matrix (n, d).
    """
    n_other = int((vectors.known & (vectors.lengths != matrix.shape[1])).sum())
    n_empty = len(matrix) - int(vectors.known.sum()) - vectors.n_odd
    n_gaps = len(not_finite(matrix)) - n_other - n_empty - vectors.n_odd
    kinds = (
        (n_empty, "cell is empty", "cells are empty"),
        (n_other, "vector has another length", "vectors have another length"),
        (vectors.n_odd, "cell holds something else", "cells hold something else"),
        (n_gaps, "vector has gaps or infinite numbers", "vectors have gaps or infinite numbers"),
    )
    gaps = ", ".join(counted(*kind) for kind in kinds if kind[0])
    if not gaps:
        return []
    return [
        f"{name!r} holds vectors of {counted(matrix.shape[1], 'number')}, but {gaps}: "
        "the median was taken there."
    ]


def left_out_note(name: ColumnName, vectors: Vectors) -> str:
    """Return that a column of lists is left out, since no length prevails."""
    n_lengths = len(np.unique(vectors.lengths[vectors.known]))
    if not n_lengths:
        return (
            f"{name!r} was left out: its vectors were cut short (...) "
            "when they were written as text."
        )
    lists = counted(int(vectors.known.sum()), "list")
    return (
        f"{name!r} was left out: its {lists} of numbers have {n_lengths:,} lengths, "
        "and none of them prevails."
    )
