"""Putting one question to any estimator: answers at rows whose labels it may not see."""

from __future__ import annotations

import time
import types
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier
from sklearn.utils import indexable
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _num_samples

from transduce.core import checks, validation
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import label_moments
from transduce.core.task import TASKS, guess_task
from transduce.core.transducer import Transducer
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.validation import class_codes

BY_NUMBER = (LabelPropagation, LabelSpreading, SelfTrainingClassifier)  # for these, -1 means "no label"


@dataclass(frozen=True, eq=False)
class Problem:
    """A table in the user's own container, and its labels, ready to be hidden in part.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Features as given; estimators check them.
    sample : PartlyLabelled
        Which rows are labelled; it has no features.
    labels : array of shape (l,)
        Labels of the labelled rows: numbers, or classes.
    classes : array of shape (n_classes,) or None
        The classes, sorted; None if labels are numbers.
    codes : integer array of shape (l,)
        Class of each labelled row; empty if labels are numbers.
    """

    X: Any
    sample: PartlyLabelled
    labels: AnyArray
    classes: AnyArray | None
    codes: AnyArray

    @classmethod
    def of(cls, X: Any, sample: PartlyLabelled, task: str) -> Problem:
        """Read labels as numbers or as classes."""
        if sample.y.dtype.kind == "c":
            raise ValueError("Complex data not supported: labels must be real numbers or classes.")
        if task == "regression":
            return cls(X, sample, validation.numeric_labels(sample), None, np.empty(0, dtype=int))
        classes, codes = validation.class_labels(sample)
        return cls(X, sample, classes[codes], classes, codes)

    @property
    def task(self) -> str:
        """Return "regression" or "classification"."""
        return "regression" if self.classes is None else "classification"

    @property
    def rows(self) -> AnyArray:
        """Positions of the labelled rows in the table."""
        return np.flatnonzero(self.sample.labelled)

    def shown(self, visible: AnyArray) -> AnyArray:
        """Return a label for every row of the table: missing, but for the visible ones of the labelled rows."""
        if self.classes is None:
            y = np.full(len(self.sample.labelled), np.nan)
            y[self.rows[visible]] = self.labels[visible]
            return y
        y = np.full(len(self.sample.labelled), None, dtype=object)
        y[self.rows[visible]] = self.labels[visible].tolist()
        return y

    def prior(self, visible: AnyArray) -> Array:
        """Return what is known without features: the mean label, shape (1,), or the share of each class."""
        if self.classes is None:
            return np.array([label_moments(self.labels[visible])[0]])
        return np.bincount(self.codes[visible], minlength=len(self.classes)) / len(visible)


@dataclass(frozen=True, eq=False)
class Reply:
    """What an estimator answered at m rows.

    Parameters
    ----------
    values : array of shape (m,)
        Numbers, or class numbers; meaningless where none was `given`.
    given : boolean array of shape (m,)
        Whether the estimator has an answer there.
    probabilities, scores : array of shape (m, n_classes), optional
        Of classes; a class that the estimator did not see has probability 0 and the
        row's lowest score.
    fitted : estimator or None
        The estimator, fitted; None if it was not needed, since one class only was visible.
    seconds : float
        Time of the fit.
    notes : list of (category, message)
        Warnings of the fit.
    """

    values: AnyArray
    given: Mask
    probabilities: Array | None = None
    scores: Array | None = None
    fitted: Any = None
    seconds: float = 0.0
    notes: list[tuple[type[Warning], str]] = field(default_factory=list)


def check_member(name: str, estimator: Any) -> None:
    """Raise a ValueError unless this is an estimator, not its class, that can be fitted and predict."""
    if isinstance(estimator, type):
        raise ValueError(
            f"{name} is the class {estimator.__name__}: give an instance of it, {estimator.__name__}()."
        )
    if not all(hasattr(estimator, method) for method in ("fit", "get_params")):
        raise ValueError(f"{name} must be an estimator with fit and predict; got {estimator!r}.")
    if not is_transducer(estimator) and not hasattr(estimator, "predict"):
        raise ValueError(f"{name} cannot predict: end it with a regressor or a classifier.")


