"""The tree kernel: in what share of random trees, grown without a label, two rows fall into the same leaf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numba import njit
from scipy.stats import rankdata

from transduce.core.types import AnyArray, Array

if TYPE_CHECKING:
    from sklearn.ensemble import RandomTreesEmbedding

N_TREES, DEPTH, MAX_ROWS = 100, 5, 1000


@dataclass(frozen=True)
class TreeKernel:
    """A forest grown on the features of all rows.

    The trees see ranks, not values: an outlier does not take every split, and no digit is lost where scikit-learn's
    trees round to single precision. They are grown on sorted rows, so that the order of the rows does not matter.
    """

    forest: RandomTreesEmbedding
    values: tuple[Array, ...]
    ranks: tuple[Array, ...]

    @classmethod
    def grow(cls, X: Array) -> TreeKernel:
        """Grow the trees on rows (n, d), labelled and unlabelled: on all, or on `MAX_ROWS` spread evenly."""
        from sklearn.ensemble import RandomTreesEmbedding

        ordered = X[np.lexsort(X.T[::-1])]
        if len(ordered) > MAX_ROWS:
            ordered = ordered[np.linspace(0, len(X) - 1, MAX_ROWS).round().astype(int)]
        values, ranks = [], []
        for column in ordered.T:
            found, first = np.unique(column, return_index=True)
            values.append(found)
            ranks.append(rankdata(column)[first] / len(column))
        forest = RandomTreesEmbedding(N_TREES, max_depth=DEPTH, random_state=0)
        kernel = cls(forest, tuple(values), tuple(ranks))
        forest.fit(kernel._to_ranks(ordered))
        return kernel

    def leaves(self, X: Array) -> AnyArray:
        """Return the leaf of each row (n, d) in each tree, shape (n, N_TREES)."""
        if len(X) == 0:
            return np.empty((0, N_TREES), dtype=np.int16)
        ranks = self._to_ranks(X).astype(np.float32)
        # Tree by tree: the forest's own method spends more time on its preparations than on the trees.
        return np.column_stack([tree.tree_.apply(ranks) for tree in self.forest.estimators_]).astype(np.int16)

    def _to_ranks(self, X: Array) -> Array:
        columns = zip(X.T, self.values, self.ranks, strict=True)
        return np.column_stack([np.interp(column, values, ranks) for column, values, ranks in columns])


@njit(cache=True, nogil=True)
def shared_leaves(one: AnyArray, other: AnyArray) -> Array:
    """Return the share of trees in which rows (n, t) and rows (k, t) have the same leaf, shape (n, k)."""
    shares = np.empty((len(one), len(other)))
    n_trees = one.shape[1]
    for i in range(len(one)):
        for j in range(len(other)):
            count = 0
            for tree in range(n_trees):
                count += one[i, tree] == other[j, tree]
            shares[i, j] = count / n_trees
    return shares
