"""A column without any label, or one that the table does not have, is labelled from the page."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")
pytest.importorskip("selenium", reason="NOT TESTED: the page in a browser; install selenium.")
from tests.app.labelling.processes import Running
from tests.app.page.serving import Served
from tests.app.page.test_browser import pytestmark  # noqa: F401
from tests.app.page.test_dead_ends_browser import back, label, to_labelling
from tests.app.page.test_open_browser import OpenPage
from transduce.app.page.command import run_open
from transduce.app.page.workspace import Workspace


@pytest.fixture
def papers(tmp_path):
    """Papers of which nobody has read one: the column of the verdict is empty."""
    years = np.random.default_rng(0).integers(1990, 2020, 60)
    frame = pd.DataFrame({"title": [f"paper {i}" for i in range(60)], "year": years})
    frame["verdict"] = None
    frame.to_csv(tmp_path / "papers.csv", index=False)
    return Workspace(tmp_path, "papers.csv")


def test_an_empty_column_is_labelled_and_another_is_added(browser, papers):
    with Served(papers) as served:
        page = OpenPage(browser, served.address)
        page.read_table()
        assert "no value yet" in page.text("#table-lead")
        page.click_words("verdict")
        page.wait(lambda: page.find("#begin-dialog").get_attribute("open"))
        page.find("#begin-classes").clear()
        page.find("#begin-classes").send_keys("relevant\nnot relevant\n")
        to_labelling(page, "Begin to label")
        assert page.text("#classes") == "relevant1not relevant2"
        for key in ("1", "1", "2", "2"):
            answer(page, key)
        back(page)
        page.see_ways()  # the column has values now: what is next is how these came about
        page.click("#steps [data-step=table]")
        page.wait(lambda: page.find("#targets [aria-checked=true]").is_displayed())
        assert "no value yet" not in page.text("#table-lead")
        assert "verdict" in page.text("#targets")
        assert page.find("#to-labels").is_enabled()

        page.click_words("Add a column to label")
        page.find("#begin-name").send_keys("grade")
        page.click("#begin-numbers-kind")
        to_labelling(page, "Begin to label")
        label(page, np.arange(60) / 10, 2)
        assert not page.errors()
        back(page)
        page.see_ways()
        page.wait(lambda: page.button("Label more rows"))  # two known values are too few
        page.click("#steps [data-step=table]")
        page.wait(lambda: "grade" in page.text("#targets"))
        assert papers.saved.choices.added == "grade"
    assert list(pd.read_csv(papers.path).columns) == ["title", "year", "verdict"]


def test_cells_that_are_no_numbers_are_one_question_and_one_click(browser, tmp_path):
    rng = np.random.default_rng(0)
    size = rng.uniform(1.0, 5.0, 80)
    known = pd.Series([f"{one:.2f}" for one in size]).where(np.arange(80) < 60)
    known[[3, 9, 12]] = "pending"
    known[20] = "haemolysed"
    pd.DataFrame({"size": size, "ldl": known}).to_csv(tmp_path / "lab.csv", index=False)
    space = Workspace(tmp_path, "lab.csv")
    space.change("lab.csv", space.saved.revision, {"target": "ldl", "way": "chance"})
    with Served(space) as served:
        page = OpenPage(browser, served.address)
        page.read_table()
        page.wait(lambda: "“pending” (3), “haemolysed”" in page.text("#question"))
        page.click("#to-labels")
        page.wait(lambda: "waits for the answer" in page.text("#outlook"))
        page.click_words("Treat these 4 cells as empty")
        page.wait(lambda: "Guaranteed" in page.text("#outlook"))
        assert page.text("#labels-question") == ""
        assert sorted(space.saved.choices.missing) == ["haemolysed", "pending"]


def serve(say, path):
    run_open(path, port=0, browser=False, say=say)


def start(path):
    """``transduce open`` as a process of its own, and the address of its page."""
    running = Running(serve, str(path))
    while True:
        words = running.hear()
        if words.startswith("Open http"):
            return running, words.split()[1]


def answer(page, key):
    before = page.labelled()
    page.find("body").send_keys(key)
    page.wait(lambda: page.labelled() == before + 1)


def test_predictions_are_checked_blindly_also_after_a_kill(browser, tmp_path):
    predicted = ["zebra" if i % 3 else "horse" for i in range(60)]
    texts = [f"message {i}" for i in range(60)]
    frame = pd.DataFrame({"text": texts, "llm": predicted, "size": np.arange(60)})
    frame.to_csv(tmp_path / "judged.csv", index=False)
    running, address = start(tmp_path / "judged.csv")
    try:
        page = OpenPage(browser, address)
        page.read_table()
        page.click_words("Add a column to label")
        page.find("#begin-name").send_keys("gold")
        page.find("#begin-check [value=llm]").click()
        to_labelling(page, "Begin to label")
        assert page.text("#classes") == "horse1zebra2"
        for _ in range(4):
            row = page.row()
            assert predicted[row] not in page.text("#row")
            answer(page, "1")
            verdict = "Agrees" if predicted[row] == "horse" else "Differs"
            page.wait(lambda verdict=verdict: page.text("#checked").startswith(verdict))
            assert f"“llm” said “{predicted[row]}”" in page.text("#checked")
        shown = page.row(), page.text("#check-headline"), page.text("#check-counts")
    finally:
        running.kill()
    running, address = start(tmp_path / "judged.csv")
    try:
        page = OpenPage(browser, address)
        page.read_table()
        to_labelling(page, "gold")
        assert (page.row(), page.text("#check-headline"), page.text("#check-counts")) == shown
        assert predicted[page.row()] not in page.text("#row")
    finally:
        running.kill()


@pytest.fixture
def two_tables(tmp_path):
    for name in ("one.csv", "two.csv"):
        frame = pd.DataFrame({"x": np.arange(30.0), "y": [1.5, 2.5, None] * 10})
        frame.to_csv(tmp_path / name, index=False)
    return tmp_path


def test_back_goes_one_step_back_and_looking_writes_nothing(browser, two_tables):
    with Served(Workspace(two_tables)) as served:
        page = OpenPage(browser, served.address)
        page.click_words("one.csv")
        page.read_table()
        page.click("#close-table")
        page.wait(lambda: page.button("two.csv"))
        page.click_words("two.csv")
        page.read_table()
        assert sorted(file.name for file in two_tables.iterdir()) == ["one.csv", "two.csv"]
        page.click_words("y")
        page.click("#to-labels")
        page.wait(lambda: page.find("#view-labels").is_displayed())
        browser.execute_script("window.stayed = true")
        browser.back()
        page.wait(lambda: page.find("#view-table").is_displayed())
        browser.back()
        page.wait(lambda: page.find("#view-tables").is_displayed())
        browser.forward()
        page.wait(lambda: page.find("#view-table").is_displayed())
        assert browser.execute_script("return window.stayed")
        assert not page.errors()


def test_two_tables_in_two_tabs(browser, two_tables):
    with Served(Workspace(two_tables)) as served:
        page = OpenPage(browser, served.address)
        page.click_words("one.csv")
        page.read_table()
        first = browser.current_window_handle
        browser.switch_to.new_window("tab")
        try:
            other = OpenPage(browser, served.address.partition("?")[0])
            other.read_table()  # the table that was opened last
            other.click("#close-table")
            other.click_words("two.csv")
            other.read_table()
            second = browser.current_window_handle
            browser.switch_to.window(first)
            page.click_words("y")
            page.click("#to-labels")
            page.wait(lambda: page.find("#view-labels").is_displayed())
            browser.refresh()
            page.ready()
            page.wait(lambda: page.find("#view-labels").is_displayed())
            assert (browser.title, page.text("#toasts")) == ("one.csv · transduce", "")
            browser.switch_to.window(second)
            assert browser.title == "two.csv · transduce"
            looks = other.asked("/open/state")
            other.wait(lambda: other.asked("/open/state") > looks + 1)
            assert (browser.title, other.text("#toasts")) == ("two.csv · transduce", "")
        finally:
            browser.close()
            browser.switch_to.window(first)
        assert not page.errors()


def test_a_look_that_was_answered_before_a_click_does_not_undo_it(browser, two_tables):
    """Its answer comes late, as where a machine is busy, and tells of the list of tables."""
    with Served(Workspace(two_tables)) as served:
        page = OpenPage(browser, served.address)
        page.hold("/open/open")
        page.click_words("two.csv")
        page.held("/open/open")
        page.hold("/open/state", answers=True)
        page.held("/open/state")
        page.release("/open/open")
        page.read_table()
        page.release("/open/state")
        browser.execute_async_script("setTimeout(arguments[0])")
        assert page.find("#view-table").is_displayed()
        assert page.text("#toasts") == ""


def test_back_and_forward_at_once_end_where_the_history_is(browser, two_tables):
    with Served(Workspace(two_tables)) as served:
        page = OpenPage(browser, served.address)
        page.click_words("one.csv")
        page.read_table()
        steps = browser.execute_script("return history.length")
        page.hold("/open/open")
        browser.back()  # to the tables, of which the program hears late
        page.held("/open/open")
        browser.forward()
        page.release("/open/open")
        page.wait(lambda: page.asked("/open/open") == 3)
        page.read_table()
        assert browser.title == "one.csv · transduce"
        assert browser.execute_script("return history.length") == steps
        assert not page.errors()
