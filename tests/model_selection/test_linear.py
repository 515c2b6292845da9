"""Linear regression of the blend: exact relations to rounding, and Bayesian ridge otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import RidgeCV
from sklearn.utils.estimator_checks import check_estimator

from tests import brute
from transduce import TransductiveBlend
from transduce.ensemble.weights import shrunk_weights
from transduce.model_selection import linear
from transduce.model_selection.linear import (
    FeatureScaler,
    LinearRegressor,
    find_relation,
    widen_cut,
)
from transduce.model_selection.methods import Case, default_members


def draw(n_rows, n_features, seed, *, largest=6.0):
    """Columns of any scale and offset, and coefficients that make some of them count the same."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-largest, largest, size=n_features)
    offset = scale * 10.0 ** rng.uniform(-2, 4, size=n_features)
    return rng.normal(size=(n_rows, n_features)) * scale + offset, 1.0 / scale


RELATIONS = {
    "a total": lambda X, per_unit: X[:, :3] @ per_unit[:3],
    "a conversion": lambda X, per_unit: 1.8 * X[:, 0] * per_unit[0] + 32.0,
    "a difference": lambda X, per_unit: (X[:, 1] * per_unit[1] - X[:, 0] * per_unit[0]) * 1e5,
}


def fit_relation(seed, name, size):
    """Columns and an exact relation between them, fitted to the first of them; (labels, columns)."""
    n_labels, n_features = size
    X, per_unit = draw(n_labels + 50, n_features, seed, largest=3.0)
    truth = RELATIONS[name](X, per_unit)
    # Columns come standardised, as `fill` gives them.
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    model = LinearRegressor(farthest=3.0).fit(Z[:n_labels], truth[:n_labels])
    return Z, truth, model


# --------------------------------------------------------------------------------------------------- exact


@settings(max_examples=40)
@given(
    st.integers(0, 10**6),
    st.sampled_from(sorted(RELATIONS)),
    st.sampled_from([(10, 4), (10, 12), (20, 60), (60, 5), (100, 150), (400, 10)]),
)
def test_an_exact_relation_is_found_to_rounding(seed, name, size):
    """Among more columns than labels too, and so that answers in folds show it."""
    assume((name, size) != ("a total", (10, 12)))  # see the next test
    n_labels, _ = size
    Z, truth, model = fit_relation(seed, name, size)
    spread = truth.std()
    assert np.abs(model.predict(Z[n_labels:]) - truth[n_labels:]).max() <= 1e-6 * spread
    fold = np.arange(n_labels) % 5
    folds = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(5)]
    for (_, hidden), answers in zip(folds, model.answers_in_folds(folds), strict=True):
        assert np.abs(answers - truth[hidden]).max() <= 1e-6 * spread


def test_a_total_of_three_of_twelve_columns_is_mostly_found_by_ten_labels():
    """With so few labels other columns fit nearly as well: it is found nine times in ten or so."""
    n_found = 0
    for seed in range(100):
        Z, truth, model = fit_relation(seed, "a total", (10, 12))
        n_found += np.abs(model.predict(Z[10:]) - truth[10:]).max() <= 1e-6 * truth.std()
    assert n_found >= 80


