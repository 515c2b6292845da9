"""A fill in a process of its own: what it tells, what it leaves behind, and what changed by it.

The program ends the process when it ends itself. Everything is written to a folder that takes its
place at the end.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from transduce.app.filling import FillResult, fill, fill_folder
from transduce.app.labelling.journal import Label
from transduce.app.labelling.sentences import about_labels_since
from transduce.app.page.one_table import one_table
from transduce.app.page.workspace import Choices, spell_for_page
from transduce.app.report import render_html, render_json
from transduce.app.report.jsonable import finite_or_none, json_name
from transduce.app.report.rows import least_certain_first
from transduce.app.report.whole_column import tables_by_column
from transduce.app.tables import files
from transduce.app.tables.columns import Target
from transduce.app.tables.databases import database_address
from transduce.app.tables.files import write
from transduce.app.tables.formats import Table
from transduce.conformal import Drawn
from transduce.conformal.designs import calibration_number
from transduce.conformal.selection import pick
from transduce.core.computing import (
    Forecast,
    ForecastListener,
    Listener,
    show_progress,
    stage,
)
from transduce.core.files import (
    is_temporary,
    make_folder,
    remove_folders,
    remove_torn,
    restrict_process,
    temporary_name,
    write_text,
)
from transduce.core.types import Array, JsonObject
from transduce.core.words import options_spelled, quoted
from transduce.model_selection.estimator_kinds import unused_name

RESULT = "result"
BESIDE = "beside-"  # and a number: folders in it, of columns that were filled along
JOB = "job.json"
LABELS = "labels.json"
BEFORE = "result-before"  # a result that makes room for a new one
# What a fill writes into its folder, beside the filled table.
WRITTEN = (
    "report.html",
    "numbers.json",
    "brief.json",
    "answers.feather",
    "judged.feather",
    "errors.feather",
    "changes.json",
)
TOLERANCES = 5  # round numbers that are offered as what an answer may be off by
USUAL_SHARE = 0.1  # of the rows to trust that may be wrong
ERRORS = "errors.feather"  # at known values that were hidden in turn
FEWEST_COMPARED = 10  # known values at which two fills are compared
LEAST_CHANGE = 0.02  # of an error that is worth a word
KNOWN = ("unsure", "answered", "off")  # of the known values that were kept aside


# ------------------------------------------------------------------------------ labels of the page


class LostLabelsError(ValueError):
    """Labels of the labelling page that cannot be read any more."""


@dataclass(frozen=True)
class GivenLabels:
    """Labels that were given on the labelling page, and the random draws that calibrate."""

    labels: dict[int, Label]
    drawn: list[int] | None
    # After these draws: kept, but not learnt from.
    since: dict[int, Label] = field(default_factory=dict)
    needed: int = 0  # more draws, after which these are learnt from

    @classmethod
    def read(cls, folder: Path) -> GivenLabels:
        """Return what was written to a folder.

        A ValueError says what to do if that was deleted, or is damaged.
        """
        try:
            content = json.loads((folder / LABELS).read_text("utf-8"))
            labels, since = (
                {int(row): label for row, label in content.get(name, {}).items()}
                for name in ("labels", "since")
            )
            return cls(labels, content["drawn"], since, int(content.get("needed", 0)))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise LostLabelsError(
                "The values that you gave on the labelling page are no longer where this page "
                "kept them. They are safe in the journal beside the table: "
                "choose “Label rows”, and come back."
            ) from error

    def write(self, folder: Path, table: Path) -> None:
        """Write them to a folder, as private as the table."""
        make_folder(folder, private=True)
        text = json.dumps(asdict(self), ensure_ascii=False)
        write_text(folder / LABELS, text, force=True, like=[table])

    def put_into(self, table: Table, choices: Choices) -> tuple[Table, Choices]:
        """Return the table with these labels, and choices that say how they came about."""
        target = str(choices.target)
        labelled = table.with_labels(target, self.labels)
        if self.drawn is not None:
            drawn = np.isin(np.arange(len(table.frame)), self.drawn)
            labelled = replace(labelled, frame=labelled.frame.assign(**{f"{target}_random": drawn}))
        return labelled, self.said(choices)

    @property
    def about_since(self) -> str:
        """What becomes of values that were given after the draws, in a sentence.

        "" if there are none.
        """
        if self.since:
            return about_labels_since(len(self.since), self.needed)
        return ""

    def keep_since(self, result: FillResult, table: Table) -> FillResult:
        """Return a result in which values given after the draws stand as they were given."""
        if not self.since:
            return result
        frame = table.with_labels(result.target, self.since).frame
        cleaned = result.options.clean(frame)
        return result.keep_labels(cleaned, self.about_since)

    def said(self, choices: Choices) -> Choices:
        """Return choices that say how these labels came about."""
        if self.drawn is None:
            return choices.changed({"way": "unknown", "column": None})
        return choices.changed({"way": "drawn", "column": f"{choices.target}_random"})


# ---------------------------------------------------------------------------------- in the program


@dataclass
class Progress:
    """How far a fill is."""

    state: str = "none"  # or running, done, failed, cancelled, interrupted
    began: float = 0.0
    forecast: float | None = None  # seconds
    stages: dict[str, float] | None = None
    column: tuple[str, int, int] | None = None  # that is filled now, its place, how many there are
    error: str = ""

    def hear(self, line: Mapping[str, Any]) -> None:
        """Take what the process tells."""
        if "error" in line:
            self.state = "failed"
            self.error = str(line["error"])
        elif "forecast" in line:
            _, place, n_columns = self.column or ("", 1, 1)
            left = float(line["forecast"]) * (n_columns - place + 1)
            self.forecast = time.time() - self.began + left
        elif "column" in line:
            self.column = (line["column"], line["place"], line["of"])
            self.stages = {}
        elif "stage" in line:
            name = str(line["stage"])
            self.stages = {**(self.stages or {}), name: float(line["share"])}


def start_process(folder: Path) -> subprocess.Popen[str]:
    """Start to fill the table that the job in a folder describes."""
    return subprocess.Popen(
        [sys.executable, "-m", "transduce.app.page.run", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    )


class Run:
    """The process that fills one table, if there is one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.progress = Progress("none")
        if (folder / JOB).exists():
            self.progress = Progress("interrupted")
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    @property
    def running(self) -> bool:
        """Whether a fill runs."""
        return self.progress.state == "running"

    def start(
        self,
        path: Path,
        choices: Choices,
        *,
        in_parts: bool = False,
    ) -> None:
        """Begin to fill, unless that is being done."""
        with self._lock:
            if self.running:
                return
            make_folder(self.folder, private=True)
            job_account = {"path": str(path), "choices": asdict(choices), "in_parts": in_parts}
            job = json.dumps(job_account)
            write_text(self.folder / JOB, job, force=True, like=[path])
            self.progress = Progress("running", time.time())
            self._process = start_process(self.folder)
            threading.Thread(
                target=self._listen,
                args=(self._process, self.progress),
                daemon=True,
            ).start()

    def _listen(self, process: subprocess.Popen[str], progress: Progress) -> None:
        with process:
            assert process.stdout is not None
            for line in process.stdout:
                progress.hear(json.loads(line))
        code = process.wait()
        (self.folder / JOB).unlink(missing_ok=True)
        if progress.state == "running":
            if code == 0:
                progress.state = "done"
            else:
                progress.state = "failed"
            if code == 0:
                progress.error = ""
            else:
                progress.error = "The fill ended early: perhaps there was not enough memory."

    def cancel(self) -> None:
        """End the process; what was there before it stays."""
        with self._lock:
            if self.running and self._process is not None:
                self.progress.state = "cancelled"
                self._process.kill()
                self._process.wait()


