"""`ask`, the one adapter to any estimator: hide labels, fit, and read answers at rows whose labels it may not see."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.validation import _num_samples

from transduce.core import arrays, checks, validation
from transduce.core.answer import Answer
from transduce.core.guarantee import Guarantee, TooFewLabelsWarning
from transduce.core.row_order import (
    are_rows_in_order,
    content_order,
    number_rows,
    number_rows_of_kernel,
    places_in,
)
from transduce.core.sample import PartlyLabelled, guess_task
from transduce.core.scaling import label_moments
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.validation import Transducer, class_codes
from transduce.core.words import TASKS, quoted
from transduce.model_selection.methods import Case

UNREACHED = "unreached"
PARTS = (
    "values",
    "status",
    "spreads",
    "probabilities",
    "scores",
)  # of a reply, one line for each row


@dataclass(frozen=True, eq=False)
class Problem:
    """A table in the user's own container, and its labels, ready to be hidden in part."""

    X: Any  # (n, d) features as given; estimators check them
    sample: PartlyLabelled  # which rows are labelled; it has no features
    labels: AnyArray  # (l,) labels of the labelled rows: numbers, or classes
    classes: AnyArray | None  # (n_classes,) the classes, sorted; None if labels are numbers
    codes: AnyArray  # (l,) class of each labelled row; empty if labels are numbers
    rows: AnyArray  # (l,) positions of the labelled rows in the table
    pairwise: bool = False  # whether features are kernel values of all rows
    ordered: bool = False  # whether rows are in the order from which they are drawn

    @classmethod
    def of(cls, X: Any, sample: PartlyLabelled, task: str, known: Collection[Any] = ()) -> Problem:
        """Read labels as numbers or as classes; those that are known may be more than have a label."""
        rows = np.flatnonzero(sample.labelled)
        if task == "regression":
            return cls(
                X, sample, validation.numeric_labels(sample), None, np.empty(0, dtype=int), rows
            )
        classes, codes = validation.class_labels(sample, known)
        return cls(X, sample, classes[codes], classes, codes, rows)

    @property
    def task(self) -> str:
        """Return "regression" or "classification"."""
        return "regression" if self.classes is None else "classification"

    @property
    def class_sizes(self) -> tuple[int, ...]:
        """How many labels each class has."""
        n_classes = 0 if self.classes is None else len(self.classes)
        return tuple(np.bincount(self.codes, minlength=n_classes).tolist())

    @property
    def n_rows(self) -> int:
        """Number of rows of the table."""
        return len(self.sample.labelled)

    def case(self, *, standardize: bool, random_state: int, device: str | None = None) -> Case:
        """Return what methods are to be made for."""
        size = self.n_rows, len(self.labels), self.X.shape[1] if hasattr(self.X, "shape") else 0
        n_classes = 0 if self.classes is None else len(self.classes)
        return Case(self.task, *size, n_classes, standardize, random_state, device)

    @property
    def numbers(self) -> AnyArray:
        """Labels of the labelled rows as numbers: themselves, or the numbers of their classes."""
        return self.labels if self.classes is None else self.codes

    def shown(self, visible: AnyArray) -> AnyArray:
        """Return a label for every row of the table: missing, except at the visible ones of the labelled rows."""
        y = (
            np.full(self.n_rows, np.nan)
            if self.classes is None
            else np.full(self.n_rows, None, dtype=object)
        )
        y[self.rows[visible]] = self.labels[visible].tolist()
        return y

    def prior(self, visible: AnyArray) -> Array:
        """Return what is known without features: the mean label, shape (1,), or the share of each class."""
        if self.classes is None:
            return np.array([label_moments(self.labels[visible])[0]])
        return np.bincount(self.codes[visible], minlength=len(self.classes)) / len(visible)

    def filled(self, answers: Array, given: Mask, visible: AnyArray) -> Array:
        """Return answers (k, m) or (k, m, n_classes) with what is known without features where none was given."""
        if self.classes is None:
            return np.where(given, answers, self.prior(visible)[0])
        return np.where(given[..., None], answers, self.prior(visible))

    @cached_property
    def row_numbers(self) -> AnyArray:
        """A number for each row (n,) that depends on features alone; copies share it."""
        if self.pairwise:
            return number_rows_of_kernel(self.X)
        return number_rows(self.X)

    @cached_property
    def places(self) -> AnyArray:
        """Where each row (n,) is in the order that contents decide; its label tells copies apart."""
        if self.ordered:
            return np.arange(self.n_rows)
        labels = np.full(self.n_rows, np.nan)
        labels[self.rows] = self.numbers
        return places_in(content_order(self.row_numbers, labels))

    def by_content(self, rows: AnyArray) -> AnyArray:
        """Return positions (m,) in the order that contents decide: what is drawn is drawn from it."""
        return rows[np.argsort(self.places[rows])]

    @cached_property
    def copies(self) -> AnyArray | None:
        """A number for each row (n,) that rows with the same features share; None if all differ, or are no array."""
        if type(self.X) is not np.ndarray or self.X.ndim != 2 or self.X.dtype.kind != "f":
            return None
        if self.pairwise:
            return None
        values, numbers = np.unique(self.row_numbers, return_inverse=True)
        return None if len(values) == len(numbers) else numbers

    def first_copies(self, rows: AnyArray, places: AnyArray) -> AnyArray:
        """Return, for each of some rows (m,), which of them is the copy of it with the smallest place (m,)."""
        own = np.arange(len(rows))
        if self.copies is None or not len(rows):
            return own
        codes = self.copies[rows]
        by_place = np.lexsort((places, codes))
        starts = np.append(True, codes[by_place][1:] != codes[by_place][:-1])
        own[by_place] = np.repeat(
            by_place[starts], np.diff(np.append(np.flatnonzero(starts), len(rows)))
        )
        return own

    @property
    def truth(self) -> Array:
        """The labels, shape (l,), or 1 for the class of each and 0 for the others, shape (l, n_classes)."""
        return self.labels if self.classes is None else np.eye(len(self.classes))[self.codes]


