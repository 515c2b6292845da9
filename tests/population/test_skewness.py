"""Skewness of numbers of which a few are known: against all subsets, integrals, and trials."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import skew

from tests import brute
from transduce.population import estimate_mean
from transduce.population.skewness import (
    FEWEST_FOR_RATIOS,
    MOST_SKEWED,
    log_normal_skewness,
    ratios_of_l_moments,
    skewness_of,
    skewness_of_all,
)
from transduce.population.uncertain import FURTHEST, Uncertain


def test_skewness_is_that_of_a_library():
    numbers = np.random.default_rng(0).exponential(size=9)
    assert skewness_of(numbers) == pytest.approx(skew(numbers))


def test_ratios_are_means_over_all_subsets():
    numbers = np.random.default_rng(0).exponential(size=9)
    assert ratios_of_l_moments(numbers) == pytest.approx(brute.ratios_of_l_moments(numbers))


@pytest.mark.parametrize("sigma", [0.2, 0.5, 1.0, 1.25])
def test_log_normal_numbers_have_their_own_skewness(sigma):
    skewness = (np.exp(sigma**2) + 2.0) * np.sqrt(np.exp(sigma**2) - 1.0)
    third, fourth = brute.log_normal_ratios(sigma)
    assert log_normal_skewness(third, fourth) == pytest.approx(skewness, rel=0.02)


def test_a_sample_says_more_than_its_own_skewness():
    """Medians over samples of a hundred log-normal numbers, whose skewness is 13."""
    rng = np.random.default_rng(1)
    samples = np.exp(1.25 * rng.normal(size=(200, 100)))
    assert np.median([skewness_of(sample) for sample in samples]) < 5.0
    assert 9.0 < np.median([skewness_of_all(sample) for sample in samples]) <= MOST_SKEWED


@pytest.mark.parametrize(
    ("name", "most"), [("normal", 0.6), ("uniform", 0.4), ("exponential", 3.3), ("counts", 2.0)]
)
def test_short_tails_are_not_taken_for_long_ones(name, most):
    rng = np.random.default_rng(2)
    draws = {
        "normal": rng.normal(size=(200, 100)),
        "uniform": rng.random((200, 100)),
        "exponential": rng.exponential(size=(200, 100)),
        "counts": rng.poisson(1.0, (200, 100)).astype(float),
    }
    assert np.quantile([abs(skewness_of_all(sample)) for sample in draws[name]], 0.8) < most


class TestLaws:
    def test_scale_offset_and_sign(self):
        numbers = np.random.default_rng(3).exponential(size=40) ** 2
        skewness = skewness_of_all(numbers)
        assert skewness_of_all(1e6 + 1e3 * numbers) == pytest.approx(skewness, rel=1e-6)
        assert skewness_of_all(-numbers) == pytest.approx(-skewness)
        for unit in (1e-310, 1e300):
            assert skewness_of_all(unit * numbers) == pytest.approx(skewness, rel=1e-6)

    def test_at_least_that_of_the_sample(self):
        rng = np.random.default_rng(4)
        for _ in range(50):
            numbers = rng.standard_t(3, size=30)
            assert abs(skewness_of_all(numbers)) >= abs(skewness_of(numbers)) * (1.0 - 1e-12)

    def test_few_numbers_have_that_of_the_sample(self):
        numbers = np.random.default_rng(5).exponential(size=FEWEST_FOR_RATIOS - 1) ** 3
        assert skewness_of_all(numbers) == pytest.approx(skewness_of(numbers))

    def test_equal_numbers_have_none(self):
        assert skewness_of_all(np.full(30, 2.5)) == 0.0

    def test_a_side_is_extended_by_no_more_than_it_can_be(self):
        plain = Uncertain(0.0, 1.0, 29.0, 0.0, 0.0).interval(0.95)
        skewed = Uncertain(0.0, 1.0, 29.0, 0.0, 0.0, skewness=1e3).interval(0.95)
        assert skewed[0] == plain[0]
        assert skewed[1] == pytest.approx((1.0 + FURTHEST) * plain[1])


def test_means_of_very_skewed_columns_are_held():
    """Log-normal numbers, sigma 1.25: with the skewness of the sample alone in 89 % of draws."""
    rng = np.random.default_rng(6)
    hits = 0
    for _ in range(150):
        y = np.exp(1.25 * rng.normal(size=800))
        column = np.where(np.arange(800) < 100, y, np.nan)
        line = estimate_mean(column).iloc[0]
        hits += line["lower"] <= y.mean() <= line["upper"]
    assert hits >= 0.93 * 150
