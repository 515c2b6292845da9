"""Choosing settings by transductive cross-validation, with scikit-learn's conventions."""

from __future__ import annotations

import time
import warnings
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from transduce.core import checks
from transduce.core.guarantee import Guarantee
from transduce.core.types import AnyArray, Array
from transduce.core.validation import Transducer, check_given
from transduce.model_selection.ask import Problem, answer_of, ask, check_member, last_step, read_problem
from transduce.model_selection.cross_validation import (
    CrossTransduction,
    Failure,
    ask_folds,
    in_a_sentence,
    judge_each,
    read_folds,
    read_scorers,
)

_GUARANTEE = Guarantee("none", reasons=("The settings were chosen on the same labels.",))


def _best_has(name: str) -> Any:
    """Return a check whether the best estimator, or the one to be fitted, has a method."""

    def check(search: Any) -> bool:
        return hasattr(getattr(search, "best_estimator_", search.estimator), name)

    return check


@dataclass(eq=False, repr=False)
class TransductiveSearchCV(Transducer):
    """Settings of an estimator chosen by hiding labels while every row's features stay.

    Parameters
    ----------
    estimator : estimator
        A transducer, or any regressor, classifier or pipeline; it decides what stands for a missing label.
    param_grid : dict or list of dicts
        Settings and the values to try, as for scikit-learn's ``GridSearchCV``; ``estimator__setting`` for nested ones.
    cv, n_jobs, random_state
        As in `cross_val_transduce`; all settings see the same folds.
    scoring : None, str, callable, list or dict, default=None
        Scores, as in `cross_val_transduce`; None is one score. With several, `refit` names the one that chooses.
    refit : bool, str or callable, default=True
        Whether to fit the best settings to all labels and answer. A callable gets ``cv_results_`` and returns the index
        of the best.

    Attributes
    ----------
    transduction_, answer_
        Labels completed with the best settings (n,); the best estimator's `Answer`.
    best_params_, best_score_, best_index_, best_estimator_, n_splits_, scorer_, refit_time_, classes_, n_features_in_
        As in scikit-learn's ``GridSearchCV``.
    cv_results_ : dict
        Keys as there, ``*_test_NAME`` with several scores. Settings that fail have the score NaN and rank last, with a
        warning; if all fail it is an error.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import TransductiveRidge
    >>> from transduce.model_selection import TransductiveSearchCV
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> y = np.where(np.arange(30) % 3 == 0, np.nan, np.sin(X[:, 0]))
    >>> TransductiveSearchCV(TransductiveRidge(), {"width": [0.01, 1.0]}, random_state=0).fit(X, y).best_params_
    {'width': 1.0}
    """

    estimator: Any
    param_grid: Any
    _: KW_ONLY
    cv: Any = 5
    scoring: Any = None
    refit: Any = True
    n_jobs: int | None = None
    random_state: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Try all settings; with the best of them answer at the rows of X (n, d) whose label in y (n,) is missing."""
        check_given(self, y)
        check_member("estimator", self.estimator)
        checks.check_jobs(self.n_jobs)
        grid = self._grid()
        problem = read_problem(X, y, task="auto", estimators=[self.estimator])
        scorers = read_scorers(self.scoring, problem.task, problem.classes)
        self.multimetric_ = isinstance(self.scoring, list | tuple | set | dict)
        self._check_refit(scorers)
        folds = read_folds(self.cv, problem, random_state=check_random_state(self.random_state))
        members = [clone(self.estimator).set_params(**clone(params, safe=False)) for params in grid]
        replies = ask_folds(members, problem, folds, n_jobs=self.n_jobs)
        judged = self._warn_failures(grid, judge_each(problem, folds, replies, scorers))
        self.n_splits_ = len(folds)
        self.scorer_: Any = scorers if self.multimetric_ else next(iter(scorers.values()))
        results = tabulate(grid, judged, {name: name if self.multimetric_ else "score" for name in scorers})
        self._choose(results)
        if self.refit is not False:
            self._refit(problem, members[self.best_index_], chosen=len(members) > 1)
        self.cv_results_ = results
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "cv_results_")

    def _warn_failures(self, grid: list[Any], results: list[Any]) -> list[CrossTransduction | None]:
        """Return the results with None for settings that fail, and a warning of each; raise if all do."""
        pairs = zip(grid, results, strict=True)
        failures = [(params, why) for params, why in pairs if isinstance(why, Exception)]
        if len(failures) == len(grid):
            first = failures[0][1]
            raise Failure("", first).raised(
                f"Every choice of settings failed. {in_a_sentence(first)}"
            ) from first
        for params, why in failures:
            warnings.warn(f"{params} has no score: {in_a_sentence(why)}", FitFailedWarning, stacklevel=3)
        return [None if isinstance(one, Exception) else one for one in results]

    def _grid(self) -> list[dict[str, Any]]:
        try:
            grid = list(ParameterGrid(self.param_grid))
        except (TypeError, ValueError) as error:
            raise ValueError(f"param_grid must hold lists of values by setting. {error}") from error
        known = self.estimator.get_params()
        for name in {name for params in grid for name in params}:
            if name not in known:
                lacks = f"{name!r}, which {type(self.estimator).__name__} does not have"
                raise ValueError(f"param_grid names {lacks}: {', '.join(sorted(known)[:30])}.")
        return grid

    def _check_refit(self, scorers: dict[str, Any]) -> None:
        if self.refit is False or callable(self.refit):
            return
        if self.multimetric_ and (not isinstance(self.refit, str) or self.refit not in scorers):
            names = f"one of {', '.join(map(repr, scorers))}, or False"
            raise ValueError(f"With several scores refit must be {names}; got {self.refit!r}.")
        if not self.multimetric_ and not isinstance(self.refit, bool | str | np.bool_):
            raise ValueError(f"refit must be True, False or a function of cv_results_; got {self.refit!r}.")

    def _choose(self, results: dict[str, Any]) -> None:
        """Set the best settings, if there is one score that says which they are."""
        suffix = self.refit if self.multimetric_ else "score"
        if callable(self.refit):
            index = self.refit(results)
            if not isinstance(index, int | np.integer) or not 0 <= index < len(results["params"]):
                raise ValueError(f"refit must return the index of a choice of settings; got {index!r}.")
            self.best_index_ = int(index)
        elif suffix is False:
            return
        else:
            self.best_index_ = int(np.argmin(results[f"rank_test_{suffix}"]))
        if not callable(self.refit) or not self.multimetric_:
            self.best_score_ = float(results[f"mean_test_{suffix}"][self.best_index_])
        self.best_params_ = results["params"][self.best_index_]

    def _refit(self, problem: Problem, member: Any, *, chosen: bool) -> None:
        """Fit the best settings to all labels, and answer; `chosen` says whether there were others."""
        start = time.perf_counter()
        sample = problem.sample
        reply = ask(member, problem, np.arange(len(problem.labels)), sample.unlabelled)
        for category, message in reply.notes:
            warnings.warn(message, category, stacklevel=3)
        assert reply.fitted is not None
        self.best_estimator_ = reply.fitted.estimator
        self.refit_time_ = time.perf_counter() - start
        answer = answer_of(reply, problem, _GUARANTEE)
        # Settings chosen by these labels take away what the method guarantees about them.
        self.answer_ = replace(answer, guarantee=_GUARANTEE) if chosen else answer
        values = self.answer_.values
        self.transduction_ = sample.complete(values if problem.classes is None else values.astype(object))

    # ---------------------------------------------------------------------------------------------- prediction

    def _best(self) -> Any:
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("refit=False: nothing was fitted to all labels. Set refit=True to predict.")
        return self.best_estimator_

    def predict(self, X: Any) -> AnyArray:
        """Return what the best estimator predicts at rows (m, d), seen in `fit` or not, shape (m,)."""
        return self._best().predict(X)

    @available_if(_best_has("predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Return the best estimator's probability of every class at rows (m, d), shape (m, n_classes)."""
        return self._best().predict_proba(X)

    @available_if(_best_has("decision_function"))
    def decision_function(self, X: Any) -> Array:
        """Return the best estimator's scores of the classes at rows (m, d), shape (m,) or (m, n_classes)."""
        return self._best().decision_function(X)

    def score(self, X: Any, y: Any) -> float:  # type: ignore[override]  # as that of GridSearchCV
        """Return the score that chose the settings, or the estimator's own, of `predict` at the labelled rows."""
        best = self._best()
        rows, labels = self._with_label(X, y)
        if self.scoring is None:
            return float(best.score(rows, np.array(labels.tolist())))
        if self.multimetric_ and callable(self.refit):
            raise ValueError("refit is a function, which says nothing of the score: call a scorer yourself.")
        scorer: Any = self.scorer_[self.refit] if self.multimetric_ else self.scorer_
        return float(scorer(best, rows, np.array(labels.tolist())))

    @property
    def missing_label(self) -> Any:
        """What stands for a missing label, besides NaN, None, NA and NaT: the estimator's."""
        return getattr(last_step(self.estimator), "missing_label", None)

    @property
    def classes_(self) -> AnyArray:
        """Classes of the best estimator."""
        return self._best().classes_

    @property
    def n_features_in_(self) -> int:
        """Number of features seen by the best estimator."""
        return self.best_estimator_.n_features_in_

    @property
    def feature_names_in_(self) -> AnyArray:
        """Names of the features seen by the best estimator."""
        return self.best_estimator_.feature_names_in_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "input_tags"):
            setattr(tags, name, getattr(get_tags(self.estimator), name))
        tags.target_tags.required = True
        return tags


def tabulate(grid: list[Any], judged: list[Any], suffixes: dict[str, str]) -> dict[str, Any]:
    """Return scikit-learn's ``cv_results_``."""
    n_folds = next(len(one.folds) for one in judged if one is not None)
    gap = np.full(n_folds, np.nan)

    def column(name: str) -> Array:
        return np.stack([gap if one is None else one.folds[name].to_numpy(float) for one in judged])

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
