"""Labels at which one row's residual is not nonconforming among the others': exact, compiled.

Complete a sample with label ``prediction + t`` at one unlabelled row. After scaling, that row's residual is
``t`` and every labelled row's is a line, ``rho_i - beta_i t``, where (see `transduce.core.linalg`)::

    rho_i = s r_i / w_i,   beta_i = g_i / w_i,   w_i = (s G_ii + g_i^2) ** power

and ``power`` is 0, 1/2 or 1 for plain, studentized or deleted residuals. Labelled row ``i`` is at least as
nonconforming as the unlabelled row on ``S_i = {t : |rho_i - beta_i t| >= |t|}``. The region is the set of ``t`` that
lie in at least `rank` of the ``S_i``. One-sided regions drop the absolute values.

Labels repeat and rows are duplicated, so residuals tie, and rounding must not break a tie. Everywhere here, and
in regions and counts alike, ``|t|`` is read as ``OWN |t| - slack`` with ``OWN`` a hair below 1.

Three routes to the same region, each tested against the next:

- *window* (`transduce.methods.confidence_machine.residual_window`): the residuals are sorted once for all unlabelled
  rows, Cauchy-Schwarz bounds every ``beta_i``, and the wanted order statistic is found among the few rows left open;
- *selection*: when all ``|beta_i| < 1`` the region is one interval whose ends are order statistics;
- *sweep*: any ``beta_i``; sorts the ends of all ``S_i`` and walks along them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from transduce.core.types import AnyArray, Array
from transduce.device.lines import OWN

POWER = {"plain": 0.0, "studentized": 0.5, "deleted": 1.0}


@njit(cache=True, nogil=True)
def residual_scale(pivot: float, diagonal: float, weight: float, power: float) -> float:
    """Return ``w_i``, what the residual of a labelled row is divided by."""
    if power == 0.0:
        return 1.0
    variance = pivot * diagonal + weight * weight
    return np.sqrt(variance) if power == 0.5 else variance


@njit(cache=True, nogil=True)
def kth_largest(values: Array, k: int) -> float:
    """Return the `k`-th largest of some numbers by selection, which rearranges them."""
    first, last, wanted = 0, len(values) - 1, len(values) - k
    while last > first:
        middle = values[(first + last) // 2]
        i, j = first, last
        while i <= j:
            while values[i] < middle:
                i += 1
            while values[j] > middle:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if wanted <= j:
            last = j
        elif wanted >= i:
            first = i
        else:
            break
    return values[wanted]


@njit(cache=True, nogil=True)
def row_lines(
    residuals: Array, diagonal: Array, weights: Array, pivot: float, power: float
) -> tuple[Array, Array]:
    """As `residual_lines`, for compiled callers."""
    rho, beta = np.empty(len(residuals)), np.empty(len(residuals))
    for i in range(len(residuals)):
        scale = residual_scale(pivot, diagonal[i], weights[i], power)
        # A row that no other row can stand in for has scale 0: no deleted residual, so never nonconforming.
        rho[i] = pivot * residuals[i] / scale if scale > 0.0 else 0.0
        beta[i] = weights[i] / scale if scale > 0.0 else 0.0
    return rho, beta


@njit(cache=True, nogil=True)
def select_interval(rho: Array, beta: Array, rank: int, slack: float) -> tuple[float, float]:
    """Return the ends of the two-sided region by selection; NaN if some ``|beta_i| >= 1``. Shapes: rho, beta (l,)."""
    below, above = np.empty(len(rho)), np.empty(len(rho))
    for i in range(len(rho)):
        if not abs(beta[i]) < OWN:
            return np.nan, np.nan
        slope = beta[i] if rho[i] >= 0.0 else -beta[i]
        above[i] = (abs(rho[i]) + slack) / (OWN + slope)
        below[i] = (abs(rho[i]) + slack) / (OWN - slope)
    return -kth_largest(below, rank), kth_largest(above, rank)


@njit(cache=True, nogil=True)
def select_bound(rho: Array, beta: Array, rank: int, slack: float) -> float:
    """Return the end of the one-sided region ``(-inf, end]`` by selection; NaN if some ``beta_i <= -1``.

    Parameters as in `select_interval`; for a lower bound pass ``-rho`` and negate the result.
    """
    above = np.empty(len(rho))
    for i in range(len(rho)):
        if not beta[i] > -1.0:
            return np.nan
        above[i] = (rho[i] + slack) / (1.0 + beta[i])
    return kth_largest(above, rank)


@njit(cache=True, nogil=True)
def _walk(starts: Array, ends: Array, n_open: int, rank: int) -> Array:
    """Return the pieces where at least `rank` closed sets overlap; `n_open` of them begin at -inf."""
    starts.sort()
    ends.sort()
    pieces = np.empty((len(starts) + 1, 2))
    n, count, a, b = 0, n_open, 0, 0
    inside = count >= rank
    if inside:
        pieces[0, 0] = -np.inf
    while a < len(starts) or b < len(ends):
        # Closed sets: at equal places one begins before the other ends.
        if b == len(ends) or (a < len(starts) and starts[a] <= ends[b]):
            count += 1
            if count == rank:
                pieces[n, 0] = starts[a]
                inside = True
            a += 1
        else:
            if count == rank:
                pieces[n, 1] = ends[b]
                n += 1
                inside = False
            count -= 1
            b += 1
    if inside:
        pieces[n, 1] = np.inf
        n += 1
    return pieces[:n].copy()


@njit(cache=True, nogil=True)
def two_sided_pieces(rho: Array, beta: Array, rank: int, slack: float) -> Array:
    """As `sweep_two_sided`, for compiled callers."""
    starts, ends = np.empty(len(rho)), np.empty(len(rho))
    n_starts, n_ends, n_open = 0, 0, 0
    for i in range(len(rho)):
        height = abs(rho[i])
        slope = beta[i] if rho[i] >= 0.0 else -beta[i]
        if abs(slope) < OWN:
            starts[n_starts] = -(height + slack) / (OWN - slope)
            ends[n_ends] = (height + slack) / (OWN + slope)
            n_starts, n_ends = n_starts + 1, n_ends + 1
        elif height <= slack:
            n_open += 1  # the whole line
        elif slope == OWN:
            ends[n_ends] = (height + slack) / (2.0 * OWN)
            n_ends, n_open = n_ends + 1, n_open + 1
        elif slope == -OWN:
            starts[n_starts] = -(height + slack) / (2.0 * OWN)
            n_starts += 1
        else:
            # Two rays, with a gap on the side of the slope's sign.
            sign = 1.0 if slope > 0.0 else -1.0
            near = sign * (height + slack) / (abs(slope) + OWN)
            far = sign * (height - slack) / (abs(slope) - OWN)
            ends[n_ends], starts[n_starts] = min(near, far), max(near, far)
            n_starts, n_ends, n_open = n_starts + 1, n_ends + 1, n_open + 1
    return _walk(starts[:n_starts], ends[:n_ends], n_open, rank)


@njit(cache=True, nogil=True)
def one_sided_pieces(rho: Array, beta: Array, rank: int, slack: float) -> Array:
    """As `sweep_one_sided`, for compiled callers."""
    starts, ends = np.empty(len(rho)), np.empty(len(rho))
    n_starts, n_ends, n_open = 0, 0, 0
    for i in range(len(rho)):
        if beta[i] > -1.0:
            ends[n_ends] = (rho[i] + slack) / (1.0 + beta[i])
            n_ends, n_open = n_ends + 1, n_open + 1
        elif beta[i] < -1.0:
            starts[n_starts] = (rho[i] + slack) / (1.0 + beta[i])
            n_starts += 1
        elif rho[i] >= -slack:
            n_open += 1
    return _walk(starts[:n_starts], ends[:n_ends], n_open, rank)


@njit(cache=True, nogil=True)
def count_nonconforming(rho: Array, beta: Array, t: float, slack: float) -> tuple[int, int]:
    """Return how many labelled rows are more nonconforming than the unlabelled row at `t`, and how many tie with it.

    Shapes: rho, beta (l,).
    """
    above, tied = 0, 0
    for i in range(len(rho)):
        excess = abs(rho[i] - beta[i] * t) - abs(t)
        rounding = slack + (1.0 - OWN) * abs(t)
        if excess > rounding:
            above += 1
        elif excess >= -rounding:
            tied += 1
    return above, tied


@njit(cache=True, nogil=True)
def counts_by_class(
    rho: Array, beta: Array, codes: AnyArray, prediction: Array, slack: float
) -> tuple[AnyArray, AnyArray]:
    """As `count_nonconforming_by_class`, for compiled callers."""
    overall = np.zeros((2, len(prediction)), dtype=np.intp)
    within = np.zeros((2, len(prediction)), dtype=np.intp)
    for i in range(len(rho)):
        own = codes[i]
        if_same = abs(rho[i] - beta[i] * (1.0 - prediction[own]))
        if_other = abs(rho[i] - beta[i] * (-1.0 - prediction[own]))
        for candidate in range(len(prediction)):
            unlabelled = abs(1.0 - prediction[candidate])
            excess = (if_same if candidate == own else if_other) - unlabelled
            rounding = slack + (1.0 - OWN) * unlabelled
            if excess >= -rounding:
                line = 0 if excess > rounding else 1
                overall[line, candidate] += 1
                if candidate == own:
                    within[line, candidate] += 1
    return overall, within


# Doors for callers in Python. A cached function that returns arrays must not be called from Python and from compiled
# code both: numba then finds two copies of it, and the one from the compiled caller cannot make Python's arrays.


@njit(cache=True, nogil=True)
def residual_lines(
    residuals: Array, diagonal: Array, weights: Array, pivot: float, power: float
) -> tuple[Array, Array]:
    """Return ``rho`` and ``beta`` of the labelled rows, for one unlabelled row.

    Shapes: residuals, diagonal, weights (l,); returns rho, beta (l,).
    """
    return row_lines(residuals, diagonal, weights, pivot, power)


@njit(cache=True, nogil=True)
def sweep_two_sided(rho: Array, beta: Array, rank: int, slack: float) -> Array:
    """Return the two-sided region for any lines, as closed pieces from left to right.

    Shapes: rho, beta (l,); returns (n_pieces, 2).
    """
    return two_sided_pieces(rho, beta, rank, slack)


@njit(cache=True, nogil=True)
def sweep_one_sided(rho: Array, beta: Array, rank: int, slack: float) -> Array:
    """Return ``{t : rho_i - beta_i t >= t for at least rank rows}`` for any lines, as closed pieces.

    Parameters as in `sweep_two_sided`; for a lower bound pass ``-rho`` and mirror the pieces.
    """
    return one_sided_pieces(rho, beta, rank, slack)


@njit(cache=True, nogil=True)
def count_nonconforming_by_class(
    rho: Array, beta: Array, codes: AnyArray, prediction: Array, slack: float
) -> tuple[AnyArray, AnyArray]:
    """Return, for each candidate class, how many rows are more nonconforming or tie: of all, and of that class.

    Shapes: rho, beta (l,), codes (l,), prediction (n_classes,); returns overall, within (2, n_classes).
    """
    return counts_by_class(rho, beta, codes, prediction, slack)
