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
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin

from transduce.app.filling.options import Options
from transduce.app.filling.plan import is_blended
from transduce.app.tables.column_names import check_columns
from transduce.app.tables.columns import Target
from transduce.app.tables.features import Features
from transduce.app.tables.probabilities import Probabilities, read_probabilities
from transduce.conformal.seen_labels import find_seen_labels
from transduce.core.types import AnyArray, Array, Labels, Mask, Rows
from transduce.core.words import counted, option

MEMBER = "given_predictions"  # what the member of a blend is called
NO_PREDICTION = "(no prediction)"  # the class of a row for which none was made
MOST_UNKNOWN = 50  # predicted classes that no label has, beyond which a column holds no classes
LEAST_SHARE = 1e-3  # what a predicted probability counts as, if it is smaller
SAME_SHARE = 1e-6  # probabilities that differ by less are the same
PSEUDO_LABELS = 2.0  # how many labels the share of right predictions counts as in each class


def read_predictions(frame: pd.DataFrame, target: Target, options: Options) -> Target:
    """Return the predictions at rows of a table, read as the labels are."""
    check_columns(frame, options.predicted)
    if len(options.predicted) == 1:
        column = options.clean(frame)[options.predicted[0]]
    else:
        column = _read_probabilities(frame, options).likeliest.set_axis(frame.index)
    return target.read(pd.DataFrame({target.name: column}))


def _read_probabilities(frame: pd.DataFrame, options: Options) -> Probabilities:
    """Return how probable each class is at rows of a table, from one column for each."""
    cleaned = options.clean(frame)
    return read_probabilities([cleaned[name] for name in options.predicted])


def read_offset(frame: pd.DataFrame, target: Target, options: Options) -> Array | None:
    """Return the predicted number at each row (n,), which labels are corrected by; None if none is.

    A ValueError says what to do if one is missing: there is nothing to correct at such a row.
    """
    if not options.predicted or target.task != "regression":
        return None
    if len(options.predicted) > 1:
        raise ValueError(
            f"{target.name!r} holds numbers, and {option('predictions')} names "
            f"{len(options.predicted)} columns: name the one that holds the predicted number."
        )
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
    if not options.predicted:
        return []
    name = options.predictions
    where = f"column {name!r}"
    if len(options.predicted) > 1:
        where = "columns " + ", ".join(map(repr, options.predicted))
    if target.task == "regression":
        notes = [f"Predictions made elsewhere in {where}, corrected."]
        if offset is None:
            notes = [
                f"Predictions made elsewhere in {where} are too far from the labels to be "
                "corrected: they are a feature."
            ]
    elif is_blended(options):
        notes = [f"Predictions made elsewhere in {where}, corrected as one more method."]
    else:
        notes = [f"Predictions made elsewhere in {where} are a feature: one method is asked."]
    unseen, unlabelled = options.design.bind(target.missing, frame).compared_rows(target.missing)
    rows = np.concatenate([unseen, unlabelled])
    predicted = read_predictions(frame, target, options)
    other_features = [
        place for place, origin in enumerate(features.origins) if origin not in options.predicted
    ]
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
        own_codes = self._codes_of_predicted(rows, codes)
        n_classes = len(self.classes_)
        shares = np.bincount(codes, minlength=n_classes) / len(codes)
        has_class = own_codes[rows] >= 0
        n_right = int(np.sum(own_codes[rows][has_class] == codes[has_class]))
        right = (n_right + 1.0) / (int(has_class.sum()) + 2.0)
        prior = np.tile(shares, (len(own_codes), 1))
        for key in np.flatnonzero(own_codes >= 0):
            others = shares.copy()
            others[own_codes[key]] = 0.0
            prior[key] = (1.0 - right) * others / max(float(others.sum()), 1e-12)
            prior[key, own_codes[key]] = right
        counts = np.zeros((len(own_codes), n_classes))
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
        numbers = {key: number for number, key in enumerate(map(tuple, np.round(self.keys, 6)))}
        return np.array([numbers.get(key, len(numbers)) for key in map(tuple, features)], dtype=int)

    def _codes_of_predicted(self, rows: AnyArray, codes: AnyArray) -> AnyArray:
        """Return the number of each predicted class among the labels; -1 if it has none."""
        codes_of_keys = codes_of_predicted(self.predicted, self.classes, self.classes_, rows, codes)
        return np.append(codes_of_keys, -1)


def codes_of_predicted(
    predicted: list[Hashable],
    classes: list[Hashable],
    labels: AnyArray,
    rows: AnyArray,
    codes: AnyArray,
) -> AnyArray:
    """Return the number of each predicted class (q,) among the labels; -1 if it has none.

    Labels are the classes themselves, or, inside of another estimator, their numbers: whichever
    the predictions (l,) agree with more often at labelled rows, whose labels have the codes (l,).
    """
    by_name = {label: code for code, label in enumerate(labels.tolist())}
    named = [by_name.get(label, -1) for label in predicted]
    numbers = {label: number for number, label in enumerate(classes)}
    numbered = [by_name.get(numbers.get(label, -1), -1) for label in predicted]
    readings = [np.array([*reading, -1]) for reading in (named, numbered)]
    agreement = [int(np.sum(reading[rows] == codes)) for reading in readings]
    return readings[int(np.argmax(agreement))][:-1]


