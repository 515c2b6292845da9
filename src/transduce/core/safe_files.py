"""Writing files safely: the old file, or the new one, never half of it; and one process at a time."""

from __future__ import annotations

import errno
import glob
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO

from transduce.core.words import option


def check_free(path: str | Path, *, force: bool = False) -> None:
    """Raise a FileExistsError if the file exists already, a FileNotFoundError if its folder is missing."""
    if str(path) == "-":
        return
    path = Path(path)
    if path.is_dir():
        raise FileExistsError(f"{path} is a folder: name a file in it.")
    if path.exists() and not path.is_file():
        raise FileExistsError(
            f"{path} is not a plain file: choose another name, or - for standard output."
        )
    if path.exists() and not force:
        raise FileExistsError(
            f"{path} exists already: choose another name, or replace it with {option('force', True)}."
        )
    if not path.parent.exists():
        raise FileNotFoundError(f"The folder {path.parent} does not exist: create it first.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(
            f"Nothing can be written into the folder {path.parent}: choose another one."
        )


@contextmanager
def whole_file(path: str | Path, *, force: bool = False) -> Iterator[BinaryIO]:
    """Open a file to write bytes to, which takes its name once the block has ended well."""
    check_free(path, force=force)
    if str(path) == "-":
        stream = sys.stdout.buffer
        yield stream
        stream.flush()
        return
    target = Path(os.path.realpath(path))  # through a link, so that the link stays
    _remove_torn(target)
    name = None
    try:
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name}.", suffix=".part"
        )
        with os.fdopen(handle, "wb") as file:
            take(file, f"{name} is in use.")
            yield file
        os.chmod(name, _mode(target))
        os.replace(name, target)
    except BaseException as error:
        if name is not None:
            Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            why = "the disk is full; no half of it is left" if full else str(error.strerror).lower()
            raise OSError(f"{path} cannot be written: {why}.") from error
        raise


def _remove_torn(target: Path) -> None:
    """Remove what a process that was killed left of this file; what another one is writing is held by it."""
    for torn in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        with suppress(OSError):
            with open(torn, "rb+") as file:
                take(file, f"{torn} is in use.")
            torn.unlink()


def _mode(target: Path) -> int:
    """Return the rights of the file to be replaced, or those that new files get."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def write_text(path: str | Path, text: str, *, force: bool = False) -> None:
    """Write text as UTF-8, in one piece."""
    with whole_file(path, force=force) as file:
        file.write(text.encode())


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
