"""The spectrum of a graph: its components, and the smallest eigenvectors of its Laplacian.

With degrees ``B`` the normalised Laplacian is ``L = I - S``, ``S = B^-1/2 A B^-1/2``, and the plain
one ``B - A = b (I - S)``, ``S = I - (B - A) / b`` with the largest degree b: either S has its
eigenvalues between -1 and 1. Every connected component has one eigenvector of eigenvalue 0,
``B^1/2 1`` or ``1`` on its rows, which is known without solving; the others are found component by
component, so that none can be missed or mixed with those of another.
"""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
import scipy.sparse as sp
from numba import njit
from scipy.linalg import eigh, qr, svd
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh, splu
from sklearn.utils.parallel import Parallel, delayed

from transduce.core import arrays, checks
from transduce.core.checks import check_random_state
from transduce.core.computing import few_threads, n_threads, stage
from transduce.core.files import whole_file
from transduce.core.types import AnyArray, Array, Random, Seed
from transduce.device import graph as device_graph
from transduce.device.graph import EXTRA, FINEST, GOOD, MOST_CYCLES, FilterPlan, NotConvergedError
from transduce.methods.spectral_graph.neighbors import QUIET, Work

DENSE_ROWS = 800  # components up to this size are solved as dense matrices
# Up to this size by ARPACK in double precision, beyond by Chebyshev filtering in single.
ARPACK_ROWS = 3_000
# Components up to this size are dense matrices if all else fails: a minute at most.
MOST_DENSE_ROWS = 6_000
MOST_RESTARTS = 200  # of ARPACK with products
INVERSE_RESTARTS = 30  # and with solutions
MOST_BLOCK_STEPS = 40
# Where a Krylov space is exhausted, as in graphs of many equal rows, ARPACK goes on from a random
# vector: the same one in every call, from scipy 1.17 on.
SEED = {"rng": 0} if "rng" in inspect.signature(eigsh).parameters else {}
SHIFT = 1e-9  # added to the Laplacian's diagonal before it is inverted

Laplacian = Literal["normalized", "plain"]
LAPLACIANS = get_args(Laplacian)

