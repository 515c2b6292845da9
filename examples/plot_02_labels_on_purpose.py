"""
Labels that were chosen on purpose
==================================

The expensive houses were appraised first. Labelled and unlabelled rows then differ, and
no method can know by itself how the others behave. A few rows drawn at random mend it:
with them the guarantee is exact, however the other labels were chosen.
"""

# %%
# The 120 largest houses have a price, and nobody told the program that size decided.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from transduce import fill
from transduce.conformal import Drawn

rng = np.random.default_rng(3)
size = rng.gamma(6.0, 20.0, 600)
truth = 2.0 * size + rng.normal(0.0, 6.0 + 0.25 * size, 600)
largest_first = np.argsort(-size)
price = np.full(600, np.nan)
price[largest_first[:120]] = truth[largest_first[:120]]
houses = pd.DataFrame({"size": size, "price": price})

plain = fill(houses, "price", method="ridge", random_state=0)
print(plain.guarantee.headline)
print(plain.guarantee.verdict)

# %%
# Now 30 of the others are drawn at random and appraised. `Drawn` names the column that
# marks them: their labels are used for calibration, all others for the fit.

drawn = rng.choice(largest_first[120:], 30, replace=False)
houses["drawn"] = np.isin(np.arange(600), drawn)
houses.loc[drawn, "price"] = truth[drawn]
result = fill(houses, "price", labels=Drawn("drawn"), method="ridge", random_state=0)
print(result.guarantee)

# %%
# The intervals of the rows that are left, with the truth.

rows = result.answer.rows
low, high = result.answer.regions.hull().T
inside = result.answer.regions.contains(truth[rows])
figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
ax.vlines(size[rows], low, high, color="#a9bccb", linewidth=1)
ax.plot(
    size[rows],
    truth[rows],
    ".",
    color="0.35",
    markersize=4,
    label=f"truth, {inside.mean():.0%} inside",
)
purpose = largest_first[:120]
ax.plot(size[purpose], truth[purpose], ".", color="#b45f06", label="chosen on purpose")
ax.plot(size[drawn], truth[drawn], "o", color="#0b5394", label="drawn at random")
ax.set(xlabel="size", ylabel="price")
ax.legend(frameon=False)
plt.show()
