"""`fit_and_predict`, the one adapter to any estimator.

It hides labels, fits, and reads predictions at rows whose labels the estimator may not see.
"""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.utils import get_tags
from sklearn.utils.validation import _num_samples

from transduce.core import arrays
from transduce.core.answer import Answer
from transduce.core.guarantee import Guarantee, TooFewLabelsWarning
from transduce.core.types import AnyArray, Array, Mask, Rows
from transduce.core.validation import class_codes
from transduce.model_selection.estimator_kinds import (
    can_continue,
    is_transducer,
    last_step,
    takes_numbers,
)
from transduce.model_selection.problem import Problem, take_rows

UNREACHED = "unreached"
# What a raw prediction holds of each row.
PARTS = ("values", "status", "spreads", "probabilities", "scores")


@dataclass(frozen=True, eq=False)
class RawPrediction:
    """What an estimator predicts at m rows."""

    values: AnyArray  # (m,) numbers, or class numbers; meaningless where the status is "unreached"
    status: AnyArray  # (m,) as the estimator says; "unreached" where it has no answer
    spreads: Array | None = None  # (m,) numbers
    probabilities: Array | None = None  # (m, n_classes) of classes
    scores: Array | None = None  # (m, n_classes) of classes
    fitted: Any = None  # the `FittedEstimator`; None once it was let go
    seconds: float = 0.0  # time of the fit
    notes: list[tuple[type[Warning], str]] = field(default_factory=list)  # warnings of the fit

    @property
    def given(self) -> Mask:
        """Where the estimator has an answer."""
        return np.asarray(self.status != UNREACHED)

    def class_scores(self, n_classes: int) -> Array:
        """Return scores of the classes, shape (m, n_classes).

        They are 1 for the answer and 0 for others if that is all there is.
        """
        if self.scores is not None:
            return self.scores
        return np.eye(n_classes)[np.maximum(self.values, 0)]

    def at(self, places: AnyArray) -> RawPrediction:
        """Return the predictions at some of the rows."""
        parts: dict[str, Any] = {}
        for name in PARTS:
            part = getattr(self, name)
            if part is not None:
                parts[name] = part[places]
        return replace(self, **parts)


