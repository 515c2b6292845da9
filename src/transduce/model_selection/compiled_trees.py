"""The compiled loops of trees on binned features.

A node looks at one feature at a time, in a histogram that stays in the processor's first cache, so
that no histogram is kept from one node to the next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from transduce.core.types import AnyArray, Array

FEWEST_BINS = 64
MOST_BINS = 256  # an eighth of the rows, if that is between the two
# A score is higher if it is so by more than rounding: of equal ones the first is taken.
LESS = 1.0 - 1e-12
FEW_BINS = 12  # up to so many in a node are sorted; of more all bins are looked through


class Growth(NamedTuple):
    """How trees are grown."""

    fewest: int  # rows of a leaf
    n_tried: int  # features at a split that vary
    penalty: float  # added to the mass of a leaf
    random_cuts: bool  # one cut of each feature at random, instead of the best
    any_gain: bool  # whether the best split is taken even if it gains nothing


class Scratch(NamedTuple):
    """What the search for a split writes to, again and again."""

    histogram: Array  # (bins, k + 2) sums, mass and number of the rows in each bin; 0 in between
    seen: AnyArray  # (bins + 1,) the bins that have a row
    features: AnyArray  # (d,) in the order in which they were drawn last
    left: Array  # (k + 2,) sums of the rows below a cut


@njit(cache=True, nogil=True)
def _draw(state: AnyArray, n: int) -> int:
    """Return a random number below n: splitmix64, the same on every machine."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return int(float(z >> np.uint64(11)) * 2.0**-53 * n)


@njit(cache=True, nogil=True)
def times_drawn(state: AnyArray, n: int, times: int) -> Array:
    """Return how often each of n rows was drawn."""
    counts = np.zeros(n)
    for _ in range(times):
        counts[_draw(state, n)] += 1.0
    return counts


@njit(cache=True, nogil=True)
def write_bins(X: Array, edges: Array, out: AnyArray) -> None:
    """Write how many edges of its feature each number is above, shapes (m, d), (d, 255), (d, m)."""
    for j in range(X.shape[1]):
        edges_of_feature = edges[j]
        for row in range(X.shape[0]):
            x = X[row, j]
            place = 0
            for power in range(7, -1, -1):
                step = 1 << power
                if edges_of_feature[place + step - 1] < x:
                    place += step
            out[j, row] = place


@njit(cache=True, nogil=True)
def _tally(column: AnyArray, rows: AnyArray, sums: Array, scratch: Scratch) -> int:
    """Add up the rows of a node in the bins of a feature.

    Returns how many bins have a row; these are in `scratch.seen`.
    """
    histogram = scratch.histogram
    seen = scratch.seen
    width = sums.shape[1]
    n_seen = 0
    last = 0
    for row in rows:
        b = column[row]
        last = max(last, b)
        # Without a branch, which processors would often guess wrong: written one place ahead.
        seen[n_seen] = b
        n_seen += histogram[b, width] == 0.0
        histogram[b, width] += 1.0
        histogram[b, 0] += sums[row, 0]
        histogram[b, 1] += sums[row, 1]
        for c in range(2, width):  # of several classes only
            histogram[b, c] += sums[row, c]
    if n_seen > FEW_BINS:
        n_seen = 0
        for b in range(last + 1):
            seen[n_seen] = b
            n_seen += histogram[b, width] > 0.0
        return n_seen
    for i in range(1, n_seen):
        b = seen[i]
        place = i
        while place > 0 and seen[place - 1] > b:
            seen[place] = seen[place - 1]
            place -= 1
        seen[place] = b
    return n_seen


