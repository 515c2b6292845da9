"""Laws of very many rows: exact, at once, and refused where numbers cannot count them."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, hypergeom

from transduce.conformal import Chance, ClassMiscoverage, Drawn, Grouped, Miscoverage, Sampled
from transduce.conformal.miscoverage import confidence_for, powered_mean, simultaneous_bounds
from transduce.population.urns import drawn_at_most, urn_bound


def drawn_exactly(count, marked, n_calibration, n_unlabelled):
    """Return the hypergeometric distribution function by fractions of whole numbers."""
    total = n_calibration + n_unlabelled
    ways = Fraction(0)
    for drawn in range(count + 1):
        product = comb(n_calibration, drawn)
        for place in range(drawn):
            product *= max(marked - place, 0)
        for place in range(n_calibration - drawn):
            product *= max(total - marked - place, 0)
        ways += product
    for place in range(n_calibration):
        ways /= total - place
    return float(ways)


@given(
    st.integers(1, 10**15),
    st.integers(1, 30),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_few_marked_rows_are_drawn_as_fractions_say(n_unlabelled, n_calibration, share, part):
    marked = int(share * (n_unlabelled + n_calibration))
    count = int(part * n_calibration)
    probability = drawn_at_most(count, np.array([marked]), n_calibration, n_unlabelled)[0]
    exact = drawn_exactly(count, marked, n_calibration, n_unlabelled)
    assert probability == pytest.approx(exact, abs=1e-9)


def test_both_ways_to_compute_agree():
    marked = np.linspace(0, 2 * 10**6, 9).astype(int)
    probabilities = drawn_at_most(3, marked, 79, 2 * 10**6)
    np.testing.assert_allclose(
        probabilities, hypergeom.cdf(3, 2 * 10**6 + 79, 79, marked), atol=1e-9
    )


def test_the_law_of_very_many_rows_is_that_of_a_share():
    law = Miscoverage(10**15, 39, 36)
    share = beta(4, 36)
    assert law.cdf(10**14) == pytest.approx(share.cdf(0.1), rel=1e-9)
    assert law.quantile(0.95) == pytest.approx(10**15 * share.ppf(0.95), rel=1e-9)
    assert Miscoverage(10**15, 12, 1).cdf(1 - 1e-12) == pytest.approx(0.0, abs=1e-12)
    assert urn_bound(0, 79, 10**12, 0.95) == pytest.approx(
        10**12 * (1 - 0.05 ** (1 / 79)), rel=1e-9
    )
    rank = next(k for k in range(1, 100) if beta(100 - k, k).cdf(0.2) >= 0.9)
    assert confidence_for(0.8, 0.9, n_unlabelled=10**12, n_calibration=99) == rank / 100
    by_class = ClassMiscoverage(10**9, (300, 300), (100, 100), (91, 91))
    assert 10**8 < by_class.quantile(0.9) < 2 * 10**8


@pytest.mark.parametrize("number", [2**63, 10**400, -1, 1.5, "x", None, True])
def test_numbers_that_count_no_rows(number):
    for make in (
        lambda: Miscoverage(number, 12, 1),
        lambda: Miscoverage(12, number, 1),
        lambda: Miscoverage(12, 12, number),
        lambda: ClassMiscoverage(number, (3, 3), (2, 2), (1, 1)),
        lambda: ClassMiscoverage(12, (3, number), (2, 2), (1, 1)),
        lambda: ClassMiscoverage(12, (3, 3), (2, number), (1, 1)),
        lambda: simultaneous_bounds(0.9, n_unlabelled=number, n_calibration=12),
        lambda: confidence_for(0.9, 0.9, n_unlabelled=12, n_calibration=number),
    ):
        if number is True and make.__code__.co_names == ("Miscoverage",):
            continue
        with pytest.raises(ValueError, match="must"):
            make()


def test_lists_that_would_not_fit():
    with pytest.raises(ValueError, match="too many to list"):
        _ = Miscoverage(10**9, 12, 1).probabilities
    with pytest.raises(ValueError, match="n_labelled, n_calibration and ranks"):
        ClassMiscoverage(12, (3, 3), (2,), (1, 1))
    with pytest.raises(ValueError, match="count"):
        Miscoverage(12, 12, 1).cdf(np.nan)


@pytest.mark.parametrize("factor", [1.0, 1e200, 1e-200])
def test_means_of_labels_of_any_size(factor):
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(n, 1)) for n in (50, 9, 9)]
    plain = powered_mean(*parts, np.ones(9))
    scaled = powered_mean(*(part * factor for part in parts), np.ones(9))
    np.testing.assert_allclose(scaled / factor, plain, rtol=1e-9)


@pytest.mark.parametrize("design", [Drawn, Sampled, Grouped])
def test_designs_need_what_they_are_about(design):
    with pytest.raises(ValueError, match=f"{design.__name__} needs"):
        design(None)


@pytest.mark.parametrize("sensitivity", [1e300, 10**400, np.inf])
def test_a_sensitivity_beyond_all_labels(sensitivity):
    with pytest.raises(ValueError, match="sensitivity must"):
        Chance(sensitivity=sensitivity)
