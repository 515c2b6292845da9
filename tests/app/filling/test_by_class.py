"""Filling where labels were chosen by their class: answers, flags, samples, saved files and the report."""

import json
import shlex

import dask.dataframe as dask
import numpy as np
import pandas as pd
import pytest
from sklearn.svm import LinearSVC
from typer.testing import CliRunner

from transduce import fill
from transduce.app.cli.app import app
from transduce.app.filling import fill_folder, fit_fill, load, save
from transduce.app.filling.options import Options
from transduce.conformal import ByClass
from transduce.conformal.designs.by_class import read_spelled_shares
from transduce.conformal.designs.registry import design_of_flags
from transduce.core.words import in_shell, options_spelled

NAMES = np.array(["no, thanks", "ja=ä"], dtype=object)
SHARES = {"no, thanks": 0.92, "ja=ä": 0.08}
PLAIN = {"method": "ridge", "task": "classification"}


def case_control(m=300, n_each=60):
    """A table with as many labels of each class, of rows of which 8 % are of the second, and the truth."""
    rng = np.random.default_rng(0)
    codes = np.append(np.arange(2 * n_each) % 2, rng.random(m) < 0.08).astype(int)
    frame = pd.DataFrame(
        {"a": rng.normal(size=len(codes)) + 2 * codes, "b": rng.normal(size=len(codes))}
    )
    frame["y"] = np.where(np.arange(len(codes)) < 2 * n_each, NAMES[codes], None)
    return frame, NAMES[codes]


@pytest.fixture(scope="module")
def estimated():
    return fill(case_control()[0], "y", labels=ByClass(), **PLAIN)


class TestAnswers:
    def test_answers_are_for_the_shares_of_the_unlabelled_rows(self, estimated):
        frame, truth = case_control()
        missing = frame["y"].isna().to_numpy()
        wrong = np.mean(estimated.frame["y_filled"].to_numpy()[missing] != truth[missing])
        plain = fill(frame, "y", **PLAIN, guarantee="column").frame["y_filled"].to_numpy()[missing]
        assert wrong < 0.6 * np.mean(plain != truth[missing])
        assert (
            estimated.guarantee.headline
            == "exact if rows were labelled at random within each class"
        )

    def test_probability_and_quality_are_for_these_shares(self, estimated):
        assert abs(estimated.new["y_probability"].dropna().mean() - 0.95) < 0.05
        accuracy = np.average(
            estimated.out_of_fold["true"] == estimated.out_of_fold["answered"],
            weights=estimated.out_of_fold["weight"],
        )
        np.testing.assert_allclose(estimated.summary()["quality"]["accuracy"], accuracy)

    @pytest.mark.parametrize("asks", [True, False], ids=["by class", "by chance"])
    def test_a_note_asks_where_nobody_said_so(self, asks):
        frame, _ = case_control()
        if not asks:
            frame = frame[:120].assign(y=frame["y"].where(np.arange(420) % 3 > 0))
        notes = fill(frame, "y", **PLAIN).notes
        assert any("If labels were chosen by class, say so with" in note for note in notes) == asks

    def test_few_labels_are_compared_without_holding_any_out(self):
        result = fill(case_control(100, 12)[0], "y", labels=ByClass(), **PLAIN)
        assert (
            result.guarantee.headline == "exact if rows were labelled at random within each class"
        )
        assert result.guarantee.within == "class"
        assert result.class_shares.shares[0] < 0.5

    def test_report_and_json_have_the_shares(self, estimated):
        summary = json.loads(estimated.json())
        first = summary["class_shares"]["classes"][0]
        assert first["class"] == "no, thanks"
        assert first["lower"] <= first["share"] <= first["upper"]
        page = estimated.report()
        assert "Shares of the classes" in page
        assert "Labels were chosen by their class." in page
        assert "estimated (intervals at about 90 %)" in estimated.notes[0]


