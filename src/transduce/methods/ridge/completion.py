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
from functools import reduce
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
    right: Array  # (r, p) right singular vectors

    @classmethod
    def of_design(cls, K: Array, labels: Array, *, rough: bool = False) -> RidgeSpectrum:
        """Decompose a design matrix of shape (l, p); roughly, for ridges of 1e-10 of the largest square or more."""
        xp = arrays.namespace(K)
        if (
            rough and K.shape[0] > K.shape[1]
        ):  # squaring costs digits, and takes less than half of the time
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
        return self.right.T @ (
            (self.squares**0.5 / (self.squares + ridge))[:, None] * self.projected
        )

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
            more = (
                self.ridges[[0]] / [10, 10**0.5] if at == 0 else self.ridges[[-1]] * [10**0.5, 10]
            )
            further = self._record(spectrum, width, more)
            order = 1 if at == 0 else -1  # the new ones come first, or last
            self.ridges = np.concatenate([more, self.ridges][::order])
            errors = np.concatenate([further, errors][::order])
        return errors

    def _record(self, spectrum: RidgeSpectrum, width: float | None, ridges: Array) -> Array:
        errors = spectrum.errors(ridges)
        if not self.fixed:
            errors = np.where(
                ridges < SMALLEST_RIDGE * arrays.largest(spectrum.squares), np.inf, errors
            )
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
        raise ValueError(
            "No width and ridge could be judged by leave-one-out: set them to numbers."
        )
    path = pd.DataFrame(trial.lines, columns=["width", "ridge", "error"])
    return RidgeChoice(best_width, best_ridge, error, path)


# Smallest over largest eigenvalue of K'K + ridge I: below this fewer than eight digits of the answer would be right.
LARGEST_LOSS = 1e-9


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
        design = cls(compute, rows, None, p, int(np.clip(max_bytes // (32 * p), 256, 16384)))
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

    def squared(self, ridge: float) -> Array:
        """Return ``K'K + ridge I``, shape (p, p)."""
        return arrays.shifted(
            self.gram(arrays.zeros((self.rows.shape[0],), self.rows) + 1.0), ridge
        )

    def factor(self, ridge: float) -> Array:
        """Return the Cholesky factor of ``K'K + ridge I``, shape (p, p); refuse if squaring costs too many digits."""
        A = self.squared(ridge)
        values = arrays.namespace(A).linalg.eigvalsh(A)
        if not float(values[0]) > LARGEST_LOSS * float(values[-1]):
            raise SmallRidgeError(
                "The basis functions are too alike for so small a ridge in double precision: use a larger ridge, "
                "ridge='loo', or fewer centres."
            )
        return guarded_cholesky(A)[0]

    def coefficients(self, y: Array, ridge: float) -> Array:
        """Return the coefficients of ridge regression on labels (n, c), shape (p, c), to some eight digits."""
        return linalg.cholesky_solve(
            guarded_cholesky(self.squared(ridge))[0], self.transposed_times(y)
        )

    def times(self, coefficients: Array) -> Array:
        """Return ``K coefficients``, shape (n, c)."""
        return arrays.namespace(self.rows).concat(
            [lines @ coefficients for _, lines in self.blocks()]
        )

    def transposed_times(self, vectors: Array) -> Array:
        """Return ``K' vectors``, shape (p, c)."""
        return self._sum(lambda part, lines: lines.T @ vectors[part, :])

    def row_norms(self, factor: Array) -> Array:
        """Return ``|L^-1 k_t|^2`` for every line ``k_t``, shape (n,)."""
        norms = [
            arrays.column_squares(linalg.triangular_solve(factor, lines.T))
            for _, lines in self.blocks()
        ]
        return arrays.namespace(self.rows).concat(norms)


@dataclass(frozen=True)
class DesignSystem:
    """``E`` for any design matrix; nothing ``n x n`` is formed."""

    # ``C`` is the identity less a matrix of rank p, so ``E_a'E_a + tether I`` is a diagonal plus rank 2p, and
    # Woodbury's identity inverts it with four weighted Gram matrices, ``O(n p^2)``. That inverse preconditions
    # conjugate gradients, which then need an iteration or none to reach `tolerance` against the operator itself.

    design: DesignMatrix
    factor: Array
    denominators: Array
    tolerance: float = 1e-10

    @classmethod
    def build(cls, design: DesignMatrix, ridge: float) -> DesignSystem:
        """Factorise ``K'K + ridge I`` and compute ``diag(C)``, or raise an error where it is no more than rounding."""
        factor = design.factor(ridge)
        denominators = 1.0 - design.row_norms(factor)
        if float(arrays.namespace(denominators).min(denominators)) <= SMALLEST_DENOMINATOR:
            raise SmallRidgeError(
                "Some rows cannot be left out in double precision, because ridge is too small for these rows: "
                "use a larger ridge, or ridge='loo'."
            )
        return cls(design, factor, denominators)

    def coefficients(self, z: Array) -> Array:
        """Return ``(K'K + ridge I)^-1 K' z``, shape (p, c)."""
        return linalg.cholesky_solve(self.factor, self.design.transposed_times(z))

    def loo(self, z: Array) -> Array:
        """Return ``E z``, shape (n, c)."""
        return (z - self.design.times(self.coefficients(z))) / self.denominators[:, None]

    def adjoint(self, z: Array) -> Array:
        """Return ``E' z``, shape (n, c); C is symmetric."""
        scaled = z / self.denominators[:, None]
        return scaled - self.design.times(self.coefficients(scaled))

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
        # With ``Q = K L^-T``, ``w = diag(C)^-2`` and ``R = Q' w Q``,
        # ``E_a'E_a = w - Q_a Q_a'w - w Q_a Q_a' + Q_a R Q_a'``, so the matrix is ``delta + U S U'`` with
        # ``delta = w + tether``, ``U = [Q_a, w Q_a]`` and ``S^-1 = [[0, -I], [-I, -R]]``.
        w = self.denominators**-2
        xp, mask = arrays.namespace(w), arrays.beside(unlabelled, w)
        delta = xp.where(mask, w + tether, xp.ones_like(w))
        inside, p = xp.where(mask, 1.0 / delta, xp.zeros_like(w)), self.design.p
        grams = [self._whitened(weights) for weights in (inside, w * inside, w * w * inside, w)]
        one = xp.eye(p, dtype=w.dtype, **arrays.on_device(w))
        upper, lower = [grams[0], grams[1] - one], [grams[1] - one, grams[2] - grams[3]]
        middle = xp.concat([xp.concat(upper, axis=1), xp.concat(lower, axis=1)], axis=0)
        solve = linalg.solver(middle)
        own = arrays.pick(delta, unlabelled)[:, None]

        def inverse(x: Array) -> Array:
            scaled = arrays.replaced(
                arrays.zeros((len(unlabelled), x.shape[1]), x), unlabelled, x / own
            )
            solved = solve(xp.concat([self._project(scaled), self._project(scaled * w[:, None])]))
            upper = linalg.triangular_solve(self.factor, solved[:p, :], transposed=True)
            lower = linalg.triangular_solve(self.factor, solved[p:, :], transposed=True)
            change = self.design.times(upper) + w[:, None] * self.design.times(lower)
            return x / own - arrays.pick(change, unlabelled) / own

        return inverse

    def _project(self, x: Array) -> Array:
        return linalg.triangular_solve(self.factor, self.design.transposed_times(x))

    def _whitened(self, weights: Array) -> Array:
        half = linalg.triangular_solve(self.factor, self.design.gram(weights))
        return linalg.triangular_solve(self.factor, half.T)
