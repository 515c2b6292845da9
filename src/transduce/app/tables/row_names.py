"""What messages call rows: lines of a file, rows counted from 1, or places in a part of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, replace

import numpy as np

from transduce.core.computing import setting
from transduce.core.types import AnyArray

MOST_NAMED = 5


@dataclass(frozen=True)
class RowNames:
    """What to call rows in messages: by a number after a word, or by a name of their own."""

    numbers: Sequence[int] | None = None  # of each row; None counts rows from 1
    word: str = "row"
    names: Callable[[int], str] | None = None  # gives the name of a row, if rows have names

    @classmethod
    def of_lines(cls, lines: Sequence[int] | None) -> RowNames:
        """Name rows by the lines of their file, if it has lines."""
        if lines is None:
            return cls()
        return cls(lines, "line")

    def at(self, rows: AnyArray) -> RowNames:
        """Return what to call some of these rows."""
        if self.names is not None:
            name_row = self.names
            return replace(self, names=lambda place: name_row(int(rows[place])))
        if self.numbers is None:
            return replace(self, numbers=(np.asarray(rows) + 1).tolist())
        lines = self.numbers
        return replace(self, numbers=[lines[row] for row in rows.tolist()])

    def name(self, rows: list[int]) -> str:
        """Return what to call some rows together; of very many the first."""
        word = ""
        if self.names is not None:
            names = [self.names(row) for row in sorted(rows)[:MOST_NAMED]]
        else:
            word = f"{self.word} " if len(rows) == 1 else f"{self.word}s "
            numbers = [self._number(row) for row in rows]
            names = [f"{number:,}" for number in sorted(numbers)[:MOST_NAMED]]
        separator = "; " if self.names is not None else ", "
        if len(rows) > MOST_NAMED:
            return f"{word}{separator.join(names)} and {len(rows) - MOST_NAMED:,} more"
        if len(names) == 1:
            return f"{word}{names[0]}"
        return f"{word}{separator.join(names[:-1])} and {names[-1]}"

    def _number(self, row: int) -> int:
        if self.numbers is None:
            return row + 1
        return int(self.numbers[row])


COUNTED_ROWS = RowNames()
_row_names: ContextVar[RowNames] = ContextVar("transduce_row_names", default=COUNTED_ROWS)


def naming_rows(names: RowNames) -> AbstractContextManager[None]:
    """Let messages of this block call rows by these names."""
    return setting(_row_names, names)


def current_row_names() -> RowNames:
    """Return what messages of this block call rows."""
    return _row_names.get()
