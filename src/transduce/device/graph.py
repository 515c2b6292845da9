"""Neighbour graphs on a device: weights, components, and eigenvectors by filtering."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from sklearn.utils.random import sample_without_replacement

from transduce.core import arrays
from transduce.core.computing import few_threads, stage
from transduce.core.types import AnyArray, Array, DeviceArray, Random
from transduce.device.neighbors import Neighbors

Report = Callable[[float], None]  # is told the share done


class DeviceGraph(NamedTuple):
    """A symmetric neighbour graph on a device, as `NeighborGraph` is one of numpy arrays."""

    matrix: SparseRows  # (n, n)
    diagnostics: dict[str, Any]  # as in `NeighborGraph`


def similarities(neighbors: Neighbors, scale: float | None) -> DeviceArray:
    """Return similarities from scores: cosines as they are, distances d by a Gaussian.

    That is ``exp(-(d^2 - d_1^2) / scale^2)``, with d_1 the row's smallest distance: only ratios
    within a row matter, so that a row far from all others has neighbours too.
    """
    if scale is None:
        return neighbors.scores
    xp = arrays.namespace(neighbors.scores)
    scaled = (neighbors.scores / scale) ** 2
    nearest = xp.min(scaled, axis=1, keepdims=True)
    nearest = xp.where(xp.isfinite(nearest), nearest, xp.zeros_like(nearest))
    similar = xp.exp(nearest - scaled)
    return xp.where(neighbors.ids >= 0, similar, xp.zeros_like(scaled))


def median_scale(neighbors: Neighbors) -> float:
    """Return the median distance to the last neighbour; scores are minus distances."""
    scores = neighbors.scores
    xp = arrays.namespace(scores)
    distances = xp.where(neighbors.ids >= 0, -scores, xp.zeros_like(scores))
    last = xp.max(distances, axis=1)
    ordered = xp.sort(last)
    n = last.shape[0]
    median = float(ordered[(n - 1) // 2] + ordered[n // 2]) / 2.0
    return median or float(xp.mean(last)) or 1.0


def one_way(
    ids: DeviceArray, weights: DeviceArray, random: Random
) -> tuple[DeviceArray, DeviceArray, int]:
    """Return ids and weights (n, k) of the neighbours, and how many rows had none.

    The weights of a row sum to 1. Rows without neighbours are tied to random ones.
    """
    xp = arrays.namespace(weights)
    n, k = ids.shape
    is_neighbor = (ids >= 0) & (weights > 0.0)
    weights = arrays.as_double(xp.where(is_neighbor, weights, xp.zeros_like(weights)))
    alone = np.flatnonzero(arrays.to_numpy(xp.sum(weights, axis=1) == 0.0))
    if n > 1:
        for row in map(int, alone):
            others = sample_without_replacement(n - 1, k, random_state=random)
            others = (others + (others >= row)).astype(np.int64)
            ids[row, :] = arrays.asarray_like(others, ids)
            weights[row, :] = 1.0
    total = xp.sum(weights, axis=1, keepdims=True)
    total = xp.where(total > 0.0, total, xp.ones_like(total))
    return ids, weights / total, len(alone)


def assemble(
    ids: DeviceArray, weights: DeviceArray, random: Random, order: DeviceArray
) -> tuple[DeviceGraph, int]:
    """Return the symmetric graph ``A' + A`` of neighbours, and how many rows had none.

    The ids and weights (n, k) are those of the rows in an order (n,).
    """
    ids, weights, n_alone = one_way(ids, weights, random)
    xp = arrays.namespace(weights)
    n = ids.shape[0]
    kept = weights > 0.0
    from_rows = xp.broadcast_to(order[:, None], ids.shape)[kept]
    to_rows = xp.take(order, ids[kept])
    keys = xp.concat([from_rows * n + to_rows, to_rows * n + from_rows])
    values = xp.concat([weights[kept], weights[kept]])
    return DeviceGraph(merged(keys, values, n), {}), n_alone


def merged(keys: DeviceArray, values: DeviceArray, n: int) -> SparseRows:
    """Return entries ``row * n + column`` as a sparse matrix (n, n), equal ones added up."""
    keys, group = arrays.namespace(values).unique_inverse(keys)
    rows = keys // n
    columns = keys - rows * n
    sums = sum_by_group(values, group, keys.shape[0])
    return SparseRows(rows, columns, sums, (n, n))


def sum_by_group(values: DeviceArray, groups: DeviceArray, n: int) -> DeviceArray:
    """Return the sum of the values of each of `n` groups."""
    if arrays.library_of(values) == "torch":
        return arrays.zeros((n,), values).index_add_(0, groups, values)
    weights = arrays.to_numpy(values)
    totals = np.bincount(arrays.to_numpy(groups), weights=weights, minlength=n)
    return arrays.asarray_like(totals, values)


def group_bounds(groups: DeviceArray, n: int) -> AnyArray:
    """Return where each of `n` groups begins and ends, once its rows stand together; (n + 1,)."""
    ones = arrays.zeros(groups.shape, groups) + 1.0
    sizes = arrays.to_numpy(sum_by_group(ones, groups, n))
    return np.concatenate([[0], np.cumsum(sizes)]).astype(int)


class SparseRows:
    """A sparse matrix in compressed rows, on the device of its arrays, for products with blocks."""

    def __init__(
        self, rows: DeviceArray, indices: DeviceArray, data: DeviceArray, shape: tuple[int, int]
    ) -> None:
        self.rows = rows  # of every entry, ascending
        self.indices = indices  # the column of every entry
        self.data = data  # the value of every entry
        self.shape = shape
        xp = arrays.namespace(data)
        ends = xp.arange(shape[0] + 1, dtype=rows.dtype, **arrays.on_device(data))
        self.indptr = xp.searchsorted(rows, ends)
        self._matrix = self._build()

    def _build(self) -> DeviceArray:
        if arrays.library_of(self.data) == "torch":
            return self._build_in_torch()
        from scipy.sparse import csr_array

        host = tuple(map(arrays.to_numpy, (self.data, self.indices, self.indptr)))
        return csr_array(host, shape=self.shape)

    def _build_in_torch(self) -> DeviceArray:
        import torch

        kind = torch.int64
        if self.data.is_cuda and len(self.data) < 2**31:
            kind = torch.int32
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
            warnings.filterwarnings("ignore", "Sparse invariant checks are implicitly disabled")
            ends = self.indptr.to(kind)
            columns = self.indices.to(kind)
            return torch.sparse_csr_tensor(
                ends, columns, self.data, self.shape, check_invariants=False
            )

    def __matmul__(self, block: DeviceArray) -> DeviceArray:
        """Return the product with a dense block (m, k)."""
        if arrays.library_of(block) == "torch":
            return self._matrix @ block
        return arrays.asarray_like(self._matrix @ arrays.to_numpy(block), block)

    def combine(
        self, block: DeviceArray, scale: float, share: float, minus: DeviceArray
    ) -> DeviceArray:
        """Return ``scale * (matrix @ block) + share * block - minus``."""
        if arrays.library_of(block) == "torch":
            import torch

            total = torch.sparse.addmm(minus, self._matrix, block, beta=-1.0, alpha=scale)
            return total.add_(block, alpha=share)
        return scale * (self @ block) + share * block - minus


# What holds for numpy too.
EXTRA = 32  # more columns than wanted vectors in the filtered block
TOLERANCE = 1e-4  # residual norms of the filtered block
LARGE = 500_000  # rows from which on the tolerance is the following one
LARGE_TOLERANCE = 1e-3
GOOD = 1e-8  # residual norms asked of ARPACK
TIE = 1e-9  # eigenvalues nearer than this are one eigenvalue
MOST_CYCLES = 40
# How much more a filter is to gain than is needed: the cut comes from vectors that are not there
# yet.
SAFETY = 8.0
MOST_GROWTH = 1e15  # of a vector by one filter: its square is a number in single precision
# The same by the first one, from random vectors: what single precision tells apart.
FIRST_GROWTH = 1e6
NARROWEST = 1e-3  # of the part of the spectrum that a filter is small on
# Eigenvalues above the first cut, as a share of the columns: their number is estimated.
SHARE_ABOVE = 1.6
MOST_DEGREE = 40  # of a filter
N_LANCZOS = 20  # steps that estimate where eigenvalues lie
FINEST = 5e-6  # residuals that single precision reaches

DENSE_ROWS = 3000  # components up to this size are solved as dense matrices
DOUBLE_ROWS = 20_000  # those up to this size are filtered in double precision, larger in single
CHUNK = 2**20  # rows of a block in double precision at a time

Pairs = tuple[Array, DeviceArray, Array]


class SpectrumParts(NamedTuple):
    """The fields of `Spectrum`, in their order."""

    vectors: DeviceArray  # (n, d)
    values: Array  # (t,)
    components: DeviceArray  # (n,)
    degrees: DeviceArray  # (n,)
    residuals: Array  # (t,)
    owners: AnyArray  # (t,) the component of each eigenvector
    columns: AnyArray  # (t,) the column of `vectors` that holds it


def find_components(graph: DeviceGraph) -> tuple[int, DeviceArray]:
    """Return how many connected components there are, and that of each row.

    Components are numbered by their first rows.
    """
    from_rows = graph.matrix.rows
    to_rows = graph.matrix.indices
    n = graph.matrix.shape[0]
    xp = arrays.namespace(from_rows)
    numbers = xp.arange(n, dtype=xp.int64, **arrays.on_device(from_rows))
    label = numbers
    while True:
        # Every component so far takes the smallest number among its neighbours; then chains of
        # numbers are shortened.
        smallest = smallest_by_group(xp.take(label, to_rows), xp.take(label, from_rows), n)
        root = xp.minimum(numbers, smallest)
        new = xp.take(root, label)
        for _ in range(3):
            root = xp.take(root, root)
            new = xp.take(root, new)
        if not bool(xp.any(new != label)):
            break
        label = new
    first = label == numbers
    number = arrays.cumulative_sum(xp.astype(first, xp.int64)) - 1
    return int(number[-1]) + 1, xp.take(number, label)


def device_spectrum(graph: DeviceGraph, d: int, random: Random) -> SpectrumParts:
    """Return the `d` smallest eigenvectors of each component's normalised Laplacian."""
    matrix = graph.matrix
    n = matrix.shape[0]
    with stage("components"):
        count, components = find_components(graph)
    ones = arrays.zeros((n, 1), matrix.data) + 1.0
    degrees = (matrix @ ones)[:, 0]
    with stage("spectrum") as report:
        if count > 1:
            return _each_component(graph, d, random, (count, components), degrees, report)
        S = normalised(matrix, degrees)
        pairs = smallest_pairs(S, degrees, min(d, n - 1), random, report)
    values, vectors, residuals = pairs
    owners = np.zeros(len(values), int)
    columns = np.arange(len(values))
    return SpectrumParts(vectors, values, components, degrees, residuals, owners, columns)


