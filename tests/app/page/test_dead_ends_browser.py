"""Ways on the page that once led nowhere, in a real browser: a finished block, refused numbers, ignored columns."""

from __future__ import annotations

import json

import pandas as pd
import pytest

pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")
pytest.importorskip("selenium", reason="NOT TESTED: the page in a browser; install selenium.")
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.app.page.serving import Served
from tests.app.page.test_browser import pytestmark  # noqa: F401
from tests.app.page.test_dead_ends import N_KNOWN, N_ROWS, patients
from tests.app.page.test_open_browser import OpenPage
from transduce.app.page.preview import Preview
from transduce.app.page.workspace import Workspace


@pytest.fixture
def space(tmp_path):
    patients()[0].to_csv(tmp_path / "patients.csv", index=False)
    return Workspace(tmp_path, "patients.csv")


def say(space, **changes):
    """Say something about the table, as an earlier sitting did."""
    space.change("patients.csv", space.saved.revision, changes)


def type_into(page, selector, text):
    field = page.find(selector)
    field.clear()
    field.send_keys(text, Keys.ENTER)


def label(page, truth, number=1):
    """Type values of the rows that are shown."""
    for _ in range(number):
        before = page.labelled()
        type_into(page, "#number", str(truth[page.row()]))
        page.wait(lambda before=before: page.labelled() == before + 1)


def to_labelling(page, words):
    page.click_words(words)
    page.wait(lambda: page.driver.current_url.endswith("/label"))
    page.ready()


def finish_block(page, truth):
    """Label rows drawn at random until the block is complete."""
    while "ready" not in page.text("#certificate"):
        label(page, truth)
        assert page.labelled() < N_ROWS - N_KNOWN


def back(page):
    page.click("#home")
    page.wait(lambda: page.driver.find_elements(By.CSS_SELECTOR, "body.open[data-ready]"))


def test_after_a_finished_block_both_steps_are_there_also_after_a_new_start(browser, space):
    """The page once died for good, with the two words 'ldl_random'."""
    truth = patients()[1]
    say(space, target="ldl", way="chance", step="labels")
    with Served(space) as at:
        page = OpenPage(browser, at.address)
        page.size(1300, 900)
        to_labelling(page, "Label rows drawn at random")
        finish_block(page, truth)
        back(page)
        page.see_ways()
        page.wait(lambda: "exact" in page.text("#outlook").lower())
        page.click("#steps [data-step=table]")
        page.read_table()
        assert page.text("#toasts") == ""
        assert page.errors() == []
    with Served(Workspace(space.folder)) as at:
        page = OpenPage(browser, at.address)
        page.read_table()
        page.click("#steps [data-step=labels]")
        page.see_ways()
        assert page.text("#toasts") == ""


def test_values_after_a_block_are_told_of_before_and_kept(browser, space):
    truth = patients()[1]
    say(space, target="ldl", way="chance", step="labels")
    with Served(space) as at:
        page = OpenPage(browser, at.address)
        page.size(1300, 900)
        to_labelling(page, "Label rows drawn at random")
        assert "kept in the table as given" not in page.text("#mode-note")
        finish_block(page, truth)
        n_draws = page.labelled()
        page.click("[data-mode=learn]")
        page.wait(lambda: page.mode() == "learn")
        note = page.wait(lambda: page.text("#mode-note"))
        assert "the fill does not learn from it yet" in note  # before the first of them
        assert page.find("#mode-note").is_displayed()
        rows = []
        for _ in range(2):
            rows.append(page.row())
            label(page, truth)
        page.wait(lambda: page.text("#mode-note").startswith("2 values that you gave after"))
        back(page)
        page.wait(lambda: "2 values that you gave after" in (page.text("#since") or ""))
        page.click("#fill")
        page.answers()
        page.wait(lambda: page.find("#run").is_displayed() is False)
        total = N_ROWS - N_KNOWN - n_draws - 2
        page.wait(lambda: f"{total}" in page.text("#found"))
        assert "2 values that you gave after the block" in page.text("#said-notes")
    path = space.folder / ".transduce" / "patients.csv" / "result" / "patients-filled.csv"
    filled = pd.read_csv(path)
    assert filled["ldl_filled"].iloc[rows].tolist() == truth[rows].tolist()
    # Two fills whose errors were measured at other rows are not compared.
    quality = {"measured": [302, 19], "rows": 0, "means": None}
    changes = {"rows": 20, "changed": 3, "labels": -2, "size": [2.0, 1.0]}
    changes |= {"guarantee": ["exact", "exact"], "quality": quality}
    (path.parent / "changes.json").write_text(json.dumps(changes))
    with Served(Workspace(space.folder)) as at:
        page = OpenPage(browser, at.address)
        page.answers()
        words = page.text("#changes-body")
        assert "302 known values before and at 19 now" in words
        assert "cannot be compared" in words
        assert "2 fewer known values" in words
        assert "off by" not in words
    same = {"measured": [60, 70], "rows": 60, "means": [0.3, 0.29], "clear": False, "worse": False}
    (path.parent / "changes.json").write_text(json.dumps(changes | {"quality": same}))
    with Served(Workspace(space.folder)) as at:
        page = OpenPage(browser, at.address)
        page.answers()
        assert "At the same 60 known values" in page.text("#changes-body")
        assert "no clear difference" in page.text("#changes-body")


