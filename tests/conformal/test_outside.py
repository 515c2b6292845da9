"""Rows that no fit saw, calibrated by labelled rows that no fit saw either."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import betabinom, binom
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor

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


def test_interval_by_hand():
    """The interval is the prediction plus and minus the k-th smallest distance at the calibration rows."""
    model, X, y, (_, held, rest) = calibrated(np.random.default_rng(0), LinearRegression())
    estimator = model.fitted.estimator
    distances = np.sort(np.abs(y[held] - estimator.predict(X[held])))
    q = distances[calibration_rank(0.9, 39) - 1]
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