# ------------------------------------------------------------------------- in a process of its own


def work(
    folder: Path,
    tell_stage: Listener,
    tell_forecast: ForecastListener | None = None,
    tell_column: Callable[[str, int, int], None] | None = None,
) -> None:
    """Fill the table that a job describes, and leave all that the page shows of it.

    `tell_column` hears which column is filled now, its place from 1 on, and how many there are.
    """
    job = json.loads((folder / JOB).read_text("utf-8"))
    path = Path(job["path"])
    choices = Choices(**job["choices"])
    heard = show_progress(tell_stage, on_forecast=tell_forecast)
    with heard, warnings.catch_warnings(), options_spelled(spell_for_page):
        warnings.simplefilter("ignore")
        given = None
        again = ""
        if job.get("in_parts"):
            _fill_in_parts(path, choices, folder)
            return
        with stage("reading"):
            original = files.read(path, sheet=choices.sheet, layout=choices.layout)
            table = as_chosen(original, choices)
            of_others = table, choices  # which learn nothing from the labels of the first column
            if choices.labels:
                given = GivenLabels.read(folder)
                table, choices = given.put_into(table, choices)
            if choices.labels or choices.corrected:
                own = choices.of_column(str(choices.target))
                again = _again_with_labels(folder, original, table, own)
        results = {}
        for place, name in enumerate(choices.targets):
            if tell_column is not None:
                tell_column(name, place + 1, len(choices.targets))
            source, said = (table, choices) if name == choices.target else of_others
            results[name] = _fill_column(source, said.of_column(name))
        if given is not None:
            first = str(choices.target)
            results[first] = given.keep_since(results[first], table)
        account = {"choices": job["choices"], "read_at": path.stat().st_mtime_ns}
        _take_result(folder, lambda part: leave_all(results, table, part, account, again))


