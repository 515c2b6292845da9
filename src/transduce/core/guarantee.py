"""`Guarantee`: what is guaranteed of the answers, as data.

Sentences are made of it last, here for text output.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Self

from transduce.core.ranks import calibration_rank, fewest_calibration
from transduce.core.words import counted, option, percent


class Assumption(str):
    """What has to be true of the labels, as a clause, with its condition."""

    condition: str  # that an exact guarantee is said to have; "" if it has none
    later: Assumption | None  # what has to be true of rows that come later instead; None: the same

    def __new__(cls, clause: str, condition: str = "", later: Assumption | None = None) -> Self:
        """Return the clause with its condition."""
        assumption = super().__new__(cls, clause)
        assumption.condition = condition
        assumption.later = later
        return assumption


# A part of every assumption: where a column is the truth at labelled rows and a guess elsewhere, 51
# % of the true values were in intervals at 90 %, although rows were labelled at random.
ALIKE = "the other columns came about in the same way with and without a label"

LATER = Assumption(
    "the rows that come later are like the labelled ones, differing from them by chance alone",
    condition="if later rows are like the labelled ones",
)
LATER_DRAWN = Assumption(
    "the rows that come later are like those drawn at random, differing from them by chance alone",
    condition="if later rows are like those drawn at random",
)
LATER_BY_CLASS = Assumption(
    "rows that come later are like the labelled ones of their class",
    condition="if later rows are like the labelled ones of their class",
)
LATER_SHARES = Assumption(
    f"the given shares of the classes are right, and {LATER_BY_CLASS}",
    condition="if the given shares are right, and later rows are like the labelled ones of their "
    "class",
)
CHANCE = Assumption(
    f"rows were labelled at random, and {ALIKE}",
    condition="if rows were labelled at random",
    later=LATER,
)
CHANCE_WITHIN = Assumption(
    f"rows were labelled at random within each category, and {ALIKE}",
    condition="if rows were labelled at random within each category",
)
STILL = Assumption(
    f"nothing changes along the order of the rows, except by chance, and {ALIKE}",
    condition="if nothing changes along the order of the rows",
)
DRAWN = Assumption(
    f"the calibration labels are of rows drawn at random from those without a label, and {ALIKE}",
    later=LATER_DRAWN,
)
BY_CLASS = Assumption(
    f"rows were labelled at random within each class, and {ALIKE}",
    condition="if rows were labelled at random within each class",
    later=LATER_BY_CLASS,
)
SHARES = Assumption(
    f"the given shares of the classes are right, and {BY_CLASS}",
    condition="if the given shares are right, and rows were labelled at random within each class",
    later=LATER_SHARES,
)
ESTIMATE = Assumption(
    "which rows have a label depends on the other columns alone, about as was estimated, "
    f"and {ALIKE}"
)
LIMITED = Assumption("no row has a limit beyond those of the labels")
SEEN = Assumption("every class of the unlabelled rows has a label")
NO_SECOND_LOOK = Assumption(
    "no block of random draws was begun, or left, because of what the draws before had shown",
    condition="if no block of draws was begun, or left, because of what draws had shown",
)

NOT_TESTED = "Whether labelled and unlabelled rows differ was not tested."
# A reason of the confidence machine, for rows that are only predicted: `fill` has none of these.
NOT_FOR_LATER = (
    "Rows given only to predict had no part in that: for them the guarantee is approximate."
)

UNEVEN = 1.5  # times as many rows as groups may be outside: groups differ much in size
SUSPECTED = 0.1  # p-values below this are signs of a difference
FALSE_ALARMS = 100  # tables labelled at random, of which one is found to differ: the test's level
ROUND_LEVELS = (
    0.99,
    0.98,
    0.95,
    0.9,
    0.85,
    0.8,
    0.75,
    0.7,
    0.6,
    0.5,
)  # that may be offered instead
_OPEN = (
    "An interval that reaches {0:g} is open {1}, and a value there is {0:g}, with the status “{2}”."
)

_HOLDS = {
    "interval": ("interval", "true value", "the whole line"),
    "region": ("region", "true value", "the whole line"),
    "set": ("set of classes", "true class", "all classes"),
}
_WITHIN = {
    "": "",
    "class": ", within every class that has a label",
    "category": ", within every category",
    "categories": ", within every category of each column",
}


@dataclass(frozen=True)
class Verdict:
    """What a test found about the assumption that rows were labelled at random."""

    p_value: float | None  # none if there were too few rows, or no features, to test
    shifted: bool  # whether labelled and unlabelled rows differ
    n_labelled: int  # rows that were compared
    n_unlabelled: int  # rows that were compared
    features: tuple[str, ...] = ()  # the features in which they differ, the most different first
    detectable: float | None = None
    other: str = "unlabelled"  # what the rows without a label are called: "unlabelled", or "later"
    units: str = "rows"  # what was compared: "rows", or "groups", of which one row each
    columns: tuple[str, ...] = ()  # those of the table in which they differ, which may be left out
    running: tuple[
        str, ...
    ] = ()  # of these the running numbers, and times, along which labels stop

    @property
    def way_out(self) -> str:
        """What to do if a column in which rows differ should play no part, in a sentence.

        It is empty if there is no such column.
        """
        if not self.shifted or self.other == "later":
            return ""
        if self.running:
            name = self.running[0]
            return (
                f"Labels stop along {name!r}: if it is a mere number of the rows, or the time of "
                f"their entry, leave it out with {option('id', name)} or "
                f"{option('ignore', [name])}; if time matters, name it with "
                f"{option('order', name)}."
            )
        if not self.columns:
            return ""
        name = self.columns[0]
        return (
            f"If {name!r} came about differently with and without a label, leave it out with "
            f"{option('ignore', [name])}."
        )

    @property
    def suspected(self) -> bool:
        """Whether there are signs of a difference, too weak to be sure of it."""
        return self.p_value is not None and not self.shifted and self.p_value < SUSPECTED

    def __str__(self) -> str:
        compared = (
            f"{self.n_labelled:,} labelled and {self.n_unlabelled:,} {self.other} {self.units}"
        )
        if self.p_value is None:
            return f"With {compared}, nothing can be seen of whether they differ."
        where = ""
        if self.features:
            where = f", most of all in {', '.join(self.features[:3])}"
        p = f"p = {self.p_value:.2g}"
        if self.shifted:
            why = (
                "more than chance decided which rows have a label, or a column came about "
                "differently with and without one, and guarantees that rest on random labels may "
                "fail"
            )
            if self.other == "later":
                why = "what held for the labelled rows may fail for the later ones"
            alarm = (
                f"Labelled and {self.other} {self.units} differ ({p}{where}): an alarm, which "
                f"chance alone raises in 1 of {FALSE_ALARMS} tables. Unless it did, {why}."
            )
            return f"{alarm} {self.way_out}".strip()
        if self.suspected:
            return (
                f"There are signs of a difference between {compared}, too weak to be sure "
                f"({p}{where})."
            )
        return (
            f"No difference between {compared} was found ({p}), which does not prove that there is "
            "none."
        )

    @property
    def power(self) -> str:
        """What difference would have been found, in a sentence; empty after an alarm."""
        if self.p_value is None or self.shifted:
            return ""
        if self.detectable is None:
            return f"With so few {self.units} the test has no power, however large the difference."
        return (
            f"The test has a power of at least 80 % against a shift of one column by "
            f"{self.detectable:.1f} standard deviations, and less against smaller ones."
        )


@dataclass(frozen=True)
class Limits:
    """Labels that are limits, such as "<0.5", and the outermost of them.

    Beyond those nothing can be told apart.
    """

    number: int = 0  # labels that are limits
    below: float = (
        -math.inf
    )  # the largest limit from below: values up to it may be any smaller ones
    above: float = math.inf  # the smallest limit from above
    differ: bool = False  # whether labels have several limits on one side
    named: bool = False  # whether the user has named the outermost limits

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return math.isfinite(self.below) or math.isfinite(self.above)

    def with_named(self, others: Limits) -> Limits:
        """Return the limits with those that the user names; the outermost count."""
        if not others.any:
            return self
        known = math.isfinite(others.below) or not math.isfinite(self.below)
        known &= math.isfinite(others.above) or not math.isfinite(self.above)
        below, above = max(self.below, others.below), min(self.above, others.above)
        return replace(self, below=below, above=above, named=known)

    def __str__(self) -> str:
        places = [(self.below, "downwards", "below"), (self.above, "upwards", "above")]
        said = [_OPEN.format(*place) for place in places if math.isfinite(place[0])]
        if self.number == 1:
            labels = "1 label is a limit."
        else:
            labels = f"{self.number:,} labels are limits."
        return " ".join([labels, *said])


@dataclass(frozen=True)
class CountBound:
    """A bound on a number of rows, with a certainty."""

    certainty: float  # probability with which the bound holds
    at_most: int  # the bound
    of: int  # number of rows that it is about
    expected: float | None = None  # upper bound on the expected number
    simplest: int | None = None  # the same bound if all rows got one answer, the most frequent

    @property
    def tells(self) -> bool:
        """Whether it says more than one answer for all rows would."""
        if self.simplest is None:
            most = self.of
        else:
            most = min(self.of, self.simplest)
        return self.at_most < most


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
        The odds of a label may be wrong by this factor, either way, without harm.
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

    kind: str
    about: str = ""
    confidence: float | None = None
    within: str = ""
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
            return f"if the odds of a label are off by no more than a factor of {self.factor:g}"
        conditions = (getattr(assumption, "condition", "") for assumption in self.assumptions)
        return next(filter(None, conditions), "")

    @property
    def conditions(self) -> tuple[str, ...]:
        """What has to be true, with the factor by which odds may be off."""
        if self.factor <= 1.0:
            return self.assumptions
        off = (
            f"up to a factor of {self.factor:g} either way in the odds of a label, which may "
            "depend on the value itself"
        )
        return tuple(
            one.replace(f", and {ALIKE}", f", {off}, and {ALIKE}") for one in self.assumptions
        )

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
        return " ".join(_statement(self))

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is guaranteed, sentence by sentence: first what holds for a row."""
        return tuple(_statement(self))

    @property
    def bound_on_rows(self) -> str:
        """How many rows may be outside, in a sentence; "" if that is not bounded."""
        if self.outside is None or self.about not in _HOLDS:
            return ""
        _, truth, _ = _HOLDS[self.about]
        return _outside_sentence(self, truth, self.outside)

    @property
    def grounds_in_short(self) -> tuple[str, ...]:
        """Why, sentence by sentence, without what is for statisticians."""
        return tuple(_grounds(self.in_short))

    @property
    def grounds(self) -> str:
        """Why, in sentences: reasons, assumptions, and what a test found about them."""
        powers = [found.power for found in (self.verdict, self.drift) if found is not None]
        return " ".join([*_grounds(self), *filter(None, powers)])

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
        shifted = verdict is not None and verdict.shifted and self.kind == "exact"
        return replace(self, verdict=verdict, kind="approximate" if shifted else self.kind)

    @property
    def in_doubt(self) -> bool:
        """Whether it rests on rows being alike, and a test has found that they are not."""
        shifted = self.verdict is not None and self.verdict.shifted
        alike = any(one in self.assumptions for one in (CHANCE, LATER, LATER_DRAWN))
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
        return replace(
            self, decisive=label, kind="approximate" if self.kind == "exact" else self.kind
        )

    def along(self, drift: Drift | None) -> Guarantee:
        """Return the guarantee with what was found along an order.

        An exact one becomes approximate if errors drift.
        """
        if drift is None or self.kind == "none":
            return self
        instead = CHANCE
        if drift.apart:
            instead = STILL
        if drift.found and self.kind == "exact":
            kind = "approximate"
        else:
            kind = self.kind
        assumptions = tuple(instead if one == CHANCE else one for one in self.assumptions)
        return replace(self, drift=drift, kind=kind, assumptions=assumptions)

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


