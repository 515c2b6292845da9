"""Shares of rows of a class, or above, below or between limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from transduce.core.checks import check_flag, check_number, check_share
from transduce.core.types import Labels, Mask
from transduce.population.lines import (
    EXACT,
    Estimate,
    estimate_groups,
    labels_for_half_width,
    linear_line,
)
from transduce.population.sample import PartlyKnown, Sample, read_column
from transduce.population.urns import urn_interval

# With fewer labels of either kind the share of a class has an exact interval from labels alone. On
# eleven tables of classes, predicted by `fill`, approximate ones at 95 % held the share of all rows
# in 96 % of trials with 6 to 10 of a kind, and of groups in 92 %; with 11 to 20 in 97 and 96 %, at
# .77 and .56 of the width; with 3 to 5 in groups in 94 %, with 1 or 2 of all rows in 71 %.
FEWEST_OF_KIND = 10


def estimate_share(  # noqa: PLR0913 - settings of a public function
    y: Labels,
    predictions: npt.ArrayLike | None = None,
    *,
    of: Any = None,
    above: float | None = None,
    below: float | None = None,
    by: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    sample: Sample | None = None,
    refitted: bool = False,
    exact: bool | Literal["auto"] = "auto",
) -> pd.DataFrame:
    """Estimate the share of rows of a class, or above, below or between limits.

    Parameters
    ----------
    y : array-like of shape (n,)
        The column, missing where it is not known: classes, or numbers with `above` or `below`.
    predictions : array-like of shape (n,), optional
        For classes the predicted probability of the class `of` (0 and 1 for bare predictions), for
        numbers the predicted number; made without the label of the row.
    of : object, optional
        The class whose share is asked for.
    above, below : float, optional
        Limits, for numbers: rows above the one, below the other, or between both count.
    by, confidence, sample, refitted
        As those of `estimate_mean`.
    exact : bool or "auto", default="auto"
        Whether the interval comes from the labels alone, by the hypergeometric distribution, and
        is exact; "auto" does so with fewer than 10 labels of either kind.

    Returns
    -------
    pandas.DataFrame
        As that of `estimate_mean`.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.population import estimate_share
    >>> y = np.array(["yes"] * 3 + ["no"] * 7 + [None] * 10, dtype=object)
    >>> line = estimate_share(y, of="yes").iloc[0]
    >>> round(float(line["estimate"]), 3), float(line["lower"]), float(line["upper"]), line["kind"]
    (0.3, 0.15, 0.55, 'exact')
    """
    confidence = check_share("confidence", confidence)
    if exact != "auto":
        check_flag("exact", exact)
    if (of is None) == (above is None and below is None):
        raise ValueError("Say which rows count: of= names a class, above= and below= give limits.")
    if of is not None:
        column = read_indicator(y, of, predictions, sample, refitted)
    else:
        column = between_limits(read_column(y, predictions, sample, refitted), above, below)
    return estimate_groups(by, column, lambda near, rows: share_line(near, rows, confidence, exact))


def share_line(
    column: PartlyKnown, rows: Mask, confidence: float, exact: bool | Literal["auto"]
) -> Estimate:
    """Return the share of rows whose value is 1 among some rows."""
    approximate = linear_line(column, column.mean_over(rows), confidence)
    if exact is False or not takes_exact(column, rows, exact):
        return replace(
            approximate,
            estimate=float(np.clip(approximate.estimate, 0.0, 1.0)),
            lower=max(approximate.lower, 0.0),
            upper=min(approximate.upper, 1.0),
        )
    lower, upper = exact_share(column, rows, confidence)
    alone = (lower + upper) / 2.0
    if np.isfinite(approximate.labels_alone):
        alone = float(np.clip(approximate.labels_alone, lower, upper))
    sampled = column.sample.rows & rows
    n_rows = column.count_rows(sampled, column.unknown & rows)
    n_labels = approximate.n_labels
    return Estimate(
        estimate=alone,
        lower=lower,
        upper=upper,
        kind=EXACT,
        n_labels=n_labels,
        labels_alone=alone,
        labels_alone_lower=lower,
        labels_alone_upper=upper,
        worth=float(n_labels),
        labels_for_half=labels_for_half_width(n_labels, n_rows, (lower, upper)),
    )


def takes_exact(column: PartlyKnown, rows: Mask, exact: bool | Literal["auto"]) -> bool:
    """Return whether the exact interval of a share is wanted, and can be had."""
    sample = column.sample
    if exact is True and not sample.is_simple:
        raise ValueError(
            "An exact interval for a share needs a simple random sample: leave exact at 'auto'."
        )
    if not sample.is_simple:
        return False
    if exact is True or sample.n_lost(rows):
        return True
    labels = column.values[sample.rows & rows]
    n_ones = int(np.sum(labels))
    return min(n_ones, len(labels) - n_ones) < FEWEST_OF_KIND


def exact_share(column: PartlyKnown, rows: Mask, confidence: float) -> tuple[float, float]:
    """Return an interval for the share of ones by the hypergeometric distribution."""
    sampled = column.sample.rows & rows
    n_unknown = int(np.sum(column.unknown & rows))
    fewest = 0
    most = n_unknown
    if sampled.any():
        n_ones = int(np.sum(column.values[sampled]))
        n_lost = column.sample.n_lost(rows)
        fewest, most = urn_interval(n_ones, int(np.sum(sampled)), n_unknown, confidence, n_lost)
    known_ones = int(np.sum(column.values[rows & column.known]))
    n_rows = int(np.sum(rows & column.sample.asked))
    return (known_ones + fewest) / n_rows, (known_ones + most) / n_rows


def read_indicator(
    y: Labels,
    of: Any,
    predictions: npt.ArrayLike | None,
    sample: Sample | None,
    refitted: bool = False,
) -> PartlyKnown:
    """Return a column of 1 where a row is of a class, 0 where it is of another, NaN if unknown."""
    classes = pd.Series(y).reset_index(drop=True)
    missing = classes.isna().to_numpy(dtype=bool)
    if not (~missing).any():
        raise ValueError("y has no label: at least two are needed to conclude anything.")
    check_class(of, classes[~missing])
    is_of_class = (classes == of).fillna(False).to_numpy(dtype=bool)
    values = np.where(missing, np.nan, is_of_class.astype(float))
    column = read_column(values, predictions, sample, refitted)
    if predictions is not None:
        outside = (column.predictions < 0.0) | (column.predictions > 1.0)
        if outside.any():
            first = int(np.flatnonzero(outside)[0])
            raise ValueError(
                f"predictions are probabilities of the class, from 0 to 1; row {first} (counted "
                f"from 0) has {column.predictions[first]:g}."
            )
    return column


def check_class(of: Any, known: pd.Series) -> None:
    """Raise a ValueError if a class is missing, or is written as no label is, such as "1" for 1.

    A class without a label is a question like any other: how frequent can it be?
    """
    if pd.api.types.is_scalar(of) and pd.isna(of):
        raise ValueError("of is missing: name a class.")
    if (known == of).fillna(False).any():
        return
    # Numbers beside missing ones are floats: 1.0, where a person writes 1.
    alike = known[known.astype(str).str.removesuffix(".0") == str(of).removesuffix(".0")]
    if len(alike):
        raise ValueError(f"No label is {of!r}, and some are {alike.tolist()[0]!r}: give that.")


def between_limits(
    column: PartlyKnown, above: float | None, below: float | None, *, including: bool = False
) -> PartlyKnown:
    """Return a column of 1 where a number lies between limits, and how probable that is.

    The probability of a row comes from its prediction and the errors of all other labelled rows.
    """
    for name, limit in (("above", above), ("below", below)):
        if limit is not None:
            check_number(name, limit)
    if above is None:
        low = -np.inf
    else:
        low = float(above)
    high = np.inf if below is None else float(below)
    if not low < high:
        raise ValueError(f"above must be less than below; got {above} and {below}.")
    values = column.values
    inside = (values > low) & ((values <= high) if including else (values < high))
    answers = np.where(column.unknown, np.nan, inside.astype(float))
    if not column.predictions.any():
        return column.with_values(answers, column.predictions)
    side: Literal["left", "right"] = "right" if including else "left"
    sampled = column.sample.rows
    errors = np.sort((values - column.predictions)[sampled])
    below_high = np.searchsorted(errors, high - column.predictions, side=side)
    up_to_low = np.searchsorted(errors, low - column.predictions, side="right")
    counts = (below_high - up_to_low).astype(float)
    totals = np.full(len(values), float(len(errors)))
    # A labelled row's own error would tell its own label.
    counts[sampled] -= inside[sampled]
    totals[sampled] -= 1.0
    return column.with_values(answers, counts / np.maximum(totals, 1.0))
