"""The guarantee itself: coverage over many random splits, any distribution of labels, few labels and many.

With one unlabelled row a split, splits of a simulated population are independent and the number of hits is
binomial. Without ties among residuals its probability is exactly ``1 - floor((1 - c)(l + 1)) / (l + 1)``; with
ties it can only be larger. Bounds are exact binomial quantiles at 1e-6, so a false alarm is out of the question;
with 4,000 splits a shift of three points would be seen nine times in ten.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.datasets import load_diabetes, load_digits, load_iris, load_wine

from transduce import RidgeConfidenceClassifier, RidgeConfidenceMachine
from transduce.core.ranks import nonconformity_rank

LEVELS = (0.8, 0.9, 0.95, 0.99)
SPLITS = 4000

LABELS = {
    "normal": lambda rng, signal: signal + rng.normal(size=len(signal)),
    "cauchy": lambda rng, signal: signal + rng.standard_cauchy(size=len(signal)),
    "skewed": lambda rng, signal: np.exp(signal + rng.normal(size=len(signal))),
    "spread grows": lambda rng, signal: signal + np.abs(signal) * rng.normal(size=len(signal)),
    "unrelated": lambda rng, signal: rng.exponential(size=len(signal)),
    "counts": lambda rng, signal: rng.poisson(np.exp(np.clip(signal, -3, 2))).astype(float),
    "constant": lambda rng, signal: np.full(len(signal), 0.1),
}
TIED = {"counts", "constant"}


def assert_covered(hits, splits, level, n_labelled, *, ties):
    probability = 1 - nonconformity_rank(level, n_labelled) / (n_labelled + 1)
    low, high = binom.ppf(1e-6, splits, probability), binom.ppf(1 - 1e-6, splits, probability)
    assert low <= hits, f"covered {hits / splits:.4f}, guaranteed {level}"
    assert ties or hits <= high, f"covered {hits / splits:.4f}, exact value {probability:.4f}"


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize(
    ("n_labelled", "kernel", "residual"),
    [
        (9, "rbf", "plain"),
        (9, "linear", "deleted"),
        (50, "linear", "plain"),
        (50, "rbf", "studentized"),
    ],
)
def test_regression(labels, n_labelled, kernel, residual):
    rng = np.random.default_rng([n_labelled, list(LABELS).index(labels), len(kernel)])
    hits = dict.fromkeys(LEVELS, 0)
    for _ in range(SPLITS):
        X = rng.standard_t(3, size=(n_labelled + 1, 2))
        y = LABELS[labels](rng, X[:, 0] - np.abs(X[:, 1]))
        shown = np.append(y[:-1], np.nan)
        model = RidgeConfidenceMachine(kernel=kernel, residual=residual, confidence=0.5).fit(
            X, shown
        )
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # nine labels cannot support 95 %: the region is the line
            for level in LEVELS:
                hits[level] += model.predict_region(X[-1:], confidence=level).contains(y[-1])[0]
    for level in LEVELS:
        assert_covered(hits[level], SPLITS, level, n_labelled, ties=labels in TIED)


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_one_sided_regression(side):
    rng = np.random.default_rng(7)
    hits = dict.fromkeys(LEVELS[:2], 0)
    for _ in range(SPLITS):
        X = rng.normal(size=(31, 2))
        y = X[:, 0] + rng.exponential(size=31)
        model = RidgeConfidenceMachine(kernel="linear").fit(X, np.append(y[:-1], np.nan))
        for level in hits:
            hits[level] += model.predict_region(X[-1:], confidence=level, side=side).contains(
                y[-1]
            )[0]
    for level, hit in hits.items():
        assert_covered(hit, SPLITS, level, 30, ties=False)


@pytest.mark.parametrize("n_labelled", [40, 200])
def test_real_rows_all_asked_at_once(n_labelled):
    """Hundreds of rows unlabelled together: the mean share outside is what is guaranteed (standard error by splits)."""
    X, y = load_diabetes(return_X_y=True)
    rng = np.random.default_rng(0)
    shares = np.empty((300, len(LEVELS)))
    for split in range(len(shares)):
        unlabelled = np.ones(len(y), dtype=bool)
        unlabelled[rng.choice(len(y), n_labelled, replace=False)] = False
        model = RidgeConfidenceMachine(confidence=0.5).fit(X, np.where(unlabelled, np.nan, y))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            regions = [model.predict_region(X[unlabelled], confidence=level) for level in LEVELS]
        shares[split] = [region.contains(y[unlabelled]).mean() for region in regions]
    exact = [1 - nonconformity_rank(level, n_labelled) / (n_labelled + 1) for level in LEVELS]
    error = shares.std(axis=0, ddof=1) / np.sqrt(len(shares))
    assert np.all(np.abs(shares.mean(axis=0) - exact) < 5 * error + 1e-3)


@pytest.mark.parametrize(
    ("load", "n_labelled"), [(load_iris, 30), (load_wine, 60), (load_digits, 80)]
)
@pytest.mark.parametrize("label_conditional", [False, True])
def test_classification(load, n_labelled, label_conditional):
    """Sets leave out the true class no more often than guaranteed; label-conditional ones within every class."""
    X, y = load(return_X_y=True)
    rng = np.random.default_rng(1)
    level, splits = 0.8, 1000
    misses, seen = np.zeros(y.max() + 1), np.zeros(y.max() + 1)
    for _ in range(splits):
        rows = rng.choice(len(y), n_labelled + 1, replace=False)
        labels = y[rows].astype(float)
        labels[-1] = np.nan
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = RidgeConfidenceClassifier(label_conditional=label_conditional, confidence=level)
            model.fit(X[rows], labels)
        truth = y[rows[-1]]
        seen[truth] += 1
        if truth in model.classes_:
            misses[truth] += not model.answer_.label_sets[0, list(model.classes_).index(truth)]
    if label_conditional:
        assert np.all(misses <= binom.ppf(1 - 1e-6, seen, 1 - level))
    else:
        assert misses.sum() <= binom.ppf(1 - 1e-6, splits, 1 - level)
        if (
            load is not load_digits
        ):  # every class is seen every time, so the share is not only bounded but known
            exact = nonconformity_rank(level, n_labelled) / (n_labelled + 1)
            assert misses.sum() >= binom.ppf(1e-6, splits, exact)


def test_smoothed_p_values_are_uniform():
    """At the true label, smoothed p-values are uniform even where labels tie (Kolmogorov-Smirnov, 1e-6)."""
    from scipy.stats import kstest

    rng = np.random.default_rng(5)
    p = []
    for split in range(SPLITS):
        X = rng.integers(0, 3, size=(21, 2)).astype(float)
        y = rng.poisson(1 + X[:, 0]).astype(float)
        model = RidgeConfidenceMachine(kernel="linear", confidence=0.5).fit(
            X, np.append(y[:-1], np.nan)
        )
        p.append(model.p_values(X[-1:], y[-1:], smooth=True, random_state=split)[0])
    assert kstest(p, "uniform").pvalue > 1e-6
