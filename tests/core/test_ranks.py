"""Ranks against their definitions in exact fractions; folds and trees against what they are to be."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest
from sklearn.ensemble import RandomTreesEmbedding

from transduce.core.ranks import (
    calibration_rank,
    fewest_calibration,
    leaves_of,
    nonconformity_rank,
    p_values,
    random_folds,
    random_trees,
    rank_folds,
)

LEVELS = ("0.3", "0.5", "0.75", "0.8", "0.9", "0.95", "0.99", "0.999")


@pytest.mark.parametrize("level", LEVELS)
def test_ranks_are_those_of_exact_fractions(level):
    exact = Fraction(level)
    for n in range(0, 400):
        assert nonconformity_rank(float(level), n) == floor((1 - exact) * (n + 1))
        assert calibration_rank(float(level), n) == ceil(exact * (n + 1))


@pytest.mark.parametrize("level", LEVELS)
def test_a_label_is_kept_if_enough_rows_are_at_least_as_strange(level):
    """The rank is the smallest count whose p-value exceeds one minus the level."""
    exact = Fraction(level)
    for n in (1, 4, 9, 19, 99, 150):
        kept = [count for count in range(n + 1) if Fraction(1 + count, n + 1) > 1 - exact]
        assert nonconformity_rank(float(level), n) == min(kept)


def test_p_values_by_counts():
    for above, tied, n in ((0, 0, 0), (2, 3, 9), (4, 0, 4), (0, 5, 5)):
        assert p_values(above, tied, n) == pytest.approx((above + tied + 1) / (n + 1))
        assert p_values(above, tied, n, 0.25) == pytest.approx(
            (above + 0.25 * (tied + 1)) / (n + 1)
        )
    np.testing.assert_allclose(p_values(np.array([0, 1]), np.array([1, 0]), 3), [0.5, 0.5])


@pytest.mark.parametrize("level", LEVELS)
def test_the_fewest_calibration_labels(level):
    exact = Fraction(level)
    fewest = next(c for c in range(1, 2000) if Fraction(c, c + 1) >= exact)
    assert fewest_calibration(float(level)) == fewest
    assert fewest_calibration(float(level), 1.0) == fewest


@pytest.mark.parametrize("level", ["0.5", "0.8", "0.9", "0.95"])
@pytest.mark.parametrize("factor", ["1.5", "2", "3"])
def test_the_fewest_calibration_labels_if_odds_are_off(level, factor):
    """All weigh at least 1 / factor, the unlabelled row at most factor: its share is to be at most 1 - level."""
    odds = Fraction(factor) ** 2
    exact = Fraction(level)
    fewest = next(c for c in range(1, 2000) if Fraction(c) / (c + odds) >= exact)
    assert fewest_calibration(float(level), float(factor)) == fewest


def test_folds_by_rank_span_the_labels_whatever_the_order():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(10.0), 2)
    ties = rng.normal(size=(20, 2))
    folds = rank_folds(labels, ties, 3)
    order = np.lexsort([ties[:, 1], ties[:, 0], labels])
    # Along the labels, those of equal label by their features, rows are dealt out in turn.
    expected = np.empty(20, dtype=int)
    dealt = sorted(range(20), key=lambda row: (labels[row], *ties[row]))
    for place, row in enumerate(dealt):
        expected[row] = place % 3
    assert sorted(np.bincount(folds)) == [6, 7, 7]
    for label in np.unique(labels):
        assert len(set(folds[labels == label])) == 2
    np.testing.assert_array_equal(folds[order], expected[order])
    shuffled = rng.permutation(20)
    np.testing.assert_array_equal(rank_folds(labels[shuffled], ties[shuffled], 3), folds[shuffled])


def test_folds_by_rank_of_several_labels_go_by_the_first_of_them():
    labels = np.array([[2.0, 0.0], [1.0, 5.0], [1.0, 4.0], [3.0, 0.0]])
    np.testing.assert_array_equal(rank_folds(labels, np.zeros((4, 1)), 4), [2, 1, 0, 3])


def test_random_folds_spread_every_class():
    codes = np.repeat([0, 1, 2], [10, 7, 3])
    folds = random_folds(codes, 3, np.random.RandomState(1))
    assert set(folds) == {0, 1, 2}
    for code in range(3):
        counts = np.bincount(folds[codes == code], minlength=3)
        assert counts.max() - counts.min() <= 1
    assert np.ptp(np.bincount(folds)) <= 1
    np.testing.assert_array_equal(folds, random_folds(codes, 3, np.random.RandomState(1)))
    assert (folds != random_folds(codes, 3, np.random.RandomState(2))).any()


def test_trees_are_those_of_scikit_learn():
    rows = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    trees = random_trees(rows, 7, depth=4, seed=3, fewest=2)
    theirs = RandomTreesEmbedding(7, max_depth=4, min_samples_leaf=2, random_state=3).fit(rows)
    np.testing.assert_array_equal(leaves_of(trees, rows), theirs.apply(rows))
    default = random_trees(rows, 2, depth=20, seed=3)
    assert min(tree.n_node_samples.min() for tree in default) == 1
