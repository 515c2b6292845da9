"""Sessions: proposals, answers, undo and change, replay after anything, certificates that cannot be deceived."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from tests.app.labelling.processes import Running, label_and_be_killed
from tests.app.labelling.tables import clusters, new_session, numbers, prepared
from transduce import fill
from transduce.app.filling.forecast import forecast_guarantee
from transduce.app.filling.options import Options
from transduce.app.filling.sources import FrameSource
from transduce.app.labelling import Session, SessionSettings
from transduce.app.labelling.answering import estimate_shares_left
from transduce.app.labelling.export import exported_answers, fill_labels
from transduce.app.labelling.journal import Event, pack
from transduce.app.labelling.prepared import prepare
from transduce.app.labelling.sentences import about_intervals, about_left
from transduce.app.labelling.state import drawn_place, replay
from transduce.app.labelling.table import as_number, read_label_table
from transduce.app.page.view import view
from transduce.app.tables.columns import read_target
from transduce.conformal import Drawn

OPERATIONS = [
    "answer",
    "answer",
    "answer",
    "skip",
    "undo",
    "change",
    "find",
    "learn",
    "audit",
    "audit",
    "freeze",
    "plan",
]


def operate(session, truth, what, rng):
    """Do one thing, if it can be done."""
    state = session.state
    if what in ("find", "learn", "audit"):
        session.propose(what)
    elif what == "answer":
        proposal = session.propose()
        if proposal is not None:
            session.answer(str(truth[proposal.row]))
    elif what == "skip":
        if session.propose() is not None:
            session.skip()
    elif what == "undo":
        if state.undoable:
            session.undo()
    elif what == "change":
        if state.labels:
            row = int(rng.choice(list(state.labels)))
            session.answer("no" if state.labels[row] == "yes" else "yes", row=row)
    elif what == "freeze":
        if not session.no_answers:
            session.freeze()
    elif state.pending is None and state.n_pool >= 3:
        session.plan_draws(3)


def facts(state):
    """All that a state is, to compare two."""
    audits = [
        state.audit(state.is_wanted),
        *(state.audit(state.is_wrong(f), f.first_draw) for f in state.freezes),
    ]
    return (
        state.labels, list(state.decisions.values()), state.drawn, state.pools, state.pending, state.revisit,
        state.classes, state.wanted, state.mode, state.plan, state.n_pool, state.pool.tolist(), state.version,
        [(f.first_draw, f.values.tolist(), f.tolerance) for f in state.freezes],
        [(a.found, a.doubtful, a.pool, *(p.tolist() for p in (a.draws.unlabelled, a.draws.known, a.draws.hits)))
         for a in audits],
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------- exact


@settings(max_examples=40)
@given(st.lists(st.sampled_from(OPERATIONS), max_size=60), st.integers(0, 5))
def test_a_replay_of_the_journal_is_the_state(operations, seed):
    session, truth = new_session(40, 12, seed=3)
    rng = np.random.default_rng(seed)
    for what in operations:
        operate(session, truth, what, rng)
    again = replay(session.state.header, session.state.given, session._journal.events)
    assert facts(again) == facts(session.state)


@settings(max_examples=40)
@given(st.lists(st.sampled_from(OPERATIONS), max_size=60), st.integers(0, 5))
def test_counts_before_each_draw_are_those_of_a_recount(operations, seed):
    """Hits outside the rows that could be drawn, by today's labels, whatever was undone, skipped and changed."""
    session, truth = new_session(40, 12, seed=3)
    rng = np.random.default_rng(seed)
    for what in operations:
        operate(session, truth, what, rng)
    state, labels = session.state, session.state.labels
    audit = state.audit(state.is_wanted)

    def possible(row):
        return labels.get(row, "yes") == "yes"

    probe = replay(state.header, state.given, [])
    number, waiting = 0, state.pending is not None and state.pending == state.drawn[-1]
    for event in session._journal.events:
        if event.kind == "draw" and not (waiting and number == len(state.drawn) - 1):
            outside = np.flatnonzero(~probe.pool)
            assert audit.draws.unlabelled[number] == probe.pool.sum()
            assert audit.draws.known[number] == sum(map(possible, outside.tolist()))
            assert audit.draws.hits[number] == possible(event.row)
            number += 1
        probe.apply(event)
    assert len(audit.draws) == number
    assert audit.found == sum(label == "yes" for label in labels.values())
    assert audit.most == state.n_pool + sum(map(possible, np.flatnonzero(~state.pool)))


def test_draws_are_uniform():
    """Every one of 7 rows is drawn equally often, by a chi-square test at one in a million."""
    from scipy.stats import chisquare

    counts = np.bincount(
        [drawn_place(seed, number, 7) for seed in range(300) for number in range(20)], minlength=7
    )
    assert chisquare(counts).pvalue > 1e-6


def test_a_session_goes_on_where_it_was(tmp_path):
    path = tmp_path / "papers.csv"
    frame, truth = clusters()
    frame.to_csv(path, index=False)
    options = {
        "classes": ["yes", "no"],
        "wanted": "yes",
        "settings": SessionSettings(seed=5, prepared=prepared()),
    }
    rng = np.random.default_rng(0)
    with Session(path, "relevant", **options) as session:
        for what in [
            *["answer"] * 6,
            "skip",
            "audit",
            *["answer"] * 5,
            "freeze",
            "answer",
            "undo",
            "change",
        ]:
            operate(session, truth, what, rng)
        before, proposal, certificate = (
            facts(session.state),
            session.propose(),
            session.certificate(),
        )
    with Session(path, "relevant", settings=SessionSettings(prepared=prepared())) as session:
        assert facts(session.state) == before
        assert session.propose() == proposal
        assert session.certificate().recall == certificate.recall
        assert session.certificate().answers == certificate.answers
        assert session.certificate().recall_curve[-1] == certificate.recall_curve[-1]
        assert session.notes == []
    assert path.read_text() == frame.to_csv(index=False)  # the table is never written
    assert (tmp_path / "papers-relevant-labels.jsonl").exists()


def test_killed_in_the_middle_nothing_is_lost(tmp_path):
    path = tmp_path / "papers.csv"
    frame, truth = clusters()
    frame.to_csv(path, index=False)
    running = Running(label_and_be_killed, path)
    rows = running.hear_all()
    assert running.process.exitcode == -signal.SIGKILL
    assert len(rows) == 26
    with Session(path, "relevant", settings=SessionSettings(prepared=prepared())) as session:
        assert list(session.state.labels) == rows
        assert session.certificate().recall.n_draws == 6
        assert session.certificate().recall.found == int(np.sum(truth[rows] == "yes"))


# ------------------------------------------------------------------------------------------------- laws


def test_finding_takes_few_labels():
    session, truth = new_session(300, 20)
    for _ in range(60):
        session.answer(str(truth[session.propose("find").row]))
    assert session.certificate().recall.found == 20


