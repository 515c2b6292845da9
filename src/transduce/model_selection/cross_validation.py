"""Transductive cross-validation.

Folds hide labels; the features of every row stay.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import _safe_indexing

from transduce.core import checks
from transduce.core.answer import Answer
from transduce.core.computing import call_each, stage, threads_of_fit
from transduce.core.guarantee import Guarantee
from transduce.core.types import AnyArray, Array, KnownTask, Labels, Rows, Seed
from transduce.core.words import in_a_sentence
from transduce.model_selection.fit_and_predict import RawPrediction, fit_and_predict
from transduce.model_selection.folds import Fold, Folds, read_folds
from transduce.model_selection.problem import Problem, read_problem
from transduce.model_selection.scorers import Answered, Scorer, compute_scores, read_scorers

_OUT_OF_FOLD = (
    "These answers are out of fold: each was given while its row's label was hidden.",
    "They show how well the method does, with somewhat fewer labels than there are.",
)


@dataclass(frozen=True, eq=False)
class CrossTransduction:
    """Scores and out-of-fold predictions of a transductive cross-validation.

    Parameters
    ----------
    scores : array of shape (n_folds,)
        The score of each fold, larger is better; the first score if there are several.
    folds : pandas.DataFrame
        One line a fold: every score, how many labels were visible and hidden, seconds of fit and
        prediction, and of scoring.
    answers : Answer
        The out-of-fold predictions, at the labelled rows that were hidden in some fold.
    task : {"regression", "classification"}
        How the labels were read.

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> from transduce.model_selection import cross_val_transduce
    >>> X = [[0.0]] * 4
    >>> y = [0.0, 2.0, 4.0, None]
    >>> result = cross_val_transduce(DummyRegressor(), X, y, cv=3, random_state=0)
    >>> result.folds.columns.tolist()
    ['neg_root_mean_squared_error', 'visible', 'hidden', 'fit_time', 'score_time']
    """

    scores: Array
    folds: pd.DataFrame
    answers: Answer
    task: KnownTask

    def __str__(self) -> str:
        scores = self.folds.iloc[:, :-4].items()  # they come before the counts and times
        words = (
            f"{name} {of.mean():.4g} (standard deviation {of.std(ddof=0):.2g})"
            for name, of in scores
        )
        return f"{len(self.answers)} labels, hidden in {len(self.folds)} folds: " + ", ".join(words)


def cross_val_transduce(  # noqa: PLR0913
    estimator: Any,
    X: Rows,
    y: Labels,
    *,
    cv: Folds = 5,
    scoring: Any = None,
    groups: Any = None,
    n_jobs: int | None = None,
    random_state: Seed = None,
    missing_label: Any = None,
) -> CrossTransduction:
    """Score a method by hiding labels, fold by fold, while every row's features stay visible.

    Parameters
    ----------
    estimator : estimator
        A transducer (one of this package, or any with a setting ``missing_label``) is fitted to all
        rows with the fold's labels hidden, and judged by its predictions there. Any other
        regressor, classifier or pipeline is fitted to the visible rows, and predicts the fold.
    X : array-like of shape (n, d)
        Features of all rows, in whatever form the estimator takes.
    y : array-like of shape (n,)
        Labels, missing at the unlabelled rows. These are never scored, but their features are seen.
    cv : int, splitter or iterable, default=5
        A number: this many random folds of the labelled rows, every class spread evenly; one for
        each label if there are fewer. Or a scikit-learn splitter, which gets the labelled rows. Or
        pairs (visible, hidden) of positions among the labelled rows.
    scoring : None, str, callable, list or dict, default=None
        Scikit-learn scores, by name or as scorers. None: negative root mean squared error for
        numbers; accuracy for classes, and negative log-loss beside it if there are probabilities.
    groups : array-like of shape (n,), optional
        Groups of rows, for a splitter that needs them; with a number of folds, no group is split.
    n_jobs : int or None, default=None
        Folds at the same time, in joblib's way.
    random_state : int, RandomState or None, default=None
        Seed of the folds, if `cv` is a number.
    missing_label : object, default=None
        A value that stands for "no label", besides NaN, None, NA and NaT; by default the
        estimator's own.

    Returns
    -------
    CrossTransduction
        Classes that a fold hides and rows without a prediction are treated as
        docs/model_selection.md says, with a warning. A score that is not finite is an error.

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> from transduce.model_selection import cross_val_transduce
    >>> folds = [([0, 1], [2]), ([1, 2], [0])]
    >>> X = [[0.0]] * 4
    >>> y = [0.0, 2.0, 4.0, None]
    >>> cross_val_transduce(DummyRegressor(), X, y, cv=folds).answers.to_frame()
       value    status
    0    3.0  answered
    2    1.0  answered
    """
    checks.check_jobs(n_jobs)
    problem = read_problem(X, y, task="auto", estimators=[estimator], missing_label=missing_label)
    scorers = read_scorers(scoring, problem.task, problem.classes)
    folds = read_folds(cv, problem, random_state=random_state, groups=groups)
    predictions = predict_folds([estimator], problem, folds, n_jobs=n_jobs)[0]
    good = [prediction for prediction in predictions if isinstance(prediction, RawPrediction)]
    if scoring is None and all(prediction.probabilities is not None for prediction in good):
        scorers |= read_scorers("neg_log_loss", problem.task, problem.classes)
    result = judge(problem, folds, predictions, scorers)
    _warn(good)
    return result


# ---- what estimators predict in each fold


def predict_folds(
    estimators: list[Any],
    problem: Problem,
    folds: list[Fold],
    *,
    n_jobs: int | None = None,
) -> list[list[RawPrediction | Exception]]:
    """Return what each estimator predicts in each fold, or why it fails.

    The fitted copies are let go.
    """
    calls = [(_try, estimator, problem, *fold) for estimator in estimators for fold in folds]
    predictions: list[RawPrediction | Exception] = []
    with stage("cross-validation") as report:
        for prediction in call_each(calls, threads_of_fit(problem.n_rows), n_jobs):
            predictions.append(prediction)
            report(len(predictions) / len(calls))
    n_folds = len(folds)
    starts = range(0, len(predictions), n_folds)
    return [predictions[start : start + n_folds] for start in starts]


def _try(
    estimator: Any, problem: Problem, visible: AnyArray, hidden: AnyArray
) -> RawPrediction | Exception:
    try:
        prediction = fit_and_predict(estimator, problem, visible, problem.rows[hidden])
    except Exception as error:  # an estimator of any make may raise anything
        return error
    return replace(prediction, fitted=None)


def like(error: Exception, message: str) -> Exception:
    """Return an error to raise in place of another, a TypeError for a TypeError."""
    if isinstance(error, TypeError):
        return TypeError(message)
    return ValueError(message)


def fill_gaps(prediction: RawPrediction, prior: Array) -> RawPrediction:
    """Return the prediction, with the prior where the estimator gave none.

    The prior is the mean label, or the share of each class.
    """
    if prediction.given.all():
        return prediction
    gaps = ~prediction.given
    usual: float = prior[0]
    if len(prior) > 1:
        usual = int(prior.argmax())
    probabilities = prediction.probabilities
    if probabilities is not None:
        probabilities = np.where(gaps[:, None], prior, probabilities)
    scores = prediction.scores
    if scores is not None:
        scores = np.where(gaps[:, None], prior, scores)
    values = np.where(gaps, usual, prediction.values)
    return replace(prediction, values=values, probabilities=probabilities, scores=scores)


# ---- how good that is


def judge(
    problem: Problem,
    folds: list[Fold],
    predictions: list[RawPrediction | Exception],
    scorers: dict[str, Scorer],
) -> CrossTransduction:
    """Return scores and out-of-fold answers from the predictions of one estimator.

    An error is raised if it failed in a fold.
    """
    if problem.classes is None and 0.0 < np.ptp(problem.labels) < 1e-150:
        raise ValueError(
            "The labels are too small for their squares: multiply them by a constant first."
        )
    good: list[RawPrediction] = []
    for place, prediction in enumerate(predictions):
        if isinstance(prediction, Exception):
            where = "The fold failed"
            if len(folds) > 1:
                where = f"Fold {place + 1} of {len(folds)} failed"
            raise like(prediction, f"{where}: {in_a_sentence(prediction)}") from prediction
        visible, _ = folds[place]
        good.append(fill_gaps(prediction, problem.prior(visible)))
    lines = [
        _score_fold(problem, fold, prediction, scorers)
        for fold, prediction in zip(folds, good, strict=True)
    ]
    table = pd.DataFrame(lines, index=pd.RangeIndex(1, len(folds) + 1, name="fold"))
    first_score = next(iter(scorers))
    answers = _collect(problem, folds, good)
    return CrossTransduction(table[first_score].to_numpy(), table, answers, problem.task)


def judge_each(
    problem: Problem,
    folds: list[Fold],
    predictions: list[list[RawPrediction | Exception]],
    scorers: dict[str, Scorer],
) -> list[CrossTransduction | Exception]:
    """Return what cross-validation says of each estimator.

    Of one that failed in a fold it is the error.
    """
    results: list[CrossTransduction | Exception] = []
    for of_estimator in predictions:
        try:
            results.append(judge(problem, folds, of_estimator, scorers))
        except (TypeError, ValueError, OverflowError) as error:
            results.append(error)
    return results


def _warn(predictions: list[RawPrediction]) -> None:
    """Pass on what the estimator warned of, once, and say where it had no answer."""
    notes = dict.fromkeys(note for prediction in predictions for note in prediction.notes)
    for category, message in notes:
        warnings.warn(message, category, stacklevel=3)
    n_gaps = sum(int((~prediction.given).sum()) for prediction in predictions)
    if n_gaps:
        warnings.warn(
            f"{n_gaps} hidden label{'s' * (n_gaps != 1)} got no answer: the mean of the visible "
            "labels, or their most frequent class, stands in.",
            stacklevel=3,
        )


def _score_fold(
    problem: Problem, fold: Fold, prediction: RawPrediction, scorers: dict[str, Scorer]
) -> dict[str, float]:
    """Return one line of the table of folds: scores, counts of labels, and seconds."""
    visible, hidden = fold
    answered = Answered(prediction.values)
    if problem.classes is not None:
        margins = prediction.scores
        if margins is None:
            margins = prediction.probabilities
        values = problem.classes[prediction.values]
        answered = Answered(values, problem.classes, prediction.probabilities, margins)
    rows = _safe_indexing(problem.X, problem.rows[hidden])
    start = time.perf_counter()
    scores = compute_scores(scorers, answered, rows, problem.labels[hidden])
    return {
        **scores,
        "visible": len(visible),
        "hidden": len(hidden),
        "fit_time": prediction.seconds,
        "score_time": time.perf_counter() - start,
    }


def _collect(problem: Problem, folds: list[Fold], predictions: list[RawPrediction]) -> Answer:
    """Return one answer at each row that was ever hidden; the mean of several."""
    hidden = np.concatenate([hidden for _, hidden in folds])
    ever_hidden, at = np.unique(hidden, return_inverse=True)
    given = np.concatenate([prediction.given for prediction in predictions])
    is_answered = np.bincount(at, weights=given) > 0
    values = np.concatenate([prediction.values for prediction in predictions])
    probabilities = None
    if problem.classes is None:
        times = np.bincount(at)
        answers: AnyArray = np.bincount(at, weights=values / times[at])
    else:
        codes, probabilities = _mean_classes(predictions, values, at, len(problem.classes))
        answers = problem.classes[codes]
    rows = problem.rows[ever_hidden]
    return Answer(
        rows=rows,
        values=answers,
        status=np.where(is_answered, "answered", "unreached"),
        guarantee=Guarantee("none", reasons=_OUT_OF_FOLD),
        probabilities=probabilities,
        classes=problem.classes,
        index=problem.sample.index_at(rows),
    )


def _mean_classes(
    predictions: list[RawPrediction], values: AnyArray, at: AnyArray, n_classes: int
) -> tuple[AnyArray, Array | None]:
    """Return the class of each row, and its mean probabilities, if all predictions have some.

    A row that was hidden once keeps its class. Shapes: values (m,), at (m,), the row of each.
    """
    times = np.bincount(at)
    shares = [
        prediction.probabilities
        for prediction in predictions
        if prediction.probabilities is not None
    ]
    all_have_some = len(shares) == len(predictions)
    stacked = np.eye(n_classes)[values]
    if all_have_some:
        stacked = np.concatenate(shares)
    sums = [np.bincount(at, weights=column) for column in stacked.T]
    mean = np.stack(sums, axis=1) / times[:, None]
    codes = mean.argmax(axis=1)
    hidden_once = times[at] == 1
    codes[at[hidden_once]] = values[hidden_once]
    return codes, mean if all_have_some else None
