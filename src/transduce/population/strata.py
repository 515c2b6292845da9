"""How many rows of several strata are marked, from simple random samples of each: exact intervals.

Stratum h has ``N_h`` rows, of which ``K_h`` are marked (wrong, say, or of a class), ``n_h`` were
drawn at random and ``x_h`` of these are marked. To bound the total ``T = sum K_h`` from above,
samples are ordered by an approximate upper limit,

    S(x) = sum_h N_h x_h / n_h + sqrt(sum_h d_h(x_h)^2),

where ``d_h`` is how far the upper limit of stratum h alone lies above its estimate. A total is too
large if, however it is split between the strata, so small an S has a probability of at most the
level: the test of T is inverted over a nuisance, the split. Any order of the samples would give a
valid bound; a good approximate limit gives a narrow one, since its error hardly depends on the
split (Buehler 1957; Kabaila and Lloyd 2000). Ordered by the estimate alone, intervals were a
quarter wider: .039 instead of .030 for a class of 5 %, 10,000 rows, and 150 draws from each of two
strata. Splits that the strata rule out by themselves are left out, at the price of a small part of
the level (Berger and Boos 1994).

S rises with every ``x_h``, so the probability of so small an S falls as any ``K_h`` rises. Numbers
of marked rows are therefore taken in cells: for all splits of a cell the probability is largest at
the corner with the fewest marked rows, and the total at the corner with the most.

Of more than two strata one stands by itself: that in which the class was predicted whose share is
asked for, or else the one that could err most. The others are added up one by one on a lattice, and
d of their sum is that of one stratum of their size. For every total of theirs and every sum y it is
enough to know the largest probability, over the splits of that total, of a sum of at most y. Since
that may be another split for every y, the bound may be a little too wide, never too narrow: with 12
tables each of three, four and five strata, 20,000 rows and 300 draws it lay at most .08, .10 and
.13 further above the estimate on average than a full search in the same order would put it, mostly
since cells are coarse; in small tables it was what that search finds (`benchmarks/strata.py`). Many
strata are pooled instead (`pooled.py`). (A search over boxes of splits would be exact in the end,
but needs too many of them: stopped after as long a time, its bounds lay 1.3, 2.5 and 4.3 times as
far above the estimate with 3, 5 and 8 strata and 300 draws.)

A simple random sample may be divided into two strata afterwards. Given how many of its rows each of
them got, all of the above holds. But where no drawn row is marked at all, strata tell nothing, and
an unlucky division would cost a tenth of the width with 30 draws: so the bound then is that of one
undivided sample. To pay for it, the chance that no row is marked counts undivided in all other
samples too. The test of a total T and its split asks whether

    P(0 < S <= s | n_1, n_2) + P(no row is marked)

is at most the level: summed over all divisions, so are the samples that reject a true total.

How narrow a bound could be is known. If it never falls as more marked rows are drawn, then it is at
least the largest total for which so few marked rows in every stratum at once have a probability
above the level (`narrowest_most_marked`), whatever its order of samples.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

import numpy as np

from transduce.core.types import AnyArray, Array
from transduce.population.pooled import pooled_bound
from transduce.population.stratum import SHARE_FOR_SPLITS, Stratum, largest_sums
from transduce.population.urns import MOST_TERMS, Urn, drawn_at_most, drawn_marked

# More strata are pooled. With 300 draws by predicted class from 20,000 rows, intervals for shares
# by the search over splits were .86 as wide as pooled ones with three strata, .89 with five, about
# equally wide with six and eight, and 1.4 times as wide with 20, in ten times the time.
MOST_STRATA_SPLIT = 5
# Where no stratum stands apart, as with wrong rows, pooling costs more: bounds of the search lay
# .80 as far above the estimate with six strata, .81 with eight, and .90 with twelve.
MOST_ALIKE_SPLIT = 10
# Values that the sum of several strata can have, in all and for each row drawn; weights are whole.
MOST_LATTICE = 1000
LATTICE_A_DRAW = 20
# Cells of numbers of marked rows, for each stratum: a bound is too wide by no more than one cell of
# each. More than two strata take longer.
MOST_CELLS_OF_TWO = 2000
MOST_CELLS = 200
# Sums and products over all splits, for one bound: some 50 ms. Time grows with the square of the
# cells and with the number of strata, so that more strata get fewer cells. With 300 draws intervals
# for shares are a fiftieth wider than with 1e9 for three strata, and a twentieth for five.
MOST_WORK = 400_000_000
FEWEST_CELLS_OF_MANY = 30
FEWEST_CELLS = 100  # where so many rows were drawn that probabilities fill the memory
MOST_PROBABILITIES = 1_000_000


def total_interval(
    strata: tuple[Stratum, ...],
    confidence: float,
    *,
    drawn_as_one: bool = False,
    apart: int | None = None,
    rarely_marked: bool = True,
) -> tuple[int, int]:
    """Return between which numbers of all rows are marked, with a confidence.

    For `drawn_as_one`, `apart` and `rarely_marked` see `most_marked`.
    """
    level = (1.0 - confidence) / 2.0
    n_rows = sum(stratum.n_rows for stratum in strata)
    mirrored = tuple(stratum.mirrored() for stratum in strata)
    not_marked = most_marked(
        mirrored, level, drawn_as_one=drawn_as_one, apart=apart, rarely_marked=not rarely_marked
    )
    most = most_marked(
        strata, level, drawn_as_one=drawn_as_one, apart=apart, rarely_marked=rarely_marked
    )
    return n_rows - not_marked, most


@lru_cache(maxsize=10_000)
def most_marked(
    strata: tuple[Stratum, ...],
    level: float,
    *,
    drawn_as_one: bool = False,
    apart: int | None = None,
    rarely_marked: bool = True,
) -> int:
    """Return how many rows are marked at most; wrong with a probability of at most the level.

    Parameters
    ----------
    strata : tuple of Stratum
    level : float
    drawn_as_one : bool, default=False
        Whether two strata were drawn as one simple random sample and divided afterwards.
    apart : int, optional
        Which stratum is thought to be unlike all others, such as the one in which a class was
        predicted. Neither this nor the next may depend on the labels.
    rarely_marked : bool, default=True
        Whether few rows of the (other) strata are thought to be marked, or most. What is thought
        wrongly only widens a bound.
    """
    drawn = tuple(stratum for stratum in strata if stratum.n_drawn)
    undrawn = sum(stratum.n_rows for stratum in strata if not stratum.n_drawn)
    if drawn and drawn_as_one and len(strata) == 2:
        return most_of_one_sample(strata, drawn, level)
    open_strata = tuple(stratum for stratum in drawn if stratum.n_left)
    certain = undrawn + sum(stratum.n_marked for stratum in drawn if not stratum.n_left)
    if not open_strata:
        return certain
    if all(stratum.n_marked == stratum.n_drawn for stratum in open_strata):
        return certain + sum(stratum.n_rows for stratum in open_strata)
    if len(open_strata) == 1:
        return certain + open_strata[0].most(1.0 - level)
    place = None
    if apart is not None and 0 < strata[apart].n_drawn < strata[apart].n_rows:
        place = sum(0 < stratum.n_drawn < stratum.n_rows for stratum in strata[:apart])
    most_split = MOST_ALIKE_SPLIT if place is None else MOST_STRATA_SPLIT
    if len(open_strata) <= most_split:
        return certain + SplitSearch.of(open_strata, level, apart=place).largest_total()
    return certain + pooled_bound(open_strata, level, place, rarely_marked=rarely_marked)


def most_of_one_sample(
    strata: tuple[Stratum, ...], drawn: tuple[Stratum, ...], level: float
) -> int:
    """Return how many rows are marked at most in two strata into which one sample was divided."""
    undivided = Stratum(
        sum(stratum.n_rows for stratum in strata),
        sum(stratum.n_drawn for stratum in strata),
        sum(stratum.n_marked for stratum in strata),
    )
    if undivided.n_marked == 0:
        # The rest of the level leaves out splits of other samples.
        return undivided.most(1.0 - level * (1.0 - SHARE_FOR_SPLITS))
    if len(drawn) == 2:
        return SplitSearch.of(drawn, level, undivided=undivided).largest_total()
    only = drawn[0]
    undrawn = undivided.n_rows - only.n_rows

    def too_many(total: int) -> bool:
        marked = np.array([total - undrawn])
        so_few = drawn_at_most(only.n_marked, marked, only.n_drawn, only.n_left)
        none = none_drawn(undivided, np.array([total]))
        return float(so_few[0]) + float(none[0]) <= level

    least = undrawn + only.n_marked
    return least + bisect_left(range(least + 1, undivided.n_rows + 1), True, key=too_many)


def none_drawn(stratum: Stratum, n_marked: AnyArray) -> Array:
    """Return how probable it is that no marked row is drawn, for each number (k,) of them."""
    # Row by row: the i-th row drawn is one of n_rows - i, none of those before it was marked.
    left = stratum.n_rows - np.arange(stratum.n_drawn)
    shares = np.minimum(n_marked[:, None] / left, 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.exp(np.sum(np.log1p(-shares), axis=1)))


@dataclass(frozen=True, eq=False)
class SplitSearch:
    """The search for the largest total that some split makes possible.

    Attributes
    ----------
    strata : tuple of Stratum
        The one that stands by itself comes first.
    level : float
        Of the test of a split.
    weights : int array of shape (H - 1,)
        What a marked row of each stratum but the first adds to their sum on the lattice.
    reached : int array of shape (n_1 + 1,)
        For each number of marked rows that could be drawn from the first stratum: the largest sum
        of the others with which S does not exceed the observed one; -1 if there is none.
    undivided : Stratum or None
        The sample that was divided into the two strata, if they were drawn as one.
    """

    strata: tuple[Stratum, ...]
    level: float
    weights: AnyArray
    reached: AnyArray
    undivided: Stratum | None = None

    @classmethod
    def of(
        cls,
        strata: tuple[Stratum, ...],
        level: float,
        *,
        apart: int | None = None,
        undivided: Stratum | None = None,
    ) -> SplitSearch:
        """Return the search at a level, part of which leaves out splits beforehand.

        What comes first is the stratum `apart`, or else the one that could err most.
        """
        if apart is None:
            # This may not depend on how many of its rows are marked.
            could_err = [stratum.n_rows**2 / stratum.n_drawn for stratum in strata]
            apart = int(np.argmax(could_err))
        first = strata[apart]
        others = strata[:apart] + strata[apart + 1 :]
        test_level = level * (1.0 - SHARE_FOR_SPLITS)
        weights = lattice_weights(others)
        reached = largest_sums(first, others, weights, test_level)
        return cls((first, *others), test_level, weights, reached, undivided)

    def limits(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the fewest and the most marked rows of each stratum that are looked at."""
        kept = 1.0 - SHARE_FOR_SPLITS
        doubt = self.level / kept * SHARE_FOR_SPLITS / (2 * len(self.strata))
        fewest = tuple(stratum.fewest(1.0 - doubt) for stratum in self.strata)
        most = tuple(stratum.most(1.0 - doubt) for stratum in self.strata)
        return fewest, most

    def largest_total(self) -> int:
        """Return the largest total of a split that the test does not reject, or a little more."""
        fewest, most = self.limits()
        cells = Cells.of(fewest, most, self._affordable_cells())
        of_others = self._others_reach(cells)
        marked = cells.starts(0)
        of_first = self._drawn(0, marked)
        n_totals = len(of_others)
        undivided = self._none_undivided(cells, n_totals)
        # The largest total of the others that each number of the first stratum leaves possible, by
        # bisection for all of them at once: the probability falls as the total rises.
        impossible = np.full(len(marked), n_totals)
        possible = np.full(len(marked), -1)
        while np.any(impossible - possible > 1):
            middle = np.clip((possible + impossible) // 2, 0, n_totals - 1)
            probability = np.einsum("kx,kx->k", of_first, of_others[middle])
            probability += undivided[np.arange(len(marked)) + middle]
            open_cells = impossible - possible > 1
            accepted = probability > self.level
            possible = np.where(open_cells & accepted, middle, possible)
            impossible = np.where(open_cells & ~accepted, middle, impossible)
        if self.undivided is not None:
            possible = self._without_none(cells, possible, of_first, of_others, undivided)
        is_possible = possible >= 0
        if not is_possible.any():
            # Not even the fewest marked rows are likely; the limits alone then bound the total.
            return sum(fewest)
        totals = cells.ends(0)[is_possible] + cells.largest_of_others(possible[is_possible])
        return int(totals.max())

    def _affordable_cells(self) -> int:
        """Return how many cells a stratum may have, by what time and memory they take."""
        most_drawn = max(stratum.n_drawn for stratum in self.strata)
        by_memory = max(MOST_PROBABILITIES // (most_drawn + 1), FEWEST_CELLS)
        if len(self.strata) == 2:
            return min(MOST_CELLS_OF_TWO, by_memory)
        # Each further stratum meets all totals of those before it, and every sum of theirs.
        work = 0
        for n_before, stratum in enumerate(self.strata[2:], start=1):
            work += n_before * (stratum.n_drawn + 1)
        work *= int(self.reached.max()) + 1
        by_time = max(int(np.sqrt(MOST_WORK / max(work, 1))), FEWEST_CELLS_OF_MANY)
        return min(MOST_CELLS, by_memory, by_time)

    def _none_undivided(self, cells: Cells, n_others: int) -> Array:
        """Return how probable it is that the undivided sample has no marked row, 0 without one.

        For each total of both strata, in cells.
        """
        n_totals = len(cells.starts(0)) + n_others - 1
        if self.undivided is None:
            return np.zeros(n_totals)
        fewest = sum(cells.fewest)
        return none_drawn(self.undivided, fewest + cells.size * np.arange(n_totals))

    def _without_none(
        self, cells: Cells, possible: AnyArray, of_first: Array, of_others: Array, none: Array
    ) -> AnyArray:
        """Return the largest possible totals of the other stratum, -1 where there is none.

        The chance that neither stratum has a marked row, which that of the undivided sample
        replaces, is taken off. The probability then no longer falls with the total, so that totals
        are tried one by one, from the largest on that would be possible with it.
        """
        none_of_first = none_drawn(self.strata[0], cells.ends(0))
        none_of_other = none_drawn(self.strata[1], cells.ends(1))
        possible = possible.copy()
        open_cells = np.flatnonzero(possible >= 0)
        while len(open_cells):
            others = possible[open_cells]
            probability = np.einsum("kx,kx->k", of_first[open_cells], of_others[others])
            probability += none[open_cells + others]
            probability -= none_of_first[open_cells] * none_of_other[others]
            open_cells = open_cells[probability <= self.level]
            possible[open_cells] -= 1
            open_cells = open_cells[possible[open_cells] >= 0]
        return possible

    def _others_reach(self, cells: Cells) -> Array:
        """Return how probable it is that the others reach no more than S allows.

        One line for each total of theirs, in cells, and one column for each number of marked rows
        drawn from the first stratum: the largest probability over the splits of that total.
        """
        n_sums = int(self.reached.max()) + 1
        reach = np.ones((1, n_sums))
        for h, weight in enumerate(self.weights.tolist(), start=1):
            most_drawn = min(self.strata[h].n_drawn, (n_sums - 1) // weight)
            probabilities = self._drawn(h, cells.starts(h))[:, : most_drawn + 1]
            if h == 1:
                # A sum of at most y is a number of at most y // weight.
                up_to = np.cumsum(probabilities, axis=1)
                reach = up_to[:, np.minimum(np.arange(n_sums) // weight, most_drawn)]
            else:
                from transduce.population.lattice import largest_over_splits  # needs numba

                probabilities = np.ascontiguousarray(probabilities)
                reach = largest_over_splits(reach, probabilities, weight)
            # No further stratum makes a sum more probable. Totals fall with their number, so those
            # that are possible come first; one that is not is kept, so that there is always one.
            if self.undivided is None:
                n_possible = int(np.sum(reach[:, -1] > self.level))
                reach = reach[: n_possible + 1]
        return np.where(self.reached >= 0, reach[:, np.maximum(self.reached, 0)], 0.0)

    def _drawn(self, h: int, n_marked: AnyArray) -> Array:
        """Return the probability of 0, 1, ..., n_h marked rows among those drawn, (k, n_h + 1)."""
        stratum = self.strata[h]
        urn = Urn(0, stratum.n_drawn, stratum.n_left)
        n_blocks = -(-len(n_marked) * (stratum.n_drawn + 1) // MOST_TERMS)
        blocks = np.array_split(n_marked, n_blocks)
        return np.concatenate([drawn_marked(block, urn) for block in blocks])


@dataclass(frozen=True)
class Cells:
    """Numbers of marked rows of each stratum, cut into cells of equal size from the fewest on.

    Attributes
    ----------
    fewest, most : tuple of int
        Of each stratum.
    size : int
        Numbers in a cell.
    """

    fewest: tuple[int, ...]
    most: tuple[int, ...]
    size: int

    @classmethod
    def of(cls, fewest: tuple[int, ...], most: tuple[int, ...], a_stratum: int) -> Cells:
        """Return cells that are small enough to lose little, so many in the mean of the strata."""
        n_cells = len(fewest) * a_stratum
        n_numbers = sum(most) - sum(fewest)
        return cls(fewest, most, max(1, ceil(n_numbers / n_cells)))

    def starts(self, h: int) -> AnyArray:
        """Return the smallest number of each cell of a stratum."""
        return np.arange(self.fewest[h], self.most[h] + 1, self.size)

    def ends(self, h: int) -> AnyArray:
        """Return the largest number of each cell of a stratum."""
        return np.minimum(self.starts(h) + self.size - 1, self.most[h])

    def largest_of_others(self, n_cells: AnyArray) -> AnyArray:
        """Return the largest total of all strata but the first that is so many cells up."""
        n_others = len(self.fewest) - 1
        reached = sum(self.fewest[1:]) + n_cells * self.size + n_others * (self.size - 1)
        return np.minimum(reached, sum(self.most[1:]))


def lattice_weights(strata: tuple[Stratum, ...]) -> AnyArray:
    """Return whole numbers in proportion to ``N_h / n_h``, one for each stratum."""
    if len(strata) == 1:
        return np.ones(1, dtype=np.int64)
    n_rows = sum(stratum.n_rows for stratum in strata)
    exact = np.array([stratum.n_rows / stratum.n_drawn for stratum in strata])
    n_drawn = sum(stratum.n_drawn for stratum in strata)
    n_values = min(MOST_LATTICE, LATTICE_A_DRAW * n_drawn)
    return np.maximum(np.round(exact * n_values / n_rows), 1.0).astype(np.int64)


def narrowest_most_marked(strata: tuple[Stratum, ...], level: float) -> int:
    """Return what no bound of that level can be below that never falls with the marked rows drawn.

    If it were below a total of some split, then samples with no more marked rows in any stratum
    would be below it too, and these have a probability above the level. Two strata at most.
    """
    drawn = [stratum for stratum in strata if stratum.n_drawn]
    undrawn = sum(stratum.n_rows for stratum in strata if not stratum.n_drawn)
    if len(drawn) > 2:
        raise ValueError("The narrowest bound is known of two strata at most.")
    if not drawn:
        return undrawn
    if len(drawn) == 1:
        return undrawn + drawn[0].most(1.0 - level)
    first, second = drawn
    # Where one stratum alone has less than the level, no number of the other is possible.
    numbers = [np.arange(s.n_marked, s.most(1.0 - level) + 1) for s in (first, second)]
    chance_first = drawn_at_most(first.n_marked, numbers[0], first.n_drawn, first.n_left)
    chance_second = drawn_at_most(second.n_marked, numbers[1], second.n_drawn, second.n_left)
    needed = level / np.maximum(chance_first, 1e-300)
    last = np.searchsorted(-chance_second, -needed, side="left") - 1
    possible = last >= 0
    return undrawn + int(np.max(numbers[0][possible] + numbers[1][last[possible]]))
