r"""Regressions with a column that is known in part, on either side: estimating equations.

A coefficient vector theta solves ``sum_i psi(theta; row_i, y_i) = 0`` over all rows of the table.
With predictions f in place of unknown values, corrected by the sample as the difference estimator
does, the equation is

    sum_known psi(y_i) + lam sum_unknown psi(f_i) + (m / l) sum_sample (psi(y_i) - lam psi(f_i)) = 0

for m unknown rows and l labels of the sample: with ``lam = 0`` labels alone speak. The factor `lam`
is the slope of ``psi(y)`` on ``psi(f)`` in the sample, kept within [0, 1]. With H the derivative
of the sum, theta is off by about ``H^-1 m (mean_sample z - mean_unknown z)``, ``z = psi(y) - lam
psi(f)``, so that its covariance is ``m^2 (1 / l + 1 / m) H^-1 cov(z) H^-T``: approximate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit

from transduce.core.types import Array
from transduce.population.sample import PartlyKnown


class Equation(Protocol):
    """What a regression asks of its coefficients, row by row."""

    def scores(self, values: Array, theta: Array) -> Array:
        """Return psi of every row, shape (n, p).

        The partly known column has these values (n,).
        """

    def slope(self, values: Array, weights: Array, theta: Array) -> Array:
        """Return minus the derivative of the weighted sum of psi, shape (p, p)."""


@dataclass(frozen=True, eq=False)
class LinearPredictor:
    """Least squares of a known outcome on known columns and the partly known one.

    The partly known column is the last.
    """

    design: Array  # (n, p - 1), the known columns
    outcome: Array  # (n,)

    def rows(self, values: Array) -> Array:
        """Return all predictors, shape (n, p)."""
        return np.column_stack([self.design, values])

    def scores(self, values: Array, theta: Array) -> Array:
        """Return ``x (outcome - x'theta)``."""
        rows = self.rows(values)
        return np.asarray(rows * (self.outcome - rows @ theta)[:, None])

    def slope(self, values: Array, weights: Array, theta: Array) -> Array:
        """Return ``sum w x x'``."""
        rows = self.rows(values)
        return np.asarray((rows * weights[:, None]).T @ rows)


@dataclass(frozen=True, eq=False)
class LogisticPredictor(LinearPredictor):
    """Logistic regression of a known outcome of zeros and ones.

    The partly known predictor is the last.
    """

    def scores(self, values: Array, theta: Array) -> Array:
        """Return ``x (outcome - P(1 | x))``."""
        rows = self.rows(values)
        return np.asarray(rows * (self.outcome - expit(rows @ theta))[:, None])

    def slope(self, values: Array, weights: Array, theta: Array) -> Array:
        """Return ``sum w P (1 - P) x x'``."""
        rows = self.rows(values)
        probability = expit(rows @ theta)
        variance = weights * probability * (1.0 - probability)
        return np.asarray((rows * variance[:, None]).T @ rows)


@dataclass(frozen=True, eq=False)
class LogisticOutcome:
    """Logistic regression of the partly known column, zeros and ones, on known columns."""

    design: Array  # (n, p)

    def scores(self, values: Array, theta: Array) -> Array:
        """Return ``x (y - P(1 | x))``; for predictions, y is the predicted probability of a one."""
        residuals = values - expit(self.design @ theta)
        return np.asarray(self.design * residuals[:, None])

    def slope(self, values: Array, weights: Array, theta: Array) -> Array:
        """Return ``sum w P (1 - P) x x'``, whatever the values."""
        probability = expit(self.design @ theta)
        weighted = weights * probability * (1.0 - probability)
        return np.asarray((self.design * weighted[:, None]).T @ self.design)


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients of an estimating equation, with their standard errors."""

    coefficients: Array  # (p,)
    standard_errors: Array  # (p,)
    degrees: float
    n_labels: int
    factor: float


MOST_STEPS = 100
SMALLEST_STEP = 1e-10  # relative to the size of the coefficients


def solve(equation: Equation, column: PartlyKnown, n_coefficients: int) -> Solution | None:
    """Return the coefficients, or None if no finite ones solve the equation."""
    alone = solve_with_factor(equation, column, n_coefficients, 0.0)
    if alone is None:
        return None
    factor = best_factor(equation, column, alone)
    if factor == 0.0:
        return alone
    return solve_with_factor(equation, column, n_coefficients, factor) or alone


def solve_with_factor(
    equation: Equation, column: PartlyKnown, n_coefficients: int, factor: float
) -> Solution | None:
    """Return the coefficients if predictions count by a factor.

    They are None if Newton's steps go astray.
    """
    known = ~column.unknown
    sampled = column.sample.rows
    n_labels, n_unknown = int(np.sum(sampled)), int(np.sum(column.unknown))
    if n_labels <= n_coefficients:
        return None
    truth = np.where(known, column.values, 0.0)
    weights_of_truth = known + sampled * (n_unknown / n_labels)
    weights_of_guess = factor * (column.unknown - sampled * (n_unknown / n_labels))

    def value(theta: Array) -> Array:
        of_truth = weights_of_truth @ equation.scores(truth, theta)
        of_guess = weights_of_guess @ equation.scores(column.predictions, theta)
        return np.asarray(of_truth + of_guess)

    def slope(theta: Array) -> Array:
        of_truth = equation.slope(truth, weights_of_truth, theta)
        of_guess = equation.slope(column.predictions, weights_of_guess, theta)
        return np.asarray(of_truth + of_guess)

    theta = newton(value, slope, n_coefficients)
    if theta is None:
        return None
    inverse = np.linalg.inv(slope(theta))
    off = equation.scores(truth, theta) - factor * equation.scores(column.predictions, theta)
    influence = off[sampled] @ inverse.T
    covariance = np.atleast_2d(np.cov(influence, rowvar=False))
    scale = n_unknown**2 * (1.0 / n_labels + 1.0 / n_unknown) if n_unknown else 0.0
    errors = np.sqrt(np.maximum(scale * np.diag(covariance), 0.0))
    return Solution(theta, errors, float(n_labels - n_coefficients), n_labels, factor)


def newton(
    value: Callable[[Array], Array], slope: Callable[[Array], Array], n_coefficients: int
) -> Array | None:
    """Return the root of a function by Newton's steps, halved while they do not help."""
    theta = np.zeros(n_coefficients)
    current = value(theta)
    for _ in range(MOST_STEPS):
        try:
            step = np.linalg.solve(slope(theta), current)
        except np.linalg.LinAlgError:
            return None
        share = 1.0
        while share > 1e-4:
            proposed = theta + share * step
            ahead = value(proposed)
            is_better = np.linalg.norm(ahead) < np.linalg.norm(current)
            if is_better or share * np.linalg.norm(step) == 0:
                break
            share /= 2.0
        moved = share * np.linalg.norm(step)
        theta, current = proposed, ahead
        if not np.isfinite(theta).all():
            return None
        if moved <= SMALLEST_STEP * (1.0 + np.linalg.norm(theta)):
            return theta
    return None


def best_factor(equation: Equation, column: PartlyKnown, alone: Solution) -> float:
    """Return the factor from 0 to 1 that makes the variances smallest, going by the sample."""
    sampled = column.sample.rows
    truth = np.where(column.unknown, 0.0, column.values)
    weights = (sampled * (len(sampled) / alone.n_labels)).astype(float)
    inverse = np.linalg.pinv(equation.slope(truth, weights, alone.coefficients))
    of_truth = equation.scores(truth, alone.coefficients)[sampled] @ inverse.T
    of_guess = equation.scores(column.predictions, alone.coefficients)[sampled] @ inverse.T
    of_truth = of_truth - of_truth.mean(axis=0)
    of_guess = of_guess - of_guess.mean(axis=0)
    # Every coefficient counts alike, whatever its unit.
    sums_of_squares = np.sum(of_truth**2, axis=0)
    sizes = np.maximum(sums_of_squares, np.finfo(float).tiny)
    together = float(np.sum(np.sum(of_truth * of_guess, axis=0) / sizes))
    guess = float(np.sum(np.sum(of_guess**2, axis=0) / sizes))
    if not guess > 0.0:
        return 0.0
    return float(np.clip(together / guess, 0.0, 1.0))