class TestLargeTables:
    @pytest.mark.parametrize("labels", [ByClass(), ByClass(SHARES)], ids=["estimated", "given"])
    def test_rows_outside_of_the_fit_are_answered_for_the_same_shares(self, labels):
        frame, truth = case_control(1500)
        result = fill(frame, "y", labels=labels, sample=400, **PLAIN)
        missing = frame["y"].isna().to_numpy()
        assert np.mean(result.frame["y_filled"].to_numpy()[missing] != truth[missing]) < 0.1
        assert result.guarantee.kind == "exact"
        assert (result.guarantee.outside is None) == (labels.shares is not None)

    @pytest.mark.parametrize("given", [ByClass(), ByClass(SHARES)], ids=["estimated", "given"])
    def test_rows_are_answered_one_by_one_without_probabilities(self, given):
        frame, _ = case_control()
        fitted = fit_fill(frame, "y", labels=given, method=LinearSVC())
        later = frame.drop(columns="y").iloc[-40:].reset_index(drop=True)
        parts = [fitted.new_columns(later.iloc[rows]) for rows in (slice(0, 3), slice(3, 40))]
        pd.testing.assert_frame_equal(pd.concat(parts), fitted.new_columns(later))

    def test_files_in_parts_and_dask(self, tmp_path):
        frame, truth = case_control()
        for k, rows in enumerate((frame[:150], frame[150:])):
            rows.to_parquet(tmp_path / f"{k}.parquet")
        settings = {"labels": ByClass(), "sample": 150, **PLAIN}
        result = fill_folder(f"{tmp_path}/*.parquet", "y", tmp_path / "out", **settings)
        found = pd.concat([pd.read_parquet(path) for path in result.frame.paths], ignore_index=True)
        lazy = fill(dask.from_pandas(frame, npartitions=3), "y", **settings)
        assert (
            lazy.frame.compute()["y_set"].fillna("").tolist() == found["y_set"].fillna("").tolist()
        )
        missing = frame["y"].isna().to_numpy()
        assert np.mean(found["y_filled"].to_numpy()[missing] != truth[missing]) < 0.1
        assert result.guarantee == lazy.guarantee == fill(frame, "y", **settings).guarantee
        assert result.guarantee.within == "class"

    def test_later_rows_and_saved_files(self, tmp_path):
        frame, _ = case_control()
        save(tmp_path / "a.transduce", frame, "y", labels=ByClass(SHARES), **PLAIN)
        later = pd.DataFrame({"a": [0.0, 1.2, 4.0], "b": [0.0, 0.0, 0.0]})
        new = load(tmp_path / "a.transduce").new_columns(later)
        again = fit_fill(frame, "y", labels=ByClass(SHARES), **PLAIN).new_columns(later)
        pd.testing.assert_frame_equal(new, again)
        later_rows = load(tmp_path / "a.transduce").guarantee_of_later(3)
        assert later_rows.condition.endswith("later rows are like the labelled ones of their class")
        assert new["y_filled"].tolist() == ["no, thanks", "no, thanks", "ja=ä"]


class TestFlags:
    @pytest.mark.parametrize(
        "shares",
        [{"yes": 0.06, "no": 0.94}, SHARES, {"a=1,b": 0.5, "c,d=2": 0.5}, {" x": 0.25, "1": 0.75}],
        ids=["plain", "commas", "both", "spaces"],
    )
    def test_what_is_spelled_is_read_back(self, shares):
        assert read_spelled_shares(ByClass(shares).as_flags()["class_shares"]) == shares
        assert design_of_flags(ByClass(shares).as_flags()) == ByClass(shares)

    def test_options_are_read_back(self):
        for design in (ByClass(), ByClass(SHARES)):
            options = Options.read({"labels": design})
            assert Options.of_json(json.loads(json.dumps(options.as_json()))) == options

    @pytest.mark.parametrize("text", ["yes", "yes=0.1,yes=0.9", "yes=much", "{1", ""])
    def test_what_is_not_shares(self, text):
        with pytest.raises(ValueError, match="gives each class once, as in yes"):
            read_spelled_shares(text)

    def test_one_way_in_which_labels_came_about(self):
        with pytest.raises(ValueError, match="exclude each other"):
            design_of_flags({"labels_by_class": True, "groups": "g"})

    def test_two_flags_of_one_way_are_not_what_excludes(self):
        """What is refused names flags of two ways, where one way is said with two flags."""
        flags = {"labels_by_class": True, "class_shares": "yes=0.1,no=0.9", "shift": "estimate"}
        with (
            options_spelled(in_shell),
            pytest.raises(ValueError, match="--labels-by-class and --shift exclude each other"),
        ):
            design_of_flags(flags)

    def test_the_command_does_it_again(self, tmp_path):
        case_control()[0].to_csv(tmp_path / "t.csv", index=False)
        words = ["fill", str(tmp_path / "t.csv"), "--target", "y", "--method", "ridge"]
        out = [
            "--json",
            str(tmp_path / "t.json"),
            "--out",
            str(tmp_path / "o.csv"),
            "--force",
            "--quiet",
        ]
        shares = ["--class-shares", "no, thanks=0.92,ja=ä=0.08"]
        done = CliRunner().invoke(app, [*words, *shares, *out])
        assert done.exit_code == 0, done.output
        first = json.loads((tmp_path / "t.json").read_text())
        again = shlex.split(first["again"])[2:]
        done = CliRunner().invoke(app, ["fill", str(tmp_path / "t.csv"), *again[1:], *out])
        assert done.exit_code == 0, done.output
        assert json.loads((tmp_path / "t.json").read_text())["rows"] == first["rows"]
        done = CliRunner().invoke(app, [*words, "--class-shares", "yes=0.5,no=0.5", *out])
        assert "The shares lack class 'ja=ä'" in done.output


class TestRefusals:
    def test_numbers(self):
        table = pd.DataFrame({"a": np.arange(40.0), "y": [*np.arange(30) / 7, *[None] * 10]})
        with pytest.raises(ValueError, match="are classes, and these are numbers"):
            fill(table, "y", labels=ByClass())

    def test_a_method_without_probabilities(self):
        with pytest.raises(ValueError, match="needs probabilities, which the machine lacks"):
            fill(case_control(20)[0], "y", labels=ByClass(), method="confidence-machine")