@dataclass(frozen=True, eq=False)
class FittedEstimator:
    """A fitted estimator, with what is needed to answer at more rows."""

    estimator: Any
    classes: AnyArray | None  # classes of the problem; None for numbers
    order: AnyArray  # positions in the table of the rows that it was fitted to, in its own order
    n_rows: int  # rows of the table

    @property
    def pairwise(self) -> bool:
        """Whether it takes kernel values instead of features."""
        return bool(get_tags(self.estimator).input_tags.pairwise)

    @property
    def by_number(self) -> bool:
        """Whether it knows classes by their numbers."""
        return self.classes is not None and takes_numbers(self.estimator)

    def arrange_rows(self, X: Rows) -> Rows:
        """Return rows given after the fit as the estimator takes them.

        Kernel values are in its own order.
        """
        if not self.pairwise:
            return X
        kernel = np.asarray(arrays.to_numpy(X))
        n = self.n_rows
        if kernel.ndim != 2 or kernel.shape[1] not in (n, n + 1):
            raise ValueError(
                f"A precomputed kernel needs the kernel values of each new row with the {n} rows "
                f"of fit; got an array of shape {kernel.shape}."
            )
        own_columns = kernel[:, self.order]
        if len(self.order) < n:
            return own_columns
        return np.column_stack([own_columns, kernel[:, n:]])

    # ---- predictions at new rows

    def predict(
        self,
        X: Rows,
        *,
        spreads: bool = True,
        once: bool = False,
    ) -> RawPrediction:
        """Return predictions at new rows, with all that is said about them.

        Standard errors are there only with `spreads`. With `once` classes are those of the largest
        probability, where there are any, which saves half of the work.
        """
        if not hasattr(self.estimator, "predict"):  # it can transduce only
            return self.unreached(_num_samples(X))
        with _dispatching(X):
            if self.classes is None:
                return self._predict_numbers(X, spreads=spreads)
            return self._predict_classes(X, once=once)

    def _predict_numbers(self, X: Rows, *, spreads: bool) -> RawPrediction:
        arguments = inspect.signature(last_step(self.estimator).predict).parameters
        if not spreads or "return_std" not in arguments:
            return self.reply(self.estimator.predict(X))
        values, errors = self.estimator.predict(X, return_std=True)
        return self.reply(values, spreads=np.asarray(arrays.to_numpy(errors), dtype=float))

    def _predict_classes(self, X: Rows, *, once: bool) -> RawPrediction:
        own_classes = self.estimator.classes_
        probabilities = None
        scores = None
        if hasattr(self.estimator, "predict_proba") and not self._answers_by_scores():
            probabilities = self.estimator.predict_proba(X)
        elif hasattr(self.estimator, "decision_function"):
            scores = self.estimator.decision_function(X)
        if once and probabilities is not None:
            likeliest = np.argmax(arrays.to_numpy(probabilities), axis=1)
            values = np.asarray(own_classes)[likeliest]
        else:
            values = self.estimator.predict(X)
        return self.reply(
            values, probabilities=probabilities, scores=scores, own_classes=own_classes
        )

    def predict_proba(self, X: Rows) -> Array | None:
        """Return the probability of each class (m, n_classes) at new rows, also beside scores."""
        with _dispatching(X):
            shares = self.estimator.predict_proba(self.arrange_rows(X))
        return self.at_all_classes(shares, self.codes(self.estimator.classes_), absent=0.0)

    def _answers_by_scores(self) -> bool:
        """Return whether the rows of the fit have scores and no probabilities.

        New rows are answered as they are.
        """
        answer = getattr(last_step(self.estimator), "answer_", None)
        if not isinstance(answer, Answer):
            return False
        has_scores = answer.scores is not None or answer.p_values is not None
        return has_scores and answer.probabilities is None

    def unreached(self, n: int) -> RawPrediction:
        """Return no answer at n rows."""
        values: AnyArray = np.zeros(n)
        if self.classes is not None:
            values = np.zeros(n, dtype=int)
        return RawPrediction(values, np.full(n, UNREACHED))

    # ---- predictions of a transducer at its own rows

    def transduced(self, at: AnyArray) -> RawPrediction:
        """Return what a transducer answers at positions among its own rows."""
        last = last_step(self.estimator)
        answer = getattr(last, "answer_", None)
        if isinstance(answer, Answer):
            return self._read_answer(answer, at)
        if not hasattr(last, "transduction_"):
            name = type(last).__name__
            raise TypeError(
                f"{name} has no transduction_ after fit: it must answer at rows without a label."
            )
        shares = getattr(last, "label_distributions_", None)
        if shares is None:
            values = np.asarray(last.transduction_)[at]
            return self.reply(values, own_classes=getattr(last, "classes_", None))
        return self._read_shares(np.asarray(shares)[at], last.classes_)

    def _read_answer(self, answer: Answer, at: AnyArray) -> RawPrediction:
        """Return what an `Answer` says at positions."""
        last_place = max(len(answer.rows) - 1, 0)
        places = np.minimum(np.searchsorted(answer.rows, at), last_place)
        is_answered = len(answer.rows) > 0 and np.array_equal(answer.rows[places], at)
        if len(at) and not is_answered:
            name = type(last_step(self.estimator)).__name__
            raise ValueError(f"{name} has not answered at every row without a label.")

        def part(numbers: Any) -> Any:
            if numbers is None:
                return None
            return arrays.to_numpy(numbers)[places]

        scores = answer.scores
        if scores is None:
            scores = answer.p_values
        return self.reply(
            part(answer.values),
            status=answer.status[places],
            spreads=part(answer.standard_errors),
            probabilities=part(answer.probabilities),
            scores=part(scores),
            own_classes=answer.classes,
        )

    def _read_shares(self, shares: Array, own_classes: AnyArray) -> RawPrediction:
        """Return what scikit-learn's label propagation says; shares (m, c) may all be 0."""
        values = np.asarray(own_classes)[shares.argmax(axis=1)]
        reply = self.reply(values, probabilities=shares, own_classes=own_classes)
        no_label_reaches = ~(shares.sum(axis=1) > 0.0)
        return replace(reply, status=np.where(no_label_reaches, UNREACHED, reply.status))

    # ---- in terms of the problem's classes

    def codes(self, values: Any) -> AnyArray:
        """Return the number of each class as the estimator names it.

        It is -1 where it is none of the classes.
        """
        assert self.classes is not None
        values = np.asarray(values)
        if self.by_number:
            return values.astype(int)
        return class_codes(values, self.classes)

    def reply(
        self,
        values: Any,
        *,
        status: Any = "answered",
        spreads: Array | None = None,
        probabilities: Any = None,
        scores: Any = None,
        own_classes: Any = None,
    ) -> RawPrediction:
        """Return predictions in terms of the problem's classes.

        A class that the estimator did not see has probability 0 and the row's lowest score. Where a
        number is missing or infinite the status is "unreached".
        """
        # One number a row: the rest is computed on the host.
        values = np.asarray(arrays.to_numpy(values))
        status = np.broadcast_to(np.asarray(status, dtype="<U9"), values.shape[:1])
        if self.classes is None:
            return _reply_in_numbers(values, status, spreads)
        codes = self.codes(values)
        columns = np.arange(len(self.classes))
        if own_classes is not None:
            columns = self.codes(own_classes)
        probabilities = self.at_all_classes(probabilities, columns, absent=0.0)
        scores = self.at_all_classes(scores, columns, absent=None)
        is_good = codes >= 0
        for part in (probabilities, scores):
            if part is not None:
                is_good = is_good & ~np.isnan(part).any(axis=1)
        status = np.where(is_good, status, UNREACHED)
        return RawPrediction(codes, status, probabilities=probabilities, scores=scores)

    def at_all_classes(
        self, numbers: Any, columns: AnyArray, *, absent: float | None
    ) -> Array | None:
        """Return columns at their places among all classes.

        Where there is none, it is `absent`, or the row's lowest.
        """
        if numbers is None:
            return None
        assert self.classes is not None
        numbers = np.asarray(arrays.to_numpy(numbers), dtype=float)
        if numbers.ndim == 1:
            numbers = np.column_stack([-numbers, numbers])
        if numbers.shape[1] != len(columns):
            return None
        usual: Any = absent
        if absent is None:
            usual = numbers.min(axis=1, keepdims=True, initial=np.inf)
        wide = np.broadcast_to(usual, (len(numbers), len(self.classes))).astype(float)
        wide[:, columns] = numbers
        return wide


