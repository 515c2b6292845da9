"""A column that is known in part, predictions for all its rows, and its design."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd

from transduce.app.tables.columns import Target
from transduce.conformal.shares import ClassShares
from transduce.core.types import AnyArray, Array, ColumnName, Mask
from transduce.core.validation import class_codes
from transduce.core.words import OptionError
from transduce.population import Sample
from transduce.population.checks import CheckedRows

# Estimated odds make labels worth fewer of equal weight; below so many nothing is promised at 95 %
# (METHODS: 2 / (1 - level)).
ENOUGH_OVER_DOUBT = 2.0


class Columns(Protocol):
    """Columns of a table, wherever its rows are."""

    @property
    def columns(self) -> pd.Index:
        """Their names."""

    def __len__(self) -> int: ...

    def __getitem__(self, name: ColumnName) -> pd.Series: ...


@dataclass(frozen=True, eq=False)
class PredictedColumn:
    """A column with gaps, a prediction for every row, and the other columns of the table.

    Attributes
    ----------
    target : Target
        The column as it was read.
    predictions : array of shape (n,) or (n, n_classes), or None
        Numbers, or probabilities of classes, made without the label of their own row; None if
        labels are too few to tell how good they would be.
    classes : array of shape (n_classes,) or None
        Of the columns of `predictions`.
    sample : Sample or None
        How labelled rows stand for the others; None if they were chosen by their class.
    frame : Columns
        The columns of the table, to group by: a frame, or what fetches them from its parts.
    assumption : str
        What has to be true of the labels.
    shares : ClassShares or None
        Of the classes among unlabelled rows, where labels were chosen by their class.
    names : pandas.Index
        What rows are called in messages.
    limits : tuple of two floats
        The least and the greatest value that is possible.
    given : array of shape (n,) or None
        Classes that were predicted elsewhere, without any label; None where one is missing.
    beyond : int
        Unlabelled rows that are unlike every labelled one, where odds were estimated.
    doubt : str
        Why nothing can be promised of any question, in a sentence; "" as a rule.
    refitted : bool
        Whether predictions at unlabelled rows are those of a fit to all labels.
    case_sensitive : bool
        Whether groups that differ in capitals or blanks only are different.
    """

    target: Target
    predictions: Array | None
    classes: AnyArray | None
    sample: Sample | None
    frame: Columns
    assumption: str
    names: pd.Index
    shares: ClassShares | None = None
    limits: tuple[float, float] = (-np.inf, np.inf)
    given: AnyArray | None = None
    beyond: int = 0
    doubt: str = ""
    refitted: bool = False
    case_sensitive: bool = False

    @property
    def asked(self) -> Mask:
        """Rows that questions are about, shape (n,): all but labelled ones of another table."""
        if self.sample is None:
            return np.ones(len(self.target.missing), dtype=bool)
        return self.sample.asked

    @property
    def n_rows(self) -> int:
        """How many rows questions are about."""
        return int(np.sum(self.asked))

    @property
    def name(self) -> Any:
        """The name of the column."""
        return self.target.name

    @property
    def is_numeric(self) -> bool:
        """Whether it holds numbers, and no classes."""
        return self.target.task == "regression"

    @property
    def n_unknown(self) -> int:
        """How many rows have no label."""
        return int(np.sum(self.target.missing))

    @property
    def numbers(self) -> Array:
        """The labels as numbers, shape (n,), NaN where one is missing."""
        return np.where(self.target.missing, np.nan, self.target.labels).astype(float)

    def indicator(self, label: Any) -> Array:
        """Return 1 where a row is of a class, 0 where of another, NaN where it is unknown."""
        is_of_class = np.array([value == label for value in self.target.labels.tolist()])
        return np.where(self.target.missing, np.nan, is_of_class.astype(float))

    def probabilities(self, label: Any) -> Array | None:
        """Return how probable a class is at every row, shape (n,).

        None if there are no predictions.
        """
        if self.predictions is None or self.classes is None:
            return None
        code = int(class_codes(np.asarray([label], dtype=object), self.classes)[0])
        if code < 0:
            return np.zeros(len(self.predictions))
        return np.clip(self.predictions[:, code], 0.0, 1.0)

    def values_and_predictions(self) -> tuple[Array, Array | None]:
        """Return numbers, or of two classes ones and zeros, for a difference or a regression."""
        if self.is_numeric:
            return self.numbers, self.predictions
        classes = sorted(pd.unique(self.target.known).tolist(), key=str)
        if len(classes) != 2:
            raise OptionError(
                f"{self.name!r} has {len(classes)} classes: ask for the share of one, by group."
            )
        return self.indicator(classes[1]), self.probabilities(classes[1])

    @property
    def has_exact_shares(self) -> bool:
        """Whether classes predicted elsewhere give exact shares.

        Of simple samples, or of strata.
        """
        sample = self.sample
        if self.given is None or sample is None:
            return False
        return sample.groups is None and sample.odds is None and sample.sensitivity == 1.0

    def checked_rows(self, label: Any) -> CheckedRows:
        """Return the rows with a class predicted elsewhere, or not, some of which were checked."""
        assert self.given is not None
        assert self.sample is not None
        predicted = np.array([given == label for given in self.given.tolist()], dtype=np.int64)
        indicator = self.indicator(label)
        drawn = self.sample.rows
        if self.sample.lost is not None:
            drawn = drawn | self.sample.lost
        true = np.where(np.isnan(indicator), -1, np.nan_to_num(indicator)).astype(np.int64)
        drawn_from = None
        if self.sample.later is not None:
            drawn_from = drawn | self.sample.later | (true < 0)
        return CheckedRows(predicted, true, drawn, self.sample.stratum_codes, drawn_from=drawn_from)

    @property
    def effective_labels(self) -> float:
        """How many labels of equal weight those of the sample are worth."""
        sample = self.sample
        if sample is None:
            return 0.0
        if sample.odds is None:
            return float(sample.n_labels)
        weights = sample.odds[sample.rows]
        return float(np.sum(weights)) ** 2 / float(np.sum(weights**2))

    def is_in_doubt(self, level: float) -> bool:
        """Whether estimated odds leave too few labels to promise anything at a level."""
        sample = self.sample
        if sample is None or sample.odds is None or sample.known_odds:
            return False
        return self.effective_labels < ENOUGH_OVER_DOUBT / (1.0 - level)
