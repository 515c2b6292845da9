"""The spectrum of a graph: connected components, and the smallest eigenvectors of the normalised Laplacian.

With degrees ``B`` the normalised Laplacian is ``L = I - S``, ``S = B^-1/2 A B^-1/2``. Every connected component has one
eigenvector of eigenvalue 0, ``B^1/2 1`` on its rows, which is known without solving; the others are found component by
component, so that none can be missed or mixed with those of another.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from transduce._typing import AnyArray, Array
from transduce.chebyshev import NotConvergedError, leading_pairs
from transduce.linalg import few_threads
from transduce.progress import stage

DENSE_ROWS = 800  # components up to this size are solved as dense matrices
ARPACK_ROWS = 20_000  # up to this size by ARPACK in double precision, beyond by Chebyshev filtering in single
EXTRA = 31  # more columns than wanted vectors in the filtered block
TOLERANCE = 1e-4  # residual norms of the filtered block
LARGE, LARGE_TOLERANCE = 500_000, 1e-3
GOOD = 1e-8  # residual norms asked of ARPACK


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvectors of a graph's normalised Laplacian, with all that a labelling needs.

    Parameters
    ----------
    vectors : array of shape (n, d)
        Eigenvectors of the smallest eigenvalues above 0, over all components, of norm 1; each is 0 outside one
        component. For a connected graph they are the eigenvectors 2 to d + 1. The eigenvectors of eigenvalue 0 are
        known from `components` and `degrees`, see `null_vectors`.
    values : array of shape (d,)
        Their eigenvalues, ascending.
    components : integer array of shape (n,)
        Connected component of each row, numbered from 0.
    degrees : array of shape (n,)
        Sum of the weights at each row.
    residuals : array of shape (d,)
        Norm of ``L v - value v`` for every vector.
    owners : integer array of shape (d,)
        The component each vector belongs to.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import graph_spectrum
    >>> path = np.diag(np.ones(2), 1) + np.diag(np.ones(2), -1)  # three rows in a line
    >>> spectrum = graph_spectrum(path)
    >>> spectrum.values
    array([1., 2.])
    >>> spectrum.components
    array([0, 0, 0], dtype=int32)
    """

    vectors: Array
    values: Array
    components: AnyArray
    degrees: Array
    residuals: Array
    owners: AnyArray

    @property
    def count(self) -> int:
        """Number of connected components."""
        return int(self.components.max()) + 1 if len(self.components) else 0

    def null_vectors(self) -> Any:
        """Return the eigenvectors of eigenvalue 0, one for each component, as a sparse array of shape (n, count).

        Examples
        --------
        >>> import numpy as np
        >>> from transduce import graph_spectrum
        >>> two = np.kron(np.eye(2), np.array([[0.0, 1.0], [1.0, 0.0]]))
        >>> graph_spectrum(two).null_vectors().toarray().round(2)
        array([[0.71, 0.  ],
               [0.71, 0.  ],
               [0.  , 0.71],
               [0.  , 0.71]])
        """
        n = len(self.components)
        size = np.bincount(self.components, weights=self.degrees, minlength=self.count)
        entries = np.sqrt(self.degrees / np.where(size > 0.0, size, 1.0)[self.components])
        alone = (size == 0.0)[self.components]
        entries[alone] = 1.0
        return sp.csr_array((entries, self.components, np.arange(n + 1)), shape=(n, self.count))

    def save(self, path: str | Path) -> None:
        """Write the spectrum to a file of plain arrays (npz)."""
        with open(path, "wb") as file:
            np.savez(file, **{item.name: getattr(self, item.name) for item in fields(self)})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a spectrum that `save` wrote; nothing in the file is executed.

        Examples
        --------
        >>> import numpy as np, pathlib, tempfile
        >>> from transduce import Spectrum, graph_spectrum
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "spectrum.npz"
        ...     graph_spectrum(np.ones((3, 3)) - np.eye(3)).save(path)
        ...     Spectrum.load(path).values
        array([1.5, 1.5])
        """
        with np.load(path, allow_pickle=False) as file:
            return cls(*(file[item.name] for item in fields(cls)))


def graph_spectrum(
    A: Any, *, n_components: int = 80, random_state: Any = None, n_jobs: int | None = None
) -> Spectrum:
    """Return the smallest eigenvectors of a graph's normalised Laplacian.

    Parameters
    ----------
    A : sparse or dense array of shape (n, n)
        Symmetric weights, none negative; the diagonal counts as 0.
    n_components : int, default=80
        Eigenvectors with eigenvalue above 0; a small graph may have fewer.
    random_state : int, RandomState or None, default=None
        Seed of the first guesses; it changes the vectors within their residuals only.
    n_jobs : int or None, default=None
        Threads for large components; None for as many as matrix products use.

    Returns
    -------
    Spectrum

    See Also
    --------
    neighbor_graph : Graphs from features.
    SpectralGraphTransducer : Labels from a spectrum.

    Notes
    -----
    Components of up to 800 rows are solved as dense matrices, of up to 20,000 by ARPACK in double precision (residuals
    below 1e-8), larger ones by Chebyshev-filtered block iteration in single precision on the matrix in reverse
    Cuthill-McKee order (residuals below 1e-4, above 500,000 rows below 1e-3). The residual of every pair is checked:
    one that has not converged is tried again with a larger block, and then is an error.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import graph_spectrum
    >>> graph_spectrum(np.ones((4, 4))).values.round(2)  # all tied to all: 4 / 3, three times
    array([1.33, 1.33, 1.33])
    """
    A = check_graph(A)
    if isinstance(n_components, bool) or not isinstance(n_components, int | np.integer) or n_components < 1:
        raise ValueError(f"n_components must be a whole number from 1; got {n_components!r}.")
    n = A.shape[0]
    degrees = np.asarray(A.sum(axis=1)).ravel()
    count, components = connected_components(A, directed=False)
    rows_of = np.split(np.argsort(components, kind="stable"), np.cumsum(np.bincount(components))[:-1])
    parts = []
    with stage("spectrum") as report:
        for component, rows in enumerate(rows_of):
            d = min(int(n_components), len(rows) - 1)
            if d > 0:
                part = normalised(A if count == 1 else A[rows][:, rows], degrees[rows])
                within = _within(report, rows_of, component)
                solved = smallest_pairs(part, degrees[rows], d, random_state, n_jobs, within)
                parts.append((component, rows, *solved))
    return merge_parts(parts, n, components, degrees, n_components)


def _within(
    report: Callable[[float], None], rows_of: list[AnyArray], component: int
) -> Callable[[float], None]:
    """Return what turns the share done of one component into that of the whole."""
    sizes = np.array([len(rows) for rows in rows_of])
    before, own, total = sizes[:component].sum(), sizes[component], sizes.sum()
    return lambda share: report((before + share * own) / total)


def check_graph(A: Any) -> sp.csr_array:
    """Return an adjacency matrix in compressed sparse rows and double precision, its diagonal 0."""
    try:
        A = sp.csr_array(A, dtype=np.float64, copy=True)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"A graph is a square matrix of weights, dense or sparse; got {type(A).__name__}."
        ) from error
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.shape[0] == 0:
        raise ValueError(
            f"A graph is a square matrix, one row and one column for each row; got shape {A.shape}."
        )
    if not np.isfinite(A.data).all():
        raise ValueError("Input X contains NaN or infinity: the weights of a graph must be finite.")
    if np.any(A.data < 0.0):
        raise ValueError(
            "The graph has negative weights: a weight says how similar two rows are, 0 for not at all."
        )
    A.sum_duplicates()
    A.setdiag(0.0)
    A.eliminate_zeros()
    largest = float(A.data.max()) if A.nnz else 1.0
    if abs(A - A.T).max() > 1e-8 * largest:
        raise ValueError("The graph must be symmetric: give A + A.T if its edges have a direction.")
    A.data /= largest
    return A


def normalised(A: Any, degrees: Array) -> sp.csr_array:
    """Return ``B^-1/2 A B^-1/2``."""
    scale = 1.0 / np.sqrt(degrees)
    data = A.data * np.repeat(scale, np.diff(A.indptr)) * scale[A.indices]
    return sp.csr_array((data, A.indices, A.indptr), shape=A.shape)


def smallest_pairs(
    S: sp.csr_array,
    degrees: Array,
    d: int,
    random_state: Any,
    n_jobs: int | None,
    report: Callable[[float], None],
) -> tuple[Array, Array, Array]:
    """Return the `d` smallest eigenvalues above 0 of ``I - S`` for a connected graph, their vectors and residuals."""
    n = S.shape[0]
    trivial = np.sqrt(degrees / degrees.sum())
    seed = random_state if isinstance(random_state, int | np.integer) else None
    random = random_state if isinstance(random_state, np.random.RandomState) else np.random.RandomState(seed)
    if n > ARPACK_ROWS and d < n // 3:
        return _filtered(S, trivial, d, random, n_jobs, report)
    with few_threads(n if n <= DENSE_ROWS else 0):  # ARPACK's own vectors are too thin for several threads
        if n <= DENSE_ROWS or d >= n // 3:
            values, vectors = eigh(np.eye(n) - S.toarray(), subset_by_index=[1, d])
        else:
            values, vectors = _arpack(S, trivial, d, random)
        return values, vectors, np.linalg.norm(vectors - S @ vectors - vectors * values, axis=0)


def _arpack(S: sp.csr_array, trivial: Array, d: int, random: np.random.RandomState) -> tuple[Array, Array]:
    """Return the pairs by ARPACK, with ever larger Krylov spaces until all are there."""
    start = random.standard_normal(len(trivial))
    for factor in (2, 4, 8):
        try:
            found, vectors = eigsh(
                S, d + 1, which="LA", v0=start, ncv=min(factor * (d + 1) + 20, len(trivial)), tol=GOOD / 10
            )
        except ArpackNoConvergence:
            continue
        order = np.argsort(-found)
        found, vectors = found[order], vectors[:, order]
        if np.linalg.norm(S @ vectors - vectors * found, axis=0).max() <= GOOD:
            return 1.0 - found[1:], vectors[:, 1:]
    raise ArithmeticError(
        f"The {d} smallest eigenvectors of a graph of {len(trivial)} rows were not found: ask for fewer n_components, "
        "or give more neighbours."
    )


def _filtered(
    S: sp.csr_array,
    trivial: Array,
    d: int,
    random: np.random.RandomState,
    n_jobs: int | None,
    report: Callable[[float], None],
) -> tuple[Array, Array, Array]:
    """Return the pairs by Chebyshev filtering; a block too small to converge is tried again, twice as large."""
    order = reverse_cuthill_mckee(sp.csr_matrix(S), symmetric_mode=True)
    S = S[order][:, order]
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    tol = TOLERANCE if len(order) <= LARGE else LARGE_TOLERANCE
    for extra in (EXTRA, 3 * EXTRA):
        draw = np.random.default_rng(random.randint(2**31 - 1))
        block = draw.standard_normal((len(order), d + 1 + extra), dtype=np.float32)
        block[:, 0] = trivial[order]
        try:
            values, vectors, residuals = leading_pairs(S, block, d + 1, tol=tol, n_jobs=n_jobs, report=report)
        except NotConvergedError as error:
            warnings.warn(f"{error} Trying again with more columns.", RuntimeWarning, stacklevel=4)
            continue
        return 1.0 - values[1:], np.ascontiguousarray(vectors[back, 1:]), residuals[1:]
    raise ArithmeticError(
        f"The {d} smallest eigenvectors of a graph of {len(order)} rows did not converge: ask for fewer n_components, "
        "or give more neighbours."
    )


def merge_parts(parts: list[Any], n: int, components: AnyArray, degrees: Array, d: int) -> Spectrum:
    """Return the `d` smallest pairs of all components as one spectrum."""
    values = np.concatenate([part[2] for part in parts] or [np.empty(0)])
    owners = np.concatenate([np.full(len(part[2]), part[0]) for part in parts] or [np.empty(0, dtype=int)])
    residuals = np.concatenate([part[4] for part in parts] or [np.empty(0)])
    keep = np.argsort(values, kind="stable")[:d]
    place = np.full(len(values), -1)
    place[keep] = np.arange(len(keep))
    if len(parts) == 1 and len(parts[0][1]) == n:
        return Spectrum(parts[0][3], values, components, degrees, residuals, owners)
    dtype = parts[0][3].dtype if parts else np.float64
    vectors = np.zeros((n, len(keep)), dtype=max([part[3].dtype for part in parts], default=dtype))
    offset = 0
    for _, rows, found, block, _ in parts:
        column = place[offset : offset + len(found)]
        vectors[np.ix_(rows, column[column >= 0])] = block[:, column >= 0]
        offset += len(found)
    return Spectrum(vectors, values[keep], components, degrees, residuals[keep], owners[keep])
