"""How a person says a design: its flags on the command line, and its card on the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True, kw_only=True)
class Flag:
    """A flag of the command line that says how the labels came about."""

    name: str  # with _ where the command line writes -
    help: str
    # What its value is: the name of a column, several names, nothing (a switch), a factor, one of
    # the choices, or a text.
    kind: Literal["column", "columns", "switch", "factor", "choice", "text"] = "column"
    field: str = ""  # of the design, which takes the value
    python: str = ""  # what a message calls it where Python is written, if not the plain design
    default: Any = None
    choices: tuple[str, ...] = ()
    metavar: str = ""
    says: Any = None  # the value by which the flag alone says the design; None if a field is needed
    read: Callable[[Any], Any] = _as_it_is  # makes the value of the field, or raises a ValueError
    write: Callable[[Any], Any] = _as_it_is  # makes the value of the flag


@dataclass(frozen=True, kw_only=True)
class Card:
    """An answer that the page offers to the question of how the labels came about."""

    way: str  # its name in files and addresses
    place: int  # cards are shown in this order
    title: str
    words: str
    flag: str = ""  # of the command line, which says the same; "" if none is needed
    value: Any = True  # of the flag, if the person names no column
    column: str = ""  # what the person is asked for, if it takes a column
    kinds: tuple[str, ...] = ()  # of columns that suit, the best first
    also: tuple[str, ...] = ()  # flags of columns that may have decided besides, the usual first
    # What a table must have for it, and what is said of one that has not.
    needs: Literal["", "classes", "marks", "groups", "order", "probabilities"] = ""
    unfit: str = ""
