"""The spectrum of a graph on a device: connected components, dense or Chebyshev-filtered eigenvectors.

As `transduce.methods.spectral_graph.spectrum` and `chebyshev`, with sparse products by the library of the arrays.
Blocks are filtered in single precision (in double for small graphs); Rayleigh-Ritz is in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from transduce.core import arrays
from transduce.core.progress import stage
from transduce.core.threads import few_threads
from transduce.core.types import AnyArray, Array
from transduce.device.graph import DeviceGraph, SparseRows, merged, sum_by_group

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
FINEST = 5e-6  # residuals that single precision reaches

DENSE_ROWS = 3000  # components up to this size are solved as dense matrices
DOUBLE_ROWS = 20_000  # those up to this size are filtered in double precision, larger ones in single
CHUNK = 2**20  # rows of a block in double precision at a time

Pairs = tuple[Array, Any, Array]
# The fields of `Spectrum`: vectors (n, d), values (t,), components and degrees (n,), residuals, owners, columns (t,).
SpectrumParts = tuple[Any, Array, Any, Any, Array, AnyArray, AnyArray]


def find_components(graph: DeviceGraph) -> tuple[int, Any]:
    """Return how many connected components there are, and that of each row, numbered by their first rows."""
    xp, n = arrays.namespace(graph.rows), graph.shape[0]
    label = xp.arange(n, dtype=xp.int64, **arrays.on_device(graph.rows))
    here, there = graph.rows, graph.matrix.indices
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
    number = xp.cumulative_sum(xp.astype(first, xp.int64)) - 1
    return int(number[-1]) + 1, xp.take(number, label)


def device_spectrum(graph: DeviceGraph, d: int, random: np.random.RandomState) -> SpectrumParts:
    """Return the `d` smallest eigenvectors of each component's normalised Laplacian, on the device of the graph."""
    n = graph.shape[0]
    with stage("components"):
        count, components = find_components(graph)
    degrees = (graph.matrix @ (arrays.zeros((n, 1), graph.matrix.data) + 1.0))[:, 0]
    with stage("spectrum") as report:
        if count == 1:
            S = normalised(graph.matrix, graph.rows, degrees)
            values, vectors, residuals = smallest_pairs(S, degrees, min(d, n - 1), random, report)
            one = np.zeros(len(values), dtype=int)
            return vectors, values, components, degrees, residuals, one, np.arange(len(values))
        return _each_component(graph, d, random, (count, components), degrees, report)


def _each_component(
    graph: DeviceGraph,
    d: int,
    random: np.random.RandomState,
    parts_of: tuple[int, Any],
    degrees: Any,
    report: Callable[[float], None],
) -> SpectrumParts:
    """Solve component by component, on the matrix with the rows of each together."""
    xp, n, (count, components) = arrays.namespace(degrees), graph.shape[0], parts_of
    order = xp.argsort(components, stable=True)
    place = xp.argsort(order)
    keys = xp.take(place, graph.rows) * n + xp.take(place, graph.matrix.indices)
    matrix, rows = merged(keys, graph.matrix.data, n)
    sizes = arrays.to_numpy(sum_by_group(arrays.zeros((n,), degrees) + 1.0, components, count))
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
    entries = arrays.to_numpy(xp.take(matrix.indptr, arrays.beside(bounds, order)))
    ordered = xp.take(degrees, order)
    vectors, parts = arrays.zeros((n, d), degrees), []
    for component in np.flatnonzero(sizes > 1):
        start, stop = int(bounds[component]), int(bounds[component + 1])
        part = slice(int(entries[component]), int(entries[component + 1]))
        local = SparseRows(
            matrix.indptr[start : stop + 1] - part.start,
            matrix.indices[part] - start,
            matrix.data[part],
            (stop - start, stop - start),
        )
        S = normalised(local, rows[part] - start, ordered[start:stop])
        solved = smallest_pairs(S, ordered[start:stop], min(d, stop - start - 1), random, lambda share: None)
        vectors[start:stop, : len(solved[0])] = xp.astype(solved[1], xp.float64)
        parts.append((np.full(len(solved[0]), component), solved[0], solved[2], np.arange(len(solved[0]))))
        report(stop / n)
    owners, values, residuals, columns = (
        np.concatenate([part[j] for part in parts] or [np.empty(0)]) for j in range(4)
    )
    turn = np.argsort(values, kind="stable")
    width = int(columns.max()) + 1 if len(columns) else 0
    vectors = xp.take(vectors[:, :width], place, axis=0)
    owners, columns = (part[turn].astype(int) for part in (owners, columns))
    return vectors, values[turn], components, degrees, residuals[turn], owners, columns


