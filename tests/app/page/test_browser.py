"""The page in a real browser, by keyboard: a whole session, undo, change, reload, kill and restart, export, a phone."""

from __future__ import annotations

import re
import shutil
import threading
import time
from functools import partial

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests.app.labelling.processes import Running, serve_page
from tests.app.labelling.tables import clusters, numbers
from transduce.app.filling import fill
from transduce.app.labelling import Session, SessionSettings
from transduce.app.labelling.prepared import prepare
from transduce.app.labelling.table import read_label_table

pytest.importorskip(
    "uvicorn", reason="NOT TESTED: the labelling page, because uvicorn is not installed."
)
pytest.importorskip(
    "selenium", reason="NOT TESTED: the labelling page in a browser; install selenium."
)
from selenium.common.exceptions import InvalidSessionIdException, WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.app.page.serving import Served

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
DRIVER = shutil.which("chromedriver")
LIMIT = 400  # seconds a test may take on the slowest machine; nothing else here waits for time
ANSWERS = 60  # seconds after which a browser that does not answer hangs
pytestmark = [
    pytest.mark.timeout(LIMIT),
    pytest.mark.skipif(
        BROWSER is None or DRIVER is None,
        reason="NOT TESTED, because Chromium and its driver are not installed: the labelling page in a browser. "
        "Install chromium and chromium-driver.",
    ),
]
SCRIPT = "<script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\"><b>bold</b>"
SHOWN = ["title", "note", "height", "weight"]


class Program:
    """``transduce label`` as a process of its own."""

    def __init__(self, path):
        self.path, self.port, self._running = path, 0, None

    def start(self, kind="new"):
        self._running = Running(serve_page, self.path, self.port, kind)
        while True:
            found = re.match(r"Open (http://127.0.0.1:(\d+)/\S+)", self._running.hear())
            if found:
                self.port = int(found[2])
                return found[1]

    def kill(self):
        if self._running is not None:
            self._running.kill()

    def end(self):
        self._running.interrupt()
        words = self._running.hear_all()
        assert self._running.process.exitcode == 0
        return words[-1]


class Page:
    """The page, as a person with a keyboard uses it."""

    def __init__(self, driver, address):
        self.driver = driver
        driver.get(address)
        self.ready()

    def wait(self, condition):
        """What a condition gives once it gives something; if LIMIT ends it, what the page shows is said.

        Elements that are drawn again meanwhile are looked for again; a browser that has ended is not.
        """
        pause = 0.02
        try:
            while True:
                try:
                    found = condition()
                except WebDriverException as error:
                    if isinstance(error, InvalidSessionIdException) or "crashed" in str(error):
                        raise
                else:
                    if found:
                        return found
                time.sleep(pause)
                pause = min(1.3 * pause, 0.3)
        except pytest.fail.Exception as error:
            pytest.fail(f"{error} {self.shown()}")

    def shown(self):
        """What the page shows, in words, also if the browser does not answer any more."""
        try:
            logged = [entry["message"] for entry in self.driver.get_log("browser")[-5:]]
            address, toasts = self.driver.current_url, self.text("#toasts")
            return f"The page: {address}, {toasts}, {self.find('body').text[:1500]}, {logged}"
        except Exception as error:
            return f"The browser does not answer: {error}"

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self.driver.execute_script(
            "return document.querySelector(arguments[0])?.textContent", selector
        )

    def row(self):
        return int(re.search(r"row ([\d,]+) of", self.text("#row-number"))[1].replace(",", "")) - 1

    def labelled(self):
        return int(self.text("#progress-words").split()[0].replace(",", ""))

    def press(self, *keys):
        self.find("body").send_keys(*keys)

    def judge(self, truth, count=1):
        """Label by the keys 1 and 2, and wait for "saved"."""
        for _ in range(count):
            before = self.labelled()
            self.press("1" if truth[self.row()] == "yes" else "2")
            self.wait(lambda before=before: self.labelled() == before + 1)
        assert self.text("#saved") == "✓ saved"

    def ready(self):
        self.wait(lambda: self.driver.find_elements(By.CSS_SELECTOR, "body[data-ready]"))

    def compared(self):
        """Wait until all rows are compared, which a program does while its page is open."""
        self.wait(lambda: self.text("#mode-note") == "")

    def no_dialog(self):
        self.wait(lambda: not self.driver.find_elements(By.CSS_SELECTOR, "dialog[open]"))

    def mode(self):
        return self.driver.execute_script(
            "return document.querySelector('#modes [aria-checked=true]').dataset.mode"
        )

    def hold(self, path, *, answers=False):
        """Keep requests to a path waiting until they are released, or their answers."""
        self.driver.execute_script(HOLD, path, answers)

    def held(self, path, count=1):
        number = "return window.holds[arguments[0]].waiting.length"
        self.wait(lambda: self.driver.execute_script(number, path) == count)

    def release(self, path):
        self.driver.execute_script("window.holds[arguments[0]].release()", path)

    def errors(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def size(self, width, height):
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )


