r"""Linear functions of a column that is known in part: the difference estimator.

A mean, a total, the mean of a group, the difference of two groups, a share and a regression
coefficient of the table's own rows are all ``T = sum_i a_i y_i`` with coefficients ``a_i`` that are
known at every row. Write g for predictions that did not see the label of their own row. Then

    T_hat = sum_known a_i y_i + sum_unknown a_i g_i + sum_h m_h mean_h(a_i (y_i - g_i))

where h runs over the strata of the sample, ``m_h`` counts the unknown rows of stratum h that matter
(``a_i != 0``), and the mean is over its labelled rows that matter. If the labelled rows of a
stratum were drawn at random, ``T_hat`` is unbiased however wrong g is: it is the difference
estimator of survey sampling (Cassel, Sarndal and Wretman 1976), of late called prediction-powered
inference (Angelopoulos and others 2023). The last sum, and its standard error, are those of
`corrections`.

*The factor.* ``g = c f``, with c the slope of ``y`` on the predictions f, kept within [0, 1]: it
never loses much to labels alone. For the labelled row i the slope is that of all other labelled
rows, and for unknown rows their mean: given the others, row i is a random one of itself and the
unknown rows, so the estimate stays unbiased. Where the coefficients ``a_i`` differ, g is the
regression of y on ``(1, a_i, f_i)`` in the same way. What is fitted to the labels costs degrees of
freedom: of 19 real tables with 30 labels, predicted by `fill`, means were held in 92.4 % instead of
91.8 % of 380 draws.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from transduce.core.types import AnyArray, Array, Mask
from transduce.population.corrections import RowErrors, correct_by_sample
from transduce.population.sample import PartlyKnown
from transduce.population.skewness import skewness_of_all
from transduce.population.uncertain import NOTHING_KNOWN, Uncertain, add_independent

# Labels that matter below which the factor comes from all labels of the sample, and not from those
# of a small group alone.
FEWEST_FOR_OWN_FACTOR = 20
# Predictions of a fit to all labels move estimates more than their out-of-fold errors say: all
# labels chose its settings, and each counts in it a little more than in the fits of the folds.
# Beside labels alone, means of ten real tables with 100 labels, predicted by `fill`, varied 1.06
# times as much as their errors said (589 draws); those predicted by ridge regression 1.02 and by
# trees 1.06 times as much as with the mean of the folds' fits (180 and 225 draws of nine of them).
BY_REFITTING = 1.06
FEWEST_FOR_SLOPE = 3  # labels
FEWEST_FOR_REGRESSION = 6  # three coefficients, and as many rows to tell what they are worth


@dataclass(frozen=True)
class LinearEstimate:
    """An estimate of a linear function of a column, and what it rests on.

    Attributes
    ----------
    number : Uncertain
        The estimate, with its standard error.
    n_labels : int
        Labels of the sample that matter.
    n_rows : float
        Rows that they stand for, themselves among them; infinite where they are other rows.
    factor : float
        By how much predictions were multiplied, from 0 to 1.
    """

    number: Uncertain
    n_labels: int
    n_rows: float
    factor: float

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the interval at a level; infinite if labels are too few."""
        return self.number.interval(confidence)

    @property
    def is_known(self) -> bool:
        """Whether no row that matters is without a label."""
        return bool(np.isinf(self.number.degrees))

    def no_surer_than_a_sample(self, alone: LinearEstimate, confidence: float) -> LinearEstimate:
        """Return the estimate with the error that rows may have which are unlike the sample.

        Predictions that are right at every label may be useless at some other rows. If they are at
        a share r of the rows, none of l labels shows it with a probability of ``(1 - r)^l``, so
        that shares up to ``1 - (alpha / 2)^(1 / l)``, about 3.7 / l at 95 %, stay possible: the
        "rule of three" (Hanley and Lippman-Hand 1983). There errors are as large as without
        predictions: the variance is at least this share of that of the labels alone. With 30, 100
        and 300 labels no interval is narrower than .34, .19 and .11 of that of labels alone.

        Without this, 95 % intervals held the share of a class, predicted wrongly at three rows of a
        hundred, in 66 and 91 % of 400 draws with 30 and 100 labels, and with it in 98 and 95 %.
        """
        if self.is_known or not self.number.is_told or not alone.number.is_told:
            return self
        n_units = alone.number.degrees + 1.0
        share = share_unseen(n_units, confidence)
        least = float(np.sqrt(share)) * alone.number.standard_error
        error = self.number.standard_error
        if error >= least:
            return self
        unseen = least * float(np.sqrt(1.0 - (error / least) ** 2))
        of_unseen = Uncertain(0.0, unseen, alone.number.degrees, 0.0, 0.0)
        return replace(self, number=add_independent([self.number, of_unseen]))

    def __sub__(self, other: LinearEstimate) -> LinearEstimate:
        """Return the difference from another number, whose error is independent."""
        return LinearEstimate(
            number=add_independent([self.number, -other.number]),
            n_labels=self.n_labels + other.n_labels,
            n_rows=self.n_rows + other.n_rows,
            factor=(self.factor + other.factor) / 2.0,
        )