def test_labelling_does_not_rest_on_columns_that_were_to_be_ignored(browser, space):
    say(space, target="ldl", step="table")
    with Served(space) as at:
        page = OpenPage(browser, at.address)
        page.size(1300, 900)
        page.read_table()
        page.click_words("non_hdl")
        page.wait(lambda: page.find("#column-dialog").is_displayed())
        page.click("#column-body .check input")
        page.wait(lambda: space.saved.choices.ignore == ["non_hdl"])
        page.type(Keys.ESCAPE)
        page.no_dialog()
        page.click("#to-labels")
        page.click("#ways .way-box:last-child button")
        to_labelling(page, "Label rows drawn at random")
        source = page.wait(
            lambda: page.text("#source") if "from the columns" in page.text("#source") else ""
        )
        assert "“age”" in source
        assert "non_hdl" not in source
        assert "non_hdl" not in page.text("#notes")
        assert "non_hdl" not in page.text("#cells")
        back(page)


def is_refused(page, selector):
    return page.find(selector).get_attribute("aria-invalid") == "true"


def test_a_number_that_is_refused_looks_refused_and_nothing_is_filled_until_it_is_mended(
    browser, space
):
    say(space, target="ldl", way="chance", step="labels")
    with Served(space) as at:
        page = OpenPage(browser, at.address)
        page.size(1300, 900)
        page.wait(lambda: page.find("#limits").is_displayed() and page.find("#fill").is_enabled())
        type_into(page, "#minimum", "0,5,1")
        page.wait(lambda: is_refused(page, "#minimum"))
        assert "“0,5,1” is not a number, and is not used" in page.text("#minimum-refused")
        assert not page.find("#fill").is_enabled()
        page.click("#ways .way-box:last-child button")  # all is drawn again
        page.wait(lambda: space.saved.choices.way == "unknown")
        assert page.find("#minimum").get_attribute("value") == "0,5,1"
        assert not page.find("#fill").is_enabled()
        type_into(page, "#minimum", "0,5")  # as the labelling page takes it
        page.wait(lambda: space.saved.choices.minimum == 0.5 and not is_refused(page, "#minimum"))
        page.wait(lambda: page.find("#fill").is_enabled())
        assert page.text("#minimum-refused") is None
        type_into(page, "#maximum", "0.25")  # the program refuses what the browser takes
        page.wait(lambda: is_refused(page, "#maximum"))
        assert "is not below" in page.text("#maximum-refused")
        assert not page.find("#fill").is_enabled()
        assert space.saved.choices.maximum is None
        type_into(page, "#minimum", "0.125")
        page.wait(lambda: space.saved.choices.maximum == 0.25)  # it can be taken now
        page.wait(lambda: page.find("#fill").is_enabled())
        assert not is_refused(page, "#maximum")


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("0,5", 0.5), ("0.5", 0.5), (",5", 0.5), ("1,234", 1234), ("0,500", 0.5), ("−3,1", -3.1)),
        *(("1234,5", 1234.5), ("1,234.5", 1234.5), ("1.2.3", None), ("abc", None), ("1,2,3", None)),
        *(("", None), ("1e3", 1000), ("--1", None), ("5 kg", None)),
    ],
)
def test_numbers_are_typed_with_either_decimal_sign(browser, space, text, value):
    with Served(space) as at:
        OpenPage(browser, at.address)
        browser.execute_cdp_cmd("Emulation.setLocaleOverride", {"locale": "en-US"})
        try:
            found = browser.execute_async_script(
                "const [text, done] = arguments; import('/page/locale.js').then(({ typed }) => "
                "done(JSON.stringify(typed(text))))",
                text,
            )
        finally:
            browser.execute_cdp_cmd("Emulation.setLocaleOverride", {})
    assert json.loads(found) == value


