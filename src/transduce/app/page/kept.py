"""What the page keeps of a table, and how each of it is deleted: no file of anybody else's."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from transduce.app.labelling.journal import is_journal
from transduce.core.files import make_folder, write_text
from transduce.core.types import JsonObject

COPIES = "copies.json"  # in the folder of what was computed: files that were dropped on the page
NAMING = ("start", "class", "wanted", "mode")  # lines of a journal that no label came of
What = Literal["computed", "said", "labels", "copy"]


@dataclass(frozen=True)
class Kept:
    """One thing that the page keeps of a table.

    Attributes
    ----------
    what : str
        What was computed, what was said, labels, or the copy of a file that was dropped.
    path : Path
        Where it is.
    bytes : int
        How large it is.
    """

    what: What
    path: Path
    bytes: int


def kept_of(table: Path, said: Path, computed: Path) -> list[Kept]:
    """Return what the page keeps of a table: its small file, its folder, its journals, its copy."""
    kept = []
    if computed.is_dir():
        kept.append(Kept("computed", computed, _size(computed)))
    if said.is_file():
        kept.append(Kept("said", said, _size(said)))
    kept += [Kept("labels", path, _size(path)) for path in journals_of(table)]
    if table.is_file() and is_copy(table, computed.parent):
        kept.append(Kept("copy", table, _size(table)))
    return kept


def delete(kept: Kept) -> None:
    """Delete one thing that the page kept."""
    if kept.what == "computed":
        shutil.rmtree(kept.path)
        return
    kept.path.unlink(missing_ok=True)


def journals_of(table: Path) -> list[Path]:
    """Return the journals that the labelling page keeps of a table beside it."""
    journals = []
    for path in sorted(table.parent.glob("*.jsonl")):
        if path.is_symlink() or not is_journal(path):
            continue
        with suppress(OSError, ValueError), path.open("rb") as file:
            if json.loads(file.readline()).get("table") == table.name:
                journals.append(path)
    return journals


def holds_decisions(journal: Path) -> bool:
    """Return whether somebody decided anything while labelling, besides naming the classes."""
    with journal.open("rb") as file:
        kinds = (json.loads(line).get("kind") for line in file)
        with suppress(ValueError, AttributeError):  # a torn line is a decision, too
            return not all(kind in NAMING for kind in kinds)
    return True


def note_copy(table: Path, folder: Path) -> None:
    """Remember that a file is a copy, made when somebody dropped it on the page."""
    copies = _copies(folder)
    copies[table.name] = _state(table)
    make_folder(folder, private=True)
    write_text(folder / COPIES, json.dumps(copies), force=True, like=[table])


def is_copy(table: Path, folder: Path) -> bool:
    """Return whether a file is a copy that was dropped, and nobody has changed it since."""
    return _copies(folder).get(table.name) == _state(table)


def _copies(folder: Path) -> JsonObject:
    with suppress(OSError, ValueError):
        copies = json.loads((folder / COPIES).read_text("utf-8"))
        if isinstance(copies, dict):
            return copies
    return {}


def _state(table: Path) -> list[int]:
    status = table.stat()
    return [status.st_size, status.st_mtime_ns]


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(file.lstat().st_size for file in path.rglob("*") if not file.is_dir())
    return path.stat().st_size
