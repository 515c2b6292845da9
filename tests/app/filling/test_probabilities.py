"""Probabilities of right answers fit what is seen at hidden labels; rows where no class is usual are called so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.datasets import load_digits

from transduce import Answer, Guarantee, fill
from transduce.app.filling import fit_fill
from transduce.app.filling.class_calibration import ClassCalibration


def stated(probabilities):
    """Return answers "a", and the probabilities stated for "a" and "b"."""
    P = np.column_stack([probabilities, 1 - np.asarray(probabilities)])
    said = {"status": np.array(["answered"] * len(P)), "guarantee": Guarantee("none")}
    return Answer(
        np.arange(len(P)),
        np.array(["a"] * len(P)),
        classes=np.array(["a", "b"]),
        probabilities=P,
        **said,
    )


def test_one_label_more_is_spread_over_the_classes():
    """By hand: nine labels, and half a label for each of two classes."""
    found = ClassCalibration(9).calibrate(stated([1.0, 0.5]), 0.9)
    np.testing.assert_allclose(found.probabilities, [[0.95, 0.05], [0.5, 0.5]])
    np.testing.assert_allclose(ClassCalibration(9).probability_correct(found), [0.95, 0.5])
    squared = ClassCalibration(9, power=2.0).calibrate(stated([0.75]), 0.9)
    np.testing.assert_allclose(
        squared.probabilities, [[(9 * 0.9 + 0.5) / 10, (9 * 0.1 + 0.5) / 10]]
    )


def test_where_nothing_is_stated():
    folds = pd.DataFrame({"true": "a", "answered": list("aaaaaaab")})
    silent = replace(stated([0.5] * 3), probabilities=None)
    np.testing.assert_allclose(
        ClassCalibration.of_hidden_labels(folds, 8).probability_correct(
            ClassCalibration.of_hidden_labels(folds, 8).calibrate(silent, 0.9)
        ),
        0.8,
    )
    assert np.isnan(
        ClassCalibration.of_hidden_labels(folds[:0], 8).probability_correct(silent)
    ).all()


@pytest.mark.parametrize("method", ["auto", "ridge"])
def test_there_is_one_probability(method):
    """That of the answer is that of its class, in the table, the answer and the saved model."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=90), "b": rng.normal(size=90)})
    word = np.array(["u", "v", "w"])[
        np.clip(frame["a"] + 1.5 + 0.4 * rng.normal(size=90), 0, 2.9).astype(int)
    ]
    frame["y"] = pd.Series(word, dtype=object).where(np.arange(90) % 2 == 0, None)
    result = fill(frame, "y", method=method, task="classification").with_options(probabilities=True)
    later = fit_fill(frame, "y", method=method, task="classification", probabilities=True)
    for new in (result.new, later.new_columns(frame.drop(columns="y"))):
        new = new[new["y_status"] != "given"]
        own = [line[f"y_probability_{line['y_filled']}"] for line in new.to_dict("records")]
        np.testing.assert_array_equal(new["y_probability"], own)
        np.testing.assert_allclose(new.filter(like="y_probability_").sum(axis=1), 1.0)
        assert (own >= new.filter(like="y_probability_").max(axis=1) - 1e-12).all()
    np.testing.assert_array_equal(
        result.answer.probabilities.max(axis=1), result.new["y_probability"].dropna()
    )


@pytest.mark.parametrize("method", ["auto", pytest.param("spectral-graph", marks=pytest.mark.slow)])
def test_stated_probabilities_are_those_observed(method):
    """The number of right answers is one that the probabilities allow, also at the rows called unusual."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(y))[:600]
    frame = pd.DataFrame(X[rows]).add_prefix("p")
    truth = y[rows]
    frame["digit"] = pd.Series(truth, dtype=object).where(np.arange(600) < 150, None)
    found = fill(frame, "digit", method=method, confidence=0.8, task="classification").new.iloc[
        150:
    ]
    right = (found["digit_filled"] == truth[150:]).to_numpy()
    share = found["digit_probability"].mean()
    assert binom.cdf(right.sum(), len(right), share) > 1e-4
    assert binom.sf(right.sum() - 1, len(right), share) > 1e-4
    unusual = (found["digit_status"] == "unusual").to_numpy()
    assert unusual.any()
    assert right[unusual].mean() < right[~unusual].mean()
    if method == "auto":  # the other states no probabilities
        assert (
            found["digit_probability"][unusual].mean() < found["digit_probability"][~unusual].mean()
        )
    assert (found["digit_set"][unusual] == found["digit_filled"][unusual].astype(str)).all()


def test_a_machine_alone_states_the_share_of_right_answers():
    frame = pd.DataFrame({"a": np.random.default_rng(0).normal(size=60)})
    frame["y"] = pd.Series(np.where(frame["a"] > 0, "u", "v"), dtype=object).where(
        np.arange(60) % 2 == 0, None
    )
    found = fill(frame, "y", method="confidence-machine").new.iloc[1::2]
    assert found["y_probability"].between(0.5, 1).all()
    assert found["y_probability"].nunique() == 1