def _reply_in_numbers(values: AnyArray, status: AnyArray, spreads: Array | None) -> RawPrediction:
    if values.ndim > 1 and values.shape[1] > 1:
        raise ValueError(
            f"It answers with {values.shape[1]} columns of numbers where one is wanted."
        )
    numbers = values.ravel().astype(float)
    status = np.where(np.isfinite(numbers), status, UNREACHED)
    return RawPrediction(numbers, status, spreads=spreads)


def fit_and_predict(
    estimator: Any,
    problem: Problem,
    visible: AnyArray,
    rows: AnyArray,
    *,
    order: AnyArray | None = None,
    after: FittedEstimator | None = None,
) -> RawPrediction:
    """Fit a copy of an estimator to the visible labels, and return predictions at rows (m,).

    It goes on `after` one that was fitted to fewer, if it can.
    """
    one_class = problem.classes is not None and len(np.unique(problem.codes[visible])) == 1
    if one_class:
        model = DummyClassifier()
        transduces = False
    else:
        model = _copy_for(estimator, problem, order, after)
        transduces = is_transducer(estimator)
    start = time.perf_counter()
    with _dispatching(problem.X), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = _fit(model, problem, visible, order, transduces)
        prediction = _predict(fitted, problem, rows, transduces)
    notes = sorted({(note.category, str(note.message)) for note in caught}, key=str)
    seconds = time.perf_counter() - start
    return replace(prediction, fitted=fitted, seconds=seconds, notes=notes)


