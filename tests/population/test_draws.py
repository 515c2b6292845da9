"""Draws by strata: how many from each, which rows, and with what probability."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.population.draws import (
    allocate,
    draw_from_strata,
    expected_spreads,
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
    numbers = allocate(sizes, number, spreads, how)
    assert numbers.sum() == number
    assert (numbers >= 0).all()
    assert (numbers <= sizes).all()
    if number >= 2 * len(sizes):
        assert (numbers >= np.minimum(sizes, 2)).all()


def test_allocations_of_a_rare_and_a_common_class():
    sizes = np.array([9_000, 1_000])
    spreads = expected_spreads(sizes, np.zeros(2), np.zeros(2))
    assert allocate(sizes, 300, spreads, "equal").tolist() == [150, 150]
    assert allocate(sizes, 300, spreads, "proportional").tolist() == [270, 30]
    assert allocate(sizes, 300, spreads, "neyman").tolist() == [225, 75]


def test_neyman_follows_the_errors_that_were_found():
    sizes = np.array([500, 500])
    spreads = expected_spreads(sizes, np.array([50, 50]), np.array([0, 20]))
    numbers = allocate(sizes, 100, spreads, "neyman")
    exact = 100 * spreads / spreads.sum()
    assert np.abs(numbers - exact).max() <= 1.0


def test_a_stratum_is_a_simple_random_sample():
    """Every row of a stratum is drawn equally often, as its probability says."""
    missing = np.arange(12) != 3
    strata = np.array([0] * 4 + [1] * 8)
    counts = np.zeros(12)
    for seed in range(600):
        draw = draw_from_strata(missing, strata, 6, seed, np.ones(2), "equal")
        counts[draw.rows] += 1
        assert draw.numbers.tolist() == [3, 3]
    assert draw.probabilities.tolist() == [1.0, 1.0, 1.0, 0.0] + [0.375] * 8
    assert np.abs(counts / 600 - draw.probabilities).max() < 0.08


def test_bands_of_uncertainty_keep_ties_together():
    uncertainty = np.array([0.0] * 50 + [0.2] * 25 + [0.9] * 25)
    bands = uncertainty_bands(uncertainty)
    assert len(np.unique(bands[:50])) == 1
    assert bands[0] < bands[60] < bands[99]


def test_more_rows_than_there_are_cannot_be_drawn():
    with pytest.raises(ValueError, match="cannot be drawn"):
        draw_from_strata(np.ones(3, bool), np.zeros(3, int), 4, 0, np.ones(1), "equal")
