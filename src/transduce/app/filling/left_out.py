"""Columns from which nothing is learned: they differ by how rows got their label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from transduce.app.filling.design_columns import bind_design
from transduce.app.filling.options import Options
from transduce.app.filling.sources import FrameSource
from transduce.app.tables import numbers
from transduce.app.tables.features import as_floats, as_texts, is_number, without_number
from transduce.app.tables.moments import Moments
from transduce.app.tables.new_columns import STATUSES, own_columns
from transduce.app.tables.notes import About, Note
from transduce.app.tables.row_hashes import cell_hashes
from transduce.conformal.designs import BoundDesign
from transduce.core.types import Array, ColumnName, Mask
from transduce.core.words import counted, option
from transduce.population.draws import read_marks

# A column is known only, or nearly only, where the label is, or where it is not: so unevenly that
# chance does it once in a million tables at most, or, of very many columns, does it to any of them
# once in a thousand. Then which columns are left out says next to nothing of which rows chance
# labelled, and guarantees stay as they are.
UNLIKELY = 1e-6
UNLIKELY_OF_ANY = 1e-3
MOST_KNOWN = 0.1  # of the one kind of rows have a value in such a column
TIMES_MORE = 5.0  # as large a share of the other kind has one
FEWEST_EQUAL = 5  # different values that a copy of a column shares with it
# A measured column, most of whose numbers differ, may hold one and the same number wherever there
# is no label: not because it was measured there, but because an empty cell was written as 0 or -1,
# or filled with the mean or the median of the others.
FILLERS = (0.0, -1.0)
FEWEST_MEASURED = 10  # different numbers of such a column at labelled rows
MOSTLY_DIFFERENT = 0.5  # of its numbers there


@dataclass(frozen=True)
class LeftOut:
    """A column that is left out, and why."""

    name: ColumnName
    treatment: str  # why, in a few words
    note: str  # why, in a sentence that names the option which says so


def notes_on(left_out: list[LeftOut]) -> list[Note]:
    """Return the notes on columns that are left out; one may be about several."""
    columns: dict[str, list[ColumnName]] = {}
    for column in left_out:
        columns.setdefault(column.note, []).append(column.name)
    return [Note(About.COLUMNS, text, tuple(names)) for text, names in columns.items()]


def columns_left_out(source: FrameSource, options: Options) -> list[LeftOut]:
    """Return the columns from which nothing is learned although nobody said so.

    They are in the order of the table.
    """
    target = source.labels.name
    settled = {target, options.id, *options.ignore, *options.design.not_features}
    frame = options.clean(source.frame)
    others = [name for name in frame.columns if name not in settled]
    drawn_before = _drawn_before(frame, may_be_used=_may_use_draw(source, options))
    reasons = {column.name: column for column in [*_filled_before(frame), *drawn_before]}
    reasons |= {name: _computed(name, target) for name in source.computed}
    rest = [name for name in others if name not in reasons]
    with_label = _known_with_label(frame[rest], source, options)
    rest = [name for name in rest if name not in {column.name for column in with_label}]
    with_label += _filled_elsewhere(frame[rest], source, options)
    rest = [name for name in rest if name not in {column.name for column in with_label}]
    completed = _completed(frame[rest], [frame[column.name] for column in with_label])
    reasons |= {column.name: column for column in [*with_label, *completed]}
    return [reasons[name] for name in others if name in reasons]


def columns_left_out_of_labelling(
    frame: pd.DataFrame, target: ColumnName, ignore: Sequence[Any] = ()
) -> list[LeftOut]:
    """Return the same of a table that is being labelled, whose target may not be there yet."""
    if target in frame.columns:
        options = Options(ignore=list(ignore))
        try:
            return columns_left_out(FrameSource.read(frame, target, options), options)
        except ValueError:
            pass  # too few labels to learn from, which is why rows are being labelled
    own_columns_of_frame = [*_filled_before(frame), *_drawn_before(frame)]
    return [column for column in own_columns_of_frame if column.name not in ignore]


# ---- columns of our own


def _filled_before(frame: pd.DataFrame) -> list[LeftOut]:
    """Return columns that `fill` or the labelling page has added for another column.

    That column may have another name now.
    """
    families = own_columns(list(frame.columns))
    left_out = []
    for base, names in families.items():
        status = frame.get(f"{base}_status")
        if status is not None and not set(status.dropna().astype(str)) <= STATUSES:
            continue  # a column of the user's, of that name
        left_out += [_filled(name, base, names) for name in names]
    known = {column.name for column in left_out}
    for name in frame.columns:
        base = str(name).removesuffix("_filled")
        if name not in known and base != str(name) and base in frame.columns:
            left_out += _completed(frame[[name]], [frame[base]])
    return left_out


def _filled(name: ColumnName, base: str, names: list[Any]) -> LeftOut:
    """Return why a column of our own is left out; all of them have one note."""
    all_names = ", ".join(map(repr, names))
    note = (
        f"Columns that come from filling {base!r} before were left out: {all_names}. They hold "
        "given values in some rows and predictions in others, and what is learned from them holds "
        "for neither. To fill several columns, name them all as targets of one fill. "
        f"{option('ignore', names)} leaves them out without this note."
    )
    return LeftOut(name, f"comes from filling {base!r} before", note)


def _completed(frame: pd.DataFrame, columns: list[pd.Series]) -> list[LeftOut]:
    """Return columns that are a copy of one with holes, with something in the holes."""
    left_out = []
    for column in columns:
        known = _known_cells(column)
        if known is None:
            continue
        # Cells are compared by their hashes: they may be lists, which have no order and no hash.
        cells = cell_hashes(column[known])
        if len(np.unique(cells)) < FEWEST_EQUAL:
            continue
        for name in frame.columns:
            is_copy = np.array_equal(cell_hashes(frame[name][known]), cells)
            if is_copy and bool(frame[name][~known].notna().any()):
                left_out.append(_imputed(name, column.name))
    return left_out


def _imputed(name: ColumnName, base: ColumnName) -> LeftOut:
    """Return why a column is left out that was made of another one by filling its holes."""
    note = (
        f"{name!r} was left out: it is {base!r} with something in its holes, so it is a known "
        "value in some rows and a guess in others, and what is learned from it holds for neither. "
        f"If it is true in all rows, leave out {base!r} with {option('ignore', [base])}, and it "
        "stays."
    )
    return LeftOut(name, f"{base!r} with its holes filled", note)


def _may_use_draw(source: FrameSource, options: Options) -> bool:
    """Return whether the marks of a draw would say more than what is assumed of labels."""
    marks = f"{source.labels.name}_random"
    if options.labels is not None or not {marks, f"{marks}_seed"} <= {*source.frame.columns}:
        return False  # a draw that was found is in use already
    return bool(np.any(~source.labels.missing & ~read_marks(source.frame, marks)))


def _drawn_before(frame: pd.DataFrame, *, may_be_used: bool = False) -> list[LeftOut]:
    """Return the marks of rows that `transduce draw` drew, where they are not used.

    The column of the seed is among them.
    """
    left_out = []
    for seed in [name for name in frame.columns if str(name).endswith("_random_seed")]:
        name = str(seed).removesuffix("_seed")
        if name not in frame.columns:
            continue
        note = (
            f"{name!r} was left out: it marks rows that were drawn to be labelled, so it says "
            "which rows have a label, and nothing else."
        )
        if may_be_used:
            note += f" {option('random_labels', name)} makes use of it."
        left_out.append(LeftOut(name, "marks rows drawn at random", note))
    return left_out


def _computed(name: ColumnName, target: ColumnName) -> LeftOut:
    """Return why a column is left out that formulas compute from the target."""
    note = (
        f"{name!r} was left out: its formulas point at {target!r}, so it knows the value where "
        f"there is one and nothing elsewhere. {option('ignore', [name])} leaves it out without "
        "this note."
    )
    return LeftOut(name, f"formulas point at {target!r}", note)


# ---- columns that are known with a label, or without one


def _known_with_label(frame: pd.DataFrame, source: FrameSource, options: Options) -> list[LeftOut]:
    """Return columns with values only, or nearly only, at labelled rows, or at unlabelled ones."""
    missing = source.labels.missing
    design = bind_design(options.design, missing, source.frame)
    unlikely = min(UNLIKELY, UNLIKELY_OF_ANY / max(frame.shape[1], 1))
    left_out = []
    for name in _with_holes(frame):
        known = _known_cells(frame[name])
        if known is None:
            continue
        if is_known_with_label(known, ~missing, design, unlikely):
            left_out.append(_known_only(name, known, ~missing, source.labels.name))
        elif is_known_without_label(known, ~missing, design, unlikely):
            left_out.append(_known_elsewhere(name, known, ~missing, source.labels.name))
    return left_out


def is_known_with_label(known: Mask, labelled: Mask, design: BoundDesign, unlikely: float) -> bool:
    """Return whether cells (n,) are known nearly only at labelled rows (n,), and not by chance."""
    if not _is_known_nearly_only(known, labelled):
        return False
    return design.chance_of_presence(known, labelled) < unlikely


def is_known_without_label(
    known: Mask, labelled: Mask, design: BoundDesign, unlikely: float
) -> bool:
    """Return the same of unlabelled rows: notes on what is still to be done, say."""
    if not _is_known_nearly_only(known, ~labelled):
        return False
    # So few known cells at labelled rows are so many missing ones.
    return design.chance_of_presence(~known, labelled) < unlikely


def _is_known_nearly_only(known: Mask, rows: Mask) -> bool:
    """Return whether a far larger share of some rows than of the others has a known cell."""
    if not rows.any() or rows.all():
        return False
    here = float(known[rows].mean())
    elsewhere = float(known[~rows].mean())
    return 0.0 < here >= TIMES_MORE * elsewhere and elsewhere <= MOST_KNOWN


def _with_holes(frame: pd.DataFrame) -> list[Any]:
    """Return the columns that may have empty cells.

    Most columns of a wide table have none, which is seen at once.
    """
    plain = _plain_columns(frame)
    cells = frame[plain].to_numpy(dtype=float)
    if not len(cells):
        return []
    whole = np.isfinite(cells).all(axis=0)
    ends = np.where(whole, cells, 0.0)
    ends = np.stack([ends.min(axis=0), ends.max(axis=0)])
    marked = [any(map(numbers.may_be_sentinel, pair)) for pair in ends.T.tolist()]
    complete = {plain[j] for j in np.flatnonzero(whole) if not marked[j]}
    return [name for name in frame.columns if name not in complete]


def _plain_columns(frame: pd.DataFrame) -> list[Any]:
    """Return the columns of numpy's numbers."""
    return [
        name
        for name, kind in frame.dtypes.items()
        if isinstance(kind, np.dtype) and kind.kind in "iuf"
    ]


