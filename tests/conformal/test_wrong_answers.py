"""The bound on the number of wrong answers: exact by enumeration, and kept over many splits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.datasets import load_iris
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier

from tests import brute
from tests.conformal.test_transducer import classes, numbers
from transduce import ConformalTransducer
from transduce.conformal.miscoverage import urn_bound, urn_interval


@pytest.mark.parametrize("certainty", [0.5, 0.8, 0.95])
@pytest.mark.parametrize(("n_calibration", "n_unlabelled"), [(1, 1), (3, 4), (5, 3), (4, 6)])
def test_the_bound_is_that_of_every_possible_draw(n_calibration, n_unlabelled, certainty):
    for n_wrong in range(n_calibration + 1):
        expected = brute.urn_bound(n_wrong, n_calibration, n_unlabelled, certainty)
        assert urn_bound(n_wrong, n_calibration, n_unlabelled, certainty) == expected


def test_an_interval_has_a_bound_on_either_side():
    for n_marked in range(6):
        low, high = urn_interval(n_marked, 5, 4, 0.9)
        assert high == brute.urn_bound(n_marked, 5, 4, 0.95)
        assert low == 4 - brute.urn_bound(5 - n_marked, 5, 4, 0.95)


def test_more_wrong_or_more_certainty_never_lowers_the_bound():
    for n_wrong in range(19):
        assert urn_bound(n_wrong, 20, 300, 0.9) <= urn_bound(n_wrong + 1, 20, 300, 0.9)
        assert urn_bound(n_wrong, 20, 300, 0.9) <= urn_bound(n_wrong, 20, 300, 0.99)
    assert urn_bound(20, 20, 300, 0.9) == 300
    assert urn_bound(0, 20, 0, 0.9) == 0


@pytest.mark.parametrize(
    ("refit", "n"),
    [(True, 50), *(pytest.param(refit, 120, marks=pytest.mark.slow) for refit in (False, True))],
)
def test_the_bound_holds_over_splits(refit, n):
    """Wrong more often than the bound in at most 10 % of the splits, of all rows and of those of each class."""
    X, truth = load_iris(return_X_y=True)
    failed, failed_of_class = 0, 0
    for split in range(n):
        rows = np.random.default_rng(split).permutation(150)
        y = np.append(truth[rows[:50]].astype(float), np.full(100, np.nan))
        model = ConformalTransducer(
            KNeighborsClassifier(5),
            calibration=25,
            refit=refit,
            random_state=split,
            test_exchangeability=False,
        ).fit(X[rows], y)
        wrong = model.answer_.values != truth[rows[50:]]
        found = model.guarantee_at(certainty=0.9)
        failed += wrong.sum() > found.wrong.at_most
        assert found.wrong.at_most == model.wrong_at_most(0.9)
        for label, bound in found.wrong_by_class:
            if label == 1:
                failed_of_class += wrong[model.answer_.values == label].sum() > bound.at_most
    limit = binom.ppf(0.999, n, 0.1)
    assert failed <= limit
    assert failed_of_class <= limit


def test_numbers_need_a_tolerance():
    X, y, truth = numbers()
    unlabelled = np.isnan(y)
    plain = ConformalTransducer(Ridge(), random_state=0).fit(X, y)
    assert plain.guarantee_.wrong is None
    with pytest.raises(ValueError, match="numbers need a tolerance"):
        plain.wrong_at_most()
    size = float(np.std(truth))
    for refit in (False, True):
        model = ConformalTransducer(Ridge(), tolerance=size, refit=refit, random_state=0).fit(X, y)
        off = np.abs(model.answer_.values - truth[unlabelled]) > size
        assert off.sum() <= model.wrong_at_most() <= unlabelled.sum()
        assert (
            f"of the 40 filled values are off by more than {size:g}." in model.guarantee_.statement
        )
    wide = ConformalTransducer(Ridge(), tolerance=1e9, refit=True, random_state=0).fit(X, y)
    assert wide.wrong_at_most() <= model.wrong_at_most()


def test_bad_tolerances_are_refused():
    X, y, _ = numbers()
    for tolerance in (0.0, -1.0, "wide", np.nan):
        with pytest.raises(ValueError, match="tolerance must be a positive number"):
            ConformalTransducer(Ridge(), tolerance=tolerance).fit(X, y)
    X, y, _ = classes()
    with pytest.raises(ValueError, match="tolerance is for numbers"):
        ConformalTransducer(KNeighborsClassifier(), tolerance=1.0).fit(X, y)


def test_the_guarantee_says_how_many_are_wrong():
    X, y, _ = classes()
    model = ConformalTransducer(KNeighborsClassifier(3), random_state=0).fit(X, y)
    said = model.guarantee_.statement
    assert (
        f"With 95 % certainty at most {model.wrong_at_most()} of the 50 filled classes are wrong."
        in said
    )
