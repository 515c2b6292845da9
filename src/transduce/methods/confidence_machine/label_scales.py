"""The scale of positive labels, chosen for every candidate label: as they are, root, or logarithm.

Errors of prices, counts and concentrations grow with their size. For every candidate label ``y`` of
a row that scale is used whose leave-one-out likelihood of the **completed** sample is largest, that
row and ``y`` included: with the smallest leave-one-out error ``Q`` among the settings and the
derivative ``g'`` of the scale, the smallest of::

    log Q(g(y)) - 2 mean_i log |g'(y_i)| + HANDICAP

The choice treats all rows alike, so p-values stay exact. The only row of a completed sample whose
label is not positive is infinitely nonconforming, so where all labels are positive no region
reaches below 0, and this too is exact. With two such rows labels stay as they are, and so they do
where the completed sample has labels that hardly differ in proportion. Where one scale is chosen
has no closed form: intervals of labels are halved until bounds of the criterion decide; what is
not decided then belongs to both scales, which keeps the guarantee.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from transduce.core.answer import Regions
from transduce.core.types import AnyArray, Array
from transduce.methods.confidence_machine.bordered_ridge import Border
from transduce.methods.confidence_machine.parabolas import (
    NOWHERE,
    TIE,
    Interval,
    height,
    interval_ends,
    merge,
    parabolas,
)
from transduce.methods.confidence_machine.residual_lines import SIDE
from transduce.methods.confidence_machine.setting_grid import SettingGrid
from transduce.methods.confidence_machine.tuned_machine import (
    RegionRule,
    RowAnswers,
    TunedMachine,
    TunedRegions,
    tuned_regions,
)

SCALES = ("identity", "sqrt", "log")
IDENTITY = 0
SQRT = 1
LOG = 2
# What is added to the criterion: regions on the logarithm have a long upper end, so it must be
# better by a factor of four in squared error. On ten mixed tables, six draws of 30 labels, regions
# were narrower than with a constant spread and no scale by 3.9, 4.2 and 4.8 % with factors of 2, 3
# and 5, by 6.5 % with the root alone; four draws of 50 labels: 4.0, 4.1, 4.1 and 4.8 %. On one of
# them, whose errors are in proportion, the logarithm wins by a factor of 6 to 9 with 100 labels.
HANDICAP = (0.0, 0.0, float(np.log(4.0)))
# If the largest label of a completed sample is at most so many times the smallest, labels stay as
# they are: a scale is nearly a straight line then. Scales that hardly differ also take long to tell
# apart: with labels of 1,000 and a spread of 1 a row took seven times as long as others.
ALIKE = 1.5
NARROWEST = 1e-9  # intervals of the logarithm of labels that are not halved any more
MOST_HALVINGS = 4000
NOTHING = 1e-9  # of the smallest label
LARGEST = 1e150  # labels beyond belong to all scales; those below its inverse are not positive
HIGHEST = float(np.log(LARGEST))


class Scales(NamedTuple):
    """The scales to choose from, for compiled code."""

    kind: AnyArray  # (K,) which of `SCALES`
    centre: Array  # (K,) of the machines' units
    unit: Array  # (K,)
    n_rows: int  # of a completed sample
    log_sum: float  # of the logarithms of the labels
    # Logarithms of the labels of a row between which the completed sample has labels that are
    # alike; from infinity to minus infinity if the other labels are not alike.
    alike_from: float
    alike_to: float


@njit(cache=True, nogil=True)
def _on_scale(scales: Scales, k: int, log_label: float) -> float:
    """Return a label in the units of a machine."""
    label = log_label
    if scales.kind[k] == IDENTITY:
        label = np.exp(log_label)
    elif scales.kind[k] == SQRT:
        label = np.exp(0.5 * log_label)
    return (label - scales.centre[k]) / scales.unit[k]


@njit(cache=True, nogil=True)
def _criterion_bounds(
    scales: Scales,
    curves: Array,
    k: int,
    low: float,
    high: float,
) -> tuple[float, float]:
    """Return what the criterion of a scale lies between, for logarithms of labels in an interval.

    `curves` are the parabolas (K, S, 4) of a row.
    """
    first = _on_scale(scales, k, low)
    last = _on_scale(scales, k, high)
    least = np.inf
    most = np.inf
    for s in range(curves.shape[1]):
        curve = curves[k, s]
        vertex = curve[0] - 0.5 * curve[2] / curve[3]
        least = min(least, height(curve, min(max(vertex, first), last)))
        most = min(most, max(height(curve, first), height(curve, last)))
    kind = scales.kind[k]
    # - 2 mean log |g'|, which is 0, log 4 + mean log y, and 2 mean log y.
    constant = 2.0 * np.log(scales.unit[k])
    slope = 0.0
    if kind == SQRT:
        constant += np.log(4.0) + HANDICAP[1] + scales.log_sum / scales.n_rows
        slope = 1.0 / scales.n_rows
    elif kind == LOG:
        constant += HANDICAP[2] + 2.0 * scales.log_sum / scales.n_rows
        slope = 2.0 / scales.n_rows
    lower = np.log(max(least, 0.0)) + constant + slope * low
    upper = np.log(max(most, 0.0)) + constant + slope * high
    return lower, upper


@njit(cache=True, nogil=True)
def _is_chosen(
    scales: Scales,
    curves: Array,
    k: int,
    low: float,
    high: float,
) -> int:
    """Return 1 if a scale is chosen throughout an interval, -1 if nowhere, 0 if that is open."""
    if low <= scales.alike_to and high >= scales.alike_from:
        if low < scales.alike_from or high > scales.alike_to:
            return 0
        return 1 if scales.kind[k] == IDENTITY else -1
    lower, upper = _criterion_bounds(scales, curves, k, low, high)
    verdict = 1
    for other in range(len(scales.kind)):
        if other == k:
            continue
        other_lower, other_upper = _criterion_bounds(scales, curves, other, low, high)
        if lower > other_upper + TIE:
            return -1
        if not upper <= other_lower:
            verdict = 0
    return verdict


@njit(cache=True, nogil=True)
def _keep_chosen(
    scales: Scales,
    curves: Array,
    k: int,
    low: float,
    high: float,
    pieces: list[Interval],
) -> None:
    """Add the parts of an interval, of logarithms of labels, in which a scale is chosen."""
    waiting = [(low, high)]
    n_halvings = 0
    while len(waiting) > 0:
        left, right = waiting.pop()
        verdict = _is_chosen(scales, curves, k, left, right)
        if verdict == 0 and right - left > NARROWEST and n_halvings < MOST_HALVINGS:
            n_halvings += 1
            middle = 0.5 * (left + right)
            waiting.append((left, middle))
            waiting.append((middle, right))
        elif verdict >= 0:
            pieces.append((np.exp(left), np.exp(right)))


@njit(cache=True, nogil=True)
def _from_scale(kind: int, value: float) -> float:
    """Return a label from its value on a scale; below the root's least value it is 0."""
    if kind == SQRT:
        return max(value, 0.0) ** 2
    if kind == LOG:
        return np.exp(value)
    return value


