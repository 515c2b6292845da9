"""What the wrapper asks of any estimator: one fit that cannot tell hidden from unlabelled rows, and answers at both."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import _safe_indexing, get_tags

from transduce.core.answer import Answer
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.validation import class_codes
from transduce.model_selection.hidden_labels import BY_NUMBER, is_transducer, last_step


@dataclass(frozen=True, eq=False)
class Predictions:
    """What an estimator says at rows.

    Parameters
    ----------
    values : array of shape (u,)
        Numbers, or numbers of classes.
    status : array of shape (u,)
        The estimator's own word; "unreached" where it has no answer.
    spreads : array of shape (u,), optional
        Standard deviation of each label, by the estimator's own account.
    probabilities, scores : array of shape (u, n_classes), optional
    """

    values: AnyArray
    status: AnyArray
    spreads: Array | None = None
    probabilities: Array | None = None
    scores: Array | None = None

    @property
    def reached(self) -> Mask:
        """Where the estimator has an answer."""
        return self.status != "unreached"

    def at(self, places: AnyArray) -> Predictions:
        """Return the predictions at some of the rows."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        kept: dict[str, Any] = {name: None if part is None else part[places] for name, part in parts.items()}
        return Predictions(**kept)

    def marked(self) -> Predictions:
        """Return the predictions, "unreached" and with no value wherever a number is missing or infinite."""
        numbers = self.values.dtype.kind == "f"
        good = np.isfinite(self.values) if numbers else self.values >= 0
        for part in (self.probabilities, self.scores):
            good = good if part is None else good & ~np.isnan(part).any(axis=1)
        good &= self.status != "unreached"
        values = np.where(good, self.values, np.nan if numbers else -1)
        return replace(self, values=values, status=np.where(good, self.status, "unreached"))


def check_estimator_setting(estimator: Any) -> bool:
    """Return whether the estimator is a classifier; raise a TypeError unless it is one or a regressor."""
    if inspect.isclass(estimator):
        raise TypeError(
            f"estimator is the class {estimator.__name__}: pass an instance, {estimator.__name__}(...)."
        )
    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        raise TypeError(
            f"estimator must be a regressor or a classifier with fit and predict; got {estimator!r}."
        )
    if not is_classifier(estimator) and not is_regressor(estimator):
        if "task" in estimator.get_params(deep=False):
            raise TypeError(
                f"{type(estimator).__name__} does not say whether it answers numbers or classes: set its task to "
                "'regression' or 'classification'."
            )
        raise TypeError(
            f"{type(estimator).__name__} is neither a regressor nor a classifier, as its tags say: it has no answer to "
            "calibrate."
        )
    return bool(is_classifier(estimator))


def is_transductive(estimator: Any) -> bool:
    """Return whether an estimator takes all rows at once, some of them without a label, scikit-learn's own included."""
    return is_transducer(estimator) or isinstance(last_step(estimator), BY_NUMBER)


def take(X: Any, rows: AnyArray, columns: AnyArray | None = None) -> Any:
    """Return some rows (and, of kernel values, columns), with nothing left that says where they stood."""
    if not sparse.issparse(X) and not hasattr(X, "__getitem__"):
        X = np.asarray(X)
    part = X.tocsr()[rows] if sparse.issparse(X) else _safe_indexing(X, rows)
    if isinstance(part, pd.DataFrame | pd.Series):
        part = part.reset_index(drop=True)
    return part if columns is None else np.asarray(part)[:, columns]


