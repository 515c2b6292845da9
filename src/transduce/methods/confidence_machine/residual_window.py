"""The ends of a region from the handful of labelled rows that can matter: exact, compiled, primal form.

See `transduce.methods.confidence_machine.residual_lines` for the region itself. Its ends are order statistics of
``rho_i / (1 ± beta_i)``. Since the ``beta_i`` are small, the wanted one is near the same order statistic of the
numerators, which is the same for all unlabelled rows. So guess a bracket around that one, and check:

- Cauchy-Schwarz bounds ``beta_i`` by the leverage of row i, so most rows are above or below the bracket for certain;
- for the few others the ends are computed, and those above the bracket are counted;
- if the wanted rank falls into the bracket, the end is found there; otherwise a wider bracket is tried.

Rows are in groups of like leverage, so that one row far from the others does not loosen the bound for all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from transduce.core.types import AnyArray, Array
from transduce.device.lines import OWN
from transduce.methods.confidence_machine.residual_lines import kth_largest, residual_scale

# Leverages of a group, in units of the mean: each limit is the largest of one group; the last group has no limit.
LIMITS = np.array([1.0, 1.5, 2.25, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0])
WHOLE = 4  # rows above this limit are never left out
HALF_BRACKET = 3  # ranks to either side of the guess
ROUNDING = 1e-9  # bounds are real-number inequalities, and are widened by this
STEP = 1.4  # the rows open at a leverage are kept until it has grown by this factor
LARGEST_BLOCK = 2048  # selection takes care of more open rows
TINY = 1e-14  # what leverages of about 1 may be wrong by
LARGEST_RATIO = 1e3  # looser bounds are none: rounding could break them


@njit(cache=True, nogil=True)
def window_factors(leverage: float, q: float, power: float) -> tuple[float, float]:
    """Return by how much the end that belongs to a labelled row can differ from where ``g = 0`` would put it.

    Notes
    -----
    In feature space ``g_i = <phi_i, M^-1 phi>``, so ``g_i^2 <= q_i q`` with the leverages ``q_i`` of the
    labelled row and ``q`` of the unlabelled row under the same ``M`` (Cauchy-Schwarz).
    With ``s G_ii = (1 + q)(1 - q_i)`` this bounds ``1 ± g``, ``D ± g`` and, because
    ``sqrt(1 + b^2) ± b = exp(± asinh b)``, ``sqrt(D) ± g``, where ``D = s G_ii + g^2``.
    """
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
    sign: Array  # (k,) +1, or -1 where a row and its residual are to be negated; in the order of `order`
    residuals: Array  # (k,) residuals after that; likewise
    rest: float  # A bound on the leverages of the rows left out, whose bases are below all of `ranked`


class Lines(NamedTuple):
    """What else makes the lines of the labelled rows: `X` centred if there is an intercept, ``G_ii``, and settings."""

    X: Array
    diagonal: Array
    offset: float
    ridge: float
    power: float
    slack: float


class Leverages(NamedTuple):
    """Leverages of the labelled rows: `bounds` that they do not exceed, their `mean`, and `exact` ones at positions."""

    bounds: Array
    mean: float
    exact: Callable[[AnyArray], Array]


def order_rows(
    residuals: Array, diagonal: Array, leverages: Leverages, power: float, side: str, depth: int | None = None
) -> LabelledOrder:
    """Return the order of the labelled rows, the same for all unlabelled rows. Shapes: residuals, diagonal (l,)."""
    signed = -residuals if side == "lower" else np.abs(residuals) if side == "two" else residuals
    base = signed
    if power > 0.0:
        # A row that no other row can stand in for has diagonal 0; its group has no bound, and is visited whole.
        bounded = leverages.bounds < 1.0 - ROUNDING
        base = np.divide(signed, diagonal**power, out=np.zeros(len(signed)), where=bounded)
    limits = LIMITS * (leverages.mean + TINY)
    kept, rest, ranks = np.arange(len(base)), 0.0, len(base)
    if depth is not None and 2 * depth < len(base):
        top, rest = base >= _near_rank(base, depth), float(limits[WHOLE])
        kept, ranks = np.flatnonzero(top | (leverages.bounds > rest)), int(np.count_nonzero(top))
    ascending = kept[np.argsort(base[kept])]
    order, starts, largest = _group(ascending, leverages.exact(ascending) + TINY, limits)
    sign = np.where(residuals[order] < 0.0, -1.0, 1.0) if side == "two" else np.ones(len(order))
    ranked = base[ascending[len(ascending) - ranks :]]
    return LabelledOrder(order, base[order], starts, largest, ranked, sign, signed[order], rest)


def _near_rank(values: Array, depth: int) -> float:
    """Return a number that about so many of the values reach, and at least half as many; from some of them."""
    some = values[:: max(1, min(8, depth // 100))]
    place = len(some) - depth * len(some) // len(values)
    found = float(np.partition(some, place)[place])
    if 2 * np.count_nonzero(values >= found) >= depth:
        return found
    return float(np.partition(values, len(values) - depth)[len(values) - depth])


@njit(cache=True, nogil=True)
def _group(ascending: AnyArray, leverages: Array, limits: Array) -> tuple[AnyArray, AnyArray, Array]:
    """Return positions (with their leverages) group after group, where each group starts, and its largest leverage."""
    n_groups = len(limits) + 1
    starts, largest = np.zeros(n_groups + 1, dtype=np.intp), np.zeros(n_groups)
    group = np.empty(len(ascending), dtype=np.intp)
    for place in range(len(ascending)):
        own, value = 0, leverages[place]
        for k in range(len(limits)):
            own += value > limits[k]
        group[place] = own
        starts[own + 1] += 1
        largest[own] = max(largest[own], value)
    for k in range(n_groups):
        starts[k + 1] += starts[k]
    order, next_place = np.empty_like(ascending), starts.copy()
    for place in range(len(ascending)):
        order[next_place[group[place]]] = ascending[place]
        next_place[group[place]] += 1
    used = np.flatnonzero(largest)
    return order, np.append(starts[used], len(order)), largest[used]


class Block(NamedTuple):
    """Room for the labelled rows that are open for some unlabelled rows.

    `X` are the rows, with their sign; `parts` are their residual, share of the intercept and diagonal; `ends` are
    numerator, scale and weight for one unlabelled row; `spare` is room to select in.
    """

    X: Array
    parts: Array
    ends: Array
    spare: Array


@njit(cache=True, nogil=True)
def window_ends(
    labelled: LabelledOrder, lines: Lines, z: Array, pivot: Array, ascending: AnyArray, rank: int
) -> tuple[Array, Array]:
    """Return the ends of the region of each unlabelled row, looking only at the rows the bounds leave open.

    Shapes: z (m, d), pivot (m,), ascending (m,); returns below, above (m,).
    """
    middle, size = len(labelled.ranked) - rank, min(len(labelled.base), LARGEST_BLOCK)
    block = Block(np.empty((size, z.shape[1])), np.empty((3, size)), np.empty((3, size)), np.empty((4, size)))
    below, above = np.full(len(z), np.nan), np.full(len(z), np.nan)
    middles = _middles(labelled, middle)
    covered, half, n, n_above = -1.0, HALF_BRACKET, 0, 0
    for j in ascending:
        q = max(pivot[j] / lines.ridge - 1.0, 0.0) + TINY
        while True:
            least, most = _bracket(labelled.ranked, middle, half)
            if q > covered:
                covered = STEP * q
                n, n_above = _fill_block(labelled, lines, middles, covered, least, most, block)
            if n > size or not _write_ends(block, n, lines, z, j, pivot[j]):
                break
            unit = _unit(pivot[j], lines.power)
            below[j], above[j] = _pick(block, n, rank - n_above, unit * least, unit * most)
            if not np.isnan(below[j] + above[j]) or half > len(labelled.ranked):
                break
            covered, half = -1.0, 3 * half
        if half > HALF_BRACKET:
            covered, half = -1.0, HALF_BRACKET
    return below, above


@njit(cache=True, nogil=True)
def _unit(pivot: float, power: float) -> float:
    """Return ``s ** (1 - power)``: ends in this unit are comparable to ``residual / diagonal ** power``."""
    if power == 0.5:
        return np.sqrt(pivot)
    return pivot if power == 0.0 else 1.0


@njit(cache=True, nogil=True)
def _middles(labelled: LabelledOrder, middle: int) -> AnyArray:
    """Return where in each group the base at a place of all rows would be."""
    middles = np.empty(len(labelled.leverage), dtype=np.intp)
    for k in range(len(middles)):
        start, stop = labelled.starts[k], labelled.starts[k + 1]
        middles[k] = start + np.searchsorted(labelled.base[start:stop], labelled.ranked[middle])
    return middles


@njit(cache=True, nogil=True)
def _bracket(ranked: Array, middle: int, half: int) -> tuple[float, float]:
    """Return the numbers so many ranks to either side of the middle one; infinite where there are none."""
    least = ranked[middle - half] if middle >= half else -np.inf
    most = ranked[middle + half] if middle + half < len(ranked) else np.inf
    return least, most


@njit(cache=True, nogil=True)
def _lowest(least: float, slack: float, shrink: float, grow: float) -> float:
    """Return below which base an end is below the bracket for certain; -inf if no base is.

    A slack adds at most ``grow / shrink`` times itself to an end; the caller has multiplied it by the largest ratio.
    """
    if shrink <= 0.0:
        return -np.inf
    return (least * shrink if least >= 0.0 else least * grow) - slack * grow


@njit(cache=True, nogil=True)
def _fill_block(
    labelled: LabelledOrder,
    lines: Lines,
    middles: AnyArray,
    q: float,
    least: float,
    most: float,
    block: Block,
) -> tuple[int, int]:
    """Collect the rows whose ends may lie in a bracket; return how many, and how many are above for certain.

    `least` and `most` are the bracket's ends in the unit of `base`.
    """
    slack = LARGEST_RATIO * lines.slack / _unit(lines.ridge, lines.power)
    base, places, n, n_above = labelled.base, np.empty(len(block.X), dtype=np.intp), 0, 0
    if labelled.rest > 0.0:
        shrink, grow = window_factors(labelled.rest, q, lines.power)
        if not _lowest(least, slack, shrink, grow) > labelled.ranked[0]:
            return len(block.X) + 1, 0
    for k in range(len(middles)):
        start, stop = labelled.starts[k], labelled.starts[k + 1]
        shrink, grow = window_factors(labelled.leverage[k], q, lines.power)
        first, last = start, stop
        if shrink > 0.0:
            low = _lowest(least, slack, shrink, grow)
            high = most * grow if most >= 0.0 else most * shrink
            first = last = middles[k]
            while first > start and base[first - 1] >= low:
                first -= 1
            while last < stop and base[last] <= high:
                last += 1
        n_above += stop - last
        for place in range(first, min(last, first + len(places) - n)):
            places[n + place - first] = place
        n += last - first
    if n <= len(places):
        # In the order of the bases the ends are nearly sorted, which makes selection fast.
        _copy_rows(labelled, lines, places[:n][np.argsort(base[places[:n]])], block)
    return n, n_above


@njit(cache=True, nogil=True)
def _copy_rows(labelled: LabelledOrder, lines: Lines, places: AnyArray, block: Block) -> None:
    """Put labelled rows into the block."""
    for at in range(len(places)):
        i, sign = labelled.order[places[at]], labelled.sign[places[at]]
        for c in range(lines.X.shape[1]):
            block.X[at, c] = sign * lines.X[i, c]
        block.parts[0, at] = labelled.residuals[places[at]]
        block.parts[1, at] = sign * lines.offset
        block.parts[2, at] = lines.diagonal[i]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _dot(X: Array, i: int, z: Array, j: int) -> float:
    """Return ``<X[i], z[j]>``, summed in whatever order is fastest."""
    total = 0.0
    for c in range(X.shape[1]):
        total += X[i, c] * z[j, c]
    return total


@njit(cache=True, nogil=True)
def _write_ends(block: Block, n: int, lines: Lines, z: Array, j: int, pivot: float) -> bool:
    """Write the ends of the block's rows for one unlabelled row; return whether every ``|beta| < 1``."""
    ends, steep = block.ends, 0
    for i in range(n):
        ends[2, i] = block.parts[1, i] + _dot(block.X, i, z, j)
    for i in range(n):
        scale = residual_scale(pivot, block.parts[2, i], ends[2, i], lines.power)
        ends[0, i] = pivot * block.parts[0, i] + lines.slack * scale
        ends[1, i] = OWN * scale
        steep += not abs(ends[2, i]) < ends[1, i]
    return steep == 0


@njit(cache=True, nogil=True)
def _pick(block: Block, n: int, rank: int, least: float, most: float) -> tuple[float, float]:
    """Return the `rank`-th largest ends of the block's rows, below and above; NaN if one is not in the bracket."""
    ends, spare = block.ends, block.spare
    n_minus = n_plus = above_minus = above_plus = 0
    for i in range(n):
        end, minus, plus = ends[0, i], ends[1, i] - ends[2, i], ends[1, i] + ends[2, i]
        spare[0, n_minus], spare[1, n_minus] = end, minus
        spare[2, n_plus], spare[3, n_plus] = end, plus
        above_minus += end > most * minus
        above_plus += end > most * plus
        n_minus += (end >= least * minus) & (end <= most * minus)
        n_plus += (end >= least * plus) & (end <= most * plus)
    if not (1 <= rank - above_minus <= n_minus and 1 <= rank - above_plus <= n_plus):
        return np.nan, np.nan
    for i in range(n_minus):
        spare[0, i] /= spare[1, i]
    for i in range(n_plus):
        spare[2, i] /= spare[3, i]
    return kth_largest(spare[0, :n_minus], rank - above_minus), kth_largest(
        spare[2, :n_plus], rank - above_plus
    )