def read_problem(
    X: Any,
    y: Any,
    *,
    task: str,
    estimators: Any = (),
    missing_label: Any = None,
    known: Collection[Any] = (),
) -> Problem:
    """Return table and labels; features stay as given, for the estimators to check. Shapes: X (n, d)."""
    for estimator in estimators:
        check_member("estimator", estimator)
    checks.check_choice("task", task, TASKS)
    if y is None:
        raise ValueError(
            "y is None: give a label for each row, missing (NaN or None) where it is wanted."
        )
    missing_label = own_missing_label(missing_label, estimators)
    X = read_table(X)
    rows, index = np.empty((_num_samples(X), 0)), getattr(X, "index", None)
    sample = validation.read_labels(rows, index, y, missing_label=missing_label)
    if task == "auto":
        task = guess_task(sample, estimators)
    problem = Problem.of(X, sample, task, known)
    pairwise = any(get_tags(estimator).input_tags.pairwise for estimator in estimators)
    return replace(problem, pairwise=pairwise, ordered=are_rows_in_order())


def read_table(X: Any) -> Any:
    """Return features as given if their rows can be picked, else as an array; estimators check the rest."""
    if arrays.is_foreign(X):
        arrays.check_dispatch(X)
        return X
    if hasattr(X, "collect") and not hasattr(X, "shape"):
        raise ValueError("X is a lazy frame: call its collect() first.")
    if isinstance(X, Mapping) and not hasattr(X, "shape"):
        raise TypeError("X must be a table, one line for each row; got a mapping: make it a frame.")
    table = indexable(X)[0]
    if isinstance(table, list) and not table:
        raise ValueError("X has no rows: give a line of features for each row of the table.")
    if getattr(getattr(table, "dtype", None), "kind", "") == "c":
        raise ValueError("Complex data not supported: features must be real numbers.")
    if len(getattr(table, "shape", (0, 0))) == 1 and np.asarray(table).dtype.kind in "biuf":
        raise ValueError(
            "Expected 2D array, got 1D array instead. Reshape your data: one line for each row."
        )
    return table


