"""How many rows of several strata are marked, from simple random samples of each: exact intervals.

Stratum h has ``N_h`` rows, of which ``K_h`` are marked (wrong, say, or of a class), ``n_h`` were drawn
at random and ``x_h`` of these are marked. The total ``T = sum K_h`` is estimated by
``sum N_h x_h / n_h``. A total is too large if, however it is split between the strata, so small an
estimate has a probability of at most the level: the test of T is inverted over a nuisance, the split
(Berger and Boos 1994). Splits that the strata rule out by themselves are left out, at the price of a
small part of the level.

The probability of so small an estimate falls as any ``K_h`` rises. So, for a box of splits, it is
largest at the corner with the fewest marked rows, and the total is largest at the corner with the
most: boxes are searched in the order of their largest total, and halved until one settles it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import lru_cache
from itertools import count

import numpy as np

from transduce.core.types import AnyArray, Array
from transduce.population.urns import Urn, drawn_marked, urn_bound

SHARE_FOR_SPLITS = 0.04  # of the level, to leave out splits that strata rule out by themselves
MOST_LATTICE = 4000  # values that the estimate can have: weights are rounded to this
MOST_BOXES = 3000  # looked at before a bound is taken as it is, which is valid and a little wide


@dataclass(frozen=True)
class Stratum:
    """Rows of which some were drawn at random and looked at.

    Attributes
    ----------
    n_rows, n_drawn, n_marked : int
        All rows, those drawn, and how many of the latter are marked.
    """

    n_rows: int
    n_drawn: int
    n_marked: int

    def __post_init__(self) -> None:
        if not 0 <= self.n_marked <= self.n_drawn <= self.n_rows:
            raise ValueError(
                f"Of {self.n_rows} rows {self.n_drawn} cannot be drawn with {self.n_marked} marked."
            )

    @property
    def n_left(self) -> int:
        """Rows that were not drawn."""
        return self.n_rows - self.n_drawn

    def most(self, certainty: float) -> int:
        """Return how many rows are marked at most, with a certainty."""
        left = self.n_left
        if self.n_drawn:
            left = urn_bound(self.n_marked, self.n_drawn, self.n_left, certainty)
        return self.n_marked + left

    def fewest(self, certainty: float) -> int:
        """Return how many rows are marked at least, with a certainty."""
        return self.n_rows - self.mirrored().most(certainty)

    def mirrored(self) -> Stratum:
        """Return the same rows with those marked that are not."""
        return Stratum(self.n_rows, self.n_drawn, self.n_drawn - self.n_marked)


def total_interval(strata: tuple[Stratum, ...], confidence: float) -> tuple[int, int]:
    """Return between which numbers of all rows are marked, with a confidence."""
    level = (1.0 - confidence) / 2.0
    n_rows = sum(stratum.n_rows for stratum in strata)
    mirrored = tuple(stratum.mirrored() for stratum in strata)
    return n_rows - most_marked(mirrored, level), most_marked(strata, level)


def most_marked(strata: tuple[Stratum, ...], level: float) -> int:
    """Return how many rows are marked at most; wrong with a probability of at most the level."""
    undrawn = sum(stratum.n_rows for stratum in strata if not stratum.n_drawn)
    drawn = tuple(stratum for stratum in strata if stratum.n_drawn)
    if not drawn:
        return undrawn
    if len(drawn) == 1:
        return undrawn + drawn[0].most(1.0 - level)
    return undrawn + SplitSearch.of(drawn, level).largest_total()


@dataclass(frozen=True, eq=False)
class SplitSearch:
    """The search for the largest total that some split makes possible."""

    strata: tuple[Stratum, ...]
    weights: AnyArray  # (H,) whole numbers, in proportion to N_h / n_h
    level: float  # of the test of a split

    @classmethod
    def of(cls, strata: tuple[Stratum, ...], level: float) -> SplitSearch:
        """Return the search at a level, part of which leaves out splits beforehand."""
        n_rows = sum(stratum.n_rows for stratum in strata)
        exact = np.array([stratum.n_rows / stratum.n_drawn for stratum in strata])
        weights = np.maximum(np.round(exact * MOST_LATTICE / n_rows), 1.0).astype(np.int64)
        return cls(strata, weights, level * (1.0 - SHARE_FOR_SPLITS))

    @property
    def observed(self) -> int:
        """The estimate that was observed, in units of the lattice."""
        marked = np.array([stratum.n_marked for stratum in self.strata])
        return int(self.weights @ marked)

    def limits(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the fewest and the most marked rows of each stratum that are looked at."""
        kept = 1.0 - SHARE_FOR_SPLITS
        doubt = self.level / kept * SHARE_FOR_SPLITS / (2 * len(self.strata))
        fewest = tuple(stratum.fewest(1.0 - doubt) for stratum in self.strata)
        most = tuple(stratum.most(1.0 - doubt) for stratum in self.strata)
        return fewest, most

    def probability(self, split: tuple[int, ...]) -> float:
        """Return the probability of an estimate as small as the observed one, or smaller."""
        sums = np.ones(1)
        *others, last = range(len(self.strata))
        for h in others:
            sums = add_to_lattice(sums, self._drawn(h, split[h]), int(self.weights[h]))
        # What the last stratum may add to each sum without exceeding what was observed.
        left = (self.observed - np.arange(len(sums))) // int(self.weights[last])
        up_to = np.cumsum(self._drawn(last, split[last]))
        allowed = np.where(left >= 0, up_to[np.clip(left, 0, len(up_to) - 1)], 0.0)
        return float(sums @ allowed)

    def _drawn(self, h: int, n_marked: int) -> Array:
        stratum = self.strata[h]
        return drawn_probabilities(stratum.n_rows, stratum.n_drawn, n_marked)

    def largest_total(self) -> int:
        """Return the largest total of a split that the test does not reject."""
        fewest, most = self.limits()
        if self.probability(fewest) <= self.level:
            # Not even the fewest marked rows are likely; the limits alone then bound the total.
            return sum(fewest)
        ticket = count()
        boxes = [(-sum(most), next(ticket), fewest, most)]
        for _ in range(MOST_BOXES):
            negative_total, _, low, high = heapq.heappop(boxes)
            if low == high or self.probability(high) > self.level:
                return -negative_total
            for part_low, part_high in halves(low, high):
                if self.probability(part_low) > self.level:
                    heapq.heappush(boxes, (-sum(part_high), next(ticket), part_low, part_high))
        return -boxes[0][0]


