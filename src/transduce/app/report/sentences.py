"""The sentences of a report: question and reply, caveats, cards, and what to do next."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from transduce.app.report.filled_column import FilledColumn
from transduce.app.report.jsonable import (
    format_number,
    join_filled,
    json_name,
    records_of,
    rough_percent,
)
from transduce.app.report.missed_classes import most_missed_class
from transduce.app.report.quality import FEWEST_TICKED, Quality, why_not_known
from transduce.app.report.rows import FilledValues
from transduce.app.report.summary_types import Card, Tone
from transduce.app.report.suspects import about_suspects, name_row
from transduce.core.assumptions import CHANCE, DRAWN, ESTIMATE
from transduce.core.findings import FALSE_ALARMS
from transduce.core.types import JsonObject
from transduce.core.words import counted, option, percent

# Used as if observed, intervals of means, slopes and shares at 95 % held 35 to 71 %.
NO_DATA = {
    "regression": "Filled values vary less than true ones: do not average, count or regress on "
    "them as if they were measured. For statements about the whole column, use `transduce "
    "estimate`.",
    "classification": "Filled classes are predictions: do not count or regress on them as if they "
    "were observed. For statements about the whole column, use `transduce estimate`.",
}
ALARM = f"Chance alone raises this alarm in 1 of {FALSE_ALARMS} tables"
ICONS: dict[Tone, str] = {"good": "✓", "fair": "≈", "bad": "!"}
ANSWERED = ("answered", "below", "above", "unusual")  # statuses of rows with a prediction
TO_LOOK_AT = ("unusual", "tied", "rejected", "unreached")


@dataclass(frozen=True)
class ReportContext:
    """What sentences are made of: the filled column, and what was counted in it."""

    filled: FilledColumn
    source: str  # the name of the file
    counts: dict[str, int]
    answers: FilledValues
    quality: Quality | None
    differing: list[str]  # the columns in which labelled and unlabelled rows differ

    @property
    def numbers(self) -> bool:
        """Whether numbers were filled."""
        return self.filled.task == "regression"

    @property
    def sets(self) -> str:
        """What each prediction comes with: intervals, or sets."""
        if self.numbers:
            return "intervals"
        return "sets"

    @property
    def target(self) -> str:
        """The name of the column, for reading."""
        return json_name(self.filled.target)

    @property
    def shifted(self) -> bool:
        """Whether a test found that labelled and unlabelled rows differ."""
        test = self.filled.exchangeability
        return test is not None and bool(test.shifted)

    @property
    def shift_matters(self) -> bool:
        """Whether rows differ and the guarantee suffers from it."""
        return self.shifted and self.filled.guarantee.kind != "exact"

    @cached_property
    def why_quality_unknown(self) -> str:
        """Why hidden labels do not tell how good the predictions are; "" if they do."""
        filled = self.filled
        return why_not_known(filled.has_draws, filled.exchangeability, filled.guarantee)


# ------------------------------------------------------------------------------- question and reply


def question(context: ReportContext) -> str:
    """Return the question in sentences."""
    counts = context.counts
    where = ""
    if context.source:
        where = f" of {context.source}"
    if not counts["unlabelled"]:
        return f"No value is missing in “{context.target}”{where}, so there was nothing to fill."
    kind = context.filled.labels.kind
    if not context.numbers:
        kind = counted(counts["classes"], "class", "classes")
    have = "have"
    if counts["unlabelled"] == 1:
        have = "has"
    share = rough_percent(counts["unlabelled"] / counts["rows"])
    return (
        f"{counts['unlabelled']:,} of the {counted(counts['rows'], 'row')}{where} {have} no value "
        f"in “{context.target}” ({share}). They were filled from the "
        f"{counted(counts['labelled'], 'row')} that have one ({kind})."
    )


def reply(context: ReportContext) -> list[str]:
    """Return what was filled in, in sentences."""
    counts = context.counts
    if not counts["unlabelled"]:
        return ["There is nothing to fill."]
    first = [_about_rows(context), _about_limits(counts), _about_unusual(counts)]
    if context.shift_matters:
        left = f"the guarantee is {context.filled.guarantee.kind}"
        if context.filled.guarantee.kind == "none":
            left = "nothing is guaranteed"
        first.append(f"A test found that rows with and without a value differ: {left}.")
    return [join_filled(first), *context.answers.sentences]


def _about_rows(context: ReportContext) -> str:
    """Return how many rows got a prediction, and why others did not."""
    counts = context.counts
    rows = counted(counts["unlabelled"], "row")
    if context.filled.counts.is_lazy:  # only the sample is known
        return f"{rows[0].upper()}{rows[1:]} are predicted when the frame is computed."
    lost = _about_lost(counts)
    if lost:
        n_answered = sum(counts[status] for status in ANSWERED)
        return f"{n_answered:,} of {rows} have a prediction; {'; '.join(lost)}."
    if counts["unlabelled"] == 1:
        return "It has a prediction."
    return f"All {rows} have a prediction."


def _about_lost(counts: dict[str, int]) -> list[str]:
    """Return how many rows are tied, rejected or unreached, and what that means."""
    lost = []
    if counts["tied"]:
        ties = counted(counts["tied"], "is a tie", "are ties")
        lost.append(f"{ties} between classes that are equally good")
    if counts["rejected"]:
        rejected = counted(counts["rejected"], "is", "are")
        lost.append(f"{rejected} marked as rejected, as too uncertain")
    if counts["unreached"]:
        unreached = counted(counts["unreached"], "has none,", "have none,")
        them = "it" if counts["unreached"] == 1 else "them"
        lost.append(f"{unreached} because nothing connects {them} with a known value")
    return lost


def _about_limits(counts: dict[str, int]) -> str:
    """Return how many predictions lie beyond a detection limit; "" if none does."""
    beyond = [f"{counts[side]:,} {side} it" for side in ("below", "above") if counts[side]]
    if not beyond:
        return ""
    return (
        "Where labels are censored, values beyond a detection limit are written as the limit: "
        f"{' and '.join(beyond)}."
    )


def _about_unusual(counts: dict[str, int]) -> str:
    """Return how many rows are unusual; "" if none is."""
    if not counts["unusual"]:
        return ""
    rows = counted(counts["unusual"], "row is", "rows are")
    return (
        f"{rows} unusual: such rows are rare even in the predicted class, and the prediction is "
        "uncertain."
    )


# -------------------------------------------------------------------------------- the guarantee


def about_column(context: ReportContext) -> str:
    """Return what is guaranteed of the column where the statement does not say so itself."""
    guarantee = context.filled.guarantee
    if not context.counts["unlabelled"] or guarantee.outside is not None:
        return ""
    counted = "true classes are outside their sets"
    if context.numbers:
        counted = "true values are outside their intervals"
    if context.filled.miscoverage is not None or guarantee.kind == "none":
        return f"Nothing is guaranteed about how many {counted}."
    if guarantee.kind == "exact" and not guarantee.n_groups:
        share = percent(1 - context.filled.confidence)
        return (
            f"On average over many such tables at most {share} of the {counted}; in a single "
            "table their number is not bounded."
        )
    return f"How many {counted} is not bounded."


def who_was_labelled(context: ReportContext) -> list[str]:
    """Return on what the guarantee rests, and what is known of which rows have a label."""
    filled = context.filled
    guarantee = filled.guarantee
    sentences = [filled.origins]
    if DRAWN in guarantee.assumptions:
        sentences.append(
            "Labels of rows drawn at random are used for calibration; it does not matter how the "
            "other labels were chosen."
        )
    elif guarantee.assumptions:
        sentences.append(f"This assumes that {guarantee.conditions_in_words}.")
    if guarantee.effective is not None:
        labels = counted(guarantee.n_calibration, "calibration label")
        worth = format_number(guarantee.effective, 0)
        sentences.append(
            f"The {labels} are weighted by how much they stand for the unlabelled rows, and are "
            f"worth as much as {worth} of equal weight."
        )
    if guarantee.drift is not None:
        sentences.append(str(guarantee.drift))
    if guarantee.remedy:
        rows = ", ".join(name_row(row, filled.lines) for row in guarantee.remedy)
        sentences.append(
            f"To get an exact guarantee, label these rows, which were drawn at random: {rows}. "
            f"`transduce draw --number {len(guarantee.remedy)} --seed 0` marks them, and "
            "`transduce fill --random-labels` uses them."
        )
    if filled.sensitivity is not None:
        sentences.append(_about_sensitivity(filled.sensitivity, len(filled.answer)))
    return list(filter(None, sentences))


def _about_sensitivity(table: pd.DataFrame, n_rows: int) -> str:
    """Return how much wider intervals get if labels also depend on the value itself."""
    first, *others = table.to_dict("records")
    factors = [
        f"by a factor of up to {line['factor']:g}: {_about_widths(line, n_rows)}" for line in others
    ]
    return (
        "If having a label does not depend on the value itself, "
        f"{_about_widths(first, n_rows)}. If the odds of being labelled also depend on the value, "
        f"{'; '.join(factors)}."
    )


def _about_widths(line: dict[Any, Any], n_rows: int) -> str:
    """Return how wide intervals, or how large sets, are at one factor."""
    unbounded = f"{int(line['n_unbounded']):,} of {n_rows:,}"
    if "size" in line and line["size"] == 1.0:
        return "sets hold 1 class on average"
    if "size" in line:
        return f"sets hold {line['size']:.3g} classes on average"
    if not math.isfinite(line["width"]):
        return f"{unbounded} intervals have no bound"
    width = f"half of the intervals are at most {line['width']:.3g} wide"
    if line["n_unbounded"]:
        return f"{width}, and {unbounded} have no bound"
    return width


def class_coverage(filled: FilledColumn) -> list[JsonObject] | None:
    """Return how often sets hold each class where it is the true one, the rarest first."""
    if filled.class_coverage is None:
        return None
    rarest_first = filled.class_coverage.sort_values("labels", kind="stable").reset_index()
    pairs = zip(records_of(rarest_first), rarest_first["class"], strict=True)
    return [line | {"class": json_name(name)} for line, name in pairs]


# ------------------------------------------------------------------------------------- the quality


def about_quality(context: ReportContext) -> str | None:
    """Return how good the predictions were, or that this is not known; None without any label."""
    quality = context.quality
    if quality is None:
        return None
    if context.why_quality_unknown:
        return f"How good the predictions are is not known. {context.why_quality_unknown}"
    hidden = counted(quality.numbers["n"], "known value was", "known values were")
    return f"{hidden} hidden in turn and predicted: {quality.large}; {quality.small}."


def about_row_names(filled: FilledColumn) -> str:
    """Return what the names of rows are, where they are numbers."""
    if filled.row_names is filled.lines:
        return "Rows are named by their line in the file."
    if isinstance(filled.row_names, range):
        return "Rows are counted from 1, without the line of names."
    return ""


# ---- the caveats


def caveats(context: ReportContext) -> list[str]:
    """Return what a reader should be careful about."""
    filled = context.filled
    if not context.counts["unlabelled"]:
        return []
    warnings = []
    if filled.suspects is not None:
        warnings.append(about_suspects(filled.suspects, filled.labels, filled.lines))
    warnings.append(_caution_on_labels(context))
    if filled.guarantee.kind != "none":
        warnings.append(
            "The guarantee is about rows picked at random, not about one particular row or kind of "
            "row: uncertain rows, and some kinds of row, may be outside more often than others."
            f"{_about_rarest_class(filled)}"
        )
        warnings.append(filled.guarantee.caution)
    warnings.append(NO_DATA[filled.task])
    warnings += [_about_unbounded(context), _about_unreached(context.counts)]
    if context.quality is not None and len(filled.members) > 1:
        warnings.append(
            "The blend's weights and this score use the same held-out labels, so the score is "
            "slightly optimistic. Intervals and sets do not depend on that."
        )
    if filled.relevance is not None:
        warnings.append(
            "Relevance says what the predictions were made from, not what causes the values."
        )
    return list(filter(None, warnings))


def _caution_on_labels(context: ReportContext) -> str:
    """Return what to know of how the labels came about."""
    filled = context.filled
    guarantee = filled.guarantee
    if context.shift_matters:
        return (
            "A test raised an alarm: rows with and without a value differ. Chance alone raises it "
            f"in 1 of {FALSE_ALARMS} tables. If rows were not labelled at random, intervals and "
            "sets may contain the truth less often than stated."
        )
    if filled.class_shares is not None:
        return (
            "Labels were chosen by their class. Whether the rows of each class were labelled at "
            "random cannot be tested, and estimated shares are poor where the other columns hardly "
            "tell the classes apart."
        )
    if not guarantee.assumptions:
        return ""
    conditions = guarantee.conditions_in_words
    if CHANCE in guarantee.assumptions:
        return (
            f"The guarantee assumes that {conditions}. A test can find signs against this in the "
            "other columns, but it cannot prove it."
        )
    return f"The guarantee assumes that {conditions}. Nothing in the table can prove this."


def _about_rarest_class(filled: FilledColumn) -> str:
    """Return how often sets hold the rarest class where it is the true one; "" if unknown."""
    judged = [line for line in class_coverage(filled) or [] if line["judged"]]
    if not judged:
        return ""
    rarest = judged[0]
    share = rough_percent(rarest["covered"] / rarest["judged"])
    hidden = counted(rarest["judged"], "known value that was", "known values that were")
    return (
        f" Of the rarest class, “{rarest['class']}”, an estimated {share} are in their sets "
        f"({rarest['covered']:,} of {hidden} hidden)."
    )


def _about_unbounded(context: ReportContext) -> str:
    """Return how many intervals are unbounded, and why; "" if none is."""
    numbers: Any = context.answers.numbers
    n_unbounded = numbers.get("n_unbounded", 0)
    if not n_unbounded:
        return ""
    are = "is" if n_unbounded == 1 else "are"
    return (
        f"{counted(n_unbounded, 'interval')} of {context.counts['unlabelled']:,} {are} unbounded: "
        f"there are too few known values for a bound at {percent(context.filled.confidence)}, or "
        "there is no prediction. A lower level may give bounds."
    )


def _about_unreached(counts: dict[str, int]) -> str:
    """Return how many rows have no prediction; "" if all have one."""
    if not counts["unreached"]:
        return ""
    rows = counted(counts["unreached"], "row")
    return f"{rows} could not be predicted: the value stays empty there."


def about_again(context: ReportContext, version: str, made: str) -> str:
    """Return what the command that does it again does."""
    if context.filled.is_session:
        return (
            "The journal of the session has all labels; this page was exported on "
            f"{made} by transduce {version or 'unknown'}."
        )
    return (
        f"This fills the same table in the same way, with transduce {version or 'unknown'}. This "
        f"page was made on {made}; add --report FILE to make it again."
    )


# ---- what to do next


def to_do(context: ReportContext) -> str:
    """Return what to do next, in a sentence or two; "" if nothing was filled."""
    filled = context.filled
    guarantee = filled.guarantee
    if not context.counts["unlabelled"]:
        return ""
    if filled.to_do:
        return filled.to_do
    if guarantee.kind == "none":
        return _label_more(guarantee.reachable)
    if guarantee.in_doubt:
        return (
            "Label rows drawn at random, which `transduce draw` picks, and fill again with "
            "--random-labels: then the other labels may be chosen at will."
        )
    if context.quality is not None and context.quality.judged:
        return f"Add columns that tell more about “{context.target}”: these tell next to nothing."
    first = _look_or_use(context)
    if filled.has_rows_to_label:
        return (
            f"{first} To be surer, label rows drawn at random, which `transduce draw` picks; those "
            "named under “What to label next” make values better, and are no random sample."
        )
    return first


def _label_more(reachable: float | None) -> str:
    """Return what to do where nothing is guaranteed."""
    advice = (
        "Take the values as suggestions until more rows have labels: label rows drawn at random, "
        "which `transduce draw` picks, and fill again."
    )
    if reachable is None:
        return advice
    level = option("confidence", reachable)
    return f"{advice} Or ask for {percent(reachable)} with {level}, which these labels support."


def _look_or_use(context: ReportContext) -> str:
    """Return which rows to look at, or how to use the predictions."""
    if context.answers.little and context.numbers:
        return "Label more rows: so far the predictions are too uncertain to tell much."
    if context.answers.little:
        every = option("probabilities", True)
        return (
            "Label more rows: so far the predictions are too uncertain to tell much "
            f"({every} adds the probability of every class)."
        )
    odd = [status for status in TO_LOOK_AT if context.counts[status]]
    if odd:
        return f"Look at the rows whose status is {' or '.join(odd)}."
    region = context.sets.removesuffix("s")
    return (
        f"Use each prediction with its {region}, not as if it were measured, and look at the least "
        "certain rows."
    )


# ---------------------------------------------------------------------------------------- the cards


def cards(context: ReportContext) -> list[Card]:
    """Return questions with their answers, in a few large words and in a sentence."""
    if not context.counts["unlabelled"]:
        return []
    shown = []
    how_good = "How good are the predictions?"
    if context.quality is not None:
        shown.append(_make_card(how_good, *_how_good(context, context.quality)))
    elif context.filled.unmeasured:
        shown.append(_make_card(how_good, "not known", context.filled.unmeasured, "fair"))
    shown.append(_make_card("What is guaranteed?", *_what_holds(context)))
    shown.append(_make_card("Can it be trusted?", *_whether_to_trust(context)))
    return shown


def _make_card(question: str, large: str, small: str, tone: Tone) -> Card:
    return {
        "question": question,
        "large": large,
        "small": small,
        "tone": tone,
        "icon": ICONS[tone],
    }


def _how_good(context: ReportContext, quality: Quality) -> tuple[str, str, Tone]:
    """Return the card on quality: a tick only where hidden values show that, and tell."""
    guarantee = context.filled.guarantee
    small = f"{_where_measured(context)}; {quality.small}."
    if context.why_quality_unknown:
        return "cannot be known", context.why_quality_unknown, "bad"
    if quality.one_class:
        measured = _where_measured(context)
        alone = f"all of which are “{quality.one_class}”: how well others are found is not seen."
        return quality.large, f"{measured}, {alone}", "fair"
    if quality.judged:
        return quality.large, f"{small} {quality.judged}", "bad"
    if guarantee.in_doubt or context.shift_matters:
        return quality.large, f"{small} The rows to be filled differ from those.", "fair"
    if guarantee.kind == "none":
        return quality.large, small, "fair"
    if quality.numbers["n"] < FEWEST_TICKED:
        return quality.large, f"{small} So few known values tell little.", "fair"
    if not quality.clear:
        return quality.large, f"{small} That is better, but not by much.", "fair"
    return quality.large, small, "good"


def _where_measured(context: ReportContext) -> str:
    """Return where quality was measured, and in which unit, as the start of a sentence."""
    parts = ["At known values that were hidden", context.filled.measured_at]
    if context.numbers and not context.filled.labels.spelling.unit:
        parts.append(f"in the unit of “{context.target}”")
    return join_filled(parts, ", ")


def _what_holds(context: ReportContext) -> tuple[str, str, Tone]:
    """Return the card on what is guaranteed."""
    guarantee = context.filled.guarantee
    if guarantee.kind == "none":
        reasons = (*guarantee.reasons, f"The {context.sets} are not guaranteed.")
        return "nothing", reasons[0], "bad"
    level = percent(context.filled.confidence)
    large = f"at least {level}"
    if guarantee.kind == "approximate":
        large = f"about {level}"
    small = _how_it_holds(context)
    if guarantee.in_doubt:
        return "in doubt", f"If rows had been labelled at random: {large} {small}", "bad"
    missed = _about_missed_class(context.filled)
    if missed:
        return large, f"{small} {missed}", "fair"
    if guarantee.kind == "exact" and not context.answers.little:
        return large, small, "good"
    return large, small, "fair"


def _about_missed_class(filled: FilledColumn) -> str:
    """Return which class sets hardly ever hold; "" if there is none, or it is guaranteed."""
    coverage = filled.class_coverage
    by_shares = filled.class_shares is not None and not filled.class_shares.given
    if coverage is None or by_shares or filled.guarantee.within == "class":
        return ""
    n_rows = len(filled.answer)
    missed = most_missed_class(coverage, n_rows, filled.confidence)
    if missed is None:
        return ""
    line = coverage.loc[missed]
    name = json_name(missed)
    if not line["judged"]:
        return f"But “{name}” is in the sets of {line['in_sets']:,} of {n_rows:,} rows."
    share = rough_percent(line["covered"] / line["judged"])
    return f"But where “{name}” is the true class, sets hold it at an estimated {share} of rows."


def _how_it_holds(context: ReportContext) -> str:
    """Return what the level is about: rows or groups, and how many rows may be outside."""
    guarantee = context.filled.guarantee
    bound = guarantee.outside
    words = f"of {context.sets} contain the truth, on average"
    if guarantee.n_groups:
        words += " over new groups, each of which counts once"
        if guarantee.uneven:
            words += "; groups differ in size, and the share of all rows outside may be larger"
    if bound is not None:
        if guarantee.hedged:
            words += "; were it exact, at most"
        else:
            words += "; at most"
        certainty = percent(bound.certainty)
        words += f" {bound.at_most:,} of {bound.of:,} do not, with {certainty} certainty"
    words += f".{context.answers.little}"
    if guarantee.limits:
        words += " Intervals that reach a limit of the labels are open there."
    return words


def _whether_to_trust(context: ReportContext) -> tuple[str, str, Tone]:
    """Return the card on the kind of guarantee, and on what it rests."""
    guarantee = context.filled.guarantee
    if guarantee.kind == "none":
        return "no guarantee", "Take the values as suggestions.", "bad"
    if guarantee.in_doubt:
        return "guarantee: in doubt", f"{_how_rows_differ(context)}. {ALARM}.", "bad"
    if guarantee.kind == "approximate":
        return "guarantee: approximate", _why_approximate(context), "fair"
    conditions = guarantee.conditions_in_words
    if not conditions:
        return "guarantee: exact", "It holds for any distribution.", "good"
    if guarantee.drift is not None and guarantee.drift.apart:
        later = "Whether what comes later along that order is like what came before cannot be seen"
        return "guarantee: exact", f"If {conditions}. {later}.", "fair"
    if CHANCE not in guarantee.assumptions or guarantee.factor > 1.0:
        return "guarantee: exact", f"If {conditions}.", "good"
    test = context.filled.exchangeability
    if test is not None and test.verdict.suspected:
        weak = "a test found signs against that, too weak to be sure"
        return "guarantee: exact", f"If {conditions}; {weak}.", "fair"
    seen = "no test could check that"
    if test is not None and test.verdict.p_value is not None:
        seen = "a test found nothing against that"
    return "guarantee: exact", f"If {conditions}; {seen}.", "good"


def _why_approximate(context: ReportContext) -> str:
    """Return why a guarantee is approximate."""
    if context.shifted:
        return f"{_how_rows_differ(context)}. {ALARM}. The weights correct for it, as estimated."
    if ESTIMATE in context.filled.guarantee.assumptions:
        return "Why some values are known and others are not can only be estimated."
    return "It holds approximately, or rests on an assumption that is in doubt."


def _how_rows_differ(context: ReportContext) -> str:
    """Return in which columns rows with and without a value differ most."""
    names = ", ".join(f"“{name}”" for name in context.differing[:3])
    if names:
        return f"Rows with and without a known value differ, most of all in {names}"
    return "Rows with and without a known value differ"
