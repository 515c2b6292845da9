"""The best labelling of a graph that respects the known labels: the spectral graph transducer's numbers.

With the eigenvectors V of a graph as columns, ``z = V w`` minimises::

    w' D w + c (z - g)' C (z - g)    subject to    w' w = n

where D replaces the eigenvalues by the squares of their ranks, g is the target at the labelled rows and C their costs.
Only the labelled rows of V are needed to find w (Joachims 2003, equations 9 to 12).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from transduce._typing import AnyArray, Array, Mask
from transduce.linalg import few_threads
from transduce.spectrum import Spectrum

TIE = 1e-9  # eigenvalues nearer than this are one eigenvalue


class Sphere(NamedTuple):
    """The minimum of a quadratic on a sphere."""

    w: Array
    multiplier: float
    other: Array | None


def minimise_on_sphere(G: Array, b: Array, n: float) -> Sphere:
    """Return the w with ``w'w = n`` that minimises ``w'Gw - 2 b'w``.

    Parameters
    ----------
    G : array of shape (d, d)
        Symmetric.
    b : array of shape (d,)
    n : float
        Squared radius.

    Returns
    -------
    Sphere
        ``w``; the multiplier ``lambda``, at most the smallest eigenvalue of G, with ``(G - lambda I) w = b``; and
        ``other``, None but in the hard case, in which b has no part along the eigenvectors of the smallest eigenvalue:
        then there are two minima, and this is the second.

    Notes
    -----
    With ``G = Q diag(e) Q'``, ``a = Q'b`` and ``t = e_1 - lambda`` the constraint is the secular equation
    ``sum_i a_i^2 / (e_i - e_1 + t)^2 = n``. Its left side falls from infinity to 0 for t > 0; one over its root is
    nearly straight, which Newton's method follows in a few steps from any t on the left of the solution. Solving for t
    instead of lambda keeps all digits when lambda is close to the eigenvalue.

    Examples
    --------
    >>> import numpy as np
    >>> minimise_on_sphere(np.diag([1.0, 2.0]), np.array([3.0, 0.0]), 4.0).w
    array([2., 0.])
    >>> hard = minimise_on_sphere(np.diag([1.0, 2.0]), np.array([0.0, 1.0]), 4.0)
    >>> hard.w.round(3), hard.other.round(3)
    (array([1.732, 1.   ]), array([-1.732,  1.   ]))
    """
    eigenvalues, Q = np.linalg.eigh(G)
    a = Q.T @ b
    gaps = eigenvalues - eigenvalues[0]
    size = float(np.linalg.norm(b))
    scale = max(abs(float(eigenvalues[-1])), abs(float(eigenvalues[0])), np.finfo(float).tiny)
    lead = gaps <= 1e-13 * scale
    if np.linalg.norm(a[lead]) <= 1e-13 * size or size == 0.0:
        a = np.where(lead, 0.0, a)
        rest = np.zeros_like(a)
        rest[~lead] = a[~lead] / gaps[~lead]
        missing = n - float(rest @ rest)
        if missing >= 0.0:
            one, more = Q @ rest, np.sqrt(missing) * Q[:, 0] * (1.0 if Q[0, 0] >= 0.0 else -1.0)
            return Sphere(one + more, float(eigenvalues[0]), one - more if missing > 0.0 else None)
    t = _secular_root(a, gaps, n)
    w = a / (gaps + t)
    return Sphere(Q @ (w * np.sqrt(n / float(w @ w))), float(eigenvalues[0] - t), None)


def _secular_root(a: Array, gaps: Array, n: float) -> float:
    """Return the t > 0 with ``sum a^2 / (gaps + t)^2 = n``."""
    lead = a[gaps == 0.0]
    low, high = float(np.linalg.norm(lead)) / np.sqrt(n), float(np.linalg.norm(a)) / np.sqrt(n)
    t = low if low > 0.0 else 1e-8 * high
    for _ in range(100):
        ratios = a / (gaps + t)
        squares = float(ratios @ ratios)
        if squares >= n:
            low = t
        else:
            high = t
        slope = float(ratios @ (ratios / (gaps + t)))  # minus half the derivative of the squares
        step = squares * (np.sqrt(squares / n) - 1.0) / slope
        new = t + step
        if not low <= new <= high:
            new = 0.5 * (low + high)
        if abs(new - t) <= 4e-16 * t:
            break
        t = new
    return t


@dataclass(frozen=True, eq=False)
class Cut:
    """One labelling of a spectrum.

    Parameters
    ----------
    scores : array of shape (n, c)
        z for each class that is held against the rest; NaN at rows of components without a label.
    thresholds : array of shape (c,)
        The middle between the targets.
    objectives : array of shape (c,)
        The minimum reached, constants included.
    reached : boolean array of shape (n,)
        Rows with a path to a label.
    hard : array of shape (c,)
        Where two labellings are equally good; the one whose scores have the larger sum of cubes is taken, which depends
        neither on the eigenvectors' signs nor on the order of the rows.
    """

    scores: Array
    thresholds: Array
    objectives: Array
    reached: Mask
    hard: Mask


class Basis:
    """The columns of a spectrum that the components with a label have.

    Parameters
    ----------
    spectrum : Spectrum
    rows : array of shape (l,)
        The labelled rows.
    d : int
        Columns wanted; if more components have a label, as many as these less one.

    Attributes
    ----------
    n : int
        Number of reached rows.
    penalties : array of shape (k,)
        Squared ranks of the eigenvalues: 1, 4, 9, ...; equal eigenvalues share the first of their ranks.
    V_l : array of shape (l, k)
        The labelled rows of the columns.
    """

    def __init__(self, spectrum: Spectrum, rows: AnyArray, d: int) -> None:
        self._spectrum = spectrum
        with_label = np.zeros(spectrum.count, dtype=bool)
        with_label[spectrum.components[rows]] = True
        self._all = bool(with_label.all())
        self.reached = (
            np.ones(len(spectrum.components), dtype=bool) if self._all else with_label[spectrum.components]
        )
        self.n = int(self.reached.sum())
        self._known = np.flatnonzero(with_label)
        self._turn = self._null_basis()
        columns = np.flatnonzero(with_label[spectrum.owners])
        self._columns = columns[: max(d - self._turn.shape[1], 0)]
        values = np.concatenate([np.zeros(self._turn.shape[1]), spectrum.values[self._columns]])
        self.penalties = np.square(first_ranks(values)).astype(float)
        null = self._null_entries(rows)
        self.V_l = np.hstack([null, spectrum.vectors[np.ix_(rows, self._columns)].astype(float)])

    def _null_basis(self) -> Array:
        """Return an orthonormal basis, shape (q, q - 1), of the null vectors' span less the constant one."""
        if len(self._known) == 1:
            return np.empty((1, 0))
        sizes = np.bincount(self._spectrum.components, weights=self._spectrum.degrees)[self._known]
        constant = np.sqrt(np.where(sizes > 0.0, sizes, 1.0))
        return np.linalg.qr(np.column_stack([constant, np.eye(len(constant))[:, 1:]]))[0][:, 1:]

    def _null_entries(self, rows: AnyArray) -> Array:
        """Return the rows of the null vectors' basis, shape (len(rows), q - 1)."""
        if len(self._known) == 1:
            return np.empty((len(rows), 0))
        place = np.searchsorted(self._known, self._spectrum.components[rows])
        return self._own_entries(rows)[:, None] * self._turn[place]

    def _own_entries(self, rows: AnyArray) -> Array:
        """Return each row's entry in the null vector of its component."""
        part, degrees = self._spectrum.components, self._spectrum.degrees
        size = np.bincount(part, weights=degrees)[part[rows]]
        return np.sqrt(np.where(size > 0.0, degrees[rows] / np.where(size > 0.0, size, 1.0), 1.0))

    def larger_cubes(self, one: Array, two: Array) -> Array:
        """Return that of two weight vectors whose scores have the larger sum of cubes."""
        sums = (self.expand(np.column_stack([one, two]))[self.reached] ** 3).sum(axis=0)
        return one if sums[0] >= sums[1] else two

    def expand(self, W: Array) -> Array:
        """Return ``V W`` at all rows, NaN where no label reaches; W has shape (k, c)."""
        n_null = self._turn.shape[1]
        V = self._spectrum.vectors
        if len(self._columns) < V.shape[1]:
            full = np.zeros((V.shape[1], W.shape[1]))
            full[self._columns] = W[n_null:]
        else:
            full = W[n_null:]
        Z = (V @ full.astype(V.dtype)).astype(float, copy=False)
        if n_null:
            rows = np.flatnonzero(self.reached)
            place = np.searchsorted(self._known, self._spectrum.components[rows])
            Z[rows] += self._own_entries(rows)[:, None] * (self._turn @ W[:n_null])[place]
        if not self._all:
            Z[~self.reached] = np.nan
        return Z


