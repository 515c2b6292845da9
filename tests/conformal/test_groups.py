"""Rows in groups, categories and an order: whole groups held out, guarantees within categories, drift."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from scipy.stats import binom, spearmanr
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV

from tests.conformal.test_transducer import classes, numbers, quiet
from transduce import ConformalTransducer, TransductiveBlend, TransductiveRidge
from transduce.conformal import (
    CategoryMiscoverage,
    Chance,
    Grouped,
    Miscoverage,
    exchangeability_test,
)
from transduce.conformal.calibrated_guarantee import largest_share
from transduce.conformal.exchangeability import drift_along
from transduce.model_selection import cross_val_transduce
from transduce.model_selection.folds import group_folds, with_group_folds

# -------------------------------------------------------------------------------------------------- groups


def patients(seed, n_groups=60, labelled=30, partly=False):
    """Return visits of patients: errors are shared within a patient; only some patients have labels."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, n_groups)
    groups = np.repeat(np.arange(n_groups), sizes)
    X = rng.normal(size=(len(groups), 2))
    truth = (
        X[:, 0]
        + 2.0 * rng.standard_t(3, size=n_groups)[groups]
        + 0.1 * rng.normal(size=len(groups))
    )
    known = np.isin(groups, rng.choice(n_groups, labelled, replace=False))
    if partly:
        known &= rng.random(len(groups)) < 0.7
    return X, np.where(known, truth, np.nan), truth, groups


@pytest.mark.parametrize("sizes", [[1, 1, 1, 37], [5] * 10, [9, 1, 4, 4, 2, 30, 7]])
def test_how_many_rows_the_largest_groups_hold(sizes):
    """The most rows that can be outside if a tenth, or a third, of the groups are: by a linear program."""
    n = np.array(sizes, dtype=float)
    for share in (0.1, 1 / 3):
        slow = linprog(
            -n / n.sum(), A_ub=[np.full(len(n), 1 / len(n))], b_ub=[share], bounds=(0, 1)
        )
        assert largest_share(sizes, share) == pytest.approx(-slow.fun)


