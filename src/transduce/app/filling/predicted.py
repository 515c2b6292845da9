"""The predictions behind questions about a whole column: none of them saw the label of its own row.

At a labelled row stands the prediction of a fit that did not see its label, at an unlabelled row
that of the same fits, or of one to a few labels more. A blend has the former already: its weights
come from them. If labels were held out to calibrate, the fit of the others predicts at held-out and
unlabelled rows alike, and its own folds at the labels that it saw. One method by itself is fitted
in five folds, and predicts at unlabelled rows by the mean of the five.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from transduce.app.estimating import PredictedColumn
from transduce.app.filling.design_columns import bind_design
from transduce.app.filling.found_draws import sample_of_strata
from transduce.app.filling.given_predictions import read_predictions
from transduce.app.filling.next_labels import quick_method
from transduce.app.filling.options import Options
from transduce.app.filling.plan import FOLDS
from transduce.conformal.calibrated_fit import CalibratedFit
from transduce.conformal.designs.propensity import EstimatedOdds, estimate_odds
from transduce.core.assumptions import ESTIMATE, with_factor
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.validation import class_codes
from transduce.ensemble.blend import TransductiveBlend
from transduce.model_selection.estimator_kinds import last_step
from transduce.model_selection.fit_and_predict import RawPrediction, fit_and_predict
from transduce.model_selection.folds import read_folds
from transduce.model_selection.problem import read_problem
from transduce.population import Sample

if TYPE_CHECKING:
    from transduce.app.filling.later_rows import FittedFill
    from transduce.app.filling.result import FillResult
    from transduce.app.filling.table_fit import TableFit
    from transduce.app.tables.row_draws import RowDraw

MIN_LABELS = 5  # fewer do not tell how good predictions are


@dataclass(frozen=True, eq=False)
class RowPredictions:
    """Predictions at the rows of a fit; NaN where there is none."""

    values: Array  # (n,) or (n, n_classes)
    classes: AnyArray | None
    refitted: bool = False  # those at unlabelled rows come from a fit to all labels of the sample
    held_out: Mask | None = None  # (n,) rows whose labels were held out from the fit, if any were

    def without_held_out(self) -> Array:
        """Return predictions, NaN at held-out rows, beside those of a fit that saw their labels.

        A fit to all labels predicts the rows beyond a sample: if held-out labels, predicted by the
        fit without them, corrected it, they would count twice. They are known, and correct nothing.
        """
        if self.held_out is None:
            return self.values
        values = self.values.copy()
        values[self.held_out] = np.nan
        return values


def known_rows(predictions: Array) -> Mask:
    """Return the rows (n,) at which predictions (n,) or (n, n_classes) are known."""
    wide = np.isfinite(predictions.reshape(len(predictions), -1))
    return np.asarray(wide.all(axis=1))


def keep_predictions(predictions: Array, classes: AnyArray | None) -> Array:
    """Return predictions as they are: the fit saw all rows."""
    return predictions


def predict_frame(
    result: FillResult,
    order: AnyArray,
    predict_others: Callable[[Array, AnyArray | None], Array] = keep_predictions,
) -> PredictedColumn:
    """Return the column of a table in memory; `order` says where the rows of the fit are in it."""
    target = result.labels
    of_fit = predict_fit(result.fit, result.options.random_state)
    n_rows = len(target.missing)
    predictions = None
    classes = None
    refitted = False
    if of_fit is not None:
        classes = of_fit.classes
        refitted = of_fit.refitted
        wide = np.full((n_rows, *of_fit.values.shape[1:]), np.nan)
        is_sample = predict_others is not keep_predictions
        wide[order] = of_fit.without_held_out() if is_sample else of_fit.values
        predictions = predict_others(wide, classes)
    odds = estimated_odds(result, order)
    design = bind_design(result.options.design, target.missing, result.seen.frame)
    sample = None
    if result.fit.shares is None:
        beyond = None if odds is None else odds.odds
        sample = design.describe_sample(target.missing, beyond)
        sample = sample_of_strata(result.seen.frame, target.name, result.options, sample)
        predictions, sample = drop_unpredicted(predictions, sample, target.missing)
    column = make_column(result, predictions, classes, sample, odds)
    return replace(column, refitted=refitted)


def make_column(
    result: FillResult,
    predictions: Array | None,
    classes: AnyArray | None,
    sample: Sample | None,
    odds: EstimatedOdds | None,
) -> PredictedColumn:
    """Return the record of a column, with what the result knows of it."""
    options = result.options
    frame = result.seen.frame
    names = pd.Index([f"row {number:,}" for number in range(1, len(frame) + 1)])
    if options.id is not None:
        names = pd.Index(frame[options.id].astype(str))
    given = None
    if options.predicted and classes is not None:
        given = read_predictions(frame, result.labels, options).labels
    return PredictedColumn(
        target=result.labels,
        predictions=predictions,
        classes=classes,
        sample=sample,
        frame=frame,
        assumption=find_assumption(result, odds),
        names=names,
        shares=result.fit.shares,
        limits=possible_range(options),
        given=given,
        case_sensitive=options.case_sensitive,
        beyond=0 if odds is None else int(np.sum(odds.beyond & result.labels.missing)),
    )


def find_assumption(result: FillResult, odds: EstimatedOdds | None) -> str:
    """Return what has to be true of the labels, also where their odds were estimated."""
    design = result.options.design
    assumption = str(design.assumption)
    if odds is not None:
        assumption = str(ESTIMATE)
    return with_factor(assumption, design.sensitivity)


def possible_range(options: Options) -> tuple[float, float]:
    """Return the least and the greatest value that the options let a number have."""
    if options.minimum is None:
        low = -np.inf
    else:
        low = float(options.minimum)
    if options.maximum is None:
        high = np.inf
    else:
        high = float(options.maximum)
    return low, high


def drop_unpredicted(
    predictions: Array | None, sample: Sample, missing: Mask
) -> tuple[Array | None, Sample]:
    """Return predictions at all rows that matter, and a sample of rows that have one."""
    if predictions is None:
        return None, sample
    known = known_rows(predictions)
    if not known[missing].any() or not (known & sample.rows).any():
        return None, sample
    # Where no method reaches a row any number will do, as long as it is not made from its label.
    typical = np.mean(predictions[known & missing], axis=0)
    filled = np.where(known.reshape(-1, *[1] * (predictions.ndim - 1)), predictions, typical)
    # A label that no fit answered (of very many, a part is fitted to) is known, and no sample.
    return filled, replace(sample, rows=sample.rows & known)


def predict_fit(fit: TableFit, seed: int) -> RowPredictions | None:
    """Return predictions at the rows of a fit; None if labels are too few."""
    predictions = _predict_corrections(fit, seed)
    if predictions is None or fit.offset is None:
        return predictions
    return replace(predictions, values=predictions.values + fit.offset)


def _predict_corrections(fit: TableFit, seed: int) -> RowPredictions | None:
    """Return what the methods of a fit predict, of labels as they see them."""
    if fit.target.n_labels < MIN_LABELS or not len(fit.answer):
        return None
    calibrated = fit.model.held_out_fit
    is_blend = isinstance(fit.values_model, TransductiveBlend)
    with warnings.catch_warnings(action="ignore"):
        of_fit = None
        if calibrated is not None and is_blend and teach_little(calibrated):
            method = quick_method(fit.values_model, fit.target, fit.seconds)
            of_fit = None if method is None else _predict_in_folds(fit, method, seed)
        if of_fit is None and calibrated is not None:
            of_fit = _predict_held_out(fit, calibrated)
        if of_fit is None and is_blend:
            of_fit = _predict_by_blend(fit)
        if of_fit is None and (calibrated is not None or not is_blend):
            of_fit = _predict_in_folds(fit, clone(fit.values_model), seed)
        return of_fit


def teach_little(calibrated: CalibratedFit) -> bool:
    """Return whether fewer labels taught a fit than were held out from it.

    So it is where many rows were drawn at random beside a few that were labelled on purpose: in
    folds the drawn ones teach each other.
    """
    n_held_out = int(np.sum(calibrated.held_out))
    return 2 * n_held_out > len(calibrated.held_out)


def _predict_by_blend(fit: TableFit) -> RowPredictions | None:
    """Return out-of-fold predictions of a blend at labelled rows, and its predictions elsewhere."""
    hidden = getattr(fit.values_model, "out_of_fold_", None)
    if hidden is None:
        return None
    answer = fit.values_model.answer_
    if answer.classes is None:
        unlabelled = answer.values.astype(float)
    else:
        unlabelled = answer.probabilities
    rows = fit.order[answer.rows]
    predictions = _empty(fit, answer.classes)
    predictions.values[rows] = unlabelled
    blend = hidden["blend"]
    predictions.values[fit.order[blend.index]] = blend.to_numpy(dtype=float)
    return replace(predictions, refitted=True)


def _predict_held_out(fit: TableFit, calibrated: CalibratedFit) -> RowPredictions | None:
    """Return predictions of the fit that labels were held out from; None if it has no folds.

    A blend of all labels that continues this fit has its predictions at held-out rows. With those
    of the blend elsewhere, each held-out label would count twice: it corrects the predictions at
    unlabelled rows, and has moved them already. With h of l labels held out, estimates then vary
    ``sqrt((4 h + (l - h) (1 - h / (l - h))^2) / l)`` times as much as their errors say: 1.4 times
    with half of them. In 290 draws of ten real tables with 300 labels, 79 of them held out,
    intervals at 95 % held the mean in 89.7 %.
    """
    first = last_step(calibrated.first.estimator)
    hidden = getattr(first, "out_of_fold_", None)
    if not isinstance(first, TransductiveBlend) or hidden is None:
        return None
    classes = calibrated.problem.classes
    predictions = _empty(fit, classes)
    table = calibrated.table
    held = calibrated.problem.rows[calibrated.held_out]
    predictions.values[held] = numbers_of_reply(table.calibration, classes)
    predictions.values[calibrated.problem.sample.unlabelled] = numbers_of_reply(
        table.unlabelled, classes
    )
    blend = hidden["blend"]
    rows = calibrated.first.order[blend.index]
    values = blend.to_numpy(dtype=float)
    if classes is not None:
        wide = np.zeros((len(values), len(classes)))
        wide[:, class_codes(blend.columns.to_numpy(), _codes_or(classes, blend))] = values
        values = wide
    predictions.values[rows] = values
    # At the labels that it saw its predictions are out of fold, and elsewhere of a fit to them all.
    held_out = np.zeros(len(predictions.values), dtype=bool)
    held_out[held] = True
    return replace(predictions, refitted=True, held_out=held_out)


def _codes_or(classes: AnyArray, blend: pd.DataFrame) -> AnyArray:
    """Return what names the classes in a blend's columns: the classes, or their numbers."""
    names = blend.columns.to_numpy()
    if len(names) and (class_codes(names, classes) >= 0).all():
        return classes
    return np.arange(len(classes))


