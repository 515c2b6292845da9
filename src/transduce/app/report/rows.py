"""The filled rows of a report, what the answers are like as a whole, and how good they were at hidden labels."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from transduce.app.report.plain import (
    clean,
    decimals_for,
    evenly,
    finite,
    name_of,
    number,
    plain,
    rough_percent,
)
from transduce.app.tables.columns import answered_probability, narrowness, widths_between
from transduce.app.tables.moments import Moments
from transduce.core.answer import Answer, Regions
from transduce.core.guarantee import Limits
from transduce.core.scaling import square_unit
from transduce.core.types import AnyArray
from transduce.core.words import counted, percent
from transduce.metrics import rejection_curve

if TYPE_CHECKING:
    from transduce.app.filling.result import FillResult
    from transduce.conformal import Exchangeability

MOST_CONTEXT = 3  # columns of the table shown beside an answer
LONGEST = 80  # characters of a cell
BARELY = 0.2  # intervals less than this much narrower than without features say little


def least_certain_first(answer: Answer) -> AnyArray:
    """Return the positions of the answers, the least certain first. Returns shape (m,)."""
    keys = [np.select([answer.status == "unreached", answer.status == "rejected"], [0.0, 1.0], 2.0)]
    if answer.regions is not None:
        widths = answer.regions.measure()
        widths = widths / square_unit(widths[np.isfinite(widths)])
        widths = widths.astype(np.float32)  # equal ones stay equal, whatever was rounded
        keys += [-widths] if answer.standard_errors is None else [-widths, -answer.standard_errors]
    else:
        # What is shown beside an answer comes first: its probability, where there is one.
        surest = answered_probability(answer)
        keys += [key for key in (surest, answer.confidence, answer.credibility) if key is not None]
    return np.lexsort([np.nan_to_num(key.astype(float)) for key in reversed(keys)])


def context_columns(filled: FillResult) -> list[Any]:
    """Return the columns that tell a reader which row is meant: identifiers, then the most relevant ones."""
    described = dict(zip(filled.columns["name"], filled.columns["kind"], strict=True))
    kinds = {name: described[name] for name in filled.shown.columns if name in described}
    telling = [name for name in kinds if kinds[name] == "identifier"]
    relevant = (
        []
        if filled.relevance is None
        else [name for name in filled.relevance.index if name in kinds]
    )
    usual = [
        name
        for name in [*relevant, *kinds]
        if kinds[name] in ("number", "category", "date", "text")
    ]
    return list(dict.fromkeys([*telling, *usual]))[:MOST_CONTEXT]


def row_records(filled: FillResult) -> list[dict[str, Any]]:
    """Return one record for each filled row, the least certain first."""
    answer, frame, regions = filled.answer, filled.shown, filled.answer.regions
    order = least_certain_first(answer)
    rows, status = np.asarray(answer.rows)[order], np.asarray(answer.status)[order]
    values = np.asarray(answer.values)[order].astype(object)
    values[status == "unreached"] = None
    names = _row_names(filled, rows)
    places = [list(frame.columns).index(name) for name in context_columns(filled)]
    cells = [frame.iloc[rows, place].tolist() for place in places]
    columns: dict[str, list[Any]] = {
        "row": plain(names),
        "position": rows.tolist(),
        "context": [[*map(_cell, line)] for line in zip(*cells, strict=True)] or [[] for _ in rows],
        "value": plain(values),
        "status": plain(status),
        **(
            _class_columns(filled, order)
            if regions is None
            else _number_columns(answer, regions, order)
        ),
    }
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]


def _row_names(filled: FillResult, rows: AnyArray) -> Any:
    """Return what to call rows of the table that is shown: by its index, or by their places, counted from 1."""
    frame = filled.shown
    if not frame.index.equals(pd.RangeIndex(len(frame))):
        return frame.index[rows]
    if filled.totals is None or filled.source.roles is None:
        return rows + 1
    roles = filled.source.roles
    # The places in a sample mean nothing to anybody: those in the table do.
    places = np.concatenate([roles.visible, roles.sampled])[rows]
    return [filled.source.name_row(part, row) for part, row in places.tolist()]


def _cell(value: Any) -> str:
    shown = plain(value)
    if isinstance(shown, float):
        return f"{shown:.6g}"
    return "" if shown is None else clean(shown, LONGEST)


def _number_columns(answer: Answer, regions: Regions, order: AnyArray) -> dict[str, list[Any]]:
    pieces, offsets = regions.to_arrays()
    ends = plain(pieces)
    return {
        "pieces": [ends[offsets[i] : offsets[i + 1]] for i in order],
        "width": _column(regions.measure(), order),
        "standard_error": _column(answer.standard_errors, order),
    }


def _class_columns(filled: FillResult, order: AnyArray) -> dict[str, list[Any]]:
    answer, name = filled.answer, f"{filled.target}_probability"
    sets: list[Any] = [None] * len(order)
    unseen = np.zeros(len(order), dtype=bool) if answer.unseen is None else answer.unseen[order]
    if answer.label_sets is not None and answer.classes is not None:
        sets = [plain(answer.classes[mask]) for mask in answer.label_sets[order]]
    probability = None if answer.probabilities is None else answer.probabilities.max(axis=1)
    if name in filled.new.columns:
        probability = filled.new[name].to_numpy(dtype=float)[answer.rows]
    return {
        "set": sets,
        "unseen": plain(unseen),
        "confidence": _column(answer.confidence, order),
        "credibility": _column(answer.credibility, order),
        "probability": _column(probability, order),
    }


def _column(values: AnyArray | None, order: AnyArray) -> list[Any]:
    return [None] * len(order) if values is None else plain(values[order])


@dataclass(frozen=True)
class FilledValues:
    """What the answers are like as a whole, in words and in numbers."""

    sentences: list[str]  # what was answered
    little: str  # that intervals or sets say little, if they do
    numbers: dict[str, Any]  # as a summary has them


def values_of(filled: FillResult, rows: list[dict[str, Any]]) -> FilledValues:
    """Return what the answers are like as a whole."""
    if filled.task == "regression":
        values = _numbers(filled, rows)
    else:
        values = class_values(rows, filled.confidence)
    if filled.totals is None or not values.sentences:
        return values
    # Rows that the fit saw have narrower intervals than the others: what is true of them is not true of all.
    lead = (
        f"{len(rows):,} of them were drawn at random for the fit: what follows here, and the rows that are shown, "
        "are about these alone."
    )
    return replace(values, sentences=[lead, *values.sentences])


def digits_of(answers: dict[str, Any]) -> int | Moments:
    """Return how values are written: with so many decimals, or as dates."""
    return Moments(**answers["moments"]) if answers.get("moments") else answers.get("decimals", 2)


def ends_of(answers: dict[str, Any]) -> list[str]:
    """Return the smallest, the median and the largest of filled numbers, for reading."""
    unit = "" if answers["moments"] else answers["unit"]
    return [
        number(answers[name], digits_of(answers), unit)
        for name in ("smallest", "median", "largest")
    ]


def widths_of(answers: dict[str, Any]) -> str:
    """Return how wide intervals are, as a sentence."""
    width = number(answers["median_width"], answers["decimals"], answers["unit"])
    half = f"Half of them are narrower than {width}."
    return f"All intervals are {width} wide." if answers["equally_wide"] else half


def _numbers(filled: FillResult, rows: list[dict[str, Any]]) -> FilledValues:
    values = np.array([row["value"] for row in rows if row["value"] is not None], dtype=float)
    widths = [np.inf if row["width"] is None else row["width"] for row in rows if "width" in row]
    middle = finite(np.median(widths)) if widths else None
    ends = [(row["pieces"][0][0], row["pieces"][-1][1]) for row in rows if row.get("pieces")]
    narrower, moments, n_unbounded = (
        _narrower(filled),
        filled.labels.spelling.moments,
        ends.count((None, None)),
    )
    n_open = int(np.sum(np.isinf(widths))) - n_unbounded  # on one side, at a limit
    answers: dict[str, Any] = {
        "n_answered": len(values),
        "smallest": float(values.min()) if len(values) else None,
        "median": float(np.median(values)) if len(values) else None,
        "largest": float(values.max()) if len(values) else None,
        "median_width": middle,
        "n_unbounded": n_unbounded,
        "n_open": n_open,
        "equally_wide": bool(middle and np.ptp(widths) <= 1e-9 * middle),
        "decimals": decimals_for(middle or values.std() or values.mean()) if len(values) else 2,
        "narrower": narrower,
        "unit": filled.labels.spelling.unit,  # of widths, and of numbers that do not stand for dates
        "moments": None if moments is None else asdict(moments),
    }
    smallest, half, largest = ends_of(answers)
    said = [f"The answers lie between {smallest} and {largest}; half of them are below {half}."]
    if middle is not None:
        said.append(
            f"Each comes with an interval at {percent(filled.confidence)}. {widths_of(answers)}"
        )
    elif n_unbounded:
        said.append(
            f"At {percent(filled.confidence)} their intervals are unbounded: any number is possible."
        )
    said += (
        [f"{counted(n_open, 'interval is', 'intervals are')} open at a limit."] if n_open else []
    )
    little = (
        " But the intervals are unbounded and say nothing."
        if n_unbounded and middle is None
        else ""
    )
    if not little and narrower is not None and narrower < BARELY:
        little = " But the intervals are hardly narrower than without any column: they say little."
    return FilledValues(said if len(values) else [], little, answers)


def _narrower(filled: FillResult) -> float | None:
    """Return how much narrower the median interval is than one made without features; None if that is not known."""
    labels = pd.to_numeric(filled.out_of_fold["true"], errors="coerce").dropna().to_numpy(float)
    if filled.answer.regions is None or not len(filled.answer) or len(labels) < 2:
        return None
    widths = widths_between(filled.answer.regions, filled.guarantee.limits or Limits())
    return float(np.median(narrowness(widths, labels, filled.confidence)))


def class_values(rows: list[dict[str, Any]], confidence: float) -> FilledValues:
    """Return what filled classes and their sets are like as a whole."""
    known = all(row.get("set") is not None for row in rows)
    sizes = [len(row["set"]) + row["unseen"] if known else 1 for row in rows]
    tallies: dict[
        str, dict[str, int]
    ] = {}  # of each class, answers with one and with several possible classes
    for row, size in zip(rows, sizes, strict=True):
        name = "(no answer)" if row["value"] is None else name_of(row["value"])
        tallies.setdefault(name, {"one": 0, "several": 0})["one" if size == 1 else "several"] += 1
    ordered = sorted(tallies.items(), key=lambda entry: (-sum(entry[1].values()), entry[0]))
    by_class = [{"name": name, **tally} for name, tally in ordered]
    unknown: dict[str, Any] = {"n_one": None, "n_several": None, "right_if_one": None}
    if not known:
        return FilledValues([], "", unknown | {"by_class": by_class})
    n_one, n_several, little = sizes.count(1), len(sizes) - sizes.count(1), ""
    where = counted(n_one, "row") + (f", several at {n_several:,}" if n_several else "")
    if n_one < BARELY * len(rows):
        few = f"only {counted(n_one, 'set rules', 'sets rule')}" if n_one else "no set rules"
        little = f" But {few} out all classes except one: they say little."
    said = [f"At {percent(confidence)} the set holds one class at {where}."]
    chances = [row.get("probability") for row, size in zip(rows, sizes, strict=True) if size == 1]
    known_chances = [chance for chance in chances if chance is not None]
    right = float(np.mean(known_chances)) if known_chances else None
    # Sets with all classes never miss, so that misses crowd into those with one class.
    if n_one and right is not None:
        said.append(f"Where it holds one, about {rough_percent(right)} are right (estimated).")
    elif n_one:
        said.append(f"That does not mean that {percent(confidence)} of those are right.")
    counts: dict[str, Any] = {"n_one": n_one, "n_several": n_several, "right_if_one": right}
    return FilledValues(said, little, counts | {"by_class": by_class})


MOST_POINTS = 1000  # in a plot
MOST_CLASSES = 12  # in a table of confusion; the rarest go together
OTHERS = "other classes"
NO_BETTER = 0.95  # errors above this share of the simplest method's are no better
CLEARLY_BETTER = 0.7  # errors up to this share of the simplest method's earn a tick
FEWEST_TICKED = 20  # known values that were hidden, below which none is earned
ALONE = 0.25  # share of the unlabelled rows without labelled ones like them: how good is not known
FEWEST, MOST_SLIPS = 20, 3  # labels among which slips can be told, and how many of them
FAR, APART = 25.0, 3.0  # a slip's error: times the median one, and times that of the next label


def _judged(error: float, simplest: float) -> str:
    """Return that errors are hardly smaller than the simplest method's, or not at all; "" if they are."""
    if error < NO_BETTER * simplest:
        return ""
    return "That is hardly better." if error < simplest else "That is no better."


