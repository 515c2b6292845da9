"""Columns of a table as an audit takes them: predictions, checks, draws and groups."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Container
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from transduce.app.auditing.moved_cells import are_alike, find_changes
from transduce.app.auditing.question import AuditQuestion
from transduce.app.tables import numbers
from transduce.app.tables.column_names import check_columns, check_once
from transduce.app.tables.columns import sides_of_cells
from transduce.app.tables.nested import refuse_objects
from transduce.app.tables.probabilities import Probabilities, as_numbers, read_probabilities
from transduce.core.types import AnyArray, Array, ColumnName, Mask
from transduce.core.words import counted, listed_numbers, option, quoted
from transduce.population.audit import allowed_errors
from transduce.population.draws import read_drawn_from, read_marks

MOST_CLASSES = 50  # different whole numbers beyond which a column holds amounts, not classes
MOST_GROUPS = 500
ROW_NUMBER = "row_number"  # the column of a list that says which row of the table each is
LABELLED = "_label"  # what the labelling page adds to the name of a column that the table has
EMPTY = "(empty)"  # what a group is called that has no name
MOST_NAMED = 5  # identifiers in a message
FEWEST_ALIKE = 0.5  # of the other cells of a row of a list that must be as they are in the table
FEWEST_COMPARED = 6  # checks among which one can be far
WHOLE_WITH_POINT = re.compile(r"(-?\d+)\.0+")  # as numbers with gaps are written by some programs


@dataclass(frozen=True, eq=False)
class AuditColumns:
    """What an audit reads of a table; arrays of shape (n,).

    Attributes
    ----------
    predictions, truth, second : array
        Classes, None where there is none; or numbers, NaN where there is none.
    numeric : bool
        Whether they are numbers.
    uncertainty : array or None
        How uncertain each prediction says that it is, from 0 to 1, if it says so.
    drawn : boolean array
        Rows that were drawn at random to be checked.
    drawn_from : boolean array or None
        Rows that could be drawn, if the table says so.
    strata : array or None
        The stratum that each row belongs to.
    seen : boolean array
        Rows whose labels the predictor has seen.
    groups : dict
        The group of each row, by column.
    notes : list of str
    """

    predictions: AnyArray
    truth: AnyArray
    second: AnyArray | None
    numeric: bool
    uncertainty: Array | None
    drawn: Mask
    drawn_from: Mask | None
    strata: AnyArray | None
    seen: Mask
    groups: dict[ColumnName, AnyArray]
    notes: list[str] = field(default_factory=list)

    @property
    def checked(self) -> Mask:
        """Rows that have a label."""
        return ~np.asarray(pd.isna(self.truth))


def read_audit(frame: pd.DataFrame, question: AuditQuestion) -> AuditColumns:
    """Return the columns that a question names; a ValueError says what to do about them."""
    if len(frame) == 0:
        raise ValueError("The table has no rows.")
    check_once(frame.columns, "The table")
    notes: list[str] = []
    labels = _read_labels(frame, question, notes)
    checked = ~np.asarray(pd.isna(labels.truth)) | labels.undecided
    seen = _read_seen(frame, question, notes)
    draw = _read_draw(frame, question, checked, notes)
    _refuse_unchecked(draw.drawn & checked, draw.drawn, seen, question)
    return AuditColumns(
        predictions=labels.predictions,
        truth=labels.truth,
        second=labels.second,
        numeric=labels.numeric,
        uncertainty=labels.uncertainty,
        drawn=draw.drawn & ~seen,
        drawn_from=_rows_drawn_from(draw, checked, seen, notes),
        strata=draw.strata,
        seen=seen,
        groups={name: _read_groups(frame, name, question, notes) for name in question.by},
        notes=notes,
    )


class _Labels(NamedTuple):
    """What was predicted and found at each row (n,), all of it classes or all of it numbers."""

    predictions: AnyArray
    truth: AnyArray
    second: AnyArray | None
    numeric: bool
    uncertainty: Array | None
    undecided: Mask  # rows whose check is a limit that leaves open whether the prediction is off


def _read_labels(frame: pd.DataFrame, question: AuditQuestion, notes: list[str]) -> _Labels:
    """Return what was predicted and found, read as classes or as numbers."""
    predicted, uncertainty = _read_predictions(frame, question)
    truth = _emptied(_read_target(frame, question, notes), question)
    columns = [predicted, truth]
    if question.second is not None:
        columns.append(_emptied(read_column(frame, question.second), question))
    if truth.isna().all():
        way_out = "Draw some rows at random with `transduce draw`, and check them first."
        if f"{question.target}_random" in frame.columns:
            way_out = _way_out_of_unchecked()
        raise ValueError(
            f"All cells of column {question.target!r} are empty: no row was checked. {way_out}"
        )
    _refuse_one_probability(predicted, truth, question)
    numeric = _holds_numbers(columns, question)
    undecided = np.zeros(len(frame), dtype=bool)
    if numeric:
        read = [as_numbers(column) for column in columns]
        allowed = allowed_errors(read[0], question.tolerance or 0.0, question.relative)
        for place in range(1, len(columns)):
            read[place], is_open = _judge_limits(columns[place], read[0], read[place], allowed)
            if place == 1:
                undecided = is_open
        notes += _notes_on_far_checks(read[1])
        notes += _notes_on_undecided(read[1], undecided)
    else:
        read = _as_classes(columns, question, notes)
        notes += _names_that_differ(read[0], read[1], question)
    second = None
    if question.second is not None:
        second = read[2]
    return _Labels(read[0], read[1], second, numeric, uncertainty, undecided)


def _judge_limits(
    column: pd.Series, predicted: AnyArray, found: AnyArray, allowed: Array
) -> tuple[AnyArray, Mask]:
    """Return what was found (n,), and which checks are limits that leave a prediction open.

    A check such as "<0.5" is infinitely far from a prediction that it surely makes wrong, and NaN
    at another: how far off that one is cannot be known.
    """
    sides = sides_of_cells(column.reset_index(drop=True))
    if sides is None:
        return found, np.zeros(len(found), dtype=bool)
    is_low = sides < 0
    is_limit = sides != 0
    beyond = np.where(is_low, predicted - found, found - predicted)
    is_wrong = is_limit & ~(beyond <= allowed)  # also where there is no prediction
    undecided = is_limit & ~is_wrong
    judged = np.where(is_wrong, np.where(is_low, -np.inf, np.inf), found)
    return np.where(undecided, np.nan, judged), undecided


def _notes_on_undecided(found: AnyArray, undecided: Mask) -> list[str]:
    """Return a note on checks (n,) that are limits and decide nothing."""
    n_open = int(np.sum(undecided))
    if not n_open:
        return []
    if np.isnan(found).all():
        raise ValueError(
            "Every check is a limit, such as <0.5, that leaves open whether the prediction is "
            "right: check rows whose value can be measured."
        )
    one = "check is a limit, such as <0.5, that leaves"
    several = "checks are limits, such as <0.5, that leave"
    return [
        f"{counted(n_open, one, several)} open whether the prediction is off by more than the "
        "tolerance: the bound counts each as wrong."
    ]


def _read_seen(frame: pd.DataFrame, question: AuditQuestion, notes: list[str]) -> Mask:
    """Return which rows (n,) the predictor has seen with their labels, if that is known."""
    if question.seen is None:
        return np.zeros(len(frame), dtype=bool)
    seen = read_marks(frame, question.seen)
    notes.append(
        f"{counted(int(seen.sum()), 'row')} marked in {question.seen!r} were seen by the "
        "predictor: their labels say nothing of other rows."
    )
    return seen


def _refuse_unchecked(checked: Mask, drawn: Mask, seen: Mask, question: AuditQuestion) -> None:
    """Raise a ValueError if no drawn row (n,) was checked, or only such as the predictor saw."""
    if not checked.any():
        raise ValueError(
            f"None of the {int(drawn.sum()):,} drawn rows has a label in {question.target!r}. "
            f"{_way_out_of_unchecked()}"
        )
    if not (checked & ~seen).any():
        raise ValueError(
            f"All checked rows are marked in {question.seen!r} as seen by the predictor, so that "
            "they say nothing of the others: check some rows that it has not seen."
        )


def _rows_drawn_from(draw: _Draw, checked: Mask, seen: Mask, notes: list[str]) -> Mask | None:
    """Return which rows (n,) could be drawn; None if all could."""
    drawn_from = draw.drawn_from
    if drawn_from is None and (seen & ~checked).any():
        drawn_from = draw.drawn | ~checked
    if drawn_from is None:
        return None
    unseen = drawn_from & ~seen
    notes += _about_rows_not_drawn_from(checked, unseen)
    return unseen


def _notes_on_far_checks(values: AnyArray) -> list[str]:
    """Return a note on the least and the greatest check (n,), each if it is far from all others.

    It is farther from them than they are from each other, or of another size, as where a decimal
    sign was forgotten.
    """
    rows = np.flatnonzero(np.isfinite(values))
    if len(rows) < FEWEST_COMPARED:
        return []
    rows = rows[np.argsort(values[rows], kind="stable")]
    ordered = values[rows]
    notes = []
    for place, others in ((-1, ordered[:-1]), (0, ordered[1:])):
        value = ordered[place]
        low, high = others[0], others[-1]
        is_other_size = low > 0.0 and not low <= 10.0 * value <= 100.0 * high
        if is_other_size or max(low - value, value - high) > high - low:
            row = f"{rows[place] + 1:,}"
            notes.append(
                f"Look whether the check in row {row} is right: {value:g} is far from all others "
                f"({low:g} to {high:g})."
            )
    return notes


def read_column(frame: pd.DataFrame, name: ColumnName) -> pd.Series:
    """Return a column of values; a ValueError says that there is none, or that it holds lists."""
    check_columns(frame, [name])
    refuse_objects(frame.columns, [name])
    column = frame[name]
    if column.dtype == object and any(isinstance(cell, list | np.ndarray) for cell in column):
        raise ValueError(f"Column {name!r} holds lists: put what is to be read into a column.")
    return column


def _read_target(frame: pd.DataFrame, question: AuditQuestion, notes: list[str]) -> pd.Series:
    """Return what a person found, from the labelling page's column where it wrote one."""
    labels = f"{question.target}{LABELLED}"
    if labels in frame.columns and f"{question.target}_by" in frame.columns:
        notes.append(f"Labels were read from {labels!r}, which the labelling page wrote.")
        return frame[labels]
    return read_column(frame, question.target)


