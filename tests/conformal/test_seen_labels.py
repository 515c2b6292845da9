"""Whether predictions seem to have been made with the labels: one function decides."""

from __future__ import annotations

import numpy as np
import pytest

from transduce.conformal import seen_labels
from transduce.conformal.seen_labels import SeenLabels, find_seen_labels


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch):
    monkeypatch.setattr(seen_labels, "N_TREES", 50)


def draw(seed, n_labels=150, *, numeric):
    """Return features, truth, which rows are labelled, and a generator."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 3))
    truth = X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * rng.normal(size=600)
    labelled = np.zeros(600, dtype=bool)
    labelled[rng.permutation(600)[:n_labels]] = True
    if not numeric:
        truth = np.where(truth > 0, "yes", "no").astype(object)
    return X, truth, labelled, rng


def guess(X, rng, *, numeric):
    """Return predictions that had nothing to do with the labels, and are poor."""
    values = 0.3 * X[:, 0] + rng.normal(size=len(X))
    return values if numeric else np.where(values > 0, "yes", "no").astype(object)


@pytest.mark.parametrize("numeric", [False, True])
def test_copied_labels_are_found_and_honest_predictions_left_alone(numeric):
    for seed in range(5):
        X, truth, labelled, rng = draw(seed, numeric=numeric)
        poor = guess(X, rng, numeric=numeric)
        copied = np.where(labelled, truth, poor)
        seen = find_seen_labels(copied, truth, labelled, lambda X=X: X, numeric=numeric)
        assert seen == SeenLabels(150, all_right=True, worse_elsewhere=True)
        honest = find_seen_labels(poor, truth, labelled, lambda X=X: X, numeric=numeric)
        assert honest == SeenLabels(150)
        perfect = find_seen_labels(truth, truth, labelled, lambda X=X: X, numeric=numeric)
        assert perfect == SeenLabels(150, all_right=True)


def test_one_label_that_was_copied_wrongly_hides_nothing():
    X, truth, labelled, rng = draw(0, numeric=False)
    copied = np.where(labelled, truth, guess(X, rng, numeric=False))
    wrong = np.flatnonzero(labelled)[0]
    copied[wrong] = "no" if truth[wrong] == "yes" else "yes"
    seen = find_seen_labels(copied, truth, labelled, lambda: X, numeric=False)
    assert seen == SeenLabels(150, worse_elsewhere=True)


def test_the_order_of_the_rows_does_not_matter():
    for seed in range(10):
        X, truth, labelled, rng = draw(seed, 40, numeric=True)
        copied = np.where(labelled, truth, guess(X, rng, numeric=True))
        order = rng.permutation(len(X))
        seen = find_seen_labels(copied, truth, labelled, lambda X=X: X, numeric=True)
        shuffled = find_seen_labels(
            copied[order],
            truth[order],
            labelled[order],
            lambda X=X, order=order: X[order],
            numeric=True,
        )
        assert seen == shuffled


def test_few_labels_no_columns_or_no_other_rows_say_little():
    X, truth, labelled, rng = draw(0, 19, numeric=False)
    copied = np.where(labelled, truth, guess(X, rng, numeric=False))
    assert find_seen_labels(copied, truth, labelled, lambda: X, numeric=False) == SeenLabels(19)
    every = np.ones(len(X), dtype=bool)
    assert find_seen_labels(truth, truth, every, lambda: X, numeric=False) == SeenLabels(600, True)
    X, truth, labelled, _ = draw(0, numeric=False)
    assert find_seen_labels(truth, truth, labelled, lambda: None, numeric=False) == SeenLabels(
        150, True
    )


def test_sentences_name_the_way_out():
    assert SeenLabels(40).describe("Mark them.") == ""
    assert "all 40 labels" in SeenLabels(40, True).describe("Mark them.")
    assert SeenLabels(40, True).describe("Mark them.").endswith("mark them.")
    worse = SeenLabels(40, True, True).describe("Mark them.")
    assert "seems to have seen" in worse
    assert worse.endswith("Mark them.")
