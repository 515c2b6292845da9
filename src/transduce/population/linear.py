r"""Linear functions of a column that is known in part: the difference estimator.

A mean, a total, the mean of a group, the difference of two groups, a share and a regression
coefficient of the table's own rows are all ``T = sum_i a_i y_i`` with coefficients ``a_i`` that are
known at every row. Write g for predictions that did not see the label of their own row. Then

    T_hat = sum_known a_i y_i + sum_unknown a_i g_i + sum_h m_h mean_h(a_i (y_i - g_i))

where h runs over the strata of the sample, ``m_h`` counts the unknown rows of stratum h that matter
(``a_i != 0``), and the mean is over its labelled rows that matter. If the labelled rows of a
stratum were drawn at random, ``T_hat`` is unbiased however wrong g is: it is the difference
estimator of survey sampling (Cassel, Sarndal and Wretman 1976), of late called prediction-powered
inference (Angelopoulos and others 2023).

What is off is ``sum_h m_h (mean of z in the sample - mean of z among the unknown rows)`` with ``z_i
= a_i (y_i - g_i)``, so its variance is ``sum_h m_h^2 (1 / l_h + 1 / m_h) var_h(z)``. Rows that were
labelled with their own probability e weigh ``w = (1 - e) / e`` each: the labelled row i then adds
``w_i (1 + w_i) (z_i - mean)^2``, which is the same formula where all weights are equal to ``m /
l``. Where whole groups were drawn, groups take the place of rows, and the mean is that of the ratio
of their sums and sizes.

*The factor.* ``g = c f``, with c the slope of ``y`` on the predictions f, kept within [0, 1]: it
never loses much to labels alone. For the labelled row i the slope is that of all other labelled
rows, and for unknown rows their mean: given the others, row i is a random one of itself and the
unknown rows, so the estimate stays unbiased. Where the coefficients ``a_i`` differ, g is the
regression of y on ``(1, a_i, f_i)`` in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls
from scipy.stats import t as student_t

from transduce.core.types import AnyArray, Array, Mask
from transduce.population.sample import PartlyKnown, Sample

# Labels that matter below which the factor comes from all labels of the sample, and not from those
# of a small group alone.
FEWEST_FOR_OWN_FACTOR = 20
FEWEST_LABELS = 2  # with one there is no spread


@dataclass(frozen=True)
class LinearEstimate:
    """An estimate of a linear function of a column, with what its interval needs.

    Attributes
    ----------
    estimate, standard_error, degrees : float
        The estimate, its standard error, and the degrees of freedom of the latter; NaN and 0 where
        labels are too few.
    n_labels : int
        Labels of the sample that matter.
    factor : float
        By how much predictions were multiplied, from 0 to 1.
    lowest, highest : float
        Estimates at the worst weights that a sensitivity allows; the estimate itself without one.
    skewness : float
        Skewness of the error of the estimate, as far as the sample shows it.
    """

    estimate: float
    standard_error: float
    degrees: float
    n_labels: int
    factor: float
    lowest: float
    highest: float
    skewness: float = 0.0

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the interval at a level by the t distribution; infinite if labels are too few.

        Skewed errors reach further to one side, by Hall's transformation (1992) of the studentised
        mean: that side is extended, and the other not shortened. With 30 labels, log-normal values
        (sigma 0.7) and predictions 95 % intervals held the mean in 95 % of trials instead of 92 %.
        """
        if not self.degrees > 0.0:
            return -np.inf, np.inf
        quantile = float(student_t.ppf((1.0 + confidence) / 2.0, self.degrees))
        below = max(quantile, skewed_quantile(quantile, self.skewness))
        above = max(quantile, -skewed_quantile(-quantile, self.skewness))
        return (
            self.lowest - below * self.standard_error,
            self.highest + above * self.standard_error,
        )


def skewed_quantile(quantile: float, skewness: float) -> float:
    """Return the quantile of a studentised mean whose errors are skewed.

    The quantile for symmetric errors is given.
    """
    if abs(skewness) < 1e-6:
        return quantile
    cubed = 1.0 + skewness * (quantile - skewness / 6.0)
    return float(3.0 / skewness * (np.cbrt(cubed) - 1.0))


