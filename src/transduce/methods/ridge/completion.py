"""Ridge regression's leave-one-out residuals in closed form, and the missing labels that make them small.

With ``H = K (K'K + ridge I)^-1 K'``, ``C = I - H`` and ``c = C y``, leaving row ``t`` out changes its residual from
``c_t`` to ``c_t / C_tt``: all refits follow from one (Chapelle, Vapnik and Weston 1999, equation 15). So ``E z``, ``E =
diag(C)^-1 C``, is the vector of leave-one-out residuals of a completed label vector ``z``. The transductive answer
minimises ``|E z|^2 + tether |z_a - start|^2`` over the unlabelled labels ``z_a`` (equation 31), with ``E_a``, ``E_l``
the columns of either kind of row::

    (E_a'E_a + tether I) z_a = tether start - E_a'E_l y
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from transduce.core import arrays, checks
from transduce.core.types import Array, Mask
from transduce.device import linalg, memory
from transduce.device.linalg import guarded_cholesky

log = logging.getLogger(__name__)

# Below this a denominator 1 - h_tt, a difference, is rounding noise, and so is what is divided by it.
SMALLEST_DENOMINATOR = 1e-10
# A ridge below this share of the largest squared singular value keeps directions that are rounding noise.
SMALLEST_RIDGE = 1e-12
# Such a share of the largest square is rounding noise where squares come from products.
SMALLEST_SQUARE = 1e-13
# From such a share of the largest square on, a ridge makes up for the digits that squaring costs: eight are left.
SQUARING = 1e-7
# Times the smallest error so far: squaring moves errors by less, at the smallest ridges that are tried.
ROUGHLY = 1.05
# A row with a smaller denominator is hardly told by the others, and its square would drown all other rows: where the
# ridge was chosen for the labelled rows alone, such a row counts as if it had this one. With 1e-8 conjugate gradients
# end, with 1e-9 no more.
LEAST_COUNTED = 1e-7


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
    K = checks.as_floats("K", K)
    y = checks.as_floats("y", y)
    if K.ndim != 2 or y.ndim not in (1, 2) or len(K) != len(y) or K.size == 0:
        raise ValueError(
            f"K must have one line for each label; got shapes {K.shape} and {y.shape}."
        )
    if not (np.isfinite(K).all() and np.isfinite(y).all()):
        raise ValueError("K and y must be finite: leave out rows without a label.")
    spectrum = RidgeSpectrum.of_design(K, y.reshape(len(y), -1))
    residuals, denominators = spectrum.residuals(checks.check_positive("ridge", ridge))
    if not np.isfinite(spectrum.squares).all() or not np.isfinite(residuals).all():
        raise ValueError(
            "The numbers of K are too large for their squares: divide K by a constant."
        )
    if not spectrum.is_square:
        denominators = np.where(denominators > SMALLEST_DENOMINATOR, denominators, np.nan)
    if not np.isfinite(residuals).all():
        raise ValueError(
            "The numbers of K are too large for their squares: divide K by a constant."
        )
    return (residuals / denominators[:, None]).reshape(y.shape)


class RidgeSpectrum(NamedTuple):
    """A design matrix and labels in the coordinates in which every ridge is a matter of shrinking."""

    vectors: Array  # (l, r) left singular vectors U of the design matrix
    squares: Array  # (r,) squared singular values
    labels: Array  # (l, c)
    projected: Array  # (r, c) ``U' labels``

    design: Array | None = None  # (l, p) where it was squared, to decompose it again without

    @classmethod
    def of_design(cls, K: Array, labels: Array) -> RidgeSpectrum:
        """Decompose a design matrix of shape (l, p), without squaring it: a square costs half of the digits."""
        vectors, values = linalg.left_singular(K)
        return cls(vectors, values**2, labels, vectors.T @ labels)

    @classmethod
    def of_square(cls, K: Array, labels: Array) -> RidgeSpectrum:
        """Decompose a design matrix with many rows by its square, in half of the time, for ridges from `least` on."""
        if K.shape[0] <= K.shape[1]:
            return cls.of_design(K, labels)
        squares, right = linalg.eigh(K.T @ K)
        kept = arrays.to_numpy(squares > SMALLEST_SQUARE * squares[-1])
        squares, right = arrays.pick(squares, kept), arrays.pick_columns(right, kept)
        vectors = K @ (right / arrays.namespace(K).sqrt(squares))
        return cls(vectors, squares, labels, vectors.T @ labels, K)

    @property
    def least(self) -> float:
        """The smallest ridge that it can be asked for without a loss of digits."""
        return 0.0 if self.design is None else SQUARING * arrays.largest(self.squares)

    def precise(self) -> RidgeSpectrum:
        """Return the same, for every ridge."""
        return self if self.design is None else RidgeSpectrum.of_design(self.design, self.labels)

    @classmethod
    def of_kernel(cls, K: Array, labels: Array) -> RidgeSpectrum:
        """Decompose a symmetric kernel matrix of shape (l, l), which is cheaper."""
        values, vectors = arrays.namespace(K).linalg.eigh(K)
        return cls(vectors, values**2, labels, vectors.T @ labels)

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


class _Search:
    """Bookkeeping of a search over widths, each with many ridges at little extra cost."""

    def __init__(
        self, spectrum: Callable[[float | None], RidgeSpectrum], ridge: float | None
    ) -> None:
        self.spectrum = spectrum
        self.fixed = ridge is not None
        self.ridges = np.array([] if ridge is None else [ridge])
        self.lines: list[tuple[float | None, float, float]] = []

    def try_width(self, width: float | None) -> float:
        """Record all ridges at a width, and finer ones around the best; return the smallest error."""
        spectrum = self.spectrum(width)
        if len(self.ridges) == 0:
            # In units of the largest squared singular value, so that the kernel's scale does not matter.
            self.ridges = (arrays.largest(spectrum.squares) or 1.0) * 10.0 ** np.arange(
                -11, 0.75, 0.5
            )
        lines = self._try_ridges(spectrum, width)
        _, best_ridge, smallest = min(lines, key=lambda line: line[2])
        so_far = min((error for *_, error in self.lines), default=np.inf)
        # Roughly is enough for a width that will not be chosen.
        if best_ridge < spectrum.least and smallest < ROUGHLY * so_far:
            lines = self._try_ridges(spectrum.precise(), width)
        self.lines += lines
        smallest = min(error for *_, error in lines)
        log.info("leave-one-out: width %s, smallest error %.4g", width, smallest)
        return smallest

    def _try_ridges(
        self, spectrum: RidgeSpectrum, width: float | None
    ) -> list[tuple[float | None, float, float]]:
        """Return width, ridge and error of all ridges, and of finer ones around the best."""
        tried = [self.ridges]
        found = [self._errors(spectrum, self.ridges)]
        if not self.fixed:
            self._widen(spectrum, tried, found)
            around = np.concatenate(tried)[int(np.argmin(np.concatenate(found)))]
            finer = around * 10.0 ** np.linspace(-0.4, 0.4, 9)
            tried.append(finer)
            found.append(self._errors(spectrum, finer))
        ridges, errors = np.concatenate(tried).tolist(), np.concatenate(found).tolist()
        return [(width, ridge, error) for ridge, error in zip(ridges, errors, strict=True)]

    def _widen(self, spectrum: RidgeSpectrum, tried: list[Array], found: list[Array]) -> None:
        """Add a decade of ridges at an end for as long as the optimum sits there, six times at most."""
        errors = found[0]
        for _ in range(6):
            at = int(np.argmin(errors))
            if 0 < at < len(errors) - 1:
                break
            at_low_end = at == 0
            if at_low_end:
                more = self.ridges[[0]] / [10, 10**0.5]
            else:
                more = self.ridges[[-1]] * [10**0.5, 10]
            further = self._errors(spectrum, more)
            tried.append(more)
            found.append(further)
            order = 1 if at_low_end else -1  # the new ones come first, or last
            self.ridges = np.concatenate([more, self.ridges][::order])
            errors = np.concatenate([further, errors][::order])

    def _errors(self, spectrum: RidgeSpectrum, ridges: Array) -> Array:
        """Return the error of every ridge; infinite where a ridge that may be chosen is too small to be."""
        errors = spectrum.errors(ridges)
        if self.fixed:
            return errors
        too_small = ridges < SMALLEST_RIDGE * arrays.largest(spectrum.squares)
        return np.where(too_small, np.inf, errors)


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
        raise ValueError(
            "No width and ridge could be judged by leave-one-out: set them to numbers."
        )
    path = pd.DataFrame(trial.lines, columns=["width", "ridge", "error"])
    return RidgeChoice(best_width, best_ridge, error, path)


class Completion(NamedTuple):
    """A completed label vector."""

    labels: Array  # (n, c) labels, with the answer at the unlabelled rows
    loo_residuals: Array  # (n, c) ``E z``: leave-one-out residuals of the completed sample
    coefficients: Array  # (p, c) ridge regression on the completed sample
    objective: Array  # (c,) ``|E z|^2 + tether |z_a - start|^2`` of each column
    solver: dict[str, Any]  # how the linear system was solved


def complete(
    system: DenseSystem | DesignSystem, y: Array, unlabelled: Mask, *, start: Array, tether: float
) -> Completion:
    """Return the completed labels. Shapes: y (n, c), unlabelled (n,), start (m, c)."""
    xp = arrays.namespace(y)
    labels = xp.where(arrays.beside(unlabelled, y)[:, None], xp.zeros_like(y), y)
    solver: dict[str, Any] = {"solver": "none needed"}
    if np.isinf(tether) or not unlabelled.any():
        labels = arrays.replaced(labels, unlabelled, start)
    else:
        right = tether * start - arrays.pick(system.adjoint(system.loo(labels)), unlabelled)
        answers, solver = system.solve(unlabelled, right, tether)
        labels = arrays.replaced(labels, unlabelled, answers)
    residuals = system.loo(labels)
    objective = xp.sum(residuals**2, axis=0)
    if np.isfinite(tether):
        objective = objective + tether * xp.sum(
            (arrays.pick(labels, unlabelled) - start) ** 2, axis=0
        )
    return Completion(labels, residuals, system.coefficients(labels), objective, solver)


class SmallRidgeError(ValueError):
    """The ridge is too small for these rows in double precision."""


@dataclass(frozen=True)
class DenseSystem:
    """``E`` for centres at all rows: the paper's method, with ``n x n`` matrices."""

    # For a symmetric kernel matrix ``C = ridge (K^2 + ridge I)^-1`` and ``(K'K + ridge I)^-1 K' = K C / ridge``. Both
    # come from a Cholesky factor of ``K^2 + ridge I`` where squaring costs no digits that matter, else from
    # eigenvectors of ``K``, which take several times as long.

    C: Array
    fitter: Array
    denominators: Array

    @classmethod
    def build(cls, K: Array, ridge: float) -> DenseSystem:
        """Compute ``C`` of a symmetric kernel matrix (n, n), and the matrix from labels to coefficients."""
        xp = arrays.namespace(K)
        largest = float(xp.max(xp.sum(xp.abs(K), axis=1))) ** 2 if K.shape[0] else 0.0
        if ridge > 1e-7 * largest:
            inverse = linalg.positive_inverse(arrays.shifted(K @ K, ridge))
            return cls(ridge * inverse, K @ inverse, ridge * arrays.diagonal(inverse))
        values, vectors = xp.linalg.eigh(K)
        keep = ridge / (values**2 + ridge)
        C = (vectors * keep) @ vectors.T
        # As sums of positive terms the denominators are accurate however small.
        return cls(C, (vectors * (values / (values**2 + ridge))) @ vectors.T, vectors**2 @ keep)

    def coefficients(self, z: Array) -> Array:
        """Return ``(K'K + ridge I)^-1 K' z``, shape (n, c)."""
        return self.fitter @ z

    def loo(self, z: Array) -> Array:
        """Return ``E z``, shape (n, c)."""
        return (self.C @ z) / self.denominators[:, None]

    def adjoint(self, z: Array) -> Array:
        """Return ``E' z``, shape (n, c); C is symmetric."""
        return self.C @ (z / self.denominators[:, None])

    def solve(self, unlabelled: Mask, right: Array, tether: float) -> tuple[Array, dict[str, Any]]:
        """Solve ``(E_a'E_a + tether I) x = right`` for every column."""
        E_a = arrays.pick_columns(self.C, unlabelled) / self.denominators[:, None]
        factor, jitter = guarded_cholesky(arrays.shifted(E_a.T @ E_a, tether))
        return linalg.cholesky_solve(factor, right), {"solver": "cholesky", "jitter": jitter}