HOLD = """
const [path, answers] = arguments;
const [fetched, waiting] = [window.fetch, []];
let on = true;
window.fetch = async (url, ...rest) => {
  if (!on || !String(url).includes(path)) return fetched(url, ...rest);
  const answer = answers ? await fetched(url, ...rest) : null;
  await new Promise((go) => waiting.push(go));
  return answer ?? fetched(url, ...rest);
};
const release = () => { on = false; for (const go of waiting) go(); };
window.holds = { ...window.holds, [path]: { waiting, release } };
"""


@pytest.fixture(scope="module")
def papers():
    """A table, its classes, and what is prepared of it."""
    frame, truth = clusters()
    notes = [f"What is known of number {i}: {SCRIPT}" for i in range(len(frame))]
    frame = frame.assign(note=notes)
    return frame, truth, prepare(read_label_table(frame, "relevant"))


@pytest.fixture
def page(papers, browser, tmp_path):
    """The page of a new session, served by this process."""
    frame, truth, prepared = papers
    path, settings = tmp_path / "papers.csv", SessionSettings(seed=11, prepared=prepared)
    frame.to_csv(path, index=False)
    browser.get_log("browser")
    with (
        Session(path, "relevant", show=SHOWN, classes=["yes", "no"], settings=settings) as session,
        Served(session) as served,
    ):
        page = Page(browser, served.address)
        page.truth, page.folder, page.session = truth, tmp_path, session
        page.size(1280, 900)
        yield page
        errors = page.errors()
        browser.get("about:blank")  # so that nobody asks a server that has ended
    assert errors == []


@pytest.fixture
def program(papers, browser, tmp_path):
    """The page of a new session, served by a program that can be killed."""
    frame, truth, _ = papers
    frame.to_csv(tmp_path / "papers.csv", index=False)
    browser.get_log("browser")
    program = Program(tmp_path / "papers.csv")
    program.truth, program.page = truth, Page(browser, program.start())
    program.page.compared()
    yield program
    browser.get("about:blank")
    program.kill()


def test_a_whole_session_by_keyboard(program):
    page, truth = program.page, program.truth
    assert page.text("#recall-headline") == "Nothing is certain yet."
    page.judge(truth, 20)  # all hits are among the likeliest
    page.press("a")
    page.wait(lambda: page.text("#why").startswith("Random draw 1."))
    while "You can stop" not in page.text("#recall-headline"):
        page.judge(truth)
        assert page.labelled() <= 60
    assert page.labelled() < 60
    page.press("s", "l")  # the second one waits for what the first one asked for
    page.wait(lambda: page.mode() == "learn")
    page.press("h")
    page.wait(lambda: page.find("#history-dialog[open]"))
    rows = page.driver.find_elements(By.CSS_SELECTOR, "#history-list li")
    assert len(rows) == page.labelled() + 1
    page.press(Keys.ESCAPE)
    assert page.errors() == []
    page.driver.get("about:blank")
    assert program.end().startswith("Ended.")


def test_rows_are_judged_while_all_are_compared(papers, browser, tmp_path, monkeypatch):
    frame, truth, prepared = papers
    compared = threading.Event()
    monkeypatch.setattr(
        "transduce.app.labelling.prepared.prepare",
        lambda table, **reading: prepared if compared.wait() else None,
    )
    frame.to_csv(tmp_path / "papers.csv", index=False)
    browser.get_log("browser")
    settings = SessionSettings(seed=11, wait=False)
    with (
        Session(
            tmp_path / "papers.csv", "relevant", classes=["yes", "no"], settings=settings
        ) as session,
        Served(session) as served,
    ):
        page = Page(browser, served.address)
        assert "Until then rows come in a random order, and Find waits." in page.text("#mode-note")
        assert not page.find("[data-mode=find]").is_enabled()
        page.judge(truth, 12)
        assert "random order" in page.text("#why")
        page.press("f")
        page.wait(lambda: "Find waits" in page.text("#toasts"))
        row = page.row()
        compared.set()
        page.wait(
            lambda: page.text("#mode-note") == "" and page.find("[data-mode=find]").is_enabled()
        )
        page.wait(lambda: ", from the columns" in page.text("#source"))
        assert page.row() == row
        assert page.find("#map").get_attribute("aria-label").startswith("Map of 60 rows")
        page.judge(truth)
        assert "most likely to be “yes”" in page.text("#why")
        assert page.errors() == []
        browser.get("about:blank")


