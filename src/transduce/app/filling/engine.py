"""Filling the empty cells of one column of a table: draw, plan, fit, calibrate, answer."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack, overload

import numpy as np
import pandas as pd

from transduce.app.filling.design_columns import bind_design
from transduce.app.filling.diagnostics import Diagnosis
from transduce.app.filling.features import read_features
from transduce.app.filling.fitting import fit_features
from transduce.app.filling.found_draws import use_draw
from transduce.app.filling.joined_answers import join_answers
from transduce.app.filling.later_rows import FittedFill
from transduce.app.filling.options import DEFAULTS, FIT, OPTIONS, FillOptions, Options, described
from transduce.app.filling.part_sources import DaskSource, PartSource, is_dask
from transduce.app.filling.plan import is_sampled
from transduce.app.filling.result import FillResult, Frame
from transduce.app.filling.results import FillResults
from transduce.app.filling.sample_fit import fit_sample
from transduce.app.filling.seen_rows import AllRows, OtherRows, SampledRows, SampleOfParts
from transduce.app.filling.sources import FrameSource, find_target
from transduce.app.tables.column_names import check_columns
from transduce.app.tables.files import read
from transduce.app.tables.formats import Table
from transduce.app.tables.notes import About, Note
from transduce.app.tables.row_names import naming_rows
from transduce.core.answer import Answer
from transduce.core.checks import WrongTypeError
from transduce.core.computing import stage
from transduce.core.findings import Limits
from transduce.core.types import AnyArray, ColumnName
from transduce.core.words import quoted

BATCH = 50_000
EACH_BY_ITSELF = (
    "What is guaranteed holds for each filled column by itself, not for all of them together."
)


@overload
def fill(
    table: str | Path | Table, target: list[ColumnName], **given: Unpack[FillOptions]
) -> FillResults[pd.DataFrame]: ...


@overload
def fill(
    table: str | Path | Table, target: ColumnName | None = None, **given: Unpack[FillOptions]
) -> FillResult[pd.DataFrame]: ...


@overload
def fill(
    table: Frame, target: list[ColumnName], **given: Unpack[FillOptions]
) -> FillResults[Frame]: ...


@overload
def fill(
    table: Frame, target: ColumnName | None = None, **given: Unpack[FillOptions]
) -> FillResult[Frame]: ...


@described(FIT)
def fill(
    table: Any,
    target: ColumnName | list[ColumnName] | None = None,
    **given: Unpack[FillOptions],
) -> FillResult | FillResults:
    """Fill the empty cells of a column, and say what is guaranteed.

    Parameters
    ----------
    table : pandas, polars or Dask DataFrame, str or Path, or Table
        All rows; columns of any kind. A path names a file, which is read whole: CSV, TSV, Parquet,
        Feather, Excel, JSON or JSON lines. A `Table` is one read from a file by
        `transduce.app.tables.files.read`.
    target : str or list of str, optional
        The column to fill; by default the only one that has empty cells. If several are given, none
        is used as a feature for another, and each option applies where it fits.
    OPTIONS

    Returns
    -------
    FillResult or, of a list of columns, FillResults
        ``frame``, the table with the columns ``<target>_filled``, ``_lower``, ``_upper`` and
        ``_width_reduction`` (or ``_set``, ``_probability`` and ``_confidence``) and ``_status``
        after its own, lazy for a Dask frame; ``answer``, ``guarantee``, ``report()``, ``json()``.
        What does not touch the fit is asked of it: ``table(minimum=0)``,
        ``guarantee_at(certainty=0.99)``. Warnings of the methods are in ``notes``.

    Examples
    --------
    >>> from transduce import fill
    >>> from transduce.datasets import load_houses
    >>> result = fill(load_houses()[0], "price", method="ridge", guarantee="column")
    >>> result.frame.columns[-6:].tolist()
    ['price', 'price_filled', 'price_lower', 'price_upper', 'price_width_reduction', 'price_status']
    """
    names = target if isinstance(target, list) else [target]
    if not all(isinstance(name, Hashable) for name in names):
        raise WrongTypeError(
            f"target is the name of a column, or a list of names; got {quoted(target)}."
        )
    options = Options.read(given)
    if isinstance(table, str | Path):
        table = read(table)
    if isinstance(target, list):
        return fill_targets(table, target, options)
    if target is None:
        if is_dask(table):
            raise TypeError("Name the column to fill: the cells of a Dask frame are not looked at.")
        target = find_target(table, options)
    return fill_table(table, target, options)


def fill_targets(table: Any, targets: Sequence[ColumnName], options: Options) -> FillResults:
    """Fill several columns: none is a feature of another, and options go where they suit."""
    if not targets or len(set(targets)) < len(targets):
        raise ValueError(f"target names columns to fill, each once; got {quoted(targets)}.")
    tasks = dict.fromkeys(targets, "")
    if not is_dask(table):
        tasks = {name: FrameSource.read(table, name, options).labels.task for name in targets}
    results = {}
    for name in targets:
        others = [other for other in targets if other != name]
        other_tasks = set(tasks.values()) - {tasks[name]}
        unsuited = {
            word: DEFAULTS[word]
            for word, described in OPTIONS.items()
            if described.kind.task in other_tasks
        }
        suited = replace(options, ignore=[*options.ignore, *others], **unsuited)
        result = fill_table(table, name, suited)
        if others:
            result = _note_others(result, name, others)
        results[name] = result
    return FillResults(results, options)


def _note_others(result: FillResult, name: ColumnName, others: list[ColumnName]) -> FillResult:
    """Return a result that says which other columns are filled too."""
    names = ", ".join(map(repr, others))
    about_others = f"{names} are filled too, and are no features of {name!r}."
    if len(others) == 1:
        about_others = f"{names} is filled too, and is no feature of {name!r}."
    notes = [
        Note(About.COLUMNS, about_others, tuple(others)),
        Note(About.ANSWERS, EACH_BY_ITSELF),
    ]
    return replace(result, fit=result.fit.with_notes(notes))


def fill_table(table: Any, target: ColumnName, options: Options) -> FillResult:
    """Fill a column, with options that were read, questions to the result among them."""
    if is_dask(table):
        options.check_sampled()
        dask_source = DaskSource(table, parts=table.to_delayed()).divided()
        settled = options.below(dask_source.columns, target)
        check_columns(pd.DataFrame(columns=dask_source.columns), settled.columns(target))
        return fill_parts(dask_source, target, settled)
    source = FrameSource.read(table, target, options)
    options = options.below(source.frame.columns, target)
    source, options = use_draw(source, options)
    settled = options.for_labels(source.labels)
    if is_sampled(source, settled):
        return _fill_sampled_rows(source, target, options)
    with naming_rows(source.row_names):
        return _fill_all_rows(source, options, settled)


def _fill_all_rows(source: FrameSource, options: Options, settled: Options) -> FillResult:
    """Fit to all rows, in an order that their contents decide, and answer in that of the table."""
    # What is drawn by place, such as folds, is then the same however the rows of the table are
    # sorted; see `tables/row_hashes.py`, which also says why guarantees stay. Columns are read, and
    # rows named in messages, in the order of the table.
    bind_design(settled.design, source.labels.missing, source.frame)
    features = read_features(source, settled)
    order = source.order_by_content(settled)
    if settled.labels is not None:
        settled = replace(settled, labels=settled.design.take_rows(order))
    fit = fit_features(source.at(order), features.at(order), settled, counts_copies_once=True)
    answer = replace(fit.answer, rows=order[fit.answer.rows])
    answer = answer.at(np.argsort(answer.rows))
    seen = AllRows(source, order, partial(_fit_later, source))
    return FillResult(fit, seen, options, source.labels, answer, Diagnosis(fit, settled))


def fit_fill(
    table: Any,
    target: ColumnName,
    *,
    prefer: str = "",
    limits: Limits | None = None,
    **options: Any,
) -> FittedFill:
    """Fit a model of one column that answers rows which come later; some labels calibrate it.

    Parameters
    ----------
    table : pandas or polars DataFrame, or Table
        Rows with and without a label.
    target : str
        The column.
    prefer : {"point", "comma", "either"}, optional
        The decimal sign of numbers in text, in case of doubt; that of the table by default.
    limits : Limits, optional
        Limits among the labels of a larger table, of which these rows are a sample.
    **options
        As those of `fill`, and of `FillResult.with_options`.

    Returns
    -------
    FittedFill
        ``new_columns(rows)`` gives the new columns of later rows, and ``guarantee_of_later(n)``
        says what holds for n of them, if rows were labelled at random, and later rows are like
        those of the table.

    Examples
    --------
    >>> price = [2.0 * n if n % 3 else None for n in range(200)]
    >>> table = pd.DataFrame({"size": range(200), "price": price})
    >>> fitted = fit_fill(table, "price", method="ridge")
    >>> fitted.new_columns(pd.DataFrame({"size": [12.5]}))["price_filled"].round().tolist()
    [25.0]
    """
    settings = Options.read(options, questions=True)
    source = FrameSource.read(table, target, settings)
    settings = settings.below(source.frame.columns, target)
    source = replace(source, prefer=prefer or source.prefer)
    return _fit_later(source, settings, limits)


def _fit_later(source: FrameSource, options: Options, limits: Limits | None = None) -> FittedFill:
    """Fit a model that answers rows which come later."""
    options.check_sampled()
    return fit_sample(source, source.labels.name, options, limits).later


def fill_parts(source: PartSource, target: ColumnName, options: Options) -> FillResult:
    """Fit to a sample of a table in parts, whose other rows are answered part by part, later."""
    sample = fit_sample(source, target, options)
    totals = {
        "rows": sample.roles.n_labelled + sample.roles.n_unlabelled,
        "labelled": sample.roles.n_labelled,
        "unlabelled": sample.roles.n_unlabelled,
    }
    # An answer at no row knows all classes, those with no label in the fit among them.
    no_rows = sample.later.raw_answer(sample.fit.frame[:0])
    answer = join_answers([sample.fit.answer, no_rows], by_class=options.by_class)
    others = OtherRows(sample.later, sample.n_others, 0)
    extremes = sample.extremes.known
    seen = SampleOfParts(source, sample.fit.frame, sample.roles, others, totals, extremes)
    return FillResult(sample.fit, seen, options, sample.labels, answer, sample.diagnosis)


def _fill_sampled_rows(source: FrameSource, target: ColumnName, options: Options) -> FillResult:
    """Fit to a sample of a table in memory, and answer its other rows one by one."""
    sample = fit_sample(source, target, options)
    roles = sample.roles
    order = roles.seen[:, 1]
    rows = np.setdiff1d(np.flatnonzero(source.labels.missing), order)
    answers = _answer_others(sample.later, options.clean(source.frame), rows)
    inside = replace(sample.fit.answer, rows=order[sample.fit.answer.rows])
    answer = join_answers([inside, *answers], by_class=options.by_class)
    index = source.frame.index
    if options.id is not None:
        index = pd.Index(source.frame[options.id])
    answer = replace(answer, index=index[answer.rows])
    n_unreached = int(sum((part.status == "unreached").sum() for part in answers))
    others = OtherRows(sample.later, len(rows) - n_unreached, n_unreached)
    seen = SampledRows(source, order, roles, others)
    return FillResult(sample.fit, seen, options, source.labels, answer, sample.diagnosis)


def _answer_others(later: FittedFill, frame: pd.DataFrame, rows: AnyArray) -> list[Answer]:
    """Return the answers at rows of a table that the fit did not see, in batches."""
    answers = []
    with stage("other rows") as report:
        for start in range(0, len(rows), BATCH):
            batch = rows[start : start + BATCH]
            answers.append(later.raw_answer(frame.iloc[batch], batch))
            report((start + len(batch)) / len(rows))
    return answers
