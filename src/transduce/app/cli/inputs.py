"""What commands read first: their options, the table, and where they may write."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import typer

from transduce.app.auditing.reading import join_checks
from transduce.app.filling.options import LABEL_FLAGS, OPTIONS, Options
from transduce.app.tables import files as tables
from transduce.app.tables.formats import Table
from transduce.app.tables.glances import is_too_large
from transduce.app.tables.layout import LayoutRequest
from transduce.app.tables.parts import is_many
from transduce.conformal.designs.registry import design_of_flags
from transduce.core.computing import stage
from transduce.core.types import OptionValues
from transduce.core.words import OptionError, quoted

Show = Callable[[], None]  # prints what was found, once the progress bars are gone
BYTES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


def read_options(given: OptionValues) -> Options:
    """Return the options of a command, as `fill` and its result take them."""
    flags = {name: given[name] for name in LABEL_FLAGS if name in given}
    options = {name: value for name, value in given.items() if name in OPTIONS}
    options |= {
        name: value or [] for name, value in options.items() if OPTIONS[name].kind.type is list
    }
    try:
        return Options.read({**options, "labels": design_of_flags(flags)}, questions=True)
    except ValueError as error:
        raise OptionError(str(error)) from None


def read_table(table: str, given: Mapping[str, Any]) -> Table:
    """Return a table in a file, or from standard input; options say where it is in it."""
    with stage("reading"):
        layout = LayoutRequest.read(
            given.get("header"),
            given.get("skip"),
            given.get("rows"),
            given.get("decimal"),
        )
        return tables.read(
            table,
            sheet=given.get("sheet"),
            force=given.get("force", False),
            layout=layout,
        )


def with_list(source: Table, targets: list[str], given: OptionValues) -> Table:
    """Return a table with the labels of a list of drawn rows that came back, if one is named."""
    if given["checks"] is None:
        return source
    table_of_checks = read_table(str(given["checks"]), {})
    checks = table_of_checks.frame
    source = source.with_account(table_of_checks.notes_elsewhere, given["checks"])
    if len(targets) > 1 and not checks.columns.isin(targets).any():
        raise typer.BadParameter(
            f"--checks: {given['checks']} has none of the columns {quoted(targets)}."
        )
    for target in targets:
        source = source.with_column(target)
        if target not in checks.columns and len(targets) > 1:
            continue  # of several columns the list may have one
        joined, notes = join_checks(
            source.frame,
            checks,
            given["id"],
            [target],
            other_labels=targets,
            missing=given["missing"] or (),
        )
        before = source.frame[target].astype(object)
        after = joined[target].astype(object)
        changed = after.notna() & ~(before.eq(after) & before.notna())
        labels = {row: after.iloc[row] for row in np.flatnonzero(changed.to_numpy()).tolist()}
        source = source.with_labels(target, labels).with_account(notes, given["checks"])
    return source


def is_in_parts(table: str, given: OptionValues) -> bool:
    """Return whether a table is to be filled part by part.

    It is several files, or a large one, or goes to a folder.
    """
    if table == "-":
        return False
    if is_many(table) or given["memory"] or given["cluster"]:
        return True
    if given["out"] is not None:
        return given["out"].endswith(("/", "\\")) or Path(given["out"]).is_dir()
    return not given["force"] and is_too_large(Path(table))


def read_size(text: str) -> float:
    """Return a number of bytes."""
    refusal = typer.BadParameter(f"{text!r} is not a size: write it as 2GB or 500MB.")
    size = re.fullmatch(r"\s*([\d.]+)\s*([kmgt]?)i?b?\s*", text.lower())
    if size is None:
        raise refusal
    try:
        return float(size[1]) * BYTES[size[2]]
    except (ValueError, OverflowError):
        raise refusal from None


def default_out(table: str, word: str = "filled") -> str:
    """Return where the filled table goes by default: beside the table, or to standard output."""
    if table == "-":
        return "-"
    return str(tables.named_after(table, word))


def check_paths(table: str, *paths: str | Path | None, force: bool, folder: bool = False) -> None:
    """Refuse to write two things to one file, or over a file.

    Only the last may be written over the table.
    """
    *others, out = paths
    named = [Path(path).resolve() for path in paths if path is not None and str(path) != "-"]
    if len(set(named)) < len(named) or sum(str(path) == "-" for path in paths) > 1:
        raise typer.BadParameter(
            "Two of the files to write are the same file: give each a name of its own."
        )
    not_tables = [Path(path).resolve() for path in others if path is not None and str(path) != "-"]
    if table != "-" and Path(table).resolve() in not_tables:
        raise typer.BadParameter(
            f"{table} is the table itself: write everything else to other files."
        )
    if not folder:
        others.insert(0, out)
    for path in others:
        if path is not None:
            tables.check_name_free(path, force=force)
