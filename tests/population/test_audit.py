"""Audits of predictions made elsewhere, against enumeration of every truth and every draw."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.stats import hypergeom

from transduce.population import audit_classes, audit_numbers
from transduce.population.checks import whole_parts

PREDICTIONS = ["a"] * 3 + ["b"] * 4


def every_truth(n_rows):
    yield from itertools.product("ab", repeat=n_rows)


def missed(n_drawn, statement, certainty, strata=None):
    """Return the largest share of draws, over all truths, in which a statement is false."""
    n_rows = len(PREDICTIONS)
    worst = 0.0
    for truth in every_truth(n_rows):
        cells = np.array(truth, dtype=object)
        draws = list(every_draw(n_rows, n_drawn, strata))
        false = 0
        for drawn in draws:
            audit = audit_of_draw(drawn, tuple(cells[list(drawn)]), strata is not None, certainty)
            false += not statement(audit, cells, drawn)
        worst = max(worst, false / len(draws))
    return worst


@cache
def audit_of_draw(drawn, labels, by_class, certainty):
    known = np.full(len(PREDICTIONS), None, dtype=object)
    known[list(drawn)] = labels
    strata = PREDICTIONS if by_class else None
    return audit_classes(known, PREDICTIONS, certainty=certainty, strata=strata)


def every_draw(n_rows, n_drawn, strata):
    if strata is None:
        yield from itertools.combinations(range(n_rows), n_drawn)
        return
    parts = [
        itertools.combinations(np.flatnonzero(strata == name).tolist(), number)
        for name, number in n_drawn.items()
    ]
    for draw in itertools.product(*parts):
        yield tuple(itertools.chain(*draw))


def share_is_inside(audit, truth, drawn):
    line = audit.shares.loc["a"]
    return line["lower"] - 1e-12 <= np.mean(truth == "a") <= line["upper"] + 1e-12


def wrong_are_bounded(audit, truth, drawn):
    unchecked = np.setdiff1d(np.arange(len(truth)), drawn)
    predicted = np.array(PREDICTIONS)
    n_wrong = np.sum(truth[unchecked] != predicted[unchecked])
    return n_wrong <= audit.wrong["at_most"].iloc[0]


class TestExact:
    @pytest.mark.parametrize("statement", [share_is_inside, wrong_are_bounded])
    def test_no_truth_is_missed_too_often_by_a_simple_draw(self, statement):
        assert missed(3, statement, 0.7) <= 0.3 + 1e-9

    @pytest.mark.parametrize("statement", [share_is_inside, wrong_are_bounded])
    def test_no_truth_is_missed_too_often_by_a_draw_from_each_class(self, statement):
        strata = np.array(PREDICTIONS)
        drawn = {"a": 2, "b": 2}
        assert missed(drawn, statement, 0.7, strata) <= 0.3 + 1e-9

    def test_a_statement_that_is_too_bold_would_be_found(self):
        """The same with a bound that is lower by one is missed too often."""

        def bolder(audit, truth, drawn):
            unchecked = np.setdiff1d(np.arange(len(truth)), drawn)
            n_wrong = np.sum(truth[unchecked] != np.array(PREDICTIONS)[unchecked])
            return n_wrong <= audit.wrong["at_most"].iloc[0] - 1

        assert missed(3, bolder, 0.7) > 0.3

    def test_numbers_off_by_more_than_a_tolerance_are_wrong_classes(self):
        truth = np.array([1.0, 2.0, 3.0, 4.0, np.nan, np.nan, np.nan])
        predictions = np.array([1.1, 2.0, 9.0, 4.0, 5.0, 6.0, np.nan])
        numbers = audit_numbers(truth, predictions, tolerance=0.2)
        labels = np.array(["ok", "ok", "off", "ok", None, None, None], dtype=object)
        classes = audit_classes(labels, ["ok"] * 7)
        assert numbers.wrong.equals(classes.wrong)

    def test_how_far_numbers_are_off_in_a_group_is_told_by_its_own_rows(self):
        predictions = np.zeros(80)
        region = np.repeat(["near", "far"], 40)
        truth = np.where(np.arange(80) % 2, np.where(region == "near", 0.1, 9.0), np.nan)
        numbers = audit_numbers(truth, predictions, tolerance=1.0, by=region)
        for name in ("near", "far"):
            inside = region == name
            alone = audit_numbers(truth[inside], predictions[inside], tolerance=1.0)
            assert numbers.group_off_by[name] == alone.off_by
        assert numbers.off_by == 9.0


class TestLaws:
    def test_names_of_classes_and_row_order_change_nothing(self):
        generator = np.random.default_rng(0)
        predictions = generator.choice(["x", "y", "z"], 300).astype(object)
        truth = np.where(generator.random(300) < 0.9, predictions, "x").astype(object)
        truth[60:] = None
        order = generator.permutation(300)
        plain = audit_classes(truth, predictions)
        shuffled = audit_classes(truth[order], predictions[order])
        assert plain.shares.equals(shuffled.shares)
        assert plain.confusion.equals(shuffled.confusion)

    def test_better_predictions_give_a_narrower_interval(self):
        generator = np.random.default_rng(1)
        truth = np.where(generator.random(4000) < 0.3, "yes", "no").astype(object)
        widths = []
        for accuracy in (0.6, 0.99):
            right = generator.random(4000) < accuracy
            other = np.where(truth == "yes", "no", "yes")
            predictions = np.where(right, truth, other)
            known = np.where(np.arange(4000) < 200, truth, None)
            line = audit_classes(known, predictions).shares.loc["yes"]
            widths.append(line["upper"] - line["lower"])
            alone = line["labels_alone_upper"] - line["labels_alone_lower"]
            assert widths[-1] <= 1.05 * alone
        assert widths[1] < 0.5 * widths[0]


class TestLimits:
    def test_everything_checked_is_known(self):
        audit = audit_classes(["a", "b", "a"], ["a", "a", "a"])
        assert audit.wrong[["n_wrong", "n_unchecked", "at_most"]].iloc[0].tolist() == [1, 0, 0]
        assert audit.shares.loc["b", ["lower", "upper"]].tolist() == [1 / 3, 1 / 3]

    def test_rows_checked_on_purpose_are_known_and_say_nothing_of_others(self):
        truth = np.array(["a"] * 20 + [None] * 80, dtype=object)
        predictions = np.array(["b"] * 10 + ["a"] * 90, dtype=object)
        drawn = (np.arange(100) >= 10) & (np.arange(100) < 20)
        line = audit_classes(truth, predictions, drawn=drawn).wrong.iloc[0]
        assert line["n_wrong"] == 10
        alone = audit_classes(truth[10:], predictions[10:]).wrong.iloc[0]
        assert line["at_most"] == alone["at_most"]

    def test_a_drawn_row_that_nobody_could_answer_counts_against_every_statement(self):
        truth = np.array(["a"] * 19 + [None] * 81, dtype=object)
        drawn = np.arange(100) < 20
        audit = audit_classes(truth, ["a"] * 100, drawn=drawn)
        as_wrong = audit_classes([*truth[:19], "b", *[None] * 80], ["a"] * 100)
        assert audit.wrong["at_most"].iloc[0] == as_wrong.wrong["at_most"].iloc[0] + 1
        assert audit.shares.loc["a", "lower"] == as_wrong.shares.loc["a", "lower"]
        assert audit.shares.loc["a", "upper"] == 1.0

    def test_a_missing_prediction_is_wrong(self):
        audit = audit_classes(["a", "a", None, None], ["a", None, "a", None])
        assert audit.wrong["n_wrong"].iloc[0] == 1
        assert "(no prediction)" in audit.by_prediction.index
        assert "(no prediction)" not in audit.shares.index

    def test_groups_without_a_check_may_be_anything(self):
        truth = ["a", "b", None, None]
        audit = audit_classes(truth, ["a"] * 4, by=["p", "p", "q", "q"])
        assert audit.wrong.loc["q", "at_most"] == 2
        assert audit.group_shares["q"].loc["a", ["lower", "upper"]].tolist() == [0.0, 1.0]

    def test_more_checks_are_expected_to_say_more(self):
        truth = np.array(["a"] * 19 + ["b"] + [None] * 980, dtype=object)
        audit = audit_classes(truth, ["a"] * 1000)
        shares = audit.forecast([50, 100, 300])["share"]
        now = audit.wrong["at_most"].iloc[0] / 980
        assert now > shares.iloc[0] > shares.iloc[1] > shares.iloc[2]


class TestRowsCheckedAfterTheDraw:
    """Somebody draws 5 of 14 rows, checks them, and then checks others because of what they are."""

    N_ROWS = 14
    N_DRAWN = 5

    def audit_after(self, n_wrong, n_drawn_wrong, chosen, n_chosen, *, drawn_from):
        truth = np.array(["b"] * n_wrong + ["a"] * (self.N_ROWS - n_wrong), dtype=object)
        drawn = np.zeros(self.N_ROWS, dtype=bool)
        drawn[:n_drawn_wrong] = True
        drawn[n_wrong : n_wrong + self.N_DRAWN - n_drawn_wrong] = True
        known = np.where(drawn, truth, None)
        later = np.flatnonzero(~drawn & (truth == chosen))[:n_chosen]
        known[later] = truth[later]
        could_be_drawn = np.ones(self.N_ROWS, dtype=bool) if drawn_from else None
        audit = audit_classes(
            known, ["a"] * self.N_ROWS, drawn=drawn, drawn_from=could_be_drawn, certainty=0.8
        )
        return audit, truth, known

    def missed(self, statement, **how):
        """Return the largest probability, over all numbers of wrong rows, of a false statement."""
        worst = 0.0
        for n_wrong in range(self.N_ROWS + 1):
            chance = hypergeom(self.N_ROWS, n_wrong, self.N_DRAWN)
            false = 0.0
            for n_drawn_wrong in range(self.N_DRAWN + 1):
                probability = float(chance.pmf(n_drawn_wrong))
                if probability > 0.0:
                    false += probability * (
                        not statement(*self.audit_after(n_wrong, n_drawn_wrong, **how))
                    )
            worst = max(worst, false)
        return worst

    @staticmethod
    def bound_holds(audit, truth, known):
        left = pd.isna(known)
        return np.sum(left & (truth == "b")) <= audit.wrong["at_most"].iloc[0] <= np.sum(left)

    @staticmethod
    def share_holds(audit, truth, known):
        if "b" not in audit.shares.index:
            return True
        line = audit.shares.loc["b"]
        return line["lower"] - 1e-12 <= np.mean(truth == "b") <= line["upper"] + 1e-12

    @pytest.mark.parametrize("chosen", ["a", "b"])
    @pytest.mark.parametrize("n_chosen", [0, 2, 6])
    def test_statements_hold_whatever_was_chosen(self, chosen, n_chosen):
        how = {"chosen": chosen, "n_chosen": n_chosen, "drawn_from": True}
        assert self.missed(self.bound_holds, **how) <= 0.2 + 1e-12
        assert self.missed(self.share_holds, **how) <= 0.2 + 1e-12

    def test_a_draw_does_not_speak_for_what_others_left(self):
        how = {"chosen": "a", "n_chosen": 6, "drawn_from": False}
        assert self.missed(self.bound_holds, **how) > 0.2

    def test_rows_that_could_not_be_drawn_may_all_be_wrong(self):
        truth = np.array(["a"] * 20 + [None] * 80, dtype=object)
        audit = audit_classes(
            truth, ["a"] * 100, drawn=np.arange(100) < 20, drawn_from=np.arange(100) < 70
        )
        alone = audit_classes(truth[:70], ["a"] * 70)
        assert audit.wrong["at_most"].iloc[0] == alone.wrong["at_most"].iloc[0] + 30
        assert audit.wrong["estimate"].iloc[0] == 0.0
        lower = alone.shares.loc["a", "lower"] * 70
        assert audit.shares.loc["a", "lower"] * 100 == pytest.approx(lower)
        assert audit.shares.loc["a", "upper"] == 1.0

    def test_a_row_that_was_drawn_could_be_drawn(self):
        with pytest.raises(ValueError, match="at every drawn row"):
            audit_classes(["a", None], ["a", "b"], drawn_from=[False, True])


class TestManyClasses:
    def test_a_class_may_be_called_as_a_missing_prediction_is(self):
        truth = ["(no prediction)", "a", None, None]
        audit = audit_classes(truth, ["(no prediction)", None, "a", "a"])
        assert audit.wrong["n_wrong"].iloc[0] == 1
        assert "(no prediction)" in audit.shares.index
        assert "((no prediction))" in audit.by_prediction.index

    def test_the_most_frequent_ones_have_lines_and_all_count(self):
        texts = [f"text {row}" for row in range(3000)]
        predictions = np.array(["often"] * 1000 + texts, dtype=object)
        truth = np.where(np.arange(4000) % 40 == 0, predictions, None)
        audit = audit_classes(truth, predictions, most_classes=5)
        assert audit.wrong[["n_checked", "n_wrong"]].iloc[0].tolist() == [100, 0]
        assert len(audit.shares) == len(audit.by_prediction) == 5
        assert "often" in audit.shares.index


class TestRefusals:
    def test_nothing_checked(self):
        with pytest.raises(ValueError, match="No row was checked"):
            audit_classes([None, None], ["a", "b"])

    def test_lengths_differ(self):
        with pytest.raises(ValueError, match="predictions must have a value for each"):
            audit_classes(["a", None], ["a"])

    def test_marks_that_are_no_marks(self):
        with pytest.raises(ValueError, match="drawn must be True or False"):
            audit_classes(["a", None], ["a", "b"], drawn=[1, 0])

    def test_no_checked_row_was_drawn(self):
        with pytest.raises(ValueError, match="None of the checked rows was drawn"):
            audit_classes(["a", None], ["a", "b"], drawn=[False, True])

    def test_a_negative_tolerance(self):
        with pytest.raises(ValueError, match="must not be negative"):
            audit_numbers([1.0, np.nan], [1.0, 2.0], tolerance=-1.0)


def test_a_forecast_adds_as_many_wrong_rows_as_the_rate_gives_in_all_strata_together():
    """Rounded in each stratum, few errors in many strata would vanish from the forecast."""
    strata = np.repeat(np.arange(6), 400)
    truth = np.full(2400, None, dtype=object)
    for stratum in range(6):
        truth[400 * stratum : 400 * stratum + 30] = "a"
        truth[400 * stratum] = "b"
    audit = audit_classes(truth, ["a"] * 2400, strata=strata)
    then = audit.rows.count_strata(audit.rows.wrong, doubtful=True).after_more_checks(60)
    assert sum(part.n_marked for part in then.strata) == 6 + 60 * 6 // 180
    assert sum(part.n_drawn for part in then.strata) == 180 + 60
    shares = audit.forecast([60, 120, 240, 480])["share"]
    assert np.all(np.diff(shares) < 0)


def test_whole_parts_have_the_rounded_sum():
    assert whole_parts([0.3, 0.4, 0.3]) == [0, 1, 0]
    assert whole_parts([1.9, 0.9, 0.2]) == [2, 1, 0]
    assert whole_parts([]) == []
