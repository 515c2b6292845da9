"""The law of the column: every order of scores counted, levels and bounds by definition."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, chisquare

from tests import brute
from transduce.conformal import Miscoverage, miscoverage
from transduce.conformal.designs import calibration_number, labels_needed
from transduce.conformal.miscoverage import (
    CategoryMiscoverage,
    ClassMiscoverage,
    confidence_for,
    draw_urn,
    simultaneous_bounds,
)
from transduce.conformal.scores import WeightedRanks, label_sets
from transduce.core.ranks import calibration_rank, fewest_calibration
from transduce.population.urns import (
    Urn,
    cells_up_to,
    drawn_at_most,
    exponential_quantile,
    two_urns_bound,
    urn_bound,
)

counts = st.integers(0, 6)
shares = st.sampled_from([0.3, 0.5, 0.75, 0.8, 0.9, 0.95, 0.99])

# --------------------------------------------------------------------------------------------------- exact


@pytest.mark.parametrize("n_calibration", [1, 2, 4, 6])
@pytest.mark.parametrize("n_unlabelled", [0, 1, 3, 6])
def test_the_law_counts_all_orders(n_calibration, n_unlabelled):
    orders = brute.urn_orders(n_calibration, n_unlabelled)
    for rank in range(1, n_calibration + 1):
        law = Miscoverage(n_unlabelled, n_calibration, rank)
        share = np.bincount(orders[:, rank - 1], minlength=n_unlabelled + 1) / len(orders)
        np.testing.assert_allclose(law.probabilities, share, atol=1e-12)
        np.testing.assert_allclose(
            law.cdf(np.arange(-1, n_unlabelled + 2)), np.cumsum([0, *share, 0]), atol=1e-12
        )
        assert law.mean == pytest.approx(orders[:, rank - 1].mean())
        for certainty in (0.5, 0.9, 0.99):
            bound = law.quantile(certainty)
            assert np.mean(orders[:, rank - 1] <= bound) >= certainty - 1e-12
            assert bound == 0 or np.mean(orders[:, rank - 1] <= bound - 1) < certainty


def test_the_urn_draws_all_orders_alike():
    orders = brute.urn_orders(3, 4)
    drawn = draw_urn(4, 3, 20_000, np.random.RandomState(0))
    seen = np.array([(drawn == order).all(axis=1).sum() for order in orders])
    assert seen.sum() == 20_000
    assert chisquare(seen).pvalue > 1e-3


@pytest.mark.parametrize("certainty", [0.5, 0.8, 0.9, 0.95])
@pytest.mark.parametrize(("n_calibration", "n_unlabelled"), [(1, 5), (5, 5), (8, 4), (4, 9)])
def test_simultaneous_bounds_hold_at_all_levels_at_once(n_calibration, n_unlabelled, certainty):
    """By counting all orders: as often as guaranteed, up to the draws' own chance, and no larger than they must be."""
    orders = brute.urn_orders(n_calibration, n_unlabelled)
    tails = np.array(
        [
            [np.mean(orders[:, k] >= t) for t in range(n_unlabelled + 1)]
            for k in range(n_calibration)
        ]
    )
    unusual = tails[np.arange(n_calibration), orders].min(axis=1)
    bounds = simultaneous_bounds(
        certainty, n_unlabelled=n_unlabelled, n_calibration=n_calibration, n_draws=20_000
    )
    assert np.mean((orders <= bounds).all(axis=1)) >= certainty - 0.01
    # Of all limits on the tails, the largest that still keeps the guarantee gives bounds near these.
    allowed = max(d for d in np.unique(unusual) if np.mean(unusual < d - 1e-12) <= 1 - certainty)
    exact = (tails >= allowed - 1e-12).sum(axis=1) - 1
    assert np.abs(bounds - exact).max() <= 1


def test_levels_for_a_share_are_the_smallest():
    for n_unlabelled, n_calibration, share, certainty in (
        (30, 20, 0.8, 0.9),
        (200, 99, 0.9, 0.95),
        (10, 50, 1, 0.8),
    ):
        level = confidence_for(
            share, certainty, n_unlabelled=n_unlabelled, n_calibration=n_calibration
        )
        most = int(np.floor(n_unlabelled * (1 - share) + 1e-9))
        enough = [
            Miscoverage(n_unlabelled, n_calibration, k).cdf(most) >= certainty
            for k in range(1, n_calibration + 1)
        ]
        assert level == pytest.approx((1 + enough.index(True)) / (n_calibration + 1))
        assert calibration_rank(level, n_calibration) == 1 + enough.index(True)