class ComponentBlocks(NamedTuple):
    """A matrix whose rows are ordered by their components."""

    matrix: SparseRows
    bounds: AnyArray  # (count + 1,) where the rows of each component start, and the last one stops
    entries: AnyArray  # (count + 1,) where its entries do

    @classmethod
    def of(cls, graph: DeviceGraph, place: DeviceArray, bounds: AnyArray) -> ComponentBlocks:
        """Return the matrix with each row in its place (n,)."""
        xp = arrays.namespace(place)
        n = graph.matrix.shape[0]
        rows = xp.take(place, graph.matrix.rows)
        columns = xp.take(place, graph.matrix.indices)
        matrix = merged(rows * n + columns, graph.matrix.data, n)
        entries = arrays.to_numpy(xp.take(matrix.indptr, arrays.asarray_like(bounds, place)))
        return cls(matrix, bounds, entries)

    def block(self, component: int) -> SparseRows:
        """Return the matrix of the rows of one component."""
        start = int(self.bounds[component])
        size = int(self.bounds[component + 1]) - start
        part = slice(int(self.entries[component]), int(self.entries[component + 1]))
        rows = self.matrix.rows[part] - start
        columns = self.matrix.indices[part] - start
        return SparseRows(rows, columns, self.matrix.data[part], (size, size))


