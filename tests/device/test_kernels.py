"""Kernel matrices, their diagonals, and width rules."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist

from tests.strategies import KERNELS
from transduce.device.kernels import (
    Kernel,
    check_kernel,
    median_width,
    squared_distances,
    uses_width,
)

X = np.random.default_rng(0).normal(size=(7, 3))
Z = np.random.default_rng(1).normal(size=(5, 3))
DISTANCE = cdist(X, Z)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (Kernel("rbf", 1.7), np.exp(-(DISTANCE**2) / (2 * 1.7**2))),
        (Kernel("exponential", 1.7), np.exp(-DISTANCE / (2 * 1.7**2))),
        (Kernel("laplacian", 1.7), np.exp(-cdist(X, Z, "cityblock") / 1.7)),
        (Kernel("linear"), X @ Z.T),
        (Kernel("poly", degree=3, coef0=1.0), (X @ Z.T + 1) ** 3),
        (Kernel("polynomial", degree=2, coef0=0.5), (X @ Z.T + 0.5) ** 2),
        (Kernel("sigmoid", coef0=0.5), np.tanh(X @ Z.T + 0.5)),
        (Kernel("cosine"), 1 - cdist(X, Z, "cosine")),
        (Kernel(lambda u, v: float(u @ v) + 2), X @ Z.T + 2),
    ],
)
def test_kernels_are_what_they_say(kernel, expected):
    np.testing.assert_allclose(kernel.matrix(X, Z), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kernel", [*KERNELS, Kernel("sigmoid"), Kernel("polynomial")])
def test_diagonals_are_those_of_the_matrix(kernel):
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(kernel.matrix(X, X)), rtol=1e-12)
    small = X * 1e-170  # whose squares are 0
    np.testing.assert_allclose(
        kernel.diagonal(small), np.diag(kernel.matrix(small, small)), rtol=1e-12
    )


def test_offsets_and_outliers_cost_no_digits():
    """The rbf kernel sees differences only: a shift changes nothing, an outlier nothing for the others."""
    grid = np.round(X * 64) / 64
    for kernel in (Kernel("rbf", 0.7), Kernel("exponential", 0.7)):
        expected = kernel.matrix(grid, grid)
        np.testing.assert_allclose(
            kernel.matrix(grid + 2.0**30, grid + 2.0**30), expected, rtol=1e-8
        )
        outlier = np.vstack([grid, np.full(3, 1e10)])
        np.testing.assert_allclose(kernel.matrix(outlier, outlier)[:-1, :-1], expected, rtol=1e-8)


def test_functions_are_checked():
    with pytest.raises(ValueError, match="not symmetric"):
        Kernel(lambda u, v: float(u[0] > v[0])).check_symmetry(X)
    with pytest.raises(ValueError, match="must take two rows"):
        Kernel(lambda u, v: u[:, None] - v).matrix(X, Z)
    with pytest.raises(ValueError, match="values that are not finite: scale the features"):
        Kernel(lambda u, v: np.nan).checked_matrix(X, Z)
    with pytest.raises(ValueError, match="kernel='poly' gave values that are not finite"):
        Kernel("poly", degree=1000).checked_matrix(10 * X, Z)


def test_chi2_kernels():
    positive = np.abs(X)
    for name in ("chi2", "additive_chi2"):
        kernel = Kernel(name, 2.0)
        np.testing.assert_allclose(
            kernel.diagonal(positive), np.diag(kernel.matrix(positive, positive)), atol=1e-12
        )


def test_median_width():
    assert median_width(X) == np.median(pdist(X))
    assert median_width(X[[3, 0, 1, 6, 5, 2, 4]]) == pytest.approx(median_width(X), rel=1e-12)
    assert median_width(np.zeros((5, 2))) == 1.0
    assert median_width(np.zeros((1, 2))) == 1.0
    mostly_equal = np.array([[0.0]] * 9 + [[2.0]])
    assert median_width(mostly_equal) == 2.0


def test_median_width_of_many_rows_ignores_their_order():
    rows = np.random.default_rng(2).normal(size=(3000, 4))
    shuffled = rows[np.random.default_rng(3).permutation(3000)]
    assert median_width(rows) == median_width(shuffled)
    assert median_width(rows) == pytest.approx(np.median(pdist(rows)), rel=0.05)


def test_names():
    assert uses_width("rbf")
    assert not uses_width("poly")
    assert not uses_width(lambda u, v: 1.0)
    check_kernel(lambda u, v: 1.0)
    with pytest.raises(ValueError, match="Unknown kernel 'gauss'"):
        check_kernel("gauss")
    with pytest.raises(ValueError, match="Unknown kernel 3"):
        check_kernel(3)


@pytest.mark.parametrize("n_features", [400, 600])
def test_one_row_far_from_all_others_does_not_set_the_width_of_many_features(n_features):
    rows = np.random.default_rng(0).normal(size=(150, n_features))
    rows[3] *= 1e9
    np.testing.assert_allclose(median_width(rows), np.median(pdist(rows)), rtol=1e-6)


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6])
def test_distances_of_wide_rows_are_good_to_a_billionth(offset):
    """Also where one row is far from the others, and all of them from 0."""
    rows = 0.01 * np.random.default_rng(0).normal(size=(60, 400)) + offset
    rows[3] += 1e3
    found, wanted = squared_distances(rows, rows, 0.3), cdist(rows, rows, "sqeuclidean")
    near = np.arange(60) != 3
    np.testing.assert_allclose(
        found[near][:, near], wanted[near][:, near], atol=1e-9 * 0.3**2, rtol=0
    )


@pytest.mark.parametrize("kernel", [*KERNELS, Kernel("rbf", 0.3), Kernel("rbf", 1e-5)])
@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_products_with_coefficients_are_those_of_the_matrix(kernel, shift):
    random = np.random.default_rng(2)
    rows = random.normal(size=(1300, 3)) + shift  # more than are worked on at once
    points = np.concatenate([rows[:40], rows[:1] + 1e-3])
    coefficients = random.normal(size=(41, 2))
    if kernel.name in ("chi2", "additive_chi2"):
        rows, points = np.abs(rows), np.abs(points)
    expected = kernel.matrix(rows, points) @ coefficients
    product = kernel.times(rows, points, coefficients)
    np.testing.assert_allclose(product, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_a_product_of_values_that_are_not_finite_is_refused():
    with pytest.raises(ValueError, match="not finite"):
        Kernel("rbf", 1.0).times(np.full((2, 3), np.nan), Z, np.ones((5, 1)))
