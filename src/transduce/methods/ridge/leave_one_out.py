"""Leave-one-out residuals of ridge regression in closed form, and the search for the settings that make them small.

With ``H = K (K'K + ridge I)^-1 K'``, ``C = I - H`` and ``c = C y``, leaving row ``t`` out changes its residual from
``c_t`` to ``c_t / C_tt``: all refits follow from one (Chapelle, Vapnik and Weston 1999, equation 15).
"""

from __future__ import annotations

import logging
import numbers
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd

from transduce.core import arrays
from transduce.core.types import Array

log = logging.getLogger(__name__)

# Below this a denominator 1 - h_tt, a difference, is rounding noise, and so is what is divided by it.
SMALLEST_DENOMINATOR = 1e-10
# A ridge below this share of the largest squared singular value keeps directions that are rounding noise.
SMALLEST_RIDGE = 1e-12
# Such a share of the largest square is rounding noise where squares come from products.
SMALLEST_SQUARE = 1e-13


def leave_one_out(K: Array, y: Array, ridge: float) -> Array:
    """Return the leave-one-out residuals of ridge regression, without refitting.

    Parameters
    ----------
    K : array of shape (l, p)
        Design matrix: the values of p basis functions at l rows, such as the kernel values with p centres.
    y : array of shape (l,) or (l, c)
        Labels, a column for each of `c` problems.
    ridge : float
        Positive; the penalty is ``ridge`` times the sum of squared coefficients.

    Returns
    -------
    array of the shape of `y`
        Label of each row less its prediction by the fit to the other rows; NaN where the others cannot predict it in
        double precision (alone in its basis function, with a tiny ridge).

    Examples
    --------
    One basis function that is 1 everywhere and hardly any ridge: each row is predicted by the others' mean.

    >>> import numpy as np
    >>> leave_one_out(np.ones((3, 1)), np.array([1.0, 2.0, 6.0]), ridge=1e-12).round(6)
    array([-3. , -1.5,  4.5])
    """
    K, y = np.asarray(K, dtype=float), np.asarray(y, dtype=float)
    if K.ndim != 2 or y.ndim not in (1, 2) or len(K) != len(y) or K.size == 0:
        raise ValueError(f"K must have one line for each label; got shapes {K.shape} and {y.shape}.")
    if not (np.isfinite(K).all() and np.isfinite(y).all()):
        raise ValueError("K and y must be finite: leave out rows without a label.")
    if not isinstance(ridge, numbers.Real) or not 0.0 < float(ridge) < np.inf:
        raise ValueError(f"ridge must be a positive number; got {ridge!r}.")
    spectrum = RidgeSpectrum.of_design(K, y.reshape(len(y), -1))
    residuals, denominators = spectrum.residuals(ridge)
    if not spectrum.is_square:
        denominators = np.where(denominators > SMALLEST_DENOMINATOR, denominators, np.nan)
    return (residuals / denominators[:, None]).reshape(y.shape)


class RidgeSpectrum(NamedTuple):
    """A design matrix and labels in the coordinates in which every ridge is a matter of shrinking."""

    vectors: Array  # (l, r) left singular vectors U of the design matrix
    squares: Array  # (r,) squared singular values
    labels: Array  # (l, c)
    projected: Array  # (r, c) ``U' labels``
    right: Array  # (r, p) right singular vectors

    @classmethod
    def of_design(cls, K: Array, labels: Array, *, rough: bool = False) -> RidgeSpectrum:
        """Decompose a design matrix of shape (l, p); roughly, for ridges of 1e-10 of the largest square or more."""
        xp = arrays.namespace(K)
        if rough and K.shape[0] > K.shape[1]:  # squaring costs digits, and takes less than half of the time
            squares, right = xp.linalg.eigh(K.T @ K)
            first = int(arrays.to_numpy(squares <= SMALLEST_SQUARE * squares[-1]).sum())
            squares, right = squares[first:], right[:, first:]
            vectors = (K @ right) / xp.sqrt(squares)
            return cls(vectors, squares, labels, vectors.T @ labels, right.T)
        vectors, values, right = xp.linalg.svd(K, full_matrices=False)
        return cls(vectors, values**2, labels, vectors.T @ labels, right)

    @classmethod
    def of_kernel(cls, K: Array, labels: Array) -> RidgeSpectrum:
        """Decompose a symmetric kernel matrix of shape (l, l), which is cheaper."""
        values, vectors = arrays.namespace(K).linalg.eigh(K)
        return cls(vectors, values**2, labels, vectors.T @ labels, vectors.T)

    def coefficients(self, ridge: float) -> Array:
        """Return the coefficients of ridge regression on a design matrix, shape (p, c)."""
        shrunk = self.squares**0.5 / (self.squares + ridge)
        return self.right.T @ (shrunk[:, None] * self.projected)

    def residuals(self, ridge: float) -> tuple[Array, Array]:
        """Return the residuals ``C y``, shape (l, c), and the denominators ``diag(C)``, shape (l,)."""
        keep, squares = self._shrinkage(arrays.beside(np.array([ridge]), self.vectors))
        fitted = self.vectors @ (keep[:, :1] * self.projected)
        if self.is_square:
            return fitted, squares[:, 0]
        return self.labels - self.vectors @ self.projected + fitted, squares[:, 0]

    def errors(self, ridges: Array) -> Array:
        """Return the mean squared leave-one-out residual for every ridge, shape (k,); infinite if not to be trusted."""
        xp, ridges = arrays.namespace(self.vectors), arrays.beside(ridges, self.vectors)
        keep, denominators = self._shrinkage(ridges)
        rest = self.labels - self.vectors @ self.projected
        total = xp.zeros_like(ridges)
        for column in range(self.labels.shape[1]):
            residuals = self.vectors @ (keep * self.projected[:, column][:, None])
            if not self.is_square:
                residuals += rest[:, column][:, None]
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                total += xp.mean((residuals / denominators) ** 2, axis=0)
        bad = ~xp.isfinite(total)
        if not self.is_square:
            bad |= xp.min(denominators, axis=0) <= SMALLEST_DENOMINATOR
        total /= self.labels.shape[1]
        return arrays.to_numpy(xp.where(bad, xp.full_like(total, xp.inf), total))

    @property
    def is_square(self) -> bool:
        """Whether the vectors span everything: then C has no part outside them."""
        return self.vectors.shape[0] == self.vectors.shape[1]

    def _shrinkage(self, ridges: Array) -> tuple[Array, Array]:
        """Return what C leaves of each vector (r, k), and the diagonal of C (l, k), for every ridge."""
        keep = ridges / (self.squares[:, None] + ridges)
        if self.is_square:
            # A sum of positive terms: accurate however small.
            return keep, self.vectors**2 @ keep
        return keep, 1.0 - self.vectors**2 @ (1.0 - keep)


