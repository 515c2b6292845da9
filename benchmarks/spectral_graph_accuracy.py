"""The spectral graph transducer on real data: against the peers with ten labels a class, and by its settings.

    TRANSDUCE_DATA=folder python benchmarks/spectral_graph_accuracy.py [--draws 20] [--out FOLDER]

Scikit-learn's digits and, if the folder is given, optdigits, USPS and Isolet.

1. *Peers*: accuracy with ten labels a class over many draws of the labels, paired: scikit-learn's LabelSpreading and
   LabelPropagation (kernel="knn", ten neighbours, raw features), Laplace and Poisson learning of GraphLearning on our
   graph. A difference is "clear" if a Wilcoxon signed-rank test over the draws says so at 0.01.
2. *Settings*: accuracy with ten labels a class, mean of the first draws, for several label weights and numbers of
   eigenvectors.

Break-even points, the number of neighbours, and co-training: `papers/joachims2003.py`.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from paper_sets import data_folder
from race_draws import read_table
from scipy.stats import wilcoxon
from spectral_graph import PEERS, answer, few_labels

from transduce import SpectralGraphTransducer
from transduce.methods.spectral_graph import graph_spectrum, neighbor_graph


def tables():
    """Yield name, features and classes 0, 1, ... of every set at hand."""
    yield "digits", *read_table("bundled-digits")
    if data_folder() is not None:
        for name in ("optdigits", "usps", "isolet"):
            yield name, *read_table(name)


def compare_peers(n_draws):
    lines = []
    for name, X, truth in tables():
        graph = neighbor_graph(X, random_state=0)
        model, shares = None, {method: [] for method in ("transduce", *PEERS)}
        for draw in range(n_draws):
            y = few_labels(truth, np.random.default_rng(draw))
            unlabelled = np.isnan(y)
            for method, list_ in shares.items():
                if method == "transduce":
                    fresh = SpectralGraphTransducer(metric="precomputed", random_state=0)
                    model = fresh.fit(graph, y) if model is None else model.relabel(y)
                    answers = model.transduction_
                else:
                    answers = answer(method, X, y, graph)
                list_.append(np.mean(answers[unlabelled] == truth[unlabelled]))
        ours = np.array(shares["transduce"])
        for method, list_ in shares.items():
            gain = ours - np.array(list_)
            p = wilcoxon(gain).pvalue if np.any(gain) else 1.0
            verdict = "" if method == "transduce" else "no clear difference"
            if p < 0.01:
                verdict = "ours better" if np.median(gain) > 0 else "ours worse"
            lines.append(
                {
                    "data": name,
                    "method": method,
                    "accuracy %": 100 * np.mean(list_),
                    "sd": 100 * np.std(list_, ddof=1),
                    "ours less this": 100 * gain.mean(),
                    "p": p,
                    "verdict": verdict,
                }
            )
        print(
            pd.DataFrame(lines[-5:]).to_string(index=False, float_format=lambda x: f"{x:.3g}"),
            flush=True,
        )
    return pd.DataFrame(lines)


def compare_settings(n_draws):
    lines = []
    for name, X, truth in tables():
        spectrum = graph_spectrum(neighbor_graph(X, random_state=0), random_state=0)
        draws = [few_labels(truth, np.random.default_rng(draw)) for draw in range(min(n_draws, 10))]
        choices = [("label_weight", c) for c in (320.0, 3200.0, "auto", 32_000.0, 320_000.0)]
        for setting, value in [*choices, *(("n_components", d) for d in (20, 40, 60, 80))]:
            model = SpectralGraphTransducer(metric="precomputed", **{setting: value})
            shares = [
                np.mean(model.fit(spectrum, y).transduction_[np.isnan(y)] == truth[np.isnan(y)])
                for y in draws
            ]
            lines.append(
                {
                    "data": name,
                    "setting": setting,
                    "value": value,
                    "accuracy %": 100 * np.mean(shares),
                }
            )
    table = pd.DataFrame(lines).pivot_table(
        index=["setting", "value"], columns="data", values="accuracy %", sort=False
    )
    return table.reset_index()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20, help="draws of the labels")
    parser.add_argument("--out", type=Path, help="folder for the tables as CSV")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    try:
        results = {
            "peers": compare_peers(options.draws),
            "settings": compare_settings(options.draws),
        }
    except FileNotFoundError as error:
        sys.exit(str(error))
    for name, table in results.items():
        print(
            f"\n{name}\n{table.to_string(index=False, float_format=lambda x: f'{x:.3g}')}",
            flush=True,
        )
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            table.to_csv(options.out / f"spectral_graph_{name}.csv", index=False)


if __name__ == "__main__":
    main()
