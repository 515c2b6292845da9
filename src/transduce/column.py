"""The law of the number of asked rows that lie outside their regions, when some labels were hidden to calibrate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.signal import fftconvolve
from scipy.special import gammaln
from scipy.stats import betabinom, hypergeom

from transduce._typing import Array
from transduce.display.column import ColumnLawDisplay
from transduce.strangeness import strangeness_rank


def hidden_rank(confidence: float, n_hidden: int) -> int:
    """Return which of the hidden scores, in ascending order, is the threshold: ``ceil((c + 1) confidence)``.

    Parameters
    ----------
    confidence : float
    n_hidden : int
        Number c of hidden labels.

    Returns
    -------
    int
        From 1 to c; ``c + 1`` if no hidden score is large enough for the level.

    Examples
    --------
    >>> hidden_rank(0.9, 39), hidden_rank(0.9, 9), hidden_rank(0.9, 8)
    (36, 9, 9)
    """
    return n_hidden + 1 - strangeness_rank(confidence, n_hidden)


def threshold(scores: Any, rank: int) -> float:
    """Return the `rank`-th smallest score; infinity if there are not so many.

    Examples
    --------
    >>> threshold([3.0, 1.0, 2.0], 2), threshold([3.0, 1.0, 2.0], 4)
    (2.0, inf)
    """
    scores = np.asarray(scores, dtype=float)
    return float(np.partition(scores, rank - 1)[rank - 1]) if rank <= len(scores) else np.inf


def fewest_hidden(confidence: float) -> int:
    """Return the smallest number of hidden labels that supports a level: c with ``c / (c + 1) >= confidence``.

    Examples
    --------
    >>> fewest_hidden(0.9), fewest_hidden(0.95), fewest_hidden(0.5)
    (9, 19, 1)
    """
    n_hidden = max(int(np.floor(confidence / (1.0 - confidence))) - 1, 1)
    while strangeness_rank(confidence, n_hidden) == 0:
        n_hidden += 1
    return n_hidden


@dataclass(frozen=True)
class ColumnLaw:
    """Exact distribution of the number of asked rows whose score is above the k-th smallest hidden one.

    Parameters
    ----------
    n_asked : int
        Number m of asked rows.
    n_hidden : int
        Number c of hidden labels.
    rank : int
        Which hidden score is the threshold: k, from 1 to c; ``c + 1`` for none, when nothing is ever outside.

    Notes
    -----
    Hidden and asked scores are exchangeable: every order of the c + m is equally likely. The share of a
    population above the k-th smallest of c draws has the distribution ``Beta(c + 1 - k, k)``, so the number of m more
    draws above it is ``BetaBinomial(m, c + 1 - k, k)``. That is exact if no two scores are equal; equal ones, which
    count as inside, only make the number outside smaller.

    Examples
    --------
    One hidden label, one asked row, threshold at the hidden score: either order is as likely.

    >>> from transduce import ColumnLaw
    >>> ColumnLaw(n_asked=1, n_hidden=1, rank=1).cdf(0)
    0.5
    >>> law = ColumnLaw.at(0.9, n_asked=256, n_hidden=39)
    >>> law.mean, law.quantile(0.95)
    (25.6, 50)
    """

    n_asked: int
    n_hidden: int
    rank: int

    def __post_init__(self) -> None:
        for name, value in (("n_asked", self.n_asked), ("n_hidden", self.n_hidden)):
            if not isinstance(value, int | np.integer) or value < 0:
                raise ValueError(f"{name} must be a whole number from 0 on; got {value!r}.")
        if not isinstance(self.rank, int | np.integer) or not 1 <= self.rank <= self.n_hidden + 1:
            raise ValueError(f"rank must be a whole number from 1 to {self.n_hidden + 1}; got {self.rank!r}.")

    @classmethod
    def at(cls, confidence: float, *, n_asked: int, n_hidden: int) -> ColumnLaw:
        """Return the law at a level.

        Parameters
        ----------
        confidence : float
            Level, strictly between 0 and 1.
        n_asked, n_hidden : int
            Numbers of asked rows and of hidden labels.

        Returns
        -------
        ColumnLaw
        """
        return cls(n_asked, n_hidden, hidden_rank(check_share("confidence", confidence), n_hidden))

    @property
    def mean(self) -> float:
        """Expected number outside: ``m (c + 1 - k) / (c + 1)``."""
        return self.n_asked * (self.n_hidden + 1 - self.rank) / (self.n_hidden + 1)

    @property
    def std(self) -> float:
        """Standard deviation of the number outside."""
        if self._certain:
            return 0.0
        return float(betabinom.std(self.n_asked, self.n_hidden + 1 - self.rank, self.rank))

    @property
    def _certain(self) -> bool:
        return self.n_asked == 0 or self.rank > self.n_hidden

    @property
    def probabilities(self) -> Array:
        """Probability of 0, 1, ..., m rows outside, shape (m + 1,)."""
        if self._certain:
            return np.append(1.0, np.zeros(self.n_asked))
        return betabinom.pmf(
            np.arange(self.n_asked + 1), self.n_asked, self.n_hidden + 1 - self.rank, self.rank
        )

    def cdf(self, count: Any) -> Any:
        """Return the probability that at most so many rows are outside.

        Parameters
        ----------
        count : int or array of int

        Returns
        -------
        float or array
        """
        cumulated = np.append(0.0, np.minimum(np.cumsum(self.probabilities), 1.0))
        cumulated[-1] = 1.0
        places = np.clip(np.floor(np.asarray(count, dtype=float)), -1, self.n_asked).astype(int) + 1
        return float(cumulated[places]) if np.ndim(count) == 0 else cumulated[places]

    def quantile(self, certainty: float = 0.95) -> int:
        """Return the smallest t such that, with this certainty, at most t rows are outside.

        Parameters
        ----------
        certainty : float, default=0.95
            Strictly between 0 and 1.

        Returns
        -------
        int
        """
        check_share("certainty", certainty)
        reached = np.cumsum(self.probabilities) >= certainty - 1e-12
        return int(np.argmax(reached)) if reached.any() else self.n_asked

    def plot(self, *, certainty: float = 0.95, truth: int | None = None, ax: Any = None) -> ColumnLawDisplay:
        """Draw the law, the bound that holds with a certainty and, if it is known, the true number.

        Parameters
        ----------
        certainty : float, default=0.95
        truth : int, optional
            Number of rows that were outside.
        ax : matplotlib Axes, optional
            Where to plot; a new figure by default.

        Returns
        -------
        ColumnLawDisplay
        """
        bound = self.quantile(certainty)
        return ColumnLawDisplay(self.probabilities, bound, certainty, truth).plot(ax=ax)

    def __str__(self) -> str:
        expected = f"{self.mean:.3g}" if self.mean < 100 else f"{self.mean:.0f}"
        return (
            f"With 95 % certainty at most {self.quantile(0.95)} of {self.n_asked} values are outside; "
            f"{expected} are expected."
        )


@dataclass(frozen=True)
class ClassColumnLaw:
    """What can be said of the number outside when every class has a threshold of its own.

    Parameters
    ----------
    n_asked : int
        Number of asked rows, of all classes together; how many are of which class is not known.
    n_labelled, n_hidden, ranks : sequence of int
        Of every class: number of labels, how many of them are hidden, and which hidden score is the threshold.

    Notes
    -----
    The number outside among the m_y asked rows of class y has the law ``ColumnLaw(m_y, c_y, k_y)``, independently of
    the other classes, but m_y is unknown. It is bounded first: of the rows of class y, l_y have a label by chance
    alone, so the hypergeometric distribution says that ``m_y <= u_y``, for all classes at once, but for a fifth of the
    uncertainty allowed. Then, with the rest of it, the quantile of the sum of independent numbers with the laws
    ``ColumnLaw(u_y, c_y, k_y)`` is a bound, because more rows only mean more outside.

    Examples
    --------
    >>> from transduce.column import ClassColumnLaw
    >>> law = ClassColumnLaw(n_asked=40, n_labelled=(39, 39), n_hidden=(19, 19), ranks=(18, 18))
    >>> law.mean, law.quantile(0.9)
    (4.0, 11)
    >>> ColumnLaw(n_asked=40, n_hidden=38, rank=36).quantile(0.9)  # one threshold for both classes
    6
    """

    n_asked: int
    n_labelled: Sequence[int]
    n_hidden: Sequence[int]
    ranks: Sequence[int]

    @classmethod
    def at(
        cls, confidence: float, *, n_asked: int, n_labelled: Sequence[int], n_hidden: Sequence[int]
    ) -> ClassColumnLaw:
        """Return the law at a level.

        Parameters
        ----------
        confidence : float
        n_asked : int
        n_labelled, n_hidden : sequence of int
            Labels of every class, and how many of them are hidden.

        Returns
        -------
        ClassColumnLaw
        """
        ranks = tuple(hidden_rank(confidence, c) for c in n_hidden)
        return cls(n_asked, tuple(n_labelled), tuple(n_hidden), ranks)

    def of_class(self, number: int, n_asked: int) -> ColumnLaw:
        """Return the law of one class, were `n_asked` of the asked rows of it.

        Parameters
        ----------
        number : int
            Position of the class.
        n_asked : int

        Returns
        -------
        ColumnLaw
        """
        return ColumnLaw(n_asked, self.n_hidden[number], self.ranks[number])

    @property
    def mean(self) -> float:
        """Bound on the expected number outside, whatever the classes."""
        return max(self.of_class(y, self.n_asked).mean for y in range(len(self.ranks)))

    def most_of_class(self, number: int, certainty: float) -> int:
        """Return how many of the asked rows are of a class at most, with a certainty.

        Parameters
        ----------
        number : int
            Position of the class.
        certainty : float

        Returns
        -------
        int
        """
        own, total = self.n_labelled[number], sum(self.n_labelled)

        def possible(size: int) -> bool:
            return bool(hypergeom.cdf(own, total + self.n_asked, own + size, total) > 1.0 - certainty)

        low, high = (
            0,
            self.n_asked + 1,
        )  # the larger the class, the less likely that so few of it have a label
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if possible(middle) else (low, middle)
        return low

    def quantile(self, certainty: float = 0.95) -> int:
        """Return a bound on the number outside that holds with this certainty, whatever the classes.

        Parameters
        ----------
        certainty : float, default=0.95

        Returns
        -------
        int
        """
        doubt = 1.0 - check_share("certainty", certainty)
        total = np.ones(1)
        for y in range(len(self.ranks)):
            if self.ranks[y] <= self.n_hidden[y]:
                size = self.most_of_class(y, 1.0 - 0.2 * doubt / len(self.ranks))
                total = fftconvolve(total, self.of_class(y, size).probabilities)
        reached = np.cumsum(total) >= 1.0 - 0.8 * doubt + 1e-12
        return min(int(np.argmax(reached)) if reached.any() else self.n_asked, self.n_asked)

    def __str__(self) -> str:
        return (
            f"With 95 % certainty at most {self.quantile(0.95)} of {self.n_asked} values are outside, whatever "
            "their classes."
        )


def check_share(name: str, value: Any) -> float:
    """Return a share as a float, or raise a ValueError unless it lies strictly between 0 and 1."""
    ok = isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)
    if not ok or not 0.0 < float(value) < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1; got {value!r}.")
    return float(value)


def confidence_for(share: float, certainty: float, *, n_asked: int, n_hidden: int) -> float:
    """Return the smallest level at which at least a share of the asked rows is inside, with a certainty.

    Parameters
    ----------
    share : float
        Wanted share of rows inside, above 0 and up to 1.
    certainty : float
        Strictly between 0 and 1.
    n_asked, n_hidden : int
        Numbers of asked rows and of hidden labels.

    Returns
    -------
    float
        ``k / (c + 1)`` for the smallest rank k at which the law puts probability `certainty` on no more than
        ``m (1 - share)`` rows outside. A ValueError says how many hidden labels would do if no level does.

    Examples
    --------
    >>> confidence_for(0.9, 0.95, n_asked=256, n_hidden=39)
    0.975
    """
    certainty = check_share("certainty", certainty)
    if share != 1:
        check_share("share (or 1)", share)
    if n_asked == 0:
        raise ValueError("No row is asked, so that there is no share of them.")
    most = int(np.floor(n_asked * (1.0 - share) + 1e-9))
    if n_hidden and ColumnLaw(n_asked, n_hidden, n_hidden).cdf(most) >= certainty - 1e-12:
        low, high = 0, n_hidden  # the law's cdf increases with the rank
        while high - low > 1:
            middle = (low + high) // 2
            enough = ColumnLaw(n_asked, n_hidden, middle).cdf(most) >= certainty - 1e-12
            low, high = (low, middle) if enough else (middle, high)
        return high / (n_hidden + 1)
    raise ValueError(
        f"No level makes at least {100 * share:g} % of {n_asked} rows inside with {100 * certainty:g} % certainty "
        f"when {n_hidden} labels are hidden: it takes {_hidden_needed(most, certainty, n_asked)} hidden labels."
    )


def _hidden_needed(most: int, certainty: float, n_asked: int) -> int:
    """Return the fewest hidden labels with which at most `most` rows exceed the largest hidden score."""

    def enough(n_hidden: int) -> bool:
        # log P(more than `most` of m are above all c): the top `most + 1` of all c + m are asked rows.
        above = gammaln(n_asked + 1) - gammaln(n_asked - most) + gammaln(n_hidden + n_asked - most)
        return above - gammaln(n_hidden + n_asked + 1) <= np.log1p(-certainty) + 1e-12

    high = 1
    while not enough(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
