"""Whether errors drift along an order of the rows: rank correlations at the calibration rows, by permutation."""

from __future__ import annotations

import numpy as np
from scipy.stats import mannwhitneyu, norm, rankdata

from transduce.core.guarantee import Drift
from transduce.core.types import Array, Mask

FEWEST = 8  # calibration rows below which no drift can be seen
N_PERMUTATIONS = 999
SIGNIFICANCE = 0.01
APART = 0.1  # p-value of places along the order below which they are not taken for chance


def drift_along(order: Array, labelled: Mask, at: Array, errors: list[Array], seed: int = 0) -> Drift:
    """Return whether labelled and unlabelled rows lie apart along an order, and whether errors drift along it.

    Shapes: order (n,), labelled (n,), at (c,), errors (c,).

    Notes
    -----
    The statistic is the largest absolute rank correlation of the order with one of the errors; its p-value is
    ``(1 + number of permutations of the order that reach it) / (n_permutations + 1)``. A rank correlation r over c rows
    has, after Fisher's transformation, a standard error of about ``1 / sqrt(c - 3)``, which says how large one is found
    with a probability of 80 %.
    """
    late, early = order[~labelled], order[labelled]
    later, apart = 0.5, False
    if len(late) and len(early):
        test = mannwhitneyu(late, early)
        later, apart = float(test.statistic) / (len(late) * len(early)), bool(test.pvalue < APART)
    c = len(at)
    if c < FEWEST or np.ptp(at) == 0.0:
        return Drift(later, apart, None, False)
    random = np.random.RandomState(seed)
    places = _unit(rankdata(at))
    orders = np.array([places, *(random.permutation(places) for _ in range(N_PERMUTATIONS))])
    found = np.abs(orders @ np.column_stack([_unit(rankdata(error)) for error in errors])).max(axis=1)
    p_value = float(np.mean(found >= found[0] - 1e-12))
    sure = norm.ppf(1.0 - SIGNIFICANCE / (2.0 * len(errors))) + norm.ppf(0.8)
    detectable = float(np.tanh(sure / np.sqrt(c - 3)))
    return Drift(later, apart, p_value, p_value <= SIGNIFICANCE, detectable if detectable < 0.95 else None)


def _unit(ranks: Array) -> Array:
    """Return ranks with mean 0 and length 1; all 0 if they are equal."""
    ranks = ranks - ranks.mean()
    length = float(np.linalg.norm(ranks))
    return np.asarray(ranks / length if length > 0.0 else ranks)
