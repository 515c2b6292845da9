"""How many threads the numerics use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

SMALL = 1000  # rows of a matrix on which a second thread does not pay


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
