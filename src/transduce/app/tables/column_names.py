"""Whether the columns that are named are in a table, each once, and which may be meant."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable

import pandas as pd

from transduce.app.tables.nested import refuse_objects
from transduce.core.types import ColumnName


def check_once(names: Iterable[ColumnName], where: object) -> None:
    """Raise a ValueError unless the columns of a table have names of their own."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(
            f"{where} has two columns called {twice[0]!r}: give each a name of its own."
        )


def check_columns(frame: pd.DataFrame, wanted: list[ColumnName]) -> None:
    """Raise a ValueError, with the nearest names, unless all these columns are there, each once."""
    check_once(frame.columns, "The table")
    for name in wanted:
        if name not in frame.columns:
            refuse_objects(frame.columns, [name])
            if f"{name} (2)" in frame.columns:
                raise ValueError(
                    f"Several columns of the table are called {name!r}: from left to right they "
                    f"are {f'{name} (1)'!r}, {f'{name} (2)'!r} and so on; name the one you mean."
                )
            raise ValueError(f"The table has no column {name!r}. {hint_at_columns(frame, name)}")


def hint_at_columns(frame: pd.DataFrame, name: ColumnName) -> str:
    """Return the columns that may be meant by a name, or the first of all."""
    names = {str(column).strip().casefold(): str(column) for column in frame.columns}
    word = str(name).strip().casefold()
    close = [word]
    if word not in names:  # of those below an object or a group of columns, one has this name
        close = [key for key in names if key.endswith((f".{word}", f" {word}"))][:3]
    if not close:
        close = difflib.get_close_matches(word, names, n=3, cutoff=0.6)
    if close:
        return f"Did you mean {' or '.join(repr(names[key]) for key in close)}?"
    if not names:
        return "It has no columns."
    first = [repr(str(column)) for column in frame.columns[:6]]
    if frame.shape[1] > len(first):
        return f"It has {', '.join(first)} and others."
    return f"It has {', '.join(first)}."