_log = logging.getLogger("transduce")


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvectors of a graph's Laplacian, with all that a labelling needs.

    Parameters
    ----------
    vectors : array of shape (n, d)
        For a connected graph the eigenvectors 2 to d + 1, of norm 1. With several components, each
        row holds the entries of its own component's: an eigenvector of one is 0 on the others,
        which is not stored. Eigenvectors of eigenvalue 0 are known from `components` and `degrees`:
        the root of the degrees, or for the plain Laplacian a constant, of norm 1.
    values : array of shape (t,)
        The eigenvalues above 0 of all components, ascending; d of them for a connected graph.
    components : integer array of shape (n,)
        Connected component of each row, numbered from 0.
    degrees : array of shape (n,)
        Sum of the weights at each row.
    residuals : array of shape (t,)
        Norm of ``L v - value v`` for every vector v.
    owners, columns : integer arrays of shape (t,)
        The component each eigenvalue belongs to, and the column of `vectors` its eigenvector is in.
    laplacian : {"normalized", "plain"}, default="normalized"
        Whose eigenvectors these are, see `graph_spectrum`.

    Examples
    --------
    >>> from transduce.methods.spectral_graph import graph_spectrum
    >>> spectrum = graph_spectrum([[0, 1, 0], [1, 0, 1], [0, 1, 0]])  # three rows in a line
    >>> spectrum.values, spectrum.components
    (array([1., 2.]), array([0, 0, 0], dtype=int32))
    """

    vectors: Array
    values: Array
    components: AnyArray
    degrees: Array
    residuals: Array
    owners: AnyArray
    columns: AnyArray
    laplacian: Laplacian = "normalized"

    @property
    def null_squares(self) -> Array:
        """Squares of the eigenvectors of eigenvalue 0 (n,), up to a factor for each component."""
        if self.laplacian == "plain":
            return arrays.namespace(self.degrees).ones_like(self.degrees)
        return self.degrees

    @property
    def scale(self) -> float:
        """What eigenvalues are measured by: 1, or the largest degree for the plain Laplacian."""
        if self.laplacian == "normalized":
            return 1.0
        return float(arrays.namespace(self.degrees).max(self.degrees)) or 1.0

    @property
    def count(self) -> int:
        """Number of connected components."""
        if not self.components.shape[0]:
            return 0
        return int(arrays.namespace(self.components).max(self.components)) + 1

    def take(self, rows: AnyArray) -> Spectrum:
        """Return the same graph's spectrum with the rows in another order.

        Components are numbered by their first row.
        """
        components = self.components[rows]
        distinct, first = np.unique(components, return_index=True)
        number = np.empty(self.count, dtype=components.dtype)
        number[distinct[np.argsort(first)]] = np.arange(len(distinct))
        return replace(
            self,
            vectors=self.vectors[rows],
            degrees=self.degrees[rows],
            components=number[components],
            owners=number[self.owners],
        )

    def save(self, path: str | Path) -> None:
        """Write the spectrum to a file of plain arrays (npz).

        It takes the place of an earlier file once it is whole.
        """
        columns = {item.name: getattr(self, item.name) for item in fields(self)}
        columns = {name: np.asarray(arrays.to_numpy(array)) for name, array in columns.items()}
        with whole_file(path, force=True) as file:
            np.savez(file, **columns)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a spectrum that `save` wrote; nothing in the file is executed."""
        if not Path(path).is_file():
            raise FileNotFoundError(f"There is no file {path}: give one that Spectrum.save wrote.")
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays_of:
                columns = {name: arrays_of[name] for name in arrays_of.files}
                columns["laplacian"] = str(columns.get("laplacian", "normalized"))
                spectrum = cls(**columns)
        except PermissionError:
            raise
        except Exception as error:
            # numpy, zipfile and zlib raise a dozen kinds about a damaged file.
            raise ValueError(_damaged(path, "it cannot be read")) from error
        spectrum._check(path)
        return spectrum

    def _check(self, path: str | Path) -> None:
        """Raise a ValueError unless the arrays of a file fit each other."""
        n = self.components.shape[:1]
        n_values = self.values.shape
        sizes = {
            "values": (self.values, self.values.shape[:1]),
            "components": (self.components, n),
            "degrees": (self.degrees, n),
            "residuals": (self.residuals, n_values),
            "owners": (self.owners, n_values),
            "columns": (self.columns, n_values),
        }
        wrong = [name for name, (array, shape) in sizes.items() if array.shape != shape]
        if self.vectors.ndim != 2 or self.vectors.shape[:1] != n:
            wrong.append("vectors")
        if wrong:
            raise ValueError(_damaged(path, f"its {wrong[0]} have another shape than they should"))
        if self.laplacian not in LAPLACIANS:
            raise ValueError(_damaged(path, "it does not say of which Laplacian it is"))
        whole = (self.components, self.owners, self.columns)
        parts = (self.vectors, self.values, self.degrees, self.residuals)
        all_whole = all(array.dtype.kind in "iu" for array in whole)
        all_finite = all(array.dtype.kind == "f" and np.isfinite(array).all() for array in parts)
        if not all_whole or not all_finite:
            raise ValueError(_damaged(path, "some of its entries are no finite numbers"))
        limits = (len(self.components), self.count, self.vectors.shape[1])
        for array, limit in zip(whole, limits, strict=True):
            if len(array) and not (array.min() >= 0 and array.max() < limit):
                raise ValueError(_damaged(path, "some of its entries are out of bounds"))


def _damaged(path: str | Path, reason: str) -> str:
    """Return that a file holds no spectrum, and why."""
    return f"{path} holds no spectrum that Spectrum.save wrote, or is damaged: {reason}."


