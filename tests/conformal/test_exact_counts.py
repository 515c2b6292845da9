"""Counts, bounds and means of the column, each against its definition at the edges where off-by-one would hide."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta, betabinom, binom, gamma, hypergeom

from tests import brute
from transduce.conformal import miscoverage
from transduce.conformal.miscoverage import (
    CategoryMiscoverage,
    ClassMiscoverage,
    Miscoverage,
    confidence_for,
    draw_urn,
    powered_mean,
    simultaneous_bounds,
)
from transduce.population.urns import (
    Urn,
    exponential_quantile,
    two_urns_bound,
    urn_bound,
    urn_interval,
)


def test_the_distribution_between_and_beyond_whole_numbers():
    law = Miscoverage(6, 4, 3)
    exact = np.cumsum(betabinom.pmf(np.arange(7), 6, 2, 3))
    np.testing.assert_allclose(law.cdf(np.arange(7)), exact, atol=1e-12)
    assert law.cdf(2.7) == law.cdf(2)
    assert law.cdf(-0.5) == 0.0
    assert law.cdf(-3) == 0.0
    assert law.cdf(99.5) == 1.0
    assert law.cdf(0) == pytest.approx(exact[0])
    for certainty in (0.1, 0.5, 0.9, 0.99):
        assert law.quantile(certainty) == int(np.argmax(exact >= certainty - 1e-12))


def test_classes_that_have_exactly_enough_labels_are_not_short():
    law = ClassMiscoverage(9, (5, 5, 5), (3, 3, 3), (3, 4, 2))
    assert law.n_short == 1
    assert law.mean == pytest.approx(max(9 * (3 + 1 - k) / 4 for k in (3, 4, 2)))


@pytest.mark.parametrize("certainty", [0.5, 0.8, 0.9, 0.99])
def test_a_bound_where_labels_tell_the_sizes_of_classes(certainty):
    """A fifth of the doubt is for the sizes of the classes, the rest for the numbers outside of such classes."""
    doubt = 1.0 - certainty
    law = ClassMiscoverage(30, (12, 6, 2), (7, 4, 2), (6, 4, 3))
    total = np.ones(1)
    for labelled, c, k in ((12, 7, 6), (6, 4, 4)):  # the third has no threshold
        size = urn_bound(labelled, 20, 30, 1.0 - 0.2 * doubt / 3)
        total = np.convolve(total, betabinom.pmf(np.arange(size + 1), size, c + 1 - k, k))
    expected = int(np.argmax(np.cumsum(total) >= 1.0 - 0.8 * doubt + 1e-12))
    assert law.quantile(certainty) == min(expected, 30)


@pytest.mark.parametrize("certainty", [0.8, 0.9, 0.95])
def test_a_bound_for_any_shares_of_the_classes(certainty):
    """The largest share outside of any class, and as many of the rows as a binomial number with that share."""
    doubt = 1.0 - certainty
    law = ClassMiscoverage(60, (), (19, 29, 5, 4), (18, 27, 6, 4))
    expected = []
    for part in (0.5, 0.8, 0.95):
        shares = [
            beta.ppf(1.0 - part * doubt / 3, c + 1 - k, k)
            for c, k in ((19, 18), (29, 27), (4, 4))  # the third has no threshold
        ]
        expected.append(binom.ppf(1.0 - (1.0 - part) * doubt, 60, max(shares)))
    assert law.quantile(certainty) == min(expected)
    assert ClassMiscoverage(60, (), (2, 2), (3, 3)).quantile(certainty) == 0
    assert ClassMiscoverage(0, (), (19, 29), (18, 27)).quantile(certainty) == 0


@pytest.mark.parametrize("certainty", [0.3, 0.5, 0.75, 0.9])
def test_the_smallest_level_for_a_share(certainty):
    for n_unlabelled, n_calibration, share in ((5, 4, 0.2), (5, 4, 0.6), (9, 12, 0.8), (3, 1, 0.1)):
        most = int(np.floor(n_unlabelled * (1 - share) + 1e-9))
        enough = [
            rank
            for rank in range(1, n_calibration + 1)
            if Miscoverage(n_unlabelled, n_calibration, rank).cdf(most) >= certainty - 1e-12
        ]
        sizes = {"n_unlabelled": n_unlabelled, "n_calibration": n_calibration}
        if enough:
            assert confidence_for(share, certainty, **sizes) == min(enough) / (n_calibration + 1)
        else:
            with pytest.raises(ValueError, match="No level"):
                confidence_for(share, certainty, **sizes)


@pytest.mark.parametrize(
    ("certainty", "needed"), [(0.5, 1), (0.6, 2), (0.75, 3), (0.8, 4), (0.83, 5)]
)
def test_how_many_calibration_labels_it_takes(certainty, needed):
    """That one row is inside has the probability c / (c + 1) at most."""
    with pytest.raises(ValueError, match=f"it takes {needed} calibration labels"):
        confidence_for(0.9, certainty, n_unlabelled=1, n_calibration=0)


def test_a_sum_of_no_rows_is_nothing():
    assert CategoryMiscoverage((Miscoverage(0, 3, 2),)).quantile(0.9) == 0
    assert CategoryMiscoverage((Miscoverage(0, 3, 2), Miscoverage(4, 3, 2))).n_calibration == (3, 3)
    with pytest.raises(ValueError, match="certainty"):
        CategoryMiscoverage((Miscoverage(5, 3, 2),)).quantile(1.5)
    with pytest.raises(TypeError, match="Miscoverage"):
        CategoryMiscoverage(("a",))
    assert Miscoverage.at(0.9, n_unlabelled=5, n_calibration=0).n_short == 1
    with pytest.raises(ValueError, match="n_calibration"):
        Miscoverage.at(0.9, n_unlabelled=5, n_calibration=np.inf)
    with pytest.raises(ValueError, match="n_unlabelled"):
        ClassMiscoverage(-5, (1, 1), (1, 1), (1, 1))
    with pytest.raises(ValueError, match="each class"):
        ClassMiscoverage(5, (1,), (1, 1), (1, 1))


def test_a_level_at_which_all_rows_are_inside():
    """Both rows are below the largest of three scores with probability 3 / 5."""
    assert confidence_for(1, 0.6, n_unlabelled=2, n_calibration=3) == 3 / 4
    with pytest.raises(ValueError, match="No level"):
        confidence_for(1, 0.61, n_unlabelled=2, n_calibration=3)


# ------------------------------------------------------------------------------------------ all levels at once


@pytest.mark.parametrize(
    ("certainty", "n_draws", "m", "c"),
    [(0.95, 99, 300, 20), (0.9, 58, 300, 20), (0.8, 700, 12, 6), (0.9, 2000, 300, 8)],
)
def test_bounds_at_all_levels_by_their_definition(certainty, n_draws, m, c):
    for seed in range(3):
        counts = []
        random = np.random.RandomState(seed)
        for start in range(0, n_draws, 500):
            counts.append(draw_urn(m, c, min(500, n_draws - start), random))
        counts = np.concatenate(counts)
        # P(at least t outside) at each rank; the smallest over the ranks says how unusual a draw is.
        tails = np.array(
            [betabinom.sf(np.arange(m + 1) - 1, m, c + 1 - rank, rank) for rank in range(1, c + 1)]
        )
        unusual = np.sort(tails[np.arange(c), counts].min(axis=1))
        # The truth is one more draw: it is among the r most unusual ones with probability r / (n + 1).
        allowed = max(r for r in range(1, n_draws) if r <= (1 - certainty) * (n_draws + 1) + 1e-9)
        limit = unusual[allowed - 1]
        expected = [np.flatnonzero(tail >= limit * (1 - 1e-9)).max() for tail in tails]
        found = simultaneous_bounds(
            certainty, n_unlabelled=m, n_calibration=c, n_draws=n_draws, random_state=seed
        )
        assert found.tolist() == expected


def test_one_row_may_be_outside():
    bounds = simultaneous_bounds(0.9, n_unlabelled=1, n_calibration=3)
    assert bounds[0] == 1  # above the smallest of three scores in three cases of four


def test_enough_draws_are_made_for_the_certainty(monkeypatch):
    made = []

    def counted(m, c, number, random):
        made.append(number)
        return draw_urn(m, c, number, random)

    monkeypatch.setattr(miscoverage, "draw_urn", counted)
    simultaneous_bounds(0.97, n_unlabelled=5, n_calibration=4, n_draws=10)
    assert sum(made) == 67  # two at least may be more unusual
    made.clear()
    simultaneous_bounds(0.97, n_unlabelled=5, n_calibration=4, n_draws=1100)
    assert made == [500, 500, 100]


def test_of_many_ranks_a_few_are_looked_at(monkeypatch):
    monkeypatch.setattr(miscoverage, "MOST_CELLS", 3 * 41)
    bounds = simultaneous_bounds(0.9, n_unlabelled=40, n_calibration=30)
    assert len(set(bounds[:15])) == 1
    assert len(set(bounds)) == 3


# ------------------------------------------------------------------------------------------ urns


def test_two_urns_of_different_size_and_weight():
    for one, other, certainty in (
        ((1, 6, 2), (1, 4, 12), 0.7),
        ((1, 4, 12), (0, 8, 1), 0.9),
        ((0, 2, 1), (0, 3, 1), 0.5),
        ((0, 2, 2), (0, 3, 4), 0.5),
    ):
        expected = brute.two_urns_bound(one, other, certainty)
        assert two_urns_bound(Urn(*one), Urn(*other), certainty) == expected


def test_the_quantile_of_a_sum_of_two_exponential_variables():
    for certainty in (0.5, 0.9, 0.99):
        equal = exponential_quantile(0.4, 0.4, certainty)
        assert equal == pytest.approx(0.4 * gamma.ppf(certainty, 2), rel=1e-6)
        amount = exponential_quantile(1.0, 0.3, certainty)
        steps = np.linspace(0.0, amount, 200_001)
        density = (np.exp(-steps / 1.0) - np.exp(-steps / 0.3)) / (1.0 - 0.3)
        assert np.trapezoid(density, steps) == pytest.approx(certainty, abs=1e-6)


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95])
def test_an_interval_holds_whatever_the_drawn_rows_without_a_label_are(confidence):
    """Of 5 rows drawn from 9, 2 got no label: someone chose which, after looking."""
    c, empty, others = 3, 2, 4
    for total in range(10):
        failed = 0.0
        for drawn in range(6):
            chance = hypergeom.pmf(drawn, 9, total, 5)
            wrong = False
            for hidden in range(3):  # marked rows among those without a label
                seen = drawn - hidden
                if 0 <= seen <= c and chance > 0:
                    low, high = urn_interval(seen, c, others + empty, confidence, empty)
                    wrong |= not low <= total - seen <= high
            failed += chance * wrong
        assert failed <= 1.0 - confidence + 1e-12


def test_an_interval_is_made_of_two_bounds():
    for marked, c, m, empty in ((0, 4, 9, 0), (2, 4, 9, 0), (2, 4, 9, 3), (4, 4, 30, 1)):
        low, high = urn_interval(marked, c, m, 0.8, empty)
        drawn, others = c + empty, m - empty
        assert low == others - urn_bound(drawn - marked, drawn, others, 0.9)
        assert high == urn_bound(marked + empty, drawn, others, 0.9) + empty
        assert 0 <= low <= high <= m


def test_the_mean_and_its_error_by_hand():
    unlabelled = np.array([[1.0, 0.0], [3.0, 1.0], [5.0, 0.5]])
    calibration = np.array([[2.0, 0.0], [4.0, 1.0]])
    labels = np.array([[2.5, 1.0], [3.0, 1.0]])
    weights = np.array([1.0, 3.0])
    found = powered_mean(unlabelled, calibration, labels, weights, ["a", "b"])
    residuals = labels - calibration
    plain = unlabelled.mean(axis=0)
    estimate = plain + (1.0 * residuals[0] + 3.0 * residuals[1]) / 4.0
    share = (1.0 + 9.0) / 16.0
    error = residuals.std(axis=0, ddof=1) * np.sqrt(share + 1.0 / 3.0)
    np.testing.assert_allclose(found["plain"], plain)
    np.testing.assert_allclose(found["estimate"], estimate)
    np.testing.assert_allclose(found["standard_error"], error)
    assert found.index.tolist() == ["a", "b"]


def test_means_that_do_not_exist_are_missing():
    rows, labels = np.array([[1.0], [2.0]]), np.array([[1.5], [2.5]])
    none = powered_mean(rows[:0], rows, labels, np.ones(2))
    assert none["plain"].isna().all()
    assert none["standard_error"].isna().all()
    one = powered_mean(rows, rows[:1], labels[:1], np.ones(1))
    assert one["estimate"].tolist() == [2.0]
    assert one["standard_error"].isna().all()
    weightless = powered_mean(rows, rows, labels, np.zeros(2))
    assert weightless["plain"].tolist() == [1.5]
    assert weightless["estimate"].isna().all()
