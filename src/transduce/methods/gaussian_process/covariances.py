"""Covariance functions of a Gaussian process, with a relevance for every feature or for all.

Those of the distance are functions of ``r^2 = sum_j (relevance_j (x_j - x'_j))^2``; ``"linear"`` is
``sum_j relevance_j^2 x_j x'_j``. Any other kernel becomes a linear one of features whose inner
products are its values: see `KernelFeatures`. All but ``"rbf"`` are for numpy arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import blas
from scipy.spatial.distance import cdist

from transduce.core import arrays, checks
from transduce.core.types import Array
from transduce.device.kernels import FEW_ROWS, Kernel, near_distances
from transduce.methods.gaussian_process import triangles
from transduce.methods.gaussian_process.solver import choose_solver

FunctionOfSquares = Callable[[Array], Array]
FunctionOfRows = Callable[..., float]
KernelChoice = str | FunctionOfRows
SMALLEST_SHARE = 1e-12  # of the largest eigenvalue of a kernel; below it is rounding
LEAST_NEGATIVE = 1e-8  # likewise; an eigenvalue further below 0 is none of a covariance
N_KEYS = 8  # kernel values of a row by which rows are put in order


class Radial(NamedTuple):
    """A function ``k(r^2)`` of the squared distance."""

    value: FunctionOfSquares
    slope: FunctionOfSquares  # ``-dk / d(r^2)``


def _exponential(squares: Array) -> Array:
    """Return ``exp(-r)``."""
    return np.exp(-np.sqrt(squares))


def _exponential_slope(squares: Array) -> Array:
    """Return ``exp(-r) / 2r``; 0 at equal rows, whose distance no relevance changes."""
    distances = np.sqrt(squares)
    inverse = np.divide(0.5, distances, out=np.zeros_like(distances), where=distances > 0.0)
    return np.exp(-distances) * inverse


def _matern32(squares: Array) -> Array:
    """Return ``(1 + s) exp(-s)`` with ``s = sqrt(3) r``."""
    s = np.sqrt(3.0 * squares)
    return (1.0 + s) * np.exp(-s)


def _matern32_slope(squares: Array) -> Array:
    """Return ``3/2 exp(-s)`` with ``s = sqrt(3) r``."""
    return 1.5 * np.exp(-np.sqrt(3.0 * squares))


def _matern52(squares: Array) -> Array:
    """Return ``(1 + s + s^2 / 3) exp(-s)`` with ``s = sqrt(5) r``."""
    s = np.sqrt(5.0 * squares)
    return (1.0 + s + s**2 / 3.0) * np.exp(-s)


def _matern52_slope(squares: Array) -> Array:
    """Return ``5/6 (1 + s) exp(-s)`` with ``s = sqrt(5) r``."""
    s = np.sqrt(5.0 * squares)
    return 5.0 / 6.0 * (1.0 + s) * np.exp(-s)


def _gaussian(squares: Array) -> Array:
    """Return ``exp(-r^2)``, which is its own slope; on a device too."""
    return arrays.namespace(squares).exp(-squares)


RADIAL = {
    "rbf": Radial(_gaussian, _gaussian),
    "exponential": Radial(_exponential, _exponential_slope),
    "matern32": Radial(_matern32, _matern32_slope),
    "matern52": Radial(_matern52, _matern52_slope),
}
NAMES = (*RADIAL, "linear", "precomputed")


def check_kernel(kernel: KernelChoice, X: Array | None = None) -> None:
    """Raise a ValueError unless `kernel` is a known name or a callable, and suits the rows."""
    if not callable(kernel) and not checks.is_one_of(kernel, *NAMES):
        names = ", ".join(NAMES)
        raise ValueError(f"Unknown kernel {kernel!r}: use one of {names}, or a callable.")
    if X is not None and arrays.is_foreign(X) and kernel != "rbf":
        raise ValueError(f"kernel={kernel!r} is for numpy arrays: use 'rbf', or pass numpy arrays.")


def is_fixed(kernel: KernelChoice) -> bool:
    """Return whether only the size of the kernel is to be found, and no relevance."""
    return callable(kernel) or kernel == "precomputed"


class Pairs(Protocol):
    """The kernel of some rows, whose distances are computed once."""

    def matrix(self, relevance: Array) -> Array:
        """Return the lower triangle of the kernel matrix (n, n)."""

    def slopes(self, M: Array, K: Array, relevance: Array) -> Array:
        """Return the derivative by the logarithm of each relevance.

        `M` is twice the derivative by the kernel matrix K, which may be overwritten.
        """


@dataclass(frozen=True)
class Covariance:
    """A covariance function by its name."""

    name: str = "rbf"

    def own(self, X: Array, relevance: Array) -> Array:
        """Return the lower triangle of the kernel matrix (n, n) of rows (n, d)."""
        if self.name == "rbf":
            return choose_solver(X).own_kernel(X, relevance)
        return np.asfortranarray(self.cross(X, X, relevance))

    def cross(self, X: Array, Z: Array, relevance: Array) -> Array:
        """Return the kernel values of rows X (n, d) and Z (k, d), shape (n, k)."""
        if self.name == "rbf":
            return choose_solver(X).cross_kernel(X, Z, relevance)
        X = X * relevance
        Z = Z * relevance
        if self.name == "linear":
            return X @ Z.T
        return RADIAL[self.name].value(cdist(X, Z, "sqeuclidean"))

    def times(
        self,
        X: Array,
        points: Array,
        relevance: Array,
        coefficients: Array,
    ) -> Array:
        """Return the kernel values of rows (m, d) and points (p, d), times coefficients (p,)."""
        if self.name == "rbf":
            return choose_solver(X).kernel_times(X, points, relevance, coefficients)
        sums = np.empty(X.shape[0])
        for part in arrays.blocks(X.shape[0], FEW_ROWS):
            sums[part] = self.cross(X[part], points, relevance) @ coefficients
        return sums

    def variances(self, X: Array, relevance: Array) -> Array | float:
        """Return the kernel value of each row (m, d) with itself: (m,), or 1 for all."""
        if self.name != "linear":
            return 1.0
        return np.sum((X * relevance) ** 2, axis=1)

    def conditional(self, X: Array, relevance: Array, half: Array) -> Array:
        """Return ``K - half' half``, the whole matrix (m, m), for rows (m, d) and half (l, m)."""
        if self.name == "rbf":
            return choose_solver(X).conditional(X, relevance, half)
        return self.cross(X, X, relevance) - half.T @ half

    def pairs(self, X: Array, *, common: bool) -> Pairs:
        """Return the kernel of rows (n, d); `common`: one relevance is that of all features."""
        if self.name == "linear":
            return LinearPairs(X)
        if self.name == "rbf" and common:
            squares, _ = near_distances(X, X)
            return CommonPairs(RADIAL["rbf"], squares)
        if self.name == "rbf":
            return GaussianPairs(choose_solver(X).with_ones(X))
        if common:
            return CommonPairs(RADIAL[self.name], cdist(X, X, "sqeuclidean"))
        return RadialPairs(RADIAL[self.name], triangles.with_ones(X))


