"""The page for the whole job in a real browser: by mouse and by keyboard; pictures, kills, tabs, a phone."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from PIL import Image

pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")
pytest.importorskip("selenium", reason="NOT TESTED: the page in a browser; install selenium.")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.app.page.serving import Client, Served
from tests.app.page.test_browser import Page, pytestmark  # noqa: F401
from tests.app.page.test_open import HOSTILE, fill, messy, settle
from transduce.app.page.workspace import CARDS, Saved, Workspace

CONTRAST = """
const shade = (colour) => {
  const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((one) => {
    const share = Number(one) / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (element) => {
  for (let one = element; one; one = one.parentElement) {
    const colour = getComputedStyle(one).backgroundColor;
    if (!/rgba\\(.*, 0\\)|transparent|color/.test(colour)) return colour;
  }
  return "rgb(255, 255, 255)";
};
const poor = [];
for (const element of document.querySelectorAll("main *, header *")) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  if (!own || !element.offsetParent || element.closest(":disabled, svg")) continue;
  const [front, back] = [getComputedStyle(element).color, behind(element)].map(shade);
  const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
  if (ratio < 4.5) poor.push(`${element.className} ${element.textContent.slice(0, 30)} ${ratio.toFixed(2)}`);
}
return poor;
"""

PLACE = """
arguments[0].scrollIntoView({block: "center"});
const { x, y } = arguments[0].getBoundingClientRect();
return [x, y];
"""


class OpenPage(Page):
    """The page for the whole job."""

    def click(self, selector):
        self.press(lambda: self.find(selector))

    def press(self, find):
        ActionChains(self.driver, duration=0).move_to_element(self.at_rest(find)).click().perform()

    def at_rest(self, find):
        """What is found, once it stays in the middle of the window: a page that is drawn moves it."""
        places = []

        def still():
            element = find()
            if not element or not element.is_displayed() or not element.is_enabled():
                return None
            places.append(self.driver.execute_script(PLACE, element))
            return element if places[-2:-1] == places[-1:] else None

        return self.wait(still)

    def button(self, words):
        """The button that is shown and begins with these words."""
        every = self.driver.find_elements(By.CSS_SELECTOR, "button")
        return next(
            (one for one in every if one.is_displayed() and one.text.startswith(words)), None
        )

    def click_words(self, words):
        self.press(lambda: self.button(words))

    def read_table(self):
        """Wait until the open table is read and its rows are shown, not those of the one before."""
        self.wait(lambda: self.find("#preview tbody tr").is_displayed())

    def see_ways(self):
        """Wait until every way in which labels can come about has its card, with its drawing."""
        drawings = "#ways svg"
        self.wait(lambda: len(self.driver.find_elements(By.CSS_SELECTOR, drawings)) == len(CARDS))

    def saved(self, changed):
        """Wait until what was said is on disk: the state that the page shows is the server's."""
        self.wait(lambda: self.driver.execute_script(f"return {changed}"))

    def asked(self, path):
        """How many requests to a path were answered."""
        entries = "performance.getEntriesByType('resource').filter(({ name }) => name.endsWith(arguments[0]))"
        return self.driver.execute_script(f"return {entries}.length", path)

    def answers(self):
        self.wait(lambda: self.driver.find_elements(By.CSS_SELECTOR, "#rows tbody tr"))
        return self.driver.find_elements(By.CSS_SELECTOR, "#rows tbody tr")

    def focused(self):
        return self.driver.switch_to.active_element

    def tab_to(self, selector):
        """Press the tabulator until something that can be used has the focus."""
        self.wait(lambda: self.find(selector).is_displayed() and self.find(selector).is_enabled())
        passed = []
        for _ in range(80):
            ActionChains(self.driver, duration=0).send_keys(Keys.TAB).perform()
            if self.driver.execute_script(
                "return document.activeElement.matches(arguments[0])", selector
            ):
                return
            passed.append(self.focused().get_attribute("id"))
        raise AssertionError(f"The tabulator does not reach {selector}, but {passed}.")

    def type(self, *keys):
        ActionChains(self.driver, duration=0).send_keys(*keys).perform()


def served(folder, table=None):
    return Served(Workspace(folder, table))


@pytest.fixture
def table(tmp_path):
    messy()[0].to_csv(tmp_path / "houses.csv", index=False)
    return tmp_path


def test_the_whole_way_by_mouse_on_a_messy_table(browser, table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    with served(folder) as at:
        page = OpenPage(browser, at.address)
        page.size(1300, 900)
        page.find("#file").send_keys(str(table / "houses.csv"))
        page.read_table()
        assert (folder / "houses.csv").read_bytes() == (table / "houses.csv").read_bytes()
        assert browser.title == "houses.csv · transduce"  # no cell was run
        page.click_words("rooms")
        page.wait(lambda: "-999" in page.text("#column-dialog"))
        page.click_words("means empty")
        page.wait(lambda: "is empty" in page.text("#column-dialog"))
        page.type(Keys.ESCAPE)
        page.click_words("price")
        page.click("#to-labels")
        page.see_ways()
        page.click_words("By chance")
        page.wait(lambda: "at least 90 %" in page.text("#outlook"))
        page.wait(lambda: "look alike" in page.text("#test"))
        page.click("#fill")
        assert len(page.answers()) == 25
        page.wait(lambda: page.find("#run").is_displayed() is False)
        page.click_words("line")
        first = str(np.flatnonzero(messy()[0]["price"].isna())[0] + 2)
        page.wait(lambda: page.find("#rows tbody tr th").text == first)
        page.click("#later")
        page.wait(lambda: len(page.answers()) == 5)
        page.click("#rows tbody tr td.strong")
        page.wait(lambda: "most like it" in page.text("#row-dialog"))
        page.type(Keys.ESCAPE)
        page.click("#ask-trust")
        page.wait(lambda: "No known value was kept aside" in page.text("#trust"))
        assert page.button("Fill again with this")
        page.click("#label")
        page.wait(lambda: browser.current_url.endswith("/label"))
        page.ready()
        page.find("#number").send_keys("200000", Keys.ENTER)
        page.wait(lambda: page.labelled() == 1)
        page.click("#home")
        page.wait(lambda: "There are new known values" in (page.text("#run") or ""))
        assert page.errors() == []
    saved = Saved.read(folder / "houses.csv.transduce")
    assert (saved.choices.target, saved.choices.missing, saved.choices.way) == (
        "price",
        ["-999"],
        "chance",
    )
    assert saved.choices.labels > 0


def test_no_button_moves_from_under_the_mouse(browser, table):
    space = Workspace(table, "houses.csv")
    space.change("houses.csv", 0, {"target": "price"})
    messy()[0].to_csv(table / "other.csv", index=False)
    high = "return document.documentElement.scrollHeight"
    place = "return document.querySelector('#fill').getBoundingClientRect().y"
    with Served(space) as at:
        page = OpenPage(browser, at.address)
        page.size(1300, 500)
        page.click("#close-table")
        page.hold("/open/preview")
        page.click_words("other.csv")
        page.held("/open/preview")
        assert not page.find("#to-labels").is_displayed()  # the columns are to stand above it
        page.release("/open/preview")
        page.read_table()
        assert page.find("#to-labels").is_displayed()
        page.click("#close-table")
        page.click_words("houses.csv")
        page.read_table()
        page.hold("/open/change")
        page.click("#to-labels")
        page.held("/open/change")
        first, looks = page.wait(lambda: page.find("#ways button")), page.asked("/open/state")
        page.wait(
            lambda: page.asked("/open/state") > looks
        )  # which tells of what was before the click
        page.release("/open/change")
        page.wait(lambda: page.asked("/open/change"))
        page.hold("/open/outlook")
        assert first.is_displayed()  # it was not drawn again for nothing
        page.click("#ways button")
        page.held("/open/outlook")
        at_first = browser.execute_script(place)
        page.release("/open/outlook")
        page.wait(
            lambda: "at least 90 %" in page.text("#outlook") and "look alike" in page.text("#test")
        )
        assert browser.execute_script(place) == at_first
        before = browser.execute_script(high)
        page.hold("/open/outlook")
        page.click("#ways .way-box:last-child button")
        page.held("/open/outlook")
        assert browser.execute_script(high) >= before
        page.release("/open/outlook")
        page.wait(lambda: page.button("Label rows drawn at random"))
        assert browser.execute_script(high) >= before
        first = page.at_rest(lambda: page.find("#ways button"))
        ActionChains(browser, duration=0).click_and_hold(first).perform()
        space.change("houses.csv", space.saved.revision, {"confidence": 0.95})
        page.wait(lambda: "Another tab has changed this" in page.text("#toasts"))
        # The click is not lost, though all is drawn again.
        ActionChains(browser, duration=0).release().perform()
        page.wait(lambda: space.saved.choices.way == "chance")


LOSE = """
const fetched = window.fetch;
window.fetch = async (url, ...rest) => {
  if (!String(url).includes(arguments[0])) return fetched(url, ...rest);
  window.fetch = fetched;
  throw new TypeError("lost");
};
"""


def test_a_preview_that_was_lost_is_asked_for_again(browser, table):
    space = Workspace(table, "houses.csv")
    messy()[0].to_csv(table / "other.csv", index=False)
    with Served(space) as at:
        page = OpenPage(browser, at.address)
        page.click("#close-table")
        browser.execute_script(LOSE, "/open/preview")
        page.click_words("other.csv")
        page.wait(lambda: page.text("#table-lead") not in ("", "Reading the table …"))
        assert not page.find("#to-labels").is_displayed()
        page.click("#steps [data-step=table]")
        page.read_table()
        assert page.find("#to-labels").is_displayed()


def test_a_labelling_page_that_has_ended_is_left_in_peace(browser, table):
    space = Workspace(table, "houses.csv")
    space.change("houses.csv", 0, {"target": "price", "step": "labels", "way": "unknown"})
    with Served(space) as at:
        page = OpenPage(browser, at.address)
        page.click_words("Label rows drawn at random")
        page.wait(lambda: browser.current_url.endswith("/label"))
        page.ready()
        ended = "const done = arguments[0]; import('/page/api.js').then(({ post }) => post('/open/back')).then(done)"
        browser.execute_async_script(ended)  # as another tab does
        browser.execute_script("window.dispatchEvent(new Event('focus'))")
        page.wait(lambda: "Labelling has ended: go back to the table." in page.text("#toasts"))
        page.click("#home")
        page.wait(lambda: browser.find_elements(By.CSS_SELECTOR, "#ways svg"))
        assert page.errors() == []


@pytest.mark.slow
def test_the_whole_way_by_keyboard_on_a_workbook(browser, tmp_path):
    frame, _ = messy()
    frame["kind"] = frame["kind"].where(np.arange(len(frame)) % 3 > 0)
    with pd.ExcelWriter(tmp_path / "houses.xlsx") as book:
        pd.DataFrame({"about": ["nothing"]}).to_excel(book, sheet_name="notes", index=False)
        frame.assign(price=pd.to_numeric(frame["price"])).to_excel(
            book, sheet_name="houses", index=False
        )
    with served(tmp_path) as at:
        page = OpenPage(browser, at.address)
        page.tab_to("#tables button")
        page.type(Keys.ENTER)
        page.wait(lambda: page.find("#sheet-box").is_displayed())
        page.tab_to("#sheet")
        page.type("h")
        page.wait(lambda: len(browser.find_elements(By.CSS_SELECTOR, "#targets button")) == 2)
        page.tab_to("#targets button")
        if page.focused().text.startswith("price"):
            page.type(Keys.ARROW_RIGHT)
        page.type(Keys.ENTER)
        page.wait(lambda: page.find("#to-labels").is_enabled())
        page.tab_to("#to-labels")
        page.type(Keys.ENTER)
        page.see_ways()
        page.tab_to("#ways button")
        page.type(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.SPACE)
        page.wait(lambda: "within every class" in page.text("#outlook"))
        page.tab_to("#fill")
        page.type(Keys.ENTER)
        assert page.answers()
        page.tab_to("#rows tbody button")
        page.type(Keys.ENTER)
        page.wait(
            lambda: browser.execute_script("return document.querySelector('#row-dialog').open")
        )
        page.type(Keys.ESCAPE)
        assert page.focused().accessible_name.startswith("Line ")
        page.tab_to("#ask-trust")
        page.type(Keys.ENTER)
        page.wait(lambda: page.find("#trust").is_displayed())


# ------------------------------------------------------------------------------------------------- one more of each


class Program:
    """``transduce open`` as a process of its own, always at the same port."""

    def __init__(self, folder):
        self.folder, self.port, self._running = folder, 0, None

    def start(self):
        command = [sys.executable, "-m", "transduce", "open", str(self.folder), "--no-browser"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        self._running = subprocess.Popen([*command, "--port", str(self.port)], **pipes)
        for line in self._running.stdout:
            found = re.match(r"Open (http://127.0.0.1:(\d+)/\S+)", line)
            if found:
                self.port = int(found[2])
                return found[1]
        raise AssertionError("It did not start.")

    def kill(self):
        if self._running is not None:
            self._running.kill()
            self._running.communicate()


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A folder with a table that was filled, and one of pictures."""
    folder = tmp_path_factory.mktemp("done")
    messy()[0].to_csv(folder / "houses.csv", index=False)
    with served(folder, "houses.csv") as at:
        client = Client(at)
        settle(client, {"target": "price", "way": "chance", "guarantee": "column"})
        fill(client)
    return folder


@pytest.mark.slow
def test_a_kill_in_each_step_and_it_goes_on_there(browser, table):
    program = Program(table)
    try:
        page = OpenPage(browser, program.start())
        page.click_words("houses.csv")
        page.read_table()
        for name, what, seen in (
            ("the target", "#targets button", "#targets [aria-checked=true]"),
            ("the step", "#to-labels", "#view-labels:not([hidden]) #ways svg"),
            ("the way", "#ways button", "#ways [aria-checked=true]"),
            ("the fill", "#fill", "#view-answers:not([hidden]) #run:not([hidden])"),
        ):
            page.click(what)
            page.wait(lambda seen=seen: browser.find_elements(By.CSS_SELECTOR, seen))
            page.wait(lambda name=name: said(table, name))
            program.kill()
            page = OpenPage(browser, program.start())
            page.wait(lambda seen=seen: browser.find_elements(By.CSS_SELECTOR, seen))
        page.wait(lambda: "The program ended during the fill" in page.text("#run"))
        page.click("#run .primary")
        assert len(page.answers()) == 25
        program.kill()
        page = OpenPage(browser, program.start())
        assert len(page.answers()) == 25
        page.click("#label")
        page.wait(lambda: browser.current_url.endswith("/label"))
        page.ready()
        page.find("#number").send_keys("200000", Keys.ENTER)
        page.wait(lambda: page.labelled() == 1)
        program.kill()
        page = OpenPage(browser, program.start())
        assert len(page.answers()) == 25
        page.click("#label")
        page.wait(lambda: browser.current_url.endswith("/label"))
        page.ready()
        assert page.labelled() == 1
    finally:
        program.kill()


def said(folder, name):
    """Whether what the person did last is on disk."""
    choices = Saved.read(folder / "houses.csv.transduce").choices
    return {
        "the target": choices.target == "price",
        "the step": choices.step == "labels",
        "the way": choices.way == "chance",
        "the fill": choices.step == "answers",
    }[name]


@pytest.mark.slow
def test_two_tabs_see_each_other(browser, table):
    with served(table, "houses.csv") as at:
        page = OpenPage(browser, at.address)
        page.read_table()
        first = browser.current_window_handle
        page.click_words("price")
        page.wait(lambda: page.find("#to-labels").is_enabled())
        browser.switch_to.new_window("tab")
        try:
            other = OpenPage(browser, at.address.partition("?")[0])
            other.read_table()
            assert other.find("#targets [aria-checked=true]").text.startswith("price")
            browser.switch_to.window(first)
            page.hold("/open/state")  # this tab does not see what the other one does
            second = next(one for one in browser.window_handles if one != first)
            browser.switch_to.window(second)
            other.click_words("kind")
            other.wait(lambda: other.find("#column-dialog").is_displayed())
            other.click_words("Ignore this column") if other.button("Ignore") else other.click(
                "#column-body input"
            )
            other.wait(
                lambda: Saved.read(table / "houses.csv.transduce").choices.ignore == ["kind"]
            )
        finally:
            browser.close()
            browser.switch_to.window(first)
        page.click_words("size")
        page.click("#column-body input")
        page.wait(lambda: "changed in another tab" in page.text("#toasts"))
        page.release("/open/state")
        page.wait(lambda: browser.find_elements(By.CSS_SELECTOR, "#preview th.off"))
    assert Saved.read(table / "houses.csv.transduce").choices.ignore == ["kind"]


@pytest.mark.slow
def test_pictures_are_shown_from_below_the_folder_alone(browser, tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    names = [f"photos/{i}.png" for i in range(40)]
    for i, name in enumerate(names):
        shade = np.full((8, 8), 40 if i % 2 else 200, dtype=np.uint8) + rng.integers(
            0, 20, (8, 8), dtype=np.uint8
        )
        Image.fromarray(shade).save(tmp_path / name)
    names[1] = "../../secret.png"
    kind = np.where(np.arange(40) % 4 < 2, np.where(np.arange(40) % 2, "dark", "light"), None)
    pd.DataFrame({"photo": names, "kind": kind}).to_csv(tmp_path / "t.csv", index=False)
    with served(tmp_path, "t.csv") as at:
        page = OpenPage(browser, at.address)
        page.read_table()
        assert "picture" in page.text("#preview thead")
        sizes = "return [...document.querySelectorAll('#preview img')].filter((one) => one.naturalWidth === 8).length"
        page.wait(lambda: browser.execute_script(sizes) == 7)
        assert "../../secret.png" in page.text("#preview tbody")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1300])
def test_every_step_can_be_read_by_everybody(browser, done, scheme, width):
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )
    with served(done, "houses.csv") as at:
        page = OpenPage(browser, at.address)
        page.size(width, 800)
        for step, ready in (
            ("answers", "#rows td"),
            ("table", "#preview td"),
            ("labels", "#outlook .headline"),
        ):
            page.click(f"#steps [data-step={step}]")
            page.wait(lambda ready=ready: browser.find_elements(By.CSS_SELECTOR, ready))
            assert browser.execute_script(CONTRAST) == []
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert browser.title == "houses.csv · transduce"
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.slow
def test_numbers_are_written_as_the_language_does_and_worse_is_called_worse(browser, done):
    result = done / ".transduce" / "houses.csv" / "result"
    known = json.loads((result / "brief.json").read_text())["known"]
    errors = {"measured": [60, 60], "rows": 60, "means": [900.0, 1200.0]}
    quality = {
        "quality": errors | {"clear": True, "worse": True},
        "guarantee": ["exact", "approximate"],
        "size": [1.0, 2.0],
    }
    (result / "changes.json").write_text(
        json.dumps({"rows": 30, "changed": 3, "labels": 2, **quality})
    )
    browser.execute_cdp_cmd("Emulation.setLocaleOverride", {"locale": "de-DE"})
    with served(done, "houses.csv") as at:
        page = OpenPage(browser, at.address)
        page.click("#steps [data-step=answers]")  # wherever the tests before this one left it
        page.answers()
        sentence = "Half of the intervals are narrower than 1,234,567.5; “1,000 labels” and version 0.1.0 stay."
        found = browser.execute_async_script(
            "const [sentence, done] = arguments; import('/page/locale.js').then(({ words, typed }) => "
            "done(JSON.stringify([words(sentence), typed('20.000,5'), "
            "typed('20,000.5'), typed(',5'), typed('-1e-3'), typed('e3'), typed('-')])))",
            sentence,
        )
        said = "Half of the intervals are narrower than 1.234.567,5; “1,000 labels” and version 0.1.0 stay."
        assert json.loads(found) == [said, 20000.5, None, 0.5, -0.001, None, None]
        assert f"{known[1]:,.0f}".replace(",", ".")[:3] in page.text("#quality .scatter")
        assert not re.search(r"\d,\d{3}", page.text("#reply") + page.text("#cards"))
        assert (page.text("#cards .icon"), "Worse than before" in page.text("#cards")) == (
            "↓",
            True,
        )
        assert "100 % wider" in page.text("#changes .worse").replace("\xa0", " ")
        page.click("#ask-trust")
        field = page.wait(lambda: page.find("#most-off"))
        field.clear()
        field.send_keys("100.000", Keys.ENTER)
        page.wait(lambda: "off by more than 100.000" in page.text("#trust-said"))
        assert "tolerance=100000" in page.find("#trust-file").get_attribute("href")
    browser.execute_cdp_cmd("Emulation.setLocaleOverride", {})
    (result / "changes.json").unlink()


@pytest.mark.slow
def test_hostile_cells_and_names_are_text(browser, tmp_path):
    frame, _ = messy()
    frame = frame.rename(columns={"kind": HOSTILE, "note": "../..", "age": "__proto__"})
    frame["size"] = [HOSTILE + str(i % 3) for i in range(len(frame))]
    path = tmp_path / "<b>bold&amp;.csv"
    frame.to_csv(path, index=False)
    with served(tmp_path, path.name) as at:
        client = Client(at)
        settle(client, {"target": "price", "way": "chance"})
        fill(client)
    with served(tmp_path, path.name) as at:
        page = OpenPage(browser, at.address)
        page.answers()
        page.click("#rows tbody button")
        page.wait(lambda: page.find("#row-dialog").is_displayed())
        assert HOSTILE in page.text("#row-dialog")
        page.type(Keys.ESCAPE)
        page.click("#steps [data-step=table]")
        page.read_table()
        assert HOSTILE in page.text("#preview")
        assert browser.title == "<b>bold&amp;.csv · transduce"
        assert not browser.find_elements(By.CSS_SELECTOR, "main b.bold, main img[src=x]")
