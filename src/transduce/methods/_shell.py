"""All contact with scikit-learn's validation, so that the methods see clean arrays only."""

from __future__ import annotations

import datetime
import numbers
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from transduce._typing import AnyArray, Array, Mask
from transduce.sample import PartlyLabelled


def read_rows(estimator: Any, X: Any, *, reset: bool, sparse: bool = False) -> Any:
    """Return features as a finite float array, or raise a ValueError that says what to mend.

    Parameters
    ----------
    estimator : estimator
        Remembers the number and names of features if `reset`, else checks against them.
    X : array-like of shape (n, d)
    reset : bool
    sparse : bool, default=False
        Whether a sparse matrix is welcome; it comes back in compressed sparse rows.

    Returns
    -------
    array of shape (n, d)
    """
    if hasattr(X, "collect") and not hasattr(X, "shape"):
        raise ValueError("X is a lazy frame: call its collect() first.")
    dates = _columns(X, _is_date)
    if dates:
        raise ValueError(
            f"X must be numbers, but {dates} holds dates: turn them into numbers first, for example days since a "
            "fixed day."
        )
    try:
        return validate_data(
            estimator, X, reset=reset, dtype=np.float64, accept_sparse="csr" if sparse else False
        )
    except (TypeError, ValueError) as error:
        reason = _explain(X, str(error), getattr(estimator, "kernel", None) == "precomputed")
        if reason:
            raise ValueError(reason) from error
        raise


def _explain(X: Any, message: str, precomputed: bool) -> str | None:
    """Return one sentence for the usual faults of features; None for others."""
    if "could not convert" in message or "Cannot convert" in message:
        return (
            f"X must be numbers, but {_columns(X, _is_text) or 'it'} holds text: encode it first, for example with "
            "sklearn.preprocessing.OneHotEncoder or skrub.TableVectorizer."
        )
    for what, bad in (("NaN", pd.isna), ("infinity", np.isinf)):
        if f"contains {what}" in message or (what == "NaN" and "NAType" in message):
            if precomputed:
                return f"Input X contains {what}: a kernel matrix must be finite."
            where = _columns(X, lambda column, bad=bad: bool(np.any(bad(column))))
            how = "for example with sklearn.impute.SimpleImputer" if what == "NaN" else "or make them missing"
            return f"Input X contains {what} in {where}: fill or drop these values first, {how}."
    return None


def read_array(X: Any) -> Array:
    """Return any finite two-dimensional array as floats; for kernel values, whose columns vary in number."""
    return check_array(X, dtype=np.float64)


def read_candidates(y: Any, n: int) -> Array:
    """Return one candidate label for each of `n` rows as finite numbers."""
    labels = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", ensure_min_samples=0)
    if labels.shape != (n,):
        raise ValueError(f"Give one candidate label for each of the {n} rows; got shape {labels.shape}.")
    return labels


def _is_text(column: Any) -> bool:
    try:
        np.asarray(column, dtype=float)
    except (TypeError, ValueError):
        return True
    return False


def _is_date(column: Any) -> bool:
    kind = getattr(getattr(column, "dtype", None), "kind", "")
    return kind in ("M", "m") or (
        kind == "O" and isinstance(column[0] if len(column) else None, datetime.date)
    )


def _columns(X: Any, is_bad: Any) -> str:
    """Return the bad columns in words: by name if they have one, else by position; nothing if there is none."""
    if hasattr(X, "columns") and hasattr(X, "shape"):
        columns = X.items() if hasattr(X, "items") else ((name, X[name]) for name in X.columns)
        arrays = [(name, np.asarray(column)) for name, column in columns]
    else:
        array = np.asarray(X)
        if array.ndim != 2 or (array.dtype.kind in "biuf" and is_bad is _is_date):
            return ""
        arrays = list(enumerate(array.T))
    bad = [repr(name) for name, column in arrays if is_bad(column)]
    shown = ", ".join(bad[:5]) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")
    return f"column{'s' * (len(bad) != 1)} {shown}" if bad else ""


def read_sample(estimator: Any, X: Any, y: Any, *, columns: bool = False) -> PartlyLabelled:
    """Return rows and labels, checked; at least one row has a label.

    Parameters
    ----------
    estimator : estimator
        Its ``missing_label`` says what stands for "no label" besides NaN and its kin.
    X : array-like of shape (n, d)
    y : sequence of length n
    columns : bool, default=False
        Whether labels may have several columns.

    Returns
    -------
    PartlyLabelled
    """
    check_given(estimator, y)
    rows = read_rows(estimator, X, reset=True)
    return read_labels(estimator, rows, getattr(X, "index", None), y, columns=columns)


def check_given(estimator: Any, y: Any) -> None:
    """Drop what the estimator answered before; raise a ValueError if there are no labels."""
    estimator._forget()
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: give one "
            "label for each row, missing (NaN or None) where the answer is wanted."
        )


