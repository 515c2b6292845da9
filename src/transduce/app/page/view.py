"""What the page shows, as plain data.

The row, the counts, the certificates, the map and the lists.
"""

from __future__ import annotations

import base64
from dataclasses import asdict
from typing import TypeAlias

import numpy as np

from transduce.app.labelling import sentences
from transduce.app.labelling.certificates import (
    Certificates,
    Intervals,
    ShareInterval,
    intervals,
)
from transduce.app.labelling.journal import Label
from transduce.app.labelling.samples import DRAW, Sample, about_sample
from transduce.app.labelling.session import Session
from transduce.app.labelling.state import Answers, Decision, Proposal
from transduce.app.labelling.table import readings
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.words import counted

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
LISTED = 8
FEWEST_KNOWN = 3  # values of which one can be far
NONE = 255  # of a row on the map without an answer
REASONS = {
    "likeliest": "Of {rows} this one is the most likely to be “{wanted}”.",
    "diverse": "{unknown}This row is unlike those labelled so far, and like many others.",
    "teaches": (
        "Its label would help most: it takes away about {share} of the uncertainty about all rows."
    ),
    "advised": "The last fill named this row as one whose value would help most.",
    "widest": "Its interval is the widest of those compared ({size}).",
    "random": "Random draw {number:,.0f}. Judge it as it is: what is certain rests on it.",
    "early": "While all rows are being compared, rows come in a random order.",
    "incomparable": "The rows cannot be compared, so that they come in a random order.",
    "sample": "Row {number:,.0f} of the draw. Judge it as it is: what is said of all rests on it.",
    "again": "Row {number:,.0f} of those that were judged before. Judge it as it is.",
    "undone": "You took its label back.{stays}",
    "skipped": "You skipped this random draw. It counts as a possible hit until you judge it.",
}


def view(session: Session) -> dict[str, Json]:
    """Return all that the page shows at this moment."""
    proposal = session.propose()
    answers = session.answers()
    state = session.state
    certified = session.certificate()
    unlabelled = np.ones(session.table.n_rows, dtype=bool)
    unlabelled[list(state.labelled)] = False
    certain, uncertain = _listed(session, answers, unlabelled)
    shown_proposal = None
    if proposal is not None:
        shown_proposal = proposed(session, proposal, answers)
    return {
        "version": state.n_events,
        "mode": state.mode,
        "classes": _classes(session, answers),
        "wanted": state.places.get(state.wanted),
        "can_want": not state.drawn,
        "goals": {**session.goals, "may_change_certainty": not state.saw_draws},
        "proposal": shown_proposal,
        "progress": {
            "labelled": len(state.labels),
            "given": sum(row not in state.labels for row in state.given),
            "unlabelled": int(unlabelled.sum()),
            "draws": sum(row in state.labels for row in state.drawn),
            "decisions": len(state.decisions),
        },
        "can_undo": bool(state.undoable),
        "since": _labels_since(session),
        "certificate": certificates(session, certified),
        "check": checked(session, certified),
        "certain": certain,
        "uncertain": uncertain,
        "map": on_the_map(session, answers),
        "source": answers.source,
        "preparing": preparing(session),
    }


def _labels_since(session: Session) -> str:
    """Return what becomes of labels after a complete block of random draws; "" without one."""
    state = session.state
    if state.block is None or not intervals(state).ready:
        return ""
    needed = state.block_size(session.settings.confidence)
    return sentences.about_labels_since(len(state.labelled_since(state.block)), needed)


def about(session: Session) -> dict[str, Json]:
    """Return what does not change: the table, the columns, the places on the map."""
    table = session.table
    folder = None
    if table.path is not None:
        folder = str(table.folder.resolve())
    rows: list[Json] = []
    places = np.zeros((0, 2))
    columns: list[Json] = []
    if session.prepared is not None:
        rows = session.prepared.map.rows.tolist()
        places = session.prepared.map.places
        columns = [*session.prepared.columns]
    x, y = (places * 10_000).round().astype(int).T.tolist()
    return {
        "name": table.name,
        "target": table.target,
        "task": session.task,
        "n_rows": table.n_rows,
        "map": {"rows": rows, "x": x, "y": y},
        "notes": list(session.notes),
        "folder": folder,
        "columns": columns,
    }