def graph_spectrum(
    A: Any,
    *,
    n_components: int = 80,
    laplacian: Laplacian = "normalized",
    tolerance: float | None = None,
    random_state: Seed = None,
    n_jobs: int | None = None,
) -> Spectrum:
    """Return the smallest eigenvectors of a graph's Laplacian.

    Parameters
    ----------
    A : sparse or dense array of shape (n, n), or DeviceGraph
        Symmetric weights, none negative; the diagonal counts as 0.
    n_components : int, default=80
        Eigenvectors with eigenvalue above 0; a small graph may have fewer.
    laplacian : {"normalized", "plain"}, default="normalized"
        ``B^-1/2 (B - A) B^-1/2``, whose second eigenvector relaxes the normalised cut, or ``B -
        A``, the ratio cut, with the degrees B. Graphs on a device have the former only.
    tolerance : float, optional
        Largest residual in components of more than 3,000 rows, as a share of the last eigenvalue,
        instead of those in the notes: a rougher spectrum takes a fraction of the time. Graphs on a
        device do not take it.
    random_state : int, RandomState or None, default=None
        Seed of the first guesses; it changes the vectors within their residuals only.
    n_jobs : int or None, default=None
        Threads for large components; None for as many as matrix products use.

    Returns
    -------
    Spectrum

    Notes
    -----
    Components of up to 800 rows are solved as dense matrices, of up to 3,000 by ARPACK (residuals
    below 1e-8), larger ones by Chebyshev-filtered block iteration in single precision (below 1e-4,
    above 500,000 rows below 1e-3, and a hundredth of the last eigenvalue if that is less). What has
    not converged is tried again with a larger block, then by inverting the matrix, then as a dense
    matrix of up to 6,000 rows. Beyond that there are fewer vectors, with a warning, and an error if
    there are none.

    Examples
    --------
    >>> from transduce.methods.spectral_graph import graph_spectrum
    >>> graph_spectrum([[0, 1, 1], [1, 0, 1], [1, 1, 0]]).values  # all tied to all
    array([1.5, 1.5])
    """
    checks.check_whole("n_components", n_components, least=1)
    checks.check_choice("laplacian", laplacian, LAPLACIANS)
    if tolerance is not None:
        checks.check_positive("tolerance", tolerance)
    random = check_random_state(random_state)
    if isinstance(A, device_graph.DeviceGraph):
        if laplacian == "plain":
            raise ValueError("laplacian='plain' needs a graph of numpy arrays.")
        return Spectrum(*device_graph.device_spectrum(A, int(n_components), random))
    components = Components.of(check_graph(A))
    pairs = []
    n = len(components.order)
    with stage("spectrum") as report:
        for number, (start, stop) in enumerate(pairwise(components.bounds)):
            if stop - start > 1:
                work = Work(n_jobs, report, tolerance).part(start / n, stop / n)
                pairs.append(
                    pairs_of_component(
                        components,
                        number,
                        n_components=int(n_components),
                        laplacian=laplacian,
                        random=random,
                        work=work,
                    )
                )
            report(stop / n)
    degrees = components.degrees * components.unit
    spectrum = merge_parts(pairs, components.numbers, degrees)
    return replace(spectrum, laplacian=laplacian)


def pairs_of_component(
    components: Components,
    number: int,
    *,
    n_components: int,
    laplacian: Laplacian,
    random: Random,
    work: Work,
) -> ComponentPairs:
    """Return the smallest eigenpairs of one component, which has at least two rows."""
    start, stop = components.bounds[number : number + 2]
    problem = eigenproblem(*components.part(start, stop), laplacian)
    d = min(n_components, int(stop - start) - 1)
    values, vectors, residuals = smallest_pairs(problem.S, problem.null_squares, d, random, work)
    if laplacian == "plain":
        scale = problem.factor * components.unit
        values = values * scale
        residuals = residuals * scale
    return ComponentPairs(number, components.order[start:stop], values, vectors, residuals)


class Components(NamedTuple):
    """The connected components of a graph whose largest weight is scaled to 1."""

    unit: float  # by which the weights were divided
    matrix: Any  # (n, n) scaled weights, the rows of each component one after another
    degrees: Array  # (n,) sums of scaled weights, in the graph's order
    numbers: AnyArray  # (n,) the component of each row
    order: AnyArray  # (n,) the rows in the order of the matrix
    bounds: AnyArray  # of the components in that order

    @classmethod
    def of(cls, A: Any) -> Components:
        """Find the components of a graph."""
        unit = 1.0
        if A.nnz:
            unit = float(A.data.max())
        scaled = A / unit
        scaled.eliminate_zeros()  # weights so small beside the largest that they are none
        degrees = np.asarray(scaled.sum(axis=1)).ravel()
        count, numbers = connected_components(scaled, directed=False)
        order = np.argsort(numbers, kind="stable")
        if count > 1:
            scaled = scaled[order][:, order]
        bounds = np.concatenate([[0], np.cumsum(np.bincount(numbers))])
        return cls(unit, scaled, degrees, numbers, order, bounds)

    def part(self, start: int, stop: int) -> tuple[Any, Array]:
        """Return the weights among the rows of a component, and their degrees."""
        degrees = self.degrees[self.order[start:stop]]
        if stop - start == len(self.order):
            return self.matrix, degrees
        return self.matrix[start:stop, start:stop], degrees


