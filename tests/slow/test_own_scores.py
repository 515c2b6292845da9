"""Scores of the user's own keep their level: heavy tails, ties, few labels, with and without rounding.

As in `test_coverage`: one unlabelled row a split, so hits are binomial; bounds are exact quantiles at 1e-6.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.methods.confidence_machine.test_own_scores import to_neighbors, to_same_class
from tests.slow.test_coverage import LABELS, TIED, assert_covered
from transduce import RidgeConfidenceClassifier, RidgeConfidenceMachine

SPLITS = 1500


def make_splits(labels, n_labelled):
    rng = np.random.default_rng([n_labelled, list(LABELS).index(labels), 3])
    for _ in range(SPLITS):
        X = rng.standard_t(3, size=(n_labelled + 1, 2))
        yield X, LABELS[labels](rng, X[:, 0] - np.abs(X[:, 1]))


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize(("n_labelled", "level", "resolution"), [(9, 0.8, "auto"), (19, 0.9, 0.5)])
def test_numbers(labels, n_labelled, level, resolution):
    hits = 0
    for X, y in make_splits(labels, n_labelled):
        machine = RidgeConfidenceMachine(
            residual=to_neighbors, resolution=resolution, confidence=level
        ).fit(X[:-1], y[:-1])
        hits += machine.p_values(X[-1:], y[-1:])[0] > 1.0 - level + 1e-9
    assert_covered(hits, SPLITS, level, n_labelled, ties=labels in TIED or resolution != "auto")


@pytest.mark.parametrize("by_class", [False, True])
def test_classes(by_class):
    rng = np.random.default_rng(int(by_class))
    hits = 0
    for _ in range(SPLITS):
        X = rng.normal(size=(20, 2))
        y = np.where(X[:, 0] + rng.normal(size=20) > 0.4, "yes", "no")
        machine = RidgeConfidenceClassifier(residual=to_same_class, label_conditional=by_class)
        if len(set(y[:-1])) < 2:
            hits += 1
            continue
        machine.fit(X[:-1], y[:-1])
        hits += machine.p_values(X[-1:])[0, list(machine.classes_).index(y[-1])] > 0.1 + 1e-9
    assert_covered(hits, SPLITS, 0.9, 19, ties=True)
