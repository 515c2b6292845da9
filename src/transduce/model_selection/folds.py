"""Folds: which labelled rows are visible, and which hidden, in each part of a cross-validation."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from transduce.core import checks
from transduce.core.checks import check_random_state
from transduce.core.ranks import random_folds
from transduce.core.types import AnyArray, Seed
from transduce.core.words import quoted
from transduce.model_selection.estimator_kinds import last_step
from transduce.model_selection.problem import Problem

Fold = tuple[AnyArray, AnyArray]  # positions of visible and of hidden rows among the labelled ones


class Splitter(Protocol):
    """A splitter as scikit-learn has them."""

    def split(
        self,
        X: Any,
        y: Any = None,
        groups: Any = None,
    ) -> Iterable[tuple[Any, Any]]:
        """Yield the positions of visible and of hidden rows in each fold."""


# As users give them: how many, a splitter of scikit-learn, or the pairs themselves.
Folds = int | Splitter | Iterable[tuple[npt.ArrayLike, npt.ArrayLike]]


def read_folds(
    cv: Folds,
    problem: Problem,
    *,
    random_state: Seed = None,
    groups: Any = None,
    quiet: bool = False,
) -> list[Fold]:
    """Return which labelled rows are visible and which hidden in each fold.

    Rows are told by their positions among the labelled ones. Shapes: groups (n,).
    """
    n = len(problem.labels)
    if n < 2:
        raise ValueError("Only one sample has a label: hiding it leaves none. Label another one.")
    if groups is not None:
        _check_groups(groups, problem.n_rows)
    pairs = _split_labels(cv, problem, random_state, groups)
    folds = [_read_pair(pair, n) for pair in pairs]
    if not folds:
        raise ValueError(
            "cv holds no fold: give at least one pair of visible and hidden positions."
        )
    if not quiet:
        _warn_lost(problem, folds)
    return folds


def _check_groups(groups: Any, n_rows: int) -> None:
    """Raise a ValueError unless there is a group for each row."""
    shape = np.shape(groups)
    if len(shape) != 1 or shape[0] != n_rows:
        raise ValueError(
            f"groups must name one group for each of the {n_rows} rows; got an array of shape "
            f"{shape}."
        )


def _split_labels(
    cv: Folds, problem: Problem, random_state: Seed, groups: Any
) -> Iterable[tuple[Any, Any]]:
    """Return pairs of positions: of a number of folds, of a splitter, or as they were given."""
    if isinstance(cv, numbers.Integral) and not isinstance(cv, bool):
        checks.check_whole("cv", cv, least=2)
        return _draw_folds(int(cv), problem, random_state, groups)
    if hasattr(cv, "split") and not isinstance(cv, str):
        labelled_groups = None
        if groups is not None:
            labelled_groups = _safe_indexing(groups, problem.rows)
        labelled_rows = _safe_indexing(problem.X, problem.rows)
        return cv.split(labelled_rows, problem.labels, labelled_groups)
    if isinstance(cv, Iterable) and not isinstance(cv, str):
        return cv
    raise ValueError(
        f"cv must be a number of folds, a splitter, or pairs of positions; got {quoted(cv)}."
    )


def _draw_folds(
    n_folds: int,
    problem: Problem,
    random_state: Seed,
    groups: Any,
) -> list[Fold]:
    """Return so many folds: every class spread evenly, or whole groups together."""
    n = len(problem.labels)
    if groups is not None:
        return group_folds(_safe_indexing(groups, problem.rows), n_folds, random_state)
    codes: AnyArray = np.zeros(n, dtype=int)
    if problem.classes is not None:
        codes = problem.codes
    by_content = np.argsort(problem.places[problem.rows])
    random = check_random_state(random_state)
    fold = np.empty(n, dtype=int)
    fold[by_content] = random_folds(codes[by_content], min(n_folds, n), random)
    return _pairs_of(fold, fold.max() + 1)


def _pairs_of(fold: AnyArray, n_folds: int) -> list[Fold]:
    """Return visible and hidden positions of each fold, from the fold in which each row is (l,)."""
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]


# ---- groups, which no fold splits


def group_codes(groups: Any) -> AnyArray:
    """Return a number for the group of each row (l,); a missing name is a group of its own kind."""
    names = np.asarray(groups)
    try:
        return np.unique(names, return_inverse=True)[1]
    except TypeError:  # names of several types have no order
        codes, levels = pd.factorize(names, use_na_sentinel=False)
        type_and_name = [(type(level).__name__, str(level)) for level in levels]
        by_name = sorted(range(len(levels)), key=type_and_name.__getitem__)
        return np.argsort(by_name)[codes]


def group_folds(groups: Any, n_folds: int, random_state: Seed = None) -> list[Fold]:
    """Return folds that never split a group (l,), of about equal size.

    The largest group comes first, and each goes to the smallest fold.
    """
    codes = group_codes(groups)
    sizes = np.bincount(codes)
    n_groups = len(sizes)
    if n_groups < 2:
        raise ValueError(
            "All labels are of one group: hiding it leaves none. Folds need two groups."
        )
    random = check_random_state(random_state)
    fold_sizes = np.zeros(min(n_folds, n_groups), dtype=int)
    fold_of_group = np.empty(n_groups, dtype=int)
    for code in np.lexsort([random.permutation(n_groups), -sizes]):
        smallest = fold_sizes.argmin()
        fold_of_group[code] = smallest
        fold_sizes[smallest] += sizes[code]
    return _pairs_of(fold_of_group[codes], len(fold_sizes))


def with_group_folds(estimator: Any, groups: Any) -> Any:
    """Return a copy of an estimator whose own folds, if any, never split a group (l,)."""
    cv = getattr(last_step(estimator), "cv", None)
    if isinstance(cv, str) and cv == "auto":
        cv = 5
    if not isinstance(cv, numbers.Integral) or isinstance(cv, bool):
        return estimator
    if len(np.unique(group_codes(groups))) < 2:
        return estimator
    copy = clone(estimator)
    last_step(copy).set_params(cv=group_folds(groups, int(cv), random_state=0))
    return copy


# ---- checks


def _read_pair(pair: Any, n: int) -> Fold:
    """Return a fold as two arrays of positions, checked."""
    try:
        first, second = (np.asarray(part) for part in pair)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            "cv must hold pairs: positions of visible rows and of hidden rows."
        ) from None
    visible = _read_positions(first, n)
    hidden = _read_positions(second, n)
    if len(np.intersect1d(visible, hidden)):
        raise ValueError(
            "A fold of cv has a row both visible and hidden: its answer would be no test."
        )
    return visible, hidden


def _read_positions(part: AnyArray, n: int) -> AnyArray:
    """Return positions among n labelled rows; a mask (n,) is read as one."""
    if part.dtype == bool and len(part) == n:
        part = np.flatnonzero(part)
    is_proper = part.ndim == 1 and part.dtype.kind in "iu" and len(part) > 0
    if not is_proper or part.min() < -n or part.max() >= n:
        raise ValueError(
            f"cv must hold positions among the {n} labelled rows, at least one visible and one "
            "hidden a fold."
        )
    return part % n


def _warn_lost(problem: Problem, folds: list[Fold]) -> None:
    """Say which classes have no visible label in some fold."""
    if problem.classes is None:
        return
    lost: dict[Any, list[int]] = {}  # numbers of folds by class
    for number, (visible, hidden) in enumerate(folds, start=1):
        for code in np.setdiff1d(problem.codes[hidden], problem.codes[visible]):
            lost.setdefault(problem.classes[code].item(), []).append(number)
    if lost:
        words = ", ".join(
            f"{quoted(name)} in fold {', '.join(map(str, where))}" for name, where in lost.items()
        )
        warnings.warn(
            f"All labels of a class are hidden at once ({words}): no answer there can be right. "
            "Give such a class at least two labels.",
            stacklevel=4,
        )
