"""Exact intervals for the number of marked rows in several strata, against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import hypergeom

from transduce.population.strata import SplitSearch, Stratum, most_marked, total_interval


def outcomes(sizes, drawn, marked):
    """Yield every number of marked rows that may be drawn from each stratum, with its probability."""
    ranges = [range(n + 1) for n in drawn]
    for found in itertools.product(*ranges):
        probability = np.prod(
            [
                hypergeom.pmf(x, size, k, n)
                for x, size, k, n in zip(found, sizes, marked, drawn, strict=True)
            ]
        )
        if probability > 0.0:
            yield found, probability


class TestExact:
    @pytest.mark.parametrize(
        ("sizes", "drawn"),
        [
            ((6, 6), (3, 3)),
            ((3, 9), (2, 3)),
            ((4, 4, 4), (2, 2, 2)),
            ((8, 4), (2, 4)),
            ((7,), (3,)),
        ],
    )
    def test_no_table_is_missed_too_often(self, sizes, drawn):
        """Every split of every total of small tables, at a level where it matters."""
        confidence = 0.7
        intervals = {
            found: total_interval(
                tuple(Stratum(*numbers) for numbers in zip(sizes, drawn, found, strict=True)),
                confidence,
            )
            for found in itertools.product(*[range(n + 1) for n in drawn])
        }
        for marked in itertools.product(*[range(size + 1) for size in sizes]):
            held = 0.0
            for found, probability in outcomes(sizes, drawn, marked):
                lower, upper = intervals[found]
                held += probability * (lower <= sum(marked) <= upper)
            assert held >= confidence - 1e-9, marked

    def test_the_probability_of_a_split_is_that_of_its_outcomes(self):
        strata = (Stratum(9, 3, 1), Stratum(20, 5, 2), Stratum(7, 2, 0))
        search = SplitSearch.of(strata, 0.1)
        split = (4, 7, 3)
        expected = sum(
            probability
            for found, probability in outcomes((9, 20, 7), (3, 5, 2), split)
            if search.weights @ np.array(found) <= search.observed
        )
        assert search.probability(split) == pytest.approx(expected)

    def test_the_search_finds_what_trying_all_splits_finds(self):
        strata = (Stratum(12, 4, 1), Stratum(15, 6, 2))
        search = SplitSearch.of(strata, 0.1)
        fewest, most = search.limits()
        splits = itertools.product(*[range(a, b + 1) for a, b in zip(fewest, most, strict=True)])
        possible = [sum(split) for split in splits if search.probability(split) > search.level]
        assert search.largest_total() == max(possible)


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
