"""Transductive cross-validation: folds hide labels, every row's features stay; and methods compared by it."""

from __future__ import annotations

import numbers
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if

from transduce.core import checks
from transduce.core.answer import Answer
from transduce.core.checks import check_random_state
from transduce.core.computing import call_each, stage, threads_of_fit
from transduce.core.guarantee import Guarantee
from transduce.core.ranks import random_folds
from transduce.core.types import AnyArray, Array
from transduce.core.words import in_a_sentence, quoted
from transduce.model_selection.fit_and_predict import (
    Problem,
    Reply,
    ask,
    last_step,
    name_members,
    read_problem,
)
from transduce.model_selection.methods import default_members

Fold = tuple[AnyArray, AnyArray]


def read_folds(
    cv: Any, problem: Problem, *, random_state: Any = None, groups: Any = None, quiet: bool = False
) -> list[Fold]:
    """Return which of the labelled rows are visible and hidden in each fold, by position among them; groups (n,)."""
    n = len(problem.labels)
    if n < 2:
        raise ValueError("Only one sample has a label: hiding it leaves none. Label another one.")
    if groups is not None:
        _check_groups(groups, problem.n_rows)
    if isinstance(cv, numbers.Integral) and not isinstance(cv, bool):
        checks.check_whole("cv", cv, least=2)
        pairs: Any = _number_of_folds(int(cv), problem, random_state, groups)
    elif hasattr(cv, "split") and not isinstance(cv, str):
        groups_l = None if groups is None else _safe_indexing(groups, problem.rows)
        pairs = cv.split(_safe_indexing(problem.X, problem.rows), problem.labels, groups_l)
    elif isinstance(cv, Iterable) and not isinstance(cv, str):
        pairs = cv
    else:
        raise ValueError(
            f"cv must be a number of folds, a splitter, or pairs of positions; got {quoted(cv)}."
        )
    folds = [_read_pair(pair, n) for pair in pairs]
    if not folds:
        raise ValueError(
            "cv holds no fold: give at least one pair of visible and hidden positions."
        )
    if not quiet:
        _warn_lost(problem, folds)
    return folds


def _check_groups(groups: Any, n_rows: int) -> None:
    """Raise a ValueError unless there is a group for each row."""
    shape = np.shape(groups)
    if len(shape) != 1 or shape[0] != n_rows:
        raise ValueError(
            f"groups must name one group for each of the {n_rows} rows; got an array of shape {shape}."
        )


def _number_of_folds(cv: int, problem: Problem, random_state: Any, groups: Any) -> list[Fold]:
    """Return so many folds: every class spread evenly, or whole groups together."""
    n = len(problem.labels)
    if groups is not None:
        return group_folds(_safe_indexing(groups, problem.rows), cv, random_state)
    codes = problem.codes if problem.classes is not None else np.zeros(n, dtype=int)
    by_content = np.argsort(problem.places[problem.rows])
    fold = np.empty(n, dtype=int)
    fold[by_content] = random_folds(codes[by_content], min(cv, n), check_random_state(random_state))
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(fold.max() + 1)]


def group_codes(groups: Any) -> AnyArray:
    """Return a number for the group of each row (l,); a missing name is a group of its own kind."""
    names = np.asarray(groups)
    try:
        return np.unique(names, return_inverse=True)[1]
    except TypeError:  # names of several types have no order
        codes, levels = pd.factorize(names, use_na_sentinel=False)
        by_name = sorted(
            range(len(levels)), key=lambda k: (type(levels[k]).__name__, str(levels[k]))
        )
        return np.argsort(by_name)[codes]


def group_folds(groups: Any, n_folds: int, random_state: Any = None) -> list[Fold]:
    """Return folds that never split a group (l,): pairs of visible and hidden positions, of about equal size."""
    codes = group_codes(groups)
    sizes = np.bincount(codes)
    if len(sizes) < 2:
        raise ValueError(
            "All labels are of one group: hiding it leaves none. Folds need two groups."
        )
    random = check_random_state(random_state)
    filled_to, fold_of = (
        np.zeros(min(n_folds, len(sizes)), dtype=int),
        np.empty(len(sizes), dtype=int),
    )
    for code in np.lexsort([random.permutation(len(sizes)), -sizes]):
        fold_of[code] = filled_to.argmin()
        filled_to[fold_of[code]] += sizes[code]
    fold = fold_of[codes]
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(len(filled_to))]


