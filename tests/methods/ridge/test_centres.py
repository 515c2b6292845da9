"""Transductive ridge with centres at some rows: as good as with centres at all, and the same where it must be."""

from __future__ import annotations

import numpy as np
import pytest

from tests import brute
from tests.libraries import ON_PROCESSOR, dispatch, give
from transduce import TransductiveRidge, TransductiveRidgeClassifier
from transduce.core import arrays
from transduce.device import linalg
from transduce.device.kernels import Kernel
from transduce.methods.ridge.completion import (
    DesignMatrix,
    DesignSystem,
    RidgeSpectrum,
    SmallRidgeError,
)

FAMILIES = {
    "linear": lambda X, slopes, noise: X @ slopes + 0.1 * noise,
    "quiet linear": lambda X, slopes, noise: X @ slopes + 1e-3 * noise,
    "exact linear": lambda X, slopes, noise: X @ slopes,
    "large linear": lambda X, slopes, noise: 1e6 * (X @ slopes) + 1e8,
    "bent": lambda X, slopes, noise: X @ slopes + 0.1 * X[:, 0] ** 2 + 0.05 * noise,
    "smooth": lambda X, slopes, noise: np.sin(X[:, 0]) + 0.3 * X[:, 1] * X[:, 2] + 0.1 * noise,
    "noise": lambda X, slopes, noise: noise,
}


def draw(family, seed, n=200, n_labels=40):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    slopes = rng.normal(size=6)
    truth = FAMILIES[family](X, slopes, rng.normal(size=n))
    y = np.where(np.arange(n) < n_labels, truth, np.nan)
    return X, y, truth


def root_mean_square(model, y, truth):
    missing = np.isnan(y)
    return float(np.sqrt(np.mean((model.transduction_ - truth)[missing] ** 2)))


@pytest.mark.few(5)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n_labels", [40, 90])
def test_some_centres_are_nearly_as_good_as_all(family, n_labels):
    """A wide kernel with a tiny ridge, which leave-one-out likes for lines, was answered by a constant."""
    some_errors, all_errors = [], []
    for seed in range(3):
        X, y, truth = draw(family, seed, n_labels=n_labels)
        some = TransductiveRidge(centres=60, random_state=0).fit(X, y)
        every = TransductiveRidge().fit(X, y)
        some_errors.append(root_mean_square(some, y, truth))
        all_errors.append(root_mean_square(every, y, truth))
        assert some.loo_error_ == pytest.approx(
            some.loo_path_["error"].min() * np.nanvar(y), rel=1e-4
        )
    assert np.mean(some_errors) <= 1.4 * np.mean(all_errors)


