"""
How many true values are outside their intervals?
=================================================

A column with missing values is filled by transductive ridge regression. The number of true values outside their
intervals has an exact distribution, and we know it before anyone knows the truth.
"""

# %%
# 150 of 442 patients have a label. Some of these labels, the calibration labels, are held out, and the estimator is
# fitted once. Its errors at the calibration rows say how large its errors at the unlabelled rows are.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import RandomForestClassifier

from transduce import ConformalTransducer, RidgeConfidenceMachine, TransductiveRidge
from transduce.display import MiscoverageDisplay, RegionDisplay

X, truth = load_diabetes(return_X_y=True, as_frame=True)
unlabelled = np.sort(np.random.default_rng(0).permutation(442)[150:])
y = truth.copy()
y.iloc[unlabelled] = np.nan
model = ConformalTransducer(TransductiveRidge(), random_state=0).fit(X, y)
print(model.guarantee_)

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.2), layout="constrained")
RegionDisplay.from_answer(model.answer_, y_true=truth.iloc[unlabelled], ax=left)
outside = int(np.sum(~model.answer_.regions.contains(truth.iloc[unlabelled])))
MiscoverageDisplay.from_law(model.miscoverage_, truth=outside, ax=right)
plt.show()

# %%
# Is the distribution right? We compare it with the counts of 400 random splits, with a quicker estimator.

counts = []
for split in range(400):
    rows = np.random.default_rng(split).permutation(442)
    holes = np.append(truth.to_numpy()[rows[:150]], np.full(292, np.nan))
    again = ConformalTransducer(
        RidgeConfidenceMachine(kernel="linear"),
        test_exchangeability=False,
        random_state=split,
    ).fit(X.to_numpy()[rows], holes)
    counts.append(
        int(np.sum(~again.answer_.regions.contains(truth.to_numpy()[rows[150:]])))
    )
distribution = again.miscoverage_
edges = np.arange(0, max(counts) + 6, 5)
plt.figure(figsize=(6.5, 3.8), layout="constrained")
plt.hist(counts, bins=edges - 0.5, color="#a9bccb", label="400 splits")
expected = 400 * np.diff(distribution.cdf(edges - 1))
plt.plot(edges[:-1] + 2, expected, "o-", color="#1b6ca8", label="exact distribution")
plt.xlabel("number of the 292 values outside")
plt.ylabel("splits")
plt.legend()
plt.show()

# %%
# Picking rows: which tumours are malignant, with at most one mistake in ten among those picked, on average?

cancer = load_breast_cancer()
names = cancer.target_names[cancer.target].astype(object)
hidden_truth = names.copy()
names[np.random.default_rng(1).permutation(569)[200:]] = None
model = ConformalTransducer(RandomForestClassifier(random_state=0), random_state=0).fit(
    cancer.data, names
)
picked = model.select(label="malignant", false_discovery=0.1)
print(picked)
mistakes = int(np.sum(hidden_truth[picked.rows] != "malignant"))
there = int(np.sum(hidden_truth[model.answer_.rows] == "malignant"))
print(
    f"{mistakes} of {len(picked)} are mistakes; {len(picked) - mistakes} of {there} malignant rows were found"
)
print(model.mean_.round(3))
