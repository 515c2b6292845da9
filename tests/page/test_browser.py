"""The page in a real browser, by keyboard: a whole session, undo, change, reload, kill and restart, export, a phone."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

from tests.labelling.tables import clusters, numbers
from transduce.labelling import Session, SessionSettings

pytest.importorskip("uvicorn", reason="NOT TESTED: the labelling page, because uvicorn is not installed.")
pytest.importorskip("selenium", reason="NOT TESTED: the labelling page in a browser; install selenium.")
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    BROWSER is None or DRIVER is None,
    reason="NOT TESTED, because Chromium and its driver are not installed: the labelling page in a browser. Install "
    "chromium and chromium-driver.",
)
LIMIT = 120  # seconds a test may take
FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--hide-scrollbars",
]  # fmt: skip
SCRIPT = "<script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\"><b>bold</b>"
SERVE = """
import sys
from transduce.labelling import SessionSettings
from transduce.page.command import run_label
path, port, kind = sys.argv[1:]
options = {"show": ["title", "note", "height", "weight"], "classes": ["yes", "no"]}
settings = SessionSettings(task="numbers" if kind == "numbers" else "auto", seed=11 if kind == "new" else None)
run_label(path, "relevant", **({} if kind == "numbers" else options), settings=settings, port=int(port), browser=False,
          say=lambda text: print(text, flush=True))