@dataclass(frozen=True)
class GaussianPairs:
    """``exp(-r^2)``.

    With ``W`` the derivative with respect to the matrix times ``K``, entry by entry, and
    ``w = W 1``, the derivative by ``log relevance_j`` is
    ``-4 relevance_j^2 (w'x_j^2 - x_j'W x_j)``.
    """

    columns: Array  # (n, d + 1) features, and ones

    def matrix(self, relevance: Array) -> Array:
        """Return the kernel matrix."""
        return choose_solver(self.columns).own_kernel(self.columns[:, :-1], relevance)

    def slopes(self, M: Array, K: Array, relevance: Array) -> Array:
        """Return the derivatives; K is overwritten."""
        return -2.0 * relevance**2 * choose_solver(M).slopes(M, K, self.columns)


@dataclass(frozen=True)
class CommonPairs:
    """A function of the distance with one relevance.

    The derivative is ``-2 relevance^2 sum(M slope D)`` over pairs.
    """

    radial: Radial
    squares: Array  # (n, n) squared distances ``D``

    def matrix(self, relevance: Array) -> Array:
        """Return the kernel matrix."""
        return self.radial.value(self.squares * float(relevance[0] ** 2))

    def slopes(self, M: Array, K: Array, relevance: Array) -> Array:
        """Return the derivative, shape (1,); K is overwritten."""
        slope = K
        if self.radial.slope is not self.radial.value:
            slope = self.radial.slope(self.squares * float(relevance[0] ** 2))
        slope *= self.squares
        return -2.0 * relevance**2 * choose_solver(M).over_pairs(M, slope)


