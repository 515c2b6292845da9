"""Completed columns for analyses that nobody foresaw.

Every gap filled with a value that may be the true one.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from transduce.app.estimating.predicted import PredictedColumn
from transduce.core.checks import check_whole
from transduce.core.types import AnyArray, Array

MOST_DRAWS = 1000


def draw_columns(column: PredictedColumn, n_draws: int, seed: int) -> pd.DataFrame:
    """Return completed columns, shape (n, n_draws).

    Labels stay. A number, a date or a time is its prediction plus an error that was made at a
    labelled row, weighted as the sample says, a class is drawn from its probabilities. In each draw
    errors come from a resample of themselves (the approximate Bayesian bootstrap of Rubin and
    Schenker 1986), so that draws differ also by what the labels leave open.
    """
    check_whole("n", n_draws, least=1, most=MOST_DRAWS)
    n_limits = int(np.sum(column.target.censored))
    if n_limits:
        raise ValueError(
            f"{n_limits} labels are detection limits, such as <0.5: no column can be completed "
            "with them, since what is below them is not known. Ask for a share or a quantile."
        )
    rng = np.random.default_rng(seed)
    draws = [_as_written(column, _draw_column(column, rng)) for _ in range(n_draws)]
    names = pd.RangeIndex(n_draws, name="draw")
    return pd.DataFrame(dict(zip(names, draws, strict=True)))


def _as_written(column: PredictedColumn, drawn: AnyArray) -> AnyArray | pd.Series:
    """Return a drawn column as the table has it: dates, times and durations as such."""
    moments = column.target.spelling.moments
    if moments is None:
        return drawn
    return moments.written(drawn)


def _draw_column(column: PredictedColumn, rng: np.random.Generator) -> AnyArray:
    if column.is_numeric:
        return _draw_numbers(column, rng)
    return _draw_classes(column, rng)


def _draw_numbers(column: PredictedColumn, rng: np.random.Generator) -> Array:
    known = column.numbers
    rows = ~column.target.missing
    weights = np.ones(int(np.sum(rows)))
    if column.sample is not None:
        rows = column.sample.rows
        weights = np.ones(column.sample.n_labels)
        if column.sample.odds is not None:
            weights = column.sample.odds[rows]
    predictions = np.zeros(len(known))
    if column.predictions is not None:
        predictions = column.predictions
    errors = (known - predictions)[rows]
    shares = weights / np.sum(weights)
    resampled = rng.choice(errors, len(errors), p=shares)
    drawn = predictions + rng.choice(resampled, len(known))
    return np.where(column.target.missing, np.clip(drawn, *column.limits), known)


def _draw_classes(column: PredictedColumn, rng: np.random.Generator) -> AnyArray:
    labels = column.target.labels
    completed = labels.astype(object).copy()
    missing = np.flatnonzero(column.target.missing)
    if column.predictions is None or column.classes is None:
        known = rng.choice(np.array(column.target.known, dtype=object), len(column.target.known))
        completed[missing] = rng.choice(known, len(missing))
        return completed
    shares = np.clip(column.predictions[missing], 0.0, None)
    totals = shares.sum(axis=1, keepdims=True)
    bounds = np.cumsum(shares / np.where(totals > 0.0, totals, 1.0), axis=1)
    chances = rng.random((len(missing), 1))
    places = np.sum(chances > bounds[:, :-1], axis=1)
    completed[missing] = np.asarray(column.classes, dtype=object)[places]
    return completed
