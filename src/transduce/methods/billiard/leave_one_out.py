"""How well a softness fits, without a billiard: the leave-one-out log-loss of a Gaussian process, in closed form.

With the kernel ``A = K + softness I`` times an unknown scale, labels of -1 and 1 as if they were latent values, and one
of them left out, the latent value there is Student's t: its mean, spread and scale follow from ``A^-1`` and
``A^-1 y``, which one eigendecomposition of K gives for every softness.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtr

from transduce.core.types import AnyArray, Array

LEAST = 1e-3  # probabilities below count as this, as in cross-validation


def leave_one_out_losses(K: Array, codes: AnyArray, softnesses: Sequence[float]) -> Array:
    """Return the mean leave-one-out log-loss of every softness. Shapes: K (l, l), codes (l,)."""
    values, vectors = np.linalg.eigh(K)
    values = np.maximum(values, 0.0)
    signs = np.where(codes[:, None] == wanted_classes(int(codes.max()) + 1), 1.0, -1.0)
    turned, squares = vectors.T @ signs, vectors**2
    losses = []
    for softness in softnesses:
        inverse = 1.0 / (values + softness)
        weights = vectors @ (inverse[:, None] * turned)
        shares = left_out_shares(signs, weights, squares @ inverse)
        shares = np.hstack([1.0 - shares, shares]) if shares.shape[1] == 1 else shares
        right = shares[np.arange(len(codes)), codes] / np.maximum(shares.sum(axis=1), np.finfo(float).tiny)
        losses.append(-np.mean(np.log(np.clip(right, LEAST, 1.0))))
    return np.array(losses)


def wanted_classes(n_classes: int) -> AnyArray:
    """Return the classes that are told from the rest: the second of two, or all of several."""
    return np.arange(1, 2) if n_classes == 2 else np.arange(n_classes)


def left_out_shares(signs: Array, weights: Array, diagonal: Array) -> Array:
    """Return the probability of +1 at each row from all the others.

    Shapes: signs (l, c), weights (l, c), diagonal (l,); returns (l, c).

    Notes
    -----
    Without row i the mean there is ``y_i - weights_i / diagonal_i``, the spread ``1 / diagonal_i`` times the scale, and
    the scale ``y' A^-1 y / l`` of the other ``l - 1`` rows: that of all less ``weights_i^2 / diagonal_i``.
    """
    rest = len(signs) - 1
    inverse = diagonal[:, None]
    means = signs - weights / inverse
    scales = np.maximum((signs * weights).sum(axis=0) - weights**2 / inverse, np.finfo(float).tiny) / rest
    return stdtr(rest, means * np.sqrt(inverse / scales))
