"""Every number and sentence of a report, computed once, as one plain dictionary."""

from __future__ import annotations

import platform
from dataclasses import replace
from importlib import metadata
from typing import Any

import numpy as np
import pandas as pd

from transduce.conformal.miscoverage import Miscoverage
from transduce.core.guarantee import CountBound
from transduce.report import sentences
from transduce.report.again import again, today
from transduce.report.filled import FilledTable
from transduce.report.first_screen import cards
from transduce.report.quality import class_quality, evenly, number_quality
from transduce.report.rows import context_columns, row_records
from transduce.report.who_was_labelled import who_was_labelled
from transduce.report.wording import clean, decimals_for, finite, name_of, plain
from transduce.tables.columns import narrowness

STATUSES = ("answered", "unusual", "tied", "rejected", "unreached")
PACKAGES = ("transduce", "numpy", "pandas", "scikit-learn", "scipy", "skrub")
MOST_MAPPED = 1200  # rows of the map that are drawn


def summarize(filled: FilledTable) -> dict[str, Any]:
    """Return what there is to say about a filled table: numbers and sentences that JSON can hold.

    Parameters
    ----------
    filled : FilledTable
        As `fill` returns it.

    Returns
    -------
    dict
        Only numbers, texts, lists and dictionaries. A number that does not exist is None; so is an end of an
        interval that is infinite. The same table, settings and versions give the same dictionary.
    """
    summary: dict[str, Any] = {
        "format": 1,
        "target": name_of(filled.target),
        "task": filled.task,
        "source": clean(str(filled.options.get("source") or "").replace("\\", "/").rpartition("/")[2], 80),
        "confidence": float(filled.confidence),
        "certainty": float(filled.certainty),
        "counts": _counts(filled),
        "context": [name_of(name, 40) for name in context_columns(filled)],
        "rows": row_records(filled),
    }
    summary["answers"] = _answers(filled, summary["rows"])
    if filled.task == "regression":
        summary["answers"]["narrower"] = _narrower(filled)
    summary["law"] = _law(filled)
    summary["exchangeability"] = _exchangeability(filled)
    summary["guarantee"] = _guarantee(filled)
    summary["who_was_labelled"] = who_was_labelled(filled)
    quality = number_quality if filled.task == "regression" else class_quality
    summary["quality"] = quality(filled.out_of_fold) if len(filled.out_of_fold) else None
    summary["members"] = _members(filled.members)
    summary["relevance"] = _relevance(filled)
    summary["map"] = _map(filled)
    summary["columns"] = [
        {**plain(line), "name": name_of(line["name"])} for line in filled.columns.to_dict("records")
    ]
    summary["options"] = plain(filled.options)
    summary["versions"] = versions()
    summary["notes"] = [clean(note) for note in filled.notes]
    summary["question"] = sentences.question(summary)
    summary["reply"] = sentences.reply(summary)
    summary["guarantee"]["column"] = sentences.column_guarantee(summary)
    summary["quality_sentence"] = sentences.quality_sentence(summary)
    summary["caveats"] = sentences.caveats(summary)
    summary["next"] = "" if filled.advice is None else clean(str(filled.advice))
    summary["cards"] = cards(summary)
    summary["again"] = again(filled.options)
    summary["made"] = today()
    return summary


def versions(packages: tuple[str, ...] = PACKAGES) -> dict[str, str]:
    """Return the versions that a report depends on."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "unknown"
    return found


def _counts(filled: FilledTable) -> dict[str, int]:
    status = np.asarray(filled.answer.status)
    labels = filled.frame[filled.target].dropna()
    return {
        "rows": len(filled.frame),
        "columns": len(filled.columns),
        "unlabelled": len(filled.answer),
        "labelled": len(filled.frame) - len(filled.answer),
        "classes": 0 if filled.answer.classes is None else len(filled.answer.classes),
        "different_labels": int(labels.nunique()),
        **{word: int(np.sum(status == word)) for word in STATUSES},
        **(filled.totals or {}),
    }


def _answers(filled: FilledTable, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the answers are like as a whole."""
    if filled.task == "classification":
        return _class_answers(rows)
    values = np.array([row["value"] for row in rows if row["value"] is not None], dtype=float)
    widths = [np.inf if row["width"] is None else row["width"] for row in rows if "width" in row]
    middle = finite(np.median(widths)) if widths else None
    return {
        "n_answered": len(values),
        "smallest": float(values.min()) if len(values) else None,
        "median": float(np.median(values)) if len(values) else None,
        "largest": float(values.max()) if len(values) else None,
        "median_width": middle,
        "n_unbounded": int(np.sum(np.isinf(widths))) if widths else 0,
        "n_outside": sum(_is_outside(row) for row in rows),
        "n_unions": sum(len(row["pieces"]) > 1 for row in rows if "pieces" in row),
        "equally_wide": bool(middle and np.ptp(widths) <= 1e-9 * middle),
        "decimals": decimals_for([middle] if middle else [values.std() or values.mean()])
        if len(values)
        else 2,
    }