@njit(cache=True, nogil=True)
def _best_cut(
    scratch: Scratch, totals: Array, n_seen: int, cut_at: int, growth: Growth
) -> tuple[float, int]:
    """Return the best sum of both sides' scores, and the cut between bins.

    The score of a side is the square of its sums over its mass. Only the cut at `cut_at` is tried
    unless it is -1.
    """
    histogram = scratch.histogram
    seen = scratch.seen
    left = scratch.left
    width = len(totals) - 1
    best = -np.inf
    cut = -1
    first = 0.0  # of what is to be fitted, below the cut
    mass = 0.0
    number = 0.0  # of rows
    left[:] = 0.0
    for i in range(n_seen - 1):
        b = seen[i]
        first += histogram[b, 0]
        mass += histogram[b, width - 1]
        number += histogram[b, width]
        for c in range(1, width - 1):  # of several classes only
            left[c] += histogram[b, c]
        if number < growth.fewest:
            continue
        if cut_at >= 0 and not b <= cut_at < seen[i + 1]:
            continue
        if totals[width] - number < growth.fewest:
            break
        below = first * first
        above = (totals[0] - first) ** 2
        for c in range(1, width - 1):
            below += left[c] * left[c]
            above += (totals[c] - left[c]) ** 2
        mass_above = totals[width - 1] - mass + growth.penalty
        score = below / (mass + growth.penalty) + above / mass_above
        if LESS * score > best:
            best = score
            cut = cut_at
            if cut_at < 0:  # bins that no row is in are shared by both sides
                cut = (seen[i] + seen[i + 1]) // 2
    return best, cut


@njit(cache=True, nogil=True)
def _score(
    column: AnyArray,
    rows: AnyArray,
    sums: Array,
    totals: Array,
    scratch: Scratch,
    growth: Growth,
    state: AnyArray,
) -> tuple[float, int, int]:
    """Return the score of a feature's best cut of a node, the cut, and how many bins have rows."""
    seen = scratch.seen
    n_seen = _tally(column, rows, sums, scratch)
    score = -np.inf
    cut = -1
    if n_seen > 1:
        cut_at = -1
        if growth.random_cuts:
            cut_at = seen[0] + _draw(state, seen[n_seen - 1] - seen[0])
        score, cut = _best_cut(scratch, totals, n_seen, cut_at, growth)
    for i in range(n_seen):
        for c in range(len(totals)):
            scratch.histogram[seen[i], c] = 0.0
    return score, cut, n_seen


@njit(cache=True, nogil=True)
def _make_scratch(features: AnyArray, width: int) -> Scratch:
    """Return scratch arrays for nodes with so many sums and counts."""
    histogram = np.zeros((MOST_BINS, width))
    seen = np.empty(MOST_BINS + 1, np.int64)
    return Scratch(histogram, seen, features.copy(), np.empty(width))


@njit(cache=True, nogil=True)
def first_scores(
    bins: AnyArray, rows: AnyArray, sums: Array, totals: Array, growth: Growth, state: AnyArray
) -> Array:
    """Return the score of the best cut of all rows by each feature, shape (d,).

    The totals of the rows are given.
    """
    scratch = _make_scratch(rows, len(totals))
    scores = np.empty(len(bins))
    for j in range(len(bins)):
        scores[j] = _score(bins[j], rows, sums, totals, scratch, growth, state)[0]
    return scores


@njit(cache=True, nogil=True)
def _add_up(rows: AnyArray, sums: Array, totals: Array) -> bool:
    """Write the totals of a node; return whether all of its rows have the same to be fitted."""
    width = sums.shape[1]
    totals[:] = 0.0
    same = True
    for row in rows:
        for c in range(width):
            totals[c] += sums[row, c]
        for c in range(width - 1):
            # Sums in units of the mass, without a division.
            same &= sums[row, c] * sums[rows[0], -1] == sums[rows[0], c] * sums[row, -1]
    totals[-1] = len(rows)
    return same