def take(X: Any, rows: AnyArray, columns: AnyArray | None = None) -> Any:
    """Return some rows (and, of kernel values, columns), with nothing left that says where they stood."""
    if arrays.is_foreign(X):
        part = arrays.pick(X, rows)
        return part if columns is None else arrays.pick_columns(part, columns)
    part = _safe_indexing(X, rows)
    if isinstance(part, pd.DataFrame | pd.Series):
        part = part.reset_index(drop=True)
    return part if columns is None else np.asarray(part)[:, columns]


# ------------------------------------------------------------------------------------------------- kinds of estimator


def check_member(name: str, estimator: Any) -> None:
    """Raise a ValueError unless this is an estimator, not its class, that can be fitted and predict."""
    if not all(hasattr(estimator, method) for method in ("fit", "get_params")):
        raise ValueError(
            f"{name} must be an estimator with fit and predict; got {quoted(estimator)}."
        )
    check_predicts(name, estimator)


def check_predicts(name: str, estimator: Any) -> None:
    """Raise a ValueError if this is a class, or an estimator that has no answer."""
    if isinstance(estimator, type):
        word = estimator.__name__
        raise ValueError(f"{name} is the class {word}: give an instance of it, {word}().")
    last = last_step(estimator)  # before the fit of a stack only the class says that it predicts
    if not (hasattr(last, "predict") or hasattr(type(last), "predict") or is_transducer(estimator)):
        said = f"{type(last).__name__} cannot predict: end it with a regressor or a classifier"
        raise ValueError(f"{name}: {said}.")


def name_members(what: str, estimators: Any) -> dict[str, Any]:
    """Return estimators by name, or raise a ValueError that says how to give them."""
    if isinstance(estimators, dict):
        pairs: list[tuple[Any, Any]] = list(estimators.items())
    elif isinstance(estimators, Iterable) and not (
        isinstance(estimators, str) or hasattr(estimators, "fit")
    ):
        pairs = [
            one if isinstance(one, tuple) and len(one) == 2 else (None, one) for one in estimators
        ]
    else:
        raise ValueError(
            f"{what} must be a dict or a list of estimators; got {quoted(estimators)}."
        )
    if not pairs:
        raise ValueError(
            f"{what} is empty: give at least one estimator, or None for the default ones."
        )
    named: dict[str, Any] = {}
    for name, estimator in pairs:
        check_member(f"{what}: {name!r}" if name is not None else what, estimator)
        if name is not None and (not isinstance(name, str) or name in named):
            raise ValueError(f"{what}: names must be text, each once; got {quoted(name)}.")
        named[unused_name(type(estimator).__name__, named) if name is None else name] = estimator
    return named


def unused_name(word: str, names: Collection[str]) -> str:
    """Return a name that is not among others, with a number if they have it already."""
    count = sum(other == word or other.startswith(f"{word}-") for other in names)
    return f"{word}-{count + 1}" if count else word


def last_step(estimator: Any) -> Any:
    """Return the estimator itself, or the end of a pipeline."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def _can_continue(estimator: Any) -> bool:
    """Return whether an estimator can begin where an earlier one ended: nothing that is fitted comes before it."""
    from sklearn.preprocessing import FunctionTransformer

    steps = [step for _, step in estimator.steps[:-1]] if isinstance(estimator, Pipeline) else []
    return hasattr(last_step(estimator), "continue_from") and {*map(type, steps)} <= {
        FunctionTransformer
    }


def _takes_numbers(last: Any) -> bool:
    """Return whether an estimator is a semi-supervised one of scikit-learn's, for which -1 means "no label"."""
    return any(kind.__module__.startswith("sklearn.semi_supervised") for kind in type(last).__mro__)


def is_transducer(estimator: Any) -> bool:
    """Return whether an estimator takes all rows at once, some without a label; scikit-learn's own included."""
    last = last_step(estimator)
    known = isinstance(last, Transducer) or _takes_numbers(last)
    return known or "missing_label" in getattr(last, "get_params", dict)()