def read_labels(estimator: Any, rows: Array, index: Any, y: Any, *, columns: bool = False) -> PartlyLabelled:
    """Return labels of rows that have been read, checked; at least one row has a label.

    Parameters
    ----------
    estimator : estimator
        Its ``missing_label`` says what stands for "no label" besides NaN and its kin.
    rows : array of shape (n, d)
    index : object
        Names of the rows, if it is a pandas.Index.
    y : sequence of length n
    columns : bool, default=False
        Whether labels may have several columns.

    Returns
    -------
    PartlyLabelled
    """
    if len(getattr(y, "shape", ())) == 2 and y.shape[1] == 1 and not columns:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Pass its only column instead.",
            DataConversionWarning,
            stacklevel=4,
        )
    sample = PartlyLabelled.from_arrays(
        rows, y, missing_label=estimator.missing_label, index=index, columns=columns
    )
    if _is_shuffled(index, getattr(y, "index", None)):
        raise ValueError(
            "X and y hold the same rows in a different order: align them first, for example with y.loc[X.index]."
        )
    if estimator.missing_label is not None and sample.labelled.all():
        warnings.warn(
            f"missing_label={estimator.missing_label!r} does not occur in y, so no row is asked.",
            stacklevel=4,
        )
    if not sample.labelled.any():
        raise ValueError("No row has a label: at least one is needed to answer at the others.")
    return sample


def _is_shuffled(one: Any, other: Any) -> bool:
    """Return whether two indexes name the same rows, each once, in a different order."""
    if not isinstance(one, pd.Index) or not isinstance(other, pd.Index) or one.equals(other):
        return False
    return one.is_unique and len(one) == len(other) and bool(one.isin(other).all())


def numeric_labels(sample: PartlyLabelled) -> Array:
    """Return the labels of the labelled rows as finite numbers, shape (l,) or (l, c)."""
    labels = sample.y[sample.labelled]
    if labels.dtype.kind == "c":
        raise ValueError("Complex data not supported: labels must be real numbers.")
    try:
        numbers_ = labels.astype(float)
    except (TypeError, ValueError):
        raise ValueError(
            f"Regression needs labels that are numbers, but y holds {labels.ravel()[_first_text(labels)]!r}: "
            "convert them, or use a classifier."
        ) from None
    if not np.isfinite(numbers_).all():
        raise ValueError(
            "Input y contains infinity or a value too large for dtype('float64'): replace it by a "
            "number, or by NaN if the answer is wanted there."
        )
    if np.abs(numbers_).max() > 1e300:
        raise ValueError("The labels are too large for double precision: divide them by a constant first.")
    return numbers_


def label_moments(y_l: Array) -> tuple[Any, Any]:
    """Return mean and spread of labels (l,) or of every column of labels (l, c); of equal ones, that label and 1."""
    size = np.ptp(y_l, axis=0)
    equal = size == 0.0
    mean = np.where(equal, y_l[0], y_l.mean(axis=0))
    size = np.where(equal, 1.0, size)
    spread = size * np.sqrt(np.mean(((y_l - mean) / size) ** 2, axis=0))
    return mean[()], np.where(equal, 1.0, spread)[()]


def read_kernel_rows(X: Any, n: int, own: float | None, *, own_value: bool) -> Array:
    """Return kernel values of new rows with the n rows of `fit` and, as one more column, with themselves.

    The last column is `own` where it is left out, NaN if that is not known and, with `own_value` false, not needed.
    """
    X = read_array(X)
    if X.shape[1] == n and (own is not None or not own_value):
        return np.column_stack([X, np.full(len(X), np.nan if own is None else own)])
    if X.shape[1] != n + 1:
        raise ValueError(
            f"kernel='precomputed' needs the kernel values of each new row with the {n} rows of fit and, as "
            f"column {n + 1}, with itself (np.column_stack([K, own])); got {X.shape[1]} columns."
        )
    return X


def _first_text(labels: AnyArray) -> int:
    return next((i for i, label in enumerate(labels.ravel()) if _is_text([label])), 0)


def class_labels(sample: PartlyLabelled) -> tuple[AnyArray, AnyArray]:
    """Return the classes, sorted, and the class number of each labelled row, shape (l,)."""
    labels = sample.y[sample.labelled]
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(
            "Input y contains infinity or a value too large for dtype('float64'): a class label must "
            "be finite."
        )
    if labels.dtype == object:
        is_text = [isinstance(label, str) for label in labels]
        if any(is_text) and not all(is_text):
            raise ValueError("y mixes text with other labels: make all class labels of one type.")
        labels = np.array(labels.tolist())  # numbers among objects become numbers, text becomes text
    if labels.dtype.kind not in "biufU":
        raise ValueError(
            f"Class labels must be text, numbers or booleans, but y holds {labels[0]!r}: convert them, for example "
            "with astype(str)."
        )
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "The number of unique classes is greater"
        )  # one label a class is welcome
        check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"The labelled rows hold one class only ({classes[0].item()!r}): at least two classes are needed."
        )
    return classes, codes


