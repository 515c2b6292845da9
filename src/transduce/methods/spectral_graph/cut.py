"""The best labelling of a graph that respects the known labels: the spectral graph transducer's numbers.

With the eigenvectors V of a graph as columns, ``z = V w`` minimises ``w' D w + c (z - g)' C (z - g)`` subject to
``w' w = n``, where D replaces the eigenvalues by the squares of their ranks, g is the target at the labelled rows and C
their costs. Only the labelled rows of V are needed to find w (Joachims 2003, equations 9 to 12).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from transduce.core import arrays, checks
from transduce.core.computing import few_threads
from transduce.core.types import AnyArray, Array, Mask
from transduce.device.graph import TIE, group_bounds, sum_by_group
from transduce.device.linalg import EPSILON
from transduce.methods.spectral_graph.spectrum import Spectrum

MOST_PARTS = 3000  # parts of the graph with labels: their null vectors make one dense matrix


class Sphere(NamedTuple):
    """The minimum of a quadratic on a sphere: see `minimise_on_sphere`."""

    w: Array
    multiplier: float
    fixed: Array
    free: Array


def minimise_on_sphere(G: Array, b: Array, n: float) -> Sphere:
    """Return the w (d,) with ``w'w = n`` that minimises ``w'Gw - 2 b'w``, for G (d, d)."""
    # With ``G = Q diag(e) Q'``, ``a = Q'b`` and ``t = e_1 - lambda`` the constraint is the secular equation ``sum_i
    # a_i^2 / (e_i - e_1 + t)^2 = n``. Its left side falls from infinity to 0 for t > 0; one over its root is nearly
    # straight, which Newton's method follows in a few steps from any t on the left of the solution. Solving for t
    # instead of lambda keeps all digits when lambda is close to the eigenvalue.
    eigenvalues, Q = np.linalg.eigh(G)
    a = Q.T @ b
    gaps = eigenvalues - eigenvalues[0]
    size = float(np.linalg.norm(b))
    scale = max(abs(float(eigenvalues[-1])), abs(float(eigenvalues[0])))
    lead = gaps <= 1e-13 * scale
    # Rounding turns the leading eigenvectors towards the next ones by about this much.
    turned = 10 * len(b) * EPSILON * max(1.0, scale / float(gaps[~lead].min(initial=np.inf)))
    if np.linalg.norm(a[lead]) <= turned * size:
        fixed = Q[:, ~lead] @ (a[~lead] / gaps[~lead])
        missing = n - float(fixed @ fixed)
        if missing > 0.0:
            free = np.sqrt(missing) * Q[:, lead]
            return Sphere(fixed + free[:, 0], float(eigenvalues[0]), fixed, free)
    t = _secular_root(a, gaps, n)
    w = a / (gaps + t)
    w = Q @ (w * np.sqrt(n / float(w @ w)))
    return Sphere(w, float(eigenvalues[0] - t), w, np.empty((len(w), 0)))


def _secular_root(a: Array, gaps: Array, n: float) -> float:
    """Return the t > 0 with ``sum a^2 / (gaps + t)^2 = n``."""
    low, high = (float(np.linalg.norm(part)) / np.sqrt(n) for part in (a[gaps == 0.0], a))
    t = low if low > 0.0 else 1e-8 * high
    for _ in range(100):
        ratios = a / (gaps + t)
        squares = float(ratios @ ratios)
        low, high = (t, high) if squares >= n else (low, t)
        slope = float(ratios @ (ratios / (gaps + t)))  # minus half the derivative of the squares
        new = t + squares * (np.sqrt(squares / n) - 1.0) / slope
        if not low <= new <= high:
            new = 0.5 * (low + high)
        if abs(new - t) <= 4e-16 * t:
            break
        t = new
    return t


class KnownLabels(NamedTuple):
    """What is known when a graph is cut, each class held against the rest."""

    rows: AnyArray  # (l,) the labelled rows
    members: Mask  # (l, c) which of them are in each class
    costs: Array  # (l, c) what a wrong labelled row costs
    prior: Array  # (c,) share of each class in all rows
    weight: float  # how much the labels weigh against the cut


class Cut(NamedTuple):
    """One labelling of a spectrum."""

    scores: Array  # (n, c) z for each class that is held against the rest
    thresholds: Array  # (c,) the middle between the targets
    objectives: Array  # (c,) the minimum reached, constants included
    reached: Mask  # (n,) rows with a path to a label
    open: Mask  # (n, c) rows that another labelling, just as good, has on the other side of the threshold


