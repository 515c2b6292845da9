"""Certificates about a finite table.

How many wanted rows are still missed, how many answers are still wrong.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln

from transduce.core import checks
from transduce.core.ranks import calibration_rank
from transduce.core.types import AnyArray, Array, Mask
from transduce.population.betting import BETS, log_bets, log_mean_of_bets, log_wealth

if TYPE_CHECKING:
    from transduce.app.labelling.journal import Label
    from transduce.app.labelling.state import Freeze, State

# A person labels rows in any order, guided by anything. Some rows are drawn: uniformly from those
# that are unlabelled at that moment. If the table has R hits in all, and h of them are known when a
# row is drawn from U rows, the draw is a hit with probability (R - h) / U, whatever happened
# before. So for every candidate total r there is a martingale that starts at 1 and, if r is the
# true total, ever reaches 1 / level with probability at most `level` (Ville). It rises with r.
# Totals whose martingale has reached it are rejected for good: looking after every label is
# allowed.
MOST_POINTS = 40  # of a curve
MOST_CLASSES = 12  # whose shares are bounded
MORE_DRAWS = (30, 100, 300)  # for which it is told what they would bring
MOST_ROWS = 10**15  # numbers of rows up to here are exact as floats
ZETA_3 = 1.2020569031595942  # the sum of 1 / k^3


@dataclass(frozen=True, eq=False)
class Draws:
    """The random draws so far, in order.

    What nobody could judge, or has judged yet, counts as a hit.

    Parameters
    ----------
    unlabelled, known : int array of shape (s,)
        How many rows each was drawn from, and how many hits were known, outside those rows, before
        it.
    hits : boolean array of shape (s,)
        Whether it was a hit.

    Examples
    --------
    >>> draws = Draws.of([(100, 7, False), (99, 7, True)])
    >>> len(draws), draws.known.tolist()
    (2, [7, 7])
    """

    unlabelled: AnyArray
    known: AnyArray
    hits: Mask

    def __post_init__(self) -> None:
        shapes = {np.shape(part) for part in (self.unlabelled, self.known, self.hits)}
        if len(shapes) != 1 or len(shapes.pop()) != 1:
            raise ValueError("unlabelled, known and hits must have one entry for each draw.")
        if np.any(np.asarray(self.unlabelled) < 1) or np.any(np.asarray(self.known) < 0):
            raise ValueError(
                "A draw is from 1 row or more, "
                "and the number of hits known before it is not negative."
            )

    @classmethod
    def of(cls, rows: list[tuple[int, int, bool]]) -> Draws:
        """Return draws from a list of (unlabelled, known, hit)."""
        try:
            table = np.array(rows, dtype=np.int64).reshape(len(rows), 3)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(
                "Draws are a list of (unlabelled, known, hit): two whole numbers and True or False."
            ) from None
        return cls(table[:, 0], table[:, 1], table[:, 2].astype(bool))

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, part: slice) -> Draws:
        return Draws(self.unlabelled[part], self.known[part], self.hits[part])


@dataclass(frozen=True, eq=False)
class Audit:
    """What is known of the hits of a table at one moment.

    Parameters
    ----------
    draws : Draws
        The random draws so far.
    found, doubtful : int
        Hits among the labelled rows, and rows that were drawn and not judged: each may be a hit.
    pool : int
        All other unlabelled rows, from which the next row is drawn.

    Examples
    --------
    >>> Audit(Draws.of([]), found=7, doubtful=0, pool=100).most
    107
    """

    draws: Draws
    found: int
    doubtful: int
    pool: int

    def __post_init__(self) -> None:
        checks.check_type("draws", self.draws, Draws, "Draws")
        for name in ("found", "doubtful", "pool"):
            checks.check_whole(name, getattr(self, name), least=0, most=MOST_ROWS)

    @property
    def most(self) -> int:
        """The largest total there can be."""
        return self.found + self.doubtful + self.pool


def log_martingale(draws: Draws, total: int) -> Array:
    """Return the logarithm of the martingale of a candidate total, after each draw.

    Returns shape (s,).
    """
    return log_wealth(draws.hits.astype(float), _means(draws, total))


def _means(draws: Draws, total: int) -> Array:
    """Return the share of hits among the rows of each draw, if a candidate total is right."""
    # Rows in doubt count as known hits, so there may seem to be more of these than the total: then
    # none is left.
    return np.asarray(np.maximum(total - draws.known, 0) / draws.unlabelled)


def first_rejection(draws: Draws, total: int, level: float) -> int | None:
    """Return after how many draws a total was rejected; None if it is not."""
    reached = log_martingale(draws, total) >= -np.log(level)
    if reached.any():
        return int(np.argmax(reached)) + 1
    return None


def total_at_most(audit: Audit, level: float) -> int:
    """Return the largest total that no look so far has rejected."""
    totals = range(audit.found + 1, audit.most + 1)
    draws = audit.draws
    # The rejected totals are the large ones.
    return audit.found + bisect_left(
        totals,
        True,
        key=lambda r: first_rejection(draws, r, level) is not None,
    )


def first_total_below(found: int, recall: float) -> int:
    """Return the smallest total of which the found hits are less than the recall wanted."""
    if found:
        return found * 1 // _written(recall) + 1
    return 1


def _written(share: float) -> Fraction:
    """Return the fraction that a decimal number stands for."""
    return Fraction(repr(float(share)))


def draws_needed(audit: Audit, total: int, level: float) -> int | None:
    """Return how many further draws reject a total if none of them is a hit."""
    if total > audit.most or first_rejection(audit.draws, total, level) is not None:
        return 0
    missing = total - audit.found - audit.doubtful
    if missing <= 0:
        return None
    bets = np.zeros(len(BETS))
    if len(audit.draws):
        hits = audit.draws.hits.astype(float)
        bets = log_bets(hits, _means(audit.draws, total))[:, -1]

    def enough(count: int) -> bool:
        return float(log_mean_of_bets(bets + _log_misses(audit.pool, missing, count))) >= -np.log(
            level
        )

    # One more leaves too few rows.
    return 1 + bisect_left(range(1, audit.pool - missing + 1), True, key=enough)


def _log_misses(pool: int, missing: int, count: int) -> Array:
    """Return the logarithm of each bet's product over misses in a row.

    Of (u - bet missing) / (u - missing).
    """
    left = pool - np.append(BETS, 1.0) * missing
    products = gammaln(left + 1.0) - gammaln(left - count + 1.0)
    return np.asarray(products[:-1] - products[-1])


def after_more_draws(audit: Audit, count: int) -> Audit:
    """Return an audit after so many more draws, if hits are as frequent in them as so far."""
    count = min(count, audit.pool)
    rate = 0.0
    if len(audit.draws):
        rate = float(audit.draws.hits.mean())
    n_made = np.arange(count)
    hits_before = np.floor(rate * n_made).astype(np.int64)
    hits = np.floor(rate * (n_made + 1)).astype(np.int64) - hits_before
    old = audit.draws
    draws = Draws(
        np.append(old.unlabelled, audit.pool - n_made),
        np.append(old.known, audit.found + audit.doubtful + hits_before),
        np.append(old.hits, hits.astype(bool)),
    )
    return Audit(draws, audit.found + int(hits.sum()), audit.doubtful, audit.pool - count)


def share_of_level(number: int) -> float:
    """Return the part of the level that the certificate of this number may use.

    All of them together use it up.
    """
    # Answers can be frozen again and again; the first time uses 83 %.
    return 1.0 / (ZETA_3 * number**3)


@dataclass(frozen=True)
class RecallCertificate:
    """What is certain about the share of wanted rows that are found.

    Parameters
    ----------
    found, total_at_most : int
        Wanted rows found, and how many there are at most, in the whole table.
    unlabelled, n_draws : int
        Rows without a label, and random draws so far.
    recall, certainty : float
        The share to be reached, and the probability that no statement of this kind, at any time, is
        wrong.
    draws_needed : int or None
        Random draws until it is certain, if none is a wanted row; None if rows in doubt have to be
        judged first.

    Examples
    --------
    >>> draws = Draws.of([(1000 - s, 95, False) for s in range(600)])
    >>> certificate = certify_recall(Audit(draws, 95, 0, 400), recall=0.95, certainty=0.95)
    >>> certificate.reached, certificate.missed_at_most, round(certificate.recall_at_least, 3)
    (True, 3, 0.969)
    """

    found: int
    total_at_most: int
    unlabelled: int
    n_draws: int
    recall: float
    certainty: float
    draws_needed: int | None

    @property
    def missed_at_most(self) -> int:
        """How many wanted rows are not found, at most."""
        return self.total_at_most - self.found

    @property
    def recall_at_least(self) -> float:
        """The share of the wanted rows that are found, at least; 1 if there can be none."""
        if self.total_at_most:
            return self.found / self.total_at_most
        return 1.0

    @property
    def reached(self) -> bool:
        """Whether the share wanted is certain."""
        return self.total_at_most < first_total_below(self.found, self.recall)


def certify_recall(audit: Audit, *, recall: float, certainty: float) -> RecallCertificate:
    """Return what is certain about the share of wanted rows that are found.

    Parameters
    ----------
    audit : Audit
        Draws and counts; a hit is a wanted row.
    recall, certainty : float
        The share to be reached, and the probability that no such statement, at any time, is wrong.

    Returns
    -------
    RecallCertificate

    Examples
    --------
    >>> certify_recall(Audit(Draws.of([]), 95, 0, 1000), recall=0.95, certainty=0.95).draws_needed
    422
    """
    checks.check_type("audit", audit, Audit, "an Audit")
    checks.check_share("certainty", certainty)
    checks.check_number("recall", recall)
    if not 0.0 < recall <= 1.0:
        raise ValueError(f"recall must be above 0 and at most 1; got {recall:g}.")
    level = 1.0 - certainty
    unlabelled = audit.doubtful + audit.pool
    most = total_at_most(audit, level)
    needed = draws_needed(audit, first_total_below(audit.found, recall), level)
    return RecallCertificate(
        audit.found,
        most,
        unlabelled,
        len(audit.draws),
        recall,
        certainty,
        needed,
    )


@dataclass(frozen=True)
class WrongCertificate:
    """What is certain about the number of frozen answers that are wrong.

    Parameters
    ----------
    found, wrong_at_most : int
        Wrong answers found since answers were frozen, and how many of the remaining ones are wrong,
        at most.
    remaining, n_draws : int
        Rows that still have an answer and no label, and random draws since the answers were frozen.
    share, certainty : float
        The share of wrong answers to be certain of, and the probability that no such statement is
        ever wrong.
    draws_needed : int or None
        Random draws until it is certain, if none finds a wrong answer; None if rows in doubt have
        to be judged first.

    Examples
    --------
    >>> draws = Draws.of([(1000 - s, 0, False) for s in range(100)])
    >>> certify_answers(Audit(draws, 0, 0, 900), share=0.05, certainty=0.95).wrong_at_most
    30
    """

    found: int
    wrong_at_most: int
    remaining: int
    n_draws: int
    share: float
    certainty: float
    draws_needed: int | None

    @property
    def reached(self) -> bool:
        """Whether the share wanted is certain."""
        return self.wrong_at_most <= _allowed(self.remaining, self.share)


def certify_answers(audit: Audit, *, share: float, certainty: float) -> WrongCertificate:
    """Return what is certain about the number of frozen answers that are wrong.

    Parameters
    ----------
    audit : Audit
        Draws and counts since the answers were frozen; a hit is a wrong answer.
    share, certainty : float
        The share of wrong answers among the remaining ones, and the probability that no such
        statement is ever wrong.

    Returns
    -------
    WrongCertificate

    Examples
    --------
    >>> certify_answers(Audit(Draws.of([]), 0, 0, 900), share=0.05, certainty=0.95).wrong_at_most
    900
    """
    checks.check_type("audit", audit, Audit, "an Audit")
    checks.check_share("certainty", certainty)
    checks.check_number("share", share)
    if not 0.0 <= share < 1.0:
        raise ValueError(f"share must be at least 0 and below 1; got {share:g}.")
    level = 1.0 - certainty
    remaining = audit.doubtful + audit.pool
    wrong = total_at_most(audit, level) - audit.found
    needed = draws_needed(audit, audit.found + _allowed(remaining, share) + 1, level)
    return WrongCertificate(
        audit.found,
        wrong,
        remaining,
        len(audit.draws),
        share,
        certainty,
        needed,
    )


def _allowed(remaining: int, share: float) -> int:
    return int(remaining * _written(share))


def bound_curve(audit: Audit, level: float) -> list[tuple[int, int]]:
    """Return after which draws totals were rejected, and the largest total left then."""
    count = len(audit.draws)
    bound = total_at_most(audit, level)
    first = audit.most
    if count:  # hits found since among them, rows that could be hits before the first draw
        first = max(first, int(audit.draws.unlabelled[0] + audit.draws.known[0]))
    curve = {0: first}
    totals = np.geomspace(bound + 1, max(first, bound + 1), MOST_POINTS).round().astype(int)
    for total in np.unique(totals)[::-1].tolist():
        after = first_rejection(audit.draws, total, level)
        if after is not None:
            curve[after] = total - 1
    return sorted((curve | {count: bound}).items())


@dataclass(frozen=True)
class Intervals:
    """How far the random draws are that calibrate intervals, or sets of classes."""

    planned: int = 0  # draws fixed beforehand
    drawn: int = 0  # how many of them were made
    answered: int = 0  # how many of them were judged
    spoilt: bool = False  # whether another row was labelled on purpose before the last of them
    searched: bool = False  # the same, after the last of them
    earlier: int = 0  # draws of the complete block before this one
    waiting: bool = False  # whether the last of them waits to be judged
    missing: int = 0  # draws skipped that must be judged first, since each counts as badly answered

    @property
    def complete(self) -> bool:
        """Whether all draws planned were made, and enough of them judged."""
        return 0 < self.planned == self.drawn and not (self.spoilt or self.waiting or self.missing)

    @property
    def ready(self) -> bool:
        """Whether intervals or sets can be made."""
        return self.complete or self.earlier > 0


@dataclass(frozen=True)
class ShareInterval:
    """Between which numbers of all rows are of the wanted class: it holds at every look.

    Parameters
    ----------
    fewest, most, n_rows : int
        Rows of the class, at least and at most, and all rows.
    certainty : float
        That both hold, at this look and at all others.

    Examples
    --------
    >>> ShareInterval(20, 50, 1000, 0.95).ends
    (0.02, 0.05)
    """

    fewest: int
    most: int
    n_rows: int
    certainty: float

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the interval, as shares of all rows."""
        return self.fewest / self.n_rows, self.most / self.n_rows