class ComponentPairs(NamedTuple):
    """The eigenpairs of one connected component."""

    component: int
    rows: AnyArray
    values: Array
    vectors: AnyArray
    residuals: Array


def check_graph(A: Any) -> sp.csr_array:
    """Return an adjacency matrix in compressed sparse rows and double precision, its diagonal 0."""
    try:
        A = sp.csr_array(A, dtype=np.float64, copy=True)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"A graph is a square matrix of weights, dense or sparse; got {type(A).__name__}."
        ) from error
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.shape[0] == 0:
        raise ValueError(
            f"A graph is a square matrix, one row and column for each row; got shape {A.shape}."
        )
    if not np.isfinite(A.data).all():
        raise ValueError("Input X contains NaN or infinity: the weights of a graph must be finite.")
    if np.any(A.data < 0.0):
        raise ValueError(
            "The graph has negative weights: weights are similarities, 0 where there is none."
        )
    A.sum_duplicates()
    A.setdiag(0.0)
    A.eliminate_zeros()
    is_lopsided = A.nnz > 0 and abs(A - A.T).max() > 1e-8 * float(A.data.max())
    if is_lopsided:
        raise ValueError("The graph must be symmetric: give A + A.T if its edges have a direction.")
    return A


def normalised(A: Any, degrees: Array) -> sp.csr_array:
    """Return ``B^-1/2 A B^-1/2``."""
    scale = 1.0 / np.sqrt(degrees)
    data = A.data * np.repeat(scale, np.diff(A.indptr)) * scale[A.indices]
    return sp.csr_array((data, A.indices, A.indptr), shape=A.shape)


class Eigenproblem(NamedTuple):
    """A connected graph's Laplacian as ``factor (I - S)``."""

    S: sp.csr_array
    null_squares: Array  # (n,) squares of the eigenvector of eigenvalue 0, up to a factor
    factor: float


def eigenproblem(A: Any, degrees: Array, laplacian: str) -> Eigenproblem:
    """Return the normalised or the plain Laplacian of a connected graph."""
    if laplacian == "normalized":
        return Eigenproblem(normalised(A, degrees), degrees, 1.0)
    largest = float(degrees.max())
    S = sp.csr_array(A / largest + sp.diags_array(1.0 - degrees / largest))
    return Eigenproblem(S, np.ones(len(degrees)), largest)


def smallest_pairs(
    S: sp.csr_array,
    null_squares: Array,
    d: int,
    random: np.random.RandomState,
    work: Work,
) -> tuple[Array, AnyArray, Array]:
    """Return the `d` smallest eigenvalues above 0 of ``I - S``, their vectors and residuals.

    The graph is connected; the root of `null_squares` (n,) has the eigenvalue 0.
    """
    # The known eigenvector of eigenvalue 0 is moved out of the way first; eigenvalues close to 0
    # cannot be taken for it. If the d-th eigenvalue equals the next, none of these equal ones is
    # returned, as any choice among them would be arbitrary, unless nothing else is left.
    n = S.shape[0]
    trivial = np.sqrt(null_squares / null_squares.sum())
    if n > ARPACK_ROWS and d < n // 3:
        return _filtered(S, trivial, d, random, work)
    more = min(d + 1, n - 1)
    # ARPACK's own vectors are too thin for several threads.
    with few_threads(n if n <= DENSE_ROWS else 0):
        if n <= DENSE_ROWS or d >= n // 3:
            values, vectors = _dense(S, trivial, more)
        else:
            values, vectors = _arpack(S, trivial, more, random)
        residuals = _residuals(S, values, vectors)
    keep = device_graph.whole_ties(values, d)
    return values[:keep], np.ascontiguousarray(vectors[:, :keep]), residuals[:keep]