def own_missing_label(missing_label: Any, estimators: Any) -> Any:
    """Return what stands for "no label": as given, else as the first estimator that has a word for it says."""
    own = [getattr(last_step(estimator), "missing_label", None) for estimator in estimators]
    return next((label for label in (missing_label, *own) if label is not None), None)


# ------------------------------------------------------------------------------------------------ question and answer


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
        return self.classes is not None and _takes_numbers(last_step(self.estimator))

    def own(self, X: Any) -> Any:
        """Return rows given after the fit as the estimator takes them: kernel values in its own order."""
        if not self.pairwise:
            return X
        X, n = np.asarray(arrays.to_numpy(X)), self.n_rows
        if X.ndim != 2 or X.shape[1] not in (n, n + 1):
            raise ValueError(
                f"A precomputed kernel needs the kernel values of each new row with the {n} rows of fit; got an array "
                f"of shape {X.shape}."
            )
        return (
            np.column_stack([X[:, self.order], X[:, n:]])
            if len(self.order) == n
            else X[:, self.order]
        )

    def predict(self, X: Any, *, spreads: bool = True, once: bool = False) -> Reply:
        """Return predictions at new rows, with all that it says about them; standard errors only with `spreads`."""
        # With `once` classes are those of the largest probability, where there are any, which saves half of the work.
        if not hasattr(self.estimator, "predict"):  # it can transduce only
            return self.unreached(_num_samples(X))
        with _dispatching(X):
            if self.classes is None:
                if (
                    spreads
                    and "return_std"
                    in inspect.signature(last_step(self.estimator).predict).parameters
                ):
                    values, errors = self.estimator.predict(X, return_std=True)
                    return self.reply(
                        values, spreads=np.asarray(arrays.to_numpy(errors), dtype=float)
                    )
                return self.reply(self.estimator.predict(X))
            own, probabilities, scores = self.estimator.classes_, None, None
            # New rows are answered as the rows of the fit are: by scores, where those have no more.
            answer = getattr(last_step(self.estimator), "answer_", None)
            by_scores = False
            if isinstance(answer, Answer):
                by_scores = answer.scores is not None and answer.probabilities is None
            if hasattr(self.estimator, "predict_proba") and not by_scores:
                probabilities = self.estimator.predict_proba(X)
            elif hasattr(self.estimator, "decision_function"):
                scores = self.estimator.decision_function(X)
            if once and probabilities is not None:
                values = np.asarray(own)[np.argmax(arrays.to_numpy(probabilities), axis=1)]
            else:
                values = self.estimator.predict(X)
            return self.reply(values, probabilities=probabilities, scores=scores, own=own)

    def unreached(self, n: int) -> Reply:
        """Return no answer at n rows."""
        return Reply(
            np.zeros(n, dtype=int if self.classes is not None else float), np.full(n, UNREACHED)
        )

    def answers(self, at: AnyArray) -> Reply:
        """Return what a transducer answers at positions among its own rows."""
        last = last_step(self.estimator)
        answer, shares = getattr(last, "answer_", None), getattr(last, "label_distributions_", None)
        if isinstance(answer, Answer):
            return self._read(answer, at)
        if not hasattr(last, "transduction_"):
            name = type(last).__name__
            raise TypeError(
                f"{name} has no transduction_ after fit: it must answer at rows without a label."
            )
        if shares is None:
            return self.reply(
                np.asarray(last.transduction_)[at], own=getattr(last, "classes_", None)
            )
        values = np.asarray(last.classes_)[shares[at].argmax(axis=1)]
        reply = self.reply(values, probabilities=shares[at], own=last.classes_)
        lost = ~(np.asarray(shares[at]).sum(axis=1) > 0.0)  # no label reaches these rows
        return replace(reply, status=np.where(lost, UNREACHED, reply.status))

    def _read(self, answer: Answer, at: AnyArray) -> Reply:
        """Return what an `Answer` says at positions."""
        places = np.minimum(np.searchsorted(answer.rows, at), max(len(answer.rows) - 1, 0))
        if len(at) and not (len(answer.rows) and np.array_equal(answer.rows[places], at)):
            name = type(last_step(self.estimator)).__name__
            raise ValueError(f"{name} has not answered at every row without a label.")

        def part(numbers: Any) -> Any:
            return None if numbers is None else arrays.to_numpy(numbers)[places]

        return self.reply(
            part(answer.values),
            status=answer.status[places],
            spreads=part(answer.standard_errors),
            probabilities=part(answer.probabilities),
            scores=part(answer.p_values if answer.scores is None else answer.scores),
            own=answer.classes,
        )

    def codes(self, values: Any) -> AnyArray:
        """Return the number of each class as the estimator names it, -1 where it is none of the classes."""
        assert self.classes is not None
        values = np.asarray(values)
        return values.astype(int) if self.by_number else class_codes(values, self.classes)

    def reply(
        self,
        values: Any,
        *,
        status: Any = "answered",
        spreads: Array | None = None,
        probabilities: Any = None,
        scores: Any = None,
        own: Any = None,
    ) -> Reply:
        """Return answers in terms of the problem's classes; `own` are the estimator's."""
        # A class that the estimator did not see has probability 0 and the row's lowest score. Where a number is missing
        # or infinite the status is "unreached".
        values = np.asarray(
            arrays.to_numpy(values)
        )  # one number a row: the rest is computed on the host
        status = np.broadcast_to(np.asarray(status, dtype="<U9"), values.shape[:1])
        if self.classes is None:
            if values.ndim > 1 and values.shape[1] > 1:
                raise ValueError(
                    f"It answers with {values.shape[1]} columns of numbers where one is wanted."
                )
            numbers = values.ravel().astype(float)
            return Reply(
                numbers, np.where(np.isfinite(numbers), status, UNREACHED), spreads=spreads
            )
        codes = self.codes(values)
        columns = np.arange(len(self.classes)) if own is None else self.codes(own)
        wide = self.spread(probabilities, columns, 0.0), self.spread(scores, columns, None)
        good = codes >= 0
        for part in wide:
            good = good if part is None else good & ~np.isnan(part).any(axis=1)
        return Reply(
            codes, np.where(good, status, UNREACHED), probabilities=wide[0], scores=wide[1]
        )

    def spread(self, numbers: Any, columns: AnyArray, absent: float | None) -> Array | None:
        """Return columns at their places among all classes; `absent`, or the row's lowest, where there is none."""
        if numbers is None:
            return None
        assert self.classes is not None
        numbers = np.asarray(arrays.to_numpy(numbers), dtype=float)
        if numbers.ndim == 1:
            numbers = np.column_stack([-numbers, numbers])
        if numbers.shape[1] != len(columns):
            return None
        lowest: Any = (
            numbers.min(axis=1, keepdims=True, initial=np.inf) if absent is None else absent
        )
        wide = np.broadcast_to(lowest, (len(numbers), len(self.classes))).astype(float)
        wide[:, columns] = numbers
        return wide