@dataclass(frozen=True)
class Scaling:
    """Shift and scale of the features, from all rows; constant columns are dropped.

    Examples
    --------
    >>> import numpy as np
    >>> scaling, rows = Scaling.fit_apply(np.array([[0.0, 7.0], [2.0, 7.0]]))
    >>> rows
    array([[-1.],
           [ 1.]])
    >>> scaling.apply(np.array([[3.0, 8.0]]))
    array([[2.]])
    """

    keep: Mask
    mean: Array
    scale: Array

    @classmethod
    def fit_apply(cls, X: Array) -> tuple[Scaling, Array]:
        """Take mean and standard deviation (ddof 0) of every column that varies; return the scaled rows too."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean, scale = _moments(X)
        if not np.all(np.isfinite(scale) & (scale > 1e-150)):
            # Squares over- or underflow: divide each column by its largest entry first.
            size = np.maximum(np.abs(X).max(axis=0), np.finfo(float).tiny)
            mean, scale = (moment * size for moment in _moments(X / size))
        # Only a column of tiny spread can be constant; rounding of the mean cannot be told from spread.
        keep = np.ones(X.shape[1], dtype=bool)
        for column in np.flatnonzero(scale <= 1e-6 * np.abs(mean)):
            keep[column] = np.any(X[:, column] != X[0, column])
        scaling = cls(keep, mean[keep], scale[keep])
        return scaling, scaling.apply(X)

    def apply(self, X: Array) -> Array:
        """Return the scaled rows; one column of zeros if every column was constant."""
        if not self.keep.any():
            return np.zeros((len(X), 1))
        scaled = (X if self.keep.all() else X[:, self.keep]) - self.mean
        scaled /= self.scale
        return scaled


def _moments(rows: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation of the columns, block by block to spare memory."""
    n, d = rows.shape
    mean = np.full(n, 1.0 / n) @ rows
    total = np.zeros(d)
    size = max(256, 2**18 // d)
    for start in range(0, n, size):
        centred = rows[start : start + size] - mean
        total += np.einsum("ij,ij->j", centred, centred)
    return mean, np.sqrt(total / n)


def check_positive(name: str, value: Any, *, least: float = 0.0, most: float = np.inf) -> float:
    """Return a setting as a float, or raise a ValueError unless it is a positive finite number within bounds."""
    ok = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not ok or not np.isfinite(float(value)) or not float(value) > 0.0:
        raise ValueError(f"{name} must be a positive number; got {value!r}.")
    if not least <= float(value) <= most:
        raise ValueError(f"{name} must lie between {least:g} and {most:g}; got {value!r}.")
    return float(value)


def check_not_negative(name: str, value: Any, allowed: str) -> float:
    """Return a setting as a float, or raise a ValueError unless it is a number from 0 to infinity."""
    ok = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not ok or not float(value) >= 0.0:
        raise ValueError(f"{name} must be {allowed}; got {value!r}.")
    return float(value)


def check_whole(name: str, value: Any, *, least: int) -> None:
    """Raise a ValueError unless a setting is a whole number, no smaller than `least`."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or int(value) < least:
        raise ValueError(f"{name} must be a whole number from {least} on; got {value!r}.")


def check_jobs(value: Any) -> None:
    """Raise a ValueError unless `n_jobs` is None or a whole number other than 0."""
    if value is not None and (
        not isinstance(value, numbers.Integral) or isinstance(value, bool) or int(value) == 0
    ):
        raise ValueError(f"n_jobs must be None, a number of jobs, or -1 for one on each core; got {value!r}.")


def check_number(name: str, value: Any) -> None:
    """Raise a ValueError unless a setting is a finite number."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool) or not np.isfinite(float(value)):
        raise ValueError(f"{name} must be a number; got {value!r}.")


def check_flag(name: str, value: Any) -> None:
    """Raise a ValueError unless a setting is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {value!r}.")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise a ValueError unless a setting is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")


def check_confidence(value: Any) -> float:
    """Return a confidence level as a float, or raise a ValueError unless it lies between 0 and 1."""
    ok = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not ok or not 0.0 < float(value) < 1.0:
        raise ValueError(f"confidence must lie strictly between 0 and 1, for example 0.9; got {value!r}.")
    return float(value)


def check_square(K: Array) -> None:
    """Raise a ValueError unless a precomputed kernel matrix is square and symmetric."""
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(
            f"kernel='precomputed' needs a square matrix of all rows against all rows; got shape {K.shape}."
        )
    if not np.allclose(K, K.T, rtol=1e-8, atol=1e-8 * float(np.abs(K).max(initial=0.0))):
        raise ValueError(
            "kernel='precomputed' needs a symmetric matrix; (K + K.T) / 2 repairs rounding errors."
        )


__all__ = [
    "Scaling",
    "check_choice",
    "check_confidence",
    "check_flag",
    "check_is_fitted",
    "check_jobs",
    "check_not_negative",
    "check_number",
    "check_positive",
    "check_square",
    "check_whole",
    "class_labels",
    "label_moments",
    "numeric_labels",
    "read_array",
    "read_candidates",
    "read_kernel_rows",
    "read_labels",
    "read_rows",
    "read_sample",
]
