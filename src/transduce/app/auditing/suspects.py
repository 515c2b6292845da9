"""Which predictions are most likely wrong, by a model of the checked rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from transduce.app.auditing.reading import AuditColumns
from transduce.app.tables.features import vectorize
from transduce.core.types import AnyArray, Array, Mask

MOST_ROWS = 10_000  # whose other columns are looked at, checked ones among them
FEWEST_CHECKED = 10
N_TREES = 200


@dataclass(frozen=True, eq=False)
class Suspects:
    """Rows whose predictions are most likely wrong.

    Attributes
    ----------
    rows : array of shape (k,)
        Positions of unchecked rows, most suspect first.
    chance : array of shape (k,)
        About how likely each is wrong, as the model of the checked rows has it.
    n_looked_at : int
        Unchecked rows among which they were looked for.
    """

    rows: AnyArray
    chance: Array
    n_looked_at: int


@dataclass(frozen=True, eq=False)
class OtherColumns:
    """What all but the columns of the question say of some rows, all checked ones among them.

    Attributes
    ----------
    frame : DataFrame
        The whole table, without the columns of the question.
    rows : int array of shape (r,)
        Positions: the checked rows, then as many others as can be looked at quickly.
    """

    frame: pd.DataFrame
    rows: AnyArray

    @classmethod
    def of(
        cls,
        frame: pd.DataFrame,
        checked: Mask,
        random_state: int = 0,
    ) -> OtherColumns:
        """Choose the rows of a table; the checked ones (n,) are always among them.

        Columns that only checked rows have, such as who checked them, tell nothing of the others.
        """
        elsewhere = frame[~checked]
        told = [name for name in frame.columns if elsewhere.empty or elsewhere[name].notna().any()]
        frame = frame[told]
        known = np.flatnonzero(checked)
        others = np.flatnonzero(~checked)
        room = max(MOST_ROWS - len(known), 1)
        if len(others) > room:
            generator = np.random.default_rng(random_state)
            others = np.sort(generator.choice(others, room, replace=False))
        return cls(frame, np.concatenate([known, others]))

    @cached_property
    def features(self) -> Array | None:
        """These columns as numbers (r, d); None if no column tells rows apart."""
        return as_features(self.frame.iloc[self.rows])


def find_suspects(
    columns: AuditColumns, others: OtherColumns, wrong: AnyArray, *, most: int
) -> Suspects | None:
    """Return the unchecked rows that are most likely wrong; None if nothing tells.

    Where predictions state their uncertainty, that is what counts. Otherwise a forest learns at the
    checked rows which predictions are wrong (n,), from the predictions and all other columns.
    """
    unchecked = np.flatnonzero(~columns.checked)
    if columns.uncertainty is not None:
        order = np.argsort(-columns.uncertainty[unchecked], kind="stable")[:most]
        rows = unchecked[order]
        return Suspects(rows, columns.uncertainty[rows], len(unchecked))
    is_checked = columns.checked[others.rows]
    rows = others.rows[~is_checked]
    if is_checked.sum() < FEWEST_CHECKED or len(rows) == 0:
        return None
    wrong_inside = wrong[others.rows[is_checked]]
    if not wrong_inside.any():
        return Suspects(rows[:0], np.zeros(0), len(rows))
    predicted = as_features(pd.DataFrame({"predicted": columns.predictions[others.rows]}))
    parts = [part for part in (others.features, predicted) if part is not None]
    if not parts:
        return None
    features = np.hstack(parts)
    chance = _chance_of_wrong(features[is_checked], wrong_inside, features[~is_checked])
    order = np.argsort(-chance, kind="stable")[:most]
    return Suspects(rows[order], chance[order], len(rows))


def as_features(frame: pd.DataFrame) -> Array | None:
    """Return the columns of some rows as numbers; None if no column tells rows apart."""
    try:
        matrix = np.asarray(vectorize(frame.reset_index(drop=True)).matrix)
    except ValueError:
        return None
    if matrix.shape[1] == 0:
        return None
    return matrix


def _chance_of_wrong(known: Array, wrong: AnyArray, asked: Array) -> Array:
    """Return how likely predictions are wrong where nobody checked them."""
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(N_TREES, min_samples_leaf=3, random_state=0)
    forest.fit(known, wrong)
    return np.asarray(forest.predict_proba(asked)[:, list(forest.classes_).index(True)])