def _known_cells(column: pd.Series) -> Mask | None:
    """Return which cells of a column are known (n,); None if all are."""
    if is_number(column):
        values = as_floats(column)
        missing = without_number(values, _marks(values))
    elif column.dtype == object or isinstance(column.dtype, pd.StringDtype):
        missing = column.isna().to_numpy(dtype=bool)
        if all(isinstance(cell, str) for cell in column[~missing]):
            missing = as_texts(column).isna().to_numpy(dtype=bool)
    else:
        missing = column.isna().to_numpy(dtype=bool)
    return ~missing if missing.any() else None


def _marks(values: Any) -> tuple[float, ...]:
    """Return numbers such as -999 that stand for a missing one, which lie beyond all others."""
    finite = values[np.isfinite(values)]
    ends = (finite.min(), finite.max()) if len(finite) else ()
    if not any(numbers.may_be_sentinel(end) for end in ends):
        return ()  # to sort all of them takes longer than all else
    return tuple(numbers.sentinels(numbers.in_order(values)))


def _known_only(name: ColumnName, known: Mask, labelled: Mask, target: ColumnName) -> LeftOut:
    """Return why a column is left out that is known nearly only where there is a label."""
    n_with = int(known[labelled].sum())
    n_without = int(known[~labelled].sum())
    n_labelled = int(labelled.sum())
    n_unlabelled = int((~labelled).sum())
    nearly = "nearly " if n_without else ""
    elsewhere = f"{n_without:,}" if n_without else "none"
    note = (
        f"{name!r} was left out: it is known {nearly}only where {target!r} is, at {n_with:,} of "
        f"{counted(n_labelled, 'row')} with a label and at {elsewhere} of {n_unlabelled:,} "
        "without, so it says which rows have a label, and "
        f"{'hardly anything' if n_without else 'nothing'} about the others. "
        f"{option('ignore', [name])} leaves it out without this note."
    )
    return LeftOut(name, f"known {nearly}only where {target!r} is", note)


