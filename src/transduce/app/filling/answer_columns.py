"""The one place where answers become the new columns of a table, wherever its rows are.

A table in memory, one of which the fit saw a sample, files in a folder, a Dask frame and rows that
come later all go through the functions below, so that an option which changes a column changes it
at every row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from transduce.app.filling.class_calibration import ClassCalibration
from transduce.app.filling.options import Options
from transduce.app.tables.columns import Target
from transduce.app.tables.new_columns import new_columns, rounded
from transduce.core.answer import Answer
from transduce.core.findings import Limits
from transduce.core.types import AnyArray


def answer_as_asked(
    answer: Answer, options: Options, limits: Limits, calibration: ClassCalibration
) -> Answer:
    """Return answers as the options want them.

    Intervals are open at the limits of labels and end at what is possible, probabilities are
    calibrated, and the least certain answers are marked: a share of those that are given here, all
    rows at once.
    """
    clipped = options.clip(answer, limits)
    calibrated = calibration.calibrate(clipped, options.level)
    if options.reject is None:
        return calibrated
    return _mark_rejected(calibrated, float(options.reject))


def _mark_rejected(answer: Answer, share: float) -> Answer:
    """Return answers of which a share at most, the least certain, has the status "rejected"."""
    # Many rows share one confidence: the widest intervals, or the closest classes, go first.
    certain = answer.confidence
    if answer.regions is not None:
        ends = answer.regions.hull()  # as written
        certain = ends[:, 0] - ends[:, 1]
    elif answer.probabilities is not None:
        ranked = np.sort(answer.probabilities, axis=1)
        certain = ranked[:, -1] - ranked[:, -2]
    rejected = replace(answer, confidence=certain).reject(share=share)
    return replace(rejected, confidence=answer.confidence)


@dataclass(frozen=True, eq=False)
class AnswerColumns:
    """What makes new columns of answers; the same for all rows of a table."""

    options: Options  # what was asked for
    calibration: ClassCalibration  # how probable classes are
    fitted_labels: AnyArray  # that the fit saw: widths are compared with their spread
    same_types: bool = False  # whether types may not depend on the rows, as those of parts may not
    dtype: object = None  # of the target in the user's frame

    def make(
        self,
        labels: Target,
        answer: Answer,
        index: pd.Index,
        own: Mapping[str, pd.Series] | None = None,
    ) -> pd.DataFrame:
        """Return the new columns of some rows.

        Parameters
        ----------
        labels : Target
            Of these rows.
        answer : Answer
            At those without a label, as `answer_as_asked` returns it.
        index : pandas.Index
            Names of the rows.
        own : dict of pandas.Series, optional
            Further columns, by the ends of their names.
        """
        right = None
        if labels.task == "classification":
            right = self.calibration.probability_correct(answer)
        new = new_columns(
            labels,
            answer,
            self.options.level,
            index,
            right=right,
            probabilities=self.options.probabilities,
            known=self.fitted_labels,
        )
        if self.same_types:
            new = new.astype(_types_of_parts(new, labels, self.fitted_labels))
        new = _with_type_of_target(new, labels, self.dtype)
        for ending, column in (own or {}).items():
            new = new.assign(**{f"{labels.name}_{ending}": column.set_axis(index)})
        return new


def _with_type_of_target(new: pd.DataFrame, labels: Target, dtype: object) -> pd.DataFrame:
    """Return new columns in which labels have the target's own type, where pandas has one for it.

    That is so for classes, and for dates and times, of nullable types and those of Arrow. Numbers
    stay floats, since a predicted number need not be one that the type can hold.
    """
    if not isinstance(dtype, pd.api.extensions.ExtensionDtype):
        return new
    filled = f"{labels.name}_filled"
    if labels.task == "classification":
        if not _is_alike(new[filled], dtype):
            return new
        return new.astype({filled: dtype})
    if labels.spelling.moments is None or not isinstance(dtype, pd.ArrowDtype):
        return new
    endings = (filled, f"{labels.name}_lower", f"{labels.name}_upper")
    moments = [name for name in new.columns if str(name).startswith(endings)]
    return new.astype(dict.fromkeys(moments, dtype))


def _is_alike(column: pd.Series, dtype: pd.api.extensions.ExtensionDtype) -> bool:
    """Return whether a type is for what a column holds: truth values, numbers or texts."""
    held = pd.api.types.infer_dtype(column, skipna=True)
    if pd.api.types.is_bool_dtype(dtype):
        return held == "boolean"
    if pd.api.types.is_numeric_dtype(dtype):
        return held in ("integer", "floating", "integer-na")
    return pd.api.types.is_string_dtype(dtype) and held == "string"


def rank_rows(n_rows: int, rows: Sequence[int]) -> pd.Series:
    """Return a column that numbers some rows from 1, in their order; the others are empty."""
    numbers = pd.Series(pd.NA, index=range(n_rows), dtype="Int64")
    numbers.iloc[list(rows)] = np.arange(1, len(rows) + 1)
    return numbers


def _types_of_parts(new: pd.DataFrame, labels: Target, fitted_labels: AnyArray) -> dict[str, str]:
    """Return the types of columns of objects, whatever the rows.

    Objects are not for files.
    """
    name = labels.name
    plain = [
        column
        for column, kind in new.dtypes.items()
        if kind.kind == "O" and not isinstance(kind, pd.CategoricalDtype)
    ]
    types = dict.fromkeys(map(str, plain), "string")
    moments = labels.spelling.moments
    if moments is not None and moments.cells in ("date", "time"):
        of_moments = {"date": "date32[pyarrow]", "time": "time64[us][pyarrow]"}[moments.cells]
        types |= {column: of_moments for column in types if column != f"{name}_status"}
    if labels.spelling.whole:
        types[f"{name}_filled"] = "Int64"
    elif plain and all(isinstance(label, bool) for label in fitted_labels.tolist()):
        types[f"{name}_filled"] = "boolean"
    return types


def columns_for_file(new: pd.DataFrame, labels: Target, known: AnyArray) -> pd.DataFrame:
    """Return new columns as a file of text has them, with the digits of the labels."""
    return rounded(new, labels.name, labels.task, known)
