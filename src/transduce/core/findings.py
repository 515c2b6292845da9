"""What tests found: how rows compare, drift along an order, labels that are limits."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from transduce.core.types import OtherRows, Units
from transduce.core.words import option

SUSPECTED = 0.1  # p-values below this are signs of a difference
FALSE_ALARMS = 100  # tables labelled at random, of which one is found to differ: the test's level
_OPEN = (
    "An interval that reaches {0:g} is open {1}, and a value there is {0:g}, with the status “{2}”."
)


@dataclass(frozen=True)
class Verdict:
    """What a test found about the assumption that rows were labelled at random."""

    p_value: float | None  # none if there were too few rows, or no features, to test
    shifted: bool  # whether labelled and unlabelled rows differ
    n_labelled: int  # rows that were compared
    n_unlabelled: int  # rows that were compared
    features: tuple[str, ...] = ()  # the features in which they differ, the most different first
    detectable: float | None = None
    other: OtherRows = "unlabelled"  # what the rows without a label are called
    units: Units = "rows"  # what was compared; of groups one row each
    columns: tuple[str, ...] = ()  # those of the table in which they differ, which may be left out
    # Of these the running numbers, and times, along which labels stop.
    running: tuple[str, ...] = ()
    whole: str = ""  # what to do about a column of which whole values were labelled

    @property
    def way_out(self) -> str:
        """What to do if a column in which rows differ should play no part, in a sentence.

        It is empty if there is no such column.
        """
        if not self.shifted or self.other == "later":
            return ""
        if self.whole:
            return self.whole
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
        start = ""
        if not self.features:
            start = f"No column shows it by itself; {name!r} comes nearest. "
        return (
            f"{start}If {name!r} was recorded differently with and without a label, leave it out "
            f"with {option('ignore', [name])}."
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
            return f"It cannot be tested whether {compared} differ."
        where = ""
        if self.features:
            where = f", most of all in {', '.join(self.features[:3])}"
        p = f"p = {self.p_value:.2g}"
        if self.shifted:
            cause = (
                "Probably rows were not labelled at random, or a column was recorded differently "
                "with and without a label; then guarantees that rest on random labels may fail."
            )
            if self.other == "later":
                cause = "What holds for the labelled rows may fail for the later ones."
            alarm = (
                f"Labelled and {self.other} {self.units} differ ({p}{where}). Chance alone raises "
                f"this alarm in 1 of {FALSE_ALARMS} tables. {cause}"
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
    # The largest limit from below: values up to it may be any smaller ones.
    below: float = -math.inf
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
        below = max(self.below, others.below)
        above = min(self.above, others.above)
        return replace(self, below=below, above=above, named=known)

    def __str__(self) -> str:
        places = [(self.below, "downwards", "below"), (self.above, "upwards", "above")]
        sentences = [_OPEN.format(*place) for place in places if math.isfinite(place[0])]
        if self.number == 1:
            labels = "1 label is a detection limit."
        else:
            labels = f"{self.number:,} labels are detection limits."
        return " ".join([labels, *sentences])


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
                "Labelled and unlabelled rows are spread alike along the order, so that nothing "
                "needs to be assumed about it."
            )
        word = "earlier"
        share = 1.0 - self.later
        if self.later >= 0.5:
            word = "later"
            share = self.later
        where = f"unlabelled rows come {word} than labelled ones in {100 * share:.0f} % of pairs"
        return (
            f"Along the order, {where}. The guarantee therefore assumes that nothing changes along "
            "it, except by chance."
        )

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
