"""The mean of the missing labels, or the shares of their classes, by calibration rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from transduce.conformal.designs.weights import GROUPS
from transduce.conformal.miscoverage import powered_mean
from transduce.core.types import AnyArray, Array
from transduce.model_selection.fit_and_predict import RawPrediction
from transduce.population.urns import urn_interval

if TYPE_CHECKING:
    from transduce.conformal.calibrated import CalibratedTable


def estimate_mean(table: CalibratedTable, confidence: float, shown: AnyArray) -> pd.DataFrame:
    """Return the mean of the missing labels, or shares of classes; `shown` are visible labels."""
    weights = weights_of_means(table)
    truth = _as_columns(table, table.labels).astype(float)
    estimates = powered_mean(
        _predict_columns(table, table.unlabelled, shown),
        _predict_columns(table, table.calibration, shown),
        truth,
        weights,
        ["mean"] if table.classes is None else table.classes,
    )
    if table.classes is None:
        return estimates
    lower = np.full(len(estimates), np.nan)
    upper = lower
    one_part = table.weights.strata is None and table.weights.kind != GROUPS
    if one_part and np.all(weights == 1.0):
        lower, upper = _exact_intervals(table, truth, confidence)
        estimates["estimate"] = np.clip(estimates["estimate"], lower, upper)
    estimates.insert(1, "lower", lower)
    estimates.insert(2, "upper", upper)
    return estimates


def _as_columns(table: CalibratedTable, values: AnyArray) -> AnyArray:
    """Return numbers as one column, or classes as a column of 0 and 1 each."""
    if table.classes is None:
        return values[:, None]
    return values[:, None] == np.arange(len(table.classes))


def _predict_columns(table: CalibratedTable, reply: RawPrediction, shown: AnyArray) -> Array:
    """Return predictions in columns; the mean of visible labels where there is none."""
    predicted = reply.probabilities
    if predicted is None:
        predicted = _as_columns(table, reply.values)
    mean = _as_columns(table, shown).mean(axis=0)
    return np.where(reply.given[:, None], predicted, mean)


def _exact_intervals(
    table: CalibratedTable, truth: Array, confidence: float
) -> tuple[Array, Array]:
    """Return exact intervals of shares, where calibration rows are a random part of all rows."""
    n_empty = 0
    if table.weights.empty is not None:
        n_empty = int(table.weights.empty.sum())
    n_rows = len(table.unlabelled.values)
    ends = []
    for count in truth.sum(axis=0):
        ends.append(urn_interval(int(count), len(table.labels), n_rows, confidence, n_empty))
    lower, upper = np.array(ends, dtype=float).T / max(n_rows, 1)
    return lower, upper


def weights_of_means(table: CalibratedTable) -> Array:
    """Return weights of the calibration rows in means over all unlabelled rows."""
    weights = table.weights
    strata = weights.strata
    if strata is None:
        return weights.calibration
    largest = max(strata.calibration.max(initial=0), strata.unlabelled.max(initial=0))
    sizes = np.bincount(strata.calibration, minlength=1 + largest)
    n_unlabelled = np.bincount(strata.unlabelled, minlength=len(sizes))
    return weights.calibration * n_unlabelled[strata.calibration] / sizes[strata.calibration]
