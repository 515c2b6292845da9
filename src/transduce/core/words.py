"""Words that users write and read: choices of options, options in messages, percentages and counts."""

from __future__ import annotations

import shlex
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from transduce.core.computing import setting

TASKS = ("auto", "regression", "classification")
GUARANTEES = ("auto", "row", "column")
SHIFTS = ("auto", "estimate", "ignore")  # what to do where labelled and unlabelled rows differ
_ON_COMMAND_LINE: ContextVar[bool] = ContextVar("on_command_line", default=False)
# Flags of the command line, where they are not the names of options.
FLAGS = {"random_state": "seed", "budget_seconds": "budget", "n_jobs": "jobs"}
FLAGS |= {"minimum": "min", "maximum": "max", "reject": "reject-share"}


def command_line() -> AbstractContextManager[None]:
    """Let messages that are made in this block name options of the command line."""
    return setting(_ON_COMMAND_LINE, True)


def on_command_line() -> bool:
    """Return whether messages are to name options of the command line."""
    return _ON_COMMAND_LINE.get()


def flag(name: str) -> str:
    """Return the flag of the command line for an option."""
    return f"--{FLAGS.get(name, name).replace('_', '-')}"


def option(name: str, value: Any = None) -> str:
    """Return a setting as the user would write it, with a value if one is given."""
    if not on_command_line():
        return name if value is None else f"{name}={value!r}"
    word = flag(name)
    if value is None:
        return word
    text = shlex.quote(str(value))
    return f"{word}={text}" if text.startswith("-") else f"{word} {text}"


def missing_option(words: list[Any]) -> str:
    """Return the setting that says which values mark empty cells."""
    if not on_command_line():
        return f"missing={words!r}"
    return " ".join(option("missing", word) for word in words)


def percent(share: float) -> str:
    """Return a share as a percentage, to as many digits as it has."""
    return f"{100 * share:.6g} %"


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun in singular or plural."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