def test_answers_are_right_after_a_few_labels():
    session, truth = new_session(300, 60)
    session.propose("learn")
    for _ in range(12):
        session.answer(str(truth[session.propose().row]))
    names = np.array(["yes", "no"])[session.answers().values]
    assert np.mean(names == truth) > 0.95


def test_a_search_that_finds_hits_only_does_not_make_all_rows_hits():
    session, truth = new_session(200, 30)
    session.answer("no", row=int(np.flatnonzero(truth == "no")[0]))
    session.answer("yes", row=int(np.flatnonzero(truth == "yes")[0]))
    session.propose("find")
    for _ in range(15):
        row = session.propose().row
        assert truth[row] == "yes"
        session.answer("yes")
    found = np.array(["yes", "no"])[session.answers().values]
    assert np.mean(found == truth) > 0.9


@pytest.mark.parametrize(("labels", "low", "high"), [("yes", 0.02, 0.4), ("no", 0.0, 0.03)])
def test_shares_of_classes_after_a_search(labels, low, high):
    """Twenty hits in a row leave many, twenty misses few; ten random draws are believed instead."""
    session, _ = new_session(2000, 300)
    for _ in range(20):
        session.propose("find")
        session.answer(labels)
    shares = session.state.class_shares()
    assert shares.sum() == pytest.approx(1.0)
    assert low <= shares[0] <= high
    for _ in range(10):
        session.propose("audit")
        session.answer("yes")
    assert session.state.class_shares()[0] > 0.9


def test_one_class_has_all_the_share():
    session = Session(
        clusters()[0],
        "y",
        classes=["all"],
        wanted="all",
        settings=SessionSettings(prepared=prepared()),
    )
    for _ in range(3):
        session.propose("find")
        session.answer("all")
    assert session.state.class_shares().tolist() == [1.0]


def test_cold_start_shows_diverse_rows():
    """The first rows proposed, with no label at all, are of both clouds and not near each other."""
    session, truth = new_session(300, 100)
    rows = []
    for _ in range(6):
        rows.append(session.propose("learn").row)
        session.skip()
    assert set(truth[rows]) == {"yes", "no"}
    assert len(set(rows)) == 6


def test_near_copies_are_held_back():
    frame, _ = clusters(80, 40)
    copies = pd.concat([frame, *[frame.iloc[[0]]] * 40], ignore_index=True)
    copies["title"] = "same words everywhere"
    session = Session(copies, "y", classes=["a", "b"], settings=SessionSettings(seed=0))
    seen = []
    session.propose("learn")
    for _ in range(12):
        seen.append(session.propose().row)
        session.answer("a" if seen[-1] % 2 else "b")
    assert sum(row == 0 or row >= 80 for row in seen) <= 2


def test_the_law_of_undo():
    """Undo after anything but a random draw leaves what was before; labels, answers, certificate and proposal."""
    session, truth = new_session()
    for _ in range(8):
        session.answer(str(truth[session.propose().row]))
    before, labels, answers = (
        session.propose(),
        dict(session.state.labels),
        session.answers().values.copy(),
    )
    session.answer("yes")
    assert session.undo() == before.row
    assert session.state.labels == labels
    np.testing.assert_array_equal(session.answers().values, answers)
    again = session.propose()
    assert (again.row, again.reason) == (before.row, "undone")
    session.skip()
    assert session.propose().row != before.row
    session.undo()
    assert session.propose().row == before.row


def test_all_can_be_undone():
    session, truth = new_session()
    rng = np.random.default_rng(0)
    for what in ["answer"] * 5 + ["change", "skip", "change"]:
        operate(session, truth, what, rng)
    while session.state.undoable:
        session.undo()
    assert session.state.labels == {}
    assert session.state.decisions == {}
    assert session.state.n_pool == 60


# ------------------------------------------------------------------ no habit of labelling deceives a certificate


def test_a_draw_cannot_be_drawn_again():
    """Neither undo, nor skip, nor another mode, nor a restart makes a random draw go away."""
    session, _ = new_session()
    row = session.propose("audit").row
    assert session.propose().row == row
    session.propose("find")
    assert session.propose("audit").row == row
    session.answer("yes")
    session.undo()
    assert session.propose().row == row
    assert session.propose().random
    session.skip()
    other = session.propose()
    assert other.row != row
    audit = session.state.audit(session.state.is_wanted)
    assert len(audit.draws) == 1  # the other is on the table
    assert audit.draws.hits.all()  # what nobody has judged counts as a hit
    assert audit.doubtful == 1
    session.answer("no", row=row)  # judged at last
    assert not session.state.audit(session.state.is_wanted).draws.hits[0]


@pytest.mark.parametrize("trick", ["skip", "undo", "leave"])
def test_putting_hits_aside_certifies_nothing(trick):
    """A person who skips, undoes or leaves every hit that is drawn is told of no recall that is not there."""
    session, truth = new_session(60, 15)
    session.propose("audit")
    for _ in range(200):
        proposal = session.propose("audit")
        if proposal is None or proposal.reason == "skipped":
            break
        if truth[proposal.row] == "no":
            session.answer("no")
        elif trick == "skip":
            session.skip()
        elif trick == "undo":
            session.answer("yes")
            session.undo()
            session.skip()
        else:
            session.propose("find")
            session.propose("audit")
            session.skip()
    certificate = session.certificate().recall
    assert certificate.found == 0
    assert certificate.missed_at_most >= 15
    assert not certificate.reached


def test_a_changed_label_counts_as_if_it_had_always_been_so():
    """A hit called a miss and corrected later: the same certificate as with the right label from the start."""
    ends = []
    for wrong in (True, False):
        session, truth = new_session(60, 10)
        rows = np.flatnonzero(truth == "yes")[:6].tolist()
        for row in rows:
            session.answer("no" if wrong else "yes", row=row)
        session.propose("audit")
        for _ in range(20):
            session.answer(str(truth[session.propose().row]))
        if wrong:
            for row in rows:
                session.answer("yes", row=row)
        ends.append((session.certificate().recall, session.certificate().recall_curve[-1]))
    assert ends[0] == ends[1]


def test_frozen_answers_do_not_follow_later_labels():
    session, truth = new_session(200, 80)
    session.propose("learn")
    for _ in range(10):
        session.answer(str(truth[session.propose().row]))
    session.freeze()
    frozen = session.state.freezes[-1].values.copy()
    n_wrong = int(np.sum(np.array(["yes", "no"])[frozen] != truth))
    session.propose("audit")
    while not (certificate := session.certificate().answers).reached:
        assert certificate.wrong_at_most >= n_wrong - certificate.found
        session.answer(str(truth[session.propose().row]))
    assert certificate.n_draws < 190
    assert type(certificate.found) is type(certificate.wrong_at_most) is int
    np.testing.assert_array_equal(session.state.freezes[-1].values, frozen)
    # A second freeze has its own, smaller part of the level, and begins anew.
    session.freeze()
    assert session.certificate().answers.n_draws == 0


def judge(session, truth, mode, count):
    """Judge some rows as they are proposed."""
    for _ in range(count):
        session.answer(str(truth[session.propose(mode).row]))


