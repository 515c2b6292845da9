"""The filled rows of a report, what the answers are like as a whole, and how good they were at hidden labels."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from transduce.core.answer import Answer, Regions
from transduce.core.guarantee import Limits
from transduce.core.types import AnyArray
from transduce.core.words import counted, percent
from transduce.metrics import rejection_curve
from transduce.report.plain import clean, decimals_for, evenly, finite, name_of, number, plain, rough_percent
from transduce.tables.columns import narrowness, widths_between
from transduce.tables.numbers import Moments

if TYPE_CHECKING:
    from transduce.filling.result import FillResult

MOST_CONTEXT = 3  # columns of the table shown beside an answer
LONGEST = 80  # characters of a cell
BARELY = 0.2  # intervals less than this much narrower than without features say little


def least_certain_first(answer: Answer) -> AnyArray:
    """Return the positions of the answers, the least certain first. Returns shape (m,)."""
    keys = [np.select([answer.status == "unreached", answer.status == "rejected"], [0.0, 1.0], 2.0)]
    if answer.regions is not None:
        widths = answer.regions.measure().astype(np.float32)  # equal ones stay equal, whatever was rounded
        keys += [-widths] if answer.standard_errors is None else [-widths, -answer.standard_errors]
    else:
        surest = None if answer.probabilities is None else answer.probabilities.max(axis=1)
        keys += [key for key in (answer.confidence, answer.credibility, surest) if key is not None]
    return np.lexsort([np.nan_to_num(key.astype(float)) for key in reversed(keys)])


def context_columns(filled: FillResult) -> list[Any]:
    """Return the columns that tell a reader which row is meant: identifiers, then the most relevant ones."""
    described = dict(zip(filled.columns["name"], filled.columns["kind"], strict=True))
    kinds = {name: described[name] for name in filled.frame.columns if name in described}
    telling = [name for name in kinds if kinds[name] == "identifier"]
    relevant = [] if filled.relevance is None else [name for name in filled.relevance.index if name in kinds]
    usual = [name for name in [*relevant, *kinds] if kinds[name] in ("number", "category", "date", "text")]
    return list(dict.fromkeys([*telling, *usual]))[:MOST_CONTEXT]


def row_records(filled: FillResult) -> list[dict[str, Any]]:
    """Return one record for each filled row, the least certain first."""
    answer, frame, regions = filled.answer, filled.frame, filled.answer.regions
    order = least_certain_first(answer)
    rows, status = np.asarray(answer.rows)[order], np.asarray(answer.status)[order]
    values = np.asarray(answer.values)[order].astype(object)
    values[status == "unreached"] = None
    names = rows + 1 if frame.index.equals(pd.RangeIndex(len(frame))) else frame.index[rows]
    places = [list(frame.columns).index(name) for name in context_columns(filled)]
    cells = [frame.iloc[rows, place].tolist() for place in places]
    columns: dict[str, list[Any]] = {
        "row": plain(names),
        "position": rows.tolist(),
        "context": [[*map(_cell, line)] for line in zip(*cells, strict=True)] or [[] for _ in rows],
        "value": plain(values),
        "status": plain(status),
        **(_class_columns(filled, order) if regions is None else _number_columns(answer, regions, order)),
    }
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]


def _cell(value: Any) -> str:
    shown = plain(value)
    if isinstance(shown, float):
        return f"{shown:.6g}"
    return "" if shown is None else clean(shown, LONGEST)


def _number_columns(answer: Answer, regions: Regions, order: AnyArray) -> dict[str, list[Any]]:
    pieces, offsets = regions.to_arrays()
    ends = [[finite(low), finite(high)] for low, high in pieces.tolist()]
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
    if name in filled.frame.columns:
        probability = filled.frame[name].to_numpy(dtype=float)[answer.rows]
    return {
        "set": sets,
        "unseen": plain(unseen),
        "confidence": _column(answer.confidence, order),
        "credibility": _column(answer.credibility, order),
        "probability": _column(probability, order),
    }


def _column(values: AnyArray | None, order: AnyArray) -> list[Any]:
    return [None] * len(order) if values is None else [finite(value) for value in values[order].tolist()]


@dataclass(frozen=True)
class FilledNumbers:
    """What filled numbers and their intervals are like as a whole."""

    n_answered: int
    smallest: float | None
    median: float | None
    largest: float | None
    median_width: float | None  # none if it is infinite
    n_unbounded: int
    n_open: int  # intervals that are open on one side, at a limit
    equally_wide: bool
    decimals: int  # for reading
    narrower: float | None  # how much narrower than without features the median interval is, from 0 to 1
    unit: str = ""  # of widths, and of numbers that do not stand for dates
    moments: dict[str, Any] | None = None  # how dates, times or durations are written, if they are that

    @property
    def digits(self) -> int | Moments:
        """How values are written: with so many decimals, or as dates."""
        return self.decimals if self.moments is None else Moments(**self.moments)

    def shown(self, value: float | None) -> str:
        """Return a value for reading."""
        return number(value, self.digits, "" if self.moments else self.unit)

    @property
    def widths(self) -> str:
        """How wide the intervals are."""
        width = number(self.median_width, self.decimals, self.unit)
        half = f"Half of them are narrower than {width}."
        return f"All intervals are {width} wide." if self.equally_wide else half

    def sentences(self, confidence: float) -> list[str]:
        """Return what was answered."""
        if not self.n_answered:
            return []
        smallest, half, largest = map(self.shown, (self.smallest, self.median, self.largest))
        said = [f"The answers lie between {smallest} and {largest}; half of them are below {half}."]
        if self.median_width is not None:
            said.append(f"Each comes with an interval at {percent(confidence)}. {self.widths}")
        elif self.n_unbounded:
            said.append(f"At {percent(confidence)} their intervals are unbounded: any number is possible.")
        if self.n_open:
            said.append(f"{counted(self.n_open, 'interval is', 'intervals are')} open at a limit.")
        return said

    def says_little(self, n_unlabelled: int) -> str:
        """Return that the intervals say little, if they do."""
        if self.n_unbounded and self.median_width is None:
            return " But the intervals are unbounded and say nothing."
        if self.narrower is not None and self.narrower < BARELY:
            return " But the intervals are hardly narrower than without any column: they say little."
        return ""


@dataclass(frozen=True)
class FilledClasses:
    """What filled classes and their sets are like as a whole."""

    n_one: int | None  # sets of one class; none if there are no sets
    n_several: int | None
    by_class: list[dict[str, Any]]  # name, and the answers with one and with several possible classes

    def sentences(self, confidence: float) -> list[str]:
        """Return at how many rows one class, and several, are possible."""
        if self.n_one is None:
            return []
        rows = counted(self.n_one, "row") + (f", several at {self.n_several:,}" if self.n_several else "")
        return [f"At {percent(confidence)} only one class is possible at {rows}."]

    def says_little(self, n_unlabelled: int) -> str:
        """Return that the sets say little, if they do."""
        if self.n_one is None or self.n_one >= BARELY * n_unlabelled:
            return ""
        few = f"only {counted(self.n_one, 'set rules', 'sets rule')}" if self.n_one else "no set rules"
        return f" But {few} out all classes except one: they say little."


FilledValues = FilledNumbers | FilledClasses


def values_of(filled: FillResult, rows: list[dict[str, Any]]) -> FilledValues:
    """Return what the answers are like as a whole."""
    return _numbers(filled, rows) if filled.task == "regression" else _classes(rows)


def _numbers(filled: FillResult, rows: list[dict[str, Any]]) -> FilledNumbers:
    values = np.array([row["value"] for row in rows if row["value"] is not None], dtype=float)
    widths = [np.inf if row["width"] is None else row["width"] for row in rows if "width" in row]
    middle = finite(np.median(widths)) if widths else None
    ends = [(row["pieces"][0][0], row["pieces"][-1][1]) for row in rows if row.get("pieces")]
    n_unbounded = ends.count((None, None))
    return FilledNumbers(
        n_answered=len(values),
        smallest=float(values.min()) if len(values) else None,
        median=float(np.median(values)) if len(values) else None,
        largest=float(values.max()) if len(values) else None,
        median_width=middle,
        n_unbounded=n_unbounded,
        n_open=int(np.sum(np.isinf(widths))) - n_unbounded,
        equally_wide=bool(middle and np.ptp(widths) <= 1e-9 * middle),
        decimals=decimals_for(middle or values.std() or values.mean()) if len(values) else 2,
        narrower=_narrower(filled),
        unit=filled.labels.spelling.unit,
        moments=None if filled.labels.spelling.moments is None else asdict(filled.labels.spelling.moments),
    )


def _narrower(filled: FillResult) -> float | None:
    """Return how much narrower the median interval is than one made without features; None if that is not known."""
    labels = pd.to_numeric(filled.out_of_fold["true"], errors="coerce").dropna().to_numpy(float)
    if filled.answer.regions is None or not len(filled.answer) or len(labels) < 2:
        return None
    widths = widths_between(filled.answer.regions, filled.guarantee.limits or Limits())
    return float(np.median(narrowness(widths, labels, filled.confidence)))


def _classes(rows: list[dict[str, Any]]) -> FilledClasses:
    known = all(row.get("set") is not None for row in rows)
    sizes = [len(row["set"]) + row["unseen"] if known else 1 for row in rows]
    by_class: dict[str, dict[str, int]] = {}
    for row, size in zip(rows, sizes, strict=True):
        name = "(no answer)" if row["value"] is None else name_of(row["value"])
        by_class.setdefault(name, {"one": 0, "several": 0})["one" if size == 1 else "several"] += 1
    ordered = sorted(by_class.items(), key=lambda entry: (-sum(entry[1].values()), entry[0]))
    return FilledClasses(
        n_one=sizes.count(1) if known else None,
        n_several=len(sizes) - sizes.count(1) if known else None,
        by_class=[{"name": name, **tally} for name, tally in ordered],
    )


MOST_POINTS = 1000  # in a plot
MOST_CLASSES = 12  # in a table of confusion; the rarest go together
OTHERS = "other classes"
NO_BETTER = 0.95  # errors above this share of the simplest method's are no better


def _judged(error: float, simplest: float) -> str:
    """Return that errors are hardly smaller than the simplest method's, or not at all; "" if they are."""
    if error < NO_BETTER * simplest:
        return ""
    return "That is hardly better." if error < simplest else "That is no better."