"""


@pytest.fixture(autouse=True)
def _limit():
    """End a test that hangs."""

    def late(number, frame):
        raise TimeoutError(f"The test took longer than {LIMIT} s.")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    try:
        driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    except WebDriverException as error:
        pytest.skip(f"NOT TESTED: Chromium does not start here ({error.msg[:200]}).")
    driver.set_page_load_timeout(30)
    driver.set_script_timeout(30)
    yield driver
    driver.quit()


class Program:
    """``transduce label`` as a process of its own."""

    def __init__(self, path):
        self.path, self.process, self.port = path, None, 0

    def start(self, kind="new"):
        command = [sys.executable, "-c", SERVE, str(self.path), str(self.port), kind]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        for line in self.process.stdout:
            found = re.match(rb"Open (http://127.0.0.1:(\d+)/\S+)", line)
            if found:
                self.port = int(found[2])
                return found[1].decode()
        raise AssertionError("The program ended.")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def end(self):
        self.process.send_signal(signal.SIGINT)
        words = self.process.stdout.read().decode()
        self.process.stdout.close()
        assert self.process.wait() == 0
        return words


class Page:
    """The page, as a person with a keyboard uses it."""

    def __init__(self, driver, address):
        self.driver = driver
        driver.get(address)
        self.wait(lambda: driver.find_elements(By.CSS_SELECTOR, "body[data-ready]"))

    def wait(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                found = condition()
            except WebDriverException:
                found = None
            if found:
                return found
            time.sleep(0.02)
        raise AssertionError("It did not happen.")

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

    def errors(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def size(self, width, height):
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )


@pytest.fixture
def program(tmp_path):
    frame, truth = clusters()
    notes = [f"What is known of number {i}: {SCRIPT}" for i in range(len(frame))]
    frame.assign(note=notes).to_csv(tmp_path / "papers.csv", index=False)
    running = Program(tmp_path / "papers.csv")
    running.truth, running.folder = truth, tmp_path
    yield running
    if running.process is not None and running.process.poll() is None:
        running.kill()


@pytest.fixture
def page(program, browser):
    browser.get_log("browser")
    page = Page(browser, program.start())
    page.size(1280, 900)
    yield page
    errors = page.errors()
    browser.get("about:blank")  # so that nobody asks a program that has ended
    assert errors == []


def test_a_whole_session_by_keyboard(page, program):
    truth = program.truth
    assert page.text("#recall-headline") == "Nothing is certain yet."
    page.judge(truth, 20)  # all hits are among the likeliest
    page.press("a")
    page.wait(lambda: page.text("#why").startswith("Random draw 1."))
    while "You can stop" not in page.text("#recall-headline"):
        page.judge(truth)
        assert page.labelled() <= 60
    assert page.labelled() < 60
    page.press("s")
    page.wait(lambda: "31" not in page.text("#why"))
    page.press("l")
    page.wait(lambda: page.find("[data-mode=learn]").get_attribute("aria-checked") == "true")
    page.press("h")
    rows = page.wait(lambda: page.driver.find_elements(By.CSS_SELECTOR, "#history-list li"))
    assert len(rows) == page.labelled() + 1
    page.press(Keys.ESCAPE)
    page.driver.get("about:blank")
    assert "Ended." in program.end()


def test_undo_and_change_by_keyboard(page, program):
    truth = program.truth
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
    program = Program(tmp_path / "houses.csv")
    browser.get_log("browser")
    page = Page(browser, program.start("numbers"))
    try:
        page.press("1")  # a digit goes into the field
        field = page.find("#number")
        page.wait(lambda: field.get_attribute("value") == "1")
        field.send_keys("2,345", Keys.ENTER)
        page.wait(lambda: "can be read in two ways: type 12345, or 12.345" in page.text("#toasts"))
        assert page.labelled() == 120
        field.clear()
        field.send_keys("123456,75", Keys.ENTER)
        page.wait(lambda: page.labelled() == 121)
        field.send_keys(Keys.ESCAPE)
        page.press("h")
        marks = "#history-list .mark"
        page.wait(lambda: len(browser.find_elements(By.CSS_SELECTOR, marks)) == 100)
        assert page.text(marks) == "123456.75"
        page.find("#history-more").click()
        page.wait(lambda: len(browser.find_elements(By.CSS_SELECTOR, marks)) == 121)
        assert not page.find("#history-more").is_displayed()
        page.find("#history-list li:last-child button").click()  # the first decision of all
        page.wait(lambda: page.row() == 0)
        page.press(Keys.ARROW_RIGHT)
        page.wait(lambda: page.row() == 1)
        assert page.errors() == []
    finally:
        browser.get("about:blank")
        program.kill()


SLOW_ROWS = """
const fetched = window.fetch;
window.fetch = async (url, ...rest) => {
  if (String(url).includes("/api/row/")) await new Promise((done) => setTimeout(done, 700));
  return fetched(url, ...rest);
};
"""


def test_search_by_keyboard(page, program):
    page.driver.execute_script(SLOW_ROWS)
    page.press("/")
    page.wait(lambda: page.driver.switch_to.active_element.get_attribute("id") == "search")
    page.driver.switch_to.active_element.send_keys("apple")
    page.wait(lambda: page.text("#search-count") == "15 rows.")
    page.driver.switch_to.active_element.send_keys(Keys.ENTER)
    page.wait(lambda: not page.driver.find_elements(By.CSS_SELECTOR, "dialog[open]"))
    # At once: with the dialog gone, keys label the row that was found.
    assert program.truth[page.row()] == "yes"
    page.press("1")
    page.wait(lambda: page.labelled() == 1)


def test_keys_can_be_changed(page, program):
    page.press("?")
    field = page.wait(lambda: page.find("input[aria-label='Key of no']"))
    field.clear()
    field.send_keys("n")
    page.press(Keys.ESCAPE)
    page.wait(lambda: not page.driver.find_elements(By.CSS_SELECTOR, "dialog[open]"))
    page.press("n")
    page.wait(lambda: page.labelled() == 1)
    page.driver.refresh()
    page.wait(lambda: page.driver.find_elements(By.CSS_SELECTOR, "body[data-ready]"))
    page.press("n")
    page.wait(lambda: page.labelled() == 2)
    page.driver.execute_script("localStorage.clear()")


def test_reload_in_the_middle(page, program):
    page.judge(program.truth, 6)
    page.press("a")
    page.wait(lambda: page.text("#why").startswith("Random draw 1."))
    row, words = page.row(), page.text("#certificate")
    page.driver.refresh()
    page.wait(lambda: page.driver.find_elements(By.CSS_SELECTOR, "body[data-ready]"))
    assert (page.row(), page.text("#certificate"), page.labelled()) == (row, words, 6)


def test_killed_and_started_again(page, program, browser):
    page.judge(program.truth, 8)
    page.press("a")
    page.wait(lambda: page.text("#why").startswith("Random draw 1."))
    page.judge(program.truth, 5)
    row, words, headline = page.row(), page.text("#progress-words"), page.text("#recall-headline")
    program.kill()
    page.press("1")
    page.wait(lambda: "Nothing is lost" in (page.text("#toasts") or ""))
    assert "✓" not in page.text("#saved")
    again = Page(browser, program.start("again"))
    browser.get_log("browser")  # that the program was gone was an error here
    assert (again.row(), again.text("#progress-words"), again.text("#recall-headline")) == (
        row,
        words,
        headline,
    )
    again.judge(program.truth)


def test_an_old_page_of_a_restarted_program_says_so(page, program, browser):
    program.kill()
    program.start("again")
    page.press("1")
    page.wait(lambda: "earlier start" in (page.text("#toasts") or ""))
    browser.get("about:blank")
    browser.get_log("browser")


def test_export(page, program):
    page.judge(program.truth, 25)
    page.press("e")
    page.wait(lambda: page.find("#export-go")).click()
    page.wait(lambda: page.driver.find_elements(By.CSS_SELECTOR, "#export-files li"), 100)
    written = [item.text for item in page.driver.find_elements(By.CSS_SELECTOR, "#export-files li")]
    assert written == [
        "papers-labelled.csv",
        "papers-filled.csv",
        "papers-filled.html",
        "papers-certificate.txt",
    ]
    labelled = pd.read_csv(program.folder / "papers-labelled.csv")
    assert labelled["relevant_label"].notna().sum() == 25
    assert (program.folder / "papers-filled.csv").exists()
    assert "chance chose the labelled rows, and it did not" in page.text("#export-body")


def test_text_of_the_table_stays_text(page, program):
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
        """const done = arguments[0]; const seen = [];
        document.addEventListener("securitypolicyviolation", (event) => seen.push(event.effectiveDirective));
        const script = document.createElement("script"); script.textContent = "document.title = 'run'";
        document.body.append(script);
        fetch("http://127.0.0.1:9/x").catch(() => {});
        setTimeout(() => done(seen), 300);"""
    )
    assert {"script-src-elem", "connect-src"} <= set(blocked)
    assert page.driver.title != "run"
    browser.get_log("browser")


def test_foreign_pages_get_nothing(page, program, browser):
    """Another origin on this very machine, with the cookie in the same browser: every request is refused."""
    import http.server
    import threading

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
        page.wait(lambda: browser.find_elements(By.CSS_SELECTOR, "body[data-ready]"))
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


def test_all_fits_phones_and_desks_in_light_and_dark(page, program, browser):
    page.judge(program.truth, 2)
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
    page.judge(program.truth, 2)
    page.size(1280, 900)


def test_everything_has_a_name_for_screen_readers(page, program):
    page.judge(program.truth, 3)
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