@dataclass(frozen=True)
class DesignMatrix:
    """The design matrix of all rows on p centres, in blocks of rows: stored, or computed when asked for."""

    compute: Any
    rows: Array
    stored: Array | None
    p: int
    block: int

    @classmethod
    def of(cls, compute: Any, rows: Array, p: int, *, max_bytes: float) -> DesignMatrix:
        """Build from a function of rows (k, d) that returns their lines (k, p) of the design matrix."""
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
            yield (
                part,
                self.compute(self.rows[part, :]) if self.stored is None else self.stored[part, :],
            )

    def _sum(self, products: Callable[[slice, Array], Array]) -> Array:
        """Return the sum over blocks of a function of the slice and its lines."""
        return reduce(add, (products(part, lines) for part, lines in self.blocks()))

    def gram(self, weights: Array) -> Array:
        """Return ``K' diag(weights) K``, shape (p, p), for weights (n,) that are not negative."""
        roots = arrays.namespace(self.rows).sqrt(weights)[:, None]

        def squares(part: slice, lines: Array) -> Array:
            scaled = lines * roots[part, :]
            return scaled.T @ scaled

        return self._sum(squares)

    def right_spectrum(self, ridge: float) -> tuple[Array, Array]:
        """Return squared singular values (k,) and right singular vectors (p, k), good enough for a ridge.

        Of the square ``K'K`` where that costs no digits that matter, else of the triangle ``R`` of ``K = Q R``, which
        comes block by block of rows; ``Q`` is not formed.
        """
        n = self.rows.shape[0]
        if n > self.p and ridge > SQUARING * self._largest_square_at_least():
            ones = arrays.zeros((n,), self.rows) + 1.0
            squares, right = linalg.eigh(self.gram(ones))
            if ridge > SQUARING * arrays.largest(squares):
                xp = arrays.namespace(squares)
                return xp.where(squares > 0.0, squares, xp.zeros_like(squares)), right
        values, right = linalg.right_singular(
            linalg.triangle_of_blocks(lines for _, lines in self.blocks())
        )
        return values**2, right

    def _largest_square_at_least(self) -> float:
        """Return a lower bound of the largest squared singular value, ``|K 1|^2 / p``: near to it for most kernels."""
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
        return arrays.namespace(self.rows).concat(
            [lines @ coefficients for _, lines in self.blocks()]
        )

    def transposed_times(self, vectors: Array) -> Array:
        """Return ``K' vectors``, shape (p, c)."""
        return self._sum(lambda part, lines: lines.T @ vectors[part, :])

    def row_squares(self) -> Array:
        """Return the sum of squares of every line, shape (n,)."""
        squares = [arrays.row_products(lines, lines) for _, lines in self.blocks()]
        return arrays.namespace(self.rows).concat(squares)


