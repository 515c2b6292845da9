"""How many rows of many strata are marked: strata are pooled, and only the mean of a pool is used.

With many strata hardly a row is drawn from each, and a search over all splits of a total between
them takes long and gains nothing: with 20 strata its bounds were a quarter wider than those of
labels alone, where pooled ones are a third narrower.

The number of marked rows drawn from a stratum is hypergeometric, and so is distributed like a sum
of independent trials whose chances differ (Vatutin and Mikhailov 1982). So the number X drawn from
several strata is a sum of n independent trials too. Of stratum h with ``N_h`` rows ``n_h`` were
drawn; if T rows of all these strata are marked, then the mean of X is smallest if they are in the
strata with the smallest ``n_h / N_h``.

Strata are divided into two parts. The test of a total needs the mean of a falling function f of X,
the number from the second part: of the chance that the first part shows so few marked rows that the
sample is no more extreme than the observed one. Let B be binomial with the mean of X. Two upper
bounds are known (Hoeffding 1956):

- the mean of F(B), where F is convex and nowhere below f;
- the mean of what f would give if ``P(X <= j)`` were ``P(B <= j)`` for all j up to one less than
  the mean, and 1 beyond.

The first loses nothing if the first part decides, the second if the second does. Both bound the
same probability, so the smaller one may be taken.

For the share of a class, the first part is the stratum in which it was predicted; marked rows are
rare in all others. Otherwise the first part are the strata of which about equally many rows were
drawn, bounded as in the second way, and the second part those of which relatively more were: their
marked rows count for less, ``w_h = (N_h / n_h) / max (N_h / n_h)`` each. The sum of these counts is
no more spread than B with its mean, in the convex order, so that the first way holds.

B knows nothing of finite strata: limits are up to ``1 / sqrt(1 - n / N)`` times as far from the
estimate as they could be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import gammaln, xlog1py, xlogy

from transduce.core.types import AnyArray, Array
from transduce.population.stratum import SHARE_FOR_SPLITS, Stratum, largest_sums
from transduce.population.urns import Urn, drawn_marked

# Cells of numbers of marked rows of the first part; those that could hold the bound are divided
# again, so many times.
MOST_CELLS = 40
MOST_PASSES = 4
# Strata are in the first part if a drawn row of theirs stands for at least so large a share of the
# rows for which one stands in half of all rows. The bound on wrong rows lay 12.1 rows of 300 drawn
# above the estimate with .8 (20 strata, a tenth wrong), 12.9 with .7 and .9, and 13.4 with .98.
ALIKE = 0.8
# Marked rows of the second part count alike if, with as many rows drawn everywhere as where fewest
# are, no more than this share of the draws would be too many.
MOST_TOO_MANY = 0.15
# Standard deviations from the mean, and counts besides, beyond which a binomial number never lies.
FARTHEST = 12.0
FURTHER = 30
SHARE_OF_ROWS = 0.95  # weights are relative to what a drawn row stands for in nearly all rows


class Part(Protocol):
    """Some strata, of which the chance of few marked rows is known, or bounded."""

    def as_stratum(self) -> Stratum:
        """Return a stratum about as informative, by which samples are ordered."""

    def limits(self, doubt: float) -> tuple[int, int]:
        """Return the fewest and the most marked rows that are looked at."""

    def at_most(self, n_marked: AnyArray) -> Array:
        """Return the largest chance that at most 0, 1, ... marked rows are drawn.

        One line for each number (k,) of marked rows.
        """


@dataclass(frozen=True)
class Apart:
    """One stratum by itself."""

    stratum: Stratum

    def as_stratum(self) -> Stratum:
        """Return the stratum."""
        return self.stratum

    def limits(self, doubt: float) -> tuple[int, int]:
        """Return between which numbers of its rows are marked, each with a doubt."""
        return self.stratum.fewest(1.0 - doubt), self.stratum.most(1.0 - doubt)

    def at_most(self, n_marked: AnyArray) -> Array:
        """Return the hypergeometric distribution function for each number of marked rows."""
        urn = Urn(0, self.stratum.n_drawn, self.stratum.n_left)
        return np.cumsum(drawn_marked(n_marked, urn), axis=1)


@dataclass(frozen=True, eq=False)
class Pool:
    """Strata of which only the number of marked rows drawn is used, or a weighted sum of them.

    Attributes
    ----------
    n_rows, n_drawn : int
        Of all its strata; of those whose marked rows count.
    n_marked : int
        The count of marked rows drawn, rounded up.
    totals, means : array of shape (k,)
        Numbers of marked rows, ascending, and the smallest mean of the count with each; between
        them the mean is linear.
    is_whole : bool
        Whether every marked row counts 1 or 0.
    rows_a_draw : float
        For how many rows a drawn one stands.
    """

    n_rows: int
    n_drawn: int
    n_marked: int
    totals: Array
    means: Array
    is_whole: bool
    rows_a_draw: float

    @classmethod
    def of(cls, strata: tuple[Stratum, ...], counts: Array, *, rarely_marked: bool) -> Pool:
        """Return strata whose marked rows (if few are marked) or others count so much, 0 to 1."""
        rows = np.array([stratum.n_rows for stratum in strata])
        drawn = np.array([stratum.n_drawn for stratum in strata])
        marked = np.array([stratum.n_marked for stratum in strata])
        matters = counts > 0.0
        n_drawn = int(drawn[matters].sum())
        # How much the count rises for each row that is marked (or is not), on average.
        rates = counts * drawn / rows
        if rarely_marked:
            n_marked = int(np.ceil(counts @ marked - 1e-9))
            order = np.argsort(rates)
            totals = np.cumsum(rows[order])
            means = np.cumsum((rows * rates)[order])
        else:
            n_marked = n_drawn - int(np.floor(counts @ (drawn - marked) + 1e-9))
            order = np.argsort(-rates)
            totals = (rows.sum() - np.cumsum(rows[order]))[::-1]
            means = (n_drawn - np.cumsum((rows * rates)[order]))[::-1]
        ends = (0.0, 0.0) if rarely_marked else (float(rows.sum()), float(n_drawn))
        place = 0 if rarely_marked else len(totals)
        is_whole = bool(np.all((counts == 0.0) | (counts == 1.0)))
        return cls(
            int(rows.sum()),
            n_drawn,
            n_marked,
            np.insert(totals.astype(float), place, ends[0]),
            np.insert(means, place, ends[1]),
            is_whole,
            float(rows[matters].sum() / (counts @ drawn)),
        )

    def as_stratum(self) -> Stratum:
        """Return a stratum with as many draws, each of which stands for as many rows."""
        n_rows = max(round(self.rows_a_draw * self.n_drawn), self.n_drawn)
        return Stratum(n_rows, self.n_drawn, self.n_marked)

    def limits(self, doubt: float) -> tuple[int, int]:
        """Return between which numbers of its rows may be marked at all."""
        del doubt  # of no number there is any
        return 0, self.n_rows

    def mean(self, n_marked: AnyArray) -> Array:
        """Return the smallest mean of the count for numbers (k,) of marked rows."""
        return np.clip(np.interp(n_marked, self.totals, self.means), 0.0, float(self.n_drawn))

    def binomial(self, mean: Array, y: AnyArray) -> Array:
        """Return the binomial probability of counts y (k, w) for means (k,), 0 beyond all draws."""
        n = self.n_drawn
        is_possible = y <= n
        count = np.minimum(y, n)
        chance = mean[:, None] / n
        ways = gammaln(n + 1.0) - gammaln(count + 1.0) - gammaln(n - count + 1.0)
        logarithm = ways + xlogy(count, chance) + xlog1py(n - count, -chance)
        return np.where(is_possible, np.exp(logarithm), 0.0)

    def likely_counts(self, mean: Array, n_values: int) -> AnyArray:
        """Return counts (k, w) outside of which the binomial probability is nothing, below 1e-28.

        With hundreds of thousands of draws these are a small part of all. Only the first `n_values`
        counts are looked at.
        """
        spread = np.sqrt(mean * (1.0 - mean / self.n_drawn))
        first = np.maximum(np.floor(mean - FARTHEST * spread) - FURTHER, 0.0).astype(np.int64)
        last = np.ceil(mean + FARTHEST * spread).astype(np.int64) + FURTHER
        width = int((np.minimum(last, n_values - 1) - first).max()) + 1
        return first[:, None] + np.arange(max(width, 1))

    def at_most(self, n_marked: AnyArray) -> Array:
        """Return the largest chance that at most 0, 1, ... marked rows are drawn, if it is whole.

        One line for each number (k,) of marked rows; 1 where nothing better is known.
        """
        mean = self.mean(n_marked)
        y = np.broadcast_to(np.arange(self.n_drawn + 1), (len(mean), self.n_drawn + 1))
        return up_to(self.binomial(mean, y), mean, y)


def up_to(probabilities: Array, mean: Array, y: AnyArray) -> Array:
    """Return the chance of at most y (k, w) for y up to one less than the mean, and 1 beyond.

    Probabilities are those of y, below the first of which there is next to none.
    """
    chances = np.minimum(np.cumsum(probabilities, axis=1), 1.0)
    chances[y > mean[:, None] - 1.0 + 1e-9] = 1.0
    return chances


@dataclass(frozen=True, eq=False)
class PooledSearch:
    """The search for the largest total of two parts.

    Attributes
    ----------
    first : Apart or Pool
    second : Pool
    reached : int array of shape (n_first + 1,)
        For each count of marked rows that could be drawn from the first part: the largest count
        of the second with which the sample is no more extreme than the observed one; -1 if there
        is none.
    level : float
        Of the test of a split between the parts.
    """

    first: Part
    second: Pool
    reached: AnyArray
    level: float

    @classmethod
    def of(cls, first: Part, second: Pool, level: float) -> PooledSearch:
        """Return the search for an upper bound at a level."""
        test_level = level * (1.0 - SHARE_FOR_SPLITS)
        one_each = np.ones(1, dtype=np.int64)
        reached = largest_sums(first.as_stratum(), (second.as_stratum(),), one_each, test_level)
        return cls(first, second, reached, test_level)

    def largest_total(self) -> int:
        """Return the largest total that the test does not reject, or a little more."""
        doubt = self.level / (1.0 - SHARE_FOR_SPLITS) * SHARE_FOR_SPLITS / 2.0
        fewest, most = self.first.limits(doubt)
        cells = [(fewest, most)]
        surely_possible = fewest  # if no split is likely, the limits alone bound the total
        largest = fewest
        for _ in range(MOST_PASSES):
            starts, ends = divide_cells(cells)
            of_second = self.largest_of_second(starts)
            is_possible = of_second >= 0
            if not is_possible.any():
                break
            first_totals = np.where(is_possible, starts + of_second, -1)
            last_totals = np.where(is_possible, ends + of_second, -1)
            surely_possible = max(surely_possible, int(first_totals.max()))
            largest = max(surely_possible, int(last_totals.max()))
            could_be_more = last_totals > surely_possible
            if not could_be_more.any():
                break
            cells = list(zip(starts[could_be_more], ends[could_be_more], strict=True))
        return largest

    def largest_of_second(self, n_first: AnyArray) -> AnyArray:
        """Return how many rows of the second part may be marked, -1 if none.

        For each number (k,) of marked rows of the first part.
        """
        chances = self.chances_of_small_samples(n_first)
        majorant = convex_majorant(chances)
        possible = np.full(len(n_first), -1)
        impossible = np.full(len(n_first), self.second.n_rows + 1)
        # By bisection for all numbers at once: the probability falls as the total rises.
        while np.any(impossible - possible > 1):
            middle = np.clip((possible + impossible) // 2, 0, self.second.n_rows)
            accepted = self.bound_probability(chances, majorant, middle) > self.level
            is_open = impossible - possible > 1
            possible = np.where(is_open & accepted, middle, possible)
            impossible = np.where(is_open & ~accepted, middle, impossible)
        return possible

    def chances_of_small_samples(self, n_first: AnyArray) -> Array:
        """Return the chance f(y) that the sample is no more extreme than the observed one.

        It is so if the count of the second part is y, for y = 0, 1, ... up to the first that is
        always more extreme; shape (k, y).
        """
        at_most = self.first.at_most(n_first)
        n_values = min(int(self.reached.max()) + 1, self.second.n_drawn) + 1
        # The counts that are reached fall as more marked rows are drawn from the first part.
        n_small = np.searchsorted(np.sort(-self.reached), -np.arange(n_values), side="right")
        return np.where(n_small > 0, at_most[:, np.maximum(n_small - 1, 0)], 0.0)

    def bound_probability(self, chances: Array, majorant: Array, n_second: AnyArray) -> Array:
        """Return the smallest known upper bound on the mean of f, for totals (k,) of the second."""
        mean = self.second.mean(n_second)
        y = self.second.likely_counts(mean, chances.shape[1])
        binomial = self.second.binomial(mean, y)
        by_convexity = np.einsum("ky,ky->k", _at(majorant, y), binomial)
        if not self.second.is_whole:
            return by_convexity
        falls = _at(chances, y) - _at(chances, y + 1)
        by_steps = np.einsum("ky,ky->k", falls, up_to(binomial, mean, y))
        # Beyond the likely counts the chance of at most so many is 1.
        by_steps += _at(chances, y[:, -1:] + 1)[:, 0]
        return np.asarray(np.minimum(by_convexity, by_steps))


def _at(function: Array, y: AnyArray) -> Array:
    """Return the values of functions (k, ...) at counts y (k, w), 0 beyond their last value."""
    n_values = function.shape[1]
    values = np.take_along_axis(function, np.minimum(y, n_values - 1), axis=1)
    return np.where(y < n_values, values, 0.0)


def pooled_bound(
    strata: tuple[Stratum, ...], level: float, apart: int | None, *, rarely_marked: bool
) -> int:
    """Return how many rows are marked at most; wrong with a probability of at most the level.

    Parameters
    ----------
    strata : tuple of Stratum
        Rows were drawn from each.
    level : float
    apart : int or None
        The stratum in which most rows are thought to be marked, and hardly any elsewhere.
    rarely_marked : bool
        Whether few rows of the (other) strata are thought to be marked, or most. Neither this nor
        what stands apart may depend on the labels.
    """
    if apart is not None:
        others = strata[:apart] + strata[apart + 1 :]
        counts = counts_of_others(others, rarely_marked=rarely_marked)
        second = Pool.of(others, counts, rarely_marked=rarely_marked)
        return PooledSearch.of(Apart(strata[apart]), second, level).largest_total()
    rows_a_draw = draws_stand_for(strata)
    is_light = rows_a_draw < ALIKE * row_quantile(strata, 0.5)
    heavy = tuple(stratum for stratum, light in zip(strata, is_light, strict=True) if not light)
    light = tuple(stratum for stratum, light in zip(strata, is_light, strict=True) if light)
    first = Pool.of(heavy, np.ones(len(heavy)), rarely_marked=rarely_marked)
    if not light:
        return largest_of_one(first, level)
    second = Pool.of(light, weights_of(light), rarely_marked=rarely_marked)
    return PooledSearch.of(first, second, level).largest_total()


def largest_of_one(pool: Pool, level: float) -> int:
    """Return how many rows of a pool are marked at most, where every marked row counts."""
    possible = 0
    impossible = pool.n_rows + 1
    while impossible - possible > 1:
        middle = (possible + impossible) // 2
        if pool.at_most(np.array([middle]))[0, pool.n_marked] > level:
            possible = middle
        else:
            impossible = middle
    return possible


def draws_stand_for(strata: tuple[Stratum, ...]) -> Array:
    """Return for how many rows a drawn one stands in each stratum."""
    return np.array([stratum.n_rows / stratum.n_drawn for stratum in strata])


def row_quantile(strata: tuple[Stratum, ...], share: float) -> float:
    """Return for how many rows a drawn one stands at most in such a share of all rows."""
    rows_a_draw = draws_stand_for(strata)
    rows = np.array([stratum.n_rows for stratum in strata])
    order = np.argsort(rows_a_draw)
    shares = np.cumsum(rows[order]) / rows.sum()
    return float(rows_a_draw[order][np.searchsorted(shares, share - 1e-12)])


def weights_of(strata: tuple[Stratum, ...]) -> Array:
    """Return how much a marked row of each stratum counts, at most 1."""
    return np.minimum(draws_stand_for(strata) / row_quantile(strata, SHARE_OF_ROWS), 1.0)


def counts_of_others(strata: tuple[Stratum, ...], *, rarely_marked: bool) -> Array:
    """Return how much a marked row (or one that is not) of each stratum counts: 0, 1, or between.

    If few rows are marked, a row that counts too much widens the bound; if most are, others that
    count too little do.
    """
    rows_a_draw = draws_stand_for(strata)
    n_drawn = np.array([stratum.n_drawn for stratum in strata])
    n_rows = sum(stratum.n_rows for stratum in strata)
    if rarely_marked:
        too_many = row_quantile(strata, SHARE_OF_ROWS) * n_drawn.sum() / n_rows - 1.0
        if too_many <= MOST_TOO_MANY:
            return np.ones(len(strata))
        return weights_of(strata)
    # Strata of which relatively many rows were drawn would make each drawn row stand for few; they
    # are left out, so that the rows for which all that are drawn stand are most.
    stand_for = [rows * n_drawn[rows_a_draw >= rows].sum() for rows in rows_a_draw]
    best = int(np.argmax(stand_for))
    if stand_for[best] >= (1.0 - MOST_TOO_MANY) * n_rows:
        return (rows_a_draw >= rows_a_draw[best]).astype(float)
    return weights_of(strata)


def divide_cells(cells: list[tuple[int, int]]) -> tuple[AnyArray, AnyArray]:
    """Return the first and the last numbers of smaller cells that make up some cells."""
    n_numbers = sum(end - start + 1 for start, end in cells)
    size = max(1, -(-n_numbers // MOST_CELLS))
    starts = np.concatenate([np.arange(start, end + 1, size) for start, end in cells])
    ends = np.concatenate(
        [np.minimum(np.arange(start, end + 1, size) + size - 1, end) for start, end in cells]
    )
    return starts, ends


def convex_majorant(chances: Array) -> Array:
    """Return a convex function that is nowhere below a falling one, line by line (k, y).

    From the right to the left it rises as the function does, and never less than before.
    """
    from transduce.population.lattice import rise_convexly  # needs numba

    return rise_convexly(np.ascontiguousarray(chances))
