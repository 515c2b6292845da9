"""Counting in a finite urn: what a random part of all rows says of the rest, with no approximation."""

from __future__ import annotations

from scipy.stats import hypergeom


def urn_bound(n_wrong: int, n_calibration: int, n_unlabelled: int, certainty: float) -> int:
    """Return how many of the unlabelled rows are marked (wrong, say) at most, given how many calibration rows are.

    Notes
    -----
    If T of all ``c + m`` answers are wrong, the number among c rows drawn at random is hypergeometric. The bound is the
    largest T for which so few wrong answers, or fewer, have a probability above ``1 - certainty``, less those that were
    seen. It fails with a probability of at most ``1 - certainty``, whatever T: nothing is approximated.
    """
    total = n_calibration + n_unlabelled
    low, high = (
        n_wrong,
        n_wrong + n_unlabelled,
    )  # the more are wrong, the less likely so few of them are drawn
    while low < high:
        middle = (low + high + 1) // 2
        possible = hypergeom.cdf(n_wrong, total, middle, n_calibration) > 1.0 - certainty
        low, high = (middle, high) if possible else (low, middle - 1)
    return low - n_wrong


def urn_interval(n_marked: int, n_calibration: int, n_unlabelled: int, confidence: float) -> tuple[int, int]:
    """Return between which numbers of the unlabelled rows are marked, given how many of the calibration rows are."""
    sure = (1.0 + confidence) / 2.0
    others = urn_bound(n_calibration - n_marked, n_calibration, n_unlabelled, sure)
    return n_unlabelled - others, urn_bound(n_marked, n_calibration, n_unlabelled, sure)
