"""Transductive cross-validation, search and the choice of a method: by hand, laws, limits, refusals."""

from __future__ import annotations

import pickle
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import FitFailedWarning, NotFittedError, UndefinedMetricWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import log_loss, make_scorer, mean_absolute_error
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, RepeatedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from tests import brute
from tests.libraries import polars as pl
from transduce import (
    BayesianTransducer,
    RidgeConfidenceClassifier,
    RidgeConfidenceMachine,
    TransductiveBlend,
    TransductiveGPRegressor,
    TransductiveRidge,
    TransductiveRidgeClassifier,
)
from transduce.core.ranks import random_folds
from transduce.core.validation import read_sample
from transduce.model_selection import TransductiveSearchCV, choose_method, cross_val_transduce
from transduce.model_selection import cross_validation as _folding
from transduce.model_selection.estimator_kinds import name_members
from transduce.model_selection.fit_and_predict import fit_and_predict
from transduce.model_selection.methods import (
    MEMBERS,
    METHODS,
    MOST_EXACT,
    REGISTRY,
    Case,
    default_members,
)
from transduce.model_selection.problem import Problem

FIXED = {"width": 1.5, "ridge": 0.1}


def numbers(n=40, unlabelled=15, seed=0):
    """Rows, labels with holes, and the truth."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    truth = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)
    y = truth.copy()
    y[rng.choice(n, unlabelled, replace=False)] = np.nan
    return X, y, truth


def classes(names=("no", "yes"), n=40, unlabelled=12, seed=0):
    """Rows, labels with holes, and the truth."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % len(names)
    X = rng.normal(size=(n, 3)) + 1.5 * codes[:, None]
    truth = np.array(names, dtype=object)[codes]
    y = truth.copy()
    y[rng.choice(n, unlabelled, replace=False)] = None
    return X, y, truth


def pairs(fold):
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in np.unique(fold)]


# --------------------------------------------------------------------------------------------------- exact


def test_a_transducer_sees_all_rows_and_no_hidden_label():
    X, y, _ = numbers()
    unlabelled = np.isnan(y)
    fold = np.arange((~unlabelled).sum()) % 4
    found = cross_val_transduce(TransductiveRidge(**FIXED), X, y, cv=pairs(fold))
    by_hand = brute.hidden_answers(TransductiveRidge(**FIXED), X, y, fold, unlabelled)
    np.testing.assert_allclose(found.answers.values, by_hand, rtol=1e-12)
    errors = by_hand - y[~unlabelled]
    rmse = [np.sqrt(np.mean(errors[fold == k] ** 2)) for k in range(4)]
    np.testing.assert_allclose(found.scores, -np.array(rmse))
    np.testing.assert_array_equal(found.answers.rows, np.flatnonzero(~unlabelled))
    assert found.task == "regression"


def test_classes_and_their_probabilities():
    X, y, _ = classes(("a", "b", "c"))
    unlabelled = pd.isna(y)
    fold = np.arange((~unlabelled).sum()) % 4
    model = TransductiveRidgeClassifier(**FIXED)
    found = cross_val_transduce(model, X, y, cv=pairs(fold))
    by_hand = brute.hidden_answers(model, X, y, fold, unlabelled)
    np.testing.assert_array_equal(found.answers.values, by_hand)
    truth = y[~unlabelled].astype(str)
    np.testing.assert_allclose(
        found.scores, [np.mean((by_hand == truth)[fold == k]) for k in range(4)]
    )
    for k, loss in enumerate(-found.folds["neg_log_loss"]):
        shares = found.answers.probabilities[fold == k]
        np.testing.assert_allclose(loss, log_loss(truth[fold == k], shares, labels=["a", "b", "c"]))


def test_a_plain_estimator_is_scored_as_scikit_learn_does():
    """Hidden rows' features are of no use to it, so that the scores are those of cross_val_score."""
    X, y, _ = numbers()
    seen = ~np.isnan(y)
    folds = KFold(5, shuffle=True, random_state=1)
    for scoring in ("neg_root_mean_squared_error", "r2"):
        found = cross_val_transduce(
            make_pipeline(StandardScaler(), Ridge()), X, y, cv=folds, scoring=scoring
        )
        expected = cross_val_score(
            make_pipeline(StandardScaler(), Ridge()), X[seen], y[seen], cv=folds, scoring=scoring
        )
        np.testing.assert_allclose(found.scores, expected)
    X, y, _ = classes()
    seen = ~pd.isna(y)
    for scoring in ("accuracy", "roc_auc", "neg_log_loss"):
        found = cross_val_transduce(LogisticRegression(), X, y, cv=folds, scoring=scoring)
        expected = cross_val_score(
            LogisticRegression(), X[seen], y[seen].astype(str), cv=folds, scoring=scoring
        )
        np.testing.assert_allclose(found.scores, expected)


def test_scores_without_probabilities_serve_a_ranking():
    X, y, _ = classes()
    seen = ~pd.isna(y)
    folds = KFold(4, shuffle=True, random_state=1)
    found = cross_val_transduce(SVC(), X, y, cv=folds, scoring="roc_auc")
    expected = cross_val_score(SVC(), X[seen], y[seen].astype(str), cv=folds, scoring="roc_auc")
    np.testing.assert_allclose(found.scores, expected)


