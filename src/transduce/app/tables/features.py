"""The columns of any table as finite numbers for every method, with an account of each.

Later rows are read in the same way.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from transduce.app.tables import numbers, pictures, vectors
from transduce.app.tables.column_names import hint_at_columns
from transduce.app.tables.moments import Moments, about_formats
from transduce.app.tables.notes import About, Note, notes_about
from transduce.app.tables.row_hashes import content_order
from transduce.app.tables.spellings import note_on_spellings
from transduce.app.tables.vectors import EACH
from transduce.app.tables.whole_numbers import large_integers, taken_as_equal
from transduce.core.computing import stage
from transduce.core.types import AnyArray, Array, ColumnName
from transduce.core.validation import is_complex
from transduce.core.words import counted, option, quoted, shortened

MOST_LEVELS = 40  # more categories than this are encoded by their letters
LETTER_FEATURES = 10
TEXT_FEATURES = 50
MOST_NOTED = 10  # columns whose cells are noted
MOST_WORDS = 20_000
FITTED_TEXTS = 30_000  # texts that directions are fitted to
SHOWING = 100  # different cells: where none is a date, the column does not hold dates
TRIED = (
    1_000  # cells that show whether a column of texts may hold dates: a cell takes a millisecond
)
FEWEST_WORDS = 4  # on average, for a column to be read as text
FARTHEST = 100.0  # of a feature, in standard deviations
LEAST_SPREAD = (
    0.5  # beside how far cells lie that differ from most: that of 0 and 1, equally frequent
)
FAR = 100.0  # times as far from the median as nearly all others that differ from it
MOST_FAR = 0.1  # of these cells may be far
FEWEST_TO_TELL = 20  # rows
LARGE = 2**27  # numbers; so many features are held in single precision
_OWN = "every row has its own"  # why identifiers are dropped
_ID = re.compile(
    r"(?i:(.*[^a-z])?(id|uuid|guid|key|index|unnamed: 0|__index_level_0__"
    r"|pmid|pmcid|mrn|isbn|issn|gtin|ean))|.*[a-z]I[dD]|"
)


@dataclass(frozen=True, eq=False)
class Features:
    """Features of all rows."""

    matrix: Array  # (n, d)
    names: list[str]  # what each feature is
    origins: list[ColumnName]  # the column each feature comes from
    # What was done to each column: name, kind, treatment, n_missing, n_features.
    columns: pd.DataFrame
    notes: list[Note]
    encoder: Encoder  # turns rows which come later into the same features
    dropped: dict[ColumnName, str]  # the kind of each column from which nothing can be learned

    def at(self, rows: AnyArray) -> Features:
        """Return the features of some rows."""
        return replace(self, matrix=self.matrix[rows])


@dataclass(eq=False)
class _Column:
    """One column and its features, before they are scaled."""

    name: ColumnName
    kind: str
    treatment: str
    n_missing: int
    parts: dict[str, Array] = field(default_factory=dict)
    reading: Any = None
    notes: list[str] = field(default_factory=list)
    dropped: bool = False  # whether it tells nothing


def _dropped_column(
    name: ColumnName,
    kind: str,
    reason: str,
    n_missing: int,
    notes: Sequence[str] = (),
) -> _Column:
    """Return a column from which nothing can be learned, and why."""
    return _Column(name, kind, f"dropped: {reason}", n_missing, notes=list(notes), dropped=True)


class _Request(NamedTuple):
    """What the user said about a column."""

    text: bool  # whether it is to be read word by word
    number: bool  # whether the number in each cell is to be read
    prefer: str  # the decimal sign, in case of doubt
    seed: int
    folder: str  # of pictures
    case_sensitive: bool  # whether categories that differ in capitals or blanks only are different
    keep: tuple[object, ...]  # numbers that look like marks of missing cells, and are none


def vectorize(  # noqa: PLR0913
    frame: pd.DataFrame,
    target: ColumnName | None = None,
    *,
    ignore: Collection[ColumnName] = (),
    text: Collection[ColumnName] = (),
    number: Collection[ColumnName] = (),
    id: ColumnName = None,
    prefer: str = "point",
    random_state: int = 0,
    folder: str | Path = ".",
    case_sensitive: bool = False,
    keep: Collection[object] = (),
    left_out: Mapping[ColumnName, str] | None = None,
) -> Features:
    """Turn all columns except the target into features, without a look at any label.

    docs/report.md says how.
    """
    # All rows are treated in the same way, which exact guarantees need. Each column of numbers has
    # standard deviation 1, and the features of a category, date, vector or picture have it
    # together, so that a column does not count the more the more features it becomes; methods that
    # would standardise every feature again undo this.
    unread = dict.fromkeys(ignore, ("ignored", "left out on request"))
    unread |= {name: ("left out", reason) for name, reason in (left_out or {}).items()}
    if id is not None:
        unread[id] = ("identifier", "names the rows")
    if target is not None:
        unread[target] = ("target", "filled")
    read = [name for name in frame.columns if name not in unread]
    order = content_order(frame[read])
    frame = frame.iloc[order]
    columns = []
    with stage("columns") as report:
        for n_done, name in enumerate(frame.columns):
            if name in unread:
                kind, treatment = unread[name]
                column = _Column(name, kind, treatment, int(frame[name].isna().sum()))
            else:
                request = _Request(
                    name in text,
                    name in number,
                    prefer,
                    random_state,
                    str(folder),
                    case_sensitive,
                    tuple(keep),
                )
                column = _profile(frame[name], name, request, order)
            columns.append(column)
            report(n_done / frame.shape[1])
    return _make_features(columns, order)


def _make_features(columns: list[_Column], order: AnyArray) -> Features:
    """Return the features of all columns, whose rows are in an order, on one scale."""
    # What a column is called, and where it stands, moves no prediction: methods that draw features
    # at random, or add them up, are given them in an order of their numbers.
    scaled = [
        (scale, column.parts[scale.feature])
        for column in sorted(columns, key=_digest)
        for scale in _scales(column)
    ]
    is_large = len(order) * len(scaled) >= LARGE
    kind = np.float32 if is_large else float
    matrix = np.empty((len(order), len(scaled)), dtype=kind)
    for j, (scale, values) in enumerate(scaled):
        matrix[order, j] = scale.apply(values)
    scales = [scale for scale, _ in scaled]
    readings = {column.name: column.reading for column in columns if column.reading is not None}
    return Features(
        matrix,
        names=[scale.feature for scale in scales],
        origins=[scale.column for scale in scales],
        columns=_account_for(columns, Counter(scale.column for scale in scales)),
        notes=_note_columns((column.name, column.notes) for column in columns),
        encoder=Encoder(readings, scales),
        dropped={column.name: column.kind for column in columns if column.dropped},
    )


def _digest(column: _Column) -> bytes:
    """Return bytes that depend on the features of a column alone, in the order of their rows."""
    digest = hashlib.blake2b()
    for values in column.parts.values():
        digest.update(np.asarray(values).tobytes())
    return digest.digest()


def _account_for(columns: list[_Column], n_features: Mapping[ColumnName, int]) -> pd.DataFrame:
    """Return what was done to each column, one line each."""
    lines = []
    for column in columns:
        treatment = column.treatment
        if column.n_missing and f"{column.name} is missing" in column.parts:
            treatment += ", median where missing"
        lines.append(
            {
                "name": column.name,
                "kind": column.kind,
                "treatment": treatment,
                "n_missing": column.n_missing,
                "n_features": n_features.get(column.name, 0),
            }
        )
    return pd.DataFrame(lines, columns=["name", "kind", "treatment", "n_missing", "n_features"])


def _scales(column: _Column) -> list[Scale]:
    """Return how the features of a column are scaled."""
    reading = column.reading
    if isinstance(reading, vectors.VectorReading):
        return _vector_scales(column, reading)
    kind = column.kind
    if kind == "category":
        kind = "levels" if isinstance(reading, LevelsReading) else "letters"
    return scale_features(column.name, column.parts, kind)


def _vector_scales(column: _Column, reading: vectors.VectorReading) -> list[Scale]:
    """Return how the numbers of vectors are scaled, group by group."""
    parts = column.parts
    *features, flag = parts  # whether it is missing is a feature besides
    kind = "date"
    if reading.unit or reading.projection is not None or reading.folder is not None:
        kind = "letters"  # by one factor
    scales: list[Scale] = []
    start = 0
    total = 0.0
    for size, weight in reading.groups or ((len(features), 1.0),):
        group = {feature: parts[feature] for feature in features[start : start + size]}
        of_group = scale_features(column.name, group, kind)
        scales += [scale._replace(spread=scale.spread / weight) for scale in of_group]
        start += size
        if of_group:
            total += weight**2
    scales = [scale._replace(spread=scale.spread * total**0.5) for scale in scales]
    return [*scales, *scale_features(column.name, {flag: parts[flag]}, "number")]


def _note_columns(of_columns: Iterable[tuple[ColumnName, list[str]]]) -> list[Note]:
    """Return the notes on cells; of very many columns the first, and how many more there are."""
    noted = [(name, texts) for name, texts in of_columns if texts]
    notes = list[Note]()
    for name, texts in noted[:MOST_NOTED]:
        notes += notes_about(About.COLUMNS, texts, name)
    if len(noted) > MOST_NOTED:
        n_more = len(noted) - MOST_NOTED
        text = f"Cells of {n_more:,} more columns were read in these ways."
        notes.append(Note(About.COLUMNS, text))
    return notes


def _profile(
    series: pd.Series,
    name: ColumnName,
    request: _Request,
    rows: AnyArray,
) -> _Column:
    """Return what a column is; numbers are turned into features at once.

    `rows` says where in the table cells stand.
    """
    n_missing = int(series.isna().sum())
    if getattr(series.dtype, "kind", "") in "cO" and is_complex(series):
        note = (
            f"{quoted(name)} was left out: complex numbers are not read; "
            "give their parts as columns of their own."
        )
        return _dropped_column(name, "complex numbers", "not data", n_missing, notes=[note])
    if is_number(series) and taken_as_equal(large_integers(series)) is None:
        moments = Moments.of(series)
        if moments is not None and moments.cells == "number":  # dates such as 20240131
            reading = partial(_dates_of, moments)
            return _date(name, reading(series.reset_index(drop=True)), reading)
        treatment = "in seconds"
        if pd.api.types.is_numeric_dtype(series.dtype):
            treatment = "as it is"
        return _number(name, as_floats(series), treatment, rows, keep=request.keep)
    series = series.reset_index(drop=True)
    if pd.api.types.is_datetime64_any_dtype(series):
        return _constant(name, series.nunique(), n_missing) or _date(name, series)
    if not request.text:
        lists = vectors.read_vectors(series)
        if lists is not None:
            return _vector(name, lists, request.seed)
        if pictures.holds_pictures(series):
            return _picture(name, series, request.folder, rows)
    return _profile_cells(series, name, request, rows)


def _profile_cells(
    series: pd.Series, name: ColumnName, request: _Request, rows: AnyArray
) -> _Column:
    """Return what a column is whose cells are read as text."""
    texts = as_texts(series)
    present_rows = np.flatnonzero(series.notna())[: vectors.LOOKED_AT]
    first = (series.iat[row] for row in present_rows)
    # A cell that is no plain value, such as a record.
    odd = next((cell for cell in first if not pd.api.types.is_scalar(cell)), None)
    if odd is not None and " at 0x" in str(odd):
        n_missing = int(series.isna().sum())
        note = f"{name!r} was left out: objects of the type {type(odd).__name__} are not read."
        return _dropped_column(name, "objects", "not data", n_missing, notes=[note])
    dropped = _constant(name, texts.nunique(), int(texts.isna().sum()))
    column = dropped or _profile_text(name, texts, request, rows)
    if odd is not None and not column.dropped:
        column.notes = [
            f"{name!r}: cells such as {shortened(str(odd))} ({type(odd).__name__}) are neither "
            "numbers nor vectors: read as text."
        ]
    return column


def _constant(name: ColumnName, distinct: int, n_missing: int) -> _Column | None:
    """Return a column to be dropped if it has the same value in every row."""
    if distinct == 0:
        return _dropped_column(name, "empty", "no value", n_missing)
    if distinct == 1 and n_missing == 0:
        return _dropped_column(name, "constant", "one value", n_missing)
    return None


def _profile_text(
    name: ColumnName,
    texts: pd.Series,
    request: _Request,
    rows: AnyArray,
) -> _Column:
    """Return what a column of texts is: numbers, dates, words or categories."""
    if request.text:
        return _text(name, texts, request.seed)
    if request.number:
        parsed = numbers.read_numbers(texts.to_numpy(), request.prefer, anywhere=True)
        return _number_in_text(name, texts, parsed, rows, keep=request.keep, anywhere=True)
    present = texts.dropna()
    mostly_digits = present.str.contains(r"\d").mean() >= numbers.NEARLY
    moments = Moments.of(texts, dates=mostly_digits)
    if moments is not None and moments.dates:
        dates = moments.read(texts)
        if dates.notna().sum() == len(present):
            notes = [about_formats(name, present, dates)] if moments.others else []
            return _date(name, dates, moments.read, notes)
    elif moments is not None:
        values = moments.numbers(texts)
        unread = np.flatnonzero(np.isnan(values) & texts.notna()).tolist()
        parsed = numbers.ParsedNumbers(values, np.zeros(len(values), dtype=int), unread=unread)
        return _number_in_text(name, texts, parsed, rows, keep=request.keep, moments=moments)
    odd_cells = present[present.str.contains(r"\d")]
    many_numbers = False
    if len(odd_cells) and not numbers.holds_code(present):
        parsed = numbers.read_numbers(texts.to_numpy(), request.prefer)
        odd_cells = texts.iloc[parsed.unread]
        if parsed.nearly_all:
            return _number_in_text(name, texts, parsed, rows, keep=request.keep)
        many_numbers = parsed.mostly
    dates, reader = _dates(present, texts)
    is_whole = dates is not None and dates.notna().sum() == len(present)
    if moments is not None and not is_whole:
        dates = moments.read(texts)
        notes = _not_dates(name, texts, dates, rows)
        if moments.others:
            notes = [about_formats(name, present, dates), *notes]
        return _date(name, dates, moments.read, notes)
    if dates is not None:
        return _date(name, dates, reader.transform, _not_dates(name, texts, dates, rows))
    return _words_or_category(name, texts, odd_cells, request, many_numbers)


def _words_or_category(
    name: ColumnName,
    texts: pd.Series,
    odd_cells: pd.Series,
    request: _Request,
    many_numbers: bool,
) -> _Column:
    """Return a column of texts that are neither numbers nor dates.

    `odd_cells` hold digits, or are those that are not among `many_numbers`.
    """
    n_words = texts.dropna().str.split().str.len().mean()
    alike: dict[str, str] = {}
    notes: list[str] = []
    if not request.case_sensitive:
        counts = texts.dropna().value_counts().sort_index(kind="stable").to_dict()
        alike = numbers.usual_spellings(counts)
        notes = numbers.spelling_note(name, "Categories", counts)
        notes += note_on_spellings(name, counts)
    texts = _in_usual_spelling(texts, alike)
    present = texts.dropna()
    distinct = present.nunique()
    if n_words >= FEWEST_WORDS and distinct > max(MOST_LEVELS, len(present) / 4):
        return _text(name, texts, request.seed)
    mixed = ""
    few_units = False
    if distinct > MOST_LEVELS or many_numbers:
        mixed, few_units = _mixed(name, present, odd_cells, many_numbers)
    ask = f"{option('number', name)} reads the number in each."
    if few_units:
        ask = f"write them in one unit, since {ask.removesuffix('.')} as it is."
    if distinct == len(present) and distinct > 10:
        column = _dropped_column(name, "identifier", _OWN, len(texts) - len(present))
        if few_units:
            column.notes.append(f"{mixed}; {ask}")
        return column
    if mixed:
        notes = [*notes, f"{mixed}, and all were read by their letters; {ask}"]
    return _category(name, texts, notes, alike)


def _mixed(
    name: ColumnName, present: pd.Series, odd_cells: pd.Series, many_numbers: bool
) -> tuple[str, bool]:
    """Return that cells are not numbers of one kind, if most hold digits, such as ranges.

    Beside it is whether they are of a few units.
    """
    hold_digits = many_numbers or present.str.contains(r"\d").mean() >= numbers.NEARLY
    if not len(odd_cells) or not hold_digits:
        return "", False
    units = numbers.several_units(present)
    listed = ""
    if units:
        listed = f" (units: {', '.join(units)})"
    note = (
        f"{name!r}: {len(odd_cells):,} of {len(present):,} cells, such as "
        f"{quoted(odd_cells.iloc[0])}, are not numbers of one kind{listed}"
    )
    return note, bool(units)


def _in_usual_spelling(texts: pd.Series, alike: Mapping[str, str]) -> pd.Series:
    """Return texts in one spelling, the most frequent where capitals or blanks differ."""
    if not alike:
        return texts
    codes, levels = pd.factorize(texts)
    spelled = [alike.get(numbers.spelling_key(level), level) for level in levels]
    usual = np.array([*spelled, None], dtype=object)  # the last one is missing
    return pd.Series(usual[codes], index=texts.index, name=texts.name, dtype=object)


def _number_in_text(
    name: ColumnName,
    texts: pd.Series,
    parsed: numbers.ParsedNumbers,
    rows: AnyArray,
    *,
    keep: Collection[object] = (),
    **how: Any,
) -> _Column:
    """Return a column of numbers, times or durations in text.

    Features mark limits, and notes tell of unusual cells.
    """
    moments: Moments | None = how.get("moments")
    if moments is not None:
        treatment = f"{moments.what}, in {moments.unit}"
    elif parsed.unit:
        treatment = f"text read as numbers in {parsed.unit}"
    else:
        treatment = "text read as numbers"
    n_noted = len(parsed.unread) + len(parsed.mended) + int(np.count_nonzero(parsed.side))
    if n_noted:
        treatment += f", {n_noted:,} of them read as noted"
    how |= {"decimal": parsed.decimal, "unit": parsed.unit, "minus_behind": parsed.minus_behind}
    column = _number(name, parsed.values, treatment, rows, parsed.side, keep=keep, **how)
    notes = numbers.cell_notes(name, texts.to_numpy(), parsed, rows)
    if parsed.unit or parsed.mended:
        differ = numbers.unlike_sizes(texts.to_numpy(), parsed.values)
        if differ:
            notes.append(f"{name!r} holds {differ}: write all of them in one unit.")
    if how.get("anywhere"):
        notes += numbers.notes_on_units(name, texts)
    column.notes = [*notes, *column.notes]
    return column


def _dates(present: pd.Series, texts: pd.Series) -> tuple[pd.Series | None, Any]:
    """Return texts as dates, and what reads them, if skrub reads nearly all as such.

    The rest is missing.
    """
    if present.str.contains(r"\d").mean() < numbers.NEARLY:
        return None, None
    if present.str.fullmatch(r"\d{4}\D\d{1,2}").all():  # months, which Moments knows, or codes
        return None, None
    with warnings.catch_warnings(action="ignore"):
        if _odd_dates(present.drop_duplicates().head(SHOWING)).all():
            return None, None
        from skrub import ToDatetime

        for candidates in _without_odd_dates(present, texts):
            reader = ToDatetime()
            with contextlib.suppress(ValueError):  # it rejects the column
                dates = pd.Series(reader.fit_transform(candidates.rename("date").astype("string")))
                if dates.notna().equals(candidates.notna()):
                    return dates, reader
    return None, None


def _dates_of(moments: Moments, column: pd.Series) -> pd.Series:
    """Return numbers such as 20240131, or their texts, as dates."""
    return moments.read(pd.to_numeric(column, errors="coerce").astype(float))


def _not_dates(
    name: ColumnName,
    texts: pd.Series,
    dates: pd.Series,
    rows: AnyArray,
) -> list[str]:
    """Return a note on texts (n,) that are not dates."""
    odd = np.flatnonzero(texts.notna().to_numpy() & dates.isna().to_numpy())
    if not len(odd):
        return []
    cells = numbers.named_cells((str(texts.iloc[place]), int(rows[place])) for place in odd)
    return [f"{name!r}: taken as missing, since not a date: {cells}."]


def _without_odd_dates(present: pd.Series, texts: pd.Series) -> Iterator[pd.Series]:
    """Yield texts and, where nearly all are dates, texts without the few that are not."""
    yield texts
    if (
        len(present) > TRIED and _odd_dates(present.iloc[:TRIED]).mean() > 0.5
    ):  # rows lie as their hashes do
        return
    odd = _odd_dates(present)
    if 0.0 < odd.mean() <= 1.0 - numbers.NEARLY:
        yield texts.mask(texts.index.isin(present.index[odd]), None)


def _odd_dates(present: pd.Series) -> pd.Series:
    """Return which texts are not dates, days or months first, whichever reads more."""
    day_first, month_first = (
        pd.to_datetime(present, format="mixed", dayfirst=first, errors="coerce", utc=True).isna()
        for first in (True, False)
    )
    if month_first.sum() < day_first.sum():
        return month_first
    return day_first


def _number(
    name: ColumnName,
    values: Array,
    treatment: str,
    rows: AnyArray,
    side: AnyArray | None = None,
    *,
    keep: Collection[object] = (),
    **how: Any,
) -> _Column:
    """Return a column of numbers, read `how`.

    Further features mark what is missing, below or above its value.
    """
    ordered = numbers.in_order(values)  # once: to sort takes longer than all else
    marks = numbers.sentinels(ordered, keep=keep)
    if marks:
        present = ordered[~without_number(ordered, tuple(marks))]
    else:
        present = ordered
    n_missing = len(values) - len(present)
    n_changes = int(np.count_nonzero(present[1:] != present[:-1]))
    distinct = n_changes + min(len(present), 1)
    dropped = _constant(name, distinct, n_missing)
    if dropped is not None:
        return dropped
    is_identifier = distinct == len(values) > 2 and _ID.fullmatch(str(name))
    if is_identifier and np.all(present == np.round(present)):
        return _dropped_column(name, "identifier", _OWN, n_missing)
    reading = NumberReading(numbers.median(present), tuple(marks), **how)
    odd = marks or numbers.n_far(ordered)
    parts = reading.named(name, values, side)
    notes = numbers.value_notes(name, values, marks, rows) if odd else []
    n_infinite = int(np.isinf(values).sum())
    if n_infinite:
        notes.append(f"{name!r}: {counted(n_infinite, 'infinite number')} taken as missing.")
    return _Column(name, "number", treatment, n_missing, parts, reading, notes)


def _vector(name: ColumnName, cells: vectors.Vectors, seed: int) -> _Column:
    """Return a column of vectors, whose rows are in the order of their contents."""
    n_missing = len(cells.known) - int(cells.known.sum())
    length = cells.length
    if not length:
        note = vectors.left_out_note(name, cells)
        return _dropped_column(name, "lists", "no length prevails", n_missing, notes=[note])
    matrix = cells.matrix(length)
    if length > vectors.MOST_DIRECTIONS:
        sample = matrix[: vectors.PROJECTED_ROWS]
    else:
        sample = matrix
    middle = vectors.middle_of(sample)
    unit = vectors.of_unit_length(matrix)
    projection = None
    sample = vectors.filled(sample, middle)
    varies = bool(np.any(sample.max(axis=0) > sample.min(axis=0)))
    if not varies and not n_missing:
        return _dropped_column(name, "constant", "one value", n_missing)
    treatment = f"vectors of {counted(length, 'number')}"
    if unit:
        treatment += ", compared by cosine"
    if length > vectors.MOST_DIRECTIONS and varies:
        from sklearn.decomposition import PCA

        scales = [_own_scale(name, "", values, "" if unit else "number") for values in sample.T]
        centre = np.array([scale.mean * scale.largest for scale in scales], dtype=np.float32)
        spread = np.array([scale.spread * scale.largest for scale in scales])
        if unit:
            spread[:] = spread.max()
        spread = np.where(spread > 1e-10, spread, np.inf).astype(np.float32)
        directions = PCA(min(vectors.MOST_DIRECTIONS, len(sample)), random_state=seed)
        projection = vectors.Projection(centre, spread, directions.fit((sample - centre) / spread))
        treatment += f", projected onto {directions.n_components_} directions"
    reading = vectors.VectorReading(length, middle, unit, projection)
    notes = vectors.gap_notes(name, cells, matrix)
    return _Column(
        name,
        "vector",
        treatment,
        n_missing,
        reading.named(name, matrix),
        reading,
        notes,
    )


def _picture(
    name: ColumnName,
    series: pd.Series,
    folder: str,
    rows: AnyArray,
) -> _Column:
    """Return a column of pictures."""
    matrix, faults = pictures.read_pictures(series, folder)
    missing = np.isnan(matrix).all(axis=1)
    notes = pictures.picture_notes(name, series, faults, rows, int((~missing).sum()))
    if missing.all():
        return _dropped_column(name, "picture", "none could be read", len(matrix), notes=notes)
    middle = vectors.middle_of(matrix)
    groups = tuple(pictures.GROUPS.values())
    reading = vectors.VectorReading(pictures.LENGTH, middle, False, folder=folder, groups=groups)
    treatment = "pictures, by small copies, gradients, colours and pieces"
    parts = reading.named(name, matrix)
    return _Column(name, "picture", treatment, int(missing.sum()), parts, reading, notes)


def _date(
    name: ColumnName,
    dates: pd.Series,
    read: Any = None,
    notes: Sequence[str] = (),
) -> _Column:
    """Return a column of dates: their parts, and seconds.

    `read` makes dates of the texts of later rows.
    """
    codes, levels = pd.factorize(dates, use_na_sentinel=False)
    local = levels.tz_localize(None)  # in some zones the clock skips midnight
    timed = bool((local.normalize() != local)[local.notna()].any())
    parts_of_dates = {
        part: values[codes]
        for part, values in date_parts(levels).items()
        if part != "hour" or timed
    }
    read = read or partial(pd.to_datetime, errors="coerce", utc=True)
    reading = DateReading(_middles(parts_of_dates), read, levels.tz)
    n_missing = int(dates.isna().sum())
    parts = at_middles(name, parts_of_dates, reading.middles)
    parts[f"{name} is missing"] = dates.isna().to_numpy(dtype=float)
    return _Column(
        name,
        "date",
        "parts of the date, and seconds",
        n_missing,
        parts,
        reading,
        [*notes],
    )


def _category(
    name: ColumnName,
    texts: pd.Series,
    notes: list[str],
    alike: Mapping[str, str],
) -> _Column:
    """Return a column of categories: a feature for each or, if they are many, their letters."""
    levels = texts.dropna().unique()
    n_missing = int(texts.isna().sum())
    reading: LevelsReading | LettersReading
    if len(levels) <= MOST_LEVELS:
        reading = LevelsReading(tuple(sorted(levels)), bool(n_missing), alike)
        how = "one feature each"
        codes, features = reading.parts(name, texts)
        parts = {feature: values[codes] for feature, values in features.items()}
    else:
        from skrub import StringEncoder  # takes longer than all other imports together

        encoder = StringEncoder(n_components=LETTER_FEATURES, random_state=0)
        features = _letters(encoder.fit_transform, texts)
        reading = LettersReading(_middles(features), encoder, alike)
        how = "by their letters"
        parts = at_middles(name, features, reading.middles)
    return _Column(
        name, "category", f"{len(levels)} categories, {how}", n_missing, parts, reading, notes
    )


def _middles(parts: dict[str, Array]) -> dict[str, float]:
    """Return the median of each feature (n,) where it is known, 0 where it never is."""
    middles = dict.fromkeys(parts, 0.0)
    for part, values in parts.items():
        known = values[np.isfinite(values)]
        if len(known):
            middles[part] = float(np.median(known))
    return middles


def _letters(encode: Any, texts: pd.Series) -> dict[str, Array]:
    """Return the features (n,) that a method of skrub's encoder makes of texts.

    They are looked up by the numbers of the texts.
    """
    with warnings.catch_warnings(action="ignore"):
        # A sign before each, so that 01234 is not taken for a number.
        encoded = encode(("=" + texts).astype("string").rename("c"))
    return {
        str(feature).removeprefix("c_"): encoded[feature].to_numpy(float, na_value=np.nan)
        for feature in encoded.columns
    }


def _text(name: ColumnName, texts: pd.Series, seed: int) -> _Column:
    """Return a column of texts: TF-IDF weights of their words, reduced to a few features."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(sublinear_tf=True, max_features=MOST_WORDS)
    n_missing = int(texts.isna().sum())
    try:
        weights = words.fit_transform(texts.fillna(""))
    except ValueError:  # no words at all
        return _dropped_column(name, "constant", "no words", n_missing)
    n_words = weights.shape[1]
    n_features = min(TEXT_FEATURES, len(texts) - 1)
    reading = WordsReading(words)
    treatment = f"TF-IDF of {n_words:,} words"
    if n_features and n_words > TEXT_FEATURES:
        reduction, weights = reduce_words(weights, n_features, seed)
        reading = WordsReading(words, reduction)
        treatment += f", reduced to {n_features} features"
    return _Column(name, "text", treatment, n_missing, reading.named(name, weights), reading)


