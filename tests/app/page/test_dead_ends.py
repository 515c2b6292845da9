"""Ways on the page that once led nowhere: each goes on now, or says in its place why not."""

from __future__ import annotations

import json
import re
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")

from tests.app.page.serving import Client, Served
from tests.app.page.test_open import settle
from transduce import fill as fill_table
from transduce.app.labelling import Session, SessionSettings
from transduce.app.page import run
from transduce.app.page.preview import AnswerRows, Preview
from transduce.app.page.run import ERRORS, GivenLabels, as_sentence, work
from transduce.app.page.workspace import CARDS, Choices, Workspace
from transduce.app.tables import files

N_ROWS, N_KNOWN = 100, 60


def patients(seed=0):
    """A table of patients: a target, columns that tell of it, and one that is made of it; and the truth."""
    rng = np.random.default_rng(seed)
    age, weight = rng.uniform(20, 80, N_ROWS), rng.normal(75, 10, N_ROWS)
    ldl = (2.0 + 0.02 * age + 0.01 * weight + 0.1 * rng.normal(size=N_ROWS)).round(2)
    known = rng.permutation(N_ROWS) < N_KNOWN
    frame = pd.DataFrame({"name": [f"P{i:03d}" for i in range(N_ROWS)], "age": age.round(1)})
    frame = frame.assign(weight=weight.round(1), ward=rng.choice(["north", "south"], N_ROWS))
    frame["ldl"] = np.where(known, ldl, np.nan)
    frame["non_hdl"] = (1.2 * frame["ldl"]).fillna(0.0).round(2)
    return frame, ldl


@pytest.fixture
def clinic(tmp_path):
    patients()[0].to_csv(tmp_path / "patients.csv", index=False)
    return tmp_path


@pytest.fixture
def opened(clinic):
    with Served(Workspace(clinic, "patients.csv")) as served:
        client = Client(served)
        yield client, clinic
        client.post("/open/open", {"name": None})  # which closes the journal


def draw_block(client, truth):
    """Label rows drawn at random until the block is complete; return how many."""
    assert client.post("/open/label", {"draw": True}).status == 200
    for number in range(1, 60):
        row = client.get("/api/view").json()["proposal"]["row"]
        found = client.post("/api/answer", {"row": row, "label": str(truth[row])}).json()
        if found["certificate"]["intervals"]["complete"]:
            return number
    raise AssertionError("The block does not end.")


def label_more(client, truth, number):
    """Label rows that teach, after the block; return them."""
    rows = []
    client.post("/api/mode", {"mode": "learn"})
    for _ in range(number):
        rows.append(client.get("/api/view").json()["proposal"]["row"])
        client.post("/api/answer", {"row": rows[-1], "label": str(truth[rows[-1]])})
    return rows


# --------------------------------------------------------------------------- a finished block of draws, and after it


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["csv", "tsv", "xlsx", "parquet", "jsonl"])
def test_a_finished_block_of_draws_leaves_the_page_alive(kind, tmp_path):
    frame, truth = patients()
    path = tmp_path / f"patients.{kind}"
    write = {"csv": frame.to_csv, "xlsx": frame.to_excel, "parquet": frame.to_parquet}
    if kind == "tsv":
        frame.to_csv(path, index=False, sep="\t")
    elif kind == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        write[kind](path, index=False)
    with Served(Workspace(tmp_path, path.name)) as served:
        client = Client(served)
        settle(client, {"target": "ldl", "way": "chance"})
        draw_block(client, truth)
        assert client.post("/open/back").status == 200
        for name in ("state", "preview", "outlook", "test"):
            reply = client.get(f"/open/{name}")
            assert reply.status == 200, (name, reply.json())
        assert client.get("/open/outlook").json()["headline"] == "exact"


