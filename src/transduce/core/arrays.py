"""The seam between the numerics and the library that holds the arrays: numpy, or torch and cupy on a GPU.

Functions take their namespace from their arrays, so that results live where the input lives. What the array API
standard lacks is adapted here, once for each library. numpy's own path is numpy and scipy alone.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import ModuleType
from typing import Any

import numpy as np
import scipy.linalg
from sklearn import get_config

from transduce.core.words import option

SWITCHED_OFF = (
    "X is an array of {library}: switch on scikit-learn's array dispatch, sklearn.set_config(array_api_dispatch=True), "
    "or pass a numpy array."
)
_dispatching: ContextVar[bool] = ContextVar("transduce_dispatching", default=False)


# ------------------------------------------------------------------------------------- libraries and devices


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
    return library_of(array) != "numpy"


def check_dispatch(array: Any) -> None:
    """Raise a ValueError with what to switch on, if an array of another library comes without dispatch."""
    if is_foreign(array) and not (_dispatching.get() or get_config()["array_api_dispatch"]):
        raise ValueError(SWITCHED_OFF.format(library=library_of(array)))


@contextmanager
def dispatching() -> Iterator[None]:
    """Take arrays of other libraries within this block, whatever scikit-learn's setting is.

    Examples
    --------
    >>> with dispatching():
    ...     check_dispatch(np.ones(1))
    """
    token = _dispatching.set(True)
    try:
        yield
    finally:
        _dispatching.reset(token)


def namespace(*arrays: Any) -> Any:
    """Return the array API namespace of some arrays: numpy itself unless one belongs to another library."""
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
        "Arrays of other libraries than numpy need array-api-compat: pip install transduce[gpu]."
    )


def device_of(array: Any) -> Any:
    """Return the device an array lives on; None for numpy."""
    return _compat().device(array) if is_foreign(array) else None


def to_device(X: Any, device: str = "cuda") -> Any:
    """Return a numpy array as one that lives on a device, for estimators to compute there.

    Parameters
    ----------
    X : array-like
        An array of another library is moved within that library.
    device : str, default="cuda"
        As torch names devices: ``"cuda"``, ``"cuda:1"``, ``"cpu"``. Without torch, cupy takes ``"cuda"``.

    Returns
    -------
    torch.Tensor or cupy.ndarray
        In double precision.

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> to_device(np.ones(2), "cpu")
    tensor([1., 1.], dtype=torch.float64)
    """
    if library_of(X) == "cupy":
        return X
    try:
        import torch
    except ModuleNotFoundError:
        return _to_cupy(X, device)
    try:
        target = torch.device(device)
        if target.type == "cuda" and not torch.cuda.is_available():
            raise RuntimeError("torch finds no CUDA device")
        return torch.as_tensor(X, dtype=torch.float64).to(target)
    except RuntimeError as error:
        raise ValueError(f"{option('device', device)} cannot be used: {error}.") from error


def _to_cupy(X: Any, device: str) -> Any:
    try:
        import cupy
    except ModuleNotFoundError:
        raise ValueError(
            f"{option('device', device)} needs torch or cupy: pip install transduce[gpu] brings torch."
        ) from None
    if not device.startswith("cuda"):
        raise ValueError(f"{option('device', device)} needs torch; cupy has 'cuda' alone.")
    return cupy.asarray(X, dtype=cupy.float64)


def to_numpy(array: Any) -> Any:
    """Return an array as numpy's, copied from its device if it has one; anything else as it is."""
    library = library_of(array)
    if library == "torch":
        return array.detach().cpu().numpy()
    if library == "cupy":
        return array.get()
    if library == "array_api_strict":  # on its imagined devices there is no DLPack
        return np.asarray(array._array).copy() if hasattr(array, "_array") else np.from_dlpack(array)
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
    return xp.asarray(values, dtype=kind, device=device_of(like))


def copy(array: Any) -> Any:
    """Return a copy of an array, where it lives."""
    return namespace(array).asarray(array, copy=True) if is_foreign(array) else array.copy()


