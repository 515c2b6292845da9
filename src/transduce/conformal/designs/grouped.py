"""Whole groups of rows were labelled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from transduce.conformal.designs.base import Design
from transduce.conformal.designs.weights import GROUPS, Weights
from transduce.conformal.designs.words import Card, Flag
from transduce.core.guarantee import ALIKE, Assumption
from transduce.core.types import AnyArray, Array, Mask, Random

if TYPE_CHECKING:
    from transduce.conformal.designs.reading import Cells
    from transduce.conformal.exchangeability import Exchangeability
    from transduce.model_selection.fit_and_predict import Problem


CHANCE_OF_GROUPS = Assumption(
    f"groups, and the rows within them, were labelled at random, and {ALIKE}",
    condition="if groups were labelled at random",
)


@dataclass(frozen=True)
class Grouped(Design):
    """Whole groups have labels, such as patients with several visits, and chance chose the groups.

    Parameters
    ----------
    groups : str or array-like of shape (n,)
        The group of each row. Whole groups are held out, and each counts once. The guarantee is about a row drawn at
        random from a group without a label.
    order, sensitivity : optional
        As those of `Chance`; groups are not compared `within` categories.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from transduce.conformal import ConformalTransducer, Grouped
    >>> X, groups = np.random.default_rng(0).normal(size=(100, 2)), np.arange(100) // 2
    >>> y = np.where(groups < 25, X[:, 0], np.nan)
    >>> ConformalTransducer(Ridge(), labels=Grouped(groups), random_state=0).fit(X, y).guarantee_.n_groups
    9
    """

    groups: Any

    flags: ClassVar[tuple[Flag, ...]] = (
        Flag(
            name="groups",
            field="groups",
            help="A column of groups of rows: the guarantee is about rows of new groups.",
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
        ),
    )
    row_fields: ClassVar[tuple[str, ...]] = ("groups", "within", "order")
    rests_on: ClassVar[Assumption] = CHANCE_OF_GROUPS
    of_column: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.within is not None:
            raise ValueError(
                "groups and within exclude each other (groups are held out as a whole, categories "
                "calibrate one by one): leave out one of the two."
            )

    def _read_field(self, name: str, cells: Cells, missing: Mask) -> Any:
        from transduce.conformal.designs.reading import read_groups

        if name == "groups":
            return read_groups(cells, missing)
        return super()._read_field(name, cells, missing)

    def chance_of_presence(self, known: Mask, labelled: Mask) -> float:
        """Return how likely at least as many groups with a known cell have labels; shapes (n,), (n,)."""
        from transduce.conformal.presence import tail_of_labels

        n_groups = int(self.groups.max()) + 1
        with_value = np.bincount(self.groups, weights=known, minlength=n_groups) > 0
        with_label = np.bincount(self.groups, weights=labelled, minlength=n_groups) > 0
        return tail_of_labels(with_value, with_label, np.zeros(n_groups, dtype=int))

    def _compare(self, problem: Problem, random: Random) -> Exchangeability:
        """Return how groups with and without labels compare, of which one row each."""
        return replace(super()._compare(problem, random), units="groups")

    def _alike(self, problem: Problem, random: Random) -> tuple[AnyArray, Mask]:
        """Return one row of each group, drawn at random: rows of one group are alike, whatever the labels are."""
        order = random.permutation(problem.by_content(np.arange(problem.n_rows)))
        some = np.sort(order[np.unique(self.groups[order], return_index=True)[1]])
        return some, np.isin(self.groups[some], self.groups[problem.rows])

    def _weights(self, problem: Problem, calibration: AnyArray, given: Mask) -> Weights:
        """Return weights by which each calibration group counts once, however many of its rows have an answer."""
        groups, unlabelled = self.groups[calibration], problem.sample.unlabelled
        answered = np.bincount(groups[given], minlength=1 + groups.max(initial=0))
        weights = np.where(given, 1.0 / np.maximum(answered[groups], 1), 0.0)
        others = np.isin(self.groups[unlabelled], self.groups[problem.rows])
        sizes = tuple(np.unique(self.groups[unlabelled[~others]], return_counts=True)[1].tolist())
        weighed = Weights(
            weights, np.ones(len(unlabelled)), GROUPS, n_groups=len(np.unique(groups))
        )
        return replace(weighed, n_other=int(others.sum()), sizes=sizes)

    def measure(self, rows: AnyArray) -> Array:
        """Return how much each labelled row stands for the unlabelled ones: each group counts once."""
        groups = self.groups[rows]
        return np.asarray(1.0 / np.bincount(groups)[groups])
