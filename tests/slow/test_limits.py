"""True values are in their intervals as often as stated, where labels are limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from tests.app.filling.test_limits import SETTINGS, inside, table_of
from transduce import fill
from transduce.app.filling import fit_fill

N_TABLES = 120


def limits_of(kind, seed, n=140):
    """Return the limits of each row: one for all, some that differ by row, or limits on both sides."""
    rng = np.random.default_rng(seed)
    if kind == "differ":
        return rng.choice([-1.0, -0.2, 0.3], n), np.full(n, np.inf)
    return np.full(n, 0.2), np.full(n, 0.8 if kind == "both" else np.inf)


@pytest.mark.parametrize(
    ("kind", "guarantee"),
    [("one", "row"), ("one", "column"), ("differ", "column"), ("both", "column")],
)
def test_intervals_of_values_beyond_limits(kind, guarantee):
    outside = 0
    for seed in range(N_TABLES):
        frame, truth, known = table_of(seed, 140, *limits_of(kind, seed), labelled=60)
        new = fill(frame, "y", guarantee=guarantee, **SETTINGS).new
        row = np.random.default_rng(seed).choice(np.flatnonzero(~known))
        outside += not inside(new, truth)[row]
    assert outside <= binom.ppf(0.999, N_TABLES, 0.1)


def test_intervals_of_later_rows():
    outside = 0
    for seed in range(N_TABLES):
        frame, truth, _ = table_of(seed, 140, *limits_of("both", seed), labelled=120)
        fitted = fit_fill(
            frame.iloc[:139].assign(y=frame["y"].where(frame.index != 0)), "y", **SETTINGS
        )
        new = fitted.new_columns(frame.iloc[139:].assign(y=None))
        outside += not inside(new, truth[139:]).iloc[0]
    assert outside <= binom.ppf(0.999, N_TABLES, 0.1)