def _fill_column(table: Table, choices: Choices) -> FillResult:
    """Fill one column of a table."""
    options = choices.options().changed()
    # Limits are asked for afterwards: they change no fit.
    limits = {name: options.pop(name) for name in ("minimum", "maximum") if name in options}
    return fill(table, choices.target, **options).with_options(**limits)


def as_chosen(table: Table, choices: Choices) -> Table:
    """Return the table with the column that was added on the page, and with what was corrected."""
    if choices.added is not None:
        table = table.with_column(choices.added)
    if not choices.corrected or choices.target not in table.frame.columns:
        return table
    cells = table.frame[choices.target]
    now = {
        line["row"]: line["now"]
        for line in choices.corrected
        if line["row"] < len(cells) and file_cell(cells.iloc[line["row"]]) == line["was"]
    }
    return table.with_labels(choices.target, now)


def cell_like(cells: pd.Series, labels: Target, now: Any) -> str | float | None:
    """Return a value that somebody typed as a cell of a column; None empties the cell."""
    if now is None or (isinstance(now, str) and not now.strip()):
        return None
    is_number = isinstance(now, int | float) and not isinstance(now, bool)
    if pd.api.types.is_numeric_dtype(cells) or (
        labels.task == "regression" and labels.spelling.moments is None
    ):
        if not is_number:
            raise ValueError(f"{quoted(str(now))} is not a number.")
        return float(now)
    return str(now).strip()


def file_cell(cell: Any) -> str:
    """Return a cell of the file as text, by which it is known again when the file has changed."""
    if pd.isna(cell):
        return ""
    return str(cell)


def _fill_in_parts(path: Path, choices: Choices, folder: Path) -> None:
    """Fill a table that is too large for memory, part by part, into a folder beside it."""
    out = path.with_name(f"{path.name.partition('.')[0]}-filled")
    options = choices.options().as_dict()
    try:
        result = fill_folder(str(path), str(choices.target), out, **options)
    except FileExistsError:  # of other choices, or complete
        result = fill_folder(str(path), str(choices.target), out, force=True, **options)
    account = {
        "choices": asdict(choices),
        "read_at": path.stat().st_mtime_ns,
        "parts": {"folder": out.name, "n_parts": len(result.frame.parts)},
    }
    _take_result(folder, lambda part: leave_parts(result, part, account))


def leave_parts(result: FillResult, part: Path, about: JsonObject) -> None:
    """Write what is shown of a table that was filled part by part: all but its rows."""
    options = result.options
    out = f"{about['parts']['folder']}/"
    again = options.as_command(Path(result.source.name).name, result.target, "auto", out=out)
    summary = result.summary(again=again)
    with stage("report"):
        write_text(part / "report.html", render_html(summary))
        write_text(part / "numbers.json", render_json(summary))
    why = "The rows are in the files of the folder."
    brief = {name: entry for name, entry in summary.items() if name != "rows"} | about
    brief |= {"filled": "", "trust": {"why_not": why}, "scale": None, "known": _ends(result)}
    brief |= {"advised": [], "by_column": [], "one_table": None}
    no_rows = _answers(result).iloc[:0]
    no_rows.to_feather(part / "answers.feather", compression="uncompressed")
    _errors_at_labels(result).to_feather(part / ERRORS)
    write_text(part / "brief.json", render_json(brief))


