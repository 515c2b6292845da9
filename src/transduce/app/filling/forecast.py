"""What `fill` will guarantee of a table, told before any fit.

The page, the command line and the labelling page ask here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from transduce.app.filling.copies import copies_of_rows, with_copies_as_groups
from transduce.app.filling.options import Options
from transduce.app.filling.plan import (
    asks_machine,
    classes_of_sample,
    count_held_out,
    design_if_shifted,
    is_sampled,
    machine_by_class,
    options_of_sample,
)
from transduce.app.filling.sources import FrameSource, draw
from transduce.app.tables.columns import Target
from transduce.app.tables.row_draws import RowDraw
from transduce.conformal.calibrated import CalibratedTable
from transduce.conformal.calibrated_guarantee import bound_together
from transduce.conformal.designs import BoundDesign, BoundDrawn
from transduce.conformal.forecast import (
    ROUNDED,
    SHIFTED,
    UNEVEN,
    Contingency,
    GuaranteeForecast,
    forecast_calibrated,
    in_order,
    refused,
    table_outside_before_fit,
    without_fit,
)
from transduce.conformal.outside import beside_rows
from transduce.core.assumptions import (
    BY_CLASS,
    CHANCE,
    NOT_FOR_LATER,
    SEEN,
)
from transduce.core.guarantee import CountBound, Guarantee, too_few_labels
from transduce.core.ranks import fewest_calibration
from transduce.core.row_order import rows_in_order
from transduce.core.types import About, AnyArray
from transduce.core.validation import class_codes
from transduce.model_selection.methods import Case
from transduce.model_selection.problem import Problem, read_problem

ABOUT: dict[str, About] = {"regression": "interval", "classification": "set"}


def forecast_guarantee(source: FrameSource, options: Options) -> GuaranteeForecast:
    """Return what `fill` will guarantee of a table, with these labels and options.

    Parameters
    ----------
    source : FrameSource
        The table and its labels, as ``FrameSource.read(table, target, options)`` reads them.
    options : Options
        What is asked for.

    Returns
    -------
    GuaranteeForecast
        The guarantee as `fill` will give it, without what rests on predictions; why `fill` will
        refuse, if it will; and what holds instead if a test finds, say, that labelled and
        unlabelled rows differ.

    Examples
    --------
    >>> from transduce.datasets import load_houses
    >>> options = Options.read({"guarantee": "column"})
    >>> forecast = forecast_guarantee(FrameSource.read(load_houses()[0], "price", options), options)
    >>> forecast.guarantee.kind, forecast.n_calibration, forecast.bounds_column
    ('exact', 59, True)
    """
    labels = source.labels
    try:
        settled = options.for_labels(labels)
        if is_sampled(source, settled):
            forecast = _forecast_sampled(source, options)
        else:
            settled = with_copies_as_groups(settled, copies_of_rows(source, settled))
            order = source.order_by_content(settled)  # in which `fill` holds labels out
            design = settled.design.bind(labels.missing, source.frame).take_rows(order)
            forecast = forecast_rows(labels.at(order), settled, design)
    except ValueError as error:
        return refused(ABOUT[labels.task], options.level, str(error))
    return _with_limits(forecast, options, labels)


def forecast_rows(
    labels: Target,
    options: Options,
    design: BoundDesign,
    *,
    known: tuple[Any, ...] = (),
) -> GuaranteeForecast:
    """Return what a fit to all rows will guarantee, or raise a ValueError as that fit will."""
    problem = read_labels(labels, known)
    n_classes = len(problem.class_sizes)
    case = Case(labels.task, len(labels.labels), labels.n_labels, 0, n_classes)
    n_held_out = count_held_out(case, options, design)
    if asks_machine(options, design, n_held_out):
        forecast = _forecast_machine(problem, options, design)
    else:
        forecast = _forecast_held_out(problem, options, design)
    return map_guarantees(forecast, lambda guarantee: settle(guarantee, labels))


def read_labels(labels: Target, known: tuple[Any, ...] = ()) -> Problem:
    """Return the labels of a table without its features.

    `known` are classes that may have no label.
    """
    no_features = np.empty((len(labels.labels), 0))
    with rows_in_order():
        return read_problem(no_features, labels.labels, task=labels.task, known=known)


def settle(guarantee: Guarantee, labels: Target) -> Guarantee:
    """Return a guarantee as the number of labels, and how the column was read, leave it."""
    settled = guarantee.decided_by(labels.decisive)
    least = fewest_calibration(guarantee.confidence or 0.0)
    if labels.n_labels >= least:
        return settled
    return too_few_labels(settled, labels.n_labels, least)


def map_guarantees(forecast: GuaranteeForecast, change: Any) -> GuaranteeForecast:
    """Return a forecast with each of its guarantees changed."""
    changed = [
        replace(contingency, guarantee=change(contingency.guarantee))
        for contingency in forecast.contingencies
    ]
    guarantee = change(forecast.guarantee)
    return replace(forecast, guarantee=guarantee, contingencies=tuple(changed))


def _with_limits(
    forecast: GuaranteeForecast, options: Options, labels: Target
) -> GuaranteeForecast:
    """Return a forecast for labels some of which are detection limits."""
    limits = options.limits_with(labels.limits)
    return map_guarantees(forecast, lambda guarantee: guarantee.limited(limits))


def forecast_draw(labels: Target, rows: AnyArray, options: Options) -> GuaranteeForecast:
    """Return what `fill` will guarantee once some drawn rows are all labelled.

    The other labels teach.
    """
    drawn = np.isin(np.arange(len(labels.labels)), rows)
    values = labels.labels.copy()
    values[drawn] = labels.known[0]  # any label: none of them changes what is guaranteed
    filled_in = replace(labels, labels=values, missing=labels.missing & ~drawn)
    design = BoundDrawn.of_rows(drawn)
    try:
        return forecast_rows(filled_in, replace(options, labels=design.spec), design)
    except ValueError as error:
        return refused(ABOUT[labels.task], options.level, str(error))


# ---- a fit to all rows


def _forecast_machine(problem: Problem, options: Options, design: BoundDesign) -> GuaranteeForecast:
    """Return what the confidence machine will guarantee, with no label held out."""
    guarantee = machine_guarantee(problem, options, design)
    contingencies = [Contingency(ROUNDED, guarantee.weakened())]
    if design.spec.testable:
        contingencies += _if_rows_differ(problem, options, guarantee)
    return GuaranteeForecast(guarantee, contingencies=in_order(contingencies))


def machine_guarantee(problem: Problem, options: Options, design: BoundDesign) -> Guarantee:
    """Return what the confidence machine guarantees of these labels if nothing goes wrong."""
    from transduce.methods.confidence_machine.promises import promise_intervals, promise_sets

    level = options.level
    if problem.classes is None:
        guarantee = promise_intervals(level)
    else:
        by_class = machine_by_class(options, design)
        guarantee = promise_sets(level, problem.codes, by_class=by_class)
    guarantee = replace(guarantee, n_labelled=len(problem.labels))
    if design.spec.chosen_by_class:
        return chosen_by_class(guarantee)
    return as_interval(guarantee)


def as_interval(guarantee: Guarantee) -> Guarantee:
    """Return the guarantee of a region as that of the interval that holds it.

    What it says about later rows is left out.
    """
    reasons = tuple(reason for reason in guarantee.reasons if reason != NOT_FOR_LATER)
    region = "interval" if guarantee.about == "region" else guarantee.about
    return replace(guarantee, about=region, reasons=reasons)


def chosen_by_class(guarantee: Guarantee) -> Guarantee:
    """Return the guarantee of sets within each class, for labels chosen by their class."""
    others = [
        assumption for assumption in guarantee.assumptions if assumption not in (CHANCE, SEEN)
    ]
    assumptions: tuple[str, ...] = ()
    if guarantee.kind != "none":
        assumptions = (BY_CLASS, SEEN, *others)
    return replace(guarantee, assumptions=assumptions, any_class=False)


def _if_rows_differ(problem: Problem, options: Options, guarantee: Guarantee) -> list[Contingency]:
    """Return what holds instead where rows are found to differ.

    Labels are held out then, if they are enough.
    """
    design = design_if_shifted(len(problem.labels), options)
    if design is None:
        return [Contingency(SHIFTED, guarantee.weakened())]
    bound = design.bind(~problem.sample.labelled)
    reweighed = _forecast_held_out(problem, options, bound)
    uneven = [contingency for contingency in reweighed.contingencies if contingency.event == UNEVEN]
    return [Contingency(SHIFTED, reweighed.guarantee), *uneven]


def _forecast_held_out(
    problem: Problem, options: Options, design: BoundDesign
) -> GuaranteeForecast:
    """Return what labels that are held out will guarantee."""
    return forecast_calibrated(
        problem,
        design,
        levels=options.levels,
        certainty=float(options.certainty),
        by_class=options.label_conditional or design.spec.by_class,
        random_state=options.random_state,
    )


# ---- a fit to a sample of the rows


def _forecast_sampled(source: FrameSource, options: Options) -> GuaranteeForecast:
    """Return what will be guaranteed of a table of which the fit sees a sample."""
    target = source.labels.name
    roles = draw(source.scan(target, options), target, options)
    inside, held = source.take(roles, target, options)
    settled = options.for_labels(inside.labels, held.labels)
    sample_options = options_of_sample(inside.labels, settled)
    design = sample_options.design.bind(inside.labels.missing, inside.frame)
    known = classes_of_sample(inside.labels, held.labels, options)
    rows = forecast_rows(inside.labels, sample_options, design, known=known)
    others = _table_of_others(inside.labels, held.labels, options, roles)
    level = options.level
    certainty = float(options.certainty)
    guarantee = without_fit(others.guarantee(level, certainty))
    guarantee = guarantee.decided_by(inside.labels.decisive)
    by_row = rows.guarantee.kind != "none" and rows.n_calibration == 0
    law = others.law(level)
    bound = None
    if rows.law is not None and law is not None:
        bound = bound_together(rows.law, law, certainty)

    def join(sample: Guarantee, event: str) -> Guarantee:
        rest = guarantee.weakened() if event == SHIFTED else guarantee
        if by_row:
            return replace(rest, outside=None)
        return join_guarantees(sample, rest, bound, None)

    joined = [
        replace(contingency, guarantee=join(contingency.guarantee, contingency.event))
        for contingency in rows.contingencies
    ]
    return GuaranteeForecast(join(rows.guarantee, ""), contingencies=tuple(joined))


def _table_of_others(
    shown: Target, held: Target, options: Options, roles: RowDraw
) -> CalibratedTable:
    """Return the labels kept from the fit, beside the rows that it does not see."""
    known = shown.known
    kept = held.known
    classes = None
    if shown.task == "classification":
        classes = np.array(sorted({*known.tolist(), *kept.tolist()}))
        known = class_codes(known, classes)
        kept = class_codes(kept, classes)
    n_empty = int(held.missing.sum())
    n_rows = roles.n_unlabelled - len(roles.sampled) - n_empty
    weights = options.design.weigh_outside(len(kept), n_empty, classes)
    table = table_outside_before_fit(known, kept, classes, weights, by_class=options.by_class)
    return beside_rows(table, n_rows)


def join_guarantees(
    inside: Guarantee, others: Guarantee, outside: CountBound | None, wrong: CountBound | None
) -> Guarantee:
    """Return what is guaranteed of a sample and of all other rows, with common bounds."""
    if others.kind == "none":
        return replace(others, n_labelled=inside.n_labelled)
    if inside.kind == "none":
        return inside
    return replace(
        others,
        outside=outside if others.outside and inside.outside else None,
        wrong=wrong if others.wrong and inside.wrong else None,
        n_calibration=others.n_calibration + inside.n_calibration,
        n_unreached=others.n_unreached + inside.n_unreached,
        n_empty=others.n_empty + inside.n_empty,
        n_short=max(others.n_short, inside.n_short),
        any_class=others.any_class or inside.any_class,
    )
