"""The missing labels that make ridge regression's leave-one-out error small: the transductive step.

``E z`` is the vector of leave-one-out residuals of a completed label vector ``z``, with ``E = diag(C)^-1 C`` and
``C = I - K (K'K + ridge I)^-1 K'``. The answer minimises ``|E z|^2 + tether |z_a - start|^2`` over the unlabelled
labels ``z_a``, a least-squares problem::

    (E_a'E_a + tether I) z_a = tether start - E_a'E_l y

where ``E_a`` and ``E_l`` are the columns of unlabelled and labelled rows (Chapelle, Vapnik and Weston 1999, equation
31). `DenseSystem` holds ``E`` as an ``n x n`` matrix; `DesignSystem` never forms one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve, solve_triangular
from scipy.sparse.linalg import LinearOperator, cg

from transduce.core.linalg import guarded_cholesky
from transduce.core.types import Array, Mask
from transduce.methods.ridge.leave_one_out import SMALLEST_DENOMINATOR

log = logging.getLogger(__name__)

# Smallest over largest eigenvalue of K'K + ridge I: below this fewer than eight digits of the answer would be right.
LARGEST_LOSS = 1e-9


class Completion(NamedTuple):
    """A completed label vector.

    Attributes
    ----------
    labels : array of shape (n, c)
        Labels, with the answer at the unlabelled rows.
    loo_residuals : array of shape (n, c)
        ``E z``: leave-one-out residuals of the completed sample.
    coefficients : array of shape (p, c)
        Ridge regression on the completed sample.
    objective : array of shape (c,)
        ``|E z|^2 + tether |z_a - start|^2`` of each column.
    solver : dict
        How the linear system was solved.

    Examples
    --------
    >>> import numpy as np
    >>> system = DenseSystem.build(np.eye(3), ridge=1.0)
    >>> unlabelled = np.array([False, False, True])
    >>> complete(system, np.array([[1.0], [2.0], [0.0]]), unlabelled, start=np.zeros((1, 1)), tether=1.0).labels[2]
    array([0.])
    """

    labels: Array
    loo_residuals: Array
    coefficients: Array
    objective: Array
    solver: dict[str, Any]


def complete(
    system: DenseSystem | DesignSystem, y: Array, unlabelled: Mask, *, start: Array, tether: float
) -> Completion:
    """Return the completed labels.

    Parameters
    ----------
    system : DenseSystem or DesignSystem
        From the features and the ridge; it knows nothing of labels, nor which rows are unlabelled.
    y : array of shape (n, c)
        Labels; entries at unlabelled rows are not read.
    unlabelled : boolean array of shape (n,)
    start : array of shape (m, c)
        Inductive answers, to which `tether` holds.
    tether : float
        Not negative. An infinite one leaves `start` as it is.

    Returns
    -------
    Completion

    Examples
    --------
    Between two rows with label 2, leaving out likes best a label that makes up for the ridge's pull towards 0:

    >>> import numpy as np
    >>> place = np.array([0.0, 1.0, 0.5])
    >>> system = DenseSystem.build(np.exp(-np.abs(np.subtract.outer(place, place))), ridge=0.1)
    >>> unlabelled, y = np.array([False, False, True]), np.array([[2.0], [2.0], [0.0]])
    >>> complete(system, y, unlabelled, start=np.zeros((1, 1)), tether=0.0).labels[2].round(2)
    array([2.37])
    """
    labels = np.where(unlabelled[:, None], 0.0, y)
    solver: dict[str, Any] = {"solver": "none needed"}
    if np.isinf(tether) or not unlabelled.any():
        labels[unlabelled] = start
    else:
        right = tether * start - system.adjoint(system.loo(labels))[unlabelled]
        labels[unlabelled], solver = system.solve(unlabelled, right, tether)
    residuals = system.loo(labels)
    objective = np.sum(residuals**2, axis=0)
    if np.isfinite(tether):
        objective += tether * np.sum((labels[unlabelled] - start) ** 2, axis=0)
    return Completion(labels, residuals, system.coefficients(labels), objective, solver)


class SmallRidgeError(ValueError):
    """The ridge is too small for these rows in double precision.

    Examples
    --------
    >>> raise SmallRidgeError("use a larger ridge")
    Traceback (most recent call last):
    transduce.methods.ridge.completion.SmallRidgeError: use a larger ridge
    """


def checked_denominators(denominators: Array) -> Array:
    """Return the denominators ``diag(C)``, or raise an error where they are no more than rounding."""
    if denominators.min() <= SMALLEST_DENOMINATOR:
        raise SmallRidgeError(
            "Some rows cannot be left out in double precision, because ridge is too small for these rows: "
            "use a larger ridge, or ridge='loo'."
        )
    return denominators


@dataclass(frozen=True)
class DenseSystem:
    """``E`` for centres at all rows: the paper's method, with ``n x n`` matrices.

    For a symmetric kernel matrix ``C = ridge (K^2 + ridge I)^-1`` and ``(K'K + ridge I)^-1 K' = K C / ridge``. Both
    come from a Cholesky factor of ``K^2 + ridge I`` where squaring costs no digits that matter, else from
    eigenvectors of ``K``, which take several times as long.

    Examples
    --------
    >>> import numpy as np
    >>> DenseSystem.build(2.0 * np.eye(2), ridge=1.0).C
    array([[0.2, 0. ],
           [0. , 0.2]])
    """

    C: Array
    fitter: Array
    denominators: Array

    @classmethod
    def build(cls, K: Array, ridge: float) -> DenseSystem:
        """Compute ``C`` of a symmetric kernel matrix (n, n), and the matrix from labels to coefficients."""
        n = len(K)
        largest = float(np.max(np.sum(np.abs(K), axis=1), initial=0.0)) ** 2
        if ridge > 1e-7 * largest:
            A = K @ K
            A.flat[:: n + 1] += ridge
            inverse = cho_solve(cho_factor(A, lower=True, overwrite_a=True), np.eye(n), overwrite_b=True)
            return cls(ridge * inverse, K @ inverse, ridge * np.diag(inverse))
        values, vectors = np.linalg.eigh(K)
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
        E_a = self.C[:, unlabelled] / self.denominators[:, None]
        A = E_a.T @ E_a
        A.flat[:: len(A) + 1] += tether
        factor, jitter = guarded_cholesky(A)
        return cho_solve((factor, True), right), {"solver": "cholesky", "jitter": jitter}


@dataclass(frozen=True)
class Design:
    """The design matrix of all rows on p centres, in blocks of rows: stored, or computed when asked for.

    Examples
    --------
    >>> import numpy as np
    >>> design = Design.of(lambda rows: rows, np.eye(3), 3, max_bytes=1e6)
    >>> design.gram(np.ones(3))
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """

    compute: Any
    rows: Array
    stored: Array | None
    p: int
    block: int

    @classmethod
    def of(cls, compute: Any, rows: Array, p: int, *, max_bytes: float) -> Design:
        """Build from a function of rows (k, d) that returns their lines (k, p) of the design matrix."""
        stored = None
        if 8.0 * len(rows) * p <= max_bytes:
            stored = np.empty((len(rows), p))
        design = cls(compute, rows, None, p, int(np.clip(max_bytes // (32 * p), 256, 16384)))
        if stored is None:
            log.info("design matrix of %d rows: computed in blocks each time it is used", len(rows))
            return design
        for part, lines in design.blocks():
            stored[part] = lines
        return cls(compute, rows, stored, p, design.block)

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield slices of the rows with their lines of the matrix."""
        for start in range(0, len(self.rows), self.block):
            part = slice(start, min(start + self.block, len(self.rows)))
            yield part, self.compute(self.rows[part]) if self.stored is None else self.stored[part]

    def gram(self, weights: Array) -> Array:
        """Return ``K' diag(weights) K``, shape (p, p), for weights (n,) that are not negative."""
        total = np.zeros((self.p, self.p))
        for part, lines in self.blocks():
            if weights[part].any():
                scaled = lines * np.sqrt(weights[part])[:, None]
                total += scaled.T @ scaled
        return total

    def factor(self, ridge: float) -> Array:
        """Return the Cholesky factor of ``K'K + ridge I``, shape (p, p); refuse if squaring costs too many digits."""
        A = self.gram(np.ones(len(self.rows)))
        A.flat[:: len(A) + 1] += ridge
        values = np.linalg.eigvalsh(A)
        if not values[0] > LARGEST_LOSS * values[-1]:
            raise SmallRidgeError(
                "The basis functions are too alike for so small a ridge in double precision: use a larger ridge, "
                "ridge='loo', or fewer centres."
            )
        return guarded_cholesky(A)[0]

    def coefficients(self, y: Array, ridge: float) -> Array:
        """Return the coefficients of ridge regression on labels (n, c), shape (p, c)."""
        if len(self.rows) > 20_000:
            return cho_solve((self.factor(ridge), True), self.transposed_times(y))
        # Few enough rows for singular vectors, which lose no digits to squaring.
        left, values, right = np.linalg.svd(
            np.concatenate([b for _, b in self.blocks()]), full_matrices=False
        )
        return right.T @ ((values / (values**2 + ridge))[:, None] * (left.T @ y))

    def times(self, coefficients: Array) -> Array:
        """Return ``K coefficients``, shape (n, c)."""
        return np.concatenate([lines @ coefficients for _, lines in self.blocks()])

    def transposed_times(self, vectors: Array) -> Array:
        """Return ``K' vectors``, shape (p, c)."""
        total = np.zeros((self.p, vectors.shape[1]))
        for part, lines in self.blocks():
            total += lines.T @ vectors[part]
        return total

    def row_norms(self, factor: Array) -> Array:
        """Return ``|L^-1 k_t|^2`` for every line ``k_t``, shape (n,)."""
        norms = np.empty(len(self.rows))
        for part, lines in self.blocks():
            half = solve_triangular(factor, lines.T, lower=True, check_finite=False)
            norms[part] = np.einsum("ij,ij->j", half, half)
        return norms


@dataclass(frozen=True)
class DesignSystem:
    """``E`` for any design matrix; nothing ``n x n`` is formed.

    Notes
    -----
    ``C`` is the identity less a matrix of rank p, so ``E_a'E_a + tether I`` is a diagonal plus rank 2p, and
    Woodbury's identity inverts it with four weighted Gram matrices, ``O(n p^2)``. That inverse preconditions conjugate
    gradients, which then need an iteration or none to reach `tolerance` against the operator itself.

    Examples
    --------
    >>> import numpy as np
    >>> design = Design.of(lambda rows: rows, np.ones((3, 1)), 1, max_bytes=1e6)
    >>> DesignSystem.build(design, ridge=1e-9).loo(np.array([[1.0], [2.0], [6.0]])).round(6)
    array([[-3. ],
           [-1.5],
           [ 4.5]])
    """

    design: Design
    factor: Array
    denominators: Array
    tolerance: float = 1e-10

    @classmethod
    def build(cls, design: Design, ridge: float) -> DesignSystem:
        """Factorise ``K'K + ridge I`` and compute ``diag(C)``."""
        factor = design.factor(ridge)
        return cls(design, factor, checked_denominators(1.0 - design.row_norms(factor)))

    def coefficients(self, z: Array) -> Array:
        """Return ``(K'K + ridge I)^-1 K' z``, shape (p, c)."""
        return cho_solve((self.factor, True), self.design.transposed_times(z))

    def loo(self, z: Array) -> Array:
        """Return ``E z``, shape (n, c)."""
        return (z - self.design.times(self.coefficients(z))) / self.denominators[:, None]

    def adjoint(self, z: Array) -> Array:
        """Return ``E' z``, shape (n, c); C is symmetric."""
        scaled = z / self.denominators[:, None]
        return scaled - self.design.times(self.coefficients(scaled))

    def solve(self, unlabelled: Mask, right: Array, tether: float) -> tuple[Array, dict[str, Any]]:
        """Solve ``(E_a'E_a + tether I) x = right`` for every column, by preconditioned conjugate gradients."""
        m, n_products = len(right), 0
        inverse = self._woodbury(unlabelled, tether)

        def operate(x: Array) -> Array:
            nonlocal n_products
            n_products += 1
            whole = np.zeros((len(unlabelled), 1))
            whole[unlabelled, 0] = x.ravel()
            return self.adjoint(self.loo(whole))[unlabelled, 0] + tether * x.ravel()

        operator = LinearOperator((m, m), matvec=operate, dtype=float)
        preconditioner = LinearOperator((m, m), matvec=lambda x: inverse(x.reshape(-1, 1))[:, 0], dtype=float)
        solution, worst = inverse(right), 0.0
        for c, column in enumerate(right.T):
            first = solution[:, c]
            solution[:, c], _ = cg(
                operator, column, x0=first, rtol=self.tolerance, maxiter=200, M=preconditioner
            )
            gap = float(np.linalg.norm(operate(solution[:, c]) - column))
            worst = max(worst, gap / (float(np.linalg.norm(column)) or 1.0))
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
        """Return the inverse of ``E_a'E_a + tether I`` as a function.

        With ``Q = K L^-T``, ``w = diag(C)^-2`` and ``R = Q' w Q``,
        ``E_a'E_a = w - Q_a Q_a'w - w Q_a Q_a' + Q_a R Q_a'``, so the matrix is ``delta + U S U'`` with
        ``delta = w + tether``, ``U = [Q_a, w Q_a]`` and ``S^-1 = [[0, -I], [-I, -R]]``.
        """
        w = self.denominators**-2
        delta = np.where(unlabelled, w + tether, 1.0)
        on_unlabelled = np.where(unlabelled, 1.0 / delta, 0.0)
        p = self.design.p
        grams = [
            self._whitened(weights)
            for weights in (on_unlabelled, w * on_unlabelled, w * w * on_unlabelled, w)
        ]
        middle = np.block([[grams[0], grams[1]], [grams[1], grams[2]]])
        middle[:p, p:] -= np.eye(p)
        middle[p:, :p] -= np.eye(p)
        middle[p:, p:] -= grams[3]
        factors = lu_factor(middle)

        def inverse(x: Array) -> Array:
            scaled = np.zeros((len(unlabelled), x.shape[1]))
            scaled[unlabelled] = x / delta[unlabelled, None]
            both = np.concatenate([self._project(scaled), self._project(scaled * w[:, None])])
            solved = lu_solve(factors, both)
            upper, lower = (
                solve_triangular(self.factor, part, lower=True, trans="T")
                for part in (solved[:p], solved[p:])
            )
            change = self.design.times(upper) + w[:, None] * self.design.times(lower)
            return scaled[unlabelled] - change[unlabelled] / delta[unlabelled, None]

        return inverse

    def _project(self, x: Array) -> Array:
        return solve_triangular(self.factor, self.design.transposed_times(x), lower=True)

    def _whitened(self, weights: Array) -> Array:
        half = solve_triangular(self.factor, self.design.gram(weights), lower=True)
        return solve_triangular(self.factor, half.T, lower=True)
