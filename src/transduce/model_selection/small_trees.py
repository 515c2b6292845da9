"""All small trees at once: classes by the mean of trees of at most two cuts on a path.

A tree of depth 0 says the same everywhere. One of depth D asks at which side of a cut a row lies,
and has a tree of depth D - 1 on either side. If the shares of the classes in a leaf come from a
Dirichlet distribution with parameters ``a``, of sum A, then the n labels of a leaf, ``c_k`` of
class k, have the evidence::

    leaf = Gamma(A) / Gamma(A + n) prod_k Gamma(a_k + c_k) / Gamma(a_k)

A node is a leaf with probability ``1 - CUT``, and features, and the cuts of a feature, are equally
likely, so that the evidence of all trees below a node is::

    node_D = (1 - CUT) leaf + CUT sum_s prior_s left_{D-1}(s) right_{D-1}(s)

What a tree says at a row is the mean of the Dirichlet distribution given the labels of its leaf,
and it counts for its part of the sum. So nothing is chosen: a rule that a few labels show clearly
takes all of the weight, and where no rule is clear many trees share it (Buntine, Learning
classification trees, 1992). A cut lies anywhere between two values of the labelled rows, all places
alike, so that a row between them lies to the left with a probability.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
from numba import njit
from scipy.special import gammaln
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from transduce.core.types import AnyArray, Array, Labels, Rows

CUT = 0.5  # prior probability that a node is cut
STRENGTH = 1.0  # labels that the prior of a leaf counts for
CUTS_OF_FEATURE = 40  # at most
CUTS = 800  # at most; of more, those that tell most by themselves
# That count in answers: first cuts, and on either side of each second ones. No other is left out
# where there are fewer.
FIRST_CUTS = 30
SECOND_CUTS = 4
Fold = tuple[AnyArray, AnyArray]  # visible and hidden labels


class Cuts(NamedTuple):
    """Cuts between values of labelled rows, those of a feature in ascending order."""

    feature: AnyArray  # (s,)
    low: Array  # (s,) the values between which each lies
    high: Array  # (s,)
    log_prior: Array  # (s,)

    @classmethod
    def between(cls, X: Array) -> Cuts:
        """Return the cuts of rows (n, d)."""
        lows = []
        highs = []
        for column in X.T:
            values = np.unique(column)
            gaps = np.arange(len(values) - 1)
            if len(gaps) > CUTS_OF_FEATURE:
                gaps = np.linspace(0, len(gaps) - 1, CUTS_OF_FEATURE).round().astype(int)
            lows.append(values[gaps])
            highs.append(values[gaps + 1])
        counts = np.array([len(low) for low in lows])
        feature = np.repeat(np.arange(X.shape[1]), counts)
        log_prior = -np.log(float(np.count_nonzero(counts)) * counts[feature])
        return cls(feature, np.concatenate(lows), np.concatenate(highs), log_prior)

    def only(self, kept: AnyArray) -> Cuts:
        """Return some of the cuts, with the prior that they had."""
        return Cuts(*(part[kept] for part in self))


class PlacedRows(NamedTuple):
    """Where the labelled rows lie among the cuts of each feature that has any."""

    codes: AnyArray  # (n,) their classes
    starts: AnyArray  # (f + 1,) where the cuts of each feature begin
    places: AnyArray  # (f, n) the first cut of the feature that a row lies to the left of
    place_of_cut: AnyArray  # (s, 2) the feature of each cut, by its place, and the cut's among its

    @classmethod
    def of(cls, X: Array, codes: AnyArray, cuts: Cuts) -> PlacedRows:
        """Place rows (n, d)."""
        features, starts, counts = np.unique(cuts.feature, return_index=True, return_counts=True)
        starts = np.append(starts, len(cuts.feature))
        places = np.empty((len(features), len(X)), dtype=np.int64)
        for j, feature in enumerate(features):
            lows = cuts.low[starts[j] : starts[j + 1]]
            places[j] = np.searchsorted(lows, X[:, feature])
        number = np.repeat(np.arange(len(features)), counts)
        place_of_cut = np.column_stack([number, np.arange(len(number)) - starts[number]])
        return cls(codes, starts, places, place_of_cut)


class Evidence(NamedTuple):
    """Logarithms that make up the evidence of a leaf."""

    of_count: Array  # (k, n + 1) of so many labels of each class
    of_size: Array  # (n + 1,) of so many labels in all

    @classmethod
    def of(cls, prior: Array, n_labels: int) -> Evidence:
        """Return those of a Dirichlet prior (k,)."""
        numbers = np.arange(n_labels + 1)
        of_count = gammaln(numbers + prior[:, None]) - gammaln(prior)[:, None]
        total = float(prior.sum())
        return cls(of_count, gammaln(total) - gammaln(numbers + total))


@njit(cache=True, nogil=True)
def is_left_of(placed: PlacedRows, cut: int) -> AnyArray:
    """Return which rows lie to the left of a cut."""
    feature, place = placed.place_of_cut[cut]
    return placed.places[feature] <= place


@njit(cache=True, nogil=True)
def count_left(placed: PlacedRows, rows: AnyArray, n_classes: int) -> AnyArray:
    """Return how many of some rows of each class lie to the left of each cut, shape (s, k)."""
    counts = np.zeros((placed.starts[-1], n_classes), dtype=np.int64)
    for j in range(len(placed.places)):
        first = placed.starts[j]
        last = placed.starts[j + 1]
        for i in rows:
            cut = first + placed.places[j, i]
            if cut < last:
                counts[cut, placed.codes[i]] += 1
        for cut in range(first + 1, last):
            counts[cut] += counts[cut - 1]
    return counts


@njit(cache=True, nogil=True)
def count_all(codes: AnyArray, rows: AnyArray, n_classes: int) -> AnyArray:
    """Return how many of some rows have each class."""
    counts = np.zeros(n_classes, dtype=np.int64)
    for i in rows:
        counts[codes[i]] += 1
    return counts


@njit(cache=True, nogil=True)
def leaf_evidence(counts: AnyArray, evidence: Evidence) -> float:
    """Return the logarithm of the evidence of a leaf with these counts."""
    total = evidence.of_size[counts.sum()]
    for k in range(len(counts)):
        total += evidence.of_count[k, counts[k]]
    return total


@njit(cache=True, nogil=True)
def one_cut_evidence(
    counts: AnyArray, left: AnyArray, log_prior: Array, evidence: Evidence
) -> Array:
    """Return the logarithm of each part of a node's evidence: of every cut, and last of no cut.

    Below a cut there are leaves.
    """
    parts = np.empty(len(left) + 1)
    for s in range(len(left)):
        part = 0.0
        n_left = 0
        n_right = 0
        for k in range(len(counts)):
            right = counts[k] - left[s, k]
            part += evidence.of_count[k, left[s, k]] + evidence.of_count[k, right]
            n_left += left[s, k]
            n_right += right
        part += evidence.of_size[n_left] + evidence.of_size[n_right]
        parts[s] = np.log(CUT) + log_prior[s] + part
    parts[len(left)] = np.log(1.0 - CUT) + leaf_evidence(counts, evidence)
    return parts


@njit(cache=True, nogil=True)
def log_sum(parts: Array) -> float:
    """Return the logarithm of the sum of numbers that are given by their logarithms."""
    largest = parts.max()
    total = 0.0
    for part in parts:
        total += np.exp(part - largest)
    return largest + np.log(total)


@njit(cache=True, nogil=True)
def two_cut_evidence(placed: PlacedRows, log_prior: Array, evidence: Evidence) -> Array:
    """Return the same with trees of one cut below a cut, for all rows."""
    n_classes = len(evidence.of_count)
    n_cuts = len(log_prior)
    rows = np.arange(len(placed.codes))
    counts = count_all(placed.codes, rows, n_classes)
    all_left = count_left(placed, rows, n_classes)
    parts = np.empty(n_cuts + 1)
    for s in range(n_cuts):
        counts_left = all_left[s]
        left_left = count_left(placed, rows[is_left_of(placed, s)], n_classes)
        left = one_cut_evidence(counts_left, left_left, log_prior, evidence)
        right_left = all_left - left_left
        right = one_cut_evidence(counts - counts_left, right_left, log_prior, evidence)
        parts[s] = np.log(CUT) + log_prior[s] + log_sum(left) + log_sum(right)
    parts[n_cuts] = np.log(1.0 - CUT) + leaf_evidence(counts, evidence)
    return parts


@njit(cache=True, nogil=True)
def share_left(value: float, low: float, high: float) -> float:
    """Return the probability that a value lies to the left of a cut."""
    if value <= low:
        return 1.0
    if value >= high:
        return 0.0
    # Half of each, so that no difference is infinite.
    return (0.5 * high - 0.5 * value) / (0.5 * high - 0.5 * low)


@njit(cache=True, nogil=True)
def answer_rows(X: Array, cuts: Cuts, paths: AnyArray, shares: Array, means: Array) -> Array:
    """Return what paths say together at rows (m, d), shape (m, k)."""
    answers = np.zeros((len(X), means.shape[2]))
    for i in range(len(X)):
        for p in range(len(paths)):
            first, side, second = paths[p]
            share = shares[p]
            if first >= 0:
                left = share_left(X[i, cuts.feature[first]], cuts.low[first], cuts.high[first])
                share *= left if side == 0 else 1.0 - left
            if share == 0.0:
                continue
            left = 1.0
            if second >= 0:
                left = share_left(X[i, cuts.feature[second]], cuts.low[second], cuts.high[second])
            for k in range(answers.shape[1]):
                mean = left * means[p, 0, k] + (1.0 - left) * means[p, 1, k]
                answers[i, k] += share * mean
    return answers


def largest_shares(parts: Array, most: int) -> list[tuple[int, float]]:
    """Return the cuts with the largest parts of an evidence, and the share of each among them.

    No cut is -1.
    """
    order = np.argsort(-np.round(parts, 9), kind="stable")[:most]
    shares = np.exp(parts[order] - parts.max())
    shares /= shares.sum()
    cuts = np.where(order == len(parts) - 1, -1, order)
    return list(zip(cuts.tolist(), shares.tolist(), strict=True))


def best_cuts(X: Array, codes: AnyArray, counts: AnyArray, evidence: Evidence) -> Cuts:
    """Return the cuts of rows (n, d) that say most of their classes (n,), if there are many."""
    cuts = Cuts.between(X)
    if len(cuts.feature) <= CUTS:
        return cuts
    placed = PlacedRows.of(X, codes, cuts)
    left = count_left(placed, np.arange(len(codes)), len(counts))
    parts = one_cut_evidence(counts, left, cuts.log_prior, evidence)
    best = np.argsort(-np.round(parts[:-1], 9), kind="stable")[:CUTS]
    return cuts.only(np.sort(best))


class SmallTrees(NamedTuple):
    """The paths of the trees that count, and what each says."""

    cuts: Cuts
    paths: AnyArray  # (p, 3) a first cut, a side of it (0 left, 1 right), a second cut; -1 is none
    shares: Array  # (p,) of the evidence
    means: Array  # (p, 2, k) shares of the classes on either side of the second cut

    @classmethod
    def of(cls, X: Array, codes: AnyArray, n_classes: int) -> SmallTrees:
        """Weigh all trees by rows (n, d) whose classes are coded (n,)."""
        rows = np.arange(len(codes))
        counts = count_all(codes, rows, n_classes)
        prior = STRENGTH * (counts + 1.0) / (len(codes) + n_classes)
        evidence = Evidence.of(prior, len(codes))
        cuts = best_cuts(X, codes, counts, evidence)
        placed = PlacedRows.of(X, codes, cuts)

        def mean(of_class: AnyArray) -> Array:
            return (of_class + prior) / (of_class.sum() + STRENGTH)

        def second_cuts(members: AnyArray) -> Iterator[tuple[int, float, Array, Array]]:
            """Yield cuts of some rows, their shares, and the means left and right of them."""
            in_all = count_all(codes, members, n_classes)
            left = count_left(placed, members, n_classes)
            parts = one_cut_evidence(in_all, left, cuts.log_prior, evidence)
            for cut, share in largest_shares(parts, SECOND_CUTS):
                if cut < 0:
                    yield cut, share, mean(in_all), mean(in_all)
                else:
                    yield cut, share, mean(left[cut]), mean(in_all - left[cut])

        paths = []
        shares = []
        means = []
        parts = two_cut_evidence(placed, cuts.log_prior, evidence)
        for first, share_of_first in largest_shares(parts, FIRST_CUTS):
            if first < 0:
                paths.append((first, 0, -1))
                shares.append(share_of_first)
                means.append((mean(counts), mean(counts)))
                continue
            is_left = is_left_of(placed, first)
            for side, members in enumerate((rows[is_left], rows[~is_left])):
                for second, share, mean_left, mean_right in second_cuts(members):
                    paths.append((first, side, second))
                    shares.append(share_of_first * share)
                    means.append((mean_left, mean_right))
        return cls(cuts, np.array(paths), np.array(shares), np.array(means))

    def answer(self, X: Array) -> Array:
        """Return the probabilities of the classes at rows (m, d), shape (m, k)."""
        answers = answer_rows(X, self.cuts, self.paths, self.shares, self.means)
        return np.asarray(answers / answers.sum(axis=1, keepdims=True))


class SmallTreesClassifier(ClassifierMixin, BaseEstimator):
    """The mean of all trees of at most two cuts on a path, weighted by their evidence."""

    def fit(self, X: Rows, y: Labels) -> Self:
        """Weigh all trees by labels (n,) of rows (n, d)."""
        X, y = validate_data(self, X, y, dtype=np.float64, order="C")
        check_classification_targets(y)
        self.classes_, self._codes = np.unique(y, return_inverse=True)
        self._X = X
        self._trees = SmallTrees.of(X, self._codes, len(self.classes_))
        return self

    def predict_proba(self, X: Rows) -> Array:
        """Return the probabilities (m, c) of the classes."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        return self._trees.answer(X)

    def predict(self, X: Rows) -> AnyArray:
        """Return the most probable classes (m,)."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def answers_in_folds(self, folds: Sequence[Fold]) -> list[Array]:
        """Return answers at the hidden labels of every fold, of trees that did not see them."""
        n_classes = len(self.classes_)
        answers = []
        for visible, hidden in folds:
            trees = SmallTrees.of(self._X[visible], self._codes[visible], n_classes)
            answers.append(trees.answer(self._X[hidden]))
        return answers
