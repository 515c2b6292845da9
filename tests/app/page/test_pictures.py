"""A folder of pictures becomes a table, by a click."""

from __future__ import annotations

import pandas as pd
import pytest

pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")
from PIL import Image

from tests.app.page.serving import Client, Served
from transduce.app.page.workspace import Workspace
from transduce.app.tables.pictures import pictures_below, table_of_pictures


def draw(path):
    path.parent.mkdir(exist_ok=True, parents=True)
    Image.new("L", (8, 8), hash(path.name) % 200).save(path)


def test_names_are_in_order_and_links_are_passed_over(tmp_path):
    for name in (
        "cell-10.png",
        "cell-2.PNG",
        "b/cell-1.jpg",
        ".hidden/x.png",
        "b/.x.png",
        "notes.txt",
    ):
        draw(tmp_path / name) if name != "notes.txt" else (tmp_path / name).touch()
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    draw(outside / "far.png")
    (tmp_path / "link").symlink_to(outside)
    (tmp_path / "one.png").symlink_to(outside / "far.png")
    found = pictures_below(tmp_path, 100)
    assert found == ["b/cell-1.jpg", "cell-2.PNG", "cell-10.png"]
    assert len(pictures_below(tmp_path, 2)) == 2
    table = table_of_pictures(found)
    assert table["folder"].tolist() == ["b", "", ""]
    assert table_of_pictures(found[1:]).columns.tolist() == ["picture"]


def test_a_click_makes_a_table_of_them(tmp_path):
    for number in range(5):
        draw(tmp_path / f"{number}.png")
    with Served(Workspace(tmp_path)) as served:
        client = Client(served)
        assert client.get("/open/state").json()["pictures"] == 5
        state = client.post("/open/pictures").json()
        assert state["table"] == "pictures.csv"
        columns = client.get("/open/preview").json()["columns"]
        assert [(column["name"], column["kind"]) for column in columns] == [("picture", "picture")]
        assert client.get("/open/picture/0/0").headers["content-type"] == "image/png"
        client.post("/open/open", {"name": None})
        assert client.post("/open/pictures").json()["table"] == "pictures-2.csv"
    assert len(pd.read_csv(tmp_path / "pictures.csv")) == 5


def test_a_folder_without_pictures_has_no_such_table(tmp_path):
    with Served(Workspace(tmp_path)) as served:
        client = Client(served)
        assert client.get("/open/state").json()["pictures"] == 0
        assert client.post("/open/pictures").status == 400
    assert list(tmp_path.iterdir()) == []
