"""The target column: how its labels are read, checked and answered in new columns."""

from __future__ import annotations

import difflib
import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from transduce.app.tables import numbers
from transduce.app.tables.moments import Moments, about_formats, read_dates
from transduce.app.tables.nested import refuse_objects
from transduce.app.tables.spellings import note_on_spellings
from transduce.app.tables.vectors import read_vectors
from transduce.app.tables.whole_numbers import are_exact, large_integers, taken_as_equal
from transduce.core.answer import UNSEEN, Answer, LevelAnswer, Regions, level_name
from transduce.core.checks import check_choice
from transduce.core.findings import Limits
from transduce.core.sample import PartlyLabelled, decisive_label, guess_task, label_array
from transduce.core.types import AnyArray, Array, ColumnName, KnownTask, Mask
from transduce.core.validation import (
    class_codes,
    is_complex,
    is_halved,
    is_too_large,
    missing_mark,
)
from transduce.core.words import TASKS, counted, option, quoted

FEWEST_LABELS = 3
NEARLY_ALL = 0.8  # of more labels than FEW, this share of different ones is no class
FEW = 20
MOST_LISTED = 6  # classes that are listed with their counts
MOST_CODES = 10  # different whole numbers that may be codes of classes
FEWEST_OF_A_CODE = 2.0  # labels, on average
NO_LIMITS = Limits()
LEARNT = (
    "label is a detection limit: the fit takes the limit for its value, and intervals that reach "
    "it are open there",
    "labels are detection limits: the fit takes the limits for their values, and intervals that "
    "reach them are open there",
)


@dataclass(frozen=True)
class ColumnReading:
    """How the cells of a column of text were read."""

    reading: str = ""  # how a number written with a comma, or with groups of digits, was read
    markers: dict[str, int] = field(default_factory=dict)
    prefer: str = "point"  # the decimal sign in case of doubt
    texts: Callable[[], list[str]] | None = None  # gives the cells as they are written


MOST_SETTLED = 20  # words that one option takes as empty in a message


@dataclass(frozen=True, eq=False)
class Spelling:
    """How labels are written, so that others are read, and answers are written, like them."""

    unit: str = ""  # of numbers
    decimal: str = "point"  # of numbers in text
    moments: Moments | None = None  # if numbers stand for dates, times or durations
    whole: bool = False  # whether classes are whole numbers
    classes: Mapping[Any, Any] = field(default_factory=dict)  # what is written most often for each
    alike: Mapping[str, str] = field(default_factory=dict)  # classes by what their spellings share
    marks: tuple[float, ...] = ()  # numbers that stand for a missing label
    categories: Any = None  # the type of pandas, if it lists the classes
    words: bool = False  # whether texts such as NA stand for a missing label
    minus_behind: bool = True  # whether "5-" is a negative number
    anywhere: bool = False  # whether the one number among any words counts


PLAIN = Spelling()