def last_step(estimator: Any) -> Any:
    """Return the estimator itself, or the end of a pipeline."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def is_transducer(estimator: Any) -> bool:
    """Return whether an estimator, or the end of a pipeline, takes all rows at once, some without a label."""
    last = last_step(estimator)
    return isinstance(last, Transducer) or "missing_label" in getattr(last, "get_params", dict)()


def own_missing_label(missing_label: Any, estimators: Any) -> Any:
    """Return what stands for "no label": as given, else as the first estimator that has a word for it says."""
    own = [getattr(last_step(estimator), "missing_label", None) for estimator in estimators]
    return next((label for label in (missing_label, *own) if label is not None), None)


def told_task(estimator: Any, task: str) -> Any:
    """Return the estimator, told the task if it would guess it from labels some of which are hidden."""
    last = last_step(estimator)
    if isinstance(getattr(last, "task", None), str) and last.task == "auto":
        last.set_params(task=task)
    return estimator


def read_table(X: Any) -> Any:
    """Return features as given if their rows can be picked, else as an array; estimators check the rest."""
    if hasattr(X, "collect") and not hasattr(X, "shape"):
        raise ValueError("X is a lazy frame: call its collect() first.")
    table = indexable(X)[0]
    if len(getattr(table, "shape", (0, 0))) == 1:
        raise ValueError("Expected 2D array, got 1D array instead. Reshape your data: one line for each row.")
    return table


def failure(message: str, error: Exception) -> Exception:
    """Return an error to raise in place of another one, a TypeError for a TypeError."""
    return TypeError(message) if isinstance(error, TypeError) else ValueError(message)


def ask(estimator: Any, problem: Problem, visible: AnyArray, rows: AnyArray) -> Reply:
    """Fit a copy of an estimator to the visible labels, and return its answers at rows of the table.

    Parameters
    ----------
    estimator : estimator
        A transducer, scikit-learn's own included, sees all rows' features; any other is fitted to the visible rows and
        predicts.
    problem : Problem
    visible : integer array
        Which of the labelled rows show their label, by position among them.
    rows : integer array of shape (m,)
        Positions in the table; none of them visible.

    Returns
    -------
    Reply
    """
    if problem.classes is not None and len(np.unique(problem.codes[visible])) == 1:
        shares = np.tile(problem.prior(visible), (len(rows), 1))
        return Reply(shares.argmax(axis=1), np.ones(len(rows), dtype=bool), shares)
    model = told_task(clone(estimator), problem.task)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if is_transducer(model):
            model.fit(problem.X, problem.shown(visible))
            reply = _read_answer(last_step(model), problem, rows)
        elif isinstance(last_step(model), BY_NUMBER):
            reply = _ask_by_number(model, problem, visible, rows)
        else:
            at = problem.rows[visible]
            model.fit(_safe_split(model, problem.X, None, at)[0], problem.labels[visible])
            reply = Reply(
                problem.codes[:0] if problem.classes is not None else np.empty(0), np.empty(0, dtype=bool)
            )
            if len(rows):
                reply = predict(model, _safe_split(model, problem.X, None, rows, at)[0], problem.classes)
    notes = list({(note.category, str(note.message)) for note in caught})
    return Reply(
        reply.values,
        reply.given,
        reply.probabilities,
        reply.scores,
        model,
        time.perf_counter() - start,
        sorted(notes, key=str),
    )


def _ask_by_number(model: Any, problem: Problem, visible: AnyArray, rows: AnyArray) -> Reply:
    """Fit one of scikit-learn's transducers to all rows; where no label reaches a row, it has no answer."""
    assert problem.classes is not None
    y = np.full(len(problem.sample.labelled), -1)
    y[problem.rows[visible]] = problem.codes[visible]
    model.fit(problem.X, y)
    shares = getattr(last_step(model), "label_distributions_", None)
    if shares is None:
        return predict(model, _safe_split(model, problem.X, None, rows)[0], problem.classes)
    own = problem.classes[last_step(model).classes_]
    reply = _reply(own[shares[rows].argmax(axis=1)], shares[rows], None, own, problem.classes)
    return replace(reply, given=reply.given & (shares[rows].sum(axis=1) > 0.0))


