"""The guarantee of `fill` around estimators that are not ours, and around blends with them, over many tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier

from transduce import fill
from transduce.conformal import Chance

REPEATS = 100


def tables(task: str):
    """Yield tables with hidden truth: skewed numbers, or three classes of different sizes, and cells missing."""
    for seed in range(REPEATS):
        rng = np.random.default_rng(seed)
        n = 130
        a, b = rng.normal(size=(2, n))
        truth = np.exp(a + 0.5 * rng.normal(size=n) * (1.0 + (b > 0)))
        if task == "classification":
            truth = np.array(["low", "mid", "high"], dtype=object)[np.digitize(truth, [1.0, 4.0])]
        labelled = rng.permutation(n) < 70
        a = np.where(rng.random(n) < 0.1, np.nan, a)
        cells = np.where(labelled, truth, np.nan if task == "regression" else None)
        yield pd.DataFrame({"a": a, "b": b, "y": cells}), truth, ~labelled


CASES = {
    "a tree that learns labels by heart": ("classification", DecisionTreeClassifier(), "encoded"),
    "naive Bayes, far too sure": ("classification", GaussianNB(var_smoothing=1e-12), "encoded"),
    "one neighbour": ("regression", KNeighborsRegressor(1), "encoded"),
    "boosting on columns with gaps": (
        "regression",
        HistGradientBoostingRegressor(max_iter=20, min_samples_leaf=5),
        "columns",
    ),
    "a blend": ("regression", ["ridge", KNeighborsRegressor(3)], "encoded"),
}


@pytest.mark.parametrize("case", CASES)
def test_coverage(case):
    """Each row at 80 %, and the bound on the column, hold as often as they say."""
    task, method, features = CASES[case]
    inside = bounded = rows = 0
    for table, truth, asked in tables(task):
        chance = Chance(
            reweight=False
        )  # chance chose the labels, whatever the test says of one table in a hundred
        settings = {"features": features, "task": task, "confidence": 0.8, "labels": chance}
        result = fill(table, "y", method=method, **settings)
        new = result.new[asked]
        if task == "regression":
            holds = (new["y_lower"] <= truth[asked]) & (truth[asked] <= new["y_upper"])
        else:
            pairs = zip(new["y_set"], truth[asked], strict=True)
            holds = np.array([true in str(words).split(" | ") for words, true in pairs])
        one = np.random.default_rng(rows).integers(
            len(holds)
        )  # rows of one table are not independent
        inside += bool(np.asarray(holds)[one])
        bounded += int((~np.asarray(holds)).sum()) <= result.guarantee.outside.at_most
        rows += 1
    assert rows == REPEATS
    assert inside >= binom.ppf(0.001, REPEATS, 0.8)
    assert bounded >= binom.ppf(0.001, REPEATS, 0.95)
