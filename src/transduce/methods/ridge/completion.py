"""Ridge regression's leave-one-out residuals in closed form, and the labels that make them small.

With ``H = K (K'K + ridge I)^-1 K'``, ``C = I - H`` and ``c = C y``, leaving row ``t`` out changes
its residual from ``c_t`` to ``c_t / C_tt``: all refits follow from one (Chapelle, Vapnik and Weston
1999, equation 15). So ``E z``, ``E = diag(C)^-1 C``, is the vector of leave-one-out residuals of a
completed label vector ``z``. The transductive answer minimises ::

    |E z|^2 + tether |z_a - start|^2

over the labels ``z_a`` of the unlabelled rows (equation 31). With ``E_a`` and ``E_l`` the columns
of unlabelled and of labelled rows it solves ::

    (E_a'E_a + tether I) z_a = tether start - E_a'E_l y
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import NamedTuple

import numpy as np
import pandas as pd

from transduce.core import arrays, checks
from transduce.core.types import Array, Mask
from transduce.device import linalg, memory
from transduce.device.linalg import guarded_cholesky

log = logging.getLogger(__name__)

LinesOfRows = Callable[[Array], Array]  # from rows (k, d) to their lines (k, p) of a design matrix
SolverReport = dict[str, str | float | bool]  # how a linear system was solved
# Solves ``(E_a'E_a + tether I) x = right`` for right sides (m, c) and a tether.
SolverOfTethers = Callable[[Array, float], Array]

# Below this a denominator 1 - h_tt, a difference, is rounding noise, and so is what is divided by
# it.
SMALLEST_DENOMINATOR = 1e-10
# A ridge below this share of the largest squared singular value keeps directions that are rounding
# noise.
SMALLEST_RIDGE = 1e-12
# Such a share of the largest square is rounding noise where squares come from products.
SMALLEST_SQUARE = 1e-13
# From such a share of the largest square on, a ridge makes up for the digits that squaring costs:
# eight are left.
SQUARING = 1e-7
# Times the smallest error so far: squaring moves errors by less, at the smallest ridges that are
# tried.
ROUGHLY = 1.05
# A row with a smaller denominator is hardly told by the others, and its square would drown all
# other rows: where the ridge was chosen for the labelled rows alone, such a row counts as if it had
# this one. With 1e-8 conjugate gradients end, with 1e-9 no more.
LEAST_COUNTED = 1e-7


def leave_one_out(K: Array, y: Array, ridge: float) -> Array:
    """Return the leave-one-out residuals of ridge regression, without refitting.

    Parameters
    ----------
    K : array of shape (l, p)
        Design matrix: the values of p basis functions at l rows, such as the kernel values with p
        centres.
    y : array of shape (l,) or (l, c)
        Labels, a column for each of `c` problems.
    ridge : float
        Positive; the penalty is ``ridge`` times the sum of squared coefficients.

    Returns
    -------
    array of the shape of `y`
        Label of each row less its prediction by the fit to the other rows; NaN where the others
        cannot predict it in double precision (alone in its basis function, with a tiny ridge).

    Examples
    --------
    One basis function that is 1 everywhere and hardly any ridge: each row is predicted by the
    others' mean.

    >>> import numpy as np
    >>> leave_one_out(np.ones((3, 1)), np.array([1.0, 2.0, 6.0]), ridge=1e-12).round(6)
    array([-3. , -1.5,  4.5])
    """
    K = checks.as_floats("K", K)
    y = checks.as_floats("y", y)
    has_matching_shapes = K.ndim == 2 and y.ndim in (1, 2) and len(K) == len(y)
    if not has_matching_shapes or K.size == 0:
        raise ValueError(
            f"K must have one line for each label; got shapes {K.shape} and {y.shape}."
        )
    if not (np.isfinite(K).all() and np.isfinite(y).all()):
        raise ValueError("K and y must be finite: leave out rows without a label.")
    spectrum = RidgeSpectrum.of_design(K, y.reshape(len(y), -1))
    residuals, denominators = spectrum.residuals(checks.check_positive("ridge", ridge))
    is_finite = np.isfinite(spectrum.squares).all() and np.isfinite(residuals).all()
    if not is_finite:
        raise ValueError(
            "The numbers of K are too large for their squares: divide K by a constant."
        )
    if not spectrum.is_square:
        denominators = np.where(denominators > SMALLEST_DENOMINATOR, denominators, np.nan)
    return (residuals / denominators[:, None]).reshape(y.shape)


class RidgeSpectrum(NamedTuple):
    """A design matrix ``K = U S V'`` and labels, where every ridge is a matter of shrinking.

    ``C = I - K (K'K + ridge I)^-1 K'`` leaves ``ridge / (s_j^2 + ridge)`` of the singular vector
    ``u_j``, and everything of what is orthogonal to all of them.
    """

    vectors: Array  # (l, r) left singular vectors ``U``
    squares: Array  # (r,) squared singular values
    labels: Array  # (l, c)
    projected: Array  # (r, c) ``U' labels``

    design: Array | None = None  # (l, p) where it was squared, to decompose it again without

    @classmethod
    def of_design(cls, K: Array, labels: Array) -> RidgeSpectrum:
        """Decompose a design matrix (l, p) without squaring it, which costs half of the digits."""
        vectors, values = linalg.left_singular(K)
        return cls(vectors, values**2, labels, vectors.T @ labels)

    @classmethod
    def of_square(cls, K: Array, labels: Array) -> RidgeSpectrum:
        """Decompose a design matrix with many rows by its square ``K'K``, in half of the time.

        Good for ridges from `least` on.
        """
        if K.shape[0] <= K.shape[1]:
            return cls.of_design(K, labels)
        squares, right = linalg.eigh(K.T @ K)
        kept = arrays.to_numpy(squares > SMALLEST_SQUARE * squares[-1])
        squares = arrays.pick(squares, kept)
        right = arrays.pick_columns(right, kept)
        vectors = K @ (right / arrays.namespace(K).sqrt(squares))
        return cls(vectors, squares, labels, vectors.T @ labels, K)

    @classmethod
    def of_kernel(cls, K: Array, labels: Array) -> RidgeSpectrum:
        """Decompose a symmetric kernel matrix of shape (l, l), which is cheaper."""
        values, vectors = arrays.namespace(K).linalg.eigh(K)
        return cls(vectors, values**2, labels, vectors.T @ labels)

    @property
    def least(self) -> float:
        """The smallest ridge that it can be asked for without a loss of digits."""
        if self.design is None:
            return 0.0
        return SQUARING * arrays.largest(self.squares)

    def precise(self) -> RidgeSpectrum:
        """Return the same, for every ridge."""
        if self.design is None:
            return self
        return RidgeSpectrum.of_design(self.design, self.labels)

    @property
    def is_square(self) -> bool:
        """Whether the vectors span everything: then C has no part outside them."""
        return self.vectors.shape[0] == self.vectors.shape[1]

    def residuals(self, ridge: float) -> tuple[Array, Array]:
        """Return the residuals ``C y`` (l, c), and the denominators ``diag(C)`` (l,)."""
        ridges = arrays.asarray_like(np.array([ridge]), self.vectors)
        keep, denominators = self._shrinkage(ridges)
        inside = self.vectors @ (keep[:, :1] * self.projected)
        if self.is_square:
            return inside, denominators[:, 0]
        return self.labels - self.vectors @ self.projected + inside, denominators[:, 0]

    def errors(self, ridges: Array) -> Array:
        """Return the mean squared leave-one-out residual of each ridge, shape (k,).

        The mean of ``((C y)_t / C_tt)^2`` over rows t; infinite where it is not to be trusted.
        """
        xp = arrays.namespace(self.vectors)
        ridges = arrays.asarray_like(ridges, self.vectors)
        keep, denominators = self._shrinkage(ridges)
        outside = self.labels - self.vectors @ self.projected
        total = xp.zeros_like(ridges)
        for column in range(self.labels.shape[1]):
            residuals = self.vectors @ (keep * self.projected[:, column][:, None])
            if not self.is_square:
                residuals += outside[:, column][:, None]
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                total += xp.mean((residuals / denominators) ** 2, axis=0)
        is_noise = ~xp.isfinite(total)
        if not self.is_square:
            is_noise |= xp.min(denominators, axis=0) <= SMALLEST_DENOMINATOR
        total /= self.labels.shape[1]
        return arrays.to_numpy(xp.where(is_noise, xp.full_like(total, xp.inf), total))

    def _shrinkage(self, ridges: Array) -> tuple[Array, Array]:
        """Return what C leaves of each vector (r, k), and its diagonal (l, k), for each ridge."""
        keep = ridges / (self.squares[:, None] + ridges)
        if self.is_square:
            # A sum of positive terms: accurate however small.
            return keep, self.vectors**2 @ keep
        return keep, 1.0 - self.vectors**2 @ (1.0 - keep)


class JoinedSpectra(NamedTuple):
    """The spectra of several samples, whose errors are averaged."""

    spectra: list[RidgeSpectrum]

    @property
    def squares(self) -> Array:
        """The squared singular values of that with the largest."""
        return max((spectrum.squares for spectrum in self.spectra), key=arrays.largest)

    @property
    def least(self) -> float:
        """The smallest ridge that all can be asked for without a loss of digits."""
        return max(spectrum.least for spectrum in self.spectra)

    def precise(self) -> JoinedSpectra:
        """Return the same, for every ridge."""
        return JoinedSpectra([spectrum.precise() for spectrum in self.spectra])

    def errors(self, ridges: Array) -> Array:
        """Return the mean over samples of the mean squared leave-one-out residual, shape (k,)."""
        return np.mean([spectrum.errors(ridges) for spectrum in self.spectra], axis=0)


class Trial(NamedTuple):
    """A width and a ridge that were tried."""

    width: float | None
    ridge: float
    error: float  # mean squared leave-one-out residual


class RidgeChoice(NamedTuple):
    """Settings chosen by leave-one-out.

    Attributes
    ----------
    width : float or None
        Length scale of the kernel; None for kernels that have none.
    ridge : float
        Penalty on the squared coefficients.
    error : float
        Mean squared leave-one-out residual at the choice, of labels scaled to standard deviation 1.
    path : pandas.DataFrame
        Everything that was tried: columns width, ridge and error.

    Examples
    --------
    >>> from transduce import TransductiveRidge
    >>> from transduce.methods.ridge import choose_settings
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> model = TransductiveRidge(kernel="linear", ridge=0.1)
    >>> choose_settings(model, [(X, [0.0, 1.0, 2.0, 3.0])]).ridge
    0.1
    """

    width: float | None
    ridge: float
    error: float
    path: pd.DataFrame


Spectrum = RidgeSpectrum | JoinedSpectra
SpectrumOfWidth = Callable[[float | None], Spectrum]


class _Search:
    """Bookkeeping of a search over widths, each with many ridges at little extra cost."""

    def __init__(self, spectrum_of: SpectrumOfWidth, ridge: float | None) -> None:
        self.spectrum_of = spectrum_of
        self.is_ridge_given = ridge is not None
        self.ridges = np.array([] if ridge is None else [ridge])
        self.trials: list[Trial] = []

    def try_width(self, width: float | None) -> float:
        """Try all ridges at a width, and finer ones around the best; return the least error."""
        spectrum = self.spectrum_of(width)
        if len(self.ridges) == 0:
            # In units of the largest squared singular value, so that the kernel's scale does not
            # matter.
            unit = arrays.largest(spectrum.squares) or 1.0
            self.ridges = unit * 10.0 ** np.arange(-11, 0.75, 0.5)
        trials = self._try_ridges(spectrum, width)
        best = _best_of(trials)
        so_far = min((trial.error for trial in self.trials), default=np.inf)
        # Roughly is enough for a width that will not be chosen.
        if best.ridge < spectrum.least and best.error < ROUGHLY * so_far:
            trials = self._try_ridges(spectrum.precise(), width)
        self.trials += trials
        smallest = _best_of(trials).error
        log.info("leave-one-out: width %s, smallest error %.4g", width, smallest)
        return smallest

    def try_powers(self, width: float) -> None:
        """Try a width times powers of 2: from 1/8 to 8, then beyond, then around the best."""
        errors: dict[float, float] = {}
        for power in (-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0):
            errors[power] = self.try_width(width * 2.0**power)

        def best_power() -> float:
            return min(errors, key=lambda power: errors[power])

        for _ in range(8):
            best = best_power()
            if min(errors) < best < max(errors):
                break
            if best == min(errors):
                further = best - 1
            else:
                further = best + 1
            errors[further] = self.try_width(width * 2.0**further)
        for fineness in (0.5, 0.25):
            best = best_power()
            for power in (best - fineness, best + fineness):
                errors[power] = self.try_width(width * 2.0**power)

    def _try_ridges(self, spectrum: Spectrum, width: float | None) -> list[Trial]:
        """Return trials of all ridges, and of finer ones around the best."""
        ridges = [self.ridges]
        errors = [self._errors(spectrum, self.ridges)]
        if not self.is_ridge_given:
            self._widen(spectrum, ridges, errors)
            best = np.concatenate(ridges)[int(np.argmin(np.concatenate(errors)))]
            finer = best * 10.0 ** np.linspace(-0.4, 0.4, 9)
            ridges.append(finer)
            errors.append(self._errors(spectrum, finer))
        all_ridges = np.concatenate(ridges).tolist()
        all_errors = np.concatenate(errors).tolist()
        pairs = zip(all_ridges, all_errors, strict=True)
        return [Trial(width, ridge, error) for ridge, error in pairs]

    def _widen(
        self,
        spectrum: Spectrum,
        ridges: list[Array],
        errors: list[Array],
    ) -> None:
        """Add a decade of ridges at an end while the optimum sits there, six times at most."""
        errors_in_order = errors[0]
        for _ in range(6):
            best = int(np.argmin(errors_in_order))
            if 0 < best < len(errors_in_order) - 1:
                break
            is_at_low_end = best == 0
            if is_at_low_end:
                more = self.ridges[[0]] / [10, 10**0.5]
            else:
                more = self.ridges[[-1]] * [10**0.5, 10]
            more_errors = self._errors(spectrum, more)
            ridges.append(more)
            errors.append(more_errors)
            if is_at_low_end:
                self.ridges = np.concatenate([more, self.ridges])
                errors_in_order = np.concatenate([more_errors, errors_in_order])
            else:
                self.ridges = np.concatenate([self.ridges, more])
                errors_in_order = np.concatenate([errors_in_order, more_errors])

    def _errors(self, spectrum: Spectrum, ridges: Array) -> Array:
        """Return the error of every ridge; infinite where it is too small to be chosen."""
        errors = spectrum.errors(ridges)
        if self.is_ridge_given:
            return errors
        is_too_small = ridges < SMALLEST_RIDGE * arrays.largest(spectrum.squares)
        return np.where(is_too_small, np.inf, errors)


def _best_of(trials: list[Trial]) -> Trial:
    """Return the trial with the smallest error, the first of several."""
    return min(trials, key=lambda trial: trial.error)


def search(
    spectrum: SpectrumOfWidth,
    *,
    width: float | None,
    search_width: bool,
    ridge: float | None,
) -> RidgeChoice:
    """Return the width and ridge with the smallest leave-one-out error."""
    trial_search = _Search(spectrum, ridge)
    if search_width and width is not None:
        trial_search.try_powers(width)
    else:
        trial_search.try_width(width)
    best = _best_of(trial_search.trials)
    is_given = not search_width and ridge is not None
    if not np.isfinite(best.error) and not is_given:
        raise ValueError(
            "No width and ridge could be judged by leave-one-out: set them to numbers."
        )
    path = pd.DataFrame(trial_search.trials, columns=["width", "ridge", "error"])
    return RidgeChoice(best.width, best.ridge, best.error, path)


class Completion(NamedTuple):
    """A completed label vector."""

    labels: Array  # (n, c) labels, with the answer at the unlabelled rows
    loo_residuals: Array  # (n, c) ``E z``: leave-one-out residuals of the completed sample
    coefficients: Array  # (p, c) ridge regression on the completed sample
    objective: Array  # (c,) ``|E z|^2 + tether |z_a - start|^2`` of each column
    solver: SolverReport  # how the linear system was solved


def complete(
    system: DenseSystem | DesignSystem, y: Array, unlabelled: Mask, *, start: Array, tether: float
) -> Completion:
    """Return the completed labels. Shapes: y (n, c), unlabelled (n,), start (m, c).

    The labels ``z_a`` minimise ``|E z|^2 + tether |z_a - start|^2``; with an infinite tether they
    are `start`.
    """
    xp = arrays.namespace(y)
    is_unlabelled = arrays.asarray_like(unlabelled, y)[:, None]
    labels = xp.where(is_unlabelled, xp.zeros_like(y), y)
    answers = start
    solver: SolverReport = {"solver": "none needed"}
    if np.isfinite(tether) and unlabelled.any():
        right = tether * start - arrays.pick(system.adjoint(system.loo(labels)), unlabelled)
        answers, solver = system.solve(unlabelled, right, tether)
    labels = arrays.replaced(labels, unlabelled, answers)
    residuals = system.loo(labels)
    objective = xp.sum(residuals**2, axis=0)
    if np.isfinite(tether):
        distances = (arrays.pick(labels, unlabelled) - start) ** 2
        objective = objective + tether * xp.sum(distances, axis=0)
    return Completion(labels, residuals, system.coefficients(labels), objective, solver)


class SmallRidgeError(ValueError):
    """The ridge is too small for these rows in double precision."""


@dataclass(frozen=True)
class DenseSystem:
    """``E`` for centres at all rows: the paper's method, with ``n x n`` matrices.

    For a symmetric kernel matrix ``C = ridge (K^2 + ridge I)^-1`` and
    ``(K'K + ridge I)^-1 K' = K C / ridge``.
    """

    # Both come from a Cholesky factor of ``K^2 + ridge I`` where squaring costs no digits that
    # matter, else from eigenvectors of ``K``, which take several times as long.

    C: Array  # (n, n)
    fitter: Array  # (n, n) ``(K'K + ridge I)^-1 K'``: from labels to coefficients
    denominators: Array  # (n,) diag(C)

    @classmethod
    def build(cls, K: Array, ridge: float) -> DenseSystem:
        """Compute the matrices of a symmetric kernel matrix (n, n)."""
        xp = arrays.namespace(K)
        largest = 0.0
        if K.shape[0]:
            row_sums = xp.sum(xp.abs(K), axis=1)  # no eigenvalue is larger
            largest = float(xp.max(row_sums)) ** 2
        if ridge > SQUARING * largest:
            inverse = linalg.positive_inverse(arrays.shifted(K @ K, ridge))
            return cls(ridge * inverse, K @ inverse, ridge * arrays.diagonal(inverse))
        values, vectors = xp.linalg.eigh(K)
        keep = ridge / (values**2 + ridge)
        fit = values / (values**2 + ridge)
        C = (vectors * keep) @ vectors.T
        fitter = (vectors * fit) @ vectors.T
        # As sums of positive terms the denominators are accurate however small.
        return cls(C, fitter, vectors**2 @ keep)

    def coefficients(self, z: Array) -> Array:
        """Return ``(K'K + ridge I)^-1 K' z``, shape (n, c)."""
        return self.fitter @ z

    def loo(self, z: Array) -> Array:
        """Return ``E z``, shape (n, c)."""
        return (self.C @ z) / self.denominators[:, None]

    def adjoint(self, z: Array) -> Array:
        """Return ``E' z``, shape (n, c); C is symmetric."""
        return self.C @ (z / self.denominators[:, None])

    def solve(
        self,
        unlabelled: Mask,
        right: Array,
        tether: float,
    ) -> tuple[Array, SolverReport]:
        """Solve ``(E_a'E_a + tether I) x = right`` for every column."""
        E_a = arrays.pick_columns(self.C, unlabelled) / self.denominators[:, None]
        factor, jitter = guarded_cholesky(arrays.shifted(E_a.T @ E_a, tether))
        solution = linalg.cholesky_solve(factor, right)
        return solution, {"solver": "cholesky", "jitter": jitter}

    def solver_of_tethers(self, unlabelled: Mask) -> SolverOfTethers:
        """Return the solution as a function of right sides and tether, by singular vectors."""
        E_a = arrays.pick_columns(self.C, unlabelled) / self.denominators[:, None]
        values, vectors = linalg.right_singular(E_a)

        def solve(right: Array, tether: float) -> Array:
            shrunk = (vectors.T @ right) / (values**2 + tether)[:, None]
            return vectors @ shrunk

        return solve


@dataclass(frozen=True)
class DesignMatrix:
    """The design matrix of all rows on p centres, in blocks of rows.

    Stored, or computed when asked for.
    """

    compute: LinesOfRows
    rows: Array  # (n, d)
    stored: Array | None  # (n, p)
    p: int  # columns
    block: int  # rows in a block

    @classmethod
    def of(
        cls,
        compute: LinesOfRows,
        rows: Array,
        p: int,
        *,
        max_bytes: float,
    ) -> DesignMatrix:
        """Build from a function of rows (k, d) to their lines (k, p) of the design matrix."""
        n = rows.shape[0]
        if max_bytes > 0.0:
            max_bytes = memory.work_bytes(rows, max_bytes)
        # Blocks of fewer rows than columns would make the triangle of all rows dear.
        block = int(np.clip(max_bytes // (32 * p), max(256, 2 * p), 16384))
        design = cls(compute, rows, None, p, block)
        if 8.0 * n * p > max_bytes:
            log.info("design matrix of %d rows: computed in blocks each time it is used", n)
            return design
        stored = arrays.zeros((n, p), rows)
        for part, lines in design.blocks():
            stored[part, :] = lines
        return replace(design, stored=stored)

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield slices of the rows with their lines of the matrix."""
        for part in arrays.blocks(self.rows.shape[0], self.block):
            if self.stored is None:
                yield part, self.compute(self.rows[part, :])
            else:
                yield part, self.stored[part, :]

    def _sum(self, product: Callable[[slice, Array], Array]) -> Array:
        """Return the sum over blocks of a function of the slice and its lines."""
        return reduce(add, (product(part, lines) for part, lines in self.blocks()))

    def gram(self, weights: Array) -> Array:
        """Return ``K' diag(weights) K``, shape (p, p), for weights (n,) that are not negative."""
        roots = arrays.namespace(self.rows).sqrt(weights)[:, None]

        def squares(part: slice, lines: Array) -> Array:
            scaled = lines * roots[part, :]
            return scaled.T @ scaled

        return self._sum(squares)

    def right_spectrum(self, ridge: float) -> tuple[Array, Array]:
        """Return squared singular values (k,) and right singular vectors (p, k).

        Good enough for this ridge: of the square ``K'K`` where that costs no digits that matter,
        else of the triangle ``R`` of ``K = Q R``, which comes block by block of rows; ``Q`` is not
        formed.
        """
        n = self.rows.shape[0]
        if n > self.p and ridge > SQUARING * self._largest_square_at_least():
            ones = arrays.zeros((n,), self.rows) + 1.0
            squares, right = linalg.eigh(self.gram(ones))
            if ridge > SQUARING * arrays.largest(squares):
                xp = arrays.namespace(squares)
                return xp.where(squares > 0.0, squares, xp.zeros_like(squares)), right
        triangle = linalg.triangle_of_blocks(lines for _, lines in self.blocks())
        values, right = linalg.right_singular(triangle)
        return values**2, right

    def _largest_square_at_least(self) -> float:
        """Return a lower bound of the largest squared singular value.

        ``|K 1|^2 / p``, which is near to it for most kernels.
        """
        ones = arrays.zeros((self.p, 1), self.rows) + 1.0
        return linalg.length(self.times(ones)) ** 2 / self.p

    def turned(self, matrix: Array) -> DesignMatrix:
        """Return the design matrix ``K matrix``, for a matrix of shape (p, k)."""
        k = int(matrix.shape[1])
        if self.stored is not None:
            return replace(self, stored=self.stored @ matrix, p=k)
        return replace(self, compute=lambda rows: self.compute(rows) @ matrix, p=k)

    def times(self, coefficients: Array) -> Array:
        """Return ``K coefficients``, shape (n, c)."""
        products = [lines @ coefficients for _, lines in self.blocks()]
        return arrays.namespace(self.rows).concat(products)

    def transposed_times(self, vectors: Array) -> Array:
        """Return ``K' vectors``, shape (p, c)."""
        return self._sum(lambda part, lines: lines.T @ vectors[part, :])

    def row_squares(self) -> Array:
        """Return the sum of squares of every line, shape (n,)."""
        squares = [arrays.row_products(lines, lines) for _, lines in self.blocks()]
        return arrays.namespace(self.rows).concat(squares)


@dataclass(frozen=True)
class DesignSystem:
    """``E`` for any design matrix; nothing ``n x n`` is formed, and nothing is squared.

    With the singular values ``s`` and right singular vectors ``W`` of the triangle of ``K``, and
    ``M = W diag(s^2 + ridge)^-1/2``, the hat matrix is ``H = B B'`` with ``B = K M``.
    ``C = I - B B'`` is the identity less a matrix of rank p, so ``E_a'E_a + tether I`` is a
    diagonal plus rank 2p, and Woodbury's identity inverts it with four weighted Gram matrices of B,
    ``O(n p^2)``. That inverse preconditions conjugate gradients, which then need an iteration or
    none to reach `tolerance` against the operator itself.
    """

    # Rounding moves an entry of B by some ``epsilon |k_t| / sqrt(ridge)``, so that a ridge of 1e-12
    # of the largest square still leaves ten digits; of ``K'K + ridge I``, which would have to be
    # inverted, it leaves none.

    design: DesignMatrix  # K, (n, p)
    whitener: Array  # M, (p, k) with k at most p
    smallest: float  # lower bound of diag(C)
    tolerance: float = 1e-10

    @classmethod
    def build(
        cls,
        design: DesignMatrix,
        ridge: float,
        *,
        least: float = 0.0,
    ) -> DesignSystem:
        """Factorise the design matrix; no entry of ``diag(C)`` is to count as less than `least`."""
        squares, right = design.right_spectrum(ridge)
        whitener = right / arrays.namespace(squares).sqrt(squares + ridge)
        # No eigenvalue of C is smaller than this, and so no entry of its diagonal.
        smallest = ridge / (arrays.largest(squares) + ridge)
        return cls(design, whitener, max(least, smallest))

    @cached_property
    def half(self) -> DesignMatrix:
        """``B = K M``, shape (n, k)."""
        return self.design.turned(self.whitener)

    @cached_property
    def denominators(self) -> Array:
        """``diag(C)``, shape (n,)."""
        xp = arrays.namespace(self.whitener)
        diagonal = 1.0 - self.half.row_squares()
        return xp.where(diagonal > self.smallest, diagonal, xp.full_like(diagonal, self.smallest))

    def check_left_out(self) -> None:
        """Raise an error where a row cannot be left out in double precision."""
        smallest = float(arrays.namespace(self.denominators).min(self.denominators))
        if smallest <= SMALLEST_DENOMINATOR:
            raise SmallRidgeError(
                "Some rows cannot be left out in double precision, because ridge is too small for "
                "these rows: use a larger ridge, or ridge='loo'."
            )

    def coefficients(self, z: Array) -> Array:
        """Return ``(K'K + ridge I)^-1 K' z = M M' K' z``, shape (p, c)."""
        return self.whitener @ (self.whitener.T @ self.design.transposed_times(z))

    def _residuals(self, z: Array) -> Array:
        """Return ``C z = z - B B' z``, shape (n, c)."""
        return z - self.half.times(self.half.transposed_times(z))

    def loo(self, z: Array) -> Array:
        """Return ``E z``, shape (n, c)."""
        return self._residuals(z) / self.denominators[:, None]

    def adjoint(self, z: Array) -> Array:
        """Return ``E' z``, shape (n, c); C is symmetric."""
        return self._residuals(z / self.denominators[:, None])

    def solve(
        self,
        unlabelled: Mask,
        right: Array,
        tether: float,
    ) -> tuple[Array, SolverReport]:
        """Solve ``(E_a'E_a + tether I) x = right`` for every column.

        By conjugate gradients, preconditioned by Woodbury's inverse.
        """
        inverse = self._woodbury_inverse(unlabelled, tether)
        empty = arrays.zeros((len(unlabelled), 1), right)
        n_columns = right.shape[1]
        n_products = 0

        def operate(x: Array) -> Array:
            nonlocal n_products
            n_products += 1
            whole = arrays.replaced(empty, unlabelled, x[:, None])
            product = arrays.pick(self.adjoint(self.loo(whole)), unlabelled)[:, 0]
            return product + float(tether) * x

        def precondition(x: Array) -> Array:
            return inverse(x[:, None])[:, 0]

        solution = inverse(right)
        worst = 0.0
        for c in range(n_columns):
            column = right[:, c]
            near = solution[:, c]
            near[:] = linalg.conjugate_gradients(
                operate, precondition, column, near, self.tolerance
            )
            residual = linalg.length(operate(near) - column) / (linalg.length(column) or 1.0)
            worst = max(worst, residual)
            log.info("conjugate gradients: column %d of %d, residual %.1e", c + 1, n_columns, worst)
        return solution, {
            "solver": "conjugate gradients",
            "products": n_products,
            "relative_residual": worst,
            "tolerance": self.tolerance,
            "converged": worst <= 10 * self.tolerance,
        }

    def solver_of_tethers(self, unlabelled: Mask) -> SolverOfTethers:
        """Return the solution as a function of right sides and tether."""

        def solve(right: Array, tether: float) -> Array:
            solution, _ = self.solve(unlabelled, right, tether)
            return solution

        return solve

    def _woodbury_inverse(self, unlabelled: Mask, tether: float) -> Callable[[Array], Array]:
        """Return the inverse of ``E_a'E_a + tether I`` as a function of columns (m, c).

        With ``w = diag(C)^-2`` and ``R = B' w B``::

            E_a'E_a = w - B_a B_a'w - w B_a B_a' + B_a R B_a'

        so the matrix is ``delta + U S U'`` with ``delta = w + tether``, ``U = [B_a, w B_a]`` and
        ``S^-1 = [[0, -I], [-I, -R]]``, and its inverse is ::

            delta^-1 - delta^-1 U (S^-1 + U' delta^-1 U)^-1 U' delta^-1
        """
        w = self.denominators**-2
        xp = arrays.namespace(w)
        is_unlabelled = arrays.asarray_like(unlabelled, w)
        delta = xp.where(is_unlabelled, w + tether, xp.ones_like(w))
        inverse_delta = xp.where(is_unlabelled, 1.0 / delta, xp.zeros_like(w))
        p = self.half.p
        plain = self.half.gram(inverse_delta)
        once = self.half.gram(w * inverse_delta)
        twice = self.half.gram(w * w * inverse_delta)
        identity = xp.eye(p, dtype=w.dtype, **arrays.on_device(w))
        upper = xp.concat([plain, once - identity], axis=1)
        lower = xp.concat([once - identity, twice - self.half.gram(w)], axis=1)
        solve = linalg.solver(xp.concat([upper, lower], axis=0))
        delta_a = arrays.pick(delta, unlabelled)[:, None]

        def inverse(x: Array) -> Array:
            empty = arrays.zeros((len(unlabelled), x.shape[1]), x)
            scaled = arrays.replaced(empty, unlabelled, x / delta_a)
            of_B = self.half.transposed_times(scaled)
            of_wB = self.half.transposed_times(scaled * w[:, None])
            solved = solve(xp.concat([of_B, of_wB]))
            first = self.half.times(solved[:p, :])
            second = self.half.times(solved[p:, :])
            change = first + w[:, None] * second
            return x / delta_a - arrays.pick(change, unlabelled) / delta_a

        return inverse
