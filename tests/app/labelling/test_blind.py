"""Predictions made elsewhere are checked blindly: hidden, then compared, with bounds at every look."""

from __future__ import annotations

import json
import math
import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest

from transduce.app.auditing import audit
from transduce.app.labelling import Session, SessionSettings
from transduce.app.page import view as views
from transduce.population.betting import BoundedDraws

N_ROWS = 200
SECRET = "zebra"


@pytest.fixture
def judged(tmp_path):
    """A table with predictions, of which a tenth is wrong; and the truth."""
    rng = np.random.default_rng(0)
    truth = rng.choice([SECRET, "horse", "cow"], N_ROWS, p=[0.2, 0.5, 0.3])
    predicted = np.where(rng.uniform(size=N_ROWS) < 0.1, "horse", truth).astype(object)
    predicted[:20] = [text.upper() for text in predicted[:20]]
    frame = pd.DataFrame({"text": [f"animal {i}" for i in range(N_ROWS)], "llm": predicted})
    frame["size"] = rng.normal(size=N_ROWS)
    frame.to_csv(tmp_path / "judged.csv", index=False)
    return tmp_path / "judged.csv", truth


def begin(path, **options):
    settings = SessionSettings(seed=1, **options)
    return Session(path, "gold", predictions="llm", settings=settings)


def check(session, truth, count):
    for _ in range(count):
        session.answer(truth[session.propose().row])


def test_a_prediction_is_nowhere_until_its_row_has_a_label(judged):
    path, truth = judged
    with begin(path) as session:
        assert session.table.show == ["text", "size"]
        assert session.state.mode == "audit"
        assert session.state.wanted is None
        assert "llm" not in session.prepared.columns
        check(session, truth, 5)
        shown = views.view(session)
        row = shown["proposal"]["row"]
        assert shown["proposal"]["answer"] is None
        assert shown["proposal"]["checked"] is None
        assert views.row_card(session, row, session.answers())["checked"] is None
        assert {cell["name"] for cell in shown["proposal"]["cells"]} == {"text", "size"}
        assert not session.table.search(SECRET)
        session.answer("cow")
        last = views.view(session)["check"]["last"]
        assert last["row"] == row
        assert last["label"] == "cow"
        assert last["prediction"] == truth[row] or not last["agrees"]
        event = [event for event in session.events if event.kind == "answer"][-1]
        assert (event.proposer, event.proposed) == ("llm", session.state.prediction_at(row))
        session.answer(truth[row], row=row)
        assert session.state.n_changed == int(truth[row] != "cow")


def test_bounds_are_those_of_the_bets_on_draws(judged):
    path, truth = judged
    with begin(path) as session:
        check(session, truth, 60)
        drawn = session.state.drawn[:60]
        certified = session.certificate()
        predicted = np.array([session.state.prediction_at(row) for row in range(N_ROWS)])
        wrong = (predicted != truth)[drawn].astype(float)
        draws = BoundedDraws(wrong, N_ROWS)
        most = math.ceil(draws.largest_total(0.05) - 1e-6) - 1
        found = certified.predictions.found
        assert found == wrong.sum()
        assert certified.predictions.wrong_at_most + found == most
        assert certified.predictions.wrong_at_most >= (predicted != truth).sum() - found
        for label, share in certified.shares:
            is_class = (truth == label)[drawn].astype(float)
            low, high = BoundedDraws(is_class, N_ROWS).total_interval(0.95)
            assert share.most == math.ceil(high - 1e-6) - 1
            assert share.fewest == math.floor(low + 1e-6) + 1
            assert share.fewest <= (truth == label).sum() <= share.most
        assert [count for count, _ in certified.ahead] == [30, 100]


def test_it_goes_on_where_it_stopped_and_the_export_is_audited(judged, tmp_path):
    path, truth = judged
    with begin(path, person="Ada") as session:
        check(session, truth, 30)
        before = session.certificate()
        pending = session.propose().row
        session._journal._file.close()  # as a kill would
        session._journal._file = None
    with Session(path, "gold") as session:  # the journal knows what is checked
        assert session.propose().row == pending
        assert session.table.show == ["text", "size"]
        assert session.certificate().predictions == before.predictions
        check(session, truth, 10)
        exported = session.export()
        lines = [json.loads(line) for line in session.journal.read_text().splitlines()]
        answers = [line for line in lines if line["kind"] == "answer"]
        assert {line.get("decider") for line in answers} == {"Ada", None}
        assert "Predictions of llm" in exported.certificate.read_text()
    labelled = pd.read_csv(exported.labelled)
    assert (labelled["gold"].notna() == (labelled["gold_agrees"].notna())).all()
    result = audit(labelled, "gold", "llm")
    assert result.columns.checked.sum() == 40
    assert result.share_wrong_at_most < 0.5
    with pytest.raises(ValueError, match=r"checks the predictions of 'llm', not of 'text'"):
        Session(path, "gold", predictions="text")


