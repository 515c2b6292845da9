"""Numbers that were predicted elsewhere, without the labels, corrected by any estimator."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from transduce.core import arrays
from transduce.core.guarantee import Guarantee
from transduce.core.types import AnyArray, Array, ColumnName, Labels, Rows
from transduce.core.validation import LARGEST_LABEL, NumberTransducer, check_given, without_mask
from transduce.core.words import counted, quoted
from transduce.model_selection.estimator_kinds import check_member, last_step
from transduce.model_selection.fit_and_predict import answer_of, fit_and_predict, pass_on
from transduce.model_selection.problem import Problem, read_problem, read_table

SHOWN_ROWS = 3  # rows without a prediction that a message names
_GUARANTEE = Guarantee("none", reasons=("The estimator guarantees nothing.",))


def _inner_predicts(self: CorrectedPredictions) -> bool:
    return hasattr(getattr(self, "estimator_", self.estimator), "predict")


@dataclass(eq=False, repr=False)
class CorrectedPredictions(NumberTransducer):
    """Correct numbers that were predicted elsewhere, without the labels, by any estimator.

    The estimator is fitted to the labels minus the predictions, which are then added again. They
    stay a feature.

    Parameters
    ----------
    estimator : estimator
        A transducer of numbers, or any regressor or pipeline; it decides what stands for a missing
        label.
    predictions : hashable
        The column of X that holds the predicted numbers: its name, or its position if no column
        has that name.

    Attributes
    ----------
    transduction_, answer_
        Labels completed (n,); the estimator's `Answer`, with values and regions moved by the
        predictions. Standard errors and guarantee are the estimator's own.
    estimator_ : estimator
        Fitted to what the predictions leave of the labels.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Predictions that saw no label are known at all rows alike. So what an estimator, or a
    `ConformalTransducer` around this one, guarantees of labels minus predictions, it guarantees of
    the labels. Put a pipeline inside, since a step before this one may change the column.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyRegressor
    >>> from transduce.model_selection import CorrectedPredictions
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])  # what a language model answered
    >>> y = [1.5, 2.5, None, None]
    >>> CorrectedPredictions(DummyRegressor(), predictions=0).fit(X, y).transduction_
    array([1.5, 2.5, 3.5, 4.5])
    """

    estimator: Any
    _: KW_ONLY
    predictions: ColumnName

    def fit(self, X: Rows, y: Labels) -> Self:
        """Fit the estimator to labels minus predictions, and predict missing labels.

        Shapes: X (n, d), y (n,).
        """
        check_given(self, y)
        check_member("estimator", self.estimator)
        if is_classifier(self.estimator):
            raise refusal_of_classes()
        problem = read_problem(X, y, task="regression", estimators=[self.estimator])
        predictions = read_predictions(problem.X, self.predictions)
        validate_data(self, problem.X, reset=True, skip_check_array=True)
        problem = less_predictions(problem, predictions)
        sample = problem.sample
        every_label = np.arange(len(problem.labels))
        reply = fit_and_predict(self.estimator, problem, every_label, sample.unlabelled)
        pass_on(reply.notes)
        self._fit = reply.fitted
        self.estimator_ = reply.fitted.estimator
        answer = answer_of(reply, problem, _GUARANTEE)
        self.answer_ = answer.shifted(predictions[answer.rows])
        answered = np.asarray(self.answer_.status != "unreached")
        values = arrays.to_numpy(self.answer_.values)
        self.transduction_ = sample.complete(values, answered)
        return self

    @available_if(_inner_predicts)
    def predict(self, X: Rows, return_std: bool = False) -> Any:
        """Return corrected predictions at rows, without transducing again.

        With `return_std` the estimator's standard errors too; NaN if it has none. Shapes: X (m, d),
        predictions and standard errors (m,).
        """
        check_is_fitted(self)
        table = read_table(X)
        validate_data(self, table, reset=False, skip_check_array=True)
        predictions = read_predictions(table, self.predictions)
        reply = self._fit.predict(table, spreads=return_std)
        values = reply.values + predictions
        if not return_std:
            return values
        if reply.spreads is None:
            return values, np.full(len(values), np.nan)
        return values, reply.spreads

    @property
    def missing_label(self) -> Any:
        """What stands for a missing label, besides NaN, None, NA and NaT: the estimator's."""
        return getattr(last_step(self.estimator), "missing_label", None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "get_params") and not isinstance(self.estimator, type):
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def refusal_of_classes() -> ValueError:
    """Return why predicted classes are not corrected here."""
    return ValueError(
        "predictions are subtracted from labels, which must be numbers: predicted classes may stay "
        "a feature, and fill(predictions=...) corrects them."
    )


