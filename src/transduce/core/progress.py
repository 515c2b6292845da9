"""Progress of long computations: they report how far they are, and a listener shows it."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

_log = logging.getLogger("transduce")

Listener = Callable[[str, float], None]
_listener: ContextVar[Listener | None] = ContextVar("transduce_progress", default=None)


@contextmanager
def stage(name: str) -> Iterator[Callable[[float], None]]:
    """Open a stage of work; gives a function to call with the share done, from 0 to 1.

    The logger ``transduce`` also gets its beginning and end, at level INFO.
    """
    listener = _listener.get() or (lambda name, share: None)
    began = time.perf_counter()
    _log.info("%s ...", name)
    listener(name, 0.0)
    try:
        yield lambda share: listener(name, min(max(share, 0.0), 1.0))
    except BaseException:
        listener(name, np.nan)
        raise
    listener(name, 1.0)
    _log.info("%s: done in %.1f s", name, time.perf_counter() - began)


@contextmanager
def show_progress(listener: Listener | None = None) -> Iterator[None]:
    """Show how far the computations in this block are.

    Parameters
    ----------
    listener : callable, optional
        Called with the name of a stage and the share done, from 0 to 1, in the thread that computes, and with NaN if
        the stage was interrupted; by default a line on standard error is kept up to date.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.methods.spectral_graph import neighbor_graph
    >>> from transduce import show_progress
    >>> seen = []
    >>> with show_progress(lambda name, share: seen.append((name, share))):
    ...     graph = neighbor_graph(np.eye(4) + 1.0, n_neighbors=2)
    >>> seen[-1]
    ('neighbours', 1.0)
    """
    token = _listener.set(listener or _Line())
    try:
        yield
    finally:
        _listener.reset(token)


class _Line:
    """One line of text for each stage, rewritten in place at most ten times a second."""

    def __init__(self, stream: Any = None) -> None:
        self._stream = stream
        self._shown = 0.0

    def __call__(self, name: str, share: float) -> None:
        now = time.perf_counter()
        stream = self._stream or sys.stderr
        if np.isnan(share):
            print(f"\r{name}: broken off", file=stream, flush=True)
            return
        if 0.0 < share < 1.0 and now - self._shown < 0.1:
            return
        self._shown = now
        print(
            f"\r{name}: {share:4.0%}",
            end="\n" if share >= 1.0 else "",
            file=stream,
            flush=True,
        )
