"""Every number and sentence of a report, computed once, as one plain dictionary."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np
import pandas as pd

from transduce.app.report import sentences
from transduce.app.report.filled_column import FilledColumn
from transduce.app.report.jsonable import (
    escape_text,
    finite_or_none,
    json_name,
    records_of,
    spread_evenly,
    to_json,
)
from transduce.app.report.quality import measure_quality
from transduce.app.report.rows import context_columns, describe_values, row_records
from transduce.app.report.sentences import NO_DATA, ReportContext
from transduce.app.report.summary_types import (
    BoundSummary,
    ExchangeabilitySummary,
    LabelledSummary,
    LevelSummary,
    MapSummary,
    MiscoverageSummary,
    OverlapSummary,
    RowRecord,
    SharesSummary,
    Summary,
)
from transduce.app.report.suspects import summarize_suspects
from transduce.app.report.whole_column import summarize_whole
from transduce.conformal import Exchangeability, Miscoverage
from transduce.core.checks import WrongTypeError
from transduce.core.guarantee import CountBound, Guarantee
from transduce.core.guarantee_sentences import level_sentences
from transduce.core.types import Array, JsonObject
from transduce.core.words import quoted

__all__ = ["NO_DATA", "Summary", "summarize", "summarize_later"]

PACKAGES = ("transduce", "numpy", "pandas", "scikit-learn", "scipy", "skrub")
# Fields of a summary of a guarantee that are as `Guarantee` has them.
GUARANTEED = (
    "kind",
    "headline",
    "statement",
    "in_doubt",
    "confidence",
    "tolerance",
    "assumptions",
    "factor",
    "n_calibration",
    "n_unbounded",
    "n_groups",
    "n_other",
    "of_rows",
    "n_empty",
    "remedy",
    "reachable",
)
MOST_MAPPED = 1200  # rows of the map that are drawn
N_BINS = 24  # of the overlap of labelled and unlabelled rows
MOST_COLUMNS = 8  # that tell labelled from unlabelled rows
MOST_DIFFERING = 5  # columns that are named where rows differ


def summarize(filled: FilledColumn) -> Summary:
    """Return what there is to say about a filled table: numbers and sentences that JSON can hold.

    Parameters
    ----------
    filled : FilledColumn
        What ``fill(...).reported`` is.

    Returns
    -------
    dict
        The same for the same table, settings and versions. A number that does not exist is None,
        and so is an end of an interval that is infinite.

    Examples
    --------
    >>> import pandas as pd
    >>> from transduce import fill
    >>> from transduce.app.report import summarize
    >>> price = [2.0 * n if n % 3 else None for n in range(60)]
    >>> table = pd.DataFrame({"size": range(60), "price": price})
    >>> summary = summarize(fill(table, "price", method="ridge", guarantee="column").reported)
    >>> summary["target"], summary["task"], len(summary["rows"])
    ('price', 'regression', 20)
    """
    if not isinstance(filled, FilledColumn):
        raise WrongTypeError(
            f"summarize takes what fill(...).reported returns; got {quoted(filled)}."
        )
    rows = row_records(filled)
    tested = _summarize_test(filled.exchangeability)
    context = _make_context(filled, rows, tested)
    quality = context.quality
    return {
        "format": 1,
        "target": json_name(filled.target),
        "task": filled.task,
        "source": context.source,
        "confidence": float(filled.confidence),
        "certainty": float(filled.certainty),
        "counts": context.counts,
        "context": [json_name(name, 40) for name in context_columns(filled)],
        "rows": rows,
        "rows_are": sentences.about_row_names(filled),
        "suspects": summarize_suspects(filled.suspects, filled.labels, filled.lines),
        "answers": context.answers.numbers,
        "law": _summarize_miscoverage(filled),
        "exchangeability": tested,
        "guarantee": {
            **_summarize_guarantee(filled.guarantee),
            "column": sentences.about_column(context),
        },
        "levels": _summarize_levels(filled),
        "levels_sentences": to_json(level_sentences(filled.guarantees)),
        "who_was_labelled": _summarize_labelled(context),
        "whole": summarize_whole(filled),
        "class_shares": _summarize_shares(filled),
        "class_coverage": sentences.class_coverage(filled),
        "quality": None if quality is None else quality.numbers,
        "members": _summarize_members(filled.members),
        "relevance": _summarize_relevance(filled),
        "map": _summarize_map(filled),
        "columns": _summarize_columns(filled),
        "options": to_json(filled.options),
        "versions": dict(versions()),
        "question": sentences.question(context),
        "reply": sentences.reply(context),
        "quality_known": quality is not None and not context.why_quality_unknown,
        "quality_sentence": sentences.about_quality(context),
        "caveats": sentences.caveats(context),
        "next": escape_text(filled.advice),
        "cards": to_json(sentences.cards(context)),
        "to_do": sentences.to_do(context),
        "again": filled.again,
        "again_words": sentences.about_again(context, versions().get("transduce", ""), today()),
        "notes": to_json([note.text for note in filled.notes]),
        "made": today(),
    }


def _make_context(
    filled: FilledColumn, rows: Sequence[RowRecord], tested: ExchangeabilitySummary | None
) -> ReportContext:
    """Return what the sentences of a report are made from."""
    differing = []
    if tested is not None:
        differing = [column["name"] for column in tested["features"]]
    return ReportContext(
        filled=filled,
        source=_file_name(filled.options.get("source")),
        counts=_count_all(filled),
        answers=describe_values(filled, rows),
        quality=measure_quality(filled.task, filled.out_of_fold, filled.labels.spelling.unit),
        differing=differing,
    )


def _summarize_columns(filled: FilledColumn) -> list[JsonObject]:
    """Return what was made of each column."""
    names = filled.columns["name"]
    lines = records_of(filled.columns)
    return [line | {"name": json_name(name)} for line, name in zip(lines, names, strict=True)]


def _summarize_levels(filled: FilledColumn) -> list[LevelSummary]:
    """Return what is guaranteed, and given, at each level besides the main one."""
    levels = []
    for other in filled.answer.further:
        guarantee = filled.guarantees[other.level]
        median_width = None
        n_one = None
        if other.regions is not None and len(filled.answer):
            median_width = finite_or_none(np.median(other.regions.measure()))
        if other.label_sets is not None:
            sizes = other.label_sets.sum(axis=1)
            if other.unseen is not None:
                sizes = sizes + other.unseen
            n_one = int(np.sum(sizes == 1))
        level: LevelSummary = {
            "confidence": other.level,
            "kind": guarantee.kind,
            "outside": _summarize_bound(guarantee.outside),
            "reason": escape_text(" ".join(guarantee.reasons[:1])),
            "median_width": median_width,
            "n_one": n_one,
        }
        levels.append(level)
    return levels


def summarize_later(
    about: JsonObject, guarantees: dict[float, Guarantee], compared: Exchangeability
) -> JsonObject:
    """Return what there is to say about later rows that were answered, for JSON."""
    guarantee, *others = guarantees.values()
    levels = []
    for other in others:
        outside = _summarize_bound(other.outside)
        levels.append({**_summarize_guarantee(other), "outside": outside})
    return {
        "format": 1,
        **to_json(about),
        "guarantee": {
            **_summarize_guarantee(guarantee),
            "outside": _summarize_bound(guarantee.outside),
        },
        "levels": levels,
        "exchangeability": _summarize_test(compared),
        "versions": dict(versions()),
        "made": today(),
    }


def today() -> str:
    """Return the date, or the one that SOURCE_DATE_EPOCH names, so that builds can be repeated."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.datetime.now(datetime.UTC)
    if epoch.isdigit():
        now = datetime.datetime.fromtimestamp(int(epoch), datetime.UTC)
    return now.date().isoformat()