def caution_on_choice(*, by_seed: bool) -> str:
    """Return what may not be chosen by looking at the predictions.

    `by_seed`, a seed has part in them.
    """
    # The narrowest of ten seeds held the truth in 83 % of the rows at 90 %. Intervals of the
    # confidence machine know no seed, and the method makes values alone: there nothing is lost.
    if by_seed:
        return (
            "It is lost if the seed, the method, columns, settings or the level were chosen by "
            "looking at these predictions and trying again."
        )
    return (
        "Another seed or method changes values only, and may be tried; it is lost if columns or "
        "the level were chosen by looking at these predictions and trying again."
    )


def too_few_labels(guarantee: Guarantee, n_labels: int, least: int) -> Guarantee:
    """Return that nothing is guaranteed, since there are fewer labels than the confidence takes."""
    region, _, everything = _HOLDS[guarantee.about]
    every = f"every {region} {'holds' if guarantee.about == 'set' else 'is'} {everything}"
    few = f"It takes at least {least} labels, and there are {n_labels}"
    reason = f"{few}: the values stand without a guarantee, and {every}."
    bounds: dict[str, Any] = {"outside": None, "wrong": None, "wrong_by_class": ()}
    lower = next((one for one in ROUND_LEVELS if fewest_calibration(one) <= n_labels), None)
    return replace(
        guarantee,
        kind="none",
        assumptions=(),
        details=(),
        reasons=(reason,),
        reachable=lower,
        **bounds,
    )


