"""Labels of rows that were drawn at random, among others that were chosen by whatever means."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from tests import brute
from tests.conformal.test_transducer import numbers
from transduce import ConformalTransducer
from transduce.conformal import Drawn
from transduce.population.urns import urn_bound


def biased(seed, n=220, drawn=19):
    """Return rows of which those with the largest values were labelled on purpose, and some more at random."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    truth = X[:, 0] + np.where(X[:, 0] > 0, 0.1, 2.0) * rng.standard_t(3, size=n)
    on_purpose = np.argsort(-X[:, 0])[:40]
    rest = np.setdiff1d(np.arange(n), on_purpose)
    at_random = np.isin(np.arange(n), rng.choice(rest, drawn, replace=False))
    y = np.where(at_random | np.isin(np.arange(n), on_purpose), truth, np.nan)
    return X, y, truth, at_random


@pytest.mark.parametrize("n", [80, pytest.param(300, marks=pytest.mark.slow)])
def test_the_level_holds_however_the_other_labels_were_chosen(n):
    """One row of each of many samples: outside no more often than stated; with all labels, far more often."""
    outside, naive = 0, 0
    for seed in range(n):
        X, y, truth, drawn = biased(seed)
        model = ConformalTransducer(
            LinearRegression(), labels=Drawn(drawn), test_exchangeability=False, random_state=0
        )
        row = np.flatnonzero(np.isnan(y))[0]
        outside += not model.fit(X, y).answer_.regions.contains(truth[np.isnan(y)])[0]
        y[drawn] = np.nan
        plain = ConformalTransducer(
            LinearRegression(), calibration=19, test_exchangeability=False, random_state=0
        )
        found = plain.fit(X, y).answer_
        naive += not found.regions.contains(truth[np.isnan(y)])[
            np.flatnonzero(found.rows == row)[0]
        ]
    assert outside <= binom.ppf(0.999, n, 0.1)
    assert naive > 2 * outside


def test_the_guarantee_says_so_and_calibration_rows_are_those_marked():
    X, y, _, drawn = biased(0)
    model = ConformalTransducer(Ridge(), labels=Drawn(drawn), random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.calibration_rows_, np.flatnonzero(drawn))
    assert model.guarantee_.kind == "exact"
    assert model.guarantee_.headline == "exact"
    assert "19 of 59 labels, those of rows drawn at random, were used" in model.guarantee_.grounds
    assert model.exchangeability_.n_labelled == 19


def test_constant_marks_are_refused():
    X, y, _ = numbers()
    for marks, words in (
        (np.isnan(y), "No row that 'rows' marks"),
        (~np.isnan(y), "leave it out, since all labels then count as drawn at random"),
        (np.ones(90, dtype=bool), "label some other rows to learn from"),
        (np.zeros(3, dtype=bool), "a value for each of the 90 rows"),
        (np.zeros(90), "No row that 'rows' marks"),
        (np.arange(90), "holds 2: write true or yes where a row is marked"),
    ):
        with pytest.raises(ValueError, match=words):
            ConformalTransducer(Ridge(), labels=Drawn(marks)).fit(X, y)


# ------------------------------------------------------------------------------- drawn rows that nobody labelled


def with_holes(seed=0, n_empty=2, drawn=29, classes=False):
    """Return rows of which some were drawn, and the hardest of those left without a label."""
    X, y, truth, at_random = biased(seed, drawn=drawn)
    hard = np.flatnonzero(at_random)[np.argsort(-np.abs(truth - X[:, 0])[at_random])[:n_empty]]
    if classes:
        truth = (truth > 0).astype(int) + (truth > 1)
        y = np.where(np.isnan(y), np.nan, truth)
    y[hard] = np.nan
    return X, y, truth, at_random, hard