@dataclass(frozen=True, eq=False)
class Target:
    """Labels, ready for a method."""

    name: ColumnName
    labels: AnyArray  # (n,) numbers, NaN where missing; or classes, None where missing
    missing: Mask  # (n,)
    task: KnownTask
    notes: list[str] = field(default_factory=list)  # what to know about how it was read
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
        if self.spelling.moments is not None:
            return self.spelling.moments.what
        if self.task == "regression":
            return "numbers"
        return "classes"

    @property
    def n_labels(self) -> int:
        """How many labels there are."""
        return int((~self.missing).sum())

    def at(self, rows: AnyArray) -> Target:
        """Return the labels of some rows."""
        return replace(self, labels=self.labels[rows], missing=self.missing[rows])

    def read(self, frame: pd.DataFrame) -> Target:
        """Return the labels of other rows, read as these were.

        All are missing where the table lacks the column.
        """
        column = frame.get(self.name, pd.Series([None] * len(frame), dtype=object))
        missing = missing_labels(column, words=self.spelling.words)
        labels = self._read_labels(column, missing)
        if self.spelling.marks:
            marked = np.isin(labels.astype(float), self.spelling.marks)
            labels = np.where(marked, np.nan, labels)
            missing = missing | marked
        return replace(self, labels=labels, missing=missing, notes=[])

    def _read_labels(self, column: pd.Series, missing: Mask) -> AnyArray:
        """Return the labels of a column (n,), missing where `missing` (n,) says so."""
        spelling = self.spelling
        if self.task == "classification":
            labels = np.full(len(column), None, dtype=object)
            labels[~missing] = objects([self._class(cell) for cell in column[~missing].tolist()])
            return labels
        if missing.all():
            return np.full(len(column), np.nan)
        if spelling.moments is not None:
            return spelling.moments.numbers(column.mask(missing, None))
        if pd.api.types.is_numeric_dtype(column):
            return np.where(missing, np.nan, column.to_numpy(dtype=float, na_value=np.nan))
        values, _side = numbers.read_cells(
            column.mask(missing, None),
            spelling.decimal,
            spelling.unit,
            spelling.anywhere,
            minus_behind=spelling.minus_behind,
        )
        return values

    def _class(self, cell: Any) -> Any:
        value = cell
        if isinstance(cell, np.generic):
            value = cell.item()
        label = numbers.as_label(value)
        if isinstance(label, str):
            label = self.spelling.alike.get(numbers.spelling_key(label), label)
        if self.spelling.whole:
            label = _whole_class(cell)
        return self.spelling.classes.get(label, label)


def _whole_class(cell: Any) -> Any:
    """Return a class that is a whole number, with all its digits, or a text if it is none."""
    for read in (int, float):
        try:
            return int(read(cell))
        except (TypeError, ValueError, OverflowError):
            continue
    return str(cell)


def read_target(
    frame: pd.DataFrame,
    name: ColumnName,
    *,
    task: str = "auto",
    cells: ColumnReading | None = None,
    case_sensitive: bool = False,
    keep: Collection[object] = (),
    anywhere: bool = False,
) -> Target:
    """Return the labels of a column, or raise a ValueError that says what to do about it.

    Classes that differ in capitals or blanks only are one, unless they are `case_sensitive`;
    numbers such as -999, far from all others, are missing labels, except those in `keep`.
    With `anywhere` the number counts that stands among any words of a cell.
    """
    check_choice("task", task, TASKS)
    if len(frame) == 0:
        raise ValueError("The table has no rows.")
    check_columns(frame, [name])
    column = frame[name]
    reading = cells or ColumnReading()
    _check_cells(column, name)
    moments = Moments.of(column)
    if moments is not None and task != "classification":
        target = _dated_target(column, moments, task, reading)
    else:
        if moments is not None and moments.cells not in ("text", "number"):
            column = column.astype(str).astype(object).mask(column.isna(), None)
        request = _Request(task, case_sensitive, keep, anywhere)
        target = _plain_target(column, name, request, reading)
    if task == "auto" and target.task == "classification":
        _check_classes_repeat(target)
    return target


def _check_classes_repeat(target: Target) -> None:
    """Raise a ValueError if nearly all classes differ."""
    n_classes = len(set(target.known.tolist()))
    if n_classes > NEARLY_ALL * max(target.n_labels, FEW):
        differ = (
            f"Nearly all labels of column {target.name!r} differ "
            f"({n_classes} of {target.n_labels}), as names do"
        )
        raise _no_classes(target, differ, f", or use {option('task', 'classification')}")


def _no_classes(target: Target, differ: str, way_out: str = "") -> ValueError:
    """Return that labels differ, with the reason if they seem to be numbers or dates."""
    labels = target.known.tolist()
    units = numbers.several_units(labels)
    if units:
        return ValueError(
            f"Column {target.name!r} holds numbers in several units ({', '.join(units)}): "
            "write all of them in one."
        )
    hint = ""
    if np.mean([any(map(str.isdigit, str(label))) for label in labels]) > NEARLY_ALL:
        hint = (
            f" Labels such as {quoted(str(labels[0]))} were not read as numbers or dates: "
            "if they are, write all of them plainly, such as 12.5 or 2024-05-31."
        )
    return ValueError(
        f"{differ}: fill a column of numbers, or of classes that occur more than once{way_out}."
        f"{hint}"
    )