@cache
def versions() -> dict[str, str]:
    """Return the versions that a report depends on."""
    numbers = {"python": platform.python_version()}
    for package in PACKAGES:
        with suppress(metadata.PackageNotFoundError):  # of a program that was bundled
            numbers[package] = metadata.version(package)
    return numbers


def _file_name(source: Any) -> str:
    """Return the name of the file that a table came from, without its folder."""
    path = str(source or "").replace("\\", "/")
    return escape_text(path.rpartition("/")[2], 80)


def _count_all(filled: FilledColumn) -> dict[str, int]:
    """Return how many rows, columns, classes and predictions of each status there are."""
    n_classes = 0
    if filled.answer.classes is not None:
        n_classes = len(filled.answer.classes)
    counts = {
        "rows": filled.counts.rows,
        "columns": len(filled.columns),
        "unlabelled": filled.counts.unlabelled,
        "labelled": filled.counts.labelled,
        "classes": n_classes,
        **filled.counts.statuses,
    }
    # How many unlabelled rows the numbers are about, where the fit saw a sample of the table.
    if filled.counts.sampled is not None:
        counts["sampled"] = filled.counts.sampled
    return counts


def _summarize_miscoverage(filled: FilledColumn) -> MiscoverageSummary | None:
    """Return the distribution of the number outside, with its bound; None if there is none."""
    law = filled.miscoverage
    bound = filled.guarantee.outside
    if law is None and bound is None:
        return None
    summary: MiscoverageSummary = {
        "n_unlabelled": 0,
        "n_calibration": filled.guarantee.n_calibration,
        "rank": None,
        "certainty": float(filled.certainty),
        "at_most": None,
        "expected": None,
    }
    if bound is not None:
        summary["n_unlabelled"] = bound.of
        summary["certainty"] = float(bound.certainty)
        summary["at_most"] = bound.at_most
        summary["expected"] = bound.expected
    if law is not None:
        summary["n_unlabelled"] = int(law.n_unlabelled)
        summary["n_calibration"] = int(np.sum(law.n_calibration))
    if isinstance(law, Miscoverage):
        summary["rank"] = law.rank
    return summary


