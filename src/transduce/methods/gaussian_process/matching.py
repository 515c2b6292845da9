"""How hard to match: as set, or by transductive cross-validation among the labelled rows."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils.parallel import Parallel, delayed

from transduce.core import arrays
from transduce.core.ranks import rank_folds
from transduce.core.types import Array
from transduce.methods.gaussian_process.process import Objective, Posterior
from transduce.methods.gaussian_process.search import Search, attempt
from transduce.methods.gaussian_process.settings import Settings

log = logging.getLogger(__name__)

# What "cv" tries, besides no matching at all.
MATCHINGS = (0.1, 0.3, 1.0)
SLACKS = (0.001, 0.01, 0.1)
N_FOLDS = 5
MIN_LABELS = 10


class Choice(NamedTuple):
    """How hard to match, why in words, and the table of cross-validation if it was asked."""

    matching: float
    slack: float
    why: str
    path: pd.DataFrame | None = None


def choose_matching(objective: Objective, settings: Settings, search: Search, start: Array) -> Choice:
    """Choose how hard to match the rows of an objective without matching, whose lowest point `start` is."""
    matching, slack = settings.matching or 0.0, settings.slack or 0.0
    if _all_equal(objective.y_l):
        return Choice(0.0, slack, "matching=0: all labels are equal, so there is no spread to match")
    if objective.X.shape[0] == objective.y_l.shape[0]:
        return Choice(0.0, slack, "matching=0: no row is unlabelled, so there is nothing to match")
    if settings.matching == 0.0 or None not in (settings.matching, settings.slack):
        return Choice(matching, slack, f"matching={matching:g}, slack={slack:g}, as set")
    if objective.y_l.shape[0] < MIN_LABELS:
        slack = SLACKS[1] if settings.slack is None else slack
        few = f"fewer than {MIN_LABELS} labels are too few to choose by"
        return Choice(matching, slack, f"matching={matching:g}, slack={slack:g}: {few}")
    return _cross_validate(objective, settings, search, start)


def _cross_validate(objective: Objective, settings: Settings, search: Search, start: Array) -> Choice:
    """Choose by the error at hidden labels; no matching unless another is better by more than its standard error."""
    fixed = settings.matching is not None
    slacks = SLACKS if settings.slack is None else (settings.slack,)
    weights = MATCHINGS if settings.matching is None else (settings.matching,)
    pairs = [(weight, slack) for slack in slacks for weight in weights]
    grid = np.array(pairs if fixed else [(0.0, slacks[0]), *pairs])
    # A choice between a dozen pairs needs no more digits than their errors differ by.
    quick = replace(search, max_iter=min(50, search.max_iter), tolerance=max(1e-5, search.tolerance))
    path = compare_matchings(make_folds(objective), quick, objective.prior, start, grid, settings.n_jobs)
    best = int(path["error"].to_numpy().argmin())
    if not fixed and path["gain"][best] <= path["gain_se"][best]:
        best = 0
    matching, slack = (float(path[name][best]) for name in ("matching", "slack"))
    if matching == 0.0 and settings.slack is None:
        slack = 0.0
    why = f"matching={matching:g}, slack={slack:g}, by cross-validation"
    if not best and not fixed:
        why = (
            "matching=0, by cross-validation: no weight was better than none by more than its standard error"
        )
    return Choice(matching, slack, why, path)


class Fold(NamedTuple):
    """One fold of transductive cross-validation: what is shown, and what is hidden among the unlabelled rows."""

    X: Array  # (n, d) shown rows, then hidden rows, then unlabelled rows
    y_l: Array  # (l - h,) shown labels
    hidden: Array  # (h,) labels of the hidden rows

    def scaled(self) -> tuple[Array, float, float]:
        """Return shown labels with mean 0 and variance 1, and the mean and scale that were taken out."""
        xp = arrays.namespace(self.y_l)
        mean, scale = float(xp.mean(self.y_l)), float(xp.std(self.y_l)) or 1.0
        return (self.y_l - mean) / scale, mean, scale

    def errors(self, search: Search, prior: tuple[float, float], start: Array, grid: Array) -> Array:
        """Return the mean squared error at the hidden rows for every (matching, slack) of `grid`, shape (g,).

        Each descent begins where the one with the next smaller weight of the same slack ended, the first of a slack
        where that without matching did.
        """
        y_l, mean, scale = self.scaled()
        xp = arrays.namespace(self.y_l)
        if _all_equal(y_l):  # all weights agree on the only label there is
            return np.full(len(grid), float(xp.mean((mean - self.hidden) ** 2)))
        n_shown, n_hidden = y_l.shape[0], self.hidden.shape[0]
        ends: dict[float, Array] = {}
        errors = np.full(len(grid), np.inf)
        for i, (matching, slack) in enumerate(grid):
            objective = Objective(self.X, y_l, prior, float(matching), float(slack))
            begin = ends.get(slack, start)
            found = attempt(search.descend, objective, begin)
            if isinstance(found, str):
                log.info("matching=%g, slack=%g failed: %s", matching, slack, found)
                continue
            if matching == 0.0:
                start = found.log_parameters
            else:
                ends[slack] = found.log_parameters
            fit = Posterior.fit(self.X[:n_shown, :], y_l, found.log_parameters)
            hidden = fit.mean(self.X[n_shown : n_shown + n_hidden, :]) * scale + mean
            errors[i] = float(xp.mean((hidden - self.hidden) ** 2))
        return errors


def make_folds(objective: Objective) -> list[Fold]:
    """Hide each fold of the labels in turn, among the unlabelled rows."""
    z, n_labelled = objective.y_l, objective.y_l.shape[0]
    shown, unlabelled = objective.X[:n_labelled, :], objective.X[n_labelled:, :]
    fold = rank_folds(z, shown, min(N_FOLDS, n_labelled))
    xp, folds = arrays.namespace(shown), []
    for k in range(fold.max() + 1):
        rows = xp.concat([arrays.pick(shown, fold != k), arrays.pick(shown, fold == k), unlabelled])
        folds.append(Fold(rows, arrays.pick(z, fold != k), arrays.pick(z, fold == k)))
    return folds


def _all_equal(y_l: Array) -> bool:
    return bool(arrays.namespace(y_l).all(y_l == y_l[0]))


def compare_matchings(
    folds: list[Fold],
    search: Search,
    prior: tuple[float, float],
    start: Array,
    grid: Array,
    n_jobs: int | None,
) -> pd.DataFrame:
    """Compare weights and slacks by transductive cross-validation. Shapes: start (k,), grid (g, 2)."""
    errors = np.empty((len(folds), len(grid)))
    done = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
        delayed(fold.errors)(search, prior, start, grid) for fold in folds
    )
    for i, line in enumerate(done):
        errors[i] = line
        log.info("matching: fold %d of %d", i + 1, len(folds))
    sizes = np.array([fold.hidden.shape[0] for fold in folds], dtype=float)
    share = sizes / sizes.sum()
    with np.errstate(invalid="ignore"):
        gains = errors[:, :1] - errors
        gain = share @ gains
        spread = np.sqrt(share @ (gains - gain) ** 2 / max(len(folds) - 1, 1))
    columns = ["matching", "slack", "error", "gain", "gain_se"]
    return pd.DataFrame(np.column_stack([grid, share @ errors, gain, spread]), columns=columns)