@dataclass(frozen=True)
class DesignSystem:
    """``E`` for any design matrix; nothing ``n x n`` is formed, and nothing is squared."""

    # With the singular values ``s`` and right singular vectors ``W`` of the triangle of ``K``, and
    # ``M = W diag(s^2 + ridge)^-1/2``, the hat matrix is ``H = B B'`` with ``B = K M``. Rounding moves an entry of B by
    # some ``epsilon |k_t| / sqrt(ridge)``, so that a ridge of 1e-12 of the largest square still leaves ten digits; of
    # ``K'K + ridge I``, which would have to be inverted, it leaves none.
    # ``C = I - B B'`` is the identity less a matrix of rank p, so ``E_a'E_a + tether I`` is a diagonal plus rank 2p,
    # and Woodbury's identity inverts it with four weighted Gram matrices of B, ``O(n p^2)``. That inverse
    # preconditions conjugate gradients, which then need an iteration or none to reach `tolerance` against the
    # operator itself.

    design: DesignMatrix  # K, (n, p)
    whitener: Array  # M, (p, k) with k at most p
    smallest: float  # lower bound of diag(C)
    tolerance: float = 1e-10

    @classmethod
    def build(cls, design: DesignMatrix, ridge: float, *, least: float = 0.0) -> DesignSystem:
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
                "Some rows cannot be left out in double precision, because ridge is too small for these rows: "
                "use a larger ridge, or ridge='loo'."
            )

    def coefficients(self, z: Array) -> Array:
        """Return ``(K'K + ridge I)^-1 K' z = M M' K' z``, shape (p, c)."""
        return self.whitener @ (self.whitener.T @ self.design.transposed_times(z))

    def _residuals(self, z: Array) -> Array:
        """Return ``C z``, shape (n, c)."""
        return z - self.half.times(self.half.transposed_times(z))

    def loo(self, z: Array) -> Array:
        """Return ``E z``, shape (n, c)."""
        return self._residuals(z) / self.denominators[:, None]

    def adjoint(self, z: Array) -> Array:
        """Return ``E' z``, shape (n, c); C is symmetric."""
        return self._residuals(z / self.denominators[:, None])

    def solve(self, unlabelled: Mask, right: Array, tether: float) -> tuple[Array, dict[str, Any]]:
        """Solve ``(E_a'E_a + tether I) x = right`` for every column, by preconditioned conjugate gradients."""
        n_products, inverse = 0, self._woodbury(unlabelled, tether)
        empty = arrays.zeros((len(unlabelled), 1), right)

        def operate(x: Array) -> Array:
            nonlocal n_products
            n_products += 1
            whole = arrays.replaced(empty, unlabelled, x[:, None])
            return arrays.pick(self.adjoint(self.loo(whole)), unlabelled)[:, 0] + float(tether) * x

        def precondition(x: Array) -> Array:
            return inverse(x[:, None])[:, 0]

        solution, worst = inverse(right), 0.0
        for c in range(right.shape[1]):
            column, near = right[:, c], solution[:, c]
            near[:] = linalg.conjugate_gradients(
                operate, precondition, column, near, self.tolerance
            )
            worst = max(
                worst, linalg.length(operate(near) - column) / (linalg.length(column) or 1.0)
            )
            log.info(
                "conjugate gradients: column %d of %d, residual %.1e", c + 1, right.shape[1], worst
            )
        return solution, {
            "solver": "conjugate gradients",
            "products": n_products,
            "relative_residual": worst,
            "tolerance": self.tolerance,
            "converged": worst <= 10 * self.tolerance,
        }

    def _woodbury(self, unlabelled: Mask, tether: float) -> Any:
        """Return the inverse of ``E_a'E_a + tether I`` as a function."""
        # With ``w = diag(C)^-2`` and ``R = B' w B``,
        # ``E_a'E_a = w - B_a B_a'w - w B_a B_a' + B_a R B_a'``, so the matrix is ``delta + U S U'`` with
        # ``delta = w + tether``, ``U = [B_a, w B_a]`` and ``S^-1 = [[0, -I], [-I, -R]]``.
        w = self.denominators**-2
        xp = arrays.namespace(w)
        mask = arrays.beside(unlabelled, w)
        delta = xp.where(mask, w + tether, xp.ones_like(w))
        inside = xp.where(mask, 1.0 / delta, xp.zeros_like(w))
        p = self.half.p
        plain, once, twice = (
            self.half.gram(weights) for weights in (inside, w * inside, w * w * inside)
        )
        one = xp.eye(p, dtype=w.dtype, **arrays.on_device(w))
        upper = xp.concat([plain, once - one], axis=1)
        lower = xp.concat([once - one, twice - self.half.gram(w)], axis=1)
        solve = linalg.solver(xp.concat([upper, lower], axis=0))
        delta_a = arrays.pick(delta, unlabelled)[:, None]

        def inverse(x: Array) -> Array:
            scaled = arrays.replaced(
                arrays.zeros((len(unlabelled), x.shape[1]), x), unlabelled, x / delta_a
            )
            projected = [self.half.transposed_times(part) for part in (scaled, scaled * w[:, None])]
            solved = solve(xp.concat(projected))
            change = self.half.times(solved[:p, :]) + w[:, None] * self.half.times(solved[p:, :])
            return x / delta_a - arrays.pick(change, unlabelled) / delta_a

        return inverse
