"""The best labelling of a graph that respects the known labels.

With the eigenvectors V of a graph as columns, ``z = V w`` minimises ``w' D w + c (z - g)' C (z -
g)`` subject to ``w' w = n``, where D replaces the eigenvalues by the squares of their ranks, or
another increasing function, g is the target at the labelled rows and C their costs. Only the
labelled rows of V are needed to find w (Joachims 2003, equations 9 to 12).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

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
    # With ``G = Q diag(e) Q'``, ``a = Q'b`` and ``t = e_1 - lambda`` the constraint is the secular
    # equation ``sum_i a_i^2 / (e_i - e_1 + t)^2 = n``. Its left side falls from infinity to 0 for t
    # > 0; one over its root is nearly straight, which Newton's method follows in a few steps from
    # any t on the left of the solution. Solving for t instead of lambda keeps all digits when
    # lambda is close to the eigenvalue.
    eigenvalues, Q = np.linalg.eigh(G)
    a = Q.T @ b
    gaps = eigenvalues - eigenvalues[0]
    size = float(np.linalg.norm(b))
    scale = max(abs(float(eigenvalues[-1])), abs(float(eigenvalues[0])))
    lead = gaps <= 1e-13 * scale
    # Rounding turns the leading eigenvectors towards the next ones by about this much.
    smallest_gap = float(gaps[~lead].min(initial=np.inf))
    turned = 10 * len(b) * EPSILON * max(1.0, scale / smallest_gap)
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
    low = float(np.linalg.norm(a[gaps == 0.0])) / np.sqrt(n)
    high = float(np.linalg.norm(a)) / np.sqrt(n)
    t = low
    if low <= 0.0:
        t = 1e-8 * high
    for _ in range(100):
        ratios = a / (gaps + t)
        squares = float(ratios @ ratios)
        if squares >= n:
            low = t
        else:
            high = t
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
    # (n, c) rows that another labelling, just as good, has on the other side of the threshold
    open: Mask


# What stands for the eigenvalues: "squares" of their ranks, the "eigenvalues" themselves, a
# function of the ranks, or its values.
Penalties = Literal["squares", "eigenvalues"] | Callable[[Array], Any] | Sequence[float] | Array


class CutBasis:
    """The columns of a spectrum that the components with a label have.

    Attributes are `penalties` (k,), `V_l` (l, k) at the labelled rows, `reached` (n,), and `n`, how
    many rows are reached.
    """

    def __init__(
        self, spectrum: Spectrum, rows: AnyArray, d: int, penalise: Penalties = "squares"
    ) -> None:
        self._spectrum = spectrum
        label_parts = arrays.to_numpy(arrays.pick(spectrum.components, rows))
        self._parts = np.unique(label_parts)  # the components with a label
        if len(self._parts) > MOST_PARTS:
            raise ValueError(
                f"The labels lie in {len(self._parts):,} parts of the graph that are not tied to "
                f"each other, more than {MOST_PARTS:,}: give more neighbours."
            )
        with_label = np.isin(np.arange(spectrum.count), self._parts)
        self.reached = self._rows_in(with_label)
        self.n = int(self.reached.sum())
        self._squares = spectrum.null_squares
        self._sums = sum_by_group(self._squares, spectrum.components, spectrum.count)
        self._turn = _null_basis(arrays.to_numpy(self._sums)[self._parts])
        n_null = self._turn.shape[1]
        n_chosen = max(d - n_null, 0)
        self._chosen = np.flatnonzero(with_label[spectrum.owners])[:n_chosen]
        values = np.concatenate([np.zeros(n_null), spectrum.values[self._chosen]])
        self.penalties = read_penalties(penalise, values, spectrum.scale)
        self.V_l = self._entries(rows, label_parts)

    def _rows_in(self, in_part: Mask) -> Mask:
        """Return which rows lie in components (count,) that are marked."""
        spectrum = self._spectrum
        xp = arrays.namespace(spectrum.degrees)
        marks = arrays.asarray_like(in_part, spectrum.degrees)
        return arrays.to_numpy(xp.take(marks, spectrum.components))

    def _entries(self, rows: AnyArray, row_parts: AnyArray) -> Array:
        """Return the entries of the columns at rows (l,), whose components are given: (l, k)."""
        spectrum = self._spectrum
        xp = arrays.namespace(spectrum.degrees)
        vectors = arrays.pick(spectrum.vectors, rows)
        columns = arrays.pick_columns(vectors, spectrum.columns[self._chosen])
        entries = arrays.as_double(columns)
        # An eigenvector of one component is 0 on the others.
        belongs = row_parts[:, None] == spectrum.owners[self._chosen]
        entries = xp.where(arrays.asarray_like(belongs, entries), entries, xp.zeros_like(entries))
        turn = arrays.asarray_like(self._turn[np.searchsorted(self._parts, row_parts)], entries)
        positions = arrays.asarray_like(rows.astype(np.int64), spectrum.components)
        return xp.concat([self._null(positions) * turn, entries], axis=1)

    def _null(self, rows: Array) -> Array:
        """Return the null vector of each row's component, of norm 1, at rows (r,): (r, 1).

        The positions of the rows live where the spectrum does.
        """
        spectrum = self._spectrum
        xp = arrays.namespace(rows)
        squares = xp.take(self._squares, rows)
        sums = xp.take(self._sums, xp.take(spectrum.components, rows))
        shares = squares / xp.where(sums > 0.0, sums, xp.ones_like(sums))
        return xp.sqrt(xp.where(sums > 0.0, shares, xp.ones_like(sums)))[:, None]

    def expand(self, W: Array) -> Array:
        """Return ``V W`` at all rows, NaN where no label reaches; W has shape (k, c)."""
        spectrum = self._spectrum
        V = spectrum.vectors
        n_null = self._turn.shape[1]
        coefficients = np.zeros((len(self._parts), V.shape[1], W.shape[1]))
        place = np.searchsorted(self._parts, spectrum.owners[self._chosen])
        coefficients[place, spectrum.columns[self._chosen]] = W[n_null:]
        coefficients = arrays.cast(coefficients, V)
        if spectrum.count == 1:
            return arrays.as_double(V @ coefficients[0, ...])
        constants = arrays.asarray_like(self._turn @ W[:n_null], V)
        return self._expand_parts(coefficients, constants, n_null)

    def _expand_parts(self, coefficients: Array, constants: Array, n_null: int) -> Array:
        """Return the same component by component, with multiples of their null vectors."""
        spectrum = self._spectrum
        V = spectrum.vectors
        xp = arrays.namespace(V)
        order = xp.argsort(spectrum.components, stable=True)
        places = {part: j for j, part in enumerate(self._parts.tolist())}
        bounds = group_bounds(spectrum.components, spectrum.count)
        blocks = []
        for part, (start, stop) in enumerate(pairwise(bounds)):
            rows = order[int(start) : int(stop)]
            j = places.get(part)
            if j is None:
                unreached = arrays.zeros((rows.shape[0], coefficients.shape[2]), V) + xp.nan
                blocks.append(unreached)
                continue
            block = arrays.as_double(xp.take(V, rows, axis=0) @ coefficients[j, ...])
            if n_null:
                block = block + self._null(rows) * constants[j, ...][None, :]
            blocks.append(block)
        return xp.take(xp.concat(blocks, axis=0), xp.argsort(order), axis=0)


def _null_basis(sizes: Array) -> Array:
    """Return an orthonormal basis (q, q - 1) of the null vectors' span less the constant one."""
    # By a reflection.
    constant = np.sqrt(np.where(sizes > 0.0, sizes, sizes.max() or 1.0))
    constant /= np.linalg.norm(constant)
    constant[0] += 1.0
    reflection = np.eye(len(constant)) - np.outer(constant, constant) / constant[0]
    return reflection[:, 1:]


