"""What the commands do, once their options are read; imported only then, so that help is quick."""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer

from transduce.app.auditing.drawing import RowsToCheck, StrataRequest
from transduce.app.cli.app import DEMO_FOLDER, TABLES
from transduce.app.cli.selection import (
    about_selection,
    mark_rows,
    read_selection,
    select_rows,
)
from transduce.app.cli.terminal import (
    NOT_SHOWN,
    called,
    guarantee_lines,
    more_on_guarantee,
    say,
    show_audit,
    show_choice,
    show_result,
    show_table,
    tell,
)
from transduce.app.filling import FillResult, LocalRunner, cluster_runner, fill, load, save
from transduce.app.filling.engine import fill_targets
from transduce.app.filling.features import read_features
from transduce.app.filling.folder import fill_folder_and_finish
from transduce.app.filling.forecast import forecast_draw
from transduce.app.filling.later_rows import FittedFill
from transduce.app.filling.manifest import is_own_report
from transduce.app.filling.options import (
    LABEL_FLAGS,
    OF_ALL_ROWS,
    OPTIONS,
    OWN_COLUMNS,
    Options,
)
from transduce.app.filling.plan import FOLDS, caution_on_method
from transduce.app.filling.sources import FrameSource
from transduce.app.report import render_json
from transduce.app.report.summary import summarize_later
from transduce.app.tables import files as tables
from transduce.app.tables.columns import Target, check_columns
from transduce.app.tables.files import check_fits, out_kind, write
from transduce.app.tables.formats import Table
from transduce.app.tables.glances import is_too_large
from transduce.app.tables.layout import LayoutRequest
from transduce.app.tables.parts import is_many
from transduce.conformal import Exchangeability, Selection
from transduce.conformal.designs.registry import design_of_flags
from transduce.core.computing import stage
from transduce.core.files import (
    check_free,
    make_folder,
    together,
    whole_file,
    write_text,
)
from transduce.core.guarantee import Guarantee
from transduce.core.guarantee_sentences import level_sentences
from transduce.core.ranks import fewest_calibration
from transduce.core.types import AnyArray, ColumnName, Mask, OptionValues, Task
from transduce.core.words import OptionError, counted, flag, option, percent
from transduce.datasets import load_houses
from transduce.ensemble.blend import TransductiveBlend
from transduce.model_selection import choose_method
from transduce.model_selection.methods import METHODS
from transduce.model_selection.own_models import as_stored
from transduce.population.draws import draw_rows

SCORES = {"regression": "neg_mean_absolute_error", "classification": "accuracy"}
SIMPLEST = {"regression": "always the mean", "classification": "always the commonest class"}
N_ROWS_NAMED = 20  # of a draw, in the message


Show = Callable[[], None]  # prints what was found, once the progress bars are gone


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


def fill_file(table: str, targets: list[str], given: OptionValues) -> Show:
    """Fill columns of a table in a file; write the table, a report and the numbers of each."""
    options = read_options(given)
    _check_targets(targets, given)
    wanted = None
    if given["select"] is not None:
        wanted = read_selection(given["select"])
        if options.guarantee == "auto":
            options = replace(options, guarantee="column")  # rows are picked by labels held out
    if is_in_parts(table, given):
        return _fill_parts(table, targets, options, given)
    force = given["force"]
    out = _out_of(table, given)
    reports = [_reports(given)]
    if len(targets) > 1:
        reports = [_reports(given, name) for name in targets]
    report_paths = [path for of_target in reports for path in of_target]
    _check_paths(table, *report_paths, given["save"], out, force=force)
    source = read_table(table, given)
    check_fits(out, source, 10 * len(targets))
    targets = [source.column_called(name) for name in targets]
    for name in targets:
        source.check_column(name)
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
        written = _write(source, results, out, reports, force, selections)
    if given["save"] is not None:
        written.append(str(given["save"]))
    if not given["quiet"]:
        for result in results:
            result.compute_all()
    return partial(_show_filled, results, selections, written, out, quiet=given["quiet"])