def test_modes_and_undo_wait_for_a_request_and_labels_do_not(page):
    page.judge(page.truth, 2)
    page.hold("/api/answer")
    page.press("1")
    page.held("/api/answer")
    page.press("2", "u", "l", "a")  # the label would be of a row that nobody has seen yet
    assert (page.labelled(), page.mode()) == (2, "find")
    page.release("/api/answer")
    page.wait(lambda: page.mode() == "audit")
    assert page.text("#why").startswith("Random draw 1.")
    assert page.labelled() == 2
    page.press("h")
    page.wait(lambda: page.find("#history-dialog[open]"))
    assert len(page.driver.find_elements(By.CSS_SELECTOR, "#history-list li")) == 2


def test_two_tabs_on_one_row(page):
    """The second is told, and shows where the session stands; its label is not taken."""
    page.judge(page.truth, 2)
    row = page.row()
    page.session.answer("no", row=row)  # as another tab does
    page.press("1")
    page.wait(lambda: "Another tab has gone on" in page.text("#toasts") and page.row() != row)
    assert (page.labelled(), page.session.state.labels[row]) == (3, "no")
    page.press("s")
    page.wait(lambda: [*page.session.state.decisions.values()][-1].label is None)
    assert len(page.driver.find_elements(By.CSS_SELECTOR, ".toast")) == 1
    assert page.errors()[0].count("409")  # the browser itself logs what was refused
    announced = page.text("#announce")
    assert announced.startswith(f"Row {page.row() + 1} of 60. ")
    assert len(announced) < 110


LINES_OF_NAMES = """
return [...document.querySelectorAll("#classes button > span:nth-child(2)")].map((name) => {
  const lines = name.getBoundingClientRect().height / parseFloat(getComputedStyle(name).lineHeight);
  return [name.textContent, Math.round(lines), name.scrollWidth > name.clientWidth + 1];
});
"""


@pytest.mark.parametrize("width", [1280, 390])
def test_names_of_classes_are_whole_at_any_width(browser, papers, width):
    frame, _, prepared = papers
    names = ["Beschwerde", "Kündigung", "Rechnung", "Störung", "Frage zu einem laufenden Vertrag"]
    settings = SessionSettings(seed=1, prepared=prepared)
    with (
        Session(frame, "y", classes=names, settings=settings) as session,
        Served(session) as served,
    ):
        page = Page(browser, served.address)
        page.size(width, 900)
        page.wait(lambda: page.text("#classes").startswith("Beschwerde"))
        lines = browser.execute_script(LINES_OF_NAMES)
        assert [name for name, _, is_cut in lines if is_cut] == []
        assert [n_lines for _, n_lines, _ in lines[:4]] == [1, 1, 1, 1]


def test_many_classes_have_keys_names_and_colours(browser, papers, tmp_path):
    frame, _, prepared = papers
    names = [f"kind {'abcdefghijklmnopqrstuvwxyz'[k // 2]}{k}" for k in range(32)]
    browser.get_log("browser")
    settings = SessionSettings(seed=1, prepared=prepared)
    with (
        Session(frame, "y", classes=names, settings=settings) as session,
        Served(session) as served,
    ):
        page = Page(browser, served.address)
        assert page.text("#mode-note") == "Find waits until you choose the wanted class."
        page.press("g")  # the fourteenth
        page.wait(lambda: page.labelled() == 1)
        page.press(".")
        field = page.find("#name")
        page.wait(lambda: browser.switch_to.active_element == field)
        field.send_keys("kind p3", Keys.ENTER)
        page.wait(lambda: "begins 2 names: type more" in page.text("#toasts"))
        field.send_keys("1", Keys.ENTER)
        page.wait(lambda: page.labelled() == 2)
        assert sorted(session.state.labels.values()) == [names[13], names[31]]
        tints = "return [...document.querySelectorAll('#classes .dot')].map((e) => getComputedStyle(e).backgroundColor)"
        assert len(set(browser.execute_script(tints))) == 32
        assert page.errors() == []
        browser.get("about:blank")