@dataclass(frozen=True, eq=False)
class Reply:
    """What an estimator answered at m rows."""

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
        """Return scores of the classes, shape (m, n_classes); 1 for the answer and 0 for others if that is all."""
        return np.eye(n_classes)[np.maximum(self.values, 0)] if self.scores is None else self.scores

    def at(self, places: AnyArray) -> Reply:
        """Return the answers at some of the rows."""
        parts: dict[str, Any] = {name: getattr(self, name) for name in PARTS}
        return replace(
            self, **{name: part[places] for name, part in parts.items() if part is not None}
        )


def ask(
    estimator: Any,
    problem: Problem,
    visible: AnyArray,
    rows: AnyArray,
    *,
    order: AnyArray | None = None,
    after: FittedEstimator | None = None,
) -> Reply:
    """Fit a copy of an estimator to the visible labels, `after` one to fewer if it can; return answers at rows (m,)."""
    transduces = is_transducer(estimator)
    if problem.classes is not None and len(np.unique(problem.codes[visible])) == 1:
        model, transduces = DummyClassifier(), False
    else:
        model = clone(estimator)
        last = last_step(model)
        if isinstance(getattr(last, "task", None), str) and last.task == "auto":
            last.set_params(
                task=problem.task
            )  # which it would guess from labels some of which are hidden
        if after is not None and len(after.order) == problem.n_rows and _can_continue(model):
            places = after.order if order is None else np.argsort(order)[after.order]
            last.continue_from(last_step(after.estimator), places)
    start = time.perf_counter()
    with _dispatching(problem.X), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = _fit(model, problem, visible, order, transduces)
        reply = _answers(fitted, problem, rows, transduces)
    notes = sorted({(note.category, str(note.message)) for note in caught}, key=str)
    return replace(reply, fitted=fitted, seconds=time.perf_counter() - start, notes=notes)