def estimate_linear(column: PartlyKnown, coefficients: Array) -> LinearEstimate:
    """Return an estimate of ``sum_i a_i y_i``. Shapes: coefficients (n,)."""
    unknown = column.unknown
    matters = coefficients != 0.0
    known_sum = float(np.sum(coefficients[~unknown] * column.values[~unknown]))
    sampled = column.sample.rows & matters
    missing = unknown & matters
    n_labels = int(np.sum(sampled))
    if not missing.any():
        return LinearEstimate(known_sum, 0.0, np.inf, n_labels, 0.0, known_sum, known_sum)
    adjusted, factor = adjust_predictions(column, coefficients)
    predicted_sum = float(np.sum(coefficients[missing] * adjusted[missing]))
    errors = np.zeros(len(coefficients))
    errors[sampled] = coefficients[sampled] * (column.values - adjusted)[sampled]
    centred = column.predictions - np.mean(column.predictions[matters])
    magnitudes = (coefficients * centred) ** 2
    rows = RowErrors(errors, magnitudes, sampled, missing)
    correction = correct_by_sample(column.sample, rows)
    plain_sum = known_sum + predicted_sum
    return LinearEstimate(
        estimate=plain_sum + correction.total,
        standard_error=correction.standard_error,
        degrees=correction.degrees,
        n_labels=n_labels,
        factor=factor,
        lowest=plain_sum + correction.lowest,
        highest=plain_sum + correction.highest,
        skewness=correction.skewness,
    )


# -------------------------------------------------------------------------- predictions, adjusted


def adjust_predictions(column: PartlyKnown, coefficients: Array) -> tuple[Array, float]:
    """Return predictions as the labels of other rows adjust them, shape (n,), and their factor.

    At a labelled row the adjustment comes from all other labelled rows, at unlabelled ones it is
    the mean of those adjustments.
    """
    matters = coefficients != 0.0
    averaged = column.sample.rows & matters
    teaching = averaged
    if np.sum(teaching) < FEWEST_FOR_OWN_FACTOR:
        teaching = column.sample.rows
    if not averaged.any():
        averaged = teaching
    is_constant = np.ptp(coefficients[matters]) <= 1e-12 * np.max(np.abs(coefficients))
    if is_constant:
        # About their mean over all rows that matter, which no label changes: what is added to every
        # prediction then changes nothing, though every labelled row has a factor of its own.
        centred = column.predictions - np.mean(column.predictions[matters])
        centred_column = column.with_values(column.values, centred)
        return multiply_predictions(centred_column, teaching, averaged)
    return regress_on_predictions(column, coefficients, teaching, averaged)


def multiply_predictions(
    column: PartlyKnown, teaching: Mask, averaged: Mask
) -> tuple[Array, float]:
    """Return predictions times a factor from 0 to 1, the slope of the labels on them."""
    slopes = slopes_without_each(column.predictions, column.values, teaching)
    factors = np.clip(slopes, 0.0, 1.0)
    factor = float(np.mean(factors[averaged]))
    factors = np.where(averaged, factors, factor)
    return factors * column.predictions, factor


def slopes_without_each(x: Array, y: Array, rows: Mask) -> Array:
    """Return the least-squares slope of y on x over some rows, without each of them in turn.

    Other rows, and those without which x does not vary, have slope 0. Returns shape (n,).
    """
    slopes = np.zeros(len(x))
    count = int(np.sum(rows))
    if count < 3:
        return slopes
    x_off = x[rows] - np.mean(x[rows])
    y_off = y[rows] - np.mean(y[rows])
    # Without row i both means move: sums of products about them lose n / (n - 1) of its product.
    share = count / (count - 1.0)
    covariance = np.sum(x_off * y_off) - share * x_off * y_off
    variance = np.sum(x_off**2) - share * x_off**2
    enough = variance > 1e-12 * np.sum(x_off**2)
    slopes[rows] = np.divide(covariance, variance, out=np.zeros(count), where=enough)
    return slopes


FEWEST_FOR_REGRESSION = (
    6  # labels: three coefficients, and as many rows to tell what they are worth
)


