"""A ridge regression held against unlabelled rows: regions, and the counts behind p-values.

`bordered_ridge` has the notation, and `residual_lines` the formula. Rows are taken in chunks that
fit a memory budget.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from transduce.core import arrays
from transduce.core.answer import Regions
from transduce.core.ranks import p_values
from transduce.core.types import AnyArray, Array
from transduce.device import memory
from transduce.device.kernels import Kernel
from transduce.methods.confidence_machine.bordered_ridge import Border, DualRidge, PrimalRidge
from transduce.methods.confidence_machine.residual_lines import SIDE
from transduce.methods.confidence_machine.setting_grid import kernel_values, own_values
from transduce.methods.confidence_machine.solvers import LineSolver, RowLines, choose_solver
from transduce.methods.confidence_machine.window import (
    LabelledOrder,
    Leverages,
    Lines,
    order_rows,
    window_ends,
)

log = logging.getLogger(__name__)


class ClassPValues(NamedTuple):
    """The p-values of every class at rows; `chosen` only where settings are chosen."""

    overall: Array  # (m, c) among all labelled rows
    within: Array  # (m, c) among those of the candidate class
    scores: Array  # (m, c) one-vs-rest prediction of the candidate, with the setting chosen for it
    chosen: AnyArray | None = None  # (m, c) that setting; the first, if leave-one-out errors tie


@dataclass(frozen=True)
class Machine:
    """A fitted ridge regression and how unlabelled rows are to be held against it."""

    # `rows` arguments have a line for each unlabelled row: features; or, with a precomputed kernel,
    # kernel values with the labelled rows followed by the row's own kernel value.

    fit: DualRidge | PrimalRidge
    solver: LineSolver
    max_bytes: float
    kernel: Kernel
    X_l: Array | None  # the labelled rows, where kernel values with them are needed

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
        """Fit labelled rows in the cheaper form: primal for a linear kernel with ``d < l``."""
        y = arrays.asarray_like(y, rows, "float64")
        fit: DualRidge | PrimalRidge
        X_l = None
        if kernel.name == "linear" and rows.shape[1] < rows.shape[0]:
            fit = PrimalRidge.fit(rows, y, ridge=ridge, fit_intercept=fit_intercept)
        else:
            X_l = rows
            announce_memory(rows.shape[0], max_bytes, rows)
            log.info("confidence machine: fitting %d labelled rows", rows.shape[0])
            kernel.check_symmetry(rows)
            K = kernel_values(kernel, rows, rows)
            fit = DualRidge.fit(K, y, ridge=ridge, fit_intercept=fit_intercept)
        if power > 0.0:
            diagonal = fit.diagonal()
        else:
            # Plain residuals do not need G_ii, and it costs as much again as the fit.
            diagonal = arrays.zeros((rows.shape[0],), rows) + 1.0
        return cls(fit, choose_solver(diagonal, power), max_bytes, kernel, X_l)

    @property
    def diagonal(self) -> Array:
        """``G_ii`` of the labelled rows (l,), or 1 where residuals are plain."""
        return self.solver.diagonal

    @property
    def power(self) -> float:
        """Which residuals are compared, as in `POWER`."""
        return self.solver.power

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
        if isinstance(self.fit, PrimalRidge):
            return "primal"
        return "dual"

    def predict(self, rows: Array) -> Array:
        """Return the inductive ridge prediction."""
        if isinstance(self.fit, PrimalRidge):
            return self.fit.predict(rows)
        values = arrays.zeros((rows.shape[0], *self.fit.residuals.shape[1:]), rows)
        for part in self.chunks(rows.shape[0], self.n_labelled):
            K_al = self._kernel_values(rows[part, :])
            values[part, ...] = self.fit.predict(K_al)
        return values

    def _kernel_values(self, rows: Array) -> Array:
        """Return the kernel values of rows with the labelled rows, (m, l)."""
        assert self.X_l is not None
        return kernel_values(self.kernel, rows, self.X_l)

    def borders(self, rows: Array) -> Iterator[tuple[slice, Border]]:
        """Yield chunks of the rows under the memory budget, with what they bring."""
        for part in self.chunks(rows.shape[0], self.n_labelled):
            yield part, self._border(rows[part, :])
            log.info("confidence machine: %d of %d rows", part.stop, rows.shape[0])

    def _border(self, rows: Array) -> Border:
        """Return prediction, pivot and weights of a chunk of rows."""
        if isinstance(self.fit, PrimalRidge):
            prediction, pivot, z = self.fit.directions(rows)
            return Border(prediction, pivot, self.fit.weights(z))
        return self.fit.border(self._kernel_values(rows), own_values(self.kernel, rows))

    def lines(self, rows: Array, residuals: Array) -> Iterator[RowLines]:
        """Yield the lines for each row; on a device, for each chunk."""
        for part, border in self.borders(rows):
            yield from self.solver.lines(residuals, border, part)

    def label_p_values(self, rows: Array, labels: Array, tau: Array) -> Array:
        """Return the p-value of a label for each row, (m,); ties count with weight `tau` (m,)."""
        labels = arrays.asarray_like(labels, rows)
        above = arrays.zeros((rows.shape[0],), rows)
        tied = arrays.zeros((rows.shape[0],), rows)
        for lines in self.lines(rows, self.fit.residuals):
            counts = self.solver.count(lines, labels, self.fit.slack)
            above[lines.place] = counts.above
            tied[lines.place] = counts.tied
        return p_values(above, tied, self.n_labelled, arrays.asarray_like(tau, rows))

    def class_p_values(self, rows: Array, codes: AnyArray, tau: Array) -> ClassPValues:
        """Return the p-values of every class at rows; codes (l,), ties count with weight `tau`."""
        shape = (rows.shape[0], self.fit.residuals.shape[1])
        above = arrays.zeros(shape, rows)
        tied = arrays.zeros(shape, rows)
        above_within = arrays.zeros(shape, rows)
        tied_within = arrays.zeros(shape, rows)
        scores = arrays.zeros(shape, rows)
        for lines in self.lines(rows, self._class_residuals(codes)):
            counts = self.solver.count_by_class(lines, codes, self.fit.slack)
            above[lines.place, :] = counts.overall[0]
            tied[lines.place, :] = counts.overall[1]
            above_within[lines.place, :] = counts.within[0]
            tied_within[lines.place, :] = counts.within[1]
            scores[lines.place, :] = lines.prediction
        class_sizes = arrays.asarray_like(np.bincount(codes), rows, "float64")
        tau = arrays.asarray_like(tau[:, None], rows)
        overall = p_values(above, tied, len(codes), tau)
        within = p_values(above_within, tied_within, class_sizes, tau)
        return ClassPValues(overall, within, scores)

    def _class_residuals(self, codes: AnyArray) -> Array:
        """Return the residual of each labelled row in the column of its class, (l,)."""
        residuals = self.fit.residuals
        xp = arrays.namespace(residuals)
        is_class = arrays.asarray_like(codes[:, None] == np.arange(residuals.shape[1]), residuals)
        return xp.sum(xp.where(is_class, residuals, xp.zeros_like(residuals)), axis=1)

    def chunks(self, n: int, width: int) -> list[slice]:
        """Return slices of `n` rows whose arrays, `width` numbers a row, fit the memory budget."""
        # On a device, as much memory as it has to spare.
        budget = memory.work_bytes(self.diagonal, self.max_bytes)
        bytes_a_row = self.solver.n_arrays * 8 * width
        return arrays.blocks(n, max(1, int(budget // bytes_a_row)))

    def order(self, side: str, rank: int | None = None) -> LabelledOrder:
        """Return the labelled rows by their residuals, as deep as a rank needs; remembered."""
        order = self._orders.get(side)
        if order is None or not _is_deep_enough(order, rank):
            depth = None
            if rank is not None:
                depth = rank + rank // 4 + 64
            order = order_rows(
                self.fit.residuals,
                self.diagonal,
                self._leverages(),
                self.power,
                side,
                depth,
            )
            self._orders[side] = order
        return order

    @cached_property
    def _orders(self) -> dict[str, LabelledOrder]:
        return {}

    def _leverages(self) -> Leverages:
        """Return the labelled rows' leverages, computed where they are not yet known."""
        fit = self.fit
        assert isinstance(fit, PrimalRidge)
        if self.power > 0.0:
            leverages = 1.0 - fit.ridge * self.diagonal
            return Leverages(leverages, float(leverages.mean()), leverages.__getitem__)

        def exact(positions: AnyArray) -> Array:
            return fit.leverages(fit.X.take(positions, axis=0))

        return Leverages(fit.leverage_bounds(), fit.mean_leverage(), exact)


