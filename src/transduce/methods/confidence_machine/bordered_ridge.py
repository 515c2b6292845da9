"""Ridge regression on the labelled rows, to be bordered by one unlabelled row at a time.

Notation (shapes in ``docs/notation.md``): ``l`` labelled rows, ``m`` unlabelled rows, ``K`` a
kernel matrix and ``G = (K + ridge I)^-1`` on the labelled rows. Bordering these with one unlabelled
row whose kernel column is ``k`` gives the inverse::

    H = [[G + g g' / s,  -g / s],       g = G k                     "weights"
         [   -g' / s  ,   1 / s]]       s = k(x, x) + ridge - k'G k  "pivot"

``g`` are the weights of the labels in the prediction at the unlabelled row (``g'y``), and
``ridge H z`` are the residuals of ridge regression on a completed label vector ``z``. With an
unpenalised intercept the same picture holds with ``G - u u' / (1'u)`` for ``G`` (``u = G 1``) and
weights and pivot changed to match: it is the bordered inverse ``H`` minus its own rank-one term
``h h' / (1'h)``, ``h = H 1``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from transduce.core import arrays
from transduce.core.types import Array
from transduce.device import linalg, memory
from transduce.device.linalg import EPSILON, IMPROPER, guarded_cholesky, inverse_diagonal

RowProducts = Callable[[Array, Array], Array]


class Border(NamedTuple):
    """What one more row brings to a ridge regression, for each of `m` rows taken one at a time."""

    prediction: Array  # (m,) or (m, c) inductive ridge prediction, a column for each label column
    pivot: Array  # (m,) ``s``, the Schur complement of the labelled block; at least ``ridge``
    weights: Array  # (m, l) ``g``, the weights of the labels in the prediction


# ------------------------------------------------------------------------------ rounding and jitter


def rounding_slack(norm: float, ridge: float, level: float, spread: float) -> float:
    """Return the distance within which two residuals are one and the same up to rounding.

    `level` is the largest size of a label, and `spread` that of a centred one.
    """
    # Labels may repeat and rows may be duplicates, so residuals tie in exact arithmetic; an error
    # of ``eps * condition`` must not break the tie. Capped at 1e-9 of the labels' spread.
    relative = min(4 * EPSILON * (1 + norm / ridge), 1e-9)
    return relative * spread + 4 * EPSILON * level


def warn_of_raised_ridge(ridge: float, jitter: float) -> None:
    """Warn that rounding made it necessary to raise the ridge."""
    warnings.warn(
        f"ridge={ridge:g} is too small for these rows in double precision and was raised by "
        f"{jitter:.1e}; the guarantee is then approximate. A larger ridge avoids this.",
        stacklevel=3,
    )


def check_pivots(pivot: Array, own_values: Array, ridge: float) -> Array:
    """Return the pivots, at least `ridge` as theory has it where only rounding says otherwise."""
    xp = arrays.namespace(pivot)
    rounding = 1e-8 * (xp.abs(own_values) + ridge)
    is_rounding = (pivot < ridge) & (pivot > ridge - rounding)
    pivot = xp.where(is_rounding, xp.full_like(pivot, ridge), pivot)
    if bool(xp.any(pivot <= 0.0)):
        raise ValueError(IMPROPER.format(ridge))
    return pivot


def _largest_size(values: Array) -> float:
    return arrays.largest(arrays.namespace(values).abs(values))


def _factorise(A: Array, ridge: float) -> tuple[Array, float]:
    """Return the factor of a matrix that `ridge` should have made definite, and the jitter."""
    try:
        factor, jitter = guarded_cholesky(A)
    except np.linalg.LinAlgError:
        raise ValueError(IMPROPER.format(ridge)) from None
    if jitter > 0.0:
        warn_of_raised_ridge(ridge, jitter)
    return factor, jitter


def _cholesky_solve(factor: Array, b: Array) -> Array:
    half = linalg.triangular_solve(factor, b)
    return linalg.triangular_solve(factor, half, transposed=True)


# ------------------------------------------------------------------------------------ the dual form


@dataclass(frozen=True)
class DualRidge:
    """Kernel ridge regression on the labelled rows.

    The fit takes ``l^3 / 3`` operations, and bordering it ``2 l^2`` a row.
    """

    factor: Array
    residuals: Array  # (l,) or (l, c) ``G y``: the residuals divided by `ridge`
    ones: Array | None
    centre: Array | float
    ridge: float  # what was added to the kernel's diagonal, jitter included
    jitter: float  # the part of `ridge` that rounding made necessary; 0.0 as a rule
    slack: float  # differences between residuals below this are rounding

    @classmethod
    def fit(
        cls,
        K: Array,
        y: Array,
        *,
        ridge: float,
        fit_intercept: bool,
    ) -> DualRidge:
        """Factorise ``K + ridge I`` and compute the residuals of `y`."""
        xp = arrays.namespace(K)
        factor, jitter = _factorise(arrays.shifted(K, ridge), ridge)
        centre: Array | float = 0.0
        ones = None
        if fit_intercept:
            # Residuals do not move when labels do, and small labels round better.
            centre = xp.mean(y, axis=0)
        residuals = _cholesky_solve(factor, y - centre)
        if fit_intercept:
            ones = _cholesky_solve(factor, arrays.zeros((K.shape[0],), K) + 1.0)
            shift = xp.sum(residuals, axis=0) / xp.sum(ones)
            centre = centre + shift
            residuals = residuals - _outer(ones, shift, y.ndim)
        level = _largest_size(y)
        spread = _largest_size(y - centre)
        slack = rounding_slack(linalg.length(K), ridge, level, spread)
        return cls(factor, residuals, ones, centre, ridge + jitter, jitter, slack)

    def diagonal(self) -> Array:
        """Return the diagonal of ``G`` (of ``G - u u' / 1'u`` with an intercept), shape (l,)."""
        diagonal = inverse_diagonal(self.factor)
        if self.ones is None:
            return diagonal
        xp = arrays.namespace(diagonal)
        return xp.clip(diagonal - self.ones**2 / xp.sum(self.ones), 0.0, None)

    def predict(self, K_al: Array) -> Array:
        """Return the inductive prediction from kernel rows (m, l); needs nothing but them."""
        return K_al @ self.residuals + self.centre

    def border(self, K_al: Array, k_aa: Array) -> Border:
        """Return what rows bring, from kernel rows (m, l) and the rows' own kernel values (m,)."""
        xp = arrays.namespace(K_al)
        half = linalg.triangular_solve(self.factor, K_al.T)
        pivot = check_pivots(k_aa + self.ridge - arrays.column_squares(half), k_aa, self.ridge)
        weights = linalg.triangular_solve(self.factor, half, transposed=True).T
        if self.ones is not None:
            # g + u e / U and s + e^2 / U with e = 1 - 1'g and U = 1'u: the intercept's rank-one
            # term.
            missing = 1.0 - xp.sum(weights, axis=1)
            total = xp.sum(self.ones)
            weights = weights + (missing / total)[:, None] * self.ones[None, :]
            pivot = pivot + missing**2 / total
        return Border(self.predict(K_al), pivot, arrays.contiguous(weights))


