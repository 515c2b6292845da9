"""Exact intervals for the number of marked rows in several strata, against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import beta, hypergeom

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
        sizes = tuple(stratum.n_rows for stratum in search.strata)
        drawn = tuple(stratum.n_drawn for stratum in search.strata)
        split = (7, 4, 3)
        expected = sum(
            probability
            for found, probability in outcomes(sizes, drawn, split)
            if search.weights @ np.array(found[1:]) <= search.reached[found[0]]
        )
        assert search.probability(split) == pytest.approx(expected)

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
