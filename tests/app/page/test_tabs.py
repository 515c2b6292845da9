"""Two tables in two tabs: each tab has a table of its own, and one is labelled at a time."""

from __future__ import annotations

import pytest

pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")
from tests.app.page.serving import Client, Served
from tests.app.page.test_open import messy
from transduce.app.page.workspace import Saved, Workspace


class Tab:
    """A tab of a browser, which says which table is its own."""

    def __init__(self, client, table=None):
        self.client, self.table, self.session = client, table, None

    @property
    def headers(self):
        named = {} if self.table is None else {"x-transduce-table": self.table}
        return named if self.session is None else {**named, "x-transduce-session": self.session}

    def get(self, path):
        return self.client.get(path, self.headers)

    def act(self, path, **body):
        state = self.get("/open/state").json()
        about = {"table": state["table"] or "", "revision": state.get("revision", 0)}
        reply = self.client.post(f"/open/{path}", about | body, self.headers)
        if reply.status == 200:
            self.table = reply.json()["table"] or ""
        return reply


@pytest.fixture
def tabs(tmp_path):
    """A tab at each of two tables, of which the second one was opened last."""
    for name, seed in (("one", 0), ("two", 1)):
        messy(seed=seed)[0].to_csv(tmp_path / f"{name}.csv", index=False)
    with Served(Workspace(tmp_path)) as served:
        client = Client(served)
        first, second = Tab(client), Tab(client)
        first.act("open", name="one.csv")
        second.act("open", name="two.csv")
        yield first, second


def test_each_tab_has_its_own_table(tabs, tmp_path):
    first, second = tabs
    first.act("change", changes={"target": "price"})
    second.act("change", changes={"target": "age"})
    assert Saved.read(tmp_path / "one.csv.transduce").choices.target == "price"
    assert Saved.read(tmp_path / "two.csv.transduce").choices.target == "age"
    for tab, name in ((first, "one.csv"), (second, "two.csv"), (first, "one.csv")):
        assert tab.get("/open/state").json()["table"] == name
        assert tab.get("/open/preview").status == 200
    first.act("open", name=None)
    assert first.get("/open/state").json()["table"] is None
    assert second.get("/open/state").json()["choices"]["target"] == "age"
    assert first.client.get("/open/state?table=one.csv").json()["table"] == "one.csv"


def test_a_tab_whose_table_is_gone_shows_all_tables(tabs, tmp_path):
    first, second = tabs
    (tmp_path / "one.csv").unlink()
    assert first.get("/open/state").json()["table"] is None
    assert first.get("/open/preview").status == 400
    assert second.get("/open/preview").status == 200


@pytest.mark.parametrize("name", ["../one.csv", "%2Fetc%2Fpasswd", "none.csv", "one.csv/x"])
def test_no_tab_names_a_file_outside_of_the_folder(tabs, name):
    first, _ = tabs
    first.table = name
    assert first.get("/open/state").json()["table"] is None


def label_of(view):
    """Return a label of the row that is shown, as the labelling page sends it."""
    return {"version": view["version"], "row": view["proposal"]["row"], "label": 200_000}


def test_one_table_is_labelled_at_a_time(tabs, tmp_path):
    first, second = tabs
    first.act("change", changes={"target": "price"})
    second.act("change", changes={"target": "price"})
    assert first.act("label").status == 200
    first.session = first.get("/api/about").json()["session"]
    view = first.get("/api/view").json()
    assert second.act("open", name="two.csv").status == 200  # it looks at its own table
    assert first.get("/api/view").status == 200
    assert second.act("label").status == 200
    second.session = second.get("/api/about").json()["session"]
    late = first.client.post("/api/answer", label_of(view), first.headers)
    assert "another tab" in late.json()["ended"]
    assert first.act("back").status == 200  # which does not end the session of the other tab
    label = label_of(second.get("/api/view").json())
    taken = second.client.post("/api/answer", label, second.headers)
    assert taken.json()["progress"]["labelled"] == 1
    second.act("back")
    assert Saved.read(tmp_path / "one.csv.transduce").choices.labels == 0
    assert Saved.read(tmp_path / "two.csv.transduce").choices.labels > 0


def test_labels_are_taken_where_another_tab_ends_their_session(tabs, tmp_path):
    """Who goes back to the table then fills with them, and is not asked to label once more."""
    first, second = tabs
    for tab in tabs:
        tab.act("change", changes={"target": "price"})
    first.act("label")
    first.session = first.get("/api/about").json()["session"]
    label = label_of(first.get("/api/view").json())
    assert first.client.post("/api/answer", label, first.headers).status == 200
    assert second.act("label").status == 200
    assert Saved.read(tmp_path / "one.csv.transduce").choices.labels > 0
    assert second.get("/open/state").json()["table"] == "two.csv"
    assert first.act("back").json()["choices"]["labels"] > 0
    (tmp_path / "two.csv").unlink()  # whose session ends all the same
    first.session = None
    assert first.act("label").status == 200
    assert first.get("/api/view").json()["progress"]["labelled"] >= 1
    first.act("back")


def test_a_table_with_a_percent_sign_is_found_by_links_and_headers(tmp_path):
    messy(seed=0)[0].to_csv(tmp_path / "a%20b.csv", index=False)
    messy(seed=1)[0].to_csv(tmp_path / "other.csv", index=False)
    named = "a%2520b.csv"
    with Served(Workspace(tmp_path)) as served:
        tab = Tab(Client(served))
        tab.act("open", name="a%20b.csv")
        tab.table = None
        tab.act("open", name="other.csv")
        assert Tab(tab.client, named).get("/open/state").json()["table"] == "a%20b.csv"
        of_link = tab.client.get(f"/open/state?table={named}", {}).json()
        assert of_link["table"] == "a%20b.csv"
