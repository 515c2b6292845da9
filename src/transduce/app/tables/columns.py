"""The target column: how its labels are read, checked and answered in new columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from transduce.app.tables import numbers
from transduce.app.tables.column_names import check_columns
from transduce.app.tables.moments import Moments, about_formats, read_dates
from transduce.app.tables.spellings import note_on_spellings
from transduce.app.tables.vectors import read_vectors
from transduce.app.tables.whole_numbers import are_exact, large_integers, taken_as_equal
from transduce.core.checks import check_choice
from transduce.core.findings import Limits
from transduce.core.sample import PartlyLabelled, decisive_label, guess_task, label_array
from transduce.core.types import AnyArray, Array, ColumnName, KnownTask, Mask
from transduce.core.validation import is_complex, is_halved, is_too_large, missing_mark
from transduce.core.words import TASKS, counted, option, quoted

FEWEST_LABELS = 3
NEARLY_ALL = 0.8  # of more labels than FEW, this share of different ones is no class
FEW = 20
MOST_LISTED = 6  # classes that are listed with their counts
MOST_CODES = 10  # different whole numbers that may be codes of classes
FEWEST_OF_A_CODE = 2.0  # labels, on average
NO_LIMITS = Limits()
# On which side of a limit the label lies: "<0.5", "<=0.5", ">0.5" and ">=0.5".
BELOW = -1
AT_MOST = -2
ABOVE = 1
AT_LEAST = 2
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
    sides: AnyArray | None = None  # (n,) as `sides_of_cells` gives them; None without a limit

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

    @property
    def all_sides(self) -> AnyArray:
        """On which side of its number each label lies, shape (n,), also without a limit."""
        if self.sides is None:
            return np.zeros(len(self.labels), dtype=int)
        return self.sides

    @property
    def censored(self) -> Mask:
        """Rows whose label is a limit, such as "<0.5", shape (n,)."""
        return ~self.missing & (self.all_sides != 0)

    @property
    def bounds(self) -> tuple[Array, Array]:
        """The least and the greatest number that each label may be, each of shape (n,).

        Both are the label itself unless it is a limit; NaN where it is missing.
        """
        values = np.where(self.missing, np.nan, self.labels).astype(float)
        least = values.copy()
        most = values.copy()
        if self.sides is not None:
            least[self.sides < 0] = -np.inf
            most[self.sides > 0] = np.inf
            below = self.sides == BELOW
            most[below] = np.nextafter(values[below], -np.inf)
            above = self.sides == ABOVE
            least[above] = np.nextafter(values[above], np.inf)
            least[self.missing] = np.nan
            most[self.missing] = np.nan
        return least, most

    def at(self, rows: AnyArray) -> Target:
        """Return the labels of some rows."""
        sides = None if self.sides is None else self.sides[rows]
        return replace(self, labels=self.labels[rows], missing=self.missing[rows], sides=sides)

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
        sides = None
        if self.task == "regression" and self.spelling.moments is None:
            sides = sides_of_cells(column.mask(missing, None), self.spelling)
        return replace(self, labels=labels, missing=missing, notes=[], sides=sides)

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
    counts |= numbers.words_beside_numbers(column)
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
    sides = None
    if parsed is not None and parsed.side.any():
        sides = sides_of_cells(column.mask(missing, None), spelling)
    return Target(
        name, values, missing, "regression", notes, limits, spelling=spelling, sides=sides
    )


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
        inside = numbers.read_numbers(texts, prefer, anywhere=True)
        without_number = {*words, *inside.unread}
        measured = [row for row in parsed.unread if row not in without_number]
        values = inside.values.copy()
        values[list(without_number)] = np.nan
        if numbers.unlike_sizes(texts, values, fewest=1):
            measured = []
        raise _not_read(name, "holds", "numbers", texts, parsed.unread, measured)
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
    measured: Collection[int] = (),
) -> UnreadCellsError:
    """Return which cells of a column are not numbers, or dates, and what can be done.

    In `measured` ones a number stands beside other words, such as a unit.
    """
    n_labels = sum(text is not None for text in texts)
    cells = numbers.named_cells((texts[row].strip(), row) for row in unread)
    words = list(dict.fromkeys(texts[row].strip() for row in unread))
    # No measurement is to be lost with the advice.
    empty = list(dict.fromkeys(texts[row].strip() for row in unread if row not in set(measured)))
    holes = empty or words
    # All of them, so that the option settles it; of very many the first, as an example.
    if len(holes) > MOST_SETTLED:
        holes = holes[:3]
    are = "are"
    them = "them"
    if len(unread) == 1:
        are = "is"
        them = "it"
    taken = f"take {them} as empty with {option('missing', holes)}"
    way_out = f"Correct {them}, {taken}, "
    if measured:
        reading = f"Read the number in each with {option('number', [str(name)])}"
        if empty:
            taken = f"take those without a number as empty with {option('missing', holes)}"
            way_out = f"{reading}, and {taken}; or correct {them}, "
        else:
            way_out = f"{reading}, correct {them}, {taken}, "
    message = (
        f"Column {name!r} {verb} {what}, but {len(unread):,} of its {n_labels:,} labels {are} not: "
        f"{cells}. {way_out}or ask for classes with {option('task', 'classification')}."
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
            shown = moments.shown(values[~missing][0])
            example = "" if shown == first else f", {first!r} as {shown}"
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


def sides_of_cells(column: pd.Series, spelling: Spelling = PLAIN) -> AnyArray | None:
    """Return on which side of its number each label lies, shape (n,); None if all are numbers.

    It is BELOW or AT_MOST, ABOVE or AT_LEAST; 0 where the label is the number itself.
    """
    if pd.api.types.is_numeric_dtype(column) or column.isna().all():
        return None
    _values, sides = numbers.read_cells(
        column,
        spelling.decimal,
        spelling.unit,
        spelling.anywhere,
        minus_behind=spelling.minus_behind,
    )
    if not sides.any():
        return None
    rows = np.flatnonzero(sides)
    codes, texts = pd.factorize(column.iloc[rows].astype(str))
    includes = np.array([numbers.INCLUDING.search(text) is not None for text in texts])
    sides[rows[includes[codes]]] *= 2
    return sides


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


def objects(values: Sequence[object]) -> AnyArray:
    """Return values as an array of objects, also where they are sequences."""
    return np.array([*values, None], dtype=object)[:-1]
