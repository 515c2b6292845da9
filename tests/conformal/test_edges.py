"""Edges of what calibration labels support, each with its sentence: found by changing the code (docs/mutants.md)."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from tests.conformal.test_calibrated import (
    NO_YES,
    classes,
    fit_classes,
    fit_numbers,
    numbers,
    reply,
    small_fit,
)
from transduce import ConformalTransducer
from transduce.conformal import ClassShares, Sampled, ruled_out
from transduce.conformal.designs import CLASSES, ESTIMATED, Strata, Weights
from transduce.conformal.designs.rows import OverlappingCategories
from transduce.conformal.designs.weights import KNOWN
from transduce.conformal.outside import calibrate_outside
from transduce.conformal.ruled_out import any_class_possible, short_categories
from transduce.conformal.scores import Scoring
from transduce.population.urns import urn_bound

NO_ROWS = np.zeros(0, dtype=int)
NONE_OF_YES = Scoring("zero_one", 1.0, 0.0, (True, False))


def chosen_by_class(table, shares=None):
    weights = replace(table.weights, kind=CLASSES, shares=shares)
    return replace(table, weights=weights, by_class=shares is None)


# ------------------------------------------------------------------------------ why nothing is ruled out


def test_why_labels_that_are_not_held_out_are_too_few():
    few = {"sizes": (7,)}
    said = "7 labels are too few to hold some out and guarantee 90 %: it takes 13"
    assert (
        numbers([], [], [0.0], **few).shortfall(0.9) == f"{said}. Every interval is the whole line."
    )
    by_class = classes(NO_ROWS, NO_ROWS, [0], by_class=True, sizes=(4, 3))
    assert by_class.shortfall(0.9).startswith(f"{said}; that class (and 1 more that has too few)")
    no_class = "No class has the 13 labels that 90 % takes within it"
    for shares in (None, np.array([0.5, 0.5])):
        chosen = chosen_by_class(by_class, shares)
        assert chosen.shortfall(0.9) == f"{no_class}. Every set is all classes."
        assert chosen.guarantee(0.9, 0.9).reasons == (f"{no_class}.",)
    known = Weights(np.ones(0), np.ones(1), kind=KNOWN)
    assert numbers([], [], [0.0], weights=known, **few).shortfall(0.9).startswith(said)


def test_why_labels_of_each_class_are_too_few():
    labels = [0] * 4 + [1] * 4
    table = classes(labels, labels, [0, 1, 1])
    by_shares = chosen_by_class(table, np.array([0.5, 0.5]))
    assert by_shares.shortfall(0.9).startswith("The 8 calibration labels are too few of each class")
    assert by_shares.shortfall(0.8) is None
    by_class = chosen_by_class(table)
    assert by_class.shortfall(0.9).startswith("4 calibration labels of class 'no' support at most")
    assert by_class.guarantee(0.9, 0.9).reasons == (
        "No class has the 13 labels that 90 % takes within it.",
    )


@pytest.mark.parametrize(
    ("factor", "words"),
    [(1.0, "with odds as different as these"), (2.0, "with odds that may be off by a factor of 2")],
)
def test_why_labels_of_known_odds_are_too_few(factor, words):
    weights = Weights(np.ones(30), np.full(2, 100.0), kind=KNOWN, factor=factor)
    table = numbers([0.0] * 30, [0.0] * 30, [0.0, 0.0], weights=weights)
    said = f"30 calibration labels, worth 30 of equal weight, cannot support 90 % {words}"
    assert table.shortfall(0.9) == f"{said}. Every interval is the whole line."


def test_a_category_is_short_where_every_row_of_it_is():
    """Rows of one category that weigh more than its labels do; others that do not."""
    cells = np.zeros(9, dtype=int), np.zeros(3, dtype=int)
    weights = Weights(
        np.ones(9), np.array([1.0, 1.0, 90.0]), kind=KNOWN, strata=Strata(*cells, ("a",))
    )
    table = numbers([0.0] * 9, [0.0] * 9, [0.0] * 3, weights=weights)
    assert table.n_unbounded(0.9) == 1
    assert short_categories(table, 0.9) == ()
    heavy = replace(weights, unlabelled=np.full(3, 90.0))
    assert short_categories(replace(table, weights=heavy), 0.9) == ("a",)


def overlapping(calibration, unlabelled, names):
    pair = (
        OverlappingCategories(np.array(calibration), names),
        OverlappingCategories(np.array(unlabelled), names),
    )
    return replace(Weights.equal(len(calibration), len(unlabelled)), overlapping=pair)


def test_categories_of_several_columns_are_short_by_themselves():
    rows = [[k % 2, int(k < 3)] for k in range(24)]
    weights = overlapping(rows, [[0, 0], [1, 1]], (("a", "b"), ("late", "early")))
    table = numbers([0.0] * 24, list(np.arange(24.0)), [0.0, 0.0], weights=weights)
    assert short_categories(table, 0.9) == ("early",)
    lost = replace(table, unlabelled=reply([0.0, 0.0], lost=[1]))
    assert short_categories(lost, 0.9) == ()


# ------------------------------------------------------------------------------ classes that no label shows


def test_an_unseen_class_at_the_very_rank_that_decides():
    """Two of nine scores are infinite: at 80 % the eighth of ten ranks decides, the last of those that are finite."""
    labels = [0] * 7 + [1] * 2
    table = classes([0] * 9, labels, [0, 0], scoring=NONE_OF_YES)
    found = {level: any_class_possible(table, level) for level in (0.7, 0.75, 0.8, 0.85, 0.9)}
    p_unseen = (2 + 1) / (9 + 1)
    assert found == {level: p_unseen > 1.0 - level + 1e-9 and level <= 0.9 for level in found}


def test_where_any_class_is_possible_within_categories():
    """One category has labels of an unseen class, the other none."""
    labels = [0] * 7 + [1] * 2 + [0] * 9
    cells = np.repeat([0, 1], 9), np.array([0, 1])
    table = classes([0] * 18, labels, [0, 0], scoring=NONE_OF_YES)
    within = replace(table, weights=replace(table.weights, strata=Strata(*cells, ("a", "b"))))
    assert any_class_possible(within, 0.8)
    assert not any_class_possible(within, 0.6)
    in_other = replace(within.weights, strata=Strata(cells[0], np.array([1, 1]), ("a", "b")))
    assert not any_class_possible(replace(within, weights=in_other), 0.8)
    # A category whose rows weigh differently: the heavy one may be of any class, not the other.
    uneven = replace(within.weights, unlabelled=np.array([1.0, 1.0]), kind=KNOWN)
    heavy = replace(uneven, unlabelled=np.array([9.0, 1.0]))
    assert any_class_possible(replace(within, weights=heavy), 0.6)
    assert not any_class_possible(replace(within, weights=uneven), 0.6)


def test_where_any_class_is_possible_within_several_columns():
    rows = [[k % 2, int(k < 12)] for k in range(24)]
    names = (("a", "b"), ("late", "early"))
    labels = [int(k >= 12 and k % 2 == 0) for k in range(24)]
    usual = {"scoring": NONE_OF_YES, "weights": overlapping(rows, [[0, 0], [1, 1]], names)}
    table = classes([0] * 24, labels, [0, 0], **usual)
    infinite = np.isinf(table.thresholds_within_columns(0.5))
    assert infinite.tolist() == [True, False]
    assert any_class_possible(table, 0.5)
    assert not any_class_possible(replace(table, unlabelled=reply([0, 0], lost=[0])), 0.5)
    seen = replace(table, scoring=Scoring("zero_one", 1.0, 0.0, (True, True)))
    assert not any_class_possible(seen, 0.5)
    # Too few labels leave everything open, but then it is not for an unseen class.
    assert not any_class_possible(replace(seen, labels=np.zeros(24, dtype=int)), 0.99)


# ------------------------------------------------------------------------------ the level that labels reach


def test_the_highest_level_that_labels_support():
    rows = [0.0] * 8
    assert numbers(rows, rows, [0.0]).guarantee(0.9, 0.9).reachable == 0.85
    assert numbers([0.0] * 9, [0.0] * 9, [0.0]).guarantee(0.95, 0.9).reachable == 0.9
    assert numbers([0.0] * 9, [0.0] * 9, [0.0]).guarantee(0.9, 0.9).reachable is None
    none = numbers([], [], [0.0], sizes=(12,))
    assert none.guarantee(0.9, 0.9).reachable == 0.85
    assert replace(none, sizes=(7,)).guarantee(0.9, 0.9).reachable == 0.8
    assert replace(none, sizes=(3,)).guarantee(0.9, 0.9).reachable == 0.5
    assert replace(none, sizes=(1,)).guarantee(0.9, 0.9).reachable is None
    by_class = chosen_by_class(classes(NO_ROWS, NO_ROWS, [0], sizes=(40, 40)))
    assert by_class.guarantee(0.9, 0.9).reachable is None
    estimated = Weights(np.ones(30), np.full(2, 100.0), kind=ESTIMATED)
    table = numbers([0.0] * 30, [0.0] * 30, [0.0, 0.0], weights=estimated)
    assert table.guarantee(0.9, 0.9).kind == "none"
    assert table.guarantee(0.9, 0.9).reachable is None


def test_what_nothing_is_said_of():
    rows = [0.0] * 20
    lost = replace(numbers(rows, rows, [0.0] * 3), unlabelled=reply([0.0] * 3, lost=[0]))
    said = lost.guarantee(0.9, 0.9)
    assert (said.kind, said.n_unreached) == ("exact", 1)
    assert said.wrong is None
    nowhere = replace(numbers(rows, rows, [0.0]), unlabelled=reply([0.0], lost=[0]))
    all_lost = nowhere.guarantee(0.9, 0.9)
    assert all_lost.reasons == ("The estimator has no answer at any unlabelled row.",)
    assert numbers(rows, rows, [0.0], tolerance=1.0).guarantee(0.9, 0.9).wrong is not None


# ------------------------------------------------------------------------------ wrong answers by class


def test_wrong_answers_by_class_count_drawn_rows_of_their_class_alone():
    """Ten labels judge each class; of the drawn rows without a label, one is answered "no" and two "yes"."""
    known = [0] * 10 + [1] * 10
    labels = [0] * 9 + [1] * 11
    answers = [0] * 12 + [1] * 8 + [0, 1, 1]
    empty = np.array([False] * 20 + [True] * 3)
    table = classes(known, labels, answers)
    drawn = replace(table, weights=replace(table.weights, empty=empty))
    found = dict(drawn.wrong_by_class(None, 0.8))
    assert found["no"].at_most == urn_bound(1 + 1, 10 + 1, 12, 0.8)
    assert found["yes"].at_most == urn_bound(0 + 2, 10 + 2, 8, 0.8)
    # A class that the second fit gives nowhere, though the first did, has no bound.
    second = reply([0] * 23)
    assert set(dict(drawn.wrong_by_class(second, 0.8))) <= {"no"}


# ------------------------------------------------------------------------------ rows that no fit saw


def outside_by_class(given):
    """Labels chosen by class, of rows that a fit did not see; shares given, or estimated."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 1))
    codes = (X[:, 0] + rng.normal(size=90) > 0).astype(int)
    y = np.array(
        [NO_YES[code] if row < 40 else None for row, code in enumerate(codes)], dtype=object
    )
    model = ConformalTransducer(LogisticRegression(), random_state=0, test_exchangeability=False)
    first = model.fit(X, y)._fit.first
    shares = ClassShares(NO_YES, np.array([0.5, 0.5]), np.array([0.9, 0.1]), given=given)
    rest = X[60:]
    outside = calibrate_outside(first, X[:20], codes[:20], X[20:60], codes[20:60], shares=shares)
    plain = calibrate_outside(first, X[:20], codes[:20], X[20:60], codes[20:60])
    return outside, plain, rest, shares