def _is_clear(error: float, simplest: float, n_hidden: int) -> bool:
    """Return whether errors at enough hidden labels are clearly smaller than the simplest method's."""
    return n_hidden >= FEWEST_TICKED and error <= CLEARLY_BETTER * simplest


def why_not_known(filled: FillResult) -> str:
    """Return why hidden labels do not tell how good the predictions are, in a sentence; "" if they do."""
    if filled.told is not None or filled.diagnosis.drawn:
        return ""  # rows drawn at random tell
    alone = share_alone(filled.exchangeability)
    if alone >= ALONE:
        return (
            f"Rows with and without a value hardly overlap: {rough_percent(alone)} of those to be "
            "filled are unlike nearly all rows with a known value, which say nothing of them."
        )
    if filled.guarantee.kind == "none":
        return (
            "Nothing is guaranteed of the rows to be filled, and how good they are cannot be told."
        )
    return ""


def share_alone(test: Exchangeability | None) -> float:
    """Return the share of the unlabelled rows that look less like a labelled one than 99 % of those do."""
    if test is None or not test.shifted or test.overlap is None:
        return 0.0
    labelled, unlabelled = test.overlap
    if not len(labelled) or not len(unlabelled):
        return 0.0
    return float(np.mean(unlabelled > np.quantile(labelled, 0.99)))


