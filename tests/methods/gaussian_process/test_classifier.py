"""Moment matching for classes: Laplace and shares against definitions, laws, limits, refusals."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.optimize._numdiff import approx_derivative
from scipy.special import ndtr
from sklearn.exceptions import ConvergenceWarning

from tests import brute_classes
from transduce import TransductiveGPClassifier
from transduce.methods.gaussian_process.covariances import Covariance
from transduce.methods.gaussian_process.laplace import (
    ClassObjective,
    find_marginals,
    find_mode,
    match_share,
)

PRIORS = ((1.0, 0.5), (1.0, 2.0))
seeds = st.integers(0, 2**32 - 1)
QUICK = {"n_restarts": 0, "max_iter": 60}


def small(seed, n_problems=None):
    """Rows, signs of the first few, and parameters."""
    rng = np.random.default_rng(seed)
    n = rng.integers(5, 10)
    known = rng.integers(3, n)
    X = rng.normal(size=(n, 2))
    c = rng.integers(1, 4) if n_problems is None else n_problems
    signs = np.where(X[:known, :1] + 0.7 * rng.normal(size=(known, c)) > 0.0, 1.0, -1.0)
    return X, signs, rng.normal(size=3) * 0.7 - 0.5


def clouds(n=60, unlabelled=30, seed=0, centres=((0.0, 0.0), (2.5, 0.0))):
    """Rows of a class around each centre, classes as text, some missing."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % len(centres)
    X = np.array(centres)[codes] + 0.7 * rng.normal(size=(n, 2))
    truth = np.array(["ant", "bee", "cat"], dtype=object)[codes]
    y = truth.copy()
    y[rng.permutation(n)[:unlabelled]] = None
    return X, y, truth


# ------------------------------------------------------------------------------------------------------ exact


@settings(max_examples=12)
@given(seeds, st.floats(-1.0, 1.0))
def test_the_mode_and_the_evidence_are_laplaces(seed, mean):
    X, signs, _ = small(seed, n_problems=1)
    A = 3.0 * np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2)) + 1e-6 * np.eye(len(X))
    known = len(signs)
    mode = find_mode(A[:known, :known], signs[:, 0], mean)
    h, W, evidence = brute_classes.laplace(A[:known, :known], signs[:, 0], mean)
    np.testing.assert_allclose(mode.h, h, atol=2e-3)
    np.testing.assert_allclose(mode.likelihood.curvature, W, atol=2e-3)
    assert mode.log_evidence == pytest.approx(evidence, abs=1e-4)
    # Laplace's approximation of few labels is not far from the orthant's probability.
    exact = brute_classes.exact_evidence(A[:known, :known], signs[:, 0], mean)
    assert abs(mode.log_evidence - exact) < 0.1 * known
    found = find_marginals(mode, A[:known, known:], A.diagonal()[known:], mean)
    rows = [*range(known), known]
    expected = brute_classes.class_probability(A[np.ix_(rows, rows)], signs[:, 0], mean)
    assert ndtr(found.z[0]) == pytest.approx(expected, abs=1e-3)


@settings(max_examples=12)
@given(seeds, st.floats(0.02, 0.98), st.sampled_from([0.001, 0.05, 1.0]))
def test_shares_are_matched_as_a_general_optimiser_does(seed, target, slack):
    z = np.random.default_rng(seed).normal(size=5)
    match = match_share(z, target, slack=slack)
    expected = brute_classes.share_divergence(ndtr(z), target, slack)
    assert match.divergence == pytest.approx(expected, abs=1e-6)
    assert match.probabilities.mean() == pytest.approx(target - slack * match.theta, abs=1e-9)
    slope = approx_derivative(lambda x: match_share(x, target, slack=slack).divergence, z)
    np.testing.assert_allclose(match.slope, slope, rtol=1e-4, atol=1e-6)


@given(seeds, st.floats(0.02, 0.98), st.floats(0.0, 0.5))
def test_epsilon_of_shares(seed, target, epsilon):
    z = np.random.default_rng(seed).normal(size=6)
    match = match_share(z, target, slack=0.0, epsilon=epsilon)
    q = match.probabilities
    p = ndtr(z)
    divergence = np.sum(q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p)))
    assert match.divergence == pytest.approx(divergence, abs=1e-7)
    gap = abs(q.mean() - target)
    assert gap == pytest.approx(min(epsilon, abs(p.mean() - target)), abs=1e-8)


@pytest.mark.parametrize("matching", [0.0, 0.7])
@pytest.mark.parametrize("seed", range(2))
def test_the_objective_is_the_definition(seed, matching):
    X, signs, log_parameters = small(seed)
    relevance = np.exp(log_parameters[:-1])
    noise = float(np.exp(log_parameters[-1]))
    objective = ClassObjective(X, signs, *PRIORS, matching, 0.05)
    expected = brute_classes.class_objective(X, signs, relevance, noise, PRIORS, matching, 0.05)
    assert objective(log_parameters)[0] == pytest.approx(expected, abs=2e-4)