def test_columns_that_joined_since_were_read_like_any_others(clinic):
    table = files.read(clinic / "patients.csv")
    marked = GivenLabels({0: 3.0}, [0, 1]).put_into(table, Choices(target="ldl"))[0]
    assert marked.column_reading("ldl_random").texts is None
    assert (
        marked.column_reading("ldl").texts()[0] == ""
    )  # what the file has there is not this label
    assert marked.column_reading("age").texts() == table.column_reading("age").texts()


def test_classes_that_were_given_here_keep_their_names(tmp_path):
    """They once became the class "", since the file has empty cells in their rows."""
    x = np.random.default_rng(0).normal(size=N_ROWS)
    hits = pd.array((x > 0.5).astype(int), dtype="Int64")
    hits[12:] = pd.NA
    pd.DataFrame({"x": x, "hit": hits}).to_csv(tmp_path / "t.csv", index=False)
    table = files.read(tmp_path / "t.csv")
    given = GivenLabels({row: int(x[row] > 0.5) for row in range(20, 60)}, None)
    labelled, _ = given.put_into(table, Choices(target="hit"))
    result = fill_table(labelled, "hit", method="spectral-graph")
    assert set(result.new["hit_filled"].tolist()) == {0, 1}
    named, _ = GivenLabels({20: "perhaps", 21: 1}, None).put_into(table, Choices(target="hit"))
    assert named.frame["hit"].iloc[[0, 20, 21]].tolist() == [str(int(x[0] > 0.5)), "perhaps", "1"]


def test_labels_after_a_block_are_kept_and_what_becomes_of_them_is_said(opened, monkeypatch):
    client, folder = opened
    truth = patients()[1]
    settle(client, {"target": "ldl", "way": "chance"})
    size = draw_block(client, truth)
    before = client.get("/api/view").json()["since"]
    assert "a value that you give now is kept in the table as given" in before  # said before one is
    assert re.search(r"once \d+ more rows that are drawn at random", before)
    later = label_more(client, truth, 3)
    assert client.get("/api/view").json()["since"].startswith("3 values that you gave after")
    state = client.post("/open/back").json()
    assert state["since"].startswith("3 values that you gave after the block of random draws")
    given = GivenLabels.read(folder / ".transduce" / "patients.csv")
    assert (len(given.labels), sorted(given.since)) == (size, sorted(later))
    space = folder / ".transduce" / "patients.csv"
    choices = asdict(Workspace(folder, "patients.csv").saved.choices)
    job = {"path": str(folder / "patients.csv"), "choices": choices}
    (space / "job.json").write_text(json.dumps(job))
    monkeypatch.setattr(
        run, "fill", lambda *args, **options: fill_table(*args, **options, method="ridge")
    )
    work(space, lambda name, share: None)
    filled = pd.read_csv(space / "result" / "patients-filled.csv")
    assert filled["ldl_filled"].iloc[later].tolist() == truth[later].tolist()
    assert set(filled["ldl_status"].iloc[later]) == {"given"}
    brief = json.loads((space / "result" / "brief.json").read_text())
    left = N_ROWS - N_KNOWN - size
    assert brief["counts"]["unlabelled"] == left - 3
    assert brief["counts"]["labelled"] == N_KNOWN + size + 3
    assert brief["notes"][0].startswith("3 values that you gave after the block")
    # What is guaranteed is about all rows that had no value when the last one was drawn.
    assert f"of the {left} true values" in brief["guarantee"]["statement"]
    assert not set(brief["advised"]) & set(later)
    answers = client.get("/open/rows?count=200").json()
    assert not {line["row"] for line in answers["rows"]} & set(later)
    assert "given after the random draws" in brief["trust"]["why_not"]


