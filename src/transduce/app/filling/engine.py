"""Filling the empty cells of one column of a table: draw, plan, fit, calibrate, answer."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack, overload

import numpy as np
import pandas as pd

from transduce.app.filling.copies import (
    copies_of_features,
    note_on_copies,
    with_copies_as_groups,
)
from transduce.app.filling.corrected_machine import CorrectedMachine, are_near
from transduce.app.filling.design_columns import bind_design
from transduce.app.filling.diagnostics import SMALL, Diagnosis
from transduce.app.filling.features import read_features
from transduce.app.filling.found_draws import use_draw
from transduce.app.filling.given_predictions import (
    member_for_classes,
    notes_on_predictions,
    read_offset,
)
from transduce.app.filling.interval_models import HeldOutModel, IntervalModel, MachineModel
from transduce.app.filling.later_rows import FittedFill
from transduce.app.filling.left_out import running_columns
from transduce.app.filling.options import DEFAULTS, FIT, OPTIONS, FillOptions, Options, described
from transduce.app.filling.part_sources import DaskSource, PartSource, is_dask
from transduce.app.filling.plan import (
    NOTE_WEIGHTS,
    Plan,
    classes_of_sample,
    design_if_shifted,
    is_sampled,
    make_plan,
    options_of_sample,
)
from transduce.app.filling.result import FillResult, Frame
from transduce.app.filling.results import FillResults
from transduce.app.filling.seen_rows import AllRows, OtherRows, SampledRows, SampleOfParts
from transduce.app.filling.sources import FrameSource, Source, draw, find_target
from transduce.app.filling.table_fit import TableFit, estimator_rows
from transduce.app.tables.columns import Target, check_columns, limits_in
from transduce.app.tables.features import Features
from transduce.app.tables.files import read
from transduce.app.tables.formats import Table
from transduce.app.tables.notes import About, Note, notes_about
from transduce.app.tables.row_draws import PartScan, RowDraw
from transduce.app.tables.row_names import naming_rows
from transduce.conformal import ConformalTransducer, Exchangeability, exchangeability_test
from transduce.conformal.calibrated_answer import holding_values, name_values, with_values
from transduce.conformal.shares import ClassShares, shares_of_classes
from transduce.core.answer import Answer, LevelAnswer, Regions
from transduce.core.checks import WrongTypeError
from transduce.core.computing import announce_forecast, few_threads, stage
from transduce.core.findings import Limits
from transduce.core.guarantee import Guarantee, ShiftWarning, TooFewLabelsWarning
from transduce.core.row_order import rows_in_order
from transduce.core.types import AnyArray, Array, ColumnName, Rows
from transduce.core.words import quoted
from transduce.ensemble.blend_fit import MemberFailedWarning
from transduce.model_selection.fit_and_predict import (
    RawPrediction,
    answer_of,
    fit_and_predict,
    pass_on,
)
from transduce.model_selection.methods import Case
from transduce.model_selection.problem import Problem, read_problem

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
    fit = _fit_features(source.at(order), features.at(order), settled, counts_copies_once=True)
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


# ---- a fit to all rows


def fit_rows(
    rows: FrameSource,
    options: Options,
    n_outside: int = 0,
    classes: tuple[Any, ...] = (),
) -> TableFit:
    """Fit to all rows what suits them, for `n_outside` other rows, and `classes` not seen here."""
    features = read_features(rows, options)
    return _fit_features(rows, features, options, n_outside, classes)


def _fit_features(
    rows: FrameSource,
    features: Features,
    options: Options,
    n_outside: int = 0,
    classes: tuple[Any, ...] = (),
    *,
    counts_copies_once: bool = False,
) -> TableFit:
    """Fit to all rows, whose features are known, what suits them.

    Copies may count once where no other rows are to be answered by the fit.
    """
    offset = read_offset(rows.frame, rows.labels, options)
    copies = copies_of_features(features, rows.labels)
    settled = options
    if counts_copies_once:
        settled = with_copies_as_groups(options, copies)
    with few_threads(len(rows.frame), SMALL):
        plan, compared = _plan_fit(rows, features, settled, n_outside, classes)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit = _fit_plan(rows, features, plan, settled, compared, offset)
    for message in _messages(caught, MemberFailedWarning):
        warnings.warn(message, MemberFailedWarning, stacklevel=2)
    # The guarantee itself says that labels are few, and that rows differ.
    of_methods = [
        warning
        for warning in caught
        if not issubclass(warning.category, TooFewLabelsWarning | ShiftWarning)
    ]
    on_predictions = notes_on_predictions(rows.frame, rows.labels, features, options, fit.offset)
    notes = [
        *rows.notes,
        *notes_about(About.PREDICTIONS, on_predictions),
        *features.notes,
        *_about_features(features),
        *note_on_copies(copies, features, grouped=settled is not options),
        *notes_about(About.METHODS, [*plan.notes, *_messages(of_methods, Warning)]),
    ]
    return replace(fit, notes=notes)


def _messages(caught: list[warnings.WarningMessage], category: type[Warning]) -> list[str]:
    """Return the messages of warnings of a category, each once."""
    of_category = [warning for warning in caught if issubclass(warning.category, category)]
    return list(dict.fromkeys(str(warning.message) for warning in of_category))


def _places_of_views(
    views: list[list[ColumnName]], origins: list[ColumnName]
) -> tuple[tuple[int, ...], ...] | None:
    """Return the features of each view, by their positions; None if there are no views."""
    if not views:
        return None
    places = []
    for columns in views:
        of_view = tuple(place for place, origin in enumerate(origins) if origin in columns)
        if not of_view:
            names = ", ".join(map(repr, columns))
            raise ValueError(f"The view {names} has no features: leave it out, or add a column.")
        places.append(of_view)
    return tuple(places)


def _plan_fit(
    rows: FrameSource,
    features: Features,
    options: Options,
    n_outside: int,
    classes: tuple[Any, ...],
) -> tuple[Plan, Exchangeability | None]:
    """Return what is to be fitted, and how rows compare; if they differ, labels are held out."""
    target = rows.labels
    n_classes = 0
    if target.task == "classification":
        n_classes = len(set(target.known.tolist()))
    case = Case(
        target.task,
        len(rows.frame),
        target.n_labels,
        features.matrix.shape[1],
        n_classes,
        standardize=False,
        random_state=options.random_state,
        device=options.device,
        views=_places_of_views(options.views, features.origins),
    )
    design = bind_design(options.design, target.missing, rows.frame)
    more_members = member_for_classes(rows.frame, target, features, options)
    how: dict[str, Any] = {
        "n_outside": n_outside,
        "classes": classes,
        "more_members": more_members,
    }
    plan = make_plan(case, options, design, **how)
    if plan.holds_out or not options.design.testable:
        return plan, None
    with stage("exchangeability"):
        compared = exchangeability_test(
            features.matrix, ~target.missing, random_state=options.random_state
        )
    reweighed = design_if_shifted(case.n_labels, options)
    if compared.shifted and reweighed is not None:
        bound = reweighed.bind(target.missing)
        plan = make_plan(case, options, bound, **how)
        plan = replace(plan, notes=[NOTE_WEIGHTS, *plan.notes])
    return plan, compared


@dataclass(frozen=True, eq=False)
class _Fitted:
    """What a plan fitted: intervals or sets, and the values in them."""

    model: IntervalModel
    answer: Answer
    values_model: Any
    order: AnyArray  # rows that the values come from
    compared: Exchangeability | None
    shares: ClassShares | None


def _fit_plan(
    rows: FrameSource,
    features: Features,
    plan: Plan,
    options: Options,
    compared: Exchangeability | None,
    offset: Array | None,
) -> TableFit:
    """Fit the models of intervals and of values.

    An offset is what the fit corrects, if labels are near it.
    """
    frame = rows.frame
    target = rows.labels
    used = None
    if offset is not None and _is_near(offset, plan, features, target):
        used = offset
    fitted_target = target
    if used is not None:
        fitted_target = replace(target, labels=target.labels - used)
    index = frame.index
    if options.id is not None:
        index = pd.Index(frame[options.id])
    y = pd.Series(fitted_target.labels, index=index, name=target.name)
    X = estimator_rows(features.encoder, frame, options, features.matrix)
    began = time.perf_counter()
    announce_forecast(max(plan.seconds, 1.0))
    if plan.holds_out:
        with stage("answers"), rows_in_order():
            transducer = plan.model.fit(X, y)
        fitted = _read_held_out(transducer, options, used)
    else:
        with stage("answers"), rows_in_order():
            machine = _fit_machine(plan.model, X, y, target, offset)
        fitted = _read_machine(machine, plan, features, fitted_target, options, used)
        fitted = replace(fitted, compared=compared)
    return TableFit(
        frame=frame,
        target=target,
        features=features,
        X=X,
        model=fitted.model,
        values_model=fitted.values_model,
        order=fitted.order,
        answer=fitted.answer,
        compared=_name_columns(fitted.compared, rows, features),
        seconds=time.perf_counter() - began,
        left_out=plan.left_out,
        notes=[],
        shares=fitted.shares,
        offset=used,
    )


def _fit_machine(
    machine: Any,
    X: Rows,
    y: pd.Series,
    target: Target,
    offset: Array | None,
) -> Any:
    """Return the fitted machine; of labels that may be corrected, the machine on both."""
    if offset is None:
        return machine.fit(X, y)
    return CorrectedMachine.fit(machine, X, target.labels, offset)


def _is_near(offset: Array, plan: Plan, features: Features, target: Target) -> bool:
    """Return whether values are better fitted to labels minus predictions of them.

    Only labels that calibrate nothing have a say, so that the guarantee stays as it is.
    """
    rows = np.flatnonzero(~target.missing)
    if plan.holds_out:
        rows = plan.model.taught_rows(features.matrix, target.labels)
    return are_near(offset[rows], target.labels[rows].astype(float))


def _name_columns(
    compared: Exchangeability | None, rows: FrameSource, features: Features
) -> Exchangeability | None:
    """Return how rows compare, with the columns of the table in place of features."""
    if compared is None:
        return None
    running: tuple[str, ...] = ()
    if compared.shifted:
        running = running_columns(rows.frame, rows.labels.missing)
    return replace(compared.named(features.origins), running=running)


def _read_held_out(
    estimator: ConformalTransducer, options: Options, offset: Array | None
) -> _Fitted:
    """Return calibrated intervals or sets, with the values of a fit to all labels.

    Labels were corrected by an offset (n,), if there is one.
    """
    answer = estimator.answer_
    if offset is not None:
        answer = answer.shifted(offset[answer.rows])
    return _Fitted(
        model=HeldOutModel(estimator, options.level),
        answer=answer,
        values_model=estimator.refitted_,
        order=estimator.fitted_rows_,
        compared=estimator.exchangeability_,
        shares=estimator.class_shares_,
    )


def _read_machine(
    machine: Any,
    plan: Plan,
    features: Features,
    target: Target,
    options: Options,
    offset: Array | None,
) -> _Fitted:
    """Return intervals or sets of the confidence machine, with values of the method asked for.

    Labels of the target were corrected by an offset (n,), if there is one.
    """
    all_rows = np.arange(len(target.labels))
    if plan.values is None:
        answer = holding_values(machine.answer_)
        model = MachineModel.of(machine, None)
        chosen = machine.chosen if isinstance(machine, CorrectedMachine) else machine
        return _Fitted(model, answer, chosen, all_rows, None, None)

    problem, prediction = _predict_values(plan.values, features, target)
    values = answer_of(prediction, problem, Guarantee("none"))
    if offset is not None:
        values = values.shifted(offset[values.rows])
    answer = machine.answer_
    shares = None
    if options.design.chosen_by_class:
        shares = _estimate_shares(problem, prediction, options)
        values = _with_shares(values, problem, shares.applied(prediction))
        # Classes by which labels were chosen are all known.
        further = tuple(replace(other, unseen=None) for other in answer.further)
        answer = replace(answer, unseen=None, p_unseen=None, further=further)
    answer = with_values(
        answer,
        values.values,
        values.status,
        values.standard_errors,
        values.probabilities,
    )
    assert prediction.fitted is not None
    model = MachineModel.of(machine, shares)
    return _Fitted(model, answer, prediction.fitted.estimator, all_rows, None, shares)


def _predict_values(
    method: Any, features: Features, target: Target
) -> tuple[Problem, RawPrediction]:
    """Return what a method that is fitted to all labels predicts at the unlabelled rows."""
    labels_of_values = target.labels
    if target.task == "regression":
        # As in the machine: an interval is extended to its value, so one slip of the pen among the
        # labels must not move the values either.
        from transduce.methods.confidence_machine.far_labels import draw_in_known

        labels_of_values = draw_in_known(target.labels)
    with stage("values"), rows_in_order():
        problem = read_problem(features.matrix, labels_of_values, task=target.task)
        labels = np.arange(len(problem.labels))
        prediction = fit_and_predict(method, problem, labels, problem.sample.unlabelled)
        pass_on(prediction.notes)
    return problem, prediction


def _with_shares(values: Answer, problem: Problem, reweighed: RawPrediction) -> Answer:
    """Return predicted classes, of which the probabilities are adjusted to shares of classes."""
    return replace(
        values,
        values=name_values(reweighed, problem.classes),
        status=reweighed.status,
        probabilities=reweighed.probabilities,
    )


def _estimate_shares(problem: Problem, prediction: RawPrediction, options: Options) -> ClassShares:
    """Return the shares of the classes among the unlabelled rows, with no label held out."""
    none_held_out = np.zeros(len(problem.labels), dtype=bool)
    declared = options.design.given_shares(problem.classes)
    random = np.random.RandomState(options.random_state)
    return shares_of_classes(problem, none_held_out, prediction, prediction, declared, random)


def _about_features(features: Features) -> list[Note]:
    """Return a note on columns that were dropped unasked."""
    if not features.dropped:
        return []
    names = [f"{name!r} ({kind})" for name, kind in features.dropped.items()]
    return [Note(About.COLUMNS, f"Left out: {', '.join(names)}.", tuple(features.dropped))]


# ----------------------------------------------------------------------------- a fit to a sample


@dataclass(frozen=True, eq=False)
class SampleFit:
    """A fit to a sample of a table, calibrated for all other rows."""

    fit: TableFit
    later: FittedFill  # answers rows that the fit did not see
    roles: RowDraw  # which rows were drawn for what
    labels: Target  # of the sample
    extremes: Target  # the least and the greatest label of the whole table; none of classes
    diagnosis: Diagnosis

    @property
    def n_others(self) -> int:
        """How many unlabelled rows the fit did not see."""
        return self.roles.n_unlabelled - len(self.roles.sampled)


def fit_sample(
    source: Source, target: ColumnName, options: Options, limits: Limits | None = None
) -> SampleFit:
    """Fit to a sample of a table, and calibrate the fit for all other rows.

    `limits` are those of the labels of the whole table.
    """
    with stage("reading"):
        scans = source.scan(target, options)
        roles = draw(scans, target, options)
    with stage("sample"):
        inside, held = source.take(roles, target, options)
    labels = _labels_of_sample(inside.labels, scans, limits, words=source.words)
    settled = options.for_labels(labels, held.labels)
    extremes = _read_extremes(labels, scans)
    options.check_labels(extremes)
    classes = classes_of_sample(labels, held.labels, options)
    rows = replace(inside, frame=inside.frame.reset_index(drop=True), labels=labels)
    n_others = roles.n_unlabelled - len(roles.sampled)
    with naming_rows(source.names_of_sample(roles)):
        fit = fit_rows(rows, options_of_sample(labels, settled), n_others, classes)
    diagnosis = Diagnosis(fit, settled)
    later = FittedFill.calibrate(fit, diagnosis.calibration, held, options)
    return SampleFit(fit, later, roles, labels, extremes, diagnosis)


def _read_extremes(labels: Target, scans: list[PartScan]) -> Target:
    """Return the least and the greatest label of all parts, read as the sample; none of classes."""
    cells: list[Any] = []
    if labels.task == "regression":
        cells = [cell for scan in scans for cell in scan.cells]
    labels_of_table = labels.read(
        pd.DataFrame({labels.name: pd.Series(cells, dtype=object).infer_objects()})
    )
    numbers = labels_of_table.known.astype(float)
    numbers = numbers[np.isfinite(numbers)]
    if len(numbers):
        numbers = np.array([numbers.min(), numbers.max()])
    return replace(labels_of_table, labels=numbers, missing=np.zeros(len(numbers), dtype=bool))


def _labels_of_sample(
    labels: Target, scans: list[PartScan], limits: Limits | None, *, words: bool
) -> Target:
    """Return the labels of a sample, read as those of the whole table with all its limits."""
    if limits is None and labels.task == "regression":
        texts = sum((Counter(scan.limits) for scan in scans), Counter[str]())
        limits = limits_in(texts, labels.spelling)
    spelling = replace(labels.spelling, words=words)
    return replace(labels, limits=limits or Limits(), spelling=spelling)


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


# Fields of an answer with an entry for each row.
BY_ROW = (
    "values",
    "status",
    "confidence",
    "credibility",
    "standard_errors",
    "unseen",
    "p_unseen",
    "p_values",
    "probabilities",
    "label_sets",
)


def join_answers(parts: list[Answer], *, by_class: bool = False) -> Answer:
    """Return several answers of one table as one, in the order of its rows."""
    classes = parts[-1].classes
    if classes is not None:
        parts = [_with_classes(part, classes, by_class) for part in parts]
    rows = np.concatenate([part.rows for part in parts])
    order = np.argsort(rows, kind="stable")
    joined: dict[str, Any] = {}
    for name in BY_ROW:
        entries = [getattr(part, name) for part in parts]
        if all(entry is not None for entry in entries):
            joined[name] = np.concatenate(entries)[order]
    regions = _join_regions([part.regions for part in parts])
    if regions is not None:
        joined["regions"] = regions[order]
    joined["further"] = tuple(
        _join_levels(list(levels)).at(order)
        for levels in zip(*(part.further for part in parts), strict=True)
    )
    return Answer(
        rows=rows[order],
        guarantee=parts[0].guarantee,
        classes=classes,
        diagnostics=parts[0].diagnostics,
        **joined,
    )


def _join_regions(parts: Sequence[Regions | None]) -> Regions | None:
    """Return regions of several answers one after another; None of classes."""
    regions = [part for part in parts if part is not None]
    if len(regions) < len(parts):
        return None
    return Regions.concatenate(regions)


def _join_levels(parts: Sequence[LevelAnswer]) -> LevelAnswer:
    """Return what several answers say at one further level, one after another."""
    sets = [part.label_sets for part in parts if part.label_sets is not None]
    unseen = [part.unseen for part in parts if part.unseen is not None]
    return LevelAnswer(
        parts[0].level,
        _join_regions([part.regions for part in parts]),
        np.concatenate(sets) if len(sets) == len(parts) else None,
        np.concatenate(unseen) if len(unseen) == len(parts) else None,
    )


def _with_classes(part: Answer, classes: AnyArray, by_class: bool) -> Answer:
    """Return an answer with columns for all classes; one that its fit did not know has no label."""
    if part.classes is None or len(part.classes) == len(classes):
        return part
    places = np.searchsorted(classes, part.classes)

    def widen(numbers: Any, absent: Any) -> Any:
        if numbers is None:
            return None
        wide = np.empty((len(numbers), len(classes)), dtype=numbers.dtype)
        wide[:] = np.reshape(absent, (-1, 1))
        wide[:, places] = numbers
        return wide

    p_absent: Any = part.p_unseen
    in_set: Any = part.unseen
    if by_class:
        p_absent = 1.0
        in_set = True
    return replace(
        part,
        classes=classes,
        p_values=widen(part.p_values, p_absent),
        probabilities=widen(part.probabilities, 0.0),
        label_sets=widen(part.label_sets, in_set),
        further=tuple(
            replace(other, label_sets=widen(other.label_sets, True if by_class else other.unseen))
            for other in part.further
        ),
    )