def _narrower(filled: FilledTable) -> float | None:
    """Return how much narrower than without features half of the intervals are at least; None if nobody knows."""
    labels = pd.to_numeric(filled.out_of_fold["true"], errors="coerce").dropna().to_numpy(float)
    if filled.answer.regions is None or not len(filled.answer) or len(labels) < 2:
        return None
    return float(np.median(narrowness(filled.answer.regions.measure(), labels, filled.confidence)))


def _is_outside(row: dict[str, Any]) -> bool:
    """Return whether an answer lies outside its own region or set; where there is none, it does not."""
    if row["value"] is None:
        return False
    if row.get("set"):
        return row["value"] not in row["set"]
    ends = [
        (-np.inf if low is None else low, np.inf if high is None else high)
        for low, high in row.get("pieces") or ()
    ]
    return bool(ends) and not any(low <= row["value"] <= high for low, high in ends)


def _class_answers(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how many rows have which class as an answer, and how many classes are possible at how many rows."""
    known = all(row.get("set") is not None for row in rows)
    sizes = [len(row["set"]) for row in rows] if known else []
    by_class: dict[str, dict[str, int]] = {}
    for row in rows:
        name = "(no answer)" if row["value"] is None else name_of(row["value"])
        tally = by_class.setdefault(name, {"one": 0, "several": 0, "none": 0})
        outside = known and row["value"] is not None and row["value"] not in row["set"]
        tally["none" if outside else "one" if not known or len(row["set"]) == 1 else "several"] += 1
    ordered = sorted(by_class.items(), key=lambda entry: (-sum(entry[1].values()), entry[0]))
    return {
        "n_one": sum(size == 1 for size in sizes) if known else None,
        "n_several": sum(size > 1 for size in sizes) if known else None,
        "n_outside": sum(_is_outside(row) for row in rows) if known else 0,
        "n_empty": sum(size == 0 for size in sizes) if known else None,
        "by_class": [{"name": name, **tally} for name, tally in ordered],
    }


def _law(filled: FilledTable) -> dict[str, Any] | None:
    """Return the distribution of the number outside, by its parameters, with its bound; None if there is none."""
    law, bound = filled.miscoverage, filled.guarantee.outside
    if law is None and bound is not None:  # a sum of bounds, such as those of a sample and of all other rows
        return {
            "n_unlabelled": int(bound.of),
            "n_calibration": int(filled.guarantee.n_calibration or 0),
            "rank": None,
            "certainty": float(bound.certainty),
            "at_most": bound.at_most,
            "expected": bound.expected,
        }
    if law is None:
        return None
    one = law if isinstance(law, Miscoverage) else None
    sizes = [one.n_calibration] if one else list(law.n_calibration)  # type: ignore[arg-type]
    return {
        "n_unlabelled": int(law.n_unlabelled),
        "n_calibration": int(sum(sizes)),
        "rank": one.rank if one else None,
        "certainty": float(filled.certainty),
        "at_most": None if bound is None else bound.at_most,
        "expected": None if bound is None else bound.expected,
    }


def _exchangeability(filled: FilledTable) -> dict[str, Any] | None:
    found = filled.exchangeability
    if found is None:
        return None
    telling = (
        found.features[found.features["p_value"] <= 0.05].head(5) if found.shifted else found.features[:0]
    )
    return {
        "verdict": clean(str(found.verdict)),
        "tested": found.verdict.p_value is not None,
        "p_value": finite(found.p_value),
        "area_under_curve": finite(found.auc),
        "shifted": bool(found.shifted),
        "suspected": found.verdict.suspected,
        "detectable": finite(found.detectable),
        "n_permutations": int(found.n_permutations),
        "features": [
            {"name": name_of(name), "distance": finite(distance)}
            for name, distance in telling["distance"].items()
        ],
    }


def _guarantee(filled: FilledTable) -> dict[str, Any]:
    """Return the guarantee: its data, and its sentences; the verdict of the test stands by itself."""
    found = filled.guarantee
    return {
        "kind": found.kind,
        "headline": found.headline,
        "in_doubt": found.in_doubt,
        "confidence": found.confidence,
        "n_calibration": found.n_calibration,
        "assumptions": list(found.assumptions),
        "wrong": _bound(found.wrong),
        "wrong_by_class": [
            {"class": name_of(label), **(_bound(bound) or {})} for label, bound in found.wrong_by_class
        ],
        "tolerance": found.tolerance,
        "reason": clean(found.reasons[0]) if found.reasons else "",
        "statement": clean(found.statement),
        "factor": found.factor,
        "effective": finite(found.effective),
        "n_unbounded": found.n_unbounded,
        "n_groups": found.n_groups,
        "n_other": found.n_other,
        "remedy": list(found.remedy),
        "grounds": clean(replace(found, verdict=None, drift=None, remedy=()).grounds),
    }


def _bound(found: CountBound | None) -> dict[str, Any] | None:
    """Return a bound on a count; None where there is none."""
    if found is None:
        return None
    return {"at_most": found.at_most, "of": found.of, "certainty": found.certainty}


def _members(members: pd.DataFrame) -> list[dict[str, Any]]:
    """Return one record for each method, the largest weight first; scores that are errors lose their minus."""
    records = []
    for line in members.to_dict("records"):
        score, scorer = finite(line.get("score")), clean(line.get("scorer") or "")
        negative = scorer.startswith("neg_")
        records.append(
            {
                "name": name_of(line["name"]).replace("_", " "),
                "weight": finite(line.get("weight")),
                "score": -score if negative and score is not None else score,
                "scorer": scorer.removeprefix("neg_").replace("_", " "),
                "lower_is_better": negative,
                "seconds": finite(line.get("seconds")),
                "note": clean(plain(line.get("note")) or ""),
            }
        )
    return sorted(
        records, key=lambda record: -1.0 if record["weight"] is None else record["weight"], reverse=True
    )


def _relevance(filled: FilledTable) -> list[dict[str, Any]] | None:
    if filled.relevance is None or not len(filled.relevance):
        return None
    found = [{"name": name_of(name), "relevance": finite(value)} for name, value in filled.relevance.items()]
    return [entry for entry in found if entry["relevance"] is not None] or None


def _map(filled: FilledTable) -> dict[str, Any] | None:
    """Return the places of some rows, spread evenly over the table, with their values, known or answered."""
    if filled.map is None or not len(filled.map):
        return None
    unlabelled = np.zeros(len(filled.frame), dtype=bool)
    unlabelled[filled.answer.rows] = True
    labels = filled.frame[filled.target].astype(object).to_numpy(copy=True)
    labels[filled.answer.rows] = filled.answer.values
    labels[filled.answer.rows[np.asarray(filled.answer.status) == "unreached"]] = None
    known = filled.map[["x", "y"]].notna().all(axis=1).to_numpy()
    rows = np.flatnonzero(known)[evenly(int(known.sum()), MOST_MAPPED)]
    values = (
        pd.to_numeric(pd.Series(labels[rows]), errors="coerce")
        if filled.task == "regression"
        else labels[rows]
    )
    return {
        "n_rows": len(filled.map),
        "x": plain(filled.map["x"].to_numpy()[rows]),
        "y": plain(filled.map["y"].to_numpy()[rows]),
        "unlabelled": plain(unlabelled[rows]),
        "value": [
            finite(value) if filled.task == "regression" else None if plain(value) is None else name_of(value)
            for value in values
        ],
    }
