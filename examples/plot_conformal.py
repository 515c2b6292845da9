"""
How many of these values are wrong?
===================================

A column with holes is filled by transductive ridge regression. How many of the filled values lie outside their
intervals has an exact distribution, which is known before anyone knows the truth.
"""

# %%
# 150 of 442 patients have a label. Some of these labels are held out, the estimator is fitted once, and how far off
# it is at the calibration rows says how far off it is at the others.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import RandomForestClassifier

from transduce import ConformalTransducer, RidgeConfidenceMachine, TransductiveRidge
from transduce.display import RegionDisplay

X, truth = load_diabetes(return_X_y=True, as_frame=True)
unlabelled = np.sort(np.random.default_rng(0).permutation(442)[150:])
y = truth.copy()
y.iloc[unlabelled] = np.nan
model = ConformalTransducer(TransductiveRidge(), random_state=0).fit(X, y)
print(model.guarantee_)

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.2), layout="constrained")
RegionDisplay.from_answer(model.answer_, y_true=truth.iloc[unlabelled], ax=left)
outside = int(np.sum(~model.answer_.regions.contains(truth.iloc[unlabelled])))
model.miscoverage_.plot(truth=outside, ax=right)
plt.show()

# %%
# Is the law right? Over 400 random splits, with an estimator that is quicker: the counts, and what
# the law says of them.

counts = []
for split in range(400):
    rows = np.random.default_rng(split).permutation(442)
    holes = np.append(truth.to_numpy()[rows[:150]], np.full(292, np.nan))
    again = ConformalTransducer(
        RidgeConfidenceMachine(kernel="linear"), test_exchangeability=False, random_state=split
    ).fit(X.to_numpy()[rows], holes)
    counts.append(int(np.sum(~again.answer_.regions.contains(truth.to_numpy()[rows[150:]]))))
law = again.miscoverage_
edges = np.arange(0, max(counts) + 6, 5)
plt.figure(figsize=(6.5, 3.8), layout="constrained")
plt.hist(counts, bins=edges - 0.5, color="#a9bccb", label="400 splits")
plt.plot(edges[:-1] + 2, 400 * np.diff(law.cdf(edges - 1)), "o-", color="#1b6ca8", label="the law")
plt.xlabel("number of 292 values outside")
plt.ylabel("splits")
plt.legend()
plt.show()

# %%
# Picking rows: which patients are malignant, with at most one mistake in ten among those picked, on average?

cancer = load_breast_cancer()
names = cancer.target_names[cancer.target].astype(object)
hidden_truth = names.copy()
names[np.random.default_rng(1).permutation(569)[200:]] = None
model = ConformalTransducer(RandomForestClassifier(random_state=0), random_state=0).fit(cancer.data, names)
picked = model.select(label="malignant", false_discovery=0.1)
print(picked)
mistakes = int(np.sum(hidden_truth[picked.rows] != "malignant"))
there = int(np.sum(hidden_truth[model.answer_.rows] == "malignant"))
print(
    f"{mistakes} of {len(picked)} are mistakes; {len(picked) - mistakes} of {there} malignant rows were found"
)
print(model.mean_.round(3))
