"""How probable classes are, given what a method states and how often it was right."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from transduce.app.tables.new_columns import answered_probability
from transduce.core.answer import Answer
from transduce.core.scaling import to_power
from transduce.core.types import Array


@dataclass(frozen=True)
class ClassCalibration:
    """How probable classes are, given what the method states."""

    # What a method states is raised to a power that fits hidden labels (a blend has done so), and
    # one label more is spread evenly over the classes, so that n labels make nothing surer than
    # about n in n + 1. A line through the log-odds of the answers, fitted to hidden labels, was too
    # sure: at 0.95 and more it said 98.7 % with 40 labels, and 96.0 % were right; now it says
    # 97.2 %, and 97.6 % are (`benchmarks/blend_calibration.py`).
    n_labels: int = 0
    share: float = np.nan  # of right answers at hidden labels, for methods without probabilities
    power: float = 1.0
    silent: bool = False  # whether too few labels tell: then no probability is stated

    @classmethod
    def of_hidden_labels(
        cls, folds: pd.DataFrame, n_labels: int, power: float = 1.0
    ) -> ClassCalibration:
        """Return what answers at labels that were hidden in turn say."""
        is_right = (folds["true"].astype(str) == folds["answered"].astype(str)).to_numpy()
        mean = np.nan
        if len(is_right):
            mean = float(np.average(is_right, weights=folds.get("weight")))
        share = (len(is_right) * mean + 1.0) / (len(is_right) + 2.0)
        return cls(n_labels, share, power)

    def calibrate(self, answer: Answer, level: float) -> Answer:
        """Return an answer with calibrated probabilities.

        A row that is surer than a level is not unusual.
        """
        stated = answer.probabilities
        if stated is None or stated.shape[1] == 0:
            return answer
        evenly = 1.0 / stated.shape[1]
        probabilities = (self.n_labels * to_power(stated, self.power) + evenly) / (
            self.n_labels + 1.0
        )
        calibrated = replace(answer, probabilities=probabilities)
        is_sure = self.probability_correct(calibrated) >= level
        status = np.where((answer.status == "unusual") & is_sure, "answered", answer.status)
        return replace(calibrated, status=status)

    def probability_correct(self, answer: Answer) -> Array:
        """Return the probability that each answered class is right, given calibrated ones."""
        stated = answered_probability(answer)
        if stated is None or self.silent:
            return np.full(len(answer), self.share)
        return stated
