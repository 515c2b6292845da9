"""Folds that do not depend on the order of the rows."""

from __future__ import annotations

import numpy as np

from transduce.core import arrays
from transduce.core.types import AnyArray, Array


def rank_folds(y_l: Array, ties: Array, n_folds: int) -> AnyArray:
    """Return a fold for each labelled row, such that every fold spans the labels.

    Shapes: y_l (l,) or (l, c), ties (l, t); returns (l,).
    """
    columns = arrays.to_numpy(y_l).reshape(y_l.shape[0], -1)
    if arrays.is_foreign(ties):  # sorting is stable: by the features first, then by the labels
        by_ties = arrays.to_numpy(arrays.lexsort(ties))
        rank = by_ties[np.lexsort(columns[by_ties].T[::-1])]
        return _take_turns(rank, n_folds)
    rank = np.lexsort([*ties.T[::-1], *columns.T[::-1]])
    return _take_turns(rank, n_folds)


def _take_turns(rank: AnyArray, n_folds: int) -> AnyArray:
    fold = np.empty(len(rank), dtype=int)
    fold[rank] = np.arange(len(rank)) % n_folds
    return fold


def random_folds(codes: AnyArray, n_folds: int, random: np.random.RandomState) -> AnyArray:
    """Return a fold for each labelled row at random, every class spread over the folds as evenly as it can be.

    Shapes: codes (l,); returns (l,).
    """
    order = np.lexsort([random.permutation(len(codes)), codes])
    fold = np.empty(len(codes), dtype=int)
    fold[order] = np.arange(len(codes)) % n_folds
    return fold