@pytest.mark.parametrize(
    ("n_unlabelled", "share", "certainty"), [(30, 0.9, 0.95), (256, 0.95, 0.99), (5, 1, 0.9)]
)
def test_labels_that_would_do_are_named(n_unlabelled, share, certainty):
    most = int(np.floor(n_unlabelled * (1 - share) + 1e-9))
    fewest = next(
        c
        for c in range(1, 10_000)
        if Miscoverage(n_unlabelled, c, c).cdf(most) >= certainty - 1e-12
    )
    with pytest.raises(ValueError, match=f"it takes {fewest} calibration labels"):
        confidence_for(share, certainty, n_unlabelled=n_unlabelled, n_calibration=fewest - 1)
    assert confidence_for(
        share, certainty, n_unlabelled=n_unlabelled, n_calibration=fewest
    ) == fewest / (fewest + 1)


def test_the_bound_by_class_holds():
    """Random labels among rows of three classes, a threshold each: outside no more often than said."""
    rng = np.random.default_rng(0)
    classes = np.repeat([0, 1, 2], [60, 40, 20])
    misses, means = 0, []
    for _ in range(300):
        order = rng.permutation(120)
        hidden, unlabelled, labelled = order[:40], order[80:], order[:80]
        scores = rng.normal(size=120) * (1 + classes)
        held = np.bincount(classes[hidden], minlength=3)
        ranks = [calibration_rank(0.8, c) for c in held]
        law = ClassMiscoverage(40, tuple(np.bincount(classes[labelled], minlength=3)), held, ranks)
        outside = sum(
            np.sum(
                scores[unlabelled][classes[unlabelled] == y]
                > brute.threshold(scores[hidden][classes[hidden] == y], law.ranks[y])
            )
            for y in range(3)
        )
        misses += outside > law.quantile(0.9)
        means.append(law.mean - outside)
    assert misses <= binom.ppf(1 - 1e-6, 300, 0.1)
    assert np.mean(means) > 0


def test_sizes_of_classes_are_bounded_by_chance():
    """Exactly, class by class size: the probability of a labelled number that excludes the truth is small."""
    rng = np.random.default_rng(1)
    misses = 0
    for _ in range(1000):
        chosen = (
            rng.permutation(100)[:30] < 20
        )  # of 20 rows of the class, among 100, those with a label
        law = ClassMiscoverage(70, (int(chosen.sum()), 30 - int(chosen.sum())), (5, 5), (5, 5))
        misses += 20 - chosen.sum() > law.most_of_class(0, 0.9)
    assert misses <= binom.ppf(1 - 1e-6, 1000, 0.1)
    assert ClassMiscoverage(70, (30, 0), (5, 5), (5, 5)).most_of_class(0, 0.9) == 70
    for own in (0, 2, 5):
        # By counting: of 5 labels among 12 rows, `own` or fewer are of a class of own + size rows.
        possible = [
            sum(comb(own + size, i) * comb(12 - own - size, 5 - i) for i in range(own + 1))
            / comb(12, 5)
            > 0.2
            for size in range(8)
        ]
        law = ClassMiscoverage(7, (own, 5 - own), (1, 1), (1, 1))
        assert law.most_of_class(0, 0.8) == max(size for size in range(8) if possible[size])