def _emptied(column: pd.Series, question: AuditQuestion) -> pd.Series:
    """Return a column in which blank texts, and what the user names, are missing."""
    table = numbers.without(column.to_frame(), list(question.missing))
    emptied = table.iloc[:, 0]
    if emptied.dtype == object or isinstance(emptied.dtype, pd.StringDtype):
        texts = emptied.astype(object)
        blank = texts.map(lambda cell: isinstance(cell, str) and not cell.strip())
        return texts.mask(blank.to_numpy(dtype=bool), None)
    return emptied


def _read_predictions(
    frame: pd.DataFrame, question: AuditQuestion
) -> tuple[pd.Series, Array | None]:
    """Return the predicted class or number of each row, and how uncertain it says it is."""
    if len(question.predictions) == 1:
        return _emptied(read_column(frame, question.predictions[0]), question), None
    probabilities = _read_probabilities(frame, question.predictions)
    return probabilities.likeliest.set_axis(frame.index), probabilities.uncertainty


def predicted_class(frame: pd.DataFrame, columns: tuple[ColumnName, ...]) -> pd.Series:
    """Return the predicted class of each row, or the likeliest of several columns."""
    if len(columns) == 1:
        return read_column(frame, columns[0])
    return _read_probabilities(frame, columns).likeliest.set_axis(frame.index)