def _outer(ones: Array, shift: Array, ndim: int) -> Array:
    """Return the shift of each label column at each row, (l,) or (l, c)."""
    if ndim == 1:
        return ones * shift
    return ones[:, None] * shift


# ---------------------------------------------------------------------------------- the primal form


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def compiled_row_products(A: Array, B: Array) -> Array:
    """Return the inner product of each row of A with that of B, three times as fast as `einsum`."""
    products = np.empty(len(A))
    for i in range(len(A)):
        total = 0.0
        for c in range(A.shape[1]):
            total += A[i, c] * B[i, c]
        products[i] = total
    return products


def _choose_row_products(X: Array) -> RowProducts:
    """Return how inner products of rows are computed: compiled, or by the library of the rows."""
    if arrays.is_foreign(X):
        return arrays.row_products
    return compiled_row_products


@dataclass(frozen=True)
class PrimalRidge:
    """Linear ridge regression on the labelled rows.

    The fit takes ``2 l d^2`` operations, and bordering it ``2 d^2`` a row.
    """

    X: Array  # (l, d) the labelled rows, centred on their mean if there is an intercept
    mean: Array | float
    inverse: Array  # (d, d) ``M^-1``, with ``M = X'X + ridge I``
    coefficients: Array
    centre: Array | float
    residuals: Array  # (l,) or (l, c) ``G y``: the residuals divided by `ridge`
    offset: float  # share of the intercept in each weight: ``1 / l``, or 0
    ridge: float  # as in `DualRidge`
    jitter: float  # as in `DualRidge`
    slack: float  # as in `DualRidge`
    row_products: RowProducts  # (n, d), (n, d) -> (n,)

    @classmethod
    def fit(
        cls,
        X: Array,
        y: Array,
        *,
        ridge: float,
        fit_intercept: bool,
    ) -> PrimalRidge:
        """Factorise ``X'X + ridge I`` and compute the residuals of `y`."""
        xp = arrays.namespace(X)
        offset = 0.0
        mean: Array | float = 0.0
        centre: Array | float = 0.0
        centred = y
        if fit_intercept:
            offset = 1.0 / X.shape[0]
            mean = (arrays.zeros((X.shape[0],), X) + offset) @ X
            centre = xp.mean(y, axis=0)
            X = X - mean
            centred = y - centre
        gram = arrays.shifted(_gram(X), ridge)
        factor, jitter = _factorise(gram, ridge)
        # numpy alone on this path: its BLAS threads and scipy's wait for each other by spinning,
        # which costs milliseconds where the work itself costs microseconds.
        half = xp.linalg.inv(factor)
        inverse = half.T @ half
        coefficients = inverse @ (X.T @ centred)
        residuals = (centred - X @ coefficients) / (ridge + jitter)
        level = _largest_size(y)
        spread = _largest_size(centred)
        return cls(
            X=X,
            mean=mean,
            inverse=inverse,
            coefficients=coefficients,
            centre=centre,
            residuals=residuals,
            offset=offset,
            ridge=ridge + jitter,
            jitter=jitter,
            slack=rounding_slack(linalg.length(gram), ridge, level, spread),
            row_products=_choose_row_products(X),
        )

    def diagonal(self) -> Array:
        """Return the diagonal of ``G`` (with the intercept's term if there is one), shape (l,)."""
        xp = arrays.namespace(self.X)
        return xp.clip(1.0 - self.leverages(self.X), 0.0, None) / self.ridge

    def leverages(self, X: Array) -> Array:
        """Return ``1 - ridge G_ii`` of labelled rows (k, d), centred as `X` is."""
        leverage = arrays.zeros((X.shape[0],), X)
        # Blocks that stay near the processor, or fill a device.
        size = max(256, int(memory.work_bytes(X, 160_000.0) // (8 * X.shape[1])))
        for part in arrays.blocks(X.shape[0], size):
            leverage[part] = self.row_products(X[part, :] @ self.inverse, X[part, :])
        return leverage + self.offset

    def leverage_bounds(self) -> Array:
        """Return what no leverage of a labelled row exceeds (l,), by norms of row and matrix."""
        largest = float(np.abs(self.inverse).sum(axis=1).max())
        return self.offset + largest * self.row_products(self.X, self.X)

    def mean_leverage(self) -> float:
        """Return the mean of the labelled rows' leverages."""
        trace = float(np.trace(self.inverse))
        mean = (self.X.shape[1] - self.ridge * trace) / len(self.X)
        return self.offset + mean

    def predict(self, X_a: Array) -> Array:
        """Return the inductive prediction at rows (m, d)."""
        return (X_a - self.mean) @ self.coefficients + self.centre

    def directions(self, X_a: Array) -> tuple[Array, Array, Array]:
        """Return prediction, pivot and direction ``M^-1 x`` (m, d): all but the weights."""
        centred = X_a
        if self.offset != 0.0:
            centred = X_a - self.mean
        z = centred @ self.inverse
        leverage = self.offset + self.row_products(z, centred)
        prediction = centred @ self.coefficients + self.centre
        pivot = self.ridge * (1.0 + leverage)
        return prediction, pivot, z

    def weights(self, z: Array) -> Array:
        """Return the weights (m, l) that belong to directions (m, d)."""
        return z @ self.X.T + self.offset


def _gram(X: Array) -> Array:
    """Return ``X'X``, or raise a ValueError if it overflows."""
    xp = arrays.namespace(X)
    with np.errstate(over="ignore", invalid="ignore"):
        gram = X.T @ X
    if not bool(xp.all(xp.isfinite(gram))):
        raise ValueError("The features are too large to be squared: scale them (standardize=True).")
    return gram