def test_groups_of_uneven_size_are_named():
    X, y, _, groups = patients(0)
    large = np.where(np.isnan(y) & (groups > 0), groups, -1)
    large = np.where(
        large == large[np.isnan(y)][0], 40, 1
    )  # one group without a label has forty times its rows
    rows = np.repeat(np.arange(len(y)), large)
    model = quiet(Ridge(), labels=Grouped(groups[rows])).fit(X[rows], y[rows])
    even = quiet(Ridge(), labels=Grouped(groups)).fit(X, y)
    assert model.guarantee_.of_rows > 0.4
    assert "the share of all rows outside may be larger, up to" in model.guarantee_.statement
    few = quiet(Ridge(), labels=Grouped(np.arange(len(y)) // 2)).fit(X, y).guarantee_
    assert few.of_rows < even.guarantee_.of_rows
    assert "share of all rows" not in few.statement


def test_weights_count_every_group_once():
    X, y, _, groups = patients(0)
    model = quiet(Ridge(), labels=Grouped(groups), confidence=0.8).fit(X, y)
    held = groups[model.calibration_rows_]
    labelled = groups[~np.isnan(y)]
    assert set(held) & set(labelled[~np.isin(labelled, held)]) == set()
    np.testing.assert_array_equal(
        model.calibration_rows_, np.flatnonzero(np.isin(groups, held) & ~np.isnan(y))
    )
    visible = np.setdiff1d(np.flatnonzero(~np.isnan(y)), model.calibration_rows_)
    fitted = Ridge().fit(X[visible], y[visible])
    scores = np.abs(y - fitted.predict(X))[model.calibration_rows_]
    # By definition: the mean over groups of the share of each group's scores that are at least S, and the row itself.
    at = np.array(
        [
            (sum(np.mean(scores[held == g] >= s) for g in np.unique(held)) + 1)
            / (len(np.unique(held)) + 1)
            for s in scores
        ]
    )
    half = scores[at > 0.2 + 1e-9].max()
    np.testing.assert_allclose(model.answer_.regions.measure(), 2 * half, rtol=1e-9)
    assert model.guarantee_.n_groups == len(np.unique(held))
    assert model.guarantee_.n_other == 0
    assert model.guarantee_.outside is None
    assert model.guarantee_.headline == "exact if groups were labelled at random"
    assert (
        "The interval of a row drawn at random from a new group holds" in model.guarantee_.statement
    )


@pytest.mark.parametrize(
    ("partly", "n"),
    [(True, 120), *(pytest.param(partly, 300, marks=pytest.mark.slow) for partly in (False, True))],
)
def test_the_level_holds_for_a_row_of_a_new_group(partly, n):
    """One row of one new group of each of many samples."""
    outside = 0
    for seed in range(n):
        X, y, truth, groups = patients(seed, partly=partly)
        rng = np.random.default_rng(seed)
        new = np.setdiff1d(groups, groups[~np.isnan(y)])
        row = rng.choice(np.flatnonzero(groups == rng.choice(new)))
        place = np.flatnonzero(np.flatnonzero(np.isnan(y)) == row)[0]
        by_group = quiet(LinearRegression(), labels=Grouped(groups)).fit(X, y).answer_
        outside += not by_group.regions.contains(truth[np.isnan(y)])[place]
    assert outside <= binom.ppf(0.999, n, 0.1)
    assert outside >= binom.ppf(0.001, n, 0.02)


def test_rows_of_labelled_groups_are_said_not_to_be_covered():
    X, y, _, groups = patients(1, partly=True)
    model = quiet(Ridge(), labels=Grouped(groups)).fit(X, y)
    others = np.isin(groups[np.isnan(y)], groups[~np.isnan(y)]).sum()
    assert others > 0
    assert model.guarantee_.n_other == others
    assert (
        f"The {others} other rows are of groups that have labels, and not covered"
        in model.guarantee_.statement
    )
    few = patients(1, labelled=9)
    with pytest.warns(UserWarning, match="Too few groups have labels .* it takes 13"):
        assert quiet(Ridge(), labels=Grouped(few[3])).fit(few[0], few[1]).guarantee_.kind == "none"
    with pytest.warns(UserWarning, match="5 calibration groups cannot support 90 %: it takes 9"):
        quiet(Ridge(), labels=Grouped(few[3]), calibration=5).fit(few[0], few[1])


def test_groups_are_compared_by_one_row_of_each():
    """Rows of a group are alike: compared row by row, chance would be taken for a shift."""
    X, y, _, groups = patients(2, n_groups=80, labelled=40)
    X = X + 3.0 * np.random.default_rng(0).normal(size=(80, 2))[groups]
    model = ConformalTransducer(Ridge(), labels=Grouped(groups), random_state=0).fit(X, y)
    assert model.exchangeability_.n_labelled == 40
    assert model.exchangeability_.n_unlabelled == 40
    assert not model.exchangeability_.shifted


def test_folds_never_split_a_group():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 12, 50)
    folds = group_folds(groups, 5, random_state=0)
    assert sorted(np.concatenate([hidden for _, hidden in folds])) == list(range(50))
    for visible, hidden in folds:
        assert not set(groups[visible]) & set(groups[hidden])
        assert 5 <= len(hidden) <= 15
    assert len(group_folds([0, 0, 1], 5)) == 2
    with pytest.raises(ValueError, match="All labels are of one group"):
        group_folds([3, 3], 2)
    X, y, _ = numbers()
    every = rng.integers(0, 10, 90)
    found = cross_val_transduce(TransductiveRidge(), X, y, cv=3, groups=every, random_state=0)
    assert len(found.scores) == 3


def test_blends_and_searches_get_folds_that_split_no_group():
    X, y, _, groups = patients(3)
    seen = groups[~np.isnan(y)]
    for inner in (TransductiveBlend(cv=4), GridSearchCV(Ridge(), {"alpha": [1.0]}, cv=4)):
        ready = with_group_folds(inner, seen)
        for visible, hidden in ready.cv:
            assert not set(seen[visible]) & set(seen[hidden])
        assert inner.cv == 4
    plain = Ridge()
    assert with_group_folds(plain, seen) is plain
    members = {"a": Ridge(), "b": Ridge(alpha=1e4)}
    blend = TransductiveBlend(members, task="regression", cv=4, random_state=0)
    model = quiet(blend, labels=Grouped(groups), refit=True).fit(X, y)
    for fitted, rows in (
        (model.estimator_, np.setdiff1d(np.flatnonzero(~np.isnan(y)), model.calibration_rows_)),
        (model.refitted_, np.flatnonzero(~np.isnan(y))),
    ):
        assert len(fitted.cv) == 4
        for visible, hidden in fitted.cv:
            assert not set(groups[rows[visible]]) & set(groups[rows[hidden]])


# ---------------------------------------------------------------------------------------------- categories


def regions_of(seed, n=300):
    """Return rows of three categories that were labelled at different rates and differ in their noise."""
    rng = np.random.default_rng(seed)
    category = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(n, 2))
    noise = pd.Series(category).map({"a": 0.2, "b": 1.0, "c": 3.0}).to_numpy()
    truth = X[:, 0] + noise * rng.normal(size=n)
    rate = pd.Series(category).map({"a": 0.6, "b": 0.3, "c": 0.4}).to_numpy()
    return X, np.where(rng.random(n) < rate, truth, np.nan), truth, category


