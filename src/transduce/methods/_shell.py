"""All contact with scikit-learn's validation, so that the methods see clean arrays only."""

from __future__ import annotations

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


def read_rows(estimator: Any, X: Any, *, reset: bool) -> Array:
    """Return features as a finite float array, or raise a ValueError that says what to mend.

    Parameters
    ----------
    estimator : estimator
        Remembers the number and names of features if `reset`, else checks against them.
    X : array-like of shape (n, d)
    reset : bool

    Returns
    -------
    array of shape (n, d)
    """
    try:
        return validate_data(estimator, X, reset=reset, dtype=np.float64, accept_sparse=False)
    except ValueError as error:
        message = str(error)
        if "could not convert" in message or "Cannot convert" in message:
            raise ValueError(
                f"X must be numbers, but {_columns(X, _is_text)} hold text: encode them first, for "
                "example with sklearn.preprocessing.OneHotEncoder or skrub.TableVectorizer."
            ) from error
        if "contains NaN" in message or "contains infinity" in message:
            what, bad = ("NaN", np.isnan) if "contains NaN" in message else ("infinity", np.isinf)
            where = _columns(X, lambda column: bool(bad(np.asarray(column, dtype=float)).any()))
            raise ValueError(
                f"Input X contains {what} in {where}: fill or drop these values first, for example "
                "with sklearn.impute.SimpleImputer."
            ) from error
        raise


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


def _columns(X: Any, is_bad: Any) -> str:
    """Return the bad columns in words: by name if they have one, else by position."""
    frame = pd.DataFrame(np.asarray(X))
    names = list(getattr(X, "columns", frame.columns))
    bad = [repr(name) for i, name in enumerate(names) if is_bad(frame[i])]
    shown = ", ".join(bad[:5]) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")
    return f"column{'s' * (len(bad) != 1)} {shown}"


def read_sample(estimator: Any, X: Any, y: Any) -> PartlyLabelled:
    """Return rows and labels, checked; at least one row has a label.

    Parameters
    ----------
    estimator : estimator
        Its ``missing_label`` says what stands for "no label" besides NaN and its kin.
    X : array-like of shape (n, d)
    y : sequence of length n

    Returns
    -------
    PartlyLabelled
    """
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: give one "
            "label for each row, missing (NaN or None) where the answer is wanted."
        )
    rows = read_rows(estimator, X, reset=True)
    if len(getattr(y, "shape", ())) == 2:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Pass y.ravel() instead.",
            DataConversionWarning,
            stacklevel=3,
        )
    sample = PartlyLabelled.from_arrays(
        rows, y, missing_label=estimator.missing_label, index=getattr(X, "index", None)
    )
    if not sample.labelled.any():
        raise ValueError("No row has a label: at least one is needed to answer at the others.")
    return sample


def numeric_labels(sample: PartlyLabelled) -> Array:
    """Return the labels of the labelled rows as finite numbers, shape (l,)."""
    labels = sample.y[sample.labelled]
    if labels.dtype.kind == "c":
        raise ValueError("Complex data not supported: labels must be real numbers.")
    try:
        numbers_ = labels.astype(float)
    except (TypeError, ValueError):
        raise ValueError(
            f"Regression needs labels that are numbers, but y holds {labels[_first_text(labels)]!r}: "
            "convert them, or use a classifier."
        ) from None
    if not np.isfinite(numbers_).all():
        raise ValueError(
            "Input y contains infinity or a value too large for dtype('float64'): replace it by a "
            "number, or by NaN if the answer is wanted there."
        )
    return numbers_


def _first_text(labels: AnyArray) -> int:
    return next((i for i, label in enumerate(labels) if _is_text([label])), 0)


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
    check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"The labelled rows hold one class only ({classes[0]!r}): at least two classes are needed."
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
        scaled *= 1.0 / self.scale
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


def check_positive(name: str, value: Any) -> float:
    """Return a setting as a float, or raise a ValueError unless it is a positive finite number."""
    ok = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not ok or not np.isfinite(float(value)) or not float(value) > 0.0:
        raise ValueError(f"{name} must be a positive number; got {value!r}.")
    return float(value)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise a ValueError unless a setting is one of the choices."""
    if value not in choices:
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
    "check_is_fitted",
    "check_positive",
    "check_square",
    "class_labels",
    "numeric_labels",
    "read_array",
    "read_candidates",
    "read_rows",
    "read_sample",
]