def certify_share(wanted: Audit, others: Audit, *, certainty: float) -> ShareInterval:
    """Return between which numbers of all rows are wanted, from random draws of any stretch.

    `others` is the audit of the same rows with those as hits that are not wanted. Each end has half
    of the doubt.
    """
    level = (1.0 - certainty) / 2.0
    n_rows = wanted.found + others.found + wanted.doubtful + wanted.pool
    fewest = n_rows - total_at_most(others, level)
    return ShareInterval(max(fewest, wanted.found), total_at_most(wanted, level), n_rows, certainty)


@dataclass(frozen=True, eq=False)
class Certificates:
    """All that is certain at one moment."""

    recall: RecallCertificate | None  # about the wanted class; None if none is wanted
    answers: WrongCertificate | None  # about the answers frozen last; None if none were
    intervals: Intervals  # about the calibration of intervals
    recall_curve: list[tuple[int, float]]  # draws, and the recall that was certain then
    answers_curve: list[tuple[int, int]]  # draws, and how many answers could be wrong then
    share: ShareInterval | None = None  # of the wanted class; None if none is wanted, or drawn
    predictions: WrongCertificate | None = None  # about predictions made elsewhere
    predictions_curve: list[tuple[int, int]] = field(default_factory=list)
    shares: list[tuple[Label, ShareInterval]] = field(default_factory=list)  # of the classes
    ahead: list[tuple[int, float]] = field(default_factory=list)  # more draws, and the bound then