@dataclass(frozen=True)
class NumberQuality:
    """How far answers at hidden labels were off."""

    n: int  # labels that were answered
    mean_absolute_error: float
    median_absolute_error: float
    of_the_mean: float  # the mean absolute error of always answering the mean
    r2: float | None
    true: list[float]  # pairs to plot
    answered: list[float]
    unit: str = ""

    @property
    def large(self) -> str:
        """How good the answers are, in a few words."""
        return f"off by {self.shown(self.mean_absolute_error)} on average"

    @property
    def small(self) -> str:
        """What the simplest method would do."""
        return f"always answering the mean would be off by {self.shown(self.of_the_mean)}"

    @property
    def explained(self) -> str:
        """The share of the variance that the answers explain, as the end of a sentence; "" if it is none."""
        share = f"{100 * (self.r2 or 0.0):.0f}"
        return f"; the answers explain {share} % of the variance" if float(share) > 0.0 else ""

    @property
    def judged(self) -> str:
        """That they are hardly better, or no better; "" if they are."""
        return _judged(self.mean_absolute_error, self.of_the_mean)

    def shown(self, error: float) -> str:
        """Return an error for reading."""
        return number(error, decimals_for(self.mean_absolute_error), self.unit)


@dataclass(frozen=True)
class ClassQuality:
    """How many of the answers at hidden labels were right."""

    n: int  # labels that were answered
    accuracy: float
    of_the_commonest: float  # the accuracy of always answering the commonest class
    commonest: str
    classes: list[str]
    confusion: list[list[int]]  # how often each class (column) was answered for each (row)
    rejection: dict[str, Any] | None  # errors as unsure answers are rejected, where probabilities are known

    @property
    def large(self) -> str:
        """How good the answers are, in a few words."""
        return f"{rough_percent(self.accuracy)} right"

    @property
    def small(self) -> str:
        """What the simplest method would do."""
        right = rough_percent(self.of_the_commonest)
        return f"always answering “{self.commonest}” would be right for {right}"

    @property
    def judged(self) -> str:
        """That they are hardly better, or no better; "" if they are."""
        return _judged(1.0 - self.accuracy, 1.0 - self.of_the_commonest)


