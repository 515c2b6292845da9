"""What a person with a table of their own stumbled over when they tried the page: in a real browser."""

from __future__ import annotations

import json

import numpy as np
import openpyxl
import pandas as pd
import pytest
from PIL import Image

pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")
pytest.importorskip("selenium", reason="NOT TESTED: the page in a browser; install selenium.")
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from tests.app.page.serving import Client, Served
from tests.app.page.test_begin_browser import answer
from tests.app.page.test_browser import pytestmark  # noqa: F401
from tests.app.page.test_dead_ends_browser import back, to_labelling
from tests.app.page.test_open import fill, settle
from tests.app.page.test_open_browser import OpenPage
from transduce.app.page.workspace import Saved, Workspace


@pytest.fixture
def cells(tmp_path):
    """A folder with pictures of two kinds of cells, and nothing else."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "cells"
    folder.mkdir()
    for i in range(24):
        shade = 70 + 110 * (i % 2)
        pixels = np.clip(rng.normal(shade, 8, (16, 16)), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"cell_{i:02d}.png")
    return folder


def begin(page, name, classes):
    page.click_words("Add a column to label")
    page.find("#begin-name").send_keys(name)
    page.find("#begin-classes").clear()
    page.find("#begin-classes").send_keys("\n".join(classes))
    to_labelling(page, "Begin to label")


def test_of_two_kinds_of_cells_none_is_searched_for(browser, cells):
    """Searching for the first class that was typed once gave 48 blasts and 2 lymphocytes."""
    with Served(Workspace(cells)) as served:
        page = OpenPage(browser, served.address)
        page.click_words("Make a table of 24 pictures")
        page.read_table()
        # Who owns pictures knows them by their names.
        assert "cell_00.png" in page.text("#preview tbody tr")
        begin(page, "kind", ["blast", "lymphocite"])
        page.wait(lambda: "Find waits until" in page.text("#mode-note"))
        back(page)  # a class was misspelt: without a label the names can be given again
        page.click_words("kind")
        page.wait(lambda: page.find("#begin-dialog").get_attribute("open"))
        page.find("#begin-classes").clear()
        page.find("#begin-classes").send_keys("blast\nlymphocyte")
        to_labelling(page, "Begin to label")
        assert page.text("#classes") == "blast1lymphocyte2"
        page.wait(lambda: "Find waits until" in page.text("#mode-note"))
        assert page.mode() == "learn"
        assert page.text("#want option:checked") == "choose …"
        for _ in range(6):
            answer(page, "1" if page.row() % 2 else "2")
        back(page)
        page.see_ways()  # what comes next, not the table again
        browser.back()  # and not to the labelling page, which has ended
        page.wait(lambda: page.find("#preview tbody tr").is_displayed())
        browser.forward()
        page.see_ways()
        saved = cells / "pictures.csv.transduce"
        page.wait(lambda: Saved.read(saved).choices.step == "labels")
        assert page.errors() == []


def test_draws_of_the_labelling_page_add_no_column_to_the_table(browser, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"patient_id": 10_000 + 7 * np.arange(50), "x": rng.normal(size=50)})
    frame.assign(sick=None).to_csv(tmp_path / "t.csv", index=False)
    with Served(Workspace(tmp_path, "t.csv")) as served:
        page = OpenPage(browser, served.address)
        page.read_table()
        assert "10000" in page.text(
            "#preview tbody tr"
        )  # a number that names a patient has no comma
        page.click_words("sick")
        page.wait(lambda: page.find("#begin-dialog").get_attribute("open"))
        to_labelling(page, "Begin to label")
        page.click_words("At random")
        page.wait(lambda: page.mode() == "audit")
        assert "," not in page.text("#row .numbers .cell p")
        for _ in range(24):
            answer(page, "1" if page.row() % 3 else "2")
        back(page)
        page.see_ways()
        page.click("#steps [data-step=table]")
        page.read_table()
        assert "sick_random" not in page.text("#view-table")
        assert "3 columns" in page.text("#table-lead")
        page.click("#kept summary")
        page.wait(lambda: page.button("Delete"))
        lines = browser.find_elements(By.CSS_SELECTOR, "#kept-body li")
        place = [" labelling page" in line.text for line in lines].index(True) + 1
        page.click(f"#kept-body li:nth-child({place}) button")
        page.click_words("Yes, delete it")
        page.wait(lambda: "Label this column" in page.text("#unlabelled"))  # all is as before
        assert Saved.read(tmp_path / "t.csv.transduce").choices.labels == 0
        assert not list(tmp_path.glob(".transduce/t.csv/labels.json"))
        assert page.errors() == []


def test_a_mark_among_the_known_values_is_asked_about(browser, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    y = pd.Series((20 + 3 * x).round(1)).where(np.arange(60) < 45)
    y[[2, 5, 9]] = -999
    pd.DataFrame({"x": x.round(2), "ldl": y}).to_csv(tmp_path / "t.csv", index=False)
    with Served(Workspace(tmp_path, "t.csv")) as served:
        page = OpenPage(browser, served.address)
        page.read_table()
        page.click_words("ldl")
        page.wait(lambda: "Does “-999” stand for an empty cell in “ldl”?" in page.text("#question"))
        assert "3 cells hold it" in page.text("#question")
        page.click_words("Yes, these 3 cells are empty")
        page.wait(lambda: page.text("#question") == "")
        said = json.loads((tmp_path / "t.csv.transduce").read_text("utf-8"))
        assert said["choices"]["missing"] == ["-999"]
        assert "18 of 60 empty" in page.text("#targets")


def test_a_sheet_without_a_table_can_be_left(browser, tmp_path):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Data"
    sheet.append(["x", "y"])
    for i in range(30):
        sheet.append([i % 7, 2.5 * (i % 7) if i % 3 else None])
    book.create_sheet("Empty")
    book.save(tmp_path / "book.xlsx")
    with Served(Workspace(tmp_path, "book.xlsx")) as served:
        page = OpenPage(browser, served.address)
        page.read_table()
        Select(page.find("#sheet")).select_by_visible_text("Empty")
        page.wait(lambda: "has no table in its sheet 'Empty'" in page.text("#table-lead"))
        assert str(tmp_path) not in page.text("#table-lead")  # the file is called by its name
        page.driver.refresh()
        page.ready()
        page.wait(lambda: page.find("#sheet").is_displayed())
        assert page.text("#targets") == ""
        Select(page.find("#sheet")).select_by_visible_text("Data")
        page.read_table()
        assert "30 rows, 2 columns" in page.text("#table-lead")
        assert not page.find("#to-labels").is_enabled()


def test_a_class_without_a_probability_claims_none(browser, tmp_path):
    """Where known values say nothing about the others, “right with probability 0 %” was shown."""
    words = browser_words(browser, tmp_path, {"row": 3, "name": "line 5", "chance": None})
    assert "probability" not in words
    assert words.startswith("Possible at 90 %: no, yes.")


def browser_words(browser, tmp_path, answered):
    """What the page says of one row whose answer the server would give like this."""
    frame = pd.DataFrame({"x": np.arange(40.0), "y": ["no", "yes", None, None] * 10})
    frame.to_csv(tmp_path / "t.csv", index=False)
    with Served(Workspace(tmp_path, "t.csv")) as served:
        client = Client(served)
        settle(client, {"target": "y", "way": "chance", "guarantee": "column"})
        fill(client)
    with Served(Workspace(tmp_path, "t.csv")) as served:
        page = OpenPage(browser, served.address)
        page.answers()
        line = {
            "set": ["no", "yes"], "value": "no", "status": "answered", "neighbours": [],
            "columns": [], "relevance": [], "own": [],
        }  # fmt: skip
        page.driver.execute_script(ANSWER, "/open/row", json.dumps({**line, **answered}))
        page.click("#rows tbody button")
        page.wait(lambda: page.find("#row-dialog").is_displayed())
        return page.text("#row-body p")


ANSWER = """
const [path, body] = arguments, fetched = window.fetch;
window.fetch = (url, ...rest) => (String(url).includes(`${path}?`)
  ? Promise.resolve(new Response(body, { headers: { "content-type": "application/json" } })) : fetched(url, ...rest));
