"""Several files that belong together: all of them are there at the end, or all are as they were before."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from transduce.core.safe_files import check_free


@dataclass(frozen=True)
class Staged:
    """A file that is written in one place and will stand in another."""

    place: Path  # where it is written
    target: Path  # where it will stand
    kept: Path  # another name of the file that stood there before, if one did

    def take_name(self) -> None:
        """Let the file stand where it is to stand, with the rights of the one that stood there."""
        if self.target.exists():
            os.chmod(self.place, self.target.stat().st_mode & 0o777)
            try:
                os.link(self.target, self.kept)
            except OSError:  # not every file system has second names
                shutil.copy2(self.target, self.kept)
        os.replace(self.place, self.target)

    def give_back(self) -> None:
        """Let the file that stood there before stand there again, or none."""
        with suppress(OSError):
            if self.kept.exists():
                os.replace(self.kept, self.target)
            elif not self.place.exists():  # it had taken its name already
                self.target.unlink(missing_ok=True)


@contextmanager
def all_or_none(paths: Sequence[Path], *, force: bool = False) -> Iterator[list[Path]]:
    """Yield places to write files to, which take their own names together once the block has ended well.

    A place to which nothing was written stands for a file that is not made; one that stood there before stays.
    """
    for path in paths:
        check_free(path, force=force)
    targets = [Path(os.path.realpath(path)) for path in paths]  # through a link, so that it stays
    folder: Path | None = None
    staged: list[Staged] = []
    try:
        folder = Path(tempfile.mkdtemp(dir=targets[0].parent, prefix=".", suffix=".part"))
        for number, target in enumerate(targets):
            (folder / str(number)).mkdir()
            place = folder / str(number) / target.name  # the ending of a name says how to write
            staged.append(Staged(place, target, folder / f"{number}.kept"))
        yield [file.place for file in staged]
        _take_names([file for file in staged if file.place.exists()])
    except OSError as error:
        message = str(error)
        if error.errno is not None:
            message = (
                f"Nothing can be written into the folder {targets[0].parent}: {reason(error)}."
            )
        for file, path in zip(staged, paths, strict=False):
            message = message.replace(str(file.place), str(path))
        raise OSError(message) from error
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def reason(error: OSError) -> str:
    """Return why the system refused, in words."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full"
    return str(error.strerror).lower()


def _take_names(staged: list[Staged]) -> None:
    """Let all files take their names, or none."""
    begun: list[Staged] = []
    try:
        for file in staged:
            begun.append(file)
            file.take_name()
    except BaseException as error:
        for file in reversed(begun):
            file.give_back()
        if isinstance(error, OSError) and error.errno is not None:
            path = begun[-1].target
            said = f"{path} cannot be written: {reason(error)}. Nothing was changed."
            raise OSError(said) from error
        raise