def _read_probabilities(frame: pd.DataFrame, columns: tuple[ColumnName, ...]) -> Probabilities:
    """Return how probable each class is at each row, from one column or field for each."""
    return read_probabilities([read_column(frame, name).rename(name) for name in columns])


def _refuse_one_probability(
    predicted: pd.Series, truth: pd.Series, question: AuditQuestion
) -> None:
    """Raise a ValueError if fractions were predicted, and what was found are words."""
    if question.tolerance is not None or _is_numeric(truth) or not holds_fractions(predicted):
        return
    amounts = predicted.dropna().to_numpy(dtype=float)
    first_label = truth.dropna().iloc[0]
    raise ValueError(
        f"Column {question.predictions[0]!r} holds numbers such as {amounts[0]:g}, but the checks "
        f"in {question.target!r} are classes such as {quoted(first_label)}: name the column of the "
        "predicted class, or one column of probabilities for each class."
    )


def _is_numeric(column: pd.Series) -> bool:
    """Return whether a column holds numbers, which True and False are not."""
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def holds_fractions(column: pd.Series) -> bool:
    """Return whether a column holds numbers that are not all whole, such as probabilities."""
    if not _is_numeric(column):
        return False
    amounts = column.dropna().to_numpy(dtype=float)
    return not np.all(amounts == np.round(amounts))


