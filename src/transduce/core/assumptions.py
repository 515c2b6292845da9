"""What has to be true of the labels for a guarantee to hold, as clauses with conditions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

BETWEEN_CLAUSES = ", and "


class Assumption(str):
    """What has to be true of the labels, as a clause, with its condition."""

    condition: str  # that an exact guarantee is said to have; "" if it has none
    later: Assumption | None  # what has to be true of rows that come later instead; None: the same
    along: Assumption | None  # and where labels end along an order of the rows

    def __new__(
        cls,
        clause: str,
        condition: str = "",
        later: Assumption | None = None,
        along: Assumption | None = None,
    ) -> Self:
        """Return the clause with its condition."""
        assumption = super().__new__(cls, clause)
        assumption.condition = condition
        assumption.later = later
        assumption.along = along
        return assumption


def join_assumptions(assumptions: Iterable[str]) -> str:
    """Return assumptions as one list of clauses, to stand behind “if” or “that”."""
    clauses = [clause for assumption in assumptions for clause in assumption.split(BETWEEN_CLAUSES)]
    if len(clauses) <= 2:
        return BETWEEN_CLAUSES.join(clauses)
    return f"{', '.join(clauses[:-1])}{BETWEEN_CLAUSES}{clauses[-1]}"


# A part of every assumption: where a column is the truth at labelled rows and a guess elsewhere, 51
# % of the true values were in intervals at 90 %, although rows were labelled at random.
ALIKE = "the other columns were recorded in the same way with and without a label"


def with_factor(assumption: str, factor: float) -> str:
    """Return an assumption that lets odds of being labelled be off by a factor, if above 1."""
    if factor <= 1.0:
        return assumption
    off = (
        f"up to a factor of {factor:g} either way in the odds of being labelled, which may depend "
        "on the value itself"
    )
    return assumption.replace(f", and {ALIKE}", f", {off}, and {ALIKE}")


LATER = Assumption(
    "the rows that come later are like the labelled ones, differing from them by chance alone",
    condition="if later rows are like the labelled ones",
)
LATER_DRAWN = Assumption(
    "the rows that come later are like those drawn at random, differing from them by chance alone",
    condition="if later rows are like those drawn at random",
)
LATER_BY_CLASS = Assumption(
    "rows that come later are like the labelled ones of their class",
    condition="if later rows are like the labelled ones of their class",
)
LATER_SHARES = Assumption(
    f"the given shares of the classes are right, and {LATER_BY_CLASS}",
    condition="if the given shares are right, and later rows are like the labelled ones of their "
    "class",
)
STILL = Assumption(
    f"nothing changes along the order of the rows, except by chance, and {ALIKE}",
    condition="if nothing changes along the order of the rows",
)
CHANCE = Assumption(
    f"rows were labelled at random, and {ALIKE}",
    condition="if rows were labelled at random",
    later=LATER,
    along=STILL,
)
CHANCE_WITHIN = Assumption(
    f"rows were labelled at random within each category, and {ALIKE}",
    condition="if rows were labelled at random within each category",
    along=STILL,
)
DRAWN = Assumption(
    f"the calibration labels are of rows drawn at random from those without a label, and {ALIKE}",
    later=LATER_DRAWN,
)
BY_CLASS = Assumption(
    f"rows were labelled at random within each class, and {ALIKE}",
    condition="if rows were labelled at random within each class",
    later=LATER_BY_CLASS,
)
SHARES = Assumption(
    f"the given shares of the classes are right, and {BY_CLASS}",
    condition="if the given shares are right, and rows were labelled at random within each class",
    later=LATER_SHARES,
)
ESTIMATE = Assumption(
    "which rows have a label depends on the other columns alone, about as was estimated, "
    f"and {ALIKE}"
)
BY_VALUE = Assumption("the value itself played no part in which rows have a label")
LIMITED = Assumption("no row has a limit beyond those of the labels")
SEEN = Assumption("every class of the unlabelled rows has a label")
NO_SECOND_LOOK = Assumption(
    "no block of random draws was begun, or left, because of what the draws before had shown",
    condition="if no block of draws was begun, or left, because of what draws had shown",
)

WHY_BY_VALUE = (
    "Labels were chosen by their value, so that rows without one may differ from them in what no "
    "column shows."
)
NOT_TESTED = "Whether labelled and unlabelled rows differ was not tested."
# A reason of the confidence machine, for rows that are only predicted: `fill` has none of these.
NOT_FOR_LATER = (
    "Rows given only to predict had no part in that: for them the guarantee is approximate."
)
