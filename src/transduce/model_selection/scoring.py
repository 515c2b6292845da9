"""Scikit-learn's scores of answers that are already there."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer, log_loss, make_scorer
from sklearn.utils.metaestimators import available_if

from transduce.core.types import AnyArray, Array

DEFAULT = {"regression": "neg_root_mean_squared_error", "classification": "accuracy"}


class AnsweredNumbers(RegressorMixin, BaseEstimator):
    """Poses as a fitted regressor whose predictions are known, so that any scorer can judge them."""

    def __init__(self, values: AnyArray) -> None:
        self.values = values

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> AnyArray:
        """Return the answers, whatever X holds."""
        return self.values


class AnsweredClasses(ClassifierMixin, BaseEstimator):
    """Poses as a fitted classifier whose answers are known; it has probabilities or scores if they are given."""

    def __init__(
        self,
        values: AnyArray,
        classes: AnyArray,
        probabilities: Array | None = None,
        scores: Array | None = None,
    ) -> None:
        self.values = values
        self.classes_ = classes
        self.probabilities: Any = probabilities
        self.scores: Any = scores

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> AnyArray:
        """Return the answers, whatever X holds."""
        return self.values

    @available_if(lambda self: self.probabilities is not None)
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities, whatever X holds."""
        return self.probabilities

    @available_if(lambda self: self.scores is not None)
    def decision_function(self, X: Any) -> Array:
        """Return the scores, whatever X holds; of two classes their difference."""
        return self.scores if len(self.classes_) > 2 else self.scores[:, 1] - self.scores[:, 0]


def read_scorers(scoring: Any, task: str, classes: AnyArray | None) -> dict[str, Any]:
    """Return scorers by name, or raise a ValueError that says what `scoring` may be."""
    if scoring is None:
        scoring = DEFAULT[task]
    if isinstance(scoring, dict):
        named = dict(scoring)
    elif isinstance(scoring, list | tuple | set):
        named = {score if isinstance(score, str) else _name(score): score for score in scoring}
    else:
        named = {scoring if isinstance(scoring, str) else _name(scoring): scoring}
    if not named:
        raise ValueError("scoring is empty: name at least one score.")
    return {str(name): _scorer(score, classes) for name, score in named.items()}


def _name(scorer: Any) -> str:
    function = getattr(scorer, "_score_func", scorer)
    return str(getattr(function, "__name__", "score"))


def _scorer(scoring: Any, classes: AnyArray | None) -> Any:
    if isinstance(scoring, str):
        try:
            scorer = get_scorer(scoring)
        except ValueError:
            raise ValueError(
                f"scoring={scoring!r} is not a scikit-learn score: sklearn.metrics.get_scorer_names() lists them."
            ) from None
        if scoring == "neg_log_loss":  # a fold may lack a class
            return make_scorer(
                log_loss, greater_is_better=False, response_method="predict_proba", labels=classes
            )
        return scorer
    module = getattr(scoring, "__module__", None) or ""
    if not callable(scoring) or isinstance(scoring, type) or module.startswith("sklearn.metrics._"):
        if hasattr(scoring, "_score_func"):
            return scoring
        raise ValueError(
            "scoring must be the name of a score, or a scorer: a function of (estimator, X, y) such as "
            f"sklearn.metrics.make_scorer makes of a metric; got {scoring!r}."
        )
    return scoring


def score_number(name: str, scorer: Any, answered: Any, X: Any, y: AnyArray) -> float:
    """Return one score as a finite number, or raise a ValueError that says why there is none."""
    try:
        with warnings.catch_warnings(record=True) as caught, np.errstate(over="ignore", invalid="ignore"):
            warnings.simplefilter("always")
            score = float(scorer(answered, X, y))
    except AttributeError as error:
        raise ValueError(
            f"The score {name!r} needs more than the answers have, such as probabilities: {error}"
        ) from error
    except (TypeError, ValueError) as error:
        raise ValueError(f"The score {name!r} cannot be computed: {error}") from error
    if not np.isfinite(score):
        raise ValueError(
            f"The score {name!r} is {score} with {len(y)} hidden label{'s' * (len(y) != 1)}: use fewer folds, labels "
            "of ordinary size, or another score."
        )
    for note in caught:
        warnings.warn(str(note.message), note.category, stacklevel=2)
    return score
