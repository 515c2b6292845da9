"""The new columns of a filled table: their names, their cells, and notes on what stands in them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from transduce.app.tables.columns import Target, objects
from transduce.core.answer import UNSEEN, Answer, LevelAnswer, Regions, level_name
from transduce.core.findings import Limits
from transduce.core.types import AnyArray, Array, ColumnName
from transduce.core.validation import class_codes
from transduce.core.words import counted, option


def new_names(
    target: ColumnName,
    task: str,
    classes: Sequence[Any] = (),
    further: Sequence[float] = (),
) -> list[str]:
    """Return the names of the new columns.

    With `classes`, one for the probability of each; at `further` levels, of intervals or sets.
    """
    levels = [level_name(level) for level in further]
    if task == "regression":
        ends = [f"{end}_{level}" for level in levels for end in ("lower", "upper")]
        endings = ["filled", "lower", "upper", *ends, "width_reduction", "status"]
    else:
        sets = [f"set_{level}" for level in levels]
        endings = ["filled", "set", *sets, "probability", "confidence", "status"]
    names = [f"{target}_{ending}" for ending in endings]
    return [*names, *(f"{target}_probability_{label}" for label in classes)]


# What `fill` writes into the column of the status.
STATUSES = {
    "given",
    "answered",
    "unusual",
    "tied",
    "rejected",
    "unreached",
    "below",
    "above",
}
# How the columns end that `fill` and the labelling page add; which of them show that they did.
_OF_FILL = (
    "filled",
    "lower",
    "upper",
    "width_reduction",
    "set",
    "probability",
    "confidence",
    "status",
    "label_next",
    "suspect",
    "similar",
)
_OF_LABELLING = ("label", "by", "random", "answer")
# The same at further levels, such as `price_lower_95`.
_AT_LEVEL = re.compile(r"_(lower|upper|set)_\d{1,2}(\.\d+)?$")
_SIGNS = {
    "filled": ("status", "lower", "set", "width_reduction", "confidence"),
    "answer": ("by", "label"),
}


def own_columns(names: Sequence[ColumnName]) -> dict[str, list[ColumnName]]:
    """Return the columns that filling or labelling a column added, by the name of that column.

    One of them alone may be the user's: `X_filled` counts beside `X_status`, `X_lower` or the
    like, and `X_answer`, of the labelling page, beside `X_by` or `X_label`.
    """
    texts = [name for name in names if isinstance(name, str)]
    present = set(texts)
    families: dict[str, list[Any]] = {}
    for sign, beside in _SIGNS.items():
        endings: tuple[str, ...] = _OF_LABELLING
        if sign == "filled":
            endings = _OF_FILL
        for name in texts:
            base = name.removesuffix(f"_{sign}")
            if base == name or not any(f"{base}_{other}" in present for other in beside):
                continue
            added = {f"{base}_{ending}" for ending in endings}
            family = families.setdefault(base, [])
            for text in texts:
                at_level = sign == "filled" and _AT_LEVEL.fullmatch(text.removeprefix(base))
                is_added = text in added or text.startswith(f"{base}_probability_")
                is_added = is_added or bool(at_level and text.startswith(base))
                if is_added and text not in family:
                    family.append(text)
    return families


def check_names(
    frame: pd.DataFrame,
    target: Target,
    *,
    probabilities: bool = False,
    further: Sequence[float] = (),
    endings: Sequence[str] = (),
) -> None:
    """Raise a ValueError if the table has a column that would be added.

    Besides the usual ones these are the probabilities of classes, intervals or sets at further
    levels, and columns with further endings.
    """
    classes: list[Any] = []
    if probabilities:
        classes = list(dict.fromkeys(target.known.tolist()))
    names = new_names(target.name, target.task, classes, further)
    names += [f"{target.name}_{ending}" for ending in endings]
    for name in names:
        if name in frame.columns:
            raise ValueError(
                f"The table has a column {name!r} already, perhaps from filling it before: "
                "drop it first. Under another name it would be learned from, although it holds "
                "predictions."
            )


def new_columns(
    target: Target,
    answer: Answer,
    level: float,
    index: pd.Index,
    *,
    right: Array | None = None,
    probabilities: bool = False,
    known: AnyArray | None = None,
) -> pd.DataFrame:
    """Return the new columns; rows with a label have it, and the status "given".

    Shapes: right (m,), the probability that each class is right.
    """
    cells = _NewCells(answer.rows, len(index))
    status = cells.place(answer.status, "given", object)
    further = [other.level for other in answer.further]
    if target.task == "regression":
        if known is None:
            known = target.known
        columns = [*_number_columns(target, answer, level, known, cells), status]
        names = new_names(target.name, target.task, (), further)
    else:
        order = _class_order(target, answer)
        columns = [*_class_columns(target, answer, right, order, cells), status]
        classes: list[Any] = []
        if probabilities and answer.probabilities is not None:
            assert answer.classes is not None
            classes = answer.classes[order].tolist()
            columns += _shares(answer.probabilities[:, order], right, cells)
        names = new_names(target.name, target.task, classes, further)
    by_name = {name: _whole_stays(column) for name, column in zip(names, columns, strict=True)}
    new = pd.DataFrame(by_name).set_axis(index)
    categories = target.spelling.categories
    if categories is None:
        return new
    return new.astype({names[0]: categories})


class _NewCells(NamedTuple):
    """Where the cells of new columns stand."""

    rows: AnyArray  # (m,) the unlabelled ones
    n_rows: int

    def place(
        self,
        values: Any,
        elsewhere: Any = np.nan,
        dtype: type = float,
    ) -> AnyArray:
        """Return a column (n,): values (m,) at unlabelled rows, `elsewhere` at others."""
        column: AnyArray = np.full(self.n_rows, elsewhere, dtype=dtype)
        column[self.rows] = values
        return column


def _number_columns(
    target: Target, answer: Answer, level: float, known: AnyArray, cells: _NewCells
) -> list[Any]:
    """Return filled values, ends of intervals, and how much narrower these are."""
    assert answer.regions is not None
    filled: Any = cells.place(answer.values, target.labels)
    moments = target.spelling.moments
    if moments is not None:
        filled = moments.written(filled)
    columns = [filled]
    for regions in (answer.regions, *(other.regions for other in answer.further)):
        assert regions is not None
        lower, upper = (cells.place(end) for end in regions.hull().T)
        if moments is not None:
            lower = moments.written(lower, np.floor)
            upper = moments.written(upper, np.ceil)
        columns += [lower, upper]
    widths = widths_between(answer.regions, target.limits)
    reduction = cells.place(width_reduction(widths, known, level))
    return [*columns, reduction]


def _class_order(target: Target, answer: Answer) -> AnyArray:
    """Return the order (k,) in which classes are named: that of ordered categories, if they are."""
    assert answer.classes is not None
    categories = target.spelling.categories
    if categories is None or not categories.ordered:
        return np.arange(len(answer.classes))
    places = categories.categories.get_indexer(answer.classes)
    return np.argsort(places, kind="stable")


def _class_columns(
    target: Target, answer: Answer, right: Array | None, order: AnyArray, cells: _NewCells
) -> list[AnyArray]:
    """Return filled classes, sets, the probability that each is right, and confidences."""
    filled = cells.place(objects(answer.values.tolist()), target.labels, object)
    sets = [cells.place(_sets(answer, answer, order), None, object)]
    for other in answer.further:
        sets.append(cells.place(_sets(answer, other, order), None, object))
    if right is None:
        right = np.full(len(answer), np.nan)
    return [filled, *sets, cells.place(right), cells.place(answer.confidence)]


def _shares(probabilities: Array, right: Array | None, cells: _NewCells) -> list[AnyArray]:
    """Return the probability of each class; where that of the filled one is not said, none is.

    Shapes: probabilities (m, k).
    """
    if right is None:
        return [cells.place(np.nan) for _ in probabilities.T]
    return [cells.place(np.where(np.isnan(right), np.nan, share)) for share in probabilities.T]


def _whole_stays(column: Any) -> pd.Series:
    """Return a column; whole numbers that may be missing stay whole."""
    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "integer":
        return pd.Series(column, dtype="Int64")
    return pd.Series(column)


def rounded(
    new: pd.DataFrame, target: ColumnName, task: str, known: AnyArray | None = None
) -> pd.DataFrame:
    """Return new columns for a file: numbers have the digits of labels, intervals stay as wide."""
    new = new.copy()
    filled = f"{target}_filled"
    starts = (f"{target}_probability", f"{target}_confidence", f"{target}_width_reduction")
    shares = [name for name in new.columns if str(name).startswith(starts)]
    new[shares] = new[shares].astype(float).round(4)
    if task != "regression" or new[filled].dtype.kind != "f":
        return new
    given = (new[f"{target}_status"] == "given").to_numpy()
    labels = new[filled].to_numpy(dtype=float)[given]
    if known is not None:
        labels = np.asarray(known, dtype=float)
    digits = _decimals(labels)
    for name in new.columns:
        way = _rounding(str(name).removeprefix(str(target)))
        if way is None:
            continue
        values = new[name].to_numpy(dtype=float)
        near = np.round(way(np.round(values * 10.0**digits, 6)) / 10.0**digits, digits)
        new[name] = np.where(given | ~np.isfinite(near), values, near)
    return new


def _rounding(ending: str) -> Callable[[Array], Array] | None:
    """Return how numbers in a new column are rounded, by how its name ends; None of others."""
    if ending == "_filled":
        return np.round
    if ending.startswith("_lower"):
        return np.floor
    if ending.startswith("_upper"):
        return np.ceil
    return None


def _decimals(labels: Array) -> int:
    """Return how many decimals answers have: those of labels, or more where that is coarse."""
    texts = [repr(float(label)) for label in np.unique(labels)[:10_000]]
    in_digits = [text for text in texts if "e" not in text and not text.endswith(".0")]
    n_written = max((len(text.partition(".")[2]) for text in in_digits), default=0)
    if not len(labels):
        return int(np.clip(n_written, 0, 12))
    largest = float(np.abs(labels).max()) or 1.0
    spread = float(np.std(labels / largest)) * min(largest, 1e300)
    n_needed = 0
    if spread > 0.0:
        n_needed = int(np.ceil(-np.log10(spread / 50.0)))
    return int(np.clip(max(n_written, n_needed), 0, 12))


def _sets(answer: Answer, at_level: Answer | LevelAnswer, order: AnyArray) -> AnyArray:
    """Return the sets of a level as text, " | " between classes, seen ones and any other: (m,)."""
    assert at_level.label_sets is not None
    assert answer.classes is not None
    names = [*map(str, answer.classes[order]), UNSEEN]
    unseen = at_level.unseen
    if unseen is None:
        unseen = np.zeros(len(answer), dtype=bool)
    rows = np.column_stack([at_level.label_sets[:, order], unseen]).tolist()
    return objects([" | ".join(itertools.compress(names, row)) for row in rows])


def widths_between(regions: Regions, limits: Limits) -> Array:
    """Return how wide regions are between limits, shape (m,).

    Beyond these nothing is told apart, and has no width.
    """
    if limits.below < limits.above:
        regions = regions.within(limits.below, limits.above)
    return regions.measure()


def width_reduction(widths: Array, labels: AnyArray, level: float) -> Array:
    """Return how much narrower than one without features intervals are, 0 to 1 (a point).

    Shapes: widths (m,).
    """
    ends = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    low, high = np.quantile(labels.astype(float), ends)
    if high > low:
        return np.clip(1.0 - widths / (high - low), 0.0, 1.0)
    return (widths == 0.0).astype(float)


def notes_on_numbers(
    answer: Answer,
    target: Target,
    limits: tuple[float, float] = (-np.inf, np.inf),
    *,
    labels_elsewhere: AnyArray | None = None,
    among: str = "",
) -> list[str]:
    """Return notes on numbers that labels suggest to be impossible, or at ends of intervals.

    Parameters
    ----------
    answer : Answer
        At all rows, or at those of a sample.
    target : Target
        The labels of these rows.
    limits : tuple of float
        The least and the greatest possible value as far as they were named.
    labels_elsewhere : array of shape (k,), optional
        Labels of other rows, the least and the greatest of all among them.
    among : str
        Which rows were counted, if not all, such as " among the 100 rows that are shown".
    """
    if answer.regions is None or target.spelling.moments is not None or not len(answer):
        return []
    reached = answer.status != "unreached"
    values = answer.values.astype(float)[reached]
    ends = answer.regions.hull()[reached]
    labels = target.known.astype(float)
    if labels_elsewhere is not None:
        labels = np.concatenate([labels, labels_elsewhere.astype(float)])
    notes = []
    if not np.isfinite(limits[0]) and labels.min() >= 0.0:
        low = ends[:, 0]
        n_values = int(np.sum(values < 0.0))
        n_ends = int(np.sum(np.isfinite(low) & (low < 0.0)))
        words = ("negative", "below zero")
        notes += _note_beyond(n_values, n_ends, *words, option("minimum", 0), among)
    greatest = 0.0
    words = ("positive", "above zero")
    if target.spelling.unit == "%" and labels.max() > 0.0:
        greatest = 100.0
        words = ("above 100 %", "above 100 %")
    if not np.isfinite(limits[1]) and labels.max() <= greatest:
        high = ends[:, 1]
        n_values = int(np.sum(values > greatest))
        n_ends = int(np.sum(np.isfinite(high) & (high > greatest)))
        notes += _note_beyond(n_values, n_ends, *words, option("maximum", int(greatest)), among)
    usual = np.isin(answer.status[reached], ["answered", "rejected"])
    return [*notes, *_note_at_ends(values[usual], ends[usual], limits, among)]


def _note_beyond(
    n_values: int, n_ends: int, word: str, where: str, how: str, among: str
) -> list[str]:
    """Return a note on values and intervals beyond what all labels keep to, and how to end it."""
    reached = []
    if n_values:
        reached.append(counted(n_values, "filled value is", "filled values are"))
    if n_ends:
        reached.append(f"{counted(n_ends, 'interval reaches', 'intervals reach')} {where}")
    if not reached:
        return []
    return [
        f"No label is {word}, but {' and '.join(reached)}{among}. If no true value can be {word}, "
        f"say so with {how}."
    ]


def _note_at_ends(
    values: Array,
    ends: Array,
    limits: tuple[float, float],
    among: str,
) -> list[str]:
    """Return a note on values at an end of their interval that no limit has put there.

    It looks like a mistake.
    """
    at_lower = (values == ends[:, 0]) & (values > limits[0])
    at_upper = (values == ends[:, 1]) & (values < limits[1])
    has_length = ends[:, 0] < ends[:, 1]
    n_rows = int(np.sum((at_lower | at_upper) & has_length))
    if not n_rows:
        return []
    return [
        f"At {counted(n_rows, 'row')}{among} the filled value is an end of its interval. "
        "That is no mistake: values come from a fit to all labels, and an interval that did not "
        "hold its value was extended to it."
    ]


def answered_probability(answer: Answer) -> Array | None:
    """Return the probability that the method states for each answered class, if it states one."""
    if answer.probabilities is None or answer.classes is None:
        return None
    codes = class_codes(answer.values, answer.classes)
    places = np.maximum(codes, 0)[:, None]
    stated = np.take_along_axis(answer.probabilities, places, axis=1)[:, 0]
    return np.where(codes >= 0, stated, np.nan)
