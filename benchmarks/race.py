"""Accuracy race: scikit-learn's methods, the five systems, their blend and `auto`, with few labels and with many.

    TRANSDUCE_DATA=folder python benchmarks/race.py [--quick] [--methods NAME] [--jobs 2] [--report] [--publish]

Transductive cross-validation, by repeated random masking: of each table some rows are drawn, 10, 30, 100 or many of
them keep their labels, the others (30 to 300) are unlabelled, with their features in sight. Many: 300 labels, or 70 %
of the rows if that is fewer, where that is more than 100. Sets are all of `papers/paper_data.py` with enough rows for
it and no more classes than half the labels; each class is among the labels. Left out are the sparse sets of text and
web pages, the large adult (the small one is there) and scikit-learn's digits (they are part of optdigits); of
machine, the column of nearly unique model names. Methods and their settings: `race_methods.py`.

Error: of numbers the root mean squared error over that of the labelled mean; of classes the share of wrong answers. A
method that fails on a draw has no error there and comes last on that table.

A run can be stopped and resumed with the same command: draw 0 of all tables comes first. It writes into
``benchmarks/output/race``; ``--report`` makes tables and figures of what is there, ``--publish`` also copies them
to ``docs/results/race`` and renews the table in ``docs/choosing.md``. With ``--methods`` these alone are run, and their
mean errors are set beside those of ``docs/results/race``.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from paper_sets import dataset_names
from race_draws import LEFT_OUT, enters, race
from race_methods import methods
from race_report import publish, report

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "papers"))

from study import Study, _read_lines  # noqa: E402

OUT = HERE / "output" / "race"
PUBLISHED = HERE.parent / "docs" / "results" / "race" / "errors.csv"
TASKS = ("regression", "classification")
DRAWS = {"10": 6, "30": 6, "100": 3, "many": 2}


def cells(
    tasks: list[str], draws: dict[str, int], only: list[str] | None = None
) -> list[dict[str, object]]:
    """Return what to run, ordered so that a run that is cut short is balanced."""
    names = [(task, name) for task in tasks for name in dataset_names(task) if name not in LEFT_OUT]
    return [
        {"task": task, "table": name, "labels": labels, "draw": draw, "method": method}
        for draw in range(max(draws.values()))
        for labels in draws
        if draw < draws[labels]
        for task, name in names
        if enters(name, labels)
        for method in methods(task, 1)
        if only is None or method in only
    ]


def collected() -> pd.DataFrame:
    """Return the lines of all draws of which every method has been run."""
    done = _read_lines(OUT / "race.jsonl")
    lines = pd.DataFrame([{**json.loads(key), **line} for key in done for line in done[key]])
    if not len(lines):
        sys.exit(f"There is nothing in {OUT} yet: run the race first.")
    expected = {task: list(methods(task, 1)) for task in TASKS}
    known = [
        method in expected[task]
        for task, method in zip(lines["task"], lines["method"], strict=True)
    ]
    lines = lines[np.array(known) & ~lines["table"].isin(LEFT_OUT)]
    whole = lines.groupby(["task", "table", "labels", "draw"])["method"].transform("nunique")
    lines = lines[
        whole == lines["task"].map({task: len(names) for task, names in expected.items()})
    ]
    order = {name: place for names in expected.values() for place, name in enumerate(names)}
    return lines.sort_values(
        "method", key=lambda names: names.map(order), kind="stable", ignore_index=True
    )


def beside_published(found: pd.DataFrame) -> pd.DataFrame:
    """Return mean errors over the tables as they are now and as they were published, for each method."""
    keys = ["task", "labels", "table"]
    published = pd.read_csv(PUBLISHED, dtype={"labels": str}).melt(
        keys, var_name="method", value_name="published"
    )
    now = found.groupby([*keys, "method"], as_index=False)["error"].mean()
    pairs = now.merge(published, on=[*keys, "method"])
    pairs["larger"] = pairs["error"] > pairs["published"]
    groups = pairs.groupby(["method", "task", "labels"])
    return groups.agg(
        now=("error", "mean"),
        published=("published", "mean"),
        larger=("larger", "sum"),
        of=("table", "size"),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks/race.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--labels", nargs="+", choices=list(DRAWS), default=list(DRAWS))
    parser.add_argument("--task", choices=TASKS, help="one task only")
    parser.add_argument("--draws", type=int, help=f"for every number of labels [{DRAWS}]")
    parser.add_argument("--quick", action="store_true", help="one draw")
    parser.add_argument(
        "--methods", nargs="+", help="run these only, and compare with what was published"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes at work [1]")
    parser.add_argument("--report", action="store_true", help="of what is there; runs nothing")
    parser.add_argument("--publish", action="store_true", help="report, and copy it into the docs")
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    if not (options.report or options.publish):
        draws = {
            labels: 1 if options.quick else options.draws or DRAWS[labels]
            for labels in options.labels
        }
        tasks = [options.task] if options.task else list(TASKS)
        try:
            lines = cells(tasks, draws, options.methods)
            found = Study("race", True, OUT, options.jobs).collect("race", lines, race)
            if options.methods:
                print(beside_published(found).round(4).to_string())
                return
        except FileNotFoundError as error:
            sys.exit(str(error))
        except KeyboardInterrupt:
            print(f"\nStopped. What was done is in {OUT}; the same command goes on from there.")
    report(collected(), OUT)
    if options.publish:
        publish(OUT)


if __name__ == "__main__":
    main()
