"""A column that is known in part, and how its labelled rows stand for the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from transduce.core.checks import check_factor, check_flag, check_type
from transduce.core.types import AnyArray, Array, Labels, Mask

# What a sample may say of each row.
OF_EACH_ROW = ("strata", "groups", "odds", "lost", "elsewhere", "later")


@dataclass(frozen=True, eq=False)
class Sample:
    """How the labelled rows of a column stand for its unlabelled rows.

    By default the labelled rows are a simple random sample of all rows. Labels of rows that were
    chosen on purpose are known, and say nothing of the other rows: they are no part of the sample.

    Parameters
    ----------
    rows : boolean array of shape (n,)
        Labelled rows that were chosen at random.
    strata : int array of shape (n,), optional
        Number of the stratum of each row; a simple random sample was drawn within each.
    groups : int array of shape (n,), optional
        Number of the group of each row; whole groups were drawn at random.
    odds : array of shape (n,), optional
        Odds ``(1 - e) / e`` that a row has no label, if each row was labelled with its own
        probability e, independently of the others.
    known_odds : bool, default=True
        Whether the odds are known, and not estimated.
    sensitivity : float, default=1.0
        Factor by which the odds may depend on the label besides, either way.
    lost : boolean array of shape (n,), optional
        Rows that were drawn at random like those of the sample, and got no label: their values may
        be the reason, so that any value of theirs is possible.
    elsewhere : boolean array of shape (n,), optional
        Labelled rows of the sample that no question is about: those of another table, drawn from
        the same source as this one. They tell how wrong predictions are, and are not counted.
    later : boolean array of shape (n,), optional
        Labelled rows that could be drawn, were not, and got a label since, on purpose. The sample
        speaks for them like for rows without a label: what chose them may depend on their values,
        so that the rows that are left without a label need not be like the drawn ones.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.population import Sample
    >>> Sample(np.array([True, False, True])).n_labels
    2
    """

    rows: Mask
    strata: AnyArray | None = None
    groups: AnyArray | None = None
    odds: Array | None = None
    known_odds: bool = True
    sensitivity: float = 1.0
    lost: Mask | None = None
    elsewhere: Mask | None = None
    later: Mask | None = None

    @property
    def is_simple(self) -> bool:
        """Whether rows were drawn one by one, all with the same probability.

        It is False where anything is in doubt.
        """
        one_by_one = self.groups is None and self.strata is None
        return one_by_one and self.odds is None and self.sensitivity == 1.0

    def n_lost(self, rows: Mask) -> int:
        """Return how many of some rows (n,) were drawn and got no label."""
        if self.lost is None:
            return 0
        return int(np.sum(self.lost & rows))

    def at(self, rows: Mask) -> Sample:
        """Return the sample among some rows (n,)."""
        inside: dict[str, Any] = {}
        for name in OF_EACH_ROW:
            values = getattr(self, name)
            inside[name] = None if values is None else np.asarray(values)[rows]
        return replace(self, rows=self.rows[rows], **inside)

    @property
    def asked(self) -> Mask:
        """Rows that questions are about, shape (n,): all but those elsewhere."""
        if self.elsewhere is None:
            return np.ones(len(self.rows), dtype=bool)
        return ~self.elsewhere

    @property
    def n_labels(self) -> int:
        """Number of labels in the sample."""
        return int(np.sum(self.rows))

    @property
    def unit_codes(self) -> AnyArray:
        """Number of the unit of each row, shape (n,): its group, or the row itself."""
        if self.groups is None:
            return np.arange(len(self.rows))
        return np.asarray(self.groups)

    @property
    def stratum_codes(self) -> AnyArray:
        """Number of the stratum of each row, shape (n,)."""
        if self.strata is None:
            return np.zeros(len(self.rows), dtype=int)
        return np.asarray(self.strata)


@dataclass(frozen=True, eq=False)
class PartlyKnown:
    """A column of numbers with gaps, and predictions for it.

    Attributes
    ----------
    values : array of shape (n,)
        The column, NaN where it is not known.
    predictions : array of shape (n,)
        Predictions that did not use the label of their own row: out-of-fold ones at labelled rows.
    sample : Sample
        Which labelled rows stand for the unlabelled ones, and how.
    refitted : bool
        Whether predictions at unlabelled rows are those of a fit to all labels.
    """

    values: Array
    predictions: Array
    sample: Sample
    refitted: bool = False

    @property
    def unknown(self) -> Mask:
        """Rows whose value is not known, shape (n,)."""
        return np.isnan(self.values)

    @property
    def known(self) -> Mask:
        """Rows whose value is known and counts, shape (n,)."""
        return ~self.unknown & self.sample.asked

    @property
    def is_zeros_and_ones(self) -> bool:
        """Whether all labels of the sample are 0 or 1."""
        return bool(np.isin(self.values[self.sample.rows], (0.0, 1.0)).all())

    def count_rows(self, sampled: Mask, missing: Mask) -> float:
        """Return how many rows some labels stand for, themselves among them.

        Infinite where the labelled rows are not among those that are asked about.
        """
        if self.sample.elsewhere is not None:
            return np.inf
        return float(np.sum(sampled) + np.sum(missing))

    def mean_over(self, rows: Mask) -> Array:
        """Return coefficients (n,) of the mean of those of some rows that are asked about."""
        return rows / np.sum(rows & self.sample.asked)

    def with_values(self, values: Array, predictions: Array) -> PartlyKnown:
        """Return the same rows with another column, such as a yes-or-no question about this one."""
        return replace(self, values=values, predictions=predictions)

    def near(self, rows: Mask) -> tuple[PartlyKnown, Mask]:
        """Return some rows (n,) with those of the sample, and which of these are among them.

        No other row plays a part in an estimate for these, and of many groups each is small.
        """
        kept = rows | self.sample.rows
        if kept.all():
            return self, rows
        sample = self.sample.at(kept)
        near = replace(
            self, values=self.values[kept], predictions=self.predictions[kept], sample=sample
        )
        return near, rows[kept]

    def without_predictions(self) -> PartlyKnown:
        """Return the column as one without predictions, for what labels alone would give."""
        return replace(self, predictions=np.zeros(len(self.values)))


def read_column(
    y: Labels,
    predictions: npt.ArrayLike | None,
    sample: Sample | None,
    refitted: bool = False,
) -> PartlyKnown:
    """Return a checked column of numbers; raise a ValueError that says what to correct."""
    check_flag("refitted", refitted)
    values = read_numbers("y", y)
    if np.isinf(values).any():
        raise ValueError("y holds an infinite number: leave that label out, or correct it.")
    check_sizes("y", values)
    labelled = ~np.isnan(values)
    if not labelled.any():
        raise ValueError("y has no label: at least two are needed to conclude anything.")
    if predictions is None:
        predicted = np.zeros(len(values))
    else:
        predicted = read_numbers("predictions", predictions)
        check_length("predictions", predicted, len(values))
        if not np.isfinite(predicted).all():
            first = int(np.flatnonzero(~np.isfinite(predicted))[0])
            raise ValueError(
                f"predictions must be a finite number at every row, labelled or not; "
                f"row {first} (counted from 0) has {predicted[first]}."
            )
        check_sizes("predictions", predicted)
    read = read_sample(sample, labelled)
    if read.later is not None and not labelled[read.asked].all():
        values = np.where(read.later, np.nan, values)
    return PartlyKnown(values, predicted, read, refitted)


def read_sample(sample: Sample | None, labelled: Mask) -> Sample:
    """Return a checked sample; all labelled rows by default."""
    if sample is None:
        return Sample(labelled)
    check_type("sample", sample, Sample, "a Sample, or None")
    rows = np.asarray(sample.rows)
    if rows.dtype != bool or rows.shape != labelled.shape:
        raise ValueError(f"The rows of a sample are {len(labelled)} values, each True or False.")
    if not (rows & labelled).any():
        raise ValueError("No row of the sample has a label.")
    for name in OF_EACH_ROW:
        values = getattr(sample, name)
        if values is not None:
            check_length(f"{name} of a sample", np.asarray(values), len(labelled))
    sample = replace(sample, rows=rows & labelled)
    check_factor("sensitivity of a sample", sample.sensitivity)
    for name in ("strata", "groups"):
        check_codes(name, getattr(sample, name))
    if sample.odds is not None:
        sample = replace(sample, odds=read_odds(sample))
    if sample.lost is not None:
        lost = np.asarray(sample.lost, dtype=bool)
        sample = replace(sample, lost=lost & ~labelled)
    if sample.elsewhere is not None:
        sample = replace(sample, elsewhere=read_elsewhere(sample))
    if sample.later is not None:
        sample = replace(sample, later=np.asarray(sample.later, dtype=bool) & ~sample.rows)
    return sample


def check_codes(name: str, codes: AnyArray | None) -> None:
    """Raise a ValueError if a row is of no stratum, or no group."""
    if codes is None or not pd.isna(np.asarray(codes)).any():
        return
    first = int(np.flatnonzero(pd.isna(np.asarray(codes)))[0])
    raise ValueError(
        f"{name} of a sample must have a value at every row; row {first} (counted from 0) has none."
    )


def read_odds(sample: Sample) -> Array:
    """Return the odds of a sample, checked: those of its labelled rows are read, and no others."""
    odds = read_numbers("odds of a sample", sample.odds)
    is_usable = np.isfinite(odds) & (odds >= 0.0)
    if not is_usable[sample.rows].all():
        first = int(np.flatnonzero(~is_usable & sample.rows)[0])
        raise ValueError(
            "odds of a sample are (1 - e) / e, with e the probability of a label: finite, and not "
            f"negative; row {first} (counted from 0) has {odds[first]:g}."
        )
    return odds


def read_elsewhere(sample: Sample) -> Mask:
    """Return the rows elsewhere, checked: all are of the sample, and others are asked about."""
    elsewhere = np.asarray(sample.elsewhere, dtype=bool)
    if np.any(elsewhere & ~sample.rows):
        raise ValueError("Rows elsewhere are rows of the sample, with a label.")
    if elsewhere.all():
        raise ValueError("All rows are elsewhere: there is none to ask about.")
    return elsewhere


def read_numbers(name: str, values: Any) -> Array:
    """Return numbers as an array of one dimension, NaN where one is missing."""
    if np.ndim(values) != 1 or isinstance(values, str | bytes):
        raise ValueError(f"{name} must be a column: one value for each row.")
    column = pd.Series(values)
    # As numbers they are counts of nanoseconds, and a missing one is the smallest of all.
    if column.dtype.kind in "mM":
        raise ValueError(
            f"{name} holds dates or durations: give them as numbers, such as days since a date."
        )
    try:
        is_complex = np.iscomplexobj(column.to_numpy())
        numbers = column.to_numpy(dtype=float, na_value=np.nan) if not is_complex else None
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{name} must hold numbers, and missing ones where none is known; for classes see "
            "estimate_share."
        ) from None
    if numbers is None:
        raise ValueError(f"{name} holds complex numbers, and only real ones can be estimated.")
    return numbers


# The square of a number beyond this, or of its inverse, has no place in double precision beside the
# weights and counts that it is multiplied by.
LARGEST = 1e140


def check_sizes(name: str, values: Array) -> None:
    """Raise a ValueError if numbers are so large, or so small, that they cannot be squared."""
    largest = float(np.max(np.abs(values), initial=0.0, where=~np.isnan(values)))
    if largest > LARGEST or 0.0 < largest < 1.0 / LARGEST:
        raise ValueError(
            f"{name} is too large or too small for double precision, up to {largest:.1g}: multiply "
            "it by a constant first."
        )


def check_length(name: str, values: AnyArray, n_rows: int) -> None:
    """Raise a ValueError unless there is one value for each row."""
    if len(values) != n_rows:
        raise ValueError(
            f"{name} must have a value for each of the {n_rows} rows; got {len(values)}."
        )
