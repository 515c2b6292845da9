"""The journal: nothing is lost, nothing is half there, one process at a time."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.app.labelling.processes import Running, hold_journal
from transduce.app.labelling.journal import Event, Header, Journal, pack, unpack

HEADER = Header("a.csv", "0" * 64, 9, "y", "classes", 7, 0.95, 0.95)


def written(path, *events):
    journal = Journal(path)
    journal.begin(HEADER)
    for event in events:
        journal.append(event)
    journal.close()
    return path


def read(path):
    journal = Journal(path)
    journal.close()
    return journal


# ------------------------------------------------------------------------------------------------- exact

EVENTS = [
    Event(
        "answer", row=3, label="yes", mode="find", unlabelled=9, hits=0, time="2026-01-01T00:00:00Z"
    ),
    Event("draw", row=4, mode="audit", random=True, unlabelled=8, hits=1),
    Event("skip", row=4, mode="audit", random=True),
    Event("change", row=3, label=2.5),
    Event("undo", row=3),
    Event("class", label="größe \n\u2028 'x' <b>"),
    Event("freeze", number=0.5, data=pack(np.arange(3, dtype=np.int16))),
]


def test_what_is_written_is_read(tmp_path):
    journal = read(written(tmp_path / "j.jsonl", *EVENTS))
    assert journal.header == HEADER
    assert journal.events == EVENTS
    assert journal.note == ""


def test_every_decision_names_row_label_mode_chance_counts_table_and_seed(tmp_path):
    lines = written(tmp_path / "j.jsonl", *EVENTS).read_text(encoding="utf-8").splitlines()
    first = json.loads(lines[1])
    assert isinstance(first.pop("check"), int)
    assert first == {
        "kind": "answer", "row": 3, "label": "yes", "mode": "find", "random": False, "unlabelled": 9, "hits": 0,
        "time": "2026-01-01T00:00:00Z", "table": "0" * 16, "seed": 7, "place": 1,
    }  # fmt: skip
    assert json.loads(lines[2])["random"] is True
    assert json.loads(lines[0])["digest"] == "0" * 64


@given(
    st.lists(st.integers(-3, 30_000), max_size=40),
    st.sampled_from([np.int16, np.float64]),
)
def test_packed_arrays_come_back(values, kind):
    array = np.array(values).astype(kind)
    found = unpack(pack(array))
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


# ------------------------------------------------------------------------------------------------- laws


def test_cut_anywhere_what_was_whole_stays(tmp_path):
    """Killed at any byte: all whole lines are there, the rest is dropped with a note, and one can go on."""
    whole = written(tmp_path / "j.jsonl", *EVENTS).read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == 10]
    for cut in range(ends[0], len(whole) + 1, 7):
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(whole[:cut])
        journal = Journal(path)
        n_whole = sum(end <= cut for end in ends) - 1
        assert journal.events == EVENTS[:n_whole]
        assert bool(journal.note) == (cut not in ends)
        journal.append(Event("undo", row=1))
        journal.close()
        assert read(path).events == [*EVENTS[:n_whole], Event("undo", row=1)]


def test_a_last_line_of_rubbish_is_dropped_with_a_note(tmp_path):
    path = written(tmp_path / "j.jsonl", EVENTS[0])
    with open(path, "ab") as file:
        file.write(b"\x00\x00\x00\n")
    journal = read(path)
    assert journal.events == EVENTS[:1]
    assert "torn" in journal.note
    assert read(path).note == ""


def test_it_is_on_disk_before_append_returns(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size))
    journal = Journal(tmp_path / "j.jsonl")
    journal.begin(HEADER)
    journal.append(EVENTS[0])
    assert synced[-1] == (tmp_path / "j.jsonl").stat().st_size
    journal.close()


def test_a_full_disk_leaves_no_half_line(tmp_path, monkeypatch):
    journal = Journal(tmp_path / "j.jsonl")
    journal.begin(HEADER)
    before = (tmp_path / "j.jsonl").read_bytes()

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="The disk is full: this was not saved"):
            journal.append(EVENTS[0])
    assert (tmp_path / "j.jsonl").read_bytes() == before
    assert journal.events == []
    journal.append(EVENTS[1])
    journal.close()
    assert read(tmp_path / "j.jsonl").events == [EVENTS[1]]


# ------------------------------------------------------------------------------------------------- limits


def test_a_second_process_is_refused_and_a_killed_one_is_not_missed(tmp_path):
    path = written(tmp_path / "j.jsonl", EVENTS[0])
    holder = Running(hold_journal, path)
    try:
        assert holder.hear() == "held"
        with pytest.raises(
            BlockingIOError, match=r"j.jsonl is in use by another process: close the other"
        ):
            Journal(path)
        assert path.read_bytes().count(b"\n") == 2  # and nothing was done to it
    finally:
        holder.kill()
    assert read(path).events == EVENTS[:1]


def test_the_same_process_is_refused_too(tmp_path):
    journal = Journal(tmp_path / "j.jsonl")
    with pytest.raises(BlockingIOError):
        Journal(tmp_path / "j.jsonl")
    journal.close()


def test_in_memory():
    journal = Journal()
    journal.begin(HEADER)
    journal.append(EVENTS[0])
    assert journal.events == EVENTS[:1]


# ------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"kind": "dance"}', "no event 'dance'"),
        ("{", "line 2"),
        ('["draw"]', "line 2"),
        ("5", "line 2"),
        ('{"row": 1}', "line 2"),
    ],
)
def test_damage_in_the_middle_is_refused(tmp_path, line, words):
    path = written(tmp_path / "j.jsonl", EVENTS[0])
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([lines[0], line, lines[1]]) + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match=words):
        Journal(path)
    Journal(tmp_path / "other.jsonl").close()


def test_another_file_is_refused(tmp_path):
    path = tmp_path / "j.jsonl"
    path.write_text('{"kind": "answer"}\n{"kind": "answer"}\n', encoding="utf-8")
    with pytest.raises(ValueError, match="does not begin like a journal"):
        Journal(path)


@pytest.mark.parametrize(
    "text", ["my notes", "my notes\n", '{"kind": "answer"}\n', "", '{"kind": "sta']
)
def test_a_file_that_is_no_journal_is_not_touched(tmp_path, text):
    path = tmp_path / "notes.txt"
    path.write_text(text, encoding="utf-8")
    if text in ("", '{"kind": "sta'):  # killed before anything was saved
        assert read(path).header is None
        return
    with pytest.raises(ValueError, match="does not begin like a journal"):
        Journal(path)
    assert path.read_text(encoding="utf-8") == text


def test_a_last_line_that_is_whole_but_unknown_is_kept(tmp_path):
    """It may come from a newer version: dropping it would lose a decision."""
    path = written(tmp_path / "j.jsonl", EVENTS[0])
    with open(path, "ab") as file:
        file.write(b'{"kind": "dance", "row": 1}\n')
    before = path.read_bytes()
    with pytest.raises(ValueError, match="no event 'dance'"):
        Journal(path)
    assert path.read_bytes() == before


def test_a_disk_that_does_not_even_take_a_line_back_ends_the_journal(tmp_path, monkeypatch):
    journal = Journal(tmp_path / "j.jsonl")
    journal.begin(HEADER)

    class Broken:
        def __init__(self, file):
            self._file = file

        def __getattr__(self, name):
            return getattr(self._file, name)

        def write(self, content):
            return self._file.write(content[:9])

        def truncate(self, size):
            raise OSError(5, "Input/output error")

    journal._file = Broken(journal._file)
    with pytest.raises(OSError, match="The disk is full"):
        journal.append(EVENTS[0])
    with pytest.raises(ValueError, match="closed"):
        journal.append(EVENTS[1])
    again = read(tmp_path / "j.jsonl")
    assert again.events == []
    assert "torn" in again.note


def test_a_closed_journal_takes_nothing(tmp_path):
    journal = Journal(written(tmp_path / "j.jsonl", EVENTS[0]))
    journal.close()
    with pytest.raises(ValueError, match="closed"):
        journal.append(EVENTS[1])
