"""What a fitted member would answer at a labelled row without its label, from the one fit: no refit is needed."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import Pipeline

from transduce.core.types import Array
from transduce.methods.spectral_graph.classifier import SpectralGraphTransducer
from transduce.model_selection.folds import Fold
from transduce.model_selection.hidden_labels import Fitted, Problem, Reply, last_step, take

FORESTS = (RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor)


def without_refits(reply: Reply, problem: Problem, folds: list[Fold]) -> list[Reply] | None:
    """Return a member's answers at the hidden rows of every fold; None if only refits can tell."""
    fitted = reply.fitted
    if fitted is None or fitted.pairwise:
        return None
    last = last_step(fitted.estimator)
    if isinstance(last, SpectralGraphTransducer) and problem.classes is not None:
        return _relabelled(fitted, last, problem, folds)
    if isinstance(last, FORESTS) and last.bootstrap:
        found = _out_of_bag(fitted, last, problem)
        return [_reply(fitted, found[hidden]) for _, hidden in folds]
    if hasattr(last, "answers_in_folds"):
        return [_reply(fitted, part) for part in last.answers_in_folds(folds)]
    return None


def _reply(fitted: Fitted, found: Array) -> Reply:
    """Return numbers, or the probabilities of the estimator's classes, as a reply."""
    if fitted.classes is None:
        return fitted.reply(found)
    own = last_step(fitted.estimator).classes_
    return fitted.reply(own[found.argmax(axis=1)], probabilities=found, own=own)


def _out_of_bag(fitted: Fitted, forest: Any, problem: Problem) -> Array:
    """Return at every labelled row the mean over the trees that did not draw it; of all trees where there is none."""
    rows = take(problem.X, problem.rows)
    if isinstance(fitted.estimator, Pipeline):
        rows = fitted.estimator[:-1].transform(rows)
    rows = np.asarray(rows, dtype=np.float32)
    classes = problem.classes is not None
    total = np.zeros((len(rows), len(forest.classes_) if classes else 1))
    count = np.zeros(len(rows))
    for tree, drawn in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        away = np.ones(len(rows), dtype=bool)
        away[drawn] = False
        found = tree.tree_.predict(rows[away])
        total[away] += found.reshape(len(found), total.shape[1])  # with few labels none may be away
        count[away] += 1
    never = count == 0
    if never.any():
        total[never] = np.mean(
            [tree.tree_.predict(rows[never]).reshape(never.sum(), -1) for tree in forest.estimators_], axis=0
        )
    mean = total / np.maximum(count, 1)[:, None]
    return mean if classes else mean[:, 0]


def _relabelled(
    fitted: Fitted, transducer: SpectralGraphTransducer, problem: Problem, folds: list[Fold]
) -> list[Reply] | None:
    """Return the answers of the same graph cut with the visible labels of each fold; None if one sees a class only."""
    if any(len(np.unique(problem.codes[visible])) < 2 for visible, _ in folds):
        return None
    again = _copy(transducer)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for visible, hidden in folds:
            again.relabel(problem.shown(visible))
            found.append(replace(fitted, estimator=again).answers(problem.rows[hidden]))
    return found


def _copy(transducer: SpectralGraphTransducer) -> SpectralGraphTransducer:
    """Return a copy that can be labelled anew while the fitted one stays as it is; graph and spectrum are shared."""
    again = SpectralGraphTransducer(**transducer.get_params(deep=False))
    again.__dict__.update(transducer.__dict__)
    return again
