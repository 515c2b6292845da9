"""The probability that an answered class is right, calibrated by answers at hidden labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import expit, logit

from transduce.core.answer import Answer
from transduce.core.types import Array
from transduce.tables.columns import answered_probability

_EDGE = 1e-6  # probabilities are kept this far from 0 and 1


@dataclass(frozen=True)
class RightChance:
    """How probable it is that an answered class is right, given what the method says.

    Notes
    -----
    The stated log-odds are stretched and shifted such that they fit the hidden labels (Platt 1999), with one unit of
    prior weight on leaving them as they are. Where nothing is stated, the share of right answers.
    """

    share: float = np.nan  # of right answers at hidden labels; NaN if it is not known
    stretch: float | None = None  # what the stated log-odds are multiplied by, and what is added to them
    shift: float = 0.0  # what the stated log-odds are multiplied by, and what is added to them

    @classmethod
    def of(cls, folds: pd.DataFrame) -> RightChance:
        """Return what answers at labels that were hidden in turn say."""
        if not len(folds):
            return cls()
        right = (folds["true"].astype(str) == folds["answered"].astype(str)).to_numpy(dtype=float)
        share = (float(right.sum()) + 1.0) / (len(right) + 2.0)
        if "probability" not in folds:
            return cls(share)
        odds = _log_odds(folds["probability"].to_numpy(dtype=float))

        def loss(line: Array) -> float:
            z = line[0] * odds + line[1]
            prior = 0.5 * ((line[0] - 1.0) ** 2 + line[1] ** 2)
            return float(np.sum(np.logaddexp(0.0, z) - right * z) + prior)

        stretch, shift = minimize(loss, np.array([1.0, 0.0]), method="BFGS").x
        return cls(share, max(float(stretch), 0.0), float(shift))

    def at(self, stated: Array | None, n: int) -> Array:
        """Return the probability that each of n answers is right, given what is stated for it, if anything is."""
        if stated is None:
            return np.full(n, self.share)
        if self.stretch is None:
            return stated if np.isnan(self.share) else np.full(n, self.share)
        return np.asarray(expit(self.stretch * _log_odds(stated) + self.shift), dtype=float)


def _log_odds(probabilities: Array) -> Array:
    return np.asarray(logit(np.clip(probabilities, _EDGE, 1.0 - _EDGE)), dtype=float)


def right_of(chance: RightChance, answer: Answer) -> Array | None:
    """Return the probability that each answered class is right; None for numbers."""
    return None if answer.regions is not None else chance.at(answered_probability(answer), len(answer))
