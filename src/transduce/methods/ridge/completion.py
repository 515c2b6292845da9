"""The missing labels that make ridge regression's leave-one-out error small: the transductive step.

``E z`` is the vector of leave-one-out residuals of a completed label vector ``z``, with ``E = diag(C)^-1 C`` and ``C =
I - K (K'K + ridge I)^-1 K'``. The answer minimises ``|E z|^2 + tether |z_a - start|^2`` over the unlabelled labels
``z_a`` (Chapelle, Vapnik and Weston 1999, equation 31), with ``E_a``, ``E_l`` the columns of either kind of row::

    (E_a'E_a + tether I) z_a = tether start - E_a'E_l y
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from transduce.core import arrays
from transduce.core.types import Array, Mask
from transduce.device import linalg, memory
from transduce.device.linalg import guarded_cholesky
from transduce.methods.ridge.leave_one_out import SMALLEST_DENOMINATOR

log = logging.getLogger(__name__)

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
        objective = objective + tether * xp.sum((arrays.pick(labels, unlabelled) - start) ** 2, axis=0)
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
            yield part, self.compute(self.rows[part, :]) if self.stored is None else self.stored[part, :]

    def gram(self, weights: Array) -> Array:
        """Return ``K' diag(weights) K``, shape (p, p), for weights (n,) that are not negative."""
        total, xp = arrays.zeros((self.p, self.p), self.rows), arrays.namespace(self.rows)
        for part, lines in self.blocks():
            if bool(xp.any(weights[part] != 0.0)):
                scaled = lines * xp.sqrt(weights[part])[:, None]
                total += scaled.T @ scaled
        return total

    def squared(self, ridge: float) -> Array:
        """Return ``K'K + ridge I``, shape (p, p)."""
        return arrays.shifted(self.gram(arrays.zeros((self.rows.shape[0],), self.rows) + 1.0), ridge)

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
        return linalg.cholesky_solve(guarded_cholesky(self.squared(ridge))[0], self.transposed_times(y))

    def times(self, coefficients: Array) -> Array:
        """Return ``K coefficients``, shape (n, c)."""
        return arrays.namespace(self.rows).concat([lines @ coefficients for _, lines in self.blocks()])

    def transposed_times(self, vectors: Array) -> Array:
        """Return ``K' vectors``, shape (p, c)."""
        total = arrays.zeros((self.p, vectors.shape[1]), self.rows)
        for part, lines in self.blocks():
            total += lines.T @ vectors[part, :]
        return total

    def row_norms(self, factor: Array) -> Array:
        """Return ``|L^-1 k_t|^2`` for every line ``k_t``, shape (n,)."""
        norms = arrays.zeros((self.rows.shape[0],), self.rows)
        for part, lines in self.blocks():
            norms[part] = arrays.column_squares(linalg.triangular_solve(factor, lines.T))
        return norms


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
            near[:] = linalg.conjugate_gradients(operate, precondition, column, near, self.tolerance)
            gap = linalg.length(operate(near) - column)
            worst = max(worst, gap / (linalg.length(column) or 1.0))
            log.info(
                "conjugate gradients: column %d of %d, relative residual %.1e", c + 1, right.shape[1], worst
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
            scaled = arrays.replaced(arrays.zeros((len(unlabelled), x.shape[1]), x), unlabelled, x / own)
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