def test_search_finds_what_cross_validation_finds():
    X, y, _ = numbers()
    folds = KFold(4, shuffle=True, random_state=0)
    grid = {"width": [0.3, 1.0, 3.0], "tether": [0.1, np.inf]}
    search = TransductiveSearchCV(TransductiveRidge(ridge=0.1), grid, cv=folds).fit(X, y)
    means = [
        cross_val_transduce(TransductiveRidge(ridge=0.1, **params), X, y, cv=folds).scores.mean()
        for params in search.cv_results_["params"]
    ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], means)
    assert search.best_index_ == int(np.argmax(means))
    assert search.best_score_ == max(means)
    best = TransductiveRidge(ridge=0.1, **search.best_params_).fit(X, y)
    np.testing.assert_allclose(search.transduction_, best.transduction_)
    np.testing.assert_allclose(search.predict(X), best.predict(X))
    assert search.score(X, y) == best.score(X, y)


def test_results_have_the_keys_of_scikit_learn():
    """For one score and for several, and the same numbers for an estimator that does not transduce."""
    X, y, truth = numbers(unlabelled=0)
    folds = KFold(3)
    for scoring, refit in (("r2", True), (["r2", "neg_mean_absolute_error"], "r2")):
        ours = TransductiveSearchCV(
            Ridge(),
            [{"alpha": [0.1, 1.0]}, {"fit_intercept": [False]}],
            cv=folds,
            scoring=scoring,
            refit=refit,
        ).fit(X, y)
        theirs = GridSearchCV(
            Ridge(),
            [{"alpha": [0.1, 1.0]}, {"fit_intercept": [False]}],
            cv=folds,
            scoring=scoring,
            refit=refit,
        ).fit(X, truth)
        assert set(ours.cv_results_) == set(theirs.cv_results_)
        for key, expected in theirs.cv_results_.items():
            if "time" not in key and key != "params":
                np.testing.assert_array_equal(
                    np.ma.getmaskarray(ours.cv_results_[key]), np.ma.getmaskarray(expected)
                )
                np.testing.assert_allclose(
                    np.ma.filled(ours.cv_results_[key], 0).astype(float),
                    np.ma.filled(expected, 0).astype(float),
                )
        assert ours.cv_results_["params"] == theirs.cv_results_["params"]
        assert ours.best_params_ == theirs.best_params_
        assert ours.score(X, truth) == theirs.score(X, truth)


def test_every_rows_features_help():
    """Where the rows' distribution matters, hiding labels alone judges transductive ridge better than hiding rows."""
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-np.pi / 2, np.pi / 2, size=(320, 32))
        y = np.tanh(X @ rng.normal(size=32) / np.sqrt(32)) + 0.3 * rng.normal(size=320)
        y[64:] = np.nan
        model = TransductiveRidge(width=np.exp(2.75), ridge=0.1)
        folds = KFold(5, shuffle=True, random_state=seed)
        ours = cross_val_transduce(model, X, y, cv=folds).scores.mean()
        theirs = cross_val_score(
            model, X[:64], y[:64], cv=folds, scoring="neg_root_mean_squared_error"
        ).mean()
        ratios.append(ours / theirs)
    assert max(ratios) < 1.0
    assert np.mean(ratios) < 0.9


# ----------------------------------------------------------------------------------------------------- laws


@given(
    st.lists(st.integers(0, 4), min_size=2, max_size=40), st.integers(2, 8), st.integers(0, 1000)
)
def test_folds_spread_every_class(codes, n_folds, seed):
    """Sizes differ by one at most; a class is in as many folds as it can be, and lost only if it has one label."""
    codes = np.array(codes)
    n_folds = min(n_folds, len(codes))
    fold = random_folds(codes, n_folds, np.random.RandomState(seed))
    assert np.ptp(np.bincount(fold, minlength=n_folds)) <= 1
    for code in np.unique(codes):
        counts = np.bincount(fold[codes == code], minlength=n_folds)
        assert np.ptp(counts) <= 1


def test_same_seed_same_folds_in_any_order_of_asked_rows():
    X, y, _ = numbers()
    one, two = (
        cross_val_transduce(TransductiveRidge(**FIXED), X, y, random_state=3) for _ in range(2)
    )
    np.testing.assert_array_equal(one.scores, two.scores)
    unlabelled = np.flatnonzero(np.isnan(y))
    moved = np.arange(len(y))
    moved[unlabelled] = unlabelled[::-1]
    other = cross_val_transduce(TransductiveRidge(**FIXED), X[moved], y[moved], random_state=3)
    np.testing.assert_allclose(other.scores, one.scores)


@pytest.mark.parametrize("names", [("no", "perhaps", "yes"), (5, 7, 9)])
def test_transducers_of_scikit_learn_see_all_rows(names):
    """Theirs want -1 where a label is missing; classes of any type go in and come out."""
    X, y, _ = classes(names, n=60, unlabelled=20)
    unlabelled = pd.isna(y)
    fold = np.arange((~unlabelled).sum()) % 4
    found = cross_val_transduce(LabelSpreading(kernel="knn", n_neighbors=5), X, y, cv=pairs(fold))
    labelled, sorted_names = np.flatnonzero(~unlabelled), sorted(names)
    for k in range(4):
        codes = np.full(len(y), -1)
        shown = labelled[fold != k]
        codes[shown] = [sorted_names.index(label) for label in y[shown]]
        model = LabelSpreading(kernel="knn", n_neighbors=5).fit(X, codes)
        hidden = labelled[fold == k]
        expected = [sorted_names[code] for code in model.transduction_[hidden]]
        assert found.answers.values[fold == k].tolist() == expected
        np.testing.assert_allclose(
            found.answers.probabilities[fold == k], model.label_distributions_[hidden]
        )


