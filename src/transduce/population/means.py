"""Means, totals and differences of means of a column with missing labels."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from transduce.core.checks import check_flag, check_share, check_whole
from transduce.core.types import Array, Labels, Mask
from transduce.population.betting import BoundedDraws, order_at_random
from transduce.population.linear import LinearEstimate, estimate_linear, is_decided_by_far
from transduce.population.lines import (
    APPROXIMATE,
    EXACT,
    NONE,
    Estimate,
    asked_groups,
    estimate_groups,
    labels_are_equal,
    labels_for_half_width,
    labels_for_width,
    line_between,
    line_of,
    linear_line,
    make_frame,
)
from transduce.population.sample import PartlyKnown, Sample, read_column
from transduce.population.shares import share_line, takes_exact


def estimate_mean(  # noqa: PLR0913 - settings of a public function
    y: Labels,
    predictions: npt.ArrayLike | None = None,
    *,
    by: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    sample: Sample | None = None,
    refitted: bool = False,
    exact: bool = False,
    bounds: tuple[float, float] | None = None,
    random_state: int = 0,
) -> pd.DataFrame:
    """Estimate the mean of a column whose values are known at some rows.

    The mean is that of these rows, not of a population behind them. The interval holds however
    wrong the predictions are; the better they are, the narrower it is.

    Parameters
    ----------
    y : array-like of shape (n,)
        The column, missing (NaN, None or pd.NA) where it is not known.
    predictions : array-like of shape (n,), optional
        A prediction for every row, made without the label of that row: by another model, or
        out of fold at labelled rows. Without predictions labels alone speak.
    by : array-like of shape (n,), optional
        The group of every row: one mean for each. Rows where it is missing are of none.
    confidence : float, default=0.95
        Level of the interval.
    sample : Sample, optional
        How labelled rows stand for the others; by default they were labelled at random.
    refitted : bool, default=False
        Whether predictions at unlabelled rows are those of a fit to all labels, while those at
        labelled rows are out of fold. The interval then is a little wider, since all labels chose
        the settings of that fit. Not so for the mean of the folds' fits, or another model.
    exact : bool, default=False
        Whether the interval holds with at least this confidence for any number of labels. This
        needs `bounds`, a simple random sample, and predictions that saw no label at all.
    bounds : tuple of two floats, optional
        The least and the greatest value that the column can have.
    random_state : int, default=0
        Seed of the order in which an exact interval takes the labels.

    Returns
    -------
    pandas.DataFrame
        One line for each group, or one line: ``estimate``, ``lower``, ``upper``, ``kind`` (exact,
        approximate or none), ``n_labels`` behind it, ``labels_alone`` with its interval, and
        ``worth``, as how many labels labels and predictions count together.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.population import estimate_mean
    >>> truth = np.arange(100.0)
    >>> y = np.where(np.arange(100) % 5 == 0, truth, np.nan)
    >>> line = estimate_mean(y, truth + 3.0).iloc[0]
    >>> round(float(line["estimate"]), 6), round(float(line["worth"]))
    (49.5, 60)
    """
    confidence = check_share("confidence", confidence)
    check_flag("exact", exact)
    column = read_column(y, predictions, sample, refitted)
    if exact:
        ends = read_bounds(bounds)
        check_whole("random_state", random_state, least=0)

    def estimate(near: PartlyKnown, rows: Mask) -> Estimate:
        if exact:
            return BoundedColumn(near, rows, ends, random_state).mean(confidence)
        return linear_line(near, near.mean_over(rows), confidence)

    return estimate_groups(by, column, estimate)


def estimate_total(
    y: Labels,
    predictions: npt.ArrayLike | None = None,
    *,
    by: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    sample: Sample | None = None,
    refitted: bool = False,
) -> pd.DataFrame:
    """Estimate the total of a column whose values are known at some rows.

    Parameters
    ----------
    y, predictions, by, confidence, sample, refitted
        As those of `estimate_mean`.

    Returns
    -------
    pandas.DataFrame
        As that of `estimate_mean`.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.population import estimate_total
    >>> y = np.array([1.0, 3.0, 2.0, np.nan, np.nan])
    >>> float(estimate_total(y)["estimate"].iloc[0])
    10.0
    """
    confidence = check_share("confidence", confidence)
    column = read_column(y, predictions, sample, refitted)

    def estimate(near: PartlyKnown, rows: Mask) -> Estimate:
        return linear_line(near, rows.astype(float), confidence)

    return estimate_groups(by, column, estimate)


def estimate_difference(
    y: Labels,
    predictions: npt.ArrayLike | None = None,
    *,
    by: npt.ArrayLike | None,
    groups: tuple[Hashable, Hashable],
    confidence: float = 0.95,
    sample: Sample | None = None,
    refitted: bool = False,
) -> pd.DataFrame:
    """Estimate by how much the means of two groups differ: the first less the second.

    Parameters
    ----------
    y, predictions, confidence, sample, refitted
        As those of `estimate_mean`.
    by : array-like of shape (n,)
        The group of every row.
    groups : tuple of two groups
        Which two to compare.

    Returns
    -------
    pandas.DataFrame
        As that of `estimate_mean`, with one line.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.population import estimate_difference
    >>> by = np.repeat(["a", "b"], 4)
    >>> y = np.array([1.0, 2.0, 3.0, np.nan, 5.0, 6.0, 7.0, np.nan])
    >>> float(estimate_difference(y, by=by, groups=("b", "a"))["estimate"].iloc[0])
    4.0
    """
    confidence = check_share("confidence", confidence)
    column = read_column(y, predictions, sample, refitted)
    if by is None:
        raise ValueError("A difference is of two groups: say with by which each row is of.")
    if isinstance(groups, str) or len(groups) != 2:
        raise ValueError(f"groups names the two groups to compare; got {groups!r}.")
    members = dict(asked_groups(by, column))
    missing = [group for group in groups if group not in members]
    if missing:
        raise ValueError(f"No row is of the group {missing[0]!r}; groups are {list(members)[:10]}.")
    if len(set(groups)) != 2:
        raise ValueError(f"groups names the two groups to compare; got {groups!r}.")
    first, second = (members[group] for group in groups)
    line = compare_groups(column, first, second, confidence)
    return make_frame({f"{groups[0]} - {groups[1]}": line})


def compare_groups(column: PartlyKnown, first: Mask, second: Mask, confidence: float) -> Estimate:
    """Return the difference of the means of two groups, each estimated by its own labels."""
    if rests_on_few(column, first) or rests_on_few(column, second):
        return compare_shares(column, first, second, confidence)
    ours = difference_of(column, first, second)
    alone = difference_of(column.without_predictions(), first, second)
    doubtful = column.sample.n_lost(first | second) > 0
    if not ours.is_known:
        doubtful |= labels_are_equal(column, first) or labels_are_equal(column, second)
    coefficients = column.mean_over(first) - column.mean_over(second)
    doubtful |= is_decided_by_far(column, coefficients, ours)
    return line_of(ours, alone, confidence, doubtful=doubtful)


def rests_on_few(column: PartlyKnown, rows: Mask) -> bool:
    """Return whether the column holds zeros and ones, and some rows few labels of either kind."""
    sampled = column.sample.rows
    has_labels = bool(np.any(sampled & rows))
    if not has_labels or not column.is_zeros_and_ones:
        return False
    return bool(np.any(column.unknown & rows)) and takes_exact(column, rows, "auto")


def compare_shares(column: PartlyKnown, first: Mask, second: Mask, confidence: float) -> Estimate:
    """Return the difference of the shares of two groups, by the interval of each.

    The distances of the two estimates from the ends are added as standard errors are (Newcombe
    1998, method 10): with few labels of a kind the share of a group has an exact interval, where
    the spread of the labels tells nothing, and is 0 if all are of one kind.
    """
    one = share_line(column, first, confidence, "auto")
    other = share_line(column, second, confidence, "auto")
    ends = interval_of_difference(
        (one.estimate, one.lower, one.upper), (other.estimate, other.lower, other.upper)
    )
    ends_alone = interval_of_difference(
        (one.labels_alone, one.labels_alone_lower, one.labels_alone_upper),
        (other.labels_alone, other.labels_alone_lower, other.labels_alone_upper),
    )
    both = first | second
    n_labels = one.n_labels + other.n_labels
    n_rows = column.count_rows(column.sample.rows & both, column.unknown & both)
    ratio = (ends[1] - ends[0]) / (ends_alone[1] - ends_alone[0])
    is_told = NONE not in (one.kind, other.kind)
    return Estimate(
        estimate=one.estimate - other.estimate,
        lower=ends[0] if is_told else -np.inf,
        upper=ends[1] if is_told else np.inf,
        kind=APPROXIMATE if is_told else NONE,
        n_labels=n_labels,
        labels_alone=one.labels_alone - other.labels_alone,
        labels_alone_lower=ends_alone[0],
        labels_alone_upper=ends_alone[1],
        worth=labels_for_width(n_labels, n_rows, ratio),
        labels_for_half=labels_for_half_width(n_labels, n_rows, ends) if is_told else np.nan,
    )


def interval_of_difference(
    one: tuple[float, float, float], other: tuple[float, float, float]
) -> tuple[float, float]:
    """Return an interval for a difference from two estimates, each between its ends."""
    estimate, lower, upper = one
    other_estimate, other_lower, other_upper = other
    difference = estimate - other_estimate
    below = np.hypot(estimate - lower, other_upper - other_estimate)
    above = np.hypot(upper - estimate, other_estimate - other_lower)
    return float(difference - below), float(difference + above)


def difference_of(column: PartlyKnown, first: Mask, second: Mask) -> LinearEstimate:
    """Return the mean of the first group less that of the second.

    Given how many labels each has, their errors are independent, unless whole groups of rows were
    drawn, which may have rows in both.
    """
    of_first = column.mean_over(first)
    of_second = column.mean_over(second)
    if column.sample.groups is not None:
        return estimate_linear(column, of_first - of_second)
    return estimate_linear(column, of_first) - estimate_linear(column, of_second)


@dataclass(frozen=True, eq=False)
class BoundedColumn:
    """Some rows of a column of numbers within bounds: their mean is bet on.

    The differences ``y - f`` lie within ``[low - high, high - low]``; scaled to [0, 1], their total
    over the rows that had no label before the sample is bet on, and the sum of f is known.
    """

    column: PartlyKnown
    rows: Mask
    bounds: tuple[float, float]
    seed: int

    def __post_init__(self) -> None:
        sample = self.column.sample
        if not sample.is_simple or sample.n_lost(self.rows):
            raise ValueError("An exact interval for a mean needs a simple random sample.")
        low, high = self.bounds
        known = self.column.values[~self.column.unknown]
        if known.size and (known.min() < low or known.max() > high):
            raise ValueError(
                "bounds are the least and the greatest value that the column can have, and a label "
                f"is outside {low:g} to {high:g}."
            )

    def mean(self, confidence: float) -> Estimate:
        """Return the mean, with an exact interval."""
        low, high = self.bounds
        zeros = np.zeros(len(self.rows))
        ends_alone = self._interval(confidence, self.bounds, zeros)
        ends = ends_alone
        if np.any(self.column.predictions):
            predictions = np.clip(self.column.predictions, low, high)
            ends = self._interval(confidence, (low - high, high - low), predictions)
        coefficients = self.column.mean_over(self.rows)
        ours = estimate_linear(self.column, coefficients)
        alone = estimate_linear(self.column.without_predictions(), coefficients)
        middle = (ends[0] + ends[1]) / 2.0
        if np.isfinite(ours.number.estimate):
            middle = float(np.clip(ours.number.estimate, *ends))
        line = line_between(ours, alone, ends, ends_alone, EXACT)
        width = ends[1] - ends[0]
        width_alone = ends_alone[1] - ends_alone[0]
        worth = float(ours.n_labels)
        if width > 0.0 and width_alone > 0.0:
            worth = labels_for_width(ours.n_labels, ours.n_rows, width / width_alone)
        return replace(line, estimate=middle, worth=worth)

    def _interval(
        self, confidence: float, bounds: tuple[float, float], predictions: Array
    ) -> tuple[float, float]:
        """Return an interval for the mean, where ``y - f`` lies within bounds."""
        low, high = bounds
        sample = self.column.sample
        values = self.column.values
        drawn_from = (sample.rows | self.column.unknown) & self.rows
        order = order_at_random(np.flatnonzero(sample.rows & self.rows), self.seed)
        off = (values[order] - predictions[order] - low) / (high - low)
        draws = BoundedDraws(np.clip(off, 0.0, 1.0), int(np.sum(drawn_from)))
        least, most = draws.total_interval(confidence)
        certain = np.sum(values[self.rows & ~drawn_from]) + np.sum(predictions[drawn_from])
        not_asked = self.rows & ~sample.asked
        shift = low * np.sum(drawn_from) + certain - np.sum(values[not_asked])
        n_rows = np.sum(self.rows & sample.asked)
        return (
            float((shift + (high - low) * least) / n_rows),
            float((shift + (high - low) * most) / n_rows),
        )


def read_bounds(bounds: Any) -> tuple[float, float]:
    """Return the least and the greatest value of a column, checked."""
    if bounds is None:
        raise ValueError("exact=True needs bounds: the least and greatest value that can occur.")
    try:
        low, high = (float(end) for end in bounds)
    except (TypeError, ValueError):
        low = high = np.nan
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise ValueError(f"bounds must be two finite numbers, the smaller first; got {bounds!r}.")
    return low, high
