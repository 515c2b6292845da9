"""Coverage where classes of unlabelled rows may have no label, and where a column of numbers might be read as classes.

One unlabelled row a table: the number of rows inside is binomial, with the stated level or more.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.neighbors import KNeighborsClassifier

from transduce import ConformalTransducer, RidgeConfidenceClassifier, fill
from transduce.conformal import Chance

SHARES = {
    "40 by Zipf": 1.0 / np.arange(1, 41),
    "100 by Zipf": 1.0 / np.arange(1, 101),
    "5 alike": np.ones(5),
    "one and two rare": np.array([0.88, 0.06, 0.06]),
    "geometric": 0.7 ** np.arange(30),
    "two, one rare": np.array([0.93, 0.07]),
}


def draw(rng, n, shares):
    """Rows of classes with these shares, each class around a centre of its own."""
    codes = rng.choice(len(shares), size=n, p=shares / shares.sum())
    return rng.normal(size=(len(shares), 3))[codes] + 0.5 * rng.normal(size=(n, 3)), codes


def inside(answer, labels):
    """Return whether sets hold labels, or say that a class that no label shows is possible."""
    names = answer.classes.tolist()
    unseen = getattr(answer, "unseen", None)
    return [
        bool(answer.label_sets[j, names.index(label)])
        if label in names
        else unseen is not None and unseen[j]
        for j, label in enumerate(labels)
    ]


def assert_covered(hits, level):
    low = binom.ppf(1e-6, len(hits), level)
    assert np.sum(hits) >= low, f"covered {np.mean(hits):.3f}, guaranteed {level}"


@pytest.mark.parametrize(
    ("shares", "n_labelled", "level", "tables"),
    [
        ("40 by Zipf", 30, 0.9, 3000),
        ("100 by Zipf", 60, 0.8, 1500),
        ("5 alike", 5, 0.8, 4000),
        (
            "one and two rare",
            9,
            0.9,
            6000,
        ),  # as the last one: covered even if singles count as any other row
        ("geometric", 19, 0.95, 3000),
        ("two, one rare", 14, 0.9, 4000),
    ],
)
def test_sets_by_row(shares, n_labelled, level, tables):
    rng = np.random.default_rng([n_labelled, tables])
    hits, unsaid = [], []
    for _ in range(tables):
        X, codes = draw(rng, n_labelled + 1, SHARES[shares])
        y = np.append(codes[:-1].astype(float), np.nan)
        if len(set(codes[:-1])) == 1:
            hits.append(True)  # it is refused, and nothing is said
            continue
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # 14 labels cannot support what a rare class is asked for
            model = RidgeConfidenceClassifier(confidence=level).fit(X, y)
            by_class = RidgeConfidenceClassifier(confidence=level, label_conditional=True).fit(X, y)
        hits += inside(model.answer_, codes[-1:].astype(float))
        unsaid.append(
            codes[-1] in codes[:-1] or inside(by_class.answer_, codes[-1:].astype(float))[0]
        )
    assert_covered(hits, level)
    assert_covered(unsaid, level)


def test_sets_of_the_exactly_tuned_machine():
    rng = np.random.default_rng(1)
    hits = []
    for _ in range(200):
        X, codes = draw(rng, 31, SHARES["40 by Zipf"])
        y = np.append(codes[:-1].astype(float), np.nan)
        model = RidgeConfidenceClassifier(settings="leave-one-out").fit(X, y)
        hits += inside(model.answer_, codes[-1:].astype(float))
    assert_covered(hits, 0.9)


def test_the_filled_table():
    """The text of the set column, as a reader of the file sees it."""
    rng = np.random.default_rng(2)
    hits = []
    for seed in range(80):
        X, codes = draw(rng, 31, SHARES["40 by Zipf"])
        names = np.array([f"class {code}" for code in codes], dtype=object)
        table = pd.DataFrame(X, columns=list("abc")).assign(
            kind=np.where(np.arange(31) < 30, names, None)
        )
        filled = fill(table, "kind", method="ridge", random_state=seed)
        assert filled.guarantee.kind == "exact"
        said = filled.frame["kind_set"].iloc[-1].split(" | ")
        hits.append(
            names[-1] in said or (names[-1] not in names[:-1] and "no label shows" in said[-1])
        )
    assert_covered(hits, 0.9)


@pytest.mark.filterwarnings("ignore")
def test_held_out_labels_within_categories():
    """Each category calibrates by itself; where half of its calibration labels are of new classes, sets say so."""
    rng = np.random.default_rng(3)
    hits = []
    for seed in range(400):
        X, codes = draw(rng, 121, SHARES["100 by Zipf"])
        y = np.append(codes[:-1].astype(float), np.nan)
        model = ConformalTransducer(
            KNeighborsClassifier(1),
            labels=Chance(within=np.arange(121) % 2),
            random_state=seed,
            test_exchangeability=False,
        ).fit(X, y)
        if model.guarantee_.kind == "exact":
            hits += inside(model.answer_, codes[-1:].astype(float))
    assert_covered(hits, 0.9)


@pytest.mark.parametrize("top", [13, 11])
def test_counts_are_numbers(top):
    """Whole numbers of some 12 values and 20 labels: how many different ones chance shows does not decide."""
    rng = np.random.default_rng(top)
    hits, exact, tasks = [], 0, set()
    for seed in range(60):
        X = rng.normal(size=(21, 2))
        y = np.clip(np.round(top / 2 + 1.5 * X[:, 0] + 2 * rng.normal(size=21)), 0, top)
        table = pd.DataFrame(X, columns=["a", "b"]).assign(
            count=np.where(np.arange(21) < 20, y, np.nan)
        )
        filled = fill(table, "count", method="ridge", random_state=seed)
        exact += filled.guarantee.kind == "exact"
        tasks.add(filled.task)
        last = filled.answer
        hits.append(
            last.regions.contains(y[-1:])[0]
            if filled.task == "regression"
            else inside(last, y[-1:])[0]
        )
    assert tasks == {"regression"}
    assert exact >= 50  # the others differ by the test that compares rows
    low = binom.ppf(1e-3, 60, 0.9)
    assert np.sum(hits) >= low, f"covered {np.mean(hits):.3f}"