def reduce_words(weights: Any, n_directions: int, random_state: int) -> tuple[Any, Array]:
    """Return the directions along which texts (n, p) differ most, and all texts in them.

    If texts are many, the directions are fitted to some.
    """
    from sklearn.decomposition import TruncatedSVD

    n = weights.shape[0]
    reduction = TruncatedSVD(n_directions, random_state=random_state)
    if n <= FITTED_TEXTS:
        return reduction, reduction.fit_transform(weights)
    sample = np.sort(np.random.default_rng(random_state).choice(n, FITTED_TEXTS, replace=False))
    return reduction, reduction.fit(weights[sample]).transform(weights)


def as_texts(series: pd.Series) -> pd.Series:
    """Return cells as text, or missing.

    Capital and small letters are the same in true and false.
    """
    codes, levels = numbers.text_levels(series)
    return pd.Series(levels[codes], index=series.index, name=series.name, dtype=object)


def is_number(series: pd.Series) -> bool:
    """Return whether a column holds numbers, or lengths of time, as such."""
    types = pd.api.types
    dtype = series.dtype
    real = dtype.kind in "biuf" or (
        types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype)
    )
    return real or types.infer_dtype(series, skipna=True).startswith("timedelta")


def as_floats(series: pd.Series) -> Array:
    """Return numbers as floats, lengths of time in seconds."""
    if not pd.api.types.is_numeric_dtype(series.dtype):
        series = pd.to_timedelta(series).dt.total_seconds()
    return np.asarray(series.to_numpy(dtype=float, na_value=np.nan))


