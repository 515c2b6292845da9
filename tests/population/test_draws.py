"""Draws by strata: how many from each, which rows, and with what probability."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.population.draws import (
    LEAST_OF_PROPORTION,
    allocate,
    draw_from_strata,
    expected_spreads,
    guarded_numbers,
    join_small_strata,
    uncertainty_bands,
)

SIZES = st.lists(st.integers(0, 50), min_size=1, max_size=6).filter(lambda sizes: sum(sizes) > 0)


@given(SIZES, st.floats(0.01, 1.0), st.sampled_from(["equal", "proportional", "neyman"]), st.data())
def test_exactly_the_number_is_drawn_and_no_stratum_gives_more_than_it_has(sizes, part, how, data):
    sizes = np.array(sizes)
    number = max(1, int(part * sizes.sum()))
    spreads = np.array(
        data.draw(st.lists(st.floats(0, 1), min_size=len(sizes), max_size=len(sizes)))
    )
    numbers = allocate(sizes, number, how, data.draw(st.sampled_from([None, spreads])))
    assert numbers.sum() == number
    assert (numbers >= 0).all()
    assert (numbers <= sizes).all()
    if number >= 2 * len(sizes):
        assert (numbers >= np.minimum(sizes, 2)).all()


def test_allocations_of_a_rare_and_a_common_class():
    sizes = np.array([9_000, 1_000])
    assert allocate(sizes, 300, "proportional").tolist() == [270, 30]
    assert allocate(sizes, 300, "equal").tolist() == [150, 150]
    assert allocate(np.array([9_000, 950, 50]), 300, "equal").tolist() == [125, 125, 50]
    assert allocate(sizes, 300, "neyman").tolist() == [246, 54]
    assert allocate(np.array([6_000, 4_000]), 100, "neyman").tolist() == [55, 45]
    assert allocate(np.array([5_200, 4_800]), 101, "equal").tolist() == [51, 50]


@given(SIZES, st.floats(0.01, 1.0))
def test_a_guess_loses_at_most_a_twentieth(sizes, part):
    """Where strata tell nothing, a total is hardly less precise than by proportional numbers."""
    sizes = np.array([size for size in sizes if size > 0])
    number = max(1, int(part * sizes.sum()))
    numbers = allocate(sizes, number, "neyman")
    in_proportion = number * sizes / sizes.sum()
    if (in_proportion * LEAST_OF_PROPORTION >= 1.0).all() and number > 11 * len(sizes):
        variance = np.sum(sizes**2 / numbers)
        assert np.sqrt(variance / (sizes.sum() ** 2 / number)) <= 1.05


def test_neyman_follows_the_errors_that_were_found():
    sizes = np.array([500, 500])
    spreads = expected_spreads(np.array([50, 50]), np.array([0, 20]))
    numbers = allocate(sizes, 100, "neyman", spreads)
    exact = 100 * spreads / spreads.sum()
    assert np.abs(numbers - exact).max() <= 1.0


def test_nothing_is_expected_before_a_row_was_checked():
    assert expected_spreads(np.zeros(2), np.zeros(2)) is None


def test_a_stratum_is_a_simple_random_sample():
    """Every row of a stratum is drawn equally often, as its probability says."""
    missing = np.arange(12) != 3
    strata = np.array([0] * 4 + [1] * 8)
    counts = np.zeros(12)
    for seed in range(600):
        draw = draw_from_strata(missing, strata, np.array([3, 3]), seed)
        counts[draw.rows] += 1
    assert draw.probabilities.tolist() == [1.0, 1.0, 1.0, 0.0] + [0.375] * 8
    assert np.abs(counts / 600 - draw.probabilities).max() < 0.08


def test_bands_of_uncertainty_keep_ties_together():
    uncertainty = np.array([0.0] * 50 + [0.2] * 25 + [0.9] * 25)
    bands = uncertainty_bands(uncertainty)
    assert len(np.unique(bands[:50])) == 1
    assert bands[0] < bands[60] < bands[99]


def test_more_rows_than_there_are_cannot_be_drawn():
    with pytest.raises(ValueError, match="cannot be drawn"):
        allocate(np.array([3]), 4, "equal")


class TestJoining:
    def test_none_are_joined_if_all_get_two(self):
        assert not join_small_strata(np.array([9_000, 600, 400]), 30).any()
        assert not join_small_strata(np.array([9_000, 600, 0, 400]), 30).any()

    def test_the_smallest_are_joined_and_no_more_than_needed(self):
        sizes = np.array([5_000, 40, 2_000, 30, 20, 10])
        joined = join_small_strata(sizes, 30)
        assert joined.tolist() == [False, True, False, True, True, True]
        left = np.append(sizes[~joined], sizes[joined].sum())
        assert guarded_numbers(left, 30).sum() <= 30
        fewer = np.array([5_000, 40, 2_000, 60])  # one of the four is not joined
        assert guarded_numbers(fewer, 30).sum() > 30

    def test_two_rows_from_each_suffice_for_equal_numbers(self):
        sizes = np.array([5_000, 40, 2_000, 60])
        assert not join_small_strata(sizes, 30, "equal").any()
        assert join_small_strata(sizes, 7, "equal").tolist() == [False, True, False, True]

    def test_a_single_row_is_drawn_from_all(self):
        assert join_small_strata(np.array([50, 40, 30]), 1).all()
