"""Labels at which one row's residual is not nonconforming among the others': exact, compiled.

Complete a sample with label ``prediction + t`` at one unlabelled row. After scaling, that row's residual is
``t`` and every labelled row's is a line, ``rho_i - beta_i t``, where (see `machine`)::

    rho_i = s r_i / w_i,   beta_i = g_i / w_i,   w_i = (s G_ii + g_i^2) ** power

and ``power`` is 0, 1/2 or 1 for plain, studentized or deleted residuals. Labelled row ``i`` is at least as
nonconforming as the unlabelled row on ``S_i = {t : |rho_i - beta_i t| >= |t|}``. The region is the set of ``t`` that
lie in at least `rank` of the ``S_i``. One-sided regions drop the absolute values. Rounding must not break ties:
everywhere here, in regions and counts alike, ``|t|`` is read as ``OWN |t| - slack`` with ``OWN`` a hair below 1.

Three routes to the same region, each tested against the next: the *window* of the primal form; *selection* when all
``|beta_i| < 1``, where the ends are order statistics of ``rho_i / (1 ± beta_i)``; else a *sweep* along the sorted ends
of all ``S_i``. The window: since the ``beta_i`` are small, the wanted order statistic is near the same one of the
numerators, which are sorted once for all unlabelled rows. So guess a bracket around that one, and check:

- Cauchy-Schwarz bounds ``beta_i`` by the leverage of row i, so most rows are above or below the bracket for certain;
- for the few others the ends are computed, and those above the bracket are counted;
- if the wanted rank falls into the bracket, the end is found there; otherwise a wider bracket is tried.

Rows are in groups of like leverage, so that one row far from the others does not loosen the bound for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from transduce.core.types import AnyArray, Array, Mask
from transduce.device.lines import OWN

POWER = {"plain": 0.0, "studentized": 0.5, "deleted": 1.0}
SIDE = {"two": 0, "upper": 1, "lower": -1}  # on which sides a region is bounded


# Its own flag: without one it has that of whoever is compiled first, and answers differ in their last digit.
@njit(cache=True, nogil=True, fastmath={"contract"})
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
def _walk(starts: Array, ends: Array, needed: int) -> Array:
    """Return the pieces where so many closed sets overlap, besides those that begin at -inf."""
    starts.sort()
    ends.sort()
    pieces = np.empty((len(starts) + 1, 2))
    n, count, a, b = 0, 0, 0, 0
    inside = count >= needed
    if inside:
        pieces[0, 0] = -np.inf
    while a < len(starts) or b < len(ends):
        # Closed sets: at equal places one begins before the other ends.
        if b == len(ends) or (a < len(starts) and starts[a] <= ends[b]):
            count += 1
            if count == needed:
                pieces[n, 0] = starts[a]
                inside = True
            a += 1
        else:
            if count == needed:
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
def two_sided_sets(rho: Array, beta: Array, slack: float) -> tuple[Array, Array, int]:
    """Return where the ``S_i`` of lines (l,) start and end, and how many begin at -inf."""
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
    return starts[:n_starts], ends[:n_ends], n_open


@njit(cache=True, nogil=True)
def one_sided_sets(rho: Array, beta: Array, slack: float) -> tuple[Array, Array, int]:
    """Return the same of the sets ``{t : rho_i - beta_i t >= t}``."""
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
    return starts[:n_starts], ends[:n_ends], n_open


@njit(cache=True, nogil=True)
def region_pieces(rho: Array, beta: Array, rank: int, side: int, slack: float) -> Array:
    """As `line_region`, for compiled callers."""
    if rank == 0:
        return _interval(-np.inf, np.inf)
    lines, n = (side * rho if side else rho), len(rho)
    starts, ends, n_open = (
        one_sided_sets(lines, beta, slack) if side else two_sided_sets(lines, beta, slack)
    )
    if len(ends) == n and n_open == (
        n if side else 0
    ):  # each is an interval about 0, or a ray that ends
        low = -np.inf if side else kth_largest(starts, n + 1 - rank)
        pieces = _interval(low, kth_largest(ends, rank))
    else:
        pieces = _walk(starts, ends, rank - n_open)
    return -pieces[::-1, ::-1] if side < 0 else pieces


@njit(cache=True, nogil=True)
def _interval(low: float, high: float) -> Array:
    """Return one piece; numba compiles this in a tenth of the time of a list of lists."""
    piece = np.empty((1, 2))
    piece[0, 0], piece[0, 1] = low, high
    return piece


@njit(cache=True, nogil=True)
def count_nonconforming(rho: Array, beta: Array, t: float, slack: float) -> tuple[int, int]:
    """Return how many labelled rows, lines (l,), are more nonconforming than the row at `t`, and how many tie."""
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
    sizes = np.bincount(codes)
    for i in range(len(rho)):
        own = codes[i]
        if_same = abs(rho[i] - beta[i] * (1.0 - prediction[own]))
        if_other = abs(rho[i] - beta[i] * (-1.0 - prediction[own]))
        for candidate in range(len(prediction)):
            if (
                candidate != own and sizes[own] == 1
            ):  # the only row of its class in the completed sample
                overall[0, candidate] += 1
                continue
            unlabelled = abs(1.0 - prediction[candidate])
            excess = (if_same if candidate == own else if_other) - unlabelled
            rounding = slack + (1.0 - OWN) * unlabelled
            if excess >= -rounding:
                line = 0 if excess > rounding else 1
                overall[line, candidate] += 1
                if candidate == own:
                    within[line, candidate] += 1
    return overall, within


# What Python calls. A cached function that returns arrays must not be called from Python and from compiled
# code both: numba then finds two copies of it, and the one from the compiled caller cannot make Python's arrays.


@njit(cache=True, nogil=True)
def residual_lines(
    residuals: Array, diagonal: Array, weights: Array, pivot: float, power: float
) -> tuple[Array, Array]:
    """Return ``rho`` and ``beta`` (l,) for one unlabelled row, from residuals, diagonal and weights (l,)."""
    return row_lines(residuals, diagonal, weights, pivot, power)


@njit(cache=True, nogil=True)
def line_region(rho: Array, beta: Array, rank: int, side: int, slack: float) -> Array:
    """Return the pieces (k, 2) of one region about the prediction, from lines (l,): by selection, else by sweep."""
    return region_pieces(rho, beta, rank, side, slack)


@njit(cache=True, nogil=True)
def count_nonconforming_by_class(
    rho: Array, beta: Array, codes: AnyArray, prediction: Array, slack: float
) -> tuple[AnyArray, AnyArray]:
    """Return for each class how many rows are more nonconforming, or tie: of all and of that class, (2, n_classes)."""
    # The only row of its class is infinitely nonconforming, so that a class that no label shows has a p-value too.
    return counts_by_class(rho, beta, codes, prediction, slack)


# ------------------------------------------------------------------------------------------------------- the window

# Leverages of a group, in units of the mean: each limit is the largest of one group; the last group has no limit.
LIMITS = np.array([1.0, 1.5, 2.25, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0])
WHOLE = 4  # rows above this limit are never left out
HALF_BRACKET = 3  # ranks to either side of the guess
ROUNDING = 1e-9  # bounds are real-number inequalities, and are widened by this
STEP = 1.42  # the rows open at a leverage are kept until it has grown by this factor
LARGEST_BLOCK = 2048  # selection takes care of more open rows
LANES = 64  # unlabelled rows at a time
MANY = 64  # open rows from which on selection is faster than insertion
TINY = 1e-14  # what leverages of about 1 may be wrong by
LARGEST_RATIO = 1e3  # looser bounds are none: rounding could break them


@njit(cache=True, nogil=True)
def window_factors(leverage: float, q: float, power: float) -> tuple[float, float]:
    """Return by how much the end that belongs to a labelled row can differ from where ``g = 0`` would put it."""
    # In feature space ``g_i = <phi_i, M^-1 phi>``, so ``g_i^2 <= q_i q`` with the leverages ``q_i`` of the
    # labelled row and ``q`` of the unlabelled row under the same ``M`` (Cauchy-Schwarz).
    # With ``s G_ii = (1 + q)(1 - q_i)`` this bounds ``1 ± g``, ``D ± g`` and, because
    # ``sqrt(1 + b^2) ± b = exp(± asinh b)``, ``sqrt(D) ± g``, where ``D = s G_ii + g^2``.
    g = np.sqrt(leverage * q)
    if power == 0.0:
        shrink, grow = 1.0 - g, 1.0 + g
    elif leverage > 1.0 - ROUNDING:
        return 0.0, np.inf
    else:
        b = g / np.sqrt((1.0 - leverage) * (1.0 + q))
        if power == 0.5:
            grow = b + np.sqrt(1.0 + b * b)
            shrink = 1.0 / grow
        else:
            e = g / ((1.0 + q) * (1.0 - leverage))
            shrink, grow = 1.0 - e, 1.0 + b * b + e
    if grow > LARGEST_RATIO * shrink:
        return 0.0, np.inf
    return shrink * (1.0 - ROUNDING), grow * (1.0 + ROUNDING)


class LabelledOrder(NamedTuple):
    """The labelled rows in the order in which the ends of regions are looked up."""

    order: AnyArray  # (k,) positions of the labelled rows
    base: Array  # (k,) ``residual / diagonal ** power`` in that order
    starts: AnyArray  # (n_groups + 1,) the rows of a group are ``order[starts[group] : starts[group + 1]]``
    leverage: Array  # (n_groups,) the largest leverage of each group
    ranked: Array  # (r,) the largest ``residual / diagonal ** power`` of all rows, ascending
    rest: float  # A bound on the leverages of the rows left out, whose bases are below all of `ranked`


class Lines(NamedTuple):
    """What else makes the lines of the labelled rows: `X` centred if there is an intercept, ``G_ii``, and settings."""

    X: Array
    residuals: Array
    diagonal: Array
    offset: float
    ridge: float
    power: float
    slack: float
    side: int  # as in `SIDE`


class Leverages(NamedTuple):
    """Leverages of the labelled rows: `bounds` that they do not exceed, their `mean`, and `exact` ones at positions."""

    bounds: Array
    mean: float
    exact: Callable[[AnyArray], Array]


def order_rows(
    residuals: Array,
    diagonal: Array,
    leverages: Leverages,
    power: float,
    side: str,
    depth: int | None = None,
) -> LabelledOrder:
    """Return the order of the labelled rows, the same for all unlabelled rows. Shapes: residuals, diagonal (l,)."""
    signed = -residuals if side == "lower" else np.abs(residuals) if side == "two" else residuals
    base = signed
    if power > 0.0:
        # A row that no other row can stand in for has diagonal 0; its group has no bound, and is visited whole.
        bounded = leverages.bounds < 1.0 - ROUNDING
        base = np.divide(signed, diagonal**power, out=np.zeros(len(signed)), where=bounded)
    limits = LIMITS * (leverages.mean + TINY)
    if depth is not None and 2 * depth < len(base):
        top, rest = _about_largest(base, depth), float(limits[WHOLE])
        kept, ranks = np.flatnonzero(top | (leverages.bounds > rest)), int(np.count_nonzero(top))
    else:
        kept, rest, ranks = np.arange(len(base)), 0.0, len(base)
    ascending = kept[np.argsort(base[kept])]
    ranked = base[ascending[len(ascending) - ranks :]]
    order, starts, largest = _group(ascending, leverages.exact(ascending) + TINY, limits)
    return LabelledOrder(order, base[order], starts, largest, ranked, rest)


def _about_largest(values: Array, depth: int) -> Mask:
    """Return where about so many of the largest values are, and at least half as many; judged by some of them."""
    for some in (values[:: max(1, min(8, depth // 100))], values):
        place = len(some) - depth * len(some) // len(values)
        top = values >= np.partition(some, place)[place]
        if 2 * np.count_nonzero(top) >= depth:
            break
    return top


@njit(cache=True, nogil=True)
def _group(
    ascending: AnyArray, leverages: Array, limits: Array
) -> tuple[AnyArray, AnyArray, Array]:
    """Return positions (with their leverages) group after group, where each group starts, and its largest leverage."""
    group, n_groups = np.searchsorted(limits, leverages), len(limits) + 1
    places, largest = np.zeros(n_groups + 1, dtype=np.intp), np.zeros(n_groups)
    for i in range(len(group)):
        places[group[i] + 1] += 1
        largest[group[i]] = max(largest[group[i]], leverages[i])
    some = places[1:] > 0
    places = np.cumsum(places)
    starts = np.append(places[:-1][some], len(group))
    order = np.empty_like(ascending)
    for i in range(len(group)):
        order[places[group[i]]] = ascending[i]
        places[group[i]] += 1
    return order, starts, largest[some]


class Block(NamedTuple):
    """Room for the labelled rows that are open for some unlabelled rows, and for their ends at `LANES` of these."""

    X: Array  # (size, d) the labelled rows, with their sign
    parts: Array  # (3, size) their residual, share of the intercept and diagonal
    # A column for each unlabelled row: loops over these are what the processor does several of at a time.
    z: Array  # (d, n_lanes)
    pivot: Array  # (n_lanes,)
    steep: Array  # (n_lanes,) how many rows have ``|beta| >= 1``
    ends: Array  # (3, size, n_lanes) their weights, and their ends below and above


@njit(cache=True, nogil=True)
def window_ends(
    labelled: LabelledOrder,
    lines: Lines,
    prediction: Array,
    pivot: Array,
    z: Array,
    rank: int,
) -> Array:
    """Return the ends (m, 2) of each region, looking only at the rows the bounds leave open; NaN where that fails."""
    size = 2 * ((min(len(labelled.base), LARGEST_BLOCK) + 1) // 2)  # rows are taken in pairs
    ends, n_lanes = np.full((len(z), 2), np.nan), min(len(z), LANES)
    lanes = np.empty((z.shape[1], n_lanes)), np.empty(n_lanes), np.empty(n_lanes)
    block = Block(
        np.empty((size, z.shape[1])), np.empty((3, size)), *lanes, np.empty((3, size, n_lanes))
    )
    middle, half, undecided = (
        len(labelled.ranked) - rank,
        HALF_BRACKET,
        _by_leverage(pivot, lines.ridge),
    )
    while len(undecided) > 0 and half <= 3 * len(labelled.ranked):
        # The numbers so many ranks to either side of the middle one; infinite where there are none.
        least = labelled.ranked[middle - half] if middle >= half else -np.inf
        most = labelled.ranked[middle + half] if middle + half < len(labelled.ranked) else np.inf
        n_wider, covered, n, n_above, start, stop = 0, -1.0, 0, 0, 0, 0
        while start < len(undecided):
            q = _leverage(pivot[undecided[start]], lines.ridge)
            if q > covered:
                covered = STEP * q
                n, n_above = _fill_block(labelled, lines, covered, (least, middle, most), block)
            while stop < min(start + n_lanes, len(undecided)):
                j, k = undecided[stop], stop - start
                if _leverage(pivot[j], lines.ridge) > covered:
                    break
                block.pivot[k] = pivot[j]
                for c in range(len(block.z)):
                    block.z[c, k] = z[j, c]
                stop += 1
            if n <= size:
                _write_ends(block, n, lines, stop - start)
                inside = _select(block.ends, n, rank - n_above, stop - start)
                for k in range(stop - start):
                    j, unit = undecided[start + k], _unit(block.pivot[k], lines.power)
                    below, above = block.ends[1, 0, k], block.ends[2, 0, k]
                    if block.steep[k] > 0.0:
                        continue
                    if (
                        inside
                        and unit * least <= min(below, above)
                        and max(below, above) <= unit * most
                    ):
                        below = above if lines.side < 0 else below
                        ends[j, 0] = -np.inf if lines.side > 0 else prediction[j] - below
                        ends[j, 1] = np.inf if lines.side < 0 else prediction[j] + above
                    else:  # needs a wider bracket
                        undecided[n_wider] = j
                        n_wider += 1
            start = stop
        undecided, half = undecided[:n_wider], 3 * half
    return ends


@njit(cache=True, nogil=True)
def _by_leverage(pivot: Array, ridge: float) -> AnyArray:
    """Return the unlabelled rows with like leverages one after another, within a factor of the square root of 2."""
    # The power of 2 in their squares, least first: from -1074 to 1024 in double precision.
    levels, places = np.empty(len(pivot), dtype=np.intp), np.zeros(2100, dtype=np.intp)
    for j in range(len(pivot)):
        square = (pivot[j] - ridge) ** 2
        levels[j] = 1074 + min(max(math.frexp(square)[1], -1074), 1024) if square > 0.0 else 0
        places[levels[j] + 1] += 1
    places, order = np.cumsum(places), np.empty(len(pivot), dtype=np.intp)
    for j in range(len(pivot)):
        order[places[levels[j]]] = j
        places[levels[j]] += 1
    return order


@njit(cache=True, nogil=True)
def _leverage(pivot: float, ridge: float) -> float:
    """Return the leverage of an unlabelled row, from its pivot."""
    return max(pivot / ridge - 1.0, 0.0) + TINY


@njit(cache=True, nogil=True)
def _unit(pivot: float, power: float) -> float:
    """Return ``s ** (1 - power)``: ends in this unit are comparable to ``residual / diagonal ** power``."""
    if power == 0.5:
        return np.sqrt(pivot)
    return pivot if power == 0.0 else 1.0


@njit(cache=True, nogil=True)
def _lowest(least: float, slack: float, shrink: float, grow: float) -> float:
    """Return below which base an end is below the bracket for certain; -inf if no base is."""
    # A slack adds at most ``grow / shrink`` times itself to an end; the caller has multiplied it by the largest ratio.
    if shrink <= 0.0:
        return -np.inf
    return (least * shrink if least >= 0.0 else least * grow) - slack * grow


@njit(cache=True, nogil=True)
def _fill_block(
    labelled: LabelledOrder, lines: Lines, q: float, bracket: tuple[float, int, float], block: Block
) -> tuple[int, int]:
    """Collect the rows whose ends may lie in a bracket; return how many, and how many are above for certain."""
    # The bracket: its ends in the unit of `base`, and between them the place of its middle among all ranks.
    least, middle, most = bracket
    slack = LARGEST_RATIO * lines.slack / _unit(lines.ridge, lines.power)
    base, n, n_above = labelled.base, 0, 0
    firsts, lasts = labelled.starts[:-1].copy(), labelled.starts[1:].copy()
    if labelled.rest > 0.0:
        shrink, grow = window_factors(labelled.rest, q, lines.power)
        if not _lowest(least, slack, shrink, grow) > labelled.ranked[0]:
            return len(block.X) + 1, 0
    for k in range(len(labelled.leverage)):
        start, stop = labelled.starts[k], labelled.starts[k + 1]
        shrink, grow = window_factors(labelled.leverage[k], q, lines.power)
        first, last = start, stop
        if shrink > 0.0:
            low = _lowest(least, slack, shrink, grow)
            high = most * grow if most >= 0.0 else most * shrink
            first = last = start + np.searchsorted(base[start:stop], labelled.ranked[middle])
            while first > start and base[first - 1] >= low:
                first -= 1
            while last < stop and base[last] <= high:
                last += 1
        n_above += stop - last
        firsts[k], lasts[k] = first, last
        n += last - first
    # In the order of the bases, which each group is in, the ends are nearly sorted, which makes selection fast.
    for at in range(n if n <= len(block.X) else 0):
        best = -1
        for k in range(len(firsts)):
            if firsts[k] < lasts[k] and (best < 0 or base[firsts[k]] < base[firsts[best]]):
                best = k
        _copy_row(labelled, lines, firsts[best], block, at)
        firsts[best] += 1
    if n % 2 and n <= len(block.X):  # rows are taken in pairs: any other one
        _copy_row(labelled, lines, 0, block, n)
    return n, n_above


@njit(cache=True, nogil=True)
def _copy_row(labelled: LabelledOrder, lines: Lines, place: int, block: Block, at: int) -> None:
    """Put a labelled row into the block, negated if its residual is negative in a region of two sides."""
    i = labelled.order[place]
    residual, sign = lines.side * lines.residuals[i], 1.0
    if lines.side == 0:
        residual, sign = abs(lines.residuals[i]), -1.0 if lines.residuals[i] < 0.0 else 1.0
    for c in range(lines.X.shape[1]):
        block.X[at, c] = sign * lines.X[i, c]
    block.parts[0, at] = residual
    block.parts[1, at] = sign * lines.offset
    block.parts[2, at] = lines.diagonal[i]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _write_ends(block: Block, n: int, lines: Lines, n_lanes: int) -> None:
    """Write the ends of the block's first `n` rows at each lane; where one is steep they mean nothing."""
    weights, below, above = block.ends[0], block.ends[1], block.ends[2]
    X, z, d = block.X, block.z, block.X.shape[1]
    fours = d // 4 * 4
    # Two rows and four features at a time: a weight is read and written once for four products, and `z` once for two.
    for i in range(0, n, 2):
        for k in range(n_lanes):
            weights[i, k], weights[i + 1, k] = block.parts[1, i], block.parts[1, i + 1]
        for c in range(fours, d):
            for k in range(n_lanes):
                weights[i, k] += X[i, c] * z[c, k]
                weights[i + 1, k] += X[i + 1, c] * z[c, k]
        for c in range(0, fours, 4):
            x0, x1, x2, x3 = X[i, c], X[i, c + 1], X[i, c + 2], X[i, c + 3]
            y0, y1, y2, y3 = X[i + 1, c], X[i + 1, c + 1], X[i + 1, c + 2], X[i + 1, c + 3]
            for k in range(n_lanes):
                z0, z1, z2, z3 = z[c, k], z[c + 1, k], z[c + 2, k], z[c + 3, k]
                weights[i, k] = x3 * z3 + (x2 * z2 + (x1 * z1 + (x0 * z0 + weights[i, k])))
                weights[i + 1, k] = y3 * z3 + (y2 * z2 + (y1 * z1 + (y0 * z0 + weights[i + 1, k])))
    for k in range(n_lanes):
        block.steep[k] = 0.0
    for i in range(n):
        residual, diagonal = block.parts[0, i], block.parts[2, i]
        for k in range(n_lanes):
            weight, pivot = weights[i, k], block.pivot[k]
            scale = residual_scale(pivot, diagonal, weight, lines.power)
            less, more = OWN * scale - weight, OWN * scale + weight
            both = (pivot * residual + lines.slack * scale) / (
                less * more
            )  # one division for two quotients
            block.steep[k] += 0.0 if abs(weight) < OWN * scale else 1.0
            below[i, k] = both * more
            above[i, k] = both * less


@njit(cache=True, nogil=True)
def _select(ends: Array, n: int, rank: int, n_lanes: int) -> bool:
    """Put the `rank`-th largest of each lane's first `n` ends into the first place; return whether there is one."""
    for values in (ends[1], ends[2]):
        # Insertion sort as far as the place: in the order of the bases numbers are nearly sorted: few steps are needed.
        for i in range(1, n if 1 <= rank <= n <= MANY else 0):
            at, other = min(i - 1, n - rank), i
            while at >= 0:
                n_moved = 0
                for k in range(n_lanes):
                    one, two = values[at, k], values[other, k]
                    n_moved += one > two
                    values[at, k] = two if one > two else one
                    values[other, k] = one if one > two else two
                if n_moved == 0:
                    break
                at, other = at - 1, at
        for k in range(n_lanes if 1 <= rank <= n else 0):
            values[0, k] = (
                values[n - rank, k] if n <= MANY else kth_largest(values[:n, k].copy(), rank)
            )
    return 1 <= rank <= n