@pytest.mark.parametrize("n", [70, pytest.param(250, marks=pytest.mark.slow)])
def test_the_level_holds_within_every_category(n):
    outside, drawn = dict.fromkeys("abc", 0), dict.fromkeys("abc", 0)
    for seed in range(n):
        X, y, truth, category = regions_of(seed)
        model = quiet(LinearRegression(), labels=Chance(within=category), confidence=0.8).fit(X, y)
        inside = model.answer_.regions.contains(truth[np.isnan(y)])
        for name in "abc":
            rows = np.flatnonzero(category[np.isnan(y)] == name)
            outside[name] += not inside[rows[0]]
            drawn[name] += 1
    for name in "abc":
        assert outside[name] <= binom.ppf(0.999, drawn[name], 0.2)
        assert outside[name] >= binom.ppf(0.001, drawn[name], 0.1)


def test_within_by_definition_and_the_law_of_the_column():
    X, y, _, category = regions_of(0)
    model = quiet(Ridge(), labels=Chance(within=category)).fit(X, y)
    rows = model.calibration_rows_
    for name in "abc":
        own = rows[category[rows] == name]
        scores = np.sort(model.calibration_scores_[category[rows] == name])
        q = scores[int(np.ceil((len(own) + 1) * 0.9 - 1e-9)) - 1]
        widths = model.answer_.regions.measure()[category[np.isnan(y)] == name]
        np.testing.assert_allclose(widths, 2 * q, rtol=1e-9)
    law = model.miscoverage_
    assert isinstance(law, CategoryMiscoverage)
    assert law.n_unlabelled == np.isnan(y).sum()
    assert model.guarantee_.outside.at_most == law.quantile(0.95)
    assert model.guarantee_.headline == "exact if rows were labelled at random within each category"
    assert model.guarantee_.wrong is None
    assert model.select(above=0.0).guarantee.kind == "none"
    with pytest.raises(ValueError, match="one threshold for all rows"):
        model.confidence_for(0.8)