def question(session: Session, label: Json) -> Json:
    """Return what to ask before a typed number is saved; None if nothing.

    Which of two numbers it is, or whether it may be so far from those known.
    """
    if session.task != "numbers" or not isinstance(label, str):
        return None
    values = readings(label.strip(), session.table.decimal)
    if len(values) > 1:
        return {"values": [*values]}
    value = values[0]
    session.settings.check_number(value)
    known = np.array([float(str(number)) for number in session.state.labelled.values()])
    if len(known) < FEWEST_KNOWN:
        return None
    low = float(known.min())
    high = float(known.max())
    is_other_size = low > 0.0 and not low <= 10.0 * value <= 100.0 * high
    is_far = max(low - value, value - high) > high - low
    if is_other_size or is_far:
        return {"values": [value], "low": low, "high": high}
    return None


def preparing(session: Session) -> dict[str, Json]:
    """Return how far the comparison of all rows is, in words, and whether it goes on.

    There are no words once it is done.
    """
    words = session.preparation.words
    return {"words": words, "runs": bool(words) and session.preparation.error is None}


def _classes(session: Session, answers: Answers) -> list[Json]:
    """Return the classes with how many rows have each as a label, and as an answer."""
    if session.task == "numbers":
        return []
    count = len(session.classes)
    labelled = np.bincount(list(session.state.codes().values()), minlength=count)
    # With the labels.
    counts = np.bincount(answers.values.astype(np.int64) + 1, minlength=count + 1)[1:]
    return [
        {
            "name": str(name),
            "labelled": int(labelled[code]),
            "answered": int(counts[code] - labelled[code]),
        }
        for code, name in enumerate(session.classes)
    ]


def proposed(session: Session, proposal: Proposal, answers: Answers) -> dict[str, Json]:
    """Return the row to judge.

    The answer of a random draw is not shown, so that it does not sway the person.
    """
    state = session.state
    shown = row_card(session, proposal.row, answers)
    n_free = state.n_pool + (proposal.row == state.pending)
    shown |= {"why": why(proposal, state.wanted, n_free), "random": proposal.random}
    if proposal.random:
        shown |= {"answer": None, "bounds": None}
    return shown


def why(proposal: Proposal, wanted: Label, n_pool: int) -> str:
    """Return why a row is shown, as a sentence."""
    unknown = ""
    if proposal.mode == "find":
        unknown = f"No “{wanted}” is known yet. "
    stays = ""
    if proposal.random:
        stays = " It was a random draw and stays one."
    size = f"{proposal.value:.3g}"
    if proposal.value >= 1000:
        size = f"{proposal.value:,.0f}"
    return REASONS[proposal.reason].format(
        rows=counted(n_pool, "unlabelled row"),
        share=sentences.rounded_down(proposal.value),
        wanted=wanted,
        unknown=unknown,
        stays=stays,
        size=size,
        number=proposal.value,
    )


def row_card(session: Session, row: int, answers: Answers) -> dict[str, Json]:
    """Return a row with its cells, its label if it has one, and its answer."""
    state = session.state
    label = state.label_of(row)
    card: dict[str, Json] = {
        "row": row,
        "line": session.table.line_of(row),
        "cells": [asdict(cell) for cell in session.table.cells(row)],
        "label": _json(label),
        "by": None,
        "decision": None,
        "step": None,
        "answer": None,
        "bounds": None,
        "place": None,
        "checked": None,
        "why": "You chose this row.",
        "random": state.was_drawn(row),
    }
    if label is not None:
        card["by"] = "table"
        if row in state.labels:
            card["by"] = "person"
        if state.predictions is not None:
            card["checked"] = _compared(session, row, label)
    decision = state.decisions.get(row)
    if decision is not None:
        card["decision"] = decided(session, decision)
        card["step"] = list(state.decisions)[::-1].index(row)
    # The answer of a random draw would sway the person.
    if label is not None or not (state.was_drawn(row) or state.in_sample(row)):
        card["answer"] = _json(session.named(answers.values[[row]])[0])
        card["bounds"] = _bounds(answers, row)
    if session.prepared is not None:
        card["place"] = [*session.prepared.map.place(row)]
    return card