def test_the_first_draws_of_a_stretch_calibrate_by_themselves():
    session, truth = new_session(240, 60)
    judge(session, truth, "find", 12)
    session.answer("no", row=int(np.flatnonzero((truth == "no") & session.state.pool)[0]))
    size = session.state.block_size(0.9)
    assert size == 39  # of 227 rows
    for step in range(size):
        assert not session.certificate().intervals.ready
        judge(session, truth, "audit", 1)
        assert session.certificate().intervals.answered == step + 1
    block = session.state.block
    assert session.certificate().intervals.ready
    assert (block.count, block.first_draw, block.level) == (size, 0, 0.9)
    judge(session, truth, "audit", 2)  # more draws, and rows found on purpose, leave it as it is
    judge(session, truth, "find", 3)
    assert session.state.block == block
    assert session.certificate().intervals.complete
    assert "new block" in about_intervals(session.certificate().intervals)
    judge(session, truth, "audit", 1)
    found = session.certificate().intervals
    assert (found.ready, found.complete, found.answered, found.earlier) == (True, False, 1, size)
    assert session.state.n_blocks == 2


def test_rows_labelled_between_the_draws_begin_a_new_block():
    session, truth = new_session(240, 60)
    judge(session, truth, "find", 12)
    session.plan_draws(20)  # changed before the first draw: labels until then do no harm
    judge(session, truth, "learn", 1)
    judge(session, truth, "audit", 3)
    assert not session.certificate().intervals.spoilt
    session.answer("no", row=session.state.drawn[0])
    session.answer(str(truth[session.state.drawn[0]]), row=session.state.drawn[0])
    assert not session.certificate().intervals.spoilt
    judge(session, truth, "find", 1)
    assert session.certificate().intervals.spoilt
    judge(session, truth, "audit", 1)
    assert session.certificate().intervals.planned == session.state.block_size(0.9)
    assert session.certificate().intervals.answered == 1
    session.undo()  # a draw stays drawn
    assert not session.certificate().intervals.spoilt
    session.undo()
    assert session.certificate().intervals.spoilt  # a row came back that could be drawn


@pytest.mark.parametrize(
    ("n", "level", "size"), [(2000, 0.9, 39), (2000, 0.95, 79), (120, 0.9, 29), (60, 0.9, 19)]
)
def test_blocks_are_smaller_in_small_tables(n, level, size):
    session, _ = new_session(n if n < 2000 else 240, 15)
    session.state.n_pool = n
    assert session.state.block_size(level) == size
    session.state.n_pool = 18
    assert session.state.block_size(level) == 0


def test_a_drawn_row_that_was_skipped_does_not_hold_the_block_up():
    session, truth = new_session(240, 60)
    judge(session, truth, "find", 12)
    judge(session, truth, "audit", 9)
    session.propose()
    session.skip()
    judge(session, truth, "audit", 29)
    found = session.certificate().intervals
    assert (found.ready, found.answered, found.drawn) == (True, 38, 39)
    assert "1 draw that you skipped counts as badly answered" in about_intervals(found)


@pytest.mark.parametrize("skipped", [0, 1, 2, 3, 4, 12])
@pytest.mark.parametrize("n_before", [13, 2])
def test_draws_suffice_where_a_fill_would_be_guaranteed_by_them(skipped, n_before):
    """Where labels were few before, the first draws teach; those skipped count as the worst possible."""
    session, truth = new_session(240, 60)
    judge(session, truth, "find", n_before - 1)
    session.answer("no", row=int(np.flatnonzero((truth == "no") & session.state.pool)[0]))
    state = session.state
    session.plan_draws(24)
    for step in range(24):
        session.propose("audit")
        if 12 <= step < 12 + skipped:
            session.skip()
        else:
            session.answer(str(truth[session.propose().row]))
    labels = pd.Series([state.label_of(row) for row in range(240)], dtype=object)
    marked = [row for row in state.drawn if row in state.calibrating(state.block, 0.9)]
    frame = session.table.frame.assign(relevant=labels, drawn=np.isin(np.arange(240), marked))
    options = Options.read({"labels": Drawn("drawn")})
    forecast = forecast_guarantee(FrameSource.read(frame, "relevant", options), options)
    ready = session.certificate().intervals.complete
    assert ready == (forecast.guarantee.kind == "exact")
    if ready:
        n_calibration = len(marked) - skipped
        assert forecast.n_calibration == n_calibration
        assert forecast.guarantee.n_empty == skipped


# ------------------------------------------------------------------------------------------------- limits


def test_labelling_to_the_end():
    session, truth = new_session(30, 5)
    for _ in range(30):
        session.answer(str(truth[session.propose("learn").row]))
    assert session.propose() is None
    certificate = session.certificate().recall
    assert certificate.reached
    assert (certificate.found, certificate.missed_at_most) == (5, 0)
    with pytest.raises(ValueError, match="no row to skip"):
        session.skip()


def test_skipped_draws_come_last():
    session, truth = new_session(20, 5)
    skipped = session.propose("audit").row
    session.skip()
    for _ in range(19):
        session.answer(str(truth[session.propose("find").row]))
    last = session.propose()
    assert (last.row, last.reason) == (skipped, "skipped")
    session.answer("no")
    assert session.propose() is None


def test_skipped_rows_come_back_when_there_is_nothing_else():
    session, _ = new_session(10, 3)
    for _ in range(25):
        session.propose("learn")
        session.skip()
    assert session.state.labels == {}


def test_labels_of_the_table_are_kept_and_count():
    frame, truth = clusters()
    frame = frame.assign(relevant=[str(t) if i < 10 else None for i, t in enumerate(truth)])
    session = Session(frame, "relevant", settings=SessionSettings(seed=0, prepared=prepared()))
    assert session.classes == ["no", "yes"]
    assert session.state.wanted == "yes"
    assert session.certificate().recall.found == int(np.sum(truth[:10] == "yes"))
    assert session.state.n_pool == 50
    session.answer("no" if truth[0] == "yes" else "yes", row=0)  # the person may overrule the table
    assert [*session.state.decisions] == [0]
    session.undo()
    assert session.state.label_of(0) == truth[0]
    assert session.state.n_pool == 50


def test_many_classes_and_no_class_wanted():
    frame, _ = clusters()
    session = Session(
        frame,
        "kind",
        classes=["a", "b", "c"],
        settings=SessionSettings(seed=0, prepared=prepared()),
    )
    assert session.state.mode == "learn"
    assert session.certificate().recall is None
    session.add_class("d")
    for label in "abcd":
        session.answer(label)
    assert set(session.answers().values) <= {0, 1, 2, 3}
    session.want("c")
    assert session.propose("find").mode == "find"
    assert session.certificate().recall.found == 1