def _check_targets(targets: list[str], given: OptionValues) -> None:
    """Refuse a target that is named twice, and several where one model is to be saved."""
    if twice := [name for place, name in enumerate(targets) if name in targets[:place]]:
        raise typer.BadParameter(f"--target {twice[0]} is given twice.")
    if len(targets) > 1 and given["save"] is not None:
        raise typer.BadParameter("--save is for one target: save each by itself.")


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


def _fill_parts(
    table: str,
    targets: list[str],
    options: Options,
    given: OptionValues,
) -> Show:
    """Fill a table part by part into a folder."""
    asked = {flag(name): getattr(options, name) for name in OWN_COLUMNS}
    asked |= {"several targets": len(targets) > 1}
    only_in_memory = ("select", "sheet", "header", "skip", "rows", "decimal", "save")
    asked |= {f"--{name}": given[name] is not None for name in only_in_memory}
    if odd := [name for name, wanted in asked.items() if wanted]:
        raise typer.BadParameter(
            f"{odd[0]}: only for a table that is filled in memory, not for one in parts."
        )
    named = Path(given["out"] or "")
    if given["out"] == "-" or named.is_file() or (tables.kind_of(named)[0] and not named.is_dir()):
        raise typer.BadParameter(
            "a table in parts is written to a folder: name one, such as --out filled/."
        )
    out = Path(given["out"] or f"{table.rstrip('/*')}-filled")
    if given["out"] is None and ("*" in str(out) or "?" in str(out)):
        raise typer.BadParameter("name the folder to write to with --out, such as --out filled/.")
    reports = _reports(given)
    again = [path for path in reports if path is not None and is_own_report(out, path)]
    new = [None if path in again else path for path in reports]
    _check_paths(table, *new, out, force=given["force"], folder=True)
    limit = None
    if given["memory"] is not None:
        limit = read_size(given["memory"])
    n_jobs = -1
    if options.n_jobs is not None:
        n_jobs = options.n_jobs
    running: Any = contextlib.nullcontext(LocalRunner(n_jobs))
    if given["cluster"]:
        running = cluster_runner(given["cluster"])
    with running as runner:
        settings = {"memory": limit, "runner": runner, "force": given["force"], **options.as_dict()}

        def finish(result: FillResult) -> None:
            _write_reports(result, new, given["force"])
            _write_reports(result, [path if path in again else None for path in reports], True)

        result = fill_folder_and_finish(table, targets[0], out, finish=finish, **settings)
    written = [f"{out} ({len(result.frame.parts):,} parts)"]
    written += [str(path) for path in reports if path is not None]
    if not given["quiet"]:
        result.compute_all()
    return lambda: show_result(result, written, quiet=given["quiet"])


def _reports(given: OptionValues, target: str = "") -> list[Path | None]:
    """Return where the report and the numbers go.

    Those of one of several targets are named by it.
    """
    ways = [given["report"], given["json"]]
    word = re.sub(r"[^\w.-]+", "-", target)
    if not target:
        return ways
    return [path and path.with_name(f"{path.stem}-{word}{path.suffix}") for path in ways]


def _write_reports(result: FillResult, paths: list[Path | None], force: bool) -> list[str]:
    """Write the report and the numbers where that is asked for; return where."""
    for path, write_one in zip(paths, (result.report, result.json), strict=True):
        if path is not None:
            write_one(path, force=force)
    return [str(path) for path in paths if path is not None]


BYTES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


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


def answer_file(model: Path, table: str, given: OptionValues) -> Show:
    """Answer the rows of a table from what was saved; write them with their new columns."""
    force = given["force"]
    out = given["out"]
    if out is None:
        out = default_out(table, "answered")
    _check_paths(table, given["json"], out, force=force)
    source = read_table(table, given)
    fitted = load(model).below(source.folder)
    answered = _answer_later(fitted, source.frame)
    with stage("writing"), together():
        if given["json"] is not None:
            text = render_json(answered.as_json(fitted))
            write_text(given["json"], text, force=force, like=[*source.files, model])
        write(out, source, fitted.columns_for_file(answered.new), force=force, like=[model])
    lines = answered.lines(fitted, quiet=given["quiet"])
    written = [str(path) for path in (out, given["json"]) if path not in ("-", None)]
    if written:
        lines.append(f"Written: {', '.join(written)}")

    def show() -> None:
        for line in lines:
            tell(line, err=out == "-")

    return show


