"""How good the answers are, where labels were chosen: only labels that stand for the unlabelled rows tell."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from transduce import fill
from transduce.conformal import Drawn, Grouped, Sampled


def clear_cases(seed=0, n=400, n_clear=60, n_drawn=20, noise=1.0):
    """Return a table whose clear cases were labelled on purpose, and others drawn at random; and the truth."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    truth = np.where(a + noise * rng.normal(size=n) > 0, "yes", "no")
    typical = truth == np.where(a > 0, "yes", "no")
    clear = np.argsort(-np.abs(a) * typical)[:n_clear]
    drawn = np.isin(
        np.arange(n), rng.choice(np.setdiff1d(np.arange(n), clear), n_drawn, replace=False)
    )
    known = drawn | np.isin(np.arange(n), clear)
    frame = pd.DataFrame({"a": a, "b": rng.normal(size=n), "drawn": drawn})
    return frame.assign(y=np.where(known, truth, None)), truth, known


def filled(frame, **settings):
    return fill(frame, "y", method=LogisticRegression(), labels=Drawn("drawn"), **settings)


def test_rows_drawn_at_random_tell_and_no_others():
    frame, _, known = clear_cases()
    result = filled(frame)
    folds = result.out_of_fold
    assert len(folds) == 20
    right = np.mean(folds["true"] == folds["answered"])
    assert right < 0.9
    summary = result.summary()
    assert summary["quality"]["accuracy"] == pytest.approx(right)
    assert "that were hidden, of rows drawn at random; " in summary["cards"][0]["small"]
    assert result.members["score"][0] == pytest.approx(right)
    said = result.new["y_probability"][~known]
    assert abs(said.mean() - right) < 0.15  # as far as two numbers can be fitted to 20 labels


def test_too_few_drawn_rows_say_so():
    frame, _, known = clear_cases(n_drawn=9)
    result = filled(frame).with_options(probabilities=True)
    summary = result.summary()
    assert summary["quality"] is None
    assert summary["cards"][0]["large"] == "not known"
    assert summary["cards"][0]["small"].startswith(
        "9 labels are of rows drawn at random, and it takes 10"
    )
    names = [name for name in result.new if name.startswith("y_probability")]
    assert len(names) == 3
    assert result.new.loc[~known, names].isna().all(axis=None)
    assert any("so they cannot measure it" in note for note in result.notes)
    assert result.advice.smaller is None


def test_drawn_rows_without_a_label_are_named_where_quality_is():
    frame, _, _ = clear_cases()
    frame.loc[np.flatnonzero(frame["drawn"])[:2], "y"] = None
    card = filled(frame).summary()["cards"][0]["small"]
    assert (
        "of rows drawn at random (2 more were drawn, without a label, and may be harder); " in card
    )


def test_labels_that_were_sure_are_not_called_drawn():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.normal(size=200), "chosen": np.where(np.arange(200) < 30, 1.0, 0.4)}
    )
    known = rng.random(200) < frame["chosen"]
    frame["y"] = np.where(known, frame["a"] + 0.3 * rng.normal(size=200), np.nan)
    result = fill(frame, "y", method=LinearRegression(), labels=Sampled("chosen"))
    assert result.diagnosis.measured_at == "weighted for the unlabelled rows"
    assert len(result.out_of_fold) == known[30:].sum()


@pytest.mark.parametrize("design", ["sampled", "grouped"])
def test_weights_of_a_design_weigh_quality(design):
    rng = np.random.default_rng(0)
    n = 240
    a = rng.normal(size=n)
    group = np.sort(rng.choice(40, size=n, p=np.linspace(1, 4, 40) / np.linspace(1, 4, 40).sum()))
    chosen = np.where(a > 0, 0.8, 0.3)
    known = group % 2 == 0 if design == "grouped" else rng.random(n) < chosen
    truth = a + np.where(a > 0, 0.1, 1.0) * rng.normal(size=n)
    frame = pd.DataFrame({"a": a, "b": rng.normal(size=n), "group": group, "chosen": chosen})
    labels = Grouped("group") if design == "grouped" else Sampled("chosen")
    frame["y"] = np.where(known, truth, np.nan)
    result = fill(frame, "y", method=LinearRegression(), labels=labels)
    folds, quality = result.out_of_fold, result.summary()["quality"]
    rows = [int(np.flatnonzero(truth == label)[0]) for label in folds["true"]]
    weights = (1 - chosen[rows]) / chosen[rows]
    if design == "grouped":
        weights = np.array([1 / np.sum(group[known] == group[row]) for row in rows])
    off = np.abs(folds["true"] - folds["answered"])
    assert quality["mean_absolute_error"] == pytest.approx(np.average(off, weights=weights))
    np.testing.assert_allclose(folds["weight"] / folds["weight"].mean(), weights / weights.mean())
    around = folds["true"] - np.average(folds["true"], weights=weights)
    assert quality["r2"] == pytest.approx(1 - (weights @ off**2) / (weights @ around**2))
    assert result.members["score"][0] == pytest.approx(quality["r2"])
