"""Lines, counts and regions: row by row on the host, or many at once on a device.

A machine takes one of the two solvers when it is built. The formulas are those of `residual_lines`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from transduce.core import arrays
from transduce.core.answer import Regions
from transduce.core.types import AnyArray, Array
from transduce.device import lines as device_lines
from transduce.methods.confidence_machine.bordered_ridge import Border
from transduce.methods.confidence_machine.residual_lines import (
    SIDE,
    count_nonconforming,
    count_nonconforming_by_class,
    line_region,
    residual_lines,
)


class RowLines(NamedTuple):
    """The labelled rows' lines for one unlabelled row; on a device, for a chunk of `m` rows."""

    place: int | slice  # of the unlabelled rows among all
    prediction: Array  # () or (c,); on a device (m,) or (m, c)
    rho: Array  # (l,); on a device (m, l)
    beta: Array  # as `rho`


class Counts(NamedTuple):
    """How many labelled rows are more nonconforming than an unlabelled row, and how many tie."""

    above: int | Array
    tied: int | Array


class ClassCounts(NamedTuple):
    """The same for each candidate class."""

    overall: tuple[Array, Array]  # above and tied among all labelled rows
    within: tuple[Array, Array]  # above and tied among those of the candidate class


class LineSolver(Protocol):
    """What a machine asks about the lines ``rho_i - beta_i t`` of its labelled rows."""

    @property
    def diagonal(self) -> Array:
        """``G_ii`` of the labelled rows, shape (l,)."""
        ...

    @property
    def power(self) -> float:
        """Which residuals are compared, as in `POWER`."""
        ...

    @property
    def n_arrays(self) -> int:
        """How many arrays of the size of a chunk's weights live at once."""
        ...

    @property
    def has_window(self) -> bool:
        """Whether the `window` can be used, which is compiled for numpy arrays."""
        ...

    def lines(self, residuals: Array, border: Border, part: slice) -> Iterator[RowLines]:
        """Yield the lines for the rows of a chunk, from residuals (l,) and what the rows bring.

        ``rho_i = s r_i / w_i`` and ``beta_i = g_i / w_i`` with ``w_i = (s G_ii + g_i^2) ** power``.
        """
        ...

    def count(self, lines: RowLines, labels: Array, slack: float) -> Counts:
        """Return how many ``|rho_i - beta_i t|`` exceed ``|t|``, ``t = label - prediction``."""
        ...

    def count_by_class(self, lines: RowLines, codes: AnyArray, slack: float) -> ClassCounts:
        """Return how many residuals exceed that of the candidate class, ``|1 - prediction|``.

        That of labelled row i, of class c, is ``|rho_i - beta_i (z - prediction_c)|`` with ``z =
        1`` if c is the candidate, else ``z = -1``.
        """
        ...

    def regions(
        self,
        lines: Iterable[RowLines],
        rank: int,
        side: str,
        slack: float,
    ) -> Regions:
        """Return ``{prediction + t : at least rank of the |rho_i - beta_i t| are >= |t|}``."""
        ...


@dataclass(frozen=True)
class HostSolver:
    """Numpy arrays, row by row, compiled."""

    diagonal: Array
    power: float
    n_arrays = 5
    has_window = True

    def lines(self, residuals: Array, border: Border, part: slice) -> Iterator[RowLines]:
        """Yield the lines of the chunk's rows one by one."""
        rows = zip(border.prediction, border.pivot, border.weights, strict=True)
        for place, (prediction, pivot, weights) in enumerate(rows, part.start):
            rho, beta = residual_lines(residuals, self.diagonal, weights, pivot, self.power)
            yield RowLines(place, prediction, rho, beta)

    def count(self, lines: RowLines, labels: Array, slack: float) -> Counts:
        """Return two numbers."""
        t = float(labels[lines.place] - lines.prediction)
        n_above, n_tied = count_nonconforming(lines.rho, lines.beta, t, slack)
        return Counts(n_above, n_tied)

    def count_by_class(self, lines: RowLines, codes: AnyArray, slack: float) -> ClassCounts:
        """Return numbers for each class, (c,)."""
        overall, within = count_nonconforming_by_class(
            lines.rho, lines.beta, codes, lines.prediction, slack
        )
        return ClassCounts((overall[0], overall[1]), (within[0], within[1]))

    def regions(
        self,
        lines: Iterable[RowLines],
        rank: int,
        side: str,
        slack: float,
    ) -> Regions:
        """Return the regions by selection, or by sweep where a line is too steep for it."""
        pieces = []
        for _, prediction, rho, beta in lines:
            about_zero = line_region(rho, beta, rank, SIDE[side], slack)
            pieces.append(prediction + about_zero)
        return Regions.from_pieces(pieces)


@dataclass(frozen=True)
class DeviceSolver:
    """Arrays of another library, all rows of a chunk at once."""

    diagonal: Array
    power: float
    n_arrays = 10
    has_window = False

    def lines(self, residuals: Array, border: Border, part: slice) -> Iterator[RowLines]:
        """Yield the lines of the whole chunk."""
        rho, beta = device_lines.lines(
            residuals,
            self.diagonal,
            border.weights,
            border.pivot,
            self.power,
        )
        yield RowLines(part, border.prediction, rho, beta)

    def count(self, lines: RowLines, labels: Array, slack: float) -> Counts:
        """Return two arrays (m,)."""
        t = labels[lines.place] - lines.prediction
        return Counts(*device_lines.counts(lines.rho, lines.beta, t, slack))

    def count_by_class(self, lines: RowLines, codes: AnyArray, slack: float) -> ClassCounts:
        """Return arrays (m, c)."""
        n_classes = lines.prediction.shape[1]
        members = arrays.asarray_like(codes[:, None] == np.arange(n_classes), lines.rho)
        overall, within = device_lines.counts_by_class(
            lines.rho, lines.beta, members, lines.prediction, slack
        )
        return ClassCounts((overall[0], overall[1]), (within[0], within[1]))

    def regions(
        self,
        lines: Iterable[RowLines],
        rank: int,
        side: str,
        slack: float,
    ) -> Regions:
        """Return the regions chunk by chunk."""
        chunks = []
        for _, prediction, rho, beta in lines:
            about_zero = device_lines.regions(rho, beta, rank, side, slack)
            row_of_piece = np.repeat(np.arange(len(about_zero)), about_zero.n_pieces)
            shift = arrays.pick(prediction, row_of_piece)
            chunks.append(Regions(about_zero.pieces + shift[:, None], about_zero.offsets))
        return Regions.concatenate(chunks)


def choose_solver(diagonal: Array, power: float) -> LineSolver:
    """Return the solver for the library of the arrays."""
    if arrays.is_foreign(diagonal):
        return DeviceSolver(diagonal, power)
    return HostSolver(diagonal, power)
