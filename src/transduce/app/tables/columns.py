"""The target column: its labels, how they are read, checked and answered in new columns; pandas and polars frames."""

from __future__ import annotations

import difflib
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from transduce.app.tables import numbers
from transduce.app.tables.vectors import read_vectors
from transduce.core.answer import UNSEEN, Answer, Regions
from transduce.core.checks import check_choice
from transduce.core.guarantee import Limits
from transduce.core.sample import PartlyLabelled, decisive_label, guess_task, label_array
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.validation import (
    class_codes,
    is_complex,
    is_halved,
    is_too_large,
    missing_mark,
)
from transduce.core.words import TASKS, counted, option, quoted

FEWEST_LABELS = 3
NEARLY_ALL, FEW = 0.8, 20  # of more labels than so many, this share of different ones is no class
MOST_CODES = 10  # different whole numbers that may be codes of classes
FEWEST_OF_A_CODE = 2.0  # labels, on average
NO_LIMITS = Limits()
_OPEN = "learnt as the limit itself, and intervals that reach it are open there"
LEARNT = (f"label names a limit and was {_OPEN}", f"labels name limits and were {_OPEN}")


@dataclass(frozen=True)
class ColumnReading:
    """How the cells of a column of text were read."""

    reading: str = ""  # how a number written with a comma, or with groups of digits, was read
    markers: dict[str, int] = field(default_factory=dict)
    prefer: str = "point"  # the decimal sign in case of doubt
    texts: Callable[[], list[str]] | None = None  # gives the cells as they are written


@dataclass(frozen=True, eq=False)
class Spelling:
    """How labels are written, so that others are read, and answers are written, like them."""

    unit: str = ""  # of numbers
    decimal: str = "point"  # of numbers in text
    moments: numbers.Moments | None = None  # if numbers stand for dates, times or durations
    whole: bool = False  # whether classes are whole numbers
    classes: Mapping[Any, Any] = field(default_factory=dict)  # what is written most often for each
    alike: Mapping[str, str] = field(default_factory=dict)  # classes by what their spellings share
    marks: tuple[float, ...] = ()  # numbers that stand for a missing label
    categories: Any = None  # the type of pandas, if it lists the classes
    words: bool = False  # whether texts such as NA stand for a missing label
    minus_behind: bool = True  # whether "5-" is a negative number


PLAIN = Spelling()


@dataclass(frozen=True, eq=False)
class Target:
    """Labels, ready for a method."""

    name: Any  # the column
    labels: AnyArray  # (n,) numbers, NaN where missing; or classes, None where missing
    missing: Mask  # (n,)
    task: str
    notes: list[str] = field(
        default_factory=list
    )  # what the user should know about how it was read
    limits: Limits = NO_LIMITS  # labels that are limits, such as "<0.5"
    decisive: float | None = None  # the one label that decided the task, if it was guessed
    spelling: Spelling = PLAIN

    @property
    def known(self) -> AnyArray:
        """The labels, shape (l,)."""
        return self.labels[~self.missing]

    @property
    def kind(self) -> str:
        """What labels are: numbers, classes, dates, times or durations."""
        plain = "numbers" if self.task == "regression" else "classes"
        return plain if self.spelling.moments is None else self.spelling.moments.what

    @property
    def n_labels(self) -> int:
        """How many labels there are."""
        return int((~self.missing).sum())

    def at(self, rows: AnyArray) -> Target:
        """Return the labels of some rows."""
        return replace(self, labels=self.labels[rows], missing=self.missing[rows])

    def read(self, frame: pd.DataFrame) -> Target:
        """Return the labels of other rows, read as these were; all are missing where the table lacks the column."""
        spelling, column = (
            self.spelling,
            frame.get(self.name, pd.Series([None] * len(frame), dtype=object)),
        )
        missing = missing_labels(column, words=spelling.words)
        if missing.all():
            labels = np.full(len(frame), np.nan if self.task == "regression" else None)
        elif self.task == "classification":
            labels = np.full(len(frame), None, dtype=object)
            labels[~missing] = objects([self._class(cell) for cell in column[~missing].tolist()])
        elif spelling.moments is not None:
            labels = spelling.moments.numbers(column.mask(missing, None))
        elif pd.api.types.is_numeric_dtype(column):
            labels = np.where(missing, np.nan, column.to_numpy(dtype=float, na_value=np.nan))
        else:
            labels = numbers.read_cells(
                column.mask(missing, None),
                spelling.decimal,
                spelling.unit,
                minus_behind=spelling.minus_behind,
            )[0]
        if spelling.marks:
            marked = np.isin(labels.astype(float), spelling.marks)
            labels = np.where(marked, np.nan, labels)
            missing = missing | marked
        return replace(self, labels=labels, missing=missing, notes=[])

    def _class(self, cell: Any) -> Any:
        label = numbers.as_label(cell.item() if isinstance(cell, np.generic) else cell)
        if isinstance(label, str):
            label = self.spelling.alike.get(numbers.spelling_key(label), label)
        if self.spelling.whole:
            try:
                label = int(float(cell))
            except (TypeError, ValueError, OverflowError):
                label = str(cell)
        return self.spelling.classes.get(label, label)


