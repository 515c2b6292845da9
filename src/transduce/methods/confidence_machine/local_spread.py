"""Residuals over the spread of their neighbours: regions that are wide where residuals are large.

Complete a sample with label ``prediction + t`` at one unlabelled row. With the residuals of
`residual_lines`, ``z_i = rho_i - beta_i t`` at labelled rows and ``t`` at the row itself, the
squared spread at row i is a mean over the other rows and, as so many rows more, over all::

    s_i^2 = (sum_{j != i} w_ij z_j^2 + PRIOR mean_j z_j^2) / (sum_{j != i} w_ij + PRIOR)

The weights come from the features, and the mean is over all rows of the completed sample, so rows
are treated alike and p-values are exact. Each ``s_i^2`` is a parabola in t, so that labelled row i
is at least as nonconforming, ``z_i^2 s^2 >= t^2 s_i^2``, where a quartic is not negative. Rounding
must not break ties: ``z^2`` and ``s^2`` of the row that may win are read as ``(1 + TIE) z^2 +
slack^2 / TIE``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from transduce.core.types import AnyArray, Array
from transduce.device.kernels import Kernel, median_width
from transduce.methods.confidence_machine.parabolas import TIE
from transduce.methods.confidence_machine.quartics import (
    MOST_ROOTS,
    find_roots,
    is_concave,
    only_root,
    point_between,
    polynomial,
)
from transduce.methods.confidence_machine.residual_lines import (
    kth_largest,
    one_interval,
    sweep_sets,
)

PRIOR = 1.0  # rows
WIDTH = 0.5  # of the weights' kernel, in median distances


class Neighbors(NamedTuple):
    """How much rows weigh in each other's spread; arrays without rows where there is none."""

    among: Array  # (l, l) the labelled rows, with 0 on the diagonal
    to_rows: Array  # (b, l) unlabelled rows with the labelled ones


NO_NEIGHBORS = Neighbors(np.empty((0, 0)), np.empty((0, 0)))


@dataclass(frozen=True)
class Neighborhood:
    """The weights of the spread, from features alone."""

    kernel: Kernel
    X_l: Array
    among: Array

    @classmethod
    def build(cls, X: Array, X_l: Array) -> Neighborhood:
        """Return that of labelled rows (l, d); the width comes from all rows (n, d)."""
        kernel = Kernel("rbf", WIDTH * median_width(X))
        among = kernel.checked_matrix(X_l, X_l)
        np.fill_diagonal(among, 0.0)
        return cls(kernel, X_l, np.ascontiguousarray(among))

    def of(self, rows: Array) -> Neighbors:
        """Return the weights of rows (b, d)."""
        return Neighbors(
            self.among, np.ascontiguousarray(self.kernel.checked_matrix(rows, self.X_l))
        )


# ----------------------------------------------------------------------------------- the spreads


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _weighted_sums(
    weights: Array,
    squares: Array,
    crosses: Array,
    slopes: Array,
) -> tuple[float, float, float, float]:
    """Return the sum of weights and those of three arrays times the weights."""
    total = 0.0
    c0 = 0.0
    c1 = 0.0
    c2 = 0.0
    for j in range(len(weights)):
        weight = weights[j]
        total += weight
        c0 += weight * squares[j]
        c1 += weight * crosses[j]
        c2 += weight * slopes[j]
    return total, c0, c1, c2


@njit(cache=True, nogil=True)
def spread_parabolas(rho: Array, beta: Array, among: Array, to_row: Array) -> Array:
    """Return the coefficients of ``s_i^2`` in t, ascending, of all rows, the unlabelled one last.

    Shape (l + 1, 3).
    """
    n_labelled = len(rho)
    squares = rho * rho
    crosses = -2.0 * rho * beta
    slopes = beta * beta
    share = PRIOR / (n_labelled + 1.0)
    mean0 = share * squares.sum()
    mean1 = share * crosses.sum()
    mean2 = share * (slopes.sum() + 1.0)
    spreads = np.empty((n_labelled + 1, 3))
    for i in range(n_labelled):
        total, c0, c1, c2 = _weighted_sums(among[i], squares, crosses, slopes)
        weight_of_row = to_row[i]
        total += weight_of_row + PRIOR
        spreads[i, 0] = (c0 + mean0) / total
        spreads[i, 1] = (c1 + mean1) / total
        spreads[i, 2] = (c2 + weight_of_row + mean2) / total
    total, c0, c1, c2 = _weighted_sums(to_row, squares, crosses, slopes)
    total += PRIOR
    spreads[n_labelled, 0] = (c0 + mean0) / total
    spreads[n_labelled, 1] = (c1 + mean1) / total
    spreads[n_labelled, 2] = (c2 + mean2) / total
    return spreads