def _each_component(
    graph: DeviceGraph,
    d: int,
    random: Random,
    parts_of: tuple[int, DeviceArray],
    degrees: DeviceArray,
    report: Report,
) -> SpectrumParts:
    """Solve component by component, on the matrix with the rows of each together."""
    xp = arrays.namespace(degrees)
    n = graph.matrix.shape[0]
    count, components = parts_of
    order = xp.argsort(components, stable=True)
    place = xp.argsort(order)
    together = ComponentBlocks.of(graph, place, group_bounds(components, count))
    bounds = together.bounds
    ordered = xp.take(degrees, order)
    vectors = arrays.zeros((n, d), degrees)
    solved: list[tuple[Any, ...]] = []  # value, residual, owner and column of every eigenvector
    for component in np.flatnonzero(np.diff(bounds) > 1).tolist():
        start = int(bounds[component])
        stop = int(bounds[component + 1])
        own_degrees = ordered[start:stop]
        S = normalised(together.block(component), own_degrees)
        most = min(d, stop - start - 1)
        pairs = smallest_pairs(S, own_degrees, most, random, lambda share: None)
        values, own_vectors, residuals = pairs
        vectors[start:stop, : len(values)] = xp.astype(own_vectors, xp.float64)
        for column, (value, residual) in enumerate(zip(values, residuals, strict=True)):
            solved.append((value, residual, component, column))
        report(stop / n)
    table = np.array(sorted(solved, key=itemgetter(0))).reshape(-1, 4)
    columns = table[:, 3].astype(int)
    n_columns = columns.max(initial=-1) + 1
    vectors = xp.take(vectors[:, :n_columns], place, axis=0)
    return SpectrumParts(
        vectors=vectors,
        values=table[:, 0],
        components=components,
        degrees=degrees,
        residuals=table[:, 1],
        owners=table[:, 2].astype(int),
        columns=columns,
    )