Quality = NumberQuality | ClassQuality


def quality_of(task: str, out_of_fold: pd.DataFrame, unit: str = "") -> Quality | None:
    """Return how good answers at hidden labels were; None if no label was hidden and answered."""
    return number_quality(out_of_fold, unit) if task == "regression" else class_quality(out_of_fold)


def number_quality(out_of_fold: pd.DataFrame, unit: str = "") -> NumberQuality | None:
    """Return scores of numbers, and pairs to plot."""
    pairs = out_of_fold[["true", "answered"]].apply(pd.to_numeric, errors="coerce").dropna()
    if not len(pairs):
        return None
    true, answered = pairs["true"].to_numpy(float), pairs["answered"].to_numpy(float)
    weights = _weights(out_of_fold.loc[pairs.index])
    off, around = np.abs(answered - true), np.abs(true - weights @ true)
    spread = float(weights @ around**2)
    middle = np.quantile(off, 0.5, weights=weights, method="inverted_cdf")
    shown = evenly(len(pairs), MOST_POINTS)
    return NumberQuality(
        n=len(pairs),
        mean_absolute_error=float(weights @ off),
        median_absolute_error=float(np.median(off) if np.ptp(weights) == 0.0 else middle),
        of_the_mean=float(weights @ around),
        r2=1.0 - float(weights @ off**2) / spread if spread > 0.0 else None,
        true=true[shown].tolist(),
        answered=answered[shown].tolist(),
        unit=unit,
    )


