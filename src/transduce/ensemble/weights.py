"""Weights of a blend: a convex combination with the smallest out-of-fold error, pulled towards equal weights."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from transduce.core.types import Array, Mask


def simplex_weights(errors: Array, pull: float = 0.0) -> Array:
    """Return the weights, positive or zero with sum 1, for which the error of the blend is smallest.

    Parameters
    ----------
    errors : array of shape (r, k)
        Errors of k members at the same r places: answer minus truth.
    pull : float, default=0.0
        Penalty on the squared distance to equal weights.

    Returns
    -------
    array of shape (k,)
        Minimises ``|errors @ w|^2 + pull |w - 1/k|^2``. Equal weights if no member ever makes an error.

    Notes
    -----
    On the simplex ``w - 1/k = (I - 11'/k) w``, so that the penalty is k more rows of errors. Non-negative least squares
    with one more row c 1' and target c finds u = s w with ``s^2 q + c^2 (s - 1)^2`` smallest, where q is the objective
    at w; at the best s this is ``c^2 q / (q + c^2)``, which increases with q. So w = u / sum(u) is exact for any c.

    Examples
    --------
    >>> import numpy as np
    >>> errors = np.array([[1.0, -1.0], [1.0, -1.0], [2.0, -2.0]])  # they cancel at equal weights
    >>> simplex_weights(errors)
    array([0.5, 0.5])
    >>> simplex_weights(np.array([[1.0, 2.0]]))
    array([1., 0.])
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

    Parameters
    ----------
    errors : array of shape (r, k)
        Out-of-fold errors of k members; r is `n_labels`, or that times the number of classes.
    n_labels : int
        Labelled rows behind the errors.

    Returns
    -------
    array of shape (k,)

    Notes
    -----
    Before any label is seen, weights may be anything with sum 1, all equally likely: each then has mean 1/k and
    variance ``v = (k - 1) / (k^2 (k + 1))``. A normal prior with these moments, and errors of the blend of variance s,
    make ``|errors @ w|^2 + (s / v) |w - 1/k|^2`` the negative log posterior, up to factors. Its first part grows with
    the labels, its second does not: the prior weighs as much as ``1 / v`` labels, 27 for four members. The variance s
    is that of the equal blend, per label.

    Examples
    --------
    >>> import numpy as np
    >>> errors = np.tile([[1.0, 2.0], [-1.0, 2.0]], (4, 1))  # the second member is off by 2 always
    >>> few, many = shrunk_weights(errors[:4], 4), shrunk_weights(np.tile(errors, (20, 1)), 160)
    >>> bool(0.5 < few[0] < many[0] < simplex_weights(errors)[0])
    True
    """
    k = errors.shape[1]
    if k == 1:
        return np.ones(1)
    spread = (k - 1) / (k**2 * (k + 1))
    variance = float(np.sum(errors.mean(axis=1) ** 2)) / n_labels
    return simplex_weights(errors, variance / spread)


def mix(answers: Array, weights: Array, given: Mask) -> tuple[Array, Array]:
    """Return the weighted mean of answers over the members that gave one, and the members' spread about it.

    Parameters
    ----------
    answers : array of shape (k, m) or (k, m, c)
        Answers of k members at m rows; where none was given, anything.
    weights : array of shape (k,)
    given : boolean array of shape (k, m)

    Returns
    -------
    mean, spread : arrays of shape (m,) or (m, c)
        Where those who answered have no weight, they count equally; NaN where nobody did. The spread is the weighted
        standard deviation.

    Examples
    --------
    >>> import numpy as np
    >>> mix(np.array([[1.0, 1.0], [3.0, np.nan]]), np.array([0.5, 0.5]), np.array([[True, True], [True, False]]))
    (array([2., 1.]), array([1., 0.]))
    """
    shape = given.shape + (1,) * (answers.ndim - 2)
    share = np.where(given, weights[:, None], 0.0)
    share = np.where(share.sum(axis=0) > 0.0, share, given)
    total = share.sum(axis=0)
    share = np.divide(share, total, out=np.full_like(share, np.nan), where=total > 0.0).reshape(shape)
    answers = np.where(given.reshape(shape), answers, 0.0)
    mean = np.sum(share * answers, axis=0)
    return mean, np.sqrt(np.sum(share * (answers - mean) ** 2, axis=0))