def test_given_shares_weigh_rows_that_no_fit_saw():
    outside, plain, rest, shares = outside_by_class(given=True)
    assert outside.table.weights.kind == CLASSES
    np.testing.assert_array_equal(outside.table.weights.shares, shares.shares)
    assert not outside.table.weights.grounds.testable
    answer = outside.answer(rest, 0.8)
    usual = plain.answer(rest, 0.8)
    expected = shares.applied(plain.fitted.predict(rest, once=True))
    np.testing.assert_allclose(answer.probabilities, expected.probabilities)
    assert answer.values.tolist() == NO_YES[expected.values].tolist()
    # "yes" is rare now: it is said less often, and its scores are those at these shares.
    assert np.sum(answer.values == "yes") < np.sum(usual.values == "yes")
    given_scores = outside.table.scoring.at_labels(outside.table.calibration, outside.table.labels)
    assert not np.allclose(given_scores, plain.table.scores)


def test_estimated_shares_change_values_and_not_scores():
    outside, plain, rest, shares = outside_by_class(given=False)
    assert outside.table.weights.shares is None
    np.testing.assert_allclose(outside.table.scores, plain.table.scores)
    answer = outside.answer(rest, 0.8)
    expected = shares.applied(plain.fitted.predict(rest, once=True))
    np.testing.assert_allclose(answer.probabilities, expected.probabilities)
    sets = plain.answer(rest, 0.8).label_sets
    codes = (answer.values == "yes").astype(int)
    held = answer.label_sets.copy()
    held[np.arange(len(rest)), codes] = sets[np.arange(len(rest)), codes]
    np.testing.assert_array_equal(held, sets)