def _is_deep_enough(order: LabelledOrder, rank: int | None) -> bool:
    """Return whether an order holds all rows, or enough of them for a rank."""
    if order.rest == 0.0:
        return True
    return rank is not None and len(order.ranked) >= rank + 32


def announce_memory(n_labelled: int, max_bytes: float, rows: Array | None = None) -> None:
    """Say what the kernel matrix takes, or refuse it."""
    memory.announce(
        3 * 8.0 * n_labelled**2,
        max_bytes,
        rows,
        f"The kernel matrix of {n_labelled:,} labelled rows, with its factor,",
        "kernel='linear' needs none of it.",
    )


# ---------------------------------------------------------------------------------------- regions


def find_regions(
    machine: Machine,
    rows: Array,
    *,
    rank: int,
    side: str = "two",
) -> Regions:
    """Return the regions of rows: by the window where it decides, else by selection or sweep."""
    if rank == 0 or rows.shape[0] == 0:
        line = arrays.asarray_like(np.array([-np.inf, np.inf]), rows)
        return Regions.from_intervals(arrays.zeros((rows.shape[0], 2), rows) + line)
    if not machine.solver.has_window:
        return _regions_by_lines(machine, rows, rank=rank, side=side)
    ends = window_intervals(machine, rows, rank=rank, side=side)
    undecided = np.flatnonzero(np.isnan(ends[:, 0]))
    if len(undecided) == 0:
        return Regions.from_intervals(ends)
    pieces: list[Array] = list(ends[:, None, :])
    regions = _regions_by_lines(machine, rows[undecided], rank=rank, side=side)
    for j, place in enumerate(undecided):
        pieces[place] = regions[j]
    return Regions.from_pieces(pieces)


