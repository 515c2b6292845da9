"""Quantiles of a column with missing labels."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from transduce.core.checks import check_share
from transduce.core.types import Array, Kind, Labels, Mask
from transduce.population.lines import (
    APPROXIMATE,
    EXACT,
    NONE,
    Estimate,
    estimate_groups,
    labels_for_half_width,
    labels_for_width,
)
from transduce.population.sample import PartlyKnown, Sample, read_column
from transduce.population.shares import between_limits, share_line

MOST_CANDIDATES = 400  # values that the ends of an interval may have


def estimate_quantile(
    y: Labels,
    predictions: npt.ArrayLike | None = None,
    *,
    q: float = 0.5,
    by: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    sample: Sample | None = None,
    refitted: bool = False,
) -> pd.DataFrame:
    """Estimate a quantile of a column whose values are known at some rows.

    The interval holds every value at which the share of rows below it may be `q`.

    Parameters
    ----------
    y, predictions, by, confidence, sample, refitted
        As those of `estimate_mean`.
    q : float, default=0.5
        Which quantile; 0.5 is the median.

    Returns
    -------
    pandas.DataFrame
        As that of `estimate_mean`.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.population import estimate_quantile
    >>> y = np.where(np.arange(201) % 2 == 0, np.arange(201.0), np.nan)
    >>> float(estimate_quantile(y, np.arange(201.0))["estimate"].iloc[0])
    100.0
    """
    confidence = check_share("confidence", confidence)
    q = check_share("q", q)
    column = read_column(y, predictions, sample, refitted)
    return estimate_groups(by, column, lambda near, rows: quantile_line(near, rows, q, confidence))


def quantile_line(column: PartlyKnown, rows: Mask, q: float, confidence: float) -> Estimate:
    """Return a quantile of some rows, by the shares of rows that are no larger than candidates."""
    search = QuantileSearch(column, rows, q, confidence, candidate_values(column, rows))
    alone = column.without_predictions()
    search_alone = QuantileSearch(alone, rows, q, confidence, candidate_values(alone, rows))
    ends = search.interval()
    ends_alone = search_alone.interval()
    sampled = column.sample.rows & rows
    n_labels = int(np.sum(sampled))
    n_rows = column.count_rows(sampled, column.unknown & rows)
    width = ends[1] - ends[0]
    width_alone = ends_alone[1] - ends_alone[0]
    # An interval of all numbers holds, and promises nothing.
    if np.isfinite(ends).any():
        kind = search.kind()
    else:
        kind = NONE
    worth = float(n_labels)
    if np.isfinite(width) and np.isfinite(width_alone) and width_alone > 0.0:
        worth = labels_for_width(n_labels, n_rows, width / width_alone)
    return Estimate(
        estimate=search.estimate(),
        lower=ends[0],
        upper=ends[1],
        kind=kind,
        n_labels=n_labels,
        labels_alone=search_alone.estimate(),
        labels_alone_lower=ends_alone[0],
        labels_alone_upper=ends_alone[1],
        worth=worth,
        labels_for_half=labels_for_half_width(n_labels, n_rows, ends),
    )


def candidate_values(column: PartlyKnown, rows: Mask) -> Array:
    """Return the values at which a quantile may lie: labels and predictions, ascending."""
    labels = column.values[(column.known | column.sample.rows) & rows]
    predicted = np.zeros(0)
    if column.predictions.any():
        predicted = column.predictions[column.unknown & rows]
    values = np.unique(np.concatenate([labels, predicted]))
    if len(values) > MOST_CANDIDATES:
        places = np.linspace(0, len(values) - 1, MOST_CANDIDATES).round().astype(int)
        values = np.unique(np.concatenate([values[places], labels]))
    return np.asarray(values)


@dataclass(frozen=True, eq=False)
class QuantileSearch:
    """The search for a quantile among candidates, by the share of rows up to each, and below it.

    The quantile is at least a candidate if the share of rows below that is surely less than q, and
    at most a candidate if the share of rows up to it is surely q or more.
    """

    column: PartlyKnown
    rows: Mask
    q: float
    confidence: float
    candidates: Array  # (k,), ascending
    # Of rows up to a candidate (True) or below it, by its place, once asked for.
    shares: dict[tuple[int, bool], Estimate] = field(default_factory=dict)

    def share(self, place: int, *, including: bool) -> Estimate:
        """Return the share of rows up to a candidate, or below it."""
        key = (place, including)
        if key not in self.shares:
            limit = self.candidates[place]
            question = between_limits(self.column, None, limit, including=including)
            self.shares[key] = share_line(question, self.rows, self.confidence, "auto")
        return self.shares[key]

    def first_place(self, is_reached: Callable[[Estimate], bool], *, including: bool = True) -> int:
        """Return the first candidate of whose share something is true; their number if of none."""
        places = range(len(self.candidates))
        return bisect_left(
            places, True, key=lambda place: is_reached(self.share(place, including=including))
        )

    def estimate(self) -> float:
        """Return the first candidate up to which the estimated share is q."""
        count = len(self.candidates)
        has_labels = bool(np.any(self.column.sample.rows & self.rows))
        if not count or not (has_labels or self.column.predictions.any()):
            return np.nan
        place = self.first_place(lambda share: share.estimate >= self.q)
        return float(self.candidates[min(place, count - 1)])

    def interval(self) -> tuple[float, float]:
        """Return the last candidate that no more can lie below, and the first that is enough."""
        if not np.any(self.column.unknown & self.rows):
            return self.estimate(), self.estimate()
        first_above = self.first_place(
            lambda share: told_or_counted(share, share.upper) >= self.q, including=False
        )
        first_enough = self.first_place(lambda share: told_or_counted(share, share.lower) >= self.q)
        lower = -np.inf
        if first_above > 0 and self.share(first_above - 1, including=False).kind != NONE:
            lower = float(self.candidates[first_above - 1])
        upper = np.inf
        is_enough = first_enough < len(self.candidates)
        if is_enough and self.share(first_enough, including=True).kind != NONE:
            upper = float(self.candidates[first_enough])
        return lower, upper

    def kind(self) -> Kind:
        """Return what may be said of a quantile: what may be said of the shares that tell it.

        A share of which nothing can be said lies anywhere from 0 to 1, and tells no end.
        """
        kinds = {share.kind for share in self.shares.values()} - {NONE}
        return EXACT if kinds <= {EXACT} else APPROXIMATE


def told_or_counted(share: Estimate, end: float) -> float:
    """Return the end of a share's interval; the share of the labels where nothing is promised.

    So it is beyond all labels of some designs: the search then goes on among the labels.
    """
    if share.kind == NONE:
        return share.labels_alone
    return end
