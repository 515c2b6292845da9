"""A table of which several columns were filled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Unpack

from transduce.app.filling.options import OPTIONS, QUESTIONS, Options, Questions, described
from transduce.app.filling.result import FillResult, Frame
from transduce.core.types import ColumnName

# What `dir(results)`, and an editor that completes names, shows.
MAIN_NAMES = ("frame", "get", "items", "keys", "options", "table", "values", "with_options")


@dataclass(frozen=True, eq=False, repr=False)
class FillResults(Mapping[ColumnName, FillResult[Frame]], Generic[Frame]):
    """A table of which several columns were filled: the result of each, by its name, and one table.

    A mapping from each target to its `FillResult`; ``frame`` is the table with the new columns of
    all of them.

    Examples
    --------
    >>> from transduce import fill
    >>> from transduce.datasets import load_houses
    >>> houses = load_houses()[0]
    >>> table = houses.assign(age=houses["house_age"].where(houses["price"] > 0))
    >>> results = fill(table, ["price", "age"], method="ridge", guarantee="column")
    >>> [name for name in results.frame if name.endswith("_filled")]
    ['price_filled', 'age_filled']
    """

    results: dict[ColumnName, FillResult[Frame]]  # of each target
    options: Options  # what was asked for

    def __dir__(self) -> list[str]:
        return list(MAIN_NAMES)

    def __getitem__(self, target: ColumnName) -> FillResult[Frame]:
        return self.results[target]

    def __iter__(self) -> Iterator[ColumnName]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    @cached_property
    def frame(self) -> Frame:
        """The table with the new columns of all targets."""
        first, *others = self.results.values()
        frame = first.frame
        for other in others:
            frame = other.seen.add_columns(other.new, frame)
        return frame

    @described(QUESTIONS)
    def with_options(self, **questions: Unpack[Questions]) -> FillResults[Frame]:
        """Return the results with other options, each where it suits the labels.

        Parameters
        ----------
        OPTIONS
        """
        tasks = {result.task for result in self.values()}
        results = {}
        for target, result in self.items():
            other_tasks = tasks - {result.task}
            suited: Any = {
                name: value
                for name, value in questions.items()
                if _only_task(name) not in other_tasks
            }
            results[target] = result.with_options(**suited)
        return replace(self, results=results)

    def table(self, **questions: Unpack[Questions]) -> Frame:
        """Return the table with the new columns of all targets, made with these options."""
        return self.with_options(**questions).frame

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.values()))

    def _repr_html_(self) -> str:
        """Return the results as a notebook shows them, one after another."""
        return "".join(result._repr_html_() for result in self.values())


def _only_task(name: str) -> str:
    """Return the only task that an option suits; "" if it suits both, or is not known."""
    if name in OPTIONS:
        return OPTIONS[name].kind.task
    return ""
