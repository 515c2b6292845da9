"""The tab about the column as a whole, in a real browser, wide and narrow."""

from __future__ import annotations

import pytest

pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")
pytest.importorskip("selenium", reason="NOT TESTED: the page in a browser; install selenium.")
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from tests.app.page.serving import Client, Served
from tests.app.page.test_browser import pytestmark  # noqa: F401
from tests.app.page.test_open import fill, messy, settle
from tests.app.page.test_open_browser import OpenPage
from transduce.app.page.workspace import Workspace


@pytest.mark.parametrize("width", [1300, 390])
def test_a_column_to_group_by_is_chosen_and_seen_at_once(browser, tmp_path, width):
    messy()[0].to_csv(tmp_path / "houses.csv", index=False)
    with Served(Workspace(tmp_path, "houses.csv")) as served:
        client = Client(served)
        settle(client, {"target": "price", "way": "chance", "ignore": ["note", "sold", "id"]})
        fill(client)
    with Served(Workspace(tmp_path, "houses.csv")) as served:  # its address opens one browser
        page = OpenPage(browser, served.address)
        page.size(width, 1000)
        page.answers()
        page.click("#ask-whole")
        page.wait(lambda: "Mean of price over all 90 rows" in page.text("#whole"))
        assert page.find("#ask-whole").get_attribute("aria-pressed") == "true"
        by = Select(page.find("#whole-by"))
        by.select_by_visible_text("kind")
        page.wait(lambda: "house" in page.text("#whole tbody"))
        assert len(browser.find_elements(By.CSS_SELECTOR, "#whole .forest .ours")) == 2
        overflow = "return document.documentElement.scrollWidth > window.innerWidth + 1"
        assert not browser.execute_script(overflow)
        page.click("#ask-doubt")
        page.wait(lambda: page.find("#row-box").is_displayed())
        assert not page.find("#whole").is_displayed()
        assert page.errors() == []
