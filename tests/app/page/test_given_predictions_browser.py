"""A column of predictions made elsewhere is named on the page, and a fill corrects them."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")
pytest.importorskip("selenium", reason="NOT TESTED: the page in a browser; install selenium.")
from tests.app.page.serving import Served
from tests.app.page.test_browser import pytestmark  # noqa: F401
from tests.app.page.test_open_browser import OpenPage
from transduce.app.page.workspace import Workspace


@pytest.fixture
def judged(tmp_path):
    """Messages that a model has judged, and a person in part."""
    generator = np.random.default_rng(0)
    truth = np.where(generator.random(200) < 0.4, "zebra", "horse")
    other = np.where(truth == "zebra", "horse", "zebra")
    frame = pd.DataFrame({"size": generator.normal(size=200).round(3)})
    frame["llm"] = np.where(generator.random(200) < 0.1, other, truth)
    frame["gold"] = pd.Series(truth).where(frame.index < 60)
    frame.to_csv(tmp_path / "judged.csv", index=False)
    space = Workspace(tmp_path, "judged.csv")
    space.change("judged.csv", space.saved.revision, {"target": "gold", "way": "chance"})
    return space


def find_label(page, words):
    labels = page.driver.find_elements("css selector", "#column-dialog label")
    return next((label for label in labels if label.text.startswith(words)), None)


def test_predictions_are_named_and_corrected(browser, judged):
    with Served(judged) as served:
        page = OpenPage(browser, served.address)
        page.read_table()
        page.click_words("llm")
        page.wait(lambda: page.find("#column-dialog").is_displayed())
        page.press(lambda: find_label(page, "It holds predictions made elsewhere of “gold”"))
        page.wait(lambda: judged.saved.choices.predictions == ["llm"])
        page.wait(lambda: "llmpredictions" in page.text("#preview thead"))
        page.find("body").send_keys("\ue00c")
        page.click("#to-labels")
        page.see_ways()
        page.click("#fill")
        page.answers()
        page.wait(lambda: re.search("in column .llm., corrected", page.text("#said-notes")))
        assert page.errors() == []
