"""Regions that follow difficulty keep their level: heavy tails, ties, few labels, every scale.

As in `test_coverage`: one unlabelled row a split, so hits are binomial; bounds are exact quantiles at 1e-6.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.slow.test_coverage import LABELS, TIED, assert_covered
from transduce import RidgeConfidenceMachine
from transduce.methods.confidence_machine import Setting

SPLITS = 2500
GRID = [
    Setting(kernel, width, ridge)
    for kernel, width in (("rbf", 0.5), ("rbf", 2.0), ("linear", 1.0))
    for ridge in (0.03, 1.0)
]


def count_hits(rng, labels, n_labelled, level, **options):
    hits = 0
    for _ in range(SPLITS):
        X = rng.standard_t(3, size=(n_labelled + 1, 2))
        y = LABELS[labels](rng, X[:, 0] - np.abs(X[:, 1]))
        model = RidgeConfidenceMachine(
            settings=GRID, spread="local", confidence=level, **options
        ).fit(X, np.append(y[:-1], np.nan))
        hits += model.answer_.regions.contains(y[-1:])[0]
    return hits


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize(("n_labelled", "level"), [(9, 0.8), (19, 0.9), (50, 0.9)])
def test_a_local_spread(labels, n_labelled, level):
    rng = np.random.default_rng([n_labelled, list(LABELS).index(labels), 1])
    hits = count_hits(rng, labels, n_labelled, level)
    assert_covered(hits, SPLITS, level, n_labelled, ties=labels in TIED)


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize(("n_labelled", "level"), [(19, 0.8), (40, 0.9)])
def test_a_scale_that_is_chosen(labels, n_labelled, level):
    """Labels that may be negative, positive or counts: one that is not positive makes regions larger."""
    rng = np.random.default_rng([n_labelled, list(LABELS).index(labels), 2])
    hits = count_hits(rng, labels, n_labelled, level, scale="auto")
    ties = labels not in ("skewed", "unrelated")
    assert_covered(hits, SPLITS, level, n_labelled, ties=ties)


@pytest.mark.parametrize("scale", ["log", "sqrt"])
def test_a_scale_that_is_named(scale):
    rng = np.random.default_rng(len(scale))
    hits = count_hits(rng, "skewed", 29, 0.9, scale=scale)
    assert_covered(hits, SPLITS, 0.9, 29, ties=False)
