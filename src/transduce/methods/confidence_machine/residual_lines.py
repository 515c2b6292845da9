"""Labels at which one row's residual is not nonconforming among the others': exact, compiled.

Complete a sample with label ``prediction + t`` at one unlabelled row. After scaling, that row's
residual is ``t`` and every labelled row's is a line, ``rho_i - beta_i t``, where (see
`bordered_ridge`)::

    rho_i = s r_i / w_i,   beta_i = g_i / w_i,   w_i = (s G_ii + g_i^2) ** power

and ``power`` is 0, 1/2 or 1 for plain, studentized or deleted residuals. Labelled row ``i`` is at
least as nonconforming as the unlabelled row on ``S_i = {t : |rho_i - beta_i t| >= |t|}``. The
region is the set of ``t`` that lie in at least `rank` of the ``S_i``. One-sided regions drop the
absolute values. Rounding must not break ties: everywhere here, in regions and counts alike, ``|t|``
is read as ``OWN |t| - slack`` with ``OWN`` a hair below 1.

Two routes to the region: *selection* when all ``|beta_i| < 1``, where the ends are order statistics
of ``rho_i / (1 ± beta_i)``; else a *sweep* along the sorted ends of all ``S_i``. A third and faster
one, for the primal form of the ridge regression, is in `window`. Each is tested against the next.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from transduce.core.types import AnyArray, Array
from transduce.device.lines import OWN

POWER = {"plain": 0.0, "studentized": 0.5, "deleted": 1.0}
SIDE = {"two": 0, "upper": 1, "lower": -1}  # on which sides a region is bounded


# A flag of its own: without one it takes that of the function that is compiled first, and the
# last digit of an answer would depend on which that is.
@njit(cache=True, nogil=True, fastmath={"contract"})
def residual_scale(pivot: float, diagonal: float, weight: float, power: float) -> float:
    """Return ``w_i``, what the residual of a labelled row is divided by."""
    if power == 0.0:
        return 1.0
    variance = pivot * diagonal + weight * weight
    if power == 0.5:
        return np.sqrt(variance)
    return variance


@njit(cache=True, nogil=True)
def kth_largest(values: Array, k: int) -> float:
    """Return the `k`-th largest of the values by selection, which rearranges them."""
    first = 0
    last = len(values) - 1
    wanted = len(values) - k
    while last > first:
        middle = values[(first + last) // 2]
        i = first
        j = last
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
    residuals: Array,
    diagonal: Array,
    weights: Array,
    pivot: float,
    power: float,
) -> tuple[Array, Array]:
    """As `residual_lines`, for compiled callers."""
    # A row that no other row can stand in for has scale 0: it has no deleted residual, so it is
    # never nonconforming.
    rho = np.zeros(len(residuals))
    beta = np.zeros(len(residuals))
    for i in range(len(residuals)):
        scale = residual_scale(pivot, diagonal[i], weights[i], power)
        if scale > 0.0:
            rho[i] = pivot * residuals[i] / scale
            beta[i] = weights[i] / scale
    return rho, beta


# ------------------------------------------------------------------------------------ the region


@njit(cache=True, nogil=True)
def two_sided_sets(rho: Array, beta: Array, slack: float) -> tuple[Array, Array, int]:
    """Return where the ``S_i`` of lines (l,) start and end, and how many begin at -inf."""
    starts = np.empty(len(rho))
    ends = np.empty(len(rho))
    n_starts = 0
    n_ends = 0
    n_open = 0
    for i in range(len(rho)):
        height = abs(rho[i])
        slope = beta[i]
        if rho[i] < 0.0:
            slope = -slope
        if abs(slope) < OWN:
            starts[n_starts] = -(height + slack) / (OWN - slope)
            ends[n_ends] = (height + slack) / (OWN + slope)
            n_starts += 1
            n_ends += 1
        elif height <= slack:
            n_open += 1  # the whole line
        elif slope == OWN:
            ends[n_ends] = (height + slack) / (2.0 * OWN)
            n_ends += 1
            n_open += 1
        elif slope == -OWN:
            starts[n_starts] = -(height + slack) / (2.0 * OWN)
            n_starts += 1
        else:
            # Two rays, with a gap on the side of the slope's sign.
            near, far = _gap(height, slope, slack)
            ends[n_ends] = min(near, far)
            starts[n_starts] = max(near, far)
            n_starts += 1
            n_ends += 1
            n_open += 1
    return starts[:n_starts], ends[:n_ends], n_open


@njit(cache=True, nogil=True)
def _gap(height: float, slope: float, slack: float) -> tuple[float, float]:
    """Return the ends of the gap between two rays, the one nearer to 0 first."""
    sign = -1.0
    if slope > 0.0:
        sign = 1.0
    near = sign * (height + slack) / (abs(slope) + OWN)
    far = sign * (height - slack) / (abs(slope) - OWN)
    return near, far


@njit(cache=True, nogil=True)
def one_sided_sets(rho: Array, beta: Array, slack: float) -> tuple[Array, Array, int]:
    """Return the same of the sets ``{t : rho_i - beta_i t >= t}``."""
    starts = np.empty(len(rho))
    ends = np.empty(len(rho))
    n_starts = 0
    n_ends = 0
    n_open = 0
    for i in range(len(rho)):
        if beta[i] > -1.0:
            ends[n_ends] = (rho[i] + slack) / (1.0 + beta[i])
            n_ends += 1
            n_open += 1
        elif beta[i] < -1.0:
            starts[n_starts] = (rho[i] + slack) / (1.0 + beta[i])
            n_starts += 1
        elif rho[i] >= -slack:
            n_open += 1
    return starts[:n_starts], ends[:n_ends], n_open


@njit(cache=True, nogil=True)
def region_pieces(
    rho: Array,
    beta: Array,
    rank: int,
    side: int,
    slack: float,
) -> Array:
    """As `line_region`, for compiled callers."""
    if rank == 0:
        return one_interval(-np.inf, np.inf)
    if side == 0:
        return _two_sided_region(rho, beta, rank, slack)
    upper_bounds = _one_sided_region(side * rho, beta, rank, slack)
    if side < 0:
        return -upper_bounds[::-1, ::-1]
    return upper_bounds


@njit(cache=True, nogil=True)
def _two_sided_region(rho: Array, beta: Array, rank: int, slack: float) -> Array:
    """Return where at least `rank` of the ``S_i`` overlap."""
    starts, ends, n_open = two_sided_sets(rho, beta, slack)
    if len(ends) < len(rho) or n_open > 0:
        return sweep_sets(starts, ends, rank - n_open)
    # Each set is an interval about 0.
    low = kth_largest(starts, len(rho) + 1 - rank)
    high = kth_largest(ends, rank)
    return one_interval(low, high)


@njit(cache=True, nogil=True)
def _one_sided_region(rho: Array, beta: Array, rank: int, slack: float) -> Array:
    """Return the same of the one-sided sets."""
    starts, ends, n_open = one_sided_sets(rho, beta, slack)
    if len(ends) < len(rho) or n_open < len(rho):
        return sweep_sets(starts, ends, rank - n_open)
    # Each set is a ray that comes from -inf and ends.
    return one_interval(-np.inf, kth_largest(ends, rank))


@njit(cache=True, nogil=True)
def one_interval(low: float, high: float) -> Array:
    """Return one piece; numba compiles this in a tenth of the time of a list of lists."""
    piece = np.empty((1, 2))
    piece[0, 0] = low
    piece[0, 1] = high
    return piece


@njit(cache=True, nogil=True)
def sweep_sets(starts: Array, ends: Array, needed: int) -> Array:
    """Return the pieces where so many closed sets overlap, besides those that begin at -inf."""
    starts.sort()
    ends.sort()
    pieces = np.empty((len(starts) + 1, 2))
    n_pieces = 0
    n_overlapping = 0
    next_start = 0
    next_end = 0
    inside = n_overlapping >= needed
    if inside:
        pieces[0, 0] = -np.inf
    while next_start < len(starts) or next_end < len(ends):
        if _starts_next(starts, ends, next_start, next_end):
            n_overlapping += 1
            if n_overlapping == needed:
                pieces[n_pieces, 0] = starts[next_start]
                inside = True
            next_start += 1
        else:
            if n_overlapping == needed:
                pieces[n_pieces, 1] = ends[next_end]
                n_pieces += 1
                inside = False
            n_overlapping -= 1
            next_end += 1
    if inside:
        pieces[n_pieces, 1] = np.inf
        n_pieces += 1
    return pieces[:n_pieces].copy()


@njit(cache=True, nogil=True)
def _starts_next(starts: Array, ends: Array, next_start: int, next_end: int) -> bool:
    """Return whether a set starts before the next one ends; so it does at equal places: closed."""
    if next_end == len(ends):
        return True
    return next_start < len(starts) and starts[next_start] <= ends[next_end]


# ------------------------------------------------------------------------------------ the counts


@njit(cache=True, nogil=True)
def count_nonconforming(
    rho: Array,
    beta: Array,
    t: float,
    slack: float,
) -> tuple[int, int]:
    """Return how many lines (l,) are more nonconforming than the row at `t`, and how many tie."""
    n_above = 0
    n_tied = 0
    rounding = slack + (1.0 - OWN) * abs(t)
    for i in range(len(rho)):
        excess = abs(rho[i] - beta[i] * t) - abs(t)
        if excess > rounding:
            n_above += 1
        elif excess >= -rounding:
            n_tied += 1
    return n_above, n_tied


@njit(cache=True, nogil=True)
def counts_by_class(
    rho: Array,
    beta: Array,
    codes: AnyArray,
    prediction: Array,
    slack: float,
) -> tuple[AnyArray, AnyArray]:
    """As `count_nonconforming_by_class`, for compiled callers."""
    overall = np.zeros((2, len(prediction)), dtype=np.intp)
    within = np.zeros((2, len(prediction)), dtype=np.intp)
    class_sizes = np.bincount(codes)
    for i in range(len(rho)):
        code = codes[i]
        if_same_class = abs(rho[i] - beta[i] * (1.0 - prediction[code]))
        if_other_class = abs(rho[i] - beta[i] * (-1.0 - prediction[code]))
        for candidate in range(len(prediction)):
            if candidate != code and class_sizes[code] == 1:
                # The only row of its class in the completed sample.
                overall[0, candidate] += 1
                continue
            residual = if_other_class
            if candidate == code:
                residual = if_same_class
            unlabelled = abs(1.0 - prediction[candidate])
            excess = residual - unlabelled
            rounding = slack + (1.0 - OWN) * unlabelled
            if excess >= -rounding:
                tied = int(excess <= rounding)
                overall[tied, candidate] += 1
                if candidate == code:
                    within[tied, candidate] += 1
    return overall, within


# ----------------------------------------------------------------------------- what Python calls

# A cached function that returns arrays must not be called both from Python and from compiled code:
# numba then finds two copies of it, and the one from the compiled caller cannot make Python's
# arrays.


@njit(cache=True, nogil=True)
def residual_lines(
    residuals: Array,
    diagonal: Array,
    weights: Array,
    pivot: float,
    power: float,
) -> tuple[Array, Array]:
    """Return ``rho`` and ``beta`` (l,) for one unlabelled row, from arrays (l,) and its pivot."""
    return row_lines(residuals, diagonal, weights, pivot, power)


@njit(cache=True, nogil=True)
def line_region(
    rho: Array,
    beta: Array,
    rank: int,
    side: int,
    slack: float,
) -> Array:
    """Return the pieces (k, 2) of one region about the prediction: by selection, else by sweep."""
    return region_pieces(rho, beta, rank, side, slack)


@njit(cache=True, nogil=True)
def count_nonconforming_by_class(
    rho: Array,
    beta: Array,
    codes: AnyArray,
    prediction: Array,
    slack: float,
) -> tuple[AnyArray, AnyArray]:
    """Return how many lines are more nonconforming or tie, for each candidate class.

    Two arrays (2, n_classes): among all labelled rows, and among those of the candidate class.
    """
    # The only row of its class is infinitely nonconforming, so that a class that no label shows
    # has a p-value too.
    return counts_by_class(rho, beta, codes, prediction, slack)
