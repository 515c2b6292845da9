"""Probabilities of classes, made of a machine's p-values at labels that were hidden."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from transduce import RidgeConfidenceClassifier


def clouds(gap, n=60, n_labelled=36, seed=0):
    """Return rows of three classes, the first labelled, and all classes."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(3, size=n)
    X = rng.normal(size=(n, 3)) + gap * np.eye(3)[codes]
    truth = np.array(["a", "b", "c"], dtype=object)[codes]
    return X, np.where(np.arange(n) < n_labelled, truth, None), truth


def factor_of(machine, X):
    """Return by what logarithms of p-values are multiplied, one number for each row and class."""
    shares = np.log(machine.predict_proba(X))
    p = np.log(machine.p_values(X))
    apart = np.abs(p[:, 1:] - p[:, :1]) > 0.1
    return ((shares[:, 1:] - shares[:, :1]) / np.where(apart, p[:, 1:] - p[:, :1], 1.0))[apart]


@pytest.mark.parametrize("settings", [{}, {"settings": "leave-one-out"}])
def test_they_are_powers_of_p_values(settings):
    X, y, _ = clouds(1.5)
    machine = RidgeConfidenceClassifier(**settings).fit(X, y)
    probabilities = machine.predict_proba(X[36:])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert (machine.classes_[probabilities.argmax(axis=1)] == machine.predict(X[36:])).all()
    factors = factor_of(machine, X[36:])
    np.testing.assert_allclose(factors, factors[0], rtol=1e-6)


def test_hidden_labels_decide_how_sure_they_are():
    """Where classes are clear they come near to 1, and where labels are noise to their shares."""
    X, y, _ = clouds(6.0)
    clear = RidgeConfidenceClassifier().fit(X, y).predict_proba(X[36:])
    assert np.median(clear.max(axis=1)) > 0.9
    noise = y.copy()
    noise[:36] = np.random.default_rng(1).permutation(y[:36])
    unsure = RidgeConfidenceClassifier().fit(X, noise).predict_proba(X[36:])
    assert unsure.max(axis=1).mean() < 0.6


def test_order_and_form_of_the_rows_leave_no_trace():
    X, y, _ = clouds(1.5)
    machine = RidgeConfidenceClassifier(kernel="rbf", width=1.0, standardize=False)
    expected = machine.fit(X, y).predict_proba(X[36:])
    order = np.random.default_rng(2).permutation(36)
    order = np.append(order, np.arange(36, 60))
    shuffled = machine.fit(X[order], y[order]).predict_proba(X[36:])
    np.testing.assert_allclose(shuffled, expected, rtol=1e-9)
    K = rbf_kernel(X, gamma=0.5)
    by_kernel = RidgeConfidenceClassifier(kernel="precomputed").fit(K, y)
    lines = np.column_stack([K[36:], np.ones(24)])
    # Which labels are hidden together goes by the kernel's values there.
    np.testing.assert_allclose(by_kernel.predict_proba(lines), expected, atol=0.05)


def test_a_class_with_one_label_is_never_hidden():
    X, y, _ = clouds(1.5)
    y[0] = "rare"
    probabilities = RidgeConfidenceClassifier().fit(X, y).predict_proba(X[36:])
    assert np.isfinite(probabilities).all()
