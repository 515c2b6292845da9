"""Rows that no fit saw, calibrated by labelled rows that no fit saw either."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import betabinom, binom
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor

from transduce.conformal import outside
from transduce.conformal.outside import calibrate_outside
from transduce.core.ranks import calibration_rank
from transduce.model_selection.fit_and_predict import FittedEstimator


def numbers(random, n):
    X = random.normal(size=(n, 2))
    return X, X[:, 0] + random.standard_t(2, size=n)


def calibrated(random, estimator, n_fit=40, c=39, m=60):
    X, y = numbers(random, n_fit + c + m)
    fitted = FittedEstimator(estimator.fit(X[:n_fit], y[:n_fit]), None, np.arange(n_fit), n_fit)
    parts = slice(0, n_fit), slice(n_fit, n_fit + c), slice(n_fit + c, None)
    model = calibrate_outside(fitted, X[parts[0]], y[parts[0]], X[parts[1]], y[parts[1]])
    return model, X, y, parts


@pytest.mark.parametrize("c", [19, 39, 45, 52])
def test_interval_by_hand(c):
    """The interval is the prediction plus and minus the k-th smallest distance at the calibration rows."""
    model, X, y, (_, held, rest) = calibrated(np.random.default_rng(0), LinearRegression(), c=c)
    estimator = model.fitted.estimator
    distances = np.sort(np.abs(y[held] - estimator.predict(X[held])))
    q = distances[calibration_rank(0.9, c) - 1]
    answer = model.answer(X[rest], 0.9)
    predicted = estimator.predict(X[rest])
    np.testing.assert_allclose(
        answer.regions.hull(), np.column_stack([predicted - q, predicted + q]), rtol=1e-9
    )
    np.testing.assert_allclose(answer.values, predicted, rtol=1e-12)


@pytest.mark.parametrize("n", [100, pytest.param(400, marks=pytest.mark.slow)])
def test_number_outside_follows_its_law(n):
    """Of the samples, as many exceed the stated bound as the beta-binomial law allows (exact binomial bound)."""
    random, exceeded, outside = np.random.default_rng(1), 0, []
    for _ in range(n):
        model, X, y, (_, _, rest) = calibrated(random, KNeighborsRegressor(3))
        hull = model.answer(X[rest], 0.9).regions.hull()
        count = int(np.sum((y[rest] < hull[:, 0]) | (y[rest] > hull[:, 1])))
        outside.append(count)
        exceeded += count > model.guarantee(0.9, n_answered=60).outside.at_most
    assert exceeded <= binom.ppf(0.999, n, 0.05)
    law = betabinom(60, 40 - calibration_rank(0.9, 39), calibration_rank(0.9, 39))
    spread = law.std() / np.sqrt(n)
    assert abs(np.mean(outside) - law.mean()) < 4 * spread


@pytest.mark.parametrize("c", [19, 39, 45, 52])
def test_equal_distances_are_inside(c):
    """Whole numbers: a candidate at the distance of the threshold counts as no stranger than it."""
    random = np.random.default_rng(c)
    X = random.normal(size=(60 + c, 2))
    y = random.integers(-6, 7, size=len(X)).astype(float)
    fitted = FittedEstimator(
        DummyRegressor(strategy="constant", constant=0.0).fit(X[:40], y[:40]),
        None,
        np.arange(40),
        40,
    )
    model = calibrate_outside(fitted, X[:40], y[:40], X[40 : 40 + c], y[40 : 40 + c])
    q = np.sort(np.abs(y[40 : 40 + c]))[calibration_rank(0.9, c) - 1]
    lower, upper = model.answer(X[40 + c :], 0.9).regions.hull().T
    assert np.all((-q - 1 < lower) & (lower <= -q))
    assert np.all((q <= upper) & (upper < q + 1))


@pytest.mark.parametrize("c", [25, 39, 47])
def test_p_values_of_classes_by_hand(c):
    """Of equal scores, of which few trees give many, each counts as at least as strange."""
    random = np.random.default_rng(c)
    X = random.normal(size=(100 + c, 3))
    y = (X[:, 0] + 0.7 * random.normal(size=len(X)) > 0).astype(int)
    forest = RandomForestClassifier(4, random_state=0, max_depth=2).fit(X[:60], y[:60])
    fitted = FittedEstimator(forest, np.arange(2), np.arange(60), 60)
    model = calibrate_outside(fitted, X[:60], y[:60], X[60 : 60 + c], y[60 : 60 + c])
    answer = model.answer(X[60 + c :], 0.9)
    scores = np.round(1.0 - forest.predict_proba(X), 9)
    known = scores[np.arange(60, 60 + c), y[60 : 60 + c]]
    asked = scores[60 + c :]
    assert len(np.unique(asked)) < asked.size / 2
    slow = (1 + np.sum(known[:, None, None] >= asked, axis=0)) / (c + 1)
    np.testing.assert_allclose(answer.p_values, slow, atol=1e-12)


class Elsewhere:
    """An estimator of somebody else's, which may not be safe in several threads."""

    def __init__(self):
        self.threads = set()

    def predict(self, X):
        """Return the first feature, and remember the thread."""
        self.threads.add(threading.get_ident())
        time.sleep(0.01)
        return X[:, 0]