def check_penalties(penalise: Penalties) -> None:
    """Raise a ValueError where it can be told before there are eigenvalues."""
    if not callable(penalise):
        read_penalties(penalise, np.empty(0), 1.0)


def read_penalties(penalise: Penalties, values: Array, scale: float) -> Array:
    """Return what stands for the ascending eigenvalues (k,) of a spectrum with this scale."""
    if isinstance(penalise, str):
        checks.check_choice("spectrum", penalise, ("squares", "eigenvalues"))
        if penalise == "eigenvalues":
            return np.maximum(values, 0.0)
    ranks = first_ranks(values / scale)
    if isinstance(penalise, str):
        return np.square(ranks).astype(float)
    if callable(penalise):
        return _increasing(penalise(ranks.astype(float)), len(ranks))
    by_rank = _increasing(penalise, None)
    if len(by_rank) < len(ranks):
        raise ValueError(
            f"spectrum has {len(by_rank)} numbers, and {len(ranks)} eigenvectors are used: give as "
            "many, or a smaller n_components."
        )
    return by_rank[ranks - 1]


def _increasing(numbers: Any, length: int | None) -> Array:
    """Return numbers from 0 that never fall, of this length if it is given."""
    try:
        penalties = np.asarray(numbers, dtype=float)
    except (TypeError, ValueError, OverflowError):
        penalties = np.empty(0)
    is_good = penalties.ndim == 1 and len(penalties) > 0 and np.isfinite(penalties).all()
    if is_good and length is not None:
        is_good = len(penalties) == length
    if not is_good or penalties.min() < 0.0 or np.any(np.diff(penalties) < 0.0):
        raise ValueError(
            "spectrum must be 'squares', 'eigenvalues', a function of the ranks 1, 2, ... of the "
            "eigenvalues (an array), or its values: finite numbers from 0 that do not fall."
        )
    return penalties


