"""`audit`: what rows that somebody checked say of predictions that were made elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from transduce.app.auditing.question import AuditQuestion, as_columns, check_one_column
from transduce.app.auditing.reading import LABELLED, AuditColumns, join_checks, read_audit
from transduce.app.auditing.result import Agreement, AuditResult, way_out_of_seen
from transduce.app.auditing.suspects import OtherColumns, find_suspects
from transduce.app.tables import files
from transduce.app.tables.formats import Original, Table
from transduce.conformal.seen_labels import SeenLabels, find_seen_labels
from transduce.core.checks import check_whole
from transduce.core.computing import stage
from transduce.core.types import AnyArray, Array, ColumnName, Mask
from transduce.core.words import counted
from transduce.population.audit import (
    MOST_CLASSES,
    Audit,
    NumberAudit,
    allowed_errors,
    audit_classes,
    audit_numbers,
)


def audit(  # noqa: PLR0913 - settings of a public function
    table: pd.DataFrame | str | Path | Table,
    target: ColumnName,
    predictions: ColumnName | list[ColumnName],
    *,
    by: ColumnName | list[ColumnName] | None = None,
    checks: pd.DataFrame | str | Path | None = None,
    id: ColumnName | None = None,
    second: ColumnName | None = None,
    seen: ColumnName | None = None,
    random: ColumnName | None = None,
    stratum: ColumnName | None = None,
    tolerance: float | None = None,
    relative: bool = False,
    certainty: float = 0.95,
    suspects: int = 20,
    missing: list[object] | None = None,
    case_sensitive: bool = False,
) -> AuditResult:
    """Say how wrong predictions are that were made elsewhere, from the rows that somebody checked.

    A language model, a vendor or an old rule has predicted every row; a person has looked at some,
    drawn at random. All bounds and intervals are exact, however wrong the predictions are.

    Parameters
    ----------
    table : DataFrame, or path of a table
        One row each; fields of JSON objects are named with dots, such as ``output.label``.
    target : column
        What a person found, empty where nobody looked.
    predictions : column, or list of columns
        The predicted class or number; or one column of probabilities for each class.
    by : column, or list of columns, optional
        Groups that get statements of their own.
    checks : DataFrame, or path of a table, optional
        Another table that holds the target, matched by `id`.
    id : column, optional
        Names the rows of both tables; not needed for a list of drawn rows that ``transduce draw``
        wrote, which has row numbers.
    second : column, optional
        What a second person found at some of the same rows.
    seen : column, optional
        Marks rows whose labels the predictor has seen.
    random, stratum : column, optional
        Marks the rows that were drawn, and the stratum of each; by default the columns that
        ``transduce draw`` writes, if they are there, and otherwise all checked rows.
    tolerance : float, optional
        By how much a predicted number may be off; a share of it if `relative`.
    relative : bool, default=False
        Whether the tolerance is a share of the prediction.
    certainty : float, default=0.95
        Of every bound and interval, each by itself.
    suspects : int, default=20
        How many of the rows to name that are most likely wrong.
    missing : list, optional
        Further values that stand for an empty cell.
    case_sensitive : bool, default=False
        Whether classes that differ in capitals or blanks only are different.

    Returns
    -------
    AuditResult

    Examples
    --------
    >>> import pandas as pd
    >>> from transduce import audit
    >>> table = pd.DataFrame({"llm": ["yes", "no"] * 200})
    >>> table["gold"] = table["llm"].where(table.index % 10 < 2)
    >>> result = audit(table, "gold", "llm")
    >>> int(result.wrong["n_wrong"]), int(result.wrong["at_most"])
    (0, 13)
    """
    check_whole("suspects", suspects, least=0)
    question = AuditQuestion(
        target=target,
        predictions=as_columns("predictions", predictions),
        by=as_columns("by", by),
        second=second,
        seen=seen,
        random=random,
        stratum=stratum,
        tolerance=tolerance,
        relative=relative,
        certainty=certainty,
        missing=tuple(missing or ()),
        case_sensitive=case_sensitive,
    )
    check_one_column("id", id)
    source = _read_table(table)
    frame, notes = _with_checks(source, checks, id, question)
    ignore = _columns_of_question(frame, question, id)
    result = _audit_rows(frame, question, ignore, n_suspects=suspects)
    return replace(result, source=source.name, notes=[*notes, *result.notes])


def _audit_rows(
    frame: pd.DataFrame, question: AuditQuestion, ignore: list[ColumnName], *, n_suspects: int
) -> AuditResult:
    """Audit the rows of a table, of which some columns tell nothing beside the question."""
    with stage("reading"):
        columns = read_audit(frame, question)
    truth, agreement = _settle_checks(columns, question)
    with stage("bounds") as report:
        audits = _audit_groups(columns, truth, question, report)
    with stage("suspects"):
        others = OtherColumns.of(frame.drop(columns=ignore), columns.checked)
        suspects = None
        if n_suspects > 0:
            wrong = audits[None].rows.wrong
            suspects = find_suspects(columns, others, wrong, most=n_suspects)
        seen_labels = _find_seen_labels(columns, others)
    notes = _about_classes_left_out(audits[None])
    if seen_labels.all_right and not seen_labels.worse_elsewhere:
        notes.append(seen_labels.describe(way_out_of_seen()))
    return AuditResult(
        question=question,
        columns=columns,
        audits=audits,
        agreement=agreement,
        suspects=suspects,
        seen_labels=seen_labels,
        source="",
        notes=[*notes, *columns.notes],
    )


# What the labelling page and `transduce draw` write beside a target.
OF_THE_PAGE = (
    *("", LABELLED, "_by", "_answer", "_agrees", "_random"),
    *("_random_seed", "_random_stratum", "_random_probability"),
)


def _read_table(table: pd.DataFrame | str | Path | Table) -> Table:
    """Return a table of a frame or a file."""
    if isinstance(table, Table):
        return table
    if isinstance(table, pd.DataFrame):
        return Table(table, Original(), "").divided()
    return files.read(table)


def _with_checks(
    source: Table,
    checks: pd.DataFrame | str | Path | None,
    id: ColumnName | None,
    question: AuditQuestion,
) -> tuple[pd.DataFrame, list[str]]:
    """Return a table with the checks that another one holds, and notes."""
    if checks is None:
        return source.frame, list(source.notes)
    candidates = (question.target, question.second, question.seen)
    wanted = [name for name in candidates if name is not None]
    table_of_checks = _read_table(checks)
    frame, notes = join_checks(
        source.frame, table_of_checks.frame, id, wanted, missing=question.missing
    )
    return frame, [*source.notes, *table_of_checks.notes_elsewhere, *notes]


def _settle_checks(
    columns: AuditColumns, question: AuditQuestion
) -> tuple[AnyArray, Agreement | None]:
    """Return what is taken for the truth of every row, and how often two people agree."""
    if columns.second is None:
        return columns.truth, None
    differ = _find_differences(columns, question)
    both = ~pd.isna(columns.truth) & ~pd.isna(columns.second)
    agreement = Agreement(int(np.sum(both)), int(np.sum(differ)))
    truth = _labels_of_both(columns, differ)
    if pd.isna(truth).all():
        raise ValueError(
            f"Two people checked {counted(agreement.n_both, 'row')} and agree at none of them, "
            "so that no check is left to count: settle together what is right."
        )
    return truth, agreement


def _audit_groups(
    columns: AuditColumns,
    truth: AnyArray,
    question: AuditQuestion,
    report: Callable[[float], None],
) -> dict[ColumnName | None, Audit | NumberAudit]:
    """Return the audit of all rows under None, and one for each column of groups."""
    audits: dict[ColumnName | None, Audit | NumberAudit] = {}
    groups: dict[ColumnName | None, AnyArray | None] = {None: None, **columns.groups}
    for done, (name, codes) in enumerate(groups.items(), start=1):
        audits[name] = _audit(columns, truth, question, codes)
        report(done / len(groups))
    return audits


def _about_classes_left_out(audit: Audit | NumberAudit) -> list[str]:
    """Return a note on classes that are too many to get statements of their own."""
    if isinstance(audit, NumberAudit) or len(audit.classes) <= MOST_CLASSES:
        return []
    return [
        f"There are {len(audit.classes):,} different classes: shares are given of the "
        f"{MOST_CLASSES} most frequent ones."
    ]


def _find_differences(columns: AuditColumns, question: AuditQuestion) -> Mask:
    """Return at which rows (n,) two people differ who both checked them.

    Two numbers are hardly ever equal: they differ if they are further apart than the tolerance, or
    if one of them makes the prediction wrong and the other does not.
    """
    first = columns.truth
    second = columns.second
    assert second is not None
    both = ~pd.isna(first) & ~pd.isna(second)
    if not columns.numeric:
        return np.asarray(both & (first != second))
    allowed = allowed_errors(columns.predictions, question.tolerance or 0.0, question.relative)
    with np.errstate(invalid="ignore"):
        apart = ~(np.abs(first - second) <= allowed)
        wrong = [~(np.abs(truth - columns.predictions) <= allowed) for truth in (first, second)]
    return np.asarray(both & (apart | (wrong[0] != wrong[1])))


def _labels_of_both(columns: AuditColumns, differ: Mask) -> AnyArray:
    """Return what two people found: missing where they differ, either's where one looked."""
    second = columns.second
    assert second is not None
    only_second = pd.isna(columns.truth) & ~pd.isna(second)
    labels = np.where(only_second, second, columns.truth)
    if columns.numeric:
        return np.where(differ, np.nan, labels)
    agreed = labels.astype(object)
    agreed[differ] = None
    return agreed