def _known_elsewhere(name: ColumnName, known: Mask, labelled: Mask, target: ColumnName) -> LeftOut:
    """Return why a column is left out that is known nearly only where there is no label."""
    n_with = int(known[labelled].sum())
    nearly = "nearly " if n_with else ""
    note = (
        f"{name!r} was left out: it is known {nearly}only where {target!r} is not, at "
        f"{int(known[~labelled].sum()):,} of {counted(int((~labelled).sum()), 'row')} without a "
        f"label and at {f'{n_with:,}' if n_with else 'none'} of {int(labelled.sum()):,} with one, "
        f"so {'hardly anything' if n_with else 'nothing'} can be learned from it. "
        f"{option('ignore', [name])} leaves it out without this note."
    )
    return LeftOut(name, f"known {nearly}only where {target!r} is not", note)


# ---- columns with one number wherever there is no label


def _filled_elsewhere(frame: pd.DataFrame, source: FrameSource, options: Options) -> list[LeftOut]:
    """Return measured columns in which one number stands for an empty cell where no label is."""
    labelled = ~source.labels.missing
    design = bind_design(options.design, ~labelled, source.frame)
    unlikely = min(UNLIKELY, UNLIKELY_OF_ANY / max(frame.shape[1], 1))
    left_out = []
    for name in _nearly_constant(frame, ~labelled):
        values = _numbers_of(frame[name])
        if values is None:
            continue
        filler = filler_elsewhere(values, labelled)
        if filler is None or filler in _numbers_in(options.keep):
            continue
        measured = np.isfinite(values) & (values != filler)
        if is_known_with_label(measured, labelled, design, unlikely):
            left_out.append(_filled_with(name, filler, values, labelled, source.labels.name))
    return left_out