def less_predictions(problem: Problem, predictions: Array) -> Problem:
    """Return a problem of numbers with labels less the predictions (n,) of their rows."""
    if problem.classes is not None:
        raise refusal_of_classes()
    if problem.pairwise:
        raise ValueError(
            "predictions is a column of features, and a precomputed kernel has none: subtract the "
            "predictions from y yourself, and add them again."
        )
    return replace(problem, labels=problem.labels - predictions[problem.rows])


def read_predictions(X: Rows, column: ColumnName) -> Array:
    """Return the predicted number at each row (n,), from a column of X.

    A ValueError says which rows have none, or that there is no such column.
    """
    values = _column(X, _place(X, column))
    missing = np.flatnonzero(~(np.abs(values) <= LARGEST_LABEL))
    if len(missing):
        first = ", ".join(f"{row:,}" for row in missing[:SHOWN_ROWS])
        raise ValueError(
            f"Column {quoted(column)} of X has no usable number (it is missing, NaN, infinite or "
            f"too large) at {counted(len(missing), 'row')}, counted from 0: {first}"
            f"{', …' * (len(missing) > SHOWN_ROWS)}. Every row needs one to be corrected: add "
            "them, or leave out predictions, and the column is a feature."
        )
    return values


def _place(X: Rows, column: ColumnName) -> int:
    """Return the position of a column that is given by its name or its position."""
    names = list(X.columns) if hasattr(X, "columns") else []
    if names and isinstance(column, Hashable) and column in names:
        return names.index(column)
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    if len(shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(shape)}D array instead. Reshape your data: one line for "
            "each row."
        )
    n_columns = int(shape[1])
    if n_columns == 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={tuple(shape)}) while a minimum of 1 is "
            "required: the column of predictions."
        )
    if isinstance(column, int | np.integer) and not isinstance(column, bool):
        position = int(column)
        if -n_columns <= position < n_columns:
            return position % n_columns
    known = f"it has {counted(n_columns, 'column')}"
    if names:
        shown = ", ".join(quoted(name) for name in names[:5])
        known = f"its columns are {shown}{', …' * (len(names) > 5)}"
    raise ValueError(
        f"predictions={quoted(column)} is no column of X: {known}. Give the name of one, or its "
        "position, counted from 0."
    )


def _column(X: Rows, place: int) -> Array:
    """Return a column (n,) as numbers, NaN where a cell is none."""
    if arrays.is_foreign(X):
        numbers = arrays.to_numpy(arrays.pick_columns(X, np.array([place])))
        return np.asarray(numbers, dtype=float).ravel()
    if isinstance(X, np.ma.MaskedArray):
        X = without_mask(X)
    if isinstance(X, list | tuple):
        X = np.asarray(X)
    column: Any = _safe_indexing(X, [place], axis=1)
    if sparse.issparse(column):
        column = column.toarray()
    return _as_numbers(np.asarray(column).ravel())


def _as_numbers(cells: AnyArray) -> Array:
    """Return cells (n,) as numbers, NaN where one is no number."""
    if cells.dtype.kind in "biuf":
        return cells.astype(float)
    if cells.dtype.kind in "mM":
        return np.full(len(cells), np.nan)
    try:
        return cells.astype(float)
    except (TypeError, ValueError, OverflowError):
        return np.array([_as_number(cell) for cell in cells.tolist()], dtype=float)


def _as_number(cell: Any) -> float:
    """Return a cell as a number, NaN if it is empty or a text; a TypeError says what else it is."""
    if cell is None or cell is pd.NA or cell is pd.NaT:
        return np.nan
    try:
        return float(cell)
    except (ValueError, OverflowError):
        return np.nan
