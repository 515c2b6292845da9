"""Ridge regression held against unlabelled rows, chunk by chunk: regions, and the counts behind p-values."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from transduce.core import arrays
from transduce.core.answer import Regions
from transduce.core.types import AnyArray, Array, Mask
from transduce.device import lines as device_lines
from transduce.device import memory
from transduce.device.kernels import Kernel
from transduce.methods.confidence_machine.bordered_ridge import Border, DualRidge, PrimalRidge
from transduce.methods.confidence_machine.residual_lines import (
    SIDE,
    LabelledOrder,
    Leverages,
    Lines,
    count_nonconforming,
    count_nonconforming_by_class,
    line_region,
    order_rows,
    residual_lines,
    window_ends,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Machine:
    """A fitted ridge regression and how unlabelled rows are to be held against it."""

    # `rows` arguments have a line for each unlabelled row: features; or, with ``kernel=None`` (precomputed), kernel
    # values with the labelled rows followed by the row's own kernel value.

    fit: DualRidge | PrimalRidge
    diagonal: Array
    power: float
    max_bytes: float
    kernel: Kernel | None = None
    X_l: Array = field(default_factory=lambda: np.empty((0, 0)))

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
        settings: dict[str, Any] = {"ridge": ridge, "fit_intercept": fit_intercept}
        fit: DualRidge | PrimalRidge
        if kernel.name == "linear" and rows.shape[1] < rows.shape[0]:
            fit = PrimalRidge.fit(rows, y, **settings)
            return cls(fit, _diagonal(fit, power, rows), power, max_bytes)
        _announce_memory(rows.shape[0], max_bytes, rows)
        log.info("confidence machine: fitting %d labelled rows", rows.shape[0])
        precomputed = kernel.name == "precomputed"
        K = rows[:, :-1] if precomputed else kernel.checked_matrix(rows, rows)
        kernel.check_symmetry(rows)
        fit = DualRidge.fit(K, y, **settings)
        diagonal = _diagonal(fit, power, rows)
        return cls(fit, diagonal, power, max_bytes, None if precomputed else kernel, rows)

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

    @property
    def n_inputs(self) -> int:
        """How many numbers of an unlabelled row a prediction takes: features, or kernel values."""
        return int(self.fit.X.shape[1]) if isinstance(self.fit, PrimalRidge) else self.n_labelled

    def predict(self, rows: Array) -> Array:
        """Return the inductive ridge prediction."""
        values = arrays.zeros((rows.shape[0], *self.fit.residuals.shape[1:]), rows)
        for part in self.chunks(rows.shape[0], self.n_inputs):
            chunk = rows[part, :]
            chunk = chunk if isinstance(self.fit, PrimalRidge) else self._kernel_rows(chunk)[0]
            values[part, ...] = self.fit.predict(chunk)
        return values

    def borders(self, rows: Array) -> Iterator[tuple[slice, Border]]:
        """Yield chunks of the rows under the memory budget, with prediction, pivot and weights."""
        for part in self.chunks(rows.shape[0], self.n_labelled):
            if isinstance(self.fit, PrimalRidge):
                prediction, pivot, z = self.fit.directions(rows[part, :])
                yield part, Border(prediction, pivot, self.fit.weights(z))
            else:
                yield part, self.fit.border(*self._kernel_rows(rows[part, :]))
            log.info("confidence machine: %d of %d rows", part.stop, rows.shape[0])

    def order(self, side: str, rank: int | None = None) -> LabelledOrder:
        """Return the labelled rows in the order of their residuals, as far down as a rank needs; remembered."""
        known = self._orders.get(side)
        if known is None or (known.rest > 0.0 and (rank is None or len(known.ranked) < rank + 32)):
            depth = None if rank is None else rank + rank // 4 + 64
            known = order_rows(self.fit.residuals, self.diagonal, self._leverages(), self.power, side, depth)
            self._orders[side] = known
        return known

    def _leverages(self) -> Leverages:
        fit = self.fit
        assert isinstance(fit, PrimalRidge)
        if self.power == 0.0:
            return Leverages(*fit.leverage_bounds(), lambda rows: fit.leverages(fit.X[rows]))
        known = 1.0 - fit.ridge * self.diagonal
        return Leverages(known, float(known.mean()), lambda rows: known[rows])

    @cached_property
    def _orders(self) -> dict[str, LabelledOrder]:
        return {}

    def lines(self, rows: Any, residuals: Any) -> Iterator[tuple[Any, Any, Any, Any]]:
        """Yield place, prediction and lines ``rho``, ``beta`` (l,) of each row; on a device of each chunk, (m, l)."""
        for part, border in self.borders(rows):
            if self.foreign:
                lines = device_lines.lines(residuals, self.diagonal, border.weights, border.pivot, self.power)
                yield part, border.prediction, *lines
                continue
            for j, (prediction, pivot, weights) in enumerate(zip(*border, strict=True), part.start):
                lines = residual_lines(residuals, self.diagonal, weights, pivot, self.power)
                yield j, prediction, *lines

    def _kernel_rows(self, rows: Array) -> tuple[Array, Array]:
        if self.kernel is None:
            return rows[:, :-1], rows[:, -1]
        return self.kernel.checked_matrix(rows, self.X_l), self.kernel.diagonal(rows)

    def chunks(self, n: int, width: int) -> list[slice]:
        """Return slices of `n` unlabelled rows whose working arrays, `width` numbers a row, fit the memory budget."""
        # At most five such arrays live at once; on a device ten, and as much memory as it has to spare.
        each, budget = (
            (10, memory.work_bytes(self.diagonal, self.max_bytes)) if self.foreign else (5, self.max_bytes)
        )
        size = max(1, int(budget // (each * 8 * width)))
        return arrays.blocks(n, size)


def _diagonal(fit: DualRidge | PrimalRidge, power: float, rows: Any) -> Any:
    """Return ``G_ii``; plain residuals do not need it, and it costs as much again as the fit."""
    return fit.diagonal() if power > 0.0 else arrays.zeros((rows.shape[0],), rows) + 1.0


def _announce_memory(n_labelled: int, max_bytes: float, rows: Any = None) -> None:
    what = f"The kernel matrix of {n_labelled:,} labelled rows, with its factor,"
    memory.announce(3 * 8.0 * n_labelled**2, max_bytes, rows, what, "kernel='linear' needs none of it.")


def find_regions(machine: Machine, rows: Array, *, rank: int, side: str = "two") -> Regions:
    """Return the regions of unlabelled rows: by the window where it decides, else by selection, else by sweep."""
    if rank == 0 or rows.shape[0] == 0:
        line = arrays.beside(np.array([-np.inf, np.inf]), rows)
        return Regions.from_intervals(arrays.zeros((rows.shape[0], 2), rows) + line)
    if machine.foreign:
        return _find_foreign(machine, rows, rank, side)
    ends = window_intervals(machine, rows, rank=rank, side=side)
    undecided = np.flatnonzero(_is_missing(ends))
    if len(undecided) == 0:
        return Regions.from_intervals(ends)
    pieces: list[Array] = list(ends[:, None, :])
    for j, prediction, rho, beta in machine.lines(rows[undecided], machine.fit.residuals):
        pieces[undecided[j]] = prediction + line_region(rho, beta, rank, SIDE[side], machine.fit.slack)
    return Regions.from_pieces(pieces)


def _find_foreign(machine: Machine, rows: Any, rank: int, side: str) -> Regions:
    """Return the regions of unlabelled rows on a device, many at once."""
    parts = []
    for _, prediction, rho, beta in machine.lines(rows, machine.fit.residuals):
        regions = device_lines.regions(rho, beta, rank, side, machine.fit.slack)
        shift = arrays.pick(prediction, np.repeat(np.arange(len(regions)), regions.n_pieces))
        parts.append(Regions(regions.pieces + shift[:, None], regions.offsets))
    return Regions.concatenate(parts)


def window_intervals(machine: Machine, rows: Array, *, rank: int, side: str) -> Array:
    """Return the ends (m, 2) of the regions that the window settles; NaN where it does not apply."""
    ends = np.full((len(rows), 2), np.nan)
    if not isinstance(machine.fit, PrimalRidge):
        return ends
    fit, order = machine.fit, machine.order(side, rank)
    lines = Lines(fit.X, machine.diagonal, fit.offset, fit.ridge, machine.power, fit.slack)
    for part in machine.chunks(len(rows), machine.n_inputs):
        prediction, pivot, z = fit.directions(rows[part])
        # Rows of like leverage one after another: within a factor of the square root of 2, which takes no full sort.
        level = np.frexp((pivot - fit.ridge) ** 2)[1].astype(np.int16)
        below, above = window_ends(order, lines, z, pivot, np.argsort(level, kind="stable"), rank)
        ends[part, 0] = -np.inf if side == "upper" else prediction - (below if side == "two" else above)
        ends[part, 1] = np.inf if side == "lower" else prediction + above
        log.info("confidence machine: %d of %d rows", part.stop, len(rows))
    if order.rest > 0.0 and (missing := _is_missing(ends)).any():
        machine.order(side)
        ends[missing] = window_intervals(machine, rows[missing], rank=rank, side=side)
    return ends


def _is_missing(ends: Array) -> Mask:
    """Return where there are no ends; shapes (m, 2) and (m,). At most one of two ends is infinite."""
    return np.isnan(ends[:, 0] + ends[:, 1])


def count_labels(machine: Machine, rows: Array, labels: Array) -> tuple[AnyArray, AnyArray]:
    """Return how many labelled rows are more nonconforming than each row with its label, and how many tie, (m,)."""
    count = device_lines.counts if machine.foreign else count_nonconforming
    labels, counts = arrays.beside(labels, rows), arrays.zeros((2, rows.shape[0]), rows, "int64")
    for part, prediction, rho, beta in machine.lines(rows, machine.fit.residuals):
        above, tied = count(rho, beta, labels[part] - prediction, machine.fit.slack)
        counts[0, part], counts[1, part] = above, tied
    return counts[0, :], counts[1, :]


def count_classes(machine: Machine, rows: Array, codes: AnyArray) -> tuple[AnyArray, AnyArray, Array]:
    """Return the same for every class, of all rows and within it, (2, m, n_classes); and predictions (m, n_classes)."""
    xp, residuals = arrays.namespace(rows), machine.fit.residuals
    inside = arrays.beside(codes[:, None] == np.arange(residuals.shape[1]), rows)
    own = xp.sum(xp.where(inside, residuals, xp.zeros_like(residuals)), axis=1)
    shape = (2, rows.shape[0], residuals.shape[1])
    overall, within = (arrays.zeros(shape, rows, "int64") for _ in range(2))
    predictions = arrays.zeros(shape[1:], rows)
    count: Any = device_lines.counts_by_class if machine.foreign else count_nonconforming_by_class
    members = inside if machine.foreign else codes
    for part, prediction, rho, beta in machine.lines(rows, own):
        every, same = count(rho, beta, members, prediction, machine.fit.slack)
        for place in range(2):
            overall[place, part, :], within[place, part, :] = every[place], same[place]
        predictions[part, :] = prediction
    return overall, within, predictions
