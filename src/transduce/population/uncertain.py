"""A number that is not known exactly: its estimate, its standard error, and its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import t as student_t

# Two labels have one. The 97.5 % point of the t distribution is then 12.7; with half a degree 165,
# with a quarter 44,000, and an interval of such a width says nothing.
FEWEST_DEGREES = 1.0
ROUNDING = 1e-9  # three labels less a factor that was fitted have one degree, but for rounding
# One side of an interval is extended by at most so many times what it is without skewness.
FURTHEST = 3.0


@dataclass(frozen=True)
class Uncertain:
    """An estimate of a number, with what its interval needs.

    Attributes
    ----------
    estimate, standard_error : float
        NaN where labels are too few.
    degrees : float
        Degrees of freedom of the standard error; 0 where nothing is known, infinite where
        everything is.
    lowest, highest : float
        Estimates at the worst weights that a sensitivity allows; the estimate itself without one.
    skewness : float
        Skewness of the error of the estimate, as far as the sample shows it.
    """

    estimate: float
    standard_error: float
    degrees: float
    lowest: float
    highest: float
    skewness: float = 0.0

    @classmethod
    def certain(cls, number: float) -> Uncertain:
        """Return a number that is known exactly."""
        return cls(number, 0.0, np.inf, number, number)

    @property
    def is_told(self) -> bool:
        """Whether the labels tell how far off the estimate is.

        With less than one degree of freedom it rests on one or two errors.
        """
        return self.degrees >= FEWEST_DEGREES * (1.0 - ROUNDING)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the interval at a level by the t distribution; infinite if labels are too few.

        Skewed errors reach further to one side, by the first term of the Cornish-Fisher expansion
        of a studentised mean (Johnson 1978): that side is extended, the other not shortened. With
        30 of 1,000 log-normal values (sigma 0.7) 95 % intervals held the mean in 95 % of trials
        instead of 93 %, and were a tenth wider; Hall's transformation (1992), which has the same
        first term, held it in 96 % and was 28 % wider, and with one far label many times as wide.
        With the other side shortened, means of 19 real tables with 30 labels were held in 89 %
        instead of 92 %.
        """
        if not self.is_told:
            return -np.inf, np.inf
        quantile = float(student_t.ppf((1.0 + confidence) / 2.0, self.degrees))
        shift = self.skewness * (2.0 * quantile**2 + 1.0) / 6.0
        shift = float(np.clip(shift, -FURTHEST * quantile, FURTHEST * quantile))
        below = quantile + max(0.0, -shift)
        above = quantile + max(0.0, shift)
        return (
            self.lowest - below * self.standard_error,
            self.highest + above * self.standard_error,
        )

    def __add__(self, number: float) -> Uncertain:
        """Return the estimate with a known number added."""
        return replace(
            self,
            estimate=self.estimate + number,
            lowest=self.lowest + number,
            highest=self.highest + number,
        )

    def __neg__(self) -> Uncertain:
        """Return the estimate of minus the number."""
        return replace(
            self,
            estimate=-self.estimate,
            lowest=-self.highest,
            highest=-self.lowest,
            skewness=-self.skewness,
        )

    def with_larger_error(self, factor: float) -> Uncertain:
        """Return the estimate with a standard error that is larger by a factor."""
        return replace(self, standard_error=factor * self.standard_error)

    def after_fitting(self, n_fitted: int, n_labels: int) -> Uncertain:
        """Return the estimate if so many numbers were fitted to the labels that it rests on.

        They cost degrees of freedom, as in a regression estimator (Cochran 1977, section 7.4).
        """
        spread = n_labels - 1.0
        if not n_fitted or not spread > n_fitted or not 0.0 < self.degrees < np.inf:
            return self
        left = (spread - n_fitted) / spread
        return replace(
            self,
            standard_error=self.standard_error / float(np.sqrt(left)),
            degrees=self.degrees * left,
        )


NOTHING_KNOWN = Uncertain(np.nan, np.nan, 0.0, np.nan, np.nan)


def add_independent(parts: Sequence[Uncertain]) -> Uncertain:
    """Return the sum of numbers whose errors are independent.

    Degrees of freedom by Satterthwaite's approximation, which is the degrees themselves where there
    is one part; variances and third moments add up.
    """
    if not all(part.degrees > 0.0 for part in parts):
        estimate = float(sum(part.estimate for part in parts))
        return replace(NOTHING_KNOWN, estimate=estimate)
    estimate = float(sum(part.estimate for part in parts))
    lowest = float(sum(part.lowest for part in parts))
    highest = float(sum(part.highest for part in parts))
    unit = max((part.standard_error for part in parts), default=0.0)
    if not unit > 0.0:
        degrees = min((part.degrees for part in parts), default=np.inf)
        return Uncertain(estimate, 0.0, degrees, lowest, highest)
    variance = 0.0
    third_moment = 0.0
    weighted_degrees = 0.0
    for part in parts:
        size = part.standard_error / unit  # so that no power is too large, or 0
        variance += size**2
        third_moment += part.skewness * size**3
        weighted_degrees += size**4 / part.degrees
    if weighted_degrees > 0.0:
        degrees = variance**2 / weighted_degrees
    else:
        degrees = np.inf
    error = unit * float(np.sqrt(variance))
    skewness = float(third_moment / variance**1.5)
    return Uncertain(estimate, error, float(degrees), lowest, highest, skewness)
