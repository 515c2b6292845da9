"""The default blend beside each of its members, a random forest, ridge and a support vector machine, with few labels.

    TRANSDUCE_DATA=folder python benchmarks/blend_accuracy.py [--quick] [--task TASK] [--draws 10] [--out FILE]

15 or 40 rows are labelled at random and up to 300 others are unlabelled, on the tables of the race (`race.py`) with 75
rows or more and no more than 15 classes, and on cpus; of usps on the rows of its test file. Error: of numbers the
root mean squared error over that of the labelled mean; of classes the share of wrong answers. A draw of class labels
holds each class at least once. Prints mean errors over the tables, and mean ranks over the tables (of errors averaged
over the draws) and over all draws; for numbers also the blend's errors in units of its standard errors. Everything is
automatic; the support vector machine's C is chosen among 0.1, 1, 10 and 100 by cross-validation. ``--quick`` takes 2
draws.

The seeds of the draws begin with 100; the members and the rule for the weights were chosen on draws 0 and 1.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from paper_sets import CATALOGUE, dataset_names
from race_draws import LEFT_OUT, draw_rows, measure, read_table
from race_methods import GRID, PENALTIES, plain, semi_supervised, transducer
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC, SVR
from threadpoolctl import threadpool_limits

from transduce import TransductiveBlend
from transduce.model_selection.estimator_kinds import is_transducer, last_step
from transduce.model_selection.methods import Case, default_members

TASKS = ("regression", "classification")
LABELS = (15, 40)
FEWEST_ROWS = 75
NOT_HERE = {*LEFT_OUT, "isolet"} - {"cpus"}  # isolet has 26 classes
USPS_TEST = 7291  # of usps the test file alone, which begins here
FIRST_SEED = 100
UNITS = "error / standard error"


def read_tables(task):
    """Return features and labels of all tables, by name."""
    names = [
        n for n in dataset_names(task) if CATALOGUE[n].n_rows >= FEWEST_ROWS and n not in NOT_HERE
    ]
    tables = {name: read_table(name) for name in names}
    if "usps" in tables:
        tables["usps"] = tuple(part[USPS_TEST:] for part in tables["usps"])
    return tables


def opponents(task):
    """Return the methods to beat that are not members."""
    if task == "regression":
        svm = GridSearchCV(SVR(), GRID, scoring="neg_mean_squared_error")
        scaled = TransformedTargetRegressor(svm, transformer=StandardScaler())
        return {"svm": make_pipeline(StandardScaler(), scaled)}
    return {
        "ridge": make_pipeline(StandardScaler(), RidgeClassifierCV(PENALTIES)),
        "svm": make_pipeline(StandardScaler(), GridSearchCV(SVC(), GRID, cv=3)),
    }


def answers_of(estimator):
    """Return how an estimator is fitted and answers: with all rows' features if it can use them."""
    if is_transducer(estimator):
        return transducer(lambda n_rows, seed: estimator)
    if isinstance(last_step(estimator), LabelSpreading):
        return semi_supervised(lambda seed: estimator)
    return plain(lambda seed: estimator)


def run_draw(X, y, n_labels, task, seed):
    """Return the error of every method in one draw of the labels."""
    rows = draw_rows(y, n_labels, task, np.random.default_rng(seed))
    X, labels, truth = X[rows], y[rows[:n_labels]], y[rows[n_labels:]]
    members, _ = default_members(Case(task, len(rows), n_labels, random_state=seed))
    blend = TransductiveBlend(task=task, random_state=seed)
    equal = TransductiveBlend(task=task, weights="equal", random_state=seed)
    methods = {"blend": blend, "equal blend": equal, **members, **opponents(task)}
    errors = {
        name: measure(answers_of(method)(X, labels, seed), labels, truth)
        for name, method in methods.items()
    }
    if task == "regression":
        gaps = (blend.answer_.values - truth) / blend.answer_.standard_errors
        errors[UNITS] = np.sqrt(np.mean(gaps**2))
    return errors


def run_task(task, tables, draws):
    lines = []
    start = time.perf_counter()
    for name, (X, y) in tables.items():
        for n_labels in LABELS:
            for seed in range(FIRST_SEED, FIRST_SEED + draws):
                lines.append(
                    {
                        "task": task,
                        "table": name,
                        "labels": n_labels,
                        **run_draw(X, y, n_labels, task, seed),
                    }
                )
        print(f"{task}: {name}, {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    return pd.DataFrame(lines)


def report(task, draws):
    """Print mean errors and mean ranks."""
    methods = draws.columns.drop(["task", "table", "labels", UNITS], errors="ignore")
    by_table = draws.groupby(["labels", "table"])[list(methods)].mean()
    ranks = by_table.rank(axis=1)
    columns = {}
    for n_labels in LABELS:
        columns[f"error, {n_labels}"] = by_table.loc[n_labels].mean()
        columns[f"rank, {n_labels}"] = ranks.loc[n_labels].mean()
    columns["rank, both"] = ranks.mean()
    columns["rank, draws"] = draws[methods].rank(axis=1).mean()
    table = pd.DataFrame(columns).sort_values("rank, both")
    print(f"\n{task}: {draws['table'].nunique()} tables, {len(draws) // len(by_table)} draws\n")
    print(table.round(3).to_string())
    if UNITS in draws:
        quartiles = draws[UNITS].quantile([0.25, 0.5, 0.75]).round(2).tolist()
        print(f"\n{UNITS}, root mean square in a draw: quartiles {quartiles}")
    rest = table["rank, both"].drop(["blend", "equal blend"])
    print(
        f"\nblend {table.loc['blend', 'rank, both']:.2f}, the best other {rest.idxmin()} {rest.min():.2f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="2 draws")
    parser.add_argument("--task", choices=TASKS, help="one task only")
    parser.add_argument("--out", type=Path, help="file for the errors of all draws, as CSV")
    options = parser.parse_args()
    results = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for task in [options.task] if options.task else TASKS:
            try:
                tables = read_tables(task)
            except FileNotFoundError as error:
                sys.exit(str(error))
            draws = run_task(task, tables, 2 if options.quick else options.draws)
            report(task, draws)
            results.append(draws)
    if options.out:
        pd.concat(results).to_csv(options.out, index=False)


if __name__ == "__main__":
    main()
