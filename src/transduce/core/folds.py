"""Folds that do not depend on the order of the rows."""

from __future__ import annotations

import numpy as np

from transduce.core import arrays
from transduce.core.types import AnyArray, Array


def rank_folds(y_l: Array, ties: Array, n_folds: int) -> AnyArray:
    """Return a fold for each labelled row, such that every fold spans the labels.

    Parameters
    ----------
    y_l : array of shape (l,) or (l, c)
        Labels.
    ties : array of shape (l, t)
        What tells rows of equal label apart, whatever their order.
    n_folds : int

    Returns
    -------
    integer array of shape (l,)
        Rows take turns by the rank of their label.

    Examples
    --------
    >>> import numpy as np
    >>> rank_folds(np.array([5.0, 1.0, 3.0, 2.0]), np.zeros((4, 1)), 2)
    array([1, 0, 0, 1])
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

    Parameters
    ----------
    codes : integer array of shape (l,)
        Class of each row; all equal if there are no classes.
    n_folds : int
    random : numpy.random.RandomState

    Returns
    -------
    integer array of shape (l,)
        Rows take turns, class by class: fold sizes differ by one at most, and two rows of a class are in different
        folds before a third is. So a fold holds all rows of a class only if the class has one.

    Examples
    --------
    >>> import numpy as np
    >>> folds = random_folds(np.array([0, 0, 0, 1, 1, 2]), 3, np.random.RandomState(0))
    >>> sorted(folds[:3].tolist()), folds[3] != folds[4]
    ([0, 1, 2], np.True_)
    """
    order = np.lexsort([random.permutation(len(codes)), codes])
    fold = np.empty(len(codes), dtype=int)
    fold[order] = np.arange(len(codes)) % n_folds
    return fold
