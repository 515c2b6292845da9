"""The confidence machine against its peers: regions at three levels, time a row and peak memory, as ratios.

    python benchmarks/confidence_machine.py [--quick] [--out FOLDER]

Opponents, on the same rows in the same run:

- online-cp, whose conformal ridge regressors answer one row a call;
- the paper's algorithm as it stands: refit with every unlabelled row appended, sort all breakpoints;
- split conformal prediction with crepes around scikit-learn's Ridge, which spends half the labels on
  calibration and is linear only.

Times are for everything a user waits for, fitting included, divided by the number of unlabelled rows. Each method is
given its rows as it takes them: ours one table with missing labels, the others labelled and unlabelled rows apart. Slow
opponents answer a few of the rows and their time for one more row is taken for the rest. Everything is run once
before it is timed (this compiles our code), then the best of several runs counts. Memory is the peak that
tracemalloc sees in a run of its own, in which slow opponents, who hold one row at a time, answer a few rows.
Ratios are what to read: the machine may be shared.
"""

from __future__ import annotations

import argparse
import platform
import tracemalloc
from importlib.metadata import version
from pathlib import Path

import numpy as np
import online_cp
import pandas as pd
from crepes import WrapRegressor
from sklearn.linear_model import Ridge
from speed_table import as_frame, clock, line

from transduce import RidgeConfidenceMachine
from transduce.device.kernels import Kernel

LEVELS = (0.9, 0.95, 0.99)
WIDTH = 5.0
FEW = {
    1_000: 50,
    10_000: 20,
    100_000: 5,
    500: 20,
    2_000: 5,
    5_000: 2,
}  # rows that slow opponents answer, by labels
SIZES = {  # labels of the linear and of the kernel form
    "quick": ((1_000,), (500,)),
    "standard": ((1_000, 10_000), (500, 2_000)),
    "full": ((1_000, 10_000, 100_000), (500, 2_000, 5_000)),
}


def make_data(n_labelled, n_unlabelled, d=20, seed=0, heavy=False):
    rng = np.random.default_rng(seed)
    X = (
        rng.standard_t(3, size=(n_labelled + n_unlabelled, d))
        if heavy
        else rng.normal(size=(n_labelled + n_unlabelled, d))
    )
    y = X @ rng.normal(size=d) + np.sin(2 * X[:, 0]) + rng.normal(size=len(X))
    return X[:n_labelled], y[:n_labelled], X[n_labelled:]


class Ours:
    """One fit; each level for all rows in one call."""

    name = "transduce"

    def __init__(self, kernel, standardize=False, fit_intercept=False):
        self.model = RidgeConfidenceMachine(
            kernel=kernel,
            width=WIDTH,
            confidence=LEVELS[0],
            standardize=standardize,
            fit_intercept=fit_intercept,
        )

    def __call__(self, table, labels, X_unlabelled):
        self.model.fit(table, labels)
        others = [self.model.predict_region(X_unlabelled, confidence=level) for level in LEVELS[1:]]
        return [self.model.answer_.regions, *others]


class OursDefault(Ours):
    """The same with features scaled and an intercept, as users will run it; no opponent does this work."""

    name = "transduce, scaled, intercept"

    def __init__(self, kernel):
        super().__init__(kernel, standardize=True, fit_intercept=True)


class OnlineCP:
    """One fit; each row for all levels in one call."""

    name = "online-cp"

    def __init__(self, kernel):
        if kernel == "linear":
            self.make = lambda: online_cp.ConformalRidgeRegressor(a=1.0, warnings=False)
        else:
            gaussian = online_cp.GaussianKernel(sigma=WIDTH)
            self.make = lambda: online_cp.KernelConformalRidgeRegressor(
                kernel=gaussian, a=1.0, warnings=False
            )

    def __call__(self, X, y, X_unlabelled):
        model = self.make()
        model.learn_initial_training_set(X, y)
        levels = 1.0 - np.array(LEVELS)
        return [model.predict(row, epsilon=levels) for row in X_unlabelled]