def test_a_table_of_a_database_is_checked_and_written_beside_it(judged):
    path, truth = judged
    file = path.with_name("judged.db")
    with closing(sqlite3.connect(file)) as connection:
        pd.read_csv(path).to_sql("june", connection, index=False)
        pd.read_csv(path).to_sql("july", connection, index=False)
    address = f"{file}::june"
    with begin(address) as session:
        check(session, truth, 30)
        exported = session.export()
        assert session.table.name == "judged.db::june"
        assert "judged-db-june-gold-labels" in session.journal.name
    assert str(exported.labelled) == f"{file}::june_labelled"
    assert exported.certificate.name == "judged-june-certificate.txt"
    result = audit(str(exported.labelled), "gold", "llm", suspects=0)
    assert result.columns.checked.sum() == 30
    with begin(address) as session:  # although the file has another table now
        assert len(session.state.labels) == 30
        exported.certificate.unlink()
        (file.parent / "judged-june-filled.html").unlink()
        with pytest.raises(FileExistsError, match="has a table 'june_labelled' already"):
            session.export()
        assert not exported.certificate.exists()


def test_numbers_need_a_tolerance_and_odd_columns_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=60)
    frame = pd.DataFrame({"a": truth + 0.1, "llm": truth, "none": [None] * 60})
    frame.loc[3, "llm"] = np.nan
    with pytest.raises(ValueError, match="tolerance"):
        Session(frame, "gold", predictions="llm")
    with pytest.raises(ValueError, match="is empty: there is no prediction"):
        Session(frame, "gold", predictions="none")
    with pytest.raises(ValueError, match="is the column to be labelled"):
        Session(frame, "llm", predictions="llm")
    with pytest.raises(ValueError, match="hidden until"):
        Session(frame, "gold", predictions="llm", show=["llm"])
    settings = SessionSettings(tolerance=0.05, seed=0)
    session = Session(frame, "gold", predictions="llm", settings=settings)
    assert session.task == "numbers"
    assert any("1 row has no prediction" in note for note in session.notes)
    for offset in (0.0, 0.2):
        session.answer(float(truth[session.propose().row] + offset))
    assert session.certificate().predictions.found == 1
    assert session.certificate().shares == []


def test_columns_of_probabilities_are_checked_as_their_likeliest_class(tmp_path):
    table = pd.DataFrame({"size": np.random.default_rng(0).normal(size=40)})
    table["p_yes"] = np.linspace(0.0, 1.0, 40)
    table["p_no"] = 1.0 - table["p_yes"]
    columns = ["p_yes", "p_no"]
    path = tmp_path / "table.csv"
    table.to_csv(path, index=False)
    with Session(path, "gold", predictions=columns) as session:
        assert session.classes == ["no", "yes"]
        assert not set(columns) & set(session.table.show)
        assert session.state.prediction_at(39) == "yes"
        assert session.state.prediction_at(0) == "no"
    with Session(path, "gold") as again:  # without being told twice
        assert not set(columns) & set(again.table.show)
        assert set(columns) <= set(again.settings.ignore)


@pytest.mark.parametrize("wait", [True, False])
def test_a_table_of_predictions_alone_can_be_checked(tmp_path, wait):
    """There is nothing to compare rows by, and checking needs no comparison."""
    pd.DataFrame({"llm": ["spam", "ham", "ham"] * 40}).to_csv(tmp_path / "t.csv", index=False)
    with begin(tmp_path / "t.csv", wait=wait) as session:
        session.preparation.join()
        for _ in range(20):
            session.answer("ham" if session.propose().row % 3 else "spam")
        assert session.model is None
        assert "cannot be compared" in session.preparation.words
        json.dumps(views.view(session))
        exported = session.export(tmp_path)
    assert audit(exported.labelled, "gold", "llm").wrong["n_wrong"] == 0


def test_rows_that_cannot_be_compared_are_not_said_to_be_compared():
    table = pd.DataFrame({"llm": ["a", "b"] * 20})
    with Session(table, "gold", predictions="llm", settings=SessionSettings(seed=0)) as session:
        assert "cannot be compared" in session.answers().source
        assert "cannot be compared" in session.no_answers
        session.propose("learn")
        shown = json.dumps(views.view(session), default=str)
        assert "The rows cannot be compared, so that they come in a random order." in shown
        assert "being compared" not in shown