class _Request(NamedTuple):
    """What the user said about the target."""

    task: str
    case_sensitive: bool
    keep: Collection[object]  # numbers that look like marks of missing cells, and are none
    anywhere: bool = False  # whether the one number among any words counts


def _check_cells(column: pd.Series, name: ColumnName) -> None:
    """Raise a ValueError unless some cells are empty and others hold one label each."""
    missing = column.isna().to_numpy(dtype=bool)
    if not missing.any():
        raise ValueError(_nothing_to_fill(column, name))
    if missing.all():
        raise ValueError(
            f"All cells of column {name!r} are empty: some must have a label to learn from."
        )
    cells = column[~missing].tolist()
    if is_complex(column[~missing]):
        raise ValueError(
            f"Column {quoted(name)} holds complex numbers: "
            "fill their real and imaginary parts as columns of their own."
        )
    if is_too_large(objects(cells)):
        raise ValueError(
            f"Column {quoted(name)} holds a whole number too large for double precision: "
            "divide the column by a constant first, or make it text."
        )
    for cell in cells:
        if isinstance(cell, str) and is_halved(cell):
            raise ValueError(
                f"Column {quoted(name)} holds {quoted(cell)}, half of a character, "
                "which no file can hold: write it anew."
            )
    _check_scalars(column, name, cells)


def _check_different(name: ColumnName, large: list[int]) -> None:
    """Raise a ValueError if different whole numbers become the same as floats."""
    pair = taken_as_equal(large)
    if pair is not None:
        raise ValueError(
            f"Column {name!r} holds {pair[0]} and {pair[1]}, which are the same number in double "
            "precision: if they are names, ask for classes with "
            f"{option('task', 'classification')}; if they are amounts, subtract a constant first."
        )


def _nothing_to_fill(column: pd.Series, name: ColumnName) -> str:
    """Return that no cell is empty, and which words and numbers may stand for empty cells."""
    values = pd.to_numeric(column.astype(object), errors="coerce").to_numpy(float)
    marks = numbers.sentinels(numbers.in_order(values), gap=0.0)
    counts = numbers.hole_words(column)
    counts |= {numbers.plain(mark): count for mark, count in marks.items()}
    counts |= _missing_marks(column)
    if not counts:
        return (
            f"No cell of column {name!r} is empty, so there is nothing to fill: "
            "empty those that are to be answered."
        )
    return (
        f"No cell of column {name!r} is empty, so there is nothing to fill; "
        f"but some cells say {_counts(counts)}: if these are to be filled, use "
        f"{option('missing', [*counts])}."
    )


def _check_scalars(column: pd.Series, name: ColumnName, cells: list[object]) -> None:
    """Raise a ValueError if cells hold lists or records."""
    nested = [cell for cell in cells if not pd.api.types.is_scalar(cell)]
    if not nested and read_vectors(column) is None:
        return
    what = "lists"
    if nested and isinstance(nested[0], dict):
        what = "records"
    raise ValueError(
        f"Column {name!r} holds {what}: put what is to be filled into columns of their own."
    )


def _missing_marks(column: pd.Series) -> dict[Any, int]:
    """Return how often -1 or an empty text occurs where it looks like a missing label.

    That is so in columns without an empty cell.
    """
    mark = missing_mark(label_array(column.astype(object)))
    if mark is None:
        return {}
    return {mark: int((column == mark).sum())}


