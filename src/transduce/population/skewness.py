r"""How skewed the numbers are of which a few are a sample.

The mean cube of a sample about its mean says too little: of k numbers it is at most ``sqrt(k)``
times their spread cubed, and of a hundred medical bills it was 3 to 9, where that of all bills was
7 to 33. L-moments, which are means of differences of ordered numbers (Hosking 1990), hardly depend
on how far the largest one lies. Log-normal numbers, as bills, wages and prices about are, have one
skewness for each ratio of L-moments:

    sigma            .5    1    1.25  1.5
    tau_3            .24   .46  .56   .65    third L-moment over the second
    tau_4            .17   .29  .37   .46    fourth over the second
    skewness         1.75  6.2  13    33

The skewness here is the smaller of those that the two ratios have, and at least that of the sample:
numbers of which many are 0, say, have a large ``tau_3`` without a long tail, and those with two
long tails a large ``tau_4``.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import ndtri

from transduce.core.types import Array

# With fewer numbers the ratios vary by more than .1, and a skewness of 3 is found where there is
# none.
FEWEST_FOR_RATIOS = 20
# Log-normal numbers with sigma 1.31. Samples do not tell larger ones apart.
MOST_SKEWED = 16.0


def skewness_of(numbers: Array) -> float:
    """Return the mean cube of numbers about their mean, in units of their spread; 0 if alike."""
    off = about_mean(numbers)
    if not off.any():
        return 0.0
    return float(np.mean(off**3) / np.mean(off**2) ** 1.5)


def skewness_of_all(sample: Array) -> float:
    """Return the skewness of numbers of which a sample is known; 0 if all of it are alike."""
    of_sample = skewness_of(sample)
    off = about_mean(sample)
    if len(sample) < FEWEST_FOR_RATIOS or not off.any():
        return of_sample
    third, fourth = ratios_of_l_moments(off)
    by_ratios = float(np.sign(third)) * log_normal_skewness(abs(third), fourth)
    return max(of_sample, by_ratios, key=abs)


def about_mean(numbers: Array) -> Array:
    """Return numbers about their mean, in units of the one that lies farthest from it."""
    off = numbers - np.mean(numbers)
    largest = np.max(np.abs(off), initial=0.0)
    if not largest > 0.0:
        return np.zeros(len(numbers))
    return np.asarray(off / largest)


def ratios_of_l_moments(numbers: Array) -> tuple[float, float]:
    """Return the third and the fourth L-moment over the second, unbiased but for the quotient.

    Of n ordered numbers the weighted means ``b_r`` of the number at place i (from 0) weigh it by
    ``i (i - 1) ... (i - r + 1) / ((n - 1) ... (n - r))``.
    """
    ordered = np.sort(numbers)
    count = len(ordered)
    place = np.arange(count)
    weight = np.ones(count)
    means = []
    for order in range(4):
        means.append(float(np.mean(weight * ordered)))
        weight = weight * (place - order) / (count - 1.0 - order)
    b0, b1, b2, b3 = means
    second = 2.0 * b1 - b0
    third = 6.0 * b2 - 6.0 * b1 + b0
    fourth = 20.0 * b3 - 30.0 * b2 + 12.0 * b1 - b0
    return third / second, fourth / second


def log_normal_skewness(third: float, fourth: float) -> float:
    """Return the smaller skewness of the log-normal numbers that have one of two ratios."""
    thirds, fourths, skewness = log_normal_table()
    by_third = np.interp(third, thirds, skewness)
    by_fourth = np.interp(fourth, fourths, skewness)
    return float(min(by_third, by_fourth))


@cache
def log_normal_table() -> tuple[Array, Array, Array]:
    """Return both ratios and the skewness of log-normal numbers, up to `MOST_SKEWED`."""
    probability = (np.arange(20_000) + 0.5) / 20_000
    normal = ndtri(probability)
    rows = [(0.0, 0.1226, 0.0)]  # normal numbers
    for sigma in np.linspace(0.05, 1.35, 27):
        variance = np.exp(sigma**2) - 1.0
        skewness = float((variance + 3.0) * np.sqrt(variance))
        rows.append((*ratios_of_l_moments(np.exp(sigma * normal)), min(skewness, MOST_SKEWED)))
    table = np.array(rows)
    return table[:, 0], table[:, 1], table[:, 2]
