"""Whether predictions that were made elsewhere seem to have been made with the labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import fisher_exact, mannwhitneyu

from transduce.core.row_order import content_order, number_rows
from transduce.core.types import AnyArray, Array, Mask

FEWEST_RIGHT = 20  # labels at which predictions without an error are suspicious
FEWEST_COMPARED = 30  # labels from which a forest learns what other rows would have
MOST_COMPARED = 20_000  # rows
N_TREES = 200
NEARLY_ALL = 0.95  # of the labels are as predicted, where the rest of the table is looked at too
RARE = 0.001  # p-value below which predictions at labelled rows are not like the others
EQUAL = 1e-6  # of the labels' spread: numbers nearer to each other than that are equal


@dataclass(frozen=True)
class SeenLabels:
    """What speaks for predictions having been made with the labels that they are held against.

    Attributes
    ----------
    n_labels : int
        Labels that were compared with their predictions.
    all_right : bool
        Whether every one of at least 20 labels is as predicted.
    worse_elsewhere : bool
        Whether predictions at unlabelled rows fit the other columns less well than the others do.
    """

    n_labels: int
    all_right: bool = False
    worse_elsewhere: bool = False

    def describe(self, way_out: str) -> str:
        """Return it in a sentence or two, with what to do; empty if nothing speaks for it."""
        if self.worse_elsewhere:
            return (
                "The predictor seems to have seen these labels: at other rows its predictions fit "
                f"the columns of the table less well, and nothing that is said here holds there. "
                f"{way_out}"
            )
        if self.all_right:
            return (
                f"The predictions agree with all {self.n_labels:,} labels: if what made them has "
                "seen these labels, they are worse elsewhere, and nothing that is said here holds. "
                f"If so: {way_out[0].lower()}{way_out[1:]}"
            )
        return ""


def find_seen_labels(
    predictions: AnyArray,
    labels: AnyArray,
    labelled: Mask,
    make_features: Callable[[], Array | None],
    *,
    numeric: bool,
) -> SeenLabels:
    """Return whether predictions (n,) seem to have been made with the labels of some rows.

    Where nearly all are right, a forest learns the labels from features (n, d). Predictions that
    had nothing to do with the labels are no nearer to it, out of bag, at labelled rows than at
    others.
    `labels` (n,) count where `labelled`; features, made when they are needed, may be None where no
    column tells rows apart.
    """
    inside = np.flatnonzero(labelled)
    n_labels = len(inside)
    right = _are_equal(predictions[inside], labels[inside], numeric=numeric)
    all_right = n_labels >= FEWEST_RIGHT and bool(right.all())
    # With fewer right ones chance alone would sometimes be taken for knowledge: a forest's own
    # errors are alike at neighbouring rows, which the tests of agreement do not know.
    if n_labels < FEWEST_COMPARED or right.mean() < NEARLY_ALL or labelled.all():
        return SeenLabels(n_labels, all_right)
    features = make_features()
    if features is None or features.shape[1] == 0:
        return SeenLabels(n_labels, all_right)
    rows = _rows_to_compare(features, labels, labelled)
    worse = _are_worse_elsewhere(
        predictions[rows],
        labels[rows],
        labelled[rows],
        features[rows],
        numeric=numeric,
    )
    return SeenLabels(n_labels, all_right, worse)


def _are_equal(predicted: AnyArray, truth: AnyArray, *, numeric: bool) -> Mask:
    if not numeric:
        return np.asarray(predicted == truth, dtype=bool)
    truth = np.asarray(truth, dtype=float)
    if len(truth):
        spread = float(np.ptp(truth))
    else:
        spread = 0.0
    difference = np.abs(np.asarray(predicted, dtype=float) - truth)
    return np.asarray(difference <= EQUAL * spread)


def _rows_to_compare(features: Array, labels: AnyArray, labelled: Mask) -> AnyArray:
    """Return the labelled rows and so many others, in an order that their contents decide."""
    order = content_order(number_rows(features), np.asarray(labels).astype(str))
    is_labelled = labelled[order]
    others = order[~is_labelled]
    n_others = max(MOST_COMPARED - int(is_labelled.sum()), 1)
    return np.concatenate([order[is_labelled], others[:n_others]])


def _are_worse_elsewhere(
    predictions: AnyArray, labels: AnyArray, labelled: Mask, features: Array, *, numeric: bool
) -> bool:
    """Return whether predictions are nearer to a forest's at labelled rows than at the others."""
    if len(np.unique(labels[labelled].astype(str))) < 2:
        return False
    if numeric:
        return _are_farther_elsewhere(predictions, labels, labelled, features)
    return _agree_less_elsewhere(predictions, labels, labelled, features)


def _agree_less_elsewhere(
    predictions: AnyArray, labels: AnyArray, labelled: Mask, features: Array
) -> bool:
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(N_TREES, min_samples_leaf=2, oob_score=True, random_state=0)
    forest.fit(features[labelled], labels[labelled].astype(str))
    votes = forest.classes_[np.argmax(forest.oob_decision_function_, axis=1)]
    predicted = predictions.astype(str)
    agrees_inside = votes == predicted[labelled]
    agrees_outside = forest.predict(features[~labelled]) == predicted[~labelled]
    table = [
        [int(agrees_inside.sum()), int((~agrees_inside).sum())],
        [int(agrees_outside.sum()), int((~agrees_outside).sum())],
    ]
    return bool(fisher_exact(table, alternative="greater").pvalue < RARE)


def _are_farther_elsewhere(
    predictions: AnyArray, labels: AnyArray, labelled: Mask, features: Array
) -> bool:
    from sklearn.ensemble import RandomForestRegressor

    truth = labels[labelled].astype(float)
    scale = float(np.abs(truth).max()) or 1.0  # so that no square is too large
    forest = RandomForestRegressor(N_TREES, min_samples_leaf=2, oob_score=True, random_state=0)
    forest.fit(features[labelled], truth / scale)
    predicted = predictions.astype(float) / scale
    gaps_inside = np.abs(forest.oob_prediction_ - predicted[labelled])
    gaps_outside = np.abs(forest.predict(features[~labelled]) - predicted[~labelled])
    gaps_outside = gaps_outside[np.isfinite(gaps_outside)]
    gaps_inside = gaps_inside[np.isfinite(gaps_inside)]
    if not len(gaps_inside) or not len(gaps_outside):
        return False
    return bool(mannwhitneyu(gaps_inside, gaps_outside, alternative="less").pvalue < RARE)
