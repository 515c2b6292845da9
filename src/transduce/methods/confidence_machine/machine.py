"""Ridge regression held against unlabelled rows, chunk by chunk: regions, and the counts behind p-values.

Notation (shapes in ``docs/notation.md``): ``l`` labelled rows, ``m`` unlabelled rows, ``K`` a kernel matrix and
``G = (K + ridge I)^-1`` on the labelled rows. Bordering these with one unlabelled row whose kernel column is ``k``
gives the inverse::

    H = [[G + g g' / s,  -g / s],       g = G k                     "weights"
         [   -g' / s  ,   1 / s]]       s = k(x, x) + ridge - k'G k  "pivot"

``g`` are the weights of the labels in the prediction at the unlabelled row (``g'y``), and ``ridge H z`` are the
residuals of ridge regression on a completed label vector ``z``. With an unpenalised intercept the same picture holds
with ``G - u u' / (1'u)`` for ``G`` (``u = G 1``) and weights and pivot changed to match: it is the bordered inverse
``H`` minus its own rank-one term ``h h' / (1'h)``, ``h = H 1``.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from transduce.core import arrays
from transduce.core.answer import Regions
from transduce.core.ranks import p_values
from transduce.core.types import AnyArray, Array
from transduce.device import linalg, memory
from transduce.device import lines as device_lines
from transduce.device.kernels import Kernel
from transduce.device.linalg import EPSILON, IMPROPER, guarded_cholesky, inverse_diagonal
from transduce.methods.confidence_machine.menu import kernel_values, own_values
from transduce.methods.confidence_machine.residual_lines import (
    SIDE,
    count_nonconforming,
    count_nonconforming_by_class,
    line_region,
    residual_lines,
)
from transduce.methods.confidence_machine.window import (
    LabelledOrder,
    Leverages,
    Lines,
    order_rows,
    window_ends,
)

log = logging.getLogger(__name__)


class Border(NamedTuple):
    """What one more row brings to a ridge regression, for each of `m` rows taken one at a time."""

    prediction: (
        Array  # (m,) or (m, c) inductive ridge prediction, a column for each of `c` label columns
    )
    pivot: Array  # (m,) ``s``, the Schur complement of the labelled block; at least ``ridge``
    weights: Array  # (m, l) ``g``, the weights of the labels in the prediction


class ClassPValues(NamedTuple):
    """What a machine says of every class at rows; `chosen` only where settings are chosen."""

    overall: Array  # (m, c) among all labelled rows
    within: Array  # (m, c) among those of the candidate class
    scores: Array  # (m, c) one-vs-rest prediction of the candidate, with the setting chosen for it
    chosen: AnyArray | None = None  # (m, c) that setting; the first, if leave-one-out errors tie


def _rounding_slack(norm: float, ridge: float, y: Array, centred: Array) -> float:
    """Return the distance within which two residuals are one and the same up to rounding."""
    # Labels may repeat and rows may be duplicates, so residuals tie in exact arithmetic; an error of
    # ``eps * condition`` must not break the tie. Capped at 1e-9 of the labels' spread.
    xp = arrays.namespace(y)
    level = arrays.largest(xp.abs(y))
    spread = level if centred is y else arrays.largest(xp.abs(centred))
    return min(4 * EPSILON * (1 + norm / ridge), 1e-9) * spread + 4 * EPSILON * level


def _factorise(A: Array, ridge: float) -> tuple[Array, float]:
    """Return the factor of a matrix that `ridge` should have made positive definite, and the jitter."""
    try:
        factor, jitter = guarded_cholesky(A)
    except np.linalg.LinAlgError:
        raise ValueError(IMPROPER.format(ridge)) from None
    if jitter > 0.0:
        warn_raised(ridge, jitter)
    return factor, jitter


def warn_raised(ridge: float, jitter: float) -> None:
    """Warn that rounding made it necessary to raise the ridge."""
    warnings.warn(
        f"ridge={ridge:g} is too small for these rows in double precision and was raised by "
        f"{jitter:.1e}; the guarantee is then approximate. A larger ridge avoids this.",
        stacklevel=3,
    )


def _checked_pivot(pivot: Array, k_aa: Array, ridge: float) -> Array:
    """Return the pivots, at least `ridge` as theory has it where only rounding says otherwise."""
    xp = arrays.namespace(pivot)
    rounding = 1e-8 * (xp.abs(k_aa) + ridge)
    pivot = xp.where(
        (pivot < ridge) & (pivot > ridge - rounding), xp.full_like(pivot, ridge), pivot
    )
    if bool(xp.any(pivot <= 0.0)):
        raise ValueError(IMPROPER.format(ridge))
    return pivot


@dataclass(frozen=True)
class DualRidge:
    """Kernel ridge regression on the labelled rows (``l^3 / 3`` operations), to be bordered (``2 l^2`` for a row)."""

    factor: Array
    residuals: Array  # (l,) or (l, c) ``G y``: the residuals divided by `ridge`
    ones: Array | None
    centre: Array | float
    ridge: float  # what was added to the kernel's diagonal, jitter included
    jitter: float  # the part of `ridge` that rounding made necessary; 0.0 as a rule
    slack: float  # differences between residuals below this are rounding

    @classmethod
    def fit(cls, K: Array, y: Array, *, ridge: float, fit_intercept: bool) -> DualRidge:
        """Factorise ``K + ridge I`` and compute the residuals of `y`."""
        xp = arrays.namespace(K)
        factor, jitter = _factorise(arrays.shifted(K, ridge), ridge)
        # With an intercept residuals do not move when labels do, and small labels round better.
        centre = xp.mean(y, axis=0) if fit_intercept else 0.0
        residuals = _cholesky_solve(factor, y - centre)
        ones = (
            _cholesky_solve(factor, arrays.zeros((K.shape[0],), K) + 1.0) if fit_intercept else None
        )
        if ones is not None:
            shift = xp.sum(residuals, axis=0) / xp.sum(ones)
            centre = centre + shift
            residuals = residuals - (ones * shift if y.ndim == 1 else ones[:, None] * shift)
        slack = _rounding_slack(linalg.length(K), ridge, y, y - centre)
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
        """Return prediction, pivot and weights for kernel rows (m, l) and the rows' own kernel values (m,)."""
        xp = arrays.namespace(K_al)
        half = linalg.triangular_solve(self.factor, K_al.T)
        pivot = _checked_pivot(k_aa + self.ridge - arrays.column_squares(half), k_aa, self.ridge)
        weights = linalg.triangular_solve(self.factor, half, transposed=True).T
        if self.ones is not None:
            # g + u e / U and s + e^2 / U with e = 1 - 1'g and U = 1'u: the intercept's rank-one term.
            missing, total = 1.0 - xp.sum(weights, axis=1), xp.sum(self.ones)
            weights = weights + (missing / total)[:, None] * self.ones[None, :]
            pivot = pivot + missing**2 / total
        return Border(self.predict(K_al), pivot, arrays.contiguous(weights))