def class_quality(out_of_fold: pd.DataFrame) -> ClassQuality | None:
    """Return scores of classes, who was taken for whom, and errors as unsure answers are rejected."""
    pairs = out_of_fold.dropna(subset=["true", "answered"])
    if not len(pairs):
        return None
    columns = (pairs["true"].tolist(), pairs["answered"].tolist())
    true, answered = (np.array([*map(name_of, column)], dtype=object) for column in columns)
    weights = _weights(pairs)
    names, at = np.unique(true.astype(str), return_inverse=True)
    frequency = np.bincount(at, weights)
    classes, table = _confusion(true, answered)
    return ClassQuality(
        n=len(pairs),
        accuracy=float(weights @ (true == answered)),
        of_the_commonest=float(frequency.max()),
        commonest=str(names[frequency.argmax()]),
        classes=classes,
        confusion=table,
        rejection=_rejection(true, answered, pairs) if np.ptp(weights) == 0.0 else None,
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
    if "probability" not in pairs or pairs["probability"].nunique() < 2 or pairs["probability"].isna().any():
        return None
    errors, rejected = rejection_curve(true, answered, pairs["probability"].to_numpy(float))
    shown = evenly(len(errors), 200)
    return {
        "errors": plain(errors[shown]),
        "rejected": plain(rejected[shown]),
        "error_of_all": float(errors[0]),
        "error_of_surer_half": float(errors[np.searchsorted(rejected, 0.5, side="right") - 1]),
    }
