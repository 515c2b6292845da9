"""Transductive ridge against scikit-learn's KernelRidge with GridSearchCV: time and memory, as ratios in one run.

    python benchmarks/ridge.py [--quick] [--out FOLDER]

Both choose width and ridge from equally many pairs, ours by leave-one-out in closed form, scikit-learn's by five folds.
GridSearchCV gives the inductive answer only. Beyond 500 rows its time is measured on two pairs and multiplied up, and
its error is that of those two. Each case runs in a process of its own, whose peak resident memory (the libraries' 0.2
GB included) is reported. Half of the rows are labelled when centres are at all rows; 1,000 are when there are 500
centres. All our settings are automatic. Errors are mean squared errors at the unlabelled rows.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from speed_table import as_frame, clock, line

from transduce import TransductiveRidge

SIZES = {  # rows with centres at all of them, and with 500 centres
    "quick": ((500,), (20_000,)),
    "standard": ((500, 2_000), (20_000,)),
    "full": ((500, 2_000, 5_000), (20_000, 100_000, 300_000)),
}


def make_data(n, n_labelled, d=10):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.sin(X[:, 0]) + X @ rng.normal(size=d) / 3 + 0.3 * rng.normal(size=n)
    return X, y, np.append(y[:n_labelled], np.full(n - n_labelled, np.nan))


def run_ours(n, n_labelled, centres):
    X, y, labels = make_data(n, n_labelled)
    TransductiveRidge(centres=centres and 5, random_state=0).fit(X[:50], y[:50])
    start = clock()
    model = TransductiveRidge(centres=centres, random_state=0).fit(X, labels)
    answer = model.answer_
    return {
        "seconds": clock() - start,
        "pairs": len(model.loo_path_),
        "error": float(np.mean((answer.values - y[n_labelled:]) ** 2)),
        **{key: answer.diagnostics.get(key) for key in ("products", "relative_residual")},
    }


def run_grid_search(n, n_labelled, pairs):
    """Search as many pairs as ours did; beyond 500 rows time a few of them and multiply up."""
    X, y, _ = make_data(n, n_labelled)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    n_widths, n_ridges = (12, -(-pairs // 12)) if n <= 500 else (2, 1)
    widths = np.geomspace(0.5, 64, n_widths) if n <= 500 else np.array([4.0, 8.0])
    ridges = np.geomspace(1e-8, 1e2, n_ridges) if n <= 500 else np.array([0.1])
    search = GridSearchCV(
        KernelRidge(kernel="rbf"), {"gamma": 0.5 / widths**2, "alpha": ridges}, cv=5
    )
    start = clock()
    search.fit(X[:n_labelled], y[:n_labelled] - y[:n_labelled].mean())
    fitted = clock()
    answer = search.predict(X[n_labelled:]) + y[:n_labelled].mean()
    return {
        "seconds": (fitted - start) * pairs / (n_widths * n_ridges) + clock() - fitted,
        "error": float(np.mean((answer - y[n_labelled:]) ** 2)),
    }


def in_process(which, *arguments):
    """Run a case in a process of its own; return its result with the peak memory."""
    command = [sys.executable, __file__, "--case", json.dumps([which, *arguments])]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def run_case(case):
    """Run one case in this process and print its result."""
    which, *arguments = json.loads(case)
    result = (run_ours if which == "ours" else run_grid_search)(*arguments)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({**result, "GB": peak}))


def compare(n, n_labelled, centres):
    """Return one line of the table."""
    print(f"  {n:,} rows, {centres or 'all rows as'} centres ...", flush=True)
    ours = in_process("ours", n, n_labelled, centres)
    theirs = in_process("grid", n, n_labelled, ours["pairs"])
    return {
        "rows": n,
        "labelled": n_labelled,
        "centres": centres or n,
        "pairs": ours["pairs"],
        "s": ours["seconds"],
        "GB": ours["GB"],
        "time, grid search / ours": theirs["seconds"] / ours["seconds"],
        "memory, grid search / ours": theirs["GB"] / ours["GB"],
        "error": ours["error"],
        "its error": theirs["error"],
        "products": ours["products"],
        "residual": ours["relative_residual"],
    }


def compare_all(size):
    exact, centres = SIZES[size]
    cases = [(n, n // 2, None) for n in exact] + [(n, 1_000, 500) for n in centres]
    return pd.DataFrame([compare(*case) for case in cases])


def measure(size):
    """Return lines for the table of all comparisons; n is the number of rows."""
    lines = []
    for found in compare_all(size).to_dict("records"):
        exact = found["centres"] == found["rows"]
        what = (
            "search and fit, centres at all rows, half labelled"
            if exact
            else "search and fit, 500 centres"
        )
        ratio, memory = found["time, grid search / ours"], found["memory, grid search / ours"]
        megabytes = 1024 * found["GB"]
        lines.append(
            line(
                "TransductiveRidge",
                what,
                found["rows"],
                found["s"],
                "KernelRidge with GridSearchCV",
                ratio * found["s"],
                megabytes,
                memory * megabytes,
            )
        )
    return as_frame(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--out", type=Path, help="folder for the table as CSV")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        run_case(options.case)
        return
    names = ["transduce", "numpy", "scipy", "scikit-learn"]
    print(
        platform.processor() or platform.machine(),
        *(f"{name} {version(name)}" for name in names),
        sep="; ",
    )
    table = compare_all("quick" if options.quick else "full")
    print(table.to_string(index=False, float_format="{:.3g}".format))
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        table.to_csv(options.out / "ridge.csv", index=False)


if __name__ == "__main__":
    main()