def share_unseen(n_labels: float, confidence: float) -> float:
    """Return the largest share of rows of which no label is one, as far as chance allows."""
    return float(1.0 - ((1.0 - confidence) / 2.0) ** (1.0 / n_labels))


def estimate_linear(column: PartlyKnown, coefficients: Array) -> LinearEstimate:
    """Return an estimate of ``sum_i a_i y_i``. Shapes: coefficients (n,)."""
    matters = coefficients != 0.0
    known = column.known
    known_sum = float(np.sum(coefficients[known] * column.values[known]))
    sampled = column.sample.rows & matters
    missing = column.unknown & matters
    n_labels = int(np.sum(sampled))
    n_rows = column.count_rows(sampled, missing)
    if not missing.any():
        return LinearEstimate(Uncertain.certain(known_sum), n_labels, n_rows, 0.0)
    adjusted = adjust_predictions(column, coefficients)
    predicted_sum = float(np.sum(coefficients[missing] * adjusted.predictions[missing]))
    centred = column.predictions - np.mean(column.predictions[matters])
    rows = RowErrors(
        errors=coefficients * (column.values - adjusted.predictions),
        leverages=coefficients**2,
        magnitudes=(coefficients * centred) ** 2,
        sampled=sampled,
        missing=missing,
        have_tails=not column.is_zeros_and_ones,
    )
    correction = correct_by_sample(column.sample, rows)
    if correction is NOTHING_KNOWN:
        return LinearEstimate(correction, n_labels, n_rows, adjusted.factor)
    number = correction.after_fitting(adjusted.n_fitted, n_labels) + (known_sum + predicted_sum)
    if column.refitted and column.predictions.any():
        number = number.with_larger_error(BY_REFITTING)
    skewness = skewness_by_others(column, adjusted, coefficients)
    if abs(skewness) > abs(number.skewness):
        number = replace(number, skewness=skewness)
    return LinearEstimate(number, n_labels, n_rows, adjusted.factor)


def skewness_by_others(column: PartlyKnown, adjusted: Adjusted, coefficients: Array) -> float:
    """Return the skewness that the error of a group's mean has if all labels are as skewed.

    A few labels seldom show how skewed they are: ten of them have a skewness of 2.7 at most. Those
    of the other groups, about their own mean, show it better.

    0 where the rows that matter are all rows, where their coefficients differ, for zeros and ones,
    whose skewness their own share tells, and for other samples than simple ones.
    """
    matters = coefficients != 0.0
    sampled = column.sample.rows
    inside = sampled & matters
    beside = sampled & ~matters
    n_labels = int(np.sum(inside))
    is_group = n_labels > 0 and int(np.sum(beside)) > 1 and column.sample.is_simple
    if not is_group or not has_one_size(coefficients) or column.is_zeros_and_ones:
        return 0.0
    errors = column.values - adjusted.predictions
    errors_inside = errors[inside]
    errors_beside = errors[beside]
    off = np.concatenate(
        [errors_inside - np.mean(errors_inside), errors_beside - np.mean(errors_beside)]
    )
    n_missing = int(np.sum(column.unknown & matters))
    share_missing = n_missing / (n_labels + n_missing)
    sign = float(np.sign(coefficients[inside][0]))
    skewness = skewness_of_all(off) * share_missing**1.5 / float(np.sqrt(n_labels))
    return sign * skewness


def has_one_size(coefficients: Array) -> bool:
    """Return whether all coefficients that are not 0 are the same."""
    matters = coefficients != 0.0
    return bool(np.ptp(coefficients[matters]) <= 1e-12 * np.max(np.abs(coefficients)))


# -------------------------------------------------------------------------- predictions, adjusted


@dataclass(frozen=True, eq=False)
class Adjusted:
    """Predictions as the labels of other rows adjust them.

    Attributes
    ----------
    predictions : array of shape (n,)
    factor : float
        Their slope, for unlabelled rows.
    n_fitted : int
        How many numbers were fitted to the labels that the estimate rests on.
    """

    predictions: Array
    factor: float
    n_fitted: int = 0