@pytest.mark.parametrize(
    ("names", "n_given", "wanted"),
    [
        (["blast", "lymphocyte"], (0, 0), None),
        (["blast", "lymphocyte"], (3, 3), None),
        (["blast", "lymphocyte"], (3, 2), "lymphocyte"),
        (["no", "Yes"], (0, 0), "Yes"),
        (["nein", "ja"], (2, 5), "ja"),
    ],
)
def test_of_two_classes_alike_none_is_searched_for(names, n_given, wanted):
    frame, _ = clusters()
    cells = [name for name, times in zip(names, n_given, strict=True) for _ in range(times)]
    frame = frame.assign(kind=cells + [None] * (len(frame) - len(cells)))
    settings = SessionSettings(seed=0, prepared=prepared())
    session = Session(frame, "kind", classes=names, settings=settings)
    assert session.state.wanted == wanted
    assert session.state.mode == ("learn" if wanted is None else "find")


def test_classes_that_are_numbers_or_true_and_false(tmp_path):
    frame, truth = clusters()
    path = tmp_path / "t.csv"
    labels = pd.Series(np.where(truth == "yes", 1, 0), dtype="Int64").mask(np.arange(60) >= 10)
    frame.assign(label=labels).to_csv(path, index=False)
    with Session(path, "label", settings=SessionSettings(prepared=prepared())) as session:
        assert session.classes == [0, 1]
        session.answer(1, row=20)
        session.answer("0", row=21)
    with Session(path, "label", settings=SessionSettings(prepared=prepared())) as session:
        assert session.state.labels == {20: 1, 21: 0}
        assert [type(label) for label in session.state.labels.values()] == [int, int]


def test_numbers_are_answered_with_intervals():
    frame, truth = numbers(200)
    session = Session(frame, "y", settings=SessionSettings(task="numbers", seed=0))
    assert session.state.mode == "learn"
    for _ in range(30):
        row = session.propose().row
        session.answer(float(truth[row]))
    answers = session.answers()
    unlabelled = np.setdiff1d(np.arange(200), list(session.state.labels))
    assert np.corrcoef(answers.values[unlabelled], truth[unlabelled])[0, 1] > 0.9
    inside = (answers.lower <= truth) & (truth <= answers.upper)
    assert np.mean(inside[unlabelled]) > 0.8
    assert session.propose().reason == "widest"
    session.freeze(tolerance=1.0)
    session.propose("audit")
    for _ in range(40):
        session.answer(float(truth[session.propose().row]))
    assert session.certificate().answers.wrong_at_most < 40
    assert session.certificate().recall is None


def test_a_table_of_texts():
    rng = np.random.default_rng(0)
    words = {
        "yes": ["tumour", "cell", "therapy", "dose"],
        "no": ["star", "galaxy", "orbit", "dust"],
    }
    truth = np.array(["yes" if i % 5 == 0 else "no" for i in range(120)])
    frame = pd.DataFrame(
        {
            "abstract": [
                " ".join(rng.choice(words[t], 8)) + f" study {i}" for i, t in enumerate(truth)
            ]
        }
    )
    session = Session(frame, "relevant", settings=SessionSettings(seed=0))
    assert session.classes == ["yes", "no"]
    for _ in range(40):
        session.answer(str(truth[session.propose("find").row]))
    assert session.certificate().recall.found == 24
    assert session.table.search("galaxy dust")
    assert session.table.search("17")[0] == 16


def test_rows_without_words_and_parts_without_labels():
    frame = pd.DataFrame({"text": ["red red apple pie", "", None, "blue sea water salt"] * 10})
    session = Session(frame, "y", settings=SessionSettings(seed=0))
    for _ in range(10):
        session.answer("yes" if session.propose("learn").row % 4 == 0 else "no")
    assert len(session.answers().values) == 40


def test_a_label_reaches_rows_that_no_neighbour_ties_to_it():
    """Rows that occur many times are each other's neighbours: the graph falls into parts, one for each distinct row."""
    frame, truth = _combinations()
    session = Session(frame, "y", classes=["yes", "no"], settings=SessionSettings(seed=0))
    parts = session.prepared.graph.component
    assert len(np.unique(parts)) == 64
    for part in range(0, 64, 2):
        row = int(np.flatnonzero(parts == part)[0])
        session.answer(str(truth[row]), row=row)
    found = np.array(["yes", "no", None], dtype=object)[session.answers().values]
    labelled = parts % 2 == 0
    assert np.all(found[labelled] == truth[labelled])
    assert np.mean(found[~labelled] == truth[~labelled]) > 0.85
    assert "where no neighbour leads" in session.answers().source


def _combinations():
    """All rows of six flags, twelve times; class yes if most of the first three are set."""
    flags = np.array(np.meshgrid(*[[0, 1]] * 6)).reshape(6, -1).T
    rows = np.random.default_rng(2).permutation(np.repeat(flags, 12, axis=0))
    truth = np.where(rows[:, :3].sum(axis=1) >= 2, "yes", "no").astype(object)
    return pd.DataFrame(rows.astype(float), columns=list("abcdef")), truth


def test_labels_in_more_parts_than_the_graph_takes(monkeypatch):
    frame, truth = _combinations()
    session = Session(frame, "y", classes=["yes", "no"], settings=SessionSettings(seed=0))
    monkeypatch.setattr("transduce.app.labelling.answering.MOST_PARTS", 5)
    rows = np.random.default_rng(0).permutation(len(frame))[:200].tolist()
    for row in rows:
        session.answer(str(truth[row]), row=row)
    found = np.array(["yes", "no"])[session.answers().values]
    assert np.all(found[rows] == truth[rows])
    assert np.mean(found == truth) > 0.9


def _chosen_by_class(n=900):
    """A table in which 12 % are hits, with equally many labels of either class; and the truth."""
    rng = np.random.default_rng(0)
    hit = rng.random(n) < 0.12
    frame = pd.DataFrame(rng.normal(size=(n, 3)) + 1.4 * hit[:, None], columns=list("abc"))
    truth = np.where(hit, "yes", "no")
    given = np.full(n, None, dtype=object)
    for name in ("yes", "no"):
        labelled = np.flatnonzero(truth == name)[:20]
        given[labelled] = name
    return frame.assign(y=given), truth


def test_labels_of_the_table_that_were_chosen_by_class():
    """Equally many of each say nothing of the shares; the other rows do, and answers follow them."""
    frame, truth = _chosen_by_class()
    left = frame["y"].isna().to_numpy()
    wrong = {}
    for by_class in (False, True):
        options = SessionSettings(labels_by_class=by_class)
        with Session(frame, "y", settings=options) as session:
            answers = session.named(session.answers().values)
            wrong[by_class] = np.mean((answers != truth)[left])
            shares = session.model.shares_left
            assert (shares is None) is not by_class
    of_hits = np.mean(truth[left] == "yes")
    assert abs(shares[session.classes.index("yes")] - of_hits) < 0.05
    assert wrong[True] < 0.8 * wrong[False]


def test_a_class_that_is_added_later_has_no_share_of_the_other_rows():
    frame, _ = _chosen_by_class()
    with Session(frame, "y", settings=SessionSettings(labels_by_class=True)) as session:
        session.add_class("perhaps")
        session.answer("perhaps", row=int(np.flatnonzero(frame["y"].isna())[0]))
        answers = session.answers().values
    assert set(answers.tolist()) <= {0, 1, 2}


