"""The command line: ``transduce fill``, ``compare``, ``methods`` and ``demo``, its options those of `Options`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

import transduce
from transduce.cli.demo import TABLES
from transduce.cli.terminal import progress_bars, refusals, say
from transduce.core.words import flag
from transduce.filling.options import (
    COLUMNS,
    DEFAULTS,
    LABEL_DEFAULTS,
    LABEL_FLAGS,
    LARGE,
    OPTIONS,
    OUTPUT,
    PANELS,
    Option,
)

app = typer.Typer(
    name="transduce",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Fill the empty cells of one column of a table, and say what is guaranteed.\n\n"
    "Exit codes: 0 done, 1 bad data, 2 bad usage, 130 interrupted.",
)


# ----------------------------------------------------------------------------------------- options of several commands


class PanelCommand(TyperCommand):
    """A command whose help shows options in panels, in the order of a user's questions."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and options, panel by panel."""
        panels: dict[str, list[tuple[str, str]]] = {panel: [] for panel in ("Arguments", *PANELS)}
        for one in self.get_params(ctx):
            record = one.get_help_record(ctx)
            panel = (
                "Arguments" if one.param_type_name == "argument" else getattr(one, "rich_help_panel", None)
            )
            if record is not None:
                panels.setdefault(panel or "Options", []).append(record)
        for panel, records in panels.items():
            if records:
                with formatter.section(panel):
                    formatter.write_dl(records)


def takes(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command take options of `fill`, spelled, explained and checked as there."""

    def add(command: Callable[..., None]) -> Callable[..., None]:
        plain = inspect.signature(command, eval_str=True)
        own = [one for one in plain.parameters.values() if one.kind is not one.VAR_KEYWORD]
        every = [*own, *map(_parameter, names)]
        command.__signature__ = plain.replace(parameters=every)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in every}
        return command

    return add


def _parameter(name: str) -> inspect.Parameter:
    """Return an option as typer reads it."""
    one = OPTIONS.get(name) or LABEL_FLAGS[name]
    default = DEFAULTS[name] if name in DEFAULTS else LABEL_DEFAULTS[name]
    kind: Any = Literal[one.choices] if one.choices else one.kind
    help = one.help
    if kind is list:
        kind, default, help = list[str] | None, None, f"{help} May be repeated."
    elif default is None:
        kind = kind | None
    about = typer.Option(
        flag(name),
        help=help,
        metavar=one.metavar or None,
        callback=_checked(flag(name), one),
        rich_help_panel=one.panel,
    )
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, about]
    )


def _checked(word: str, one: Option) -> Callable[[Any], Any] | None:
    """Return what checks an option where it is read, so that a bad one is bad usage."""
    if one.check is None or one.choices or one.kind is list:
        return None

    def check(value: Any) -> Any:
        if value is not None and one.check is not None:
            try:
                one.check(word, value)
            except ValueError as error:
                raise typer.BadParameter(str(error)) from None
        return value

    return check


def _share(value: float) -> float:
    """Return a share, or refuse what does not lie strictly between 0 and 1."""
    if not 0.0 < value < 1.0:
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
SheetOption = Annotated[
    str | None,
    typer.Option(
        metavar="SHEET", help="The sheet of an Excel file, by name or number.", rich_help_panel=COLUMNS
    ),
]
QuietOption = Annotated[
    bool,
    typer.Option(
        "--quiet", help="Show results and errors only, no progress and no notes.", rich_help_panel=OUTPUT
    ),
]
ForceOption = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace existing files; go on with a table that may not fit into memory.",
        rich_help_panel=OUTPUT,
    ),
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


# ------------------------------------------------------------------------------------------------------ the commands


@app.command("fill", cls=PanelCommand)
@takes(*(name for name in OPTIONS if name != "labels"), *LABEL_FLAGS)
def fill_command(  # noqa: PLR0913
    table: TableFile,
    target: Annotated[
        list[str],
        typer.Option(
            "--target",
            metavar="COLUMN",
            help="The column to fill. May be repeated.",
            show_default=False,
            rich_help_panel=PANELS[0],
        ),
    ],
    sheet: SheetOption = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            callback=_out_or_folder,
            rich_help_panel=OUTPUT,
            help="Where to write the filled table, in the format of its name; - for standard output; a name that ends "
            "in / is a folder, to which it is written part by part. By default beside the table, as NAME-filled.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a report: one HTML file to read and to pass on.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    json: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the numbers of the report as JSON.", rich_help_panel=OUTPUT),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Save what `transduce answer` needs to answer rows that come later.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    quiet: QuietOption = False,
    force: ForceOption = False,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="For a table in parts: how much memory to use, such as 2GB; half of what is free by default.",
            rich_help_panel=LARGE,
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="For a table in parts: the scheduler of a Dask cluster, such as tcp://host:8786, or local.",
            rich_help_panel=LARGE,
        ),
    ] = None,
    **options: Any,
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

            outputs = commands.Outputs(out, report, json, save=save, force=force, quiet=quiet)
            parts = commands.Parts(memory, cluster)
            show = commands.fill_file(table, target, outputs, parts, commands.read_options(options), sheet)
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

    The file holds the table that was filled and the options, no code: the fit is done again. The rows need the columns
    of that table; they come back with the new columns after their own.
    """
    with refusals():
        with progress_bars(quiet=quiet):
            from transduce.cli import commands

            show = commands.answer_file(model, table, commands.Outputs(out, force=force, quiet=quiet))
        show()


@app.command()
@takes("missing", "random_state")
def draw(
    table: TableFile,
    target: TargetOption,
    number: Annotated[int, typer.Option(min=1, help="How many rows to draw.")] = 20,
    sheet: SheetOption = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            callback=_out,
            help="Where to write the table. By default beside it, as NAME-draw.",
        ),
    ] = None,
    quiet: QuietOption = False,
    force: ForceOption = False,
    **options: Any,
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
                seed=options["random_state"],
                missing=options["missing"] or [],
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
    task: Annotated[
        Literal["auto", "classes", "numbers"], typer.Option(help="Whether labels are classes or numbers.")
    ] = "auto",
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
            settings=SessionSettings(recall=recall, certainty=certainty, task=task, seed=seed),
            port=port,
            browser=not no_browser,
            demo=demo,
            say=say,
            working=lambda: progress_bars(quiet=False),
        )


