"""How far the probabilities of Bayesian transduction can be trusted, on thyroid and heart.

    TRANSDUCE_DATA=folder python benchmarks/bayesian_accuracy.py [--splits 100] [--jobs 1] [--figure FILE]

The random 60:40 splits and the kernel widths of `papers/graepel1999.py`, which has the errors and the rejection curves.
Prints log-loss and expected calibration error (ten bins of equal width) of the splits' pooled probabilities, with
softness 0 and with softness chosen by leave-one-out and by cross-validation. ``--figure`` draws the reliability of the
last.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from paper_sets import load_dataset
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

from transduce import BayesianTransducer

WIDTHS = {"thyroid": 3.0, "heart": 10.0}
METHODS = {"softness 0": 0.0, "softness by loo": "loo", "softness by cv": "cv"}


def run_split(name, split):
    """Return the classes at the unlabelled rows, and each method's probabilities of the second class there."""
    data = load_dataset(name)
    X, y = data.encoded(), (data.y > 0).to_numpy(int)
    unlabelled = np.random.default_rng(split).permutation(len(y)) >= int(0.6 * len(y))
    found = {"truth": y[unlabelled]}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # the budget of bounces may end a vote; it shows in the numbers
        for method, softness in METHODS.items():
            model = BayesianTransducer(width=WIDTHS[name], softness=softness, random_state=0)
            found[method] = model.fit(X, np.where(unlabelled, np.nan, y)).answer_.probabilities[
                :, 1
            ]
    return pd.DataFrame(found)


def calibration_error(truth, shares, n_bins=10):
    """Return the mean distance of predicted and observed shares over bins, weighted by their size."""
    bins = np.minimum((shares * n_bins).astype(int), n_bins - 1)
    return float(
        np.abs(np.bincount(bins, weights=shares - truth, minlength=n_bins)).sum() / len(truth)
    )


def summarise(name, pooled):
    """Return a line for each method."""
    truth = pooled["truth"].to_numpy()
    return [
        {
            "data": name,
            "method": method,
            "log-loss": log_loss(truth, np.clip(pooled[method], 1e-3, 1 - 1e-3)),
            "calibration error %": 100 * calibration_error(truth, pooled[method].to_numpy()),
        }
        for method in METHODS
    ]


def draw(collected, path):
    """Draw observed shares against the probabilities said."""
    import matplotlib.pyplot as plt
    from sklearn.calibration import CalibrationDisplay

    figure, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
    for (name, pooled), marker in zip(collected.items(), "os", strict=True):
        CalibrationDisplay.from_predictions(
            pooled["truth"], pooled["softness by cv"], n_bins=10, name=name, ax=ax, marker=marker
        )
    ax.set(title="softness by cv", xlabel="probability said", ylabel="share observed")
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1, help="processes at work [1]")
    parser.add_argument("--figure", type=Path, help="where to draw")
    options = parser.parse_args()
    collected = {}
    try:
        for name in WIDTHS:
            run = Parallel(n_jobs=options.jobs, return_as="generator")
            parts = []
            for part in run(delayed(run_split)(name, split) for split in range(options.splits)):
                parts.append(part)
                print(f"\r{name}: {len(parts)} splits", end="", file=sys.stderr, flush=True)
            collected[name] = pd.concat(parts)
    except FileNotFoundError as error:
        sys.exit(str(error))
    print(file=sys.stderr)
    table = pd.DataFrame(
        [line for name, pooled in collected.items() for line in summarise(name, pooled)]
    )
    print(table.to_string(index=False, float_format=lambda x: f"{x:.2f}"))
    if options.figure:
        draw(collected, options.figure)


if __name__ == "__main__":
    main()
