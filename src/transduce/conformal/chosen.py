"""How labels came about, as far as the user knows: what that assumes, and how much rows weigh."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from transduce.conformal.estimated_odds import CHANCE_ALONE, EstimatedOdds
from transduce.conformal.exchangeability import Exchangeability
from transduce.conformal.weighing import ESTIMATED, KNOWN, Weighing, odds_without_label
from transduce.core.guarantee import (
    CHANCE,
    CHANCE_OF_GROUPS,
    CHANCE_WITHIN,
    DESIGN,
    DRAWN,
    Guarantee,
)
from transduce.core.names import SHIFTS
from transduce.core.types import AnyArray, Array, Mask
from transduce.model_selection.folds import with_group_folds
from transduce.model_selection.hidden_labels import Problem

AUTO, ESTIMATE, IGNORE = SHIFTS


@dataclass(frozen=True, eq=False)
class Chosen:
    """What is known of how labels came about, row by row."""

    drawn: Mask | None = None  # (l,) which labels are of rows that were drawn at random
    probability: Array | None = None  # (n,) with which each row was chosen to be labelled
    shift: str = AUTO  # whether odds are estimated
    factor: float = 1.0  # by how much odds may be off
    groups: AnyArray | None = None  # (n,) numbers of the group and of the category of each row
    categories: AnyArray | None = None  # (n,) numbers of the group and of the category of each row
    category_names: tuple[str, ...] = ()  # by their numbers
    order: Array | None = None  # (n,) place of each row along an order

    def assumed(self, found: Guarantee) -> Guarantee:
        """Return a guarantee with what it rests on, given how labels came about."""
        if found.kind == "none":
            return found
        instead = CHANCE
        for words, part in (
            (DRAWN, self.drawn),
            (DESIGN, self.probability),
            (CHANCE_OF_GROUPS, self.groups),
            (CHANCE_WITHIN, self.categories),
        ):
            if part is not None:
                instead = words
                break
        return replace(
            found,
            assumptions=tuple(instead if one == CHANCE else one for one in found.assumptions),
            factor=self.factor,
        )

    def estimates(self, compared: Exchangeability | None) -> bool:
        """Return whether odds are to be estimated, given how labelled and unlabelled rows compare."""
        if self.drawn is not None or self.probability is not None or self.groups is not None:
            return False
        return self.shift == ESTIMATE or (self.shift == AUTO and compared is not None and compared.shifted)

    @property
    def testable(self) -> bool:
        """Whether a difference between labelled and unlabelled rows speaks against what is assumed."""
        return self.probability is None

    def to_compare(self, problem: Problem, random: np.random.RandomState) -> tuple[AnyArray, Mask] | None:
        """Return which rows are to be compared, and which of them count as labelled; None for all as they are."""
        labelled = problem.sample.labelled
        if (
            self.drawn is not None
        ):  # the other labels were chosen by whatever means, which is known, and no harm
            some = np.concatenate([problem.rows[self.drawn], problem.sample.unlabelled])
            return some, labelled[some]
        if self.groups is None:
            return None
        # One row of each group, drawn at random: rows of one group are alike, whatever the labels are.
        order = random.permutation(len(labelled))
        some = np.sort(order[np.unique(self.groups[order], return_index=True)[1]])
        return some, np.isin(self.groups[some], self.groups[labelled])

    def ready(self, estimator: Any, rows: AnyArray, seed: int) -> Any:
        """Return the estimator, its own folds such that they never split a group of these labelled rows."""
        return estimator if self.groups is None else with_group_folds(estimator, self.groups[rows], seed)

    def new_groups(self, problem: Problem) -> Mask:
        """Return which unlabelled rows are of groups without a label, shape (m,)."""
        assert self.groups is not None
        unlabelled = problem.sample.unlabelled
        return ~np.isin(self.groups[unlabelled], self.groups[problem.rows])


def weigh(
    chosen: Chosen, problem: Problem, held_out: Mask, given: Mask, estimated: EstimatedOdds | None = None
) -> Weighing:
    """Return how much calibration and unlabelled rows weigh; `given` says which calibration rows have an answer."""
    calibration, unlabelled = problem.rows[held_out], problem.sample.unlabelled
    if chosen.groups is not None:
        found = Weighing.of_groups(chosen.groups[calibration], given, len(unlabelled))
    elif chosen.probability is not None:
        found = Weighing.of(odds_without_label(chosen.probability), calibration, unlabelled, KNOWN)
    elif estimated is not None and estimated.model != CHANCE_ALONE:
        found = Weighing.of(estimated.odds, calibration, unlabelled, ESTIMATED)
        found = found.without_support(estimated.beyond[unlabelled])
    else:
        found = Weighing.equal(len(calibration), len(unlabelled))
    if chosen.categories is not None:
        found = found.in_cells(chosen.categories, calibration, unlabelled)
    return replace(found, factor=chosen.factor)