def test_undo_and_change_by_keyboard(page):
    truth = page.truth
    page.judge(truth, 4)
    last = page.row()
    page.judge(truth)
    page.press("u")
    page.wait(lambda: page.row() == last)
    assert page.labelled() == 4
    assert page.text("#why") == "You took its label back."
    page.press(Keys.ARROW_LEFT)
    page.wait(lambda: page.row() != last)
    row = page.row()
    assert truth[row] in page.text("#card-state")
    pressed = page.find("#classes button[aria-pressed=true]")
    assert pressed.get_attribute("title") == truth[row]
    other = "no" if truth[row] == "yes" else "yes"
    page.press("2" if truth[row] == "yes" else "1")
    page.wait(lambda: page.row() == last)  # back at the row to judge
    page.press(Keys.ARROW_LEFT)
    page.wait(lambda: page.row() == row and f"“{other}”" in page.text("#card-state"))
    page.press(Keys.ARROW_LEFT)
    page.wait(lambda: page.row() not in (row, last))
    page.press(Keys.ARROW_RIGHT)
    page.wait(lambda: page.row() == row)
    page.press(Keys.ESCAPE)
    page.wait(lambda: page.row() == last)
    assert page.labelled() == 4


def test_numbers_by_keyboard_and_a_long_history(browser, tmp_path):
    frame, truth = numbers(160)
    frame.to_csv(tmp_path / "houses.csv", index=False)
    with Session(
        tmp_path / "houses.csv", "relevant", settings=SessionSettings(task="numbers", seed=1)
    ) as session:
        for row in range(120):
            session.answer(float(truth[row]), row=row)
    browser.get_log("browser")
    with Session(tmp_path / "houses.csv", "relevant") as session, Served(session) as served:
        page = Page(browser, served.address)
        page.press("1")  # a digit goes into the field
        field = page.find("#number")
        page.wait(lambda: field.get_attribute("value") == "1")
        field.send_keys("2,345", Keys.ENTER)
        page.wait(lambda: "“12,345” can be read in two ways" in page.text("#ask-title"))
        page.press(Keys.ESCAPE)
        page.no_dialog()
        assert page.labelled() == 120
        field.clear()
        field.send_keys("€ 123.456,75", Keys.ENTER)
        page.wait(lambda: "123,456.75 is far above all known values" in page.text("#ask-title"))
        page.find("#ask-body .primary").click()
        page.wait(lambda: page.labelled() == 121)
        field.send_keys(Keys.ESCAPE)
        page.press("h")
        marks = "#history-list .mark"
        page.wait(lambda: len(browser.find_elements(By.CSS_SELECTOR, marks)) == 100)
        assert page.text(marks) == "123,456.75"
        page.find("#history-more").click()
        page.wait(lambda: len(browser.find_elements(By.CSS_SELECTOR, marks)) == 121)
        assert not page.find("#history-more").is_displayed()
        page.find("#history-list li:last-child button").click()  # the first decision of all
        page.wait(lambda: page.row() == 0)
        page.press(Keys.ARROW_RIGHT)
        page.wait(lambda: page.row() == 1)
        assert page.errors() == []
        browser.get("about:blank")


def test_pictures_are_shown_and_answers_rest_on_them(browser, tmp_path):
    """Files and bytes, TIFF among them, which no browser shows as it is."""
    rng, truth, rows = np.random.default_rng(0), np.tile(["yes", "no"], 15), []
    for k, word in enumerate(truth):
        picture = Image.new("RGB", (30, 30), "white")
        x, y = rng.integers(0, 18, 2).tolist()
        picture.paste("red" if word == "yes" else "blue", (x, y, x + 12, y + 12))
        picture.save(tmp_path / f"{k}.png")
        picture.save(tmp_path / f"{k}.tif")
        rows.append({"file": f"{k}.png", "stored": (tmp_path / f"{k}.tif").read_bytes()})
    pd.DataFrame(rows).to_parquet(tmp_path / "photos.parquet")
    browser.get_log("browser")
    with (
        Session(tmp_path / "photos.parquet", "red", classes=["yes", "no"]) as session,
        Served(session) as served,
    ):
        page = Page(browser, served.address)
        widths = (
            "return [...document.querySelectorAll('#cells img')].map((image) => image.naturalWidth)"
        )
        page.wait(lambda: browser.execute_script(widths) == [30, 30])
        assert "from the columns “file”, “stored”." in page.text("#source")
        assert any("30 pictures were read" in note for note in session.notes)
        page.press("l")
        page.wait(lambda: page.mode() == "learn")
        page.judge(truth, 8)
        values = session.named(session.answers().values)
        assert np.mean(np.array(values) == truth) > 0.9
        assert page.errors() == []
        browser.get("about:blank")


