"""
Several methods, one answer
===========================

Forty labels hardly tell which of four methods is best. They need not tell: the mean of the four answers, weighted by
how well each method did at labels that were hidden from it, is among the best on every table. Each single method
falls behind on one of them.
"""

# %%
# Three tables with 40 labels each. Left: the weights, pulled towards equal weights (dotted), since forty labels say
# little.
# Right: the root mean squared error at the unlabelled rows, over that of the labels' mean.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes, make_friedman1, make_regression

from transduce import TransductiveBlend
from transduce.model_selection import choose_method

tables = {
    "diabetes": load_diabetes(return_X_y=True),
    "friedman": make_friedman1(300, noise=1.0, random_state=0),
    "linear": make_regression(300, n_features=10, noise=40.0, random_state=0),
}


def error(values, truth, unlabelled):
    """Return the root mean squared error at the unlabelled rows, over that of the labels' mean."""
    base = np.mean((truth[unlabelled] - truth[~unlabelled].mean()) ** 2)
    return np.sqrt(np.mean((values - truth[unlabelled]) ** 2) / base)


weights, errors = {}, {}
for name, (X, truth) in tables.items():
    unlabelled = np.random.default_rng(1).permutation(len(truth)) >= 40
    model = TransductiveBlend(random_state=0).fit(
        X, np.where(unlabelled, np.nan, truth)
    )
    weights[name] = model.weights_
    answers = {
        member: fitted.answer_.values
        if hasattr(fitted, "answer_")
        else fitted.predict(X[unlabelled])
        for member, fitted in model.estimators_.items()
    }
    answers["blend"] = model.answer_.values
    errors[name] = {
        member: error(values, truth, unlabelled) for member, values in answers.items()
    }

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
colours = {"diabetes": "#0b5394", "friedman": "#b45f06", "linear": "#6a994e"}
for ax, numbers in ((left, pd.DataFrame(weights)), (right, pd.DataFrame(errors))):
    places = np.arange(len(numbers))
    for k, table in enumerate(numbers):
        ax.barh(
            places + 0.26 * (k - 1),
            numbers[table],
            height=0.24,
            color=colours[table],
            label=table,
        )
    ax.set_yticks(places, [member.replace("_", " ") for member in numbers.index])
    ax.invert_yaxis()
left.axvline(1 / 4, color="0.3", linestyle=":", linewidth=1.2)
left.set(xlabel="weight", title="weights of the members")
right.axhspan(3.5, 4.5, color="0.92", zorder=0)
right.set(
    xlabel="error / error of the labels' mean", title="error at the unlabelled rows"
)
left.legend(frameon=False)
plt.show()

# %%
# Which single method looks best on these labels? The table answers that, and says how sure it is.

X, truth = tables["friedman"]
y = np.where(np.random.default_rng(1).permutation(300) >= 40, np.nan, truth)
print(choose_method(X, y, random_state=0))
