"""Values of `ConformalTransducer` with and without a second fit to all labels.

    TRANSDUCE_DATA=folder python benchmarks/refit_accuracy.py [--draws 2] [--labels 30 100]

Draws of the race (`race_draws.py`), the default blend at 90 %. Error: of numbers the root mean squared error over that
of the labelled mean, of classes the share of wrong answers; means over the tables.
"""

from __future__ import annotations

import argparse
import warnings

import pandas as pd
from paper_sets import dataset_names
from race_draws import LEFT_OUT, deal, enters, measure
from race_methods import with_holes
from threadpoolctl import threadpool_limits

from transduce import ConformalTransducer, TransductiveBlend


def run(task, table, labels, draw):
    X, y, n_labels, seed = deal(task, table, labels, draw)
    known, truth = y[:n_labels], y[n_labels:]
    blend = TransductiveBlend(task=task, random_state=seed)
    settings = {"random_state": seed, "test_exchangeability": False}
    first = ConformalTransducer(blend, **settings).fit(X, with_holes(X, known)).answer_
    second = ConformalTransducer(blend, refit=True, **settings).fit(X, with_holes(X, known)).answer_
    errors = {"first fit": first.values, "second fit": second.values}
    errors = {
        name: measure(values.astype(y.dtype), known, truth) for name, values in errors.items()
    }
    return {"task": task, "labels": labels, **errors}


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
                    name
                    for name in dataset_names(task)
                    if name not in LEFT_OUT and enters(name, labels)
                ]
                lines += [
                    run(task, name, labels, draw) for name in names for draw in range(options.draws)
                ]
    table = pd.DataFrame(lines)
    print(table.groupby(["task", "labels"], sort=False).mean().round(3).to_string())


if __name__ == "__main__":
    main()
