"""All contact with scikit-learn's validation, and what all estimators share.

Methods see clean arrays only.
"""

from __future__ import annotations

import datetime
import math
import numbers
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import _safe_indexing, check_array, check_consistent_length
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from transduce.core import arrays
from transduce.core.checks import WrongTypeError
from transduce.core.sample import PartlyLabelled, label_array, missing_mask
from transduce.core.scaling import square_unit
from transduce.core.types import AnyArray, Array, ColumnName, Labels, Rows
from transduce.core.words import quoted

FEW_CLASSES = 20  # so few are quicker compared one after the other than looked up row by row
LONG_TEXT = 1000  # characters of a class label beyond which arrays of text take too much memory
LARGEST_FLOAT = int(np.finfo(float).max)
LARGEST_LABEL = 1e300
LARGEST_DENSE = 2**31  # bytes of an array that a sparse matrix is turned into
_TOO_LARGE = "The labels are too large for double precision: divide them by a constant first."
_TOO_FEW_TO_SCORE = {
    True: "R² compares errors with the spread of labels: give at least two.",
    False: "None of these rows has a label to compare a prediction with.",
}
_INSTEAD_OF_FOLDS = (
    "Where GridSearchCV or cross_val_score cut the rows into folds, use TransductiveSearchCV or "
    "cross_val_transduce of transduce.model_selection, which hide labels and keep all rows."
)
_INFINITE = "Input y contains infinity or a value too large for dtype('float64')"


def read_rows(
    estimator: Any,
    X: Rows,
    *,
    reset: bool,
    sparse: bool = False,
    device: bool = False,
) -> Any:
    """Return features (n, d) as a finite float array.

    Raise a ValueError that says what to correct if there is none.
    """
    if arrays.is_foreign(X) and not device:
        raise ValueError(
            f"{type(estimator).__name__} computes on the processor only: pass X as a numpy array, "
            f"not as one of {arrays.library_of(X)}."
        )
    if arrays.is_foreign(X):
        return validate_data(estimator, _read_foreign(X), reset=reset, skip_check_array=True)
    if _is_plain(X) and _has_shape(estimator, X, reset):
        return X
    if hasattr(X, "collect") and not hasattr(X, "shape"):
        raise ValueError("X is a lazy frame: call its collect() first.")
    if sp.issparse(X) and not sparse:
        X = dense_rows(X)
    check_unique_names(X)
    if isinstance(X, np.ma.MaskedArray):
        X = without_mask(X)
    dates = _columns(X, _is_date)
    if dates:
        raise ValueError(
            f"X must be numbers, but {dates} holds dates: turn them into numbers first, for "
            "example days since a fixed day."
        )
    try:
        return validate_data(
            estimator,
            X,
            reset=reset,
            dtype=float,
            accept_sparse="csr" if sparse else False,
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise _in_words(error, X, getattr(estimator, "kernel", None) == "precomputed") from error


def dense_rows(X: Rows) -> Array:
    """Return a sparse matrix as an array, if that takes no more memory than is allowed.

    Distances and products of rows do not depend on how the rows are stored.
    """
    n_bytes = math.prod(X.shape) * np.dtype(float).itemsize
    if n_bytes > LARGEST_DENSE:
        raise ValueError(
            "Sparse data was passed for X, and this method needs it dense: the shape "
            f"{tuple(X.shape)} takes {n_bytes / 2**30:.0f} GiB. Reduce the features first, for "
            "example with TruncatedSVD, or use SpectralGraphTransducer, which keeps X sparse."
        )
    return X.toarray()


def check_unique_names(X: Rows) -> None:
    """Raise a ValueError if two columns of a frame have one name."""
    if not hasattr(X, "columns") or not hasattr(X, "shape"):
        return
    if not len(X.columns):
        return
    name, count = Counter(X.columns).most_common(1)[0]
    if count > 1:
        raise ValueError(
            f"X has {count} columns called {quoted(name)}: give each a name of its own."
        )


def without_mask(X: Rows) -> Array:
    """Return a masked array as floats, NaN where it is masked.

    So it is refused where NaN is.
    """
    values = np.ma.getdata(X).astype(float)
    values[np.ma.getmaskarray(X)] = np.nan
    return values


def _in_words(error: Exception, X: Rows, precomputed: bool) -> Exception:
    """Return an error of a library about features as an error in one sentence."""
    if sp.issparse(X):
        return error
    shape = _shape_of(X)
    if shape is None:
        return ValueError("The rows of X differ in length: give each the same number of features.")
    if len(shape) < 2:
        what = "1D"
        if len(shape) == 0:
            what = "scalar"
        if shape:
            kind = ""
        else:
            kind = f" X is of the type {type(X).__name__}."
        return ValueError(
            f"Expected 2D array, got {what} array instead.{kind} Reshape your data: one line for "
            "each row, with array.reshape(-1, 1) if there is a single feature."
        )
    if len(shape) > 2 or 0 in shape:
        return error
    return _explain(X, precomputed) or error


def _shape_of(X: Rows) -> tuple[int, ...] | None:
    """Return the shape of features, None if their rows differ in length."""
    if hasattr(X, "shape"):
        return tuple(X.shape)
    try:
        return np.asarray(X).shape
    except ValueError:
        return None


def _is_plain(X: Rows) -> bool:
    """Return whether features need no check that takes time.

    Such features are a numpy array of finite numbers in double precision.
    """
    if type(X) is not np.ndarray or X.dtype != np.float64:
        return False
    if X.ndim != 2 or 0 in X.shape:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.sum(X)))