def certify(state: State, wrong_share: float) -> Certificates:
    """Return all certificates of a state."""
    recall = None
    recall_curve: list[tuple[int, float]] = []
    share = None
    if state.wanted is not None:
        recall, recall_curve = _certify_wanted(state)
        share = _certify_share(state)
    answers = None
    answers_curve: list[tuple[int, int]] = []
    if state.freezes:
        # Each freeze has its own part of the level: answers can be frozen again and again.
        level = (1.0 - state.certainty) * share_of_level(len(state.freezes))
        answers, answers_curve = _certify_frozen(state, state.freezes[-1], level, wrong_share)
    certificates = Certificates(
        recall, answers, intervals(state), recall_curve, answers_curve, share
    )
    if state.predictions is None:
        return replace(certificates, ahead=_recall_ahead(state))
    level = 1.0 - state.certainty
    predictions, curve = _certify_frozen(state, state.predictions, level, wrong_share)
    return replace(
        certificates,
        predictions=predictions,
        predictions_curve=curve,
        shares=class_shares(state),
        ahead=_wrong_ahead(state, level),
    )


def class_shares(state: State) -> list[tuple[Label, ShareInterval]]:
    """Return how frequent the classes are, those with most labels first; none for numbers."""
    if state.numbers:
        return []
    frequent = Counter(state.labelled.values())
    labels = sorted(state.classes, key=lambda label: -frequent[label])[:MOST_CLASSES]
    return [(label, _certify_class(state, label)) for label in labels]


