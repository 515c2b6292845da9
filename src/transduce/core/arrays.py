"""The seam between the numerics and the library that holds the arrays: numpy, or torch on a GPU."""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from types import ModuleType
from typing import Any

import numpy as np
from sklearn import get_config

from transduce.core.computing import setting
from transduce.core.types import AnyArray, DeviceArray, Namespace

SWITCHED_OFF = (
    "X is an array of {library}: switch on scikit-learn's array dispatch, "
    "sklearn.set_config(array_api_dispatch=True), or pass a numpy array."
)
_dispatching: ContextVar[bool] = ContextVar("transduce_dispatching", default=False)


def library_of(array: DeviceArray) -> str:
    """Return the library that an array belongs to; "numpy" for anything that is not an array."""
    name = type(array).__module__.partition(".")[0]
    if name == "torch":
        return name
    of_numpy = name in ("numpy", "pandas", "polars", "scipy")
    if not of_numpy and hasattr(array, "__array_namespace__"):
        return name
    return "numpy"


def is_foreign(array: DeviceArray) -> bool:
    """Return whether an array belongs to another library than numpy."""
    return type(array) is not np.ndarray and library_of(array) != "numpy"


def check_dispatch(array: DeviceArray) -> None:
    """Raise a ValueError with what to switch on, if dispatch to other libraries is off."""
    is_on = _dispatching.get() or get_config()["array_api_dispatch"]
    if is_foreign(array) and not is_on:
        raise ValueError(SWITCHED_OFF.format(library=library_of(array)))


def dispatching() -> AbstractContextManager[None]:
    """Take arrays of other libraries within this block, whatever scikit-learn's setting is.

    Examples
    --------
    >>> with dispatching():
    ...     check_dispatch(np.ones(1))
    """
    return setting(_dispatching, True)


def namespace(*arrays: DeviceArray) -> Namespace:
    """Return the array API namespace of arrays: numpy itself unless one is of another library."""
    foreign = [array for array in arrays if is_foreign(array)]
    if not foreign:
        return np
    return _compat().array_namespace(*foreign)


def _compat() -> ModuleType:
    """Return array-api-compat: the package itself, else the copy that scikit-learn carries."""
    for name in ("array_api_compat", "sklearn.externals.array_api_compat"):
        with suppress(ImportError):
            return importlib.import_module(name)
    raise ValueError(
        "Arrays of other libraries need array-api-compat: pip install array-api-compat."
    )


def cumulative_sum(array: DeviceArray, axis: int | None = None) -> DeviceArray:
    """Return sums of all entries up to each; numpy has the name from 2.1 on only."""
    xp = namespace(array)
    if xp is np:
        return np.cumsum(array, axis=axis)
    return xp.cumulative_sum(array, axis=axis)


def to_numpy(array: DeviceArray) -> DeviceArray:
    """Return an array as numpy's, copied from its device if it has one; anything else as it is."""
    library = library_of(array)
    if library == "numpy":
        return array
    if library == "torch":
        return array.detach().cpu().numpy()
    if library == "array_api_strict" and hasattr(array, "_array"):
        return np.asarray(array._array).copy()  # on its imagined devices there is no DLPack
    return np.from_dlpack(array)


def asarray_like(values: Any, like: DeviceArray, dtype: Any = None) -> DeviceArray:
    """Return values as an array of the library and on the device of another array."""
    xp = namespace(like)
    kind = None
    if dtype is not None:
        kind = getattr(xp, dtype)
    if xp is np:
        return np.asarray(values, dtype=kind)
    if library_of(values) == library_of(like):
        if kind is None:
            return values
        return xp.astype(values, kind, copy=False)
    values = np.asarray(values)
    if not values.flags.writeable:  # torch warns of such
        values = values.copy()
    return xp.asarray(values, dtype=kind, **on_device(like))


def copy(array: DeviceArray) -> DeviceArray:
    """Return a copy of an array, where it lives."""
    if not is_foreign(array):
        return array.copy()
    return namespace(array).asarray(array, copy=True)


def as_double(array: DeviceArray) -> DeviceArray:
    """Return an array in double precision, where it lives."""
    return asarray_like(array, array, "float64")


def cast(values: Any, like: DeviceArray) -> DeviceArray:
    """Return values of numpy in the library, device and precision of another array."""
    if not is_foreign(like):
        return values.astype(like.dtype, copy=False)
    return namespace(like).astype(asarray_like(values, like), like.dtype)


def contiguous(array: DeviceArray) -> DeviceArray:
    """Return an array of numpy with its rows one after another, as compiled loops want it.

    Arrays of other libraries stay as they are.
    """
    if is_foreign(array):
        return array
    return np.ascontiguousarray(array)


def zeros(shape: Any, like: DeviceArray, dtype: str = "float64") -> DeviceArray:
    """Return zeros of the library and on the device of another array."""
    xp = namespace(like)
    return xp.zeros(shape, dtype=getattr(xp, dtype), **on_device(like))


def on_device(like: DeviceArray) -> dict[str, Any]:
    """Return the keyword that creates an array on the device of another; none for numpy."""
    if not is_foreign(like):
        return {}
    return {"device": _compat().device(like)}


