"""Questions about cells, settled by a click in a real browser."""

from __future__ import annotations

import pytest

pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")
pytest.importorskip("selenium", reason="NOT TESTED: the page in a browser; install selenium.")
from tests.app.page.test_asks import DOUBTFUL, folder  # noqa: F401
from tests.app.page.test_browser import pytestmark  # noqa: F401
from tests.app.page.test_open_browser import OpenPage, served
from transduce.app.page.workspace import Saved


def test_each_question_takes_one_click(browser, folder):  # noqa: F811
    def said():
        return Saved.read(folder / "lab.csv.transduce").choices

    with served(folder, "lab.csv") as at:
        page = OpenPage(browser, at.address)
        page.size(1280, 900)
        page.click_words("ldl")
        page.click_words("Take the numbers: all are in mmol/L, the others are empty")
        page.wait(lambda: said().number == ["ldl"] and said().missing == ["pending"])
        page.click_words("Yes, call it “M”")
        page.wait(lambda: said().same == [["sex", "M", "male"]])
        page.click_words("No, these differ")
        page.wait(lambda: said().apart == [["sex", "F", "female"]])
        page.click_words("Yes, all are in g/dL")
        page.wait(lambda: set(said().number) == {"ldl", "hb"})
        page.wait(lambda: not page.text("#asks") and not page.text("#question"))
        page.wait(lambda: page.find("#to-labels").is_enabled())
        browser.find_elements("css selector", "#preview thead button")[0].click()
        page.click_words("Take apart")
        page.wait(lambda: said().same == [])
        page.size(320, 700)
        wide = "return document.documentElement.scrollWidth"
        page.wait(lambda: browser.execute_script(wide) <= 320)


def test_how_large_a_number_is(browser, tmp_path):
    """4,729 in a table whose numbers do not show what a comma is: one question, one click."""
    (tmp_path / "lab.txt").write_text(DOUBTFUL)
    with served(tmp_path, "lab.txt") as at:
        page = OpenPage(browser, at.address)
        page.size(1280, 900)
        page.wait(lambda: "How large is “4,729” in “ldl”?" in (page.text("#asks") or ""))
        page.click_words("Decimals: 4.729")
        page.wait(lambda: "4.729" in page.text("#preview") and not page.text("#asks"))
    assert Saved.read(tmp_path / "lab.txt.transduce").choices.decimal == "comma"
