"""Neighbour graphs of rows on a device, and their spectra: weights, components, filtered eigenvectors."""

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
from transduce.core.types import AnyArray, Array
from transduce.device.neighbors import Neighbors

Random = np.random.RandomState
Report = Callable[[float], None]  # is told the share done


class DeviceGraph(NamedTuple):
    """A symmetric neighbour graph on a device, as `NeighborGraph` is one of numpy arrays."""

    matrix: SparseRows  # (n, n)
    diagnostics: dict[str, Any]  # as in `NeighborGraph`


def similarities(neighbors: Neighbors, scale: float | None) -> Any:
    """Return similarities from scores: cosines as they are; distances d as ``exp(-(d^2 - d_1^2) / scale^2)``."""
    # d_1 is the row's smallest: only ratios within a row matter, so that a row far from all others has neighbours too.
    xp, scores = arrays.namespace(neighbors.scores), neighbors.scores
    if scale is None:
        return scores
    scaled = (scores / scale) ** 2
    nearest = xp.min(scaled, axis=1, keepdims=True)
    nearest = xp.where(xp.isfinite(nearest), nearest, xp.zeros_like(nearest))
    return xp.where(neighbors.ids >= 0, xp.exp(nearest - scaled), xp.zeros_like(scaled))


def median_scale(neighbors: Neighbors) -> float:
    """Return the median distance to the last neighbour; scores are minus distances."""
    xp = arrays.namespace(neighbors.scores)
    last = xp.max(
        xp.where(neighbors.ids >= 0, -neighbors.scores, xp.zeros_like(neighbors.scores)), axis=1
    )
    ordered, n = xp.sort(last), last.shape[0]
    return float(ordered[(n - 1) // 2] + ordered[n // 2]) / 2.0 or float(xp.mean(last)) or 1.0


def one_way(ids: Any, weights: Any, random: Random) -> tuple[Any, Any, int]:
    """Return ids and weights (n, k) of the neighbours, those of a row summing to 1, and how many rows had none."""
    # Rows without any are tied to random ones.
    xp, (n, k) = arrays.namespace(weights), ids.shape
    weights = arrays.as_double(
        xp.where((ids >= 0) & (weights > 0.0), weights, xp.zeros_like(weights))
    )
    alone = np.flatnonzero(arrays.to_numpy(xp.sum(weights, axis=1) == 0.0))
    for row in map(int, alone) if n > 1 else []:
        others = sample_without_replacement(n - 1, k, random_state=random)
        ids[row, :] = arrays.beside((others + (others >= row)).astype(np.int64), ids)
        weights[row, :] = 1.0
    total = xp.sum(weights, axis=1, keepdims=True)
    return ids, weights / xp.where(total > 0.0, total, xp.ones_like(total)), len(alone)


def assemble(ids: Any, weights: Any, random: Random, order: Any) -> tuple[DeviceGraph, int]:
    """Return the symmetric graph ``A' + A''`` of the neighbours' ids and weights (n, k), and how many rows had none."""
    ids, weights, n_alone = one_way(ids, weights, random)
    xp, n, kept = arrays.namespace(weights), ids.shape[0], weights > 0.0
    here, there = xp.broadcast_to(order[:, None], ids.shape)[kept], xp.take(order, ids[kept])
    keys = xp.concat([here * n + there, there * n + here])
    return DeviceGraph(merged(keys, xp.concat([weights[kept]] * 2), n), {}), n_alone


def merged(keys: Any, values: Any, n: int) -> SparseRows:
    """Return entries ``row * n + column`` as a sparse matrix (n, n), equal ones added up."""
    keys, group = arrays.namespace(values).unique_inverse(keys)
    rows = keys // n
    return SparseRows(rows, keys - rows * n, sum_by_group(values, group, keys.shape[0]), (n, n))


def sum_by_group(values: Any, groups: Any, n: int) -> Any:
    """Return the sum of the values of each of `n` groups."""
    library = arrays.library_of(values)
    if library == "torch":
        return arrays.zeros((n,), values).index_add_(0, groups, values)
    if library == "cupy":
        return arrays.namespace(values).bincount(groups, weights=values, minlength=n)
    totals = np.bincount(arrays.to_numpy(groups), weights=arrays.to_numpy(values), minlength=n)
    return arrays.beside(totals, values)


def group_bounds(groups: Any, n: int) -> AnyArray:
    """Return where each of `n` groups begins and ends (n + 1,) once the rows of each stand together, on the host."""
    ones = arrays.zeros(groups.shape, groups) + 1.0
    return np.concatenate([[0], np.cumsum(arrays.to_numpy(sum_by_group(ones, groups, n)))]).astype(
        int
    )


class SparseRows:
    """A sparse matrix in compressed rows, on the device of its arrays, to be multiplied with dense blocks."""

    def __init__(self, rows: Any, indices: Any, data: Any, shape: tuple[int, int]) -> None:
        # Row, in ascending order, column and value of every entry.
        self.rows, self.indices, self.data, self.shape = rows, indices, data, shape
        xp = arrays.namespace(data)
        ends = xp.arange(shape[0] + 1, dtype=rows.dtype, **arrays.on_device(data))
        self.indptr = xp.searchsorted(rows, ends)
        self._matrix = self._build()

    def _build(self) -> Any:
        library = arrays.library_of(self.data)
        if library == "torch":
            import torch

            kind = torch.int32 if self.data.is_cuda and len(self.data) < 2**31 else torch.int64
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
                warnings.filterwarnings("ignore", "Sparse invariant checks are implicitly disabled")
                ends, places = self.indptr.to(kind), self.indices.to(kind)
                return torch.sparse_csr_tensor(
                    ends, places, self.data, self.shape, check_invariants=False
                )
        if library == "cupy":
            from cupyx.scipy.sparse import csr_matrix

            return csr_matrix((self.data, self.indices, self.indptr), shape=self.shape)
        from scipy.sparse import csr_array

        host = tuple(map(arrays.to_numpy, (self.data, self.indices, self.indptr)))
        return csr_array(host, shape=self.shape)

    def __matmul__(self, block: Any) -> Any:
        """Return the product with a dense block (m, k)."""
        if arrays.library_of(block) in ("torch", "cupy"):
            return self._matrix @ block
        return arrays.beside(self._matrix @ arrays.to_numpy(block), block)

    def combine(self, block: Any, scale: float, share: float, minus: Any) -> Any:
        """Return ``scale * (matrix @ block) + share * block - minus``."""
        if arrays.library_of(block) == "torch":
            import torch

            total = torch.sparse.addmm(minus, self._matrix, block, beta=-1.0, alpha=scale)
            return total.add_(block, alpha=share)
        return scale * (self @ block) + share * block - minus


# What holds for numpy too.
EXTRA = 32  # more columns than wanted vectors in the filtered block
TOLERANCE = 1e-4  # residual norms of the filtered block
LARGE, LARGE_TOLERANCE = 500_000, 1e-3  # the same from so many rows on
GOOD = 1e-8  # residual norms asked of ARPACK
TIE = 1e-9  # eigenvalues nearer than this are one eigenvalue
MOST_CYCLES = 40
# How much more a filter is to gain than is needed: the cut comes from vectors that are not there yet.
SAFETY = 8.0
MOST_GROWTH = 1e15  # of a vector by one filter: its square is a number in single precision
FIRST_GROWTH = (
    1e6  # the same by the first one, from random vectors: what single precision tells apart
)
NARROWEST = 1e-3  # of the part of the spectrum that a filter is small on
SHARE_ABOVE = (
    1.6  # eigenvalues above the first cut, as a share of the columns: their number is estimated
)
FINEST = 5e-6  # residuals that single precision reaches

DENSE_ROWS = 3000  # components up to this size are solved as dense matrices
DOUBLE_ROWS = (
    20_000  # those up to this size are filtered in double precision, larger ones in single
)
CHUNK = 2**20  # rows of a block in double precision at a time

Pairs = tuple[Array, Any, Array]
# The fields of `Spectrum`: vectors (n, d), values (t,), components and degrees (n,), residuals, owners, columns (t,).
SpectrumParts = tuple[Any, Array, Any, Any, Array, AnyArray, AnyArray]


def find_components(graph: DeviceGraph) -> tuple[int, Any]:
    """Return how many connected components there are, and that of each row, numbered by their first rows."""
    here, there, n = graph.matrix.rows, graph.matrix.indices, graph.matrix.shape[0]
    xp = arrays.namespace(here)
    label = xp.arange(n, dtype=xp.int64, **arrays.on_device(here))
    while True:
        # Every component so far takes the smallest number among its neighbours; then chains of numbers are shortened.
        smallest = smallest_by_group(xp.take(label, there), xp.take(label, here), n)
        root = xp.minimum(xp.arange(n, dtype=xp.int64, **arrays.on_device(label)), smallest)
        new = xp.take(root, label)
        for _ in range(3):
            root = xp.take(root, root)
            new = xp.take(root, new)
        if not bool(xp.any(new != label)):
            break
        label = new
    first = label == xp.arange(n, dtype=xp.int64, **arrays.on_device(label))
    number = arrays.cumulative_sum(xp.astype(first, xp.int64)) - 1
    return int(number[-1]) + 1, xp.take(number, label)


def device_spectrum(graph: DeviceGraph, d: int, random: Random) -> SpectrumParts:
    """Return the `d` smallest eigenvectors of each component's normalised Laplacian, on the device of the graph."""
    matrix, n = graph.matrix, graph.matrix.shape[0]
    with stage("components"):
        count, components = find_components(graph)
    degrees = (matrix @ (arrays.zeros((n, 1), matrix.data) + 1.0))[:, 0]
    with stage("spectrum") as report:
        if count > 1:
            return _each_component(graph, d, random, (count, components), degrees, report)
        S = normalised(matrix, degrees)
        values, vectors, residuals = smallest_pairs(S, degrees, min(d, n - 1), random, report)
        return (
            vectors,
            values,
            components,
            degrees,
            residuals,
            np.zeros(len(values), int),
            np.arange(len(values)),
        )


def _each_component(
    graph: DeviceGraph,
    d: int,
    random: Random,
    parts_of: tuple[int, Any],
    degrees: Any,
    report: Report,
) -> SpectrumParts:
    """Solve component by component, on the matrix with the rows of each together."""
    xp, n, (count, components) = arrays.namespace(degrees), graph.matrix.shape[0], parts_of
    order = xp.argsort(components, stable=True)
    place = xp.argsort(order)
    keys = xp.take(place, graph.matrix.rows) * n + xp.take(place, graph.matrix.indices)
    matrix = merged(keys, graph.matrix.data, n)
    bounds = group_bounds(components, count)
    entries = arrays.to_numpy(xp.take(matrix.indptr, arrays.beside(bounds, order)))
    ordered, vectors = xp.take(degrees, order), arrays.zeros((n, d), degrees)
    found: list[tuple[Any, ...]] = []  # value, residual, owner and column of every eigenvector
    for component in np.flatnonzero(np.diff(bounds) > 1):
        start, stop = int(bounds[component]), int(bounds[component + 1])
        part = slice(int(entries[component]), int(entries[component + 1]))
        rows, columns, data = (
            matrix.rows[part] - start,
            matrix.indices[part] - start,
            matrix.data[part],
        )
        S = normalised(SparseRows(rows, columns, data, (stop - start,) * 2), ordered[start:stop])
        solved = smallest_pairs(
            S, ordered[start:stop], min(d, stop - start - 1), random, lambda share: None
        )
        vectors[start:stop, : len(solved[0])] = xp.astype(solved[1], xp.float64)
        found += [
            (*pair, component, j) for j, pair in enumerate(zip(solved[0], solved[2], strict=True))
        ]
        report(stop / n)
    values, residuals, owners, columns = np.array(sorted(found, key=itemgetter(0))).reshape(-1, 4).T
    owners, columns = owners.astype(int), columns.astype(int)
    vectors = xp.take(vectors[:, : columns.max(initial=-1) + 1], place, axis=0)
    return vectors, values, components, degrees, residuals, owners, columns


def normalised(matrix: SparseRows, degrees: Any) -> SparseRows:
    """Return ``B^-1/2 A B^-1/2``."""
    xp = arrays.namespace(degrees)
    scale = 1.0 / xp.sqrt(degrees)
    data = matrix.data * xp.take(scale, matrix.rows) * xp.take(scale, matrix.indices)
    return SparseRows(matrix.rows, matrix.indices, data, matrix.shape)


def smallest_pairs(S: SparseRows, degrees: Any, d: int, random: Random, report: Report) -> Pairs:
    """Return the `d` smallest eigenvalues above 0 of ``I - S`` for a connected graph, their vectors and residuals."""
    xp, n = arrays.namespace(degrees), S.shape[0]
    trivial = xp.sqrt(degrees / xp.sum(degrees))
    if n > DENSE_ROWS and d < n // 3:
        return _filtered(S, trivial, d, random, report)
    one = xp.eye(n, dtype=xp.float64, **arrays.on_device(degrees))
    laplacian = one - (S @ one) + 3.0 * trivial[:, None] * trivial[None, :]
    values, vectors = xp.linalg.eigh(laplacian)
    more = min(d + 1, n - 1)
    values, vectors = arrays.to_numpy(values)[:more], vectors[:, :more]
    keep = whole_ties(values, d)
    values, vectors = values[:keep], vectors[:, :keep]
    rest = vectors - (S @ vectors) - vectors * arrays.beside(values, vectors)
    return values, vectors, arrays.to_numpy(xp.sqrt(xp.sum(rest * rest, axis=0)))


def _filtered(S: SparseRows, trivial: Any, d: int, random: Random, report: Report) -> Pairs:
    """Return the pairs by Chebyshev filtering; if they do not converge, with a larger block, then in double."""
    n = S.shape[0]
    tries = [("float32", EXTRA), ("float32", 3 * EXTRA), ("float64", 3 * EXTRA)]
    tol = TOLERANCE if n <= LARGE else LARGE_TOLERANCE
    if n <= DOUBLE_ROWS:
        tries, tol = [("float64", EXTRA), ("float64", 3 * EXTRA)], GOOD
    for precision, extra in tries:
        try:
            block = first_block(n, min(d + extra, n // 2), precision, trivial, random)
            values, vectors, residuals = leading_pairs(S, block, d, tol, trivial, report)
        except NotConvergedError as error:
            last = error
            continue
        return 1.0 - values, vectors, residuals
    raise ArithmeticError(
        f"The {d} smallest eigenvectors of a graph of {n} rows were not found ({last}): ask for fewer n_components, "
        "give more neighbours, or pass numpy arrays, for which the matrix can be inverted."
    )


def first_block(n: int, width: int, precision: str, like: Any, random: Random) -> Any:
    """Return random numbers (n, width) on the device of an array: drawn there by torch, else on the host."""
    seed = int(random.randint(2**31 - 1))
    if arrays.library_of(like) == "torch":
        import torch

        generator = torch.Generator(device=like.device).manual_seed(seed)
        kind = getattr(torch, precision)
        return torch.randn((n, width), dtype=kind, device=like.device, generator=generator)
    return arrays.beside(np.random.default_rng(seed).standard_normal((n, width)), like, precision)


def leading_pairs(
    S: SparseRows, block: Any, k: int, tol: float, known: Any, report: Report
) -> Pairs:
    """Return the same as `spectral_graph.spectrum.leading_pairs`, in the precision of the block."""
    xp = arrays.namespace(block)
    matrix = SparseRows(S.rows, S.indices, xp.astype(S.data, block.dtype), S.shape)
    known = xp.astype(known, block.dtype)
    finest = FINEST if block.dtype == xp.float32 else 1e-12
    first = block[:, 0] / xp.sqrt(xp.sum(block[:, 0] * block[:, 0]))
    plan = FilterPlan.begin(lambda vector: (matrix @ vector[:, None])[:, 0], first, block.shape[1])
    farthest = 0.0
    for _ in range(MOST_CYCLES):
        block = chebyshev(matrix, block, plan.degree, plan.lower, plan.cut)
        block = block - known[:, None] * (known[None, :] @ block)
        values, block, residuals = rayleigh_ritz(matrix, block)
        block = block - known[:, None] * (known[None, :] @ block)
        worst, limit = float(residuals[:k].max()), min(tol, 0.01 * (1.0 - float(values[k - 1])))
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


def chebyshev(matrix: SparseRows, now: Any, degree: int, lower: float, cut: float) -> Any:
    """Return the Chebyshev polynomial of this degree on [lower, cut] of a matrix, times a block."""
    centre, half = 0.5 * (cut + lower), 0.5 * (cut - lower)
    past, now = now, (matrix @ now) / half - (centre / half) * now
    for _ in range(degree - 1):
        past, now = now, matrix.combine(now, 2.0 / half, -2.0 * centre / half, past)
    return now


def eigenvalue_counts(
    product: Callable[[Any], Any], vector: Any
) -> tuple[float, Callable[[float], float]]:
    """Return a number that no eigenvalue is below, and the function that says which one so many are above."""
    # As far as a few Lanczos steps from a random unit vector (n,) can tell. All eigenvectors have about the same part
    # in it, so that each Ritz value stands for as many eigenvalues as its own part says.
    xp, before, beta = arrays.namespace(vector), arrays.namespace(vector).zeros_like(vector), 0.0
    diagonal, off = [], []
    for _ in range(min(20, vector.shape[0])):
        next_ = product(vector) - beta * before
        diagonal.append(float(vector @ next_))
        next_ = next_ - diagonal[-1] * vector
        beta = float(xp.sqrt(next_ @ next_))
        off.append(beta)
        if beta < 1e-5:
            break
        before, vector = vector, next_ / beta
    ritz, turn = scipy.linalg.eigh_tridiagonal(diagonal, off[:-1])
    lower = max(float(ritz[0]) - 2.0 * off[-1] * abs(float(turn[-1, 0])), -1.0)
    counts = vector.shape[0] * turn[0, ::-1] ** 2
    above = np.cumsum(counts) - 0.5 * counts
    return lower, lambda n: max(float(np.interp(n, above, ritz[::-1])), lower + NARROWEST)


@dataclass
class FilterPlan:
    """Where the next filter of a block is small, from `lower` to `cut`, and its degree."""

    lower: float
    cut: float
    degree: int
    likely: float  # where the last cut probably is
    worst: float = np.inf  # the largest residual so far

    @classmethod
    def begin(cls, product: Callable[[Any], Any], vector: Any, width: int) -> FilterPlan:
        """Plan the first filter of `width` columns, from products with a random unit vector (n,)."""
        lower, above = eigenvalue_counts(product, vector)
        cut = above(SHARE_ABOVE * width)
        return cls(lower, cut, growth_degree(FIRST_GROWTH, lower, cut), above(width))

    def go_on(self, values: Array, k: int, worst: float, limit: float) -> None:
        """Plan the next filter: its cut is the last of a block's values, or more where these are not there yet."""
        # That value is no larger than the eigenvalue it stands for, which is likely another; the `k`-th must stay well
        # above. What gained nothing was cut too high.
        least = self.cut if worst < 0.5 * self.worst else self.lower + NARROWEST
        last, wanted = float(values[-1]), float(values[k - 1])
        self.cut = max(least, last, min(self.likely, last + 0.4 * (wanted - last)))
        self.degree = filter_degree(wanted, self.lower, self.cut, worst / limit)
        self.worst = worst


def grams(block: Any, image: Any) -> tuple[Array, Array]:
    """Return ``block' image`` and ``block' block`` of tall blocks in double precision, on the host."""
    xp, width = arrays.namespace(block), block.shape[1]
    mixed, own = (arrays.zeros((width, width), block) for _ in range(2))
    for part in arrays.blocks(block.shape[0], CHUNK):
        left = xp.astype(block[part, :], xp.float64)
        mixed = mixed + left.T @ xp.astype(image[part, :], xp.float64)
        own = own + left.T @ left
    mixed, own = arrays.to_numpy(mixed), arrays.to_numpy(own)
    return 0.5 * (mixed + mixed.T), 0.5 * (own + own.T)


def rayleigh_ritz(matrix: SparseRows, block: Any) -> Pairs:
    """Return the eigenpairs of S in the span of a block: values descending, vectors, residual norms."""
    xp = arrays.namespace(block)
    block = block / xp.sqrt(xp.sum(block * block, axis=0))
    image = matrix @ block
    mixed, own = grams(block, image)
    with few_threads(
        0
    ):  # on the host, where the threads of many small problems wait for each other
        if scipy.linalg.eigh(own, eigvals_only=True, subset_by_index=[0, 0])[0] < 1e-8:
            block = xp.linalg.qr(block)[0]  # columns nearly dependent: make them orthogonal first
            image = matrix @ block
            mixed, own = grams(block, image)
        values, turn = scipy.linalg.eigh(mixed, own)
    values, turn = values[::-1].copy(), turn[:, ::-1].copy()
    turned = xp.astype(arrays.beside(turn, block), block.dtype)
    block, image = block @ turned, image @ turned
    rest = image - block * xp.astype(arrays.beside(values, block), block.dtype)
    return values, block, arrays.to_numpy(xp.sqrt(xp.sum(rest * rest, axis=0))).astype(float)


class NotConvergedError(ArithmeticError):
    """The iteration ended before every residual was small enough."""


def filter_degree(wanted: float, lower: float, cut: float, factor: float) -> int:
    """Return the degree at which the last wanted vector gains `factor` on the first unwanted one, within bounds."""
    gain = np.arccosh(1.0 + 2.0 * max(wanted - cut, 0.0) / (cut - lower))
    degree = np.clip(np.ceil(np.arccosh(SAFETY * factor) / max(gain, 1e-3)), 8, 40)
    return min(int(degree), growth_degree(MOST_GROWTH, lower, cut))


def growth_degree(growth: float, lower: float, cut: float) -> int:
    """Return the largest degree, 40 at most, at which a filter lets no vector grow by more than a factor."""
    # No eigenvalue is above 1.
    most = np.arccosh(1.0 + 2.0 * (1.0 - cut) / (cut - lower))
    return int(np.clip(np.log(2.0 * growth) / max(most, 1e-3), 1, 40))


def whole_ties(values: Array, d: int) -> int:
    """Return how many of the first `d` ascending values to keep so that no group of equal ones is cut in two."""
    if len(values) <= d or values[d] - values[d - 1] > TIE:
        return min(d, len(values))
    return int(np.searchsorted(values, values[d - 1] - TIE)) or d


def smallest_by_group(values: Any, groups: Any, n: int) -> Any:
    """Return the smallest value (t,) of each of `n` groups; `n` for an empty one."""
    xp, library = arrays.namespace(values), arrays.library_of(values)
    smallest = xp.full((n,), n, dtype=values.dtype, **arrays.on_device(values))
    if library == "torch":
        return smallest.scatter_reduce(0, groups, values, "amin")
    if library == "cupy":
        xp.minimum.at(smallest, groups, values)
        return smallest
    host = arrays.to_numpy(smallest)
    np.minimum.at(host, arrays.to_numpy(groups), arrays.to_numpy(values))
    return arrays.beside(host, values)
