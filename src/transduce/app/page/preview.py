"""The table as the page shows it.

How columns are read, what can be guaranteed, like rows, and answers by row.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import feather

from transduce.app.filling.design_columns import bind_design
from transduce.app.filling.forecast import forecast_guarantee
from transduce.app.filling.left_out import LeftOut, columns_left_out
from transduce.app.filling.similar import N_SIMILAR, feature_scales, most_similar
from transduce.app.filling.sources import FrameSource
from transduce.app.labelling.session import journal_path
from transduce.app.labelling.table import MOST_SHOWN, LabelTable
from transduce.app.page.histograms import shape_of_numbers, shape_of_texts
from transduce.app.page.kept import holds_decisions
from transduce.app.page.one_table import one_table
from transduce.app.page.run import KNOWN, GivenLabels, as_chosen
from transduce.app.page.workspace import CARDS, Choices
from transduce.app.report.jsonable import escape_text, finite_or_none
from transduce.app.report.suspects import name_row
from transduce.app.tables import files
from transduce.app.tables.columns import Target, UnreadCellsError
from transduce.app.tables.features import (
    DateReading,
    Features,
    NumberReading,
    as_texts,
    vectorize,
)
from transduce.app.tables.files import write
from transduce.app.tables.formats import Table
from transduce.app.tables.glances import Glance
from transduce.app.tables.layout import SIGNS, LayoutRequest
from transduce.app.tables.numbers import (
    hole_words,
    in_order,
    number_of,
    number_text,
    read_numbers,
    sentinels,
    units_in,
)
from transduce.app.tables.row_names import RowNames, naming_rows
from transduce.app.tables.spellings import alike_spellings
from transduce.conformal.designs import Chance, labels_needed
from transduce.conformal.exchangeability import exchangeability_test
from transduce.conformal.forecast import DRIFTING, SHIFTED, UNEVEN, GuaranteeForecast
from transduce.conformal.selection import Judged, pick
from transduce.core import checks
from transduce.core.assumptions import join_assumptions
from transduce.core.guarantee import Guarantee
from transduce.core.types import AnyArray, Array, ColumnName, JsonObject, Mask
from transduce.core.words import percent
from transduce.population.draws import read_marks

MOST_ROWS = (
    20_000  # that are looked at to tell how columns are read; and on either side of a comparison
)
FIRST_ROWS = 8
MOST_VALUES = 8  # of a column that are listed
MOST_COLUMNS = 300
MOST_ASKED = 12  # different cells that a question lists
MOST_SHARES = 12  # classes whose shares can be given
NOTHING = "Nothing can be guaranteed like this"
# characters of a cell, and of one that may say that it is empty
LONGEST = 160
LONGEST_HOLE = 16


class Preview:
    """A table as it is read under some choices; columns are looked at once each."""

    def __init__(
        self,
        path: Path,
        choices: Choices,
        given: GivenLabels | None = None,
        original: Table | Glance | None = None,
    ) -> None:
        self.path = path
        self._given = given
        if original is None:
            original = files.read(path, sheet=choices.sheet, layout=choices.layout)
        self.glance = None  # of a table too large for memory, whose sample is shown
        if isinstance(original, Glance):
            self.glance = original
            original = original.table
        self.original = original  # as the file has it
        table = as_chosen(original, choices)
        if given is None:
            self.table = table
        else:
            self.table = given.put_into(table, choices)[0]
        n = len(self.table.frame)
        random = np.random.default_rng(0)
        self._places = np.sort(random.choice(n, min(n, MOST_ROWS), replace=False))
        self._some = self.table.frame.iloc[self._places].reset_index(drop=True)
        self._features: dict[Any, Features] = {}
        self._columns: dict[Any, JsonObject] = {}
        self._lock = threading.Lock()
        self._compared: dict[Any, JsonObject] = {}
        self._left_out: dict[str, list[LeftOut]] = {}
        self._suiting: dict[tuple[ColumnName, str], bool] = {}
        self._at_first = choices
        # Which rows were drawn on the labelling page is no column of the person's table.
        self.hidden: set[ColumnName] = set(self.frame.columns) - set(table.frame.columns)

    @property
    def _row_names(self) -> RowNames:
        """What notes call the rows that are looked at."""
        return RowNames.of_lines(self.table.lines).at(self._places)

    @property
    def frame(self) -> pd.DataFrame:
        """All rows."""
        return self.table.frame

    @property
    def n_rows(self) -> int:
        """How many rows the file has."""
        if self.glance is not None:
            return self.glance.n_rows
        return len(self.table.frame)

    def choices(self, choices: Choices) -> Choices:
        """Return the choices.

        With labels of the labelling page, they also say how these came about.
        """
        if self._given is None:
            return choices
        return self._given.said(choices)

    @cached_property
    def shown(self) -> LabelTable:
        """The rows as they are shown."""
        names = [str(name) for name in self.frame.columns]
        frame = self.frame.set_axis(names, axis=1)
        return LabelTable(frame, "", names, "", self.path, self.table, codes=self.codes)

    @cached_property
    def codes(self) -> frozenset[str]:
        """The columns of whole numbers that name the rows, such as numbers of patients."""
        numbers = [
            name
            for name in self.frame.columns[:MOST_COLUMNS]
            if pd.api.types.is_numeric_dtype(self.frame[name])
        ]
        kinds = {
            name: self.features_of(name, self._at_first).columns.iloc[0]["kind"] for name in numbers
        }
        return frozenset(str(name) for name in numbers if kinds[name] == "identifier")

    # ------------------------------------------------------------------------------------- columns

    def features_of(self, name: ColumnName, choices: Choices) -> Features:
        """Return the features of a column, read as `fill` reads one that is not the target."""
        text = str(name) in choices.text
        number = str(name) in choices.number
        key = (name, text, number, *_said_of_all(choices))
        with self._lock:
            if key not in self._features:
                how_to_read: JsonObject = {"text": [name] * text, "number": [name] * number}
                with naming_rows(self._row_names):
                    self._features[key] = vectorize(
                        choices.options().clean(self._some[[name]]),
                        folder=self.table.folder,
                        prefer=self.table.prefer,
                        **how_to_read,
                        **choices.options().reading,
                    )
            return self._features[key]

    def column(self, name: ColumnName, choices: Choices) -> JsonObject:
        """Return what the page shows of a column.

        How `fill` reads it, as the target or as any other.
        """
        is_target = str(name) in choices.targets
        text = str(name) in choices.text
        number = str(name) in choices.number
        of_target = None
        if is_target:
            choices = choices.of_column(str(name))
            of_target = choices.task
        is_out = str(name) in choices.ignore or str(name) == choices.id
        key = (name, text, number, is_out, of_target, *_said_of_all(choices))
        if key not in self._columns:
            every = choices.options().clean(self.frame[[name]])[name]
            features = self.features_of(name, choices)
            shown = self._described(name, features, every)
            if is_out:  # such a column is not read
                shown |= {"empty": shown["n_blank"]}
            elif is_target:
                shown |= self._described_target(choices, shown["n_blank"])
            elif text:
                shown |= {"kind": "text"}
            if not is_out:
                shown |= self._asked_of_cells(every, shown["kind"])
            shown |= {"shape": self._shape(name, features, shown["kind"], choices)}
            if self.glance is not None:
                n_blank = self.glance.n_rows - self.glance.n_known[str(name)]
                is_mixed = 0 < n_blank < self.glance.n_rows
                shown |= {"empty": n_blank, "n_blank": n_blank, "target": is_mixed}
            self._columns[key] = shown | {"holes": shown["empty"]}
        return self._columns[key]

    def _described(
        self,
        name: ColumnName,
        features: Features,
        every: pd.Series,
    ) -> JsonObject:
        """Return how a column is read, and what was odd.

        Empty cells are counted in the whole table.
        """
        line = features.columns.iloc[0]
        reading = features.encoder.readings.get(name)
        spelled = self.table.column_reading(name).reading
        n_blank = int(every.isna().sum())
        notes = [note.text for note in features.notes]
        if spelled:
            notes.insert(0, f"{name!r}: {spelled}.")
        unit = ""
        if isinstance(reading, NumberReading):
            unit = reading.unit
        if len(self._some) == len(self.frame):
            n_empty = int(line["n_missing"])
        else:
            n_empty = _n_empty(features, name, every)
        return {
            "name": str(name),
            "kind": str(line["kind"]),
            "unit": escape_text(unit, 20),
            "treatment": escape_text(line["treatment"]),
            "empty": n_empty,
            "n_blank": n_blank,  # cells with nothing in them; others may be read as empty
            "marks": [number_text(mark) for mark in getattr(reading, "marks", ())],
            "in_text": bool(self._some[name].map(type).eq(str).any()),
            "notes": [escape_text(note, 400) for note in notes],
            "values": [[value, count] for value, count in _frequent(self._some[name])],
            "target": 0 < n_blank < len(every),
        }

    def _shape(
        self, name: ColumnName, features: Features, kind: str, choices: Choices
    ) -> JsonObject | None:
        """Return a histogram of a column as it is read; None where that shows nothing."""
        cells = choices.options().clean(self._some[[name]])[name]
        reading = features.encoder.readings.get(name)
        if kind == "category":
            return shape_of_texts(as_texts(cells).dropna().tolist())
        if kind == "number" and isinstance(reading, NumberReading):
            return shape_of_numbers(reading.values(cells))
        if kind == "date" and isinstance(reading, DateReading):
            return shape_of_numbers(reading.seconds(cells), dates=True)
        return None

    def _asked_of_cells(self, cells: pd.Series, kind: str) -> JsonObject:
        """Return what to ask of the cells of a column: spellings, and numbers with a unit."""
        if kind not in ("category", "number"):
            return {}
        texts = as_texts(cells.iloc[self._places])
        if kind == "category":
            counts = texts.dropna().value_counts().sort_index(kind="stable").to_dict()
            return {
                "alike": [
                    [[escape_text(text, 80), counts[text]] for text in group]
                    for group in alike_spellings(counts)
                ]
            }
        prefer = self.table.prefer
        unread = read_numbers(texts.to_numpy(), prefer).unread
        return {"with_unit": numbers_with_unit(texts.iloc[unread].tolist(), prefer)}

    def _described_target(self, choices: Choices, n_blank: int) -> JsonObject:
        """Return how the column to be filled is read; where it is refused, why."""
        try:
            labels = self.target(choices)
        except ValueError as error:
            shown = {"notes": [escape_text(str(error), 800)], "empty": n_blank, "marks": []}
            return shown | {"ask": _question_of(error)}
        kinds = {"classes": "category", "dates": "date"}
        return {
            "kind": kinds.get(labels.kind, "number"),
            "unit": escape_text("" if labels.spelling.moments else labels.spelling.unit, 20),
            "empty": int(labels.missing.sum()),
            "marks": [number_text(mark) for mark in labels.spelling.marks],
            "notes": [escape_text(note, 400) for note in labels.notes],
        }

    def cells(self, row: int, columns: list[str]) -> list[Any]:
        """Return cells of a row, each with its kind, what is in it, and the place of its column."""
        table = replace(self.shown, show=columns)
        cells = list[Any]()
        for cell in table.cells(row):
            value = table.frame[cell.name].iloc[row]
            content: Any = escape_text(cell.text, LONGEST)
            kind = cell.kind
            if kind == "number" and isinstance(value, int | float | np.number):
                content = finite_or_none(value)
            if kind == "code":  # stands where numbers stand, as it is written
                kind = "number"
            cells.append([kind, content, self.shown.show.index(cell.name)])
        return cells

    def as_json(self, choices: Choices) -> JsonObject:
        """Return the first rows, every column, and those that may be filled.

        Of the latter the one with most empty cells comes first.
        """
        gone = {*choices.ignore, *map(str, self.table.index)}
        names = [name for name in self.frame.columns if name not in self.hidden]
        columns = [self.column(name, choices) for name in names[:MOST_COLUMNS]]
        columns = [column | {"ignored": column["name"] in gone} for column in columns]
        notes = {
            str(column.name): escape_text(column.note, 400) for column in self.left_out(choices)
        }
        for column in columns:
            if column["name"] in notes:
                column["notes"] = [notes[column["name"]], *column["notes"]]
        with_holes = [column for column in columns if column["target"]]
        with_holes.sort(key=lambda column: -column["empty"])
        n_rows = self.n_rows
        without_label = [column["name"] for column in columns if column["n_blank"] == n_rows]
        rows = range(min(FIRST_ROWS, len(self.frame)))
        sheets = self.table.original.sheets
        has_layout = self.table.lines is not None and self.glance is None
        return {
            "rows": n_rows,
            "in_parts": self.glance is not None,
            "looked_at": len(self._some),
            "n_columns": len(names),
            "columns": columns,
            "targets": [column["name"] for column in with_holes],
            "without_label": without_label,
            "begun": [name for name in without_label if self._is_begun(name)],
            "lines": [
                int(line) for line in (self.table.lines or range(1, n_rows + 1))[: len(rows)]
            ],
            "first": [self.cells(row, [shown["name"] for shown in columns]) for row in rows],
            "notes": [escape_text(note) for note in self.table.notes],
            "sheets": sheets,
            "sheets_are": self.table.original.sheets_are,
            "has_layout": has_layout,
            "two_ways": _two_ways(self.original),
            "unfit": self.unfit(choices),
            "classes": self._classes(choices),
        }

    # ----------------------------------------------------------------------- cards that do not suit

    def unfit(self, choices: Choices) -> dict[str, str]:
        """Return the cards on how the labels came about that do not suit, each with the reason."""
        if choices.target is None:
            return {}
        columns = [name for name in self.frame.columns if str(name) != choices.target]
        reasons = {}
        for way, card in CARDS.items():
            if card.needs == "classes":
                suits = self._holds_classes(choices)
            else:
                suits = not card.needs or any(self._suits(name, card.needs) for name in columns)
            if not suits:
                reasons[way] = card.unfit
        return reasons

    def _holds_classes(self, choices: Choices) -> bool:
        """Return whether the column to be filled holds classes, or what it holds is not known."""
        try:
            return self.target(choices).task == "classification"
        except ValueError:  # a question about its cells comes first
            return True

    def _classes(self, choices: Choices) -> list[str]:
        """Return the classes of the column to be filled, if they are few; none of numbers."""
        with suppress(ValueError):  # a question about its cells comes first
            labels = self.target(choices)
            if labels.task == "classification":
                names = sorted({str(label) for label in labels.known})
                return names if len(names) <= MOST_SHARES else []
        return []

    def _suits(self, name: ColumnName, needs: str) -> bool:
        """Return whether a column can say what a card asks for, as far as its first rows show."""
        key = (name, needs)
        if key not in self._suiting:
            self._suiting[key] = SUITS[needs](self._some[name])
        return self._suiting[key]

    def _is_begun(self, name: str) -> bool:
        """Return whether a column was labelled before: there is a journal with decisions."""
        journal = self.journal_of(name)
        return journal.exists() and holds_decisions(journal)

    def journal_of(self, name: str) -> Path:
        """Return where labels of a column are, or would be."""
        journal = journal_path(replace(self.shown, target=name))
        assert journal is not None  # the table is a file
        return journal

    # ---------------------------------------------------------------------------- labelled and not

    def target(self, choices: Choices) -> Target:
        """Return the labels of the column to be filled.

        A ValueError says what to do where it cannot be filled.
        """
        labels = FrameSource.read(self.table, choices.target, choices.options()).labels
        choices.options().check_labels(labels)
        return labels

    def features(self, rows: AnyArray, choices: Choices) -> tuple[Array, list[str]]:
        """Return features of rows (n, d), and the column that each comes from.

        The target and what is left out have none.
        """
        no_features = choices.options().no_features(choices.target)
        left_out = (str(column.name) for column in self.left_out(choices))
        gone = {choices.target, choices.id, *map(str, no_features), *left_out}
        frame = choices.options().clean(self.frame.iloc[rows])
        blocks = [np.empty((len(rows), 0))]
        origins = list[str]()
        for name in self.frame.columns:
            if str(name) not in gone and name not in self.table.index:
                blocks.append(self.features_of(name, choices).encoder.transform(frame[[name]]))
                origins += [str(name)] * blocks[-1].shape[1]
        return np.concatenate(blocks, axis=1), origins

    def left_out(self, choices: Choices) -> list[LeftOut]:
        """Return the columns from which the fill will learn nothing, although nobody said so."""
        if choices.target is None:
            return []
        key = repr(choices)
        if key not in self._left_out:
            try:
                options = choices.options()
                source = FrameSource.read(self.table, choices.target, options)
                self._left_out[key] = columns_left_out(source, options)
            except ValueError:  # how labels came about has yet to be chosen
                self._left_out[key] = []
        return self._left_out[key]

    def compare(self, choices: Choices) -> JsonObject:
        """Return what the other columns say of whether chance chose the labels.

        As data, and in a sentence.
        """
        design = choices.options().design
        lists = map(tuple, (choices.ignore, choices.text, choices.number, choices.missing))
        key = (
            choices.target,
            choices.task,
            design.marks,
            *lists,
            *_said_of_all(choices),
        )
        if key not in self._compared:
            missing = self.target(choices).missing
            if design.marks is None:
                design = Chance()
            compared = bind_design(design, missing, self.frame)
            labelled, unlabelled = compared.compared_rows(missing)
            rows = np.concatenate([_some_of(labelled), _some_of(unlabelled)])
            matrix, origins = self.features(rows, choices)
            verdict = exchangeability_test(matrix, np.isin(rows, labelled)).named(origins).verdict
            self._compared[key] = {
                "differ": verdict.shifted,
                "perhaps": verdict.suspected,
                "tested": verdict.p_value is not None,
                "compared": [verdict.n_labelled, verdict.n_unlabelled],
                "columns": [escape_text(name, 80) for name in verdict.features[:3]],
            }
        return self._compared[key]

    def neighbours(
        self, row: int, labels: Target, choices: Choices, relevance: Mapping[str, float]
    ) -> list[tuple[int, float]]:
        """Return the other labelled rows that are most like a row, and their weights."""
        known = np.flatnonzero(~labels.missing)
        labelled = _some_of(known[known != row])
        matrix, origins = self.features(np.append(labelled, row), choices)
        matrix = matrix * feature_scales(origins, pd.Series(relevance) if relevance else None)
        (places,), (weights,) = most_similar(matrix[-1:], matrix[:-1], N_SIMILAR)
        return list(zip(labelled[places].tolist(), weights.tolist(), strict=True))


def _marks_rows(column: pd.Series) -> bool:
    """Return whether a column marks some rows, and others not."""
    frame = column.to_frame("marks")
    try:
        marked = read_marks(frame, "marks")
    except ValueError:
        return False
    return bool(marked.any() and not marked.all())


def _names_groups(column: pd.Series) -> bool:
    """Return whether a column has several values, some of them more than once."""
    cells = column.dropna().astype(str)
    return 1 < cells.nunique() < len(cells)


def _gives_order(column: pd.Series) -> bool:
    """Return whether a column holds dates or numbers, perhaps spelled as text."""
    if column.dtype != object and not isinstance(column.dtype, pd.StringDtype):
        return column.dtype != bool and column.notna().any()
    cells = as_texts(column.dropna())
    if not len(cells):
        return False
    numbers = vectorize(cells.to_frame("order")).encoder.readings.get("order")
    return isinstance(numbers, NumberReading | DateReading)


def _gives_probabilities(column: pd.Series) -> bool:
    """Return whether a column holds numbers above 0 and at most 1 in every row."""
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    return bool(len(numbers) and ((numbers > 0.0) & (numbers <= 1.0)).all())


SUITS = {
    "marks": _marks_rows,
    "groups": _names_groups,
    "order": _gives_order,
    "probabilities": _gives_probabilities,
}


def _two_ways(table: Table) -> JsonObject | None:
    """Return a number whose decimal sign nothing in the table shows, and what it may be."""
    if table.in_two_ways is None:
        return None
    column, text = table.in_two_ways
    shown = {"column": escape_text(str(column), 80), "text": escape_text(text, 40)}
    values = {sign: number_of(text, sign) for sign in SIGNS}
    return shown | {sign: finite_or_none(value) for sign, value in values.items()}


def _question_of(error: Exception) -> JsonObject | None:
    """Return what to ask the user before a table can be filled; None if that helps nothing."""
    if not isinstance(error, UnreadCellsError):
        return None
    cells = sorted(error.cells.items(), key=lambda cell: -cell[1])
    return {
        "column": error.column,
        "words": [word for word, _ in cells],
        "listed": [[escape_text(word, 40), count] for word, count in cells[:MOST_ASKED]],
        "cells": sum(error.cells.values()),
        "labels": error.n_labels,
        "what": error.what,
        "with_unit": numbers_with_unit([word for word, _ in cells], "point"),
    }


def numbers_with_unit(odd: Sequence[str], prefer: str) -> JsonObject | None:
    """Return which texts that are no plain numbers hold one with the same unit; None if none do."""
    texts = np.asarray(odd, dtype=object)
    read = np.isfinite(read_numbers(texts, prefer, anywhere=True).values)
    units = units_in(texts[read])
    if not read.any() or len(units) > 1:
        return None
    return {
        "unit": escape_text("".join(units), 20),
        "cells": int(read.sum()),
        "words": [escape_text(text, 40) for text in dict.fromkeys(texts[read].tolist())],
        "others": list(dict.fromkeys(texts[~read].tolist())),
    }


def _said_of_all(choices: Choices) -> tuple[Any, ...]:
    """Return what was said of how the cells of every column are read."""
    same = repr(choices.same)
    return tuple(choices.missing), tuple(choices.keep), choices.case_sensitive, same


def _n_empty(features: Features, name: ColumnName, column: pd.Series) -> int:
    """Return how many cells of a column are empty or read as such, as the report counts them."""
    reading = features.encoder.readings.get(name)
    if isinstance(reading, NumberReading | DateReading):
        codes, parts = reading.parts(name, column)
        return int(parts[f"{name} is missing"][codes].sum())
    known = column.dropna()
    if column.dtype == object or isinstance(column.dtype, pd.StringDtype):
        short = [isinstance(cell, str) and len(cell) < LONGEST_HOLE for cell in known]
        known = as_texts(known[short])
    return int(column.isna().sum() + known.isna().sum())


def _frequent(column: pd.Series) -> list[tuple[str, int]]:
    """Return values of a column.

    Those that often mark an empty cell, the most frequent, the least and the largest.
    """
    cells = [cell for cell in column.dropna().tolist() if isinstance(cell, str | int | float)]
    texts = [_cell_text(cell) for cell in cells]
    counts = Counter(texts)
    floats = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    marks = [number_text(mark) for mark in sentinels(in_order(floats))]
    listed = [text for text in (*hole_words(texts), *marks) if text in counts]
    listed += [text for text, _ in counts.most_common(MOST_VALUES)]
    if cells and not any(isinstance(cell, str) for cell in cells):
        listed.append(texts[int(np.argmin(cells))])
        listed.append(texts[int(np.argmax(cells))])
    return [(text, counts[text]) for text in dict.fromkeys(listed)]


def _cell_text(cell: str | float) -> str:
    """Return a cell as it is listed, whole numbers without a decimal sign."""
    if isinstance(cell, float) and cell.is_integer():
        return escape_text(int(cell), 80)
    return escape_text(cell, 80)


def _some_of(rows: AnyArray) -> AnyArray:
    """Return rows, a random part of very many."""
    if len(rows) <= MOST_ROWS // 2:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, MOST_ROWS // 2, replace=False))


# ------------------------------------------------------------------------------ what is guaranteed


def outlook(preview: Preview, choices: Choices) -> JsonObject:
    """Return what will and will not be guaranteed, and whether to offer draws.

    The fill itself decides it in the same way.
    """
    options = choices.options()
    source = FrameSource.read(preview.table, choices.target, options)
    options.check_labels(source.labels)
    forecast = forecast_guarantee(source, options)
    if preview.glance is not None:  # how many rows there are is another number than in the sample
        bound = replace(forecast.guarantee, outside=None)
        forecast = replace(forecast, guarantee=bound, law=None)
    guarantee = forecast.guarantee
    n_unlabelled = int(source.labels.missing.sum())
    can_draw = preview.glance is None  # the labelling page reads the whole table
    if not can_draw:
        n_unlabelled = 0
    if guarantee.kind == "none":
        return {
            "headline": NOTHING,
            "will": [],
            "will_not": list(guarantee.reasons),
            "draw": can_draw,
            "roughly": False,
            "refused": bool(forecast.refusal),
            "one_table": None,
        }
    return {
        "headline": guarantee.headline,
        "will": _promises(guarantee),
        "will_not": _exceptions(forecast, source.labels, n_unlabelled),
        "draw": can_draw and (guarantee.kind != "exact" or choices.way == "chance"),
        "roughly": guarantee.kind == "approximate",
        "refused": False,
        "one_table": one_table(forecast.law, guarantee),
    }


def _promises(guarantee: Guarantee) -> list[str]:
    """Return what will be guaranteed of each row, and of all rows together."""
    promises = [replace(guarantee, outside=None).statement]
    bound = guarantee.outside
    if bound is not None:
        promises.append(
            f"How many of the {bound.of:,} rows together are outside: with "
            f"{percent(bound.certainty)} certainty at most {bound.at_most:,}."
        )
    return promises


def _exceptions(forecast: GuaranteeForecast, labels: Target, n_unlabelled: int) -> list[str]:
    """Return what will not be guaranteed, and what may turn out by the fit."""
    guarantee = forecast.guarantee
    plural = f"{guarantee.about}s"
    exceptions = [f"Any of this, unless {join_assumptions(guarantee.assumptions)}."]
    if not forecast.bounds_column and n_unlabelled:
        exceptions.append(
            f"How many of the {n_unlabelled:,} rows together are outside their {plural}."
        )
    exceptions += _conditions(forecast)
    needed = labels_needed(guarantee.confidence or 0.0)
    if forecast.n_calibration == 0 and labels.n_labels < needed:
        exceptions.append(f"Much: {labels.n_labels} labels are few, and {plural} will be wide.")
    exceptions.append("One particular row: a guarantee is about rows picked at random.")
    return exceptions


def _conditions(forecast: GuaranteeForecast) -> list[str]:
    """Return what may turn out by the fit, and what is left of the guarantee then."""
    conditions = []
    shifted = forecast.if_event(SHIFTED)
    if shifted is not None and forecast.guarantee.kind == "exact":
        column = ""
        if forecast.bounds_column and shifted.outside is None:
            column = ", and not for all rows together"
        conditions.append(
            "Exactly this, if labelled and unlabelled rows are found to differ: then it is "
            f"approximate{column}."
        )
    if forecast.if_event(DRIFTING) is not None:
        conditions.append(
            "Exactly this, if errors are found to drift along the order: then it is approximate."
        )
    if forecast.if_event(UNEVEN) is not None:
        conditions.append(
            "Anything, if the other columns tell so clearly which rows have a label that too few "
            "labelled rows are like the others."
        )
    return conditions


# ---------------------------------------------------------------- the answers row by row, in pages

MOST_A_PAGE = 200
MOST_KEPT = 6  # orders that are kept
SHOWN = ["row", "status", "value", "low", "high", "value_text", "low_text", "high_text"]
SHOWN += ["chance", "set", "first"]


class AnswerRows:
    """The answers of a fill, with the columns of the table that tell which row is meant."""

    def __init__(self, folder: Path, preview: Preview) -> None:
        self.brief: JsonObject = json.loads((folder / "brief.json").read_text("utf-8"))
        changes = folder / "changes.json"
        if changes.exists():
            self.changes = json.loads(changes.read_text("utf-8"))
        else:
            self.changes = None
        self._table = feather.read_table(folder / "answers.feather", memory_map=True)
        self._preview = preview
        self._folder = folder
        target = self.brief["choices"]["target"]
        first = self.brief["context"]
        relevance = {
            column["name"]: column["relevance"] or 0.0 for column in self.brief["relevance"] or ()
        }
        gone = {target, f"{target}_random", *self.brief["choices"]["ignore"]}
        names = [name for name in map(str, preview.frame.columns) if name not in gone]
        others = sorted(
            (name for name in names if name not in first),
            key=lambda name: -relevance.get(name, 0.0),
        )
        self.context = [*(name for name in first if name in names), *others][:MOST_SHOWN]
        self._order = lru_cache(MOST_KEPT)(self._sorted)
        self._lines_of_file = preview.table.lines
        self._kept: JsonObject = {}

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def as_json(self) -> JsonObject:
        """Return all that is shown besides the rows."""
        return {
            **self.brief,
            "context": self.context,
            "changes": self.changes,
            "n_answers": len(self),
            "rows_are": "row" if self._lines_of_file is None else "line",
        }

    @cached_property
    def rows(self) -> AnyArray:
        """The places of the answers in the table, shape (m,)."""
        return np.asarray(self._table["row"].to_numpy())

    @cached_property
    def numbers(self) -> AnyArray:
        """The number by which each row is called: its line in the file, or its place from 1 on."""
        if self._lines_of_file is None:
            return self.rows + 1
        return np.asarray(self._lines_of_file)[self.rows]

    def _column(self, name: str) -> Any:
        """Return a column of the answers, or of the table at the same rows, as an Arrow array."""
        if name in self._table.column_names:
            return self._table[name]
        if name not in self._kept:
            column = self._preview.shown.frame[name].iloc[self.rows]
            plain = pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(
                column
            )
            cells = pa.array(column if plain else column.astype("string"), from_pandas=True)
            self._kept[name] = pa.chunked_array(
                [cells] if isinstance(cells, pa.Array) else cells.chunks
            )
        return self._kept[name]

    # --------------------------------------------------------------------------------------- pages

    def page(self, asked: dict[str, str]) -> JsonObject:
        """Return some rows, as they are asked for."""
        start = max(int(asked.get("start", 0)), 0)
        count = max(int(asked.get("count", 50)), 0)
        sort = asked.get("sort", "")
        down = asked.get("down") == "1"
        kept = self._found(asked.get("search", "").strip())
        counts = dict[str, int]()
        surest_first = bool(asked.get("trust"))
        if surest_first and not self.brief["trust"]["why_not"]:
            trusted, other = self.trusted(asked)
            counts = {"trusted": int(trusted.sum()), "other": int((trusted & other).sum())}
            kept &= trusted
        if asked.get("status"):
            kept &= pc.equal(self._table["status"], asked["status"]).to_numpy()
        places = self._order(sort, down)
        if surest_first and not sort:
            places = places[::-1]
        places = places[kept[places]]
        shown = places[start : start + min(count, MOST_A_PAGE)]
        return {"total": len(places), "start": start, "rows": self._lines(shown), **counts}

    def _sorted(self, sort: str, down: bool) -> AnyArray:
        """Return the places of the answers in an order; by default the least certain come first."""
        if not sort:
            return np.arange(len(self))
        if sort not in self._table.column_names and sort not in self.context:
            raise ValueError(f"There is no column {sort!r} to sort by.")
        if down:
            order = "descending"
        else:
            order = "ascending"
        return pc.sort_indices(self._column(sort), sort_keys=[("", order)]).to_numpy()

    @cached_property
    def _searched(self) -> list[str]:
        """The columns with words in them: numbers are not searched for."""
        kinds = {name: self._column(name).type for name in self.context}
        types = (pa.string(), pa.large_string())
        return [name for name, kind in kinds.items() if kind in types]

    def _found(self, words: str) -> Mask:
        """Return which rows have all these words in what is shown of them.

        A number finds that row, too.
        """
        matches = np.ones(len(self), dtype=bool)
        for word in words.split()[:10]:
            matches_word = np.zeros(len(self), dtype=bool)
            for name in (*self._searched, "value"):
                texts = pc.cast(self._column(name), pa.string())
                matches_word |= pc.fill_null(
                    pc.match_substring(texts, word, ignore_case=True), False
                ).to_numpy()
            if word.isdecimal():
                matches_word |= self.numbers == int(word)
            matches &= matches_word
        return matches

    @cached_property
    def _judged(self) -> Judged:
        """What rows to trust are picked by."""
        known = feather.read_table(self._folder / "judged.feather")
        if self.brief["task"] == "regression":
            first = self._table["first"].to_numpy()
        else:
            first = np.zeros(len(self))
        of_known = tuple(known[name].to_numpy() for name in KNOWN)
        return Judged(
            self._table["unsure"].to_numpy(),
            first,
            (of_known[0], of_known[1], of_known[2]),
        )

    def trusted(self, asked: Mapping[str, str]) -> tuple[Mask, Mask]:
        """Return which rows are picked, and which of them were filled otherwise.

        Of those picked a bounded share is wrong.
        What is picked is an answer of the fit that saw no calibration label; the table has those of
        a second fit.
        """
        if self.brief["trust"]["why_not"]:
            raise ValueError(self.brief["trust"]["why_not"])
        share = checks.check_share("The share of mistakes", float(asked["trust"]))
        relative = bool(asked.get("relative"))
        first, value = (self._table[name].to_numpy() for name in ("first", "value"))
        if self.brief["task"] != "regression":
            return pick(self._judged.p_values(0.5), share), first != value
        tolerance = checks.check_positive(
            "An amount to be off by", float(asked.get("tolerance", "nan"))
        )
        picked = pick(self._judged.p_values(tolerance, relative=relative), share)
        return picked, np.abs(first - value) > tolerance * (np.abs(first) if relative else 1.0)

    def with_trusted(self, asked: Mapping[str, str]) -> Path:
        """Write the filled table with a column that says which rows to trust; return the file."""
        name = Path(str(self.brief["filled"]))
        n_rows = self.brief["counts"]["rows"]
        picked = np.full(n_rows, None, dtype=object)
        picked[self.rows] = np.where(self.trusted(asked)[0], "yes", "no")
        path = self._folder / f"trusted-{name}"
        new = {f"{self.brief['target']}_trusted": picked}
        choices = Choices(**self.brief["choices"])
        sheet = choices.sheet
        layout = choices.layout
        if name.suffix != self._preview.path.suffix:  # a workbook made of another kind of file
            sheet = None
            layout = LayoutRequest(header=1, first=2, last=n_rows + 1)
        filled = files.read(self._folder / name, sheet=sheet, layout=layout)
        write(path, filled, pd.DataFrame(new), force=True)
        return path

    def _lines(self, places: AnyArray) -> list[JsonObject]:
        """Return answers with the cells that tell which row is meant."""
        names = [name for name in SHOWN if name in self._table.column_names]
        lines: list[JsonObject] = self._table.select(names).take(pa.array(places)).to_pylist()
        for line in lines:
            line |= {
                name: finite_or_none(value)
                for name, value in line.items()
                if isinstance(value, float)
            }
            line["name"] = self.name_of(line["row"])
            line["cells"] = self._preview.cells(line["row"], self.context)
        return lines

    # ------------------------------------------------------------------------------------- one row

    def row(self, row: int, choices: Choices) -> JsonObject:
        """Return one row with all of its cells, and the labelled rows that are most like it."""
        preview = self._preview
        if row >= len(preview.frame):
            raise ValueError(f"There is no {self.name_of(row)}.")
        labels = preview.target(choices)
        place = np.flatnonzero(self.rows == row)
        if len(place):
            line = self._lines(place[:1])[0]
        else:
            line = {"row": row, "name": self.name_of(row), "known": _shown_label(labels, row)}
        left = {str(choices.target), *choices.ignore, *preview.hidden}
        columns = [name for name in preview.shown.show if name not in left]
        relevance = {
            column["name"]: column["relevance"]
            for column in self.brief["relevance"] or ()
            if column["relevance"] is not None
        }
        columns.sort(key=lambda name: -relevance.get(name, 0.0))
        near = preview.neighbours(row, labels, choices, relevance)
        return {
            **line,
            "columns": columns,
            "relevance": [relevance.get(name) for name in columns],
            "own": preview.cells(row, columns),
            "neighbours": [
                {
                    "row": other,
                    "name": self.name_of(other),
                    "weight": weight,
                    "label": _shown_label(labels, other),
                    "cells": preview.cells(other, columns),
                }
                for other, weight in near
            ],
        }

    def name_of(self, row: int) -> str:
        """Return what to call a row: its line in the file, or its number."""
        return name_row(row, self._lines_of_file)


def _shown_label(labels: Target, row: int) -> Any:
    """Return the label of a row as the page shows it: a text, or a number."""
    label = labels.labels[row]
    if labels.spelling.moments is not None:
        label = labels.spelling.moments.shown(label)
    if isinstance(label, str):
        return escape_text(label)
    return finite_or_none(label)
