"""Transductive ridge says the same wherever its arrays live."""

from __future__ import annotations

import numpy as np
import pytest

from tests.libraries import ON_PROCESSOR, dispatch, give, same
from transduce import TransductiveRidge, TransductiveRidgeClassifier
from transduce.device import memory
from transduce.methods.ridge import transductive_ridge
from transduce.methods.ridge.completion import DenseSystem


def problem(n=50, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)
    y[rng.permutation(n)[: n // 3]] = np.nan
    return X, y


def both(name, settings, X, y, kind=TransductiveRidge):
    here = kind(**settings).fit(X, y)
    with dispatch():
        return here, kind(**settings).fit(give(X, name), y)


@pytest.mark.few(8)
@pytest.mark.parametrize("name", ON_PROCESSOR)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"tether": "cv", "width": 2.0, "ridge": 0.1},
        {"width": 1.5, "ridge": 1e-6},  # by eigenvectors
        {"kernel": "linear"},
        {"centres": 12, "random_state": 0, "width": 2.0, "ridge": 0.1},
        {"centres": 12, "random_state": 0, "width": 2.0, "ridge": 0.1, "tether": "cv"},
        {"centres": 1000, "ridge": 0.5, "width": 2.0},
        {"tether": np.inf, "width": 2.0, "ridge": 0.1},
    ],
    ids=str,
)
def test_regressor(name, settings):
    X, y = problem()
    here, there = both(name, settings, X, y)
    assert there.width_ is here.width_ is None or there.width_ == pytest.approx(
        here.width_, rel=1e-10
    )
    assert there.ridge_ == pytest.approx(here.ridge_, rel=1e-10)
    assert there.tether_ == here.tether_
    assert there.loo_error_ == pytest.approx(here.loo_error_, rel=1e-8)
    same(there.transduction_, here.transduction_, name)
    same(there.answer_.inductive, here.answer_.inductive, name)
    same(there.answer_.loo_residuals, here.answer_.loo_residuals, name)
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-8)
    with dispatch():
        same(there.predict(give(X + 0.1, name)), here.predict(X + 0.1), name)


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_width_and_ridge_by_some_of_many_labels(name, monkeypatch):
    monkeypatch.setattr(transductive_ridge, "MOST_CHOOSING", 20)
    here, there = both(name, {}, *problem())
    assert there.width_ == pytest.approx(here.width_, rel=1e-10)
    same(there.transduction_, here.transduction_, name)


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_several_columns_precomputed_and_wide(name):
    X, y = problem()
    two = np.column_stack([y, 2.0 - y])
    here, there = both(name, {"width": 2.0, "ridge": 0.1}, X, two)
    same(there.transduction_, here.transduction_, name)
    K = X @ X.T + np.eye(len(X))
    here, there = both(name, {"kernel": "precomputed", "ridge": 0.3, "tether": "cv"}, K, y)
    same(there.transduction_, here.transduction_, name)
    wide = np.random.default_rng(0).normal(size=(len(y), 70))
    here, there = both(name, {"kernel": "linear", "ridge": 0.3}, wide, y)
    same(there.transduction_, here.transduction_, name)


@pytest.mark.parametrize("name", ON_PROCESSOR)
@pytest.mark.parametrize("names", [("no", "yes"), ("a", "b", "c")])
def test_classifier(name, names):
    X, y = problem(80)
    place = np.clip(
        np.digitize(np.nan_to_num(y), np.linspace(-0.3, 0.3, len(names) - 1)), 0, len(names) - 1
    )
    labels = np.where(np.isnan(y), None, np.array(names)[place])
    here, there = both(name, {"width": 2.0, "ridge": 0.1}, X, labels, TransductiveRidgeClassifier)
    assert there.transduction_.tolist() == here.transduction_.tolist()
    same(there.answer_.scores, here.answer_.scores, name)
    same(
        there.answer_.probabilities, here.answer_.probabilities, name, tolerance=1e-8
    )  # of a fitted factor
    assert there.answer_.status.tolist() == here.answer_.status.tolist()
    with dispatch():
        same(there.decision_function(give(X, name)), here.decision_function(X), name)
        assert there.predict(give(X, name)).tolist() == here.predict(X).tolist()
        assert there.predict_proba(give(X, name)).shape == (80, len(names))


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_no_question(name):
    X, _ = problem(20)
    here, there = both(name, {"width": 2.0, "ridge": 0.1}, X, X[:, 0])
    assert len(there.answer_) == 0
    same(there.transduction_, here.transduction_, name)


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_memory_is_asked_for(name, monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda like: 1e3)
    X, y = problem()
    with dispatch(), pytest.raises(MemoryError, match="centres at all 50 rows needs about"):
        TransductiveRidge().fit(give(X, name), y)


@pytest.mark.parametrize("name", ON_PROCESSOR)
@pytest.mark.parametrize("ridge", [1e-9, 1e-3, 10.0])
def test_system(name, ridge):
    X, _ = problem(30)
    K = np.exp(-((X[:, None] - X) ** 2).sum(-1))
    here, there = DenseSystem.build(K, ridge), DenseSystem.build(give(K, name), ridge)
    same(there.C, here.C, name)
    same(there.denominators, here.denominators, name)