@dataclass(frozen=True, eq=False)
class LaterAnswers:
    """The new columns of rows that came later, and what is known of them."""

    new: pd.DataFrame
    counts: dict[str, int]
    guarantees: dict[float, Guarantee]  # at each level, the main one first
    compared: Exchangeability  # how these rows compare with the labelled ones
    notes: list[str]

    def as_json(self, fitted: FittedFill) -> OptionValues:
        """Return what there is to say, for JSON."""
        account = {
            "target": fitted.reading.name,
            "task": fitted.reading.task,
            "counts": self.counts,
            "notes": self.notes,
            "values": _why_different(fitted),
        }
        return summarize_later(account, self.guarantees, self.compared)

    def lines(self, fitted: FittedFill, *, quiet: bool) -> list[str]:
        """Return what there is to say, line by line."""
        guarantee, *_ = self.guarantees.values()
        verdict = str(self.compared.verdict)
        lines = [f"{counted(self.counts['answered'], 'row')} predicted."]
        lines += [*guarantee_lines(guarantee), verdict, *level_sentences(self.guarantees)]
        if quiet:
            return lines
        more = [sentence for sentence in more_on_guarantee(guarantee) if sentence != verdict]
        lines += ["Notes:", *(f"- {note}" for note in [_why_different(fitted), *self.notes])]
        return [*lines, "More on the guarantee:", *(f"- {sentence}" for sentence in more)]


def _answer_later(fitted: FittedFill, frame: pd.DataFrame) -> LaterAnswers:
    """Answer later rows, and compare them with the labelled ones."""
    with stage("answers"):
        new = fitted.new_columns(frame)
    taken = [name for name in new.columns if name in frame.columns]
    if taken:
        raise ValueError(f"The table has a column {taken[0]!r} already: drop it first.")
    status = new[f"{fitted.reading.name}_status"].to_numpy()
    n_unreached = int((status == "unreached").sum())
    n_labelled = int((status == "given").sum())
    n_answered = len(new) - n_unreached - n_labelled
    with stage("exchangeability"):
        compared = fitted.compare_later(frame[status != "given"])
    guarantees = {}
    for level in (fitted.options.level, *fitted.options.further_levels):
        guarantees[level] = fitted.guarantee_of_later(
            n_answered, n_unreached, level=level, compared=compared
        )
    counts = {
        "rows": len(new),
        "labelled": n_labelled,
        "answered": n_answered,
        "unreached": n_unreached,
    }
    return LaterAnswers(new, counts, guarantees, compared, fitted.notes_on_later(frame))


def _why_different(fitted: FittedFill) -> str:
    """Return why values are not those of `fill` where a row was in the table that it filled."""
    held_out = counted(len(fitted.outside.table.labels), "label")
    return (
        f"The fit behind these values holds out {held_out} to calibrate later rows, "
        "and does not see the rows themselves: at rows of the filled table its values differ "
        "a little from those of `transduce fill`."
    )


def _check_paths(table: str, *paths: str | Path | None, force: bool, folder: bool = False) -> None:
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
            check_free(path, force=force)


def default_out(table: str, word: str = "filled") -> str:
    """Return where the filled table goes by default: beside the table, or to standard output."""
    if table == "-":
        return "-"
    return str(tables.named_after(table, word))


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


def _write(
    source: Table,
    results: list[FillResult],
    out: str,
    reports: list[list[Path | None]],
    force: bool,
    selections: Sequence[Selection] = (),
) -> list[str]:
    """Write what was asked for, the reports first: they are what can fail; return where."""
    pairs = zip(results, reports, strict=True)
    written = [path for result, paths in pairs for path in _write_reports(result, paths, force)]
    new = pd.concat([result.columns_for_file for result in results], axis=1)
    for result, selection in zip(results, selections, strict=False):
        new = pd.concat([new, mark_rows(result, selection)], axis=1)
    with stage("writing"):
        write(out, source, new, force=force)
    if out == "-":
        return written
    return [out, *written]


