"""What is covered when chance did not choose the labels: intervals as usual, weighted, and with twenty random labels.

    TRANSDUCE_DATA=folder python benchmarks/shift.py [--labels 100] [--draws 8] [--tables NAME ...]

Tables with numbers as labels: the papers', where TRANSDUCE_DATA has them, else those of scikit-learn and simulated
ones. About so many rows get a label, each with a probability of its own (the *mask*):

- *chance*: the same for all rows;
- *mild*, *strong*: its log-odds depend on one feature, by 0.7 or 1.5 for one standard deviation of its normal scores;
- *label*: its odds depend on how far the label lies from what ridge regression on all labels says: 1.5 times larger
  for the nearer half of the rows, 1.5 times smaller for the others. No test on features can see that.

Ridge regression, 90 %:

- *as usual*: `ConformalTransducer`, all labels weigh the same (``Chance(reweight=False)``);
- *auto*: the default, which estimates weights if a test says that rows differ;
- *estimated*: weights always estimated; where it guarantees nothing, it counts as unbounded;
- *known*: weights from the true probabilities (of *label*: those that the features know, which are equal);
- *factor 1.5*: ``Chance(reweight=False, sensitivity=1.5)``;
- *random 20*: twenty more rows are drawn at random and labelled: these calibrate.

*Coverage* is the share of the unlabelled rows that are inside, the mean over draws and tables; *width* the mean width
over that of *as usual* in the same draw, the geometric mean, where an unbounded interval counts as the range of all
labels; *unbounded* their share; *none* the share of draws in which nothing is guaranteed. Lines of single draws are
kept in output/shift.jsonl, so that a run goes on where it ended.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import norm, rankdata
from sklearn.datasets import load_diabetes, make_friedman1, make_friedman2
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from transduce import ConformalTransducer
from transduce.conformal import Chance, Drawn, Estimated, Sampled

OUT = Path(__file__).parent / "output" / "shift.jsonl"
PAPERS = ("boston", "auto-mpg", "ufc", "heights", "gilgais", "GAGurine", "kin-32fh")
MASKS = ("chance", "mild", "strong", "label")
STRENGTH = {"chance": 0.0, "mild": 0.7, "strong": 1.5, "label": 0.0}
MOST_ROWS = 800
DESIGNS = {
    "as usual": Chance(reweight=False),
    "auto": Chance(),
    "estimated": Estimated(),
    "known": None,  # made of each draw
    "factor 1.5": Chance(reweight=False, sensitivity=1.5),
    "random 20": None,
}


def simulated():
    """Return tables that need no data folder."""
    rng = np.random.default_rng(0)
    tables = {"diabetes": load_diabetes(return_X_y=True)}
    tables["friedman 1"] = make_friedman1(MOST_ROWS, random_state=0)
    tables["friedman 2"] = make_friedman2(MOST_ROWS, random_state=0)
    for name, noise in (("even noise", 0.0), ("noise grows", 0.7), ("noise grows fast", 1.2)):
        X = rng.normal(size=(MOST_ROWS, 5))
        tables[name] = X, X[:, 0] + np.exp(noise * X[:, 1]) * rng.normal(size=MOST_ROWS)
    X = rng.normal(size=(MOST_ROWS, 3))
    tables["bent"] = X, X[:, 0] ** 2 + 0.5 * rng.normal(size=MOST_ROWS)
    tables["heavy tails"] = X, X @ [1.0, -1.0, 0.5] + rng.standard_t(3, size=MOST_ROWS)
    return tables


def all_tables(wanted):
    """Return features and labels by name: the papers' tables where they are, else simulated ones."""
    tables, folder = simulated(), Path(os.environ.get("TRANSDUCE_DATA", "")) / "regression"
    for name in PAPERS:
        path = next(
            (p for p in (folder / f"{name}.csv", folder / f"{name}.csv.gz") if p.exists()), None
        )
        if path is None:
            continue
        frame = pd.read_csv(path).dropna()
        frame = frame.sample(min(len(frame), MOST_ROWS), random_state=0)
        X, y = pd.get_dummies(frame.iloc[:, :-1]).to_numpy(float), frame.iloc[:, -1].to_numpy(float)
        tables[name] = X[:, X.std(axis=0) > 0], y
    return {name: table for name, table in tables.items() if not wanted or name in wanted}


def ridge():
    return make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 3, 11)))


