"""The page for the whole job, by requests: open a table, say what it is, fill it, page through the answers, label."""

from __future__ import annotations

import inspect
import io
import json
import pathlib
import re
import shlex
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tests.app.labelling.processes import FORKS, Running
from tests.app.labelling.tables import new_session
from transduce import fill as fill_table
from transduce.app.cli.app import app
from transduce.app.filling.sources import FrameSource
from transduce.app.labelling import Session
from transduce.conformal import Drawn, Estimated

pytest.importorskip("starlette", reason="NOT TESTED: the page, because starlette is not installed.")
pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")
import functools
import operator

from tests.app.page.serving import Client, Served
from transduce.app.page.preview import AnswerRows, Preview, outlook
from transduce.app.page.run import GivenLabels, Progress, Run, leave, work
from transduce.app.page.server import OpenServer
from transduce.app.page.workspace import (
    CARDS,
    PAGE_CONTROLS,
    Choices,
    Saved,
    StaleError,
    Workspace,
    spell_for_page,
)
from transduce.app.tables import databases, files

HOSTILE = "<img src=x onerror=\"document.title='run'\">"


def messy(n=90, labelled=60, seed=0):
    """A table as people have them: units, limits, -999, dates, a name for each row, and markup in a cell."""
    rng = np.random.default_rng(seed)
    size, kind = rng.uniform(30, 150, n), rng.choice(["flat", "house"], n)
    price = 2000 * size + 50_000 * (kind == "house") + rng.normal(scale=9000, size=n)
    frame = pd.DataFrame(
        {"id": [f"H-{i:03d}" for i in range(n)], "size": [f"{one:.1f} m²" for one in size]}
    )
    frame["age"] = [*("<5", "n.d."), *rng.integers(5, 90, n - 2).astype(str)]
    frame["rooms"] = np.where(np.arange(n) % 30 == 3, -999, (size // 25 + 1).astype(int))
    frame["kind"], frame["note"] = (
        kind,
        [HOSTILE if i == 1 else f"seen on day {i % 7}" for i in range(n)],
    )
    frame["sold"] = pd.to_datetime("2020-01-01") + pd.to_timedelta(
        rng.integers(0, 900, n), unit="D"
    )
    known = rng.permutation(n)[:labelled]
    frame["price"] = pd.Series(price.round().astype(int).astype(str)).where(
        np.isin(np.arange(n), known)
    )
    return frame, price


def settle(client, changes):
    """Change choices as the page does, with the table and the version that it saw."""
    state = client.get("/open/state").json()
    about = {"table": state["table"], "revision": state["revision"]}
    return client.post("/open/change", {**about, "changes": changes})


def fill(client):
    state = client.get("/open/state").json()
    done = client.post("/open/fill", {"table": state["table"], "revision": state["revision"]})
    assert done.status == 200, done.json()
    while (state := client.get("/open/state").json())["run"]["state"] == "running":
        time.sleep(0.05)
    assert state["run"]["state"] == "done", state["run"]
    return state


@pytest.fixture
def folder(tmp_path):
    messy()[0].to_csv(tmp_path / "houses.csv", index=False)
    return tmp_path


@pytest.fixture
def opened(folder):
    with Served(Workspace(folder, "houses.csv")) as served:
        yield Client(served), folder


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A table that was filled, labels held out: the fills of the other tests take seconds too."""
    folder = tmp_path_factory.mktemp("filled")
    frame, truth = messy()
    frame.to_csv(folder / "houses.csv", index=False)
    with Served(Workspace(folder, "houses.csv")) as served:
        client = Client(served)
        assert (
            settle(client, {"target": "price", "way": "chance", "guarantee": "column"}).status
            == 200
        )
        fill(client)
        yield client, folder, frame, truth


# ------------------------------------------------------------------------------------------------------ the table


def test_columns_are_read_as_fill_reads_them(opened):
    client, _ = opened
    found = client.get("/open/preview").json()
    columns = {one["name"]: one for one in found["columns"]}
    kinds = {name: one["kind"] for name, one in columns.items()}
    assert kinds == {
        **dict.fromkeys(("size", "age", "rooms", "price"), "number"),
        **{"id": "identifier", "kind": "category", "note": "category", "sold": "date"},
    }
    assert columns["size"]["unit"] == "m²"
    assert "<5" in columns["age"]["notes"][0]
    assert "-999" in columns["rooms"]["notes"][0]
    assert ["-999", 3] in columns["rooms"]["values"]
    assert found["targets"] == ["price"]
    assert columns["price"]["empty"] == 30
    assert found["first"][0][0] == ["text", "H-000", 0]
    assert ["text", HOSTILE, 5] in found["first"][1]


def test_a_value_that_means_empty_makes_a_column_a_target(opened):
    client, folder = opened
    assert (
        settle(
            client, {"missing": ["-999"], "text": ["note"], "ignore": ["kind"], "id": "id"}
        ).status
        == 200
    )
    found = client.get("/open/preview").json()
    columns = {one["name"]: one for one in found["columns"]}
    assert (columns["rooms"]["empty"], columns["note"]["kind"], columns["kind"]["ignored"]) == (
        3,
        "text",
        True,
    )
    assert set(found["targets"]) == {"price", "rooms"}
    options = Saved.read(folder / "houses.csv.transduce").choices.options()
    assert (options.missing, options.text, options.ignore, options.id) == (
        ["-999"],
        ["note"],
        ["kind"],
        "id",
    )


def test_labels_are_written_with_the_decimal_sign_of_the_column(tmp_path):
    cells = [f"€ {n},5{n % 10}" for n in range(10, 30)]
    frame = pd.DataFrame({"x": range(24), "y": [*cells, *[None] * 4]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    table, choices = files.read(tmp_path / "t.csv"), Choices(target="y", way="chance")
    new, said = GivenLabels({20: 1.234, 21: 1234.0}, None).put_into(table, choices)
    labels = FrameSource.read(new, "y", said.options()).labels
    assert labels.labels[[0, 20, 21]].tolist() == [10.5, 1.234, 1234.0]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_empty_cells_are_counted_as_in_the_report(ending, tmp_path):
    """Also those that say "?" or -999: page, report and JSON have one count."""
    frame = messy()[0].assign(
        note=lambda table: np.where(np.arange(len(table)) % 9 == 0, "?", "seen")
    )
    path = tmp_path / f"houses.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    choices = Choices(target="price", way="chance")
    found = Preview(path, choices).as_json(choices)["columns"]
    result = fill_table(files.read(path), "price", method="ridge")
    reported = dict(zip(result.columns["name"], result.columns["n_missing"], strict=True))
    assert {one["name"]: one["empty"] for one in found} == reported
    assert (reported["note"], reported["rooms"], reported["age"]) == (10, 3, 1)
    assert [one["holes"] for one in found if one["name"] == "price"] == [
        result.summary()["counts"]["unlabelled"]
    ]


def test_a_column_is_read_as_numbers_on_request(opened):
    client, folder = opened
    frame = pd.read_csv(folder / "houses.csv")
    frame["size"] = [
        f"{one} or so" if i % 2 else f"{one}, measured" for i, one in enumerate(frame["size"])
    ]
    frame.to_csv(folder / "houses.csv", index=False)
    kinds = []
    for changes in ({}, {"number": ["size"]}):
        settle(client, changes)
        columns = client.get("/open/preview").json()["columns"]
        kinds += [one["kind"] for one in columns if one["name"] == "size"]
    assert kinds[1] == "number" != kinds[0]
    options = Saved.read(folder / "houses.csv.transduce").choices.options()
    assert options.as_command("houses.csv", "price", "auto").endswith("--number size")


def test_no_answer_is_beyond_what_is_possible(tmp_path):
    x = np.random.default_rng(0).uniform(size=120)
    frame = pd.DataFrame({"x": x, "y": np.where(np.arange(120) % 2, np.nan, (20 * x**3).round(2))})
    frame.to_csv(tmp_path / "t.csv", index=False)
    choices = Choices(target="y", way="chance", minimum=0.0, maximum=20.0)
    job = {"path": str(tmp_path / "t.csv"), "choices": asdict(choices)}
    (tmp_path / "job.json").write_text(json.dumps(job))
    work(tmp_path, lambda name, share: None)
    rows = AnswerRows(tmp_path / "result", Preview(tmp_path / "t.csv", choices))
    found = rows.page({"count": "200"})["rows"]
    assert min(line["low"] for line in found) == 0.0
    assert max(line["high"] for line in found) <= 20.0
    assert rows.brief["again"].endswith("--min 0.0 --max 20.0")
    with pytest.raises(ValueError, match="beyond minimum=5"):
        Preview(tmp_path / "t.csv", choices).target(replace(choices, minimum=5.0))
    with pytest.raises(ValueError, match="is not below"):
        replace(choices, minimum=30.0).options()
    assert choices.changed({"target": "x"}).minimum is None
    assert choices.changed({"target": "x", "minimum": 1.0}).minimum == 1.0


def test_a_file_that_is_dropped_is_kept_beside_under_a_name_of_its_own(opened):
    client, folder = opened
    before = (folder / "houses.csv").read_bytes()
    sent = {"origin": client.origin, "content-type": "application/octet-stream"}
    for name in ("houses-2.csv", "houses-3.csv"):
        done = client.ask("POST", "/open/drop?name=houses.csv", b"a,b\n1,2\n3,\n", sent)
        assert (done.status, done.json()["name"]) == (200, name)
    assert (folder / "houses.csv").read_bytes() == before
    assert (folder / "houses-3.csv").read_bytes() == b"a,b\n1,2\n3,\n"
    elsewhere = client.ask("POST", "/open/drop?name=..%2F..%2Fevil.csv", b"a\n1\n", sent)
    assert (elsewhere.json()["name"], (folder / "evil.csv").exists()) == ("evil.csv", True)
    for name in ("evil.exe", "", ".csv", "a%0Ab.csv", "x" * 200 + ".csv"):
        assert client.ask("POST", f"/open/drop?name={name}", b"a\n1\n", sent).status == 400
    assert client.ask("POST", "/open/drop?name=none.csv", b"", sent).status == 400
    assert not (folder / "none.csv").exists()
    assert (
        client.ask("POST", "/open/drop?name=a.csv", b"a\n", {"origin": "http://evil"}).status == 403
    )


@pytest.mark.parametrize(
    "name", ["../houses.csv", "/etc/passwd", "no.csv", "", ".", "houses.csv.transduce"]
)
def test_nothing_outside_of_the_folder_is_opened(opened, name):
    client, _ = opened
    assert client.post("/open/open", {"name": name}).status == 400


def test_links_out_of_the_folder_are_not_followed(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other") / "secret.csv"
    other.write_text("a,b\n1,2\n")
    (folder / "link.csv").symlink_to(other)
    with pytest.raises(ValueError, match=r"no table 'link\.csv'"):
        Workspace(folder).open("link.csv")


def test_a_table_that_cannot_be_read_says_so(folder):
    (folder / "bad.parquet").write_bytes(b"PAR1 and nothing more")
    with Served(Workspace(folder, "bad.parquet")) as served:
        refused = Client(served).get("/open/preview")
        assert refused.status == 400
        assert "bad.parquet" in refused.json()["error"]


# --------------------------------------------------------------------------------------------------- the small file


def test_choices_are_kept_and_a_new_start_goes_on_there(folder):
    space = Workspace(folder, "houses.csv")
    space.change("houses.csv", 0, {"target": "price", "step": "labels"})
    again = Workspace(folder)
    assert again.name == "houses.csv"
    assert (again.saved.choices.target, again.saved.choices.step, again.saved.revision) == (
        "price",
        "labels",
        1,
    )
    again.open(None)
    assert Workspace(folder).name is None


def test_two_tabs_never_overwrite_silently(folder):
    space, other = Workspace(folder, "houses.csv"), Workspace(folder, "houses.csv")
    space.change("houses.csv", 0, {"target": "price"})
    with pytest.raises(StaleError, match="changed in another tab"):
        other.change("houses.csv", 0, {"ignore": ["kind"]})
    assert other.saved.choices.target == "price"
    assert (
        other.change("houses.csv", 0, {"step": "labels"}).revision == 1
    )  # looking changes nothing
    other.change("houses.csv", 1, {"ignore": ["kind"]})
    with pytest.raises(StaleError):
        space.change("elsewhere.csv", 2, {"target": None})


def test_a_fill_of_something_that_changed_is_told(opened):
    client, folder = opened
    settle(client, {"target": "price", "way": "chance"})
    assert client.post("/open/fill", {"table": "houses.csv", "revision": 0}).status == 409
    assert client.post("/open/fill", {"table": "other.csv", "revision": 1}).status == 409
    assert not (folder / ".transduce").exists()


def test_what_is_computed_stays_in_the_folder(folder, tmp_path_factory):
    (folder / ".transduce").symlink_to(tmp_path_factory.mktemp("elsewhere"))
    with Served(Workspace(folder, "houses.csv")) as served:
        refused = Client(served).get("/open/state")
        assert (refused.status, refused.json()["error"][:10]) == (400, ".transduce")


def test_the_target_is_not_also_a_name_of_rows():
    choices = Choices(id="a", column="b", text=["c"], ignore=["d"], labels=3)
    assert choices.changed({"target": "a"}) == Choices("a", ["d"], ["c"], column="b")
    assert choices.changed({"target": "c"}) == Choices("c", ["d"], [], id="a", column="b")


def test_predictions_are_of_one_target_and_no_ignored_column():
    choices = Choices(target="gold", predictions=["llm"])
    assert choices.options().predicted == ["llm"]
    assert choices.changed({"target": "other"}).predictions == []
    assert choices.changed({"ignore": ["llm"]}).predictions == []
    assert choices.changed({"id": "llm"}).predictions == []
    assert replace(choices, besides=["b"]).of_column("b").predictions == []
    both = Choices(target="gold").changed({"predictions": ["p_yes", "p_no"]})
    assert both.options().predicted == ["p_yes", "p_no"]


def test_a_damaged_file_is_put_aside(folder):
    (folder / "houses.csv.transduce").write_text('{"revision": 3, "choices": {"targ')
    space = Workspace(folder, "houses.csv")
    assert space.saved == Saved()
    assert (folder / "houses.csv.transduce-damaged").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"nonsense": 1},
        {"ignore": "kind"},
        {"missing": [1]},
        {"confidence": 2},
        {"number": "size"},
        {"minimum": "x"},
        {"way": "magic"},
        {"step": "?"},
    ],
)
def test_bad_choices_are_refused(opened, changes):
    client, folder = opened
    assert settle(client, changes).status == 400
    assert not (folder / "houses.csv.transduce").exists()  # nothing was said yet


def test_many_requests_at_once(opened):
    client, folder = opened

    def one(number):
        if number % 3:
            return client.get("/open/preview" if number % 30 == 1 else "/open/state").status
        return settle(client, {"ignore": [f"column {number}"]}).status

    with ThreadPoolExecutor(40) as pool:
        seen = list(pool.map(one, range(300)))
    assert set(seen) <= {200, 409}
    saved = Saved.read(folder / "houses.csv.transduce")
    assert saved.revision == sum(status == 200 for status in seen[::3])


def change_and_be_killed(say, folder):
    space = Workspace(folder, "houses.csv")
    for number in range(1000):
        space.change("houses.csv", number, {"missing": [str(number)]})
        say(number)


@pytest.mark.slow
def test_a_kill_loses_nothing_that_was_said(folder):
    running = Running(change_and_be_killed, folder)
    heard = [running.hear() for _ in range(5)]
    running.kill()
    saved = Saved.read(folder / "houses.csv.transduce")
    assert int(saved.choices.missing[0]) >= heard[-1]
    assert saved.revision == int(saved.choices.missing[0]) + 1


# ----------------------------------------------------------------------------------------- how labels came about


@pytest.mark.parametrize("way", CARDS)
def test_each_way_is_a_design_of_the_command_line(way, folder):
    columns = {"drawn": "kind", "groups": "kind", "date": "sold", "known": "share"}
    path = folder / "houses.csv"
    frame = pd.read_csv(path).assign(share=0.5, kind=lambda table: np.arange(len(table)) % 2 == 0)
    if way == "drawn":
        frame["kind"] &= frame["price"].notna()  # all rows that were drawn have a label
    frame["target"] = np.where(
        frame["price"].isna(), None, np.where(frame["rooms"] > 3, "large", "small")
    )
    frame.to_csv(path, index=False)
    target = "target" if way == "class" else "price"
    choices = Choices(target=target, way=way, column=columns.get(way))
    found = outlook(Preview(path, choices), choices)
    design = type(choices.options().design).__name__
    assert (
        design
        == {
            **{"chance": "Chance", "drawn": "Drawn", "class": "ByClass", "groups": "Grouped"},
            **{"date": "Chance", "known": "Sampled", "unknown": "Estimated", "value": "ByValue"},
        }[way]
    )
    if way in ("groups", "value"):  # two groups cannot calibrate anything, nor can what was picked
        assert (found["will"], found["draw"]) == ([], True)
    else:
        assert f"probability {'about' if found['roughly'] else 'at least'} 90 %" in found["will"][0]
        assert found["roughly"] == (way == "unknown")
    command = choices.options().as_command("houses.csv", target, "auto")
    assert (way == "chance") == (command == f"transduce fill houses.csv --target {target}")


@pytest.mark.parametrize("n_labels", [60, 11])
def test_what_is_said_before_and_after_the_fill_agrees(n_labels, tmp_path):
    """Who does not know how the values came about is promised nothing exact, by no sentence, number or command."""
    x = np.random.default_rng(1).normal(size=120)
    frame = pd.DataFrame(
        {"x": x, "other": x[::-1], "y": np.where(np.arange(120) < n_labels, 3 * x, np.nan)}
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    choices = Choices(target="y", way="unknown")
    before = outlook(Preview(tmp_path / "t.csv", choices), choices)
    few = outlook(Preview(tmp_path / "t.csv", choices), replace(choices, confidence=0.97))
    too_few = "too few" if n_labels == 60 else "It takes at least 33 labels"
    assert any(too_few in line for line in few["will_not"])  # where columns tell who has a value
    (tmp_path / "job.json").write_text(
        json.dumps({"path": str(tmp_path / "t.csv"), "choices": asdict(choices)})
    )
    work(tmp_path, lambda name, share: None)
    brief, numbers = (
        json.loads((tmp_path / "result" / name).read_text())
        for name in ("brief.json", "numbers.json")
    )
    kind = "approximate" if n_labels == 60 else "none"
    assert (
        before["headline"]
        == {"approximate": kind, "none": "Nothing can be guaranteed like this"}[kind]
    )
    assert brief["guarantee"]["headline"] == numbers["guarantee"]["headline"] == kind
    assert brief["options"]["labels"]["design"] == "Estimated"
    assert brief["again"].endswith("--shift estimate")
    report = (tmp_path / "result" / "report.html").read_text()
    assert "rows were labelled at random" not in report
    assert "guarantee: exact" not in report


def few_labels(kind, tmp_path):
    """A table with too few labels for what was said about them, and what was said."""
    n_labels = {"drawn": 12, "chance": 8, "groups": 15}[kind]
    x = np.random.default_rng(1).normal(size=90)
    frame = pd.DataFrame({"x": x, "y": np.where(np.arange(90) < n_labels, x, np.nan)})
    frame["drawn"] = np.arange(90) < 7
    frame["group"] = np.arange(90) // 3
    frame.to_csv(tmp_path / "t.csv", index=False)
    column = {"drawn": "drawn", "groups": "group"}.get(kind)
    return Choices(target="y", way=kind, column=column, guarantee="auto")


@pytest.mark.parametrize("kind", ["drawn", "chance", "groups"])
def test_the_page_promises_nothing_that_fill_refuses(kind, tmp_path):
    """It once said "exact" of 7 labels drawn, of 8 labels by chance, and of 5 groups."""
    choices = few_labels(kind, tmp_path)
    said = outlook(Preview(tmp_path / "t.csv", choices), choices)
    assert (said["will"], said["headline"]) == ([], "Nothing can be guaranteed like this")
    assert said["refused"] == (kind == "drawn")
    table = files.read(tmp_path / "t.csv")
    options = {"method": "ridge", "labels": choices.options().labels}
    if said["refused"]:
        with pytest.raises(ValueError, match="cannot guarantee 90 %") as refusal:
            fill_table(table, "y", **options)
        assert said["will_not"] == [str(refusal.value)]
    else:
        given = fill_table(table, "y", **options).guarantee
        assert given.kind == "none"
        assert said["will_not"] == list(given.reasons)


def test_what_may_turn_out_by_the_fit_is_said_as_a_condition(folder):
    choices = Choices(target="price", way="chance", guarantee="column")
    said = outlook(Preview(folder / "houses.csv", choices), choices)
    assert "with 95 % certainty at most" in said["will"][1]
    assert any("are found to differ" in line for line in said["will_not"])
    assert any(line.startswith("Anything, if the other columns") for line in said["will_not"])
    by_row = replace(choices, guarantee="auto")
    said = outlook(Preview(folder / "houses.csv", by_row), by_row)
    assert any("30 rows together are outside" in line for line in said["will_not"])


def test_what_the_other_columns_say(folder):
    path = folder / "houses.csv"
    choices = Choices(target="price", way="chance")
    alike = Preview(path, choices).compare(choices)
    assert (alike["differ"], alike["tested"]) == (False, True)
    frame = pd.read_csv(path)
    frame["price"] = np.where(frame["size"].str[:-3].astype(float) > 80, np.nan, frame["price"])
    frame.to_csv(path, index=False)
    found = Preview(path, choices).compare(choices)
    assert found["differ"]
    assert found["columns"][0] in ("size", "rooms")


# ------------------------------------------------------------------------------------------------------ the answers


def test_answers_are_those_of_fill(filled, monkeypatch):
    if not FORKS:  # a process that is not forked has all trees
        monkeypatch.setattr("transduce.model_selection.methods.TREES", 200)
    client, folder, frame, _ = filled
    about = client.get("/open/answers").json()
    rows = client.get("/open/rows?count=200&sort=row").json()
    assert rows["total"] == about["n_answers"] == 30
    table = files.read(folder / "houses.csv")
    own = fill_table(table, "price", guarantee="column").answer
    assert [line["row"] for line in rows["rows"]] == own.rows.tolist()
    assert np.allclose([line["value"] for line in rows["rows"]], own.values)
    assert np.allclose([[line["low"], line["high"]] for line in rows["rows"]], own.regions.hull())
    assert (
        about["again"]
        == "transduce fill houses.csv --target price --task regression --guarantee column"
    )
    assert (folder / "houses.csv").read_text() == frame.to_csv(index=False)  # never changed


def test_rows_are_sorted_filtered_and_in_pages(filled):
    client, _, _, _ = filled
    every = client.get("/open/rows?count=200").json()["rows"]
    widths = [line["high"] - line["low"] for line in every]
    assert widths == sorted(widths, reverse=True)  # the least certain come first
    down = client.get("/open/rows?count=200&sort=value&down=1").json()["rows"]
    assert [line["value"] for line in down] == sorted(
        (line["value"] for line in every), reverse=True
    )
    parts = [
        client.get(f"/open/rows?start={start}&count=7").json()["rows"] for start in range(0, 35, 7)
    ]
    assert functools.reduce(operator.iadd, parts, []) == every
    name = every[3]["cells"][0][1]
    assert [
        line["row"] for line in client.get(f"/open/rows?search={name.lower()}").json()["rows"]
    ] == [every[3]["row"]]
    number = every[5]["row"]
    assert number in [
        line["row"] for line in client.get(f"/open/rows?search={number + 2}").json()["rows"]
    ]
    assert client.get("/open/rows?status=unreached").json()["total"] == 0
    for bad in ("start=x", "sort=nonsense"):
        assert client.get(f"/open/rows?{bad}").status == 400


def test_rows_to_trust_are_a_selection(filled):
    client, _, _, truth = filled
    offered = client.get("/open/answers").json()["trust"]["offered"]
    assert offered == sorted(offered)
    counts = []
    for tolerance in (*offered, 12_345.6):  # any amount that somebody types
        found = client.get(f"/open/rows?trust=0.2&tolerance={tolerance}&count=200").json()
        counts.append(found["trusted"])
        assert found["trusted"] == len(found["rows"])
        off = [abs(line["first"] - line["value"]) > tolerance for line in found["rows"]]
        assert found["other"] == sum(
            off
        )  # filled with another answer than the one that was checked
    assert counts[:-1] == sorted(counts[:-1])
    assert counts[-2] > 0
    found = client.get(f"/open/rows?trust=0.2&tolerance={offered[-1]}&count=200").json()["rows"]
    assert np.mean([abs(line["first"] - truth[line["row"]]) > offered[-1] for line in found]) <= 0.2
    share = client.get("/open/rows?trust=0.2&tolerance=0.3&relative=1&count=200").json()
    assert share["trusted"] > 0
    for bad in (
        "trust=2&tolerance=1",
        "trust=x",
        "trust=0.1",
        "trust=0.1&tolerance=-1",
        "trust=0.1&tolerance=x",
    ):
        assert client.get(f"/open/rows?{bad}").status == 400
        assert client.get(f"/open/file/trusted?{bad}").status == 400


def test_the_pick_goes_into_the_download(filled):
    client, _, frame, _ = filled
    asked = "trust=0.2&tolerance=20000"
    found = client.get(f"/open/rows?{asked}&count=200").json()["rows"]
    file = client.get(f"/open/file/trusted?{asked}")
    assert 'filename="houses-trusted.csv"' in file.headers["content-disposition"]
    marked = pd.read_csv(io.BytesIO(file.content))
    plain = pd.read_csv(io.BytesIO(client.get("/open/file/filled").content))
    pd.testing.assert_frame_equal(marked.drop(columns="price_trusted"), plain)
    assert np.flatnonzero(marked["price_trusted"] == "yes").tolist() == sorted(
        line["row"] for line in found
    )
    assert marked["price_trusted"].isna().tolist() == frame["price"].notna().tolist()


def test_the_pick_goes_into_the_sheet_that_was_filled(tmp_path):
    choices = Choices(target="y", sheet="data", way="chance")
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        pd.DataFrame({"a": [1]}).to_excel(book, sheet_name="notes", index=False)
        odd_target("").to_excel(book, sheet_name="data", index=False)
    table = files.read(tmp_path / "t.xlsx", sheet="data")
    result = fill_table(table, "y", method="ridge", guarantee="column")
    leave(result, table, tmp_path, {"choices": asdict(choices), "read_at": 0}, "")
    rows = AnswerRows(tmp_path, Preview(tmp_path / "t.xlsx", choices))
    book = rows.with_trusted({"trust": "0.2", "tolerance": "1"})
    marked = pd.read_excel(book, sheet_name=None, engine="openpyxl")
    assert marked["notes"].columns.tolist() == ["a"]
    assert (marked["data"]["y_trusted"] == "yes").any()


def test_columns_are_those_that_tell_most(filled):
    client, _, frame, _ = filled
    about, row = (
        client.get("/open/answers").json(),
        client.get("/open/rows?count=1").json()["rows"][0],
    )
    assert set(about["context"]) == set(frame.columns) - {"price"}
    assert about["context"][0] == "id"
    assert about["context"].index("size") < about["context"].index("note")
    assert len(row["cells"]) == len(about["context"])
    known = pd.to_numeric(frame["price"]).dropna()
    assert about["known"] == [known.min(), known.max()]


def test_a_row_comes_with_those_most_like_it(filled):
    client, _, frame, _ = filled
    row = client.get("/open/rows?count=1").json()["rows"][0]["row"]
    found = client.get(f"/open/row?row={row}").json()
    assert len(found["neighbours"]) == 6
    for one in found["neighbours"]:
        assert one["label"] == float(frame["price"][one["row"]])
    assert "price" not in found["columns"]
    assert [one["weight"] for one in found["neighbours"]] == sorted(
        (one["weight"] for one in found["neighbours"]), reverse=True
    )
    assert found["name"] == f"line {row + 2}"
    labelled = int(np.flatnonzero(frame["price"].notna())[0])
    known = client.get(f"/open/row?row={labelled}").json()
    assert known["known"] == float(frame["price"][labelled])
    assert labelled not in [one["row"] for one in known["neighbours"]]
    assert client.get(f"/open/row?row={len(frame)}").status == 400
    assert client.get("/open/row?row=x").status == 400


def test_downloads(filled):
    client, _folder, _, _ = filled
    table = client.get("/open/file/filled")
    assert 'filename="houses-filled.csv"' in table.headers["content-disposition"]
    assert table.content.decode().splitlines()[0].startswith("id,size,age")
    assert "price_filled" in table.content.decode().splitlines()[0]
    assert json.loads(client.get("/open/file/numbers").content)["target"] == "price"
    report = client.get("/open/file/show")
    assert report.headers["content-security-policy"].startswith(
        "sandbox allow-scripts; default-src 'none'"
    )
    assert HOSTILE not in report.content.decode()
    for name in ("..%2Fjob.json", "answers.feather", "secret"):
        assert client.get(f"/open/file/{name}").status == 404


def test_a_new_start_shows_the_answers_at_once(filled):
    _, folder, _, _ = filled
    with Served(Workspace(folder)) as served:
        client = Client(served)
        state = client.get("/open/state").json()
        assert (state["table"], state["choices"]["step"], state["run"]["state"]) == (
            "houses.csv",
            "answers",
            "none",
        )
        assert client.get("/open/rows").json()["total"] == 30


def odd_target(kind, n=150):
    """A target of dates, of limits, of two classes, of few labels, or of a table of which the fit sees a part."""
    x = np.random.default_rng(0).normal(size=n)
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta((100 * x).round(), unit="D")
    target = {
        "dates": pd.Series(days.strftime("%Y-%m-%d"), dtype=object),
        "limits": pd.Series(
            np.where(x < -0.5, "<0.5", np.round(x + 1, 2).astype(str)), dtype=object
        ),
        "classes": pd.Series(np.where(x > 0, HOSTILE, "no"), dtype=object),
    }.get(kind, pd.Series(x))
    empty = np.arange(n) >= 8 if kind == "few" else np.arange(n) % 3 == 0
    return pd.DataFrame({"x": x, "z": x[::-1], "y": target.mask(empty)})


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", ["dates", "limits", "classes", "few", "sample"])
def test_every_kind_of_answer_is_shown(kind, tmp_path):
    path, choices = tmp_path / "t.csv", Choices(target="y", way="chance")
    odd_target(kind, 400 if kind == "sample" else 150).to_csv(path, index=False)
    table = files.read(path)
    options = {
        "guarantee": "auto" if kind == "few" else "column",
        "sample": 100 if kind == "sample" else 20_000,
    }
    result = fill_table(table, "y", method="ridge", **options)
    leave(result, table, tmp_path, {"choices": {"target": "y", "ignore": []}, "read_at": 0}, "")
    rows = AnswerRows(tmp_path, Preview(path, choices))
    page = rows.page({"sort": "value", "count": "200"})
    one = rows.row(page["rows"][0]["row"], choices)
    json.dumps([rows.as_json(), page, one], allow_nan=False)
    assert len(page["rows"]) == len(rows) == len(result.answer)
    assert bool(rows.brief["trust"]["why_not"]) == (kind in ("few", "sample"))
    if kind == "dates":
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", one["value_text"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", one["neighbours"][0]["label"])
    if kind == "limits":
        assert page["rows"][0]["low"] is None  # open at the limit
    if kind == "classes":
        assert rows.page({"trust": "0.2"})["trusted"] > 0
        assert {line["value"] for line in page["rows"]} == {HOSTILE, "no"}


# ------------------------------------------------------------------------------------------- a fill, and its end


def test_a_fill_is_cancelled_and_what_was_there_stays(filled):
    client, folder, _, _ = filled
    before = client.get("/open/rows?count=200").json()
    state = client.get("/open/state").json()
    client.post("/open/fill", {"table": state["table"], "revision": state["revision"]})
    assert client.get("/open/state").json()["run"]["state"] == "running"
    assert client.post("/open/cancel").json()["run"]["state"] == "cancelled"
    assert client.get("/open/rows?count=200").json() == before
    assert not (folder / ".transduce" / "houses.csv" / "part").exists()


def test_a_fill_that_was_killed_with_the_program_is_told(folder):
    space = Workspace(folder, "houses.csv")
    choices = space.change("houses.csv", 0, {"target": "price", "way": "chance"}).choices
    run = Run(space.computed)
    run.start(space.path, choices)
    process = run._process
    process.stdin.close()  # as when the program is gone
    process.wait()
    assert process.returncode == 1
    while (
        space.computed / "job.json"
    ).exists():  # until this program has noticed; one that is gone does not
        time.sleep(0.01)
    (space.computed / "job.json").write_text("{}")
    assert Run(space.computed).progress.state == "interrupted"


def test_what_cannot_be_filled_is_said_at_once(opened):
    client, _ = opened
    settle(client, {"target": "kind", "way": "chance"})
    state = client.get("/open/state").json()
    refused = client.post("/open/fill", {"table": state["table"], "revision": state["revision"]})
    assert refused.status == 400
    assert "kind" in refused.json()["error"]


def test_what_to_do_is_said_in_words_of_the_page(tmp_path):
    frame = pd.DataFrame({"x": range(40), "y": [*map(float, range(20)), "?", "?", *[None] * 18]})
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    with Served(Workspace(tmp_path, "t.xlsx")) as at:
        client = Client(at)
        settle(client, {"target": "y", "way": "chance"})
        state = client.get("/open/state").json()
        said = client.post(
            "/open/fill", {"table": state["table"], "revision": state["revision"]}
        ).json()["error"]
    assert (
        f"take them as empty with {PAGE_CONTROLS['missing']}, or ask for classes with “Its values are classes”"
        in said
    )
    assert not re.search(r"missing=|task=|--", said)
    for asked, empty in (({"missing": ["?"]}, 20), ({"task": "classification"}, 18)):
        choices = Choices(target="y", way="chance", **asked)
        target = Preview(tmp_path / "t.xlsx", choices).target(choices)
        assert (target.missing.sum(), target.task == "classification") == (empty, "task" in asked)


def test_every_option_that_is_named_has_its_place_on_the_page():
    static = pathlib.Path(inspect.getfile(Choices)).with_name("static")
    pages = "".join(
        path.read_text("utf-8") for path in static.iterdir() if path.suffix in (".js", ".html")
    )
    pages += "".join(card.title for card in CARDS.values())
    for name, task in product(PAGE_CONTROLS, ("classification", "regression")):
        assert re.search(r"“(.*)”", spell_for_page(name, task))[1] in pages
    assert spell_for_page("budget_seconds", 9) == "`--budget 9` on the command line"


# ------------------------------------------------------------------------------------------- labelling, and back


def test_a_session_is_a_table_to_fill():
    session, truth = new_session()
    with session:
        for row in (3, 17, 40):
            session.answer(str(truth[row]), row=row)
        table, labels = session.to_fill()
        assert labels == Estimated()
        assert table["relevant"].dropna().to_dict() == {row: truth[row] for row in (3, 17, 40)}
        size = session.state.block_size(0.9)
        for _ in range(size):
            session.answer(str(truth[session.propose("audit").row]))
        table, labels = session.to_fill()
        assert labels == Drawn("relevant_random")
        marked = np.flatnonzero(table["relevant_random"]).tolist()
        assert marked == sorted(
            session.state.drawn[-9:]
        )  # the first draws teach, where labels are few
        later = session.propose("learn").row
        session.answer(str(truth[later]))  # on purpose, after the draw
        assert pd.isna(session.to_fill()[0]["relevant"][later])


def test_labels_are_put_into_the_table(folder):
    table, choices = files.read(folder / "houses.csv"), Choices(target="price", way="chance")
    rows = np.flatnonzero(table.frame["price"].isna())[:3].tolist()
    new, said = GivenLabels(dict.fromkeys(rows, 1000.5), None).put_into(table, choices)
    assert new.frame["price"].iloc[rows].tolist() == [1000.5] * 3
    assert table.frame["price"].iloc[rows].isna().all()
    assert said.flags == {"shift": "estimate"}
    new, said = GivenLabels({rows[0]: 1.0}, rows).put_into(table, choices)
    assert said.flags == {"random_labels": "price_random"}
    assert np.flatnonzero(new.frame["price_random"]).tolist() == rows


def test_tables_that_differ_in_their_ending_have_journals_of_their_own(tmp_path):
    frame = pd.DataFrame(
        {"x": np.arange(40.0), "y": np.where(np.arange(40) < 20, np.arange(40.0), np.nan)}
    )
    frame.to_csv(tmp_path / "flats.csv", index=False)
    frame.to_excel(tmp_path / "flats.xlsx", index=False)
    frame.to_csv(tmp_path / "flats.old.csv", index=False)
    with Served(Workspace(tmp_path)) as served:
        client = Client(served)
        for name in ("flats.csv", "flats.xlsx", "flats.old.csv"):
            client.post("/open/open", {"name": name})
            settle(client, {"target": "y"})
            assert client.post("/open/label").status == 200
            row = client.get("/api/view").json()["proposal"]["row"]
            assert client.post("/api/answer", {"row": row, "label": 1.0}).status == 200
        client.post("/open/open", {"name": None})
        listed = [table["name"] for table in client.get("/open/state").json()["tables"]]
        assert sorted(listed) == [
            "flats.csv",
            "flats.old.csv",
            "flats.xlsx",
        ]  # no journal is a table
    journals = {path.name for path in tmp_path.glob("*.jsonl")}
    assert journals == {f"{stem}-y-labels.jsonl" for stem in ("flats", "flats-xlsx", "flats-old")}
    with pytest.raises(
        ValueError, match=r"flats-y-labels\.jsonl is about flats\.csv, not flats\.xlsx"
    ):
        Session(tmp_path / "flats.xlsx", "y", journal=tmp_path / "flats-y-labels.jsonl")


def test_rows_that_a_fill_names_come_first(filled):
    client, _, _, _ = filled
    named = client.get("/open/answers").json()["advised"]
    assert len(named) == 10
    assert client.post("/open/label").status == 200
    for row in named[:3]:
        shown = client.get("/api/view").json()["proposal"]
        assert (shown["row"], "last fill named" in shown["why"]) == (row, True)
        client.post("/api/skip")
    client.post("/open/open", {"name": "houses.csv"})


@pytest.mark.slow
def test_from_the_answers_to_labelling_and_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "transduce.model_selection.methods.TREES", 200
    )  # as a process of its own has them
    rng = np.random.default_rng(1)
    x = rng.normal(size=120)
    frame = pd.DataFrame({"x": x, "other": rng.normal(size=120)})
    frame["y"] = np.where(np.arange(120) < 60, 3 * x, np.nan)
    frame.to_csv(tmp_path / "t.csv", index=False)
    with Served(Workspace(tmp_path, "t.csv")) as served:
        client = Client(served)
        settle(client, {"target": "y", "way": "unknown"})
        fill(client)
        assert client.post("/open/label", {"draw": True}).status == 200
        assert client.get("/api/about").json()["home"] == "/"
        for _ in range(30):
            shown = client.get("/api/view").json()
            assert shown["proposal"]["random"]
            row = shown["proposal"]["row"]
            client.post("/api/answer", {"row": row, "label": 3 * float(x[row])})
            if shown["certificate"]["intervals"]["complete"]:
                break
        state = client.post("/open/back").json()
        assert state["choices"]["labels"] > 0
        for reply in (
            client.get("/api/view"),
            client.post("/api/skip"),
        ):  # of a page that is being left
            assert (reply.status, "has ended" in reply.json()["ended"]) == (200, True)
        assert client.post("/open/back").json()["choices"]["labels"] == state["choices"]["labels"]
        fill(client)
        about = client.get("/open/answers").json()
        changes = about["changes"]
        assert changes["guarantee"] == ["approximate", "exact"]
        assert changes["labels"] > 0
        assert changes["quality"] is None  # too few draws measure nothing
        file = ".transduce/t.csv/t-labelled.csv"
        assert (
            about["again"]
            == f"transduce fill {file} --target y_label --random-labels y_random --ignore y"
        )
        assert (
            CliRunner()
            .invoke(app, [*shlex.split(about["again"])[1:], "--out", "again.csv"])
            .exit_code
            == 0
        )
        answers = client.get("/open/rows?count=200&sort=row").json()["rows"]
        again = pd.read_csv("again.csv").iloc[[line["row"] for line in answers]]
        # The file has the column y besides, so that folds and trees are drawn in another order; values spread by 3.
        np.testing.assert_allclose(
            again["y_label_filled"], [line["value"] for line in answers], atol=2e-3
        )
        assert pd.read_csv(tmp_path / "t.csv")["y"].isna().sum() == 60


def test_names_that_are_not_utf8_do_no_harm(tmp_path):
    """A folder may hold a file whose name no browser can be told as it is."""
    messy()[0].to_csv(tmp_path / "t.csv", index=False)
    try:
        open(bytes(tmp_path) + b"/caf\xe9.csv", "wb").close()
    except OSError:
        pytest.skip("this system takes names in UTF-8 only")
    with Served(Workspace(tmp_path, "t.csv")) as served:
        client = Client(served)
        assert client.get("/open/state").status == 200
        assert client.post("/open/open", {"name": "t.csv"}).status == 200


def test_a_table_that_is_closed_while_another_tab_looks_is_seen_whole_or_not(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("x\n1\n")
    space = Workspace(tmp_path, "t.csv")
    closing = threading.Thread(target=space.open, args=(None,))

    def close_meanwhile(card):
        if closing.ident is None:
            closing.start()
            closing.join(0.2)
        return asdict(card)

    monkeypatch.setattr("transduce.app.page.server.asdict", close_meanwhile)
    state = OpenServer(space).state()
    closing.join()
    assert (state["table"], state["revision"]) == ("t.csv", 0)
    assert OpenServer(space).state()["table"] is None


def test_a_table_that_is_deleted_while_all_are_listed_is_not_listed(tmp_path, monkeypatch):
    for name in ("gone.csv", "here.csv"):
        (tmp_path / name).write_text("x\n1\n")

    def delete_one(path):
        if path.name == "gone.csv":
            path.unlink()
        return False

    monkeypatch.setattr("transduce.app.page.workspace.is_journal", delete_one)
    assert [table["name"] for table in Workspace(tmp_path).tables()] == ["here.csv"]


def test_a_forecast_is_an_event_and_no_name_of_a_stage(monkeypatch):
    monkeypatch.setattr("transduce.app.page.run.time", SimpleNamespace(time=lambda: 100.0))
    progress = Progress("running", began=98.0)
    progress.hear({"stage": "forecast: 7 s", "share": 1.0})
    assert progress.forecast is None
    assert progress.stages == {"forecast: 7 s": 1.0}
    progress.hear({"forecast": 7.0})
    assert progress.forecast == 9.0
    assert progress.stages == {"forecast: 7 s": 1.0}


@pytest.mark.slow
def test_a_fill_tells_its_forecast_to_the_page(tmp_path):
    frame = pd.DataFrame({"x": np.arange(40.0), "y": [*np.arange(30.0), *[None] * 10]})
    frame.to_csv(tmp_path / "table.csv", index=False)
    choices = asdict(Choices(target="y", way="chance"))
    job = {"path": str(tmp_path / "table.csv"), "choices": choices}
    (tmp_path / "job.json").write_text(json.dumps(job))
    process = [sys.executable, "-m", "transduce.app.page.run", str(tmp_path)]
    with subprocess.Popen(
        process, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as filling:
        lines = [json.loads(line) for line in filling.stdout]
    assert [set(line) for line in lines if "forecast" in line] == [{"forecast"}]
    stages = [line["stage"] for line in lines if "stage" in line]
    assert "answers" in stages
    assert not [name for name in stages if "forecast" in name]


def test_a_column_that_the_table_does_not_have_is_labelled_and_filled(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=60), "empty": [None] * 60})
    frame["given"] = ["a", "b", None] * 20
    frame.to_csv(tmp_path / "rows.csv", index=False)
    space = Workspace(tmp_path, "rows.csv")
    with Served(space) as served:
        client = Client(served)

        def begin(**body):
            about = {"table": "rows.csv", "revision": space.saved.revision}
            return client.post("/open/begin", {**about, **body})

        refusals = {
            "Give the column a name.": {"target": "  ", "classes": []},
            "has labels already": {"target": "given", "classes": []},
            "has a column 'size' already": {"target": "size", "classes": [], "added": True},
            "Name at least two classes": {"target": "new", "classes": ["yes", " "]},
            "classes is a list of names": {"target": "new", "classes": "yes"},
            "at most 200 classes": {"target": "new", "classes": [str(i) for i in range(201)]},
        }
        for words, body in refusals.items():
            reply = begin(**body)
            assert reply.status == 400
            assert words in reply.json()["error"]
        assert space.saved.choices.target is None
        assert begin(target="wide", classes=["ja", "nein"], added=True).status == 200
        for row in range(30):
            code = int(frame["size"][row] < 0)
            body = {"row": row, "class": code}
            assert client.post("/api/answer", body).status == 200
        assert client.post("/open/back").status == 200
        preview = client.get("/open/preview").json()
        assert preview["targets"] == ["wide", "given"]
        assert preview["without_label"] == ["empty"]
    job = {"path": str(space.path), "choices": asdict(space.saved.choices)}
    (space.computed / "job.json").write_text(json.dumps(job))
    work(space.computed, lambda name, share: None)
    filled = pd.read_csv(space.computed / "result" / "rows-filled.csv")
    assert list(filled.columns[:4]) == ["size", "empty", "given", "wide_filled"]
    assert set(filled["wide_filled"]) == {"ja", "nein"}
    again = json.loads((space.computed / "result" / "numbers.json").read_text())["again"]
    assert "--ignore" not in again


def test_every_kind_of_table_can_be_chosen():
    """The dialog of the browser hides files whose ending the page does not name."""
    folder = pathlib.Path(inspect.getfile(OpenServer)).parent
    page = (folder / "static" / "open.html").read_text("utf-8")
    offered = re.search(r'id="file" accept="([^"]*)"', page)[1].split(",")
    assert set(offered) == {*files.all_endings(), *databases.ENDINGS, ".gz", ".zip"}