@pytest.mark.parametrize("n_labels", [10, 30])
def test_chance_is_no_relation(n_labels):
    """Among many columns some give few labels exactly by chance, where labels have few values."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        flags = rng.integers(2, size=(n_labels, 60)).astype(float)
        assert find_relation(flags, rng.integers(2, size=n_labels).astype(float)) is None
        assert find_relation(rng.normal(size=(n_labels, 60)), rng.normal(size=n_labels)) is None
        assert find_relation(rng.normal(size=(n_labels, 9)), rng.normal(size=n_labels)) is None


@settings(max_examples=60)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["conversion", "difference", "total"]),
    st.sampled_from(["normal", "lognormal", "whole"]),
    st.sampled_from([None, 4, 2, 0]),
    st.integers(2, 6),
    st.integers(0, 2),
)
def test_few_labels_show_a_relation_and_a_rounded_one(seed, name, kind, digits, n_free, n_others):
    """A relation of k columns takes k + 1 labels, and two or more others agree with it."""
    rng = np.random.default_rng(seed)
    n_terms = {"conversion": 1, "difference": 2, "total": 3}[name]
    n_labels = n_terms + n_others + 1 + n_free
    size = (n_labels + 50, n_terms + n_others)
    X = {
        "normal": lambda: 50.0 + 10.0 * rng.normal(size=size),
        "lognormal": lambda: np.exp(5.0 + rng.normal(size=size)),
        "whole": lambda: rng.integers(1000, size=size).astype(float),
    }[kind]()
    truth = {
        "conversion": lambda: 1.8 * X[:, 0] + 32.0,
        "difference": lambda: X[:, 0] - X[:, 1],
        "total": lambda: X[:, :3].sum(axis=1),
    }[name]()
    step = 1e-9 * truth.std()
    if digits is not None:
        truth = np.round(truth, digits)
        step = max(step, 10.0**-digits)
    values = step
    if kind == "whole":
        values = max(values, 2.0)  # labels are whole numbers, or multiples of 1.8
    shown = X[:n_labels], truth[:n_labels]
    if find_relation(*shown) is None:
        # Rounding may be too coarse for so few labels.
        spread = np.median(np.abs(shown[1] - np.median(shown[1])))
        assert (values / spread) ** n_free > 1e-7
        return
    line = LinearRegressor(farthest=3.0).fit(*shown)
    design = np.column_stack([np.ones(n_labels), shown[0]])
    solve = np.linalg.pinv(design)
    leverage = np.linalg.norm(np.column_stack([np.ones(len(X)), X]) @ solve, axis=1)
    assert (np.abs(line.predict(X) - truth) <= step * (2.0 + 3.0 * leverage)).all()


def test_chance_is_no_relation_among_few_labels():
    """Labels of every kind, few of them, and columns that have nothing to do with them."""
    rng = np.random.default_rng(5)
    for _ in range(40):
        n = int(rng.integers(3, 13))
        prices = np.array([1.99, 2.49, 7.35, 12.15])
        labels = [
            rng.integers(100, size=n).astype(float),
            np.round(np.exp(3.0 + rng.normal(size=n)), 2),
            np.where(rng.random(n) < 0.7, 0.0, rng.integers(1, 10_000, size=n) / 100.0),
            rng.integers(10, size=n) / 3.0,
            prices[rng.integers(4, size=n)],
            rng.normal(size=n),
        ]
        n_columns = int(rng.integers(1, 8))
        columns = [
            rng.integers(30, size=(n, n_columns)).astype(float),
            rng.integers(2, size=(n, n_columns)).astype(float),
            rng.normal(size=(n, n_columns)),
        ]
        for y in labels:
            for X in columns:
                assert find_relation(X, y) is None, (X, y)


def test_labels_and_columns_that_do_not_vary_are_no_relation():
    X = np.ones((12, 3))
    y = np.arange(12.0)
    assert find_relation(X, y) is None
    assert find_relation(np.column_stack([X, y]), np.full(12, 7.0)) is None
    assert find_relation(np.column_stack([X, y]), 2 * y + 1).tolist() == [3]
    assert find_relation(y[:2, None], y[:2]) is None  # two labels are on a line anyway


def test_a_level_that_no_visible_row_has_changes_nothing():
    """A column that is constant among the visible rows differs from its mean by rounding, which is no feature."""
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.lognormal(3.0, 1.0, size=(20, 4)).round(2), np.full((20, 2), 0.1)])
    X[7, 4] = 3.7
    truth = X[:, :3].sum(axis=1)
    model = LinearRegressor().fit(X, truth)
    visible = np.delete(np.arange(20), 7)
    np.testing.assert_allclose(model.answers_in_folds([(visible, [7])])[0], truth[7])


@pytest.mark.parametrize("size", [(12, 5), (8, 8), (6, 20)])
def test_otherwise_it_is_bayesian_ridge_regression(size):
    """By hand: each penalty's ridge regression, weighed by the density of the labels under it."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=size) + 7.0
    y = X @ rng.normal(size=size[1]) + rng.normal(size=size[0]) - 100.0
    asked = rng.normal(size=(5, size[1])) + 7.0
    model = LinearRegressor(standardize=False).fit(X, y)
    np.testing.assert_allclose(model.predict(asked), brute.bayesian_ridge(X, y, asked), rtol=1e-8)
    np.testing.assert_allclose(
        LinearRegressor(standardize=False)
        .fit(1e3 * X + 5.0, 2 * y + 1e6)
        .predict(1e3 * asked + 5.0),
        2 * model.predict(asked) + 1e6,
    )


