"""What wrappers may guarantee of wrapped estimators, and what they must not: found by trying to break them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from transduce import (
    ConformalTransducer,
    RidgeConfidenceMachine,
    SpectralGraphTransducer,
    TransductiveBlend,
    TransductiveRidgeClassifier,
)
from transduce.model_selection import TransductiveSearchCV, cross_val_transduce


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def numbers(n=90, n_labelled=50, seed=0):
    X, truth = load_diabetes(return_X_y=True)
    rows = np.random.default_rng(seed).permutation(len(X))[:n]
    return X[rows], np.where(np.arange(n) < n_labelled, truth[rows], np.nan), truth[rows]


def test_settings_chosen_by_the_labels_take_the_guarantee_away():
    X, y, _ = numbers()
    one = TransductiveSearchCV(RidgeConfidenceMachine(), {"ridge": [1.0]}, cv=3).fit(X, y)
    assert one.answer_.guarantee.kind == "exact"
    two = TransductiveSearchCV(RidgeConfidenceMachine(), {"ridge": [0.1, 1.0]}, cv=3).fit(X, y)
    assert two.answer_.guarantee.kind == "none"


@pytest.mark.parametrize("n", [8, pytest.param(20, marks=pytest.mark.slow)])
def test_asked_rows_of_classes_without_a_label_count_as_outside(n):
    """Many classes, most of them without a visible label: sets hold them, or say that any class is possible."""
    rng = np.random.default_rng(0)
    outside = []
    for seed in range(n):
        centres = rng.normal(size=(150, 4))
        codes = rng.integers(0, 150, size=400)
        X = centres[codes] + 0.1 * rng.normal(size=(400, 4))
        y = np.where(np.arange(400) < 150, codes.astype(float), np.nan)
        model = ConformalTransducer(
            KNeighborsClassifier(5), random_state=seed, test_exchangeability=False, confidence=0.3
        ).fit(X, y)
        assert model.guarantee_.any_class == model.answer_.unseen.any()
        outside.append(np.mean(~model.answer_.contains(codes[150:].astype(float))))
        assert model.guarantee_.kind == "exact"
        high = model.answer_at(0.9)
        assert high.guarantee.kind == "exact"
        assert high.guarantee.any_class
        assert high.label_sets.all()
        assert high.unseen.all()
        assert "a class without a label; the sets say so" in high.guarantee.statement
    assert 0.2 < np.mean(outside) < 0.7 + 3 * 0.5 / np.sqrt(n * 50)


def test_a_blend_of_precomputed_kernels_inside_the_wrapper():
    X, y, _ = numbers()
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 0.02)
    member = KernelRidge(kernel="precomputed", alpha=0.1)
    plain = ConformalTransducer(member, random_state=0, test_exchangeability=False).fit(K, y)
    blend = TransductiveBlend([("a", member)], weights="equal", task="regression")
    mixed = ConformalTransducer(blend, random_state=0, test_exchangeability=False).fit(K, y)
    np.testing.assert_allclose(mixed.answer_.values, plain.answer_.values)
    alone = blend.fit(K, y)
    np.testing.assert_allclose(alone.predict(K[50:]), alone.answer_.values)
    with pytest.raises(ValueError, match="members of one kind"):
        TransductiveBlend([("a", member), ("b", Ridge())]).fit(K, y)


def test_the_task_is_guessed_once():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 11.0  # eleven numbers; some folds see ten
    seen = []

    class Spy(TransductiveBlend):
        def fit(self, X, y):
            seen.append(self.task)
            return super().fit(X, y)

    cross_val_transduce(Spy([("a", Ridge())], weights="equal"), X, y, cv=4, random_state=0)
    assert set(seen) == {"regression"}


def test_a_failed_fit_leaves_no_guarantee_behind():
    X, y, _ = numbers()
    model = ConformalTransducer(Ridge(), random_state=0, test_exchangeability=False).fit(X, y)
    with pytest.raises(ValueError, match="labels"):
        model.fit(X, y[:-1])
    assert not [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda m: ConformalTransducer(m, test_exchangeability=False),
        lambda m: TransductiveBlend([("a", m)]),
    ],
)
def test_the_inner_word_for_no_label_is_understood(wrap):
    X, truth = load_iris(return_X_y=True)
    y = np.where(np.arange(150) % 3 == 0, -1, truth)
    model = wrap(TransductiveRidgeClassifier(missing_label=-1)).fit(X, y)
    assert len(model.answer_) == 50
    known = y >= 0
    assert model.score(X, y) == np.mean(
        model.predict(X[known]) == y[known]
    )  # rows without a label are left out


def test_a_function_for_refit_has_no_score_of_its_own():
    X, y, _ = numbers()
    search = TransductiveSearchCV(
        Ridge(),
        {"alpha": [1.0, 2.0]},
        scoring=["r2", "neg_mean_squared_error"],
        refit=lambda results: 0,
        cv=3,
    ).fit(X, y)
    with pytest.raises(ValueError, match="refit is a function"):
        search.score(X, y)


def test_rows_that_nobody_reaches_stay_missing_in_a_blend():
    X = np.vstack(
        [
            np.random.default_rng(0).normal(size=(30, 2)),
            1e6 + np.random.default_rng(1).normal(size=(10, 2)),
        ]
    )
    y = np.array(["a", "b"] * 15 + [None] * 10, dtype=object)
    y[20:30] = None
    member = SpectralGraphTransducer(n_neighbors=3, metric="euclidean", random_state=0)
    model = TransductiveBlend([("graph", member)], weights="equal").fit(X, y)
    assert (model.answer_.status[-10:] == "unreached").all()
    assert list(model.transduction_[-10:]) == [None] * 10


def test_the_graph_transducer_inside_everything():
    X, truth = load_iris(return_X_y=True)
    y = np.array(["setosa", "versicolor", "virginica"], dtype=object)[truth]
    y[np.random.default_rng(0).permutation(150)[60:]] = None
    graph = make_pipeline(
        StandardScaler(), SpectralGraphTransducer(metric="euclidean", random_state=0)
    )
    model = ConformalTransducer(graph, random_state=0).fit(X, y)
    assert model.guarantee_.kind == "exact"
    found = cross_val_transduce(graph, X, y, cv=5, random_state=0)
    assert np.mean(found.scores) > 0.7
    search = TransductiveSearchCV(
        graph, {"spectralgraphtransducer__n_neighbors": [5, 10]}, cv=3, random_state=0
    )
    assert len(search.fit(X, y).answer_) == 90
