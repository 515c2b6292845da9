"""A database on the page: its tables are chosen like sheets, and a workbook is taken away."""

from __future__ import annotations

import sqlite3

import pandas as pd
import pytest

pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")
from tests.app.page.serving import Client, Served
from tests.app.page.test_open import fill, messy, settle
from transduce.app.page.workspace import Workspace


@pytest.fixture
def folder(tmp_path):
    """A folder with a database of two tables, and a file that is only called like one."""
    houses = messy()[0].drop(columns=["note", "sold"])
    houses["price"] = houses["price"].astype(float)
    with sqlite3.connect(tmp_path / "lab.sqlite") as connection:
        houses.to_sql("houses", connection, index=False)
        pd.DataFrame({"about": ["by", "on"]}).to_sql("notes", connection, index=False)
    connection.close()
    (tmp_path / "Thumbs.db").write_bytes(b"pictures")
    return tmp_path


def test_a_database_is_filled_and_labelled(folder):
    with Served(Workspace(folder)) as served:
        client = Client(served)
        listed = [table["name"] for table in client.get("/open/state").json()["tables"]]
        assert listed == ["lab.sqlite"]
        client.post("/open/open", {"name": "lab.sqlite"})
        preview = client.get("/open/preview").json()
        assert (preview["rows"], preview["sheets_are"]) == (90, "table")
        assert preview["sheets"] == ["houses", "notes"]
        assert client.post("/open/example").status == 200  # another table, and back
        client.post("/open/open", {"name": "lab.sqlite"})
        assert [*folder.glob("lab*.transduce")] == []  # nothing was said yet
        settle(client, {"target": "price", "way": "chance", "guarantee": "column"})
        fill(client)
        again = client.get("/open/answers").json()["again"]
        assert again.startswith("transduce fill lab.sqlite::houses --target price")
        for name in ("filled", "trusted?trust=0.1&tolerance=50000"):
            reply = client.get(f"/open/file/{name}")
            assert f"lab-{name[:6]}" in reply.headers["content-disposition"]
            assert reply.headers["content-disposition"].endswith('.xlsx"')
        state = client.get("/open/state").json()
        about = {"table": state["table"], "revision": state["revision"]}
        assert client.post("/open/label", about).status == 200
        assert client.get("/api/about").json()["n_rows"] == 90
        client.post("/open/back", about)
    assert [path.name for path in folder.glob("*.jsonl")] == [
        "lab-sqlite-houses-price-labels.jsonl"
    ]
