"""Several columns of one fill: one table, one summary, and the answers of each."""

from __future__ import annotations

import json
from dataclasses import asdict
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")

from tests.app.page.serving import Client, Served
from tests.app.page.test_open import fill as fill_on_page
from tests.app.page.test_open import settle
from transduce import fill
from transduce.app.page.run import (
    RESULT,
    GivenLabels,
    Progress,
    leave_all,
    remove_old_results,
    work,
)
from transduce.app.page.workspace import Choices, Saved, Workspace
from transduce.app.tables import files
from transduce.core.files import temporary_name

CHOICES = Choices(target="y", way="chance", besides=["z", "kind"], step="answers")


def table(n=80):
    random = np.random.default_rng(3)
    x = random.normal(size=n)
    kind = pd.Series(np.where(x > 0, "a", "b"), dtype=object)
    frame = pd.DataFrame({"x": x.round(3), "y": (5 * x).round(1), "z": (x**2).round(2)})
    frame = frame.assign(kind=kind)
    known = {"y": 50, "z": 40, "kind": 60}
    return frame.assign(
        **{name: frame[name].where(np.arange(n) < some) for name, some in known.items()}
    )


def lay_down(folder):
    path = folder / "t.csv"
    table().to_csv(path, index=False)
    Saved(CHOICES).write(folder / "t.csv.transduce")
    result = folder / ".transduce" / "t.csv" / RESULT
    result.mkdir(parents=True)
    read = files.read(path)
    results = {}
    for name in CHOICES.targets:
        own = CHOICES.of_column(name)
        method = "forest" if name == "kind" else "ridge"
        results[name] = fill(read, name, method=method, ignore=own.ignore)
    about = {"choices": asdict(CHOICES), "read_at": path.stat().st_mtime_ns}
    leave_all(results, read, result, about, "")
    return result


@pytest.fixture
def client(tmp_path, no_figures):
    lay_down(tmp_path)
    with Served(Workspace(tmp_path, "t.csv")) as served:
        yield Client(served)


def test_one_table_has_the_new_columns_of_all(client):
    filled = client.get("/open/file/filled").content.decode().splitlines()
    names = filled[0].split(",")
    assert [name for name in names if name.endswith("_filled")] == [
        "y_filled",
        "z_filled",
        "kind_filled",
    ]
    assert len(filled) == 81


def test_a_summary_has_a_line_for_each(client):
    lines = client.get("/open/answers").json()["several"]
    assert [(line["name"], line["filled"], line["labelled"]) for line in lines] == [
        ("y", 30, 50),
        ("z", 40, 40),
        ("kind", 20, 60),
    ]
    assert all(line["good"] and line["guarantee"] for line in lines)


def test_the_answers_of_each_can_be_looked_at(client):
    for place, (name, number) in enumerate([("y", 30), ("z", 40), ("kind", 20)]):
        assert client.get(f"/open/answers?of={place}").json()["target"] == name
        assert client.get(f"/open/rows?of={place}").json()["total"] == number
        row = client.get(f"/open/row?row=79&of={place}").json()
        assert "value" in row
        assert name not in row["columns"]
        report = client.get(f"/open/file/report?of={place}").content.decode()
        assert f"“{name}”" in report
    assert client.get("/open/answers?of=3").status == 400
    assert client.get("/open/file/report?of=9").status == 404


def test_none_is_a_feature_of_another(client):
    assert "--ignore z --ignore kind" in client.get("/open/answers?of=0").json()["again"]
    again = client.get("/open/answers?of=2").json()["again"]
    assert "--target kind" in again
    assert "--ignore y --ignore z" in again


def test_results_that_were_left_behind_go_with_their_folders(tmp_path, no_figures):
    result = lay_down(tmp_path)
    old = result.rename(result.parent / temporary_name(RESULT))
    remove_old_results(result.parent)
    assert not old.exists()


def test_limits_and_corrections_are_of_the_first_column_alone():
    corrected = [{"row": 1, "name": "line 2", "was": "3", "now": 4.0}]
    choices = Choices(target="y", besides=["z"], minimum=0.0, corrected=corrected)
    assert choices.of_column("y").minimum == 0.0
    assert choices.of_column("y").ignore == ["z"]
    other = choices.of_column("z")
    assert (other.target, other.minimum, other.corrected, other.ignore) == ("z", None, [], ["y"])


