"""What the page shows, as plain data: the row, the counts, the certificates, the map and the lists."""

from __future__ import annotations

import base64
from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np

from transduce.app.labelling import sentences
from transduce.app.labelling.certificates import Certificates, intervals
from transduce.app.labelling.journal import Label
from transduce.app.labelling.session import Session
from transduce.app.labelling.state import Answers, Decision, Proposal
from transduce.app.labelling.table import readings
from transduce.core.types import AnyArray, Mask
from transduce.core.words import counted

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
LISTED = 8
FEWEST_KNOWN = 3  # values of which one can be far
NONE = 255  # of a row on the map without an answer
REASONS = {
    "likeliest": "Of {rows} this one is the most likely to be “{wanted}”.",
    "diverse": "{unknown}This row is unlike those labelled so far, and like many others.",
    "teaches": "Its label would teach most: it takes away about {share} of the uncertainty about all rows.",
    "advised": "The last fill named this row as one whose value would help most.",
    "widest": "Its interval is the widest of those compared ({size}).",
    "random": "Random draw {number:,.0f}. Judge it as it is: the certificates rest on it.",
    "early": "While all rows are being compared, rows come in a random order.",
    "undone": "You took its label back.{stays}",
    "skipped": "You skipped this random draw. It counts as a possible hit until you judge it.",
}


def view(session: Session) -> dict[str, Json]:
    """Return all that the page shows at this moment."""
    proposal, answers = session.propose(), session.answers()
    state = session.state
    unlabelled = np.ones(session.table.n_rows, dtype=bool)
    unlabelled[list(state.labelled)] = False
    certain, uncertain = _listed(session, answers, unlabelled)
    return {
        "version": state.n_events,
        "mode": state.mode,
        "classes": _classes(session, answers),
        "wanted": state.places.get(state.wanted),
        "can_want": not state.drawn,
        "proposal": None if proposal is None else proposed(session, proposal, answers),
        "progress": {
            "labelled": len(state.labels),
            "given": sum(row not in state.labels for row in state.given),
            "unlabelled": int(unlabelled.sum()),
            "draws": sum(row in state.labels for row in state.drawn),
            "decisions": len(state.decisions),
        },
        "can_undo": bool(state.undoable),
        "since": _labels_since(session),
        "certificate": certificates(session, session.certificate()),
        "certain": certain,
        "uncertain": uncertain,
        "map": on_the_map(session, answers),
        "source": answers.source,
        "preparing": preparing(session),
    }


def _labels_since(session: Session) -> str:
    """Return what becomes of labels after a complete block of random draws, where there is one; else ""."""
    state = session.state
    if state.block is None or not intervals(state).ready:
        return ""
    needed = state.block_size(session.settings.confidence)
    return sentences.about_labels_since(len(state.labelled_since(state.block)), needed)


def about(session: Session) -> dict[str, Json]:
    """Return what does not change: the table, the columns, the places on the map."""
    table, prepared = session.table, session.prepared
    rows = [] if prepared is None else prepared.map.rows.tolist()
    places = np.zeros((0, 2)) if prepared is None else prepared.map.places
    x, y = (places * 10_000).round().astype(int).T.tolist()
    return {
        **{
            "name": table.name,
            "target": table.target,
            "task": session.task,
            "n_rows": table.n_rows,
        },
        "map": {"rows": rows, "x": x, "y": y},
        "notes": list(session.notes),
        "folder": None if table.path is None else str(table.folder.resolve()),
        "columns": list(prepared.columns if prepared else ()),
    }


def question(session: Session, label: Json) -> Json:
    """Return what to ask before a typed number is saved: which of two it is, or whether it may be so far off."""
    if session.task != "numbers" or not isinstance(label, str):
        return None
    values = readings(label.strip(), session.table.decimal)
    if len(values) == 1:
        session.settings.check_number(values[0])
    known = np.array([float(str(one)) for one in session.state.labelled.values()])
    if len(values) > 1 or len(known) < FEWEST_KNOWN:
        return {"values": [*values]} if len(values) > 1 else None
    value, low, high = values[0], float(known.min()), float(known.max())
    other_size = low > 0.0 and not low <= 10.0 * value <= 100.0 * high
    far = other_size or max(low - value, value - high) > high - low
    return {"values": [*values], "low": low, "high": high} if far else None


