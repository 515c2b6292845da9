"""How often sets hold each class: every calibration label among the others, by a slow definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from tests import brute
from transduce import ConformalTransducer
from transduce.conformal import Chance

CLASSES = np.array(["a", "b", "c"], dtype=object)


def labelled_table(n=220, n_labels=150, seed=0):
    """Features, classes and categories; the first rows are labelled."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(n, 2)) + 0.8 * codes[:, None]
    y = np.where(np.arange(n) < n_labels, CLASSES[codes], None)
    within = pd.DataFrame({"sex": rng.choice(["f", "m"], n), "region": rng.choice(["n", "s"], n)})
    return X, y, within


def fitted_table(within=None, *, X, y):
    """The calibration rows beside the unlabelled ones."""
    design = None if within is None else Chance(within=within)
    model = ConformalTransducer(LogisticRegression(), labels=design, random_state=0)
    return model.fit(X, y).calibrated.table


def p_values_within(table, codes):
    """p-values among the calibration labels of the same category."""
    p_values = np.full(len(codes), np.nan)
    for code in np.unique(codes):
        rows = codes == code
        p_values[rows] = brute.held_out_p_values(table.scores[rows], table.labels[rows])
    return p_values


def test_labels_of_a_category_without_an_unlabelled_row_are_not_judged():
    """No set is compared with them."""
    X, y, within = labelled_table()
    within.loc[:30, "sex"] = "diverse"  # all of which have a label
    table = fitted_table(within["sex"], X=X, y=y)
    codes = table.weights.strata.calibration
    compared = np.isin(codes, table.weights.strata.unlabelled)
    assert 0 < (~compared).sum() < len(codes)
    expected = np.where(compared, p_values_within(table, codes), np.nan)
    np.testing.assert_allclose(table.held_out_p_values(), expected, atol=1e-12)
    judged, covered = table.covered_by_class(0.9)
    np.testing.assert_array_equal(judged, np.bincount(table.labels[compared], minlength=3))
    held = (expected > 0.1 + 1e-9) | (table.calibration.values == table.labels)
    np.testing.assert_array_equal(covered, np.bincount(table.labels[compared & held], minlength=3))


@pytest.mark.filterwarnings("ignore:Too few labels")
def test_within_several_columns_the_largest_p_value_counts():
    X, y, within = labelled_table(seed=1)
    table = fitted_table(within, X=X, y=y)
    calibration, _ = table.weights.overlapping
    of_columns = [p_values_within(table, codes) for codes in calibration.codes.T]
    assert np.any(of_columns[0] != of_columns[1])
    np.testing.assert_allclose(table.held_out_p_values(), np.max(of_columns, axis=0), atol=1e-12)


def test_a_class_of_known_share_without_a_label_rules_nothing_out():
    """Its share is added to every p-value."""
    X, y, _ = labelled_table(seed=2)
    table = fitted_table(X=X, y=y)
    kept = table.labels != 2
    shares = np.array([0.6, 0.3, 0.1])
    calibration = table.calibration.at(np.flatnonzero(kept))
    weights = replace(
        table.weights, shares=shares, calibration=table.weights.calibration[kept], kind="classes"
    )
    absent = replace(
        table,
        calibration=calibration,
        labels=table.labels[kept],
        ties=(table.ties[0][kept], table.ties[1]),
        weights=weights,
    )
    slow = brute.held_out_p_values(absent.scores, absent.labels, shares=shares)
    np.testing.assert_allclose(absent.held_out_p_values(), slow, atol=1e-12)
    assert absent.held_out_p_values().min() >= 0.1
