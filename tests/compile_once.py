"""Each loop is compiled by one process; others that need it wait, and read what that one kept."""

from contextlib import contextmanager
from pathlib import Path

from numba.core.caching import NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

try:
    import fcntl
except ImportError:  # Windows: processes compile beside each other, as they do in the program
    fcntl = None

COMPILE = Dispatcher.compile
locked = set()  # functions that this process compiles now, each for those that call it


def compile_once():
    """Let the processes of a test run compile no loop twice at a time.

    What one process needs it waits for, and loops call each other in one direction only: no two
    processes wait for each other. Threads of a process wait for numba's lock before.
    """
    if fcntl is not None:
        Dispatcher.compile = _compile


def _compile(dispatcher, signature):
    with global_compiler_lock, _alone(dispatcher):
        return COMPILE(dispatcher, signature)


@contextmanager
def _alone(dispatcher):
    """Hold the lock of a function, which lies beside what numba keeps of it."""
    function = dispatcher.py_func
    source = Path(function.__code__.co_filename)
    path = source.parent / "__pycache__" / f"{source.stem}.{function.__qualname__}.lock"
    if path in locked or isinstance(dispatcher._cache, NullCache) or not path.parent.is_dir():
        yield
        return
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        locked.add(path)
        try:
            yield
        finally:
            locked.discard(path)
            fcntl.flock(lock, fcntl.LOCK_UN)  # also for a process that was forked meanwhile