def probabilities(X, y, mask, n_labels, rng):
    """Return with which probability each row gets a label, and what the features know of it."""
    many = [j for j in range(X.shape[1]) if len(np.unique(X[:, j])) > 5]
    lean = norm.ppf((rankdata(X[:, rng.choice(many)]) - 0.5) / len(X)) * rng.choice([-1.0, 1.0])
    logit = STRENGTH[mask] * lean / lean.std()
    if mask == "label":
        off = np.abs(y - ridge().fit(X, y).predict(X))
        logit = np.log(1.5) * np.where(off > np.median(off), -1.0, 1.0)
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (low, middle)
            if np.sum(1 / (1 + np.exp(-logit - middle))) > n_labels
            else (middle, high)
        )
    chance = 1 / (1 + np.exp(-logit - middle))
    return chance, np.full(len(y), chance.mean()) if mask == "label" else chance


def measure(name, X, y, mask, n_labels, seed):
    """Return a line for every way, of one draw of a table."""
    rng = np.random.default_rng([seed, MASKS.index(mask), n_labels, *name.encode()])
    chance, known = probabilities(X, y, mask, n_labels, rng)
    labelled = rng.random(len(y)) < chance
    drawn = np.isin(np.arange(len(y)), rng.choice(np.flatnonzero(~labelled), 20, replace=False))
    asked = ~labelled & ~drawn  # the same rows are judged for every way
    lines, reach = [], float(np.ptp(y))
    designs = DESIGNS | {"known": Sampled(known), "random 20": Drawn(drawn)}
    for way, labels in designs.items():
        shown = np.where(labelled | (drawn & (way == "random 20")), y, np.nan)
        tested = way == "auto"
        model = ConformalTransducer(
            ridge(), labels=labels, random_state=seed, test_exchangeability=tested
        ).fit(X, shown)
        at = asked[model.answer_.rows]
        widths = np.minimum(model.answer_.regions.measure()[at], reach)
        lines.append(
            {
                "way": way,
                "coverage": float(model.answer_.regions.contains(y[model.answer_.rows])[at].mean()),
                "width": float(widths.mean()),
                "unbounded": float(np.isinf(model.answer_.regions.measure()[at]).mean()),
                "kind": model.guarantee_.kind,
                "effective": model.guarantee_.effective,
                "rejected": bool(
                    model.exchangeability_ is not None and model.exchangeability_.shifted
                ),
            }
        )
    return lines


def show(lines):
    """Print the tables."""
    frame = pd.DataFrame(lines)
    usual = frame[frame["way"] == "as usual"].set_index(["table", "mask", "labels", "seed"])[
        "width"
    ]
    keys = pd.MultiIndex.from_frame(frame[["table", "mask", "labels", "seed"]])
    frame["ratio"] = np.log(frame["width"].to_numpy() / usual.reindex(keys).to_numpy())
    for labels in sorted(frame["labels"].unique()):
        for mask in MASKS:
            part = frame[(frame["mask"] == mask) & (frame["labels"] == labels)]
            if part.empty:
                continue
            by_table = part.groupby(["way", "table"])["coverage"].mean()
            found = part.groupby("way").agg(
                coverage=("coverage", "mean"),
                width=("ratio", "mean"),
                unbounded=("unbounded", "mean"),
            )
            found["width"] = np.exp(found["width"])
            found.insert(1, "worst table", by_table.groupby("way").min())
            found["none"] = (part["kind"] == "none").groupby(part["way"]).mean()
            flagged = part[part["way"] == "auto"]["rejected"].mean()
            n, draws = part["table"].nunique(), len(part) // len(DESIGNS)
            print(
                f"\n{labels} labels, mask: {mask} ({n} tables, {draws} draws; the test rejects {flagged:.0%})"
            )
            print(found.loc[list(DESIGNS)].round(3).to_string())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--labels", type=int, nargs="+", default=[100])
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--tables", nargs="*", default=[])
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    args.out.parent.mkdir(exist_ok=True)
    lines = (
        [json.loads(line) for line in args.out.read_text().splitlines()]
        if args.out.exists()
        else []
    )
    done = {(line["table"], line["mask"], line["labels"], line["seed"]) for line in lines}
    warnings.simplefilter("ignore")
    tables = all_tables(args.tables)
    with threadpool_limits(1):
        for seed in range(args.draws):
            for name, (X, y) in tables.items():
                for mask in MASKS:
                    for labels in args.labels:
                        key = {"table": name, "mask": mask, "labels": labels, "seed": seed}
                        if tuple(key.values()) in done or 3 * labels > len(y):
                            continue
                        new = [{**key, **line} for line in measure(name, X, y, mask, labels, seed)]
                        with args.out.open("a") as file:
                            file.writelines(f"{json.dumps(line)}\n" for line in new)
                        lines += new
    show(lines)


if __name__ == "__main__":
    main()
