"""Writing files safely.

A file is the old one or the new one, never half of it, and never replaces one that it was not told
to. Several files of one run take their names together, or none does. What is written is read by
nobody who could not read what it was made from. Only what this program wrote is ever removed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

from transduce.core.words import option

AnyPath = str | Path
LOCK_TEXT = b"held by transduce\n"  # what tells a lock file of ours from a file of that name
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
# What file systems say that cannot synchronise a file or a folder: there is nothing to wait for.
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES, errno.EISDIR)
_LONGEST_STEM = 180  # bytes of a name that its temporary file repeats: a name has at most 255
_TEMPORARY = re.compile(
    r"\.(?P<stem>.*)\.(?P<number>[0-9a-f]{8})(?P<proof>[0-9a-f]{12})\.part", re.DOTALL
)


class DiskFullError(OSError):
    """A file could not be written because the disk is full."""


def check_free(path: AnyPath, *, force: bool = False) -> None:
    """Raise an error if a file exists already, or its folder is missing."""
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
        raise _exists(path)
    if not path.parent.exists():
        raise FileNotFoundError(f"The folder {path.parent} does not exist: create it first.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(
            f"Nothing can be written into the folder {path.parent}: choose another one."
        )


def _exists(path: Path) -> FileExistsError:
    return FileExistsError(
        f"{path} exists already: choose another name, or replace it with {option('force', True)}."
    )


# --------------------------------------------------------------------------- one file, in one piece


@dataclass(eq=False)
class _Unplaced:
    """A file that is being written, or is written, and has not taken its name yet."""

    path: AnyPath  # the name as it was given, for messages
    target: Path  # the name, through links
    temporary: Path
    file: (
        BinaryIO  # stays open until the file has its name: its lock tells others that it is in use
    )
    force: bool
    rights: int
    backup: Path | None = None  # what the file replaced, until all files of the run are in place
    placed: bool = False

    @classmethod
    def create(cls, path: AnyPath, force: bool, like: Iterable[AnyPath]) -> _Unplaced:
        target = Path(os.path.realpath(path))  # through a link, so that the link stays
        _remove_torn_of(target)
        temporary = target.parent / temporary_name(target.name)
        # Nobody else may read it before it has the rights of what it was made from.
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600)
        file = os.fdopen(handle, "wb")
        try:
            take(file, f"{temporary} is in use.")
            rights = _rights(target, like, os.fstat(handle))
        except BaseException:
            file.close()
            temporary.unlink(missing_ok=True)
            raise
        return cls(path, target, temporary, file, force, rights)

    def finish(self) -> None:
        """Bring what was written to the disk."""
        self.file.flush()
        _synchronise(self.file.fileno())

    def place(self, *, keep_old: bool = False) -> None:
        """Give the file its name, or raise a FileExistsError if another has got that meanwhile."""
        os.chmod(self.temporary, self.rights)
        if sys.platform == "win32":  # which renames no open file
            self.file.close()
        if keep_old and self.force and self.target.exists():
            self.backup = self.target.parent / temporary_name(self.target.name)
            _copy_of_name(self.target, self.backup)
        if self.force:
            os.replace(self.temporary, self.target)
        else:
            self._place_beside_others()
        self.placed = True
        synchronise_folder(self.target.parent)
        self.file.close()

    def _place_beside_others(self) -> None:
        try:
            os.link(self.temporary, self.target)  # fails where the name is taken, unlike a renaming
        except FileExistsError:
            raise _exists(Path(self.path)) from None
        except (OSError, NotImplementedError, AttributeError):  # no links on this file system
            if self.target.exists():
                raise _exists(Path(self.path)) from None
            os.replace(self.temporary, self.target)
        else:
            self.temporary.unlink()

    def take_back(self) -> None:
        """Restore what was there before, whatever has been done."""
        if self.backup is not None:
            with suppress(OSError):
                os.replace(self.backup, self.target)
                # To rename a file to another name of itself does nothing.
                self.backup.unlink(missing_ok=True)
        elif self.placed:
            self.target.unlink(missing_ok=True)
        self.discard()

    def discard(self) -> None:
        """Remove the temporary file."""
        with suppress(OSError):
            self.file.close()
        self.temporary.unlink(missing_ok=True)


def _failure(path: AnyPath, error: OSError) -> OSError:
    """Return an error of the system as a sentence that names the file."""
    if error.errno in _NO_SPACE:
        return DiskFullError(f"{path} cannot be written: the disk is full; no half of it is left.")
    return OSError(f"{path} cannot be written: {str(error.strerror).lower()}.")


_BINARY = getattr(os, "O_BINARY", 0)


@dataclass(eq=False)
class FilesOfRun:
    """Files that take their names together, in this order."""

    files: list[_Unplaced]

    def hashes(self) -> dict[str, str]:
        """Return the SHA-256 of each file that is written, by the name that it will have."""
        hashes = {}
        for unplaced in self.files:
            with open(unplaced.temporary, "rb") as file:
                hashes[str(unplaced.target)] = hashlib.file_digest(file, "sha256").hexdigest()
        return hashes

    def place_last_first(self) -> None:
        """Let the file that was written last be the first to take its name."""
        self.files.insert(0, self.files.pop())


_run: ContextVar[FilesOfRun | None] = ContextVar("transduce_files_of_a_run", default=None)


@contextmanager
def whole_file(
    path: AnyPath, *, force: bool = False, like: Iterable[AnyPath] = ()
) -> Iterator[BinaryIO]:
    """Open a file to write bytes to, which takes its name once the block has ended well.

    In a block of `together` it takes its name at the end of that block. `like` are the files that
    it was made from: it is read by nobody who could not read these.
    """
    check_free(path, force=force)
    if str(path) == "-":
        stream = sys.stdout.buffer
        yield stream
        stream.flush()
        return
    unplaced: _Unplaced | None = None
    try:
        unplaced = _Unplaced.create(path, force, like)
        yield unplaced.file
        unplaced.finish()
        run = _run.get()
        if run is None:
            unplaced.place()
        else:
            run.files.append(unplaced)
    except BaseException as error:
        if unplaced is not None:
            unplaced.discard()
        if isinstance(error, OSError) and error.errno is not None:
            raise _failure(path, error) from error
        raise


@contextmanager
def together() -> Iterator[FilesOfRun]:
    """Let all files that are written in the block take their names at its end.

    Either all of them take their names, or none does.

    An inner block is a part of the outer one.
    """
    outer = _run.get()
    if outer is not None:
        yield outer
        return
    run = FilesOfRun([])
    token = _run.set(run)
    try:
        yield run
        with _undisturbed():
            _place_all(run.files)
    except BaseException:
        for file in run.files:
            file.discard()
        raise
    finally:
        _run.reset(token)


def _place_all(files: list[_Unplaced]) -> None:
    """Give all files their names; if one cannot have it, all is as it was before."""
    for file in files:
        try:
            file.place(keep_old=True)
        except BaseException as error:
            for one_file in reversed(files):
                one_file.take_back()
            if isinstance(error, OSError) and error.errno is not None:
                raise _failure(file.path, error) from error
            raise
    for file in files:
        if file.backup is not None:
            file.backup.unlink(missing_ok=True)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let a request to end the program wait until the block, which takes milliseconds, is done."""
    if threading.current_thread() is not threading.main_thread():  # requests come to that alone
        yield
        return
    # To block signals would not do: another thread, such as one of BLAS, gets them then, and Python
    # hears of it.
    requests: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: handler for number, handler in before.items() if handler is not None}
    try:
        for number in before:
            signal.signal(number, lambda sent, frame: requests.append(sent))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for request in requests[:1]:
        signal.raise_signal(request)


