"""What was fitted to the rows of a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from transduce.app.filling.forecast import settle
from transduce.app.filling.interval_models import IntervalModel
from transduce.app.filling.options import Options
from transduce.app.tables.columns import Target
from transduce.app.tables.features import Encoder, Features
from transduce.app.tables.notes import Note
from transduce.conformal import ClassShares, Exchangeability
from transduce.core.answer import Answer
from transduce.core.guarantee import Guarantee
from transduce.core.types import AnyArray, Array, Rows
from transduce.model_selection.own_models import TableRows


@dataclass(frozen=True, eq=False)
class TableFit:
    """What was fitted to the rows of a table, and its answers at those without a label."""

    frame: pd.DataFrame
    target: Target
    features: Features
    X: Rows  # what estimators are given: the features, with the columns where one asks for them
    model: IntervalModel  # what intervals or sets come from
    values_model: Any  # what values come from, fitted to all labels
    order: AnyArray  # positions of the rows that the values come from
    answer: Answer  # as the fit gives it, before any option changes it
    compared: Exchangeability | None  # how labelled and unlabelled rows compare
    seconds: float
    left_out: dict[str, str]  # methods that are not in the blend, and why
    notes: list[Note]
    shares: ClassShares | None = None  # of the classes, where labels were chosen by their class
    offset: Array | None = None  # (n,) predictions made elsewhere, which the fit corrects

    def with_notes(self, notes: list[Note]) -> TableFit:
        """Return the fit with more notes."""
        return replace(self, notes=[*self.notes, *notes])

    @property
    def fitted_labels(self) -> AnyArray:
        """What the methods were fitted to, shape (n,): labels, less predictions made elsewhere."""
        if self.offset is None:
            return self.target.labels
        return self.target.labels - self.offset

    def add_offset(self, values: AnyArray, rows: AnyArray) -> AnyArray:
        """Return what methods answer at rows (k,) as values of the target."""
        if self.offset is None:
            return values
        return values + self.offset[rows]

    def weigh_labels(self, rows: AnyArray) -> Array:
        """Return how much each labelled row stands for the unlabelled ones, shape (k,)."""
        if self.shares is not None:
            return self.shares.weights(self.target.labels[rows])
        return self.model.calibrated.measure(rows)

    def guarantee(self, level: float, certainty: float, tolerance: float | None) -> Guarantee:
        """Return what is guaranteed of the answers at a level."""
        guarantee = self.model.calibrated.guarantee_at(level, certainty, tolerance)
        if self.compared is not None:
            guarantee = guarantee.doubted(self.compared.verdict)
        return settle(guarantee, self.target)

    def sensitivity(
        self, level: float, certainty: float, tolerance: float | None
    ) -> pd.DataFrame | None:
        """Return how wide intervals get if labels depend on the value; None if that is unknown."""
        if self.shares is not None:  # within a class the label is the same
            return None
        if self.guarantee(level, certainty, tolerance).kind == "none":
            return None
        return self.model.calibrated.sensitivity_at(level)


def estimator_rows(
    encoder: Encoder, frame: pd.DataFrame, options: Options, features: Array | None = None
) -> Any:
    """Return what estimators are given of rows; their features are computed unless given."""
    frame = options.clean(frame)
    if features is None:
        features = encoder.transform(frame)
    if options.features == "encoded":
        return features
    return TableRows(features, frame[encoder.columns].reset_index(drop=True))
