"""Every number and sentence of a report, computed once, as one plain dictionary."""

from __future__ import annotations

import datetime
import os
import platform
from dataclasses import asdict, replace
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from transduce.conformal.exchangeability import Exchangeability
from transduce.conformal.miscoverage import Miscoverage
from transduce.core.guarantee import CountBound, Guarantee
from transduce.report import sentences
from transduce.report.plain import clean, finite, name_of, plain
from transduce.report.rows import context_columns, evenly, filled_values, quality_of, row_records

if TYPE_CHECKING:
    from transduce.filling.result import FillResult

STATUSES = ("answered", "below", "above", "unusual", "tied", "rejected", "unreached")
PACKAGES = ("transduce", "numpy", "pandas", "scikit-learn", "scipy", "skrub")
GUARANTEED = (  # as `Guarantee` has it
    *("kind", "headline", "statement", "in_doubt", "confidence", "tolerance", "assumptions", "factor"),
    *("n_calibration", "n_unbounded", "n_groups", "n_other", "of_rows", "n_empty", "remedy"),
)
MOST_MAPPED = 1200  # rows of the map that are drawn
N_BINS = 24  # of the overlap of labelled and unlabelled rows
MOST_COLUMNS = 8  # that tell labelled from unlabelled rows


def summarize(filled: FillResult) -> dict[str, Any]:
    """Return what there is to say about a filled table: numbers and sentences that JSON can hold.

    Parameters
    ----------
    filled : FillResult
        As `fill` returns it.

    Returns
    -------
    dict
        The same for the same table, settings and versions. A number that does not exist is None, and so is an end of
        an interval that is infinite.

    Examples
    --------
    >>> import pandas as pd
    >>> from transduce import fill
    >>> from transduce.report import summarize
    >>> table = pd.DataFrame({"size": range(60), "price": [2.0 * n if n % 3 else None for n in range(60)]})
    >>> summary = summarize(fill(table, "price", method="ridge", guarantee="column"))
    >>> summary["target"], summary["task"], len(summary["rows"])
    ('price', 'regression', 20)
    """
    rows, tested = row_records(filled), _exchangeability(filled.exchangeability)
    facts = sentences.Facts(
        filled=filled,
        source=clean(str(filled.asked.get("source") or "").replace("\\", "/").rpartition("/")[2], 80),
        counts=_counts(filled),
        answers=filled_values(filled, rows),
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
        "answers": asdict(facts.answers),
        "law": _law(filled),
        "exchangeability": tested,
        "guarantee": _guarantee(filled.guarantee) | {"column": sentences.column_guarantee(facts)},
        "who_was_labelled": _who_was_labelled(facts),
        "class_shares": _class_shares(filled),
        "quality": None if facts.quality is None else asdict(facts.quality),
        "members": _members(filled.members),
        "relevance": _relevance(filled),
        "map": _map(filled),
        "columns": [plain(one) | {"name": name_of(one["name"])} for one in filled.columns.to_dict("records")],
        "options": plain(filled.asked),
        "versions": dict(versions()),
        "question": sentences.question(facts),
        "reply": sentences.reply(facts),
        "quality_sentence": None if facts.quality is None else facts.quality.sentence,
        "caveats": sentences.caveats(facts),
        "next": "" if filled.advice is None else clean(str(filled.advice)),
        "cards": plain(sentences.cards(facts)),
        "to_do": sentences.to_do(facts),
        "again": filled.again,
        "again_words": sentences.again(facts, versions()["transduce"], today()),
        "notes": plain(filled.notes),  # last: what could not be computed is among them
        "made": today(),
    }