def read_target(
    frame: pd.DataFrame,
    name: Any,
    *,
    task: str = "auto",
    cells: ColumnReading | None = None,
    case_sensitive: bool = False,
    keep: Collection[Any] = (),
) -> Target:
    """Return the labels of a column, or raise a ValueError that says what to do about it.

    Classes that differ in capitals or blanks only are one, unless they are `case_sensitive`; numbers such as -999,
    far from all others, are missing labels, except those in `keep`.
    """
    check_choice("task", task, TASKS)
    if len(frame) == 0:
        raise ValueError("The table has no rows.")
    check_columns(frame, [name])
    column, cells = frame[name], cells or ColumnReading()
    said = _Said(task, case_sensitive, keep)
    _check_cells(column, name)
    moments = numbers.Moments.of(column)
    if moments is not None and task != "classification":
        target = _dated_target(column, moments, task, cells)
    else:
        if moments is not None and moments.cells not in ("text", "number"):
            column = column.astype(str).astype(object).mask(column.isna(), None)
        target = _plain_target(column, name, said, cells)
    classes = len(set(target.known.tolist())) if target.task == "classification" else 0
    if task == "auto" and classes > NEARLY_ALL * max(target.n_labels, FEW):
        names = f"Nearly all labels of column {name!r} differ ({classes} of {target.n_labels}), as names do"
        other = "fill a column of numbers, or of classes that occur more than once"
        raise ValueError(f"{names}: {other}, or use {option('task', 'classification')}.")
    return target


class _Said(NamedTuple):
    """What the user said about the target."""

    task: str
    case_sensitive: bool
    keep: Collection[Any]  # numbers that look like marks of missing cells, and are none


def _check_cells(column: pd.Series, name: Any) -> None:
    """Raise a ValueError unless some cells are empty and others hold one label each."""
    missing = column.isna().to_numpy(dtype=bool)
    if not missing.any():
        values = pd.to_numeric(column.astype(object), errors="coerce").to_numpy(float)
        marks = numbers.sentinels(numbers.in_order(values), gap=0.0)
        counts = numbers.hole_words(column) | {numbers.plain(mark): n for mark, n in marks.items()}
        counts |= _missing_marks(column)
        hint = f"; but some cells say {_counts(counts)}: if these are to be filled, use"
        hint = (
            f"{hint} {option('missing', [*counts])}"
            if counts
            else ": empty those that are to be answered"
        )
        raise ValueError(f"No cell of column {name!r} is empty, so there is nothing to fill{hint}.")
    if missing.all():
        raise ValueError(
            f"All cells of column {name!r} are empty: some must have a label to learn from."
        )
    cells = column[~missing].tolist()
    if is_complex(column[~missing]):
        raise ValueError(
            f"Column {quoted(name)} holds complex numbers: fill their real and imaginary parts as columns of their own."
        )
    if is_too_large(objects(cells)):
        raise ValueError(
            f"Column {quoted(name)} holds a whole number too large for double precision: divide the column by a "
            "constant first, or make it text."
        )
    halved = next((cell for cell in cells if isinstance(cell, str) and is_halved(cell)), None)
    if halved is not None:
        raise ValueError(
            f"Column {quoted(name)} holds {quoted(halved)}, half of a character, which no file can hold: write it anew."
        )
    odd = next((cell for cell in cells if not pd.api.types.is_scalar(cell)), None)
    if odd is not None or read_vectors(column) is not None:
        what = "records" if isinstance(odd, dict) else "lists"
        raise ValueError(
            f"Column {name!r} holds {what}: put what is to be filled into columns of their own."
        )