def _has_shape(estimator: Any, X: Array, reset: bool) -> bool:
    """Return whether an array without names of features suits the estimator.

    It does if it has as many columns as the estimator remembers; `reset` sets that number anew.
    """
    if hasattr(estimator, "feature_names_in_"):
        return False
    if reset:
        estimator.n_features_in_ = X.shape[1]
    return getattr(estimator, "n_features_in_", None) == X.shape[1]


def _read_foreign(X: Rows) -> Any:
    """Return features of another library than numpy, on their device.

    They are finite numbers in double precision.
    """
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
        what = "infinity"
        if bool(xp.any(xp.isnan(rows))):
            what = "NaN"
        raise ValueError(f"Input X contains {what}: fill or drop these values first.")
    return rows


def _explain(X: Rows, precomputed: bool) -> Exception | None:
    """Return an error in one sentence for the usual faults of features.

    The faults are found by looking at the features; it is None for others.
    """
    if _columns(X, is_complex):
        return ValueError("Complex data not supported: features must be real numbers.")
    text = _columns(X, _is_text)
    if text:
        encoders = "sklearn.preprocessing.OneHotEncoder or skrub.TableVectorizer"
        return ValueError(
            f"X must be numbers, but {text} holds text: encode it first, for example with "
            f"{encoders}."
        )
    odd = _columns(X, lambda column: _odd_cell(column) is not None)
    if odd:
        kinds = [type(_odd_cell(column)).__name__ for _, column in _named_columns(X)]
        kind = next(kind for kind in kinds if kind != "NoneType")
        return WrongTypeError(
            f"X must be numbers, but {odd} holds objects of the type {kind}: turn them into "
            "numbers first; each argument must be one, or a string that spells a number."
        )
    if _columns(X, is_too_large):
        return ValueError(
            "Input X contains a number too large for double precision in "
            f"{_columns(X, is_too_large)}: divide the "
            "column by a constant first, or make that cell missing."
        )
    return _explain_not_finite(X, precomputed)


def _explain_not_finite(X: Rows, precomputed: bool) -> ValueError | None:
    """Return an error in one sentence if a feature is missing or infinite somewhere."""
    advice = "for example with sklearn.impute.SimpleImputer"
    for what, is_bad in (("NaN", _holds_nan), ("infinity", _holds_infinity)):
        where = _columns(X, is_bad)
        if where and precomputed:
            return ValueError(f"Input X contains {what}: a kernel matrix must be finite.")
        if where:
            return ValueError(
                f"Input X contains {what} in {where}: fill or drop these values first, {advice}."
            )
        advice = "or make them missing"
    return None


def is_complex(column: AnyArray) -> bool:
    """Return whether a cell is a complex number."""
    values = np.asarray(column)
    if values.dtype == object:
        return any(isinstance(cell, complex | np.complexfloating) for cell in values.ravel())
    return values.dtype.kind == "c"


def _odd_cell(column: AnyArray) -> Any:
    """Return the first cell that is neither a number, nor text, nor missing.

    It is None if there is no such cell.
    """
    values = np.asarray(column)
    if values.dtype.kind in "biufcUS":
        return None
    if values.dtype == object:
        cells = values.ravel().tolist()
    else:
        cells = list(values)
    missing = (type(None), type(pd.NA), type(pd.NaT))
    plain = (numbers.Number, str, np.generic, *missing)
    return next((cell for cell in cells if not isinstance(cell, plain)), None)


