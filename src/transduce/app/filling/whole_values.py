"""Columns such as patients, of which each value was labelled as a whole, or not at all."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import binom

from transduce.app.filling.left_out import UNLIKELY, labels_stop_along
from transduce.app.filling.options import Options
from transduce.app.filling.sources import FrameSource
from transduce.core.types import AnyArray, ColumnName, Mask
from transduce.core.words import option

FEWEST_VALUES = 5  # of several rows each, with a label and without: of fewer, groups are no sample


def column_of_groups(rows: FrameSource, options: Options) -> ColumnName | None:
    """Return a column of which whole values were labelled, beyond chance; None without one.

    Of several it is the one with the fewest values, since what is constant within a patient may be
    so within a hospital. None is named where the user has said how labels came about.
    """
    if options.labels is not None:
        return None
    labelled = ~rows.labels.missing
    names = [name for name in rows.frame.columns if name != rows.labels.name]
    n_values: dict[ColumnName, int] = {}
    for name in names:
        column = rows.frame[name]
        if is_labelled_by_value(column, labelled):
            n_values[name] = int(column.nunique())
    if not n_values:
        return None
    return min(n_values, key=lambda name: n_values[name])


def sentence_on_groups(name: ColumnName) -> str:
    """Return what to do about a column of which whole values were labelled."""
    return (
        f"Of no value of {name!r} some rows have a label and others none, which chance does not do "
        "to single rows: if whole ones were labelled, such as all visits of a patient, say so with "
        f"{option('groups', name)}."
    )


def is_labelled_by_value(column: pd.Series, labelled: Mask) -> bool:
    """Return whether each value has a label in all of its rows or in none, beyond chance.

    Labels that stop along a number or a time are no matter of groups. Shapes: labelled (n,).
    """
    try:
        codes = pd.factorize(column)[0]
    except (TypeError, NotImplementedError):  # cells that cannot be hashed, or lists of Arrow
        return False
    known = codes >= 0
    sizes = np.bincount(codes[known])
    n_labels = np.bincount(codes[known], weights=labelled[known])
    if np.any((n_labels > 0) & (n_labels < sizes)):
        return False
    several = sizes > 1
    n_whole = int(np.sum(several & (n_labels > 0)))
    n_empty = int(np.sum(several & (n_labels == 0)))
    if min(n_whole, n_empty) < FEWEST_VALUES:
        return False
    if chance_of_whole_values(sizes, int(n_labels.sum())) > UNLIKELY:
        return False
    return not labels_stop_along(column, ~labelled)


def chance_of_whole_values(sizes: AnyArray, n_labels: int) -> float:
    """Return a bound on how likely no value is mixed if so many labels fall on rows at random.

    >>> print(f"{chance_of_whole_values(np.array([2, 2]), 2):.2f}")  # it is 1/3
    0.67
    """
    # Rows that are labelled independently, with the share of labels as their probability, are a
    # random sample of n rows if there are n labels: P(whole | n) <= P(whole) / P(n).
    n_rows = int(sizes.sum())
    share = n_labels / n_rows
    of_all = np.logaddexp(sizes * np.log(share), sizes * np.log1p(-share))
    log_whole = float(np.sum(of_all))
    return min(1.0, float(np.exp(log_whole - binom.logpmf(n_labels, n_rows, share))))