def _take_result(folder: Path, write_into: Callable[[Path], None]) -> None:
    """Let a result that is written into a new folder take the place of the one before."""
    part = folder / temporary_name(RESULT)
    try:
        part.mkdir()
        write_into(part)
        if (folder / RESULT).exists():
            _changes(folder / RESULT, part)
        take_place(part, folder)
    except OSError as error:
        if error.errno is None:  # it is a sentence already
            message = str(error).replace(str(part), str(folder / RESULT))
            raise OSError(message) from error
        reason = "the disk is full"
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            reason = str(error.strerror).lower()
        raise OSError(f"The result cannot be written: {reason}.") from error
    finally:
        remove_old_results(folder)


def take_place(part: Path, folder: Path) -> None:
    """Let a new result stand in the place of the one before.

    If that fails, the one before stays.
    """
    result = folder / RESULT
    before = folder / temporary_name(BEFORE)
    try:
        if result.exists():
            result.rename(before)
        part.rename(result)
    except BaseException:
        if before.exists() and not result.exists():
            before.rename(result)
        raise


def _filled_name(folder: Path) -> str:
    """Return what the filled table of a folder's job is called."""
    table = folder.name
    with suppress(OSError, ValueError, KeyError, TypeError):
        table = Path(json.loads((folder / JOB).read_text("utf-8"))["path"]).name
    return result_name(table, "filled")


def result_name(table: str | Path, word: str, ending: str | None = None) -> str:
    """Return what a file that is made of a table is called; of a database it is a workbook."""
    if ending is None and database_address(table) is not None:
        ending = ".xlsx"
    return files.named_after(table, word, ending).name


def remove_old_results(folder: Path) -> None:
    """Remove what earlier fills left, and nothing that somebody else has put into the folder.

    A result that was put aside comes back if none took its place, as after a kill.
    """
    filled = _filled_name(folder)
    for old in sorted(folder.iterdir()):
        if not is_temporary(old.name) or not old.is_dir() or old.is_symlink():
            continue
        if old.name.startswith(f".{BEFORE}.") and not (folder / RESULT).exists():
            old.rename(folder / RESULT)
            continue
        for part in (*sorted(old.glob(f"{BESIDE}*")), old):
            remove_torn(part)
            for name in (*WRITTEN, filled):
                with suppress(OSError):
                    (part / name).unlink(missing_ok=True)
            remove_folders([part])


def _again_with_labels(folder: Path, filled_table: Table, table: Table, choices: Choices) -> str:
    """Write the table with labels that were given on the page in columns of their own.

    Return the command for that.
    """
    names = dict.fromkeys(map(str, filled_table.frame.columns))
    target, marks = (unused_name(f"{choices.target}_{word}", names) for word in ("label", "random"))
    new = {target: table.frame[choices.target]}
    options = choices.options()
    if choices.target in names:
        options = replace(options, ignore=[*choices.ignore, str(choices.target)])
    if choices.labels and choices.column is not None:
        new[marks] = pd.Series(np.where(table.frame[choices.column], "yes", "no"))
        options = replace(options, labels=Drawn(marks))
    file = folder / result_name(Path(filled_table.name).name, "labelled")
    write(file, filled_table, pd.DataFrame(new), force=True)
    shown = Path(*file.parts[-3:]).as_posix()  # from the folder of the table
    return options.as_command(shown, target, "auto", **filled_table.flags)


def leave_all(
    results: Mapping[str, FillResult],
    table: Table,
    part: Path,
    about: JsonObject,
    again: str,
) -> None:
    """Write everything that is shown of one column, or of several.

    Those that were filled along have folders of their own; the filled table has all new columns.
    """
    first, *others = results
    new = pd.concat([result.columns_for_file for result in results.values()], axis=1)
    lines = [_in_a_line(name, result) for name, result in results.items()]
    about = about | {"several": lines if others else []}
    leave(results[first], table, part, about, again, new)
    for place, name in enumerate(others, start=1):
        folder = part / beside_folder(place)
        folder.mkdir()
        own_account = about | {"choices": asdict(Choices(**about["choices"]).of_column(name))}
        leave(results[name], table, folder, own_account, "")


def beside_folder(place: int) -> str:
    """Return the folder of a column that was filled along; 1 is the first of these."""
    return f"{BESIDE}{place}"


