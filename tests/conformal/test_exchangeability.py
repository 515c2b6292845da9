"""Whether unlabelled rows look like labelled ones: rates under chance, power under shifts, any table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import binom, ks_2samp, kstest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import roc_auc_score

from tests import brute
from tests.libraries import ON_PROCESSOR, dispatch, give
from tests.libraries import polars as pl
from transduce.conformal import exchangeability_test
from transduce.conformal.exchangeability import (
    RESIDUAL_RIDGE,
    RIDGE,
    SIGNIFICANCE,
    _areas,
    _by_feature,
    _distances,
    _out_of_fold,
    _residuals,
    _residuals_apart,
    table_features,
)
from transduce.core.findings import FALSE_ALARMS, Verdict

# --------------------------------------------------------------------------------------------------- exact


def test_statistics_by_definition():
    rng = np.random.default_rng(0)
    features = rng.integers(0, 6, size=(40, 3)).astype(float)
    members = np.column_stack([rng.permutation(np.arange(40) < 15) for _ in range(4)]).astype(float)
    scores = rng.integers(0, 9, size=(40, 4)).astype(float)
    for b in range(4):
        unlabelled = members[:, b] == 1
        assert _areas(scores, members)[b] == pytest.approx(roc_auc_score(unlabelled, scores[:, b]))
        for j in range(3):
            expected = ks_2samp(features[unlabelled, j], features[~unlabelled, j]).statistic
            assert _distances(features, members)[j, b] == pytest.approx(expected)


def test_scores_are_out_of_fold():
    """By fitting ridge regression on the other folds."""
    rng = np.random.default_rng(1)
    Z, fold = rng.normal(size=(30, 4)), np.arange(30) % 5
    K = Z @ Z.T
    z = (rng.random(30) < 0.5).astype(float)
    scores = _out_of_fold(K, [fold], z[:, None])[:, 0]
    for k in range(5):
        train = fold != k
        weights = np.linalg.solve(
            K[np.ix_(train, train)] + RIDGE * np.eye(24), z[train] - z[train].mean()
        )
        np.testing.assert_allclose(scores[~train], K[np.ix_(~train, train)] @ weights, atol=1e-10)


@pytest.mark.parametrize("n_columns", [1, 4, 50])
def test_residuals_by_definition(n_columns):
    """By refitting every column on the others; more columns than rows too."""
    rng = np.random.default_rng(2)
    columns = rng.integers(0, 9, size=(40, n_columns)) + 0.1 * rng.normal(size=(40, 1))
    expected = brute.residuals_of_columns(columns, RESIDUAL_RIDGE)
    np.testing.assert_allclose(_residuals(columns), expected, atol=1e-10)
    members = np.column_stack([rng.permutation(np.arange(40) < 15) for _ in range(3)])
    apart = _residuals_apart(columns, members.astype(float))
    sizes = np.round(np.abs(expected), 10)
    for b in range(3):
        for j in range(n_columns):
            by_pairs = brute.pairs_apart(sizes[:, j], members[:, b])
            assert apart[j, b] == pytest.approx(by_pairs, abs=1e-9)


def test_p_values_of_features_are_of_the_largest_of_any():
    """By hand: distance and residuals of a feature in units of their spread, against the largest of all features."""
    rng = np.random.default_rng(4)
    residuals, distances = rng.random(size=(2, 3, 20))
    found = _by_feature(["a", "b", "c"], residuals, distances)
    units = [(each.max(axis=0).mean(), each.max(axis=0).std()) for each in (residuals, distances)]

    def in_units(b, features):
        pairs = zip((residuals, distances), units, strict=True)
        return max((each[j, b] - mean) / spread for each, (mean, spread) in pairs for j in features)

    for j, name in enumerate("abc"):
        larger = [in_units(b, range(3)) >= in_units(0, [j]) - 1e-9 for b in range(20)]
        assert found.loc[name, "p_value"] == pytest.approx(np.mean(larger))
    assert found["p_value"].is_monotonic_increasing


# ---------------------------------------------------------------------------------------------------- laws


def check_chance(n_draws):
    """On real rows, random masks: p-values no smaller than uniform (Kolmogorov-Smirnov, one-sided)."""
    X = load_diabetes().data[:80]
    rng = np.random.default_rng(0)
    p = [
        exchangeability_test(
            X, rng.permutation(80) < 30, n_permutations=39, random_state=seed
        ).p_value
        for seed in range(n_draws)
    ]
    assert kstest(p, "uniform", alternative="greater").pvalue > 1e-3
    assert np.sum(np.array(p) <= 0.1) <= binom.ppf(0.999, n_draws, 0.1)


def test_chance_is_flagged_as_often_as_stated():
    """30 draws here, 200 in tests/slow."""
    check_chance(30)


@pytest.mark.parametrize("shift", ["mean", "spread", "dependence", "rare"])
def test_shifts_are_flagged(shift):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 6))
    unlabelled = np.arange(400) >= 150
    if shift == "mean":
        X[unlabelled, 2] += 0.8
    elif shift == "spread":
        X[unlabelled, 2] *= 2.5
    elif shift == "dependence":
        X[unlabelled, 2] = 0.95 * X[unlabelled, 3] + 0.3 * X[unlabelled, 2]
    else:
        X[unlabelled & (rng.random(400) < 0.3), 2] = 9.0
    found = exchangeability_test(X, ~unlabelled)
    assert found.shifted
    assert "rows differ" in str(found.verdict)
    if shift != "dependence":
        assert found.features.index[0] == "column 2"
        assert "column 2" in str(found.verdict)
        assert found.features["p_value"].iloc[0] <= 0.01
    assert found.auc > 0.5


@pytest.mark.parametrize("way", ["regression", "mean"])
def test_a_column_that_was_imputed_where_the_label_is_missing_is_flagged_by_name(way):
    """Its distribution may be the same, or nearly so; the other columns explain it too well there."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(280, 5))
    labelled = rng.permutation(280) < 60
    X[:, 4] = 0.6 * X[:, 0] + 0.6 * X[:, 1] + 0.9 * X[:, 4]
    true = exchangeability_test(X, labelled)
    assert not true.shifted
    weights = np.linalg.lstsq(X[labelled, :4], X[labelled, 4], rcond=None)[0]
    guess = X[:, :4] @ weights if way == "regression" else X[labelled, 4].mean()
    X[:, 4] = np.where(labelled, X[:, 4], guess)
    found = exchangeability_test(X, labelled)
    assert found.shifted
    assert found.features.index[0] == "column 4"
    assert "column 4" in str(found.verdict)


