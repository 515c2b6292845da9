"""The command line: files in and out, exit codes, and one sentence for everything that goes wrong."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tests.wild import wild_table
from transduce import fill
from transduce.app.cli.app import TABLES, app
from transduce.app.cli.demonstration import compare_with_truth, demo_table
from transduce.app.cli.terminal import Bars, progress_bars, tell
from transduce.app.tables import delimited
from transduce.app.tables import files as tables
from transduce.app.tables.new_columns import rounded
from transduce.core.computing import announce_forecast, show_progress, stage
from transduce.datasets import load_houses
from transduce.methods.confidence_machine import residual_lines

ROOT = Path(__file__).parents[3]
PROGRAM = [sys.executable, "-m", "transduce"]
WITH_SOURCE = os.environ | {"PYTHONPATH": str(ROOT / "src")}


@pytest.fixture
def houses(tmp_path, monkeypatch):
    """Return the path of a table with holes, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    frame, _ = wild_table("mixed")
    frame.to_csv("houses.csv", index=False)
    return Path("houses.csv")


def run(*words, **settings):
    return CliRunner().invoke(app, [str(word) for word in words], **settings)


# ------------------------------------------------------------------------------------------------------- exact


def test_fill_agrees_with_the_library_and_leaves_columns_alone(houses):
    result = run(
        "fill",
        houses,
        "--target",
        "target",
        "--method",
        "ridge",
        "--report",
        "r.html",
        "--json",
        "r.json",
    )
    assert result.exit_code == 0, result.output
    assert "36 of 90 cells of 'target' filled (numbers, ridge)" in result.stdout
    assert (
        "Guarantee, exact if rows were labelled at random: The interval of a row" in result.stdout
    )
    assert "Written: houses-filled.csv, r.html, r.json" in result.stdout
    assert "<h1>target</h1>" in Path("r.html").read_text()
    assert json.loads(Path("r.json").read_text())["target"] == "target"
    old, new = houses.read_text().splitlines(), Path("houses-filled.csv").read_text().splitlines()
    assert all(line.startswith(f"{before},") for before, line in zip(old, new, strict=True))
    direct = fill(tables.read(houses).frame, "target", method="ridge")
    back = pd.read_csv(
        "houses-filled.csv", dtype=str
    )  # pandas' own reading of numbers may be off by a bit
    wanted = rounded(direct.new, "target", "regression")
    for name in ("target_filled", "target_lower", "target_upper", "target_width_reduction"):
        np.testing.assert_array_equal(back[name].astype(float), wanted[name])
    assert back["target_status"].tolist() == direct.frame["target_status"].tolist()


def test_all_options(houses):
    words = "--method ridge --confidence 0.8 --certainty 0.9 --task regression --ignore rooms --text Ort --id id"
    more = "--seed 3 --reject-share 0.2 --budget 50 --jobs 1 --quiet --force --out b.jsonl.gz"
    result = run("fill", houses, "--target", "target", *words.split(), *more.split())
    assert result.exit_code == 0, result.output
    assert "Guarantee, exact" in result.stdout
    assert result.stdout.endswith("Written: b.jsonl.gz\n")
    assert not any(line.startswith(("- ", "To label next")) for line in result.stdout.splitlines())
    assert result.stderr == ""
    assert (
        tables.read("b.jsonl.gz")
        .frame["target_status"]
        .isin(["given", "answered", "rejected"])
        .all()
    )


def test_files_in_parts_go_to_a_folder_without_a_slash(houses):
    """A refused run leaves no folder, however deep."""
    Path("parts").mkdir()
    frame = pd.read_csv(houses)
    frame[:50].to_csv("parts/1.csv", index=False)
    frame[50:].to_csv("parts/2.csv", index=False)
    words = ["--method", "ridge", "--quiet", "--jobs", 1]
    assert run("fill", "parts", "--target", "nothing", "--out", "a/b", *words).exit_code == 1
    assert not Path("a").exists()
    result = run("fill", "parts", "--target", "target", "--out", "filled", *words)
    assert result.exit_code == 0, result.output
    assert "Written: filled (2 parts)" in result.stdout
    one = run("fill", houses, "--target", "target", "--out", "filled-houses", *words)
    assert one.exit_code == 2
    assert "has an unknown format" in " ".join(one.stderr.replace("│", " ").split())