def test_a_number_typed_just_before_the_fill_counts_and_a_refused_box_is_not_ticked(browser, space):
    say(space, target="ldl", way="chance", step="labels")
    with Served(space) as at:
        page = OpenPage(browser, at.address)
        page.size(1300, 900)
        page.wait(lambda: page.find("#limits").is_displayed() and page.find("#fill").is_enabled())
        page.find("#minimum").send_keys("1,5")
        page.hold("/open/change")
        page.click("#fill")  # the number is on its way
        page.held("/open/change")
        page.release("/open/change")
        page.wait(lambda: space.saved.choices.minimum == 1.5)
        page.wait(lambda: page.find("#view-answers").is_displayed())
        assert "another tab" not in page.text("#toasts")
        browser.execute_async_script(CANCEL)
        page.click("#steps [data-step=table]")
        page.read_table()
        page.click_words("ward")
        page.wait(lambda: page.find("#column-dialog").is_displayed())
        browser.execute_script(REFUSE)
        page.click("#column-body .check input")
        page.wait(lambda: "This was refused." in page.text("#toasts"))
        page.wait(lambda: not page.find("#column-body .check input").is_selected())


CANCEL = """
const done = arguments[0];
import('/page/api.js').then(({ post }) => post('/open/cancel')).then(() => done());
"""
REFUSE = """
const fetched = window.fetch;
window.fetch = async (url, ...rest) => {
  if (!String(url).includes("/open/change")) return fetched(url, ...rest);
  const body = JSON.stringify({ error: "This was refused." });
  return new Response(body, { status: 400, headers: { "content-type": "application/json" } });
};
"""


def test_a_label_that_is_refused_looks_refused(browser, space):
    say(space, target="ldl", way="chance", minimum=1.0, step="labels")
    with Served(space) as at:
        page = OpenPage(browser, at.address)
        page.size(1300, 900)
        to_labelling(page, "Label rows drawn at random")
        label(page, patients()[1])
        assert page.text("#saved") == "✓ saved"
        for text, words in (("0.25", "0.25 is below 1"), ("many", "is not a number")):
            type_into(page, "#number", text)
            page.wait(lambda words=words: words in page.text("#toasts"))
            assert page.text("#saved") == "not saved"
            assert is_refused(page, "#number")
        label(page, patients()[1])
        assert page.text("#saved") == "✓ saved"
        assert not is_refused(page, "#number")
        back(page)


@pytest.mark.parametrize(("step", "place"), [("table", "#table-lead"), ("labels", "#labels-lead")])
def test_whatever_goes_wrong_stands_where_the_step_would_be(
    browser, space, step, place, monkeypatch
):
    say(space, target="ldl", way="chance", step=step)

    def fails(*args):
        raise KeyError("ldl_random")

    with Served(space) as at:
        monkeypatch.setattr(Preview, "as_json", fails)
        page = OpenPage(browser, at.address)
        page.wait(lambda: "This could not be done" in page.text(place))
        assert page.find(place).is_displayed()
        assert "bad" in page.find(place).get_attribute("class")
        monkeypatch.undo()
        page.click("#steps [data-step=table]")  # and the page goes on
        page.read_table()
        assert "bad" not in page.find("#table-lead").get_attribute("class")
