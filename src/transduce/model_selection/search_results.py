"""The table behind a search: scores of every choice of settings, under scikit-learn's keys."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.exceptions import FitFailedWarning

from transduce.core.types import Array
from transduce.model_selection.cross_validation import CrossTransduction, judge
from transduce.model_selection.folds import Fold, in_a_sentence
from transduce.model_selection.hidden_labels import Problem, failure


def judge_all(
    problem: Problem, folds: list[Fold], grid: list[Any], replies: list[Any], scorers: dict[str, Any]
) -> list[CrossTransduction | None]:
    """Return what cross-validation found for each choice of settings, None for those that fail; raise if all do."""
    found: list[CrossTransduction | None] = []
    failures: list[tuple[Any, Exception]] = []
    for params, reply in zip(grid, replies, strict=True):
        try:
            found.append(judge(problem, folds, reply, scorers, quiet=True))
        except (TypeError, ValueError) as error:
            found.append(None)
            failures.append((params, error))
    if len(failures) == len(grid):
        first = failures[0][1]
        raise failure(f"Every choice of settings failed. {in_a_sentence(first)}", first) from first
    for params, why in failures:
        warnings.warn(f"{params} has no score: {in_a_sentence(why)}", FitFailedWarning, stacklevel=3)
    return found


def tabulate(
    grid: list[Any], found: list[CrossTransduction | None], suffixes: dict[str, str]
) -> dict[str, Any]:
    """Return scikit-learn's ``cv_results_``."""
    folds = [None if one is None else one.folds for one in found]
    n_folds = next(len(frame) for frame in folds if frame is not None)

    def column(name: str) -> Array:
        return np.stack(
            [np.full(n_folds, np.nan) if frame is None else frame[name].to_numpy(float) for frame in folds]
        )

    results: dict[str, Any] = {}
    for kind in ("fit_time", "score_time"):
        seconds = column(kind)
        results |= {f"mean_{kind}": seconds.mean(axis=1), f"std_{kind}": seconds.std(axis=1)}
    for name in sorted({name for params in grid for name in params}):
        values = np.ma.MaskedArray(np.empty(len(grid), dtype=object), mask=True)
        for i, params in enumerate(grid):
            if name in params:
                values[i] = params[name]
        results[f"param_{name}"] = values
    results["params"] = grid
    for name, suffix in suffixes.items():
        scores = column(name)
        mean = scores.mean(axis=1)
        results |= {f"split{k}_test_{suffix}": scores[:, k] for k in range(n_folds)}
        results |= {f"mean_test_{suffix}": mean, f"std_test_{suffix}": scores.std(axis=1)}
        order = np.where(np.isnan(mean), -np.inf, mean)
        results[f"rank_test_{suffix}"] = rankdata(-order, method="min").astype(np.int32)
    return results