def test_answers_of_later_rows_are_rounded_and_compared(houses):
    saved = run(
        "fill",
        houses,
        "--target",
        "target",
        "--method",
        "ridge",
        "--save",
        "m.transduce",
        "--quiet",
    )
    assert saved.exit_code == 0, saved.output
    frame = pd.read_csv(houses).drop(columns="target")
    frame.head(40).to_csv("later.csv", index=False)
    result = run("answer", "m.transduce", "later.csv", "--json", "later.json", "--quiet")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("40 rows predicted.")
    told = json.loads(Path("later.json").read_text())
    assert told["counts"] == {"rows": 40, "labelled": 0, "answered": 40, "unreached": 0}
    assert told["exchangeability"]["verdict"] in result.stdout
    both = [
        pd.read_csv(name, dtype=str)["target_lower"].dropna()
        for name in ("later-answered.csv", "houses-filled.csv")
    ]
    digits = [max(len(text.partition(".")[2]) for text in ends) for ends in both]
    assert digits[0] == digits[1]


def test_answer_says_what_it_could_not_read(houses):
    frame = pd.read_csv(houses)
    column, frame["kind"] = "size", np.resize(["flat", "house"], len(frame))
    frame[column] = np.linspace(20.5, 90.0, len(frame))
    frame.to_csv("houses.csv", index=False)
    saved = run(
        "fill",
        houses,
        "--target",
        "target",
        "--method",
        "ridge",
        "--save",
        "m.transduce",
        "--quiet",
    )
    assert saved.exit_code == 0, saved.output
    later = frame.drop(columns="target").astype({column: object})
    later.loc[1, column], later.loc[2, "kind"] = "broken", "castle"
    later.to_csv("later.csv", index=False)
    result = run("answer", "m.transduce", "later.csv", "--json", "later.json")
    notes = [
        "'kind': 1 cell holds a category that the fit did not see: 'castle' (line 4).",
        f"{column!r}: 1 cell was taken as missing, since it is not a number: 'broken' (line 3).",
    ]
    assert json.loads(Path("later.json").read_text())["notes"] == notes
    assert all(f"- {note}" in result.stdout for note in notes)
    quiet = run("answer", "m.transduce", "later.csv", "--quiet", "--force")
    assert "castle" not in quiet.stdout
    later.to_csv("titled.csv", index=False)
    titled = Path("titled.csv").read_text()
    Path("titled.csv").write_text(f"A,list\nof,2024\n{titled}")
    result = run("answer", "m.transduce", "titled.csv", "--header", "3")
    assert "'broken' (line 5)" in result.stdout, result.output
    later.rename(columns=str.upper).to_csv("capitals.csv", index=False)
    result = run("answer", "m.transduce", "capitals.csv")
    assert "which the model was fitted with. Did you mean" in result.stderr


def test_drawing_says_at_once_that_rows_are_too_few(houses):
    few = "- 5 labels of rows drawn at random cannot guarantee 90 %: it takes 9."
    words = ["draw", houses, "--target", "target", "--force"]
    assert few in run(*words, "--number", 5).stdout
    assert "cannot guarantee" not in run(*words, "--number", 9).stdout
    assert "cannot guarantee" not in run(*words, "--number", 5, "--quiet").stdout


def test_drawing_says_what_to_do_with_the_draw(houses, tmp_path):
    """All rows of an empty column that get a label were drawn: `fill` refuses a column that marks them all."""
    frame = pd.read_csv(houses)
    empty = int(frame["target"].isna().sum())
    words = ["draw", houses, "--target", "target", "--force"]
    done = run(*words, "--number", 20).stdout
    assert done.strip().endswith("--random-labels target_random")
    assert "Every row without a label was drawn" in run(*words, "--number", empty).stdout
    frame.assign(target=None).to_csv(tmp_path / "none.csv", index=False)
    none = run("draw", tmp_path / "none.csv", "--target", "target", "--number", 20).stdout
    assert none.strip().endswith("--target target")


@pytest.mark.parametrize(
    "words",
    [
        "--min 5 --max 3",
        "--limit five",
        "--groups rooms --random-labels rent",
        "--random-labels rent --guarantee row",
        "--text rooms --number rooms",
        "--ignore target",
        "--labels-by-class",
        "--labels-by-class --order rooms",
        "--probabilities",
        "--method spectral-graph",
        "--features columns",
        "--sheet 2",
        "--save m.model --guarantee row",
        "--memory 1MB --out parts/",
    ],
)
def test_options_that_do_not_go_together_are_bad_usage(houses, words):
    result = run("fill", houses, "--target", "target", *words.split())
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert not Path("houses-filled.csv").exists()


