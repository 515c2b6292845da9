"""One slip of the pen among the labels must not widen all regions: far labels are drawn in.

A label is far if it lies beyond `FAR` units of the centre and all far ones are `GAP` times as far
as the others; long tails have no such gap. Unit and centre come from the quartiles and the median
of the **completed** sample, rounded: the unit up to a power of two, the centre to a whole unit. Far
labels are moved to one unit from the centre before anything is fitted, and their rows are
infinitely nonconforming, the unlabelled row with its candidate label like all others. So all rows
are treated alike, and p-values stay exact (or a little too large, where a far row counts twice).

As the candidate moves along the line, unit, centre and far labels change at a few places only:
between two of them the labels of the machine are constant, and so each piece of the line has one
machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from transduce.core.answer import Regions
from transduce.core.types import Array, Mask
from transduce.methods.confidence_machine import tuned_machine
from transduce.methods.confidence_machine.label_scales import ScaledMachine
from transduce.methods.confidence_machine.setting_grid import SettingGrid
from transduce.methods.confidence_machine.tuned_machine import RowAnswers, TunedMachine

FAR = 10.0
GAP = 5.0


class Drawn(NamedTuple):
    """The labels of a sample with far ones drawn in."""

    labels: Array
    is_far: Mask


def _unit_of(spread: float) -> float:
    """Return a spread rounded up to a power of two; 0 of 0."""
    if spread <= 0.0:
        return 0.0
    return float(2.0 ** np.ceil(np.log2(spread)))


def draw_in(labels: Array) -> Drawn:
    """Return the labels of a sample (n,) with far ones drawn in, all as they are if none is far."""
    n = len(labels)
    ordered = np.sort(labels)
    low, middle, high = ordered[[n // 4, n // 2, (3 * n) // 4]]
    unit = _unit_of(float(high - low))
    no_rows = np.zeros(n, dtype=bool)
    if unit == 0.0:
        return Drawn(labels, no_rows)
    centre = float(unit * np.round(middle / unit))
    distance = np.abs(labels - centre)
    is_far = distance > FAR * unit
    if not is_far.any():
        return Drawn(labels, no_rows)
    if distance[is_far].min() < GAP * distance[~is_far].max():
        return Drawn(labels, no_rows)
    ends = centre + unit * np.sign(labels - centre)
    return Drawn(np.where(is_far, ends, labels), is_far)


def draw_in_known(labels: Array) -> Array:
    """Return labels (n,), NaN where they are missing, with far ones drawn in."""
    known = np.isfinite(labels)
    if not known.any():
        return labels
    drawn = labels.copy()
    drawn[known] = draw_in(labels[known]).labels
    return drawn


class LabelPiece(NamedTuple):
    """Candidate labels for which the labels of the machine are the same."""

    low: float
    high: float
    labels: Array  # (l,) of the labelled rows, far ones drawn in
    n_far: int  # how many of them are far
    is_far: bool  # whether the candidates are


def label_pieces(y: Array) -> list[LabelPiece]:
    """Return the pieces of the line of candidate labels, in ascending order, for labels (l,)."""
    pieces: list[LabelPiece] = []
    ends = np.concatenate([[-np.inf], _change_points(y), [np.inf]])
    for low, high in pairwise(ends):
        candidate = _inner_point(low, high)
        drawn = draw_in(np.append(y, candidate))
        piece = LabelPiece(
            low=float(low),
            high=float(high),
            labels=drawn.labels[:-1],
            n_far=int(drawn.is_far[:-1].sum()),
            is_far=bool(drawn.is_far[-1]),
        )
        if pieces and _are_alike(pieces[-1], piece):
            pieces[-1] = pieces[-1]._replace(high=piece.high)
        else:
            pieces.append(piece)
    return pieces


def _are_alike(piece: LabelPiece, other: LabelPiece) -> bool:
    """Return whether two pieces of the line can be one."""
    if piece.is_far != other.is_far or piece.n_far != other.n_far:
        return False
    return np.array_equal(piece.labels, other.labels)


def _inner_point(low: float, high: float) -> float:
    """Return a point between two ends, one of which may be infinite."""
    if np.isinf(low):
        return float(high - 1.0 - abs(high))
    if np.isinf(high):
        return float(low + 1.0 + abs(low))
    return float(0.5 * (low + high))


def _change_points(y: Array) -> Array:
    """Return all candidate labels at which the sample drawn in may change: more than needed."""
    n = len(y) + 1
    ordered = np.sort(y)
    # An order statistic of the completed sample stays between two neighbours of the labels.
    windows = []
    for place in (n // 4, n // 2, (3 * n) // 4):
        below = ordered[max(place - 1, 0)]
        above = ordered[min(place, len(y) - 1)]
        windows.append((float(below), float(above)))
    (low_first, low_last), (middle_first, middle_last), (high_first, high_last) = windows
    points = [low_first, low_last, middle_first, middle_last, high_first, high_last]
    least = _unit_of(max(high_first - low_last, 0.0))
    most = _unit_of(high_last - low_first)
    if most == 0.0:
        return np.unique(points)
    units = [most]
    while units[-1] > least and len(units) < 60:
        units.append(0.5 * units[-1])
    for unit in units:
        # Where the spread of the quartiles passes a power of two.
        points += [high_first - unit, high_last - unit, low_first + unit, low_last + unit]
        first = np.round(middle_first / unit)
        last = np.round(middle_last / unit)
        # Where the median passes from one centre to the next, of a few.
        n_centres = int(min(last - first, 60))
        points += [unit * (first + step + 0.5) for step in range(n_centres)]
        for step in range(n_centres + 1):
            points += _far_points(y, unit * (first + step), unit)
    return np.unique(points)


def _far_points(y: Array, centre: float, unit: float) -> list[float]:
    """Return where a candidate becomes far, or makes others far, with one centre and unit."""
    distance = np.abs(y - centre)
    is_far = distance > FAR * unit
    reaches = [FAR * unit]
    if is_far.any():
        reaches.append(float(distance[is_far].min()) / GAP)
    if not is_far.all():
        reaches.append(GAP * float(distance[~is_far].max()))
    return [centre + sign * reach for reach in reaches for sign in (-1.0, 1.0)]


# ------------------------------------------------------------------------------------- the machine

AnyTuned = TunedMachine | ScaledMachine


def _answer(machine: AnyTuned, rows: Array, rank: int, side: str) -> RowAnswers:
    """Return the answers of one machine."""
    if isinstance(machine, ScaledMachine):
        return machine.answer_rows(rows, rank=rank, side=side)
    return tuned_machine.answer_rows(machine, rows, rank=rank, side=side)


@dataclass(frozen=True)
class GuardedMachine:
    """A machine for each piece of the line of candidate labels."""

    pieces: tuple[LabelPiece, ...]
    machines: tuple[AnyTuned, ...]  # those of different labels
    n_far: tuple[int, ...]  # how many labelled rows of each are infinitely nonconforming
    which: tuple[int, ...]  # the machine of each piece
    main: int  # the machine of a candidate at the median of the labels
    form = "tuned"

    @classmethod
    def build(cls, y: Array, build: Callable[[Array], AnyTuned]) -> GuardedMachine:
        """Return the machines of labels (l,), each built from labels that are drawn in."""
        pieces = label_pieces(y)
        distinct: list[LabelPiece] = []
        which = []
        for piece in pieces:
            of_machine = piece._replace(is_far=False)
            same = [k for k, other in enumerate(distinct) if _are_alike(of_machine, other)]
            if not same:
                same = [len(distinct)]
                distinct.append(of_machine)
            which.append(same[0])
        median = float(np.median(y))
        holding = [k for k, piece in enumerate(pieces) if piece.low <= median <= piece.high]
        machines = tuple(build(piece.labels) for piece in distinct)
        n_far = tuple(piece.n_far for piece in distinct)
        return cls(tuple(pieces), machines, n_far, tuple(which), which[holding[0]])

    @property
    def machine(self) -> AnyTuned:
        """The machine of a candidate among the labels."""
        return self.machines[self.main]

    @property
    def grid(self) -> SettingGrid:
        """The settings, which all machines share."""
        return self.machine.grid

    @property
    def n_labelled(self) -> int:
        """Number of labelled rows."""
        return self.machine.n_labelled

    @property
    def jitter(self) -> float:
        """As in `TunedMachine`."""
        return self.machine.jitter

    def predict(self, rows: Array) -> Array:
        """Return the values at rows, shape (m,)."""
        return self.machine.predict(rows)

    def label_p_values(self, rows: Array, labels: Array, tau: Array) -> Array:
        """Return the p-value of a label for each row, by the machine of its piece."""
        p = np.zeros(len(labels))
        for piece, k in zip(self.pieces, self.which, strict=True):
            inside = np.flatnonzero((piece.low <= labels) & (labels <= piece.high))
            if len(inside) == 0:
                continue
            if piece.is_far:
                # Tied with the far labels, and with itself.
                of_piece = tau[inside] * (1.0 + piece.n_far) / (self.n_labelled + 1.0)
            else:
                near = self.machines[k].label_p_values(rows[inside], labels[inside], tau[inside])
                of_piece = near + piece.n_far / (self.n_labelled + 1.0)
            p[inside] = np.maximum(p[inside], of_piece)
        return np.minimum(p, 1.0)

    def answer_rows(
        self,
        rows: Array,
        *,
        rank: int,
        side: str = "two",
    ) -> RowAnswers:
        """Return values and regions of rows, those of each piece from its machine."""
        answers = [
            _answer(machine, rows, max(rank - n_far, 0), side)
            for machine, n_far in zip(self.machines, self.n_far, strict=True)
        ]
        main = answers[self.main]
        if len(self.machines) == 1 and rank > self.n_far[0] and self._are_near(main.regions):
            return main
        regions = []
        for j in range(len(rows)):
            parts = [
                self._region_part(answers, number, j, rank) for number in range(len(self.pieces))
            ]
            if side == "two":
                value = main.values[j]
                parts.append(np.array([[value, value]]))
            regions.append(_join(np.concatenate(parts)))
        return RowAnswers(
            main.values,
            Regions.from_pieces(regions),
            main.winners,
            main.used,
            main.scales,
        )

    def _are_near(self, regions: Regions) -> bool:
        """Return whether all regions lie where no candidate is far."""
        near = [piece for piece in self.pieces if not piece.is_far]
        if not len(regions):
            return True
        hull = regions.hull()
        lowest = hull[:, 0].min()
        highest = hull[:, 1].max()
        return bool(lowest > near[0].low and highest < near[-1].high)

    def _region_part(
        self,
        answers: list[RowAnswers],
        number: int,
        j: int,
        rank: int,
    ) -> Array:
        """Return what one piece of the line adds to the region of row j, shape (k, 2)."""
        piece = self.pieces[number]
        if piece.is_far:
            ends = np.array([[piece.low, piece.high]])
            if piece.n_far < rank:
                return ends[:0]
            return ends
        region = answers[self.which[number]].regions[j]
        low = np.maximum(region[:, 0], piece.low)
        high = np.minimum(region[:, 1], piece.high)
        return np.column_stack([low, high])[low <= high]


def _join(pieces: Array) -> Array:
    """Return the union of closed intervals as disjoint ones in ascending order."""
    ordered = pieces[np.argsort(pieces[:, 0], kind="stable")]
    reach = np.maximum.accumulate(ordered[:, 1])
    is_first = np.append(True, ordered[1:, 0] > reach[:-1])
    is_last = np.append(is_first[1:], True)
    return np.column_stack([ordered[is_first, 0], reach[is_last]])
