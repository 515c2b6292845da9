"""Methods compared by transductive cross-validation on the same folds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from transduce.core import checks
from transduce.core.checks import check_random_state
from transduce.core.types import KnownTask, Labels, Random, Rows, Seed, Task
from transduce.core.words import in_a_sentence
from transduce.model_selection.cross_validation import (
    CrossTransduction,
    judge_each,
    predict_folds,
)
from transduce.model_selection.estimator_kinds import name_members
from transduce.model_selection.folds import Folds, read_folds
from transduce.model_selection.methods import default_members
from transduce.model_selection.problem import Problem, read_problem
from transduce.model_selection.scorers import read_scorers


@dataclass(frozen=True, eq=False)
class MethodChoice:
    """A comparison of methods, and the best of them.

    Parameters
    ----------
    table : pandas.DataFrame
        One line a method, the best first: mean score over the folds, its standard deviation over
        them, seconds of one fit, rank. Methods that failed or were not tried come last, without a
        score.
    best, estimator : str, estimator
        The method with the largest mean score: its name, and itself, not fitted.
    scoring : str
        Name of the score; larger is better.
    task : {"regression", "classification"}
        How labels were read.
    failures, details : dict
        Why a method has no score, and the whole cross-validation of each that has one, by name.
    n_labels : int
        Labels that the comparison rests on.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.model_selection import choose_method
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> y = np.where(np.arange(40) % 2 == 0, np.nan, 2 * X[:, 0])
    >>> sorted(choose_method(X, y, cv=3, random_state=0).table.index)
    ['confidence_machine', 'extra_trees', 'gaussian_process', 'random_forest', 'ridge',
    'transductive_ridge']
    """

    table: pd.DataFrame
    best: str
    estimator: Any
    scoring: str
    task: KnownTask
    failures: dict[str, str]
    details: dict[str, CrossTransduction]
    n_labels: int

    def __str__(self) -> str:
        lines = [
            f"{self.task}, {self.n_labels} labels, {self.scoring} (larger is better)",
            self.table.to_string(float_format=lambda number: f"{number:.4g}"),
            *(f"{name}: {why}" for name, why in self.failures.items()),
            self.verdict(),
        ]
        return "\n".join(lines)

    def verdict(self, names: dict[str, str] | None = None) -> str:
        """Return in a sentence which method is best, and how sure that is.

        `names` are others for some methods.
        """
        scored = list(self.details)
        called = {name: (names or {}).get(name, name) for name in scored}
        if len(scored) == 1:
            return f"{called[self.best]} is the only method that has a score."
        second = scored[1]
        gap = self.details[self.best].scores - self.details[second].scores
        error = np.inf
        if len(gap) > 1:
            error = float(gap.std(ddof=1) / np.sqrt(len(gap)))
        size = "within chance"
        if gap.mean() > 2 * error:
            size = "more than two standard errors"
        return (
            f"{called[self.best]} has the best score; its lead over {called[second]}, "
            f"{gap.mean():.3g} ± {error:.2g}, is {size}."
        )


def choose_method(  # noqa: PLR0913
    X: Rows,
    y: Labels,
    candidates: Any = None,
    *,
    task: Task = "auto",
    cv: Folds = 5,
    scoring: Any = None,
    standardize: bool = True,
    n_jobs: int | None = None,
    random_state: Seed = None,
    missing_label: Any = None,
) -> MethodChoice:
    """Compare the methods of this package, and any given estimators, on the same folds.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Features of all rows.
    y : array-like of shape (n,)
        Labels, missing at the unlabelled rows.
    candidates : dict or list of estimators, optional
        Compared as well; one with the name of a default method takes its place.
    task, standardize : default="auto" and True
        As in `TransductiveBlend`.
    cv, n_jobs, random_state, missing_label
        As in `cross_val_transduce`; the seed is that of the methods too.
    scoring : None, str or callable, default=None
        One scikit-learn score. None: negative root mean squared error for numbers, accuracy for
        classes.

    Returns
    -------
    MethodChoice
        It prints as a table and a verdict. A method that fails is in the table without a score, and
        its message in ``failures``; it is an error only if all fail. The best of several means is
        too optimistic: score the choice on other labels before you quote it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyRegressor
    >>> from transduce.model_selection import choose_method
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> y = np.where(np.arange(30) % 3 == 0, np.nan, 2 * X[:, 0] + 1)
    >>> choose_method(X, y, {"mean": DummyRegressor()}, random_state=0).table.index[-1]
    'mean'
    """
    checks.check_flag("standardize", standardize)
    checks.check_jobs(n_jobs)
    given = {}
    if candidates is not None:
        given = name_members("candidates", candidates)
    problem = read_problem(
        X,
        y,
        task=task,
        estimators=list(given.values()),
        missing_label=missing_label,
    )
    random = check_random_state(random_state)
    methods, left_out = _list_methods(problem, given, random, standardize=standardize)
    scorers = read_scorers(scoring, problem.task, problem.classes)
    if len(scorers) > 1:
        raise ValueError(
            "choose_method needs one score to choose by; cross_val_transduce takes several."
        )
    folds = read_folds(cv, problem, random_state=random)
    predictions = predict_folds(list(methods.values()), problem, folds, n_jobs=n_jobs)
    results = dict(zip(methods, judge_each(problem, folds, predictions, scorers), strict=True))
    return _choose(problem, methods, results, left_out, next(iter(scorers)))


def _list_methods(
    problem: Problem, given: dict[str, Any], random: Random, *, standardize: bool
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the methods to compare by name, and why others are left out.

    A given estimator takes the place of a method of the same name.
    """
    seed = int(random.randint(np.iinfo(np.int32).max))
    case = problem.case(standardize=standardize, random_state=seed)
    methods, left_out = default_members(case, compare=True)
    left_out = {name: why for name, why in left_out.items() if name not in given}
    return methods | given, left_out


def _choose(
    problem: Problem,
    methods: dict[str, Any],
    results: dict[str, CrossTransduction | Exception],
    left_out: dict[str, str],
    scoring: str,
) -> MethodChoice:
    """Return the comparison, with the method of the largest mean score as the best."""
    failures = dict(left_out)
    details: dict[str, CrossTransduction] = {}
    for name, result in results.items():
        if isinstance(result, Exception):
            failures[name] = in_a_sentence(result)
        else:
            details[name] = result
    if not details:
        name, why = next(iter(failures.items()))
        raise ValueError(f"Every method failed. {name}: {why}")
    details = dict(sorted(details.items(), key=lambda pair: -pair[1].scores.mean()))
    best = next(iter(details))
    return MethodChoice(
        table=_table(details, failures),
        best=best,
        estimator=clone(methods[best]),
        scoring=scoring,
        task=problem.task,
        failures=failures,
        details=details,
        n_labels=len(problem.labels),
    )


def _table(details: dict[str, CrossTransduction], failures: dict[str, str]) -> pd.DataFrame:
    """Return one line a method, the best first, those without a score last."""
    table = pd.DataFrame(
        index=[*details, *failures],
        columns=["score", "spread", "fit_time"],
        dtype=float,
    )
    for name, result in details.items():
        scores = result.scores
        table.loc[name] = scores.mean(), scores.std(), result.folds["fit_time"].mean()
    table["rank"] = table["score"].rank(ascending=False, method="min").astype("Int64")
    return table
