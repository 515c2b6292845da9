"""Scores of predictions, by scikit-learn's scorers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from transduce.core.types import AnyArray, Array, KnownTask, Labels, Rows
from transduce.core.words import quoted

DEFAULT = {"regression": "neg_root_mean_squared_error", "classification": "accuracy"}
Scorer = Callable[[Any, Rows, Labels], float]  # of an estimator, rows and their labels


@dataclass(eq=False, repr=False)
class Answered(BaseEstimator):
    """Poses as a fitted estimator whose answers are known, so that any scorer can judge them."""

    values: AnyArray
    classes_: AnyArray | None = None  # of a classifier
    probabilities: Array | None = None
    scores: Array | None = None

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor" if self.classes_ is None else "classifier"
        return tags

    def predict(self, X: Rows) -> AnyArray:
        """Return the answers, whatever X holds."""
        return self.values

    def score(self, X: Rows, y: Labels) -> float:
        """Return how good the answers are, as scikit-learn's estimators do."""
        from sklearn.metrics import accuracy_score, r2_score

        if self.classes_ is None:
            return float(r2_score(y, self.values))
        return float(accuracy_score(y, self.values))

    @available_if(lambda self: self.probabilities is not None)
    def predict_proba(self, X: Rows) -> Array | None:
        """Return the probabilities, whatever X holds."""
        return self.probabilities

    @available_if(lambda self: self.scores is not None)
    def decision_function(self, X: Rows) -> Array:
        """Return the scores, whatever X holds; of two classes their difference."""
        assert self.scores is not None
        if self.scores.shape[1] > 2:
            return self.scores
        return self.scores[:, 1] - self.scores[:, 0]


def read_scorers(scoring: Any, task: KnownTask, classes: AnyArray | None) -> dict[str, Scorer]:
    """Return scorers by name, or raise a ValueError that says what `scoring` may be."""
    if scoring is None:
        scoring = DEFAULT[task]
    named = scoring
    if not isinstance(scoring, dict):
        several = scoring if isinstance(scoring, list | tuple | set) else [scoring]
        named = {_name_of(score): score for score in several}
    if not named:
        raise ValueError("scoring is empty: name at least one score.")
    return {str(name): _read_scorer(score, classes) for name, score in named.items()}


def _name_of(score: Any) -> str:
    if isinstance(score, str):
        return score
    function = getattr(score, "_score_func", score)
    return str(getattr(function, "__name__", "score"))


def _read_scorer(scoring: Any, classes: AnyArray | None) -> Scorer:
    from sklearn.metrics import check_scoring, log_loss, make_scorer

    if isinstance(scoring, str) and scoring == "neg_log_loss":  # a fold may lack a class
        return make_scorer(
            log_loss, greater_is_better=False, response_method="predict_proba", labels=classes
        )
    try:
        return check_scoring(scoring=scoring)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            "scoring must be the name of a score, as sklearn.metrics.get_scorer_names() lists "
            "them, or a scorer: a function of (estimator, X, y) such as "
            f"sklearn.metrics.make_scorer makes of a metric; got {quoted(scoring)}."
        ) from error


def compute_scores(
    scorers: Mapping[str, Scorer], answered: Answered, X: Rows, y: AnyArray
) -> dict[str, float]:
    """Return each score as a finite number."""
    return {name: _score(name, scorer, answered, X, y) for name, scorer in scorers.items()}


def _score(
    name: str,
    scorer: Scorer,
    answered: Answered,
    X: Rows,
    y: AnyArray,
) -> float:
    """Return one score as a finite number, or raise a ValueError that says why there is none."""
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            np.errstate(over="ignore", invalid="ignore"),
        ):
            warnings.simplefilter("always")
            score = float(scorer(answered, X, y))
    except AttributeError as error:
        raise ValueError(
            f"The score {name!r} needs more than the answers have, such as probabilities: {error}"
        ) from error
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"The score {name!r} cannot be computed: {error}") from error
    if not np.isfinite(score):
        raise ValueError(
            f"The score {name!r} is {score} with {len(y)} hidden label{'s' * (len(y) != 1)}: use "
            "fewer folds, labels of ordinary size, or another score."
        )
    for note in caught:
        warnings.warn(str(note.message), note.category, stacklevel=2)
    return score
