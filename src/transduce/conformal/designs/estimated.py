"""The other columns decided which rows have a label: propensities are estimated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from transduce.conformal.designs.base import Design
from transduce.conformal.exchangeability import Exchangeability
from transduce.core import guarantee


@dataclass(frozen=True)
class Estimated(Design):
    """The other columns played a part in which rows have a label, nobody knows how: the odds are estimated from them.

    The guarantee is approximate, and none where labels are worth fewer than ``2 / (1 - confidence)`` of equal weight.

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
    >>> model = ConformalTransducer(Ridge(), labels=Estimated(), test_exchangeability=False, random_state=0)
    >>> model.fit(X, y).guarantee_.kind
    'approximate'
    """

    rests_on: ClassVar[str] = guarantee.ESTIMATE
    of_column: ClassVar[bool] = False
    compares_shares: ClassVar[bool] = True
    stands_without_guarantee: ClassVar[bool] = True

    def _estimates(self, compared: Exchangeability | None) -> bool:
        return True
