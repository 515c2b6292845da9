"""Labels that no table should hold: too large, complex, halves of characters, very long."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from transduce import fill
from transduce.app.cli.app import app
from transduce.app.cli.terminal import show_table
from transduce.app.report import render_html, render_json, summarize
from transduce.core.words import LONGEST_MESSAGE

N_ROWS = 60
N_LABELS = 36
LONG = "x" * 200_000


def table_of(values):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(N_ROWS, 2)), columns=["a", "b"])
    labels = [values(number) for number in table["a"]]
    labels[N_LABELS:] = [None] * (N_ROWS - N_LABELS)
    table["t"] = pd.Series(labels, dtype=object)
    return table


@pytest.mark.few(2)
@pytest.mark.parametrize("factor", [1e155, 1e200, 1e290, 1e-200])
def test_results_of_labels_of_any_size_are_json(factor):
    table = table_of(lambda number: number * factor)
    table["t"] = table["t"].astype(float)
    result = fill(table, "t")
    summary = json.loads(result.json())
    assert summary["quality"]["r2"] > 0.5
    assert result.members["score"].notna().all()
    assert np.isfinite(result.frame["t_filled"]).all()
    table["t"] /= factor
    ordinary = fill(table, "t")
    np.testing.assert_allclose(
        result.frame["t_filled"] / factor, ordinary.frame["t_filled"], rtol=1e-6
    )


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (lambda number: complex(number, 1), "'t' holds complex numbers: fill their real"),
        (lambda number: "\ud800" if number > 0 else "b", "half of a character"),
        (lambda number: 10**400 if number > 0 else 1, "too large for double precision"),
    ],
)
def test_labels_that_are_refused(values, words):
    with pytest.raises(ValueError, match=words):
        fill(table_of(values), "t")


def test_complex_features_are_left_out_and_named():
    table = table_of(lambda number: number)
    table["c"] = table["b"] + 1j
    result = fill(table, "t", method="ridge")
    assert "'c' was left out: complex numbers are not read" in " ".join(result.notes)


def test_classes_that_differ_by_a_nul_stay_two():
    result = fill(table_of(lambda number: "a" if number > 0 else "a\0"), "t")
    assert set(result.frame["t_filled"]) == {"a", "a\0"}
    assert result.members["score"].max() > 0.7


@pytest.mark.parametrize(("mark", "others"), [(-1, (0, 1)), ("", ("a", "b"))])
def test_marks_for_missing_labels_are_named(mark, others):
    table = table_of(lambda number: others[number > 0])
    table["t"] = table["t"].where(table["t"].notna(), mark)
    words = rf"some cells say {mark!r} \(24\): if these are to be filled, use missing=\[{mark!r}\]"
    with pytest.raises(ValueError, match=words):
        fill(table, "t")
    result = fill(table, "t", missing=[mark], method="ridge")
    assert len(result.answer) == N_ROWS - N_LABELS
    table.loc[0, "t"] = None
    notes = " ".join(fill(table, "t", method="ridge").notes)
    assert f"that say {mark!r} (24) were taken as labels; if they are not, use" in notes


def test_a_label_of_many_letters_is_shortened_wherever_it_is_shown(capsys):
    table = table_of(lambda number: LONG if number > 1.2 else "short")
    result = fill(table, "t", method="ridge")
    assert LONG in set(result.frame["t_filled"])
    summary = summarize(result.reported)
    assert len(render_json(summary)) < 100 * LONGEST_MESSAGE
    assert len(render_html(summary)) < 100 * LONGEST_MESSAGE
    assert LONG[:5000] not in str(result)
    show_table(result.new.iloc[result.answer.rows[:5]])
    assert len(capsys.readouterr().out) < 5000


def test_a_label_of_many_letters_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table_of(lambda number: LONG if number > 1.2 else "short").to_csv("t.csv", index=False)
    ran = CliRunner().invoke(app, ["fill", "t.csv", "--target", "t", "--method", "ridge"])
    assert ran.exit_code == 0
    assert len(ran.output) < 10_000
    table_of(lambda _: LONG).to_csv("same.csv", index=False)
    refused = CliRunner().invoke(app, ["fill", "same.csv", "--target", "t"])
    assert refused.exit_code == 1
    assert len(refused.stderr) < 1000
    assert refused.stderr.splitlines()[-1].startswith("transduce: All 36 labels of column 't'")


def test_a_refusal_is_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table_of(lambda _: "two\nlines").to_csv("t.csv", index=False)
    refused = CliRunner().invoke(app, ["fill", "t.csv", "--target", "t", "--quiet"])
    assert refused.exit_code == 1
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize("target", [{}, pd.DataFrame(), [{}]])
def test_targets_that_name_no_column(target):
    with pytest.raises(ValueError, match="target is the name of a column"):
        fill(table_of(float), target)