def first_ranks(values: Array) -> AnyArray:
    """Return the ranks 1, 2, ... of ascending values; those that are equal share the first.

    Examples
    --------
    >>> first_ranks(np.array([0.0, 0.0, 0.5, 0.7, 0.7]))
    array([1, 1, 3, 4, 4])
    """
    if len(values) == 0:
        return np.empty(0, dtype=int)
    new = np.concatenate([[True], np.diff(values) > TIE])
    return np.maximum.accumulate(np.where(new, np.arange(1, len(values) + 1), 0))


def targets(prior: Array) -> tuple[Array, Array]:
    """Return the targets of rows in a class and of the others, from the class's share of all rows.

    Examples
    --------
    >>> targets(np.array([0.5, 0.2]))
    (array([1., 2.]), array([-1. , -0.5]))
    """
    return np.sqrt((1.0 - prior) / prior), -np.sqrt(prior / (1.0 - prior))


def cut_graph(
    spectrum: Spectrum,
    rows: AnyArray,
    members: Mask,
    costs: Array,
    prior: Array,
    *,
    label_weight: float,
    d: int,
) -> Cut:
    """Return the best labelling of all rows for each class against the rest.

    Parameters
    ----------
    spectrum : Spectrum
    rows : array of shape (l,)
        The labelled rows.
    members : boolean array of shape (l, c)
        Which of them are in each class.
    costs : array of shape (l, c)
        What a wrong labelled row costs.
    prior : array of shape (c,)
        Share of each class in all rows.
    label_weight : float
        How much the labels weigh against the cut.
    d : int
        Eigenvectors used.

    Returns
    -------
    Cut
    """
    basis = Basis(spectrum, rows, d)
    if len(basis.penalties) == 0:
        raise ValueError(
            "The labels lie in a component of the graph that has none of the eigenvectors asked for: give more "
            "n_components, or more neighbours."
        )
    high, low = targets(prior)
    G_l = np.where(members, high, low)
    W = np.empty((len(basis.penalties), members.shape[1]))
    objectives, hard = np.empty(members.shape[1]), np.zeros(members.shape[1], dtype=bool)
    with few_threads(len(W)):
        for j, (goal, cost) in enumerate(zip(G_l.T, label_weight * costs.T, strict=True)):
            weighted = basis.V_l * cost[:, None]
            G = basis.V_l.T @ weighted
            G[np.diag_indices_from(G)] += basis.penalties
            b = weighted.T @ goal
            best = minimise_on_sphere(G, b, float(basis.n))
            hard[j] = best.other is not None
            W[:, j] = best.w if best.other is None else basis.larger_cubes(best.w, best.other)
            objectives[j] = W[:, j] @ G @ W[:, j] - 2.0 * b @ W[:, j] + goal @ (cost * goal)
    Z = basis.expand(W)
    return Cut(Z, 0.5 * (high + low), objectives, basis.reached, hard)
