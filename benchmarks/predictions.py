"""Error of `fill` with predictions made elsewhere: named with ``predictions=``, or left a column.

Predictions are those of a model that learned from other rows and from half of the columns
("model"), or the truth with noise ("noise"). Numbers: mean absolute error at unlabelled rows in
units of the spread of the truth. Classes: share of wrong rows.

    python benchmarks/predictions.py --draws 3
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Ridge

from transduce import fill

ROWS = 400  # of each table
LABELS = (30, 100)


def number_tables(rng: np.random.Generator) -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    """Return tables with a column "given" of predictions, and the true numbers."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    truth = y.to_numpy(dtype=float)
    for share in (0.2, 0.4):
        noise = rng.normal(0, share * truth.std(), len(X))
        yield f"diabetes, noise {share}", X.assign(given=truth + noise), truth
    pixels = load_digits(as_frame=True).data.iloc[:ROWS]
    truth = pixels.iloc[:, 32:].sum(axis=1).to_numpy()
    noise = rng.normal(0, 0.2 * truth.std(), len(truth))
    yield "ink, noise 0.2", pixels.iloc[:, :32].assign(given=truth + noise), truth
    X = load_breast_cancer(as_frame=True).data
    truth = X["worst area"].to_numpy()
    X = X[[name for name in X if not name.startswith("worst")]]
    teach = rng.random(len(X)) < 0.25
    half = rng.permutation(X.shape[1])[: X.shape[1] // 2]
    model = Ridge().fit(X.iloc[teach, half], truth[teach])
    table = X.assign(given=model.predict(X.iloc[:, half]))[~teach]
    yield "cells, model", table.reset_index(drop=True), truth[~teach]


def class_tables(rng: np.random.Generator) -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    """Return tables with a column "given" of predictions, and the true classes."""
    X, y = load_digits(return_X_y=True, as_frame=True)
    truth = np.array([f"digit {label}" for label in y])
    other = rng.choice(np.unique(truth), len(truth))
    noisy = np.where(rng.random(len(truth)) < 0.85, truth, other)
    rows = rng.permutation(len(X))[:ROWS]
    yield (
        "digits, noise",
        X.iloc[rows].assign(given=noisy[rows]).reset_index(drop=True),
        truth[rows],
    )
    for name, load in {"cells, model": load_breast_cancer, "wine, model": load_wine}.items():
        X, y = load(return_X_y=True, as_frame=True)
        truth = np.array([f"class {label}" for label in y])
        teach = rng.random(len(X)) < 0.2
        half = rng.permutation(X.shape[1])[:2]
        model = RandomForestClassifier(50, random_state=0).fit(X.iloc[teach, half], truth[teach])
        table = X.assign(given=model.predict(X.iloc[:, half]))[~teach]
        yield name, table.reset_index(drop=True), truth[~teach]


def measure(table: pd.DataFrame, truth: np.ndarray, n_labels: int, seed: int) -> dict[str, float]:
    """Return the error of the given predictions, of the column as a feature, and corrected."""
    rng = np.random.default_rng(seed)
    labelled = np.isin(np.arange(len(table)), rng.choice(len(table), n_labels, replace=False))
    numeric = truth.dtype.kind == "f"
    empty = np.nan if numeric else None
    table = table.assign(truth=np.where(labelled, truth, empty))
    errors = {"given": table["given"].to_numpy()}
    with warnings.catch_warnings(action="ignore"):
        errors["feature"] = fill(table, "truth").frame["truth_filled"].to_numpy()
        corrected = fill(table, "truth", predictions="given")
    errors["corrected"] = corrected.frame["truth_filled"].to_numpy()
    if numeric:
        spread = float(np.std(truth))
        return {k: float(np.mean(np.abs(v - truth)[~labelled])) / spread for k, v in errors.items()}
    return {k: float(np.mean((v != truth)[~labelled])) for k, v in errors.items()}


def main() -> None:
    """Print a line for each table and number of labels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--task", choices=["numbers", "classes"])
    options = parser.parse_args()
    kinds = {"numbers": number_tables, "classes": class_tables}
    for task, make in kinds.items():
        if options.task not in (None, task):
            continue
        for name, table, truth in make(np.random.default_rng(0)):
            for n_labels in LABELS:
                draws = [measure(table, truth, n_labels, seed) for seed in range(options.draws)]
                means = pd.DataFrame(draws).mean()
                line = "  ".join(f"{kind} {value:.3f}" for kind, value in means.items())
                print(f"{task:8} {name:19} {n_labels:4} labels: {line}", flush=True)


if __name__ == "__main__":
    main()