# ---------------------------------------------------------------------------------------------------- laws


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.integers(0, 5), shares)
def test_thresholds_and_p_values_agree(hidden, score, confidence):
    """Inside the threshold and p-value above 1 - confidence are the same, ties and all."""
    hidden = np.array(hidden, dtype=float)
    p = brute.conformal_p_value(hidden, score)
    inside = score <= brute.threshold(hidden, calibration_rank(confidence, len(hidden)))
    assert inside == (p > 1 - confidence + 1e-9)
    scored = WeightedRanks(
        hidden, np.zeros(len(hidden)), np.zeros(1), np.ones(len(hidden)), np.ones(1)
    )
    assert scored.p_values(np.array([float(score)]))[0] == p
    assert label_sets(np.array([[p]]), confidence)[0, 0] == inside
    limit, closed = scored.thresholds(confidence)
    assert (score <= limit[0]) == inside
    assert closed.all()


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), shares)
def test_random_ties_are_an_order(seed, n_calibration, confidence):
    """With tie-breakers, thresholds and counts are those of pairs (score, breaker)."""
    rng = np.random.default_rng(seed)
    hidden, scores = (
        rng.integers(0, 3, n_calibration).astype(float),
        rng.integers(0, 3, 4).astype(float),
    )
    ties, own = rng.random(n_calibration), rng.random(4)
    scored = WeightedRanks(hidden, ties, own, np.ones(n_calibration), np.ones(4))
    pairs = sorted(zip(hidden, ties, strict=True))
    p = scored.p_values(scores)
    limit, closed = scored.thresholds(confidence)
    for j in range(4):
        count = sum(pair >= (scores[j], own[j]) for pair in pairs)
        assert p[j] == (1 + count) / (n_calibration + 1)
        inside = scores[j] < limit[j] or (scores[j] == limit[j] and closed[j])
        assert inside == (
            1 + count > n_calibration + 1 - calibration_rank(confidence, n_calibration)
        )


@given(st.integers(1, 60), shares)
def test_the_law_moves_with_the_level(n_calibration, confidence):
    law = Miscoverage.at(confidence, n_unlabelled=20, n_calibration=n_calibration)
    assert law.mean <= 20 * (1 - confidence) + 1e-9
    higher = Miscoverage.at(0.5 + confidence / 2, n_unlabelled=20, n_calibration=n_calibration)
    assert higher.quantile(0.9) <= law.quantile(0.9) <= law.quantile(0.99)


@given(st.integers(1, 400), st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99]), st.booleans())
def test_how_many_labels_are_hidden(n_labelled, confidence, by_class):
    number = calibration_number(n_labelled, confidence, by_class=by_class)
    assert (number == 0) == (n_labelled < labels_needed(confidence))
    if number:
        assert fewest_calibration(confidence) <= number <= n_labelled - 2
        assert calibration_rank(confidence, number) <= number
        # No smaller a share is wasted by rounding than must be.
        assert (number + 1) * (1 - confidence) == pytest.approx(
            round((number + 1) * (1 - confidence)), abs=1e-6
        )


def test_many_rows_take_part_of_the_ranks(monkeypatch):
    full = simultaneous_bounds(0.9, n_unlabelled=40, n_calibration=30)
    monkeypatch.setattr("transduce.conformal.miscoverage.MOST_CELLS", 400)
    part = simultaneous_bounds(0.9, n_unlabelled=40, n_calibration=30)
    assert len(part) == 30
    assert np.all(np.diff(part) <= 0)
    assert np.all(part >= full - 2)


# --------------------------------------------------------------------------------------------------- limits


def test_nothing_is_outside_the_whole_line():
    law = Miscoverage.at(0.9, n_unlabelled=7, n_calibration=5)
    assert (law.rank, law.mean, law.quantile(0.99), law.cdf(0)) == (6, 0.0, 0, 1.0)
    assert law.probabilities.tolist() == [1.0] + [0.0] * 7
    empty = Miscoverage(0, 5, 3)
    assert (empty.mean, empty.quantile(0.5), empty.cdf(-1)) == (0.0, 0, 0.0)
    assert simultaneous_bounds(0.9, n_unlabelled=0, n_calibration=3).tolist() == [0, 0, 0]
    assert len(simultaneous_bounds(0.9, n_unlabelled=3, n_calibration=0)) == 0
    by_class = ClassMiscoverage(7, (4, 4), (2, 2), ranks=(3, 3))
    assert (by_class.mean, by_class.quantile(0.9)) == (0.0, 0)


def test_the_law_of_many_rows():
    law = Miscoverage.at(0.9, n_unlabelled=200_000, n_calibration=999)
    assert law.probabilities.sum() == pytest.approx(1.0)
    assert 20_000 < law.quantile(0.95) < 24_000


# ------------------------------------------------------------------------------------------------- refusals


