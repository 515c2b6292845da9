"""The guarantees of ConformalTransducer over hundreds of random splits of real data, for every system.

Given a data set, a random split makes every order of hidden and unlabelled scores equally likely, so the numbers
outside in different splits are independent draws from one law: the beta-binomial distribution, if equal scores are
ordered at random. A chi-square test holds them against it at one in a million; a test of that test shows that it would
notice a level that is off by two points. Add a system to REGRESSORS or CLASSIFIERS and it is tested like the others.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from tests.conformal.test_exchangeability import check_chance
from tests.conformal.test_guarantee import fit_of_law
from transduce import (
    BayesianTransducer,
    ConformalTransducer,
    RidgeConfidenceMachine,
    SpectralGraphTransducer,
    TransductiveGPRegressor,
    TransductiveRidge,
    TransductiveRidgeClassifier,
)
from transduce.conformal import Miscoverage, exchangeability_test

SPLITS = 300
LABELS, HIDDEN, ASKED = 150, 99, 200
LAW = Miscoverage(ASKED, HIDDEN, 90)

REGRESSORS = {
    "ridge": TransductiveRidge(ridge=1.0, width=5.0),
    "gaussian process": TransductiveGPRegressor(
        matching=0.1,
        slack=0.1,
        relevance=False,
        n_restarts=0,
        max_iter=25,
        tol=1e-4,
        random_state=0,
    ),
    "confidence machine": RidgeConfidenceMachine(),
    "random forest": RandomForestRegressor(20, min_samples_leaf=3, random_state=0),
}
CLASSIFIERS = {
    "ridge": TransductiveRidgeClassifier(ridge=1.0, width=8.0),
    "billiard": BayesianTransducer(softness=0.3, tolerance=0.1, n_balls=4, random_state=0),
    "spectral graph": SpectralGraphTransducer(metric="euclidean", random_state=0),
    "random forest": RandomForestClassifier(20, random_state=0),
}


def wrap(inner, split, **settings):
    settings = {
        "calibration": HIDDEN,
        "test_exchangeability": False,
        "random_state": split,
        **settings,
    }
    return ConformalTransducer(inner, **settings)


def draw(data, split, n_labelled=LABELS, n_unlabelled=ASKED):
    """Rows, labels with holes, and the unlabelled rows' truth."""
    X, truth = data(return_X_y=True)
    rows = np.random.default_rng([split, 7]).permutation(len(X))[: n_labelled + n_unlabelled]
    y = np.append(truth[rows[:n_labelled]].astype(float), np.full(n_unlabelled, np.nan))
    return X[rows], y, truth[rows[n_labelled:]]


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_two_points_would_be_noticed():
    rng = np.random.default_rng(0)
    for off in (88, 92):
        other = Miscoverage(ASKED, HIDDEN, off).probabilities
        found = [
            fit_of_law(rng.choice(ASKED + 1, SPLITS, p=other / other.sum()), LAW) < 1e-6
            for _ in range(100)
        ]
        assert np.mean(found) > 0.95


@pytest.mark.parametrize("name", REGRESSORS)
def test_numbers(name):
    outside = []
    for split in range(SPLITS):
        X, y, truth = draw(load_diabetes, split)
        model = wrap(REGRESSORS[name], split).fit(X, y)
        assert model.miscoverage_ == LAW
        outside.append(int(np.sum(~model.answer_.regions.contains(truth))))
    report(name, outside)
    assert fit_of_law(np.array(outside), LAW) > 1e-6
    assert np.sum(np.array(outside) > LAW.quantile(0.95)) <= binom.ppf(1 - 1e-6, SPLITS, 0.05)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classes(name):
    outside, conservative = [], []
    for split in range(SPLITS):
        X, y, truth = draw(load_breast_cancer, split)
        model = wrap(CLASSIFIERS[name], split, ties="random").fit(X, y)
        outside.append(int(np.sum(model.answer_.p_values[np.arange(ASKED), truth] <= 0.1 + 1e-9)))
        if name != "billiard":
            model.set_params(ties="inside").fit(X, y)
            conservative.append(
                int(np.sum(model.answer_.p_values[np.arange(ASKED), truth] <= 0.1 + 1e-9))
            )
    report(name, outside)
    assert fit_of_law(np.array(outside), LAW) > 1e-6
    assert np.mean(conservative or [0]) <= np.mean(outside)