def _statement(guarantee: Guarantee) -> list[str]:
    """Return what is guaranteed, sentence by sentence."""
    return [*_what_holds(guarantee), *_how_many(guarantee), *_where_not(guarantee)]


def _what_holds(guarantee: Guarantee) -> list[str]:
    """Return what holds of a row, or of a selection, sentence by sentence."""
    if guarantee.kind == "none":
        level = ""
        if guarantee.confidence is not None:
            level = f" at {percent(guarantee.confidence)}"
        return [f"Nothing is guaranteed{level}."]
    if guarantee.about == "selection":
        bound = percent(guarantee.false_discovery or 0.0)
        return [
            f"Of the rows picked, the share whose {guarantee.mistake} is at most {bound} on "
            "average over many such tables, where a table in which none is picked counts as 0. "
            "Where rows are rarely picked, most of one pick may be mistakes."
        ]
    if guarantee.about not in _HOLDS or guarantee.confidence is None:
        return []
    region, truth, _ = _HOLDS[guarantee.about]
    row = "a row picked at random"
    if guarantee.n_groups:
        row = "a row drawn at random from a new group"
    least = "about"
    if guarantee.kind == "exact":
        least = "at least"
    level = percent(guarantee.confidence)
    where = _WITHIN[guarantee.within]
    sentences = [
        f"The {region} of {row} holds its {truth} with probability {least} {level}{where}."
    ]
    if guarantee.n_other:
        rows = counted(guarantee.n_other, "other row is", "other rows are")
        sentences.append(f"The {rows} of groups that have labels, and not covered by this.")
    if guarantee.of_rows is not None and guarantee.uneven:
        share = math.ceil(100 * guarantee.of_rows - 1e-9)
        sentences.append(
            "Groups differ in size and each counts once: of all rows more may be outside, up to "
            f"{share:.0f} % on average if the largest groups are hard."
        )
    if guarantee.n_empty:
        rows = counted(guarantee.n_empty, "row that was", "rows that were")
        has = "have"
        verb = "are"
        if guarantee.n_empty == 1:
            has = "has"
            verb = "is"
        sentences.append(
            f"The {rows} drawn at random and {has} no label {verb} not covered by this."
        )
    return sentences


