"""
A few labels, spread over the graph of all rows
================================================

These are handwritten digits with ten labels, one for each digit. The neighbour graph of all rows and its eigenvectors
are computed once; each labelling is then answered in milliseconds.
"""

# %%
# With so few labelled rows the nearest one is a poor guide: most images do not look like the one that happens to have
# a label. But they look like other images of the same digit, and these form a chain to the labelled one.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from transduce import SpectralGraphTransducer
from transduce.display import GraphMapDisplay

X, truth = load_digits(return_X_y=True)
rng = np.random.default_rng(1)
labelled = np.array([rng.choice(np.flatnonzero(truth == digit)) for digit in range(10)])
y = np.full(len(truth), np.nan)
y[labelled] = truth[labelled]

model = SpectralGraphTransducer(random_state=0).fit(X, y)
nearest = KNeighborsClassifier(1, metric="cosine").fit(X[labelled], truth[labelled])
unlabelled = model.answer_.rows
print(
    f"right answers: graph {np.mean(model.transduction_[unlabelled] == truth[unlabelled]):.0%}, ",
    end="",
)
print(
    f"nearest labelled row {np.mean(nearest.predict(X[unlabelled]) == truth[unlabelled]):.0%}"
)

# %%
# Every row along the two leading eigenvectors of the graph, with the class it was given; labelled rows have a rim.
GraphMapDisplay.from_estimator(model)
plt.show()

# %%
# Add one label where the answer is least sure. The new answer is there at once: `relabel` needs no new graph.
margins = np.sort(model.answer_.scores, axis=1)
unsure = unlabelled[np.argmin(margins[:, -1] - margins[:, -2])]
y[unsure] = truth[unsure]
model.relabel(y)
print(
    f"with one more label {np.mean(model.transduction_[unlabelled] == truth[unlabelled]):.0%}"
)
