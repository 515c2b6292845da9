"""Out-of-fold answers from one fit: against refits, of trees, and what has no short way."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.model_selection.test_model_selection import classes, numbers
from transduce import (
    SpectralGraphTransducer,
    TransductiveBlend,
    TransductiveGPRegressor,
    TransductiveRidge,
    TransductiveRidgeClassifier,
)
from transduce.ensemble.blend_fit import without_refits
from transduce.model_selection.cross_validation import predict_folds
from transduce.model_selection.fit_and_predict import fit_and_predict
from transduce.model_selection.problem import read_problem
from transduce.model_selection.trees import (
    BoostedClassifier,
    BoostedRegressor,
    ForestClassifier,
    ForestRegressor,
)


def asked(estimator, X, y, task):
    """The problem, the reply of a fit to all labels, and folds."""
    problem = read_problem(X, y, task=task)
    every = np.arange(len(problem.labels))
    reply = fit_and_predict(estimator, problem, every, problem.sample.unlabelled)
    folds = [(every[every % 4 != k], every[every % 4 == k]) for k in range(4)]
    return problem, reply, folds


def test_trees_say_it_themselves():
    """Forests out of bag, boosted trees from fits to the visible labels; those of a pipeline too."""
    X, y, _ = numbers()
    for trees in (
        ForestRegressor(30, random_state=0),
        BoostedRegressor(n_estimators=20, random_state=0),
    ):
        problem, reply, folds = asked(make_pipeline(StandardScaler(), trees), X, y, "regression")
        found = without_refits(reply, problem, folds)
        expected = reply.fitted.estimator[-1].answers_in_folds(folds)
        for part, values in zip(found, expected, strict=True):
            np.testing.assert_array_equal(part.values, values)
    X, y, _ = classes(("a", "b", "c"))
    for trees in (
        ForestClassifier(30, random_state=0),
        BoostedClassifier(n_estimators=20, random_state=0),
    ):
        problem, reply, folds = asked(trees, X, y, "classification")
        found = without_refits(reply, problem, folds)
        for part, shares in zip(found, reply.fitted.estimator.answers_in_folds(folds), strict=True):
            np.testing.assert_array_equal(part.probabilities, shares)
            np.testing.assert_array_equal(part.values, shares.argmax(axis=1))


def test_a_graph_is_cut_again():
    X, y, _ = classes(("a", "b", "c"))
    model = make_pipeline(
        StandardScaler(), SpectralGraphTransducer(metric="euclidean", random_state=0)
    )
    problem, reply, folds = asked(model, X, y, "classification")
    before = reply.fitted.estimator[-1].answer_
    found, refits = without_refits(reply, problem, folds), predict_folds([model], problem, folds)[0]
    for part, refit in zip(found, refits, strict=True):
        np.testing.assert_allclose(part.scores, refit.scores, rtol=1e-6, atol=1e-8)
        np.testing.assert_array_equal(part.values, refit.values)
    assert reply.fitted.estimator[-1].answer_ is before  # the fitted one stays as it was


def test_only_refits_can_tell():
    X, y, _ = numbers()
    for estimator in (Ridge(), RandomForestRegressor(5, random_state=0)):
        problem, reply, folds = asked(estimator, X, y, "regression")
        assert without_refits(reply, problem, folds) is None
    X, y, _ = classes()
    model = SpectralGraphTransducer(metric="euclidean", random_state=0)
    problem, reply, _ = asked(model, X, y, "classification")
    one = np.flatnonzero(problem.codes == 0)
    folds = [(one, np.flatnonzero(problem.codes == 1))]
    assert without_refits(reply, problem, folds) is None  # only one class is visible


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_weights_are_near_those_of_refits(task):
    """Both rank a good member before a bad one, and the short way agrees with refits where it is exact."""
    X, y, _ = numbers(n=80, unlabelled=30) if task == "regression" else classes()
    members = {
        "regression": {
            "tr": TransductiveRidge(random_state=0),
            "gp": TransductiveGPRegressor(matching=0, n_restarts=0, random_state=0),
            "plain": Ridge(),
        },
        "classification": {"tr": TransductiveRidgeClassifier(), "logistic": LogisticRegression()},
    }[task]
    auto = TransductiveBlend(members, random_state=0).fit(X, y)
    refits = TransductiveBlend(members, cv=5, random_state=0).fit(X, y)
    np.testing.assert_allclose(auto.weights_, refits.weights_, atol=0.15)
    plain = list(members)[-1]
    np.testing.assert_allclose(auto.out_of_fold_[plain], refits.out_of_fold_[plain])


def test_bad_folds():
    X, y, _ = numbers()
    with pytest.raises(ValueError, match="cv must be"):
        TransductiveBlend({"a": Ridge(), "b": Ridge(2.0)}, cv="loo").fit(X, y)
