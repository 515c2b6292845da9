"""Bounds on the number of unlabelled rows outside that hold at all levels at once, from a simulated urn."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betaln, gammaln
from sklearn.utils import check_random_state

from transduce.core.checks import check_share
from transduce.core.types import AnyArray, Array

MOST_CELLS = 20_000_000  # of a table of levels and counts


def draw_urn(n_unlabelled: int, n_calibration: int, n_draws: int, random: np.random.RandomState) -> AnyArray:
    """Draw numbers of unlabelled scores above each calibration score, from Polya's urn.

    Returns shape (n_draws, n_calibration).

    Notes
    -----
    Calibration scores cut the line into c + 1 gaps. An unlabelled score falls into a gap with probability
    proportional to one plus the unlabelled scores already there: the shares of the gaps are uniform on the simplex,
    the counts multinomial.
    """
    gaps = random.standard_exponential((n_draws, n_calibration + 1))
    rng = np.random.default_rng(random.randint(2**31 - 1))
    counts = rng.multinomial(n_unlabelled, gaps / gaps.sum(axis=1, keepdims=True))
    return n_unlabelled - np.cumsum(counts, axis=1)[:, :-1]


def _tails(n_unlabelled: int, n_calibration: int, ranks: AnyArray) -> Array:
    """Return the probability of at least t = 0, ..., m rows outside at each rank, shape (n_ranks, m + 1)."""
    t = np.arange(n_unlabelled + 1)
    a, b = (n_calibration + 1 - ranks)[:, None], ranks[:, None]
    ways = gammaln(n_unlabelled + 1) - gammaln(t + 1) - gammaln(n_unlabelled - t + 1)
    density = np.exp(ways + betaln(t + a, n_unlabelled - t + b) - betaln(a, b))
    return np.cumsum(density[:, ::-1], axis=1)[:, ::-1]


def simultaneous_bounds(
    certainty: float, *, n_unlabelled: int, n_calibration: int, n_draws: int = 2000, random_state: Any = 0
) -> AnyArray:
    """Return bounds on the number outside that hold at all levels at once.

    Returns shape (n_calibration,).

    Notes
    -----
    Every rank gets the largest t with ``P(at least t outside) >= d``, the same d for all. For a draw of the urn, the
    smallest of these probabilities over the ranks says how unusual it is; d is the r-th smallest among the draws, r =
    floor((1 - certainty)(n_draws + 1)). The true numbers are one more draw from the same urn, so they are more unusual
    than d with probability at most ``r / (n_draws + 1)``, the chance in the simulation included. The bounds thus hold
    however the level is chosen afterwards, even by looking at the intervals.

    Above some ten million pairs of rank and count only a part of the ranks is looked at; the others take the
    bound of the next lower one, which is valid for them too.
    """
    check_share("certainty", certainty)
    if n_calibration == 0 or n_unlabelled == 0:
        return np.zeros(n_calibration, dtype=int)
    n_draws = max(int(n_draws), int(np.ceil(2.0 / (1.0 - certainty))))
    number = min(n_calibration, max(2, MOST_CELLS // (n_unlabelled + 1)))
    ranks = np.unique(np.linspace(1, n_calibration, number).round().astype(int))
    tails = _tails(n_unlabelled, n_calibration, ranks)
    random = check_random_state(random_state)
    unusual = np.empty(n_draws)
    for start in range(0, n_draws, 500):
        counts = draw_urn(n_unlabelled, n_calibration, min(500, n_draws - start), random)[:, ranks - 1]
        unusual[start : start + len(counts)] = tails[np.arange(len(ranks)), counts].min(axis=1)
    allowed = int(np.floor((1.0 - certainty) * (n_draws + 1) + 1e-9))
    limit = np.partition(unusual, allowed - 1)[allowed - 1]
    bounds = (tails >= limit * (1.0 - 1e-9)).sum(axis=1) - 1
    return bounds[np.searchsorted(ranks, np.arange(1, n_calibration + 1), side="right") - 1]