def without_number(values: Array, marks: tuple[float, ...]) -> AnyArray:
    """Return which cells (n,) hold no number: not finite, or a mark of missing ones."""
    not_finite = ~np.isfinite(values)
    if not marks:
        return not_finite
    return not_finite | np.isin(values, marks)


@dataclass(frozen=True)
class NumberReading:
    """How a column of numbers is read."""

    middle: float  # takes the place of what is missing
    marks: tuple[float, ...] = ()  # values that stand for a missing cell
    decimal: str = "point"  # decimal sign of numbers in text
    unit: str = ""  # what is written beside them
    anywhere: bool = False  # whether the one number among any words counts
    moments: Moments | None = None  # how times and durations in text are read
    minus_behind: bool = True  # whether "5-" is a negative number

    def parts(self, name: ColumnName, series: pd.Series) -> tuple[slice, dict[str, Array]]:
        """Return that each cell is looked at, the numbers, and what is missing or a limit.

        A limit lies below or above the value.
        """
        return EACH, self.named(name, *self._numbers(series))

    def values(self, series: pd.Series) -> Array:
        """Return the number in each cell; NaN where there is none, or a mark of an empty cell."""
        values, _ = self._numbers(series)
        return np.where(np.isin(values, self.marks), np.nan, values)

    def _numbers(self, series: pd.Series) -> tuple[Array, AnyArray | None]:
        """Return the numbers in cells, and on which side of each the truth is, if that is said."""
        if is_number(series):
            return as_floats(series), None
        if self.moments is not None:
            return self.moments.numbers(as_texts(series)), None
        return numbers.read_cells(
            series,
            self.decimal,
            self.unit,
            self.anywhere,
            minus_behind=self.minus_behind,
        )

    def notes(
        self,
        name: ColumnName,
        series: pd.Series,
        rows: AnyArray,
    ) -> list[str]:
        """Return notes on limits, and on cells that are not numbers, of rows that came later."""
        if is_number(series):
            return []
        texts = as_texts(series).to_numpy()
        values, side = self._numbers(series)
        unread = np.flatnonzero(np.isnan(values) & pd.notna(texts)).tolist()
        parsed = numbers.ParsedNumbers(values, np.zeros(0) if side is None else side, unread=unread)
        return numbers.cell_notes(name, texts, parsed, rows)

    def named(
        self, name: ColumnName, values: Array, side: AnyArray | None = None
    ) -> dict[str, Array]:
        """Return the same features of numbers that are read already.

        Shapes: values (n,), side (n,).
        """
        missing = without_number(values, self.marks)
        nowhere = np.zeros(len(values))
        some = bool(missing.any())
        return {
            str(name): np.where(missing, self.middle, values) if some else values,
            f"{name} is missing": missing.astype(float) if some else nowhere,
            f"{name} is below its value": nowhere if side is None else (side < 0).astype(float),
            f"{name} is above its value": nowhere if side is None else (side > 0).astype(float),
        }


