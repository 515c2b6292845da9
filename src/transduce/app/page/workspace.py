"""The tables of a folder, and what was said about the open one.

That is kept in one small file beside it.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool

from transduce.app.filling.options import OPTIONS, TASK_NOUNS, Options
from transduce.app.labelling.journal import is_journal
from transduce.app.labelling.table import IMAGES
from transduce.app.page import kept
from transduce.app.tables import files
from transduce.app.tables.databases import is_database, largest_table
from transduce.app.tables.layout import LayoutRequest
from transduce.app.tables.pictures import pictures_below, table_of_pictures
from transduce.conformal.designs.by_class import spell_shares
from transduce.conformal.designs.registry import all_cards, design_of_flags
from transduce.core import checks
from transduce.core.files import whole_file, write_text
from transduce.core.types import JsonObject
from transduce.core.words import in_shell
from transduce.datasets import load_houses

ENDING = (
    ".transduce"  # of the small file; also the folder with what was computed, which may be deleted
)
STEPS = ("table", "labels", "answers")
LARGEST_UPLOAD = 4 * 2**30
MOST_LISTED = 200
PICTURES = "pictures.csv"  # a table of the pictures in the folder
EXAMPLE = "example-houses.csv"  # a table to try the page on
MOST_COUNTED = 2000  # pictures that are counted again and again while the tables are shown
MOST_PICTURES = 1_000_000
# The table that a request is about: a tab names its own, and no table by an empty name. Who names
# nothing, such as a tab that was just opened, is at the table that was opened last.
TABLE: ContextVar[str | None] = ContextVar("table", default=None)
CARDS = all_cards()  # how the labels came about, in the order of the page
PICKED = ("value", "columns")  # what may have played a part where a person picked the rows
# What the page calls the options that it has a place for.
_CLICK = "(click on the column)"
_SECOND = "in the second step"
PAGE_CONTROLS = {
    "missing": f"“means empty” {_CLICK}",
    "keep": f"“is a number” {_CLICK}",
    "same": f"“May mean the same” {_CLICK}",
    "case_sensitive": f"“Capitals make a difference” {_CLICK}",
    "task": f"“Its values are {{}}” {_CLICK}",
    "ignore": f"“Ignore this column” {_CLICK}",
    "text": f"“Read it as text” {_CLICK}",
    "number": f"“Read the number in each cell” {_CLICK}",
    "id": f"“It names the rows” {_CLICK}",
    "predictions": f"“It holds predictions made elsewhere” {_CLICK}",
    "sheet": "the box “sheet”",
    "header": "“Where the table begins and ends”",
    "rows": "“Where the table begins and ends”",
    "decimal": "the question that begins with “How large is”",
    "confidence": (
        f"“Each interval or set of classes contains the truth with probability” {_SECOND}"
    ),
    "minimum": f"“No value is below” {_SECOND}",
    "maximum": f"“or above” {_SECOND}",
    "reject": f"“Mark the least certain rows as too unsure” {_SECOND}",
    "label_conditional": f"“Within every class by itself” {_SECOND}",
    "class_shares": f"“Do you know how frequent each class is?” {_SECOND}",
    **{card.flag: f"“{card.title}” {_SECOND}" for card in CARDS.values() if card.flag},
}


def spell_for_page(name: str, value: object) -> str:
    """Return where the page sets an option.

    For those that it has no place for, the flag of the command line.
    """
    shell = f"`{in_shell(name, value)}` on the command line"
    if name in PAGE_CONTROLS:
        return PAGE_CONTROLS[name].format(TASK_NOUNS.get(str(value), "…"))
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
    # Spellings of one thing: column, name, spellings; and those that were said to differ.
    same: list[list[str]] = field(default_factory=list)
    apart: list[list[str]] = field(default_factory=list)
    case_sensitive: bool = False  # whether classes that differ in capitals only are different
    id: str | None = None
    sheet: str | None = None
    # Where the table is in its sheet, as rows of the file: its names, and its data.
    header: int | None = None
    rows: str | None = None
    decimal: str | None = None  # the sign of numbers that may have either
    besides: list[str] = field(default_factory=list)  # other columns that are filled along
    # What was predicted elsewhere of the target: one column, or the probability of each class.
    predictions: list[str] = field(default_factory=list)
    way: str | None = None  # how the labels came about
    column: str | None = None  # that says so
    # What a person who picked the rows answered: whether the value, and whether other columns,
    # played a part.
    picked: dict[str, bool] | None = None
    also: str | None = None  # what decided besides, as a flag of the command line
    also_column: str | None = None  # that says so
    # The share of each class among the rows without a value, where a person knows it.
    shares: dict[str, float] | None = None
    minimum: float | None = None  # that a value of the target can have
    maximum: float | None = None
    reject: float | None = None  # share of the rows that are marked as too unsure
    label_conditional: bool = False  # whether the guarantee is to hold within every class
    confidence: float = 0.9
    guarantee: str = "auto"
    task: str = "auto"
    labels: int = 0  # which version of those of the labelling page takes part; 0 if none does
    added: str | None = None  # a column to label that the table does not have
    # Known values of the target that were corrected on the page: ``row``, its ``name``, what the
    # cell ``was``, and what it is ``now``; and rows whose values were looked at and are right.
    corrected: list[JsonObject] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    step: str = "table"

    def __post_init__(self) -> None:
        lists = [*self.ignore, *self.text, *self.number, *self.missing, *self.keep]
        lists += [text for group in (*self.same, *self.apart) for text in group]
        texts = [self.target, self.added, self.id, self.sheet, self.column, *lists]
        texts += [self.also, self.also_column, self.rows, self.decimal, *self.besides]
        texts += self.predictions
        if any(word is not None and not isinstance(word, str) for word in texts):
            raise ValueError("Columns and values are named by text.")
        checks.check_whole("labels", self.labels, least=0)
        if self.header is not None:
            checks.check_whole("header", self.header, least=0)
        _ = self.layout  # refuses rows that cannot be
        checks.check_choice("step", self.step, STEPS)
        if self.way is not None:
            checks.check_choice("way", self.way, tuple(CARDS))
        if self.also is not None:
            checks.check_choice("also", self.also, CARDS[self.way or "chance"].also)
        _check_shares(self.shares)
        _check_picked(self.picked)
        _check_corrected(self.corrected, self.right)
        self.options()  # refuses what `fill` does not take

    @property
    def layout(self) -> LayoutRequest:
        """Where the table is in its sheet."""
        return LayoutRequest.read(self.header, None, self.rows, self.decimal)

    @property
    def targets(self) -> list[str]:
        """All columns to be filled, the one that is shown first."""
        if self.target is None:
            return []
        return [self.target, *self.besides]

    def of_column(self, name: str) -> Choices:
        """Return the choices of one of several columns that are filled.

        None is a feature of another, and what was said of the first alone is said of no other;
        labels of the labelling page are of the first, too.
        """
        others = [other for other in self.targets if other != name]
        choices = replace(self, besides=[], ignore=[*self.ignore, *others])
        if name == self.target:
            return choices
        alone = Choices()
        of_first = (
            "task",
            "minimum",
            "maximum",
            "label_conditional",
            "predictions",
            "corrected",
            "right",
            "labels",
            "shares",
        )
        if self.labels and self.way is None:
            choices = replace(choices, way="unknown")
        return replace(choices, target=name, **{word: getattr(alone, word) for word in of_first})

    @property
    def flags(self) -> JsonObject:
        """How the labels came about, as flags of the command line."""
        card = CARDS[self.way or "chance"]
        besides = {}
        if self.also is not None and self.also_column is not None:
            besides[self.also] = self.also_column
        if not card.flag:
            return besides
        if self.way == "class" and self.shares is not None:
            return {"class_shares": spell_shares(self.shares), **besides}
        if not card.column:
            return {card.flag: card.value, **besides}
        if self.column is None:
            return {}
        return {card.flag: self.column, **besides}

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
        unknown = set(changes) - {choice.name for choice in fields(self)}
        if unknown:
            raise ValueError(f"There is nothing called {min(unknown)!r} to choose.")
        lists = ("ignore", "text", "number", "missing", "keep", "same", "apart", "besides")
        for name in (*lists, "predictions"):
            if not isinstance(changes.get(name, []), list):
                raise ValueError(f"{name} is a list.")
        changes = _with_way(self, changes)
        new = replace(self, **changes)
        of_target: JsonObject = {"labels": 0, "task": "auto", "minimum": None, "maximum": None}
        of_target |= {"corrected": [], "right": [], "reject": None, "label_conditional": False}
        of_target |= {"predictions": [], "shares": None}
        if new.target == self.target:
            of_target = {}
        mended = {name: value for name, value in of_target.items() if name not in changes}
        of_columns = ("id", "column", "also_column")
        mended |= {name: None for name in of_columns if getattr(new, name) == new.target}
        used = {new.target, new.id, new.column, new.also_column}
        for name in ("ignore", "text", "number", "besides", "predictions"):
            chosen = mended.get(name, getattr(new, name))
            mended[name] = [choice for choice in chosen if choice not in used]
        for name in ("besides", "predictions"):
            mended[name] = [choice for choice in mended[name] if choice not in mended["ignore"]]
        if new.target in new.number and new.target == self.target:
            mended["number"].append(new.target)
        return replace(new, **mended)


def _check_corrected(corrected: list[JsonObject], right: list[int]) -> None:
    """Raise a ValueError unless these are corrections, and rows, as the page writes them."""
    for line in corrected:
        if set(line) != {"row", "name", "was", "now"} or not isinstance(
            line["now"], str | float | int | None
        ):
            raise ValueError("A correction has a row, what was there, and what is there now.")
    for row in [*right, *(line["row"] for line in corrected)]:
        checks.check_whole("row", row, least=0)


def _check_shares(shares: object) -> None:
    """Raise a ValueError unless these are shares of classes; `options` checks what they sum to."""
    if shares is None:
        return
    if not isinstance(shares, dict) or not all(map(checks.is_number, shares.values())):
        raise ValueError("Give the share of each class as a number.")


def _check_picked(picked: object) -> None:
    """Raise a ValueError unless this is what a person answered who picked the rows."""
    if picked is None:
        return
    answers = picked if isinstance(picked, dict) else {"": None}
    if not set(answers) <= set(PICKED) or not all(
        isinstance(answer, bool) for answer in answers.values()
    ):
        raise ValueError("Say yes or no to each question on how the rows were picked.")


def way_of_picked(picked: Mapping[str, bool], *, classes: bool) -> str | None:
    """Return the card that answers to the two questions lead to; None until both are there.

    Where the class alone counted, chance decided within each class. Where the value counted in any
    other way, nothing but a draw helps.
    """
    if set(picked) != set(PICKED):
        return None
    if picked["value"] and classes and not picked["columns"]:
        return "class"
    if picked["value"]:
        return "value"
    if picked["columns"]:
        return "unknown"
    return "chance"


def _with_way(choices: Choices, changes: Mapping[str, Any]) -> JsonObject:
    """Return changes with what another way, or another target, takes back."""
    mended = dict(changes)
    if "target" in changes and changes["target"] != choices.target and choices.picked is not None:
        mended.setdefault("way", None)  # whether its values are classes counted
    if "way" in mended:
        mended = {"picked": None, "also": None, "also_column": None, "shares": None, **mended}
    return mended


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
            content = json.loads(path.read_text("utf-8"))
            return cls(
                Choices(**content["choices"]),
                int(content["revision"]),
                bool(content["open"]),
            )
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"{path.name} is damaged") from error

    def write(self, path: Path) -> None:
        """Write it in one piece, as private as its table.

        The old file or the new one is there, whatever happens.
        """
        text = json.dumps({"format": 1, **asdict(self)}, ensure_ascii=False, indent=1)
        table = path.with_name(path.name.removesuffix(ENDING))
        write_text(path, text, force=True, like=[table])


def _free_name(path: Path, ending: str = "") -> Path:
    """Return a name, or one with a number before its ending, that no file has."""
    first = path.name.removesuffix(ending)
    numbered = (path.with_name(f"{first}-{number}{ending}") for number in itertools.count(2))
    return next(name for name in itertools.chain([path], numbered) if not os.path.lexists(name))


class Workspace:
    """A folder of tables, one of which is open in each tab of the browser."""

    def __init__(self, folder: str | Path = ".", table: str | None = None) -> None:
        self.folder = Path(folder).resolve()
        self._last: str | None = None  # the table that was opened last
        self.notes: list[str] = []
        self._told: dict[str, list[str]] = {}  # notes for who opens a table next
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

    @property
    def name(self) -> str | None:
        """The open table; of a request, the one that its tab has open."""
        asked = TABLE.get()
        if asked is None:
            return self._last
        try:
            self.path_of(asked)
        except (ValueError, OSError):  # it is not there any more, or no table is open
            return None
        return asked

    @name.setter
    def name(self, name: str | None) -> None:
        self._last = name
        if TABLE.get() is not None:
            TABLE.set(name or "")

    # ---------------------------------------------------------------------------------- the folder

    def tables(self) -> list[JsonObject]:
        """Return the tables in the folder, those first that were open before."""
        tables = []
        for path in self.folder.iterdir():
            with suppress(FileNotFoundError):  # somebody deletes it just now
                if self._is_table(path):
                    tables.append(self._line_of(path))
        tables.sort(key=lambda line: (not line["begun"], str(line["name"]).casefold()))
        return tables[:MOST_LISTED]

    def _is_table(self, path: Path) -> bool:
        if path.name.startswith(".") or not files.is_table_name(path):
            return False
        if not path.is_file() or is_journal(path):
            return False
        with suppress(OSError):
            return files.kind_of(path)[0] is not None or is_database(path)
        return False

    def _line_of(self, path: Path) -> JsonObject:
        about = path.stat()
        return {
            "name": path.name,
            "bytes": about.st_size,
            "changed": about.st_mtime,
            "begun": self._beside(path.name).exists(),
        }

    def pictures(self, most: int = MOST_COUNTED) -> list[str]:
        """Return the pictures in the folder, and in those in it."""
        return pictures_below(self.folder, most)

    def list_pictures(self) -> str:
        """Write a table of all pictures in the folder, and return its name."""
        names = self.pictures(MOST_PICTURES)
        if not names:
            raise ValueError("There is no picture in this folder.")
        path = _free_name(self.folder / PICTURES, ".csv")
        text = table_of_pictures(names).to_csv(index=False, lineterminator="\n")
        write_text(path, text, like=[self.folder / names[0]])
        return path.name

    def write_example(self) -> str:
        """Write a real table with missing prices to try the page on; return its name."""
        path = self.folder / EXAMPLE
        if not path.exists():
            houses = load_houses()[0].astype({"price": "Int64"})
            write_text(path, houses.to_csv(index=False, lineterminator="\n"))
            kept.note_copy(path, self.folder / ENDING)
        return path.name

    def path_of(self, name: str) -> Path:
        """Return a table of the folder, or raise a ValueError: nothing outside of it is opened."""
        path = self.folder / name
        is_table = path.is_file() and not path.is_symlink() and files.is_table_name(name)
        if Path(name).name != name or not is_table:
            raise ValueError(f"There is no table {name!r} in this folder.")
        return path

    async def keep(self, name: str, content: AsyncIterator[bytes]) -> str:
        """Write a file that was dropped beside the others, under a name of its own.

        Return the name.
        """
        wanted = name.replace("\\", "/").rpartition("/")[2].lstrip(".").strip()
        if not wanted.isprintable() or len(wanted) > 150 or not files.is_table_name(wanted):
            if Path(wanted).suffix.lower() in IMAGES:
                raise ValueError(
                    f"{wanted[:80]!r} is a picture: put all your pictures into the folder "
                    f"{self.folder.name!r}, and this page makes a table of them."
                )
            raise ValueError(
                f"{wanted[:80]!r} is no table that can be read here: save the table as .xlsx or "
                ".csv in the program that it is of, and drop that file."
            )
        free = _free_name(self.folder / wanted, wanted[wanted.index(".") :])
        size = 0
        with whole_file(free) as file:
            async for part in content:
                size += len(part)
                if size > LARGEST_UPLOAD:
                    raise ValueError("The file is too large to be dropped: put it into the folder.")
                await run_in_threadpool(file.write, part)
            if not size:
                raise ValueError(f"{wanted!r} is empty.")
        kept.note_copy(free, self.folder / ENDING)
        return free.name

    # ----------------------------------------------------------------------------------- the table

    def _beside(self, name: str) -> Path:
        return self.folder / f"{name}{ENDING}"

    def unchanged(self) -> AbstractContextManager[Any]:
        """Let no table be opened, and nothing be said of it, until what is read of it is whole."""
        return self._lock

    @property
    def path(self) -> Path:
        """The open table."""
        if self.name is None:
            raise ValueError("Open a table first.")
        return self.folder / self.name

    @property
    def computed(self) -> Path:
        """The folder with what was computed of the open table."""
        return self.computed_of(self.path.name)

    def computed_of(self, name: str) -> Path:
        """Return the folder with what was computed of a table."""
        folder = self.folder / ENDING / name
        if not folder.resolve().is_relative_to(self.folder):
            raise ValueError(f"{ENDING} leads out of this folder: remove it.")
        return folder

    def kept(self) -> list[kept.Kept]:
        """Return what the page keeps of the open table."""
        return kept.kept_of(self.path, self._beside(self.path.name), self.computed)

    def delete(self, what: str, name: str) -> None:
        """Delete something that the page keeps of the open table.

        A copy goes with all that was kept of it, and what was said with what was computed.
        """
        with self._lock:
            kept_files = self.kept()
            if not any(file.what == what and file.path.name == name for file in kept_files):
                raise ValueError("This is not there any more.")
            for file in kept_files:
                is_it = file.what == what and file.path.name == name
                goes_along = what == "copy" or (what == "said" and file.what == "computed")
                if is_it or goes_along:
                    kept.delete(file)
            if what == "copy":
                self.name = None

    @property
    def saved(self) -> Saved:
        """What is known of the open table, as the file has it."""
        if self.name is None:
            return Saved()
        file = self._beside(self.name)
        try:
            if file.exists():
                return Saved.read(file)
        except ValueError as error:
            aside = _free_name(file.with_name(f"{file.name}-damaged"))
            file.rename(aside)
            self.notes.append(f"{error}: it was put aside as {aside.name}, and begun anew.")
        return Saved(self._at_first)

    @property
    def _at_first(self) -> Choices:
        """What holds of the open table before anybody has said anything of it."""
        if self.name is None:
            return Choices()
        try:
            return Choices(sheet=largest_table(self.folder / self.name))
        except ValueError:  # a database that cannot be read: what is wrong is said when it is
            return Choices()

    def open(self, name: str | None) -> None:
        """Open a table where it was left, or close the open one."""
        with self._lock:
            if name is not None:
                self.path_of(name)  # refuses what is no table of this folder
            self.notes = self._told.pop(name or "", [])
            self._mark_open(False)
            self.name = name
            self._mark_open(True)

    def said_of(self, name: str) -> Choices:
        """Return what was said of a table of the folder."""
        self.path_of(name)  # refuses what is no table of this folder
        return Saved.read(self._beside(name)).choices

    def adopt(self, name: str, choices: Choices, notes: list[str]) -> None:
        """Say of a table what was said of another one, whose corrected copy it is.

        What became of that is told when it is opened.
        """
        self.path_of(name)
        Saved(choices, open=False).write(self._beside(name))
        self._told[name] = notes

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

    def change(
        self,
        table: str,
        revision: int,
        changes: Mapping[str, Any],
    ) -> Saved:
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
            if said_before or replace(new.choices, step="table") != self._at_first:
                new.write(self._beside(table))
            return new
