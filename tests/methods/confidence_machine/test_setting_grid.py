"""The settings to choose from: how they read, what their kernels are, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from transduce.device.kernels import Kernel, median_width
from transduce.methods.confidence_machine import setting_grid as grid_module
from transduce.methods.confidence_machine.setting_grid import (
    MAX_ROWS,
    Setting,
    SettingGrid,
    TreeKernel,
    check_settings,
    default_settings,
    shared_leaves,
)


def rows(n=30, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def values(kernel, X, Z):
    return kernel.matrix(kernel.represent(X), kernel.represent(Z))


# ------------------------------------------------------------------------------------------- exact


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        (Setting(), "rbf, median width, ridge 1"),
        (Setting("rbf", 0.5, 0.1), "rbf, width 0.5, ridge 0.1"),
        (Setting("linear", ridge=3.0), "linear, ridge 3"),
        (
            Setting({"rbf": 1.0, "linear": 1 / 7}, ridge=0.3),
            "rbf + 0.143 linear, median width, ridge 0.3",
        ),
        (Setting(np.dot), "dot, ridge 1"),
    ],
)
def test_settings_read_as_words(setting, text):
    assert str(setting) == text


def test_a_sum_is_the_weighted_sum():
    X = rows()
    grid = SettingGrid.build([Setting({"rbf": 2.0, "linear": 0.5, "trees": 1.5}, 0.7)], X)
    forms = TreeKernel.grow(X).leaves(X)
    expected = (
        2.0 * Kernel("rbf", 0.7).matrix(X, X) + 0.5 * X @ X.T + 1.5 * shared_leaves(forms, forms)
    )
    np.testing.assert_allclose(values(grid.kernels[0], X, X), expected)
    np.testing.assert_allclose(
        grid.kernels[0].diagonal(grid.kernels[0].represent(X)), np.diag(expected)
    )


def test_equal_kernels_are_built_once():
    """Whatever the ridge; also where a width means nothing, or is the median by another name."""
    X = rows()
    median = median_width(X)
    grid = SettingGrid.build(
        [
            Setting("linear", 2.0, 1.0),
            Setting("linear"),
            Setting("rbf"),
            Setting("rbf", median, 0.1),
            Setting("rbf", 2.0),
        ],
        X,
    )
    assert grid.which.tolist() == [0, 0, 1, 1, 2]
    assert [setting.width for setting in grid.settings[2:]] == [median, median, 2.0]


def test_the_default_grid_holds_the_best_fixed_setting():
    X = rows(d=4)
    grid = default_settings(X)
    assert Setting({"rbf": 1.0, "linear": 0.25}, median_width(X), 0.3) in grid
    assert len({str(setting) for setting in grid}) == len(grid) >= 10


def test_shared_leaves_by_hand():
    one, other = np.array([[1, 2], [1, 3]]), np.array([[1, 3]])
    for function in (shared_leaves, shared_leaves.py_func):
        np.testing.assert_array_equal(function(one, other), [[0.5], [1.0]])


def test_leaves_are_those_of_scikit_learns_forest():
    from sklearn.ensemble import RandomTreesEmbedding

    kernel, ordered = TreeKernel.grow(rows()), rows()[np.lexsort(rows().T[::-1])]
    forest = RandomTreesEmbedding(grid_module.N_TREES, max_depth=grid_module.DEPTH, random_state=0)
    forest.fit(kernel._to_ranks(ordered))
    X = rows(seed=1)
    np.testing.assert_array_equal(kernel.leaves(X), forest.apply(kernel._to_ranks(X)))


# -------------------------------------------------------------------------------------------- laws


@pytest.mark.parametrize("n", [50, MAX_ROWS + 500])
def test_trees_do_not_depend_on_the_order_of_rows(n):
    X = rows(n)
    X[: n // 3] = np.round(X[: n // 3])
    order = np.random.default_rng(1).permutation(n)
    one, other = TreeKernel.grow(X).leaves(X), TreeKernel.grow(X[order]).leaves(X)
    np.testing.assert_array_equal(shared_leaves(one, one[:20]), shared_leaves(other, other[:20]))


def test_trees_see_ranks_only():
    """Any increasing change of a feature leaves them as they are, outliers and large numbers included."""
    X = rows()
    stretched = np.column_stack([np.exp(9 * X[:, 0]), 1e9 + 1e-3 * X[:, 1], X[:, 2] ** 3])
    one, other = TreeKernel.grow(X).leaves(X), TreeKernel.grow(stretched).leaves(stretched)
    np.testing.assert_array_equal(one, other)


# ------------------------------------------------------------------------------------------ limits


@pytest.mark.parametrize("X", [np.zeros((1, 1)), np.zeros((5, 2)), np.array([[0.0], [1.0]])])
def test_trees_on_hardly_any_rows(X):
    leaves = TreeKernel.grow(X).leaves(X)
    assert leaves.shape == (len(X), grid_module.N_TREES)
    assert np.all(shared_leaves(leaves, leaves).diagonal() == 1.0)
    assert TreeKernel.grow(X).leaves(X[:0]).shape == (0, grid_module.N_TREES)


def test_rows_beyond_all_others_fall_into_the_outer_leaves():
    X = np.linspace(0, 1, 40)[:, None]
    kernel = TreeKernel.grow(X)
    np.testing.assert_array_equal(
        kernel.leaves(np.array([[-1e300], [1e300]])), kernel.leaves(X[[0, -1]])
    )


# ---------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ([], "settings is an empty list: give at least one Setting"),
        ("leave one out", "must be 'leave-one-out' or a list of Setting; got 'leave one out'"),
        (3, "must be 'leave-one-out' or a list of Setting; got 3"),
        (["rbf"], "must be a list of Setting; one of them is 'rbf'"),
        ([Setting("rfb")], "Unknown kernel 'rfb'"),
        ([Setting({})], "at least one part"),
        ([Setting(("rbf", "linear"))], "maps names to weights"),
        ([Setting({"rbf": -1.0})], "weight of a kernel must be a positive number; got -1.0"),
        ([Setting(ridge=-0.1)], "ridge must be a positive number; got -0.1"),
        ([Setting(width="mean")], "width .* must be a positive number; got 'mean'"),
        ([Setting("poly", degree="two")], "degree must be a number"),
        ([Setting(), Setting({"precomputed": 1.0, "rbf": 1.0})], "a precomputed one is fixed"),
    ],
)
def test_what_cannot_be_used_is_refused(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        check_settings(settings)