def _nearly_constant(frame: pd.DataFrame, rows: Mask) -> list[Any]:
    """Return the columns of numbers that may hold one number in nearly all of some rows (n,).

    Most columns of a wide table do not, which is seen at once.
    """
    if not rows.any():
        return []
    plain = _plain_columns(frame)
    cells = frame[plain].to_numpy(dtype=float)[rows]
    if plain:
        usual = np.median(cells, axis=0)
    else:
        usual = np.empty(0)
    varies = np.isfinite(usual) & (np.mean(cells == usual, axis=0) < 1.0 - MOST_KNOWN)
    gone = {name for name, differs in zip(plain, varies, strict=True) if differs}
    return [
        name
        for name in frame.columns
        if name not in gone and (is_number(frame[name]) or _repeats_a_text(frame[name][rows]))
    ]


def _repeats_a_text(column: pd.Series) -> bool:
    """Return whether nearly all cells of a column are one and the same text."""
    if column.dtype != object and not isinstance(column.dtype, pd.StringDtype):
        return False
    known = column.dropna()
    if not len(known) or not isinstance(known.iloc[0], str):
        return False
    codes, _ = pd.factorize(known)
    return bool(np.bincount(codes).max() >= (1.0 - MOST_KNOWN) * len(codes))


def _numbers_of(column: pd.Series) -> Array | None:
    """Return the numbers of a column (n,), also of texts such as "5 kg"; None if it holds none."""
    if is_number(column):
        return as_floats(column)
    values = numbers.all_numbers(column)
    if values is None or not np.isfinite(values).any():
        return None
    return values