def _names_that_differ(predicted: AnyArray, truth: AnyArray, question: AuditQuestion) -> list[str]:
    """Return a note on classes that were found and never predicted: perhaps other names."""
    predicted_classes = set(pd.unique(predicted)) - {None}
    counts = pd.Series(truth).dropna().value_counts()
    strange = [name for name in counts.index if name not in predicted_classes]
    if not strange:
        return []
    examples = ", ".join(map(quoted, strange[:MOST_NAMED]))
    never_found = sorted(predicted_classes - set(counts.index), key=str)
    message = (
        f"Found in {question.target!r}, and predicted nowhere: {examples} "
        f"({counted(int(counts[strange].sum()), 'check')}, which count as wrong)."
    )
    if never_found:
        names = ", ".join(map(quoted, never_found[:MOST_NAMED]))
        message += (
            f" Predicted, and found at no check: {names}. If these are two names of one class, "
            "write them alike."
        )
    return [message]


def _holds_numbers(columns: list[pd.Series], question: AuditQuestion) -> bool:
    """Return whether predictions are amounts, of which a tolerance says what is wrong."""
    if question.tolerance is not None:
        return True
    if not all(map(_is_numeric, columns)):
        return False
    amounts = columns[0].dropna().to_numpy(dtype=float)
    whole = bool(np.all(amounts == np.round(amounts)))
    if whole and len(np.unique(amounts)) <= MOST_CLASSES:
        return False
    message = (
        f"Column {question.predictions[0]!r} holds numbers: say by how much one may be off before "
        f"it counts as wrong, with {option('tolerance', 0.5)}."
    )
    if _are_classes_and_shares(columns[1], amounts):
        message += (
            " If it holds the probability of a class, name one column of probabilities for each "
            "class, or the column of the predicted class."
        )
    raise ValueError(message)


def _are_classes_and_shares(truth: pd.Series, predicted: Array) -> bool:
    """Return whether what was found is 0 or 1, and what was predicted lies between them."""
    if not truth.dropna().isin([0, 1]).all():
        return False
    return bool(np.all((predicted >= 0.0) & (predicted <= 1.0)))


def _as_classes(
    columns: list[pd.Series], question: AuditQuestion, notes: list[str]
) -> list[AnyArray]:
    """Return columns of classes, spelled alike in all of them; None where there is none."""
    counts: Counter[str] = Counter()
    read: list[tuple[AnyArray, list[str]]] = []
    for column in columns:
        # A class is read once, however many rows have it.
        codes, cells = pd.factorize(column.astype(object))
        texts = [_class_text(cell) for cell in cells]
        sizes = np.bincount(codes[codes >= 0], minlength=len(texts))
        for text, size in zip(texts, sizes.tolist(), strict=True):
            counts[text] += size
        read.append((codes, texts))
    usual = {text: text for text in counts}
    if not question.case_sensitive:
        names = numbers.usual_spellings(counts)
        usual = {text: names[numbers.spelling_key(text)] for text in counts}
        notes += numbers.spelling_note(question.target, "Classes", counts)
    codes_of_truth = _codes_of_truth([texts for _, texts in read])
    if codes_of_truth:
        notes.append("0 and 1 in one column were taken for the False and True of another.")
    classes = []
    for codes, texts in read:
        named = (codes_of_truth.get(text, _without_point(text, counts)) for text in texts)
        spelled = np.array([*(usual.get(text, text) for text in named), None], dtype=object)
        classes.append(spelled[codes])
    return classes


