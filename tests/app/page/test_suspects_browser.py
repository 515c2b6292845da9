"""Known values that are perhaps wrong, in a real browser."""

from __future__ import annotations

import pytest

pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")
pytest.importorskip("selenium", reason="NOT TESTED: the page in a browser; install selenium.")
from dataclasses import replace

from tests.app.page.test_browser import pytestmark  # noqa: F401
from tests.app.page.test_open_browser import OpenPage, served
from tests.app.page.test_suspects import CHOICES, SLIP, lay_down, slips
from transduce.app.page.workspace import Saved


def test_a_suspect_is_looked_at_corrected_and_confirmed(browser, tmp_path, no_figures):
    lay_down(tmp_path, slips(), replace(CHOICES, step="answers"))

    def said():
        return Saved.read(tmp_path / "t.csv.transduce").choices

    with served(tmp_path, "t.csv") as at:
        page = OpenPage(browser, at.address)
        page.size(1280, 900)
        page.wait(lambda: "5,000.5 in line 13" in page.text("#suspects-list"))
        page.wait(lambda: "not fit" in page.text("#next-steps-list"))
        before = page.text("#next-steps-list")
        page.click_words("Look at the row")
        page.wait(lambda: page.text("#row-title") == "Line 13: 5000.5")
        page.click("#row-dialog .close")
        page.click_words("Correct it")
        page.find("#correction").send_keys("fifty")
        page.click_words("Use this value")
        page.wait(lambda: "is not a number" in page.text("#suspects-list"))
        page.find("#correction").clear()
        page.find("#correction").send_keys("50.5")
        page.click_words("Use this value")
        page.wait(lambda: said().corrected and said().corrected[0]["now"] == 50.5)
        page.wait(lambda: "line 13: was 5000.5, now 50.5." in page.text("#suspects-list"))
        page.wait(lambda: "Fill again" in page.text("#run"))
        page.click_words("Take it back")
        page.wait(lambda: not said().corrected)
        page.wait(lambda: page.text("#next-steps-list") == before)
        page.click_words("It is right")  # the first of the list
        page.wait(lambda: said().right == [SLIP])
        page.wait(lambda: "line 13" not in page.text("#suspects-list"))
        page.wait(lambda: page.text("#next-steps-list") != before)  # one fewer to look at
        page.size(320, 800)
        wide = "return document.documentElement.scrollWidth"
        page.wait(lambda: browser.execute_script(wide) <= 320)
