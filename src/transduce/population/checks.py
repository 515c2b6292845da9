"""Predictions made elsewhere, and exactly how often they are wrong.

Somebody checked some of the rows.

A language model, a vendor or an old rule has predicted every row, and the truth is known at some of
them. The predictions did not see these labels, so all of them calibrate. Within a stratum the rows
that were drawn and checked are a simple random sample, so numbers of wrong rows, or of rows of a
class, are hypergeometric; over several strata they are added up by `strata.total_interval`.

Given how many of the drawn rows have a predicted class, those rows are a simple random sample of
all rows with that prediction. So a simple random sample may be taken as a stratified one, by what
was predicted: the better the predictions, the narrower the interval.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from transduce.core.types import AnyArray, Mask
from transduce.population.strata import most_marked, total_interval
from transduce.population.stratum import Stratum

# If fewer drawn rows than this are expected to have a predicted class, its own stratum would often
# be empty, and the interval comes from labels alone. This is decided by numbers known before the
# draw, so it is no choice by the result. In 31 cases of benchmarks/audit.py intervals of simple
# draws were then at most 1.02 times as wide as those of labels alone (30 checks of a class of 2 %).
FEWEST_EXPECTED = 1.0


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """Rows with predictions, some of which were drawn at random and checked.

    Attributes
    ----------
    predicted, true : int array of shape (n,)
        Codes of the predicted and of the true class; -1 where the truth is not known.
    drawn : boolean array of shape (n,)
        Rows that were drawn at random to be checked, and speak for the others of their stratum.
        One that nobody could answer counts against every statement: it may have been hard because
        it is wrong.
    strata : int array of shape (n,)
        Number of the stratum of each row; 0 everywhere for a simple random sample.
    drawn_as_one : bool
        Whether strata divide what was drawn as one simple random sample.
    drawn_from : boolean array of shape (n,) or None
        Rows that could be drawn: the drawn ones speak for these, and for no others. By default the
        drawn rows and those without a label. Rows that were checked on purpose since the draw must
        not leave them: what chose these rows may depend on their labels.
    """

    predicted: AnyArray
    true: AnyArray
    drawn: Mask
    strata: AnyArray
    drawn_as_one: bool = False
    drawn_from: Mask | None = None

    @cached_property
    def checked(self) -> Mask:
        """Rows whose truth is known, drawn or not, shape (n,)."""
        return self.true >= 0

    @property
    def unanswered(self) -> Mask:
        """Rows that were drawn and got no label, shape (n,)."""
        return self.drawn & ~self.checked

    @cached_property
    def represented(self) -> Mask:
        """Rows that the drawn ones are a random sample of, themselves among them, shape (n,)."""
        if self.drawn_from is not None:
            return self.drawn_from
        return self.drawn | ~self.checked

    @property
    def wrong(self) -> Mask:
        """Checked rows whose prediction is not the truth, shape (n,)."""
        return self.checked & (self.true != self.predicted)

    @property
    def is_simple(self) -> bool:
        """Whether the drawn rows are one simple random sample."""
        return not self.strata.any()

    def at(self, rows: Mask) -> CheckedRows:
        """Return some of the rows, such as those of a group.

        Given how many of them were drawn, those are a simple random sample of them.
        """
        drawn_from = None
        if self.drawn_from is not None:
            drawn_from = self.drawn_from[rows]
        return replace(
            self,
            predicted=self.predicted[rows],
            true=self.true[rows],
            drawn=self.drawn[rows],
            strata=self.strata[rows],
            drawn_from=drawn_from,
        )

    def divided_by(self, codes: AnyArray) -> CheckedRows:
        """Return a simple random sample divided by codes (n,) that no label decided."""
        return replace(self, strata=pd.factorize(codes)[0], drawn_as_one=True)

    @cached_property
    def stratum_sizes(self) -> AnyArray:
        """How many rows of each stratum the drawn ones speak for, shape (H,)."""
        n_strata = int(self.strata.max(initial=0)) + 1
        return np.bincount(self.strata[self.represented], minlength=n_strata)

    @cached_property
    def drawn_rows(self) -> AnyArray:
        """Positions of the drawn rows."""
        return np.flatnonzero(self.drawn)

    @cached_property
    def checked_otherwise(self) -> AnyArray:
        """Positions of rows that were checked, but not drawn."""
        return np.flatnonzero(self.checked & ~self.drawn)

    @cached_property
    def n_unknown(self) -> int:
        """Rows without a label that could not be drawn."""
        return int(np.sum(~self.checked & ~self.represented))

    def count_class(self, code: int, *, doubtful: bool) -> MarkedRows:
        """Return how many rows are of a class, as far as known; for `doubtful` see `count_strata`.

        One stratum stands apart if the class is predicted for most of its rows and for few of all
        others: such as that class, if strata are what was predicted.
        """
        counts = self.count_strata(self.checked & (self.true == code), doubtful=doubtful)
        if len(counts.strata) <= 2:
            return counts
        sizes = self.stratum_sizes
        is_predicted = self.represented & (self.predicted == code)
        predicted = np.bincount(self.strata[is_predicted], minlength=len(sizes))
        shares = predicted[sizes > 0] / sizes[sizes > 0]
        often = np.flatnonzero(shares > 0.5)
        if len(often) == 1:
            return replace(counts, apart=int(often[0]))
        return replace(counts, rarely_marked=2 * int(predicted.sum()) <= int(sizes.sum()))

    def count_strata(self, marked: Mask, *, doubtful: bool) -> MarkedRows:
        """Return how many rows are marked, stratum by stratum, known only where checked.

        Drawn rows without an answer are marked too if they are `doubtful`.
        """
        # Rows that had a label before the draw are known: they are no part of any stratum.
        n_strata = len(self.stratum_sizes)
        rows = self.drawn_rows
        is_checked = self.true[rows] >= 0
        is_counted = marked[rows] & is_checked
        n_unanswered = int(np.sum(~is_checked))
        n_doubtful = 0
        if doubtful:
            is_counted = is_counted | ~is_checked
            n_doubtful = n_unanswered
        sizes = self.stratum_sizes.tolist()
        drawn = np.bincount(self.strata[rows], minlength=n_strata).tolist()
        hits = np.bincount(self.strata[rows[is_counted]], minlength=n_strata).tolist()
        strata = tuple(
            Stratum(sizes[h], drawn[h], hits[h]) for h in range(n_strata) if sizes[h] > 0
        )
        others = self.checked_otherwise
        is_later = self.represented[others]
        return MarkedRows(
            strata,
            n_known=int(np.sum(marked[others[~is_later]])),
            n_doubtful=n_doubtful,
            n_unanswered=n_unanswered,
            drawn_as_one=self.drawn_as_one,
            n_later=int(np.sum(is_later)),
            n_later_marked=int(np.sum(marked[others[is_later]])),
            n_unknown=self.n_unknown,
        )


@dataclass(frozen=True)
class MarkedRows:
    """How many rows are marked (wrong, or of a class), as far as random samples of strata tell."""

    strata: tuple[Stratum, ...]
    n_known: int  # marked rows that had a label before the draw
    n_doubtful: int = 0  # drawn rows without an answer that count as marked
    n_unanswered: int = 0  # all drawn rows without an answer
    drawn_as_one: bool = False  # strata divide one simple random sample
    n_later: int = 0  # rows of the strata that were checked on purpose after the draw
    n_later_marked: int = 0
    n_unknown: int = 0  # rows without a label that could not be drawn: each may be marked
    apart: int | None = None  # the stratum that is thought to be unlike all others
    rarely_marked: bool = True  # whether few rows of (other) strata are thought to be marked

    @property
    def n_drawn(self) -> int:
        """Rows that were drawn and checked."""
        return sum(stratum.n_drawn for stratum in self.strata) - self.n_unanswered

    @property
    def n_unchecked(self) -> int:
        """Rows whose truth nobody knows."""
        return self._n_represented + self.n_unknown

    @property
    def _n_represented(self) -> int:
        """Rows whose truth nobody knows, and that the drawn rows speak for."""
        n_left = sum(stratum.n_left for stratum in self.strata)
        return n_left + self.n_unanswered - self.n_later

    @property
    def n_seen(self) -> int:
        """Marked rows among those that were checked."""
        return self.n_known + self._n_seen_marked

    @property
    def _n_seen_marked(self) -> int:
        """Marked rows of the strata that were checked, drawn or not."""
        return self._n_drawn_marked + self.n_later_marked

    @property
    def _n_drawn_marked(self) -> int:
        return sum(stratum.n_marked for stratum in self.strata) - self.n_doubtful

    @cached_property
    def estimated_unchecked(self) -> float:
        """Estimated number of marked rows among those that nobody checked; NaN if none was drawn.

        A stratum of which no row was drawn is taken to be like the others.
        """
        drawn = [stratum for stratum in self.strata if stratum.n_drawn]
        if not drawn:
            return np.nan if self.n_unchecked else 0.0
        n_represented = sum(stratum.n_rows for stratum in drawn)
        marked = sum(stratum.n_marked / stratum.n_drawn * stratum.n_rows for stratum in drawn)
        mean = marked / n_represented
        estimate = 0.0
        for stratum in self.strata:
            share = mean
            if stratum.n_drawn:
                share = stratum.n_marked / stratum.n_drawn
            estimate += share * stratum.n_left
        estimate += self.n_doubtful - self.n_later_marked
        return min(max(estimate, 0.0), float(self._n_represented)) + mean * self.n_unknown

    @property
    def estimated_total(self) -> float:
        """Estimated number of marked rows, checked or not."""
        return self.n_seen + self.estimated_unchecked

    def at_most_unchecked(self, certainty: float) -> int:
        """Return how many of the unchecked rows are marked at most, with a certainty."""
        most = most_marked(
            self.strata,
            1.0 - certainty,
            drawn_as_one=self.drawn_as_one,
            apart=self.apart,
            rarely_marked=self.rarely_marked,
        )
        return min(max(most - self._n_seen_marked, 0), self._n_represented) + self.n_unknown

    def total_interval(self, confidence: float) -> tuple[int, int]:
        """Return between which numbers of all rows are marked, with a confidence."""
        fewest, most = total_interval(
            self.strata,
            confidence,
            drawn_as_one=self.drawn_as_one,
            apart=self.apart,
            rarely_marked=self.rarely_marked,
        )
        if self.n_later:
            # What was seen is certain, also where it makes the draw an unlikely one.
            least = self._n_seen_marked + self.n_doubtful
            largest = least + self._n_represented - self.n_doubtful
            fewest, most = max(fewest, least), min(most, largest)
            fewest, most = min(fewest, largest), max(most, least)
        return self.n_known + fewest, self.n_known + most + self.n_unknown

    def after_more_checks(self, n_more: int) -> MarkedRows:
        """Return what is expected after more checks of the same kind, at the present rates."""
        n_left = sum(stratum.n_left for stratum in self.strata)
        n_open = n_left - self.n_later
        part = min(n_more, n_open) / max(n_left, 1)
        added = whole_parts([part * stratum.n_left for stratum in self.strata])
        expected = []
        for stratum, more in zip(self.strata, added, strict=True):
            expected.append(more * stratum.n_marked / max(stratum.n_drawn, 1))
        counts = whole_parts(expected)
        strata = []
        for stratum, more, marked in zip(self.strata, added, counts, strict=True):
            n_drawn = stratum.n_drawn + more
            n_marked = min(n_drawn, stratum.n_marked + marked)
            strata.append(Stratum(stratum.n_rows, n_drawn, n_marked))
        return replace(self, strata=tuple(strata))


def whole_parts(numbers: list[float]) -> list[int]:
    """Return whole numbers near some numbers, whose sum is their rounded sum.

    Each is rounded down, and those with the largest remainders get one more.
    """
    parts = [int(number) for number in numbers]
    lacking = round(sum(numbers)) - sum(parts)
    remainders = [number - part for number, part in zip(numbers, parts, strict=True)]
    largest_first = np.argsort(-np.array(remainders), kind="stable")
    for place in largest_first[:lacking].tolist():
        parts[place] += 1
    return parts


def class_interval(rows: CheckedRows, code: int, confidence: float) -> tuple[int, int]:
    """Return between which numbers of the rows are of a class, with a confidence."""
    strata = strata_for_class(rows, code)
    fewest, most = strata.count_class(code, doubtful=False).total_interval(confidence)
    if rows.unanswered.any():
        _, most = strata.count_class(code, doubtful=True).total_interval(confidence)
    return fewest, most


def strata_for_class(rows: CheckedRows, code: int) -> CheckedRows:
    """Return the rows in the strata that tell most of a class.

    A simple random sample is divided by whether the class was predicted, unless so few drawn rows
    are expected to have the rarer answer that its stratum would often be empty.
    """
    if not rows.is_simple:
        return rows
    represented = rows.represented
    predicted = rows.predicted == code
    n_rows = int(np.sum(represented))
    n_predicted = int(np.sum(represented & predicted))
    n_others = int(np.sum(represented & ~predicted))
    n_rarer = min(n_predicted, n_others)
    expected = np.sum(rows.drawn) * n_rarer / max(n_rows, 1)
    if expected < FEWEST_EXPECTED:
        return rows
    return rows.divided_by(predicted)
