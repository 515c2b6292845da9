"""Every number and sentence of a report, computed once, as one plain dictionary."""

from __future__ import annotations

import datetime
import math
import os
import platform
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np
import pandas as pd

from transduce.app.report.filled_column import FilledColumn
from transduce.app.report.plain import clean, evenly, finite, name_of, number, plain, rough_percent
from transduce.app.report.quality import FEWEST_TICKED, Quality, quality_of, why_not_known
from transduce.app.report.rows import FilledValues, context_columns, row_records, values_of
from transduce.app.report.whole_column import summarize_whole
from transduce.conformal import Exchangeability, Miscoverage
from transduce.core.checks import WrongTypeError
from transduce.core.guarantee import (
    CHANCE,
    DRAWN,
    ESTIMATE,
    FALSE_ALARMS,
    CountBound,
    Guarantee,
)
from transduce.core.words import counted, option, percent, quoted

PACKAGES = ("transduce", "numpy", "pandas", "scikit-learn", "scipy", "skrub")
GUARANTEED = (  # as `Guarantee` has it
    *(
        "kind",
        "headline",
        "statement",
        "in_doubt",
        "confidence",
        "tolerance",
        "assumptions",
        "factor",
    ),
    *("n_calibration", "n_unbounded", "n_groups", "n_other", "of_rows", "n_empty", "remedy"),
    "reachable",
)
Summary = dict[str, Any]
MOST_MAPPED = 1200  # rows of the map that are drawn
N_BINS = 24  # of the overlap of labelled and unlabelled rows
MOST_COLUMNS = 8  # that tell labelled from unlabelled rows


def summarize(filled: FilledColumn) -> Summary:
    """Return what there is to say about a filled table: numbers and sentences that JSON can hold.

    Parameters
    ----------
    filled : FilledColumn
        What `FillResult.reported` returns.

    Returns
    -------
    dict
        The same for the same table, settings and versions. A number that does not exist is None, and so is an end of
        an interval that is infinite.

    Examples
    --------
    >>> import pandas as pd
    >>> from transduce import fill
    >>> from transduce.app.report import summarize
    >>> table = pd.DataFrame({"size": range(60), "price": [2.0 * n if n % 3 else None for n in range(60)]})
    >>> summary = summarize(fill(table, "price", method="ridge", guarantee="column").reported)
    >>> summary["target"], summary["task"], len(summary["rows"])
    ('price', 'regression', 20)
    """
    if not isinstance(filled, FilledColumn):
        raise WrongTypeError(
            f"summarize takes a FilledColumn, such as fill(...).reported; got {quoted(filled)}."
        )
    rows, tested = row_records(filled), _exchangeability(filled.exchangeability)
    facts = Facts(
        filled=filled,
        source=clean(
            str(filled.options.get("source") or "").replace("\\", "/").rpartition("/")[2], 80
        ),
        counts=_counts(filled),
        answers=values_of(filled, rows),
        quality=quality_of(filled.task, filled.out_of_fold, filled.labels.spelling.unit),
        differing=[] if tested is None else [entry["name"] for entry in tested["features"]],
    )
    return {
        "format": 1,
        "target": name_of(filled.target),
        "task": filled.task,
        "source": facts.source,
        "confidence": float(filled.confidence),
        "certainty": float(filled.certainty),
        "counts": facts.counts,
        "context": [name_of(name, 40) for name in context_columns(filled)],
        "rows": rows,
        "answers": facts.answers.numbers,
        "law": _law(filled),
        "exchangeability": tested,
        "guarantee": _guarantee(filled.guarantee) | {"column": column_guarantee(facts)},
        "who_was_labelled": _who_was_labelled(facts),
        "whole": summarize_whole(filled),
        "class_shares": _class_shares(filled),
        "class_coverage": _class_coverage(filled),
        "quality": None if facts.quality is None else facts.quality.numbers,
        "members": _members(filled.members),
        "relevance": _relevance(filled),
        "map": _map(filled),
        "columns": [
            plain(one) | {"name": name_of(one["name"])} for one in filled.columns.to_dict("records")
        ],
        "options": plain(filled.options),
        "versions": dict(versions()),
        "question": question(facts),
        "reply": reply(facts),
        "quality_known": facts.quality is not None and not _why_not_known(filled),
        "quality_sentence": None if facts.quality is None else _quality_sentence(facts),
        "caveats": caveats(facts),
        "next": clean(filled.advice),
        "cards": plain(cards(facts)),
        "to_do": to_do(facts),
        "again": filled.again,
        "again_words": again(facts),
        "notes": plain(filled.notes),  # last: what could not be computed is among them
        "made": today(),
    }


