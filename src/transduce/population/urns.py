"""Urns: how many rows are marked, exactly, from a random part of them.

A marked row is a wrong one, say, or one of a class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from transduce.core.types import AnyArray, Array

TRIED_AT_ONCE = 8  # numbers of marked rows, where a bound is searched for
MOST_TERMS = 1_000_000  # probabilities that are computed at a time


def urn_bound(n_wrong: int, n_calibration: int, n_unlabelled: int, certainty: float) -> int:
    """Return how many of the unlabelled rows are marked (wrong, say) at most.

    The number of marked calibration rows is given.
    """
    # The number among c rows drawn at random is hypergeometric. The bound is the largest number for
    # which so few, or fewer, have a probability above 1 - certainty, less those that were seen:
    # nothing is approximated. The more are marked, the less likely so few of them are drawn; some
    # numbers are tried at once, since a call costs more than a number.
    fewest = 0
    most = n_unlabelled
    while fewest < most:
        more = np.unique(np.linspace(fewest + 1, most, TRIED_AT_ONCE).astype(np.int64))
        so_few = drawn_at_most(n_wrong, n_wrong + more, n_calibration, n_unlabelled)
        n_possible = int(np.argmin(np.append(so_few > 1.0 - certainty, False)))
        if n_possible < len(more):
            most = int(more[n_possible]) - 1
        if n_possible > 0:
            fewest = int(more[n_possible - 1])
    return fewest


@dataclass(frozen=True)
class Urn:
    """Rows of which some are marked (wrong, say), and a random part of which shows how many."""

    n_marked: int  # of the calibration rows
    n_calibration: int
    n_unlabelled: int

    def bound(self, certainty: float) -> int:
        """Return how many of the unlabelled rows are marked at most, with a certainty."""
        return urn_bound(self.n_marked, self.n_calibration, self.n_unlabelled, certainty)

    def surprise(self, n_more: AnyArray) -> Array:
        """Return minus the logarithm of a p-value, shape (k,).

        It is that of so many marked rows among the unlabelled ones.
        """
        # The p-value is the probability of so few marked calibration rows, or fewer.
        marked = self.n_marked + n_more
        p_values = drawn_at_most(self.n_marked, marked, self.n_calibration, self.n_unlabelled)
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(p_values))


def two_urns_bound(one: Urn, other: Urn, certainty: float) -> int:
    """Return how many unlabelled rows of two urns are marked at most, together.

    The bound holds with a certainty.
    """
    # Each urn has a p-value for each number of its rows that may be marked. What marks the rows of
    # the second urn may depend on what was drawn from the first, but given that, its p-value is
    # uniform (or larger). Together they are as two independent ones, and a weighted sum of their
    # logarithms has a known distribution (Fisher; Good 1955). Pairs with too large a sum are ruled
    # out, and the bound is the largest total of the others. Bounds that share the doubt add up to
    # more: where 8 of 79 calibration rows are marked in both urns, and 20,000 and 4,000 rows are
    # not labelled, to 4,561 instead of 4,048.
    weights = [urn.n_unlabelled / np.sqrt(urn.n_calibration) for urn in (one, other)]
    weights = [max(weight / max(weights), 1e-6) for weight in weights]
    limit = exponential_quantile(weights[0], weights[1], certainty)
    starts, ends = cells_up_to(one.bound(-np.expm1(-limit / weights[0])))
    others, last_others = cells_up_to(other.bound(-np.expm1(-limit / weights[1])))
    left_by_first = limit - weights[0] * one.surprise(starts)
    surprise = weights[1] * other.surprise(others)
    possible = left_by_first > 0.0
    cell = np.searchsorted(surprise, left_by_first[possible], side="left") - 1
    return int((ends[possible] + last_others[cell]).max())


def exponential_quantile(one: float, other: float, certainty: float) -> float:
    """Return the quantile of the sum of two independent exponential variables.

    Their means lie between 0 and 1.
    """

    def exceeded(amount: float) -> float:
        if abs(one - other) <= 1e-6:
            return float((1.0 + amount / one) * np.exp(-amount / one))
        parts = one * np.exp(-amount / one) - other * np.exp(-amount / other)
        return float(parts / (one - other))

    return float(brentq(lambda amount: exceeded(amount) - (1.0 - certainty), 0.0, 1000.0))


def cells_up_to(most: int) -> tuple[AnyArray, AnyArray]:
    """Return the first and the last number of the cells into which 0, 1, ..., most are cut."""
    firsts = np.unique(np.linspace(0, most, MOST_SPLITS).astype(np.int64))
    return firsts, np.append(firsts[1:] - 1, most)


# Cells of numbers of marked rows: beyond, a bound is that share of the rows too large at most.
MOST_SPLITS = 1000


def drawn_at_most(count: int, n_marked: AnyArray, n_calibration: int, n_unlabelled: int) -> Array:
    """Return the probability that at most `count` calibration rows are marked.

    It is returned for each of the numbers (k,) of all marked rows.

    The hypergeometric distribution function, by ratios of neighbouring probabilities, for some of
    the numbers at a time to spare memory. Scipy's takes up to ten times as long here.

    >>> drawn_at_most(0, np.array([1]), n_calibration=1, n_unlabelled=3)
    array([0.75])
    """
    urn = Urn(count, n_calibration, n_unlabelled)
    flat = np.clip(np.ravel(n_marked), 0, n_calibration + n_unlabelled)
    n_blocks = max(1, -(-len(flat) * (n_calibration + 1) // MOST_TERMS))
    parts = [
        drawn_marked(block, urn)[:, : max(count + 1, 0)].sum(axis=1)
        for block in np.array_split(flat, n_blocks)
    ]
    return np.minimum(np.concatenate(parts), 1.0).reshape(np.shape(n_marked))


def drawn_marked(n_marked: AnyArray, urn: Urn) -> Array:
    """Return the probability of 0, ..., c marked calibration rows.

    It is returned for each of the numbers (k,) of all marked rows.
    """
    # Hypergeometric, by the ratios of neighbouring probabilities: scipy's takes a thousand times as
    # long for a billion rows, and differences of logarithms of factorials lose eight digits.
    drawn = np.arange(urn.n_calibration + 1)
    marked = n_marked[:, None]
    plain = urn.n_calibration + urn.n_unlabelled - marked
    possible = (drawn <= marked) & (urn.n_calibration - drawn <= plain)
    before = drawn[:-1]
    # As floats: a product of two counts may be too large for an integer.
    rising = (marked - before).astype(float) * (urn.n_calibration - before)
    falling = (before + 1.0) * (plain - urn.n_calibration + before + 1)
    inside = possible[:, 1:] & possible[:, :-1]
    ratios = np.divide(rising, falling, out=np.ones(inside.shape), where=inside)
    logarithms = np.cumsum(np.log(ratios), axis=1)
    logarithms = np.pad(logarithms, ((0, 0), (1, 0)))
    logarithms = np.where(possible, logarithms, -np.inf)
    likelihood = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
    return np.asarray(likelihood / likelihood.sum(axis=1, keepdims=True))


def urn_interval(
    n_marked: int, n_calibration: int, n_unlabelled: int, confidence: float, n_empty: int = 0
) -> tuple[int, int]:
    """Return between which numbers of the unlabelled rows are marked.

    `n_empty` of them were drawn to calibrate.
    """
    certainty = (1.0 + confidence) / 2.0
    drawn = n_calibration + n_empty
    others = n_unlabelled - n_empty
    fewest = others - urn_bound(drawn - n_marked, drawn, others, certainty)
    most = urn_bound(n_marked + n_empty, drawn, others, certainty) + n_empty
    return fewest, most
