"""A partly labelled sample: which rows carry a label, and of what kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier, is_regressor

from transduce.core import arrays, checks
from transduce.core.types import AnyArray, Array, KnownTask, Labels, Mask
from transduce.core.words import quoted


@dataclass(frozen=True, eq=False)
class PartlyLabelled:
    """Features of all rows, and the labels of some.

    Parameters
    ----------
    X : array of shape (n, d)
        Features, or a kernel matrix of shape (n, n).
    y : array of shape (n,)
        Labels; entries at unlabelled rows mean nothing.
    labelled : boolean array of shape (n,)
        True where the row carries a label. The other rows are unlabelled.
    source : object
        The labels as the user gave them; `complete` returns the same kind.
    index : pandas.Index or None
        Names of the rows, where the user's frame has them.

    Examples
    --------
    >>> import numpy as np
    >>> sample = PartlyLabelled.from_arrays(np.eye(3), [1.0, None, 3.0])
    >>> sample.unlabelled, sample.complete([2.0])
    (array([1]), array([1., 2., 3.]))
    """

    X: Array
    y: AnyArray
    labelled: Mask
    source: Any
    index: pd.Index | None = None

    @classmethod
    def from_arrays(
        cls,
        X: Array,
        y: Labels,
        *,
        missing_label: object = None,
        index: Any = None,
        columns: bool = False,
    ) -> PartlyLabelled:
        """Read labels that are missing at the unlabelled rows.

        A missing label is NaN, None, NA, NaT, or `missing_label`.

        With `columns` a row may have several labels, all of them or none. Rows are named as in `y`,
        or `index`.
        """
        if not getattr(X, "shape", ()):
            raise checks.WrongTypeError(
                f"X must be an array with one line for each row; got {quoted(X)}."
            )
        values = label_array(y, columns=columns)
        if not hasattr(X, "shape"):
            X = np.asarray(X)
        if not X.shape:
            raise ValueError(f"X must hold one line for each row; got {type(X).__name__}.")
        if len(values) != X.shape[0]:
            refusal = f"X has {X.shape[0]} rows but y has {len(values)} labels"
            raise ValueError(
                f"{refusal}: give one label for each row, NaN or None where the answer is wanted."
            )
        missing = missing_mask(values, missing_label)
        if missing.ndim == 1:
            labelled = ~missing
        else:
            labelled = ~np.asarray(missing.all(axis=1))
        if missing.ndim == 2 and np.any(missing.any(axis=1) == labelled):
            row = int(np.argmax(missing.any(axis=1) == labelled))
            refusal = f"Row {row} has some of its labels but not all"
            raise ValueError(
                f"{refusal}: a row needs all of them or none. Fit the columns one by one."
            )
        if isinstance(y, pd.Series | pd.DataFrame):
            index = y.index
        return cls(X, values, labelled, y, index if isinstance(index, pd.Index) else None)

    @property
    def unlabelled(self) -> AnyArray:
        """Positions of the rows without a label, ascending."""
        return np.flatnonzero(~self.labelled)

    def index_at(self, rows: AnyArray) -> pd.Index | None:
        """Return the index at some rows; None if the rows came without one."""
        if self.index is None:
            return None
        return self.index[rows]

    def complete(self, values: Any, known: Any = slice(None)) -> Any:
        """Return the user's labels with `values` at the unlabelled rows that are `known`."""
        if self.y.ndim == 1:
            labelled = self.labelled
        else:
            labelled = self.labelled[:, None]
        if arrays.is_foreign(values):
            labels = arrays.asarray_like(np.where(labelled, self.y, 0.0).astype(float), values)
            return arrays.replaced(labels, ~self.labelled, values)
        values = np.asarray(values)
        numbers = values.dtype.kind == "f"  # then all labels are; objects leave the type of y alone
        if numbers:
            filled = np.where(labelled, self.y, np.nan).astype(float, copy=False)
        else:
            filled = self.y.copy()
        filled[self.unlabelled[known]] = values[known]
        return _like(self.source, filled)