@njit(cache=True, nogil=True)
def _add_piece(
    scales: Scales,
    curves: Array,
    k: int,
    piece: Interval,
    pieces: list[Interval],
) -> None:
    """Add what remains of one piece of a region, in labels, where its scale is chosen."""
    low, high = piece
    if len(scales.kind) == 1:
        pieces.append(piece)
        return
    if high > LARGEST:
        pieces.append((max(low, LARGEST), high))
    if low < LARGEST and high > 1.0 / LARGEST:
        start = np.log(max(low, 1.0 / LARGEST))
        stop = np.log(min(high, LARGEST))
        _keep_chosen(scales, curves, k, start, max(start, stop), pieces)


@njit(cache=True, nogil=True)
def best_scale(scales: Scales, curves: Array, label: float) -> int:
    """Return the first of the scales with the smallest criterion at a label."""
    if label <= 1.0 / LARGEST or len(scales.kind) == 1:
        return 0
    log_label = min(np.log(label), HIGHEST)
    if scales.alike_from <= log_label <= scales.alike_to:
        return 0
    best = 0
    least = np.inf
    for k in range(len(scales.kind)):
        criterion, _ = _criterion_bounds(scales, curves, k, log_label, log_label)
        if criterion < least:
            best = k
            least = criterion
    return best


