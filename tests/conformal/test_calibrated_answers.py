"""Intervals and sets of calibrated rows, against what each of their levels says by itself."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from transduce import ConformalTransducer
from transduce.conformal import ByClass, Chance
from transduce.conformal.calibrated_answer import find_p_unseen, make_regions
from transduce.conformal.scores import SLACK

LEVELS = [0.55, 0.6, 0.65, 0.7, 0.75, 0.8]


def table_within(task, n=180, n_labels=120):
    """The calibration rows beside the unlabelled ones, compared within two columns."""
    rng = np.random.default_rng(5)
    within = pd.DataFrame({"sex": rng.choice(["f", "m"], n), "region": rng.choice(["e", "w"], n)})
    X = np.round(rng.normal(size=(n, 1)))
    noise = np.where(within["sex"] == "f", 3.0, 1.0) * rng.normal(size=n)
    y = np.round(2.0 * X[:, 0] + noise)
    if task == "classification":
        y = np.array(["a", "b", "c"], dtype=object)[np.digitize(y, [-2.0, 2.0])]
    y = y.astype(object)
    y[n_labels:] = None
    estimator = Ridge() if task == "regression" else LogisticRegression()
    if task == "regression":
        y = y.astype(float)
    model = ConformalTransducer(estimator, labels=Chance(within=within), random_state=0)
    return model.fit(X, y).calibrated.table


def test_intervals_of_several_levels_are_those_of_each_extended_to_hold_the_lower_ones():
    """Thresholds within several columns may cross."""
    table = table_within("regression")
    rows = np.arange(len(table.unlabelled.values))
    alone = {level: make_regions(table, level).hull() for level in LEVELS}
    crossed = any(
        np.any(alone[low][:, 1] > alone[high][:, 1]) for low, high in itertools.pairwise(LEVELS)
    )
    assert crossed  # or nothing would be asked of the extension
    answer = table.answer(0.7, rows, further=[level for level in LEVELS if level != 0.7])
    found = {other.level: other.regions.hull() for other in answer.further}
    found[0.7] = answer.regions.hull()
    ends = np.array([np.inf, -np.inf]) * np.ones((len(rows), 1))
    for level in LEVELS:
        lower = np.minimum(ends[:, 0], alone[level][:, 0])
        ends = np.column_stack([lower, np.maximum(ends[:, 1], alone[level][:, 1])])
        np.testing.assert_array_equal(found[level], ends)
    single = table.answer(0.7, rows)
    np.testing.assert_array_equal(single.regions.hull(), alone[0.7])


def test_sets_of_several_levels_are_those_of_each_with_the_lower_ones():
    """Scores equal to the threshold are inside."""
    table = table_within("classification")
    rows = np.arange(len(table.unlabelled.values))
    answer = table.answer(0.7, rows, further=[level for level in LEVELS if level != 0.7])
    found = {other.level: (other.label_sets, other.unseen) for other in answer.further}
    found[0.7] = (answer.label_sets, answer.unseen)
    scores = table.scoring.measure(table.unlabelled)
    sets = np.zeros(scores.shape, dtype=bool)
    unseen = np.zeros(len(rows), dtype=bool)
    equal = 0
    for level in LEVELS:
        thresholds = table.thresholds_within_columns(level)
        equal += np.sum(scores == thresholds[:, None])
        sets = sets | (scores <= thresholds[:, None])
        unseen = unseen | np.isinf(thresholds)
        np.testing.assert_array_equal(found[level][0], sets)
        np.testing.assert_array_equal(found[level][1], unseen)
    assert equal


def test_a_label_at_the_threshold_is_inside_within_several_columns():
    table = table_within("regression")
    limits = table.thresholds_within_columns(0.8)
    scales = table.scoring.measure(table.unlabelled)
    half = make_regions(table, 0.8).hull()[:, 1] - table.unlabelled.values
    bounded = np.isfinite(limits)
    assert bounded.any()
    assert np.all(half[bounded] >= (limits * scales)[bounded])


def fitted_classes(labels=None, confidence=0.9, n_labels=60):
    """A fit to three classes; the first rows are labelled."""
    rng = np.random.default_rng(2)
    codes = np.append(np.arange(6) % 3, rng.integers(3, size=114))
    X = rng.normal(size=(120, 2)) + codes[:, None]
    y = np.where(np.arange(120) < n_labels, np.array(["a", "b", "c"], dtype=object)[codes], None)
    model = ConformalTransducer(
        LogisticRegression(), labels=labels, confidence=confidence, random_state=0
    )
    return model.fit(X, y)


def test_a_class_that_no_label_shows_is_possible_by_its_p_value():
    table = fitted_classes().calibrated.table
    rows = np.arange(len(table.unlabelled.values))
    p_unseen = find_p_unseen(table)
    np.testing.assert_allclose(p_unseen, 1.0 / (len(table.labels) + 1))
    for level in (0.5, 0.9, 1.0 - p_unseen[0] - 1e-3, 1.0 - p_unseen[0] + 1e-3):
        possible = np.full(len(rows), bool(p_unseen[0] > 1.0 - level + SLACK))
        np.testing.assert_array_equal(table.answer(level, rows).unseen, possible)


@pytest.mark.parametrize(("labels", "known"), [(None, False), (ByClass(), True)])
def test_classes_that_were_chosen_by_are_known_at_every_level(labels, known):
    model = fitted_classes(labels, [0.8, 0.6])
    (further,) = model.answer_.further
    assert (model.answer_.unseen is None) == known
    assert (further.unseen is None) == known


def test_wrong_predictions_are_bounded_by_class_only_where_they_are_at_all():
    fit = fitted_classes().calibrated
    guarantee = fit.guarantee(0.9)
    bounded = dict(guarantee.wrong_by_class)
    assert guarantee.wrong is not None
    assert bounded
    assert all(bound.at_most < bound.of for bound in bounded.values())
    grounds = replace(fit.table.weights, kind="estimated")
    estimated = replace(fit, table=replace(fit.table, weights=grounds)).guarantee(0.5)
    assert estimated.wrong is None
    assert estimated.wrong_by_class == ()