@pytest.mark.parametrize("codes", [{}, {0: 1}, {0: 0, 1: 0}, {0: 0, 1: 1, 2: 1}])
def test_too_few_labels_of_a_class_tell_no_shares(codes):
    assert estimate_shares_left(np.eye(5), codes, 2) is None


def test_where_every_row_is_labelled_no_share_is_left():
    assert estimate_shares_left(np.eye(4), {0: 0, 1: 0, 2: 1, 3: 1}, 2) is None


def test_answers_come_from_one_method_and_start_no_process(monkeypatch):
    def refuse(*command, **options):
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    session, truth = new_session(90, 30)
    for _ in range(12):
        session.answer(str(truth[session.propose("learn").row]))
    assert session.answers().source == "the spectral graph transducer"
    assert session.answers() is session.answers()
    session.close()


def exported(session, folder, monkeypatch):
    """The columns of both tables, the report and what is guaranteed; they agree at every row."""
    monkeypatch.setattr("transduce.app.labelling.export.fill", partial(fill, method="ridge"))
    done = session.export(folder, force=True)
    labelled, filled = pd.read_csv(done.labelled), pd.read_csv(done.filled)
    target = session.table.target
    assert (labelled[f"{target}_answer"] == filled[f"{target}_filled"]).all()
    given = labelled[f"{target}_label"].notna()
    assert given.sum() == len(session.state.labelled)
    assert (filled.loc[given, f"{target}_filled"] == labelled.loc[given, f"{target}_label"]).all()
    assert ((filled[f"{target}_status"] == "given") == given).all()
    assert done.guarantee in done.certificate.read_text(encoding="utf-8")
    report = done.report.read_text(encoding="utf-8")
    assert report.startswith("<!DOCTYPE html>")
    rows = fill_labels(session, exported_answers(session)).summary()["rows"]
    written = pd.read_csv(done.filled, dtype=str).loc[~given, f"{target}_filled"]
    assert {one["position"]: str(one["value"]) for one in rows} == written.to_dict()
    return labelled, filled, report, done.guarantee


def test_export_of_a_search(tmp_path, monkeypatch):
    """Labels that were searched for teach: the table has the page's answers, and nothing says how good they are."""
    session, truth = new_session(120, 40)
    judge(session, truth, "find", 45)
    labelled, filled, report, guarantee = exported(session, tmp_path, monkeypatch)
    assert (labelled["relevant_by"] == "person").sum() == 45
    np.testing.assert_array_equal(
        filled["relevant_filled"], session.named(session.answers().values)
    )
    assert guarantee.startswith(
        "none: Nothing is guaranteed at 90 %. Labels that were chosen do not measure"
    )
    assert "Audit: 9 more random draws" in guarantee
    assert filled.loc[filled["relevant_status"] != "given", "relevant_set"].eq("no | yes").all()
    assert filled["relevant_probability"].isna().all()
    for false in (
        "% right",
        "How good are the predictions",
        "if chance",
        "exact:",
        "fill(",
        "With twice",
    ):
        assert false not in report, false
    assert "45 labels: 45 found by searching." in report


def test_export_of_a_block(tmp_path, monkeypatch):
    """The first draws calibrate, whatever is labelled later; sets are about all rows without a label at their end."""
    session, truth = new_session(240, 60)
    judge(session, truth, "find", 20)
    judge(session, truth, "audit", 9)
    session.propose()
    session.skip()
    judge(session, truth, "audit", 29)
    _, first, report, guarantee = exported(session, tmp_path, monkeypatch)
    assert guarantee.startswith("exact: ")
    assert "of the 181 true classes" in guarantee
    assert "random draws made since calibrate it." in report
    judge(session, truth, "find", 5)
    _, second, _, guarantee = exported(session, tmp_path, monkeypatch)
    assert (
        "It is about the 181 rows without a label when the last row was drawn; 5 of them have been"
        in guarantee
    )
    same = (second["relevant_status"] != "given").to_numpy()
    both = [table[same] for table in (first, second)]
    sets = [table["relevant_set"].str.split(" | ", regex=False).map(set) for table in both]
    for before, after, was, value in zip(
        *sets, *(table["relevant_filled"] for table in both), strict=True
    ):
        assert value in after
        assert before - {was} <= after
    judge(session, truth, "audit", 1)
    assert "if no block of draws was begun, or left" in exported(session, tmp_path, monkeypatch)[3]


def test_export_of_a_block_with_too_many_skipped_draws(tmp_path, monkeypatch):
    """Each counts as badly answered: until enough are judged, no file says that the draws calibrate."""
    session, truth = new_session(240, 60)
    judge(session, truth, "learn", 20)
    for number in range(39):
        session.propose("audit")
        session.skip() if number % 8 == 0 else judge(session, truth, "audit", 1)
    intervals = session.certificate().intervals
    assert (intervals.answered, intervals.missing, intervals.ready) == (34, 2, False)
    words = "5 draws that you skipped count as badly answered, which is too many: judge 2 of them."
    assert about_intervals(intervals) == words
    _, filled, report, guarantee = exported(session, tmp_path, monkeypatch)
    assert guarantee.startswith("none: ")
    assert "Judge 2 of the random draws that you skipped" in guarantee
    assert filled["relevant_probability"].isna().all() == ("No probability is known" in report)
    for row in session.state.doubtful[:2]:
        session.answer(str(truth[row]), row=row)
    assert exported(session, tmp_path, monkeypatch)[3].startswith("exact: ")


def test_export_of_draws_alone_and_of_frozen_answers(tmp_path, monkeypatch):
    session, truth = new_session(240, 60)
    judge(session, truth, "audit", 30)  # the first ten teach
    session.freeze()
    frozen = session.state.freezes[-1].values.copy()
    judge(session, truth, "audit", 9)
    _, filled, _, guarantee = exported(session, tmp_path, monkeypatch)
    assert guarantee.startswith("exact: ")
    assert "29 of 39 labels, those of rows drawn at random, were used for calibration" in guarantee
    left = (filled["relevant_status"] != "given").to_numpy()
    np.testing.assert_array_equal(filled["relevant_filled"][left], session.named(frozen)[left])


def test_export_of_numbers(tmp_path, monkeypatch):
    frame, truth = numbers(240)
    options = SessionSettings(
        task="numbers", seed=0, prepared=prepare(read_label_table(frame, "y"))
    )
    session = Session(frame, "y", settings=options)
    for mode, count in (("learn", 12), ("audit", 39), ("learn", 3)):
        for _ in range(count):
            session.answer(float(truth[session.propose(mode).row]))
    _, filled, _, guarantee = exported(session, tmp_path, monkeypatch)
    left = filled["y_status"] == "answered"
    assert guarantee.startswith("exact: The interval of a row picked at random holds")
    assert (filled["y_lower"] <= filled["y_filled"])[left].all()
    assert (filled["y_filled"] <= filled["y_upper"])[left].all()
    assert np.isfinite(filled["y_upper"][left]).all()