@pytest.mark.parametrize("data", [load_wine, load_digits, load_breast_cancer])
def test_every_class_is_covered(data):
    """Label-conditional: of the unlabelled rows of each class, the stated share has a p-value above 0.2.

    Given that c labels of a class calibrate, the rank of one more score of this class among them is uniform, equal ones
    in random order: its p-value exceeds 0.2 with probability ``1 - floor(0.2 (c + 1)) / (c + 1)``, exactly. Sets are
    the classes with such p-values and the answered class, so that no answer is outside of its own set. That is the one
    reason why they hold the truth more often: a forest that is right at 97 % of the rows covers at least these.
    """
    classes = np.unique(data(return_X_y=True)[1])
    n_labelled, n_unlabelled = (100, 78) if data is load_wine else (400, 160)
    excess, inside = [[] for _ in classes], [[] for _ in classes]
    bounds = 0
    for split in range(200):
        X, y, truth = draw(data, split, n_labelled, n_unlabelled)
        inner = RandomForestClassifier(15, random_state=0)
        model = wrap(
            inner, split, calibration=0.5, confidence=0.8, label_conditional=True, ties="random"
        ).fit(X, y)
        possible = model.answer_.p_values > 0.2 + 1e-9
        np.testing.assert_array_equal(
            model.answer_.label_sets, possible | (model.answer_.values[:, None] == classes)
        )
        hit = possible[np.arange(n_unlabelled), truth]
        held = model.answer_.label_sets[np.arange(n_unlabelled), truth]
        for y_ in np.unique(truth):
            c = np.sum(y[model.calibration_rows_] == y_)
            excess[y_].append(
                np.mean(hit[truth == y_]) - (1 - np.floor(0.2 * (c + 1) + 1e-9) / (c + 1))
            )
            inside[y_].append(np.mean(held[truth == y_]))
        bounds += np.sum(~hit) > model.outside_at_most(0.9)
    for y_ in classes:
        mean, error = np.mean(excess[y_]), np.std(excess[y_]) / np.sqrt(len(excess[y_]))
        assert abs(mean) <= 4 * error, (y_, mean, error)
        assert np.mean(inside[y_]) >= 0.8 - 4 * np.std(inside[y_]) / np.sqrt(len(inside[y_]))
    assert bounds <= binom.ppf(1 - 1e-6, 200, 0.1)


@pytest.mark.parametrize(
    ("name", "wanted", "level"),
    [
        ("ridge", {"above": 180.0}, 0.3),
        ("random forest", {"above": 180.0}, 0.3),
        ("gaussian process", {"below": 120.0}, 0.2),
        ("confidence machine", {"below": 120.0}, 0.2),
        ("random forest", {"tolerance": 70.0}, 0.3),
        ("gaussian process", {"tolerance": 70.0}, 0.3),
    ],
)
def test_selection_of_numbers(name, wanted, level):
    mistakes, power, splits = [], [], SPLITS if name != "gaussian process" else 100
    for split in range(splits):
        X, y, truth = draw(load_diabetes, split)
        picked = wrap(REGRESSORS[name], split).fit(X, y).select(**wanted, false_discovery=level)
        good = np.abs(truth - picked.answers) <= wanted.get("tolerance", np.inf)
        good &= (truth > wanted.get("above", -np.inf)) & (truth < wanted.get("below", np.inf))
        chosen = np.isin(np.arange(LABELS, LABELS + ASKED), picked.rows)
        mistakes.append(np.mean(~good[chosen]) if chosen.any() else 0.0)
        power.append(np.sum(good & chosen) / good.sum())
    print(
        f"{name} {wanted}: mistakes {np.mean(mistakes):.3f} at {level}, power {np.mean(power):.2f}"
    )
    assert np.mean(mistakes) <= level + 4 * np.std(mistakes) / np.sqrt(splits)
    assert np.mean(power) > 0.1


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("wanted", [{"correct": True}, {"label": 0}])
def test_selection_of_classes(name, wanted):
    mistakes, power, splits = [], [], SPLITS if name != "billiard" else 100
    for split in range(splits):
        X, y, truth = draw(load_breast_cancer, split)
        X = X + 1.5 * X.std(axis=0) * np.random.default_rng(split).normal(
            size=X.shape
        )  # make it hard
        model = wrap(CLASSIFIERS[name], split).fit(X, y)
        picked = model.select(**wanted, false_discovery=0.1)
        good = model.answer_.values == truth if "correct" in wanted else truth == 0
        chosen = np.isin(np.arange(LABELS, LABELS + ASKED), picked.rows)
        mistakes.append(np.mean(~good[chosen]) if chosen.any() else 0.0)
        power.append(np.sum(good & chosen) / good.sum())
    print(f"{name} {wanted}: mistakes {np.mean(mistakes):.3f} at 0.1, power {np.mean(power):.2f}")
    assert np.mean(mistakes) <= 0.1 + 4 * np.std(mistakes) / np.sqrt(splits)
    assert np.mean(power) > 0.05


def test_chance_is_flagged_as_often_as_stated():
    check_chance(200)


def test_rates_of_the_exchangeability_test():
    """Random masks of real rows are flagged at the stated rate, rows shifted by half a spread nearly always."""
    for data in (load_diabetes, load_wine):
        X = data(return_X_y=True)[0]
        rng = np.random.default_rng(0)
        flagged = {0.05: 0, 0.1: 0}
        for split in range(300):
            labelled = rng.permutation(len(X)) < 80
            p = exchangeability_test(
                X, labelled, n_permutations=99, max_rows=180, random_state=split
            ).p_value
            for level in flagged:
                flagged[level] += p <= level
        for level, number in flagged.items():
            assert number <= binom.ppf(1 - 1e-4, 300, level)
            assert number >= binom.ppf(1e-4, 300, level)
        print(data.__name__, {level: number / 300 for level, number in flagged.items()})
    found = 0
    for split in range(50):
        X = load_diabetes(return_X_y=True)[0].copy()
        labelled = rng.permutation(len(X)) < 150
        X[~labelled] += 0.5 * X.std(axis=0)
        found += exchangeability_test(X, labelled, n_permutations=199, random_state=split).shifted
    assert found >= 48


def report(name, outside):
    low, middle, high = np.percentile(outside, [5, 50, 95])
    law = [LAW.quantile(share) for share in (0.05, 0.5, 0.95)]
    p = fit_of_law(np.array(outside), LAW)
    share = np.mean(outside) / ASKED
    print(
        f"{name}: outside {share:.4f}, quantiles {low:.0f}/{middle:.0f}/{high:.0f}, law {law}, chi-square p {p:.3f}"
    )
