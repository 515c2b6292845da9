"""Trees on binned features, compiled: random forests, extremely randomised trees and boosted trees for blends.

Features are cut into at most 256 bins once, for all trees and folds. A node looks at one feature at a time, in a
histogram that stays in the processor's first cache, so that no histogram is kept from one node to the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numba import njit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from transduce.core import arrays
from transduce.core.checks import check_random_state
from transduce.core.row_order import content_order, number_rows, places_in
from transduce.core.scaling import label_moments
from transduce.core.types import AnyArray, Array

FEWEST_BINS, MOST_BINS = 64, 256  # an eighth of the rows, if that is between them
FEW_ROWS = 30  # below, edges lie in many places between two values, not in the middle alone
LESS = (
    1.0 - 1e-12
)  # a score is higher if it is so by more than rounding: of equal ones the first is taken
FEW_BINS = 12  # up to so many in a node are sorted; of more all bins are looked through
ROWS = 1024  # whose bins stay in the processor's cache
# Of more features boosted trees look at those whose own first cut says most about the visible labels, and every fourth
# tree at all: of 5,000 of which a few count, errors of .95 become .70 and .36; where hundreds count they change by .03.
SCREENED = 150
Fold = tuple[AnyArray, AnyArray]  # visible and hidden labels


# ---------------------------------------------------------------------------------------------------- compiled loops


@njit(cache=True, nogil=True)
def _draw(state, n):  # type: ignore[no-untyped-def]
    """Return a random number below n: splitmix64, the same on every machine."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return int(float(z >> np.uint64(11)) * 2.0**-53 * n)


@njit(cache=True, nogil=True)
def _times_drawn(state, n, times):  # type: ignore[no-untyped-def]
    """Return how often each of n rows was drawn."""
    counts = np.zeros(n)
    for _ in range(times):
        counts[_draw(state, n)] += 1.0
    return counts


@njit(cache=True, nogil=True)
def _bin(X, edges, out):  # type: ignore[no-untyped-def]
    """Write how many edges of its feature each number is above, shapes (m, d), (d, 255), (d, m)."""
    for j in range(X.shape[1]):
        own = edges[j]
        for row in range(X.shape[0]):
            x, at = X[row, j], 0
            for power in range(7, -1, -1):
                step = 1 << power
                at += step if own[at + step - 1] < x else 0
            out[j, row] = at


@njit(cache=True, nogil=True)
def _tally(column, rows, sums, histogram, seen):  # type: ignore[no-untyped-def]
    """Add up the rows of a node in the bins of a feature, and return how many bins have one; these are in `seen`."""
    count, width, last = 0, sums.shape[1], 0
    for row in rows:
        b = column[row]
        last = max(last, b)
        seen[count] = (
            b  # without a branch, which processors would often guess wrong; one place ahead
        )
        count += histogram[b, width] == 0.0
        histogram[b, width] += 1.0
        histogram[b, 0] += sums[row, 0]
        histogram[b, 1] += sums[row, 1]
        for c in range(2, width):  # of several classes only
            histogram[b, c] += sums[row, c]
    if count > FEW_BINS:
        count = 0
        for b in range(last + 1):
            seen[count] = b
            count += histogram[b, width] > 0.0
        return count
    for i in range(1, count):
        b, place = seen[i], i
        while place > 0 and seen[place - 1] > b:
            seen[place] = seen[place - 1]
            place -= 1
        seen[place] = b
    return count


@njit(cache=True, nogil=True)
def _best_cut(room, totals, count, cut_at, fewest, penalty):  # type: ignore[no-untyped-def]
    """Return the best sum of both sides' scores, and the cut between bins; only that at `cut_at` unless it is -1."""
    histogram, seen, _, left = room
    best, cut, width = -np.inf, -1, len(totals) - 1
    first = mass = number = 0.0  # of what is to be fitted, and of rows
    left[:] = 0.0
    for i in range(count - 1):
        b = seen[i]
        first += histogram[b, 0]
        mass += histogram[b, width - 1]
        number += histogram[b, width]
        for c in range(1, width - 1):  # of several classes only
            left[c] += histogram[b, c]
        if number < fewest or (cut_at >= 0 and not b <= cut_at < seen[i + 1]):
            continue
        if totals[width] - number < fewest:
            break
        below, above = first * first, (totals[0] - first) ** 2
        for c in range(1, width - 1):
            below += left[c] * left[c]
            above += (totals[c] - left[c]) ** 2
        score = below / (mass + penalty) + above / (totals[width - 1] - mass + penalty)
        if LESS * score > best:  # bins that no row is in are shared by both sides
            best, cut = score, cut_at if cut_at >= 0 else (seen[i] + seen[i + 1]) // 2
    return best, cut


