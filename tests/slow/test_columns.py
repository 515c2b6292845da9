"""Columns recorded differently with and without a label: how often they are found, and how often by mistake."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from transduce import fill
from transduce.app.filling.left_out import UNLIKELY, columns_left_out
from transduce.app.filling.options import Options
from transduce.app.filling.sources import FrameSource
from transduce.conformal import exchangeability_test


def two_answers(seed, n_labels, n_unlabelled=220):
    """Return features, two answers that are known at the same rows, and where; chance chose the rows."""
    rng = np.random.default_rng(seed)
    n = n_labels + n_unlabelled
    x = rng.normal(size=(n, 4))
    a = 0.6 * x[:, 0] + 0.6 * x[:, 1] + 0.9 * rng.normal(size=n)
    b = a + 0.4 * rng.normal(size=n)
    labelled = rng.permutation(n) < n_labels
    return pd.DataFrame(x, columns=["p", "q", "r", "s"]), a, b, labelled


def filled_a(features, a, labelled):
    """Return the first answer, filled where it is missing."""
    known = features.assign(A=np.where(labelled, a, np.nan))
    return fill(known, "A", method="ridge")


def coverage(result, truth):
    return float(result.answer.regions.contains(truth[result.answer.rows]).mean())


@pytest.mark.parametrize("n_labels", [60, 220])
def test_a_filled_column_keeps_its_columns(n_labels):
    """The chain A, then B: with the columns of the fill as they are, B is covered as promised."""
    covered = []
    for seed in range(12):
        features, a, b, labelled = two_answers(seed, n_labels)
        chain = filled_a(features, a, labelled).frame.assign(y=np.where(labelled, b, np.nan))
        covered.append(coverage(fill(chain, "y", method="ridge"), b))
    mean, error = np.mean(covered), np.std(covered) / np.sqrt(len(covered))
    assert mean >= 0.9 - 3.0 * error, covered


@pytest.mark.parametrize(("n_labels", "least"), [(30, 10), (60, 17), (220, 20)])
def test_a_filled_column_under_another_name_is_found(n_labels, least):
    """Nothing shows what it is but how well other columns explain it: in most of 20 tables it is found."""
    found = 0
    for seed in range(20):
        features, a, b, labelled = two_answers(seed, n_labels)
        disguised = filled_a(features, a, labelled).new["A_filled"].astype(float).to_numpy()
        table = features.assign(A=disguised, y=np.where(labelled, b, np.nan))
        result = fill(table, "y", method="ridge")
        found += result.guarantee.kind != "exact"
    assert found >= least


@pytest.mark.parametrize("way", ["mean", "nearest", "computed"])
def test_other_ways_to_impute(way):
    found = 0
    for seed in range(20):
        features, a, _, labelled = two_answers(seed, 100)
        x = features.to_numpy()
        if way == "mean":
            guess = np.full(len(a), a[labelled].mean())
        elif way == "nearest":
            distances = ((x[:, None] - x[labelled][None]) ** 2).sum(axis=2)
            near = np.argsort(distances, axis=1)[:, :5]
            guess = a[labelled][near].mean(axis=1)
        else:
            guess = 0.6 * x[:, 0] + 0.6 * x[:, 1]
        column = np.where(labelled, a, guess)
        found += exchangeability_test(np.column_stack([x, column]), labelled).shifted
    assert found >= 17


def test_false_alarms_of_the_comparison():
    """Where all columns are true, one table in a hundred is called different, and no column is left out."""
    n_tables, alarms = 300, 0
    for seed in range(n_tables):
        features, a, _, labelled = two_answers(seed, 60, 100)
        wide = np.column_stack([features, a, np.round(a), np.abs(a)])
        alarms += exchangeability_test(wide, labelled, n_permutations=99).shifted
    assert alarms <= binom.ppf(0.9999, n_tables, 0.01)


def test_false_alarms_of_what_is_left_out():
    """Columns with gaps by chance, of any share, in tables labelled by chance: none of 20,000 is left out."""
    rng = np.random.default_rng(0)
    options = Options.read({})
    for _ in range(100):
        n = int(rng.integers(40, 300))
        labelled = rng.permutation(n) < rng.integers(10, n - 5)
        gaps = rng.uniform(size=(n, 200)) < rng.uniform(size=200) ** 2
        columns = pd.DataFrame(np.where(gaps, rng.normal(size=(n, 200)), np.nan)).add_prefix("c")
        table = columns.assign(y=np.where(labelled, rng.normal(size=n), np.nan))
        source = FrameSource.read(table, "y", options)
        assert columns_left_out(source, options) == []
    assert UNLIKELY * 20_000 < 0.03


def test_known_nearly_only_with_the_label_is_found_at_all_sizes():
    """With a value at 95 % of the labelled rows and 5 % of the others it is left out, with 40 labels or more."""
    options = Options.read({})
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(150, 600))
        labelled = rng.permutation(n) < rng.integers(40, n // 2)
        known = rng.uniform(size=n) < np.where(labelled, 0.95, 0.05)
        x = rng.normal(size=n)
        table = pd.DataFrame({"x": x, "m": np.where(known, 2.0 * x, np.nan)})
        table["y"] = np.where(labelled, x, np.nan)
        source = FrameSource.read(table, "y", options)
        assert [one.name for one in columns_left_out(source, options)] == ["m"]
