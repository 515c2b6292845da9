"""A table that is too large for memory, filled part by part from the page."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")

from tests.app.page.serving import Client, Served
from tests.app.page.test_open import fill, settle
from transduce.app.page.workspace import Workspace
from transduce.app.tables import glances


@pytest.fixture
def client(tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(600, 2)), columns=["a", "b"])
    frame["y"] = (2.0 * frame["a"]).round(3).where(np.arange(600) % 5 == 0)
    frame.to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.setattr(glances, "memory_free", lambda: 1000)
    with Served(Workspace(tmp_path, "t.csv")) as served:
        yield Client(served)


def test_the_page_says_what_is_in_the_whole_file(client):
    preview = client.get("/open/preview").json()
    assert (preview["rows"], preview["in_parts"], preview["targets"]) == (600, True, ["y"])
    columns = {column["name"]: column for column in preview["columns"]}
    assert columns["y"]["empty"] == 480
    assert client.get("/open/head").json()["names"] == ["a", "b", "y"]
    settle(client, {"target": "y", "way": "chance"})
    outlook = client.get("/open/outlook").json()
    assert outlook["draw"] is False
    assert outlook["one_table"] is None
    assert not any("rows together" in line for line in outlook["will_not"])


@pytest.mark.slow
def test_it_is_filled_into_a_folder(client, tmp_path):
    settle(client, {"target": "y", "way": "chance"})
    for _ in range(2):  # a second time, although the folder is complete
        fill(client)
        brief = client.get("/open/answers").json()
        assert brief["parts"] == {"folder": "t-filled", "n_parts": 1}
        assert brief["counts"]["unlabelled"] == 480
        assert brief["again"].endswith("--out t-filled/")
    filled = pd.read_csv(next((tmp_path / "t-filled").glob("part-*")))
    assert filled["y_filled"].notna().all()
    assert client.get("/open/rows").json()["total"] == 0
    assert client.get("/open/file/report").status == 200
    assert client.get("/open/file/filled").status == 404