# ------------------------------------------------------------------------------------ the region


@njit(cache=True, nogil=True)
def _quartic(
    rho: float,
    beta: float,
    row_spread: Array,
    label_spread: Array,
    floor: float,
    q: Array,
) -> None:
    """Write ``(more z^2 + floor) (more row_spread + floor) - t^2 label_spread`` in powers of t.

    With ``more = 1 + TIE``.
    """
    more = 1.0 + TIE
    z0 = more * rho * rho + floor
    z1 = -2.0 * more * rho * beta
    z2 = more * beta * beta
    s0 = more * row_spread[0] + floor
    s1 = more * row_spread[1]
    s2 = more * row_spread[2]
    q[0] = z0 * s0
    q[1] = z0 * s1 + z1 * s0
    q[2] = z0 * s2 + z1 * s1 + z2 * s0 - label_spread[0]
    q[3] = z1 * s2 + z2 * s1 - label_spread[1]
    q[4] = z2 * s2 - label_spread[2]


@njit(cache=True, nogil=True)
def _reverse_quartic(
    rho: float,
    beta: float,
    row_spread: Array,
    label_spread: Array,
    floor: float,
    q: Array,
) -> None:
    """Write ``(more t^2 + floor) (more label_spread + floor) - z^2 row_spread`` in powers of t."""
    more = 1.0 + TIE
    z0 = rho * rho
    z1 = -2.0 * rho * beta
    z2 = beta * beta
    s0 = more * label_spread[0] + floor
    s1 = more * label_spread[1]
    s2 = more * label_spread[2]
    q[0] = floor * s0 - z0 * row_spread[0]
    q[1] = floor * s1 - z0 * row_spread[1] - z1 * row_spread[0]
    q[2] = floor * s2 + more * s0 - z0 * row_spread[2] - z1 * row_spread[1] - z2 * row_spread[0]
    q[3] = more * s1 - z1 * row_spread[2] - z2 * row_spread[1]
    q[4] = more * s2 - z2 * row_spread[2]


@njit(cache=True, nogil=True)
def local_region(
    rho: Array,
    beta: Array,
    spreads: Array,
    rank: int,
    side: int,
    slack: float,
) -> Array:
    """Return the pieces (k, 2) of one region about the prediction, as `line_region` does."""
    if rank == 0:
        return one_interval(-np.inf, np.inf)
    unit = np.sqrt(np.mean(rho * rho))
    if unit == 0.0:
        unit = 1.0
    scaled = rho / unit
    scaled_spreads = spreads.copy()
    scaled_spreads[:, 0] /= unit * unit
    scaled_spreads[:, 1] /= unit
    floor = (slack / unit) ** 2 / TIE
    if side == 0:
        return unit * _two_sided(scaled, beta, scaled_spreads, rank, floor)
    scaled_spreads[:, 1] *= side  # upper bounds for labels that are turned around
    upper_bounds = unit * _one_sided(side * scaled, beta, scaled_spreads, rank, floor)
    if side < 0:
        return -upper_bounds[::-1, ::-1]
    return upper_bounds


@njit(cache=True, nogil=True)
def _two_sided(
    rho: Array,
    beta: Array,
    spreads: Array,
    rank: int,
    floor: float,
) -> Array:
    """Return where at least `rank` labelled rows are at least as nonconforming."""
    n_labelled = len(rho)
    starts = np.empty(4 * n_labelled)
    ends = np.empty(4 * n_labelled)
    q = np.empty(5)
    roots = np.empty(MOST_ROOTS)
    inside = np.empty(MOST_ROOTS + 1, dtype=np.bool_)
    n_starts = 0
    n_ends = 0
    n_open = 0
    for i in range(n_labelled):
        _quartic(rho[i], beta[i], spreads[n_labelled], spreads[i], floor, q)
        if q[0] > 0.0 and is_concave(q):
            # One root on either side of 0, as a rule.
            guess = np.sqrt(-q[0] / q[2])
            starts[n_starts] = only_root(q, -guess)
            ends[n_ends] = only_root(q, guess)
            n_starts += 1
            n_ends += 1
            continue
        n_roots = find_roots(q, roots)
        for k in range(n_roots + 1):
            inside[k] = polynomial(q, point_between(roots[:n_roots], k)) >= 0.0
        n_open += inside[0]
        points = roots[:n_roots]
        n_starts, n_ends = _add_sets(points, inside, starts, n_starts, ends, n_ends)
    if n_open == 0 and n_starts == n_labelled and n_ends == n_labelled:
        # Each set holds 0, so all are intervals about it.
        low = kth_largest(starts[:n_starts], n_labelled + 1 - rank)
        high = kth_largest(ends[:n_ends], rank)
        return one_interval(low, high)
    return sweep_sets(starts[:n_starts], ends[:n_ends], rank - n_open)