def test_search_by_keyboard(page):
    page.hold("/api/row/")
    page.press("/")
    page.wait(lambda: page.driver.switch_to.active_element.get_attribute("id") == "search")
    page.driver.switch_to.active_element.send_keys("apple")
    page.wait(lambda: page.text("#search-count") == "15 rows.")
    page.driver.switch_to.active_element.send_keys(Keys.ENTER)
    page.held("/api/row/")
    assert page.driver.find_elements(By.CSS_SELECTOR, "dialog[open]")  # while the row is on its way
    page.release("/api/row/")
    page.no_dialog()
    # At once: with the dialog gone, keys label the row that was found.
    assert page.truth[page.row()] == "yes"
    page.press("1")
    page.wait(lambda: page.labelled() == 1)


def test_keys_can_be_changed(page):
    page.press("?")
    field = page.wait(lambda: page.find("input[aria-label='Key of no']"))
    field.clear()
    field.send_keys("n")
    page.press(Keys.ESCAPE)
    page.no_dialog()
    page.press("n")
    page.wait(lambda: page.labelled() == 1)
    page.driver.refresh()
    page.ready()
    page.press("n")
    page.wait(lambda: page.labelled() == 2)
    page.driver.execute_script("localStorage.clear()")


def test_reload_in_the_middle(page):
    page.judge(page.truth, 6)
    page.press("a")
    page.wait(lambda: page.text("#why").startswith("Random draw 1."))
    row, words = page.row(), page.text("#certificate")
    page.driver.refresh()
    page.ready()
    assert (page.row(), page.text("#certificate"), page.labelled()) == (row, words, 6)


def test_killed_and_started_again(program, browser):
    page, truth = program.page, program.truth
    page.judge(truth, 8)
    page.press("a")
    page.wait(lambda: page.text("#why").startswith("Random draw 1."))
    page.judge(truth, 5)
    shown = page.row(), page.text("#progress-words"), page.text("#recall-headline")
    assert page.errors() == []
    program.kill()
    page.press("1")
    page.wait(lambda: "Nothing is lost" in (page.text("#toasts") or ""))
    assert "✓" not in page.text("#saved")
    again = Page(browser, program.start("again"))
    assert (again.row(), again.text("#progress-words"), again.text("#recall-headline")) == shown
    again.judge(truth)


def test_an_old_page_of_a_restarted_program_says_so(program):
    program.kill()
    program.start("again")
    program.page.press("1")
    program.page.wait(lambda: "earlier start" in (program.page.text("#toasts") or ""))


def test_export(page, monkeypatch):
    monkeypatch.setattr(
        "transduce.app.labelling.export.fill", partial(fill, method="ridge")
    )  # it is quick
    for _ in range(22):
        page.session.answer(page.truth[page.session.propose().row])
    page.driver.refresh()
    page.ready()
    page.judge(page.truth, 3)
    page.press("e")
    assert f"the folder {page.folder.resolve()} are written" in page.wait(
        lambda: page.text("#export-body")
    )
    page.wait(lambda: page.find("#export-go")).click()
    page.wait(lambda: page.driver.find_elements(By.CSS_SELECTOR, "#export-files li"))
    written = [item.text for item in page.driver.find_elements(By.CSS_SELECTOR, "#export-files li")]
    assert written == [
        "papers-labelled.csv",
        "papers-filled.csv",
        "papers-filled.html",
        "papers-certificate.txt",
    ]
    labelled = pd.read_csv(page.folder / "papers-labelled.csv")
    assert labelled["relevant_label"].notna().sum() == 25
    assert (page.folder / "papers-filled.csv").exists()
    said = page.text("#export-body")
    assert said.startswith("Nothing is guaranteed at 90 %.")
    assert "Labels that were chosen do not measure how good the answers are" in said
    assert "--" not in said


