"""The bound on the number of wrong answers: exact by enumeration, and kept over many splits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, hypergeom
from sklearn.datasets import load_iris
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier

from tests import brute
from tests.conformal.test_transducer import classes, numbers
from transduce import ConformalTransducer
from transduce.conformal.calibrated_guarantee import bound_together
from transduce.conformal.miscoverage import CategoryMiscoverage, ClassMiscoverage, Miscoverage
from transduce.conformal.wrong_answers import WrongAnswers
from transduce.core.guarantee import CountBound, Guarantee
from transduce.population.urns import Urn, drawn_marked, two_urns_bound, urn_bound, urn_interval


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


# ------------------------------------------------------------------------------------------- two urns together


@pytest.mark.parametrize(
    ("one", "other"), [((0, 3, 4), (1, 4, 3)), ((1, 2, 5), (0, 5, 2)), ((2, 4, 4), (2, 4, 4))]
)
def test_the_bound_of_two_urns_is_that_of_all_pairs(one, other):
    for certainty in (0.6, 0.8, 0.95):
        expected = brute.two_urns_bound(one, other, certainty)
        assert two_urns_bound(Urn(*one), Urn(*other), certainty) == expected


def test_marked_rows_are_drawn_as_scipy_says():
    urn = Urn(0, 7, 20)
    marked = np.arange(28)
    expected = [hypergeom.pmf(np.arange(8), 27, number, 7) for number in marked]
    np.testing.assert_allclose(drawn_marked(marked, urn), expected, atol=1e-13)
    many = drawn_marked(np.array([10**8]), Urn(0, 79, 10**9))[0]
    np.testing.assert_allclose(many, binom.pmf(np.arange(80), 79, 0.1), atol=1e-6)


@pytest.mark.few(1)
@pytest.mark.parametrize("certainty", [0.8, 0.95])
def test_the_bound_of_two_urns_holds_for_every_table(certainty):
    """Even if what is marked in the second urn is chosen after the draw from the first, to do the most harm."""
    c, m, d, k = 4, 5, 5, 4
    for marked in range(c + m + 1):
        failed = 0.0
        for seen in range(c + 1):
            if not 0 <= marked - seen <= m:
                continue
            harm = []
            for others in range(d + k + 1):
                chances = hypergeom.pmf(np.arange(d + 1), d + k, others, d)
                wrong = [
                    marked - seen + others - drawn
                    > two_urns_bound(Urn(seen, c, m), Urn(drawn, d, k), certainty)
                    for drawn in range(d + 1)
                ]
                harm.append(float(chances @ wrong))
            failed += hypergeom.pmf(seen, c + m, marked, c) * max(harm)
        assert failed <= 1.0 - certainty + 1e-12


def test_two_urns_together_are_bounded_better_than_each_by_itself():
    for sizes in ((20_000, 4_000), (4_000, 20_000), (500, 500), (300, 1_000_000_000)):
        one, other = (Urn(8, 79, size) for size in sizes)
        together = two_urns_bound(one, other, 0.95)
        shared = min(
            one.bound(1.0 - 0.05 * share) + other.bound(0.95 + 0.05 * share)
            for share in (0.1, 0.5, 0.9)
        )
        assert max(one.bound(0.95), other.bound(0.95)) <= together < shared


def test_rows_outside_of_two_fits_have_the_sum_of_both_laws():
    one, other = Miscoverage(6, 4, 3), Miscoverage(5, 3, 3)
    orders, others = brute.urn_orders(4, 6)[:, 2], brute.urn_orders(3, 5)[:, 2]
    sums = (orders[:, None] + others).ravel()
    for certainty in (0.5, 0.9, 0.95):
        bound = bound_together(one, other, certainty)
        assert np.mean(sums <= bound.at_most) >= certainty
        assert np.mean(sums <= bound.at_most - 1) < certainty
        assert bound.expected == pytest.approx(sums.mean())
        assert bound.of == 11


def test_the_sum_of_many_rows_is_rounded_up(monkeypatch):
    laws = Miscoverage.at(0.9, n_unlabelled=900, n_calibration=39), Miscoverage(300, 19, 18)
    exact = CategoryMiscoverage(laws).quantile(0.95)
    monkeypatch.setattr("transduce.conformal.miscoverage.MOST_COUNTS", 100)
    rough = CategoryMiscoverage(laws).quantile(0.95)
    assert exact <= rough <= exact + 2 * 12
    monkeypatch.undo()
    huge = Miscoverage.at(0.9, n_unlabelled=10**9, n_calibration=79), Miscoverage(200, 79, 72)
    assert 0 <= CategoryMiscoverage(huge).quantile(0.95) - huge[0].quantile(0.95) < 10**5


def test_bounds_within_classes_share_the_doubt():
    one = ClassMiscoverage(40, (39, 39), (19, 19), (18, 18))
    other = ClassMiscoverage(360, (39, 39), (19, 19), (18, 18))
    bound = bound_together(one, other, 0.95)
    assert bound.at_most == one.quantile(1 - 0.1 * 0.05) + other.quantile(1 - 0.9 * 0.05)


def statement_of(wrong):
    return Guarantee("exact", about="set", confidence=0.9, wrong=wrong).statement


def test_a_bound_that_one_answer_for_all_would_have_too_is_not_told():
    """With 80 labels, 39 of them judging, of a class with 61 %: at most 308 of 420 beside "69 % right"."""
    weak = WrongAnswers(Urn(14, 39, 420), 314, 420, Urn(31, 80, 420)).bound(0.95)
    assert (weak.at_most > weak.simplest, weak.tells) == (True, False)
    assert not weak.judged_tells
    said = statement_of(weak)
    assert "no useful bound on how many of the 420 filled classes are wrong" in said
    strong = WrongAnswers(Urn(3, 39, 420), 400, 420, Urn(31, 80, 420)).bound(0.95)
    assert strong.tells
    assert (
        f"at most {strong.at_most} of the 420 filled classes are wrong: {strong.at_most - 20} in "
        "the fit without the calibration labels, and the 20 that the fit to all labels"
    ) in statement_of(strong)
    assert not CountBound(0.95, 420, 420).tells


def test_of_two_bounds_the_one_is_told_that_tells():
    """That of the fit which is judged, if rows that another fit changed make the other too large."""
    bound = WrongAnswers(Urn(5, 39, 420), 260, 420, Urn(40, 80, 420)).bound(0.95)
    judged = urn_bound(5, 39, 420, 0.95)
    assert (bound.judged, bound.changed, bound.at_most) == (judged, 160, judged + 160)
    assert (bound.tells, bound.judged_tells) == (False, True)
    said = statement_of(bound)
    assert f"at most {judged} of the 420 predicted classes are wrong in the fit without" in said
    assert "nothing is guaranteed at the 160 rows where the two differ" in said
    assert "do not bound" not in said


@pytest.mark.parametrize(
    ("refit", "n"),
    [(True, 50), *(pytest.param(refit, 120, marks=pytest.mark.slow) for refit in (False, True))],
)
def test_the_bound_holds_over_splits(refit, n):
    """Wrong more often than the bound in at most 10 % of the splits, of all rows and of those of each class."""
    X, truth = load_iris(return_X_y=True)
    failed, failed_of_first, failed_of_class = 0, 0, 0
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
        judged = model._fit.table.unlabelled.values != truth[rows[50:]]
        failed_of_first += judged.sum() > found.wrong.judged
        failed += wrong.sum() > found.wrong.at_most
        assert found.wrong.at_most == model.wrong_at_most(0.9)
        for label, bound in found.wrong_by_class:
            if label == 1:
                failed_of_class += wrong[model.answer_.values == label].sum() > bound.at_most
    limit = binom.ppf(0.999, n, 0.1)
    assert failed <= limit
    assert failed_of_first <= limit
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
