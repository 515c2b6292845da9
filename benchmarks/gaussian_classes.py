"""Classes by the Gaussian process: priors, and what matching the shares of the classes does.

    python benchmarks/gaussian_classes.py [--draws 3]

20 or 60 labels of up to 220 rows of breast cancer, wine, iris and two moons, features standardised: log-loss and share
of errors at the other rows, beside scikit-learn's Gaussian process classifier with one width.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_moons
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from transduce import TransductiveGPClassifier

N_ROWS = 220
N_LABELS = (20, 60)
SETTINGS = {
    "without matching": {"matching": 0},
    "matching 1, slack 0.001": {"matching": 1.0, "slack": 0.001},
    "the noise has the relevances' prior": {"matching": 0, "noise_prior": (0.1, 2.0)},
    "the paper's prior": {"matching": 0, "prior": (1.0, 0.5), "noise_prior": (1.0, 0.5)},
}
OTHER = "scikit-learn"


def read_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return features and classes of every set."""
    return {
        "breast cancer": load_breast_cancer(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "iris": load_iris(return_X_y=True),
        "moons": make_moons(300, noise=0.2, random_state=0),
    }


def run_draw(X: np.ndarray, classes: np.ndarray, n_labels: int) -> dict[str, tuple[float, float]]:
    """Return log-loss and share of errors of every setting; the first rows are labelled."""
    labels = classes.astype(object)
    labels[n_labels:] = None
    truth = classes[n_labels:]

    def scores(probabilities: np.ndarray) -> tuple[float, float]:
        clipped = np.clip(probabilities, 1e-9, 1.0)
        loss = log_loss(truth, clipped, labels=np.unique(classes))
        wrong = np.unique(classes)[probabilities.argmax(axis=1)] != truth
        return loss, float(wrong.mean())

    results = {}
    for name, settings in SETTINGS.items():
        model = TransductiveGPClassifier(random_state=0, n_restarts=1, **settings)
        results[name] = scores(model.fit(X, labels).answer_.probabilities)
    other = GaussianProcessClassifier(ConstantKernel() * RBF(), random_state=0)
    other.fit(X[:n_labels], classes[:n_labels])
    results[OTHER] = scores(other.predict_proba(X[n_labels:]))
    return results


def main() -> None:
    """Print the means over draws of each set, and of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of bounds
    lines = []
    for name, (X, classes) in read_sets().items():
        scaled = StandardScaler().fit_transform(X)
        for n_labels in N_LABELS:
            for draw in range(options.draws):
                rows = np.random.default_rng(draw).permutation(len(classes))[:N_ROWS]
                results = run_draw(scaled[rows], classes[rows], n_labels)
                for setting, (loss, errors) in results.items():
                    lines.append((name, n_labels, draw, setting, loss, errors))
    columns = ["set", "labels", "draw", "setting", "log-loss", "errors"]
    table = pd.DataFrame(lines, columns=columns)
    print(table.groupby(["set", "labels", "setting"])[["log-loss", "errors"]].mean().round(3))
    print(table.groupby("setting")[["log-loss", "errors"]].mean().round(3))
    losses = table.pivot(index=["set", "labels", "draw"], columns="setting", values="log-loss")
    gain = losses["without matching"] - losses["matching 1, slack 0.001"]
    print(f"matching lowers the log-loss in {(gain > 0).sum()} of {len(gain)} draws")


if __name__ == "__main__":
    main()
