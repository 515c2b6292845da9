"""Kernel matrices and width rules: arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist, pdist
from sklearn.gaussian_process.kernels import Kernel as GaussianProcessKernel
from sklearn.metrics.pairwise import euclidean_distances, pairwise_kernels

from transduce.core import arrays, device_kernels
from transduce.core.types import Array

_NAMES = {
    "additive_chi2",
    "chi2",
    "cosine",
    "exponential",
    "laplacian",
    "linear",
    "poly",
    "polynomial",
    "precomputed",
    "rbf",
    "sigmoid",
}
_WITH_WIDTH = {"chi2", "exponential", "laplacian", "rbf"}

KernelLike = str | Callable[..., float]


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
    coef0: float = 1.0  # ``"poly"`` is ``(<u, v> + coef0) ** degree``

    def matrix(self, X: Array, Z: Array) -> Array:
        """Return the kernel values of rows (n, d) and rows (k, d), shape (n, k)."""
        if arrays.is_foreign(X):
            return device_kernels.matrix(self, X, Z)
        if self.name == "rbf":
            return np.exp(squared_distances(X, Z, self.width) / (-2.0 * self.width**2))
        if self.name == "exponential":
            return np.exp(cdist(X, Z) / (-2.0 * self.width**2))
        if not callable(self.name) or isinstance(self.name, GaussianProcessKernel):
            return pairwise_kernels(X, Z, metric=self.name, filter_params=True, **self._parameters())
        try:
            return pairwise_kernels(X, X if X is Z else Z, metric=self.name)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"The kernel function must take two rows, as one-dimensional arrays, and return a number: {error}"
            ) from error

    def checked_matrix(self, X: Array, Z: Array) -> Array:
        """Return the same, or raise a ValueError if not all values are finite."""
        if arrays.is_foreign(X):
            K = device_kernels.matrix(self, X, Z)
            finite = bool(arrays.namespace(K).all(arrays.namespace(K).isfinite(K)))
            return self._finite(K, finite)
        if self.name in ("chi2", "additive_chi2") and min(X.min(initial=0.0), Z.min(initial=0.0)) < 0.0:
            raise ValueError(
                f"kernel={self.name!r} needs features that are not negative: pass standardize=False, or use another "
                "kernel."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            K = self.matrix(X, Z)
        return self._finite(K, bool(np.isfinite(K).all()))

    def _finite(self, K: Array, finite: bool) -> Array:
        if not finite:
            raise ValueError(
                f"kernel={self.name!r} gave values that are not finite: scale the features (standardize=True), or "
                "change the kernel's settings."
            )
        return K

    def check_symmetry(self, X: Array) -> None:
        """Raise a ValueError if the user's function depends on the order of its arguments, at a few rows."""
        if callable(self.name):
            one, other = X[:10], X[-10:]
            forth, back = self.matrix(one, other), self.matrix(other, one).T
            if not np.allclose(forth, back, rtol=1e-8, equal_nan=True):
                raise ValueError("The kernel is not symmetric: kernel(u, v) must equal kernel(v, u).")

    def diagonal(self, X: Array) -> Array:
        """Return the kernel value of each row (n, d) with itself, shape (n,)."""
        if arrays.is_foreign(X):
            return device_kernels.diagonal(self, X)
        if self.name in ("rbf", "exponential", "laplacian", "chi2"):
            return np.ones(len(X))
        if self.name == "linear":
            return np.einsum("ij,ij->i", X, X)
        if self.name in ("poly", "polynomial"):
            return (np.einsum("ij,ij->i", X, X) + self.coef0) ** self.degree
        return np.array([self.matrix(row[None], row[None])[0, 0] for row in X], dtype=float)

    def _parameters(self) -> dict[str, float]:
        """Return the settings under scikit-learn's names."""
        if callable(self.name):
            return {}
        gamma = {"laplacian": 1.0 / self.width, "chi2": 1.0 / self.width}
        return {
            "gamma": gamma.get(self.name, 1.0),
            "degree": self.degree,
            "coef0": self.coef0,
        }


def squared_distances(X: Array, Z: Array, width: float) -> Array:
    """Return the squared distances of rows (n, d) and rows (k, d), good to a billionth of ``width ** 2``.

    Shapes: X, Z (n, d); returns (n, k).

    Notes
    -----
    ``|x|^2 - 2 <x, z> + |z|^2`` is a matrix product and fast, but loses as many digits as ``|x|^2`` is larger
    than ``width ** 2``. Rows are centred first, which is free; if that is not enough (an outlier, a tiny width), the
    differences are squared one by one.
    """
    centre = Z.mean(axis=0)
    centred_X = X - centre
    centred_Z = centred_X if X is Z else Z - centre
    largest = max(
        float(np.einsum("ij,ij->i", rows, rows).max(initial=0.0)) for rows in (centred_X, centred_Z)
    )
    if largest < 1e6 * width**2:
        return euclidean_distances(centred_X, centred_Z, squared=True)
    return cdist(X, Z, "sqeuclidean")


def median_width(X: Array, *, max_rows: int = 1000) -> float:
    """Return the median distance between two rows.

    Shapes: X (n, d).

    Notes
    -----
    The rule is a symmetric function of the rows: their order does not matter, nor which of them have
    labels. Costs ``max_rows^2 / 2`` distances.
    """
    if arrays.is_foreign(X):
        return device_kernels.median_width(X, max_rows)
    if len(X) > max_rows:
        ordered = X[np.lexsort(X.T[::-1])]
        X = ordered[np.linspace(0, len(X) - 1, max_rows).round().astype(int)]
    distances = pdist(X)
    median = float(np.median(distances)) if len(distances) else 0.0
    if median > 0.0:
        return median
    positive = distances[distances > 0.0]
    return float(positive.mean()) if len(positive) else 1.0
