"""
Predictions that look like the labels seen
==========================================

A Gaussian process has a relevance for every feature. Its parameters are chosen so that the labels are likely. If
cross-validation finds that it helps, they also give the predictions at the unlabelled rows the mean and spread of the
labels that were seen.
"""

# %%
# A curve with a quick part and a slow one, 40 labels and 60 unlabelled rows: the band is wide where labels are few.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from transduce import TransductiveGPRegressor
from transduce.display import BandDisplay, RelevanceDisplay
from transduce.methods.spectral_graph import neighbor_graph

rng = np.random.default_rng(4)
x = np.sort(rng.uniform(0, 10, size=100))
curve = np.sin(x**1.6 / 3) + 0.15 * rng.normal(size=100)
unlabelled = rng.permutation(100)[:60]
y = curve.copy()
y[unlabelled] = np.nan
model = TransductiveGPRegressor(random_state=0).fit(x[:, None], y)
BandDisplay.from_estimator(model, x[:, None])
plt.show()

# %%
# Real data: 442 patients, 80 of them labelled. Which features matter, and do the predictions look like the labels?
# Without matching, the noise and the kernel decide the spread of the predictions; matching pulls it to that of the
# labels. Cross-validation says whether that helps. With so few labels the prior matters more: the paper's, which is
# the default, favours that every feature is relevant; the other one lets relevances vanish.

data = load_diabetes(as_frame=True)
features, truth = data.data, data.target
y = truth.where(np.random.default_rng(0).permutation(442) < 80)
models = {
    "the paper's prior": TransductiveGPRegressor(random_state=0),
    "another prior": TransductiveGPRegressor(prior=(0.1, 2.0), random_state=0),
}
hidden = y.isna()
for name, model in models.items():
    model.fit(features, y)
    error = (
        np.sqrt(np.mean((model.answer_.values - truth[hidden]) ** 2))
        / truth[hidden].std()
    )
    print(f"{name}: error {error:.3f}; {model.answer_.diagnostics['choice']}")

figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 3.8), layout="constrained")
RelevanceDisplay.from_estimator(models["another prior"], ax=left)
moments = models["another prior"].moments_.iloc[::-1]
right.errorbar(
    moments["mean"],
    moments.index,
    xerr=moments["standard deviation"],
    fmt="o",
    capsize=4,
)
right.set_xlabel("label: mean and one standard deviation either way")
left.set_title("Relevance of the features")
right.set_title("Moments before and after matching")
plt.show()

# %%
# A kernel may know the unlabelled rows itself, such as that of a graph of neighbours, and moments are matched on top of
# it. On a spiral, where the label is the way along it, 15 of 300 labels are enough.

rng = np.random.default_rng(0)
way = np.sqrt(rng.uniform(3, 14**2, 300))
spiral = np.column_stack([way * np.cos(way), way * np.sin(way)]) + 0.2 * rng.normal(
    size=(300, 2)
)
y = np.where(np.arange(300) < 15, way + 0.5 * rng.normal(size=300), np.nan)
A = neighbor_graph(spiral, n_neighbors=8, metric="euclidean").toarray()
laplacian = np.diag(A.sum(axis=1)) - A
K = np.linalg.inv(laplacian + 0.001 * np.eye(300))
by_distance = TransductiveGPRegressor(random_state=0).fit(spiral, y)
by_graph = TransductiveGPRegressor(kernel="precomputed", random_state=0).fit(K, y)
for name, model in {"rbf": by_distance, "graph": by_graph}.items():
    error = np.sqrt(np.mean((model.answer_.values - way[15:]) ** 2))
    print(f"{name}: error {error:.2f}; {model.answer_.diagnostics['choice']}")
