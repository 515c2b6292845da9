"""Where a table begins, several columns at once, and what is kept, in a real browser."""

from __future__ import annotations

import pytest

pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")
pytest.importorskip("selenium", reason="NOT TESTED: the page in a browser; install selenium.")
from selenium.webdriver.common.by import By

from tests.app.page.test_browser import pytestmark  # noqa: F401
from tests.app.page.test_open_browser import OpenPage, served
from tests.app.page.test_several import lay_down, table
from tests.app.page.test_where_it_begins import TITLED
from transduce.app.page.workspace import Saved

OVERFLOW = "return document.documentElement.scrollWidth - window.innerWidth"
BOX = "const box = document.getElementById('row-box'); return box.scrollWidth - box.clientWidth"


def test_a_click_on_a_row_of_the_file_says_where_the_table_begins(browser, tmp_path):
    (tmp_path / "t.csv").write_text(TITLED)
    with served(tmp_path, "t.csv") as at:
        page = OpenPage(browser, at.address)
        page.size(320, 800)
        page.wait(lambda: page.button("y\n"))
        page.click_words("Where the table begins and ends")
        page.wait(lambda: browser.find_elements(By.CSS_SELECTOR, ".raw button"))
        assert browser.execute_script(OVERFLOW) <= 0
        named = ".raw tr:nth-child(3) button"
        assert page.find(named).get_attribute("aria-describedby") == "raw-4"
        page.click(named)
        page.wait(lambda: page.button("mg\n"))
        page.click_words("Where the table begins and ends")
        page.click_words("Find the table by itself")
        page.wait(lambda: page.button("y\n"))
    choices = Saved.read(tmp_path / "t.csv.transduce").choices
    assert (choices.header, choices.rows) == (None, None)


def test_columns_are_filled_along_by_a_click_and_each_has_a_histogram(browser, tmp_path):
    table().to_csv(tmp_path / "t.csv", index=False)
    with served(tmp_path, "t.csv") as at:
        page = OpenPage(browser, at.address)
        page.size(1280, 900)
        page.read_table()
        assert len(browser.find_elements(By.CSS_SELECTOR, "#preview thead .shape")) == 4
        assert not page.find("#besides").is_displayed()
        page.click_words("y\n")
        page.click_words("Both of them")
        page.wait(lambda: page.button("None of them"))
        heads = [one.text for one in browser.find_elements(By.CSS_SELECTOR, "#preview thead th")]
        assert sum("to be filled" in head for head in heads) == 3
        page.click("#besides-list label:first-child")
        page.wait(lambda: page.button("Both of them"))
    assert len(Saved.read(tmp_path / "t.csv.transduce").choices.besides) == 1


def test_the_answers_of_each_column_are_a_click_away_and_fit(browser, tmp_path, no_figures):
    lay_down(tmp_path)
    with served(tmp_path, "t.csv") as at:
        page = OpenPage(browser, at.address)
        page.size(1280, 900)
        page.answers()
        assert browser.execute_script(BOX) <= 0
        assert "Answers for “y”" in page.text("#answers-title")
        page.click_words("z")
        page.wait(lambda: "Answers for “z”" in page.text("#answers-title"))
        page.wait(lambda: page.text("#found") == "40 rows")
        assert not page.find("#label-panel").is_displayed()
        page.click_words("Take the filled table with you")
        page.wait(lambda: page.focused().text == "The filled table")
        for width in (320, 375, 900, 1600):
            page.size(width, 900)
            page.wait(lambda: browser.execute_script(OVERFLOW) <= 0)
        page.size(320, 900)
        page.wait(lambda: browser.execute_script(BOX) <= 0)


def test_what_is_kept_is_deleted_by_two_clicks(browser, tmp_path, no_figures):
    lay_down(tmp_path)
    with served(tmp_path, "t.csv") as at:
        page = OpenPage(browser, at.address)
        page.size(1280, 900)
        page.answers()
        page.click("[data-step=table]")
        page.read_table()
        page.click("#kept summary")
        page.wait(lambda: "What was computed" in page.text("#kept-body"))
        page.click_words("Delete")
        page.click_words("Keep it")
        page.click_words("Delete")
        page.click_words("Yes, delete it")
        page.wait(lambda: "What was computed" not in page.text("#kept-body"))
        page.wait(lambda: not page.find("[data-step=answers]").is_enabled())
    assert not (tmp_path / ".transduce" / "t.csv").exists()
    assert (tmp_path / "t.csv").exists()