def preparing(session: Session) -> dict[str, Json]:
    """Return how far the comparison of all rows is, in words, none once it is done, and whether it goes on."""
    words = session.preparation.words
    return {"words": words, "runs": bool(words) and session.preparation.error is None}


def _classes(session: Session, answers: Answers) -> list[Json]:
    """Return the classes with how many rows have each as a label, and as an answer."""
    if session.task == "numbers":
        return []
    count = len(session.classes)
    labelled = np.bincount(list(session.state.codes().values()), minlength=count)
    every = np.bincount(answers.values.astype(np.int64) + 1, minlength=count + 1)[
        1:
    ]  # with the labels
    return [
        {
            "name": str(name),
            "labelled": int(labelled[code]),
            "answered": int(every[code] - labelled[code]),
        }
        for code, name in enumerate(session.classes)
    ]


def proposed(session: Session, proposal: Proposal, answers: Answers) -> dict[str, Json]:
    """Return the row to judge; the answer of a random draw is not shown, so that it does not sway the person."""
    state = session.state
    shown = row_card(session, proposal.row, answers)
    n_free = state.n_pool + (proposal.row == state.pending)
    shown |= {"why": why(proposal, state.wanted, n_free), "random": proposal.random}
    if proposal.random:
        shown |= {"answer": None, "bounds": None}
    return shown


def why(proposal: Proposal, wanted: Label, n_pool: int) -> str:
    """Return why a row is shown, as a sentence."""
    unknown = f"No “{wanted}” is known yet. " if proposal.mode == "find" else ""
    stays = " It was a random draw and stays one." if proposal.random else ""
    rows, share = counted(n_pool, "unlabelled row"), sentences.rounded_down(proposal.value)
    size = f"{proposal.value:,.0f}" if proposal.value >= 1000 else f"{proposal.value:.3g}"
    known = {
        "rows": rows,
        "share": share,
        "wanted": wanted,
        "unknown": unknown,
        "stays": stays,
        "size": size,
    }
    return REASONS[proposal.reason].format(number=proposal.value, **known)


def row_card(session: Session, row: int, answers: Answers) -> dict[str, Json]:
    """Return a row with its cells, its label if it has one, and its answer."""
    state = session.state
    decision, label = state.decisions.get(row), state.label_of(row)
    bounds: Json = None
    if answers.lower is not None and answers.upper is not None:
        ends = [float(answers.lower[row]), float(answers.upper[row])]
        bounds = [*ends] if np.isfinite(ends).all() else None
    hidden = label is None and state.was_drawn(row)
    return {
        "row": row,
        "cells": [asdict(cell) for cell in session.table.cells(row)],
        "label": _json(label),
        "by": None if label is None else "person" if row in state.labels else "table",
        "decision": None if decision is None else decided(session, decision),
        "step": None if decision is None else list(state.decisions)[::-1].index(row),
        "answer": None if hidden else _json(session.named(answers.values[[row]])[0]),
        "bounds": None if hidden else bounds,
        "place": [*session.prepared.map.place(row)] if session.prepared else None,
        "why": "You chose this row.",
        "random": state.was_drawn(row),
    }


def decided(session: Session, decision: Decision) -> dict[str, Json]:
    """Return a decision for the history."""
    return asdict(decision) | {
        "title": session.table.title(decision.row, 60),
        "label": _json(decision.label),
    }


def history(session: Session, start: int = 0, count: int = 200) -> list[Json]:
    """Return some decisions, the latest first, after leaving out the latest `start`."""
    latest = list(session.state.decisions.values())[::-1]
    return [decided(session, decision) for decision in latest[start : start + count]]