def test_a_new_block_learns_from_what_came_after_the_last(opened):
    client, folder = opened
    truth = patients()[1]
    settle(client, {"target": "ldl", "way": "chance", "confidence": 0.8})
    draw_block(client, truth)
    later = label_more(client, truth, 2)
    client.post("/api/mode", {"mode": "audit"})
    for _ in range(20):
        shown = client.get("/api/view").json()
        row = shown["proposal"]["row"]
        found = client.post("/api/answer", {"row": row, "label": str(truth[row])}).json()
        if found["certificate"]["intervals"]["complete"]:
            break
    assert client.post("/open/back").json()["since"] == ""
    given = GivenLabels.read(folder / ".transduce" / "patients.csv")
    assert set(later) <= set(given.labels)
    assert given.since == {}


def test_labels_that_were_lost_are_not_left_out_silently(opened):
    """The folder with what was computed may be deleted; the journal holds every label."""
    client, folder = opened
    truth = patients()[1]
    settle(client, {"target": "ldl", "way": "chance"})
    draw_block(client, truth)
    client.post("/open/back")
    file = folder / ".transduce" / "patients.csv" / "labels.json"
    for content in ("{", None, '{"labels": [], "drawn": null}'):
        file.unlink() if content is None else file.write_text(content)
        for name in ("state", "preview", "outlook"):
            assert client.get(f"/open/{name}").status == 200
        state = client.get("/open/state").json()
        version = {"table": state["table"], "revision": state["revision"]}
        refusal = client.post("/open/fill", version)
        assert refusal.status == 400
        assert "safe in the journal" in refusal.json()["error"]
    assert client.post("/open/label").status == 200
    client.post("/open/back")
    assert len(GivenLabels.read(file.parent).labels) > 0


# ------------------------------------------------------------------------------------------------------ what changed


def leave_fill(folder, rows, errors, task="regression", way="chance", labels=0):
    """What a fill leaves behind, as far as it is compared with the next."""
    folder.mkdir()
    brief = {
        "target": "y",
        "task": task,
        "counts": {"labelled": len(rows)},
        "guarantee": {"headline": "exact"},
        "quality": {"mean_absolute_error": 1.0},
        "choices": {"way": way, "labels": labels},
    }
    (folder / "brief.json").write_text(json.dumps(brief))
    answers = {"row": [1, 2], "value": [1.0, 2.0], "width": [1.0, 1.0]}
    pd.DataFrame(answers).to_feather(folder / "answers.feather")
    lines = {"row": rows, "error": errors, "weight": 1.0}
    pd.DataFrame(lines).to_feather(folder / ERRORS)


def test_errors_at_other_rows_are_not_compared(tmp_path):
    """302 rows before and 19 others now: 0.31 and 0.24 told of a gain that was none."""
    leave_fill(tmp_path / "before", np.arange(302), np.full(302, 0.31))
    leave_fill(tmp_path / "after", np.arange(400, 419), np.full(19, 0.24))
    run._changes(tmp_path / "before", tmp_path / "after")
    quality = json.loads((tmp_path / "after" / "changes.json").read_text())["quality"]
    assert quality == {"measured": [302, 19], "rows": 0, "means": None}


def test_errors_at_the_same_rows_are_compared_by_their_definition(tmp_path):
    rng = np.random.default_rng(0)
    old = rng.uniform(0.2, 0.4, 50)
    new = old + 0.1 + rng.normal(scale=0.01, size=50)
    leave_fill(tmp_path / "before", np.arange(50), old)
    leave_fill(tmp_path / "after", np.arange(30, 80), np.append(new[30:], np.full(30, 9.0)))
    run._changes(tmp_path / "before", tmp_path / "after")
    quality = json.loads((tmp_path / "after" / "changes.json").read_text())["quality"]
    assert quality["rows"] == 20
    assert quality["means"] == pytest.approx([old[30:].mean(), new[30:].mean()])
    assert (quality["clear"], quality["worse"]) == (True, True)
    leave_fill(tmp_path / "noise", np.arange(50), old + rng.normal(scale=0.1, size=50))
    run._changes(tmp_path / "before", tmp_path / "noise")
    quality = json.loads((tmp_path / "noise" / "changes.json").read_text())["quality"]
    assert (quality["clear"], quality["worse"]) == (False, False)


