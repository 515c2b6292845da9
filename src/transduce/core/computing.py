"""Long computations: their progress, what several fits share, and how many threads they take."""

from __future__ import annotations

import gc
import hashlib
import logging
import sys
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from transduce.core.types import Rows

_log = logging.getLogger("transduce")


@dataclass(frozen=True)
class Forecast:
    """How long the work that begins now is expected to take."""

    seconds: float


Listener = Callable[[str, float], None]
ForecastListener = Callable[[Forecast], None]
_listener: ContextVar[Listener | None] = ContextVar("transduce_progress", default=None)
_forecast_listener: ContextVar[ForecastListener | None] = ContextVar(
    "transduce_forecast", default=None
)
T = TypeVar("T")


@contextmanager
def setting(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Give a variable a value while the block runs."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@contextmanager
def collection_paused() -> Iterator[None]:
    """Let no garbage be collected while the block makes very many small objects.

    Looking through them again and again takes a third of the time that a large text is read in.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def stage(name: str) -> Iterator[Callable[[float], None]]:
    """Open a stage of work, which is logged.

    The block gets a function to call with the share done, from 0 to 1.
    """
    report = partial(_tell, _listener.get(), name)
    began = time.perf_counter()
    _log.info("%s ...", name)
    report(0.0)
    try:
        yield report
    except BaseException:
        report(np.nan)
        raise
    report(1.0)
    _log.info("%s: done in %.1f s", name, time.perf_counter() - began)


def _tell(listener: Listener | None, name: str, share: float) -> None:
    if listener is not None:
        listener(name, min(max(share, 0.0), 1.0))  # NaN stays


def announce_forecast(seconds: float) -> None:
    """Tell whoever listens, and the log, how long the work that begins now will take."""
    _log.info("about %.0f s of work ahead", seconds)
    listener = _forecast_listener.get()
    if listener is not None:
        listener(Forecast(seconds))


def show_progress(
    listener: Listener | None = None, *, on_forecast: ForecastListener | None = None
) -> AbstractContextManager[None]:
    """Show how far the computations in this block are.

    Parameters
    ----------
    listener : callable, optional
        Called with the name of a stage and the share done, from 0 to 1, or NaN if it was
        interrupted; by default a line on standard error is kept up to date.
    on_forecast : callable, optional
        Called before a long fit with a `Forecast` of its ``seconds``.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import show_progress
    >>> from transduce.methods.spectral_graph import neighbor_graph
    >>> seen = []
    >>> with show_progress(lambda name, share: seen.append((name, share))):
    ...     graph = neighbor_graph(np.eye(4) + 1.0, n_neighbors=2)
    >>> seen[-1]
    ('neighbours', 1.0)
    """
    return _listening(listener or _Line(), on_forecast)


@contextmanager
def _listening(listener: Listener, on_forecast: ForecastListener | None) -> Iterator[None]:
    with setting(_listener, listener), setting(_forecast_listener, on_forecast):
        yield


class _Line:
    """One line of text for each stage, rewritten in place at most ten times a second."""

    _shown = 0.0

    def __call__(self, name: str, share: float) -> None:
        now = time.perf_counter()
        if np.isnan(share):
            print(f"\r{name}: broken off", file=sys.stderr, flush=True)
            return
        if 0.0 < share < 1.0 and now - self._shown < 0.1:
            return
        self._shown = now
        print(
            f"\r{name}: {share:4.0%}",
            end="\n" if share >= 1.0 else "",
            file=sys.stderr,
            flush=True,
        )


MOST_KEPT = 2  # results, the latest ones
_found: ContextVar[dict[Hashable, Any] | None] = ContextVar("transduce_reuse", default=None)


def reusing() -> AbstractContextManager[None]:
    """Keep in this block the last results of `once`, until the outermost such block ends."""
    if _found.get() is None:
        return setting(_found, {})
    return nullcontext()


def once(
    name: str,
    rows: Rows,
    settings: Hashable,
    compute: Callable[[], T],
) -> T:
    """Return what `compute` returns.

    In a block of `reusing` it is called once for the same rows (n, d) and settings.
    """
    kept = _found.get()
    if kept is None:
        return compute()
    key = (name, settings, _fingerprint(rows))
    if key in kept:
        result = kept.pop(key)
    else:
        result = compute()
    kept[key] = result
    while len(kept) > MOST_KEPT:
        del kept[next(iter(kept))]
    return result


def _fingerprint(rows: Rows) -> tuple[Any, ...]:
    """Return what only equal rows share."""
    pieces = [rows]
    if hasattr(rows, "indptr"):
        pieces = [rows.data, rows.indices, rows.indptr]
    seen = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        seen.update(np.ascontiguousarray(piece).data)
    return (rows.shape, str(rows.dtype), seen.digest())


SMALL = 1000  # rows of a matrix on which a second thread does not pay
PAYING = (
    5.0  # seconds that processes must save: a new one takes two or three to import what it needs
)
ONE_THREAD_ROWS = 5000  # rows of a table on which every method is fitted in seconds by one thread


@lru_cache(maxsize=1)
def _thread_pools(n_modules: int) -> ThreadpoolController:
    # Looking for libraries takes 50 ms; a new one comes with new modules.
    return ThreadpoolController()


# numpy and scipy bring a BLAS each. Their idle threads spin, so that small products of one wait for
# the other's: milliseconds where the work takes microseconds. Beside other programs on the same
# cores it is several times worse.
@contextmanager
def few_threads(n: int, most: int = SMALL) -> Iterator[None]:
    """Keep BLAS to one thread while n, such as the rows of matrices, is at most `most`."""
    if n > most:
        yield
    else:
        with _thread_pools(len(sys.modules)).limit(limits=1, user_api="blas"):
            yield


def n_threads(n_jobs: int | None) -> int:
    """Return how many threads to use.

    These are as many as matrix products use if `n_jobs` is None, else as joblib says.
    """
    if n_jobs is None:
        return threads_here()["blas"]
    from joblib import effective_n_jobs  # not for the help of the command line

    return int(effective_n_jobs(n_jobs))


def threads_here() -> dict[str, int]:
    """Return how many threads BLAS and OpenMP have in this process."""
    counts = {"blas": 1, "openmp": 1}
    for pool in _thread_pools(len(sys.modules)).info():
        counts[pool["user_api"]] = max(counts[pool["user_api"]], pool["num_threads"])
    return counts


def threads_of_fit(n_rows: int) -> dict[str, int]:
    """Return how many threads a fit of so many rows has, in whatever process it runs."""
    # The last digits of sums depend on the number of threads, of which joblib gives worker
    # processes fewer: with this number in all processes the answer does not depend on `n_jobs`.
    if n_rows <= ONE_THREAD_ROWS:
        return {"blas": 1, "openmp": 1}
    return threads_here()


def call_with_threads(threads: dict[str, int], function: Callable[..., T], *args: Any) -> T:
    """Call a function with so many threads of BLAS and OpenMP."""
    with _thread_pools(len(sys.modules)).limit(limits=threads):
        return function(*args)


def call_each(
    calls: Sequence[tuple[Any, ...]], threads: dict[str, int], n_jobs: int | None
) -> Iterator[Any]:
    """Yield ``function(*args)`` for every call, with so many threads.

    Processes do the work once they are seen to pay.
    """
    from joblib import effective_n_jobs  # not for the help of the command line
    from sklearn.utils.parallel import Parallel, delayed

    slowest = 0.0
    n_processes = effective_n_jobs(n_jobs)
    left = len(calls)
    # Rounds of calls beside each other are saved; of calls that are all one round nothing is seen
    # before it is late.
    few = len(calls) <= n_processes
    while left == 1 or (left and not few and slowest * (left - -(-left // n_processes)) <= PAYING):
        began = time.perf_counter()
        results = call_with_threads(threads, *calls[-left])
        left = left - 1
        slowest = max(slowest, time.perf_counter() - began)
        yield results
    jobs = (delayed(call_with_threads)(threads, *call) for call in calls[len(calls) - left :])
    if left:  # even for no calls joblib starts a process
        yield from Parallel(n_jobs, return_as="generator", pre_dispatch="2*n_jobs")(jobs)
