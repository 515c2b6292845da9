"""
Your own model, with a guarantee
================================

Any regressor, classifier or pipeline of scikit-learn's kind can be the model behind
`fill`. Some labels are held out to calibrate it, so that the guarantee holds however bad
the model is; a better model has narrower intervals.
"""

# %%
# Four models for the same patients: one that knows nothing, one of one's own, the blend of
# `fill`, and both together.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor

from transduce import fill

table, truth = load_diabetes(return_X_y=True, as_frame=True)
hidden_rows = np.random.default_rng(0).permutation(442)[150:]
table["progression"] = truth
table.loc[hidden_rows, "progression"] = np.nan

own = HistGradientBoostingRegressor(max_iter=60, random_state=0)
models = {
    "the mean": DummyRegressor(),
    "boosted trees": own,
    "the blend": "auto",
    "blend and trees": ["auto", own],
}
widths = {}
inside = {}
for name, method in models.items():
    result = fill(
        table, "progression", method=method, guarantee="column", random_state=0
    )
    low, high = result.answer.regions.hull().T
    hidden = truth.to_numpy()[result.answer.rows]
    widths[name] = high - low
    inside[name] = np.mean((low <= hidden) & (hidden <= high))

# %%
# The widths tell the models apart. The guarantee, at least 90 % inside, is about the mean
# over many tables: a single one may lie below, and `result.guarantee.outside` bounds by how
# much.

figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
ax.boxplot(list(widths.values()), orientation="horizontal", showfliers=False)
labels = [f"{name}\n{inside[name]:.0%} inside" for name in widths]
ax.set_yticks(range(1, len(labels) + 1), labels)
ax.invert_yaxis()
ax.set(xlabel="width of the intervals at 90 %")
plt.show()
