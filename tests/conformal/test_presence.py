"""How likely known cells lie at labelled rows: against all ways to label rows."""

import numpy as np
import pytest
from scipy.stats import binom

from tests import brute
from transduce.conformal import Chance, Grouped, Sampled
from transduce.conformal.presence import bound_of_labels, tail_of_labels


@pytest.mark.parametrize("n_labelled", [1, 3, 5, 8])
@pytest.mark.parametrize("n_known", [1, 4, 7])
def test_by_all_ways_to_label(n_labelled, n_known):
    known = np.arange(9) < n_known
    for n_hits in range(min(n_labelled, n_known) + 1):
        if n_labelled - n_hits > 9 - n_known:
            continue
        labelled = np.zeros(9, dtype=bool)
        labelled[:n_hits] = True
        labelled[n_known : n_known + n_labelled - n_hits] = True
        expected = brute.chance_of_labels(9, n_labelled, range(n_known), n_hits)
        chance = tail_of_labels(known, labelled, np.zeros(9, dtype=int))
        assert chance == pytest.approx(float(expected))
        if n_hits == n_known:  # all known rows are labelled
            assert chance <= (n_labelled / 9) ** n_known + 1e-12


def test_within_categories():
    """The convolution over categories, by going through all ways in each."""
    known = np.array([1, 1, 0, 0, 1, 1, 1, 0], dtype=bool)
    labelled = np.array([1, 1, 0, 0, 1, 1, 0, 0], dtype=bool)
    cells = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    expected = sum(
        (
            brute.chance_of_labels(4, 2, range(2), first)
            - brute.chance_of_labels(4, 2, range(2), first + 1)
        )
        * brute.chance_of_labels(4, 2, range(3), max(4 - first, 0))
        for first in range(3)
    )
    assert tail_of_labels(known, labelled, cells) == pytest.approx(float(expected))
    by_design = Chance(within=cells).bind(~labelled).chance_of_presence(known, labelled)
    assert by_design == pytest.approx(float(expected))


def test_a_bound_where_probabilities_are_known():
    known = np.ones(12, dtype=bool)
    for n_hits in range(13):
        labelled = np.arange(12) < n_hits
        bound = bound_of_labels(known, labelled, np.full(12, 0.3))
        assert bound >= binom.sf(n_hits - 1, 12, 0.3) - 1e-12
    assert bound == pytest.approx(0.3**12)
    uneven = np.linspace(0.1, 0.5, 12)
    assert bound_of_labels(known, known, uneven) >= np.prod(uneven)
    design = Sampled(uneven).bind(np.arange(12) > 8)
    assert design.chance_of_presence(known, known) == pytest.approx(0.3**12)
    assert bound_of_labels(~known, known, uneven) == 1.0


def test_of_groups_each_counts_once():
    groups = np.repeat(np.arange(10), 50)
    labelled = groups < 5
    known = groups < 2  # 100 cells, but of two groups only
    design = Grouped(groups).bind(~labelled)
    expected = brute.chance_of_labels(10, 5, range(2), 2)
    assert design.chance_of_presence(known, labelled) == pytest.approx(float(expected))