def test_export_with_too_few_labels_still_writes_the_labels(tmp_path):
    session, _ = new_session()
    session.answer("yes")
    done = session.export(tmp_path)
    assert done.filled is None
    assert done.guarantee.startswith("The table could not be filled: ")
    assert pd.read_csv(done.labelled)["relevant_label"].notna().sum() == 1
    session.answer("no")
    with pytest.raises(FileExistsError):
        session.export(tmp_path)
    session.export(tmp_path, force=True)
    assert pd.read_csv(done.labelled)["relevant_label"].notna().sum() == 2


# ------------------------------------------------------------------------------------------------- refusals


def test_refusals(tmp_path):
    frame, _ = clusters()
    session, _ = new_session()
    with pytest.raises(ValueError, match="There is no class 'maybe': choose one of 'yes', 'no'"):
        session.answer("maybe")
    with pytest.raises(ValueError, match="There is no row 60"):
        session.answer("yes", row=60)
    with pytest.raises(ValueError, match="nothing to undo"):
        session.undo()
    with pytest.raises(ValueError, match="mode must be one of"):
        session.propose("guess")
    with pytest.raises(ValueError, match="cannot be added"):
        session.add_class("yes")
    with pytest.raises(ValueError, match="more than the 60 rows"):
        session.plan_draws(61)
    with pytest.raises(ValueError, match="say into which folder"):
        session.export()
    session.propose("audit")
    with pytest.raises(ValueError, match="cannot change after the first random draw"):
        session.want("no")
    with pytest.raises(ValueError, match="waiting"):
        session.plan_draws(3)
    with pytest.raises(ValueError, match="recall must lie"):
        Session(frame, "y", settings=SessionSettings(recall=1.5))
    with pytest.raises(ValueError, match="no column 'nothing'"):
        Session(frame, "y", show=["nothing"])
    with pytest.raises(ValueError, match="there is nothing to learn from"):
        Session(pd.DataFrame({"a": [1, 1, 1]}), "y")
    with pytest.raises(ValueError, match="no rows"):
        Session(frame.iloc[:0], "y")


@pytest.mark.parametrize(
    ("wanted", "classes"),
    [
        ("yes", ["yes", "no"]),
        ("True", ["True", "false"]),
        ("relevant", ["relevant", "not relevant"]),
    ],
)
def test_one_wanted_class_of_an_empty_column_has_an_opposite(wanted, classes):
    session = Session(
        clusters()[0], "y", wanted=wanted, settings=SessionSettings(prepared=prepared())
    )
    assert (session.classes, session.state.wanted) == (classes, wanted)


@pytest.mark.parametrize(
    ("typed", "number"),
    [("1.230,5", 1230.5), ("€ 300", 300.0), (" -10,5 ", -10.5), ("10 %", 10.0)],
)
def test_numbers_are_read_as_fill_reads_them(typed, number):
    labels = read_target(
        pd.DataFrame({"y": [typed, *[typed.replace("0", "7")] * 3, None]}), "y"
    ).labels
    assert as_number(typed) == number == labels[0]


def test_prices_with_a_sign_are_numbers():
    """As `fill` reads them: each spelling of a price is no class of its own."""
    cells = ["€ 300,000", "229000", "120,000 €", None, None]
    frame = pd.DataFrame({"size": [90.0, 70.0, 40.0, 60.0, 80.0], "price": cells})
    session = Session(frame, "price", settings=SessionSettings(seed=0))
    assert session.task == "numbers"
    assert sorted(session.state.given.values()) == [120000.0, 229000.0, 300000.0]


@pytest.mark.parametrize(
    ("column", "typed", "number"),
    [
        (["252.100", "1.250.000", "73.755"], "410.000", 410_000),
        (["252,100", "1,250,000", "73,755"], "410,000", 410_000),
        (["12.5", "7.125", "9.0"], "4.250", 4.25),
        (["12,5", "7,125", "9,0"], "4,250", 4.25),
        (["12,5", "7,125", "9,0"], "4.250", 4250),
        (["12.5", "7.125", "9.0"], "4,250", 4250),
        (["€ 252.100,00", "€ 73.755,50", "€ 9,00"], "410.000", 410_000),
        ([252100, 73755, 90000], "1.250.000", 1_250_000),
        ([252100, 73755, 90000], "410.00", 410),
    ],
)
def test_the_decimal_sign_of_the_column_decides(column, typed, number, tmp_path):
    frame = pd.DataFrame({"x": range(5), "y": [*column, None, None]})
    frame.to_csv(tmp_path / "t.csv", index=False, sep="\t")
    with Session(
        tmp_path / "t.csv", "y", settings=SessionSettings(task="numbers", wait=False)
    ) as session:
        session.preparation.join()
        session.answer(typed, row=4)
        assert session.state.labels[4] == number


def test_what_the_column_does_not_tell_is_asked_about():
    frame = pd.DataFrame({"x": range(5), "y": [252100.0, 73755.0, 90000.0, None, None]})
    session = Session(frame, "y", settings=SessionSettings(wait=False))
    session.preparation.join()
    with pytest.raises(
        ValueError, match=r"“410\.000” can be read in two ways: give 410000 or 410 as a number"
    ):
        session.answer("410.000", row=4)
    assert session.state.labels == {}


def test_a_number_below_one_can_be_read_in_one_way():
    assert as_number("0.568") == 0.568
    assert as_number("0,568", "point") == 0.568


def test_rows_to_come_first_are_rows_of_the_table():
    with pytest.raises(ValueError, match="first names rows from 0 to 59; got 60"):
        Session(clusters()[0], "y", settings=SessionSettings(prepared=prepared(), first=[3, 60]))
    with pytest.raises(ValueError, match="first"):
        SessionSettings(first=[-1])


@pytest.mark.parametrize("typed", ["<0.5", "about 3 or 4", "", "12,345"])
def test_numbers_that_could_only_be_guessed_are_asked_about(typed):
    with pytest.raises(
        ValueError,
        match=r"is not a number: type one|in two ways: give 12345 or 12\.345 as a number",
    ):
        as_number(typed)


def test_answers_that_are_not_there_are_not_frozen():
    session, truth = new_session()
    for row in np.flatnonzero(truth == "yes")[:3]:
        with pytest.raises(
            ValueError, match=r"no answers to freeze\. Label rows of two classes first\."
        ):
            session.freeze()
        session.answer("yes", row=int(row))
    session.answer("no", row=int(np.flatnonzero(truth == "no")[0]))
    session.freeze()