@njit(cache=True, nogil=True)
def _best_value(scales: Scales, curves: Array, values: Array) -> tuple[int, float]:
    """Return the scale that is chosen at a row's value, and this value; `values` (K,) on scales.

    Where there are several scales, labels are positive, and so is the value.
    """
    best = 0
    value = _from_scale(scales.kind[0], values[0])
    if len(scales.kind) == 1:
        return best, value
    for k in range(len(scales.kind)):
        label = _from_scale(scales.kind[k], values[k])
        best = best_scale(scales, curves, label)
        value = _from_scale(scales.kind[best], values[best])
        if label > 0.0 and value > 0.0:
            return best, value
    # The last scale is the logarithm, whose values are positive, whatever is chosen there.
    best = len(scales.kind) - 1
    return best, _from_scale(scales.kind[best], values[best])


@njit(cache=True, nogil=True)
def mark_scales(scales: Scales, curves: Array, label: float, picked: AnyArray) -> None:
    """Mark the scales that are chosen at a label, ties included."""
    picked[:] = False
    if len(scales.kind) == 1:
        picked[0] = label > 0.0 or scales.kind[0] == IDENTITY or label == scales.kind[0] - SQRT
        return
    if label <= 1.0 / LARGEST:
        return
    log_label = np.log(label)
    for k in range(len(scales.kind)):
        chosen = log_label > HIGHEST or _is_chosen(scales, curves, k, log_label, log_label) >= 0
        picked[k] = chosen


@njit(cache=True, nogil=True)
def join_scales(
    scales: Scales,
    curves: Array,
    pieces: Array,
    counts: AnyArray,
    values: Array,
    is_two_sided: bool,
) -> tuple[Array, AnyArray, Array, AnyArray]:
    """Return pieces, counts and values of rows, and which scale gave each value.

    Given are parabolas (K, b, S, 4), the pieces of all scales one after another, in units of the
    scales, how many each row has (K, b), and values (K, b).
    """
    n_scales, n_rows = counts.shape
    starts = np.zeros(n_scales, dtype=np.intp)
    for k in range(1, n_scales):
        starts[k] = starts[k - 1] + counts[k - 1].sum()
    joined = [NOWHERE for _ in range(0)]
    n_joined = np.empty(n_rows, dtype=np.intp)
    best_values = np.empty(n_rows)
    best_scales = np.empty(n_rows, dtype=np.intp)
    for j in range(n_rows):
        region = [NOWHERE for _ in range(0)]
        for k in range(n_scales):
            kind = scales.kind[k]
            for place in range(starts[k], starts[k] + counts[k, j]):
                if kind != SQRT or pieces[place, 1] >= 0.0:
                    low = _from_scale(kind, pieces[place, 0])
                    high = _from_scale(kind, pieces[place, 1])
                    _add_piece(scales, curves[:, j], k, (low, high), region)
            starts[k] += counts[k, j]
        best, value = _best_value(scales, curves[:, j], values[:, j])
        if is_two_sided:
            region.append((value, value))
        region = _join_halves(merge(region))
        joined.extend(region)
        n_joined[j] = len(region)
        best_values[j] = value
        best_scales[j] = best
    return interval_ends(joined), n_joined, best_values, best_scales


@njit(cache=True, nogil=True)
def _join_halves(pieces: list[Interval]) -> list[Interval]:
    """Return ascending intervals with gaps closed that rounding of a logarithm has made."""
    joined = pieces[:1]
    for low, high in pieces[1:]:
        if low - joined[-1][1] <= 1e-13 * abs(low):
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    return joined


# ------------------------------------------------------------------------------------- the machine