def zeros(shape: Any, like: Any, dtype: str = "float64") -> Any:
    """Return zeros of the library and on the device of another array."""
    xp = namespace(like)
    return xp.zeros(shape, dtype=getattr(xp, dtype), **on_device(like))


def empty(shape: Any, like: Any) -> Any:
    """Return an array to be filled, of the library and on the device of another."""
    xp = namespace(like)
    return xp.empty(shape, dtype=xp.float64, **on_device(like))


def on_device(like: Any) -> dict[str, Any]:
    """Return the keyword that creates an array on the device of another; none for numpy."""
    return {"device": device_of(like)} if is_foreign(like) else {}


def rows_of(mask: Any, like: Any) -> Any:
    """Return a boolean or integer index from numpy as one that picks rows of another array."""
    return mask if not is_foreign(like) else beside(np.asarray(mask), like)


def pick(X: Any, mask: Any) -> Any:
    """Return the rows of an array at a mask or at positions, both numpy's."""
    mask = np.asarray(mask)
    if not is_foreign(X):
        run = _run(mask) if mask.dtype == bool else None
        return X[mask] if run is None else X[run].copy()  # several times as fast as a mask
    positions = np.flatnonzero(mask) if mask.dtype == bool else mask
    xp = namespace(X)
    return xp.take(X, beside(positions.astype(np.int64), X), axis=0)


def _run(mask: Any) -> slice | None:
    """Return the slice that a mask is True at, if it is one."""
    first, count = int(np.argmax(mask)) if len(mask) else 0, int(np.count_nonzero(mask))
    return slice(first, first + count) if bool(mask[first : first + count].all()) else None


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
    if not is_foreign(X):
        return X[:, mask]
    mask = np.asarray(mask)
    positions = np.flatnonzero(mask) if mask.dtype == bool else mask
    return namespace(X).take(X, beside(positions.astype(np.int64), X), axis=1)


def pick_block(X: Any, rows: Any, columns: Any) -> Any:
    """Return the rows at one mask and the columns at another."""
    return pick_columns(pick(X, rows), columns) if is_foreign(X) else X[np.ix_(rows, columns)]


# ------------------------------------------------------------------------------------------------- memory


def free_bytes(like: Any) -> float:
    """Return how many bytes are free on the device of an array; infinite where nothing says."""
    library = library_of(like)
    if library == "torch" and like.device.type == "cuda":
        import torch

        free, _ = torch.cuda.mem_get_info(like.device)
        held = torch.cuda.memory_reserved(like.device) - torch.cuda.memory_allocated(like.device)
        return float(free + held)
    if library == "cupy":
        import cupy

        pool = cupy.get_default_memory_pool()
        return float(like.device.mem_info[0] + pool.free_bytes())
    return np.inf


def check_fits(need: float, like: Any, what: str, advice: str) -> None:
    """Raise a MemoryError that says what is needed and what is free, before an allocation that cannot fit."""
    free = free_bytes(like)
    if need > free:
        raise MemoryError(
            f"{what} needs about {need / 1e9:.1f} GB, but the device has {free / 1e9:.1f} GB free. {advice}"
        )


def work_bytes(like: Any, budget: float) -> float:
    """Return how much a chunk of work may take: `budget`, or a fifth of what a device has free if that is more."""
    free = free_bytes(like)
    return max(budget, 0.2 * free) if np.isfinite(free) else budget


# ----------------------------------------------------------------------------------- what the standard lacks


def exp(A: Any) -> Any:
    """Return ``exp(A)``; the array may be the same, changed."""
    return A.exp_() if library_of(A) == "torch" else namespace(A).exp(A)


def exp_not_positive(A: Any) -> Any:
    """Return ``exp(min(A, 0))``; the array may be the same, changed."""
    if library_of(A) == "torch":
        return A.clamp_(max=0.0).exp_()
    xp = namespace(A)
    return xp.exp(xp.where(A < 0.0, A, xp.zeros_like(A)))


def times(A: Any, B: Any) -> Any:
    """Return the product entry by entry; the first array may be the same, changed."""
    return A.mul_(B) if library_of(A) == "torch" else A * B


