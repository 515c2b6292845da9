"""Weights of a blend: a convex combination with the smallest out-of-fold error, pulled towards equal weights."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from transduce.core.types import Array, Mask


def simplex_weights(errors: Array, pull: float = 0.0) -> Array:
    """Return the weights, positive or zero with sum 1, for which the error of the blend is smallest.

    Shapes: errors (r, k); returns (k,).

    Notes
    -----
    On the simplex ``w - 1/k = (I - 11'/k) w``, so that the penalty is k more rows of errors. Non-negative least squares
    with one more row c 1' and target c finds u = s w with ``s^2 q + c^2 (s - 1)^2`` smallest, where q is the objective
    at w; at the best s this is ``c^2 q / (q + c^2)``, which increases with q. So w = u / sum(u) is exact for any c.
    """
    k = errors.shape[1]
    rows = np.vstack([errors, np.sqrt(pull) * (np.eye(k) - 1.0 / k)])
    size = float(np.abs(rows).max())
    if size == 0.0 or k == 1:
        return np.full(k, 1.0 / k)
    rows = rows / size
    c = float(np.sqrt(np.mean(np.sum(rows**2, axis=0))))
    target = np.append(np.zeros(len(rows)), c)
    found = nnls(np.vstack([rows, np.full(k, c)]), target)[0]
    return found / found.sum()


def shrunk_weights(errors: Array, n_labels: int) -> Array:
    """Return weights that minimise the blend's error out of fold, nearer to equal weights with fewer labels.

    Shapes: errors (r, k); returns (k,).

    Notes
    -----
    Before any label is seen, weights may be anything with sum 1, all equally likely: each then has mean 1/k and
    variance ``v = (k - 1) / (k^2 (k + 1))``. A normal prior with these moments, and errors of the blend of variance s,
    make ``|errors @ w|^2 + (s / v) |w - 1/k|^2`` the negative log posterior, up to factors. Its first part grows with
    the labels, its second does not: the prior weighs as much as ``1 / v`` labels, 27 for four members. The variance s
    is that of the equal blend, per label.
    """
    k = errors.shape[1]
    if k == 1:
        return np.ones(1)
    spread = (k - 1) / (k**2 * (k + 1))
    variance = float(np.sum(errors.mean(axis=1) ** 2)) / n_labels
    return simplex_weights(errors, variance / spread)


def mix(answers: Array, weights: Array, given: Mask) -> tuple[Array, Array]:
    """Return the weighted mean of answers over the members that gave one, and the members' spread about it.

    Shapes: answers (k, m) or (k, m, c), weights (k,), given (k, m); returns mean, spread (m,) or (m, c).
    """
    shape = given.shape + (1,) * (answers.ndim - 2)
    share = np.where(given, weights[:, None], 0.0)
    share = np.where(share.sum(axis=0) > 0.0, share, given)
    total = share.sum(axis=0)
    share = np.divide(share, total, out=np.full_like(share, np.nan), where=total > 0.0).reshape(shape)
    answers = np.where(given.reshape(shape), answers, 0.0)
    mean = np.sum(share * answers, axis=0)
    return mean, np.sqrt(np.sum(share * (answers - mean) ** 2, axis=0))