@njit(cache=True, nogil=True)
def _score(column, rows, sums, totals, room, settings, state):  # type: ignore[no-untyped-def]
    """Return the score of a feature's best cut of a node, the cut, and in how many bins the rows are."""
    fewest, _, penalty, random_cuts, _ = settings
    histogram, seen = room[0], room[1]
    count, score, cut = _tally(column, rows, sums, histogram, seen), -np.inf, -1
    if count > 1:
        at = seen[0] + _draw(state, seen[count - 1] - seen[0]) if random_cuts else -1
        score, cut = _best_cut(room, totals, count, at, fewest, penalty)
    for i in range(count):
        for c in range(len(totals)):
            histogram[seen[i], c] = 0.0
    return score, cut, count


@njit(cache=True, nogil=True)
def _first_scores(bins, rows, sums, totals, settings, state):  # type: ignore[no-untyped-def]
    """Return the score of the best cut of all rows, of given totals, by each feature, shape (d,)."""
    histogram, seen = np.zeros((MOST_BINS, len(totals))), np.empty(MOST_BINS + 1, np.int64)
    room, scores = (histogram, seen, rows, np.empty(len(totals))), np.empty(len(bins))
    for j in range(len(bins)):
        scores[j] = _score(bins[j], rows, sums, totals, room, settings, state)[0]
    return scores


@njit(cache=True, nogil=True)
def _search(bins, rows, sums, totals, room, settings, state):  # type: ignore[no-untyped-def]
    """Return gain, feature and cut of the best split of a node, a gain below 0 if there is none; write its totals."""
    fewest, tried, penalty, _, any_gain = settings
    features = room[2]
    totals[:] = 0.0
    same = True
    for row in rows:
        for c in range(sums.shape[1]):
            totals[c] += sums[row, c]
        for c in range(sums.shape[1] - 1):
            same &= sums[row, c] * sums[rows[0], -1] == sums[rows[0], c] * sums[row, -1]
    totals[-1] = len(rows)
    feature, cut = -1, -1
    if same or len(rows) < 2 * fewest:
        return -1.0, feature, cut
    whole = 0.0
    for c in range(len(totals) - 2):
        whole += totals[c] ** 2
    whole /= totals[-2] + penalty
    best = -1.0 if any_gain else whole
    left, searched = len(features), 0
    while left > 0 and searched < tried:
        place = _draw(state, left)
        left -= 1
        j = features[place]
        features[place], features[left] = features[left], j
        score, own, count = _score(bins[j], rows, sums, totals, room, settings, state)
        searched += count > 1  # a feature that does not vary is not counted
        if LESS * score > best:
            best, feature, cut = score, j, own
    return max(best - whole, 0.0) if feature >= 0 else -1.0, feature, cut


