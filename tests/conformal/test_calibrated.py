"""The calibrated table by itself: a few rows written down by hand, and what follows from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from transduce import ConformalTransducer, Guarantee, Regions
from transduce.conformal.calibrated import CalibratedTable
from transduce.conformal.calibrated_answer import (
    confidence_in,
    find_p_unseen,
    find_p_values,
    holding_values,
    make_regions,
    name_values,
    with_values,
)
from transduce.conformal.calibrated_guarantee import bound_together, largest_share
from transduce.conformal.designs import CLASSES, ESTIMATED, GROUPS, Strata, Weights
from transduce.conformal.miscoverage import ClassMiscoverage, Miscoverage
from transduce.conformal.missing_mean import weights_of_means
from transduce.conformal.outside import calibrate_outside, table_outside
from transduce.conformal.ruled_out import any_class_possible, short_categories
from transduce.conformal.scores import Scoring
from transduce.conformal.selection import (
    Judged,
    Selection,
    pick,
    read_goal,
    select_rows,
    selection_p_values,
)
from transduce.conformal.too_few import explain, too_few_labels, warn_of_shortfall
from transduce.conformal.wrong_answers import changed_by, wrong_at_calibration
from transduce.core import assumptions as words
from transduce.core.answer import Answer
from transduce.core.findings import Verdict
from transduce.model_selection.fit_and_predict import RawPrediction
from transduce.population.urns import two_urns_bound, urn_bound, urn_interval

NO_YES = np.array(["no", "yes"])


def reply(values, *, lost=(), **parts):
    """Return answers; rows in `lost` have none."""
    status = np.array(["answered"] * len(values), dtype="<U9")
    status[list(lost)] = "unreached"
    return RawPrediction(np.asarray(values), status, **parts)


def numbers(known, labels, unlabelled, **changes):
    """Return a table of numbers, all rows of equal weight."""
    usual = {
        "calibration": reply(np.asarray(known, dtype=float)),
        "unlabelled": reply(np.asarray(unlabelled, dtype=float)),
        "labels": np.asarray(labels, dtype=float),
        "classes": None,
        "sizes": (20,),
        "by_class": False,
        "tolerance": None,
        "scoring": Scoring("absolute", 1.0, 0.0, ()),
        "ties": (np.zeros(len(known)), np.zeros(len(unlabelled))),
        "weights": Weights.equal(len(known), len(unlabelled)),
    }
    return CalibratedTable(**usual | changes)


def classes(known, labels, unlabelled, **changes):
    """Return a table of two classes, scored by whether the answer is right."""
    usual = {
        "calibration": reply(np.asarray(known)),
        "unlabelled": reply(np.asarray(unlabelled)),
        "labels": np.asarray(labels),
        "classes": NO_YES,
        "sizes": (12, 8),
        "scoring": Scoring("zero_one", 1.0, 0.0, (True, True)),
    }
    changes = usual | changes
    table = numbers(known, labels, unlabelled)
    return replace(table, **changes)


# ------------------------------------------------------------------------------------------ weights


def test_how_many_labels_weights_are_worth():
    table = numbers([0.0] * 3, [0.0] * 3, [0.0])
    weighed = replace(table, weights=Weights(np.array([1.0, 2.0, 3.0]), np.ones(1)))
    assert weighed.effective == pytest.approx(36 / 14)
    assert replace(table, weights=Weights(np.zeros(3), np.ones(1))).effective == 0.0


@pytest.mark.parametrize(("number", "enough"), [(19, False), (20, True), (21, True)])
def test_estimated_weights_take_twice_the_labels(number, enough):
    rows = [0.0] * number
    table = numbers(rows, rows, [0.0], weights=Weights.equal(number, 1, kind=ESTIMATED))
    assert table.supports(0.9) == enough
    assert numbers(rows, rows, [0.0]).supports(0.9)


def test_weights_of_means_go_by_the_sizes_of_categories():
    cells = np.array([0, 0, 1]), np.array([0, 1, 1, 1])
    table = numbers([0.0] * 3, [0.0] * 3, [0.0] * 4)
    weights = replace(table.weights, strata=Strata(*cells), calibration=np.array([1.0, 2.0, 1.0]))
    np.testing.assert_allclose(weights_of_means(replace(table, weights=weights)), [0.5, 1.0, 3.0])
    np.testing.assert_array_equal(weights_of_means(table), np.ones(3))


def test_at_how_many_rows_given_shares_rule_nothing_out():
    """Four labels of each class: the smallest p-value is 1 / 5, which rules out at 80 % and not beyond."""
    labels = [0] * 4 + [1] * 4
    weights = replace(Weights.equal(8, 3), kind=CLASSES, shares=np.array([0.5, 0.5]))
    table = classes(labels, labels, [0, 1, 1], weights=weights)
    assert table.n_unbounded(0.8) == 0
    assert table.n_unbounded(0.81) == 3
    assert table.n_unbounded(0.7) == 0
    lost = replace(table, unlabelled=reply([0, 1, 1], lost=[2]))
    assert lost.n_unbounded(0.81) == 2


# ------------------------------------------------------------------------------------------ laws


def test_labels_that_were_chosen_by_class_say_nothing_of_how_many_rows_are_of_which():
    labels = [0] * 5 + [1] * 4
    by_chance = classes(labels, labels, [0, 1], by_class=True)
    law = by_chance.law(0.75)
    assert isinstance(law, ClassMiscoverage)
    assert law.n_labelled == (12, 8)
    assert law.n_calibration == (5, 4)
    chosen = replace(by_chance, weights=replace(by_chance.weights, kind=CLASSES))
    assert chosen.law(0.75).n_labelled == ()
    assert find_p_unseen(chosen).tolist() == [0.0, 0.0]
    np.testing.assert_allclose(find_p_unseen(by_chance), [0.1, 0.1])


def test_a_class_with_exactly_enough_labels_is_not_short():
    labels = [0] * 5 + [1] * 3
    table = classes(labels, labels, [0, 1], by_class=True)
    assert table.shortfall(0.75) is None
    assert "'yes'" in table.shortfall(0.8)
    assert "too few)" not in table.shortfall(0.8)  # one class is short
    assert "too few)" in table.shortfall(0.9)
    pooled = replace(table, by_class=False)
    assert pooled.shortfall(0.75) is None
    assert "no other label shows" not in pooled.shortfall(0.95)


def test_a_threshold_of_a_row_without_a_label_rules_nothing_out():
    """Four labels, and three rows drawn without one: at 60 % the fifth of seven scores would decide."""
    rows = [0.0] * 4
    table = numbers(rows, rows, [0.0] * 6)
    drawn = replace(table, weights=replace(table.weights, n_empty=3))
    law = drawn.law(0.6)
    assert (law.n_unlabelled, law.n_calibration, law.rank) == (6, 7, 8)
    assert law.n_short == 1
    assert drawn.law(0.5).rank == 4
    assert table.law(0.6).rank == 3


def test_a_row_without_an_answer_may_be_of_any_class():
    labels = [0] * 5 + [1] * 4
    table = classes(labels, labels, [0, 1], by_class=True)
    lost = replace(table, unlabelled=reply([0, 1], lost=[1]))
    p = find_p_values(lost)
    # Each class is compared with its own labels, all of which were answered rightly.
    np.testing.assert_allclose(p, [[1.0, 1 / 5], [1.0, 1.0]])
    answer = lost.answer(0.7, np.arange(2))
    assert answer.values.tolist() == ["no", None]
    assert answer.label_sets.tolist() == [[True, False], [True, True]]
    np.testing.assert_allclose(answer.confidence[0], 1.0 - 1 / 5)
    np.testing.assert_allclose(answer.credibility, [1.0, 1.0])
    pooled = find_p_values(replace(table, by_class=False))
    np.testing.assert_allclose(pooled, [[1.0, 1 / 10], [1 / 10, 1.0]])


def test_given_shares_weigh_the_classes():
    labels = [0] * 5 + [1] * 4
    weights = replace(Weights.equal(9, 1), kind=CLASSES, shares=np.array([0.25, 0.75]))
    table = classes(labels, labels, [0], weights=weights)
    # None of five, and none of four labels is as strange: 1/6 and 1/5, by their shares.
    np.testing.assert_allclose(find_p_values(table), [[1.0, 0.25 / 6 + 0.75 / 5]])


def test_within_what_a_guarantee_holds():
    labels = [0] * 10 + [1] * 10
    table = classes(labels, labels, [0, 1])
    assert table.guarantee(0.8, 0.9).within == ""
    assert replace(table, by_class=True).guarantee(0.8, 0.9).within == "class"
    cells = np.zeros(20, dtype=int), np.zeros(2, dtype=int)
    within = replace(table.weights, strata=Strata(*cells, ("a",)))
    assert replace(table, weights=within).guarantee(0.8, 0.9).within == "category"


def test_answers_are_named():
    assert name_values(reply([0, 1]), NO_YES).tolist() == ["no", "yes"]
    assert name_values(reply([0, -1], lost=[1]), NO_YES).tolist() == ["no", None]
    np.testing.assert_array_equal(
        name_values(reply(np.array([1.0, 2.0]), lost=[0]), None), [np.nan, 2.0]
    )


def test_no_category_has_enough_labels():
    rows = [0.0] * 3
    table = numbers(rows, rows, [0.0])
    cells = np.zeros(3, dtype=int), np.zeros(1, dtype=int)
    weights = replace(table.weights, strata=Strata(*cells, ("a",)))
    said = replace(table, weights=weights).shortfall(0.9)
    assert said.startswith("No category has the")
    assert "since rows that were drawn" not in said
    drawn = replace(table, weights=replace(weights, n_empty=1)).shortfall(0.9)
    assert "since rows that were drawn have no label" in drawn


def test_a_law_needs_rows_of_equal_weight_on_both_sides():
    rows = [0.0] * 9
    table = numbers(rows, rows, [0.0, 0.0])
    assert table.exchangeable
    heavy = replace(table, weights=replace(table.weights, unlabelled=np.array([1.0, 2.0])))
    assert not heavy.exchangeable
    assert heavy.law(0.8) is None
    light = replace(table, weights=replace(table.weights, calibration=np.full(9, 0.5)))
    assert not light.exchangeable


def test_there_is_no_law_where_odds_are_estimated_or_classes_of_drawn_rows_are_unknown():
    labels = [0] * 5 + [1] * 5
    table = classes(labels, labels, [0, 1])
    assert table.law(0.8) is not None
    estimated = replace(table, weights=table.weights.resting_on(assumption=words.ESTIMATE))
    assert estimated.law(0.8) is None
    drawn = replace(table, weights=replace(table.weights, n_empty=1))
    assert drawn.law(0.8) is not None
    assert replace(drawn, by_class=True).law(0.8) is None
    assert replace(table, by_class=True).law(0.8) is not None


def test_intervals_by_hand():
    """At 75 % the third of three errors decides; a row without an answer has the whole line."""
    table = numbers([0.0, 0.0, 0.0], [1.0, -2.0, 3.0], [10.0, 0.0])
    lost = replace(table, unlabelled=reply(np.array([10.0, 0.0]), lost=[1]))
    assert make_regions(lost, 0.75) == Regions.from_intervals([[7.0, 13.0], [-np.inf, np.inf]])
    assert make_regions(lost, 0.5) == Regions.from_intervals([[8.0, 12.0], [-np.inf, np.inf]])
    weak = replace(lost, weights=replace(lost.weights, kind=ESTIMATED))
    assert make_regions(weak, 0.75) == Regions.from_intervals([[-np.inf, np.inf]] * 2)


def test_the_second_best_class_decides_how_sure_an_answer_is():
    scores = np.array([[0.7, 0.2, 0.1]])
    labels = [0, 1, 2, 0, 1]
    told = np.array(
        [[0.9, 0.1, 0.0], [0.3, 0.6, 0.1], [0.3, 0.3, 0.4], [0.8, 0.1, 0.1], [0.5, 0.45, 0.05]]
    )
    table = classes(
        [0, 1, 2, 0, 0],
        labels,
        [0],
        classes=np.array(["a", "b", "c"]),
        sizes=(5, 5, 5),
        scoring=Scoring("probability", 1.0, 0.0, (True,) * 3),
        calibration=reply([0, 1, 2, 0, 0], probabilities=told),
    )
    table = replace(table, unlabelled=reply([0], probabilities=scores))
    # Scores of the labels are 0.1, 0.4, 0.6, 0.2 and 0.55; those of the row 0.3, 0.8 and 0.9.
    np.testing.assert_allclose(find_p_values(table), [[4 / 6, 1 / 6, 1 / 6]])
    answer = table.answer(0.8, np.arange(1))
    np.testing.assert_allclose(answer.confidence, [5 / 6])
    np.testing.assert_allclose(answer.credibility, [4 / 6])
    np.testing.assert_allclose(answer.p_unseen, [1 / 6])
    lost = replace(table, unlabelled=reply([0], lost=[0], probabilities=scores))
    assert find_p_unseen(lost).tolist() == [1.0]


def test_what_a_guarantee_assumes():
    labels = [0] * 10 + [1] * 10
    table = classes(labels, labels, [0, 1])
    by_class = replace(table, by_class=True)
    assert table.guarantee(0.8, 0.9).assumptions == (words.CHANCE,)
    assert by_class.guarantee(0.8, 0.9).assumptions == (words.CHANCE, words.SEEN)
    chosen = replace(by_class, weights=replace(table.weights, kind=CLASSES))
    assert chosen.guarantee(0.8, 0.9).assumptions == (words.BY_CLASS, words.SEEN)
    untested = "Whether labelled and unlabelled rows differ was not tested."
    assert table.guarantee(0.8, 0.9).reasons == (untested,)
    tested = Verdict(0.5, False, 20, 2)
    known = replace(table, weights=table.weights.resting_on(verdict=tested))
    assert known.guarantee(0.8, 0.9).reasons == ()


def test_a_category_is_short_only_if_nothing_is_ruled_out_in_it():
    rows = [0.0] * 6
    cells = np.array([0, 0, 0, 0, 0, 1]), np.array([0, 1, 1])
    table = numbers(rows, rows, [0.0] * 3)
    weights = replace(table.weights, strata=Strata(*cells, ("a", "b")))
    within = replace(table, weights=weights)
    assert short_categories(within, 0.8) == ("b",)
    assert short_categories(within, 0.4) == ()
    assert short_categories(within, 0.9) == ("a", "b")


# ------------------------------------------------------------------------------------------ means


def test_shares_of_classes_with_exact_intervals():
    labels = [0, 0, 0, 1, 1, 0]
    table = classes([0, 0, 1, 1, 1, 0], labels, [0, 1, 1, 0, 0])
    found = table.mean(0.8, np.array([0, 1]))
    ends = [urn_interval(n, 6, 5, 0.8) for n in (4, 2)]
    np.testing.assert_allclose(found["lower"], [low / 5 for low, _ in ends])
    np.testing.assert_allclose(found["upper"], [high / 5 for _, high in ends])
    # The predictions say 3 of 5; at calibration rows they say 3 of 6 where 4 are.
    plain = 3 / 5 + (4 - 3) / 6
    expected = np.clip(plain, *[end / 5 for end in ends[0]])
    assert found["estimate"].iloc[0] == pytest.approx(expected)


def test_intervals_of_shares_need_rows_that_are_alike():
    labels = [0, 0, 0, 1, 1, 0]
    table = classes(labels, labels, [0, 1, 1, 0, 0])
    cells = np.zeros(6, dtype=int), np.zeros(5, dtype=int)
    for changes in (
        {"kind": GROUPS},
        {"strata": Strata(*cells)},
        {"calibration": np.array([1.0, 2.0, 1.0, 1.0, 1.0, 1.0])},
    ):
        other = replace(table, weights=replace(table.weights, **changes))
        assert other.mean(0.8, np.array([0, 1]))["lower"].isna().all(), changes
    drawn = replace(table.weights, empty=np.array([True, False, False, False, False]))
    ends = [urn_interval(n, 6, 5, 0.8, 1) for n in (4, 2)]
    found = replace(table, weights=drawn).mean(0.8, np.array([0, 1]))
    np.testing.assert_allclose(found["lower"], [low / 5 for low, _ in ends])
    np.testing.assert_allclose(found["upper"], [high / 5 for _, high in ends])


def test_the_share_of_one_row_is_none_or_all():
    labels = [0, 0, 0, 1, 1, 0]
    found = classes(labels, labels, [1]).mean(0.8, np.array([0, 1]))
    assert found.columns.tolist() == ["estimate", "lower", "upper", "standard_error", "plain"]
    assert found["upper"].tolist() == [urn_interval(n, 6, 1, 0.8)[1] for n in (4, 2)]


def test_the_mean_of_numbers_has_no_interval_and_fills_gaps_by_the_labels():
    table = numbers([1.0, 2.0], [1.5, 2.5], [4.0, 0.0])
    lost = replace(table, unlabelled=reply(np.array([4.0, 0.0]), lost=[1]))
    found = lost.mean(0.8, np.array([2.0, 4.0]))
    assert "lower" not in found
    assert found["estimate"].iloc[0] == pytest.approx((4.0 + 3.0) / 2 + 0.5)


# ------------------------------------------------------------------------------------------ wrong answers


def test_wrong_answers_of_each_class():
    known = [0, 0, 0, 1, 1, 1, 1, 1]
    labels = [0, 0, 0, 1, 1, 1, 1, 0]
    answers = [0, 0, 1, 1, 1, 1]
    table = classes(known, labels, answers)
    found = dict(table.wrong_by_class(None, 0.5))
    assert set(found) <= {"no", "yes"}
    assert found["yes"].at_most == urn_bound(1, 5, 4, 0.5)
    assert found["yes"].of == 4
    # Where a second fit answers otherwise, nothing is known.
    second = reply([0, 1, 1, 1, 1, 0])
    changed = dict(table.wrong_by_class(second, 0.5))
    assert changed["yes"].of == 4
    assert changed["yes"].at_most == min(urn_bound(1, 5, 4, 0.5), 3) + 1
    # A class that is answered nowhere, or that judges nothing, has no bound.
    assert "no" not in dict(classes(known, labels, [1] * 6).wrong_by_class(None, 0.5))
    assert "yes" not in dict(classes([0] * 8, labels, answers).wrong_by_class(None, 0.5))


def test_rows_drawn_without_a_label_count_as_wrong():
    known = [0, 0, 0, 1, 1, 1, 1, 1]
    table = classes(known, known, [0, 0, 1, 1, 1, 1, 1])
    empty = np.array([False] * 6 + [True])
    drawn = replace(table, weights=replace(table.weights, empty=empty))
    assert drawn.n_empty == 1
    found = dict(drawn.wrong_by_class(None, 0.3))
    assert found["yes"].at_most == urn_bound(1, 6, 4, 0.3)
    answers = drawn.wrong_answers(None)
    assert (answers.urn.n_marked, answers.urn.n_calibration, answers.urn.n_unlabelled) == (1, 9, 6)
    one = answers.of_one_answer  # 8 of 20 labels are not of the more frequent class
    assert (one.n_marked, one.n_calibration) == (9, 21)


def test_drawn_rows_count_within_the_class_that_they_are_answered_with():
    known = [0, 0, 0, 0, 1, 1, 1, 1]
    labels = [0, 0, 0, 1, 1, 1, 1, 1]
    table = classes(known, labels, [0, 0, 0, 1, 1, 1, 0])
    empty = np.array([False] * 6 + [True])
    drawn = replace(table, weights=replace(table.weights, empty=empty))
    found = dict(drawn.wrong_by_class(None, 0.3))
    if "no" in found:  # one of four is wrong, and so may be the row drawn
        assert found["no"].at_most == urn_bound(2, 5, 3, 0.3)
    assert found["yes"].at_most == urn_bound(0, 4, 3, 0.3)
    useless = classes([0, 1], [1, 0], [0, 1]).wrong_by_class(None, 0.95)
    assert useless == ()
    second = reply([0, 0, 0, 1, 1, 0, 0])
    answers = drawn.wrong_answers(second)
    assert (answers.n_kept, answers.n_rows) == (5, 6)


def test_one_answer_for_all_numbers_is_the_median():
    table = numbers([0.0] * 5, [4.0, 5.0, 6.0, 8.0, 1.0], [0.0] * 4, tolerance=1.0)
    one = table.wrong_answers(None).of_one_answer
    assert (one.n_marked, one.n_calibration, one.n_unlabelled) == (2, 5, 4)


def test_wrong_answers_of_two_fits_together():
    one = classes([0] * 8, [0] * 7 + [1], [0] * 6).wrong_answers(None)
    other = classes([0] * 5, [0] * 5, [0] * 9).wrong_answers(None)
    both = one.bound_with(other, 0.8)
    assert both.of == 15
    assert both.at_most == two_urns_bound(one.urn, other.urn, 0.8)
    simplest = replace(one.of_one_answer, n_unlabelled=15).bound(0.8)
    assert both.simplest == simplest
    alone = replace(one, of_one_answer=None).bound_with(other, 0.8)
    assert alone.simplest is None
    law, by_class = Miscoverage(30, 9, 8), ClassMiscoverage(10, (9, 9), (5, 5), (4, 4))
    share = 30 / 40
    expected = law.quantile(1.0 - share * 0.2) + by_class.quantile(1.0 - (1.0 - share) * 0.2)
    assert bound_together(law, by_class, 0.8).at_most == expected
    many = Miscoverage(10_000, 9, 8)
    shared = many.quantile(1.0 - 0.9 * 0.2) + by_class.quantile(1.0 - 0.1 * 0.2)
    assert bound_together(many, by_class, 0.8).at_most == pytest.approx(shared, abs=1)


def test_an_answer_that_is_off_by_the_tolerance_is_right():
    table = numbers([1.0, 1.0, 1.0], [1.5, 1.75, 1.0], [2.0, 3.0], tolerance=0.5)
    wrong = wrong_at_calibration(table, None)
    changed = changed_by(table, None)
    assert wrong.tolist() == [False, True, False]
    assert changed.tolist() == [False, False]
    # With a second fit a quarter of the tolerance is left for it.
    second = reply(np.array([2.125, 3.25]))
    wrong = wrong_at_calibration(table, second)
    changed = changed_by(table, second)
    assert wrong.tolist() == [True, True, False]
    assert changed.tolist() == [False, True]
    exact = replace(table, tolerance=0.0625 * 8)
    assert exact.wrong_answers(None).urn.n_marked == 1


# ------------------------------------------------------------------------------------------ classes without a label


def test_classes_that_no_visible_row_has():
    labels = [0] * 6 + [1] * 2
    seen_one = Scoring("zero_one", 1.0, 0.0, (True, False))
    table = classes([0] * 8, labels, [0, 0], scoring=seen_one)
    assert table.n_unseen == 2
    assert numbers([1.0], [1.0], [1.0]).n_unseen == 0
    # Two of eight scores are infinite: at 70 % the third largest decides, at 80 % the first.
    assert not any_class_possible(table, 0.6)
    assert any_class_possible(table, 0.8)
    assert not any_class_possible(table, 0.95)
    chosen = replace(table, weights=replace(table.weights, kind=CLASSES))
    assert not any_class_possible(chosen, 0.8)
    assert not any_class_possible(numbers([1.0] * 8, [1.0] * 8, [1.0]), 0.8)
    cells = np.zeros(8, dtype=int), np.zeros(2, dtype=int)
    within = replace(table, weights=replace(table.weights, strata=Strata(*cells, ("a",))))
    assert any_class_possible(within, 0.8)
    assert not any_class_possible(within, 0.6)


def test_rows_drawn_without_a_label_are_not_of_an_unseen_class():
    labels = [0] * 6 + [1] * 2
    table = classes([0] * 8, labels, [0, 0], scoring=Scoring("zero_one", 1.0, 0.0, (True, False)))
    drawn = replace(table, weights=replace(table.weights, n_empty=2))
    # Of ten scores two count as worst: at 80 % the second of eleven ranks is one of these.
    assert not any_class_possible(drawn, 0.8)
    assert any_class_possible(drawn, 0.7)


# ------------------------------------------------------------------------------------------ words


def test_why_labels_are_too_few():
    table = numbers([0.0] * 4, [0.0] * 4, [0.0])
    assert (
        too_few_labels(table, 0.9) == "4 calibration labels support at most 4/5 = 0.8: 90 % takes 9"
    )
    lost = replace(table, calibration=reply(np.zeros(4), lost=[1]))
    assert too_few_labels(lost, 0.9).startswith(
        "3 calibration labels at rows with an answer support"
    )
    one = numbers([0.0], [0.0], [0.0])
    assert too_few_labels(one, 0.9).startswith("1 calibration label supports at most 1/2")
    drawn = replace(table, weights=replace(table.weights, n_empty=5))
    assert too_few_labels(drawn, 0.9).endswith(
        "90 % takes 9 labels of such rows, so label 5 more of them"
    )
    assert "have no label, and each may be far off" in too_few_labels(drawn, 0.9)
    single = replace(table, weights=replace(table.weights, n_empty=1))
    assert "1 of the 5 rows drawn at random has no label, and it may" in too_few_labels(single, 0.9)
    labels = [0] * 3 + [1]
    of_class = classes(labels, labels, [0])
    assert too_few_labels(of_class, 0.9).startswith("4 calibration labels support")
    assert too_few_labels(of_class, 0.9, 1).startswith(
        "1 calibration label of class 'yes' supports"
    )
    fewer = replace(table, weights=replace(table.weights, n_empty=4))
    assert too_few_labels(fewer, 0.9).endswith("so draw and label more rows")


def some_numbers(n_labels, **weights):
    """Return a table of numbers with so many calibration labels, and one row to be predicted."""
    rows = [0.0] * n_labels
    return numbers(rows, rows, [0.0], weights=Weights.equal(n_labels, 1, **weights))


def some_classes(n_no, n_yes, **weights):
    """Return a table with so many calibration labels of each class, each with sets of its own."""
    labels = [0] * n_no + [1] * n_yes
    equal = Weights.equal(len(labels), 2, **weights)
    return classes(labels, labels, [0, 1], by_class=True, weights=equal)


def some_groups(n_groups, **weights):
    """Return a table with so many calibration groups of two labels each."""
    table = some_numbers(2 * n_groups, kind=GROUPS, **weights)
    halves = np.full(2 * n_groups, 0.5)
    return replace(table, weights=replace(table.weights, calibration=halves))


def rarely_labelled(**weights):
    """Return a table whose row to be predicted weighs more than all labels."""
    table = some_numbers(30, **weights)
    return replace(table, weights=replace(table.weights, unlabelled=np.array([100.0])))


def in_categories(n_one, n_other, **weights):
    """Return a table with so many calibration labels in each of two categories."""
    cells = Strata(np.array([0] * n_one + [1] * n_other), np.array([0]), names=("a", "b"))
    return some_numbers(n_one + n_other, strata=cells, **weights)


REASONS = {
    "no label": (
        some_numbers(0),
        "20 labels are too few to hold some out and guarantee 90 %: it takes 13",
    ),
    "one label": (
        replace(some_numbers(0), sizes=(1,)),
        "1 label is too few to hold some out and guarantee 90 %: it takes 13",
    ),
    "8 labels": (
        some_numbers(8),
        "8 calibration labels support at most 8/9 = 0.8889: 90 % takes 9",
    ),
    "9 labels": (some_numbers(9), None),
    "worth 19": (
        some_numbers(19, kind=ESTIMATED),
        "Labelled and unlabelled rows differ so much that 19 calibration labels are worth 19 of "
        "equal weight, and 90 % takes 20",
    ),
    "worth one": (
        some_numbers(1, kind=ESTIMATED),
        "Labelled and unlabelled rows differ so much that 1 calibration label is worth 1 of equal "
        "weight, and 90 % takes 20",
    ),
    "worth 20": (some_numbers(20, kind=ESTIMATED), None),
    "nothing in common": (
        rarely_labelled(kind=ESTIMATED),
        "Labelled and unlabelled rows have too little in common for 30 calibration labels to "
        "support 90 %",
    ),
    "a factor": (
        rarely_labelled(kind=ESTIMATED, factor=2.0),
        "30 calibration labels, worth 30 of equal weight, cannot support 90 % with odds that may "
        "be off by a factor of 2",
    ),
    "odds": (
        rarely_labelled(),
        "30 calibration labels, worth 30 of equal weight, cannot support 90 % with odds as "
        "different as these",
    ),
    "no group": (
        some_groups(0),
        "Too few groups have labels to hold some out and guarantee 90 %: it takes 13",
    ),
    "8 groups": (some_groups(8), "8 calibration groups cannot support 90 %: it takes 9"),
    "9 groups": (some_groups(9), None),
    "9 groups, a factor": (
        some_groups(9, factor=2.0),
        "9 calibration groups cannot support 90 %: it takes 36",
    ),
    "no label, by class": (
        some_classes(0, 0),
        "20 labels are too few to hold some out and guarantee 90 %: it takes 13",
    ),
    "both classes": (
        some_classes(8, 8),
        "No class has the 9 calibration labels that 90 % takes",
    ),
    "one class": (some_classes(9, 8), None),
    "chosen by class": (
        some_classes(8, 8, kind=CLASSES),
        "No class has the 13 labels that 90 % takes within it",
    ),
    "one class, chosen": (some_classes(9, 8, kind=CLASSES), None),
    "no label, chosen": (
        some_classes(0, 0, kind=CLASSES),
        "No class has the 13 labels that 90 % takes within it",
    ),
    "shares": (
        replace(
            some_classes(4, 4, kind=CLASSES, shares=np.array([0.5, 0.5])),
            by_class=False,
        ),
        "The 8 calibration labels are too few of each class for 90 % with these shares of the "
        "classes",
    ),
    "categories": (in_categories(8, 8), "No category has the 13 labels that 90 % takes"),
    "one category": (in_categories(9, 8), None),
}


@pytest.mark.parametrize("case", REASONS)
def test_why_nothing_is_ruled_out(case):
    """A sentence for each reason, just below the number that it takes, and none at that number."""
    table, reason = REASONS[case]
    assert explain(table, 0.9) == reason
    warning = warn_of_shortfall(table, 0.9)
    if reason is None and case not in ("one class", "one class, chosen"):
        assert warning is None
    elif reason is not None and "class" not in case:
        everything = "interval is the whole line" if table.classes is None else "set is all classes"
        assert warning == f"{reason}. Every {everything}."


@pytest.mark.parametrize("kind", ["equal", CLASSES])
@pytest.mark.parametrize(
    ("n_no", "n_yes", "short"),
    [
        (9, 8, "8 calibration labels of class 'yes' support at most 8/9 = 0.8889: 90 % takes 9; "
               "that class is in every set."),
        (1, 12, "1 calibration label of class 'no' supports at most 1/2 = 0.5: 90 % takes 9; that "
                "class is in every set."),
        (1, 0, "0 calibration labels of class 'yes' support no level: 90 % takes 9; that class "
               "(and 1 more that has too few) is in every set."),
        (7, 8, "7 calibration labels of class 'no' support at most 7/8 = 0.875: 90 % takes 9; that "
               "class (and 1 more that has too few) is in every set."),
        (9, 9, None),
    ],
)  # fmt: skip
def test_a_class_with_too_few_labels_is_named(kind, n_no, n_yes, short):
    table = some_classes(n_no, n_yes)
    table = replace(table, weights=replace(table.weights, kind=kind))
    assert warn_of_shortfall(table, 0.9) == short


def test_what_estimated_odds_rest_on():
    rows = [0.0] * 40
    told = numbers(rows, rows, [0.0], weights=Weights.equal(40, 1, kind=ESTIMATED))
    assert "all labels weigh the same" not in " ".join(told.guarantee(0.8, 0.9).reasons)
    same = numbers(
        rows, rows, [0.0], weights=Weights.equal(40, 1).resting_on(assumption=words.ESTIMATE)
    )
    assert "all labels weigh the same" in " ".join(same.guarantee(0.8, 0.9).reasons)
    assert same.guarantee(0.8, 0.9).kind == "approximate"
    assert numbers(rows, rows, [0.0]).guarantee(0.8, 0.9).kind == "exact"


def test_the_largest_groups():
    assert largest_share([1, 1, 1, 1], 0.5) == pytest.approx(0.5)
    assert largest_share([5, 1, 1, 1], 0.25) == pytest.approx(5 / 8)
    assert largest_share([5, 1, 1, 1], 0.5) == pytest.approx(6 / 8)


# ------------------------------------------------------------------------------------------ values in their sets


def test_a_value_is_in_its_set_and_unusual_where_no_class_was_possible():
    sets = np.array([[False, False], [True, False], [False, False], [True, True]])
    status = np.array(["answered", "answered", "tied", "answered"])
    answer = Answer(
        np.arange(4),
        np.array(["no", "yes", "yes", "no"]),
        status,
        Guarantee("none"),
        label_sets=sets,
        classes=NO_YES,
    )
    held = holding_values(answer)
    assert held.label_sets.tolist() == [[True, False], [True, True], [False, True], [True, True]]
    assert held.status.tolist() == ["unusual", "answered", "tied", "answered"]
    assert not sets[0].any()  # what was given is as it was


def test_values_of_another_fit_bring_their_own_confidence():
    p = np.array([[0.9, 0.2], [0.3, 0.6], [0.1, 0.4]])
    answer = Answer(
        np.arange(3),
        np.array(["no", "yes", "yes"]),
        np.array(["answered"] * 3),
        Guarantee("none"),
        label_sets=p > 0.25,
        p_values=p,
        classes=NO_YES,
    )
    values = np.array(["yes", "no", None], dtype=object)
    status = np.array(["answered", "answered", "unreached"])
    found = with_values(answer, values, status, None, None)
    np.testing.assert_allclose(found.credibility, [0.2, 0.3, 0.4])
    np.testing.assert_allclose(found.confidence, [1 - 0.9, 1 - 0.6, 1 - 0.1])
    assert found.label_sets.tolist() == [[True, True], [True, True], [False, True]]
    np.testing.assert_allclose(confidence_in(np.array([0, 1, 1]), p), [0.8, 0.7, 0.9])
    unseen = np.array([0.5, 0.0, 0.95])
    np.testing.assert_allclose(confidence_in(np.array([0, 1, 1]), p, unseen), [0.5, 0.7, 0.05])
    plain = replace(answer, p_values=None, label_sets=None)
    assert with_values(plain, values, status, None, None).confidence is None


def test_a_value_is_in_its_interval_unless_there_is_none():
    regions = Regions.from_intervals([[0, 1], [2, 3]])
    answer = Answer(
        np.arange(2),
        np.array([5.0, 9.0]),
        np.array(["answered", "unreached"]),
        Guarantee("none"),
        regions=regions,
    )
    assert holding_values(answer).regions == Regions.from_intervals([[0, 5], [2, 3]])


def test_rows_that_no_fit_saw_tie_with_equal_ones():
    """A row as strange as all calibration rows has the p-value 1, whatever it is."""
    calibration = reply(np.zeros(4))
    scoring = Scoring("absolute", 1.0, 0.0, ())
    table = table_outside(calibration, scoring, np.zeros(3), np.ones(4), None, Weights.equal(4, 0))
    assert table.sizes == (7,)
    row = replace(
        table,
        unlabelled=reply(np.zeros(1)),
        ties=(table.ties[0], np.zeros(1)),
        weights=replace(table.weights, unlabelled=np.ones(1)),
    )
    (_, _, ranks), *_ = row.comparisons
    assert ranks.p_values(np.ones(1)).tolist() == [1.0]
    assert ranks.p_values(np.full(1, 2.0)).tolist() == [0.2]


# ------------------------------------------------------------------------------------------ small fits


def small_fit(estimator, y, **settings):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(len(y), 1))
    return ConformalTransducer(
        estimator, random_state=0, test_exchangeability=False, **settings
    ).fit(X, y)


def fit_numbers(**settings):
    y = np.where(np.arange(60) < 40, np.arange(60.0) % 7, np.nan)
    return small_fit(Ridge(), y, calibration=19, confidence=0.9, **settings)


def fit_classes(**settings):
    y = np.array([NO_YES[row % 2] if row < 40 else None for row in range(60)], dtype=object)
    return small_fit(LogisticRegression(), y, calibration=19, confidence=0.9, **settings)


def test_labels_that_are_not_held_out_are_shown():
    fit = fit_numbers()._fit
    held_out = fit.problem.numbers[fit.held_out]
    assert len(held_out) == 19
    np.testing.assert_array_equal(
        np.sort(np.append(fit.shown, held_out)), np.sort(fit.problem.numbers)
    )
    assert len(fit.shown) == 21
    assert not fit._answer(0.9).diagnostics["transductive"]


def test_what_is_guaranteed_of_a_fit():
    numbers_ = fit_numbers(tolerance=2.0)._fit.guarantee(0.9)
    assert numbers_.kind == "exact"
    assert numbers_.tolerance == 2.0
    assert numbers_.remedy == ()
    fit = fit_classes()._fit
    of_classes = fit.guarantee(0.9)
    assert of_classes.wrong is not None
    assert of_classes.wrong_by_class == fit.table.wrong_by_class(fit.second, 0.95)
    assert fit_numbers()._fit.guarantee(0.99).kind == "none"


def test_rows_to_label_are_named_where_an_estimate_bears_nothing():
    fit = fit_numbers()._fit
    assert fit._rows_to_label(0.9) == ()
    weights = replace(fit.table.weights, kind=ESTIMATED)
    estimated = replace(fit, table=replace(fit.table, weights=weights))
    rows = estimated._rows_to_label(0.9)
    assert len(rows) == 20  # as `transduce draw` draws, of the 20 that there are
    assert set(rows) <= set(range(40, 60))


def test_widths_if_the_odds_of_a_label_are_off():
    fit = fit_numbers()._fit
    width, n_whole = fit.width(0.9, 1.0)
    assert width == pytest.approx(float(np.median(fit._answer(0.9).regions.measure())))
    assert n_whole == 0
    assert fit.width(0.9, 9.0) == (np.inf, 20)
    of_classes = fit_classes()._fit
    sizes = of_classes._answer(0.9).label_sets.sum(axis=1)
    assert of_classes.width(0.9, 1.0) == (float(np.mean(sizes)), int((sizes == 2).sum()))
    assert of_classes.width(0.9, 9.0) == (2.0, 20)


def test_rows_drawn_without_a_label_outside_of_a_fit():
    fit = fit_numbers()._fit
    rng = np.random.default_rng(1)
    X, labels, empty = rng.normal(size=(9, 1)), np.arange(9.0), rng.normal(size=(3, 1))
    inside = fit.problem.X
    for drawn, number in ((None, 0), (empty[:0], 0), (empty, 3)):
        outside = calibrate_outside(fit.first, inside, fit.shown, X, labels, empty=drawn)
        assert outside.table.n_empty == number
        assert outside.table.sizes == (21 + 9,)
    assert outside.beside(5).guarantee(0.5, 0.9).n_empty == 3
    law = outside.beside(1000).law(0.5)
    assert (law.n_unlabelled, law.n_calibration) == (1000, 12)


# ------------------------------------------------------------------------------------------ picking rows


def goal_of(table, **what):
    usual = {"above": None, "below": None, "tolerance": None, "label": None, "correct": False}
    return read_goal(table, **usual | what)


def test_rows_are_looked_at_by_their_distance_in_units_of_their_spread():
    spreads = np.array([1.0, 4.0])
    table = numbers(
        [1.0, 5.0],
        [2.0, 3.0],
        [3.0, 3.0],
        scoring=Scoring("scaled", 1.0, 0.0, ()),
        calibration=reply(np.array([1.0, 5.0]), spreads=spreads),
    )
    table = replace(table, unlabelled=reply(np.array([3.0, 3.0]), spreads=spreads))
    mistake, unlabelled, calibration, good = goal_of(table, above=2.0)
    assert mistake == "label is not above 2"
    np.testing.assert_allclose(unlabelled, [1.0, 0.25])
    np.testing.assert_allclose(calibration, [-1.0, 0.75])
    assert good.tolist() == [False, True]  # 2 is not above 2
    assert goal_of(table, tolerance=1.0).met.tolist() == [True, False]  # off by 1 and by 2
    assert goal_of(table, below=3.0).met.tolist() == [True, False]
    _, unlabelled, calibration, good = goal_of(table, above=2.0, below=6.0)
    np.testing.assert_allclose(unlabelled, [1.0, 0.25])  # the nearer end is 1 away
    np.testing.assert_allclose(calibration, [-1.0, 0.25])
    assert good.tolist() == [False, True]


def test_rows_of_one_class_are_looked_at_by_its_score():
    table = classes([0, 1], [0, 0], [1, 0, 1])
    mistake, unlabelled, calibration, good = goal_of(table, label="no")
    assert mistake == "class is not 'no'"
    assert unlabelled.tolist() == [-1.0, 0.0, -1.0]
    assert calibration.tolist() == [0.0, -1.0]
    assert good.tolist() == [True, True]
    assert goal_of(table, label="yes").met.tolist() == [False, False]
    with pytest.raises(ValueError, match="none of the classes"):
        goal_of(table, label="perhaps")


@pytest.mark.parametrize(
    ("of_classes", "what", "said"),
    [
        (False, {}, "Say what to pick"),
        (False, {"above": 1.0, "tolerance": 1.0}, "Say what to pick"),
        (True, {"label": "no", "correct": True}, "Say what to pick"),
        (False, {"above": 1.0, "label": "no"}, "Say what to pick"),
        (False, {"above": np.nan}, "above must be a number"),
        (False, {"tolerance": -1.0}, "tolerance must be a positive number"),
        (False, {"correct": 1}, "correct must be True or False"),
        (False, {"correct": True}, "for classes"),
        (False, {"label": "no"}, "for classes"),
        (True, {"above": 1.0}, "for numbers"),
        (True, {"tolerance": 1.0}, "for numbers"),
    ],
)
def test_exactly_one_thing_is_picked_and_it_suits_the_labels(of_classes, what, said):
    table = classes([0], [0], [0]) if of_classes else numbers([1.0], [1.0], [1.0])
    with pytest.raises(ValueError, match=said):
        goal_of(table, **what)


def test_how_unsure_answers_of_three_classes_are():
    """A row is as unsure as the score of its answer; one without an answer has no class of its own."""
    scores = np.array([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3], [0.2, 0.2, 0.6]])
    table = classes(
        [0, 1, 2],
        [0, 1, 2],
        [1, 0, -1],
        classes=np.array(["a", "b", "c"]),
        sizes=(5, 5, 5),
        scoring=Scoring("probability", 1.0, 0.0, (True,) * 3),
        calibration=reply([0, 1, 2], probabilities=scores),
    )
    table = replace(table, unlabelled=reply([1, 0, -1], lost=[2], probabilities=scores))
    _, unlabelled, calibration, _ = goal_of(table, correct=True)
    np.testing.assert_allclose(unlabelled[:2], [-0.4, -0.5])
    np.testing.assert_allclose(calibration, [-0.9, -0.8, -0.4])


def test_rows_picked_carry_the_names_that_they_have():
    nothing = Guarantee("none", about="selection")
    rows, values = np.array([4, 7]), np.array([1.0, 2.0])
    picked = Selection(rows, values, np.array([0.1, 0.2]), nothing)
    assert picked.to_frame().index.tolist() == [4, 7]
    name_values = replace(picked, index=pd.Index(["a", "b"]))
    assert name_values.to_frame().index.tolist() == ["a", "b"]


def test_rows_without_an_answer_or_a_label_are_not_picked():
    known = [1] * 8
    table = classes(known, known, [1, 1, 1, 1])
    answer = Answer(np.arange(4), NO_YES[[1] * 4], np.array(["answered"] * 4), Guarantee("none"))
    all_alike = select_rows(table, answer, goal_of(table, correct=True), 0.2)
    np.testing.assert_allclose(all_alike.p_values, 1 / 9)
    assert len(all_alike) == 4
    assert all_alike.guarantee.kind == "exact"
    lost = replace(table, unlabelled=reply([1, 1, 1, 1], lost=[0]))
    found = select_rows(lost, answer, goal_of(lost, correct=True), 0.2)
    assert found.p_values[0] == 1.0
    assert found.rows.tolist() == [1, 2, 3]
    drawn = replace(table.weights, empty=np.array([True, False, False, False]))
    empty = replace(table, weights=drawn)
    found = select_rows(empty, answer, goal_of(empty, correct=True), 0.3)
    # The row drawn without a label counts as a mistake that looks as good as the others.
    np.testing.assert_allclose(found.p_values, [1.0, 0.2, 0.2, 0.2])
    judged = found.judged.p_values(0.5)
    np.testing.assert_allclose(judged, [1.0, 0.2, 0.2, 0.2])


def test_what_is_guaranteed_of_rows_picked():
    known = [1]
    one = classes(known, known, [1])
    answer = Answer(np.arange(1), NO_YES[[1]], np.array(["answered"]), Guarantee("none"))
    assert select_rows(one, answer, goal_of(one, correct=True), 0.5).guarantee.kind == "exact"
    none = replace(one, calibration=reply([1], lost=[0]))
    assert select_rows(none, answer, goal_of(none, correct=True), 0.5).guarantee.kind == "none"
    estimated = replace(one, weights=one.weights.resting_on(assumption=words.ESTIMATE))
    found = select_rows(estimated, answer, goal_of(estimated, correct=True), 0.5)
    assert found.guarantee.kind == "approximate"


def test_an_answer_off_by_exactly_the_tolerance_is_trusted():
    judged = Judged(
        np.array([1.0, np.inf]),
        np.array([4.0, 4.0]),
        (np.array([1.0, 1.0]), np.array([2.0, 4.0]), np.array([0.5, 1.0])),
    )
    assert judged.p_values(0.5).tolist() == [2 / 3, 1.0]
    assert judged.p_values(1.0).tolist() == [1 / 3, 1.0]
    assert judged.p_values(0.25, relative=True).tolist() == [1 / 3, 1.0]
    assert judged.p_values(0.2, relative=True).tolist() == [2 / 3, 1.0]


def test_an_answer_of_zero_is_no_part_of_itself_that_can_be_trusted():
    """Relative to 0 nothing is small: 0 / 0 must not count as the surest of all."""
    judged = Judged(
        np.array([0.0, 1.0]),
        np.array([0.0, 10.0]),
        (np.array([1.0, 1.0]), np.array([2.0, 4.0]), np.array([9.0, 9.0])),
    )
    np.testing.assert_allclose(judged.p_values(0.1, relative=True), [1.0, 1 / 3])


def test_looks_must_be_comparable():
    looks, good = np.array([0.1, 0.2]), np.array([True, False])
    for unlabelled, hidden, wanted in (
        (np.array([np.nan]), looks, good),
        (np.array([np.nan, 0.5]), looks, good),
        (looks, np.array([np.nan, 1.0]), good),
        (looks, looks[:1], good),
        (looks, looks, np.array([0.5, 1.0])),
        (looks[:, None], looks, good),
    ):
        with pytest.raises(ValueError, match=r"number|good"):
            selection_p_values(unlabelled, hidden, wanted)
    assert selection_p_values([0.3], [0.1, 0.2], [True, False]).tolist() == [1 / 3]
    assert pick(np.empty(0), 0.1).shape == (0,)
