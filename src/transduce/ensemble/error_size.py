"""Standard errors of a blend, by its value and by how far apart its members are."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from transduce.core.types import Array

PENALTY = 30.0  # on the squared coefficients; intervals are hardly wider with 10 or 100
FARTHEST = 3.0  # standard deviations at which value and spread are cut off
# Of the root mean square spread is added to every spread, so that a spread of 0 has a logarithm.
LEAST = 0.1


@dataclass(frozen=True, eq=False)
class ErrorSize:
    """The standard error of a blend as a function of its value and its members' spread at a row."""

    coefficients: Array  # (3,) of the logarithm of the size
    centres: Array  # (2,) means of value and logarithm of the spread at the labels
    units: Array  # (2,) their standard deviations
    typical: float  # root mean square spread
    factor: float  # makes a standard error of the size

    @classmethod
    def fit(
        cls,
        values: Array,
        spreads: Array,
        errors: Array,
        shares: Array,
    ) -> ErrorSize:
        """Fit the size to out-of-fold errors (r,), by their values, spreads and shares (r,)."""
        # Absolute errors ``e`` are taken as exponential with the mean ``s = exp(c'z)``, where z
        # holds 1 and the two standardised signals: ``sum(log s + e / s)`` plus a penalty on the
        # coefficients of the signals is convex in c. With few labels the size is nearly the same
        # everywhere. The standard error is s times the root mean square of ``e / s``.
        typical = float(np.sqrt(_mean(spreads**2, shares)))
        signals = _signals(values, spreads, typical)
        centres = _mean(signals, shares)
        units = np.sqrt(_mean((signals - centres) ** 2, shares))
        varies = units > 1e-9 * (1.0 + np.abs(centres))  # a signal that does not says nothing
        same = cls(np.zeros(3), centres, np.where(varies, units, np.inf), typical, 0.0)
        sizes = np.abs(errors)
        mean = float(_mean(sizes, shares))
        if mean == 0.0:
            return same
        z = same._features(values, spreads)
        tight = {"ftol": 1e-15, "gtol": 1e-9}
        columns = z, sizes / mean, shares
        solution = minimize(_loss, np.zeros(3), columns, jac=True, method="L-BFGS-B", options=tight)
        ratios = sizes * np.exp(-z @ solution.x)
        factor = float(np.sqrt(_mean(ratios**2, shares)))
        return replace(same, coefficients=solution.x, factor=factor)

    def at(self, values: Array, spreads: Array) -> Array:
        """Return standard errors at rows with these values and spreads of the members."""
        # A sum, not a matrix product, is the same for every batch.
        logs = np.sum(self._features(values, spreads) * self.coefficients, axis=1)
        return self.factor * np.exp(logs)

    def _features(self, values: Array, spreads: Array) -> Array:
        z = (_signals(values, spreads, self.typical) - self.centres) / self.units
        return np.column_stack([np.ones(len(z)), np.clip(z, -FARTHEST, FARTHEST)])


def _signals(values: Array, spreads: Array, typical: float) -> Array:
    logs = np.zeros(len(spreads))
    if typical > 0.0:
        logs = np.log(spreads + LEAST * typical)
    return np.column_stack([values, logs])


def _mean(numbers: Array, shares: Array) -> Array:
    return np.asarray(np.average(numbers, axis=0, weights=shares))


def _loss(
    coefficients: Array,
    z: Array,
    sizes: Array,
    shares: Array,
) -> tuple[float, Array]:
    """Return the penalised negative log likelihood of exponential sizes, and its gradient."""
    logs = z @ coefficients
    over = sizes * np.exp(-logs)
    pull = np.append(0.0, coefficients[1:])
    value = float(np.sum(shares * (logs + over)) + PENALTY * np.sum(pull**2))
    return value, z.T @ (shares * (1.0 - over)) + 2.0 * PENALTY * pull