"""


def test_known_shares_of_the_classes_are_taken_and_given_back(browser, tmp_path):
    rng = np.random.default_rng(0)
    sick = rng.random(200) < 0.3
    frame = pd.DataFrame({"x": rng.normal(size=200) + 2 * sick})
    frame["state"] = pd.Series(np.where(sick, "sick", "healthy")).where(np.arange(200) < 90)
    frame.to_csv(tmp_path / "t.csv", index=False)
    space = Workspace(tmp_path, "t.csv")
    space.change("t.csv", 0, {"target": "state", "step": "labels"})
    with Served(space) as served:
        page = OpenPage(browser, served.address)
        page.see_ways()
        page.click_words("By their class")
        page.wait(lambda: "within every class" in page.text("#outlook"))
        page.click(".shares summary")
        page.wait(lambda: page.find("#share-0").is_displayed())
        assert page.text(".share-row label") == "healthy"
        page.find("#share-0").send_keys("80")
        page.find("#share-1").send_keys("10")
        page.click_words("Use these shares")
        page.wait(lambda: "sum to 90 %" in page.text("#share-1-refused"))
        assert space.saved.choices.shares is None
        page.find("#share-1").clear()
        page.find("#share-1").send_keys("20")
        page.click_words("Use these shares")
        page.wait(lambda: space.saved.choices.shares == {"healthy": 0.8, "sick": 0.2})
        page.wait(lambda: "shares" in page.text("#outlook"))
        page.click_words("Estimate them instead")
        page.wait(lambda: space.saved.choices.shares is None)
        assert page.errors() == []
