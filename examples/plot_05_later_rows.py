"""
Rows that come later
====================

A table was filled, and next month there are new rows. A saved fit answers them, with the
guarantee that then holds, and says whether they are like the rows it learnt from.
"""

# %%
# Half of the patients are here, and 120 of them have a label.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from transduce.app.filling import load, save

table, truth = load_diabetes(return_X_y=True, as_frame=True)
now, later = np.split(np.random.default_rng(0).permutation(442), 2)
here = table.iloc[now].reset_index(drop=True)
known = np.arange(len(now)) < 120
here["progression"] = np.where(known, truth.iloc[now], np.nan)
path = Path(tempfile.mkdtemp()) / "patients.transduce"
save(path, here, "progression", random_state=0)

# %%
# The file holds data and settings, no code: one from a stranger can be opened.

fitted = load(path)
coming = table.iloc[later].reset_index(drop=True)
answered = fitted.new_columns(coming)
print(answered.head())

# %%
# Are the new rows like the old ones? What holds for them?

compared = fitted.compare_later(coming)
print(fitted.guarantee_of_later(len(coming), compared=compared))

# %%
# Here the truth is known already.

values = answered["progression_filled"].astype(float)
low = answered["progression_lower"].astype(float)
high = answered["progression_upper"].astype(float)
hidden = truth.iloc[later].to_numpy()
inside = (low <= hidden) & (hidden <= high)
figure, ax = plt.subplots(figsize=(6.5, 5), layout="constrained")
ax.vlines(values, low, high, color="#a9bccb", linewidth=1)
ax.plot(
    values, hidden, ".", color="#0b5394", label=f"truth, {inside.mean():.0%} inside"
)
ax.axline((150, 150), slope=1, color="0.6", linewidth=1)
ax.set(xlabel="prediction", ylabel="progression")
ax.legend(frameon=False)
plt.show()
