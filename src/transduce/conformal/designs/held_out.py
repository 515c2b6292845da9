"""How many labels are held out to calibrate."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np

from transduce.core import checks
from transduce.core.ranks import fewest_calibration, nonconformity_rank
from transduce.core.words import quoted


def calibration_number(
    n_labels: int, level: float, *, by_class: bool = False, factor: float = 1.0
) -> int:
    """Return how many labels to hold out: up to half of few, a smaller share of many.

    It is 0 if they are too few for the level.
    """
    least = fewest_calibration(level, factor)
    if n_labels - least < max(2, n_labels // 3):
        return 0
    if by_class:
        half = n_labels // 2
    else:
        half = int(min(n_labels / 2, 5 * np.sqrt(n_labels)))
    exceeding = nonconformity_rank(level, half)  # c + 1 - k, rounded down
    return max(int(np.ceil(exceeding / (1.0 - level) - 1e-9)) - 1, least)


def most_calibration(
    n_labels: int,
    levels: Sequence[float],
    *,
    by_class: bool = False,
    factor: float = 1.0,
) -> int:
    """Return how many labels to hold out for several levels: enough for each that can be had."""
    sizes = []
    for level in levels:
        sizes.append(calibration_number(n_labels, level, by_class=by_class, factor=factor))
    return max(sizes)


def labels_needed(confidence: float) -> int:
    """Return the fewest labels of which `calibration_number` holds some out."""
    least = fewest_calibration(confidence)
    start = max(least + 2, 3 * least // 2 - 2)  # of fewer a third would not be left
    return next(n_labels for n_labels in count(start) if calibration_number(n_labels, confidence))


def read_number(calibration: Any, n_labelled: int) -> int:
    """Return how many labels a number, or a share of them, holds out."""
    ok = checks.is_number(calibration)
    if ok and isinstance(calibration, numbers.Integral) and int(calibration) >= 1:
        number = int(calibration)
    elif ok and 0.0 < float(calibration) < 1.0:
        number = round(float(calibration) * n_labelled)
    else:
        raise ValueError(
            "calibration must be 'auto', a number of labels to hold out from 1 on, or a share of "
            f"them between 0 and 1; got {quoted(calibration)}."
        )
    if not 1 <= number < n_labelled:
        raise ValueError(
            f"calibration={quoted(calibration)} holds out {number} of {n_labelled} labels: at "
            "least one must be held out and at least one stay visible."
        )
    return number


def effective_needed(confidence: float) -> float:
    """Return how many labels of equal weight a level takes where weights are estimated."""
    return 2.0 / (1.0 - confidence)
