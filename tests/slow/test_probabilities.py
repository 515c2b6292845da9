"""Answers that are said to be right with 0.95 and more are right as often; one row of each table is judged."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import binom

from transduce import TransductiveRidgeClassifier
from transduce.filling.diagnostics import Diagnosis
from transduce.tables.labels import read_target

TABLES, LABELS, ROWS = 400, 40, 140
SLOPES = {"steep": (4.0, 0.0), "with outliers": (6.0, 0.05), "uneven": (3.0, 0.0)}


def draw(design, seed):
    """Return features and classes; a few labels are of the other class, or one class is rare."""
    rng, (slope, noise) = np.random.default_rng([seed, 10]), SLOPES[design]
    X = rng.normal(size=(ROWS, 4))
    chance = expit(slope * (X[:, 0] + 0.5 * X[:, 1]) + (2.0 if design == "uneven" else 0.0))
    first = rng.random(ROWS) < np.where(noise, noise + (1 - 2 * noise) * chance, chance)
    return X, np.where(first, "u", "v").astype(object)


@pytest.mark.parametrize("design", SLOPES)
def test_what_is_nearly_sure_is_right_as_often_as_it_says(design):
    stated, right = [], 0
    for seed in range(TABLES):
        X, y = draw(design, seed)
        frame = pd.DataFrame({"y": pd.Series(y).where(np.arange(ROWS) < LABELS, None)})
        target = read_target(frame, "y", task="classification")
        if len({*target.known.tolist()}) < 2:
            continue
        model = TransductiveRidgeClassifier().fit(X, target.labels)
        fit = SimpleNamespace(frame=frame, target=target, values_model=model, groups=None)
        fit.features = SimpleNamespace(matrix=X)
        answer = Diagnosis(fit, "ridge", 0).chance.of_classes(model.answer_, 0.9)
        top = answer.probabilities.max(axis=1)
        if (top >= 0.95).any():
            row = int(np.argmax(top >= 0.95))
            stated.append(top[row])
            right += answer.values[row] == y[answer.rows[row]]
    assert len(stated) > TABLES / 4
    assert binom.cdf(right, len(stated), np.mean(stated)) > 1e-3
