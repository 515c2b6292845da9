"""Estimates as a person reads them: numbers with as many digits as they deserve, and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from transduce.app.estimating.answers import ALL, Answered
from transduce.app.estimating.predicted import PredictedColumn
from transduce.core.assumptions import join_assumptions
from transduce.core.words import counted, option, percent

MOST_NAMED = 5  # groups
HOW_TO_READ = {
    "exact": "“exact” intervals have at least the stated coverage for any number of labels, and "
    "come from the labels alone",
    "approximate": "“approximate” intervals have nearly the stated coverage, however wrong the "
    "predictions are",
    "none": "where it says “none”, nothing is promised",
}
EXACT_WITH_PREDICTIONS = (
    "“exact” intervals have at least the stated coverage for any number of labels, "
    "however wrong the predictions are"
)


@dataclass(frozen=True)
class Line:
    """One estimate, for reading."""

    what: str
    group: str  # "" if it is about all rows
    estimate: str
    interval: str
    kind: str
    n_labels: int
    labels_alone: str
    worth: str
    note: str


def lines_to_read(column: PredictedColumn, answered: Sequence[Answered]) -> list[Line]:
    """Return all estimates, for reading."""
    lines = []
    for answer in answered:
        is_share = answer.question.what == "share"
        asked = answer.question.in_words(column.name)
        for name, line in answer.frame.iterrows():
            write = _writer(line, is_share)
            group = "" if name == ALL else str(name)
            lines.append(
                Line(
                    what=asked,
                    group=group,
                    estimate=write(line["estimate"]),
                    interval=_interval(write, line["lower"], line["upper"]),
                    kind=line["kind"],
                    n_labels=int(line["n_labels"]),
                    labels_alone=_interval(
                        write, line["labels_alone_lower"], line["labels_alone_upper"]
                    ),
                    worth=_worth(line),
                    note=line["note"],
                )
            )
    return lines


def _writer(line: pd.Series, is_share: bool) -> Any:
    """Return what writes the numbers of a line: two digits of the interval's width are enough."""
    estimate = line["estimate"]
    if isinstance(estimate, str):
        return str  # dates, times and durations are written already
    if not isinstance(estimate, float | int):
        return lambda value: "–" if pd.isna(value) else f"{value:%Y-%m-%d}"
    width = line["upper"] - line["lower"]
    size = width if np.isfinite(width) and width > 0 else abs(estimate) / 100.0
    factor = 100.0 if is_share else 1.0
    decimals = 2
    if np.isfinite(size) and size > 0:
        decimals = int(np.clip(1 - np.floor(np.log10(factor * size)), 0, 9))

    def write(value: float) -> str:
        if not np.isfinite(value):
            return "–"
        text = f"{factor * value:,.{decimals}f}".replace("-", "−")
        return f"{text} %" if is_share else text

    return write


def _interval(write: Any, lower: Any, upper: Any) -> str:
    """Return an interval for reading."""
    if pd.isna(lower) or pd.isna(upper):
        return "–"
    is_open_below = lower in (-np.inf, np.inf)
    is_open_above = upper in (-np.inf, np.inf)
    if is_open_below and is_open_above:
        return "any number"
    if is_open_above:
        return f"at least {write(lower)}"
    if is_open_below:
        return f"at most {write(upper)}"
    return f"{write(lower).removesuffix(' %')} to {write(upper)}"


def _worth(line: pd.Series) -> str:
    if not np.isfinite(line["worth"]):
        return "–"
    return f"{line['worth']:,.0f}"


def tables_to_read(
    column: PredictedColumn, answered: Sequence[Answered], level: float
) -> dict[str, pd.DataFrame]:
    """Return a table for each question, by its title, for a terminal of 80 columns."""
    tables = {}
    for answer in answered:
        question = answer.question
        title = question.in_words(column.name)
        if question.by is not None:
            title = f"{title}, by {question.by}"
        lines = lines_to_read(column, [answer])
        table = pd.DataFrame(
            {
                "": [line.group or "all rows" for line in lines],
                "estimate": [line.estimate for line in lines],
                f"{percent(level)} interval": [line.interval for line in lines],
                "kind": [line.kind for line in lines],
                "labels": [line.n_labels for line in lines],
                "worth": [line.worth for line in lines],
            }
        )
        tables[f"{title[0].upper()}{title[1:]}"] = table
    return tables


