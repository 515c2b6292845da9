"""How many planted slips are named among known values, and how many right values are.

In each of the twenty mixed tables slips are planted in 3 % of the labels: a number is multiplied or divided by ten, two
of its digits change places, or it is that of another row; a class becomes another one. The same labels without slips
tell how many right values are named. Beside it the simplest list of the same length: the largest errors, or the least
probable classes, all labels taken together, of which the reader must choose the length.

    python benchmarks/suspects.py [--labels 100 400] [--draws 1] [TABLE ...]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd
from mixed_tables import TABLES, read_mixed

from transduce import fill
from transduce.app.report.suspects import find_suspects

SHARE = 0.03
N_UNLABELLED = 200


def plant_slips(labels: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return labels with slips, and the rows that have one."""
    slipped = labels.copy()
    rows = random.choice(len(labels), max(2, round(SHARE * len(labels))), replace=False)
    classes = np.unique(labels)
    for row in rows:
        if labels.dtype.kind != "f":
            slipped[row] = random.choice(classes[classes != labels[row]])
            continue
        kind = random.choice(["ten", "tenth", "swapped", "other"])
        slipped[row] = {
            "ten": labels[row] * 10.0,
            "tenth": labels[row] / 10.0,
            "swapped": swapped_digits(labels[row]),
            "other": labels[random.integers(len(labels))],
        }[kind]
    return slipped, rows


def swapped_digits(number: float) -> float:
    """Return a number of which the first two different digits in a row have changed places."""
    text = list(f"{number:g}")
    for place in range(len(text) - 1):
        first, second = text[place : place + 2]
        if first.isdigit() and second.isdigit() and first != second:
            text[place : place + 2] = [second, first]
            break
    return float("".join(text))


def count_named(name: str, n_labels: int, draw: int) -> dict[str, object] | None:
    """Return how many slips and how many right values are named; None if the table is too small."""
    task = TABLES[name].task
    frame, target = read_mixed(name)
    labels = np.asarray(target).astype(float if task == "regression" else str)
    if len(labels) < n_labels + N_UNLABELLED:
        return None
    random = np.random.default_rng(draw)
    rows = random.choice(len(labels), n_labels + N_UNLABELLED, replace=False)
    table = pd.DataFrame(frame).iloc[rows].reset_index(drop=True)
    right = labels[rows][:n_labels]
    slipped, where = plant_slips(right, random)
    hidden = [hidden_labels(table, known, task) for known in (right, slipped)]
    false_alarms = len(find_suspects(task, hidden[0]))
    named = find_suspects(task, hidden[1]).rows
    simplest = rank_simply(task, hidden[1])[: len(named)]
    return {
        "table": name,
        "labels": n_labels,
        "slips": len(where),
        "named": len(named),
        "slips named": int(np.isin(named, where).sum()),
        "slips in the simplest list": int(np.isin(simplest, where).sum()),
        "named without slips": false_alarms,
    }


def hidden_labels(table: pd.DataFrame, known: np.ndarray, task: str) -> pd.DataFrame:
    """Return what was predicted at labels that were hidden in turn, by places in the table."""
    column = pd.Series([*known.tolist(), *[None] * N_UNLABELLED], dtype=object).infer_objects()
    result = fill(table.assign(**{"_known_": column}), "_known_", task=task)
    folds = result.diagnosis.hidden_labels
    return folds.set_axis(result.seen.places_of(folds.index.to_numpy()))


def rank_simply(task: str, folds: pd.DataFrame) -> np.ndarray:
    """Return rows by their errors, or by the probability of their class."""
    if task == "regression":
        order = np.argsort(-np.abs(folds["true"].astype(float) - folds["answered"].astype(float)))
    else:
        order = np.argsort(folds["probability_of_true"])
    return folds.index.to_numpy()[order]


def all_counts(args: argparse.Namespace) -> Iterator[dict[str, object]]:
    for name in args.tables or TABLES:
        for n_labels in args.labels:
            for draw in range(args.draws):
                counts = count_named(name, n_labels, draw)
                if counts is not None:
                    yield counts | {"task": TABLES[name].task}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--labels", type=int, nargs="+", default=[100, 400])
    parser.add_argument("--draws", type=int, default=1)
    warnings.simplefilter("ignore")
    lines = []
    for counts in all_counts(parser.parse_args()):
        lines.append(counts)
        print(" ".join(f"{name}={value}" for name, value in counts.items()), flush=True)
    means = pd.DataFrame(lines).drop(columns="table").groupby(["task", "labels"]).mean()
    print(means.round(1).to_string())


if __name__ == "__main__":
    main()