def _plain_target(
    column: pd.Series, name: ColumnName, request: _Request, reading: ColumnReading
) -> Target:
    """Return labels that are numbers or classes."""
    missing = column.isna().to_numpy(dtype=bool)
    labels, parsed, notes = _labels(column, name, request, reading.prefer)
    large = large_integers(column) if parsed is not None else []
    if large and request.task != "classification":
        _check_different(name, large)
    if reading.reading:
        notes.append(f"{name!r}: {reading.reading}.")
    kept_marks = numbers.hole_words(column) | _missing_marks(column[~missing])
    notes += _about_markers(name, kept_marks, reading.markers)
    task = _decided_task(column, request.task, parsed)
    if large and task == "classification":
        labels = column.astype(object).to_numpy(copy=True)  # with all digits
    elif not are_exact(large):
        notes.append(
            f"{name!r} holds whole numbers such as {large[-1]}, of which double precision keeps "
            f"some 16 digits. If they are names, use {option('task', 'classification')}."
        )
    if task == "classification":
        target = _class_target(column, name, request, reading, labels)
        if request.task == "auto":
            notes.insert(0, _note_on_classes(name, target, as_numbers=parsed is not None))
    else:
        target = _number_target(column, name, request, labels, parsed)
        if request.task == "auto":
            notes = [*_code_note(name, target.known), *notes]
            if parsed is not None:
                decisive = decisive_label(parsed.values[~missing])
                target = replace(target, decisive=decisive)
    return _checked(replace(target, notes=[*notes, *target.notes]))


def _decided_task(column: pd.Series, task: str, parsed: numbers.ParsedNumbers | None) -> str:
    """Return the task that was named or, if none was, the one that labels suggest."""
    if task != "auto":
        return task
    if parsed is None:  # words, or codes such as 007 among them
        return "classification"
    plain = parsed.values
    if isinstance(column.dtype, pd.CategoricalDtype):
        plain = column
    return guess_task(PartlyLabelled.from_arrays(np.empty((len(column), 0)), plain))


def _number_target(
    column: pd.Series,
    name: ColumnName,
    request: _Request,
    labels: AnyArray,
    parsed: numbers.ParsedNumbers | None,
) -> Target:
    """Return labels that are numbers."""
    missing = column.isna().to_numpy(dtype=bool)
    notes: list[str] = []
    spelling = PLAIN
    if parsed is not None:
        marks = numbers.sentinels(numbers.in_order(parsed.values), keep=request.keep)
        notes = numbers.value_notes(name, parsed.values, marks, np.arange(len(missing)))
        missing = missing | np.isin(parsed.values, list(marks))
        labels = parsed.values
        spelling = Spelling(
            parsed.unit,
            parsed.decimal,
            marks=tuple(marks),
            minus_behind=parsed.minus_behind,
            anywhere=request.anywhere,
        )
    values = _numbers(name, labels, missing)
    limits = limits_in(limit_texts(column), spelling)
    return Target(name, values, missing, "regression", notes, limits, spelling=spelling)


def _class_target(
    column: pd.Series,
    name: ColumnName,
    request: _Request,
    reading: ColumnReading,
    labels: AnyArray,
) -> Target:
    """Return labels that are classes."""
    missing = column.isna().to_numpy(dtype=bool)
    values = _classes(labels, missing)
    notes: list[str] = []
    alike: dict[str, str] = {}
    if not request.case_sensitive:
        counts = Counter(label for label in values.tolist() if isinstance(label, str))
        notes = numbers.spelling_note(name, "Classes", counts) + note_on_spellings(name, counts)
        alike = numbers.usual_spellings(counts)
        values = _in_usual_spelling(values, alike)
    written = column
    if reading.texts is not None and column.dtype != object:
        written = pd.Series(reading.texts())
    spelling = replace(_spelling(values, written, column.dtype), alike=alike)
    spelled = [spelling.classes.get(label, label) for label in values[~missing]]
    values[~missing] = objects(spelled)
    return Target(name, values, missing, "classification", notes, spelling=spelling)


