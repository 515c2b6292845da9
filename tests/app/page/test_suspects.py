"""Known values that are perhaps wrong, on the page: looked at, corrected, confirmed."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")

from tests.app.page.serving import Client, Served
from tests.app.page.test_open import settle
from transduce import fill as fill_table
from transduce.app.page.run import RESULT, as_chosen, leave, work
from transduce.app.page.workspace import Choices, Saved, Workspace
from transduce.app.tables import files

SLIP = 11
CHOICES = Choices(target="y", way="chance")


def slips(kind=""):
    """A table with one slip, in line 13 of its file."""
    random = np.random.default_rng(0)
    x = random.normal(size=90)
    y = 50.0 + 10.0 * x + 0.5 * random.normal(size=90)
    y[SLIP] = 5000.5
    if kind == "classes":
        label = np.where(y > 50.0, "high", "low").astype(object)
    else:
        label = y.round(1)
    return pd.DataFrame({"x": x, "b": random.normal(size=90), "y": label}).assign(
        y=lambda frame: frame["y"].where(np.arange(90) < 60)
    )


def lay_down(folder, frame, choices=CHOICES):
    """Write a table, what was said of it, and its fill."""
    path = folder / "t.csv"
    frame.to_csv(path, index=False)
    Saved(choices).write(folder / "t.csv.transduce")
    result = folder / ".transduce" / "t.csv" / RESULT
    result.mkdir(parents=True)
    table = files.read(path)
    filled = fill_table(
        table, "y", method="ridge" if choices.task != "classification" else "forest"
    )
    leave(
        filled, table, result, {"choices": asdict(choices), "read_at": path.stat().st_mtime_ns}, ""
    )
    return path


@pytest.fixture
def client(tmp_path, no_figures):
    lay_down(tmp_path, slips())
    with Served(Workspace(tmp_path, "t.csv")) as served:
        yield Client(served)


def correct(client, **body):
    state = client.get("/open/state").json()
    about = {"table": state["table"], "revision": state["revision"]}
    return client.post("/open/correct", about | body)


def test_a_known_value_is_corrected_and_taken_back(client, tmp_path):
    suspect = client.get("/open/answers").json()["suspects"][0]
    assert (suspect["position"], suspect["row"], suspect["value"]) == (SLIP, "line 13", "5,000.5")
    before = (tmp_path / "t.csv").read_bytes()
    state = correct(client, row=SLIP, now=50.5).json()
    assert state["choices"]["corrected"] == [
        {"row": SLIP, "name": "line 13", "was": "5000.5", "now": 50.5}
    ]
    assert client.get(f"/open/row?row={SLIP}").json()["known"] == 50.5
    assert (tmp_path / "t.csv").read_bytes() == before
    assert correct(client, row=SLIP, now=51.0).json()["choices"]["corrected"][0]["now"] == 51.0
    assert correct(client, row=SLIP).json()["choices"]["corrected"] == []
    assert correct(client, row=SLIP, right=True).json()["choices"]["right"] == [SLIP]
    assert correct(client, row=SLIP, now=None).json()["choices"]["right"] == []
    column = client.get("/open/preview").json()["columns"][2]
    assert (column["name"], column["empty"]) == ("y", 31)
    for body in ({"now": "five"}, {"now": True}, {"row": 90, "now": 1.0}):
        assert correct(client, **{"row": SLIP, **body}).status == 400
    assert settle(client, {"target": "x"}).json()["choices"]["corrected"] == []


def test_only_the_value_that_was_corrected_is_replaced(tmp_path):
    table = files.read(lay_down_alone(tmp_path, slips()))
    choices = replace(
        CHOICES, corrected=[{"row": SLIP, "name": "line 13", "was": "5000.5", "now": 50.5}]
    )
    assert as_chosen(table, choices).frame["y"][SLIP] == 50.5
    other = files.read(lay_down_alone(tmp_path, slips().iloc[1:]))  # a row was deleted meanwhile
    assert as_chosen(other, choices).frame["y"].equals(other.frame["y"])


def lay_down_alone(folder, frame):
    frame.to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


@pytest.mark.parametrize(
    "changes",
    [
        {"corrected": [{"row": 1}]},
        {"corrected": [{"row": -1, "name": "a", "was": "", "now": 1.0}]},
        {"corrected": [{"row": 1, "name": "a", "was": "", "now": [1]}]},
        {"right": ["a"]},
    ],
)
def test_what_is_no_correction_is_refused(changes):
    with pytest.raises(ValueError, match=r"correction|row must be"):
        CHOICES.changed(changes)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_a_fill_uses_corrections_and_says_how_to_do_it_again(kind, tmp_path, no_figures):
    path = lay_down_alone(tmp_path, slips(kind))
    now = "low" if kind == "classes" else 50.5
    was = "high" if kind == "classes" else "5000.5"
    corrected = [{"row": SLIP, "name": "line 13", "was": was, "now": now}]
    job = {"path": str(path), "choices": asdict(replace(CHOICES, corrected=corrected))}
    (tmp_path / "job.json").write_text(json.dumps(job))
    work(tmp_path, lambda name, share: None)
    brief = json.loads((tmp_path / RESULT / "brief.json").read_text())
    assert SLIP not in [suspect["position"] for suspect in brief["suspects"]]
    assert brief["again"].endswith("t-labelled.csv --target y_label --ignore y")
    filled = pd.read_csv(tmp_path / RESULT / "t-filled.csv")
    assert str(filled["y"][SLIP]) == was
    assert str(filled["y_filled"][SLIP]) == str(now)
    labelled = pd.read_csv(tmp_path / "t-labelled.csv")
    assert str(labelled["y_label"][SLIP]) == str(now)
