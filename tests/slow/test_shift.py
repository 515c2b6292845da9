"""Labels that chance did not choose: each guarantee keeps its level over many samples, and chance costs nothing.

One row of each sample is judged, so that the number of rows outside is binomial, or smaller; bounds are exact quantiles
at 1e-6.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from transduce import ConformalTransducer, TransductiveRidge
from transduce.conformal import Chance, Estimated, Grouped, Sampled

SAMPLES = 2000
LEVELS = (0.8, 0.9)


def sample(seed, mask, n=240):
    """Return rows, labels with holes, the truth, and the probability of a label by the features."""
    rng = np.random.default_rng([seed, len(mask)])
    X = rng.normal(size=(n, 2))
    size = np.where(X[:, 0] > 0, 0.2, 1.5)
    noise = size * rng.standard_t(4, size=n)
    if mask == "mild":
        known = 1 / (1 + np.exp(0.4 - 0.7 * X[:, 0]))
    elif mask == "strong":
        known = 1 / (1 + np.exp(0.4 - 1.5 * X[:, 0]))
    else:
        known = np.full(n, 0.4)
    odds = known / (1 - known)
    factor = 1.0
    if mask.startswith("label"):
        factor = float(mask.split()[1])
        odds = odds * np.where(np.abs(noise) > size, 1 / factor, factor)
    truth = X[:, 0] + noise
    return X, np.where(rng.random(n) < odds / (1 + odds), truth, np.nan), truth, known, factor


def outside(make, mask):
    """Return at how many samples the first unlabelled row is outside, for each level."""
    found = dict.fromkeys(LEVELS, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(SAMPLES):
            X, y, truth, known, factor = sample(seed, mask)
            first = truth[np.isnan(y)][:1]
            for level in LEVELS:
                answer = make(level, known, factor).fit(X, y).answer_
                found[level] += not answer.regions.contains(truth[np.isnan(y)])[0]
            assert len(first)
    return found


def conformal(level, estimator=None, **settings):
    return ConformalTransducer(
        LinearRegression() if estimator is None else estimator,
        confidence=level,
        test_exchangeability=False,
        random_state=0,
        **settings,
    )


@pytest.mark.parametrize("mask", ["mild", "strong"])
def test_known_probabilities(mask):
    found = outside(lambda level, known, factor: conformal(level, labels=Sampled(known)), mask)
    for level, number in found.items():
        assert number <= binom.ppf(1 - 1e-6, SAMPLES, 1 - level), (level, number)


def test_known_probabilities_around_a_transducer():
    found = outside(
        lambda level, known, factor: conformal(level, TransductiveRidge(), labels=Sampled(known)),
        "mild",
    )
    for level, number in found.items():
        assert number <= binom.ppf(1 - 1e-6, SAMPLES, 1 - level), (level, number)


@pytest.mark.parametrize("mask", ["label 1.5", "label 2"])
def test_odds_that_depend_on_the_label_within_the_factor(mask):
    found = outside(
        lambda level, known, factor: conformal(level, labels=Chance(sensitivity=factor)), mask
    )
    for level, number in found.items():
        assert number <= binom.ppf(1 - 1e-6, SAMPLES, 1 - level), (level, number)
    usual = outside(lambda level, known, factor: conformal(level), mask)
    assert usual[0.9] > binom.ppf(1 - 1e-6, SAMPLES, 0.1)


@pytest.mark.parametrize("level", LEVELS)
def test_sets_of_classes_with_known_probabilities(level):
    number = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(SAMPLES):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(240, 2))
            truth = (
                (X[:, 0] + 1.5 * rng.normal(size=240) > 0).astype(int).astype(str).astype(object)
            )
            known = 1 / (1 + np.exp(0.4 - X[:, 0] ** 2))
            y = np.where(rng.random(240) < known, truth, None)
            model = conformal(level, LogisticRegression(), labels=Sampled(known)).fit(X, y)
            code = np.searchsorted(model.classes_.astype(str), truth[model.answer_.rows[0]])
            number += not model.answer_.label_sets[0, code]
    assert number <= binom.ppf(1 - 1e-6, SAMPLES, 1 - level)


@pytest.mark.parametrize("level", LEVELS)
def test_a_row_of_a_new_group(level):
    """Groups of very different sizes, whose rows share their error."""
    number = 0
    for seed in range(SAMPLES):
        rng = np.random.default_rng(seed)
        groups = np.repeat(np.arange(50), rng.integers(1, 15, 50))
        X = rng.normal(size=(len(groups), 2))
        truth = X[:, 0] + rng.standard_t(3, size=50)[groups] + 0.1 * rng.normal(size=len(groups))
        known = np.isin(groups, rng.choice(50, 25, replace=False)) & (rng.random(len(groups)) < 0.8)
        y = np.where(known, truth, np.nan)
        new = np.setdiff1d(groups, groups[known])
        row = rng.choice(np.flatnonzero(groups == rng.choice(new)))
        answer = conformal(level, labels=Grouped(groups)).fit(X, y).answer_
        number += not answer.regions.contains(truth[answer.rows])[
            np.flatnonzero(answer.rows == row)[0]
        ]
    assert number <= binom.ppf(1 - 1e-6, SAMPLES, 1 - level)
    assert number >= binom.ppf(1e-6, SAMPLES, 0.6 * (1 - level))


def test_chance_costs_nothing():
    """On tables labelled by chance, intervals of the default are within 2 % of those without a test."""
    tables = [load_diabetes(return_X_y=True), make_friedman1(500, random_state=0)]
    ratios = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for X, truth in tables:
            for seed in range(100):
                rng = np.random.default_rng(seed)
                y = np.where(rng.random(len(truth)) < 0.25, truth, np.nan)
                widths = [
                    np.median(
                        ConformalTransducer(LinearRegression(), random_state=seed, labels=labels)
                        .fit(X, y)
                        .answer_.regions.measure()
                    )
                    for labels in (Chance(), Chance(reweight=False))
                ]
                ratios.append(widths[0] / widths[1])
    finite = np.array(ratios)[np.isfinite(ratios)]
    assert len(finite) >= 195
    assert abs(np.exp(np.log(finite).mean()) - 1.0) < 0.02


def test_estimated_weights_help_where_features_tell():
    """Not a guarantee: coverage under a shift is nearer to the level than with equal weights."""
    inside = {Chance(reweight=False): [], Estimated(): []}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(60):
            X, y, truth, _, _ = sample(seed, "strong", n=500)
            for labels, found in inside.items():
                forest = RandomForestRegressor(50, min_samples_leaf=5, random_state=0)
                answer = conformal(0.9, forest, labels=labels).fit(X, y).answer_
                found.append(answer.regions.contains(truth[answer.rows]).mean())
    assert np.mean(inside[Chance(reweight=False)]) < 0.84
    assert np.mean(inside[Estimated()]) > np.mean(inside[Chance(reweight=False)]) + 0.04