def _audit(
    columns: AuditColumns, truth: AnyArray, question: AuditQuestion, groups: AnyArray | None
) -> Audit | NumberAudit:
    """Return the audit of all rows, and of groups if there are any."""
    rows: dict[str, Any] = {
        "by": groups,
        "strata": columns.strata,
        "drawn": columns.drawn,
        "drawn_from": columns.drawn_from,
        "certainty": question.certainty,
    }
    if not columns.numeric:
        return audit_classes(truth, columns.predictions, **rows)
    tolerance = float(question.tolerance or 0.0)
    return audit_numbers(
        truth, columns.predictions, tolerance=tolerance, relative=question.relative, **rows
    )


def _columns_of_question(
    frame: pd.DataFrame, question: AuditQuestion, id: ColumnName | None
) -> list[ColumnName]:
    """Return the columns that are part of the question, and so say nothing else of a row."""
    names: list[ColumnName | None] = [question.target, question.second, question.seen, id]
    names += [question.random, question.stratum, *question.predictions]
    stem = str(question.target).removesuffix(LABELLED)
    names += [f"{stem}{ending}" for ending in OF_THE_PAGE]
    return [name for name in frame.columns if name in names]


def _find_seen_labels(columns: AuditColumns, others: OtherColumns) -> SeenLabels:
    """Return whether the predictor seems to have seen labels that are not marked so."""
    is_open = ~columns.seen[others.rows]
    rows = others.rows[is_open]

    def make_features() -> Array | None:
        if others.features is None:
            return None
        return others.features[is_open]

    checked = columns.checked
    if columns.numeric:  # a limit that makes a prediction wrong is no number to compare
        checked = checked & np.isfinite(columns.truth)
    return find_seen_labels(
        columns.predictions[rows],
        columns.truth[rows],
        checked[rows],
        make_features,
        numeric=columns.numeric,
    )