def test_standard_input_and_output(houses):
    result = run("fill", "-", "--target", "target", "--method", "ridge", input=houses.read_bytes())
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].endswith("target_width_reduction,target_status")
    assert len(result.stdout.splitlines()) == 91
    assert "standard input: 36 of 90" in result.stderr


def test_module_and_script_agree_in_a_process_of_their_own(houses):
    words = [
        "fill",
        "houses.csv",
        "--target",
        "target",
        "--method",
        "ridge",
        "--guarantee",
        "column",
        "--out",
        "-",
    ]
    done = subprocess.run([*PROGRAM, *words], env=WITH_SOURCE, capture_output=True, check=True)
    assert done.stdout == run(*words, "--quiet").stdout.encode()
    assert b"answers" in done.stderr
    bad = run("fill", houses, "--target", "nothing")
    assert bad.exit_code == 1
    assert bad.stderr.splitlines()[-1].startswith("transduce: The table has no column 'nothing'.")


def test_a_blend_of_one_method_is_called_a_blend(tmp_path):
    """It was called ridge here, and the blend in a note."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(100, 2)).round(2), columns=["x", "z"])
    table["y"] = (2.0 * table["x"] + table["z"]).mask(np.arange(100) % 2 == 0)
    table.to_csv(tmp_path / "exact.csv", index=False)
    result = run("fill", str(tmp_path / "exact.csv"), "--target", "y")
    assert "filled (numbers, a blend, in which ridge alone counts)." in result.stdout
    assert "the values from the blend" in " ".join(result.stdout.split())


def test_compare(houses):
    frame, _ = wild_table("two classes")
    frame.to_csv("c.csv", index=False)
    words = ["--folds", 2, "--ignore", "flag", "--plot", "a.png"]
    result = run("compare", "c.csv", "--target", "target", *words)
    assert result.exit_code == 0, result.output
    assert "bayesian" in result.stdout
    assert "(always the commonest class)" in result.stdout
    assert "has the best score" in result.stdout
    assert "the method makes the values only" in result.stdout
    assert "Written: a.png" in result.stdout
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")


def test_methods_and_version():
    result = run("methods")
    for name in ("ridge", "moment-matched", "spectral-graph", "bayesian", "confidence-machine"):
        assert name in result.stdout
    assert "Joachims" in result.stdout
    assert "…" not in result.stdout  # what a method does is said to its end
    assert run("--version").stdout.startswith("transduce 0.")


def test_demo_ends_with_guarantee_and_truth(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("demo-output").mkdir()
    files = [
        Path("demo-output") / name
        for name in ("wine-filled.csv", "wine.csv", "wine.html", "wine.json")
    ]
    for path in files:
        path.write_text("of an earlier demo")
    result = run("demo", "wine", "--method", "ridge")
    assert result.exit_code == 0, result.output
    assert sorted(Path("demo-output").iterdir()) == files
    assert not any("of an earlier demo" in path.read_text(encoding="utf-8") for path in files)
    assert "Guaranteed: at most 25 of 118, with 95 % certainty." in result.stdout
    assert "of the predictions are right" in result.stdout


@pytest.mark.parametrize("name", TABLES)
def test_demo_tables(name):
    table, target, truth = demo_table(name)
    given = table[target].notna()
    assert given.sum() == TABLES[name][1]
    assert (table[target][given] == truth[given]).all()


def test_verdict_of_the_confidence_machine():
    table, target, truth = demo_table("diabetes")
    verdict = compare_with_truth(fill(table, target, method="confidence-machine"), truth)
    inside, explained = verdict.splitlines()  # the machine bounds no count
    assert (
        80.0
        < float(re.search(r"Inside their intervals: ([\d.]+) % of the hidden labels", inside)[1])
        < 100.0
    )
    assert inside.endswith(
        "Guaranteed: at least 90 % on average over many such tables, and less in some."
    )
    assert "of the variance" in explained
    lines = compare_with_truth(
        fill(table, target, method="ridge", guarantee="column"), truth
    ).splitlines()
    assert re.fullmatch(
        r"Outside their intervals: \d+. Guaranteed: at most \d+ of 292, with 95 % certainty.",
        lines[1],
    )


def test_the_page_is_what_help_prints():
    wanted = runpy.run_path(str(ROOT / "docs" / "cli_page.py"))["page"]()
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == wanted, (
        "run python docs/cli_page.py"
    )


def test_the_output_of_an_odd_name(tmp_path):
    from transduce.app.cli.inputs import default_out

    assert default_out("-") == "-"
    assert default_out("a/b.c.csv.gz") == str(Path("a/b.c-filled.csv.gz"))
    assert default_out("data") == "data-filled.csv"


# ----------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["fill", "none.csv", "--target", "target"], 1, "There is no file none.csv."),
        (["fill", "houses.csv", "--target", "Target"], 1, "Did you mean 'target'?"),
        (["fill", "houses.csv", "--target", "id"], 1, "nothing to fill"),
        (["fill", "houses.csv", "--target", "target", "--method", "bayesian"], 2, "fills classes"),
        (["fill", "houses.csv", "--target", "target", "--out", "a.docx"], 2, "unknown format"),
        (["fill", "houses.csv", "--target", "target", "--out", "no/a.csv"], 1, "does not exist"),
        (["fill", "houses.csv", "--target", "target", "--out", "houses.csv"], 2, "exists already"),
        (
            ["fill", "houses.csv", "--target", "target", "--report", "houses.csv"],
            2,
            "is the table itself",
        ),
        (["fill", "houses.csv"], 2, "--target"),
        (
            ["fill", "houses.csv", "--target", "target", "--confidence", "1"],
            2,
            "strictly between 0 and 1",
        ),
        (
            ["fill", "houses.csv", "--target", "target", "--reject-share", "0"],
            2,
            "strictly between 0 and 1",
        ),
        (["fill", "houses.csv", "--target", "target", "--jobs", "0"], 2, "number of jobs"),
        (["fill", "houses.csv", "--target", "target", "--method", "magic"], 2, "magic"),
        (["fill", "houses.csv", "--target", "target", "--seed", "-1"], 2, "seed"),
        (["compare", "houses.csv", "--target", "prize"], 1, "has no column 'prize'"),
        (
            ["compare", "houses.csv", "--target", "target", "--plot", "c.bmp"],
            2,
            ".png, .svg or .pdf",
        ),
        (["demo", "iris"], 2, "iris"),
        (["frobnicate"], 2, "frobnicate"),
    ],
)
def test_refusals(houses, words, code, message):
    before = houses.read_bytes()
    result = run(*words)
    assert result.exit_code == code, result.output
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert "Traceback" not in result.output
    assert [path.name for path in Path().iterdir()] == ["houses.csv"]
    assert houses.read_bytes() == before


@pytest.mark.parametrize("where", ["reading", "columns", "answers", "writing"])
def test_an_interrupt_leaves_nothing_behind(houses, monkeypatch, where):
    def stop(self, name, share):
        if name == where:
            raise KeyboardInterrupt

    monkeypatch.setattr(Bars, "__call__", stop)
    result = run("fill", houses, "--target", "target", "--method", "ridge")
    assert result.exit_code == 130
    assert "Interrupted" in result.stderr
    assert [path.name for path in Path().iterdir()] == ["houses.csv"]


def test_an_interrupt_while_writing_keeps_the_old_file(houses, monkeypatch):
    Path("out.csv").write_text("old")

    def stop(source, new, file):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(delimited, "append_columns", stop)
    result = run(
        "fill", houses, "--target", "target", "--method", "ridge", "--out", "out.csv", "--force"
    )
    assert result.exit_code == 130
    assert Path("out.csv").read_text() == "old"
    assert sorted(path.name for path in Path().iterdir()) == ["houses.csv", "out.csv"]


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (MemoryError(), 1, "not enough memory"),
        (PermissionError("No right."), 1, "No right."),
        (OSError("Full."), 1, "Full."),
    ],
)
def test_errors_of_the_system(houses, monkeypatch, error, code, said):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(tables, "read", fail)
    result = run("fill", houses, "--target", "target")
    assert result.exit_code == code
    assert said in result.stderr


def test_a_reader_that_stops_listening(houses):
    """The program ends with an exit code of its own, and without a word."""
    pd.read_csv(houses).assign(filler="x" * 5000).to_csv("wide.csv", index=False)
    words = ["draw", "wide.csv", "--target", "target", "--out", "-", "--quiet"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*PROGRAM, *words], env=WITH_SOURCE, **pipes) as program:
        assert program.stdout.read(5) == b"id,Gr"
        program.stdout.close()
        assert program.stderr.read() == b""
    assert program.returncode == 1


def test_bars_begin_again_and_break_off(capsys):
    with progress_bars(quiet=False):
        for _ in range(2):
            with stage("work") as report:
                report(0.5)
        with pytest.raises(ValueError, match="no"), stage("other"):
            raise ValueError("no")
    assert "broken off" in capsys.readouterr().err
    with progress_bars(quiet=True), show_progress(lambda *_: None), stage("work"):
        pass


def test_the_first_run_says_that_it_compiles(tmp_path, monkeypatch, capsys):
    for folder, compiled in [(None, False), (tmp_path, False), (tmp_path, True)]:
        if compiled:
            (tmp_path / "loop.nbi").touch()
        stats = SimpleNamespace(cache_path=folder)
        monkeypatch.setattr(residual_lines, "row_lines", SimpleNamespace(stats=stats))
        with progress_bars(quiet=False):
            announce_forecast(3.0)
        said = capsys.readouterr().err
        assert "The fit will take about 3 s." in said
        assert ("compiles its loops" in " ".join(said.split())) != compiled


# ------------------------------------------------------------------------------------------- what a newcomer meets


def test_the_first_command_of_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("example").exit_code == 0
    assert run("example").exit_code == 2
    result = run(
        "fill", "houses.csv", "--target", "price", "--method", "ridge", "--report", "houses.html"
    )
    assert result.exit_code == 0, result.output
    assert "250 of 400 cells of 'price' filled" in result.stdout
    assert "At labels that were hidden, the predictions are off by" in result.stdout
    assert "explain" in result.stdout
    assert "━" in result.stdout  # the preview
    back = pd.read_csv("houses-filled.csv")
    assert (back["price_filled"] == back["price_filled"].round()).all()  # as the prices
    _, truth = load_houses()
    filled = back["price_status"] == "answered"
    assert (back["price_lower"] <= back["price_filled"])[filled].all()
    inside = truth.between(back["price_lower"], back["price_upper"])[filled]
    assert inside.mean() > 0.8


def test_rounding_never_narrows():
    rng = np.random.default_rng(0)
    filled = np.append(np.round(rng.normal(size=20), 3), rng.normal(size=50))
    ends = filled[:, None] + np.array([-1, 1]) * rng.uniform(0, 1e-3, (70, 1))
    new = pd.DataFrame(
        {
            "y_filled": filled,
            "y_lower": ends[:, 0],
            "y_upper": ends[:, 1],
            "y_width_reduction": 1 / 3,
        }
    )
    new["y_status"] = np.where(np.arange(70) < 20, "given", "answered")
    found = rounded(new, "y", "regression")
    assert found["y_filled"].tolist()[:20] == filled[:20].tolist()
    asked = found.iloc[20:]
    assert (asked["y_lower"] <= new["y_lower"][20:] + 1e-9).all()
    assert (asked["y_upper"] >= new["y_upper"][20:] - 1e-9).all()
    assert (asked["y_lower"] <= asked["y_filled"]).all()
    assert all(len(repr(value).partition(".")[2]) <= 3 for value in asked["y_filled"])
    assert set(found["y_width_reduction"]) == {0.3333}


def test_compare_speaks_the_language_of_fill(houses):
    result = run(
        "compare", houses, "--target", "target", "--folds", "2", "--plot", "a.svg", "--quiet"
    )
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert "<svg" in Path("a.svg").read_text()
    text = result.stdout
    for name in (
        "blend",
        "ridge",
        "gaussian-process",
        "confidence-machine",
        "forest",
        "(always the mean)",
        "off by",
    ):
        assert name in text
    assert "larger is better" not in text
    assert "transductive_ridge" not in text
    assert "-" not in "".join(
        line.split("│")[2] for line in text.splitlines() if line.count("│") > 3
    )


def test_compare_with_too_few_labels(houses):
    frame = pd.read_csv("houses.csv")
    for n, words in (
        (2, "takes at least 3"),
        (4, "too few for 5 folds: label more rows, or ask for --folds 2"),
    ):
        known = frame["target"].notna().cumsum()
        frame.assign(target=frame["target"].where(known <= n)).to_csv("few.csv", index=False)
        result = run("compare", "few.csv", "--target", "target")
        assert result.exit_code == 1
        assert words in result.stderr


def test_words_are_not_broken(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "30")
    tell("- The intervals are unbounded because there are too few labels.")
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 30 for line in lines)
    assert lines[1].startswith("  ")
    assert (
        " ".join(line.strip() for line in lines)
        == "- The intervals are unbounded because there are too few labels."
    )


def test_options_are_named_as_on_the_command_line(houses):
    result = run("fill", houses, "--target", "target", "--method", "ridge", "--probabilities")
    assert "--probabilities is for classes" in result.stderr
    result = run("fill", houses, "--target", "target", "--method", "ridge")
    assert "--task classification" not in result.stdout
    assert "--guarantee column also bounds" in result.stdout
    codes = pd.read_csv(houses)
    codes["target"] = codes["target"].rank(pct=True).mul(3.0).round()
    codes.to_csv("codes.csv", index=False)
    result = run("fill", "codes.csv", "--target", "target", "--method", "ridge")
    assert "--task classification reads them as classes" in result.stdout


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("folder.csv", None, "The folder folder.csv holds no table"),
        ("random.csv", bytes(range(256)) * 9, "is a binary file, not a table"),
        ("bad.json", b"[{]", "is not JSON in line 1"),
    ],
)
def test_files_that_are_no_tables(tmp_path, monkeypatch, name, content, words):
    monkeypatch.chdir(tmp_path)
    if content is None:
        Path(name).mkdir()
    else:
        Path(name).write_bytes(content)
    result = run("fill", name, "--target", "y")
    assert result.exit_code == 1
    assert words in result.stderr
    assert result.stderr.count("transduce:") == 1


def test_several_targets_of_different_kinds(houses):
    """Options for numbers go to the numbers, those for classes to the classes; alone they are refused."""
    frame = pd.read_csv(houses)
    frame["kind"] = np.where(frame["rooms"].fillna(3) > 3, "large", "small").astype(object)
    frame.loc[::3, "kind"] = None
    frame.to_csv("kinds.csv", index=False)
    both = ["--target", "target", "--target", "kind", "--method", "ridge"]
    result = run("fill", "kinds.csv", *both, "--min", "-1000", "--probabilities")
    assert result.exit_code == 0, result.output
    back = pd.read_csv("kinds-filled.csv")
    assert back["target_lower"].min() >= -1000
    assert {"kind_probability_large", "kind_probability_small"} <= set(back)
    refused = run(
        "fill", "kinds.csv", "--target", "kind", "--method", "ridge", "--min", "0", "--force"
    )
    assert "--min is for numbers" in refused.stderr


def test_several_targets_in_one_run(houses):
    frame = pd.read_csv(houses)
    frame["area"] = frame["rooms"].fillna(3) * 20 + np.random.default_rng(0).normal(size=len(frame))
    frame.loc[::3, "area"] = np.nan
    frame.to_csv("two.csv", index=False)
    words = [
        "--target",
        "target",
        "--target",
        "area",
        "--method",
        "ridge",
        "--report",
        "r.html",
        "--min",
        "-1000",
    ]
    result = run("fill", "two.csv", *words)
    assert result.exit_code == 0, result.output
    back = pd.read_csv("two-filled.csv")
    assert back[["target_filled", "area_filled"]].notna().all().all()
    assert "cells of 'target' filled" in result.stdout
    assert "cells of 'area' filled" in result.stdout
    assert "<h1>area</h1>" in Path("r-area.html").read_text()
    assert Path("r-target.html").exists()
    assert run("fill", "two.csv", "--target", "area", "--target", "area").exit_code == 2
    assert (
        run("fill", "two.csv", "--target", "area", "--target", "nobody", "--force").exit_code == 1
    )


def test_what_is_asked_of_the_filled_table_is_not_saved(houses):
    """Rows to label next, and rejected answers, are those of this table; the file is for rows that come later."""
    words = ["--method", "ridge", "--label-next", "--reject-share", "0.2", "--save", "m.model"]
    result = run("fill", houses, "--target", "target", *words)
    assert result.exit_code == 0, result.output
    assert {"target_label_next", "target_status"} <= set(pd.read_csv("houses-filled.csv").columns)
    assert run("answer", "m.model", houses).exit_code == 0
    again = run("fill", houses, "--target", "target", *words)
    assert "exists already: choose another name, or replace it with --force." in " ".join(
        again.stderr.split()
    )


def test_a_level_may_be_written_in_per_cent(houses):
    words = ["--method", "ridge", "--confidence", "80%", "--certainty", "90%", "--json", "r.json"]
    assert run("fill", houses, "--target", "target", *words).exit_code == 0
    options = json.loads(Path("r.json").read_text())["options"]
    assert options["confidence"] == 0.8
    assert options["certainty"] == 0.9
    bad = run("fill", houses, "--target", "target", "--certainty", "120%")
    assert bad.exit_code == 2
