"""The default blend beside each of its members, a random forest, ridge and a support vector machine, with few labels.

    TRANSDUCE_DATA=folder python benchmarks/blend_accuracy.py [--quick] [--task TASK] [--draws 10] [--out FILE]

15 or 40 rows are labelled at random and up to 300 others asked, on all tables at hand with 75 rows or more and those
bundled with scikit-learn. Error: of numbers the root mean squared error over that of the labelled mean; of classes the
share of wrong answers. A draw of class labels holds each class at least once. Prints mean errors over the tables, and
mean ranks over the tables (of errors averaged over the draws) and over all draws; for numbers also the blend's errors
in units of its standard errors. Everything is automatic; the support vector machine's C is chosen among 0.1, 1, 10 and
100 by cross-validation. ``--quick`` takes 2 draws.

The seeds of the draws begin with 100; the members and the rule for the weights were chosen on draws 0 and 1.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from threadpoolctl import threadpool_limits

from transduce import TransductiveBlend
from transduce.members import default_members
from transduce.methods._asking import is_transducer, last_step

LABELS = (15, 40)
MOST_ASKED = 300
FEWEST_ROWS = 75
FIRST_SEED = 100
UNITS = "error / standard error"
GRID = {"C": [0.1, 1.0, 10.0, 100.0]}


def read_regression(folder):
    tables = {"442 patients": load_diabetes(return_X_y=True)}
    for path in sorted((folder / "regression").glob("*.csv*")):
        frame = pd.read_csv(path)
        # Of machine, ERP is an estimate of the target and the model's name is nearly unique.
        frame = frame.drop(columns=[name for name in ("ERP", "model") if name in frame])
        if len(frame) >= FEWEST_ROWS:
            X = pd.get_dummies(frame.iloc[:, :-1]).to_numpy(float)
            tables[path.name.partition(".csv")[0]] = X, frame.iloc[:, -1].to_numpy(float)
    return tables


def read_classification(folder):
    folder = folder / "classification"
    tables = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer}
    tables = {name: load(return_X_y=True) for name, load in tables.items()}
    for path in sorted(folder.glob("ida_*.npz")):
        data = np.load(path)
        tables[path.stem.removeprefix("ida_")] = data["x"].astype(float), data["t"].astype(int)
    for name in ("ionosphere.csv", "optdigits.csv", "usps_test.csv.gz"):
        frame = pd.read_csv(folder / name)
        tables[name.partition(".")[0]] = frame.iloc[:, :-1].to_numpy(float), frame.iloc[:, -1].to_numpy()
    adult = scipy.sparse.load_npz(folder / "adult_a1a_train.npz").toarray().astype(float)
    tables["adult"] = adult, pd.read_csv(folder / "adult_a1a_train_labels.csv").iloc[:, -1].to_numpy()
    return tables


def pick(y, n_labels, task, random):
    """Return positions of rows, and how many of them at the front are labelled."""
    order = random.permutation(len(y))
    if task == "classification":  # the first of each class goes to the front
        first = np.sort(np.unique(y[order], return_index=True)[1])
        order = np.concatenate([order[first], np.delete(order, first)])
    return order[: n_labels + MOST_ASKED]


def opponents(task):
    """Return the methods to beat that are not members."""
    if task == "regression":
        svm = GridSearchCV(SVR(), GRID, scoring="neg_mean_squared_error")
        scaled = TransformedTargetRegressor(svm, transformer=StandardScaler())
        return {"svm": make_pipeline(StandardScaler(), scaled)}
    return {
        "ridge": make_pipeline(StandardScaler(), RidgeClassifierCV(np.logspace(-3, 4, 30))),
        "svm": make_pipeline(StandardScaler(), GridSearchCV(SVC(), GRID, cv=3)),
    }


def answers(method, X, y, n_labels, task):
    """Return a method's answers at the rows after the labelled ones, and their standard errors if it has any."""
    method = clone(method)
    if not is_transducer(method):
        return method.fit(X[:n_labels], y[:n_labels]).predict(X[n_labels:]), None
    labels = y.astype(float if task == "regression" else object)
    labels[n_labels:] = np.nan if task == "regression" else None
    answer = last_step(method.fit(X, labels)).answer_
    return answer.values, answer.standard_errors


def run_draw(X, y, n_labels, task, seed):
    """Return the error of every method in one draw of the labels."""
    rows = pick(y, n_labels, task, np.random.default_rng(seed))
    X, y = X[rows], y[rows]
    members, _ = default_members(task, len(y), n_labels, seed)
    methods = {
        "blend": TransductiveBlend(task=task, random_state=seed),
        "equal blend": TransductiveBlend(task=task, weights="equal", random_state=seed),
        **members,
        **opponents(task),
    }
    truth, errors = y[n_labels:], {}
    for name, method in methods.items():
        found, spread = answers(method, X, y, n_labels, task)
        if task == "regression" and name == "blend":
            errors[UNITS] = np.sqrt(np.mean(((found - truth) / spread) ** 2))
        if task == "regression":
            base = np.mean((truth - y[:n_labels].mean()) ** 2)
            errors[name] = np.sqrt(np.mean((found - truth) ** 2) / base)
        else:
            errors[name] = np.mean(found != truth)
    return errors


def run_task(task, tables, draws):
    lines = []
    start = time.perf_counter()
    for name, (X, y) in tables.items():
        for n_labels in LABELS:
            for seed in range(FIRST_SEED, FIRST_SEED + draws):
                lines.append(
                    {"task": task, "table": name, "labels": n_labels, **run_draw(X, y, n_labels, task, seed)}
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
    print(f"\nblend {table.loc['blend', 'rank, both']:.2f}, the best other {rest.idxmin()} {rest.min():.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="2 draws")
    parser.add_argument("--task", choices=["regression", "classification"], help="one task only")
    parser.add_argument("--out", type=Path, help="file for the errors of all draws, as CSV")
    options = parser.parse_args()
    folder = Path(os.environ.get("TRANSDUCE_DATA", ""))
    if not (folder / "regression").is_dir():
        sys.exit("Set TRANSDUCE_DATA to the folder that holds regression/ and classification/.")
    readers = {"regression": read_regression, "classification": read_classification}
    results = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for task in [options.task] if options.task else list(readers):
            draws = run_task(task, readers[task](folder), 2 if options.quick else options.draws)
            report(task, draws)
            results.append(draws)
    if options.out:
        pd.concat(results).to_csv(options.out, index=False)


if __name__ == "__main__":
    main()
