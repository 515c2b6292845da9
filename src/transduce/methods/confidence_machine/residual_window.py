"""The ends of a region from the handful of labelled rows that can matter: exact, compiled, primal form.

See `transduce.methods.confidence_machine.residual_lines` for the region itself. The ends are order statistics of
``rho_i / (1 ± beta_i)``. Since ``beta_i`` is small for every row at once, the order of the numerators alone, which is
the same for all unlabelled rows, says which few rows can hold the wanted rank; only their ``beta_i`` are computed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from transduce.core.types import AnyArray, Array
from transduce.methods.confidence_machine.residual_lines import OWN, kth_largest, residual_scale


def window_bounds(leverage: float, pivot: Array, ridge: float, power: float) -> tuple[Array, Array]:
    """Return how far the end that belongs to a labelled row can lie from where ``g = 0`` would put it.

    Parameters
    ----------
    leverage : float
        The largest leverage ``1 - ridge G_ii`` of the labelled rows that are bounded.
    pivot : array of shape (m,)
        ``s`` of the unlabelled rows.
    ridge, power : float

    Returns
    -------
    low, high : array of shape (m,)
        Each end ``rho / (1 ± beta)`` is between ``low`` and ``high`` times its value at ``g = 0``. NaN
        where the bound cannot exclude that some ``|beta_i| >= 1``.

    Notes
    -----
    In feature space ``g_i = <phi_i, M^-1 phi>``, so ``g_i^2 <= q_i q`` with the leverages ``q_i`` of the
    labelled row and ``q = s / ridge - 1`` of the unlabelled row under the same ``M`` (Cauchy-Schwarz).
    With ``s G_ii = (1 + q)(1 - q_i)`` this bounds ``1 ± g``, ``D ± g`` and, because
    ``sqrt(1 + b^2) ± b = exp(± asinh b)``, ``sqrt(D) ± g``, where ``D = s G_ii + g^2``.

    Examples
    --------
    >>> import numpy as np
    >>> window_bounds(0.25, np.array([2.0]), 1.0, 0.0)
    (array([0.66666667]), array([2.]))
    """
    q = np.maximum(pivot / ridge - 1.0, 0.0)
    if power == 0.0:
        g = np.sqrt(leverage * q)
        low, high = 1.0 / (1.0 + g), _reciprocal(1.0 - g)
    elif leverage > 1.0 - 1e-9:
        low = high = np.full(len(q), np.nan)
    else:
        b = np.sqrt(leverage / (1.0 - leverage) * q / (1.0 + q))
        if power == 0.5:
            low, high = np.exp(-np.arcsinh(b)), np.exp(np.arcsinh(b))
        else:
            e = np.sqrt(leverage * q) / ((1.0 + q) * (1.0 - leverage))
            low, high = 1.0 / (1.0 + b * b + e), _reciprocal(1.0 - e)
    return low, high


def _reciprocal(x: Array) -> Array:
    return np.divide(1.0, x, out=np.full(len(x), np.nan), where=x > 0.0)


class LabelledOrder(NamedTuple):
    """The labelled rows in the order in which the ends of regions are looked up.

    Attributes
    ----------
    order : array of shape (l - h,)
        Positions of the labelled rows, except those in `always`, in ascending order of `base`.
    base : array of shape (l - h,)
        ``residual / diagonal ** power``, ascending.
    always : array of shape (h,)
        Positions of the rows of high leverage, which the bounds leave out and the look-up always visits.
    sign : array of shape (l,)
        +1, or -1 where a row and its residual are to be negated; by position.
    residuals : array of shape (l,)
        Residuals after that; by position.
    leverage : float
        The largest leverage of the rows in `order`.

    Examples
    --------
    >>> import numpy as np
    >>> rows = order_rows(np.array([3.0, -1.0]), np.ones(2), 1.0, 0.0, "two")
    >>> rows.order, rows.base, rows.sign
    (array([1, 0]), array([1., 3.]), array([ 1., -1.]))
    """

    order: AnyArray
    base: Array
    always: AnyArray
    sign: Array
    residuals: Array
    leverage: float


def order_rows(residuals: Array, diagonal: Array, ridge: float, power: float, side: str) -> LabelledOrder:
    """Return the order of the labelled rows, the same for all unlabelled rows.

    Parameters
    ----------
    residuals, diagonal : array of shape (l,)
        ``r = G y`` and ``G_ii``.
    ridge, power : float
    side : {"two", "lower", "upper"}
        Two-sided regions use absolute residuals (rows are negated to make theirs positive); a lower
        bound is an upper bound for the negated residuals.

    Returns
    -------
    LabelledOrder

    Notes
    -----
    One row far from the others would loosen the bound for all. Rows whose leverage exceeds six times the mean, 64 of
    them at most, are set apart.

    Examples
    --------
    >>> import numpy as np
    >>> order_rows(np.array([3.0, -1.0]), np.ones(2), 1.0, 0.0, "lower").base
    array([-3.,  1.])
    """
    leverage = 1.0 - ridge * diagonal
    high = np.flatnonzero(leverage > 6.0 * leverage.mean())
    always = high[np.argsort(-leverage[high], kind="stable")[:64]]
    sign = np.where(residuals < 0.0, -1.0, 1.0) if side == "two" else np.ones(len(residuals))
    signed = -residuals if side == "lower" else residuals * sign
    with np.errstate(divide="ignore", invalid="ignore"):
        base = signed if power == 0.0 else signed / diagonal**power
    order: AnyArray = np.argsort(base)
    if len(always):
        apart = np.zeros(len(residuals), dtype=bool)
        apart[always] = True
        order, leverage = order[~apart[order]], leverage[~apart]
    largest = float(np.clip(leverage.max(initial=0.0), 0.0, 1.0))
    return LabelledOrder(order, base[order], always, sign, signed, largest)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _dot(X: Array, i: int, z: Array, j: int) -> float:
    """Return ``<X[i], z[j]>``, summed in whatever order is fastest."""
    total = 0.0
    for c in range(X.shape[1]):
        total += X[i, c] * z[j, c]
    return total


@njit(cache=True, nogil=True)
def window_ends(  # noqa: PLR0913
    labelled: LabelledOrder,
    diagonal: Array,
    X: Array,
    offset: float,
    z: Array,
    pivot: Array,
    low: Array,
    high: Array,
    rank: int,
    power: float,
    slack: float,
) -> tuple[Array, Array]:
    """Return the ends of the region of each unlabelled row, looking only at the rows the bounds leave open.

    Parameters
    ----------
    labelled : LabelledOrder
    diagonal : array of shape (l,)
        ``G_ii``.
    X : array of shape (l, d)
        Labelled rows, centred if there is an intercept.
    offset : float
        Share of the intercept in each weight.
    z : array of shape (m, d)
        Directions of the unlabelled rows: the weights are ``X z + offset``.
    pivot, low, high : array of shape (m,)
        Pivots, and the result of `window_bounds`.
    rank : int
    power, slack : float

    Returns
    -------
    below, above : array of shape (m,)
        The `rank`-th largest of ``rho / (1 - beta)`` and of ``rho / (1 + beta)``; NaN where `high` is, or where a row
        of high leverage has ``|beta| >= 1``.

    Examples
    --------
    >>> import numpy as np
    >>> rows = order_rows(np.array([1.0, 2.0, 3.0]), np.ones(3), 1.0, 0.0, "two")
    >>> below, above = window_ends(rows, np.ones(3), np.array([[0.1], [0.1], [0.0]]), 0.0, np.ones((1, 1)),
    ...     np.ones(1), np.array([0.9]), np.array([1.2]), 2, 0.0, 0.0)
    >>> above.round(3)
    array([1.818])
    """
    order, base, always, sign, residuals, _ = labelled
    n_ordered, n_always, n_unlabelled = len(base), len(always), len(z)
    below, above = np.full(n_unlabelled, np.nan), np.full(n_unlabelled, np.nan)
    minus, plus = np.empty(n_ordered + n_always), np.empty(n_ordered + n_always)
    for j in range(n_unlabelled):
        if np.isnan(high[j]) or rank > n_ordered:
            continue
        # The bounds are real-number inequalities: a part in 1e9 covers their rounding.
        ratio = high[j] / low[j] * (1.0 + 1e-9)
        # Of the rows set apart none or all may lie above: the wanted rank among the others is this uncertain.
        least, most = base[n_ordered - rank], np.inf
        least = least / ratio if least >= 0.0 else least * ratio
        if rank > n_always:
            most = base[n_ordered - rank + n_always]
            most = most * ratio if most >= 0.0 else most / ratio
        first = np.searchsorted(base, least, side="left")
        last = np.searchsorted(base, most, side="right")
        n, steep = 0, False
        for place in range(first, last + n_always):
            i = order[place] if place < last else always[place - last]
            weight = offset + _dot(X, i, z, j)
            scale = residual_scale(pivot[j], diagonal[i], weight, power)
            weight *= sign[i]
            steep = steep or not abs(weight) < OWN * scale
            end = pivot[j] * residuals[i] + slack * scale
            minus[n] = end / (OWN * scale - weight)
            plus[n] = end / (OWN * scale + weight)
            n += 1
        if not steep:
            wanted = int(rank - (n_ordered - last))
            below[j] = kth_largest(minus[:n], wanted)
            above[j] = kth_largest(plus[:n], wanted)
    return below, above
