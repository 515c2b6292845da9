"""Writing files in one piece: the old file, or the new one, never half of it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def check_free(path: str | Path, *, force: bool = False) -> None:
    """Raise a FileExistsError if the file exists already, a FileNotFoundError if its folder is missing.

    Parameters
    ----------
    path : str or Path
        "-" for standard output, which is always free.
    force : bool, default=False
        Whether an existing file may be replaced.
    """
    if str(path) == "-":
        return
    path = Path(path)
    if path.is_dir():
        raise FileExistsError(f"{path} is a folder: name a file in it.")
    if path.exists() and not path.is_file():
        raise FileExistsError(f"{path} is not a plain file: choose another name, or - for standard output.")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists already: choose another name, or replace it with --force.")
    if not path.parent.exists():
        raise FileNotFoundError(f"The folder {path.parent} does not exist: create it first.")


@contextmanager
def whole_file(path: str | Path, *, force: bool = False) -> Iterator[BinaryIO]:
    """Open a file to write bytes to, which takes its name once the block has ended well.

    Parameters
    ----------
    path : str or Path
        "-" for standard output.
    force : bool, default=False
        Whether an existing file may be replaced.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder) / "a.txt") as file:
    ...         _ = file.write(b"all of it")
    ...     print((Path(folder) / "a.txt").read_text())
    all of it
    """
    check_free(path, force=force)
    if str(path) == "-":
        stream = sys.stdout.buffer
        yield stream
        stream.flush()
        return
    target = Path(os.path.realpath(path))  # through a link, so that the link stays
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(name, _mode(target))
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


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