def with_group_folds(estimator: Any, groups: Any, random_state: Any = None) -> Any:
    """Return a copy of an estimator whose own folds, if any, never split a group (l,)."""
    cv = getattr(last_step(estimator), "cv", None)
    cv = 5 if isinstance(cv, str) and cv == "auto" else cv
    if (
        not isinstance(cv, numbers.Integral)
        or isinstance(cv, bool)
        or len(np.unique(group_codes(groups))) < 2
    ):
        return estimator
    copy = clone(estimator)
    last_step(copy).set_params(cv=group_folds(groups, int(cv), random_state))
    return copy


def _read_pair(pair: Any, n: int) -> Fold:
    """Return a fold as two arrays of positions, checked."""
    try:
        visible, hidden = (np.asarray(part) for part in pair)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            "cv must hold pairs: positions of visible rows and of hidden rows."
        ) from None
    parts: list[AnyArray] = []
    for part in (visible, hidden):
        part = np.flatnonzero(part) if part.dtype == bool and len(part) == n else part
        proper = part.ndim == 1 and part.dtype.kind in "iu" and len(part) > 0
        if not proper or part.min() < -n or part.max() >= n:
            where = f"among the {n} labelled rows"
            raise ValueError(
                f"cv must hold positions {where}, at least one visible and one hidden a fold."
            )
        parts.append(part % n)
    if len(np.intersect1d(parts[0], parts[1])):
        raise ValueError(
            "A fold of cv has a row both visible and hidden: its answer would be no test."
        )
    return parts[0], parts[1]


def _warn_lost(problem: Problem, folds: list[Fold]) -> None:
    """Say which classes have no visible label in some fold."""
    if problem.classes is None:
        return
    lost: dict[Any, list[int]] = {}
    for k, (visible, hidden) in enumerate(folds):
        for code in np.setdiff1d(problem.codes[hidden], problem.codes[visible]):
            lost.setdefault(problem.classes[code].item(), []).append(k + 1)
    if lost:
        words = ", ".join(
            f"{quoted(name)} in fold {', '.join(map(str, where))}" for name, where in lost.items()
        )
        warnings.warn(
            f"All labels of a class are hidden at once ({words}): no answer there can be right. Give such a class at "
            "least two labels.",
            stacklevel=4,
        )


def ask_folds(
    estimators: list[Any], problem: Problem, folds: list[Fold], *, n_jobs: int | None = None
) -> list[list[Reply | Exception]]:
    """Return what each estimator replies in each fold, or why it fails; the fitted copies are let go."""
    calls = [(_try, estimator, problem, *fold) for estimator in estimators for fold in folds]
    replies: list[Reply | Exception] = []
    with stage("cross-validation") as report:
        for reply in call_each(calls, threads_of_fit(problem.n_rows), n_jobs):
            replies.append(reply)
            report(len(replies) / len(calls))
    return [replies[k * len(folds) : (k + 1) * len(folds)] for k in range(len(estimators))]


def _try(
    estimator: Any, problem: Problem, visible: AnyArray, hidden: AnyArray
) -> Reply | Exception:
    try:
        return replace(ask(estimator, problem, visible, problem.rows[hidden]), fitted=None)
    except Exception as error:  # an estimator of any make may raise anything
        return error


def like(error: Exception, message: str) -> Exception:
    """Return an error to raise in place of another, a TypeError for a TypeError."""
    return (TypeError if isinstance(error, TypeError) else ValueError)(message)


def filled(reply: Reply, prior: Array) -> Reply:
    """Return the reply with the prior where the estimator gave none: the mean label, or the share of each class."""
    if reply.given.all():
        return reply
    gaps = ~reply.given
    values = np.where(gaps, prior[0] if len(prior) == 1 else int(prior.argmax()), reply.values)
    parts: dict[str, Any] = {"probabilities": reply.probabilities, "scores": reply.scores}
    parts = {
        name: np.where(gaps[:, None], prior, part)
        for name, part in parts.items()
        if part is not None
    }
    return replace(reply, values=values, **parts)


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
    >>> found = cross_val_transduce(DummyRegressor(), [[0.0]] * 4, [0.0, 2.0, 4.0, None], cv=3, random_state=0)
    >>> found.folds.columns.tolist()
    ['neg_root_mean_squared_error', 'visible', 'hidden', 'fit_time', 'score_time']
    """

    scores: Array
    folds: pd.DataFrame
    answers: Answer
    task: str

    def __str__(self) -> str:
        scores = self.folds.iloc[:, :-4].items()  # they come before the counts and times
        words = (
            f"{name} {of.mean():.4g} (standard deviation {of.std(ddof=0):.2g})"
            for name, of in scores
        )
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
    >>> cross_val_transduce(DummyRegressor(), [[0.0]] * 4, [0.0, 2.0, 4.0, None], cv=folds).answers.to_frame()
       value    status
    0    3.0  answered
    2    1.0  answered
    """
    checks.check_jobs(n_jobs)
    problem = read_problem(X, y, task="auto", estimators=[estimator], missing_label=missing_label)
    scorers = read_scorers(scoring, problem.task, problem.classes)
    folds = read_folds(cv, problem, random_state=random_state, groups=groups)
    replies = ask_folds([estimator], problem, folds, n_jobs=n_jobs)[0]
    good = [reply for reply in replies if isinstance(reply, Reply)]
    if scoring is None and all(reply.probabilities is not None for reply in good):
        scorers |= read_scorers("neg_log_loss", problem.task, problem.classes)
    result = judge(problem, folds, replies, scorers)
    _warn(good)
    return result


