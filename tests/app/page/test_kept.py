"""What the page keeps of a table: said, private, and deleted from the page."""

from __future__ import annotations

import stat
import sys

import pytest

pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")

from tests.app.page.serving import Client, Served
from tests.app.page.test_lists import act, laboratory
from tests.app.page.test_open import settle
from tests.app.page.test_suspects import lay_down
from transduce.app.labelling import Session
from transduce.app.page.workspace import Workspace


@pytest.fixture
def client(tmp_path, no_figures):
    lay_down(tmp_path, laboratory()[0])
    with Served(Workspace(tmp_path, "t.csv")) as served:
        yield Client(served)


def kept(client):
    return {one["what"]: one for one in client.get("/open/kept").json()}


def test_all_that_is_kept_is_said_with_its_place(client, tmp_path):
    with Session(tmp_path / "t.csv", "y") as session:
        session.answer(1.0, row=session.propose().row)
    found = kept(client)
    assert {what: one["place"] for what, one in found.items()} == {
        "computed": ".transduce/t.csv",
        "said": "t.csv.transduce",
        "labels": "t-y-labels.jsonl",
    }
    assert all(one["bytes"] > 0 for one in found.values())


def test_what_was_computed_is_deleted_and_nothing_else(client, tmp_path):
    before = (tmp_path / "t.csv").read_bytes()
    state = act(client, "delete", what="computed", name="t.csv").json()
    assert state["filled"] is None
    assert state["choices"]["target"] == "y"
    assert not (tmp_path / ".transduce" / "t.csv").exists()
    assert (tmp_path / "t.csv").read_bytes() == before
    assert set(kept(client)) == {"said"}
    assert client.get("/open/answers").status == 400


def test_what_was_said_goes_with_what_was_computed(client, tmp_path):
    state = act(client, "delete", what="said", name="t.csv.transduce").json()
    assert state["choices"]["target"] is None
    assert sorted(path.name for path in tmp_path.iterdir()) == [".transduce", "t.csv"]
    assert kept(client) == {}


def test_a_table_of_the_user_is_never_deleted(client, tmp_path):
    refused = act(client, "delete", what="copy", name="t.csv")
    assert refused.status == 400
    for name in ("../t.csv", "t.csv", "other.jsonl"):
        assert act(client, "delete", what="labels", name=name).status == 400
    assert (tmp_path / "t.csv").exists()


def test_labels_of_another_table_are_not_its_own(client, tmp_path):
    laboratory()[0].to_csv(tmp_path / "u.csv", index=False)
    with Session(tmp_path / "u.csv", "y") as session:
        session.answer(1.0, row=session.propose().row)
    assert "labels" not in kept(client)


def drop(client, name, content):
    sent = {"origin": client.origin, "content-type": "application/octet-stream"}
    return client.ask("POST", f"/open/drop?name={name}", content, sent).json()["name"]


def test_a_dropped_copy_is_deleted_with_all_that_was_kept_of_it(tmp_path):
    with Served(Workspace(tmp_path)) as served:
        client = Client(served)
        name = drop(client, "lab.csv", laboratory()[0].to_csv(index=False).encode())
        act(client, "open", name=name)
        assert set(kept(client)) == {"copy"}
        settle(client, {"target": "y"})
        state = act(client, "delete", what="copy", name=name).json()
        assert state["table"] is None
        assert state["tables"] == []
    assert [path.name for path in tmp_path.iterdir()] == [".transduce"]


def test_a_copy_that_was_edited_is_the_users(tmp_path):
    with Served(Workspace(tmp_path)) as served:
        client = Client(served)
        name = drop(client, "lab.csv", b"a,b\n1,2\n3,\n")
        (tmp_path / name).write_text("a,b\n1,2\n3,\n5,6\n")
        act(client, "open", name=name)
        assert kept(client) == {}


@pytest.mark.skipif(sys.platform == "win32", reason="Rights are those of POSIX.")
def test_the_folder_is_open_to_its_owner_alone_whatever_the_table(tmp_path):
    laboratory()[0].to_csv(tmp_path / "lab.csv", index=False)
    (tmp_path / "lab.csv").chmod(0o644)
    with Served(Workspace(tmp_path, "lab.csv")) as served:
        client = Client(served)
        settle(client, {"target": "y", "way": "chance"})
        assert act(client, "list", kind="random", number=5).status == 200
    for folder in (tmp_path / ".transduce", tmp_path / ".transduce" / "lab.csv"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_an_example_is_opened_to_try_the_page_and_can_be_deleted(tmp_path):
    with Served(Workspace(tmp_path)) as served:
        client = Client(served)
        state = act(client, "example").json()
        assert state["table"] == "example-houses.csv"
        assert client.get("/open/preview").json()["targets"] == ["price"]
        assert set(kept(client)) == {"copy"}