@pytest.mark.parametrize(
    ("family", "n_labels"),
    [("linear", 40), ("exact linear", 40), ("smooth", 40), ("linear", 90), ("exact linear", 90)],
)
def test_what_was_scored_is_what_answers(family, n_labels):
    """Answers in folds are those of whole fits, at the ridges that leave-one-out chose in the fold."""
    X, y, _ = draw(family, 3, n_labels=n_labels)
    settings = {"centres": 60, "random_state": 0}
    visible, hidden = np.arange(n_labels // 4, n_labels), np.arange(n_labels // 4)
    found = TransductiveRidge(**settings).fit(X, y).answers_in_folds([(visible, hidden)])[0]
    shown = y.copy()
    shown[hidden] = np.nan
    refitted = TransductiveRidge(tether=np.inf, **settings).fit(X, shown)
    spread = np.nanstd(y)
    # With more labels than centres the two draw other centres, which hardly matters for a line.
    tolerance = 1e-6 if n_labels <= 60 else 0.1
    assert np.abs(found - refitted.transduction_[hidden]).max() <= tolerance * spread


@pytest.mark.parametrize("settings", [{}, {"standardize": False}, {"width": 2.0, "ridge": 0.1}])
@pytest.mark.parametrize("centres", [200, 5000])
def test_centres_for_every_row_are_all_rows(settings, centres):
    X, y, _ = draw("linear", 0)
    every = TransductiveRidge(**settings).fit(X, y)
    counted = TransductiveRidge(centres=centres, random_state=0, **settings).fit(X, y)
    np.testing.assert_allclose(counted.transduction_, every.transduction_, rtol=1e-12)
    np.testing.assert_allclose(counted.answer_.inductive, every.answer_.inductive, rtol=1e-12)
    np.testing.assert_allclose(counted.predict(X + 1.0), every.predict(X + 1.0), rtol=1e-12)
    assert counted.width_ == every.width_


@pytest.mark.parametrize("settings", [{}, {"width": 2.0, "ridge": 0.1}, {"tether": "cv"}])
@pytest.mark.parametrize("make_model", [TransductiveRidge, TransductiveRidgeClassifier])
def test_centres_for_every_distinct_row_are_all_rows(settings, make_model):
    """Copies weigh as often as they occur, without a matrix of all rows by all rows."""
    rng = np.random.default_rng(1)
    distinct = rng.normal(size=(30, 3))
    X = distinct[rng.integers(30, size=120)]
    truth = np.sin(X[:, 0]) + 0.3 * rng.normal(size=120)
    truth = truth if make_model is TransductiveRidge else (truth > 0.0).astype(float)
    y = np.where(np.arange(120) < 50, truth, np.nan)
    every = make_model(**settings).fit(X, y)
    counted = make_model(centres=30, **settings).fit(X, y)
    folds = [(np.arange(10, 50), np.arange(10))]
    assert counted.answer_.diagnostics["form"] == "design"
    assert counted.width_ == pytest.approx(every.width_)
    np.testing.assert_allclose(counted.predict(distinct), every.predict(distinct), atol=1e-6)
    np.testing.assert_allclose(
        counted.answers_in_folds(folds)[0], every.answers_in_folds(folds)[0], atol=1e-5
    )
    if make_model is TransductiveRidge:
        np.testing.assert_allclose(counted.transduction_, every.transduction_, atol=1e-6)


def test_labelled_rows_as_centres_give_the_inductive_answer_of_all_rows():
    """No step in the inductive answer where centres begin to count."""
    X, y, _ = draw("linear", 4)
    every = TransductiveRidge().fit(X, y)
    some = TransductiveRidge(centres=60, random_state=0).fit(X, y)
    assert (some.width_, some.ridge_) == (every.width_, every.ridge_)
    np.testing.assert_allclose(some.answer_.inductive, every.answer_.inductive, rtol=1e-9)
    assert some.loo_error_ == pytest.approx(every.loo_error_, rel=1e-9)


@pytest.mark.parametrize("ridge", [1e-12, 1e-9, 1e-5, 1.0])
@pytest.mark.parametrize("width", [3.0, 30.0])
def test_the_large_form_is_least_squares_at_every_ridge(ridge, width):
    """Against a least-squares solver that squares nothing, for designs of which a square has no Cholesky factor."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    K = Kernel("rbf", width).matrix(X, X[:25])
    z = rng.normal(size=(60, 2))
    ridge *= np.linalg.svd(K)[1][0] ** 2
    design = DesignMatrix.of(lambda rows: rows, K, K.shape[1], max_bytes=1e6)
    system = DesignSystem.build(design, ridge)
    fitted = K @ brute.design_fit(K, z, ridge)
    np.testing.assert_allclose(K @ system.coefficients(z), fitted, atol=1e-6)
    residuals = system.loo(z) * system.denominators[:, None]
    np.testing.assert_allclose(residuals, z - fitted, atol=1e-6)
    expected = np.column_stack([brute.refit_leave_one_out(K, column, ridge) for column in z.T])
    np.testing.assert_allclose(system.loo(z), expected, rtol=1e-4, atol=1e-4)
    spectrum = RidgeSpectrum.of_design(K, z)
    assert spectrum.errors(np.array([ridge]))[0] == pytest.approx(np.mean(expected**2), rel=1e-4)
    rough = RidgeSpectrum.of_square(K, z)
    if ridge >= rough.least:
        assert rough.errors(np.array([ridge]))[0] == pytest.approx(np.mean(expected**2), rel=1e-6)
    assert rough.precise().errors(np.array([ridge]))[0] == spectrum.errors(np.array([ridge]))[0]


def test_a_ridge_that_is_too_small_is_refused():
    K = np.eye(6)[:, :3]
    design = DesignMatrix.of(lambda rows: rows, K, 3, max_bytes=1e6)
    with pytest.raises(SmallRidgeError, match="cannot be left out in double precision"):
        DesignSystem.build(design, 1e-14).check_left_out()
    DesignSystem.build(design, 1e-6).check_left_out()


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_triangles_and_counts_of_other_libraries(name):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(50, 4))
    rows = rng.integers(3, size=(40, 2)).astype(float)
    R = linalg.triangle_of_blocks([A[:7], A[7:30], A[30:]])
    np.testing.assert_allclose(R.T @ R, A.T @ A, atol=1e-10)
    distinct, counts = arrays.counted_rows(rows)
    expected, times = np.unique(rows, axis=0, return_counts=True)
    np.testing.assert_array_equal(distinct, expected)
    np.testing.assert_array_equal(counts, times)
    with dispatch():
        there = linalg.triangle_of_blocks([give(A[:7], name), give(A[7:], name)])
        there = arrays.to_numpy(there)
        np.testing.assert_allclose(there.T @ there, A.T @ A, atol=1e-10)
        _, values = linalg.left_singular(give(A, name))
        np.testing.assert_allclose(arrays.to_numpy(values), np.linalg.svd(A)[1], rtol=1e-10)
        np.testing.assert_array_equal(arrays.counted_rows(give(rows, name))[1], times)


@pytest.mark.parametrize("name", ON_PROCESSOR)
@pytest.mark.parametrize("n_labels", [40, 90])
def test_other_libraries_say_the_same_of_a_line(name, n_labels):
    X, y, _ = draw("linear", 3, n_labels=n_labels)
    here = TransductiveRidge(centres=60, random_state=0).fit(X, y)
    with dispatch():
        there = TransductiveRidge(centres=60, random_state=0).fit(give(X, name), y)
    np.testing.assert_allclose(arrays.to_numpy(there.transduction_), here.transduction_, atol=1e-4)