def test_labels_of_the_labelling_page_are_of_the_first_column_alone():
    choices = Choices(target="y", besides=["z"], way="chance", labels=3)
    assert choices.targets == ["y", "z"]
    assert (choices.of_column("y").labels, choices.of_column("z").labels) == (3, 0)
    assert choices.of_column("z").way == "chance"
    unsaid = Choices(target="y", besides=["z"], labels=3)  # labelled before anybody said more
    assert unsaid.of_column("z").way == "unknown"
    assert Choices(besides=["z"]).targets == []


@pytest.mark.timeout(400)
def test_columns_are_filled_along_with_one_that_was_labelled(tmp_path, no_figures):
    table()[["x", "y", "z"]].to_csv(tmp_path / "t.csv", index=False)
    space = Workspace(tmp_path, "t.csv")
    space.change("t.csv", 0, {"target": "y", "besides": ["z"], "way": "chance"})
    space.change("t.csv", 1, {"labels": 1})
    given = GivenLabels(dict.fromkeys(range(50, 60), 1.5), None)
    given.write(space.computed, space.path)
    job = {"path": str(space.path), "choices": asdict(space.saved.choices)}
    (space.computed / "job.json").write_text(json.dumps(job))
    heard = []
    work(space.computed, lambda *stage: None, tell_column=lambda *column: heard.append(column))
    assert heard == [("y", 1, 2), ("z", 2, 2)]
    result = space.computed / RESULT
    briefs = [result / "brief.json", result / "beside-1" / "brief.json"]
    first, along = (json.loads(path.read_text("utf-8")) for path in briefs)
    assert (first["counts"]["labelled"], along["counts"]["labelled"]) == (60, 40)
    assert "--ignore z" in first["again"]
    assert along["guarantee"]["kind"] == "exact"  # as it was said of all columns
    filled = pd.read_csv(result / "t-filled.csv")
    assert filled[["y_filled", "z_filled"]].notna().all(axis=None)


def test_a_column_is_filled_along_once(tmp_path):
    table().to_csv(tmp_path / "t.csv", index=False)
    with Served(Workspace(tmp_path, "t.csv")) as served:
        client = Client(served)
        settle(client, {"target": "y", "besides": ["z", "kind"]})
        state = settle(client, {"target": "z"}).json()
        assert state["choices"]["besides"] == ["kind"]
        state = settle(client, {"ignore": ["kind"]}).json()
        assert state["choices"]["besides"] == []


def test_cells_of_a_column_that_is_filled_along_are_asked_about(tmp_path):
    frame = table().astype({"z": object})
    frame.loc[3, "z"] = "pending"
    frame.to_csv(tmp_path / "t.csv", index=False)
    with Served(Workspace(tmp_path, "t.csv")) as served:
        client = Client(served)
        settle(client, {"target": "y", "besides": ["z"], "way": "chance"})
        columns = {one["name"]: one for one in client.get("/open/preview").json()["columns"]}
        assert columns["z"]["ask"]["listed"] == [["pending", 1]]
        state = client.get("/open/state").json()
        about = {"table": "t.csv", "revision": state["revision"]}
        assert "pending" in client.post("/open/fill", about).json()["error"]


def test_progress_counts_columns_and_the_forecast_those_to_come(monkeypatch):
    monkeypatch.setattr("transduce.app.page.run.time", SimpleNamespace(time=lambda: 100.0))
    progress = Progress("running", began=98.0)
    progress.hear({"column": "y", "place": 1, "of": 3})
    progress.hear({"forecast": 4.0})
    assert progress.forecast == 2.0 + 3 * 4.0
    progress.hear({"column": "kind", "place": 3, "of": 3})
    progress.hear({"forecast": 4.0})
    assert progress.column == ("kind", 3, 3)
    assert progress.forecast == 2.0 + 4.0


@pytest.mark.timeout(400)
def test_the_page_fills_them_in_a_process_of_its_own(tmp_path, no_figures):
    table()[["x", "y", "z"]].to_csv(tmp_path / "t.csv", index=False)
    with Served(Workspace(tmp_path, "t.csv")) as served:
        client = Client(served)
        settle(client, {"target": "y", "besides": ["z"], "way": "chance"})
        fill_on_page(client)
        assert client.get("/open/rows?of=1").json()["total"] == 40
