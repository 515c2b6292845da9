"""What an audit is asked: which columns hold predictions and checks, and how sure it is to be."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from transduce.core.checks import check_list, check_number, check_share
from transduce.core.types import ColumnName
from transduce.core.words import quoted


@dataclass(frozen=True, kw_only=True)
class AuditQuestion:
    """What an audit is asked.

    Attributes
    ----------
    target : column
        What a person found at the rows that were checked; empty elsewhere.
    predictions : tuple of columns
        The predicted class or number, or one column of probabilities for each class.
    by : tuple of columns
        Groups of rows, each of which gets statements of its own.
    second : column, optional
        What a second person found.
    seen : column, optional
        Marks rows whose labels the predictor has seen, which say nothing of other rows.
    random, stratum : column, optional
        Marks the rows that were drawn to be checked; names the stratum that each was drawn from.
    tolerance : float, optional
        By how much a predicted number may be off; a share of it if `relative`.
    certainty : float
        Of every bound and interval, each by itself.
    missing : tuple
        Further values that stand for an empty cell.
    case_sensitive : bool
        Whether classes that differ in capitals or blanks only are different.
    """

    target: ColumnName
    predictions: tuple[ColumnName, ...]
    by: tuple[ColumnName, ...] = ()
    second: ColumnName | None = None
    seen: ColumnName | None = None
    random: ColumnName | None = None
    stratum: ColumnName | None = None
    tolerance: float | None = None
    relative: bool = False
    certainty: float = 0.95
    missing: tuple[object, ...] = ()
    case_sensitive: bool = False

    def __post_init__(self) -> None:
        for option in ("target", "second", "seen", "random", "stratum"):
            check_one_column(option, getattr(self, option))
        check_share("certainty", self.certainty)
        if not self.predictions:
            raise ValueError("predictions must name the column that holds the predictions.")
        if self.target in self.predictions:
            raise ValueError(
                f"Column {self.target!r} is named as what was predicted and as what was checked: "
                "name the column that a person filled in as the target."
            )
        if self.second == self.target:
            raise ValueError(
                f"Column {self.target!r} is named as what both people found: the second person "
                "needs a column of their own."
            )
        for name in (self.target, self.second):
            if name is not None and name in self.by:
                raise ValueError(
                    f"Column {name!r} says what was found, and is empty at unchecked rows: name "
                    "groups that are known at every row."
                )
        if self.tolerance is not None:
            check_number("tolerance", self.tolerance)
            if self.tolerance < 0:
                raise ValueError(f"tolerance must not be negative; got {self.tolerance:g}.")
        elif self.relative:
            raise ValueError("A relative tolerance needs a tolerance: say how much is allowed.")


def check_one_column(name: str, column: object) -> None:
    """Raise a ValueError if several columns are named where one is meant."""
    if not isinstance(column, Hashable):
        raise ValueError(f"{name} names one column; got {quoted(column)}.")


def as_columns(name: str, columns: object) -> tuple[ColumnName, ...]:
    """Return one column, or several, as a tuple."""
    if columns is None:
        return ()
    if isinstance(columns, str) or not isinstance(columns, list | tuple):
        return (columns,)
    check_list(name, columns)
    return tuple(columns)
