"""How much calibration and unlabelled rows weigh."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from transduce.core import assumptions, findings
from transduce.core.types import AnyArray, Array, Mask

if TYPE_CHECKING:
    from transduce.conformal.designs.propensity import EstimatedOdds
    from transduce.conformal.designs.rows import OverlappingCategories
    from transduce.conformal.exchangeability import Exchangeability

# Where weights come from.
EQUAL = "equal"
KNOWN = "known"
ESTIMATED = "estimated"
GROUPS = "groups"
CLASSES = "classes"


@dataclass(frozen=True, eq=False)
class Strata:
    """The category of each row, by number: rows are compared within categories."""

    calibration: AnyArray  # (c,)
    unlabelled: AnyArray  # (m,)
    names: tuple[str, ...] = ()  # of the categories


@dataclass(frozen=True)
class GroupCounts:
    """What is to be counted where whole groups were labelled."""

    n_calibration: int  # groups that calibrate
    n_other_rows: int = 0  # unlabelled rows of groups that have labels
    sizes: tuple[int, ...] = ()  # unlabelled rows of each group that has none


@dataclass(frozen=True, eq=False)
class Grounds:
    """What weights rest on, and what a test said of it."""

    assumption: str = assumptions.CHANCE  # what has to be true
    testable: bool = True  # whether rows that differ speak against it
    compared: Exchangeability | None = None  # labelled and unlabelled rows, if that was tested
    verdict: findings.Verdict | None = None  # the same, in short
    estimated: EstimatedOdds | None = None  # the odds of no label, if they were estimated
    n_since: int = 0  # rows that could be drawn to calibrate, were not, and were labelled since


@dataclass(frozen=True, eq=False)
class Weights:
    """How much calibration and unlabelled rows weigh, and with which they are compared."""

    calibration: Array  # (c,) odds that a row has no label, up to a common factor
    unlabelled: Array  # (m,) the same
    kind: str = EQUAL  # where they come from
    factor: float = 1.0  # the true odds may be up to this many times larger or smaller
    strata: Strata | None = None  # within which rows are compared
    # Categories of several columns, within all of which rows are compared at once, of the
    # calibration and of the unlabelled rows.
    overlapping: tuple[OverlappingCategories, OverlappingCategories] | None = None
    shares: Array | None = None  # (n_classes,) given ones of the classes among the unlabelled rows
    groups: GroupCounts | None = None
    empty: Mask | None = None  # (m,) unlabelled rows that were drawn to be labelled
    n_empty: int = 0  # such rows of the table that are not among these m
    grounds: Grounds = field(default_factory=Grounds)

    @classmethod
    def equal(cls, n_calibration: int, n_unlabelled: int, **rest: Any) -> Weights:
        """Return weights that are all 1."""
        return cls(np.ones(n_calibration), np.ones(n_unlabelled), **rest)

    @classmethod
    def of(
        cls,
        odds: Array,
        calibration: AnyArray,
        unlabelled: AnyArray,
        kind: str,
    ) -> Weights:
        """Return the weights at rows of a table, the largest of the unlabelled ones being 1."""
        largest = float(odds[unlabelled].max(initial=0.0)) or 1.0
        return cls(odds[calibration] / largest, odds[unlabelled] / largest, kind)

    def resting_on(self, **grounds: Any) -> Weights:
        """Return the same weights with other grounds."""
        return replace(self, grounds=replace(self.grounds, **grounds))


def odds_without_label(probability: Array) -> Array:
    """Return the odds that a row has no label, by the probability that it has one."""
    return (1.0 - probability) / probability
