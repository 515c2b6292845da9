"""Processes that a test may kill: forked from one that has imported the package, so that they start at once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from tests.app.labelling.tables import clusters
from tests.few_draws import take_few_draws
from transduce.app.labelling import Session, SessionSettings
from transduce.app.labelling.journal import Journal

FORKS = "forkserver" in multiprocessing.get_all_start_methods()
CONTEXT = multiprocessing.get_context("forkserver" if FORKS else "spawn")
if FORKS:
    CONTEXT.set_forkserver_preload(["tests.app.labelling.preloaded"])


class Running:
    """A function in a process of its own; what it says comes back piece by piece."""

    def __init__(self, function, *arguments, errors=os.devnull):
        self._ear, mouth = CONTEXT.Pipe(duplex=False)
        self.process = CONTEXT.Process(target=_run, args=(function, mouth, str(errors), arguments))
        self.process.start()
        mouth.close()

    def hear(self):
        """The next thing it says; an EOFError if it has ended."""
        return self._ear.recv()

    def hear_all(self):
        """All that it says until it ends."""
        said = []
        try:
            while True:
                said.append(self.hear())
        except EOFError:
            self.process.join()
        return said

    def interrupt(self):
        os.kill(self.process.pid, signal.SIGINT)

    def kill(self):
        self.process.kill()
        self.process.join()
        self._ear.close()


class FillProcess:
    """A fill of the page, as `subprocess.Popen` gives it, that has imported the package already."""

    def __init__(self, folder):
        orders, stdin = CONTEXT.Pipe(duplex=False)
        stdout, lines = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(target=_fill, args=(orders, lines, folder))
        self._process.start()
        orders.close()
        lines.close()
        self.returncode = None
        self._waiting = threading.Lock()  # of two threads that wait only one is told how it ended
        self.stdin = os.fdopen(os.dup(stdin.fileno()), "w")
        self.stdout = os.fdopen(os.dup(stdout.fileno()), encoding="utf-8")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stdin.close()
        self.stdout.close()
        self.wait()

    def wait(self, timeout=None):
        with self._waiting:
            self._process.join(timeout)
            self.returncode = self._process.exitcode
        return self.returncode

    def kill(self):
        self._process.kill()


def _fill(orders, lines, folder):
    from transduce.app.page.run import main

    sys.stdin = os.fdopen(orders.fileno())
    sys.stdout = os.fdopen(lines.fileno(), "w", encoding="utf-8")
    sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    with pytest.MonkeyPatch.context() as patch:
        take_few_draws(patch)
        main(folder)


def _run(function, mouth, errors, arguments):
    with open(errors, "wb") as file:
        os.dup2(file.fileno(), 2)
    with pytest.MonkeyPatch.context() as patch:
        take_few_draws(patch)
        function(mouth.send, *arguments)


def hold_journal(say, path):
    journal = Journal(Path(path))
    say("held")
    threading.Event().wait()
    journal.close()


def label_and_be_killed(say, path):
    """Six random draws after twenty other rows, then the end without a warning."""
    _, truth = clusters()
    session = Session(path, "relevant", classes=["yes", "no"])
    for step in range(26):
        proposal = session.propose("audit" if step >= 20 else "find")
        session.answer(str(truth[proposal.row]))
        say(proposal.row)
    os.kill(os.getpid(), signal.SIGKILL)


def serve_page(say, path, port, kind):
    """``transduce label``, for a table of classes ("new", or "again" in a session that goes on) or of numbers."""
    from transduce.app.page.command import run_label

    options = (
        {}
        if kind == "numbers"
        else {"show": ["title", "note", "height", "weight"], "classes": ["yes", "no"]}
    )
    settings = SessionSettings(
        task="numbers" if kind == "numbers" else "auto", seed=11 if kind == "new" else None
    )
    run_label(path, "relevant", settings=settings, port=port, browser=False, say=say, **options)