@dataclass(frozen=True)
class LevelsReading:
    """How a column of a few categories is read: a feature for each.

    Of two categories there is one for the second only.
    """

    levels: tuple[str, ...]
    missing: bool  # whether being missing is a category too
    # Categories by what their spellings share.
    alike: Mapping[str, str] = field(default_factory=dict)

    def parts(self, name: ColumnName, series: pd.Series) -> tuple[AnyArray, dict[str, Array]]:
        """Return the number of each cell's text, and a feature for each category at every text."""
        codes, texts = numbers.text_levels(series)
        usual = _in_usual_spelling(pd.Series(texts, dtype=object), self.alike).to_numpy()
        # -1 of what is not among them.
        own = pd.Index(self.levels, dtype=object).get_indexer_for(usual)
        parts = {
            f"{name}: {level}": (own == j).astype(float) for j, level in enumerate(self.levels)
        }
        if self.missing:
            parts[f"{name}: missing"] = pd.isna(texts).astype(float)
        if len(parts) == 2:
            parts = dict(list(parts.items())[1:])
        return codes, parts

    def notes(
        self,
        name: ColumnName,
        series: pd.Series,
        rows: AnyArray,
    ) -> list[str]:
        """Return a note on categories of later rows that are not among these."""
        texts = _in_usual_spelling(as_texts(series), self.alike)
        new = np.flatnonzero(texts.notna() & ~texts.isin(self.levels))
        what = counted(len(new), "cell holds a category", "cells hold categories")
        cells = numbers.named_cells((texts.iloc[place], int(rows[place])) for place in new)
        return [f"{name!r}: {what} that the fit did not see: {cells}."] if len(new) else []


