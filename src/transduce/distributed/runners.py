"""Running a function on many parts: on the cores of this machine, or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

Work = Callable[[Any, Any], Any]


class Runner(Protocol):
    """Runs a function on many items, and yields what it returns as soon as it is there, in any order.

    Examples
    --------
    >>> runner: Runner = LocalRunner(n_jobs=1)
    >>> sorted(runner.map(pow, 3, [0, 1]))
    [1, 3]
    """

    @property
    def n_here(self) -> int:
        """How many processes share the memory of this machine."""

    def map(self, work: Work, shared: Any, items: Sequence[Any]) -> Iterator[Any]:
        """Yield ``work(shared, item)`` for every item."""


@dataclass(frozen=True)
class LocalRunner:
    """The cores of this machine, through joblib.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Processes at the same time, in joblib's way; None is 1, without a process of its own.

    Examples
    --------
    >>> sorted(LocalRunner().map(pow, 2, [1, 2, 3]))
    [2, 4, 8]
    """

    n_jobs: int | None = None

    @property
    def n_here(self) -> int:
        """How many processes share the memory of this machine."""
        from joblib import effective_n_jobs

        return int(effective_n_jobs(self.n_jobs or 1))

    def map(self, work: Work, shared: Any, items: Sequence[Any]) -> Iterator[Any]:
        """Yield ``work(shared, item)`` for every item, as soon as it is there."""
        from joblib import Parallel, delayed

        jobs = (delayed(work)(shared, item) for item in items)
        yield from Parallel(n_jobs=self.n_jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs")(
            jobs
        )


@dataclass(frozen=True)
class DaskRunner:
    """The workers of a Dask cluster; one that dies costs the time of its parts, which others do again."""

    client: Any

    @property
    def n_here(self) -> int:
        """How many processes share the memory of this machine: the workers of a local cluster, else 1."""
        from distributed import LocalCluster

        if not isinstance(self.client.cluster, LocalCluster):
            return 1
        return max(1, len(self.client.nthreads()))

    def map(self, work: Work, shared: Any, items: Sequence[Any]) -> Iterator[Any]:
        """Yield ``work(shared, item)`` for every item, as soon as it is there; `shared` travels once."""
        from distributed import as_completed

        sent = self.client.submit(_same, shared, pure=False)  # made again if the worker that holds it dies
        futures = [self.client.submit(work, sent, item, pure=False) for item in items]
        try:
            for future in as_completed(futures):
                yield future.result()
                future.release()
        finally:
            self.client.cancel(futures)


def _same(shared: Any) -> Any:
    return shared


@contextmanager
def cluster_runner(address: str, *, n_workers: int | None = None) -> Iterator[DaskRunner]:
    """Connect to a Dask cluster, or start one on this machine.

    Parameters
    ----------
    address : str
        ``"local"`` starts a cluster of worker processes here, which ends with the block; otherwise the address of a
        scheduler, such as ``tcp://scheduler:8786``.
    n_workers : int, optional
        Workers of a local cluster; one for each core by default.

    Yields
    ------
    DaskRunner

    Examples
    --------
    >>> from transduce.filling import fill_folder
    >>> with cluster_runner("local", n_workers=2) as runner:  # doctest: +SKIP
    ...     fill_folder("data/*.parquet", "price", "filled", runner=runner)
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise ValueError("A cluster needs Dask: pip install 'transduce[dask]'.") from error
    if address == "local":
        with (
            LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster) as client,
        ):
            yield DaskRunner(client)
        return
    try:
        client = Client(address, timeout="10s")
    except (OSError, TimeoutError, ValueError) as error:
        raise ConnectionError(
            f"No Dask scheduler answers at {address}: check the address and that it runs."
        ) from error
    with client:
        yield DaskRunner(client)
