"""The target column: its labels, the task, what is wrong with it, how later rows are read; columns that mark rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from transduce.core.checks import check_choice
from transduce.core.guarantee import Limits
from transduce.core.sample import PartlyLabelled, decisive_label, guess_task
from transduce.core.types import AnyArray, Mask
from transduce.core.words import TASKS, counted, missing_option, option
from transduce.tables import numbers
from transduce.tables.columns import check_columns, objects
from transduce.tables.delimited import ColumnCells
from transduce.tables.vectors import read_vectors

FEWEST_LABELS = 3
NEARLY_ALL, FEW = 0.8, 20  # of more labels than so many, this share of different ones is no class
NO_LIMITS = Limits()


@dataclass(frozen=True, eq=False)
class Spelling:
    """How labels are written, so that answers are written like them."""

    unit: str = ""  # of numbers
    moments: numbers.Moments | None = None  # if numbers stand for dates, times or durations
    classes: Mapping[Any, Any] = field(default_factory=dict)  # what is written most often for each
    categories: Any = None  # the type of pandas, if it lists the classes


PLAIN = Spelling()


@dataclass(frozen=True, eq=False)
class Target:
    """Labels, ready for a method."""

    name: Any  # the column
    labels: AnyArray  # (n,) numbers, NaN where missing; or classes, None where missing
    missing: Mask  # (n,)
    task: str
    notes: list[str] = field(default_factory=list)  # what the user should know about how it was read
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


def read_target(
    frame: pd.DataFrame, name: Any, *, task: str = "auto", cells: ColumnCells | None = None
) -> Target:
    """Return the labels of a column, or raise a ValueError that says what to do about it."""
    check_choice("task", task, TASKS)
    if len(frame) == 0:
        raise ValueError("The table has no rows.")
    check_columns(frame, [name])
    column, cells = frame[name], cells or ColumnCells()
    _check_cells(column, name)
    moments = numbers.Moments.of(column)
    if moments is not None and task != "classification":
        target = _dated_target(column, moments, task, cells)
    else:
        if moments is not None and moments.cells not in ("text", "number"):
            column = column.astype(str).astype(object).mask(column.isna(), None)
        target = _plain_target(column, name, task, cells)
    classes = len(set(target.known.tolist())) if target.task == "classification" else 0
    if task == "auto" and classes > NEARLY_ALL * max(target.n_labels, FEW):
        said = f"Nearly all labels of column {name!r} differ ({classes} of {target.n_labels}), as names do"
        other = "fill a column of numbers, or of classes that occur more than once"
        raise ValueError(f"{said}: {other}, or write {option('task', 'classification')}.")
    return target


def _check_cells(column: pd.Series, name: Any) -> None:
    """Raise a ValueError unless some cells are empty and others hold one label each."""
    missing = column.isna().to_numpy(dtype=bool)
    if not missing.any():
        raise ValueError(_nothing_to_fill(column, name))
    if missing.all():
        raise ValueError(f"All cells of column {name!r} are empty: some must have a label to learn from.")
    odd = next((cell for cell in column[~missing].tolist() if not pd.api.types.is_scalar(cell)), None)
    if odd is not None or read_vectors(column) is not None:
        what = "records" if isinstance(odd, dict) else "lists"
        raise ValueError(f"Column {name!r} holds {what}: put what is to be filled into columns of their own.")


def _plain_target(column: pd.Series, name: Any, said: str, cells: ColumnCells) -> Target:
    """Return labels that are numbers or classes."""
    missing, task, decisive = column.isna().to_numpy(dtype=bool), said, None
    labels, amounts, notes = _labels(column, name, task, cells.prefer)
    notes += [f"{name!r}: {cells.reading}."] if cells.reading else []
    if task == "auto" and amounts is None:  # codes such as 007 among them
        task = "classification"
    elif task == "auto":
        plain = column if isinstance(column.dtype, pd.CategoricalDtype) else amounts
        task = guess_task(PartlyLabelled.from_arrays(np.empty((len(missing), 0)), plain))
        decisive = decisive_label(np.asarray(amounts)[~missing]) if task == "regression" else None
    words, odd = numbers.hole_words(column), []
    if task == "regression" and amounts is not None:
        marks = numbers.sentinels(amounts)
        odd = numbers.value_notes(name, amounts, marks, np.arange(len(amounts)), empty=False)
    notes += [*_about_markers(name, words, cells.markers), *odd]
    if task == "regression":
        values = _numbers(name, labels, amounts, missing)
    else:
        values = _classes(labels, missing)
        notes += _alike(labels[~missing], name)
    target = Target(name, values, missing, task, notes)
    reading = LabelReading.of(target, column, cells.prefer)
    spelling = Spelling(reading.unit)
    if task == "classification":
        as_read = column if cells.texts is None or column.dtype == object else pd.Series(cells.texts())
        spelling = _spelling(values, as_read, column.dtype)
        values[~missing] = objects([spelling.classes.get(label, label) for label in values[~missing]])
    target = _checked(replace(target, limits=reading.limits_in(limit_texts(column)), spelling=spelling))
    if said != "auto":
        return target
    guess = _guess_note(name, labels[~missing], task, could_be=amounts is not None)
    return replace(target, notes=[guess, *notes], decisive=decisive)


def _nothing_to_fill(column: pd.Series, name: Any) -> str:
    """Return why there is nothing to fill, and which values may be meant as holes."""
    said = f"No cell of column {name!r} is empty, so there is nothing to fill"
    values = pd.to_numeric(column.astype(object), errors="coerce").to_numpy(float)
    marks = numbers.sentinels(values, gap=0.0)
    counts = numbers.hole_words(column) | {numbers.plain(mark): n for mark, n in marks.items()}
    if not counts:
        return f"{said}: empty those that are to be answered."
    words, write = _counts(counts), missing_option(list(counts))
    return f"{said}; but some cells say {words}: if these are to be filled, write {write}."


def _counts(counts: Mapping[Any, int], between: str = ", ") -> str:
    return between.join(f"{word!r} ({n:,})" for word, n in counts.items())


def _about_markers(name: Any, kept: dict[Any, int], in_file: dict[str, int]) -> list[str]:
    """Return notes on words in a file that were taken for empty cells, and on those that were kept as labels."""
    empty = {word: n for word, n in in_file.items() if word not in kept or word.lower() in numbers.IN_TEXT}
    notes = [f"Cells of {name!r} that say {_counts(empty)} were taken as empty."] if empty else []
    said = f"Cells of {name!r} that say {_counts(kept)} were taken as labels"
    return [*notes, f"{said}; if they are not, write {missing_option(list(kept))}."] if kept else notes


def _labels(
    column: pd.Series, name: Any, task: str, prefer: str
) -> tuple[AnyArray, AnyArray | None, list[str]]:
    """Return labels as they are, as numbers if they can be read so, and notes if they were text."""
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        amounts = column.to_numpy(dtype=float, na_value=np.nan)
        return amounts, amounts, []
    labels = column.astype(object).to_numpy(copy=True)
    known = [row for row, label in enumerate(labels) if not pd.isna(label)]
    present = [labels[row] for row in known]
    if all(isinstance(label, int | float) and not isinstance(label, bool) for label in present):
        return labels, pd.to_numeric(column).to_numpy(float), []
    for row in known:
        labels[row] = numbers.as_label(labels[row])
    if task == "classification" or not any(isinstance(label, str) for label in present):
        return labels, None, []
    texts = np.array([None if pd.isna(label) else str(label) for label in labels], dtype=object)
    if task == "auto" and numbers.holds_code(pd.Series([texts[row] for row in known], dtype=object)):
        return labels, None, []
    found = numbers.read_numbers(texts, prefer)
    unsaid = [row for row in known if texts[row].strip().lower() in numbers.MISSING]
    found = replace(found, unread=sorted([*found.unread, *unsaid]))
    if not found.unread:
        unit = f", in {found.unit}" if found.unit else ""
        said = f"{name!r} holds text such as {texts[known[0]]!r}, read as numbers{unit}."
        return labels, found.values, [said, *_unusual(name, texts, found)]
    if task == "regression" or found.nearly_all:
        start = "holds" if found.nearly_all else "should hold"
        raise ValueError(_not_read(name, f"{start} numbers", texts, found.unread))
    return labels, None, []


def _unusual(name: Any, texts: AnyArray, found: numbers.NumberCells) -> list[str]:
    """Return notes on labels that are limits, or numbers with a mark."""
    others = replace(found, side=np.zeros_like(found.side))
    notes = numbers.cell_notes(name, texts, others, np.arange(len(texts)))
    limits = np.flatnonzero(found.side).tolist()
    what = "label names a limit and was" if len(limits) == 1 else "labels name limits and were"
    said = f"{name!r}: {len(limits):,} {what} learnt as the limit itself, and intervals that reach it are open there"
    cells = numbers.named_cells((texts[row].strip(), row) for row in limits)
    return [*notes, f"{said}: {cells}."] if limits else notes


def _not_read(name: Any, what: str, texts: AnyArray, unread: list[int]) -> str:
    """Return why a column cannot be read as numbers, or dates: which cells, and what can be done."""
    n_labels = sum(text is not None for text in texts)
    cells = numbers.named_cells((texts[row].strip(), row) for row in unread)
    words = list(dict.fromkeys(texts[row].strip() for row in unread))
    holes = [word for word in words if word.lower() in numbers.HOLES] or words[:3]
    verb, it = ("is", "it") if len(unread) == 1 else ("are", "them")
    return (
        f"Column {name!r} {what}, but {len(unread):,} of its {n_labels:,} labels {verb} not: {cells}. "
        f"Correct {it}, take {it} as empty with {missing_option(holes)}, or ask for classes with "
        f"{option('task', 'classification')}."
    )


def _guess_note(name: Any, labels: AnyArray, task: str, *, could_be: bool) -> str:
    """Return how the task was guessed, and how to say otherwise."""
    if task == "regression":
        return f"{name!r} was read as numbers; {option('task', 'classification')} reads them as classes."
    otherwise = f"; {option('task', 'regression')} reads them as numbers" if could_be else ""
    return f"{name!r} was read as classes ({len(set(labels.tolist()))} different ones){otherwise}."


def _dated_target(column: pd.Series, moments: numbers.Moments, task: str, cells: ColumnCells) -> Target:
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
    spelling = Spelling(moments.unit, moments)
    return _checked(Target(name, values, missing, "regression", notes, spelling=spelling))


def _spelling(classes: AnyArray, cells: pd.Series, kind: Any) -> Spelling:
    """Return what is written most often for each class, where that is not how it was read."""
    pairs = Counter(
        (label, cell.strip())
        for label, cell in zip(classes.tolist(), cells.tolist(), strict=True)
        if label is not None and isinstance(cell, str)
    )
    usual: dict[Any, str] = {}
    for (label, cell), _ in pairs.most_common():
        usual.setdefault(label, cell)
    other = any(str(label) != cell for label, cell in usual.items())
    lists = isinstance(kind, pd.CategoricalDtype) and set(classes) - {None} <= set(kind.categories)
    return Spelling(classes=usual if other else {}, categories=kind if lists else None)


def _numbers(name: Any, labels: AnyArray, amounts: AnyArray | None, missing: Mask) -> AnyArray:
    try:
        amounts = np.where(missing, np.nan, labels if amounts is None else amounts).astype(float)
    except (TypeError, ValueError):
        said = f"Column {name!r} holds {labels[~missing][0]!r}, which is not a number"
        raise ValueError(f"{said}: ask for classes with {option('task', 'classification')}.") from None
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


def _alike(labels: AnyArray, name: Any) -> list[str]:
    """Return a note on classes that differ in capitals only."""
    spellings: dict[str, Counter[str]] = {}
    for label in map(str, labels.tolist()):
        spellings.setdefault(label.casefold(), Counter())[label] += 1
    several = [counts for counts in spellings.values() if len(counts) > 1][:3]
    said = ", ".join(_counts(counts, "; ") for counts in several)
    note = f"Classes of {name!r} that differ in capitals only were taken as different: {said}."
    return [note] if said else []


def _checked(target: Target) -> Target:
    """Return the labels; raise a ValueError if they are too few, all the same, or all different classes."""
    name, n_labels, labels = target.name, target.n_labels, target.known.tolist()
    if n_labels < FEWEST_LABELS:
        few = f"{counted(n_labels, 'label')}, and it takes at least {FEWEST_LABELS} to learn anything"
        raise ValueError(f"Column {name!r} has {few}: label more rows.")
    if len(set(labels)) == 1:
        what = "number" if target.task == "regression" else "class"
        if target.spelling.moments is not None:
            what = target.spelling.moments.what[:-1]
            labels = [str(target.spelling.moments.written(labels)[0])]
        said = f"All {n_labels} labels of column {name!r} are the same {what}, {labels[0]!r}"
        raise ValueError(f"{said}: there is nothing to learn; label a row that differs.")
    if target.task == "classification" and len(set(labels)) == n_labels:
        said = f"Each of the {n_labels} labels of column {name!r} is different"
        raise ValueError(f"{said}: fill a column of numbers, or of classes that occur more than once.")
    return target


def missing_labels(column: pd.Series, *, words: bool = False) -> Mask:
    """Return where a label is missing: empty cells and, with `words`, texts such as NA, as in a delimited file."""
    missing = column.isna().to_numpy(dtype=bool)
    if not words or pd.api.types.is_numeric_dtype(column):
        return missing
    codes, levels = pd.factorize(column.astype(object))
    gone = [isinstance(level, str) and level.strip().lower() in numbers.IN_TEXT for level in levels]
    return missing | np.array([*gone, True], dtype=bool)[codes]


def limit_texts(column: pd.Series) -> Counter[str]:
    """Return the cells of a column that are limits, such as "<0.5", and how often each occurs."""
    if pd.api.types.is_numeric_dtype(column):
        return Counter()
    counts = Counter(cell.strip() for cell in column.tolist() if isinstance(cell, str))
    return Counter({text: n for text, n in counts.items() if numbers.LIMIT.fullmatch(text)})


@dataclass(frozen=True)
class LabelReading:
    """How the cells of the target are read."""

    name: Any  # the column
    task: str
    decimal: str = "point"  # of numbers in text
    unit: str = ""  # of numbers in text
    whole: bool = False  # whether classes are whole numbers
    words: bool = False  # whether texts such as NA stand for a missing label
    limits: Limits = NO_LIMITS  # labels of the whole table that are limits
    decisive: float | None = None  # as in `Target`
    spelling: Spelling = PLAIN

    @classmethod
    def of(cls, target: Target, column: pd.Series, prefer: str = "point") -> LabelReading:
        """Return how the labels of a target were read from a column."""
        spelling = target.spelling
        if target.task == "classification":
            known = [*(spelling.classes or target.known.tolist())]
            whole = all(type(label) is int for label in known)
            return cls(target.name, target.task, whole=whole, spelling=spelling)
        if spelling.moments is not None:
            return cls(target.name, target.task, spelling=spelling)
        if pd.api.types.is_numeric_dtype(column):
            return cls(target.name, target.task, decisive=target.decisive)
        texts = [cell if isinstance(cell, str) else None for cell in column.tolist()]
        found = numbers.read_numbers(texts, prefer)
        reading = (target.name, target.task, found.decimal, found.unit)
        return cls(*reading, decisive=target.decisive, spelling=spelling)

    def limits_in(self, texts: Mapping[str, int]) -> Limits:
        """Return what limits there are among labels, given their texts and how often each occurs."""
        if self.task != "regression" or not texts:
            return NO_LIMITS
        values, side = numbers.read_cells(pd.Series(list(texts), dtype=object), self.decimal, self.unit)
        low, high = values[side < 0], values[side > 0]
        several = max(len(np.unique(low)), len(np.unique(high))) > 1
        number = int(np.array([*texts.values()])[side != 0].sum())
        return Limits(number, float(low.max(initial=-np.inf)), float(high.min(initial=np.inf)), several)

    def read(self, frame: pd.DataFrame) -> Target:
        """Return the labels of some rows; all are missing where the table lacks the column."""
        if self.name not in frame.columns:
            empty: AnyArray = np.full(len(frame), np.nan if self.task == "regression" else None)
            missing = np.ones(len(frame), dtype=bool)
            return Target(self.name, empty, missing, self.task, limits=self.limits, spelling=self.spelling)
        column = frame[self.name]
        missing = missing_labels(column, words=self.words)
        if self.task == "classification":
            labels = np.full(len(frame), None, dtype=object)
            for row in np.flatnonzero(~missing):
                labels[row] = self._class(column.iloc[row])
        elif self.spelling.moments is not None:
            labels = self.spelling.moments.numbers(column.mask(missing, None))
        elif pd.api.types.is_numeric_dtype(column):
            labels = np.where(missing, np.nan, column.to_numpy(dtype=float, na_value=np.nan))
        else:
            labels = numbers.read_cells(column.astype(object).mask(missing, None), self.decimal, self.unit)[0]
        return Target(self.name, labels, missing, self.task, limits=self.limits, spelling=self.spelling)

    def _class(self, cell: Any) -> Any:
        label = numbers.as_label(cell.item() if isinstance(cell, np.generic) else cell)
        if self.whole:
            try:
                label = int(float(cell))
            except (TypeError, ValueError):
                label = str(cell)
        return self.spelling.classes.get(label, label)


YES, NO = ("true", "yes", "y", "1", "1.0", "x"), ("false", "no", "n", "0", "0.0", "", "nan", "none", "<na>")


def read_marks(frame: pd.DataFrame, name: Any) -> Mask:
    """Return which rows (n,) a column marks, or raise a ValueError that names a word for neither yes nor no."""
    words = frame[name].astype(object).map(lambda cell: "" if pd.isna(cell) else str(cell).strip().lower())
    odd = ~words.isin([*YES, *NO])
    if odd.any():
        cell = frame[name][odd].iloc[0]
        how = "write true or yes where a row is marked, and false or nothing elsewhere"
        raise ValueError(f"Column {name!r} marks rows, but holds {cell!r}: {how}.")
    return words.isin(YES).to_numpy(dtype=bool)


def draw_rows(missing: Mask, number: int, seed: int) -> AnyArray:
    """Return the positions (number,) of some rows where a label is missing (n,), drawn at random, ascending."""
    rows = np.flatnonzero(missing)
    if not 1 <= number <= len(rows):
        raise ValueError(f"There are {len(rows):,} rows without a label: {number:,} of them cannot be drawn.")
    return np.sort(np.random.default_rng(seed).choice(rows, number, replace=False))
