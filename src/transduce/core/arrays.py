"""The seam between the numerics and the library that holds the arrays: numpy, or torch and cupy on a GPU."""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from types import ModuleType
from typing import Any

import numpy as np
from sklearn import get_config

from transduce.core.computing import setting

SWITCHED_OFF = (
    "X is an array of {library}: switch on scikit-learn's array dispatch, sklearn.set_config(array_api_dispatch=True), "
    "or pass a numpy array."
)
_dispatching: ContextVar[bool] = ContextVar("transduce_dispatching", default=False)


def library_of(array: Any) -> str:
    """Return the name of the library that an array belongs to; "numpy" for anything that is not an array."""
    name = type(array).__module__.partition(".")[0]
    if name in ("torch", "cupy"):
        return name
    if name not in ("numpy", "pandas", "polars", "scipy") and hasattr(array, "__array_namespace__"):
        return name
    return "numpy"


def is_foreign(array: Any) -> bool:
    """Return whether an array belongs to another library than numpy."""
    return type(array) is not np.ndarray and library_of(array) != "numpy"


def check_dispatch(array: Any) -> None:
    """Raise a ValueError with what to switch on, if an array of another library comes without dispatch."""
    if is_foreign(array) and not (_dispatching.get() or get_config()["array_api_dispatch"]):
        raise ValueError(SWITCHED_OFF.format(library=library_of(array)))


def dispatching() -> AbstractContextManager[None]:
    """Take arrays of other libraries within this block, whatever scikit-learn's setting is.

    Examples
    --------
    >>> with dispatching():
    ...     check_dispatch(np.ones(1))
    """
    return setting(_dispatching, True)


def namespace(*arrays: Any) -> Any:
    """Return the array API namespace of some arrays: numpy itself unless one belongs to another library."""
    foreign = [array for array in arrays if is_foreign(array)]
    return _compat().array_namespace(*foreign) if foreign else np


def _compat() -> ModuleType:
    """Return array-api-compat: the package itself, else the copy that scikit-learn carries."""
    for name in ("array_api_compat", "sklearn.externals.array_api_compat"):
        with suppress(ImportError):
            return importlib.import_module(name)
    raise ValueError("Arrays of other libraries need array-api-compat: pip install transduce[gpu].")


def cumulative_sum(array: Any, axis: int | None = None) -> Any:
    """Return sums of all entries up to each; numpy has the name from 2.1 on only."""
    xp = namespace(array)
    return np.cumsum(array, axis=axis) if xp is np else xp.cumulative_sum(array, axis=axis)


def to_numpy(array: Any) -> Any:
    """Return an array as numpy's, copied from its device if it has one; anything else as it is."""
    library = library_of(array)
    if library == "torch":
        return array.detach().cpu().numpy()
    if library == "cupy":
        return array.get()
    if library == "array_api_strict":  # on its imagined devices there is no DLPack
        return (
            np.asarray(array._array).copy() if hasattr(array, "_array") else np.from_dlpack(array)
        )
    return np.from_dlpack(array) if library != "numpy" else array


def beside(values: Any, like: Any, dtype: Any = None) -> Any:
    """Return values as an array of the library and on the device of another; by default in double precision."""
    xp = namespace(like)
    kind = None if dtype is None else getattr(xp, dtype)
    if xp is np:
        return np.asarray(values, dtype=kind)
    if library_of(values) == library_of(like):
        return values if kind is None else xp.astype(values, kind, copy=False)
    values = np.asarray(values)
    if not values.flags.writeable:  # torch warns of such
        values = values.copy()
    return xp.asarray(values, dtype=kind, **on_device(like))


def copy(array: Any) -> Any:
    """Return a copy of an array, where it lives."""
    return namespace(array).asarray(array, copy=True) if is_foreign(array) else array.copy()


def as_double(array: Any) -> Any:
    """Return an array in double precision, where it lives."""
    return beside(array, array, "float64")


def cast(values: Any, like: Any) -> Any:
    """Return values of numpy in the library, on the device and in the precision of another array."""
    if not is_foreign(like):
        return values.astype(like.dtype, copy=False)
    return namespace(like).astype(beside(values, like), like.dtype)


def contiguous(array: Any) -> Any:
    """Return an array of numpy with its rows one after another, as compiled loops want it; others as they are."""
    return array if is_foreign(array) else np.ascontiguousarray(array)


def zeros(shape: Any, like: Any, dtype: str = "float64") -> Any:
    """Return zeros of the library and on the device of another array."""
    xp = namespace(like)
    return xp.zeros(shape, dtype=getattr(xp, dtype), **on_device(like))


