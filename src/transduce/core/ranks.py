"""Ranks: which score is the threshold at a level, folds by rank, trees on ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from transduce.core.types import AnyArray, Array


def nonconformity_rank(confidence: float, n: int) -> int:
    """Return how many of `n` rows must be at least as nonconforming for a label to be kept."""
    # It is kept when its p-value (1 + count) / (n + 1) exceeds 1 - confidence; 0 keeps all labels.
    # 1 - 0.9 is a hair below 0.1 in floating point: without the 1e-12, p = 0.1 would exceed it.
    return int(np.floor((1.0 - confidence + 1e-12) * (n + 1)))


def p_values(
    above: Any,
    tied: Any,
    n: Any,
    tau: Any = 1.0,
) -> Any:
    """Return p-values from counts among `n` labelled rows."""
    return (above + tau * (tied + 1.0)) / (n + 1.0)


def calibration_rank(confidence: float, n_calibration: int) -> int:
    """Return which calibration score is the threshold: ``ceil((c + 1) confidence)``."""
    return n_calibration + 1 - nonconformity_rank(confidence, n_calibration)


def fewest_calibration(confidence: float, factor: float = 1.0) -> int:
    """Return the fewest calibration labels that a level takes: ``c / (c + 1) >= confidence``.

    They support odds that are off by a factor, too.
    """
    if factor > 1.0:
        return int(np.ceil(factor**2 * confidence / (1.0 - confidence) - 1e-9))
    n_calibration = max(int(np.floor(confidence / (1.0 - confidence))) - 1, 1)
    while nonconformity_rank(confidence, n_calibration) == 0:
        n_calibration += 1
    return n_calibration


def rank_folds(y_l: Array, ties: Array, n_folds: int) -> AnyArray:
    """Return a fold for each labelled row (l,), such that every fold spans the labels.

    Shapes: y_l (l, c), ties (l, t).
    """
    from transduce.core import arrays  # brings scikit-learn, for which help does not wait

    columns = arrays.to_numpy(y_l).reshape(y_l.shape[0], -1)
    # Sorting is stable: by the features first, then by the labels.
    by_ties = arrays.to_numpy(arrays.lexsort(ties))
    order = by_ties[np.lexsort(columns[by_ties].T[::-1])]
    return np.argsort(order) % n_folds


def random_folds(codes: AnyArray, n_folds: int, random: np.random.RandomState) -> AnyArray:
    """Return a fold for each labelled row (l,) at random, classes spread evenly."""
    order = np.lexsort([random.permutation(len(codes)), codes])
    return np.argsort(order) % n_folds


def random_trees(
    ranks: Array,
    number: int,
    *,
    depth: int,
    seed: int,
    fewest: int = 1,
) -> list[Any]:
    """Return trees that split rows (n, d) at random.

    They are those of scikit-learn's RandomTreesEmbedding, in half its time.
    """
    from sklearn import config_context
    from sklearn.tree import ExtraTreeRegressor

    y = np.random.RandomState(seed).uniform(size=len(ranks))
    ranks = ranks.astype(np.float32)
    random = np.random.RandomState(seed)
    trees = []
    settings = {
        "max_features": 1,
        "max_depth": depth,
        "min_samples_leaf": fewest,
        "random_state": random,
    }
    with config_context(
        skip_parameter_validation=True
    ):  # which would take three times as long as the trees
        for tree_seed in random.randint(np.iinfo(np.int32).max, size=number):
            random.seed(tree_seed)
            trees.append(ExtraTreeRegressor(**settings).fit(ranks, y, check_input=False).tree_)
    return trees


def leaves_of(trees: list[Any], ranks: Array) -> AnyArray:
    """Return the leaf of each row (n, d) in each of t trees, shape (n, t)."""
    ranks = ranks.astype(np.float32)
    return np.column_stack([tree.apply(ranks) for tree in trees])