def test_a_row_that_no_label_reaches_has_no_answer():
    """Label spreading calls such a row the first class; here it counts as not answered."""
    X = np.concatenate([np.linspace(0, 1, 12), np.linspace(50, 51, 4)])[:, None]
    y = np.array(["b", "a"] * 6 + [None] * 4, dtype=object)
    problem = Problem.of(X, read_sample(TransductiveRidge(), X, y), "classification")
    reply = fit_and_predict(
        LabelSpreading(kernel="knn", n_neighbors=3), problem, np.arange(12), np.arange(12, 16)
    )
    assert not reply.given.any()


def test_self_training_answers_where_it_never_dared_to():
    X, y, _ = classes(n=60, unlabelled=20)
    model = SelfTrainingClassifier(LogisticRegression(), threshold=0.9999)
    found = cross_val_transduce(model, X, y, random_state=0)
    assert set(found.answers.values) == {"no", "yes"}
    blend = TransductiveBlend([model, LabelSpreading()], random_state=0).fit(X, y)
    np.testing.assert_array_equal(blend.classes_, ["no", "yes"])
    assert set(blend.predict(X)) == {"no", "yes"}
    np.testing.assert_allclose(blend.predict_proba(X).sum(axis=1), 1.0)


def test_a_job_can_be_sent_to_another_process():
    """What joblib sends and gets back keeps its meaning as bytes; tests/slow starts the processes."""
    X, y, _ = numbers()
    problem = Problem.of(X, read_sample(TransductiveRidge(), X, y), "regression")
    job = (TransductiveRidge(**FIXED), problem, np.arange(5, 25), np.arange(5))
    here = _folding._try(*job)
    there = pickle.loads(pickle.dumps(_folding._try(*pickle.loads(pickle.dumps(job)))))
    np.testing.assert_array_equal(there.values, here.values)


@pytest.mark.parametrize(
    "names", [("no", "yes"), (3, 7), (True, False), (1.0, 2.0), ("größer", "kleiner")]
)
def test_containers_and_types_come_back(names):
    X, y, _ = classes(names)
    labels = ["" if label is None else label for label in y]
    frame = pd.DataFrame(X, columns=["a", "b", "ü"], index=[f"row {i}" for i in range(len(X))])
    column = pd.Series(y, index=frame.index, name="label")
    found = cross_val_transduce(TransductiveRidgeClassifier(**FIXED), frame, column, random_state=0)
    assert found.answers.to_frame().index.equals(column.index[column.notna()])
    assert set(found.answers.values.tolist()) <= set(names)
    polar = pl.DataFrame(X, schema=["a", "b", "ü"])
    other = cross_val_transduce(
        TransductiveRidgeClassifier(**FIXED), polar, pl.Series("label", y.tolist()), random_state=0
    )
    np.testing.assert_array_equal(other.scores, found.scores)
    if isinstance(names[0], str):
        marked = cross_val_transduce(
            TransductiveRidgeClassifier(**FIXED), X, labels, missing_label="", random_state=0
        )
        np.testing.assert_array_equal(marked.scores, found.scores)
        own = TransductiveRidgeClassifier(**FIXED, missing_label="")
        np.testing.assert_array_equal(
            cross_val_transduce(own, X, labels, random_state=0).scores, found.scores
        )


def test_search_keeps_index_and_name():
    X, y, _ = numbers()
    index = [f"r{i}" for i in range(len(y))]
    search = TransductiveSearchCV(TransductiveRidge(**FIXED), {"width": [1.0, 2.0]}, random_state=0)
    search.fit(pd.DataFrame(X), pd.Series(y, index=pd.Index(index), name="goal"))
    assert search.transduction_.index.tolist() == index
    assert search.transduction_.name == "goal"
    assert search.answer_.to_frame().index.tolist() == [
        f"r{i}" for i in np.flatnonzero(np.isnan(y))
    ]
    search.fit(pl.DataFrame(X), pl.Series("goal", y))
    assert search.transduction_.name == "goal"
    assert search.transduction_.null_count() == 0


def test_nested_names_and_plain_estimators_in_a_search():
    X, y, _ = classes()
    search = TransductiveSearchCV(
        make_pipeline(StandardScaler(), TransductiveRidgeClassifier()),
        {"transductiveridgeclassifier__ridge": [0.1, 1.0]},
        random_state=0,
    ).fit(X, y)
    assert set(search.transduction_) == {"no", "yes"}
    inner = TransductiveSearchCV(
        TransductiveRidgeClassifier(width=1.0), {"ridge": [0.1]}, random_state=0
    )
    outer = TransductiveSearchCV(inner, {"estimator__width": [1.0, 2.0]}, cv=3, random_state=0).fit(
        X, y
    )
    assert set(outer.best_params_) == {"estimator__width"}
    np.testing.assert_array_equal(outer.classes_, ["no", "yes"])
    plain = TransductiveSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, random_state=0).fit(X, y)
    unlabelled = pd.isna(y)
    expected = LogisticRegression(**plain.best_params_).fit(
        X[~unlabelled], y[~unlabelled].astype(str)
    )
    np.testing.assert_array_equal(plain.answer_.values, expected.predict(X[unlabelled]))
    np.testing.assert_allclose(plain.answer_.probabilities, expected.predict_proba(X[unlabelled]))
    np.testing.assert_allclose(plain.predict_proba(X), expected.predict_proba(X))
    np.testing.assert_allclose(plain.decision_function(X), expected.decision_function(X))


