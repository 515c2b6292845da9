"""The number of rows outside where rows are compared within categories: independent numbers, summed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transduce.conformal.miscoverage import Miscoverage
from transduce.core.checks import check_share
from transduce.core.types import Array


@dataclass(frozen=True)
class CategoryMiscoverage:
    """Exact distribution of the number of unlabelled rows outside, each compared within its category.

    Parameters
    ----------
    parts : tuple of Miscoverage
        Of every category; a category has as many unlabelled rows as it has, so that nothing is estimated.

    Notes
    -----
    Within each category every order of the scores is equally likely, whatever those of the others: the numbers outside
    are independent, and their sum has the convolution of their distributions.

    Examples
    --------
    >>> from transduce.conformal import CategoryMiscoverage, Miscoverage
    >>> law = CategoryMiscoverage((Miscoverage(1, 1, 1), Miscoverage(1, 1, 1)))
    >>> law.mean, law.quantile(0.7), law.quantile(0.9)
    (1.0, 1, 2)
    """

    parts: tuple[Miscoverage, ...]

    @classmethod
    def at(
        cls, confidence: float, unlabelled: Sequence[int], calibration: Sequence[int]
    ) -> CategoryMiscoverage:
        """Return the distribution at a level, by the numbers of unlabelled and calibration rows of each category.

        Parameters
        ----------
        confidence : float
        unlabelled, calibration : sequence of int

        Returns
        -------
        CategoryMiscoverage
        """
        return cls(
            tuple(
                Miscoverage.at(confidence, n_unlabelled=int(m), n_calibration=int(c))
                for m, c in zip(unlabelled, calibration, strict=True)
            )
        )

    @property
    def n_unlabelled(self) -> int:
        """Number of unlabelled rows."""
        return sum(part.n_unlabelled for part in self.parts)

    @property
    def n_calibration(self) -> tuple[int, ...]:
        """Number of calibration labels of every category."""
        return tuple(part.n_calibration for part in self.parts)

    @property
    def ranks(self) -> tuple[int, ...]:
        """Which calibration score is the threshold in every category."""
        return tuple(part.rank for part in self.parts)

    @property
    def mean(self) -> float:
        """Expected number outside."""
        return float(sum(part.mean for part in self.parts))

    @property
    def probabilities(self) -> Array:
        """Probability of 0, 1, ..., m rows outside, shape (m + 1,)."""
        from scipy.signal import fftconvolve  # takes half a second, and few need it

        found = np.ones(1)
        for part in self.parts:
            found = np.maximum(fftconvolve(found, part.probabilities), 0.0)
        return found

    def quantile(self, certainty: float = 0.95) -> int:
        """Return the smallest t such that, with this certainty, at most t rows are outside.

        Parameters
        ----------
        certainty : float, default=0.95
            Strictly between 0 and 1.

        Returns
        -------
        int
        """
        check_share("certainty", certainty)
        reached = np.cumsum(self.probabilities) >= certainty - 1e-12
        return int(np.argmax(reached)) if reached.any() else self.n_unlabelled
