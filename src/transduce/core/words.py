"""Words that users write and read.

These are choices of options, options in messages, percentages and counts.
"""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from transduce.core.computing import setting

TASKS = ("auto", "regression", "classification")
GUARANTEES = ("auto", "row", "column")
SHIFTS = ("auto", "estimate", "ignore")  # what to do where labelled and unlabelled rows differ
# Flags of the command line, where they are not the names of options.
FLAGS = {"random_state": "seed", "budget_seconds": "budget", "n_jobs": "jobs"}
FLAGS |= {"minimum": "min", "maximum": "max", "reject": "reject-share"}
MODIFIERS = ("within", "order", "sensitivity")  # of how the labels came about
# How the labels came about is one option in Python, and a flag for each way elsewhere: each design
# brings its own.
_IN_PYTHON: dict[str, str] = {}


def spell_in_python(flag: str, spelling: str) -> None:
    """Let messages in Python call a flag of the command line by what says the same.

    The flag itself is no option in Python.
    """
    _IN_PYTHON[flag] = spelling


class OptionError(ValueError):
    """Options are wrong, or do not go together.

    On the command line that is bad usage, not bad data.
    """


Spelling = Callable[[str, Any], str]  # of an option and its value, or None


def in_python(name: str, value: object) -> str:
    """Return an option as it is written in Python."""
    if name in _IN_PYTHON:
        spelled = _IN_PYTHON[name]
        return spelled if value is None else spelled.replace("...", repr(value))
    if name in MODIFIERS and value is not None:
        return f"labels=Chance({name}={value!r})"
    if value is None:
        return name
    return f"{name}={value!r}"


def flag(name: str) -> str:
    """Return the flag of the command line for an option."""
    return f"--{FLAGS.get(name, name).replace('_', '-')}"


def in_shell(name: str, value: object) -> str:
    """Return an option as it is written on the command line, a list as one flag for each."""
    if isinstance(value, list):
        return " ".join(in_shell(name, item) for item in value)
    if value is None or value is True:
        return flag(name)
    text = shlex.quote(str(value))
    # Apart from the sentence around it.
    text = f"'{text}'" if text.endswith((".", ",", ":")) else text
    if text.startswith("-"):
        return f"{flag(name)}={text}"
    return f"{flag(name)} {text}"


_SPELLING: ContextVar[Spelling] = ContextVar("spelling", default=in_python)


def options_spelled(spelling: Spelling) -> AbstractContextManager[None]:
    """Let messages that are made in this block name options in one way."""
    return setting(_SPELLING, spelling)


def option(name: str, value: object = None) -> str:
    """Return an option as the user would set it where the message is read.

    It is shown with a value if one is given.
    """
    return _SPELLING.get()(name, value)


def on_command_line() -> bool:
    """Return whether messages are read on the command line."""
    return _SPELLING.get() is in_shell


def as_csv(texts: Iterable[str]) -> str:
    """Return texts as one line of CSV, quoted where they must be.

    >>> as_csv(["sex", "male", "m, or M"])
    'sex,male,"m, or M"'
    """
    buffer = io.StringIO()
    # Line ends within texts are quoted only if they are among those of the lines.
    csv.writer(buffer, lineterminator="\r\n").writerow(texts)
    return buffer.getvalue().removesuffix("\r\n")


LONGEST_SHOWN = 60  # characters of a name, label or cell in a message
LONGEST_MESSAGE = 4000  # characters of a message of many parts


def shortened(text: str, most: int = LONGEST_SHOWN) -> str:
    """Return a text that is short enough to be shown, its end replaced by "…" where it is not.

    >>> shortened("a label", 5), shortened("a label")
    ('a la…', 'a label')
    """
    if len(text) <= most:
        return text
    return f"{text[: most - 1]}…"


def quoted(value: object, most: int = LONGEST_SHOWN) -> str:
    """Return a name, label or cell as a message shows it.

    It is written as Python writes it, in one line of at most so many characters.

    >>> print(quoted("a" * 1000, 10), quoted(2.5))
    'aaaaaaaaa…' 2.5
    """
    if isinstance(value, str):
        return repr(shortened(str(value), most))
    if isinstance(value, int) and value.bit_length() > 4 * most:
        return f"a whole number of {value.bit_length():,} bits"
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        return quoted(value.item(), most)  # a number of numpy, without the name of its type
    return shortened(" ".join(repr(value).split()), most)


def in_a_sentence(error: BaseException) -> str:
    """Return the first line of an error's message, or its name if it has none."""
    first = next(iter(str(error).strip().splitlines()), "")
    return shortened(first, LONGEST_MESSAGE) or type(error).__name__


def percent(share: float) -> str:
    """Return a share as a percentage, to as many digits as it has."""
    return f"{100 * share:.6g} %"


def listed_numbers(numbers: Sequence[int], most: int = 5) -> str:
    """Return numbers as they stand in a sentence, the first few of many.

    >>> listed_numbers([3, 18, 35]), listed_numbers([1, 2, 3, 4], most=2)
    ('3, 18 and 35', '1, 2 and 2 others')
    """
    first = [f"{number:,}" for number in numbers[:most]]
    n_others = len(numbers) - len(first)
    if n_others:
        return f"{', '.join(first)} and {counted(n_others, 'other')}"
    if len(first) == 1:
        return first[0]
    return f"{', '.join(first[:-1])} and {first[-1]}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun in singular or plural."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
