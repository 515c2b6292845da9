"""What a folder of filled parts holds, and what may be removed from it.

It says whose the folder is, and which of its parts are complete.

Nothing in the folder is written over or removed unless the manifest names it as written by this
program.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transduce.app.tables.parts import is_kept_name
from transduce.core.files import (
    is_temporary,
    make_folder,
    remove_folders,
    remove_torn,
    write_text,
)
from transduce.core.types import JsonObject
from transduce.core.words import counted, option

MANIFEST = "_manifest.json"  # named so that readers of a folder of Parquet pass over it
LOCK = ".lock"
_WRITER = "transduce"
_FORMAT = 2
_INCOMPLETE = "incomplete"
_COMPLETE = "complete"
_WORK_NAME = re.compile(r"\.work-[0-9a-f]{16}")
_PART_NAME = re.compile(r"part-\d{5,}-[^/\\]*")
_BLOCK = 2**20


@dataclass
class Manifest:
    """What is known of a folder of filled parts; `save` writes it into the folder."""

    folder: Path
    sources: tuple[Path, ...]  # the files of the table: nobody else may read what is made of them
    of: JsonObject = field(default_factory=dict)  # the table and the settings
    state: str = _INCOMPLETE
    model: str = ""  # a hash of what the fit answers
    planned: list[str] = field(default_factory=list)  # names of all parts, whether or not complete
    parts: dict[str, JsonObject] = field(default_factory=dict)  # the complete ones
    replaced: list[str] = field(default_factory=list)  # parts of an earlier table in this folder
    reports: dict[str, str] = field(default_factory=dict)  # files outside of it, and their hashes
    work: str = ""  # the folder in which texts are kept as Parquet
    result: JsonObject = field(default_factory=dict)  # the guarantee and counts, at the end
    is_new: bool = True  # whether the folder had no manifest before this run
    earlier: Manifest | None = None  # what `force` replaces

    # ---- from and to the disk

    @classmethod
    def read(cls, folder: Path, sources: Sequence[Path] = ()) -> Manifest | None:
        """Return the manifest of a folder, or None if it has none.

        A FileExistsError says that the file is not one of ours.
        """
        path = folder / MANIFEST
        if not path.exists():
            return None
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            written_here = content.get("written_by", _WRITER) == _WRITER and "format" in content
            if not written_here:
                raise ValueError
            return cls(
                folder,
                tuple(sources),
                of=dict(content["of"]),
                state=str(content["state"]),
                model=str(content["model"]),
                planned=list(filter(_is_part_name, content.get("planned", content["parts"]))),
                parts={k: dict(v) for k, v in content["parts"].items() if _is_part_name(k)},
                replaced=list(filter(_is_part_name, content.get("replaced", []))),
                reports=dict(content.get("reports", {})),
                work=_work_name(content.get("work", "")),
                result={name: content[name] for name in ("guarantee", "counts") if name in content},
                is_new=False,
            )
        except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError) as error:
            raise FileExistsError(
                f"{path} is not a manifest of transduce, or it is damaged: move it away, "
                "or name another folder."
            ) from error

    def save(self) -> None:
        """Write the manifest in one piece."""
        content = {
            "written_by": _WRITER,
            "format": _FORMAT,
            "state": self.state,
            "of": self.of,
            "model": self.model,
            "planned": self.planned,
            "parts": self.parts,
            "replaced": self.replaced,
            "reports": self.reports,
            "work": self.work,
            **self.result,
        }
        text = json.dumps(content, indent=1, default=str, ensure_ascii=False)
        write_text(self.folder / MANIFEST, text, force=True, like=self.sources)

    # ---- may it be used

    @classmethod
    def open(
        cls,
        folder: Path,
        sources: Sequence[Path],
        of: JsonObject,
        *,
        force: bool,
    ) -> Manifest:
        """Return the manifest to go on with.

        A FileExistsError says what else the folder holds.
        """
        manifest = cls.read(folder, sources)
        if manifest is None:
            others = sorted(
                name for name in os.listdir(folder) if name != LOCK and not is_temporary(name)
            )
            if others and not force:
                raise FileExistsError(
                    f"{folder} holds other files, such as {others[0]}: name an empty or a new "
                    f"folder, or use {option('force', True)}."
                )
            return cls(folder, tuple(sources), of=of)
        if force:
            return cls(
                folder,
                tuple(sources),
                of=of,
                replaced=sorted({*manifest.planned, *manifest.parts, *manifest.replaced}),
                work=manifest.work,
                is_new=False,
                earlier=manifest,
            )
        if manifest.of != json.loads(json.dumps(of, default=str)):
            raise FileExistsError(
                f"{folder} holds another table, or one filled with other settings: "
                f"name another folder, or use {option('force', True)}."
            )
        if manifest.state == _COMPLETE:
            raise FileExistsError(
                f"{folder} holds this table, filled already{manifest._changes_since()}; "
                f"to fill it again use {option('force', True)}."
            )
        return manifest

    def check_strangers(self, planned: Sequence[str], ending: str) -> None:
        """Refuse a folder in which a stranger's file would be read as filled rows.

        It raises a FileExistsError.
        """
        own_names = self._own_names()
        for name in sorted(os.listdir(self.folder)):
            is_read = name.endswith(ending) and not name.startswith((".", "_"))
            if name not in own_names and (is_read or name in planned):
                raise FileExistsError(
                    f"{self.folder} holds {name}, which is no part of the filled table and would "
                    "be read as rows of it: move it away, or name another folder."
                )

    def _own_names(self) -> set[str]:
        return {*self.planned, *self.parts, *self.replaced}

    def plan(self, names: Iterable[str]) -> None:
        """Note the names of all parts: from now on, parts of an earlier table are replaced."""
        own_names = self._own_names()
        self.planned = list(names)
        self.replaced = sorted(own_names.difference(self.planned))
        self.earlier = None

    # ---- its parts

    def check_parts(self) -> list[str]:
        """Forget the parts that are not as they were written, and return their names."""
        damaged = self.damaged_parts()
        for name in damaged:
            del self.parts[name]
        return damaged

    def damaged_parts(self) -> list[str]:
        """Return the names of the parts that are not as they were written, or are gone."""
        return [name for name, part in self.parts.items() if not is_intact(self.folder, part)]

    def _changes_since(self) -> str:
        """Return, for a sentence, which parts of a complete table are no longer as written."""
        gone = [name for name in self.parts if not (self.folder / name).exists()]
        changed = [name for name in self.damaged_parts() if name not in gone]
        words = ""
        for names, change in ((gone, "gone"), (changed, "damaged or changed since")):
            if names:
                listed = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
                parts = counted(len(names), "part is", "parts are")
                words += f", but {parts} {change}: {listed}"
        return words

    def complete(self, **result: Any) -> None:
        """Say that all is there, and remove the parts of an earlier table."""
        for name in self.replaced:
            _remove_file(self.folder / name)
        self.replaced = []
        self.remove_work()
        self.state = _COMPLETE
        self.result = result
        self.save()

    def abandon(self) -> None:
        """After a refusal: leave the folder as it was found, unless a part has been written."""
        written = self.parts or any((self.folder / name).exists() for name in self.planned)
        if self.earlier is not None:  # of which nothing was replaced yet
            if self.work:
                self.remove_work()
                self.earlier.work = ""
                self.earlier.save()
        elif self.is_new and not written:
            self.remove_work()
            _remove_file(self.folder / MANIFEST)

    # ---- the folder for work

    def make_work(self) -> Path:
        """Return the folder in which texts are kept as Parquet.

        It is that of an earlier run if there is one.
        """
        if not self.work or not (self.folder / self.work).is_dir():
            self.work = f".work-{secrets.token_hex(8)}"
            self._save_work()  # before it is there, so that it is known as ours whatever happens
            make_folder(self.folder / self.work, like=self.sources)
        return self.folder / self.work

    def _save_work(self) -> None:
        if self.earlier is None:
            self.save()
        else:  # which stays as it is until the first part is replaced
            self.earlier.work = self.work
            self.earlier.save()

    def remove_work(self) -> None:
        """Remove the folder for work with what was kept in it; files of others in it stay."""
        if not self.work:
            return
        work = self.folder / self.work
        remove_torn(work)
        with suppress(OSError):
            for name in filter(is_kept_name, os.listdir(work)):
                _remove_file(work / name)
        remove_folders([work])
        self.work = ""


def _is_part_name(name: object) -> bool:
    return isinstance(name, str) and _PART_NAME.fullmatch(name) is not None


def _work_name(name: Any) -> str:
    if isinstance(name, str) and _WORK_NAME.fullmatch(name):
        return name
    return ""


def _remove_file(path: Path) -> None:
    if path.is_file() and not path.is_symlink():
        path.unlink(missing_ok=True)


# ---- hashes


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def is_intact(folder: Path, part: JsonObject) -> bool:
    """Return whether a complete part is as it was written: by its size, then by its hash."""
    path = folder / str(part.get("name"))
    try:
        return path.stat().st_size == part["bytes"] and file_hash(path) == part["sha256"]
    except (OSError, KeyError):
        return False


def is_own_report(folder: Path, path: Path) -> bool:
    """Return whether a file is a report of this folder by a run that was stopped."""
    try:
        manifest = Manifest.read(folder)
        if manifest is None or manifest.state == _COMPLETE:
            return False
        return manifest.reports.get(os.path.realpath(path)) == file_hash(path)
    except OSError:
        return False