def _bounds(answers: Answers, row: int) -> Json:
    """Return the ends of a row's interval; None unless it has one with both ends."""
    if answers.lower is None or answers.upper is None:
        return None
    lower = float(answers.lower[row])
    upper = float(answers.upper[row])
    if not np.isfinite([lower, upper]).all():
        return None
    return [lower, upper]


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
    if isinstance(value, float):
        return float(value)
    return str(value)


def certificates(session: Session, certified: Certificates) -> dict[str, Json]:
    """Return the certificates in words and as curves."""
    shown: dict[str, Json] = {"recall": None, "answers": None, "no_answers": session.no_answers}
    recall = certified.recall
    if recall is not None:
        headline, text = sentences.about_recall(recall, session.state.wanted)
        shown["recall"] = {
            "headline": headline,
            "text": text,
            "reached": recall.reached,
            "goal": recall.recall,
            "curve": [list(point) for point in certified.recall_curve],
            "ahead": recall.draws_needed or None,
            "more": [list(point) for point in certified.ahead],
        }
        estimate, hint = sentences.about_left(session.state)
        share = sentences.about_share(certified.share, session.state.wanted)
        shown |= {"estimate": estimate, "hint": hint, "share": share}
    answers = certified.answers
    if answers is not None:
        headline, text = sentences.about_answers(answers)
        shown["answers"] = {
            "headline": headline,
            "text": text,
            "reached": answers.reached,
            "goal": int(answers.remaining * answers.share),
            "curve": [list(point) for point in certified.answers_curve],
            "ahead": answers.draws_needed or None,
        }
    shown["intervals"] = _calibration(session, certified.intervals)
    return shown


def checked(session: Session, certified: Certificates) -> Json:
    """Return what is known of predictions made elsewhere; None if none are checked.

    No prediction at a row without a label is among it.
    """
    predictions = session.state.predictions
    certificate = certified.predictions
    if predictions is None or certificate is None:
        return None
    headline, text = sentences.about_predictions(certificate, predictions.column)
    is_wrong = session.state.is_wrong(predictions)
    labelled = session.state.labelled
    wrong_rows = [row for row, label in labelled.items() if is_wrong(row, label)]
    wrong = len(wrong_rows)
    sampled = None
    if session.state.sample is not None:
        sampled = _about_sample(session, session.state.sample, wrong_rows)
    return {
        "column": predictions.column,
        "headline": headline,
        "text": text,
        "reached": certificate.reached,
        "goal": int(certificate.remaining * certificate.share),
        "curve": [list(point) for point in certified.predictions_curve],
        "ahead": certificate.draws_needed or None,
        "more": [list(point) for point in certified.ahead],
        "left": certificate.remaining,
        "sample": sampled,
        "draws": certificate.n_draws,
        "agreed": len(session.state.labelled) - wrong,
        "differed": wrong,
        "changed": session.state.n_changed,
        "shares": _named_intervals(certified.shares),
        "certainty": certificate.certainty,
        "last": _last_checked(session),
    }


def _about_sample(session: Session, sample: Sample, wrong: list[int]) -> Json:
    """Return what is known from the rows that are judged first."""
    state = session.state
    rows = np.array([*state.labelled], dtype=np.int64)
    n_open = sample.n_rows - int(np.sum(sample.mask[rows]))
    left = session.table.n_rows - len(rows)
    bound = left
    shares: list[Json] = []
    if sample.kind == DRAW and sample.mask[rows].any():
        if n_open == 0 and not state.numbers:
            of_draw = sample.share_intervals(state.labelled, session.classes, state.certainty)
            shares = _named_intervals(of_draw)
        bound = sample.wrong_at_most(rows, np.array(wrong, dtype=np.int64), state.certainty)
    sure = sentences.rounded_down(state.certainty)
    headline, text = about_sample(sample, n_open, bound, left, sure)
    return {"headline": headline, "text": text, "shares": shares}