def _summarize_test(test: Exchangeability | None) -> ExchangeabilitySummary | None:
    """Return how labelled and unlabelled rows compare; None if that was not tested."""
    if test is None:
        return None
    telling = test.features[test.features["p_value"] <= 0.05].head(MOST_DIFFERING)
    if not test.shifted:
        telling = telling[:0]
    return {
        "verdict": escape_text(str(test.verdict)),
        "power": escape_text(test.verdict.power),
        "tested": test.verdict.p_value is not None,
        "p_value": finite_or_none(test.p_value),
        "area_under_curve": finite_or_none(test.auc),
        "shifted": bool(test.shifted),
        "suspected": test.verdict.suspected,
        "detectable": finite_or_none(test.detectable),
        "n_permutations": int(test.n_permutations),
        "features": [
            {"name": json_name(name), "distance": finite_or_none(distance)}
            for name, distance in telling["distance"].items()
        ],
    }


def _summarize_guarantee(guarantee: Guarantee) -> JsonObject:
    """Return the guarantee, as data and in sentences.

    The verdict of the test stands by itself.
    """
    limits = None
    if guarantee.limits is not None:
        limits = to_json(asdict(guarantee.limits))
    wrong_by_class = [
        {"class": json_name(name), **(_summarize_bound(bound) or {})}
        for name, bound in guarantee.wrong_by_class
    ]
    first_reason = (*guarantee.details, *guarantee.reasons, "")[0]
    alone = replace(guarantee, verdict=None, drift=None, remedy=())
    return {
        **{name: to_json(getattr(guarantee, name)) for name in GUARANTEED},
        "limits": limits,
        "effective": finite_or_none(guarantee.effective),
        "wrong": _summarize_bound(guarantee.wrong),
        "wrong_by_class": wrong_by_class,
        "reason": escape_text(first_reason),
        "grounds": escape_text(alone.grounds),
    }


def _summarize_bound(bound: CountBound | None) -> BoundSummary | None:
    """Return a bound on a count; None where there is none."""
    if bound is None:
        return None
    return {
        "at_most": bound.at_most,
        "of": bound.of,
        "certainty": bound.certainty,
        "tells": bound.tells,
        "judged": bound.judged,
        "changed": bound.changed,
    }


def _summarize_members(members: pd.DataFrame) -> list[JsonObject]:
    """Return one record for each method, the largest weight first."""
    ordered = members.sort_values("weight", ascending=False, kind="stable", na_position="last")
    names = [json_name(name).replace("_", " ") for name in ordered["name"]]
    pairs = zip(records_of(ordered), names, strict=True)
    return [line | {"name": name} for line, name in pairs]


