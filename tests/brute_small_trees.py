"""The mean of all small trees by its definition: every tree is listed, and weighed by itself.

A tree is None, for a leaf, or a cut with the trees to its left and right. A cut is the number of a
feature and the two values of labelled rows between which it lies.
"""

from __future__ import annotations

from itertools import pairwise
from math import gamma, prod

import numpy as np


def list_cuts(X):
    """Return all cuts of rows (n, d), each with its prior probability."""
    features = [j for j in range(X.shape[1]) if len(set(X[:, j])) > 1]
    cuts = []
    for j in features:
        values = sorted(set(X[:, j]))
        gaps = pairwise(values)
        cuts += [((j, low, high), 1.0 / (len(features) * (len(values) - 1))) for low, high in gaps]
    return cuts


def list_trees(cuts, depth, cut):
    """Return all trees of a depth, each with its prior probability."""
    trees = [(None, 1.0 - cut if depth else 1.0)]
    if depth == 0:
        return trees
    below = list_trees(cuts, depth - 1, cut)
    for one, prior in cuts:
        for left, left_prior in below:
            for right, right_prior in below:
                trees.append(((one, left, right), cut * prior * left_prior * right_prior))
    return trees


def leaf_evidence(classes, a):
    """Return the probability of these classes in a leaf whose shares are drawn with parameters a."""
    counts = [int(np.sum(classes == k)) for k in range(len(a))]
    of_classes = prod(gamma(a[k] + counts[k]) / gamma(a[k]) for k in range(len(a)))
    return gamma(sum(a)) / gamma(sum(a) + len(classes)) * of_classes


def tree_evidence(tree, X, classes, a):
    """Return the probability of the classes of rows (n, d) under a tree."""
    if tree is None:
        return leaf_evidence(classes, a)
    (feature, low, _), left, right = tree
    is_left = X[:, feature] <= low
    return tree_evidence(left, X[is_left], classes[is_left], a) * tree_evidence(
        right, X[~is_left], classes[~is_left], a
    )


def tree_answer(tree, X, classes, row, a):
    """Return what a tree that saw classes of rows (n, d) says at another row."""
    if tree is None:
        counts = np.array([np.sum(classes == k) for k in range(len(a))])
        return (counts + a) / (counts.sum() + np.sum(a))
    (feature, low, high), left, right = tree
    is_left = X[:, feature] <= low
    share = float(np.clip((high - row[feature]) / (high - low), 0.0, 1.0))
    return share * tree_answer(left, X[is_left], classes[is_left], row, a) + (
        1.0 - share
    ) * tree_answer(right, X[~is_left], classes[~is_left], row, a)


def small_tree_answer(X, classes, rows, n_classes, *, cut=0.5, strength=1.0):
    """Return the probabilities of the classes at rows (m, d) from all trees of depth 2."""
    counts = np.array([np.sum(classes == k) for k in range(n_classes)])
    a = strength * (counts + 1.0) / (len(classes) + n_classes)
    trees = list_trees(list_cuts(X), 2, cut)
    weights = np.array([prior * tree_evidence(tree, X, classes, a) for tree, prior in trees])
    answers = np.array(
        [[tree_answer(tree, X, classes, row, a) for row in rows] for tree, _ in trees]
    )
    return np.tensordot(weights / weights.sum(), answers, 1)
