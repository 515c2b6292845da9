"""
Your own model, with a guarantee
================================

Any regressor, classifier or pipeline of scikit-learn's kind can be the model behind
`fill`. Labels that are held out calibrate it, so that the guarantee holds however bad the
model is; a better model has narrower intervals.
"""

# %%
# Three models for the same houses: one that knows nothing, one of one's own, and the
# blend.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor

from transduce import fill
from transduce.datasets import load_houses

houses, truth = load_houses()
models = {
    "the mean": DummyRegressor(),
    "boosted trees": HistGradientBoostingRegressor(max_iter=100, random_state=0),
    "the blend of fill": "auto",
    "blend and trees": [
        "auto",
        HistGradientBoostingRegressor(max_iter=100, random_state=0),
    ],
}
widths, inside = {}, {}
for name, method in models.items():
    filled = fill(houses, "price", method=method, guarantee="column", random_state=1)
    result = filled.with_options(minimum=0)
    low, high = result.answer.regions.hull().T
    hidden = np.asarray(truth)[result.answer.rows]
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