def draw_rows_of(
    table: str,
    target: str,
    number: int,
    seed: int | None,
    given: OptionValues,
) -> Show:
    """Mark rows drawn at random from those without a label.

    The table is written with the marks and the seed.
    """
    # The seed is fresh by default: with one that can be known beforehand, so can the rows, when
    # labels are chosen.
    if seed is None:
        seed = secrets.randbelow(2**31)
    options = read_options(given)
    force = given["force"]
    out = given["out"] or default_out(table, "draw")
    _check_paths(table, given["list"], out, force=force)
    read = read_table(table, given)
    check_fits(out, read)
    target = read.column_called(target)
    _check_not_drawn(read, target)
    source, added = _with_target(read, target)
    name = f"{target}_random"
    labels = _labels_to_draw(source, target, options)
    missing = _is_open(source, target, options)
    if labels is not None:  # then cells that `fill` reads as empty may be drawn too
        missing = labels.missing
    rows = draw_rows(missing, number, seed)
    marks = {
        name: np.isin(np.arange(len(missing)), rows),
        f"{name}_seed": seed,
        f"{name}_probability": np.where(missing, number / np.sum(missing), 0.0),
    }
    new = pd.DataFrame(marks, index=source.frame.index)
    with stage("writing"), together():
        if given["list"] is not None:
            _write_list(source, target, RowsToCheck(rows, new, ""), None, given)
        write(out, read, _joined(added, new), force=force)
    lacking = _what_draw_lacks(labels, rows, options)
    written = [str(path) for path in (out, given["list"]) if path is not None]
    then = f"transduce fill {out} --target {target}"
    if not missing.all():  # otherwise chance chooses all labels
        then += f" --random-labels {name}"
    if given["predictions"]:
        then = _audit_command(out, target, given["predictions"], given["list"])

    def show() -> None:
        tell(_about_draw(rows, seed, target), err=out == "-")
        _tell_added(added, out)
        if lacking and not given["predictions"] and not given["quiet"]:
            tell(f"- {lacking}", err=out == "-")
        tell(f"Written: {', '.join(written)}", err=out == "-")
        say(f"Then: {then}", err=out == "-")

    return show


def _check_not_drawn(source: Table, target: str) -> None:
    """Raise a ValueError if the table has the columns of an earlier draw."""
    begins = f"{target}_random"
    taken = [name for name in source.frame.columns if str(name).startswith(begins)]
    if taken:
        raise ValueError(
            f"The table has a column {taken[0]!r} already, from an earlier draw: draw from the "
            f"table as it was before, or drop the columns that begin with {begins!r} first. Rows "
            "that have a label then are known, and the new draw speaks for the others."
        )


def _with_target(source: Table, target: str) -> tuple[Table, pd.DataFrame]:
    """Return a table in which a target can be read, and the empty column that was added for it."""
    none = pd.DataFrame(index=source.frame.index)
    source.check_column(target)
    if target in source.frame.columns:
        check_columns(source.frame, [target])
        return source, none
    alike = [name for name in source.frame.columns if str(name).casefold() == target.casefold()]
    if alike:
        check_columns(source.frame, [target])  # which names the one that is meant
    added = none.assign(**{target: None})
    return replace(source, frame=pd.concat([source.frame, added], axis=1)), added


def _is_open(source: Table, target: str, options: Options) -> Mask:
    """Return which rows (n,) have no label."""
    return np.asarray(options.clean(source.frame[[target]])[target].isna())


