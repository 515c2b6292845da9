"""Whole groups of rows were labelled."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from transduce.conformal.designs.base import Design
from transduce.conformal.designs.bound import BoundDesign
from transduce.conformal.designs.rows import DESCRIBES_ROWS, RowValues
from transduce.conformal.designs.weights import GROUPS, GroupCounts, Weights
from transduce.conformal.designs.words import Card, Flag
from transduce.core.assumptions import ALIKE, STILL, Assumption
from transduce.core.types import AnyArray, Array, Mask, Random

if TYPE_CHECKING:
    from transduce.conformal.designs.reading import RowReader
    from transduce.conformal.exchangeability import Exchangeability
    from transduce.model_selection.problem import Problem


CHANCE_OF_GROUPS = Assumption(
    f"groups and the rows within them were labelled at random, and {ALIKE}",
    condition="if groups were labelled at random",
    along=STILL,
)


@dataclass(frozen=True)
class Grouped(Design):
    """Whole groups, such as patients with several visits, were labelled, and these at random.

    Parameters
    ----------
    groups : str or array-like of shape (n,)
        The group of each row. Whole groups are held out, and each counts once. The guarantee is
        about a row drawn at random from a group without a label.
    order, sensitivity : optional
        As those of `Chance`; groups are not compared `within` categories.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from transduce.conformal import ConformalTransducer, Grouped
    >>> X, groups = np.random.default_rng(0).normal(size=(100, 2)), np.arange(100) // 2
    >>> y = np.where(groups < 25, X[:, 0], np.nan)
    >>> model = ConformalTransducer(Ridge(), labels=Grouped(groups), random_state=0)
    >>> model.fit(X, y).guarantee_.n_groups
    9
    """

    groups: RowValues = field(metadata=DESCRIBES_ROWS)

    flags: ClassVar[tuple[Flag, ...]] = (
        Flag(
            name="groups",
            field="groups",
            help="A column of groups, such as patients or sites: the guarantee is then about rows "
            "of groups without a label.",
        ),
    )
    cards: ClassVar[tuple[Card, ...]] = (
        Card(
            way="groups",
            place=40,
            title="Whole groups at once",
            words="Such as all visits of a patient, or all plots of a field.",
            flag="groups",
            column="The column that names the group",
            kinds=("category", "identifier", "number"),
            also=("order",),
            needs="groups",
            unfit="No other column names groups: in none do values repeat.",
        ),
    )
    rests_on: ClassVar[Assumption] = CHANCE_OF_GROUPS
    can_bound_column: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.within is not None:
            raise ValueError(
                "groups and within exclude each other (groups are held out as a whole, categories "
                "calibrate one by one): leave out one of the two."
            )

    @property
    def holds_out_in_parts(self) -> bool:
        """Whether groups, categories or classes hold out labels of their own."""
        return True

    def bind_rows(self, rows: RowReader) -> BoundGrouped:
        """Return the bound design, made of what a reader reads."""
        return BoundGrouped(groups=rows.groups("groups"), **rows.common())


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundGrouped(BoundDesign):
    """Rows of groups, of which whole ones were labelled."""

    groups: AnyArray  # (n,)

    def chance_of_presence(self, known: Mask, labelled: Mask) -> float:
        """Return how likely at least as many groups with a known cell have labels; (n,), (n,)."""
        from transduce.conformal.presence import tail_of_labels

        n_groups = int(self.groups.max()) + 1
        with_value = np.bincount(self.groups, weights=known, minlength=n_groups) > 0
        with_label = np.bincount(self.groups, weights=labelled, minlength=n_groups) > 0
        return tail_of_labels(with_value, with_label, np.zeros(n_groups, dtype=int))

    def _compare(self, problem: Problem, random: Random) -> Exchangeability:
        """Return how groups with and without labels compare, of which one row each."""
        return replace(super()._compare(problem, random), units="groups")

    def _comparable_rows(self, problem: Problem, random: Random) -> tuple[AnyArray, Mask]:
        """Return one row of each group, drawn at random: rows of one group are alike."""
        order = random.permutation(problem.by_content(np.arange(problem.n_rows)))
        _, first_places = np.unique(self.groups[order], return_index=True)
        rows = np.sort(order[first_places])
        return rows, np.isin(self.groups[rows], self.groups[problem.rows])

    def _weigh_rows(self, problem: Problem, calibration: AnyArray, answered: Mask) -> Weights:
        """Return weights by which each calibration group counts once."""
        groups = self.groups[calibration]
        n_answered = np.bincount(groups[answered], minlength=1 + groups.max(initial=0))
        weights = np.where(answered, 1.0 / np.maximum(n_answered[groups], 1), 0.0)
        unlabelled = problem.sample.unlabelled
        in_labelled_group = np.isin(self.groups[unlabelled], self.groups[problem.rows])
        new_groups = self.groups[unlabelled[~in_labelled_group]]
        _, sizes = np.unique(new_groups, return_counts=True)
        counts = GroupCounts(
            n_calibration=len(np.unique(groups)),
            n_other_rows=int(in_labelled_group.sum()),
            sizes=tuple(sizes.tolist()),
        )
        return Weights(weights, np.ones(len(unlabelled)), GROUPS, groups=counts)

    def measure(self, rows: AnyArray) -> Array:
        """Return how much each labelled row stands for unlabelled ones: each group counts once."""
        groups = self.groups[rows]
        return np.asarray(1.0 / np.bincount(groups)[groups])
