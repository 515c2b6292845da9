"""A loop that one process of a test run compiles is locked for the others."""

import pytest

pytest.importorskip("fcntl", reason="there are no locks of files")
import fcntl
from pathlib import Path

from tests import compile_once
from transduce.population import lattice

LOCK = "__pycache__/lattice._largest_over_splits.lock"


def is_locked():
    """Whether somebody who opens the file anew has to wait."""
    with open(Path(lattice.__file__).parent / LOCK, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def test_a_loop_is_locked_while_it_is_compiled_also_by_one_that_it_calls(monkeypatch):
    seen = []

    def compile_and_look(dispatcher, signature):
        seen.append(is_locked())
        if len(seen) == 1:
            dispatcher.compile("called again")

    monkeypatch.setattr(compile_once, "COMPILE", compile_and_look)
    lattice._largest_over_splits.compile("called")
    assert seen == [True, True]
    assert not is_locked()