def scale_labels(y: Array, scale: str) -> Array:
    """Return labels (l,) on a scale."""
    if scale == "sqrt":
        return np.sqrt(y)
    if scale == "log":
        return np.log(y)
    return y


def raise_to_labels(values: Array, labels: Array) -> Array:
    """Return predictions (m,) with those that are not positive raised to the smallest label.

    Only if all labels that are known (n,) are positive. In 16 draws of seven tables with 15 or 30
    positive labels the blend had such values at rows beyond the labels; their mean absolute error
    fell from .19 to .06 (15 labels) and from .29 to .11 of a standard deviation (30).
    """
    known = labels[np.isfinite(labels)]
    if not len(known) or known.min() <= 0.0:
        return values
    return np.where(values <= 0.0, known.min(), values)


def choose_scales(y: Array, scale: str) -> tuple[str, ...]:
    """Return the scales that labels (l,) may have, or raise a ValueError that says what to do."""
    if scale == "identity":
        return (scale,)
    if scale == "auto":
        is_moderate = float(y.max()) < LARGEST and float(y.min()) > 1.0 / LARGEST
        return SCALES if is_moderate else ("identity",)
    if scale == "log" and y.min() <= 0.0:
        raise ValueError(
            f"scale='log' needs positive labels, and one is {y.min():g}: use scale='identity', or "
            "scale='auto', which takes the logarithm only where labels have one."
        )
    if scale == "sqrt" and y.min() < 0.0:
        raise ValueError(
            f"scale='sqrt' needs labels that are not negative, and one is {y.min():g}: use "
            "scale='identity', or scale='auto', which takes the root only where labels have one."
        )
    return (scale,)


