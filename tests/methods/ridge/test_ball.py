"""The ball around the inductive answer, settings of several samples, and what a fit tells of itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import brute
from tests.methods.ridge.test_completion import design_of, make
from transduce import TransductiveRidge, TransductiveRidgeClassifier
from transduce.device.kernels import Kernel
from transduce.methods.ridge import choose_settings
from transduce.methods.ridge.ball import complete_in_ball
from transduce.methods.ridge.completion import DenseSystem, DesignSystem, RidgeSpectrum, complete


def sine_table(seed=0, n=40, n_unlabelled=15):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = 5.0 + 3.0 * np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=n)
    y[:n_unlabelled] = np.nan
    return X, y


@given(st.integers(0, 10**6), st.floats(0.05, 1.5))
def test_the_ball_equals_a_constrained_optimiser(seed, share):
    """The radius is a share of how far the answer would move without any tether."""
    K, y, unlabelled, start, ridge, _ = make(seed)
    ridge = max(ridge, 0.05)
    p = np.random.default_rng(seed).integers(2, K.shape[1])
    for system, design in (
        (DenseSystem.build(K, ridge), K),
        (DesignSystem.build(design_of(K[:, :p]), ridge), K[:, :p]),
    ):
        free = complete(system, y, unlabelled, start=start, tether=0.0).labels[unlabelled]
        radius = share * np.linalg.norm(free - start)
        completion, tethers = complete_in_ball(
            system, y, unlabelled, start=start, radii=np.array([radius])
        )
        found = completion.labels[unlabelled]
        expected = brute.complete_in_ball(
            design, y[~unlabelled, 0], unlabelled, start[:, 0], ridge, radius
        )
        np.testing.assert_allclose(found[:, 0], expected, atol=2e-5 * max(1.0, radius))
        moved = np.linalg.norm(found - start)
        assert moved == pytest.approx(min(1.0, share) * np.linalg.norm(free - start), rel=1e-7)
        assert (tethers[0] == 0.0) == (share >= 1.0)


def test_the_radius_of_a_tether_gives_its_answer():
    X, y = sine_table()
    tethered = TransductiveRidge(tether=0.3).fit(X, y)
    within = TransductiveRidge(radius=tethered.distance_moved_).fit(X, y)
    assert within.tether_ == pytest.approx(0.3, rel=1e-8)
    np.testing.assert_allclose(within.transduction_, tethered.transduction_, rtol=1e-9)
    moved = tethered.answer_.values - tethered.answer_.inductive
    assert tethered.distance_moved_ == pytest.approx(np.linalg.norm(moved))


def test_limits_of_the_radius():
    X, y = sine_table(1)
    none = TransductiveRidge(radius=0.0).fit(X, y)
    np.testing.assert_array_equal(none.answer_.values, none.answer_.inductive)
    assert (none.tether_, none.distance_moved_) == (np.inf, 0.0)
    free = TransductiveRidge(radius=np.inf).fit(X, y)
    loose = TransductiveRidge(tether=0).fit(X, y)
    np.testing.assert_array_equal(free.transduction_, loose.transduction_)
    complete_table = TransductiveRidge(radius=1.0).fit(X, np.arange(40.0))
    assert complete_table.distance_moved_ == 0.0


def test_each_column_has_a_ball_of_its_own():
    X, y = sine_table(2)
    both = np.column_stack([y, 100.0 * y**2])
    single = [TransductiveRidge(width=1.0, ridge=0.1, radius=0.5).fit(X, c) for c in both.T]
    joint = TransductiveRidge(width=1.0, ridge=0.1, radius=0.5).fit(X, both)
    np.testing.assert_allclose(joint.distance_moved_, 0.5)
    np.testing.assert_allclose(joint.tether_, [model.tether_ for model in single])
    expected = np.column_stack([model.transduction_ for model in single])
    np.testing.assert_allclose(joint.transduction_, expected)
    labels = np.array(["a", "b", "c"], dtype=object)[np.arange(40) % 3]
    labels[:10] = None
    classes = TransductiveRidgeClassifier(radius=0.2, ridge=1.0, width=1.0).fit(X, labels)
    assert classes.distance_moved_.shape == classes.tether_.shape == (3,)


def test_what_a_fit_tells_of_the_completed_sample():
    """T_loo (28) and its residuals, in the units of the labels, against refits."""
    X, y = sine_table(3)
    model = TransductiveRidge(width=1.5, ridge=0.2, standardize=False).fit(X, y)
    K = Kernel("rbf", 1.5).matrix(X, X)
    mean = np.nanmean(y)
    expected = brute.refit_leave_one_out(K, model.transduction_ - mean, 0.2)
    np.testing.assert_allclose(model.loo_residuals_, expected, atol=1e-8)
    assert model.completed_loo_error_ == pytest.approx(np.mean(expected**2))
    unlabelled = model.loo_residuals_[:15]
    np.testing.assert_allclose(model.answer_.loo_residuals, unlabelled)
    objective = np.sum(expected**2) + model.tether_ * model.distance_moved_**2
    assert model.objective_ == pytest.approx(objective)


@pytest.mark.parametrize("centres", [None, 12])
def test_settings_of_several_samples_have_the_smallest_mean_error(centres):
    samples = [sine_table(seed) for seed in range(3)]
    model = TransductiveRidge(standardize=False, centres=centres, random_state=0)
    choice = choose_settings(model, samples)

    def mean_error(width, ridge):
        errors = []
        for X, y in samples:
            known = ~np.isnan(y)
            K = Kernel("rbf", width).matrix(X[known], X[known])
            spectrum = RidgeSpectrum.of_kernel(K, (y[known] - y[known].mean())[:, None])
            errors.append(spectrum.errors(np.array([ridge]))[0])
        return np.mean(errors)

    if centres is None:
        unit = max(np.nanstd(y) for _, y in samples) ** 2
        assert choice.error * unit == pytest.approx(mean_error(choice.width, choice.ridge))
        grid = [(w, r) for w in np.geomspace(0.1, 10, 15) for r in np.geomspace(1e-4, 10, 15)]
        best = min(mean_error(width, ridge) for width, ridge in grid)
        assert mean_error(choice.width, choice.ridge) <= 1.001 * best
    assert choice.error == choice.path["error"].min()


def test_one_sample_gets_what_a_fit_chooses():
    X, y = sine_table(4)
    choice = choose_settings(TransductiveRidge(), [(X, y)])
    model = TransductiveRidge().fit(X, y)
    assert (choice.width, choice.ridge) == (model.width_, model.ridge_)
    labels = np.where(np.isnan(y), None, np.where(y > 5, "high", "low"))
    classes = TransductiveRidgeClassifier(ridge=0.5)
    choice = choose_settings(classes, [(X, labels)])
    assert (choice.width, choice.ridge) == (classes.fit(X, labels).width_, 0.5)


def test_refusals():
    X, y = sine_table()
    with pytest.raises(ValueError, match="radius takes the place of tether"):
        TransductiveRidge(radius=1.0, tether=0.5).fit(X, y)
    for wrong in (-1.0, np.nan, "wide"):
        with pytest.raises(ValueError, match="radius"):
            TransductiveRidge(radius=wrong).fit(X, y)
    with pytest.raises(ValueError, match="at least one pair"):
        choose_settings(TransductiveRidge(), [])
    with pytest.raises(ValueError, match="must be a pair"):
        choose_settings(TransductiveRidge(), [X])
    with pytest.raises(ValueError, match="must be a TransductiveRidge"):
        choose_settings("ridge", [(X, y)])
    two = np.column_stack([y, y])
    with pytest.raises(ValueError, match="same number of columns"):
        choose_settings(TransductiveRidge(), [(X, y), (X, two)])
