"""Coverage within overlapping categories of several columns."""

import numpy as np
import pandas as pd
from scipy.stats import binom
from sklearn.linear_model import Ridge

from transduce import ConformalTransducer
from transduce.conformal import Chance

N_TABLES = 400


def covered_once(seed):
    """Return, of one row drawn at random in each category of each column, whether it is inside."""
    rng = np.random.default_rng(seed)
    n = 300
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], n, p=[0.3, 0.7])})
    # Regions hold different shares of the sexes, so that categories overlap unevenly.
    east = rng.random(n) < np.where(frame["sex"] == "f", 0.7, 0.3)
    frame["region"] = np.where(east, "east", rng.choice(["north", "west"], n))
    frame["age"] = rng.choice(["old", "young"], n)
    x = rng.normal(size=n)
    spread = np.where(frame["sex"] == "f", 3.0, 1.0) * np.where(frame["age"] == "old", 2.0, 1.0)
    y = x + spread * rng.standard_t(3, size=n)
    labelled = rng.permutation(n) < 200
    model = ConformalTransducer(
        Ridge(),
        labels=Chance(within=frame),
        confidence=0.8,
        test_exchangeability=False,
        random_state=seed,
    ).fit(x[:, None], np.where(labelled, y, np.nan))
    inside = model.answer_.contains(y[~labelled])
    asked = frame[~labelled].reset_index(drop=True)
    picked = {}
    for column in asked:
        for name, rows in asked.groupby(column).groups.items():
            picked[column, name] = bool(inside[rng.choice(rows)])
    return picked


def test_each_category_is_covered_and_not_by_far_too_much():
    tables = pd.DataFrame([covered_once(seed) for seed in range(N_TABLES)])
    for category, inside in tables.items():
        covered = inside.dropna().astype(bool)
        at_least = binom.ppf(1e-4, len(covered), 0.8)
        # The test row and (d + 1) interpolated ones of some 15 labels cost up to a few per cent.
        at_most = binom.ppf(1 - 1e-4, len(covered), 0.88)
        assert at_least <= covered.sum() <= at_most, category
