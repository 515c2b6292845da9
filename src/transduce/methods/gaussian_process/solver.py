"""What a Gaussian process asks of the matrices of a library: `triangles`, or those of a device."""

from __future__ import annotations

from typing import Protocol

from transduce.core import arrays
from transduce.core.types import Array
from transduce.device import likelihood
from transduce.methods.gaussian_process import triangles


class CovarianceSolver(Protocol):
    """Kernel matrices ``K`` of ``exp(-r^2)``, and factors ``L L' = C`` of ``C = K + noise I``.

    Of symmetric matrices and factors the lower triangle counts.
    """

    def with_ones(self, X: Array, /) -> Array:
        """Return rows (n, d) with one more column, of ones, as `slopes` takes them."""

    def own_kernel(self, X: Array, relevance: Array, /) -> Array:
        """Return ``K_ij = exp(-|relevance (x_i - x_j)|^2)`` of rows (n, d)."""

    def cross_kernel(self, X: Array, Z: Array, relevance: Array, /) -> Array:
        """Return the same of rows X (n, d) and Z (k, d), shape (n, k)."""

    def kernel_times(
        self, X: Array, points: Array, relevance: Array, coefficients: Array, /
    ) -> Array:
        """Return ``K coefficients`` for rows (m, d) and points (p, d), shape (m,)."""

    def factor_of(self, K: Array, noise: float, /) -> tuple[Array, float]:
        """Return ``L`` with ``L L' = K + noise I``, and the jitter that rounding asked for."""

    def leading(self, factor: Array, n: int, /) -> Array:
        """Return the factor of the first `n` rows, ``L_ll``."""

    def log_diagonal(self, factor: Array, /) -> float:
        """Return ``log|C| / 2``, the sum of ``log L_ii``."""

    def solve(self, factor: Array, y: Array, /) -> Array:
        """Return ``C^-1 y``."""

    def by_columns(self, K: Array, /) -> Array:
        """Return kernel values in the order in which `half_solve` may overwrite them."""

    def half_solve(self, factor: Array, K: Array, /) -> Array:
        """Return ``L^-1 K``; the kernel values (n, m) may be overwritten."""

    def conditional(self, X: Array, relevance: Array, half: Array, /) -> Array:
        """Return ``K - half' half`` for rows (m, d) and ``half = L^-1 K_lm``, the whole matrix."""

    def predictive(self, factor: Array, y_l: Array, /) -> tuple[Array, Array]:
        """Return mean ``L_al L_ll^-1 y_l`` and covariance ``L_aa L_aa'`` of the missing labels."""

    def term(
        self,
        factor: Array,
        z: Array,
        root: Array | None,
        /,
    ) -> tuple[float, Array]:
        """Return ``log|C|/2 + tr(C^-1 S)/2`` and twice its derivative, ``C^-1 - C^-1 S C^-1``.

        ``S = z z' + blockdiag(0, R R')`` with the root ``R``; the factor may be overwritten.
        """

    def over_pairs(self, M: Array, A: Array, /) -> float:
        """Return the sum of ``M_ij A_ij`` over pairs ``i > j``."""

    def slopes(self, M: Array, K: Array, columns: Array, /) -> Array:
        """Return ``w'x_j^2 - x_j'W x_j`` for every feature j.

        ``W = M * K`` by entry and ``w = W 1``; the last of the columns (n, d + 1) are ones. Both
        matrices may be overwritten.
        """


def choose_solver(X: Array) -> CovarianceSolver:
    """Return the matrices of the library of these rows."""
    if arrays.is_foreign(X):
        return likelihood
    return triangles
