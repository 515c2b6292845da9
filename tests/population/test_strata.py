"""Exact intervals for the number of marked rows in several strata, against enumeration."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, hypergeom

from tests import brute
from transduce.population import strata as strata_module
from transduce.population.lattice import largest_over_splits
from transduce.population.pooled import Apart, Pool, PooledSearch, convex_majorant, pooled_bound
from transduce.population.strata import (
    MOST_STRATA_SPLIT,
    SplitSearch,
    lattice_weights,
    most_marked,
    narrowest_most_marked,
    total_interval,
)
from transduce.population.stratum import Stratum, excess_of_limit, largest_sums


def probability(search, split):
    """Return how probable an S is that does not exceed the observed one, by every outcome."""
    sizes = tuple(stratum.n_rows for stratum in search.strata)
    drawn = tuple(stratum.n_drawn for stratum in search.strata)
    return sum(
        probability_of_outcome
        for found, probability_of_outcome in brute.split_outcomes(sizes, drawn, split)
        if search.weights @ np.array(found[1:]) <= search.reached[found[0]]
    )


def largest_by_trying(search):
    """Return the largest total of a split that the test does not reject, trying all of them."""
    fewest, most = search.limits()
    splits = itertools.product(*[range(a, b + 1) for a, b in zip(fewest, most, strict=True)])
    return max(sum(split) for split in splits if probability(search, split) > search.level)


class TestExact:
    @pytest.mark.parametrize(
        ("sizes", "drawn"),
        [
            ((6, 6), (3, 3)),
            ((3, 9), (2, 3)),
            ((4, 4, 4), (2, 2, 2)),
            ((8, 4), (2, 4)),
            ((7,), (3,)),
            ((5, 3, 6), (2, 1, 3)),
            ((3, 3, 4, 3), (1, 2, 2, 1)),
        ],
    )
    def test_no_table_is_missed_too_often(self, sizes, drawn):
        """Every split of every total of small tables, at a level where it matters."""
        confidence = 0.7

        @cache
        def interval(drawn, found):
            return total_interval(tuple(map(Stratum, sizes, drawn, found)), confidence)

        for marked, coverage in brute.coverage_of_splits(sizes, drawn, interval):
            assert coverage >= confidence - 1e-9, marked

    @pytest.mark.parametrize(("sizes", "n_drawn"), [((6, 4), 4), ((4, 8), 5), ((9, 3), 3)])
    def test_a_sample_that_was_divided_misses_no_table_too_often(self, sizes, n_drawn):
        """Over all divisions of one simple random sample, also those without a row of one part."""
        confidence = 0.7

        @cache
        def interval(drawn, found):
            strata = tuple(map(Stratum, sizes, drawn, found))
            return total_interval(strata, confidence, drawn_as_one=True)

        worst = 1.0
        for marked, coverage in brute.coverage_of_divided_samples(sizes, n_drawn, interval):
            assert coverage >= confidence - 1e-9, marked
            worst = min(worst, coverage)
        assert worst < confidence + 0.2  # or it would say nothing

    def test_the_chance_of_no_marked_row_counts_undivided(self):
        """The bound is the largest total that its definition does not reject, split by split."""
        undivided = Stratum(27, 10, 3)
        search = SplitSearch.of((Stratum(12, 4, 1), Stratum(15, 6, 2)), 0.1, undivided=undivided)
        sizes = tuple(stratum.n_rows for stratum in search.strata)
        drawn = tuple(stratum.n_drawn for stratum in search.strata)
        fewest, most = search.limits()
        possible = []
        for split in itertools.product(*map(range, fewest, np.add(most, 1))):
            none = math.prod(map(brute.chance_of_marked, (0, 0), sizes, split, drawn))
            none_undivided = brute.chance_of_marked(0, 27, sum(split), 10)
            if probability(search, split) - none + none_undivided > search.level:
                possible.append(sum(split))
        assert search.largest_total() == max(possible)

    def test_without_a_marked_row_a_division_costs_nothing(self):
        for n_first in (0, 10, 24, 30):
            strata = (Stratum(800, n_first, 0), Stratum(200, 30 - n_first, 0))
            alone = Stratum(1000, 30, 0).most(1.0 - 0.025)
            assert alone <= most_marked(strata, 0.025, drawn_as_one=True) <= 1.012 * alone

    def test_strata_are_added_up_over_every_split_of_a_total(self):
        """What the compiled loop returns is the largest convolution, term by term."""
        generator = np.random.default_rng(0)
        reach = np.sort(generator.random((4, 9)), axis=1)
        probabilities = generator.dirichlet(np.ones(3), size=5)
        weight = 2
        largest = largest_over_splits(reach, probabilities, weight)
        for total, y in itertools.product(range(4 + 5 - 1), range(9)):
            expected = [
                sum(
                    probabilities[cell, drawn] * reach[total - cell, y - weight * drawn]
                    for drawn in range(3)
                    if y >= weight * drawn
                )
                for cell in range(5)
                if 0 <= total - cell < 4
            ]
            assert largest[total, y] == pytest.approx(max(expected))

    def test_samples_are_ordered_by_an_approximate_limit(self):
        """What is reached are the samples whose limit, written out, is no larger."""
        strata = (Stratum(40, 6, 2), Stratum(300, 9, 1))
        search = SplitSearch.of(strata, 0.05)
        first, other = search.strata

        def limit(x_first, x_other):
            total, squares = 0.0, 0.0
            for stratum, x in ((first, x_first), (other, x_other)):
                share = x / stratum.n_drawn
                upper = 1.0
                if x < stratum.n_drawn:
                    upper = beta.ppf(1.0 - search.level, x + 1, stratum.n_drawn - x)
                shrunk = np.sqrt(1.0 - stratum.n_drawn / stratum.n_rows)
                total += stratum.n_rows * share
                squares += (stratum.n_rows * (upper - share) * shrunk) ** 2
            return total + np.sqrt(squares)

        observed = limit(first.n_marked, other.n_marked)
        for x_first in range(first.n_drawn + 1):
            below = [limit(x_first, x) <= observed + 1e-9 for x in range(other.n_drawn + 1)]
            assert search.reached[x_first] == sum(below) - 1

    @pytest.mark.parametrize("marked", [(1, 2), (0, 0), (3, 1), (4, 6)])
    def test_the_bound_is_what_trying_all_splits_finds(self, marked):
        strata = (Stratum(12, 4, marked[0]), Stratum(15, 6, marked[1]))
        search = SplitSearch.of(strata, 0.1)
        assert search.largest_total() == largest_by_trying(search)

    @pytest.mark.parametrize("marked", [(1, 2, 0), (0, 0, 0), (2, 1, 1)])
    def test_of_three_strata_it_is_hardly_more(self, marked):
        """The worst split may be another one for every sum, which costs a row or two."""
        strata = tuple(map(Stratum, (9, 12, 7), (3, 4, 2), marked))
        search = SplitSearch.of(strata, 0.1)
        by_trying = largest_by_trying(search)
        assert by_trying <= search.largest_total() <= by_trying + 1

    def test_coarser_cells_only_widen_a_bound(self, monkeypatch):
        strata = (Stratum(4000, 30, 2), Stratum(900, 20, 9), Stratum(300, 10, 4))
        fine = most_marked(strata, 0.05)
        monkeypatch.setattr(strata_module, "MOST_CELLS", 20)
        assert fine <= most_marked(strata, 0.05) <= 1.2 * fine


class TestPooled:
    """Many strata: only the mean of marked rows drawn from most of them is used."""

    @pytest.mark.parametrize("rarely_marked", [True, False])
    @pytest.mark.parametrize(
        ("sizes", "drawn", "apart"),
        [
            ((4, 4, 4), (2, 2, 2), 1),
            ((5, 3, 6), (2, 1, 3), None),
            ((2, 8, 2), (1, 1, 2), None),  # a row of the last stratum stands for one
            ((3, 3, 4, 3), (1, 2, 2, 1), 2),
            ((2, 9, 3), (2, 2, 2), 0),  # counts are no whole numbers
        ],
    )
    def test_no_table_is_missed_too_often(self, sizes, drawn, apart, rarely_marked):
        """Every split of every total of small tables, wherever marked rows are thought to be."""
        confidence = 0.4
        level = (1.0 - confidence) / 2.0

        @cache
        def interval(drawn, found):
            strata = tuple(map(Stratum, sizes, drawn, found))
            mirrored = tuple(stratum.mirrored() for stratum in strata)
            others = pooled_bound(mirrored, level, apart, rarely_marked=not rarely_marked)
            most = pooled_bound(strata, level, apart, rarely_marked=rarely_marked)
            return sum(sizes) - others, most

        for marked, coverage in brute.coverage_of_splits(sizes, drawn, interval):
            assert coverage >= confidence - 1e-9, marked

    def test_the_chance_is_bounded_for_every_split(self):
        """What a search holds against the level is never below the chance of any split."""
        strata = tuple(map(Stratum, (7, 5, 9, 4), (3, 2, 4, 1), (1, 0, 1, 0)))
        counts = np.ones(3)
        pool = Pool.of(strata[1:], counts, rarely_marked=True)
        search = PooledSearch.of(Apart(strata[0]), pool, 0.3)
        drawn = tuple(stratum.n_drawn for stratum in strata)
        sizes = tuple(stratum.n_rows for stratum in strata)
        largest = {}
        for split in itertools.product(range(0, 8, 2), range(6), range(10), range(5)):
            chance = sum(
                p
                for found, p in brute.split_outcomes(sizes, drawn, split)
                if sum(found[1:]) <= search.reached[found[0]]
            )
            key = split[0], sum(split[1:])
            largest[key] = max(largest.get(key, 0.0), chance)
        for (first, others), chance in largest.items():
            chances = search.chances_of_small_samples(np.array([first]))
            bound = search.bound_probability(chances, convex_majorant(chances), np.array([others]))
            assert chance <= bound[0] + 1e-9, (first, others)

    def test_a_majorant_is_convex_and_nowhere_below(self):
        chances = np.sort(np.random.default_rng(0).random((5, 30)), axis=1)[:, ::-1]
        chances[:, -1] = 0.0
        majorant = convex_majorant(chances)
        assert np.all(majorant >= chances - 1e-12)
        assert np.all(np.diff(majorant, 2, axis=1) >= -1e-12)

    @pytest.mark.parametrize("n_strata", [8, 20, 50])
    def test_many_predicted_classes_tell_more_than_labels_alone(self, n_strata):
        """A class that is mostly predicted where it is, 300 rows drawn in proportion."""
        sizes = np.full(n_strata, 20_000 // n_strata)
        drawn = np.full(n_strata, 300 // n_strata)
        marked = np.zeros(n_strata, dtype=int)
        marked[0] = round(0.9 * drawn[0])
        marked[1] = 1
        strata = tuple(map(Stratum, sizes.tolist(), drawn.tolist(), marked.tolist()))
        low, high = total_interval(strata, 0.95, apart=0)
        alone = Stratum(int(sizes.sum()), int(drawn.sum()), int(marked.sum()))
        low_alone, high_alone = total_interval((alone,), 0.95)
        assert high - low < 0.8 * (high_alone - low_alone)


class TestNarrowest:
    """No bound that rises with the marked rows drawn can be narrower, so ours is not either."""

    def test_it_is_the_largest_total_that_so_few_marked_rows_leave_possible(self):
        strata = (Stratum(8, 3, 1), Stratum(10, 4, 2))
        level = 0.1
        possible = [
            a + b
            for a, b in itertools.product(range(9), range(11))
            if hypergeom.cdf(1, 8, a, 3) * hypergeom.cdf(2, 10, b, 4) > level
        ]
        assert narrowest_most_marked(strata, level) == max(possible)

    @pytest.mark.parametrize(("n_common", "n_rare"), [(15, 15), (25, 5), (50, 50), (80, 20)])
    def test_ours_is_hardly_above_it(self, n_common, n_rare):
        for x_common, x_rare in itertools.product((0, 1), (n_rare // 3, 2 * n_rare // 3)):
            strata = (Stratum(9360, n_common, x_common), Stratum(640, n_rare, x_rare))
            narrowest = narrowest_most_marked(strata, 0.025)
            assert narrowest <= most_marked(strata, 0.025) <= 1.1 * narrowest

    def test_more_strata_are_refused(self):
        with pytest.raises(ValueError, match="two strata at most"):
            narrowest_most_marked((Stratum(4, 1, 0),) * 3, 0.05)


class TestLimits:
    def test_everything_drawn_is_known(self):
        strata = (Stratum(5, 5, 2), Stratum(8, 8, 1))
        assert total_interval(strata, 0.95) == (3, 3)

    def test_a_stratum_that_was_not_looked_at_may_hold_anything(self):
        strata = (Stratum(5, 5, 2), Stratum(8, 0, 0))
        assert total_interval(strata, 0.95) == (2, 10)

    def test_nothing_drawn(self):
        assert most_marked((Stratum(4, 0, 0),), 0.05) == 4

    def test_a_million_rows(self):
        strata = (Stratum(950_000, 150, 1), Stratum(50_000, 150, 140))
        lower, upper = total_interval(strata, 0.95)
        assert lower < 46_667 + 6_333 < upper
        assert upper - lower < 60_000

    def test_impossible_counts_are_refused(self):
        with pytest.raises(ValueError, match="cannot be drawn"):
            Stratum(3, 4, 1)


@given(st.integers(0, 10**6), st.sampled_from([12, 300, 100_000]), st.integers(1, 4))
def test_the_largest_sums_are_those_of_all_pairs(seed, most_rows, n_others):
    rng = np.random.default_rng(seed)
    strata = []
    for n_rows in rng.integers(2, most_rows, n_others + 1).tolist():
        n_drawn = int(rng.integers(1, min(n_rows, 60) + 1))
        strata.append(Stratum(n_rows, n_drawn, int(rng.integers(n_drawn + 1))))
    first, *others = strata
    weights = lattice_weights(tuple(others))
    n_sums = int(weights @ [other.n_drawn for other in others])
    n_rows = sum(other.n_rows for other in others)
    shares = np.arange(first.n_drawn + 1) / first.n_drawn
    shares_others = np.arange(n_sums + 1) / n_sums
    n_drawn = sum(other.n_drawn for other in others)
    excess = excess_of_limit(shares, first.n_rows, first.n_drawn, 0.05)
    excess_others = excess_of_limit(shares_others, n_rows, n_drawn, 0.05)
    limit = first.n_rows * shares[:, None] + n_rows * shares_others
    limit = limit + np.hypot(excess[:, None], excess_others)
    observed = limit[first.n_marked, int(weights @ [other.n_marked for other in others])]
    expected = np.sum(limit <= observed * (1.0 + 1e-12), axis=1) - 1
    found = largest_sums(first, tuple(others), weights, 0.05)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n_strata", [2, MOST_STRATA_SPLIT + 2])
def test_many_draws_take_no_table_of_all_pairs_of_counts(n_strata):
    """Of 10,000 draws from each stratum that would be gigabytes."""
    strata = [Stratum(30_000, 10_000, 7_000), *[Stratum(30_000, 10_000, 300)] * (n_strata - 1)]
    tracemalloc.start()
    fewest, most = total_interval(tuple(strata), 0.95, apart=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    estimate = sum(3 * stratum.n_marked for stratum in strata)
    assert 0.95 * estimate < fewest < estimate < most < 1.05 * estimate
    assert peak < 2**30
