"""Folds that do not depend on the order of the rows."""

from __future__ import annotations

import numpy as np

from transduce._typing import AnyArray, Array


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
    columns = y_l.reshape(len(y_l), -1)
    rank = np.lexsort([*ties.T[::-1], *columns.T[::-1]])
    fold = np.empty(len(y_l), dtype=int)
    fold[rank] = np.arange(len(y_l)) % n_folds
    return fold
