"""Kernel matrices and width rules, of numpy arrays or where the rows live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist, pdist

from transduce.core import arrays
from transduce.core.types import Array, DeviceArray
from transduce.device.memory import check_fits
from transduce.device.neighbors import unit_rows

ON_DEVICE = ("cosine", "exponential", "laplacian", "linear", "poly", "polynomial", "rbf", "sigmoid")
_NAMES = {*ON_DEVICE, "additive_chi2", "chi2", "precomputed"}
_WITH_WIDTH = {"chi2", "exponential", "laplacian", "rbf"}
MANY_FEATURES = 100
LARGEST_SQUARE = 1e6  # squared width, up to which distances by a matrix product have their digits
MOST_PAIRED = 1000  # rows whose distances give the median
MOST_STEPS = 2**26  # differences of rows that are in memory at a time

# Their kernel values with some hundred points stay in the processor's cache; a multiple of what
# matrix products compute at a time, so that the place of a row among others changes no bit of its
# answer.
FEW_ROWS = 576
SMALL_SQUARE = 1e6  # a squared length, of which rounding errors are too small to be seen

KernelLike = str | Callable[..., float]
# Squared distances (n, k), and that of the row farthest from the centre.
Near = tuple[Array, float]


def check_kernel(kernel: KernelLike) -> None:
    """Raise a ValueError unless `kernel` is a known name or a callable."""
    if not callable(kernel) and not (isinstance(kernel, str) and kernel in _NAMES):
        names = ", ".join(sorted(_NAMES))
        raise ValueError(f"Unknown kernel {kernel!r}: use one of {names}, or a callable.")


def uses_width(kernel: KernelLike) -> bool:
    """Return whether the kernel has a length scale."""
    return isinstance(kernel, str) and kernel in _WITH_WIDTH


@dataclass(frozen=True)
class Kernel:
    """A kernel with its settings fixed."""

    name: KernelLike
    width: float = 1.0  # length scale
    degree: float = 3  # ``"poly"`` is ``(<u, v> + coef0) ** degree``
    coef0: float = 1.0

    def matrix(
        self,
        X: Array,
        Z: Array,
        near: Near | None = None,
    ) -> Array:
        """Return the kernel values (n, k) of rows (n, d) and (k, d), by known distances if any."""
        xp = arrays.namespace(X)
        if xp is not np:
            self._check_device(X, Z)
        if self.name == "rbf":
            squares = squared_distances(X, Z, self.width, near)
            return xp.exp(squares / (-2.0 * self.width**2))
        if self.name == "exponential":
            distances = xp.sqrt(_distances(X, Z, "sqeuclidean"))
            return xp.exp(distances / (-2.0 * self.width**2))
        if self.name == "laplacian":
            return xp.exp(_distances(X, Z, "cityblock") * (-1.0 / self.width))
        if self.name not in ON_DEVICE:
            return self._by_sklearn(X, Z)
        if self.name == "cosine":
            left = unit_rows(X)
            right = left if X is Z else unit_rows(Z)
            return left @ right.T
        products = X @ Z.T
        if self.name in ("poly", "polynomial"):
            products += self.coef0
            products **= self.degree
        if self.name == "sigmoid":
            return xp.tanh(products + self.coef0)
        return products

    def near(self, X: Array) -> Near | None:
        """Return the distances of rows (n, d) to each other, if they serve any width."""
        if self.name != "rbf":
            return None
        return near_distances(X, X)

    def _check_device(self, X: DeviceArray, Z: DeviceArray) -> None:
        """Raise an error if the kernel is not there for these arrays, or the matrix cannot fit."""
        if self.name not in ON_DEVICE:
            raise ValueError(
                f"kernel={self.name!r} is not there for arrays of {arrays.library_of(X)}: use one "
                f"of {', '.join(map(repr, ON_DEVICE))}, or pass numpy arrays."
            )
        what = f"The kernel matrix of {X.shape[0]:,} and {Z.shape[0]:,} rows"
        advice = "Give fewer rows, or kernel='linear', which needs none of it."
        n_bytes = 2 * 8.0 * X.shape[0] * Z.shape[0]
        check_fits(n_bytes, X, what, advice)

    def _by_sklearn(self, X: Array, Z: Array) -> Array:
        """Return kernels that scikit-learn alone has, and those of the user's function."""
        from sklearn.metrics.pairwise import pairwise_kernels

        smallest = min(X.min(initial=0.0), Z.min(initial=0.0))
        if self.name in ("chi2", "additive_chi2") and smallest < 0.0:
            raise ValueError(
                f"kernel={self.name!r} needs features that are not negative: pass "
                "standardize=False, or use another kernel."
            )
        if not callable(self.name):
            return pairwise_kernels(
                X,
                Z,
                metric=self.name,
                filter_params=True,
                gamma=1.0 / self.width,
            )
        try:
            return pairwise_kernels(X, Z, metric=self.name)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(
                "The kernel function must take two rows, as one-dimensional arrays, and return a "
                f"number: {error}"
            ) from error

    def checked_matrix(
        self,
        X: Array,
        Z: Array,
        near: Near | None = None,
    ) -> Array:
        """Return the same, or raise a ValueError if not all values are finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            K = self.matrix(X, Z, near)
        xp = arrays.namespace(K)
        if not bool(xp.all(xp.isfinite(K))):
            raise ValueError(
                f"kernel={self.name!r} gave values that are not finite: scale the features "
                "(standardize=True), or change the kernel's settings."
            )
        return K

    def times(self, X: Array, Z: Array, coefficients: Array) -> Array:
        """Return ``K coefficients`` (n, c) for coefficients (k, c), or raise the same error.

        The kernel matrix is never there as a whole where its values are good to a billionth.
        """
        if self.name == "rbf" and not arrays.is_foreign(X):
            centre = Z.mean(axis=0)
            centred = X - centre
            with np.errstate(over="ignore", invalid="ignore"):
                squares = [arrays.row_products(rows, rows) for rows in (centred, Z - centre)]
            if max(map(arrays.largest, squares)) < LARGEST_SQUARE * self.width**2:
                relevance = np.full(X.shape[1], 1.0 / (np.sqrt(2.0) * self.width))
                return kernel_times(centred, Z - centre, relevance, coefficients)
        return self.checked_matrix(X, Z) @ coefficients

    def check_symmetry(self, X: Array) -> None:
        """Raise a ValueError if the user's function depends on the order of its arguments."""
        if not callable(self.name):
            return
        first = X[:10]
        last = X[-10:]
        forth = self.matrix(first, last)
        back = self.matrix(last, first).T
        if not np.allclose(forth, back, rtol=1e-8, equal_nan=True):
            raise ValueError("The kernel is not symmetric: kernel(u, v) must equal kernel(v, u).")

    def diagonal(self, X: Array) -> Array:
        """Return the kernel value of each row (n, d) with itself, shape (n,)."""
        if self.name in ("rbf", "exponential", "laplacian", "chi2"):
            return arrays.zeros((X.shape[0],), X) + 1.0
        xp = arrays.namespace(X)
        squares = arrays.row_products(X, X)
        if self.name == "linear":
            return squares
        if self.name in ("poly", "polynomial"):
            return (squares + self.coef0) ** self.degree
        if self.name == "sigmoid":
            return xp.tanh(squares + self.coef0)
        if self.name == "cosine":
            largest = xp.max(xp.abs(X), axis=1)  # squares of small numbers are 0
            return xp.where(largest > 0.0, xp.ones_like(largest), largest)
        values = []
        for row in X:
            alone = row[None]
            values.append(self.matrix(alone, alone)[0, 0])
        return np.array(values, dtype=float)