def _arpack(
    S: sp.csr_array, trivial: Array, d: int, random: np.random.RandomState
) -> tuple[Array, Array]:
    """Return the pairs by ARPACK, with ever larger Krylov spaces; by inversion if all fail."""
    start = random.standard_normal(len(trivial))
    moved = LinearOperator(
        S.shape,
        matvec=lambda x: S @ x - 3.0 * trivial * (trivial @ x),
        dtype=np.float64,
    )
    for factor in (2, 4):
        try:
            options = {
                "which": "LA",
                "ncv": min(factor * d + 20, len(trivial) - 1),
                "tol": GOOD / 10,
                **SEED,
            }
            largest, vectors = eigsh(moved, d, v0=start, maxiter=MOST_RESTARTS, **options)
        except ArpackError:
            continue
        order = np.argsort(-largest)
        largest = largest[order]
        vectors = vectors[:, order]
        if np.linalg.norm(S @ vectors - vectors * largest, axis=0).max() <= GOOD:
            return 1.0 - largest, vectors
    return _inverted(S, trivial, d, start)


def _inverted(
    S: sp.csr_array,
    trivial: Array,
    d: int,
    start: Array,
) -> tuple[Array, Array]:
    """Return the pairs by ARPACK on the inverse: for graphs like a curve or a thin sheet."""
    # Their eigenvalues are so close to 0 that products with S do not tell them apart, and their
    # factors stay sparse. Where ARPACK gives up, as among dozens of eigenvalues that are 0 but for
    # rounding, a block is iterated instead.
    laplacian = sp.csc_array(sp.eye_array(len(trivial)) - S)
    try:
        options = {"which": "LM", "sigma": -SHIFT, "tol": 1e-12, **SEED}
        vectors = eigsh(laplacian, d + 1, v0=start, maxiter=INVERSE_RESTARTS, **options)[1]
    except (RuntimeError, MemoryError) as error:  # ARPACK's own errors are among these
        _log.info("%s: trying again.", error)
        return _inverted_block(S, laplacian, trivial, d)
    vectors = vectors - np.outer(trivial, trivial @ vectors)
    # The direction that was the trivial one is last.
    vectors = svd(vectors, full_matrices=False)[0][:, :d]
    values, turn = eigh(vectors.T @ (vectors - S @ vectors))
    vectors = vectors @ turn
    if _residuals(S, values, vectors).max() > GOOD:
        return _inverted_block(S, laplacian, trivial, d)
    return values, vectors


def _residuals(S: sp.csr_array, values: Array, vectors: Array) -> Array:
    """Return the norm of ``L v - value v`` for every column v."""
    return np.linalg.norm(vectors - S @ vectors - vectors * values, axis=0)


def _inverted_block(
    S: sp.csr_array, laplacian: sp.csc_array, trivial: Array, d: int
) -> tuple[Array, Array]:
    """Return the pairs by iterating a block with the inverse.

    If that fails, by a dense matrix, or fewer of them.
    """
    n = len(trivial)
    n_good = 0
    block = np.random.default_rng(0).standard_normal((n, min(d + EXTRA, n - 1)))
    values = np.empty(0)
    try:
        solve = splu(laplacian + SHIFT * sp.eye_array(n, format="csc")).solve
        for _ in range(MOST_BLOCK_STEPS):
            block = solve(block - np.outer(trivial, trivial @ block))
            block = qr(block - np.outer(trivial, trivial @ block), mode="economic")[0]
            values, turn = eigh(block.T @ (block - S @ block))
            block = block @ turn
            poor = _residuals(S, values, block)[:d] > GOOD
            if poor.any():
                n_good = int(poor.argmax())
            else:
                n_good = d
            if n_good == d:
                return values[:d], block[:, :d]
    except (RuntimeError, MemoryError) as error:
        _log.info("%s: trying again.", error)
    if n <= MOST_DENSE_ROWS:
        return _dense(S, trivial, d)
    if n_good == 0:
        raise ArithmeticError(
            f"The {d} smallest eigenvectors of a graph of {n} rows were not found: ask for fewer "
            "n_components, or give more neighbours."
        )
    warnings.warn(
        f"Of the {d} smallest eigenvectors of a graph of {n} rows only {n_good} were found: give "
        "more neighbours for the others.",
        stacklevel=2,
    )
    return values[:n_good], block[:, :n_good]


def _dense(S: sp.csr_array, trivial: Array, d: int) -> tuple[Array, Array]:
    """Return the pairs of a dense matrix."""
    laplacian = np.eye(len(trivial)) - S.toarray() + 3.0 * np.outer(trivial, trivial)
    return eigh(laplacian, subset_by_index=[0, d - 1])