def test_labels_gathered_on_purpose_are_flagged_by_name():
    table = load_breast_cancer(as_frame=True).data
    largest = table["mean radius"].rank() > 400
    found = exchangeability_test(table, largest, n_permutations=499)
    assert found.p_value == pytest.approx(1 / 500)
    assert "'mean radius'" in str(found.verdict)
    assert "569" not in str(found)
    assert "a random 200 of all 569 rows" in str(exchangeability_test(table, largest, max_rows=200))


def test_same_seed_same_answer():
    X = np.random.default_rng(0).normal(size=(60, 2))
    labelled = np.arange(60) < 20
    one, two = (exchangeability_test(X, labelled, random_state=4) for _ in range(2))
    assert one.p_value == two.p_value
    pd.testing.assert_frame_equal(one.features, two.features)
    scaled = exchangeability_test(np.exp(X) * [1e200, 1e-200], labelled, random_state=4)
    assert scaled.p_value == one.p_value  # ranks are all that is used


def test_any_table():
    rng = np.random.default_rng(0)
    labelled = np.arange(60) < 30
    frame = pd.DataFrame(
        {
            "größe": np.where(labelled, rng.random(60), np.nan),
            "stadt": np.where(labelled, "Köln", "Bonn"),
            "tag": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(60), unit="D"),
            "dauer": pd.to_timedelta(np.arange(60) % 7, unit="h"),
            "art": pd.Categorical(np.arange(60) % 3),
        }
    )
    found = exchangeability_test(frame, labelled)
    assert found.shifted
    assert set(found.features.index) == {
        "'größe'", "'größe' is missing", "'stadt' is 'Köln'", "'stadt' is 'Bonn'", "'tag'", "'dauer'", "'art'",
    }  # fmt: skip
    assert (
        exchangeability_test(
            pl.DataFrame({"a": [1.0, None] * 30, "t": list("xyz") * 20}), labelled
        ).p_value
        > 0.5
    )
    texts = ["viel regen" if known else "viel sonne" for known in labelled]
    assert "the word 'regen'" in str(exchangeability_test(texts, labelled).verdict)
    counts = sparse.random(60, 300, density=0.3, random_state=0).tolil()
    counts[labelled.nonzero()[0], 7] = 5.0
    assert "column 7" in str(exchangeability_test(counts.tocoo(), labelled).verdict)
    wide = rng.normal(size=(60, 250))
    wide[labelled, 11] += 3.0
    assert exchangeability_test(wide, labelled).features.index[0] == "column 11"
    assert exchangeability_test([[1.0, "a"], [2.0, "b"]] * 30, labelled).p_value > 0.5