def test_answers_in_folds_are_those_of_refits():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 5))
    y = X @ rng.normal(size=5) + rng.normal(size=60)
    model = LinearRegressor(standardize=False).fit(X, y)
    visible, hidden = np.arange(12, 60), np.arange(12)
    again = LinearRegressor(standardize=False).fit(X[visible], y[visible])
    found = model.answers_in_folds([(visible, hidden)])[0]
    np.testing.assert_allclose(found, again.predict(X[hidden]), rtol=1e-12)


def test_where_all_labels_but_one_are_equal_its_fold_is_answered_by_them():
    X = np.random.default_rng(0).normal(size=(12, 3))
    y = np.where(np.arange(12) == 5, 5.0, 0.0)
    everything = np.arange(12)
    folds = [(np.delete(everything, row), everything[[row]]) for row in everything]
    answers = LinearRegressor(farthest=3.0).fit(X, y).answers_in_folds(folds)
    assert answers[5] == [0.0]
    assert np.isfinite(np.concatenate(answers)).all()


def test_a_line_is_told_from_noise():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(15, 10))
    line = X @ rng.normal(size=10)
    quiet = LinearRegressor().fit(X, line + 0.02 * rng.normal(size=15))
    noisy = LinearRegressor().fit(X, rng.normal(size=15))
    assert noisy.relation_ is None
    assert np.abs(quiet.predict(X) - line).max() < 0.05 * line.std()
    assert np.abs(noisy.coef_).max() < 0.5


def test_scikit_learn_accepts_it():
    checks = check_estimator(LinearRegressor(), on_fail=None, on_skip=None)
    assert [check["check_name"] for check in checks if check["status"] == "failed"] == []


# ------------------------------------------------------------------------------------------- blend and `fill`


def test_a_member_that_is_right_gets_all_of_the_weight():
    """Where the others are far off, however few labels show it; where they are not, weights stay near equal."""
    rng = np.random.default_rng(4)
    errors = rng.normal(size=(10, 4))
    errors[:, 2] *= 1e-9
    assert shrunk_weights(errors, 10)[2] == pytest.approx(1.0, abs=1e-6)
    errors[:, 2] = 0.0
    assert shrunk_weights(errors, 10)[2] == pytest.approx(1.0, abs=1e-12)
    assert shrunk_weights(rng.normal(size=(10, 4)), 10).max() < 0.6


@pytest.mark.parametrize("n_labels", [15, 25])
def test_few_labels_of_a_line(n_labels):
    """The blend comes near to cross-validated ridge, and was three times as far off."""
    ours, theirs = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(200, 10))
        slopes = rng.normal(size=10)
        truth = X @ slopes / np.linalg.norm(slopes) + 0.05 * rng.normal(size=200)
        y = np.where(np.arange(200) < n_labels, truth, np.nan)
        case = Case("regression", 200, n_labels, 10, standardize=False, random_state=0)
        members = default_members(case)[0]
        quick = {name: members[name] for name in ("transductive_ridge", "ridge", "random_forest")}
        model = TransductiveBlend(quick, random_state=0).fit(X, y)
        ridge = RidgeCV(np.geomspace(1e-3, 1e5, 30)).fit(X[:n_labels], truth[:n_labels])
        missing = np.isnan(y)
        ours.append(np.sqrt(np.mean((model.transduction_ - truth)[missing] ** 2)))
        theirs.append(np.sqrt(np.mean((ridge.predict(X[missing]) - truth[missing]) ** 2)))
    assert np.mean(ours) <= 1.35 * np.mean(theirs) + 0.03


# ------------------------------------------------------------------------------------------------------ few labels


@pytest.mark.parametrize("n_rows", [4, 9, 30])
def test_the_cut_is_as_rare_as_with_the_true_spread(n_rows):
    """A normal number lies beyond it as often as beyond so many of its own standard deviations."""
    rng = np.random.default_rng(n_rows)
    rows = rng.normal(size=(100_000, n_rows))
    scaled = (rng.normal(size=100_000) - rows.mean(axis=1)) / rows.std(axis=1)
    share = np.mean(np.abs(scaled) > widen_cut(1.0, n_rows))
    assert abs(share - 0.3173) < 0.006