def write_text(
    path: AnyPath,
    text: str,
    *,
    force: bool = False,
    like: Iterable[AnyPath] = (),
) -> None:
    """Write text as UTF-8, in one piece."""
    with whole_file(path, force=force, like=like) as file:
        file.write(text.encode())


def _copy_of_name(path: Path, other: Path) -> None:
    """Give a file a second name, or, where that cannot be done, copy it."""
    try:
        os.link(path, other)
    except (OSError, NotImplementedError, AttributeError):
        shutil.copy2(path, other)


def _synchronise(handle: int) -> None:
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def synchronise_folder(folder: Path) -> None:
    """Make sure that names of files are on disk, where folders can be synchronised."""
    if sys.platform == "win32":
        return
    with suppress(OSError):  # a folder that may be written to but not read
        handle = os.open(folder, os.O_RDONLY)
        try:
            _synchronise(handle)
        finally:
            os.close(handle)


# -------------------------------------------------------------- temporary files of killed processes


def temporary_name(name: str) -> str:
    """Return a name for a file on its way to its own one.

    The name proves by itself that it is made here.
    """
    number = secrets.token_hex(4)
    return f".{_stem(name)}.{number}{_proof(_stem(name), number)}.part"


def _stem(name: str) -> str:
    """Return as much of a name as leaves room for an ending."""
    content = os.fsencode(name)
    if len(content) <= _LONGEST_STEM:
        return name
    return content[:_LONGEST_STEM].decode("utf-8", errors="ignore")


