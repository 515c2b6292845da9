"""
The vote of every separator
===========================

There are a dozen labels in the plane. Every separator that gets them right has a vote at the other rows. A billiard
ball that bounces in the space of these separators takes the vote. Where the separators agree, the answer is sure;
where they do not, it is unsure.
"""

# %%
# Left: no label may be wrong, so the vote changes from one sure answer to the other along a ragged edge. Right: labels
# may be wrong, and far from all labels nothing is known.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import load_breast_cancer, make_moons

from transduce import BayesianTransducer
from transduce.display import RejectionCurveDisplay
from transduce.metrics import area_under_rejection_curve

X, truth = make_moons(120, noise=0.2, random_state=3)
shown = np.random.default_rng(0).permutation(120)[:14]
y = np.full(120, np.nan)
y[shown] = truth[shown]
figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained", sharey=True)
grid = np.stack(
    np.meshgrid(np.linspace(-1.6, 2.6, 90), np.linspace(-1.1, 1.6, 60)), axis=-1
)
for ax, softness in zip(axes, (0.0, 0.3), strict=True):
    model = BayesianTransducer(width=0.8, softness=softness, random_state=0).fit(X, y)
    share = model.predict_proba(grid.reshape(-1, 2))[:, 1].reshape(60, 90)
    shade = ax.contourf(
        grid[..., 0],
        grid[..., 1],
        share,
        levels=np.linspace(0, 1, 11),
        cmap="RdBu",
        alpha=0.75,
    )
    ax.scatter(*X.T, c="white", s=12, edgecolors="0.4", linewidths=0.5)
    ax.scatter(
        *X[shown].T,
        c=y[shown],
        cmap="RdBu",
        s=60,
        edgecolors="black",
        vmin=-0.3,
        vmax=1.3,
    )
    ax.set_title(
        f"softness {softness:g}: {np.mean(model.answer_.values == truth[np.isnan(y)]):.0%} right"
    )
figure.colorbar(shade, ax=axes, label="share of the vote for class 1")
plt.show()

# %%
# Real data: 100 labels and 469 unlabelled rows. The more of the least sure answers are rejected, the fewer mistakes
# remain. The probabilities are, if anything, too cautious.

cancer = load_breast_cancer()
shown = np.random.default_rng(1).permutation(569)[:100]
y = np.full(569, np.nan)
y[shown] = cancer.target[shown]
model = BayesianTransducer(softness="cv", random_state=0).fit(cancer.data, y)
answer, hidden = model.answer_, cancer.target[np.isnan(y)]
print(answer)
area = area_under_rejection_curve(hidden, answer.values, answer.confidence)
print(
    f"error {np.mean(answer.values != hidden):.1%}, mean error over all rejection rates {area:.2%}"
)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
RejectionCurveDisplay.from_answer(answer, hidden, ax=left)
CalibrationDisplay.from_predictions(
    hidden, answer.probabilities[:, 1], n_bins=6, name="softness by cv", ax=right
)
right.set(xlabel="stated probability", ylabel="observed share")
plt.show()