class CutBasis:
    """The columns of a spectrum that the components with a label have: rows (l,), penalties (k,), V_l (l, k)."""

    def __init__(self, spectrum: Spectrum, rows: AnyArray, d: int) -> None:
        xp, count = arrays.namespace(spectrum.degrees), spectrum.count
        own = arrays.to_numpy(arrays.pick(spectrum.components, rows))
        self._spectrum, self._known = spectrum, np.unique(own)
        if len(self._known) > MOST_PARTS:
            raise ValueError(
                f"The labels lie in {len(self._known):,} parts of the graph that are not tied to each other, more than "
                f"{MOST_PARTS:,}: give more neighbours."
            )
        with_label = np.isin(np.arange(count), self._known)
        there = xp.take(arrays.beside(with_label, spectrum.degrees), spectrum.components)
        self.reached = arrays.to_numpy(there)
        self.n = int(self.reached.sum())
        self._sums = sum_by_group(spectrum.degrees, spectrum.components, count)
        self._turn = _null_basis(arrays.to_numpy(self._sums)[self._known])
        self._chosen = np.flatnonzero(with_label[spectrum.owners])[
            : max(d - self._turn.shape[1], 0)
        ]
        values = np.concatenate([np.zeros(self._turn.shape[1]), spectrum.values[self._chosen]])
        self.penalties = np.square(first_ranks(values)).astype(float)
        belongs = own[:, None] == spectrum.owners[self._chosen]
        columns = arrays.pick_columns(
            arrays.pick(spectrum.vectors, rows), spectrum.columns[self._chosen]
        )
        entries = arrays.as_double(columns)
        entries = xp.where(arrays.beside(belongs, entries), entries, xp.zeros_like(entries))
        null = arrays.beside(self._turn[np.searchsorted(self._known, own)], entries)
        at = arrays.beside(rows.astype(np.int64), spectrum.components)
        self.V_l = xp.concat([self._null(at) * null, entries], axis=1)

    def _null(self, rows: Any) -> Any:
        """Return the null vector of each row's component, of norm 1, at rows (r,) given where they live: (r, 1)."""
        spectrum, xp = self._spectrum, arrays.namespace(rows)
        degrees, sums = (
            xp.take(spectrum.degrees, rows),
            xp.take(self._sums, xp.take(spectrum.components, rows)),
        )
        shares = degrees / xp.where(sums > 0.0, sums, xp.ones_like(sums))
        return xp.sqrt(xp.where(sums > 0.0, shares, xp.ones_like(sums)))[:, None]

    def expand(self, W: Array) -> Array:
        """Return ``V W`` at all rows, NaN where no label reaches; W has shape (k, c)."""
        n_null, V, spectrum = self._turn.shape[1], self._spectrum.vectors, self._spectrum
        xp = arrays.namespace(V)
        full = np.zeros((len(self._known), V.shape[1], W.shape[1]))
        place = np.searchsorted(self._known, spectrum.owners[self._chosen])
        full[place, spectrum.columns[self._chosen]] = W[n_null:]
        full = arrays.cast(full, V)
        if spectrum.count == 1:
            return arrays.as_double(V @ full[0, ...])
        constant = arrays.beside(self._turn @ W[:n_null], V)
        order = xp.argsort(spectrum.components, stable=True)
        parts, known = [], {component: j for j, component in enumerate(self._known.tolist())}
        for component, (start, stop) in enumerate(
            pairwise(group_bounds(spectrum.components, spectrum.count))
        ):
            rows, j = order[int(start) : int(stop)], known.get(component)
            if j is None:
                parts.append(arrays.zeros((rows.shape[0], W.shape[1]), V) + xp.nan)
            else:
                block = arrays.as_double(xp.take(V, rows, axis=0) @ full[j, ...])
                parts.append(
                    block + self._null(rows) * constant[j, ...][None, :] if n_null else block
                )
        return xp.take(xp.concat(parts, axis=0), xp.argsort(order), axis=0)


def _null_basis(sizes: Array) -> Array:
    """Return an orthonormal basis (q, q - 1) of the null vectors' span less the constant one, by a reflection."""
    constant = np.sqrt(np.where(sizes > 0.0, sizes, sizes.max() or 1.0))
    constant /= np.linalg.norm(constant)
    constant[0] += 1.0
    return (np.eye(len(constant)) - np.outer(constant, constant) / constant[0])[:, 1:]


def first_ranks(values: Array) -> AnyArray:
    """Return the ranks 1, 2, ... of ascending values; those that are equal share the first."""
    new = np.diff(values, prepend=-np.inf) > TIE
    return np.maximum.accumulate(np.where(new, np.arange(1, len(values) + 1), 0))


def default_label_weight(n: int) -> float:
    """Return the paper's weight of the labels, 3200, or the number of rows if there are more."""
    # The cut grows with the rows, the labels' part does not: by a constant weight they are forgotten in a large graph.
    return float(max(3200, n))