class RidgeChoice(NamedTuple):
    """RidgeSettings chosen by leave-one-out."""

    width: float | None
    ridge: float
    error: float  # mean squared leave-one-out residual at the choice
    path: pd.DataFrame  # everything that was tried: columns width, ridge, error

    def raised(self, ridge: float, error: float) -> RidgeChoice:
        """Return the choice with another ridge, which joins the path."""
        line = pd.DataFrame([{"width": self.width, "ridge": ridge, "error": error}])
        return RidgeChoice(self.width, ridge, error, pd.concat([self.path, line], ignore_index=True))


class _Search:
    """Bookkeeping of a search over widths, each with many ridges at little extra cost."""

    def __init__(self, spectrum: Callable[[float | None], RidgeSpectrum], ridge: float | None) -> None:
        self.spectrum = spectrum
        self.fixed = ridge is not None
        self.ridges = np.array([] if ridge is None else [ridge])
        self.lines: list[tuple[float | None, float, float]] = []

    def try_width(self, width: float | None) -> float:
        """Record all ridges at a width, and finer ones around the best; return the smallest error."""
        spectrum = self.spectrum(width)
        if len(self.ridges) == 0:
            # In units of the largest squared singular value, so that the kernel's scale does not matter.
            unit = arrays.largest(spectrum.squares) or 1.0
            self.ridges = unit * 10.0 ** np.arange(-11, 0.75, 0.5)
        errors = self._record(spectrum, width, self.ridges)
        if not self.fixed:
            errors = self._widen(spectrum, width, errors)
            around = self.ridges[int(np.argmin(errors))]
            self._record(spectrum, width, around * 10.0 ** np.linspace(-0.4, 0.4, 9))
        log.info("leave-one-out: width %s, smallest error %.4g", width, errors.min())
        return min(error for at, _, error in self.lines if at == width)

    def _widen(self, spectrum: RidgeSpectrum, width: float | None, errors: Array) -> Array:
        """Add a decade of ridges at an end for as long as the optimum sits there, six times at most."""
        for _ in range(6):
            at = int(np.argmin(errors))
            if 0 < at < len(errors) - 1:
                break
            more = self.ridges[[0]] / [10, 10**0.5] if at == 0 else self.ridges[[-1]] * [10**0.5, 10]
            further = self._record(spectrum, width, more)
            order = 1 if at == 0 else -1  # the new ones come first, or last
            self.ridges = np.concatenate([more, self.ridges][::order])
            errors = np.concatenate([further, errors][::order])
        return errors

    def _record(self, spectrum: RidgeSpectrum, width: float | None, ridges: Array) -> Array:
        errors = spectrum.errors(ridges)
        if not self.fixed:
            errors = np.where(ridges < SMALLEST_RIDGE * arrays.largest(spectrum.squares), np.inf, errors)
        self.lines += [(width, float(r), float(e)) for r, e in zip(ridges, errors, strict=True)]
        return errors


def search(
    spectrum: Callable[[float | None], RidgeSpectrum],
    *,
    width: float | None,
    search_width: bool,
    ridge: float | None,
) -> RidgeChoice:
    """Return the width and ridge with the smallest leave-one-out error."""
    trial = _Search(spectrum, ridge)
    if not search_width or width is None:
        trial.try_width(width)
    else:
        steps = {float(step): trial.try_width(width * 2.0**step) for step in range(-3, 4)}
        for _ in range(8):
            at = min(steps, key=lambda step: steps[step])
            if min(steps) < at < max(steps):
                break
            further = at - 1 if at == min(steps) else at + 1
            steps[further] = trial.try_width(width * 2.0**further)
        for fineness in (0.5, 0.25):
            at = min(steps, key=lambda step: steps[step])
            for step in (at - fineness, at + fineness):
                steps[step] = trial.try_width(width * 2.0**step)
    best_width, best_ridge, error = min(trial.lines, key=lambda line: line[2])
    if not np.isfinite(error) and (search_width or ridge is None):
        raise ValueError("No width and ridge could be judged by leave-one-out: set them to numbers.")
    path = pd.DataFrame(trial.lines, columns=["width", "ridge", "error"])
    return RidgeChoice(best_width, best_ridge, error, path)