@dataclass(frozen=True)
class ScaledMachine:
    """Tuned machines of the same rows, one for each scale of the labels."""

    machines: tuple[TunedMachine, ...]
    names: tuple[str, ...]  # of the scales
    scales: Scales
    smallest: float  # label
    n_never: int  # how many labelled rows are infinitely nonconforming: one that is not positive
    form = "tuned"

    @classmethod
    def build(cls, machine: TunedMachine, y: Array, scale: str) -> ScaledMachine:
        """Return the machine of labels (l,) on scales, from that of the labels as they are."""
        names = choose_scales(y, scale)
        n_not_positive = int(np.sum(y <= 1.0 / LARGEST))
        n_never = 0
        if scale == "auto" and n_not_positive == 1:
            n_never = 1
        machines = tuple(machine.with_labels(scale_labels(y, name)) for name in names)
        if y.min() > 0.0:
            logs = np.log(y)
        else:
            logs = np.zeros(1)
        alike_from = np.inf
        alike_to = -np.inf
        if np.ptp(logs) <= np.log(ALIKE):
            alike_from = float(logs.max() - np.log(ALIKE))
            alike_to = float(logs.min() + np.log(ALIKE))
        scales = Scales(
            kind=np.array([SCALES.index(name) for name in names]),
            centre=np.array([scaled.scale.centre for scaled in machines]),
            unit=np.array([scaled.scale.unit for scaled in machines]),
            n_rows=len(y) + 1,
            log_sum=float(logs.sum()),
            alike_from=alike_from,
            alike_to=alike_to,
        )
        return cls(machines, names, scales, float(y.min()), n_never)

    @property
    def grid(self) -> SettingGrid:
        """The settings, which all scales share."""
        return self.machines[0].grid

    @property
    def n_labelled(self) -> int:
        """Number of labelled rows."""
        return self.machines[0].n_labelled

    @property
    def jitter(self) -> float:
        """As in `TunedMachine`."""
        return self.machines[0].jitter

    def predict(self, rows: Array) -> Array:
        """Return the values at rows, shape (m,)."""
        return self.answer_rows(rows, rank=0).values

    def _borders(self, rows: Array) -> Iterator[tuple[slice, list[Border], Array]]:
        """Yield chunks of rows with what they bring to all scales, and parabolas (K, b, S, 4)."""
        for part, border in self.machines[0].borders(rows):
            borders = [machine.border_of_labels(border) for machine in self.machines]
            curves = [
                parabolas(machine.fit, borders_of_machine)
                for machine, borders_of_machine in zip(self.machines, borders, strict=True)
            ]
            yield part, borders, np.stack(curves)

    def label_p_values(self, rows: Array, labels: Array, tau: Array) -> Array:
        """Return the p-value of a label for each row, the largest where scales tie."""
        p = tau / (self.n_labelled + 1.0)  # of a label that the scale does not have
        picked = np.zeros((len(labels), len(self.machines)), dtype=bool)
        for part, borders, curves in self._borders(rows):
            neighbors = self.machines[0].neighbors(rows[part])
            for j, label in enumerate(labels[part]):
                mark_scales(self.scales, curves[:, j], label, picked[part.start + j])
            for k, machine in enumerate(self.machines):
                chosen = picked[part, k]
                within = np.where(chosen, labels[part], 1.0)
                v = machine.scale.apply(scale_labels(within, self.names[k]))
                of_scale = machine.chunk_p_values(borders[k], neighbors, v, tau[part])
                p[part] = np.where(chosen, np.maximum(p[part], of_scale), p[part])
        return np.minimum(p + self.n_never / (self.n_labelled + 1.0), 1.0)

    def answer_rows(
        self,
        rows: Array,
        *,
        rank: int,
        side: str = "two",
    ) -> RowAnswers:
        """Return values and regions of rows, scale and setting chosen for every candidate."""
        rule = RegionRule(max(rank - self.n_never, 0), SIDE[side], self.machines[0].power)
        values = np.empty(len(rows))
        best = np.empty(len(rows), dtype=np.intp)
        winners = np.empty(len(rows), dtype=np.intp)
        used = np.zeros((len(rows), len(self.grid)), dtype=bool)
        pieces = [np.empty((0, 2))]
        counts = [np.empty(0, dtype=np.intp)]
        for part, borders, curves in self._borders(rows):
            neighbors = self.machines[0].neighbors(rows[part])
            chunks = [
                tuned_regions(machine.fit, borders[k], curves[k], neighbors, rule)
                for k, machine in enumerate(self.machines)
            ]
            ends, n_pieces, values[part], best[part] = self._join(curves, chunks, rule)
            pieces.append(ends)
            counts.append(n_pieces)
            chunk_winners = np.stack([chunk.winners for chunk in chunks])
            winners[part] = np.take_along_axis(chunk_winners, best[part][None], axis=0)[0]
            used[part] = np.any([chunk.used for chunk in chunks], axis=0)
        ends = self._start_at_zero(np.concatenate(pieces))
        regions = Regions.from_touching(ends, np.concatenate(counts))
        if rule.rank == 0:
            # Nothing is ruled out, labels that are not positive included.
            regions = Regions.from_intervals(np.tile([-np.inf, np.inf], (len(rows), 1)))
        return RowAnswers(values, regions, winners, used, best)

    def _start_at_zero(self, pieces: Array) -> Array:
        """Return pieces (k, 2) with 0 for ends that are next to nothing: nobody wants 1e-30."""
        is_nothing = (pieces[:, 0] >= 0.0) & (pieces[:, 0] < NOTHING * self.smallest)
        starts = np.where(is_nothing, 0.0, pieces[:, 0])
        return np.column_stack([starts, pieces[:, 1]])

    def _join(
        self,
        curves: Array,
        chunks: list[TunedRegions],
        rule: RegionRule,
    ) -> tuple[Array, AnyArray, Array, AnyArray]:
        """Return the regions of a chunk from those of all scales."""
        with np.errstate(over="ignore"):
            pieces = [
                machine.scale.undo(chunk.pieces)
                for machine, chunk in zip(self.machines, chunks, strict=True)
            ]
            values = [
                machine.scale.undo(chunk.values)
                for machine, chunk in zip(self.machines, chunks, strict=True)
            ]
        counts = np.stack([chunk.counts for chunk in chunks])
        return join_scales(
            self.scales,
            curves,
            np.concatenate(pieces),
            counts,
            np.stack(values),
            rule.side == 0,
        )
