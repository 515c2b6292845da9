"""Choosing settings by transductive cross-validation, with scikit-learn's conventions."""

from __future__ import annotations

import time
import warnings
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import GridSearchCV, ParameterGrid
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from transduce.core import checks
from transduce.core.checks import check_random_state
from transduce.core.guarantee import Guarantee
from transduce.core.types import AnyArray, Labels, Rows, Seed
from transduce.core.validation import Transducer, check_given
from transduce.model_selection.cross_validation import (
    CrossTransduction,
    judge_each,
    like,
    predict_folds,
)
from transduce.model_selection.estimator_kinds import last_step
from transduce.model_selection.fit_and_predict import answer_of, fit_and_predict
from transduce.model_selection.folds import Folds, read_folds
from transduce.model_selection.problem import Problem, read_problem
from transduce.model_selection.scorers import read_scorers

_GUARANTEE = Guarantee("none", reasons=("The settings were chosen on the same labels.",))


@dataclass(eq=False, repr=False)
class TransductiveSearchCV(GridSearchCV, Transducer):
    """Choose the settings of an estimator by hiding labels while every row's features stay visible.

    Parameters
    ----------
    estimator : estimator
        A transducer, or any regressor, classifier or pipeline; it decides what stands for a missing
        label.
    param_grid : dict or list of dicts
        Settings and the values to try, as for scikit-learn's ``GridSearchCV``;
        ``estimator__setting`` for nested ones.
    cv, n_jobs, random_state
        As in `cross_val_transduce`; all settings see the same folds.
    scoring : None, str, callable, list or dict, default=None
        Scores, as in `cross_val_transduce`; None is one score. With several, `refit` names the one
        that chooses.
    refit : bool, str or callable, default=True
        Whether to fit the best settings to all labels and answer. A callable gets ``cv_results_``
        and returns the index of the best.

    Attributes
    ----------
    transduction_, answer_
        Labels completed with the best settings (n,); the best estimator's `Answer`.
    best_params_, best_score_, best_index_, best_estimator_, n_splits_, scorer_, refit_time_,
    classes_, n_features_in_
        As in scikit-learn's ``GridSearchCV``.
    cv_results_ : dict
        Keys as there, ``*_test_NAME`` with several scores. Settings that fail have the score NaN
        and rank last, with a warning; if all fail it is an error.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import TransductiveRidge
    >>> from transduce.model_selection import TransductiveSearchCV
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> y = np.where(np.arange(30) % 3 == 0, np.nan, np.sin(X[:, 0]))
    >>> search = TransductiveSearchCV(TransductiveRidge(), {"width": [0.01, 1.0]}, random_state=0)
    >>> search.fit(X, y).best_params_
    {'width': 1.0}
    """

    estimator: Any
    param_grid: Any
    _: KW_ONLY
    cv: Folds = 5
    scoring: Any = None
    refit: Any = True
    n_jobs: int | None = None
    random_state: Seed = None

    # Settings of GridSearchCV that are not offered here.
    error_score = np.nan
    return_train_score = False

    def fit(self, X: Rows, y: Labels) -> Self:
        """Try all settings, and predict with the best where the label is missing.

        Shapes: X (n, d), y (n,).
        """
        check_given(self, y)
        checks.check_jobs(self.n_jobs)
        problem = read_problem(X, y, task="auto", estimators=[self.estimator])
        grid = list(ParameterGrid(self.param_grid))
        members = [clone(self.estimator).set_params(**clone(params, safe=False)) for params in grid]
        scorers = read_scorers(self.scoring, problem.task, problem.classes)
        self.multimetric_ = isinstance(self.scoring, list | tuple | set | dict)
        if self.multimetric_:
            self._check_refit_for_multimetric(scorers)
        elif not isinstance(self.refit, bool | str | np.bool_) and not callable(self.refit):
            raise ValueError(
                f"refit must be True, False or a function of cv_results_; got {self.refit!r}."
            )
        folds = read_folds(self.cv, problem, random_state=check_random_state(self.random_state))
        predictions = predict_folds(members, problem, folds, n_jobs=self.n_jobs)
        judged = judge_each(problem, folds, predictions, scorers)
        results = self._tabulate(grid, judged, list(scorers))
        self.n_splits_ = len(folds)
        if self.scoring is None:
            self.scorer_ = check_scoring(self.estimator, allow_none=True)
        elif self.multimetric_:
            self.scorer_ = scorers
        else:
            self.scorer_ = next(iter(scorers.values()))
        self._choose(results)
        if self.refit is not False:
            self._refit(problem, members[self.best_index_], chosen=len(members) > 1)
        self.cv_results_ = results
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "cv_results_")

    def _tabulate(
        self,
        grid: list[dict[str, Any]],
        judged: list[CrossTransduction | Exception],
        names: list[str],
    ) -> dict[str, Any]:
        """Return scikit-learn's ``cv_results_``.

        Settings that fail have the score NaN, and a warning.
        """
        pairs = zip(grid, judged, strict=True)
        failures = [(params, why) for params, why in pairs if isinstance(why, Exception)]
        if len(failures) == len(grid):
            _, why = failures[0]
            raise like(why, f"Every choice of settings failed. {why}") from why
        for params, why in failures:
            warnings.warn(f"{params} has no score: {why}", FitFailedWarning, stacklevel=3)
        example = next(result.folds for result in judged if not isinstance(result, Exception))
        no_scores = example * np.nan
        tables = [no_scores if isinstance(result, Exception) else result.folds for result in judged]
        lines = pd.concat(tables).to_dict("records")
        for line in lines:
            line["test_scores"] = line[names[0]]
            if self.multimetric_:
                line["test_scores"] = {name: line[name] for name in names}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "One or more of the test scores are non-finite")
            return self._format_results(grid, len(example), lines)

    def _choose(self, results: dict[str, Any]) -> None:
        """Set the best settings, if there is one score that says which they are."""
        if self.multimetric_ and not self.refit:
            return
        suffix = self.refit if self.multimetric_ else "score"
        self.best_index_ = int(self._select_best_index(self.refit, suffix, results))
        self.best_params_ = results["params"][self.best_index_]
        if not callable(suffix):
            self.best_score_ = float(results[f"mean_test_{suffix}"][self.best_index_])

    def _refit(self, problem: Problem, member: Any, *, chosen: bool) -> None:
        """Fit the best settings to all labels, and answer.

        `chosen` says whether there were others.
        """
        start = time.perf_counter()
        sample = problem.sample
        all_labels = np.arange(len(problem.labels))
        prediction = fit_and_predict(member, problem, all_labels, sample.unlabelled)
        for category, message in prediction.notes:
            warnings.warn(message, category, stacklevel=3)
        best = prediction.fitted.estimator
        self.best_estimator_ = best
        if hasattr(best, "feature_names_in_"):
            self.feature_names_in_ = best.feature_names_in_
        self.refit_time_ = time.perf_counter() - start
        self.answer_ = answer_of(prediction, problem, _GUARANTEE)
        if chosen:
            # Settings chosen by these labels take away what the method guarantees about them.
            self.answer_ = replace(self.answer_, guarantee=_GUARANTEE)
        values = self.answer_.values
        if problem.classes is not None:
            values = values.astype(object)
        self.transduction_ = sample.complete(values)

    def predict(self, X: Rows) -> AnyArray:
        """Return what the best estimator predicts at rows (m, d), shape (m,).

        The rows may have been seen in `fit` or not.
        """
        if self.refit is False:
            raise AttributeError(
                "refit=False: nothing was fitted to all labels. Set refit=True to predict."
            )
        return super().predict(X)

    # As that of GridSearchCV: scikit-learn's own takes weights of rows.
    def score(self, X: Rows, y: Labels) -> float:  # type: ignore[override]
        """Return the score of `predict` at the labelled rows.

        It is the score that chose the settings, or the estimator's own.
        """
        check_is_fitted(self)
        if self.multimetric_ and callable(self.refit):
            raise ValueError(
                "refit is a function, which says nothing of the score: call a scorer yourself."
            )
        rows, labels = self._with_label(X, y)
        return float(super().score(rows, np.array(labels.tolist())))

    @property
    def missing_label(self) -> Any:
        """What stands for a missing label, besides NaN, None, NA and NaT: the estimator's."""
        return getattr(last_step(self.estimator), "missing_label", None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        tags.target_tags.required = True
        tags.array_api_support = False
        return tags
