"""Questions about a whole column.

What is asked, as it is written on the command line or in Python.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from transduce.app.tables.amounts import with_plain_signs
from transduce.core.checks import is_number
from transduce.core.types import ColumnName
from transduce.core.words import OptionError, quoted

What = Literal["mean", "total", "share", "quantile", "difference", "regression"]
WHATS = get_args(What)
OTHER_WORDS: dict[str, What] = {"median": "quantile", "slope": "regression", "sum": "total"}
HOW_TO_ASK = (
    "mean, total, share, median, quantile, difference or slope, with what it is of: "
    "'share of yes', 'share above 100', 'quantile 0.9', 'difference north, south', "
    "'slope of income'"
)


@dataclass(frozen=True)
class Question:
    """A question about a whole column.

    Parameters
    ----------
    what : {"mean", "total", "share", "quantile", "difference", "regression"}
    of : object, optional
        Of a share the class, of a quantile which (0.5 is the median), of a difference the two
        groups, of a regression the columns on which the column is regressed.
    above, below : float or text, optional
        Limits between which numbers, or dates, count for a share.
    by : str, optional
        A column: one estimate for each of its groups.
    outcome : str, optional
        Of a regression: a column that is regressed on the filled column, instead of the other way.

    Examples
    --------
    >>> read_question("share above 100", by="region")
    Question(what='share', of=None, above='100', below=None, by='region', outcome=None)
    """

    what: What
    of: Any = None
    above: Any = None
    below: Any = None
    by: ColumnName | None = None
    outcome: ColumnName | None = None

    @property
    def columns(self) -> list[ColumnName]:
        """The columns that the question needs besides the one that is asked about."""
        names = [self.by, self.outcome]
        if self.what == "regression":
            names += self.regressors
        return [name for name in names if name is not None]

    @property
    def regressors(self) -> list[ColumnName]:
        """The columns of a regression that are known at every row."""
        if self.of is None:
            return []
        if isinstance(self.of, str) or not isinstance(self.of, Sequence):
            return [self.of]
        return list(self.of)

    @property
    def limited(self) -> bool:
        """Whether it asks for a share between limits."""
        return self.above is not None or self.below is not None

    def in_words(self, target: ColumnName) -> str:
        """Return what is asked, in a few words, such as "mean of price"."""
        name = str(target)
        if self.what == "share":
            return f"share of rows with {name} {self._which_rows()}"
        if self.what == "quantile":
            if self.of is None or float(self.of) == 0.5:
                return f"median of {name}"
            return f"{float(self.of):g} quantile of {name}"
        if self.what == "difference":
            return f"difference of the means of {name}"
        if self.what == "regression":
            on = ", ".join(map(str, self.regressors))
            if self.outcome is not None:
                both = ", ".join(filter(None, [name, on]))
                return f"regression of {self.outcome} on {both}"
            return f"regression of {name} on {on}"
        return f"{self.what} of {name}"

    def _which_rows(self) -> str:
        if self.of is not None:
            return f"= {self.of}"
        if self.above is not None and self.below is not None:
            return f"between {self.above} and {self.below}"
        if self.above is not None:
            return f"above {self.above}"
        return f"below {self.below}"


_BETWEEN = re.compile(r"between\s+(\S+)\s+and\s+(\S+)")
_ABOVE = re.compile(r"(?:above|>)\s*(\S+)")
_BELOW = re.compile(r"(?:below|<)\s*(\S+)")


def read_question(
    text: Any,
    *,
    of: Any = None,
    above: Any = None,
    below: Any = None,
    by: ColumnName | None = None,
    outcome: ColumnName | None = None,
) -> Question:
    """Return a question as it is written, such as ``"share above 100"``.

    Or refuse it in a sentence.
    """
    if not isinstance(text, str) or not text.strip():
        raise OptionError(f"Ask for {HOW_TO_ASK}; got {quoted(text)}.")
    word, _, rest = text.strip().partition(" ")
    what = OTHER_WORDS.get(word.lower(), word.lower())
    if what not in WHATS:
        raise OptionError(f"Ask for {HOW_TO_ASK}; got {quoted(text)}.")
    rest = re.sub(r"^of\s+", "", rest.strip())
    if rest and what == "share":
        limits = read_limits(rest)
        if limits is not None:
            above, below = limits
        else:
            of = rest
    elif rest and what == "quantile":
        of = rest
    elif rest and what in ("difference", "regression"):
        of = [part.strip() for part in rest.split(",")]
    elif rest:
        raise OptionError(f"{word!r} stands alone, and {rest!r} follows it: ask for {HOW_TO_ASK}.")
    if of is not None and what in ("mean", "total"):
        raise OptionError(f"{word!r} stands alone, and is of nothing: got of={quoted(of)}.")
    question = Question(what, of, above, below, by, outcome)  # type: ignore[arg-type]
    return _checked(question)


def read_limits(text: str) -> tuple[str | None, str | None] | None:
    """Return the limits that a text gives, lower and upper; None if it gives none."""
    between = _BETWEEN.fullmatch(text)
    if between is not None:
        return between[1], between[2]
    above = _ABOVE.fullmatch(text)
    if above is not None:
        return above[1], None
    below = _BELOW.fullmatch(text)
    if below is not None:
        return None, below[1]
    return None


def _checked(question: Question) -> Question:
    """Return a question whose parts go together, or refuse it."""
    if question.what == "quantile":
        return _with_level(question)
    if question.what != "share" and question.limited:
        raise OptionError("above and below are for a share: ask for 'share above 100', say.")
    if question.what == "share" and question.limited and question.of is not None:
        raise OptionError("A share is of a class, or between limits: leave out one of the two.")
    if question.what == "difference":
        if question.by is None:
            raise OptionError(
                "A difference is of two groups: say by which column they are told apart."
            )
        _check_pair(question)
    if question.what == "regression" and not question.regressors and question.outcome is None:
        raise OptionError("A regression needs a column: ask for 'slope of income', say.")
    if question.what == "regression" and question.by is not None:
        raise OptionError("A regression is of all rows: leave out the groups.")
    if question.outcome is not None and question.what != "regression":
        raise OptionError("outcome is for a regression: ask for 'slope' with it.")
    return question


def _with_level(question: Question) -> Question:
    """Return a quantile with a number from 0 to 1 for its level; the median by default."""
    if question.of is None:
        return Question("quantile", 0.5, by=question.by)
    level = question.of
    if isinstance(level, str):
        try:
            level = float(with_plain_signs(level))
        except ValueError:
            level = None
    if is_number(level) and float(level) in (0.0, 1.0):
        raise OptionError(
            "The smallest and the largest value of a column cannot be told from a part of it: ask "
            "for a quantile between them, such as 'quantile 0.05' or 'quantile 0.95'."
        )
    if not is_number(level) or not 0.0 < float(level) < 1.0:
        raise OptionError(
            f"A quantile lies between 0 and 1, as in 'quantile 0.9'; got {quoted(question.of)}."
        )
    return Question("quantile", float(level), by=question.by)


def _check_pair(question: Question) -> None:
    if question.of is None:
        return
    pair = question.of
    if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
        raise OptionError(
            f"A difference is of two groups, as in 'difference north, south'; got {quoted(pair)}."
        )
