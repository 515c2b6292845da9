"""Regions and counts of many rows at once on a device.

These are `residual_lines` with ``rho`` and ``beta`` of shape (m, l).
"""

from __future__ import annotations

import numpy as np

from transduce.core import arrays
from transduce.core.answer import Regions
from transduce.core.types import DeviceArray, Namespace

OWN = 1.0 - 1e-12


def lines(
    residuals: DeviceArray,
    diagonal: DeviceArray,
    weights: DeviceArray,
    pivot: DeviceArray,
    power: float,
) -> tuple[DeviceArray, DeviceArray]:
    """Return ``rho`` and ``beta``, shape (m, l), from weights (m, l) and pivots (m,)."""
    rho = pivot[:, None] * residuals[None, :]
    if power == 0.0:
        return rho, weights
    xp = arrays.namespace(weights)
    scale = pivot[:, None] * diagonal[None, :] + weights * weights
    if power == 0.5:
        scale = xp.sqrt(scale)
    positive = scale > 0.0
    safe = xp.where(positive, scale, xp.ones_like(scale))
    zero = xp.zeros_like(rho)
    heights = xp.where(positive, rho / safe, zero)
    slopes = xp.where(positive, weights / safe, zero)
    return heights, slopes


def regions(
    rho: DeviceArray,
    beta: DeviceArray,
    rank: int,
    side: str,
    slack: float,
) -> Regions:
    """Return the regions about the predictions, one- or two-sided.

    A selection finds them, and a sweep where a line is too steep for it.
    """
    if side == "lower":
        return _mirror(regions(-rho, beta, rank, "upper", slack))
    xp = arrays.namespace(rho)
    select = _select_two if side == "two" else _select_one
    sweep = _sweep_two if side == "two" else _sweep_one
    ends, steep = select(xp, rho, beta, rank, slack)
    intervals = Regions.from_intervals(ends)
    steep_rows = np.flatnonzero(arrays.to_numpy(steep))
    if len(steep_rows) == 0:
        return intervals
    heights = arrays.pick(rho, steep_rows)
    slopes = arrays.pick(beta, steep_rows)
    swept = _walk(xp, *sweep(xp, heights, slopes, slack), rank)
    place = np.arange(len(intervals))
    place[steep_rows] = len(intervals) + np.arange(len(steep_rows))
    return Regions.concatenate([intervals, swept])[place]


def _mirror(intervals: Regions) -> Regions:
    """Return regions with all signs changed."""
    xp = arrays.namespace(intervals.pieces)
    pieces = -xp.flip(xp.flip(intervals.pieces, axis=0), axis=1)
    counts = intervals.n_pieces[::-1]
    backwards = Regions(pieces, np.concatenate([[0], np.cumsum(counts)]))
    return backwards[np.arange(len(backwards))[::-1]]


def _select_two(
    xp: Namespace, rho: DeviceArray, beta: DeviceArray, rank: int, slack: float
) -> tuple[DeviceArray, DeviceArray]:
    """Return the ends of two-sided regions (m, 2), and which rows have lines that are too steep."""
    steep = xp.any(~(xp.abs(beta) < OWN), axis=1)
    slope = xp.where(rho >= 0.0, beta, -beta)
    slope = xp.where(steep[:, None], xp.zeros_like(slope), slope)
    height = xp.abs(rho) + slack
    above = kth_largest(height / (OWN + slope), rank)
    below = kth_largest(height / (OWN - slope), rank)
    return xp.stack([-below, above], axis=1), steep


def _select_one(
    xp: Namespace, rho: DeviceArray, beta: DeviceArray, rank: int, slack: float
) -> tuple[DeviceArray, DeviceArray]:
    """Return the ends of regions ``(-inf, end]`` likewise."""
    steep = xp.any(~(beta > -1.0), axis=1)
    slope = xp.where(steep[:, None], xp.zeros_like(beta), beta)
    end = kth_largest((rho + slack) / (1.0 + slope), rank)
    start = xp.full_like(end, -xp.inf)
    return xp.stack([start, end], axis=1), steep


