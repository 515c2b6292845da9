"""Bayesian transduction: bounces a second against the plain billiard, the whole job against scikit-learn's classifiers.

    python benchmarks/bayesian.py [--quick] [--out FOLDER]

1. Bounces a second of one ball on one thread, votes at m rows included, against a billiard in numpy that computes all
   inner products anew at every bounce, as the paper does: ``O(l (l + m))``. The plain one is timed on a few bounces.
   The shortest of three times, for both: other work on the machine only ever adds.
2. The whole job on scikit-learn's bundled two-class tables, 60:40 splits, everything automatic: time, error, log-loss
   and area under the rejection curve of ours (softness by leave-one-out; by cross-validation; and without softness),
   ``SVC(probability=True)`` with C by cross-validation, and ``GaussianProcessClassifier``.
"""

from __future__ import annotations

import argparse
import platform
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from speed_table import as_frame, clock, line
from threadpoolctl import threadpool_limits

from transduce import BayesianTransducer
from transduce.device.kernels import Kernel
from transduce.methods.bayesian.balls import Game, VersionSpace, Voter
from transduce.metrics import area_under_rejection_curve

SIZES = {  # labelled rows, unlabelled rows, splits
    "quick": ((150, 1_000), (100, 1_000), 1),
    "standard": ((150, 1_000), (100, 1_000, 10_000), 1),
    "full": ((150, 1_000, 5_000), (100, 1_000, 10_000), 5),
}
OURS = "transduce, softness by loo"


def make_kernel(n_labelled, n_unlabelled):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_labelled + n_unlabelled, 10))
    signs = np.where(X[:n_labelled, 0] > 0, 1.0, -1.0)
    rows, unlabelled = X[:n_labelled], X[n_labelled:]
    kernel = Kernel("rbf", 3.0)
    G = (kernel.matrix(rows, rows) + 1.0) / 2.0
    return (
        np.ascontiguousarray(G),
        signs,
        np.ascontiguousarray((kernel.matrix(rows, unlabelled) + 1.0) / np.sqrt(2.0)),
    )


def time_ours(G, signs, columns, clock=clock):
    """Return seconds a bounce, the flight's and the votes' together."""
    space = VersionSpace.of(G, signs)
    game, voter = Game(space, [0], soft=False, refresh=4 * len(G)), Voter(columns)
    voter.times(game.play(1)[0])
    began = clock()
    flight = game.play(max(20_000, 8 * len(G)))[0]
    voter.times(flight)
    elapsed = clock() - began
    return elapsed / sum(len(segment.walls) for segment in flight)


def time_plain(G, signs, columns, n_bounces):
    """Return seconds a bounce of the billiard that keeps coefficients only."""
    space = VersionSpace.of(G, signs)
    random = np.random.RandomState(0)
    w = space.start(random)
    v = space.velocity(w, random)
    positive = np.zeros(columns.shape[1])
    began = clock()
    for _ in range(n_bounces):
        a, b = signs * (G @ w), signs * (G @ v)
        p, q = w @ columns, v @ columns
        steepness = -b / np.maximum(a, 1e-300)
        wall = int(np.argmax(steepness))
        flight = np.arctan2(1.0, steepness[wall])
        after = p * np.cos(flight) + q * np.sin(flight)
        with np.errstate(invalid="ignore"):
            crossing = np.arctan2(np.abs(p), -q * np.sign(p))
        stay = np.where(p > 0, flight, 0.0)
        cross = np.where(p > 0, crossing, flight - crossing)
        positive += np.where((p > 0) == (after > 0), stay, cross)
        w, v = np.cos(flight) * w + np.sin(flight) * v, np.cos(flight) * v - np.sin(flight) * w
        v[wall] -= 2.0 * float(G[wall] @ v)
    return (clock() - began) / n_bounces


def compare_bounces(sizes):
    lines = []
    for n_labelled, n_unlabelled in sizes:
        case = make_kernel(n_labelled, n_unlabelled)
        with threadpool_limits(1):
            ours = min(time_ours(*case) for _ in range(3))
            plain = min(time_plain(*case, 100 if n_labelled < 2000 else 10) for _ in range(3))
        lines.append(
            {
                "labelled": n_labelled,
                "unlabelled": n_unlabelled,
                "bounces a second": 1 / ours,
                "ns a bounce and row": 1e9 * ours / (n_labelled + n_unlabelled),
                "ratio to the plain billiard": plain / ours,
            }
        )
    return pd.DataFrame(lines)