def is_too_large(column: AnyArray) -> bool:
    """Return whether a whole number is beyond what a float can hold."""
    values = np.asarray(column)
    if values.dtype != object:
        return False
    return any(isinstance(cell, int) and abs(cell) > LARGEST_FLOAT for cell in values.ravel())


def _holds_nan(column: AnyArray) -> bool:
    return bool(np.any(pd.isna(column)))


def _holds_infinity(column: AnyArray) -> bool:
    """Return whether a number is infinite; a missing one is not."""
    cells = pd.Series(np.asarray(column).ravel())
    values = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=float)
    return bool(np.any(np.isinf(values)))


def read_array(X: Rows) -> Array:
    """Return any finite two-dimensional array as floats.

    This is for kernel values, whose columns vary in number.
    """
    if arrays.is_foreign(X):
        return _read_foreign(X)
    return check_array(X, dtype=np.float64)


def read_candidates(y: Labels, n: int) -> Array:
    """Return one candidate label for each of `n` rows as finite numbers."""
    y = arrays.to_numpy(y)
    labels = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", ensure_min_samples=0)
    if labels.shape != (n,):
        raise ValueError(
            f"Give one candidate label for each of the {n} rows; got shape {labels.shape}."
        )
    return labels


def _is_text(column: Sequence[object] | AnyArray) -> bool:
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
    kind = column.dtype.kind
    if kind in "Mm":
        return True
    if kind == "O":
        first = next((cell for cell in column if cell is not None), None)
    else:
        first = None
    return isinstance(first, datetime.date | datetime.time | datetime.timedelta | pd.Period)


def _named_columns(X: Rows) -> list[tuple[ColumnName, AnyArray]]:
    """Return the columns of features with their names.

    Columns without names have their positions.
    """
    if hasattr(X, "columns") and hasattr(X, "shape"):
        if hasattr(X, "items"):
            columns = X.items()
        else:
            columns = ((name, X[name]) for name in X.columns)
        return [(name, np.asarray(column)) for name, column in columns]
    return list(enumerate(np.asarray(X).T))


def _columns(X: Rows, is_bad: Callable[[Any], bool]) -> str:
    """Return the bad columns in words, "" if there are none.

    Columns are given by name if they have one, else by position.
    """
    if not hasattr(X, "columns"):
        if sp.issparse(X):
            return ""
        shape = _shape_of(X)
        if shape is None or len(shape) != 2:
            return ""
        if getattr(getattr(X, "dtype", None), "kind", "O") in "biuf" and is_bad is _is_date:
            return ""
    bad = [quoted(name) for name, column in _named_columns(X) if is_bad(column)]
    shown = ", ".join(bad[:5])
    if len(bad) > 5:
        shown = f"{shown} and {len(bad) - 5} more"
    if bad:
        return f"column{'s' * (len(bad) != 1)} {shown}"
    return ""


def read_sample(
    estimator: Any,
    X: Rows,
    y: Labels,
    *,
    columns: bool = False,
    device: bool = False,
) -> PartlyLabelled:
    """Return rows and labels, checked; at least one row has a label. Shapes: X (n, d)."""
    check_given(estimator, y)
    rows = read_rows(estimator, X, reset=True, device=device)
    index = getattr(X, "index", None)
    return read_labels(rows, index, y, missing_label=estimator.missing_label, columns=columns)


def check_given(estimator: Any, y: Labels) -> None:
    """Drop what the estimator answered before; raise a ValueError if there are no labels."""
    estimator._forget()
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: give "
            "one label for each row, NaN or None where the answer is wanted."
        )


def read_labels(
    rows: Array,
    index: object,
    y: Labels,
    *,
    missing_label: object = None,
    columns: bool = False,
) -> PartlyLabelled:
    """Return the checked labels of rows that have been read (n, d).

    At least one row has a label.
    """
    if len(getattr(y, "shape", ())) == 2 and y.shape[1] == 1 and not columns:
        message = (
            "A column-vector y was passed when a 1d array was expected. "
            "Pass its only column instead."
        )
        warnings.warn(message, DataConversionWarning, stacklevel=4)
    sample = PartlyLabelled.from_arrays(
        rows, y, missing_label=missing_label, index=index, columns=columns
    )
    if _is_shuffled(index, getattr(y, "index", None)):
        raise ValueError(
            "X and y hold the same rows in a different order: align them first, for example with "
            "y.loc[X.index]."
        )
    if sample.labelled.all():
        _warn_that_none_is_missing(sample, missing_label)
    if not sample.labelled.any():
        raise ValueError("No row has a label: at least one is needed to answer at the others.")
    return sample


