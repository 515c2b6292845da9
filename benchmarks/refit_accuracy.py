"""Values of `ConformalTransducer` with and without a second fit to all labels, and how often they lie outside.

    TRANSDUCE_DATA=folder python benchmarks/refit_accuracy.py [--draws 2] [--labels 30 100]

Draws of the race (`race_draws.py`), the default blend at 90 %. Error: of numbers the root mean squared error over that
of the labelled mean, of classes the share of wrong answers; means over the tables. *Moved inside*: a number outside its
region goes to the nearest end, a class outside its set gives way to the likeliest in it. Also prints which share of the
values of the second fit is outside its region or set, and how often a set is empty.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from race_draws import LEFT_OUT, deal, enters, measure
from race_methods import with_holes
from threadpoolctl import threadpool_limits

from transduce import ConformalTransducer, TransductiveBlend
from transduce.datasets import dataset_names


def moved_inside(answer):
    """Return values moved into their regions or sets, and which of them were outside."""
    if answer.regions is not None:
        low, high = answer.regions.hull().T
        return np.clip(answer.values, low, high), ~answer.regions.contains(answer.values)
    rows = np.arange(len(answer.values))
    codes = np.searchsorted(answer.classes.astype(int), answer.values.astype(int))
    outside = ~answer.label_sets[rows, codes]
    best = np.where(answer.label_sets, answer.probabilities, -1.0).argmax(axis=1)
    codes = np.where(outside & answer.label_sets.any(axis=1), best, codes)
    return answer.classes[codes], outside


def run(task, table, labels, draw):
    X, y, n_labels, seed = deal(task, table, labels, draw)
    known, truth = y[:n_labels], y[n_labels:]
    blend = TransductiveBlend(task=task, random_state=seed)
    settings = {"random_state": seed, "test_exchangeability": False}
    first = ConformalTransducer(blend, **settings).fit(X, with_holes(X, known)).answer_
    second = ConformalTransducer(blend, refit=True, **settings).fit(X, with_holes(X, known)).answer_
    moved, outside = moved_inside(second)
    errors = {"first fit": first.values, "second fit": second.values, "second fit, moved inside": moved}
    errors = {name: measure(values.astype(y.dtype), known, truth) for name, values in errors.items()}
    empty = np.nan if first.label_sets is None else np.mean(~first.label_sets.any(axis=1))
    return {"task": task, "labels": labels, **errors, "outside": np.mean(outside), "empty sets": empty}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--labels", nargs="+", default=["30", "100"])
    options = parser.parse_args()
    lines = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for task in ("regression", "classification"):
            for labels in options.labels:
                names = [
                    name for name in dataset_names(task) if name not in LEFT_OUT and enters(name, labels)
                ]
                lines += [run(task, name, labels, draw) for name in names for draw in range(options.draws)]
    table = pd.DataFrame(lines)
    print(table.groupby(["task", "labels"], sort=False).mean().round(3).to_string())
    print("\nlargest share outside in a draw")
    print(table.groupby(["task", "labels"], sort=False)["outside"].max().round(3).to_string())


if __name__ == "__main__":
    main()
