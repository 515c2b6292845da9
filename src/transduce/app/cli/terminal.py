"""What the command line shows.

Progress on standard error, results on standard output, refusals as a sentence.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import sys
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from transduce.core.computing import Forecast, show_progress, stage
from transduce.core.types import OptionValues
from transduce.core.words import (
    LONGEST_MESSAGE,
    OptionError,
    in_shell,
    options_spelled,
    quoted,
    shortened,
)
from transduce.model_selection.methods import MEMBERS

if TYPE_CHECKING:
    import pandas as pd
    from rich.progress import Progress, TaskID

    from transduce.app.auditing.result import AuditResult
    from transduce.app.filling.result import FillResult
    from transduce.core.guarantee import Guarantee
    from transduce.core.types import AnyArray
    from transduce.model_selection.comparison import MethodChoice

# A name between quotes; in sentences apostrophes are inside words.
LONG_NAME = re.compile(r"(?<!\w)'[^'\n]{200,}'(?!\w)")
LONGEST_CELL = 80  # characters of a cell of a table
PREVIEW_ROWS = 5  # filled rows that are printed
MOST_UNBROKEN = 24  # letters of a word that a table keeps together
METHOD_NAMES = {method.member: method.name for method in MEMBERS.values() if method.name}
METHOD_NAMES |= {"blend": "blend", "ridge": "(linear ridge)"}
COLUMNS = {
    "regression": (
        "width_reduction: the share by which the other columns narrow the interval "
        "(0: not at all, 0.9: to a tenth of its width); it is not a probability."
    ),
    "classification": (
        "set: the classes that are possible at this level; probability: how likely the prediction "
        "is right."
    ),
}
DONE = 0
BAD_DATA = 1
BAD_USAGE = 2
NOT_SHOWN = 3  # the table is good, and what was claimed of it is not shown
INTERRUPTED = 130


class Bars:
    """A listener of `show_progress`: one bar for each stage."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, name: str, share: float) -> None:
        """Show how far a stage is; NaN if it was broken off."""
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=1.0)
        task = self._tasks[name]
        if math.isnan(share):
            self._progress.update(task, description=f"{name} (broken off)")
            return
        if share == 0.0:
            self._progress.reset(task)
        self._progress.update(task, completed=share)

    def show_forecast(self, forecast: Forecast) -> None:
        """Say above the bars how long the fit will take."""
        text = f"The fit will take about {forecast.seconds:,.0f} s."
        if not loops_were_compiled():
            text += " This run also compiles its loops, which can take a minute."
        self._progress.console.print(text)


def loops_were_compiled() -> bool:
    """Return whether an earlier run has kept compiled loops where this one looks for them."""
    from transduce.methods.confidence_machine.residual_lines import row_lines

    folder = row_lines.stats.cache_path  # None where nothing can be kept
    return folder is not None and any(Path(folder).glob("*.nbi"))


@contextmanager
def progress_bars(*, quiet: bool) -> Iterator[None]:
    """Show bars on standard error while the block runs, unless all is to be quiet."""
    if quiet:
        yield
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    name = TextColumn("{task.description:<18}", markup=False)
    share = TextColumn("{task.percentage:>3.0f} %")
    times = TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()
    progress = Progress(name, BarColumn(), share, *times, console=Console(stderr=True))
    bars = Bars(progress)
    with progress, show_progress(bars, on_forecast=bars.show_forecast):
        with stage("starting"):
            # The slow part of the start, shown as such.
            import transduce.app.filling.engine  # noqa: F401
        yield


@contextmanager
def refusals() -> Iterator[None]:
    """Turn errors into one sentence on standard error and an exit code.

    Warnings of the methods are in the notes.
    """
    try:
        with warnings.catch_warnings(), options_spelled(in_shell):
            warnings.simplefilter("ignore")
            yield
    except KeyboardInterrupt:
        _refuse("Interrupted. No file is half written.", INTERRUPTED)
    except BrokenPipeError:
        # So that closing it raises nothing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(BAD_DATA) from None
    except (FileExistsError, OptionError) as error:
        _refuse(str(error), BAD_USAGE)
    except MemoryError as error:
        _refuse(str(error) or "There is not enough memory: drop columns or rows.", BAD_DATA)
    except (ValueError, TypeError, OSError) as error:
        _refuse(str(error), BAD_DATA)


def _refuse(sentence: str, code: int) -> None:
    """End with a sentence, in one line: what a cell holds may have several."""
    line = " ".join(short_message(sentence).splitlines())
    typer.echo(f"transduce: {line}", err=True)
    raise typer.Exit(code) from None


def short_message(text: str) -> str:
    """Return a message in which no name is so long that the rest of it cannot be read."""
    named = LONG_NAME.sub(lambda name: quoted(name.group()[1:-1]), text)
    return shortened(named, LONGEST_MESSAGE)