def _parted(words: str | None) -> list[str]:
    """Return words that commas separate."""
    return [] if words is None else [word.strip() for word in words.split(",") if word.strip()]


@app.command()
@takes("task", "ignore", "text", "id", "missing", "random_state", "n_jobs")
def compare(
    table: TableFile,
    target: TargetOption,
    sheet: SheetOption = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of cross-validation.")] = 5,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", callback=_plot, help="Save a plot as PNG, SVG or PDF, as the name says."
        ),
    ] = None,
    quiet: QuietOption = False,
    force: ForceOption = False,
    **options: Any,
) -> None:
    """Score every method that suits the table, and a random forest, by hiding labels in turn."""
    with refusals():
        with progress_bars(quiet=quiet):
            from transduce.cli import commands

            outputs = commands.Outputs(plot=plot, force=force, quiet=quiet)
            show = commands.compare_file(
                table, target, outputs, commands.read_options(options), sheet=sheet, folds=folds
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
@takes("method", "confidence", "random_state")
def demo(
    name: Annotated[Literal[tuple(TABLES)], typer.Argument(help="The table.")] = "diabetes",  # type: ignore[valid-type]
    folder: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the files go.")] = Path("demo-output"),
    quiet: QuietOption = False,
    **options: Any,
) -> None:
    """Hide labels of a bundled real table, fill them, and compare with the truth.

    It writes the table with missing labels, the filled table and a report; files of an earlier demo are replaced.
    """
    with refusals():
        with progress_bars(quiet=quiet):
            from transduce.cli import commands

            show = commands.run_demo(name, folder, **options)
        show()


def main() -> None:
    """Run the command line."""
    app(prog_name="transduce")
