"""`audit` and `transduce audit`: reading, joining, two people, statements, JSON and the page."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from transduce import audit
from transduce.app.auditing.page import render_audit
from transduce.app.cli.app import app
from transduce.population import audit_classes


@pytest.fixture
def judged():
    """400 rows, labelled by a model that is right in nine of ten cases; 80 were checked."""
    generator = np.random.default_rng(0)
    truth = np.where(generator.random(400) < 0.3, "spam", "ham").astype(object)
    right = generator.random(400) < 0.9
    other = np.where(truth == "spam", "ham", "spam")
    frame = pd.DataFrame(
        {
            "id": [f"r{row}" for row in range(400)],
            "length": generator.normal(size=400),
            "region": generator.choice(["north", "süd"], 400),
            "llm": np.where(right, truth, other),
            "gold": np.where(np.arange(400) < 80, truth, None),
        }
    )
    return frame.sample(frac=1.0, random_state=1).reset_index(drop=True)


class TestReading:
    def test_numbers_are_those_of_the_science(self, judged):
        result = audit(judged, "gold", "llm", by="region")
        plain = audit_classes(judged["gold"], judged["llm"])
        assert result.shares.equals(plain.shares)
        assert result.wrong.equals(plain.wrong.iloc[0])

    def test_groups_that_differ_in_capitals_are_one(self, judged):
        region = np.where(np.arange(len(judged)) % 9 == 0, "NORTH", "north")
        table = judged.assign(region=region)
        result = audit(table, "gold", "llm", by="region")
        assert list(result.as_json()["by"]["region"]) == ["north"]
        assert any(note.startswith("Groups of 'region' that differ") for note in result.notes)
        apart = audit(table, "gold", "llm", by="region", case_sensitive=True)
        assert sorted(apart.as_json()["by"]["region"]) == ["NORTH", "north"]

    def test_spellings_of_classes_are_one_in_both_columns(self, judged):
        shouted = judged.assign(gold=judged["gold"].str.upper(), llm=judged["llm"] + " ")
        result = audit(shouted, "gold", "llm")
        assert result.wrong.equals(audit(judged, "gold", "llm").wrong)
        assert any("taken as the same" in note for note in result.notes)
        strict = audit(shouted, "gold", "llm", case_sensitive=True)
        assert strict.wrong["n_wrong"] == strict.wrong["n_checked"]

    def test_whole_numbers_with_gaps_are_the_same_classes(self):
        frame = pd.DataFrame({"llm": [1, 0] * 30, "gold": [1.0, 0.0] * 10 + [np.nan] * 40})
        assert audit(frame, "gold", "llm").wrong["n_wrong"] == 0

    @pytest.mark.parametrize(
        ("predicted", "found"),
        [
            ([True, False], [1.0, 0.0]),
            ([True, False], ["1", "0"]),
            ([True, False], ["1.0", "0.0"]),
            (["true", "FALSE"], [1, 0]),
            ([1, 0], [True, False]),
            ([1, 0], ["1.0", "0.0"]),
            (["2.0", "1.0"], [2.0, 1.0]),
        ],
    )
    @pytest.mark.parametrize("case_sensitive", [True, False])
    def test_codes_of_one_class_are_one(self, predicted, found, case_sensitive):
        places = np.arange(60) % 2
        table = pd.DataFrame({"llm": np.array(predicted, dtype=object)[places]})
        table["gold"] = pd.Series(np.array(found, dtype=object)[places]).where(table.index < 30)
        result = audit(table, "gold", "llm", suspects=0, case_sensitive=case_sensitive)
        assert result.wrong["n_wrong"] == 0
        assert len(result.shares) == 2

    def test_whole_numbers_with_a_point_stay_as_they_are_among_others(self):
        table = pd.DataFrame(
            {"llm": ["1.0", "1.1"] * 20, "gold": ["1.0", "1.1"] * 10 + [None] * 20}
        )
        assert list(audit(table, "gold", "llm", suspects=0).shares.index) == ["1.0", "1.1"]

    def test_probabilities_one_column_a_class(self, judged):
        spam = np.where(judged["llm"] == "spam", 0.8, 0.1)
        frame = judged.drop(columns="llm").assign(**{"p-spam": spam, "p-ham": 1.0 - spam})
        result = audit(frame, "gold", ["p-spam", "p-ham"])
        assert result.wrong.equals(audit(judged, "gold", "llm").wrong)

    def test_fields_inside_objects_are_named_with_dots(self, judged):
        nested = judged.assign(output=[{"label": label} for label in judged["llm"]])
        result = audit(nested.drop(columns="llm"), "gold", "output.label")
        assert result.wrong.equals(audit(judged, "gold", "llm").wrong)
        with pytest.raises(ValueError, match=r"no column 'output\.score'\. .* 'output\.label'"):
            audit(nested, "gold", "output.score")

    @pytest.mark.parametrize(
        ("cell", "message"),
        [({"a": {"label": "x"}}, "such as 'output.a.label'"), (["x", "y"], "holds lists")],
    )
    def test_whole_objects_are_no_predictions(self, judged, cell, message):
        nested = judged.assign(output=[cell] * 400)
        with pytest.raises(ValueError, match=message):
            audit(nested, "gold", "output")

    def test_rows_that_the_predictor_has_seen_say_nothing(self, judged):
        seen = judged["gold"].notna() & (np.arange(400) < 200)
        result = audit(judged.assign(shots=seen), "gold", "llm", seen="shots")
        others = judged[~seen]
        alone = audit_classes(others["gold"], others["llm"])
        assert result.wrong["at_most"] == alone.wrong["at_most"].iloc[0]

    def test_rows_checked_after_the_draw_do_not_leave_what_it_speaks_for(self, judged):
        drawn = judged["gold"].notna()
        frame = judged.assign(gold_random=drawn, gold_random_probability=0.2)
        plain = audit(frame, "gold", "llm", suspects=0)
        right = (~drawn).to_numpy() & (np.arange(400) < 200)  # chosen because they are right
        later = frame.assign(gold=frame["gold"].where(~right, frame["llm"]))
        result = audit(later, "gold", "llm", suspects=0)
        assert result.wrong["at_most"] == plain.wrong["at_most"]

    def test_the_mean_of_numbers_rests_on_the_draw_alone(self):
        """Whatever was checked besides, because it looked wrong."""
        random = np.random.default_rng(0)
        frame = pd.DataFrame({"llm": random.normal(size=300)})
        truth = frame["llm"] + 0.3 * random.normal(size=300)
        drawn = np.arange(300) % 6 == 0
        frame = frame.assign(
            gold=truth.where(drawn), gold_random=drawn, gold_random_probability=0.2
        )
        off = np.flatnonzero(~drawn & (truth - frame["llm"] > 0.4))
        more = frame.assign(gold=truth.where(drawn | np.isin(np.arange(300), off)))
        plain = audit(frame, "gold", "llm", tolerance=0.5, suspects=0)
        result = audit(more, "gold", "llm", tolerance=0.5, suspects=0)
        ends = ["estimate", "lower", "upper", "n_labels"]
        assert result.mean[ends].equals(plain.mean[ends])

    def test_rows_added_after_the_draw_may_all_be_wrong(self, judged):
        frame = judged.assign(gold_random=judged["gold"].notna(), gold_random_probability=0.2)
        new = frame.assign(gold=None, gold_random=None, gold_random_probability=np.nan)
        longer = audit(pd.concat([frame, new.head(50)]), "gold", "llm", suspects=0)
        plain = audit(frame, "gold", "llm", suspects=0)
        assert longer.wrong["at_most"] == plain.wrong["at_most"] + 50
        assert any("50 rows without a check could not be drawn" in note for note in longer.notes)

    def test_an_accent_is_the_same_however_it_was_written(self, judged):
        composed = judged.assign(llm=judged["llm"].replace("spam", "caf\u00e9"))
        composed["gold"] = judged["gold"].replace("spam", "cafe\u0301")
        result = audit(composed, "gold", "llm", suspects=0)
        assert result.wrong.equals(audit(judged, "gold", "llm", suspects=0).wrong)

    def test_columns_of_a_draw_are_found_by_their_names(self, judged):
        strata = judged["llm"]
        frame = judged.assign(gold_random=judged["gold"].notna(), gold_random_stratum=strata)
        result = audit(frame, "gold", "llm")
        plain = audit_classes(judged["gold"], judged["llm"], strata=strata)
        assert result.shares.equals(plain.shares)

    def test_a_group_may_be_called_all_rows(self, judged):
        region = np.where(judged["region"] == "north", "all rows", "south")
        result = audit(judged.assign(region=region), "gold", "llm", by="region")
        groups = result.as_json()["by"]["region"]
        sizes = [group["wrong"]["n_rows"] for group in groups.values()]
        assert sorted(sizes) == sorted(pd.Series(region).value_counts())
        assert result.audits["region"].wrong.iloc[0].equals(result.wrong)

    def test_one_column_of_probabilities_is_not_a_class(self, judged):
        doubtful = judged.assign(llm=np.linspace(0.0, 1.0, 400))
        with pytest.raises(ValueError, match="one column of probabilities for each class"):
            audit(doubtful, "gold", "llm")

    def test_classes_that_have_other_names_are_noted(self, judged):
        renamed = judged.assign(gold=judged["gold"].replace("spam", "junk"))
        notes = audit(renamed, "gold", "llm").notes
        assert any("'junk'" in note and "'spam'" in note for note in notes)
        assert audit(judged, "gold", "llm").notes == []

    def test_checks_that_were_all_seen_say_nothing(self, judged):
        with pytest.raises(ValueError, match="seen by the predictor"):
            audit(judged.assign(shots=judged["gold"].notna()), "gold", "llm", seen="shots")

    def test_numbers_need_a_tolerance(self):
        generator = np.random.default_rng(2)
        price = generator.normal(100.0, 10.0, 200)
        frame = pd.DataFrame(
            {"model": price, "paid": np.where(np.arange(200) < 40, price + 1, np.nan)}
        )
        with pytest.raises(ValueError, match="by how much one may be off"):
            audit(frame, "paid", "model")
        assert audit(frame, "paid", "model", tolerance=2.0).wrong["n_wrong"] == 0
        tight = audit(frame, "paid", "model", tolerance=0.5)
        assert tight.wrong["n_wrong"] == 40
        assert tight.mean["estimate"].iloc[0] == pytest.approx(price.mean() + 1)
        assert "off by more than 0.5" in tight.statement


class TestSecondFile:
    def test_checks_are_matched_by_an_identifier(self, judged):
        checks = judged.loc[judged["gold"].notna(), ["id", "gold"]].iloc[::-1]
        result = audit(judged.drop(columns="gold"), "gold", "llm", checks=checks, id="id")
        assert result.wrong.equals(audit(judged, "gold", "llm").wrong)

    def test_identifiers_that_do_not_match_are_told(self, judged):
        checks = pd.DataFrame({"id": ["r1", "r2", "nobody"], "gold": ["ham", "ham", "spam"]})
        result = audit(judged.drop(columns="gold"), "gold", "llm", checks=checks, id="id")
        assert any("1 check" in note and "nobody" in note for note in result.notes)
        assert result.wrong["n_checked"] == 2

    def test_an_empty_check_replaces_nothing_and_another_one_is_told(self, judged):
        frame = judged.set_axis(np.zeros(400, dtype=int))  # an index that repeats
        own = frame.loc[frame["gold"].notna().to_numpy(), ["id", "gold"]]
        checks = own.assign(gold=None).reset_index(drop=True)
        result = audit(frame, "gold", "llm", checks=checks, id="id")
        assert result.wrong.equals(audit(judged, "gold", "llm").wrong)
        checks.loc[:2, "gold"] = "other"
        result = audit(frame, "gold", "llm", checks=checks, id="id")
        assert any("3 checks differed" in note for note in result.notes)
        assert result.whole.confusion.query("true == 'other'")["n_found"].sum() == 3

    @pytest.mark.parametrize(
        ("ids", "message"),
        [
            (["r1", "r1"], "stands in several rows.*second"),
            (["x1", "x2"], "No 'id' of the checks is in the table"),
            (["r1", None], "has no 'id'"),
            ([], "checks has no rows"),
        ],
    )
    def test_identifiers_that_repeat_or_are_missing_are_refused(self, judged, ids, message):
        checks = pd.DataFrame({"id": ids, "gold": ["ham"] * len(ids)})
        with pytest.raises(ValueError, match=message):
            audit(judged.drop(columns="gold"), "gold", "llm", checks=checks, id="id")

    def test_identifiers_that_lost_their_zeros_are_matched_as_numbers(self, judged):
        frame = judged.assign(id=[f"{row:05d}" for row in range(400)])
        checks = frame.loc[frame["gold"].notna(), ["id", "gold"]]
        opened = checks.assign(id=checks["id"].astype(int))  # as a spreadsheet writes them
        unchecked = frame.drop(columns="gold")
        result = audit(unchecked, "gold", "llm", checks=opened, id="id", suspects=0)
        assert result.wrong.equals(audit(judged, "gold", "llm", suspects=0).wrong)
        assert any("Leading zeros of 'id'" in note for note in result.notes)
        plain = audit(unchecked, "gold", "llm", checks=checks, id="id", suspects=0)
        assert not any("zeros" in note for note in plain.notes)

    @pytest.mark.parametrize("written", [str, lambda number: f"{number}.0", float])
    def test_identifiers_may_be_written_as_numbers_are(self, judged, written):
        table = judged.drop(columns="gold").assign(id=np.arange(len(judged)))
        checks = judged[["gold"]].assign(id=[written(number) for number in range(len(judged))])
        result = audit(table, "gold", "llm", checks=checks, id="id", suspects=0)
        assert result.wrong.equals(audit(judged, "gold", "llm", suspects=0).wrong)

    def test_identifiers_that_only_zeros_tell_apart_are_not_matched_as_numbers(self, judged):
        frame = judged.drop(columns="gold").assign(id=["07", *map(str, range(7, 406))])
        checks = pd.DataFrame({"id": ["007", "8"], "gold": ["ham", "ham"]})
        result = audit(frame, "gold", "llm", checks=checks, id="id")
        assert result.wrong["n_checked"] == 1
        assert any("'007'" in note for note in result.notes)

    def test_fields_of_objects_match_too(self, judged):
        nested = pd.DataFrame(
            {
                "sample": [{"id": name} for name in judged["id"]],
                "output": [{"label": label} for label in judged["llm"]],
            }
        )
        checks = judged.loc[judged["gold"].notna(), ["id", "gold"]]
        reviews = pd.DataFrame(
            {
                "sample": [{"id": name} for name in checks["id"]],
                "review": [{"gold": label} for label in checks["gold"]],
            }
        )
        result = audit(nested, "review.gold", "output.label", checks=reviews, id="sample.id")
        assert result.wrong.equals(audit(judged, "gold", "llm").wrong)


class TestTwoPeople:
    def test_rows_at_which_they_differ_count_as_wrong(self, judged):
        second = judged["gold"].copy()
        right = np.flatnonzero(second.notna() & (judged["gold"] == judged["llm"]))
        second.iloc[right[:5]] = "unclear"
        both = audit(judged.assign(gold2=second), "gold", "llm", second="gold2")
        alone = audit(judged, "gold", "llm")
        assert both.agreement.n_differ == 5
        assert both.wrong["at_most"] > alone.wrong["at_most"]
        assert "differ at 5" in both.agreement.statement
        assert both.wrong["n_doubtful"] == 5
        assert "5 drawn rows without an agreed label are taken to be wrong" in both.statement

    def test_people_who_checked_other_rows_say_nothing_of_agreement(self, judged):
        second = judged["gold"].where(judged["gold"].isna(), None)
        second.iloc[int(np.flatnonzero(judged["gold"].isna())[0])] = "ham"
        both = audit(judged.assign(gold2=second), "gold", "llm", second="gold2")
        assert both.agreement.n_both == 0
        assert "No row was checked by both" in both.agreement.statement

    def test_numbers_of_two_people_are_hardly_ever_equal(self):
        predicted = np.arange(60.0)
        first = np.where(np.arange(60) < 30, predicted, np.nan)
        second = first + 0.1
        second[:3] += 2.0
        frame = pd.DataFrame({"model": predicted, "paid": first, "paid2": second})
        both = audit(frame, "paid", "model", second="paid2", tolerance=0.5)
        assert both.agreement.n_both == 30
        assert both.agreement.n_differ == both.wrong["n_doubtful"] == 3
        assert both.wrong["n_wrong"] == 0

    def test_a_prediction_that_one_of_them_finds_wrong_is_in_doubt(self):
        frame = pd.DataFrame({"model": [0.0] * 20, "paid": 0.45, "paid2": 0.55})
        some = frame.assign(paid2=frame["paid2"].where(frame.index < 5))
        both = audit(some, "paid", "model", second="paid2", tolerance=0.5)
        assert both.wrong["n_doubtful"] == both.agreement.n_differ == 5
        with pytest.raises(ValueError, match="agree at none of them"):
            audit(frame, "paid", "model", second="paid2", tolerance=0.5)


class TestSuspects:
    def test_rows_like_the_wrong_ones_are_named(self):
        generator = np.random.default_rng(3)
        x = generator.normal(size=600)
        truth = np.where(x > 0.5, "yes", "no")
        llm = np.where(x > 1.5, "yes", "no")
        gold = np.where(np.arange(600) % 4 == 0, truth, None)
        result = audit(pd.DataFrame({"x": x, "llm": llm, "gold": gold}), "gold", "llm", suspects=20)
        rows = result.suspect_rows["row"].to_numpy() - 1
        assert np.mean(truth[rows] != llm[rows]) > 0.9

    def test_a_predictor_that_knows_the_labels_is_suspected(self):
        generator = np.random.default_rng(4)
        x = generator.normal(size=(800, 2))
        truth = np.where(x[:, 0] > 0, "yes", "no")
        checked = np.arange(800) < 100
        noisy = np.where(generator.random(800) < 0.5, "yes", "no")
        frame = pd.DataFrame({"x": x[:, 0], "z": x[:, 1]})
        frame["gold"] = np.where(checked, truth, None)
        copied = audit(frame.assign(llm=np.where(checked, truth, noisy)), "gold", "llm")
        honest = audit(frame.assign(llm=truth), "gold", "llm")
        assert any("seems to have seen" in warning for warning in copied.warnings)
        assert all("with the option seen, or" in warning for warning in copied.warnings)
        assert honest.warnings == []


class TestCommand:
    def run(self, *arguments):
        return CliRunner().invoke(app, ["audit", *map(str, arguments)])

    def test_json_has_every_number(self, judged, tmp_path):
        table = tmp_path / "judged.jsonl"
        table.write_text(judged.to_json(orient="records", lines=True))
        out = tmp_path / "audit.json"
        done = self.run(
            table, "--target", "gold", "--predictions", "llm", "--by", "region", "--json", out
        )
        assert done.exit_code == 0, done.output
        content = json.loads(out.read_text())
        for shares in (content["shares"], content["by"]["region"]["süd"]["shares"]):
            assert {"estimate", "lower", "upper", "kind"} <= set(shares["spam"])
        for wrong in (content["wrong"], content["by"]["region"]["north"]["wrong"]):
            assert {"estimate", "at_most", "certainty"} <= set(wrong)
        assert content["wrong"]["at_most"] == audit(judged, "gold", "llm").wrong["at_most"]

    @pytest.mark.parametrize(("share", "code"), [("90%", 0), ("0.9", 0), ("1%", 3)])
    def test_a_claim_is_shown_or_not(self, judged, tmp_path, share, code):
        table = tmp_path / "judged.csv"
        judged.to_csv(table, index=False)
        done = self.run(
            table, "--target", "gold", "--predictions", "llm", "--at-most", share, "--suspects", 0
        )
        assert done.exit_code == code, done.output

    def test_where_every_row_was_checked_what_was_found_decides(self, judged, tmp_path):
        table = tmp_path / "judged.csv"
        judged.assign(gold=judged["llm"].where(judged.index % 10 > 0, "other")).to_csv(table)
        words = (table, "--target", "gold", "--predictions", "llm", "--suspects", 0, "--at-most")
        assert self.run(*words, "5%").exit_code == 3
        assert self.run(*words, "10%").exit_code == 0

    @pytest.mark.parametrize(
        "option", [("--at-most", "150%"), ("--at-most", "-3%"), ("--tolerance", "-1")]
    )
    def test_a_number_that_is_none_is_bad_usage(self, judged, tmp_path, option):
        table = tmp_path / "judged.csv"
        judged.to_csv(table, index=False)
        done = self.run(table, "--target", "gold", "--predictions", "llm", *option)
        assert done.exit_code == 2, done.output

    def test_a_column_that_is_not_there_is_named(self, judged, tmp_path):
        table = tmp_path / "judged.csv"
        judged.to_csv(table, index=False)
        done = self.run(table, "--target", "gold", "--predictions", "gpt")
        assert done.exit_code == 1  # not the code of a claim that is not shown
        assert "gpt" in done.output
        claim = ("--at-most", "90%")
        assert self.run(table, "--target", "gold", "--predictions", "gpt", *claim).exit_code == 1

    def test_nothing_checked_says_what_to_do(self, judged, tmp_path):
        table = tmp_path / "judged.csv"
        judged.assign(gold=None).to_csv(table, index=False)
        done = self.run(table, "--target", "gold", "--predictions", "llm")
        assert done.exit_code == 1
        assert "transduce draw" in done.output


class TestPage:
    def test_cells_are_escaped(self, judged):
        nasty = judged.assign(llm=judged["llm"].replace("spam", "<script>alert(1)</script>"))
        page = render_audit(audit(nasty, "gold", "llm", by="region"))
        assert "<script" not in page
        assert "&lt;script&gt;" in page

    def test_of_numbers_a_group_has_its_own_distance(self):
        frame = pd.DataFrame({"f": np.zeros(200), "part": ["a", "b"] * 100})
        frame["y"] = np.where(frame["part"] == "a", 1.0, 5.0) * np.where(
            frame.index < 100, 1, np.nan
        )
        content = audit(frame, "y", "f", by="part", tolerance=2).as_json()
        assert content["off_by"] == 5.0
        assert [content["by"]["part"][part]["off_by"] for part in "ab"] == [1.0, 5.0]

    def test_numbers_have_a_page_too(self):
        frame = pd.DataFrame({"f": np.arange(60.0), "y": [*np.arange(20.0), *[np.nan] * 40]})
        page = render_audit(audit(frame, "y", "f", tolerance=0.1, relative=True))
        assert re.search(r"mean of the true numbers", page)


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"predictions": "gold"}, "named as what was predicted and as what was checked"),
            ({"certainty": 1.0}, "certainty"),
            ({"tolerance": -1.0}, "must not be negative"),
            ({"relative": True}, "needs a tolerance"),
            ({"seen": ["region"]}, r"seen names one column; got \['region'\]"),
            ({"second": ["region"]}, "second names one column"),
            ({"checks": pd.DataFrame({"id": [1]}), "id": ["id"]}, "id names one column"),
            (
                {"checks": pd.DataFrame({"id": [1], "gold": ["spam"]})},
                "Name the column that both tables have in common",
            ),
        ],
    )
    def test_in_a_sentence(self, judged, changes, message):
        with pytest.raises(ValueError, match=message):
            audit(judged, "gold", **{"predictions": "llm", **changes})

    @pytest.mark.parametrize(
        ("question", "message"),
        [
            ({"second": "gold"}, "named as what both people found"),
            ({"by": "gold"}, "empty at unchecked rows"),
            ({"by": "text"}, "500 at most"),
        ],
    )
    def test_columns_that_cannot_be_meant(self, judged, question, message):
        frame = pd.concat([judged, judged]).assign(text=[f"text {row}" for row in range(800)])
        with pytest.raises(ValueError, match=message):
            audit(frame, "gold", "llm", **question)

    def test_a_single_column_of_probabilities(self, judged):
        doubtful = judged.assign(gold=(judged["gold"] == "spam").where(judged["gold"].notna()))
        doubtful["gold"] = doubtful["gold"].astype(float)
        with pytest.raises(ValueError, match="one column of probabilities for each class"):
            audit(doubtful.assign(llm=np.linspace(0.0, 1.0, 400)), "gold", "llm")

    def test_an_infinite_prediction_is_off(self):
        frame = pd.DataFrame({"model": [1.0, np.inf] * 30, "paid": [1.0] * 30 + [None] * 30})
        result = audit(frame, "paid", "model", tolerance=0.5)
        assert result.wrong["n_wrong"] == 15
        assert result.mean is None

    def test_an_empty_table(self):
        with pytest.raises(ValueError, match="no rows"):
            audit(pd.DataFrame({"gold": [], "llm": []}), "gold", "llm")


class TestTerminal:
    """What the terminal shows of the truth behind each prediction."""

    def table(self, result):
        return next(frame for title, frame in result.tables() if title.startswith("Truth"))

    def test_each_prediction_and_what_it_turned_out_to_be(self, judged):
        result = audit(judged, "gold", "llm", suspects=0)
        table = self.table(result)
        expected = pd.crosstab(judged["llm"], judged["gold"]).stack()
        found = table.set_index(["predicted", "true"])["found"]
        assert found.to_dict() == expected[expected > 0].to_dict()

    def test_of_many_classes_the_most_frequent_errors(self):
        random = np.random.default_rng(0)
        truth = random.integers(0, 25, 2000).astype(str)
        llm = np.where(random.random(2000) < 0.2, random.integers(0, 25, 2000).astype(str), truth)
        llm = np.where((truth == "7") & (np.arange(2000) % 2 == 0), "8", llm)
        gold = np.where(np.arange(2000) % 4 == 0, truth, None)
        result = audit(pd.DataFrame({"llm": llm, "gold": gold}), "gold", "llm", suspects=0)
        table = self.table(result)
        assert len(table) == 12
        assert table.iloc[0][["predicted", "true"]].tolist() == ["8", "7"]
        assert (table["predicted"] != table["true"]).all()


def test_checks_of_a_second_person_come_in_a_table_of_the_same_rows():
    table = pd.DataFrame({"text": list("abcd") * 5, "llm": ["yes", "no"] * 10})
    table["gold"] = table["llm"].where(table.index < 8)
    second = table[["text", "llm"]].assign(gold2=table["gold"].where(table.index != 3, "yes"))
    result = audit(table, "gold", "llm", second="gold2", checks=second)
    assert (result.agreement.n_both, result.agreement.n_differ) == (8, 1)
    with pytest.raises(ValueError, match="Name the column that both tables have in common"):
        audit(table, "gold", "llm", second="gold2", checks=second[::-1])
    with pytest.raises(ValueError, match="The table of checks has no column 'gold'"):
        audit(table, "gold", "llm", checks=second)
    # Rows of one prediction may be in another order, which nothing shows.
    with pytest.raises(ValueError, match="Name the column that both tables have in common"):
        audit(table, "gold", "llm", second="gold2", checks=second.drop(columns="text"))
    numbered = table.assign(text=[f"text {row}" for row in range(20)])
    fewer = second.assign(text=numbered["text"]).drop(columns="llm")
    assert audit(numbered, "gold", "llm", second="gold2", checks=fewer).agreement.n_both == 8


def test_a_group_without_a_name_is_called_alike_from_any_kind_of_table(tmp_path):
    table = pd.DataFrame({"llm": ["yes", "no"] * 10, "region": ["north", "", " ", None] * 5})
    table["gold"] = table["llm"].where(table.index < 8)
    table.to_csv(tmp_path / "judged.csv", index=False)
    for source in (table, tmp_path / "judged.csv"):
        groups = audit(source, "gold", "llm", by="region").as_json()["by"]["region"]
        assert set(groups) == {"north", "(empty)"}


def test_what_is_unusual_about_the_table_of_checks_is_told(tmp_path):
    """Which of its rows were left out, and why, is not seen in the number of matched checks."""
    table = pd.DataFrame({"id": [f"P{row}" for row in range(20)], "llm": ["yes", "no"] * 10})
    checks = table.iloc[:10].assign(gold=table["llm"], by="Ada")
    path = tmp_path / "checks.csv"
    path.write_text(checks.to_csv(index=False) + "Note: two rows are open,,,\n")
    notes = audit(table, "gold", "llm", checks=path, id="id").notes
    assert any(note.startswith("checks.csv: 1 row below the data") for note in notes)
    table.to_csv(tmp_path / "table.csv", index=False)
    words = [tmp_path / "table.csv", "--target", "gold", "--checks", path, "--id", "id"]
    result = CliRunner().invoke(app, ["fill", *map(str, words)])
    assert "checks.csv: 1 row below the data" in " ".join(result.output.split())


def checked_by_class(n_checked):
    """A table in which class b is wrong more often, and so many rows of each class were checked."""
    predictions = np.repeat(["a", "b"], 300)
    truth = np.full(600, None, dtype=object)
    for first, n_rows, n_wrong in ((0, n_checked[0], 0), (300, n_checked[1], 8)):
        truth[first : first + n_rows] = predictions[first]
        truth[first : first + n_wrong] = "a"
    return pd.DataFrame({"llm": predictions, "gold": truth, "site": np.tile(["n", "s"], 300)})


def test_that_estimates_of_parts_do_not_add_up_is_told_where_they_do_not(tmp_path):
    result = audit(checked_by_class((20, 60)), "gold", "llm", suspects=0)
    n_wrong = result.wrong["estimate"]
    assert abs(result.whole.by_prediction["estimate"].sum() - n_wrong) > 10
    assert "estimates of parts need not add up" in result.on_parts
    assert result.as_json()["on_parts"] == result.on_parts
    assert result.on_parts in render_audit(result)
    table = tmp_path / "t.csv"
    checked_by_class((20, 60)).to_csv(table, index=False)
    words = ["audit", str(table), "--target", "gold", "--predictions", "llm"]
    done = CliRunner().invoke(app, words)
    assert result.on_parts in " ".join(done.output.split())


def test_nothing_is_told_of_parts_that_add_up():
    result = audit(checked_by_class((40, 40)), "gold", "llm", suspects=0)
    assert result.whole.by_prediction["estimate"].sum() == pytest.approx(result.wrong["estimate"])
    assert result.on_parts == ""
    assert "add up" not in render_audit(result)
    by_site = audit(checked_by_class((40, 40)), "gold", "llm", by="site", suspects=0)
    wrong = by_site.audits["site"].wrong.drop(index="all rows")
    assert wrong["estimate"].sum() == pytest.approx(result.wrong["estimate"])


class TestLimits:
    """Checks such as "<0.5" make a prediction wrong only where they decide it."""

    def table(self, check):
        numbers = np.linspace(0.2, 2.0, 100)
        found = [f"{number + 0.3 * (-1) ** row:.3f}" for row, number in enumerate(numbers)]
        checks = np.array(found, dtype=object)
        checks[60:] = None
        checks[0] = check
        predicted = np.append(0.3, numbers[1:])
        return pd.DataFrame({"predicted": predicted, "found": checks})

    def audit(self, frame, tolerance=0.4):
        return audit(frame, "found", predictions="predicted", tolerance=tolerance)

    @pytest.mark.parametrize("check", ["<0.5", "<=0.4", ">0.1", "below 0.3"])
    def test_an_open_check_counts_as_wrong_in_the_bound_only(self, check):
        right = self.audit(self.table("0.300"))
        wrong = self.audit(self.table("3.000"))
        limit = self.audit(self.table(check))
        line = limit.whole.wrong.iloc[0]
        assert line["n_wrong"] == right.whole.wrong.iloc[0]["n_wrong"] == 0
        assert line["n_doubtful"] == 1
        assert line["at_most"] >= wrong.whole.wrong.iloc[0]["at_most"] - 1
        assert any("is a limit" in note for note in limit.notes)
        assert limit.mean is None or limit.mean["kind"].iloc[0] == "none"

    @pytest.mark.parametrize("check", [">0.9", "<-0.4", "above 1", "≥ 0.8"])
    def test_a_check_that_surely_makes_it_wrong_counts_as_wrong(self, check):
        limit = self.audit(self.table(check))
        assert limit.whole.wrong.iloc[0]["n_wrong"] == 1
        assert not any("is a limit" in note for note in limit.notes)
        assert limit.mean is None
        assert limit.as_json()

    def test_checks_that_decide_nothing_are_refused(self):
        frame = self.table("<0.5")
        frame["found"] = np.where(frame["found"].notna(), "<5", None)
        with pytest.raises(ValueError, match="Every check is a limit"):
            self.audit(frame)
