"""Bets on a total: what numbers that are drawn one by one from a finite table say of their sum.

Rows are drawn at random, without replacement, each from the rows that are left; row s has a number
``x_s`` from 0 to 1. If the numbers that are left sum to ``T_s`` over ``U_s`` rows, the next one has
the mean ``pi_s = T_s / U_s`` exactly, whatever happened before. So for a candidate total there is a
martingale that starts at 1,

    M = sum_theta w_theta prod_s (1 - theta pi_s - (1 - theta) x_s) / (1 - pi_s)

and if the candidate is the true total, it ever reaches ``1 / level`` with probability at most
`level` (Ville). For hits and misses (x = 1 and 0) a hit multiplies by theta and a miss by
``(1 - theta pi) / (1 - pi)``: it is the martingale of the certificates. It rises with the
candidate, so totals that are too large are rejected; the same of ``1 - x`` rejects small ones.
Totals that are rejected stay so: looking after every draw is allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from transduce.core.types import AnyArray, Array

# By which a hit multiplies the martingale, and with which share of the stake.
BETS = np.array([0.0, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8])
WEIGHTS = np.array([0.5, 0.1, 0.1, 0.1, 0.08, 0.07, 0.05])


def log_wealth(drawn: Array, means: Array) -> Array:
    """Return the logarithm of the martingale after each draw.

    Parameters
    ----------
    drawn : array of shape (s,)
        The numbers that were drawn, from 0 to 1.
    means : array of shape (s,)
        The mean of the numbers that were left before each draw, if the candidate total is right;
        1 or more if only hits would be left.

    Returns
    -------
    array of shape (s,)
        Infinite from the first draw on that contradicts the candidate.
    """
    return log_mean_of_bets(log_bets(drawn, means))


def log_bets(drawn: Array, means: Array) -> Array:
    """Return the logarithm of what each bet has made after each draw, shape (bets, s)."""
    below = drawn < 1.0
    contradicted = np.logical_or.accumulate(below & (means >= 1.0))
    # A number of 1 multiplies by theta whatever the mean: it may be anything there.
    usable = np.where(below & ~contradicted, means, 0.0)
    theta = BETS[:, None]
    with np.errstate(divide="ignore"):
        steps = np.log1p(-theta * usable - (1.0 - theta) * drawn) - np.log1p(-usable)
        hits = np.log(theta)
    steps = np.where(below, steps, hits)
    return np.where(contradicted, np.inf, np.cumsum(steps, axis=1))


def log_mean_of_bets(bets: Array) -> Array:
    """Return the logarithm of the weighted mean of what the bets have made. Shapes: (bets, s)."""
    peak = bets.max(axis=0)
    finite = np.where(np.isfinite(peak), peak, 0.0)
    with np.errstate(over="ignore"):
        mean = finite + np.log(WEIGHTS @ np.exp(bets - finite))
    return np.where(np.isfinite(peak), mean, peak)


@dataclass(frozen=True, eq=False)
class BoundedDraws:
    """Numbers from 0 to 1 of rows that were drawn at random from a table.

    They are in the order of the draws.

    Attributes
    ----------
    numbers : array of shape (s,)
    n_rows : int
        Rows of the table before the first draw.
    """

    numbers: Array
    n_rows: int

    def is_rejected(self, total: float, level: float) -> bool:
        """Return whether a total of the whole table was ever found to be too large."""
        seen_before = np.append(0.0, np.cumsum(self.numbers)[:-1])
        left_before = self.n_rows - np.arange(len(self.numbers))
        means = (total - seen_before) / left_before
        # A total that is not above what was seen is no total that is too large.
        means = np.maximum(means, 0.0)
        return bool((log_wealth(self.numbers, means) >= -np.log(level)).any())

    def largest_total(self, level: float) -> float:
        """Return a total that the true one exceeds with probability at most `level`, ever."""
        seen = float(np.sum(self.numbers))
        most = seen + (self.n_rows - len(self.numbers))
        return bisect_first(lambda total: self.is_rejected(total, level), seen, most)

    def total_interval(self, confidence: float) -> tuple[float, float]:
        """Return an interval for the total of the whole table that holds at every look."""
        level = (1.0 - confidence) / 2.0
        mirrored = BoundedDraws(1.0 - self.numbers, self.n_rows)
        return self.n_rows - mirrored.largest_total(level), self.largest_total(level)


def bisect_first(is_rejected: Callable[[float], bool], low: float, high: float) -> float:
    """Return a number that is rejected, or `high`: the smallest such up to rounding."""
    if not is_rejected(high):
        return high
    for _ in range(60):
        middle = (low + high) / 2.0
        if is_rejected(middle):
            high = middle
        else:
            low = middle
    return high


def order_at_random(rows: AnyArray, seed: int) -> AnyArray:
    """Return rows in an order that nothing in the table decides; bets need one that is random."""
    return np.random.default_rng(seed).permutation(rows)