# ------------------------------------------------------------------------------ questions to a fit


def test_how_wide_intervals_get_by_factor():
    fit = fit_numbers()._fit
    usual = fit.sensitivity_at(0.9)
    assert usual["factor"].tolist() == [1.0, 1.5, 2.0]
    assert usual["width"].tolist() == [fit.width(0.9, factor)[0] for factor in (1.0, 1.5, 2.0)]
    assert fit.sensitivity_at(0.9, [1.0, 3.0])["factor"].tolist() == [1.0, 3.0]
    declared = replace(
        fit, design=replace(fit.design, spec=replace(fit.design.spec, sensitivity=3.0))
    )
    assert declared.sensitivity_at(0.9)["factor"].tolist() == [1.0, 1.5, 2.0, 3.0]


def test_widths_within_several_columns_are_known_at_the_odds_as_they_are():
    fit = fit_numbers()._fit
    codes = np.zeros((19, 2), dtype=int), np.zeros((20, 2), dtype=int)
    weights = overlapping(*(rows.tolist() for rows in codes), (("a",), ("b",)))
    within = replace(fit, table=replace(fit.table, weights=weights))
    assert within.sensitivity_at(0.9) is None
    assert within.width(0.9, 1.0)[1] == 0
    with pytest.raises(ValueError, match="not known within several columns"):
        within.width(0.9, 2.0)


