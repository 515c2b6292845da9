"""A list of rows to take away, and what comes back in it: matched by row, checked for slips."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from transduce.app.auditing.drawing import MOST_CHOICES, RowsToCheck, list_to_check, write_list
from transduce.app.auditing.reading import ROW_NUMBER, comparable_cell, is_of_another_row
from transduce.app.labelling.journal import Label
from transduce.app.labelling.session import Session
from transduce.app.page.view import question
from transduce.app.report.suspects import name_row
from transduce.app.tables.features import as_texts
from transduce.app.tables.numbers import read_numbers, spelling_key
from transduce.app.tables.spellings import alike_spellings
from transduce.core.files import write_text
from transduce.core.types import ColumnName

LIST = "list.xlsx"
ABOUT = "list.json"
MOST_ROWS = 2000  # of a list
LINE = "line"  # a column with the line of the file on which a row begins, as the page calls it
PLAIN = re.compile(r"[-+−–]?[\d.,'’\s]*\d([eE][-+]?\d+)?")  # a number and nothing else
OFTEN = 1000  # how often a known class is said to occur beside one that was typed


@dataclass(frozen=True)
class TakenList:
    """A list that was taken away: which rows it has, and how they came about."""

    target: str
    kind: str  # "random" or "helpful"
    rows: list[int]

    @classmethod
    def read(cls, folder: Path) -> TakenList:
        """Return the list that was taken away last; a ValueError if there is none."""
        try:
            return cls(**json.loads((folder / ABOUT).read_text("utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise ValueError("No list was taken away from this table.") from error


def draw_rows(session: Session, number: int) -> list[int]:
    """Draw rows for a list: each is set aside until its label comes back."""
    if session.state.pending is None:
        session.plan_draws(number)
    rows = []
    for _ in range(number):
        proposal = session.propose("audit")
        if proposal is None:
            break
        session.skip()
        rows.append(proposal.row)
    return rows


def write_taken(
    folder: Path,
    frame: pd.DataFrame,
    session: Session,
    taken: TakenList,
    like: Sequence[Path],
) -> None:
    """Write a list as a workbook, whose last column is to be filled in, and which rows it has."""
    rows = np.sort(np.array(taken.rows, dtype=int))
    drawn = RowsToCheck(rows, pd.DataFrame(index=frame.index), "")
    hidden: list[ColumnName] = []
    if session.state.predictions is not None:  # nothing that gives a prediction away
        hidden = [name for name in frame.columns if name not in session.table.show]
    listed = list_to_check(frame, taken.target, drawn, hidden)
    lines = session.table.lines
    if lines is not None and LINE not in listed.columns:
        listed.insert(1, LINE, np.asarray(lines)[rows])
    classes = [str(label) for label in session.classes]
    if session.task == "numbers" or len(classes) > MOST_CHOICES:
        classes = []
    write_list(folder / LIST, listed, classes, force=True, like=like)
    write_text(folder / ABOUT, json.dumps(asdict(taken)), force=True, like=like)


@dataclass(frozen=True)
class ReturnedRow:
    """One row that came back with a value.

    Attributes
    ----------
    row : int
        Its place in the table; -1 if it names none.
    name : str
        What to call it.
    text : str
        What was written.
    value : number, class or None
        What to take; None if nothing can be.
    problem : str
        What is odd, in a sentence; "" if nothing is.
    """

    row: int
    name: str
    text: str
    value: Label
    problem: str


def review(
    frame: pd.DataFrame,
    returned: pd.DataFrame,
    taken: TakenList,
    session: Session,
    lines: Sequence[int] | None,
) -> list[ReturnedRow]:
    """Return the rows of a list that came back with a value, each with what is odd about it."""
    columns = {str(name): name for name in returned.columns}
    if ROW_NUMBER not in columns or taken.target not in columns:
        raise ValueError(
            f"This is not the list: it has no column {ROW_NUMBER!r} or no {taken.target!r}. "
            "Bring back the file that you took away."
        )
    numbers = pd.to_numeric(returned[columns[ROW_NUMBER]], errors="coerce").to_numpy(float)
    texts = as_texts(returned[columns[taken.target]])
    reader = _ValueReader.of(session, lines)
    naming = _naming_columns(frame, columns, taken.target)
    seen: set[int] = set()
    rows = []
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            continue
        row = _row_of(numbers[place], len(frame))
        problem = _odd_row(row, seen, taken, frame, returned.iloc[place])
        if not problem:
            problem = _odd_name(row, naming, returned.iloc[place], lines)
        seen.add(row)
        value, odd = reader.read(text)
        if row < 0:
            value = None
        name = "a row without a number" if row < 0 else name_row(row, lines)
        rows.append(ReturnedRow(row, name, text, value, " ".join(filter(None, [problem, odd]))))
    return rows


def _row_of(number: float, n_rows: int) -> int:
    """Return the place that a number of a row names; -1 if it names none."""
    if np.isnan(number) or number != int(number) or not 1 <= number <= n_rows:
        return -1
    return int(number) - 1


def _odd_row(
    row: int,
    seen: set[int],
    taken: TakenList,
    frame: pd.DataFrame,
    cells: pd.Series,
) -> str:
    """Return what is odd about a row of a list, besides its value."""
    if row < 0:
        return "The table has no such row."
    if row in seen:
        return "This row is in the list twice."
    if row not in taken.rows:
        return "This row was not on the list."
    if is_of_another_row(frame, row, cells, taken.target):
        return "Its other cells are those of another row."
    return ""


def _naming_columns(
    frame: pd.DataFrame, returned: Mapping[str, ColumnName], target: str
) -> dict[ColumnName, dict[str, int]]:
    """Return the columns of which every row has a cell of its own, with the row of each cell."""
    naming = {}
    for name in frame.columns:
        if str(name) == target or str(name) not in returned:
            continue
        cells = frame[name].map(comparable_cell)
        if cells.is_unique and not (cells == "").any():
            naming[name] = dict(zip(cells, range(len(cells)), strict=True))
    return naming


def _odd_name(
    row: int,
    naming: Mapping[ColumnName, Mapping[str, int]],
    cells: pd.Series,
    lines: Sequence[int] | None,
) -> str:
    """Return whether a row of a list has the name of another, as after sorting one column alone."""
    for name, rows in naming.items():
        other = rows.get(comparable_cell(cells[str(name)]), row)
        if other != row:
            return f"Its “{name}” is that of {name_row(other, lines)}."
    return ""


@dataclass(frozen=True)
class _ValueReader:
    """What reads the values of a list."""

    session: Session
    names: dict[str, Label]  # of known classes, by what their spellings share

    @classmethod
    def of(cls, session: Session, lines: Sequence[int] | None) -> _ValueReader:
        names = {spelling_key(str(label)): label for label in session.classes}
        return cls(session, names)

    def read(self, text: str) -> tuple[Label, str]:
        """Return the value that a text is, and what is odd about it."""
        if self.session.task == "numbers":
            return self._read_number(text)
        return self._read_class(text)

    def _read_number(self, text: str) -> tuple[Label, str]:
        if PLAIN.fullmatch(text.strip()) is None:
            return self._number_among_words(text)
        try:
            asked: Any = question(self.session, text)
        except ValueError:
            return self._number_among_words(text)
        if asked is None:
            return self._number(text), ""
        values = asked["values"]
        if len(values) > 1:
            return values[0], f"“{text}” may be {values[0]:g} or {values[1]:g}."
        ends = f"{asked['low']:g} to {asked['high']:g}"
        return values[0], f"{text} is far from all known values ({ends})."

    def _number(self, text: str) -> float:
        decimal = self.session.table.decimal or "point"
        return float(read_numbers([text], decimal).values[0])

    def _number_among_words(self, text: str) -> tuple[Label, str]:
        decimal = self.session.table.decimal or "point"
        value = float(read_numbers([text], decimal, anywhere=True).values[0])
        if np.isfinite(value):
            return value, f"“{text}” has more than a number: {value:g} would be taken."
        return None, f"“{text}” is not a number."

    def _read_class(self, text: str) -> tuple[Label, str]:
        place = self.names.get(spelling_key(text))
        if place is not None:
            return place, ""
        counts = {str(label): OFTEN for label in self.names.values()}
        for group in alike_spellings({**counts, text: 1}):
            meant = [name for name in group if name in counts]
            if text in group and meant:
                return self.names[spelling_key(meant[0])], f"“{text}” may mean “{meant[0]}”."
        return text, f"“{text}” is a new class."


def take_values(session: Session, rows: Sequence[ReturnedRow]) -> int:
    """Give rows the values that came back; return how many."""
    n_taken = 0
    for returned in rows:
        if returned.value is None:
            continue
        is_known = returned.value in session.classes
        if session.task == "classes" and not is_known:
            session.add_class(str(returned.value))
        session.answer(returned.value, row=returned.row)
        n_taken += 1
    return n_taken