def _note_on_classes(name: ColumnName, target: Target, *, as_numbers: bool) -> str:
    """Return that labels were read as classes though nobody said so, and what else they may be."""
    counts = Counter(target.known.tolist())
    listed = counted(len(counts), "different one")
    if len(counts) <= MOST_LISTED:
        listed = ", ".join(
            f"{quoted(label, 30)} {counted(n, 'time')}" for label, n in counts.most_common()
        )
    read = f"{name!r} was read as classes ({listed})"
    units = numbers.several_units(counts)
    if units:
        read += f", although its labels seem to be numbers in several units ({', '.join(units)})"
    if as_numbers:
        return f"{read}; {option('task', 'regression')} reads them as numbers."
    return f"{read}."


def _counts(counts: Mapping[Any, int], between: str = ", ") -> str:
    return between.join(f"{quoted(word)} ({n:,})" for word, n in counts.items())


def _about_markers(name: ColumnName, kept: dict[Any, int], in_file: dict[str, int]) -> list[str]:
    """Return notes on words in a file that were taken for empty cells, or kept as labels."""
    notes: list[str] = []
    empty = {
        word: count
        for word, count in in_file.items()
        if word not in kept or word.lower() in numbers.IN_TEXT
    }
    if empty:
        notes.append(f"Cells of {name!r} that say {_counts(empty)} were taken as empty.")
    if kept:
        notes.append(
            f"Cells of {name!r} that say {_counts(kept)} were taken as labels; "
            f"if they are not, use {option('missing', list(kept))}."
        )
    return notes


def _labels(
    column: pd.Series, name: ColumnName, request: _Request, prefer: str
) -> tuple[AnyArray, numbers.ParsedNumbers | None, list[str]]:
    """Return labels as they are, as numbers if they can be read so, and notes if they were text."""
    nowhere = np.zeros(len(column), dtype=int)
    task = request.task
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        amounts = column.to_numpy(dtype=float, na_value=np.nan)
        return amounts, numbers.ParsedNumbers(amounts, nowhere), []
    labels = column.astype(object).to_numpy(copy=True)
    known = [row for row, label in enumerate(labels) if not pd.isna(label)]
    present = [labels[row] for row in known]
    if all(_is_plain_number(label) for label in present):
        return labels, numbers.ParsedNumbers(pd.to_numeric(column).to_numpy(float), nowhere), []
    for row in known:
        labels[row] = numbers.as_label(labels[row])
    if task == "classification" or not any(isinstance(label, str) for label in present):
        return labels, None, []
    texts = np.full(len(labels), None, dtype=object)
    texts[known] = objects([str(labels[row]) for row in known])
    if task == "auto" and numbers.holds_code(pd.Series(texts[known], dtype=object)):
        return labels, None, []
    parsed = numbers.read_numbers(texts, prefer, anywhere=request.anywhere)
    words = [row for row in known if texts[row].strip().lower() in numbers.MISSING]
    parsed = replace(parsed, unread=sorted([*parsed.unread, *words]))
    if not parsed.unread:
        if parsed.unit or parsed.mended:
            _check_sizes(name, texts, parsed.values)
        notes = _notes_on_texts(name, texts, known[0], parsed)
        if request.anywhere:
            notes = [*notes, *numbers.notes_on_units(name, texts)]
        return labels, parsed, notes
    if parsed.nearly_all:
        inside = numbers.read_numbers(texts[known], prefer, anywhere=True)
        all_hold = not inside.unread and not words
        if all_hold and not numbers.unlike_sizes(texts[known], inside.values):
            reading = option("number", [str(name)])
            raise _not_read(name, "holds", "numbers", texts, parsed.unread, reading)
        raise _not_read(name, "holds", "numbers", texts, parsed.unread)
    if task == "regression" or request.anywhere:
        raise _not_read(name, "should hold", "numbers", texts, parsed.unread)
    return labels, None, []


