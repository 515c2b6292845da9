"""Sums of numbers drawn from several strata, and convex functions above others: compiled loops."""

from __future__ import annotations

import numpy as np
from numba import njit

from transduce.core.types import Array

NEGLIGIBLE = 1e-8  # probabilities below this are left out, and added to the result instead


def largest_over_splits(reach: Array, probabilities: Array, weight: int) -> Array:
    """Return the largest probability of a small sum when one more stratum is added.

    Parameters
    ----------
    reach : array of shape (T, Y)
        The largest probability, over the splits of each total, that the strata so far have a sum of
        at most 0, 1, ..., Y - 1.
    probabilities : array of shape (C, X)
        Of 0, 1, ..., X - 1 marked rows drawn from the stratum, for each number of its rows that
        may be marked, in cells.
    weight : int
        What a marked row of the stratum adds to the sum.

    Returns
    -------
    array of shape (T + C - 1, Y)
    """
    return np.asarray(_largest_over_splits(reach, probabilities, weight))


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _largest_over_splits(reach: Array, probabilities: Array, weight: int) -> Array:
    n_totals, n_sums = reach.shape
    n_cells, n_drawn = probabilities.shape
    largest = np.zeros((n_totals + n_cells - 1, n_sums))
    sums = np.empty(n_sums)
    for cell in range(n_cells):
        for total in range(n_totals):
            sums[:] = 0.0
            left_out = 0.0
            for drawn in range(n_drawn):
                probability = probabilities[cell, drawn]
                if probability < NEGLIGIBLE:
                    left_out += probability
                    continue
                shift = weight * drawn
                for y in range(shift, n_sums):
                    sums[y] += probability * reach[total, y - shift]
            line = largest[total + cell]
            for y in range(n_sums):
                line[y] = max(line[y], sums[y] + left_out)
    return largest


def rise_convexly(chances: Array) -> Array:
    """Return functions (k, y) that are convex, and nowhere below falling ones."""
    return np.asarray(_rise_convexly(chances))


@njit(cache=True, nogil=True)
def _rise_convexly(chances: Array) -> Array:
    majorant = chances.copy()
    n_functions, n_values = chances.shape
    for k in range(n_functions):
        rise = 0.0
        for y in range(n_values - 2, -1, -1):
            rise = max(rise, chances[k, y] - majorant[k, y + 1])
            majorant[k, y] = majorant[k, y + 1] + rise
    return majorant
