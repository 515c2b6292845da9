"""A fit to a sample of a table, with labels kept aside that calibrate the other rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from transduce.app.filling.diagnostics import Diagnosis
from transduce.app.filling.fitting import fit_rows
from transduce.app.filling.later_rows import FittedFill
from transduce.app.filling.options import Options
from transduce.app.filling.plan import classes_of_sample, options_of_sample
from transduce.app.filling.sources import Source, draw
from transduce.app.filling.table_fit import TableFit
from transduce.app.tables.columns import Target, limits_in
from transduce.app.tables.row_draws import PartScan, RowDraw
from transduce.app.tables.row_names import naming_rows
from transduce.core.computing import stage
from transduce.core.findings import Limits
from transduce.core.types import ColumnName


@dataclass(frozen=True, eq=False)
class SampleFit:
    """A fit to a sample of a table, calibrated for all other rows."""

    fit: TableFit
    later: FittedFill  # answers rows that the fit did not see
    roles: RowDraw  # which rows were drawn for what
    labels: Target  # of the sample
    extremes: Target  # the least and the greatest label of the whole table; none of classes
    diagnosis: Diagnosis

    @property
    def n_others(self) -> int:
        """How many unlabelled rows the fit did not see."""
        return self.roles.n_unlabelled - len(self.roles.sampled)


def fit_sample(
    source: Source, target: ColumnName, options: Options, limits: Limits | None = None
) -> SampleFit:
    """Fit to a sample of a table, and calibrate the fit for all other rows.

    `limits` are those of the labels of the whole table.
    """
    with stage("reading"):
        scans = source.scan(target, options)
        roles = draw(scans, target, options)
    with stage("sample"):
        inside, held = source.take(roles, target, options)
    labels = _labels_of_sample(inside.labels, scans, limits, words=source.words)
    settled = options.for_labels(labels, held.labels)
    extremes = _read_extremes(labels, scans)
    options.check_labels(extremes)
    classes = classes_of_sample(labels, held.labels, options)
    rows = replace(inside, frame=inside.frame.reset_index(drop=True), labels=labels)
    n_others = roles.n_unlabelled - len(roles.sampled)
    with naming_rows(source.names_of_sample(roles)):
        fit = fit_rows(rows, options_of_sample(labels, settled), n_others, classes)
    diagnosis = Diagnosis(fit, settled)
    later = FittedFill.calibrate(fit, diagnosis.calibration, held, options)
    return SampleFit(fit, later, roles, labels, extremes, diagnosis)


def _read_extremes(labels: Target, scans: list[PartScan]) -> Target:
    """Return the least and the greatest label of all parts, read as the sample; none of classes."""
    cells: list[Any] = []
    if labels.task == "regression":
        cells = [cell for scan in scans for cell in scan.cells]
    labels_of_table = labels.read(
        pd.DataFrame({labels.name: pd.Series(cells, dtype=object).infer_objects()})
    )
    numbers = labels_of_table.known.astype(float)
    numbers = numbers[np.isfinite(numbers)]
    if len(numbers):
        numbers = np.array([numbers.min(), numbers.max()])
    none_missing = np.zeros(len(numbers), dtype=bool)
    return replace(labels_of_table, labels=numbers, missing=none_missing, sides=None)


def _labels_of_sample(
    labels: Target, scans: list[PartScan], limits: Limits | None, *, words: bool
) -> Target:
    """Return the labels of a sample, read as those of the whole table with all its limits."""
    if limits is None and labels.task == "regression":
        texts = sum((Counter(scan.limits) for scan in scans), Counter[str]())
        limits = limits_in(texts, labels.spelling)
    spelling = replace(labels.spelling, words=words)
    return replace(labels, limits=limits or Limits(), spelling=spelling)
