"""The sources of rows, such as the partitions of a Dask frame, and where work on them is run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import pandas as pd


def is_dask(table: Any) -> bool:
    """Return whether this is a Dask frame.

    Examples
    --------
    >>> is_dask(pd.DataFrame())
    False
    """
    return type(table).__module__.startswith(("dask.", "dask_expr.")) and hasattr(table, "map_partitions")


@dataclass(frozen=True, eq=False)
class DaskParts:
    """A Dask frame, partition by partition.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> parts = DaskParts(dd.from_pandas(pd.DataFrame({"a": range(5)}), npartitions=2))
    >>> sum(parts.each(lambda number, frame: len(frame), range(parts.n_parts)))
    5
    """

    frame: Any

    @property
    def columns(self) -> list[Any]:
        """Names of the columns."""
        return list(self.frame.columns)

    def each(self, work: Callable[[Any, pd.DataFrame], Any], items: Sequence[Any]) -> list[Any]:
        """Return ``work(item, partition)`` for every partition and the item at its place, in order.

        Parameters
        ----------
        work : callable
        items : sequence
            As many as there are partitions; an item that is None spares its partition.

        Returns
        -------
        list
            None where the item is None.
        """
        from dask import compute, delayed

        wanted = [number for number, item in enumerate(items) if item is not None]
        partitions = self.frame.to_delayed()
        tasks = [delayed(work)(items[number], partitions[number]) for number in wanted]
        found: list[Any] = [None] * len(items)
        for number, result in zip(wanted, compute(*tasks), strict=True):
            found[number] = result
        return found

    @property
    def n_parts(self) -> int:
        """Number of partitions."""
        return int(self.frame.npartitions)

    def beside(
        self, work: Callable[[Any, Any, pd.DataFrame], pd.DataFrame], shared: Any, items: Sequence[Any]
    ) -> Any:
        """Return a lazy frame of ``work(shared, item, partition)`` for every partition and the item at its place.

        Parameters
        ----------
        work : callable
            Returns the partition with new columns; called with an empty one too, to learn their types.
        shared : object
            Travels once to every worker.
        items : sequence
            As many as there are partitions.

        Returns
        -------
        dask.dataframe.DataFrame
        """
        import dask.dataframe as dd
        from dask import delayed

        meta = work(shared, None, self.frame._meta)
        partitions = self.frame.to_delayed()
        sent = _sent(shared)
        tasks = [
            delayed(work)(sent, item, partition) for item, partition in zip(items, partitions, strict=True)
        ]
        return dd.from_delayed(tasks, meta=meta, divisions=self.frame.divisions, verify_meta=False)


def _sent(shared: Any) -> Any:
    """Return what stands for an object on the workers: sent to a running cluster now, else a part of the graph."""
    from dask import delayed

    try:
        from distributed import get_client

        return get_client().scatter(shared, broadcast=True, hash=False)
    except (ImportError, ValueError):  # there is no cluster
        return delayed(shared, pure=False)


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

        from transduce.core.computing import call_with_threads, threads_here

        threads = threads_here()  # in every process, as the last digits depend on it
        jobs = (delayed(call_with_threads)(threads, work, shared, item) for item in items)
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