def squared_distances(
    X: Array,
    Z: Array,
    width: float,
    near: Near | None = None,
) -> Array:
    """Return squared distances (n, k) of rows (n, d) and (k, d).

    They are good to a billionth of ``width ** 2``.
    """
    distances, largest = near or near_distances(X, Z)
    if largest < LARGEST_SQUARE * width**2:
        return distances
    if X is Z:
        X = narrowed(X)
        Z = X
    return _distances(X, Z, "sqeuclidean")


def kernel_times(X: Array, points: Array, relevance: Array, coefficients: Array) -> Array:
    """Return ``K coefficients`` (m, ...), K the kernel values of rows (m, d) and points (p, d).

    They are ``exp(-|x - z|^2)`` of rows times their relevances (d,), a few rows at a time. The
    squared lengths of both are columns of one matrix product, so that little is left to do besides
    it: ``[x, -|x|^2, 1] [2 z, 1, -|z|^2]' = -|x - z|^2``.
    """
    Z = points * relevance
    Z_squares = np.einsum("ij,ij->i", Z, Z)
    right = np.column_stack([2.0 * Z, np.ones(len(Z)), -Z_squares]).T
    largest = Z_squares.max(initial=0.0)
    sums = np.empty((len(X), *coefficients.shape[1:]))
    for start in range(0, len(X), FEW_ROWS):
        rows = X[start : start + FEW_ROWS] * relevance
        squares = np.einsum("ij,ij->i", rows, rows)
        left = np.column_stack([rows, -squares, np.ones(len(rows))])
        K = left @ right
        if not max(largest, squares.max()) < SMALL_SQUARE:
            np.minimum(K, 0.0, out=K)  # rounding errors of large squares are no small numbers
        sums[start : start + FEW_ROWS] = np.exp(K, out=K) @ coefficients
    return sums