def _certify_class(state: State, wanted: Label) -> ShareInterval:
    """Return between which shares a class lies, whether it is the wanted one or another."""
    of_class = state.audit(lambda row, label: label == wanted)
    of_others = state.audit(lambda row, label: label != wanted)
    return certify_share(of_class, of_others, certainty=state.certainty)


def _recall_ahead(state: State) -> list[tuple[int, float]]:
    """Return the recall that more draws would make certain, if hits stay as frequent in them."""
    if state.wanted is None:
        return []
    audit = state.audit(state.is_wanted)
    level = 1.0 - state.certainty
    ahead = []
    for count in MORE_DRAWS:
        if count < audit.pool:
            later = after_more_draws(audit, count)
            recall = 1.0
            most = total_at_most(later, level)
            if most:
                recall = later.found / most
            ahead.append((count, recall))
    return ahead


def _wrong_ahead(state: State, level: float) -> list[tuple[int, float]]:
    """Return the share of wrong predictions that more draws would bound, if errors stay as rare."""
    assert state.predictions is not None
    audit = state.audit(state.is_wrong(state.predictions), state.predictions.first_draw)
    ahead = []
    for count in MORE_DRAWS:
        if count < audit.pool:
            later = after_more_draws(audit, count)
            wrong = total_at_most(later, level) - later.found
            ahead.append((count, wrong / (later.doubtful + later.pool)))
    return ahead


