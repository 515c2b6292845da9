"""A guarantee in sentences: what holds, for how many rows, where not, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from transduce.core.assumptions import (
    DRAWN,
    LATER_DRAWN,
    LATER_SHARES,
    LIMITED,
    SEEN,
    SHARES,
)
from transduce.core.ranks import calibration_rank
from transduce.core.words import counted, option, percent

if TYPE_CHECKING:
    from transduce.core.guarantee import CountBound, Guarantee

# What each kind of answer is called, what it holds, and what it is where nothing is ruled out.
HOLDS = {
    "interval": ("interval", "true value", "the whole line"),
    "region": ("region", "true value", "the whole line"),
    "set": ("set of classes", "true class", "all classes"),
}
WITHIN = {
    "": "",
    "class": ", within every class that has a label",
    "category": ", within every category",
    "categories": ", within every category of each column",
}
EACH_LEVEL = (
    "Each level holds by itself, as if it were the only one; what is true at several of them at "
    "once is not guaranteed."
)


def caution_on_choice(*, by_seed: bool) -> str:
    """Return what may not be chosen by looking at the predictions.

    `by_seed`, a seed has part in them.
    """
    # The narrowest of ten seeds held the truth in 83 % of the rows at 90 %. Intervals of the
    # confidence machine know no seed, and the method makes values alone: there nothing is lost.
    if by_seed:
        return (
            "It no longer holds if the seed, the method, columns, settings or the level were "
            "chosen by looking at these predictions and trying again."
        )
    return (
        "You may try other seeds and methods: they change the values only. It no longer holds if "
        "columns or the level were chosen by looking at these predictions and trying again."
    )


def level_sentences(guarantees: Mapping[float, Guarantee]) -> list[str]:
    """Return what is guaranteed at each level besides the first, and how levels hang together."""
    sentences: list[str] = []
    if len(guarantees) < 2:
        return sentences
    main, *others = guarantees.values()
    for guarantee in others:
        at_level = f"At {percent(guarantee.confidence or 0.0)}"
        if guarantee.kind == "none":
            reason = " ".join(guarantee.reasons[:1])
            sentences.append(f"{at_level} nothing is guaranteed. {reason}".rstrip())
            continue
        if guarantee.opening != main.opening:
            sentences.append(f"{at_level} the guarantee is {guarantee.opening}:")
        sentences += [guarantee.sentences[0], guarantee.bound_on_rows]
    if sentences:
        sentences.append(EACH_LEVEL)
    return list(filter(None, sentences))


def state(guarantee: Guarantee) -> list[str]:
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
            f"The false discovery rate is at most {bound}: on average over many such tables, the "
            f"share of selected rows whose {guarantee.mistake} is at most {bound} (0 if no row is "
            "selected). In a single table it can be more, above all if few rows are selected."
        ]
    if guarantee.about not in HOLDS or guarantee.confidence is None:
        return []
    region, truth, _ = HOLDS[guarantee.about]
    row = "a row picked at random"
    if guarantee.n_groups:
        row = "a row drawn at random from a new group"
    least = "about"
    if guarantee.kind == "exact":
        least = "at least"
    level = percent(guarantee.confidence)
    where = WITHIN[guarantee.within]
    return [
        f"The {region} of {row} holds its {truth} with probability {least} {level}{where}.",
        *_not_covered(guarantee),
    ]


def _not_covered(guarantee: Guarantee) -> list[str]:
    """Return which rows it is not about, sentence by sentence."""
    sentences = []
    if guarantee.n_other:
        rows = counted(guarantee.n_other, "other row is", "other rows are")
        sentences.append(f"The {rows} of groups that have labels, and not covered by this.")
    if guarantee.of_rows is not None and guarantee.uneven:
        share = math.ceil(100 * guarantee.of_rows - 1e-9)
        sentences.append(
            "Groups differ in size, and each counts once: the share of all rows outside may be "
            f"larger, up to {share:.0f} % on average if the largest groups are hard to predict."
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
    _, truth, _ = HOLDS[guarantee.about]
    if guarantee.outside is not None:
        sentences.append(_outside_sentence(guarantee, truth, guarantee.outside))
    if guarantee.wrong is None:
        return sentences
    sentences.append(_wrong_sentence(guarantee, guarantee.wrong))
    tells = guarantee.wrong.tells or guarantee.wrong.judged_tells
    if guarantee.outside is not None and tells:
        both = max(0.0, guarantee.outside.certainty + guarantee.wrong.certainty - 1.0)
        sentences.append(
            "Each of the two bounds holds with that certainty; both together hold with at least "
            f"{percent(both)}."
        )
    return sentences


def _wrong_sentence(guarantee: Guarantee, bound: CountBound) -> str:
    """Return a bound on the wrong predictions, or that there is none, in a sentence."""
    mistakes = "filled classes are wrong"
    if guarantee.about != "set":
        mistakes = f"filled values are off by more than {guarantee.tolerance:g}"
        if guarantee.limits:
            mistakes += ", where a limit stands for all values beyond it"
    if bound.tells and bound.changed:
        return (
            f"{_certainly(bound, guarantee.hedged)} {mistakes}: {bound.judged:,} in the fit "
            f"without the calibration labels, and the {bound.changed:,} that the fit to all labels "
            "predicts differently."
        )
    if bound.tells:
        return f"{_certainly(bound, guarantee.hedged)} {mistakes}."
    if bound.judged is not None and bound.judged_tells:
        judged = _certainly(replace(bound, at_most=bound.judged), guarantee.hedged)
        return (
            f"{judged} {mistakes.replace('filled', 'predicted')} in the fit without the "
            "calibration labels. The filled ones come from a fit to all labels and are usually "
            f"better, but nothing is guaranteed at the {counted(bound.changed, 'row')} where the "
            "two differ."
        )
    if bound.at_most < bound.of:
        return (
            f"These labels give no useful bound on how many of the {bound.of:,} {mistakes}: one "
            "prediction for all rows would have as good a bound."
        )
    return f"These labels do not bound how many of the {bound.of:,} {mistakes}."


def _where_not(guarantee: Guarantee) -> list[str]:
    """Return where it is open or nothing is ruled out, sentence by sentence."""
    if not _is_about_rows(guarantee):
        return []
    region, _, everything = HOLDS[guarantee.about]
    exceptions = _exceptions(guarantee, region, everything)
    if guarantee.limits:
        return [str(guarantee.limits), *exceptions]
    return exceptions


def _is_about_rows(guarantee: Guarantee) -> bool:
    """Return whether something holds of the intervals, regions or sets of rows."""
    has_level = guarantee.confidence is not None
    return guarantee.kind != "none" and guarantee.about in HOLDS and has_level


def _exceptions(guarantee: Guarantee, region: str, everything: str) -> list[str]:
    """Return where nothing is ruled out, and why, sentence by sentence."""
    return [
        *_exceptions_of_classes(guarantee),
        *_too_few_labels(guarantee, region, everything),
        *_rows_without_bounds(guarantee, region, everything),
    ]


def _exceptions_of_classes(guarantee: Guarantee) -> list[str]:
    """Return what does not hold of some classes, sentence by sentence."""
    sentences = []
    if guarantee.any_class:
        sentences.append(
            "Many labels are the only one of their class, so that a row may be of a class without "
            "a label; the sets say so."
        )
    elif guarantee.within == "class" and SEEN not in guarantee.assumptions:
        sentences.append("Nothing is guaranteed for rows of a class that has no label.")
    if SHARES in guarantee.assumptions or LATER_SHARES in guarantee.assumptions:
        sentences.append(
            "It holds over all rows, not within each class: of a rare class, far more rows may be "
            f"outside. {option('label_conditional', True)} makes it hold within every class."
        )
    return sentences


def _too_few_labels(guarantee: Guarantee, region: str, everything: str) -> list[str]:
    """Return which classes and categories have too few labels, sentence by sentence."""
    sentences = []
    if guarantee.n_short == 1:
        sentences.append("One class has too few calibration labels and is in every set.")
    elif guarantee.n_short:
        sentences.append(
            f"{guarantee.n_short} classes have too few calibration labels and are in every set."
        )
    if guarantee.short:
        names = ", ".join(guarantee.short)
        categories = f"Categories {names} have"
        if len(guarantee.short) == 1:
            categories = f"Category {names} has"
        sentences.append(
            f"{categories} too few calibration labels: there the {region} is {everything}."
        )
    return sentences


def _rows_without_bounds(guarantee: Guarantee, region: str, everything: str) -> list[str]:
    """Return at which rows nothing is ruled out, sentence by sentence."""
    sentences = []
    if guarantee.n_unbounded:
        subject = "rows like them"
        if guarantee.n_unbounded == 1:
            subject = "rows like it"
        why = f"{subject} are labelled so rarely that no value can be ruled out there"
        sentences.append(
            f"At {counted(guarantee.n_unbounded, 'row')} the {region} is {everything}: {why}."
        )
    if guarantee.n_unreached:
        rows = counted(guarantee.n_unreached, "more row")
        sentences.append(f"At {rows} there is no answer: the {region} there is {everything}.")
    return sentences


def bound_on_rows(guarantee: Guarantee) -> str:
    """Return how many rows may be outside, in a sentence; "" if that is not bounded."""
    if guarantee.outside is None or guarantee.about not in HOLDS:
        return ""
    _, truth, _ = HOLDS[guarantee.about]
    return _outside_sentence(guarantee, truth, guarantee.outside)


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
    sentence = f"{start} {truth.split()[0]} {plural} are outside their {guarantee.about}s"
    if bound.expected is None:
        return f"{sentence}."
    if bound.expected < 1000:
        expected = f"{bound.expected:.3g}"
    else:
        expected = f"{bound.expected:,.0f}"
    return f"{sentence}; at most {expected} are expected."


def _condition_sentence(guarantee: Guarantee) -> list[str]:
    """Return on what condition it holds, as no sentence or one."""
    if guarantee.kind == "none" or not guarantee.assumptions:
        return []
    nearly = ""
    if guarantee.kind == "approximate":
        nearly = " approximately,"
    return [f"It holds{nearly} for any distribution, if {guarantee.conditions_in_words}."]


def explain(guarantee: Guarantee) -> list[str]:
    """Return why, sentence by sentence."""
    findings = [guarantee.verdict, guarantee.drift]
    return [
        *guarantee.details,
        *guarantee.reasons,
        *_rest_on(guarantee),
        *filter(None, [guarantee.caution]),
        *_about_decisive(guarantee),
        *[str(finding) for finding in findings if finding is not None],
        *_ways_out(guarantee),
    ]


def _rest_on(guarantee: Guarantee) -> list[str]:
    """Return which labels calibrate, and on what condition it holds, sentence by sentence."""
    if guarantee.kind == "none":
        return []
    sentences = _about_calibration(guarantee)
    if guarantee.effective is not None:
        sentences.append(
            "They are weighted by the odds that such a row has no label, and are worth as much "
            f"as {guarantee.effective:.0f} of equal weight (the effective sample size)."
        )
    sentences += _condition_sentence(guarantee)
    if LIMITED in guarantee.assumptions and guarantee.limits is not None:
        seen = "All labels have the same detection limits"
        if guarantee.limits.differ:
            seen = "Detection limits differ from label to label"
        sentences.append(
            f"{seen}; if a row may have one further out, name it with {option('limit')}."
        )
    return sentences


def _about_calibration(guarantee: Guarantee) -> list[str]:
    """Return which labels calibrate, sentence by sentence."""
    if not guarantee.n_calibration and not guarantee.n_groups:
        return []
    labels = f"{guarantee.n_calibration:,} of {counted(guarantee.n_labelled, 'label')}"
    by_draw = DRAWN in guarantee.assumptions or LATER_DRAWN in guarantee.assumptions
    if guarantee.n_calibration and by_draw:
        sentences = [
            f"{labels}, those of rows drawn at random, were used for calibration; the others "
            "were used for the fit, and it does not matter how they were chosen."
        ]
        if guarantee.n_empty:
            sentences.append(_about_empty(guarantee))
        return sentences
    if guarantee.n_groups:
        groups = counted(guarantee.n_groups, "group")
        return [
            f"{labels}, all those of {groups}, were held out at random for calibration; each "
            "group counts once."
        ]
    return [f"{labels} were held out of the fit at random, for calibration."]


def _about_decisive(guarantee: Guarantee) -> list[str]:
    """Return that one label decided how the column is read, as no sentence or one."""
    if guarantee.decisive is None:
        return []
    roughly = ""
    if guarantee.kind == "approximate":
        roughly = " and makes it approximate"
    return [
        f"One label, {guarantee.decisive:g}, decided that these are numbers and not "
        f"classes{roughly}: if you know what they are, name the {option('task')}."
    ]


def _ways_out(guarantee: Guarantee) -> list[str]:
    """Return which level the labels support, and which labels would help, sentence by sentence."""
    sentences = []
    if guarantee.reachable is not None:
        lower = option("confidence", guarantee.reachable)
        sentences.append(
            f"These labels support {percent(guarantee.reachable)}: ask for it with {lower}."
        )
    if guarantee.remedy:
        rows = ", ".join(f"{row + 1:,}" for row in guarantee.remedy)
        sentences.append(
            "Labels of rows drawn at random would make it exact, whatever the other labels are. "
            f"Rows {rows} were drawn for that (counted from 1; `transduce draw --number "
            f"{len(guarantee.remedy)} --seed 0` marks them)."
        )
    return sentences


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
    cost = f"counting {each} as the worst case, whatever the reason, keeps the guarantee exact"
    level = calibration_rank(guarantee.confidence or 0.0, total) / (guarantee.n_calibration + 1)
    if (
        guarantee.about in HOLDS
        and not guarantee.within
        and guarantee.factor == 1.0
        and level < 1.0
    ):
        cost += f", at the price of {guarantee.about}s as large as those at {100 * level:.1f} %"
    return f"{empty}: {cost}. Label {those}."
