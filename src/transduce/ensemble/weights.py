"""The weights of a blend: what makes its error at hidden labels small, shrunk with few labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import nnls

from transduce.core.types import Array, Mask

# Of the weights that fall with the members' errors: the square, which is best for independent
# errors. With 10, 15, 40 and 100 labels errors on 24 real tables are .7649 .7350 .6536 .5921 of
# those of the mean (.7652 .7366 .6543 .5922 with the third power, .7668 .7371 .6542 .5933 with the
# first). Linear tables with 15 labels and little noise speak for the third power: .233 of the
# spread (.223, .262).
# With nearly as many features as labels a line hides one label with an error that says more of
# how far off that row is than of the line, and gets too little weight now and then. Errors divided
# by what the line itself expects there, times what it expects elsewhere, mend that on linear tables
# (9 labels: .23 to .21, 15: .24 as before) and cost as much on 10 real ones (10 labels: .837 to
# .844, 15: .821 to .817, 25: .782 to .783), as do errors cut off at 3 medians (.838, .825, .812).
SHARPNESS = 2
# What a line counts, before any label is seen, beside 1 of every other member: those are flexible
# and err alike, so that one alone that does not is too little. Errors of numbers with 10, 30 and
# 100 labels are .844 .740 .675 of those of the mean on 10 real tables with mixed columns (.846 .744
# .678 if it counts 1, .843 .738 .674 if it counts 3), and .710 with 10, .687 with 15, .638 with 25,
# .569 with 60 labels on 26 others (.716 .686 .639 .570; .709 .689 .639 .569); with more labels it
# makes no difference. Of a line with noise, 9 labels: .211 (.229; .203). Among classes it does not
# pay.
COUNT_OF_LINE = 2.0


def simplex_weights(errors: Array, pull: float = 0.0, centre: Array | None = None) -> Array:
    """Return the weights, none negative, with sum 1, for which the blend's error is least.

    The pull is towards `centre`, with sum 1: by default equal weights. Shapes: errors (r, k),
    centre and weights (k,).
    """
    # On the simplex ``w - c = (I - c 1') w``, so that the penalty is k more rows of errors.
    # Non-negative least squares with one more row t 1' and target t finds u = s w with
    # ``s^2 q + t^2 (s - 1)^2`` smallest, where q is the objective at w; at the best s this is
    # ``t^2 q / (q + t^2)``, which increases with q. So w = u / sum(u) is exact for any t.
    k = errors.shape[1]
    if centre is None:
        centre = np.full(k, 1.0 / k)
    penalty = np.sqrt(pull) * (np.eye(k) - centre[:, None])
    rows = np.vstack([errors, penalty])
    size = float(np.abs(rows).max())
    if size == 0.0 or k == 1:
        return centre
    rows = rows / size
    squares = np.sum(rows**2, axis=0)
    t = float(np.sqrt(np.mean(squares)))
    design = np.vstack([rows, np.full(k, t)])
    wanted = np.append(np.zeros(len(rows)), t)
    weights, _ = nnls(design, wanted)
    return weights / weights.sum()


def shrunk_weights(errors: Array, n_labels: int, counts: Array | None = None) -> Array:
    """Return weights (k,) that make the blend's error, of (r, k), small, shrunk with few labels.

    Before any label is seen members count `counts` (k,), by default the same.
    """
    # Before any label is seen, weights may be anything with sum 1, all equally likely: each then
    # has mean 1/k and variance ``v = (k - 1) / (k^2 (k + 1))``. A normal prior with this variance
    # around weights c, and errors of the blend of variance s, make
    # ``|errors @ w|^2 + (s / v) |w - c|^2`` the negative log posterior, up to factors. The weights
    # c rise with counts and fall with errors of the members, and s is the variance at c. So a
    # member that is right where the others are far off gets nearly all of the weight, however few
    # labels show it.
    k = errors.shape[1]
    if k == 1:
        return np.ones(1)
    spread = (k - 1) / (k**2 * (k + 1))
    centre = inverse_powers(errors)
    if counts is not None:
        centre = centre * counts / (centre @ counts)
    variance = float(np.sum((errors @ centre) ** 2)) / n_labels
    return simplex_weights(errors, variance / spread, centre)


def inverse_powers(errors: Array) -> Array:
    """Return weights (k,) with sum 1 in inverse proportion to a power of the members' errors."""
    largest = float(np.abs(errors).max(initial=0.0)) or 1.0
    sizes = np.sqrt(np.mean((errors / largest) ** 2, axis=0))
    inverse = 1.0 / np.maximum(sizes, np.finfo(float).eps) ** SHARPNESS
    return inverse / inverse.sum()


def mix(answers: Array, weights: Array, given: Mask) -> tuple[Array, Array]:
    """Return the weighted mean of answers over the members that gave one, and their spread.

    Shapes: answers (k, m, ...), weights (k,), given (k, m).
    """
    shape = given.shape + (1,) * (answers.ndim - 2)
    share = np.where(given, weights[:, None], 0.0)
    share = np.where(share.sum(axis=0) > 0.0, share, given)
    total = share.sum(axis=0)
    unknown = np.full_like(share, np.nan)
    share = np.divide(share, total, out=unknown, where=total > 0.0)
    share = share.reshape(shape)
    answers = np.where(given.reshape(shape), answers, 0.0)
    mean = np.sum(share * answers, axis=0)
    variance = np.sum(share * (answers - mean) ** 2, axis=0)
    return mean, np.sqrt(variance)


def read_weights(weights: Any, names: list[str]) -> dict[str, float]:
    """Return the weight of each member by name, equal ones unless an array is given."""
    numbers = np.ones(len(names))
    if not isinstance(weights, str):
        try:
            numbers = np.asarray(weights, dtype=float)
        except (TypeError, ValueError, OverflowError):
            numbers = np.empty(0)
    is_complete = numbers.shape == (len(names),) and np.isfinite(numbers).all()
    if not is_complete or numbers.min() < 0.0 or numbers.sum() == 0.0:
        raise ValueError(
            f"weights must be 'shrunk', 'equal', or a number from 0 on for each of the "
            f"{len(names)} members, not all 0; got {weights!r}."
        )
    return dict(zip(names, numbers.tolist(), strict=True))