def _proof(stem: str, number: str) -> str:
    # Nobody names a file so by accident: the proof has 48 bits.
    content = os.fsencode(f"{stem}/{number}")
    return hashlib.blake2b(content, key=b"transduce", digest_size=6).hexdigest()


def is_temporary(name: str) -> bool:
    """Return whether `temporary_name` made a name."""
    match = _TEMPORARY.fullmatch(name)
    return match is not None and match["proof"] == _proof(match["stem"], match["number"])


def remove_torn(folder: Path, stem: str | None = None) -> None:
    """Remove what killed processes left of files in a folder.

    What another process is writing is held by it.
    """
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        torn = [
            Path(entry.path)
            for entry in entries
            if entry.name.endswith(".part")
            and (stem is None or entry.name.startswith(f".{stem}."))
            and is_temporary(entry.name)
            and entry.is_file(follow_symlinks=False)
        ]
        for path in torn:
            with suppress(OSError):
                with open(path, "rb+") as file:
                    take(file, f"{path} is in use.")
                path.unlink()


def _remove_torn_of(target: Path) -> None:
    remove_torn(target.parent, _stem(target.name))


# ------------------------------------------------------------------------------------------- rights


def _rights(
    target: Path,
    like: Iterable[AnyPath],
    made: os.stat_result,
    *,
    is_new: bool = False,
) -> int:
    """Return the rights of a new file.

    They are those of the file that it replaces, without what `like` do not give.
    """
    rights = 0o666 & ~_umask()
    if not is_new and target.exists():
        rights = target.stat().st_mode & 0o777
    return rights & _rights_given(like, target.parent, made.st_gid)


def _rights_given(sources: Iterable[AnyPath], folder: Path, group: int) -> int:
    """Return the rights that all sources give.

    The owner has all, of others nobody gets more than before.

    `folder` is where the new file is, and `group` the group that it has.
    """
    given = 0o777
    for source in sources:
        path = Path(os.path.realpath(source))
        with suppress(OSError):
            given &= _rights_to(path, Path(os.path.realpath(folder)), group)
    return given


def _rights_to(source: Path, folder: Path, group: int) -> int:
    """Return who can do what with a file.

    The folders above it count too, unless the new file is below these as well.
    """
    status = source.stat()
    if status.st_gid == group:
        of_group = status.st_mode >> 3
    else:
        of_group = status.st_mode
    of_others = status.st_mode
    for above in source.parents:
        if above == folder or above in folder.parents:
            break
        passage = above.stat()
        if passage.st_gid == group:
            to_group = passage.st_mode >> 3
        else:
            to_group = passage.st_mode
        if not to_group & 0o1:
            of_group = 0
        if not passage.st_mode & 0o1:
            of_others = 0
    return 0o700 | (of_group & 0o7) << 3 | (of_others & 0o7)


