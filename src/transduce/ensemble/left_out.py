"""What a fitted member would answer at a labelled row without its label, and the time there is for it."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from transduce.core import arrays
from transduce.core.types import Array
from transduce.model_selection.ask import FittedEstimator, Problem, Reply, last_step
from transduce.model_selection.folds import Fold

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
    """Stop the block with an `OutOfTimeError` if it takes longer."""
    # The work ends at its next line of Python: a long call into a library of numbers is waited for, and so is numba
    # while it compiles, which would be left in disorder.
    if seconds == float("inf"):
        yield
        return
    if seconds <= 0.0:
        raise OutOfTimeError
    thread, lock, over = threading.get_ident(), threading.Lock(), threading.Event()

    def stop() -> None:
        while _compiles(thread):
            if over.wait(0.1):
                return
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


def _compiles(thread: int) -> bool:
    """Return whether numba is at work in a thread; compiled code itself has no frame of Python."""
    frame = sys._current_frames().get(thread)
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith("numba."):
            return True
        frame = frame.f_back
    return False


def _raise_in(thread: int) -> None:
    """Raise the error in a thread, at its next line of Python."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(OutOfTimeError))


def without_refits(reply: Reply, problem: Problem, folds: list[Fold]) -> list[Reply] | None:
    """Return a member's answers at the hidden rows of every fold; None if only refits can tell."""
    fitted = reply.fitted
    if fitted is None or fitted.pairwise:
        return None
    last = last_step(fitted.estimator)
    if hasattr(last, "relabel") and problem.classes is not None:
        return _relabelled(fitted, last, problem, folds)
    if hasattr(last, "answers_in_folds"):
        return [_reply(fitted, part) for part in last.answers_in_folds(folds)]
    return None


def _reply(fitted: FittedEstimator, answers: Array) -> Reply:
    """Return numbers, or the probabilities of the estimator's classes, as a reply."""
    answers = arrays.to_numpy(answers)
    if fitted.classes is None:
        return fitted.reply(answers)
    own = last_step(fitted.estimator).classes_
    return fitted.reply(own[answers.argmax(axis=1)], probabilities=answers, own=own)


def _relabelled(
    fitted: FittedEstimator, transducer: Any, problem: Problem, folds: list[Fold]
) -> list[Reply] | None:
    """Return the answers of the same graph cut with the visible labels of each fold; None if one sees a class only."""
    if any(len(np.unique(problem.codes[visible])) < 2 for visible, _ in folds):
        return None
    again, replies = copy(transducer), []  # labelled anew; graph and spectrum are those of the fitted one
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for visible, hidden in folds:
            again.relabel(problem.shown(visible))
            replies.append(replace(fitted, estimator=again).answers(problem.rows[hidden]))
    return replies
