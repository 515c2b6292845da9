"""`Guarantee`: what is guaranteed of the answers, as data; sentences are made of it last."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import Any

from transduce.core.assumptions import (
    CHANCE,
    LATER,
    LATER_DRAWN,
    LIMITED,
    join_assumptions,
    with_factor,
)
from transduce.core.findings import Drift, Limits, Verdict
from transduce.core.guarantee_sentences import (
    HOLDS,
    bound_on_rows,
    caution_on_choice,
    explain,
    state,
)
from transduce.core.ranks import fewest_calibration
from transduce.core.types import About, Kind, Within

UNEVEN = 1.5  # times as many rows as groups may be outside: groups differ much in size
# Levels that may be offered instead.
ROUND_LEVELS = (0.99, 0.98, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5)


@dataclass(frozen=True)
class CountBound:
    """A bound on a number of rows, with a certainty."""

    certainty: float  # probability with which the bound holds
    at_most: int  # the bound
    of: int  # number of rows that it is about
    expected: float | None = None  # upper bound on the expected number
    simplest: int | None = None  # the same bound if all rows got one answer, the most frequent
    # The same bound for the fit that the calibration labels judge, and at how many rows the fit to
    # all labels answers otherwise, all of which count as wrong.
    judged: int | None = None
    changed: int = 0

    @property
    def tells(self) -> bool:
        """Whether it says more than one answer for all rows would."""
        return self._is_small(self.at_most)

    @property
    def judged_tells(self) -> bool:
        """Whether the bound for the fit that the calibration labels judge says more than that."""
        return self.judged is not None and self._is_small(self.judged)

    def _is_small(self, at_most: int) -> bool:
        if self.simplest is None:
            return at_most < self.of
        return at_most < min(self.of, self.simplest)


@dataclass(frozen=True)
class Guarantee:
    """What is guaranteed about the answers, and why.

    Parameters
    ----------
    kind : {"exact", "approximate", "none"}
        Whether it holds in finite samples for any distribution, under the `assumptions`.
    about : {"", "interval", "region", "set", "selection"}
        What the guarantee is about.
    confidence : float or None
        Probability with which the interval, region or set of a row picked at random holds the
        truth.
    within : {"", "class", "category", "categories"}
        Where it holds: over all rows, or within every class, every category of a column, or every
        category of each of several columns.
    outside, wrong : CountBound or None
        Bounds on the number of unlabelled rows outside, and of wrong answers (numbers: off by more
        than `tolerance`).
    wrong_by_class : tuple of (class, CountBound)
        The same among the rows answered with each class, each bound by itself.
    tolerance : float or None
        By how much a number may be off.
    n_labelled, n_calibration, n_unreached : int
        Labels, how many of them were held out at random to calibrate, and rows without an answer.
    n_short, short : int, tuple of str
        Classes with too few calibration labels, which are in every set, and such categories.
    n_groups, n_other : int
        Groups that calibrate, if it is about a row of a new group, and rows of groups with labels,
        not covered.
    of_rows : float or None
        Where each group counts once: the share of the rows that may be outside if those groups are
        the largest.
    n_empty : int
        Rows drawn at random to be labelled that have no label: it is about the others.
    any_class : bool
        Whether sets cannot rule out a class that no label shows; such sets say so.
    decisive : float or None
        The one label that decided that the column holds numbers and not classes; None if no single
        one did.
    false_discovery, mistake : float or None, str
        For a selection: bound on the expected share of mistakes, and what a mistake is.
    assumptions, reasons : tuple of str
        What has to be true, such as `CHANCE`, and why it is of this kind, in sentences.
    details : tuple of str
        Why it holds, in sentences for statisticians: `grounds` has them, and the printed text does
        not.
    factor : float
        The odds of being labelled may be wrong by this factor, either way, without harm.
    effective, n_unbounded : float or None, int
        How many labels of equal weight the calibration labels are worth, and at how many rows
        nothing is ruled out.
    remedy : tuple of int
        Positions of rows without a label, drawn at random: their labels would make a guarantee
        exact.
    reachable : float or None
        Where nothing is guaranteed for want of labels: a lower level that these labels support.
    verdict, limits, drift : Verdict, Limits, Drift or None
        What a test of `CHANCE` found, which labels are limits, and what was found along an order of
        the rows.

    Examples
    --------
    >>> Guarantee("exact", about="interval", confidence=0.9, assumptions=(CHANCE,)).statement
    'The interval of a row picked at random holds its true value with probability at least 90 %.'
    >>> print(Guarantee("none", reasons=("It is an example.",)))
    none: Nothing is guaranteed. It is an example.
    """

    kind: Kind
    about: About = ""
    confidence: float | None = None
    within: Within = ""
    outside: CountBound | None = None
    wrong: CountBound | None = None
    wrong_by_class: tuple[tuple[Any, CountBound], ...] = ()
    tolerance: float | None = None
    n_labelled: int = 0
    n_calibration: int = 0
    n_unreached: int = 0
    n_short: int = 0
    short: tuple[str, ...] = ()
    n_groups: int = 0
    n_other: int = 0
    of_rows: float | None = None
    n_empty: int = 0
    any_class: bool = False
    decisive: float | None = None
    false_discovery: float | None = None
    mistake: str = ""
    assumptions: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    factor: float = 1.0
    effective: float | None = None
    n_unbounded: int = 0
    remedy: tuple[int, ...] = ()
    reachable: float | None = None
    verdict: Verdict | None = None
    drift: Drift | None = None
    limits: Limits | None = None

    @property
    def condition(self) -> str:
        """The one condition of an exact guarantee; "" if it has none."""
        if self.kind != "exact":
            return ""
        if self.factor > 1.0:
            return (
                f"if the odds of being labelled are off by no more than a factor of {self.factor:g}"
            )
        conditions = (getattr(assumption, "condition", "") for assumption in self.assumptions)
        return next(filter(None, conditions), "")

    @property
    def conditions_in_words(self) -> str:
        """The conditions as one list of clauses, to stand behind “if” or “that”."""
        return join_assumptions(self.conditions)

    @property
    def conditions(self) -> tuple[str, ...]:
        """What has to be true, with the factor by which odds may be off."""
        if self.factor <= 1.0:
            return self.assumptions
        return tuple(with_factor(assumption, self.factor) for assumption in self.assumptions)

    @property
    def hedged(self) -> bool:
        """Whether its bounds would hold only if it were exact."""
        return self.kind == "approximate" and not self.in_doubt

    @property
    def uneven(self) -> bool:
        """Whether groups differ so much in size that far more rows than groups may be outside."""
        return (self.of_rows or 0.0) > UNEVEN * (1.0 - (self.confidence or 0.0))

    @property
    def in_short(self) -> Guarantee:
        """The guarantee without what is for statisticians."""
        return replace(self, details=())

    @property
    def headline(self) -> str:
        """The kind, with the condition of an exact one."""
        return f"{self.kind} {self.condition}".rstrip()

    @property
    def statement(self) -> str:
        """What is guaranteed, in sentences."""
        return " ".join(state(self))

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is guaranteed, sentence by sentence: first what holds for a row."""
        return tuple(state(self))

    @property
    def bound_on_rows(self) -> str:
        """How many rows may be outside, in a sentence; "" if that is not bounded."""
        return bound_on_rows(self)

    @property
    def grounds_in_short(self) -> tuple[str, ...]:
        """Why, sentence by sentence, without what is for statisticians."""
        return tuple(explain(self.in_short))

    @property
    def grounds(self) -> str:
        """Why, in sentences: reasons, assumptions, and what a test found about them."""
        powers = [finding.power for finding in (self.verdict, self.drift) if finding is not None]
        return " ".join([*explain(self), *filter(None, powers)])

    @property
    def caution(self) -> str:
        """What may not be chosen by looking at the predictions; empty if nothing holds."""
        if self.kind == "none":
            return ""
        return caution_on_choice(by_seed=self.n_calibration > 0 or self.about == "selection")

    def doubted(self, verdict: Verdict | None) -> Guarantee:
        """Return the guarantee with the verdict of a test.

        An exact one becomes approximate if rows differ.
        """
        guarantee = self
        if verdict is not None and verdict.shifted:
            guarantee = self.weakened()
        return replace(guarantee, verdict=verdict)

    def weakened(self) -> Guarantee:
        """Return an exact guarantee as an approximate one, any other as it is."""
        if self.kind != "exact":
            return self
        return replace(self, kind="approximate")

    @property
    def in_doubt(self) -> bool:
        """Whether it rests on rows being alike, and a test has found that they are not."""
        shifted = self.verdict is not None and self.verdict.shifted
        alike = any(assumption in self.assumptions for assumption in (CHANCE, LATER, LATER_DRAWN))
        return self.kind == "approximate" and alike and shifted

    @property
    def of_later(self) -> Guarantee:
        """The guarantee for rows that come later, which must be like the rows that calibrate."""
        later = (
            getattr(assumption, "later", None) or assumption for assumption in self.assumptions
        )
        return replace(self, assumptions=tuple(later))

    def decided_by(self, label: float | None) -> Guarantee:
        """Return the guarantee where one label, if any, decided how the column is read.

        An exact one is approximate.
        """
        if label is None:
            return self
        return replace(self.weakened(), decisive=label)

    def along(self, drift: Drift | None) -> Guarantee:
        """Return the guarantee with what was found along an order.

        An exact one becomes approximate if errors drift.
        """
        if drift is None or self.kind == "none":
            return self
        guarantee = self
        if drift.found:
            guarantee = self.weakened()
        assumptions = self.assumptions
        if drift.apart:
            along = (getattr(assumption, "along", None) for assumption in assumptions)
            assumptions = tuple(
                instead or assumption
                for instead, assumption in zip(along, assumptions, strict=True)
            )
        return replace(guarantee, drift=drift, assumptions=assumptions)

    def limited(self, limits: Limits) -> Guarantee:
        """Return the guarantee of answers that are open at limits.

        It assumes that no row has one beyond them.
        """
        if not limits.any:
            return self
        assumptions = self.assumptions
        if not limits.named and self.kind != "none":
            assumptions = (*assumptions, LIMITED)
        return replace(self, limits=limits, assumptions=assumptions)

    @property
    def opening(self) -> str:
        """The headline or, where a test speaks against it, that it is in doubt."""
        if not self.in_doubt:
            return self.headline
        if self.verdict is not None and self.verdict.other == "later":
            return "in doubt, since labelled and later rows differ. If they did not"
        return (
            "in doubt, since labelled and unlabelled rows differ. "
            "If rows had been labelled at random"
        )

    def __str__(self) -> str:
        return " ".join([f"{self.opening}:", *self.sentences, *self.grounds_in_short])

    def _repr_html_(self) -> str:
        """Return the guarantee as a notebook shows it: what holds, and why below it."""
        return (
            f"<p><strong>{escape(self.opening)}</strong>: {escape(self.statement)}</p>"
            f"<details><summary>Why</summary><p>{escape(self.grounds)}</p></details>"
        )


def too_few_labels(guarantee: Guarantee, n_labels: int, least: int) -> Guarantee:
    """Return that nothing is guaranteed, since there are fewer labels than the confidence takes."""
    region, _, everything = HOLDS[guarantee.about]
    every = f"every {region} {'holds' if guarantee.about == 'set' else 'is'} {everything}"
    few = f"It takes at least {least} labels, and there are {n_labels}"
    reason = f"{few}: {every}."
    bounds: dict[str, Any] = {"outside": None, "wrong": None, "wrong_by_class": ()}
    lower = next((level for level in ROUND_LEVELS if fewest_calibration(level) <= n_labels), None)
    return replace(
        guarantee,
        kind="none",
        assumptions=(),
        details=(),
        reasons=(reason,),
        reachable=lower,
        **bounds,
    )


class ShiftWarning(UserWarning):
    """Labelled and unlabelled rows differ: a test raised an alarm."""


class TooFewLabelsWarning(UserWarning):
    """There are too few labels for this confidence.

    Every interval is the whole line, every set holds all classes.
    """
