"""
Fill the missing labels of a table
==================================

A table of houses, of which some have a price. One call predicts the others, with an
interval for each, and says what is guaranteed.
"""

# %%
# `load_houses` returns a table in which 250 of 400 prices are missing, and the
# prices that were hidden, so that we can look at the end.

import matplotlib.pyplot as plt
import numpy as np

from transduce import fill
from transduce.datasets import load_houses

houses, truth = load_houses()
print(houses.head())
print(f"{houses['price'].isna().sum()} of {len(houses)} prices are missing.")

# %%
# No price is negative: `minimum=0` says so, and needs no new fit. The new columns stand
# beside the old ones.

result = fill(houses, "price", random_state=0).with_options(minimum=0)
new = [name for name in result.frame.columns if name.startswith("price")]
print(result.frame.loc[houses["price"].isna(), new].head())

# %%
# What is guaranteed, for how many rows, and on what condition:

print(result.guarantee)

# %%
# Here the truth is known. Each bar is an interval; the rows are sorted by prediction. At
# 90 %, 25 of the 250 are outside on average over many tables; in a single table there are
# fewer or, as here, more. `guarantee="column"` bounds how many it can be.

rows = result.answer.rows
values = result.answer.values
low, high = result.answer.regions.hull().T
order = np.argsort(values)
place = np.arange(len(order))
hidden = np.asarray(truth)[rows][order]
outside = (hidden < low[order]) | (hidden > high[order])

figure, ax = plt.subplots(figsize=(9, 4.2), layout="constrained")
ax.vlines(place, low[order], high[order], color="#a9bccb", linewidth=1.5)
ax.plot(place, values[order], color="#0b5394", linewidth=1.5, label="prediction")
ax.plot(
    place[~outside], hidden[~outside], ".", color="0.35", markersize=4, label="truth"
)
ax.plot(
    place[outside],
    hidden[outside],
    "x",
    color="#b3261e",
    label=f"outside: {outside.sum()} of {len(order)}",
)
ax.set(xlabel="rows without a price, sorted", ylabel="price")
ax.legend(frameon=False)
plt.show()
