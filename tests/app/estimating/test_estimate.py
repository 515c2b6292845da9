"""Questions about a whole column, asked of a result: all of them, all designs, and refusals."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from transduce import fill, population
from transduce.app.estimating.answers import answer_questions
from transduce.app.estimating.groups import read_groups
from transduce.app.estimating.questions import read_question
from transduce.app.estimating.words import plan_sentence
from transduce.app.filling.predicted import predict_fit
from transduce.conformal import ByClass, Chance, Drawn, Estimated, Grouped, Sampled

COLUMNS = [
    *("estimate", "lower", "upper", "kind", "n_labels", "labels_alone"),
    *("labels_alone_lower", "labels_alone_upper", "worth", "labels_for_half", "note"),
]


def make_table(n=300, n_labels=90, seed=0, chosen=None):
    """Return a table with a number and a class to fill, and the truth of both."""
    rng = np.random.default_rng(seed)
    size = rng.normal(50.0, 10.0, n)
    region = rng.choice(["north", "south", "west"], n)
    price = 2.0 * size + 10.0 * (region == "north") + rng.normal(0.0, 5.0, n)
    sold = np.where(price + rng.normal(0.0, 10.0, n) > 105.0, "yes", "no")
    labelled = rng.permutation(n) < n_labels if chosen is None else chosen
    frame = pd.DataFrame({"size": size, "region": region, "visit": np.arange(n) // 3})
    frame["drawn"] = labelled & (np.arange(n) % 10 > 0)  # others were labelled on purpose
    frame["probability"] = n_labels / n
    frame["price"] = np.where(labelled, price, np.nan)
    frame["sold"] = np.where(labelled, sold, None)
    return frame, price, sold


FEATURES = ("size", "region")


def filled(target, labels=None, **table):
    """Return a table that was filled by ridge regression, or logistic regression for classes."""
    frame, price, sold = make_table(**table)
    keep = [*FEATURES, target]
    if labels is not None:
        keep += [name for name in labels.columns if name not in keep]
    method = "ridge"
    if target == "sold":
        from sklearn.linear_model import LogisticRegression

        method = LogisticRegression()
    truth = price if target == "price" else sold
    return fill(frame[keep], target, method=method, labels=labels), truth, frame


@cache
def prices():
    return filled("price")


@cache
def sales():
    return filled("sold")


class TestExact:
    def test_an_estimate_is_that_of_the_science(self):
        result, _, frame = prices()
        column = result.predicted_column
        expected = population.estimate_mean(frame["price"], column.predictions, by=frame["region"])
        assert not column.refitted  # one method is fitted in folds
        found = result.estimate("mean", by="region")
        pd.testing.assert_frame_equal(
            found.drop(columns="note"),
            expected,
            check_names=False,
            check_exact=True,
        )
        assert found.columns.tolist() == COLUMNS

    def test_no_prediction_saw_the_label_of_its_row(self):
        """Another label of one row, in the same fold, leaves its own prediction as it was."""
        result, _, _ = prices()
        fit = result.fit
        row = int(np.flatnonzero(~fit.target.missing)[0])
        labels = fit.target.labels.copy()
        labels[row] += 1e-3
        changed = replace(fit, target=replace(fit.target, labels=labels))
        before = predict_fit(fit, 0).values
        after = predict_fit(changed, 0).values
        assert np.abs(after - before).max() > 1e-7  # others saw it
        assert after[row] == pytest.approx(before[row], abs=1e-10)

    def test_unlabelled_rows_are_predicted_by_the_fit_that_predicts_held_out_ones(self):
        """By a fit of all labels the held-out ones would count twice, and move estimates more."""
        frame, _, _ = make_table(n=120, n_labels=50)
        result = fill(frame[[*FEATURES, "price"]], "price", guarantee="column")
        calibrated = result.fit.model.held_out_fit
        predictions = predict_fit(result.fit, 0).values
        unlabelled = calibrated.problem.sample.unlabelled
        held_out = np.sort(calibrated.problem.rows[calibrated.held_out])
        np.testing.assert_array_equal(predictions[unlabelled], calibrated.table.unlabelled.values)
        np.testing.assert_array_equal(predictions[held_out], calibrated.table.calibration.values)
        beside_a_fit_to_all = predict_fit(result.fit, 0).without_held_out()
        np.testing.assert_array_equal(np.flatnonzero(np.isnan(beside_a_fit_to_all)), held_out)

    @pytest.mark.parametrize(
        ("what", "truth"),
        [
            ("mean", lambda y: y.mean()),
            ("total", lambda y: y.sum()),
            ("median", lambda y: np.sort(y)[149]),
            ("share above 100", lambda y: (y > 100).mean()),
            ("share between 80 and 100", lambda y: ((y > 80) & (y < 100)).mean()),
        ],
    )
    def test_the_interval_holds_and_is_narrower_than_that_of_labels_alone(self, what, truth):
        result, price, _ = prices()
        line = result.estimate(what).iloc[0]
        assert line["lower"] <= truth(price) <= line["upper"]
        width = line["upper"] - line["lower"]
        assert width <= line["labels_alone_upper"] - line["labels_alone_lower"] + 1e-12

    def test_good_predictions_are_worth_labels(self):
        """Never more than there are rows: with all of them labelled nothing is left to estimate."""
        result, _, frame = prices()
        line = result.estimate().iloc[0]
        assert 2.5 * line["n_labels"] < line["worth"] < len(frame)

    def test_a_slope_is_that_of_all_rows(self):
        result, price, frame = prices()
        line = result.estimate("slope of size").loc["size"]
        slope = np.polyfit(frame["size"], price, 1)[0]
        assert line["lower"] <= slope <= line["upper"]

    def test_the_column_may_be_the_predictor(self):
        result, price, frame = prices()
        line = result.estimate("slope", outcome="size").loc["price"]
        slope = np.polyfit(price, frame["size"], 1)[0]
        assert line["lower"] <= slope <= line["upper"]

    def test_shares_of_all_classes(self):
        result, sold, _ = sales()
        frame = result.estimate("share")
        assert sorted(frame.index) == ["no", "yes"]
        assert frame["estimate"].sum() == pytest.approx(1.0)
        share = (sold == "yes").mean()
        assert frame.loc["yes", "lower"] <= share <= frame.loc["yes", "upper"]
        by_region = result.estimate("share", by="region")
        assert by_region.loc[("yes", "north"), "kind"] == "approximate"

    def test_a_class_may_be_named_in_other_capitals(self):
        result = sales()[0]
        found = result.estimate("share of YES")
        assert found["upper"].tolist() == result.estimate("share of yes")["upper"].tolist()

    def test_classes_may_be_compared_and_regressed(self):
        result = sales()[0]
        found = result.estimate("difference north, south", by="region")
        assert found.index.tolist() == ["north - south"]
        assert result.estimate("slope of size").loc["size", "estimate"] > 0.0

    def test_several_questions_and_a_joint_level(self):
        result = prices()[0]
        each = result.estimate(["mean", "share above 100"], by="region")
        joint = result.estimate(["mean", "share above 100"], by="region", joint=True)
        assert len(each) == 6
        assert (joint["upper"] - joint["lower"] > each["upper"] - each["lower"]).all()
        alone = result.estimate("mean", by="region", level=1.0 - 0.05 / 6)
        found = joint.xs("mean of price", level="what")
        assert found["upper"].tolist() == pytest.approx(alone["upper"].tolist())


class TestRefused:
    def test_what_limits_leave_open_is_a_line_beside_what_can_be_answered(self):
        frame, price, _ = make_table()
        texts = np.where(price < 80.0, "<80", np.round(price, 2).astype(str))
        frame["price"] = np.where(frame["price"].isna(), None, texts)
        result = fill(frame[["size", "price"]], "price", method="ridge")
        asked = ["mean", "share above 100", "median"]
        found = result.estimate(asked)
        refused = found.iloc[0]
        assert refused["kind"] == "none"
        assert np.isnan(refused["estimate"])
        assert (refused["lower"], refused["upper"]) == (-np.inf, np.inf)
        assert "detection limits" in refused["note"]
        for place, question in enumerate(asked[1:], start=1):
            alone = result.estimate(question).iloc[0]
            pd.testing.assert_series_equal(found.iloc[place], alone, check_names=False)
        joint = result.estimate(asked, joint=True)
        at_half = result.estimate("median", level=0.975).iloc[0]  # of the two that are answered
        assert joint.iloc[2]["lower"] == at_half["lower"]
        with pytest.raises(ValueError, match="detection limits"):
            result.estimate(["mean", "total"])


class TestGroups:
    def test_numbers_are_cut_at_their_quartiles(self):
        groups = prices()[0].estimate("mean", by="size").index.tolist()
        assert len(groups) == 4
        assert groups[0].startswith("up to")
        assert groups[-1].startswith("above")

    @pytest.mark.parametrize("written", ["%Y-%m-%d", "%d.%m.%Y", None])
    def test_dates_are_cut_at_their_quartiles(self, written):
        """At dates that the column holds, written as it writes them; a missing one is a group."""
        days = pd.Series(pd.date_range("2024-01-01", periods=40).repeat(2))
        days[:4] = pd.NaT
        column = days if written is None else days.dt.strftime(written)
        groups = read_groups(pd.DataFrame({"day": column}), "day")
        ends = [pd.Timestamp(f"2024-01-{day}") for day in (12, 21, 31)]
        shown = [f"{end:{written or '%Y-%m-%d'}}" for end in ends]
        assert groups.names == [
            f"up to {shown[0]}",
            f"{shown[0]} to {shown[1]}",
            f"{shown[1]} to {shown[2]}",
            f"above {shown[2]}",
            "(missing)",
        ]
        expected = np.searchsorted(ends, days[4:]).tolist()
        assert [groups.names.index(name) for name in groups.of_rows[4:]] == expected

    def test_a_slope_on_dates_is_that_on_their_days(self):
        frame, price, _ = make_table()
        days = np.arange(300) % 97
        frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(days, unit="D")
        result = fill(frame[["size", "day", "price"]], "price", method="ridge")
        line = result.estimate("slope of day").loc["day (days)"]
        assert line["lower"] <= np.polyfit(days, price, 1)[0] <= line["upper"]

    def test_differences_from_all_others(self):
        found = prices()[0].estimate("difference", by="region")
        assert found.index.tolist() == [
            f"{name} - the others" for name in ("north", "south", "west")
        ]

    def test_a_group_without_a_value_is_a_group(self):
        frame, _, _ = make_table()
        frame["kind"] = frame["region"].mask(frame["region"] == "west", None)
        result = fill(frame[["size", "kind", "price"]], "price", method="ridge")
        assert result.estimate("mean", by="kind").index.tolist() == ["north", "south", "(missing)"]

    def test_groups_are_merged_as_the_note_says(self):
        frame, _, _ = make_table()
        shouted = frame["region"] == "north"
        shouted &= np.arange(len(frame)) % 7 == 0
        frame["region"] = frame["region"].mask(shouted, "NORTH ")
        table = frame[["size", "region", "price"]]
        merged = fill(table, "price", method="ridge")
        assert any("'NORTH ' (" in note or "'NORTH' (" in note for note in merged.notes)
        lines = merged.estimate("mean", by="region")
        assert lines.index.tolist() == ["north", "south", "west"]
        in_one_spelling = prices()[0].estimate("mean", by="region")
        assert lines["n_labels"].tolist() == in_one_spelling["n_labels"].tolist()
        pair = merged.estimate("difference NORTH, South", by="region")
        assert pair.index.tolist() == ["north - south"]
        slopes = merged.estimate("slope of region")
        assert "region = NORTH" not in " ".join(map(str, slopes.index))
        apart = fill(table, "price", method="ridge", case_sensitive=True)
        names = apart.estimate("mean", by="region").index.tolist()
        assert sorted(name.strip() for name in names) == ["NORTH", "north", "south", "west"]

    def test_blank_texts_and_the_bare_word_above_are_groups(self):
        names = ["above", " ", "", "above 3", "up to 1", "10 up", "7 up", None]
        groups = read_groups(pd.DataFrame({"group": names}), "group")
        ordered = ["up to 1", "above 3", "7 up", "10 up", "", " ", "above", "(missing)"]
        assert groups.names == ordered
        assert groups.named_at(np.arange(8) > 4) == ["7 up", "10 up", "(missing)"]


ALL_ROWS = np.ones(300, dtype=bool)


class TestDesigns:
    @pytest.mark.parametrize(
        ("design", "condition"),
        [
            (Chance(), "labelled at random, and"),
            (Chance(within="region"), "at random within each category"),
            (Chance(sensitivity=1.5), "at random, up to a factor of 1.5 either way in the odds"),
            (Drawn("drawn"), "drawn at random"),
            (Sampled("probability"), "with the probability given"),
            (Estimated(), "depends on the other columns alone, about as was estimated"),
        ],
    )
    def test_means(self, design, condition):
        result, price, _ = filled("price", design)
        line = result.estimate("mean").iloc[0]
        assert line["kind"] == "approximate"
        assert condition in result.predicted_column.assumption
        assert line["lower"] <= price.mean() <= line["upper"]

    def test_drawn_rows_teach_each_other(self):
        """Predictions came from the few labels that were chosen on purpose, and helped nothing."""
        frame, price, _ = make_table(n=400)
        rng = np.random.default_rng(3)
        drawn = rng.permutation(400) < 80
        known = drawn | (price > np.sort(price)[-10])
        table = frame[["size", "region"]].assign(drawn=drawn, price=np.where(known, price, np.nan))
        result = fill(table, "price", method="ridge", labels=Drawn("drawn"))
        line = result.estimate("mean").iloc[0]
        assert line["n_labels"] == 80
        assert line["worth"] > 2.5 * 80

    def test_drawn_rows_teach_each_other_in_a_blend(self):
        """The fit that they are held out from saw the ten largest prices alone."""
        frame, price, _ = make_table(n=200)
        drawn = np.random.default_rng(3).permutation(200) < 50
        known = drawn | (price > np.sort(price)[-10])
        table = frame[["size", "region"]].assign(drawn=drawn, price=np.where(known, price, np.nan))
        line = fill(table, "price", labels=Drawn("drawn")).estimate("mean").iloc[0]
        assert line["lower"] <= price.mean() <= line["upper"]
        assert line["worth"] > 2.0 * line["n_labels"]

    def test_a_sensitivity_widens(self):
        plain = filled("price", Chance())[0].estimate().iloc[0]
        wide = filled("price", Chance(sensitivity=2.0))[0].estimate().iloc[0]
        assert wide["upper"] - wide["lower"] > plain["upper"] - plain["lower"]

    def test_a_difference_that_was_found_is_what_estimates_rest_on(self):
        """It was said that rows were labelled at random, though their odds were estimated."""
        frame, _, _ = make_table()
        chosen = frame["size"].to_numpy() + np.tile([12.0, -12.0], 150) > 52.0
        column = filled("price", chosen=chosen)[0].predicted_column
        assert "about as was estimated" in column.assumption

    def test_groups_are_the_units(self):
        chosen = np.isin(np.arange(300) // 3, np.random.default_rng(1).permutation(100)[:30])
        result, price, _ = filled("price", Grouped("visit"), chosen=chosen)
        line = result.estimate("mean").iloc[0]
        assert line["n_labels"] == 90
        assert line["lower"] <= price.mean() <= line["upper"]

    def test_rows_drawn_without_a_label_are_named(self):
        frame, _, _ = make_table()
        empty = np.flatnonzero(frame["price"].isna())[:5]
        frame.loc[empty, "drawn"] = True
        result = fill(
            frame[["size", "drawn", "price"]], "price", method="ridge", labels=Drawn("drawn")
        )
        line = result.estimate("mean").iloc[0]
        assert line["kind"] == "none"
        assert "5 rows were drawn" in line["note"]
        share = result.estimate("share above 100").iloc[0]
        assert share["kind"] == "exact"

    def test_labels_by_class_tell_shares_alone(self):
        _, _, sold = make_table()
        rng = np.random.default_rng(2)
        chosen = np.zeros(300, dtype=bool)
        for name in ("yes", "no"):
            chosen[rng.choice(np.flatnonzero(sold == name), 40, replace=False)] = True
        result, _, _ = filled("sold", ByClass(), chosen=chosen)
        found = result.estimate("share of yes").iloc[0]
        assert found["lower"] <= (sold == "yes").mean() <= found["upper"]
        with pytest.raises(ValueError, match="chosen by their class"):
            result.estimate("share of yes", by="region")

    def test_an_order_is_refused(self):
        frame, _, _ = make_table()
        frame["day"] = np.arange(300)
        result = fill(
            frame[["size", "day", "price"]], "price", method="ridge", labels=Chance(order="day")
        )
        with pytest.raises(ValueError, match="stop along an order"):
            result.estimate("mean")


class TestRefusals:
    @pytest.mark.parametrize(
        ("what", "how", "message"),
        [
            ("variance", {}, "Ask for mean"),
            (7, {}, "a list of them"),
            ("mean", {"by": "nothing"}, "no column 'nothing'"),
            ("mean", {"level": 2.0}, "strictly between 0 and 1"),
            ("share", {}, "Say which rows count"),
            ("share of yes", {}, "holds numbers"),
            ("share above tall", {}, "A limit is a number"),
            ("quantile 7", {}, "lies between 0 and 1"),
            ("quantile 0", {}, "smallest and the largest value"),
            ("quantile 1.0", {}, "smallest and the largest value"),
            ("mean", {"of": "size"}, "stands alone"),
            ("mean", {"by": ["region", "size"]}, "Name one column"),
            ("mean", {"by": "price"}, "group by another column"),
            ("difference", {"by": "price"}, "group by another column"),
            ("difference", {}, "by which column"),
            ("difference a, b", {"by": "region"}, "No row is of the group 'a'"),
            ("difference a", {"by": "region"}, "two groups"),
            ("slope", {}, "needs a column"),
            ("slope of nothing", {}, "no column 'nothing'"),
            ("slope of price", {}, "one side of the regression already"),
            ("slope", {"outcome": "price"}, "one side of the regression already"),
            ("mean of size", {}, "stands alone"),
            ("mean", {"outcome": "size"}, "for a regression"),
        ],
    )
    def test_a_question_that_cannot_be_answered(self, what, how, message):
        with pytest.raises(ValueError, match=message):
            prices()[0].estimate(what, **how)

    def test_a_regression_on_a_column_that_does_not_vary(self):
        frame, _, _ = make_table()
        frame = frame[["size", "price"]].assign(kind="same", name=[f"n{k}" for k in range(300)])
        result = fill(frame, "price", method="ridge", ignore=["kind", "name"])
        with pytest.raises(ValueError, match="one value only"):
            result.estimate("slope of kind")
        with pytest.raises(ValueError, match="300 different values that are no numbers"):
            result.estimate("slope of name")

    @pytest.mark.parametrize("what", ["mean", "share of maybe", "share above 3"])
    def test_a_question_that_does_not_suit_classes(self, what):
        with pytest.raises(ValueError, match=r"holds classes|No label is"):
            sales()[0].estimate(what)


def test_classes_that_a_column_tells_apart_have_no_slope():
    frame, _, _ = make_table()
    is_large = frame["size"] > 50.0
    frame["sold"] = is_large.map({True: "yes", False: "no"}).where(frame["sold"].notna())
    result = fill(frame[["size", "sold"]], "sold", method="ridge")
    line = result.estimate("slope of size").loc["size"]
    assert line["kind"] == "none"
    assert "no slope is finite" in line["note"]


class TestPlanning:
    def plan_of(self, result, *questions):
        column = result.predicted_column
        asked = [read_question(text, by=by) for text, by in questions]
        return plan_sentence(column, answer_questions(column, asked))

    def test_of_the_mean_and_of_each_group(self):
        result = prices()[0]
        plan = self.plan_of(result, ("mean", None), ("mean", "region"))
        line = result.estimate("mean").iloc[0]
        more = line["labels_for_half"] - line["n_labels"]
        assert f"mean of price, label about {more} more rows" in plan
        groups = result.estimate("mean", by="region")
        by_group = (groups["labels_for_half"] - groups["n_labels"]).sort_values(ascending=False)
        named = ", ".join(f"{count} of “{name}”" for name, count in by_group.items())
        assert plan.endswith(
            f"by region, label about this many more rows inside each group: {named}."
        )

    def test_groups_that_take_the_same_are_named_once(self):
        plan = self.plan_of(prices()[0], ("mean", "region"), ("total", "region"))
        assert "for the mean of price and total of price by region" in plan
        assert plan.count("“north”") == 1

    def test_of_a_share(self):
        plan = self.plan_of(sales()[0], ("share of yes", None))
        assert "share of rows with sold = yes, label about" in plan

    def test_a_regression_is_planned_by_its_slope(self):
        assert "(size)" in self.plan_of(prices()[0], ("slope of size", None))


class TestLimits:
    def test_few_labels(self):
        result = filled("price", n_labels=4)[0]
        line = result.estimate("mean").iloc[0]
        assert "Labels alone" in line["note"]

    def test_labels_that_are_far_out_are_told(self):
        frame, _, _ = make_table(n_labels=40)
        far = int(np.flatnonzero(frame["price"].notna())[0])
        plain = fill(frame[["size", "price"]], "price", method="ridge")
        frame.loc[far, "price"] = 1e5
        skewed = fill(frame[["size", "price"]], "price", method="ridge")
        assert "miss more often than it says" in skewed.estimate("mean")["note"].iloc[0]
        assert "miss more often" not in skewed.estimate("median")["note"].iloc[0]
        assert "miss more often" not in plain.estimate("mean")["note"].iloc[0]

    def test_tails_of_errors_that_hardly_count_are_not_told(self):
        """Where predictions are all but right, intervals are as wide as unseen rows make them."""
        rng = np.random.default_rng(1)
        size = rng.normal(size=300)
        price = np.where(np.arange(300) < 70, 2.0 * size, np.nan)
        result = fill(pd.DataFrame({"size": size, "price": price}), "price", method="ridge")
        assert result.estimate("mean")["note"].iloc[0] == ""

    def test_rows_likely_to_be_far_out_are_named(self):
        """A tail of very large numbers, and groups of few labels: the largest predictions."""
        rng = np.random.default_rng(1)
        size = np.exp(1.6 * rng.normal(size=300))
        price = size * np.exp(0.5 * rng.normal(size=300))
        labelled = rng.permutation(300) < 60
        table = pd.DataFrame({"size": size, "price": np.where(labelled, price, np.nan)})
        table["group"] = np.where(np.arange(300) % 4 == 0, "few", "many")
        result = fill(table, "price", method="ridge")
        lines = result.estimate("mean", by="group")
        inside = table["price"].isna() & (table["group"] == "few")
        predicted = np.where(inside, result.predicted_column.predictions, -np.inf)
        assert f"such as row {np.argmax(predicted) + 1}," in lines.loc["few", "note"]
        assert "far out" not in lines.loc["many", "note"]

    def test_a_prediction_far_out_is_named(self):
        """Predictions that somebody gave, one of them with a wrong decimal sign."""
        frame, price, _ = make_table(n=120, n_labels=40)
        row = int(np.flatnonzero(frame["price"].isna())[3])
        given = price + np.sin(np.arange(120))
        given[row] *= 1000.0
        table = frame[["price"]].assign(given=given)
        line = fill(table, "price", method="ridge", predictions="given").estimate("mean").iloc[0]
        assert line["kind"] == "none"
        assert f"check row {row + 1}, or label it" in line["note"]

    def test_an_end_that_is_missing_is_told(self):
        line = prices()[0].estimate("quantile 0.999").iloc[0]
        assert (line["kind"], line["upper"]) == ("approximate", np.inf)
        assert "no upper end" in line["note"]

    def test_a_row_that_decides_a_logistic_slope_is_named(self):
        frame, price, _ = make_table()
        row = int(np.flatnonzero(frame["price"].isna())[0])
        sold = np.where(price + np.resize([40.0, -40.0], len(price)) > 100.0, "yes", "no")
        frame["sold"] = pd.Series(sold).where(frame["price"].notna())
        # Its own column, which predictions of the others hardly follow.
        frame["noise"] = np.sin(np.arange(len(frame)))
        frame.loc[row, "noise"] = 15.0
        result = fill(frame.drop(columns="price"), "sold", method="ridge")
        line = result.estimate("slope of noise").loc["noise"]
        assert line["kind"] == "none"
        assert f"row {row + 1}" in line["note"]

    def test_a_row_that_decides_is_named(self):
        frame, _, _ = make_table()
        row = int(np.flatnonzero(frame["price"].isna())[0])
        frame.loc[row, "size"] = 5000.0
        result = fill(frame[["size", "region", "price"]], "price", method="ridge")
        line = result.estimate("slope of size").loc["size"]
        assert line["kind"] == "none"
        assert f"row {row + 1}" in line["note"]

    def test_dates_come_back_as_dates(self):
        frame, price, _ = make_table()
        days = pd.Timestamp("2020-01-01") + pd.to_timedelta(price.round(), unit="D")
        frame["price"] = pd.Series(days).where(frame["price"].notna())
        result = fill(frame[["size", "region", "price"]], "price", method="ridge")
        line = result.estimate("mean").iloc[0]
        assert line["lower"] < pd.Series(days).mean() < line["upper"]
        share = result.estimate("share above 2020-04-10").iloc[0]
        assert 0.0 < share["estimate"] < 1.0
        draws = result.draws(3)
        known = frame["price"].notna()
        assert (draws.dtypes == frame["price"].dtype).all()
        assert (draws[known].eq(frame["price"][known], axis=0)).all(axis=None)
        assert draws[~known].nunique(axis=1).gt(1).any()


class TestDraws:
    def test_labels_stay_and_draws_vary_as_much_as_the_truth(self):
        result, price, frame = prices()
        draws = result.draws(30)
        known = frame["price"].notna().to_numpy()
        assert (draws[known].nunique(axis=1) == 1).all()
        assert np.allclose(draws.loc[known, 0], frame["price"][known])
        filled_spread = result.frame["price_filled"][~known].std()
        assert draws[~known].std().mean() > filled_spread
        assert draws.mean().mean() == pytest.approx(price.mean(), abs=2.0)

    def test_classes(self):
        draws = sales()[0].draws(5)
        assert set(draws.to_numpy().ravel()) == {"yes", "no"}
        with pytest.raises(ValueError, match="whole number"):
            sales()[0].draws(0)


class TestSelection:
    def test_rows_are_those_of_the_table(self):
        frame, price, _ = make_table(400, 200)
        result = fill(
            frame[["size", "region", "price"]], "price", method="ridge", guarantee="column"
        )
        picked = result.select(above=90.0, false_discovery=0.2)
        assert frame["price"].isna().to_numpy()[picked.rows].all()
        assert (price[picked.rows] > 90.0).mean() > 0.7
        assert np.corrcoef(picked.values, price[picked.rows])[0, 1] > 0.8
        assert np.all(np.diff(picked.rows) > 0)

    def test_labels_must_be_held_out(self):
        with pytest.raises(ValueError, match="guarantee='column'"):
            prices()[0].select(above=1.0)
