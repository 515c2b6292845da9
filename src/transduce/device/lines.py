"""Regions and counts of many rows at once on a device: `residual_lines` with ``rho``, ``beta`` of shape (m, l)."""

from __future__ import annotations

from typing import Any

import numpy as np

from transduce.core import arrays
from transduce.core.answer import Regions

OWN = 1.0 - 1e-12


def lines(residuals: Any, diagonal: Any, weights: Any, pivot: Any, power: float) -> tuple[Any, Any]:
    """Return ``rho`` and ``beta``, shape (m, l), from weights (m, l) and pivots (m,)."""
    rho = pivot[:, None] * residuals[None, :]
    if power == 0.0:
        return rho, weights
    xp = arrays.namespace(weights)
    scale = pivot[:, None] * diagonal[None, :] + weights * weights
    scale = xp.sqrt(scale) if power == 0.5 else scale
    some = scale > 0.0
    safe = xp.where(some, scale, xp.ones_like(scale))
    nothing = xp.zeros_like(rho)
    return xp.where(some, rho / safe, nothing), xp.where(some, weights / safe, nothing)


def regions(rho: Any, beta: Any, rank: int, side: str, slack: float) -> Regions:
    """Return the regions about the predictions: by selection, and by sweep where some line is too steep for it."""
    xp = arrays.namespace(rho)
    select, sweep = (_select_two, _sweep_two) if side == "two" else (_select_one, _sweep_one)
    rho = -rho if side == "lower" else rho
    ends, steep = select(xp, rho, beta, rank, slack)
    open_rows = np.flatnonzero(arrays.to_numpy(steep))
    intervals = Regions.from_intervals(ends)
    if len(open_rows):
        heights, slopes = (arrays.pick(part, open_rows) for part in (rho, beta))
        row = np.arange(len(intervals))
        row[open_rows] = len(intervals) + np.arange(len(open_rows))
        swept = _walk(xp, *sweep(xp, heights, slopes, slack), rank)
        intervals = Regions.concatenate([intervals, swept])[row]
    if side != "lower":
        return intervals
    mirrored = -xp.flip(xp.flip(intervals.pieces, axis=0), axis=1)
    turned = Regions(mirrored, np.concatenate([[0], np.cumsum(intervals.n_pieces[::-1])]))
    return turned[np.arange(len(turned))[::-1]]


def _select_two(xp: Any, rho: Any, beta: Any, rank: int, slack: float) -> tuple[Any, Any]:
    """Return the ends of two-sided regions, shape (m, 2), and which rows have lines that are too steep."""
    steep = xp.any(~(xp.abs(beta) < OWN), axis=1)
    slope = xp.where(rho >= 0.0, beta, -beta)
    slope = xp.where(steep[:, None], xp.zeros_like(slope), slope)
    height = xp.abs(rho) + slack
    above = kth_largest(height / (OWN + slope), rank)
    below = kth_largest(height / (OWN - slope), rank)
    return xp.stack([-below, above], axis=1), steep


def _select_one(xp: Any, rho: Any, beta: Any, rank: int, slack: float) -> tuple[Any, Any]:
    """Return the ends of regions ``(-inf, end]`` likewise."""
    steep = xp.any(~(beta > -1.0), axis=1)
    slope = xp.where(steep[:, None], xp.zeros_like(beta), beta)
    end = kth_largest((rho + slack) / (1.0 + slope), rank)
    return xp.stack([xp.full_like(end, -xp.inf), end], axis=1), steep


def _sweep_two(xp: Any, rho: Any, beta: Any, slack: float) -> tuple[Any, Any, Any]:
    """Return where the sets ``S_i`` begin and end, infinite where they do not, and how many begin at -inf."""
    height, slope = xp.abs(rho), xp.where(rho >= 0.0, beta, -beta)
    nowhere = xp.full_like(rho, xp.inf)
    inner = xp.abs(slope) < OWN
    whole = ~inner & (height <= slack)
    right, left = ~inner & ~whole & (slope == OWN), ~inner & ~whole & (slope == -OWN)
    rays = ~inner & ~whole & ~right & ~left
    one = xp.ones_like(rho)
    sign = xp.where(slope > 0.0, one, -one)
    near = sign * (height + slack) / (xp.abs(slope) + OWN)
    far = sign * (height - slack) / xp.where(rays, xp.abs(slope) - OWN, one)
    starts = xp.where(inner, -(height + slack) / xp.where(inner, OWN - slope, one), nowhere)
    starts = xp.where(left, -(height + slack) / (2.0 * OWN), starts)
    starts = xp.where(rays, xp.maximum(near, far), starts)
    ends = xp.where(inner, (height + slack) / xp.where(inner, OWN + slope, one), nowhere)
    ends = xp.where(right, (height + slack) / (2.0 * OWN), ends)
    ends = xp.where(rays, xp.minimum(near, far), ends)
    return starts, ends, whole | right | rays