def normalised(matrix: SparseRows, rows: Any, degrees: Any) -> SparseRows:
    """Return ``B^-1/2 A B^-1/2``."""
    xp = arrays.namespace(degrees)
    scale = 1.0 / xp.sqrt(degrees)
    data = matrix.data * xp.take(scale, rows) * xp.take(scale, matrix.indices)
    return SparseRows(matrix.indptr, matrix.indices, data, matrix.shape)


def smallest_pairs(
    S: SparseRows, degrees: Any, d: int, random: np.random.RandomState, report: Callable[[float], None]
) -> Pairs:
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


def _filtered(
    S: SparseRows, trivial: Any, d: int, random: np.random.RandomState, report: Callable[[float], None]
) -> Pairs:
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


def first_block(n: int, width: int, precision: str, like: Any, random: np.random.RandomState) -> Any:
    """Return random numbers (n, width) on the device of an array: drawn there by torch, else on the host."""
    seed = int(random.randint(2**31 - 1))
    if arrays.library_of(like) == "torch":
        import torch

        generator = torch.Generator(device=like.device).manual_seed(seed)
        return torch.randn(
            (n, width), dtype=getattr(torch, precision), device=like.device, generator=generator
        )
    draw = np.random.default_rng(seed)
    return arrays.beside(draw.standard_normal((n, width)), like, precision)


def leading_pairs(
    S: SparseRows, block: Any, k: int, tol: float, known: Any, report: Callable[[float], None]
) -> Pairs:
    """Return the `k` largest eigenvalues of S below its first, 1, their vectors and residual norms.

    As `transduce.methods.spectral_graph.chebyshev.leading_pairs`, in the precision of the block.
    """
    xp = arrays.namespace(block)
    matrix = SparseRows(S.indptr, S.indices, xp.astype(S.data, block.dtype), S.shape)
    known = xp.astype(known, block.dtype)
    finest = FINEST if block.dtype == xp.float32 else 1e-12
    lower = smallest_bound(matrix, block[:, :1])
    degree, cut, first = 10, 0.5 * (1.0 + lower), 0.0
    for _ in range(MOST_CYCLES):
        block = chebyshev(matrix, block, degree, lower, cut)
        block = block - known[:, None] * (known[None, :] @ block)
        values, block, residuals = rayleigh_ritz(matrix, block)
        block = block - known[:, None] * (known[None, :] @ block)
        worst, limit = float(residuals[:k].max()), min(tol, 0.01 * (1.0 - float(values[k - 1])))
        if worst <= limit:
            return values[:k], arrays.copy(block[:, :k]), residuals[:k]
        if limit < finest:
            raise NotConvergedError(f"the eigenvalues are too close to 0 for this precision ({limit:.0e})")
        first = max(first, np.log(worst / limit))
        report(1.0 - np.log(worst / limit) / first)
        degree, cut = filter_degree(values[k - 1], lower, float(values[-1]), worst / limit), float(values[-1])
    raise NotConvergedError(
        f"{int((residuals[:k] > limit).sum())} of {k} eigenvectors did not converge in {MOST_CYCLES} cycles"
    )


def chebyshev(matrix: SparseRows, now: Any, degree: int, lower: float, cut: float) -> Any:
    """Return the Chebyshev polynomial of this degree on [lower, cut] of a matrix, times a block."""
    centre, half = 0.5 * (cut + lower), 0.5 * (cut - lower)
    past, now = now, matrix.combine(now, now, 1.0 / half, -centre / half, None)
    for _ in range(degree - 1):
        past, now = now, matrix.combine(now, now, 2.0 / half, -2.0 * centre / half, past)
    return now