def pass_on(notes: Iterable[tuple[type[Warning], str]], *, stacklevel: int = 3) -> None:
    """Warn again of what an estimator warned of, except that its labels are too few for regions of its own."""
    for category, message in notes:
        if not issubclass(category, TooFewLabelsWarning):
            warnings.warn(message, category, stacklevel=stacklevel)


def _dispatching(X: Any) -> AbstractContextManager[None]:
    """Let a step of a pipeline put rows of numpy on a device; for rows that are there the user's own setting counts."""
    return nullcontext() if arrays.is_foreign(X) else arrays.dispatching()


def _fit(
    model: Any, problem: Problem, visible: AnyArray, order: AnyArray | None, transduces: bool
) -> FittedEstimator:
    """Fit to all rows, the visible ones with their labels, or to the visible rows alone."""
    own, n = problem.rows[visible], problem.n_rows
    every = np.arange(n) if order is None else order
    fitted = FittedEstimator(model, problem.classes, every if transduces else own, n)
    if fitted.pairwise and np.shape(problem.X) != (n, n):
        shape = np.shape(problem.X)
        raise ValueError(
            f"A precomputed kernel needs a square matrix of all rows; got shape {shape}."
        )
    labels = problem.labels[visible]
    if transduces:
        y = problem.shown(visible)
        if fitted.by_number:
            y = np.full(n, -1)
            y[own] = problem.codes[visible]
        labels = y[every]
    as_it_is = transduces and order is None
    X = (
        problem.X
        if as_it_is
        else take(problem.X, fitted.order, fitted.order if fitted.pairwise else None)
    )
    model.fit(X, labels)
    return fitted


def _answers(fitted: FittedEstimator, problem: Problem, rows: AnyArray, transduces: bool) -> Reply:
    """Return a fitted estimator's answers at rows of the table: as a transducer, or as it predicts."""
    if not len(rows):
        return Reply(problem.numbers[:0], np.empty(0, dtype="<U9"))
    predicts = fitted.by_number and not hasattr(last_step(fitted.estimator), "label_distributions_")
    if not transduces or predicts:
        return fitted.predict(take(problem.X, rows, fitted.order if fitted.pairwise else None))
    # A graph may answer copies of a row differently, since of many equal distances it takes the first few: then a
    # copy's answer would depend on where the copy stood. Calibration and unlabelled rows are treated alike here, in
    # an order that was drawn at random, which is all that a guarantee needs.
    places = np.argsort(fitted.order)[rows]
    return fitted.answers(places[problem.first_copies(rows, places)])


def answer_of(reply: Reply, problem: Problem, guarantee: Guarantee) -> Answer:
    """Return a reply at all unlabelled rows as an `Answer`: the estimator's own, if it has one."""
    sample = problem.sample
    index = None if sample.index is None else sample.index[sample.unlabelled]
    own = getattr(last_step(reply.fitted.estimator), "answer_", None)
    if isinstance(own, Answer):
        firsts = problem.first_copies(own.rows, np.argsort(reply.fitted.order)[own.rows])
        return replace(own.at(firsts), rows=own.rows, index=index)
    return Answer(
        rows=sample.unlabelled,
        values=reply.values
        if problem.classes is None
        else problem.classes[reply.values.astype(int)],
        status=reply.status,
        guarantee=guarantee,
        standard_errors=reply.spreads,
        probabilities=reply.probabilities,
        scores=reply.scores,
        classes=problem.classes,
        index=index,
    )
