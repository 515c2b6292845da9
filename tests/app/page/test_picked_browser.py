"""Rows that somebody picked, two reasons at once, and what can be trusted then, in a real browser."""

from __future__ import annotations

import pandas as pd
import pytest

pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")
pytest.importorskip("selenium", reason="NOT TESTED: the page in a browser; install selenium.")
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from tests.app.page.serving import Client
from tests.app.page.test_browser import pytestmark  # noqa: F401
from tests.app.page.test_dead_ends_browser import back
from tests.app.page.test_open import fill, settle
from tests.app.page.test_open_browser import CONTRAST, OpenPage, Program, served
from tests.app.page.test_picked import clinic
from transduce.app.page.workspace import Saved

PICKED_CARD = "I picked them myself"


@pytest.fixture
def folder(tmp_path):
    clinic().to_csv(tmp_path / "clinic.csv", index=False)
    return tmp_path


def choices(folder):
    """What is on disk."""
    return Saved.read(folder / "clinic.csv.transduce").choices


def answer(page, question, text):
    """Answer a question; the cards are drawn again after each answer, and may move until then."""
    box = f"input[name=picked-{question}][value={text}]"

    def pressed():
        if not page.find(box).is_selected():
            page.click(box)
        return page.find(box).is_selected()

    page.wait(pressed)


def shows(page, selector, words):
    """Wait until a part of the page shows some words; it may be drawn again meanwhile."""
    page.wait(lambda: words in (page.text(selector) or ""))


def ready(page):
    """Wait until all requests of the second step are answered, and what they say is drawn."""
    page.wait(lambda: page.text("#test") and "…" not in page.text("#outlook"))


def choose(page, label, value):
    """Choose in the box of this name, which is drawn again after each choice."""
    find = f"select[aria-label='{label}']"
    page.wait(lambda: page.find(find).is_displayed())
    page.wait(lambda: Select(page.find(find)).select_by_value(value) is None)


def test_who_picked_the_rows_answers_two_questions(browser, folder):
    with served(folder, "clinic.csv") as at:
        settle(Client(at), {"target": "dose", "step": "labels"})
    with served(folder, "clinic.csv") as at:
        page = OpenPage(browser, at.address)
        page.size(1280, 900)
        page.wait(lambda: page.button(PICKED_CARD))
        by_class = page.button("By their class")
        assert not by_class.is_enabled()
        assert "The values are numbers, not classes." in by_class.text
        page.click_words(PICKED_CARD)
        shows(page, "#outlook", "Answer the two questions")
        assert not page.find("#fill").is_enabled()
        page.wait(lambda: choices(folder).picked == {})
        answer(page, "value", "No")
        page.wait(lambda: choices(folder).picked == {"value": False})
        answer(page, "columns", "Yes")
        shows(page, "#picked-lead", "is estimated")
        page.wait(lambda: choices(folder).way == "unknown")
        answer(page, "value", "Yes")
        shows(page, "#picked-lead", "only rows drawn at random")
        shows(page, "#outlook", "Nothing can be guaranteed")
        assert choices(folder).picked == {"value": True, "columns": True}
        assert page.button("Label rows drawn at random")
        assert page.find("#fill").is_enabled()
        assert browser.execute_script(CONTRAST) == []
        page.click_words("By chance")
        page.wait(lambda: choices(folder).picked is None and choices(folder).way == "chance")
        assert not page.errors()


def test_two_answers_at_once_are_both_taken(browser, folder):
    """The second is given before the page has heard of the first."""
    with served(folder, "clinic.csv") as at:
        client = Client(at)
        settle(client, {"target": "dose", "step": "labels"})
        settle(client, {"picked": {}})
    with served(folder, "clinic.csv") as at:
        page = OpenPage(browser, at.address)
        page.wait(lambda: page.find("input[name=picked-value]").is_displayed())
        browser.execute_script(
            "for (const name of ['value', 'columns'])"
            " document.querySelector(`input[name=picked-${name}][value=No]`).click()"
        )
        page.wait(lambda: len(choices(folder).picked) == 2)
        assert choices(folder).picked == {"value": False, "columns": False}
        assert not page.errors()