@given(
    seeds,
    st.sampled_from([0.0, 1.0, 2.5]),
    st.sampled_from([{"slack": 0.0}, {"slack": 0.1}, {"epsilon": 0.03}]),
    st.sampled_from(["rbf", "matern52", "linear"]),
    st.booleans(),
)
def test_gradients_are_finite_differences(seed, matching, match, kernel, common):
    X, signs, log_parameters = small(seed)
    if common:
        log_parameters = log_parameters[1:]
    objective = ClassObjective(X, signs, *PRIORS, matching, covariance=Covariance(kernel), **match)
    slope = approx_derivative(lambda x: objective(x)[0], log_parameters, method="3-point")
    np.testing.assert_allclose(objective(log_parameters)[1], slope, rtol=2e-5, atol=1e-5)


# -------------------------------------------------------------------------------------------------------- laws


def test_two_classes_and_three():
    X, y, truth = clouds()
    model = TransductiveGPClassifier(random_state=0, **QUICK).fit(X, y)
    assert np.mean(model.transduction_ == truth) > 0.9
    np.testing.assert_allclose(model.answer_.probabilities.sum(axis=1), 1.0)
    X, y, truth = clouds(90, 45, centres=((0, 0), (3, 0), (0, 3)))
    model = TransductiveGPClassifier(matching=0.3, slack=0.01, **QUICK).fit(X, y)
    assert np.mean(model.transduction_ == truth) > 0.85
    assert list(model.shares_.index) == ["labels", "without matching", "predicted", "matched"]
    np.testing.assert_allclose(model.shares_.loc["predicted"].sum(), 1.0)
    np.testing.assert_array_equal(model.predict(X)[pd.isna(y)], model.answer_.values)


def test_matching_pulls_shares_to_those_of_the_labels():
    """Of a table whose unlabelled rows look like one class, more of the other is predicted."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 1))
    X[20:] += 0.8
    y = np.where(X[:, 0] > 0.3, "b", "a").astype(object)
    y[20:] = None
    gaps = []
    for matching in (0.0, 1.0, 10.0):
        model = TransductiveGPClassifier(matching=matching, slack=1e-4, **QUICK).fit(X, y)
        shares = model.shares_
        gaps.append(abs(shares.loc["predicted", "a"] - shares.loc["labels", "a"]))
    assert gaps[2] < gaps[1] < gaps[0]


def test_neither_names_of_classes_nor_order_of_rows_matter():
    X, y, _ = clouds(40, 15)
    chosen = {"random_state": 0, "matching": 0.3, "slack": 0.01, "n_restarts": 1}
    model = TransductiveGPClassifier(**chosen).fit(X, y)
    mix = np.random.default_rng(0).permutation(40)
    shuffled = TransductiveGPClassifier(**chosen).fit(X[mix], y[mix])
    np.testing.assert_array_equal(shuffled.transduction_, model.transduction_[mix])
    names = {"ant": "z", "bee": "a", None: None}
    renamed = TransductiveGPClassifier(**chosen).fit(X, [names[label] for label in y])
    assert list(renamed.transduction_) == [names[label] for label in model.transduction_]
    flipped = renamed.answer_.probabilities[:, ::-1]
    np.testing.assert_allclose(flipped, model.answer_.probabilities, atol=1e-3)


def test_a_graph_kernel():
    X, y, truth = clouds(60, 40, seed=3)
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    A = np.exp(-4.0 * squares) - np.eye(60)
    K = expm(A - np.diag(A.sum(axis=1)))
    model = TransductiveGPClassifier(kernel="precomputed", **QUICK).fit(K, y)
    assert np.mean(model.transduction_ == truth) > 0.85
    assert model.kernel_scale_ > 0.0
    np.testing.assert_allclose(
        model.predict_proba(K)[pd.isna(y)], model.answer_.probabilities, atol=1e-6
    )


# ------------------------------------------------------------------------------------------ limits and refusals


def test_limits():
    X, y, truth = clouds(30, 10)
    labelled = TransductiveGPClassifier(**QUICK).fit(X, truth)
    assert labelled.matching_ == 0.0
    assert len(labelled.answer_.rows) == 0
    assert list(labelled.shares_.index) == ["labels"]
    few = [None] * 30
    few[0], few[1] = "ant", "bee"
    model = TransductiveGPClassifier(**QUICK).fit(X, few)
    assert np.isfinite(model.answer_.probabilities).all()
    copies = TransductiveGPClassifier(matching=1.0, slack=0.0, **QUICK)
    twice = copies.fit(np.vstack([X, X]), np.append(truth, y)).transduction_
    assert len(twice) == 60
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        free = TransductiveGPClassifier(prior=(0, 0), noise_prior=(0, 0), **QUICK).fit(X, y)
    assert np.isfinite(free.answer_.probabilities).all()


def test_refusals():
    X, y, _ = clouds(20, 5)
    with pytest.raises(ValueError, match="one class only"):
        TransductiveGPClassifier().fit(X, np.where(np.arange(20) > 5, "a", None))
    with pytest.raises(ValueError, match="noise_prior must be two numbers"):
        TransductiveGPClassifier(noise_prior=(1.0,)).fit(X, y)
    with pytest.raises(ValueError, match="epsilon takes the place of slack"):
        TransductiveGPClassifier(epsilon=0.1, slack=0.1).fit(X, y)
    with pytest.raises(ValueError, match="Unknown kernel"):
        TransductiveGPClassifier(kernel="sigmoid").fit(X, y)
