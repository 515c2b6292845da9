"""One estimate as a line of a frame: its interval, and what it is worth in labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from transduce.core.types import Array, Kind, Mask
from transduce.population.linear import (
    LinearEstimate,
    estimate_linear,
    hinge_rows,
    is_decided_by_far,
)
from transduce.population.sample import PartlyKnown, check_length

EXACT: Kind = "exact"
APPROXIMATE: Kind = "approximate"
NONE: Kind = "none"


@dataclass(frozen=True)
class Estimate:
    """One estimate: a line of the frame that is returned."""

    estimate: float
    lower: float
    upper: float
    kind: Kind
    n_labels: int
    labels_alone: float
    labels_alone_lower: float
    labels_alone_upper: float
    worth: float
    labels_for_half: float  # NaN where nothing is promised, or nothing unknown


def make_frame(lines: dict[Any, Estimate]) -> pd.DataFrame:
    """Return estimates as a frame, one line each."""
    records = [asdict(line) for line in lines.values()]
    frame = pd.DataFrame(records, index=pd.Index(list(lines)))
    return frame.astype({"labels_for_half": "Int64"})


def labels_for_width(n_labels: float, n_rows: float, ratio: float) -> float:
    """Return how many of `n_rows` rows need a label for an interval `ratio` times as wide.

    The variance of an estimate is in proportion to ``1 / l - 1 / n``: with l labels of n rows
    nothing is left to chance once all have one. Predictions that get better with more labels need
    fewer.

    >>> round(labels_for_width(100, 10_000, 0.5))
    388
    """
    if not 0 < n_labels < n_rows:
        return float(n_labels)
    inverse = ratio**2 * (1.0 / n_labels - 1.0 / n_rows) + 1.0 / n_rows
    return 1.0 / inverse if inverse > 0.0 else np.inf


def labels_for_half_width(n_labels: int, n_rows: float, ends: tuple[float, float]) -> float:
    """Return how many labels an interval of half the width takes; NaN if that says nothing."""
    has_width = np.isfinite(ends).all() and ends[1] > ends[0]
    if not has_width or not 0 < n_labels < n_rows < np.inf:
        return np.nan
    return float(np.ceil(labels_for_width(n_labels, n_rows, 0.5)))


def linear_line(column: PartlyKnown, coefficients: Array, confidence: float) -> Estimate:
    """Return an estimate of ``sum_i a_i y_i``; without an interval if it hinges on a few rows."""
    ours = estimate_linear(column, coefficients)
    alone = estimate_linear(column.without_predictions(), coefficients)
    # A row that was drawn and got no label may have any value, and no sample tells which.
    n_lost = column.sample.n_lost(coefficients != 0.0)
    doubtful = bool(n_lost) or len(hinge_rows(column, coefficients)) > 0
    doubtful |= is_decided_by_far(column, coefficients, ours)
    if not ours.is_known and labels_are_equal(column, coefficients != 0.0):
        doubtful = True
    return line_of(ours, alone, confidence, doubtful=doubtful)


def labels_are_equal(column: PartlyKnown, rows: Mask) -> bool:
    """Return whether all labels of some rows are one number, and tell no spread of the others."""
    labels = column.values[column.sample.rows & rows]
    return len(labels) > 0 and bool(np.ptp(labels) == 0.0)


def line_of(
    ours: LinearEstimate, alone: LinearEstimate, confidence: float, *, doubtful: bool = False
) -> Estimate:
    """Return a line of the frame: ours, and what labels alone would give.

    Nothing is promised of an estimate that is doubtful, with predictions or without.
    """
    ours = ours.no_surer_than_a_sample(alone, confidence)
    if doubtful:
        anything = (-np.inf, np.inf)
        return line_between(ours, alone, anything, anything, NONE)
    ends = ours.interval(confidence)
    return line_between(ours, alone, ends, alone.interval(confidence), kind_of(ours))


def line_between(
    ours: LinearEstimate,
    alone: LinearEstimate,
    ends: tuple[float, float],
    ends_alone: tuple[float, float],
    kind: Kind,
) -> Estimate:
    """Return a line of the frame whose intervals are known."""
    return Estimate(
        estimate=ours.number.estimate,
        lower=ends[0],
        upper=ends[1],
        kind=kind,
        n_labels=ours.n_labels,
        labels_alone=alone.number.estimate,
        labels_alone_lower=ends_alone[0],
        labels_alone_upper=ends_alone[1],
        worth=worth_in_labels(ours, alone),
        labels_for_half=labels_for_half_width(ours.n_labels, ours.n_rows, ends),
    )


def kind_of(ours: LinearEstimate) -> Kind:
    """Return what may be said of an interval by the t distribution."""
    if ours.is_known:
        return EXACT
    return APPROXIMATE if ours.number.is_told else NONE


def worth_in_labels(ours: LinearEstimate, alone: LinearEstimate) -> float:
    """Return how many labels alone would give as narrow an interval."""
    error = ours.number.standard_error
    error_alone = alone.number.standard_error
    if ours.is_known or not ours.number.is_told or not error_alone > 0.0:
        return float(ours.n_labels)
    return labels_for_width(ours.n_labels, ours.n_rows, error / error_alone)


# ------------------------------------------------------------------------------------ groups


# Each group takes milliseconds, and more when there are many rows.
MOST_GROUPS = 10_000


def estimate_groups(
    by: npt.ArrayLike | None,
    column: PartlyKnown,
    estimate: Callable[[PartlyKnown, Mask], Estimate],
) -> pd.DataFrame:
    """Return a frame with a line for every group that is asked about.

    The function that estimates it is given the rows that matter to the group, and which of them are
    of the group.
    """
    return make_frame(
        {name: estimate(*column.near(rows)) for name, rows in asked_groups(by, column)}
    )


def asked_groups(by: npt.ArrayLike | None, column: PartlyKnown) -> Iterator[tuple[Any, Mask]]:
    """Yield every group that is asked about with its rows (n,), rows elsewhere among them."""
    for name, rows in read_groups(by, len(column.values)):
        if np.any(rows & column.sample.asked):
            yield name, rows


def read_groups(by: npt.ArrayLike | None, n_rows: int) -> Iterator[tuple[Any, Mask]]:
    """Yield every group with its rows (n,), in sorted order; all rows if there are no groups."""
    if by is None:
        yield "all", np.ones(n_rows, dtype=bool)
        return
    if isinstance(by, str | bytes) or getattr(by, "ndim", 1) != 1:
        raise ValueError("by must be a column: the group of each row.")
    groups = pd.Series(by).reset_index(drop=True)
    check_length("by", groups.to_numpy(), n_rows)
    try:
        codes, names = pd.factorize(groups)
    except TypeError:
        raise ValueError("by must hold names of groups: texts, numbers or dates.") from None
    if not len(names):
        raise ValueError("by is missing at every row: there is no group.")
    if len(names) > MOST_GROUPS:
        raise ValueError(
            f"by has {len(names):,} groups: at most {MOST_GROUPS:,} are estimated at once. Name "
            "larger groups."
        )

    def type_and_name(code: int) -> tuple[str, Any]:
        name = names[code]
        return str(type(name)), name

    order = sorted(range(len(names)), key=type_and_name)
    for code in order:
        yield names[code], codes == code