def _warn_that_none_is_missing(sample: PartlyLabelled, missing_label: object) -> None:
    """Warn where no label is missing although the user seems to have marked some as missing."""
    if missing_label is not None:
        warnings.warn(
            f"missing_label={quoted(missing_label)} does not occur in y, so no row is unlabelled.",
            stacklevel=5,
        )
        return
    mark = missing_mark(sample.y)
    if mark is not None:
        labels = sample.y.ravel().tolist()
        count = sum(bool(label == mark) for label in labels)
        warnings.warn(
            f"No label is missing, but {count} of {len(sample.y)} labels are {mark!r}: if that "
            f"stands for a missing label, set missing_label={mark!r}. As it is, {mark!r} is a "
            "label like the others.",
            stacklevel=5,
        )


def missing_mark(labels: AnyArray) -> object:
    """Return the label that looks like a mark for "no label"; None if none does.

    None of the labels is missing.

    An empty text does, beside others; and so does -1 beside two other classes, or beside numbers
    none of which is negative. Labels that are all -1 or 1 are the two classes of the papers.

    >>> missing_mark(np.array([0, 1, -1])), missing_mark(np.array([-1, 1]))
    (-1, None)
    """
    if labels.ndim != 1 or labels.dtype.kind not in "iufOU":
        return None
    kept = labels.tolist()
    if any(isinstance(label, str) for label in kept):
        return _mark_among_texts(kept)
    if not all(isinstance(label, int | float) and not isinstance(label, bool) for label in kept):
        return None
    distinct = set(kept)
    others_fit = len(distinct) >= 3 and all(label >= 0 for label in distinct if label != -1)
    if -1 in distinct and others_fit:
        return -1
    return None


def _mark_among_texts(labels: list[object]) -> object:
    """Return the label that looks like a mark for "no label" where some labels are texts."""
    texts = {label for label in labels if isinstance(label, str) and label.strip()}
    if not texts:
        return None
    for label in labels:
        if isinstance(label, str) and not label.strip():
            return label
    distinct = {str(label).strip() for label in labels}
    is_negative = [label.startswith(("-", "−")) for label in distinct if label != "-1"]
    if "-1" not in distinct or len(is_negative) < 2 or any(is_negative):
        return None
    return next(label for label in labels if str(label).strip() == "-1")


def _is_shuffled(one: object, other: object) -> bool:
    """Return whether two indexes name the same rows, each once, in a different order."""
    if not isinstance(one, pd.Index) or not isinstance(other, pd.Index) or one.equals(other):
        return False
    if one.nlevels != other.nlevels or len(one) != len(other) or not one.is_unique:
        return False
    return bool(one.isin(other).all())


def numeric_labels(sample: PartlyLabelled) -> Array:
    """Return the labels of the labelled rows as finite numbers, shape (l,) or (l, c)."""
    labels = sample.y[sample.labelled]
    if is_complex(labels):
        raise ValueError("Complex data not supported: labels must be real numbers.")
    try:
        values = labels.astype(float)
    except OverflowError:
        raise ValueError(_TOO_LARGE) from None
    except (TypeError, ValueError):
        flat = labels.ravel()
        text = next((label for label in flat if _is_text([label])), flat[0])
        raise ValueError(
            f"Regression needs labels that are numbers, but y holds {quoted(text)}: convert them, "
            "or use a classifier."
        ) from None
    largest = np.abs(values).max()
    if not np.isfinite(largest):
        raise ValueError(
            f"{_INFINITE}: replace it by a number, or by NaN if the answer is wanted there."
        )
    if largest > LARGEST_LABEL:
        raise ValueError(_TOO_LARGE)
    return values


def read_kernel_rows(
    X: Rows,
    n: int,
    own: float | None,
    *,
    own_value: bool,
) -> Array:
    """Return kernel values of new rows with the n rows of `fit` and with themselves.

    Those with themselves are one more column.
    """
    X = read_array(X)
    if X.shape[1] == n and (own is not None or not own_value):
        last = arrays.zeros((X.shape[0], 1), X)
        last = last + (np.nan if own is None else own)
        return arrays.namespace(X).concat([X, last], axis=1)
    if X.shape[1] != n + 1:
        raise ValueError(
            f"kernel='precomputed' needs the kernel values of each new row with the {n} rows of "
            f"fit and, as column {n + 1}, with itself (np.column_stack([K, own])); got "
            f"{X.shape[1]} columns."
        )
    return X