def _filtered(
    S: sp.csr_array,
    trivial: Array,
    d: int,
    random: np.random.RandomState,
    work: Work,
) -> tuple[Array, AnyArray, Array]:
    """Return the pairs by Chebyshev filtering, then with a larger block, then by inversion."""
    order = reverse_cuthill_mckee(sp.csr_matrix(S), symmetric_mode=True)
    ordered = S[order][:, order]
    known = trivial[order].astype(np.float32)
    back = np.argsort(order)
    tol = device_graph.TOLERANCE
    if len(order) > device_graph.LARGE:
        tol = device_graph.LARGE_TOLERANCE
    for extra in (EXTRA, 3 * EXTRA):
        draw = np.random.default_rng(random.randint(2**31 - 1))
        block = draw.random((len(order), d + extra), dtype=np.float32)
        block -= np.float32(0.5)
        try:
            values, vectors, residuals = leading_pairs(ordered, block, d, tol, known, work)
            return 1.0 - values, np.ascontiguousarray(vectors[back]), residuals
        except (TooFineError, NotConvergedError, np.linalg.LinAlgError) as error:
            _log.info("%s: trying again.", error)
            if isinstance(error, TooFineError):
                break
    with few_threads(0):  # the same answer on any number of cores
        values, vectors = _inverted(S, trivial, d, random.standard_normal(len(order)))
        return values, vectors, _residuals(S, values, vectors)


def merge_parts(parts: list[ComponentPairs], components: AnyArray, degrees: Array) -> Spectrum:
    """Return the pairs of all components as one spectrum."""
    values = np.concatenate([np.empty(0), *(part.values for part in parts)])
    residuals = np.concatenate([np.empty(0), *(part.residuals for part in parts)])
    no_rows = np.empty(0, dtype=int)
    owners = [no_rows]
    columns = [no_rows]
    for part in parts:
        n_values = len(part.values)
        owners.append(np.full(n_values, part.component))
        columns.append(np.arange(n_values))
    order = np.argsort(values, kind="stable")
    return Spectrum(
        vectors=_merge_vectors(parts, len(components)),
        values=values[order],
        components=components,
        degrees=degrees,
        residuals=residuals[order],
        owners=np.concatenate(owners)[order],
        columns=np.concatenate(columns)[order],
    )


def _merge_vectors(parts: list[ComponentPairs], n: int) -> AnyArray:
    """Return the vectors of all components one below the other, each in its rows of `n`."""
    if len(parts) == 1 and len(parts[0].rows) == n:
        return parts[0].vectors
    width = max((part.vectors.shape[1] for part in parts), default=0)
    kind = np.result_type(*[part.vectors for part in parts], np.float32)
    vectors = np.zeros((n, width), dtype=kind)
    for part in parts:
        vectors[part.rows, : part.vectors.shape[1]] = part.vectors
    return vectors


# ------------------------------------------------------- Chebyshev filtering in single precision

# A polynomial that is small on the unwanted part of the spectrum and grows fast above it is applied
# to a block of vectors; what comes out is turned into the best eigenpairs that lie in its span
# (Rayleigh-Ritz), and the polynomial is made anew from these. Columns are filtered some at a time,
# so that what one thread works on stays small.
PANEL = 128  # columns filtered together at most
CHUNK = 8192  # rows of a block multiplied at a time
# The first filter, with its cut as a share of the spectrum's length, where a rough spectrum is
# asked for: it is wide, since one that is narrow takes a higher degree to tell anything.
ROUGH_DEGREE = 16
ROUGH_CUT = 0.6
DEPENDENT = 1e-12  # the least eigenvalue of ``block' block`` at which columns count as dependent


class TooFineError(ArithmeticError):
    """Single precision does not tell the eigenvalues from 0: a larger block would not help."""