@njit(cache=True, nogil=True)
def _grow(bins, features, rows, sums, most_leaves, settings, state):  # type: ignore[no-untyped-def]
    """Grow a tree on some features: each split takes the rows of a leaf that are above a cut to a new leaf."""
    # Shapes: bins (d, n), rows (m,), sums (n, k + 1): what is to be fitted, and its mass. Returns splits (s, 3) of
    # leaf, feature and cut, the leaf of each of the rows, the sums of the leaves, shape (s + 1, k + 1), and the splits'
    # gains. Loops over a few numbers are compiled in a tenth of the time of slices.
    width, n_leaves = sums.shape[1], 1
    most = max(min(most_leaves, len(rows) // settings[0]), 1)
    histogram, seen = np.zeros((MOST_BINS, width + 1)), np.empty(MOST_BINS + 1, np.int64)
    room = histogram, seen, features.copy(), np.empty(width + 1)
    ends = np.zeros((most, 2), np.int64)
    gains, split_by, cuts = np.empty(most), np.empty(most, np.int64), np.empty(most, np.int64)
    splits, totals = np.empty((most - 1, 3), np.int32), np.empty((most, width + 1))
    gained = np.empty(most - 1)
    order, spare = rows.copy(), np.empty_like(rows)
    ends[0, 1] = len(rows)
    gains[0], split_by[0], cuts[0] = _search(bins, order, sums, totals[0], room, settings, state)
    leaf = 0
    while n_leaves < most:
        if most_leaves < len(rows):
            leaf = int(np.argmax(gains[:n_leaves]))
        while leaf < n_leaves and gains[leaf] < 0.0:
            leaf += 1
        if leaf == n_leaves:
            break
        new, start, stop = n_leaves - 1, ends[leaf, 0], ends[leaf, 1]
        splits[new, 0], splits[new, 1], splits[new, 2] = leaf, split_by[leaf], cuts[leaf]
        gained[new] = gains[leaf]
        column, cut, middle, n_right = bins[split_by[leaf]], cuts[leaf], start, 0
        for i in range(start, stop):
            if column[order[i]] <= cut:
                order[middle] = order[i]
                middle += 1
            else:
                spare[n_right] = order[i]
                n_right += 1
        for i in range(n_right):
            order[middle + i] = spare[i]
        ends[leaf, 1] = ends[n_leaves, 0] = middle
        ends[n_leaves, 1] = stop
        for one in (leaf, n_leaves):
            own = order[ends[one, 0] : ends[one, 1]]
            found = _search(bins, own, sums, totals[one], room, settings, state)
            gains[one], split_by[one], cuts[one] = found
        n_leaves += 1
    leaves = np.zeros(len(bins[0]), np.int64)  # rows that took no part count as of the first
    for one in range(n_leaves):
        for i in range(ends[one, 0], ends[one, 1]):
            leaves[order[i]] = one
    return splits[: n_leaves - 1], leaves, totals[:n_leaves, :width], gained[: n_leaves - 1]


@njit(cache=True, nogil=True)
def _add_small(bins, splits, starts, values, columns, out):  # type: ignore[no-untyped-def]
    """Add the values of trees of few leaves at rows: all rows at once, split by split; shapes (d, m), (k, m)."""
    leaves = np.empty(bins.shape[1], np.uint8)
    for tree in range(len(columns)):
        leaves[:] = 0
        for s in range(starts[tree], starts[tree + 1]):
            own, leaf, cut = bins[splits[s, 1]], np.uint8(splits[s, 0]), np.uint8(splits[s, 2])
            new = np.uint8(s - starts[tree] + 1)
            for row in range(len(leaves)):
                leaves[row] = new if (leaves[row] == leaf) & (own[row] > cut) else leaves[row]
        scores, at = out[columns[tree]], starts[tree] + tree
        for row in range(len(leaves)):
            scores[row] += values[at + leaves[row], 0]


@njit(cache=True, nogil=True)
def _below(splits):  # type: ignore[no-untyped-def]
    """Return for every split what is below it on either side: a split, or -1 - leaf; shape (s, 2)."""
    below, latest = np.empty((len(splits), 2), np.int32), np.zeros(len(splits) + 1, np.int64)
    for s in range(len(splits)):
        leaf = splits[s, 0]
        if s > 0:
            below[latest[leaf] // 2, latest[leaf] % 2] = s
        below[s, 0], below[s, 1] = -1 - leaf, -2 - s
        latest[leaf], latest[s + 1] = 2 * s, 2 * s + 1
    return below


@njit(cache=True, nogil=True)
def _add_large(bins, rows, trees, first, last, out):  # type: ignore[no-untyped-def]
    """Add the values of some trees of many leaves at rows, shapes (d, m), (k, m)."""
    # All rows go one step down before the next step, so that the processor need not wait for one row's.
    splits, starts, values, below = trees
    places = np.empty(len(rows), np.int32)
    for tree in range(first, last):
        start, n_splits = starts[tree], starts[tree + 1] - starts[tree]
        places[:] = 0 if n_splits else -1
        moving = n_splits > 0
        while moving:
            moving = False
            for i in range(len(rows)):
                at = places[i]
                if at >= 0:
                    at += start
                    places[i] = below[at, int(bins[splits[at, 1], rows[i]] > splits[at, 2])]
                    moving |= places[i] >= 0
        for i in range(len(rows)):
            for c in range(values.shape[1]):
                out[c, rows[i]] += values[start + tree - 1 - places[i], c]


# ------------------------------------------------------------------------------------------------------------ trees


@dataclass(frozen=True, eq=False)
class BinnedRows:
    """The edges between bins of every feature, and the bins of the labelled rows."""

    edges: Array  # (d, 255) ascending, infinite where there are fewer
    bins: AnyArray  # (d, n)

    @classmethod
    def of(cls, X: Array) -> BinnedRows:
        """Cut between the values of a feature or, of many, between quantiles."""
        edges = np.full((X.shape[1], MOST_BINS - 1), np.inf)
        most, ordered = min(max(len(X) // 8, FEWEST_BINS), MOST_BINS), np.sort(X.T, axis=1)
        new = ordered[:, 1:] > ordered[:, :-1]
        many = new.sum(axis=1) >= most
        places = np.linspace(0, len(X), most + 1)[1:-1].astype(int)
        edges[many, : most - 1] = _between(ordered[many][:, places - 1], ordered[many][:, places])
        for j in np.flatnonzero(~many):
            own = _between(ordered[j, :-1][new[j]], ordered[j, 1:][new[j]])
            if len(X) < FEW_ROWS:  # random cuts then fall anywhere between two values
                share = np.linspace(0.0, 1.0, MOST_BINS + 1 - len(own))[1:-1]
                own = np.union1d(own, ordered[j, 0] * (1.0 - share) + ordered[j, -1] * share)
            edges[j, : len(own)] = own
        return cls(edges, cls(edges, np.empty(0)).at(X))

    def at(self, X: Array) -> AnyArray:
        """Return the bins of rows (m, d), shape (d, m)."""
        out = np.empty((X.shape[1], len(X)), dtype=np.uint8)
        _bin(X, self.edges, out)
        return out


def _between(low: Array, high: Array) -> Array:
    """Return numbers from `low` to below `high`, in the middle if there is one."""
    middle = low / 2.0 + high / 2.0
    return np.where(middle < high, middle, low)


@dataclass(frozen=True, eq=False)
class GrownTrees:
    """Trees, each a list of splits; a split moves rows of one leaf to a new one."""

    splits: AnyArray  # (s, 3) leaf, feature, and the last bin that stays
    starts: AnyArray  # (t + 1,) of the splits of every tree
    values: Array  # (s + t, k) of the leaves
    columns: AnyArray | None = (
        None  # (t,) the output each tree adds to; None, of many leaves: to all
    )
    below: AnyArray | None = None  # (s, 2) the splits below each, for trees of many leaves

    @classmethod
    def of(cls, grown: list[tuple[AnyArray, Array]], columns: AnyArray | None = None) -> GrownTrees:
        """Put the splits and values of several trees together."""
        starts = np.cumsum([0, *(len(splits) for splits, _ in grown)])
        below = (
            None if columns is not None else np.concatenate([_below(splits) for splits, _ in grown])
        )
        splits, values = (np.concatenate(parts) for parts in zip(*grown, strict=True))
        return cls(splits, starts, values, columns, below)

    def add_to(
        self, out: Array, bins: AnyArray, rows: AnyArray | None = None, tree: int = 0
    ) -> None:
        """Add the values of all trees, or of one tree at some rows, to the outputs (k, m) of rows with bins (d, m)."""
        if self.columns is not None:
            _add_small(bins, self.splits, self.starts, self.values, self.columns, out)
            return
        first, last = (0, len(self.starts) - 1) if rows is None else (tree, tree + 1)
        rows = np.arange(bins.shape[1]) if rows is None else rows
        _add_large(
            bins, rows, (self.splits, self.starts, self.values, self.below), first, last, out
        )


class _TreeEstimator(BaseEstimator):
    """What all of them do around their trees."""

    def fit(self, X: Any, y: Any) -> Self:
        """Grow the trees, for labels (n,) of rows (n, d)."""
        classes = hasattr(self, "predict_proba")
        X, y = validate_data(self, X, y, dtype=np.float64, order="C", y_numeric=not classes)
        # Outputs (k, n) are numbers in units of their spread, or an indicator of each class, of two of the second.
        if classes:
            check_classification_targets(y)
            self.classes_, numbers = np.unique(y, return_inverse=True)
            indicator = np.eye(max(len(self.classes_), 2))[:, numbers]
            self._outputs = indicator[1:] if len(self.classes_) <= 2 else indicator
        else:
            numbers = y
            self._moments = centre, unit = label_moments(y)
            self._outputs = (y[None] - centre) / unit
        self._rows = BinnedRows.of(X)
        # Rows are drawn by what is in them, not by where they stand.
        self._places = places_in(content_order(number_rows(X), numbers))
        self._seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        self._trees, self._base = self._grown(np.arange(len(y)))
        return self

    def _read(self, X: Any) -> Array:
        """Return what the trees say at rows, as users see it."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        out = np.empty((len(self._base), len(X)))
        for part in arrays.blocks(len(X), ROWS):
            out[:, part] = self._said(self._trees, self._base, self._rows.at(X[part]))
        return self._shown(out)

    def _shown(self, outputs: Array) -> Array:
        """Return numbers (m,), or the probabilities of classes (m, c), for outputs (k, m) of the trees."""
        if not hasattr(self, "classes_"):
            return outputs[0] * self._moments[1] + self._moments[0]
        if len(self.classes_) == 1:
            return np.ones((outputs.shape[1], 1))
        return (
            np.vstack([1.0 - outputs, outputs]).T
            if len(outputs) == 1
            else np.ascontiguousarray(outputs.T)
        )

    def _settings(
        self, tried: Any, penalty: float, random_cuts: bool, any_gain: bool
    ) -> tuple[Any, ...]:
        d = len(self._rows.edges)
        count = np.sqrt(d) if tried == "sqrt" else np.ceil(tried * d) if tried <= 1.0 else tried
        return self.min_samples_leaf, min(max(int(count), 1), d), penalty, random_cuts, any_gain


@dataclass(eq=False, repr=False)
class _Boosted(_TreeEstimator):
    """Boosted trees: each is fitted to what the ones before it left, by Newton steps."""

    _: KW_ONLY
    learning_rate: float = 0.08
    n_estimators: int = 400
    max_leaf_nodes: int = 8
    min_samples_leaf: int = 5
    max_features: float = 0.3
    l2_regularization: float = 1.0
    random_state: Any = None

    def _grown(self, rows: AnyArray) -> tuple[GrownTrees, Array]:
        """Return trees fitted to some of the labels, and where their sums begin."""
        outputs, bins, numbers = self._outputs, self._rows.bins, not hasattr(self, "classes_")
        (k, n), base = outputs.shape, outputs[:, rows].mean(axis=1)
        if not numbers:
            base = np.log(np.clip(base, 0.5 / len(rows), 1.0 - 0.5 / len(rows)))
            base -= np.log1p(-np.exp(base)) if k == 1 else 0.0
        raw, sums = np.repeat(base[:, None], n, axis=1), np.ones((n, 2))
        state = np.array([self._seed], dtype=np.uint64)
        settings = self._settings(self.max_features, self.l2_regularization, False, False)
        grown, every = [], np.arange(len(bins))
        best = every
        if len(every) > SCREENED:
            left = np.column_stack(
                [*(outputs - outputs[:, rows].mean(axis=1, keepdims=True)), np.ones(n)]
            )
            totals = np.append(left[rows].sum(axis=0), len(rows))
            scores = _first_scores(bins, rows, left, totals, settings, state)
            best = np.sort(np.argsort(-np.round(scores, 9), kind="stable")[:SCREENED])
        for step in range(self.n_estimators):
            features = every if step % 4 == 3 else best
            shares = raw if numbers else _shares(raw)
            for c in range(k):
                sums[:, 0] = outputs[c] - shares[c]
                if not numbers:
                    sums[:, 1] = np.maximum(shares[c] * (1.0 - shares[c]), 1e-16)
                splits, leaves, totals, _ = _grow(
                    bins, features, rows, sums, self.max_leaf_nodes, settings, state
                )
                values = (
                    self.learning_rate * totals[:, :1] / (totals[:, 1:] + self.l2_regularization)
                )
                raw[c] += values[leaves, 0]
                grown.append((splits, values))
        return GrownTrees.of(grown, np.tile(np.arange(k), self.n_estimators)), base

    def _said(self, trees: GrownTrees, base: Array, bins: AnyArray) -> Array:
        """Return numbers, or shares of classes, at rows, shape (k, m)."""
        raw = np.repeat(base[:, None], bins.shape[1], axis=1)
        trees.add_to(raw, bins)
        return _shares(raw) if hasattr(self, "classes_") else raw

    def answers_in_folds(self, folds: Sequence[Fold]) -> list[Array]:
        """Return answers at the hidden labels of every fold, of trees grown without them."""
        return [
            self._shown(
                self._said(*self._grown(visible), np.ascontiguousarray(self._rows.bins[:, hidden]))
            )
            for visible, hidden in folds
        ]


def _shares(raw: Array) -> Array:
    """Return the share of every class, or of the second of two, shape (k, m)."""
    if len(raw) == 1:
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(raw, -500.0, 500.0))))
    raised = np.exp(raw - raw.max(axis=0))
    return np.asarray(raised / raised.sum(axis=0))


@dataclass(eq=False, repr=False)
class _Forest(_TreeEstimator):
    """The mean of trees that are grown to the end, each from rows drawn with replacement."""

    n_estimators: int = 200
    _: KW_ONLY
    max_features: Any = 1.0
    min_samples_leaf: int = 1
    max_samples: int | None = None
    random_cuts: bool = False  # as of extremely randomised trees
    random_state: Any = None

    def _drawn(self) -> Iterator[tuple[AnyArray, Array]]:
        """Yield the state of chance of each tree, and how often it has drawn every row."""
        n = self._outputs.shape[1]
        for tree in range(self.n_estimators):
            state = np.array([self._seed + tree], dtype=np.uint64)
            yield state, _times_drawn(state, n, self.max_samples or n)[self._places]

    def _grown(self, rows: AnyArray) -> tuple[GrownTrees, Array]:
        settings = self._settings(self.max_features, 0.0, self.random_cuts, True)
        outputs, grown, bins = self._outputs, [], self._rows.bins
        features, importances = np.arange(len(bins)), np.zeros(len(bins))
        for state, times in self._drawn():
            sums = np.column_stack([*(outputs * times), times])
            drawn = np.flatnonzero(times)
            splits, _, totals, gained = _grow(
                bins, features, drawn, sums, len(rows) + 1, settings, state
            )
            grown.append((splits, totals[:, :-1] / totals[:, -1:]))
            importances += np.bincount(splits[:, 1], gained, minlength=len(importances))
        self.feature_importances_ = importances / max(importances.sum(), 1e-300)
        return GrownTrees.of(grown), np.zeros(len(outputs))

    def _said(self, trees: GrownTrees, base: Array, bins: AnyArray) -> Array:
        out = np.zeros((len(base), bins.shape[1]))
        trees.add_to(out, bins)
        return out / self.n_estimators

    def answers_in_folds(self, folds: Sequence[Fold]) -> list[Array]:
        """Return answers at the hidden labels of every fold: of the trees that did not draw them, whatever the fold."""
        bins = self._rows.bins
        total, count = np.zeros(self._outputs.shape), np.zeros(bins.shape[1])
        for tree, (_, times) in enumerate(self._drawn()):
            self._trees.add_to(total, bins, np.flatnonzero(times == 0.0), tree)
            count += times == 0.0
        never = count == 0.0
        if never.any():  # with few labels: the mean of all trees
            total[:, never] = self._said(
                self._trees, self._base, np.ascontiguousarray(bins[:, never])
            )
        shown = self._shown(total / np.maximum(count, 1.0))
        return [shown[hidden] for _, hidden in folds]


class _Numbers(RegressorMixin):
    def predict(self, X: Any) -> Array:
        """Return numbers at rows (m, d)."""
        return self._read(X)


class _Classes(ClassifierMixin):
    def predict(self, X: Any) -> AnyArray:
        """Return classes at rows (m, d)."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes at rows (m, d), shape (m, n_classes)."""
        return self._read(X)


class BoostedRegressor(_Numbers, _Boosted):
    """Boosted trees for numbers."""


class BoostedClassifier(_Classes, _Boosted):
    """Boosted trees for classes."""


class ForestRegressor(_Numbers, _Forest):
    """A random forest for numbers."""


class ForestClassifier(_Classes, _Forest):
    """A random forest, or extremely randomised trees, for classes."""
