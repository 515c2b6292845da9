"""Regressions with a column that has missing labels, on either side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from transduce.core.checks import check_flag, check_share
from transduce.core.types import AnyArray, Array, Labels, Rows
from transduce.population.equations import Equation, EquationOfColumn
from transduce.population.linear import LinearEstimate, hinge_rows, is_spread_by_far
from transduce.population.lines import Estimate, line_of, linear_line, make_frame
from transduce.population.sample import (
    PartlyKnown,
    Sample,
    check_length,
    read_column,
    read_numbers,
)
from transduce.population.uncertain import NOTHING_KNOWN


def estimate_regression(  # noqa: PLR0913 - settings of a public function
    y: Labels,
    X: Rows = None,
    predictions: npt.ArrayLike | None = None,
    *,
    outcome: Any = None,
    logistic: bool = False,
    confidence: float = 0.95,
    sample: Sample | None = None,
    refitted: bool = False,
) -> pd.DataFrame:
    """Estimate the coefficients of a regression with a column that is known in part.

    They are those that all rows of the table would give if the column were complete. Without
    `outcome` the column is regressed on X; with it, the outcome is regressed on X and the column.

    Parameters
    ----------
    y, predictions, confidence, sample, refitted
        As those of `estimate_mean`. For a logistic regression of y, y holds 0 and 1, and
        predictions are probabilities of a 1.
    X : DataFrame or array-like of shape (n, d), optional
        Columns known at every row; a constant is added.
    outcome : array-like of shape (n,), optional
        A column known at every row, to be regressed on X and y.
    logistic : bool, default=False
        Whether it is a logistic regression, of zeros and ones.

    Returns
    -------
    pandas.DataFrame
        As that of `estimate_mean`, with a line for each coefficient.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.population import estimate_regression
    >>> x = np.linspace(0.0, 1.0, 60)
    >>> y = np.where(np.arange(60) % 3 == 0, 2.0 * x + 1.0, np.nan)
    >>> estimate_regression(y, x[:, None], 2.0 * x)["estimate"].round(6).tolist()
    [1.0, 2.0]
    """
    confidence = check_share("confidence", confidence)
    check_flag("logistic", logistic)
    column = read_column(y, predictions, sample, refitted)
    design, names = read_design_matrix(X, len(column.values))
    if outcome is None and not logistic:
        by_coefficient = linear_coefficients(design, column)
        return make_frame(
            {
                name: linear_line(column, coefficients, confidence)
                for name, coefficients in zip(names, by_coefficient, strict=True)
            }
        )
    known_outcome = None
    if outcome is None:
        check_zeros_and_ones("y", column.values)
    else:
        known_outcome = read_outcome(outcome, len(column.values), logistic=logistic)
        names = [*names, "y"]
    equation = Equation(design, known_outcome, logistic)
    return make_frame(equation_lines(column, equation, names, confidence))


def hinges_of_regression(
    y: Labels,
    X: Rows,
    predictions: npt.ArrayLike | None = None,
    *,
    logistic: bool = False,
    sample: Sample | None = None,
) -> dict[Any, AnyArray]:
    """Return the unlabelled rows on which each coefficient of a regression of y hinges.

    Parameters
    ----------
    y, predictions, sample
        As those of `estimate_mean`.
    X : DataFrame or array-like of shape (n, d)
        Columns known at every row; a constant is added.
    logistic : bool, default=False
        Whether y is 0 or 1, and the regression logistic.

    Returns
    -------
    dict
        For each coefficient positions of rows, largest influence first; none as a rule.
    """
    column = read_column(y, predictions, sample)
    design, names = read_design_matrix(X, len(column.values))
    if not logistic:
        coefficients = linear_coefficients(design, column)
        return {
            name: hinge_rows(column, row) for name, row in zip(names, coefficients, strict=True)
        }
    problem = EquationOfColumn.of(Equation(design, None, logistic), column)
    solution = None if problem is None else problem.solve()
    if problem is None or solution is None:
        return {}
    return {
        name: hinge_rows(column, problem.leverages(solution, place))
        for place, name in enumerate(names)
    }


def linear_coefficients(design: Array, column: PartlyKnown) -> Array:
    """Return what makes each regression coefficient a linear function of the column, shape (d, n).

    Row k of the pseudo-inverse of the design (n, d) of the rows that are asked about, and for rows
    elsewhere what it would be for a row with their columns.
    """
    asked = column.sample.asked
    # About their means, in units of their spreads: times within an hour, in seconds since 1970,
    # have no slope in double precision otherwise.
    centre = design[asked].mean(axis=0)
    spread = design[asked].std(axis=0)
    centre[0] = 0.0  # of the constant
    spread[~(spread > 0.0)] = 1.0
    Z = (design - centre) / spread
    inverse: Array = np.linalg.pinv(Z[asked]).astype(float)
    coefficients = np.empty((design.shape[1], len(design)))
    coefficients[:, asked] = inverse
    coefficients[:, ~asked] = inverse @ inverse.T @ Z[~asked].T
    coefficients /= spread[:, None]
    coefficients[0] -= centre[1:] @ coefficients[1:]
    return coefficients


def equation_lines(
    column: PartlyKnown, equation: Equation, names: Sequence[Any], confidence: float
) -> dict[Any, Estimate]:
    """Return a line for each coefficient of an estimating equation."""
    problem = EquationOfColumn.of(equation, column)
    ours = alone = None
    if problem is not None:
        ours = problem.solve()
        alone = problem.solve_with_factor(0.0)
    if problem is None or ours is None or alone is None:
        unknown = LinearEstimate(NOTHING_KNOWN, column.sample.n_labels, np.inf, 0.0)
        return {name: line_of(unknown, unknown, confidence) for name in names}
    # A row that was drawn and got no label may have any value, and no sample tells which.
    is_doubtful = column.sample.n_lost(column.unknown) > 0
    # As a predictor the column has the more leverage the farther out a row lies.
    is_doubtful |= equation.outcome is not None and is_spread_by_far(column)
    lines = {}
    for place, name in enumerate(names):
        hinges = (
            equation.outcome is None and hinge_rows(column, problem.leverages(ours, place)).size
        )
        lines[name] = line_of(
            problem.estimate(ours, place),
            problem.estimate(alone, place),
            confidence,
            doubtful=is_doubtful or bool(hinges),
        )
    return lines


def read_outcome(outcome: Any, n_rows: int, *, logistic: bool) -> Array:
    """Return an outcome that is known at every row, shape (n,)."""
    numbers = read_numbers("outcome", outcome)
    check_length("outcome", numbers, n_rows)
    if not np.isfinite(numbers).all():
        raise ValueError("outcome must be a finite number at every row.")
    if logistic:
        check_zeros_and_ones("outcome", numbers)
    return numbers


def read_design_matrix(X: Rows, n_rows: int) -> tuple[Array, list[Any]]:
    """Return known columns with a constant before them, and the names of the coefficients."""
    if X is None:
        return np.ones((n_rows, 1)), ["constant"]
    try:
        if isinstance(X, pd.DataFrame):
            frame = X
        else:
            frame = pd.DataFrame(np.asarray(X))
    except (TypeError, ValueError, OverflowError):
        raise ValueError("X must be a table of numbers, known at every row.") from None
    check_length("X", frame.to_numpy(), n_rows)
    numbers = np.column_stack([read_numbers(f"X[{name!r}]", frame[name]) for name in frame])
    if not np.isfinite(numbers).all():
        raise ValueError("X must hold a finite number in every cell: it is known at every row.")
    if isinstance(X, pd.DataFrame):
        names = list(frame.columns)
    else:
        names = [f"x{k}" for k in range(numbers.shape[1])]
    design = np.column_stack([np.ones(n_rows), numbers])
    names = ["constant", *names]
    check_independent(design, names)
    return design, names


NEARLY_DEPENDENT = 1e-10  # of the length of a column: what the columns before it do not explain


def check_independent(design: Array, names: list[Any]) -> None:
    """Raise a ValueError if a column is the constant again, or a sum of multiples of others."""
    lengths = np.linalg.norm(design, axis=0)
    scaled = design / np.where(lengths > 0.0, lengths, 1.0)
    triangle = np.linalg.qr(scaled, mode="r")
    left = np.zeros(len(names))
    left[: len(triangle)] = np.abs(np.diag(triangle))
    dependent = np.flatnonzero(left < NEARLY_DEPENDENT)
    if len(dependent):
        name = names[dependent[0]]
        raise ValueError(
            f"{name!r} is constant, or follows from the other columns of the regression: leave it "
            "out."
        )


def check_zeros_and_ones(name: str, values: Array) -> None:
    """Raise a ValueError unless known values are 0 or 1."""
    known = values[~np.isnan(values)]
    if not np.isin(known, (0.0, 1.0)).all():
        raise ValueError(f"A logistic regression of {name} needs zeros and ones.")