def _copy_for(
    estimator: Any, problem: Problem, order: AnyArray | None, after: FittedEstimator | None
) -> Any:
    """Return a copy that knows its task, and goes on where another ended, if it can."""
    copy = clone(estimator)
    last = last_step(copy)
    task = getattr(last, "task", None)
    if isinstance(task, str) and task == "auto":
        # It would guess the task from labels some of which are hidden.
        last.set_params(task=problem.task)
    if after is not None and len(after.order) == problem.n_rows and can_continue(copy):
        places = after.order
        if order is not None:
            places = np.argsort(order)[after.order]
        last.continue_from(last_step(after.estimator), places)
    return copy


def _fit(
    model: Any, problem: Problem, visible: AnyArray, order: AnyArray | None, transduces: bool
) -> FittedEstimator:
    """Fit to all rows, the visible ones with their labels, or to the visible rows alone."""
    visible_rows = problem.rows[visible]
    n = problem.n_rows
    fit_rows = visible_rows
    if transduces:
        fit_rows = np.arange(n) if order is None else order
    fitted = FittedEstimator(model, problem.classes, fit_rows, n)
    if fitted.pairwise and np.shape(problem.X) != (n, n):
        raise ValueError(
            "A precomputed kernel needs a square matrix of all rows; got shape "
            f"{np.shape(problem.X)}."
        )
    labels = problem.labels[visible]
    if transduces:
        y = problem.shown(visible)
        if fitted.by_number:
            y = np.full(n, -1)
            y[visible_rows] = problem.codes[visible]
        labels = y[fit_rows]
    if transduces and order is None:
        X = problem.X
    else:
        X = take_rows(problem.X, fit_rows, fit_rows if fitted.pairwise else None)
    model.fit(X, labels)
    return fitted


def _predict(
    fitted: FittedEstimator, problem: Problem, rows: AnyArray, transduces: bool
) -> RawPrediction:
    """Return a fitted estimator's predictions at rows of the table."""
    if not len(rows):
        return RawPrediction(problem.numbers[:0], np.empty(0, dtype="<U9"))
    # Of scikit-learn's semi-supervised estimators only some keep what they say of their own rows.
    has_shares = hasattr(last_step(fitted.estimator), "label_distributions_")
    if not transduces or (fitted.by_number and not has_shares):
        columns = fitted.order if fitted.pairwise else None
        return fitted.predict(take_rows(problem.X, rows, columns))
    # A graph may answer copies of a row differently, since of many equal distances it takes the
    # first few: then a copy's answer would depend on where the copy stood. Calibration and
    # unlabelled rows are treated alike here, in an order that was drawn at random, which is all
    # that a guarantee needs.
    places = np.argsort(fitted.order)[rows]
    return fitted.transduced(places[problem.first_copies(rows, places)])


def pass_on(notes: Iterable[tuple[type[Warning], str]], *, stacklevel: int = 3) -> None:
    """Warn again of what an estimator warned of.

    That its labels are too few for regions of its own is left out.
    """
    for category, message in notes:
        if not issubclass(category, TooFewLabelsWarning):
            warnings.warn(message, category, stacklevel=stacklevel)


def _dispatching(X: Rows) -> AbstractContextManager[None]:
    """Let a step of a pipeline put rows of numpy on a device.

    For rows that are there the user's own setting counts.
    """
    if arrays.is_foreign(X):
        return nullcontext()
    return arrays.dispatching()


def answer_of(prediction: RawPrediction, problem: Problem, guarantee: Guarantee) -> Answer:
    """Return predictions at all unlabelled rows as an `Answer`.

    It is the estimator's own, if it has one.
    """
    sample = problem.sample
    index = sample.index_at(sample.unlabelled)
    fitted = prediction.fitted
    answer = getattr(last_step(fitted.estimator), "answer_", None)
    if isinstance(answer, Answer):
        firsts = problem.first_copies(answer.rows, np.argsort(fitted.order)[answer.rows])
        return replace(answer.at(firsts), rows=answer.rows, index=index)
    values = prediction.values
    if problem.classes is not None:
        values = problem.classes[values.astype(int)]
    return Answer(
        rows=sample.unlabelled,
        values=values,
        status=prediction.status,
        guarantee=guarantee,
        standard_errors=prediction.spreads,
        probabilities=prediction.probabilities,
        scores=prediction.scores,
        classes=problem.classes,
        index=index,
    )
