"""On which scale the features of a column are, so that every column counts the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from transduce.core.types import Array
from transduce.tables.encoder import Scale

LEAST_SPREAD = 0.5  # beside how far cells lie that differ from most: that of 0 and 1, equally frequent
FAR = 100.0  # times as far from the median as nearly all others that differ from it
MOST_FAR = 0.1  # of these cells may be far
FEWEST_TO_TELL = 20  # rows


def scale_features(column: Any, parts: dict[str, Array], kind: str) -> list[Scale]:
    """Return how each feature of a column gets mean 0 and its share of the column's spread; constant ones are left out.

    Shapes: parts (n,).
    """
    scales = [_own_scale(column, name, values, kind) for name, values in parts.items()]
    scales = [scale for scale in scales if scale.spread > 1e-10]
    if kind in ("levels", "letters"):
        total = sum((scale.spread * scale.largest) ** 2 for scale in scales) ** 0.5
        total = max(total, LEAST_SPREAD) if kind == "levels" else total
        return [scale._replace(spread=total / scale.largest) for scale in scales]
    share = len(scales) ** 0.5 if kind == "date" else 1.0
    return [scale._replace(spread=scale.spread * share) for scale in scales]


def _own_scale(column: Any, name: str, values: Array, kind: str) -> Scale:
    """Return mean and standard deviation of a feature; of numbers and dates, a spread that rare cells do not set."""
    alone = kind in ("number", "date")
    values = _without_far(values) if alone else values
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    values = values / largest  # so that no square is too large
    spread = float(values.std())
    if alone:
        apart = values - np.median(values)
        apart = apart[apart != 0.0]
        spread = max(spread, LEAST_SPREAD * float(np.sqrt(np.mean(apart**2))) if len(apart) else 0.0)
    return Scale(column, name, largest, float(values.mean()), spread)


def _without_far(values: Array) -> Array:
    """Return the numbers without those that are absurdly far from all others, if there are enough to tell."""
    scaled = values / (float(np.abs(values).max(initial=0.0)) or 1.0)
    distance = np.abs(scaled - np.median(scaled))
    apart = distance[distance > 0.0]
    if len(values) < FEWEST_TO_TELL or not len(apart):
        return values
    usual = float(np.quantile(apart, 1.0 - MOST_FAR, method="lower"))
    return values[distance <= FAR * usual]
