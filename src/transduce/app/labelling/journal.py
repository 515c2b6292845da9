"""The journal: one line of JSON for everything that happened.

It is on the disk before anybody is told that it is saved.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import numpy as np

from transduce.core.files import open_to_append, synchronise_folder, take
from transduce.core.types import AnyArray

Label = str | int | float | bool | None
VERSION = 1
EVENT_KINDS = (
    *("draw", "answer", "skip", "change", "undo", "mode", "wanted", "class", "freeze", "plan"),
    "check",  # of predictions made elsewhere
    "sample",  # of rows that are judged first
    "goal",  # that was changed on the page; `mode` says which
)
# In every line about a row.
DECISION = (
    "kind",
    "row",
    "label",
    "mode",
    "random",
    "unlabelled",
    "hits",
)
START = b'{"kind": "start"'  # how every journal begins


def is_journal(path: Path) -> bool:
    """Return whether a file begins like a journal."""
    with suppress(OSError), path.open("rb") as file:
        return file.read(len(START)) == START
    return False


@dataclass(frozen=True)
class Header:
    """What a session is about; the first line of its journal."""

    table: str  # name of the table
    digest: str  # SHA-256 of the table
    n_rows: int  # its rows
    target: str  # the column that is labelled
    task: str  # what labels are
    seed: int  # of the random draws
    recall: float  # share of the wanted rows that is to be found
    certainty: float  # how certain that is to be


@dataclass(frozen=True)
class Event:
    """One thing that happened."""

    kind: str  # one of `EVENT_KINDS`
    row: int = -1  # the row, counted from 0; -1 if it is about none
    label: Label = None  # the label given; the class for "wanted" and "class"
    mode: str = ""  # how the row came up: "find", "learn", "audit", "chosen"; the new mode; a goal
    random: bool = False  # whether the row was a random draw
    unlabelled: int = 0  # rows that could be drawn before it happened
    hits: int = 0  # wanted rows known before it happened
    number: float = 0.0  # draws planned, the tolerance of frozen numbers, or a goal
    data: str = ""  # frozen answers, predictions made elsewhere, or a sample, packed
    level: float = 0.0  # of the intervals or sets that planned draws calibrate; 0 in old journals
    proposed: Label = None  # what was predicted elsewhere for this row
    proposer: str = ""  # the column of predictions
    decider: str = ""  # who decided, if there is a name
    time: str = ""  # when, in UTC


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Journal:
    """An append-only file of events that one process at a time holds open.

    Or, without a path, a list in memory.
    """

    def __init__(self, path: Path | None = None, like: Sequence[Path] = ()) -> None:
        self.path = path
        self.note = ""
        self._new = False
        self.header: Header | None = None  # the first line; None if the journal is new
        self.events: list[Event] = []
        self._file: IO[bytes] | None = None
        if path is None:
            return
        try:
            self._file, self._new = open_to_append(path, like)
            how = "close the other page or notebook first"
            take(self._file, f"{path.name} is in use by another process: {how}.")
            self._read()
            if self._new:
                synchronise_folder(path.parent)
        except BaseException as error:
            self.abandon()
            if isinstance(error, OSError) and error.errno is not None:
                reason = str(error.strerror).lower()
                raise type(error)(f"The journal {path} cannot be opened: {reason}.") from error
            raise

    def _read(self) -> None:
        """Read all lines.

        What follows the last whole one is cut off. A file that is no journal is not touched.
        """
        assert self._file is not None
        self._file.seek(0)
        content = self._file.read()
        if content[: len(START)] != START[: len(content)]:
            raise ValueError(f"{self.path} does not begin like a journal: name another file.")
        *lines, torn = content.split(b"\n")
        good = 0
        for number, line in enumerate(lines, start=1):
            try:
                self._take(json.loads(line))
            except (ValueError, TypeError, KeyError) as error:
                if number == len(lines) and isinstance(
                    error, json.JSONDecodeError | UnicodeDecodeError
                ):
                    torn = line
                    break
                raise ValueError(
                    f"{self.path} cannot be read in line {number}: {error}."
                ) from error
            good += len(line) + 1
        if torn:
            lost = f"{Path(self._file.name).name} was torn and has been dropped ({len(torn)} bytes)"
            self.note = f"The last line of {lost}: what it was about was not saved, so do it again."
        if good < len(content):
            self._file.truncate(good)
            os.fsync(self._file.fileno())

    def _take(self, line: object) -> None:
        """Take one line: the first is the header."""
        if not isinstance(line, dict) or "kind" not in line:
            raise ValueError("it is not a line of a journal")
        check = line.pop("check", None)  # none in journals of earlier versions
        if check is not None and check != _check_sum(line):
            raise ValueError("it was changed after it was written")
        kind = line.pop("kind")
        if self.header is None:
            if kind != "start" or line.pop("version") != VERSION:
                raise ValueError("it does not begin like a journal of this version")
            self.header = Header(**{item.name: line[item.name] for item in fields(Header)})
            return
        if kind not in EVENT_KINDS:
            raise ValueError(f"there is no event {kind!r}: it may come from a newer version")
        place = line.pop("place", None)
        if place is not None and place != len(self.events) + 1:
            raise ValueError(
                f"it is event {place}, and {len(self.events)} stand before it: "
                "lines were lost or moved"
            )
        fields_of_event = {item.name for item in fields(Event)}
        self.events.append(
            Event(kind, **{name: line[name] for name in line if name in fields_of_event})
        )

    def begin(self, header: Header) -> Header:
        """Write the first line."""
        self._write({"kind": "start", "version": VERSION, **asdict(header), "time": now()})
        self.header = header
        return header

    def append(self, event: Event) -> None:
        """Write an event to the disk; it is there when this returns."""
        assert self.header is not None
        always: tuple[str, ...] = ("kind",)
        if event.row >= 0:
            always = DECISION
        usual = asdict(Event(event.kind)).items()
        line = dict(
            item for item in asdict(event).items() if item[0] in always or item not in usual
        )
        place = {"place": len(self.events) + 1}
        table = {"table": self.header.digest[:16], "seed": self.header.seed}
        self._write({**line, **table, **place})
        self.events.append(event)

    def _write(self, line: dict[str, object]) -> None:
        if self._file is None:
            if self.path is not None:
                raise ValueError("The session is closed: open it again.")
            return
        line = {**line, "check": _check_sum(line)}
        content = json.dumps(line, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        self._check_place()
        start = self._file.seek(0, os.SEEK_END)
        try:
            if self._file.write(content) != len(content):
                raise OSError(errno.ENOSPC, "the disk took a part of the line only")
            os.fsync(self._file.fileno())
        except BaseException as error:  # also if it is interrupted, or there is no memory
            self._take_back(start)
            if not isinstance(error, OSError):
                raise
            raise OSError(_not_saved(self.path, error)) from error

    def _take_back(self, start: int) -> None:
        """Cut off what was written of a line, so that no half of it stays before the next one."""
        assert self._file is not None
        try:
            self._file.truncate(start)
        except OSError:
            self.close()  # if that cannot be done, there is no next line

    def _check_place(self) -> None:
        """Raise an OSError if the file is no longer where it was opened.

        What is written now would be lost.
        """
        assert self.path is not None
        assert self._file is not None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(self.path), os.fstat(self._file.fileno())):
                return
        raise OSError(
            f"{self.path} was moved or deleted meanwhile: nothing can be saved. Start again."
        )

    def abandon(self) -> None:
        """Close the file, and delete it if it was created now: nothing was decided yet."""
        if self._new and self._file is not None and self.path is not None:
            with suppress(OSError):  # a file that was put in its place meanwhile is not ours
                self._check_place()
                self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Close the file and let other processes have it."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _check_sum(line: dict[str, object]) -> int:
    """Return a number that changes if any entry of a line does."""
    return zlib.crc32(json.dumps(line, ensure_ascii=False, allow_nan=False).encode())


def _not_saved(path: Path | None, error: OSError) -> str:
    """Return what went wrong and what to do, as sentences."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            "The disk is full: this was not saved and does not count. Make room, then do it again."
        )
    reason = str(error.strerror or error).lower()
    return (
        f"{path} cannot be written ({reason}): this was not saved and does not count. "
        "Look after the disk, then do it again."
    )


PACKED_TYPES = ("<i2", "<f8")  # of frozen classes and numbers


def pack(values: AnyArray) -> str:
    """Return an array of one dimension as text: its type, and its bytes, compressed."""
    kind = values.dtype.newbyteorder("<").str
    if kind not in PACKED_TYPES:
        raise ValueError(f"arrays of type {kind} cannot be packed")
    content = np.ascontiguousarray(values, dtype=kind).tobytes()
    return f"{kind}:{base64.b64encode(zlib.compress(content)).decode()}"


def unpack(text: str) -> AnyArray:
    """Return the array that `pack` made a text of."""
    kind, _, content = text.partition(":")
    if kind not in PACKED_TYPES:
        raise ValueError(f"arrays of type {kind!r} cannot be unpacked")
    return np.frombuffer(zlib.decompress(base64.b64decode(content)), dtype=kind)