def sentences_about(
    column: PredictedColumn,
    answered: Sequence[Answered],
    *,
    level: float,
    joint: bool,
    can_ask: bool = True,
) -> list[str]:
    """Return what the intervals mean, what they assume, and what to know of single ones.

    `can_ask` is whether the reader may ask again, with other options.
    """
    frames = [answer.frame for answer in answered]
    kinds = {kind for frame in frames for kind in frame["kind"]}
    n_lines = sum(len(frame) for frame in frames)
    sentences = [_level_sentence(level, joint, n_lines, can_ask)]
    if kinds - {"none"}:
        assumes = "It assumes" if n_lines == 1 else "They assume"
        sentences.append(f"{assumes} that {join_assumptions([column.assumption])}.")
    how_to_read = HOW_TO_READ
    if column.has_exact_shares:
        how_to_read = HOW_TO_READ | {"exact": EXACT_WITH_PREDICTIONS}
    words = "; ".join(how_to_read[kind] for kind in how_to_read if kind in kinds)
    sentences.append(f"{words[0].upper()}{words[1:]}.")
    gains = [
        line["worth"] / line["n_labels"]
        for frame in frames
        for _, line in frame.iterrows()
        if line["kind"] == "approximate" and line["n_labels"] and np.isfinite(line["worth"])
    ]
    if gains and np.median(gains) >= 1.1:
        sentences.append(
            f"Labels and predictions together are worth {np.median(gains):.1f} times the labels "
            "alone (column “worth”)."
        )
    if column.beyond:
        sentences.append(
            f"{counted(column.beyond, 'unlabelled row is', 'unlabelled rows are')} unlike every "
            "labelled one: there the estimates rest on predictions alone."
        )
    return [*sentences, *_notes(column, answered)]


def _level_sentence(level: float, joint: bool, n_lines: int, can_ask: bool) -> str:
    if n_lines == 1:
        return f"The interval contains the true value with a confidence of {percent(level)}."
    if joint:
        return (
            f"All {n_lines} intervals together contain the true values with a confidence of "
            f"{percent(level)}."
        )
    each = (
        f"Each interval by itself contains the true value with a confidence of {percent(level)}; "
        f"some of the {n_lines} may not."
    )
    if not can_ask:
        return each
    return f"{each} {option('joint', True)} makes all hold together."


def _notes(column: PredictedColumn, answered: Sequence[Answered]) -> list[str]:
    """Return the notes of single lines, each said once, with what it is about."""
    by_note: dict[str, dict[str, list[str]]] = {}
    for line in lines_to_read(column, answered):
        if line.note:
            by_what = by_note.setdefault(line.note, {})
            by_what.setdefault(line.what, []).append(line.group)
    sentences = []
    for note, by_what in by_note.items():
        places = []
        for what, groups in by_what.items():
            named = ", ".join(dict.fromkeys(filter(None, groups[:MOST_NAMED])))
            is_plain = len(answered) == 1 and named
            places.append(named if is_plain else " – ".join(filter(None, [what, named])))
        sentences.append(f"{'; '.join(places)}: {note}")
    return sentences


def first_sentence(column: PredictedColumn, answered: Sequence[Answered]) -> str:
    """Return the first estimate in a sentence; that nothing can be said, if so."""
    line = lines_to_read(column, answered)[0]
    level = percent(answered[0].level)
    subject = f"{line.what[0].upper()}{line.what[1:]}"
    rows = counted(column.n_rows, "row")
    if line.kind == "none":
        return f"{subject}: nothing can be promised. {line.note}"
    ends = line.interval
    if " to " in ends:
        ends = f"between {ends.replace(' to ', ' and ')}"
    return f"{subject} over all {rows}, filled or not: {line.estimate}, {ends} at {level}."


def plan_sentence(column: PredictedColumn, answered: Sequence[Answered]) -> str:
    """Return how many labels intervals of half the width take: of all rows, and in each group.

    "" if none is known.
    """
    of_all_rows = ""
    of_groups: dict[tuple[Any, str], list[str]] = {}
    for answer in answered:
        question = answer.question
        subject = question.in_words(column.name)
        more = labels_to_add(answer)
        if not more:
            continue
        if question.by is not None and question.what in OF_EACH_GROUP:
            of_groups.setdefault((question.by, _named_numbers(more)), []).append(subject)
        elif not of_all_rows:
            # Of a regression the first coefficient is the constant, which nobody asks for.
            name = list(more)[-1] if question.what == "regression" else next(iter(more))
            where = "" if name == ALL else f" ({name})"
            of_all_rows = (
                f"To halve the width of the interval around the {subject}{where}, label about "
                f"{counted(more[name], 'more row')}, drawn at random."
            )
    sentences = [of_all_rows] if of_all_rows else []
    for (by, numbers), whats in of_groups.items():
        sentences.append(
            f"To halve the width of each interval for the {_listed(whats)} by {by}, label about "
            f"this many more rows inside each group: {numbers}."
        )
    return " ".join(sentences)


OF_EACH_GROUP = ("mean", "total", "share", "quantile")
MOST_GROUPS_PLANNED = 6


def _listed(names: list[str]) -> str:
    """Return "one", "one and two" or "one, two and three"."""
    *others, last = names
    if not others:
        return last
    return f"{', '.join(others)} and {last}"


def _named_numbers(more: dict[Any, int]) -> str:
    """Return how many labels more each group takes, the one that takes most first."""
    order = sorted(more, key=lambda name: -more[name])
    named = [f"{more[name]:,} of “{name}”" for name in order[:MOST_GROUPS_PLANNED]]
    if len(order) > MOST_GROUPS_PLANNED:
        named.append("fewer of the others")
    return ", ".join(named)


def labels_to_add(answer: Answered) -> dict[Any, int]:
    """Return how many labels more halve the width of each line; lines without are left out."""
    more = {}
    for name, line in answer.frame.iterrows():
        if not pd.isna(line["labels_for_half"]):
            more[name] = int(line["labels_for_half"]) - int(line["n_labels"])
    return more
