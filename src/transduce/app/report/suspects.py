"""Known values that are perhaps wrong, told by predictions made while each was hidden."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from transduce.app.report.jsonable import decimals_for, format_number, json_name, rough_percent
from transduce.app.report.summary_types import SuspectRecord
from transduce.app.tables.columns import Target
from transduce.core.types import AnyArray, Array

FEWEST = 20  # labels among which a suspect can be told
MOST_NAMED = 3  # in a sentence
NEARBY = 0.2  # share of the labels, those with the most similar predictions, whose errors are usual
FEWEST_NEARBY = 10
TAILS = (0.2, 0.1)  # shares of the labels, those with the largest errors, that tell how far they go
THINNEST = 0.2  # index of a tail: errors as large as in a thinner one are rare enough to be told
FALSE_DISCOVERY = 0.2  # about the share of values flagged that belong to the tail
# Classes: the probability of a wrong label, if one label in 50 is wrong, from which it is flagged.
WRONG_BEFORE = 0.02
WRONG_AFTER = 0.2


@dataclass(frozen=True, eq=False)
class Suspects:
    """Known values that their rows make improbable, the most improbable first.

    Attributes
    ----------
    rows : array of shape (k,)
        Places of the rows, as the index of the hidden labels has them.
    labels, predicted : arrays of shape (k,)
        The known value, and what was predicted while it was hidden.
    strength : array of shape (k,)
        Numbers: how many times the error is as large as usual at such predictions. Classes: the
        probability of the known class.
    have_places : bool
        Whether these rows have places in a table that the user knows.
    """

    rows: AnyArray
    labels: AnyArray
    predicted: AnyArray
    strength: Array
    have_places: bool = True

    def __len__(self) -> int:
        return len(self.rows)


def find_suspects(task: str, hidden: pd.DataFrame) -> Suspects:
    """Return the known values that are perhaps wrong.

    Parameters
    ----------
    task : str
        Whether these are numbers ("regression") or classes ("classification").
    hidden : pandas.DataFrame
        ``true`` and ``answered`` at labels that were hidden in turn; of classes also the
        ``probability_of_true`` class.
    """
    if task == "regression":
        return _suspect_numbers(hidden)
    return _suspect_classes(hidden)


def _suspect_numbers(hidden: pd.DataFrame) -> Suspects:
    """Return numbers whose errors are too large for the tail of all errors."""
    pairs = hidden[["true", "answered"]].apply(pd.to_numeric, errors="coerce").dropna()
    true = pairs["true"].to_numpy(float)
    answered = pairs["answered"].to_numpy(float)
    places = np.zeros(0, dtype=int)
    times = np.zeros(0)
    if len(pairs) >= FEWEST:
        times = times_usual(np.abs(answered - true), answered)
        places = smaller_than_chance(tail_probabilities(times), FALSE_DISCOVERY)
    return Suspects(pairs.index.to_numpy()[places], true[places], answered[places], times[places])


def times_usual(errors: Array, answered: Array) -> Array:
    """Return errors (n,) in units of the median error at the most similar predictions (n,)."""
    # Errors grow with the value in most tables: a price of a million may be off by more.
    n_near = min(max(int(NEARBY * len(errors)), FEWEST_NEARBY), len(errors))
    order = np.argsort(answered, kind="stable")
    windows = np.lib.stride_tricks.sliding_window_view(errors[order], n_near)
    medians = np.median(windows, axis=1)
    window_of = np.clip(np.arange(len(errors)) - n_near // 2, 0, len(windows) - 1)
    usual = np.empty(len(errors))
    usual[order] = medians[window_of]
    quarter = np.median(errors) / 4.0
    rounding = 1e-9 * float(np.ptp(answered))
    least = max(quarter, rounding, np.finfo(float).tiny)
    return errors / np.maximum(usual, least)


def tail_probabilities(times: Array) -> Array:
    """Return how probable an error as large as each (n,) is, by a power law for the tail.

    A power law is heavier than the tails of most errors, so that few right values are suspect; its
    index is the median of the excesses (that of Hill is their mean), which slips hardly move.
    """
    probabilities = np.ones(len(times))
    for share in TAILS:
        threshold = max(float(np.quantile(times, 1.0 - share)), 1.0)
        above = times > threshold
        excess = np.log(times[above] / threshold)
        index = THINNEST
        if len(excess):
            index = max(float(np.median(excess)) / np.log(2.0), THINNEST)
        of_tail = np.ones(len(times))
        of_tail[above] = share * np.exp(-excess / index)
        if share == TAILS[0]:
            probabilities = of_tail
        else:
            probabilities = np.maximum(probabilities, of_tail)
    return probabilities


def smaller_than_chance(probabilities: Array, share: float) -> AnyArray:
    """Return the places that the rule of Benjamini and Hochberg picks, the least probable first."""
    order = np.argsort(probabilities, kind="stable")
    allowed = share * np.arange(1, len(order) + 1) / max(len(order), 1)
    passing = np.flatnonzero(probabilities[order] <= allowed)
    if not len(passing):
        return order[:0]
    return order[: passing[-1] + 1]


def _suspect_classes(hidden: pd.DataFrame) -> Suspects:
    """Return classes that are so improbable that a wrong label is a good guess."""
    stated = np.zeros(0)
    if "probability_of_true" in hidden:
        hidden = hidden.dropna(subset=["true", "answered", "probability_of_true"])
        stated = hidden["probability_of_true"].to_numpy(float)
    places = np.zeros(0, dtype=int)
    n_classes = hidden["true"].astype(str).nunique()
    if len(stated) >= FEWEST and n_classes > 1:
        order = np.argsort(stated, kind="stable")
        places = order[wrong_probability(stated[order], n_classes) >= WRONG_AFTER]
    return Suspects(
        hidden.index.to_numpy()[places],
        hidden["true"].to_numpy()[places],
        hidden["answered"].to_numpy()[places],
        stated[places],
    )


def wrong_probability(of_true: Array, n_classes: int) -> Array:
    """Return how probable it is that a label is wrong, given its class's probability (n,).

    By Bayes' rule, if one label in 50 was replaced by another class at random.
    """
    wrong = WRONG_BEFORE / (n_classes - 1) * (1.0 - of_true)
    right = (1.0 - WRONG_BEFORE) * of_true
    return wrong / np.maximum(wrong + right, np.finfo(float).tiny)


# ---------------------------------------------------------------------------------------- in words


def name_row(row: int, lines: Sequence[int] | None) -> str:
    """Return what to call a row: the line of its file, or its place counted from 1."""
    if lines is None:
        return f"row {row + 1:,}"
    return f"line {lines[row]:,}"


def label_text(label: object, labels: Target) -> str:
    """Return a label for reading, with all its digits and its unit, or as its date."""
    if labels.task != "regression":
        return json_name(label)
    number = float(label)  # type: ignore[arg-type]
    if labels.spelling.moments is not None:
        return labels.spelling.moments.shown(number)
    return f"{number:,.10g} {labels.spelling.unit}".strip()


def _predicted_text(value: object, labels: Target) -> str:
    """Return what was predicted, with about three digits."""
    if labels.task != "regression" or labels.spelling.moments is not None:
        return label_text(value, labels)
    number = float(value)  # type: ignore[arg-type]
    return format_number(number, decimals_for(number), labels.spelling.unit)


def reasons(suspects: Suspects, labels: Target) -> list[str]:
    """Return why each value is suspect, as the end of a sentence."""
    predicted = [_predicted_text(value, labels) for value in suspects.predicted]
    if labels.task != "regression":
        return [
            f"predicted as “{value}” while it was hidden, and itself given a probability of "
            f"{rough_percent(probability)}"
            for value, probability in zip(predicted, suspects.strength, strict=True)
        ]
    return [
        f"predicted as {value} while it was hidden, {times:.0f} times as far off as usual"
        for value, times in zip(predicted, suspects.strength, strict=True)
    ]


def summarize_suspects(
    suspects: Suspects | None, labels: Target, lines: Sequence[int] | None
) -> list[SuspectRecord]:
    """Return the suspect values with their places, as a summary has them; [] if none has one."""
    if suspects is None or not suspects.have_places:
        return []
    described = zip(suspects.rows.tolist(), suspects.labels, reasons(suspects, labels), strict=True)
    return [
        {
            "position": row,
            "row": name_row(row, lines),
            "value": label_text(label, labels),
            "reason": reason,
        }
        for row, label, reason in described
    ]


def about_suspects(suspects: Suspects, labels: Target, lines: Sequence[int] | None) -> str:
    """Return which known values to check, in a sentence; "" if none is suspect."""
    if not len(suspects):
        return ""
    listed = []
    for row, label, reason in zip(
        suspects.rows.tolist(),
        suspects.labels,
        reasons(suspects, labels),
        strict=True,
    ):
        value = label_text(label, labels)
        if labels.task != "regression":
            value = f"“{value}”"
        where = ""
        if suspects.have_places:
            where = f" in {name_row(row, lines)}"
        listed.append(f"{value}{where}, {reason}")
    more = ""
    if len(listed) > MOST_NAMED:
        more = f"; and {len(listed) - MOST_NAMED:,} more"
    return f"Check whether these known values are right: {'; '.join(listed[:MOST_NAMED])}{more}."
