"""Labels of rows that were drawn at random, among others that were chosen by whatever means."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.linear_model import LinearRegression, Ridge
from typer.testing import CliRunner

from tests.conformal.test_transducer import numbers
from transduce import ConformalTransducer, fill
from transduce.cli.app import app
from transduce.conformal import Drawn


def biased(seed, n=220, drawn=19):
    """Return rows of which those with the largest values were labelled on purpose, and some more at random."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    truth = X[:, 0] + np.where(X[:, 0] > 0, 0.1, 2.0) * rng.standard_t(3, size=n)
    on_purpose = np.argsort(-X[:, 0])[:40]
    rest = np.setdiff1d(np.arange(n), on_purpose)
    at_random = np.isin(np.arange(n), rng.choice(rest, drawn, replace=False))
    y = np.where(at_random | np.isin(np.arange(n), on_purpose), truth, np.nan)
    return X, y, truth, at_random


def test_the_level_holds_however_the_other_labels_were_chosen():
    """One row of each of many samples: outside no more often than stated; with all labels, far more often."""
    n, outside, naive = 300, 0, 0
    for seed in range(n):
        X, y, truth, drawn = biased(seed)
        model = ConformalTransducer(
            LinearRegression(), labels=Drawn(drawn), test_exchangeability=False, random_state=0
        )
        row = np.flatnonzero(np.isnan(y))[0]
        outside += not model.fit(X, y).answer_.regions.contains(truth[np.isnan(y)])[0]
        y[drawn] = np.nan
        plain = ConformalTransducer(
            LinearRegression(), calibration=19, test_exchangeability=False, random_state=0
        )
        found = plain.fit(X, y).answer_
        naive += not found.regions.contains(truth[np.isnan(y)])[np.flatnonzero(found.rows == row)[0]]
    assert outside <= binom.ppf(0.999, n, 0.1)
    assert naive > 2 * outside


def test_the_guarantee_says_so_and_calibration_rows_are_those_marked():
    X, y, _, drawn = biased(0)
    model = ConformalTransducer(Ridge(), labels=Drawn(drawn), random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.calibration_rows_, np.flatnonzero(drawn))
    assert model.guarantee_.kind == "exact"
    assert model.guarantee_.headline == "exact"
    assert "19 of 59 labels calibrate, those of rows drawn at random" in model.guarantee_.grounds
    assert model.exchangeability_.n_labelled == 19


def test_constant_marks_are_refused():
    X, y, _ = numbers()
    for marks, words in (
        (np.isnan(y), "No row that 'rows' marks"),
        (~np.isnan(y), "at least one other is needed"),
        (np.zeros(3, dtype=bool), "a value for each of the 90 rows"),
        (np.zeros(90), "No row that 'rows' marks"),
        (np.arange(90), "holds 2: write true or yes where a row is marked"),
    ):
        with pytest.raises(ValueError, match=words):
            ConformalTransducer(Ridge(), labels=Drawn(marks)).fit(X, y)


def frame_of(seed=0):
    X, y, truth, drawn = biased(seed)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=y, drawn=np.where(drawn, "yes", ""))
    return frame, truth


def test_fill_takes_a_column_of_marks():
    frame, truth = frame_of()
    result = fill(frame, "y", method="ridge", labels=Drawn("drawn"))
    assert result.guarantee.n_calibration == 19
    assert result.guarantee.headline == "exact"
    assert result.columns.set_index("name")["kind"]["drawn"] == "ignored"
    unlabelled = result.answer.rows
    assert (~result.answer.regions.contains(truth[unlabelled])).sum() <= result.model.outside_at_most(0.9999)


@pytest.mark.parametrize(
    ("change", "settings", "words"),
    [
        ({"drawn": "perhaps"}, {}, "holds 'perhaps': write true or yes"),
        ({"drawn": ""}, {}, "No row that 'drawn' marks as drawn at random has a label"),
        ({}, {"confidence": 0.96}, "19 labels of rows drawn at random cannot guarantee 96 %: it takes 24"),
        ({}, {"guarantee": "row"}, "leave out one of the two"),
        ({}, {"labels": Drawn("y")}, "is the target"),
    ],
)
def test_bad_marks_get_one_sentence(change, settings, words):
    frame, _ = frame_of()
    with pytest.raises(ValueError, match=words):
        fill(frame.assign(**change), "y", **({"labels": Drawn("drawn")} | settings))


def test_draw_label_and_fill(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame, truth = frame_of()
    frame = frame.drop(columns="drawn")
    frame.loc[~np.isin(np.arange(220), np.argsort(-frame["a"])[:40]), "y"] = np.nan
    frame.to_csv("t.csv", index=False)
    run = CliRunner().invoke
    found = run(app, ["draw", "t.csv", "--target", "y", "--number", "19", "--seed", "3"])
    assert found.exit_code == 0, found.output
    assert "transduce fill t-draw.csv --target y --random-labels y_random" in found.output
    drawn = pd.read_csv("t-draw.csv")
    assert drawn["y_random"].sum() == 19
    assert drawn["y"][drawn["y_random"]].isna().all()
    pd.testing.assert_frame_equal(drawn[["a", "b", "y"]], pd.read_csv("t.csv"))
    drawn.loc[drawn["y_random"], "y"] = truth[drawn["y_random"]]
    drawn.to_csv("back.csv", index=False)
    words = "fill back.csv --target y --random-labels y_random --method ridge"
    found = run(app, words.split())
    assert found.exit_code == 0, found.output
    assert "Guarantee, exact: Each interval" in found.output
    again = run(app, ["draw", "t-draw.csv", "--target", "y"])
    assert again.exit_code == 1
    assert "already, perhaps from an earlier draw" in again.output
    many = run(app, ["draw", "t.csv", "--target", "y", "--number", "999", "--force"])
    assert "999 of them cannot be drawn" in many.output