def test_a_search_that_finds_no_more_is_told_so_and_what_is_left_is_estimated():
    session, truth = new_session(400, 40)
    left, said = [], []
    while session.state.n_misses < 30:
        session.answer(str(truth[session.propose("find").row]))
        left.append((session.state.left_to_find(), (truth == "yes").sum() - session.state.hits()))
        said.append(about_left(session.state))
    assert session.state.hits() == 40
    assert [hint for _, hint in said[:-1]] == [""] * (len(said) - 1)
    assert (
        said[-1][1]
        == "The last 30 proposals were not “yes”: draw at random to learn how many are left."
    )
    assert (
        said[-1][0] == "An estimate, not a certificate: hardly any more of class “yes” may be left."
    )
    told = [(guess, true) for guess, true in left if guess is not None]
    assert all(abs(guess - true) <= 20 for guess, true in told)  # of 360 rows
    assert 20 <= len(told) < len(left) - 20


def test_numbers_refuse_what_classes_take():
    frame, _ = numbers(30)
    session = Session(
        frame,
        "y",
        settings=SessionSettings(
            task="numbers", seed=0, prepared=prepare(read_label_table(frame, "y"))
        ),
    )
    for bad in ("three", float("nan"), None, True, 1e200, 10**400):
        with pytest.raises(ValueError, match=r"label must be a number|is not a number"):
            session.answer(bad)
    for row in range(3):
        session.answer(float(row), row=row)
    with pytest.raises(ValueError, match="tolerance"):
        session.freeze()
    with pytest.raises(ValueError, match="not searched for"):
        session.propose("find")


def test_a_journal_of_another_table_is_refused(tmp_path):
    frame, _ = clusters()
    path = tmp_path / "papers.csv"
    frame.to_csv(path, index=False)
    options = {
        "journal": tmp_path / "j.jsonl",
        "settings": SessionSettings(seed=1, prepared=prepared()),
    }
    Session(path, "relevant", **options).close()
    with pytest.raises(ValueError, match="is about the column 'relevant', not 'other'"):
        Session(path, "other", **options)
    with pytest.raises(ValueError, match="begun with the seed 1"):
        Session(path, "relevant", journal=tmp_path / "j.jsonl", settings=SessionSettings(seed=2))
    frame.iloc[:50].to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"has changed since j\.jsonl was begun"):
        Session(path, "relevant", **options)


def test_a_forged_draw_is_noticed(tmp_path):
    frame, _ = clusters()
    path = tmp_path / "papers.csv"
    frame.to_csv(path, index=False)
    with Session(
        path, "relevant", settings=SessionSettings(seed=1, prepared=prepared())
    ) as session:
        for _ in range(3):
            session.propose("audit")
            session.answer("no")
        journal = session.journal
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    forged = next(line for line in lines if line["kind"] == "draw")
    forged["row"] = (forged["row"] + 1) % 60
    del forged["check"]  # who forges a row can forge this too
    journal.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with pytest.raises(ValueError, match="is not the row that the seed gives"):
        Session(path, "relevant", settings=SessionSettings(prepared=prepared()))


def test_a_journal_about_other_rows_is_refused():
    session, _ = new_session()
    with pytest.raises(ValueError, match=r"Line 2 of the journal .* has no row 99"):
        replay(session.state.header, {}, [Event("answer", row=99, label="yes")])


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (Event("answer", row=3, label="perhaps"), "'perhaps' is no label here"),
        (Event("answer", label="yes"), "it names no row"),
        (Event("answer", row="3", label="yes"), "no row '3'"),
        (Event("answer", row=3, label=["yes"]), "is no label here"),
        (Event("undo", row=3), "empty"),
        (Event("freeze", data=pack(np.zeros(3, dtype=np.int16))), "as many answers as rows"),
        (Event("freeze", data="<i2:AAAA"), "does not follow"),
    ],
)
def test_a_journal_that_does_not_make_sense_is_refused(event, words):
    session, _ = new_session()
    classes = [Event("class", label="yes"), Event("class", label="no")]
    with pytest.raises(ValueError, match=words) as refused:
        replay(session.state.header, {}, [*classes, event])
    assert "Line 4 of the journal" in str(refused.value)


def test_settings_of_a_session_that_goes_on_stay(tmp_path):
    """A level chosen after looking would not be the level of the certificate; the user is told."""
    options = {"journal": tmp_path / "j.jsonl"}
    new_session(**options)[0].close()
    again, _ = new_session(recall=0.8, certainty=0.5, **options)
    assert again.state.header.recall == again.state.header.certainty == 0.95
    assert [note[:40] for note in again.notes] == [
        "The session was begun with recall=0.95 a",
        "The session was begun with certainty=0.9",
    ]
    again.close()
    same, _ = new_session(**options)
    assert same.notes == []
    same.close()


def test_a_journal_that_is_deleted_or_replaced_is_noticed(tmp_path):
    path = tmp_path / "j.jsonl"
    session, _ = new_session(journal=path)
    session.answer("yes")
    path.rename(tmp_path / "kept.jsonl")
    for _ in range(2):
        with pytest.raises(OSError, match="was moved or deleted"):
            session.answer("no")
        path.write_text("another file")
    assert len(session.state.labels) == 1
    session.close()
    assert path.read_text() == "another file"


@pytest.mark.parametrize("bad", [None, "", "  ", float("nan")])
def test_a_class_needs_a_name(bad):
    with pytest.raises(ValueError, match="A class needs a name"):
        Session(
            clusters()[0], "y", classes=["yes", bad], settings=SessionSettings(prepared=prepared())
        )


def test_classes_of_numpy_are_written_as_plain_ones(tmp_path):
    path = tmp_path / "j.jsonl"
    options = {"classes": np.array([0, 1]), "wanted": np.int64(1), "journal": path}
    with Session(
        clusters()[0], "y", settings=SessionSettings(prepared=prepared()), **options
    ) as session:
        session.answer(np.int64(1), row=np.int64(3))
    with Session(
        clusters()[0], "y", settings=SessionSettings(prepared=prepared()), **options
    ) as session:
        assert session.classes == [0, 1]
        assert session.state.labels == {3: 1}


@pytest.mark.parametrize("row", [2.0, True, "2", -1])
def test_rows_are_whole_numbers(row):
    session, _ = new_session()
    with pytest.raises(ValueError, match="There is no row"):
        session.answer("yes", row=row)


def test_frames_with_any_names_and_values():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 3)))
    frame.iloc[4, 1] = np.inf
    session = Session(frame, "y", settings=SessionSettings(seed=0))
    assert [cell.text for cell in session.table.cells(4)][1] == "inf"
    assert session.table.show == ["0", "1", "2"]
    for row in range(4):
        session.answer("yes" if row % 2 else "no", row=row)
    assert json.dumps(view(session), allow_nan=False)


def test_a_label_of_the_table_that_is_not_finite_is_refused():
    frame = pd.DataFrame({"a": np.arange(9.0), "y": [np.inf, 1.0, *[np.nan] * 7]})
    with pytest.raises(ValueError, match="The label inf is not a number between"):
        Session(frame, "y", settings=SessionSettings(task="numbers"))


@pytest.mark.parametrize("size", [1e149, 1e-300])
def test_numbers_of_any_size(size):
    frame, y = numbers(40)
    session = Session(frame, "y", settings=SessionSettings(task="numbers", seed=0))
    for _ in range(8):
        session.answer(size * float(y[session.propose("learn").row]))
        assert json.dumps(view(session), allow_nan=False)
    values = session.answers().values
    session.freeze(tolerance=size)
    np.testing.assert_array_equal(session.state.freezes[-1].values, values)