def blocks(n: int, size: int) -> list[slice]:
    """Return slices of `n` rows, so many at a time."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def pick(X: DeviceArray, mask: Any) -> DeviceArray:
    """Return the rows of an array at a mask or at positions, both numpy's."""
    if type(X) is np.ndarray:  # faster than by the mask itself
        return X.take(_positions(mask), axis=0)
    if not is_foreign(X):
        return X[mask]
    places = asarray_like(_positions(mask).astype(np.int64), X)
    return namespace(X).take(X, places, axis=0)


def _positions(mask: Any) -> AnyArray:
    """Return the positions at which a mask is True; positions as they are."""
    places = np.asarray(mask)
    if places.dtype == bool:
        return np.flatnonzero(places)
    return places


def replaced(array: DeviceArray, mask: Any, values: Any) -> DeviceArray:
    """Return an array (n, c) with other rows (k, c) where numpy's mask is True."""
    if not is_foreign(array):
        array = array.copy()
        array[mask] = values
        return array
    n_rows = array.shape[0]
    place_of_value = n_rows + np.cumsum(mask) - 1
    place = np.where(mask, place_of_value, np.arange(n_rows))
    xp = namespace(array)
    all_rows = xp.concat([array, values], axis=0)
    return xp.take(all_rows, asarray_like(place, array), axis=0)


def pick_columns(X: DeviceArray, mask: Any) -> DeviceArray:
    """Return the columns of an array at a mask or at positions, both numpy's."""
    if not is_foreign(X):
        return X[:, mask]
    places = asarray_like(_positions(mask).astype(np.int64), X)
    return namespace(X).take(X, places, axis=1)


def lexsort(columns: DeviceArray) -> DeviceArray:
    """Return the order of rows by the first of some columns (n, d), then the second, and so on."""
    xp = namespace(columns)
    n_used = 1
    while True:  # as a rule, a few columns tell all rows apart
        order = xp.argsort(columns[:, n_used - 1], stable=True)
        for column in range(n_used - 2, -1, -1):
            by_column = xp.argsort(xp.take(columns[:, column], order), stable=True)
            order = xp.take(order, by_column)
        used = xp.take(columns[:, :n_used], order, axis=0)
        equal = xp.all(used[1:, :] == used[:-1, :], axis=1)
        if n_used == columns.shape[1] or not bool(xp.any(equal)):
            return order
        n_used = min(4 * n_used, columns.shape[1])


def unique_rows(X: DeviceArray) -> DeviceArray:
    """Return the distinct rows in ascending order."""
    return counted_rows(X)[0]


def counted_rows(X: DeviceArray) -> tuple[DeviceArray, AnyArray]:
    """Return the distinct rows in ascending order, and how often each occurs, a numpy array."""
    xp = namespace(X)
    ordered = xp.take(X, lexsort(X), axis=0)
    new = xp.any(ordered[1:, :] != ordered[:-1, :], axis=1)
    first = np.flatnonzero(np.concatenate([[True], to_numpy(new)]))
    counts = np.diff(np.append(first, X.shape[0]))
    return pick(ordered, first), counts


def largest(array: DeviceArray) -> float:
    """Return the largest of some numbers that are not negative; 0 if there are none."""
    if array.shape[0] == 0:
        return 0.0
    return float(namespace(array).max(array))


def farthest(array: DeviceArray) -> float:
    """Return the largest distance from 0 of some numbers; 0 if there are none.

    No copy of them is made.
    """
    if 0 in array.shape:
        return 0.0
    xp = namespace(array)
    return max(float(xp.max(array)), -float(xp.min(array)))


def diagonal(A: DeviceArray) -> DeviceArray:
    """Return the diagonal of a square matrix."""
    return namespace(A).linalg.diagonal(A)


def shifted(A: DeviceArray, number: Any) -> DeviceArray:
    """Return ``A + number I``."""
    return with_diagonal(copy(A), diagonal(A) + number)


def with_diagonal(A: DeviceArray, value: Any) -> DeviceArray:
    """Return a square matrix with a number, or one for each row, along its diagonal.

    It may be the same matrix, changed.
    """
    library = library_of(A)
    if library == "torch":
        A.diagonal()[:] = value
        return A
    if library == "numpy":
        A.reshape(-1)[:: A.shape[0] + 1] = value
        return A
    xp = namespace(A)
    is_diagonal = xp.eye(A.shape[0], dtype=xp.bool, **on_device(A))
    return xp.where(is_diagonal, xp.zeros_like(A) + value, A)


def column_squares(A: DeviceArray) -> DeviceArray:
    """Return the sum of squares of every column of a matrix (n, m), shape (m,)."""
    if is_foreign(A):
        return namespace(A).sum(A * A, axis=0)
    return np.einsum("ij,ij->j", A, A)


def row_products(A: DeviceArray, B: DeviceArray) -> DeviceArray:
    """Return the inner product of each row of A with that of B, both (n, d), shape (n,)."""
    if is_foreign(A):
        return namespace(A).sum(A * B, axis=1)
    return np.einsum("ij,ij->i", A, B)
