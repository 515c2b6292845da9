"""The other columns decided which rows have a label: propensities are estimated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from transduce.conformal.designs.base import Design
from transduce.conformal.designs.chance import Chance
from transduce.conformal.designs.words import Card, Flag
from transduce.core import assumptions
from transduce.core.words import SHIFTS

if TYPE_CHECKING:
    from transduce.conformal.exchangeability import Exchangeability


@dataclass(frozen=True)
class Estimated(Design):
    """The other columns played an unknown part in which rows have a label.

    The odds of being labelled are estimated from these columns.

    The guarantee is approximate, and none where labels are worth fewer than ``2 / (1 -
    confidence)`` of equal weight.

    Parameters
    ----------
    within, order, sensitivity : optional
        As those of `Chance`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from transduce.conformal import ConformalTransducer, Estimated
    >>> rng, X = np.random.default_rng(0), np.linspace(-2, 2, 400)[:, None]
    >>> y = np.where(rng.random(400) < 1 / (1 + np.exp(-X[:, 0])), X[:, 0], np.nan)
    >>> model = ConformalTransducer(
    ...     Ridge(), labels=Estimated(), test_exchangeability=False, random_state=0
    ... )
    >>> model.fit(X, y).guarantee_.kind
    'approximate'
    """

    flags: ClassVar[tuple[Flag, ...]] = (
        Flag(
            name="shift",
            kind="choice",
            default="auto",
            choices=SHIFTS,
            says="estimate",
            help="Weight calibration labels by estimated propensities: only if a shift is "
            "detected (auto), always (estimate), or never (ignore).",
        ),
    )
    cards: ClassVar[tuple[Card, ...]] = (
        Card(
            way="unknown",
            place=70,
            title="I don't know",
            words="Or something else decided. Then what holds can only be estimated.",
            flag="shift",
            value="estimate",
            also=("within", "order"),
        ),
    )
    rests_on: ClassVar[assumptions.Assumption] = assumptions.ESTIMATE
    can_bound_column: ClassVar[bool] = False
    compares_shares: ClassVar[bool] = True
    stands_without_guarantee: ClassVar[bool] = True

    @classmethod
    def of_flags(cls, values: Mapping[str, Any]) -> Design:
        """Return the design that flags say: `Chance` where nothing is to be estimated."""
        if values.get("shift") == "ignore":
            return Chance(reweight=False, **Chance.fields_of_flags(values))
        return super().of_flags(values)

    def estimates_propensity(self, compared: Exchangeability | None) -> bool:
        """Return that propensities are estimated, however rows compare."""
        return True
