"""How much calibration and unlabelled rows weigh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from transduce.core import guarantee
from transduce.core.types import AnyArray, Array, Mask

if TYPE_CHECKING:
    from transduce.conformal.designs.propensity import EstimatedOdds
    from transduce.conformal.designs.rows import OverlappingCategories
    from transduce.conformal.exchangeability import Exchangeability

EQUAL, KNOWN, ESTIMATED, GROUPS, CLASSES = "equal", "known", "estimated", "groups", "classes"


@dataclass(frozen=True, eq=False)
class Weights:
    """How much calibration and unlabelled rows weigh, and what that rests on."""

    calibration: Array  # (c,) odds that a row has no label, up to a common factor
    unlabelled: Array  # (m,) the same
    kind: str = EQUAL  # where they come from
    factor: float = 1.0  # the true odds may be up to this many times larger or smaller
    cells: tuple[AnyArray, AnyArray] | None = (
        None  # (c,), (m,) categories, within which rows are compared
    )
    categories: tuple[str, ...] = ()  # their names
    # (c, k), (m, k) categories of several columns, within all of which rows are compared at once
    overlapping: tuple[OverlappingCategories, OverlappingCategories] | None = None
    shares: Array | None = (
        None  # (n_classes,) of the classes among the unlabelled rows, if they were given
    )
    n_groups: int = 0  # groups that calibrate
    n_other: int = 0  # unlabelled rows of groups that have labels
    sizes: tuple[int, ...] = ()  # unlabelled rows of each group that has none
    empty: Mask | None = None  # (m,) unlabelled rows that were drawn to be labelled
    n_empty: int = 0  # such rows of the table that are not among these m
    assumption: str = guarantee.CHANCE  # what has to be true
    testable: bool = True  # whether rows that differ speak against it
    compared: Exchangeability | None = (
        None  # how labelled and unlabelled rows compare, if that was tested
    )
    verdict: guarantee.Verdict | None = None  # the same, in short
    estimated: EstimatedOdds | None = None  # the odds, if they were estimated

    @classmethod
    def equal(cls, n_calibration: int, n_unlabelled: int, **rest: Any) -> Weights:
        """Return weights that are all 1."""
        return cls(np.ones(n_calibration), np.ones(n_unlabelled), **rest)

    @classmethod
    def of(cls, odds: Array, calibration: AnyArray, unlabelled: AnyArray, kind: str) -> Weights:
        """Return the weights at rows of a table, the largest of the unlabelled ones being 1; equal odds are all 1."""
        largest = float(odds[unlabelled].max(initial=0.0)) or 1.0
        return cls(odds[calibration] / largest, odds[unlabelled] / largest, kind)


def odds_without_label(probability: Array) -> Array:
    """Return the odds that a row has no label, by the probability that it has one."""
    return (1.0 - probability) / probability
