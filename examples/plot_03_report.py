"""
A report to send to a colleague
===============================

A filled table comes with a report, one HTML file that needs no network. Everything it
says is there as data, too.
"""

# %%
# Wines, of which a third have a label.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from transduce import fill

table, kind = load_wine(return_X_y=True, as_frame=True)
names = np.array(["Barolo", "Grignolino", "Barbera"], dtype=object)[kind]
known = np.random.default_rng(0).permutation(178) < 60
table["wine"] = np.where(known, names, None)
result = fill(table, "wine", random_state=0)

report = Path(tempfile.mkdtemp()) / "wine.html"
result.report(report)
print(f"{report.name}: {report.stat().st_size / 1000:.0f} kB")

# %%
# The same numbers and sentences as a dictionary:

summary = result.summary()
print(list(summary)[:12])
print(result.notes)

# %%
# How often was each class predicted, and how sure was it?

frame = result.frame[~known]
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for name in sorted(set(names)):
    sure = frame.loc[frame["wine_filled"] == name, "wine_probability"].astype(float)
    ax.hist(sure, bins=np.linspace(0.3, 1, 15), alpha=0.7, label=f"{name}, {len(sure)}")
ax.set(xlabel="probability of the predicted class", ylabel="rows")
ax.legend(frameon=False)
plt.show()