def test_text_of_the_table_stays_text(page):
    page.wait(lambda: "bold" in page.text("#cells"))
    assert SCRIPT in page.text("#cells")
    assert page.driver.find_elements(By.CSS_SELECTOR, "#cells b, #cells script, #cells img") == []
    page.press("/")
    page.wait(lambda: page.driver.switch_to.active_element.get_attribute("id") == "search")
    page.driver.switch_to.active_element.send_keys("onerror")
    page.wait(lambda: page.text("#search-count") == "The first 50 rows.")
    assert "run" not in page.driver.title
    page.press(Keys.ESCAPE)


def test_the_policy_forbids_foreign_scripts_and_requests(page, browser):
    blocked = page.driver.execute_async_script(
        """const done = arguments[0]; const seen = new Set();
        document.addEventListener("securitypolicyviolation", (event) => {
            seen.add(event.effectiveDirective);
            if (seen.size === 2) done([...seen]);
        });
        const script = document.createElement("script"); script.textContent = "document.title = 'run'";
        document.body.append(script);
        fetch("http://127.0.0.1:9/x").catch(() => {});"""
    )
    assert set(blocked) == {"script-src-elem", "connect-src"}
    assert page.driver.title != "run"
    browser.get_log("browser")


def test_foreign_pages_get_nothing(page, browser):
    """Another origin on this very machine, with the cookie in the same browser: every request is refused."""
    import http.server

    class Foreign(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!DOCTYPE html><title>foreign</title>")

        def log_message(self, *words):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Foreign)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = browser.current_url
    try:
        browser.get(f"http://127.0.0.1:{server.server_port}/")
        seen = browser.execute_async_script(
            """const [there, done] = [arguments[0], arguments[1]];
            const ask = (path, options) => fetch(there + path, options).then(() => "open", () => "closed");
            const image = new Promise((result) => { const i = new Image(); i.onload = () => result("open");
                i.onerror = () => result("closed"); i.src = there + "page/icon.svg"; });
            const script = new Promise((result) => { const s = document.createElement("script");
                s.onload = () => result("open"); s.onerror = () => result("closed"); s.src = there + "page/main.js";
                document.head.append(s); });
            Promise.all([ask("api/view", {credentials: "include"}),
                ask("api/undo", {method: "POST", credentials: "include", body: "{}"}),
                image, script]).then(done);""",
            address,
        )
        assert seen == ["closed"] * 4
        browser.get_log("browser")
        browser.get(address)
        page.ready()
    finally:
        server.shutdown()
        server.server_close()


LAYOUT = """
const wide = [...document.querySelectorAll("body *")].filter((e) => {
    const box = e.getBoundingClientRect();
    return box.width > 0 && box.right > document.documentElement.clientWidth + 1 && !e.closest(".skip-link");
}).map((e) => `${e.tagName}.${e.className}`);
const small = [...document.querySelectorAll("#classes button, .small-actions button")]
    .filter((e) => e.getBoundingClientRect().height < 30).length;
return {width: innerWidth, page: document.documentElement.scrollWidth, wide, small,
        ground: getComputedStyle(document.body).backgroundColor};
"""


def test_all_fits_phones_and_desks_in_light_and_dark(page, browser):
    page.judge(page.truth, 2)
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        for width in (360, 390, 768, 1280):
            page.size(width, 844)
            page.wait(lambda width=width: browser.execute_script("return innerWidth") == width)
            seen = browser.execute_script(LAYOUT)
            assert seen["page"] <= width
            assert seen["wide"] == []
            assert seen["small"] == 0
            brightness = sum(map(int, re.findall(r"\d+", seen["ground"])[:3]))
            assert brightness > 600 if scheme == "light" else brightness < 120
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    page.size(390, 844)
    page.judge(page.truth, 2)
    page.size(1280, 900)


def test_everything_has_a_name_for_screen_readers(page):
    page.judge(page.truth, 3)
    nodes = page.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    nameless = [
        (node["role"]["value"], node.get("name", {}).get("value"))
        for node in nodes
        if not node.get("ignored")
        and node.get("role", {}).get("value")
        in ("button", "radio", "tab", "textbox", "combobox", "image", "img", "searchbox")
        and not node.get("name", {}).get("value", "").strip()
    ]
    assert nameless == []
    roles = [node["role"]["value"] for node in nodes if "role" in node]
    assert {"main", "banner", "navigation", "radiogroup", "complementary"} <= set(roles)