def label_array(y: Labels, *, columns: bool = False) -> AnyArray:
    """Return labels as an array (n,): numbers as they are, anything else as objects."""
    y = arrays.to_numpy(y)  # labels are few, and names of classes live nowhere else
    if isinstance(y, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(y)
        y = np.ma.getdata(y).astype(object)
        y[mask] = None
    array = _numbers_or_objects(y)
    if array.ndim == 2 and columns:
        return array
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(
            f"y should be a 1d array, one label for each row; got the shape {array.shape}."
        )
    return array


def _numbers_or_objects(y: Labels) -> AnyArray:
    """Return labels as an array of any shape: of numbers if all are, else of objects."""
    try:
        if hasattr(y, "to_numpy"):
            array = y.to_numpy()
        else:
            array = np.asarray(y)
    except ValueError as error:
        raise ValueError(
            "y holds lists of different lengths: give one label for each row, NaN or None where "
            "the answer is wanted."
        ) from error
    if array.dtype.kind == "f" and _is_not_float(y):
        # Integers and categories with gaps stay what they are.
        return np.array(list(y), dtype=object)
    if array.dtype.kind in "biufc":
        return array
    # Not by way of the text array: there a NaN among texts has become the text "nan".
    if isinstance(y, list | tuple):
        return np.array(y, dtype=object)
    return array.astype(object)


def _is_not_float(y: Labels) -> bool:
    """Return whether a series holds another type, which its array of floats has lost."""
    if isinstance(y, pd.Series):
        return not pd.api.types.is_float_dtype(y.dtype)
    return hasattr(y, "null_count") and hasattr(y, "dtype") and not y.dtype.is_float()


def missing_mask(values: AnyArray, missing_label: object = None) -> Mask:
    """Return where labels (n,) or (n, c) are missing.

    These are NaN, None, NA, NaT, or equal to `missing_label`.
    """
    missing = np.asarray(pd.isna(values), dtype=bool)
    if missing_label is not None:
        # 1 == True in Python, but a label 1 is not the label True.
        boolean = isinstance(missing_label, bool | np.bool_)
        missing[~missing] = [
            isinstance(value, bool | np.bool_) == boolean and bool(value == missing_label)
            for value in values[~missing]
        ]
    return missing


def _like(source: Any, filled: AnyArray) -> Any:
    """Return labels in the container of `source`.

    A series keeps its name, index and, if it can, its type.
    """
    if arrays.is_foreign(source) and filled.dtype.kind in "biuf":
        return arrays.asarray_like(filled, source)
    if isinstance(source, pd.DataFrame) and filled.ndim == 1:
        return pd.DataFrame({source.columns[0]: _like(source.iloc[:, 0], filled)})
    if isinstance(source, pd.DataFrame):
        return pd.DataFrame(filled, index=source.index, columns=source.columns)
    if isinstance(source, pd.Series):
        if filled.dtype.kind == "f":
            dtype = None
        else:
            dtype = source.dtype
        return pd.Series(filled, index=source.index, name=source.name, dtype=dtype)
    if type(source).__module__.partition(".")[0] != "polars":
        return filled
    if hasattr(source, "columns"):
        return type(source)(filled.reshape(len(filled), -1), schema=source.columns)
    if filled.dtype.kind == "f":
        dtype = None
    else:
        dtype = source.dtype
    return type(source)(source.name, filled.tolist(), dtype=dtype)


YES_OR_NO = ((0.0, 1.0), (-1.0, 1.0))  # numbers that spell two classes


def guess_task(sample: PartlyLabelled, estimators: Any = ()) -> KnownTask:
    """Return "regression" or "classification", by the estimators or else the labels."""
    # Nothing is counted: a reading that depends on how many different labels there happen to be
    # would void guarantees.
    for estimator in estimators:
        if is_classifier(estimator):
            return "classification"
        if is_regressor(estimator):
            return "regression"
    if sample.y.dtype.kind == "c":
        return "regression"  # refused there
    if isinstance(getattr(sample.source, "dtype", None), pd.CategoricalDtype):
        return "classification"
    try:
        numbers = sample.y[sample.labelled].astype(float)
    except (TypeError, ValueError, OverflowError):
        return "classification"
    if isinstance(sample.y[sample.labelled][0], bool | np.bool_):
        return "classification"
    if any(np.isin(numbers, pair).all() for pair in YES_OR_NO):
        return "classification"
    return "regression"


def decisive_label(numbers: Array) -> float | None:
    """Return the one label without which numbers would be read as classes, if any."""
    # With none or several such labels the reading is that of the sample completed with a further
    # row, unless that is the only other one: one row of l + 1, and 1 / (l + 1) is no more than what
    # a guarantee leaves out.
    others = [numbers[~np.isin(numbers, pair)] for pair in YES_OR_NO]
    return next((float(other[0]) for other in others if len(other) == 1), None)