def cut_graph(spectrum: Spectrum, known: KnownLabels, d: int) -> Cut:
    """Return the best labelling of all rows for each class against the rest, by `d` eigenvectors."""
    basis, members = CutBasis(spectrum, known.rows, d), known.members
    high, low = (
        np.sqrt((1.0 - known.prior) / known.prior),
        -np.sqrt(known.prior / (1.0 - known.prior)),
    )
    thresholds, goals, costs = (
        0.5 * (high + low),
        np.where(members, high, low),
        known.weight * known.costs,
    )
    W = np.empty((len(basis.penalties), members.shape[1]))
    objectives, hard = np.empty(members.shape[1]), {}
    with few_threads(len(W)):
        for j in range(members.shape[1]):
            goal, cost = goals[:, j], costs[:, j]
            weighted = basis.V_l * arrays.beside(cost, basis.V_l)[:, None]
            G = arrays.to_numpy(basis.V_l.T @ weighted)
            G[np.diag_indices_from(G)] += basis.penalties
            b = arrays.to_numpy(weighted.T @ arrays.beside(goal, basis.V_l))
            best = minimise_on_sphere(G, b, float(basis.n))
            W[:, j] = best.w
            objectives[j] = best.w @ G @ best.w - 2.0 * b @ best.w + goal @ (cost * goal)
            if best.free.shape[1]:
                hard[j] = best
    Z = basis.expand(W)
    either = np.zeros(Z.shape, dtype=bool)
    for j, best in hard.items():
        reach = np.linalg.norm(arrays.to_numpy(basis.expand(best.free)), axis=1)
        middle = arrays.to_numpy(basis.expand(best.fixed[:, None]))[:, 0]
        either[:, j] = np.abs(middle - thresholds[j]) < reach
        # Of two labellings one is taken that depends on neither the vectors' signs nor the rows' order.
        if best.free.shape[1] == 1:
            other = basis.expand(best.fixed[:, None] - best.free)[:, 0]
            if np.nansum(arrays.to_numpy(other) ** 3) > np.nansum(arrays.to_numpy(Z[:, j]) ** 3):
                Z[:, j] = other
    return Cut(Z, thresholds, objectives, basis.reached, either)


def known_labels(
    classes: AnyArray,
    codes: AnyArray,
    labelled: Mask,
    *,
    label_weight: float | str = "auto",
    class_prior: Mapping[Any, float] | None = None,
    class_costs: Mapping[Any, float] | str | None = "balanced",
    costs: Any = None,
) -> KnownLabels:
    """Return the labels with the settings of a labelling, checked; of two classes the second against the first."""
    held = np.arange(len(classes)) if len(classes) > 2 else np.array([1])
    members = codes[:, None] == held
    n, inside = len(codes), members.sum(axis=0)
    weight = default_label_weight(len(labelled))
    if not (isinstance(label_weight, str) and label_weight == "auto"):
        weight = checks.check_positive(
            "label_weight (a number, or 'auto')", label_weight, most=1e12
        )
    if isinstance(class_costs, str) and class_costs == "balanced":
        each = np.where(members, n / (2.0 * inside), n / (2.0 * (n - inside)))
    else:
        given = dict.fromkeys(classes.tolist(), 1.0) if class_costs is None else class_costs
        by_class = _by_class("class_costs", given, classes, "'balanced', None or ")
        each = np.broadcast_to(by_class[codes][:, None], members.shape)
    if costs is not None:
        costs = np.asarray(costs, dtype=float)
        if costs.shape != labelled.shape or not np.all(
            (costs[labelled] >= 0.0) & (costs[labelled] < np.inf)
        ):
            raise ValueError(
                f"costs must be one number from 0 for each of the {len(labelled)} rows."
            )
        each = each * costs[labelled][:, None]
    prior = np.bincount(codes, minlength=len(classes)) / n
    if class_prior is not None:
        prior = _by_class("class_prior", class_prior, classes)
        if not np.isclose(prior.sum(), 1.0, rtol=0.0, atol=1e-6):
            raise ValueError(
                f"class_prior must be shares above 0 that sum to 1; got {class_prior!r}."
            )
    return KnownLabels(np.flatnonzero(labelled), members, each, prior[held], weight)


def _by_class(name: str, setting: Any, classes: AnyArray, instead: str = "") -> Array:
    """Return a setting that the user gives by class, in the order of the classes."""
    names = classes.tolist()
    if not isinstance(setting, dict) or set(setting) != set(names):
        raise ValueError(
            f"{name} must be {instead}a dict with one number for each class ({', '.join(map(repr, names))}); "
            f"got {setting!r}."
        )
    return np.array([checks.check_positive(name, setting[label]) for label in names])
