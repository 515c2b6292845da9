"""A corrected copy of a table: which of its rows are those of the table before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pandas as pd

from transduce.app.auditing.reading import comparable_cell, is_of_another_row
from transduce.app.page.run import GivenLabels, file_cell
from transduce.app.page.workspace import Choices
from transduce.app.report.suspects import name_row
from transduce.app.tables.formats import Table
from transduce.core.types import ColumnName, JsonObject
from transduce.core.words import counted

# How known values may have come about where values that were given on the page may join them: rows
# that somebody picked are no random sample, and these claim no more than that.
_CLAIMS_NO_CHANCE = ("unknown", "drawn", "value")


@dataclass(frozen=True)
class Adopted:
    """What a corrected copy keeps, and what to tell the person."""

    choices: Choices
    notes: list[str]


def adopt(said: Choices, given: GivenLabels | None, old: Table, new: Table) -> Adopted:
    """Return what was said of a table, as choices for its corrected copy.

    Values that were given to its rows on the page become values of the rows that are the same.
    """
    kept, notes = _with_columns(replace(said, labels=0, corrected=[], right=[]), new)
    values = {}
    if given is not None:
        values = {**given.labels, **given.since}
    n_said = len(values) + len(said.corrected)
    if n_said + len(said.right) == 0 or kept.target is None:
        return Adopted(kept, notes)
    rows = [*values, *(line["row"] for line in said.corrected), *said.right]
    places = rows_in_copy(old.frame, new.frame, rows, str(said.target))
    labels = _values_at(new, said, {places[row]: values[row] for row in values if row in places})
    corrected = [
        {**line, "row": places[line["row"]], "name": name_row(places[line["row"]], new.lines)}
        for line in said.corrected
        if line["row"] in places and _cell(new, said, places[line["row"]]) == line["was"]
    ]
    right = [places[row] for row in said.right if row in places]
    kept = replace(kept, corrected=[*labels, *corrected], right=right)
    notes += _about(n_said, len(labels) + len(corrected))
    if labels and said.way not in (None, *_CLAIMS_NO_CHANCE):
        kept = kept.changed({"way": "unknown", "column": None})
        notes.append(
            "Rows that got a value on the page were not labelled by chance alone, so how the known "
            "values came about is “I don't know” now: choose another card if that is wrong."
        )
    return Adopted(kept, notes)


def rows_in_copy(
    old: pd.DataFrame, new: pd.DataFrame, rows: Iterable[int], target: str
) -> dict[int, int]:
    """Return where rows of a table are in its corrected copy, without those that are not found.

    A row is where all its other cells are. Where that is nowhere, some of them were corrected: it
    is then where its name is, in a column that names every row, or else at its old place, if at
    least half of its cells are as before.
    """
    columns = [name for name in old.columns if str(name) != target and name in new.columns]
    before, after = (
        pd.DataFrame({name: frame[name].map(comparable_cell) for name in columns})
        for frame in (old, new)
    )
    if not columns:
        return {}
    exact = _places_by_key(_keys(after, columns))
    naming = [name for name in columns if _names_rows(before[name]) and _names_rows(after[name])]
    named = {name: dict(zip(after[name], range(len(after)), strict=True)) for name in naming}
    found: dict[int, int] = {}
    taken = set()
    corrected = []
    for row in dict.fromkeys(rows):
        same = exact.get(tuple(before.iloc[row]), [])
        if row in same:
            found[row] = row
        elif len(same) == 1 and same[0] not in taken:
            found[row] = same[0]
        else:
            corrected.append(row)
            continue
        taken.add(found[row])
    unchanged = set(_keys(before, columns))
    for row in corrected:
        by_name = [named[name].get(before[name].iloc[row]) for name in naming]
        for place in [*by_name, row]:
            if place is None or place >= len(after) or place in taken:
                continue
            is_another = tuple(after.iloc[place]) in unchanged
            if not is_another and not is_of_another_row(old, row, new.iloc[place], target):
                found[row] = place
                taken.add(place)
                break
    return found


def _keys(cells: pd.DataFrame, columns: list[ColumnName]) -> list[tuple[str, ...]]:
    return list(zip(*(cells[name] for name in columns), strict=True))


def _places_by_key(keys: list[tuple[str, ...]]) -> dict[tuple[str, ...], list[int]]:
    places: dict[tuple[str, ...], list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    return places


def _names_rows(cells: pd.Series) -> bool:
    """Whether every row has a text of its own in a column."""
    return bool(len(cells)) and cells.is_unique and not (cells == "").any()


def _with_columns(said: Choices, table: Table) -> tuple[Choices, list[str]]:
    """Return choices of columns that a table has, and which are not there any more."""
    there = {str(name) for name in table.frame.columns} | {said.added}
    named = {said.target, said.id, said.column, said.also_column, *said.besides, *said.ignore}
    named |= {*said.text, *said.number} | {group[0] for group in (*said.same, *said.apart)}
    gone = sorted(name for name in named - there if name is not None)
    if not gone:
        return said, []
    changes: JsonObject = {
        name: None
        for name in ("target", "id", "column", "also_column")
        if getattr(said, name) in gone
    }
    for name in ("ignore", "text", "number", "besides"):
        changes[name] = [column for column in getattr(said, name) if column in there]
    for name in ("same", "apart"):
        changes[name] = [group for group in getattr(said, name) if group[0] in there]
    if "target" in changes:
        changes["step"] = "table"
    missing = ", ".join(f"“{name}”" for name in gone)
    return said.changed(changes), [f"The new file has no column {missing}."]


def _cell(table: Table, said: Choices, row: int) -> str:
    """Return the cell of the target in a row; "" if the column was added on the page."""
    if said.target not in table.frame.columns:
        return ""
    return file_cell(table.frame[said.target].iloc[row])


def _values_at(table: Table, said: Choices, values: Mapping[int, object]) -> list[JsonObject]:
    """Return values of the labelling page as corrections of cells that are still empty."""
    return [
        {"row": row, "name": name_row(row, table.lines), "was": "", "now": value}
        for row, value in values.items()
        if not _cell(table, said, row)
    ]


def _about(n_said: int, n_kept: int) -> list[str]:
    """Return what became of the values that were given on the page, in a sentence."""
    if not n_said:
        return []
    values = counted(n_said, "value")
    lost = n_said - n_kept
    if not lost:
        return [f"All {values} that you gave on the page were kept: fill again to use them."]
    return [
        f"Of {values} that you gave on the page {n_kept} were kept. The other {lost} belong to "
        "rows that are no longer there, or that have a value in the new file."
    ]