def adjust_predictions(column: PartlyKnown, coefficients: Array) -> Adjusted:
    """Return predictions as the labels of other rows adjust them.

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
    if has_one_size(coefficients):
        # About their mean over all rows that matter, which no label changes: what is added to every
        # prediction then changes nothing, though every labelled row has a factor of its own.
        centred = column.predictions - np.mean(column.predictions[matters])
        centred_column = column.with_values(column.values, centred)
        return multiply_predictions(centred_column, teaching, averaged)
    return regress_on_predictions(column, coefficients, teaching, averaged)


def multiply_predictions(column: PartlyKnown, teaching: Mask, averaged: Mask) -> Adjusted:
    """Return predictions times a factor from 0 to 1, the slope of the labels on them."""
    slopes = slopes_without_each(column.predictions, column.values, teaching)
    factors = np.clip(slopes, 0.0, 1.0)
    factor = float(np.mean(factors[averaged]))
    factors = np.where(averaged, factors, factor)
    is_own = np.sum(teaching) == np.sum(averaged)
    n_fitted = int(is_own and np.any(factors > 0.0))
    return Adjusted(factors * column.predictions, factor, n_fitted)


def slopes_without_each(x: Array, y: Array, rows: Mask) -> Array:
    """Return the least-squares slope of y on x over some rows, without each of them in turn.

    Other rows, and those without which x does not vary, have slope 0. Returns shape (n,).
    """
    slopes = np.zeros(len(x))
    count = int(np.sum(rows))
    if count < FEWEST_FOR_SLOPE:
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


def regress_on_predictions(
    column: PartlyKnown, coefficients: Array, teaching: Mask, averaged: Mask
) -> Adjusted:
    """Return the regression of the labels on predictions and ``(1, a)``.

    Where the coefficients ``a_i`` of a linear function differ, errors whose mean is not 0, or that
    grow with them, would add to its spread.
    """
    if np.sum(teaching) < FEWEST_FOR_REGRESSION:
        return Adjusted(np.zeros(len(coefficients)), 0.0)
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
    n_fitted = 0
    if np.sum(teaching) == np.sum(averaged):
        n_fitted = round(float(np.sum(leverage))) - 1  # the rank, less the mean
    predictions = np.sum(design * betas, axis=1)
    return Adjusted(predictions, float(mean_beta[2] / sizes[2]), n_fitted)


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


# --------------------------------------------------------------------- predictions that lie far out

# Predictions beyond those of all labelled rows by so many times their range are like none that a
# label has checked. They decide an answer if they move it by more than this part of its standard
# error. Of log-normal sizes of firms (sigma 1.2 and 1.6; 40 of 500 labelled), with predictions off
# by half, intervals at 95 % held 95 % of means that such predictions moved by up to half a standard
# error, 81 and 95 % up to a whole one, and 79 and 82 % up to two. Of 2,409 means of thirty real
# tables this stopped one, which was off by six standard errors.
FAR_OUT = 2.0
FAR_SHARE = 1.0


def far_predictions(column: PartlyKnown, rows: Mask) -> AnyArray:
    """Return the unlabelled ones of some rows (n,) whose predictions lie far out, farthest first.

    A wrong decimal sign in one prediction of 400 moved a mean by 36 of its standard errors, and no
    error at a label showed it.
    """
    beyond = beyond_labelled(column, rows)
    widest = np.ptp(column.predictions[column.sample.rows])
    far = np.flatnonzero(np.abs(beyond) > FAR_OUT * widest)
    return np.asarray(far[np.argsort(-np.abs(beyond[far]), kind="stable")])


def beyond_labelled(column: PartlyKnown, rows: Mask) -> Array:
    """Return by how much predictions (n,) of unlabelled rows lie beyond those of all labelled ones.

    0 at other rows. No prediction of zeros and ones that lies between them is far out.
    """
    missing = column.unknown & rows
    known = column.predictions[column.sample.rows]
    lowest = float(np.min(known))
    highest = float(np.max(known))
    if column.is_zeros_and_ones:
        lowest = min(lowest, 0.0)
        highest = max(highest, 1.0)
    inside = np.clip(column.predictions, lowest, highest)
    return np.where(missing, column.predictions - inside, 0.0)


def is_spread_by_far(column: PartlyKnown) -> bool:
    """Return whether predictions that lie far out have a tenth of the spread of a filled column."""
    far = far_predictions(column, column.sample.asked)
    if not len(far):
        return False
    filled = np.where(column.unknown, column.predictions, column.values)[column.sample.asked]
    centre = np.mean(filled)
    of_far = float(np.sum((column.predictions[far] - centre) ** 2))
    return of_far > HINGE_SHARE * float(np.sum((filled - centre) ** 2))


def is_decided_by_far(column: PartlyKnown, coefficients: Array, estimate: LinearEstimate) -> bool:
    """Return whether predictions that lie far out move an estimate more than its error allows."""
    rows = coefficients != 0.0
    far = far_predictions(column, rows)
    if not len(far) or not estimate.number.is_told:
        return False
    beyond = beyond_labelled(column, rows)
    moved = estimate.factor * float(np.sum(coefficients[far] * beyond[far]))
    return abs(moved) > FAR_SHARE * estimate.number.standard_error
