"""Which guarantee of `fill` has the narrower intervals and the smaller sets, by the number of labels.

    python benchmarks/row_or_column.py [--task regression] [--labels 60 100 140 200 300] [--draws 8]

On the mixed tables of `mixed_tables.py`, in draws that no race uses, with 150 rows unlabelled, level 90 %. *Row* holds
no label out, *column* some, and bounds how many rows are outside. Width is the mean width of the intervals (an
unbounded one counts as the range of all labels), or the mean number of classes in a set; printed is that by row over
that by column, the geometric mean over tables, with its standard error, and the mean coverage of both.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from mixed_tables import TABLES, deal_mixed, enters, read_mixed
from threadpoolctl import threadpool_limits

from transduce import fill

FIRST_DRAW = 7000
ROWS = 150
WAYS = ("row", "column")


def judge_numbers(answered, truth, target):
    """Return the mean width, and the coverage."""
    low = answered["target_to_fill_lower"].to_numpy(float)
    high = answered["target_to_fill_upper"].to_numpy(float)
    low = np.where(np.isnan(low), -np.inf, low)
    high = np.where(np.isnan(high), np.inf, high)
    width = np.where(np.isfinite(high - low), high - low, np.ptp(target))
    return float(width.mean()), float(np.mean((low <= truth) & (truth <= high)))


def judge_classes(answered, truth):
    """Return the mean size of the sets, and the coverage."""
    sets = [str(one).split(" | ") for one in answered["target_to_fill_set"]]
    inside = [str(name) in one for name, one in zip(truth, sets, strict=True)]
    return float(np.mean([len(one) for one in sets])), float(np.mean(inside))


def run_draw(name, n_labels, draw):
    """Return the figures of both ways in one draw."""
    frame, y, _ = deal_mixed(name, n_labels, draw)
    n = min(len(y), n_labels + ROWS)
    holes = pd.Series(y[:n].copy())
    holes[n_labels:] = None
    table = frame.iloc[:n].assign(target_to_fill=holes)
    figures = {"table": name, "labels": n_labels, "draw": draw}
    for way in WAYS:
        result = fill(table, "target_to_fill", guarantee=way, random_state=0)
        answered = result.table().iloc[n_labels:]
        if TABLES[name].task == "regression":
            judged = judge_numbers(answered, y[n_labels:n], read_mixed(name)[1])
        else:
            judged = judge_classes(answered, y[n_labels:n])
        figures[way], figures[f"coverage, {way}"] = judged
    return figures


def report(lines):
    """Print the figures of one number of labels."""
    frame = pd.DataFrame(lines)
    frame["ratio"] = np.log(frame["row"] / frame["column"])
    by_table = frame.groupby("table").mean()
    ratio = by_table["ratio"]
    print(
        f"{frame['labels'].iloc[0]} labels, {len(ratio)} tables: row over column "
        f"{np.exp(ratio.mean()):.3f} (standard error {ratio.std() / np.sqrt(len(ratio)):.3f}), "
        f"coverage {by_table['coverage, row'].mean():.3f} "
        f"and {by_table['coverage, column'].mean():.3f}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", choices=["regression", "classification"], default="regression")
    parser.add_argument("--labels", type=int, nargs="+", default=[60, 100, 140, 200, 300])
    parser.add_argument("--draws", type=int, default=8)
    options = parser.parse_args()
    names = [name for name, table in TABLES.items() if table.task == options.task]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n_labels in options.labels:
            report(
                [
                    run_draw(name, n_labels, draw)
                    for name in names
                    if enters(name, n_labels)
                    for draw in range(FIRST_DRAW, FIRST_DRAW + options.draws)
                ]
            )


if __name__ == "__main__":
    main()