def test_the_law_of_two_categories_by_counting():
    """All pairs of orders of two small urns are equally likely."""
    law = CategoryMiscoverage((Miscoverage(2, 2, 2), Miscoverage(1, 3, 2)))
    counts = []
    for parts in itertools.product(
        itertools.permutations(range(4)), itertools.permutations(range(4))
    ):
        outside = 0
        for (m, c, k), scores in zip(((2, 2, 2), (1, 3, 2)), parts, strict=True):
            outside += int(np.sum(np.array(scores[c : c + m]) > np.sort(scores[:c])[k - 1]))
        counts.append(outside)
    np.testing.assert_allclose(
        law.probabilities, np.bincount(counts, minlength=4) / len(counts), atol=1e-12
    )
    assert law.mean == pytest.approx(np.mean(counts))


def test_categories_with_too_few_labels_are_named():
    X, y, _, category = regions_of(1)
    few = np.flatnonzero((category == "c") & ~np.isnan(y))[3:]
    y[few] = np.nan
    with pytest.warns(
        UserWarning, match="Too few labels for 90 % in 'c': every interval is the whole line there"
    ):
        model = quiet(Ridge(), labels=Chance(within=category)).fit(X, y)
    assert model.guarantee_.kind == "exact"
    assert model.guarantee_.short == ("'c'",)
    assert "Category 'c' has too few calibration labels" in model.guarantee_.statement
    widths = model.answer_.regions.measure()
    np.testing.assert_array_equal(np.isinf(widths), category[np.isnan(y)] == "c")
    with pytest.warns(UserWarning, match="No category has the 1498 labels that 99.9 % takes"):
        assert (
            quiet(Ridge(), labels=Chance(within=category), confidence=0.999)
            .fit(X, y)
            .guarantee_.kind
            == "none"
        )
    X, y, _ = classes(n=160, labelled=100)
    sets = (
        quiet(
            LogisticRegression(),
            labels=Chance(within=np.where(X[:, 0] > 0, "x", "y")),
            confidence=0.8,
        )
        .fit(X, y)
        .answer_
    )
    assert sets.label_sets.any(axis=1).all()


def test_rows_are_compared_within_categories():
    """Labelled at different rates, but by chance within categories: no shift; one within a category is found."""
    X, y, _, category = regions_of(2, n=600)
    X = np.column_stack([X, category == "a"])
    codes = np.unique(category, return_inverse=True)[1]
    assert exchangeability_test(X, ~np.isnan(y)).shifted
    assert exchangeability_test(X, ~np.isnan(y), within=codes).p_value > 0.05
    X[np.isnan(y), 0] += 1.0
    assert exchangeability_test(X, ~np.isnan(y), within=codes).shifted


# --------------------------------------------------------------------------------------------------- order


def test_drift_by_definition_and_its_rate_under_chance():
    rng = np.random.default_rng(0)
    at, error = rng.normal(size=30), rng.normal(size=30)
    found = drift_along(np.arange(60.0), np.arange(60) < 30, at, [error])
    own = abs(spearmanr(at, error).statistic)
    permuted = [abs(spearmanr(rng.permutation(at), error).statistic) for _ in range(400)]
    assert found.p_value == pytest.approx(np.mean(np.array(permuted) >= own), abs=0.1)
    assert found.later == 1.0
    assert found.apart
    flagged = sum(
        drift_along(
            np.arange(40.0), np.arange(40) < 20, rng.random(20), [rng.random(20), rng.random(20)]
        ).found
        for _ in range(200)
    )
    assert flagged <= binom.ppf(0.999, 200, 0.01)


def test_a_drift_of_the_stated_size_is_found():
    hits, n, c = 0, 100, 60
    rng = np.random.default_rng(1)
    size = drift_along(
        np.arange(80.0), np.arange(80) < c, rng.random(c), [rng.random(c)]
    ).detectable
    for _ in range(n):
        at = rng.normal(size=c)
        r = 2 * np.sin(
            np.pi * size / 6
        )  # the correlation of normal pairs with this rank correlation
        error = r * at + np.sqrt(1 - r**2) * rng.normal(size=c)
        hits += drift_along(np.arange(80.0), np.arange(80) < c, at, [error]).found
    assert binom.ppf(1e-3, n, 0.8) <= hits
    assert (
        drift_along(np.arange(9.0), np.arange(9) < 4, np.arange(4.0), [np.arange(4.0)]).p_value
        is None
    )


