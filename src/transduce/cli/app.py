"""The command line: ``transduce fill``, ``compare``, ``methods`` and ``demo``."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

import transduce
from transduce.cli.demo import TABLES, compare_with_truth, demo_table
from transduce.cli.terminal import (
    progress_bars,
    refusals,
    say,
    show_choice,
    show_preview,
    show_result,
    show_table,
)
from transduce.core.atomic_file import check_free, whole_file
from transduce.core.progress import stage
from transduce.core.task import TASKS
from transduce.display.comparison import plot_comparison
from transduce.filling.fill import FillResult, fill
from transduce.filling.plan import METHODS, OTHERS, SYSTEMS
from transduce.model_selection.comparison import choose_method
from transduce.tables import files as tables
from transduce.tables.features import vectorize
from transduce.tables.target import check_columns, read_target

MethodName = Enum("MethodName", {name: name for name in METHODS}, type=str)  # type: ignore[misc]
TaskName = Enum("TaskName", {name: name for name in TASKS}, type=str)  # type: ignore[misc]
DemoName = Enum("DemoName", {name: name for name in TABLES}, type=str)  # type: ignore[misc]
AUTO_METHOD, AUTO_TASK, FIRST_DEMO = MethodName("auto"), TaskName("auto"), DemoName("diabetes")

app = typer.Typer(
    name="transduce",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Fill the empty cells of one column of a table, and say what is guaranteed.\n\n"
    "Exit codes: 0 done, 1 bad data, 2 bad usage, 130 interrupted.",
)


def _share(value: float | None) -> float | None:
    """Return a share, or refuse what does not lie strictly between 0 and 1."""
    if value is not None and not 0.0 < value < 1.0:
        raise typer.BadParameter(f"{value} does not lie strictly between 0 and 1.")
    return value


def _out(value: str | None) -> str | None:
    """Return the name of a file whose kind is known, or refuse it."""
    if value is not None:
        try:
            tables.out_kind(value, "csv")
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
    return value


def _jobs(value: int | None) -> int | None:
    """Return a number of jobs, or refuse 0."""
    if value == 0:
        raise typer.BadParameter("it must be a number of jobs, or -1 for one on each core.")
    return value


TableFile = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV, TSV, Parquet, Excel or JSON lines, packed with gzip or zip or not; - for standard input.",
    ),
]
TargetOption = Annotated[
    str, typer.Option("--target", metavar="COLUMN", help="The column to fill.", show_default=False)
]
MethodOption = Annotated[MethodName, typer.Option(help="How to fill; see `transduce methods`.")]
ConfidenceOption = Annotated[
    float, typer.Option(callback=_share, help="Probability with which each interval or set holds the truth.")
]
JobsOption = Annotated[
    int | None,
    typer.Option(metavar="N", callback=_jobs, help="Fits at the same time; -1 for one on each core."),
]
TaskOption = Annotated[TaskName, typer.Option(help="Whether labels are numbers or classes.")]
IgnoreOption = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Leave out this column. May be repeated.")
]
TextOption = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Read this column word by word. May be repeated.")
]
IdOption = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column that names the rows.")]
SeedOption = Annotated[int, typer.Option(min=0, help="The same seed gives the same answer.")]
QuietOption = Annotated[
    bool, typer.Option("--quiet", help="Show results and errors only, no progress and no notes.")
]
ForceOption = Annotated[
    bool,
    typer.Option("--force", help="Replace existing files; go on with a table that may not fit into memory."),
]


def _version(wanted: bool) -> None:
    if wanted:
        say(f"transduce {transduce.__version__}")
        raise typer.Exit


@app.callback()
def _start(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Fill the empty cells of one column of a table, and say what is guaranteed.

    Exit codes: 0 done, 1 bad data, 2 bad usage, 130 interrupted.
    """


@app.command("fill")
def fill_command(
    table: TableFile,
    target: TargetOption,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            callback=_out,
            help="Where the filled table goes, of the kind its name says; - for standard output. By default beside the "
            "table, as NAME-filled.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a report, one HTML file, to read and to send on."),
    ] = None,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the numbers of the report as JSON.")
    ] = None,
    method: MethodOption = AUTO_METHOD,
    confidence: ConfidenceOption = 0.9,
    certainty: Annotated[
        float, typer.Option(callback=_share, help="Certainty of the guarantee for the whole column.")
    ] = 0.95,
    task: TaskOption = AUTO_TASK,
    ignore: IgnoreOption = None,
    text: TextOption = None,
    id: IdOption = None,
    seed: SeedOption = 0,
    reject_share: Annotated[
        float | None,
        typer.Option(
            callback=_share,
            metavar="SHARE",
            help="Mark this share of the answers, the least certain, as rejected.",
        ),
    ] = None,
    budget: Annotated[
        float,
        typer.Option(
            min=1.0, metavar="SECONDS", help="Leave slow methods out of the blend to end in this time."
        ),
    ] = 300.0,
    jobs: JobsOption = None,
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """Fill the empty cells of a column, with an interval or a set of classes, a confidence and a status at each.

    The table comes back with new columns behind its own: COLUMN_filled, COLUMN_lower and COLUMN_upper (or COLUMN_set),
    COLUMN_confidence and COLUMN_status. Its own columns stay as they were.
    """
    with refusals():
        out = _default_out(table) if out is None else out
        _check_paths(table, report, json, out)
        for path in (out, report, json):
            if path is not None:
                check_free(path, force=force)
        with progress_bars(quiet=quiet):
            source = _read(table, force)
            result = fill(
                source.frame,
                target,
                method=method.value,
                confidence=confidence,
                certainty=certainty,
                task=task.value,
                ignore=ignore or [],
                text=text or [],
                id=id,
                reject_share=reject_share,
                budget_seconds=budget,
                n_jobs=jobs,
                random_state=seed,
                source=source.name,
            )
            written = _write(source, result, out, report, json, force)
        if not quiet:
            show_result(result, written, err=out == "-")


