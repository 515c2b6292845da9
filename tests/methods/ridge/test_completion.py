"""The numbers of transductive ridge: leave-one-out, completion and search against their slow definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import brute
from transduce.device.kernels import Kernel
from transduce.methods.ridge import leave_one_out
from transduce.methods.ridge.completion import (
    DenseSystem,
    DesignMatrix,
    DesignSystem,
    RidgeSpectrum,
    complete,
    search,
)


def make(seed, *, n=None, kernel=None):
    """Rows, labels, which are unlabelled, a start, and settings, at random."""
    rng = np.random.default_rng(seed)
    n = rng.integers(6, 22) if n is None else n
    X = rng.normal(size=(n, rng.integers(1, 4)))
    unlabelled = np.zeros(n, dtype=bool)
    unlabelled[rng.choice(n, rng.integers(1, n - 2), replace=False)] = True
    K = (kernel or Kernel("rbf", 1.0)).matrix(X, X)
    ridge, tether = 10 ** rng.uniform(-3, 1), 10 ** rng.uniform(-2, 1)
    return (
        K,
        rng.normal(size=(n, 1)),
        unlabelled,
        rng.normal(size=(unlabelled.sum(), 1)),
        ridge,
        tether,
    )


def design_of(K):
    return DesignMatrix.of(lambda rows: rows, K, K.shape[1], max_bytes=1e6)


@given(st.integers(0, 10**6))
def test_leave_one_out_equals_refits(seed):
    K, y, *_, ridge, _ = make(seed)
    p = np.random.default_rng(seed).integers(1, K.shape[1] + 1)
    for design in (K, K[:, :p]):
        expected = brute.refit_leave_one_out(design, y[:, 0], ridge)
        np.testing.assert_allclose(leave_one_out(design, y[:, 0], ridge), expected, atol=1e-8)
        two = np.column_stack([y, 3 * y])
        np.testing.assert_allclose(leave_one_out(design, two, ridge)[:, 1], 3 * expected, atol=1e-7)
        for spectrum in [RidgeSpectrum.of_design(design, y)] + [RidgeSpectrum.of_kernel(K, y)] * (
            design is K
        ):
            errors = spectrum.errors(np.array([ridge, 7.0]))
            assert errors[0] == pytest.approx(np.mean(expected**2), rel=1e-7)


@given(st.integers(0, 10**6))
def test_completion_equals_refits_and_a_general_optimiser(seed):
    """The closed form against n refits of every unit vector and a least-squares optimiser: 1e-7."""
    K, y, unlabelled, start, ridge, tether = make(seed)
    p = np.random.default_rng(seed).integers(2, K.shape[1])
    for system, design in (
        (DenseSystem.build(K, ridge), K),
        (DesignSystem.build(design_of(K[:, :p]), ridge), K[:, :p]),
    ):
        found = complete(system, y, unlabelled, start=start, tether=tether)
        expected, objective = brute.complete_by_optimiser(
            design, y[~unlabelled, 0], unlabelled, start[:, 0], ridge, tether
        )
        np.testing.assert_allclose(found.labels[unlabelled, 0], expected, atol=1e-7)
        np.testing.assert_array_equal(found.labels[~unlabelled], y[~unlabelled])
        assert found.objective.sum() == pytest.approx(objective, rel=1e-7)
        refitted = brute.refit_leave_one_out(design, found.labels[:, 0], ridge)
        np.testing.assert_allclose(found.loo_residuals[:, 0], refitted, atol=1e-7)
        np.testing.assert_allclose(
            design @ found.coefficients,
            design @ brute.design_fit(design, found.labels, ridge),
            atol=1e-6,
        )


@given(st.integers(0, 10**6))
def test_both_systems_agree(seed):
    """With a centre at every row, the design route is the dense one."""
    K, y, unlabelled, start, ridge, tether = make(seed)
    ridge = max(ridge, 0.05)
    dense = complete(DenseSystem.build(K, ridge), y, unlabelled, start=start, tether=tether)
    design = complete(
        DesignSystem.build(design_of(K), ridge), y, unlabelled, start=start, tether=tether
    )
    np.testing.assert_allclose(design.labels, dense.labels, atol=1e-6)
    assert design.solver["converged"]
    assert design.solver["relative_residual"] <= 1e-9


def test_the_two_routes_of_the_dense_system_agree():
    """By Cholesky for a generous ridge, by eigenvectors for a small one; they meet where both are good."""
    K, y, unlabelled, start, *_ = make(3, n=20)
    by_cholesky = DenseSystem.build(K, 1e-3)
    values, vectors = np.linalg.eigh(K)
    C = (vectors * (1e-3 / (values**2 + 1e-3))) @ vectors.T
    np.testing.assert_allclose(by_cholesky.C, C, atol=1e-9)
    np.testing.assert_allclose(by_cholesky.denominators, np.diag(C), rtol=1e-7)
    by_eigenvectors = DenseSystem.build(K, 1e-7)
    z = complete(by_eigenvectors, y, unlabelled, start=start, tether=0.5).labels
    np.testing.assert_allclose(
        by_eigenvectors.loo(z)[:, 0],
        brute.refit_leave_one_out(K, z[:, 0], 1e-7),
        rtol=1e-4,
        atol=1e-5,
    )


def test_no_tether_at_all():
    K, y, unlabelled, start, ridge, _ = make(11)
    found = complete(DenseSystem.build(K, ridge), y, unlabelled, start=start, tether=0.0)
    expected, objective = brute.complete_by_optimiser(
        K, y[~unlabelled, 0], unlabelled, start[:, 0], ridge, 0.0
    )
    np.testing.assert_allclose(found.labels[unlabelled, 0], expected, atol=1e-6)
    assert found.objective.sum() == pytest.approx(objective, rel=1e-7)


class Valley:
    """Stands in for a spectrum: an error with one known minimum."""

    def __init__(self, width, at_width, at_ridge, unit=100.0):
        self.depth = 1.0 + np.log2(width / at_width) ** 2
        self.at_ridge = at_ridge
        self.least = 0.0
        self.squares = np.array([unit])

    def errors(self, ridges):
        return self.depth + np.log10(ridges / self.at_ridge) ** 2


@pytest.mark.parametrize("at_width", [0.003, 1.1, 300.0])
@pytest.mark.parametrize("at_ridge", [1e-9, 0.02, 1e5])
def test_search_widens_and_refines_its_grid(at_width, at_ridge):
    """From width 1 and ridges 1e-9 to 300 it gets to a minimum far outside, and close to it."""
    choice = search(
        lambda width: Valley(width, at_width, at_ridge), width=1.0, search_width=True, ridge=None
    )
    assert abs(np.log2(choice.width / at_width)) <= 0.26
    assert abs(np.log10(choice.ridge / at_ridge)) <= 0.11
    assert choice.error == choice.path["error"].min()
    fixed = search(lambda width: Valley(width, 1.0, 1.0), width=2.0, search_width=False, ridge=3.0)
    assert (fixed.width, fixed.ridge, len(fixed.path)) == (2.0, 3.0, 1)