def regress_on_predictions(
    column: PartlyKnown, coefficients: Array, teaching: Mask, averaged: Mask
) -> tuple[Array, float]:
    """Return the regression of the labels on predictions and ``(1, a)``.

    The second result is the slope of the predictions.

    Where the coefficients ``a_i`` of a linear function differ, errors whose mean is not 0, or that
    grow with them, would add to its spread.
    """
    if np.sum(teaching) < FEWEST_FOR_REGRESSION:
        return np.zeros(len(coefficients)), 0.0
    scale = np.max(np.abs(coefficients))
    design = np.column_stack([np.ones(len(coefficients)), coefficients / scale, column.predictions])
    taught = design[teaching]
    # Predictions of any unit: columns are scaled, so that none is lost in the pseudo-inverse.
    root_mean_squares = np.sqrt(np.mean(taught**2, axis=0))
    sizes = np.maximum(root_mean_squares, np.finfo(float).tiny)
    design = design / sizes
    taught = taught / sizes
    gram = np.linalg.pinv(taught.T @ taught, rcond=1e-10, hermitian=True)
    beta = gram @ (taught.T @ column.values[teaching])
    leverage = np.einsum("ij,jk,ik->i", taught, gram, taught)
    residuals = column.values[teaching] - taught @ beta
    # Without row i the coefficients are beta - gram x_i r_i / (1 - h_i).
    left = np.maximum(1.0 - leverage, 1e-9)
    betas = np.tile(beta, (len(coefficients), 1))
    betas[teaching] -= (residuals / left)[:, None] * (taught @ gram)
    mean_beta = np.mean(betas[averaged], axis=0)
    betas[~averaged] = mean_beta
    return np.sum(design * betas, axis=1), float(mean_beta[2] / sizes[2])


# ------------------------------------------------------------------- what the sample says of errors


@dataclass(frozen=True, eq=False)
class RowErrors:
    """What predictions are off by at sampled rows, and what is known of the rows that are missing.

    Attributes
    ----------
    errors : array of shape (n,)
        ``a_i (y_i - g_i)`` at sampled rows, 0 elsewhere.
    magnitudes : array of shape (n,)
        Squares of ``a_i f_i``, predictions taken about their mean: errors may grow with them.
    sampled, missing : boolean array of shape (n,)
        Rows that matter, with a label of the sample and with none.
    """

    errors: Array
    magnitudes: Array
    sampled: Mask
    missing: Mask

    def inside(self, rows: Mask) -> RowErrors:
        """Return the same of some rows alone."""
        return RowErrors(self.errors, self.magnitudes, self.sampled & rows, self.missing & rows)


@dataclass(frozen=True)
class Correction:
    """What the errors of the sample say of the sum of the errors at unknown rows."""

    total: float
    standard_error: float
    degrees: float
    lowest: float
    highest: float
    skewness: float = 0.0


NOTHING_KNOWN = Correction(np.nan, np.nan, 0.0, np.nan, np.nan)


def correct_by_sample(sample: Sample, rows: RowErrors) -> Correction:
    """Return an estimate of the sum of errors over the missing rows."""
    parts = []
    for stratum in np.unique(sample.stratum_codes[rows.missing]):
        part = correct_in_stratum(sample, rows.inside(sample.stratum_codes == stratum))
        if part is NOTHING_KNOWN:
            return NOTHING_KNOWN
        parts.append(part)
    total = sum(part.total for part in parts)
    lowest = sum(part.lowest for part in parts)
    highest = sum(part.highest for part in parts)
    unit = max((part.standard_error for part in parts), default=0.0)
    if not unit > 0.0:
        return Correction(total, 0.0, np.inf, lowest, highest)
    variance = weighted_degrees = third_moment = 0.0
    for part in parts:
        size = part.standard_error / unit  # so that no power is too large, or 0
        variance += size**2
        third_moment += part.skewness * size**3
        weighted_degrees += size**4 / part.degrees
    # Satterthwaite's approximation, which is the degrees themselves where there is one stratum.
    degrees = variance**2 / weighted_degrees if weighted_degrees > 0.0 else np.inf
    skewness = third_moment / variance**1.5
    error = unit * float(np.sqrt(variance))
    return Correction(total, error, float(degrees), lowest, highest, float(skewness))


def correct_in_stratum(sample: Sample, rows: RowErrors) -> Correction:
    """Return the correction of one stratum, whose sampled units were drawn at random."""
    units, unit_of_row = np.unique(sample.unit_codes[rows.sampled], return_inverse=True)
    n_units = len(units)
    n_missing = int(np.sum(rows.missing))
    if n_units < FEWEST_LABELS:
        return NOTHING_KNOWN
    sums = np.bincount(unit_of_row, rows.errors[rows.sampled], n_units).astype(float)
    sizes = np.bincount(unit_of_row, minlength=n_units).astype(float)
    if sample.odds is None:
        n_missing_units = len(np.unique(sample.unit_codes[rows.missing]))
        weights = np.full(n_units, n_missing_units / n_units)
    else:
        weights = np.bincount(unit_of_row, sample.odds[rows.sampled], n_units) / sizes
    weight_sum = float(np.sum(weights * sizes))
    if not weight_sum > 0.0:
        return NOTHING_KNOWN
    worth = float(np.sum(weights) ** 2 / np.sum(weights**2))
    if not worth > 1.0:
        return NOTHING_KNOWN
    mean_error = float(np.sum(weights * sums)) / weight_sum
    off = sums - mean_error * sizes
    # By how much the weights miss the number of missing rows, which is known.
    scale = n_missing / weight_sum
    spread = float(np.sum(weights * (1.0 + weights) * off**2)) * worth / (worth - 1.0)
    if sample.odds is None and sample.groups is None:
        spread *= spread_of_all_rows(off, rows)
    error = scale * float(np.sqrt(spread))
    skewness = 0.0
    if error > 0.0:
        skewness = float(np.sum((weights * (scale * off / error)) ** 3))
    total = n_missing * mean_error
    lowest, highest = total, total
    if sample.sensitivity > 1.0:
        lowest = n_missing * worst_mean(sums, sizes, weights, sample.sensitivity)
        highest = -n_missing * worst_mean(-sums, sizes, weights, sample.sensitivity)
    return Correction(
        total=total,
        standard_error=error,
        degrees=worth - 1.0,
        lowest=lowest,
        highest=highest,
        skewness=skewness,
    )


