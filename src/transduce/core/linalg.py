"""Guarded Cholesky factors, and ridge regression bordered by one more row.

Notation (shapes in ``docs/notation.md``): ``l`` labelled rows, ``m`` unlabelled rows, ``K`` a kernel
matrix, ``G = (K + ridge I)^-1`` on the labelled rows. Bordering the labelled rows with one unlabelled
row whose kernel column is ``k`` gives the inverse::

    H = [[G + g g' / s,  -g / s],       g = G k                     "weights"
         [   -g' / s  ,   1 / s]]       s = k(x, x) + ridge - k'G k  "pivot"

``g`` are the weights of the labels in the prediction at the unlabelled row (``g'y``), and ``ridge H z``
are the residuals of ridge regression on a completed label vector ``z``. With an unpenalised
intercept the same picture holds with ``G - u u' / (1'u)`` for ``G`` (``u = G 1``) and weights and pivot
changed to match: it is the bordered inverse ``H`` minus its own rank-one term ``h h' / (1'h)``, ``h = H 1``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
from joblib import effective_n_jobs
from scipy.linalg import lapack
from threadpoolctl import ThreadpoolController

from transduce.core import arrays, inverses
from transduce.core.types import Array

EPSILON = float(np.finfo(float).eps)
SMALL = 1000  # rows of a matrix on which a second thread does not pay

IMPROPER = (
    "The kernel matrix plus ridge={:g} is not positive definite: the kernel is not valid for "
    "these rows. Use another kernel, or a larger ridge."
)


@cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def few_threads(n: int, most: int = SMALL) -> Iterator[None]:
    """Keep BLAS to one thread while n, such as the rows of matrices, is at most `most`.

    numpy and scipy bring a BLAS each. Their idle threads spin, so that small products of one wait for the other's:
    milliseconds where the work takes microseconds. Beside other programs on the same cores it is several times worse.
    """
    if n > most:
        yield
    else:
        with _thread_pools().limit(limits=1, user_api="blas"):
            yield


def n_threads(n_jobs: int | None) -> int:
    """Return how many threads to use: as many as matrix products do if `n_jobs` is None, else as joblib says."""
    if n_jobs is not None:
        return int(effective_n_jobs(n_jobs))
    return max(
        (pool["num_threads"] for pool in _thread_pools().info() if pool["user_api"] == "blas"), default=1
    )


def guarded_cholesky(A: Array) -> tuple[Array, float]:
    """Return the lower Cholesky factor of a symmetric matrix, and what had to be added to its diagonal.

    Shapes: A (n, n); returns factor (n, n).
    """
    n, foreign = A.shape[0], arrays.is_foreign(A)
    largest = float(np.max(arrays.to_numpy(arrays.diagonal(A)), initial=0.0))
    jitter, step = 0.0, max(n * EPSILON * largest, np.finfo(float).tiny)
    while True:
        try:
            if foreign:
                return arrays.cholesky(A if jitter == 0.0 else arrays.shifted(A, jitter)), jitter
            shifted = A if jitter == 0.0 else A + jitter * np.eye(n)
            return np.asarray(np.linalg.cholesky(shifted), dtype=float), jitter
        except np.linalg.LinAlgError:
            jitter = step if jitter == 0.0 else jitter * 100
            if not jitter <= 1e-6 * largest:
                raise np.linalg.LinAlgError(
                    "the matrix is not positive definite, by more than rounding can explain"
                ) from None


def inverse_diagonal(factor: Array) -> Array:
    """Return ``diag((L L')^-1)`` from the lower Cholesky factor ``L``. Shapes: factor (n, n); returns (n,)."""
    if arrays.is_foreign(factor):
        return arrays.namespace(factor).sum(inverses.triangular_inverse(factor) ** 2, axis=0)
    inverse, info = lapack.dtrtri(factor, lower=1)
    if info:
        raise np.linalg.LinAlgError("a triangular factor with a zero on its diagonal has no inverse")
    return np.einsum("ij,ij->j", inverse, inverse)