def first_ranks(values: Array) -> AnyArray:
    """Return the ranks 1, 2, ... of ascending values; those that are equal share the first."""
    new = np.diff(values, prepend=-np.inf) > TIE
    return np.maximum.accumulate(np.where(new, np.arange(1, len(values) + 1), 0))


def default_label_weight(n: int) -> float:
    """Return the paper's weight of the labels, 3200, or the number of rows if there are more."""
    # The cut grows with the rows, the labels' part does not: by a constant weight they are
    # forgotten in a large graph.
    return float(max(3200, n))


def cut_graph(
    spectrum: Spectrum, known: KnownLabels, d: int, penalise: Penalties = "squares"
) -> Cut:
    """Return the best labelling of all rows for each class against the rest, by `d` vectors."""
    basis = CutBasis(spectrum, known.rows, d, penalise)
    high = np.sqrt((1.0 - known.prior) / known.prior)
    low = -np.sqrt(known.prior / (1.0 - known.prior))
    thresholds = 0.5 * (high + low)
    targets = np.where(known.members, high, low)
    costs = known.weight * known.costs
    n_classes = known.members.shape[1]
    W = np.empty((len(basis.penalties), n_classes))
    objectives = np.empty(n_classes)
    ambiguous = {}  # the classes with more than one best labelling
    with few_threads(len(W)):
        for j in range(n_classes):
            minimum, objectives[j] = _fit_labels(basis, targets[:, j], costs[:, j])
            W[:, j] = minimum.w
            if minimum.free.shape[1]:
                ambiguous[j] = minimum
    Z = basis.expand(W)
    either_side = np.zeros(Z.shape, dtype=bool)
    for j, minimum in ambiguous.items():
        either_side[:, j] = _can_cross(basis, minimum, thresholds[j])
        # Of two labellings one is taken that depends on neither the vectors' signs nor the rows'
        # order.
        if minimum.free.shape[1] == 1:
            other = basis.expand(minimum.fixed[:, None] - minimum.free)[:, 0]
            if _cubes(other) > _cubes(Z[:, j]):
                Z[:, j] = other
    return Cut(Z, thresholds, objectives, basis.reached, either_side)


def _fit_labels(basis: CutBasis, target: Array, cost: Array) -> tuple[Sphere, float]:
    """Return the minimum for one class, of targets and costs (l,), and its objective."""
    weighted = basis.V_l * arrays.asarray_like(cost, basis.V_l)[:, None]
    G = arrays.to_numpy(basis.V_l.T @ weighted)
    G[np.diag_indices_from(G)] += basis.penalties
    b = arrays.to_numpy(weighted.T @ arrays.asarray_like(target, basis.V_l))
    minimum = minimise_on_sphere(G, b, float(basis.n))
    w = minimum.w
    return minimum, w @ G @ w - 2.0 * b @ w + target @ (cost * target)


