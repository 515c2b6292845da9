"""Shuffling the rows permutes the answers and changes nothing else, with every estimator and copies of rows."""

import warnings

import numpy as np
import pytest

from transduce import (
    BayesianTransducer,
    ConformalTransducer,
    RidgeConfidenceClassifier,
    RidgeConfidenceMachine,
    SpectralGraphTransducer,
    TransductiveBlend,
    TransductiveGPRegressor,
    TransductiveRidge,
    TransductiveRidgeClassifier,
)
from transduce.conformal import ByClass, Estimated, exchangeability_test
from transduce.model_selection import TransductiveSearchCV, cross_val_transduce
from transduce.model_selection.trees import ForestClassifier, ForestRegressor

N_ROWS = 90


def table(task):
    """Rows, some of them copies of others, and labels that differ at copies."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N_ROWS, 3))
    X[60:] = X[rng.integers(60, size=30)]
    truth = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=N_ROWS)
    y = truth.copy()
    if task == "classes":
        y = np.array(["a", "b", "c"], dtype=object)[np.digitize(truth, [-0.3, 0.6])]
    y[rng.permutation(N_ROWS)[:45]] = None if task == "classes" else np.nan
    return X, y


def trees(make):
    return TransductiveBlend([make(20, random_state=0)], random_state=0)


ESTIMATORS = {
    "ridge": ("numbers", TransductiveRidge(random_state=0)),
    "ridge with centres": ("numbers", TransductiveRidge(centres=15, random_state=0)),
    "process": ("numbers", TransductiveGPRegressor(n_restarts=1, random_state=0)),
    "inducing points": ("numbers", TransductiveGPRegressor(max_exact=15, random_state=0)),
    "machine": ("numbers", RidgeConfidenceMachine()),
    "blend": ("numbers", TransductiveBlend(random_state=0)),
    "forest": ("numbers", trees(ForestRegressor)),
    "conformal": ("numbers", ConformalTransducer(TransductiveRidge(ridge=1.0), random_state=0)),
    "random ties": (
        "numbers",
        ConformalTransducer(TransductiveRidge(ridge=1.0), ties="random", random_state=0),
    ),
    "estimated odds": (
        "numbers",
        ConformalTransducer(TransductiveRidge(ridge=1.0), labels=Estimated(), random_state=0),
    ),
    "search": (
        "numbers",
        TransductiveSearchCV(TransductiveRidge(), {"ridge": [0.1, 10.0]}, random_state=0),
    ),
    "ridge for classes": ("classes", TransductiveRidgeClassifier(random_state=0)),
    "machine for classes": ("classes", RidgeConfidenceClassifier()),
    "Bayesian": ("classes", BayesianTransducer(softness=0.3, n_balls=20, random_state=0)),
    "graph": ("classes", SpectralGraphTransducer(n_neighbors=5, random_state=0)),
    "blend for classes": (
        "classes",
        TransductiveBlend(
            [SpectralGraphTransducer(), TransductiveRidgeClassifier()], random_state=0
        ),
    ),
    "forest for classes": ("classes", trees(ForestClassifier)),
    "conformal for classes": (
        "classes",
        ConformalTransducer(TransductiveRidgeClassifier(), random_state=0),
    ),
    "conformal by class": (
        "classes",
        ConformalTransducer(TransductiveRidgeClassifier(), labels=ByClass(), random_state=0),
    ),
}


def fit(estimator, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(X, y)


def numbers_of(answer):
    """Return all numbers that an answer gives at its rows."""
    parts = [answer.probabilities, answer.scores, answer.p_values, answer.standard_errors]
    if answer.classes is None:
        parts.append(answer.values)
    if answer.regions is not None:
        parts.append(answer.regions.hull())
    if answer.label_sets is not None:
        parts.append(answer.label_sets)
    columns = [np.asarray(part, dtype=float) for part in parts if part is not None]
    return np.column_stack([column.reshape(len(column), -1) for column in columns])


@pytest.mark.few(7)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_shuffled_rows_have_the_same_answers(name):
    task, estimator = ESTIMATORS[name]
    X, y = table(task)
    before = fit(estimator, X, y).answer_
    order = np.random.default_rng(1).permutation(N_ROWS)
    after = fit(estimator, X[order], y[order]).answer_
    places = np.searchsorted(before.rows, order[after.rows])
    np.testing.assert_array_equal(after.values.dtype, before.values.dtype)
    np.testing.assert_allclose(numbers_of(after), numbers_of(before)[places], rtol=1e-6, atol=1e-7)
    if task == "classes":
        np.testing.assert_array_equal(after.values, before.values[places])


def test_folds_of_shuffled_rows_have_the_same_scores():
    X, y = table("classes")
    order = np.random.default_rng(1).permutation(N_ROWS)
    model = TransductiveRidgeClassifier()
    before = cross_val_transduce(model, X, y, random_state=0)
    after = cross_val_transduce(model, X[order], y[order], random_state=0)
    np.testing.assert_allclose(after.scores, before.scores)
    kernel = X @ X.T
    precomputed = TransductiveRidgeClassifier(kernel="precomputed")
    before = cross_val_transduce(precomputed, kernel, y, random_state=0)
    after = cross_val_transduce(precomputed, kernel[order][:, order], y[order], random_state=0)
    np.testing.assert_allclose(after.scores, before.scores)


def test_rows_are_compared_in_any_order():
    X, y = table("numbers")
    labelled = ~np.isnan(y)
    order = np.random.default_rng(1).permutation(N_ROWS)
    settings = {"n_permutations": 49, "random_state": 0}
    before = exchangeability_test(X, labelled, within=X[:, 0] > 0, **settings)
    after = exchangeability_test(X[order], labelled[order], within=X[order, 0] > 0, **settings)
    assert after.p_value == before.p_value
    mixed = np.where(X[:, 0] > 0, "a", None)
    before = exchangeability_test(X, labelled, within=mixed, **settings)
    after = exchangeability_test(X[order], labelled[order], within=mixed[order], **settings)
    assert after.p_value == before.p_value
    few = exchangeability_test(X, labelled, max_rows=40, **settings)
    again = exchangeability_test(X[order], labelled[order], max_rows=40, **settings)
    assert again.p_value == few.p_value
