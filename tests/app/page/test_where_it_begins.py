"""Where a table begins and ends, said on the page by a click on the first rows of its file."""

from __future__ import annotations

import openpyxl
import pytest

pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")

from tests.app.page.serving import Client, Served
from tests.app.page.test_lists import act
from tests.app.page.test_open import fill, settle
from transduce.app.labelling import Session
from transduce.app.page.workspace import Choices, Workspace

TITLED = "A clinic;;\n\nage;size;y\nyears;cm;mg\n" + "".join(
    f"{row};{row % 7};{'' if row % 3 else row}\n" for row in range(60)
)


@pytest.fixture(params=["csv", "xlsx"])
def client(tmp_path, request):
    path = tmp_path / f"t.{request.param}"
    path.write_text(TITLED)
    if request.param == "xlsx":
        book = openpyxl.Workbook()
        for place, line in enumerate(TITLED.splitlines(), start=1):
            for column, cell in enumerate(line.split(";"), start=1):
                if cell:
                    value = int(cell) if cell.isdecimal() else cell
                    book.active.cell(place, column, value)
        book.save(path)
    with Served(Workspace(tmp_path, path.name)) as served:
        yield Client(served)


def names(client):
    return [column["name"] for column in client.get("/open/preview").json()["columns"]]


def test_the_first_rows_come_as_they_stand(client):
    rows = client.get("/open/raw").json()
    assert rows[0] == {"row": 1, "cells": ["A clinic", "", ""]}
    assert rows[1] == {"row": 3, "cells": ["age", "size", "y"]}
    assert len(rows) == 25


def test_a_click_says_where_the_names_are(client):
    assert names(client) == ["age", "size", "y"]
    assert settle(client, {"header": 4}).status == 200
    assert names(client) == ["years", "cm", "mg"]
    assert client.get("/open/preview").json()["lines"][0] == 5
    settle(client, {"header": 3, "rows": "5:34"})
    assert client.get("/open/preview").json()["rows"] == 30
    settle(client, {"header": None, "rows": None})
    assert names(client) == ["age", "size", "y"]


def test_rows_that_cannot_be_are_refused(client):
    before = client.get("/open/state").json()["choices"]
    for changes in ({"rows": "9:2"}, {"rows": "all"}, {"header": -1}, {"header": 2.5}):
        assert settle(client, changes).status == 400, changes
    assert client.get("/open/state").json()["choices"] == before


def test_the_fill_and_its_command_know_where_the_table_is(client, no_figures):
    settle(client, {"header": 4, "target": "mg", "way": "chance"})
    fill(client)
    found = client.get("/open/answers").json()
    assert (found["target"], found["counts"]["labelled"]) == ("mg", 20)
    assert "--header 4" in found["again"]


def test_values_that_were_given_to_rows_stay_with_these_rows(client, tmp_path):
    path = next(path for path in tmp_path.iterdir() if path.suffix in (".csv", ".xlsx"))
    settle(client, {"target": "y", "way": "chance"})
    with Session(path, "y") as session:
        session.answer(1.0, row=session.propose().row)
    refused = settle(client, {"header": 4})
    assert refused.status == 400
    assert "Delete them first" in refused.json()["error"]
    labels = next(tmp_path.glob("*-labels.jsonl"))
    assert act(client, "delete", what="labels", name=labels.name).status == 200
    assert settle(client, {"header": 4, "target": None}).status == 200


def test_the_labelling_page_has_the_same_rows(client):
    settle(client, {"header": 4, "target": "mg", "way": "chance"})
    assert act(client, "label", draw=False).status == 200
    assert client.get("/api/about").json()["n_rows"] == 60
    act(client, "open", name=None)  # so that its journal is closed


def test_choices_name_the_layout():
    layout = Choices(header=4, rows="6:9").layout
    assert (layout.header, layout.first, layout.last) == (4, 6, 9)
