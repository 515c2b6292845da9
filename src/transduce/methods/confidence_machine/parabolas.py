"""Which setting each candidate label of a row chooses: the lowest of parabolas, exact and compiled.

The setting with the smallest leave-one-out error of the **completed** sample is chosen, that row
and its label included. The choice treats all rows alike, so p-values stay exact. Complete a sample
with label ``v`` at one unlabelled row. For one setting (see `bordered_ridge` for the notation, ``t
= v - prediction``) the leave-one-out residuals are ``(s r_i - g_i t) / (s G_ii + g_i^2)`` at the
labelled rows and ``t`` at the row itself, with an unpenalised intercept too. So the sum of their
squares is a parabola in ``v``::

    Q(v) = c0 + c1 (v - prediction) + c2 (v - prediction)^2,     c2 >= 1

stored as ``(prediction, c0, c1, c2)``. At each ``v`` the lowest parabola says which setting is
chosen. Settings whose errors differ by rounding only are chosen together, and whatever is derived
from the choice takes the union: this keeps the guarantee.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numba import njit

from transduce.core.types import AnyArray, Array
from transduce.methods.confidence_machine.bordered_ridge import Border

Interval = tuple[float, float]
LINE = (-np.inf, np.inf)
NOWHERE = (np.inf, -np.inf)
TIE = 1e-9  # leave-one-out errors closer than this share of themselves are equal


class GridFit(NamedTuple):
    """The ridge regressions of all settings on the labelled rows."""

    residuals: Array  # (S, l) or (S, l, c) ``G y`` for each setting
    diagonal: Array  # (S, l) ``G_ii``
    slack: Array  # (S,) residuals closer than this tie


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _sums(
    residuals: Array,
    diagonal: Array,
    weights: Array,
    pivot: float,
) -> tuple[float, float, float]:
    """Return ``c0``, ``c1``, ``c2`` of one setting at one row."""
    c0 = 0.0
    c1 = 0.0
    c2 = 1.0
    for i in range(len(residuals)):
        scale = pivot * diagonal[i] + weights[i] * weights[i]
        # A row that no other row can stand in for has no leave-one-out residual: it counts for
        # nothing.
        inverse = 1.0 / scale if scale > 0.0 else 0.0
        start = pivot * residuals[i] * inverse
        slope = weights[i] * inverse
        c0 += start * start
        c1 -= 2.0 * start * slope
        c2 += slope * slope
    return c0, c1, c2


@njit(cache=True, nogil=True)
def parabolas(fit: GridFit, border: Border) -> Array:
    """Return ``(prediction, c0, c1, c2)`` of every setting at every row, shape (b, S, 4)."""
    n_settings, n_rows = border.pivot.shape
    curves = np.empty((n_rows, n_settings, 4))
    for s in range(n_settings):
        for j in range(n_rows):
            c0, c1, c2 = _sums(
                fit.residuals[s],
                fit.diagonal[s],
                border.weights[s, j],
                border.pivot[s, j],
            )
            curves[j, s, 0] = border.prediction[s, j]
            curves[j, s, 1] = c0
            curves[j, s, 2] = c1
            curves[j, s, 3] = c2
    return curves


@njit(cache=True, nogil=True)
def height(parabola: Array, v: float) -> float:
    """Return the value of one parabola."""
    t = v - parabola[0]
    return parabola[1] + t * (parabola[2] + t * parabola[3])


# ------------------------------------------------------------------- where each setting is chosen


class Choice(NamedTuple):
    """Where each setting is chosen, ties included: on as many closed intervals as it has lines."""

    setting: AnyArray  # (k,) ascending
    low: Array  # (k,)
    high: Array  # (k,)


@njit(cache=True, nogil=True)
def where_below(
    curve: Array,
    other: Array,
    factor: float,
    extra: float,
) -> tuple[Interval, Interval]:
    """Return the two closed intervals on which ``curve <= factor * other + extra``.

    The second may be empty, or both.
    """
    # In the coordinate x = v - other's prediction nothing large cancels.
    shift = curve[0] - other[0]
    a = curve[3] - factor * other[3]
    b = curve[2] - 2.0 * curve[3] * shift - factor * other[2]
    c = curve[1] - curve[2] * shift + curve[3] * shift * shift - factor * other[1] - extra
    if a == 0.0:
        return _where_line_below(b, c, other[0]), NOWHERE
    discriminant = b * b - 4.0 * a * c
    if discriminant < 0.0:
        if a < 0.0:
            return LINE, NOWHERE
        return NOWHERE, NOWHERE
    root = np.sqrt(discriminant)
    if b < 0.0:
        root = -root
    half = -0.5 * (b + root)
    first = other[0] + half / a
    second = first
    if half != 0.0:
        second = other[0] + c / half
    low = min(first, second)
    high = max(first, second)
    if a > 0.0:
        return (low, high), NOWHERE
    if low < high:
        return (-np.inf, low), (high, np.inf)
    return LINE, NOWHERE


@njit(cache=True, nogil=True)
def _where_line_below(b: float, c: float, centre: float) -> Interval:
    """Return the closed interval on which ``b (v - centre) + c <= 0``."""
    if b == 0.0:
        if c <= 0.0:
            return LINE
        return NOWHERE
    end = centre - c / b
    if b > 0.0:
        return (-np.inf, end)
    return (end, np.inf)


@njit(cache=True, nogil=True)
def tie_margin(slack: float, other_slack: float, n_rows: int) -> float:
    """Return what `TIE` leaves out of rounding: what `n_rows` squares may be off by together."""
    return n_rows * (slack + other_slack) ** 2 / TIE


@njit(cache=True, nogil=True)
def choose(curves: Array, slack: Array, n_rows: int) -> Choice:
    """Return where each setting has the smallest leave-one-out error, up to rounding.

    That of a sample of `n_rows`.
    """
    most_intervals = len(curves) ** 2 + 1  # each comparison parts at most one
    setting = np.empty(most_intervals, dtype=np.intp)
    low = np.empty(most_intervals)
    high = np.empty(most_intervals)
    stop = 0
    for s in range(len(curves)):
        start = stop
        low[start] = -np.inf
        high[start] = np.inf
        stop = start + 1
        for other in range(len(curves)):
            if other == s or stop == start:
                continue
            margin = tie_margin(slack[s], slack[other], n_rows)
            left, right = where_below(curves[s], curves[other], 1.0 + TIE, margin)
            stop = _intersect(low, high, start, stop, left, right)
        setting[start:stop] = s
    return Choice(setting[:stop].copy(), low[:stop].copy(), high[:stop].copy())


@njit(cache=True, nogil=True)
def _intersect(
    low: Array,
    high: Array,
    start: int,
    stop: int,
    left: Interval,
    right: Interval,
) -> int:
    """Intersect the intervals from `start` to `stop` with two others; return their new stop."""
    for k in range(stop - 1, start - 1, -1):
        # Backwards: the last interval takes the place of an empty one.
        old_low = low[k]
        old_high = high[k]
        if max(old_low, right[0]) <= min(old_high, right[1]):
            low[stop] = max(old_low, right[0])
            high[stop] = min(old_high, right[1])
            stop += 1
        low[k] = max(old_low, left[0])
        high[k] = min(old_high, left[1])
        if low[k] > high[k]:
            stop -= 1
            low[k] = low[stop]
            high[k] = high[stop]
    return stop


@njit(cache=True, nogil=True)
def mark_least(errors: Array, slack: Array, n_rows: int, picked: AnyArray) -> int:
    """Mark the smallest leave-one-out error of `n_rows` and those equal; return the first."""
    best = np.argmin(errors)
    first = -1
    for s in range(len(errors)):
        margin = tie_margin(slack[s], slack[best], n_rows)
        picked[s] = s == best or errors[s] <= (1.0 + TIE) * errors[best] + margin
        if picked[s] and first < 0:
            first = s
    return first


# ----------------------------------------------------------------------------- the lower envelope


@njit(cache=True, nogil=True)
def lowest_point(curves: Array, choice: Choice) -> tuple[int, float]:
    """Return the setting at the lowest point of the envelope, and its value.

    The value is the setting's prediction or, if another setting is chosen at that label, the
    nearest label at which this one is. Of settings that reach the same height, the first counts.
    """
    lowest = np.empty(len(choice.setting))
    best = np.inf
    for k in range(len(lowest)):
        curve = curves[choice.setting[k]]
        vertex = curve[0] - 0.5 * curve[2] / curve[3]
        lowest[k] = height(curve, min(max(vertex, choice.low[k]), choice.high[k]))
        best = min(best, lowest[k])
    first = 0
    while lowest[first] > (1.0 + 2.0 * TIE) * best:
        first += 1
    winner = choice.setting[first]
    prediction = curves[winner, 0]
    value = np.inf
    for k in range(len(lowest)):
        if choice.setting[k] == winner:
            nearest = min(max(prediction, choice.low[k]), choice.high[k])
            if abs(nearest - prediction) < abs(value - prediction):
                value = nearest
    return winner, value


def lower_envelope(curves: Array) -> tuple[Array, AnyArray]:
    """Return where each piece of the lower envelope of parabolas (S, 4) starts, and whose it is."""
    # Two parabolas cross at most twice, so S of them make at most 2 S - 1 pieces.
    pairs = combinations(curves, 2)
    crossings = np.array([where_below(curve, other, 1.0, 0.0) for curve, other in pairs])
    ends = np.unique(crossings[np.isfinite(crossings)])
    inner_points = np.zeros(1)
    if len(ends):
        before = ends[:1] - 1.0 - np.abs(ends[:1])
        after = ends[-1:] + 1.0 + np.abs(ends[-1:])
        around = np.concatenate([before, ends, after])
        inner_points = 0.5 * (around[:-1] + around[1:])
    t = inner_points[:, None] - curves[:, 0]
    heights = curves[:, 1] + t * (curves[:, 2] + t * curves[:, 3])
    owners = np.argmin(heights, axis=1)
    is_new = np.append(True, owners[1:] != owners[:-1])
    starts = np.append(-np.inf, ends)
    return starts[is_new], owners[is_new]


@njit(cache=True, nogil=True)
def interval_ends(intervals: list[Interval]) -> Array:
    """Return the ends of intervals, shape (k, 2)."""
    ends = np.empty((len(intervals), 2))
    for k in range(len(intervals)):
        low, high = intervals[k]
        ends[k, 0] = low
        ends[k, 1] = high
    return ends


@njit(cache=True, nogil=True)
def merge(pieces: list[Interval]) -> list[Interval]:
    """Return the union of closed intervals as disjoint ones in ascending order."""
    # Few, so insertion; numba's own sort takes longer to compile than all of this.
    for last in range(1, len(pieces)):
        piece = pieces[last]
        place = last
        while place > 0 and pieces[place - 1][0] > piece[0]:
            pieces[place] = pieces[place - 1]
            place -= 1
        pieces[place] = piece
    merged = pieces[:1]
    for low, high in pieces[1:]:
        if low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged
