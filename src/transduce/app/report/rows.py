"""The filled rows of a report, and what the predictions are like as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

import numpy as np
import pandas as pd

from transduce.app.report.filled_column import FilledColumn
from transduce.app.report.jsonable import (
    decimals_for,
    escape_text,
    finite_or_none,
    format_number,
    json_name,
    rough_percent,
    to_json,
)
from transduce.app.report.summary_types import (
    ClassAnswers,
    ClassTally,
    NumberAnswers,
    RowLevel,
    RowRecord,
)
from transduce.app.tables.moments import Moments
from transduce.app.tables.new_columns import answered_probability, width_reduction, widths_between
from transduce.core.answer import Answer, Regions
from transduce.core.findings import Limits
from transduce.core.scaling import square_unit
from transduce.core.types import AnyArray, Array, ColumnName, Mask
from transduce.core.words import counted, percent

MOST_CONTEXT = 3  # columns of the table shown beside a prediction
LONGEST_CELL = 80  # characters
BARELY = 0.2  # intervals whose width is reduced by less than this share say little
CONTEXT_KINDS = ("number", "category", "date", "text")  # columns that may tell rows apart


def least_certain_first(answer: Answer) -> AnyArray:
    """Return the positions of the predictions, the least certain first. Returns shape (m,)."""
    lost_first = np.select(
        [answer.status == "unreached", answer.status == "rejected"],
        [0.0, 1.0],
        2.0,
    )
    keys: list[AnyArray | None] = [lost_first]
    if answer.regions is not None:
        widths = answer.regions.measure()
        widths = widths / square_unit(widths[np.isfinite(widths)])
        keys.append(-widths.astype(np.float32))  # equal ones stay equal, whatever was rounded
        if answer.standard_errors is not None:
            keys.append(-answer.standard_errors)
    else:
        # What is shown beside a prediction comes first: its probability, where there is one.
        keys += [answered_probability(answer), answer.confidence, answer.credibility]
    known = [np.nan_to_num(key.astype(float)) for key in keys if key is not None]
    return np.lexsort(known[::-1])


def context_columns(filled: FilledColumn) -> list[ColumnName]:
    """Return columns that tell which row is meant: identifiers, then the most relevant ones."""
    described = dict(zip(filled.columns["name"], filled.columns["kind"], strict=True))
    kinds = {name: described[name] for name in filled.frame.columns if name in described}
    identifiers = [name for name in kinds if kinds[name] == "identifier"]
    relevant: list[ColumnName] = []
    if filled.relevance is not None:
        relevant = [name for name in filled.relevance.index if name in kinds]
    usual = [name for name in [*relevant, *kinds] if kinds[name] in CONTEXT_KINDS]
    return list(dict.fromkeys([*identifiers, *usual]))[:MOST_CONTEXT]


def row_records(filled: FilledColumn) -> list[RowRecord]:
    """Return one record for each filled row, the least certain first."""
    answer = filled.answer
    order = least_certain_first(answer)
    rows = np.asarray(answer.rows)[order]
    status = np.asarray(answer.status)[order]
    values = np.asarray(answer.values)[order].astype(object)
    values[status == "unreached"] = None
    columns: dict[str, list[Any]] = {
        "row": to_json([filled.row_names[row] for row in rows]),
        "position": rows.tolist(),
        "context": _context_cells(filled, rows),
        "value": to_json(values),
        "status": to_json(status),
    }
    columns["levels"] = _level_records(answer, order)
    if answer.regions is None:
        columns |= _class_columns(filled, order)
    else:
        columns |= _number_columns(answer, answer.regions, order)
    lines = zip(*columns.values(), strict=True)
    return [cast(RowRecord, dict(zip(columns, line, strict=True))) for line in lines]


def _context_cells(filled: FilledColumn, rows: AnyArray) -> list[list[str]]:
    """Return the cells of some columns at each row."""
    places = [list(filled.frame.columns).index(name) for name in context_columns(filled)]
    if not places:
        return [[] for _ in rows]
    cells = [filled.frame.iloc[rows, place].tolist() for place in places]
    return [[_cell_text(cell) for cell in line] for line in zip(*cells, strict=True)]


def _cell_text(value: object) -> str:
    """Return a cell for reading."""
    shown = to_json(value)
    if shown is None:
        return ""
    if isinstance(shown, float):
        return f"{shown:.6g}"
    return escape_text(shown, LONGEST_CELL)


def _level_records(answer: Answer, order: AnyArray) -> list[list[RowLevel]]:
    """Return the interval or set of each row at each further level."""
    records: list[list[RowLevel]] = [[] for _ in order]
    for other in answer.further:
        columns: dict[str, list[Any]] = {"confidence": [other.level] * len(order)}
        if other.regions is not None:
            columns |= _region_columns(other.regions, order)
        elif other.label_sets is not None and answer.classes is not None:
            columns |= _set_columns(answer.classes, other.label_sets, other.unseen, order)
        for record, line in zip(records, zip(*columns.values(), strict=True), strict=True):
            record.append(cast(RowLevel, dict(zip(columns, line, strict=True))))
    return records


def _region_columns(regions: Regions, order: AnyArray) -> dict[str, list[Any]]:
    """Return the pieces of regions, and how wide they are."""
    pieces, offsets = regions.to_arrays()
    ends = to_json(pieces)
    return {
        "pieces": [ends[offsets[i] : offsets[i + 1]] for i in order],
        "width": _in_order(regions.measure(), order),
    }


def _set_columns(
    classes: AnyArray, label_sets: Mask, unseen: Mask | None, order: AnyArray
) -> dict[str, list[Any]]:
    """Return the classes in sets, and whether one that no label shows is in them."""
    holds_unseen = [False] * len(order)
    if unseen is not None:
        holds_unseen = to_json(unseen[order])
    return {"set": [to_json(classes[mask]) for mask in label_sets[order]], "unseen": holds_unseen}


def _number_columns(answer: Answer, regions: Regions, order: AnyArray) -> dict[str, list[Any]]:
    """Return what a report shows of filled numbers: intervals, their widths, standard errors."""
    return {
        **_region_columns(regions, order),
        "standard_error": _in_order(answer.standard_errors, order),
    }


def _class_columns(filled: FilledColumn, order: AnyArray) -> dict[str, list[Any]]:
    """Return what a report shows of filled classes: sets, confidence, probability."""
    answer = filled.answer
    sets: dict[str, list[Any]] = {"set": [None] * len(order), "unseen": [False] * len(order)}
    if answer.label_sets is not None and answer.classes is not None:
        sets = _set_columns(answer.classes, answer.label_sets, answer.unseen, order)
    probability = filled.probability
    if probability is None and answer.probabilities is not None:
        probability = answer.probabilities.max(axis=1)
    return {
        **sets,
        "confidence": _in_order(answer.confidence, order),
        "credibility": _in_order(answer.credibility, order),
        "probability": _in_order(probability, order),
    }


def _in_order(values: AnyArray | None, order: AnyArray) -> list[Any]:
    """Return values in an order, for JSON; None at every row if there are none."""
    if values is None:
        return [None] * len(order)
    return list(to_json(values[order]))


# ----------------------------------------------------------------------- the predictions as a whole


@dataclass(frozen=True)
class FilledValues:
    """What the predictions are like as a whole, in words and in numbers."""

    sentences: list[str]  # what was filled in
    little: str  # that intervals or sets say little, if they do
    numbers: NumberAnswers | ClassAnswers  # as a summary has them


def describe_values(filled: FilledColumn, rows: Sequence[RowRecord]) -> FilledValues:
    """Return what the predictions are like as a whole."""
    if filled.task == "regression":
        values = _describe_numbers(filled, rows)
    else:
        claims = filled.guarantee.kind != "none"
        values = describe_classes(rows, filled.confidence, claims=claims)
    if filled.counts.sampled is None or not values.sentences:
        return values
    # Rows that the fit saw have narrower intervals than the others: what is true of them is not
    # true of all.
    lead = (
        f"{len(rows):,} of them were drawn at random for the fit: what follows here, and the rows "
        "that are shown, are about these alone."
    )
    return replace(values, sentences=[lead, *values.sentences])


def digits_of(answers: Any) -> int | Moments:
    """Return how values are written: with so many decimals, or as dates."""
    if answers.get("moments"):
        return Moments(**answers["moments"])
    return int(answers.get("decimals", 2))


def format_ends(answers: NumberAnswers) -> list[str]:
    """Return the smallest, the median and the largest of filled numbers, for reading."""
    unit = answers["unit"]
    if answers["moments"]:
        unit = ""
    digits = digits_of(answers)
    ends = (answers["smallest"], answers["median"], answers["largest"])
    return [format_number(value, digits, unit) for value in ends]


def describe_widths(answers: NumberAnswers) -> str:
    """Return how wide intervals are, as a sentence."""
    width = format_number(answers["median_width"], answers["decimals"], answers["unit"])
    if answers["equally_wide"]:
        return f"All intervals are {width} wide."
    return f"Half of them are narrower than {width}."


def _describe_numbers(filled: FilledColumn, rows: Sequence[RowRecord]) -> FilledValues:
    """Return what filled numbers and their intervals are like as a whole."""
    answers = _measure_numbers(filled, rows)
    if not answers["n_answered"]:
        return FilledValues([], _say_little(answers), answers)
    smallest, half, largest = format_ends(answers)
    level = percent(filled.confidence)
    sentences = [
        f"The predictions lie between {smallest} and {largest}; half of them are below {half}."
    ]
    if answers["median_width"] is not None:
        sentences.append(f"Each comes with an interval at {level}. {describe_widths(answers)}")
    elif answers["n_unbounded"]:
        sentences.append(f"At {level} their intervals are unbounded: any number is possible.")
    if answers["n_open"]:
        n_open = counted(answers["n_open"], "interval is", "intervals are")
        sentences.append(f"{n_open} open at a limit.")
    return FilledValues(sentences, _say_little(answers), answers)


def _say_little(answers: NumberAnswers) -> str:
    """Return that intervals say little, if they do."""
    reduction = answers["width_reduction"]
    if answers["n_unbounded"] and answers["median_width"] is None:
        return " But the intervals are unbounded and say nothing."
    if reduction is not None and reduction < BARELY:
        return " But the intervals are hardly narrower than without any column: they say little."
    return ""


def _measure_numbers(filled: FilledColumn, rows: Sequence[RowRecord]) -> NumberAnswers:
    """Return the numbers that say what filled numbers are like."""
    values = np.array([row["value"] for row in rows if row["value"] is not None], dtype=float)
    widths = _widths(rows)
    median_width = None
    if len(widths):
        median_width = finite_or_none(np.median(widths))
    n_unbounded = sum(_is_unbounded(row) for row in rows)
    moments = filled.labels.spelling.moments
    answers: NumberAnswers = {
        "n_answered": len(values),
        "smallest": None,
        "median": None,
        "largest": None,
        "median_width": median_width,
        "n_unbounded": n_unbounded,
        "n_open": int(np.sum(np.isinf(widths))) - n_unbounded,
        "equally_wide": bool(median_width and np.ptp(widths) <= 1e-9 * median_width),
        "decimals": 2,
        "width_reduction": _median_reduction(filled),
        "unit": filled.labels.spelling.unit,
        "moments": None,
    }
    if moments is not None:
        answers["moments"] = asdict(moments)
    if len(values):
        answers["smallest"] = float(values.min())
        answers["median"] = float(np.median(values))
        answers["largest"] = float(values.max())
        answers["decimals"] = decimals_for(median_width or values.std() or values.mean())
    return answers


def _widths(rows: Sequence[RowRecord]) -> Array:
    """Return the widths of the intervals; infinite ones have none in a record."""
    widths = [row["width"] for row in rows if "width" in row]
    return np.array([np.inf if width is None else width for width in widths], dtype=float)


def _is_unbounded(row: RowRecord) -> bool:
    """Return whether any number is possible at a row."""
    pieces = row.get("pieces")
    return bool(pieces) and pieces[0][0] is None and pieces[-1][1] is None  # type: ignore[index]


def _median_reduction(filled: FilledColumn) -> float | None:
    """Return by which share features narrow the median interval; None if that is not known."""
    labels = pd.to_numeric(filled.out_of_fold["true"], errors="coerce").dropna().to_numpy(float)
    if filled.answer.regions is None or not len(filled.answer) or len(labels) < 2:
        return None
    widths = widths_between(filled.answer.regions, filled.guarantee.limits or Limits())
    return float(np.median(width_reduction(widths, labels, filled.confidence)))


def describe_classes(
    rows: Sequence[RowRecord], confidence: float, *, claims: bool = True
) -> FilledValues:
    """Return what filled classes and their sets are like as a whole.

    Where nothing can be claimed, no share of them is called right.
    """
    if any(row.get("set") is None for row in rows):
        unknown: ClassAnswers = {
            "n_one": None,
            "n_several": None,
            "right_if_one": None,
            "by_class": _tally_classes(rows, [1] * len(rows)),
        }
        return FilledValues([], "", unknown)
    sizes = [len(row["set"] or ()) + row["unseen"] for row in rows]
    n_one = sizes.count(1)
    right_if_one = _probability_if_one(rows, sizes)
    answers: ClassAnswers = {
        "n_one": n_one,
        "n_several": len(sizes) - n_one,
        "right_if_one": right_if_one,
        "by_class": _tally_classes(rows, sizes),
    }
    little = ""
    if n_one < BARELY * len(rows):
        few = "no set rules"
        if n_one:
            few = f"only {counted(n_one, 'set rules', 'sets rule')}"
        little = f" But {few} out all classes except one: they say little."
    where = counted(n_one, "row")
    if len(sizes) > n_one:
        where = f"{where}, several at {len(sizes) - n_one:,}"
    sentences = [f"At {percent(confidence)} the set holds one class at {where}."]
    # Sets with all classes never miss, so that misses crowd into those with one class.
    if n_one and right_if_one is not None and claims:
        right = rough_percent(right_if_one)
        sentences.append(f"Where it holds one, about {right} are right (estimated).")
    elif n_one:
        sentences.append(f"That does not mean that {percent(confidence)} of those are right.")
    return FilledValues(sentences, little, answers)


def _tally_classes(rows: Sequence[RowRecord], sizes: Sequence[int]) -> list[ClassTally]:
    """Return how often each class was answered, the most frequent first."""
    tallies: dict[str, ClassTally] = {}
    for row, size in zip(rows, sizes, strict=True):
        name = "(no answer)"
        if row["value"] is not None:
            name = json_name(row["value"])
        tally = tallies.setdefault(name, {"name": name, "one": 0, "several": 0})
        if size == 1:
            tally["one"] += 1
        else:
            tally["several"] += 1
    return sorted(
        tallies.values(), key=lambda tally: (-tally["one"] - tally["several"], tally["name"])
    )


def _probability_if_one(rows: Sequence[RowRecord], sizes: Sequence[int]) -> float | None:
    """Return the mean probability of classes that are the only possible one; None if unknown."""
    pairs = zip(rows, sizes, strict=True)
    probabilities = [row.get("probability") for row, size in pairs if size == 1]
    known = [probability for probability in probabilities if probability is not None]
    if not known:
        return None
    return float(np.mean(known))
