"""The filled rows of a report, the least certain first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from transduce.core.answer import Answer
from transduce.core.types import AnyArray
from transduce.report.filled import FilledTable
from transduce.report.wording import clean, finite, plain

MOST_CONTEXT = 3  # columns of the table shown beside an answer
LONGEST = 80  # characters of a cell


def least_certain_first(answer: Answer) -> AnyArray:
    """Return the positions of the answers, the least certain first. Returns shape (m,)."""
    nothing = np.zeros(len(answer))
    keys = [np.select([answer.status == "unreached", answer.status == "rejected"], [0.0, 1.0], 2.0)]
    if answer.regions is not None:
        widths = answer.regions.measure().astype(np.float32)  # equal ones stay equal, whatever was rounded
        keys += [-widths, -_or(answer.standard_errors, nothing)]
    else:
        surest = nothing if answer.probabilities is None else answer.probabilities.max(axis=1)
        keys += [_or(answer.confidence, nothing), _or(answer.credibility, nothing), surest]
    return np.lexsort([np.nan_to_num(key.astype(float)) for key in reversed(keys)])


def _or(values: AnyArray | None, other: AnyArray) -> AnyArray:
    return other if values is None else values


def context_columns(filled: FilledTable) -> list[Any]:
    """Return the columns that tell a reader which row is meant: identifiers, then the most relevant ones."""
    described = dict(zip(filled.columns["name"], filled.columns["kind"], strict=True))
    kinds = {name: described[name] for name in filled.frame.columns if name in described}
    names = list(kinds)
    telling = [name for name in names if kinds[name] == "identifier"]
    relevant = [] if filled.relevance is None else [name for name in filled.relevance.index if name in kinds]
    usual = [name for name in [*relevant, *names] if kinds[name] in ("number", "category", "date", "text")]
    return list(dict.fromkeys([*telling, *usual]))[:MOST_CONTEXT]


def row_records(filled: FilledTable) -> list[dict[str, Any]]:
    """Return one record for each filled row, the least certain first."""
    answer, frame = filled.answer, filled.frame
    order = least_certain_first(answer)
    rows = np.asarray(answer.rows)[order]
    default = isinstance(frame.index, pd.RangeIndex) and frame.index.start == 0 and frame.index.step == 1
    names = rows + 1 if default else frame.index[rows]
    places = [list(frame.columns).index(name) for name in context_columns(filled)]
    cells = [frame.iloc[rows, place].tolist() for place in places]
    unreached = np.asarray(answer.status)[order] == "unreached"
    columns: dict[str, list[Any]] = {
        "row": plain(names),
        "position": rows.tolist(),
        "context": [[_cell(cell) for cell in line] for line in zip(*cells, strict=True)]
        or [[] for _ in rows],
        "value": [
            None if lost else plain(value)
            for value, lost in zip(answer.values[order].tolist(), unreached, strict=True)
        ],
        "status": plain(answer.status[order]),
        **(_number_columns(answer, order) if answer.regions is not None else _class_columns(filled, order)),
    }
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]


def _cell(value: Any) -> str:
    found = plain(value)
    if isinstance(found, float):
        return f"{found:.6g}"
    return "" if found is None else clean(found, LONGEST)


def _number_columns(answer: Answer, order: AnyArray) -> dict[str, list[Any]]:
    if answer.regions is None:  # pragma: no cover - the caller has looked
        raise ValueError("This answer has no regions.")
    pieces, offsets = answer.regions.to_arrays()
    ends = [[finite(low), finite(high)] for low, high in pieces.tolist()]
    return {
        "pieces": [ends[offsets[i] : offsets[i + 1]] for i in order],
        "width": [finite(width) for width in answer.regions.measure()[order].tolist()],
        "standard_error": _column(answer.standard_errors, order),
    }


def _class_columns(filled: FilledTable, order: AnyArray) -> dict[str, list[Any]]:
    answer, name = filled.answer, f"{filled.target}_probability"
    sets: list[Any] = [None] * len(order)
    if answer.label_sets is not None and answer.classes is not None:
        sets = [plain(answer.classes[mask]) for mask in answer.label_sets[order]]
    probability = None if answer.probabilities is None else answer.probabilities.max(axis=1)
    if name in filled.frame.columns:
        probability = filled.frame[name].to_numpy(dtype=float)[answer.rows]
    return {
        "set": sets,
        "confidence": _column(answer.confidence, order),
        "credibility": _column(answer.credibility, order),
        "probability": _column(probability, order),
    }


def _column(values: AnyArray | None, order: AnyArray) -> list[Any]:
    return [None] * len(order) if values is None else [finite(value) for value in values[order].tolist()]
