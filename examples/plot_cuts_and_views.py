"""
Which cut of a graph, and a graph of several views
===================================================

The labelling that cuts the fewest connections of a neighbour graph is seldom the one that is meant: it cuts off the
few labelled rows. The average over all connections that could have been cut says what is meant. And where rows are
described in more than one way, each description adds its connections.
"""

# %%
# This is the example of the paper's figure 1: two clusters of ten rows, one label in each. The minimum cut (Blum and
# Chawla 2001) separates one labelled row from all others, since that takes the fewest connections.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from transduce import SpectralGraphTransducer
from transduce.methods.spectral_graph import (
    average_cut,
    cut_value,
    minimum_cut,
    neighbor_margins,
)

A = np.zeros((20, 20))
A[:10, :10] = A[10:, 10:] = 0.3
for i in range(10):  # two weaker connections of each row with the other cluster
    A[i, 10 + i] = A[i, 10 + (i + 1) % 10] = 0.2
A = np.maximum(A, A.T)
np.fill_diagonal(A, 0.0)
y = np.full(20, np.nan)
y[[0, 10]] = [1, 0]

least = minimum_cut(A, y).labels
spectral = SpectralGraphTransducer(metric="precomputed").fit(A, y).transduction_
for name, labels in (("minimum cut", least), ("spectral graph", spectral)):
    print(
        f"{name}: {np.sum(labels == 1):.0f} and {np.sum(labels == 0):.0f} rows, "
        f"cut {cut_value(A, labels):.1f}, average {average_cut(A, labels):.3f}"
    )

# %%
# Drawn with the rows of each cluster around a circle; labelled rows are larger.
angles = 2 * np.pi * np.arange(10) / 10
places = np.concatenate([np.c_[np.cos(angles), np.sin(angles)]] * 2)
places[10:, 0] = 3.2 - places[10:, 0]
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for ax, name, labels in zip(
    axes, ("minimum cut", "spectral graph"), (least, spectral), strict=True
):
    for i, j in zip(*np.triu(A).nonzero(), strict=True):
        ax.plot(*places[[i, j]].T, color="0.8", linewidth=3 * A[i, j], zorder=0)
    ax.scatter(*places.T, c=labels, s=np.where(np.isnan(y), 40, 160), cmap="coolwarm")
    ax.set_title(name)
    ax.set_axis_off()
plt.show()

# %%
# Co-training: the left and the right half of handwritten digits are two descriptions of them. Each row is tied to its
# neighbours in both. Here one could as well join the halves, which is better still; views are for descriptions that no
# one metric compares, such as words and links.
X, truth = load_digits(return_X_y=True)
left = [pixel for pixel in range(64) if pixel % 8 < 4]
right = [pixel for pixel in range(64) if pixel % 8 >= 4]
rng = np.random.default_rng(2)
y = np.full(len(truth), np.nan)
for digit in range(10):
    row = rng.choice(np.flatnonzero(truth == digit))
    y[row] = digit
unlabelled = np.isnan(y)
descriptions = {
    "left": [left],
    "right": [right],
    "both": [left, right],
    "joined": [left + right],
}
for name, views in descriptions.items():
    model = SpectralGraphTransducer(views=views, random_state=0).fit(X, y)
    share = np.mean(model.transduction_[unlabelled] == truth[unlabelled])
    print(f"{name}: {share:.0%} right")

# %%
# How far neighbours agree with a labelling needs no truth: the mean of 1 less the margin bounds the leave-one-out error
# of the nearest-neighbour rule.
agreement = neighbor_margins(X, model.transduction_)
print(
    f"error bound {agreement.error_bound:.3f}, error {agreement.leave_one_out_error:.3f}"
)
