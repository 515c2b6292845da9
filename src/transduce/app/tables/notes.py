"""`Note`: a sentence that the user should read, what it is about, and which columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from transduce.core.types import ColumnName


class About(Enum):
    """What a note is about."""

    FILE = "how the file was read"
    LABELS = "how the labels were read"
    DESIGN = "how the labels came about"
    COLUMNS = "how other columns were read, or why they were left out"
    PREDICTIONS = "predictions made elsewhere"
    METHODS = "which methods and labels were used"
    ROWS = "which rows took part"
    ANSWERS = "the filled values"
    FAILURE = "what could not be computed"


@dataclass(frozen=True)
class Note:
    """A sentence that the user should read."""

    about: About
    text: str
    columns: tuple[ColumnName, ...] = ()  # those that it is about, if it is about some

    def __str__(self) -> str:
        return self.text


def notes_about(about: About, texts: Iterable[str], *columns: ColumnName) -> list[Note]:
    """Return sentences as notes of one kind."""
    return [Note(about, text, columns) for text in texts]
