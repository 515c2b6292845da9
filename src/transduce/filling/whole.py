"""Filling a table whose rows all take part in the fit: plan, fit, and gather all there is to know."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from transduce.conformal import Chance, ConformalTransducer, Exchangeability, exchangeability_test
from transduce.conformal.calibrated import holding_values, with_values
from transduce.core import arrays
from transduce.core.answer import Answer
from transduce.core.computing import few_threads, stage
from transduce.core.guarantee import Guarantee, TooFewLabelsWarning, too_few_labels
from transduce.core.ranks import fewest_calibration
from transduce.core.words import option
from transduce.device import memory
from transduce.filling.diagnostics import (
    RightChance,
    Values,
    members_and_folds,
    next_labels,
    relevance,
    right_of,
    row_map,
)
from transduce.filling.plan import Plan, PlanSettings, plan, plan_weights
from transduce.filling.result import FillResult
from transduce.filling.settings import FillSettings
from transduce.model_selection.ask import answer_of, ask, read_problem
from transduce.tables.columns import new_columns
from transduce.tables.features import Features, vectorize
from transduce.tables.labels import Target
from transduce.tables.numbers import without

SMALL = 20_000  # rows up to which idle threads of matrix products take more time than they save


def fill_whole(
    frame: pd.DataFrame, target: Target, settings: FillSettings, prefer: str = "point"
) -> FillResult:
    """Fill a table with a fit that sees all of its rows."""
    check_limits(target, settings)
    features = vectorize(
        without(frame, settings.missing),
        settings.target,
        ignore=[*settings.ignore, *settings.design.not_features],
        text=settings.text,
        id=settings.id,
        prefer=prefer,
        random_state=settings.random_state,
    )
    if features.matrix.shape[1] == 0:
        raise ValueError(
            f"No column except {settings.target!r} varies from row to row: there is nothing to learn from."
        )
    with few_threads(len(frame), SMALL):
        return _fill(frame, target, features, settings)


def _fill(frame: pd.DataFrame, target: Target, features: Features, settings: FillSettings) -> FillResult:
    """Fit what was planned, and gather all there is to know about it."""
    found, compared = _planned(frame, target, features, settings)
    index = frame.index if settings.id is None else pd.Index(frame[settings.id])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = pd.Series(target.labels, index=index, name=target.name)
        fitted = _fit(found, features, target, settings, y, compared)
    with stage("how well it does"):
        members, folds = members_and_folds(
            fitted.values, settings.method, found, features, target, fitted.seconds, settings.random_state
        )
    with stage("map"):
        where = row_map(features.matrix, settings.random_state)
    with stage("what to label next"):
        advice = next_labels(fitted.answer, fitted.values, features, target, settings.random_state)
    chance = RightChance.of(folds)
    right, level = right_of(chance, fitted.answer), float(settings.confidence)
    shares = settings.probabilities
    new = new_columns(target, fitted.answer, level, frame.index, right=right, probabilities=shares)
    result = FillResult(
        frame=pd.concat([frame, new], axis=1),
        new=new,
        target=target.name,
        task=target.task,
        answer=fitted.answer,
        model=fitted.model,
        values_model=fitted.values.estimator,
        confidence=level,
        certainty=float(settings.certainty),
        members=members,
        out_of_fold=folds,
        columns=features.columns,
        encoder=features.encoder,
        chance=chance,
        advice=advice,
        miscoverage=fitted.model.miscoverage_ if isinstance(fitted.model, ConformalTransducer) else None,
        exchangeability=fitted.compared,
        sensitivity=_sensitivity(fitted),
        relevance=relevance(fitted.values.estimator, features),
        map=where,
        options=settings.flat,
        counts={"n_rows": len(frame), "n_labels": target.n_labels, "n_fitted": len(frame)},
        notes=_notes(target, features, found, fitted, caught),
    )
    return result.with_next_column() if settings.label_next else result


def _planned(
    frame: pd.DataFrame, target: Target, features: Features, settings: FillSettings
) -> tuple[Plan, Exchangeability | None]:
    """Return what is to be fitted and, where that had to be known first, how labelled and unlabelled rows compare."""
    wanted = PlanSettings(
        confidence=float(settings.confidence),
        guarantee=settings.guarantee,
        label_conditional=settings.label_conditional,
        tolerance=settings.tolerance,
        labels=settings.design.read(target.missing, frame),
        classes=settings.classes,
        budget_seconds=float(settings.budget_seconds),
        n_jobs=settings.n_jobs,
        random_state=settings.random_state,
        n_outside=settings.n_outside,
        n_features=features.matrix.shape[1],
        n_classes=len(set(target.labels[~target.missing].tolist())) if target.task == "classification" else 0,
    )
    found = plan(settings.method, target.task, n_rows=len(frame), n_labels=target.n_labels, settings=wanted)
    if found.calibrated or settings.design == Chance(reweight=False):
        return found, None
    compared = _compare(features, target, settings)
    if compared.shifted and settings.guarantee == "auto":
        found = plan_weights(settings.method, found, target, len(frame), wanted)
    return found, compared


def _notes(
    target: Target, features: Features, found: Plan, fitted: _Answered, caught: list[Any]
) -> list[str]:
    """Return what the user should know, each thing once."""
    notes = [*target.notes, *features.notes, *_about_columns(features), *_about_copies(features)]
    said = (str(note.message) for note in caught if not _is_said(note.category, note.message, fitted))
    return [*notes, *found.notes, *fitted.notes, *dict.fromkeys(said)]


def check_limits(target: Target, settings: FillSettings) -> None:
    """Raise a ValueError if a label lies beyond what is said to be possible."""
    low, high = settings.limits
    if target.task == "regression":
        known = target.labels[~target.missing].astype(float)
        odd = known[(known < low) | (known > high)]
        if len(odd):
            name = "minimum" if odd[0] < low else "maximum"
            limit = option(name, getattr(settings, name))
            raise ValueError(
                f"{target.name!r} has the label {odd[0]:g}, beyond {limit}: correct one of them."
            )


def _sensitivity(fitted: _Answered) -> pd.DataFrame | None:
    """Return how wide intervals get if the chance of a label also depends on the value; None if none calibrates."""
    if not isinstance(fitted.model, ConformalTransducer) or fitted.answer.guarantee.kind == "none":
        return None
    return fitted.model.widths_at(sorted({1.0, 1.5, 2.0, float(fitted.model.labels.sensitivity)}))


@dataclass(frozen=True, eq=False)
class _Answered:
    """What was fitted and answered, what there is to tell of it, and how long it took."""

    model: Any
    answer: Answer
    values: Values
    compared: Exchangeability | None
    notes: list[str]
    seconds: float


def _fit(
    found: Plan,
    features: Features,
    target: Target,
    settings: FillSettings,
    y: pd.Series,
    compared: Exchangeability | None,
) -> _Answered:
    """Fit the model and what the values come from, and settle the guarantee."""
    began = time.perf_counter()
    with stage(f"forecast: {max(found.seconds, 1.0):.0f} s"):  # said before the work
        pass
    with stage("answers"):
        model = _fit_model(found.model, features, settings.device, y)
    answer, values = _values(model, found, features, target)
    seconds = time.perf_counter() - began
    if isinstance(model, ConformalTransducer):
        compared, guarantee = model.exchangeability_, model.guarantee_at(certainty=float(settings.certainty))
    else:
        compared, guarantee = compared or _compare(features, target, settings), model.guarantee_
    if compared is not None:
        compared = compared.named(features.origins)
        guarantee = guarantee.doubted(compared.verdict)
    least = fewest_calibration(float(settings.confidence))
    if target.n_labels < least:
        guarantee = too_few_labels(guarantee, target.n_labels, least)
    answer = replace(answer, guarantee=guarantee).within(*settings.limits)
    answer, notes = reject_unsure(answer, settings.reject_share)
    return _Answered(model, answer, values, compared, notes, seconds)


def _fit_model(model: Any, features: Features, device: str | None, y: pd.Series) -> Any:
    """Fit a model where the features are to be."""
    if device is None:
        return model.fit(features.matrix, y)
    with arrays.dispatching():
        return model.fit(memory.to_device(features.matrix, device), y)


def _is_said(category: type[Warning], message: Any, fitted: _Answered) -> bool:
    """Return whether the guarantee says what a warning says: that labels are too few, or that rows differ."""
    own = getattr(fitted.model, "exchangeability_", None)
    return issubclass(category, TooFewLabelsWarning) or (own is not None and str(message) == str(own.verdict))


def _about_columns(features: Features) -> list[str]:
    """Return a note on the columns that were dropped although nobody asked for it."""
    dropped = features.columns[features.columns["treatment"].str.startswith("dropped")]
    if dropped.empty:
        return []
    names = ", ".join(
        f"{name!r} ({kind})" for name, kind in zip(dropped["name"], dropped["kind"], strict=True)
    )
    return [f"Left out: {names}."]


def _about_copies(features: Features) -> list[str]:
    """Return a note where many rows with numbers in them are copies of others, as after entering a table twice."""
    if "number" not in set(features.columns["kind"]):
        return []
    distinct = len(np.unique(features.matrix.round(9), axis=0))
    n = len(features.matrix)
    if distinct > 0.7 * n:
        return []
    return [
        f"{n - distinct:,} of the {n:,} rows are copies of others. If they were entered twice, keep one of each, or "
        f"name them with {option('groups')}: copies that are labelled together are not chosen by chance one by one."
    ]


def _values(model: Any, found: Plan, features: Features, target: Target) -> tuple[Answer, Values]:
    """Return the answer with values from a fit to all labels, and the estimator that was fitted so."""
    if isinstance(model, ConformalTransducer):
        return model.answer_, Values(model.refitted_, model.fitted_rows_, model.labels.together)
    every = np.arange(len(target.labels))
    if found.values is None:
        return holding_values(model.answer_), Values(model, every)
    with stage("values"):
        problem = read_problem(features.matrix, target.labels, task=target.task)
        reply = ask(found.values, problem, np.arange(len(problem.labels)), problem.sample.unlabelled)
        better = answer_of(reply, problem, Guarantee("none"))
    assert reply.fitted is not None
    return with_values(model.answer_, better), Values(reply.fitted.estimator, every)


def _compare(features: Features, target: Target, settings: FillSettings) -> Exchangeability:
    """Return how labelled and unlabelled rows compare."""
    with stage("exchangeability"):
        return exchangeability_test(features.matrix, ~target.missing, random_state=settings.random_state)


def reject_unsure(answer: Answer, share: float | None) -> tuple[Answer, list[str]]:
    """Return the answer with unsure rows rejected, if that is wanted, and a note on it."""
    if share is None:
        return answer, []
    answer = _reject(answer, float(share))
    count = int(np.sum(answer.status == "rejected"))
    if not count:
        return answer, ["No answer is marked as rejected: this method is equally certain of all of them."]
    return answer, [
        f"{count} of {len(answer)} answers, the least certain, are marked as rejected; their values stay, and the "
        "guarantee is about all answers together."
    ]


def _reject(answer: Answer, share: float) -> Answer:
    """Return the answer with the least certain rows rejected.

    For numbers those with the widest intervals; for classes those whose two likeliest classes are closest, since many
    rows have the same confidence.
    """
    if answer.regions is not None:
        certain = -answer.regions.measure()
    elif answer.probabilities is not None:
        ranked = np.sort(answer.probabilities, axis=1)
        certain = ranked[:, -1] - ranked[:, -2]
    else:
        assert answer.confidence is not None
        certain = answer.confidence
    rejected = replace(answer, confidence=certain).reject(share=share)
    return replace(rejected, confidence=answer.confidence)