def _missing_marks(column: pd.Series) -> dict[Any, int]:
    """Return how often -1 or an empty text occurs in a column without an empty cell, where it looks like one."""
    mark = missing_mark(label_array(column.astype(object)))
    return {} if mark is None else {mark: int((column == mark).sum())}


def _plain_target(column: pd.Series, name: Any, said: _Said, cells: ColumnReading) -> Target:
    """Return labels that are numbers or classes."""
    missing, task = column.isna().to_numpy(dtype=bool), said.task
    decisive, limits = None, NO_LIMITS
    labels, found, notes = _labels(column, name, task, cells.prefer)
    notes += [f"{name!r}: {cells.reading}."] if cells.reading else []
    if task == "auto" and found is None:  # codes such as 007 among them
        task = "classification"
    elif task == "auto" and found is not None:
        plain = column if isinstance(column.dtype, pd.CategoricalDtype) else found.values
        task = guess_task(PartlyLabelled.from_arrays(np.empty((len(missing), 0)), plain))
        decisive = decisive_label(found.values[~missing]) if task == "regression" else None
    kept_marks = numbers.hole_words(column) | _missing_marks(column[~missing])
    notes += _about_markers(name, kept_marks, cells.markers)
    marks: dict[float, int] = {}
    if task == "regression" and found is not None:
        marks = numbers.sentinels(numbers.in_order(found.values), keep=said.keep)
        notes += numbers.value_notes(name, found.values, marks, np.arange(len(missing)))
        missing = missing | np.isin(found.values, list(marks))
    if task == "regression":
        values = _numbers(name, labels if found is None else found.values, missing)
        spelling = PLAIN
        if found is not None:
            spelling = Spelling(
                found.unit, found.decimal, marks=tuple(marks), minus_behind=found.minus_behind
            )
        limits = limits_in(limit_texts(column), spelling)
    else:
        values = _classes(labels, missing)
        alike: dict[str, str] = {}
        if not said.case_sensitive:
            counts = Counter(label for label in values.tolist() if isinstance(label, str))
            notes += numbers.spelling_note(name, "Classes", counts)
            alike = numbers.usual_spellings(counts)
            values = _in_usual_spelling(values, alike)
        as_read = (
            column if cells.texts is None or column.dtype == object else pd.Series(cells.texts())
        )
        spelling = replace(_spelling(values, as_read, column.dtype), alike=alike)
        values[~missing] = objects(
            [spelling.classes.get(label, label) for label in values[~missing]]
        )
    if said.task == "auto" and task == "classification":
        otherwise = (
            "" if found is None else f"; {option('task', 'regression')} reads them as numbers"
        )
        n_classes = len(set(values[~missing].tolist()))
        notes = [f"{name!r} was read as classes ({n_classes} different ones){otherwise}.", *notes]
    if said.task == "auto" and task == "regression":
        notes = [*_code_note(name, values[~missing]), *notes]
    return _checked(Target(name, values, missing, task, notes, limits, decisive, spelling))


def _counts(counts: Mapping[Any, int], between: str = ", ") -> str:
    return between.join(f"{quoted(word)} ({n:,})" for word, n in counts.items())


def _about_markers(name: Any, kept: dict[Any, int], in_file: dict[str, int]) -> list[str]:
    """Return notes on words in a file that were taken for empty cells, and on those that were kept as labels."""
    empty = {
        word: n
        for word, n in in_file.items()
        if word not in kept or word.lower() in numbers.IN_TEXT
    }
    notes = [f"Cells of {name!r} that say {_counts(empty)} were taken as empty."] if empty else []
    said = f"Cells of {name!r} that say {_counts(kept)} were taken as labels"
    return (
        [*notes, f"{said}; if they are not, use {option('missing', list(kept))}."]
        if kept
        else notes
    )


