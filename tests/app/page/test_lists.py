"""A list of rows to take away, and what comes back in it: matched by row and checked for slips."""

from __future__ import annotations

import io

import numpy as np
import openpyxl
import pandas as pd
import pytest

pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")

from tests.app.page.serving import Client, Served
from tests.app.page.test_open import settle
from transduce.app.labelling import Session
from transduce.app.labelling.journal import Journal
from transduce.app.page import lists
from transduce.app.page.corrected_copy import rows_in_copy
from transduce.app.page.run import GivenLabels
from transduce.app.page.workspace import Saved, Workspace


def laboratory(kind="numbers", n=200):
    random = np.random.default_rng(0)
    x = random.normal(size=n)
    if kind == "numbers":
        y = pd.Series((20.0 + 5.0 * x).round(1))
    else:
        y = pd.Series(np.where(x > 0, "positive", "negative"), dtype=object)
    frame = pd.DataFrame({"patient": [f"P{row:03d}" for row in range(n)], "x": x.round(3)})
    return frame.assign(y=y.where(np.arange(n) < 60)), y


@pytest.fixture
def served(tmp_path, request):
    kind = getattr(request, "param", "numbers")
    frame, truth = laboratory(kind)
    frame.to_csv(tmp_path / "lab.csv", index=False)
    with Served(Workspace(tmp_path, "lab.csv")) as at:
        client = Client(at)
        settle(client, {"target": "y", "way": "chance"})
        yield client, tmp_path, truth


def act(client, path, **body):
    state = client.get("/open/state").json()
    about = {"table": state["table"], "revision": state.get("revision", 0)}
    return client.post(f"/open/{path}", about | body)


def bring_back(client, rows, name="list.xlsx"):
    buffer = io.BytesIO()
    if name.endswith(".xlsx"):
        rows.to_excel(buffer, index=False)
    else:
        rows.to_csv(buffer, index=False)
    sent = {"origin": client.origin, "content-type": "application/octet-stream"}
    return client.ask("POST", f"/open/returned?name={name}", buffer.getvalue(), sent)


def take_list(client, number=19):
    assert act(client, "list", kind="random", number=number).status == 200
    file = client.get("/open/file/list")
    assert "-to-fill-in.xlsx" in file.headers["content-disposition"]
    return pd.read_excel(io.BytesIO(file.content), engine="openpyxl"), file.content


def test_a_list_of_random_rows_comes_back(served):
    client, folder, truth = served
    rows, _ = take_list(client)
    assert rows.columns.tolist() == ["row_number", "line", "patient", "x", "y"]
    assert (rows["line"] == rows["row_number"] + 1).all()  # as a spreadsheet counts, and the page
    assert len(rows) == 19
    assert rows["y"].isna().all()
    assert (rows["row_number"] > 60).all()  # only rows without a value are drawn
    rows["y"] = truth[rows["row_number"] - 1].to_numpy()
    rows = rows.sample(frac=1.0, random_state=0)  # sorted otherwise in the laboratory
    review = bring_back(client, rows).json()
    assert [row["problem"] for row in review["rows"]] == [""] * 19
    assert (review["random"], review["listed"]) == (True, 19)
    state = act(client, "take", ending=".xlsx", odd=[]).json()
    assert state["choices"]["labels"] > 0
    given = GivenLabels.read(folder / ".transduce" / "lab.csv")
    assert given.labels == dict(zip((rows["row_number"] - 1).tolist(), rows["y"], strict=True))
    assert sorted(given.drawn) == sorted(given.labels)
    assert state["way"] == "drawn"  # these calibrate, however the other values came about
    column = client.get("/open/preview").json()["columns"][2]
    assert column["empty"] == 140 - 19


def test_slips_are_found_and_taken_only_if_named(served):
    client, folder, truth = served
    rows, _ = take_list(client)
    rows["y"] = truth[rows["row_number"] - 1].to_numpy().astype(object)
    numbers = rows["row_number"].tolist()
    rows.loc[0, "y"] = rows.loc[0, "y"] * 100
    rows.loc[1, "y"] = f"{rows.loc[1, 'y']} mg/dl"
    rows.loc[2, "y"] = "haemolysed"
    rows.loc[3, "row_number"] = 5  # which has a value, and was not drawn
    rows.loc[4, "row_number"] = 900
    rows.loc[5, ["patient", "x"]] = ["P000", 9.9]  # another patient
    rows.loc[6, "row_number"] = numbers[7]
    rows.loc[8, "y"] = None
    found = bring_back(client, rows, "list.csv").json()["rows"]
    assert len(found) == 18
    by_place = [row["problem"] for row in found]
    assert "is far from all known values" in by_place[0]
    assert "has more than a number" in by_place[1]
    assert by_place[2] == "“haemolysed” is not a number."
    assert by_place[3] == "This row was not on the list."
    assert by_place[4] == "The table has no such row."
    assert by_place[5] == "Its other cells are those of another row."
    assert by_place[6] == "Its other cells are those of another row."
    assert by_place[7] == "This row is in the list twice."
    assert by_place.count("") == 10
    act(client, "take", ending=".csv", odd=[1, 2])
    given = GivenLabels.read(folder / ".transduce" / "lab.csv")
    assert len(given.labels) == 11  # those that fit, and the one with a unit
    assert given.labels[numbers[1] - 1] == truth[numbers[1] - 1]
    row = numbers[7] - 1
    assert row not in given.labels
    act(client, "take", ending=".csv", odd=[7])  # one of two values of a row
    assert GivenLabels.read(folder / ".transduce" / "lab.csv").labels[row] == truth[row]