def _in_a_line(name: str, result: FillResult) -> JsonObject:
    """Return what the summary of several columns says of one."""
    summary = result.summary()
    cards: list[Any] = summary["cards"]
    return {
        "name": name,
        "filled": summary["counts"]["answered"],
        "empty": summary["counts"]["unlabelled"],
        "labelled": summary["counts"]["labelled"],
        "good": cards[0]["large"],
        "tone": cards[0]["tone"],
        "guarantee": result.guarantee.headline,
    }


def leave(
    result: FillResult,
    table: Table,
    part: Path,
    about: JsonObject,
    again: str,
    new: pd.DataFrame | None = None,
) -> None:
    """Write everything that is shown of a column.

    The report, the numbers, the answers row by row, and the table with its new columns, or these.
    """
    summary = result.summary(again=again)
    with stage("report"):
        write_text(part / "report.html", render_html(summary))
        write_text(part / "numbers.json", render_json(summary))
    with stage("writing"):
        name = result_name(table.name, "filled")
        write(part / name, table, result.columns_for_file if new is None else new)
        trusted, trust = _trust(result, part)
        answers = _answers(result).assign(**trusted)
        answers.to_feather(part / "answers.feather", compression="uncompressed")
        _errors_at_labels(result).to_feather(part / ERRORS)
        brief = {part: entry for part, entry in summary.items() if part != "rows"} | about
        brief |= {"filled": name, "trust": trust, "scale": _scale(answers)}
        brief["known"] = _ends(result)
        if result.advice is None:
            advised = []
        else:
            advised = list(result.advice.rows)
        brief["advised"] = [row for row in advised if result.labels.missing[row]]
        brief["by_column"] = tables_by_column(result.reported)
        brief["one_table"] = None
        if result.guarantee.kind != "none":
            brief["one_table"] = one_table(result.miscoverage, result.guarantee)
        write_text(part / "brief.json", render_json(brief))


def _ends(result: FillResult) -> list[float] | None:
    """Return the least and the largest known value; None of classes."""
    if result.task != "regression":
        return None
    known = result.labels.known
    return [float(min(known)), float(max(known))]


def _answers(result: FillResult) -> pd.DataFrame:
    """Return the answers, one line for each, the least certain first."""
    answer = result.answer
    order = least_certain_first(result.answer)
    columns: JsonObject = {
        "row": answer.rows[order].astype(np.int64),
        "status": answer.status[order],
    }
    if result.task == "regression":
        if answer.regions is None:
            ends = np.full((len(order), 2), np.nan)
        else:
            ends = answer.regions.hull()[order]
        columns |= {
            "value": answer.values[order].astype(float),
            "low": ends[:, 0],
            "high": ends[:, 1],
        }
        columns["width"] = ends[:, 1] - ends[:, 0]
        moments = result.labels.spelling.moments
        if moments is not None:
            for name in ("value", "low", "high"):
                texts = (
                    moments.shown(number) if np.isfinite(number) else None
                    for number in columns[name]
                )
                columns[f"{name}_text"] = [*texts]
        return pd.DataFrame(columns)
    columns["value"] = [json_name(number) for number in answer.values[order]]
    probability = result.new[f"{result.target}_probability"].to_numpy(dtype=float, na_value=np.nan)
    columns["chance"] = probability[answer.rows[order]]
    if answer.label_sets is not None and answer.classes is not None:
        names = [json_name(number) for number in answer.classes]
        sets = [
            [names[place] for place in np.flatnonzero(mask)] for mask in answer.label_sets[order]
        ]
        columns |= {"set": sets, "size": answer.label_sets[order].sum(axis=1)}
    return pd.DataFrame(columns)


def _scale(answers: pd.DataFrame) -> list[float] | None:
    """Return from where to where intervals are drawn.

    All of their ends, unless a few are far from all others.
    """
    if "low" not in answers:
        return None
    ends = answers[["low", "high", "value"]].to_numpy()
    ends = ends[np.isfinite(ends)]
    if not len(ends):
        return None
    low, high = np.quantile(ends, [0.02, 0.98])
    return [
        float(max(ends.min(), low - (high - low) / 2)),
        float(min(ends.max(), high + (high - low) / 2)),
    ]