@pytest.mark.parametrize(
    ("before", "after", "compared"),
    [
        (("class", 0), ("class", 0), True),
        (("class", 0), ("class", 3), False),  # labels of the labelling page decide then
        (("chance", 0), ("class", 0), False),
        (("class", 3), ("chance", 0), True),
    ],
)
def test_errors_for_other_shares_of_the_classes_are_not_compared(tmp_path, before, after, compared):
    """83 % right at the rows to be filled was 50 % at the known ones, half of which were sick."""
    rows, errors = np.arange(40), np.arange(40) % 2
    for name, (way, labels) in {"before": before, "after": after}.items():
        leave_fill(tmp_path / name, rows, errors, way=way, labels=labels)
    run._changes(tmp_path / "before", tmp_path / "after")
    quality = json.loads((tmp_path / "after" / "changes.json").read_text())["quality"]
    assert (quality["means"] is not None) == compared
    assert quality.get("other_shares", False) == (not compared)


# ------------------------------------------------------------------------- what was chosen reaches every step


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("changes", "gone"),
    [
        ({"ignore": ["non_hdl", "ward"]}, {"non_hdl", "ward"}),
        ({"id": "age"}, {"age"}),
        ({"way": "groups", "column": "group"}, {"group"}),
        ({"way": "date", "column": "age"}, {"age"}),
    ],
)
def test_labelling_rests_on_the_columns_that_fill_rests_on(opened, changes, gone):
    client, folder = opened
    frame = patients()[0]
    frame["group"] = np.where(frame["ldl"].isna(), 50, 0) + np.arange(N_ROWS) // 4
    frame.to_csv(folder / "patients.csv", index=False)
    settle(client, {"target": "ldl", "way": "chance", **changes})
    saved = Workspace(folder, "patients.csv").saved.choices
    result = fill_table(
        files.read(folder / "patients.csv"), "ldl", **saved.options().changed(), method="ridge"
    )
    columns = result.columns
    used = set(columns.loc[columns["n_features"] > 0, "name"])
    assert not used & gone
    preview = Preview(folder / "patients.csv", saved)
    assert set(preview.features(np.arange(5), saved)[1]) == used
    assert client.post("/open/label").status == 200
    while client.get("/api/preparing").json()["runs"]:
        pass
    assert set(client.get("/api/about").json()["columns"]) == used
    notes = client.get("/api/about").json()["notes"]
    assert not any(repr(name) in note for note in notes for name in gone), notes
    assert not any("keep=" in note or "--keep" in note for note in notes), notes


def test_how_columns_are_read_and_what_is_possible_reach_labelling(opened):
    client, folder = opened
    frame = patients()[0].assign(note=[f"about {i % 7} visits" for i in range(N_ROWS)])
    frame.to_csv(folder / "patients.csv", index=False)
    changes = {"target": "ldl", "way": "class", "number": ["note"], "text": ["ward"]}
    settle(client, changes | {"minimum": 1.0, "maximum": 9.0, "task": "regression"})
    assert client.post("/open/label").status == 200
    row = client.get("/api/view").json()["proposal"]["row"]
    for label, words in (("0.5", "0.5 is below 1"), ("9,5", "9.5 is above 9")):
        refusal = client.post("/api/answer", {"row": row, "label": label})
        assert refusal.status == 400
        assert words in refusal.json()["error"]
    settings = Session(
        folder / "patients.csv",
        "ldl",
        settings=SessionSettings(number=["note"], text=["ward"]),
        journal=None,
    )
    with settings as session:
        read = session.settings.reading(session.table)
        assert read == {"ignore": [], "text": ["ward"], "number": ["note"]}
        assert "note" in session.prepared.columns


def test_a_task_that_the_journal_does_not_have_is_said(opened):
    client, _ = opened
    settle(client, {"target": "ldl", "way": "chance"})
    client.post("/open/label")
    client.post("/open/back")
    settle(client, {"task": "classification"})
    client.post("/open/label")
    notes = client.get("/api/about").json()["notes"]
    assert "The session was begun with numbers and keeps them; classes were asked for." in notes