def test_few_labels_do_not_cut_off_ordinary_rows():
    """With 9 labels, whose spreads are often half the true ones, a line is level with ridge."""
    ours = []
    theirs = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(100, 4))
        truth = X @ np.array([1.0, -1.0, 0.5, 0.5]) + 0.1 * rng.normal(size=100)
        model = LinearRegressor(farthest=3.0).fit(X[:9], truth[:9])
        ours.append(np.mean((model.predict(X[9:]) - truth[9:]) ** 2))
        ridge = RidgeCV(np.geomspace(1e-3, 1e3, 20)).fit(X[:9], truth[:9])
        theirs.append(np.mean((ridge.predict(X[9:]) - truth[9:]) ** 2))
    assert np.mean(np.sqrt(ours)) < 1.1 * np.mean(np.sqrt(theirs))


# Of amounts a few of which are very large, with labels that are rounded as people round them.
ROUNDED = {
    "with tax, to cents": lambda X: np.round(1.19 * X[:, 0], 2),
    "a total, to units": lambda X: np.round(X.sum(axis=1)),
    "in another currency": lambda X: np.round(X[:, 1] / 7.46, 1),
    "a balance, to tens": lambda X: np.round(X[:, 0] - X[:, 2], -1),
    "with 1 % of noise": lambda X: X[:, 0] * (1.0 + 0.01 * np.sin(X[:, 1])),
}


@pytest.mark.parametrize("n_labels", [12, 30, 100])
@pytest.mark.parametrize("name", ROUNDED)
def test_a_nearly_exact_line_goes_on_beyond_the_labels(name, n_labels):
    """Large amounts that no label has are no reason to stop it: half of the spread was lost there."""
    worst = 0.0
    for seed in range(6):
        X = np.random.default_rng(seed).lognormal(8.0, 1.0, size=(400, 3))
        X = X[np.argsort(X.max(axis=1) > 60_000, kind="stable")]  # the largest have no label
        truth = ROUNDED[name](X)
        Z = (X - X.mean(axis=0)) / X.std(axis=0)  # as `fill` gives them
        for rows, standardize in ((X, True), (Z, False)):
            model = LinearRegressor(farthest=3.0, standardize=standardize)
            model.fit(rows[:n_labels], truth[:n_labels])
            errors = model.predict(rows[n_labels:]) - truth[n_labels:]
            worst = max(worst, np.sqrt(np.mean(errors**2)) / truth.std())
    assert worst < 0.03


def test_a_line_that_is_not_nearly_exact_stops_there():
    """Of a curve whose middle alone is labelled nobody knows how it goes on."""
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 1))
    model = LinearRegressor(farthest=3.0).fit(X, np.sin(X[:, 0]) + 0.1 * random.normal(size=40))
    far = model.predict(np.array([[30.0], [3000.0]]))
    assert far[0] == far[1] == pytest.approx(model.predict(np.array([[5.0]]))[0])


def test_the_better_a_line_is_the_farther_it_goes_on():
    """Skewed features: few labels say how far the line goes, and rows beyond them follow it."""
    random = np.random.default_rng(0)
    before, after = [], []
    for _ in range(20):
        X = np.exp(random.normal(size=(200, 3)))
        truth = X @ [1.0, -0.5, 0.5] + 0.2 * random.normal(size=200)
        for errors, goes_on in ((before, 0.0), (after, linear.GOES_ON)):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(linear, "GOES_ON", goes_on)
                model = LinearRegressor(farthest=3.0).fit(X[:20], truth[:20])
            errors.append(np.sqrt(np.mean((model.predict(X[20:]) - truth[20:]) ** 2)) / truth.std())
    assert np.mean(after) < 0.75 * np.mean(before)
    # Labels that are noise earn nothing.
    noise = LinearRegressor(farthest=3.0).fit(X[:20], random.normal(size=20))
    assert noise._line.farthest == pytest.approx(widen_cut(3.0, 20))


def test_far_rows_are_cut_off_all_the_same():
    X = np.random.default_rng(0).normal(size=(9, 2))
    scaler = FeatureScaler(farthest=3.0).fit(X)
    assert np.abs(scaler.transform(np.array([[1e9, -1e9]]))).tolist() == [[scaler.cut_] * 2]
    assert 4.0 < scaler.cut_ < 5.5