def _trust(result: FillResult, part: Path) -> tuple[JsonObject, JsonObject]:
    """Write what rows to trust are picked by.

    Return columns of the answers for it, and what is offered.
    """
    refusal = _why_no_trust(result)
    if refusal is not None:
        return {}, refusal
    # Labels that calibrate pick rows with a bounded share of mistakes among them; the answers are
    # those of the fit that saw no calibration label.
    estimator = result.fit.model.estimator
    numbers = result.task == "regression"
    if numbers:
        ranges = result.ranges_in_fit
        picked = estimator.select(tolerance=1.0, false_discovery=0.5, ranges=ranges)
    else:
        picked = estimator.select(correct=True, false_discovery=0.5)
    if picked.guarantee.kind == "none":
        return {}, {
            "why_not": "With this labelling design, no false discovery rate can be guaranteed."
        }
    judged = picked.judged
    assert judged is not None
    pd.DataFrame(dict(zip(KNOWN, judged.of_known, strict=True))).to_feather(part / "judged.feather")
    order = result.places_in_fit[least_certain_first(result.answer)]
    answers: Any = np.asarray(picked.answers)[order]
    offered: list[float] = []
    if numbers:
        offered = _tolerances(judged.of_known[2])
    else:
        answers = [json_name(answer) for answer in answers]
    columns = {"unsure": judged.unsure[order], "first": answers}
    useful = [
        tolerance for tolerance in offered if pick(judged.p_values(tolerance), USUAL_SHARE).any()
    ]
    usual = next(iter([*useful, *offered]), None)
    return columns, {
        "offered": offered,
        "usual": usual,
        "headline": picked.guarantee.headline,
        "why_not": "",
    }


def _why_no_trust(result: FillResult) -> JsonObject | None:
    """Return why no rows to trust can be picked, and what would help; None if some can."""
    if result.seen.is_sample:
        return {
            "why_not": "This cannot be told of a table so large that the fit saw a part of it "
            "only: a table with fewer of its rows can be asked.",
            "can_draw": False,
        }
    if not result.fit.model.holds_out:
        can = calibration_number(result.labels.n_labels, result.confidence) > 0
        why = "No known value was kept aside, by which this could be told."
        return {"why_not": why, "can_hold_out": can}
    if len(result.answer) < len(result.fit.answer):
        return {
            "why_not": "This cannot be told as long as values that were given after the random "
            "draws are not learnt from: which rows got one was no chance."
        }
    return None


def _tolerances(off: Array) -> list[float]:
    """Return round numbers that answers may be off by.

    From a small to a large error at labels that were hidden.
    """
    off = off[np.isfinite(off)]
    if len(off):
        typical = float(np.median(off))
    else:
        typical = 1.0
    start = np.floor(np.log10(max(typical, 1e-12) / 2))
    steps = [
        float(f"{step * 10.0 ** (start + power):.1g}") for power in range(4) for step in (1, 2, 5)
    ]
    return [size for size in steps if size >= typical / 2][:TOLERANCES]


def _changes(before: Path, after: Path) -> None:
    """Write what changed since the fill before this one, at the rows that both answered."""
    old, new = (json.loads((path / "brief.json").read_text("utf-8")) for path in (before, after))
    if old["target"] != new["target"] or old["task"] != new["task"]:
        return
    both = pd.read_feather(before / "answers.feather").merge(
        pd.read_feather(after / "answers.feather"),
        on="row",
        suffixes=("_old", "_new"),
    )
    value_old = both["value_old"]
    value_new = both["value_new"]
    changed = value_old != value_new
    sizes = both.filter(like="size_").mean()
    if new["task"] == "regression":
        spread = float(np.nanstd(value_old.to_numpy(float))) or 1.0
        changed = (value_old - value_new).abs() > 0.01 * spread
        sizes = both[["width_old", "width_new"]].fillna(np.inf).median()
    lines = {
        "rows": len(both),
        "changed": int(changed.sum()),
        "labels": new["counts"]["labelled"] - old["counts"]["labelled"],
        "size": [finite_or_none(size) for size in sizes] or [None, None],
        "guarantee": [old["guarantee"]["headline"], new["guarantee"]["headline"]],
        "quality": None,
    }
    if old["quality"] and new["quality"]:
        lines["quality"] = _compare_errors(before, after)
        # Predictions for the class shares of the rows without a value are wrong more often at the
        # known values, whose shares are others: that tells nothing of which fill is better.
        if lines["quality"] is not None and _is_by_class(old) != _is_by_class(new):
            lines["quality"] |= {"means": None, "other_shares": True}
    write_text(after / "changes.json", json.dumps(lines))