def restrict_process(like: Iterable[AnyPath], folder: Path) -> None:
    """Let every file that this process makes from now on be as private as those in `like`."""
    given = _rights_given(like, folder, folder.stat().st_gid)
    may_enter = (given & 0o444) >> 2
    os.umask(_umask() | (0o777 & ~(given | may_enter)))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def open_to_append(path: Path, like: Iterable[AnyPath] = ()) -> tuple[IO[bytes], bool]:
    """Open a file to read and append to, without a buffer, and return whether it is new.

    A new file is as private as `like`.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | _BINARY, 0o600)
    except FileExistsError:
        return open(path, "a+b", buffering=0), False
    try:
        os.chmod(path, _rights(path, like, os.fstat(handle), is_new=True))
        return os.fdopen(handle, "a+b", buffering=0), True
    except BaseException:
        os.close(handle)
        path.unlink(missing_ok=True)
        raise


def make_folder(
    path: AnyPath, *, like: Iterable[AnyPath] = (), private: bool = False
) -> list[Path]:
    """Make a folder and those above it where they are missing; return them, the innermost first.

    A new folder is open to nobody who could not read the files in `like`; a private one to nobody
    but its owner.
    """
    path = Path(path)
    sources = list(like)
    missing = [ancestor for ancestor in (path, *path.parents) if not ancestor.exists()]
    folders: list[Path] = []
    try:
        for folder in reversed(missing):
            with suppress(FileExistsError):  # another process was quicker
                folder.mkdir(mode=0o700)
                folders.insert(0, folder)
                if not private:
                    folder.chmod(_folder_rights(folder, sources))
        if not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "it is a file")
    except OSError as error:
        remove_folders(folders)
        why = str(error.strerror or error).lower()
        raise type(error)(f"The folder {path} cannot be made: {why}.") from error
    return folders


def _folder_rights(folder: Path, sources: Iterable[AnyPath]) -> int:
    given = _rights_given(sources, folder.parent, folder.stat().st_gid)
    may_enter = (given & 0o444) >> 2  # who may read the files may enter their folder
    return 0o777 & ~_umask() & (given | may_enter)


def remove_folders(folders: Iterable[Path]) -> None:
    """Remove folders, the innermost first, as far as they are empty."""
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return


# -------------------------------------------------------------------------------------------- locks


def take(file: IO[bytes], message: str) -> None:
    """Take a file for this process, or raise a BlockingIOError.

    The system gives it back when the process ends.
    """
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
    """Hold a file that stands for something else while the block runs.

    It is removed then if it is a lock of ours.
    """
    file = _take_lock(path, message)
    with file:
        try:
            yield
        finally:
            file.seek(0)
            if file.read(len(LOCK_TEXT) + 1) == LOCK_TEXT:  # a file of somebody else stays
                path.unlink(missing_ok=True)


def _take_lock(path: Path, message: str) -> BinaryIO:
    """Return the open file that is the lock, which only one process can have."""
    while True:
        try:
            # The file stays open as long as the lock is held.
            file: BinaryIO = open(path, "x+b")  # noqa: SIM115
            is_new = True
        except FileExistsError:
            try:
                file = open(path, "r+b")  # noqa: SIM115
            except FileNotFoundError:  # whoever held it has just removed it
                continue
            except OSError as error:
                raise OSError(
                    f"{path} is in the way and cannot be used as a lock: name another folder."
                ) from error
            is_new = False
        try:
            take(file, message)
            if is_new:
                file.write(LOCK_TEXT)
                file.flush()
            with suppress(FileNotFoundError):
                if os.path.samestat(os.stat(path), os.fstat(file.fileno())):
                    return file
        except BaseException:
            file.close()
            raise
        # Whoever held it removed it before it was taken here: that is no lock any more.
        file.close()