def test_laws_refuse_what_makes_no_sense():
    for bad in ({"n_unlabelled": -1}, {"n_calibration": 1.5}):
        with pytest.raises(ValueError, match="must be a whole number from 0 on"):
            Miscoverage(**{"n_unlabelled": 3, "n_calibration": 3, "rank": 1, **bad})
    for rank in (0, 5, "2"):
        with pytest.raises(ValueError, match="rank must be a whole number from 1 to 4"):
            Miscoverage(3, 3, rank)
    with pytest.raises(ValueError, match="certainty must lie strictly between 0 and 1; got 95"):
        Miscoverage(3, 3, 3).quantile(95)
    with pytest.raises(ValueError, match="confidence must lie strictly"):
        Miscoverage.at(1.0, n_unlabelled=1, n_calibration=1)
    with pytest.raises(ValueError, match=r"share .* must lie"):
        confidence_for(0.0, 0.9, n_unlabelled=3, n_calibration=3)
    with pytest.raises(ValueError, match="No row is unlabelled"):
        confidence_for(0.9, 0.9, n_unlabelled=0, n_calibration=3)
    with pytest.raises(ValueError, match="certainty must lie"):
        simultaneous_bounds(1.0, n_unlabelled=3, n_calibration=3)


def test_counts_that_make_no_sense_are_refused():
    law = Miscoverage(10, 9, 9)
    for count in (np.nan, [1.0, np.nan], "few"):
        with pytest.raises((TypeError, ValueError), match="count"):
            law.cdf(count)
    of_two = {"n_unlabelled": 4, "n_calibration": (2, 2), "ranks": (2, 2)}
    with pytest.raises(ValueError, match="a number for each class"):
        ClassMiscoverage(n_labelled=(3,), **of_two)
    with pytest.raises(ValueError, match="n_labelled"):
        ClassMiscoverage(n_labelled=(3, -1), **of_two)
    with pytest.raises(ValueError, match="n_calibration"):
        confidence_for(0.9, 0.9, n_unlabelled=10, n_calibration=-1)
    with pytest.raises(ValueError, match="n_unlabelled"):
        confidence_for(0.9, 0.9, n_unlabelled=-1, n_calibration=10)
    with pytest.raises(ValueError, match="n_calibration"):
        simultaneous_bounds(0.9, n_unlabelled=10, n_calibration=-1)
    with pytest.raises(ValueError, match="for every class"):
        ClassMiscoverage(n_unlabelled=4, n_labelled=(), n_calibration=(), ranks=())
    with pytest.raises((TypeError, ValueError), match="certainty must"):
        law.share_inside("sure")


def test_one_row_is_inside_or_not():
    assert Miscoverage(1, 9, 9).share_inside(0.5) == (1.0, 1.0)
    assert Miscoverage(1, 9, 5).share_inside(0.9) == (0.0, 1.0)
    assert Miscoverage(1, 1, 1).share_inside(0.99) == (0.0, 1.0)


def test_urns_of_any_order_have_one_bound():
    """A bound on two urns together does not depend on which of them comes first."""
    one, other = Urn(1, 12, 40), Urn(3, 9, 15)
    for certainty in (0.5, 0.9, 0.99):
        bound = two_urns_bound(one, other, certainty)
        assert bound == two_urns_bound(other, one, certainty)
        assert bound >= max(one.bound(certainty), other.bound(certainty))


def test_pieces_of_the_bound_on_two_urns():
    assert exponential_quantile(1.0, 1e-6, 0.5) == pytest.approx(np.log(2.0), rel=1e-5)
    first, last = cells_up_to(5)
    assert first.tolist() == last.tolist() == [0, 1, 2, 3, 4, 5]
    np.testing.assert_allclose(drawn_at_most(0, np.array([0, 1]), 1, 3), [1.0, 0.75])
    np.testing.assert_allclose(drawn_at_most(-1, np.array([0, 1]), 1, 3), 0.0)


@pytest.mark.parametrize("most_listed", [1500, 10**8])
def test_a_bound_for_two_classes_spends_four_fifths_of_the_doubt_on_what_is_outside(
    most_listed, monkeypatch
):
    """Listed one by one or in steps."""
    monkeypatch.setattr(miscoverage, "MOST_LISTED", most_listed)
    n_rows = 2000
    law = ClassMiscoverage(n_rows, n_labelled=(60, 39), n_calibration=(19, 19), ranks=(18, 18))
    sizes = [urn_bound(n, 99, n_rows, 1.0 - 0.2 * 0.1 / 2) for n in (60, 39)]
    parts = tuple(Miscoverage(size, 19, 18) for size in sizes)
    assert law.quantile(0.9) == min(CategoryMiscoverage(parts).quantile(1.0 - 0.8 * 0.1), n_rows)
    assert law.quantile(0.9) < CategoryMiscoverage(parts).quantile(0.95)