def _is_by_class(brief: JsonObject) -> bool:
    """Return whether a fill took the known values to be chosen by their class."""
    choices = brief["choices"]
    return bool(choices["way"] == "class" and not choices["labels"])


def _errors_at_labels(result: FillResult) -> pd.DataFrame:
    """Return how wrong the answer at each hidden label was, and how much it counts."""
    folds = result.out_of_fold
    true = folds["true"]
    answered = folds["answered"]
    if result.task == "regression":
        error = (true.astype(float) - answered.astype(float)).abs()
    else:
        error = (true.astype(str) != answered.astype(str)).astype(float)
    if "weight" in folds:
        weight = folds["weight"]
    else:
        weight = pd.Series(1.0, index=folds.index)
    lines = {"row": folds.index, "error": error.to_numpy(float), "weight": weight.to_numpy(float)}
    return pd.DataFrame(lines).astype({"row": np.int64})


def _compare_errors(before: Path, after: Path) -> JsonObject | None:
    """Return the mean errors at the same known values before and now, if these are enough."""
    # Other rows are easier or harder by chance: 302 rows of one fill beside 19 others of the next
    # told of a gain that was none.
    if not (before / ERRORS).exists():  # of a fill by an earlier version
        return None
    old, new = (pd.read_feather(folder / ERRORS) for folder in (before, after))
    both = old.merge(new, on="row", suffixes=("_old", "_new")).dropna()
    comparison: JsonObject = {
        "measured": [len(old), len(new)],
        "rows": len(both),
        "means": None,
    }
    if len(both) < FEWEST_COMPARED:
        return comparison
    weight = both["weight_new"] / both["weight_new"].sum()
    means = [float((weight * both[f"error_{fill}"]).sum()) for fill in ("old", "new")]
    grown = both["error_new"] - both["error_old"]
    mean = means[1] - means[0]
    standard_error = float(np.sqrt((weight**2 * (grown - mean) ** 2).sum()))
    clear = abs(mean) > 2.0 * standard_error and abs(mean) > LEAST_CHANGE * max(means)
    return comparison | {"means": means, "clear": clear, "worse": clear and mean > 0.0}


def as_sentence(error: Exception, folder: Path | None = None) -> str:
    """Return what went wrong as a sentence.

    Our own as it is, that of a library with what it is about. Files of the folder that the page
    shows are called by their names.
    """
    message = str(error).strip()
    if folder is not None:
        message = message.replace(f"{folder}{os.sep}", "")
    if isinstance(error, MemoryError):
        return "There is not enough memory."
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"The file {Path(str(error.filename)).name!r} cannot be used: {error.strerror}."
    if isinstance(error, ValueError | TypeError | OSError) and message.endswith((".", "?", "!")):
        return message
    kind = type(error).__name__
    return (
        "This could not be done, because of a mistake in the program or something odd in the table "
        f"({kind}{f': {message}' if message else ''}). Nothing that you said is lost."
    )


def main(folder: Path) -> None:
    """Fill, tell progress line by line, and end when nobody listens any more."""
    out = sys.stdout
    sys.stdout = sys.stderr
    last_told = time.monotonic() - 1.0

    def end_with_the_program() -> None:
        sys.stdin.read()
        os._exit(1)

    def write_line(line: Mapping[str, str | float]) -> None:
        print(json.dumps(line), file=out, flush=True)

    def tell_stage(name: str, share: float) -> None:
        nonlocal last_told
        now = time.monotonic()
        if not np.isnan(share) and (share in (0.0, 1.0) or now - last_told > 0.1):
            last_told = now
            write_line({"stage": name, "share": share})

    def tell_forecast(forecast: Forecast) -> None:
        write_line({"forecast": forecast.seconds})

    def tell_column(name: str, place: int, n_columns: int) -> None:
        write_line({"column": name, "place": place, "of": n_columns})

    threading.Thread(target=end_with_the_program, daemon=True).start()
    remove_old_results(folder)
    with suppress(OSError, ValueError, KeyError):
        job = json.loads((folder / JOB).read_text("utf-8"))
        restrict_process([job["path"]], folder)
    try:
        work(folder, tell_stage, tell_forecast, tell_column)
    except Exception as error:  # whatever it is, the page says so
        write_line({"error": as_sentence(error, folder.parent.parent)})
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