def summarize_later(
    about: dict[str, Any], guarantee: Guarantee, compared: Exchangeability
) -> dict[str, Any]:
    """Return what there is to say about rows that came later and were answered: numbers and sentences for JSON."""
    return {
        "format": 1,
        **plain(about),
        "guarantee": _guarantee(guarantee) | {"outside": _bound(guarantee.outside)},
        "exchangeability": _exchangeability(compared),
        "versions": dict(versions()),
        "made": today(),
    }


def today() -> str:
    """Return the date, or the one that SOURCE_DATE_EPOCH names, so that builds can be repeated."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    day = datetime.datetime.fromtimestamp(int(epoch), datetime.UTC) if epoch.isdigit() else None
    return (day or datetime.datetime.now(datetime.UTC)).date().isoformat()


@cache
def versions() -> dict[str, str]:
    """Return the versions that a report depends on."""
    numbers = {"python": platform.python_version()}
    for package in PACKAGES:
        with suppress(metadata.PackageNotFoundError):  # of a program that was bundled
            numbers[package] = metadata.version(package)
    return numbers


def _counts(filled: FilledColumn) -> dict[str, int]:
    return {
        "rows": filled.counts.rows,
        "columns": len(filled.columns),
        "unlabelled": filled.counts.unlabelled,
        "labelled": filled.counts.labelled,
        "classes": 0 if filled.answer.classes is None else len(filled.answer.classes),
        **filled.counts.statuses,
        # Of how many rows without a label the numbers are, where the fit saw a sample of the table.
        **({} if filled.counts.sampled is None else {"sampled": filled.counts.sampled}),
    }


def _law(filled: FilledColumn) -> dict[str, Any] | None:
    """Return the distribution of the number outside, by its parameters, with its bound; None if there is none."""
    law, bound, guarantee = filled.miscoverage, filled.guarantee.outside, filled.guarantee
    if law is None and bound is None:
        return None
    n_unlabelled, n_calibration = (
        getattr(bound, "of", 0),
        guarantee.n_calibration,
    )  # of a sum of bounds
    if law is not None:
        n_unlabelled, n_calibration = law.n_unlabelled, np.sum(law.n_calibration)
    return {
        "n_unlabelled": int(n_unlabelled),
        "n_calibration": int(n_calibration),
        "rank": law.rank if isinstance(law, Miscoverage) else None,
        "certainty": float(filled.certainty if bound is None else bound.certainty),
        "at_most": None if bound is None else bound.at_most,
        "expected": None if bound is None else bound.expected,
    }


def _exchangeability(test: Exchangeability | None) -> dict[str, Any] | None:
    if test is None:
        return None
    telling = test.features[test.features["p_value"] <= 0.05].head(5 if test.shifted else 0)[
        "distance"
    ]
    return {
        "verdict": clean(str(test.verdict)),
        "power": clean(test.verdict.power),
        "tested": test.verdict.p_value is not None,
        "p_value": finite(test.p_value),
        "area_under_curve": finite(test.auc),
        "shifted": bool(test.shifted),
        "suspected": test.verdict.suspected,
        "detectable": finite(test.detectable),
        "n_permutations": int(test.n_permutations),
        "features": [
            {"name": name_of(name), "distance": finite(far)} for name, far in telling.items()
        ],
    }


def _guarantee(guarantee: Guarantee) -> dict[str, Any]:
    """Return the guarantee: its data, and its sentences; the verdict of the test stands by itself."""
    return {
        **{name: plain(getattr(guarantee, name)) for name in GUARANTEED},
        "limits": None if guarantee.limits is None else plain(asdict(guarantee.limits)),
        "effective": finite(guarantee.effective),
        "wrong": _bound(guarantee.wrong),
        "wrong_by_class": [
            {"class": name_of(c), **(_bound(b) or {})} for c, b in guarantee.wrong_by_class
        ],
        "reason": clean((*guarantee.details, *guarantee.reasons, "")[0]),
        "grounds": clean(replace(guarantee, verdict=None, drift=None, remedy=()).grounds),
    }


def _bound(bound: CountBound | None) -> dict[str, Any] | None:
    """Return a bound on a count; None where there is none."""
    if bound is None:
        return None
    return {
        "at_most": bound.at_most,
        "of": bound.of,
        "certainty": bound.certainty,
        "tells": bound.tells,
    }


def _members(members: pd.DataFrame) -> list[dict[str, Any]]:
    """Return one record for each method, the largest weight first."""
    ordered = members.sort_values("weight", ascending=False, kind="stable", na_position="last")
    lines = ordered.to_dict("records")
    return [{**plain(line), "name": name_of(line["name"]).replace("_", " ")} for line in lines]


def _relevance(filled: FilledColumn) -> list[dict[str, Any]] | None:
    weights = () if filled.relevance is None else filled.relevance.items()
    return [{"name": name_of(name), "relevance": float(weight)} for name, weight in weights] or None


def _map(filled: FilledColumn) -> dict[str, Any] | None:
    """Return the places of some rows, spread evenly over the table, with their values, known or answered."""
    if filled.map is None or not len(filled.map):
        return None
    answer, labels = filled.answer, filled.labels.labels.astype(object)
    labels[answer.rows] = answer.values
    labels[answer.rows[np.asarray(answer.status) == "unreached"]] = None
    known = filled.map[["x", "y"]].notna().all(axis=1).to_numpy()
    rows = np.flatnonzero(known)[evenly(int(known.sum()), MOST_MAPPED)]
    numbers = filled.task == "regression"
    values = pd.to_numeric(pd.Series(labels[rows]), errors="coerce") if numbers else labels[rows]
    return {
        "n_rows": len(filled.map),
        "x": plain(filled.map["x"].to_numpy()[rows]),
        "y": plain(filled.map["y"].to_numpy()[rows]),
        "unlabelled": np.isin(rows, answer.rows).tolist(),
        "value": [
            finite(v) if numbers else None if plain(v) is None else name_of(v) for v in values
        ],
    }


def _who_was_labelled(facts: Facts) -> dict[str, Any] | None:
    """Return what is known of which rows have a label; None if no row lacks one."""
    filled, test, guarantee = facts.filled, facts.filled.exchangeability, facts.filled.guarantee
    if not len(filled.answer):
        return None
    columns = {}
    if test is not None and test.verdict.p_value is not None:
        columns = test.features.head(MOST_COLUMNS).to_dict("index")
    return {
        "columns": [{"name": name_of(name), **plain(line)} for name, line in columns.items()],
        "overlap": None if test is None else _overlap(test.overlap),
        "drift": None if guarantee.drift is None else clean(guarantee.drift),
        "sensitivity": None
        if filled.sensitivity is None
        else plain(filled.sensitivity.to_dict("records")),
        "remedy": [row + 1 for row in guarantee.remedy],
        "sentences": plain(who_was_labelled(facts)),
    }


def _class_shares(filled: FilledColumn) -> dict[str, Any] | None:
    """Return the shares of the classes, the most frequent first; None unless labels were chosen by their class."""
    shares = filled.class_shares
    if shares is None:
        return None
    frame = shares.to_frame().sort_values("share", ascending=False, kind="stable").reset_index()
    classes = [
        {**plain(line), "class": name_of(line["class"])} for line in frame.to_dict("records")
    ]
    return {"given": shares.given, "confidence": shares.confidence, "classes": classes}


def _class_coverage(filled: FilledColumn) -> list[dict[str, Any]] | None:
    """Return how often sets hold each class where it is the true one, estimated, the rarest first; None of numbers."""
    if filled.class_coverage is None:
        return None
    rarest_first = filled.class_coverage.sort_values("labels", kind="stable").reset_index()
    return [
        {**plain(line), "class": name_of(line["class"])} for line in rarest_first.to_dict("records")
    ]


def _overlap(scores: Any) -> dict[str, Any] | None:
    """Return the shares of labelled and unlabelled rows in bins of their scores."""
    if scores is None or min(len(part) for part in scores) == 0:
        return None
    low, high = np.quantile(np.concatenate(scores), [0.005, 0.995])
    if not high > low:
        return None
    edges = np.linspace(low, high, N_BINS + 1)
    bins = [np.histogram(np.clip(part, low, high), edges)[0] / len(part) for part in scores]
    return {
        "edges": plain(edges),
        "labelled": plain(bins[0]),
        "unlabelled": plain(bins[1]),
        "shared": float(np.minimum(*bins).sum()),
        "n_labelled": len(scores[0]),
        "n_unlabelled": len(scores[1]),
    }


_LOST = {  # of one row, of several, and how it goes on
    "tied": ("is a tie", "are ties", "between classes that are equally good"),
    "rejected": ("is", "are", "marked as rejected, being too unsure"),
    "unreached": (
        "has no answer,",
        "have no answer,",
        "because nothing connects {} with a known value",
    ),
}
NO_DATA = {  # used as if observed, intervals of means, slopes and shares at 95 % held 35 to 71 %
    "regression": "Filled values vary less than true ones: do not average, count or regress on them as if they were "
    "measured. Ask instead: `transduce estimate` answers for the whole column.",
    "classification": "Filled classes are predictions: do not count or regress on them as if they were observed. "
    "Ask instead: `transduce estimate` answers for the whole column.",
}
_ICONS = {"good": "✓", "fair": "≈", "bad": "!"}


@dataclass(frozen=True)
class Facts:
    """What sentences are made of: the filled table, and what was counted in it."""

    filled: FilledColumn
    source: str
    counts: dict[str, int]
    answers: FilledValues
    quality: Quality | None
    differing: list[str]  # the columns in which labelled and unlabelled rows differ

    @property
    def numbers(self) -> bool:
        """Whether numbers were filled."""
        return self.filled.task == "regression"

    @property
    def shifted(self) -> bool:
        """Whether a test found that labelled and unlabelled rows differ."""
        return self.filled.exchangeability is not None and bool(self.filled.exchangeability.shifted)


def question(facts: Facts) -> str:
    """Return the question in sentences."""
    counts, target = facts.counts, name_of(facts.filled.target)
    where = f" of {facts.source}" if facts.source else ""
    if not counts["unlabelled"]:
        return f"No value is missing in “{target}”{where}, so there was nothing to fill."
    share = rough_percent(counts["unlabelled"] / counts["rows"])
    kind = (
        facts.filled.labels.kind
        if facts.numbers
        else counted(counts["classes"], "class", "classes")
    )
    missing = "has no value" if counts["unlabelled"] == 1 else "have no value"
    some = f"{counts['unlabelled']:,} of the {counted(counts['rows'], 'row')}{where} {missing} in “{target}” ({share})"
    return f"{some}. They were filled from the {counted(counts['labelled'], 'row')} that have one ({kind})."


def reply(facts: Facts) -> list[str]:
    """Return what was answered, in sentences."""
    counts = facts.counts
    if not counts["unlabelled"]:
        return ["There is nothing to fill."]
    rows = counted(counts["unlabelled"], "row")
    lost = [
        f"{counted(counts[kind], one, many)} {on.format('it' if counts[kind] == 1 else 'them')}"
        for kind, (one, many, on) in _LOST.items()
        if counts[kind]
    ]
    first = f"All {rows} were answered." if counts["unlabelled"] > 1 else "It was answered."
    if facts.filled.counts.is_lazy:  # only the sample is known
        first = f"{rows[0].upper()}{rows[1:]} are answered when the frame is computed."
    elif lost:
        n_answered = sum(counts[kind] for kind in ("answered", "below", "above", "unusual"))
        first = f"{n_answered:,} of {rows} were answered; {'; '.join(lost)}."
    if counts["below"] + counts["above"]:
        words = " and ".join(
            f"{counts[kind]:,} {kind} it" for kind in ("below", "above") if counts[kind]
        )
        first += f" Where labels are limits, values beyond one are written as the limit: {words}."
    if counts["unusual"]:
        unusual = counted(counts["unusual"], "row is", "rows are")
        first += (
            f" {unusual} unusual: even the answered class rarely looks like that, and it is unsure."
        )
    if facts.shifted and facts.filled.guarantee.kind != "exact":
        kind = facts.filled.guarantee.kind
        left = "nothing is guaranteed" if kind == "none" else f"the guarantee is {kind}"
        first += f" A test found that rows with and without a value differ: {left}."
    return [first, *facts.answers.sentences]


def _why_not_known(filled: FilledColumn) -> str:
    """Return why hidden labels do not tell how good the predictions are; "" if they do."""
    return why_not_known(filled.has_draws, filled.exchangeability, filled.guarantee)


def column_guarantee(facts: Facts) -> str:
    """Return what is guaranteed of the column where the statement does not say so itself; "" where it does."""
    filled, things = facts.filled, ("values", "intervals") if facts.numbers else ("classes", "sets")
    what = "true {} are outside their {}".format(*things)
    if not facts.counts["unlabelled"] or filled.guarantee.outside is not None:
        return ""
    if filled.miscoverage is not None or filled.guarantee.kind == "none":
        return f"Nothing is guaranteed about how many {what}."
    most = f", except that on average over many such tables at most {percent(1 - filled.confidence)} are"
    exact = filled.guarantee.kind == "exact" and not filled.guarantee.n_groups
    return f"How many {what} in total is not guaranteed{most if exact else ''}."


def _quality_sentence(facts: Facts) -> str:
    """Return how good the answers were, or that this is not known."""
    quality = facts.quality
    assert quality is not None
    unknown = _why_not_known(facts.filled)
    if unknown:
        return f"How good the answers are cannot be known. {unknown}"
    hidden = counted(quality.numbers["n"], "known value was", "known values were")
    return f"{hidden} hidden in turn and answered: {quality.large}; {quality.small}."


def caveats(facts: Facts) -> list[str]:
    """Return what a reader should be careful about."""
    filled, unlabelled = facts.filled, facts.counts["unlabelled"]
    if not unlabelled:
        return []
    said = [facts.quality.slips] if facts.quality is not None and facts.quality.slips else []
    if facts.shifted and filled.guarantee.kind != "exact":
        said.append(
            "A test raised an alarm: rows with and without a value differ. Chance alone raises it in "
            f"1 of {FALSE_ALARMS} tables. If values were gathered on purpose, intervals and sets "
            "contain the truth less often than stated, or more often."
        )
    elif filled.class_shares is not None:
        said.append(
            "Labels were chosen by their class. Whether the rows of each class were labelled at random "
            "cannot be tested, and estimated shares are poor where the other columns hardly tell the classes apart."
        )
    elif filled.guarantee.assumptions:
        seen = "A test can find signs against this in the other columns, but it cannot prove it."
        if CHANCE not in filled.guarantee.assumptions:
            seen = "Nothing in the table can prove this."
        said.append(
            f"The guarantee assumes that {' and that '.join(filled.guarantee.conditions)}. {seen}"
        )
    if filled.guarantee.kind != "none":
        said += [
            "The guarantee is about rows picked at random, not about one particular row or kind of row: uncertain "
            f"rows, and some kinds of row, may be outside more often than others.{_rarest_class(facts)}",
            filled.guarantee.caution,
        ]
    said.append(NO_DATA[filled.task])
    if n_unbounded := facts.answers.numbers.get("n_unbounded"):
        unbounded = f"of {unlabelled:,} {'is' if n_unbounded == 1 else 'are'} unbounded"
        few = f"there are too few known values to say more at {percent(filled.confidence)}, or no answer"
        said.append(
            f"{counted(n_unbounded, 'interval')} {unbounded}: {few}. A lower level may give bounds."
        )
    if n_lost := facts.counts["unreached"]:
        said.append(f"{counted(n_lost, 'row')} could not be answered: the value stays empty there.")
    if facts.quality is not None and len(filled.members) > 1:
        blend = "Methods were weighted by the same held-out values that are scored here, so the blend may look a"
        said.append(f"{blend} little better than it is. Intervals and sets do not depend on that.")
    if filled.relevance is not None:
        said.append("Relevance says what the answers were made from, not what causes the values.")
    return said


def _rarest_class(facts: Facts) -> str:
    """Return how often sets hold the rarest class where it is the true one, estimated, in a sentence; "" if unknown."""
    coverage = _class_coverage(facts.filled) or []
    judged = [line for line in coverage if line["judged"]]
    if not judged:
        return ""
    rarest = judged[0]
    share = rough_percent(rarest["covered"] / rarest["judged"])
    return (
        f" Of the rarest class, “{rarest['class']}”, an estimated {share} are in their sets "
        f"({rarest['covered']:,} of {counted(rarest['judged'], 'known value')} that were hidden)."
    )


def again(facts: Facts) -> str:
    """Return what the command that does it again does."""
    version, made = versions().get("transduce", "unknown"), today()
    if facts.filled.is_session:
        return f"The journal of the session has all labels; this page was exported on {made} by transduce {version}."
    page = f"with --report FILE it makes this page, which is of {made}"
    return f"This fills the same table in the same way, with transduce {version}; {page}."


def who_was_labelled(facts: Facts) -> list[str]:
    """Return on what the guarantee rests, and what a reader should know of which rows have a label."""
    filled, guarantee = facts.filled, facts.filled.guarantee
    said = [filled.origins] if filled.origins else []
    if DRAWN in guarantee.assumptions:
        said.append(
            "Rows drawn at random calibrate; it does not matter how the other labels were chosen."
        )
    elif guarantee.assumptions:
        said.append(f"It was taken for granted that {' and that '.join(guarantee.conditions)}.")
    if guarantee.effective is not None:
        labels = counted(guarantee.n_calibration, "calibration label")
        said.append(
            f"The {labels} are weighted by how much they stand for the unlabelled rows, and are "
            f"worth as much as {number(guarantee.effective, 0)} of equal weight."
        )
    if guarantee.drift is not None:
        said.append(str(guarantee.drift))
    if guarantee.remedy:
        rows = ", ".join(f"{row + 1:,}" for row in guarantee.remedy)
        drawn = f"label these rows, which were drawn at random: {rows} (counted from 1)"
        marks = f"`transduce draw --number {len(guarantee.remedy)} --seed 0` marks them"
        uses = "`transduce fill --random-labels` uses them"
        said.append(f"To get an exact guarantee, {drawn}. {marks}, and {uses}.")
    if filled.sensitivity is not None:
        said.append(_sensitivity(filled.sensitivity, len(filled.answer)))
    return said


def _sensitivity(table: pd.DataFrame, n: int) -> str:
    """Return how much wider intervals get if the chance of a label also depends on the value itself."""
    said = []
    for line in table.to_dict("records"):
        free = f"{int(line['n_unbounded']):,} of {n:,}"
        if "width" not in line:
            words = f"sets hold {line['size']:.3g} {'class' if line['size'] == 1.0 else 'classes'} on average"
        elif not math.isfinite(line["width"]):
            words = f"{free} intervals have no bound"
        else:
            more = f", and {free} have no bound" if line["n_unbounded"] else ""
            words = f"half of the intervals are at most {line['width']:.3g} wide{more}"
        said.append(
            f"by a factor of up to {line['factor']:g}: {words}" if line["factor"] > 1.0 else words
        )
    first, *others = said
    depends = f"If the odds of a label also depend on the value, either way, {'; '.join(others)}."
    return f"If the value itself played no part in who has a label, {first}. {depends}"


def cards(facts: Facts) -> list[dict[str, str]]:
    """Return questions with their answers, in a few large words and in a sentence, and how it looks."""
    if not facts.counts["unlabelled"]:
        return []
    answered, unmeasured = {}, facts.filled.unmeasured
    if facts.quality is not None:
        answered = {"How good are the answers?": _how_good(facts, facts.quality)}
    elif unmeasured:
        answered = {"How good are the answers?": ("not known", unmeasured, "fair")}
    answered |= {"What is guaranteed?": _what_holds(facts), "Can it be trusted?": _trusted(facts)}
    return [
        {"question": question, "large": large, "small": small, "tone": tone, "icon": _ICONS[tone]}
        for question, (large, small, tone) in answered.items()
    ]


def to_do(facts: Facts) -> str:
    """Return what to do next, in a sentence or two; "" if nothing was filled."""
    filled, guarantee = facts.filled, facts.filled.guarantee
    if not facts.counts["unlabelled"]:
        return ""
    if filled.to_do:
        return filled.to_do
    draw = "rows drawn at random, which `transduce draw` picks"
    if guarantee.kind == "none":
        suggestions = "Take the values as suggestions until more rows have labels"
        lower = ""
        if guarantee.reachable is not None:
            level = option("confidence", guarantee.reachable)
            lower = f" Or ask for {percent(guarantee.reachable)} with {level}, which these labels support."
        return f"{suggestions}: label {draw}, and fill again.{lower}"
    if guarantee.in_doubt:
        then = "then the other labels may be chosen at will"
        return f"Label {draw}, and fill again with --random-labels: {then}."
    if facts.quality is not None and facts.quality.judged:
        return f"Add columns that tell more of “{name_of(filled.target)}”: these say next to nothing of it."
    look = [word for word in ("unusual", "tied", "rejected", "unreached") if facts.counts[word]]
    first = f"Look at the rows whose status is {' or '.join(look)}" if look else ""
    if facts.answers.little:
        first = "Label more rows: so far the answers are too unsure to tell much"
        if not facts.numbers:
            every = option("probabilities", True)
            first += f" ({every} gives the probability of every class, where sets hold nearly all)"
    elif not look:
        what = "interval" if facts.numbers else "set"
        first = f"Use each answer with its {what}, not as if it were measured, and look at the least certain rows"
    more = "To be surer, label the rows named under “What to label next”."
    return f"{first}. {more}" if filled.has_rows_to_label else f"{first}."


def _how_good(facts: Facts, quality: Quality) -> tuple[str, str, str]:
    """Return the card on how good the predictions are: a tick only where hidden values show that, and tell."""
    large, small = quality.large, f"{_measured(facts)}; {quality.small}."
    unknown = _why_not_known(facts.filled)
    if unknown:
        return "cannot be known", unknown, "bad"
    if quality.judged:
        return large, f"{small} {quality.judged}", "bad"
    guarantee = facts.filled.guarantee
    if guarantee.in_doubt or (facts.shifted and guarantee.kind != "exact"):
        return large, f"{small} The rows to be filled differ from those.", "fair"
    if guarantee.kind == "none":
        return large, small, "fair"
    if quality.numbers["n"] < FEWEST_TICKED:
        return large, f"{small} So few known values tell little.", "fair"
    if not quality.clear:
        return large, f"{small} That is better, but not by much.", "fair"
    return large, small, "good"


def _measured(facts: Facts) -> str:
    """Return where it was measured how good the predictions are, and in which unit, as the start of a sentence."""
    hidden = ["At known values that were hidden", facts.filled.measured_at]
    if facts.numbers and not facts.filled.labels.spelling.unit:
        hidden.append(f"in the unit of “{name_of(facts.filled.target)}”")
    return ", ".join(filter(None, hidden))


def _what_holds(facts: Facts) -> tuple[str, str, str]:
    guarantee, bound = facts.filled.guarantee, facts.filled.guarantee.outside
    what = "intervals" if facts.numbers else "sets"
    if guarantee.kind == "none":
        return "nothing", (*guarantee.reasons, f"The {what} are not guaranteed.")[0], "bad"
    least = "about" if guarantee.kind == "approximate" else "at least"
    large, small = (
        f"{least} {percent(facts.filled.confidence)}",
        f"of {what} hold the truth, on average",
    )
    if guarantee.n_groups:
        small += " over new groups, each of which counts once"
        small += (
            "; groups differ in size, and of all rows more may be outside"
            if guarantee.uneven
            else ""
        )
    if bound is not None:
        exact = "were it exact, " if guarantee.hedged else ""
        sure = f"with {percent(bound.certainty)} certainty"
        small += f"; {exact}at most {bound.at_most:,} of {bound.of:,} do not, {sure}"
    small += f".{facts.answers.little}"
    small += (
        " Intervals that reach a limit of the labels are open there." if guarantee.limits else ""
    )
    if guarantee.in_doubt:
        return "in doubt", f"If rows had been labelled at random: {large} {small}", "bad"
    return (
        large,
        small,
        "good" if guarantee.kind == "exact" and not facts.answers.little else "fair",
    )


def _trusted(facts: Facts) -> tuple[str, str, str]:
    guarantee, test = facts.filled.guarantee, facts.filled.exchangeability
    names = ", ".join(f"“{name}”" for name in facts.differing[:3])
    differ = (
        f"Rows with and without a known value differ{f', most of all in {names}' if names else ''}"
    )
    if guarantee.kind == "none":
        return "no guarantee", "Take the values as suggestions.", "bad"
    alarm = f"an alarm, which chance alone raises in 1 of {FALSE_ALARMS} tables"
    if guarantee.in_doubt:
        return "guarantee: in doubt", f"{differ}: {alarm}.", "bad"
    if guarantee.kind == "approximate":
        small = "It holds nearly, or under an assumption in doubt."
        if ESTIMATE in guarantee.assumptions:
            small = "What decided which values are known can only be estimated."
        if facts.shifted:
            small = f"{differ}: {alarm}. An estimate of how corrects for that."
        return "guarantee: approximate", small, "fair"
    conditions = " and if ".join(guarantee.conditions)
    if not conditions:
        return "guarantee: exact", "It holds for any distribution.", "good"
    if CHANCE not in guarantee.assumptions or guarantee.factor > 1.0:
        return "guarantee: exact", f"If {conditions}.", "good"
    if test is not None and test.verdict.suspected:
        weak = "a test found signs against that, too weak to be sure"
        return "guarantee: exact", f"If {conditions}; {weak}.", "fair"
    seen = "no test could check that"
    if test is not None and test.verdict.p_value is not None:
        seen = "a test found nothing against that"
    return "guarantee: exact", f"If {conditions}; {seen}.", "good"
