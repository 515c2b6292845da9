"""Rows that come later: a shift is nearly always seen, and rarely where there is none; bounds are exact at 1e-4."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import binom

from transduce.app.filling import fit_fill

TABLES, LATER, SHIFT = 40, 80, 2.0


def rows(rng, n, shift=0.0):
    X = rng.normal(size=(n, 3)) + shift
    noise = (1 + np.maximum(X[:, 0], 0)) * rng.normal(
        size=n
    )  # errors grow where the labelled rows are few
    return pd.DataFrame(X, columns=list("abc")), X[:, 0] ** 2 + X[:, 1] + noise


def test_a_shift_is_seen_and_chance_is_not_taken_for_one():
    """Answers at shifted rows miss the level; then the guarantee is in doubt, and else it is exact."""
    in_doubt, inside = {0.0: 0, SHIFT: 0}, {0.0: 0, SHIFT: 0}
    for seed in range(TABLES):
        rng = np.random.default_rng([seed, 27])
        frame, y = rows(rng, 160)
        frame["y"] = np.where(np.arange(160) < 120, y, np.nan)
        fitted = fit_fill(frame, "y", method="ridge")
        for moved in in_doubt:
            later, truth = rows(rng, LATER, moved)
            guarantee = fitted.guarantee_of_later(LATER, compared=fitted.compare_later(later))
            in_doubt[moved] += guarantee.in_doubt
            assert (
                guarantee.in_doubt
                or guarantee.headline == "exact if later rows are like the labelled ones"
            )
            assert guarantee.in_doubt == ("Labelled and later rows differ" in str(guarantee))
            new = fitted.new_columns(later)
            inside[moved] += int(((new["y_lower"] <= truth) & (truth <= new["y_upper"])).sum())
    assert inside[SHIFT] / (TABLES * LATER) < 0.85
    assert inside[0.0] / (TABLES * LATER) > 0.88
    assert in_doubt[0.0] <= binom.ppf(1 - 1e-4, TABLES, 0.01)
    assert in_doubt[SHIFT] >= binom.ppf(1e-4, TABLES, 0.97)
