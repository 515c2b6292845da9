"""The command line: ``transduce fill``, ``compare``, ``methods`` and ``demo``."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

import transduce
from transduce.cli.demo import TABLES
from transduce.cli.terminal import progress_bars, refusals, say
from transduce.core.words import GUARANTEES, SHIFTS, TASKS
from transduce.model_selection.methods import METHODS

MethodName = Enum("MethodName", {name: name for name in METHODS}, type=str)  # type: ignore[misc]
TaskName = Enum("TaskName", {name: name for name in TASKS}, type=str)  # type: ignore[misc]
DemoName = Enum("DemoName", {name: name for name in TABLES}, type=str)  # type: ignore[misc]
GuaranteeName = Enum("GuaranteeName", {name: name for name in GUARANTEES}, type=str)  # type: ignore[misc]
AUTO_GUARANTEE = GuaranteeName("auto")
ShiftName = Enum("ShiftName", {name: name for name in SHIFTS}, type=str)  # type: ignore[misc]
AUTO_SHIFT = ShiftName("auto")
LabelTask = Enum("LabelTask", {name: name for name in ("auto", "classes", "numbers")}, type=str)  # type: ignore[misc]
AUTO_LABELS = LabelTask("auto")
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
        from transduce.tables.writing import out_kind

        try:
            out_kind(value, "csv")
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
    return value


def _out_or_folder(value: str | None) -> str | None:
    """Return the name of a folder, which ends in / or exists, or of a file whose kind is known."""
    if value is not None and (value.endswith(("/", "\\")) or Path(value).is_dir()):
        return value
    return _out(value)


def _plot(value: Path | None) -> Path | None:
    """Return the name of a plot whose kind is known, or refuse it."""
    if value is not None and value.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise typer.BadParameter(f"{value}: let its name end in .png, .svg or .pdf.")
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
        help="CSV, TSV, Parquet, Feather, Excel, JSON or JSON lines, also compressed with gzip or zip; - for standard "
        "input.",
    ),
]
TargetOption = Annotated[
    str, typer.Option("--target", metavar="COLUMN", help="The column to fill.", show_default=False)
]
TargetsOption = Annotated[
    list[str],
    typer.Option(
        "--target", metavar="COLUMN", help="The column to fill. May be repeated.", show_default=False
    ),
]
MethodOption = Annotated[MethodName, typer.Option(help="How to fill; see `transduce methods`.")]
ConfidenceOption = Annotated[
    float,
    typer.Option(callback=_share, help="Probability with which each interval or set contains the truth."),
]
JobsOption = Annotated[
    int | None,
    typer.Option(
        metavar="N", callback=_jobs, help="Number of fits at the same time; -1 for one on each core."
    ),
]
TaskOption = Annotated[TaskName, typer.Option(help="Whether labels are numbers or classes.")]
IgnoreOption = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Leave out this column. May be repeated.")
]
TextOption = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Read this column word by word. May be repeated.")
]
MissingOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="VALUE",
        help="Take cells of any column that hold this value as empty, for example --missing=-999. May be repeated.",
    ),
]
SheetOption = Annotated[
    str | None, typer.Option(metavar="SHEET", help="The sheet of an Excel file, by name or number.")
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
def fill_command(  # noqa: PLR0913
    table: TableFile,
    target: TargetsOption,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            callback=_out_or_folder,
            help="Where to write the filled table, in the format of its name; - for standard output; a name that ends "
            "in / is a folder, to which it is written part by part. By default beside the table, as NAME-filled.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a report: one HTML file to read and to pass on."),
    ] = None,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the numbers of the report as JSON.")
    ] = None,
    method: MethodOption = AUTO_METHOD,
    confidence: ConfidenceOption = 0.9,
    certainty: Annotated[
        float, typer.Option(callback=_share, help="Certainty of the guarantee for the whole column.")
    ] = 0.95,
    guarantee: Annotated[
        GuaranteeName,
        typer.Option(
            help="What is guaranteed: each row by itself with no label held out, or the column too; auto goes by the "
            "number of labels."
        ),
    ] = AUTO_GUARANTEE,
    label_conditional: Annotated[
        bool, typer.Option("--label-conditional", help="Classes: let the guarantee hold within every class.")
    ] = False,
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=0.0, metavar="AMOUNT", help="Numbers: bound how many answers are off by more than this."
        ),
    ] = None,
    probabilities: Annotated[
        bool,
        typer.Option("--probabilities", help="Classes: add a column for the probability of every class."),
    ] = False,
    random_labels: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="A column that marks rows drawn at random to be labelled: these calibrate. See `transduce draw`.",
        ),
    ] = None,
    sampling_probability: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="The probability with which each row was chosen to be labelled, if known."
        ),
    ] = None,
    shift: Annotated[
        ShiftName,
        typer.Option(
            help="Whether to weigh labels by estimated odds of a label: where rows differ, always, or never."
        ),
    ] = AUTO_SHIFT,
    sensitivity: Annotated[
        float,
        typer.Option(
            min=1.0, metavar="FACTOR", help="Hold even if odds of a label depend on the value by this factor."
        ),
    ] = 1.0,
    groups: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Groups of rows: the guarantee is about rows of new groups."),
    ] = None,
    within: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Categories: the guarantee holds within each.")
    ] = None,
    order: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="An order, such as a date: test for drift along it.")
    ] = None,
    task: TaskOption = AUTO_TASK,
    ignore: IgnoreOption = None,
    text: TextOption = None,
    id: IdOption = None,
    missing: MissingOption = None,
    sheet: SheetOption = None,
    seed: SeedOption = 0,
    minimum: Annotated[
        float | None,
        typer.Option("--min", metavar="NUMBER", help="Numbers: the least value that is possible."),
    ] = None,
    maximum: Annotated[
        float | None,
        typer.Option("--max", metavar="NUMBER", help="Numbers: the largest value that is possible."),
    ] = None,
    label_next: Annotated[
        bool,
        typer.Option("--label-next", help="Add a column that numbers the rows whose labels would help most."),
    ] = False,
    reject_share: Annotated[
        float | None,
        typer.Option(
            callback=_share,
            metavar="SHARE",
            help="Mark this share of the answers, the least certain, as rejected.",
        ),
    ] = None,
    sample: Annotated[
        int,
        typer.Option(
            min=100,
            metavar="ROWS",
            help="How many rows without a label the fit sees; it answers all others one by one.",
        ),
    ] = 20_000,
    device: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Where to compute: cuda, for the methods that can."),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="For a table in parts: how much memory to use, such as 2GB; half of what is free by default.",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="For a table in parts: the scheduler of a Dask cluster, such as tcp://host:8786, or local.",
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Save what `transduce answer` needs to answer rows that come later."
        ),
    ] = None,
    budget: Annotated[
        float,
        typer.Option(
            min=1.0, metavar="SECONDS", help="Leave slow methods out of the blend to finish within this time."
        ),
    ] = 300.0,
    jobs: JobsOption = None,
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """Fill the empty cells of a column, with an interval or a set of classes, a confidence and a status at each.

    The table comes back with new columns after its own: COLUMN_filled, COLUMN_lower and COLUMN_upper (or COLUMN_set),
    COLUMN_confidence and COLUMN_status. Its own columns stay as they were.

    A folder of files, a pattern such as 'data/*.parquet', or a file that is too large for the memory is filled part by
    part into a folder; the same command goes on where a stopped one ended.
    """
    with refusals():
        with progress_bars(quiet=quiet):
            from transduce.cli import commands

            show = commands.fill_file(
                table,
                target,
                commands.Outputs(out, report, json, save=save, force=force, quiet=quiet),
                commands.Parts(memory, cluster),
                method=method.value,
                confidence=confidence,
                certainty=certainty,
                guarantee=guarantee.value,
                label_conditional=label_conditional,
                tolerance=tolerance,
                probabilities=probabilities,
                random_labels=random_labels,
                sampling_probability=sampling_probability,
                shift=shift.value,
                sensitivity=sensitivity,
                groups=groups,
                within=within,
                order=order,
                task=task.value,
                ignore=ignore or [],
                text=text or [],
                id=id,
                missing=missing or [],
                sheet=sheet,
                minimum=minimum,
                maximum=maximum,
                label_next=label_next,
                reject_share=reject_share,
                budget_seconds=budget,
                sample=sample,
                device=device,
                n_jobs=jobs,
                random_state=seed,
            )
        show()


@app.command()
def answer(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that `fill --save` wrote.")],
    table: TableFile,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            callback=_out,
            help="Where to write the rows with their answers. By default beside the table, as NAME-answered.",
        ),
    ] = None,
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """Answer rows that come later, from a table that was filled with --save.

    The file holds the table that was filled and the settings, no code: the fit is done again. The rows need the columns
    of that table; they come back with the new columns after their own.
    """
    with refusals():
        with progress_bars(quiet=quiet):
            from transduce.cli import commands

            show = commands.answer_file(model, table, commands.Outputs(out, force=force, quiet=quiet))
        show()


@app.command()
def draw(  # noqa: PLR0913
    table: TableFile,
    target: TargetOption,
    number: Annotated[int, typer.Option(min=1, help="How many rows to draw.")] = 20,
    missing: MissingOption = None,
    sheet: SheetOption = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            callback=_out,
            help="Where to write the table. By default beside it, as NAME-draw.",
        ),
    ] = None,
    seed: SeedOption = 0,
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """Draw rows at random that are to be labelled, so that the guarantee holds however the other labels were chosen.

    The table comes back with a column COLUMN_random that marks the rows drawn. Label them, keep all other cells as they
    are, and fill with --random-labels COLUMN_random. Draw last: rows labelled on purpose afterwards spoil the draw.
    """
    with refusals():
        with progress_bars(quiet=quiet):
            from transduce.cli import commands

            show = commands.draw_rows_of(
                table,
                target,
                commands.Outputs(out, force=force, quiet=quiet),
                number=number,
                seed=seed,
                missing=missing or [],
                sheet=sheet,
            )
        show()


@app.command()
def label(  # noqa: PLR0913
    table: Annotated[
        str | None,
        typer.Argument(metavar="TABLE", help="The table; it is never written to.", show_default=False),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="COLUMN", help="The column to label.", show_default=False),
    ] = None,
    show: Annotated[
        str | None,
        typer.Option(metavar="COLUMNS", help="Columns to show, separated by commas; all by default."),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Classes, separated by commas; by default those that the table has, or yes and no.",
        ),
    ] = None,
    wanted: Annotated[str | None, typer.Option(metavar="CLASS", help="The class to be found.")] = None,
    task: Annotated[LabelTask, typer.Option(help="Whether labels are classes or numbers.")] = AUTO_LABELS,
    recall: Annotated[
        float, typer.Option(callback=_share, help="Share of the wanted rows that is to be found.")
    ] = 0.95,
    certainty: Annotated[float, typer.Option(callback=_share, help="How certain that is to be.")] = 0.95,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where the page is served; 0 is any free port.")
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, and open nothing.")
    ] = False,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the random draws.")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Label bundled images of digits.")] = False,
) -> None:
    """Label a table on a page in the browser, which answers the other rows and says when you can stop.

    Decisions are saved in a journal beside the table; the same command continues where you stopped.
    """
    with refusals():
        from transduce.labelling import SessionSettings
        from transduce.page.command import run_label

        run_label(
            table,
            target,
            show=_parted(show),
            classes=_parted(classes),
            wanted=wanted,
            settings=SessionSettings(recall=recall, certainty=certainty, task=task.value, seed=seed),
            port=port,
            browser=not no_browser,
            demo=demo,
            say=say,
            working=lambda: progress_bars(quiet=False),
        )


def _parted(words: str | None) -> list[str]:
    """Return words that commas part."""
    return [] if words is None else [word.strip() for word in words.split(",") if word.strip()]


@app.command()
def compare(  # noqa: PLR0913
    table: TableFile,
    target: TargetOption,
    task: TaskOption = AUTO_TASK,
    ignore: IgnoreOption = None,
    text: TextOption = None,
    id: IdOption = None,
    missing: MissingOption = None,
    sheet: SheetOption = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of cross-validation.")] = 5,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", callback=_plot, help="Save a plot as PNG, SVG or PDF, as the name says."
        ),
    ] = None,
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """Score every method that suits the table, and a random forest, by hiding labels in turn."""
    with refusals():
        with progress_bars(quiet=quiet):
            from transduce.cli import commands

            show = commands.compare_file(
                table,
                target,
                commands.Outputs(plot=plot, force=force, quiet=quiet),
                task=task.value,
                ignore=ignore or [],
                text=text or [],
                id=id,
                missing=missing or [],
                sheet=sheet,
                folds=folds,
                n_jobs=jobs,
                random_state=seed,
            )
        show()


@app.command()
def methods() -> None:
    """List the methods, with the papers they come from."""
    with refusals():
        from transduce.cli import commands

        commands.list_methods()


@app.command()
def example(
    out: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it.")] = Path("houses.csv"),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a real table with missing prices, to try things on: 400 districts of California in 1990."""
    with refusals():
        from transduce.cli import commands

        commands.write_example(out, force=force)


@app.command()
def demo(
    name: Annotated[DemoName, typer.Argument(help="The table.")] = FIRST_DEMO,
    folder: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the files go.")] = Path("demo-output"),
    method: MethodOption = AUTO_METHOD,
    confidence: ConfidenceOption = 0.9,
    seed: SeedOption = 0,
    quiet: QuietOption = False,
) -> None:
    """Hide labels of a bundled real table, fill them, and compare with the truth.

    It writes the table with missing labels, the filled table and a report; files of an earlier demo are replaced.
    """
    with refusals():
        with progress_bars(quiet=quiet):
            from transduce.cli import commands

            show = commands.run_demo(
                name.value, folder, method=method.value, confidence=confidence, random_state=seed
            )
        show()


def main() -> None:
    """Run the command line."""
    app(prog_name="transduce")