def _codes_of_truth(columns: list[list[str]]) -> dict[str, str]:
    """Return what 0 and 1 mean if one column has nothing else, and another True and False only."""
    truths = [{*texts} for texts in columns if {*map(str.casefold, texts)} <= {"true", "false"}]
    codes = [{*texts} for texts in columns if {*texts} <= {"0", "1", "0.0", "1.0"}]
    truths = [texts for texts in truths if texts]
    codes = [texts for texts in codes if texts]
    if not truths or len(truths) + len(codes) < len(columns) or not codes:
        return {}
    spelled = {text.casefold(): text for texts in truths for text in texts}
    meaning = {"0": spelled.get("false", "False"), "1": spelled.get("true", "True")}
    return {code: meaning[code[0]] for texts in codes for code in texts}


def _without_point(text: str, texts: Container[str]) -> str:
    """Return a whole number that was written with a point as the others are, if they are not."""
    whole = _as_whole_number(text)
    return whole if whole in texts else text


def _class_text(cell: object) -> str:
    """Return a class as text: whole numbers without a point, texts without blanks around them.

    Characters that look the same are the same, however an accent was written.
    """
    if isinstance(cell, float) and np.isfinite(cell) and cell == round(cell):
        return str(int(cell))
    return unicodedata.normalize("NFC", str(cell).strip())


class _Draw(NamedTuple):
    """Which rows (n,) were drawn to be checked, of which others, and from which strata."""

    drawn: Mask
    drawn_from: Mask | None
    strata: AnyArray | None


def _read_draw(
    frame: pd.DataFrame, question: AuditQuestion, checked: Mask, notes: list[str]
) -> _Draw:
    """Return which rows were drawn; columns of `transduce draw` are found by their names."""
    random = question.random
    for name in (str(question.target), str(question.target).removesuffix(LABELLED)):
        if random is None and f"{name}_random" in frame.columns:
            random = f"{name}_random"
    drawn = checked
    if random is not None:
        drawn = read_marks(frame, random)
        notes += _about_draw(drawn, checked, random)
    drawn_from = None
    if f"{random}_probability" in frame.columns:
        drawn_from = read_drawn_from(frame, f"{random}_probability", drawn)
    stratum = question.stratum
    if stratum is None and random is not None and f"{random}_stratum" in frame.columns:
        stratum = f"{random}_stratum"
    if stratum is None:
        return _Draw(drawn, drawn_from, None)
    notes.append(f"Rows were drawn from each {stratum!r} by itself.")
    return _Draw(drawn, drawn_from, class_texts(read_column(frame, stratum)))


def _about_draw(drawn: Mask, checked: Mask, random: ColumnName) -> list[str]:
    """Return notes on how many rows were drawn, and on those that were drawn or checked only."""
    notes = [f"{counted(int(drawn.sum()), 'row')} were drawn to be checked, as {random!r} says."]
    n_open = int(np.sum(drawn & ~checked))
    if n_open == 1:
        notes.append(
            "1 drawn row without a check counts as wrong: check it, and the statements will be "
            "stronger."
        )
    elif n_open:
        notes.append(
            f"{n_open:,} drawn rows without a check count as wrong: check them, and the "
            "statements will be stronger."
        )
    n_other = int(np.sum(checked & ~drawn))
    if n_other:
        notes.append(
            f"{counted(n_other, 'row was', 'rows were')} checked without being drawn: what they "
            "say holds for themselves, not for the others."
        )
    return notes


def _way_out_of_unchecked() -> str:
    """Return what to do where no drawn row has a label."""
    return (
        "Fill in the drawn rows there, or name the list in which they were filled in with "
        f"{option('checks')}."
    )


def _about_rows_not_drawn_from(checked: Mask, drawn_from: Mask) -> list[str]:
    """Return a note on rows without a check that no draw speaks for."""
    n_unknown = int(np.sum(~checked & ~drawn_from))
    if not n_unknown:
        return []
    return [
        f"{counted(n_unknown, 'row')} without a check could not be drawn, or were seen by the "
        "predictor: the checks say nothing of them, so that each may be wrong."
    ]


