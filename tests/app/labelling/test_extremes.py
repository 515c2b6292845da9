"""Counts that make no sense, journals that were changed, and disks that fail, are refused in sentences."""

from __future__ import annotations

import errno
import json
import os

import numpy as np
import pytest

from tests.app.labelling.test_journal import EVENTS, read, written
from transduce.app.labelling import Audit, Draws, certify_answers, certify_recall
from transduce.app.labelling.journal import Journal


@pytest.mark.parametrize("number", [-5, 10**400, 2**63, 1.5, "x", None, True])
@pytest.mark.parametrize("place", range(3))
def test_counts_of_an_audit(number, place):
    counts = [5, 0, 100]
    counts[place] = number
    with pytest.raises(ValueError, match="must be"):
        Audit(Draws.of([]), *counts)


@pytest.mark.parametrize("share", [-0.1, 1.5, 10**400, np.nan, "x", None])
def test_shares_of_a_certificate(share):
    audit = Audit(Draws.of([]), 5, 0, 100)
    for ask in (
        lambda: certify_recall(audit, recall=share, certainty=0.9),
        lambda: certify_recall(audit, recall=0.9, certainty=share),
        lambda: certify_answers(audit, share=share, certainty=0.9),
        lambda: certify_answers(audit, share=0.1, certainty=share),
        lambda: certify_recall(share, recall=0.9, certainty=0.9),
    ):
        with pytest.raises(ValueError, match="must"):
            ask()


@pytest.mark.parametrize(
    "draws",
    [
        lambda: Draws(np.array([1]), np.array([1, 2, 3]), np.array([True, False, True])),
        lambda: Draws.of([(1, 2)]),
        lambda: Draws.of([(-1, 2, True)]),
        lambda: Draws.of([(10, -2, True)]),
        lambda: Draws.of([("a", 2, True)]),
        lambda: Draws.of([(10**400, 2, True)]),
    ],
)
def test_draws_that_make_no_sense(draws):
    with pytest.raises(ValueError, match=r"draw|Draws"):
        draws()


def test_a_line_that_is_gone_is_noticed(tmp_path):
    path = written(tmp_path / "j.jsonl", *EVENTS)
    lines = path.read_bytes().splitlines(keepends=True)
    del lines[3]
    path.write_bytes(b"".join(lines))
    with pytest.raises(
        ValueError, match="line 4: it is event 4, and 2 stand before it: lines were"
    ):
        read(path)


def test_a_line_that_was_changed_is_noticed(tmp_path):
    path = written(tmp_path / "j.jsonl", *EVENTS)
    content = path.read_text(encoding="utf-8")
    assert '"row": 3, "label": "yes"' in content
    path.write_text(
        content.replace('"row": 3, "label": "yes"', '"row": 5, "label": "yes"', 1), encoding="utf-8"
    )
    with pytest.raises(ValueError, match="line 2: it was changed after it was written"):
        read(path)


def test_journals_of_earlier_versions_are_read(tmp_path):
    path = written(tmp_path / "j.jsonl", *EVENTS)
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    for line in lines:
        del line["check"]
        line.pop("place", None)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert read(path).events == EVENTS


def test_a_disk_that_fails_is_a_sentence(tmp_path, monkeypatch):
    journal = Journal(written(tmp_path / "j.jsonl", *EVENTS))
    before = (tmp_path / "j.jsonl").read_bytes()

    def fail(handle):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=r"cannot be written \(input/output error\): this was not"):
        journal.append(EVENTS[0])
    monkeypatch.undo()
    assert (tmp_path / "j.jsonl").read_bytes() == before
    journal.close()
