"""Labels chosen with known probabilities, and odds that may be off by a factor: by definition, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from tests import brute
from tests.conformal.test_transducer import classes, numbers, quiet
from transduce import ConformalTransducer, TransductiveRidge
from transduce.conformal import Chance, Drawn, Sampled
from transduce.conformal.scores import WeightedRanks, label_sets

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(1, 6), st.sampled_from([0.5, 0.8, 0.9]), st.sampled_from([1.0, 1.5, 3.0]))
def test_p_values_and_thresholds_by_definition(seed, c, confidence, factor):
    """The largest p-value over all odds in the box; a score is inside if it exceeds 1 - confidence."""
    rng = np.random.default_rng(seed)
    scores, at = rng.integers(0, 4, c).astype(float), rng.integers(0, 5, 3).astype(float)
    weights, own = rng.uniform(0.0, 2.0, c), rng.uniform(0.1, 3.0, 3)
    ranking = WeightedRanks(scores, np.zeros(c), np.zeros(3), weights, own, factor)
    wanted = [
        brute.weighted_p_value(scores, weights, s, w, factor) for s, w in zip(at, own, strict=True)
    ]
    np.testing.assert_allclose(ranking.p_values(at), wanted, rtol=1e-12)
    limits, closed = ranking.thresholds(confidence)
    np.testing.assert_array_equal(at <= limits, label_sets(ranking.p_values(at), confidence))
    assert closed.all()
    np.testing.assert_array_equal(np.isinf(limits), ranking.unbounded(confidence))


@pytest.mark.few(3)
@pytest.mark.parametrize("probability", [0.3, 1 / 3, 0.9])
@pytest.mark.parametrize("ties", ["inside", "random"])
def test_equal_probabilities_change_nothing(probability, ties):
    """Bit for bit, the column included."""
    X, y, _ = numbers()
    for inner in (TransductiveRidge(), Ridge()):
        usual = quiet(inner, ties=ties, refit=True).fit(X, y)
        same = quiet(
            inner, ties=ties, refit=True, labels=Sampled(np.full(len(y), probability))
        ).fit(X, y)
        np.testing.assert_array_equal(usual.answer_.regions.hull(), same.answer_.regions.hull())
        np.testing.assert_array_equal(usual.mean_, same.mean_)
        assert usual.miscoverage_ == same.miscoverage_
        assert usual.guarantee_.statement == same.guarantee_.statement
        assert same.guarantee_.headline == "exact if the given probabilities are right"
    X, y, _ = classes()
    for by_class in (False, True):
        settings = {"ties": ties, "label_conditional": by_class, "confidence": 0.8}
        usual = quiet(LogisticRegression(), **settings).fit(X, y)
        same = quiet(LogisticRegression(), labels=Sampled([probability] * len(y)), **settings).fit(
            X, y
        )
        np.testing.assert_array_equal(usual.answer_.p_values, same.answer_.p_values)
        np.testing.assert_array_equal(usual.answer_.label_sets, same.answer_.label_sets)
        np.testing.assert_array_equal(usual.mean_, same.mean_)


def designed(seed, n=200, strength=1.5):
    """Return rows labelled with a probability that depends on a feature, where errors are larger for the rare ones."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    truth = X[:, 0] + np.where(X[:, 0] > 0, 0.2, 1.5) * rng.standard_t(4, size=n)
    probability = 1 / (1 + np.exp(0.4 - strength * X[:, 0]))
    return X, np.where(rng.random(n) < probability, truth, np.nan), truth, probability


def test_intervals_by_definition():
    X, y, _, probability = designed(0)
    model = quiet(Ridge(), confidence=0.8, labels=Sampled(probability)).fit(X, y)
    rows, odds = model.calibration_rows_, (1 - probability) / probability
    fitted = Ridge().fit(
        *(part[np.setdiff1d(np.flatnonzero(~np.isnan(y)), rows)] for part in (X, y))
    )
    scores = np.abs(y - fitted.predict(X))[rows]
    for j, row in enumerate(np.flatnonzero(np.isnan(y))):
        p = np.array([odds[rows][scores >= s].sum() + odds[row] for s in scores]) / (
            odds[rows].sum() + odds[row]
        )
        half = (
            scores[p > 0.2].max() if odds[row] <= 0.2 * (odds[rows].sum() + odds[row]) else np.inf
        )
        middle = fitted.predict(X[row : row + 1])[0]
        np.testing.assert_allclose(
            model.answer_.regions.hull()[j], [middle - half, middle + half], rtol=1e-6
        )