def _regions_by_lines(
    machine: Machine,
    rows: Array,
    *,
    rank: int,
    side: str,
) -> Regions:
    """Return the regions of rows from the lines of all labelled rows."""
    lines = machine.lines(rows, machine.fit.residuals)
    return machine.solver.regions(lines, rank, side, machine.fit.slack)


def window_intervals(
    machine: Machine,
    rows: Array,
    *,
    rank: int,
    side: str,
) -> Array:
    """Return the ends (m, 2) of the regions that the window settles; NaN at the others."""
    fit = machine.fit
    if not isinstance(fit, PrimalRidge):
        return np.full((len(rows), 2), np.nan)
    order = machine.order(side, rank)
    lines = Lines(
        X=fit.X,
        residuals=fit.residuals,
        diagonal=machine.diagonal,
        offset=fit.offset,
        ridge=fit.ridge,
        power=machine.power,
        slack=fit.slack,
        side=SIDE[side],
    )
    chunks = []
    for part in machine.chunks(len(rows), fit.X.shape[1]):
        prediction, pivot, z = fit.directions(rows[part])
        chunks.append(window_ends(order, lines, prediction, pivot, z, rank))
        log.info("confidence machine: %d of %d rows", part.stop, len(rows))
    ends = np.concatenate(chunks)
    undecided = np.isnan(ends[:, 0])
    if order.rest > 0.0 and undecided.any():
        machine.order(side)  # of all rows, which is remembered
        ends[undecided] = window_intervals(machine, rows[undecided], rank=rank, side=side)
    return ends
