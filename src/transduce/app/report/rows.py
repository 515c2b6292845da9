"""The filled rows of a report, what the answers are like as a whole, and how good they were at hidden labels."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from transduce.app.report.filled_column import FilledColumn
from transduce.app.report.plain import (
    clean,
    decimals_for,
    finite,
    name_of,
    number,
    plain,
    rough_percent,
)
from transduce.app.tables.columns import answered_probability, narrowness, widths_between
from transduce.app.tables.moments import Moments
from transduce.core.answer import Answer, Regions
from transduce.core.guarantee import Limits
from transduce.core.scaling import square_unit
from transduce.core.types import AnyArray
from transduce.core.words import counted, percent

MOST_CONTEXT = 3  # columns of the table shown beside an answer
LONGEST = 80  # characters of a cell
BARELY = 0.2  # intervals less than this much narrower than without features say little


def least_certain_first(answer: Answer) -> AnyArray:
    """Return the positions of the answers, the least certain first. Returns shape (m,)."""
    keys = [np.select([answer.status == "unreached", answer.status == "rejected"], [0.0, 1.0], 2.0)]
    if answer.regions is not None:
        widths = answer.regions.measure()
        widths = widths / square_unit(widths[np.isfinite(widths)])
        widths = widths.astype(np.float32)  # equal ones stay equal, whatever was rounded
        keys += [-widths] if answer.standard_errors is None else [-widths, -answer.standard_errors]
    else:
        # What is shown beside an answer comes first: its probability, where there is one.
        surest = answered_probability(answer)
        keys += [key for key in (surest, answer.confidence, answer.credibility) if key is not None]
    return np.lexsort([np.nan_to_num(key.astype(float)) for key in reversed(keys)])


def context_columns(filled: FilledColumn) -> list[Any]:
    """Return the columns that tell a reader which row is meant: identifiers, then the most relevant ones."""
    described = dict(zip(filled.columns["name"], filled.columns["kind"], strict=True))
    kinds = {name: described[name] for name in filled.frame.columns if name in described}
    telling = [name for name in kinds if kinds[name] == "identifier"]
    relevant = (
        []
        if filled.relevance is None
        else [name for name in filled.relevance.index if name in kinds]
    )
    usual = [
        name
        for name in [*relevant, *kinds]
        if kinds[name] in ("number", "category", "date", "text")
    ]
    return list(dict.fromkeys([*telling, *usual]))[:MOST_CONTEXT]


def row_records(filled: FilledColumn) -> list[dict[str, Any]]:
    """Return one record for each filled row, the least certain first."""
    answer, frame, regions = filled.answer, filled.frame, filled.answer.regions
    order = least_certain_first(answer)
    rows, status = np.asarray(answer.rows)[order], np.asarray(answer.status)[order]
    values = np.asarray(answer.values)[order].astype(object)
    values[status == "unreached"] = None
    names = [filled.row_names[row] for row in rows]
    places = [list(frame.columns).index(name) for name in context_columns(filled)]
    cells = [frame.iloc[rows, place].tolist() for place in places]
    columns: dict[str, list[Any]] = {
        "row": plain(names),
        "position": rows.tolist(),
        "context": [[*map(_cell, line)] for line in zip(*cells, strict=True)] or [[] for _ in rows],
        "value": plain(values),
        "status": plain(status),
        **(
            _class_columns(filled, order)
            if regions is None
            else _number_columns(answer, regions, order)
        ),
    }
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]


def _cell(value: Any) -> str:
    shown = plain(value)
    if isinstance(shown, float):
        return f"{shown:.6g}"
    return "" if shown is None else clean(shown, LONGEST)


def _number_columns(answer: Answer, regions: Regions, order: AnyArray) -> dict[str, list[Any]]:
    pieces, offsets = regions.to_arrays()
    ends = plain(pieces)
    return {
        "pieces": [ends[offsets[i] : offsets[i + 1]] for i in order],
        "width": _column(regions.measure(), order),
        "standard_error": _column(answer.standard_errors, order),
    }


def _class_columns(filled: FilledColumn, order: AnyArray) -> dict[str, list[Any]]:
    answer = filled.answer
    sets: list[Any] = [None] * len(order)
    unseen = np.zeros(len(order), dtype=bool) if answer.unseen is None else answer.unseen[order]
    if answer.label_sets is not None and answer.classes is not None:
        sets = [plain(answer.classes[mask]) for mask in answer.label_sets[order]]
    probability = None if answer.probabilities is None else answer.probabilities.max(axis=1)
    if filled.probability is not None:
        probability = filled.probability
    return {
        "set": sets,
        "unseen": plain(unseen),
        "confidence": _column(answer.confidence, order),
        "credibility": _column(answer.credibility, order),
        "probability": _column(probability, order),
    }


def _column(values: AnyArray | None, order: AnyArray) -> list[Any]:
    return [None] * len(order) if values is None else plain(values[order])


@dataclass(frozen=True)
class FilledValues:
    """What the answers are like as a whole, in words and in numbers."""

    sentences: list[str]  # what was answered
    little: str  # that intervals or sets say little, if they do
    numbers: dict[str, Any]  # as a summary has them


def values_of(filled: FilledColumn, rows: list[dict[str, Any]]) -> FilledValues:
    """Return what the answers are like as a whole."""
    if filled.task == "regression":
        values = _numbers(filled, rows)
    else:
        values = class_values(rows, filled.confidence)
    if filled.counts.sampled is None or not values.sentences:
        return values
    # Rows that the fit saw have narrower intervals than the others: what is true of them is not true of all.
    lead = (
        f"{len(rows):,} of them were drawn at random for the fit: what follows here, and the rows that are shown, "
        "are about these alone."
    )
    return replace(values, sentences=[lead, *values.sentences])


def digits_of(answers: dict[str, Any]) -> int | Moments:
    """Return how values are written: with so many decimals, or as dates."""
    return Moments(**answers["moments"]) if answers.get("moments") else answers.get("decimals", 2)


def ends_of(answers: dict[str, Any]) -> list[str]:
    """Return the smallest, the median and the largest of filled numbers, for reading."""
    unit = "" if answers["moments"] else answers["unit"]
    return [
        number(answers[name], digits_of(answers), unit)
        for name in ("smallest", "median", "largest")
    ]


def widths_of(answers: dict[str, Any]) -> str:
    """Return how wide intervals are, as a sentence."""
    width = number(answers["median_width"], answers["decimals"], answers["unit"])
    half = f"Half of them are narrower than {width}."
    return f"All intervals are {width} wide." if answers["equally_wide"] else half


def _numbers(filled: FilledColumn, rows: list[dict[str, Any]]) -> FilledValues:
    values = np.array([row["value"] for row in rows if row["value"] is not None], dtype=float)
    widths = [np.inf if row["width"] is None else row["width"] for row in rows if "width" in row]
    middle = finite(np.median(widths)) if widths else None
    ends = [(row["pieces"][0][0], row["pieces"][-1][1]) for row in rows if row.get("pieces")]
    narrower, moments, n_unbounded = (
        _narrower(filled),
        filled.labels.spelling.moments,
        ends.count((None, None)),
    )
    n_open = int(np.sum(np.isinf(widths))) - n_unbounded  # on one side, at a limit
    answers: dict[str, Any] = {
        "n_answered": len(values),
        "smallest": float(values.min()) if len(values) else None,
        "median": float(np.median(values)) if len(values) else None,
        "largest": float(values.max()) if len(values) else None,
        "median_width": middle,
        "n_unbounded": n_unbounded,
        "n_open": n_open,
        "equally_wide": bool(middle and np.ptp(widths) <= 1e-9 * middle),
        "decimals": decimals_for(middle or values.std() or values.mean()) if len(values) else 2,
        "narrower": narrower,
        "unit": filled.labels.spelling.unit,  # of widths, and of numbers that do not stand for dates
        "moments": None if moments is None else asdict(moments),
    }
    smallest, half, largest = ends_of(answers)
    said = [f"The answers lie between {smallest} and {largest}; half of them are below {half}."]
    if middle is not None:
        said.append(
            f"Each comes with an interval at {percent(filled.confidence)}. {widths_of(answers)}"
        )
    elif n_unbounded:
        said.append(
            f"At {percent(filled.confidence)} their intervals are unbounded: any number is possible."
        )
    said += (
        [f"{counted(n_open, 'interval is', 'intervals are')} open at a limit."] if n_open else []
    )
    little = (
        " But the intervals are unbounded and say nothing."
        if n_unbounded and middle is None
        else ""
    )
    if not little and narrower is not None and narrower < BARELY:
        little = " But the intervals are hardly narrower than without any column: they say little."
    return FilledValues(said if len(values) else [], little, answers)


def _narrower(filled: FilledColumn) -> float | None:
    """Return how much narrower the median interval is than one made without features; None if that is not known."""
    labels = pd.to_numeric(filled.out_of_fold["true"], errors="coerce").dropna().to_numpy(float)
    if filled.answer.regions is None or not len(filled.answer) or len(labels) < 2:
        return None
    widths = widths_between(filled.answer.regions, filled.guarantee.limits or Limits())
    return float(np.median(narrowness(widths, labels, filled.confidence)))


def class_values(rows: list[dict[str, Any]], confidence: float) -> FilledValues:
    """Return what filled classes and their sets are like as a whole."""
    known = all(row.get("set") is not None for row in rows)
    sizes = [len(row["set"]) + row["unseen"] if known else 1 for row in rows]
    tallies: dict[
        str, dict[str, int]
    ] = {}  # of each class, answers with one and with several possible classes
    for row, size in zip(rows, sizes, strict=True):
        name = "(no answer)" if row["value"] is None else name_of(row["value"])
        tallies.setdefault(name, {"one": 0, "several": 0})["one" if size == 1 else "several"] += 1
    ordered = sorted(tallies.items(), key=lambda entry: (-sum(entry[1].values()), entry[0]))
    by_class = [{"name": name, **tally} for name, tally in ordered]
    unknown: dict[str, Any] = {"n_one": None, "n_several": None, "right_if_one": None}
    if not known:
        return FilledValues([], "", unknown | {"by_class": by_class})
    n_one, n_several, little = sizes.count(1), len(sizes) - sizes.count(1), ""
    where = counted(n_one, "row") + (f", several at {n_several:,}" if n_several else "")
    if n_one < BARELY * len(rows):
        few = f"only {counted(n_one, 'set rules', 'sets rule')}" if n_one else "no set rules"
        little = f" But {few} out all classes except one: they say little."
    said = [f"At {percent(confidence)} the set holds one class at {where}."]
    chances = [row.get("probability") for row, size in zip(rows, sizes, strict=True) if size == 1]
    known_chances = [chance for chance in chances if chance is not None]
    right = float(np.mean(known_chances)) if known_chances else None
    # Sets with all classes never miss, so that misses crowd into those with one class.
    if n_one and right is not None:
        said.append(f"Where it holds one, about {rough_percent(right)} are right (estimated).")
    elif n_one:
        said.append(f"That does not mean that {percent(confidence)} of those are right.")
    counts: dict[str, Any] = {"n_one": n_one, "n_several": n_several, "right_if_one": right}
    return FilledValues(said, little, counts | {"by_class": by_class})
