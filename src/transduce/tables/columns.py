"""The columns that a table must have, those that filling adds to it, and frames of pandas and polars."""

from __future__ import annotations

import difflib
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from transduce.core.answer import UNSEEN, Answer, Regions
from transduce.core.guarantee import Limits
from transduce.core.types import AnyArray, Array
from transduce.core.validation import class_codes
from transduce.tables.vectors import to_pandas

if TYPE_CHECKING:
    from transduce.tables.labels import Target

SEPARATOR = " | "


def new_names(target: Any, task: str, classes: Sequence[Any] = ()) -> list[str]:
    """Return the names of the new columns; with `classes`, one for the probability of each."""
    numbers, words = ("lower", "upper", "narrower"), ("set", "probability", "confidence")
    ends = numbers if task == "regression" else words
    names = [f"{target}_{end}" for end in ("filled", *ends, "status")]
    return [*names, *(f"{target}_probability_{label}" for label in classes)]


def check_names(frame: pd.DataFrame, target: Target, probabilities: bool, label_next: bool = False) -> None:
    """Raise a ValueError if the table has a column that would be added."""
    classes = dict.fromkeys(target.known.tolist()) if probabilities else {}
    more = [f"{target.name}_label_next"] if label_next else []
    for name in [*new_names(target.name, target.task, list(classes)), *more]:
        if name in frame.columns:
            said = f"The table has a column {name!r} already"
            raise ValueError(f"{said}, perhaps from filling it before: rename or drop it first.")


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
    """Return the new columns; rows whose label was given have a value and the status "given". Shapes: right (m,)."""
    known = target.known if known is None else known

    def at_unlabelled(values: Any, elsewhere: Any = np.nan, dtype: type = float) -> AnyArray:
        column: AnyArray = np.full(len(index), elsewhere, dtype=dtype)
        column[answer.rows] = values
        return column

    classes: list[Any] = []
    if target.task == "regression":
        assert answer.regions is not None
        filled = at_unlabelled(answer.values, target.labels)
        middle = [at_unlabelled(end) for end in answer.regions.hull().T]
        surer = at_unlabelled(narrowness(widths_between(answer.regions, target.limits), known, level))
        if target.spelling.moments is not None:
            written = target.spelling.moments.written
            filled, middle = written(filled), [written(middle[0], np.floor), written(middle[1], np.ceil)]
    else:
        assert answer.classes is not None
        filled = at_unlabelled(objects(answer.values.tolist()), target.labels, object)
        order = _order(answer.classes, target.spelling.categories)
        sets = at_unlabelled(_sets(answer, order), None, object)
        middle = [sets, at_unlabelled(np.nan if right is None else right)]
        surer = at_unlabelled(answer.confidence)
        told = probabilities and answer.probabilities is not None
        classes = answer.classes[order].tolist() if told else []
    silent = np.isnan(np.nan if right is None else right)  # where one is not said, nor are the others
    shares = [
        at_unlabelled(np.where(silent, np.nan, answer.probabilities[:, j]))  # type: ignore[index]
        for j in (order if classes else ())
    ]
    columns = [filled, *middle, surer, at_unlabelled(answer.status, "given", object), *shares]
    names = new_names(target.name, target.task, classes)
    new = pd.DataFrame(dict(zip(names, map(_typed, columns), strict=True))).set_index(index)
    kind = target.spelling.categories
    return new if kind is None else new.astype({names[0]: kind})


def objects(values: list[Any]) -> AnyArray:
    """Return values as an array of objects, also where they are sequences."""
    return np.array([*values, None], dtype=object)[:-1]


def rounded(new: pd.DataFrame, target: Any, task: str, known: AnyArray | None = None) -> pd.DataFrame:
    """Return new columns for a file: numbers with the digits of the labels, intervals no narrower for it."""
    new = new.copy()
    starts = (f"{target}_probability", f"{target}_confidence", f"{target}_narrower")
    shares = [name for name in new.columns if str(name).startswith(starts)]
    new[shares] = new[shares].astype(float).round(4)
    if task == "regression" and new[f"{target}_filled"].dtype.kind == "f":
        names = [f"{target}_{end}" for end in ("filled", "lower", "upper")]
        given = (new[f"{target}_status"] == "given").to_numpy()
        own = new[names[0]].to_numpy(dtype=float)[given] if known is None else np.asarray(known, dtype=float)
        digits = _decimals(own)
        ways: tuple[Any, ...] = (np.round, np.floor, np.ceil)
        for name, way in zip(names, ways, strict=True):
            values = new[name].to_numpy(dtype=float)
            near = np.round(way(np.round(values * 10.0**digits, 6)) / 10.0**digits, digits)
            new[name] = np.where(given | ~np.isfinite(near), values, near)
    return new


def _decimals(labels: Array) -> int:
    """Return how many decimals answers have: those of the labels, or more where that would be coarse."""
    texts = [repr(float(label)) for label in np.unique(labels)[:10_000]]
    fractions = [text.partition(".")[2] for text in texts if "e" not in text and not text.endswith(".0")]
    own = max(map(len, fractions), default=0)
    largest = float(np.abs(labels).max(initial=0.0)) or 1.0
    spread = float(np.std(labels / largest)) * min(largest, 1e300) if len(labels) else 0.0
    fine = int(np.ceil(-np.log10(spread / 50.0))) if spread > 0.0 else 0
    return int(np.clip(max(own, fine), 0, 12))


