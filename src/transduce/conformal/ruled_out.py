"""Where calibration labels rule nothing out: categories with too few labels, classes with none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from transduce.conformal.calibrated_answer import find_p_unseen
from transduce.conformal.designs.weights import CLASSES
from transduce.conformal.scores import label_sets
from transduce.core.ranks import nonconformity_rank

if TYPE_CHECKING:
    from transduce.conformal.calibrated import CalibratedTable


def short_categories(table: CalibratedTable, confidence: float) -> tuple[str, ...]:
    """Return the categories of unlabelled rows that have too few calibration labels."""
    if table.weights.overlapping is not None:
        return _short_categories_of_columns(table, confidence)
    strata = table.weights.strata
    if strata is None:
        return ()
    short = []
    codes = np.unique(strata.unlabelled)
    for code, (_, rows, ranks) in zip(codes, table.comparisons, strict=True):
        if rows.any() and ranks.unbounded(confidence).all():
            short.append(strata.names[code])
    return tuple(short)


def _short_categories_of_columns(table: CalibratedTable, confidence: float) -> tuple[str, ...]:
    """Return categories, of several columns, whose calibration labels are too few by themselves."""
    assert table.weights.overlapping is not None
    calibration, unlabelled = table.weights.overlapping
    short: list[str] = []
    for column, names in enumerate(calibration.names):
        codes = np.unique(unlabelled.codes[:, column])
        comparisons = table.comparisons_within_columns[column]
        for code, (_, rows, ranks) in zip(codes, comparisons, strict=True):
            if rows.any() and ranks.unbounded(confidence).all():
                short.append(names[code])
    return tuple(short)


def count_in_short_categories(table: CalibratedTable, confidence: float) -> int:
    """Return how many rows are of a category, of several columns, with too few labels."""
    if table.weights.overlapping is None:
        return 0
    _, unlabelled = table.weights.overlapping
    short = _short_categories_of_columns(table, confidence)
    rows = np.zeros(len(unlabelled), dtype=bool)
    for column, names in enumerate(unlabelled.names):
        codes = [code for code, name in enumerate(names) if name in short]
        rows |= np.isin(unlabelled.codes[:, column], codes)
    return int((rows & table.unlabelled.given).sum())


def any_class_possible(table: CalibratedTable, confidence: float) -> bool:
    """Return whether so many labels are of classes without a visible one that none is ruled out."""
    if table.classes is None or table.weights.kind == CLASSES:  # classes chosen by are known
        return False
    if table.weights.overlapping is not None:
        infinite = np.isinf(table.thresholds_within_columns(confidence))
        return table.n_unseen > 0 and bool((infinite & table.unlabelled.given).any())
    if table.pooled:  # there may be billions of rows, and all are alike
        n_known = int(table.calibration.given.sum())
        rank = nonconformity_rank(confidence, n_known + table.n_empty)
        return table.n_empty < rank <= table.n_unseen + table.n_empty
    p_unseen = find_p_unseen(table)
    for calibration, rows, _ in table.comparisons:
        has_unseen = np.isinf(table.scores[calibration]).any()
        if has_unseen and label_sets(p_unseen[rows], confidence).any():
            return True
    return False