def near_distances(X: Array, Z: Array) -> Near:
    """Return the same, whatever the width, and the largest distance from the centre.

    On that distance their digits depend.
    """
    # ``|x|^2 - 2 <x, z> + |z|^2`` is a matrix product and fast, but loses as many digits as
    # ``|x|^2`` is larger than ``width ** 2``. Rows are centred first, which is free; if that is not
    # enough (an outlier, a tiny width), the differences are squared one by one.
    xp = arrays.namespace(X)
    centre = xp.mean(Z, axis=0)
    centred_X = X - centre
    centred_Z = centred_X if X is Z else Z - centre
    with np.errstate(over="ignore", invalid="ignore"):
        squares = [arrays.row_products(rows, rows) for rows in (centred_X, centred_Z)]
        distances = centred_X @ centred_Z.T
        distances *= -2.0
        distances += squares[0][:, None]
        distances += squares[1][None, :]
    distances = xp.clip(distances, 0.0, None)
    if X is Z:
        distances = arrays.with_diagonal(distances, 0.0)
    return distances, max(map(arrays.largest, squares))


def _distances(X: DeviceArray, Z: DeviceArray, metric: str) -> DeviceArray:
    """Return squared Euclidean or city-block distances (n, k) of rows (n, d) and (k, d)."""
    if not arrays.is_foreign(X):
        return cdist(X, Z, metric)
    xp = arrays.namespace(X)
    length = xp.abs if metric == "cityblock" else xp.square
    distances = arrays.zeros((X.shape[0], Z.shape[0]), X)
    numbers_of_a_row = max(Z.shape[0] * X.shape[1], 1)
    for part in arrays.blocks(X.shape[0], max(1, MOST_STEPS // numbers_of_a_row)):
        steps = X[part, :][:, None, :] - Z[None, :, :]
        distances[part, :] = xp.sum(length(steps), axis=-1)
    return distances


def narrowed(X: Array) -> Array:
    """Return rows (n, d) of many features in n coordinates, with the same distances."""
    if X.shape[1] <= X.shape[0] or arrays.is_foreign(X):
        return X
    # Around their medians: what all rows have in common takes digits from their differences.
    centred = X - np.median(X, axis=0)
    coordinates = np.linalg.qr(centred.T, mode="r")
    return np.asarray(coordinates).T


def median_width(X: Array) -> float:
    """Return the median distance between two rows (n, d), whatever their order, on the host.

    Of many rows, `MOST_PAIRED` are taken.
    """
    n = X.shape[0]
    if n > MOST_PAIRED:
        order = arrays.to_numpy(arrays.lexsort(X))
        places = np.linspace(0, n - 1, MOST_PAIRED).round().astype(int)
        X = arrays.pick(X, order[places])
    distances = _distances_of_pairs(arrays.to_numpy(X))
    if len(distances) == 0:
        return 1.0
    median = float(np.median(distances))
    if median > 0.0:
        return median
    positive = distances[distances > 0.0]
    if len(positive) == 0:
        return 1.0
    return float(positive.mean())


def _distances_of_pairs(rows: Array) -> Array:
    """Return the distances of all pairs of rows."""
    if rows.shape[1] <= MANY_FEATURES:
        return pdist(rows)
    # A product of matrices takes a tenth of the time.
    size = float(np.sqrt(rows.var(axis=0).sum()))
    squares = squared_distances(rows, rows, size)
    distances = np.sqrt(squares[np.triu_indices(len(rows), 1)])
    distances[distances < 1e-6 * size] = 0.0
    if 2 * np.count_nonzero(distances) < len(distances):  # one row may be far from all others
        return pdist(narrowed(rows))
    return distances
