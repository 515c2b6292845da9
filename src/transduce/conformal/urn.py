"""Counting in a finite urn: what a random part of all rows says of the rest, with no approximation."""

from __future__ import annotations

from scipy.stats import hypergeom


def urn_bound(n_wrong: int, n_calibration: int, n_unlabelled: int, certainty: float) -> int:
    """Return how many of the unlabelled rows are marked (wrong, say) at most, given how many calibration rows are.

    Parameters
    ----------
    n_wrong, n_calibration : int
        Wrong answers among the calibration rows, and the number of these.
    n_unlabelled : int
    certainty : float
        Strictly between 0 and 1.

    Returns
    -------
    int

    Notes
    -----
    If T of all ``c + m`` answers are wrong, the number among c rows drawn at random is hypergeometric. The bound is the
    largest T for which so few wrong answers, or fewer, have a probability above ``1 - certainty``, less those that were
    seen. It fails with a probability of at most ``1 - certainty``, whatever T: nothing is approximated.

    Examples
    --------
    With two calibration rows, both right, and two more rows: were both of these wrong, two right ones would be drawn
    with probability 1/6; were one of them wrong, with probability 1/2.

    >>> urn_bound(0, 2, 2, certainty=0.8), urn_bound(0, 2, 2, certainty=0.9)
    (1, 2)
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
    """Return between which numbers of the unlabelled rows are marked, given how many of the calibration rows are.

    Parameters
    ----------
    n_marked, n_calibration, n_unlabelled : int
    confidence : float
        Each end fails with a probability of at most half of ``1 - confidence``.

    Returns
    -------
    tuple of two int

    Examples
    --------
    >>> urn_interval(5, 10, 20, 0.9)
    (3, 17)
    """
    sure = (1.0 + confidence) / 2.0
    others = urn_bound(n_calibration - n_marked, n_calibration, n_unlabelled, sure)
    return n_unlabelled - others, urn_bound(n_marked, n_calibration, n_unlabelled, sure)