def say(text: str = "", *, err: bool = False) -> None:
    """Print a line, as it is; one that a label of a megabyte has made too long is cut."""
    typer.echo(short_message(text), err=err)


def tell(text: str, *, err: bool = False) -> None:
    """Print sentences; on a terminal lines are broken between words."""
    if not (sys.stderr if err else sys.stdout).isatty():
        return say(text, err=err)
    width = min(shutil.get_terminal_size().columns, 100)
    if text.startswith("- "):
        indent = "  "
    else:
        indent = ""
    whole: OptionValues = {"break_long_words": False, "break_on_hyphens": False}
    text = short_message(text)
    return say(textwrap.fill(text, width, subsequent_indent=indent, **whole), err=err)


def show_result(
    result: FillResult,
    written: list[str],
    *,
    err: bool = False,
    quiet: bool = False,
) -> None:
    """Print what was filled and guaranteed, a few rows, how good it is and what was written.

    Notes, what else there is to say of the guarantee, and advice follow, unless all is to be quiet.
    """
    from transduce.app.report.sentences import NO_DATA
    from transduce.core.guarantee_sentences import level_sentences

    counts = result.seen.count_rows(result.answer)
    lines = [_about_filled(result), *guarantee_lines(result.guarantee)]
    lines += level_sentences(result.guarantees)
    for line in lines:
        tell(line, err=err)
    advice = None
    if counts.sampled is None:  # rows of a sample have no places in the table
        show_preview(result, err=err)
        advice = result.advice
    tell_if_any(how_good(result), err=err)
    if not quiet:
        if counts.unlabelled:
            tell(NO_DATA[result.labels.task], err=err)
        if advice is not None:
            tell(f"To label next: {advice}", err=err)
        tell_list("Notes", result.notes, err=err)
        tell_list("More on the guarantee", more_on_guarantee(result.guarantee), err=err)
    if written:
        tell(f"Written: {', '.join(written)}", err=err)


def _about_filled(result: FillResult) -> str:
    """Return how many cells were filled, and how."""
    from transduce.app.filling.plan import is_blended

    counts = result.seen.count_rows(result.answer)
    source = ""
    name = result.seen.source.name
    if name:
        source = f"{name}: "
    target = shortened(str(result.labels.name))
    members = result.diagnosis.members
    names = members["name"][members["weight"] > 0].str.replace("_", " ")
    how = f"a blend of {', '.join(names)}"
    if len(names) == 1:
        how = names.iloc[0]
        if is_blended(result.options):
            how = f"a blend, in which {how} alone counts"
    return (
        f"{source}{counts.unlabelled:,} of {counts.rows:,} cells of '{target}' filled "
        f"({result.labels.kind}, {how})."
    )


def guarantee_lines(guarantee: Guarantee) -> list[str]:
    """Return three lines: what holds, for how many rows together, and on what condition."""
    first, *_ = (*guarantee.sentences, "")
    lines = [f"Guarantee, {guarantee.opening}: {first}"]
    if guarantee.kind == "none":
        lines += guarantee.reasons[:1]
        return lines
    if guarantee.bound_on_rows:
        lines.append(f"For all rows: {guarantee.bound_on_rows}")
    else:
        lines.append("For all rows: how many are outside in total is not bounded.")
    if guarantee.conditions:
        lines.append(f"Condition: {guarantee.conditions_in_words}.")
    return lines


def more_on_guarantee(guarantee: Guarantee) -> list[str]:
    """Return what else there is to say of a guarantee, sentence by sentence."""
    printed = " ".join(guarantee_lines(guarantee))
    sentences = [*guarantee.sentences, *guarantee.grounds_in_short]
    return [sentence for sentence in sentences if sentence not in printed]


def tell_if_any(text: str, *, err: bool = False) -> None:
    """Print sentences, if there are any."""
    if text:
        tell(text, err=err)


def tell_list(heading: str, items: list[str], *, err: bool = False) -> None:
    """Print a heading and items below it, if there are any."""
    if not items:
        return
    tell(f"{heading}:", err=err)
    for item in items:
        tell(f"- {item}", err=err)


def how_good(result: FillResult) -> str:
    """Return how good the answers are, as seen at labels that were hidden; "" if none was."""
    from transduce.app.report.quality import measure_quality, why_not_known
    from transduce.app.report.suspects import about_suspects

    folds = result.seen.place_labels(result.diagnosis.out_of_fold)
    quality = measure_quality(result.labels.task, folds, result.labels.spelling.unit)
    if quality is None:
        return ""
    plain = result.labels.task == "regression" and not result.labels.spelling.unit
    if plain:
        unit = f", in the unit of '{result.labels.name}'"
    else:
        unit = ""
    suspects = about_suspects(result.known_suspects, result.labels, result.seen.lines)
    hidden = ", ".join(filter(None, ["At labels that were hidden", result.diagnosis.measured_at]))
    unknown = why_not_known(result.diagnosis.drawn, result.fit.compared, result.guarantee)
    if unknown:
        sentence = f"How good the predictions are is not known. {unknown}"
        return " ".join(filter(None, [sentence, suspects]))
    spread = (
        f"{hidden}, the predictions are {quality.large}{unit}; {quality.small}{quality.explained}."
    )
    return " ".join(filter(None, [spread, quality.judged, suspects]))


