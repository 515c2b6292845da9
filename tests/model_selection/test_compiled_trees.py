"""Compiled trees answer as scikit-learn's do, to the last bit where that is a sum of the same numbers."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)

from transduce.model_selection import ask as ask_module
from transduce.model_selection.ask import FittedEstimator
from transduce.model_selection.compiled_trees import ROWS, compile_trees

SETTINGS = {"max_leaf_nodes": 12, "max_iter": 15, "min_samples_leaf": 5, "random_state": 0}


def table(n=400, seed=0):
    random = np.random.default_rng(seed)
    return np.column_stack(
        [random.normal(size=n), random.integers(0, 2, n), random.integers(0, 4, n), random.normal(size=n)]
    ).astype(float)


@pytest.mark.parametrize("leaves", [2, 5, 12])
def test_numbers_to_the_last_bit(leaves):
    X = table()
    y = X[:, 0] * X[:, 2] + X[:, 1]
    model = HistGradientBoostingRegressor(**SETTINGS | {"max_leaf_nodes": leaves}).fit(X, y)
    more = np.concatenate(
        [table(2 * ROWS + 3, 1), X]
    )  # at the training rows features equal thresholds' neighbours
    np.testing.assert_array_equal(compile_trees(model).predict(more), model.predict(more))


def test_a_feature_at_a_threshold_goes_left():
    X = table()
    model = HistGradientBoostingRegressor(**SETTINGS).fit(X, X[:, 0] + X[:, 3])
    trees = compile_trees(model)
    for j, edges in trees.edges.items():
        rows = np.repeat(X[:1], len(edges), axis=0)
        rows[:, j] = edges
        np.testing.assert_array_equal(trees.predict(rows), model.predict(rows))
        np.testing.assert_array_equal(
            trees.predict(np.nextafter(rows, np.inf)), model.predict(np.nextafter(rows, np.inf))
        )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes(n_classes):
    X = table()
    y = np.array(list("abc"))[np.digitize(X[:, 0] + X[:, 1], [-0.2, 0.9])[:, None] % n_classes].ravel()
    model = HistGradientBoostingClassifier(**SETTINGS).fit(X, y)
    trees = compile_trees(model)
    np.testing.assert_allclose(trees.predict_proba(X), model.predict_proba(X), rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(trees.predict(X), model.predict(X))


def test_labels_that_say_nothing_make_trees_of_one_leaf():
    X = table()
    model = HistGradientBoostingRegressor(**SETTINGS).fit(X, np.ones(len(X)))
    np.testing.assert_array_equal(compile_trees(model).predict(X), model.predict(X))


def test_other_estimators_are_not_compiled():
    X = table()
    y = X[:, 0]
    assert compile_trees(RandomForestRegressor(3, random_state=0).fit(X, y)) is None
    assert compile_trees(HistGradientBoostingRegressor(max_leaf_nodes=13, max_iter=20).fit(X, y)) is None
    assert compile_trees(HistGradientBoostingRegressor(loss="absolute_error", max_iter=2).fit(X, y)) is None
    by_category = HistGradientBoostingRegressor(**SETTINGS, categorical_features=[2]).fit(X, X[:, 2] % 2)
    assert compile_trees(by_category) is None


def test_many_rows_are_answered_by_compiled_trees(monkeypatch):
    """The fitted estimator says the same with few rows, with many, after a journey, and where a feature is missing."""
    monkeypatch.setattr(ask_module, "MANY_ROWS", 100)
    X = table()
    model = HistGradientBoostingRegressor(**SETTINGS).fit(X, X[:, 0])
    fitted = FittedEstimator(model, None, np.arange(len(X)), len(X))
    asked = []
    monkeypatch.setattr(
        HistGradientBoostingRegressor,
        "predict",
        lambda self, X, old=HistGradientBoostingRegressor.predict: asked.append(len(X)) or old(self, X),
    )
    expected = np.concatenate([fitted.predict(X[:50]).values, fitted.predict(X[50:]).values])
    assert asked == [50]
    np.testing.assert_array_equal(expected, model.predict(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X).values, expected)
    gaps = X.copy()
    gaps[3, 0] = np.nan
    np.testing.assert_array_equal(fitted.predict(gaps).values, model.predict(gaps))
