"""Two people check the same predictions on the page, one after the other; both are killed meanwhile."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")
pytest.importorskip("selenium", reason="NOT TESTED: the page in a browser; install selenium.")
from tests.app.labelling.processes import Running
from tests.app.page.test_browser import Page, pytestmark  # noqa: F401
from transduce.app.auditing import audit
from transduce.app.labelling import Session, SessionSettings
from transduce.app.labelling.samples import SampleRequest
from transduce.app.page.command import run_label

N_CHECKED = 8
CLASSES = ["horse", "zebra"]
PREDICTED = np.array(["zebra" if i % 3 else "horse" for i in range(60)])
OF_ADA = np.where(np.arange(60) % 7, PREDICTED, "horse")
OF_BO = np.where(np.arange(60) % 4, OF_ADA, "zebra")


def serve(say, path, target, settings):
    run_label(
        path, target, predictions="llm", classes=CLASSES, settings=settings, browser=False, say=say
    )


def answer(page, key):
    before = page.labelled()
    page.press(key)
    page.wait(lambda: page.labelled() == before + 1)


def judge(page, labels, number):
    """Answer some rows by key; neither the prediction nor another's label is shown before."""
    rows = []
    for _ in range(number):
        row = page.row()
        assert not re.search("horse|zebra", page.text("#row").replace(page.text("#classes"), ""))
        answer(page, str(CLASSES.index(labels[row]) + 1))
        verdict = "Agrees" if labels[row] == PREDICTED[row] else "Differs"
        page.wait(lambda verdict=verdict: page.text("#checked").startswith(verdict))
        rows.append(row)
    return rows


def check_in_two_sittings(browser, path, target, settings, labels):
    """Judge all drawn rows; the program is killed after three of them."""
    rows = []
    for number in (3, N_CHECKED - 3):
        running = Running(serve, str(path), target, settings)
        try:
            while not (words := running.hear()).startswith("Open http"):
                pass
            page = Page(browser, words.split()[1])
            rows += judge(page, labels, number)
            shown = page.text("#sample-headline")
        finally:
            running.kill()
    assert len({*rows}) == N_CHECKED
    return rows, shown


def test_a_second_person_checks_the_same_rows_blindly(browser, tmp_path):
    texts = [f"message {i}" for i in range(60)]
    frame = pd.DataFrame({"text": texts, "llm": PREDICTED, "size": np.arange(60)})
    path = tmp_path / "judged.csv"
    frame.to_csv(path, index=False)
    drawn = SessionSettings(seed=1, person="Ada", sample=SampleRequest(("llm",), N_CHECKED))
    rows, shown = check_in_two_sittings(browser, path, "gold", drawn, OF_ADA)
    assert shown.startswith("At most ")
    same_rows = SessionSettings(seed=2, person="Bo", again="gold")
    again, shown = check_in_two_sittings(browser, path, "gold2", same_rows, OF_BO)
    assert {*again} == {*rows}
    assert shown == f"{N_CHECKED} of {N_CHECKED} rows judged again."

    written = []
    for target, person in (("gold", "Ada"), ("gold2", "Bo")):
        with Session(path, target) as session:
            answers = [event for event in session.events if event.kind == "answer"]
            assert {event.decider for event in answers} == {person}
            written.append(session.export(tmp_path).labelled)
    result = audit(written[0], "gold", "llm", second="gold2", checks=written[1])
    assert result.agreement.n_both == N_CHECKED
    assert result.agreement.n_differ == int(np.sum(OF_ADA[rows] != OF_BO[rows])) > 0
