"""Values from all labels beside regions from some of them: what the second fit changes, and what it must not."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.svm import SVC

from tests.conformal.test_transducer import classes, numbers
from transduce import ConformalTransducer, TransductiveRidge
from transduce.conformal.calibrated_answer import confidence_in


def pair(estimator, X, y, **settings):
    """Return the wrapper without and with the second fit."""
    return [
        ConformalTransducer(estimator, refit=refit, random_state=0, **settings).fit(X, y)
        for refit in (False, True)
    ]


@pytest.mark.parametrize("estimator", [TransductiveRidge(ridge=0.1, width=2.0), Ridge()])
def test_numbers_come_from_all_labels_and_guarantees_from_some(estimator):
    X, y, _ = numbers()
    once, twice = pair(estimator, X, y)
    unlabelled = np.isnan(y)
    direct = estimator.fit(
        X if hasattr(estimator, "tether") else X[~unlabelled],
        y if hasattr(estimator, "tether") else y[~unlabelled],
    )
    values = direct.answer_.values if hasattr(direct, "answer_") else direct.predict(X[unlabelled])
    np.testing.assert_allclose(twice.answer_.values, values, rtol=1e-8)
    assert np.any(twice.answer_.values != once.answer_.values)
    assert twice.answer_.regions == once.answer_.regions.holding(twice.answer_.values)
    assert twice.answer_.regions.contains(twice.answer_.values).all()
    assert twice.guarantee_ == once.guarantee_
    np.testing.assert_array_equal(twice.transduction_[unlabelled], twice.answer_.values)
    np.testing.assert_array_equal(twice.mean_, once.mean_)
    np.testing.assert_array_equal(twice.select(above=0.5).rows, once.select(above=0.5).rows)
    np.testing.assert_array_equal(twice.select(above=0.5).values, once.select(above=0.5).values)
    low = twice.answer_at(0.01)
    assert low.regions == once.answer_at(0.01).regions.holding(low.values)
    assert not once.answer_at(0.01).regions.contains(low.values).all()


@pytest.mark.parametrize(
    "estimator", [RandomForestClassifier(20, random_state=0), RidgeClassifier(), SVC()]
)
def test_classes_come_from_all_labels_and_sets_from_some(estimator):
    X, y, _ = classes(gap=0.7)
    once, twice = pair(estimator, X, y, confidence=0.8)
    answer, unlabelled = twice.answer_, np.array([label is None for label in y])
    own = answer.values[:, None] == twice.classes_
    plain = once._fit.table.answer(0.8, answer.rows).label_sets
    np.testing.assert_array_equal(answer.label_sets, plain | own)
    assert answer.label_sets.any(axis=1).all()
    np.testing.assert_array_equal(answer.p_values, once.answer_.p_values)
    direct = estimator.fit(X[~unlabelled], y[~unlabelled].astype(str)).predict(X[unlabelled])
    np.testing.assert_array_equal(answer.values, direct)
    same = answer.values == once.answer_.values
    likeliest = answer.p_values.argmax(axis=1) == np.searchsorted(
        twice.classes_.astype(str), direct
    )
    np.testing.assert_array_equal(
        answer.confidence[same & likeliest], once.answer_.confidence[same & likeliest]
    )
    assert not np.array_equal(answer.values, once.answer_.values)
    codes = np.searchsorted(twice.classes_.astype(str), direct)
    np.testing.assert_array_equal(answer.credibility, answer.p_values[np.arange(len(codes)), codes])
    picked, before = (
        twice.select(correct=True, false_discovery=0.3),
        once.select(correct=True, false_discovery=0.3),
    )
    np.testing.assert_array_equal(picked.rows, before.rows)
    np.testing.assert_array_equal(picked.values, before.values)


def test_confidence_is_that_of_the_answered_class():
    """The highest level at which every other class is ruled out; of the likeliest class that is the usual one."""
    p = np.array([[0.6, 0.05, 0.1], [0.6, 0.05, 0.1], [0.2, 0.2, 0.9]])
    np.testing.assert_allclose(confidence_in(np.array([0, 2, -1]), p), [0.9, 0.4, 0.8])


def test_nothing_asked_and_nothing_hidden():
    X, _, truth = numbers()
    model = ConformalTransducer(Ridge(), refit=True, random_state=0).fit(X, truth)
    assert model.refitted_ is model.estimator_
    np.testing.assert_array_equal(model.transduction_, truth)


def test_a_later_fit_forgets_the_second_one():
    X, y, _ = classes()
    model = ConformalTransducer(LogisticRegression(), refit=True, random_state=0).fit(X, y)
    assert hasattr(model, "refitted_")
    assert not hasattr(model.set_params(refit=False).fit(X, y), "refitted_")


def test_a_second_fit_that_fails_leaves_nothing():
    class Spoilt(Ridge):
        def fit(self, X, y):
            if len(y) == 50:
                raise ValueError("too many labels")
            return super().fit(X, y)

    X, y, _ = numbers()
    model = ConformalTransducer(Spoilt(), refit=True, random_state=0)
    with pytest.raises(ValueError, match="too many labels"):
        model.fit(X, y)
    assert not [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]


def test_predict_is_that_of_the_fit_behind_the_values():
    X, y, _ = classes()
    once, twice = pair(LogisticRegression(), X, y)
    unlabelled = np.array([label is None for label in y])
    np.testing.assert_array_equal(twice.predict(X[unlabelled]), twice.answer_.values)
    np.testing.assert_allclose(twice.predict_proba(X[unlabelled]), twice.answer_.probabilities)
    assert np.any(twice.decision_function(X) != once.decision_function(X))


def test_refit_is_yes_or_no():
    X, y, _ = numbers()
    with pytest.raises(ValueError, match="refit must be True or False"):
        ConformalTransducer(Ridge(), refit="yes").fit(X, y)
