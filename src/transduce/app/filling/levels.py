"""The intervals of one fit at several levels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transduce.app.filling.table_fit import TableFit
from transduce.core import checks
from transduce.core.answer import Regions
from transduce.core.types import Array


def read_levels(levels: Sequence[float]) -> list[float]:
    """Return levels in ascending order, or raise a ValueError."""
    if isinstance(levels, str) or not isinstance(levels, Sequence) or not len(levels):
        raise ValueError(f"levels is a list such as [0.9, 0.95]; got {levels!r}.")
    numbers = [checks.check_share("a level", level) for level in levels]
    return sorted(set(numbers))


def intervals_of_fit(fit: TableFit, levels: Sequence[float]) -> Array:
    """Return the ends (m, n_levels, 2) of intervals at the unlabelled rows, in the fit's order.

    Each holds its value.
    """
    estimator = fit.model.estimator
    if fit.model.holds_out:
        regions = [estimator.answer_at(level).regions for level in levels]
        if fit.offset is not None:
            regions = [region.shifted(fit.offset[fit.answer.rows]) for region in regions]
    else:
        rows = fit.features.matrix[fit.answer.rows]
        regions = estimator.predict_region(rows, confidence=list(levels))
    values = np.where(fit.answer.status == "unreached", np.nan, fit.answer.values).astype(float)
    return np.stack([_hull_with(region, values) for region in regions], axis=1)


def _hull_with(regions: Regions | None, values: Array) -> Array:
    """Return the ends (m, 2) of regions that are extended to hold values."""
    assert regions is not None  # the target has numbers
    return np.asarray(regions.holding(values).hull())