def judge(
    problem: Problem, folds: list[Fold], replies: list[Reply | Exception], scorers: dict[str, Any]
) -> CrossTransduction:
    """Return scores and out-of-fold answers from the replies of one estimator; raise if it failed in a fold."""
    if problem.classes is None and 0.0 < np.ptp(problem.labels) < 1e-150:
        raise ValueError(
            "The labels are too small for their squares: multiply them by a constant first."
        )
    good: list[Reply] = []
    for k, reply in enumerate(replies):
        if isinstance(reply, Exception):
            where = f"Fold {k + 1} of {len(folds)} failed" if len(folds) > 1 else "The fold failed"
            raise like(reply, f"{where}: {in_a_sentence(reply)}") from reply
        good.append(filled(reply, problem.prior(folds[k][0])))
    lines = [
        _score_fold(problem, fold, reply, scorers) for fold, reply in zip(folds, good, strict=True)
    ]
    table = pd.DataFrame(lines, index=pd.RangeIndex(1, len(folds) + 1, name="fold"))
    first = table[next(iter(scorers))].to_numpy()
    return CrossTransduction(first, table, _collect(problem, folds, good), problem.task)


def judge_each(
    problem: Problem,
    folds: list[Fold],
    replies: list[list[Reply | Exception]],
    scorers: dict[str, Any],
) -> list[CrossTransduction | Exception]:
    """Return what cross-validation says of each estimator, or the error of one that failed in a fold."""
    results: list[CrossTransduction | Exception] = []
    for reply in replies:
        try:
            results.append(judge(problem, folds, reply, scorers))
        except (TypeError, ValueError, OverflowError) as error:
            results.append(error)
    return results


def _warn(replies: list[Reply]) -> None:
    """Pass on what the estimator warned of, once, and say where it had no answer."""
    for category, message in dict.fromkeys(note for reply in replies for note in reply.notes):
        warnings.warn(message, category, stacklevel=3)
    gaps = sum(int((~reply.given).sum()) for reply in replies)
    if gaps:
        warnings.warn(
            f"{gaps} hidden label{'s' * (gaps != 1)} got no answer: the mean of the visible labels, or their most "
            "frequent class, stands in.",
            stacklevel=3,
        )


def _score_fold(
    problem: Problem, fold: Fold, reply: Reply, scorers: dict[str, Any]
) -> dict[str, Any]:
    visible, hidden = fold
    answered, shares = Answered(reply.values), reply.probabilities
    if problem.classes is not None:
        margins = shares if reply.scores is None else reply.scores
        answered = Answered(problem.classes[reply.values], problem.classes, shares, margins)
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


DEFAULT = {"regression": "neg_root_mean_squared_error", "classification": "accuracy"}


