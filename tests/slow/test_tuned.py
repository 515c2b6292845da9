"""The tuned confidence machine keeps its level: any distribution, few labels, ties, a grid of many settings.

As in `test_coverage`: one unlabelled row a split, so hits are binomial; bounds are exact quantiles at 1e-6.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from tests.slow.test_coverage import assert_covered
from transduce.core.ranks import nonconformity_rank
from transduce.core.scaling import Scaling
from transduce.methods.confidence_machine.setting_grid import Setting, SettingGrid, default_settings
from transduce.methods.confidence_machine.tuned_machine import (
    TunedMachine,
    answer_rows,
)

SPLITS = 2500
GRID = [
    Setting(kernel, width, ridge)
    for kernel, width in (
        ("rbf", 0.5),
        ("rbf", 2.0),
        ("linear", 1.0),
        ({"rbf": 1.0, "linear": 0.5}, 1.0),
    )
    for ridge in (0.01, 0.3, 3.0)
]


def normal(rng, n):
    X = rng.normal(size=(n, 2))
    return X, X[:, 0] - np.abs(X[:, 1]) + rng.normal(size=n)


def student(rng, n):
    X = rng.normal(size=(n, 2))
    return X, X[:, 0] - np.abs(X[:, 1]) + rng.standard_t(2, size=n)


def cauchy(rng, n):
    X = np.clip(rng.standard_cauchy(size=(n, 2)), -50, 50)
    return X, X[:, 0] + rng.standard_cauchy(size=n)


def duplicates(rng, n):
    X = rng.integers(0, 3, size=(n, 2)).astype(float)
    return X, X[:, 0] + rng.integers(0, 2, size=n)


def constant(rng, n):
    return rng.normal(size=(n, 2)), np.full(n, 0.1)


def fit(X, y, grid=GRID, **settings):
    """The machine for all rows but the last, from the features of all."""
    rows = Scaling.fit_apply(X)[1]
    grid = SettingGrid.build(default_settings(rows) if grid is None else grid, rows)
    return TunedMachine.build(grid, rows[:-1], y, **settings), rows[-1:]


@pytest.mark.parametrize("make", [normal, student, cauchy, duplicates, constant])
@pytest.mark.parametrize(("n_labelled", "power"), [(9, 0.5), (19, 1.0), (50, 0.5), (19, 0.0)])
def test_regression(make, n_labelled, power):
    rng = np.random.default_rng([n_labelled, int(4 * power), len(make.__name__)])
    hits = dict.fromkeys((0.8, 0.9), 0)
    for _ in range(SPLITS):
        X, y = make(rng, n_labelled + 1)
        machine, row = fit(X, y[:-1], power=power)
        for level in hits:
            found = answer_rows(machine, row, rank=nonconformity_rank(level, n_labelled))
            hits[level] += found.regions.contains(y[-1])[0]
    for level, hit in hits.items():
        assert_covered(hit, SPLITS, level, n_labelled, ties=make in (duplicates, constant))


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_one_sided_regression(side):
    rng = np.random.default_rng(7)
    hits = 0
    for _ in range(SPLITS):
        X, y = cauchy(rng, 20)
        machine, row = fit(X, y[:-1])
        hits += answer_rows(machine, row, rank=2, side=side).regions.contains(y[-1])[0]
    assert_covered(hits, SPLITS, 0.9, 19, ties=False)


def test_the_default_grid():
    """Twenty settings, trees among them, grown anew for every split."""
    rng = np.random.default_rng(3)
    hits, splits = 0, 1500
    for _ in range(splits):
        X, y = student(rng, 20)
        machine, row = fit(X, y[:-1], None)
        hits += answer_rows(machine, row, rank=2).regions.contains(y[-1])[0]
    assert_covered(hits, splits, 0.9, 19, ties=False)


def test_smoothed_p_values_are_uniform():
    rng = np.random.default_rng(5)
    p = np.empty(SPLITS)
    for split in range(SPLITS):
        X, y = student(rng, 10)
        machine, row = fit(X, y[:-1])
        p[split] = machine.label_p_values(row, y[-1:], rng.uniform(size=1))[0]
    for level in (0.05, 0.1, 0.25, 0.5, 0.9):
        count = np.sum(p <= level)
        assert binom.ppf(1e-6, SPLITS, level) <= count <= binom.ppf(1 - 1e-6, SPLITS, level)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("heavy", [False, True])
def test_classification(n_classes, heavy):
    """The true class is left out no more often than guaranteed, and label-conditionally within every class."""
    rng = np.random.default_rng([n_classes, heavy])
    level, n_labelled = 0.8, 24
    misses, within, seen = 0, np.zeros(n_classes), np.zeros(n_classes)
    for _ in range(SPLITS):
        codes = rng.permutation(np.arange(n_labelled + 1) % n_classes)
        noise = rng.standard_t(1.5 if heavy else 30, size=(n_labelled + 1, 2))
        machine, row = fit(
            np.clip(1.5 * codes[:, None] + noise, -30, 30),
            np.where(codes[:-1, None] == np.arange(n_classes), 1.0, -1.0),
        )
        found = machine.class_p_values(row, codes[:-1], np.ones(1))
        truth = codes[-1]
        misses += found.overall[0, truth] <= 1 - level + 1e-9
        within[truth] += found.within[0, truth] <= 1 - level + 1e-9
        seen[truth] += 1
    assert misses <= binom.ppf(1 - 1e-6, SPLITS, 1 - level)
    assert np.all(within <= binom.ppf(1 - 1e-6, seen, 1 - level))


def test_the_completed_sample_keeps_the_level_where_the_labelled_rows_alone_do_not():
    """19 labels, t-distributed noise, level 90 %: the same settings, chosen in two ways."""
    rng = np.random.default_rng(11)
    splits, outside = 6000, np.zeros(2)
    for _ in range(splits):
        X, y = student(rng, 20)
        machine, row = fit(X, y[:-1])
        outside[0] += not answer_rows(machine, row, rank=2).regions.contains(y[-1])[0]
        errors = np.sum((machine.fit.residuals / machine.fit.diagonal) ** 2, axis=1)
        tuned_before, row = fit(X, y[:-1], [GRID[int(np.argmin(errors))]])
        outside[1] += not answer_rows(tuned_before, row, rank=2).regions.contains(y[-1])[0]
    low, high = binom.ppf([1e-6, 1 - 1e-6], splits, 0.1)
    assert low <= outside[0] <= high, f"{outside / splits} outside"
    assert outside[1] > high, f"{outside / splits} outside"
