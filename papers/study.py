"""What the scripts of the papers share: work that can be interrupted and resumed, tables, figures, and the check.

A script is a list of parts. A part makes cells (a data set, a split, a setting), gets numbers for each of them, and
turns them into a summary: one line for each figure of its table, with mean, standard deviation, number of splits and
what the paper has. `Study` keeps the numbers as they come, so that a run goes on where it was stopped, and writes for
each part

    PART.csv          the raw numbers, a line for each cell
    PART-summary.csv  the lines of the table
    PART.md           the table
    PART.svg          its figure, if there is one

into ``papers/output/PAPER/quick`` or ``full``. The splits of the quick mode are the first ones of the full mode.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from paper_data import load_dataset
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

HERE = Path(__file__).parent
PUBLISHED = HERE.parent / "docs" / "results"
BLUE, RED, GREEN, GREY = "#1b6ca8", "#c8371e", "#3f8f3f", "#777777"
STYLE = {
    "svg.hashsalt": "transduce",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
LINE = ["row", "column", "mean", "sd", "n", "paper"]


@dataclass(frozen=True)
class Study:
    """One run of a paper's script.

    Parameters
    ----------
    paper : str
        Name of the script.
    full : bool
        Whether to take as many splits as the paper.
    out : Path
        Folder for what is written.
    jobs : int
        Processes at work.
    """

    paper: str
    full: bool
    out: Path
    jobs: int = 1

    def splits(self, quick: int, full: int) -> range:
        """Return the numbers of the splits to run."""
        return range(full if self.full else quick)

    def collect(
        self,
        part: str,
        cells: Iterable[dict[str, Any]],
        work: Callable[..., dict[str, Any] | list[dict[str, Any]]],
    ) -> pd.DataFrame:
        """Return what `work` says of every cell; cells done in an earlier run are read, not done again.

        Parameters
        ----------
        part : str
        cells : iterable of dict
            Keyword arguments of `work`, plain numbers and text; they become columns.
        work : function of a cell
            Returns one line of numbers, or several.

        Returns
        -------
        DataFrame
            The cells' keys and numbers, in the order of `cells`.
        """
        cells = list(cells)
        store = self.out / f"{part}.jsonl"
        done = _read_lines(store)
        left = [cell for cell in cells if _key(cell) not in done]
        mark = _mark()
        others = sum(other != mark for other in _marks(store))
        if others:
            print(
                f"{others} cells of {store} were done by another version of this script; delete it to do them again.",
                file=sys.stderr,
            )
        with Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
            console=Console(stderr=True),
        ) as bar, store.open("a", encoding="utf-8") as file:  # fmt: skip
            task = bar.add_task(
                f"{self.paper}: {part}", total=len(cells), completed=len(cells) - len(left)
            )
            run = Parallel(n_jobs=self.jobs, return_as="generator")
            if store.stat().st_size and not store.read_text(encoding="utf-8").endswith("\n"):
                file.write("\n")  # a line was cut off; the next one must not hang on to it
            for cell, lines in zip(
                left, run(delayed(_quietly)(work, cell) for cell in left), strict=True
            ):
                done[_key(cell)] = lines
                file.write(json.dumps({"cell": cell, "lines": lines, "script": mark}) + "\n")
                file.flush()
                bar.advance(task)
        frame = pd.DataFrame([{**cell, **line} for cell in cells for line in done[_key(cell)]])
        frame.to_csv(self.out / f"{part}.csv", index=False, float_format="%.6g")
        return frame

    def publish(
        self,
        part: str,
        title: str,
        summary: pd.DataFrame,
        *,
        digits: int = 2,
        sd: bool = True,
        note: str = "",
        check: bool = True,
    ) -> None:
        """Write and print a part's table, and compare it with the full run in the docs.

        Parameters
        ----------
        part, title : str
        summary : DataFrame
            Columns row, column, mean, sd, n and paper: one line for each figure, as `summarise` makes them.
        digits : int, default=2
        sd : bool, default=True
            Whether to show the standard deviations over splits.
        note : str, default=""
            A sentence under the table, such as a test's outcome.
        check : bool, default=True
            Whether to compare the figures with the full run; False for times, which are those of a machine.
        """
        summary = summary[LINE]
        summary.to_csv(self.out / f"{part}-summary.csv", index=False, float_format="%.6g")
        text = f"**{title}**\n\n{as_markdown(summary, digits, sd)}\n"
        text += f"\n{note}\n" if note else ""
        (self.out / f"{part}.md").write_text(text, encoding="utf-8")
        print(f"\n{text}", flush=True)
        if check:
            print(self.agreement(part, summary), flush=True)

    def agreement(self, part: str, summary: pd.DataFrame) -> str:
        """Say which figures agree with the full run in docs/results.

        The splits here are the first ones of the full run, so a mean over n of its N may be off by four standard
        errors, ``sd sqrt(1/n - 1/N)``. Where n is N it may be off by one standard deviation over splits.
        """
        path = PUBLISHED / self.paper / f"{part}-summary.csv"
        if not path.is_file():
            return "No full run of this part is in docs/results yet."
        ours = summary[summary["mean"].notna()]  # a figure that is only quoted agrees with nothing
        both = ours.merge(pd.read_csv(path), on=["row", "column"], suffixes=("", "_full"))
        gap = (both["mean"] - both["mean_full"]).abs()
        left_out = (1.0 / both["n"] - 1.0 / both["n_full"]).clip(lower=0.0)
        errors = (4.0 * np.sqrt(left_out)).where(left_out > 0.0, 1.0)
        far = both[gap > errors * both["sd_full"].fillna(0) + 1e-4 * both["mean_full"].abs()]
        said = f"{len(both) - len(far)} of {len(both)} figures agree with docs/results.md, within four standard errors"
        if len(both) < len(ours):
            said += f"; {len(ours) - len(both)} are not there"
        return said + "".join(
            f"\n  {line.row}, {line.column}: {line.mean:.4g}, there {line.mean_full:.4g} (sd {line.sd_full:.2g})"
            for line in far.itertuples()
        )

    def draw(self, part: str, figure: Any) -> None:
        """Write a figure as SVG, the same bytes for the same numbers."""
        figure.savefig(self.out / f"{part}.svg", metadata={"Date": None})


def summarise(
    frame: pd.DataFrame,
    row: str,
    column: str,
    value: str,
    paper: dict[tuple[str, str], float] | None = None,
) -> pd.DataFrame:
    """Return mean, standard deviation and number of splits of `value`, for each row and column of a table.

    Parameters
    ----------
    frame : DataFrame
    row, column, value : str
        Names of columns of `frame`.
    paper : dict, optional
        The published figure by (row, column).

    Returns
    -------
    DataFrame with columns row, column, mean, sd, n, paper
    """
    groups = frame.groupby([row, column], sort=False)[value]
    lines = groups.agg(mean="mean", sd="std", n="count").reset_index()
    lines.columns = pd.Index(["row", "column", "mean", "sd", "n"])
    lines[["row", "column"]] = lines[["row", "column"]].astype(str)
    known = paper or {}
    lines["paper"] = [
        known.get((r, c), np.nan) for r, c in zip(lines["row"], lines["column"], strict=True)
    ]
    return lines


def as_markdown(summary: pd.DataFrame, digits: int = 2, sd: bool = True) -> str:
    """Return the lines as a Markdown table: a row for each `row`; columns with the paper's figures beside ours."""
    rows, columns = summary["row"].unique(), summary["column"].unique()
    cells = {(line.row, line.column): line for line in summary.itertuples()}
    counts = summary.groupby("row")["n"].max().astype(int)
    published = {c for c in columns if summary.loc[summary["column"] == c, "paper"].notna().any()}
    head = [
        "",
        *(h for c in columns for h in ([c, f"{c}, paper"] if c in published else [c])),
        "splits",
    ]
    lines = [head, ["---"] * len(head)]
    for row in rows:
        line = [str(row)]
        for column in columns:
            cell = cells.get((row, column))
            spread = (
                "" if cell is None or not sd or np.isnan(cell.sd) else f" ± {cell.sd:.{digits}f}"
            )
            line.append(
                "" if cell is None or np.isnan(cell.mean) else f"{cell.mean:.{digits}f}{spread}"
            )
            if column in published:
                line.append(
                    "" if cell is None or np.isnan(cell.paper) else f"{cell.paper:.{digits}f}"
                )
        lines.append([*line, str(counts[row])])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _key(cell: dict[str, Any]) -> str:
    return json.dumps(cell, sort_keys=True)


