"""A list that comes back, and a corrected copy of a table, in a real browser."""

from __future__ import annotations

import pytest

pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")
pytest.importorskip("selenium", reason="NOT TESTED: the page in a browser; install selenium.")
from dataclasses import replace

import pandas as pd
from selenium.webdriver.common.by import By

from tests.app.page.serving import Client
from tests.app.page.test_browser import pytestmark  # noqa: F401
from tests.app.page.test_lists import laboratory, take_list
from tests.app.page.test_open_browser import OpenPage, served
from tests.app.page.test_suspects import CHOICES, lay_down
from transduce.app.page.workspace import Saved


def test_odd_values_are_shown_before_any_is_taken(browser, tmp_path, no_figures):
    frame, truth = laboratory()
    lay_down(tmp_path, frame, replace(CHOICES, step="answers"))
    with served(tmp_path, "t.csv") as at:
        rows, _ = take_list(Client(at), 19)
    rows["y"] = truth[rows["row_number"] - 1].to_numpy().astype(object)
    rows.loc[0, "y"] = "lost"
    rows.loc[1, "y"] = f"{rows.loc[1, 'y']} mg/dl"
    rows.to_excel(tmp_path / "back.xlsx", index=False)
    with served(tmp_path, "t.csv") as at:
        page = OpenPage(browser, at.address)
        page.size(1280, 900)
        page.wait(lambda: page.find("#list-box").is_displayed())
        box = browser.find_element(By.CSS_SELECTOR, "#list-box input[type=file]")
        box.send_keys(str(tmp_path / "back.xlsx"))
        page.wait(lambda: "2 of these look odd" in page.text("#list-body"))
        assert "“lost” is not a number." in page.text("#list-body")
        first, second = browser.find_elements(By.CSS_SELECTOR, "#list-body li input")
        assert not first.is_enabled()
        second.click()
        assert "once all 19 have a value" in page.text("#draw-note")
        page.click_words("Take 18 values")
        page.wait(lambda: Saved.read(tmp_path / "t.csv.transduce").choices.labels > 0)
        page.wait(lambda: "There are new known values" in page.text("#run").capitalize())


def test_a_corrected_copy_is_asked_about(browser, tmp_path, no_figures):
    frame, _ = laboratory()
    lay_down(tmp_path, frame, replace(CHOICES, step="answers"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    pd.DataFrame(frame).to_csv(elsewhere / "t.csv", index=False)
    with served(tmp_path) as at:
        page = OpenPage(browser, at.address)
        page.click("#close-table")
        page.wait(lambda: page.find("#tables").is_displayed())
        browser.find_element(By.ID, "file").send_keys(str(elsewhere / "t.csv"))
        page.click_words("It is a corrected copy: keep what I said")
        page.wait(lambda: page.text("#title") == "t-2.csv")
        page.wait(lambda: "filling “y”" in page.text("#subtitle"))
        page.see_ways()  # it has no answers yet
    assert Saved.read(tmp_path / "t-2.csv.transduce").choices.target == "y"