# ------------------------------------------------------------------------------------- whatever goes wrong is said


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyError("ldl_random"), "KeyError: 'ldl_random'"),
        (AssertionError(), "(AssertionError)"),
        (IndexError("index 3 is out of bounds"), "IndexError"),
        (ValueError("operands could not be broadcast"), "ValueError: operands"),
        (TypeError("'NoneType' object is not subscriptable"), "TypeError"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError"),
        (RecursionError(), "(RecursionError)"),
        (
            PermissionError(13, "Permission denied", "/secret/folder/t.csv"),
            "'t.csv' cannot be used",
        ),
        (MemoryError(), "There is not enough memory."),
        (ValueError("Open a table first."), "Open a table first."),
    ],
)
def test_an_error_is_a_sentence(error, words):
    message = as_sentence(error)
    assert words in message
    assert message.endswith(".")
    assert len(message.split()) >= 4
    assert "/secret" not in message


READING = {
    "preview": (Preview, "as_json"),
    "outlook": (Preview, "table"),
    "test": (Preview, "compare"),
    "answers": (AnswerRows, "as_json"),
    "rows": (AnswerRows, "page"),
}


@pytest.mark.parametrize("error", [KeyError("ldl_random"), AssertionError(), RuntimeError("?!x")])
@pytest.mark.parametrize("name", [*READING, "row", "state"])
def test_no_request_ends_without_a_sentence(name, error, opened, monkeypatch):
    client, _ = opened
    settle(client, {"target": "ldl", "way": "chance"})

    def fails(*args, **more):
        raise error

    if name == "state":
        monkeypatch.setattr(Workspace, "tables", fails)
    elif name in ("preview", "test"):
        monkeypatch.setattr(*READING[name], fails)
    elif name == "outlook":
        monkeypatch.setattr("transduce.app.page.server.outlook", fails)
    else:
        monkeypatch.setattr("transduce.app.page.server.OpenServer.answers", property(fails))
    reply = client.get(f"/open/{name}")
    assert reply.status == 400
    assert reply.json()["error"].startswith("This could not be done")
    assert reply.json()["error"].endswith(".")


@pytest.mark.parametrize("path", ["/open/file/filled", "/open/picture/0/0", "/image/0/0"])
def test_nor_does_one_for_a_file(path, opened, monkeypatch):
    client, folder = opened
    result = folder / ".transduce" / "patients.csv" / "result"
    result.mkdir(parents=True)
    (result / "brief.json").write_text("{}")

    def fails(*args, **more):
        raise KeyError("ldl_random")

    monkeypatch.setattr("transduce.app.page.server.OpenServer.answers", property(fails))
    monkeypatch.setattr("transduce.app.page.server._picture", fails)
    reply = client.get(path)
    assert reply.status in (400, 500)
    assert reply.json()["error"].endswith(".")


def test_a_fill_that_fails_oddly_says_so(tmp_path, monkeypatch, capsys):
    """It once said "perhaps there was not enough memory" of any mistake of the program."""

    def fails(*args):
        raise KeyError("ldl_random")

    def end(code):
        raise SystemExit(code)

    monkeypatch.setattr(run, "work", fails)
    monkeypatch.setattr(run.os, "_exit", end)
    monkeypatch.setattr(run.threading, "Thread", lambda **more: type("T", (), {"start": int})())
    with pytest.raises(SystemExit):
        run.main(tmp_path)
    monkeypatch.undo()
    line = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert "KeyError: 'ldl_random'" in line["error"]
    assert "Nothing that you said is lost." in line["error"]


def test_every_way_is_offered_and_reaches_the_fill():
    for way, card in CARDS.items():
        choices = Choices(target="y", way=way, column="c" if card.column else None)
        assert (choices.options().labels is None) == (way == "chance")