def filler_elsewhere(values: Array, labelled: Mask) -> float | None:
    """Return the number that most unlabelled rows share and that may stand for an empty cell.

    It is None if there is none. Shapes: values (n,), labelled (n,).
    """
    elsewhere = values[~labelled]
    elsewhere = elsewhere[np.isfinite(elsewhere)]
    if not len(elsewhere):
        return None
    usual = float(np.median(elsewhere))  # where more than half are equal, it is what they are
    if np.mean(elsewhere == usual) < 1.0 - MOST_KNOWN:
        return None
    measured = values[labelled]
    measured = measured[np.isfinite(measured) & (measured != usual)]
    n_different = len(np.unique(measured))
    if n_different < max(FEWEST_MEASURED, MOSTLY_DIFFERENT * len(measured)):
        return None
    if usual in FILLERS or numbers.may_be_sentinel(usual):
        return usual
    centres = (float(measured.mean()), float(np.median(measured)))
    if any(_is_rounded(usual, centre) for centre in centres):
        return usual
    return None


def _is_rounded(value: float, exact: float) -> bool:
    """Return whether a number is another one to the decimals that it is written with."""
    _, _, decimals = np.format_float_positional(value, trim="-").partition(".")
    return abs(value - exact) <= 0.5000001 * 10.0 ** -len(decimals) + 1e-12 * abs(exact)


def _numbers_in(keep: Sequence[Any]) -> list[float]:
    """Return the numbers that somebody said are real values."""
    return [numbers.number_of(str(value), "point") for value in keep]


def _filled_with(
    name: ColumnName, filler: float, values: Array, labelled: Mask, target: ColumnName
) -> LeftOut:
    """Return why a column is left out in which one number stands for an empty cell."""
    is_filler = values == filler
    number = numbers.plain(filler)
    n_with = int(is_filler[labelled].sum())
    note = (
        f"{name!r} was left out: it holds {number} at {int(is_filler[~labelled].sum()):,} of "
        f"{counted(int((~labelled).sum()), 'row')} without a label and at "
        f"{f'{n_with:,}' if n_with else 'none'} of {int(labelled.sum()):,} with one, so {number} "
        f"seems to stand for an empty cell, and the column is known only where {target!r} is. "
        f"{option('keep', [number])} takes it as a number like the others; "
        f"{option('ignore', [name])} leaves the column out without this note."
    )
    return LeftOut(name, f"holds {number} where {target!r} is empty", note)


# ---- running numbers along which labels stop

LABELS_STOP = (
    0.9  # how well the place along a column tells labelled from unlabelled rows: |2 auc - 1|
)
NEARLY_ALL_DIFFER = 0.9  # of the cells of a running number


def running_columns(frame: pd.DataFrame, missing: Mask) -> tuple[str, ...]:
    """Return running numbers and times along which labels stop or begin.

    Shapes: missing (n,).
    """
    return tuple(str(name) for name in frame.columns if _labels_stop(frame[name], missing))


def _labels_stop(column: pd.Series, missing: Mask) -> bool:
    """Return whether a running number, or a time, tells labelled from unlabelled rows."""
    places = _places_along(column)
    if places is None:
        return False
    values = places[np.isfinite(places)]
    if len(np.unique(values)) < NEARLY_ALL_DIFFER * len(values):
        return False
    return labels_stop_along(column, missing)


def labels_stop_along(column: pd.Series, missing: Mask) -> bool:
    """Return whether a whole number, or a time, that may repeat tells labelled rows from others."""
    places = _places_along(column)
    if places is None:
        return False
    known = np.isfinite(places)
    values = places[known]
    missing = missing[known]
    n_missing = int(missing.sum())
    n_labelled = int((~missing).sum())
    if not n_missing or not n_labelled or known.mean() < NEARLY_ALL_DIFFER:
        return False
    sum_of_ranks = float(rankdata(values)[missing].sum())
    area = (sum_of_ranks - n_missing * (n_missing + 1) / 2) / (n_missing * n_labelled)
    return abs(2.0 * area - 1.0) >= LABELS_STOP


def _places_along(column: pd.Series) -> Any:
    """Return whole numbers, or times, as floats (n,); None if a column holds neither."""
    if pd.api.types.is_bool_dtype(column):
        return None
    if is_number(column):
        values = as_floats(column)
        known = values[np.isfinite(values)]
        if np.all(known == np.round(known)):
            return values
        return None
    if not pd.api.types.is_datetime64_any_dtype(column):
        moments = Moments.of(column)
        if moments is None:
            return None
        return moments.numbers(column)
    times = pd.to_datetime(column, utc=True)
    return times.rank().to_numpy(dtype=float, na_value=np.nan)
