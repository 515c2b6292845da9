"""Rows that are judged first: a draw by predicted class, and what another person judged."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tests.app.page.serving import Client, Served
from transduce import audit
from transduce.app.cli.app import app
from transduce.app.labelling import SampleRequest, Session, SessionSettings
from transduce.app.page import view as views

N_ROWS = 300


@pytest.fixture
def judged(tmp_path):
    """A table with a rare predicted class, of which a tenth of the rows is wrong; and the truth."""
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(N_ROWS) < 0.1, "spam", "ham")
    other = np.where(truth == "spam", "ham", "spam")
    frame = pd.DataFrame({"size": rng.normal(size=N_ROWS)})
    frame["llm"] = np.where(rng.random(N_ROWS) < 0.1, other, truth)
    frame.to_csv(tmp_path / "judged.csv", index=False)
    return tmp_path / "judged.csv", truth


def begin(path, target="gold", **options):
    settings = SessionSettings(seed=1, **options)
    return Session(path, target, predictions="llm", settings=settings)


def judge_sample(session, truth):
    """Judge all rows of the sample; return them in their order."""
    rows = []
    while session.state.open_sample():
        proposal = session.propose()
        rows.append(proposal.row)
        session.answer(truth[proposal.row])
    return rows


def test_a_draw_by_class_is_judged_first_and_says_what_an_audit_says(judged):
    path, truth = judged
    with begin(path, sample=SampleRequest(("llm",), 60)) as session:
        proposal = session.propose()
        assert proposal.reason == "sample"
        assert views.view(session)["proposal"]["answer"] is None
        rows = judge_sample(session, truth)
        shown = views.view(session)["check"]["sample"]
        strata = session.state.sample.codes // 2
        assert session.propose().reason == "random"  # then draws go on from all others
        by_label = {line["label"]: line for line in shown["shares"]}
    table = pd.read_csv(path)
    assert len(rows) == len(set(rows)) == 60
    assert (table["llm"][rows] == "spam").sum() >= 6
    gold = pd.Series(truth).where(np.isin(np.arange(N_ROWS), rows))
    marked = gold.notna()
    same = audit(table.assign(gold=gold, drawn=marked, s=strata), "gold", "llm",
                 random="drawn", stratum="s")  # fmt: skip
    assert shown["headline"].startswith(f"At most {same.wrong['at_most']:.0f} of 240 ")
    for label, line in same.shares.iterrows():
        ends = by_label[label]["fewest"] / N_ROWS, by_label[label]["most"] / N_ROWS
        assert ends == pytest.approx((line["lower"], line["upper"]))


def test_what_is_said_before_the_last_row_is_never_stronger_than_afterwards(judged):
    path, truth = judged
    with begin(path, sample=SampleRequest(("llm",), 40)) as session:
        sample = session.state.sample
        bounds = []
        while session.state.open_sample():
            session.answer(truth[session.propose().row])
            labelled = session.state.labelled
            wrong = session.state.is_wrong(session.state.predictions)
            rows = np.array([*labelled])
            off = np.array([row for row in rows if wrong(row, labelled[row])], dtype=int)
            found = sample.wrong_at_most(rows, off, 0.95) + len(off)
            bounds.append(found)
    assert np.all(np.diff(bounds) <= 0)
    is_wrong = pd.read_csv(path)["llm"].to_numpy() != truth
    assert is_wrong.sum() <= bounds[-1]


def test_rows_labelled_besides_the_draw_do_not_leave_what_it_speaks_for(judged):
    path, truth = judged
    table = pd.read_csv(path)
    table.assign(gold=pd.Series(truth).where(table.index < 20)).to_csv(path, index=False)
    is_wrong = table["llm"].to_numpy() != truth
    with begin(path, sample=SampleRequest(("llm",), 40)) as session:
        sample = session.state.sample
        exported = sample.columns("gold")
    drawn = np.flatnonzero(sample.mask)
    assert not sample.mask[:20].any()
    before = np.concatenate([np.arange(20), drawn])
    bound = sample.wrong_at_most(before, before[is_wrong[before]], 0.95)
    right = np.flatnonzero(~is_wrong & ~sample.mask & (np.arange(N_ROWS) >= 20))[:100]
    after = np.concatenate([before, right])
    assert sample.wrong_at_most(after, after[is_wrong[after]], 0.95) == bound
    assert np.array_equal(exported["gold_random_probability"] > 0.0, np.arange(N_ROWS) >= 20)


def test_a_sample_is_kept_in_the_journal_and_exported_for_an_audit(judged, tmp_path):
    path, truth = judged
    with begin(path, sample=SampleRequest(("llm",), 40)) as session:
        first = session.propose().row
    with Session(path, "gold") as again:  # without being told twice
        assert again.propose().row == first
        judge_sample(again, truth)
        shown = views.view(again)["check"]["sample"]
        done = again.export(tmp_path)
    result = audit(done.labelled, "gold", "llm")
    assert any("drawn from each 'gold_random_stratum'" in note for note in result.notes)
    assert shown["headline"].startswith(f"At most {result.wrong['at_most']:.0f} of 260 ")


def test_the_draw_of_the_command_line_is_read_and_tells_no_prediction(judged):
    path, truth = judged
    table = pd.read_csv(path).assign(gold=None)
    table.to_csv(path, index=False)
    words = ["draw", str(path), "--target", "gold", "--by", "llm", "--number", "30", "--seed", "3"]
    assert CliRunner().invoke(app, words).exit_code == 0
    drawn = path.with_name("judged-draw.csv")
    with begin(drawn) as session:
        assert session.table.show == ["size"]
        assert session.prepared.columns == ("size",)
        rows = judge_sample(session, truth)
    marked = pd.read_csv(drawn)["gold_random"]
    assert sorted(rows) == np.flatnonzero(marked).tolist()
    with begin(drawn) as session:
        bound = views.view(session)["check"]["sample"]["headline"].split()[2]
        done = session.export()
    for target in ("gold", "gold_label"):  # the page never changes a column of the table
        result = audit(done.labelled, target, "llm")
        assert result.wrong["at_most"] == int(bound)
        assert any("drawn from each 'gold_random_stratum'" in note for note in result.notes)


def test_a_second_person_judges_the_same_rows_without_seeing_the_labels(judged, tmp_path):
    path, truth = judged
    with begin(path, person="Ada") as session:
        for _ in range(20):
            session.answer(truth[session.propose().row])
        first = {*session.state.labels}
    with begin(path, "gold2", person="Bo", again="gold") as second:
        assert second.propose().reason == "again"
        answers = np.where(np.arange(N_ROWS) % 7 == 0, "spam", truth)
        rows = judge_sample(second, answers)
        assert {*rows} == first
        assert "judged again" in views.view(second)["check"]["sample"]["headline"]
    with begin(path, "spam/ham", person="Bo", again="gold") as third:
        judge_sample(third, truth)
        assert third.export().labelled.name == "judged-spam-ham-labelled.csv"
    with pytest.raises(ValueError, match="nobody has judged rows there"):
        begin(path, "gold3", again="nobody")


def test_skipped_rows_of_a_sample_are_left_and_count_as_wrong(judged):
    path, truth = judged
    with begin(path, sample=SampleRequest(("llm",), 20)) as session:
        session.propose()
        session.skip()
        rows = judge_sample(session, truth)
        assert len(rows) == 19
        shown = views.view(session)["check"]["sample"]
        assert shown["headline"] == "19 of 20 rows judged."
        assert "1 open row of the draw counted as wrong" in shown["text"]


def test_certainty_is_fixed_by_the_first_row_of_a_sample_that_was_judged(judged):
    path, truth = judged
    with begin(path, sample=SampleRequest(("llm",), 20)) as session:
        row = session.propose().row
        session.set_goal("certainty", 0.9)
        session.answer(truth[row])
        session.undo()
        with pytest.raises(ValueError, match="cannot change"):
            session.set_goal("certainty", 0.5)


def test_drawn_rows_are_a_page_to_print_without_their_predictions(judged):
    path, truth = judged
    with begin(path, sample=SampleRequest(("llm",), 20)) as session:
        row = session.propose().row
        session.answer(truth[row])
        waiting = session.state.open_sample()
        with Served(session) as served:
            page = Client(served).get("/print").content.decode()
    assert page.count('<tr class="drawn">') == 20
    assert f">{row + 1}<" in page
    assert all(f">{one + 1}<" in page for one in waiting)
    assert page.count("spam") + page.count("ham") == 1  # the label that was given
    assert "<script" not in page
