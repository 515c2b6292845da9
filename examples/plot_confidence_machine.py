"""
Exact regions from 150 labels
=============================

The diabetes data have 442 patients. We keep the disease progression of 150 of them and hide the rest. The confidence
machine gives a value for every other patient, and a region that contains the truth with the probability we ask for.
The only assumption is that the 150 were picked at random, and no label is set aside for calibration. Since the truth
is known here, we can check the guarantee.
"""

# %%
# One split: fit on all rows, labels missing where the answer is wanted.

import argparse
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

from transduce import RidgeConfidenceMachine
from transduce.display import RegionDisplay

LEVELS = (0.8, 0.9, 0.95, 0.99)
X, truth = load_diabetes(return_X_y=True)


def hide(seed, n_labels=150):
    """Return labels that are missing except at 150 random rows."""
    labels = np.full(len(truth), np.nan)
    kept = np.random.default_rng(seed).choice(len(truth), n_labels, replace=False)
    labels[kept] = truth[kept]
    return labels


labels = hide(seed=0)
unlabelled = np.isnan(labels)
machine = RidgeConfidenceMachine(confidence=0.9).fit(X, labels)
print(machine.answer_)

# %%
# Guaranteed and observed coverage. The regions of one split share their 150 labels, so a single split may lie a few
# points to either side; the guarantee is about the mean over splits.


def score(seed):
    """Return the observed coverage and the mean width at each level, for one random choice of the 150."""
    labels = hide(seed)
    rows = np.isnan(labels)
    machine = RidgeConfidenceMachine().fit(X, labels)
    regions = [machine.predict_region(X[rows], confidence=level) for level in LEVELS]
    return [(r.contains(truth[rows]).mean(), r.measure().mean()) for r in regions]


n_splits = 50
scores = []
for seed in range(n_splits):
    scores.append(score(seed))
    if sys.stderr.isatty():
        print(
            f"\rsplit {seed + 1} of {n_splits}",
            end="\n" * (seed + 1 == n_splits),
            file=sys.stderr,
        )
scores = np.array(scores)
table = pd.DataFrame(
    {
        "guaranteed": [f"{100 * level:g} %" for level in LEVELS],
        "this split": [f"{100 * share:.1f} %" for share in scores[0, :, 0]],
        f"mean of {n_splits} splits": [
            f"{100 * share:.1f} %" for share in scores[:, :, 0].mean(axis=0)
        ],
        "mean width": [f"{width:.0f}" for width in scores[:, :, 1].mean(axis=0)],
    }
)
print(
    f"\nCoverage at the {unlabelled.sum()} patients whose label was hidden ({(~unlabelled).sum()} labels):\n"
)
print(table.to_string(index=False))

# %%
# The regions of the first split, and guaranteed against observed coverage of all splits.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 4.2), layout="constrained", width_ratios=[2, 1]
)
RegionDisplay.from_answer(machine.answer_, y_true=truth[unlabelled], ax=left)
left.set(title="90 % regions of the unlabelled rows", ylabel="disease progression")
right.axline((0.9, 0.9), slope=1, color="lightgrey", label="as guaranteed")
right.plot(LEVELS, scores[:, :, 0].T, "_", ms=9, alpha=0.35, color="tab:blue")
right.plot(
    LEVELS, scores[:, :, 0].mean(axis=0), "o", color="tab:blue", label="observed"
)
right.set(
    xlabel="guaranteed coverage",
    ylabel="observed coverage",
    title=f"Coverage of {n_splits} splits",
)
right.legend(loc="upper left")

# %%
# As a script with ``--out FOLDER``, this example writes the table and the picture there.

if __name__ == "__main__" and "sphinx_gallery" not in sys.modules:
    parser = argparse.ArgumentParser(
        description="The confidence machine on the diabetes data."
    )
    parser.add_argument("--out", type=Path, default=Path("demo-output"))
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(folder / "coverage.csv", index=False)
    figure.savefig(folder / "regions.png", dpi=150)
    print(f"\nWritten to {folder.resolve()}: coverage.csv, regions.png")