def normalised(matrix: SparseRows, degrees: DeviceArray) -> SparseRows:
    """Return ``B^-1/2 A B^-1/2``."""
    xp = arrays.namespace(degrees)
    scale = 1.0 / xp.sqrt(degrees)
    of_rows = xp.take(scale, matrix.rows)
    of_columns = xp.take(scale, matrix.indices)
    data = matrix.data * of_rows * of_columns
    return SparseRows(matrix.rows, matrix.indices, data, matrix.shape)


def smallest_pairs(
    S: SparseRows, degrees: DeviceArray, d: int, random: Random, report: Report
) -> Pairs:
    """Return the `d` smallest eigenvalues above 0 of ``I - S``, their vectors and residuals.

    The graph is connected.
    """
    xp = arrays.namespace(degrees)
    n = S.shape[0]
    trivial = xp.sqrt(degrees / xp.sum(degrees))
    if n > DENSE_ROWS and d < n // 3:
        return _filtered(S, trivial, d, random, report)
    identity = xp.eye(n, dtype=xp.float64, **arrays.on_device(degrees))
    lifted = 3.0 * trivial[:, None] * trivial[None, :]
    laplacian = identity - (S @ identity) + lifted
    values, vectors = xp.linalg.eigh(laplacian)
    values = arrays.to_numpy(values)[: min(d + 1, n - 1)]
    n_kept = whole_ties(values, d)
    values = values[:n_kept]
    vectors = vectors[:, :n_kept]
    rest = vectors - (S @ vectors) - vectors * arrays.asarray_like(values, vectors)
    residuals = xp.sqrt(xp.sum(rest * rest, axis=0))
    return values, vectors, arrays.to_numpy(residuals)