@dataclass(frozen=True)
class Quality:
    """How good answers at hidden labels were, in words and in numbers."""

    large: str  # how good they are, in a few words
    small: str  # what the simplest method would do
    judged: str  # that they are hardly better, or no better; "" if they are
    numbers: dict[str, Any]  # as a summary has them
    clear: bool = False  # whether they are clearly better, at enough labels to say so
    explained: str = ""  # the share of the variance, as the end of a sentence
    slips: str = ""  # labels that are perhaps wrong, in a sentence


def quality_of(task: str, out_of_fold: pd.DataFrame, unit: str = "") -> Quality | None:
    """Return how good answers at hidden labels were; None if no label was hidden and answered."""
    return number_quality(out_of_fold, unit) if task == "regression" else class_quality(out_of_fold)


def number_quality(out_of_fold: pd.DataFrame, unit: str = "") -> Quality | None:
    """Return scores of numbers, and pairs to plot."""
    pairs = out_of_fold[["true", "answered"]].apply(pd.to_numeric, errors="coerce").dropna()
    if not len(pairs):
        return None
    true, answered = pairs["true"].to_numpy(float), pairs["answered"].to_numpy(float)
    weights = _weights(out_of_fold.loc[pairs.index])
    off, around = np.abs(answered - true), np.abs(true - weights @ true)
    error, simplest = float(weights @ off), float(weights @ around)
    size = square_unit(off, around)
    spread = float(weights @ (around / size) ** 2)
    middle = np.quantile(off, 0.5, weights=weights, method="inverted_cdf")
    r2 = 1.0 - float(weights @ (off / size) ** 2) / spread if spread > 0.0 else None
    drawn, explained = evenly(len(pairs), MOST_POINTS), f"{100 * (r2 or 0.0):.0f}"
    odd = pairs.iloc[_slips(off)]
    shown = partial(number, decimals=decimals_for(error), unit=unit)
    return Quality(
        large=f"off by {shown(error)} on average",
        small=f"always answering the mean would be off by {shown(simplest)}",
        judged=_judged(error, simplest),
        clear=_is_clear(error, simplest, len(pairs)),
        explained=f"; the answers explain {explained} % of the variance"
        if float(explained) > 0.0
        else "",
        slips=_about_slips(odd, unit) if len(odd) else "",
        numbers={
            "n": len(pairs),
            "mean_absolute_error": error,
            "median_absolute_error": float(np.median(off) if np.ptp(weights) == 0.0 else middle),
            "of_the_mean": simplest,  # of always answering the mean
            "r2": r2,
            "true": true[drawn].tolist(),
            "answered": answered[drawn].tolist(),
            "unit": unit,
        },
    )


