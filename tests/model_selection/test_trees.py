"""Compiled trees equal trees grown by exhaustive search, and what is made of them equals its definition."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from tests import brute
from tests.contract import contract, keep
from transduce.core.row_order import content_order, number_rows
from transduce.model_selection import trees
from transduce.model_selection.compiled_trees import Growth
from transduce.model_selection.trees import (
    BinnedRows,
    BoostedClassifier,
    BoostedRegressor,
    ForestClassifier,
    ForestRegressor,
)

FEW = {"n_estimators": 5, "max_leaf_nodes": 5, "random_state": 3}


def table(n=90, seed=0):
    random = np.random.default_rng(seed)
    return np.column_stack(
        [
            random.normal(size=n),
            random.integers(0, 2, n),
            random.integers(0, 4, n),
            random.normal(size=n),
        ]
    ).astype(float)


def numbers(X):
    return X[:, 0] * X[:, 2] + X[:, 1] + np.sin(3 * X[:, 3])


def three_classes(X):
    return np.array(list("abc"))[np.digitize(X[:, 0] + X[:, 1], [-0.2, 0.9])]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from([(3, 1), (8, 2), (1000, 1), (1000, 3)]),
    st.sampled_from([1, 3]),
    st.integers(1, 5),
    st.booleans(),
)
def test_a_tree_is_that_of_an_exhaustive_search(seed, size, k, tried, random_cuts):
    """Splits, leaves and sums, in whatever node: sums of small whole numbers are exact, so that ties are too."""
    random = np.random.default_rng(seed)
    n, d = int(random.integers(2, 80)), 5
    bins = random.integers(0, [256, 40, 4, 2, 1], size=(n, d)).astype(np.uint8)
    mass = random.integers(0, 3, n).astype(float)
    rows = np.flatnonzero(mass)
    if not len(rows):
        return
    values = random.integers(-4, 5, size=(n, k)).astype(float)
    most, fewest = size
    penalty, any_gain = (0.0, True) if most == 1000 else (1.0, False)
    splits, leaves, totals, gains = trees.grow(
        np.ascontiguousarray(bins.T),
        np.arange(d),
        rows,
        np.column_stack([values * mass[:, None], mass]),
        most,
        Growth(fewest, tried, penalty, random_cuts, any_gain),
        np.array([seed], dtype=np.uint64),
    )
    how = {
        "fewest": fewest,
        "tried": tried,
        "penalty": penalty,
        "random_cuts": random_cuts,
        "any_gain": any_gain,
    }
    expected, members = brute.grow_tree(bins, rows, values, mass, most, brute.Chance(seed), **how)
    assert [tuple(split) for split in splits.tolist()] == expected
    assert len(gains) == len(expected)
    assert (gains >= 0.0).all()
    for leaf, own in enumerate(members):
        np.testing.assert_array_equal(
            np.flatnonzero(leaves[rows] == leaf), np.flatnonzero(np.isin(rows, own))
        )
        np.testing.assert_array_equal(
            totals[leaf], [*(values[own] * mass[own, None]).sum(axis=0), mass[own].sum()]
        )


def test_bins_lie_between_values_or_quantiles():
    random = np.random.default_rng(0)
    X = np.column_stack(
        [random.integers(0, 250, 2000), random.normal(size=2000), np.ones(2000)]
    ).astype(float)
    rows = BinnedRows.of(X)
    np.testing.assert_array_equal(rows.bins[0], np.searchsorted(np.unique(X[:, 0]), X[:, 0]))
    np.testing.assert_array_equal(np.bincount(rows.bins[1]), np.full(250, 8))
    assert not rows.bins[2].any()
    for j in range(3):
        edges = rows.edges[j][np.isfinite(rows.edges[j])]
        more = np.tile(
            np.concatenate([edges, np.nextafter(edges, np.inf), [-np.inf, 1e300]])[:, None], 3
        )
        np.testing.assert_array_equal(
            rows.at(more)[j], np.searchsorted(edges, more[:, j], side="left")
        )


def test_few_rows_have_few_bins_and_many_rows_all():
    """At least 64, at most 256; a value that fills several bins leaves some of them empty."""
    X = np.random.default_rng(0).normal(size=(5000, 2))
    X[:2500, 1] = 0.0
    assert [len(np.unique(BinnedRows.of(X[-n:]).bins[0])) for n in (60, 500, 1600, 5000)] == [
        60,
        64,
        200,
        256,
    ]
    bins = BinnedRows.of(X).bins[1]
    order = np.argsort(X[:, 1], kind="stable")
    assert (np.diff(bins[order].astype(int)) >= 0).all()
    np.testing.assert_array_equal(bins[:2500], bins[0])
    assert 120 < len(np.unique(bins)) < 140


@pytest.mark.parametrize("k", [1, 3])
def test_wide_tables_are_screened_by_the_best_first_cut(k, monkeypatch):
    """Three trees in four look at the features whose single best cut leaves least, the fourth at all."""
    random = np.random.default_rng(k)
    X, n = random.normal(size=(60, 12)), 60
    y = X[:, 3] + np.sin(2 * X[:, 7]) if k == 1 else np.digitize(X[:, 3] - X[:, 5], [-0.5, 0.8])
    seen, grow = [], trees.grow
    monkeypatch.setattr(trees, "SCREENED", 4)
    monkeypatch.setattr(trees, "grow", lambda *given: (seen.append(given[1]), grow(*given))[1])
    model = (BoostedRegressor if k == 1 else BoostedClassifier)(**FEW, max_features=1.0).fit(X, y)
    outputs = (y - y.mean())[:, None] / y.std() if k == 1 else np.eye(3)[y]
    left = []
    for column in model._rows.bins:
        sides = [column <= cut for cut in range(256)]
        pairs = [(side, ~side) for side in sides if 5 <= side.sum() <= n - 5]
        sums = [
            [
                np.sum((outputs[side] - outputs.mean(axis=0)).sum(axis=0) ** 2) / (side.sum() + 1.0)
                for side in pair
            ]
            for pair in pairs
        ]
        left.append(-max(sum(pair) for pair in sums))
    best = np.sort(np.argsort(left)[:4])
    for step, features in enumerate(seen):
        np.testing.assert_array_equal(features, np.arange(12) if step // k % 4 == 3 else best)


def test_neighbouring_numbers_are_kept_apart():
    X = np.array([[1.0], [np.nextafter(1.0, 2.0)], [1e308], [-1e308]])
    np.testing.assert_array_equal(
        np.unique(BinnedRows.of(X).bins, return_inverse=True)[1], [[1, 2, 3, 0]]
    )


def test_random_cuts_between_few_rows_fall_anywhere():
    """Of two rows half of all trees draw both; these cut below a place between them as often as it is far along."""
    X, y, along = np.array([[0.0], [1.0]]), np.array([0.0, 1.0]), np.linspace(0.05, 0.95, 10)
    forest = ForestRegressor(4000, random_cuts=True, random_state=0).fit(X, y)
    np.testing.assert_allclose(forest.predict(along[:, None]), 0.25 + 0.5 * along, atol=0.03)


def boosted_by_hand(model, X, y, at, visible):
    """Return numbers, or shares of classes, of boosted trees made of trees grown by exhaustive search."""
    rows = BinnedRows.of(X)
    bins, more, chance = rows.bins.T, rows.at(at).T, brute.Chance(model._seed)
    if hasattr(model, "classes_"):
        outputs = (y[:, None] == model.classes_).astype(float)
        outputs = outputs[:, 1:] if len(model.classes_) == 2 else outputs
        share = outputs[visible].mean(axis=0)
        base = np.log(share) - (np.log(1.0 - share) if outputs.shape[1] == 1 else 0.0)
    else:
        outputs = ((y - y.mean()) / y.std())[:, None]
        base = outputs[visible].mean(axis=0)
    raw, said = np.tile(base, (len(X), 1)), np.tile(base, (len(at), 1))
    how = {"fewest": 5, "penalty": 1.0, "random_cuts": False, "any_gain": False}
    for _ in range(model.n_estimators):
        shares = raw.copy()
        if hasattr(model, "classes_"):
            shares = softmax(raw, axis=1) if raw.shape[1] > 1 else 1.0 / (1.0 + np.exp(-raw))
        for c in range(raw.shape[1]):
            left = outputs[:, c] - shares[:, c]
            mass = (
                shares[:, c] * (1.0 - shares[:, c])
                if hasattr(model, "classes_")
                else np.ones(len(X))
            )
            splits, leaves = brute.grow_tree(
                bins,
                visible,
                (left / mass)[:, None],
                mass,
                model.max_leaf_nodes,
                chance,
                tried=2,
                **how,
            )
            values = [
                model.learning_rate * left[own].sum() / (mass[own].sum() + 1.0) for own in leaves
            ]
            raw[:, c] += [values[brute.leaf_of(splits, row)] for row in bins]
            said[:, c] += [values[brute.leaf_of(splits, row)] for row in more]
    if not hasattr(model, "classes_"):
        return said[:, 0] * y.std() + y.mean()
    if said.shape[1] > 1:
        return softmax(said, axis=1)
    return np.column_stack([1.0 / (1.0 + np.exp(said)), 1.0 / (1.0 + np.exp(-said))])


@pytest.mark.parametrize("task", ["numbers", "two classes", "three classes"])
def test_boosted_trees_are_newton_steps(task):
    X, at = table(), table(40, 1)
    y = numbers(X) if task == "numbers" else three_classes(X)
    y = np.where(y == "c", "b", y) if task == "two classes" else y
    make = BoostedRegressor if task == "numbers" else BoostedClassifier
    model = make(max_features=0.5, **FEW).fit(X, y)
    found = model.predict(at) if task == "numbers" else model.predict_proba(at)
    every = np.arange(len(X))
    np.testing.assert_allclose(found, boosted_by_hand(model, X, y, at, every), rtol=1e-9)
    visible, hidden = every[every % 3 > 0], every[every % 3 == 0]
    in_fold = model.answers_in_folds([(visible, hidden)])[0]
    np.testing.assert_allclose(in_fold, boosted_by_hand(model, X, y, X[hidden], visible), rtol=1e-9)


@pytest.mark.parametrize("random_cuts", [False, True])
def test_a_forest_is_the_mean_of_its_trees(random_cuts):
    """And at a labelled row, out of bag, the mean of those that did not draw it."""
    X, at = table(30), table(10, 1)
    y = three_classes(X)
    model = ForestClassifier(6, max_features=0.5, random_cuts=random_cuts, random_state=1).fit(X, y)
    rows = BinnedRows.of(X)
    how = {"fewest": 1, "tried": 2, "penalty": 0.0, "random_cuts": random_cuts, "any_gain": True}
    truth, said, away = (y[:, None] == model.classes_).astype(float), [], [[] for _ in X]
    for tree in range(6):
        chance = brute.Chance(model._seed + tree)
        # Rows are drawn in the order that their contents decide.
        drawn_places = [chance.below(30) for _ in range(30)]
        times = np.bincount(content_order(number_rows(X))[drawn_places], minlength=30).astype(float)
        drawn = np.flatnonzero(times)
        splits, leaves = brute.grow_tree(rows.bins.T, drawn, truth, times, 1000, chance, **how)
        shares = np.array([np.average(truth[own], axis=0, weights=times[own]) for own in leaves])
        said.append([shares[brute.leaf_of(splits, row)] for row in rows.at(at).T])
        for row in np.flatnonzero(times == 0.0):
            away[row].append(shares[brute.leaf_of(splits, rows.bins.T[row])])
    np.testing.assert_allclose(model.predict_proba(at), np.mean(said, axis=0))
    everywhere = model.predict_proba(X)
    expected = [np.mean(some, axis=0) if some else everywhere[row] for row, some in enumerate(away)]
    assert any(not some for some in away)
    np.testing.assert_allclose(model.answers_in_folds([(None, np.arange(30))])[0], expected)


def test_features_that_labels_depend_on_are_important():
    """By what their splits gain: of one tree grown to pure leaves, all that there is to gain."""
    X = table(200)
    found = ForestRegressor(20, random_state=0).fit(X, 5.0 * X[:, 0] + X[:, 3]).feature_importances_
    np.testing.assert_allclose(found.sum(), 1.0)
    assert found[0] > 0.8 > 0.05 > found[1]
    values = np.random.default_rng(0).integers(-4, 5, size=(60, 1)).astype(float)
    bins, sums = BinnedRows.of(X[:60]).bins, np.column_stack([values, np.ones(60)])
    given = (bins, np.arange(4), np.arange(60), sums, 1000, Growth(1, 4, 0.0, False, True))
    gains = trees.grow(*given, np.zeros(1, np.uint64))[3]
    np.testing.assert_allclose(gains.sum(), np.sum((values - values.mean()) ** 2))


def test_a_forest_of_numbers_and_of_two_classes():
    """Two classes are one output; a forest of numbers in other units gives the same answers in these units."""
    X, y = table(60), numbers(table(60))
    first = ForestRegressor(5, random_state=0).fit(X, y).predict(X)
    np.testing.assert_allclose(
        ForestRegressor(5, random_state=0).fit(X, 1e200 * y - 1e200).predict(X),
        1e200 * first - 1e200,
    )
    shares = ForestClassifier(5, random_state=0).fit(X, y > 0.0).predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    indicator = ForestRegressor(5, random_state=0).fit(X, (y > 0.0).astype(float)).predict(X)
    np.testing.assert_allclose(shares[:, 1], indicator, atol=1e-12)


@pytest.mark.parametrize("model", [BoostedRegressor(n_estimators=30), ForestRegressor(20)])
def test_labels_that_say_nothing_and_many_rows(model):
    X = table(50)
    np.testing.assert_allclose(model.fit(X, np.full(50, 3.0)).predict(X), 3.0)
    fitted = model.set_params(random_state=0).fit(X, numbers(X))
    many = np.tile(X, (2 * trees.ROWS // 50 + 3, 1))
    np.testing.assert_array_equal(fitted.predict(many)[:50], fitted.predict(X))
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(fitted)).predict(many), fitted.predict(many)
    )


@pytest.mark.few(20)
@pytest.mark.parametrize(
    ("estimator", "check"),
    contract(
        [
            BoostedRegressor(n_estimators=50, random_state=0),
            BoostedClassifier(n_estimators=50, random_state=0),
            ForestRegressor(10, random_state=0),
            ForestClassifier(10, random_state=0),
        ]
    ),
)
def test_scikit_learn_contract(estimator, check):
    keep(estimator, check)
