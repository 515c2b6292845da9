"""How much calibration and unlabelled rows weigh."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from transduce.conformal.designs.propensity import CHANCE_ALONE, EstimatedOdds, estimate_odds
from transduce.conformal.exchangeability import Exchangeability
from transduce.core import guarantee
from transduce.core.types import AnyArray, Array, Mask
from transduce.model_selection.fit_and_predict import Problem

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


def weigh_by_estimate(problem: Problem, calibration: AnyArray, seed: int) -> Weights:
    """Return weights by the odds that rows have no label, estimated from their features."""
    unlabelled = problem.sample.unlabelled
    estimated = estimate_odds(problem.X, problem.sample.labelled, seed)
    kind = EQUAL if estimated.model == CHANCE_ALONE else ESTIMATED
    weights = Weights.of(estimated.odds, calibration, unlabelled, kind)
    # Rows beyond all labelled ones outweigh all labels, so that nothing is ruled out there.
    heavy = 1e12 * (1.0 + float(weights.calibration.sum()))
    beyond = np.where(estimated.beyond[unlabelled], heavy, weights.unlabelled)
    return replace(weights, unlabelled=beyond, estimated=estimated)
