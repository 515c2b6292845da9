"""`transduce estimate`: questions about a whole column, from a file to a table, files and a plot."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from tests.app.estimating.test_estimate import make_table
from transduce import fill
from transduce.app.cli.app import app

METHOD = ("--target", "price", "--method", "ridge", "--ignore", "visit", "--ignore", "sold")
METHOD += ("--ignore", "drawn", "--ignore", "probability")


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame, _, _ = make_table()
    frame.to_csv("table.csv", index=False)
    return frame


def run(*words):
    return CliRunner().invoke(app, ["estimate", "table.csv", *METHOD, *words])


def test_the_command_agrees_with_the_result(table):
    words = ["--what", "mean", "--what", "share above 100", "--by", "region"]
    done = run(*words, "--out", "e.csv", "--json", "e.json", "--plot", "e.svg")
    assert done.exit_code == 0, done.output
    assert "Written: e.svg, e.json, e.csv" in done.stdout
    assert "Mean of price, by region" in done.stdout
    written = pd.read_csv("e.csv")
    kept = table[["size", "region", "price"]]
    found = fill(kept, "price", method="ridge").estimate("mean", by="region")
    means = written[written["what"] == "mean of price"].set_index("group")
    assert means["estimate"].tolist() == pytest.approx(found["estimate"].tolist())
    assert means["upper"].tolist() == pytest.approx(found["upper"].tolist())
    numbers = json.loads(Path("e.json").read_text("utf-8"))
    assert len(numbers["estimates"]) == 6
    assert Path("e.svg").read_text("utf-8").lstrip().startswith("<?xml")


def test_the_usual_question_and_standard_output(table):
    done = run("--out", "-", "--quiet")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("what,by,group,estimate,lower,upper,kind")
    assert "mean of price" in done.stdout


def test_what_it_is_of_may_stand_apart(table):
    done = run("--what", "quantile", "--what", "slope", "--of", "0.9")
    assert done.exit_code == 2
    assert "no column '0.9'" in done.stderr
    done = run("--what", "difference", "--by", "region", "--of", "north,south")
    assert "north - south" in done.stdout
    done = run("--outcome", "size")
    assert "Regression of size on price" in done.stdout


def test_several_files_are_read_in_parts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame, price, _ = make_table(900, 400, seed=1)
    for k in range(3):
        frame[k * 300 : (k + 1) * 300].to_csv(f"part-{k}.csv", index=False)
    words = ["estimate", "part-*.csv", *METHOD, "--sample", "100", "--out", "e.csv"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    line = pd.read_csv("e.csv").iloc[0]
    assert line["lower"] <= price.mean() <= line["upper"]
    assert line["n_labels"] == 400
    assert not list(Path().glob("*filled*"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--what", "variance"], "Ask for mean"),
        (["--by", "nothing"], "no column 'nothing'"),
        (["--level", "95"], "between 0 and 1"),
        (["--out", "a.csv", "--json", "a.csv"], "the same file"),
        (["--out", "table.csv"], "the table itself"),
        (["--plot", "plot.bmp"], ".png, .svg or .pdf"),
        (["--joint", "--what", "share of"], "holds numbers"),
    ],
)
def test_bad_usage_is_one_sentence(table, words, message):
    done = run(*words)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert "Traceback" not in done.output


def test_an_interval_without_an_end_is_said_in_words(table):
    assert "at least" in run("--what", "quantile 0.97").stdout
    assert "at most" in run("--what", "quantile 0.03").stdout


class TestGroupsOfAReport:
    def test_the_report_shows_the_groups_that_are_named(self, table):
        words = ["fill", "table.csv", *METHOD, "--json", "n.json", "--by", "size", "--by", "region"]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        tables = json.loads(Path("n.json").read_text(encoding="utf-8"))["whole"]["tables"]
        assert [entry["by"] for entry in tables] == [None, "size", "region"]

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["--by", "region"], "name one of them"),
            (["--by", "price", "--json", "n.json"], "group by another column"),
            (["--by", "age", "--json", "n.json"], "no column 'age'"),
        ],
    )
    def test_bad_usage_is_one_sentence(self, table, words, message):
        done = CliRunner().invoke(app, ["fill", "table.csv", *METHOD, *words])
        assert done.exit_code == 2, done.output
        assert message in done.stderr
        assert not list(Path().glob("*filled*"))


class TestSelect:
    def test_rows_to_use_are_marked(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        frame, price, _ = make_table(400, 200)
        frame.to_csv("table.csv", index=False)
        done = CliRunner().invoke(app, ["fill", "table.csv", *METHOD, "--select", "above 90"])
        assert done.exit_code == 0, done.output
        assert "(column price_selected). Guarantee: exact if rows were" in done.stdout
        filled = pd.read_csv("table-filled.csv")
        marked = filled["price_selected"].to_numpy(dtype=bool)
        assert marked.any()
        assert frame["price"].isna().to_numpy()[marked].all()
        assert (price[marked] > 90.0).mean() > 0.7

    @pytest.mark.parametrize("words", ["tall", "above tall", "within"])
    def test_bad_usage_is_one_sentence(self, table, words):
        done = CliRunner().invoke(app, ["fill", "table.csv", *METHOD, "--select", words])
        assert done.exit_code == 2, done.output
        assert "--select takes" in done.stderr