@njit(cache=True, nogil=True)
def _search(
    bins: AnyArray,
    rows: AnyArray,
    sums: Array,
    totals: Array,
    scratch: Scratch,
    growth: Growth,
    state: AnyArray,
) -> tuple[float, int, int]:
    """Return gain, feature and cut of the best split of a node, and write its totals.

    The gain is below 0 if there is no split.
    """
    features = scratch.features
    feature = -1
    cut = -1
    same = _add_up(rows, sums, totals)
    if same or len(rows) < 2 * growth.fewest:
        return -1.0, feature, cut
    whole = 0.0
    for c in range(len(totals) - 2):
        whole += totals[c] ** 2
    whole /= totals[-2] + growth.penalty
    best = whole
    if growth.any_gain:
        best = -1.0
    left = len(features)
    n_searched = 0
    while left > 0 and n_searched < growth.n_tried:
        place = _draw(state, left)
        left -= 1
        j = features[place]
        features[place] = features[left]
        features[left] = j
        score, cut_of_j, n_seen = _score(bins[j], rows, sums, totals, scratch, growth, state)
        n_searched += n_seen > 1  # a feature that does not vary is not counted
        if LESS * score > best:
            best = score
            feature = j
            cut = cut_of_j
    if feature < 0:
        return -1.0, feature, cut
    return max(best - whole, 0.0), feature, cut


@njit(cache=True, nogil=True)
def _split_rows(
    column: AnyArray, cut: int, order: AnyArray, spare: AnyArray, start: int, stop: int
) -> int:
    """Put the rows of a leaf at or below a cut first, in place; return where the others begin."""
    middle = start
    n_right = 0
    for i in range(start, stop):
        if column[order[i]] <= cut:
            order[middle] = order[i]
            middle += 1
        else:
            spare[n_right] = order[i]
            n_right += 1
    for i in range(n_right):
        order[middle + i] = spare[i]
    return middle


