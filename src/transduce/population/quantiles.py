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
    asked_groups,
    labels_for_half_width,
    labels_for_width,
    make_frame,
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
    lines = {}
    for name, rows in asked_groups(by, column):
        lines[name] = quantile_line(column, rows, q, confidence)
    return make_frame(lines)


def quantile_line(column: PartlyKnown, rows: Mask, q: float, confidence: float) -> Estimate:
    """Return a quantile of some rows, by the shares of rows that are no larger than candidates."""
    search = QuantileSearch(column, rows, q, confidence, candidate_values(column, rows))
    labels = np.unique(column.values[column.sample.rows & rows])
    search_alone = QuantileSearch(column.without_predictions(), rows, q, confidence, labels)
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
    labels = column.values[column.sample.rows & rows]
    predicted = column.predictions[column.unknown & rows]
    values = np.unique(np.concatenate([labels, predicted]))
    if len(values) > MOST_CANDIDATES:
        places = np.linspace(0, len(values) - 1, MOST_CANDIDATES).round().astype(int)
        values = np.unique(np.concatenate([values[places], labels]))
    return np.asarray(values)


@dataclass(frozen=True, eq=False)
class QuantileSearch:
    """The search for a quantile among candidates, by the share of rows up to each.

    A candidate is too small if the share of rows up to it is surely below q, and large enough if
    that share is surely q or more.
    """

    column: PartlyKnown
    rows: Mask
    q: float
    confidence: float
    candidates: Array  # (k,), ascending
    shares: dict[int, Estimate] = field(default_factory=dict)  # up to candidates, once asked for

    def share_up_to(self, place: int) -> Estimate:
        """Return the share of rows up to a candidate."""
        if place not in self.shares:
            question = between_limits(self.column, None, self.candidates[place], including=True)
            self.shares[place] = share_line(question, self.rows, self.confidence, "auto")
        return self.shares[place]

    def first_place(self, is_reached: Callable[[Estimate], bool]) -> int:
        """Return the first candidate of which something is true; their number if of none."""
        places = range(len(self.candidates))
        return bisect_left(places, True, key=lambda place: is_reached(self.share_up_to(place)))

    def estimate(self) -> float:
        """Return the first candidate up to which the estimated share is q."""
        count = len(self.candidates)
        has_labels = bool(np.any(self.column.sample.rows & self.rows))
        if not count or not (has_labels or self.column.predictions.any()):
            return np.nan
        place = self.first_place(lambda share: share.estimate >= self.q)
        return float(self.candidates[min(place, count - 1)])

    def interval(self) -> tuple[float, float]:
        """Return the last candidate that is too small, and the first that is large enough."""
        first_possible = self.first_place(lambda share: share.upper >= self.q)
        first_enough = self.first_place(lambda share: share.lower >= self.q)
        if self.kind() == NONE:
            return -np.inf, np.inf
        if not np.any(self.column.unknown & self.rows):
            return self.estimate(), self.estimate()
        lower = -np.inf
        if first_possible > 0:
            lower = float(self.candidates[first_possible - 1])
        upper = np.inf
        if first_enough < len(self.candidates):
            upper = float(self.candidates[first_enough])
        return lower, upper

    def kind(self) -> Kind:
        """Return what may be said of a quantile: what may be said of all shares looked at."""
        kinds = {share.kind for share in self.shares.values()}
        if not kinds or NONE in kinds:
            return NONE
        return EXACT if kinds == {EXACT} else APPROXIMATE