class Refit:
    """The paper's Algorithm 1: for every unlabelled row a refit of l + 1 rows, then a sort of all breakpoints."""

    name = "refit"

    def __init__(self, kernel):
        self.kernel = Kernel(kernel, WIDTH)

    def __call__(self, X, y, X_unlabelled):
        return [self.row(np.vstack([X, row]), y) for row in X_unlabelled]

    def row(self, X, y):
        labels = np.zeros((len(X), 2))
        labels[:-1, 0], labels[-1, 1] = y, 1.0
        if self.kernel.name == "linear":
            A, B = (labels - X @ np.linalg.solve(X.T @ X + np.eye(X.shape[1]), X.T @ labels)).T
        else:
            A, B = np.linalg.solve(self.kernel.matrix(X, X) + np.eye(len(X)), labels).T
        flip = np.where(B < 0, -1.0, 1.0)
        A, B = A * flip, B * flip
        one, other = (A[:-1] - A[-1]) / (B[-1] - B[:-1]), -(A[:-1] + A[-1]) / (B[:-1] + B[-1])
        lower, upper = np.sort(np.minimum(one, other)), np.sort(np.maximum(one, other))
        ranks = [int((1 - level + 1e-12) * len(X)) for level in LEVELS]
        return [(lower[rank - 1], upper[-rank]) for rank in ranks]


class Split:
    """Split conformal: half the labels fit a ridge regression, the other half calibrates it."""

    name = "split (crepes)"

    def __init__(self, kernel):
        assert kernel == "linear"

    def __call__(self, X, y, X_unlabelled):
        half = len(y) // 2
        model = WrapRegressor(Ridge(alpha=1.0))
        model.fit(X[:half], y[:half])
        model.calibrate(X[half:], y[half:])
        return [model.predict_int(X_unlabelled, confidence=level) for level in LEVELS]


def given(method, X, y, X_unlabelled):
    """Return the same data as the method takes them."""
    if not isinstance(method, Ours):
        return X, y, X_unlabelled
    missing = np.full(len(X_unlabelled), np.nan)
    return np.concatenate([X, X_unlabelled]), np.append(y, missing), X_unlabelled


def best_time(method, *data, seconds, most=300):
    """Return the best of several runs, within about the seconds given."""
    data = given(method, *data)
    method(*data)
    times, start = [], clock()
    while not times or (len(times) < most and clock() - start < seconds):
        before = clock()
        method(*data)
        times.append(clock() - before)
    return min(times)


def time_per_row(method, X, y, X_unlabelled, *, n_rows, seconds):
    """Return seconds a row for all unlabelled rows, measured on `n_rows` of them if the method is slow."""
    if n_rows >= len(X_unlabelled):
        return best_time(method, X, y, X_unlabelled, seconds=seconds) / len(X_unlabelled)
    one = best_time(method, X, y, X_unlabelled[:1], seconds=seconds, most=3)
    several = best_time(method, X, y, X_unlabelled[: n_rows + 1], seconds=seconds, most=3)
    each = (several - one) / n_rows
    return max(one - each, 0.0) / len(X_unlabelled) + each