def test_names_that_were_sorted_alone_are_noticed(served):
    """Half of the cells of a row are its own, but its name is that of another one."""
    client, _, truth = served
    rows, _ = take_list(client)
    rows["y"] = truth[rows["row_number"] - 1].to_numpy()
    patients = rows["patient"].to_numpy().copy()
    rows.loc[[0, 1], "patient"] = patients[[1, 0]]
    rows.loc[2, "patient"] = "P2000"  # of no row: somebody corrected it
    found = [row["problem"] for row in bring_back(client, rows).json()["rows"]]
    line = rows["line"]
    assert found[0] == f"Its “patient” is that of line {line[1]}."
    assert found[1] == f"Its “patient” is that of line {line[0]}."
    assert found[2:] == [""] * 17


def test_known_values_with_units_are_numbers_on_the_labelling_page_too(tmp_path):
    """One cell in another unit once made classes of them: “17.8” was “a new class”."""
    frame, _ = laboratory()
    frame = frame.astype({"y": object})
    frame.loc[3, "y"] = f"{frame.loc[3, 'y']} mg/dl"
    frame.loc[[5, 6], "y"] = "pending"
    frame.to_csv(tmp_path / "lab.csv", index=False)
    with Served(Workspace(tmp_path, "lab.csv")) as at:
        client = Client(at)
        settle(client, {"target": "y", "way": "chance"})
        settle(client, {"number": ["y"], "missing": ["pending"]})
        assert act(client, "label", draw=False).status == 200
        assert client.get("/api/about").json()["task"] == "numbers"
        assert client.get("/api/view").json()["progress"]["given"] == 58
        row = client.get("/api/row/3").json()
        assert row["label"] == pytest.approx(laboratory()[1][3])
        act(client, "open", name="lab.csv")
        act(client, "correct", row=3, now=21.5)
        act(client, "label", draw=False)
        assert client.get("/api/row/3").json()["label"] == 21.5
        act(client, "open", name=None)


@pytest.mark.parametrize("served", ["classes"], indirect=True)
def test_spellings_of_classes(served):
    client, _, truth = served
    rows, content = take_list(client)
    book = openpyxl.load_workbook(io.BytesIO(content)).active
    (validation,) = book.data_validations.dataValidation
    assert validation.formula1 == '"negative,positive"'
    rows["y"] = truth[rows["row_number"] - 1].to_numpy()
    rows.loc[0, "y"] = "POSITIVE"
    rows.loc[1, "y"] = "negativ"
    rows.loc[2, "y"] = "unclear"
    found = bring_back(client, rows).json()["rows"]
    assert (found[0]["value"], found[0]["problem"]) == ("positive", "")
    assert (found[1]["value"], found[1]["problem"]) == (
        "negative",
        "“negativ” may mean “negative”.",
    )
    assert found[2]["problem"] == "“unclear” is a new class."
    act(client, "take", ending=".xlsx", odd=[2])
    state = client.get("/open/state").json()
    assert state["choices"]["labels"] > 0


def test_what_is_no_list_is_refused(served):
    client, _, _ = served
    rows = pd.DataFrame({"row_number": [61], "y": [3.0]})
    assert "No list was taken away" in bring_back(client, rows).json()["error"]
    take_list(client, 5)
    assert "has no column" in bring_back(client, rows.drop(columns="y")).json()["error"]
    assert bring_back(client, rows, "list.exe").status == 400
    assert act(client, "take", ending="/../../x").status == 400
    assert act(client, "list", kind="random", number=0).status == 400
    assert act(client, "list", kind="helpful", number=5).status == 400  # nothing was filled yet


def test_a_refused_list_leaves_no_session_open(served):
    """Its journal would stay locked, and the next page would find it in use."""
    client, folder, _ = served
    assert act(client, "list", kind="helpful", number=5).status == 400
    (journal,) = folder.rglob("*-labels.jsonl")
    Journal(journal).close()


def test_rows_that_stay_out_are_still_drawn_rows(served):
    """A block of which some rows came back without a value is no block yet; the rest may come later."""
    client, folder, truth = served
    rows, _ = take_list(client)
    rows["y"] = truth[rows["row_number"] - 1].to_numpy()
    bring_back(client, rows[:10])
    act(client, "take", ending=".xlsx", odd=[])
    first = GivenLabels.read(folder / ".transduce" / "lab.csv")
    assert len(first.labels) == 10
    bring_back(client, rows)
    act(client, "take", ending=".xlsx", odd=[])
    later = GivenLabels.read(folder / ".transduce" / "lab.csv")
    assert len(later.labels) == 19
    assert sorted(later.drawn) == sorted(later.labels)
    assert Saved.read(folder / "lab.csv.transduce").choices.labels > 0