def _check_sizes(name: ColumnName, texts: AnyArray, values: Array) -> None:
    """Raise a ValueError if numbers with and without a unit seem to be in different units."""
    differ = numbers.unlike_sizes(texts, values)
    if differ:
        raise ValueError(
            f"Column {name!r} holds {differ}, so they seem to be in different units: "
            "write all of them in one."
        )


def _is_plain_number(label: object) -> bool:
    is_number = isinstance(label, int | float | np.integer | np.floating)
    return is_number and not isinstance(label, bool)


def _notes_on_texts(
    name: ColumnName, texts: AnyArray, first: int, parsed: numbers.ParsedNumbers
) -> list[str]:
    """Return that texts were read as numbers, and which of them are unusual."""
    unit = ""
    if parsed.unit:
        has_unit = np.array([parsed.unit in (text or "") for text in texts])
        has_unit &= np.isfinite(parsed.values)
        if has_unit.any():
            first = int(np.argmax(has_unit))
        unit = f" in {parsed.unit}"
        if (np.isfinite(parsed.values) & ~has_unit).any():
            unit += ", as numbers without a unit are"
    if not unit and parsed.decimal == "point" and numbers.are_plain(texts):
        return []  # as in parts, whose columns are read as text
    value = f"{parsed.values[first]:.12g}"
    note = f"{name!r} holds text such as {quoted(texts[first])}, read as the number {value}{unit}."
    return [note, *numbers.cell_notes(name, texts, parsed, np.arange(len(texts)), LEARNT)]


class UnreadCellsError(ValueError):
    """Cells of the column to be filled that are not what the others are.

    The sentence says so, and which options settle it; the rest is for who asks the user.
    """

    def __init__(
        self,
        message: str,
        column: str,
        cells: Mapping[str, int],
        n_labels: int,
        what: str,
    ) -> None:
        super().__init__(message)
        self.column = column
        self.cells = dict(cells)  # what stands in them, and in how many
        self.n_labels = n_labels
        self.what = what  # the others are: numbers, dates

    def __reduce__(self) -> tuple[Any, ...]:
        rest = (self.column, self.cells, self.n_labels, self.what)
        return type(self), (str(self), *rest)


def _not_read(
    name: ColumnName,
    verb: str,
    what: str,
    texts: AnyArray,
    unread: list[int],
    reading: str = "",
) -> UnreadCellsError:
    """Return which cells of a column are not numbers, or dates, and what can be done.

    `reading` is an option that reads the number in each, if each holds one.
    """
    n_labels = sum(text is not None for text in texts)
    cells = numbers.named_cells((texts[row].strip(), row) for row in unread)
    words = list(dict.fromkeys(texts[row].strip() for row in unread))
    # All of them, so that the option settles it; of very many the first, as an example.
    if len(words) <= MOST_SETTLED:
        holes = words
    else:
        holes = words[:3]
    are = "are"
    them = "them"
    inside = f"read the number in each with {reading}, " if reading else ""
    if len(unread) == 1:
        are = "is"
        them = "it"
    message = (
        f"Column {name!r} {verb} {what}, but {len(unread):,} of its {n_labels:,} labels {are} not: "
        f"{cells}. Correct {them}, {inside}take {them} as empty with {option('missing', holes)}, "
        f"or ask for classes with {option('task', 'classification')}."
    )
    counts = Counter(texts[row].strip() for row in unread)
    return UnreadCellsError(message, str(name), counts, n_labels, what)