def spread_of_all_rows(off: Array, rows: RowErrors) -> float:
    """Return by what factor errors vary more over all rows than in the sample, 1 at least.

    Errors often grow with the predictions, which are known at all rows. A sample without the
    largest ones would take the spread for smaller than it is: squared errors are regressed on the
    squares of the predictions, and the regression is averaged over all rows. Shapes: off (l,).
    """
    squares = off**2
    mean_square = float(np.mean(squares))
    of_sample = rows.magnitudes[rows.sampled]
    if not mean_square > 0.0 or not np.ptp(of_sample) > 0.0:
        return 1.0
    design = np.column_stack([np.ones(len(squares)), of_sample / np.mean(of_sample)])
    constant, slope = nnls(design, squares / mean_square)[0]
    everywhere = float(np.mean(rows.magnitudes[rows.sampled | rows.missing]))
    return max(1.0, constant + slope * everywhere / float(np.mean(of_sample)))


def worst_mean(sums: Array, sizes: Array, weights: Array, factor: float) -> float:
    """Return the smallest weighted mean if each weight may be off by a factor, either way.

    The smallest is reached where units below some limit weigh most and those above it least, so it
    is enough to try every limit between neighbours. Shapes: sums, sizes, weights (k,).
    """
    order = np.argsort(sums / sizes)
    heavy = factor * weights[order]
    light = weights[order] / factor
    sorted_sums = sums[order]
    sorted_sizes = sizes[order]
    low_sums = np.append(0.0, np.cumsum(heavy * sorted_sums))
    low_sizes = np.append(0.0, np.cumsum(heavy * sorted_sizes))
    high_sums = np.append(np.cumsum((light * sorted_sums)[::-1])[::-1], 0.0)
    high_sizes = np.append(np.cumsum((light * sorted_sizes)[::-1])[::-1], 0.0)
    return float(np.min((low_sums + high_sums) / (low_sizes + high_sizes)))


# ------------------------------------------------------------------------ rows on which it hinges

# Share of the sum of squared coefficients that a few unlabelled rows may hold before the answer is
# said to hinge on them. A sample without such rows cannot know what they do to the answer.
HINGE_SHARE = 0.1
MOST_HINGES = 20  # more rows than these are not a few


def hinge_rows(column: PartlyKnown, coefficients: Array) -> AnyArray:
    """Return the unlabelled rows, largest first, on which the answer hinges; none as a rule.

    Coefficients are taken about their mean over the rows that matter: for a mean all of them are 0,
    and no row decides. Shapes: coefficients (n,), returns (k,).
    """
    matters = coefficients != 0.0
    off = np.where(matters, coefficients - np.mean(coefficients[matters]), 0.0)
    squares = off**2
    total = float(np.sum(squares))
    if not total > 0.0:
        return np.zeros(0, dtype=int)
    if np.ptp(coefficients[matters]) <= 1e-9 * np.max(np.abs(coefficients)):
        return np.zeros(0, dtype=int)
    shares = np.where(column.unknown, squares / total, 0.0)
    largest = np.argsort(-shares, kind="stable")[:MOST_HINGES]
    n_rows = int(np.sum(matters))
    # An ordinary row of n holds about 1 / n of the sum, and the largest of normal ones 9 / n.
    remarkable = shares[largest] > max(20.0 / n_rows, HINGE_SHARE / MOST_HINGES)
    hinges = largest[remarkable]
    if float(np.sum(shares[hinges])) < HINGE_SHARE:
        return np.zeros(0, dtype=int)
    return hinges