def _read_groups(
    frame: pd.DataFrame, name: ColumnName, question: AuditQuestion, notes: list[str]
) -> AnyArray:
    """Return the group of each row, spelled as most are; a ValueError says there are too many."""
    groups = class_texts(read_column(frame, name))
    if not question.case_sensitive:
        counts = dict(sorted(Counter(groups.tolist()).items()))
        usual = numbers.usual_spellings(counts)
        notes += numbers.spelling_note(name, "Groups", counts)
        groups = np.array(
            [usual[numbers.spelling_key(group)] for group in groups.tolist()], dtype=object
        )
    n_groups = len(pd.unique(groups))
    if n_groups > MOST_GROUPS:
        raise ValueError(
            f"Column {name!r} has {n_groups:,} different values: each is a group with statements "
            f"of its own, of which there can be {MOST_GROUPS} at most."
        )
    return groups


def class_texts(column: pd.Series) -> AnyArray:
    """Return the class or group of each row as text; EMPTY where there is none, or blanks only."""
    codes, cells = pd.factorize(column.astype(object))
    texts = np.array([*(_class_text(cell) or EMPTY for cell in cells), EMPTY], dtype=object)
    return texts[codes]


def join_checks(
    frame: pd.DataFrame,
    checks: pd.DataFrame,
    id: ColumnName | None,
    wanted: list[ColumnName],
    *,
    other_labels: Collection[ColumnName] = (),
    missing: Collection[object] = (),
) -> tuple[pd.DataFrame, list[str]]:
    """Return a table with columns of another one, matched by an identifier, and notes.

    Without an identifier rows are matched by the row numbers that a list of drawn rows has, or one
    by one if both tables have the same rows. Identifiers that repeat or do not match are refused or
    told. Wanted are columns of labels, of which the other table must have the first or another.
    A list with row numbers must agree with the table in all columns but labels. Cells of the table
    with a text in `missing` are empty.
    """
    if len(checks) == 0:
        raise ValueError("The table of checks has no rows.")
    are_same = False
    if id is None and ROW_NUMBER not in checks.columns:
        are_same = _have_same_rows(frame, checks, wanted)
    if are_same:
        checks = checks.assign(**{ROW_NUMBER: np.arange(1, len(checks) + 1)})
    id, row_ids = _find_identifier(frame, checks, id)
    check_ids = _field_of_checks(checks, id)
    labels = {name: read_column(checks, name) for name in wanted if name in checks.columns}
    if not labels:
        labels[wanted[0]] = _field_of_checks(checks, wanted[0])
    match = _match_checks(row_ids, check_ids, id)
    notes = match.notes
    if ROW_NUMBER in checks.columns and ROW_NUMBER not in frame.columns and not are_same:
        notes += _compare_columns(
            frame, checks, match, id, wanted, {*labels, *other_labels}, missing
        )
    joined = frame.copy(deep=False)
    for name, column in labels.items():
        cells = column.astype(object).to_numpy()[match.places]
        joined[name], n_replaced = _replace_cells(frame, name, match.rows, cells, missing)
        if n_replaced:
            notes.append(
                f"{counted(n_replaced, 'check')} differed from what the table itself had in "
                f"{name!r}: the second table counts."
            )
    if match.unmatched:
        examples = ", ".join(map(quoted, match.unmatched[:MOST_NAMED]))
        notes.append(
            f"Left out, since no row of the table has this {id!r}: "
            f"{counted(len(match.unmatched), 'check')} ({examples})."
        )
    return joined, notes


def _find_identifier(
    frame: pd.DataFrame, checks: pd.DataFrame, id: ColumnName | None
) -> tuple[ColumnName, pd.Series]:
    """Return the column that names the rows of both tables, and the names of a table's rows."""
    if id is not None:
        return id, read_column(frame, id)
    if ROW_NUMBER in checks.columns and ROW_NUMBER not in frame.columns:
        return ROW_NUMBER, pd.Series(np.arange(1, len(frame) + 1), index=frame.index)
    raise ValueError(
        "Name the column that both tables have in common, and that tells rows apart, with "
        f"{option('id')}."
    )