def _dated_target(
    column: pd.Series,
    moments: Moments,
    task: str,
    reading: ColumnReading,
) -> Target:
    """Return dates, times or durations as numbers; a ValueError names the cells that are none."""
    name = column.name
    missing = column.isna().to_numpy(dtype=bool)
    values = moments.numbers(column)
    unread = np.flatnonzero(np.isnan(values) & ~missing).tolist()
    if unread:
        texts = column.astype(object).mask(missing, None).to_numpy()
        raise _not_read(name, "holds", moments.what, texts, unread)
    notes = _about_markers(name, {}, reading.markers)
    if moments.others:
        texts = column[column.map(type).eq(str)]
        notes.append(about_formats(name, texts, read_dates(texts, moments.styles)))
    if task == "auto":
        example = ""
        if moments.style and moments.dates:
            first = str(column[~missing].iloc[0]).strip()
            example = f", {first!r} as {moments.shown(values[~missing][0])}"
        notes.insert(
            0,
            f"{name!r} was read as {moments.what}{example}; "
            f"{option('task', 'classification')} reads them as classes.",
        )
    spelling = Spelling(moments.unit, moments=moments)
    return _checked(Target(name, values, missing, "regression", notes, spelling=spelling))


def _spelling(classes: AnyArray, cells: pd.Series, kind: Any) -> Spelling:
    """Return what is written most often for each class, where that is not how it was read."""
    pairs: Counter[tuple[Any, str]] = Counter()
    for label, cell in zip(classes.tolist(), cells.tolist(), strict=True):
        if label is not None and isinstance(cell, str) and cell.strip():
            pairs[label, cell.strip()] += 1
    usual = dict(pair for pair, _count in reversed(pairs.most_common()))
    if all(str(label) == cell for label, cell in usual.items()):
        usual = {}
    categories = None
    if isinstance(kind, pd.CategoricalDtype) and set(classes) - {None} <= set(kind.categories):
        categories = kind
    whole = all(type(label) is int for label in classes if label is not None)
    return Spelling(whole=whole, classes=usual, categories=categories)


def _numbers(name: ColumnName, labels: AnyArray, missing: Mask) -> Array:
    try:
        amounts = np.where(missing, np.nan, labels).astype(float)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"Column {name!r} holds {quoted(labels[~missing][0])}, which is not a number: "
            f"ask for classes with {option('task', 'classification')}."
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
    """Return classes (n,), each in the most frequent spelling of those that are alike.

    Classes are alike that differ in capitals or blanks only.
    """
    spelled = classes.tolist()
    for place, label in enumerate(spelled):
        if isinstance(label, str):
            spelled[place] = alike[numbers.spelling_key(label)]
    return objects(spelled)


def _code_note(name: ColumnName, labels: Array) -> list[str]:
    """Return a note if numbers (l,) look like codes: a few whole numbers, each often."""
    codes = np.unique(labels)
    few = len(codes) <= min(MOST_CODES, len(labels) / FEWEST_OF_A_CODE)
    if not few or np.any(codes != np.round(codes)):
        return []
    listed = ", ".join(f"{code:.12g}" for code in codes[:-1])
    between = ""
    if len(codes) > 1:
        between = f"{codes[0] + 0.51 * (codes[1] - codes[0]):.12g}"
    return [
        f"{name!r} holds only the whole numbers {listed} and {codes[-1]:.12g}, which may be codes. "
        f"They were read as numbers, so values such as {between} are filled in; "
        f"{option('task', 'classification')} reads them as classes."
    ]


def _checked(target: Target) -> Target:
    """Return the labels, or raise a ValueError if nothing can be learned from them.

    That is so if they are too few, all the same, or all different classes.
    """
    name = target.name
    n_labels = target.n_labels
    n_different = len(set(target.known.tolist()))
    if n_labels < FEWEST_LABELS:
        raise ValueError(
            f"Column {name!r} has {counted(n_labels, 'label')}, and it takes at least "
            f"{FEWEST_LABELS} to learn anything: label more rows."
        )
    if n_different == 1:
        raise ValueError(
            f"All {n_labels} labels of column {name!r} are the same {_one_label(target)}: "
            "there is nothing to learn; label a row that differs."
        )
    if target.task == "classification" and n_different == n_labels:
        raise _no_classes(target, f"Each of the {n_labels} labels of column {name!r} is different")
    return target


