"""Priors of the Gaussian process with few labels, without matching.

    TRANSDUCE_DATA=folder python benchmarks/gaussian_accuracy.py [--draws 4] [--jobs 1]

15 or 40 rows are labelled and all others are not: root mean squared error over the labels' standard deviation,
mean of the draws, on the 17 sets of Le, Smola, Gartner and Altun (2006) with more than 60 rows (heights left out) and
scikit-learn's diabetes; linear ridge regression beside it. The paper's own comparison: `papers/le2006.py`.
"""

from __future__ import annotations

import argparse
import sys
import warnings

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from paper_sets import CATALOGUE
from race_draws import read_table
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from transduce import TransductiveGPRegressor

PAPER = "Le 2006"
FEWEST_ROWS = 60
NAMES = [
    *(
        n
        for n, e in CATALOGUE.items()
        if PAPER in e.papers and e.n_rows > FEWEST_ROWS and n != "heights"
    ),
    "bundled-diabetes",
]
PRIORS = [(1.0, 0.5), (0.0, 0.0), (0.1, 0.5), (0.0, 2.0), (0.1, 2.0), (0.0, 5.0)]


def run_draw(name, n_labelled, seed):
    """Return the errors of every prior, and of linear ridge regression, in one draw of the labels."""
    X, y = read_table(name)
    y = (y - y.mean()) / y.std()
    unlabelled = np.random.default_rng(seed).permutation(len(y)) >= n_labelled
    labels = np.where(unlabelled, np.nan, y)
    errors = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for prior in PRIORS:
            model = TransductiveGPRegressor(matching=0, prior=prior, n_restarts=2, random_state=0)
            errors[str(prior)] = np.sqrt(
                np.mean((model.fit(X, labels).answer_.values - y[unlabelled]) ** 2)
            )
        ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 4, 30))).fit(
            X[~unlabelled], y[~unlabelled]
        )
        errors["linear ridge"] = np.sqrt(
            np.mean((ridge.predict(X[unlabelled]) - y[unlabelled]) ** 2)
        )
    return {"set": name, "labels": n_labelled, **errors}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=1, help="processes at work [1]")
    options = parser.parse_args()
    jobs = [
        (name, labels, seed)
        for name in NAMES
        for labels in (15, 40)
        for seed in range(options.draws)
    ]
    lines = []
    try:
        for done in Parallel(n_jobs=options.jobs, return_as="generator")(
            delayed(run_draw)(*j) for j in jobs
        ):
            lines.append(done)
            print(f"\r{len(lines)} of {len(jobs)} draws", end="", file=sys.stderr, flush=True)
    except FileNotFoundError as error:
        sys.exit(str(error))
    by_set = pd.DataFrame(lines).groupby(["labels", "set"]).mean()
    print("\nmean error\n" + by_set.groupby("labels").mean().round(3).to_string())
    print("\nmean rank\n" + by_set.rank(axis=1).groupby("labels").mean().round(2).to_string())


if __name__ == "__main__":
    main()
