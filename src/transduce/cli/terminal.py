"""What the command line shows: progress on standard error, results on standard output, refusals as a sentence."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from transduce.core.names import OTHERS, SYSTEMS
from transduce.core.options import command_line
from transduce.core.progress import show_progress, stage

if TYPE_CHECKING:
    import pandas as pd
    from rich.progress import Progress, TaskID

    from transduce.filling.result import FillResult
    from transduce.model_selection.comparison import MethodChoice

DONE, BAD_DATA, BAD_USAGE, INTERRUPTED = 0, 1, 2, 130


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


@contextmanager
def progress_bars(*, quiet: bool) -> Iterator[None]:
    """Show bars on standard error while the block runs, unless all is to be quiet."""
    if quiet:
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description:<18}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
    )
    bars = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True))
    with bars, show_progress(Bars(bars)):
        with stage("starting"):
            import transduce.filling  # noqa: F401 - the slow part of the start, shown as such
        yield


@contextmanager
def refusals() -> Iterator[None]:
    """Turn errors into one sentence on standard error and an exit code; warnings of the methods are in the notes."""
    try:
        with warnings.catch_warnings(), command_line():
            warnings.simplefilter("ignore")
            yield
    except KeyboardInterrupt:
        _refuse("Interrupted. No file is half written.", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that closing it raises nothing
        raise typer.Exit(BAD_DATA) from None
    except FileExistsError as error:
        _refuse(str(error), BAD_USAGE)
    except MemoryError as error:
        _refuse(str(error) or "There is not enough memory: drop columns or rows.", BAD_DATA)
    except (ValueError, TypeError, OSError) as error:
        _refuse(str(error), BAD_DATA)


def _refuse(sentence: str, code: int) -> None:
    typer.echo(f"transduce: {sentence}", err=True)
    raise typer.Exit(code) from None


def say(text: str = "", *, err: bool = False) -> None:
    """Print a line, as it is."""
    typer.echo(text, err=err)


def show_result(result: FillResult, written: list[str], *, err: bool = False) -> None:
    """Print what was filled, what is guaranteed, and what was written."""
    source = f"{result.settings['source']}: " if result.settings.get("source") else ""
    what = "numbers" if result.task == "regression" else "classes"
    unlabelled = len(result.answer)
    say(
        f"{source}{unlabelled:,} of {len(result.frame):,} cells of '{result.target}' filled ({what}, {_how(result)}).",
        err=err,
    )
    say(f"Guarantee, {result.guarantee}", err=err)
    for note in result.notes:
        say(f"- {note}", err=err)
    if written:
        say(f"Written: {', '.join(written)}", err=err)


def _how(result: FillResult) -> str:
    """Return which methods answered."""
    names = result.members["name"][result.members["weight"] > 0].str.replace("_", " ")
    return names.iloc[0] if len(names) == 1 else f"a blend of {', '.join(names)}"


def show_preview(result: FillResult, n_rows: int = 5) -> None:
    """Print the first filled rows: the new columns only, without the target's name before theirs."""
    columns = list(result.new.columns[:5])
    lines = result.new.iloc[result.answer.rows[:n_rows]][columns]
    lines.columns = [str(name).removeprefix(f"{result.target}_") for name in columns]
    show_table(lines.reset_index(names="row"))


def show_table(frame: pd.DataFrame, title: str | None = None) -> None:
    """Print a frame as a table on standard output; nothing in it is taken for markup."""
    import pandas as pd
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable(title=title, title_justify="left")
    for name in frame.columns:
        number = pd.api.types.is_numeric_dtype(frame[name])
        table.add_column(Text(str(name)), justify="right" if number else "left", overflow="fold")
    for row in frame.itertuples(index=False):
        table.add_row(*(Text(_cell(value)) for value in row))
    Console().print(table)


def _cell(value: Any) -> str:
    if value is None or str(value) == "<NA>" or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def show_choice(choice: MethodChoice) -> None:
    """Print how methods compare, and the verdict."""
    table = choice.table.rename(columns={"fit_time": "seconds a fit"}).reset_index(names="method")
    show_table(table, f"{choice.task}, {choice.n_labels} labels, {choice.scoring} (larger is better)")
    for name, why in choice.failures.items():
        say(f"{name}: {why}")
    say(choice.verdict())
    known = [
        f"{method.member} is --method {method.name}"
        for method in (*SYSTEMS, *OTHERS)
        if method.member in choice.table.index
    ]
    say(f"For transduce fill {', '.join(known)}; by default they are blended.")
