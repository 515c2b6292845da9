"""How many unlabelled rows are outside, and their mean, by calibration labels."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import betaln, gammaln
from scipy.stats import beta, betabinom, binom

from transduce.core.checks import check_number, check_random_state, check_share, check_whole
from transduce.core.ranks import calibration_rank
from transduce.core.scaling import square_unit
from transduce.core.types import AnyArray, Array, Seed
from transduce.core.words import quoted
from transduce.population.urns import drawn_at_most, urn_bound

MOST_ROWS = 10**15  # numbers of rows up to here are exact as floats
MOST_CALIBRATION = 10**8  # so many probabilities still fit in memory
MOST_LISTED = 10**8


@dataclass(frozen=True)
class Miscoverage:
    """Exact distribution of the number of unlabelled rows that are outside.

    A row is outside if its score is above the k-th smallest calibration score.

    Every order of the c + m scores is equally likely, so it is ``BetaBinomial(m, c + 1 - k, k)``:
    the share of a population above the k-th smallest of c draws is ``Beta(c + 1 - k, k)``. Equal
    scores only make the number smaller.

    Parameters
    ----------
    n_unlabelled, n_calibration : int
        Number m of unlabelled rows, and c of calibration labels.
    rank : int
        Which calibration score is the threshold: k, from 1 to c; ``c + 1`` if none is; then nothing
        is outside.

    Examples
    --------
    >>> from transduce.conformal import Miscoverage
    >>> Miscoverage(n_unlabelled=1, n_calibration=1, rank=1).cdf(0)
    0.5
    >>> law = Miscoverage.at(0.9, n_unlabelled=256, n_calibration=39)
    >>> law.mean, law.quantile(0.95)
    (25.6, 50)
    """

    n_unlabelled: int
    n_calibration: int
    rank: int

    def __post_init__(self) -> None:
        check_whole("n_unlabelled", self.n_unlabelled, least=0, most=MOST_ROWS)
        check_whole("n_calibration", self.n_calibration, least=0, most=MOST_CALIBRATION)
        if (
            not isinstance(self.rank, int | np.integer)
            or isinstance(self.rank, bool)
            or not 1 <= self.rank <= self.n_calibration + 1
        ):
            most = self.n_calibration + 1
            raise ValueError(
                f"rank must be a whole number from 1 to {most}; got {quoted(self.rank)}."
            )

    @classmethod
    def at(cls, confidence: float, *, n_unlabelled: int, n_calibration: int) -> Miscoverage:
        """Return the distribution at a level.

        Parameters
        ----------
        confidence : float
            The level, strictly between 0 and 1.
        n_unlabelled, n_calibration : int
            Numbers of unlabelled rows and of calibration labels.

        Returns
        -------
        Miscoverage
        """
        check_whole("n_calibration", n_calibration, least=0)
        rank = calibration_rank(check_share("confidence", confidence), n_calibration)
        return cls(n_unlabelled, n_calibration, rank)

    @property
    def mean(self) -> float:
        """Expected number outside: ``m (c + 1 - k) / (c + 1)``."""
        return self.n_unlabelled * (self.n_calibration + 1 - self.rank) / (self.n_calibration + 1)

    @property
    def n_short(self) -> int:
        """For how many thresholds, of the one there is, the calibration labels are too few."""
        return int(self.rank > self.n_calibration)

    @property
    def probabilities(self) -> Array:
        """Probability of 0, 1, ..., m rows outside, shape (m + 1,)."""
        if self.n_unlabelled > MOST_LISTED:
            raise ValueError(
                f"{self.n_unlabelled:,} rows are too many to list a probability for each number of "
                "them: ask for cdf or quantile."
            )
        if self.n_short:
            return np.append(1.0, np.zeros(self.n_unlabelled))
        m = self.n_unlabelled
        above = self.n_calibration + 1 - self.rank
        return betabinom.pmf(np.arange(m + 1), m, above, self.rank)

    def cdf(self, count: Any) -> Any:
        """Return the probability that at most `count` rows are outside.

        Parameters
        ----------
        count : float or array-like
            Number of rows.

        Returns
        -------
        float or array
        """
        if np.ndim(count) == 0:
            check_number("count", count)
        counts = np.floor(np.asarray(count, dtype=float))
        if np.isnan(counts).any():
            raise ValueError("count is a number of rows, not NaN.")
        counts = np.clip(counts, -1, self.n_unlabelled).astype(np.int64)
        # More than t are outside if at most c - k of the t + 1 + c - k largest scores are
        # calibration ones.
        above = self.n_calibration - self.rank
        largest = np.maximum(counts, 0) + 1 + above
        more = drawn_at_most(above, largest, self.n_calibration, self.n_unlabelled)
        probability = np.where(counts < 0, 0.0, 1.0 - more)
        if np.ndim(count) == 0:
            return float(probability)
        return probability

    def quantile(self, certainty: float = 0.95) -> int:
        """Bound the number of rows outside.

        Parameters
        ----------
        certainty : float, default=0.95
            Probability with which the bound holds.

        Returns
        -------
        int
            The smallest t such that at most t rows are outside with this certainty.
        """
        check_share("certainty", certainty)
        return bisect_left(
            range(self.n_unlabelled),
            True,
            key=lambda t: self.cdf(t) >= certainty - 1e-12,
        )

    def share_inside(self, certainty: float = 0.9) -> tuple[float, float]:
        """Return between which shares of the rows of one table are inside, with this certainty.

        On either side half of the remaining probability is left out.

        Examples
        --------
        >>> low, high = Miscoverage.at(0.9, n_unlabelled=1000, n_calibration=19).share_inside(0.9)
        >>> round(low, 2), round(high, 2)
        (0.77, 0.98)
        """
        check_share("certainty", certainty)
        tail = (1.0 - certainty) / 2.0
        rows = max(self.n_unlabelled, 1)
        return 1.0 - self.quantile(1.0 - tail) / rows, 1.0 - self.quantile(tail) / rows


@dataclass(frozen=True)
class ClassMiscoverage:
    """What can be said of the number outside when every class has a threshold of its own.

    Parameters
    ----------
    n_unlabelled : int
        Number of unlabelled rows, of all classes together; how many are of which class is not
        known.
    n_labelled, n_calibration, ranks : sequence of int
        Of every class: number of labels, how many are held out, and which calibration score is the
        threshold. The first is empty where labels were chosen by their class, and say nothing of
        how many rows are of which.

    Notes
    -----
    Among the m_y unlabelled rows of class y the number is ``Miscoverage(m_y, c_y,
    k_y)``. With a fifth of the allowed uncertainty ``m_y <= u_y`` for all classes at once (l_y of
    its rows have a label by chance: hypergeometric); with the rest the sum of independent
    ``Miscoverage(u_y, c_y, k_y)`` is a bound, because more rows only mean more outside.

    With `n_labelled` empty nothing bounds m_y. The share of class y outside is ``Beta(c_y + 1 -
    k_y, k_y)`` before its rows are drawn; if none exceeds b, the number outside is at most binomial
    with the share b, whatever the classes. The uncertainty is split between the two such that the
    bound is smallest, by numbers of labels alone.

    Examples
    --------
    >>> from transduce.conformal import ClassMiscoverage
    >>> law = ClassMiscoverage(
    ...     n_unlabelled=40, n_labelled=(39, 39), n_calibration=(19, 19), ranks=(18, 18)
    ... )
    >>> law.mean, law.quantile(0.9)
    (4.0, 11)
    """

    n_unlabelled: int
    n_labelled: Sequence[int]
    n_calibration: Sequence[int]
    ranks: Sequence[int]

    def __post_init__(self) -> None:
        check_whole("n_unlabelled", self.n_unlabelled, least=0, most=MOST_ROWS)
        if len(self.n_calibration) != len(self.ranks) or len(self.n_labelled) not in (
            0,
            len(self.ranks),
        ):
            raise ValueError(
                "n_labelled, n_calibration and ranks must have a number for each class, or "
                "n_labelled none."
            )
        if not len(self.ranks):
            raise ValueError("Give a number of calibration labels and a rank for every class.")
        for n_labelled in self.n_labelled:
            check_whole("Each of n_labelled", n_labelled, least=0, most=MOST_ROWS)
        for number in range(len(self.ranks)):
            self.of_class(number, 0)

    def of_class(self, number: int, n_unlabelled: int) -> Miscoverage:
        """Return the distribution for a class, if `n_unlabelled` of the rows are of it."""
        return Miscoverage(n_unlabelled, self.n_calibration[number], self.ranks[number])

    @property
    def n_short(self) -> int:
        """For how many classes the calibration labels are too few."""
        return sum(k > c for c, k in zip(self.n_calibration, self.ranks, strict=True))

    @property
    def mean(self) -> float:
        """Bound on the expected number outside, whatever the classes of the rows."""
        return max(self.of_class(y, self.n_unlabelled).mean for y in range(len(self.ranks)))

    def most_of_class(self, number: int, certainty: float) -> int:
        """Return a bound on how many unlabelled rows are of a class, with a certainty."""
        return urn_bound(
            self.n_labelled[number],
            sum(self.n_labelled),
            self.n_unlabelled,
            certainty,
        )

    def quantile(self, certainty: float = 0.95) -> int:
        """Return a bound on the number outside with this certainty, whatever the classes."""
        doubt = 1.0 - check_share("certainty", certainty)
        if not self.n_labelled:
            return self._whatever_the_classes(doubt)
        calibrated = [y for y, c in enumerate(self.n_calibration) if self.ranks[y] <= c]
        sizes = [self.most_of_class(y, 1.0 - 0.2 * doubt / len(self.ranks)) for y in calibrated]
        all_classes = CategoryMiscoverage(tuple(map(self.of_class, calibrated, sizes)))
        if sum(sizes) > MOST_LISTED:
            return min(all_classes.quantile(1.0 - 0.8 * doubt), self.n_unlabelled)
        most = np.searchsorted(np.cumsum(all_classes.probabilities), 1.0 - 0.8 * doubt + 1e-12)
        return min(int(most), self.n_unlabelled)

    def _whatever_the_classes(self, doubt: float) -> int:
        """Return a bound that holds for any shares of the classes."""
        sizes = np.array(self.n_calibration)
        ranks = np.array(self.ranks)
        has_threshold = ranks <= sizes
        if not has_threshold.any() or not self.n_unlabelled:
            return 0
        c = sizes[has_threshold]
        k = ranks[has_threshold]
        bounds = []
        for part in (0.5, 0.8, 0.95):
            certainty_of_class = 1.0 - part * doubt / len(c)
            largest_share = float(beta.ppf(certainty_of_class, c + 1 - k, k).max())
            certainty_of_count = 1.0 - (1.0 - part) * doubt
            bounds.append(int(binom.ppf(certainty_of_count, self.n_unlabelled, largest_share)))
        return min(bounds)


def confidence_for(
    share: float, certainty: float, *, n_unlabelled: int, n_calibration: int
) -> float:
    """Return the smallest level at which a share of the unlabelled rows is inside.

    That holds with a certainty.
    """
    certainty = check_share("certainty", certainty)
    if share != 1:
        check_share("share (or 1)", share)
    check_whole("n_unlabelled", n_unlabelled, least=0, most=MOST_ROWS)
    check_whole("n_calibration", n_calibration, least=0, most=MOST_CALIBRATION)
    if n_unlabelled == 0:
        raise ValueError("No row is unlabelled, so there is no share of them.")
    most = int(np.floor(n_unlabelled * (1.0 - share) + 1e-9))

    def enough(rank: int) -> bool:
        # The larger the threshold, the fewer are outside.
        return bool(Miscoverage(n_unlabelled, n_calibration, rank).cdf(most) >= certainty - 1e-12)

    rank = 1 + bisect_left(range(1, n_calibration + 1), True, key=enough)
    if rank <= n_calibration:
        return rank / (n_calibration + 1)
    raise ValueError(
        f"No level makes at least {100 * share:g} % of {n_unlabelled} rows inside with "
        f"{100 * certainty:g} % certainty when {n_calibration} labels are held out: it takes "
        f"{_calibration_needed(most, certainty, n_unlabelled)} calibration labels."
    )


def _calibration_needed(most: int, certainty: float, n_unlabelled: int) -> int:
    """Return the fewest labels of which at most `most` rows exceed the largest score."""

    def enough(n_calibration: int) -> bool:
        law = Miscoverage(n_unlabelled, n_calibration, rank=n_calibration)
        return bool(law.cdf(most) >= certainty - 1e-12)

    high = 1
    while not enough(high):
        high *= 2
    return bisect_left(range(high), True, lo=high // 2 + 1, key=enough)


@dataclass(frozen=True)
class CategoryMiscoverage:
    """Exact distribution of the number of unlabelled rows outside, by category.

    Each row is compared within its category.

    Orders within categories are independent, so the sum has the convolution of the categories'
    distributions. So are those of rows that a fit saw and of rows that it did not see: whatever the
    former are, the calibration rows of the latter are a random part of them.

    Parameters
    ----------
    parts : tuple of Miscoverage
        Of every category; a category has as many unlabelled rows as it has, so that nothing is
        estimated.

    Examples
    --------
    >>> from transduce.conformal import CategoryMiscoverage, Miscoverage
    >>> law = CategoryMiscoverage((Miscoverage(1, 1, 1), Miscoverage(1, 1, 1)))
    >>> law.mean, law.quantile(0.7), law.quantile(0.9)
    (1.0, 1, 2)
    """

    parts: tuple[Miscoverage, ...]

    def __post_init__(self) -> None:
        if not all(isinstance(part, Miscoverage) for part in self.parts):
            raise TypeError("Give a Miscoverage for every category.")

    @property
    def n_unlabelled(self) -> int:
        """Number of unlabelled rows."""
        return sum(part.n_unlabelled for part in self.parts)

    @property
    def n_calibration(self) -> tuple[int, ...]:
        """Number of calibration labels of every category."""
        return tuple(part.n_calibration for part in self.parts)

    @property
    def n_short(self) -> int:
        """For how many categories the calibration labels are too few."""
        return sum(part.n_short for part in self.parts)

    @property
    def mean(self) -> float:
        """Expected number outside."""
        return float(sum(part.mean for part in self.parts))

    @property
    def probabilities(self) -> Array:
        """Probability of 0, 1, ..., m rows outside, shape (m + 1,)."""
        total = np.ones(1)
        for part in self.parts:
            total = np.maximum(_convolve(total, part.probabilities), 0.0)
        return total

    def quantile(self, certainty: float = 0.95) -> int:
        """Return the smallest t such that, with this certainty, at most t rows are outside.

        Of more than `MOST_COUNTS` rows each part is rounded up to a multiple of a small share of
        them all, so that t is at most that share too large for every part.
        """
        check_share("certainty", certainty)
        step = -(-self.n_unlabelled // MOST_COUNTS) or 1
        if step == 1:
            probabilities = self.probabilities
        else:
            probabilities = self._in_steps(step)
        steps = int(np.searchsorted(np.cumsum(probabilities), certainty - 1e-12))
        return min(step * steps, self.n_unlabelled)

    def _in_steps(self, step: int) -> Array:
        """Return the probabilities of 0, 1, ... steps, to which each part is rounded up."""
        total = np.ones(1)
        for part in self.parts:
            n_steps = -(-part.n_unlabelled // step)
            up_to = part.cdf(step * np.arange(n_steps + 1))
            rounded = np.diff(up_to, prepend=0.0)
            total = np.maximum(_convolve(total, rounded), 0.0)
        return total


def _convolve(first: Array, second: Array) -> Array:
    """Return the distribution of a sum."""
    # As `scipy.signal.fftconvolve`, which takes half a second to be imported.
    from scipy.fft import irfft, next_fast_len, rfft

    if len(first) == 1:
        return first[0] * second
    n = len(first) + len(second) - 1
    n_fast = next_fast_len(n, real=True)
    product = rfft(first, n_fast) * rfft(second, n_fast)
    return np.asarray(irfft(product, n_fast))[:n]


MOST_COUNTS = 50_000  # of a sum of several numbers outside
MOST_CELLS = 20_000_000  # of a table of levels and counts
Law = Miscoverage | ClassMiscoverage | CategoryMiscoverage


def draw_urn(
    n_unlabelled: int, n_calibration: int, n_draws: int, random: np.random.RandomState
) -> AnyArray:
    """Draw numbers of unlabelled scores above each score: (n_draws, n_calibration)."""
    # Polya's urn: calibration scores cut the line into c + 1 gaps, and an unlabelled score falls
    # into one with a probability proportional to one plus those already there: shares of the gaps
    # are uniform, counts multinomial.
    gaps = random.standard_exponential((n_draws, n_calibration + 1))
    rng = np.random.default_rng(random.randint(2**31 - 1))
    counts = rng.multinomial(n_unlabelled, gaps / gaps.sum(axis=1, keepdims=True))
    return n_unlabelled - np.cumsum(counts, axis=1)[:, :-1]


def simultaneous_bounds(
    certainty: float,
    *,
    n_unlabelled: int,
    n_calibration: int,
    n_draws: int = 2000,
    random_state: Seed = 0,
) -> AnyArray:
    """Return bounds on the number outside at all levels at once, (n_calibration,)."""
    # Every rank gets the largest t with P(at least t outside) >= d, the same d for all. The
    # smallest of these probabilities over the ranks says how unusual a draw is; d is the r-th
    # smallest of the draws. The truth is one more draw, so it is more unusual than d with
    # probability at most r / (n_draws + 1), whatever the level.
    check_share("certainty", certainty)
    check_whole("n_unlabelled", n_unlabelled, least=0, most=MOST_LISTED)
    check_whole("n_calibration", n_calibration, least=0, most=MOST_CALIBRATION)
    if n_calibration == 0 or n_unlabelled == 0:
        return np.zeros(n_calibration, dtype=int)
    n_draws = max(int(n_draws), int(np.ceil(2.0 / (1.0 - certainty))))
    # Of many ranks some are looked at; the others take the bound of the next lower one, which is
    # valid for them too.
    number = min(n_calibration, max(2, MOST_CELLS // (n_unlabelled + 1)))
    ranks = np.unique(np.linspace(1, n_calibration, number).round().astype(int))
    # The beta-binomial density, as scipy has it, but in a third of its time; then P(at least t
    # outside) at each rank.
    t = np.arange(n_unlabelled + 1)
    a = (n_calibration + 1 - ranks)[:, None]
    b = ranks[:, None]
    ways = gammaln(n_unlabelled + 1) - gammaln(t + 1) - gammaln(n_unlabelled - t + 1)
    density = np.exp(ways + betaln(t + a, n_unlabelled - t + b) - betaln(a, b))
    tails = np.cumsum(density[:, ::-1], axis=1)[:, ::-1]
    random = check_random_state(random_state)
    unusual = np.empty(n_draws)
    for start in range(0, n_draws, 500):
        size = min(500, n_draws - start)
        draws = draw_urn(n_unlabelled, n_calibration, size, random)
        counts = draws[:, ranks - 1]
        tails_of_draws = tails[np.arange(len(ranks)), counts]
        unusual[start : start + len(counts)] = tails_of_draws.min(axis=1)
    allowed = int(np.floor((1.0 - certainty) * (n_draws + 1) + 1e-9))
    limit = np.sort(unusual)[allowed - 1]
    bounds = (tails >= limit * (1.0 - 1e-9)).sum(axis=1) - 1
    return bounds[np.searchsorted(ranks, np.arange(1, n_calibration + 1), side="right") - 1]


# -------------------------------------------------------------------- marked rows, means and shares


def powered_mean(
    unlabelled: Array, calibration: Array, labels: Array, weights: Array, columns: Any = None
) -> pd.DataFrame:
    """Return the mean of the missing labels (m, q) by prediction-powered inference."""
    # Angelopoulos et al. (2023), Science 382: the mean of the predictions, plus what they were off
    # by where labels are known. There is no interval: heavy tails can hide in the rows that were
    # not drawn. With log-normal labels one at 90 % held the mean in 74 % of trials with 9
    # calibration labels, and in 81 % with 79.
    c = len(calibration)
    m = len(unlabelled)
    unit = square_unit(unlabelled, calibration, labels)
    unlabelled = unlabelled / unit
    calibration = calibration / unit
    labels = labels / unit
    residuals = labels - calibration
    with np.errstate(over="ignore", invalid="ignore"):
        if m:
            plain = unlabelled.mean(axis=0)
        else:
            plain = np.full(unlabelled.shape[1], np.nan)
        total = float(weights.sum()) or np.nan
        estimate = plain + (weights[:, None] * residuals).sum(axis=0) / total
        error = np.full(len(plain), np.nan)
        if c > 1 and m:
            share = float(np.sum(weights**2)) / total**2
            error = residuals.std(axis=0, ddof=1) * np.sqrt(share + 1.0 / m)
    lines = {"estimate": estimate * unit, "standard_error": error * unit, "plain": plain * unit}
    return pd.DataFrame(lines, index=columns)
