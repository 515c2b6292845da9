"""`transduce fill`: columns of a table in one file or in many, filled and written."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import typer

from transduce.app.cli.inputs import (
    Show,
    check_paths,
    default_out,
    is_in_parts,
    read_options,
    read_size,
    read_table,
    with_list,
)
from transduce.app.cli.selection import about_selection, mark_rows, read_selection, select_rows
from transduce.app.cli.terminal import show_result, tell
from transduce.app.estimating.groups import read_groups
from transduce.app.filling import FillResult, LocalRunner, cluster_runner, save
from transduce.app.filling.engine import fill_targets
from transduce.app.filling.folder import fill_folder_and_finish
from transduce.app.filling.manifest import is_own_report
from transduce.app.filling.options import OF_ALL_ROWS, OWN_COLUMNS, Options
from transduce.app.filling.runners import Runner
from transduce.app.tables import files as tables
from transduce.app.tables.files import check_fits, out_kind, write
from transduce.app.tables.formats import Table
from transduce.conformal import Selection
from transduce.core.computing import stage
from transduce.core.files import together
from transduce.core.types import OptionValues
from transduce.core.words import flag
from transduce.model_selection.own_models import as_stored


def fill_file(table: str, targets: list[str], given: OptionValues, by: Sequence[str] = ()) -> Show:
    """Fill columns of a table in a file; write the table, a report and the numbers of each.

    Reports show the whole column by the groups of the columns that `by` names.
    """
    options = read_options(given)
    _check_targets(targets, given)
    if by and given["report"] is None and given["json"] is None:
        raise typer.BadParameter("--by is for --report and --json: name one of them.")
    wanted = None
    if given["select"] is not None:
        wanted = read_selection(given["select"])
        if options.guarantee == "auto":
            options = replace(options, guarantee="column")  # rows are picked by labels held out
    if is_in_parts(table, given):
        if by:
            raise typer.BadParameter(
                "--by: only for a table that is filled in memory; ask `transduce estimate` by "
                "groups of one in parts."
            )
        return _fill_parts(table, targets, options, given)
    force = given["force"]
    out = _out_of(table, given)
    reports = [_reports(given)]
    if len(targets) > 1:
        reports = [_reports(given, name) for name in targets]
    report_paths = [path for of_target in reports for path in of_target]
    check_paths(table, *report_paths, given["save"], out, force=force)
    source = read_table(table, given)
    check_fits(out, source, 10 * len(targets))
    targets = [source.column_called(name) for name in targets]
    for name in targets:
        source.check_column(name)
    by = [source.column_called(name) for name in by]
    _check_groups(source, by, targets)
    source = with_list(source, targets, given)
    if given["save"] is not None:
        as_stored(options.parts)  # what cannot be saved is refused before the fit
    results = list(fill_targets(source, targets, options).values())
    selections = []
    if wanted is not None:
        selections = [select_rows(result, wanted) for result in results]
    with together():
        if given["save"] is not None:
            asked = {  # not of the filled table alone
                name: value for name, value in options.as_dict().items() if name not in OF_ALL_ROWS
            }
            save(given["save"], source, targets[0], force=force, **asked)
        written = write_filled(source, results, out, reports, force, selections, by)
    if given["save"] is not None:
        written.append(str(given["save"]))
    if not given["quiet"]:
        for result in results:
            result.compute_all()
    return partial(_show_filled, results, selections, written, out, quiet=given["quiet"])


def _check_targets(targets: list[str], given: OptionValues) -> None:
    """Refuse a target that is named twice, and several where one model is to be saved."""
    twice = [name for place, name in enumerate(targets) if name in targets[:place]]
    if twice:
        raise typer.BadParameter(f"--target {twice[0]} is given twice.")
    if len(targets) > 1 and given["save"] is not None:
        raise typer.BadParameter("--save is for one target: save each by itself.")


def _check_groups(source: Table, by: Sequence[str], targets: list[str]) -> None:
    """Refuse, before anything is fitted, to group by a column that has no groups."""
    for name in by:
        if name in targets:
            raise typer.BadParameter(f"--by {name} is filled: group by another column.")
        read_groups(source.frame, name)


def _out_of(table: str, given: OptionValues) -> Any:
    """Return where the filled table goes: a file of a format that can be written, or "-"."""
    out = given["out"]
    if out is None:
        out = default_out(table)
    try:
        out_kind(out, "csv")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return out


def _show_filled(
    results: list[FillResult],
    selections: list[Selection],
    written: list[str],
    out: Any,
    *,
    quiet: bool,
) -> None:
    """Print what was found about each target, and where it was written after the last."""
    for place, result in enumerate(results, start=1):
        files_written = written if place == len(results) else []
        show_result(result, files_written, err=out == "-", quiet=quiet)
    for result, selection in zip(results, selections, strict=False):
        tell(about_selection(result, selection), err=out == "-")


def _fill_parts(
    table: str,
    targets: list[str],
    options: Options,
    given: OptionValues,
) -> Show:
    """Fill a table part by part into a folder."""
    _refuse_in_parts(targets, options, given)
    out = _folder_of(table, given)
    reports = _reports(given)
    # A report of an earlier run that was stopped is written again.
    again: list[Path | None] = []
    new: list[Path | None] = []
    for path in reports:
        is_again = path is not None and is_own_report(out, path)
        again.append(path if is_again else None)
        new.append(None if is_again else path)
    check_paths(table, *new, out, force=given["force"], folder=True)
    limit = None
    if given["memory"] is not None:
        limit = read_size(given["memory"])

    def finish(result: FillResult) -> None:
        _write_reports(result, new, given["force"])
        _write_reports(result, again, True)

    with _running(options, given) as runner:
        settings = {"memory": limit, "runner": runner, "force": given["force"], **options.as_dict()}
        result = fill_folder_and_finish(table, targets[0], out, finish=finish, **settings)
    written = [f"{out} ({len(result.frame.parts):,} parts)"]
    written += [str(path) for path in reports if path is not None]
    if not given["quiet"]:
        result.compute_all()
    return lambda: show_result(result, written, quiet=given["quiet"])


def _refuse_in_parts(targets: list[str], options: Options, given: OptionValues) -> None:
    """Refuse what can be asked only of a table that is filled in memory."""
    asked = {flag(name): getattr(options, name) for name in OWN_COLUMNS}
    asked["several targets"] = len(targets) > 1
    for name in ("select", "sheet", "header", "skip", "rows", "decimal", "checks", "save"):
        asked[f"--{name}"] = given[name] is not None
    odd = [name for name, is_asked in asked.items() if is_asked]
    if odd:
        raise typer.BadParameter(
            f"{odd[0]}: only for a table that is filled in memory, not for one in parts."
        )


def _folder_of(table: str, given: OptionValues) -> Path:
    """Return the folder that the parts of a table are written to."""
    if not given["out"]:
        beside = f"{table.rstrip('/*')}-filled"
        if "*" in beside or "?" in beside:
            raise typer.BadParameter(
                "name the folder to write to with --out, such as --out filled/."
            )
        return Path(beside)
    out = Path(given["out"])
    is_table = tables.kind_of(out)[0] is not None and not out.is_dir()
    if given["out"] == "-" or out.is_file() or is_table:
        raise typer.BadParameter(
            "a table in parts is written to a folder: name one, such as --out filled/."
        )
    return out


def _running(options: Options, given: OptionValues) -> AbstractContextManager[Runner]:
    """Return what works on the parts: processes of this machine, or those of a cluster."""
    if given["cluster"]:
        return cluster_runner(given["cluster"])
    n_jobs = -1
    if options.n_jobs is not None:
        n_jobs = options.n_jobs
    return contextlib.nullcontext(LocalRunner(n_jobs))


def _reports(given: OptionValues, target: str = "") -> list[Path | None]:
    """Return where the report and the numbers go.

    Those of one of several targets are named by it.
    """
    ways = [given["report"], given["json"]]
    word = re.sub(r"[^\w.-]+", "-", target)
    if not target:
        return ways
    return [path and path.with_name(f"{path.stem}-{word}{path.suffix}") for path in ways]


def _write_reports(
    result: FillResult, paths: list[Path | None], force: bool, by: Sequence[str] = ()
) -> list[str]:
    """Write the report and the numbers where that is asked for; return where."""
    for path, write_one in zip(paths, (result.report, result.json), strict=True):
        if path is not None:
            write_one(path, by=list(by), force=force)
    return [str(path) for path in paths if path is not None]


def write_filled(
    source: Table,
    results: list[FillResult],
    out: str,
    reports: list[list[Path | None]],
    force: bool,
    selections: Sequence[Selection] = (),
    by: Sequence[str] = (),
) -> list[str]:
    """Write what was asked for, the reports first: they are what can fail; return where."""
    pairs = zip(results, reports, strict=True)
    written = [path for result, paths in pairs for path in _write_reports(result, paths, force, by)]
    new = pd.concat([result.columns_for_file for result in results], axis=1)
    for result, selection in zip(results, selections, strict=False):
        new = pd.concat([new, mark_rows(result, selection)], axis=1)
    with stage("writing"):
        write(out, source, new, force=force)
    if out == "-":
        return written
    return [out, *written]