def summarize_later(about: dict[str, Any], guarantee: Guarantee, compared: Exchangeability) -> dict[str, Any]:
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
def versions(packages: tuple[str, ...] = PACKAGES) -> dict[str, str]:
    """Return the versions that a report depends on."""
    numbers = {"python": platform.python_version()}
    for package in packages:
        try:
            numbers[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            numbers[package] = "unknown"
    return numbers


def _counts(filled: FillResult) -> dict[str, int]:
    status = np.asarray(filled.answer.status)
    return {
        "rows": len(filled.frame),
        "columns": len(filled.columns),
        "unlabelled": len(filled.answer),
        "labelled": len(filled.frame) - len(filled.answer),
        "classes": 0 if filled.answer.classes is None else len(filled.answer.classes),
        "different_labels": int(filled.frame[filled.target].nunique()),
        **{word: int(np.sum(status == word)) for word in STATUSES},
        **(filled.totals or {}),
    }


def _law(filled: FillResult) -> dict[str, Any] | None:
    """Return the distribution of the number outside, by its parameters, with its bound; None if there is none."""
    law, bound, guarantee = filled.miscoverage, filled.guarantee.outside, filled.guarantee
    if law is not None:
        n_unlabelled, n_calibration = law.n_unlabelled, np.sum(law.n_calibration)
    elif bound is not None:  # a sum of bounds, such as those of a sample and of all other rows
        n_unlabelled, n_calibration = bound.of, guarantee.n_calibration
    else:
        return None
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
    telling = test.features[test.features["p_value"] <= 0.05].head(5 if test.shifted else 0)["distance"]
    return {
        "verdict": clean(str(test.verdict)),
        "tested": test.verdict.p_value is not None,
        "p_value": finite(test.p_value),
        "area_under_curve": finite(test.auc),
        "shifted": bool(test.shifted),
        "suspected": test.verdict.suspected,
        "detectable": finite(test.detectable),
        "n_permutations": int(test.n_permutations),
        "features": [{"name": name_of(name), "distance": finite(far)} for name, far in telling.items()],
    }


def _guarantee(guarantee: Guarantee) -> dict[str, Any]:
    """Return the guarantee: its data, and its sentences; the verdict of the test stands by itself."""
    return {
        **{name: plain(getattr(guarantee, name)) for name in GUARANTEED},
        "limits": None if guarantee.limits is None else plain(asdict(guarantee.limits)),
        "effective": finite(guarantee.effective),
        "wrong": _bound(guarantee.wrong),
        "wrong_by_class": [{"class": name_of(c), **(_bound(b) or {})} for c, b in guarantee.wrong_by_class],
        "reason": clean(guarantee.reasons[0]) if guarantee.reasons else "",
        "grounds": clean(replace(guarantee, verdict=None, drift=None, remedy=()).grounds),
    }


def _bound(bound: CountBound | None) -> dict[str, Any] | None:
    """Return a bound on a count; None where there is none."""
    return None if bound is None else {"at_most": bound.at_most, "of": bound.of, "certainty": bound.certainty}


def _members(members: pd.DataFrame) -> list[dict[str, Any]]:
    """Return one record for each method, the largest weight first."""
    ordered = members.sort_values("weight", ascending=False, kind="stable", na_position="last")
    return [
        {
            "name": name_of(line["name"]).replace("_", " "),
            **{name: finite(line.get(name)) for name in ("weight", "score", "seconds")},
            **{name: clean(line.get(name) or "") for name in ("scorer", "note")},
        }
        for line in ordered.to_dict("records")
    ]


def _relevance(filled: FillResult) -> list[dict[str, Any]] | None:
    relevance = {} if filled.relevance is None else filled.relevance
    entries = [{"name": name_of(name), "relevance": finite(value)} for name, value in relevance.items()]
    return [entry for entry in entries if entry["relevance"] is not None] or None


def _map(filled: FillResult) -> dict[str, Any] | None:
    """Return the places of some rows, spread evenly over the table, with their values, known or answered."""
    if filled.map is None or not len(filled.map):
        return None
    unlabelled = np.zeros(len(filled.frame), dtype=bool)
    unlabelled[filled.answer.rows] = True
    labels = filled.labels.labels.astype(object)
    labels[filled.answer.rows] = filled.answer.values
    labels[filled.answer.rows[np.asarray(filled.answer.status) == "unreached"]] = None
    known = filled.map[["x", "y"]].notna().all(axis=1).to_numpy()
    rows = np.flatnonzero(known)[evenly(int(known.sum()), MOST_MAPPED)]
    numbers = filled.task == "regression"
    values = pd.to_numeric(pd.Series(labels[rows]), errors="coerce") if numbers else labels[rows]
    return {
        "n_rows": len(filled.map),
        "x": plain(filled.map["x"].to_numpy()[rows]),
        "y": plain(filled.map["y"].to_numpy()[rows]),
        "unlabelled": plain(unlabelled[rows]),
        "value": [finite(v) if numbers else None if plain(v) is None else name_of(v) for v in values],
    }


def _who_was_labelled(facts: sentences.Facts) -> dict[str, Any] | None:
    """Return what is known of which rows have a label; None if no row lacks one."""
    filled, test, guarantee = facts.filled, facts.filled.exchangeability, facts.filled.guarantee
    if not len(filled.answer):
        return None
    columns = {}
    if test is not None and test.verdict.p_value is not None:
        columns = test.features.head(MOST_COLUMNS).to_dict("index")
    return {
        "columns": [
            {"name": name_of(name), "distance": finite(line["distance"]), "p_value": finite(line["p_value"])}
            for name, line in columns.items()
        ],
        "overlap": None if test is None else _overlap(test.overlap),
        "effective": finite(guarantee.effective),
        "n_calibration": guarantee.n_calibration,
        "factor": guarantee.factor,
        "drift": None if guarantee.drift is None else clean(guarantee.drift),
        "sensitivity": _sensitivity(filled),
        "remedy": [row + 1 for row in guarantee.remedy],
        "sentences": plain(sentences.who_was_labelled(facts)),
    }


def _sensitivity(filled: FillResult) -> list[dict[str, Any]] | None:
    """Return how wide intervals, or how large sets, get for each factor; None where it is not known."""
    table = filled.sensitivity
    if table is None or not len(table):
        return None
    size = "width" if "width" in table else "size"
    kinds: dict[str, Any] = {"factor": float, size: finite, "n_unbounded": int}
    return [{name: kind(line[name]) for name, kind in kinds.items()} for line in table.to_dict("records")]


def _class_shares(filled: FillResult) -> dict[str, Any] | None:
    """Return the shares of the classes, the most frequent first; None unless labels were chosen by their class."""
    shares = filled.class_shares
    if shares is None:
        return None
    frame = shares.to_frame().sort_values("share", ascending=False, kind="stable").reset_index()
    classes = [{**plain(line), "class": name_of(line["class"])} for line in frame.to_dict("records")]
    return {"given": shares.given, "confidence": shares.confidence, "classes": classes}


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
