"""
Check what a language model labelled
====================================

A language model has sorted 20,000 support tickets. How often is it wrong, and how many
tickets are really complaints? A person checks 300 of them, drawn by the predicted class,
and the answers are exact.
"""

# %%
# A made-up table, of which we know the truth: complaints are rare, and the model calls
# some questions a complaint.

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from transduce import audit

rng = np.random.default_rng(7)
n_tickets = 20_000
classes = np.array(["question", "fault", "invoice", "complaint"])
truth = rng.choice(classes, n_tickets, p=[0.55, 0.27, 0.14, 0.04])
careless = rng.random(n_tickets) < np.where(truth == "complaint", 0.12, 0.05)
mistaken = rng.choice(classes, n_tickets, p=[0.4, 0.3, 0.2, 0.1])
tickets = pd.DataFrame(
    {
        "channel": rng.choice(["mail", "phone", "chat"], n_tickets),
        "words": rng.poisson(np.where(truth == "complaint", 90, 60)),
        "llm": np.where(careless, mistaken, truth),
        "gold": None,
    }
)
print(tickets["llm"].value_counts())

# %%
# Which 300 to check? `transduce draw` draws some from each predicted class, more from the
# rare ones than their share, and writes down with which probability.

folder = Path(tempfile.mkdtemp())
tickets.to_csv(folder / "tickets.csv", index=False)
command = "draw tickets.csv --target gold --by llm --number 300 --seed 1"
draw = subprocess.run(
    [sys.executable, "-m", "transduce", *command.split()],
    cwd=folder,
    check=True,
    capture_output=True,
    text=True,
)
print(draw.stdout)

# %%
# A person looks at the drawn tickets, without seeing what the model said. Here the truth
# stands in for that person.

checked = pd.read_csv(folder / "tickets-draw.csv")
checked["gold"] = np.where(checked["gold_random"], truth, None)
result = audit(checked, "gold", "llm", by="channel")
print(result.statement)

# %%
# The share of every class, with intervals that hold with 95 % certainty whatever the model
# did wrong, beside those of as many checks that were drawn from all tickets alike, without
# predictions.

shares = result.shares
alone_rows = rng.choice(n_tickets, 300, replace=False)
unaided = pd.DataFrame({"gold": None, "llm": "not known"}, index=range(n_tickets))
unaided.loc[alone_rows, "gold"] = truth[alone_rows]
alone = audit(unaided, "gold", "llm").shares

figure, ax = plt.subplots(figsize=(8, 3.8), layout="constrained")
place = np.arange(len(classes))
kinds = [
    (alone, 0.15, "#a9bccb", "300 checks alone"),
    (shares, -0.15, "#0b5394", "300 checks by class, with predictions"),
]
for lines, shift, color, name in kinds:
    lines = lines.loc[classes]
    ax.hlines(
        place + shift,
        100 * lines["lower"],
        100 * lines["upper"],
        color=color,
        linewidth=6,
        label=name,
    )
said = 100 * tickets["llm"].value_counts(normalize=True)[classes]
ax.plot(said, place, "o", color="#b3261e", markersize=6, label="the model says")
true = 100 * pd.Series(truth).value_counts(normalize=True)[classes]
ax.plot(true, place, "|", color="black", markersize=26, label="truth")
ax.set_yticks(place, classes)
ax.set_xlabel("share of the tickets in %")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# How wide the intervals are, in points of a percentage:

width = 100 * (shares["upper"] - shares["lower"])
width_alone = 100 * (alone["upper"] - alone["lower"])
print(pd.DataFrame({"by class": width, "alone": width_alone}).round(1).loc[classes])