@dataclass(frozen=True, eq=False)
class WordsReading:
    """How a column of texts is read word by word.

    TF-IDF weights, and their reduction, if there is one.
    """

    weights: Any
    reduction: Any = None

    def parts(self, name: ColumnName, series: pd.Series) -> tuple[slice, dict[str, Array]]:
        """Return that each text is looked at, and the weights of its words.

        These may be reduced to directions.
        """
        weights = self.weights.transform(as_texts(series).fillna(""))
        return EACH, self.named(
            name, weights if self.reduction is None else self.reduction.transform(weights)
        )

    def named(self, name: ColumnName, found: Any) -> dict[str, Array]:
        """Return sparse weights of words, or directions, as features. Shapes: found (n, k)."""
        word = "direction"
        matrix = found
        if self.reduction is None:
            word = "word"
            matrix = found.toarray()
        return {f"{name}: {word} {j + 1}": values for j, values in enumerate(matrix.T)}


def date_parts(dates: Any) -> dict[str, Array]:
    """Return parts of an index of dates (m,), and seconds since 1970."""
    epoch = datetime.datetime(1970, 1, 1, tzinfo=None if dates.tz is None else datetime.UTC)
    parts = {part: getattr(dates, part) for part in ("year", "month", "day", "hour")}
    parts["total_seconds"] = (dates - epoch) / pd.Timedelta("1s")
    return {part: np.asarray(values, dtype=float) for part, values in parts.items()}


