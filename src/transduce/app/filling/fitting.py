"""A fit to rows in memory: what is planned, fitted and calibrated, with notes on all of it."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from transduce.app.filling.copies import copies_of_features, note_on_copies, with_copies_as_groups
from transduce.app.filling.corrected_machine import CorrectedMachine, are_near
from transduce.app.filling.design_columns import bind_design
from transduce.app.filling.diagnostics import SMALL
from transduce.app.filling.features import read_features
from transduce.app.filling.given_predictions import (
    member_for_classes,
    notes_on_predictions,
    read_offset,
)
from transduce.app.filling.interval_models import HeldOutModel, IntervalModel, MachineModel
from transduce.app.filling.left_out import running_columns
from transduce.app.filling.options import Options
from transduce.app.filling.plan import NOTE_WEIGHTS, Plan, design_if_shifted, make_plan
from transduce.app.filling.sources import FrameSource
from transduce.app.filling.table_fit import TableFit, estimator_rows
from transduce.app.filling.whole_values import column_of_groups, sentence_on_groups
from transduce.app.tables.columns import Target
from transduce.app.tables.features import Features
from transduce.app.tables.notes import About, Note, notes_about
from transduce.conformal import ConformalTransducer, Exchangeability, exchangeability_test
from transduce.conformal.calibrated_answer import holding_values, name_values, with_values
from transduce.conformal.shares import ClassShares, shares_of_classes
from transduce.core.answer import Answer
from transduce.core.computing import announce_forecast, few_threads, stage
from transduce.core.guarantee import Guarantee, ShiftWarning, TooFewLabelsWarning
from transduce.core.row_order import rows_in_order
from transduce.core.types import AnyArray, Array, ColumnName, Rows
from transduce.ensemble import TransductiveBlend
from transduce.ensemble.blend_fit import MemberFailedWarning
from transduce.model_selection.estimator_kinds import last_step
from transduce.model_selection.fit_and_predict import (
    FittedEstimator,
    RawPrediction,
    answer_of,
    fit_and_predict,
    pass_on,
)
from transduce.model_selection.methods import Case
from transduce.model_selection.problem import Problem, read_problem


def fit_rows(
    rows: FrameSource,
    options: Options,
    n_outside: int = 0,
    classes: tuple[Any, ...] = (),
) -> TableFit:
    """Fit to all rows what suits them, for `n_outside` other rows, and `classes` not seen here."""
    features = read_features(rows, options)
    return fit_features(rows, features, options, n_outside, classes)


def fit_features(
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
        *_note_on_whole_values(rows, settled, fit.compared),
        *notes_about(About.METHODS, [*plan.notes, *_messages(of_methods, Warning)]),
    ]
    return replace(fit, notes=notes)


def _note_on_whole_values(
    rows: FrameSource, options: Options, compared: Exchangeability | None
) -> list[Note]:
    """Return a note on a column of which whole values were labelled, unless the verdict says it."""
    if compared is not None and compared.verdict.shifted and compared.whole:
        return []
    name = column_of_groups(rows, options)
    if name is None:
        return []
    return [Note(About.DESIGN, sentence_on_groups(name), (name,))]


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
        "has_zero": target.kind not in ("dates", "times"),
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
        compared=_name_columns(fitted.compared, rows, features, options),
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
    compared: Exchangeability | None, rows: FrameSource, features: Features, options: Options
) -> Exchangeability | None:
    """Return how rows compare, with the columns of the table in place of features."""
    if compared is None:
        return None
    running: tuple[str, ...] = ()
    whole = ""
    if compared.shifted:
        running = running_columns(rows.frame, rows.labels.missing)
        group = column_of_groups(rows, options)
        if group is not None:
            whole = sentence_on_groups(group)
    return replace(compared.named(features.origins), running=running, whole=whole)


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
    elif (
        target.task == "regression"
        and plan.model.scale == "auto"
        and not _follows_relation(prediction.fitted)
    ):
        # No interval reaches below 0 then, and it would have to be extended to such a value.
        from transduce.methods.confidence_machine.label_scales import raise_to_labels

        values = replace(values, values=raise_to_labels(values.values, target.labels))
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


def _follows_relation(fitted: FittedEstimator | None) -> bool:
    """Return whether predictions are those of a linear relation that gives all labels."""
    if fitted is None or not isinstance(fitted.estimator, TransductiveBlend):
        return False
    blend = fitted.estimator
    lines = [
        name
        for name, member in blend.estimators_.items()
        if getattr(last_step(member), "relation_", None) is not None
    ]
    return any(blend.weights_[name] == 1.0 for name in lines)


def _labels_of_values(features: Features, target: Target) -> Array:
    """Return the numbers that values are predicted from: far ones are drawn in, as in the machine.

    An interval is extended to its value, so one slip of the pen among the labels must not move the
    values either. A far number that a linear relation gives with all the others is no slip.
    """
    from transduce.methods.confidence_machine.far_labels import draw_in_known
    from transduce.model_selection.linear import find_relation

    labels = target.labels
    drawn = draw_in_known(labels)
    known = np.isfinite(labels)
    if np.array_equal(drawn[known], labels[known]):
        return labels
    if find_relation(features.matrix[known], labels[known]) is not None:
        return labels
    return drawn


def _predict_values(
    method: Any, features: Features, target: Target
) -> tuple[Problem, RawPrediction]:
    """Return what a method that is fitted to all labels predicts at the unlabelled rows."""
    labels_of_values = target.labels
    if target.task == "regression":
        labels_of_values = _labels_of_values(features, target)
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