@njit(cache=True, nogil=True)
def _add_sets(
    points: Array, inside: AnyArray, starts: Array, n_starts: int, ends: Array, n_ends: int
) -> tuple[int, int]:
    """Write where sets start and end; return how many starts and ends there are then.

    `inside` says of each gap between ascending points (k,), and of both rays, whether it is in one.
    """
    for k in range(len(points)):
        if inside[k + 1] and not inside[k]:
            starts[n_starts] = points[k]
            n_starts += 1
        elif inside[k] and not inside[k + 1]:
            ends[n_ends] = points[k]
            n_ends += 1
    return n_starts, n_ends


@njit(cache=True, nogil=True)
def _is_above(
    rho: float,
    beta: float,
    t: float,
    q: Array,
    reverse: Array,
) -> bool:
    """Return whether ``z / s_i >= t / s``, from the two quartics of a row."""
    z = rho - beta * t
    if t <= 0.0:
        return z >= 0.0 or polynomial(reverse, t) >= 0.0
    return z > 0.0 and polynomial(q, t) >= 0.0


@njit(cache=True, nogil=True)
def _one_sided(
    rho: Array,
    beta: Array,
    spreads: Array,
    rank: int,
    floor: float,
) -> Array:
    """Return the same of signed residuals."""
    n_labelled = len(rho)
    starts = np.empty(10 * n_labelled)
    ends = np.empty(10 * n_labelled)
    q = np.empty(5)
    reverse = np.empty(5)
    points = np.empty(2 * MOST_ROOTS + 2)
    inside = np.empty(len(points) + 1, dtype=np.bool_)
    n_starts = 0
    n_ends = 0
    n_open = 0
    for i in range(n_labelled):
        _quartic(rho[i], beta[i], spreads[n_labelled], spreads[i], floor, q)
        _reverse_quartic(rho[i], beta[i], spreads[n_labelled], spreads[i], floor, reverse)
        n_points = find_roots(q, points)
        n_points += find_roots(reverse, points[n_points:])
        points[n_points] = 0.0
        n_points += 1
        if beta[i] != 0.0:
            points[n_points] = rho[i] / beta[i]
            n_points += 1
        sorted_points = np.sort(points[:n_points])
        for k in range(n_points + 1):
            t = point_between(sorted_points, k)
            inside[k] = _is_above(rho[i], beta[i], t, q, reverse)
        n_open += inside[0]
        n_starts, n_ends = _add_sets(sorted_points, inside, starts, n_starts, ends, n_ends)
    return sweep_sets(starts[:n_starts], ends[:n_ends], rank - n_open)


# ------------------------------------------------------------------------------------ the counts


@njit(cache=True, nogil=True)
def count_over_spread(
    rho: Array,
    beta: Array,
    spreads: Array,
    t: float,
    slack: float,
) -> tuple[int, int]:
    """Return how many rows are more nonconforming than the row at `t`, and how many tie."""
    n_labelled = len(rho)
    floor = slack * slack / TIE
    more = 1.0 + TIE
    row_spread = _spread(spreads[n_labelled], t)
    n_above = 0
    n_tied = 0
    for i in range(n_labelled):
        z = rho[i] - beta[i] * t
        label_spread = _spread(spreads[i], t)
        if z * z * row_spread > (more * t * t + floor) * (more * label_spread + floor):
            n_above += 1
        elif (more * z * z + floor) * (more * row_spread + floor) >= t * t * label_spread:
            n_tied += 1
    return n_above, n_tied


@njit(cache=True, nogil=True)
def _spread(parabola: Array, t: float) -> float:
    """Return ``s_i^2`` at a label."""
    value = parabola[0] + t * (parabola[1] + t * parabola[2])
    return max(value, 0.0)
