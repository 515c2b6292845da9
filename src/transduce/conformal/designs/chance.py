"""Rows were labelled at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from transduce.conformal.designs.base import Design
from transduce.conformal.designs.words import Card
from transduce.core import checks

if TYPE_CHECKING:
    from transduce.conformal.exchangeability import Exchangeability


@dataclass(frozen=True, kw_only=True)
class Chance(Design):
    """Rows were labelled at random, as far as is known: labels are missing completely at random.

    What describes rows is the name of a column where there is a table (`transduce.fill`), else an
    array.

    Parameters
    ----------
    reweight : bool, default=True
        Whether calibration labels are weighed as `Estimated` does if the test says that rows
        differ.
    within : str or array-like of shape (n,), optional
        The category of each row: the guarantee holds within every one, and rows need only have been
        labelled at random within them.
        Several columns (a list of names, or an array of shape (n, k)): it holds within every
        category of each column, where these overlap too; rows need to have been labelled at random.
    order : str or array-like of shape (n,), optional
        The place of each row along an order, such as a time: whether errors drift along it is
        tested.
    sensitivity : float, default=1.0
        Rows keep their guarantee if the odds of being labelled also depend on the label by up to
        this factor, either way.

    Examples
    --------
    >>> from transduce.conformal import Chance
    >>> Chance().assumption
    'rows were labelled at random, and the other columns were recorded in the same way ...'
    >>> Chance(within="region").assumption
    'rows were labelled at random within each category, and the other columns were ...'
    """

    reweight: bool = True

    cards: ClassVar[tuple[Card, ...]] = (
        Card(
            way="chance",
            place=10,
            title="By chance",
            words="Nobody chose. Which rows have a value is as good as random.",
            also=("within",),
        ),
        Card(
            way="date",
            place=50,
            title="Up to a date",
            words="Older rows have a value, newer ones do not have it yet.",
            flag="order",
            column="The column with the date, or another order",
            kinds=("date", "number"),
            also=("groups", "within"),
            needs="order",
            unfit="No other column holds dates or numbers, by which rows could be in an order.",
        ),
    )
    always_holds_out: ClassVar[bool] = False
    compares_shares: ClassVar[bool] = True
    weighs_equally: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.check_flag("reweight", self.reweight)

    def as_flags(self) -> dict[str, Any]:
        """Return the flags of the command line that say it.

        Those at their defaults are left out.
        """
        flags = super().as_flags()
        if self.reweight:
            return flags
        return {"shift": "ignore", **flags}  # a flag of `Estimated`, which it declines

    @property
    def reweighs_if_shifted(self) -> bool:
        """Whether propensities are estimated where rows are found to differ, and only there."""
        return self.reweight and not self.overlapping

    def estimates_propensity(self, compared: Exchangeability | None) -> bool:
        """Return whether the test found that rows differ, and labels are weighed then."""
        return self.reweighs_if_shifted and compared is not None and compared.shifted
