"""Where a polynomial of degree four is not negative: all real roots, compiled.

Between two neighbouring roots of its derivative a polynomial is monotone, so a change of sign there
is one root, found by Newton's steps that bisection keeps in bounds. The derivative's roots are
found in the same way, down to a line. Roots within [-1, 1] are those of ``q(x)``, the others those
of ``x^4 q(1 / x)``: a leading coefficient of 0, or nearly so, is then no case of its own.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from transduce.core.types import Array

DEGREE = 4
MOST_ROOTS = 2 * DEGREE  # a root at 1 or -1 may be found twice, which does no harm
FARTHEST = 1e60  # a root beyond is one at infinity
STEPS = 200
CLOSE = 1e-13  # relative steps below this are rounding


@njit(cache=True, nogil=True)
def polynomial(coefficients: Array, x: float) -> float:
    """Return the value of a quartic whose coefficients (5,) ascend."""
    value = coefficients[4]
    value = value * x + coefficients[3]
    value = value * x + coefficients[2]
    value = value * x + coefficients[1]
    return value * x + coefficients[0]


@njit(cache=True, nogil=True)
def _root(
    coefficients: Array,
    low: float,
    high: float,
    x: float,
    ascends: bool,
) -> float:
    """Return the root between two places of opposite signs, starting at `x`."""
    for _ in range(STEPS):
        value = coefficients[4]
        slope = value
        value = value * x + coefficients[3]
        slope = slope * x + value
        value = value * x + coefficients[2]
        slope = slope * x + value
        value = value * x + coefficients[1]
        slope = slope * x + value
        value = value * x + coefficients[0]
        if value == 0.0:
            return x
        if (value < 0.0) == ascends:
            low = x
        else:
            high = x
        following = 0.5 * (low + high)
        if slope != 0.0:
            newton = x - value / slope
            if low < newton < high:
                following = newton
        if abs(following - x) <= CLOSE * abs(following):
            return following
        x = following
    return x


# ---------------------------------------------------------------------------------- the usual case


@njit(cache=True, nogil=True)
def is_concave(coefficients: Array) -> bool:
    """Return whether a quartic is strictly concave on the whole line."""
    c2 = coefficients[2]
    c3 = coefficients[3]
    c4 = coefficients[4]
    return c2 < 0.0 and c4 < 0.0 and 3.0 * c3 * c3 < 8.0 * c2 * c4


@njit(cache=True, nogil=True)
def only_root(coefficients: Array, start: float) -> float:
    """Return the root on the side of `start`, of a concave quartic that is positive at 0."""
    outer = start
    while polynomial(coefficients, outer) > 0.0:
        outer *= 2.0
    return _root(coefficients, min(outer, 0.0), max(outer, 0.0), outer, start < 0.0)


# --------------------------------------------------------------------------------------- all roots


@njit(cache=True, nogil=True)
def find_roots(coefficients: Array, roots: Array) -> int:
    """Write the real roots of a quartic in ascending order; return how many."""
    largest = np.abs(coefficients).max()
    if largest == 0.0:
        return 0
    near = coefficients / largest
    far = near[::-1].copy()
    n_roots = _roots_within_one(near, roots, 0)
    n_far = _roots_within_one(far, roots, n_roots)
    for k in range(n_roots, n_far):
        if abs(roots[k]) * FARTHEST > 1.0:
            roots[n_roots] = 1.0 / roots[k]
            n_roots += 1
    # A few numbers, so insertion.
    for last in range(1, n_roots):
        root = roots[last]
        place = last
        while place > 0 and roots[place - 1] > root:
            roots[place] = roots[place - 1]
            place -= 1
        roots[place] = root
    return n_roots


@njit(cache=True, nogil=True)
def _roots_within_one(coefficients: Array, roots: Array, start: int) -> int:
    """Write the roots in [-1, 1] from place `start` on; return where they stop."""
    derivatives = np.zeros((DEGREE, DEGREE + 1))
    derivatives[0] = coefficients
    for order in range(1, DEGREE):
        for k in range(DEGREE - order + 1):
            derivatives[order, k] = (k + 1) * derivatives[order - 1, k + 1]
    points = np.empty(DEGREE + 2)
    turns = np.empty(DEGREE)
    n_roots = 0
    for order in range(DEGREE - 1, -1, -1):
        points[0] = -1.0
        points[1 : n_roots + 1] = turns[:n_roots]
        points[n_roots + 1] = 1.0
        n_roots = _roots_between(derivatives[order], DEGREE - order, points[: n_roots + 2], turns)
    roots[start : start + n_roots] = turns[:n_roots]
    return start + n_roots


@njit(cache=True, nogil=True)
def _roots_between(coefficients: Array, degree: int, points: Array, roots: Array) -> int:
    """Write the roots of a polynomial that is monotone between points; return how many."""
    n_roots = 0
    low_value = polynomial(coefficients, points[0])
    if low_value == 0.0:
        roots[0] = points[0]
        n_roots = 1
    for k in range(1, len(points)):
        high_value = polynomial(coefficients, points[k])
        changes_sign = (low_value < 0.0 < high_value) or (high_value < 0.0 < low_value)
        if n_roots < degree:
            if changes_sign:
                low = points[k - 1]
                high = points[k]
                middle = 0.5 * (low + high)
                roots[n_roots] = _root(coefficients, low, high, middle, low_value < 0.0)
                n_roots += 1
            elif high_value == 0.0 and low_value != 0.0:
                roots[n_roots] = points[k]
                n_roots += 1
        low_value = high_value
    return n_roots


@njit(cache=True, nogil=True)
def point_between(ends: Array, k: int) -> float:
    """Return a point of the gap before the k-th of ascending ends; of the line, if there is none.

    Gap 0 comes before the first end, and gap ``len(ends)`` after the last.
    """
    if len(ends) == 0:
        return 0.0
    if k == 0:
        return ends[0] - 1.0 - abs(ends[0])
    if k == len(ends):
        return ends[k - 1] + 1.0 + abs(ends[k - 1])
    return 0.5 * (ends[k - 1] + ends[k])