def _predict_in_folds(fit: TableFit, method: Any, seed: int) -> RowPredictions | None:
    """Return predictions of one method in folds.

    At hidden labels, and their mean at unlabelled rows.
    """
    problem = read_problem(fit.X, fit.fitted_labels, task=fit.target.task)
    folds = read_folds(
        FOLDS,
        problem,
        random_state=seed,
        groups=fit.model.calibrated.groups,
        quiet=True,
    )
    predictions = _empty(fit, problem.classes)
    unlabelled = problem.sample.unlabelled
    total = np.zeros((len(unlabelled), *predictions.values.shape[1:]))
    for visible, hidden in folds:
        rows = np.concatenate([problem.rows[hidden], unlabelled])
        values = numbers_of_reply(fit_and_predict(method, problem, visible, rows), problem.classes)
        predictions.values[problem.rows[hidden]] = values[: len(hidden)]
        total += values[len(hidden) :] / len(folds)
    predictions.values[unlabelled] = total
    return predictions


def _empty(fit: TableFit, classes: AnyArray | None) -> RowPredictions:
    n_rows = len(fit.target.missing)
    shape = (n_rows,) if classes is None else (n_rows, len(classes))
    return RowPredictions(np.full(shape, np.nan), classes)


def numbers_of_reply(reply: RawPrediction, classes: AnyArray | None) -> Array:
    """Return the numbers of a reply, or the probabilities of classes.

    1 for the answer if that is all.
    """
    if classes is None:
        return np.where(reply.given, reply.values, np.nan).astype(float)
    if reply.probabilities is not None:
        shares = np.asarray(reply.probabilities, dtype=float)
    else:
        shares = np.eye(len(classes))[np.maximum(reply.values, 0)]
    return np.where(reply.given[:, None], shares, 1.0 / len(classes))


