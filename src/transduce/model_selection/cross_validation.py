"""Transductive cross-validation: folds hide labels, every row's features stay."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if

from transduce.core import checks
from transduce.core.answer import Answer
from transduce.core.guarantee import Guarantee
from transduce.core.sample import PartlyLabelled
from transduce.core.types import AnyArray, Array
from transduce.model_selection.ask import Problem, Reply, check_member, failure, read_problem
from transduce.model_selection.folds import Failure, Fold, ask_folds, filled, read_folds

_OUT_OF_FOLD = (
    "These answers are out of fold: each was given while its row's label was hidden.",
    "They show how well the method does, with somewhat fewer labels than there are.",
)


@dataclass(frozen=True, eq=False)
class CrossTransduction:
    """What transductive cross-validation found.

    Parameters
    ----------
    scores : array of shape (n_folds,)
        The score of each fold, larger is better; the first score if there are several.
    folds : pandas.DataFrame
        One line a fold: every score, how many labels were visible and hidden, seconds of fit and answers, and of
        scoring.
    answers : Answer
        The out-of-fold answers, at the labelled rows that were hidden in some fold.
    out_of_fold : array or series of shape (n,)
        The same in the container of `y`: the out-of-fold answer where it has a label, missing elsewhere.
    task : {"regression", "classification"}
        How the labels were read.

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> from transduce.model_selection import cross_val_transduce
    >>> found = cross_val_transduce(DummyRegressor(), [[0.0]] * 4, [0.0, 2.0, 4.0, None], cv=3, random_state=0)
    >>> found.folds.columns.tolist()
    ['neg_root_mean_squared_error', 'visible', 'hidden', 'fit_time', 'score_time']
    """

    scores: Array
    folds: pd.DataFrame
    answers: Answer
    out_of_fold: Any
    task: str

    def __str__(self) -> str:
        scores = self.folds.iloc[:, :-4].items()  # they come before the counts and times
        words = (f"{name} {of.mean():.4g} (standard deviation {of.std(ddof=0):.2g})" for name, of in scores)
        return f"{len(self.answers)} labels, hidden in {len(self.folds)} folds: " + ", ".join(words)


def cross_val_transduce(  # noqa: PLR0913
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    scoring: Any = None,
    groups: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    missing_label: Any = None,
) -> CrossTransduction:
    """Score a method by hiding labels, fold by fold, while every row's features stay.

    Parameters
    ----------
    estimator : estimator
        A transducer (one of this package, or any with a setting ``missing_label``) is fitted to all rows with the
        fold's labels hidden, and judged by its answers there. Any other regressor, classifier or pipeline is fitted to
        the visible rows, and predicts the fold.
    X : array-like of shape (n, d)
        Features of all rows, in whatever form the estimator takes.
    y : array-like of shape (n,)
        Labels, missing at the unlabelled rows. These are never scored, but their features are seen.
    cv : int, splitter or iterable, default=5
        A number: this many random folds of the labelled rows, every class spread evenly; one for each label if there
        are fewer. Or a scikit-learn splitter, which gets the labelled rows. Or pairs (visible, hidden) of
        positions among the labelled rows.
    scoring : None, str, callable, list or dict, default=None
        Scikit-learn scores, by name or as scorers. None: negative root mean squared error for numbers; accuracy
        for classes, and negative log-loss beside it if there are probabilities.
    groups : array-like of shape (n,), optional
        Groups of rows, for a splitter that needs them; with a number of folds, no group is split.
    n_jobs : int or None, default=None
        Folds at the same time, in joblib's way.
    random_state : int, RandomState or None, default=None
        Seed of the folds, if `cv` is a number.
    missing_label : object, default=None
        A value that stands for "no label", besides NaN, None, NA and NaT; by default the estimator's own.

    Returns
    -------
    CrossTransduction
        Classes that a fold hides and rows without an answer are treated as docs/model_selection.md says, with a
        warning. A score that is not finite is an error.

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> from transduce.model_selection import cross_val_transduce
    >>> folds = [([0, 1], [2]), ([1, 2], [0])]
    >>> cross_val_transduce(DummyRegressor(), [[0.0]] * 4, [0.0, 2.0, 4.0, None], cv=folds).answers.to_frame()
       value    status
    0    3.0  answered
    2    1.0  answered
    """
    check_member("estimator", estimator)
    checks.check_jobs(n_jobs)
    problem = read_problem(X, y, task="auto", estimators=[estimator], missing_label=missing_label)
    scorers = read_scorers(scoring, problem.task, problem.classes)
    folds = read_folds(cv, problem, random_state=random_state, groups=groups)
    replies = ask_folds([estimator], problem, folds, n_jobs=n_jobs)[0]
    return judge(problem, folds, replies, scorers, more=scoring is None)


def judge(
    problem: Problem,
    folds: list[Fold],
    replies: list[Reply | Failure],
    scorers: dict[str, Any],
    *,
    more: bool = False,
    quiet: bool = False,
) -> CrossTransduction:
    """Return scores and out-of-fold answers from the replies of one estimator; raise if it failed in a fold."""
    # `more` adds the log-loss if there are probabilities; `quiet` keeps the estimator's warnings from the user.
    if problem.classes is None and 0.0 < np.ptp(problem.labels) < 1e-150:
        raise ValueError("The labels are too small for their squares: multiply them by a constant first.")
    good: list[Reply] = []
    for k, reply in enumerate(replies):
        if isinstance(reply, Failure):
            where = f"Fold {k + 1} of {len(folds)} failed" if len(folds) > 1 else "The fold failed"
            raise failure(f"{where}: {reply.message}", reply.error) from reply.error
        good.append(filled(reply, problem.prior(folds[k][0])))
    if not quiet:
        _warn(good)
    if more and problem.classes is not None and all(reply.probabilities is not None for reply in good):
        scorers = scorers | read_scorers("neg_log_loss", problem.task, problem.classes)
    lines = [_score_fold(problem, fold, reply, scorers) for fold, reply in zip(folds, good, strict=True)]
    table = pd.DataFrame(lines, index=pd.RangeIndex(1, len(folds) + 1, name="fold"))
    answers = _collect(problem, folds, good)
    first = table[next(iter(scorers))].to_numpy()
    return CrossTransduction(first, table, answers, _column(problem, answers), problem.task)


def judge_each(
    problem: Problem, folds: list[Fold], replies: list[list[Reply | Failure]], scorers: dict[str, Any]
) -> list[CrossTransduction | Exception]:
    """Return what cross-validation says of each estimator, or the error of one that failed in a fold."""
    results: list[CrossTransduction | Exception] = []
    for reply in replies:
        try:
            results.append(judge(problem, folds, reply, scorers, quiet=True))
        except (TypeError, ValueError) as error:
            results.append(error)
    return results


def _warn(replies: list[Reply]) -> None:
    """Pass on what the estimator warned of, once, and say where it had no answer."""
    for category, message in dict.fromkeys(note for reply in replies for note in reply.notes):
        warnings.warn(message, category, stacklevel=4)
    gaps = sum(int((~reply.given).sum()) for reply in replies)
    if gaps:
        warnings.warn(
            f"{gaps} hidden label{'s' * (gaps != 1)} got no answer: the mean of the visible labels, or their most "
            "frequent class, stands in.",
            stacklevel=4,
        )


def _score_fold(problem: Problem, fold: Fold, reply: Reply, scorers: dict[str, Any]) -> dict[str, Any]:
    visible, hidden = fold
    answered: Any = AnsweredNumbers(reply.values)
    if problem.classes is not None:
        shares, margins = reply.probabilities, reply.probabilities if reply.scores is None else reply.scores
        answered = AnsweredClasses(problem.classes[reply.values], problem.classes, shares, margins)
    rows = _safe_indexing(problem.X, problem.rows[hidden])
    start = time.perf_counter()
    labels = problem.labels[hidden]
    scores = {name: score_number(name, scorers[name], answered, rows, labels) for name in scorers}
    seconds = {"fit_time": reply.seconds, "score_time": time.perf_counter() - start}
    return scores | {"visible": len(visible), "hidden": len(hidden)} | seconds


def _collect(problem: Problem, folds: list[Fold], replies: list[Reply]) -> Answer:
    """Return one answer at each row that was ever hidden; the mean of several."""
    rows, at = np.unique(np.concatenate([fold[1] for fold in folds]), return_inverse=True)
    given = np.bincount(at, weights=np.concatenate([reply.given for reply in replies])) > 0
    times, probabilities = np.bincount(at), None
    values = np.concatenate([reply.values for reply in replies])
    if problem.classes is None:
        answers: AnyArray = np.bincount(at, weights=values / times[at])
    else:
        told = [reply.probabilities for reply in replies if reply.probabilities is not None]
        complete = len(told) == len(replies)
        shares = np.concatenate(told) if complete else np.eye(len(problem.classes))[values]
        mean = np.stack([np.bincount(at, weights=column) / times for column in shares.T], axis=1)
        probabilities = mean if complete else None
        winners, once = mean.argmax(axis=1), times[at] == 1
        winners[at[once]] = values[once]
        answers = problem.classes[winners]
    positions, index = problem.rows[rows], problem.sample.index
    return Answer(
        rows=positions,
        values=answers,
        status=np.where(given, "answered", "unreached"),
        guarantee=Guarantee("none", reasons=_OUT_OF_FOLD),
        probabilities=probabilities,
        classes=problem.classes,
        index=None if index is None else index[positions],
    )


def _column(problem: Problem, answers: Answer) -> Any:
    """Return the out-of-fold answers in the container of y, missing where there is none."""
    sample = problem.sample
    unlabelled = np.ones(len(sample.labelled), dtype=bool)
    unlabelled[answers.rows] = False
    y, source, values = sample.y.copy(), sample.source, answers.values
    never = sample.labelled & unlabelled
    if problem.classes is None:
        y = np.full(len(unlabelled), np.nan)
    else:
        values = values.astype(object)
        if never.any():
            y = y.astype(object)
            y[never] = None
            source = source.astype(object) if isinstance(source, pd.Series) else source
    column = PartlyLabelled(sample.X, y, unlabelled, source).complete(values)
    # In polars what is missing is null, not NaN.
    return column.fill_nan(None) if hasattr(column, "fill_nan") and column.dtype.is_float() else column


DEFAULT = {"regression": "neg_root_mean_squared_error", "classification": "accuracy"}


@dataclass(eq=False, repr=False)
class Answered(BaseEstimator):
    """Poses as a fitted estimator whose answers are known, so that any scorer can judge them."""

    values: AnyArray

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> AnyArray:
        """Return the answers, whatever X holds."""
        return self.values


class AnsweredNumbers(RegressorMixin, Answered):
    """Poses as a regressor."""


@dataclass(eq=False, repr=False)
class AnsweredClasses(ClassifierMixin, Answered):
    """Poses as a classifier; it has probabilities or scores if they are given."""

    classes_: AnyArray
    probabilities: Any
    scores: Any

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
    named = scoring
    if not isinstance(scoring, dict):
        several = scoring if isinstance(scoring, list | tuple | set) else [scoring]
        named = {score if isinstance(score, str) else _name(score): score for score in several}
    if not named:
        raise ValueError("scoring is empty: name at least one score.")
    return {str(name): _scorer(score, classes) for name, score in named.items()}


def _name(scorer: Any) -> str:
    function = getattr(scorer, "_score_func", scorer)
    return str(getattr(function, "__name__", "score"))


def _scorer(scoring: Any, classes: AnyArray | None) -> Any:
    from sklearn.metrics import get_scorer, log_loss, make_scorer

    if isinstance(scoring, str):
        try:
            scorer = get_scorer(scoring)
        except ValueError:
            known = "sklearn.metrics.get_scorer_names() lists them"
            raise ValueError(f"scoring={scoring!r} is not a scikit-learn score: {known}.") from None
        if scoring == "neg_log_loss":  # a fold may lack a class
            of = {"response_method": "predict_proba", "labels": classes}
            return make_scorer(log_loss, greater_is_better=False, **of)
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
        why = f"needs more than the answers have, such as probabilities: {error}"
        raise ValueError(f"The score {name!r} {why}") from error
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
