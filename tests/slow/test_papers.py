"""The harness of the paper scripts: resumed runs, tables, agreement with the docs; and the page made from them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "papers"))

import page  # noqa: E402
import study as harness  # noqa: E402

sys.path.remove(str(ROOT / "papers"))


@pytest.fixture
def study(tmp_path):
    return harness.Study("paper", full=False, out=tmp_path)


def cells(n):
    return [{"split": split, "data": "é"} for split in range(n)]


# ------------------------------------------------------------------------------------------------------ exact


def test_numbers_come_in_the_order_of_the_cells(study):
    found = study.collect(
        "part", cells(3), lambda split, data: {"error": np.float64(split**2 + 0.5)}
    )
    assert found.to_dict("list") == {
        "split": [0, 1, 2],
        "data": ["é"] * 3,
        "error": [0.5, 1.5, 4.5],
    }
    pd.testing.assert_frame_equal(pd.read_csv(study.out / "part.csv"), found)


def test_a_cell_may_have_several_lines(study):
    found = study.collect(
        "part", cells(2), lambda split, data: [{"m": m, "e": split + m} for m in (1, 2)]
    )
    assert found["e"].tolist() == [1, 2, 2, 3]


def test_mean_spread_and_number_of_splits():
    frame = pd.DataFrame({"set": ["a", "a", "b"], "method": "ours", "error": [1.0, 3.0, 5.0]})
    lines = harness.summarise(frame, "set", "method", "error", {("a", "ours"): 1.5})
    assert lines["mean"].tolist() == [2.0, 5.0]
    np.testing.assert_allclose(lines["sd"], [np.sqrt(2), np.nan])
    assert lines["n"].tolist() == [2, 1]
    np.testing.assert_array_equal(lines["paper"], [1.5, np.nan])
    assert harness.as_markdown(lines, digits=1).splitlines() == [
        "|  | ours | ours, paper | splits |",
        "| --- | --- | --- | --- |",
        "| a | 2.0 ± 1.4 | 1.5 | 2 |",
        "| b | 5.0 |  | 1 |",
    ]


def test_splits_of_the_quick_mode_are_the_first_of_the_full(study):
    full = harness.Study("paper", full=True, out=study.out)
    assert list(study.splits(3, 10)) == list(full.splits(3, 10))[:3]
    assert len(full.splits(3, 10)) == 10


# ------------------------------------------------------------------------------------------------------ resumed


def test_a_stopped_run_goes_on_where_it_was(study):
    def stopped(split, data):
        if split == 2:
            raise KeyboardInterrupt
        return {"error": split}

    with pytest.raises(KeyboardInterrupt):
        study.collect("part", cells(4), stopped)
    done = []

    def work(split, data):
        done.append(split)
        return {"error": split}

    assert study.collect("part", cells(4), work)["error"].tolist() == [0, 1, 2, 3]
    assert done == [2, 3]


def test_a_line_cut_in_the_middle_is_done_again(study):
    study.collect("part", cells(2), lambda split, data: {"error": split})
    store = study.out / "part.jsonl"
    store.write_text(store.read_text(encoding="utf-8")[:-20])
    done = []
    study.collect("part", cells(2), lambda split, data: done.append(split) or {"error": split})
    assert done == [1]
    assert study.collect("part", cells(2), None)["error"].tolist() == [0, 1]


def test_cells_of_another_version_are_told(study, monkeypatch, capsys):
    for mark in ("one", "one", "two"):
        monkeypatch.setattr(harness, "_mark", lambda mark=mark: mark)
        study.collect("part", cells(2), lambda split, data: {"error": split})
    assert capsys.readouterr().err.count("2 cells of") == 1


def test_sources_are_said_of_the_sets_that_are_there():
    said = harness.say_sources(["bundled-iris", "bundled-wine"])
    assert said == "Data from scikit-learn: bundled-iris, bundled-wine."


# ------------------------------------------------------------------------------------------------------ agreement


def test_figures_are_held_against_the_full_run(study, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(harness, "PUBLISHED", tmp_path / "published")
    lines = pd.DataFrame(
        {
            "row": ["a", "b"],
            "column": "ours",
            "mean": [1.0, 5.0],
            "sd": 0.5,
            "n": 9,
            "paper": np.nan,
        }
    )
    study.publish("part", "Title", lines)
    assert "No full run" in capsys.readouterr().out
    (tmp_path / "published" / "paper").mkdir(parents=True)
    lines.assign(mean=[1.4, 6.0]).to_csv(
        tmp_path / "published" / "paper" / "part-summary.csv", index=False
    )
    study.publish("part", "Title", lines)
    said = capsys.readouterr().out
    assert "1 of 2 figures agree" in said
    assert "b, ours: 5, there 6" in said
    assert (study.out / "part.md").read_text(encoding="utf-8").startswith("**Title**")


def test_means_over_many_splits_agree_within_their_standard_errors(study, tmp_path, monkeypatch):
    """Of 64 splits of 100 a mean is off by 0.075 standard deviations, so by four times as much at most."""
    monkeypatch.setattr(harness, "PUBLISHED", tmp_path / "published")
    (tmp_path / "published" / "paper").mkdir(parents=True)
    lines = pd.DataFrame(
        {"row": ["near", "far"], "column": "ours", "mean": 1.0, "sd": 1.0, "n": 64, "paper": np.nan}
    )
    full = lines.assign(mean=[1.2, 1.4], n=100)
    full.to_csv(tmp_path / "published" / "paper" / "part-summary.csv", index=False)
    said = study.agreement("part", lines)
    assert "1 of 2 figures agree" in said
    assert "far, ours: 1, there 1.4" in said


# ------------------------------------------------------------------------------------------------------ the page


def test_the_page_is_what_the_runs_and_the_texts_make_it():
    assert (ROOT / "docs" / "results.md").read_text(encoding="utf-8") == page.page()


def test_every_paper_has_a_script_a_text_and_all_its_parts():
    for paper, (_, _, parts, tables) in page.PAPERS.items():
        assert tables <= set(parts)
        assert (ROOT / "papers" / f"{paper}.py").is_file()
        assert (ROOT / "papers" / f"{paper}.md").is_file()
        for part in parts:
            found = list((ROOT / "docs" / "results" / paper).glob(f"{part}.*"))
            assert found, f"{paper}: {part} has no table and no figure in docs/results"


def test_the_table_of_a_full_run_says_what_its_lines_say():
    paths = sorted((ROOT / "docs" / "results").glob("*/*-summary.csv"))
    assert len(paths) >= 15
    for path in paths:
        table = path.with_name(path.name.replace("-summary.csv", ".md")).read_text(encoding="utf-8")
        lines = pd.read_csv(path).dropna(subset=["mean"])
        body = "\n".join(row for row in table.splitlines() if row.startswith("| "))
        digits = max(
            len(number.partition(".")[2]) for number in re.findall(r"\| (-?[0-9]+\.[0-9]+) ", body)
        )
        rows = {
            row.split(" | ")[0].removeprefix("| "): row
            for row in table.splitlines()
            if row.startswith("| ")
        }
        for line in lines.itertuples():
            shown = [float(number) for number in re.findall(r"(?<=\| )-?[0-9.]+", rows[line.row])]
            gap = min(abs(number - line.mean) for number in shown)
            assert gap <= 0.51 * 10.0**-digits + 1e-5 * abs(line.mean), (
                f"{path.name}: {line.row}, {line.column}"
            )


def test_only_full_runs_are_copied(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "HERE", tmp_path)
    monkeypatch.setattr(page, "DOCS", tmp_path / "docs")
    page.copy_full_run("le2006")
    assert not (tmp_path / "docs").exists()
    source = tmp_path / "output" / "le2006" / "full"
    source.mkdir(parents=True)
    (source / "a.csv").write_text("x")
    (source / "a.jsonl").write_text("x")
    (source / "big.csv").write_text("x" * (page.MOST_BYTES + 1))
    page.copy_full_run("le2006")
    assert [path.name for path in (tmp_path / "docs" / "results" / "le2006").iterdir()] == ["a.csv"]
