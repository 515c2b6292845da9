"""Predictions that were made elsewhere, without the labels, in a column of the table.

Numbers are corrected: every method is fitted to the labels minus the prediction, which is known at
every row and saw no label, and the prediction is added again. Intervals hold as without it. Classes
get one more member of the blend: how probable each class is where a class was predicted, counted
at the labelled rows. In both cases the column stays a feature.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin

from transduce.app.filling.options import Options
from transduce.app.filling.plan import is_blended
from transduce.app.tables.columns import Target, check_columns
from transduce.app.tables.features import Features
from transduce.conformal.seen_labels import find_seen_labels
from transduce.core.types import AnyArray, Array, Labels, Rows
from transduce.core.words import counted, option

MEMBER = "given_predictions"  # what the member of a blend is called
NO_PREDICTION = "(no prediction)"  # the class of a row for which none was made
MOST_UNKNOWN = 50  # predicted classes that no label has, beyond which a column holds no classes
PSEUDO_LABELS = 2.0  # how many labels the share of right predictions counts as in each class


def read_predictions(frame: pd.DataFrame, target: Target, options: Options) -> Target:
    """Return the predictions at rows of a table, read as the labels are."""
    check_columns(frame, [options.predictions])
    column = options.clean(frame)[options.predictions]
    return target.read(pd.DataFrame({target.name: column}))


def read_offset(frame: pd.DataFrame, target: Target, options: Options) -> Array | None:
    """Return the predicted number at each row (n,), which labels are corrected by; None if none is.

    A ValueError says what to do if one is missing: there is nothing to correct at such a row.
    """
    if options.predictions is None or target.task != "regression":
        return None
    predicted = read_predictions(frame, target, options)
    numbers = np.asarray(predicted.labels, dtype=float)
    unknown = predicted.missing | ~np.isfinite(numbers)
    if unknown.any():
        first = int(np.flatnonzero(unknown)[0]) + 1
        raise ValueError(
            f"Column {options.predictions!r} has no number at "
            f"{counted(int(unknown.sum()), 'row')}, such as row {first:,}: numbers are corrected "
            f"at every row. Add them, or leave out {option('predictions')}, and the column is a "
            "feature."
        )
    return numbers


def notes_on_predictions(
    frame: pd.DataFrame,
    target: Target,
    features: Features,
    options: Options,
    offset: Array | None,
) -> list[str]:
    """Return what becomes of given predictions, and whether they seem to know the labels.

    An offset is what labels were corrected by.
    """
    if options.predictions is None:
        return []
    name = options.predictions
    if target.task == "regression":
        notes = [f"Predictions made elsewhere in column {name!r}, corrected."]
        if offset is None:
            notes = [
                f"Predictions made elsewhere in column {name!r} are too far from the labels to be "
                "corrected: they are a feature."
            ]
    elif is_blended(options):
        notes = [f"Predictions made elsewhere in column {name!r}, corrected as one more method."]
    else:
        notes = [
            f"Predictions made elsewhere in column {name!r} are a feature: one method is asked."
        ]
    unseen, unlabelled = options.design.bind(target.missing, frame).compared_rows(target.missing)
    rows = np.concatenate([unseen, unlabelled])
    predicted = read_predictions(frame, target, options)
    other_features = [place for place, origin in enumerate(features.origins) if origin != name]
    seen_labels = find_seen_labels(
        predicted.labels[rows],
        target.labels[rows],
        ~target.missing[rows],
        lambda: np.asarray(features.matrix[rows][:, other_features]),
        numeric=target.task == "regression",
    )
    sentence = seen_labels.describe(f"Name the rows that it has seen with {option('seen')}.")
    if sentence:
        notes.append(sentence)
    return notes


# ----------------------------------------------------------------------------------------- classes


@dataclass(eq=False, repr=False)
class PredictedClasses(ClassifierMixin, BaseEstimator):
    """How probable each class is where a class was predicted, from counts at the labelled rows.

    Parameters
    ----------
    places : list of int
        The features that the predicted class became.
    keys : array of shape (q, p)
        These features at a row of each predicted class.
    predicted : list of length q
        The predicted classes.
    classes : list
        All classes of the labels, sorted.

    Notes
    -----
    Where class f was predicted, class k has probability ``(n_fk + 2 p_fk) / (n_f + 2)``. Before any
    count, ``p_ff`` is the share of right predictions over all classes, and other classes have the
    rest in proportion to how frequent they are.
    """

    _: KW_ONLY
    places: list[int]
    keys: AnyArray
    predicted: list[Hashable]
    classes: list[Hashable]

    def fit(self, X: Rows, y: Labels) -> Self:
        """Count the classes (l,) of labelled rows (l, d) at each predicted class."""
        labels = np.asarray(y)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        rows = self._find(X)
        own = self._codes_of_predicted(rows, codes)
        n_classes = len(self.classes_)
        shares = np.bincount(codes, minlength=n_classes) / len(codes)
        has_class = own[rows] >= 0
        n_right = int(np.sum(own[rows][has_class] == codes[has_class]))
        right = (n_right + 1.0) / (int(has_class.sum()) + 2.0)
        prior = np.tile(shares, (len(own), 1))
        for key in np.flatnonzero(own >= 0):
            others = shares.copy()
            others[own[key]] = 0.0
            prior[key] = (1.0 - right) * others / max(float(others.sum()), 1e-12)
            prior[key, own[key]] = right
        counts = np.zeros((len(own), n_classes))
        np.add.at(counts, (rows, codes), 1.0)
        smoothed = counts + PSEUDO_LABELS * prior
        self.probabilities_ = smoothed / smoothed.sum(axis=1, keepdims=True)
        return self

    def predict_proba(self, X: Rows) -> Array:
        """Return the probability of every class at rows (m, d), shape (m, n_classes)."""
        return np.asarray(self.probabilities_[self._find(X)])

    def predict(self, X: Rows) -> AnyArray:
        """Return the likeliest class at rows (m, d), shape (m,)."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def _find(self, X: Rows) -> AnyArray:
        """Return which predicted class rows (m, d) have; the last number where none is known."""
        features = np.round(np.asarray(X, dtype=float)[:, self.places], 6)
        known = {key: number for number, key in enumerate(map(tuple, np.round(self.keys, 6)))}
        return np.array([known.get(key, len(known)) for key in map(tuple, features)], dtype=int)

    def _codes_of_predicted(self, rows: AnyArray, codes: AnyArray) -> AnyArray:
        """Return the number of each predicted class among those of the labels; -1 if it has none.

        Labels are the classes themselves, or, inside of another estimator, their numbers: whichever
        the predictions agree with more often.
        """
        by_name = {label: code for code, label in enumerate(self.classes_.tolist())}
        named = [by_name.get(label, -1) for label in self.predicted]
        numbers = {label: number for number, label in enumerate(self.classes)}
        numbered = [by_name.get(numbers.get(label, -1), -1) for label in self.predicted]
        readings = [np.array([*reading, -1]) for reading in (named, numbered)]
        agreement = [int(np.sum(reading[rows] == codes)) for reading in readings]
        return readings[int(np.argmax(agreement))]