def _how_many(guarantee: Guarantee) -> list[str]:
    """Return for how many rows it holds, sentence by sentence."""
    if not _is_about_rows(guarantee):
        return []
    sentences = []
    _, truth, _ = _HOLDS[guarantee.about]
    if guarantee.outside is not None:
        sentences.append(_outside_sentence(guarantee, truth, guarantee.outside))
    if guarantee.wrong is None:
        return sentences
    sentences.append(_wrong_sentence(guarantee, guarantee.wrong))
    if guarantee.outside is not None and guarantee.wrong.tells:
        both = max(0.0, guarantee.outside.certainty + guarantee.wrong.certainty - 1.0)
        sentences.append(
            "That is the certainty of each bound by itself; that of both together is at least "
            f"{percent(both)}."
        )
    return sentences


def _wrong_sentence(guarantee: Guarantee, bound: CountBound) -> str:
    """Return a bound on the wrong predictions, or that there is none, in a sentence."""
    what = "filled classes are wrong"
    if guarantee.about != "set":
        what = f"filled values are off by more than {guarantee.tolerance:g}"
        if guarantee.limits:
            what += ", where a limit stands for all values beyond it"
    if bound.tells:
        return f"{_certainly(bound, guarantee.hedged)} {what}."
    better = ""
    if bound.at_most < bound.of:
        better = " any better than if all rows were given the same one"
    return f"These labels do not bound how many of the {bound.of:,} {what}{better}."


def _where_not(guarantee: Guarantee) -> list[str]:
    """Return where it is open or nothing is ruled out, sentence by sentence."""
    if not _is_about_rows(guarantee):
        return []
    region, _, everything = _HOLDS[guarantee.about]
    exceptions = _exceptions(guarantee, region, everything)
    if guarantee.limits:
        return [str(guarantee.limits), *exceptions]
    return exceptions