@pytest.mark.parametrize("n", [80, pytest.param(400, marks=pytest.mark.slow)])
def test_the_level_holds_for_known_probabilities(n):
    """One row of each of many samples: outside no more often than stated; weighted alike, far more often."""
    outside, naive = 0, 0
    for seed in range(n):
        X, y, truth, probability = designed(seed)
        row = np.flatnonzero(np.isnan(y))[0]
        known = quiet(LinearRegression(), labels=Sampled(probability)).fit(X, y)
        outside += not known.answer_.regions.contains(truth[np.isnan(y)])[0]
        naive += (
            not quiet(LinearRegression()).fit(X, y).answer_.regions.contains(truth[np.isnan(y)])[0]
        )
        assert known.answer_.rows[0] == row
    assert outside <= binom.ppf(0.999, n, 0.1)
    assert outside >= binom.ppf(1e-3, n, 0.02)  # and not because everything is possible
    assert naive > binom.ppf(0.9999, n, 0.1)


def chosen_by_value(seed, factor, n=300):
    """Return rows whose odds of being labelled depend on the size of the error itself, by a factor either way."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    noise = rng.normal(size=n)
    truth = X[:, 0] + noise
    odds = np.where(np.abs(noise) > 1.0, 0.6 / factor, 0.6 * factor)
    return X, np.where(rng.random(n) < odds / (1 + odds), truth, np.nan), truth


@pytest.mark.parametrize(
    ("factor", "n"),
    [(2.0, 80), *(pytest.param(k, 300, marks=pytest.mark.slow) for k in (1.5, 2.0))],
)
def test_the_level_holds_within_the_factor(factor, n):
    outside, naive = 0, 0
    for seed in range(n):
        X, y, truth = chosen_by_value(seed, factor)
        first = np.flatnonzero(np.isnan(y))[0]
        model = quiet(LinearRegression(), confidence=0.8, labels=Chance(sensitivity=factor)).fit(
            X, y
        )
        outside += not model.answer_.regions.contains(truth[np.isnan(y)])[0]
        plain = model.widths_at([1.0])["width"][0] / 2
        naive += abs(truth[first] - model.answer_.values[0]) > plain
    assert outside <= binom.ppf(0.999, n, 0.2)
    assert naive > binom.ppf(0.9999, n, 0.2)


def test_factor_one_is_the_known_design_and_larger_factors_are_wider():
    X, y, _, probability = designed(3)
    one = quiet(Ridge(), labels=Sampled(probability), confidence=0.8).fit(X, y)
    same = quiet(Ridge(), labels=Sampled(probability, sensitivity=1), confidence=0.8).fit(X, y)
    np.testing.assert_array_equal(one.answer_.regions.hull(), same.answer_.regions.hull())
    found = one.widths_at((1.0, 1.5, 2.0))
    assert found["width"].is_monotonic_increasing
    wider = quiet(
        Ridge(),
        labels=Sampled(probability, sensitivity=2.0),
        confidence=0.8,
        calibration=len(one.calibration_rows_),
    ).fit(X, y)
    assert found["width"][2] == np.median(wider.answer_.regions.measure())
    assert (
        wider.guarantee_.headline
        == "exact if the odds of being labelled are off by no more than a factor of 2"
    )
    grounds = wider.guarantee_.grounds
    assert "up to a factor of 2 either way in the odds of being labelled" in grounds
    assert grounds.count("It holds") == 1  # one condition, and not two that contradict each other


def test_what_is_not_known_of_weighted_rows_is_not_said():
    X, y, _, probability = designed(1)
    model = ConformalTransducer(Ridge(), labels=Sampled(probability), random_state=0).fit(X, y)
    assert model.guarantee_.kind == "exact"
    assert model.guarantee_.outside is None
    assert model.guarantee_.wrong is None
    assert model.miscoverage_ is None
    assert model.exchangeability_ is None
    assert 1 < model.guarantee_.effective < len(model.calibration_rows_)
    assert "worth" in model.guarantee_.grounds
    assert "not tested" not in model.guarantee_.grounds
    for ask in (
        model.outside_at_most,
        model.outside_at_all_levels,
        lambda: model.confidence_for(0.8),
    ):
        with pytest.raises(ValueError, match="the guarantee is for each row"):
            ask()
    with pytest.raises(ValueError, match="no bound on wrong answers"):
        model.wrong_at_most()
    assert model.select(above=0.0).guarantee.kind == "none"


def test_weighted_means_are_nearer():
    """Residuals weighted by the odds that a row has no label: the error of the plain mean is corrected."""
    errors = {"weighted": [], "plain": []}
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 1))
        truth = X[:, 0] ** 2 + 0.1 * rng.normal(size=300)
        probability = np.where(np.abs(X[:, 0]) > 1, 0.1, 0.5)
        y = np.where(rng.random(300) < probability, truth, np.nan)
        goal = truth[np.isnan(y)].mean()
        known = quiet(LinearRegression(), labels=Sampled(probability)).fit(X, y)
        errors["weighted"].append(known.mean_["estimate"].iloc[0] - goal)
        errors["plain"].append(quiet(LinearRegression()).fit(X, y).mean_["estimate"].iloc[0] - goal)
    assert abs(np.mean(errors["weighted"])) < abs(np.mean(errors["plain"])) / 3


def test_rows_that_weigh_too_much_get_the_whole_line():
    X, y, _, probability = designed(2)
    last = np.flatnonzero(np.isnan(y))[-1]
    probability[last] = 1e-6
    model = quiet(Ridge(), labels=Sampled(probability)).fit(X, y)
    assert model.guarantee_.n_unbounded >= 1
    assert np.isinf(model.answer_.regions.measure()[-1])
    assert "labelled so rarely" in model.guarantee_.statement
    with pytest.warns(UserWarning, match="cannot support 99.9999 % with odds"):
        assert model.answer_at(0.999999).guarantee.kind == "none"


@pytest.mark.parametrize(
    ("design", "words"),
    [
        (lambda: Sampled(0.5), "give an array with a value for each of the 90 rows"),
        (lambda: Sampled("p"), "probability='p' names a column, and there is no table here"),
        (
            lambda: Sampled(np.full(3, 0.5)),
            "'probability' must have a value for each of the 90 rows",
        ),
        (lambda: Sampled(["often"] * 90), r"row 0 \(counted from 0\) has 'often'"),
        (lambda: Sampled(np.append(np.full(89, 0.5), 0.0)), r"row 89 \(counted from 0\) has 0.0"),
        (lambda: Sampled(np.append(np.full(89, 0.5), 1.5)), r"row 89 \(counted from 0\) has 1.5"),
        (
            lambda: Sampled(np.append(np.full(89, 0.5), np.nan)),
            r"row 89 \(counted from 0\) has nothing",
        ),
        (lambda: Sampled(np.ones(90)), "was sure to be labelled, and it has no label"),
        (lambda: Chance(sensitivity=0.5), "a factor from 1 on"),
        (lambda: Chance(sensitivity="much"), "positive number"),
        (lambda: "chance", "Drawn.rows., Sampled.probability., .* got 'chance'"),
    ],
)
def test_bad_designs_get_one_sentence(design, words):
    X, y, _ = numbers()
    with pytest.raises(ValueError, match=words):
        quiet(Ridge(), labels=design()).fit(X, y)


def test_drawn_rows_say_how_many_calibrate():
    X, y, _ = numbers()
    drawn = np.zeros(90, dtype=bool)
    drawn[np.flatnonzero(~np.isnan(y))[:20]] = True
    with pytest.raises(ValueError, match="leave calibration at 'auto'"):
        quiet(Ridge(), labels=Drawn(drawn), calibration=10).fit(X, y)