def _can_cross(basis: CutBasis, minimum: Sphere, threshold: float) -> Mask:
    """Return which rows another labelling, just as good, has on the other side."""
    reach = np.linalg.norm(arrays.to_numpy(basis.expand(minimum.free)), axis=1)
    middle = arrays.to_numpy(basis.expand(minimum.fixed[:, None]))[:, 0]
    return np.abs(middle - threshold) < reach


def _cubes(scores: Array) -> float:
    """Return the sum of cubes, whose sign changes with that of the scores."""
    return np.nansum(arrays.to_numpy(scores) ** 3)


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
    """Return the labels with the settings of a labelling, checked.

    Of two classes the second is held against the first.
    """
    held = np.array([1])
    if len(classes) > 2:
        held = np.arange(len(classes))
    members = codes[:, None] == held
    weight = _read_label_weight(label_weight, len(labelled))
    label_costs = _read_class_costs(class_costs, classes, codes, members)
    if costs is not None:
        label_costs = label_costs * _read_row_costs(costs, labelled)[:, None]
    prior = _read_prior(class_prior, classes, codes)
    return KnownLabels(np.flatnonzero(labelled), members, label_costs, prior[held], weight)


def _read_label_weight(label_weight: float | str, n: int) -> float:
    """Return the weight of the labels in a graph of `n` rows."""
    if isinstance(label_weight, str) and label_weight == "auto":
        return default_label_weight(n)
    name = "label_weight (a number, or 'auto')"
    return checks.check_positive(name, label_weight, most=1e12)


def _read_class_costs(
    class_costs: Mapping[Any, float] | str | None,
    classes: AnyArray,
    codes: AnyArray,
    members: Mask,
) -> Array:
    """Return what a wrong labelled row costs, for each class against the rest (l, c)."""
    if isinstance(class_costs, str) and class_costs == "balanced":
        n = len(codes)
        n_inside = members.sum(axis=0)
        return np.where(members, n / (2.0 * n_inside), n / (2.0 * (n - n_inside)))
    if class_costs is None:
        return np.ones(members.shape)
    by_class = _by_class("class_costs", class_costs, classes, "'balanced', None or ")
    return np.broadcast_to(by_class[codes][:, None], members.shape)


def _read_row_costs(costs: Any, labelled: Mask) -> Array:
    """Return the costs (l,) of the labelled rows."""
    costs = np.asarray(costs, dtype=float)
    if costs.shape == labelled.shape:
        label_costs = costs[labelled]
        if np.all((label_costs >= 0.0) & (label_costs < np.inf)):
            return label_costs
    raise ValueError(f"costs must be one number from 0 for each of the {len(labelled)} rows.")


def _read_prior(
    class_prior: Mapping[Any, float] | None,
    classes: AnyArray,
    codes: AnyArray,
) -> Array:
    """Return the share of each class in all rows, by default that among the labels."""
    if class_prior is None:
        return np.bincount(codes, minlength=len(classes)) / len(codes)
    prior = _by_class("class_prior", class_prior, classes)
    if not np.isclose(prior.sum(), 1.0, rtol=0.0, atol=1e-6):
        raise ValueError(f"class_prior must be shares above 0 that sum to 1; got {class_prior!r}.")
    return prior


def _by_class(
    name: str,
    setting: Any,
    classes: AnyArray,
    instead: str = "",
) -> Array:
    """Return a setting that the user gives by class, in the order of the classes."""
    labels = classes.tolist()
    if not isinstance(setting, dict) or set(setting) != set(labels):
        names = ", ".join(map(repr, labels))
        raise ValueError(
            f"{name} must be {instead}a dict with one number for each class ({names}); "
            f"got {setting!r}."
        )
    return np.array([checks.check_positive(name, setting[label]) for label in labels])
