"""Labels were chosen by their value: then nothing can be guaranteed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from transduce.conformal.designs.base import Design
from transduce.conformal.designs.bound import BoundDesign
from transduce.conformal.designs.words import Card, Flag
from transduce.core import assumptions
from transduce.core.types import Array, Mask

if TYPE_CHECKING:
    from transduce.conformal.designs.reading import RowReader
    from transduce.population.sample import Sample


@dataclass(frozen=True)
class ByValue(Design):
    """The value itself, or something that hints at it, decided which rows have a label.

    Unlabelled rows then differ from labelled ones in what no column shows, so that nothing is
    guaranteed. Predictions are made all the same, and intervals are as wide as if chance had
    chosen the labels. Rows drawn at random (`Drawn`) bring back an exact guarantee; where the value
    plays at most a known part, so does ``Chance(sensitivity=...)``; where only the class counted,
    `ByClass`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from transduce.conformal import ByValue, ConformalTransducer
    >>> X = np.random.default_rng(0).normal(size=(200, 1))
    >>> y = np.where(X[:, 0] > 0, X[:, 0], np.nan)
    >>> model = ConformalTransducer(Ridge(), labels=ByValue(), random_state=0).fit(X, y)
    >>> model.guarantee_.kind
    'none'
    """

    flags: ClassVar[tuple[Flag, ...]] = (
        Flag(
            name="labels_by_value",
            kind="switch",
            default=False,
            says=True,
            help="The value itself decided which rows have a label: fill, and guarantee nothing.",
        ),
    )
    cards: ClassVar[tuple[Card, ...]] = (
        Card(
            way="value",
            place=25,
            title="I picked them myself",
            words="Somebody looked at the rows and chose, such as the patients who seemed sick.",
            flag="labels_by_value",
        ),
    )
    rests_on: ClassVar[assumptions.Assumption] = assumptions.BY_VALUE
    testable: ClassVar[bool] = False
    can_bound_column: ClassVar[bool] = False
    stands_without_guarantee: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.modified:
            raise ValueError(
                "Labels that were chosen by their value bear no guarantee, whatever else is said "
                "of them: leave out within, order and sensitivity."
            )

    def bind_rows(self, rows: RowReader) -> BoundByValue:
        """Return the bound design, made of what a reader reads."""
        return BoundByValue(**rows.common())


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundByValue(BoundDesign):
    """Rows that were labelled because of their value."""

    def describe_sample(self, missing: Mask, estimated: Array | None = None) -> Sample:
        """Refuse: labels that were chosen by their value say nothing of the other rows."""
        raise ValueError(
            "Labels that were chosen by their value say nothing certain about the other rows: draw "
            "rows at random with `transduce draw`, and label them."
        )