def _read_answer(model: Any, problem: Problem, rows: AnyArray) -> Reply:
    """Return what a fitted transducer has to say at some of its unlabelled rows."""
    answer = getattr(model, "answer_", None)
    if answer is None:  # not one of ours: its completed labels are all there is
        values = np.asarray(model.transduction_)[rows]
        return _reply(values, None, None, problem.classes, problem.classes)
    at = np.searchsorted(answer.rows, rows)
    probabilities, scores = (
        None if part is None else part[at] for part in (answer.probabilities, answer.scores)
    )
    reply = _reply(answer.values[at], probabilities, scores, answer.classes, problem.classes)
    return Reply(
        reply.values, reply.given & (answer.status[at] != "unreached"), reply.probabilities, reply.scores
    )


def predict(model: Any, X: Any, classes: AnyArray | None) -> Reply:
    """Return the predictions of a fitted estimator at rows, with probabilities or scores where it has any."""
    if classes is None:
        return _reply(model.predict(X), None, None, None, None)
    probabilities = model.predict_proba(X) if hasattr(model, "predict_proba") else None
    scores = None
    if probabilities is None and hasattr(model, "decision_function"):
        scores = model.decision_function(X)
    values, own = model.predict(X), model.classes_
    if isinstance(last_step(model), BY_NUMBER):
        values, own = classes[values], classes[own]
    return _reply(values, probabilities, scores, own, classes)


def _reply(values: Any, probabilities: Any, scores: Any, own: Any, classes: AnyArray | None) -> Reply:
    """Return answers in terms of the problem's classes; `own` are the estimator's."""
    values = np.asarray(values)
    if classes is None:
        if values.ndim > 1 and values.shape[1] > 1:
            raise ValueError(f"It answers with {values.shape[1]} columns of numbers where one is wanted.")
        numbers = values.ravel().astype(float)
        return Reply(numbers, np.isfinite(numbers))
    codes = class_codes(values, classes)
    columns = class_codes(classes if own is None else np.asarray(own), classes)
    if probabilities is not None:
        probabilities = _spread(np.asarray(probabilities, dtype=float), columns, len(classes), 0.0)
    if scores is not None:
        scores = np.asarray(scores, dtype=float)
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores])
        lowest = scores.min(axis=1, keepdims=True, initial=np.inf)
        scores = None if scores.shape[1] != len(columns) else _spread(scores, columns, len(classes), lowest)
    given = codes >= 0
    for numbers in (probabilities, scores):
        if numbers is not None:
            given = given & ~np.isnan(numbers).any(axis=1)
    return Reply(codes, given, probabilities, scores)


def _spread(numbers: Array, columns: AnyArray, n_classes: int, absent: Any) -> Array:
    """Return columns at their places among all classes; `absent` stands where there is none."""
    wide = np.broadcast_to(absent, (len(numbers), n_classes)).astype(float)
    wide[:, columns] = numbers
    return wide


def read_problem(X: Any, y: Any, *, task: str, estimators: Any = (), missing_label: Any = None) -> Problem:
    """Return table and labels; features stay as given, for the estimators to check.

    Parameters
    ----------
    X : array-like of shape (n, d)
    y : sequence of length n
        Labels, some of which may be missing.
    task : {"auto", "regression", "classification"}
    estimators : sequence of estimators
        Say what the task is, and what stands for a missing label, if nothing else does.
    missing_label : object, default=None

    Returns
    -------
    Problem
    """
    checks.check_choice("task", task, TASKS)
    if y is None:
        raise ValueError(
            "y is None: give one label for each row, missing (NaN or None) where the answer is wanted."
        )
    X = read_table(X)
    reader = types.SimpleNamespace(missing_label=own_missing_label(missing_label, estimators))
    sample = validation.read_labels(reader, np.empty((_num_samples(X), 0)), getattr(X, "index", None), y)
    return Problem.of(X, sample, guess_task(sample, estimators) if task == "auto" else task)