def tables():
    wine, digits = load_wine(), load_digits()
    two = wine.target < 2
    some = (digits.target == 3) | (digits.target == 8)
    cancer = load_breast_cancer()
    yield "breast cancer", cancer.data, cancer.target
    yield "wine, 0 against 1", wine.data[two], wine.target[two]
    yield "digits, 3 against 8", digits.data[some], (digits.target[some] == 8).astype(int)


def peers(width):
    svc = GridSearchCV(
        SVC(probability=True, gamma=0.5 / width**2, random_state=0), {"C": np.logspace(-2, 4, 7)}
    )
    return {
        "SVC": svc,
        "GaussianProcessClassifier": GaussianProcessClassifier(ConstantKernel() * RBF(width)),
    }


def compare_jobs(n_splits):
    lines = []
    for name, X, y in tables():
        for split in range(n_splits):
            unlabelled = np.random.default_rng(split).permutation(len(y)) >= 0.6 * len(y)
            for method, run in {
                OURS: lambda *a: run_ours(*a, softness="loo"),
                "transduce, softness by cv": lambda *a: run_ours(*a, softness="cv"),
                "transduce, softness 0": lambda *a: run_ours(*a, softness=0.0),
                "SVC": lambda *a: run_peer("SVC", *a),
                "GaussianProcessClassifier": lambda *a: run_peer("GaussianProcessClassifier", *a),
            }.items():
                began = clock()
                shares = run(X, y, unlabelled)
                seconds = clock() - began
                answers, sure = shares.argmax(axis=1), np.abs(shares[:, 1] - 0.5)
                lines.append(
                    {
                        "data": name,
                        "method": method,
                        "labels": int(np.sum(~unlabelled)),
                        "s": seconds,
                        "error %": 100 * np.mean(answers != y[unlabelled]),
                        "log-loss": log_loss(y[unlabelled], np.clip(shares, 1e-3, 1 - 1e-3)),
                        "area %": 100 * area_under_rejection_curve(y[unlabelled], answers, sure),
                    }
                )
    table = pd.DataFrame(lines).groupby(["data", "method"], sort=False).mean().reset_index()
    ours = table[table["method"] == OURS].set_index("data")["s"]
    table["time / ours"] = table["s"] / table["data"].map(ours)
    return table


def run_ours(X, y, unlabelled, softness):
    labels = np.where(unlabelled, np.nan, y)
    return (
        BayesianTransducer(softness=softness, random_state=0).fit(X, labels).answer_.probabilities
    )


def run_peer(which, X, y, unlabelled):
    Z = StandardScaler().fit_transform(X)
    width = float(np.sqrt(2 * X.shape[1]))
    return peers(width)[which].fit(Z[~unlabelled], y[~unlabelled]).predict_proba(Z[unlabelled])


def measure(size):
    """Return lines for the table of all comparisons; n is the number of labels."""
    labelled, unlabelled, n_splits = SIZES[size]
    name, lines = "BayesianTransducer", []
    bounces = compare_bounces([(n_labelled, m) for m in unlabelled for n_labelled in labelled])
    for found in bounces.to_dict("records"):
        ours, ratio = 1 / found["bounces a second"], found["ratio to the plain billiard"]
        what = f"a bounce with votes at {found['unlabelled']:,} rows"
        lines.append(
            line(name, what, found["labelled"], ours, "billiard without caches", ratio * ours)
        )
    X, y = load_breast_cancer(return_X_y=True)
    for softness in ("cv", 0.0):  # compiles
        run_ours(X[:60], y[:60], np.arange(60) >= 50, softness=softness)
    for data, part in compare_jobs(n_splits).groupby("data", sort=False):
        ours, _, _, *others = part.to_dict("records")
        lines += [
            line(name, f"whole job, {data}", ours["labels"], ours["s"], other["method"], other["s"])
            for other in others
        ]
    return as_frame(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes and one split only")
    parser.add_argument("--out", type=Path, help="folder for the tables as CSV")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = ["transduce", "numpy", "numba", "scikit-learn"]
    print(
        platform.processor() or platform.machine(),
        *(f"{name} {version(name)}" for name in names),
        sep="; ",
    )
    labelled, unlabelled, n_splits = SIZES["quick" if options.quick else "full"]
    results = {
        "bounces": compare_bounces(
            [(n_labelled, m) for n_labelled in labelled for m in unlabelled]
        ),
        "jobs": compare_jobs(n_splits),
    }
    for name, table in results.items():
        print(
            f"\n{name}\n{table.to_string(index=False, float_format=lambda x: f'{x:.3g}')}",
            flush=True,
        )
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            table.to_csv(options.out / f"bayesian_{name}.csv", index=False)


if __name__ == "__main__":
    main()