@dataclass(eq=False, repr=False)
class Answered(BaseEstimator):
    """Poses as a fitted estimator whose answers are known, so that any scorer can judge them."""

    values: AnyArray
    classes_: AnyArray | None = None  # of a classifier
    probabilities: Any = None
    scores: Any = None

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor" if self.classes_ is None else "classifier"
        return tags

    def predict(self, X: Any) -> AnyArray:
        """Return the answers, whatever X holds."""
        return self.values

    def score(self, X: Any, y: Any) -> float:
        """Return how good the answers are, as scikit-learn's estimators do."""
        from sklearn.metrics import accuracy_score, r2_score

        return float((r2_score if self.classes_ is None else accuracy_score)(y, self.values))

    @available_if(lambda self: self.probabilities is not None)
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities, whatever X holds."""
        return self.probabilities

    @available_if(lambda self: self.scores is not None)
    def decision_function(self, X: Any) -> Array:
        """Return the scores, whatever X holds; of two classes their difference."""
        return self.scores if self.scores.shape[1] > 2 else self.scores[:, 1] - self.scores[:, 0]


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
    return str(getattr(getattr(scorer, "_score_func", scorer), "__name__", "score"))


def _scorer(scoring: Any, classes: AnyArray | None) -> Any:
    from sklearn.metrics import check_scoring, log_loss, make_scorer

    if isinstance(scoring, str) and scoring == "neg_log_loss":  # a fold may lack a class
        of = {"response_method": "predict_proba", "labels": classes}
        return make_scorer(log_loss, greater_is_better=False, **of)
    try:
        return check_scoring(scoring=scoring)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            "scoring must be the name of a score, as sklearn.metrics.get_scorer_names() lists them, or a scorer: a "
            "function of (estimator, X, y) such as sklearn.metrics.make_scorer makes of a metric; got "
            f"{quoted(scoring)}."
        ) from error


def score_number(name: str, scorer: Any, answered: Any, X: Any, y: AnyArray) -> float:
    """Return one score as a finite number, or raise a ValueError that says why there is none."""
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            np.errstate(over="ignore", invalid="ignore"),
        ):
            warnings.simplefilter("always")
            score = float(scorer(answered, X, y))
    except AttributeError as error:
        why = f"needs more than the answers have, such as probabilities: {error}"
        raise ValueError(f"The score {name!r} {why}") from error
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"The score {name!r} cannot be computed: {error}") from error
    if not np.isfinite(score):
        raise ValueError(
            f"The score {name!r} is {score} with {len(y)} hidden label{'s' * (len(y) != 1)}: use fewer folds, labels "
            "of ordinary size, or another score."
        )
    for note in caught:
        warnings.warn(str(note.message), note.category, stacklevel=2)
    return score


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
    task: str
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
        """Return in a sentence which method is best, and how sure that is; `names` are others for some methods."""
        scored = list(self.details)
        called = {name: (names or {}).get(name, name) for name in scored}
        if len(scored) == 1:
            return f"{called[self.best]} is the only method that has a score."
        second = scored[1]
        gap = self.details[self.best].scores - self.details[second].scores
        error = float(gap.std(ddof=1) / np.sqrt(len(gap))) if len(gap) > 1 else np.inf
        sure = "by more than" if gap.mean() > 2 * error else "within"
        by = f"two standard errors of the difference from {called[second]}: {gap.mean():.3g} ± {error:.2g}."
        return f"{called[self.best]} is best, {sure} {by}"


def choose_method(  # noqa: PLR0913
    X: Any,
    y: Any,
    candidates: Any = None,
    *,
    task: str = "auto",
    cv: Any = 5,
    scoring: Any = None,
    standardize: bool = True,
    n_jobs: int | None = None,
    random_state: Any = None,
    missing_label: Any = None,
) -> MethodChoice:
    """Compare the methods of this package, ridge, a random forest and any given estimators on the same folds.

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
    given = {} if candidates is None else name_members("candidates", candidates)
    problem = read_problem(
        X, y, task=task, estimators=list(given.values()), missing_label=missing_label
    )
    random = check_random_state(random_state)
    case = problem.case(
        standardize=standardize, random_state=int(random.randint(np.iinfo(np.int32).max))
    )
    methods, failures = default_members(case, compare=True)
    methods = methods | given
    failures = {name: why for name, why in failures.items() if name not in given}
    scorers = read_scorers(scoring, problem.task, problem.classes)
    if len(scorers) > 1:
        raise ValueError(
            "choose_method needs one score to choose by; cross_val_transduce takes several."
        )
    folds = read_folds(cv, problem, random_state=random)
    replies = ask_folds(list(methods.values()), problem, folds, n_jobs=n_jobs)
    results = dict(zip(methods, judge_each(problem, folds, replies, scorers), strict=True))
    failures |= {
        name: in_a_sentence(why) for name, why in results.items() if isinstance(why, Exception)
    }
    details = {name: one for name, one in results.items() if isinstance(one, CrossTransduction)}
    if not details:
        name, why = next(iter(failures.items()))
        raise ValueError(f"Every method failed. {name}: {why}")
    details = dict(sorted(details.items(), key=lambda pair: -pair[1].scores.mean()))
    best = next(iter(details))
    return MethodChoice(
        table=_table(details, failures),
        best=best,
        estimator=clone(methods[best]),
        scoring=next(iter(scorers)),
        task=problem.task,
        failures=failures,
        details=details,
        n_labels=len(problem.labels),
    )


def _table(details: dict[str, CrossTransduction], failures: dict[str, str]) -> pd.DataFrame:
    """Return one line a method, the best first, those without a score last."""
    table = pd.DataFrame(
        index=[*details, *failures], columns=["score", "spread", "fit_time"], dtype=float
    )
    for name, one in details.items():
        table.loc[name] = one.scores.mean(), one.scores.std(), one.folds["fit_time"].mean()
    table["rank"] = table["score"].rank(ascending=False, method="min").astype("Int64")
    return table
