"""Which predictions are most likely wrong, by a model of the checked rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import fisher_exact

from transduce.app.auditing.reading import AuditColumns
from transduce.app.tables.features import vectorize
from transduce.core.types import AnyArray, Array, ColumnName

MOST_ROWS = 20_000  # whose other columns are looked at, checked ones among them
FEWEST_CHECKED = 10
N_TREES = 200
FEWEST_FLAWLESS = 30  # checks without an error before the predictor is suspected to know them
RARE = 0.001  # p-value below which predictions at checked rows are not like the others


@dataclass(frozen=True, eq=False)
class Suspects:
    """Rows whose predictions are most likely wrong.

    Attributes
    ----------
    rows : array of shape (k,)
        Positions of unchecked rows, most suspect first.
    chance : array of shape (k,)
        About how likely each is wrong, as the model of the checked rows has it.
    seems_seen : bool
        Whether the predictor seems to have seen the checked labels.
    n_looked_at : int
        Unchecked rows among which they were looked for.
    """

    rows: AnyArray
    chance: Array
    seems_seen: bool
    n_looked_at: int


def find_suspects(
    frame: pd.DataFrame,
    columns: AuditColumns,
    ignore: list[ColumnName],
    wrong: AnyArray,
    *,
    most: int,
    random_state: int = 0,
) -> Suspects | None:
    """Return the unchecked rows that are most likely wrong; None if nothing tells.

    Where predictions state their uncertainty, that is what counts. Otherwise a forest learns at the
    checked rows which predictions are wrong, from the predictions and all other columns.
    """
    unchecked = np.flatnonzero(~columns.checked)
    if columns.uncertainty is not None:
        order = np.argsort(-columns.uncertainty[unchecked], kind="stable")[:most]
        rows = unchecked[order]
        return Suspects(rows, columns.uncertainty[rows], False, len(unchecked))
    checked = np.flatnonzero(columns.checked)
    if len(checked) < FEWEST_CHECKED or len(unchecked) == 0:
        return None
    rows = _rows_to_look_at(checked, unchecked, random_state)
    others = frame.drop(columns=[name for name in ignore if name in frame.columns]).iloc[rows]
    is_checked = columns.checked[rows]
    if not wrong[checked].any():
        seen = not columns.numeric and _seems_seen(others, columns, rows, random_state)
        return Suspects(rows[:0], np.zeros(0), seen, int(np.sum(~is_checked)))
    features = _as_features(others.assign(_prediction_=columns.predictions[rows]))
    if features is None:
        return None
    chance = _chance_of_wrong(
        features[is_checked], wrong[rows[is_checked]], features[~is_checked], random_state
    )
    order = np.argsort(-chance, kind="stable")[:most]
    return Suspects(rows[~is_checked][order], chance[order], False, int(np.sum(~is_checked)))


def _rows_to_look_at(checked: AnyArray, unchecked: AnyArray, random_state: int) -> AnyArray:
    """Return the checked rows and, of the others, as many as can be looked at quickly."""
    room = max(MOST_ROWS - len(checked), 1)
    if len(unchecked) > room:
        generator = np.random.default_rng(random_state)
        unchecked = np.sort(generator.choice(unchecked, room, replace=False))
    return np.concatenate([checked, unchecked])


def _as_features(frame: pd.DataFrame) -> Array | None:
    """Return the columns of some rows as numbers; None if no column tells rows apart."""
    try:
        matrix = np.asarray(vectorize(frame.reset_index(drop=True)).matrix)
    except ValueError:
        return None
    if matrix.shape[1] == 0:
        return None
    return matrix


def _chance_of_wrong(known: Array, wrong: AnyArray, asked: Array, random_state: int) -> Array:
    """Return how likely predictions are wrong where nobody checked them."""
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(N_TREES, min_samples_leaf=3, random_state=random_state)
    forest.fit(known, wrong)
    return np.asarray(forest.predict_proba(asked)[:, list(forest.classes_).index(True)])


def _seems_seen(
    others: pd.DataFrame, columns: AuditColumns, rows: AnyArray, random_state: int
) -> bool:
    """Return whether predictions without an error at checked rows look worse elsewhere.

    A forest learns the truth at the checked rows. If the predictions agree with it much more often
    there, out of bag, than at the other rows, they may have been made with these labels.
    """
    from sklearn.ensemble import RandomForestClassifier

    is_checked = columns.checked[rows]
    truth = columns.truth[rows][is_checked].astype(str)
    predicted = columns.predictions[rows].astype(str)
    if len(truth) < FEWEST_FLAWLESS or len(np.unique(truth)) < 2:
        return False
    features = _as_features(others)
    if features is None:
        return False
    forest = RandomForestClassifier(
        N_TREES, min_samples_leaf=2, oob_score=True, random_state=random_state
    )
    forest.fit(features[is_checked], truth)
    votes = forest.classes_[np.argmax(forest.oob_decision_function_, axis=1)]
    agrees_inside = votes == predicted[is_checked]
    agrees_outside = forest.predict(features[~is_checked]) == predicted[~is_checked]
    table = [
        [int(agrees_inside.sum()), int((~agrees_inside).sum())],
        [int(agrees_outside.sum()), int((~agrees_outside).sum())],
    ]
    return bool(fisher_exact(table, alternative="greater").pvalue < RARE)