def _one_label(target: Target) -> str:
    """Return the first label with what it is, such as "number, 5"."""
    labels = target.known.tolist()
    moments = target.spelling.moments
    if moments is not None:
        written = str(moments.written(labels)[0])
        return f"{moments.what[:-1]}, {quoted(written)}"
    if target.task == "regression":
        return f"number, {quoted(labels[0])}"
    return f"class, {quoted(labels[0])}"


def check_marks(target: Target) -> None:
    """Raise a ValueError if numbers look like marks of missing labels, and nobody says of what."""
    marks = [numbers.plain(mark) for mark in target.spelling.marks]
    if marks:
        listed = ", ".join(map(str, marks))
        raise ValueError(
            f"Column {target.name!r} holds {listed}, far from all its other values. Say what that "
            f"is: an empty cell, with {option('missing', marks)}, or a number, with "
            f"{option('keep', marks)}."
        )


def missing_labels(column: pd.Series, *, words: bool = False) -> Mask:
    """Return where a label is missing.

    That is in empty cells and, with `words`, at texts such as NA, as in a delimited file.
    """
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


def extreme_cells(column: pd.Series, missing: Mask) -> list[Any]:
    """Return cells among which the least and the greatest label are, whatever their spelling is."""
    labelled = column[~missing]
    has_order = pd.api.types.is_numeric_dtype(column) or column.dtype.kind in "mM"
    if has_order:
        distinct = labelled.drop_duplicates().sort_values()
        # Several: the first and the last may be marks of a missing value, such as -999.
        return [*distinct.head(8).tolist(), *distinct.tail(8).tolist()]
    # Which of several texts is the least is known once it is known how the column is written.
    return list({cell for cell in labelled.tolist() if isinstance(cell, str | int | float)})


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
    low = values[side < 0]
    high = values[side > 0]
    several = max(len(np.unique(low)), len(np.unique(high))) > 1
    counts = np.array([*texts.values()])
    n_limits = int(counts[side != 0].sum())
    below = float(low.max(initial=-np.inf))
    above = float(high.min(initial=np.inf))
    return Limits(n_limits, below, above, several)


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


def objects(values: Sequence[object]) -> AnyArray:
    """Return values as an array of objects, also where they are sequences."""
    return np.array([*values, None], dtype=object)[:-1]


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


def check_once(names: Iterable[ColumnName], where: object) -> None:
    """Raise a ValueError unless the columns of a table have names of their own."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(
            f"{where} has two columns called {twice[0]!r}: give each a name of its own."
        )


def check_columns(frame: pd.DataFrame, wanted: list[ColumnName]) -> None:
    """Raise a ValueError, with the nearest names, unless all these columns are there, each once."""
    check_once(frame.columns, "The table")
    for name in wanted:
        if name not in frame.columns:
            refuse_objects(frame.columns, [name])
            if f"{name} (2)" in frame.columns:
                raise ValueError(
                    f"Several columns of the table are called {name!r}: from left to right they "
                    f"are {f'{name} (1)'!r}, {f'{name} (2)'!r} and so on; name the one you mean."
                )
            raise ValueError(f"The table has no column {name!r}. {hint_at_columns(frame, name)}")


def hint_at_columns(frame: pd.DataFrame, name: ColumnName) -> str:
    """Return the columns that may be meant by a name, or the first of all."""
    names = {str(column).strip().casefold(): str(column) for column in frame.columns}
    word = str(name).strip().casefold()
    close = [word]
    if word not in names:  # of those below an object or a group of columns, one has this name
        close = [key for key in names if key.endswith((f".{word}", f" {word}"))][:3]
    if not close:
        close = difflib.get_close_matches(word, names, n=3, cutoff=0.6)
    if close:
        return f"Did you mean {' or '.join(repr(names[key]) for key in close)}?"
    if not names:
        return "It has no columns."
    first = [repr(str(column)) for column in frame.columns[:6]]
    if frame.shape[1] > len(first):
        return f"It has {', '.join(first)} and others."
    return f"It has {', '.join(first)}."
