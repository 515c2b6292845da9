"""Labels that were hidden in turn, and how well methods answered them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from transduce.app.filling.plan import FOLDS
from transduce.core.answer import Answer
from transduce.core.scaling import DRAWN_PRIOR, POWER_PRIOR, fit_power, square_unit, to_power
from transduce.core.types import AnyArray
from transduce.core.validation import class_codes
from transduce.ensemble.blend import TransductiveBlend
from transduce.model_selection.cross_validation import cross_val_transduce

if TYPE_CHECKING:
    from transduce.app.filling.options import Options
    from transduce.app.filling.table_fit import TableFit

SCORERS = {"regression": "R²", "classification": "accuracy"}
NO_FOLDS = pd.DataFrame({"true": [], "answered": []})
# Numbers, or probabilities of the classes in the columns.
Stated: TypeAlias = pd.Series | pd.DataFrame


def score(task: str, folds: pd.DataFrame) -> float:
    """Return R², or the share of right answers, weighted; NaN if there is nothing to score."""
    from sklearn.metrics import r2_score

    if len(folds) < 2:
        return np.nan
    weights = folds.get("weight")
    if task == "classification":
        pairs = zip(folds["true"], folds["answered"], strict=True)
        is_right = [str(true) == str(answered) for true, answered in pairs]
        return float(np.average(is_right, weights=weights))
    true = folds["true"].to_numpy(dtype=float)
    answered = folds["answered"].to_numpy(dtype=float)
    unit = square_unit(true, answered)
    return float(r2_score(true / unit, answered / unit, sample_weight=weights))


@dataclass(frozen=True, eq=False)
class HiddenLabels:
    """What methods said of labels that were hidden in turn."""

    scores: dict[str, float] = field(default_factory=dict)  # of each method
    folds: pd.DataFrame = field(default_factory=NO_FOLDS.copy)  # ``true`` and ``answered``
    power: float = 1.0  # makes shares of classes probabilities
    # The same at all labels, those that stand for no unlabelled row too; of classes with the
    # ``probability_of_true`` one.
    all_folds: pd.DataFrame = field(default_factory=NO_FOLDS.copy)


def look_at_labels(fit: TableFit, options: Options) -> HiddenLabels:
    """Return what each method says of labels that were hidden in turn."""
    if isinstance(fit.values_model, TransductiveBlend):
        name = "blend"
        stated = _stated_by_blend(fit)
        if stated is None:
            return HiddenLabels()
        answered = {member: _likeliest(_at_shares(part, fit)) for member, part in stated.items()}
    else:
        name = options.method_name
        _, answers = hide_labels(fit.values_model, fit, FOLDS, options.random_state)
        stated = {name: _stated(answers)}
        answered = {name: answers.values}
        if fit.shares is not None:
            answered[name] = _likeliest(_at_shares(stated[name], fit))
    rows = stated[name].index.to_numpy()
    answered = {member: fit.add_offset(values, rows) for member, values in answered.items()}
    columns = {"true": fit.target.labels[rows], "answered": answered[name]}
    folds = pd.DataFrame(columns, index=rows)
    power = 1.0
    probabilities = stated[name]
    if isinstance(probabilities, pd.DataFrame):
        folds["probability"] = _at_shares(probabilities, fit).to_numpy().max(axis=1)
        power = _fit_power(fit, folds, probabilities)
    all_folds = folds
    if isinstance(probabilities, pd.DataFrame):
        all_folds = folds.assign(probability_of_true=_of_true(probabilities, folds["true"], power))
    scores = {
        member: score(fit.target.task, weigh_folds(fit, folds.assign(answered=values)))
        for member, values in answered.items()
        if member != "blend"
    }
    return HiddenLabels(scores, weigh_folds(fit, folds), power, all_folds)


def _of_true(stated: pd.DataFrame, true: pd.Series, power: float) -> AnyArray:
    """Return the probability of the true class at each hidden label; 0 of one never stated."""
    probabilities = to_power(stated.to_numpy(), power)
    codes = class_codes(true.to_numpy(), stated.columns.to_numpy())
    of_true = probabilities[np.arange(len(codes)), codes]
    return np.where(codes >= 0, of_true, 0.0)


def _stated_by_blend(fit: TableFit) -> dict[str, Stated] | None:
    """Return what the members of a blend, and the blend, said of hidden labels, by their rows."""
    hidden = getattr(fit.values_model, "out_of_fold_", None)
    if hidden is None:
        return None
    rows = fit.order[hidden.index]
    members = [*fit.values_model.weights_.index, "blend"]
    return {member: hidden[member].set_axis(rows, axis=0) for member in members}


def _stated(answers: Answer) -> Stated:
    """Return what one method said of hidden labels, by their rows."""
    if answers.probabilities is None:
        return pd.Series(answers.values, answers.rows)
    return pd.DataFrame(answers.probabilities, answers.rows, answers.classes)


def _likeliest(stated: Stated) -> AnyArray:
    """Return one member's out-of-fold answers: numbers, or the likeliest classes."""
    if isinstance(stated, pd.Series):
        return stated.to_numpy()
    return stated.columns.to_numpy()[stated.to_numpy().argmax(axis=1)]


def _at_shares(stated: Any, fit: TableFit) -> Any:
    """Return probabilities for the class shares of the unlabelled rows.

    Labels may have other shares.
    """
    if fit.shares is None or stated.ndim == 1:
        return stated
    reweighed = fit.shares.at(stated.columns.to_numpy()).reweigh(stated.to_numpy())
    return pd.DataFrame(reweighed, index=stated.index, columns=stated.columns)


def _fit_power(fit: TableFit, folds: pd.DataFrame, stated: pd.DataFrame) -> float:
    """Return the power that makes the probabilities of classes fit labels that were hidden."""
    stands_for_others = fit.weigh_labels(stated.index.to_numpy()) > 0.0
    all_do = bool(stands_for_others.all())
    if all_do and isinstance(fit.values_model, TransductiveBlend):
        return 1.0  # the blend has been raised to its own, that of all labels
    codes = class_codes(folds["true"].to_numpy(), stated.columns.to_numpy())
    has_answer = np.isfinite(folds["probability"].to_numpy()) & (codes >= 0)
    used = has_answer & stands_for_others
    prior = DRAWN_PRIOR
    if all_do:
        prior = POWER_PRIOR
    return fit_power(stated.to_numpy()[used], codes[used], prior)


def weigh_folds(fit: TableFit, folds: pd.DataFrame) -> pd.DataFrame:
    """Return answers at labels of rows that stand for unlabelled ones, with weights that differ."""
    weights = fit.weigh_labels(folds.index.to_numpy())
    if len(np.unique(weights[weights > 0.0])) > 1:
        folds = folds.assign(weight=weights / weights.mean())
    return folds[weights > 0.0].rename_axis("row")


def hide_labels(
    method: Any,
    fit: TableFit,
    folds: int,
    seed: int,
) -> tuple[AnyArray, Answer]:
    """Return labels that were hidden in turn, as the methods see them, and the answers at them."""
    labels = fit.fitted_labels
    with warnings.catch_warnings(action="ignore"):
        hidden = cross_val_transduce(
            method,
            fit.X,
            labels,
            cv=folds,
            groups=fit.model.calibrated.groups,
            random_state=seed,
        )
    return labels[hidden.answers.rows], hidden.answers