def _labels(
    column: pd.Series, name: Any, task: str, prefer: str
) -> tuple[AnyArray, numbers.ParsedNumbers | None, list[str]]:
    """Return labels as they are, as numbers if they can be read so, and notes if they were text."""
    nowhere = np.zeros(len(column), dtype=int)
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        amounts = column.to_numpy(dtype=float, na_value=np.nan)
        return amounts, numbers.ParsedNumbers(amounts, nowhere), []
    labels = column.astype(object).to_numpy(copy=True)
    known = [row for row, label in enumerate(labels) if not pd.isna(label)]
    present = [labels[row] for row in known]
    if all(isinstance(label, int | float) and not isinstance(label, bool) for label in present):
        return labels, numbers.ParsedNumbers(pd.to_numeric(column).to_numpy(float), nowhere), []
    for row in known:
        labels[row] = numbers.as_label(labels[row])
    if task == "classification" or not any(isinstance(label, str) for label in present):
        return labels, None, []
    texts = np.array([None if pd.isna(label) else str(label) for label in labels], dtype=object)
    if task == "auto" and numbers.holds_code(
        pd.Series([texts[row] for row in known], dtype=object)
    ):
        return labels, None, []
    found = numbers.read_numbers(texts, prefer)
    unsaid = [row for row in known if texts[row].strip().lower() in numbers.MISSING]
    found = replace(found, unread=sorted([*found.unread, *unsaid]))
    if not found.unread:
        unit = f", in {found.unit}" if found.unit else ""
        said = f"{name!r} holds text such as {quoted(texts[known[0]])}, read as numbers{unit}."
        return (
            labels,
            found,
            [said, *numbers.cell_notes(name, texts, found, np.arange(len(texts)), LEARNT)],
        )
    if task == "regression" or found.nearly_all:
        start = "holds" if found.nearly_all else "should hold"
        raise ValueError(_not_read(name, f"{start} numbers", texts, found.unread))
    return labels, None, []


def _not_read(name: Any, what: str, texts: AnyArray, unread: list[int]) -> str:
    """Return why a column cannot be read as numbers, or dates: which cells, and what can be done."""
    n_labels = sum(text is not None for text in texts)
    cells = numbers.named_cells((texts[row].strip(), row) for row in unread)
    words = list(dict.fromkeys(texts[row].strip() for row in unread))
    holes = [word for word in words if word.lower() in numbers.HOLES] or words[:3]
    verb, it = ("is", "it") if len(unread) == 1 else ("are", "them")
    said = f"Column {name!r} {what}, but {len(unread):,} of its {n_labels:,} labels {verb} not: {cells}."
    how = (
        f"Correct {it}, take {it} as empty with {option('missing', holes)}, or ask for classes with"
    )
    return f"{said} {how} {option('task', 'classification')}."


def _dated_target(
    column: pd.Series, moments: numbers.Moments, task: str, cells: ColumnReading
) -> Target:
    """Return dates, times or durations as numbers, or raise a ValueError that names the cells that are not."""
    name, missing, values = column.name, column.isna().to_numpy(dtype=bool), moments.numbers(column)
    unread = np.flatnonzero(np.isnan(values) & ~missing).tolist()
    if unread:
        texts = column.astype(object).mask(missing, None).to_numpy()
        raise ValueError(_not_read(name, f"holds {moments.what}", texts, unread))
    first, such = str(column[~missing].iloc[0]).strip(), ""
    if moments.style and moments.dates:
        such = f", {first!r} as {pd.to_datetime(first, format=moments.style).date()}"
    classes = option("task", "classification")
    notes = [f"{name!r} was read as {moments.what}{such}; {classes} reads them as classes."]
    notes = [*(notes if task == "auto" else []), *_about_markers(name, {}, cells.markers)]
    spelling = Spelling(moments.unit, moments=moments)
    return _checked(Target(name, values, missing, "regression", notes, spelling=spelling))


