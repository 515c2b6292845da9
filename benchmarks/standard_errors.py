"""How far the models' own standard errors and probabilities can be trusted, at the settings that the docs recommend.

    TRANSDUCE_DATA=folder python benchmarks/standard_errors.py [--draws 2] [--labels 30 100]

Draws of the race (`race_draws.py`). Numbers: the share of truths inside the Gaussian process's 90 % bands, lowest,
median and highest over the tables. Classes: of the answers of Bayesian transduction, and of the blend, with a
probability of at least 0.95, the share that is right, and the expected calibration error in ten bins.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from paper_sets import dataset_names
from race_draws import LEFT_OUT, deal, enters
from race_methods import with_holes
from scipy.stats import norm
from threadpoolctl import threadpool_limits

from transduce import BayesianTransducer, TransductiveBlend, TransductiveGPRegressor


def bands(X, y, n_labels, seed):
    """Return the share of truths inside the 90 % bands."""
    model = TransductiveGPRegressor(matching=0, prior=(0.1, 2), random_state=seed).fit(
        X, with_holes(X, y[:n_labels])
    )
    answer = model.answer_
    return np.mean(np.abs(answer.values - y[n_labels:]) <= norm.ppf(0.95) * answer.standard_errors)


def calibration(model, X, y, n_labels):
    """Return the share of confident answers, how many of these are right, and the expected calibration error."""
    answer = model.fit(X, with_holes(X, y[:n_labels])).answer_
    p, right = answer.probabilities.max(axis=1), answer.values == y[n_labels:]
    bins = np.minimum((10 * p).astype(int), 9)
    error = sum(abs(p[bins == k].sum() - right[bins == k].sum()) for k in range(10)) / len(p)
    sure = p >= 0.95
    return sure.sum(), right[sure].sum(), error


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--labels", nargs="+", default=["30", "100"])
    options = parser.parse_args()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for labels in options.labels:
            shares, counts = [], []
            for name in dataset_names("regression"):
                if name not in LEFT_OUT and enters(name, labels):
                    found = [
                        bands(*deal("regression", name, labels, draw))
                        for draw in range(options.draws)
                    ]
                    shares.append(np.mean(found))
            print(
                f"{labels} labels, Gaussian process: 90 % bands hold {min(shares):.2f} to {max(shares):.2f} of the "
                f"truths, median {np.median(shares):.2f}, {len(shares)} tables",
                flush=True,
            )
            for name in dataset_names("classification"):
                if name in LEFT_OUT or not enters(name, labels):
                    continue
                for draw in range(options.draws):
                    X, y, n_labels, seed = deal("classification", name, labels, draw)
                    models = {
                        "Bayesian transduction": BayesianTransducer(random_state=seed),
                        "Bayesian transduction, softness by loo": BayesianTransducer(
                            softness="loo", random_state=seed
                        ),
                        "blend": TransductiveBlend(task="classification", random_state=seed),
                    }
                    for word, model in models.items():
                        try:
                            counts.append((word, *calibration(model, X, y, n_labels)))
                        except (
                            ValueError
                        ) as error:  # equal rows with different labels have no separator
                            print(f"{word} left out {name}: {error}", flush=True)
            table = pd.DataFrame(counts, columns=["method", "confident", "right", "error"]).groupby(
                "method"
            )
            sums, errors = table[["confident", "right"]].sum(), table["error"].mean()
            for word in sums.index:
                share = sums["right"][word] / sums["confident"][word]
                print(
                    f"{labels} labels, {word}: of answers with p >= 0.95 {share:.3f} are right, expected calibration "
                    f"error {errors[word]:.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
