"""
Find the rows of a class, and know when to stop
===============================================

A few hundred of 1,797 images of digits are wanted: the eights. A session proposes images,
learns from every label, and certifies how many of the wanted ones were found. The
certificate holds although one looks after every label.
"""

# %%
# What a person does on the page (`transduce label`) can be done in a script. Here the
# truth plays the person.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

from transduce.app.labelling import Session, SessionSettings

images, digits = load_digits(return_X_y=True)
frame = pd.DataFrame({"image": list(images)})
wanted = np.where(digits == 8, "yes", "no")
settings = SessionSettings(seed=0)

found = [0]
with Session(
    frame, "eight", classes=["yes", "no"], wanted="yes", settings=settings
) as session:
    for row in (*np.flatnonzero(digits == 8)[:1], *np.flatnonzero(digits != 8)[:1]):
        session.answer(wanted[row], row=int(row))
    for _ in range(220):
        row = session.propose("find").row
        session.answer(wanted[row])
        found.append(found[-1] + (wanted[row] == "yes"))
    searched = session.certificate()
    for _ in range(150):
        row = session.propose("audit").row
        session.answer(wanted[row])
    audited = session.certificate()

print(searched.recall)
print(audited.recall)

# %%
# The search finds nearly all eights among its first 220 proposals. What is left to chance
# is what the random draws then measure.

figure, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
ax.plot(found, color="#0b5394", label="found by the search")
ax.plot(
    [0, 220],
    [0, 220 * (digits == 8).mean()],
    "--",
    color="0.5",
    label="by labelling rows at random",
)
ax.axhline((digits == 8).sum(), color="#b45f06", linewidth=1, label="all eights")
ax.set(xlabel="labels", ylabel="eights found")
ax.legend(frameon=False)
plt.show()
