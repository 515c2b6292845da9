"""The guarantee of ConformalTransducer: the law of the number outside, and estimators that try to cheat."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import Ridge

from tests.conformal.test_transducer import Patchy, numbers, quiet
from transduce import RidgeConfidenceMachine
from transduce.conformal import Miscoverage
from transduce.core.answer import Answer
from transduce.core.guarantee import Guarantee
from transduce.model_selection.problem import Problem


def outside_counts(fit, splits):
    """Numbers outside over random splits; fit(split) returns the model and the mask of unlabelled rows inside."""
    counts = []
    for split in range(splits):
        model, inside = fit(split)
        counts.append(int(np.sum(~inside)))
    return model.miscoverage_, np.array(counts)


def fit_of_law(counts, law, n_bins=8):
    """p-value of a chi-square test of counts against a law, in bins of about equal probability."""
    edges = np.unique([law.quantile(share) for share in np.arange(1, n_bins) / n_bins])
    expected = np.diff([0.0, *law.cdf(edges), 1.0])
    seen = np.bincount(np.searchsorted(edges, counts), minlength=len(expected))
    keep = expected > 0
    return chisquare(seen[keep], len(counts) * expected[keep] / expected[keep].sum()).pvalue


@cache
def diabetes():
    return load_diabetes(return_X_y=True)


def split_of_diabetes(split, n_labelled=60, n=160):
    X, truth = diabetes()
    rows = np.random.default_rng([split, 1]).permutation(len(X))[:n]
    X, truth = X[rows], truth[rows]
    return X, np.append(truth[:n_labelled], np.full(n - n_labelled, np.nan)), truth[n_labelled:]


MACHINE = RidgeConfidenceMachine(kernel="linear", ridge=0.1)


@pytest.mark.parametrize(
    ("inner", "n"),
    [
        (Ridge(0.1), 120),
        *(pytest.param(inner, 400, marks=pytest.mark.slow) for inner in (Ridge(0.1), MACHINE)),
    ],
)
def test_the_number_outside_follows_the_law(inner, n):
    def fit(split):
        X, y, truth = split_of_diabetes(split)
        model = quiet(inner, calibration=29, random_state=split).fit(X, y)
        return model, model.answer_.regions.contains(truth)

    law, counts = outside_counts(fit, n)
    assert law == Miscoverage(100, 29, 27)
    assert fit_of_law(counts, law) > 1e-3
    # The test would notice a shift of two points in the level, and the bound holds as often as it says.
    assert np.mean(counts <= law.quantile(0.9)) > 0.85


def test_the_test_of_the_law_notices_two_points():
    """Of 600 numbers from the law at 88 % instead of 90 %, most samples are rejected at one in a thousand."""
    rng = np.random.default_rng(0)
    law, other = Miscoverage(200, 99, 90), Miscoverage(200, 99, 88)
    found = [
        fit_of_law(rng.choice(201, 600, p=other.probabilities / other.probabilities.sum()), law)
        < 1e-3
        for _ in range(50)
    ]
    same = [
        fit_of_law(rng.choice(201, 600, p=law.probabilities / law.probabilities.sum()), law) < 1e-3
        for _ in range(50)
    ]
    assert np.mean(found) > 0.95
    assert np.mean(same) < 0.05


@pytest.mark.parametrize("ties", ["inside", pytest.param("random", marks=pytest.mark.slow)])
def test_sets_of_classes_follow_the_law(ties):
    """Neighbour votes tie all the time: as ties are broken at random the law is exact, else it is an upper bound."""
    from sklearn.neighbors import KNeighborsClassifier

    X, truth = load_iris(return_X_y=True)

    def fit(split):
        rows = np.random.default_rng(split).permutation(150)
        y = np.append(truth[rows[:60]].astype(float), np.full(90, np.nan))
        model = quiet(KNeighborsClassifier(3), calibration=29, ties=ties, random_state=split).fit(
            X[rows], y
        )
        return model, model.answer_.p_values[np.arange(90), truth[rows[60:]]] > 0.1 + 1e-9

    law, counts = outside_counts(fit, 300 if ties == "random" else 40)
    if ties == "random":
        assert fit_of_law(counts, law) > 1e-3
    else:
        assert np.mean(counts) < law.mean


class PositionCheat(RegressorMixin, BaseEstimator):
    """Treats the first half of the rows without label better than the second, by their position."""

    def __init__(self, missing_label=None):
        self.missing_label = missing_label

    def fit(self, X, y):
        unlabelled = np.flatnonzero(np.isnan(y))
        good = Ridge(0.1).fit(X[~np.isnan(y)], y[~np.isnan(y)]).predict(X[unlabelled])
        late = np.arange(len(unlabelled)) >= np.isnan(y).sum() // 4
        values = np.where(late, good + 150 * np.sin(17 * np.arange(len(unlabelled))), good)
        self.transduction_ = y.copy()
        self.transduction_[unlabelled] = values
        none = Guarantee("none")
        self.answer_ = Answer(unlabelled, values, np.full(len(unlabelled), "answered"), none)
        return self


class NoShuffle(np.random.RandomState):
    """Leaves hidden rows before unlabelled ones."""

    def permutation(self, x):
        return super().permutation(x) if np.ndim(x) == 0 else np.asarray(x)


def test_a_cheat_by_position_is_made_harmless(monkeypatch):
    """With the shuffle the law holds; without it the same test of the law rejects."""

    def fit(split, seed):
        X, y, truth = split_of_diabetes(split)
        model = quiet(PositionCheat(), calibration=29, random_state=seed).fit(X, y)
        return model, model.answer_.regions.contains(truth)

    law, counts = outside_counts(lambda split: fit(split, split), 100)
    assert fit_of_law(counts, law) > 1e-3
    monkeypatch.setattr(Problem, "by_content", lambda self, rows: rows)
    law, counts = outside_counts(lambda split: fit(split, NoShuffle(split)), 100)
    assert fit_of_law(counts, law) < 1e-10


class Witness(RegressorMixin, BaseEstimator):
    """Remembers what it was shown."""

    seen: list = []  # noqa: RUF012

    def __init__(self, missing_label=None):
        self.missing_label = missing_label

    def fit(self, X, y):
        Witness.seen.append((X, y))
        self.transduction_ = np.where(np.isnan(y), np.nanmean(y), y)
        return self


def test_an_estimator_sees_nothing_that_tells_hidden_from_unlabelled():
    X, y, _truth = numbers()
    frame = pd.DataFrame(X, columns=list("abc"), index=[f"r{i}" for i in range(90)])
    model = quiet(Witness()).fit(frame, pd.Series(y, index=frame.index))
    (shown, labels) = Witness.seen.pop()
    assert shown.index.tolist() == list(range(90))
    n_visible = 50 - len(model.calibration_rows_)
    assert np.isnan(labels).tolist() == [False] * n_visible + [True] * (90 - n_visible)
    order = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in shown.to_numpy()]
    is_hidden = np.isin(order[n_visible:], model.calibration_rows_)
    places = np.flatnonzero(is_hidden) / len(is_hidden)
    assert places.min() < 0.2
    assert places.max() > 0.8
    np.testing.assert_array_equal(labels[:n_visible], y[order[:n_visible]])
    assert model.transduction_.index.equals(frame.index)
    np.testing.assert_allclose(model.answer_.values, labels[:n_visible].mean())


@pytest.mark.parametrize("n", [100, pytest.param(300, marks=pytest.mark.slow)])
def test_patchy_answers_keep_the_law(n):
    def fit(split):
        X, y, truth = split_of_diabetes(split)
        X = X / X.std(axis=0)
        model = quiet(Patchy(), calibration=29, random_state=split).fit(X, y)
        return model, model.answer_.regions.contains(truth)

    p = []
    for split in range(n):
        model, inside = fit(split)
        law, count = model.miscoverage_, int(np.sum(~inside))
        # The law differs from split to split: compare by randomised probability integral transform.
        u = np.random.default_rng(split).random()
        p.append(law.cdf(count - 1) + u * law.probabilities[count])
    assert chisquare(np.histogram(p, bins=8, range=(0, 1))[0]).pvalue > 1e-3