def test_numbers_without_a_tolerance_have_no_wrong_ones_of_a_class():
    fit = fit_classes()._fit
    assert fit.guarantee(0.9).wrong_by_class == fit.table.wrong_by_class(fit.second, 0.95)
    assert fit_numbers()._fit.guarantee(0.9).wrong_by_class == ()
    weighed = replace(fit.table, weights=replace(fit.table.weights, factor=1.2))
    uneven = replace(fit, table=weighed).guarantee(0.5)
    assert uneven.wrong is None
    assert uneven.wrong_by_class == ()


def test_how_much_labels_stand_for():
    """By the design where odds are known; by what was estimated where they are."""
    probability = np.linspace(0.2, 0.9, 60)
    y = np.where(np.arange(60) % 3 > 0, np.arange(60.0) % 7, np.nan)
    known = small_fit(Ridge(), y, labels=Sampled(probability))._fit
    rows = known.problem.rows
    np.testing.assert_allclose(known.measure(rows), ((1.0 - probability) / probability)[rows])
    from transduce.conformal import Estimated

    estimated = small_fit(Ridge(), y, labels=Estimated())._fit
    odds = estimated.table.weights.grounds.estimated.odds
    np.testing.assert_allclose(estimated.measure(rows), odds[rows])


def test_errors_that_drift_are_found_in_signed_residuals():
    """Residuals turn their sign along the order, by predictions that vary much more."""
    from transduce.conformal import Chance

    rng = np.random.default_rng(0)
    order = np.arange(160.0)
    X = rng.normal(size=(160, 1))
    truth = 1000.0 * X[:, 0] + np.where(order < 80, -1.0, 1.0) * rng.exponential(size=160)
    y = np.where(rng.random(160) < 0.75, truth, np.nan)
    model = ConformalTransducer(
        Ridge(1e-9), labels=Chance(order=order), random_state=0, test_exchangeability=False
    ).fit(X, y)
    assert model.guarantee_.drift.found


def table_of(**fields):
    """Return what is asked of a table to tell whether any class is possible."""
    usual = {
        "classes": NO_YES,
        "weights": SimpleNamespace(kind=KNOWN, overlapping=None),
        "pooled": False,
        "comparisons": [(slice(None), slice(None), None)],
        "scores": np.array([np.inf, 0.2, 0.1]),
        "unlabelled": SimpleNamespace(given=np.array([True, True])),
        "n_unseen": 1,
    }
    return SimpleNamespace(**usual | fields)


def test_any_class_is_possible_where_it_is_for_one_row(monkeypatch):
    """P-values of rows differ where their weights do."""
    monkeypatch.setattr(ruled_out, "find_p_unseen", lambda table: np.array([0.02, 0.4]))
    assert any_class_possible(table_of(), 0.9)
    assert not any_class_possible(table_of(), 0.5)
    assert not any_class_possible(table_of(scores=np.array([0.3, 0.2, 0.1])), 0.9)
    assert not any_class_possible(table_of(classes=None), 0.9)  # numbers
    chosen = SimpleNamespace(kind=CLASSES, overlapping=None)
    assert not any_class_possible(table_of(weights=chosen), 0.9)


def test_any_class_is_possible_within_columns_where_one_label_has_a_class_of_its_own():
    of_columns = {
        "weights": SimpleNamespace(kind=KNOWN, overlapping=(None, None)),
        "thresholds_within_columns": lambda confidence: np.array([0.5, np.inf]),
    }
    assert any_class_possible(table_of(**of_columns), 0.9)
    assert not any_class_possible(table_of(**of_columns, n_unseen=0), 0.9)
    beside = SimpleNamespace(given=np.array([True, False]))
    assert not any_class_possible(table_of(**of_columns, unlabelled=beside), 0.9)
