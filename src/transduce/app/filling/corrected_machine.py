"""The confidence machine on labels, or on what predictions made elsewhere leave of them.

Predictions that are nearly right are better subtracted, others are better a feature alone. Which
is decided for every row and every candidate y by the regression of the completed sample's labels on
their predictions: the labelled rows, and the row itself with the label y. That treats all l + 1
rows alike, so that p-values stay exact, like the machine's own choice of settings.

With F the predictions, the slope is at least s if

    sum_i y_i (F_i - mean F) + y (F_j - mean F)  >=  s sum_i (F_i - mean F)^2,

sums and means over the completed sample, which is linear in y. So the region of a row is that of
the machine on y - F on one side of a number, and that of the machine on y on its other side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from transduce.core.answer import Answer, Regions
from transduce.core.guarantee import Guarantee
from transduce.core.types import AnyArray, Array

# Of labels on their predictions, from which on predictions are subtracted. For values: if
# predictions are the truth with noise, half of the labels' variance is then left.
LEAST_SLOPE = 2.0 / 3.0
# For intervals less, so that at a row with an extreme prediction no candidate that the machine on
# the labels would hold changes which of the two speaks.
LEAST_SLOPE_OF_CANDIDATES = 0.25


def are_near(predictions: Array, labels: Array) -> bool:
    """Return whether it pays to predict what predictions (k,) leave of their labels (k,).

    Of good predictions with one tenth of gross errors, these would stay in every answer.
    """
    from_mean = predictions - predictions.mean()
    return bool(from_mean @ labels >= LEAST_SLOPE * (from_mean @ from_mean))


@dataclass(frozen=True, eq=False)
class CorrectedMachine:
    """Two fitted machines, one of which speaks for each candidate.

    Attributes
    ----------
    plain, corrected : fitted RidgeConfidenceMachine
        On labels, and on labels minus predictions.
    predictions : array of shape (m,)
        Those made elsewhere, at these rows.
    spans : array of shape (m, 2)
        Between which candidates the corrected machine speaks; from NaN to NaN where it never does.
    chosen : fitted RidgeConfidenceMachine
        The one that the labels alone would choose.
    """

    plain: Any
    corrected: Any
    predictions: Array
    spans: Array
    chosen: Any

    @classmethod
    def fit(
        cls,
        machine: Any,
        X: Array,
        labels: Array,
        predictions: Array,
    ) -> CorrectedMachine:
        """Fit a machine to rows (n, d) twice; labels (n,) are missing where NaN."""
        plain = clone(machine).fit(X, labels)
        corrected = clone(machine).fit(X, labels - predictions)
        unlabelled = plain.answer_.rows
        known = ~np.isnan(labels)
        if are_near(predictions[known], labels[known]):
            chosen = corrected
        else:
            chosen = plain
        spans = spans_of_correction(labels[known], predictions[known], predictions[unlabelled])
        return cls(plain, corrected, predictions[unlabelled], spans, chosen)

    @property
    def answer_(self) -> Answer:
        """The answer at the unlabelled rows, with the values of the chosen machine."""
        plain = self.plain.answer_
        corrected = self.corrected.answer_.shifted(self.predictions)
        answer = corrected if self.chosen is self.corrected else plain
        further = tuple(
            replace(plain_level, regions=self._join(plain_level.regions, corrected_level.regions))
            for plain_level, corrected_level in zip(plain.further, corrected.further, strict=True)
        )
        regions = self._join(plain.regions, corrected.regions)
        return replace(answer, regions=regions, further=further)

    @property
    def guarantee_(self) -> Guarantee:
        """What is guaranteed of each row."""
        return self.chosen.guarantee_

    def guarantee_at(self, confidence: float) -> Guarantee:
        """Return what is guaranteed of each row at a level."""
        return self.chosen.guarantee_at(confidence)

    def predict_region(self, X: Array, *, confidence: Sequence[float]) -> list[Regions]:
        """Return the regions of the unlabelled rows at some levels."""
        plain = self.plain.predict_region(X, confidence=confidence)
        corrected = self.corrected.predict_region(X, confidence=confidence)
        return [
            self._join(plain_region, corrected_region.shifted(self.predictions))
            for plain_region, corrected_region in zip(plain, corrected, strict=True)
        ]

    def _join(self, plain: Regions, corrected: Regions) -> Regions:
        """Return what each of two regions holds where its machine speaks."""
        infinite = np.full(len(self.spans), np.inf)
        below = np.column_stack([-infinite, self.spans[:, 0]])
        above = np.column_stack([self.spans[:, 1], infinite])
        never = np.isnan(self.spans[:, 0])
        below[never] = (-np.inf, np.inf)
        above[never] = np.nan
        parts = [_pieces_in(plain, below), _pieces_in(plain, above)]
        parts.append(_pieces_in(corrected, self.spans))
        rows = np.concatenate([rows for rows, _ in parts])
        ends = np.concatenate([ends for _, ends in parts])
        return _union(rows, ends, len(self.spans))


def spans_of_correction(labels: Array, predictions: Array, at_rows: Array) -> Array:
    """Return between which candidates (m, 2) the completed sample's slope is large enough.

    Shapes: labels and predictions at labelled rows (l,), predictions at unlabelled rows (m,). Ends
    are NaN where no candidate has such a slope.
    """
    n_rows = len(labels) + 1
    mean = (predictions.sum() + at_rows) / n_rows
    of_labels = predictions @ labels - labels.sum() * mean
    squares = predictions @ predictions + at_rows**2 - n_rows * mean**2
    needed = LEAST_SLOPE_OF_CANDIDATES * squares - of_labels
    leverage = at_rows - mean
    spans = np.full((len(at_rows), 2), np.nan)
    rising = leverage > 0.0
    falling = leverage < 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        border = needed / leverage
    spans[rising] = np.column_stack([border, np.full(len(border), np.inf)])[rising]
    spans[falling] = np.column_stack([np.full(len(border), -np.inf), border])[falling]
    always = (leverage == 0.0) & (needed <= 0.0)
    spans[always] = (-np.inf, np.inf)
    return spans


def _pieces_in(regions: Regions, spans: Array) -> tuple[AnyArray, Array]:
    """Return the rows (p,) and ends (p, 2) of the pieces of regions between two numbers a row."""
    pieces, offsets = regions.to_arrays()
    row = np.repeat(np.arange(len(regions)), np.diff(offsets))
    lower = np.maximum(pieces[:, 0], spans[row, 0])
    upper = np.minimum(pieces[:, 1], spans[row, 1])
    ends = np.column_stack([lower, upper])
    kept = ends[:, 0] <= ends[:, 1]
    return row[kept], ends[kept]


def _union(row: AnyArray, ends: Array, n_rows: int) -> Regions:
    """Return regions of pieces (p, 2) of rows (p,); pieces that touch become one."""
    order = np.lexsort((ends[:, 0], row))
    row = row[order]
    ends = ends[order]
    # Pieces of one machine are disjoint, and the machines speak on two sides of a number: a piece
    # touches the one before it, or none.
    other_row = row[1:] != row[:-1]
    apart = other_row | (ends[1:, 0] > ends[:-1, 1])
    first = np.append(True, apart)[: len(row)]
    last = np.append(apart, True)[: len(row)]
    counts = np.bincount(row[first], minlength=n_rows)
    pieces = np.column_stack([ends[first, 0], ends[last, 1]])
    return Regions(pieces, np.append(0, np.cumsum(counts)))