def at_middles(
    name: ColumnName, parts: dict[str, Array], middles: dict[str, float]
) -> dict[str, Array]:
    """Return features (n,) by their names, with the middle of each where it is not known."""
    known = {part: np.isfinite(parts[part]) for part in middles}
    return {
        f"{name}: {part}": np.where(known[part], parts[part], middle)
        for part, middle in middles.items()
    }


@dataclass(frozen=True, eq=False)
class DateReading:
    """How a column of dates is read: each date is looked at once, however often it occurs."""

    middles: dict[str, float]  # of each part, what takes its place where a date is missing
    read: Any  # makes dates of texts
    zone: Any

    def parts(self, name: ColumnName, series: pd.Series) -> tuple[AnyArray, dict[str, Array]]:
        """Return the number of each cell's date, and the features of every date."""
        in_utc = pd.to_datetime(self._dates(series), utc=True)
        dates = in_utc.dt.tz_convert(self.zone)
        codes, levels = pd.factorize(dates, use_na_sentinel=False)
        parts = at_middles(name, date_parts(levels), self.middles)
        return codes, parts | {f"{name} is missing": pd.isna(levels).astype(float)}

    def seconds(self, series: pd.Series) -> Array:
        """Return the date in each cell as seconds since 1970; NaN where there is none."""
        dates = pd.to_datetime(self._dates(series), utc=True).dt.tz_convert(None)
        seconds = (dates - pd.Timestamp(0)) / pd.Timedelta("1s")
        return seconds.to_numpy(dtype=float, na_value=np.nan)

    def _dates(self, series: pd.Series) -> pd.Series:
        if pd.api.types.is_datetime64_any_dtype(series):
            return series
        texts = as_texts(series).rename("date").astype("string").reset_index(drop=True)
        with warnings.catch_warnings(action="ignore"):
            return pd.Series(self.read(texts))

    def notes(
        self,
        name: ColumnName,
        series: pd.Series,
        rows: AnyArray,
    ) -> list[str]:
        """Return a note on cells of later rows that are not dates."""
        return _not_dates(name, as_texts(series), self._dates(series), rows)