def _slips(off: AnyArray) -> AnyArray:
    """Return the few places (k,) with errors (n,) far larger than all others: perhaps a slip of whoever typed them."""
    order = np.argsort(-off)[: MOST_SLIPS + 1] if len(off) >= FEWEST else np.zeros(0, dtype=int)
    far = off[order] > FAR * np.median(off) if len(order) else off[order] > 0.0
    ends = [
        k for k in range(1, len(order)) if far[k - 1] and off[order[k - 1]] > APART * off[order[k]]
    ]
    return order[: ends[-1] if ends else 0]


def _about_slips(odd: pd.DataFrame, unit: str) -> str:
    """Return which known values are far from their answers, as a sentence."""
    said = []
    for row, true, answered in zip(odd.index, odd["true"], odd["answered"], strict=True):
        where = f" in row {row + 1:,}" if odd.index.name == "row" else ""
        value = number(true, 0 if float(true).is_integer() else decimals_for(true), unit)
        instead = number(answered, decimals_for(answered))
        said.append(f"{value}{where}, answered with {instead} while it was hidden")
    return f"Look whether these known values are right: {'; '.join(said)}."


def class_quality(out_of_fold: pd.DataFrame) -> Quality | None:
    """Return scores of classes, who was taken for whom, and errors as unsure answers are rejected."""
    pairs = out_of_fold.dropna(subset=["true", "answered"])
    if not len(pairs):
        return None
    columns = (pairs["true"].tolist(), pairs["answered"].tolist())
    true, answered = (np.array([*map(name_of, column)], dtype=object) for column in columns)
    weights = _weights(pairs)
    names, at = np.unique(true, return_inverse=True)
    frequency = np.bincount(at, weights)
    right, most, commonest = (
        float(weights @ (true == answered)),
        frequency.max(),
        str(names[frequency.argmax()]),
    )
    classes, table = _confusion(true, answered)
    return Quality(
        large=f"{rough_percent(right)} right",
        small=f"always answering “{commonest}” would be right for {rough_percent(most)}",
        judged=_judged(1.0 - right, 1.0 - most),
        clear=_is_clear(1.0 - right, 1.0 - most, len(pairs)),
        numbers={
            "n": len(pairs),
            "accuracy": right,
            "of_the_commonest": float(most),  # of always answering the commonest class
            "commonest": commonest,
            "classes": classes,
            "confusion": table,  # how often each class (column) was answered for each (row)
            "rejection": _rejection(true, answered, pairs) if np.ptp(weights) == 0.0 else None,
        },
    )