# --------------------------------------------------------------------------------------------------- limits


def test_what_cannot_be_compared_is_not_tested():
    X = np.random.default_rng(0).normal(size=(20, 2))
    for rows, labelled in (
        (X, np.arange(20) < 2),
        (np.zeros((20, 2)), np.arange(20) < 10),
        (X, np.ones(20, bool)),
    ):
        found = exchangeability_test(rows, labelled)
        assert found.p_value == 1.0
        assert not found.shifted
        assert "cannot be tested" in str(found)
    assert table_features(["", ""], [0, 1])[1] == []


# ------------------------------------------------------------------------------------------------- refusals


def test_refusals():
    X = np.zeros((20, 2))
    for bad in (np.arange(20), np.ones(3, bool), None):
        with pytest.raises(
            ValueError, match="labelled must be True or False for each of the 20 rows"
        ):
            exchangeability_test(X, bad)
    for setting, words in (
        ({"n_permutations": 0}, "n_permutations must be a whole number from 1"),
        ({"max_rows": 3}, "max_rows must be a whole number from 10"),
    ):
        with pytest.raises(ValueError, match=words):
            exchangeability_test(X, np.ones(20, bool), **setting)


@pytest.mark.parametrize("n_features", [2, pytest.param(201, marks=pytest.mark.slow)])
def test_a_shift_of_the_stated_size_is_found(n_features):
    """Four times in five at least (exact binomial bound), and half of it far less often."""
    found, half, n = 0, 0, 10
    for seed in range(n):
        X = np.random.default_rng(seed).normal(size=(100, n_features))
        labelled = np.arange(100) < 40
        size = exchangeability_test(X, labelled, n_permutations=199, random_state=seed).detectable
        X[labelled, 0] += size
        found += exchangeability_test(X, labelled, n_permutations=199, random_state=seed).shifted
        X[labelled, 0] -= size / 2
        half += exchangeability_test(X, labelled, n_permutations=199, random_state=seed).shifted
    assert found >= binom.ppf(1e-3, n, 0.8)
    assert half <= binom.ppf(1 - 1e-3, n, 0.5)


def test_verdicts_are_graded():
    sure, signs, none = (Verdict(p, p <= 0.01, 40, 60, ("'age'",), 1.1) for p in (0.004, 0.06, 0.3))
    assert "rows differ (p = 0.004, most of all in 'age')" in str(sure)
    assert (
        "signs of a difference between 40 labelled and 60 unlabelled rows, too weak to be sure"
        in str(signs)
    )
    assert "(p = 0.06, most of all in 'age')" in str(signs)
    assert (sure.suspected, signs.suspected, none.suspected) == (False, True, False)
    assert "Chance alone raises this alarm in 1 of 100 tables" in str(sure)
    assert pytest.approx(1.0 / FALSE_ALARMS) == SIGNIFICANCE
    for verdict in (signs, none):
        assert "power of at least 80 % against a shift of one column by 1.1" in verdict.power
        assert "standard deviations" not in str(verdict)  # which is for statisticians
    assert sure.power == ""
    assert "no power, however large" in Verdict(0.5, False, 5, 5).power
    groups = Verdict(0.5, False, 45, 35, units="groups")
    assert "No difference between 45 labelled and 35 unlabelled groups" in str(groups)
    few = exchangeability_test(np.arange(12.0)[:, None], np.arange(12) % 2 == 0, n_permutations=50)
    assert few.detectable is None  # 51 orders cannot give a p-value of 0.01


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_rows_on_a_device_are_compared_within_their_own_categories(name):
    rng = np.random.default_rng(3)
    X, within = rng.normal(size=(300, 2)), rng.integers(0, 3, size=300)
    labelled = rng.random(300) < 0.2 + 0.3 * (within == 1)
    settings = {"within": within, "max_rows": 120, "n_permutations": 49, "random_state": 0}
    here = exchangeability_test(X, labelled, **settings)
    with dispatch():
        assert exchangeability_test(give(X, name), labelled, **settings).p_value == here.p_value
