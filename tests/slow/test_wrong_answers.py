"""The bound on wrong answers holds in as many splits of real tables as it says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from transduce import ConformalTransducer

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
    failed = 0
    for split in range(N_SPLITS):
        rows = np.random.default_rng(split).permutation(len(truth))
        y = np.append(truth[rows[:60]].astype(float), np.full(len(truth) - 60, np.nan))
        model = ConformalTransducer(
            estimator, calibration=29, refit=refit, random_state=split, test_exchangeability=False
        ).fit(X[rows], y)
        failed += np.sum(model.answer_.values != truth[rows[60:]]) > model.wrong_at_most(0.95)
    assert failed <= binom.ppf(0.999, N_SPLITS, 0.05)