def test_rows_hidden_twice_get_the_mean():
    X, y, _ = numbers(n=20, unlabelled=0)
    folds = RepeatedKFold(n_splits=4, n_repeats=2, random_state=0)
    found = cross_val_transduce(Ridge(), X, y, cv=folds)
    assert len(found.scores) == 8
    values = np.zeros(20)
    for train, test in folds.split(X):
        values[test] += Ridge().fit(X[train], y[train]).predict(X[test]) / 2
    np.testing.assert_allclose(found.answers.values, values)
    X, y, _ = classes(n=20, unlabelled=0)
    for model in (LogisticRegression(), RidgeClassifier()):
        found = cross_val_transduce(model, X, y, cv=folds)
        assert len(found.answers) == 20
        assert (found.answers.probabilities is None) == (not hasattr(model, "predict_proba"))


def test_groups_go_to_the_splitter():
    X, y, _ = numbers()
    groups = np.arange(len(y)) // 5
    found = cross_val_transduce(Ridge(), X, y, cv=GroupKFold(3), groups=groups)
    seen = ~np.isnan(y)
    expected = cross_val_score(
        Ridge(),
        X[seen],
        y[seen],
        cv=GroupKFold(3),
        groups=groups[seen],
        scoring="neg_root_mean_squared_error",
    )
    np.testing.assert_allclose(found.scores, expected)


def test_the_choice_is_the_best_of_the_table():
    X, y, _ = numbers()
    choice = choose_method(
        X, y, {"mean": DummyRegressor(), "breaks": Breaks()}, cv=3, random_state=0
    )
    assert choice.best == choice.table["score"].idxmax() == choice.table.index[0]
    assert choice.table.loc[choice.best, "rank"] == 1
    assert choice.failures == {"breaks": "Fold 1 of 3 failed: no luck"}
    assert np.isnan(choice.table.loc["breaks", "score"])
    assert choice.table.index[-1] == "breaks"
    assert choice.table.index[-2] == "mean"
    assert not hasattr(choice.estimator, "answer_")
    text = str(choice)
    assert "no luck" in text
    assert f"{choice.best} has the best score; its lead over" in text
    assert ("is within chance." in text) != ("is more than two standard errors." in text)
    for name, found in choice.details.items():
        assert found.scores.mean() == choice.table.loc[name, "score"]


@pytest.mark.slow
def test_the_same_seed_makes_the_same_choice():
    X, y, _ = numbers()
    first, again = (
        choose_method(X, y, {"mean": DummyRegressor()}, cv=3, random_state=0) for _ in range(2)
    )
    pd.testing.assert_series_equal(again.table["score"], first.table["score"])


def test_the_choice_for_classes():
    X, y, _ = classes(n=30, unlabelled=10)
    choice = choose_method(X, y, [DummyClassifier()], cv=2, random_state=0)
    assert choice.task == "classification"
    assert {
        "transductive_ridge",
        "bayesian_transduction",
        "confidence_machine",
        "random_forest",
    } <= set(choice.table.index)
    assert "DummyClassifier" in choice.table.index
    assert "only method" in str(choice) or "has the best score" in str(choice)


# --------------------------------------------------------------------------------------------------- limits


def test_a_class_with_one_label_is_lost_and_said_to_be():
    X, y, _ = classes(("a", "b"), n=21, unlabelled=0)
    y[0] = "rare"
    with pytest.warns(UserWarning, match=r"'rare' in fold \d"):
        found = cross_val_transduce(LogisticRegression(), X, y, random_state=0)
    assert found.answers.values[0] != "rare"
    assert found.answers.probabilities[0].tolist()[2] == 0.0
    np.testing.assert_allclose(found.answers.probabilities.sum(axis=1), 1.0)
    assert np.isfinite(found.folds["neg_log_loss"]).all()


def test_one_class_left_is_the_answer():
    X = np.arange(4.0)[:, None]
    with pytest.warns(UserWarning, match="hidden at once"):
        found = cross_val_transduce(TransductiveRidgeClassifier(), X, ["a", "a", "a", "b"], cv=4)
    np.testing.assert_array_equal(found.answers.values[3], "a")
    assert found.scores.mean() <= 0.75