def _have_same_rows(frame: pd.DataFrame, checks: pd.DataFrame, labels: list[ColumnName]) -> bool:
    """Return whether two tables agree in every column that both have, but for labels.

    These must be all columns of the table, or tell its rows apart: where the site is all that both
    have, the rows of a site may be in another order.
    """
    if len(frame) != len(checks):
        return False
    stems = tuple(str(name).removesuffix(LABELLED) for name in labels)
    others = [name for name in frame.columns if not str(name).startswith(stems)]
    both = [name for name in others if name in checks.columns]
    if len(both) < len(others) and frame[both].astype(str).duplicated().any():
        return False
    return bool(both) and all(
        frame[name].reset_index(drop=True).equals(checks[name].reset_index(drop=True))
        for name in both
    )


class _Match(NamedTuple):
    """Which check belongs to which row."""

    rows: AnyArray  # (m,) of the table that have a check
    places: AnyArray  # (m,) of their checks
    unmatched: list[str]  # identifiers of checks that no row of the table has
    notes: list[str]


def _match_checks(row_ids: pd.Series, check_ids: pd.Series, id: ColumnName) -> _Match:
    """Return which check belongs to which row; a ValueError says that none does, or several."""
    keys = row_ids.map(_class_text, na_action="ignore")
    check_keys = check_ids.map(_class_text, na_action="ignore")
    _refuse_repeated("table", id, keys)
    _refuse_repeated("table of checks", id, check_keys)
    notes = []
    if _match_better(keys, check_keys, _as_whole_number):
        keys = keys.map(_as_whole_number)
        check_keys = check_keys.map(_as_whole_number)
    if _match_as_numbers(keys, check_keys):
        keys = keys.map(_without_zeros)
        check_keys = check_keys.map(_without_zeros)
        notes.append(f"Leading zeros of {id!r} were left out, since only one table has them.")
    places = pd.Series(np.arange(len(check_keys)), index=check_keys)
    matched = keys.map(places).to_numpy(dtype=float)
    rows = np.flatnonzero(~np.isnan(matched))
    if len(rows) == 0:
        raise ValueError(
            f"No {id!r} of the checks is in the table: {quoted(check_keys.iloc[0])} and "
            f"{quoted(keys.iloc[0])} are examples of each."
        )
    notes.append(f"{counted(len(rows), 'check')} matched by {id!r}.")
    unmatched = check_keys[~check_keys.isin(set(keys))].tolist()
    return _Match(rows, matched[rows].astype(np.int64), unmatched, notes)


def is_of_another_row(frame: pd.DataFrame, row: int, cells: pd.Series, target: ColumnName) -> bool:
    """Return whether a row of a list has the cells of another row of the table.

    So it is where somebody sorted one column of the list by itself. Half of the cells may have
    been changed.
    """
    others = [name for name in frame.columns if str(name) in cells.index and name != target]
    n_alike = sum(are_alike(frame[name].iloc[row], cells[str(name)]) for name in others)
    return bool(others) and n_alike < FEWEST_ALIKE * len(others)


def comparable_cell(cell: object) -> str:
    """Return a cell as text, numbers and days alike however they are written."""
    if pd.isna(cell):
        return ""
    text = str(cell).strip()
    try:
        return f"{float(text):.9g}"
    except ValueError:
        return text.removesuffix(" 00:00:00")


def _compare_columns(
    frame: pd.DataFrame,
    checks: pd.DataFrame,
    match: _Match,
    id: ColumnName,
    wanted: list[ColumnName],
    labels: Collection[ColumnName],
    missing: Collection[object],
) -> list[str]:
    """Return notes on cells of a list that are not as in the table.

    A ValueError says that a column of the list, or its row numbers, were sorted alone.
    """
    added = [f"{name}{LABELLED}" for name in wanted]
    changes = find_changes(
        frame,
        checks,
        match.rows,
        match.places,
        labels={*labels, *wanted, *added},
        missing=missing,
    )
    moved = [change for change in changes if change.is_moved]
    if id == ROW_NUMBER and len(moved) != 1:
        _refuse_other_rows(frame, checks, match, wanted)
    if moved:
        raise ValueError(moved[0].refusal())
    return [change.note() for change in changes]


