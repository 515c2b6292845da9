"""The missing labels within a ball around the inductive answer (equation 29).

Within ``|z_a - start| <= radius`` the labels minimise ``|E z|^2`` alone. Either the minimum over
all labels lies inside, or there is one tether whose answer lies on the sphere. A tether `t` moves
the answer by ::

    delta(t) = -(E_a'E_a + t I)^-1 E_a'(E_l y + E_a start)

whose length falls as the tether grows. The secular equation ``radius / |delta(t)| = 1`` is nearly
linear in the tether, so a few steps solve it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from transduce.core import arrays
from transduce.core.types import Array, Mask
from transduce.device import linalg
from transduce.methods.ridge.completion import Completion, DenseSystem, DesignSystem, complete

LARGEST_TETHER = 1e100  # beyond, the answer is the inductive one to the last digit


def complete_in_ball(
    system: DenseSystem | DesignSystem, y: Array, unlabelled: Mask, *, start: Array, radii: Array
) -> tuple[Completion, Array]:
    """Return the completed labels, and the tether of each column (c,).

    Shapes: y (n, c), unlabelled (n,), start (m, c), and a radius for each column (c,).
    """
    tethers = find_tethers(system, y, unlabelled, start=start, radii=radii)
    columns = []
    for c, tether in enumerate(tethers.tolist()):
        column = slice(c, c + 1)
        columns.append(
            complete(system, y[:, column], unlabelled, start=start[:, column], tether=tether)
        )
    return _join_columns(columns), tethers


def find_tethers(
    system: DenseSystem | DesignSystem, y: Array, unlabelled: Mask, *, start: Array, radii: Array
) -> Array:
    """Return for each column (c,) the tether whose answer is so far from the start."""
    if not unlabelled.any():
        return np.full(y.shape[1], np.inf)
    completed = arrays.replaced(y, unlabelled, start)
    downhill = -arrays.pick(system.adjoint(system.loo(completed)), unlabelled)
    solve = system.solver_of_tethers(unlabelled)
    tethers = np.empty(y.shape[1])
    for c, radius in enumerate(radii):
        column = downhill[:, c : c + 1]

        def distance(tether: float, column: Array = column) -> float:
            return linalg.length(solve(column, tether))

        tethers[c] = _solve_secular(distance, linalg.length(column), float(radius))
    return tethers


def _solve_secular(distance: Callable[[float], float], slope: float, radius: float) -> float:
    """Return the tether at which the answer has moved as far as the radius.

    `slope` is the length of the gradient at the start: with a tether the answer moves by at most
    ``slope / tether``.
    """
    if radius <= slope / LARGEST_TETHER:
        return np.inf
    if distance(0.0) <= radius:
        return 0.0
    upper = 2.0 * slope / radius

    def beyond(tether: float) -> float:
        return radius / distance(tether) - 1.0

    return float(brentq(beyond, 0.0, upper, xtol=1e-16 * upper, rtol=1e-14))


def _join_columns(columns: list[Completion]) -> Completion:
    """Return the completions of single columns as one; it is as well solved as the worst."""
    xp = arrays.namespace(columns[0].labels)
    worst = max(columns, key=lambda column: float(column.solver.get("relative_residual", 0.0)))
    return Completion(
        labels=xp.concat([column.labels for column in columns], axis=1),
        loo_residuals=xp.concat([column.loo_residuals for column in columns], axis=1),
        coefficients=xp.concat([column.coefficients for column in columns], axis=1),
        objective=xp.concat([column.objective for column in columns]),
        solver=worst.solver,
    )