def test_fewer_labels_than_folds_and_no_asked_row():
    X, y, _ = numbers(n=3, unlabelled=0)
    assert len(cross_val_transduce(Ridge(), X, y, cv=10).scores) == 3
    search = TransductiveSearchCV(TransductiveRidge(**FIXED), {"width": [1.0]}).fit(X, y)
    assert len(search.answer_) == 0
    np.testing.assert_array_equal(search.transduction_, y)
    for model, grid in ((Ridge(), {"alpha": [1.0]}), (LogisticRegression(), {"C": [1.0]})):
        labels = y if isinstance(model, Ridge) else ["a", "b", "b"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search = TransductiveSearchCV(model, grid).fit(X, labels)
        np.testing.assert_array_equal(search.transduction_, np.array(labels))


def test_rows_that_are_never_hidden_have_no_answer():
    X, y, _ = classes((1, 2), n=12, unlabelled=0)
    column = pd.Series(y.astype(int))
    found = cross_val_transduce(
        LogisticRegression(), X, column, cv=[(np.arange(6), np.arange(6, 9))]
    )
    assert found.answers.rows.tolist() == [6, 7, 8]
    mask = np.arange(12) < 6
    other = cross_val_transduce(LogisticRegression(), X, column, cv=[(mask, ~mask)])
    assert other.answers.rows.tolist() == [6, 7, 8, 9, 10, 11]


class Gaps(RegressorMixin, BaseEstimator):
    """Has no answer at rows with a negative feature."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return np.where(X[:, 0] < 0, np.nan, 1.0)


class Breaks(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        raise RuntimeError("no luck\nat all")

    def predict(self, X):
        raise NotImplementedError


class Foreign(ClassifierMixin, BaseEstimator):
    """A transducer of another make: all rows at once, completed labels, and nothing else."""

    def __init__(self, missing_label=None):
        self.missing_label = missing_label

    def fit(self, X, y):
        self.classes_ = np.unique(y[[label is not None for label in y]].astype(str))
        self.transduction_ = np.array(["a" if x < 0 else "b" for x in X[:, 0]], dtype=object)
        self.transduction_[0] = None
        return self


def test_where_there_is_no_answer_the_mean_stands_in():
    X = np.array([[1.0], [-1.0], [1.0], [1.0]])
    with pytest.warns(UserWarning, match="1 hidden label got no answer"):
        found = cross_val_transduce(Gaps(), X, [1.0, 7.0, 3.0, 5.0], cv=[([0, 2], [1, 3])])
    np.testing.assert_array_equal(found.answers.values, [2.0, 1.0])
    assert found.answers.status.tolist() == ["unreached", "answered"]
    X = np.array([[-1.0], [-2.0], [1.0], [2.0]])
    with pytest.warns(UserWarning, match="1 hidden label got no answer"):
        found = cross_val_transduce(Foreign(), X, list("aabb"), cv=[([1, 2], [0, 3])])
    assert found.answers.values.tolist() == ["a", "b"]


def test_text_and_sparse_features_are_the_estimators_business():
    words = ["good day", "bad night", "good night", "bad day", "good", "bad"]
    y = ["+", "-", "+", "-", "+", "-"]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    table = pd.Series(words)
    found = cross_val_transduce(model, words, y, cv=3, random_state=0)
    assert found.scores.mean() == 1.0
    series = cross_val_transduce(model, table, y, cv=3, random_state=0)
    np.testing.assert_array_equal(series.scores, found.scores)
    with pytest.raises(ValueError, match="Reshape your data"):
        cross_val_transduce(LogisticRegression(), np.arange(6.0), y, cv=3)
    X, y, _ = classes()
    for convert in (scipy.sparse.csr_array, scipy.sparse.coo_array):
        found = cross_val_transduce(LogisticRegression(), convert(X), y, random_state=0)
        dense = cross_val_transduce(LogisticRegression(), X, y, random_state=0)
        np.testing.assert_allclose(found.scores, dense.scores)


def test_a_precomputed_kernel_is_cut_both_ways():
    X, y, _ = classes()
    K = X @ X.T
    fold = np.arange(np.sum(pd.notna(y))) % 5
    folds = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(5)]
    one = cross_val_transduce(SVC(kernel="precomputed"), K, y, cv=folds)
    other = cross_val_transduce(SVC(kernel="linear"), X, y, cv=folds)
    np.testing.assert_array_equal(one.answers.values, other.answers.values)


def test_members_suit_the_table():
    assert default_members(Case("regression", 2000, 10))[0]["transductive_ridge"].centres == 500
    members, left_out = default_members(Case("classification", 3000, 2000), compare=True)
    assert set(left_out) == {"bayesian_transduction"}
    assert "confidence_machine" in members
    assert "confidence_machine" not in default_members(Case("classification", 30, 20))[0]
    assert "spectral_graph" in members
    left_out = default_members(Case("classification", 30_000, 100), compare=True)[1]
    assert left_out == {"spectral_graph": "30,000 rows are more than 20,000"}


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (["a", "b", "a"], "classification"),
        ([True, False, True], "classification"),
        ([0, 1, 1], "classification"),
        ([0.0, 1.0, np.nan, 1.0], "classification"),
        ([-1, 1, 1], "classification"),
        ([0, 1, 2, 2, 1, 0], "regression"),
        (pd.Series([1, 2, 2], dtype="category"), "classification"),
        ([0.5, 1.0, 1.0], "regression"),
        (list(range(20)), "regression"),
        ([5, 5, 5], "regression"),
        ([1, 2, 3], "regression"),
    ],
)
def test_the_task_is_guessed_from_the_labels(y, task):
    rows = np.arange(len(y), dtype=float)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cross_val_transduce(Anything(), rows, y, cv=2, random_state=0)
    assert found.task == task


class Anything(BaseEstimator):
    """Neither a regressor nor a classifier by its tags."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.value = y[0]
        return self

    def predict(self, X):
        return np.full(len(X), self.value)


def test_scorers_of_every_kind():
    X, y, _ = numbers()
    several = cross_val_transduce(
        Ridge(), X, y, scoring={"mine": lambda model, X, y: X.shape[1], "r2": "r2"}, random_state=0
    )
    np.testing.assert_array_equal(several.scores, 3.0)
    assert several.folds.columns[:2].tolist() == ["mine", "r2"]
    own = cross_val_transduce(
        Ridge(), X, y, scoring=lambda model, X, y: model.score(X, y), random_state=0
    )
    np.testing.assert_array_equal(
        own.scores, cross_val_transduce(Ridge(), X, y, scoring="r2", random_state=0).scores
    )
    one = cross_val_transduce(
        Ridge(), X, y, scoring=make_scorer(mean_absolute_error), random_state=0
    )
    two = cross_val_transduce(Ridge(), X, y, scoring=["neg_mean_absolute_error"], random_state=0)
    np.testing.assert_allclose(one.scores, -two.scores)
    assert "mean_absolute_error" in str(one)


def test_warnings_of_the_estimator_come_once():
    X, y, _ = numbers()
    with pytest.warns(UserWarning, match="every region is the whole line") as caught:
        cross_val_transduce(RidgeConfidenceMachine(confidence=0.999), X, y, random_state=0)
    assert len(caught) <= 2


def test_refit_by_name_by_function_and_not_at_all():
    X, y, _ = numbers()
    grid = {"width": [1.0, 2.0]}
    none = TransductiveSearchCV(
        TransductiveRidge(ridge=0.1), grid, refit=False, random_state=0
    ).fit(X, y)
    assert none.best_index_ in (0, 1)
    assert not hasattr(none, "transduction_")
    with pytest.raises(AttributeError, match="refit=False"):
        none.predict(X)
    both = ["r2", "neg_mean_absolute_error"]
    none = TransductiveSearchCV(
        TransductiveRidge(ridge=0.1), grid, refit=False, scoring=both, random_state=0
    )
    assert not hasattr(none.fit(X, y), "best_index_")
    second = TransductiveSearchCV(
        TransductiveRidge(ridge=0.1), grid, refit=lambda results: 1, random_state=0
    )
    assert second.fit(X, y).best_params_ == {"width": 2.0}
    second.set_params(scoring=both).fit(X, y)
    assert not hasattr(second, "best_score_")
    named = TransductiveSearchCV(
        TransductiveRidge(ridge=0.1), grid, refit="r2", scoring=both, random_state=0
    )
    assert named.fit(X, y).score(X, y) <= 1.0


def test_settings_that_fail_rank_last():
    X, y, _ = numbers()
    search = TransductiveSearchCV(
        TransductiveRidge(ridge=0.1), {"width": [1.0, -1.0, 2.0]}, random_state=0
    )
    with pytest.warns(FitFailedWarning, match=r"'width': -1.0.*positive"):
        search.fit(X, y)
    assert search.cv_results_["rank_test_score"][1] == 3
    assert np.isnan(search.cv_results_["mean_test_score"][1])
    assert search.best_index_ != 1


# ------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cv": 1}, "cv must be a whole number from 2 on"),
        ({"cv": "five"}, "cv must be a number of folds"),
        ({"cv": []}, "holds no fold"),
        ({"cv": [1, 2]}, "must hold pairs"),
        ({"cv": [([0], [99])]}, "positions among the 25 labelled rows"),
        ({"cv": [([0], [])]}, "at least one visible and one hidden"),
        ({"cv": [([0, 1], [1, 2])]}, "both visible and hidden"),
        ({"scoring": "best"}, "scoring must be the name of a score.*got 'best'"),
        ({"scoring": mean_absolute_error}, "make_scorer"),
        ({"scoring": 3}, "scoring must be the name"),
        ({"scoring": {"mine": None}}, "scoring must be the name"),
        ({"scoring": []}, "scoring is empty"),
        ({"scoring": "r2", "cv": 25}, "The score 'r2' is nan with 1 hidden label: use fewer folds"),
        ({"scoring": "roc_auc"}, "cannot be computed|needs more"),
        ({"n_jobs": 0}, "n_jobs must be None"),
    ],
)
def test_wrong_settings(settings, message):
    X, y, _ = numbers()
    with pytest.raises(ValueError, match=message):
        cross_val_transduce(Ridge(), X, y, **settings)