def peak_memory(method, *data):
    data = given(method, *data)
    tracemalloc.start()
    method(*data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def compare(kernel, n_labelled, n_unlabelled, opponents, seconds, heavy=False):
    """Return one line of the table for each method."""
    data = make_data(n_labelled, n_unlabelled, heavy=heavy)
    lines = []
    for method, n_rows in [
        (Ours(kernel), n_unlabelled),
        *((make(kernel), rows) for make, rows in opponents),
    ]:
        print(f"  {kernel}, l = {n_labelled:,}: {method.name} ...", flush=True)
        seconds_row = time_per_row(method, *data, n_rows=n_rows, seconds=seconds)
        memory = peak_memory(method, data[0], data[1], data[2][: max(n_rows, 1)])
        lines.append(
            [kernel + " (heavy tails)" * heavy, n_labelled, method.name, 1e6 * seconds_row, memory]
        )
    frame = pd.DataFrame(lines, columns=["kernel", "labels", "method", "us a row", "peak MB"])
    frame["time / ours"] = frame["us a row"] / frame["us a row"][0]
    return frame


def check_equal(kernel, n_labelled):
    """Return the largest difference between our interval ends and those of a refit for every row."""
    data = make_data(n_labelled, 20)
    ours = Ours(kernel)
    regions = ours(*given(ours, *data))
    ends = np.stack([region.hull() for region in regions], axis=1)
    return np.abs(ends - np.array(Refit(kernel)(*data))).max()


def memory_by_rows(kernel, n_labelled, counts):
    """Return the peak memory of our fit beyond its input and output, for growing numbers of unlabelled rows."""
    lines = []
    for n_unlabelled in counts:
        X, y, X_unlabelled = make_data(n_labelled, n_unlabelled)
        rows, labels = (
            np.concatenate([X, X_unlabelled]),
            np.append(y, np.full(n_unlabelled, np.nan)),
        )
        model = RidgeConfidenceMachine(kernel=kernel, width=WIDTH, max_memory_mb=64)
        tracemalloc.start()
        model.fit(rows, labels)
        peak = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        lines.append([kernel, n_labelled, n_unlabelled, rows.nbytes / 2**20, peak])
    return pd.DataFrame(lines, columns=["kernel", "labels", "unlabelled", "features MB", "peak MB"])


def compare_all(size, seconds=4):
    """Return the lines of all sizes, the linear form first."""
    linear, kernel = SIZES[size]
    tables = [
        compare(
            "linear",
            n,
            1_000,
            [(OursDefault, 1_000), (OnlineCP, FEW[n]), (Refit, FEW[n]), (Split, 1_000)],
            seconds,
        )
        for n in linear
    ]
    tables += [
        compare("rbf", n, 500, [(OnlineCP, FEW[n]), (Refit, 1 if n > 500 else 5)], seconds)
        for n in kernel
    ]
    heavy = compare(
        "linear", linear[-1], 1_000, [(OursDefault, 1_000), (Split, 1_000)], seconds, heavy=True
    )
    return pd.concat([*tables, heavy])


def measure(size):
    """Return lines for the table of all comparisons; n is the number of labels."""
    found, lines = compare_all(size, seconds=1.5), []
    for (kernel, n), part in found.groupby(["kernel", "labels"], sort=False):
        ours, *others = part.to_dict("records")
        n_unlabelled = 500 if kernel == "rbf" else 1_000
        what = f"{kernel}: regions at three levels, {n_unlabelled:,} rows"
        lines += [
            line(
                "RidgeConfidenceMachine",
                what,
                n,
                ours["us a row"] * n_unlabelled / 1e6,
                other["method"],
                other["us a row"] * n_unlabelled / 1e6,
                ours["peak MB"],
                other["peak MB"],
            )
            for other in others
            if not other["method"].startswith("transduce")
        ]
    return as_frame(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes only (a minute)")
    parser.add_argument("--out", type=Path, help="folder for the tables as CSV")
    options = parser.parse_args()
    names = ["transduce", "online-cp", "crepes", "numpy", "scipy", "scikit-learn", "numba"]
    print(
        platform.processor() or platform.machine(),
        *(f"{name} {version(name)}" for name in names),
        sep="; ",
    )
    for kernel in ("linear", "rbf"):
        print(
            f"largest difference to a refit for every row, {kernel}: {check_equal(kernel, 300):.1e}"
        )
    speed = compare_all("quick" if options.quick else "full")
    memory = pd.concat(
        [
            memory_by_rows("linear", 1_000, (1_000, 10_000, 100_000)),
            memory_by_rows(
                "rbf", 500, (1_000, 10_000) if options.quick else (1_000, 10_000, 100_000)
            ),
        ]
    )
    print(f"\nRegions at {', '.join(f'{100 * level:g} %' for level in LEVELS)}:\n")
    print(speed.to_string(index=False, float_format="{:,.1f}".format))
    print(
        "\nOur peak memory as there are more unlabelled rows (budget 64 MB for working arrays):\n"
    )
    print(memory.to_string(index=False, float_format="{:,.1f}".format))
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        speed.to_csv(options.out / "confidence_machine_speed.csv", index=False)
        memory.to_csv(options.out / "confidence_machine_memory.csv", index=False)


if __name__ == "__main__":
    main()