def _certify_wanted(state: State) -> tuple[RecallCertificate, list[tuple[int, float]]]:
    """Return what is certain about the wanted rows, now and after earlier draws."""
    certainty = state.certainty
    audit = state.audit(state.is_wanted)
    hits = state.outside(state.is_wanted, doubt=False)
    recall = certify_recall(audit, recall=state.recall, certainty=certainty)
    curve = []
    *earlier, (last_draw, _) = bound_curve(audit, 1.0 - certainty)
    for draw, total in earlier:
        share = 1.0
        if total:
            share = float(hits[draw]) / total
        curve.append((draw, share))
    curve.append((last_draw, recall.recall_at_least))
    return recall, curve


def _certify_share(state: State) -> ShareInterval | None:
    """Return between which shares the wanted class lies; None before the first random draw."""
    wanted = state.audit(state.is_wanted)
    if not len(wanted.draws):
        return None
    others = state.audit(lambda row, label: not state.is_wanted(row, label))
    return certify_share(wanted, others, certainty=state.certainty)


def _certify_frozen(
    state: State, freeze: Freeze, level: float, wrong_share: float
) -> tuple[WrongCertificate, list[tuple[int, int]]]:
    """Return what is certain about frozen answers, now and after earlier draws."""
    is_wrong = state.is_wrong(freeze)
    audit = state.audit(is_wrong, freeze.first_draw)
    wrong = state.outside(is_wrong, doubt=False)[freeze.first_draw :]
    certified = certify_answers(audit, share=wrong_share, certainty=1.0 - level)
    answers = replace(certified, certainty=state.certainty)
    *earlier, (last_draw, _) = bound_curve(audit, level)
    curve = [(draw, max(total - int(wrong[draw]), 0)) for draw, total in earlier]
    curve.append((last_draw, answers.wrong_at_most))
    return answers, curve


def intervals(state: State) -> Intervals:
    """Return how far the draws are that calibrate intervals."""
    plan = state.plan
    if plan is None:
        return Intervals()
    rows = state.drawn_in(plan)
    earlier = 0
    if state.block is not None and state.block.first_draw < plan.first_draw:
        earlier = state.block.count
    waiting = state.pending in rows
    missing = 0
    if plan.level and len(rows) == plan.count and not waiting:
        calibrate = state.calibrating(plan, plan.level)
        worst = plan.aside + sum(row not in state.labels for row in rows)
        finite = sum(row in state.labels for row in calibrate)
        missing = max(calibration_rank(plan.level, finite + worst) - finite, 0)
    return Intervals(
        planned=plan.count,
        drawn=len(rows),
        answered=sum(row in state.labels for row in rows),
        spoilt=plan.spoilt,
        searched=plan.searched,
        earlier=earlier,
        waiting=waiting,
        missing=missing,
    )