def on_device(like: Any) -> dict[str, Any]:
    """Return the keyword that creates an array on the device of another; none for numpy."""
    return {"device": _compat().device(like)} if is_foreign(like) else {}


def blocks(n: int, size: int) -> list[slice]:
    """Return slices of `n` rows, so many at a time."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def pick(X: Any, mask: Any) -> Any:
    """Return the rows of an array at a mask or at positions, both numpy's."""
    if type(X) is np.ndarray:  # faster than by the mask itself
        return X.take(np.flatnonzero(mask) if np.asarray(mask).dtype == bool else mask, axis=0)
    return (
        namespace(X).take(X, _positions(np.asarray(mask), X), axis=0) if is_foreign(X) else X[mask]
    )


def _positions(mask: Any, like: Any) -> Any:
    return beside((np.flatnonzero(mask) if mask.dtype == bool else mask).astype(np.int64), like)


def replaced(array: Any, mask: Any, values: Any) -> Any:
    """Return an array (n, c) with other rows (k, c) where numpy's mask is True."""
    if not is_foreign(array):
        array = array.copy()
        array[mask] = values
        return array
    place = np.where(mask, array.shape[0] + np.cumsum(mask) - 1, np.arange(array.shape[0]))
    xp = namespace(array)
    return xp.take(xp.concat([array, values], axis=0), beside(place, array), axis=0)


def pick_columns(X: Any, mask: Any) -> Any:
    """Return the columns of an array at a mask or at positions, both numpy's."""
    return (
        namespace(X).take(X, _positions(np.asarray(mask), X), axis=1)
        if is_foreign(X)
        else X[:, mask]
    )


def lexsort(columns: Any) -> Any:
    """Return the order of rows by the first column, then the second, and so on; `columns` has shape (n, d)."""
    xp, few = namespace(columns), 1
    while True:  # as a rule, a few columns tell all rows apart
        order = xp.argsort(columns[:, few - 1], stable=True)
        for column in range(few - 2, -1, -1):
            order = xp.take(order, xp.argsort(xp.take(columns[:, column], order), stable=True))
        first = xp.take(columns[:, :few], order, axis=0)
        equal = xp.all(first[1:, :] == first[:-1, :], axis=1)
        if few == columns.shape[1] or not bool(xp.any(equal)):
            return order
        few = min(4 * few, columns.shape[1])


def unique_rows(X: Any) -> Any:
    """Return the distinct rows in ascending order."""
    return counted_rows(X)[0]


def counted_rows(X: Any) -> tuple[Any, Any]:
    """Return the distinct rows in ascending order, and how often each occurs, a numpy array."""
    xp = namespace(X)
    ordered = xp.take(X, lexsort(X), axis=0)
    new = xp.any(ordered[1:, :] != ordered[:-1, :], axis=1)
    first = np.flatnonzero(np.concatenate([[True], to_numpy(new)]))
    counts = np.diff(np.append(first, X.shape[0]))
    return pick(ordered, first), counts


def largest(array: Any) -> float:
    """Return the largest of some numbers that are not negative; 0 if there are none."""
    return float(namespace(array).max(array)) if array.shape[0] else 0.0


def farthest(array: Any) -> float:
    """Return the largest distance from 0 of some numbers, without a copy of them; 0 if there are none."""
    if 0 in array.shape:
        return 0.0
    xp = namespace(array)
    return max(float(xp.max(array)), -float(xp.min(array)))


def diagonal(A: Any) -> Any:
    """Return the diagonal of a square matrix."""
    return namespace(A).linalg.diagonal(A)


def shifted(A: Any, number: Any) -> Any:
    """Return ``A + number I``."""
    return with_diagonal(copy(A), diagonal(A) + number)


def with_diagonal(A: Any, value: Any) -> Any:
    """Return a square matrix with a number, or one for each row, along its diagonal; it may be the same, changed."""
    if library_of(A) == "torch":
        A.diagonal()[:] = value
        return A
    if library_of(A) in ("numpy", "cupy"):
        A.reshape(-1)[:: A.shape[0] + 1] = value
        return A
    xp = namespace(A)
    return xp.where(xp.eye(A.shape[0], dtype=xp.bool, **on_device(A)), xp.zeros_like(A) + value, A)


def column_squares(A: Any) -> Any:
    """Return the sum of squares of every column of a matrix (n, m), shape (m,)."""
    return namespace(A).sum(A * A, axis=0) if is_foreign(A) else np.einsum("ij,ij->j", A, A)


def row_products(A: Any, B: Any) -> Any:
    """Return the inner product of each row of A with that of B, both (n, d), shape (n,)."""
    return namespace(A).sum(A * B, axis=1) if is_foreign(A) else np.einsum("ij,ij->i", A, B)