def estimated_odds(result: FillResult, fit_rows: AnyArray) -> EstimatedOdds | None:
    """Return the odds that rows have no label, where they are to be estimated.

    They are in the order of the table.
    """
    fit = result.fit
    design = result.options.design
    odds = fit.model.estimated_odds
    shifted = fit.compared is not None and fit.compared.shifted
    if not fit.model.holds_out and design.may_estimate and shifted:
        odds = estimate_odds(fit.X, ~fit.target.missing, result.options.random_state)
    if odds is None or len(fit_rows) != len(result.labels.missing):
        return None
    back = np.argsort(fit_rows)
    return EstimatedOdds(odds.odds[back], odds.model, odds.beyond[back])


def predict_others(
    result: FillResult,
    later: FittedFill,
    roles: RowDraw,
    predictions: Array,
    classes: AnyArray | None,
) -> Array:
    """Return predictions with those at rows that the fit did not see, labelled ones among them."""
    answer = result.raw_answer
    seen = known_rows(predictions)
    others = ~seen[answer.rows]
    values = numbers_of_answer(answer, classes)
    predictions[answer.rows[others]] = values[others]
    kept = roles.calibration[:, 1]
    kept = kept[~result.labels.missing[kept]]
    table = later.outside.table
    of_kept = later.predict_kept()
    predictions[kept] = at_classes(of_kept, table.classes, classes)
    return predictions


def numbers_of_answer(answer: Any, classes: AnyArray | None) -> Array:
    """Return the values of an answer, or the probabilities of these classes."""
    if classes is None:
        return np.asarray(answer.values, dtype=float)
    if answer.probabilities is not None:
        return at_classes(answer.probabilities, answer.classes, classes)
    codes = class_codes(answer.values, classes)
    return np.eye(len(classes))[np.maximum(codes, 0)] * (codes >= 0)[:, None]


def at_classes(values: Array, own: AnyArray | None, classes: AnyArray | None) -> Array:
    """Return probabilities in the order of other classes; 0 for one that was not known."""
    if classes is None or own is None:
        return values
    wide = np.zeros((len(values), len(classes)))
    places = class_codes(own, classes)
    wide[:, places[places >= 0]] = values[:, places >= 0]
    return wide