def _check_paths(table: str, *paths: str | Path | None) -> None:
    """Refuse to write two things to one file, or something else (the filled table comes last) over the table."""
    wanted = [None if path is None or str(path) == "-" else Path(path).resolve() for path in paths]
    named = [path for path in wanted if path is not None]
    if len(set(named)) < len(named) or sum(str(path) == "-" for path in paths) > 1:
        raise typer.BadParameter("--out, --report and --json name the same file: give each its own.")
    if table != "-" and Path(table).resolve() in wanted[:-1]:
        raise typer.BadParameter(f"{table} is the table itself: write the report and JSON to other files.")


def _default_out(table: str) -> str:
    """Return where the filled table goes if nobody says: beside the table, or to standard output."""
    if table == "-":
        return "-"
    path = Path(table)
    ends = "".join(path.suffixes[-2:]) if path.suffix.lower() in tables.PACKED else path.suffix
    name = path.name.removesuffix(ends)
    return str(path.with_name(f"{name}-filled{ends if tables.kind_of(path)[0] else '.csv'}"))


def _read(table: str, force: bool) -> tables.Table:
    with stage("reading"):
        return tables.read(table, force=force)


def _write(
    source: tables.Table, result: FillResult, out: str, report: Path | None, json: Path | None, force: bool
) -> list[str]:
    """Write what was asked for, the report first: it is the one that can fail."""
    if report is not None:
        result.report(report, force=force)
    if json is not None:
        result.json(json, force=force)
    with stage("writing"):
        tables.write(out, source, result.new, force=force)
    return [str(path) for path in (None if out == "-" else out, report, json) if path is not None]


@app.command()
def compare(
    table: TableFile,
    target: TargetOption,
    task: TaskOption = AUTO_TASK,
    ignore: IgnoreOption = None,
    text: TextOption = None,
    id: IdOption = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of cross-validation.")] = 5,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save a plot: PNG, SVG or PDF, as its name says.")
    ] = None,
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """Score every method that suits the table, and a random forest, by hiding labels in turn."""
    with refusals():
        if plot is not None:
            check_free(plot, force=force)
        with progress_bars(quiet=quiet):
            frame = _read(table, force).frame
            wanted = [target, *(ignore or []), *(text or []), *([] if id is None else [id])]
            check_columns(frame, wanted)
            labels = read_target(frame, target, task=task.value, confidence=0.5)
            features = vectorize(
                frame, target, ignore=ignore or [], text=text or [], id=id, random_state=seed
            )
            choice = choose_method(
                features.matrix, labels.labels, task=labels.task, cv=folds, n_jobs=jobs, random_state=seed
            )
            if plot is not None:
                _save(plot_comparison(choice.table, choice.scoring).figure, plot, force)
        show_choice(choice)
        if plot is not None and not quiet:
            say(f"Written: {plot}")


def _save(figure: Any, path: Path, force: bool) -> None:
    import matplotlib.pyplot as plt

    with whole_file(path, force=force) as file:
        figure.savefig(file, format=path.suffix.lstrip(".").lower() or "png", dpi=150)
    plt.close(figure)


@app.command()
def methods() -> None:
    """List the methods, with the papers they come from."""
    lines = [(method.name, method.says, method.paper) for method in (*SYSTEMS, *OTHERS)]
    show_table(pd.DataFrame(lines, columns=["method", "what it does", "from"]))


@app.command()
def demo(
    name: Annotated[DemoName, typer.Argument(help="The table.")] = FIRST_DEMO,
    folder: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the files go.")] = Path("demo-output"),
    method: MethodOption = AUTO_METHOD,
    confidence: ConfidenceOption = 0.9,
    seed: SeedOption = 0,
    quiet: QuietOption = False,
) -> None:
    """Hide labels of a bundled real table, fill them, and hold the guarantee against the truth.

    It writes the table with holes, the filled table and a report; files of an earlier demo are replaced.
    """
    with refusals():
        frame, target, truth = demo_table(name.value, seed)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name.value}.csv"
        with whole_file(path, force=True) as file:
            file.write(frame.to_csv(index=False).encode())
        with progress_bars(quiet=quiet):
            source = _read(str(path), force=True)
            result = fill(
                source.frame,
                target,
                method=method.value,
                confidence=confidence,
                task="regression" if truth.dtype.kind == "f" else "classification",
                random_state=seed,
                source=str(path),
            )
            written = _write(
                source,
                result,
                _default_out(str(path)),
                folder / f"{name.value}.html",
                folder / f"{name.value}.json",
                True,
            )
        say(f"{TABLES[name.value][2]}.")
        show_result(result, written)
        show_preview(result)
        say(str(compare_with_truth(result, truth)))


def main() -> None:
    """Run the command line."""
    app(prog_name="transduce")