class Holder:
    """An estimator that counts as one of this package, and holds others."""

    __module__ = "transduce.ensemble.blend"

    def __init__(self, members):
        self.estimators_ = members
        self.threads = set()

    def predict(self, X):
        """Return what the first member predicts, and remember the thread."""
        self.threads.add(threading.get_ident())
        time.sleep(0.01)
        members = self.estimators_
        first = next(iter(members.values() if isinstance(members, dict) else members))
        return first.predict(X)


Own = type("Own", (Elsewhere,), {"__module__": "transduce.methods.ridge.regressor"})


@pytest.mark.parametrize(
    ("make", "is_safe"),
    [
        (Elsewhere, False),
        (Own, True),
        (lambda: Holder({"own": Own(), "other": Own()}), True),
        (lambda: Holder([Own(), Own()]), True),
        (lambda: Holder({"own": Own(), "other": Elsewhere()}), False),
        (lambda: Holder([Own(), Elsewhere()]), False),
    ],
)
def test_blocks_of_rows_are_predicted_in_threads_where_that_is_safe(make, is_safe, monkeypatch):
    """Estimators of others, also inside of ours, see one thread alone; the values are the same."""
    monkeypatch.setattr(outside, "threads_here", lambda: {"blas": 3})
    monkeypatch.setattr(outside, "BLOCK", 10)
    X = np.random.default_rng(0).normal(size=(95, 2))
    estimator = make()
    fitted = FittedEstimator(estimator, None, np.arange(20), 20)
    model = calibrate_outside(fitted, X[:20], X[:20, 0], X[20:25], X[20:25, 0])
    answer = model.answer(X[25:], 0.5)
    np.testing.assert_array_equal(answer.values, X[25:, 0])
    assert (len(estimator.threads) > 1) == is_safe


def test_how_rows_are_cut_changes_nothing():
    model, X, _, (_, _, rest) = calibrated(np.random.default_rng(2), KNeighborsRegressor(3), m=9500)
    whole = model.answer(X[rest], 0.9)
    for start, stop in ((0, 1), (17, 4700), (4700, 9500)):
        part = model.answer(X[rest][start:stop], 0.9)
        assert np.array_equal(part.values, whole.values[start:stop])
        assert np.array_equal(part.regions.hull(), whole.regions.hull()[start:stop])


def test_no_rows_and_no_calibration_labels():
    model, X, _, (_, _, rest) = calibrated(np.random.default_rng(3), LinearRegression(), c=0)
    answer = model.answer(X[rest], 0.9)
    assert np.isinf(answer.regions.hull()).all()
    assert model.guarantee(0.9, n_answered=5).kind == "none"
    assert len(model.answer(X[:0], 0.9)) == 0


@pytest.mark.parametrize("by_class", [False, True])
def test_classes(by_class):
    """Sets miss the truth no more often than stated, also with a class that the fit has not seen."""
    random, missed, total = np.random.default_rng(4), 0, 0
    for _ in range(60):
        X = random.normal(size=(220, 3))
        y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 1.8)
        fitted = FittedEstimator(
            LogisticRegression().fit(X[:60], y[:60]), np.arange(3), np.arange(60), 60
        )
        model = calibrate_outside(fitted, X[:60], y[:60], X[60:120], y[60:120])
        model = replace(model, table=replace(model.table, by_class=by_class))
        sets = model.answer(X[120:], 0.9).label_sets
        missed += int((~sets[np.arange(100), y[120:]]).sum())
        total += 100
        assert sets.any(axis=1).all()
    assert missed <= binom.ppf(0.9999, total, 0.1) + 60  # rows of one sample share their threshold


@pytest.mark.parametrize("n", [25, pytest.param(100, marks=pytest.mark.slow)])
def test_wrong_answers_are_bounded(n):
    random, failed = np.random.default_rng(5), 0
    for _ in range(n):
        X = random.normal(size=(300, 3))
        y = (X[:, 0] + 0.8 * random.normal(size=300) > 0).astype(int)
        forest = RandomForestClassifier(10, random_state=0).fit(X[:60], y[:60])
        fitted = FittedEstimator(forest, np.arange(2), np.arange(60), 60)
        model = calibrate_outside(fitted, X[:60], y[:60], X[60:140], y[60:140])
        wrong = int((model.answer(X[140:], 0.9).values != y[140:]).sum())
        failed += wrong > model.guarantee(0.9, n_answered=160).wrong.at_most
    assert failed <= binom.ppf(0.999, n, 0.05)


def test_bounds_of_very_many_rows():
    model, *_ = calibrated(np.random.default_rng(6), LinearRegression())
    bound = model.guarantee(0.9, n_answered=10_000_000).outside
    assert 1_000_000 < bound.at_most < 3_000_000
    assert bound.expected == pytest.approx(1_000_000)
