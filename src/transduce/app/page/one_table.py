"""What a guarantee on average leaves open for one table, said and as a curve."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from transduce.conformal.miscoverage import Law, Miscoverage
from transduce.core.guarantee import Guarantee
from transduce.core.words import counted, percent

CERTAINTY = 0.9  # of the share of one table that is named
MORE = (50, 100, 300)  # calibration labels, of which the next larger is named
N_STEPS = 60  # of the curve
ENOUGH = 0.08  # a table whose share is known so closely needs no more


def one_table(law: Law | None, guarantee: Guarantee) -> dict[str, Any] | None:
    """Return between which shares of this one table are likely to be inside; None if unknown.

    Parameters
    ----------
    law : Law or None
        The distribution of the number of rows outside.
    guarantee : Guarantee
        What holds on average.

    Returns
    -------
    dict or None
        The two shares, a curve of how likely each share is, and sentences.
    """
    if not isinstance(law, Miscoverage) or law.n_short or not law.n_unlabelled:
        return None
    low, high = law.share_inside(CERTAINTY)
    return {
        "low": low,
        "high": high,
        "level": guarantee.confidence,
        "curve": _curve(law),
        "sentence": _sentence(law, guarantee, low, high),
        "more": _what_more_would_buy(law, guarantee, high - low),
    }


def _sentence(law: Miscoverage, guarantee: Guarantee, low: float, high: float) -> str:
    labels = counted(law.n_calibration, "label")
    return (
        f"That is an average over many tables. In this one table {_from_to(low, high)} of the "
        f"{guarantee.about}s may hold the truth (with {percent(CERTAINTY)} certainty), since "
        f"{labels} alone measure it."
    )


def _from_to(low: float, high: float) -> str:
    """Return two shares in whole percents, rounded away from each other."""
    first = math.floor(100.0 * low + 1e-9)
    last = math.ceil(100.0 * high - 1e-9)
    return f"{first} to {last} %"


def _what_more_would_buy(law: Miscoverage, guarantee: Guarantee, width: float) -> str:
    """Return how much closer more labels would tell it; "" where they would change little."""
    larger = [number for number in MORE if number >= 1.5 * law.n_calibration]
    if width <= ENOUGH or not larger or guarantee.confidence is None:
        return ""
    number = larger[0]
    later = Miscoverage.at(
        guarantee.confidence, n_unlabelled=law.n_unlabelled, n_calibration=number
    )
    return f"With {number} of them it would be {_from_to(*later.share_inside(CERTAINTY))}."


def _curve(law: Miscoverage) -> list[list[float]]:
    """Return how likely each share inside is, as points; the highest has height 1."""
    step = -(-law.n_unlabelled // N_STEPS)  # as many rows in each
    ends = np.arange(step - 1, law.n_unlabelled + step, step)
    heights = np.diff(law.cdf(ends), prepend=0.0)
    highest = float(heights.max()) or 1.0
    outside = np.minimum(ends - (step - 1) / 2.0, law.n_unlabelled)
    shares = 1.0 - outside / law.n_unlabelled
    return [
        [float(share), float(height / highest)]
        for share, height in zip(shares, heights, strict=True)
    ]