def member_for_classes(
    frame: pd.DataFrame, target: Target, features: Features, options: Options
) -> dict[str, PredictedClasses]:
    """Return one more member of a blend, by its name.

    There is none for numbers, nor for a column that is no feature.
    """
    if options.predictions is None or target.task != "classification":
        return {}
    places = [
        place for place, origin in enumerate(features.origins) if origin == options.predictions
    ]
    read = read_predictions(frame, target, options)
    cells = np.where(read.missing, NO_PREDICTION, read.labels)
    codes, predicted = pd.factorize(pd.Series(cells, dtype=object))
    classes = sorted(set(target.known.tolist()))
    n_unknown = len(set(predicted.tolist()) - set(classes))
    if n_unknown > MOST_UNKNOWN:
        raise ValueError(
            f"Column {options.predictions!r} has {n_unknown:,} values that are none of the "
            f"{len(classes)} classes of {target.name!r}: predictions are classes. Leave out "
            f"{option('predictions')}, and the column is a feature."
        )
    if not places:
        return {}
    first = np.array([np.flatnonzero(codes == code)[0] for code in range(len(predicted))])
    keys = np.round(features.matrix[first][:, places], 6)
    _, different = np.unique(keys, axis=0, return_index=True)
    different = np.sort(different)  # rare classes may have become one category
    member = PredictedClasses(
        places=places,
        keys=keys[different],
        predicted=predicted[different].tolist(),
        classes=classes,
    )
    return {MEMBER: member}