def _refuse_other_rows(
    frame: pd.DataFrame,
    checks: pd.DataFrame,
    match: _Match,
    wanted: list[ColumnName],
) -> None:
    """Raise a ValueError if row numbers of a list stand beside the cells of other rows."""
    table = frame.drop(columns=[name for name in wanted if name in frame.columns])
    cells = checks.set_axis([str(name) for name in checks.columns], axis=1)
    others = [
        row + 1
        for row, place in zip(match.rows.tolist(), match.places.tolist(), strict=True)
        if is_of_another_row(table, row, cells.iloc[place], wanted[0])
    ]
    if others:
        what = counted(len(others), "check has", "checks have")
        raise ValueError(
            f"{what} the cells of another row of the table than {ROW_NUMBER!r} says "
            f"({listed_numbers(others)}): sort all columns of the list together, or name a column "
            f"that tells rows apart with {option('id')}."
        )


def _replace_cells(
    frame: pd.DataFrame,
    name: ColumnName,
    rows: AnyArray,
    cells: AnyArray,
    missing: Collection[object],
) -> tuple[pd.Series, int]:
    """Return a column with cells of another table at some rows, and how many differ from its own.

    An empty cell of the other table replaces nothing. Its own cells with a text in `missing` are
    empty, and differ from nothing.
    """
    column = np.full(len(frame), None, dtype=object)
    if name in frame.columns:
        column = frame[name].astype(object).to_numpy().copy()
    own = pd.DataFrame({"cells": pd.Series(column, dtype=object)})
    before = numbers.without(own, list(missing))["cells"].astype(object).to_numpy()
    filled = ~pd.isna(cells)
    n_replaced = 0
    for row, cell in zip(rows[filled].tolist(), cells[filled], strict=True):
        own_text = "" if pd.isna(before[row]) else _class_text(before[row])
        if own_text and own_text != _class_text(cell):
            n_replaced += 1
        column[row] = cell
    return pd.Series(column, index=frame.index).infer_objects(), n_replaced


def _field_of_checks(checks: pd.DataFrame, name: ColumnName) -> pd.Series:
    """Return a column or field of the table of checks; a ValueError says that it is theirs."""
    if name not in checks.columns:
        raise ValueError(f"The table of checks has no column {name!r}.")
    return read_column(checks, name)


def _match_as_numbers(keys: pd.Series, check_keys: pd.Series) -> bool:
    """Return whether identifiers differ in leading zeros only, which one of two tables lost."""
    if not all(texts.map(str.isdecimal).all() for texts in (keys, check_keys)):
        return False
    return _match_better(keys, check_keys, _without_zeros)


def _match_better(keys: pd.Series, check_keys: pd.Series, simplified: Callable[[str], str]) -> bool:
    """Return whether more checks match if identifiers are simplified, and each stays unique."""
    if check_keys.isin(set(keys)).all():
        return False
    simpler = [texts.map(simplified) for texts in (keys, check_keys)]
    if not all(texts.is_unique for texts in simpler):
        return False
    n_plain = int(check_keys.isin(set(keys)).sum())
    return int(simpler[1].isin(set(simpler[0])).sum()) > n_plain


def _as_whole_number(text: str) -> str:
    """Return a whole number without the point that a program wrote; other texts as they are."""
    whole = WHOLE_WITH_POINT.fullmatch(text)
    return text if whole is None else whole[1]


def _without_zeros(digits: str) -> str:
    """Return the digits of a number without leading zeros."""
    return digits.lstrip("0") or "0"


def _refuse_repeated(what: str, id: ColumnName, keys: pd.Series) -> None:
    """Raise a ValueError if an identifier is missing or stands in two rows."""
    if keys.isna().any():
        row = int(np.flatnonzero(keys.isna())[0])
        raise ValueError(f"Row {row + 1:,} of the {what} has no {id!r}: every row needs one.")
    repeated = keys[keys.duplicated()]
    if len(repeated):
        n_repeated = repeated.nunique()
        verb = "stands" if n_repeated == 1 else "stand"
        examples = ", ".join(map(quoted, repeated.unique()[:MOST_NAMED]))
        raise ValueError(
            f"{counted(n_repeated, 'identifier')} in column {id!r} of the {what} {verb} in several "
            f"rows ({examples}): each row needs one of its own. If two people checked the same "
            f"rows, give each a column, and name the other one with {option('second')}."
        )