def _spelling(classes: AnyArray, cells: pd.Series, kind: Any) -> Spelling:
    """Return what is written most often for each class, where that is not how it was read."""
    pairs = Counter(
        (label, cell.strip())
        for label, cell in zip(classes.tolist(), cells.tolist(), strict=True)
        if label is not None and isinstance(cell, str) and cell.strip()
    )
    usual = dict(pair for pair, _ in reversed(pairs.most_common()))
    other = any(str(label) != cell for label, cell in usual.items())
    lists = isinstance(kind, pd.CategoricalDtype) and set(classes) - {None} <= set(kind.categories)
    whole = all(type(label) is int for label in classes if label is not None)
    return Spelling(whole=whole, classes=usual if other else {}, categories=kind if lists else None)


def _numbers(name: Any, labels: AnyArray, missing: Mask) -> Array:
    try:
        amounts = np.where(missing, np.nan, labels).astype(float)
    except (TypeError, ValueError, OverflowError):
        said = f"Column {name!r} holds {quoted(labels[~missing][0])}, which is not a number"
        raise ValueError(
            f"{said}: ask for classes with {option('task', 'classification')}."
        ) from None
    if np.isinf(amounts).any():
        raise ValueError(f"Column {name!r} holds an infinite number: correct or empty that cell.")
    return amounts


def _classes(labels: AnyArray, missing: Mask) -> AnyArray:
    """Return classes of one type: whole numbers as integers, a mixture as text."""
    present = labels[~missing].tolist()
    if all(isinstance(label, float) and label == round(label) for label in present):
        present = [int(label) for label in present]
    elif len({type(label) for label in present}) > 1:
        present = [str(label) for label in present]
    classes = np.full(len(labels), None, dtype=object)
    classes[np.flatnonzero(~missing)] = objects(present)
    return classes


def _in_usual_spelling(classes: AnyArray, alike: Mapping[str, str]) -> AnyArray:
    """Return classes (n,), those that differ in capitals or blanks only as the most frequent of them is spelled."""
    spelled = [
        alike[numbers.spelling_key(label)] if isinstance(label, str) else label
        for label in classes.tolist()
    ]
    return objects(spelled)


def _code_note(name: Any, labels: Array) -> list[str]:
    """Return a note if labels (l,) that were read as numbers look like codes: a few whole numbers, each often."""
    codes = np.unique(labels)
    few = len(codes) <= min(MOST_CODES, len(labels) / FEWEST_OF_A_CODE)
    if not few or np.any(codes != np.round(codes)):
        return []
    named = ", ".join(f"{code:g}" for code in codes[:-1])
    between = f"{codes[0] + 0.51 * (codes[1] - codes[0]):g}" if len(codes) > 1 else ""
    return [
        f"{name!r} holds only the whole numbers {named} and {codes[-1]:g}, which may be codes. "
        f"They were read as numbers, so values such as {between} are filled in; "
        f"{option('task', 'classification')} reads them as classes."
    ]


def _checked(target: Target) -> Target:
    """Return the labels; raise a ValueError if they are too few, all the same, or all different classes."""
    name, n_labels, labels = target.name, target.n_labels, target.known.tolist()
    if n_labels < FEWEST_LABELS:
        few = (
            f"{counted(n_labels, 'label')}, and it takes at least {FEWEST_LABELS} to learn anything"
        )
        raise ValueError(f"Column {name!r} has {few}: label more rows.")
    if len(set(labels)) == 1:
        what = "number" if target.task == "regression" else "class"
        if target.spelling.moments is not None:
            what = target.spelling.moments.what[:-1]
            labels = [str(target.spelling.moments.written(labels)[0])]
        said = f"All {n_labels} labels of column {name!r} are the same {what}, {quoted(labels[0])}"
        raise ValueError(f"{said}: there is nothing to learn; label a row that differs.")
    if target.task == "classification" and len(set(labels)) == n_labels:
        said = f"Each of the {n_labels} labels of column {name!r} is different"
        raise ValueError(
            f"{said}: fill a column of numbers, or of classes that occur more than once."
        )
    return target


def check_marks(target: Target) -> None:
    """Raise a ValueError if numbers among the labels look like marks of missing ones, and nobody said what they are."""
    marks = [numbers.plain(mark) for mark in target.spelling.marks]
    if marks:
        named = ", ".join(map(str, marks))
        raise ValueError(
            f"Column {target.name!r} holds {named}, far from all its other values. Say what that "
            f"is: an empty cell, with {option('missing', marks)}, or a number, with "
            f"{option('keep', marks)}."
        )