@dataclass(eq=False, repr=False)
class PredictedProbabilities(ClassifierMixin, BaseEstimator):
    """How probable each class is where probabilities were predicted, calibrated by the labels.

    Parameters
    ----------
    places : list of int
        The feature that each column of probabilities became.
    slopes, intercepts : array of shape (q,)
        A probability is ``slope * feature + intercept``.
    predicted : list of length q
        The class of each column.
    classes : list
        All classes of the labels, sorted.

    Notes
    -----
    With the predicted probability ``p_k`` of a class, its corrected one is in proportion to
    ``p_k ** t * exp(b_k)``, where ``t`` and ``b`` make the labels likeliest; without labels ``t``
    is 1 and ``b`` is 0 (a normal prior of ``log t`` and of ``b_k / 2``).
    """

    _: KW_ONLY
    places: list[int]
    slopes: Array
    intercepts: Array
    predicted: list[Hashable]
    classes: list[Hashable]

    def fit(self, X: Rows, y: Labels) -> Self:
        """Correct probabilities by the classes (l,) of labelled rows (l, d)."""
        labels = np.asarray(y)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        shares = self._read(X)
        likeliest = shares.argmax(axis=1)
        self.codes_ = codes_of_predicted(
            self.predicted, self.classes, self.classes_, likeliest, codes
        )
        logs = self._logarithms(shares)
        rows = np.arange(len(codes))
        start = np.zeros(1 + len(self.classes_))
        hits = np.zeros_like(logs)
        hits[rows, codes] = 1.0

        def loss(settings: Array) -> tuple[float, Array]:
            power = np.exp(settings[0])
            likelihood = log_softmax(power * logs + settings[1:], axis=1)
            surplus = np.exp(likelihood) - hits
            prior = 0.5 * settings[0] ** 2 + np.sum(settings[1:] ** 2) / 8.0
            slope = power * np.sum(surplus * logs) + settings[0]
            slopes = surplus.sum(axis=0) + settings[1:] / 4.0
            return prior - float(likelihood[rows, codes].sum()), np.append(slope, slopes)

        solution = minimize(
            loss,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(-5.0, 5.0)] * len(start),
        )
        self.settings_ = solution.x
        return self

    def predict_proba(self, X: Rows) -> Array:
        """Return the probability of every class at rows (m, d), shape (m, n_classes)."""
        logs = self._logarithms(self._read(X))
        corrected = np.exp(self.settings_[0]) * logs + self.settings_[1:]
        return np.exp(log_softmax(corrected, axis=1))

    def predict(self, X: Rows) -> AnyArray:
        """Return the likeliest class at rows (m, d), shape (m,)."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def _read(self, X: Rows) -> Array:
        """Return the predicted probabilities of rows (m, d), shape (m, q)."""
        features = np.asarray(X, dtype=float)[:, self.places]
        return features * self.slopes + self.intercepts

    def _logarithms(self, shares: Array) -> Array:
        """Return logarithms of the probabilities of the labels' classes, shape (m, n_classes)."""
        known = np.full((len(shares), len(self.classes_)), LEAST_SHARE)
        for place, code in enumerate(self.codes_):
            if code >= 0:
                known[:, code] = np.clip(shares[:, place], LEAST_SHARE, 1.0)
        return np.log(known / known.sum(axis=1, keepdims=True))


def _member_for_probabilities(
    frame: pd.DataFrame, target: Target, features: Features, options: Options
) -> dict[str, PredictedClasses | PredictedProbabilities]:
    """Return one more member of a blend for columns of probabilities.

    There is none where a column is no feature, or not one that tells its numbers.
    """
    probabilities = _read_probabilities(frame, options)
    places = []
    slopes = []
    intercepts = []
    for name, shares in zip(options.predicted, probabilities.shares.T, strict=True):
        known = np.isfinite(shares)
        if not known.any():
            raise ValueError(f"Column {name!r} holds no probability.")
        line = _line_of_feature(features, name, shares, known)
        if line is None:
            return {}
        places.append(line[0])
        slopes.append(line[1])
        intercepts.append(line[2])
    named = target.read(pd.DataFrame({target.name: probabilities.classes}))
    member = PredictedProbabilities(
        places=places,
        slopes=np.array(slopes),
        intercepts=np.array(intercepts),
        predicted=list(named.labels),
        classes=sorted(set(target.known.tolist())),
    )
    return {MEMBER: member}


def _line_of_feature(
    features: Features, name: Hashable, shares: Array, known: Mask
) -> tuple[int, float, float] | None:
    """Return a feature's place, and the slope and intercept that make it a column's numbers (n,).

    None if no feature is that column on another scale. A constant column needs no feature.
    """
    mean = float(shares[known].mean())
    if np.ptp(shares[known]) < SAME_SHARE:
        return 0, 0.0, mean
    for place, origin in enumerate(features.origins):
        if origin != name:
            continue
        feature = np.asarray(features.matrix[:, place], dtype=float)[known]
        centred = feature - feature.mean()
        spread = float(centred @ centred)
        if spread == 0.0:
            continue
        slope = float(centred @ (shares[known] - mean)) / spread
        intercept = mean - slope * float(feature.mean())
        if np.allclose(slope * feature + intercept, shares[known], atol=SAME_SHARE):
            return place, slope, intercept
    return None


def member_for_classes(
    frame: pd.DataFrame, target: Target, features: Features, options: Options
) -> dict[str, PredictedClasses | PredictedProbabilities]:
    """Return one more member of a blend, by its name.

    There is none for numbers, nor for a column that is no feature.
    """
    if not options.predicted or target.task != "classification":
        return {}
    if len(options.predicted) > 1:
        return _member_for_probabilities(frame, target, features, options)
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
