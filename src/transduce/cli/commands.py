"""What the commands do, once their options are read; imported only then, so that help is quick."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer

from transduce.cli.demo import compare_with_truth, demo_table
from transduce.cli.names import TABLES
from transduce.cli.terminal import say, show_choice, show_preview, show_result, show_table
from transduce.core.atomic_file import check_free, whole_file
from transduce.core.names import OTHERS, SYSTEMS
from transduce.core.progress import stage
from transduce.display.comparison import plot_comparison
from transduce.filling import FillResult, fill
from transduce.model_selection import choose_method
from transduce.tables import files as tables
from transduce.tables.cells import without
from transduce.tables.features import vectorize
from transduce.tables.marks import draw_rows
from transduce.tables.target import check_columns, read_target
from transduce.tables.writing import check_fits, write


@dataclass(frozen=True)
class Outputs:
    """Where things are written, whether files may be replaced, and whether to be quiet."""

    out: str | None = None
    report: Path | None = None
    json: Path | None = None
    plot: Path | None = None
    force: bool = False
    quiet: bool = False


Show = Callable[[], None]  # prints what was found, once the progress bars are gone


def fill_file(table: str, target: str, to: Outputs, *, sheet: str | None = None, **settings: Any) -> Show:
    """Fill a column of a table in a file, and write the filled table, the report and the numbers."""
    out = default_out(table) if to.out is None else to.out
    _check_paths(table, to.report, to.json, out)
    for path in (out, to.report, to.json):
        if path is not None:
            check_free(path, force=to.force)
    source = _read(table, to.force, sheet)
    check_fits(out, source)
    result = fill(source, target, source=source.name, **settings)
    written = _write(source, result, out, to)

    def show() -> None:
        if not to.quiet:
            show_result(result, written, err=out == "-")

    return show


def _check_paths(table: str, *paths: str | Path | None) -> None:
    """Refuse to write two things to one file, or something else (the filled table comes last) over the table."""
    wanted = [None if path is None or str(path) == "-" else Path(path).resolve() for path in paths]
    named = [path for path in wanted if path is not None]
    if len(set(named)) < len(named) or sum(str(path) == "-" for path in paths) > 1:
        raise typer.BadParameter("--out, --report and --json name the same file: give each its own.")
    if table != "-" and Path(table).resolve() in wanted[:-1]:
        raise typer.BadParameter(f"{table} is the table itself: write the report and JSON to other files.")


def default_out(table: str, word: str = "filled") -> str:
    """Return where the filled table goes if nobody says: beside the table, or to standard output."""
    if table == "-":
        return "-"
    path = Path(table)
    ends = "".join(path.suffixes[-2:]) if path.suffix.lower() in tables.PACKED else path.suffix
    name = path.name.removesuffix(ends)
    return str(path.with_name(f"{name}-{word}{ends if tables.kind_of(path)[0] else '.csv'}"))


def _read(table: str, force: bool, sheet: str | None = None) -> tables.Table:
    with stage("reading"):
        return tables.read(table, sheet=sheet, force=force)


def _write(source: tables.Table, result: FillResult, out: str, to: Outputs) -> list[str]:
    """Write what was asked for, the report first: it is the one that can fail."""
    if to.report is not None:
        result.report(to.report, force=to.force)
    if to.json is not None:
        result.json(to.json, force=to.force)
    with stage("writing"):
        write(out, source, result.new, force=to.force)
    return [str(path) for path in (None if out == "-" else out, to.report, to.json) if path is not None]


def draw_rows_of(
    table: str,
    target: str,
    to: Outputs,
    *,
    number: int,
    seed: int,
    missing: Collection[str] = (),
    sheet: str | None = None,
) -> Show:
    """Mark rows drawn at random from those without a label, and write the table with the marks."""
    out = default_out(table, "draw") if to.out is None else to.out
    _check_paths(table, out)
    check_free(out, force=to.force)
    source = _read(table, to.force, sheet)
    check_fits(out, source)
    source.check_column(target)
    check_columns(source.frame, [target])
    name = f"{target}_random"
    if name in source.frame.columns:
        raise ValueError(
            f"The table has a column {name!r} already, perhaps from an earlier draw: rename or drop it."
        )
    known = without(source.frame[[target]], list(missing))
    rows = draw_rows(known[target].isna().to_numpy(), number, seed)
    marks = np.zeros(len(source.frame), dtype=bool)
    marks[rows] = True
    new = pd.DataFrame({name: marks}, index=source.frame.index)
    with stage("writing"):
        write(out, source, new, force=to.force)

    def show() -> None:
        if not to.quiet:
            places = ", ".join(f"{row + 1:,}" for row in rows[:20].tolist()) + (
                " ..." if len(rows) > 20 else ""
            )
            say(f"{number:,} rows drawn; label them in {target!r}: rows {places}.", err=out == "-")
            say(f"Then: transduce fill {out} --target {target} --random-labels {name}", err=out == "-")

    return show


def compare_file(  # noqa: PLR0913
    table: str,
    target: str,
    to: Outputs,
    *,
    task: str,
    ignore: Collection[str],
    text: Collection[str],
    id: str | None,
    missing: Collection[str],
    sheet: str | None,
    folds: int,
    n_jobs: int | None,
    random_state: int,
) -> Show:
    """Compare the methods on the labels of a table in a file, and draw it if that is wanted."""
    if to.plot is not None:
        check_free(to.plot, force=to.force)
    source = _read(table, to.force, sheet)
    source.check_column(target)
    frame = without(source.frame, list(missing))
    check_columns(frame, [target, *ignore, *text, *([] if id is None else [id])])
    labels = read_target(frame, target, task=task, confidence=0.5, cells=source.cells(target))
    features = vectorize(
        frame, target, ignore=ignore, text=text, id=id, prefer=source.prefer, random_state=random_state
    )
    choice = choose_method(
        features.matrix, labels.labels, task=labels.task, cv=folds, n_jobs=n_jobs, random_state=random_state
    )
    if to.plot is not None:
        _save(plot_comparison(choice.table, choice.scoring).figure, to.plot, to.force)

    def show() -> None:
        show_choice(choice)
        if to.plot is not None and not to.quiet:
            say(f"Written: {to.plot}")

    return show


def _save(figure: Any, path: Path, force: bool) -> None:
    import matplotlib.pyplot as plt

    with whole_file(path, force=force) as file:
        figure.savefig(file, format=path.suffix.lstrip(".").lower() or "png", dpi=150)
    plt.close(figure)


def list_methods() -> None:
    """Print the methods, with the papers they come from."""
    lines = [(method.name, method.says, method.paper) for method in (*SYSTEMS, *OTHERS)]
    show_table(pd.DataFrame(lines, columns=["method", "what it does", "from"]))


def run_demo(name: str, folder: Path, *, method: str, confidence: float, random_state: int) -> Show:
    """Hide labels of a bundled table, fill them, and compare with the truth."""
    frame, target, truth = demo_table(name, random_state)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.csv"
    with whole_file(path, force=True) as file:
        file.write(frame.to_csv(index=False).encode())
    source = _read(str(path), force=True)
    result = fill(
        source,
        target,
        method=method,
        confidence=confidence,
        guarantee="column",
        task="regression" if truth.dtype.kind == "f" else "classification",
        random_state=random_state,
        source=str(path),
    )
    to = Outputs(report=folder / f"{name}.html", json=folder / f"{name}.json", force=True)
    written = _write(source, result, default_out(str(path)), to)

    def show() -> None:
        say(f"{TABLES[name][2]}.")
        show_result(result, written)
        show_preview(result)
        say(str(compare_with_truth(result, truth)))

    return show