def halves(
    low: tuple[int, ...], high: tuple[int, ...]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the two halves of a box, cut where it is longest."""
    longest = int(np.argmax(np.array(high) - np.array(low)))
    middle = (low[longest] + high[longest]) // 2
    lower_high = (*high[:longest], middle, *high[longest + 1 :])
    upper_low = (*low[:longest], middle + 1, *low[longest + 1 :])
    return [(low, lower_high), (upper_low, high)]


def add_to_lattice(sums: Array, probabilities: Array, weight: int) -> Array:
    """Return the distribution of a sum plus a weight times a number, on the whole numbers."""
    spaced = np.zeros(weight * (len(probabilities) - 1) + 1)
    spaced[::weight] = probabilities
    if len(sums) == 1:
        return spaced * sums[0]
    from scipy.signal import fftconvolve  # takes half a second, and few need it

    return np.maximum(fftconvolve(sums, spaced), 0.0)


@lru_cache(maxsize=4096)
def drawn_probabilities(n_rows: int, n_drawn: int, n_marked: int) -> Array:
    """Return the probability of 0, 1, ..., n_drawn marked rows among those drawn."""
    urn = Urn(0, n_drawn, n_rows - n_drawn)
    return np.asarray(drawn_marked(np.array([n_marked]), urn)[0])