def _json(value: object) -> Json:
    """Return a label as JSON has it: numbers as numbers, anything else as text, None if missing."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return None
    return float(value) if isinstance(value, float) else str(value)


def certificates(session: Session, certified: Certificates) -> dict[str, Json]:
    """Return the certificates in words and as curves."""
    recall, answers, intervals = certified.recall, certified.answers, certified.intervals
    shown: dict[str, Any] = {"recall": None, "answers": None, "no_answers": session.no_answers}
    if recall is not None:
        head, text = sentences.about_recall(recall, session.state.wanted)
        shown["recall"] = {
            "headline": head,
            "text": text,
            "reached": recall.reached,
            "goal": recall.recall,
        }
        shown["recall"] |= {
            "curve": [*map(list, certified.recall_curve)],
            "ahead": recall.draws_needed or None,
        }
        shown["estimate"], shown["hint"] = sentences.about_left(session.state)
    if answers is not None:
        head, text = sentences.about_answers(answers)
        goal = int(answers.remaining * answers.share)
        shown["answers"] = {
            "headline": head,
            "text": text,
            "reached": answers.reached,
            "goal": goal,
        }
        shown["answers"] |= {
            "curve": [*map(list, certified.answers_curve)],
            "ahead": answers.draws_needed or None,
        }
    open_ = intervals.planned > 0 and not (intervals.complete or intervals.spoilt)
    about: dict[str, Json] = {
        "text": sentences.about_intervals(intervals),
        "ready": intervals.ready,
    }
    about |= {"complete": intervals.complete, "open": open_ and intervals.drawn > 0}
    usual = session.state.block_size(session.settings.confidence)
    return {**shown, "intervals": {**asdict(intervals), **about, "usual": usual}}


def _listed(session: Session, answers: Answers, unlabelled: Mask) -> tuple[list[Json], list[Json]]:
    """Return the rows with the most, and the least, certain answers; a random draw that waits is left out."""
    known = unlabelled & np.isfinite(answers.certain)
    if session.state.pending is not None:
        known[session.state.pending] = False
    rows = np.flatnonzero(known)
    certain = answers.certain[rows]
    lists: list[list[Json]] = []
    for order in (-certain, certain):
        some = (
            np.argpartition(order, LISTED)[:LISTED] if len(rows) > LISTED else np.arange(len(rows))
        )
        chosen = rows[some[np.argsort(order[some], kind="stable")]]
        lines = zip(chosen.tolist(), session.named(answers.values[chosen]), strict=True)
        title = session.table.title
        lists.append(
            [{"row": row, "title": title(row, 60), "answer": _json(value)} for row, value in lines]
        )
    return lists[0], lists[1]


def on_the_map(session: Session, answers: Answers) -> dict[str, Json]:
    """Return the answer and whether there is a label, for each row on the map; numbers in 255 steps."""
    rows = session.prepared.map.rows if session.prepared else np.zeros(0, dtype=np.int64)
    values, low, high = answers.values[rows], 0.0, 0.0
    if session.task == "numbers":
        finite = np.isfinite(values)
        if finite.any():
            low, high = (float(q) for q in np.quantile(values[finite], [0.02, 0.98]))
        codes = np.full(len(rows), NONE, dtype=np.uint8)
        steps = (np.clip(values[finite], low, high) - low) / (high - low if high > low else 1.0)
        codes[finite] = (steps * (NONE - 1)).round()
    else:
        codes = np.where(values < 0, NONE, np.minimum(values, NONE - 1)).astype(np.uint8)
    labelled = np.isin(rows, np.fromiter(session.state.labelled, dtype=np.int64))
    return {
        "codes": _text(codes),
        "labelled": _text(labelled.astype(np.uint8)),
        "low": low,
        "high": high,
    }


def _text(values: AnyArray) -> str:
    return base64.b64encode(values.tobytes()).decode()