def _filtered(
    S: SparseRows,
    trivial: DeviceArray,
    d: int,
    random: Random,
    report: Report,
) -> Pairs:
    """Return the pairs by Chebyshev filtering.

    If they do not converge, a larger block is tried, then double precision.
    """
    n = S.shape[0]
    if n <= DOUBLE_ROWS:
        tries = [("float64", EXTRA), ("float64", 3 * EXTRA)]
        tolerance = GOOD
    else:
        tries = [("float32", EXTRA), ("float32", 3 * EXTRA), ("float64", 3 * EXTRA)]
        tolerance = TOLERANCE if n <= LARGE else LARGE_TOLERANCE
    for precision, extra in tries:
        try:
            block = first_block(n, min(d + extra, n // 2), precision, trivial, random)
            values, vectors, residuals = leading_pairs(S, block, d, tolerance, trivial, report)
        except NotConvergedError as error:
            last = error
            continue
        return 1.0 - values, vectors, residuals
    raise ArithmeticError(
        f"The {d} smallest eigenvectors of a graph of {n} rows were not found ({last}): ask for "
        "fewer n_components, give more neighbours, or pass numpy arrays, for which the matrix can "
        "be inverted."
    )


def first_block(
    n: int, width: int, precision: str, like: DeviceArray, random: Random
) -> DeviceArray:
    """Return random numbers (n, width) on the device of an array, drawn there by torch."""
    seed = int(random.randint(2**31 - 1))
    if arrays.library_of(like) == "torch":
        import torch

        generator = torch.Generator(device=like.device).manual_seed(seed)
        kind = getattr(torch, precision)
        return torch.randn((n, width), dtype=kind, device=like.device, generator=generator)
    numbers = np.random.default_rng(seed).standard_normal((n, width))
    return arrays.asarray_like(numbers, like, precision)


def leading_pairs(
    S: SparseRows, block: DeviceArray, k: int, tol: float, known: DeviceArray, report: Report
) -> Pairs:
    """Return the same as `spectral_graph.spectrum.leading_pairs`, in the precision of the block."""
    xp = arrays.namespace(block)
    data = xp.astype(S.data, block.dtype)
    matrix = SparseRows(S.rows, S.indices, data, S.shape)
    known = xp.astype(known, block.dtype)
    finest = FINEST if block.dtype == xp.float32 else 1e-12
    first = block[:, 0]
    first = first / xp.sqrt(xp.sum(first * first))

    def product(vector: DeviceArray) -> DeviceArray:
        return (matrix @ vector[:, None])[:, 0]

    plan = FilterPlan.begin(product, first, block.shape[1])
    farthest = 0.0
    for _ in range(MOST_CYCLES):
        block = chebyshev(matrix, block, plan.degree, plan.lower, plan.cut)
        block = block - known[:, None] * (known[None, :] @ block)
        values, block, residuals = rayleigh_ritz(matrix, block)
        block = block - known[:, None] * (known[None, :] @ block)
        worst = float(residuals[:k].max())
        limit = min(tol, 0.01 * (1.0 - float(values[k - 1])))
        if worst <= limit:
            return values[:k], arrays.copy(block[:, :k]), residuals[:k]
        if limit < finest:
            raise NotConvergedError(
                f"the eigenvalues are too close to 0 for this precision ({limit:.0e})"
            )
        farthest = max(farthest, np.log(worst / limit))
        report(1.0 - np.log(worst / limit) / farthest)
        plan.go_on(values, k, worst, limit)
    n_left = int((residuals[:k] > limit).sum())
    raise NotConvergedError(
        f"{n_left} of {k} eigenvectors did not converge in {MOST_CYCLES} cycles"
    )


def chebyshev(
    matrix: SparseRows, now: DeviceArray, degree: int, lower: float, cut: float
) -> DeviceArray:
    """Return the Chebyshev polynomial of this degree on [lower, cut] of a matrix, times a block."""
    centre = 0.5 * (cut + lower)
    half = 0.5 * (cut - lower)
    past = now
    now = (matrix @ past) / half - (centre / half) * past
    for _ in range(degree - 1):
        following = matrix.combine(now, 2.0 / half, -2.0 * centre / half, past)
        past = now
        now = following
    return now


def eigenvalue_counts(
    product: Callable[[DeviceArray], DeviceArray], vector: DeviceArray
) -> tuple[float, Callable[[float], float]]:
    """Return a number that no eigenvalue is below, and which eigenvalue so many are above.

    The second is a function of how many. Both are as far as a few Lanczos steps from a random unit
    vector (n,) can tell. All eigenvectors have about the same part in it, so that each Ritz value
    stands for as many eigenvalues as its own part says.
    """
    xp = arrays.namespace(vector)
    before = xp.zeros_like(vector)
    beta = 0.0
    diagonal = []
    off_diagonal = []
    for _ in range(min(N_LANCZOS, vector.shape[0])):
        following = product(vector) - beta * before
        diagonal.append(float(vector @ following))
        following = following - diagonal[-1] * vector
        beta = float(xp.sqrt(following @ following))
        off_diagonal.append(beta)
        if beta < 1e-5:
            break
        before = vector
        vector = following / beta
    ritz, turn = scipy.linalg.eigh_tridiagonal(diagonal, off_diagonal[:-1])
    slack = 2.0 * off_diagonal[-1] * abs(float(turn[-1, 0]))
    lower = max(float(ritz[0]) - slack, -1.0)
    counts = vector.shape[0] * turn[0, ::-1] ** 2
    n_above = np.cumsum(counts) - 0.5 * counts

    def eigenvalue_below(n: float) -> float:
        value = float(np.interp(n, n_above, ritz[::-1]))
        return max(value, lower + NARROWEST)

    return lower, eigenvalue_below


@dataclass
class FilterPlan:
    """Where the next filter of a block is small, from `lower` to `cut`, and its degree."""

    lower: float
    cut: float
    degree: int
    likely: float  # where the last cut probably is
    worst: float = np.inf  # the largest residual so far

    @classmethod
    def begin(
        cls, product: Callable[[DeviceArray], DeviceArray], vector: DeviceArray, width: int
    ) -> FilterPlan:
        """Plan the first filter of `width` columns, by products with a random unit vector."""
        lower, eigenvalue_below = eigenvalue_counts(product, vector)
        cut = eigenvalue_below(SHARE_ABOVE * width)
        degree = growth_degree(FIRST_GROWTH, lower, cut)
        return cls(lower, cut, degree, eigenvalue_below(width))

    def go_on(
        self,
        values: Array,
        k: int,
        worst: float,
        limit: float,
    ) -> None:
        """Plan the next filter: its cut is the last of a block's values, or more at first."""
        # That value is no larger than the eigenvalue it stands for, which is likely another; the
        # `k`-th must stay well above. What gained nothing was cut too high.
        least = self.lower + NARROWEST
        if worst < 0.5 * self.worst:
            least = self.cut
        last = float(values[-1])
        wanted = float(values[k - 1])
        between = last + 0.4 * (wanted - last)
        self.cut = max(least, last, min(self.likely, between))
        self.degree = filter_degree(wanted, self.lower, self.cut, worst / limit)
        self.worst = worst


def grams(block: DeviceArray, image: DeviceArray) -> tuple[Array, Array]:
    """Return ``block' image`` and ``block' block`` in double precision, on the host."""
    xp = arrays.namespace(block)
    width = block.shape[1]
    mixed = arrays.zeros((width, width), block)
    with_itself = arrays.zeros((width, width), block)
    for part in arrays.blocks(block.shape[0], CHUNK):
        left = xp.astype(block[part, :], xp.float64)
        mixed = mixed + left.T @ xp.astype(image[part, :], xp.float64)
        with_itself = with_itself + left.T @ left
    mixed = arrays.to_numpy(mixed)
    with_itself = arrays.to_numpy(with_itself)
    return 0.5 * (mixed + mixed.T), 0.5 * (with_itself + with_itself.T)


def rayleigh_ritz(matrix: SparseRows, block: DeviceArray) -> Pairs:
    """Return eigenvalues of S in the span of a block, descending, vectors and residuals."""
    xp = arrays.namespace(block)
    block = block / xp.sqrt(xp.sum(block * block, axis=0))
    image = matrix @ block
    mixed, with_itself = grams(block, image)
    with few_threads(0):  # on the host the threads of many small problems wait for each other
        smallest = scipy.linalg.eigh(with_itself, eigvals_only=True, subset_by_index=[0, 0])
        if smallest[0] < 1e-8:
            block = xp.linalg.qr(block)[0]  # columns nearly dependent: make them orthogonal first
            image = matrix @ block
            mixed, with_itself = grams(block, image)
        values, turn = scipy.linalg.eigh(mixed, with_itself)
    values = values[::-1].copy()
    leading_first = turn[:, ::-1].copy()
    turn = xp.astype(arrays.asarray_like(leading_first, block), block.dtype)
    block = block @ turn
    image = image @ turn
    rest = image - block * xp.astype(arrays.asarray_like(values, block), block.dtype)
    lengths = xp.sqrt(xp.sum(rest * rest, axis=0))
    residuals = arrays.to_numpy(lengths).astype(float)
    return values, block, residuals


class NotConvergedError(ArithmeticError):
    """The iteration ended before every residual was small enough."""


def filter_degree(wanted: float, lower: float, cut: float, factor: float) -> int:
    """Return the degree at which the last wanted vector gains `factor` on others."""
    beyond = max(wanted - cut, 0.0) / (cut - lower)
    gain = np.arccosh(1.0 + 2.0 * beyond)
    needed = np.ceil(np.arccosh(SAFETY * factor) / max(gain, 1e-3))
    degree = np.clip(needed, 8, MOST_DEGREE)
    return min(int(degree), growth_degree(MOST_GROWTH, lower, cut))


def growth_degree(growth: float, lower: float, cut: float) -> int:
    """Return the largest degree at which a filter lets no vector grow by more than a factor."""
    # No eigenvalue is above 1.
    most = np.arccosh(1.0 + 2.0 * (1.0 - cut) / (cut - lower))
    degree = np.log(2.0 * growth) / max(most, 1e-3)
    return int(np.clip(degree, 1, MOST_DEGREE))


def whole_ties(values: Array, d: int) -> int:
    """Return how many of the first `d` ascending values to keep, so that no tie is cut in two."""
    if len(values) <= d or values[d] - values[d - 1] > TIE:
        return min(d, len(values))
    return int(np.searchsorted(values, values[d - 1] - TIE)) or d


def smallest_by_group(values: DeviceArray, groups: DeviceArray, n: int) -> DeviceArray:
    """Return the smallest value (t,) of each of `n` groups; `n` for an empty one."""
    xp = arrays.namespace(values)
    smallest = xp.full((n,), n, dtype=values.dtype, **arrays.on_device(values))
    if arrays.library_of(values) == "torch":
        return smallest.scatter_reduce(0, groups, values, "amin")
    host = arrays.to_numpy(smallest)
    np.minimum.at(host, arrays.to_numpy(groups), arrays.to_numpy(values))
    return arrays.asarray_like(host, values)
