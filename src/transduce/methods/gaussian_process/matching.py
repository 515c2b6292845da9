"""How hard moments are matched: by cross-validation among the labelled rows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils.parallel import Parallel, delayed

from transduce.core import arrays
from transduce.core.ranks import rank_folds
from transduce.core.types import AnyArray, Array, Mask
from transduce.methods.gaussian_process.descents import Search
from transduce.methods.gaussian_process.process import Objective, Posterior

log = logging.getLogger(__name__)

# What "cv" tries, besides no matching at all.
MATCHINGS = (0.1, 0.3, 1.0)
SLACKS = (0.001, 0.01, 0.1)
N_FOLDS = 5
MIN_LABELS = 10


class MatchingChoice(NamedTuple):
    """How hard to match, why in words, and the table of cross-validation if it was asked."""

    matching: float
    slack: float
    why: str
    path: pd.DataFrame | None = None


class MatchingSettings(NamedTuple):
    """What was asked for; None where it is to be chosen."""

    matching: float | None
    slack: float | None
    epsilon: float | None
    n_jobs: int | None

    @classmethod
    def of(
        cls,
        matching: float | str,
        slack: float | str,
        epsilon: float | None,
        n_jobs: int | None,
    ) -> MatchingSettings:
        """Read an estimator's settings, which have been checked; with epsilon slack has no use."""
        number = _number_or_none(slack)
        if epsilon is not None:
            number = 0.0
        return cls(_number_or_none(matching), number, epsilon, n_jobs)

    def describe(self, matching: float, slack: float) -> str:
        """Return settings in words."""
        if self.epsilon is not None:
            return f"matching={matching:g}, epsilon={self.epsilon:g}"
        return f"matching={matching:g}, slack={slack:g}"


def _number_or_none(setting: float | str) -> float | None:
    """Return a setting that is a number, or None where it is to be chosen."""
    if isinstance(setting, str):
        return None
    return setting


ErrorsOfFold = Callable[[Any, Mask, Search, Array, Array], Array]


def choose_matching(
    objective: Objective, settings: MatchingSettings, search: Search, start: Array
) -> MatchingChoice:
    """Choose how hard to match; `start` is the lowest point of the objective without matching."""
    n_labelled = objective.y_l.shape[0]
    if _all_equal(objective.y_l):
        why = "matching=0: all labels are equal, so there is no spread to match"
        return MatchingChoice(0.0, settings.slack or 0.0, why)
    choice = choose_without_labels(settings, n_labelled, objective.X.shape[0] - n_labelled)
    if choice is not None:
        return choice
    fold = rank_folds(objective.y_l, objective.X[:n_labelled, :], min(N_FOLDS, n_labelled))
    return cross_validate_matching(objective, settings, search, start, fold, fold_errors)


def choose_without_labels(
    settings: MatchingSettings, n_labelled: int, n_unlabelled: int
) -> MatchingChoice | None:
    """Return the choice where nothing is to be chosen by labels, and why."""
    matching = settings.matching
    slack = settings.slack
    if n_unlabelled == 0:
        why = "matching=0: no row is unlabelled, so there is nothing to match"
        return MatchingChoice(0.0, slack or 0.0, why)
    is_set = matching is not None and slack is not None
    if is_set or matching == 0.0:
        words = settings.describe(matching or 0.0, slack or 0.0)
        return MatchingChoice(matching or 0.0, slack or 0.0, f"{words}, as set")
    if n_labelled >= MIN_LABELS:
        return None
    if slack is None:
        slack = SLACKS[1]
    words = settings.describe(matching or 0.0, slack)
    why = f"{words}: fewer than {MIN_LABELS} labels are too few to choose by"
    return MatchingChoice(matching or 0.0, slack, why)


def cross_validate_matching(
    objective: Any,
    settings: MatchingSettings,
    search: Search,
    start: Array,
    fold: AnyArray,
    errors_of_fold: ErrorsOfFold,
) -> MatchingChoice:
    """Choose by the error at hidden labels what is not given: matching, slack, or both.

    No matching, unless another is better by more than its standard error.
    """
    grid = _matching_grid(settings.matching, settings.slack)
    # A choice between a dozen pairs needs no more digits than their errors differ by.
    quick = replace(
        search,
        max_iter=min(50, search.max_iter),
        tolerance=max(1e-5, search.tolerance),
    )
    path = compare_matchings(
        objective,
        fold,
        quick,
        start,
        grid,
        settings.n_jobs,
        errors_of_fold=errors_of_fold,
    )
    best = int(path["error"].to_numpy().argmin())
    is_hardly_better = path["gain"][best] <= path["gain_se"][best]
    if settings.matching is None and (best == 0 or is_hardly_better):
        why = (
            "matching=0, by cross-validation: no weight was better than none by more than its "
            "standard error"
        )
        return MatchingChoice(0.0, settings.slack or 0.0, why, path)
    matching = float(path["matching"][best])
    slack = float(path["slack"][best])
    why = f"{settings.describe(matching, slack)}, by cross-validation"
    return MatchingChoice(matching, slack, why, path)