def test_what_is_assumed_along_an_order():
    X, _, truth = numbers(n=200, labelled=200)
    place = np.arange(200.0)
    later = np.where(place < 100, truth, np.nan)
    model = quiet(Ridge(), labels=Chance(order=place)).fit(X, later)
    assert model.guarantee_.headline == "exact if nothing changes along the order of the rows"
    assert "come later than labelled ones in 100 % of pairs" in model.guarantee_.grounds
    assert "No drift of the errors was found" in model.guarantee_.grounds
    drifting = quiet(Ridge(), labels=Chance(order=pd.date_range("2020-01-01", periods=200))).fit(
        X, later + 0.05 * place
    )
    assert drifting.guarantee_.kind == "approximate"
    assert drifting.guarantee_.drift.found
    assert "Errors at calibration rows drift along it" in drifting.guarantee_.grounds
    spread = np.where(place % 2 == 0, truth, np.nan)
    among = quiet(Ridge(), labels=Chance(order=place)).fit(X, spread)
    assert among.guarantee_.headline == "exact if rows were labelled at random"
    assert "are spread alike along the order" in among.guarantee_.grounds


# ----------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("design", "words"),
    [
        (
            lambda: Grouped(["a"] * 89 + [None]),
            "'groups' names groups, and row 89 .counted from 0. has none",
        ),
        (lambda: Grouped(np.append(np.arange(89.0), np.nan)), "row 89 .counted from 0. has none"),
        (lambda: Grouped(["a"] * 3), "'groups' must have a value for each of the 90 rows"),
        (lambda: Grouped(["a"] * 90), "All labels are of one group"),
        (lambda: Grouped(np.arange(90) % 2), "Every group has a label"),
        (
            lambda: Chance(within=[None] * 90),
            "'within' names categories, and row 0 .counted from 0. has none",
        ),
        (
            lambda: Chance(order=["soon"] * 90),
            "'order' orders the rows, and row 0 .counted from 0. has 'soon'",
        ),
        (
            lambda: Chance(order=np.append(np.arange(89.0), np.nan)),
            "row 89 .counted from 0. has nothing",
        ),
        (lambda: Grouped(np.arange(90), within=np.arange(90)), "exclude each other"),
    ],
)
def test_bad_designs_get_one_sentence(design, words):
    X, y, _ = numbers()
    with pytest.raises(ValueError, match=words):
        quiet(Ridge(), labels=design()).fit(X, y)


@pytest.mark.parametrize("design", [Grouped(np.arange(120)), Chance(within=np.arange(120) % 2)])
def test_groups_and_categories_leave_no_room_for_classes(design):
    X, y, _ = classes()
    with pytest.raises(ValueError, match="exclude each other"):
        quiet(LogisticRegression(), labels=design, label_conditional=True).fit(X, y)


@pytest.mark.parametrize("by", ["groups", "within"])
def test_labels_of_groups_and_categories_that_end_along_an_order(by):
    """That chance chose among rows, groups or categories is not what then has to be true."""
    X, _, truth = numbers(n=240, labelled=240)
    place = np.arange(240.0)
    later = np.where(place < 120, truth, np.nan)
    kinds = {"groups": np.arange(240) // 4, "within": np.arange(240) % 2}[by]
    design = Grouped(kinds, order=place) if by == "groups" else Chance(within=kinds, order=place)
    model = quiet(Ridge(), labels=design).fit(X, later)
    assert model.guarantee_.headline == "exact if nothing changes along the order of the rows"
    at_random = np.where(np.random.default_rng(0).permutation(240) < 120, truth, np.nan)
    model = quiet(Ridge(), labels=replace(design, order=None)).fit(X, at_random)
    assert "at random" in model.guarantee_.headline