def test_groups_and_a_date_are_said_together(browser, folder):
    with served(folder, "clinic.csv") as at:
        settle(Client(at), {"target": "dose", "step": "labels"})
    with served(folder, "clinic.csv") as at:
        page = OpenPage(browser, at.address)
        page.click_words("Whole groups at once")
        choose(page, "The column that names the group", "patient")
        choose(page, "Did something else decide, too?", "order")
        page.wait(lambda: not page.find("#fill").is_enabled())
        choose(page, "The column with the date, or another order", "seen")
        page.wait(lambda: choices(folder).also_column == "seen")
        shows(page, "#outlook", "drift along the order")
        assert page.find("#fill").is_enabled()
        assert choices(folder).flags == {"groups": "patient", "order": "seen"}
        assert not page.errors()


def test_which_rows_to_trust_is_never_a_dead_end(browser, folder):
    """Where nothing is guaranteed rows are ranked, and the draw is offered."""
    with served(folder, "clinic.csv") as at:
        client = Client(at)
        settle(client, {"target": "dose", "way": "value"})
        fill(client)
    with served(folder, "clinic.csv") as at:
        page = OpenPage(browser, at.address)
        page.size(1280, 900)
        page.answers()
        first = page.find("#rows tbody th").text
        page.click("#ask-trust")
        shows(page, "#trust", "no false discovery rate can be guaranteed")
        page.wait(lambda: page.find("#rows tbody th").text != first)
        assert len(page.answers()) == 25
        empty = int(pd.read_csv(folder / "clinic.csv")["dose"].isna().sum())
        assert page.text("#found") == f"{empty} rows"
        page.click("#trust .primary")
        page.wait(lambda: browser.current_url.endswith("/label"))
        page.ready()
        assert "Random draw 1" in page.find("body").text
        back(page)


def test_what_one_table_leaves_open_is_said_and_drawn(browser, folder):
    with served(folder, "clinic.csv") as at:
        client = Client(at)
        settle(client, {"target": "dose", "way": "chance", "guarantee": "column"})
        fill(client)
    with served(folder, "clinic.csv") as at:
        page = OpenPage(browser, at.address)
        page.answers()
        shows(page, "#one-table", "In this one table")
        assert browser.find_elements(By.CSS_SELECTOR, "#one-table svg .likely")
        page.click("#steps [data-step=labels]")
        shows(page, "#outlook", "In this one table")
        assert not page.errors()


@pytest.mark.slow
def test_a_kill_after_each_answer_and_it_goes_on_there(browser, folder):
    with served(folder, "clinic.csv") as at:
        settle(Client(at), {"target": "dose", "step": "labels"})
    program = Program(folder)
    try:
        page = OpenPage(browser, program.start())
        page.click_words(PICKED_CARD)
        page.wait(lambda: choices(folder).picked == {})
        for question, told in (("value", {"value": True}), ("columns", None)):
            program.kill()
            page = OpenPage(browser, program.start())
            answer(page, question, "Yes")
            wanted = told or {"value": True, "columns": True}
            page.wait(lambda wanted=wanted: choices(folder).picked == wanted)
        program.kill()
        page = OpenPage(browser, program.start())
        shows(page, "#picked-lead", "only rows drawn at random")
    finally:
        program.kill()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1600])
def test_the_questions_can_be_read_by_everybody(browser, folder, scheme, width):
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    with served(folder, "clinic.csv") as at:
        client = Client(at)
        settle(client, {"target": "dose", "step": "labels"})
        settle(client, {"picked": {"value": True, "columns": True}})
    with served(folder, "clinic.csv") as at:
        page = OpenPage(browser, at.address)
        page.size(width, 800)
        page.wait(lambda: page.text("#picked-lead"))
        ready(page)
        assert browser.execute_script(CONTRAST) == []
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