def _is_about_rows(guarantee: Guarantee) -> bool:
    """Return whether something holds of the intervals, regions or sets of rows."""
    has_level = guarantee.confidence is not None
    return guarantee.kind != "none" and guarantee.about in _HOLDS and has_level


def _exceptions(guarantee: Guarantee, region: str, everything: str) -> list[str]:
    """Return where nothing is ruled out, and why, sentence by sentence."""
    said = []
    if guarantee.any_class:
        once = "So many labels are the only ones of their class"
        said.append(f"{once} that a row may be of a class that no label shows; the sets say so.")
    elif guarantee.within == "class" and SEEN not in guarantee.assumptions:
        said.append("Nothing is said of rows whose class no label shows.")
    if SHARES in guarantee.assumptions or LATER_SHARES in guarantee.assumptions:
        said.append(
            "It holds over all rows and not within each class, so that far more rows of a rare "
            f"class may be outside; {option('label_conditional', True)} makes it hold within "
            "every class."
        )
    if guarantee.n_short:
        few = "One class has too few calibration labels and is in every set."
        many = f"{guarantee.n_short} classes have too few calibration labels and are in every set."
        said.append(few if guarantee.n_short == 1 else many)
    if guarantee.short:
        names = ", ".join(guarantee.short)
        if len(guarantee.short) == 1:
            those = f"Category {names} has"
        else:
            those = f"Categories {names} have"
        said.append(f"{those} too few calibration labels: there the {region} is {everything}.")
    if guarantee.n_unbounded:
        such = "rows like them are"
        if guarantee.n_unbounded == 1:
            such = "rows like it are"
        why = f"{such} so rarely labelled that these labels rule nothing out there"
        said.append(
            f"At {counted(guarantee.n_unbounded, 'row')} the {region} is {everything}: {why}."
        )
    if guarantee.n_unreached:
        rows = counted(guarantee.n_unreached, "more row")
        said.append(f"At {rows} there is no answer: the {region} there is {everything}.")
    return said


def _certainly(bound: CountBound, hedged: bool) -> str:
    start = f"With {percent(bound.certainty)} certainty"
    if hedged:  # where errors drift, one time in two a bound at 95 % was exceeded
        start = f"Were it exact, with {percent(bound.certainty)} certainty"
    return f"{start} at most {bound.at_most:,} of the {bound.of:,}"


def _outside_sentence(guarantee: Guarantee, truth: str, bound: CountBound) -> str:
    """Return the guarantee for the whole column, in a sentence."""
    plural = "values"
    if guarantee.about == "set":
        plural = "classes"
    start = _certainly(bound, guarantee.hedged)
    said = f"{start} {truth.split()[0]} {plural} are outside their {guarantee.about}s"
    if bound.expected is None:
        return f"{said}."
    if bound.expected < 1000:
        expected = f"{bound.expected:.3g}"
    else:
        expected = f"{bound.expected:,.0f}"
    return f"{said}; at most {expected} are expected."


def _condition_sentence(guarantee: Guarantee) -> list[str]:
    """Return on what condition it holds, as no sentence or one."""
    if guarantee.kind == "none" or not guarantee.assumptions:
        return []
    nearly = ""
    if guarantee.kind == "approximate":
        nearly = " approximately,"
    conditions = " and if ".join(guarantee.conditions)
    return [f"It holds{nearly} for any distribution, if {conditions}."]


