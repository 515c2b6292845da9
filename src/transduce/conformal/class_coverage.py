"""How often sets hold each class, told by the calibration labels themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from transduce.conformal.scores import WeightedRanks, label_sets
from transduce.core.types import AnyArray, Array

if TYPE_CHECKING:
    from transduce.conformal.calibrated import CalibratedTable, Comparison


def held_out_p_values(table: CalibratedTable) -> Array:
    """Return the p-value of each calibration label among the other ones; (c,).

    It is NaN at labels that no unlabelled row is compared with: of a row without a prediction, or
    of a category in which all rows have a label.
    """
    if table.weights.overlapping is None:
        return _p_values_by_part(table, table.comparisons)
    within = [_p_values_by_part(table, part) for part in table.comparisons_within_columns]
    return np.max(within, axis=0)


def _p_values_by_part(table: CalibratedTable, comparisons: list[Comparison]) -> Array:
    # Each row in turn is taken for an unlabelled one. Its own weight is among those of the scores
    # that are at least its own, so that it adds nothing besides.
    p_values = np.full(len(table.labels), np.nan)
    for calibration, unlabelled, _ in comparisons:
        zeros = np.zeros(int(calibration.sum()))
        ranks = WeightedRanks(
            scores=table.scores[calibration],
            calibration_ties=zeros,
            unlabelled_ties=zeros,
            weights=table.weights.calibration[calibration],
            unlabelled_weights=zeros,
            factor=table.weights.factor,
            n_empty=table.count_empty(unlabelled),
        )
        p_values[calibration] = _own_p_values(table, ranks, table.labels[calibration])
    return p_values


def _own_p_values(table: CalibratedTable, ranks: WeightedRanks, codes: AnyArray) -> Array:
    """Return p-values of calibration rows at their own labels.

    Rows are compared within their classes, or weighed by the shares of the classes.
    """
    if table.by_shares:
        return _own_p_values_by_shares(table, ranks, codes)
    if not table.by_class:
        return ranks.p_values(ranks.scores)
    p_values = np.zeros(len(codes))
    for code in np.unique(codes):
        of_class = codes == code
        p_values[of_class] = ranks.p_values(ranks.scores, of_class)[of_class]
    return p_values


def _own_p_values_by_shares(table: CalibratedTable, ranks: WeightedRanks, codes: AnyArray) -> Array:
    shares = table.weights.shares
    assert shares is not None
    # A row joins a class that is not its own.
    joining = replace(ranks, unlabelled_weights=np.ones(len(codes)))
    p_values = np.zeros(len(codes))
    for code in np.unique(codes):
        of_class = codes == code
        own_class = ranks.p_values(ranks.scores, of_class)
        other_class = joining.p_values(ranks.scores, of_class)
        p_values += shares[code] * np.where(of_class, own_class, other_class)
    absent = np.setdiff1d(np.arange(len(shares)), codes)  # a class with no label rules nothing out
    return p_values + shares[absent].sum()


def covered_by_class(table: CalibratedTable, confidence: float) -> tuple[AnyArray, AnyArray]:
    """Return how many calibration labels of each class are compared, and how many sets hold."""
    assert table.classes is not None
    p_values = held_out_p_values(table)
    compared = ~np.isnan(p_values)
    covered = compared & label_sets(p_values, confidence)
    covered |= not table.supports(confidence)
    covered |= table.calibration.values == table.labels  # a set always holds the predicted class
    n_classes = len(table.classes)
    judged = np.bincount(table.labels[compared], minlength=n_classes)
    return judged, np.bincount(table.labels[compared & covered], minlength=n_classes)
