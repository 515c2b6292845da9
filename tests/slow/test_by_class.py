"""Coverage where labels were chosen by their class: within every class, overall, and with given shares."""

import warnings

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression

from transduce import ConformalTransducer
from transduce.conformal import ByClass
from transduce.conformal import shares as estimates


@pytest.fixture(autouse=True)
def _few_resamples(request, monkeypatch):
    """Intervals of the shares are of no matter in most tests, and take most of the time."""
    if "intervals" in request.node.name:
        return
    monkeypatch.setattr(estimates, "N_RESAMPLES", 2)


SHARES = np.array([30.0, 1.0]) / 31.0
ROUNDS = 300


def deal(rng, shares, n_each, m=60):
    """Return rows of two or three overlapping classes with as many labels of each, their labels, and the truth."""
    k = len(shares)
    codes = np.append(np.arange(k * n_each) % k, rng.choice(k, size=m, p=shares))
    X = rng.normal(size=(len(codes), 2)) + 1.2 * np.column_stack([codes, codes % 2])
    names = np.array(["a", "b", "c"])[codes]
    return X, np.where(np.arange(len(codes)) < k * n_each, names, None), codes


def covered(shares, labels, n_each, seed, confidence=0.8):
    """Return, over many tables, the class of one random unlabelled row, and whether its set holds it.

    One row a table, so that the rounds are independent and exactly binomial.
    """
    rng, found = np.random.default_rng(seed), []
    for _ in range(ROUNDS):
        X, y, codes = deal(rng, shares, n_each)
        model = ConformalTransducer(
            LogisticRegression(),
            labels=labels,
            confidence=confidence,
            test_exchangeability=False,
            random_state=int(rng.integers(2**31)),
        )
        sets = model.fit(X, y).answer_.label_sets
        truth = codes[len(shares) * n_each :]
        of = rng.integers(len(shares)) if labels == ByClass() else truth[0]
        rows = np.flatnonzero(truth == of)
        if len(rows):
            found.append((of, sets[rows[0], of]))
    return np.array(found)


def at_least(held, level):
    """Whether a level is believable: so few, or fewer, would be inside with a probability above 1 in 1,000."""
    return binom.cdf(np.sum(held), len(held), level) > 1e-3


@pytest.mark.parametrize(
    ("shares", "seed"), [(SHARES, 0), (np.array([0.6, 0.3, 0.1]), 1)], ids=["1:30", "three"]
)
def test_sets_hold_the_truth_within_every_class(shares, seed):
    found = covered(shares, ByClass(), 20, seed)
    for of in range(len(shares)):
        own = found[found[:, 0] == of, 1]
        assert len(own) > 50
        assert at_least(own, 0.8), (of, own.mean())


def test_sets_of_given_shares_hold_the_truth_overall():
    found = covered(SHARES, ByClass({"a": SHARES[0], "b": SHARES[1]}), 20, 2)
    assert at_least(found[:, 1], 0.8), found[:, 1].mean()


def test_plain_sets_do_not_hold_it_where_the_frequent_class_is_the_harder_one():
    """What a fit does that is not told: labels of the easy, rare class make sets too small for most rows."""
    rng, held = np.random.default_rng(3), {"plain": [], "by class": []}
    for _ in range(ROUNDS):
        codes = np.append(np.arange(80) % 2, rng.random(30) < SHARES[1]).astype(int)
        X = np.where(
            codes == 0, rng.normal(0.5, 1.5, len(codes)), rng.normal(1.5, 0.3, len(codes))
        )[:, None]
        y = np.where(np.arange(len(codes)) < 80, codes.astype(str), None)
        for way, labels in (("plain", None), ("by class", ByClass())):
            settings = {"confidence": 0.8, "test_exchangeability": False, "random_state": 0}
            model = ConformalTransducer(LogisticRegression(), labels=labels, **settings).fit(X, y)
            held[way].append(model.answer_.label_sets[0, codes[80]])
    assert not at_least(held["plain"], 0.8), np.mean(held["plain"])
    assert at_least(held["by class"], 0.8), np.mean(held["by class"])


def test_the_bound_on_the_column_holds():
    """At a certainty of 80 % the number outside exceeds its bound in no more than 20 % of the tables."""
    rng, kept = np.random.default_rng(4), []
    for _ in range(200):
        X, y, codes = deal(rng, SHARES, 20)
        labels = ByClass()
        model = ConformalTransducer(
            LogisticRegression(),
            labels=labels,
            confidence=0.8,
            random_state=int(rng.integers(2**31)),
        ).fit(X, y)
        outside = np.sum(~model.answer_.label_sets[np.arange(60), codes[40:]])
        kept.append(outside <= model.guarantee_at(certainty=0.8).outside.at_most)
    assert at_least(kept, 0.8), np.mean(kept)


@pytest.mark.parametrize(
    ("shares", "counts", "apart"),
    [([0.9, 0.1], [40, 40], 2.0), ([0.9, 0.1], [40, 40], 0.7), ([0.8, 0.2], [10, 10], 1.5),
     ([0.9, 0.1], [60, 1], 1.5), ([0.9, 0.1], [60, 4], 1.5), ([0.6, 0.3, 0.1], [30, 30, 30], 1.5)],
    ids=["1:9", "classes that overlap", "few labels", "one label", "four labels", "three classes"],
)  # fmt: skip
def test_intervals_of_shares_hold_them(shares, counts, apart):
    """About as often as they say, 90 %: in not much less than 80 % of the tables, also with one label of a class."""
    rng, held, k = np.random.default_rng(5), [], len(shares)
    for _ in range(60):
        codes = np.concatenate([np.repeat(np.arange(k), counts), rng.choice(k, size=300, p=shares)])
        X = rng.normal(size=(len(codes), 2)) + apart * np.column_stack([codes, codes % 2])
        y = np.where(np.arange(len(codes)) < sum(counts), codes.astype(str), None)
        settings = {"test_exchangeability": False, "random_state": int(rng.integers(2**31))}
        with warnings.catch_warnings(action="ignore"):
            model = ConformalTransducer(LogisticRegression(), labels=ByClass(), **settings).fit(
                X, y
            )
        found, of = model.class_shares_, rng.integers(k)
        held.append(found.lower[of] <= np.mean(codes[sum(counts) :] == of) <= found.upper[of])
    assert at_least(held, 0.8), np.mean(held)
