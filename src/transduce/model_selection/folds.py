"""Hiding the labels of one fold at a time, and asking estimators for them."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.parallel import Parallel, delayed

from transduce.core import checks
from transduce.core.computing import call_with_threads, stage, threads_of_fit
from transduce.core.ranks import random_folds
from transduce.core.types import AnyArray, Array
from transduce.model_selection.ask import Problem, Reply, ask, last_step

Fold = tuple[AnyArray, AnyArray]


@dataclass(frozen=True)
class Failure:
    """Why an estimator gave no answer."""

    message: str
    error: Exception


def read_folds(
    cv: Any, problem: Problem, *, random_state: Any = None, groups: Any = None, quiet: bool = False
) -> list[Fold]:
    """Return which of the labelled rows are visible and hidden in each fold, by position among them; groups (n,)."""
    n = len(problem.labels)
    if n < 2:
        raise ValueError("Only one sample has a label: hiding it leaves none. Label another one.")
    if isinstance(cv, numbers.Integral) and not isinstance(cv, bool):
        checks.check_whole("cv", cv, least=2)
        pairs: Any = _number_of_folds(int(cv), problem, random_state, groups)
    elif hasattr(cv, "split") and not isinstance(cv, str):
        groups_l = None if groups is None else _safe_indexing(groups, problem.rows)
        pairs = cv.split(_safe_indexing(problem.X, problem.rows), problem.labels, groups_l)
    elif isinstance(cv, Iterable) and not isinstance(cv, str):
        pairs = cv
    else:
        raise ValueError(f"cv must be a number of folds, a splitter, or pairs of positions; got {cv!r}.")
    folds = [_read_pair(pair, n) for pair in pairs]
    if not folds:
        raise ValueError("cv holds no fold: give at least one pair of visible and hidden positions.")
    if not quiet:
        _warn_lost(problem, folds)
    return folds


def _number_of_folds(cv: int, problem: Problem, random_state: Any, groups: Any) -> list[Fold]:
    """Return so many folds: every class spread evenly, or whole groups together."""
    n = len(problem.labels)
    if groups is not None:
        return group_folds(_safe_indexing(groups, problem.rows), cv, random_state)
    codes = problem.codes if problem.classes is not None else np.zeros(n, dtype=int)
    fold = random_folds(codes, min(cv, n), check_random_state(random_state))
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(fold.max() + 1)]


def group_folds(groups: Any, n_folds: int, random_state: Any = None) -> list[Fold]:
    """Return folds that never split a group (l,): pairs of visible and hidden positions, of about equal size."""
    codes = np.unique(np.asarray(groups), return_inverse=True)[1]
    sizes = np.bincount(codes)
    if len(sizes) < 2:
        raise ValueError("All labels are of one group: hiding it leaves none. Folds need two groups.")
    random = check_random_state(random_state)
    filled_to, fold_of = np.zeros(min(n_folds, len(sizes)), dtype=int), np.empty(len(sizes), dtype=int)
    for code in np.lexsort([random.permutation(len(sizes)), -sizes]):
        fold_of[code] = filled_to.argmin()
        filled_to[fold_of[code]] += sizes[code]
    fold = fold_of[codes]
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(len(filled_to))]


def with_group_folds(estimator: Any, groups: Any, random_state: Any = None) -> Any:
    """Return a copy of an estimator whose own folds, if any, never split a group (l,)."""
    cv = getattr(last_step(estimator), "cv", None)
    cv = 5 if isinstance(cv, str) and cv == "auto" else cv
    if not isinstance(cv, numbers.Integral) or isinstance(cv, bool) or len(np.unique(np.asarray(groups))) < 2:
        return estimator
    copy = clone(estimator)
    last_step(copy).set_params(cv=group_folds(groups, int(cv), random_state))
    return copy


def _read_pair(pair: Any, n: int) -> Fold:
    """Return a fold as two arrays of positions, checked."""
    try:
        visible, hidden = (np.asarray(part) for part in pair)
    except (TypeError, ValueError):
        raise ValueError("cv must hold pairs: positions of visible rows and of hidden rows.") from None
    parts: list[AnyArray] = []
    for part in (visible, hidden):
        part = np.flatnonzero(part) if part.dtype == bool and len(part) == n else part
        proper = part.ndim == 1 and part.dtype.kind in "iu" and len(part) > 0
        if not proper or part.min() < -n or part.max() >= n:
            where = f"among the {n} labelled rows"
            raise ValueError(f"cv must hold positions {where}, at least one visible and one hidden a fold.")
        parts.append(part % n)
    if len(np.intersect1d(parts[0], parts[1])):
        raise ValueError("A fold of cv has a row both visible and hidden: its answer would be no test.")
    return parts[0], parts[1]


def _warn_lost(problem: Problem, folds: list[Fold]) -> None:
    """Say which classes have no visible label in some fold."""
    if problem.classes is None:
        return
    lost: dict[Any, list[int]] = {}
    for k, (visible, hidden) in enumerate(folds):
        for code in np.setdiff1d(problem.codes[hidden], problem.codes[visible]):
            lost.setdefault(problem.classes[code].item(), []).append(k + 1)
    if lost:
        words = ", ".join(f"{name!r} in fold {', '.join(map(str, where))}" for name, where in lost.items())
        warnings.warn(
            f"All labels of a class are hidden at once ({words}): no answer there can be right. Give such a class at "
            "least two labels.",
            stacklevel=4,
        )


def ask_folds(
    estimators: list[Any], problem: Problem, folds: list[Fold], *, n_jobs: int | None = None
) -> list[list[Reply | Failure]]:
    """Return what each estimator replies in each fold, or why it fails; the fitted copies are let go."""
    start = partial(delayed(call_with_threads), threads_of_fit(problem.n_rows), _try)
    jobs = [start(estimator, problem, *fold) for estimator in estimators for fold in folds]
    replies: list[Reply | Failure] = []
    if jobs:
        with stage("cross-validation") as report:
            for reply in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
                replies.append(reply)
                report(len(replies) / len(jobs))
    return [replies[k * len(folds) : (k + 1) * len(folds)] for k in range(len(estimators))]


def _try(estimator: Any, problem: Problem, visible: AnyArray, hidden: AnyArray) -> Reply | Failure:
    try:
        return replace(ask(estimator, problem, visible, problem.rows[hidden]), fitted=None)
    except Exception as error:  # an estimator of any make may raise anything
        return Failure(in_a_sentence(error), error)


def in_a_sentence(error: Exception) -> str:
    """Return the first line of an error's message, or its name if it has none."""
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__


def filled(reply: Reply, prior: Array) -> Reply:
    """Return the reply with the prior where the estimator gave none: the mean label, or the share of each class."""
    if reply.given.all():
        return reply
    gaps = ~reply.given
    values = np.where(gaps, prior[0] if len(prior) == 1 else int(prior.argmax()), reply.values)
    parts: dict[str, Any] = {"probabilities": reply.probabilities, "scores": reply.scores}
    parts = {name: np.where(gaps[:, None], prior, part) for name, part in parts.items() if part is not None}
    return replace(reply, values=values, **parts)
