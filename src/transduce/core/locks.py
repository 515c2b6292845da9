"""Files that one process at a time may hold."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def take(file: IO[bytes], message: str) -> None:
    """Take a file for this process, or raise a BlockingIOError; the system gives it back when the process ends."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(2**30)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise BlockingIOError(message) from error


@contextmanager
def locked(path: Path, message: str) -> Iterator[None]:
    """Hold a file that stands for something else, while the block runs."""
    with open(path, "ab") as file:
        take(file, message)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