def _sweep_two(
    xp: Namespace, rho: DeviceArray, beta: DeviceArray, slack: float
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """Return where the sets ``S_i`` begin and end, if anywhere, and which begin at -inf."""
    height = xp.abs(rho)
    slope = xp.where(rho >= 0.0, beta, -beta)
    nowhere = xp.full_like(rho, xp.inf)
    inner = xp.abs(slope) < OWN
    whole = ~inner & (height <= slack)
    right = ~inner & ~whole & (slope == OWN)
    left = ~inner & ~whole & (slope == -OWN)
    rays = ~inner & ~whole & ~right & ~left
    ones = xp.ones_like(rho)
    sign = xp.where(slope > 0.0, ones, -ones)
    raised = height + slack
    near = sign * raised / (xp.abs(slope) + OWN)
    far = sign * (height - slack) / xp.where(rays, xp.abs(slope) - OWN, ones)
    to_left = xp.where(inner, OWN - slope, ones)
    starts = xp.where(inner, -raised / to_left, nowhere)
    starts = xp.where(left, -raised / (2.0 * OWN), starts)
    starts = xp.where(rays, xp.maximum(near, far), starts)
    to_right = xp.where(inner, OWN + slope, ones)
    ends = xp.where(inner, raised / to_right, nowhere)
    ends = xp.where(right, raised / (2.0 * OWN), ends)
    ends = xp.where(rays, xp.minimum(near, far), ends)
    return starts, ends, whole | right | rays


def _sweep_one(
    xp: Namespace, rho: DeviceArray, beta: DeviceArray, slack: float
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """Return the same for one-sided regions."""
    nowhere = xp.full_like(rho, xp.inf)
    ones = xp.ones_like(rho)
    end = (rho + slack) / xp.where(beta == -1.0, ones, 1.0 + beta)
    begins = beta < -1.0
    stops = beta > -1.0
    whole = (beta == -1.0) & (rho >= -slack)
    starts = xp.where(begins, end, nowhere)
    ends = xp.where(stops, end, nowhere)
    return starts, ends, whole | stops


def _walk(
    xp: Namespace, starts: DeviceArray, ends: DeviceArray, from_left: DeviceArray, rank: int
) -> Regions:
    """Return where at least `rank` closed sets overlap."""
    m = starts.shape[0]
    count = xp.sum(xp.astype(from_left, xp.int64), axis=1)
    places = xp.concat([starts, ends], axis=1)
    step = xp.concat([xp.ones_like(starts), -xp.ones_like(ends)], axis=1)
    step = xp.where(xp.isinf(places), xp.zeros_like(step), step)
    # The order is stable: at equal places one set begins before the other ends.
    order = xp.argsort(places, axis=1, stable=True)
    places = xp.take_along_axis(places, order, axis=1)
    step = xp.astype(xp.take_along_axis(step, order, axis=1), xp.int64)
    after = count[:, None] + arrays.cumulative_sum(step, axis=1)
    begins = (step > 0) & (after == rank)
    stops = (step < 0) & (after == rank - 1)
    infinite = arrays.zeros((m, 1), places) + xp.inf
    begins_at_start = count >= rank
    begins = xp.concat([begins_at_start[:, None], begins], axis=1)
    stops_at_end = after[:, -1] >= rank
    stops = xp.concat([stops, stops_at_end[:, None]], axis=1)
    lower = xp.concat([-infinite, places], axis=1)[begins]
    upper = xp.concat([places, infinite], axis=1)[stops]
    counts = xp.sum(xp.astype(begins, xp.int64), axis=1)
    n_pieces = arrays.to_numpy(counts)
    pieces = xp.stack([lower, upper], axis=1)
    offsets = np.concatenate([[0], np.cumsum(n_pieces)])
    return Regions(pieces, offsets)


def counts(
    rho: DeviceArray, beta: DeviceArray, t: DeviceArray, slack: float
) -> tuple[DeviceArray, DeviceArray]:
    """Return how many labelled rows are more nonconforming, and how many tie.

    There are two numbers for each unlabelled row.

    The unlabelled rows have the labels `t` (m,).
    """
    xp = arrays.namespace(rho)
    residuals = xp.abs(rho - beta * t[:, None])
    above, equal = _compare(residuals, xp.abs(t)[:, None], slack)
    return _count(xp, above), _count(xp, equal)


def _compare(
    residuals: DeviceArray, own: DeviceArray, slack: float
) -> tuple[DeviceArray, DeviceArray]:
    """Return where residuals (m, l) are larger than a row's own (m, 1), and where they tie."""
    excess = residuals - own
    rounding = slack + (1.0 - OWN) * own
    above = excess > rounding
    return above, ~above & (excess >= -rounding)


def counts_by_class(
    rho: DeviceArray, beta: DeviceArray, inside: DeviceArray, prediction: DeviceArray, slack: float
) -> tuple[DeviceArray, DeviceArray]:
    """Return the same counts for every class, of all labelled rows and of that class: (m, c) each.

    `inside` (l, c) says of which class each labelled row is.
    """
    xp = arrays.namespace(rho)
    own_products = prediction @ xp.astype(inside, prediction.dtype).T
    if_same = xp.abs(rho - beta * (1.0 - own_products))
    if_other = xp.abs(rho - beta * (-1.0 - own_products))
    sizes = xp.sum(xp.astype(inside, prediction.dtype), axis=0)
    alone = xp.any(inside & (sizes == 1.0)[None, :], axis=1)  # infinitely nonconforming
    if_other = xp.where(alone[None, :], xp.full_like(if_other, xp.inf), if_other)
    overall: list[list[DeviceArray]] = [[], []]
    within: list[list[DeviceArray]] = [[], []]
    for candidate in range(prediction.shape[1]):
        unlabelled = xp.abs(1.0 - prediction[:, candidate])[:, None]
        members = inside[:, candidate][None, :]
        hits = _compare(xp.where(members, if_same, if_other), unlabelled, slack)
        for place, hit in enumerate(hits):
            overall[place].append(_count(xp, hit))
            within[place].append(_count(xp, hit & members))
    counts_overall = [xp.stack(part, axis=1) for part in overall]
    counts_within = [xp.stack(part, axis=1) for part in within]
    return counts_overall, counts_within


def _count(xp: Namespace, hit: DeviceArray) -> DeviceArray:
    return xp.sum(arrays.as_double(hit), axis=1)


def kth_largest(values: DeviceArray, k: int) -> DeviceArray:
    """Return the `k`-th largest of each line (m, n), shape (m,)."""
    place = values.shape[1] - k
    if arrays.library_of(values) == "torch":
        return values.kthvalue(place + 1, dim=1).values
    return arrays.namespace(values).sort(values, axis=1)[:, place]