def test_a_session_that_cannot_begin_leaves_no_journal(tmp_path):
    path = tmp_path / "flat.csv"
    pd.DataFrame({"a": [1.0] * 9}).to_csv(path, index=False)
    with pytest.raises(ValueError, match="nothing to learn from"):
        Session(path, "y")
    assert [file.name for file in tmp_path.iterdir()] == ["flat.csv"]


def test_a_session_that_cannot_go_on_leaves_its_journal(tmp_path):
    path, journal = tmp_path / "papers.csv", tmp_path / "papers-y-labels.jsonl"
    clusters()[0].to_csv(path, index=False)
    with Session(path, "y", settings=SessionSettings(prepared=prepared())) as session:
        session.answer("yes", row=1)
    before = journal.read_bytes()
    with pytest.raises(ValueError, match="no class 'perhaps'"):
        Session(path, "y", wanted="perhaps", settings=SessionSettings(prepared=prepared()))
    assert journal.read_bytes() == before


# ------------------------------------------------------------------------------------- before all rows are compared


def test_rows_are_judged_before_all_are_compared(tmp_path, monkeypatch):
    """Every mode gives rows, nothing is answered, and what was judged counts as soon as all rows are compared."""
    compared = threading.Event()

    def slowly(table, **reading):
        compared.wait()
        return prepared()

    monkeypatch.setattr("transduce.app.labelling.prepared.prepare", slowly)
    frame, truth = clusters()
    session = Session(
        frame, "relevant", classes=["yes", "no"], settings=SessionSettings(seed=1, wait=False)
    )
    for mode in ("find", "learn", "audit"):
        for _ in range(4):
            proposal = session.propose(mode)
            assert proposal.reason == ("random" if mode == "audit" else "early")
            session.answer(str(truth[proposal.row]))
            shown = view(session)
            assert json.dumps(shown, allow_nan=False)
            assert shown["preparing"] == {
                "words": "Comparing all rows: columns, 0 %.",
                "runs": True,
            }
    assert set(session.answers().values[session.state.pool].tolist()) == {-1}
    for refused in (session.freeze, lambda: session.export(tmp_path)):
        with pytest.raises(
            ValueError, match=r"There are no answers .*\. Comparing all rows: columns, 0 %\."
        ):
            refused()
    row = session.propose("find").row
    compared.set()
    assert session.preparation.join()
    assert session.propose().row == row  # it is still on the screen
    assert view(session)["preparing"] == {"words": "", "runs": False}
    session.answer(str(truth[row]))
    assert session.propose().reason == "likeliest"
    assert np.mean(session.named(session.answers().values) == truth) > 0.9
    session.freeze()


def test_early_rows_are_drawn_uniformly(monkeypatch):
    never = SimpleNamespace(model=None, error=None)
    preparing = "transduce.app.labelling.session.Preparation"
    monkeypatch.setattr(preparing, lambda make, **settings: never)
    frame, _ = clusters(8, 2)
    firsts = []
    for seed in range(400):
        session = Session(
            frame, "y", classes=["a", "b"], settings=SessionSettings(seed=seed, wait=False)
        )
        session.answer("b", row=7)
        firsts.append(session.propose("learn").row)
    counts = np.bincount(firsts, minlength=8)
    assert counts[7] == 0
    assert chisquare(counts[:7]).pvalue > 1e-3


def test_rows_that_cannot_be_compared_can_be_labelled():
    flat = pd.DataFrame({"a": [1.0] * 9})
    session = Session(flat, "y", settings=SessionSettings(wait=False))
    assert session.preparation.join()
    assert session.preparation.words.startswith(
        "The rows cannot be compared: No column besides 'y' varies"
    )
    session.answer("yes", row=session.propose("audit").row)
    shown = view(session)
    assert (shown["progress"]["labelled"], shown["preparing"]["runs"]) == (1, False)


# -------------------------------------------------------------------------------------------- goals


def test_goals_are_changed_and_kept_in_the_journal(tmp_path):
    path = tmp_path / "table.csv"
    pd.DataFrame({"size": np.random.default_rng(0).normal(size=300)}).to_csv(path, index=False)
    with Session(path, "gold", classes=["yes", "no"], wanted="yes") as session:
        session.answer("yes", row=3)
        before = session.certificate().recall
        session.set_goal("recall", 0.5)
        session.set_goal("certainty", 0.8)
        session.set_goal("wrong_share", 0.1)
        session.set_goal("confidence", 0.8)
        after = session.certificate().recall
        assert after.draws_needed < before.draws_needed
        assert (after.recall, after.certainty) == (0.5, 0.8)
        n_events = session.state.n_events
        session.set_goal("recall", 0.5)  # nothing changes
        assert session.state.n_events == n_events
    with Session(path, "gold") as again:
        wanted = {"recall": 0.5, "certainty": 0.8, "wrong_share": 0.1, "confidence": 0.8}
        assert again.goals == wanted
        again.propose("audit")
        again.set_goal("certainty", 0.9)  # nobody has judged it yet
        again.set_goal("certainty", 0.8)
        again.answer("no")
        again.undo()
        assert again.state.plan is None or again.state.plan.level == 0.8
        with pytest.raises(ValueError, match="cannot change after the first random draw"):
            again.set_goal("certainty", 0.5)
        again.set_goal("recall", 1.0)
        assert again.certificate().recall.recall == 1.0
        for name, value in (("recall", 0.0), ("confidence", 1.0), ("wrong_share", np.nan)):
            with pytest.raises(ValueError, match=name):
                again.set_goal(name, value)
        with pytest.raises(ValueError, match="goal"):
            again.set_goal("speed", 0.5)


def test_a_journal_with_a_certainty_that_was_chosen_after_looking_is_refused(tmp_path):
    path = tmp_path / "table.csv"
    pd.DataFrame({"size": np.random.default_rng(0).normal(size=300)}).to_csv(path, index=False)
    with Session(path, "gold", classes=["yes", "no"]) as session:
        session.propose("audit")
        session.answer("no")
        journal = session.journal
    line = json.dumps({"kind": "goal", "mode": "certainty", "number": 0.5})
    with journal.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(ValueError, match="first random draw"):
        Session(path, "gold")


def test_intervals_of_numbers_follow_the_level(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"size": rng.normal(size=200)})
    truth = 3.0 * frame["size"] + rng.normal(size=200)
    with Session(frame, "price", settings=SessionSettings(task="numbers")) as session:
        for row in range(40):
            session.answer(float(truth[row]), row=row)
        wide = session.answers(everywhere=True)
        session.set_goal("confidence", 0.5)
        narrow = session.answers(everywhere=True)
        rows = np.arange(40, 200)
        assert np.all((narrow.upper - narrow.lower)[rows] < (wide.upper - wide.lower)[rows])