class Masked:
    """An estimator fitted once, with calibration and unlabelled rows shuffled together among its rows without label.

    Parameters
    ----------
    estimator : estimator
        Cloned.
    X : array-like
        All rows, in the user's form.
    visible : integer array
        Positions of the rows whose label is shown.
    unlabelled : integer array
        Positions of the others, in random order.
    labels : array of shape (n_visible,)
        Numbers, or numbers of classes.
    classes : array or None
        The classes; None for numbers.
    transductive : bool
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        visible: AnyArray,
        unlabelled: AnyArray,
        labels: AnyArray,
        classes: AnyArray | None,
        *,
        transductive: bool,
    ) -> None:
        self.estimator = clone(estimator)
        self.classes = classes
        self.visible, self.unlabelled = visible, unlabelled
        self.pairwise = get_tags(estimator).input_tags.pairwise
        # Classes by their number for those whose "no label" is -1; all others get them by name.
        self.by_number = transductive and isinstance(last_step(estimator), BY_NUMBER)
        shown = labels if classes is None or self.by_number else classes[labels]
        self.order = np.concatenate([visible, unlabelled]) if transductive else visible
        n = len(visible) + len(unlabelled)
        if self.pairwise and np.shape(X) != (n, n):
            raise ValueError(
                f"A precomputed kernel needs a square matrix of all rows against all rows; got shape {np.shape(X)}."
            )
        rows = take(X, self.order, self.order if self.pairwise else None)
        if transductive:
            shown = self._with_holes(shown)
        with warnings.catch_warnings():
            # A confidence machine may lack labels for regions of its own, which nobody asked for.
            warnings.filterwarnings("ignore", message=".* supports? a confidence of at most")
            self.estimator.fit(rows, shown)
        if len(unlabelled):
            found = self._answers() if transductive else self._predictions(X)
            self.predictions = found.marked()
        else:
            kind = float if classes is None else int
            self.predictions = Predictions(np.empty(0, dtype=kind), np.empty(0, dtype="<U9"))

    def _with_holes(self, shown: AnyArray) -> AnyArray:
        n = len(self.order)
        if self.by_number:
            return np.append(shown, np.full(n - len(shown), -1))
        if self.classes is None:
            return np.append(shown.astype(float), np.full(n - len(shown), np.nan))
        holes = np.full(n, None, dtype=object)
        holes[: len(shown)] = shown.tolist()
        return holes

    # ------------------------------------------------------------------------------------ answers and predictions

    def _answers(self) -> Predictions:
        """Return what a transducer answers at the rows without label."""
        last, start = last_step(self.estimator), len(self.visible)
        answer = getattr(last, "answer_", None)
        status = np.full(len(self.unlabelled), "answered", dtype="<U9")
        if not isinstance(answer, Answer):
            if not hasattr(last, "transduction_"):
                raise TypeError(
                    f"{type(last).__name__} has no transduction_ after fit: pass transductive=False."
                )
            values = self._values(np.asarray(last.transduction_)[start:])
            spread_out = getattr(last, "label_distributions_", None)
            shares = None if spread_out is None else self.by_class(spread_out[start:])
            return Predictions(values, status, probabilities=shares)
        if not np.array_equal(answer.rows, np.arange(start, len(self.order))):
            raise ValueError(f"{type(last).__name__} has not answered at every row without a label.")
        values = self._values(answer.values)
        status = np.asarray(answer.status).astype("<U9")
        if self.classes is None:
            return Predictions(values, status, spreads=answer.standard_errors)
        scores = answer.scores if answer.scores is not None else answer.p_values
        return Predictions(
            values, status, probabilities=self.by_class(answer.probabilities), scores=self.by_class(scores)
        )

    def _predictions(self, X: Any) -> Predictions:
        """Return what a plain estimator predicts at the rows without label."""
        rows = take(X, self.unlabelled, self.visible if self.pairwise else None)
        status = np.full(len(self.unlabelled), "answered", dtype="<U9")
        if self.classes is None:
            if "return_std" in inspect.signature(last_step(self.estimator).predict).parameters:
                values, spreads = self.estimator.predict(rows, return_std=True)
                return Predictions(self._values(values), status, spreads=np.asarray(spreads, dtype=float))
            return Predictions(self._values(self.estimator.predict(rows)), status)
        values = self._values(self.estimator.predict(rows))
        probabilities = scores = None
        if hasattr(self.estimator, "predict_proba"):
            probabilities = self.by_class(self.estimator.predict_proba(rows))
        elif hasattr(self.estimator, "decision_function"):
            scores = self.by_class(self.estimator.decision_function(rows))
        return Predictions(values, status, probabilities=probabilities, scores=scores)

    def _values(self, values: Any) -> AnyArray:
        """Return numbers, or the number of each class, -1 for none of them."""
        values = np.asarray(values)
        if self.classes is None:
            return values.astype(float).reshape(len(values))
        if self.by_number:
            return values.astype(int)
        return self.numbers_of(values)

    def numbers_of(self, labels: Any) -> AnyArray:
        """Return the number of each class label, -1 where it is none of the classes."""
        assert self.classes is not None
        return class_codes(np.asarray(labels), self.classes)

    def by_class(self, columns: Any) -> Array | None:
        """Return one column for every class: 0, or the smallest score, for those that no visible row has."""
        if columns is None:
            return None
        columns = np.asarray(columns, dtype=float)
        if columns.ndim == 1:
            columns = columns[:, None] * np.array([[-1.0, 1.0]])
        return self.spread_out(columns)

    def spread_out(self, columns: Array) -> Array:
        """Return columns of the estimator's classes as columns of all classes."""
        assert self.classes is not None
        places = self._values(self.estimator.classes_)
        if len(places) == len(self.classes):
            return columns[:, np.argsort(places)]
        lowest = min(0.0, float(np.nanmin(columns, initial=0.0)))
        full = np.full((len(columns), len(self.classes)), lowest)
        full[:, places] = columns
        return full

    def new_rows(self, X: Any) -> Any:
        """Return rows given after the fit as the estimator takes them: kernel values in its own order."""
        if not self.pairwise:
            return X
        X = np.asarray(X)
        n = len(self.visible) + len(self.unlabelled)
        if X.ndim != 2 or X.shape[1] not in (n, n + 1):
            raise ValueError(
                f"A precomputed kernel needs the kernel values of each new row with the {n} rows of fit; got an array "
                f"of shape {X.shape}."
            )
        return np.column_stack([X[:, self.order], X[:, n:]]) if len(self.order) == n else X[:, self.order]
