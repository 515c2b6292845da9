"""The command line: ``transduce fill``, ``open``, ``label`` and others.

Its options are those of `Options`.
"""

from __future__ import annotations

import gc
import inspect
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

import transduce
from transduce.app.cli.terminal import progress_bars, refusals, say
from transduce.app.filling import options as filling
from transduce.app.filling.options import (
    ANSWER,
    COLUMNS,
    LABELS,
    LARGE,
    LEVEL,
    OUTPUT,
    OWN_COLUMNS,
    PANELS,
    SHARE,
    Option,
    OptionType,
)
from transduce.core.types import OptionValues
from transduce.core.words import flag, in_shell, options_spelled

app = typer.Typer(
    name="transduce",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


class PanelCommand(TyperCommand):
    """A command whose help shows options in panels, in the order of a user's questions."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and options, panel by panel."""
        panels: dict[str, list[tuple[str, str]]] = {
            panel: [] for panel in ("Arguments", *PANELS, "Options")
        }
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            panel = getattr(parameter, "rich_help_panel", None) or "Options"
            if record is not None:
                panels["Arguments" if parameter.param_type_name == "argument" else panel].append(
                    record
                )
        for panel, records in panels.items():
            if records:
                with formatter.section(panel):
                    formatter.write_dl(records)


def _out(name: str, value: str) -> None:
    from transduce.app.tables.files import out_kind

    out_kind(value, "csv")


def _out_or_folder(name: str, value: str) -> None:
    """Let a name that ends in /, that of a folder, or one without an ending be.

    The table says which it is.
    """
    if not value.endswith(("/", "\\")) and not Path(value).is_dir() and Path(value).suffix:
        _out(name, value)


def _plot(name: str, value: Path) -> None:
    if value.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ValueError(f"{value}: let its name end in .png, .svg or .pdf.")


def _row(name: str, value: int) -> None:
    if value < 0:
        raise ValueError(f"{name} takes the number of a row, 0 or more.")


FILE = OptionType(Path, "FILE")
FLAG = OptionType(bool)
FILLED = (
    "Where to write the filled table; the ending of the name says the format, and - is standard "
    "output. A name that ends in /, or any name if the table is several files, is a folder. "
    "By default NAME-filled, beside the table."
)
MEMORY = (
    "For a table in several files: how much memory to use, such as 2GB. Default: half of what is "
    "free."
)
CLUSTER = (
    "For a table in several files: the scheduler of a Dask cluster, such as tcp://host:8786, or "
    "local."
)
COMMAND_OPTIONS = {  # options of the commands, besides those of `fill` in Python
    "sheet": Option(
        "The sheet of an Excel file, by name or number, or the table of a database.",
        COLUMNS,
        OptionType(str, "SHEET"),
    ),
    "header": Option(
        "The row of the file that holds the column names, counted from 1; 0 if there is none. "
        "By default it is detected.",
        COLUMNS,
        OptionType(int, "ROW", _row),
    ),
    "skip": Option(
        "How many rows to skip above the column names.", COLUMNS, OptionType(int, "NUMBER", _row)
    ),
    "rows": Option(
        "The first and the last row of data in the file, such as 5:120. By default, totals and "
        "notes below the data are left out.",
        COLUMNS,
        OptionType(str, "FIRST:LAST"),
    ),
    "decimal": Option(
        "The decimal sign, for numbers such as 4,729 that may be 4.729 or 4729 if no other number "
        "of the table settles it.",
        COLUMNS,
        OptionType(str, "point|comma"),
    ),
    "checks": Option(
        "The list that `transduce draw --list` wrote, with its rows labelled: the labels are used "
        "as if they stood in the table. Rows are matched by their numbers, or by --id.",
        LABELS,
        FILE,
    ),
    "out": Option(FILLED, OUTPUT, OptionType(str, "FILE", _out_or_folder)),
    "report": Option("Write a report: one HTML file that you can send to others.", OUTPUT, FILE),
    "json": Option("Write the numbers and sentences as JSON.", OUTPUT, FILE),
    "save": Option(
        "Save what `transduce answer` needs to predict rows that come later.", OUTPUT, FILE
    ),
    "select": Option(
        "Mark the filled rows that are reliably 'above 100', 'below 5', 'between 2 and 5', "
        "'within 10' (off by no more than that), 'of yes' (a class) or 'correct', at a false "
        "discovery rate of 10 %. Some labels are held out for it.",
        ANSWER,
        OptionType(str, "WORDS"),
    ),
    "plot": Option(
        "Save a plot; the name ends in .png, .svg or .pdf.", OUTPUT, OptionType(Path, "FILE", _plot)
    ),
    "quiet": Option("Show only results and errors, no progress and no notes.", OUTPUT, FLAG),
    "force": Option(
        "Replace existing files, and read a table even if it may not fit into memory.", OUTPUT, FLAG
    ),
    "memory": Option(MEMORY, LARGE, OptionType(str, "SIZE")),
    "cluster": Option(CLUSTER, LARGE, OptionType(str, "ADDRESS")),
}
PLACE = ("sheet", "header", "skip", "rows", "decimal")  # how the table's file is read
CLI_OPTIONS = {**filling.OPTIONS, **filling.LABEL_FLAGS, **COMMAND_OPTIONS}
CLI_DEFAULTS: OptionValues = {**dict.fromkeys(COMMAND_OPTIONS), "quiet": False, "force": False}
CLI_DEFAULTS |= filling.LABEL_DEFAULTS | filling.DEFAULTS


def takes(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command take options, spelled, explained and checked as they are everywhere."""

    def add(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        parameters = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        parameters += [_parameter(name) for name in names]
        signature = signature.replace(parameters=parameters)
        command.__signature__ = signature  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return command

    return add


def _parameter(name: str) -> inspect.Parameter:
    """Return an option as typer reads it."""
    option = CLI_OPTIONS[name]
    default = CLI_DEFAULTS[name]
    help = option.help
    kind: Any = option.kind.type
    if option.kind.choices:
        kind = Literal[option.kind.choices]
    parser = None
    if option.kind.type is float:
        parser = _share if option.kind in (LEVEL, SHARE) else _number
    if kind is list:
        kind = list[str] | None
        default = None
        help = f"{help} May be repeated."
    elif default is None:
        kind = kind | None
    described = typer.Option(
        flag(name),
        help=help,
        metavar=option.kind.metavar or None,
        callback=_checked(flag(name), option.kind),
        rich_help_panel=option.panel,
        parser=parser,
    )
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, described],
    )


def _number(text: Any) -> float:
    """Return a number of the command line, its signs read as those of cells are."""
    from transduce.app.tables.amounts import with_plain_signs

    try:
        return float(with_plain_signs(str(text)))
    except ValueError:
        raise typer.BadParameter(f"{str(text)!r} is not a valid float.") from None


def _share(text: Any) -> float:
    """Return a share of the command line, written as 0.95 or as 95%."""
    return _share_or_number(str(text))[0]


def _share_or_number(text: str) -> tuple[float, bool]:
    """Return a number, and whether it was written as a percentage."""
    word = text.strip()
    relative = word.endswith("%")
    number = _number(word.removesuffix("%").strip())
    return (number / 100.0 if relative else number), relative


def _checked(word: str, kind: OptionType) -> Callable[[Any], Any] | None:
    """Return what checks an option where it is read, so that a bad one is bad usage."""
    if kind.check is None or kind.choices or kind.type in (list, bool):
        return None

    def check(value: Any) -> Any:
        if value is not None and kind.check is not None:
            try:
                with options_spelled(in_shell):
                    kind.check(word, value)
            except ValueError as error:
                raise typer.BadParameter(str(error)) from None
        return value

    return check


def _option(name: str, metavar: str, help: str, **more: Any) -> Any:
    return typer.Option(name, metavar=metavar, help=help, **more)


def _table(help: str, **more: Any) -> Any:
    return typer.Argument(metavar="TABLE", help=help, **more)


OPENED = (
    "The table, or a folder of tables; by default the working directory. The table itself is never "
    "changed."
)
LABELLED = "The column to label."
BLINDLY = (
    "A column of predictions that were made elsewhere; repeat the option for columns of "
    "probabilities, one for each class. A prediction is hidden until its row has a label and then "
    "compared with it; certificates say how many predictions are wrong."
)
LABEL_BY = (
    "A column of predicted classes: draw --number rows, from each class separately, and judge them "
    "first. Repeat the option for columns of probabilities, one for each class. A draw that the "
    "table has from `transduce draw` is read without it."
)
LABEL_AGAIN = (
    "The column that another person labelled on this page: judge the rows that were judged there, "
    "without seeing how."
)
SHOWN = "Columns to show, separated by commas; all by default."
NAMES = "Classes, separated by commas; by default those in the table, or yes and no."
FRESH = "Seed of the draw, to draw the same rows again; by default a new one."
DRAW_BY = (
    "A column of predicted classes: draw from each class separately. Repeat the option for columns "
    "of probabilities, one for each class."
)
DRAW_UNCERTAIN = (
    "A column that says how uncertain each prediction is: draw from bands of it, and more rows "
    "from the uncertain bands."
)
ALLOCATION = (
    "With --by: as many rows from each class (equal), in proportion to its size (proportional), or "
    "in proportion to its size and expected spread (neyman). Before any row was checked, neyman "
    "leaves each class at least 10/11 of its number in proportion, so that statements on all rows "
    "are about as precise as from a plain draw, or more so; equal numbers tell most of each class "
    "by itself, and may tell less of all rows."
)
DRAW_EACH = "Instead of --number: so many rows from each class."
HIDDEN = (
    "A column of predictions to leave out of the list, besides those of --by; its classes are "
    "offered there. May be repeated."
)
LIST = (
    "Write only the drawn rows, without the predictions, as a sheet to fill in (.xlsx or .csv); "
    "--checks FILE reads it back, in `transduce fill`, `estimate` and `audit`."
)
CHECKED = "The column with the labels that a person gave; empty at rows that nobody checked."
PREDICTED = (
    "The column of predicted classes or numbers; a field of JSON objects is written with dots, "
    "such as output.label. Repeat the option for columns of probabilities, one for each class."
)
BY_GROUP = "A column of groups: also say how wrong the predictions are in each. May be repeated."
OTHER_FILE = "Another file that holds the target; rows are matched by --id."
SEEN = (
    "A column that marks rows whose labels the predictor has seen; they say nothing about the "
    "others."
)
RANDOM = (
    "A column that marks the rows drawn at random; by default the one that `transduce draw` writes."
)
STRATUM = "A column with the stratum of each row; by default the one that `transduce draw` writes."
OFF_BY = "Numbers: a prediction is wrong if it is off by more than this, such as 0.5 or 5%."
AT_MOST = (
    "Exit with code 3 unless it is shown that at most this share of the unchecked predictions is "
    "wrong, such as 5%."
)
SEVERAL = "The column to fill. May be repeated."
FORMATS_SENTENCE = (
    "CSV, TSV, Parquet, Feather, Excel, JSON or JSON lines, also compressed with gzip or zip; "
    ".xls, .xlsb, .ods, Stata, SPSS, SAS or SAS transport; or a table of SQLite or DuckDB, as "
    "file.db::table"
)
WRITTEN = (
    "Where to write the table; the ending of the name says the format, and - is standard output."
)
TableFile = Annotated[str, _table(f"{FORMATS_SENTENCE}; - for standard input.")]
OutFile = Annotated[
    str | None,
    _option("--out", "FILE", WRITTEN, callback=_checked("--out", OptionType(str, check=_out))),
]
TargetOption = Annotated[
    str, _option("--target", "COLUMN", "The column to fill.", show_default=False)
]


def _run(work: Callable[[], Callable[[], None]], *, quiet: bool) -> None:
    """Do what a command asks for with bars of progress; show the result once they are gone.

    The work imports what it needs, so that help is quick.
    """
    with refusals():
        with progress_bars(quiet=quiet):
            show = work()
        show()


def _version(wanted: bool) -> None:
    if wanted:
        say(f"transduce {transduce.__version__}")
        raise typer.Exit


@app.callback()
def _start(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Fill the empty cells of one column of a table, and say what is guaranteed.

    Exit codes: 0 done, 1 bad data, 2 bad usage, 3 what audit --at-most claims was not shown,
    130 interrupted.
    """


REPORT_BY = (
    "For --report and --json: show the mean of the whole column, or the share of a class, by the "
    "groups of this column. May be repeated. Default: a column with few values whose predictions "
    "differ."
)


@app.command("fill", cls=PanelCommand)
@takes(*(name for name in CLI_OPTIONS if name not in ("labels", "plot")))
def fill_command(
    table: TableFile,
    target: Annotated[
        list[str],
        _option("--target", "COLUMN", SEVERAL, show_default=False, rich_help_panel=ANSWER),
    ],
    by: Annotated[
        list[str] | None, _option("--by", "COLUMN", REPORT_BY, rich_help_panel=OUTPUT)
    ] = None,
    **options: Any,
) -> None:
    """Fill the empty cells of a column, with an interval or a set of classes and a status at each.

    The table comes back with new columns after its own: COLUMN_filled, COLUMN_lower, COLUMN_upper
    and COLUMN_width_reduction (or COLUMN_set, COLUMN_probability and COLUMN_confidence), and
    COLUMN_status. Its own columns stay as they were.

    A folder of files, a pattern such as 'data/*.parquet', or a file that is too large for the
    memory is filled file by file into a folder; if it is stopped, the same command continues.
    """

    def work() -> Callable[[], None]:
        from transduce.app.cli.fills import fill_file

        return fill_file(table, target, options, by or [])

    _run(work, quiet=options["quiet"])


@app.command()
@takes(*PLACE, "json", "quiet", "force")
def answer(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A file that `fill --save` wrote.")
    ],
    table: TableFile,
    out: OutFile = None,
    **options: Any,
) -> None:
    """Predict rows that come later, from a table that was filled with --save.

    The saved file holds the filled table and the options, but no code: the fit is done again. The
    later rows need the same columns as that table. They are written with the new columns after
    their own, by default to NAME-answered beside the table.
    """

    def work() -> Callable[[], None]:
        from transduce.app.cli.later_answers import answer_file

        return answer_file(model, table, options | {"out": out})

    _run(work, quiet=options["quiet"])


@app.command()
@takes("missing", "keep", *PLACE, "quiet", "force")
def draw(  # noqa: PLR0913
    table: TableFile,
    target: TargetOption,
    number: Annotated[int, typer.Option(min=1, help="How many rows to draw.")] = 20,
    seed: Annotated[int | None, _option("--seed", "SEED", FRESH, min=0)] = None,
    by: Annotated[list[str] | None, _option("--by", "COLUMN", DRAW_BY)] = None,
    uncertainty: Annotated[str | None, _option("--uncertainty", "COLUMN", DRAW_UNCERTAIN)] = None,
    allocation: Annotated[
        Literal["equal", "proportional", "neyman"], typer.Option(help=ALLOCATION)
    ] = "neyman",
    each: Annotated[int | None, _option("--each", "N", DRAW_EACH, min=1)] = None,
    predictions: Annotated[list[str] | None, _option("--predictions", "COLUMN", HIDDEN)] = None,
    to_check: Annotated[Path | None, _option("--list", "FILE", LIST)] = None,
    out: OutFile = None,
    **options: Any,
) -> None:
    """Draw rows at random, to label them.

    If you label these rows, the guarantee holds however the other labels were chosen.

    The table is written with the columns COLUMN_random, which marks the drawn rows,
    COLUMN_random_seed and COLUMN_random_probability, by default to NAME-draw beside it. If it has
    no column to be labelled yet, an empty one is added. Label the drawn rows, change no other cell,
    and fill with --random-labels COLUMN_random. Draw last: rows that you choose to label after the
    draw spoil it.

    With --by, rows are drawn from each predicted class separately, which tells more about rare
    classes. The column COLUMN_random_stratum then says from which, and `transduce audit` reads it.
    """
    options |= {"out": out, "list": to_check, "predictions": predictions or []}
    strata: OptionValues = {"by": tuple(by or ()), "uncertainty": uncertainty}
    strata |= {"allocation": allocation, "number": number, "seed": seed, "each": each}
    has_strata = by or uncertainty is not None or each is not None

    def work() -> Callable[[], None]:
        from transduce.app.cli.drawn_rows import draw_rows_of, draw_strata_of

        if has_strata:
            return draw_strata_of(table, target, strata, options)
        return draw_rows_of(table, target, number, seed, options)

    _run(work, quiet=options["quiet"])


ESTIMATED = tuple(
    name
    for name in CLI_OPTIONS
    if name
    not in (
        *("labels", "out", "report", "save", "confidence", "certainty", "tolerance", "guarantee"),
        *("label_conditional", "probabilities", "reject", "select", *OWN_COLUMNS),
    )
)
WHAT = (
    "What to ask: mean, total, share, median, 'quantile 0.9', 'share above 100', 'share of yes', "
    "difference, 'slope of income'. May be repeated. Default: the mean, or the share of every "
    "class."
)
BY = "A column of groups: one estimate for each group. May be repeated."
OF = (
    "What --what is about, if it does not say so itself: a class, a quantile, two groups, or the "
    "columns of a slope, separated by commas."
)
OUTCOME = "For a slope: the column to regress on the filled one."
MODEL = (
    "A file that `fill --save` wrote, in place of --target: its fit predicts these rows, and the "
    "labels that it held out tell how wrong it is."
)
TO_CSV = "Write the estimates as CSV; - for standard output."


@app.command("estimate", cls=PanelCommand)
@takes(*ESTIMATED)
def estimate_command(  # noqa: PLR0913
    table: TableFile,
    target: Annotated[
        str | None, _option("--target", "COLUMN", "The column to ask about.", show_default=False)
    ] = None,
    model: Annotated[Path | None, _option("--model", "FILE", MODEL)] = None,
    what: Annotated[list[str] | None, _option("--what", "QUESTION", WHAT)] = None,
    by: Annotated[list[str] | None, _option("--by", "COLUMN", BY)] = None,
    of: Annotated[str | None, _option("--of", "WORDS", OF)] = None,
    outcome: Annotated[str | None, _option("--outcome", "COLUMN", OUTCOME)] = None,
    level: Annotated[
        float,
        typer.Option(
            parser=_share,
            callback=_checked("--level", LEVEL),
            help="Confidence level of each interval.",
        ),
    ] = 0.95,
    joint: Annotated[
        bool, typer.Option("--joint", help="Make all intervals hold at once at this level.")
    ] = False,
    out: Annotated[str | None, _option("--out", "FILE", TO_CSV)] = None,
    **options: Any,
) -> None:
    """Estimate the mean, a share or a slope of a whole column, with a valid confidence interval.

    Filled values vary less than true values, so that averages and counts of them mislead. Here the
    labels make the interval valid, however wrong the predictions are, and the predictions make it
    narrow. The table says how many labels both are worth together; the plot and the files also show
    what the labels alone would give.
    """
    asked = {
        "what": what or [],
        "by": by or [],
        "of": of,
        "outcome": outcome,
        "level": level,
        "joint": joint,
        "out": out,
        "model": model,
    }

    def work() -> Callable[[], None]:
        from transduce.app.cli.estimates import estimate_file

        return estimate_file(table, target, asked, options)

    _run(work, quiet=options["quiet"])


@app.command("audit")
@takes("missing", "case_sensitive", *PLACE, "certainty", "report", "json", "quiet", "force")
def audit_command(  # noqa: PLR0913
    table: TableFile,
    target: Annotated[str, _option("--target", "COLUMN", CHECKED, show_default=False)],
    predictions: Annotated[
        list[str], _option("--predictions", "COLUMN", PREDICTED, show_default=False)
    ],
    by: Annotated[list[str] | None, _option("--by", "COLUMN", BY_GROUP)] = None,
    checks: Annotated[Path | None, _option("--checks", "FILE", OTHER_FILE)] = None,
    id: Annotated[
        str | None, _option("--id", "COLUMN", "The column that names the rows in both files.")
    ] = None,
    second: Annotated[
        str | None,
        _option("--second", "COLUMN", "A column with the labels that a second person gave."),
    ] = None,
    seen: Annotated[str | None, _option("--seen", "COLUMN", SEEN)] = None,
    random: Annotated[str | None, _option("--random", "COLUMN", RANDOM)] = None,
    stratum: Annotated[str | None, _option("--stratum", "COLUMN", STRATUM)] = None,
    tolerance: Annotated[str | None, _option("--tolerance", "NUMBER", OFF_BY)] = None,
    at_most: Annotated[str | None, _option("--at-most", "SHARE", AT_MOST)] = None,
    suspects: Annotated[
        int, _option("--suspects", "NUMBER", "How many of the most suspicious rows to list.", min=0)
    ] = 20,
    **options: Any,
) -> None:
    """Say how many predictions made elsewhere are wrong, from rows that a person checked.

    A language model, a vendor or an old rule has predicted every row, and a person has checked some
    rows that were drawn at random. The bounds are exact, however wrong the predictions are.

    Exit codes: 0 done, and the claim of --at-most was shown; 3 it was not shown; 1 bad data;
    2 bad usage; 130 interrupted.
    """
    question: OptionValues = {
        "by": by or [],
        "checks": checks,
        "id": id,
        "second": second,
        "seen": seen,
        "random": random,
        "stratum": stratum,
        "suspects": suspects,
    }
    if tolerance is not None:
        question["tolerance"], question["relative"] = _share_or_number(tolerance)
        if question["tolerance"] < 0.0:
            raise typer.BadParameter(f"--tolerance must not be negative; got {tolerance}.")
    limit = None
    if at_most is not None:
        limit = _share_or_number(at_most)[0]
        if not 0.0 <= limit <= 1.0:
            raise typer.BadParameter(f"--at-most is a share, such as 0.05 or 5%; got {at_most}.")

    def work() -> Callable[[], None]:
        from transduce.app.cli.audits import audit_file

        return audit_file(table, target, predictions, question, limit, options)

    _run(work, quiet=options["quiet"])


PortOption = Annotated[
    int, typer.Option(min=0, max=65535, help="Port of the page; 0 takes any free one.")
]
QuietBrowser = Annotated[
    bool, typer.Option("--no-browser", help="Print the address instead of opening a browser.")
]


@app.command("open")
def open_command(
    table: Annotated[str | None, _table(OPENED, show_default=False)] = None,
    port: PortOption = 0,
    no_browser: QuietBrowser = False,
) -> None:
    """Open a page in the browser for the whole job.

    There you choose a table, fill it, label the rows that help most, and fill it again.

    Your choices are kept in a small file beside the table; the same command continues where you
    stopped.
    """
    with refusals():
        from transduce.app.page.command import run_open

        run_open(table, port=port, browser=not no_browser, say=say)


@app.command()
def label(  # noqa: PLR0913
    table: Annotated[
        str | None, _table("The table; it is never changed.", show_default=False)
    ] = None,
    target: Annotated[
        str | None, _option("--target", "COLUMN", LABELLED, show_default=False)
    ] = None,
    show: Annotated[str | None, _option("--show", "COLUMNS", SHOWN)] = None,
    classes: Annotated[str | None, _option("--classes", "NAMES", NAMES)] = None,
    wanted: Annotated[str | None, _option("--wanted", "CLASS", "The class to look for.")] = None,
    predictions: Annotated[list[str] | None, _option("--predictions", "COLUMN", BLINDLY)] = None,
    tolerance: Annotated[
        float | None,
        _option("--tolerance", "NUMBER", "Numbers: a prediction is wrong if it is off by more."),
    ] = None,
    person: Annotated[
        str, _option("--person", "NAME", "Your name, for the journal.", show_default=False)
    ] = "",
    by: Annotated[list[str] | None, _option("--by", "COLUMN", LABEL_BY)] = None,
    number: Annotated[
        int, typer.Option(min=1, help="With --by: how many rows to draw from all classes.")
    ] = 100,
    again: Annotated[str | None, _option("--again", "COLUMN", LABEL_AGAIN)] = None,
    task: Annotated[
        Literal["auto", "classes", "numbers"],
        typer.Option(help="Whether labels are classes or numbers."),
    ] = "auto",
    recall: Annotated[
        float,
        typer.Option(
            parser=_share,
            callback=_checked("--recall", LEVEL),
            help="Share of the wanted rows to find.",
        ),
    ] = 0.95,
    certainty: Annotated[
        float,
        typer.Option(
            parser=_share,
            callback=_checked("--certainty", LEVEL),
            help="Confidence level of certificates.",
        ),
    ] = 0.95,
    port: PortOption = 0,
    no_browser: QuietBrowser = False,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the random draws.")] = None,
    labels_by_class: Annotated[
        bool,
        typer.Option("--labels-by-class", help="Labels in the table were chosen by their class."),
    ] = False,
    demo: Annotated[bool, typer.Option("--demo", help="Label bundled images of digits.")] = False,
) -> None:
    """Label a table on a page in the browser.

    The page predicts the other rows and says when you can stop. Your decisions are saved in a
    journal beside the table; the same command continues where you stopped.
    """
    with refusals():
        from transduce.app.labelling import SampleRequest, SessionSettings
        from transduce.app.page.command import run_label

        numbers: OptionValues = {"recall": recall, "certainty": certainty, "seed": seed}
        numbers |= {"tolerance": tolerance, "person": person, "again": again}
        if by:
            numbers["sample"] = SampleRequest(tuple(by), number)
        settings = SessionSettings(task=task, labels_by_class=labels_by_class, **numbers)
        description: OptionValues = {
            "show": _parted(show),
            "classes": _parted(classes),
            "wanted": wanted,
            "predictions": predictions or (),
        }
        page: OptionValues = {"port": port, "browser": not no_browser, "say": say}
        run_label(table, target, settings=settings, demo=demo, **description, **page)


def _parted(words: str | None) -> list[str]:
    """Return words that commas separate."""
    if words is None:
        return []
    return [word.strip() for word in words.split(",") if word.strip()]


@app.command()
@takes(
    *(
        "task",
        "ignore",
        "text",
        "number",
        "id",
        "missing",
        "keep",
        "case_sensitive",
        *PLACE,
        "plot",
        "random_state",
        "n_jobs",
    ),
    *("quiet", "force"),
)
def compare(
    table: TableFile,
    target: TargetOption,
    folds: Annotated[int, typer.Option(min=2, help="Number of folds of cross-validation.")] = 5,
    **options: Any,
) -> None:
    """Score every method that suits the table, and a random forest, by cross-validation."""

    def work() -> Callable[[], None]:
        from transduce.app.cli.comparison import compare_file

        return compare_file(table, target, folds, options)

    _run(work, quiet=options["quiet"])


@app.command()
def methods() -> None:
    """List the methods, with the papers they come from."""
    with refusals():
        from transduce.app.cli.comparison import list_methods

        list_methods()


@app.command()
def example(
    out: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it.")] = Path(
        "houses.csv"
    ),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a real table with missing prices, for a first try.

    It holds 400 districts of California in 1990.
    """
    with refusals():
        from transduce.app.cli.demonstration import write_example

        write_example(out, force=force)


# Bundled real tables: the column with holes, how many labels stay, and what the table is about.
TABLES = {
    "diabetes": (
        "progression",
        150,
        "442 patients, ten measurements: how far diabetes progresses in a year",
    ),
    "houses": (
        "price",
        150,
        "400 districts of California in 1990, eight measurements: what a house costs",
    ),
    "breast-cancer": ("diagnosis", 100, "569 tumours, thirty measurements: malignant or benign"),
    "wine": ("cultivar", 60, "178 wines, thirteen measurements: which of three growers"),
    "digits": ("digit", 200, "1,797 images of 64 pixels: which of ten digits"),
}


DEMO_FOLDER = Path("demo-output")
DemoTable: Any = Literal[tuple(TABLES)]


@app.command()
@takes("method", "confidence", "random_state", "quiet")
def demo(
    name: Annotated[DemoTable, typer.Argument(help="The table.")] = "diabetes",
    folder: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where the files go.")
    ] = DEMO_FOLDER,
    **options: Any,
) -> None:
    """Hide labels of a bundled real table, fill them, and compare with the truth.

    It writes the table with missing labels, the filled table and a report, by default into the
    folder demo-output, where the files of an earlier demo are replaced.
    """
    quiet = options.pop("quiet")

    def work() -> Callable[[], None]:
        from transduce.app.cli.demonstration import run_demo

        return run_demo(name, folder, options)

    _run(work, quiet=quiet)


def main() -> None:
    """Run the command line.

    A request to end it ends it as Ctrl+C does, so that nothing half written is left.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Looking for garbage among two thousand modules took an eighth of their import.
    gc.set_threshold(50_000)
    try:
        app(prog_name="transduce")
    finally:  # all is written, and the exit code says so, whatever comes while the program ends
        for request in (signal.SIGINT, signal.SIGTERM):
            signal.signal(request, signal.SIG_IGN)
