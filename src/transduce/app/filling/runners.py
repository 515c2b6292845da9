"""What works on the parts of a table: processes of this machine, or a Dask cluster."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from transduce.core import checks
from transduce.core.computing import call_each, n_threads, threads_here

Work = Callable[[Any, Any], Any]
LONGEST_WAIT = 86_400.0  # seconds for a scheduler to answer: a day


@dataclass(frozen=True)
class LocalRunner:
    """The cores of this machine, through joblib.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Processes at the same time, as joblib counts them, started only if they save time; None is
        1.

    Examples
    --------
    >>> sorted(LocalRunner().map(pow, 2, [1, 2, 3]))
    [2, 4, 8]
    """

    n_jobs: int | None = None

    def __post_init__(self) -> None:
        checks.check_jobs(self.n_jobs)

    @property
    def n_here(self) -> int:
        """How many processes share the memory of this machine."""
        return n_threads(self.n_jobs or 1)

    def map(
        self,
        work: Work,
        shared: Any,
        items: Sequence[Any],
    ) -> Iterator[Any]:
        """Yield ``work(shared, item)`` for every item, in order; in other processes if they pay."""
        return call_each([(work, shared, item) for item in items], threads_here(), self.n_jobs or 1)


@dataclass(frozen=True)
class DaskRunner:
    """The workers of a Dask cluster.

    One that dies costs the time of its parts, which others do again.
    """

    client: Any

    @property
    def n_here(self) -> int:
        """How many workers of the cluster share the memory of this machine."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return max(1, sum(_is_here(str(worker.get("host", ""))) for worker in workers))

    def map(
        self,
        work: Work,
        shared: Any,
        items: Sequence[Any],
    ) -> Iterator[Any]:
        """Yield ``work(shared, item)`` for every item, as soon as it is there.

        `shared` travels once.
        """
        from distributed import as_completed

        # Made again if the worker that holds it dies.
        sent = self.client.submit(lambda: shared, pure=False)
        futures = [self.client.submit(work, sent, item, pure=False) for item in items]
        try:
            for future in as_completed(futures):
                yield future.result()
                future.release()
        finally:
            self.client.cancel(futures)


def _is_here(host: str) -> bool:
    """Return whether a host is this machine."""
    from distributed.utils import get_ip

    names = {"localhost", "", "::1", socket.gethostname(), socket.getfqdn(), get_ip()}
    return host in names or host.startswith("127.")


Runner = LocalRunner | DaskRunner  # each with `n_here`, and with `map`


@contextmanager
def cluster_runner(
    address: str, *, n_workers: int | None = None, timeout: float = 10.0
) -> Iterator[DaskRunner]:
    """Connect to a Dask cluster, or start one on this machine.

    Parameters
    ----------
    address : str
        ``"local"`` starts a cluster of worker processes here, which ends with the block; otherwise
        the address of a scheduler, such as ``tcp://scheduler:8786``.
    n_workers : int, optional
        Workers of a local cluster; one for each core by default.
    timeout : float, default=10.0
        Seconds to wait for a scheduler to answer, and for its first worker.

    Yields
    ------
    DaskRunner
        For `fill_folder`.

    Examples
    --------
    >>> from transduce.app.filling import fill_folder
    >>> with cluster_runner("local", n_workers=2) as runner:  # doctest: +SKIP
    ...     fill_folder("data/*.parquet", "price", "filled", runner=runner)
    """
    checks.check_positive("timeout", timeout, most=LONGEST_WAIT)
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise ValueError("A cluster needs Dask: pip install dask distributed.") from error
    if address == "local":
        here = LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0")
        with here as cluster, Client(cluster) as client:
            yield DaskRunner(client)
        return
    try:
        client = Client(address, timeout=timeout)
    except (OSError, TimeoutError, ValueError) as error:
        refusal = f"No Dask scheduler answers at {address}: check the address and that it runs."
        raise ConnectionError(refusal) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=timeout)
        except TimeoutError as error:
            raise ConnectionError(
                f"The Dask scheduler at {address} has no workers: start some, then run this again."
            ) from error
        yield DaskRunner(client)