def missing_labels(column: pd.Series, *, words: bool = False) -> Mask:
    """Return where a label is missing: empty cells and, with `words`, texts such as NA, as in a delimited file."""
    missing = column.isna().to_numpy(dtype=bool)
    if not words or pd.api.types.is_numeric_dtype(column):
        return missing
    codes, levels = pd.factorize(column)
    gone = [isinstance(level, str) and level.strip().lower() in numbers.IN_TEXT for level in levels]
    return missing | np.array([*gone, True], dtype=bool)[codes]


def limit_texts(column: pd.Series) -> Counter[str]:
    """Return the cells of a column that are limits, such as "<0.5", and how often each occurs."""
    if pd.api.types.is_numeric_dtype(column):
        return Counter()
    counts = Counter(cell.strip() for cell in column.tolist() if isinstance(cell, str))
    return Counter({text: n for text, n in counts.items() if numbers.LIMIT.fullmatch(text)})


def limits_in(texts: Mapping[str, int], spelling: Spelling = PLAIN) -> Limits:
    """Return what limits there are among numbers, given their texts and how often each occurs."""
    if not texts:
        return NO_LIMITS
    values, side = numbers.read_cells(
        pd.Series(list(texts), dtype=object),
        spelling.decimal,
        spelling.unit,
        minus_behind=spelling.minus_behind,
    )
    low, high = values[side < 0], values[side > 0]
    several = max(len(np.unique(low)), len(np.unique(high))) > 1
    number = int(np.array([*texts.values()])[side != 0].sum())
    return Limits(number, float(low.max(initial=-np.inf)), float(high.min(initial=np.inf)), several)


def new_names(target: Any, task: str, classes: Sequence[Any] = ()) -> list[str]:
    """Return the names of the new columns; with `classes`, one for the probability of each."""
    numbers, words = ("lower", "upper", "narrower"), ("set", "probability", "confidence")
    ends = numbers if task == "regression" else words
    names = [f"{target}_{end}" for end in ("filled", *ends, "status")]
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
# How the columns end that `fill` and the labelling page add, and which of them show that they are ours.
_OF_FILL = (
    "filled",
    "lower",
    "upper",
    "narrower",
    "set",
    "probability",
    "confidence",
    "status",
    "label_next",
)
_OF_LABELLING = ("label", "by", "random", "answer")
_SIGNS = {
    "filled": ("status", "lower", "set", "narrower", "confidence"),
    "answer": ("by", "label"),
}