def _named_intervals(intervals: list[tuple[Label, ShareInterval]]) -> list[Json]:
    """Return shares of classes as the page takes them."""
    return [asdict(interval) | {"label": str(label)} for label, interval in intervals]


def _last_checked(session: Session) -> Json:
    """Return the row that got a label last, and what was predicted for it; None if none did."""
    state = session.state
    if not state.undoable:
        return None
    event = state.undoable[-1][0]
    if event.kind == "skip" or event.row not in state.labels:
        return None
    return _compared(session, event.row, state.labels[event.row])


def _compared(session: Session, row: int, label: Label) -> dict[str, Json]:
    """Return the label of a row beside what was predicted for it."""
    predictions = session.state.predictions
    assert predictions is not None
    return {
        "row": row,
        "label": _json(label),
        "prediction": _json(session.state.prediction_at(row)),
        "agrees": not session.state.is_wrong(predictions)(row, label),
    }


def _calibration(session: Session, intervals: Intervals) -> dict[str, Json]:
    """Return how far the draws are that calibrate intervals."""
    is_open = intervals.drawn > 0 and not (intervals.complete or intervals.spoilt)
    return {
        **asdict(intervals),
        "text": sentences.about_intervals(intervals),
        "ready": intervals.ready,
        "complete": intervals.complete,
        "open": intervals.planned > 0 and is_open,
        "usual": session.state.block_size(session.settings.confidence),
    }


def _listed(session: Session, answers: Answers, unlabelled: Mask) -> tuple[list[Json], list[Json]]:
    """Return the rows with the most, and the least, certain answers.

    A random draw that waits is left out.
    """
    has_answer = unlabelled & np.isfinite(answers.certain)
    if session.state.pending is not None:
        has_answer[session.state.pending] = False
    rows = np.flatnonzero(has_answer)
    certain = answers.certain[rows]
    most = rows[_smallest(-certain)]
    least = rows[_smallest(certain)]
    return _lines(session, answers, most), _lines(session, answers, least)


def _smallest(values: Array) -> AnyArray:
    """Return the places of the `LISTED` smallest values, in their order."""
    places = np.arange(len(values))
    if len(values) > LISTED:
        places = np.argpartition(values, LISTED)[:LISTED]
    return places[np.argsort(values[places], kind="stable")]


def _lines(session: Session, answers: Answers, rows: AnyArray) -> list[Json]:
    """Return rows with their titles and answers."""
    lines: list[Json] = []
    for row, value in zip(rows.tolist(), session.named(answers.values[rows]), strict=True):
        title = session.table.title(row, 60)
        lines.append({"row": row, "title": title, "answer": _json(value)})
    return lines


def on_the_map(session: Session, answers: Answers) -> dict[str, Json]:
    """Return the answer at each row on the map, and whether there is a label.

    Numbers come in 255 steps.
    """
    rows = np.zeros(0, dtype=np.int64)
    if session.prepared is not None:
        rows = session.prepared.map.rows
    values = answers.values[rows]
    low = 0.0
    high = 0.0
    if session.task == "numbers":
        codes, low, high = _in_steps(values)
    else:
        codes = np.where(values < 0, NONE, np.minimum(values, NONE - 1)).astype(np.uint8)
    labelled = np.isin(rows, np.fromiter(session.state.labelled, dtype=np.int64))
    return {
        "codes": _text(codes),
        "labelled": _text(labelled.astype(np.uint8)),
        "low": low,
        "high": high,
    }


def _in_steps(values: Array) -> tuple[AnyArray, float, float]:
    """Return numbers as steps of a scale, `NONE` where there is none, and the scale's ends."""
    codes = np.full(len(values), NONE, dtype=np.uint8)
    finite = np.isfinite(values)
    if not finite.any():
        return codes, 0.0, 0.0
    low, high = (float(end) for end in np.quantile(values[finite], [0.02, 0.98]))
    extent = 1.0
    if high > low:
        extent = high - low
    steps = (np.clip(values[finite], low, high) - low) / extent
    codes[finite] = (steps * (NONE - 1)).round()
    return codes, low, high


def _text(values: AnyArray) -> str:
    return base64.b64encode(values.tobytes()).decode()
