"""One stratum of rows, a part of which was drawn at random; and which samples are more extreme."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from transduce.core.types import AnyArray, Array
from transduce.population.urns import urn_bound

SHARE_FOR_SPLITS = 0.04  # of the level, to leave out splits that strata rule out by themselves


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


def largest_sums(
    first: Stratum, others: tuple[Stratum, ...], weights: AnyArray, level: float
) -> AnyArray:
    """Return the largest sum of the other strata with which S does not exceed the observed one.

    One for each number of marked rows drawn from the first stratum, -1 where there is none.
    """
    n_drawn = np.array([stratum.n_drawn for stratum in others])
    n_marked = np.array([stratum.n_marked for stratum in others])
    n_rows = sum(stratum.n_rows for stratum in others)
    n_sums = int(weights @ n_drawn)
    shares_first = np.arange(first.n_drawn + 1) / first.n_drawn
    shares_others = np.arange(n_sums + 1) / n_sums
    excess_first = excess_of_limit(shares_first, first.n_rows, first.n_drawn, level)
    excess_others = excess_of_limit(shares_others, n_rows, int(n_drawn.sum()), level)

    def limit(x: AnyArray, y: AnyArray) -> Array:
        estimate = first.n_rows * shares_first[x] + n_rows * shares_others[y]
        return np.asarray(estimate + np.hypot(excess_first[x], excess_others[y]))

    observed = limit(np.array([first.n_marked]), np.array([int(weights @ n_marked)]))[0]
    # S rises with the sum, so those that do not exceed the observed one are the first ones. They
    # are found by bisection: both numbers may be hundreds of thousands.
    x = np.arange(first.n_drawn + 1)
    reached = np.full(len(x), -1)
    exceeding = np.full(len(x), n_sums + 1)
    while np.any(exceeding - reached > 1):
        middle = np.clip((reached + exceeding) // 2, 0, n_sums)
        is_open = exceeding - reached > 1
        is_reached = limit(x, middle) <= observed * (1.0 + 1e-12)
        reached = np.where(is_open & is_reached, middle, reached)
        exceeding = np.where(is_open & ~is_reached, middle, exceeding)
    return reached


def excess_of_limit(shares: Array, n_rows: int, n_drawn: int, level: float) -> Array:
    """Return how far the upper limit of a stratum lies above its estimate, in rows.

    Clopper and Pearson's limit, shrunk by the share of the rows that were drawn. Shapes: (k,).
    """
    marked = shares * n_drawn
    limit = betaincinv(marked + 1.0, np.maximum(n_drawn - marked, 1e-9), 1.0 - level)
    limit = np.where(shares < 1.0, limit, 1.0)
    return np.asarray(n_rows * (limit - shares) * np.sqrt(1.0 - n_drawn / n_rows))