@njit(
    cache=True,
    nogil=True,
    fastmath={"nnan", "nsz", "arcp", "contract", "reassoc"},
    error_model="numpy",
)
def chebyshev_step(
    matrix: Any,
    now: Any,
    past: Any,
    scale: Any,
    shift: Any,
) -> None:
    """Write ``scale * (S @ now - shift * now) - past`` (n, width) to `past`."""
    indptr, indices, data = matrix
    for i in range(len(indptr) - 1):
        own_value = now[i]
        out = past[i]
        for j in range(len(out)):
            out[j] = -scale * shift * own_value[j] - out[j]
        entry = indptr[i]
        end = indptr[i + 1]
        while entry + 6 <= end:  # six entries at once: the row is read and written once for them
            v0 = scale * data[entry]
            x0 = now[indices[entry]]
            v1 = scale * data[entry + 1]
            x1 = now[indices[entry + 1]]
            v2 = scale * data[entry + 2]
            x2 = now[indices[entry + 2]]
            v3 = scale * data[entry + 3]
            x3 = now[indices[entry + 3]]
            v4 = scale * data[entry + 4]
            x4 = now[indices[entry + 4]]
            v5 = scale * data[entry + 5]
            x5 = now[indices[entry + 5]]
            for j in range(len(out)):
                out[j] += (
                    v0 * x0[j] + v1 * x1[j] + v2 * x2[j] + v3 * x3[j] + v4 * x4[j] + v5 * x5[j]
                )
            entry += 6
        while entry + 2 <= end:
            v0 = scale * data[entry]
            x0 = now[indices[entry]]
            v1 = scale * data[entry + 1]
            x1 = now[indices[entry + 1]]
            for j in range(len(out)):
                out[j] += v0 * x0[j] + v1 * x1[j]
            entry += 2
        if entry < end:
            v0 = scale * data[entry]
            x0 = now[indices[entry]]
            for j in range(len(out)):
                out[j] += v0 * x0[j]


