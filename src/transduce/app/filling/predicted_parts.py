"""The predictions behind questions about a column whose table is in files, or a Dask frame.

Each part is read and predicted where its rows are, and sends back a label and a prediction for each
row, about 20 bytes; other columns are fetched when a question names them.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from transduce.app.estimating import PredictedColumn
from transduce.app.filling.design_columns import bind_design
from transduce.app.filling.part_sources import PartSource
from transduce.app.filling.predicted import (
    at_classes,
    drop_unpredicted,
    numbers_of_answer,
    possible_range,
    predict_fit,
)
from transduce.core.assumptions import with_factor
from transduce.core.types import AnyArray, Array, ColumnName, Mask

if TYPE_CHECKING:
    from transduce.app.filling.later_rows import FittedFill
    from transduce.app.filling.result import FillResult
    from transduce.app.tables.row_draws import RowDraw


@dataclass(frozen=True, eq=False)
class PartColumns:
    """The columns of a table in parts, each fetched when it is first asked for."""

    source: PartSource
    columns: pd.Index
    n_rows: int
    fetched: dict[ColumnName, pd.Series] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, name: ColumnName) -> pd.Series:
        if name not in self.fetched:
            items = [name] * len(self.source.parts)
            parts = self.source.each("estimates", _take_column, items)
            self.fetched[name] = pd.concat(parts, ignore_index=True)
        return self.fetched[name]


@dataclass(frozen=True, eq=False)
class PredictedPart:
    """The labels of a part, and predictions at its unlabelled rows."""

    labels: AnyArray
    sides: AnyArray  # of labels that are limits
    missing: Mask
    predictions: Array  # (m,) or (m, n_classes) at unlabelled rows


def predict_parts(
    result: FillResult, source: PartSource, fitted: FittedFill, roles: RowDraw
) -> PredictedColumn:
    """Return the column of a table in parts, with a prediction at every row."""
    work = Path(tempfile.mkdtemp(prefix="transduce-"))
    source = source.reopen(work)
    # Texts are kept as Parquet in the folder for as long as columns may be fetched from them.
    weakref.finalize(source, shutil.rmtree, work, ignore_errors=True)
    parts = source.each("estimates", _predict_part, [fitted.for_parts()] * len(source.parts))
    labels = np.concatenate([part.labels for part in parts])
    missing = np.concatenate([part.missing for part in parts])
    sides = np.concatenate([part.sides for part in parts])
    target = replace(result.labels, labels=labels, missing=missing, sides=sides)
    starts = np.append(0, np.cumsum([len(part.missing) for part in parts]))
    classes = fitted.outside.table.classes
    unlabelled = np.concatenate([part.predictions for part in parts])
    predictions = np.full((len(missing), *unlabelled.shape[1:]), np.nan)
    predictions[missing] = unlabelled
    _predict_calibration(fitted, roles, predictions, missing, starts)
    _predict_visible(result, roles, predictions, starts, classes)
    columns = PartColumns(source, result.fit.frame.columns, len(missing))
    design = result.options.design
    needed = pd.DataFrame({name: columns[name] for name in design.columns})
    sample = None
    known: Array | None = predictions
    if result.fit.shares is None:
        sample = bind_design(design, missing, needed).describe_sample(missing)
        known, sample = drop_unpredicted(predictions, sample, missing)
    return PredictedColumn(
        target=target,
        predictions=known,
        classes=classes,
        sample=sample,
        frame=columns,
        assumption=with_factor(str(design.assumption), design.sensitivity),
        names=pd.Index([f"row {number:,}" for number in range(1, len(missing) + 1)]),
        shares=result.fit.shares,
        limits=possible_range(result.options),
        refitted=True,
        case_sensitive=result.options.case_sensitive,
    )


def _predict_calibration(
    fitted: FittedFill, roles: RowDraw, predictions: Array, missing: Mask, starts: AnyArray
) -> None:
    """Write predictions at labelled rows that were kept from the fit."""
    kept = starts[roles.calibration[:, 0]] + roles.calibration[:, 1]
    kept = kept[~missing[kept]]
    predictions[kept] = fitted.predict_kept()


def _predict_visible(
    result: FillResult,
    roles: RowDraw,
    predictions: Array,
    starts: AnyArray,
    classes: AnyArray | None,
) -> None:
    """Write predictions at labelled rows of the fit: of fits that did not see their labels."""
    of_fit = predict_fit(result.fit, result.options.random_state)
    if of_fit is None:
        return
    visible = starts[roles.visible[:, 0]] + roles.visible[:, 1]
    inside = of_fit.without_held_out()[: len(visible)]
    predictions[visible] = at_classes(inside, of_fit.classes, classes)


def _predict_part(fitted: FittedFill, frames: Iterable[pd.DataFrame]) -> PredictedPart:
    """Return the labels of a part, and predictions at its unlabelled rows."""
    labels = []
    sides = []
    missing = []
    predictions = []
    classes = fitted.outside.table.classes
    for frame in frames:
        cleaned = fitted.clean(frame)
        target = fitted.reading.read(cleaned)
        rows = np.flatnonzero(target.missing)
        answer = fitted.raw_answer(cleaned.iloc[rows], rows)
        labels.append(target.labels)
        sides.append(target.all_sides)
        missing.append(target.missing)
        predictions.append(numbers_of_answer(answer, classes))
    return PredictedPart(
        np.concatenate(labels),
        np.concatenate(sides),
        np.concatenate(missing),
        np.concatenate(predictions),
    )


def _take_column(name: ColumnName, frames: Iterable[pd.DataFrame]) -> pd.Series:
    """Return one column of a part."""
    return pd.concat([frame[name] for frame in frames], ignore_index=True)