def test_scores_that_need_probabilities():
    X, y, _ = classes()
    with pytest.raises(ValueError, match="needs more than the answers have, such as probabilities"):
        cross_val_transduce(RidgeClassifier(), X, y, scoring="neg_log_loss")
    X, y, _ = classes(("a", "b", "c"))
    found = cross_val_transduce(RidgeConfidenceClassifier(), X, y, random_state=0)
    assert found.answers.probabilities is None


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (Ridge, r"is the class Ridge: give an instance of it, Ridge\(\)"),
        ("ridge", "must be an estimator with fit and predict"),
        (StandardScaler(), "cannot predict"),
    ],
)
def test_not_an_estimator(estimator, message):
    X, y, _ = numbers()
    with pytest.raises(ValueError, match=message):
        cross_val_transduce(estimator, X, y)
    with pytest.raises(ValueError, match=message):
        TransductiveSearchCV(estimator, {"alpha": [1.0]}).fit(X, y)
    with pytest.raises(ValueError, match=message):
        choose_method(X, y, [estimator])


def test_labels_that_will_not_do():
    X, y, _ = numbers()
    with pytest.raises(ValueError, match="No row has a label"):
        cross_val_transduce(Ridge(), X, np.full(len(y), np.nan))
    with pytest.raises(ValueError, match="Only one sample has a label"):
        cross_val_transduce(Ridge(), X, np.where(np.arange(len(y)) == 0, 1.0, np.nan))
    with pytest.raises(ValueError, match="y is None"):
        cross_val_transduce(Ridge(), X, None)
    with pytest.raises(ValueError, match="one class only"):
        cross_val_transduce(LogisticRegression(), X, ["a"] * len(y))
    with pytest.raises(ValueError, match="40 rows but y has 39 labels"):
        cross_val_transduce(Ridge(), X, y[1:])
    with pytest.raises(ValueError, match="Regression needs labels that are numbers"):
        cross_val_transduce(Ridge(), X, ["a", "b"] * 20)
    with pytest.raises(ValueError, match="Complex"):
        cross_val_transduce(Anything(), X, y + 1j)
    with pytest.raises(ValueError, match="labels of ordinary size"):
        cross_val_transduce(DummyRegressor(), X, np.where(np.arange(40) % 2, 1e299, -1e299))
    with pytest.raises(ValueError, match="too small for their squares"):
        cross_val_transduce(Ridge(), X, y * 1e-200)
    with pytest.raises(ValueError, match="lazy frame"):
        cross_val_transduce(Ridge(), pl.LazyFrame(X), y)
    with pytest.raises(
        ValueError, match=r"Fold 1 of 5 failed: X must be numbers.*column '\S+' holds text"
    ):
        cross_val_transduce(TransductiveRidge(), pd.DataFrame({"größe": ["a"] * 40}), y)