def _read_lines(store: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the cells done so far; a last line cut off by an interruption is left out."""
    done = {}
    for text in store.read_text(encoding="utf-8").splitlines() if store.is_file() else []:
        try:
            record = json.loads(text)
        except json.JSONDecodeError:
            continue
        done[_key(record["cell"])] = record["lines"]
    return done


def _mark() -> str:
    """Return a few letters that change when the script does."""
    path = getattr(sys.modules["__main__"], "__file__", None)
    return hashlib.sha1(Path(path).read_bytes()).hexdigest()[:8] if path else ""


def _marks(store: Path) -> list[str]:
    """Return which version of the script did each cell, where that is known."""
    text = store.read_text(encoding="utf-8") if store.is_file() else ""
    return re.findall(r'"script": "(\w*)"}$', text, re.MULTILINE)


def _quietly(work: Callable[..., Any], cell: dict[str, Any]) -> list[dict[str, Any]]:
    """Do one cell on one thread; warnings are about settings that the papers fixed."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = work(**cell)
    lines = lines if isinstance(lines, list) else [lines]
    return [
        {name: getattr(value, "item", lambda value=value: value)() for name, value in line.items()}
        for line in lines
    ]


def say_sources(names: Iterable[str]) -> str:
    """Return where each set comes from, in words; nothing of those that are nowhere."""
    found: dict[str, list[str]] = {}
    for name in names:
        try:
            data = load_dataset(name)
        except FileNotFoundError:  # the part that needs it will say so
            continue
        drawn = data.source == "OpenML" and data.splits is not None
        found.setdefault(
            data.source + (", with random splits in place of the published ones" if drawn else ""),
            [],
        ).append(name)
    return "\n".join(f"Data from {source}: {', '.join(sets)}." for source, sets in found.items())


def main(
    paper: str, about: str, parts: dict[str, Callable[[Study], None]], data: Iterable[str] = ()
) -> None:
    """Run the parts of a script as the command line says; `data` are the sets that it reads."""
    parser = argparse.ArgumentParser(
        prog=f"papers/{paper}.py",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--full", action="store_true", help="as many splits as the paper; resumed if interrupted"
    )
    parser.add_argument(
        "--only", nargs="+", choices=list(parts), metavar="PART", help=f"of: {', '.join(parts)}"
    )
    parser.add_argument("--out", type=Path, help="folder to write into [papers/output]")
    parser.add_argument("--jobs", type=int, default=1, help="processes at work [1]")
    options = parser.parse_args()
    out = (options.out or HERE / "output") / paper / ("full" if options.full else "quick")
    out.mkdir(parents=True, exist_ok=True)
    study = Study(paper, options.full, out, options.jobs)
    matplotlib.use("svg")
    matplotlib.rcParams.update(STYLE)
    print(say_sources(data), flush=True)
    try:
        for part in options.only or parts:
            parts[part](study)
    except FileNotFoundError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(f"\nStopped. What was done is in {out}; the same command goes on from there.")
