"""All contact with scikit-learn's validation, so that methods see clean arrays only; and what all estimators share."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import _safe_indexing, check_array, check_consistent_length
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from transduce.core import arrays
from transduce.core.sample import PartlyLabelled, label_array, missing_mask
from transduce.core.types import AnyArray, Array, Mask

FEW_CLASSES = 20  # so few are quicker compared one after the other than looked up row by row
_INFINITE = "Input y contains infinity or a value too large for dtype('float64')"


def read_rows(
    estimator: Any, X: Any, *, reset: bool, sparse: bool = False, device: bool = False
) -> Any:
    """Return features (n, d) as a finite float array, or raise a ValueError that says what to correct."""
    if arrays.is_foreign(X) and not device:
        only, library = (
            f"{type(estimator).__name__} computes on the processor only",
            arrays.library_of(X),
        )
        raise ValueError(f"{only}: pass X as a numpy array, not as one of {library}.")
    if arrays.is_foreign(X):
        return validate_data(estimator, _read_foreign(X), reset=reset, skip_check_array=True)
    if _is_plain(X) and _has_shape(estimator, X, reset):
        return X
    if hasattr(X, "collect") and not hasattr(X, "shape"):
        raise ValueError("X is a lazy frame: call its collect() first.")
    dates = _columns(X, _is_date)
    if dates:
        how = "turn them into numbers first, for example days since a fixed day"
        raise ValueError(f"X must be numbers, but {dates} holds dates: {how}.")
    try:
        return validate_data(
            estimator, X, reset=reset, dtype=float, accept_sparse="csr" if sparse else False
        )
    except OverflowError as error:
        raise ValueError(
            "X holds a whole number that is too large for double precision: make it smaller."
        ) from error
    except (TypeError, ValueError) as error:
        reason = _explain(X, getattr(estimator, "kernel", None) == "precomputed")
        if reason:
            raise ValueError(reason) from error
        raise


def _is_plain(X: Any) -> bool:
    """Return whether features need no check that takes time: a numpy array of finite numbers in double precision."""
    if type(X) is not np.ndarray or X.dtype != np.float64 or X.ndim != 2 or 0 in X.shape:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.sum(X)))


def _has_shape(estimator: Any, X: Array, reset: bool) -> bool:
    """Return whether an array goes with what the estimator remembers, without names of features; it may be set anew."""
    if hasattr(estimator, "feature_names_in_"):
        return False
    if reset:
        estimator.n_features_in_ = X.shape[1]
    return getattr(estimator, "n_features_in_", None) == X.shape[1]


def _read_foreign(X: Any) -> Any:
    """Return features of another library than numpy as finite numbers in double precision, on their device."""
    arrays.check_dispatch(X)
    xp = arrays.namespace(X)
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead: give one line for each row."
        )
    if xp.isdtype(X.dtype, "complex floating"):
        raise ValueError("Complex data not supported: features must be real numbers.")
    if 0 in X.shape:
        raise ValueError(
            f"X has the shape {tuple(X.shape)}: give at least one row and one feature."
        )
    rows = xp.astype(X, xp.float64, copy=False)
    if not bool(xp.all(xp.isfinite(rows))):
        what = "NaN" if bool(xp.any(xp.isnan(rows))) else "infinity"
        raise ValueError(f"Input X contains {what}: fill or drop these values first.")
    return rows


def _explain(X: Any, precomputed: bool) -> str | None:
    """Return one sentence for the usual faults of features, found by looking at them; None for others."""
    if sp.issparse(X) or len(np.shape(X)) != 2:
        return None
    text = _columns(X, _is_text)
    if text:
        encoders = "sklearn.preprocessing.OneHotEncoder or skrub.TableVectorizer"
        return f"X must be numbers, but {text} holds text: encode it first, for example with {encoders}."
    for what, bad in (("NaN", pd.isna), ("infinity", _is_infinite)):
        where = _columns(X, lambda column, bad=bad: bool(np.any(bad(column))))
        if where and precomputed:
            return f"Input X contains {what}: a kernel matrix must be finite."
        if where:
            how = (
                "for example with sklearn.impute.SimpleImputer"
                if what == "NaN"
                else "or make them missing"
            )
            return f"Input X contains {what} in {where}: fill or drop these values first, {how}."
    return None


def _is_infinite(column: Any) -> Mask:
    """Return where numbers are infinite; a missing one is not."""
    values = pd.to_numeric(pd.Series(np.asarray(column).ravel()), errors="coerce").to_numpy(
        dtype=float
    )
    return np.isinf(values)


def read_array(X: Any) -> Array:
    """Return any finite two-dimensional array as floats; for kernel values, whose columns vary in number."""
    return _read_foreign(X) if arrays.is_foreign(X) else check_array(X, dtype=np.float64)


def read_candidates(y: Any, n: int) -> Array:
    """Return one candidate label for each of `n` rows as finite numbers."""
    y = arrays.to_numpy(y)
    labels = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", ensure_min_samples=0)
    if labels.shape != (n,):
        raise ValueError(
            f"Give one candidate label for each of the {n} rows; got shape {labels.shape}."
        )
    return labels


def _is_text(column: Any) -> bool:
    """Return whether some cell is text that is not a number."""
    values = np.asarray(column)
    if values.dtype.kind in "biufc":
        return False
    try:
        np.asarray(
            [value for value in values.ravel().tolist() if isinstance(value, str)], dtype=float
        )
    except ValueError:
        return True
    return False


def _is_date(column: AnyArray) -> bool:
    kind, first = column.dtype.kind, next(iter(column), None)
    return kind in "Mm" or (kind == "O" and isinstance(first, datetime.date))


def _columns(X: Any, is_bad: Any) -> str:
    """Return the bad columns in words: by name if they have one, else by position; "" if there are none."""
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


def read_sample(
    estimator: Any, X: Any, y: Any, *, columns: bool = False, device: bool = False
) -> PartlyLabelled:
    """Return rows and labels, checked; at least one row has a label. Shapes: X (n, d)."""
    check_given(estimator, y)
    rows = read_rows(estimator, X, reset=True, device=device)
    index = getattr(X, "index", None)
    return read_labels(rows, index, y, missing_label=estimator.missing_label, columns=columns)


def check_given(estimator: Any, y: Any) -> None:
    """Drop what the estimator answered before; raise a ValueError if there are no labels."""
    estimator._forget()
    if y is None:
        said = f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        raise ValueError(
            f"{said}: give one label for each row, NaN or None where the answer is wanted."
        )


def read_labels(
    rows: Array, index: Any, y: Any, *, missing_label: object = None, columns: bool = False
) -> PartlyLabelled:
    """Return labels of rows that have been read, checked; at least one row has a label. Shapes: rows (n, d)."""
    if len(getattr(y, "shape", ())) == 2 and y.shape[1] == 1 and not columns:
        said = "A column-vector y was passed when a 1d array was expected. Pass its only column instead."
        warnings.warn(said, DataConversionWarning, stacklevel=4)
    sample = PartlyLabelled.from_arrays(
        rows, y, missing_label=missing_label, index=index, columns=columns
    )
    if _is_shuffled(index, getattr(y, "index", None)):
        how = "align them first, for example with y.loc[X.index]"
        raise ValueError(f"X and y hold the same rows in a different order: {how}.")
    if missing_label is not None and sample.labelled.all():
        none = f"missing_label={missing_label!r} does not occur in y, so no row is unlabelled."
        warnings.warn(none, stacklevel=4)
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
    except OverflowError:
        raise ValueError(
            "The labels are too large for double precision: divide them by a constant first."
        ) from None
    except (TypeError, ValueError):
        text = next((label for label in labels.ravel() if _is_text([label])), labels.ravel()[0])
        what = f"Regression needs labels that are numbers, but y holds {text!r}"
        raise ValueError(f"{what}: convert them, or use a classifier.") from None
    largest = np.abs(numbers_).max()
    if not np.isfinite(largest):
        raise ValueError(
            f"{_INFINITE}: replace it by a number, or by NaN if the answer is wanted there."
        )
    if largest > 1e300:
        raise ValueError(
            "The labels are too large for double precision: divide them by a constant first."
        )
    return numbers_


def read_kernel_rows(X: Any, n: int, own: float | None, *, own_value: bool) -> Array:
    """Return kernel values of new rows with the n rows of `fit` and, as one more column, with themselves."""
    X = read_array(X)
    if X.shape[1] == n and (own is not None or not own_value):
        last = arrays.zeros((X.shape[0], 1), X) + (np.nan if own is None else own)
        return arrays.namespace(X).concat([X, last], axis=1)
    if X.shape[1] != n + 1:
        needs = "kernel='precomputed' needs the kernel values of each new row"
        others = f"with the {n} rows of fit and, as column {n + 1}, with itself (np.column_stack([K, own]))"
        raise ValueError(f"{needs} {others}; got {X.shape[1]} columns.")
    return X


def class_labels(sample: PartlyLabelled, known: Collection[Any] = ()) -> tuple[AnyArray, AnyArray]:
    """Return the classes, sorted, known ones among them, and the class number of each labelled row, shape (l,)."""
    labels = sample.y[sample.labelled]
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"{_INFINITE}: a class label must be finite.")
    if labels.dtype == object:
        is_text = [isinstance(label, str) for label in labels]
        if any(is_text) and not all(is_text):
            raise ValueError("y mixes text with other labels: make all class labels of one type.")
        labels = np.array(
            labels.tolist()
        )  # numbers among objects become numbers, text becomes text
    if labels.dtype.kind not in "biufU":
        said = f"Class labels must be text, numbers or booleans, but y holds {labels[0]!r}"
        raise ValueError(f"{said}: convert them, for example with astype(str).")
    with warnings.catch_warnings():  # one label a class is welcome
        warnings.filterwarnings("ignore", "The number of unique classes is greater")
        check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if set(known) - set(classes.tolist()):
        classes = np.array(sorted({*classes.tolist(), *known}))
        codes = class_codes(labels, classes)
    if len(classes) < 2:
        only = f"one class only ({classes[0].item()!r})"
        raise ValueError(f"The labelled rows hold {only}: at least two classes are needed.")
    return classes, codes


def class_codes(values: AnyArray, classes: AnyArray) -> AnyArray:
    """Return the number of each value among the classes; -1 where it is none of them."""
    if 0 < len(classes) <= FEW_CLASSES and values.dtype.kind == classes.dtype.kind != "O":
        return np.select([values == label for label in classes], range(len(classes)), -1)
    number = {label: code for code, label in enumerate(classes.tolist())}
    return np.array([number.get(value, -1) for value in values.tolist()], dtype=int)


class Transducer(BaseEstimator):
    """An estimator that is fitted once it has an answer."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "answer_")

    def _forget(self) -> None:
        """Drop all that was fitted, so that a fit that fails leaves nothing half-fitted."""
        for name in [
            name for name in vars(self) if name.endswith("_") and not name.startswith("_")
        ]:
            del self.__dict__[name]

    def _missing_label(self) -> Any:
        """Return what stands for "no label", besides NaN, None, NA and NaT."""
        return self.missing_label

    def _with_label(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return the rows and labels that can be scored."""
        labels = label_array(y, columns=True)
        check_consistent_length(X, labels)
        missing = missing_mask(labels, self._missing_label())
        known = np.flatnonzero(~(missing if missing.ndim == 1 else missing.any(axis=1)))
        return _safe_indexing(X, known), labels[known]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2 of numbers, or the share of right classes, at the rows (m, d) that have a label."""
        from sklearn.metrics import accuracy_score, r2_score  # half a second, which no fit needs

        rows, labels = self._with_label(X, y)
        answers = self.predict(rows)
        if self.answer_.classes is None:
            if len(labels) < 2:
                raise ValueError("R² compares errors with the spread of labels: give at least two.")
            try:
                numbers = labels.astype(float)
            except OverflowError:
                raise ValueError(
                    "The labels are too large for double precision: divide them by a constant first."
                ) from None
            return float(r2_score(numbers, answers, sample_weight=sample_weight))
        return float(
            accuracy_score(np.array(labels.tolist()), answers, sample_weight=sample_weight)
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = getattr(self, "kernel", None) == "precomputed"
        return tags


class NumberTransducer(RegressorMixin, Transducer):
    """A transducer whose labels are numbers."""

    score = Transducer.score


class ClassTransducer(ClassifierMixin, Transducer):
    """A transducer whose labels are classes."""

    score = Transducer.score
