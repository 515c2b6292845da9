"""Transductive against inductive ridge on every regression set, all settings automatic.

    TRANSDUCE_DATA=folder python benchmarks/ridge_accuracy.py [--splits 10]

Root mean squared error over the inductive one's when 20, 50 or 90 % of the rows are labelled (tables are cut to 400
rows), and, over ten times as many splits, the mean squared errors on kin-32fh with 64 labelled and 256 unlabelled
rows. With the paper's settings, and of classes: `papers/chapelle1999.py`.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from paper_sets import dataset_names
from race_draws import read_table

from transduce import TransductiveRidge

SHARES = (0.2, 0.5, 0.9)
MOST_ROWS = 400


def errors(X, y, n_labelled, n_unlabelled, seed):
    """Return the mean squared errors of the inductive and the transductive answers in one split."""
    rows = np.random.default_rng(seed).permutation(len(y))[: n_labelled + n_unlabelled]
    labels = y[rows].copy()
    labels[n_labelled:] = np.nan
    answer = TransductiveRidge().fit(X[rows], labels).answer_
    truth = y[rows[n_labelled:]]
    return np.mean((answer.inductive - truth) ** 2), np.mean((answer.values - truth) ** 2)


def ratios(name, splits):
    """Return transductive over inductive error for each share of labelled rows."""
    X, y = read_table(name)
    n, found = min(len(y), MOST_ROWS), []
    for share in SHARES:
        labelled = max(5, int(share * n))
        results = [errors(X, y, labelled, n - labelled, seed) for seed in range(splits)]
        inductive, transductive = np.mean(results, axis=0)
        found.append(np.sqrt(transductive / inductive))
    return found


def automatic(splits):
    """Print the ratio on every set, their mean, and the errors on kin-32fh."""
    print(
        f"Root mean squared error, transductive over inductive, all settings automatic, {splits} splits"
    )
    table = []
    for name in dataset_names("regression"):
        if not name.startswith("bundled"):
            table.append(ratios(name, splits))
            show(name, table[-1])
    show("mean of all sets", np.mean(table, axis=0))
    show("best set", np.min(table, axis=0))
    show("worst set", np.max(table, axis=0))
    print("columns: share of labelled rows", *SHARES)
    results = np.array(
        [errors(*read_table("kin-32fh"), 64, 256, seed) for seed in range(10 * splits)]
    )
    inductive, transductive = results.mean(axis=0)
    print(
        f"kin-32fh, 64 labelled, 256 unlabelled, {10 * splits} splits: inductive {inductive:.3f}, "
        f"transductive {transductive:.3f}, better in {np.mean(results[:, 1] < results[:, 0]):.0%}"
    )


def show(name, found):
    print(f"{name:16s}", *(f"{ratio:7.3f}" for ratio in found), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=10)
    options = parser.parse_args()
    try:
        automatic(options.splits)
    except FileNotFoundError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
