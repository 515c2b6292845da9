"""How many labels it takes to find 95 % of a class, and to be certain of it, against other orders of labelling.

    TRANSDUCE_DATA=FOLDER python benchmarks/labelling_effort.py [--runs 20] [--growth 0.02] [--out FOLDER]

A simulated person labels rows in the order of one of these, from one random hit and one random other row on:

- *ours*: what the labelling page proposes in mode "find";
- *svm*: a linear support vector machine on the same words or features, trained again and again, its likeliest row next
  (what ASReview does);
- *random*: any order; the number of labels is known in advance, its mean is shown.

*labels to certify*: the person searches until 30 proposals in a row were no hits, then audits by random draws until the
page's certificate says that 95 % are found with 95 % certainty; after three hits in one audit they search again.
*recall then* is what was found in truth. Reuters are the 3,299 test documents by TF-IDF, optdigits all 5,620 images,
adult 2,000 random people of each run. How much the graph weighs in "find" was chosen on these sets: what is shown is
what it can do here.

Both models are trained again after every label while there are fewer than 100, then whenever labels have grown by 2 %;
with --growth 0 after every label, which takes five times as long. Runs are kept in FOLDER/labelling-effort-GROWTH.csv,
and those that are there are not done again.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from paper_sets import load_dataset
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.svm import LinearSVC

from transduce.app.labelling.certificates import Audit, Draws, first_rejection, first_total_below
from transduce.app.labelling.prepared import prepare_matrix
from transduce.app.labelling.proposals import ClassRanking

RECALL, LEVEL = 0.95, 0.05
PATIENCE = 30  # misses in a row before the person audits
MOST_HITS = 3  # hits in an audit before the person searches again
ADULTS = 2_000
CLASSES = {
    "reuters": ("crude", "trade", "ship", "corn"),
    "optdigits": ("8", "9"),
    "adult": ("1",),
}
COLUMNS = [
    "data",
    "class",
    "method",
    "run",
    "rows",
    "hits",
    "labels to find",
    "labels to certify",
    "recall then",
]


@cache
def whole(name):
    data = load_dataset(name)
    if name == "reuters":
        return sp.csr_array(TfidfTransformer(sublinear_tf=True).fit_transform(data.X)), data.y
    X = data.encoded()
    return X.toarray() if sp.issparse(X) else X, data.y.astype(str)


@cache
def rows_of(name, run):
    """Return what is prepared of the rows, and the labels of one run; only adult differs from run to run."""
    X, y = whole(name)
    if name == "reuters":
        return prepare_matrix(np.empty((X.shape[0], 0)), X.astype(np.float32)), y
    if name == "adult":
        chosen = np.random.default_rng([run, 3]).choice(len(X), ADULTS, replace=False)
        X, y = X[chosen], y.iloc[chosen].reset_index(drop=True)
    X = X[:, X.std(axis=0) > 0.0]
    return prepare_matrix((X - X.mean(axis=0)) / X.std(axis=0)), y


def truth_of(y, name):
    return y[name].to_numpy(dtype=bool) if isinstance(y, pd.DataFrame) else (y == name).to_numpy()


class Svm:
    """A linear support vector machine, trained anew each time."""

    def __init__(self, unit):
        self._unit = unit

    def scores(self, hits, others):
        rows = np.array([*hits, *others])
        model = LinearSVC(C=1.0, class_weight="balanced", dual="auto")
        return model.fit(self._unit[rows], np.arange(len(rows)) < len(hits)).decision_function(
            self._unit
        )


class Person:
    """Knows the truth, and labels what is proposed."""

    def __init__(self, truth, rng, model, growth):
        self.truth, self.rng, self.model, self.growth = truth, rng, model, growth
        self.hits = [int(rng.choice(np.flatnonzero(truth)))]
        self.others = [int(rng.choice(np.flatnonzero(~truth)))]
        self.left = np.ones(len(truth), dtype=bool)
        self.left[[*self.hits, *self.others]] = False
        self._queue, self._scored = [], 0

    @property
    def count(self):
        return len(self.hits) + len(self.others)

    def label(self, row):
        (self.hits if self.truth[row] else self.others).append(int(row))
        self.left[row] = False
        return bool(self.truth[row])

    def search(self):
        """Label the likeliest row, by a model that saw all labels, or all but a few."""
        self._queue = [row for row in self._queue if self.left[row]]
        if not self._queue:
            scores = np.where(self.left, self.model.scores(self.hits, self.others), -np.inf)
            count = max(1, int(self.growth * self.count))
            best = np.argpartition(-scores, min(count, len(scores) - 1))[:count]
            self._queue = [int(row) for row in best[np.argsort(-scores[best])] if self.left[row]]
        return self.label(self._queue.pop(0))


def labels_to_find(person):
    goal = np.ceil(RECALL * person.truth.sum())
    while len(person.hits) < goal:
        person.search()
    return person.count


def labels_to_certify(person):
    """Search and audit in turn until the certificate is there; return the labels and the recall in truth."""
    n, count = len(person.truth), 0
    pools, knowns, outcomes = (
        np.zeros(n, dtype=int),
        np.zeros(n, dtype=int),
        np.zeros(n, dtype=bool),
    )
    while True:
        misses = 0
        while misses < PATIENCE and person.left.any():
            misses = 0 if person.search() else misses + 1
        drawn = 0
        while drawn < MOST_HITS and person.left.any():
            rows = np.flatnonzero(person.left)
            known, hit = len(person.hits), person.label(person.rng.choice(rows))
            pools[count], knowns[count], outcomes[count] = len(rows), known, hit
            count, drawn = count + 1, drawn + hit
            draws = Draws(pools[:count], knowns[:count], outcomes[:count])
            audit = Audit(draws, len(person.hits), 0, int(person.left.sum()))
            total = first_total_below(audit.found, RECALL)
            if total > audit.most or first_rejection(audit.draws, total, LEVEL) is not None:
                return person.count, len(person.hits) / person.truth.sum()
        if not person.left.any():
            return person.count, 1.0


def one(name, target, method, run, growth):
    prepared, y = rows_of(name, run if name == "adult" else 0)
    truth = truth_of(y, target)
    line = {
        "data": name,
        "class": target,
        "method": method,
        "run": run,
        "rows": len(truth),
        "hits": int(truth.sum()),
    }
    if method == "random":
        goal = np.ceil(RECALL * truth.sum())
        return line | {"labels to find": goal * (len(truth) + 1) / (truth.sum() + 1)}
    rng = np.random.default_rng([run, 1])
    model = (
        (lambda: ClassRanking(prepared.unit, prepared.graph))
        if method == "ours"
        else (lambda: Svm(prepared.unit))
    )
    line["labels to find"] = labels_to_find(Person(truth, rng, model(), growth))
    person = Person(truth, np.random.default_rng([run, 2]), model(), growth)
    line["labels to certify"], line["recall then"] = labels_to_certify(person)
    return line


def done_before(path):
    if not path.exists():
        return set()
    kept = pd.read_csv(path, dtype={"class": str})
    return set(zip(kept["data"], kept["class"], kept["method"], kept["run"], strict=True))


def run_all(path, runs, growth):
    done = done_before(path)
    with open(path, "a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if not done:
            writer.writeheader()
        for run in range(runs):
            for name, targets in CLASSES.items():
                for target in targets:
                    for method in ("ours", "svm", "random"):
                        if (name, target, method, run) not in done:
                            writer.writerow(one(name, target, method, run, growth))
                            file.flush()
            print(f"run {run + 1} of {runs}", flush=True)


def summary(path):
    table = pd.read_csv(path, dtype={"class": str})
    keys = ["data", "class", "rows", "method"]
    means = table.groupby(["data", "class", "method"], sort=False)[COLUMNS[4:]].mean().round(3)
    means["runs"] = table.groupby(["data", "class", "method"], sort=False).size()
    return means.reset_index()[[*keys, "hits", "runs", *COLUMNS[6:]]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--growth", type=float, default=0.02)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/output"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / f"labelling-effort-{given.growth:g}.csv"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run_all(path, given.runs, given.growth)
    print(summary(path).to_string(index=False))


if __name__ == "__main__":
    main()