def diagonal(A: Any) -> Any:
    """Return the diagonal of a square matrix."""
    return namespace(A).linalg.diagonal(A)


def shifted(A: Any, number: Any) -> Any:
    """Return ``A + number I``."""
    n = A.shape[0]
    if library_of(A) == "torch":
        A = A.clone()
        A.diagonal().add_(number)
        return A
    if library_of(A) in ("numpy", "cupy"):
        A = A.copy()
        A.reshape(-1)[:: n + 1] += number
        return A
    return A + float(number) * namespace(A).eye(n, dtype=A.dtype, **on_device(A))


def with_diagonal(A: Any, number: float) -> Any:
    """Return a square matrix with this number along its diagonal; it may be the same array, changed."""
    if library_of(A) == "torch":
        A.fill_diagonal_(number)
        return A
    if library_of(A) in ("numpy", "cupy"):
        A.reshape(-1)[:: A.shape[0] + 1] = number
        return A
    xp = namespace(A)
    own = xp.eye(A.shape[0], dtype=xp.bool, **on_device(A))
    return xp.where(own, xp.full_like(A, number), A)


def cholesky(A: Any) -> Any:
    """Return the lower Cholesky factor of a matrix, or of a batch of them; numpy's LinAlgError if there is none."""
    library = library_of(A)
    if library == "torch":
        import torch

        factor, info = torch.linalg.cholesky_ex(A)
        if bool((info != 0).any()):
            raise np.linalg.LinAlgError("Matrix is not positive definite")
        return factor
    xp = namespace(A)
    factor = xp.linalg.cholesky(A)
    if library == "cupy" and not bool(xp.all(xp.isfinite(factor))):
        raise np.linalg.LinAlgError("Matrix is not positive definite")
    return factor


def triangular_solve(factor: Any, b: Any, *, transposed: bool = False) -> Any:
    """Return ``L^-1 b``, or ``L'^-1 b``, for a lower triangular factor and many right sides.

    Shapes: factor (n, n), b (n,) or (n, k).
    """
    library = library_of(factor)
    if library == "numpy":
        return scipy.linalg.solve_triangular(
            factor, b, lower=True, trans="T" if transposed else "N", check_finite=False
        )
    columns = b[:, None] if b.ndim == 1 else b
    if library == "torch":
        import torch

        matrix = factor.T if transposed else factor
        solved = torch.linalg.solve_triangular(matrix, columns, upper=transposed)
    elif library == "cupy":
        from cupyx.scipy.linalg import solve_triangular

        solved = solve_triangular(factor, columns, lower=True, trans="T" if transposed else "N")
    else:
        solved = namespace(b).linalg.solve(factor.T if transposed else factor, columns)
    return solved[:, 0] if b.ndim == 1 else solved


def cholesky_solve(factor: Any, b: Any) -> Any:
    """Return ``(L L')^-1 b`` for the lower factor L."""
    if not is_foreign(factor):
        return scipy.linalg.cho_solve((factor, True), b)
    return triangular_solve(factor, triangular_solve(factor, b), transposed=True)


def kth_largest(values: Any, k: int) -> Any:
    """Return the `k`-th largest of each line, by selection where the library has one.

    Shapes: values (m, n); returns (m,).
    """
    library, place = library_of(values), values.shape[1] - k
    if library == "torch":
        return values.kthvalue(place + 1, dim=1).values
    if library == "numpy":
        return np.partition(values, place, axis=1)[:, place]
    xp = namespace(values)
    if library == "cupy":
        return xp.partition(values, place, axis=1)[:, place]
    return xp.sort(values, axis=1)[:, place]


def top_k(values: Any, k: int) -> tuple[Any, Any]:
    """Return the `k` largest of each line and where they stand, largest first; of equal ones any.

    Shapes: values (m, n); returns values, positions (m, k).
    """
    if library_of(values) == "torch":
        found = values.topk(k, dim=1)
        return found.values, found.indices
    xp = namespace(values)
    if library_of(values) == "cupy":
        some = xp.argpartition(-values, k - 1, axis=1)[:, :k]
        some = xp.take_along_axis(some, xp.argsort(-xp.take_along_axis(values, some, axis=1), axis=1), axis=1)
    else:
        some = (
            xp.argsort(values, axis=1, descending=True)[:, :k]
            if xp is not np
            else np.argsort(-values, axis=1, kind="stable")[:, :k]
        )
    return xp.take_along_axis(values, some, axis=1), some


