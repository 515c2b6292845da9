"""How many threads the numerics use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

SMALL = 1000  # rows of a matrix on which a second thread does not pay
ONE_THREAD_ROWS = 5000  # rows of a table on which every method is fitted in seconds by one thread

T = TypeVar("T")


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


def threads_here() -> dict[str, int]:
    """Return how many threads BLAS and OpenMP have in this process."""
    counts = {"blas": 1, "openmp": 1}
    for pool in ThreadpoolController().info():
        counts[pool["user_api"]] = max(counts[pool["user_api"]], pool["num_threads"])
    return counts


def threads_of_fit(n_rows: int) -> dict[str, int]:
    """Return how many threads a fit of so many rows has, in whatever process it runs.

    The last digits of sums depend on the number of threads, and joblib gives worker processes fewer of them. With this
    number in all processes the answer does not depend on `n_jobs`.
    """
    return {"blas": 1, "openmp": 1} if n_rows <= ONE_THREAD_ROWS else threads_here()


def call_with_threads(threads: dict[str, int], function: Callable[..., T], *args: Any) -> T:
    """Call a function with so many threads of BLAS and OpenMP."""
    with ThreadpoolController().limit(limits=threads):
        return function(*args)