def _cholesky_solve(factor: Array, b: Array) -> Array:
    return linalg.triangular_solve(factor, linalg.triangular_solve(factor, b), transposed=True)


def _row_products(A: Array, B: Array) -> Array:
    return arrays.row_products(A, B) if arrays.is_foreign(A) else _compiled_products(A, B)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _compiled_products(A: Array, B: Array) -> Array:
    """Return the inner product of each row of A with that of B, three times as fast as `einsum` does."""
    products = np.empty(len(A))
    for i in range(len(A)):
        total = 0.0
        for c in range(A.shape[1]):
            total += A[i, c] * B[i, c]
        products[i] = total
    return products


@dataclass(frozen=True)
class PrimalRidge:
    """Linear ridge regression on the labelled rows (``2 l d^2`` operations), to be bordered (``2 d^2`` for a row)."""

    X: Array  # (l, d) the labelled rows, centred on their mean if there is an intercept
    mean: Array | float
    inverse: Array
    coefficients: Array
    centre: Array | float
    residuals: Array  # (l,) or (l, c) ``G y``: the residuals divided by `ridge`
    offset: float  # share of the intercept in each weight: ``1 / l``, or 0
    ridge: float  # as in `DualRidge`
    jitter: float  # as in `DualRidge`
    slack: float  # as in `DualRidge`

    @classmethod
    def fit(cls, X: Array, y: Array, *, ridge: float, fit_intercept: bool) -> PrimalRidge:
        """Factorise ``X'X + ridge I`` and compute the residuals of `y`."""
        xp = arrays.namespace(X)
        offset = 1.0 / X.shape[0] if fit_intercept else 0.0
        mean = (arrays.zeros((X.shape[0],), X) + offset) @ X if fit_intercept else 0.0
        centre = xp.mean(y, axis=0) if fit_intercept else 0.0
        X, centred = (X - mean, y - centre) if fit_intercept else (X, y)
        with np.errstate(over="ignore", invalid="ignore"):
            gram = X.T @ X
        if not bool(xp.all(xp.isfinite(gram))):
            raise ValueError(
                "The features are too large to be squared: scale them (standardize=True)."
            )
        gram = arrays.shifted(gram, ridge)
        factor, jitter = _factorise(gram, ridge)
        # numpy alone on this path: its BLAS threads and scipy's wait for each other by spinning, which
        # costs milliseconds where the work itself costs microseconds.
        half = xp.linalg.inv(factor)
        inverse = half.T @ half
        coefficients = inverse @ (X.T @ centred)
        residuals = (centred - X @ coefficients) / (ridge + jitter)
        slack = _rounding_slack(linalg.length(gram), ridge, y, centred)
        return cls(
            X, mean, inverse, coefficients, centre, residuals, offset, ridge + jitter, jitter, slack
        )

    def diagonal(self) -> Array:
        """Return the diagonal of ``G`` (with the intercept's term if there is one), shape (l,)."""
        return arrays.namespace(self.X).clip(1.0 - self.leverages(self.X), 0.0, None) / self.ridge

    def leverages(self, X: Array) -> Array:
        """Return ``1 - ridge G_ii`` of labelled rows (k, d), centred as `X` is."""
        leverage = arrays.zeros((X.shape[0],), X)
        # Blocks that stay near the processor, or fill a device.
        size = max(256, int(memory.work_bytes(X, 160_000.0) // (8 * X.shape[1])))
        for part in arrays.blocks(X.shape[0], size):
            leverage[part] = _row_products(X[part, :] @ self.inverse, X[part, :])
        return leverage + self.offset

    def leverage_bounds(self) -> tuple[Array, float]:
        """Return what no leverage of a labelled row exceeds (l,), by norms of a row and of a matrix; and their mean."""
        largest = float(np.abs(self.inverse).sum(axis=1).max())
        mean = (self.X.shape[1] - self.ridge * float(np.trace(self.inverse))) / len(self.X)
        return self.offset + largest * _row_products(self.X, self.X), self.offset + mean

    def predict(self, X_a: Array) -> Array:
        """Return the inductive prediction at rows (m, d)."""
        return (X_a - self.mean) @ self.coefficients + self.centre

    def directions(self, X_a: Array) -> tuple[Array, Array, Array]:
        """Return prediction, pivot and direction ``M^-1 x`` (m, d) for unlabelled rows: all but the weights."""
        centred = X_a if self.offset == 0.0 else X_a - self.mean
        z = centred @ self.inverse
        leverage = self.offset + _row_products(z, centred)
        return centred @ self.coefficients + self.centre, self.ridge * (1.0 + leverage), z

    def weights(self, z: Array) -> Array:
        """Return the weights (m, l) that belong to directions (m, d)."""
        return z @ self.X.T + self.offset


@dataclass(frozen=True)
class Machine:
    """A fitted ridge regression and how unlabelled rows are to be held against it."""

    # `rows` arguments have a line for each unlabelled row: features; or, with a precomputed kernel, kernel values with
    # the labelled rows followed by the row's own kernel value.

    fit: DualRidge | PrimalRidge
    diagonal: Array
    power: float
    max_bytes: float
    kernel: Kernel
    X_l: Any  # the labelled rows, where kernel values with them are needed

    @classmethod
    def build(
        cls,
        rows: Array,
        y: Array,
        kernel: Kernel,
        *,
        ridge: float = 1.0,
        fit_intercept: bool = True,
        power: float = 0.0,
        max_bytes: float = 5e8,
    ) -> Machine:
        """Fit labelled rows in the cheaper form: primal for a linear kernel with fewer columns than rows."""
        y = arrays.beside(y, rows, "float64")
        how: dict[str, Any] = {"ridge": ridge, "fit_intercept": fit_intercept}
        fit: DualRidge | PrimalRidge
        if kernel.name == "linear" and rows.shape[1] < rows.shape[0]:
            fit, X_l = PrimalRidge.fit(rows, y, **how), None
        else:
            _announce_memory(rows.shape[0], max_bytes, rows)
            log.info("confidence machine: fitting %d labelled rows", rows.shape[0])
            kernel.check_symmetry(rows)
            fit, X_l = DualRidge.fit(kernel_values(kernel, rows, rows), y, **how), rows
        # Plain residuals do not need G_ii, and it costs as much again as the fit.
        diagonal = fit.diagonal() if power > 0.0 else arrays.zeros((rows.shape[0],), rows) + 1.0
        return cls(fit, diagonal, power, max_bytes, kernel, X_l)

    @property
    def n_labelled(self) -> int:
        """Number of labelled rows."""
        return int(self.diagonal.shape[0])

    @property
    def jitter(self) -> float:
        """By how much rounding made it necessary to raise the ridge; 0.0 as a rule."""
        return self.fit.jitter

    @property
    def form(self) -> str:
        """The form of the ridge regression."""
        return "primal" if isinstance(self.fit, PrimalRidge) else "dual"

    @property
    def foreign(self) -> bool:
        """Whether its arrays are those of another library than numpy."""
        return arrays.is_foreign(self.diagonal)

    def predict(self, rows: Array) -> Array:
        """Return the inductive ridge prediction."""
        if isinstance(self.fit, PrimalRidge):
            return self.fit.predict(rows)
        values = arrays.zeros((rows.shape[0], *self.fit.residuals.shape[1:]), rows)
        for part in self.chunks(rows.shape[0], self.n_labelled):
            values[part, ...] = self.fit.predict(
                kernel_values(self.kernel, rows[part, :], self.X_l)
            )
        return values

    def borders(self, rows: Array) -> Iterator[tuple[slice, Border]]:
        """Yield chunks of the rows under the memory budget, with prediction, pivot and weights."""
        for part in self.chunks(rows.shape[0], self.n_labelled):
            if isinstance(self.fit, PrimalRidge):
                prediction, pivot, z = self.fit.directions(rows[part, :])
                yield part, Border(prediction, pivot, self.fit.weights(z))
            else:
                chunk = rows[part, :]
                K_al = kernel_values(self.kernel, chunk, self.X_l)
                yield part, self.fit.border(K_al, own_values(self.kernel, chunk))
            log.info("confidence machine: %d of %d rows", part.stop, rows.shape[0])

    def order(self, side: str, rank: int | None = None) -> LabelledOrder:
        """Return the labelled rows in the order of their residuals, as far down as a rank needs; remembered."""
        known = self._orders.get(side)
        if known is None or (known.rest > 0.0 and (rank is None or len(known.ranked) < rank + 32)):
            depth = None if rank is None else rank + rank // 4 + 64
            known = order_rows(
                self.fit.residuals, self.diagonal, self._leverages(), self.power, side, depth
            )
            self._orders[side] = known
        return known

    def _leverages(self) -> Leverages:
        fit = self.fit
        assert isinstance(fit, PrimalRidge)
        if self.power == 0.0:
            return Leverages(
                *fit.leverage_bounds(), lambda rows: fit.leverages(fit.X.take(rows, axis=0))
            )
        known = 1.0 - fit.ridge * self.diagonal
        return Leverages(known, float(known.mean()), known.__getitem__)

    @cached_property
    def _orders(self) -> dict[str, LabelledOrder]:
        return {}

    def lines(self, rows: Any, residuals: Any) -> Iterator[tuple[Any, Any, Any, Any]]:
        """Yield place, prediction and lines ``rho``, ``beta`` (l,) of each row; on a device of each chunk, (m, l)."""
        for part, border in self.borders(rows):
            if self.foreign:
                lines = device_lines.lines(
                    residuals, self.diagonal, border.weights, border.pivot, self.power
                )
                yield part, border.prediction, *lines
                continue
            for j, (prediction, pivot, weights) in enumerate(zip(*border, strict=True), part.start):
                lines = residual_lines(residuals, self.diagonal, weights, pivot, self.power)
                yield j, prediction, *lines

    def label_p_values(self, rows: Array, labels: Array, tau: Array) -> Array:
        """Return the p-value of a candidate label for each row, shape (m,); ties count with weight `tau` (m,)."""
        count = device_lines.counts if self.foreign else count_nonconforming
        labels, counts = arrays.beside(labels, rows), arrays.zeros((2, rows.shape[0]), rows)
        for part, prediction, rho, beta in self.lines(rows, self.fit.residuals):
            counts[0, part], counts[1, part] = count(
                rho, beta, labels[part] - prediction, self.fit.slack
            )
        return p_values(counts[0, :], counts[1, :], self.n_labelled, arrays.beside(tau, rows))

    def class_p_values(self, rows: Array, codes: AnyArray, tau: Array) -> ClassPValues:
        """Return the p-values of every class at rows; codes (l,), ties count with weight `tau` (m,)."""
        xp, residuals = arrays.namespace(rows), self.fit.residuals
        inside = arrays.beside(codes[:, None] == np.arange(residuals.shape[1]), rows)
        own = xp.sum(xp.where(inside, residuals, xp.zeros_like(residuals)), axis=1)
        shape = (2, rows.shape[0], residuals.shape[1])
        overall, within, scores = (arrays.zeros(part, rows) for part in (shape, shape, shape[1:]))
        count: Any = device_lines.counts_by_class if self.foreign else count_nonconforming_by_class
        members = inside if self.foreign else codes
        for part, prediction, rho, beta in self.lines(rows, own):
            every, same = count(rho, beta, members, prediction, self.fit.slack)
            for place in range(2):
                overall[place, part, :], within[place, part, :] = every[place], same[place]
            scores[part, :] = prediction
        sizes, tau = (
            arrays.beside(np.bincount(codes), rows, "float64"),
            arrays.beside(tau[:, None], rows),
        )
        p = p_values(overall[0, ...], overall[1, ...], len(codes), tau)
        return ClassPValues(p, p_values(within[0, ...], within[1, ...], sizes, tau), scores)

    def chunks(self, n: int, width: int) -> list[slice]:
        """Return slices of `n` unlabelled rows whose working arrays, `width` numbers a row, fit the memory budget."""
        # At most five such arrays live at once; on a device ten, and as much memory as it has to spare.
        each, budget = 10 if self.foreign else 5, memory.work_bytes(self.diagonal, self.max_bytes)
        return arrays.blocks(n, max(1, int(budget // (each * 8 * width))))


def _announce_memory(n_labelled: int, max_bytes: float, rows: Any = None) -> None:
    what = f"The kernel matrix of {n_labelled:,} labelled rows, with its factor,"
    memory.announce(
        3 * 8.0 * n_labelled**2, max_bytes, rows, what, "kernel='linear' needs none of it."
    )


def find_regions(machine: Machine, rows: Array, *, rank: int, side: str = "two") -> Regions:
    """Return the regions of unlabelled rows: by the window where it decides, else by selection, else by sweep."""
    if rank == 0 or rows.shape[0] == 0:
        line = arrays.beside(np.array([-np.inf, np.inf]), rows)
        return Regions.from_intervals(arrays.zeros((rows.shape[0], 2), rows) + line)
    if machine.foreign:  # on a device, many at once
        parts = []
        for _, prediction, rho, beta in machine.lines(rows, machine.fit.residuals):
            regions = device_lines.regions(rho, beta, rank, side, machine.fit.slack)
            shift = arrays.pick(prediction, np.repeat(np.arange(len(regions)), regions.n_pieces))
            parts.append(Regions(regions.pieces + shift[:, None], regions.offsets))
        return Regions.concatenate(parts)
    ends = window_intervals(machine, rows, rank=rank, side=side)
    if not (missing := np.isnan(ends[:, 0])).any():
        return Regions.from_intervals(ends)
    undecided = np.flatnonzero(missing)
    pieces: list[Array] = list(ends[:, None, :])
    for j, prediction, rho, beta in machine.lines(rows[undecided], machine.fit.residuals):
        pieces[undecided[j]] = prediction + line_region(
            rho, beta, rank, SIDE[side], machine.fit.slack
        )
    return Regions.from_pieces(pieces)


def window_intervals(machine: Machine, rows: Array, *, rank: int, side: str) -> Array:
    """Return the ends (m, 2) of the regions that the window settles; NaN where it does not apply."""
    if not isinstance(machine.fit, PrimalRidge):
        return np.full((len(rows), 2), np.nan)
    fit, order = machine.fit, machine.order(side, rank)
    settings = fit.offset, fit.ridge, machine.power, fit.slack, SIDE[side]
    lines = Lines(fit.X, fit.residuals, machine.diagonal, *settings)
    parts = []
    for part in machine.chunks(len(rows), fit.X.shape[1]):
        prediction, pivot, z = fit.directions(rows[part])
        parts.append(window_ends(order, lines, prediction, pivot, z, rank))
        log.info("confidence machine: %d of %d rows", part.stop, len(rows))
    ends = np.concatenate(parts)
    if order.rest > 0.0 and (missing := np.isnan(ends[:, 0])).any():
        machine.order(side)
        ends[missing] = window_intervals(machine, rows[missing], rank=rank, side=side)
    return ends
