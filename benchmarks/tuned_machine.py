"""The price of choosing settings: the tuned confidence machine against the same machine with one fixed setting.

    python benchmarks/tuned_machine.py [--labels 300 1000] [--rows 2000] [--settings 20] [--classes 3]

Both fit the same rows in the same run, in kernel form, regions of all unlabelled rows included; each is run once before
it is timed (this compiles our code), then the best of several runs counts. The ratio is what to read: how many times
longer than one fixed setting the choice among all of them takes. The aim is at most ten times for 20 settings.
"""

from __future__ import annotations

import argparse

import numpy as np
from speed_table import as_frame, clock, line

from transduce import RidgeConfidenceClassifier, RidgeConfidenceMachine
from transduce.device.kernels import median_width
from transduce.methods.confidence_machine import Setting
from transduce.methods.confidence_machine.setting_grid import default_settings

SIZES = {"quick": (100,), "standard": (100, 300), "full": (100, 300, 1_000)}


def make_data(n_labelled, n_rows, n_classes=0, d=10, seed=0):
    """Return rows and labels, missing at all but the first; classes if there are to be any."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_labelled + n_rows, d))
    signal = X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * rng.normal(size=len(X))
    if n_classes:
        edges = np.quantile(signal, np.linspace(0, 1, n_classes + 1)[1:-1])
        signal = np.digitize(signal, edges).astype(float)
    return X, np.where(np.arange(len(X)) < n_labelled, signal, np.nan)


def make_grid(X, n_settings):
    """Return that many settings: the default grid, and rbf kernels of more widths if that is not enough."""
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    grid, median = list(default_settings(scaled)), median_width(scaled)
    widths = median * np.geomspace(0.25, 4.0, max(n_settings - len(grid), 0) // 4 + 1)
    grid += [
        Setting("rbf", float(width), ridge) for width in widths for ridge in (0.1, 0.3, 1.0, 3.0)
    ]
    return grid[:n_settings]


def best_time(model, X, y, seconds=3.0, most=10):
    """Return the best of several fits, within about the seconds given, after one that is not timed."""
    model.fit(X, y)
    times, start = [], clock()
    while not times or (len(times) < most and clock() - start < seconds):
        before = clock()
        model.fit(X, y)
        times.append(clock() - before)
    return min(times)


def compare(n_labelled, n_rows, n_settings, n_classes=0):
    """Return the seconds of the tuned and of the fixed machine."""
    X, y = make_data(n_labelled, n_rows, n_classes)
    make = RidgeConfidenceClassifier if n_classes else RidgeConfidenceMachine
    settings = "leave-one-out" if n_settings == 20 else make_grid(X, n_settings)
    return [best_time(model, X, y) for model in (make(settings=settings), make())]


def measure(size):
    """Return lines for the table of all comparisons; n is the number of labels."""
    return as_frame(
        [
            line(
                "settings='leave-one-out'",
                f"{what}, 2,000 rows, 20 settings",
                n,
                tuned,
                "one fixed setting",
                fixed,
            )
            for n in SIZES[size]
            for what, n_classes in (("numbers", 0), ("three classes", 3))
            for tuned, fixed in [compare(n, 2_000, 20, n_classes)]
        ]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, nargs="+", default=[100, 300])
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--settings", type=int, default=20)
    parser.add_argument("--classes", type=int, default=0, help="0 for numbers")
    options = parser.parse_args()
    for n_labelled in options.labels:
        tuned, fixed = compare(n_labelled, options.rows, options.settings, options.classes)
        print(
            f"{n_labelled:,} labels, {options.rows:,} rows, {options.settings} settings: {1e3 * tuned:,.0f} ms, "
            f"one fixed setting {1e3 * fixed:,.0f} ms, ratio {tuned / fixed:.1f}"
        )


if __name__ == "__main__":
    main()