@dataclass(frozen=True, eq=False)
class LettersReading:
    """How a column of many categories is read: by their letters, each category once."""

    middles: dict[str, float]  # of each feature, what takes its place where it is not known
    letters: Any  # a fitted encoder of skrub
    # Categories by what their spellings share.
    alike: Mapping[str, str] = field(default_factory=dict)

    def parts(self, name: ColumnName, series: pd.Series) -> tuple[AnyArray, dict[str, Array]]:
        """Return the number of each cell's category, and the features of every category."""
        texts = _in_usual_spelling(as_texts(series), self.alike)
        codes, levels = pd.factorize(texts, use_na_sentinel=False)
        found = _letters(self.letters.transform, pd.Series(levels, dtype=object))
        return codes, at_middles(name, found, self.middles)


class Scale(NamedTuple):
    """A feature, its column, and how it is scaled.

    It is divided by the largest, less the mean, over the spread.
    """

    column: ColumnName
    feature: str
    largest: float
    mean: float
    spread: float

    def apply(self, values: Array) -> Array:
        """Return a feature as methods see it; what is absurdly far is cut off."""
        with np.errstate(over="ignore"):
            values = np.divide(values, self.largest, dtype=float) - self.mean
            return np.clip(values / self.spread, -FARTHEST, FARTHEST)


