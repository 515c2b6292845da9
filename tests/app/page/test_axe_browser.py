"""Every screen of the page: axe-core finds nothing serious on it, and it is no wider than its window."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")
pytest.importorskip("selenium", reason="NOT TESTED: the page in a browser; install selenium.")
pytest.importorskip(
    "selenium_axe_python",
    reason="NOT TESTED: the page by the rules of axe-core; install selenium-axe-python.",
)
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium_axe_python import Axe

from tests.app.labelling.tables import new_session, numbers
from tests.app.page import test_several as several
from tests.app.page.serving import Served
from tests.app.page.test_browser import Page, pytestmark  # noqa: F401
from tests.app.page.test_open import messy
from tests.app.page.test_open_browser import OpenPage, served
from tests.app.page.test_suspects import CHOICES, lay_down, slips
from transduce.app.labelling import Session, SessionSettings
from transduce.app.page.run import RESULT

# `make test` takes the first for every test, and the third for the labelling page too.
LOOKS = [("dark", 320), ("dark", 1280), ("light", 1280), ("light", 320)]
in_every_look = pytest.mark.parametrize(("scheme", "width"), LOOKS)

# What a dialog hides is looked at without it.
SERIOUS = """
const [done] = arguments, options = { resultTypes: ["violations"], preload: false };
axe.run(document.querySelector("dialog[open]") ?? document, options).then(({ violations }) => done(violations
  .filter(({ impact }) => ["serious", "critical"].includes(impact))
  .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`))));
"""


class Looker:
    """Looks at one screen after another, and remembers what axe-core finds serious or critical."""

    def __init__(self, browser, scheme, width):
        self._browser, self.width = browser, width
        features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        self._media = {
            "features": [{"name": name, "value": value} for name, value in features.items()]
        }
        self.screens, self.found = [], []

    def dress(self, page):
        """Show a page in this size and these colours."""
        page.size(self.width, 900)
        self._browser.execute_cdp_cmd("Emulation.setEmulatedMedia", self._media)
        return page

    def look(self, screen):
        if not self._browser.execute_script("return Boolean(window.axe)"):
            Axe(self._browser).inject()
        self.screens.append(screen)
        self.found += [f"{screen}: {one}" for one in self._browser.execute_async_script(SERIOUS)]
        wide = self._browser.execute_script("return document.documentElement.scrollWidth")
        if wide > self.width:
            self.found.append(f"{screen}: {wide} pixels wide, in a window of {self.width}")


@pytest.fixture
def looker(browser, scheme, width):
    return Looker(browser, scheme, width)


def opened(looker, browser, at):
    return looker.dress(OpenPage(browser, at.address))


def close(page):
    page.type(Keys.ESCAPE)
    page.no_dialog()


def shown(page, selector):
    page.wait(lambda: page.find(selector).is_displayed())


@pytest.mark.few(1)
@in_every_look
def test_nothing_serious_on_the_way_to_a_fill(browser, tmp_path, looker):
    frame = messy()[0].assign(verdict=None)
    frame["kind"] = frame["kind"].where(np.arange(len(frame)) % 3 > 0)
    frame.loc[3:4, "age"] = "pending"
    frame.to_csv(tmp_path / "houses.csv", index=False)
    with served(tmp_path) as at:
        page = opened(looker, browser, at)
        page.wait(lambda: page.button("houses.csv"))
        looker.look("the tables of a folder")
        page.click_words("houses.csv")
        page.read_table()
        looker.look("a table")
        page.click("#kept summary")
        page.wait(lambda: page.text("#kept-body"))
        looker.look("what is kept of it")
        page.click("#preview thead button")
        shown(page, "#column-dialog")
        looker.look("a column")
        close(page)
        page.click_words("Where the table begins and ends")
        page.wait(lambda: browser.find_elements(By.CSS_SELECTOR, ".raw button"))
        looker.look("where the table begins and ends")
        close(page)
        page.click_words("verdict")
        shown(page, "#begin-dialog")
        looker.look("how labelling begins")
        close(page)
        page.click_words("kind")
        page.click("#to-labels")
        page.see_ways()
        looker.look("how the labels came about")
        for card in ("By their class", "I picked them myself", "Whole groups at once"):
            page.click_words(card)
            page.wait(lambda: page.find("#ways [aria-checked=true]"))
            page.wait(lambda: page.text("#test") and "…" not in page.text("#outlook"))
            if card == "By their class":
                page.click(".shares summary")
                shown(page, "#share-0")
            looker.look(f"the card “{card}”")
    assert len(looker.screens) == 10
    assert looker.found == []


@pytest.mark.few(2)
@in_every_look
@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_nothing_serious_on_the_answers(browser, tmp_path, looker, kind):
    choices = replace(CHOICES, step="answers")
    lay_down(tmp_path, slips(kind), choices)
    with served(tmp_path, "t.csv") as at:
        page = opened(looker, browser, at)
        page.answers()
        looker.look("the answers")
        page.click("#rows tbody button")
        shown(page, "#row-dialog")
        looker.look("a row")
        close(page)
        page.click("#ask-trust")
        page.wait(lambda: page.text("#trust"))
        looker.look("which may be trusted")
        page.click("#ask-whole")
        page.wait(lambda: page.text("#whole"))
        looker.look("the whole column")
    report = tmp_path / ".transduce" / "t.csv" / RESULT / "report.html"
    browser.get(report.as_uri())
    looker.look("the report")
    assert len(looker.screens) == 5
    assert looker.found == []


@pytest.mark.few(1)
@in_every_look
def test_nothing_serious_on_the_answers_of_several_columns(browser, tmp_path, looker):
    several.lay_down(tmp_path)
    with served(tmp_path, "t.csv") as at:
        page = opened(looker, browser, at)
        page.answers()
        looker.look("the answers of several columns")
    assert looker.found == []


@pytest.mark.few(2)
@in_every_look
def test_nothing_serious_where_classes_are_given(browser, looker):
    session, truth = new_session()
    with session, Served(session) as at:
        page = looker.dress(Page(browser, at.address))
        page.ready()
        looker.look("the first row")
        page.judge(truth, 6)
        for key, mode in (("l", "learn"), ("a", "audit"), ("f", "find")):
            page.press(key)
            page.wait(lambda mode=mode: page.mode() == mode)
            page.judge(truth, 1)
            looker.look(f"the mode {mode}")
        for key, dialog in (("/", "search"), ("h", "history"), ("e", "export"), ("?", "settings")):
            page.press(key)
            shown(page, f"#{dialog}-dialog")
            if dialog == "search":
                page.find("#search").send_keys("apple")
                page.wait(lambda: page.text("#search-count") == "15 rows.")
            looker.look(f"the dialog {dialog}")
            page.press(Keys.ESCAPE)
            page.no_dialog()
    assert len(looker.screens) == 8
    assert looker.found == []


@pytest.mark.few(1)
@in_every_look
def test_nothing_serious_where_numbers_are_given(browser, tmp_path, looker):
    frame, _ = numbers()
    settings = SessionSettings(task="numbers", seed=1)
    with Session(frame, "relevant", settings=settings) as session, Served(session) as at:
        page = looker.dress(Page(browser, at.address))
        field = page.find("#number")
        field.send_keys("2,345", Keys.ENTER)
        page.wait(lambda: page.find("#ask-dialog").is_displayed())
        looker.look("a question about a number")
        page.press(Keys.ESCAPE)
        page.no_dialog()
        looker.look("a row that gets a number")
    assert looker.found == []
