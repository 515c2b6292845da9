"""Blocks of rows predicted by several threads: the same answers, and only by what bears it."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import Ridge

from transduce import TransductiveBlend
from transduce.conformal import outside
from transduce.model_selection.fit_and_predict import FittedEstimator
from transduce.model_selection.trees import ForestRegressor


def test_threads_change_no_answer(monkeypatch):
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 3))
    labels = np.where(np.arange(80) < 40, X[:, 0], np.nan)
    others = random.normal(size=(300, 3))
    blend = TransductiveBlend(random_state=0).fit(X, labels)
    fitted = FittedEstimator(blend, None, np.arange(80), 80)
    monkeypatch.setattr(outside, "BLOCK", 64)
    answers = []
    for n_threads in (1, 3):
        monkeypatch.setattr(outside, "threads_here", lambda n=n_threads: {"blas": n})
        answers.append(outside._predict_in_blocks(fitted, others).values)
    assert len(answers[0]) == 300
    assert np.array_equal(*answers)
    assert np.allclose(answers[0], blend.predict(others))


def test_estimators_of_others_are_asked_by_one_thread():
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 3))
    labels = np.where(np.arange(40) < 30, X[:, 0], np.nan)
    own = TransductiveBlend([("forest", ForestRegressor())]).fit(X, labels)
    mixed = TransductiveBlend([("forest", ForestRegressor()), ("other", Ridge())]).fit(X, labels)
    assert outside._is_safe_in_threads(own)
    assert not outside._is_safe_in_threads(mixed)
    assert not outside._is_safe_in_threads(Ridge())
