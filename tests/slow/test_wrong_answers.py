"""The bound on wrong answers holds in as many splits of real tables as it says."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from transduce import ConformalTransducer, fill
from transduce.conformal import Chance

N_SPLITS = 1000
MODELS = [
    (load_iris, KNeighborsClassifier(3)),
    (load_wine, make_pipeline(StandardScaler(), LogisticRegression())),
    (load_breast_cancer, make_pipeline(StandardScaler(), KNeighborsClassifier(5))),
]


@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize(("load", "estimator"), MODELS)
def test_the_bound_on_wrong_answers(load, estimator, refit):
    X, truth = load(return_X_y=True)
    failed, failed_of_first = 0, 0
    for split in range(N_SPLITS):
        rows = np.random.default_rng(split).permutation(len(truth))
        y = np.append(truth[rows[:60]].astype(float), np.full(len(truth) - 60, np.nan))
        model = ConformalTransducer(
            estimator, calibration=29, refit=refit, random_state=split, test_exchangeability=False
        ).fit(X[rows], y)
        bound = model.guarantee_at(certainty=0.95).wrong
        failed += np.sum(model.answer_.values != truth[rows[60:]]) > bound.at_most
        of_first = model._fit.table.unlabelled.values
        failed_of_first += np.sum(of_first != truth[rows[60:]]) > bound.judged
    assert failed <= binom.ppf(0.999, N_SPLITS, 0.05)
    assert failed_of_first <= binom.ppf(0.999, N_SPLITS, 0.05)


@pytest.mark.parametrize("n_labels", [120, 240])
def test_bounds_of_a_sample_and_of_the_other_rows_together(n_labels):
    """Chance chooses the labels of a fixed table, anew in each split; the fit sees 150 of the other rows."""
    random = np.random.default_rng(3)
    X = random.normal(size=(900, 2))
    noise = 0.7 * random.normal(size=900)
    truth = np.array(list("abc"))[np.digitize(X[:, 0] + noise, [-0.6, 0.6])]
    outside, wrong, n_splits = 0, 0, 300
    for split in range(n_splits):
        labelled = np.zeros(900, dtype=bool)
        labelled[np.random.default_rng([split, 7]).permutation(900)[:n_labels]] = True
        table = pd.DataFrame({"u": X[:, 0], "v": X[:, 1], "y": np.where(labelled, truth, None)})
        how = {"method": "ridge", "sample": 150, "labels": Chance(reweight=False)}
        result = fill(table, "y", random_state=split, **how)
        assert result.seen.is_sample
        true = truth[result.answer.rows]
        outside += (~result.answer.contains(true)).sum() > result.guarantee.outside.at_most
        wrong += (result.answer.values != true).sum() > result.guarantee.wrong.at_most
    assert outside <= binom.ppf(0.999, n_splits, 0.05)
    assert wrong <= binom.ppf(0.999, n_splits, 0.05)
