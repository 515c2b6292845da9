"""How many labels to hold out for calibration; by counts alone, or the guarantee would not be exact."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from transduce.core.ranks import fewest_calibration
from transduce.core.types import AnyArray, Mask


def calibration_number(
    n_labelled: int, confidence: float, *, by_class: bool = False, factor: float = 1.0
) -> int:
    """Return how many labels to hold out: up to half of few, a smaller share of many, none if too few for the level."""
    least = fewest_calibration(confidence)
    if factor > 1.0:
        least = int(np.ceil(factor**2 * confidence / (1.0 - confidence) - 1e-9))
    if n_labelled - least < max(2, n_labelled // 3):
        return 0
    wanted = n_labelled // 2 if by_class else int(min(n_labelled / 2, 5 * np.sqrt(n_labelled)))
    exceeding = int(np.floor((1.0 - confidence + 1e-12) * (wanted + 1)))  # c + 1 - k, rounded down
    whole = int(np.ceil(exceeding / (1.0 - confidence) - 1e-9)) - 1
    return max(whole, least)


def labels_needed(confidence: float) -> int:
    """Return the fewest labels of which `calibration_number` holds some out."""
    n_labelled = fewest_calibration(confidence) + 2
    while calibration_number(n_labelled, confidence) == 0:
        n_labelled += 1
    return n_labelled


def read_number(wanted: Any, n_labelled: int) -> int:
    """Return how many labels a number, or a share of them, holds out; raise a ValueError if it is neither."""
    ok = isinstance(wanted, numbers.Real) and not isinstance(wanted, bool | np.bool_)
    if ok and isinstance(wanted, numbers.Integral) and int(wanted) >= 1:
        number = int(wanted)
    elif ok and 0.0 < float(wanted) < 1.0:
        number = round(float(wanted) * n_labelled)
    else:
        raise ValueError(
            "calibration must be 'auto', a number of labels to hold out from 1 on, or a share of them between 0 "
            f"and 1; got {wanted!r}."
        )
    if not 1 <= number < n_labelled:
        raise ValueError(
            f"calibration={wanted!r} holds out {number} of {n_labelled} labels: at least one must be held out and at "
            "least one stay visible."
        )
    return number


def hold_out_groups(groups: AnyArray, number: int, random: np.random.RandomState) -> Mask:
    """Return which labels to hold out so that these are all labels of so many groups, drawn at random."""
    return np.isin(groups, random.choice(np.unique(groups), number, replace=False))


def hold_out_within(codes: AnyArray, confidence: float, factor: float, random: np.random.RandomState) -> Mask:
    """Return which labels to hold out so that each category has enough; none of one that has too few labels."""
    held_out = np.zeros(len(codes), dtype=bool)
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        number = calibration_number(len(rows), confidence, factor=factor)
        held_out[random.choice(rows, number, replace=False)] = True
    return held_out
