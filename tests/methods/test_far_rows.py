"""One unlabelled row that is far from all others leaves the predictions at the other rows as they are."""

from __future__ import annotations

import numpy as np
import pytest

from transduce import (
    BayesianTransducer,
    RidgeConfidenceClassifier,
    RidgeConfidenceMachine,
    TransductiveBlend,
    TransductiveGPRegressor,
    TransductiveRidge,
    TransductiveRidgeClassifier,
)

N_ROWS = 120
N_LABELS = 60
FAR = [-1e3, 1e300]
NUMBERS = {
    "gaussian process": lambda: TransductiveGPRegressor(matching=0, n_restarts=0, random_state=0),
    "ridge": lambda: TransductiveRidge(),
    "machine": lambda: RidgeConfidenceMachine(),
    "linear machine": lambda: RidgeConfidenceMachine(kernel="linear"),
    "blend": lambda: TransductiveBlend(random_state=0, task="regression"),
}
CLASSES = {
    "ridge": lambda: TransductiveRidgeClassifier(),
    "machine": lambda: RidgeConfidenceClassifier(),
    "bayesian": lambda: BayesianTransducer(random_state=0),
    "blend": lambda: TransductiveBlend(random_state=0, task="classification"),
}


def rows_and_truth(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, 4))
    truth = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + X[:, 2]
    return X, truth


@pytest.mark.few(5)
@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name, far):
    X, truth = rows_and_truth(0)
    y = np.where(np.arange(N_ROWS) < N_LABELS, truth, np.nan)
    near = NUMBERS[name]().fit(X, y).answer_.values[:-1]
    X[-1] = far
    model = NUMBERS[name]().fit(X, y)
    spread = np.std(truth)
    assert np.isfinite(model.answer_.values).all()
    moved = model.answer_.values[:-1] - near
    assert np.abs(moved).mean() < 0.05 * spread
    error = np.sqrt(np.mean((model.answer_.values[:-1] - truth[N_LABELS:-1]) ** 2))
    error_before = np.sqrt(np.mean((near - truth[N_LABELS:-1]) ** 2))
    assert error < 1.05 * error_before + 0.02 * spread


@pytest.mark.few(2)
@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("name", CLASSES)
def test_classes(name, far):
    """Averaged over three tables, since any other row in its place moves some predictions too."""
    moved = []
    for seed in range(3):
        X, truth = rows_and_truth(seed)
        classes = np.where(truth > 0.4, "high", "low").astype(object)
        y = np.where(np.arange(N_ROWS) < N_LABELS, classes, None)
        near = CLASSES[name]().fit(X, y).answer_.values[:-1]
        X[-1] = far
        values = CLASSES[name]().fit(X, y).answer_.values[:-1]
        moved.append(np.mean(values != near))
    assert np.mean(moved) <= 0.04