def _sweep_one(xp: Any, rho: Any, beta: Any, slack: float) -> tuple[Any, Any, Any]:
    """Return the same for one-sided regions."""
    nowhere, one = xp.full_like(rho, xp.inf), xp.ones_like(rho)
    end = (rho + slack) / xp.where(beta == -1.0, one, 1.0 + beta)
    begins, stops = beta < -1.0, beta > -1.0
    whole = (beta == -1.0) & (rho >= -slack)
    return xp.where(begins, end, nowhere), xp.where(stops, end, nowhere), whole | stops


def _walk(xp: Any, starts: Any, ends: Any, from_left: Any, rank: int) -> Regions:
    """Return where at least `rank` closed sets overlap."""
    m, count = starts.shape[0], xp.sum(xp.astype(from_left, xp.int64), axis=1)
    places = xp.concat([starts, ends], axis=1)
    step = xp.concat([xp.ones_like(starts), -xp.ones_like(ends)], axis=1)
    step = xp.where(xp.isinf(places), xp.zeros_like(step), step)
    order = xp.argsort(
        places, axis=1, stable=True
    )  # at equal places one set begins before the other ends
    places, step = (
        xp.take_along_axis(places, order, axis=1),
        xp.take_along_axis(step, order, axis=1),
    )
    step = xp.astype(step, xp.int64)
    after = count[:, None] + arrays.cumulative_sum(step, axis=1)
    begins, stops = (step > 0) & (after == rank), (step < 0) & (after == rank - 1)
    infinite = arrays.zeros((m, 1), places) + xp.inf
    begins = xp.concat([(count >= rank)[:, None], begins], axis=1)
    stops = xp.concat([stops, (after[:, -1] >= rank)[:, None]], axis=1)
    lower = xp.concat([-infinite, places], axis=1)[begins]
    upper = xp.concat([places, infinite], axis=1)[stops]
    n_pieces = arrays.to_numpy(xp.sum(xp.astype(begins, xp.int64), axis=1))
    return Regions(xp.stack([lower, upper], axis=1), np.concatenate([[0], np.cumsum(n_pieces)]))


def counts(rho: Any, beta: Any, t: Any, slack: float) -> tuple[Any, Any]:
    """Return how many labelled rows are more nonconforming than each unlabelled row at `t` (m,), and how many tie."""
    xp = arrays.namespace(rho)
    above, equal = _compare(xp.abs(rho - beta * t[:, None]), xp.abs(t)[:, None], slack)
    return _count(xp, above), _count(xp, equal)


def _compare(residuals: Any, own: Any, slack: float) -> tuple[Any, Any]:
    """Return where residuals (m, l) are larger than a row's own (m, 1), and where they tie."""
    excess, rounding = residuals - own, slack + (1.0 - OWN) * own
    above = excess > rounding
    return above, ~above & (excess >= -rounding)


def counts_by_class(
    rho: Any, beta: Any, inside: Any, prediction: Any, slack: float
) -> tuple[Any, Any]:
    """Return the same for every class `inside` (l, c), of all labelled rows and of that class: two arrays (m, c)."""
    xp = arrays.namespace(rho)
    own = prediction @ xp.astype(inside, prediction.dtype).T
    if_same, if_other = xp.abs(rho - beta * (1.0 - own)), xp.abs(rho - beta * (-1.0 - own))
    sizes = xp.sum(xp.astype(inside, prediction.dtype), axis=0)
    alone = xp.any(inside & (sizes == 1.0)[None, :], axis=1)  # infinitely nonconforming
    if_other = xp.where(alone[None, :], xp.full_like(if_other, xp.inf), if_other)
    overall: list[list[Any]] = [[], []]
    within: list[list[Any]] = [[], []]
    for candidate in range(prediction.shape[1]):
        unlabelled = xp.abs(1.0 - prediction[:, candidate])[:, None]
        members = inside[:, candidate][None, :]
        hits = _compare(xp.where(members, if_same, if_other), unlabelled, slack)
        for place, hit in enumerate(hits):
            overall[place].append(_count(xp, hit))
            within[place].append(_count(xp, hit & members))
    return [xp.stack(part, axis=1) for part in overall], [xp.stack(part, axis=1) for part in within]


def _count(xp: Any, hit: Any) -> Any:
    return xp.sum(arrays.as_double(hit), axis=1)


def kth_largest(values: Any, k: int) -> Any:
    """Return the `k`-th largest (m,) of each line (m, n), by selection where the library has one."""
    place = values.shape[1] - k
    if arrays.library_of(values) == "torch":
        return values.kthvalue(place + 1, dim=1).values
    return arrays.namespace(values).sort(values, axis=1)[:, place]