def _joined(added: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Return the columns that are written after those of a table."""
    return pd.concat([added, new], axis=1)


def _tell_added(added: pd.DataFrame, out: str) -> None:
    """Say that a table had no column to be labelled."""
    for name in added.columns:
        tell(f"The table has no column {name!r}: an empty one was added.", err=out == "-")


def _about_draw(rows: AnyArray, seed: int, target: str) -> str:
    """Return which rows were drawn, and what to do with them."""
    places = ", ".join(f"{row + 1:,}" for row in rows[:N_ROWS_NAMED].tolist())
    if len(rows) > N_ROWS_NAMED:
        places += " ..."
    drawn = f"{counted(len(rows), 'row')} drawn with the seed {seed}"
    if len(rows) == 1:
        return f"{drawn}; label it in {target!r}: row {places}."
    return f"{drawn}; label all of them in {target!r}: rows {places}."


def draw_strata_of(
    table: str,
    target: str,
    strata: OptionValues,
    given: OptionValues,
) -> Show:
    """Mark rows drawn at random from each predicted class, or from bands of uncertainty."""
    from transduce.app.auditing.drawing import draw_by_strata

    if strata["seed"] is None:
        strata["seed"] = secrets.randbelow(2**31)
    request = StrataRequest(**strata)
    force = given["force"]
    out = given["out"] or default_out(table, "draw")
    _check_paths(table, given["list"], out, force=force)
    read = read_table(table, given)
    check_fits(out, read)
    target = read.column_called(target)
    _check_not_drawn(read, target)
    source, added = _with_target(read, target)
    missing = _is_open(source, target, read_options(given))
    drawn = draw_by_strata(source.frame, target, missing, request)
    with stage("writing"), together():
        if given["list"] is not None:
            _write_list(source, target, drawn, request, given)
        write(out, read, _joined(added, drawn.columns), force=force)
    written = [str(path) for path in (out, given["list"]) if path is not None]

    def show() -> None:
        tell(f"{drawn.statement} The seed is {request.seed}.", err=out == "-")
        _tell_added(added, out)
        tell(f"Written: {', '.join(written)}", err=out == "-")
        named = request.by or tuple(given["predictions"]) or ("COLUMN",)
        then = _audit_command(out, target, named, given["list"])
        say(f"Label them, then: {then}", err=out == "-")

    return show


def _audit_command(
    out: str, target: str, predictions: Sequence[ColumnName], checks: Path | None
) -> str:
    """Return the command that audits a table that was drawn from."""
    named = " ".join(f"--predictions {name}" for name in predictions)
    command = f"transduce audit {out} --target {target} {named}"
    if checks is not None:
        command += f" --checks {checks}"
    return command


def _write_list(
    source: Table,
    target: str,
    drawn: RowsToCheck,
    request: StrataRequest | None,
    given: OptionValues,
) -> None:
    """Write the drawn rows alone, with the classes that a checker may choose from."""
    from transduce.app.auditing.drawing import classes_to_choose, list_to_check, write_list

    predictions: list[ColumnName] = given["predictions"]
    hidden = predictions.copy()
    by = tuple(predictions)
    if request is not None:
        hidden += request.columns
        by = request.by or by
    rows = list_to_check(source.frame, target, drawn, hidden)
    classes = classes_to_choose(source.frame, target, by)
    write_list(given["list"], rows, classes, force=given["force"], like=source.files)


def audit_file(
    table: str,
    target: str,
    predictions: list[str],
    question: OptionValues,
    limit: float | None,
    given: OptionValues,
) -> Show:
    """Say how wrong predictions of a table in a file are."""
    from transduce.app.auditing import audit
    from transduce.app.auditing.page import render_audit

    force = given["force"]
    _check_paths(table, given["report"], given["json"], force=force)
    source = read_table(table, given)
    target = source.column_called(target)
    predictions = [source.column_called(name) for name in predictions]
    named: Any = predictions[0] if len(predictions) == 1 else predictions
    result = audit(
        source,
        target,
        named,
        certainty=given["certainty"],
        missing=given["missing"] or [],
        case_sensitive=given["case_sensitive"],
        **question,
    )
    written = []
    with stage("writing"), together():
        if given["report"] is not None:
            write_text(given["report"], render_audit(result), force=force, like=source.files)
            written.append(str(given["report"]))
        if given["json"] is not None:
            result.write_json(given["json"], force=force, like=source.files)
            written.append(str(given["json"]))

    def show() -> None:
        show_audit(result, quiet=given["quiet"])
        if written:
            tell(f"Written: {', '.join(written)}")
        if limit is None:
            return
        tell(result.verdict(limit))
        if not result.shows_at_most(limit):
            raise typer.Exit(NOT_SHOWN)

    return show


def _labels_to_draw(source: Table, target: str, options: Options) -> Target | None:
    """Return the labels that a table has before rows are drawn.

    None if there is none, or one to be mended first.
    """
    try:
        return FrameSource.read(source, target, options).labels
    except ValueError:
        return None


def _what_draw_lacks(labels: Target | None, rows: AnyArray, options: Options) -> str:
    """Return what rows drawn at random lack to guarantee the level once they are labelled.

    "" if nothing.
    """
    level = options.level
    needed = f"it takes {fewest_calibration(level)}. Draw that many before you label any."
    few = f"{counted(len(rows), 'label')} of rows drawn at random cannot guarantee {percent(level)}"
    if labels is None:
        if len(rows) < fewest_calibration(level):
            return f"{few}: {needed}"
        return ""
    if len(rows) == int(labels.missing.sum()):
        return "Every row without a label was drawn: none is left to fill once they are labelled."
    forecast = forecast_draw(labels, rows, options)
    if forecast.guarantee.kind != "none":
        return ""
    if len(rows) < fewest_calibration(level):
        return f"{few}: {needed}"
    return " ".join(forecast.guarantee.reasons)


def compare_file(
    table: str,
    target: str,
    folds: int,
    given: OptionValues,
) -> Show:
    """Compare the methods on the labels of a table in a file.

    With the blend, and with the simplest answer.
    """
    from sklearn.dummy import DummyClassifier, DummyRegressor

    options = read_options(given)
    plot = given["plot"]
    force = given["force"]
    if plot is not None:
        check_free(plot, force=force)
    source = read_table(table, given)
    target = source.column_called(target)
    rows = FrameSource.read(source, target, options)
    options = options.below(rows.frame.columns, target)
    labels = rows.labels
    if labels.n_labels < folds:
        fewer = option("folds", max(2, labels.n_labels // 2))
        raise ValueError(
            f"Column {target!r} has {labels.n_labels} labels, too few for {folds} folds: label "
            f"more rows, or ask for {fewer}."
        )
    features = read_features(rows, options)
    task = labels.task
    seed = options.random_state
    numbers = labels.task == "regression"
    usual: OptionValues = {"task": task, "standardize": False, "random_state": seed}
    others = {"blend": TransductiveBlend(cv=FOLDS, **usual)}
    others |= {SIMPLEST[task]: DummyRegressor() if numbers else DummyClassifier()}
    usual |= {"scoring": SCORES[task], "cv": folds, "n_jobs": options.n_jobs}
    order = rows.order_by_content(options)  # folds by it, not by place
    choice = choose_method(features.matrix[order], labels.labels[order], others, **usual)
    shown = choice.table[["score", "spread", "fit_time"]].reset_index(drop=True)
    shown.columns = ["off by" if numbers else "right", "±", "seconds a fit"]
    if numbers:
        shown["off by"] *= -1.0
    shown.insert(0, "method", [called(name) for name in choice.table.index])
    if plot is not None:
        draw_comparison(shown, plot, force=force, like=source.files)

    def show() -> None:
        notes = [note.text for note in (*rows.notes, *features.notes)]
        show_choice(choice, shown, notes, caution_on_method(task, labels.n_labels))
        if plot is not None and not given["quiet"]:
            say(f"Written: {plot}")

    return show


def draw_comparison(
    shown: pd.DataFrame,
    path: Path,
    *,
    force: bool,
    like: tuple[Path, ...] = (),
) -> None:
    """Save a plot of the methods' scores and their spread over the folds, the best on top."""
    import matplotlib.pyplot as plt

    from transduce.display import INSIDE

    score = shown.columns[1]
    scored = shown[shown[score].notna()]
    figure, ax = plt.subplots(figsize=(6.4, 1.2 + 0.4 * len(scored)), layout="constrained")
    ax.errorbar(scored[score], scored["method"], xerr=scored["±"], fmt="o", color=INSIDE, capsize=3)
    ax.invert_yaxis()
    ax.set_xlabel(f"{score} (mean and standard deviation over the folds)")
    try:
        with whole_file(path, force=force, like=like) as file:
            figure.savefig(file, format=path.suffix.lstrip(".").lower(), dpi=150)
    finally:
        plt.close(figure)


def write_example(path: Path, *, force: bool) -> None:
    """Write a real table with missing prices."""
    table, _ = load_houses()
    write_text(path, table.astype({"price": "Int64"}).to_csv(index=False), force=force)
    unknown = table["price"].isna().sum()
    say(f"{path}: {len(table)} districts of California in 1990, {unknown} of them without a price.")
    say(f"Now: transduce fill {path} --target price --min 0 --report houses.html")


def list_methods() -> None:
    """Print the methods, with the papers they come from."""
    own_estimator = (
        "MODULE:NAME",
        "A scikit-learn estimator of your own; names with commas are blended.",
        "you",
    )
    lines = [
        *((method.name, method.says, method.paper) for method in METHODS.values()),
        own_estimator,
    ]
    table = pd.DataFrame(lines, columns=["method", "what it does", "from"])
    show_table(table, longest=table.map(len).to_numpy().max())


def run_demo(name: str, folder: Path, options: OptionValues) -> Show:
    """Hide labels of a bundled table, fill them, and compare with the truth."""
    frame, target, truth = demo_table(name, options["random_state"])
    make_folder(folder)
    path = folder / f"{name}.csv"
    outputs = [path, Path(default_out(str(path))), folder / f"{name}.html", folder / f"{name}.json"]
    check_demo(folder, outputs)
    write_text(path, frame.to_csv(index=False), force=True)
    source = read_table(str(path), {"force": True})
    task: Task = "classification"
    if truth.dtype.kind == "f":
        task = "regression"
    result = fill(source, target, guarantee="column", task=task, **options)
    reports: list[Path | None] = [folder / f"{name}.html", folder / f"{name}.json"]
    with together():
        written = _write(source, [result], default_out(str(path)), [reports], force=True)
    result.compute_all()

    def show() -> None:
        say(f"{TABLES[name][2]}.")
        show_result(result, written)
        say(compare_with_truth(result, truth))

    return show


def check_demo(folder: Path, outputs: list[Path]) -> None:
    """Raise a FileExistsError if a demo would replace files that may not be of an earlier one."""
    taken = [path for path in outputs if path.exists()]
    if taken and folder != DEMO_FOLDER:  # which only demos write to
        raise FileExistsError(
            f"{taken[0]} exists already: name another folder with --folder, "
            f"or leave it out to use {DEMO_FOLDER}."
        )


def demo_table(name: str, seed: int = 0) -> tuple[pd.DataFrame, str, pd.Series]:
    """Return a bundled table with holes, the column they are in, and that column without them."""
    target, n_labels, _ = TABLES[name]
    if name == "houses":
        table, truth = load_houses()
        return table, target, truth
    from sklearn import datasets

    load = getattr(datasets, f"load_{name.replace('-', '_')}")
    bundle = load(as_frame=True, **({"scaled": False} if name == "diabetes" else {}))
    table = bundle.data.copy()
    truth = bundle.target.rename(target)
    if name in ("breast-cancer", "wine"):
        truth = truth.map(dict(enumerate(map(str, bundle.target_names)))).astype(object)
    hidden = np.random.default_rng(seed).permutation(len(table))[n_labels:]
    if name == "diabetes":
        table[target] = truth
    else:
        table[target] = truth.astype(object)
    if name == "diabetes":
        table.loc[hidden, target] = np.nan
    else:
        table.loc[hidden, target] = None
    return table, target, truth


def compare_with_truth(filled: FillResult, truth: pd.Series) -> str:
    """Return what was guaranteed about a filled column, and what was observed."""
    answer = filled.answer
    bound = filled.guarantee.outside
    true = truth.to_numpy()[answer.rows]
    inside = answer.contains(true)
    regions = "intervals"
    if filled.task == "regression":
        share = 1.0 - float(((true - answer.values) ** 2).mean() / true.var())
        right = f"The values explain {100 * share:.0f} % of the variance of the hidden labels."
    else:
        regions = "sets"
        right = f"{100 * float((true == answer.values).mean()):.1f} % of the predictions are right."
    average = (
        f"at least {percent(filled.confidence)} on average over many such tables, and less in some"
    )
    n_outside = int((~inside).sum())
    observed = f"{100 * (1 - n_outside / len(true)):.1f} % of the hidden labels"
    lines = [f"Inside their {regions}: {observed}. Guaranteed: {average}."]
    if bound is not None:
        most = f"at most {bound.at_most} of {len(true)}, with {percent(filled.certainty)} certainty"
        lines.append(f"Outside their {regions}: {n_outside}. Guaranteed: {most}.")
    return "\n".join([*lines, right])