def _order(classes: AnyArray, kind: Any) -> AnyArray:
    """Return the order in which classes are named: that of an ordered categorical, else as they come."""
    if kind is None or not kind.ordered:
        return np.arange(len(classes))
    return np.argsort(kind.categories.get_indexer(classes), kind="stable")


def _sets(answer: Answer, order: AnyArray) -> AnyArray:
    """Return the sets as text, with " | " between classes, known ones and any other. Returns shape (m,)."""
    assert answer.label_sets is not None
    assert answer.classes is not None
    names, unseen = [*map(str, answer.classes[order]), UNSEEN], answer.unseen
    other = np.zeros(len(answer), dtype=bool) if unseen is None else unseen
    sets = np.column_stack([answer.label_sets[:, order], other])
    kinds, which = np.unique(np.packbits(sets, axis=1), axis=0, return_inverse=True)
    rows = np.unpackbits(kinds, axis=1, count=len(names)).astype(bool)
    return objects([SEPARATOR.join(itertools.compress(names, row)) for row in rows])[which.ravel()]


def widths_between(regions: Regions, limits: Limits) -> Array:
    """Return how wide regions are between limits, shape (m,): beyond these nothing is told apart, and has no width."""
    apart = limits.below < limits.above
    return (regions.within(limits.below, limits.above) if apart else regions).measure()


def narrowness(widths: Array, labels: AnyArray, level: float) -> Array:
    """Return how much narrower than one without features intervals of some widths (m,) are, 0 to 1 (a point)."""
    low, high = np.quantile(labels.astype(float), [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    if not high > low:
        return (widths == 0.0).astype(float)
    return np.clip(1.0 - widths / (high - low), 0.0, 1.0)


def answered_probability(answer: Answer) -> Array | None:
    """Return the probability that the method states for each answered class, if it states one."""
    if answer.probabilities is None or answer.classes is None:
        return None
    codes = class_codes(answer.values, answer.classes)
    own = np.take_along_axis(answer.probabilities, np.maximum(codes, 0)[:, None], axis=1)[:, 0]
    return np.where(codes >= 0, own, np.nan)


def _typed(values: AnyArray) -> pd.Series:
    """Return a column: whole numbers that may be missing as such, anything else as pandas has it."""
    if values.dtype == object and pd.api.types.infer_dtype(values, skipna=True) == "integer":
        return pd.Series(values, dtype="Int64")
    return pd.Series(values)


def with_new_columns(table: Any, new: pd.DataFrame, target: Any = None) -> Any:
    """Return a polars frame with new columns after its own; dates and enumerations have the type of the target."""
    import polars

    columns, kind = polars.from_pandas(new.reset_index(drop=True)), table.schema.get(target)
    if kind is not None and kind.is_temporal():
        columns = columns.with_columns(polars.selectors.temporal().cast(kind))
    if isinstance(kind, polars.Enum):
        columns = columns.with_columns(polars.col(f"{target}_filled").cast(kind))
    return table.hstack(columns)


def as_pandas(table: Any) -> pd.DataFrame:
    """Return a frame as pandas; a TypeError unless it is one of pandas or polars."""
    if isinstance(table, pd.DataFrame):
        return table
    if hasattr(table, "collect") and not hasattr(table, "shape"):
        raise TypeError("The table is a lazy frame: call its collect() first.")
    if type(table).__module__.partition(".")[0] == "polars" and hasattr(table, "columns"):
        lists = [name for name, kind in table.schema.items() if kind.is_nested()]
        frame = pd.DataFrame(table.drop(lists).to_pandas())
        for name, column in to_pandas(table.select(lists).to_arrow()).items():
            frame.insert(table.columns.index(name), name, column)
        return frame
    kind = type(table).__name__
    raise TypeError(f"fill takes a pandas or polars frame; got {kind}. Files are filled by `transduce fill`.")


def check_once(names: Iterable[Any], where: Any) -> None:
    """Raise a ValueError unless the columns of a table have names of their own."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"{where} has two columns called {twice[0]!r}: give each a name of its own.")


def check_columns(frame: pd.DataFrame, wanted: list[Any], what: str = "column") -> None:
    """Raise a ValueError, with the nearest names, unless the table has all these columns, each once."""
    check_once(frame.columns, "The table")
    for name in wanted:
        if name in frame.columns:
            continue
        names = {str(column).strip().casefold(): str(column) for column in frame.columns}
        word = str(name).strip().casefold()
        close = [word] if word in names else difflib.get_close_matches(word, names, n=3, cutoff=0.6)
        near = [repr(names[other]) for other in close]
        some = [repr(str(column)) for column in frame.columns[:6]]
        more = " and others" if frame.shape[1] > len(some) else ""
        hint = f"Did you mean {' or '.join(near)}?" if near else f"It has {', '.join(some)}{more}."
        raise ValueError(f"The table has no {what} {name!r}. {hint}")