@njit(cache=True, nogil=True)
def grow(
    bins: AnyArray,
    features: AnyArray,
    rows: AnyArray,
    sums: Array,
    most_leaves: int,
    growth: Growth,
    state: AnyArray,
) -> tuple[AnyArray, AnyArray, Array, Array]:
    """Grow a tree on some features.

    Each split takes the rows of a leaf that are above a cut to a new leaf.
    """
    # Shapes: bins (d, n), rows (m,), sums (n, k + 1): what is to be fitted, and its mass. Returns
    # splits (s, 3) of leaf, feature and cut, the leaf of each of the rows, the sums of the leaves,
    # shape (s + 1, k + 1), and the splits' gains. Loops over a few numbers are compiled in a tenth
    # of the time of slices.
    width = sums.shape[1]
    most = max(min(most_leaves, len(rows) // growth.fewest), 1)
    scratch = _make_scratch(features, width + 1)
    ends = np.zeros((most, 2), np.int64)  # of the rows of each leaf, in their order
    gains = np.empty(most)
    split_by = np.empty(most, np.int64)
    cuts = np.empty(most, np.int64)
    totals = np.empty((most, width + 1))
    splits = np.empty((most - 1, 3), np.int32)
    gained = np.empty(most - 1)
    order = rows.copy()
    spare = np.empty_like(rows)
    ends[0, 1] = len(rows)
    cut = _search(bins, order, sums, totals[0], scratch, growth, state)
    gains[0], split_by[0], cuts[0] = cut
    n_leaves = 1
    leaf = 0
    while n_leaves < most:
        if most_leaves < len(rows):
            leaf = int(np.argmax(gains[:n_leaves]))
        while leaf < n_leaves and gains[leaf] < 0.0:
            leaf += 1
        if leaf == n_leaves:
            break
        feature = split_by[leaf]
        start = ends[leaf, 0]
        stop = ends[leaf, 1]
        splits[n_leaves - 1, 0] = leaf
        splits[n_leaves - 1, 1] = feature
        splits[n_leaves - 1, 2] = cuts[leaf]
        gained[n_leaves - 1] = gains[leaf]
        middle = _split_rows(bins[feature], cuts[leaf], order, spare, start, stop)
        ends[leaf, 1] = middle
        ends[n_leaves, 0] = middle
        ends[n_leaves, 1] = stop
        for side in (leaf, n_leaves):
            rows_of_side = order[ends[side, 0] : ends[side, 1]]
            cut = _search(bins, rows_of_side, sums, totals[side], scratch, growth, state)
            gains[side], split_by[side], cuts[side] = cut
        n_leaves += 1
    leaves = np.zeros(len(bins[0]), np.int64)  # rows that took no part count as of the first
    for number in range(n_leaves):
        for i in range(ends[number, 0], ends[number, 1]):
            leaves[order[i]] = number
    return splits[: n_leaves - 1], leaves, totals[:n_leaves, :width], gained[: n_leaves - 1]


@njit(cache=True, nogil=True)
def add_small_trees(
    bins: AnyArray,
    splits: AnyArray,
    starts: AnyArray,
    values: Array,
    columns: AnyArray,
    out: AnyArray,
) -> None:
    """Add the values of trees of few leaves at rows.

    All rows go at once, split by split. Shapes: (d, m), (k, m).
    """
    leaves = np.empty(bins.shape[1], np.uint8)
    for tree in range(len(columns)):
        leaves[:] = 0
        for s in range(starts[tree], starts[tree + 1]):
            leaf = np.uint8(splits[s, 0])
            bins_of_feature = bins[splits[s, 1]]
            cut = np.uint8(splits[s, 2])
            new = np.uint8(s - starts[tree] + 1)
            for row in range(len(leaves)):
                goes_on = (leaves[row] == leaf) & (bins_of_feature[row] > cut)
                leaves[row] = new if goes_on else leaves[row]
        scores = out[columns[tree]]
        first = starts[tree] + tree
        for row in range(len(leaves)):
            scores[row] += values[first + leaves[row], 0]


@njit(cache=True, nogil=True)
def make_nodes(splits: AnyArray) -> AnyArray:
    """Return feature, last bin that stays, and what is below either side of every split, (s, 4).

    Below is a split, or -1 - leaf. The four lie side by side, so that a step reads one place.
    """
    nodes = np.empty((len(splits), 4), np.int32)
    latest = np.zeros(len(splits) + 1, np.int64)  # side of a split that each leaf is below
    for s in range(len(splits)):
        leaf = splits[s, 0]
        if s > 0:
            nodes[latest[leaf] // 2, 2 + latest[leaf] % 2] = s
        nodes[s, 0] = splits[s, 1]
        nodes[s, 1] = splits[s, 2]
        nodes[s, 2] = -1 - leaf
        nodes[s, 3] = -2 - s
        latest[leaf] = 2 * s
        latest[s + 1] = 2 * s + 1
    return nodes


@njit(cache=True, nogil=True)
def add_large_trees(
    by_row: AnyArray,
    rows: AnyArray,
    trees: tuple[AnyArray, AnyArray, Array],
    first: int,
    last: int,
    out: AnyArray,
) -> None:
    """Add the values of some trees of many leaves at rows, shapes (m, d), (k, m)."""
    # All rows that are not yet at a leaf go one step down before the next step, so that the
    # processor need not wait for one row's. The bins of a row lie side by side.
    nodes, starts, values = trees
    n_rows = len(rows)
    places = np.empty(n_rows, np.int64)
    moving = np.empty(n_rows, np.int64)
    for tree in range(first, last):
        start = starts[tree]
        n_moving = 0
        if starts[tree + 1] > start:
            n_moving = n_rows
        else:
            places[:] = -1
        for i in range(n_moving):
            places[i] = 0
            moving[i] = i
        while n_moving:
            n_left = 0
            for at in range(n_moving):
                i = moving[at]
                node = nodes[start + places[i]]
                place = node[2 + int(by_row[rows[i], node[0]] > node[1])]
                places[i] = place
                moving[n_left] = i
                n_left += place >= 0
            n_moving = n_left
        for i in range(n_rows):
            for c in range(values.shape[1]):
                out[c, rows[i]] += values[start + tree - 1 - places[i], c]
