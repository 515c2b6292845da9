"""The table that is labelled: its rows as they are shown, the labels it has already, and search."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from transduce.app.labelling.journal import Label
from transduce.app.tables import files
from transduce.app.tables.amounts import scaled, with_minus_before, with_plain_signs
from transduce.app.tables.column_names import check_columns
from transduce.app.tables.columns import ColumnReading
from transduce.app.tables.databases import SEPARATOR, database_address
from transduce.app.tables.decimal_signs import sign_of_frame
from transduce.app.tables.formats import Table
from transduce.app.tables.layout import AUTOMATIC, LayoutRequest
from transduce.app.tables.nested import divide_objects, fields_below, refuse_objects
from transduce.app.tables.numbers import (
    holds_code,
    in_order,
    read_cells,
    read_numbers,
    sentinels,
    spelling_key,
    usual_spellings,
    without,
)
from transduce.app.tables.pictures import content_of, file_below, holds_pictures, name_of, names_of
from transduce.app.tables.probabilities import read_probabilities
from transduce.app.tables.vectors import in_short, read_vectors
from transduce.core.sample import PartlyLabelled, guess_task
from transduce.core.words import OptionError, quoted, shortened

IMAGES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif"}
IMAGES |= {".webp": "image/webp", ".bmp": "image/bmp", ".tif": "image/tiff", ".tiff": "image/tiff"}
NUMBERS = ("number", "code")  # kinds of cells with a number
MOST_SHOWN = 12  # columns shown by default
MOST_NUMBERS = 4  # in the title of a row without text
LARGEST = 1e150
OPPOSITES = {"yes": "no", "true": "false", "1": "0", "positive": "negative", "include": "exclude"}
HITS = (
    *("yes", "true", "relevant", "positive", "include", "included", "1", "spam", "hit"),
    *("y", "ja", "oui", "sí"),
)


@dataclass(frozen=True)
class Cell:
    """One value of a row, as it is shown."""

    name: str  # the column
    kind: str  # how to show it
    text: str  # the value; of an image its path


@dataclass(frozen=True, eq=False)
class LabelTable:
    """A table with a column to be labelled."""

    frame: pd.DataFrame  # all rows
    target: str  # the column; it need not exist yet
    show: list[str]  # the columns shown
    digest: str  # SHA-256 of the file, or of the frame
    path: Path | None = None  # the file
    source: Table | None = None  # the file as it was read
    keep: tuple[str, ...] = ()  # numbers that look like marks of empty cells, and are none
    case_sensitive: bool = False  # whether classes that differ in capitals only are different
    codes: frozenset[str] = frozenset()  # columns whose numbers are names, written without commas

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.frame)

    @property
    def name(self) -> str:
        """What to call it; a table of a database as commands do, FILE::TABLE."""
        if self.path is None:
            return "table"
        address = None
        if self.source is not None:
            address = database_address(self.source.name)
        if address is None or not address.table:
            return self.path.name
        return f"{self.path.name}{SEPARATOR}{address.table}"

    @property
    def folder(self) -> Path:
        """Below which pictures are: where the file is, or, of a frame, the working folder."""
        if self.path is None:
            return Path()
        return self.path.parent

    @property
    def prefer(self) -> str:
        """The decimal sign of numbers in text, in case of doubt."""
        if self.source is None:
            return sign_of_frame(self.frame)
        return self.source.prefer

    @cached_property
    def decimal(self) -> str | None:
        """The decimal sign in the column to be labelled, "point" or "comma".

        None if its cells do not tell.
        """
        if self.source is None:
            cells = ColumnReading(prefer=self.prefer)
        else:
            cells = self.source.column_reading(self.target)
        if self.target in self.frame.columns:
            given = self.frame[self.target].tolist()
        else:
            given = []
        if cells.texts is None:
            texts = given
        else:
            texts = cells.texts()
        signed = [text for text in texts if isinstance(text, str) and re.search(r"\d[.,]", text)]
        if signed:
            return read_numbers(signed, cells.prefer).decimal
        return None

    @property
    def lines(self) -> Sequence[int] | None:
        """The lines of the file on which rows begin; None if it has none."""
        if self.source is None:
            return None
        return self.source.lines

    def line_of(self, row: int) -> int | None:
        """Return the line of the file on which a row begins; None if it has none."""
        if self.lines is None:
            return None
        return self.lines[row]

    def cells(self, row: int) -> list[Cell]:
        """Return the values of a row that are shown."""
        cells = [_cell(name, self.frame[name].iloc[row]) for name in self.show]
        return [self._as_code(cell) for cell in cells]

    def _as_code(self, cell: Cell) -> Cell:
        """Return a cell with its number as it is written in a name, without commas."""
        if cell.kind == "number" and cell.name in self.codes:
            return replace(cell, kind="code", text=cell.text.replace(",", ""))
        return cell

    def title(self, row: int, length: int = 80) -> str:
        """Return a row in one line: its first text, else its first values."""
        cells = self.cells(row)
        texts = [cell.text for cell in cells if cell.kind == "text" and cell.text.strip()]
        numbers = [f"{cell.name} {cell.text}" for cell in cells if cell.kind in NUMBERS][
            :MOST_NUMBERS
        ]
        images = [Path(cell.text).name for cell in cells if cell.kind == "image"]
        title = [*texts, " · ".join(numbers), *images, f"row {row + 1}"]
        return _shortened(next(filter(None, title)), length)

    def image(self, row: int, column: int) -> Path | bytes | None:
        """Return the image of a shown cell.

        None unless it is one: bytes, or a file below the table's folder.
        """
        if not (0 <= row < self.n_rows and 0 <= column < len(self.show)):
            return None
        value = content_of(self.frame[self.show[column]].iloc[row])
        if isinstance(value, bytes):
            return value
        if self.path is None or _cell("", value).kind != "image":
            return None
        file = file_below(self.folder, str(value))
        if isinstance(file, Path) and file.suffix.lower() in IMAGES:
            return file
        return None

    @cached_property
    def _shown_text(self) -> pd.Series:
        shown = [self.frame[name] for name in self.show]
        texts = [names_of(cells) for cells in shown if read_vectors(cells[:1000]) is None]
        columns = [cells.astype(str).str.casefold() for cells in texts]
        if columns:
            return columns[0].str.cat(columns[1:], sep="\n")
        return pd.Series([""] * self.n_rows)

    def search(self, words: str, limit: int = 50) -> list[int]:
        """Return rows whose shown text has all the words; a number finds that row first."""
        wanted = words.casefold().split()
        if not wanted:
            return []
        matches = np.ones(self.n_rows, dtype=bool)
        for word in wanted:
            matches &= self._shown_text.str.contains(word, regex=False).to_numpy(dtype=bool)
        rows = np.flatnonzero(matches)[:limit].tolist()
        if len(wanted) == 1 and wanted[0].isdecimal() and 1 <= int(wanted[0]) <= self.n_rows:
            number = int(wanted[0]) - 1
            rows = [number, *(row for row in rows if row != number)][:limit]
        return rows


def _shortened(text: str, length: int) -> str:
    """Return a text in one line, its end left out if it is long."""
    return shortened(" ".join(text[: 4 * length].split()), length)


def _cell(name: str, value: object) -> Cell:
    """Return a value as it is shown."""
    if value is None or value is pd.NaT or (np.isscalar(value) and pd.isna(value)):
        return Cell(name, "missing", "")
    if isinstance(value, bool | np.bool_):
        return Cell(name, "text", str(bool(value)))
    if isinstance(value, int | float | np.integer | np.floating):
        whole = isinstance(value, int | np.integer) or (
            abs(float(value)) < 1e15 and float(value).is_integer()
        )
        if whole:
            return Cell(
                name,
                "number",
                f"{int(value):,}" if abs(int(value)) >= 10_000 else str(int(value)),
            )
        return Cell(name, "number", f"{float(value):,.6g}")
    if isinstance(value, dict) or isinstance(content_of(value), bytes):
        return Cell(name, "image" if holds_pictures(pd.Series([value])) else "text", name_of(value))
    vector = in_short(value)
    if vector is not None:
        return Cell(name, "number", vector)
    text = str(value)
    return Cell(name, "image" if Path(text).suffix.lower() in IMAGES else "text", text)


def read_label_table(
    table: str | Path | pd.DataFrame,
    target: str,
    show: Sequence[str] = (),
    sheet: str | None = None,
    layout: LayoutRequest = AUTOMATIC,
) -> LabelTable:
    """Return a table that is to be labelled, from a file, or a sheet of it, or a frame."""
    source = None
    path = None
    if isinstance(table, pd.DataFrame):
        frame = without(table.reset_index(drop=True), ())
        frame.columns = pd.Index([str(name) for name in frame.columns], dtype=object)
        frame, _fields = divide_objects(frame)
        digest = _digest_of_cells(frame)
    else:
        source = files.read(table, sheet=sheet, layout=layout)
        frame = source.frame
        address = database_address(table)
        if address is None:
            path = Path(table)
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        else:
            path = address.path  # which other tables are written into, too
            digest = _digest_of_cells(frame)
    if len(frame) == 0:
        raise ValueError("The table has no rows.")
    named = fields_below(frame.columns, show)
    check_columns(frame, named)
    if target in named:
        raise OptionError(f"{target!r} is the column to be labelled: show others.")
    shown = [str(name) for name in named] or [
        str(name) for name in frame.columns if name != target
    ][:MOST_SHOWN]
    return LabelTable(frame, target, shown, digest, path, source)


def _digest_of_cells(frame: pd.DataFrame) -> str:
    """Return what tells whether the cells of a table have changed."""
    return hashlib.sha256(frame.to_csv(index=False).encode()).hexdigest()


def given_labels(table: LabelTable, task: str) -> tuple[dict[int, Label], str]:
    """Return the labels that the table has already, by row, and what they are.

    They are "classes" or "numbers".
    """
    if task not in ("auto", "classes", "numbers"):
        raise ValueError(f"task must be 'auto', 'classes' or 'numbers'; got {task!r}.")
    if table.target not in table.frame.columns:
        return {}, "classes" if task == "auto" else task
    column = table.frame[table.target]
    rows = np.flatnonzero(column.notna())
    if task == "classes":
        amounts = column
    else:
        amounts = _amounts(column)
    if task == "auto":
        task = "classes"
        if len(rows):
            sample = PartlyLabelled.from_arrays(np.empty((len(column), 0)), amounts)
            if guess_task(sample) == "regression":
                task = "numbers"
            else:
                task = "classes"
    if task == "numbers":
        values = map(as_number, amounts.iloc[rows].tolist())
        given = dict(zip(rows.tolist(), values, strict=True))
        marks = sentinels(in_order(np.array([*given.values()], dtype=float)), keep=table.keep)
        return {row: value for row, value in given.items() if value not in marks}, task
    classes = map(as_class, column.iloc[rows].tolist())
    labels = dict(zip(rows.tolist(), classes, strict=True))
    if table.case_sensitive:
        return labels, task
    usual = usual_spellings(Counter(label for label in labels.values() if isinstance(label, str)))
    return {
        row: usual[spelling_key(label)] if isinstance(label, str) else label
        for row, label in labels.items()
    }, task


def read_predictions(
    table: LabelTable, columns: Sequence[str], task: str
) -> tuple[dict[int, Label], str]:
    """Return predictions made elsewhere, by row, and what they are: "classes" or "numbers".

    Several columns hold a probability for each class; the likeliest is the prediction.
    """
    if table.target in columns:
        raise OptionError(
            f"{table.target!r} is the column to be labelled: predictions are in another."
        )
    check_columns(table.frame, list(columns))
    refuse_objects(table.frame.columns, columns)
    column = columns[0]
    if len(columns) > 1:
        probabilities = read_probabilities([table.frame[name] for name in columns])
        likeliest = probabilities.likeliest.set_axis(table.frame.index)
        table = replace(table, frame=table.frame.assign(**{column: likeliest}))
    predictions, task = given_labels(replace(table, target=column), task)
    if not predictions:
        raise ValueError(f"Column {column!r} is empty: there is no prediction to check.")
    return predictions, task


def spelled_like(labels: Mapping[int, Label], known: Sequence[Label]) -> dict[int, Label]:
    """Return labels as `known` ones are spelled where they differ in capitals only."""
    exactly = {str(label): label for label in known}
    nearly = {spelling_key(str(label)): label for label in known}
    like = {
        label: exactly.get(str(label), nearly.get(spelling_key(str(label)), label))
        for label in set(labels.values())
    }
    return {row: like[label] for row, label in labels.items()}


def _amounts(column: pd.Series) -> pd.Series:
    """Return a column of numbers in text, such as "€ 300,000", as numbers.

    Unless all cells hold a number it stays as it is, as in `fill`.
    """
    texts = column.astype(object).where(column.notna(), None)
    known = texts.dropna()
    if not len(known) or not known.map(type).eq(str).all() or holds_code(known):
        return column
    parsed = read_numbers(texts.tolist())
    if parsed.unread or parsed.side.any():
        return column
    return pd.Series(parsed.values, index=column.index)


def readings(text: str, decimal: str | None = None) -> list[float]:
    """Return the numbers that a text may be: two where only the column's decimal sign could tell.

    A ValueError says why a text is none.
    """
    plain = with_plain_signs(text)
    if with_minus_before(plain) != plain:
        raise ValueError(f"The sign of “{text}” is in doubt: type the minus before the number.")
    if scaled(plain) is not None:
        raise ValueError(f"“{text}” may be in thousands or more: type the whole number.")
    text = plain
    ends = re.fullmatch(r"[-+]?\d{1,3}[.,]\d{3}", text)
    if decimal:
        signs = [decimal]
    elif ends and "." in text:
        signs = ["comma", "point"]
    else:
        signs = ["point", "comma"]
    if decimal or ends:
        values, side = zip(
            *(read_cells(pd.Series([text]), sign, "") for sign in signs), strict=True
        )
        if np.isfinite(values).all() and not np.any(side):
            return list(dict.fromkeys(float(reading[0]) for reading in values))
    parsed = read_numbers([text])
    if not np.isfinite(parsed.values[0]) or not re.match(
        r"[^<>≤≥~≈]*\d", text
    ):  # a limit is no label here
        raise ValueError(f"“{text}” is not a number: type one, such as 1234.5.")
    return [float(parsed.values[0])]


def as_number(value: object, decimal: str | None = None) -> float:
    """Return a label that is a number.

    A ValueError is raised if it is not one, or its square is too large for one.
    """
    if isinstance(
        value, str
    ):  # read as `fill` reads a cell; what it could only guess is asked about
        text = value.strip()
        value, *other = readings(text, decimal)
        if other:
            raise ValueError(
                f"“{text}” can be read in two ways: give {value:.15g} or {other[0]:.15g} as a "
                "number."
            )
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(f"The label {quoted(value)} is not a number: ask for classes.") from None
    except OverflowError:
        number = np.inf
    if not abs(number) <= LARGEST:
        raise ValueError(
            f"The label {quoted(value)} is not a number between -{LARGEST:g} and {LARGEST:g}."
        )
    return number


def as_class(value: object) -> Label:
    """Return the name of a class as it is kept: plain Python, whole numbers as integers."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value != value or str(value).strip() == "":
        raise ValueError(f"A class needs a name; got {quoted(value)}.")
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str | int | float | bool):
        return value
    return str(value)


def choose_classes(
    given: Mapping[int, Label], wanted: Label, names: Sequence[Label]
) -> tuple[list[Label], Label]:
    """Return the classes to start from, and which of them is wanted.

    They are those named and those of the table; where there are none, yes and no. Of two classes
    of which neither sounds like a hit nor is rarer, as where no row has a label yet, none is
    wanted: a search for one of two kinds of cells would find hardly any of the other.
    """
    known = sorted(set(given.values()), key=lambda label: (str(type(label)), label))
    spelled = {str(label): label for label in known}
    chosen: dict[str, Label] = {}
    for label in (*names, *known):
        chosen.setdefault(str(label), spelled.get(str(label), label))  # as the table has it
    if wanted is not None and str(wanted) not in chosen:
        other = OPPOSITES.get(str(wanted).casefold(), f"not {wanted}")
        chosen = {str(wanted): wanted, **(chosen or {other: other})}
    classes = list(chosen.values()) or ["yes", "no"]
    if wanted is not None or len(classes) != 2:
        return classes, wanted
    for label in classes:
        if str(label).casefold() in HITS:
            return classes, label
    counts = Counter(given.values())
    first, second = (counts[label] for label in classes)
    if first == second:
        return classes, None
    return classes, classes[int(second < first)]