def test_a_drawn_row_without_a_label_counts_as_the_worst():
    X, y, _, drawn, hard = with_holes()
    model = ConformalTransducer(Ridge(), labels=Drawn(drawn), random_state=0).fit(X, y)
    scores = model.calibration_scores_
    assert len(scores) == 27
    half = np.diff(model.answer_.regions.hull(), axis=1)[:, 0] / 2
    np.testing.assert_allclose(half, brute.threshold([*scores, np.inf, np.inf], 27), rtol=1e-9)
    for score in (0.0, *scores, scores.max() + 1):
        at = (1 + np.sum(scores >= score) + 2) / 30
        assert at == pytest.approx(brute.worst_p_value(scores, 2, score))
    guarantee, law = model.guarantee_, model.miscoverage_
    assert (guarantee.kind, guarantee.n_empty, guarantee.outside.of) == ("exact", 2, 151)
    assert (law.n_calibration, law.rank, law.n_unlabelled) == (29, 27, 151)
    assert set(hard) <= set(model.answer_.rows)
    assert "The 2 rows that were drawn at random and have no label are not covered by this." in str(
        guarantee
    )
    assert "2 of the 29 rows drawn at random have no label" in guarantee.grounds
    assert "as large as those at 96.4 %" in guarantee.grounds
    assert guarantee.grounds.count("Label them, or as many as you can.") == 1


def test_too_many_drawn_rows_without_a_label_leave_nothing():
    X, y, _, drawn, _ = with_holes(n_empty=5)
    with pytest.warns(UserWarning, match="5 of the 29 rows drawn at random have no label"):
        model = ConformalTransducer(Ridge(), labels=Drawn(drawn), random_state=0).fit(X, y)
    assert model.guarantee_.kind == "none"
    assert "90 % takes 27 labels of such rows, so label 3 more of them" in str(model.guarantee_)
    assert np.isinf(model.answer_.regions.hull()).all()
    assert model.guarantee_at(0.5).kind == "exact"


@pytest.mark.parametrize("by_class", [False, True])
def test_classes_of_drawn_rows_without_a_label(by_class):
    X, y, _, drawn, hard = with_holes(n_empty=3, drawn=40, classes=True)
    settings = {"confidence": 0.7, "label_conditional": by_class, "random_state": 0}
    model = ConformalTransducer(LogisticRegression(), labels=Drawn(drawn), **settings)
    with warnings.catch_warnings(action="ignore"):
        model.fit(X, y)
    answer, codes = model.answer_, y[model.calibration_rows_].astype(int)
    scores = 1.0 - answer.probabilities
    for k in (0, 1, 2):
        hidden = model.calibration_scores_[codes == k] if by_class else model.calibration_scores_
        for row in (0, 50, 100):
            slow = brute.worst_p_value(hidden - 1e-12, 3, scores[row, k] - 1e-9, by_class)
            assert answer.p_values[row, k] == pytest.approx(slow)
    guarantee = model.guarantee_
    assert (guarantee.outside is None) == by_class
    assert (model.miscoverage_ is None) == by_class
    wrong = int(np.sum(model.estimator_.predict(X[model.calibration_rows_]) != codes))
    assert guarantee.wrong.at_most == urn_bound(wrong + 3, 40, guarantee.wrong.of, 0.95)
    assert guarantee.wrong.of == len(answer) - 3
    picked = model.select(label=1, false_discovery=0.5)
    assert not set(hard) & set(picked.rows)
    assert model.mean_["upper"].sum() > 1.0
    if by_class:
        few = "No class has the 9 calibration labels that 90 % takes, since rows that were drawn have no label."
        assert model.guarantee_at(0.9).reasons == (few,)
        few = "that may be of class 2.0 have no label, and each may be far off: 90 % takes"
        with pytest.warns(UserWarning, match=few):
            model.answer_at(0.9)


def test_drawn_rows_without_a_label_within_categories():
    X, y, _, drawn, hard = with_holes(n_empty=2, drawn=60)
    region = np.isin(np.arange(len(y)), hard) | (np.arange(len(y)) % 2 == 0)
    labels = Drawn(drawn, within=region)
    model = ConformalTransducer(Ridge(), labels=labels, random_state=0).fit(X, y)
    n = [int(np.sum(drawn & (region == cell))) for cell in (False, True)]
    assert model.miscoverage_.n_calibration == tuple(n)
    own = region[model.calibration_rows_]
    half = np.diff(model.answer_.regions.hull(), axis=1)[:, 0] / 2
    for cell, extra in ((False, []), (True, [np.inf, np.inf])):
        scores = [*model.calibration_scores_[own == cell], *extra]
        rank = int(np.ceil((len(scores) + 1) * 0.9 - 1e-9))
        np.testing.assert_allclose(
            half[region[model.answer_.rows] == cell], brute.threshold(scores, rank)
        )
