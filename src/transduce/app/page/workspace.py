"""The tables of a folder, and what was said about the open one.

That is kept in one small file beside it.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool

from transduce.app.filling.options import KINDS, OPTIONS, Options
from transduce.app.labelling.journal import is_journal
from transduce.app.tables import files
from transduce.conformal.designs.registry import all_cards, design_of_flags
from transduce.core import checks
from transduce.core.files import whole_file, write_text
from transduce.core.words import in_shell

ENDING = (
    ".transduce"  # of the small file; also the folder with what was computed, which may be deleted
)
STEPS = ("table", "labels", "answers")
LARGEST_UPLOAD = 4 * 2**30
MOST_LISTED = 200
CARDS = all_cards()  # how the labels came about, in the order of the page
# What the page calls the options that it has a place for.
_CLICK = "(click on the column)"
_SECOND = "in the second step"
BOXES = {
    "missing": f"“means empty” {_CLICK}",
    "keep": f"“is a number” {_CLICK}",
    "case_sensitive": f"“Capitals make a difference” {_CLICK}",
    "task": f"“Its values are {{}}” {_CLICK}",
    "ignore": f"“Ignore this column” {_CLICK}",
    "text": f"“Read it word by word” {_CLICK}",
    "number": f"“Read it as a number” {_CLICK}",
    "id": f"“It names the rows” {_CLICK}",
    "sheet": "the box “sheet”",
    "confidence": (
        f"“Each range, or set of classes, is to hold the truth with probability” {_SECOND}"
    ),
    "minimum": f"“No value is below” {_SECOND}",
    "maximum": f"“or above” {_SECOND}",
    **{card.flag: f"“{card.title}” {_SECOND}" for card in CARDS.values() if card.flag},
}


def in_boxes(name: str, value: Any) -> str:
    """Return where the page sets an option.

    For those that it has no place for, the flag of the command line.
    """
    shell = f"`{in_shell(name, value)}` on the command line"
    if name in BOXES:
        return BOXES[name].format(KINDS.get(str(value), "…"))
    return shell


class StaleError(ValueError):
    """A change that was made of something that has changed since."""


@dataclass(frozen=True)
class Choices:
    """What a person said about a table."""

    target: str | None = None
    ignore: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    number: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # values that mark an empty cell
    keep: list[str] = field(default_factory=list)  # numbers that look like such marks, and are none
    case_sensitive: bool = False  # whether classes that differ in capitals only are different
    id: str | None = None
    sheet: str | None = None
    way: str | None = None  # how the labels came about
    column: str | None = None  # that says so
    minimum: float | None = None  # that a value of the target can have
    maximum: float | None = None
    confidence: float = 0.9
    guarantee: str = "auto"
    task: str = "auto"
    labels: int = 0  # which version of those of the labelling page takes part; 0 if none does
    added: str | None = None  # a column to label that the table does not have
    step: str = "table"

    def __post_init__(self) -> None:
        lists = [*self.ignore, *self.text, *self.number, *self.missing, *self.keep]
        texts = [self.target, self.added, self.id, self.sheet, self.column, *lists]
        if any(one is not None and not isinstance(one, str) for one in texts):
            raise ValueError("Columns and values are named by text.")
        checks.check_whole("labels", self.labels, least=0)
        checks.check_choice("step", self.step, STEPS)
        if self.way is not None:
            checks.check_choice("way", self.way, tuple(CARDS))
        self.options()  # refuses what `fill` does not take

    @property
    def flags(self) -> dict[str, Any]:
        """How the labels came about, as flags of the command line."""
        card = CARDS[self.way or "chance"]
        if not card.flag:
            return {}
        if not card.column:
            return {card.flag: card.value}
        if self.column is None:
            return {}
        return {card.flag: self.column}

    def options(self) -> Options:
        """Return the options of `fill` that say the same."""
        given = {
            name: value
            for name, value in asdict(self).items()
            if name in OPTIONS and name != "labels"
        }
        given["labels"] = design_of_flags(self.flags)
        return Options.read(given, questions=True)

    def changed(self, changes: Mapping[str, Any]) -> Choices:
        """Return the choices with some changed, or raise a ValueError.

        Another target has its own labels.
        """
        unknown = set(changes) - {one.name for one in fields(self)}
        if unknown:
            raise ValueError(f"There is nothing called {min(unknown)!r} to choose.")
        for name in ("ignore", "text", "number", "missing", "keep"):
            if not isinstance(changes.get(name, []), list):
                raise ValueError(f"{name} is a list.")
        new = replace(self, **changes)
        own: dict[str, Any] = {"labels": 0, "task": "auto", "minimum": None, "maximum": None}
        if new.target == self.target:
            own = {}
        mended = {name: value for name, value in own.items() if name not in changes}
        mended |= {name: None for name in ("id", "column") if getattr(new, name) == new.target}
        used = {new.target, new.id, new.column}
        for name in ("ignore", "text", "number"):
            mended[name] = [one for one in getattr(new, name) if one not in used]
        return replace(new, **mended)


@dataclass(frozen=True)
class Saved:
    """What the small file holds."""

    choices: Choices = field(default_factory=Choices)
    revision: int = 0
    open: bool = True  # whether the page is at this table

    @classmethod
    def read(cls, path: Path) -> Saved:
        """Return what a file holds; a ValueError if it is damaged."""
        try:
            found = json.loads(path.read_text("utf-8"))
            return cls(Choices(**found["choices"]), int(found["revision"]), bool(found["open"]))
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"{path.name} is damaged") from error

    def write(self, path: Path) -> None:
        """Write it in one piece, as private as its table.

        The old file or the new one is there, whatever happens.
        """
        text = json.dumps({"format": 1, **asdict(self)}, ensure_ascii=False, indent=1)
        table = path.with_name(path.name.removesuffix(ENDING))
        write_text(path, text, force=True, like=[table])


def _free_name(path: Path) -> Path:
    """Return a name, or one with a number after it, that no file has."""
    numbered = (path.with_name(f"{path.name}-{number}") for number in itertools.count(2))
    return next(name for name in itertools.chain([path], numbered) if not os.path.lexists(name))


class Workspace:
    """A folder of tables, one of which is open."""

    def __init__(self, folder: str | Path = ".", table: str | None = None) -> None:
        self.folder = Path(folder).resolve()
        self.name: str | None = None  # of the open table
        self.notes: list[str] = []
        self._lock = threading.RLock()
        begun = [path for path in self.folder.glob(f"?*{ENDING}") if path.is_file()]
        begun.sort(key=lambda path: -path.stat().st_mtime_ns)
        if table is None and begun:
            with suppress(ValueError, OSError):  # a file that is damaged tells of no table
                name = begun[0].name.removesuffix(ENDING)
                if Saved.read(begun[0]).open and (self.folder / name).is_file():
                    table = name
                else:
                    table = None
        if table is not None:
            self.open(table)

    # ---------------------------------------------------------------------------------- the folder

    def tables(self) -> list[dict[str, Any]]:
        """Return the tables in the folder, those first that were open before."""
        found = []
        for path in self.folder.iterdir():
            table = (
                files.kind_of(path)[0] is not None
                and path.is_file()
                and not path.name.startswith(".")
            )
            if table and not is_journal(path):
                about = path.stat()
                begun = self._beside(path.name).exists()
                line = {
                    "name": path.name,
                    "bytes": about.st_size,
                    "changed": about.st_mtime,
                    "begun": begun,
                }
                found.append(line)
        found.sort(key=lambda line: (not line["begun"], str(line["name"]).casefold()))
        return found[:MOST_LISTED]

    def path_of(self, name: str) -> Path:
        """Return a table of the folder, or raise a ValueError: nothing outside of it is opened."""
        path = self.folder / name
        known = path.is_file() and not path.is_symlink() and files.kind_of(name)[0] is not None
        if Path(name).name != name or not known:
            raise ValueError(f"There is no table {name!r} in this folder.")
        return path

    async def keep(self, name: str, content: AsyncIterator[bytes]) -> str:
        """Write a file that was dropped beside the others, under a name of its own.

        Return the name.
        """
        wanted = name.replace("\\", "/").rpartition("/")[2].lstrip(".").strip()
        if not wanted.isprintable() or len(wanted) > 150 or files.kind_of(wanted)[0] is None:
            raise ValueError(
                f"{wanted[:80]!r} is not a table: let its name end in {', '.join(files.all_endings())}."
            )
        free = self.folder / wanted
        number = 1
        size = 0
        while free.exists() or free.is_symlink():
            number += 1
            free = self.folder / f"{wanted.partition('.')[0]}-{number}.{wanted.partition('.')[2]}"
        with whole_file(free) as file:
            async for part in content:
                size += len(part)
                if size > LARGEST_UPLOAD:
                    raise ValueError("The file is too large to be dropped: put it into the folder.")
                await run_in_threadpool(file.write, part)
            if not size:
                raise ValueError(f"{wanted!r} is empty.")
        return free.name

    # ----------------------------------------------------------------------------------- the table

    def _beside(self, name: str) -> Path:
        return self.folder / f"{name}{ENDING}"

    @property
    def path(self) -> Path:
        """The open table."""
        if self.name is None:
            raise ValueError("Open a table first.")
        return self.folder / self.name

    @property
    def computed(self) -> Path:
        """The folder with what was computed of the open table."""
        found = self.folder / ENDING / self.path.name
        if not found.resolve().is_relative_to(self.folder):
            raise ValueError(f"{ENDING} leads out of this folder: remove it.")
        return found

    @property
    def saved(self) -> Saved:
        """What is known of the open table, as the file has it."""
        if self.name is None:
            return Saved()
        file = self._beside(self.name)
        try:
            if file.exists():
                return Saved.read(file)
            return Saved()
        except ValueError as error:
            aside = _free_name(file.with_name(f"{file.name}-damaged"))
            file.rename(aside)
            self.notes.append(f"{error}: it was put aside as {aside.name}, and begun anew.")
            return Saved()

    def open(self, name: str | None) -> None:
        """Open a table where it was left, or close the open one."""
        with self._lock:
            if name is not None:
                self.path_of(name)  # refuses what is no table of this folder
            self.notes = []
            self._mark_open(False)
            self.name = name
            self._mark_open(True)

    def _mark_open(self, is_open: bool) -> None:
        """Write whether the page is at this table, if anything was said about it before.

        Who only looks at a table finds no new file beside it.
        """
        if self.name is not None and self._beside(self.name).exists():
            replace(self.saved, open=is_open).write(self._beside(self.name))

    def seen(self, table: str, revision: int) -> Saved:
        """Return what is known of the open table, if it is still what the person saw."""
        saved = self.saved
        if table != self.name or revision != saved.revision:
            raise StaleError("This was changed in another tab meanwhile: look at it again.")
        return saved

    def change(self, table: str, revision: int, changes: Mapping[str, Any]) -> Saved:
        """Change choices, if they are still those that the person saw.

        Which step is shown changes nothing else.
        """
        with self._lock:
            if set(changes) == {"step"}:
                revision = self.saved.revision
            saved = self.seen(table, revision)
            new = replace(saved, choices=saved.choices.changed(changes))
            if replace(new.choices, step="table") != replace(saved.choices, step="table"):
                new = replace(new, revision=saved.revision + 1)
            said_before = self._beside(table).exists()
            if said_before or replace(new.choices, step="table") != Choices():
                new.write(self._beside(table))
            return new
