"""What guarantees for a whole column cost and give, on real data.

    TRANSDUCE_DATA=folder python benchmarks/conformal.py [--splits 40] [--labels 64]

All regression sets of `papers/paper_data.py` with enough rows or, without a folder, scikit-learn's diabetes. Prints

1. for each set and estimator: share outside at 90 %, share of splits with more outside than the bound at 95 %
   certainty, mean width of the intervals over the labels' standard deviation, and the root mean squared error when
   labels are held out over that of a fit with all labels: the price of the guarantee;
2. seconds of the wrapper beside those of the bare fit, and of the exchangeability test alone.
"""

from __future__ import annotations

import argparse
import sys
import warnings

import numpy as np
from paper_sets import CATALOGUE, data_folder, dataset_names
from race_draws import read_table
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import RidgeCV
from speed_table import as_frame, clock, line

from transduce import ConformalTransducer, TransductiveRidge
from transduce.conformal import exchangeability_test

ESTIMATORS = {
    "transductive ridge": TransductiveRidge(),
    "random forest": RandomForestRegressor(100, random_state=0),
    "ridge": RidgeCV(np.logspace(-2, 4, 13)),
}


def sets_at_hand(fewest_rows):
    """Return the names of the sets with enough rows; without a folder, of the one that comes with scikit-learn."""
    if data_folder() is None:
        return ["bundled-diabetes"]
    names = [name for name in dataset_names("regression") if not name.startswith("bundled")]
    return [name for name in names if CATALOGUE[name].n_rows >= fewest_rows]


def fill(inner, X, y):
    """Return the values of a fit with all labels at the unlabelled rows."""
    known = ~np.isnan(y)
    if isinstance(inner, TransductiveRidge):
        return clone(inner).fit(X, y).answer_.values
    return clone(inner).fit(X[known], y[known]).predict(X[~known])


def run_split(inner, X, truth, n_labelled, seed):
    """Return share outside, whether more than the bound, width, and the ratio of errors, in one split."""
    rows = np.random.default_rng([seed, len(X), n_labelled]).permutation(len(X))[: n_labelled + 256]
    X, truth = X[rows], truth[rows]
    y = np.append(truth[:n_labelled], np.full(len(rows) - n_labelled, np.nan))
    model = ConformalTransducer(inner, test_exchangeability=False, random_state=seed + len(X)).fit(
        X, y
    )
    outside = ~model.answer_.regions.contains(truth[n_labelled:])
    errors = [
        np.mean((v - truth[n_labelled:]) ** 2) for v in (model.answer_.values, fill(inner, X, y))
    ]
    width = np.mean(model.answer_.regions.measure()) / np.std(truth)
    return (
        outside.mean(),
        outside.sum() > model.outside_at_most(0.95),
        width,
        np.sqrt(errors[0] / errors[1]),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=40)
    parser.add_argument("--labels", type=int, default=64)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    try:
        compare(options.splits, options.labels)
    except FileNotFoundError as error:
        sys.exit(str(error))
    time_wrapper()


def compare(splits, n_labelled):
    """Print a line for each set and estimator, and their means."""
    print("| data | estimator | outside % | more than the bound % | width / sd | error ratio |")
    print("| --- | --- | --- | --- | --- | --- |")
    totals = {name: [] for name in ESTIMATORS}
    for data in sets_at_hand(n_labelled + 100):
        X, truth = read_table(data)
        for name, inner in ESTIMATORS.items():
            found = np.array([run_split(inner, X, truth, n_labelled, s) for s in range(splits)])
            totals[name].append(found.mean(axis=0))
            write(data, name, found.mean(axis=0))
    for name, found in totals.items():
        write("mean", name, np.mean(found, axis=0))


def write(data, name, found):
    outside, more, width, ratio = found
    print(
        f"| {data} | {name} | {100 * outside:.1f} | {100 * more:.1f} | {width:.2f} | {ratio:.3f} |",
        flush=True,
    )


def time_wrapper():
    for found in measure("full").to_dict("records"):
        ours = f"{found['method']}, {found['what']}, {found['n']:,} rows: {found['ours_s']:.2f} s"
        print(f"{ours}; {found['opponent']}: {found['opponent_s']:.2f} s")


def best_time(work, repeats=3):
    times = []
    for _ in range(repeats):
        start = clock()
        work()
        times.append(clock() - start)
    return min(times)


def measure(size):
    """Return lines for the table of all comparisons: what a guarantee costs on top of a fit; n counts rows."""
    X, truth = load_diabetes(return_X_y=True)
    y = np.append(truth[:100], np.full(342, np.nan))
    inner = RandomForestRegressor(100, random_state=0)
    bare = best_time(lambda: clone(inner).fit(X[:100], truth[:100]).predict(X[100:]))
    wrapped = ConformalTransducer(inner, test_exchangeability=False)
    name, lines = "ConformalTransducer", []
    lines.append(
        line(
            name,
            "around a forest",
            442,
            best_time(lambda: wrapped.fit(X, y)),
            "the forest alone",
            bare,
        )
    )
    for n in (442,) if size == "quick" else (442, 20_000):
        rows = X if n == 442 else np.random.default_rng(0).normal(size=(n, 20))
        target, known = rows[:, 0], np.arange(n) < (100 if n == 442 else 2_000)
        bare = best_time(
            lambda r=rows, t=target, k=known: clone(inner).fit(r[k], t[k]).predict(r[~k]), 1
        )
        ours = best_time(lambda r=rows, k=known: exchangeability_test(r, k), 1)
        lines.append(
            line("exchangeability_test", "at most 1,000 rows drawn", n, ours, "a forest", bare)
        )
    return as_frame(lines)


if __name__ == "__main__":
    main()