def _matching_grid(matching: float | None, slack: float | None) -> Array:
    """Return the pairs (matching, slack) to try, (g, 2); no matching first, unless one is given."""
    slacks = SLACKS if slack is None else (slack,)
    matchings = MATCHINGS if matching is None else (matching,)
    pairs = [(weight, looseness) for looseness in slacks for weight in matchings]
    if matching is None:
        pairs = [(0.0, slacks[0]), *pairs]
    return np.array(pairs)


def fold_errors(
    whole: Objective,
    hidden: Mask,
    search: Search,
    start: Array,
    grid: Array,
) -> Array:
    """Return the mean squared error at hidden labels for every (matching, slack) of `grid` (g,)."""
    n_labelled = whole.y_l.shape[0]
    xp = arrays.namespace(whole.y_l)
    X_l = whole.X[:n_labelled, :]
    X_visible = arrays.pick(X_l, ~hidden)
    X_hidden = arrays.pick(X_l, hidden)
    truth = arrays.pick(whole.y_l, hidden)
    visible = arrays.pick(whole.y_l, ~hidden)
    mean = float(xp.mean(visible))
    scale = float(xp.std(visible)) or 1.0
    y_l = (visible - mean) / scale
    if _all_equal(y_l):  # all weights agree on the only label there is
        return np.full(len(grid), float(xp.mean((mean - truth) ** 2)))
    rows = xp.concat([X_visible, X_hidden, whole.X[n_labelled:, :]])
    fold = replace(whole, X=rows, y_l=y_l)
    errors = np.full(len(grid), np.inf)
    for place, parameters in descend_over_grid(fold, search, start, grid):
        posterior = Posterior.fit(X_visible, y_l, parameters, whole.covariance)
        predicted = posterior.mean(X_hidden) * scale + mean
        errors[place] = float(xp.mean((predicted - truth) ** 2))
    return errors


def descend_over_grid(
    fold: Any, search: Search, start: Array, grid: Array
) -> Iterator[tuple[int, Array]]:
    """Yield the place of each (matching, slack) of `grid` (g, 2), and the parameters found with it.

    Each descent begins where the one with the next smaller weight of the same slack ended, the
    first of a slack where that without matching did. Those that fail are passed over.
    """
    starts: dict[float, Array] = {}  # of each slack
    for place, (matching, slack) in enumerate(grid):
        objective = replace(fold, matching=float(matching), slack=float(slack))
        descent = search.attempt(objective, starts.get(slack, start))
        if isinstance(descent, str):
            log.info("matching=%g, slack=%g failed: %s", matching, slack, descent)
            continue
        if matching == 0.0:
            start = descent.log_parameters
        else:
            starts[slack] = descent.log_parameters
        yield place, descent.log_parameters


def _all_equal(y_l: Array) -> bool:
    return bool(arrays.namespace(y_l).all(y_l == y_l[0]))


def compare_matchings(
    objective: Any,
    fold: AnyArray,
    search: Search,
    start: Array,
    grid: Array,
    n_jobs: int | None,
    *,
    errors_of_fold: ErrorsOfFold,
) -> pd.DataFrame:
    """Compare pairs (matching, slack) of a grid (g, 2) by hiding each fold (l,) of the labels.

    Hidden labels count among the unlabelled rows. ``gain`` is the error of the first pair less
    that of each, and ``gain_se`` its standard error over the folds.
    """
    sizes = np.bincount(fold).astype(float)
    errors = np.empty((len(sizes), len(grid)))
    errors_of_folds = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
        delayed(errors_of_fold)(objective, fold == k, search, start, grid)
        for k in range(len(sizes))
    )
    for k, errors_at_grid in enumerate(errors_of_folds):
        errors[k] = errors_at_grid
        log.info("matching: fold %d of %d", k + 1, len(sizes))
    share = sizes / sizes.sum()
    with np.errstate(invalid="ignore"):
        gains = errors[:, :1] - errors
        gain = share @ gains
        variance = share @ (gains - gain) ** 2
        gain_se = np.sqrt(variance / max(len(sizes) - 1, 1))
    columns = ["matching", "slack", "error", "gain", "gain_se"]
    table = np.column_stack([grid, share @ errors, gain, gain_se])
    return pd.DataFrame(table, columns=columns)
