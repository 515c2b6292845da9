"""Odds of a label that are estimated from the features: cross-fitted, capped, and what is guaranteed with them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from tests.conformal.test_transducer import classes, numbers
from tests.conformal.test_weights import designed
from transduce import ConformalTransducer
from transduce.conformal import Chance, Estimated
from transduce.conformal.designs import propensity
from transduce.conformal.designs.propensity import _cross_fit, _deal, estimate_odds
from transduce.core.assumptions import ESTIMATE
from transduce.population.draws import draw_rows


def shifted(seed=0, n=400, strength=1.2):
    X, y, truth, probability = designed(seed, n, strength)
    return X, y, truth, probability


def fit(X, y, inner=None, **settings):
    settings = {"random_state": 0, "test_exchangeability": False, **settings}
    return ConformalTransducer(LinearRegression() if inner is None else inner, **settings).fit(X, y)


def test_a_row_does_not_tell_its_own_odds():
    """With the same folds, the other mark at a row leaves its probability as it is, and moves others."""
    rng = np.random.RandomState(0)
    X, labelled = rng.normal(size=(60, 3)), rng.uniform(size=60) < 0.4
    fold = _deal(labelled, rng)
    before = _cross_fit(LogisticRegression(), X, labelled, fold, rng)
    other = labelled.copy()
    other[7] = ~other[7]
    after = _cross_fit(LogisticRegression(), X, other, fold, rng)
    np.testing.assert_array_equal(before[fold == fold[7]], after[fold == fold[7]])
    assert not np.array_equal(before, after)


def test_odds_are_near_the_true_ones_and_capped():
    X, y, _, probability = shifted(n=2000)
    found = estimate_odds(X, ~np.isnan(y), 0)
    assert found.model == "logistic regression"
    true = (1 - probability) / probability
    apart = np.log(found.odds) - np.log(np.minimum(true, np.quantile(true[~np.isnan(y)], 0.95)))
    assert np.std(apart) < 0.25
    assert np.sum(found.odds == found.odds.max()) > 1
    assert np.mean(found.odds[~np.isnan(y)] == found.odds.max()) <= 0.0501


def test_shapes_that_no_line_follows_are_found_by_trees():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2))
    labelled = rng.random(800) < np.where(np.abs(X[:, 0]) > 0.7, 0.8, 0.1)
    assert estimate_odds(X, labelled, 0).model == "random forest"


def test_of_many_rows_some_are_enough(monkeypatch):
    X, y, _, _ = shifted(n=2000)
    monkeypatch.setattr(propensity, "MOST_ROWS", 200)
    few = estimate_odds(X, ~np.isnan(y), 0)
    monkeypatch.undo()
    every = estimate_odds(X, ~np.isnan(y), 0)
    assert np.corrcoef(np.log(few.odds), np.log(every.odds))[0, 1] > 0.97
    assert abs(np.log(few.odds).mean() - np.log(every.odds).mean()) < 0.3


@pytest.mark.parametrize("n", [3, pytest.param(5, marks=pytest.mark.slow)])
def test_chance_leaves_answers_as_they_are(n):
    """Where no column tells who has a label, weights are equal and answers the same bit for bit; never is it exact."""
    same = 0
    for seed in range(n):
        X, y, _ = numbers(n=200, labelled=80, seed=seed)
        usual, found = fit(X, y), fit(X, y, labels=Estimated())
        if found.estimated_odds_.model == "chance":
            same += 1
            np.testing.assert_array_equal(
                usual.answer_.regions.hull(), found.answer_.regions.hull()
            )
            assert (found.guarantee_.kind, found.guarantee_.assumptions) == (
                "approximate",
                (ESTIMATE,),
            )
            assert (found.guarantee_.outside, found.miscoverage_) == (None, None)
            assert found.select(tolerance=1.0).guarantee.kind == "approximate"
    assert same >= 2


@pytest.mark.parametrize("n", [4, pytest.param(8, marks=pytest.mark.slow)])
def test_coverage_under_a_shift(n):
    """Estimated weights bring coverage near the level, where equal weights fall far behind."""
    inside = {Chance(reweight=False): [], Estimated(): []}
    for seed in range(n):
        X, y, truth, _ = shifted(seed)
        for labels, found in inside.items():
            model = fit(X, y, labels=labels)
            found.append(model.answer_.regions.contains(truth[np.isnan(y)]).mean())
    assert np.mean(inside[Chance(reweight=False)]) < 0.83
    assert np.mean(inside[Estimated()]) > 0.87


def test_a_test_that_rejects_brings_weights():
    X, y, _, _ = shifted()
    with pytest.warns(UserWarning, match="Labelled and unlabelled rows differ"):
        model = ConformalTransducer(Ridge(), random_state=0).fit(X, y)
    assert model.guarantee_.kind == "approximate"
    assert model.guarantee_.outside is None
    assert model.guarantee_.effective >= 20
    assert "so that the guarantee cannot be exact" in model.guarantee_.grounds
    with pytest.warns(UserWarning, match="Labelled and unlabelled rows differ"):
        ignored = ConformalTransducer(Ridge(), random_state=0, labels=Chance(reweight=False)).fit(
            X, y
        )
    assert ignored.estimated_odds_ is None
    assert ignored.guarantee_.kind == "approximate"
    assert ignored.guarantee_.outside is not None


@pytest.mark.filterwarnings("ignore:Labelled and unlabelled rows differ")
def test_too_little_in_common_guarantees_nothing_and_says_what_would_help():
    X, y, _, _ = shifted(strength=5.0)
    model = fit(X, y, labels=Estimated())
    found = model.guarantee_
    assert found.kind == "none"
    assert "worth" in found.grounds
    assert "90 % takes 20" in found.grounds
    assert found.remedy == tuple(draw_rows(np.isnan(y), 20, 0))
    assert f"Rows {found.remedy[0] + 1}, {found.remedy[1] + 1}, " in found.grounds
    assert np.isinf(model.answer_.regions.measure()).all()
    np.testing.assert_array_equal(
        model.answer_.values, fit(X, y, labels=Chance(reweight=False)).answer_.values
    )
    assert model.answer_at(0.3).guarantee.kind == "approximate"
    assert len(fit(X, y, labels=Estimated(), confidence=0.97).guarantee_.remedy) == 33
    apart = X + 50.0 * np.isnan(y)[:, None]
    with pytest.warns(
        UserWarning, match="rows have too little in common for 59 calibration labels"
    ):
        nothing = fit(apart, y, labels=Estimated()).guarantee_
    assert nothing.kind == "none"
    assert len(nothing.remedy) == 20
    X, y, _ = classes(n=200, gap=0.5)
    far = X + 4.0 * np.array([label is None for label in y])[:, None]
    model = fit(far, y, LogisticRegression(), labels=Estimated())
    assert model.guarantee_.kind == "none"
    assert model.answer_.label_sets.all()


def test_rows_that_no_labelled_row_is_like_get_the_whole_line():
    """Labels from one half of the range only: at the other half nothing is ruled out."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(400, 1))
    truth = 2 * X[:, 0] + rng.normal(size=400)
    y = np.where((X[:, 0] < 6) & (rng.random(400) < 0.6), truth, np.nan)
    model = fit(X, y, labels=Estimated())
    unbounded = np.isinf(model.answer_.regions.measure())
    far = X[np.isnan(y), 0] > 7
    assert unbounded[far].all()
    assert unbounded[~far].mean() < 0.3
    assert model.guarantee_.n_unbounded == unbounded.sum()
    assert model.answer_.regions.contains(truth[np.isnan(y)])[far].all()


def test_any_table_will_do():
    X, y, _, _ = shifted(n=300)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(c=np.where(X[:, 1] > 0, "x", "y"))
    found = estimate_odds(frame, ~np.isnan(y), 0)
    assert found.model != "chance"
    assert estimate_odds(np.zeros((20, 2)), np.arange(20) < 10, 0).model == "chance"
    assert estimate_odds(X[:20], np.arange(20) < 4, 0).model == "chance"


def test_a_bad_setting_gets_one_sentence():
    with pytest.raises(ValueError, match="reweight must be True or False"):
        Chance(reweight="perhaps")