def class_labels(
    sample: PartlyLabelled, known: Collection[object] = ()
) -> tuple[AnyArray, AnyArray]:
    """Return the sorted classes, and the class number of each labelled row (l,).

    Known classes are among them.
    """
    labels = sample.y[sample.labelled]
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"{_INFINITE}: a class label must be finite.")
    if labels.dtype == object:
        labels = _plain_classes(labels)
    if labels.dtype.kind not in "biufUO":
        raise ValueError(
            f"Class labels must be text, numbers or booleans, but y holds {quoted(labels[0])}: "
            "convert them, for example with astype(str)."
        )
    if labels.dtype.kind == "f":
        with warnings.catch_warnings():  # one label a class is welcome
            warnings.filterwarnings("ignore", "The number of unique classes is greater")
            check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if set(known) - set(classes.tolist()):
        classes = text_array(sorted({*classes.tolist(), *known}))
        codes = class_codes(labels, classes)
    if len(classes) < 2:
        raise ValueError(
            f"The labelled rows hold one class only ({quoted(classes[0])}): at least two classes "
            "are needed."
        )
    return classes, codes


def _plain_classes(labels: AnyArray) -> AnyArray:
    """Return class labels that are objects as an array of one type: numbers, booleans or text."""
    is_text = [isinstance(label, str) for label in labels]
    if any(is_text) and not all(is_text):
        raise ValueError("y mixes text with other labels: make all class labels of one type.")
    halved = next((label for label in labels if isinstance(label, str) and is_halved(label)), None)
    if halved is not None:
        raise ValueError(
            f"The class label {quoted(halved)} holds half of a character, which no file can hold: "
            "write it anew."
        )
    plain = numbers.Real | np.bool_ | str
    odd = next((label for label in labels if not isinstance(label, plain)), None)
    too_large = next((label for label in labels if is_too_large(np.array([label], object))), None)
    if odd is not None or too_large is not None:
        shown = quoted(too_large if odd is None else odd)
        raise ValueError(
            f"Class labels must be text, numbers or booleans, but y holds {shown}: convert them, "
            "for example with astype(str)."
        )
    return text_array(labels.tolist())


def is_halved(text: str) -> bool:
    """Return whether a text holds a surrogate, which is half of a character."""
    return not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text)


def text_array(values: Sequence[object]) -> AnyArray:
    r"""Return labels of one type as an array; texts as objects where an array of text would not do.

    Such an array drops a NUL at the end of a text, and has room for the longest text in every cell.

    >>> text_array(["a", "a\0"])
    array(['a', 'a\x00'], dtype=object)
    """
    unfit = (
        isinstance(value, str) and (value[-1:] == "\0" or len(value) > LONG_TEXT)
        for value in values
    )
    if not any(unfit):
        return np.array(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


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

    def _with_label(self, X: Rows, y: Labels) -> tuple[Any, Any]:
        """Return the rows and labels that can be scored."""
        labels = label_array(y, columns=True)
        check_consistent_length(X, labels)
        missing = missing_mask(labels, self._missing_label())
        if missing.ndim > 1:
            missing = np.asarray(missing.any(axis=1))
        known = np.flatnonzero(~missing)
        return _safe_indexing(X, known), labels[known]

    def score(self, X: Rows, y: Labels, sample_weight: Any = None) -> float:
        """Return R^2 of numbers, or the share of right classes.

        It is measured at the rows (m, d) that have a label.
        """
        from sklearn.metrics import r2_score  # half a second, which no fit needs

        check_is_fitted(self)
        rows, labels = self._with_label(X, y)
        is_number = self.answer_.classes is None
        if len(labels) < (2 if is_number else 1):
            raise ValueError(f"{_TOO_FEW_TO_SCORE[is_number]} {_INSTEAD_OF_FOLDS}")
        answers = self.predict(rows)
        if is_number:
            try:
                numbers = labels.astype(float)
            except OverflowError:
                raise ValueError(_TOO_LARGE) from None
            predictions = arrays.to_numpy(answers)
            unit = square_unit(numbers, predictions)
            return float(r2_score(numbers / unit, predictions / unit, sample_weight=sample_weight))
        right = class_codes(labels, self.classes_) == class_codes(answers, self.classes_)
        return float(np.average(right, weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = getattr(self, "kernel", None) == "precomputed"
        tags.input_tags.sparse = True
        return tags


class NumberTransducer(RegressorMixin, Transducer):
    """A transducer whose labels are numbers."""

    score = Transducer.score


class ClassTransducer(ClassifierMixin, Transducer):
    """A transducer whose labels are classes."""

    score = Transducer.score