class Filter:
    """Products and polynomials of a sparse symmetric S (n, n) with its spectrum in [-1, 1]."""

    def __init__(self, S: Any, n_jobs: int | None = None) -> None:
        self.n = S.shape[0]
        kind = np.uint32 if S.nnz < 2**32 else np.uint64
        starts = S.indptr.astype(kind)
        columns = S.indices.astype(kind)
        weights = S.data.astype(np.float32)
        self._matrix = (starts, columns, weights)
        self.rows = sp.csr_array((self._matrix[2], S.indices, S.indptr), shape=S.shape)
        self._threads = n_threads(n_jobs)
        self.chunks = [slice(start, start + CHUNK) for start in range(0, self.n, CHUNK)]

    def product(self, block: AnyArray) -> AnyArray:
        """Return ``S @ block``."""
        out = np.empty_like(block)
        self._over_panels(
            block,
            out,
            lambda panel: self._step(panel, np.zeros_like(panel), 1.0, 0.0),
        )
        return out

    def apply(
        self,
        block: AnyArray,
        degree: int,
        lower: float,
        cut: float,
    ) -> None:
        """Multiply the block by the Chebyshev polynomial of S of this degree on [lower, cut]."""
        centre = 0.5 * (cut + lower)
        half = 0.5 * (cut - lower)

        def recur(now: AnyArray) -> AnyArray:
            past, now = now, self._step(now, np.zeros_like(now), 1.0 / half, centre)
            for _ in range(degree - 1):
                past, now = now, self._step(now, past, 2.0 / half, centre)
            return now

        self._over_panels(block, block, recur)

    def _step(
        self,
        now: AnyArray,
        past: AnyArray,
        scale: float,
        shift: float,
    ) -> AnyArray:
        """Return the next term of the recurrence, in the place of `past`."""
        chebyshev_step(self._matrix, now, past, np.float32(scale), np.float32(shift))
        return past

    def _over_panels(
        self, block: AnyArray, out: AnyArray, function: Callable[[AnyArray], AnyArray]
    ) -> None:
        """Write `function` of every panel of columns to `out`."""
        width = block.shape[1]
        # Narrow panels are slow.
        n_panels = max(-(-width // PANEL), min(width // 16, self._threads), 1)
        bounds = np.linspace(0, width, n_panels + 1).astype(int)

        def one(start: int, stop: int) -> None:
            out[:, start:stop] = function(np.ascontiguousarray(block[:, start:stop]))

        list(self.run([partial(one, start, stop) for start, stop in pairwise(bounds)]))

    def run(self, jobs: Sequence[Callable[[], Any]]) -> Iterator[Any]:
        """Call functions in threads, and yield what they return in their order."""
        if min(self._threads, len(jobs)) == 1:
            return (job() for job in jobs)
        parallel = Parallel(n_jobs=self._threads, prefer="threads", return_as="generator")
        return iter(parallel(delayed(job)() for job in jobs))

    def sum_over_chunks(self, function: Callable[[slice], Array]) -> Array:
        """Return the sum of a function over chunks of all rows, added in their order."""
        return reduce(np.add, self.run([partial(function, rows) for rows in self.chunks]))


def grams(matrix: Filter, block: AnyArray, image: AnyArray) -> tuple[Array, Array]:
    """Return ``block' image`` and ``block' block`` of tall blocks, in double precision."""

    def one(rows: slice) -> Array:
        left = block[rows].astype(float)
        return np.stack([left.T @ image[rows].astype(float), left.T @ left])

    mixed, with_itself = matrix.sum_over_chunks(one)
    return 0.5 * (mixed + mixed.T), 0.5 * (with_itself + with_itself.T)


def rotate(
    matrix: Filter,
    block: AnyArray,
    image: AnyArray,
    turn: Array,
    values: Array,
) -> Array:
    """Multiply the block by `turn` in place; return norms of ``image @ turn - block * values``."""
    turn = turn.astype(block.dtype)
    values = values.astype(block.dtype)
    k = len(values)

    def one(rows: slice) -> Array:
        block[rows] = block[rows] @ turn
        rest = image[rows] @ turn[:, :k]
        rest -= block[rows, :k] * values
        return np.einsum("ij,ij->j", rest, rest).astype(float)

    return np.sqrt(matrix.sum_over_chunks(one))


def rayleigh_ritz(matrix: Filter, block: AnyArray, k: int) -> tuple[Array, AnyArray, Array]:
    """Return the eigenpairs of S in the span of a block (n, width), and `k` residual norms.

    Values are descending.
    """
    block /= np.linalg.norm(block, axis=0)
    image = matrix.product(block)
    mixed, with_itself = grams(matrix, block, image)
    if np.linalg.eigvalsh(with_itself)[0] < DEPENDENT:
        block = qr(block, mode="economic", overwrite_a=True, check_finite=False)[0]
        image = matrix.product(block)
        mixed, with_itself = grams(matrix, block, image)
    values, turn = eigh(mixed, with_itself)
    values = values[::-1]
    turn = turn[:, ::-1]
    return values, block, rotate(matrix, block, image, turn, values[:k])


def project_out(matrix: Filter, block: AnyArray, vector: AnyArray) -> None:
    """Make the columns of a block orthogonal to a unit vector, in place."""
    sums = matrix.sum_over_chunks(lambda rows: vector[rows].astype(float) @ block[rows])
    sums = sums.astype(block.dtype)
    for rows in matrix.chunks:
        block[rows] -= np.outer(vector[rows], sums)


def leading_pairs(
    S: Any,
    block: AnyArray,
    k: int,
    tol: float,
    known: AnyArray,
    work: Work = QUIET,
) -> tuple[Array, AnyArray, Array]:
    """Return the `k` largest eigenvalues of S below 1, its first, with vectors and residuals."""
    # The block (n, width) is the first guess, which is used up; `known` (n,) is the vector of
    # eigenvalue 1.
    matrix = Filter(S, work.n_jobs)
    vector = np.random.RandomState(0).standard_normal(matrix.n).astype(np.float32)
    vector /= np.linalg.norm(vector)
    with few_threads(0):
        plan = FilterPlan.begin(matrix.rows.__matmul__, vector, block.shape[1])
        first = 0.0
        if work.tolerance is not None:
            cut = plan.lower + ROUGH_CUT * (1.0 - plan.lower)
            plan = replace(plan, cut=cut, degree=ROUGH_DEGREE, likely=plan.lower)
        for _cycle in range(MOST_CYCLES):
            matrix.apply(block, plan.degree, plan.lower, plan.cut)
            project_out(matrix, block, known)
            values, block, residuals = rayleigh_ritz(matrix, block, k)
            project_out(matrix, block, known)
            worst = float(residuals.max())
            last = 1.0 - float(values[k - 1])
            if work.tolerance is None:
                limit = min(tol, 0.01 * last)
            else:
                limit = work.tolerance * last
            if worst <= limit:
                return values[:k], np.ascontiguousarray(block[:, :k]), residuals
            if limit < FINEST:
                raise TooFineError(
                    f"the eigenvalues are too close to 0 for single precision ({limit:.0e})"
                )
            first = max(first, np.log(worst / limit))
            work.report(1.0 - np.log(worst / limit) / first)
            plan.go_on(values, k, worst, limit)
        raise NotConvergedError(
            f"the largest residual is {worst:.1e} instead of {limit:.1e} after {MOST_CYCLES} cycles"
        )
