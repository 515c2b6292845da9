"""Failures of the system that happen where a test says: at the k-th time that something is written."""

from __future__ import annotations

import errno
import io
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

FULL = OSError(errno.ENOSPC, "No space left on device")
BROKEN = OSError(errno.EIO, "Input/output error")
KINDS = {
    "disk full": lambda: OSError(*FULL.args),
    "disk broken": lambda: OSError(*BROKEN.args),
    "no memory": MemoryError,
    "interrupted": KeyboardInterrupt,
    "short write": None,
}


class Faults:
    """Counts everything that changes the disk, and fails at one of the counts."""

    def __init__(self, kind: str, at: int, *, stays: bool = False) -> None:
        self.error = KINDS[kind]
        self.at = at
        self.stays = stays  # whether no later write succeeds either
        self.count = 0
        self.happened = False

    def step(self, *, writes: bool = False) -> str:
        """Count one change of the disk: "fail", "short" or "go on"."""
        here = self.count == self.at or (self.stays and writes and self.count > self.at)
        self.count += 1
        if not here:
            return "go on"
        if self.error is None:
            self.happened = self.happened or writes
            return "short" if writes else "go on"
        self.happened = True
        return "fail"

    def counted(self, function, *, writes=False):
        """Return a function of the system that may fail."""

        def call(*arguments, **settings):
            if self.step(writes=writes) == "fail":
                raise self.error()
            return function(*arguments, **settings)

        return call

    def file(self, handle, mode="wb", buffering=-1, **_):
        """Open a file whose writes may fail; half of what is written is there all the same."""
        faults = self

        class Faulty(io.FileIO):
            def write(self, content):
                found = faults.step(writes=True)
                if found == "go on":
                    return super().write(content)
                written = super().write(bytes(content)[: max(len(content) // 2, 1)])
                if found == "fail":
                    raise faults.error()
                return written

        raw = Faulty(handle, mode.replace("b", ""))
        return raw if buffering == 0 else io.BufferedWriter(raw, buffer_size=4096)


@contextmanager
def failing(kind, at, *, stays=False):
    """Let the system fail at the `at`-th change of the disk."""
    faults = Faults(kind, at, stays=stays)
    patches = [
        mock.patch("os.fdopen", faults.file),
        mock.patch("transduce.app.labelling.journal.open", faults.file, create=True),
        mock.patch("os.fsync", faults.counted(os.fsync)),
        mock.patch("os.replace", faults.counted(os.replace)),
        mock.patch("os.rename", faults.counted(os.rename)),
        mock.patch("os.chmod", faults.counted(os.chmod)),
        mock.patch("os.mkdir", faults.counted(os.mkdir)),
        mock.patch("tempfile.mkstemp", faults.counted(tempfile.mkstemp)),
    ]
    for patch in patches:
        patch.start()
    try:
        yield faults
    finally:
        for patch in reversed(patches):
            patch.stop()


def content_of(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder, with what it holds."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}