def drop(client, frame, name="lab.csv"):
    sent = {"origin": client.origin, "content-type": "application/octet-stream"}
    content = frame.to_csv(index=False).encode()
    return client.ask("POST", f"/open/drop?name={name}", content, sent).json()["name"]


def adopted(client, frame):
    """The state of a page on which a corrected copy of the table was dropped."""
    name = drop(client, frame)
    assert client.post("/open/adopt", {"name": name, "before": "lab.csv"}).status == 200
    return client.post("/open/open", {"name": name}).json()


def test_a_corrected_copy_keeps_what_was_said(served):
    client, _, truth = served
    rows, _ = take_list(client)
    rows["y"] = truth[rows["row_number"] - 1].to_numpy()
    bring_back(client, rows)
    act(client, "take", ending=".xlsx", odd=[])
    settle(client, {"ignore": ["patient"]})
    labelled = (rows["row_number"] - 1).tolist()
    gone, mended, measured, kept = labelled[:4]
    corrected = laboratory()[0]
    corrected.loc[gone] = ["X1", 7.0, np.nan]  # somebody else
    corrected.loc[mended, "x"] += 1.0
    corrected.loc[measured, "y"] = 3.25
    first = pd.DataFrame({"patient": ["new"], "x": [0.5], "y": [np.nan]})
    state = adopted(client, pd.concat([first, corrected]))  # all rows are one place further down
    assert state["choices"]["target"] == "y"
    assert state["choices"]["ignore"] == ["patient"]
    given = {line["row"] - 1: line["now"] for line in state["choices"]["corrected"]}
    assert given == {row: truth[row] for row in labelled if row not in (gone, measured)}
    assert mended in given
    assert kept in given
    assert state["choices"]["corrected"][0]["name"].startswith("line ")
    column = client.get("/open/preview").json()["columns"][2]
    assert column["empty"] == 1 + 140 - 17 - 1
    said = " ".join(state["notes"])
    assert "Of 19 values that you gave on the page 17 were kept" in said
    assert client.post("/open/adopt", {"name": "none.csv", "before": "lab.csv"}).status == 400


def test_a_corrected_copy_does_not_make_chance_of_picked_rows(served):
    """Rows that the program proposed are no random sample, whatever the others are."""
    client, folder, truth = served
    labels = {row: float(truth[row]) for row in range(60, 75)}
    computed = folder / ".transduce" / "lab.csv"
    GivenLabels(labels, None).write(computed, folder / "lab.csv")
    settle(client, {"labels": 5})
    assert client.get("/open/state").json()["way"] == "unknown"
    state = adopted(client, laboratory()[0])
    assert len(state["choices"]["corrected"]) == 15
    assert state["way"] == "unknown"
    assert any("not labelled by chance alone" in note for note in state["notes"])


def test_a_corrected_copy_without_a_column_forgets_it(served):
    client, _, _ = served
    settle(client, {"ignore": ["patient"]})
    state = adopted(client, laboratory()[0].drop(columns="patient"))
    assert (state["choices"]["target"], state["choices"]["ignore"]) == ("y", [])
    state = adopted(client, laboratory()[0].rename(columns={"y": "z"}))
    assert (state["choices"]["target"], state["choices"]["step"]) == (None, "table")
    assert state["notes"] == ["The new file has no column “y”."]
    client.post("/open/open", {"name": None})
    again = client.post("/open/open", {"name": "lab.csv"}).json()
    assert again["notes"] == []


def test_rows_of_a_corrected_copy_are_told_apart():
    old = pd.DataFrame({"a": [1, 1, 2, 3, 4], "b": list("uuvwx"), "y": 0.0})
    assert rows_in_copy(old, old, range(5), "y") == {row: row for row in range(5)}
    moved = old.iloc[[4, 2, 0, 1, 3]].reset_index(drop=True)
    # Of two rows that are alike nobody knows which is which, unless one is at its old place.
    assert rows_in_copy(old, moved, range(5), "y") == {2: 1, 3: 4, 4: 0}
    assert rows_in_copy(old, old[["y"]], range(5), "y") == {}
    assert rows_in_copy(old, old.iloc[:2], [3], "y") == {}


def test_a_list_to_check_predictions_hides_them(tmp_path):
    names = np.where(np.arange(40) % 3 == 0, "spam", "ham")
    frame = pd.DataFrame({"size": np.arange(40) % 7, "llm": names})
    frame.to_csv(tmp_path / "judged.csv", index=False)
    with Session(tmp_path / "judged.csv", "gold", predictions=("llm",)) as session:
        taken = lists.TakenList("gold", "random", [3, 5])
        lists.write_taken(tmp_path, session.table.frame, session, taken, [])
    listed = pd.read_excel(tmp_path / lists.LIST, engine="openpyxl")
    assert listed.columns.tolist() == ["row_number", "line", "size", "gold"]