def show_preview(result: FillResult, *, err: bool = False) -> None:
    """Print the first filled rows.

    The new columns only, without the target's name before theirs.
    """
    from transduce.app.tables.new_columns import new_names

    rows = result.answer.rows[:PREVIEW_ROWS]
    # Confidence, the level of the set at which no other class is left, reads like a probability
    # beside one.
    left_out = [f"{result.labels.name}_confidence"]
    n_shown = 5
    if result.answer.further:
        n_shown = len(new_names(result.labels.name, result.task, (), result.options.further_levels))
        left_out.append(f"{result.labels.name}_width_reduction")
    columns = [name for name in result.new.columns[:n_shown] if name not in left_out]
    lines = result.columns_for_file.iloc[rows][columns]
    lines.columns = [str(name).removeprefix(f"{result.labels.name}_") for name in columns]
    lines.insert(0, *_names_of_rows(result, rows))
    show_table(lines, err=err)
    if not result.answer.further or result.task == "classification":
        tell(COLUMNS[result.labels.task], err=err)


def _names_of_rows(result: FillResult, rows: AnyArray) -> tuple[str, Any]:
    """Return what rows are called, and how: by a column, by line of the file, or by place."""
    id = result.options.id
    if id is not None:
        return str(id), result.seen.frame[id].to_numpy()[rows]
    if result.seen.lines is not None:
        return "line", [result.seen.lines[row] for row in rows]
    return "row", rows + 1


def show_table(
    frame: pd.DataFrame,
    title: str | None = None,
    *,
    err: bool = False,
    longest: int = LONGEST_CELL,
) -> None:
    """Print a frame as a table; nothing in it is taken for markup, and no word is broken.

    Cells are cut after `longest` characters.
    """
    import pandas as pd
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable(title=title, title_justify="left")
    for name in frame.columns:
        number = pd.api.types.is_numeric_dtype(frame[name])
        cells = [shortened(str(name), longest)]
        cells += [_cell(value, longest) for value in frame[name]]
        words = [word for cell in cells for word in cell.split()]
        least = min(max(map(len, words), default=1), MOST_UNBROKEN)
        side: Any = "right" if number else "left"
        table.add_column(
            Text(cells[0]),
            justify=side,
            overflow="fold",
            min_width=least,
        )
    for row in frame.itertuples(index=False):
        table.add_row(*(Text(_cell(value, longest)) for value in row))
    Console(stderr=err).print(table)


def _cell(value: object, longest: int) -> str:
    if value is None or str(value) == "<NA>" or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        if abs(value) >= 10_000:
            return f"{value:,.0f}"
        return f"{value:.4g}"
    return shortened(str(value).removesuffix(" 00:00:00"), longest)


def show_audit(result: AuditResult, *, quiet: bool = False) -> None:
    """Print what an audit found: statements, then tables, then what to do next."""
    from transduce.app.auditing.result import WHAT_IT_RESTS_ON

    tell(result.statement)
    tell(WHAT_IT_RESTS_ON)
    for warning in result.warnings:
        tell(f"In doubt: {warning}")
    if result.agreement is not None:
        tell(result.agreement.statement)
    for title, frame in result.tables():
        show_table(frame, title)
    if quiet:
        return
    if result.on_parts:
        tell(f"- {result.on_parts}")
    for note in result.notes:
        tell(f"- {note}")
    tell(result.what_more_checks_bring)


def called(member: str) -> str:
    """Return what `--method` calls a member; in brackets if it takes none of its kind."""
    return METHOD_NAMES.get(member, f"({member.replace('_', ' ')})")


def show_choice(
    choice: MethodChoice,
    shown: pd.DataFrame,
    notes: list[str],
    caution: str,
) -> None:
    """Print how methods compare, in numbers that people can read, the verdict, and a caution."""
    if choice.task == "regression":
        labels_are = "numbers"
    else:
        labels_are = "classes"
    tell(f"{choice.n_labels:,} labels ({labels_are}), each predicted by fits that did not see it.")
    for note in notes:
        tell(f"- {note}")
    show_table(shown)
    for name, why in choice.failures.items():
        tell(f"{called(name)}: {why}")
    tell(choice.verdict({name: called(name) for name in choice.details}))
    tell(
        "`transduce fill` uses the blend, unless --method names another. Names in brackets cannot "
        "be chosen: they are members of the blend, or the simplest prediction, for comparison."
    )
    tell(caution)