def smallest_bound(matrix: SparseRows, vector: Any, n_steps: int = 20) -> float:
    """Return a number that no eigenvalue is below, as far as a few Lanczos steps and their residual can tell."""
    xp = arrays.namespace(vector)
    vector = vector / xp.sqrt(xp.sum(vector * vector))
    before, beta = xp.zeros_like(vector), 0.0
    diagonal, off = [], []
    for _ in range(min(n_steps, matrix.shape[0])):
        next_ = (matrix @ vector) - beta * before
        diagonal.append(float(xp.sum(vector * next_)))
        next_ = next_ - diagonal[-1] * vector
        beta = float(xp.sqrt(xp.sum(next_ * next_)))
        off.append(beta)
        if beta < 1e-5:
            break
        before, vector = vector, next_ / beta
    ritz, turn = scipy.linalg.eigh_tridiagonal(diagonal, off[:-1])
    return max(float(ritz[0]) - 2.0 * off[-1] * abs(float(turn[-1, 0])), -1.0)


def grams(block: Any, image: Any) -> tuple[Array, Array]:
    """Return ``block' image`` and ``block' block`` of tall blocks in double precision, on the host."""
    xp, width = arrays.namespace(block), block.shape[1]
    mixed, own = (arrays.zeros((width, width), block) for _ in range(2))
    for start in range(0, block.shape[0], CHUNK):
        part = slice(start, min(start + CHUNK, block.shape[0]))
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
    with few_threads(0):  # on the host, where the threads of many small problems wait for each other
        dependent = scipy.linalg.eigh(own, eigvals_only=True, subset_by_index=[0, 0])[0] < 1e-8
    if dependent:  # columns nearly so: make them orthogonal first
        block = xp.linalg.qr(block)[0]
        image = matrix @ block
        mixed, own = grams(block, image)
    with few_threads(0):
        values, turn = scipy.linalg.eigh(mixed, own)
    values, turn = values[::-1].copy(), turn[:, ::-1].copy()
    turned = xp.astype(arrays.beside(turn, block), block.dtype)
    block, image = block @ turned, image @ turned
    rest = image - block * xp.astype(arrays.beside(values, block), block.dtype)
    return values, block, arrays.to_numpy(xp.sqrt(xp.sum(rest * rest, axis=0))).astype(float)


class NotConvergedError(ArithmeticError):
    """The iteration ended before every residual was small enough."""


def filter_degree(wanted: float, lower: float, cut: float, factor: float) -> int:
    """Return the degree at which the last wanted vector gains `factor` on the first unwanted one, within bounds.

    No eigenvalue is above 1: where the polynomial grows by more than single precision holds, the degree is smaller.
    """
    gain, most = (np.arccosh(1.0 + 2.0 * max(end - cut, 0.0) / (cut - lower)) for end in (wanted, 1.0))
    degree = np.clip(np.ceil(np.arccosh(SAFETY * factor) / max(gain, 1e-3)), 8, 40)
    return int(max(min(degree, np.log(MOST_GROWTH) / max(most, 1e-3)), 1))


def whole_ties(values: Array, d: int) -> int:
    """Return how many of the first `d` ascending values to keep so that no group of equal ones is cut in two."""
    if len(values) <= d or values[d] - values[d - 1] > TIE:
        return min(d, len(values))
    before = int(np.searchsorted(values, values[d - 1] - TIE))
    return before or d


def smallest_by_group(values: Any, groups: Any, n: int) -> Any:
    """Return the smallest value of each of `n` groups; `n` for an empty one.

    Shapes: values, groups (t,); returns (n,).
    """
    xp, library = arrays.namespace(values), arrays.library_of(values)
    found = xp.full((n,), n, dtype=values.dtype, **arrays.on_device(values))
    if library == "torch":
        return found.scatter_reduce(0, groups, values, "amin")
    if library == "cupy":
        xp.minimum.at(found, groups, values)
        return found
    host = arrays.to_numpy(found)
    np.minimum.at(host, arrays.to_numpy(groups), arrays.to_numpy(values))
    return arrays.beside(host, values)