def scale_features(column: ColumnName, parts: dict[str, Array], kind: str) -> list[Scale]:
    """Return how each feature (n,) of a column gets mean 0 and its share of the spread.

    Constant ones are left out.
    """
    varied = {name: values for name, values in parts.items() if np.any(values != values[:1])}
    scales = [_own_scale(column, name, values, kind) for name, values in varied.items()]
    scales = [scale for scale in scales if scale.spread > 1e-10]
    if kind in ("levels", "letters"):
        total = sum((scale.spread * scale.largest) ** 2 for scale in scales) ** 0.5
        if kind == "levels":
            total = max(total, LEAST_SPREAD)
        return [scale._replace(spread=total / scale.largest) for scale in scales]
    if kind == "date":
        share = len(scales) ** 0.5
        return [scale._replace(spread=scale.spread * share) for scale in scales]
    return scales


def _own_scale(column: ColumnName, name: str, values: Array, kind: str) -> Scale:
    """Return mean and standard deviation of a feature.

    Of numbers and dates it is a spread that rare cells do not set.
    """
    values, least = np.asarray(values, dtype=float), 0.0
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    scaled = values / largest  # so that no square is too large
    if kind in ("number", "date"):
        apart = scaled - numbers.median(scaled)
        near = _near(np.abs(apart))
        if not near.all():
            largest = float(np.abs(values[near]).max(initial=0.0)) or 1.0
            scaled = values[near] / largest
            apart = scaled - numbers.median(scaled)
        apart = apart[apart != 0.0]
        least = 0.0
        if len(apart):
            least = LEAST_SPREAD * float(np.sqrt(np.mean(apart**2)))
    spread = max(float(scaled.std()), least)
    return Scale(column, name, largest, float(scaled.mean()), spread)


def _near(distance: Array) -> AnyArray:
    """Return which distances (n,) are not absurdly far beyond all others.

    It takes enough of them to tell.
    """
    apart = distance[distance > 0.0]
    if len(distance) < FEWEST_TO_TELL or not len(apart):
        return np.ones(len(distance), dtype=bool)
    place = int((len(apart) - 1) * (1.0 - MOST_FAR))
    return distance <= FAR * np.partition(apart, place)[place]


@dataclass(frozen=True, eq=False)
class Encoder:
    """Turns the columns of any row into the features that a table's rows were turned into."""

    # Of each column that is looked at.
    readings: dict[ColumnName, Any] = field(default_factory=dict)
    scales: list[Scale] = field(default_factory=list)  # the features, in order

    @property
    def columns(self) -> list[ColumnName]:
        """The columns that are looked at, as they stand in the table."""
        have_features = {scale.column for scale in self.scales}
        return [name for name in self.readings if name in have_features]

    def below(self, folder: str | Path) -> Encoder:
        """Return the same encoder for a table in another folder, below which its pictures are."""
        seen = {
            name: reading
            for name, reading in self.readings.items()
            if getattr(reading, "folder", None) is not None
        }
        moved = {name: replace(reading, folder=str(folder)) for name, reading in seen.items()}
        return replace(self, readings=self.readings | moved)

    def _check(self, frame: pd.DataFrame) -> None:
        if lacking := [name for name in self.columns if name not in frame.columns]:
            raise ValueError(
                f"The table has no column {lacking[0]!r}, which the model was fitted with. "
                f"{hint_at_columns(frame, lacking[0])}"
            )

    def notes(self, frame: pd.DataFrame, rows: AnyArray) -> list[Note]:
        """Return notes on cells of later rows (n,): unreadable, limits, new categories."""
        self._check(frame)
        if len(rows) == 0:
            return []
        noted = []
        for name in self.columns:
            write_notes = getattr(self.readings[name], "notes", None)
            if write_notes is not None:
                noted.append((name, write_notes(name, frame[name], rows)))
        return _note_columns(noted)

    def transform(self, frame: pd.DataFrame) -> Array:
        """Return the features of rows. Returns shape (n, d)."""
        self._check(frame)
        columns = np.empty((len(self.scales), len(frame)))
        if not len(frame):
            return columns.T
        features = {name: self.readings[name].parts(name, frame[name]) for name in self.columns}
        for j, scale in enumerate(self.scales):
            codes, parts = features[scale.column]
            columns[j] = scale.apply(parts[scale.feature])[codes]
        return columns.T