def own_columns(names: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the columns that were added by filling or labelling a column, by the name of that column.

    One of them alone may be the user's: `X_filled` counts beside `X_status`, `X_lower` or the like, and `X_answer`, of
    the labelling page, beside `X_by` or `X_label`.
    """
    texts = [name for name in names if isinstance(name, str)]
    present = set(texts)
    families: dict[str, list[Any]] = {}
    for sign, beside in _SIGNS.items():
        endings = _OF_FILL if sign == "filled" else _OF_LABELLING
        for name in texts:
            base = name.removesuffix(f"_{sign}")
            if base == name or not any(f"{base}_{other}" in present for other in beside):
                continue
            own = {f"{base}_{ending}" for ending in endings}
            likely = [one for one in texts if one in own or one.startswith(f"{base}_probability_")]
            family = families.setdefault(base, [])
            family += [one for one in likely if one not in family]
    return families


def check_names(
    frame: pd.DataFrame, target: Target, probabilities: bool, label_next: bool = False
) -> None:
    """Raise a ValueError if the table has a column that would be added."""
    classes = dict.fromkeys(target.known.tolist()) if probabilities else {}
    more = [f"{target.name}_label_next"] if label_next else []
    for name in [*new_names(target.name, target.task, list(classes)), *more]:
        if name in frame.columns:
            raise ValueError(
                f"The table has a column {name!r} already, perhaps from filling it before: drop it first. Under "
                "another name it would be learned from, although it holds predictions."
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
        surer = at_unlabelled(
            narrowness(widths_between(answer.regions, target.limits), known, level)
        )
        if target.spelling.moments is not None:
            written = target.spelling.moments.written
            filled, middle = (
                written(filled),
                [written(middle[0], np.floor), written(middle[1], np.ceil)],
            )
    else:
        assert answer.classes is not None
        filled = at_unlabelled(objects(answer.values.tolist()), target.labels, object)
        order, kind = np.arange(len(answer.classes)), target.spelling.categories
        if kind is not None and kind.ordered:
            order = np.argsort(kind.categories.get_indexer(answer.classes), kind="stable")
        sets = at_unlabelled(_sets(answer, order), None, object)
        middle = [sets, at_unlabelled(np.nan if right is None else right)]
        surer = at_unlabelled(answer.confidence)
        told = probabilities and answer.probabilities is not None
        classes = answer.classes[order].tolist() if told else []
    silent = np.isnan(
        np.nan if right is None else right
    )  # where one is not said, nor are the others
    shares = answer.probabilities[:, order].T if classes else ()  # type: ignore[index]
    shares = [at_unlabelled(np.where(silent, np.nan, share)) for share in shares]
    columns = [filled, *middle, surer, at_unlabelled(answer.status, "given", object), *shares]
    names = new_names(target.name, target.task, classes)
    for j, column in enumerate(columns):  # whole numbers that may be missing stay whole
        whole = (
            column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "integer"
        )
        columns[j] = pd.Series(column, dtype="Int64" if whole else None)
    new = pd.DataFrame(dict(zip(names, columns, strict=True))).set_axis(index)
    kind = target.spelling.categories
    return new if kind is None else new.astype({names[0]: kind})


def objects(values: list[Any]) -> AnyArray:
    """Return values as an array of objects, also where they are sequences."""
    return np.array([*values, None], dtype=object)[:-1]


def rounded(
    new: pd.DataFrame, target: Any, task: str, known: AnyArray | None = None
) -> pd.DataFrame:
    """Return new columns for a file: numbers with the digits of the labels, intervals no narrower for it."""
    new = new.copy()
    starts = (f"{target}_probability", f"{target}_confidence", f"{target}_narrower")
    shares = [name for name in new.columns if str(name).startswith(starts)]
    new[shares] = new[shares].astype(float).round(4)
    if task == "regression" and new[f"{target}_filled"].dtype.kind == "f":
        filled, given = f"{target}_filled", (new[f"{target}_status"] == "given").to_numpy()
        own = (
            new[filled].to_numpy(dtype=float)[given]
            if known is None
            else np.asarray(known, dtype=float)
        )
        digits = _decimals(own)
        ways: dict[str, Any] = {
            filled: np.round,
            f"{target}_lower": np.floor,
            f"{target}_upper": np.ceil,
        }
        for name, way in ways.items():
            values = new[name].to_numpy(dtype=float)
            near = np.round(way(np.round(values * 10.0**digits, 6)) / 10.0**digits, digits)
            new[name] = np.where(given | ~np.isfinite(near), values, near)
    return new


def _decimals(labels: Array) -> int:
    """Return how many decimals answers have: those of the labels, or more where that would be coarse."""
    texts = [repr(float(label)) for label in np.unique(labels)[:10_000]]
    fractions = [
        text.partition(".")[2] for text in texts if "e" not in text and not text.endswith(".0")
    ]
    own = max(map(len, fractions), default=0)
    largest = float(np.abs(labels).max(initial=0.0)) or 1.0
    spread = float(np.std(labels / largest)) * min(largest, 1e300) if len(labels) else 0.0
    fine = int(np.ceil(-np.log10(spread / 50.0))) if spread > 0.0 else 0
    return int(np.clip(max(own, fine), 0, 12))


def _sets(answer: Answer, order: AnyArray) -> AnyArray:
    """Return the sets as text, with " | " between classes, known ones and any other. Returns shape (m,)."""
    assert answer.label_sets is not None
    assert answer.classes is not None
    names, unseen = [*map(str, answer.classes[order]), UNSEEN], answer.unseen
    other = np.zeros(len(answer), dtype=bool) if unseen is None else unseen
    rows = np.column_stack([answer.label_sets[:, order], other]).tolist()
    return objects([" | ".join(itertools.compress(names, row)) for row in rows])


def widths_between(regions: Regions, limits: Limits) -> Array:
    """Return how wide regions are between limits, shape (m,): beyond these nothing is told apart, and has no width."""
    apart = limits.below < limits.above
    return (regions.within(limits.below, limits.above) if apart else regions).measure()


def narrowness(widths: Array, labels: AnyArray, level: float) -> Array:
    """Return how much narrower than one without features intervals of some widths (m,) are, 0 to 1 (a point)."""
    low, high = np.quantile(labels.astype(float), [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return (
        np.clip(1.0 - widths / (high - low), 0.0, 1.0)
        if high > low
        else (widths == 0.0).astype(float)
    )


def notes_on_numbers(
    answer: Answer, target: Target, limits: tuple[float, float] = (-np.inf, np.inf)
) -> list[str]:
    """Return notes on numbers that labels suggest to be impossible, and on values at an end of their interval.

    `limits` are the least and the greatest possible value as far as they were named.
    """
    if answer.regions is None or target.spelling.moments is not None or not len(answer):
        return []
    given = answer.status != "unreached"
    values = answer.values.astype(float)[given]
    ends = answer.regions.hull()[given]
    labels = target.known.astype(float)
    notes = []
    if not np.isfinite(limits[0]) and labels.min() >= 0.0:
        beyond = (
            int(np.sum(values < 0.0)),
            int(np.sum(np.isfinite(ends[:, 0]) & (ends[:, 0] < 0.0))),
        )
        notes += _note_beyond(*beyond, "negative", "below zero", option("minimum", 0))
    of_hundred = target.spelling.unit == "%" and labels.max() > 0.0
    greatest = 100.0 if of_hundred else 0.0
    if not np.isfinite(limits[1]) and labels.max() <= greatest:
        high = ends[:, 1]
        beyond = int(np.sum(values > greatest)), int(np.sum(np.isfinite(high) & (high > greatest)))
        what = ("above 100 %", "above 100 %") if of_hundred else ("positive", "above zero")
        notes += _note_beyond(*beyond, *what, option("maximum", int(greatest)))
    usual = np.isin(answer.status[given], ["answered", "rejected"])
    return [*notes, *_note_at_ends(values[usual], ends[usual], limits)]


def _note_beyond(n_values: int, n_ends: int, word: str, where: str, how: str) -> list[str]:
    """Return a note on values and intervals beyond what all labels keep to, and how to say that none can be there."""
    reached = []
    if n_values:
        reached.append(counted(n_values, "filled value is", "filled values are"))
    if n_ends:
        reached.append(f"{counted(n_ends, 'interval reaches', 'intervals reach')} {where}")
    if not reached:
        return []
    return [
        f"No label is {word}, but {' and '.join(reached)}. If no true value can be {word}, say so "
        f"with {how}."
    ]


def _note_at_ends(values: Array, ends: Array, limits: tuple[float, float]) -> list[str]:
    """Return a note on values at an end of their interval that no limit has put there; it looks like a mistake."""
    at_lower = (values == ends[:, 0]) & (values > limits[0])
    at_upper = (values == ends[:, 1]) & (values < limits[1])
    n_rows = int(np.sum((at_lower | at_upper) & (ends[:, 0] < ends[:, 1])))
    if not n_rows:
        return []
    return [
        f"At {counted(n_rows, 'row')} the filled value is an end of its interval. That is no mistake: "
        "values come from a fit to all labels, and an interval that did not hold its value was "
        "extended to it."
    ]


def answered_probability(answer: Answer) -> Array | None:
    """Return the probability that the method states for each answered class, if it states one."""
    if answer.probabilities is None or answer.classes is None:
        return None
    codes = class_codes(answer.values, answer.classes)
    own = np.take_along_axis(answer.probabilities, np.maximum(codes, 0)[:, None], axis=1)[:, 0]
    return np.where(codes >= 0, own, np.nan)


def check_once(names: Iterable[Any], where: Any) -> None:
    """Raise a ValueError unless the columns of a table have names of their own."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(
            f"{where} has two columns called {twice[0]!r}: give each a name of its own."
        )


def check_columns(frame: pd.DataFrame, wanted: list[Any]) -> None:
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
        raise ValueError(f"The table has no column {name!r}. {hint}")