def _summarize_relevance(filled: FilledColumn) -> list[JsonObject] | None:
    """Return how much each column matters; None if no method says so."""
    if filled.relevance is None or not len(filled.relevance):
        return None
    return [
        {"name": json_name(name), "relevance": float(weight)}
        for name, weight in filled.relevance.items()
    ]


def _summarize_map(filled: FilledColumn) -> MapSummary | None:
    """Return the places of some rows, spread evenly over the table, with their values."""
    if filled.map is None or not len(filled.map):
        return None
    answer = filled.answer
    labels = filled.labels.labels.astype(object)
    labels[answer.rows] = answer.values
    labels[answer.rows[np.asarray(answer.status) == "unreached"]] = None
    known = filled.map[["x", "y"]].notna().all(axis=1).to_numpy()
    rows = np.flatnonzero(known)[spread_evenly(int(known.sum()), MOST_MAPPED)]
    return {
        "n_rows": len(filled.map),
        "x": to_json(filled.map["x"].to_numpy()[rows]),
        "y": to_json(filled.map["y"].to_numpy()[rows]),
        "unlabelled": np.isin(rows, answer.rows).tolist(),
        "value": _map_values(labels[rows], filled.task),
    }


def _map_values(labels: Any, task: str) -> list[Any]:
    """Return the values of rows on a map: numbers, names of classes, or None."""
    if task == "regression":
        numbers = pd.to_numeric(pd.Series(labels), errors="coerce")
        return [finite_or_none(number) for number in numbers]
    return [None if to_json(label) is None else json_name(label) for label in labels]


def _summarize_labelled(context: ReportContext) -> LabelledSummary | None:
    """Return what is known of which rows have a label; None if no row lacks one."""
    filled = context.filled
    test = filled.exchangeability
    if not len(filled.answer):
        return None
    columns: list[JsonObject] = []
    if test is not None and test.verdict.p_value is not None:
        lines = test.features.head(MOST_COLUMNS).to_dict("index")
        columns = [{"name": json_name(name), **to_json(line)} for name, line in lines.items()]
    overlap = None
    if test is not None and test.overlap is not None:
        overlap = _summarize_overlap(*test.overlap)
    drift = None
    if filled.guarantee.drift is not None:
        drift = escape_text(filled.guarantee.drift)
    sensitivity = None
    if filled.sensitivity is not None:
        sensitivity = records_of(filled.sensitivity)
    return {
        "columns": columns,
        "overlap": overlap,
        "drift": drift,
        "sensitivity": sensitivity,
        "remedy": [row + 1 for row in filled.guarantee.remedy],
        "sentences": to_json(sentences.who_was_labelled(context)),
    }


def _summarize_overlap(labelled: Array, unlabelled: Array) -> OverlapSummary | None:
    """Return the shares of labelled and unlabelled rows in bins of their scores."""
    if not len(labelled) or not len(unlabelled):
        return None
    low, high = np.quantile(np.concatenate([labelled, unlabelled]), [0.005, 0.995])
    if not high > low:
        return None
    edges = np.linspace(low, high, N_BINS + 1)
    of_labelled = np.histogram(np.clip(labelled, low, high), edges)[0] / len(labelled)
    of_unlabelled = np.histogram(np.clip(unlabelled, low, high), edges)[0] / len(unlabelled)
    return {
        "edges": to_json(edges),
        "labelled": to_json(of_labelled),
        "unlabelled": to_json(of_unlabelled),
        "shared": float(np.minimum(of_labelled, of_unlabelled).sum()),
        "n_labelled": len(labelled),
        "n_unlabelled": len(unlabelled),
    }


def _summarize_shares(filled: FilledColumn) -> SharesSummary | None:
    """Return the shares of the classes, the most frequent first; None unless labels have others."""
    shares = filled.class_shares
    if shares is None:
        return None
    frame = shares.to_frame().sort_values("share", ascending=False, kind="stable").reset_index()
    pairs = zip(records_of(frame), frame["class"], strict=True)
    classes = [line | {"class": json_name(name)} for line, name in pairs]
    return {"given": shares.given, "confidence": shares.confidence, "classes": classes}