def _grounds(guarantee: Guarantee) -> list[str]:
    """Return why, sentence by sentence."""
    said = [*guarantee.details, *guarantee.reasons]
    if guarantee.kind != "none":
        labels = f"{guarantee.n_calibration:,} of {counted(guarantee.n_labelled, 'label')}"
        by_draw = DRAWN in guarantee.assumptions or LATER_DRAWN in guarantee.assumptions
        if guarantee.n_calibration and by_draw:
            others = "the others taught the fit, however they were chosen"
            said.append(f"{labels} calibrate, those of rows drawn at random; {others}.")
            if guarantee.n_empty:
                said.append(_about_empty(guarantee))
        elif guarantee.n_groups:
            groups = f"all those of {counted(guarantee.n_groups, 'group')}"
            said.append(
                f"{labels}, {groups}, were held out at random to calibrate; each group counts once."
            )
        elif guarantee.n_calibration:
            said.append(f"{labels} were held out at random to calibrate: the fit did not see them.")
        if guarantee.effective is not None:
            said.append(
                "They are weighted by the odds that such a row has no label, and are worth as much "
                f"as {guarantee.effective:.0f} of equal weight (the effective sample size)."
            )
        said += _condition_sentence(guarantee)
        if LIMITED in guarantee.assumptions and guarantee.limits is not None:
            seen = "All labels have the same limits"
            if guarantee.limits.differ:
                seen = "Limits differ from label to label"
            said.append(
                f"{seen}; if a row may have one further out, name it with {option('limit')}."
            )
    if guarantee.caution:
        said.append(guarantee.caution)
    if guarantee.decisive is not None:
        one = f"One label, {guarantee.decisive:g}, decided that these are numbers and not classes"
        roughly = ""
        if guarantee.kind == "approximate":
            roughly = " and makes it approximate"
        said.append(f"{one}{roughly}: if you know what they are, name the {option('task')}.")
    said += [
        str(finding) for finding in (guarantee.verdict, guarantee.drift) if finding is not None
    ]
    if guarantee.reachable is not None:
        lower = option("confidence", guarantee.reachable)
        said.append(
            f"These labels support {percent(guarantee.reachable)}: ask for it with {lower}."
        )
    if guarantee.remedy:
        rows = ", ".join(f"{row + 1:,}" for row in guarantee.remedy)
        exact = "Labels of rows drawn at random would make it exact, whatever the other labels are"
        how = f"`transduce draw --number {len(guarantee.remedy)} --seed 0` marks them"
        drawn = f"rows {rows} were drawn for that (counted from 1; {how})"
        said.append(f"{exact}: {drawn}.")
    return said


def _about_empty(guarantee: Guarantee) -> str:
    """Return how many of the rows drawn have no label, and what they cost."""
    n_empty = guarantee.n_empty
    total = n_empty + guarantee.n_calibration
    has = "have"
    each = "each"
    those = "them, or as many as you can"
    if n_empty == 1:
        has = "has"
        each = "it"
        those = "it"
    empty = f"{n_empty:,} of the {total:,} rows drawn at random {has} no label"
    cost = f"counting {each} as the worst possible, whatever the reason, keeps it exact"
    level = calibration_rank(guarantee.confidence or 0.0, total) / (guarantee.n_calibration + 1)
    if (
        guarantee.about in _HOLDS
        and not guarantee.within
        and guarantee.factor == 1.0
        and level < 1.0
    ):
        cost += f", at the price of {guarantee.about}s as large as those at {100 * level:.1f} %"
    return f"{empty}: {cost}. Label {those}."


@dataclass(frozen=True)
class Drift:
    """What was found along an order of the rows."""

    later: float
    apart: bool
    p_value: float | None
    found: bool  # whether errors drift; a field of the JSON
    detectable: float | None = None

    def __str__(self) -> str:
        return f"{self._places()} {self._errors()}"

    def _places(self) -> str:
        """Return where unlabelled rows lie, and what that asks for."""
        if not self.apart:
            return (
                "Labelled and unlabelled rows lie alike along the order, so that nothing need be "
                "assumed of it."
            )
        word = "earlier"
        share = 1.0 - self.later
        if self.later >= 0.5:
            word = "later"
            share = self.later
        where = f"unlabelled rows come {word} than labelled ones in {100 * share:.0f} % of pairs"
        still = "exchangeable means here that nothing changes along it, except by chance"
        return f"Along the order, {where}: {still}."

    def _errors(self) -> str:
        """Return whether errors drift."""
        if self.p_value is None:
            return (
                "Whether errors drift along it could not be tested with so few calibration labels."
            )
        p = f"p = {self.p_value:.2g}"
        if self.found:
            return (
                f"Errors at calibration rows drift along it ({p}): what comes later is not like "
                "what came before."
            )
        if self.p_value < SUSPECTED:
            return f"There are signs that errors drift along it, too weak to be sure ({p})."
        return f"No drift of the errors was found ({p}), which does not prove that there is none."

    @property
    def power(self) -> str:
        """What drift would have been found, in a sentence for statisticians; "" where one was."""
        if self.p_value is None or self.found:
            return ""
        if self.detectable is None:
            return "With so few calibration labels the test of drift has no power."
        return (
            "The test of drift has a power of 80 % against a rank correlation of "
            f"{self.detectable:.1f}, and less against weaker ones."
        )


class ShiftWarning(UserWarning):
    """Labelled and unlabelled rows differ: a test raised an alarm."""


class TooFewLabelsWarning(UserWarning):
    """There are too few labels for this confidence.

    Every interval is the whole line, every set holds all classes.
    """