def _weights(pairs: pd.DataFrame) -> AnyArray:
    """Return how much each label counts, shape (n,); their sum is 1."""
    weights = pairs["weight"].to_numpy(float) if "weight" in pairs else np.ones(len(pairs))
    return weights / weights.sum() if weights.sum() > 0.0 else np.full(len(pairs), 1.0 / len(pairs))


def _confusion(true: AnyArray, answered: AnyArray) -> tuple[list[str], list[list[int]]]:
    """Return classes, the most frequent ones by name, and how often each was answered for each."""
    counts = pd.Series(np.concatenate([true, answered])).value_counts().sort_index(kind="stable")
    frequent = counts.sort_values(ascending=False, kind="stable").index
    kept = frequent[: MOST_CLASSES - (len(frequent) > MOST_CLASSES)]
    classes = sorted(kept, key=_by_number) + ([OTHERS] if len(kept) < len(frequent) else [])
    shown = (np.where(np.isin(names, kept), names, OTHERS) for names in (true, answered))
    table = pd.crosstab(*shown).reindex(index=classes, columns=classes, fill_value=0)
    return classes, table.to_numpy().tolist()


def _by_number(name: str) -> tuple[float, str]:
    """Return what puts names in order: numbers by size, then words."""
    try:
        return float(name), name
    except ValueError:
        return np.inf, name


def _rejection(true: AnyArray, answered: AnyArray, pairs: pd.DataFrame) -> dict[str, Any] | None:
    """Return the rejection curve where probabilities tell answers apart; None elsewhere."""
    if (
        "probability" not in pairs
        or pairs["probability"].nunique() < 2
        or pairs["probability"].isna().any()
    ):
        return None
    errors, rejected = rejection_curve(true, answered, pairs["probability"].to_numpy(float))
    shown = evenly(len(errors), 200)
    return {
        "errors": plain(errors[shown]),
        "rejected": plain(rejected[shown]),
        "error_of_all": float(errors[0]),
        "error_of_surer_half": float(errors[np.searchsorted(rejected, 0.5, side="right") - 1]),
    }
