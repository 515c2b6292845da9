"""Time as a limit: work that runs past it is stopped, and work that would is not begun."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

FOR_FITS = 0.7  # of a budget; the rest is for answers at hidden labels


class OutOfTimeError(BaseException):
    """Work was stopped because its time was over; not an `Exception`, so that no method takes it for its own."""


@dataclass(frozen=True)
class Budget:
    """When fits, and all work, have to be done, in seconds of the clock; infinite without a limit."""

    seconds: float
    fits_end: float
    ends: float

    @classmethod
    def of(cls, seconds: float | None) -> Budget:
        """Begin now."""
        limit, now = float("inf") if seconds is None else float(seconds), time.time()
        return cls(limit, now + FOR_FITS * limit, now + limit)

    def left(self, until: float) -> float:
        """Return the seconds from now."""
        return until - time.time()

    @property
    def said(self) -> str:
        """The budget in words."""
        return f"the time budget of {self.seconds:.3g} s"


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Stop the block with an `OutOfTimeError` if it takes longer.

    Notes
    -----
    The work ends at its next line of Python: a long call into a library of numbers is waited for.
    """
    if seconds == float("inf"):
        yield
        return
    if seconds <= 0.0:
        raise OutOfTimeError
    thread, lock, over = threading.get_ident(), threading.Lock(), threading.Event()

    def stop() -> None:
        with lock:
            if not over.is_set():
                _raise_in(thread)

    timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with lock:
            over.set()
        timer.cancel()


def _raise_in(thread: int) -> None:
    """Raise the error in a thread, at its next line of Python."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(OutOfTimeError))
