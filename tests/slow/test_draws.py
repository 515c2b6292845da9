"""Rows drawn at random, of which the hardest were left without a label: what is said of the others is true."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.linear_model import LinearRegression, LogisticRegression

from tests.app.filling.test_chosen_quality import clear_cases
from transduce import ConformalTransducer, fill
from transduce.conformal import Drawn


def table_of(seed, n_drawn, n_empty, n=300, classes=False):
    """Return rows of which the largest were labelled on purpose, and others drawn, the hardest of them left empty."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    truth = X[:, 0] + rng.normal(size=n) * rng.choice([0.3, 1.5], size=n)
    purpose = np.argsort(-np.abs(X[:, 0]) if classes else -X[:, 0])[
        :40
    ]  # of two classes some of each
    drawn = np.isin(
        np.arange(n), rng.choice(np.setdiff1d(np.arange(n), purpose), n_drawn, replace=False)
    )
    hardness = np.abs(truth - X[:, 0])
    if classes:
        sure = LogisticRegression().fit(X[purpose], truth[purpose] > 0).predict_proba(X)[:, 1]
        hardness = np.where(truth > 0, 1.0 - sure, sure)
    hardest = np.flatnonzero(drawn)[np.argsort(-hardness[drawn])[:n_empty]]
    known = drawn | np.isin(np.arange(n), purpose)
    known[hardest] = False
    return X, truth, known, drawn


@pytest.mark.parametrize(
    ("n_drawn", "n_empty", "confidence"), [(40, 15, 0.6), (60, 4, 0.9), (40, 3, 0.9)]
)
def test_intervals_and_the_column(n_drawn, n_empty, confidence):
    n_tables, outside, beyond = 1500, 0, 0
    for seed in range(n_tables):
        X, truth, known, drawn = table_of(seed, n_drawn, n_empty)
        model = ConformalTransducer(
            LinearRegression(),
            confidence=confidence,
            labels=Drawn(drawn),
            test_exchangeability=False,
        ).fit(X, np.where(known, truth, np.nan))
        others = np.flatnonzero(~known & ~drawn)
        inside = model.answer_.regions.contains(truth[~known])[~drawn[~known]]
        outside += not inside[np.random.default_rng(seed).integers(len(others))]
        beyond += int(np.sum(~inside)) > model.outside_at_most(0.9)
    assert outside <= binom.ppf(0.999, n_tables, 1.0 - confidence)
    assert beyond <= binom.ppf(0.999, n_tables, 0.1)


def test_classes_their_bound_and_what_is_picked():
    n_tables, outside, beyond, mistaken = 250, 0, 0, []
    for seed in range(n_tables):
        X, numbers, known, drawn = table_of(seed, 80, 7, classes=True)
        truth = (numbers > 0).astype(float)
        model = ConformalTransducer(
            LogisticRegression(), labels=Drawn(drawn), test_exchangeability=False
        )
        with warnings.catch_warnings(action="ignore"):
            model.fit(X, np.where(known, truth, np.nan))
        covered = ~drawn[~known]
        rows = model.answer_.rows
        inside = model.answer_.label_sets[np.arange(len(rows)), truth[rows].astype(int)]
        outside += not inside[covered][np.random.default_rng(seed).integers(covered.sum())]
        beyond += np.sum(
            model.answer_.values[covered] != truth[rows[covered]]
        ) > model.wrong_at_most(0.9)
        picked = model.select(label=1.0, false_discovery=0.2).rows
        mistaken.append(np.mean(truth[picked] != 1.0) if len(picked) else 0.0)
    assert outside <= binom.ppf(0.999, n_tables, 0.1)
    assert beyond <= binom.ppf(0.999, n_tables, 0.1)
    assert np.mean(mistaken) <= 0.2 + 3 * np.std(mistaken) / np.sqrt(n_tables)


def test_what_is_said_of_quality_is_true_where_clear_cases_were_labelled():
    """60 clear cases on purpose and 20 drawn rows: shares of right answers as stated and as they are, on average."""
    stated, probable, true = [], [], []
    for seed in range(60):
        frame, truth, known = clear_cases(seed)
        result = fill(frame, "y", method="ridge", labels=Drawn("drawn"))
        folds, new = result.out_of_fold, result.new[~known]
        stated.append(np.mean(folds["true"] == folds["answered"]))
        probable.append(new["y_probability"].mean())
        true.append(np.mean(new["y_filled"] == truth[~known]))
    for said in (stated, probable):
        off = np.array(said) - np.array(true)
        assert abs(off.mean()) <= 0.01 + 3.3 * off.std() / np.sqrt(len(off))
