"""Bayesian transduction on thyroid and heart, as in Graepel, Herbrich and Obermayer (1999).

    TRANSDUCE_DATA=folder python benchmarks/bayesian_accuracy.py [--splits 100] [--figure FILE]

Random 60:40 splits, features standardised, kernel width 3 (thyroid) and 10 (heart) as in the paper. Prints the mean
error and the mean area under the rejection curve, in per cent, of Bayesian transduction with softness 0 and of the
hard-margin support vector machine with its margin as confidence; and of softness chosen by cross-validation, with
log-loss and expected calibration error (ten bins of equal width). ``--figure`` draws rejection curves and reliability.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.metrics import log_loss
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from transduce import BayesianTransducer, area_under_rejection_curve

WIDTHS = {"thyroid": 3.0, "heart": 10.0}


def run_split(name, split, folder):
    """Return, for each method, answers, confidences and probabilities of the second class at the asked rows."""
    data = np.load(folder / f"ida_{name}.npz")
    X, y = data["x"], (data["t"] > 0).astype(int)
    asked = np.random.default_rng(split).permutation(len(y)) >= int(0.6 * len(y))
    results = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the budget of bounces may end a vote; it shows in the numbers
        for method, softness in (("softness 0", 0.0), ("softness by cv", "cv")):
            model = BayesianTransducer(width=WIDTHS[name], softness=softness, random_state=0)
            answer = model.fit(X, np.where(asked, np.nan, y)).answer_
            results[method] = (answer.values.astype(int), answer.confidence, answer.probabilities[:, 1])
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        svm = SVC(C=1e10, gamma=0.5 / WIDTHS[name] ** 2).fit(Z[~asked], y[~asked])
        margin = svm.decision_function(Z[asked])
        results["hard-margin SVM"] = ((margin > 0).astype(int), np.abs(margin), None)
    return y[asked], results


def calibration_error(truth, shares, n_bins=10):
    """Return the mean distance of predicted and observed shares over bins, weighted by their size."""
    bins = np.minimum((shares * n_bins).astype(int), n_bins - 1)
    count = np.maximum(np.bincount(bins, minlength=n_bins), 1)
    gap = np.bincount(bins, weights=shares - truth, minlength=n_bins) / count
    return float(np.sum(np.abs(gap) * np.bincount(bins, minlength=n_bins)) / len(truth))


def summarise(name, splits):
    lines = []
    for method in splits[0][1]:
        errors = [100 * np.mean(truth != found[method][0]) for truth, found in splits]
        areas = [100 * area_under_rejection_curve(truth, *found[method][:2]) for truth, found in splits]
        line = {"data": name, "method": method, "error %": np.mean(errors), "sd": np.std(errors)}
        line["area %"] = np.mean(areas)
        if splits[0][1][method][2] is not None:
            truth = np.concatenate([truth for truth, _ in splits])
            shares = np.concatenate([found[method][2] for _, found in splits])
            line["log-loss"] = log_loss(truth, np.clip(shares, 1e-3, 1 - 1e-3))
            line["calibration error %"] = 100 * calibration_error(truth, shares)
        lines.append(line)
    return lines


def draw(collected, path):
    """Draw mean rejection curves of the splits, and reliability of the pooled probabilities."""
    import matplotlib.pyplot as plt
    from sklearn.calibration import CalibrationDisplay

    figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
    shares = np.linspace(0, 0.8, 81)
    colors = {"softness 0": "#1b6ca8", "softness by cv": "#3f8f3f", "hard-margin SVM": "#c8371e"}
    for ax, (name, splits) in zip(axes, collected.items(), strict=False):
        for method, color in colors.items():
            curves = []
            for truth, found in splits:
                answers, sure, _ = found[method]
                wrong = (answers != truth)[np.argsort(-sure, kind="stable")]
                kept = np.maximum(1, np.round((1 - shares) * len(wrong)).astype(int))
                curves.append(np.cumsum(wrong)[kept - 1] / kept)
            ax.plot(100 * shares, 100 * np.mean(curves, axis=0), color=color, label=method)
        ax.set(title=name, xlabel="rejected, %", ylabel="error among the others, %", ylim=(0, None))
        ax.legend(frameon=False)
    for name, marker in (("thyroid", "o"), ("heart", "s")):
        truth = np.concatenate([truth for truth, _ in collected[name]])
        predicted = np.concatenate([found["softness by cv"][2] for _, found in collected[name]])
        CalibrationDisplay.from_predictions(truth, predicted, n_bins=10, name=name, ax=axes[2], marker=marker)
    axes[2].set(title="softness by cv", xlabel="probability said", ylabel="share observed")
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--figure", type=Path, help="where to draw")
    options = parser.parse_args()
    folder = Path(os.environ.get("TRANSDUCE_DATA", "")) / "classification"
    if not folder.is_dir():
        sys.exit("Set TRANSDUCE_DATA to the folder that holds classification/ida_*.npz.")
    collected = {}
    for name in WIDTHS:
        run = Parallel(n_jobs=-1, return_as="generator")
        collected[name] = []
        for done in run(delayed(run_split)(name, split, folder) for split in range(options.splits)):
            collected[name].append(done)
            print(f"\r{name}: {len(collected[name])} splits", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    table = pd.DataFrame([line for name, splits in collected.items() for line in summarise(name, splits)])
    print(table.to_string(index=False, float_format=lambda x: f"{x:.2f}", na_rep="-"))
    if options.figure:
        draw(collected, options.figure)


if __name__ == "__main__":
    main()