@dataclass(frozen=True)
class RadialPairs:
    """Any other function of the distance: the slope takes the place of the kernel."""

    radial: Radial
    columns: Array  # (n, d + 1) features, and ones

    def matrix(self, relevance: Array) -> Array:
        """Return the kernel matrix."""
        return np.asfortranarray(self.radial.value(self._squares(relevance)))

    def slopes(self, M: Array, K: Array, relevance: Array) -> Array:
        """Return the derivatives, shape (d,)."""
        slope = np.asfortranarray(self.radial.slope(self._squares(relevance)))
        return -2.0 * relevance**2 * triangles.slopes(M, slope, self.columns)

    def _squares(self, relevance: Array) -> Array:
        """Return the squared distances ``r^2`` (n, n)."""
        scaled = self.columns[:, :-1] * relevance
        return cdist(scaled, scaled, "sqeuclidean")


@dataclass(frozen=True)
class LinearPairs:
    """``sum_j relevance_j^2 x_j x'_j``: the derivatives are ``relevance_j^2 x_j'M x_j``."""

    X: Array  # (n, d)

    def matrix(self, relevance: Array) -> Array:
        """Return the kernel matrix."""
        scaled = self.X * relevance
        return blas.dsyrk(1.0, scaled.T, trans=1, lower=1)

    def slopes(self, M: Array, K: Array, relevance: Array) -> Array:
        """Return the derivatives, shape (d,) or, of one relevance, (1,)."""
        if len(relevance) == 1:
            # The derivative of the matrix is twice the matrix; both are triangles.
            below_diagonal = np.vdot(np.tril(M, -1), K)
            diagonal = M.diagonal() @ K.diagonal()
            return np.array([2.0 * below_diagonal + diagonal])
        products = blas.dsymm(1.0, np.asfortranarray(M), np.asfortranarray(self.X), lower=1)
        return relevance**2 * np.einsum("ij,ij->j", self.X, products)


@dataclass(frozen=True)
class KernelFeatures:
    """Features of rows whose inner products are the values of a kernel that was given.

    With the kernel ``K = U diag(w) U'`` of the rows of `fit` they are ``U diag(w)^1/2``, and those
    of a new row, with kernel values ``k`` with these rows, ``diag(w)^-1/2 U'k``. They are divided
    by a constant so that the mean of ``k(x, x)`` is 1.
    """

    kernel: KernelChoice
    rows: Array  # (n, d) the rows of `fit` or, if precomputed, nothing
    whitener: Array  # (n, r) ``U diag(w)^-1/2``, over the constant
    mean_variance: float  # the mean of ``k(x, x)``

    @classmethod
    def fit_apply(cls, X: Array, kernel: KernelChoice) -> tuple[KernelFeatures, Array, Array]:
        """Return the map, the features of all rows (n, r), and by what to put rows in order."""
        if callable(kernel):
            function = Kernel(kernel)
            function.check_symmetry(X)
            K = function.checked_matrix(X, X)
            rows = X
        else:
            checks.check_square(X)
            K = X
            rows = X[:0]
        if not np.allclose(K, K.T, rtol=1e-8, atol=1e-8 * arrays.farthest(K)):
            raise ValueError("The kernel is not symmetric: kernel(u, v) must equal kernel(v, u).")
        keys = -np.sort(-K, axis=1)[:, :N_KEYS]
        mean_variance = float(K.diagonal().mean())
        if not mean_variance > 0.0:
            raise ValueError("The kernel is 0 or negative at every row with itself.")
        values, vectors = np.linalg.eigh(K / mean_variance)
        if values[0] < -LEAST_NEGATIVE * values[-1]:
            raise ValueError(
                "The kernel is not positive semi-definite, as a covariance must be: add "
                f"{-values[0] * mean_variance:.3g} to its diagonal, or take another."
            )
        kept = values > SMALLEST_SHARE * values[-1]
        roots = np.sqrt(values[kept])
        features = vectors[:, kept] * roots
        return cls(kernel, rows, vectors[:, kept] / roots, mean_variance), features, keys

    def apply(self, X: Array) -> Array:
        """Return the features of new rows, or of their kernel values with the rows of `fit`."""
        lines = X
        if callable(self.kernel):
            lines = Kernel(self.kernel).checked_matrix(X, self.rows)
        return (lines / self.mean_variance) @ self.whitener