class TwoColumns(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros((len(X), 2))


def test_failures_are_told_with_their_fold():
    X, y, _ = numbers()
    with pytest.raises(ValueError, match="Fold 1 of 5 failed: no luck"):
        cross_val_transduce(Breaks(), X, y)
    with pytest.raises(ValueError, match="The fold failed: It answers with 2 columns"):
        cross_val_transduce(TwoColumns(), X, y, cv=[([0, 1], [2])])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"param_grid": 3}, "Parameter grid should be a dict or a list"),
        ({"param_grid": {"width": 1.0}}, "Parameter grid for parameter 'width' needs to be a list"),
        (
            {"param_grid": {"breadth": [1.0]}},
            "(?s)Invalid parameter 'breadth' for estimator .*centres",
        ),
        (
            {"refit": "yes", "scoring": ["r2"]},
            "refit must be set to a scorer key.*'yes' was passed",
        ),
        ({"refit": 3}, "refit must be True, False or a function"),
        ({"refit": lambda results: 7}, "best_index_ index out of range"),
        (
            {"param_grid": {"width": [-1.0, 0.0]}},
            "Every choice of settings failed. Fold 1 of 5 failed: width",
        ),
    ],
)
def test_wrong_settings_of_a_search(settings, message):
    X, y, _ = numbers()
    search = TransductiveSearchCV(TransductiveRidge(ridge=0.1), {"width": [1.0]}).set_params(
        **settings
    )
    with pytest.raises((IndexError, TypeError, ValueError), match=message):
        search.fit(X, y)
    with pytest.raises(NotFittedError):
        search.predict(X)


def test_a_failed_search_leaves_nothing_behind():
    X, y, _ = numbers()
    search = TransductiveSearchCV(
        TransductiveRidge(ridge=0.1), {"width": [1.0]}, random_state=0
    ).fit(X, y)
    with pytest.raises(ValueError, match="requires y"):
        search.fit(X, None)
    for name in (
        "best_estimator_",
        "transduction_",
        "answer_",
        "n_features_in_",
        "feature_names_in_",
    ):
        assert not hasattr(search, name)


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        (Ridge(), "candidates must be a dict"),
        ({}, "candidates is empty"),
        ([("a", Ridge()), ("a", Ridge())], "each once; got 'a'"),
        ({3: Ridge()}, "names must be text"),
    ],
)
def test_wrong_candidates(candidates, message):
    X, y, _ = numbers()
    with pytest.raises(ValueError, match=message):
        choose_method(X, y, candidates)


def test_a_choice_that_cannot_be_made():
    X, y, _ = numbers()
    with pytest.raises(ValueError, match=r"Every method failed\. transductive_ridge: Fold 1 of 5"):
        choose_method(np.full((len(X), 1), "a"), y)
    with pytest.raises(ValueError, match="one score to choose by"):
        choose_method(X, y, scoring=["r2", "neg_mean_absolute_error"])
    with pytest.raises(ValueError, match="task must be one of"):
        choose_method(X, y, task="both")


def test_names_of_members():
    assert list(name_members("x", (Ridge(), Ridge()))) == ["Ridge", "Ridge-2"]


def test_every_system_can_be_crossed():
    """Also with three classes, numbers as labels, and the unlabelled rows of a real table."""
    X, truth = load_iris(return_X_y=True)
    y = np.where(np.arange(150) % 4 == 0, truth, np.nan)
    for model in (
        BayesianTransducer(softness=0.5, tolerance=0.1, random_state=0),
        RidgeConfidenceClassifier(),
        TransductiveRidgeClassifier(),
    ):
        found = cross_val_transduce(model, X, y, cv=3, random_state=0)
        assert found.scores.mean() > 0.8
        np.testing.assert_array_equal(found.answers.rows, np.flatnonzero(~np.isnan(y)))


def test_what_a_score_warns_of_is_passed_on():
    X, y, _ = classes(n=12, unlabelled=0)
    with pytest.warns(UndefinedMetricWarning, match="Precision"):
        cross_val_transduce(
            DummyClassifier(strategy="constant", constant="no"),
            X,
            y,
            scoring="precision_macro",
            cv=3,
            random_state=0,
        )
    with pytest.raises(ValueError, match="The score 'odd' cannot be computed: no number"):
        cross_val_transduce(
            DummyClassifier(), X, y, scoring={"odd": lambda *_: _raise(TypeError("no number"))}
        )


