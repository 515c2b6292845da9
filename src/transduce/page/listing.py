"""The answers row by row: sorted, filtered and in pages, however many; and one row with those most like it."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import feather

from transduce.conformal.selection import pick
from transduce.core.types import AnyArray, Mask
from transduce.page.preview import Preview
from transduce.page.workspace import Choices
from transduce.report.plain import clean, finite

MOST_A_PAGE = 200
MOST_KEPT = 6  # orders that are kept
SHOWN = (
    "row",
    "status",
    "value",
    "low",
    "high",
    "value_text",
    "low_text",
    "high_text",
    "chance",
    "set",
    "first",
)


class AnswerRows:
    """The answers of a fill, with the columns of the table that tell which row is meant."""

    def __init__(self, folder: Path, preview: Preview) -> None:
        self.brief: dict[str, Any] = json.loads((folder / "brief.json").read_text("utf-8"))
        changes = folder / "changes.json"
        self.changes = json.loads(changes.read_text("utf-8")) if changes.exists() else None
        self._table = feather.read_table(folder / "answers.feather", memory_map=True)
        self._preview = preview
        names = [name for name in map(str, preview.frame.columns) if name in self.brief["context"]]
        self.context = sorted(names, key=self.brief["context"].index)
        self._orders: dict[Any, AnyArray] = {}
        self._kept: dict[str, Any] = {}

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def as_json(self) -> dict[str, Any]:
        """Return all that is shown besides the rows."""
        return {**self.brief, "context": self.context, "changes": self.changes, "n_answers": len(self)}

    @cached_property
    def rows(self) -> AnyArray:
        """The places of the answers in the table, shape (m,)."""
        return np.asarray(self._table["row"].to_numpy())

    def _column(self, name: str) -> Any:
        """Return a column of the answers, or one of the table at the same rows, as an Arrow array."""
        if name in self._table.column_names:
            return self._table[name]
        if name not in self._kept:
            column = self._preview.shown.frame[name].iloc[self.rows]
            plain = pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column)
            cells = pa.array(column if plain else column.astype("string"), from_pandas=True)
            self._kept[name] = pa.chunked_array([cells] if isinstance(cells, pa.Array) else cells.chunks)
        return self._kept[name]

    # ----------------------------------------------------------------------------------------------------- pages

    def page(self, asked: dict[str, str]) -> dict[str, Any]:
        """Return some rows, as they are asked for."""
        start, count = _whole(asked, "start", 0), min(_whole(asked, "count", 50), MOST_A_PAGE)
        sort, down = asked.get("sort", ""), asked.get("down") == "1"
        trusted, counts = self._trusted(asked)
        kept = self._found(asked.get("search", "").strip())
        if asked.get("status"):
            kept &= pc.equal(self._table["status"], asked["status"]).to_numpy()
        places = self._order(sort, down)
        places = places[:: -1 if counts and not sort else 1]  # those to be trusted most come first
        places = places[(kept & trusted)[places]]
        shown = places[start : start + count]
        return {
            "total": len(places),
            "start": start,
            "rows": self._lines(shown),
            **counts,
        }

    def _order(self, sort: str, down: bool) -> AnyArray:
        """Return the places of the answers in an order; by default the least certain come first."""
        if not sort:
            return np.arange(len(self))
        if sort not in self._table.column_names and sort not in self.context:
            raise ValueError(f"There is no column {sort!r} to sort by.")
        if (sort, down) not in self._orders:
            order = "descending" if down else "ascending"
            found = pc.sort_indices(self._column(sort), sort_keys=[("", order)])
            self._orders[sort, down] = found.to_numpy()
            while len(self._orders) > MOST_KEPT:
                del self._orders[next(iter(self._orders))]
        return self._orders[sort, down]

    def _found(self, words: str) -> Mask:
        """Return which rows have all these words in what is shown of them; a number finds that row, too."""
        found = np.ones(len(self), dtype=bool)
        for word in words.split()[:10]:
            one = np.zeros(len(self), dtype=bool)
            for name in (*self.context, "value"):
                texts = pc.cast(self._column(name), pa.string())
                one |= pc.fill_null(pc.match_substring(texts, word, ignore_case=True), False).to_numpy()
            if word.isdecimal():
                one |= self.rows == int(word) - 1
            found &= one
        return found

    def _trusted(self, asked: dict[str, str]) -> tuple[Mask, dict[str, int]]:
        """Return which rows are picked such that a bounded share is wrong, how many, and how many filled otherwise.

        What is picked is an answer of the fit that saw no calibration label; the table has those of a second fit.
        """
        if not asked.get("trust"):
            return np.ones(len(self), dtype=bool), {}
        trust, share = self.brief["trust"], float(asked["trust"])
        if trust["why_not"]:
            raise ValueError(trust["why_not"])
        if not 0.0 < share < 1.0:
            raise ValueError("The share of mistakes lies between 0 and 1.")
        number = min(max(_whole(asked, "tolerance", 0), 0), len(trust["tolerances"]) - 1)
        picked = pick(self._table[f"trust_{number}"].to_numpy(), share)
        first, value = (self._table[name].to_numpy() for name in ("first", "value"))
        tolerance = trust["tolerances"][number]
        other = first != value if tolerance is None else np.abs(first - value) > tolerance
        return picked, {"trusted": int(picked.sum()), "other": int((picked & other).sum())}

    def _lines(self, places: AnyArray) -> list[dict[str, Any]]:
        """Return answers with the cells that tell which row is meant."""
        names = [name for name in SHOWN if name in self._table.column_names]
        lines: list[dict[str, Any]] = self._table.select(names).take(pa.array(places)).to_pylist()
        for line in lines:
            line |= {name: finite(value) for name, value in line.items() if isinstance(value, float)}
            line["cells"] = self._preview.cells(line["row"], self.context)
        return lines

    # ------------------------------------------------------------------------------------------------- one row

    def row(self, row: int, choices: Choices) -> dict[str, Any]:
        """Return one row with all of its cells, and the labelled rows that are most like it."""
        place = np.flatnonzero(self.rows == row)
        if not len(place):
            raise ValueError(f"Row {row + 1} was not filled.")
        labels, table = self._preview.target(choices), self._preview.shown
        near = self._preview.neighbours(row, labels, choices)
        moments = labels.spelling.moments
        known = [labels.labels[one] if moments is None else moments.shown(labels.labels[one]) for one in near]
        left = {str(choices.target), *choices.ignore}
        columns = [name for name in table.show if name not in left]
        relevance = {one["name"]: one["relevance"] for one in self.brief["relevance"] or ()}
        columns.sort(key=lambda name: -relevance.get(name, 0.0))
        return {
            **self._lines(place[:1])[0],
            "columns": columns,
            "relevance": [relevance.get(name) for name in columns],
            "own": self._preview.cells(row, columns),
            "neighbours": [
                {
                    "row": one,
                    "label": clean(label) if isinstance(label, str) else finite(label),
                    "cells": self._preview.cells(one, columns),
                }
                for one, label in zip(near, known, strict=True)
            ],
        }


def _whole(asked: dict[str, str], name: str, usual: int) -> int:
    """Return a whole number from 0 that a request carries."""
    try:
        return max(int(asked.get(name, usual)), 0)
    except ValueError:
        raise ValueError(f"{name} is a whole number.") from None
