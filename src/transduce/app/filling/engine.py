"""Filling the empty cells of one column of a table: draw, plan, fit, calibrate, answer."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Hashable
from dataclasses import replace
from typing import Any, Unpack, overload

import numpy as np
import pandas as pd

from transduce.app.filling.design_columns import bind_design
from transduce.app.filling.diagnostics import SMALL, Diagnosis, Told
from transduce.app.filling.left_out import columns_left_out, notes_on, running_columns
from transduce.app.filling.options import DEFAULTS, FIT, OPTIONS, FillOptions, Options, described
from transduce.app.filling.plan import (
    NOTE_WEIGHTS,
    Plan,
    classes_of_sample,
    design_if_shifted,
    is_sampled,
    make_plan,
    options_of_sample,
)
from transduce.app.filling.result import (
    FillResult,
    FillResults,
    FittedFill,
    TableFit,
    estimator_rows,
)
from transduce.app.filling.sources import DaskSource, FrameSource, Source, draw, is_dask
from transduce.app.tables.columns import Target, check_columns, limits_in
from transduce.app.tables.features import Features, vectorize
from transduce.app.tables.numbers import without
from transduce.conformal import Exchangeability, exchangeability_test
from transduce.conformal.calibrated import holding_values, named, with_values
from transduce.conformal.shares import ClassShares, shares_of_classes
from transduce.core.answer import Answer, Regions
from transduce.core.checks import WrongTypeError
from transduce.core.computing import announce_forecast, few_threads, stage
from transduce.core.guarantee import Guarantee, Limits, TooFewLabelsWarning
from transduce.core.types import AnyArray
from transduce.core.words import option, quoted
from transduce.ensemble.blend_fit import MemberFailedWarning
from transduce.model_selection.fit_and_predict import answer_of, ask, pass_on, read_problem
from transduce.model_selection.methods import Case

BATCH = 50_000
EACH_BY_ITSELF = (
    "What is guaranteed holds for each filled column by itself, not for all of them together."
)


@overload
def fill(table: Any, target: list[Any], **given: Unpack[FillOptions]) -> FillResults: ...
@overload
def fill(table: Any, target: Any, **given: Unpack[FillOptions]) -> FillResult: ...
@described(FIT)
def fill(table: Any, target: Any, **given: Unpack[FillOptions]) -> FillResult | FillResults:
    """Fill the empty cells of a column, and say what is guaranteed.

    Parameters
    ----------
    table : pandas, polars or Dask DataFrame, or Table
        All rows; columns of any kind. A `Table` is one read from a file by `transduce.app.tables.files.read`.
    target : str or list of str
        The column to fill. Of several, none is a feature of another, and options go to those that they suit.
    OPTIONS

    Returns
    -------
    FillResult or, of a list of columns, FillResults
        ``frame``, the table with the columns ``<target>_filled``, ``_lower``, ``_upper`` and ``_narrower`` (or
        ``_set``, ``_probability`` and ``_confidence``) and ``_status`` after its own, lazy for a Dask frame;
        ``answer``, ``guarantee``, ``report()``, ``json()``. What does not touch the fit is asked of it:
        ``table(minimum=0)``, ``guarantee_at(certainty=0.99)``. Warnings of the methods are in ``notes``.

    Examples
    --------
    >>> from transduce import fill
    >>> from transduce.datasets import load_houses
    >>> fill(load_houses()[0], "price", method="ridge", guarantee="column").frame.columns[-6:].tolist()
    ['price', 'price_filled', 'price_lower', 'price_upper', 'price_narrower', 'price_status']
    """
    names = target if isinstance(target, list) else [target]
    if not all(isinstance(name, Hashable) for name in names):
        raise WrongTypeError(
            f"target is the name of a column, or a list of names; got {quoted(target)}."
        )
    options = Options.read(given)
    if isinstance(target, list):
        return fill_targets(table, target, options)
    return fill_table(table, target, options)


def fill_targets(table: Any, targets: list[Any], options: Options) -> FillResults:
    """Fill several columns: none tells anything of another, and options go to those that they suit."""
    if not targets or len(set(targets)) < len(targets):
        raise ValueError(f"target names columns to fill, each once; got {quoted(targets)}.")
    tasks, results = dict.fromkeys(targets, ""), {}
    for name in targets if not is_dask(table) else ():
        tasks[name] = FrameSource.read(table, name, options).labels.task
    for name in targets:
        others = [other for other in targets if other != name]
        elsewhere = set(tasks.values()) - {tasks[name]}
        unsuited = {
            one: DEFAULTS[one] for one, about in OPTIONS.items() if about.kind.task in elsewhere
        }
        own = replace(options, ignore=[*options.ignore, *others], **unsuited)
        result = results[name] = fill_table(table, name, own)
        if others:
            verb, noun = ("is", "no feature") if len(others) == 1 else ("are", "no features")
            said = (
                f"{', '.join(map(repr, others))} {verb} filled too, and {verb} {noun} of {name!r}."
            )
            notes = [*result.fit.notes, said, EACH_BY_ITSELF]
            results[name] = replace(result, fit=replace(result.fit, notes=notes))
    return FillResults(results, options)


def fill_table(table: Any, target: Any, options: Options) -> FillResult:
    """Fill a column, with options that were read, questions to the result among them."""
    if is_dask(table):
        options.check_sampled()
        check_columns(pd.DataFrame(columns=list(table.columns)), options.columns(target))
        return fill_sample(DaskSource(table, parts=table.to_delayed()), target, options)
    frame = FrameSource.read(table, target, options)
    settled = options.for_labels(frame.labels)
    if is_sampled(frame, settled):
        return _answer_others(fill_sample(frame, target, options), frame)
    return _fill_all_rows(frame, options, settled)


def _fill_all_rows(source: FrameSource, options: Options, settled: Options) -> FillResult:
    """Fit to all rows, in an order that their contents decide, and show the answers in the order of the table."""
    # What is drawn by place, such as folds, is then the same however the rows of the table are sorted; see
    # `tables/row_hashes.py`, which also says why guarantees stay. Columns are read, and rows named in messages,
    # in the order of the table.
    bind_design(settled.design, source.labels.missing, source.frame)
    features = _read_features(source, settled)
    order = source.order_by_content(settled)
    if settled.labels is not None:
        settled = replace(settled, labels=settled.design.take_rows(order))
    fit = _fit_features(source.at(order), features.at(order), settled)
    answer = replace(fit.answer, rows=order[fit.answer.rows])
    answer = answer.at(np.argsort(answer.rows))
    diagnosis = Diagnosis(fit, settled)
    return FillResult(fit, source, options, source.labels, answer, diagnosis, rows=order)


def fit_fill(
    table: Any, target: Any, *, prefer: str = "", limits: Limits | None = None, **options: Any
) -> FittedFill:
    """Fit a model of one column, to answer rows that come later; some labels are kept from it and calibrate it.

    Parameters
    ----------
    table : pandas or polars DataFrame, or Table
        Rows with and without a label.
    target : str
        The column.
    prefer : {"point", "comma"}, optional
        The decimal sign of numbers in text, in case of doubt; that of the table by default.
    limits : Limits, optional
        Limits among the labels of a larger table, of which these rows are a sample.
    **options
        As those of `fill`, and of `FillResult.ask`.

    Returns
    -------
    FittedFill
        ``new_columns(rows)`` gives the new columns of later rows, and ``guarantee_of_later(n)`` says what holds for n
        of them, if rows were labelled at random, and later rows are like those of the table.

    Examples
    --------
    >>> table = pd.DataFrame({"size": range(200), "price": [2.0 * n if n % 3 else None for n in range(200)]})
    >>> fitted = fit_fill(table, "price", method="ridge")
    >>> fitted.new_columns(pd.DataFrame({"size": [12.5]}))["price_filled"].round().tolist()
    [25.0]
    """
    read = Options.read(options, questions=True)
    source = FrameSource.read(table, target, read)
    read.check_sampled()
    fitted = fill_sample(
        replace(source, prefer=prefer or source.prefer), target, read, limits
    ).fitted
    assert fitted is not None
    return fitted


def fill_told(
    table: Any, target: Any, told: Told, calibrated: FillResult | None, **given: Unpack[FillOptions]
) -> FillResult:
    """Return answers that were made elsewhere as a result, with what a calibrated one says of some of the rows."""
    options = Options.read(given)
    source = FrameSource.read(table, target, options)
    frame, labels = source.frame, source.labels
    answer = _told_answer(labels, told, calibrated)
    if calibrated is None:
        folder = options.pictures or source.pictures
        about = {name: getattr(options, name) for name in ("text", "number", "id", "random_state")}
        about |= {"ignore": options.no_features(target), "folder": folder}
        features = vectorize(without(frame, options.missing), target, **about, **options.reading)
        plan = Plan(None, {}, 0.0, [])
        X = features.matrix
        fit = TableFit(
            frame, labels, features, X, plan, None, None, answer.rows, answer, None, 0.0, []
        )
        result = FillResult(fit, source, options, labels, answer, Diagnosis(fit, options))
    else:
        result = replace(calibrated, source=source, labels=labels, unasked=answer)
        columns = calibrated.fit.features.columns  # of which one may mark the draws
        columns = columns[columns["name"].isin(frame.columns)]
        features = replace(calibrated.fit.features, columns=columns)
        fit = replace(calibrated.fit, features=features, compared=None)
        if calibrated.fitted is None and calibrated.rows is not None:  # it saw all rows
            order = calibrated.rows
            own_answer = replace(answer, rows=np.argsort(order)[answer.rows])
            own_answer = own_answer.at(np.argsort(own_answer.rows))
            fit = replace(fit, frame=frame.iloc[order], target=labels.at(order), answer=own_answer)
    fit = replace(fit, notes=[*told.notes, *labels.notes])
    return replace(result, fit=fit, diagnosis=Diagnosis(fit, options, told))


def _told_answer(labels: Target, told: Told, calibrated: FillResult | None) -> Answer:
    """Return answers with intervals, or sets, of a calibrated result, extended to values; elsewhere all is possible."""
    rows = np.flatnonzero(labels.missing)
    values, none = told.values[rows], pd.isna(told.values[rows])
    status = np.where(none, "unreached", "answered")
    own = None if calibrated is None else calibrated.unasked
    at = np.flatnonzero(np.isin(rows, [] if own is None else own.rows))
    places = np.searchsorted([] if own is None else own.rows, rows[at])
    answer = Answer(rows, values, status, told.guarantee)
    if labels.task == "regression":
        ends = np.tile([-np.inf, np.inf], (len(rows), 1))
        if own is not None and own.regions is not None:
            ends[at] = own.regions.hull()[places]
        return with_values(
            replace(answer, regions=Regions.from_intervals(ends)), values, status, None, None
        )
    known = [] if own is None or own.classes is None else own.classes.tolist()
    classes = np.array(sorted({*labels.known.tolist(), *values[~none].tolist(), *known}))
    p, sets = np.ones((len(rows), len(classes))), np.ones((len(rows), len(classes)), dtype=bool)
    if own is not None and own.p_values is not None and own.label_sets is not None:
        where = np.ix_(at, np.searchsorted(classes, known))
        p[at], sets[at] = 0.0, False  # a class that has got its first label since
        p[where], sets[where] = own.p_values[places], own.label_sets[places]
    answer = replace(answer, p_values=p, label_sets=sets, classes=classes)
    return with_values(answer, values, status, None, None)


def fit_rows(
    rows: FrameSource, options: Options, n_outside: int = 0, classes: tuple[Any, ...] = ()
) -> TableFit:
    """Fit to all rows what suits them; `n_outside` rows are to be answered besides, of `classes` besides those here."""
    features = _read_features(rows, options)
    return _fit_features(rows, features, options, n_outside, classes)


def _read_features(rows: FrameSource, options: Options) -> Features:
    """Return the features of rows, or raise a ValueError if there are none."""
    frame, target = rows.frame, rows.labels
    left_out = columns_left_out(rows, options)
    about: dict[str, Any] = {
        name: getattr(options, name) for name in ("text", "number", "id", "random_state")
    }
    about |= {
        "ignore": options.no_features(target.name),
        "left_out": {one.name: one.treatment for one in left_out},
        "prefer": rows.prefer,
    } | options.reading
    about |= {"folder": rows.pictures if options.pictures is None else options.pictures}
    features = vectorize(without(frame, options.missing), target.name, **about)
    is_target = features.columns["name"] == target.name
    features.columns.loc[is_target, "n_missing"] = int(target.missing.sum())
    features = replace(features, notes=[*notes_on(left_out), *features.notes])
    if features.matrix.shape[1] == 0:
        nothing = f"No column except {target.name!r} varies from row to row: there is nothing to learn from."
        raise ValueError(" ".join([nothing, *features.notes]))
    return features


def _fit_features(
    rows: FrameSource,
    features: Features,
    options: Options,
    n_outside: int = 0,
    classes: tuple[Any, ...] = (),
) -> TableFit:
    """Fit to all rows, whose features are known, what suits them."""
    frame, target = rows.frame, rows.labels
    with few_threads(len(frame), SMALL):
        plan, compared = _planned(rows, features, options, n_outside, classes)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit = _fit(rows, features, plan, options, compared)
    known = getattr(
        getattr(fit.model, "exchangeability_", None), "verdict", None
    )  # the guarantee says it
    said = [str(one.message) for one in caught if not issubclass(one.category, TooFewLabelsWarning)]
    said = [one for one in dict.fromkeys(said) if known is None or one != str(known)]
    failures = [one.message for one in caught if issubclass(one.category, MemberFailedWarning)]
    for message in dict.fromkeys(map(str, failures)):
        warnings.warn(message, MemberFailedWarning, stacklevel=2)
    noted = [*target.notes, *features.notes, *_about_features(features)]
    return replace(fit, notes=[*noted, *plan.notes, *said])


def _places_of_views(
    views: list[list[Any]], origins: list[Any]
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


def _planned(
    rows: FrameSource,
    features: Features,
    options: Options,
    n_outside: int,
    classes: tuple[Any, ...],
) -> tuple[Plan, Exchangeability | None]:
    """Return what is to be fitted, and how rows compare; if they differ, labels are held out where they are enough."""
    target, matrix = rows.labels, features.matrix
    n_classes = len(set(target.known.tolist())) if target.task == "classification" else 0
    sizes = (len(rows.frame), target.n_labels, matrix.shape[1], n_classes)
    computing: dict[str, Any] = {"random_state": options.random_state, "device": options.device}
    computing["views"] = _places_of_views(options.views, features.origins)
    case = Case(target.task, *sizes, standardize=False, **computing)
    more: dict[str, Any] = {"n_outside": n_outside, "classes": classes}
    plan = make_plan(case, options, bind_design(options.design, target.missing, rows.frame), **more)
    if not plan.by_row or not options.design.testable:
        return plan, None
    with stage("exchangeability"):
        compared = exchangeability_test(matrix, ~target.missing, random_state=options.random_state)
    design = design_if_shifted(case.n_labels, options)
    if compared.shifted and design is not None:
        plan = make_plan(case, options, design.bind(target.missing), **more)
        plan = replace(plan, notes=[NOTE_WEIGHTS, *plan.notes])
    return plan, compared


def _fit(
    rows: FrameSource,
    features: Features,
    plan: Plan,
    options: Options,
    compared: Exchangeability | None,
) -> TableFit:
    """Fit the model and what the values come from."""
    frame, target = rows.frame, rows.labels
    index = frame.index if options.id is None else pd.Index(frame[options.id])
    y = pd.Series(target.labels, index=index, name=target.name)
    X = estimator_rows(features.encoder, frame, options, features.matrix)
    began = time.perf_counter()
    announce_forecast(max(plan.seconds, 1.0))
    with stage("answers"):
        model = plan.model.fit(X, y)
    if not plan.by_row:
        compared = model.exchangeability_
    if compared is not None:
        running = running_columns(frame, target.missing) if compared.shifted else ()
        compared = replace(compared.named(features.origins), running=running)
    answer, values_model, order, shares = _values(model, plan, features, target, options)
    about = (answer, compared, time.perf_counter() - began, list[str](), shares)
    return TableFit(frame, target, features, X, plan, model, values_model, order, *about)


def _values(
    model: Any, plan: Plan, features: Features, target: Target, options: Options
) -> tuple[Answer, Any, AnyArray, ClassShares | None]:
    """Return the answer with values from a fit to all labels, that estimator, its rows, and shares of classes."""
    if not plan.by_row:
        return model.answer_, model.refitted_, model.fitted_rows_, model.class_shares_
    every = np.arange(len(target.labels))
    if plan.values is None:
        return holding_values(model.answer_), model, every, None
    with stage("values"):
        problem = read_problem(features.matrix, target.labels, task=target.task)
        reply = ask(plan.values, problem, np.arange(len(problem.labels)), problem.sample.unlabelled)
        own = answer_of(reply, problem, Guarantee("none"))
        pass_on(reply.notes)
    assert reply.fitted is not None
    random, none = (
        np.random.RandomState(options.random_state),
        np.zeros(len(problem.labels), dtype=bool),
    )
    answer, shares = model.answer_, None
    if options.design.chosen_by_class:
        given = options.design.given_shares(problem.classes)
        shares = shares_of_classes(problem, none, reply, reply, given, random)
        last = shares.applied(reply)
        values, probabilities = named(last, problem.classes), last.probabilities
        own = replace(own, values=values, status=last.status, probabilities=probabilities)
        answer = replace(
            answer, unseen=None, p_unseen=None
        )  # classes that were chosen by are known
    answer = with_values(answer, own.values, own.status, own.standard_errors, own.probabilities)
    return answer, reply.fitted.estimator, every, shares


def _about_features(features: Features) -> list[str]:
    """Return notes on columns that were dropped although nobody asked for it, and on many rows that are copies."""
    notes, columns = [], features.columns
    dropped = columns[columns["treatment"].str.startswith("dropped")]
    if len(dropped):
        pairs = zip(dropped["name"], dropped["kind"], strict=True)
        notes.append(f"Left out: {', '.join(f'{name!r} ({kind})' for name, kind in pairs)}.")
    n = distinct = len(features.matrix)
    if "number" in set(
        columns["kind"]
    ):  # then rows are rarely copies unless a table was entered twice
        distinct = len(np.unique(features.matrix.round(9), axis=0))
    if distinct <= 0.7 * n:
        how = f"keep one of each, or name them with {option('groups')}"
        why = "copies that are labelled together are not chosen by chance one by one"
        copies = f"{n - distinct:,} of the {n:,} rows are copies of others"
        notes.append(f"{copies}. If they were entered twice, {how}: {why}.")
    return notes


def fill_sample(
    source: Source, target: Any, options: Options, seen: Limits | None = None
) -> FillResult:
    """Fit to a sample of a table, calibrate the fit for other rows, and show the sample; `seen` are all limits."""
    with stage("reading"):
        scans = source.scan(target, options)
        roles = draw(scans, target, options)
    with stage("sample"):
        inside, held = source.take(roles, target, options)
    shown, kept = inside.labels, held.labels
    if seen is None and shown.task == "regression":
        seen = limits_in(sum((Counter(scan.limits) for scan in scans), Counter()), shown.spelling)
    spelling = replace(shown.spelling, words=source.words)
    shown = replace(shown, limits=Limits() if seen is None else seen, spelling=spelling)
    settled = options.for_labels(shown, kept)
    n_rows, n_outside = (
        roles.n_labelled + roles.n_unlabelled,
        roles.n_unlabelled - len(roles.sampled),
    )
    classes = classes_of_sample(shown, kept, options)
    rows = replace(inside, frame=inside.frame.reset_index(drop=True), labels=shown)
    held_out = options_of_sample(shown, settled)
    fit = fit_rows(rows, held_out, n_outside, classes)
    diagnosis = Diagnosis(fit, settled)
    fitted = FittedFill.of(fit, diagnosis.chance, held, options)
    nobody = fitted.unasked(
        fit.frame[:0]
    )  # knows all classes, those with no label in the fit among them
    answer = join_answers([fit.answer, nobody], by_class=options.by_class)
    totals = {"rows": n_rows, "labelled": roles.n_labelled, "unlabelled": roles.n_unlabelled}
    result = FillResult(fit, replace(source, roles=roles), options, shown, answer, diagnosis)
    return replace(result, fitted=fitted, outside=(n_outside, 0), totals=totals)


def _answer_others(sample: FillResult, source: FrameSource) -> FillResult:
    """Return the result of a table in memory, given that of the rows that the fit saw."""
    fit, fitted, roles = sample.fit, sample.fitted, sample.source.roles
    assert fitted is not None
    assert roles is not None
    rows = np.concatenate([roles.visible[:, 1], roles.sampled[:, 1]])
    others = np.setdiff1d(np.flatnonzero(source.labels.missing), rows)
    answers = [replace(fit.answer, rows=rows[fit.answer.rows])]
    with stage("other rows") as report:
        known = without(source.frame, fitted.options.missing)
        for start in range(0, len(others), BATCH):
            some = others[start : start + BATCH]
            answers.append(fitted.unasked(known.iloc[some], some))
            report((start + len(some)) / len(others))
    answer = join_answers(answers, by_class=fitted.options.by_class)
    lost = int(sum((part.status == "unreached").sum() for part in answers[1:]))
    id, outside = fitted.options.id, (len(others) - lost, lost)
    index = source.frame.index if id is None else pd.Index(source.frame[id])
    answer = replace(answer, index=index[answer.rows])
    whole = replace(source, roles=roles)
    about: dict[str, Any] = {"source": whole, "labels": source.labels, "totals": None}
    return replace(sample, unasked=answer, rows=rows, outside=outside, **about)


def join_answers(parts: list[Answer], *, by_class: bool = False) -> Answer:
    """Return several answers of one table as one, in the order of its rows."""
    classes = parts[-1].classes
    parts = [part if part.classes is None else _widened(part, classes, by_class) for part in parts]
    rows = np.concatenate([part.rows for part in parts])
    order = np.argsort(rows, kind="stable")
    regions = [part.regions for part in parts if part.regions is not None]
    of_rows = (
        "values",
        "status",
        "confidence",
        "credibility",
        "standard_errors",
        "unseen",
        "p_unseen",
    )
    of_classes = ("p_values", "probabilities", "label_sets")
    own = {name: [getattr(part, name) for part in parts] for name in (*of_rows, *of_classes)}
    return Answer(
        rows=rows[order],
        guarantee=parts[0].guarantee,
        regions=Regions.concatenate(regions)[order] if len(regions) == len(parts) else None,
        classes=classes,
        diagnostics=parts[0].diagnostics,
        **{
            k: np.concatenate(each)[order]
            for k, each in own.items()
            if all(one is not None for one in each)
        },
    )


def _widened(part: Answer, classes: AnyArray | None, by_class: bool) -> Answer:
    """Return an answer with columns for all classes; one that its fit did not know is as one that no label shows."""
    if classes is None or part.classes is None or len(part.classes) == len(classes):
        return part
    places = np.searchsorted(classes, part.classes)

    def wide(numbers: Any, absent: Any) -> Any:
        if numbers is None:
            return None
        every = np.empty((len(numbers), len(classes)), dtype=numbers.dtype)
        every[:] = np.reshape(absent, (-1, 1))
        every[:, places] = numbers
        return every

    return replace(
        part,
        classes=classes,
        p_values=wide(part.p_values, 1.0 if by_class else part.p_unseen),
        probabilities=wide(part.probabilities, 0.0),
        label_sets=wide(part.label_sets, by_class or part.unseen),
    )