def _raise(error):
    raise error


def test_one_method_left_is_the_choice():
    _, y, _ = numbers()
    only = choose_method(np.full((40, 1), "a"), y, {"mean": DummyRegressor()}, cv=2, random_state=0)
    assert only.best == "mean"
    case = Case("regression", 40, int(np.isfinite(y).sum()))
    assert set(only.failures) == set(default_members(case, compare=True)[0])
    assert "mean is the only method that has a score" in str(only)


def test_the_page_runs(monkeypatch):
    """The Python blocks of the docs' page run as they stand, with smaller forests."""
    monkeypatch.setattr("transduce.model_selection.methods.TREES", 10)
    page = (Path(__file__).parents[2] / "docs" / "model_selection.md").read_text()
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(compile(block, "model_selection.md", "exec"), names)
    assert len(names["model"].weights_) > 1
    assert sum(names["model"].weights_) == pytest.approx(1.0)


def test_trees_suit_the_number_of_labels():
    few, many = (default_members(Case("classification", 300, labels))[0] for labels in (29, 30))
    assert few["random_forest"].min_samples_leaf == 1
    assert many["random_forest"].min_samples_leaf == 3
    assert few["extra_trees"].max_features == many["extra_trees"].max_features == 0.5
    assert few["logistic_regression"][-1].C == 0.3
    assert many["logistic_regression"][-1].C == 1.0
    for task in ("regression", "classification"):
        assert "boosted_trees" not in default_members(Case(task, 9000, 199))[0]
        assert "boosted_trees" in default_members(Case(task, 9000, 200))[0]
    for n_labels, trees in (
        (199, "random_forest"),
        (200, "extra_trees"),
    ):  # of numbers either, of classes both
        found = {"random_forest", "extra_trees"} & set(
            default_members(Case("regression", 9000, n_labels))[0]
        )
        assert found == {trees}
    assert "gaussian_process" in default_members(Case("regression", 200_000, 100_000))[0]


def test_a_method_joins_in_one_place():
    """Comparison, blend, command line and devices are read from the registry, each method under one name."""
    assert len(METHODS) + len(MEMBERS) == sum(
        bool(method.name) + bool(method.member) for method in REGISTRY
    )
    for task in ("regression", "classification"):
        case = Case(task, 300, 600, 5, n_classes=3)
        for method in (method for method in MEMBERS.values() if task in method.tasks):
            assert hasattr(method.make(case), "fit")
            assert set(method.blended) <= set(method.tasks)
            assert (
                0.0
                < method.fit_seconds(case)
                < method.fit_seconds(replace(case, n_rows=3000, n_labels=6000))
            )
            assert 0.0 < method.answer_seconds(case) < 1e-2
        ranges = {
            name: method.blended[task] for name, method in MEMBERS.items() if task in method.blended
        }
        assert set(default_members(case)[0]) == {
            name for name, (_, below) in ranges.items() if below > 600
        }
    for method in METHODS.values():
        assert method.says.endswith(".")
        assert method.paper
        assert method.member or method.name in ("auto", "blend")
    assert TransductiveGPRegressor().max_exact == MOST_EXACT


@pytest.mark.parametrize(
    ("task", "name"), [("regression", "ridge"), ("classification", "logistic_regression")]
)
def test_a_feature_that_hardly_varies_among_the_labels_moves_no_answer_far(task, name):
    """Standardised by the labelled rows alone, it is a million at some of the others."""
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [rng.normal(size=40), np.append(1e-6 * rng.normal(size=30), np.full(10, 3.0))]
    )
    y = X[:, 0] if task == "regression" else X[:, 0] > 0
    model = default_members(Case(task, 40, 30))[0][name].fit(X[:30], y[:30])
    found = model.predict(X[30:]) if task == "regression" else model.decision_function(X[30:])
    assert np.abs(found).max() < 20.0


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_members_take_features_as_they_are_if_told(task):
    """Where one feature is made tiny, answers change without standardising, and stay with it."""
    random = np.random.default_rng(0)
    X = random.normal(size=(90, 3))
    y = (
        X[:, 0] - X[:, 1] + 0.1 * np.sin(3 * X[:, 2])  # no line, which is found on any scale
        if task == "regression"
        else np.where(X[:, 0] > X[:, 1], "a", "b").astype(object)
    )
    small = X * [1e-3, 1.0, 1.0]
    for standardize in (True, False):
        case = Case(task, 90, 60, 3, standardize=standardize, random_state=0)
        for name, method in default_members(case, compare=True)[0].items():
            found = [
                TransductiveBlend({name: method}, weights="equal", task=task, random_state=0).fit(
                    rows, np.where(np.arange(90) < 60, y, None)
                )
                for rows in (X, small)
            ]
            answers = [
                model.answer_.values if task == "regression" else model.answer_.probabilities
                for model in found
            ]
            free = name in ("random_forest", "extra_trees", "boosted_trees", "small_trees")
            same = np.allclose(*answers, atol=1e-3)
            assert same == (standardize or free), (name, standardize)


def test_few_labels_are_no_ground_for_weak_penalties():
    few, some, many = (
        default_members(Case("regression", 300, n_labels, 20))[0] for n_labels in (10, 30, 300)
    )
    assert [members["transductive_ridge"].ridge for members in (few, some, many)] == [
        0.03,
        "loo",
        "loo",
    ]