def lexsort(columns: Any) -> Any:
    """Return the order of rows by the first column, then the second, and so on; `columns` has shape (n, d)."""
    if not is_foreign(columns):
        return np.lexsort(columns.T[::-1])
    xp = namespace(columns)
    order = xp.argsort(columns[:, -1], stable=True)
    for column in range(columns.shape[1] - 2, -1, -1):
        order = xp.take(order, xp.argsort(xp.take(columns[:, column], order), stable=True))
    return order


def unique_rows(X: Any) -> Any:
    """Return the distinct rows in ascending order."""
    if not is_foreign(X):
        return np.unique(X, axis=0)
    xp = namespace(X)
    ordered = xp.take(X, lexsort(X), axis=0)
    new = xp.any(ordered[1:, :] != ordered[:-1, :], axis=1)
    return pick(ordered, np.concatenate([[True], to_numpy(new)]))


def smallest_by_group(values: Any, groups: Any, n: int) -> Any:
    """Return the smallest value of each of `n` groups; `n` for an empty one.

    Shapes: values, groups (t,); returns (n,).
    """
    xp, library = namespace(values), library_of(values)
    found = xp.full((n,), n, dtype=values.dtype, **on_device(values))
    if library == "torch":
        return found.scatter_reduce(0, groups, values, "amin")
    if library == "cupy":
        xp.minimum.at(found, groups, values)
        return found
    host = to_numpy(found)
    np.minimum.at(host, to_numpy(groups), to_numpy(values))
    return beside(host, values)


def sum_by_group(values: Any, groups: Any, n: int) -> Any:
    """Return the sum of the values of each of `n` groups."""
    library = library_of(values)
    if library == "torch":
        return zeros((n,), values).index_add_(0, groups, values)
    if library == "cupy":
        return namespace(values).bincount(groups, weights=values, minlength=n)
    return beside(np.bincount(to_numpy(groups), weights=to_numpy(values), minlength=n), values)


class SparseRows:
    """A sparse matrix in compressed rows, on the device of its arrays, to be multiplied with dense blocks.

    Shapes: indptr (n + 1,), indices (n + 1,), data (t,).
    """

    def __init__(self, indptr: Any, indices: Any, data: Any, shape: tuple[int, int]) -> None:
        self.indptr, self.indices, self.data, self.shape = indptr, indices, data, shape
        self._matrix = self._build()

    def _build(self) -> Any:
        library = library_of(self.data)
        if library == "torch":
            import torch

            kind = torch.int32 if self.data.is_cuda and len(self.data) < 2**31 else torch.int64
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
                return torch.sparse_csr_tensor(
                    self.indptr.to(kind),
                    self.indices.to(kind),
                    self.data,
                    size=self.shape,
                    check_invariants=False,
                )
        if library == "cupy":
            from cupyx.scipy.sparse import csr_matrix

            return csr_matrix((self.data, self.indices, self.indptr), shape=self.shape)
        from scipy.sparse import csr_array

        return csr_array(
            (to_numpy(self.data), to_numpy(self.indices), to_numpy(self.indptr)), shape=self.shape
        )

    def __matmul__(self, block: Any) -> Any:
        """Return the product with a dense block (m, k)."""
        if library_of(block) in ("torch", "cupy"):
            return self._matrix @ block
        return beside(self._matrix @ to_numpy(block), block)

    def combine(self, block: Any, other: Any, scale: float, share: float, minus: Any) -> Any:
        """Return ``scale * (matrix @ block) + share * other - minus``; nothing is subtracted if `minus` is None."""
        if library_of(block) == "torch" and minus is not None:
            import torch

            return torch.sparse.addmm(minus, self._matrix, block, beta=-1.0, alpha=scale).add_(
                other, alpha=share
            )
        found = scale * (self @ block) + share * other
        return found if minus is None else found - minus
